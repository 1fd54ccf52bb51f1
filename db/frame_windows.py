"""Reading frames of DNA as subjects: overlapping windows, translated on reading.

Engines cannot share the frame of a chromosome among their lanes, so it is cut into windows: a core, and a margin
after it, as far as the record goes. Cores touch. The window whose core has the start of an alignment has all of it if
it spans no more residues than a margin. The width of margins depends on the queries, so a search cuts the windows,
and the file has none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swsearch.blocks import LANES, Chunk, IntArray, RunLengths, interleave
from swsearch.db.arrays import Strips, cut_into_groups, offsets_of
from swsearch.db.dna_segment import RESIDUES_PER_TRANSLATION, DnaSegment, FramePieces, frame_lengths
from swsearch.db.segment import Segment, gather_strips
from swsearch.options.kinds import Mask
from swsearch.translation.genetic_codes import FRAME_NUMBERS

if TYPE_CHECKING:
    from swsearch.db.database import Database

N_FRAMES = len(FRAME_NUMBERS)

MIN_MARGIN, CORE_MARGINS, MAX_CORE = 512, 16, 1 << 18
"""Residues of which margins are multiples; margins in a core; residues of a core that is longer than four margins."""

MANY_WINDOWS = 4096
"""Windows that are enough for every engine, so that cores can be long."""


@dataclass(frozen=True)
class Windows:
    """Sizes of windows."""

    core: int
    """Residues of a frame between the starts of two cores."""
    margin: int
    """Residues after a core; a longer alignment may be cut."""


class FrameSubjects:
    """Windows of the frames of an open DNA database, in blocks: record after record, frame after frame."""

    def __init__(self, database: Database, windows: Windows) -> None:
        assert database.genetic_code is not None
        self.windows, self.genetic_code, self._segments = windows, database.genetic_code, database._segments
        self._frame_lengths = frame_lengths(database.lengths).reshape(-1)
        self._firsts = offsets_of(-(-self._frame_lengths // windows.core))
        self.n_subjects = int(self._firsts[-1])
        lengths = self.pieces(np.arange(self.n_subjects)).lengths.astype(np.int32)
        self._order = np.argsort(-lengths, kind="stable")
        self.lengths = RunLengths.from_lengths(lengths[self._order])
        self.block_offsets: IntArray = offsets_of(self.lengths.block_columns())

    def pieces(self, places: IntArray) -> FramePieces:
        """Return the pieces of windows, by their ordinals, shape (n,)."""
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
        for begin, end in cut_into_groups(offsets, 8 * RESIDUES_PER_TRANSLATION // LANES):
            codes = self.translate(self.pieces(order[begin * LANES : end * LANES]))
            for block in range(begin, end):
                some = codes.part((block - begin) * LANES, (block - begin + 1) * LANES)
                interleave(some.data, some.counts, residues[offsets[block] : offsets[block + 1]])
        return Chunk(residues, offsets, self.lengths.part(start, stop), order)

    def translate(self, pieces: FramePieces) -> Strips:
        """Translate pieces of frames, whose records are places in the input, in their order."""

        def read(dna: Segment, which: IntArray, records: IntArray) -> Strips:
            assert isinstance(dna, DnaSegment)
            return dna.translate(self.genetic_code, replace(pieces.take(which), records=records))

        return gather_strips(self._segments, pieces.records, read)


def span_bound(best: int, query_length: int, gap_open: int, gap_extend: int) -> int | None:
    """Return the maximum number of residues of a subject that a local alignment spans; None if gaps cost nothing.

    An alignment scores at least 1, so its gaps cost less than ``best``, the sum of the greatest scores of the query's
    residues. It has at most ``query_length`` pairs. ``gap_open`` and ``gap_extend`` are minimum costs.
    """
    if gap_extend <= 0:
        return None
    return query_length + max((best - 1 - gap_open) // gap_extend, 0)


def window_sizes(span: int, residues: int) -> Windows:
    """Return the windows for alignments that span at most ``span`` residues, in frames of ``residues`` in all.

    Long cores score fewer residues twice; short ones are cheaper to align and give engines more subjects to share
    among their lanes. A bacterial genome has cores of 8 margins, and 1.125 times its residues are scored; a larger
    one has cores of 16. For the longest queries cores are shorter, since 64 windows are in memory together.
    """
    margin = -(-max(span, 1) // MIN_MARGIN) * MIN_MARGIN
    core = (CORE_MARGINS if residues > MANY_WINDOWS * CORE_MARGINS * margin else CORE_MARGINS // 2) * margin
    return Windows(max(min(core, MAX_CORE), 4 * margin), margin)
