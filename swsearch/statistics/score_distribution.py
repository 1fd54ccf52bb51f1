"""Distribution of the scores of a whole database with one query.

Only a search that scores every subject knows it. It shows whether E-values can be trusted: the counts follow the
expected curve up to the first hits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray
from swsearch.statistics import portable_math
from swsearch.statistics.distributions import Lengths
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics
from swsearch.statistics.null_model import FittedStatistics

AtLeast = Callable[[IntArray], FloatArray]
"""From scores to the numbers of subjects that are expected to reach each, both of shape (n,)."""

SCORES_PER_BATCH = 16
"""Scores that expectations are computed of at a time: with thousands of lengths, numbers that the cache holds."""

MAX_BINS = 160
"""Bins up to where the curve ends; scores that spread wider are binned by more than one unit."""

CURVE_END = 0.01
"""The curve ends where fewer subjects than this are expected to score as much or more."""

STRAY_SHARE = 0.001
"""Share of the subjects on either side that may lie outside the bins: in global mode a few very long subjects, which
score -30,000, would leave no room for the others."""

REACH = 4.0
"""Bins begin at the lowest score, but at most this many times as far below the median as the 5th percentile is."""


FEW_KEPT, SPREAD_WIDE = 2048, 8
"""Different scores of chunks that are kept before equal ones are put together; and scores are sorted where there are
so many times fewer of them than numbers from the least to the greatest."""


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Number of subjects by score with one query. Counts of the parts of a database can be added.

    Parameters
    ----------
    scores : ndarray, shape (n,), int64
        The different scores that occur, ascending, matrix units.
    counts : ndarray, shape (n,), int64
        Subjects of each score.
    """

    scores: IntArray
    counts: IntArray

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        return _add_counts([self, other])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        return np.array_equal(self.scores, other.scores) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]


def count_scores(scores: npt.ArrayLike) -> ScoreCounts:
    """Count a query's scores.

    Parameters
    ----------
    scores : array_like, shape (n_subjects,), integer
        Exact scores with every subject, matrix units.
    """
    tally = ScoreCounter()
    tally.add(np.asarray(scores))
    return tally.counts()


class ScoreCounter:
    """Counts a query's scores while they come, a chunk at a time, and keeps none of them."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all counts."""
        self._parts: list[ScoreCounts] = []
        self._kept, self._most = 0, FEW_KEPT

    def add(self, scores: npt.NDArray[np.integer]) -> None:
        """Add scores, shape (n,), integer, in any order, to the counts."""
        if not len(scores):
            return
        values_given = np.asarray(scores, dtype=np.int64)
        lowest, highest = int(values_given.min()), int(values_given.max())
        if highest - lowest < SPREAD_WIDE * len(values_given) + FEW_KEPT:
            counted = np.bincount(values_given - lowest)  # ten times as fast as sorting them
            places = np.flatnonzero(counted)
            self._parts.append(ScoreCounts(lowest + places, counted[places].astype(np.int64)))
        else:  # as of a few very long subjects in global mode
            values, counts = np.unique(values_given, return_counts=True)
            self._parts.append(ScoreCounts(values, counts.astype(np.int64)))
        self._kept += len(self._parts[-1].scores)
        if self._kept > self._most:
            self._kept = len(self.counts().scores)
            self._most = FEW_KEPT + 2 * self._kept

    def counts(self) -> ScoreCounts:
        """Return how many scores of each kind there were so far."""
        if len(self._parts) != 1:
            self._parts = [_add_counts(self._parts)]
        return self._parts[0]


def _add_counts(parts: Sequence[ScoreCounts]) -> ScoreCounts:
    """Add any number of counts."""
    nothing = np.zeros(0, dtype=np.int64)
    scores, place = np.unique(np.concatenate([nothing, *(each.scores for each in parts)]), return_inverse=True)
    counts = np.zeros(len(scores), dtype=np.int64)
    np.add.at(counts, place, np.concatenate([nothing, *(each.counts for each in parts)]))
    return ScoreCounts(scores, counts)


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """The exact scores of all subjects with one query, counted.

    Parameters
    ----------
    scores : ndarray, shape (n,), int64
        The different scores that occur, ascending, matrix units.
    counts : ndarray, shape (n,), int64
        Subjects of each score.
    edges : ndarray, shape (n_bins + 1,), int64
        Lower ends of bins of equal width for a picture; the last is the end of the last bin. Scores beyond either end
        occur too.
    expected : ndarray, shape (n_bins,), float64, or None
        Subjects that are expected in each bin by chance; None where there are no statistics.
    """

    scores: IntArray
    counts: IntArray
    edges: IntArray
    expected: FloatArray | None

    @property
    def n_subjects(self) -> int:
        """Subjects in all."""
        return int(self.counts.sum())

    @property
    def width(self) -> int:
        """Matrix units per bin."""
        return int(self.edges[1] - self.edges[0])

    @property
    def n_below(self) -> int:
        """Subjects that score less than the first bin."""
        return int(self.counts[self.scores < self.edges[0]].sum())

    def histogram(self) -> tuple[IntArray, IntArray]:
        """Count the subjects by bin, going on in steps of the same width beyond the last.

        Returns
        -------
        starts, counts : ndarray, shape (n,), int64
            Bins that hold a subject: lower end, ascending, and number of subjects.
        """
        inside = self.scores >= self.edges[0]
        place = (self.scores[inside] - self.edges[0]) // self.width
        places, which = np.unique(place, return_inverse=True)
        counts = np.zeros(len(places), dtype=np.int64)
        np.add.at(counts, which, self.counts[inside])
        return self.edges[0] + places * self.width, counts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreDistribution):
            return NotImplemented
        mine, theirs = ((each.scores, each.counts, each.edges, each.expected) for each in (self, other))
        return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]


