"""Partitioning a database over devices: which blocks of a chunk go where, and how much each device can hold.

Blocks are dealt like cards, so that every device gets long and short subjects alike. Results name places in the chunk
that was partitioned, whichever device found them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from swsearch.blocks import LANES, Chunk, IntArray, RunLengths
from swsearch.engines.base import ChunkHits, Engine, LoadedChunk, Workload

GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, fill the span from 0 to 1 more evenly than those of any other number."""

SLACK = 1.02
"""Capacity for residues that a device has beyond its share, as blocks are not divided."""

SLACK_BLOCKS = 8
"""Blocks, each as large as the largest, that there is capacity for in addition: a choice."""

BISECTION_STEPS = 12
"""Halvings in which the largest share that fits a device is found; the last one is a four-thousandth."""


@dataclass
class DevicePiece:
    """Some blocks of a chunk, for one device.

    Parameters
    ----------
    firsts : ndarray, shape (n_blocks,), int64
        Place of each block's first subject in the chunk that results refer to.
    source : Chunk or None
        The chunk with residues; None once the piece is on the device.
    blocks : ndarray, shape (n_blocks,), int64
        Which blocks of the source, ascending.
    loaded : LoadedChunk or None
        The piece on the device, if it is resident.
    """

    firsts: IntArray
    source: Chunk | None
    blocks: IntArray
    loaded: LoadedChunk | None = None

    def chunk(self) -> Chunk:
        """Return the blocks as a chunk of their own, whose subjects are unnamed."""
        assert self.source is not None
        return blocks_of(self.source, self.blocks)

    def load(self, engine: Engine) -> None:
        """Load the piece on a device, where it stays, and drop the source."""
        self.loaded = engine.load(self.chunk())
        self.source = None

    def places(self, found: IntArray) -> IntArray:
        """Return the places of the piece's subjects, shape (n,), in the chunk that results refer to."""
        places: IntArray = self.firsts[found // LANES] + found % LANES
        return places

    def moved(self, candidates: ChunkHits) -> ChunkHits:
        """Return candidates of the piece as those of the chunk that results refer to."""
        return replace(candidates, indices=self.places(candidates.indices))


def merge_pieces(pieces: Sequence[DevicePiece], engine: Engine) -> list[DevicePiece]:
    """Merge the resident pieces of a device, in the order in which they were loaded, where their lengths go on."""
    runs: list[list[tuple[DevicePiece, LoadedChunk]]] = []
    for piece in pieces:
        assert piece.loaded is not None
        if runs and _continues(runs[-1][-1][1].chunk, piece.loaded.chunk):
            runs[-1].append((piece, piece.loaded))
        else:
            runs.append([(piece, piece.loaded)])
    found: list[DevicePiece] = []
    for run in runs:
        parts = [loaded for _, loaded in run]
        merged = engine.merge(parts)
        if len(merged) < len(run):
            firsts = np.concatenate([piece.firsts for piece, _ in run])
            found.append(DevicePiece(firsts, None, np.empty(0, dtype=np.int64), merged[0]))
        else:
            found += [piece for piece, _ in run]
        for each in (*merged, *parts):  # names take memory, and the whole chunk has them
            each.chunk.subjects = _unnamed(each.chunk.n_subjects)
    return found


def _continues(before: Chunk, after: Chunk) -> bool:
    """Return whether one chunk may follow another in a longer one."""
    if before.n_subjects % LANES or not before.n_subjects:
        return False
    return bool(before.runs.values[-1] >= after.runs.longest)


def _unnamed(n_subjects: int) -> IntArray:
    """Return as many subjects without names, shape (n_subjects,), in no memory."""
    return np.broadcast_to(np.int64(0), (n_subjects,))


def blocks_of(chunk: Chunk, blocks: IntArray) -> Chunk:
    """Return some blocks of a chunk as a chunk; without a copy where they stand one after the other.

    Parameters
    ----------
    chunk : Chunk
        With residues.
    blocks : ndarray, shape (n_blocks,), int64
        Which ones, ascending; at least one.
    """
    starts = blocks * LANES
    n_subjects = int(np.minimum(starts + LANES, chunk.n_subjects).sum() - starts.sum())
    columns = np.diff(chunk.column_offsets)[blocks]
    offsets = np.concatenate(([0], np.cumsum(columns))).astype(np.int64)
    first, last = int(blocks[0]), int(blocks[-1])
    if last - first + 1 == len(blocks):
        residues = chunk.residues[chunk.column_offsets[first] : chunk.column_offsets[last + 1]]
        runs = chunk.runs.part(first * LANES, first * LANES + n_subjects)
    else:
        residues = np.empty((int(offsets[-1]), LANES), dtype=np.uint8)
        for place, block in enumerate(blocks.tolist()):
            residues[offsets[place] : offsets[place + 1]] = chunk.block(block)
        places = (starts[:, None] + np.arange(LANES)).reshape(-1)[:n_subjects]
        runs = RunLengths.from_lengths(chunk.runs.at(places))
    return Chunk(residues, offsets, runs, _unnamed(n_subjects))


def split_chunk(chunk: Chunk, n_bytes: int) -> Iterator[DevicePiece]:
    """Split a chunk into pieces of at most ``n_bytes`` bytes, or of one block."""
    ends = chunk.column_offsets[1:] * LANES
    first = 0
    while first < chunk.n_blocks:
        started = int(chunk.column_offsets[first]) * LANES
        last = max(int(np.searchsorted(ends, started + n_bytes, side="right")), first + 1)
        blocks = np.arange(first, last, dtype=np.int64)
        yield DevicePiece(blocks * LANES, chunk, blocks)
        first = last


@dataclass(frozen=True)
class DeviceShare:
    """A device's share of a database.

    Parameters
    ----------
    part : float
        Of all blocks; positive.
    workload : Workload
        The job as it is for this device.
    n_blocks : int
        Blocks that the device has capacity for; the workload's ``residue_bytes`` are its capacity for residues.
    """

    part: float
    workload: Workload
    n_blocks: int


class BlockPartitioner:
    """Deals the blocks of chunk after chunk to devices by the parts that they have."""

    def __init__(self, shares: Sequence[DeviceShare]) -> None:
        parts = [share.part for share in shares]
        self._ends = np.cumsum(parts) / sum(parts)
        self._ends[-1] = 2.0  # rounding may leave it below 1
        self._left = np.array([(share.workload.residue_bytes, share.n_blocks) for share in shares], dtype=np.int64)
        self._n_dealt = 0

    def deal(self, chunk: Chunk) -> list[DevicePiece | None] | None:
        """Return each device's piece of a chunk, None where it gets nothing; None if the devices are full."""
        sizes = np.stack((np.diff(chunk.column_offsets) * LANES, np.ones(chunk.n_blocks, dtype=np.int64)), axis=1)
        numbers = np.arange(self._n_dealt, self._n_dealt + chunk.n_blocks)
        owners = np.searchsorted(self._ends, (numbers + 0.5) * GOLDEN % 1.0, side="right")
        left = self._left.copy()
        np.subtract.at(left, owners, sizes)
        while len(full := np.flatnonzero((left < 0).any(axis=1))):
            widest = max(range(len(left)), key=lambda device: (left[device, 1] > 0, left[device, 0]))
            last = np.flatnonzero(owners == full[0])[-1]
            if (left[widest] < sizes[last]).any():
                return None
            owners[last] = widest
            left[full[0]] += sizes[last]
            left[widest] -= sizes[last]
        self._n_dealt, self._left = self._n_dealt + chunk.n_blocks, left
        each = [np.flatnonzero(owners == device).astype(np.int64) for device in range(len(left))]
        return [DevicePiece(blocks * LANES, chunk, blocks) if len(blocks) else None for blocks in each]


def share_of(workload: Workload, part: float) -> DeviceShare:
    """Return the share of a device that gets a part of the blocks."""
    runs = RunLengths.from_unsorted([workload.lengths])
    longest = int(runs.block_columns().max(initial=8)) * LANES
    n_blocks = -(-len(runs) // LANES)
    blocks = min(int(n_blocks * part * SLACK) + SLACK_BLOCKS, n_blocks)
    n_bytes = min(int(workload.residue_bytes * part * SLACK) + SLACK_BLOCKS * longest, workload.residue_bytes)
    ends = np.minimum(np.ceil(runs.ends * (blocks / max(n_blocks, 1))), len(runs)).astype(np.int64)
    is_kept = np.diff(ends, prepend=0) > 0
    thinned = RunLengths(runs.values[is_kept], ends[is_kept])
    # segments of a database end with partly filled blocks, of which there are more than lengths tell
    n_blocks = blocks + SLACK_BLOCKS + workload.n_segments
    return DeviceShare(part, replace(workload, residue_bytes=n_bytes, lengths=thinned), n_blocks)


def partition_by_weight(weights: Sequence[float], fits: Callable[[int, float], bool]) -> list[float] | None:
    """Divide a database by positive weights, as far as each device's part fits it.

    Parameters
    ----------
    weights : sequence of float
        One for each device; positive.
    fits : callable
        Whether a part fits a device: called with the device's place and the part.

    Returns
    -------
    list of float, or None
        The parts, of sum 1; None if the devices do not hold the database together.
    """
    full: dict[int, float] = {}
    while len(full) < len(weights):
        left = 1.0 - sum(full.values())
        total = sum(weight for device, weight in enumerate(weights) if device not in full)
        parts = [full.get(device, weight / total * left) for device, weight in enumerate(weights)]
        too_large = [
            device for device in range(len(weights)) if device not in full and not fits(device, parts[device])
        ]
        if not too_large:
            return parts
        full.update({device: _largest_part(partial(fits, device), parts[device]) for device in too_large})
    return None


def _largest_part(fits: Callable[[float], bool], too_large: float) -> float:
    """Return the largest part that fits, or 0."""
    low, high = 0.0, too_large
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
