"""DNA databases as subjects: windows of reading frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import Chunk, IntArray
from swsearch.db.dna_segment import FramePieces, frame_lengths
from swsearch.db.frame_windows import FrameSubjects, Windows, span_bound, window_sizes
from swsearch.db.loaded_blocks import LoadedBlocks, Run, all_blocks, chunks_of, select_share
from swsearch.engines.pools import SequencePool
from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query
from swsearch.options.kinds import Mask
from swsearch.pipeline.filters import HitFilters, SubjectMask, allowed_subjects
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.subjects import (
    ChunkSource,
    ProteinSubjects,
    SubjectCounts,
    Subjects,
    database_mask,
    headers_of,
)
from swsearch.results import Headers, SubjectCodes
from swsearch.scoring import Scoring
from swsearch.translation import Frames
from swsearch.translation.genetic_codes import CODON

if TYPE_CHECKING:
    from swsearch.db import Database

REGION = 1024
"""Residues of the region of an alignment, at least, where its frame has so many: enough to tell its composition from
that of others by shuffled copies, and the length of the random sequences that its score is compared with."""


def subjects_of(
    database: Database, queries: Sequence[Query], options: SearchOptions, cached: FrameWindows | None = None
) -> Subjects:
    """Return a database as queries are compared with it.

    Parameters
    ----------
    cached : FrameWindows, optional
        Of the database, wide enough for other queries; returned if they are for these.
    """
    if database.genetic_code is None:
        return ProteinSubjects(database, database_mask(database, options.subject_mask))
    _check_dna(options, database.name)
    windows = choose_windows(database, queries, options.scoring, None if cached is None else cached.windows)
    return cached if cached is not None and cached.windows == windows else FrameWindows(database, windows)


def _check_dna(options: SearchOptions, name: str) -> None:
    """Raise if options do not apply to the DNA database of a name."""
    what = f"{name} is a DNA database"
    if options.mode != "local":
        raise OptionError("mode", options.mode, "local", f"{what}, whose frames are only aligned locally")
    if options.subject_mask not in ("database", "none"):
        raise OptionError("subject_mask", options.subject_mask, "none", f"{what}, whose frames are not masked")
    if options.frame_shift is not None:
        raise OptionError("frame_shift", options.frame_shift, "none", f"{what}; frameshifts need protein subjects")
    if options.makes_profiles:
        why = f"cannot be combined with {options.profile_option}; make the profile from proteins, then search with it"
        raise InputError(f"{name}: a DNA database {why}")
    if options.distribution:
        raise OptionError("distribution", True, "False", f"{what}, which has no scores of whole subjects")


def choose_windows(
    database: Database, queries: Sequence[Query], scoring: Scoring, cached: Windows | None = None
) -> Windows:
    """Return how to cut a database's frames so that no alignment of these queries is cut: ``cached`` if wide."""
    lengths = database.lengths
    longest = int(lengths.max(initial=0)) // CODON
    span = max((min(_span(query, scoring, longest), longest) for query in queries), default=1)
    if cached is not None and cached.margin >= span:
        return cached
    return window_sizes(span, 2 * int(lengths.sum(dtype=np.int64)))


def _span(query: Query, scoring: Scoring, longest: int) -> int:
    """Return how many residues of a frame an alignment of a query can span at most."""
    if not len(query.codes):
        return 1
    rows = query.rows(scoring)
    best = int(np.maximum(rows.scores[:, : len(PROTEIN.letters)].max(axis=1), 0).sum(dtype=np.int64))
    opening, extending = scoring.gap_open, scoring.gap_extend
    if rows.gaps is not None:
        opening, extending = int(rows.gaps.insertion_open.min()), int(rows.gaps.insertion_extend.min())
    span = span_bound(best, len(query.codes), int(opening), int(extending))
    return longest if span is None else span


