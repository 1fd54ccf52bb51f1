"""The order of hits, and what keeps a query's best subjects by it.

The order is score descending, then the subject's place in the input ascending. No two subjects are equal in it, so
that the best N of a database are the best N of the best N of its parts, whatever the parts and their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray

if TYPE_CHECKING:
    from swsearch.blocks import Chunk
    from swsearch.engines.base import Candidates, ScoreArray
    from swsearch.statistics.fitted import FittedStatistics


@dataclass(frozen=True, eq=False)
class Ranked:
    """Subjects of one query, the best first.

    Parameters
    ----------
    scores : ndarray, shape (n,), int64
        Exact scores, matrix units.
    subjects : ndarray, shape (n,), int64
        Each subject's place in the input.
    """

    scores: IntArray
    subjects: IntArray

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, part: slice) -> Ranked:
        return Ranked(self.scores[part], self.subjects[part])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranked):
            return NotImplemented
        return np.array_equal(self.scores, other.scores) and np.array_equal(self.subjects, other.subjects)

    __hash__ = None  # type: ignore[assignment]


def rank(scores: npt.ArrayLike, subjects: npt.ArrayLike, limit: int) -> Ranked:
    """Return the best of some subjects, at most ``limit``.

    Parameters
    ----------
    scores : array_like, shape (n,), integer
        Matrix units.
    subjects : array_like, shape (n,), integer
        Places in the input, each once.
    limit : int
        How many to keep.
    """
    values, places = np.asarray(scores, dtype=np.int64), np.asarray(subjects, dtype=np.int64)
    if len(values) > limit:  # few of many are sorted
        good = values >= np.partition(values, -limit)[-limit]
        values, places = values[good], places[good]
    order = np.lexsort((places, -values))[:limit]
    return Ranked(values[order], places[order])


class TopHits:
    """The best subjects of one query, kept exactly while chunks go by.

    Parameters
    ----------
    by_length : ndarray, shape (longest subject + 1,), int64
        Least score of a hit by subject length, matrix units.
    limit : int
        Most subjects kept.
    allowed : ndarray, shape (n_subjects,), bool, optional
        Which subjects may be hits, in input order; by default all.
    """

    def __init__(self, by_length: IntArray, limit: int, allowed: npt.NDArray[np.bool_] | None = None) -> None:
        self.by_length, self._limit, self._allowed = by_length, limit, allowed
        self.ranked = rank([], [], limit)

    @property
    def least(self) -> int | None:
        """Score below which nothing can become one of the best any more; None while everything can."""
        return int(self.ranked.scores[-1]) if len(self.ranked) == self._limit else None

    def add(self, chunk: Chunk, found: Candidates) -> None:
        """Take in the hits of a chunk."""
        scores, subjects = found.scores, chunk.subjects[found.places]
        if self._allowed is not None:
            allowed = self._allowed[subjects]
            scores, subjects = scores[allowed], subjects[allowed]
        kept = self.ranked
        together = np.concatenate((kept.scores, scores)), np.concatenate((kept.subjects, subjects))
        self.ranked = rank(*together, self._limit)


def best_by_fit(
    scores: ScoreArray,
    lengths: npt.NDArray[np.integer],
    statistics: FittedStatistics,
    evalue: float,
    database_residues: int,
) -> IntArray:
    """Return the subjects whose E-value is at most ``evalue``, ascending.

    Parameters
    ----------
    scores : ndarray, shape (n_subjects,), int32
        A query's, in input order, matrix units.
    lengths : ndarray, shape (n_subjects,), integer
        Residues of each subject.
    statistics : FittedStatistics
        Fitted to these scores.
    evalue : float
        The threshold.
    database_residues : int
        As for `FittedStatistics.evalues`.

    Returns
    -------
    ndarray, shape (n,), int64
        Places in the input.
    """
    # only the few scores that may be good enough get an E-value
    least = statistics.least_scores(evalue, int(lengths.max(initial=0)), database_residues)
    likely = np.flatnonzero(scores >= least[lengths])
    evalues = statistics.evalues(scores[likely], statistics.query_length, lengths[likely], database_residues)
    return likely[evalues <= evalue]
