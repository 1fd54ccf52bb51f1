"""The reading frames of a segment of DNA as subjects: windows that overlap, translated when they are read.

A frame of a chromosome is no subject that engines could share among their lanes, so that it is cut into windows: a
core, and a margin after it, as far as the record goes. Cores touch. The window in whose core an alignment begins
holds all of it if it spans no more residues than a margin has. How wide margins must be follows from the queries, so
that the file has no windows: a search cuts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD, ByteArray
from swsearch.blocks import LANES, Chunk, IntArray, RunLengths, block_columns
from swsearch.db.bulk import by_segment
from swsearch.db.classes import offsets_of
from swsearch.db.content import ranges
from swsearch.db.dna_stored import SHORT_RESIDUES, DnaSegment, frame_lengths
from swsearch.db.stored import HEADER, Segment
from swsearch.options.words import Mask
from swsearch.translation.frame import FRAME_NUMBERS

if TYPE_CHECKING:
    from swsearch.db.database import Database

N_FRAMES = len(FRAME_NUMBERS)

LEAST_MARGIN, CORE_MARGINS, MOST_CORE = 512, 16, 1 << 18
"""Residues of which margins are multiples; margins in a core; residues of a core that is longer than four margins."""

MANY_WINDOWS = 4096
"""Windows that are enough for every engine, so that cores can be long."""


@dataclass(frozen=True)
class Windows:
    """How frames are cut.

    Parameters
    ----------
    core : int
        Residues of a frame from the beginning of one window's core to that of the next.
    margin : int
        Residues after a core; an alignment that is longer may be cut.
    """

    core: int
    margin: int


@dataclass(frozen=True, eq=False)
class FramePieces:
    """FramePieces of reading frames, n of them, as columns.

    Parameters
    ----------
    records : ndarray, shape (n,), int64
        Places of the records in the input.
    numbers : ndarray, shape (n,), int64
        Frames, by NCBI's numbers.
    begins, ends : ndarray, shape (n,), int64
        Residues of the frame, 0-based and half-open.
    """

    records: IntArray
    numbers: IntArray
    begins: IntArray
    ends: IntArray

    def __len__(self) -> int:
        return len(self.records)

    def take(self, rows: npt.NDArray[np.integer]) -> FramePieces:
        """Return some, by their rows, shape (m,)."""
        return FramePieces(self.records[rows], self.numbers[rows], self.begins[rows], self.ends[rows])


class FrameSegment(Segment):
    """The windows of the frames of a segment's records, as its subjects: record after record, frame after frame.

    Parameters
    ----------
    dna : DnaSegment
        The records.
    genetic_code : int
        NCBI's number.
    windows : Windows
        How frames are cut.
    first : int
        Ordinal of the first window in the whole database.
    """

    def __init__(self, dna: DnaSegment, genetic_code: int, windows: Windows, first: int) -> None:
        self.dna, self.genetic_code, self.windows, self.first = dna, genetic_code, windows, first
        self.source, self.name, self.attributes, self.stored = dna.source, dna.name, dna.attributes, dna.stored
        self._frame_lengths = frame_lengths(dna.input_lengths()).reshape(-1)
        self._firsts = offsets_of(-(-self._frame_lengths // windows.core))
        self.n_subjects = int(self._firsts[-1])
        pieces = self.pieces(np.arange(self.n_subjects))
        self._input_lengths = (pieces.ends - pieces.begins).astype(np.int32)
        self._order = np.argsort(-self._input_lengths, kind="stable").astype(np.uint32)
        ordered = self._input_lengths[self._order]
        self.lengths = RunLengths.of(ordered)
        self.block_offsets: IntArray = offsets_of(block_columns(ordered))

    def pieces(self, places: IntArray) -> FramePieces:
        """Return what windows are, by their places in the segment, shape (n,); records are places in it, too."""
        slots = np.searchsorted(self._firsts, places, side="right") - 1
        begins = (places - self._firsts[slots]) * self.windows.core
        ends = np.minimum(begins + self.windows.core + self.windows.margin, self._frame_lengths[slots])
        return FramePieces(slots // N_FRAMES, np.array(FRAME_NUMBERS)[slots % N_FRAMES], begins, ends)

    def cores(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the cores of windows begin and end in their frames, two of shape (n,), int64."""
        slots = np.searchsorted(self._firsts, places, side="right") - 1
        begins = (places - self._firsts[slots]) * self.windows.core
        return begins, np.minimum(begins + self.windows.core, self._frame_lengths[slots])

    def input_lengths(self) -> npt.NDArray[np.int32]:
        """Return the windows' lengths in their order, shape (n_subjects,)."""
        return self._input_lengths

    def chunk(self, first: int, last: int, mask: Mask = "none") -> Chunk:
        """Translate and interleave the blocks ``first`` to ``last`` (excluded)."""
        start = int(self.block_offsets[first])
        offsets = self.block_offsets[first : last + 1] - start
        lanes = slice(first * LANES, min(last * LANES, self.n_subjects))
        order = self._order[lanes].astype(np.int64)
        residues = np.empty((int(offsets[-1]), LANES), dtype=np.uint8)
        begin = 0
        while begin < last - first:  # some blocks at a time, for they stand in memory twice
            end = int(np.searchsorted(offsets, offsets[begin] + SHORT_RESIDUES // LANES, side="right")) - 1
            end = max(end, begin + 1)
            codes, bounds = self._translated(order[begin * LANES : end * LANES])
            for block in range(begin, end):
                out = residues[offsets[block] : offsets[block + 1]]
                rows = np.full((LANES, len(out)), PAD, dtype=np.uint8)
                lane = (block - begin) * LANES
                ends = bounds[lane : lane + LANES + 1].tolist()
                for row, a, b in zip(rows, ends[:-1], ends[1:], strict=False):
                    row[: b - a] = codes[a:b]
                out[:] = rows.T
            begin = end
        return Chunk(residues, offsets, self.lengths.part(lanes.start, lanes.stop), order + self.first)

    def _translated(self, places: IntArray) -> tuple[ByteArray, IntArray]:
        pieces = self.pieces(places)
        return self.dna.translated(self.genetic_code, *vars(pieces).values())

    def codes(self, index: int) -> ByteArray:
        """Return one window's residues, shape (length,), uint8."""
        codes, _ = self._translated(np.array([index]))
        return codes

    def lengths_of(self, places: IntArray) -> npt.NDArray[np.int32]:
        """Return the lengths of windows, shape (n,), int32."""
        return self._input_lengths[places]

    def copy_codes(self, places: IntArray, to: IntArray, pool: ByteArray) -> None:
        """Write the residues of windows, shape (n,), into a pool, shape (n_bytes,), at ``to``, shape (n,)."""
        codes, offsets = self._translated(places)
        pool[ranges(to, np.diff(offsets))] = codes

    def _records(self, places: IntArray) -> IntArray:
        records: IntArray = (np.searchsorted(self._firsts, places, side="right") - 1) // N_FRAMES
        return records

    def header(self, index: int) -> bytes:
        """Return the header line of a window's record."""
        return self.dna.header(int(self._records(np.array([index]))[0]))

    def bounds_of(self, what: str, places: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the headers of windows' records begin and end: two of shape (n,), int64."""
        assert what == HEADER, "windows are not masked"
        return self.dna.bounds_of(what, self._records(places))

    def copy_headers(
        self, places: IntArray, begins: IntArray, counts: IntArray, to: IntArray, pool: ByteArray
    ) -> None:
        """Write the header lines of windows' records, all of shape (n,), into a pool; see `Segment.copy_headers`."""
        self.dna.copy_headers(self._records(places), begins, counts, to, pool)


def frame_segments(database: Database, windows: Windows) -> list[FrameSegment]:
    """Return the windows of an open database of DNA, segment after segment."""
    assert database.genetic_code is not None
    found: list[FrameSegment] = []
    first = 0
    for dna in database._segments:
        assert isinstance(dna, DnaSegment)
        found.append(FrameSegment(dna, database.genetic_code, windows, first))
        first += found[-1].n_subjects
    return found


def pieces_of(segments: Sequence[Segment], subjects: IntArray) -> FramePieces:
    """Return which pieces of frames windows are, by ordinal, shape (n,)."""
    found = FramePieces(*(np.empty(len(subjects), dtype=np.int64) for _ in range(4)))
    for segment, which, places in by_segment(segments, subjects):
        assert isinstance(segment, FrameSegment)
        some = segment.pieces(places)
        found.records[which] = some.records + segment.dna.first
        found.numbers[which], found.begins[which], found.ends[which] = some.numbers, some.begins, some.ends
    return found


def cores_of(segments: Sequence[Segment], subjects: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the cores of windows begin and end in their frames, two of shape (n,), int64."""
    begins, ends = np.empty(len(subjects), dtype=np.int64), np.empty(len(subjects), dtype=np.int64)
    for segment, which, places in by_segment(segments, subjects):
        assert isinstance(segment, FrameSegment)
        begins[which], ends[which] = segment.cores(places)
    return begins, ends


def translated(segments: Sequence[FrameSegment], pieces: FramePieces) -> tuple[ByteArray, IntArray]:
    """Translate n pieces of frames, whose records are places in the input.

    Returns
    -------
    codes : ndarray, shape (n_residues,), uint8
        End to end.
    offsets : ndarray, shape (n + 1,), int64
        Where each begins.
    """
    of = np.searchsorted([each.dna.first for each in segments], pieces.records, side="right") - 1
    offsets = offsets_of(pieces.ends - pieces.begins)
    codes = np.empty(int(offsets[-1]), dtype=np.uint8)
    for number, segment in enumerate(segments):
        which = np.flatnonzero(of == number)
        some = pieces.take(which)
        found, bounds = segment.dna.translated(
            segment.genetic_code, some.records - segment.dna.first, some.numbers, some.begins, some.ends
        )
        if len(which) == len(pieces):
            return found, bounds
        codes[ranges(offsets[which], np.diff(bounds))] = found
    return codes, offsets


def span_bound(best: int, query_length: int, gap_open: int, gap_extend: int) -> int | None:
    """Bound the residues of a subject that a local alignment of a query can span.

    It scores at least 1, so that its gaps cost less than its pairs can score; and it has no more pairs than the query
    has residues.

    Parameters
    ----------
    best : int
        The sum of the greatest scores of the query's residues.
    query_length : int
        Residues.
    gap_open, gap_extend : int
        Least costs of a gap, and of each of its residues.

    Returns
    -------
    int or None
        Residues; None where gaps cost nothing and there is no bound.
    """
    if gap_extend <= 0:
        return None
    return query_length + max((best - 1 - gap_open) // gap_extend, 0)


def windows_for(span: int, residues: int) -> Windows:
    """Return how to cut frames for alignments that span at most so many residues.

    Long cores score less twice, short ones are cheaper to align and give engines more subjects to share among their
    lanes: a genome of bacteria has cores of 8 margins, and 1.125 times its residues are scored; a larger one has
    cores of 16. Of the longest queries cores are shorter, for 64 windows stand in memory together.

    Parameters
    ----------
    span : int
        Residues; see `span_bound`.
    residues : int
        Of all frames.
    """
    margin = -(-max(span, 1) // LEAST_MARGIN) * LEAST_MARGIN
    core = (CORE_MARGINS if residues > MANY_WINDOWS * CORE_MARGINS * margin else CORE_MARGINS // 2) * margin
    return Windows(max(min(core, MOST_CORE), 4 * margin), margin)
