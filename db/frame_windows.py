"""The reading frames of a segment of DNA as subjects: windows that overlap, translated when they are read.

A frame of a chromosome is no subject that engines could share among their lanes, so that it is cut into windows: a
core, and a margin after it, as far as the record goes. Cores touch. The window in whose core an alignment begins
holds all of it if it spans no more residues than a margin has. How wide margins must be follows from the queries, so
that the file has no windows: a search cuts them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swsearch.blocks import LANES, Chunk, IntArray, RunLengths, interleave
from swsearch.db.arrays import Strips, cut, offsets_of
from swsearch.db.dna_segment import TRANSLATED_AT_ONCE, DnaSegment, FramePieces, frame_lengths
from swsearch.db.segment import Segment, gathered
from swsearch.options.kinds import Mask
from swsearch.translation.genetic_codes import FRAME_NUMBERS

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


class FrameSubjects:
    """Windows of the frames of a database's records, as subjects in blocks: record after record, frame after frame.

    Parameters
    ----------
    database : Database
        Open, of DNA.
    windows : Windows
        How frames are cut.
    """

    def __init__(self, database: Database, windows: Windows) -> None:
        assert database.genetic_code is not None
        self.windows, self.genetic_code, self._segments = windows, database.genetic_code, database._segments
        self._frame_lengths = frame_lengths(database.lengths).reshape(-1)
        self._firsts = offsets_of(-(-self._frame_lengths // windows.core))
        self.n_subjects = int(self._firsts[-1])
        lengths = self.pieces(np.arange(self.n_subjects)).lengths.astype(np.int32)
        self._order = np.argsort(-lengths, kind="stable")
        self.lengths = RunLengths.of(lengths[self._order])
        self.block_offsets: IntArray = offsets_of(self.lengths.block_columns())

    def pieces(self, places: IntArray) -> FramePieces:
        """Return what windows are, by their ordinals, shape (n,)."""
        slots = np.searchsorted(self._firsts, places, side="right") - 1
        begins = (places - self._firsts[slots]) * self.windows.core
        ends = np.minimum(begins + self.windows.core + self.windows.margin, self._frame_lengths[slots])
        return FramePieces(slots // N_FRAMES, np.array(FRAME_NUMBERS)[slots % N_FRAMES], begins, ends)

    def first_of(self, record: int) -> int:
        """Return the ordinal of the first window of a record, or of those after it if it has none."""
        return int(self._firsts[N_FRAMES * record])

    def chunk(self, first: int, last: int, mask: Mask = "none") -> Chunk:
        """Translate and interleave the blocks ``first`` to ``last`` (excluded)."""
        offsets = self.block_offsets[first : last + 1] - self.block_offsets[first]
        start, stop = first * LANES, min(last * LANES, self.n_subjects)
        order = self._order[start:stop]
        residues = np.empty((int(offsets[-1]), LANES), dtype=np.uint8)
        for begin, end in cut(offsets, 8 * TRANSLATED_AT_ONCE // LANES):
            codes = self.translated(self.pieces(order[begin * LANES : end * LANES]))
            for block in range(begin, end):
                some = codes.part((block - begin) * LANES, (block - begin + 1) * LANES)
                interleave(some.data, some.counts, residues[offsets[block] : offsets[block + 1]])
        return Chunk(residues, offsets, self.lengths.part(start, stop), order)

    def translated(self, pieces: FramePieces) -> Strips:
        """Translate pieces of frames, whose records are places in the input, in their order."""

        def read(dna: Segment, which: IntArray, records: IntArray) -> Strips:
            assert isinstance(dna, DnaSegment)
            return dna.translated(self.genetic_code, replace(pieces.take(which), records=records))

        return gathered(self._segments, pieces.records, read)


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