class FramePieceReader(ABC):
    """Reads subjects that are pieces of the frames of DNA; see `swsearch.pipeline.subjects.SubjectReader`.

    Parameters
    ----------
    database : Database
        Open, of DNA.
    frames : FrameSubjects
        Its frames, as they are cut.
    """

    def __init__(self, database: Database, frames: FrameSubjects) -> None:
        self.database, self.frames = database, frames

    @abstractmethod
    def pieces_of(self, places: IntArray) -> FramePieces:
        """Return which pieces subjects are, shape (n,)."""

    @cached_property
    def dna_lengths(self) -> IntArray:
        """Nucleotides of every record, shape (n_records,), int64."""
        return self.database.lengths.astype(np.int64)

    def translated(self, pieces: FramePieces) -> tuple[ByteArray, IntArray]:
        """Translate n pieces of frames, end to end, and return where each begins, shape (n + 1,)."""
        codes = self.frames.translate(pieces)
        return codes.data, codes.offsets

    def lengths_of(self, places: IntArray) -> IntArray:
        """Return the residues of pieces, shape (n,), int64."""
        return self.pieces_of(places).lengths

    def published_lengths_of(self, places: IntArray) -> IntArray:
        """Return a third of the nucleotides of the records, shape (n,), int64."""
        return np.maximum(self.dna_lengths[self.pieces_of(places).records] // CODON, 1)

    def read_masked(self, places: IntArray, threads: int = 1) -> SequencePool:
        """Return subjects as they are scored: codes end to end, and where each begins."""
        return self.translated(self.pieces_of(places))

    def read_with_letters(self, places: IntArray, threads: int = 1) -> SubjectCodes:
        """Return subjects as they are scored, with the letters that reports show."""
        codes, offsets = self.read_masked(places)
        return SubjectCodes(codes, None, offsets)

    def headers(self, places: IntArray) -> Headers:
        """Return the headers of the records."""
        return headers_of(self.database, self.pieces_of(places).records)

    def records(self, places: IntArray) -> tuple[IntArray, Frames | None]:
        """Return the records that subjects are from, and their frames if these are DNA."""
        pieces = self.pieces_of(places)
        return pieces.records, Frames(pieces.numbers, pieces.begins, self.dna_lengths[pieces.records])


class FrameWindows(FramePieceReader, LoadedBlocks):
    """Windows of the reading frames of a database of DNA; see `swsearch.pipeline.subjects.Subjects`.

    To engines a window is a subject. Hits are located in windows, and read as pieces of frames, whose records are
    places in the input; how frames are cut does not matter to them.

    Parameters
    ----------
    database : Database
        Open, of DNA.
    windows : Windows
        How frames are cut.
    runs : sequence of Run, optional
        The blocks of windows that are loaded; all by default.
    """

    mask: Mask = "none"

    def __init__(
        self, database: Database, windows: Windows, runs: Sequence[Run[FrameSubjects]] | None = None
    ) -> None:
        shared = database.duplicate()
        super().__init__(shared, FrameSubjects(shared, windows))
        self.name, self.windows = database.name, windows
        self.n_places = self.frames.n_subjects
        self._runs = all_blocks([self.frames]) if runs is None else runs
        self._count(self._runs)

    def share(self, index: int, count: int) -> FrameWindows:
        """Return the chunks of one of several shares."""
        return FrameWindows(self.database, self.windows, select_share(self._runs, index, count))

    @property
    def volume_firsts(self) -> list[int]:
        """The place of the first window of each volume."""
        return [self.frames.first_of(volume.first) for volume in self.database.volumes]

    @cached_property
    def counts(self) -> SubjectCounts:
        """Counts for statistics and reports.

        Published statistics are tblastn's: every subject has a third of its nucleotides as residues, and so has the
        database. Fitted ones count what is compared: all residues of six frames, each once, in regions of `REGION`.
        """
        records = self.dna_lengths
        filled = frame_lengths(records).reshape(-1)
        filled = filled[filled > 0]
        n_regions = max(round(float(np.maximum(filled / REGION, 1.0).sum())), 1)
        regions, thirds = np.minimum(filled, REGION), records // CODON
        return SubjectCounts(
            len(records), int(records.sum()), n_regions, int(filled.sum()), np.unique(regions).astype(np.int32),
            int(records.sum()) // CODON, np.unique(thirds[thirds > 0]).astype(np.int32),
            int(self.length_runs.longest), are_windows=True,
        )  # fmt: skip

    def chunks(self, max_bytes: int, *, mixed: bool = False, mask: Mask | None = None) -> Iterator[Chunk]:
        """Translate and interleave windows, some blocks at a time."""
        for segment, first, last in chunks_of(self._runs, int(max_bytes), mixed):
            self.database.check_open()
            yield segment.chunk(first, last, "none")

    def find_allowed(self, filters: HitFilters) -> SubjectMask | None:
        """Return a mask of the windows of allowed records."""
        allowed = allowed_subjects(self.database, filters)
        return None if allowed is None else allowed[self.pieces_of(np.arange(self.n_places)).records]

    def select(self, subject_mask: SubjectMask) -> ChunkSource | None:
        """Return None: all windows are scored."""
        return None

    def pieces_of(self, places: IntArray) -> FramePieces:
        """Return which pieces of frames windows are, shape (n,)."""
        return self.frames.pieces(np.asarray(places, dtype=np.int64))

    def alignments_of(self, places: IntArray) -> AlignmentTable | None:
        """Return None, because hits are located later."""
        return None
