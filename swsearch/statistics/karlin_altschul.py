"""E-values and bit scores: Karlin-Altschul statistics with BLAST's constants and finite-size correction.

The constants are those of NCBI's blast_stat.c (public domain), in ``blast_constants.txt``. The correction is that of
Park, Sheetlin and Spouge (BMC Res. Notes 5:286, 2012), which blastp uses, so that for an equal score both values
equal blastp's with ``-comp_based_stats 0``. Scoring systems without published constants have nothing here:
`why_no_statistics` says why. What is fitted to each query's own scores instead is in
`swsearch.statistics.null_model`, and `swsearch.statistics.methods` chooses; `Statistics` is what both kinds have in
common.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray
from swsearch.options.kinds import Mode
from swsearch.scoring import Scoring
from swsearch.statistics import portable_math

DEFAULT_EVALUE = 10.0
"""Hits with a larger E-value are not reported, as BLAST, SWIPE, FASTA and HMMER have it."""

Constants = dict[str, tuple[tuple[float, float], list[tuple[float, ...]]]]


@cache
def _constants() -> Constants:
    """Read ``blast_constants.txt``: by matrix, ungapped (a, alpha), then the rows of its gap costs."""
    constants: Constants = {}
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
            constants[words[0]] = (float(words[1]), float(words[2])), rows
    return constants


EffectiveLength = tuple[FloatArray, FloatArray]
"""Room that a sequence leaves for an alignment: expected residues, and the probability of any room."""

_TABLED = 2048
"""Scores below are looked up in tables, where E-values of many are computed; few proteins score higher."""

_QUERY_SIDES = 256
"""Lengths of queries whose tables are kept; each takes 6 KiB and more."""


class Statistics(Protocol):
    """Source of a result's bit scores and E-values."""

    @property
    def name(self) -> str:
        """Name in outputs."""

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
        self, scores: npt.ArrayLike, query_length: int, subject_lengths: npt.ArrayLike, database_residues: int
    ) -> FloatArray:
        """Return the E-values of scores, as `KarlinAltschul.evalues` does."""

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
    """Name in outputs."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain values, by name."""
        named = {"lambda": self.lambda_, "k": self.k, "h": self.h, "a": self.a}
        return {**named, "alpha": self.alpha, "sigma": self.sigma}

    def bit_score(self, score: int) -> float:
        """Normalise a raw score, in bits."""
        return float(self.bit_scores([score], [0])[0])

    def bit_scores(self, scores: npt.ArrayLike, subject_lengths: npt.ArrayLike) -> FloatArray:
        """Normalise raw scores, in bits; the subjects' lengths do not matter."""
        raw = np.asarray(scores, dtype=np.float64)
        return (self.lambda_ * raw - portable_math.log(self.k)) / portable_math.LN2

    def evalues(
        self,
        scores: npt.ArrayLike,
        query_length: npt.ArrayLike,
        subject_lengths: npt.ArrayLike,
        database_residues: int,
    ) -> FloatArray:
        """Compute the expected number of chance hits at least as good.

        Parameters
        ----------
        scores : array_like, shape (n,)
            Raw scores, matrix units.
        query_length : int or array_like, shape (n,)
            Residues, of one query or of that of each pair.
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
        query = self.finite_size(y, np.asarray(query_length, dtype=np.float64))
        return self.combine(y, self.expected_per_pair(y), query, self.finite_size(y, n), database_residues / n)

    def expected_per_pair(self, y: FloatArray | np.float64) -> FloatArray:
        """Compute the expected number of alignments that begin at a pair of residues and score this much.

        Parameters
        ----------
        y : ndarray, shape (n,), float64, or float
            Raw scores, matrix units.

        Returns
        -------
        ndarray, shape (n,), float64
        """
        return self.k * portable_math.exp(-self.lambda_ * y)

    def combine(
        self,
        y: FloatArray | np.float64,
        expected_per_pair: FloatArray,
        query: EffectiveLength,
        subject: EffectiveLength,
        subjects: FloatArray,
    ) -> FloatArray:
        """Compute E-values from the effective lengths of query and subject.

        Parameters
        ----------
        y : ndarray, shape (n,), float64, or float
            Raw scores, matrix units.
        expected_per_pair : ndarray, shape (n,), float64
            What `expected_per_pair` returns for them.
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
        return area * expected_per_pair * subjects

    def finite_size(self, y: FloatArray | np.float64, length: FloatArray | np.float64) -> EffectiveLength:
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
        probability = portable_math.erfc(-ratio / math.sqrt(2)) / 2
        near = deviation / math.sqrt(2 * math.pi) * portable_math.exp(-0.5 * ratio**2)
        # far from any room their difference is lost to rounding, and may be below 0
        return np.maximum(room * probability + near, 0.0) + 0.0, probability


