"""E-values and bit scores: Karlin-Altschul statistics with BLAST's constants and finite-size correction.

The constants are those of NCBI's blast_stat.c (public domain). The correction is that of Park, Sheetlin and Spouge
(BMC Res. Notes 5:286, 2012), which blastp uses, so that for an equal score both values equal blastp's
with ``-comp_based_stats 0``. Scoring systems without published constants have nothing here: `why_no_statistics` says
why. What is fitted to each query's own scores instead is in `swsearch.statistics.fitted`, and
`swsearch.statistics.choice` chooses; `Statistics` is what both kinds have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.scoring import Mode, Scoring

FloatArray = npt.NDArray[np.float64]

DEFAULT_EVALUE = 10.0
"""Hits with a larger E-value are not reported, as BLAST, SWIPE, FASTA and HMMER have it."""

# Per matrix: ungapped (a, alpha), then rows of gap_open, gap_extend, lambda, K, H, a, alpha, sigma.
# In blast_stat.c's columns a is "alpha", alpha is "alpha_v"; H is kept for reports only.
_CONSTANTS: dict[str, tuple[tuple[float, float], tuple[tuple[float, ...], ...]]] = {
    "BLOSUM45": (
        (0.9113, 9.611060),
        (
            (13, 3, 0.207, 0.049, 0.14, 1.5, 35.855900, 35.963900),
            (12, 3, 0.199, 0.039, 0.11, 1.8, 45.693600, 45.851700),
            (11, 3, 0.190, 0.031, 0.095, 2.0, 62.874100, 63.103700),
            (10, 3, 0.179, 0.023, 0.075, 2.4, 88.286800, 88.639100),
            (16, 2, 0.210, 0.051, 0.14, 1.5, 36.279800, 36.452400),
            (15, 2, 0.203, 0.041, 0.12, 1.7, 44.825700, 45.060400),
            (14, 2, 0.195, 0.032, 0.10, 1.9, 60.736200, 61.102300),
            (13, 2, 0.185, 0.024, 0.084, 2.2, 85.148100, 85.689400),
            (12, 2, 0.171, 0.016, 0.061, 2.8, 127.758000, 128.582000),
            (19, 1, 0.205, 0.040, 0.11, 1.9, 53.071400, 53.828200),
            (18, 1, 0.198, 0.032, 0.10, 2.0, 72.342400, 73.403900),
            (17, 1, 0.189, 0.024, 0.079, 2.4, 103.055000, 104.721000),
            (16, 1, 0.176, 0.016, 0.063, 2.8, 170.100000, 173.003000),
        ),
    ),
    "BLOSUM50": (
        (0.6895, 5.388310),
        (
            (13, 3, 0.212, 0.063, 0.19, 1.1, 18.113800, 18.202800),
            (12, 3, 0.206, 0.055, 0.17, 1.2, 22.654600, 22.777700),
            (11, 3, 0.197, 0.042, 0.14, 1.4, 29.861100, 30.045700),
            (10, 3, 0.186, 0.031, 0.11, 1.7, 42.393800, 42.674000),
            (9, 3, 0.172, 0.022, 0.082, 2.1, 66.069600, 66.516400),
            (16, 2, 0.215, 0.066, 0.20, 1.05, 17.951800, 18.092100),
            (15, 2, 0.210, 0.058, 0.17, 1.2, 21.940100, 22.141800),
            (14, 2, 0.202, 0.045, 0.14, 1.4, 28.681200, 28.961900),
            (13, 2, 0.193, 0.035, 0.12, 1.6, 42.059500, 42.471600),
            (12, 2, 0.181, 0.025, 0.095, 1.9, 63.747600, 64.397300),
            (19, 1, 0.212, 0.057, 0.18, 1.2, 26.311200, 26.923300),
            (18, 1, 0.207, 0.050, 0.15, 1.4, 34.903700, 35.734800),
            (17, 1, 0.198, 0.037, 0.12, 1.6, 48.895800, 50.148600),
            (16, 1, 0.186, 0.025, 0.10, 1.9, 76.469100, 78.443000),
            (15, 1, 0.171, 0.015, 0.063, 2.7, 140.053000, 144.160000),
        ),
    ),
    "BLOSUM62": (
        (0.7916, 4.964660),
        (
            (11, 2, 0.297, 0.082, 0.27, 1.1, 12.673800, 12.757600),
            (10, 2, 0.291, 0.075, 0.23, 1.3, 16.474000, 16.602600),
            (9, 2, 0.279, 0.058, 0.19, 1.5, 22.751900, 22.950000),
            (8, 2, 0.264, 0.045, 0.15, 1.8, 35.483800, 35.821300),
            (7, 2, 0.239, 0.027, 0.10, 2.5, 61.238300, 61.886000),
            (6, 2, 0.201, 0.012, 0.061, 3.3, 140.417000, 141.882000),
            (13, 1, 0.292, 0.071, 0.23, 1.2, 19.506300, 19.893100),
            (12, 1, 0.283, 0.059, 0.19, 1.5, 27.856200, 28.469900),
            (11, 1, 0.267, 0.041, 0.14, 1.9, 42.602800, 43.636200),
            (10, 1, 0.243, 0.024, 0.10, 2.5, 83.178700, 85.065600),
            (9, 1, 0.206, 0.010, 0.052, 4.0, 210.333000, 214.842000),
        ),
    ),
    "BLOSUM80": (
        (0.5222, 1.918130),
        (
            (25, 2, 0.342, 0.17, 0.66, 0.52, 1.731000, 1.731300),
            (13, 2, 0.336, 0.15, 0.57, 0.59, 2.673470, 2.692300),
            (9, 2, 0.319, 0.11, 0.42, 0.76, 5.576090, 5.667860),
            (8, 2, 0.308, 0.090, 0.35, 0.89, 7.536950, 7.686230),
            (7, 2, 0.293, 0.070, 0.27, 1.1, 11.586600, 11.840400),
            (6, 2, 0.268, 0.045, 0.19, 1.4, 19.958100, 20.441200),
            (11, 1, 0.314, 0.095, 0.35, 0.90, 8.808610, 9.223320),
            (10, 1, 0.299, 0.071, 0.27, 1.1, 13.833800, 14.533400),
            (9, 1, 0.279, 0.048, 0.20, 1.4, 24.252000, 25.490400),
        ),
    ),
    "BLOSUM90": (
        (0.4434, 1.377760),
        (
            (9, 2, 0.310, 0.12, 0.46, 0.67, 4.232290, 4.334170),
            (8, 2, 0.300, 0.099, 0.39, 0.76, 5.797020, 5.961420),
            (7, 2, 0.283, 0.072, 0.30, 0.93, 9.040880, 9.321600),
            (6, 2, 0.259, 0.048, 0.22, 1.2, 16.024400, 16.531600),
            (11, 1, 0.302, 0.093, 0.39, 0.78, 7.143250, 7.619190),
            (10, 1, 0.290, 0.075, 0.28, 1.04, 11.483900, 12.269800),
            (9, 1, 0.265, 0.044, 0.20, 1.3, 21.408300, 22.840900),
        ),
    ),
    "PAM250": (
        (0.98, 11.754300),
        (
            (15, 3, 0.205, 0.049, 0.13, 1.6, 34.578400, 34.928000),
            (14, 3, 0.200, 0.043, 0.12, 1.7, 43.353000, 43.443800),
            (13, 3, 0.194, 0.036, 0.10, 1.9, 50.948500, 51.081700),
            (12, 3, 0.186, 0.029, 0.085, 2.2, 69.606500, 69.793600),
            (11, 3, 0.174, 0.020, 0.070, 2.5, 98.653500, 98.927100),
            (17, 2, 0.204, 0.047, 0.12, 1.7, 41.583800, 41.735800),
            (16, 2, 0.198, 0.038, 0.11, 1.8, 51.635200, 51.843900),
            (15, 2, 0.191, 0.031, 0.087, 2.2, 67.256700, 67.558500),
            (14, 2, 0.182, 0.024, 0.073, 2.5, 96.315100, 96.756800),
            (13, 2, 0.171, 0.017, 0.059, 2.9, 135.653000, 136.339000),
            (21, 1, 0.205, 0.045, 0.11, 1.8, 48.728200, 49.218800),
            (20, 1, 0.199, 0.037, 0.10, 1.9, 60.832000, 61.514100),
            (19, 1, 0.192, 0.029, 0.083, 2.3, 84.019700, 84.985600),
            (18, 1, 0.183, 0.021, 0.070, 2.6, 113.829000, 115.184000),
            (17, 1, 0.171, 0.014, 0.052, 3.3, 175.071000, 177.196000),
        ),
    ),
    "PAM30": (
        (0.1938, 0.161818),
        (
            (7, 2, 0.305, 0.15, 0.87, 0.35, 1.014010, 1.162730),
            (6, 2, 0.287, 0.11, 0.68, 0.42, 1.688060, 1.951430),
            (5, 2, 0.264, 0.079, 0.45, 0.59, 3.377010, 3.871950),
            (10, 1, 0.309, 0.15, 0.88, 0.35, 1.372050, 1.788770),
            (9, 1, 0.294, 0.11, 0.61, 0.48, 2.463920, 3.186150),
            (8, 1, 0.270, 0.072, 0.40, 0.68, 5.368130, 6.763480),
        ),
    ),
    "PAM70": (
        (0.3250, 0.633439),
        (
            (8, 2, 0.301, 0.12, 0.54, 0.56, 2.881650, 3.025710),
            (7, 2, 0.286, 0.093, 0.43, 0.67, 4.534540, 4.785780),
            (6, 2, 0.264, 0.064, 0.29, 0.90, 7.942630, 8.402720),
            (11, 1, 0.305, 0.12, 0.52, 0.59, 3.681400, 4.108020),
            (10, 1, 0.291, 0.091, 0.41, 0.71, 6.002970, 6.716570),
            (9, 1, 0.270, 0.060, 0.28, 0.97, 11.360800, 12.636700),
        ),
    ),
}

_erfc = np.frompyfunc(math.erfc, 1, 1)


class Statistics(Protocol):
    """Where a result's bit scores and E-values come from."""

    @property
    def name(self) -> str:
        """As the output names it."""

    def bit_scores(self, scores: npt.ArrayLike, subject_lengths: npt.ArrayLike) -> FloatArray | None:
        """Normalise raw scores, in bits; None where bits have no basis."""

    def evalues(
        self,
        scores: npt.ArrayLike,
        query_length: int,
        subject_lengths: npt.ArrayLike,
        database_residues: int,
    ) -> FloatArray:
        """Compute the expected number of chance hits at least as good; see `KarlinAltschul.evalues`."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain values, by name."""