def make_distribution(
    counted: ScoreCounts, query_length: int, lengths: Lengths, statistics: Statistics | None, database_residues: int
) -> ScoreDistribution | None:
    """Compare a query's scores with what is expected by chance.

    Parameters
    ----------
    query_length : int
        Residues.
    database_residues : int
        Of the whole database as it is, whatever ``dbsize`` says: its subjects are what is counted.

    Returns
    -------
    ScoreDistribution or None
        None for a database without subjects.
    """
    values, counts = counted.scores, counted.counts
    if not len(values):
        return None
    at_least: AtLeast | None = None
    if statistics is not None and query_length and lengths.n:
        at_least = _expectation(statistics, query_length, lengths, database_residues)
    edges = _edges(values, counts, at_least)
    expected = None
    if at_least is not None:
        above = np.concatenate(
            [at_least(edges[k : k + SCORES_PER_BATCH]) for k in range(0, len(edges), SCORES_PER_BATCH)]
        )
        # far out differences of rounded numbers may fall below nothing
        expected = np.maximum(above[:-1] - above[1:], 0.0)
    return ScoreDistribution(values, counts, edges, expected)


def _expectation(statistics: Statistics, query_length: int, lengths: Lengths, residues: int) -> AtLeast:
    """Return the function of a score that sums, over all subjects, the probability of reaching it by chance."""
    n = lengths.distinct
    if isinstance(statistics, KarlinAltschul):
        real, once = n.astype(np.float64), np.ones(len(n))

        def fit_pairs(scores: IntArray) -> FloatArray:
            y = scores.astype(np.float64)[:, None]
            sides = statistics.finite_size(y, np.float64(query_length)), statistics.finite_size(y, real)
            # the E-value of one pair is the mean of a Poisson distribution: at low scores far above 1
            mean = statistics.combine(y, statistics.expected_per_pair(y), *sides, once)
            numbers: FloatArray = (lengths.counts * (0.0 - portable_math.expm1(-mean))).sum(axis=1)
            return numbers

        return fit_pairs

    assert isinstance(statistics, FittedStatistics)
    moments, subjects = statistics.moments(n), statistics.fit.subjects(residues)

    def of_fit(scores: IntArray) -> FloatArray:
        # here an E-value is the number of subjects with residues times the probability for one
        evalues = subjects * statistics.survival(scores[:, None], *moments)
        numbers: FloatArray = (lengths.counts * evalues).sum(axis=1) / lengths.n
        return numbers

    return of_fit


def _edges(scores: IntArray, counts: IntArray, at_least: AtLeast | None) -> IntArray:
    """Choose bins of equal width over the range of chance scores."""
    ranks = np.cumsum(counts)

    def quantile(share: float) -> int:
        return int(scores[np.searchsorted(ranks, share * ranks[-1])])

    median = quantile(0.5)
    spread = max(median - quantile(0.05), 1)
    low = max(int(scores[0]), min(quantile(STRAY_SHARE), median - int(REACH * spread)))
    if at_least is None:
        high = min(int(scores[-1]), median + int(4 * REACH * spread)) + 1
    else:

        def is_before_the_end(score: int) -> bool:
            return float(at_least(np.array([score], dtype=np.int64))[0]) > CURVE_END

        step = 1
        while is_before_the_end(median + step) and step < 1 << 24:
            step *= 2
        below, above = step // 2, step
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if is_before_the_end(median + middle) else (below, middle)
        high = median + above
    high = max(high, low + 1)
    width = -(-(high - low) // MAX_BINS)
    n_bins = -(-(high - low) // width)
    return low + width * np.arange(n_bins + 1, dtype=np.int64)