class ScoreCutoffs:
    """The least scores that are hits, by subject length, for any number of queries.

    What depends on the subjects alone is computed once per score, and serves every query.

    Parameters
    ----------
    statistics : KarlinAltschul
        Where E-values come from.
    subject_lengths : ndarray, shape (n,), integer
        Residues; positive, ascending.
    database_residues : int
        As for `KarlinAltschul.evalues`.
    """

    def __init__(
        self, statistics: KarlinAltschul, subject_lengths: npt.NDArray[np.integer], database_residues: int
    ) -> None:
        self._statistics = statistics
        self._lengths = subject_lengths.astype(np.float64)
        self._residues = database_residues
        self._subjects = database_residues / self._lengths
        self._sides: dict[int, EffectiveLength] = {}
        self._queries: dict[int, _QuerySide] = {}

    def by_length(self, evalue: float, query_length: int) -> npt.NDArray[np.int64]:
        """Find for each subject length the least score whose E-value is at most ``evalue``.

        Returns
        -------
        ndarray, shape (n,), int64
            At least 1.
        """
        if not len(self._lengths):
            return np.zeros(0, dtype=np.int64)
        query = self._query(query_length)
        score = _first(lambda score: bool(self._good(score, evalue, query).all()))
        cutoffs = np.full(len(self._lengths), score, dtype=np.int64)
        while score > 1 and (good := self._good(score - 1, evalue, query)).any():
            score -= 1
            cutoffs[good] = score
        return cutoffs

    def evalues(
        self, scores: npt.NDArray[np.integer], query_length: int, subject_lengths: npt.NDArray[np.integer]
    ) -> FloatArray:
        """Compute what `KarlinAltschul.evalues` does, to the last bit, in half the time where scores are usual.

        Parameters
        ----------
        scores, subject_lengths : ndarray, shape (n,), integer
            Matrix units, at least 0, and residues, positive.
        query_length : int
            Residues.

        Returns
        -------
        ndarray, shape (n,), float64
        """
        statistics, y, n = self._statistics, scores.astype(np.float64), subject_lengths.astype(np.float64)
        highest = int(scores.max(initial=0))
        if highest < _TABLED:
            chance, side = self._query(query_length).at(scores, highest)
        else:
            chance, side = statistics.expected_per_pair(y), statistics.finite_size(y, np.float64(query_length))
        return statistics.combine(y, chance, side, statistics.finite_size(y, n), self._residues / n)

    def min_score(self, evalue: float, query_length: int, shortest: int, longest: int) -> int:
        """Find the least score whose E-value is at most ``evalue`` with some subject of these lengths.

        Parameters
        ----------
        query_length, shortest, longest : int
            Residues.
        """
        query = self._query(query_length)
        lengths = slice(*np.searchsorted(self._lengths, (shortest, longest + 1)).tolist())
        return _first(lambda score: bool(self._good(score, evalue, query, lengths).any()))

    def _query(self, length: int) -> _QuerySide:
        side = self._queries.get(length)
        if side is None:
            if len(self._queries) >= _QUERY_SIDES:
                self._queries.clear()
            side = self._queries[length] = _QuerySide(self._statistics, length)
        return side  # not looked up again: another thread may have cleared them

    def _good(
        self, score: int, evalue: float, query: _QuerySide, lengths: slice = slice(None)
    ) -> npt.NDArray[np.bool_]:
        y = np.float64(score)
        if score not in self._sides:
            self._sides[score] = self._statistics.finite_size(y, self._lengths)
        room, probability = self._sides[score]
        chance, side = query.at(score, score)
        evalues = self._statistics.combine(
            y, chance, side, (room[lengths], probability[lengths]), self._subjects[lengths]
        )
        return evalues <= evalue


class _QuerySide:
    """The query's part of E-values, by score, tabulated for many scores at a time.

    Threads of a search share it: what is computed is put in place in one go, or another one would find part of it.
    """

    def __init__(self, statistics: KarlinAltschul, length: int) -> None:
        self._statistics, self._length = statistics, np.float64(length)
        self._table = (np.zeros(0), np.zeros(0), np.zeros(0))

    def at(self, score: int | npt.NDArray[np.integer], highest: int) -> tuple[FloatArray, EffectiveLength]:
        """Return the chance of scores at a place, and the room that the query leaves; ``highest`` is that of them."""
        chances, rooms, probabilities = self._table
        if highest >= len(chances):
            scores = np.arange(max(256, 2 * highest), dtype=np.float64)
            chances = self._statistics.expected_per_pair(scores)
            rooms, probabilities = self._statistics.finite_size(scores, self._length)
            self._table = (chances, rooms, probabilities)
        return chances[score], (rooms[score], probabilities[score])


def _first(is_enough: Callable[[int], bool]) -> int:
    """Find the least score from 1 on that is enough, where all above it are, too; 2**24 where none is."""
    enough = 64
    while enough < 1 << 24 and not is_enough(enough):
        enough *= 2
    too_low = 0  # or the answer is 1
    while enough - too_low > 1:
        middle = (too_low + enough) // 2
        too_low, enough = (too_low, middle) if is_enough(middle) else (middle, enough)
    return enough


def published_statistics(scoring: Scoring, mode: Mode) -> KarlinAltschul | None:
    """Return the published statistics of a scoring system, or None where there are none; see `why_no_statistics`."""
    if mode != "local" or not scoring.matrix.published:
        return None
    (a_ungapped, alpha_ungapped), rows = _constants()[scoring.matrix.name]
    for gap_open, gap_extend, lambda_, k, h, a, alpha, sigma in rows:
        if (gap_open, gap_extend) == (scoring.gap_open, scoring.gap_extend):
            return KarlinAltschul(lambda_, k, h, a, alpha, sigma, a_ungapped, alpha_ungapped, scoring.gap_first)
    return None


def why_no_statistics(scoring: Scoring, mode: Mode) -> str:
    """Return why `published_statistics` has no statistics, and which choice has."""
    if mode != "local":
        return f"no E-values: no statistics are published for {mode} alignment; hits are ranked by score"
    if not scoring.matrix.published:
        matrices = ", ".join(sorted(_constants()))
        return f"no E-values: no statistics are published for matrix {scoring.matrix.name}, only for {matrices}"
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
