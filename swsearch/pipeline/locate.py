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
from swsearch.engines.pools import SequencePool
from swsearch.inputs import Query
from swsearch.pipeline.batch import Batch
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.loci import Locator, Loci, LociAsked, best_loci
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.subjects import headers_of
from swsearch.pipeline.windows import REGION, FrameWindows
from swsearch.results import Headers, SubjectCodes
from swsearch.statistics.fitted import FittedStatistics
from swsearch.translation import Frames
from swsearch.translation.frame import CODON


@dataclass(frozen=True, eq=False)
class LocusSubjects:
    """Loci of some queries, by their places among these; see `swsearch.pipeline.subjects.SubjectReader`.

    Parameters
    ----------
    windows : FrameWindows
        Reads them.
    loci : Loci
        Regions of frames, and the alignment that each was located by.
    """

    windows: FrameWindows
    loci: Loci

    def lengths_of(self, places: IntArray) -> IntArray:
        """See `SubjectReader.lengths_of`: the residues of regions."""
        return self.loci.lengths[places]

    def published_lengths_of(self, places: IntArray) -> IntArray:
        """See `SubjectReader.published_lengths_of`: a third of the nucleotides of the records."""
        return np.maximum(self.loci.dna_lengths[places] // CODON, 1)

    def scored(self, places: IntArray) -> SequencePool:
        """See `SubjectReader.scored`."""
        return self.windows.translated(self.loci.regions.take(places))

    def shown(self, places: IntArray) -> SubjectCodes:
        """See `SubjectReader.shown`."""
        codes, offsets = self.scored(places)
        return SubjectCodes(codes, None, offsets)

    def headers(self, places: IntArray) -> Headers:
        """See `SubjectReader.headers`: those of the records."""
        return headers_of(self.windows.database, self.loci.regions.records[places])

    def identifier(self, place: int) -> str:
        """Return the identifier of a locus's record."""
        return str(self.windows.database.identifier(int(self.loci.regions.records[place])))

    def records(self, places: IntArray) -> tuple[IntArray, Frames | None]:
        """See `SubjectReader.records`."""
        some = self.loci.take(places)
        return some.regions.records, Frames(some.regions.numbers, some.regions.begins, some.dna_lengths)

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """See `SubjectReader.alignments_of`."""
        return self.loci.table.take(places)


def locate_loci(
    batches: Iterable[Batch], windows: FrameWindows, criteria: Criteria, threads: int
) -> Generator[Batch]:
    """Locate what windows hold; batches that were located in an earlier run pass."""
    finder = LocusFinder(windows, criteria, threads)
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
    threads : int
        How many to use.
    """

    windows: FrameWindows
    criteria: Criteria
    threads: int

    def locate(self, batch: Batch) -> Batch:
        """Return a batch whose selections are of loci: all that may be hits."""
        options = self.criteria.options
        locator = Locator(self.criteria.recurrence, self.windows, self.threads, options.max_candidates)
        whose = list(zip(batch.queries, batch.selections, strict=True))
        located = locator.located([self._asked(*each) for each in whose])
        each_loci = [loci.take(self._good(*each, loci)) for each, loci in zip(whose, located, strict=True)]
        found: list[Selection] = []
        first = 0
        for (query, selection), loci in zip(whose, each_loci, strict=True):
            keys = None if options.sort == "score" else self._evalues(query, selection, loci)
            best = best_loci(loci.table.score, keys, first, options.max_candidates)
            first += len(loci)
            found.append(replace(selection, candidates=best, limit=options.max_candidates))
        return batch.having(found, LocusSubjects(self.windows, Loci.concatenate([Loci.none(), *each_loci])))

    def _lengths(self, dna_lengths: IntArray, regions: IntArray) -> IntArray:
        """Return the subject lengths that the statistics in force use, shape (n,)."""
        return regions if self.criteria.options.is_fitted else np.maximum(dna_lengths // CODON, 1)

    def _evalues(self, query: Query, selection: Selection, loci: Loci) -> FloatArray | None:
        lengths, scores = self._lengths(loci.dna_lengths, loci.lengths), loci.table.score
        return self.criteria.thresholds.evalues(len(query.codes), _null_of(selection), scores, lengths)

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

    def _good(self, query: Query, selection: Selection, loci: Loci) -> IntArray:
        """Return the rows of loci that may be hits; filters by alignment apply here, where alignments are known."""
        evalues, options = self._evalues(query, selection, loci), self.criteria.options
        good = options.filters.passing(loci.table, query, loci.dna_lengths // CODON)
        if evalues is not None and options.threshold is not None:
            good &= evalues <= options.threshold
        return np.flatnonzero(good)


def _null_of(selection: Selection) -> FittedStatistics | None:
    return selection.statistics if isinstance(selection.statistics, FittedStatistics) else None
