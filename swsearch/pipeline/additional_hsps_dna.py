"""Additional local alignments of a hit of a DNA query.

They come from all reading frames and are sorted together. `swsearch.pipeline.additional_hsps` finds those of one
frame. Two frames never share a residue pair. Each alignment has the E-value of the best alignment of its frame with
the same score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.blocks import IntArray
from swsearch.inputs import Query
from swsearch.lazy import Lazy
from swsearch.pipeline.additional_hsps import find_further_hsps
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.evalues import nulls_of
from swsearch.pipeline.pairs import LocalPairWork, align_alone
from swsearch.pipeline.ranking import RankedSubjects
from swsearch.pipeline.subjects import SubjectReader
from swsearch.results import Hsp
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.null_model import FittedStatistics, PairNullModels

HspsOf = Callable[[Query, Statistics | PairNullModels | None, Sequence[PairAlignment], int], list[Hsp]]
"""Returns alignments of a query with a subject of some length that are within the E-value."""


@dataclass(frozen=True, eq=False)
class FrameHspFinders:
    """Finder of further alignments of the hits of one DNA query.

    Parameters
    ----------
    criteria : Criteria
        Options and thresholds of the search.
    pairs : LocalPairWork
        Aligns, and makes nulls.
    reader : SubjectReader
        Reads the hits' subjects.
    hsps : callable
        Returns alignments with what statistics say of them.
    queries : sequence of Query
        The frames.
    statistics : sequence of Statistics or None
        Of each frame.
    subjects, lengths, frames : ndarray, shape (n,), int64
        Of the hits: places in the input, residues, and which frame each is best in.
    """

    criteria: Criteria
    pairs: LocalPairWork
    reader: SubjectReader
    hsps: HspsOf
    queries: Sequence[Query]
    statistics: Sequence[Statistics | None]
    subjects: IntArray
    lengths: IntArray
    frames: IntArray
    _least: dict[int, IntArray] = field(default_factory=dict)

    def __call__(self, row: int, alignment: Lazy[PairAlignment]) -> Lazy[list[Hsp]]:
        """Return it for the hit of a row, from its best alignment."""
        return Lazy(lambda: self._find(row, alignment.get()))

    def _find(self, row: int, best: PairAlignment) -> list[Hsp]:
        options = self.criteria.options
        filled = [(place, query) for place, query in enumerate(self.queries) if len(query.codes)]
        found = [(query, hsp) for place, query in filled for hsp in self._of_frame(row, place, best)]

        def order(each: tuple[Query, Hsp]) -> tuple[float, int]:
            evalue = each[1].evalue if options.sort == "evalue" else None
            return evalue or 0.0, -each[1].score

        chosen = sorted(found, key=order)[: options.max_alignments - 1]  # of equal ones the first frame's
        return [hsp for query, hsp in chosen if options.filters.passes(hsp.pair, query)]

    def _of_frame(self, row: int, place: int, best: PairAlignment) -> Iterator[Hsp]:
        """Yield the alignments of a frame, but for the hit's own."""
        query, subject = self.queries[place], np.array([self.subjects[row]], dtype=np.int64)
        least, is_own = int(self._least_of(place)[self.lengths[row]]), place == int(self.frames[row])
        first = best
        if not is_own:
            first = align_alone(self.criteria.recurrence, query, best.subject, best.subject_letters)
            if first.score < least:
                return
        null, nulls = self.statistics[place], None
        if isinstance(null, FittedStatistics):
            some = RankedSubjects(np.array([first.score], dtype=np.int64), subject)
            (nulls,) = nulls_of(self.criteria, self.pairs, self.reader, [(query, null, some)])
        threshold = self.criteria.options.threshold
        if nulls is not None and threshold is not None:
            least = max(least, int(nulls.least_scores(threshold, self.criteria.effective_residues)[0]))
        most = self.criteria.options.max_alignments - 1
        more = [first.like(*each) for each in find_further_hsps(first, most, least)]
        for pairs, of_these in (
            ([] if is_own else [first], nulls),
            (more, None if nulls is None else nulls.further(np.zeros(len(more), dtype=np.int64))),
        ):
            yield from self.hsps(query, null if of_these is None else of_these, pairs, int(self.lengths[row]))

    def _least_of(self, place: int) -> IntArray:
        """Return the least score of an alignment of a frame, by subject length, at least 1."""
        if place not in self._least:
            statistics = self.statistics[place]
            null = statistics if isinstance(statistics, FittedStatistics) else None
            self._least[place] = np.maximum(self.criteria.least_scores(len(self.queries[place].codes), null), 1)
        return self._least[place]
