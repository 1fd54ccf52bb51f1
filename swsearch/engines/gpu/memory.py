"""The memory plan: what the engine will allocate, known and said before any work starts.

Each number below says where it comes from: the layout of what it counts, a measurement, or a choice. Results never
depend on them: a plan that is short of memory scores fewer queries or smaller chunks at a time, or says that it
cannot be done. ``tests/gpu/test_memory.py`` holds that what is handed out fits what was planned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swsearch.blocks import LANES, IntArray, RunLengths
from swsearch.engines.gpu.device import GpuMemoryError

MIB = 1 << 20

CHUNK_BYTES = 64 * MIB
"""Most residues in a chunk: small enough that scoring starts soon after the first bytes were read.

A choice: no other size was measured. With it, Swiss-Prot (186 MiB, three chunks) is read and copied in 0.112 s (H200,
2026-11-21, part ``load`` of benchmarks/speed/gpu.py, benchmarks/results/gpu.txt).
"""

LEAST_CHUNK_BYTES = 1 * MIB
"""Least residues in a chunk; a block of 64 long subjects may need more.

A choice: such a chunk of proteins is about 45 blocks, fewer than an H200 has multiprocessors. A budget that cannot
hold such chunks is refused.
"""

FREE_SHARE = 0.92
"""Share of the device's free memory that is taken at most, where no other bound is given.

A choice that leaves some to the driver and to other processes. It is safe because an allocation that fails is tried
again with less (`GpuEngine._make_room`).
"""

RESIDENT_SLOTS, STREAMED_SLOTS = 2, 6
"""Chunks in work at a time: while the last jobs of one are running, the next begins. Small chunks of long subjects
are few jobs, and the longest take a while on some of the device, so that it needs more of them to be busy.

The numbers are a choice; what six and the budgets below reach with 100 MiB is part ``streamed`` of
benchmarks/speed/gpu.py (benchmarks/results/gpu.txt).
"""

LONG_COLUMNS = 3_072
"""Subjects from this length on go to the wavefront kernel: as a job of the inter-task kernel they would take
longer than a block's fair share of the scan.

Measured with random subjects of Swiss-Prot's lengths: 2,048 to 6,144 columns differ by 3 % or less, 1,024 columns
lose up to 12 % (H200, 2026-11-21, part ``long`` of benchmarks/speed/gpu_variants.py,
benchmarks/results/gpu_variants.txt).
"""

TILE_PADDING = 512
"""Bytes after the last tile of a chunk: the kernel fetches one tile ahead, and a tile is 8 columns of 64 subjects."""

PART_QUERIES = 256
"""Most queries that are scored together: their thresholds by length stand on the device at a time.

