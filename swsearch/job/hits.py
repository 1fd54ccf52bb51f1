"""From the subjects that score best to hits: with statistics, alignments to be found, and filters that take these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swsearch.inputs import Query
from swsearch.job.further import Further
from swsearch.job.hit_alignments import HitSequences, align_together
from swsearch.processors import available_processors
from swsearch.results import Hit
from swsearch.statistics.choice import HitNumbers, numbers_of
from swsearch.statistics.fitted import FittedStatistics
from swsearch.statistics.karlin_altschul import Statistics

if TYPE_CHECKING:
    from swsearch.job.job import SearchJob

FEWEST_TOGETHER, MOST_TOGETHER = 64, 4096
"""Candidates that are aligned at a time until enough have passed the filters: some for each thread, few in vain, and
no more than memory holds."""

Candidate = tuple[int, int]
"""Score and subject."""


class HitMaker:
    """Makes the hits of one query.

    Parameters
    ----------
    job : SearchJob
        Whose options and database they are made with.
    query : Query
        The query.
    statistics : Statistics or None
        What bit scores and E-values come from.
    """

    def __init__(self, job: SearchJob, query: Query, statistics: Statistics | None) -> None:
        self._job, self._query, self._statistics = job, query, statistics

    def hits(self, best: list[Candidate]) -> list[Hit]:
        """Return the hits of candidates, best first: as many as are asked for, of those that pass the filters."""
        options = self._job.options
        if not options.filters.needs_alignments:
            return self._make(best)
        passed: list[Hit] = []
        place = 0
        while place < len(best) and len(passed) < options.max_hits:
            together = min(max(FEWEST_TOGETHER, options.max_hits - len(passed)), MOST_TOGETHER)
            hits = self._make(best[place : place + together])
            align_together(hits, self._job.threads or available_processors())
            passed += [hit for hit in hits if options.filters.passes(hit.pair)]
            place += together
        return passed[: options.max_hits]

    def _make(self, best: list[Candidate]) -> list[Hit]:
        """Make hits whose alignments are found when asked for."""
        query, database = self._query, self._job.database
        lengths = database.lengths[[subject for _, subject in best]] if best else np.zeros(0, dtype=np.int32)
        numbers = self._numbers([score for score, _ in best], lengths)
        return [
            Hit(
                query_id=query.identifier,
                subject_id=database.identifier(subject),
                subject_description=database.description(subject),
                subject_index=subject,
                query_length=len(query.codes),
                subject_length=int(length),
                score=score,
                _align=HitSequences(self._job, query, subject),
                _further=self._further(int(length)),
                **vars(number),
            )
            for (score, subject), length, number in zip(best, lengths, numbers, strict=True)
        ]

    def _numbers(self, scores: Sequence[int], lengths: npt.NDArray[np.integer]) -> list[HitNumbers]:
        residues = self._job.effective_residues
        return numbers_of(self._statistics, self._job.published, scores, len(self._query.codes), lengths, residues)

    @cached_property
    def _least_scores(self) -> npt.NDArray[np.int64]:
        """Smallest score of a further alignment by subject length, or less: its E-value has the last word."""
        job, statistics, threshold = self._job, self._statistics, self._job.options.threshold
        least = job.least_scores(len(self._query.codes))
        if isinstance(statistics, FittedStatistics) and threshold is not None:
            least = np.maximum(least, statistics.least_scores(threshold, len(least) - 1, job.effective_residues))
        return least

    def _further(self, subject_length: int) -> Further | None:
        """Return what finds further alignments of a hit with a subject of this length, if they are asked for."""
        options = self._job.options
        if options.max_alignments == 1:
            return None
        least = max(1, int(self._least_scores[subject_length]))
        return Further(options.max_alignments, least, options.threshold, options.filters, self._numbers)
