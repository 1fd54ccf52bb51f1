"""From a selection to hits: with statistics, alignments to be found, and filters that need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from swsearch.inputs import Query
from swsearch.job.further import Further
from swsearch.job.hit_alignments import HitSequences, SubjectReader, align_together
from swsearch.job.least import LeastScores
from swsearch.job.options import SearchOptions
from swsearch.job.ranking import Ranked
from swsearch.job.selection import Selection
from swsearch.later import Later
from swsearch.results import Hit
from swsearch.statistics.choice import HitNumbers, numbers_of
from swsearch.statistics.karlin_altschul import Statistics

FEWEST_TOGETHER, MOST_TOGETHER = 64, 4096
"""Candidates that are aligned at a time until enough have passed the filters: some for every thread, few in vain,
and no more than memory holds."""


@dataclass(frozen=True)
class HitMaker:
    """Makes hits of selections.

    Parameters
    ----------
    reader : SubjectReader
        Reads the subjects, now and whenever a hit's alignment is asked for.
    options : SearchOptions
        What is asked for.
    least : LeastScores
        Least scores of further alignments.
    threads : int
        Hits that are aligned at a time, where filters take alignments.
    """

    reader: SubjectReader
    options: SearchOptions
    least: LeastScores
    threads: int

    def hits(self, query: Query, selection: Selection) -> list[Hit]:
        """Return the hits of a query, best first: as many as are asked for, of those that pass the filters."""
        make, best = _QueryHits(self, query, selection.statistics).make, selection.candidates
        if not self.options.filters.needs_alignments:
            return make(best)
        passed: list[Hit] = []
        place = 0
        while place < len(best) and len(passed) < self.options.max_hits:
            together = min(max(FEWEST_TOGETHER, self.options.max_hits - len(passed)), MOST_TOGETHER)
            hits = make(best[place : place + together])
            align_together(hits, self.threads)
            passed += [hit for hit in hits if self.options.filters.passes(hit.pair)]
            place += together
        return passed[: self.options.max_hits]


class _QueryHits:
    """Makes the hits of one query."""

    def __init__(self, maker: HitMaker, query: Query, statistics: Statistics | None) -> None:
        self._maker, self._query, self._statistics = maker, query, statistics
        self._least: npt.NDArray[np.int64] | None = None
        if maker.options.max_alignments > 1:
            self._least = maker.least.of_further(len(query.codes), statistics)

    def make(self, best: Ranked) -> list[Hit]:
        """Make hits whose alignments are found when asked for."""
        lengths = self._maker.reader.database.lengths[best.subjects]
        scores = best.scores.tolist()
        numbers = self._numbers(scores, lengths)
        found = zip(scores, best.subjects.tolist(), lengths.tolist(), numbers, strict=True)
        return [self._hit(*each) for each in found]

    def _hit(self, score: int, subject: int, subject_length: int, numbers: HitNumbers) -> Hit:
        query, database = self._query, self._maker.reader.database
        alignment = Later(HitSequences(self._maker.reader, query, subject))
        further = self._further(subject_length)
        return Hit(
            query_id=query.identifier,
            subject_id=database.identifier(subject),
            subject_description=database.description(subject),
            subject_index=subject,
            query_length=len(query.codes),
            subject_length=subject_length,
            score=score,
            _alignment=alignment,
            _further=None if further is None else Later(partial(further.find, alignment, subject_length)),
            **vars(numbers),
        )

    def _numbers(self, scores: Sequence[int], lengths: npt.NDArray[np.integer]) -> list[HitNumbers]:
        least = self._maker.least
        residues = least.effective_residues
        return numbers_of(self._statistics, least.published, scores, len(self._query.codes), lengths, residues)

    def _further(self, subject_length: int) -> Further | None:
        """Return what finds further alignments of a hit with a subject of this length, if they are asked for."""
        if self._least is None:
            return None
        options = self._maker.options
        least = max(1, int(self._least[subject_length]))
        return Further(options.max_alignments, least, options.threshold, options.filters, self._numbers)
