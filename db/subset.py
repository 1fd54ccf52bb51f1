"""Some of the subjects of a database as a search reads them: sorted and interleaved again, without the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD
from swsearch.blocks import LANES, Chunk, IntArray, RunLengths, block_columns
from swsearch.db.shares import Run
from swsearch.db.stored import Segment
from swsearch.options.words import Mask

READ_BYTES_AT_ONCE = 16 << 20
"""Interleaved residues of all subjects that are read at once, of which some are taken."""

NEAR_BYTES = 1 << 20
"""Bytes between blocks with subjects that are taken which are read, too: as many are checked together."""


class _Part(NamedTuple):
    """What is taken of the blocks of a segment."""

    segment: Segment
    ranks: IntArray
    """Sorted places of the subjects in the segment, ascending, shape (n,)."""
    lengths: npt.NDArray[np.int32]
    """Descending, shape (n,)."""
    offsets: IntArray
    """First column of each new block, shape (n_blocks + 1,)."""


class Subset:
    """Some subjects of a database; places, lengths and residues are those that they have in it.

    Parameters
    ----------
    runs : sequence of Run
        The blocks that the subjects are taken from.
    taken : ndarray, shape (n_subjects,), bool
        Which subjects of the whole database.
    mask : {"none", "lower", "tantan"}
        The database's own.
    """

    def __init__(self, runs: Sequence[Run], taken: npt.NDArray[np.bool_], mask: Mask = "none") -> None:
        self._mask: Mask = mask
        self._parts = [_part(*run, taken) for run in runs]
        self.length_runs = RunLengths.counted([part.lengths for part in self._parts])
        """How many subjects have each length, the longest first."""
        self.n_residues = self.length_runs.n_residues
        self.residue_bytes = LANES * sum(int(part.offsets[-1]) for part in self._parts)
        """Bytes of the interleaved residues, padding included."""

    def chunks(self, max_bytes: int, *, mixed: bool = False, mask: Mask | None = None) -> Iterator[Chunk]:
        """Load the residues, some blocks at a time, as `Database.chunks` does, the longest first whatever is asked.

        Each block of the database that holds one of the subjects is read and checked once.
        """
        del mixed
        for part in self._parts:
            most = max(max_bytes // LANES, 1)
            first, n_blocks = 0, len(part.offsets) - 1
            while first < n_blocks:
                last = int(np.searchsorted(part.offsets, part.offsets[first] + most, side="right")) - 1
                last = max(last, first + 1)
                yield _gathered(part, first, last, self._mask if mask is None else mask)
                first = last


def _part(segment: Segment, first: int, last: int, taken: npt.NDArray[np.bool_]) -> _Part:
    """Find what is taken of the blocks ``first`` to ``last``, excluded."""
    segment.check_blocks()
    here = taken[segment.first : segment.first + segment.n_subjects]
    ranks = np.sort(segment.ranks[here].astype(np.int64))
    ranks = ranks[(ranks >= first * LANES) & (ranks < last * LANES)]
    lengths = segment.lengths.at(ranks)
    offsets = np.concatenate([[0], np.cumsum(block_columns(lengths))])
    return _Part(segment, ranks, lengths, offsets)


def _gathered(part: _Part, first: int, last: int, mask: Mask) -> Chunk:
    """Make new blocks, ``first`` to ``last`` (excluded), of the old ones that hold their subjects."""
    start, stop = first * LANES, min(last * LANES, len(part.ranks))
    ranks, offsets = part.ranks[start:stop], part.offsets[first : last + 1] - part.offsets[first]
    residues = np.full((int(offsets[-1]), LANES), PAD, dtype=np.uint8)
    subjects = np.empty(len(ranks), dtype=np.int64)
    for begin, end in _read_together(part.segment, ranks):
        blocks = ranks[[begin, end - 1]] // LANES
        chunk = part.segment.chunk(int(blocks[0]), int(blocks[1]) + 1, mask)
        places = ranks[begin:end] - blocks[0] * LANES
        subjects[begin:end] = chunk.subjects[places]
        _copy(chunk, places, residues, offsets, begin)
    return Chunk(residues, offsets, RunLengths.of(part.lengths[start:stop]), subjects)


def _read_together(segment: Segment, ranks: IntArray) -> Iterator[tuple[int, int]]:
    """Yield runs of subjects whose blocks are read together: neither too many of them, nor with much between."""
    columns = segment.block_offsets
    begins, ends = columns[ranks // LANES] * LANES, columns[ranks // LANES + 1] * LANES
    far = np.flatnonzero(begins[1:] - ends[:-1] > NEAR_BYTES) + 1
    for begin, end in pairwise([0, *far.tolist(), len(ranks)]):
        at = begin
        while at < end:
            until = int(np.searchsorted(ends[at:end], begins[at] + READ_BYTES_AT_ONCE, side="right")) + at
            until = max(until, int(np.searchsorted(begins[at:end], begins[at], side="right")) + at)
            yield at, until
            at = until


def _copy(chunk: Chunk, places: IntArray, residues: npt.NDArray[np.uint8], offsets: IntArray, first: int) -> None:
    """Copy subjects of a chunk, by their places there, ascending, to lanes of new blocks from the ``first`` on."""
    old, new = places // LANES, (np.arange(len(places)) + first) // LANES
    cuts = np.flatnonzero((np.diff(old) != 0) | (np.diff(new) != 0)) + 1
    lanes = places % LANES
    bounds = [0, *cuts.tolist(), len(places)]
    begins, columns = chunk.column_offsets[old[bounds[:-1]]].tolist(), np.diff(chunk.column_offsets)[old[bounds[:-1]]]
    to, rows = offsets[new[bounds[:-1]]].tolist(), np.diff(offsets)[new[bounds[:-1]]]
    counts = np.minimum(columns, rows).tolist()
    for (begin, end), source, target, n in zip(pairwise(bounds), begins, to, counts, strict=True):
        lane, block = (begin + first) % LANES, chunk.residues[source : source + n]
        residues[target : target + n, lane : lane + end - begin] = block[:, lanes[begin:end]]