@dataclass(frozen=True)
class KarlinAltschul:
    """Statistics of local alignment scores for one matrix and gap cost.

    Parameters
    ----------
    lambda_, k, h : float
        Gapped Karlin-Altschul parameters; lambda in nats per matrix unit, h in nats per pair.
    a, alpha, sigma : float
        Gapped finite-size parameters: growth of the alignment's mean length, of its variance and covariance.
    a_ungapped, alpha_ungapped : float
        The same without gaps.
    gap_first : int
        Cost of a gap of one residue.
    """

    lambda_: float
    k: float
    h: float
    a: float
    alpha: float
    sigma: float
    a_ungapped: float
    alpha_ungapped: float
    gap_first: int

    name = "Karlin-Altschul, BLAST's constants and finite-size correction"
    """Named so in the output."""

    def parameters(self) -> dict[str, Any]:
        """See `Statistics.parameters`."""
        named = {"lambda": self.lambda_, "k": self.k, "h": self.h, "a": self.a}
        return {**named, "alpha": self.alpha, "sigma": self.sigma}

    def bit_score(self, score: int) -> float:
        """Normalise a raw score, in bits."""
        return (self.lambda_ * score - math.log(self.k)) / math.log(2)

    def bit_scores(self, scores: npt.ArrayLike, subject_lengths: npt.ArrayLike) -> FloatArray:
        """See `Statistics.bit_scores`; the subjects' lengths do not matter."""
        raw = np.asarray(scores, dtype=np.float64)
        bits: FloatArray = (self.lambda_ * raw - math.log(self.k)) / math.log(2)
        return bits

    def evalues(
        self,
        scores: npt.ArrayLike,
        query_length: int,
        subject_lengths: npt.ArrayLike,
        database_residues: int,
    ) -> FloatArray:
        """Compute the expected number of chance hits at least as good.

        Parameters
        ----------
        scores : array_like, shape (n,)
            Raw scores, matrix units.
        query_length : int
            Residues.
        subject_lengths : array_like, shape (n,)
            Residues of each subject; positive.
        database_residues : int
            Residues of the whole database, or the size that ``--dbsize`` sets.

        Returns
        -------
        ndarray, shape (n,), float64
        """
        y = np.asarray(scores, dtype=np.float64)
        n = np.asarray(subject_lengths, dtype=np.float64)
        query = self.finite_size(y, np.float64(query_length))
        return self.combine(y, query, self.finite_size(y, n), database_residues / n)

    def combine(
        self,
        y: FloatArray | np.float64,
        query: tuple[FloatArray, FloatArray],
        subject: tuple[FloatArray, FloatArray],
        subjects: FloatArray,
    ) -> FloatArray:
        """Compute E-values from both sides' `finite_size` and the number of subjects that the database amounts to."""
        (p_query, above_query), (p_subject, above_subject) = query, subject
        tau = 2 * self.gap_first * (self.alpha_ungapped - self.sigma)
        covariance = np.maximum(2 * self.sigma / self.lambda_, self.sigma * y + tau)
        area = p_query * p_subject + covariance * above_query * above_subject
        evalues: FloatArray = area * self.k * np.exp(-self.lambda_ * y) * subjects
        return evalues

    def finite_size(
        self, y: FloatArray | np.float64, length: FloatArray | np.float64
    ) -> tuple[FloatArray, FloatArray]:
        """Return the expected room for an alignment of score y, and the probability that there is room."""
        b = 2 * self.gap_first * (self.a_ungapped - self.a)
        beta = 2 * self.gap_first * (self.alpha_ungapped - self.alpha)
        room = length - (self.a * y + b)
        deviation = np.sqrt(np.maximum(2 * self.alpha / self.lambda_, self.alpha * y + beta))
        ratio = room / deviation
        probability = np.asarray(_erfc(-ratio / math.sqrt(2)), dtype=np.float64) / 2
        return room * probability + deviation / math.sqrt(2 * math.pi) * np.exp(-0.5 * ratio**2), probability