A choice: it bounds the thresholds, which take 36 MB with subjects of up to 35,213 residues (Swiss-Prot's longest).
"""

HIT_BYTES = 12
"""Bytes of a hit in the device's list: three 32-bit numbers, ``Found`` of ``cuda/scores.cu``."""

LEAST_HITS, MOST_HITS, BYTES_FOR_A_HIT = 1 << 12, 1 << 20, 2000
"""Bounds for the entries of the list of hits, and the bytes of the budget that there is an entry for.

A choice: where hits are more than the list holds, all scores come back instead and hits are looked for on the host.
"""

BOUNDARY_BUDGET, WAVEFRONT_BUDGET = 0.33, 0.2
"""Shares of a small budget for what the inter-task and the wavefront kernels keep between passes.

With less for the inter-task kernel more subjects are too long for it; with less for the wavefront kernel, which takes
these, it has fewer warps. With 100 MiB, 0.33 and 0.2 took 1.56 to 1.66 s, 0.4 and 0.13 1.73 s, 0.25 and 0.28 1.68 s
(20 queries, Swiss-Prot, H100, part ``streamed`` of benchmarks/speed/gpu.py, November 2026).
"""

BOUNDARY_BYTES = 8
"""H and F of a column, 32 bits each."""

MOST_WAVEFRONT_WARPS, LEAST_WAVEFRONT_WARPS = 512, 8
"""Warps of the wavefront kernel that there is room for between passes, with the longest subject for each.

A choice: about four for each multiprocessor of an H200. With less room fewer warps are launched; most subjects are
shorter than the longest, so that more than these fit.
"""

RESCORED_BUDGET, LEAST_RESCORED_WARPS = 0.006, 2
"""Share of a budget for what the wavefront kernel keeps in each slot when it scores pairs again, and the warps that
there is room for at least. If slots shared this memory too, the wavefront kernel of each turn would wait for the
inter-task kernel of the turn before.
"""

ROW_BYTES, QUERY_BYTES = 72, 10_000
"""Bytes for each query residue, and for each query in addition.

From the layouts of `tracks`: 32 scores of 8 bits for each of the two kernels; the rest is for rounding up to strips
and passes.
"""

QUERY_AREAS = 2
"""Areas for queries where the budget has room: one is filled while what stands in another is scored. With one, each
part of the queries would wait for the one before to be done."""

THRESHOLD_SHARE = 20
"""One in so many bytes of the budget may hold thresholds: a choice; with less, fewer queries are scored together."""

SCORE_SHARE = 16
"""One in so many bytes of the budget may hold a slot's scores, or as many as one query needs: a choice; with less,
fewer queries are scored together."""

SMALL_BYTES = 96 * 1024
"""Small tables of a turn: queries and boundary offsets of each launch, and least scores.

A choice: the offsets of a launch are 8 KiB on 132 multiprocessors and there are few launches. A turn that needed more
would end with an error, not with wrong results (`Region.take`).
"""

SLOT_EXTRA_BYTES = 4096
"""Bytes that a slot has in addition: its counters (1 KiB), and what is lost between parts that begin at multiples of
256."""


@dataclass(frozen=True)
class MemoryPlan:
    """Division of the device's memory.

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
    queries, n_areas : int
        Bytes for queries' scores by letter, strips and thresholds, and the areas that they are divided into.
    n_slots : int
        Chunks in work at a time.
    boundary, wavefront : int
        Bytes for what blocks of the inter-task kernel keep of a score matrix between passes, one region for each
        multiprocessor, and for what the wavefront kernel keeps; shared by all slots.
    rescored, scores, hits, small : int
        Bytes in each slot: what the wavefront kernel keeps when it scores pairs again, scores of a chunk, the list of
        hits, and small tables.
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
    n_areas: int
    boundary: int
    wavefront: int
    n_slots: int
    rescored: int
    scores: int
    hits: int
    small: int
    at_once: int
    columns: float
    region_columns: int

    @property
    def slot(self) -> int:
        """Bytes of a slot."""
        return self.rescored + self.scores + self.hits + self.small + SLOT_EXTRA_BYTES

    @property
    def total(self) -> int:
        """Bytes that are allocated."""
        return self.residues + self.queries + self.boundary + self.wavefront + self.n_slots * self.slot

    def __str__(self) -> str:
        kind = "resident" if self.resident else "streamed"
        boundaries = self.boundary + self.wavefront + self.n_slots * self.rescored
        return (
            f"{_mib(self.total)} of {_mib(self.budget)} allowed: residues {_mib(self.residues)} ({kind}, chunks of "
            f"{_mib(self.chunk_bytes)}), queries {_mib(self.queries)}, boundaries {_mib(boundaries)}, "
            f"and in each of {self.n_slots} slots scores {_mib(self.scores)}, hits {_mib(self.hits + self.small)}"
        )


@dataclass(frozen=True)
class Demand:
    """Sizes of a job, from which its memory is planned.

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
    n_segments : int
        Segments of the database: each has chunks of its own, and a last block that is partly filled.
    may_stay : bool
        Whether the whole database may stay on the device.
    """

    residue_bytes: int
    longest: int
    blocks: IntArray
    n_queries: int
    n_rows: int
    multiprocessors: int
    n_segments: int = 1
    may_stay: bool = True

    @property
    def longest_block(self) -> int:
        """Bytes of the largest block."""
        return int(self.blocks[-1])

    def most_subjects(self, n_bytes: int) -> int:
        """Return how many subjects a chunk of ``n_bytes`` bytes holds at most: the shortest ones."""
        n_blocks = int(np.searchsorted(np.cumsum(self.blocks), n_bytes, side="right")) + 1
        return LANES * min(n_blocks, len(self.blocks))

    @property
    def most_blocks(self) -> int:
        """Blocks of all segments at most: lengths tell those of one."""
        return len(self.blocks) + self.n_segments - 1


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
    """Return the plan that keeps the most on the device, or None if no plan fits the budget."""
    per_query = 4 * (demand.longest + 4)
    at_once = max(1, min(demand.n_queries, PART_QUERIES, budget // THRESHOLD_SHARE // per_query))
    area = _round(ROW_BYTES * demand.n_rows + QUERY_BYTES * min(demand.n_queries, PART_QUERIES) + MIB)
    area += _round(at_once * per_query)
    hits = _round(min(MOST_HITS, max(LEAST_HITS, budget // BYTES_FOR_A_HIT)) * HIT_BYTES)
    region_columns, boundary = _boundaries(demand, budget)
    per_warp = (demand.longest + 8) * BOUNDARY_BYTES
    wavefront = min(MOST_WAVEFRONT_WARPS * per_warp, int(budget * WAVEFRONT_BUDGET))
    wavefront = _round(max(wavefront, LEAST_WAVEFRONT_WARPS * per_warp))
    rescored = min(MOST_WAVEFRONT_WARPS * per_warp, int(budget * RESCORED_BUDGET))
    rescored = _round(max(rescored, LEAST_RESCORED_WARPS * per_warp))
    # a resident database may be scored as one chunk, once it is loaded
    for resident, merged in ((True, True), (True, False), (False, False))[0 if demand.may_stay else 2 :]:
        n_slots = RESIDENT_SLOTS if resident else STREAMED_SLOTS
        chunk = min(CHUNK_BYTES, demand.residue_bytes)
        while chunk >= min(LEAST_CHUNK_BYTES, demand.residue_bytes):
            held = max(chunk, demand.longest_block)
            subjects = LANES * demand.most_blocks if merged else demand.most_subjects(held)
            plan = MemoryPlan(
                budget=budget,
                chunk_bytes=chunk,
                resident=resident,
                residues=_all_chunks(demand) if resident else n_slots * _one_chunk(held, subjects),
                queries=QUERY_AREAS * area,
                n_areas=QUERY_AREAS,
                boundary=boundary,
                wavefront=wavefront,
                n_slots=n_slots,
                rescored=rescored,
                scores=_round(4 * min(subjects * at_once, max(subjects, budget // (4 * SCORE_SHARE)))),
                hits=hits,
                small=_round(SMALL_BYTES),
                at_once=at_once,
                columns=demand.residue_bytes / LANES / demand.multiprocessors,
                region_columns=region_columns,
            )
            if plan.total > budget:
                plan = replace(plan, queries=area, n_areas=1)
            if plan.total <= budget:
                return plan
            chunk //= 2
    return None


def _boundaries(demand: Demand, budget: int) -> tuple[int, int]:
    """Return the columns of a region for the inter-task kernel, and the bytes of all regions."""
    columns = min(LONG_COLUMNS, demand.longest + 8)
    # a block may have two pipelines
    regions = demand.multiprocessors * 32 * BOUNDARY_BYTES
    region_columns = max(min(2 * columns, int(budget * BOUNDARY_BUDGET) // regions), 8)
    # and a word for each region says whether a block has it
    return region_columns, _round(regions * region_columns + 4 * demand.multiprocessors + 256)


def _one_chunk(held: int, subjects: int) -> int:
    """Return the bytes of a chunk that holds ``held`` bytes of residues, with its numbers."""
    # 4 bytes for each subject's length and 4 for each block's first tile
    return _round(held + TILE_PADDING + 5 * subjects + 4096)


def _all_chunks(demand: Demand) -> int:
    """Return the bytes of all chunks together, with their numbers."""
    # lengths and first tiles twice: once more for all chunks as one
    everything = demand.residue_bytes + 2 * (4 * LANES + 4) * demand.most_blocks + TILE_PADDING
    # what is lost before each chunk's two arrays of numbers, which begin at multiples of 256
    return _round(everything + 2 * 512 * (demand.residue_bytes // LEAST_CHUNK_BYTES + 15 + demand.n_segments))


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
        """Reclaim all memory handed out."""
        self.used, self.end = 0, self.n_bytes


def demand_of(
    lengths: RunLengths | npt.NDArray[np.integer],
    n_queries: int,
    n_rows: int,
    residue_bytes: int,
    multiprocessors: int,
    n_segments: int = 1,
) -> Demand:
    """Count what a job needs.

    Parameters
    ----------
    lengths : RunLengths, or ndarray, shape (n_subjects,), any integer type
        Residues of every subject, in any order.
    n_queries, n_rows : int
        Queries and their residues in the largest group.
    residue_bytes : int
        Interleaved residues of the whole database.
    multiprocessors, n_segments : int
        Of the device, and of the database.
    """
    ordered = RunLengths.from_unsorted([lengths])
    longest = max(ordered.longest, 1)
    blocks = ordered.block_columns() * LANES if len(ordered) else np.array([8 * LANES])
    return Demand(
        residue_bytes=max(residue_bytes, LANES * 8),
        longest=longest,
        blocks=np.sort(blocks),
        n_queries=max(n_queries, 1),
        n_rows=n_rows,
        multiprocessors=multiprocessors,
        n_segments=n_segments,
    )
