"""Blocks that are loaded in chunks: all, or those of a share.

The module also makes new blocks of some subjects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD
from swsearch.blocks import LANES, Chunk, IntArray, RunLengths
from swsearch.db.arrays import cut_into_groups, offsets_of
from swsearch.db.segment import Segment
from swsearch.options.kinds import Mask


class Blocks(Protocol):
    """Sorted subjects in blocks: a segment, or the windows of frames."""

    n_subjects: int
    lengths: RunLengths
    block_offsets: IntArray

    def chunk(self, first: int, last: int, mask: Mask = ...) -> Chunk:
        """Load the blocks ``first`` to ``last``, excluded."""


BlocksT = TypeVar("BlocksT", bound=Blocks)

Run = tuple[BlocksT, int, int]
"""Blocks, the first of some of them and the end of these."""

SHORT_RUNS = 6
"""Chunks of short subjects after each one of long subjects, where they are mixed."""

STRETCH_BYTES = 4 << 20
"""Interleaved residues of all subjects that are read at once, up to the last block of which some are taken."""


def all_blocks(segments: Sequence[BlocksT]) -> tuple[Run[BlocksT], ...]:
    """Return every block of segments."""
    return tuple((segment, 0, len(segment.block_offsets) - 1) for segment in segments)


class LoadedBlocks:
    """Counts of the blocks that will be loaded."""

    def _count(self, runs: Sequence[Run[Any]]) -> None:
        self.length_runs = RunLengths.from_unsorted([_lengths(*run) for run in runs])
        """Number of subjects of each length, the longest first."""
        self.n_residues = self.length_runs.n_residues
        self.n_segments = len(runs)
        """Number of segments with these blocks."""
        self.residue_bytes = LANES * _n_columns(runs)
        """Bytes of the interleaved residues, padding included."""


def _n_columns(runs: Sequence[Run[Any]]) -> int:
    return sum(int(segment.block_offsets[last] - segment.block_offsets[first]) for segment, first, last in runs)


def _lengths(segment: Blocks, first: int, last: int) -> RunLengths:
    if (first, last) == (0, len(segment.block_offsets) - 1):  # of DNA too, whose records are in no blocks
        return segment.lengths
    return segment.lengths.part(first * LANES, min(last * LANES, segment.n_subjects))


def select_share(runs: Sequence[Run[BlocksT]], index: int, count: int) -> tuple[Run[BlocksT], ...]:
    """Return the blocks of one share of about equal bytes; all shares one after the other are the blocks.

    A block belongs to the share in which its middle stands, so that a share is empty where there are fewer blocks
    than shares; those of empty subjects alone, which have no bytes, belong to the last.
    """
    total, share, at = _n_columns(runs), [], 0
    for segment, first, last in runs:
        offsets = segment.block_offsets[first : last + 1]
        middles = 2 * at + (offsets[:-1] - offsets[0]) + (offsets[1:] - offsets[0])
        begin, end = (int(np.searchsorted(middles, -(-2 * total * each // count))) for each in (index, index + 1))
        end = last - first if index == count - 1 else end
        if begin < end:
            share.append((segment, first + begin, first + end))
        at += int(offsets[-1] - offsets[0])
    return tuple(share)


def chunks_of(runs: Sequence[Run[BlocksT]], max_bytes: int, mixed: bool) -> Iterator[Run[BlocksT]]:
    """Cut blocks into runs of at most ``max_bytes``, or of one block; long and short ones mixed if asked for."""
    chunks = [
        (segment, begin + first, begin + last)
        for segment, begin, end in runs
        for first, last in cut_into_groups(segment.block_offsets[begin : end + 1], max_bytes // LANES)
    ]
    return _alternate_ends(chunks) if mixed else iter(chunks)


def _alternate_ends(runs: list[Run[BlocksT]]) -> Iterator[Run[BlocksT]]:
    """Yield one run from the front, some from the back, and so on until they meet."""
    waiting = deque(runs)
    while waiting:
        yield waiting.popleft()
        for _ in range(min(SHORT_RUNS, len(waiting))):
            yield waiting.pop()


class Subset(LoadedBlocks):
    """Some subjects of a database; places, lengths and residues are those that they have in it.

    ``subject_mask`` says for each subject of the whole database whether it is one, shape (n_subjects,), bool.
    ``mask`` is the database's own.
    """

    def __init__(
        self, runs: Sequence[Run[Segment]], subject_mask: npt.NDArray[np.bool_], mask: Mask = "none"
    ) -> None:
        self._mask: Mask = mask
        self._runs = all_blocks([_SubsetBlocks(*run, subject_mask) for run in runs])
        self._count(self._runs)

    def chunks(self, max_bytes: int, *, mixed: bool = False, mask: Mask | None = None) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time, as `Database.chunks` does."""
        for blocks, first, last in chunks_of(self._runs, max_bytes, mixed):
            yield blocks.chunk(first, last, self._mask if mask is None else mask)


class _SubsetBlocks:
    """Chosen subjects among the blocks ``first`` to ``last``, excluded, of a segment, in blocks of their own."""

    def __init__(self, segment: Segment, first: int, last: int, subject_mask: npt.NDArray[np.bool_]) -> None:
        here = subject_mask[segment.first : segment.first + segment.n_subjects]
        ranks = np.sort(segment.ranks[here].astype(np.int64))
        self._segment, self._ranks = segment, ranks[(ranks >= first * LANES) & (ranks < last * LANES)]
        self.n_subjects = len(self._ranks)
        self.lengths = RunLengths.from_lengths(segment.lengths.at(self._ranks))
        self.block_offsets: IntArray = offsets_of(self.lengths.block_columns())

    def chunk(self, first: int, last: int, mask: Mask = "none") -> Chunk:
        """Make new blocks of the old ones that hold their subjects, each of which is read once."""
        start, stop = first * LANES, min(last * LANES, self.n_subjects)
        offsets = self.block_offsets[first : last + 1] - self.block_offsets[first]
        residues = np.full((int(offsets[-1]), LANES), PAD, dtype=np.uint8)
        ranks, subjects = self._ranks[start:stop], np.empty(stop - start, dtype=np.int64)
        stretches = self._segment.block_offsets[ranks // LANES] * LANES // STRETCH_BYTES
        for begin, end in _runs_of_equal(stretches):
            block = int(ranks[begin]) // LANES
            old = self._segment.chunk(block, int(ranks[end - 1]) // LANES + 1, mask)
            places = ranks[begin:end] - block * LANES
            subjects[begin:end] = old.subjects[places]
            _copy(old, places, residues, offsets, begin)
        return Chunk(residues, offsets, self.lengths.part(start, stop), subjects)


def _runs_of_equal(values: IntArray) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of equal values, of which there is at least one."""
    return pairwise([0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)])


def _copy(chunk: Chunk, places: IntArray, residues: npt.NDArray[np.uint8], offsets: IntArray, first: int) -> None:
    """Copy subjects of a chunk, by their places there, ascending, to lanes of new blocks from the ``first`` on."""
    new, lanes = np.arange(first, first + len(places)), places % LANES
    for begin, end in _runs_of_equal(
        places // LANES + new // LANES
    ):  # both ascend, so that the sum changes where one does
        block, lane = divmod(first + begin, LANES)
        source, target = chunk.block(places[begin] // LANES), residues[offsets[block] : offsets[block + 1]]
        n = min(len(source), len(target))
        target[:n, lane : lane + end - begin] = source[:n, lanes[begin:end]]
