"""Which subjects are a query's best: kept while chunks go by, or picked from all scores at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from swsearch.blocks import Chunk
from swsearch.engines.base import Candidates, ScoreArray
from swsearch.statistics.fitted import FittedStatistics


class TopHits:
    """The best subjects of one query, kept exactly while chunks go by.

    Parameters
    ----------
    by_length : ndarray, shape (longest subject + 1,), int64
        Smallest score of a hit by subject length.
    max_hits : int
        Most hits kept.
    allowed : ndarray, shape (n_subjects,), bool, optional
        Which subjects may be hits, in input order; by default all.
    """

    def __init__(
        self, by_length: npt.NDArray[np.int64], max_hits: int, allowed: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self.by_length, self._max_hits, self._allowed = by_length, max_hits, allowed
        self._scores: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._subjects: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def least(self) -> int | None:
        """Score below which nothing can become one of the best any more; None while everything can."""
        return int(self._scores[-1]) if len(self._scores) == self._max_hits else None

    def add(self, chunk: Chunk, found: Candidates) -> None:
        """Take in the hits of a chunk."""
        scores, subjects = found.scores, chunk.subjects[found.places]
        if self._allowed is not None:
            allowed = self._allowed[subjects]
            scores, subjects = scores[allowed], subjects[allowed]
        self._scores = np.concatenate((self._scores, scores))
        self._subjects = np.concatenate((self._subjects, subjects))
        best = np.lexsort((self._subjects, -self._scores))[: self._max_hits]
        self._scores, self._subjects = self._scores[best], self._subjects[best]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield (score, subject), best first."""
        return iter(zip(self._scores.tolist(), self._subjects.tolist(), strict=True))


def best_by_fit(
    scores: ScoreArray,
    lengths: npt.NDArray[np.integer],
    statistics: FittedStatistics,
    evalue: float,
    database_residues: int,
) -> npt.NDArray[np.int64]:
    """Return the subjects whose E-value is at most ``evalue``, ascending.

    Parameters
    ----------
    scores : ndarray, shape (n_subjects,), int32
        A query's, in input order.
    lengths : ndarray, shape (n_subjects,), integer
        Residues of each subject.
    statistics : FittedStatistics
        Fitted to these scores.
    evalue : float
        The threshold.
    database_residues : int
        As for `FittedStatistics.evalues`.
    """
    # few reach a score that may do, and only theirs are looked at twice
    least = statistics.least_scores(evalue, int(lengths.max(initial=0)), database_residues)
    likely = np.flatnonzero(scores >= least[lengths])
    evalues = statistics.evalues(scores[likely], statistics.query_length, lengths[likely], database_residues)
    return likely[evalues <= evalue]


def best_of(scores: ScoreArray, among: npt.NDArray[np.int64], max_hits: int) -> list[tuple[int, int]]:
    """Return (score, subject) of the best ``max_hits`` subjects among some, by score, then by place in the input."""
    values = scores[among]
    if len(values) > max_hits:
        good = values >= np.partition(values, -max_hits)[-max_hits]
        among, values = among[good], values[good]
    order = np.lexsort((among, -values.astype(np.int64)))[:max_hits]
    return list(zip(values[order].tolist(), among[order].tolist(), strict=True))