class MinimumScores:
    """The smallest scores that are hits, by subject length, for any number of queries.

    What depends on the subjects alone is computed once a score, and serves every query.

    Parameters
    ----------
    statistics : KarlinAltschul
        Where E-values come from.
    subject_lengths : ndarray, shape (n,), integer
        Residues; positive.
    database_residues : int
        As for `KarlinAltschul.evalues`.
    """

    def __init__(
        self, statistics: KarlinAltschul, subject_lengths: npt.NDArray[np.integer], database_residues: int
    ) -> None:
        self._statistics = statistics
        self._lengths = subject_lengths.astype(np.float64)
        self._subjects = database_residues / self._lengths
        self._sides: dict[int, tuple[FloatArray, FloatArray]] = {}

    def of(self, evalue: float, query_length: int) -> npt.NDArray[np.int64]:
        """Find for each subject length the smallest score whose E-value is at most ``evalue``.

        Returns
        -------
        ndarray, shape (n,), int64
            At least 1.
        """
        if not len(self._lengths):
            return np.zeros(0, dtype=np.int64)
        all_good = 64
        while all_good < 1 << 24 and not self._good(all_good, evalue, query_length).all():
            all_good *= 2
        none_good = 0  # too small, or the answer is 1
        while all_good - none_good > 1:  # the smallest score that is enough for all
            middle = (none_good + all_good) // 2
            if self._good(middle, evalue, query_length).all():
                all_good = middle
            else:
                none_good = middle
        found = np.full(len(self._lengths), all_good, dtype=np.int64)
        score = all_good
        while score > 1 and (good := self._good(score - 1, evalue, query_length)).any():
            score -= 1
            found[good] = score
        return found

    def _good(self, score: int, evalue: float, query_length: int) -> npt.NDArray[np.bool_]:
        y = np.float64(score)
        if score not in self._sides:
            self._sides[score] = self._statistics.finite_size(y, self._lengths)
        query = self._statistics.finite_size(y, np.float64(query_length))
        good: npt.NDArray[np.bool_] = self._statistics.combine(y, query, self._sides[score], self._subjects) <= evalue
        return good


