"""The memory plan: what the engine will allocate, known and said before any work starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.blocks import LANES, IntArray, block_columns
from swsearch.engines.gpu.device import GpuMemoryError

MIB = 1 << 20

CHUNK_BYTES = 64 * MIB
"""Most residues in a chunk: small enough that scoring starts soon after the first bytes were read."""

LEAST_CHUNK_BYTES = 1 * MIB
"""Least residues in a chunk; a block of 64 long subjects may need more."""

FREE_SHARE = 0.92
"""Share of the device's free memory that is taken at most, where no other bound is given."""

RESIDENT_SLOTS, STREAMED_SLOTS = 2, 6
"""Chunks in work at a time: while the last jobs of one are running, the next begins. Small chunks of long subjects
are few jobs, and the longest take a while on some of the device, so that it needs more of them to be busy."""

LONG_COLUMNS = 3_072
"""Subjects from this length on go to the wavefront kernel: as a job of the inter-task kernel they would take
longer than a block's fair share of the scan. On Swiss-Prot 2,048 to 6,144 do equally well (H200,
benchmarks/speed/gpu_variants.py, November 2026)."""

TILE_PADDING = 512
"""Bytes behind the last tile of a chunk: the kernel fetches one tile ahead."""

PART_QUERIES = 256
"""Most queries that are scored together: their thresholds by length stand on the device at a time."""

HIT_BYTES = 12
"""Bytes of a hit in the device's list."""

BOUNDARY_SHARE, WAVEFRONT_SHARE = 0.42, 0.13
"""Shares of a small budget for what the inter-task and the wavefront kernels keep between passes."""

BOUNDARY_BYTES = 8
"""H and F of a column."""


@dataclass(frozen=True)
class MemoryPlan:
    """How the device's memory is divided.

    Parameters
    ----------
    budget : int
        Bytes that may be used.
    chunk_bytes : int
        Most interleaved residues of a chunk.
    resident : bool
        Whether the whole database stays on the device.
    residues : int
        Bytes for residues, lengths and offsets of all chunks that are held.
    queries : int
        Bytes for queries' scores by letter, strips and thresholds.
    n_slots : int
        Chunks in work at a time.
    boundary, wavefront : int
        Bytes for what blocks of the inter-task kernel keep of a score matrix between passes, one region for each
        multiprocessor, and for what the wavefront kernel keeps; shared by all slots.
    scores, hits, small : int
        Bytes in each slot: scores of a chunk, the list of hits, and small tables.
    at_once : int
        Most queries that are scored together.
    columns : float
        Columns of 64 subjects in the whole database, for each multiprocessor.
    region_columns : int
        Columns of 32 lanes that a region of ``boundary`` holds.
    """

    budget: int
    chunk_bytes: int
    resident: bool
    residues: int
    queries: int
    boundary: int
    wavefront: int
    n_slots: int
    scores: int
    hits: int
    small: int
    at_once: int
    columns: float
    region_columns: int

    @property
    def slot(self) -> int:
        """Bytes of a slot."""
        return self.scores + self.hits + self.small + 4096

    @property
    def total(self) -> int:
        """Bytes that are allocated."""
        return self.residues + self.queries + self.boundary + self.wavefront + self.n_slots * self.slot

    def __str__(self) -> str:
        kind = "resident" if self.resident else "streamed"
        return (
            f"{_mib(self.total)} of {_mib(self.budget)} allowed: residues {_mib(self.residues)} ({kind}, chunks of "
            f"{_mib(self.chunk_bytes)}), queries {_mib(self.queries)}, boundaries "
            f"{_mib(self.boundary + self.wavefront)}, and in each of {self.n_slots} slots scores "
            f"{_mib(self.scores)}, hits {_mib(self.hits + self.small)}"
        )


@dataclass(frozen=True)
class Demand:
    """What a job needs, in numbers.

    Parameters
    ----------
    residue_bytes : int
        Interleaved residues of the whole database.
    longest : int
        Longest subject, in residues.
    blocks : ndarray, shape (n_blocks,), int64
        Bytes of each block, ascending.
    n_queries, n_rows : int
        Queries and their residues in the largest group.
    multiprocessors : int
        Of the device.
    """

    residue_bytes: int
    longest: int
    blocks: IntArray
    n_queries: int
    n_rows: int
    multiprocessors: int

    @property
    def longest_block(self) -> int:
        """Bytes of the largest block."""
        return int(self.blocks[-1])

    def most_subjects(self, n_bytes: int) -> int:
        """Return how many subjects a chunk of ``n_bytes`` bytes holds at most: the shortest ones."""
        n_blocks = int(np.searchsorted(np.cumsum(self.blocks), n_bytes, side="right")) + 1
        return LANES * min(n_blocks, len(self.blocks))


def make_plan(demand: Demand, budget: int) -> MemoryPlan:
    """Divide a budget.

    Raises
    ------
    GpuMemoryError
        If the job cannot be done within the budget.
    """
    plan = _try_plan(demand, budget)
    if plan is None:
        raise GpuMemoryError(
            f"gpu memory: {_mib(budget)} are too little for this job, expected at least "
            f"{_least_budget(demand, budget) // MIB:,} MiB; allow more with --gpu-memory, or use --engine cpu"
        )
    return plan


