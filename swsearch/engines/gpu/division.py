"""Dividing a database over devices: which blocks of a chunk go where, and what of a database each device can hold.

Blocks are dealt like cards, so that every device gets long and short subjects alike and what it holds looks like the
whole database, only smaller. Results say places in the chunk that was divided, whoever found them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsearch.blocks import LANES, Chunk, IntArray, RunLengths
from swsearch.engines.base import Candidates, Engine, LoadedChunk, Workload

GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, whole numbers taken off, fill the span from 0 to 1 more evenly than those of any other number."""

SLACK = 1.02
"""DeviceRoom for residues that a device has beyond its share, as blocks are not divided."""

SLACK_BLOCKS = 8
"""Blocks, each as large as the largest, that there is room for in addition: a choice."""

STEPS_OF_SHARES = 12
"""Halvings in which the largest share that fits a device is found; the last one is a four-thousandth."""


@dataclass
class DevicePiece:
    """Some blocks of a chunk, for one device.

    Parameters
    ----------
    firsts : ndarray, shape (n_blocks,), int64
        The place of each block's first subject in the chunk that results refer to.
    source : Chunk or None
        With residues; None when they are on the device.
    blocks : ndarray, shape (n_blocks,), int64
        Which blocks of the source, ascending.
    loaded : LoadedChunk or None
        What the device's engine made of it, where it stays.
    """

    firsts: IntArray
    source: Chunk | None
    blocks: IntArray
    loaded: LoadedChunk | None = None

    def chunk(self) -> Chunk:
        """Return the blocks as a chunk of their own, whose subjects are unnamed."""
        assert self.source is not None
        return blocks_of(self.source, self.blocks)

    def places(self, found: IntArray) -> IntArray:
        """Return where subjects of the piece, shape (n,), stand in the chunk that results refer to."""
        places: IntArray = self.firsts[found // LANES] + found % LANES
        return places

    def load(self, engine: Engine) -> None:
        """Bring the piece to a device, where it stays; the host need not have it any more."""
        self.loaded = engine.load(self.chunk())
        self.source = None
        forget_names(self.loaded)

    def moved(self, candidates: Candidates) -> Candidates:
        """Return candidates of the piece as those of the chunk that results refer to."""
        return replace(candidates, places=self.places(candidates.places))


def merged(engine: Engine, pieces: Sequence[DevicePiece]) -> list[DevicePiece]:
    """Let a device's engine make fewer of pieces that stay, in the order in which they were loaded."""
    runs: list[list[DevicePiece]] = []
    for piece in pieces:
        assert piece.loaded is not None
        before = runs[-1][-1].loaded if runs else None
        if before is not None and _go_on(before.chunk, piece.loaded.chunk):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    found: list[DevicePiece] = []
    for run in runs:
        made = engine.merge([piece.loaded for piece in run if piece.loaded is not None])
        if len(made) < len(run):
            firsts = np.concatenate([piece.firsts for piece in run])
            found.append(DevicePiece(firsts, None, np.empty(0, dtype=np.int64), made[0]))
        else:
            found += run
        for loaded in [*made, *(piece.loaded for piece in run if piece.loaded is not None)]:
            forget_names(loaded)
    return found


def _go_on(before: Chunk, after: Chunk) -> bool:
    """Say whether one chunk may follow another in a longer one."""
    if before.n_subjects % LANES or not before.n_subjects:
        return False
    return bool(before.runs.values[-1] >= after.runs.longest)


def forget_names(loaded: LoadedChunk) -> None:
    """Let a device's chunk forget which subjects it has, which takes memory and is known elsewhere."""
    loaded.chunk.subjects = unnamed(loaded.chunk.n_subjects)


def unnamed(n_subjects: int) -> IntArray:
    """Return as many subjects without names, shape (n_subjects,), which takes no memory."""
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
        runs = RunLengths.of(chunk.runs.at(places))
    return Chunk(residues, offsets, runs, unnamed(n_subjects))


def cut(chunk: Chunk, n_bytes: int) -> Iterator[DevicePiece]:
    """Cut a chunk into pieces of at most ``n_bytes`` bytes, or of one block."""
    ends = chunk.column_offsets[1:] * LANES
    first = 0
    while first < chunk.n_blocks:
        begun = int(chunk.column_offsets[first]) * LANES
        last = max(int(np.searchsorted(ends, begun + n_bytes, side="right")), first + 1)
        blocks = np.arange(first, last, dtype=np.int64)
        yield DevicePiece(blocks * LANES, chunk, blocks)
        first = last


class DeviceRoom:
    """What a device still has room for.

    Parameters
    ----------
    n_bytes, n_blocks : int
        Interleaved residues, and blocks.
    """

    def __init__(self, n_bytes: int, n_blocks: int) -> None:
        self.n_bytes, self.n_blocks = n_bytes, n_blocks

    def less(self, n_bytes: int, n_blocks: int) -> DeviceRoom:
        """Return what is left when so much is taken."""
        return DeviceRoom(self.n_bytes - n_bytes, self.n_blocks - n_blocks)

    @property
    def is_short(self) -> bool:
        """Whether more was taken than there was."""
        return self.n_bytes < 0 or self.n_blocks < 0


class Dealer:
    """Deals blocks to devices by their weights.

    Parameters
    ----------
    weights : sequence of float
        One for each device, not negative.
    rooms : sequence of DeviceRoom
        What each has room for.
    """

    def __init__(self, weights: Sequence[float], rooms: Sequence[DeviceRoom]) -> None:
        self._ends = np.cumsum(weights) / sum(weights)
        self._ends[-1] = 2.0  # rounding may leave it below 1
        self._rooms, self._dealt = list(rooms), 0

    def deal(self, chunk: Chunk) -> list[DevicePiece | None] | None:
        """Return each device's piece of a chunk, None where it gets nothing; None if there is no room for all."""
        sizes = np.diff(chunk.column_offsets) * LANES
        numbers = np.arange(self._dealt, self._dealt + chunk.n_blocks)
        owners = np.searchsorted(self._ends, (numbers + 0.5) * GOLDEN % 1.0, side="right")
        left = self._left(owners, sizes)
        while short := [device for device, room in enumerate(left) if room.is_short]:
            widest = max(range(len(left)), key=lambda device: (left[device].n_blocks > 0, left[device].n_bytes))
            last = np.flatnonzero(owners == short[0])[-1:]
            if left[widest].less(int(sizes[last].sum()), 1).is_short:
                return None
            owners[last] = widest
            left = self._left(owners, sizes)
        self._dealt, self._rooms = self._dealt + chunk.n_blocks, left
        each = [np.flatnonzero(owners == device).astype(np.int64) for device in range(len(left))]
        return [DevicePiece(blocks * LANES, chunk, blocks) if len(blocks) else None for blocks in each]

    def _left(self, owners: IntArray, sizes: IntArray) -> list[DeviceRoom]:
        taken = np.bincount(owners, weights=sizes, minlength=len(self._rooms)).astype(np.int64)
        counts = np.bincount(owners, minlength=len(self._rooms))
        return [room.less(int(n), int(k)) for room, n, k in zip(self._rooms, taken, counts, strict=True)]


@dataclass(frozen=True)
class Share:
    """A device's part of a database.

    Parameters
    ----------
    part : float
        Of all blocks.
    workload : Workload
        The job as it is for this device.
    room : DeviceRoom
        What the device will have room for.
    """

    part: float
    workload: Workload
    room: DeviceRoom


def share_of(workload: Workload, part: float) -> Share:
    """Return what a device that gets a part of the blocks has to do."""
    runs = RunLengths.counted([workload.lengths])
    longest = int(runs.block_columns().max(initial=8)) * LANES
    n_blocks = -(-len(runs) // LANES)
    blocks = min(int(n_blocks * part * SLACK) + SLACK_BLOCKS, n_blocks)
    n_bytes = min(int(workload.residue_bytes * part * SLACK) + SLACK_BLOCKS * longest, workload.residue_bytes)
    ends = np.minimum(np.ceil(runs.ends * (blocks / max(n_blocks, 1))), len(runs)).astype(np.int64)
    stays = np.diff(ends, prepend=0) > 0
    thinned = RunLengths(runs.values[stays], ends[stays])
    # segments of a database end with blocks that are not full, of which there are more than lengths tell
    room = DeviceRoom(n_bytes, blocks + SLACK_BLOCKS + workload.n_segments)
    return Share(part, replace(workload, residue_bytes=n_bytes, lengths=thinned), room)


def divided(weights: Sequence[float], fits: Callable[[int, float], bool]) -> list[float] | None:
    """Divide a database by weights, as far as each device's part fits it.

    Parameters
    ----------
    weights : sequence of float
        One for each device; positive.
    fits : callable
        Says whether a part fits a device: from the device's place and the part.

    Returns
    -------
    list of float, or None
        The parts, which are 1 together; None if the devices do not hold the database together.
    """
    full: dict[int, float] = {}
    while len(full) < len(weights):
        left = 1.0 - sum(full.values())
        total = sum(weight for device, weight in enumerate(weights) if device not in full)
        parts = [full.get(device, weight / total * left) for device, weight in enumerate(weights)]
        short = [device for device in range(len(weights)) if device not in full and not fits(device, parts[device])]
        if not short:
            return parts
        for device in short:
            full[device] = _largest(lambda part, device=device: fits(device, part), parts[device])  # type: ignore[misc]
    return None


def _largest(fits: Callable[[float], bool], too_much: float) -> float:
    """Return the largest part that fits, or 0."""
    low, high = 0.0, too_much
    for _ in range(STEPS_OF_SHARES):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
