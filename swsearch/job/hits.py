"""From a selection to hits: with statistics, alignments to be found, and filters that need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
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
from swsearch.statistics.fitted import PairNulls
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

    def hits(self, query: Query, selection: Selection, seen: Mapping[int, ByteArray]) -> list[Hit]:
        """Return the hits of a query, best first: as many as are asked for, of those that pass the filters.

        Of subjects that were seen already the codes as they were scored, each of shape (length,), are given by place
        in the input.
        """
        make, best, nulls = _QueryHits(self, query, selection, seen).make, selection.candidates, selection.nulls
        if not self.options.filters.needs_alignments:
            return make(best, nulls)
        passed: list[Hit] = []
        place = 0
        while place < len(best) and len(passed) < self.options.max_hits:
            together = min(max(FEWEST_TOGETHER, self.options.max_hits - len(passed)), MOST_TOGETHER)
            some = slice(place, place + together)
            hits = make(best[some], None if nulls is None else nulls[some])
            align_together(hits, self.threads)
            passed += [hit for hit in hits if self.options.filters.passes(hit.pair)]
            place += together
        return passed[: self.options.max_hits]


class _QueryHits:
    """Makes the hits of one query."""

    def __init__(self, maker: HitMaker, query: Query, selection: Selection, seen: Mapping[int, ByteArray]) -> None:
        self._maker, self._query, self._statistics, self._seen = maker, query, selection.statistics, seen
        self._least: npt.NDArray[np.int64] | None = None
        if maker.options.max_alignments > 1:
            self._least = maker.least.of(len(query.codes))

    def make(self, best: Ranked, nulls: PairNulls | None) -> list[Hit]:
        """Make hits whose alignments are found when asked for; ``nulls`` are theirs, where they have their own."""
        lengths = self._maker.reader.database.lengths_of(best.subjects)
        scores = best.scores.tolist()
        numbers = self._numbers(self._statistics if nulls is None else nulls, scores, lengths)
        further = self._further(lengths, nulls)
        found = zip(scores, best.subjects.tolist(), lengths.tolist(), numbers, further, strict=True)
        return [self._hit(*each) for each in found]

    def _hit(
        self, score: int, subject: int, subject_length: int, numbers: HitNumbers, further: Further | None
    ) -> Hit:
        query, database = self._query, self._maker.reader.database
        alignment = Later(HitSequences(self._maker.reader, query, subject, self._seen.get(subject)))
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

    def _numbers(
        self, statistics: Statistics | PairNulls | None, scores: Sequence[int], lengths: npt.NDArray[np.integer]
    ) -> list[HitNumbers]:
        least = self._maker.least
        residues = least.effective_residues
        return numbers_of(statistics, least.published, scores, len(self._query.codes), lengths, residues)

    def _further(self, lengths: npt.NDArray[np.integer], nulls: PairNulls | None) -> Sequence[Further | None]:
        """Return what finds further alignments of hits with subjects of these lengths, if they are asked for."""
        if self._least is None:
            return [None] * len(lengths)
        least, threshold = np.maximum(self._least[lengths], 1), self._maker.options.threshold
        if nulls is not None and threshold is not None:
            least = np.maximum(least, nulls.least_scores(threshold, self._maker.least.effective_residues))
        return [self._further_of(place, score, nulls) for place, score in enumerate(least.tolist())]

    def _further_of(self, place: int, least: int, nulls: PairNulls | None) -> Further:
        options, numbers = self._maker.options, partial(self._numbers_of_further, place, nulls)
        return Further(options.max_alignments, least, options.threshold, options.filters, numbers)

    def _numbers_of_further(
        self, place: int, nulls: PairNulls | None, scores: Sequence[int], lengths: npt.NDArray[np.integer]
    ) -> list[HitNumbers]:
        of_these = self._statistics if nulls is None else nulls.repeated(place, len(scores))
        return self._numbers(of_these, scores, lengths)