def statistics_for(scoring: Scoring, mode: Mode) -> KarlinAltschul | None:
    """Return the published statistics of a scoring system, or None where there are none; see `why_no_statistics`."""
    if mode != "local" or not scoring.matrix.published:
        return None
    (a_ungapped, alpha_ungapped), rows = _CONSTANTS[scoring.matrix.name]
    for gap_open, gap_extend, lambda_, k, h, a, alpha, sigma in rows:
        if (gap_open, gap_extend) == (scoring.gap_open, scoring.gap_extend):
            return KarlinAltschul(lambda_, k, h, a, alpha, sigma, a_ungapped, alpha_ungapped, scoring.gap_first)
    return None


def why_no_statistics(scoring: Scoring, mode: Mode) -> str:
    """Say why `statistics_for` has no answer, and what would have one."""
    if mode != "local":
        return f"no E-values: no statistics are published for {mode} alignment; hits are ranked by score"
    if not scoring.matrix.published:
        known = ", ".join(sorted(_CONSTANTS))
        return f"no E-values: no statistics are published for matrix {scoring.matrix.name}, only for {known}"
    return (
        f"no E-values: no statistics are published for {scoring.describe()}; "
        f"open/extend with statistics: {', '.join(f'{o}/{e}' for o, e in supported_gap_costs(scoring.matrix.name))}"
    )


def supported_gap_costs(matrix_name: str) -> list[tuple[int, int]]:
    """List the (gap_open, gap_extend) of a matrix for which E-values can be given."""
    return [(int(row[0]), int(row[1])) for row in _CONSTANTS.get(matrix_name, ((0.0, 0.0), ()))[1]]


def supported_matrices() -> list[str]:
    """List the matrices for which E-values can be given."""
    return list(_CONSTANTS)
