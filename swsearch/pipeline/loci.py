"""Loci: the alignments of queries with the reading frames of DNA subjects.

A search of a DNA database scores windows of its reading frames (`swsearch.db.frame_windows`). This stage finds all
alignments in the best windows. Each becomes a subject of its own: a region of its frame with `REGION` residues, or
the whole frame where that is shorter. So hits, their order and their E-values do not depend on how frames are cut.
Batches leave this stage with `LocusSubjects`; later stages treat them as proteins.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, Chunk, FloatArray, IntArray, block_columns, interleave
from swsearch.db.arrays import offsets_of, ranges
from swsearch.db.dna_segment import FramePieces
from swsearch.inputs import Query
from swsearch.pipeline.batch import Batch
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.null_models import scores_with_copies, split_by_residues
from swsearch.pipeline.pairs import align_pairs
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects, best_first
from swsearch.pipeline.windows import REGION, FramePieceReader, FrameWindows
from swsearch.recurrence import Recurrence
from swsearch.results import SubjectCodes
from swsearch.statistics.null_model import FittedStatistics
from swsearch.translation.genetic_codes import CODON, FRAME_NUMBERS

_NONE: IntArray = np.empty(0, dtype=np.int64)

WINDOWS_OF_LOCUS = 3
"""Windows that an alignment can meet at most: it spans no more than a margin, and cores are longer."""

SHORT_CORES = 2
"""Margins in the cores of the windows by which those that were selected are narrowed down."""

RESIDUES_PER_BATCH = 16 << 20
"""Residues of windows that are scored or aligned at a time."""


@dataclass(frozen=True, eq=False)
class Loci:
    """Alignments of queries with frames, n of them, each with its region as a subject.

    Parameters
    ----------
    regions : FramePieces
        The regions.
    table : AlignmentTable
        The alignments; subject residues are counted from the beginning of the region.
    dna_lengths : ndarray, shape (n,), int64
        Nucleotides of the records.
    """

    regions: FramePieces
    table: AlignmentTable
    dna_lengths: IntArray

    def __len__(self) -> int:
        return len(self.regions)

    @classmethod
    def from_windows(cls, table: AlignmentTable, pieces: FramePieces, dna_lengths: IntArray) -> Loci:
        """Return alignments with pieces of frames as ones with regions; lengths, shape (n,), are of all records."""
        begins, ends = table.subject_start + pieces.begins, table.subject_end + pieces.begins
        lengths = dna_lengths[pieces.records].astype(np.int64)
        in_frame = np.maximum(lengths - (np.abs(pieces.numbers) - 1), 0) // CODON
        spare = np.maximum(REGION - (ends - begins), 0)
        first = np.minimum(np.maximum(begins - spare // 2, 0), np.maximum(in_frame - REGION, 0))
        first = np.minimum(first, begins)
        last = np.minimum(np.maximum(first + REGION, ends), in_frame)
        moved = replace(table, subject_start=begins - first, subject_end=ends - first)
        return cls(replace(pieces, begins=first, ends=last), moved, lengths)

    @classmethod
    def concatenate(cls, parts: Sequence[Loci]) -> Loci:
        """Join the rows of several tables."""
        return cls(
            _concatenate([each.regions for each in parts]),
            AlignmentTable.concatenate([each.table for each in parts]),
            np.concatenate([_NONE, *(each.dna_lengths for each in parts)]),
        )

    def take(self, rows: IntArray) -> Loci:
        """Return some, by their rows, shape (m,)."""
        return Loci(self.regions.take(rows), self.table.take(rows), self.dna_lengths[rows])

    @property
    def place_keys(self) -> tuple[IntArray, ...]:
        """Sort keys of the places of loci, the least significant first, each of shape (n,), int64."""
        frames = np.argsort(np.array(FRAME_NUMBERS))  # by number, ascending
        order = frames[np.searchsorted(np.sort(FRAME_NUMBERS), self.regions.numbers)]
        begins = self.regions.begins + self.table.subject_start
        return self.table.query_start, begins, order, self.regions.records


@dataclass(frozen=True)
class LociRequest:
    """A query, and the windows that were selected for it.

    Parameters
    ----------
    query : Query
        The query.
    windows : RankedSubjects
        Windows with their best scores.
    keys : ndarray, shape (n,), float64
        What loci are put in order by, of the best score of each window: small is good.
    min_scores : ndarray, shape (n,), int64
        Least score of a hit in each window, matrix units; the same in all of a record.
    """

    query: Query
    windows: RankedSubjects
    keys: FloatArray
    min_scores: IntArray

    def best(self, limit: int) -> LociRequest:
        """Drop the windows that cannot hold one of the best ``limit`` loci.

        What is found in a window is a locus or meets one that is as good; and one meets three windows at most.
        """
        max_windows = WINDOWS_OF_LOCUS * limit
        if len(self.keys) <= max_windows:
            return self
        good = np.flatnonzero(self.keys <= np.partition(self.keys, max_windows - 1)[max_windows - 1])
        return LociRequest(self.query, self.windows[good], self.keys[good], self.min_scores[good])


@dataclass(frozen=True, eq=False)
class _Stretches:
    """Stretches of frames in which a query is to be aligned, with the least score of a hit in each, shape (n,)."""

    pieces: FramePieces
    min_scores: IntArray

    def take(self, rows: IntArray) -> _Stretches:
        return _Stretches(self.pieces.take(rows), self.min_scores[rows])

    def merge(self, cores: IntArray) -> _Stretches:
        """Return those whose cores touch as one; they come in the order of places, and ``cores`` end theirs, (n,)."""
        each = self.pieces
        same = (each.records[1:] == each.records[:-1]) & (each.numbers[1:] == each.numbers[:-1])
        first = np.append(True, ~(same & (each.begins[1:] == cores[:-1])))[: len(each)]
        begins = np.flatnonzero(first)
        last = np.append(begins[1:], len(each))[: len(begins)] - 1
        pieces = FramePieces(each.records[begins], each.numbers[begins], each.begins[begins], each.ends[last])
        return _Stretches(pieces, self.min_scores[begins])

    def cut(self, core: int, margin: int) -> tuple[_Stretches, IntArray]:
        """Return windows of stretches, the cores of which are shorter, and where these end."""
        each = self.pieces
        counts = np.maximum(-(-np.maximum(each.ends - each.begins - margin, 1) // core), 1)
        of = np.repeat(np.arange(len(each)), counts)
        begins = each.begins[of] + ranges(np.zeros(len(each), dtype=np.int64), counts) * core
        ends = np.minimum(begins + core + margin, each.ends[of])
        pieces = FramePieces(each.records[of], each.numbers[of], begins, ends)
        return _Stretches(pieces, self.min_scores[of]), begins + core


@dataclass(frozen=True)
class Locator:
    """Finds the loci of queries in the windows that were selected for them.

    In each frame the best alignment is a locus; the next are the best of what is left of it and of what is right of
    it, and so on: no nucleotide belongs to two loci of a frame. An alignment that is a hit lies in the window in
    whose core it begins, which is therefore one of those that were selected; so those that touch are looked at
    together, and what is found does not depend on how frames were cut. First windows are narrowed down by scoring
    shorter ones.

    Parameters
    ----------
    windows : FrameWindows
        The windows that were scored.
    criteria : Criteria
        Options and thresholds of the search.
    threads : int
        Maximum number of threads.
    """

    windows: FrameWindows
    criteria: Criteria
    threads: int

    @property
    def recurrence(self) -> Recurrence:
        """Scoring and mode."""
        return self.criteria.recurrence

    @property
    def limit(self) -> int:
        """Maximum number of loci of a query."""
        return self.criteria.options.max_candidates

    def locate(self, batch: Batch) -> Batch:
        """Return a batch whose selections are of loci: all that may be hits."""
        located = self.find_loci([self._make_request(state.query, state.candidates) for state in batch.states])
        selections: list[QueryCandidates] = []
        loci_kept: list[Loci] = []
        first = 0
        for state, loci in zip(batch.states, located, strict=True):
            good, evalues = self._select_hits(state.query, state.candidates, loci)
            keys = None if evalues is None or self.criteria.options.sort == "score" else evalues[good]
            loci_kept.append(loci.take(good))
            ranked = RankedSubjects(loci_kept[-1].table.score, np.arange(first, first + len(good)), keys)
            first += len(good)
            best = ranked[best_first(ranked)[: self.limit]]
            selections.append(replace(state.candidates, candidates=best, limit=self.limit))
        return batch.with_selections(selections, LocusSubjects(self.windows, Loci.concatenate(loci_kept)))

    def _lengths(self, dna_lengths: IntArray, regions: IntArray) -> IntArray:
        """Return the subject lengths that the statistics in force use, shape (n,)."""
        return regions if self.criteria.options.uses_fitted_statistics else np.maximum(dna_lengths // CODON, 1)

    def _make_request(self, query: Query, selection: QueryCandidates) -> LociRequest:
        """Return the windows of a query, with sort keys and minimum scores."""
        windows, null, n = selection.candidates, _null_model_of(selection), len(query.codes)
        criteria, pieces = self.criteria, self.windows.pieces_of(windows.subjects)
        dna_lengths = self.windows.dna_lengths[pieces.records]
        in_frame = np.maximum(dna_lengths - (np.abs(pieces.numbers) - 1), 0) // CODON
        lengths = self._lengths(dna_lengths, np.minimum(in_frame, REGION))
        keys = criteria.evalues(n, null, windows.scores, lengths)
        if keys is None or self.criteria.options.sort == "score":
            keys = -windows.scores.astype(np.float64)
        min_scores = np.maximum(criteria.score_thresholds(n, null)[lengths], criteria.min_score)
        return LociRequest(query, windows, keys, min_scores)

    def _select_hits(
        self, query: Query, selection: QueryCandidates, loci: Loci
    ) -> tuple[IntArray, FloatArray | None]:
        """Return the rows of loci that may be hits, and all E-values; filters by alignment apply here."""
        options, criteria, regions = self.criteria.options, self.criteria, loci.regions
        lengths = self._lengths(loci.dna_lengths, regions.ends - regions.begins)
        evalues = criteria.evalues(len(query.codes), _null_model_of(selection), loci.table.score, lengths)
        good = options.filters.select(loci.table, query, loci.dna_lengths // CODON)
        if evalues is not None and options.evalue_threshold is not None:
            good &= evalues <= options.evalue_threshold
        return np.flatnonzero(good), evalues

    def find_loci(self, requests: Sequence[LociRequest]) -> list[Loci]:
        """Return the loci of each query: all that may be among the best that are wanted, in the order of places."""
        narrowed = [self._narrow(each.best(self.limit)) for each in requests]
        by_query: list[list[Loci]] = [[] for _ in requests]
        min_scores = np.concatenate([_NONE, *(each.min_scores for each in narrowed)])
        stretches = _Stretches(_concatenate([each.pieces for each in narrowed]), min_scores)
        of_query = np.repeat(np.arange(len(requests)), [len(each.pieces) for each in narrowed])
        queries = [each.query for each in requests]
        while len(of_query):
            loci, of_found, stretches, of_query = self._align(queries, of_query, stretches)
            for k in np.flatnonzero(np.bincount(of_found, minlength=1)).tolist():
                by_query[k].append(loci.take(np.flatnonzero(of_found == k)))
        return [each.take(np.lexsort(each.place_keys)) for each in map(Loci.concatenate, by_query)]

    def _narrow(self, requests: LociRequest) -> _Stretches:
        """Return the stretches that hold a query's loci, in the order of places."""
        order, margin = np.argsort(requests.windows.subjects), self.windows.windows.margin
        pieces = self.windows.pieces_of(requests.windows.subjects[order])
        core_ends = np.minimum(pieces.begins + self.windows.windows.core, pieces.ends)
        selected = _Stretches(pieces, requests.min_scores[order])
        short, cores = selected.merge(core_ends).cut(SHORT_CORES * margin, margin)
        scores, query = (
            np.zeros(len(cores), dtype=np.int64),
            [requests.query.alignment_input(self.recurrence.scoring)],
        )
        for part in split_by_residues(short.pieces.lengths, RESIDUES_PER_BATCH):
            some = make_chunk(*self.windows.translated(short.pieces.take(np.arange(len(cores))[part])))
            (scores[part],) = scores_with_copies(query, self.recurrence, some, self.threads)
        good = np.flatnonzero(scores >= short.min_scores)
        return short.take(good).merge(cores[good])

    def _align(
        self, queries: Sequence[Query], of_query: IntArray, stretches: _Stretches
    ) -> tuple[Loci, IntArray, _Stretches, IntArray]:
        """Align stretches; return the loci and the stretches left and right of them, each with its query."""
        alignments: list[tuple[AlignmentTable, IntArray]] = []
        for part in split_by_residues(stretches.pieces.lengths, RESIDUES_PER_BATCH):
            rows = np.arange(len(of_query))[part]
            codes, offsets = self.windows.translated(stretches.pieces.take(rows))
            subjects = SubjectCodes(codes, None, offsets)
            table = align_pairs(self.recurrence, queries, subjects, of_query[rows], None, self.threads)
            good = np.flatnonzero(table.score >= stretches.min_scores[rows])
            alignments.append((table.take(good), rows[good]))
        rows = np.concatenate([_NONE, *(rows for _, rows in alignments)])
        table, pieces = AlignmentTable.concatenate([table for table, _ in alignments]), stretches.pieces.take(rows)
        left = replace(pieces, ends=pieces.begins + table.subject_start)
        right = replace(pieces, begins=pieces.begins + table.subject_end)
        rest = _Stretches(_concatenate([left, right]), np.tile(stretches.min_scores[rows], 2))
        filled = np.flatnonzero(rest.pieces.ends > rest.pieces.begins)
        loci = Loci.from_windows(table, pieces, self.windows.dna_lengths)
        return loci, of_query[rows], rest.take(filled), np.tile(of_query[rows], 2)[filled]


