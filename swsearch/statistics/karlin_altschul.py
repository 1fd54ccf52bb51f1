"""E-values and bit scores: Karlin-Altschul statistics with BLAST's constants and finite-size correction.

The constants are those of NCBI's blast_stat.c (public domain), in ``blast_constants.txt``. The correction is that of
Park, Sheetlin and Spouge (BMC Res. Notes 5:286, 2012), which blastp uses, so that for an equal score both values
equal blastp's with ``-comp_based_stats 0``. Scoring systems without published constants have nothing here:
`why_no_statistics` says why. What is fitted to each query's own scores instead is in `swsearch.statistics.fitted`,
and `swsearch.statistics.choice` chooses; `Statistics` is what both kinds have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray
from swsearch.scoring import Mode, Scoring

DEFAULT_EVALUE = 10.0
"""Hits with a larger E-value are not reported, as BLAST, SWIPE, FASTA and HMMER have it."""

Constants = dict[str, tuple[tuple[float, float], list[tuple[float, ...]]]]


@cache
def _constants() -> Constants:
    """Read ``blast_constants.txt``: by matrix, ungapped (a, alpha), then the rows of its gap costs."""
    found: Constants = {}
    rows: list[tuple[float, ...]] = []
    text = (files("swsearch.statistics") / "blast_constants.txt").read_text(encoding="ascii")
    for line in text.splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0][0].isdigit():
            rows.append(tuple(map(float, words)))
        else:
            rows = []
            found[words[0]] = (float(words[1]), float(words[2])), rows
    return found


_erfc = np.frompyfunc(math.erfc, 1, 1)


class Statistics(Protocol):
    """Where a result's bit scores and E-values come from."""

    @property
    def name(self) -> str:
        """As the output names it."""

    def bit_scores(self, scores: npt.ArrayLike, subject_lengths: npt.ArrayLike) -> FloatArray | None:
        """Normalise raw scores; None where bits have no basis.

        Parameters
        ----------
        scores : array_like, shape (n,)
            Raw scores, matrix units.
        subject_lengths : array_like, shape (n,)
            Residues.

        Returns
        -------
        ndarray, shape (n,), float64, or None
            Bits.
        """

    def evalues(
        self,
        scores: npt.ArrayLike,
        query_length: int,
        subject_lengths: npt.ArrayLike,
        database_residues: int,
    ) -> FloatArray:
        """See `KarlinAltschul.evalues`."""

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
    """As the output names it."""

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
        """Compute E-values from what both sides leave room for.

        Parameters
        ----------
        y : ndarray, shape (n,), float64, or float
            Raw scores, matrix units.
        query, subject : tuple of ndarray, shape (n,), float64
            What `finite_size` returns for them.
        subjects : ndarray, shape (n,), float64
            Number of such subjects that the database amounts to.

        Returns
        -------
        ndarray, shape (n,), float64
        """
        (p_query, above_query), (p_subject, above_subject) = query, subject
        tau = 2 * self.gap_first * (self.alpha_ungapped - self.sigma)
        covariance = np.maximum(2 * self.sigma / self.lambda_, self.sigma * y + tau)
        area = p_query * p_subject + covariance * above_query * above_subject
        evalues: FloatArray = area * self.k * np.exp(-self.lambda_ * y) * subjects
        return evalues

    def finite_size(
        self, y: FloatArray | np.float64, length: FloatArray | np.float64
    ) -> tuple[FloatArray, FloatArray]:
        """Compute how much room a sequence leaves for an alignment.

        Parameters
        ----------
        y : ndarray, shape (n,), float64, or float
            Raw scores, matrix units.
        length : ndarray, shape (n,), float64, or float
            Residues.

        Returns
        -------
        room, probability : ndarray, shape (n,), float64
            The expected room for an alignment of this score, in residues, and the probability that there is room.
        """
        b = 2 * self.gap_first * (self.a_ungapped - self.a)
        beta = 2 * self.gap_first * (self.alpha_ungapped - self.alpha)
        room = length - (self.a * y + b)
        deviation = np.sqrt(np.maximum(2 * self.alpha / self.lambda_, self.alpha * y + beta))
        ratio = room / deviation
        probability = np.asarray(_erfc(-ratio / math.sqrt(2)), dtype=np.float64) / 2
        return room * probability + deviation / math.sqrt(2 * math.pi) * np.exp(-0.5 * ratio**2), probability


class LeastByLength:
    """The least scores that are hits, by subject length, for any number of queries.

    What depends on the subjects alone is computed once per score, and serves every query.

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
        """Find for each subject length the least score whose E-value is at most ``evalue``.

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
        none_good = 0  # too low, or the answer is 1
        while all_good - none_good > 1:  # the least score that is enough for all
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
    (a_ungapped, alpha_ungapped), rows = _constants()[scoring.matrix.name]
    for gap_open, gap_extend, lambda_, k, h, a, alpha, sigma in rows:
        if (gap_open, gap_extend) == (scoring.gap_open, scoring.gap_extend):
            return KarlinAltschul(lambda_, k, h, a, alpha, sigma, a_ungapped, alpha_ungapped, scoring.gap_first)
    return None


def why_no_statistics(scoring: Scoring, mode: Mode) -> str:
    """Say why `statistics_for` has no answer, and what would have one."""
    if mode != "local":
        return f"no E-values: no statistics are published for {mode} alignment; hits are ranked by score"
    if not scoring.matrix.published:
        known = ", ".join(sorted(_constants()))
        return f"no E-values: no statistics are published for matrix {scoring.matrix.name}, only for {known}"
    return (
        f"no E-values: no statistics are published for {scoring.describe()}; "
        f"open/extend with statistics: {', '.join(f'{o}/{e}' for o, e in supported_gap_costs(scoring.matrix.name))}"
    )


def supported_gap_costs(matrix_name: str) -> list[tuple[int, int]]:
    """List the (gap_open, gap_extend) of a matrix for which E-values can be given."""
    return [(int(row[0]), int(row[1])) for row in _constants().get(matrix_name, ((0.0, 0.0), []))[1]]


def supported_matrices() -> list[str]:
    """List the matrices for which E-values can be given."""
    return list(_constants())
