"""The stage that locates hits in windows of DNA: each is an alignment, and a subject of its own from there on.

Selections of windows come in; selections of loci go out, with the `LocusSubjects` that their places are of. The
stages after it are those of proteins.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace

import numpy as np

from swsearch.alignments import AlignmentTable
from swsearch.blocks import FloatArray, IntArray
from swsearch.db.dna_segment import FramePieces
from swsearch.inputs import Query
from swsearch.pipeline.batch import Batch
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.loci import Locator, Loci, LociAsked
from swsearch.pipeline.ranking import Ranked, in_order
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.windows import REGION, FramePieceReader, FrameWindows
from swsearch.statistics.fitted import FittedStatistics
from swsearch.translation.frame import CODON


class LocusSubjects(FramePieceReader):
    """Loci of some queries, by their places among these; see `swsearch.pipeline.subjects.SubjectReader`.

    Parameters
    ----------
    windows : FrameWindows
        Reads them.
    loci : Loci
        Regions of frames, and the alignment that each was located by.
    """

    def __init__(self, windows: FrameWindows, loci: Loci) -> None:
        super().__init__(windows.database, windows.frames)
        self.loci, self.dna_lengths = loci, windows.dna_lengths

    def pieces_of(self, places: IntArray) -> FramePieces:
        """Return the regions of loci, shape (n,)."""
        return self.loci.regions.take(places)

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """See `SubjectReader.alignments_of`."""
        return self.loci.table.take(places)


def locate_loci(
    batches: Iterable[Batch], windows: FrameWindows, criteria: Criteria, threads: int
) -> Generator[Batch]:
    """Locate what windows hold; batches that were located in an earlier run pass."""
    limit = criteria.options.max_candidates
    finder = LocusFinder(windows, criteria, Locator(criteria.recurrence, windows, threads, limit))
    for batch in batches:
        yield finder.locate(batch) if batch.subjects is windows else batch


@dataclass(frozen=True, eq=False)
class LocusFinder:
    """Locates the loci of queries in the windows that were selected for them.

    Parameters
    ----------
    windows : FrameWindows
        What was scored.
    criteria : Criteria
        What is looked for.
    locator : Locator
        Aligns.
    """

    windows: FrameWindows
    criteria: Criteria
    locator: Locator

    def locate(self, batch: Batch) -> Batch:
        """Return a batch whose selections are of loci: all that may be hits."""
        located = self.locator.located([self._asked(state.query, state.found) for state in batch.states])
        found: list[Selection] = []
        kept = [Loci.none()]
        first = 0
        for state, loci in zip(batch.states, located, strict=True):
            good, evalues = self._good(state.query, state.found, loci)
            keys = None if evalues is None or self.criteria.options.sort == "score" else evalues[good]
            kept.append(loci.take(good))
            ranked = Ranked(kept[-1].table.score, np.arange(first, first + len(good)), keys)
            first += len(good)
            best = ranked[in_order(ranked)[: self.locator.limit]]
            found.append(replace(state.found, candidates=best, limit=self.locator.limit))
        return batch.having(found, LocusSubjects(self.windows, Loci.concatenate(kept)))

    def _lengths(self, dna_lengths: IntArray, regions: IntArray) -> IntArray:
        """Return the subject lengths that the statistics in force use, shape (n,)."""
        return regions if self.criteria.options.is_fitted else np.maximum(dna_lengths // CODON, 1)

    def _asked(self, query: Query, selection: Selection) -> LociAsked:
        """Say what is asked of the windows of a query."""
        windows, null, n = selection.candidates, _null_of(selection), len(query.codes)
        thresholds, pieces = self.criteria.thresholds, self.windows.pieces_of(windows.subjects)
        dna_lengths = self.windows.dna_lengths[pieces.records]
        in_frame = np.maximum(dna_lengths - (np.abs(pieces.numbers) - 1), 0) // CODON
        lengths = self._lengths(dna_lengths, np.minimum(in_frame, REGION))
        keys = thresholds.evalues(n, null, windows.scores, lengths)
        if keys is None or self.criteria.options.sort == "score":
            keys = -windows.scores.astype(np.float64)
        least = np.maximum(thresholds.of(n, null)[lengths], thresholds.of_any)
        return LociAsked(query, windows, keys, least)

    def _good(self, query: Query, selection: Selection, loci: Loci) -> tuple[IntArray, FloatArray | None]:
        """Return the rows of loci that may be hits, and all E-values; filters by alignment apply here."""
        options, thresholds, regions = self.criteria.options, self.criteria.thresholds, loci.regions
        lengths = self._lengths(loci.dna_lengths, regions.ends - regions.begins)
        evalues = thresholds.evalues(len(query.codes), _null_of(selection), loci.table.score, lengths)
        good = options.filters.passing(loci.table, query, loci.dna_lengths // CODON)
        if evalues is not None and options.threshold is not None:
            good &= evalues <= options.threshold
        return np.flatnonzero(good), evalues


def _null_of(selection: Selection) -> FittedStatistics | None:
    return selection.statistics if isinstance(selection.statistics, FittedStatistics) else None