def _concatenate(parts: Sequence[FramePieces]) -> FramePieces:
    """Return pieces, one after the other."""
    columns = ("records", "numbers", "begins", "ends")
    return FramePieces(*(np.concatenate([_NONE, *(getattr(each, name) for each in parts)]) for name in columns))


def make_chunk(codes: ByteArray, offsets: IntArray) -> Chunk:
    """Return sequences as a chunk that engines score; its ``subjects`` are their places.

    Parameters
    ----------
    codes : ndarray, shape (n_residues,), uint8
        End to end.
    offsets : ndarray, shape (n + 1,), int64
        Where each begins.
    """
    lengths = np.diff(offsets).astype(np.int32)
    order = np.argsort(-lengths, kind="stable")
    columns = offsets_of(block_columns(lengths[order]))
    residues = np.empty((int(columns[-1]), LANES), dtype=np.uint8)
    for block, (first, last) in enumerate(pairwise(columns.tolist())):
        some = order[block * LANES : (block + 1) * LANES]
        interleave(codes[ranges(offsets[some], lengths[some].astype(np.int64))], lengths[some], residues[first:last])
    return Chunk(residues, columns, lengths[order], order)


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
        """Return the alignments that located subjects; None if there are none yet."""
        return self.loci.table.take(places)


def locate_loci(
    batches: Iterable[Batch], windows: FrameWindows, criteria: Criteria, threads: int
) -> Generator[Batch]:
    """Locate what windows hold; batches that were located in an earlier run pass."""
    locator = Locator(windows, criteria, threads)
    for batch in batches:
        yield locator.locate(batch) if batch.subjects is windows else batch


def _null_model_of(selection: QueryCandidates) -> FittedStatistics | None:
    return selection.statistics if isinstance(selection.statistics, FittedStatistics) else None
