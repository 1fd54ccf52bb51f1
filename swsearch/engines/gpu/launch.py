"""The launches for one part of the queries and one chunk: which subjects go to which kernel, and how.

What belongs here decides and launches. Memory, counters and streams come from the slot's memory (`slot_memory`); when
launches are begun and waited for is the slot's business (`slot`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import LANES
from swsearch.engines.gpu.compiler import Kernel
from swsearch.engines.gpu.kernels import THREADS
from swsearch.engines.gpu.limits import LARGEST, UNCERTAIN, WIDE, Lane16, half_lane
from swsearch.engines.gpu.memory import BOUNDARY_BYTES, LONG_COLUMNS
from swsearch.engines.gpu.queries import UploadedBatch, UploadedPart, UploadedWavefront
from swsearch.engines.gpu.slot_memory import GpuChunk, SlotMemory
from swsearch.engines.gpu.tracks import BatchLayout
from swsearch.engines.gpu.variants import BLOCK_WARPS, SCORES, BatchVariant, WavefrontVariant, choose_pipeline

FAIR_SHARE = 0.5
"""Most columns of a job of the inter-task kernel, as a share of what each multiprocessor does on average: longer
subjects would still be running when everything else is done, and go to the wavefront kernel (with 64,000 subjects
that takes a ninth less time; H200, benchmarks/speed/gpu_variants.py, November 2026)."""

WAVEFRONT_SHARE = 6
"""One in so many multiprocessors at least takes the wavefront kernel where it runs at the same time as the inter-task
kernel: a
twelfth is too few for short queries, a quarter gains nothing (H200, benchmarks/speed/gpu_variants.py, November
2026)."""

WAVEFRONT_COST = 1.5
"""Time of a cell in the wavefront kernel over one in the inter-task kernel (H100, 4,490 against 6,740 GCUPS,
benchmarks/speed/gpu_variants.py, November 2026)."""

LONE_JOB = 0.65
"""Time of a column of a job that has a multiprocessor for itself, over one among others."""

PAIRS_PER_UNCERTAIN = 128
"""One in so many strips may reach the limit of half precision and be scored again in 32 bits; beyond, the kernel
ends, and everything is scored as integers."""

ALWAYS = 10**6
"""A `FAIR_SHARE` with which the inter-task kernel takes everything, for tests."""


@dataclass(frozen=True)
class BatchLaunch:
    """An inter-task kernel for the blocks from ``first`` on.

    Parameters
    ----------
    uncertain : int
        Address of the number of strips that reached the lane's limit.
    most_uncertain : int
        With more of them, scores are computed as integers instead.
    """

    uploaded: UploadedBatch
    variant: BatchVariant
    first: int
    lane: Lane16
    uncertain: int
    most_uncertain: int


@dataclass(frozen=True)
class WavefrontLaunch:
    """A wavefront kernel for some queries and the subjects before ``end``."""

    uploaded: UploadedWavefront
    bits: int
    queries: list[int]
    end: int
    lane: Lane16


@dataclass(frozen=True)
class TaskList:
    """Tasks of the wavefront kernel.

    Parameters
    ----------
    tasks, n_listed : int
        Addresses of a list of tasks and of their number; 0 for every query of the launch with all its subjects.
    n_tasks : int
        How many tasks there are, or how long the list may be; nothing of a longer one is done.
    """

    tasks: int
    n_listed: int
    n_tasks: int


@dataclass(frozen=True)
class NeededScores:
    """The scores that pairs must reach to be listed.

    Parameters
    ----------
    by_length : int
        Address of the least scores by query and subject length, shape (n_queries, n_lengths), int32; 0 where
        only ``floor`` counts.
    n_lengths : int
        Lengths that there is a least score for.
    floor : int
        Address of each query's least score whatever the length, shape (n_queries,), int32.
    """

    by_length: int
    n_lengths: int
    floor: int


class Launch:
    """The launches for one part and one chunk.

    Parameters
    ----------
    memory : SlotMemory
        What they use.
    uploaded : UploadedPart
        The queries.
    chunk : GpuChunk
        The subjects.
    as_integers : bool
        Whether no score may be a half-precision number.
    """

    def __init__(
        self, memory: SlotMemory, uploaded: UploadedPart, chunk: GpuChunk, as_integers: bool = False
    ) -> None:
        self._memory, self._uploaded, self._chunk, self._as_integers = memory, uploaded, chunk, as_integers
        self._part, self._sm = uploaded.part, memory.device.info.multiprocessors
        self._n_blocks = int(np.count_nonzero(chunk.columns))
        self._n_filled = chunk.chunk.runs.n_nonempty
        self._limit = UNCERTAIN
        self._batches: list[BatchLaunch] = []
        self._wavefronts: list[WavefrontLaunch] = []
        # what saturated: the limits and the address of the counter, if a list was made
        self._listed: tuple[NeededScores, int] | None = None
        self._share_out()

    def kernels(self) -> list[Kernel]:
        """Return what must be compiled."""
        kernels = [SCORES, *(launch.variant.kernel for launch in self._batches)]
        kernels += [self._variant(launch).kernel for launch in self._wavefronts]
        if self._saturates and self._part.wavefront:
            kernels.append(self._part.wavefront.variant(32, self._part.mode, self._part.gaps).kernel)
        return kernels

    def _variant(self, launch: WavefrontLaunch) -> WavefrontVariant:
        return launch.uploaded.wavefront.variant(launch.bits, self._part.mode, self._part.gaps)

    @property
    def _saturates(self) -> bool:
        """Whether a 16-bit score might reach its limit."""
        if self._part.mode != "local" or not self._n_filled:
            return False
        return self._part.may_saturate(self._limit, self._chunk.chunk.runs.longest)

    # which subjects go to which kernel

    def _share_out(self) -> None:
        firsts: dict[int, int] = {}
        for uploaded in self._uploaded.batches:
            batch, first = uploaded.batch, self._first_block(uploaded.batch)
            if first == self._n_blocks:
                continue
            height = max(self._padded(query, batch.variant.rows) for query in batch.queries)
            lane = self._part.common_lane(batch.queries, height, int(self._chunk.columns[first]))
            if lane is not None:
                self._add_batch(uploaded, first, lane)
                firsts.update(dict.fromkeys(batch.queries, first))
        if self._uploaded.wavefront is None:
            return
        ends: dict[int, list[int]] = {}
        for query in self._uploaded.wavefront.wavefront.queries:
            end = min(firsts.get(query, self._n_blocks) * LANES, self._n_filled)
            ends.setdefault(end, []).append(query)
        for end, queries in sorted(ends.items()):
            if end:
                self._add_wavefronts(self._uploaded.wavefront, queries, end)

    def _add_batch(self, uploaded: UploadedBatch, first: int, lane: Lane16) -> None:
        variant, most = uploaded.batch.variant, LARGEST
        if self._as_integers:
            variant = replace(variant, half=False)
        elif variant.half:
            half = half_lane(self._part.scoring, self._part.mode)
            assert half is not None
            lane = half
            if not self._part.kind.emulates:
                most = LANES * (self._n_blocks - first) * len(uploaded.batch.strips) // PAIRS_PER_UNCERTAIN
        self._limit = min(self._limit, lane.limit)
        self._batches.append(BatchLaunch(uploaded, variant, first, lane, self._memory.counter(), most))

    def _first_block(self, batch: BatchLayout) -> int:
        """Return the first block that the inter-task kernel takes: none before it is too long for it."""
        # other chunks fill the device while this one ends, so that the whole database counts
        most = min(LONG_COLUMNS, FAIR_SHARE * self._memory.plan.columns * batch.variant.queries)
        _, pipelines, passes = self._shape(batch)
        if passes > 1:
            most = min(most, self._memory.plan.region_columns // pipelines)
        first = min(int(np.count_nonzero(self._chunk.columns > most)), self._n_blocks)
        return first if self._pays(batch, first) else self._n_blocks

    def _share(self, first: int, end: int | None = None) -> float:
        """Return the columns of some blocks for each multiprocessor."""
        return float(self._chunk.columns[first:end].sum()) / self._sm

    def _pays(self, batch: BatchLayout, first: int) -> bool:
        """Say whether the inter-task kernel pays, with the longest subjects in the wavefront kernel at the same time.

        Else the wavefront kernel takes everything. Times are in rows times columns of 64 subjects on one
        multiprocessor. Few subjects leave most of them idle, or wait for the longest job.
        """
        if first == self._n_blocks or FAIR_SHARE >= ALWAYS:
            return first < self._n_blocks
        wave = self._part.wavefront
        assert wave is not None
        rows = len(batch.strips) * batch.variant.rows
        wave_rows = WAVEFRONT_COST * sum(self._padded(query, wave.pass_rows) for query in batch.queries)
        share = self._memory.plan.columns - self._share(0, first)
        batched = rows * max(share * batch.variant.queries, LONE_JOB * float(self._chunk.columns[first]))
        beside = wave_rows * self._share(0, first) * WAVEFRONT_SHARE
        return max(batched, beside) <= wave_rows * self._memory.plan.columns

    def _padded(self, query: int, rows: int) -> int:
        return -(-len(self._part.profiles[query]) // rows) * rows

    def _add_wavefronts(self, uploaded: UploadedWavefront, queries: list[int], end: int) -> None:
        """Launch the wavefront kernel on subjects up to ``end``: in 16 bits if these fit and are not emulated.

        Emulated, a cell takes 1.7 times the instructions that it takes in 32 bits (8.0, strips of 16 rows).
        """
        part, columns = self._part, int(self._chunk.columns[0])
        heights = {query: self._padded(query, uploaded.wavefront.pass_rows) for query in queries}
        fits = [query for query in queries if part.lane(query, heights[query], columns) is not None]
        narrow = [] if part.kind.emulates else fits
        lane = part.common_lane(narrow, max((heights[query] for query in narrow), default=0), columns)
        if narrow and lane is not None:
            self._limit = min(self._limit, lane.limit)
            self._wavefronts.append(WavefrontLaunch(uploaded, 16, narrow, end, lane))
        else:
            narrow = []
        if wide := [query for query in queries if query not in set(narrow)]:
            self._wavefronts.append(WavefrontLaunch(uploaded, 32, wide, end, WIDE))

    def _shape(self, batch: BatchLayout) -> tuple[int, int, int]:
        """Return stages of a pipeline, pipelines of a block and passes."""
        warps = self._memory.kernels.block_warps
        stages = choose_pipeline(len(batch.strips), warps)
        return stages, warps // stages, -(-len(batch.strips) // stages)

    # launching

    def run(self) -> None:
        """Launch everything, the wavefront kernel first and on a stream of its own: its tasks are the longest.

        The next turn begins when the inter-task kernels are done, or at once where there are none: the wavefront
        kernel leaves room for others.
        """
        memory = self._memory
        if not self._batches:
            memory.end_turn()
        beside = bool(self._batches and self._wavefronts)
        stream = memory.beside if beside else memory.stream
        if beside:
            memory.cleared.record(memory.stream)
            stream.wait_for_event(memory.cleared)
        if self._wavefronts:
            memory.wait_for_wavefront(stream)
        for wavefront in self._wavefronts:
            self._run_wavefront(wavefront, stream, beside)
        if self._wavefronts:
            memory.end_wavefront(stream)
        if beside:
            memory.beside_done.record(stream)
        for batch in self._batches:
            self._run_batch(batch)
        if self._batches:
            memory.end_turn()
        if beside:
            memory.stream.wait_for_event(memory.beside_done)
        if self._saturates:
            self._rescore()

    def _run_batch(self, launch: BatchLaunch) -> None:
        memory, chunk, uploaded = self._memory, self._chunk, launch.uploaded
        batch = uploaded.batch
        stages = self._shape(batch)[0]
        jobs = (self._n_blocks - launch.first) * batch.variant.queries
        memory.kernels.batch(launch.variant).launch(
            min(self._sm, jobs),
            memory.kernels.block_warps * 32,
            memory.stream,
            residues=chunk.residues,
            tile_offsets=chunk.tiles,
            lengths=chunk.lengths,
            n_subjects=chunk.n_subjects,
            first_block=launch.first,
            n_jobs=jobs,
            pipeline_warps=stages,
            profile=uploaded.profile,
            strips=uploaded.strips,
            n_strips=len(batch.strips),
            bias=launch.lane.bias,
            limit=launch.lane.limit,
            one=1,
            boundary=memory.shared.boundary,
            region_columns=memory.plan.region_columns,
            n_regions=self._sm,
            pipeline_columns=int(chunk.columns[launch.first]),
            taken=memory.shared.taken,
            scores=memory.scores,
            score_stride=memory.shape[1],
            counter=memory.counter(),
            uncertain=launch.uncertain,
            most_uncertain=launch.most_uncertain,
        )

    def _run_wavefront(self, launch: WavefrontLaunch, stream: Any, beside: bool) -> None:
        """Launch with as many warps as there is room for what they keep between passes."""
        memory, wave = self._memory, launch.uploaded.wavefront
        step = 2 if launch.bits == 16 else 1
        n_tasks = -(-launch.end // step) * len(launch.queries)
        warps = memory.kernels.wavefront_warps(self._variant(launch))
        most = self._wavefront_blocks(launch) if beside else self._sm
        n_warps = min(most * warps, n_tasks)
        offsets = np.zeros(n_warps, dtype=np.int64)
        if wave.passes > 1:
            # a warp's first task is the one of its number, and none after it is longer
            places = np.arange(n_warps) // len(launch.queries) * step
            ends = np.cumsum(self._chunk.chunk.runs.at(places), dtype=np.int64)
            n_warps = max(1, int(np.searchsorted(ends, memory.plan.wavefront // BOUNDARY_BYTES, side="right")))
            offsets = np.concatenate(([0], ends[: n_warps - 1]))
        self._launch_wavefront(launch, stream, memory.shared.wavefront, offsets, TaskList(0, 0, n_tasks))

    def _wavefront_blocks(self, launch: WavefrontLaunch) -> int:
        """Return the multiprocessors for the wavefront kernel where both run: by its share of the work, and more."""
        rows = sum(self._padded(query, launch.uploaded.wavefront.pass_rows) for query in launch.queries)
        alone = 2 * WAVEFRONT_COST * rows * self._share(0, launch.end // LANES)
        other = sum(
            len(each.uploaded.batch.strips) * each.uploaded.batch.variant.rows * each.uploaded.batch.variant.queries
            for each in self._batches
        ) * self._share(launch.end // LANES)
        return max(1, self._sm // WAVEFRONT_SHARE, min(self._sm // 2, int(self._sm * alone / (alone + other + 1))))

    def _launch_wavefront(
        self, launch: WavefrontLaunch, stream: Any, boundary: int, offsets: npt.NDArray[np.int64], tasks: TaskList
    ) -> None:
        memory, chunk, uploaded = self._memory, self._chunk, launch.uploaded
        variant = self._variant(launch)
        warps = min(memory.kernels.wavefront_warps(variant), len(offsets))
        memory.kernels.wavefront(variant).launch(
            len(offsets) // warps,
            warps * 32,
            stream,
            residues=chunk.residues,
            tile_offsets=chunk.tiles,
            lengths=chunk.lengths,
            n_subjects=chunk.n_subjects,
            profiles=uploaded.profile,
            queries=uploaded.table,
            tasks=tasks.tasks,
            n_listed=tasks.n_listed,
            n_tasks=tasks.n_tasks,
            query_list=memory.put(np.array(launch.queries, dtype=np.int32), stream),
            n_queries=len(launch.queries),
            bias=launch.lane.bias,
            limit=launch.lane.limit,
            one=1,
            boundary=boundary,
            boundary_offsets=memory.put(offsets.astype(np.uint32), stream),
            scores=memory.scores,
            score_stride=memory.shape[1],
            counter=memory.counter(),
        )

    # what saturated, and hits

    def _rescore(self) -> None:
        """Score again in 32 bits what reached a limit."""
        memory = self._memory
        limits = np.full(len(self._part.profiles), UNCERTAIN, dtype=np.int32)
        self._listed = (NeededScores(0, 0, memory.put(limits, memory.stream)), memory.counter())
        self._rescore_listed(*self._listed, memory.pairs, self._first_tasks)

    @property
    def _first_tasks(self) -> int:
        """Most pairs that are scored again without asking whether everything should be."""
        capacity = self._memory.capacity("tasks")
        may_end = any(launch.most_uncertain < LARGEST for launch in self._batches)
        return min(capacity, LANES + len(self._memory.pairs) // PAIRS_PER_UNCERTAIN) if may_end else capacity

    def _rescore_listed(self, limits: NeededScores, count: int, pairs: range, most: int) -> None:
        memory, longest = self._memory, self._chunk.chunk.runs.longest
        assert self._uploaded.wavefront is not None
        n_warps = max(1, min(memory.plan.rescored // (BOUNDARY_BYTES * longest), self._sm * BLOCK_WARPS))
        self._collect("tasks", limits, count, pairs)
        launch = WavefrontLaunch(self._uploaded.wavefront, 32, [], 0, WIDE)
        tasks = TaskList(memory.hits, count, most)
        offsets = np.arange(n_warps, dtype=np.int64) * longest
        self._launch_wavefront(launch, memory.stream, memory.rescored, offsets, tasks)

    @property
    def is_too_uncertain(self) -> bool:
        """Whether kernels of half precision ended early, so that everything is to be scored as integers.

        The counters must have been copied back when everything was done.
        """
        return any(self._memory.count_back(each.uncertain) > each.most_uncertain for each in self._batches)

    def rescore_in_parts(self) -> bool:
        """Score again in 32 bits if the list was too short for all that saturated; say whether it was.

        The counters must have been copied back when everything was done.
        """
        memory, step = self._memory, self._memory.capacity("tasks")  # of so many pairs at most so many are listed
        if self._listed is None or memory.count_back(self._listed[1]) <= self._first_tasks:
            return False
        for start in range(0, len(memory.pairs), step):
            memory.start_again()
            memory.clear_counter(self._listed[1])
            self._rescore_listed(*self._listed, memory.pairs[start : start + step], step)
            memory.stream.synchronize()
        return True

    def list_hits(self, needed: NeededScores) -> None:
        """Launch the kernel that lists the pairs of queries and subjects that are hits, from an empty list."""
        self._memory.clear_counter(self._memory.hit_counter)
        self._collect("hits", needed, self._memory.hit_counter, self._memory.pairs)

    def _collect(self, what: str, needed: NeededScores, count: int, pairs: range) -> None:
        """Launch the kernel that lists tasks or hits among pairs of queries and subjects."""
        memory = self._memory
        n_subjects = memory.shape[1]
        blocks = max(1, min(-(-len(pairs) // THREADS), self._sm * 8))
        memory.kernels.collect(what).launch(
            blocks,
            THREADS,
            memory.stream,
            scores=memory.scores,
            score_stride=n_subjects,
            n_subjects=n_subjects,
            lengths=self._chunk.lengths,
            thresholds=needed.by_length,
            n_lengths=needed.n_lengths,
            least=needed.floor,
            begin=pairs.start,
            end=pairs.stop,
            list=memory.hits,
            capacity=memory.capacity(what),
            count=count,
        )