def _least_budget(demand: Demand, too_little: int) -> int:
    """Find the least budget, in whole MiB, that is enough."""
    low = too_little // MIB
    high = max(2 * low, 1)
    while _try_plan(demand, high * MIB) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _try_plan(demand, middle * MIB) else (middle, high)
    return high * MIB


def _try_plan(demand: Demand, budget: int) -> MemoryPlan | None:
    # int16 scores of 32 letters for half a row, int8 ones for the wavefront, rounding up to strips and passes
    queries = _round(104 * demand.n_rows + 10_000 * min(demand.n_queries, PART_QUERIES) + MIB)
    hits = _round(min(1 << 16, max(1 << 12, budget // 2000)) * HIT_BYTES)
    per_query = 4 * (demand.longest + 4)
    at_once = max(1, min(demand.n_queries, PART_QUERIES, budget // 20 // per_query))
    queries += _round(at_once * per_query)
    small = _round(96 * 1024)
    columns = min(LONG_COLUMNS, demand.longest + 8)
    per_warp = (demand.longest + 8) * BOUNDARY_BYTES
    # a block may have two pipelines
    regions = demand.multiprocessors * 32 * BOUNDARY_BYTES
    region_columns = max(min(2 * columns, int(budget * BOUNDARY_SHARE) // regions), 8)
    boundary = _round(regions * region_columns + 4 * demand.multiprocessors + 256)
    wavefront = _round(max(min(512 * per_warp, int(budget * WAVEFRONT_SHARE)), 8 * per_warp))
    columns_each = demand.residue_bytes / LANES / demand.multiprocessors
    # a chunk's numbers: a length a subject, the first tile of each block
    # twice: once more for all chunks together
    everything = demand.residue_bytes + 2 * (4 * LANES + 4) * len(demand.blocks) + TILE_PADDING
    everything += 2 * 512 * (demand.residue_bytes // LEAST_CHUNK_BYTES + 16)
    # a resident database may be scored as one chunk, once it is loaded
    for resident, merged in ((True, True), (True, False), (False, False)):
        n_slots = RESIDENT_SLOTS if resident else STREAMED_SLOTS
        chunk = min(CHUNK_BYTES, demand.residue_bytes)
        while chunk >= min(LEAST_CHUNK_BYTES, demand.residue_bytes):
            held = max(chunk, demand.longest_block)
            subjects = demand.most_subjects(demand.residue_bytes if merged else held)
            scores = _round(4 * min(subjects * at_once, max(subjects, budget // 64)))
            one = _round(held + TILE_PADDING + 5 * subjects + 4096)
            residues = _round(everything) if resident else n_slots * one
            plan = MemoryPlan(
                budget, chunk, resident, residues, queries, boundary, wavefront, n_slots, scores, hits, small,
                at_once, columns_each, region_columns,
            )  # fmt: skip
            if plan.total <= budget:
                return plan
            chunk //= 2
    return None


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / MIB:,.0f} MiB"


def _round(n_bytes: int) -> int:
    return -(-n_bytes // 4096) * 4096


class Region:
    """A part of the device's memory that is handed out from its start.

    Parameters
    ----------
    address : int
        Its start on the device.
    n_bytes : int
        Its size.
    """

    def __init__(self, address: int, n_bytes: int) -> None:
        self.address, self.n_bytes, self.used, self.end = address, n_bytes, 0, n_bytes

    def take(self, n_bytes: int) -> int:
        """Hand out memory, aligned to 256 bytes; return its address."""
        start = -(-self.used // 256) * 256
        self._check(start, n_bytes)
        self.used = start + n_bytes
        return self.address + start

    def take_end(self, n_bytes: int) -> int:
        """Hand out memory at the end, so that what stands at the start is without gaps."""
        start = (self.end - n_bytes) // 256 * 256
        self._check(self.used, self.end - start)
        self.end = start
        return self.address + start

    def _check(self, start: int, n_bytes: int) -> None:
        if start + n_bytes > self.end:
            raise GpuMemoryError(
                f"gpu memory: {start + n_bytes:,} bytes needed where {self.end:,} were planned; please report it"
            )

    def fits(self, *sizes: int) -> bool:
        """Say whether memory of these sizes can still be handed out."""
        at = self.used
        for n_bytes in sizes:
            at = -(-at // 256) * 256 + n_bytes
        return at <= self.end

    def reset(self) -> None:
        """Take everything back."""
        self.used, self.end = 0, self.n_bytes


def demand_of(
    lengths: npt.NDArray[np.integer], n_queries: int, n_rows: int, residue_bytes: int, multiprocessors: int
) -> Demand:
    """Count what a job needs from the lengths of all subjects and the size of a group of queries."""
    ordered = np.sort(lengths)[::-1]
    longest = max(int(ordered[0]) if len(ordered) else 0, 1)
    blocks = np.maximum(block_columns(ordered), 8) * LANES if len(ordered) else np.array([8 * LANES])
    return Demand(
        residue_bytes=max(residue_bytes, LANES * 8),
        longest=longest,
        blocks=np.sort(blocks),
        n_queries=max(n_queries, 1),
        n_rows=n_rows,
        multiprocessors=multiprocessors,
    )
