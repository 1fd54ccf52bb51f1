"""The least score of a hit by subject length: the E-value threshold and ``min_score``, as engines can compare."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.ranking import Rating
from swsearch.statistics.fitted import FittedStatistics
from swsearch.statistics.karlin_altschul import KarlinAltschul, LeastByLength, statistics_for

if TYPE_CHECKING:
    from swsearch.db import Database


class LeastScores:
    """Tables of the least score of a hit with a database's subjects.

    Parameters
    ----------
    options : SearchOptions
        What is asked for.
    database : Database
        Open; its subjects' lengths are read once.
    """

    def __init__(self, options: SearchOptions, database: Database) -> None:
        self.options = options
        self.effective_residues: int = options.dbsize or database.n_residues
        self._database = database

    @cached_property
    def published(self) -> KarlinAltschul | None:
        """Published statistics, which are reported beside fitted E-values where they exist."""
        options = self.options
        if not options.is_fitted or options.frame_shift is not None:
            return None  # constants are of alignments without shifts
        return statistics_for(options.scoring, options.mode)

    @property
    def of_any(self) -> int:
        """The least score of a hit, whatever E-values say.

        A global alignment is a hit with any score. In the other modes nothing aligned scores 0, and is no hit.
        """
        return int(np.iinfo(np.int32).min) if self.options.mode == "global" else 1

    def rating(self, query_length: int, null: FittedStatistics | None = None) -> Rating | None:
        """Return what candidates of a query are put in order by: E-values, published or by the query's null."""
        if self.options.sort == "score" or not query_length:
            return None
        if null is not None:
            return self._rating_by(null)
        by_length = self._least_by_length
        if by_length is None:
            return None
        return Rating(
            lambda scores, lengths: by_length.evalues(scores, query_length, lengths),
            lambda evalue, shortest, longest: by_length.lowest(evalue, query_length, shortest, longest),
        )

    def _rating_by(self, null: FittedStatistics) -> Rating:
        residues = self.effective_residues

        def lowest(evalue: float, shortest: int, longest: int) -> int:
            least = null.least_scores(evalue, longest, residues)[max(shortest, 1) :]
            return int(max(least.min(), np.iinfo(np.int32).min))

        return Rating(lambda scores, lengths: null.evalues(scores, null.query_length, lengths, residues), lowest)

    def of(self, query_length: int, null: FittedStatistics | None = None) -> IntArray:
        """Tabulate the least score of a hit, exactly where statistics are published; of a candidate, given a null.

        Returns
        -------
        ndarray, shape (longest subject + 1,), int64
            By subject length, matrix units.
        """
        lengths, statistics, threshold = self._lengths, self.options.published, self.options.threshold
        residues = self.effective_residues
        longest = int(lengths[-1]) if len(lengths) else 0
        least = np.full(longest + 1, self.of_any, dtype=np.int64)
        if statistics is not None and threshold is not None and query_length:
            assert self._least_by_length is not None
            least[lengths] = self._least_by_length.of(threshold, query_length)
        if null is not None and threshold is not None:
            np.maximum(least, null.least_scores(threshold, longest, residues), out=least)
        if self.options.filters.min_score is not None:
            np.maximum(least, self.options.filters.min_score, out=least)
        return least

    def bound(self, query_length: int, null: FittedStatistics | None = None) -> IntArray | None:
        """Return what `of` does, or None where every subject is a hit: all global alignments, if nothing is asked.

        Returns
        -------
        ndarray, shape (longest subject + 1,), int64, or None
            By subject length, matrix units.
        """
        options = self.options
        asked = options.published is not None or options.filters.min_score is not None or null is not None
        return self.of(query_length, null) if asked or options.mode != "global" else None

    @cached_property
    def _lengths(self) -> npt.NDArray[np.int32]:
        """Every subject length that occurs, but 0."""
        lengths: npt.NDArray[np.int32] = self._database.length_runs.values[::-1]
        return lengths[lengths > 0]

    @cached_property
    def _least_by_length(self) -> LeastByLength | None:
        statistics = self.options.published
        return LeastByLength(statistics, self._lengths, self.effective_residues) if statistics else None
