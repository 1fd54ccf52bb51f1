"""The launches for one part of the queries and one chunk: which subjects go to which kernel, and how.

What belongs here decides and launches. Memory, counters and streams come from the slot's memory (`slot_memory`); when
launches are begun and waited for is the slot's business (`slot`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import LANES
from swsearch.engines.gpu.chunks import GpuChunk
from swsearch.engines.gpu.compiler import Kernel
from swsearch.engines.gpu.kernels import THREADS
from swsearch.engines.gpu.limits import UNREACHABLE
from swsearch.engines.gpu.memory import BOUNDARY_BYTES, LONG_COLUMNS
from swsearch.engines.gpu.slot_memory import SlotMemory
from swsearch.engines.gpu.tracks import BatchLayout
from swsearch.engines.gpu.uploaded import UploadedBatch, UploadedPart, UploadedWavefront
from swsearch.engines.gpu.variants import SCORES, choose_pipeline

FAIR_SHARE = 0.5
"""Most columns of a job of the inter-task kernel, as a share of what each multiprocessor does on average: longer
subjects would still be running when everything else is done, and go to the wavefront kernel (with 64,000 subjects
that takes a ninth less time; H200, benchmarks/speed/gpu_variants.py, November 2026)."""

PIPELINE_SHARE = 0.8
"""Most columns of a job of the inter-task kernel, as a share of what each pipeline does on average, where a query
takes one pass. A choice: the longest jobs begin first, so that less than all is safe; it leaves the wavefront kernel
half as many residues with queries of 51 to 75 residues."""

WAVEFRONT_SHARE = 6
"""One in so many multiprocessors at least takes the wavefront kernel where it runs at the same time as the inter-task
kernel: a twelfth is too few for short queries, a quarter gains nothing (H200, benchmarks/speed/gpu_variants.py,
November 2026)."""

WAVEFRONT_COST = 1.2
"""Time of a cell in the wavefront kernel over one in the inter-task kernel (H200, 16 rows per lane: 4,440 over 5,315
GCUPS, benchmarks/speed/gpu_variants.py, November 2026)."""

LONE_JOB = 0.65
"""Time of a column of a job that has a multiprocessor for itself, over one among others."""

PIECE_COLUMNS = 1_024
"""Least columns of a piece of a long subject, without those that it has in common with the next piece. A choice:
2,048 and 4,096 were no different (H200, queries of 51 and 75 residues, November 2026)."""

PIECES_AT_MOST = 512
"""Pieces of a launch. A choice: they take 16 bytes each of a slot's small tables; shorter subjects than fit stay
whole."""

PIECE = np.dtype([("place", "<i4"), ("begin", "<i4"), ("columns", "<i4"), ("unused", "<i4")])
"""``Piece`` of ``cuda/wavefront.cu``."""

ALWAYS = 10**6
"""A `FAIR_SHARE` with which the inter-task kernel takes everything, for tests."""


@dataclass(frozen=True)
class BatchLaunch:
    """An inter-task kernel for the blocks from ``first`` on."""

    uploaded: UploadedBatch
    first: int
    bias: int


@dataclass(frozen=True)
class WavefrontLaunch:
    """A wavefront kernel for some queries and the subjects before ``end``."""

    uploaded: UploadedWavefront
    bits: int
    queries: list[int]
    end: int
    bias: int

    @property
    def step(self) -> int:
        """Subjects of a task."""
        return 2 if self.bits == 16 else 1

    @property
    def passes(self) -> int:
        """Most passes of a query; with one, nothing is kept between passes."""
        return int(self.uploaded.wavefront.table["passes"][self.queries].max())


@dataclass(frozen=True)
class TaskList:
    """What the wavefront kernel is to do, and with how many warps.

    Parameters
    ----------
    n_warps, offsets : int
        Warps, and the address of the first column that each keeps between passes.
    n_tasks : int
        How many tasks there are, or how many the list holds at most.
    tasks, n_listed : int
        Addresses of a list of tasks and of their number; 0 for every query of the launch with all its subjects.
    queries : int
        Address of the launch's queries, where there is no list.
    pieces, n_pieces, n_cut : int
        Address and number of the pieces of the longest runs of subjects, and of how many runs they are.
    """

    n_warps: int
    offsets: int
    n_tasks: int
    tasks: int = 0
    n_listed: int = 0
    queries: int = 0
    pieces: int = 0
    n_pieces: int = 0
    n_cut: int = 0


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
    """

    def __init__(self, memory: SlotMemory, uploaded: UploadedPart, chunk: GpuChunk) -> None:
        self._memory, self._uploaded, self._chunk = memory, uploaded, chunk
        self._part, self._sm = uploaded.part, memory.device.info.multiprocessors
        self._n_blocks = int(np.count_nonzero(chunk.columns))
        self._n_filled = chunk.chunk.runs.n_filled
        self._limit = UNREACHABLE
        self._batches: list[BatchLaunch] = []
        self._wavefronts: list[WavefrontLaunch] = []
        # what saturated: the limits and the address of the counter, if a list was made
        self._listed: tuple[NeededScores, int] | None = None
        self._tasks: list[TaskList] = []
        self._share_out()

    def kernels(self) -> list[Kernel]:
        """Return what must be compiled."""
        mode = self._part.mode
        kernels = [SCORES, *(launch.uploaded.batch.variant.kernel for launch in self._batches)]
        kernels += [launch.uploaded.wavefront.variant(launch.bits, mode).kernel for launch in self._wavefronts]
        if self._saturates and self._part.wavefront:
            kernels.append(self._part.wavefront.variant(32, mode).kernel)
        return kernels

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
                self._limit = min(self._limit, lane.limit)
                self._batches.append(BatchLaunch(uploaded, first, lane.bias))
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

    def _first_block(self, batch: BatchLayout) -> int:
        """Return the first block that the inter-task kernel takes: none before it is too long for it."""
        # other chunks fill the device while this one ends, so that the whole database counts
        columns = self._memory.plan.columns * batch.variant.queries
        _, pipelines, passes = self._shape(batch)
        if passes > 1:
            longest = min(LONG_COLUMNS, self._memory.plan.region_columns // pipelines)
        else:  # nothing is kept of a column, and a job has a pipeline, not a multiprocessor
            longest = min(max(LONG_COLUMNS, int(PIPELINE_SHARE * columns / pipelines)), 2 * LONG_COLUMNS)
        most = min(longest, FAIR_SHARE * columns)
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
        """Give subjects up to ``end`` to the wavefront kernel, in 16 bits where they fit."""
        part, columns = self._part, int(self._chunk.columns[0])
        heights = {query: self._padded(query, uploaded.wavefront.pass_rows) for query in queries}
        narrow = [query for query in queries if part.lane(query, heights[query], columns) is not None]
        lane = part.common_lane(narrow, max((heights[query] for query in narrow), default=0), columns)
        if narrow and lane is not None:
            self._limit = min(self._limit, lane.limit)
            for some in self._by_passes(uploaded, narrow):
                self._wavefronts.append(WavefrontLaunch(uploaded, 16, some, end, lane.bias))
        else:
            narrow = []
        wide = [query for query in queries if query not in set(narrow)]
        for some in self._by_passes(uploaded, wide):
            self._wavefronts.append(WavefrontLaunch(uploaded, 32, some, end, 0))

    def _by_passes(self, uploaded: UploadedWavefront, queries: list[int]) -> Iterator[list[int]]:
        """Divide queries so that those of one pass, for which nothing is kept, need not wait for memory."""
        passes = uploaded.wavefront.table["passes"]
        one = [query for query in queries if passes[query] == 1]
        more = [query for query in queries if passes[query] > 1]
        # with memory for all, one launch keeps the device busier than two
        yield from filter(None, [queries] if self._memory.plan.resident else [one, more])

    def _shape(self, batch: BatchLayout) -> tuple[int, int, int]:
        """Return stages of a pipeline, pipelines of a block and passes."""
        warps = self._memory.kernels.block_warps
        stages = choose_pipeline(len(batch.strips), warps)
        return stages, warps // stages, -(-len(batch.strips) // stages)

    # launching

    def prepare(self) -> None:
        """Bring the wavefront kernel's tables to the device, so that nothing is between the launches."""
        self._tasks = [self._divide(launch) for launch in self._wavefronts]

    def run(self) -> None:
        """Launch everything, the wavefront kernel first and on a stream of its own: its tasks are the longest."""
        memory = self._memory
        beside = bool(self._batches and self._wavefronts)
        stream = memory.beside if beside else memory.stream
        if beside:
            memory.cleared.record(memory.stream)
            stream.wait_for_event(memory.cleared)
        keeping = False
        for wavefront, tasks in zip(self._wavefronts, self._tasks, strict=True):
            if wavefront.passes > 1 and not keeping:
                memory.wait_for_wavefront(stream)
                keeping = True
            self._launch_wavefront(wavefront, stream, tasks)
        if keeping:
            memory.end_wavefront(stream)
        if beside:
            memory.beside_done.record(stream)
        for batch in self._batches:
            self._run_batch(batch)
        if beside:
            memory.stream.wait_for_event(memory.beside_done)
        if self._saturates:
            self._rescore()

    def _run_batch(self, launch: BatchLaunch) -> None:
        memory, chunk, scoring, uploaded = self._memory, self._chunk, self._part.scoring, launch.uploaded
        batch = uploaded.batch
        stages = self._shape(batch)[0]
        jobs = (self._n_blocks - launch.first) * batch.variant.queries
        memory.kernels.batch(batch.variant).launch(
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
            bias=launch.bias,
            gap_open=scoring.gap_open,
            gap_extend=scoring.gap_extend,
            one=1,
            boundary=memory.shared.boundary,
            region_columns=memory.plan.region_columns,
            n_regions=self._sm,
            pipeline_columns=int(chunk.columns[launch.first]),
            taken=memory.shared.taken,
            scores=memory.scores,
            score_stride=memory.shape[1],
            counter=memory.counter(),
        )

    def _divide(self, launch: WavefrontLaunch) -> TaskList:
        """Bring a launch's tables to the device, for as many warps as there is room for what they keep."""
        memory, wave = self._memory, launch.uploaded.wavefront
        most = self._wavefront_blocks(launch) if self._batches else self._sm
        most *= memory.kernels.wavefront_warps(wave.variant(launch.bits, self._part.mode))
        pieces, n_cut, columns = self._cut(launch, most)
        n_queries = len(launch.queries)
        n_tasks = (len(pieces) + -(-launch.end // launch.step) - n_cut) * n_queries
        n_warps = min(most, n_tasks)
        offsets = np.zeros(n_warps, dtype=np.int64)
        if launch.passes > 1:
            # a warp's first task is the one of its number, and none after it is longer
            runs = np.arange(n_warps) // n_queries
            places = np.maximum(runs - len(pieces) + n_cut, 0) * launch.step
            widths = np.where(runs < len(pieces), columns, self._chunk.chunk.runs.at(places))
            ends = np.cumsum(widths, dtype=np.int64)
            n_warps = max(1, int(np.searchsorted(ends, memory.plan.wavefront // BOUNDARY_BYTES, side="right")))
            offsets = np.concatenate(([0], ends[: n_warps - 1]))
        return TaskList(
            len(offsets),
            self._put(offsets, np.uint32),
            n_tasks,
            queries=self._put(launch.queries, np.int32),
            pieces=self._put(pieces, PIECE),
            n_pieces=len(pieces),
            n_cut=n_cut,
        )

    def _put(self, values: npt.ArrayLike, dtype: npt.DTypeLike) -> int:
        """Bring a small table to the device, on the slot's own stream; return its address."""
        return self._memory.put(np.asarray(values).astype(dtype), self._memory.stream)

    def _cut(self, launch: WavefrontLaunch, n_warps: int) -> tuple[npt.NDArray[np.void], int, int]:
        """Cut subjects that are longer than what each warp does on average, where the longest would end last.

        Neighbouring pieces have as many columns in common as an alignment can cover, so that each alignment lies in
        one of them. Returns the pieces, of how many runs of subjects they are, and the most columns of a piece.
        """
        nothing = np.empty(0, dtype=PIECE)
        reach = self._part.reach(launch.queries) if self._part.mode == "local" else None
        if reach is None:
            return nothing, 0, 0
        columns = self._chunk.chunk.runs.part(0, launch.end).array()[:: launch.step].astype(np.int64)
        stride = max(PIECE_COLUMNS, 2 * reach, int(columns.sum()) * len(launch.queries) // n_warps)
        stride = -(-stride // 8) * 8
        if columns[0] <= stride + reach:
            return nothing, 0, 0
        counts = -(-(columns - reach) // stride)
        n_cut = int(np.count_nonzero((counts > 1) & (np.cumsum(counts) <= PIECES_AT_MOST)))
        counts = counts[:n_cut]
        pieces = np.zeros(int(counts.sum()), dtype=PIECE)
        pieces["place"] = np.repeat(np.arange(n_cut) * launch.step, counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        pieces["begin"] = (np.arange(len(pieces)) - first) * stride
        pieces["columns"] = stride + reach
        return pieces, n_cut, stride + reach

    def _wavefront_blocks(self, launch: WavefrontLaunch) -> int:
        """Return the multiprocessors for the wavefront kernel where both run: by its share of the work, and more."""
        rows = sum(self._padded(query, launch.uploaded.wavefront.pass_rows) for query in launch.queries)
        alone = 2 * WAVEFRONT_COST * rows * self._share(0, launch.end // LANES)
        other = sum(
            len(each.uploaded.batch.strips) * each.uploaded.batch.variant.rows * each.uploaded.batch.variant.queries
            for each in self._batches
        ) * self._share(launch.end // LANES)
        return max(1, self._sm // WAVEFRONT_SHARE, min(self._sm // 2, int(self._sm * alone / (alone + other + 1))))

    def _launch_wavefront(self, launch: WavefrontLaunch, stream: Any, tasks: TaskList) -> None:
        memory, chunk, scoring, uploaded = self._memory, self._chunk, self._part.scoring, launch.uploaded
        variant = uploaded.wavefront.variant(launch.bits, self._part.mode)
        warps = min(memory.kernels.wavefront_warps(variant), tasks.n_warps)
        memory.kernels.wavefront(variant).launch(
            tasks.n_warps // warps,
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
            query_list=tasks.queries,
            n_queries=len(launch.queries),
            pieces=tasks.pieces,
            n_pieces=tasks.n_pieces,
            n_cut=tasks.n_cut,
            bias=launch.bias,
            gap_open=scoring.gap_open,
            gap_extend=scoring.gap_extend,
            one=1,
            boundary=memory.shared.wavefront,
            boundary_offsets=tasks.offsets,
            scores=memory.scores,
            score_stride=memory.shape[1],
            counter=memory.counter(),
        )

    # what saturated, and hits

    def _rescore(self) -> None:
        """Score again in 32 bits what reached the limit."""
        memory = self._memory
        limits = np.full(len(self._part.profiles), self._limit, dtype=np.int32)
        self._listed = (NeededScores(0, 0, memory.put(limits, memory.stream)), memory.counter())
        self._rescore_listed(*self._listed, memory.pairs)

    def _rescore_listed(self, limits: NeededScores, count: int, pairs: range) -> None:
        memory, longest = self._memory, self._chunk.chunk.runs.longest
        assert self._uploaded.wavefront is not None
        n_warps = max(1, min(memory.plan.wavefront // (BOUNDARY_BYTES * longest), self._sm * 8))
        self._collect("tasks", limits, count, pairs)
        memory.wait_for_wavefront(memory.stream)
        launch = WavefrontLaunch(self._uploaded.wavefront, 32, [], 0, 0)
        offsets = self._put(np.arange(n_warps, dtype=np.int64) * longest, np.uint32)
        tasks = TaskList(n_warps, offsets, memory.capacity("tasks"), memory.hits, count)
        self._launch_wavefront(launch, memory.stream, tasks)
        memory.end_wavefront(memory.stream)

    def rescore_in_parts(self) -> bool:
        """Score again in 32 bits if the list was too short for all that saturated; say whether it was.

        The counters must have been copied back when everything was done.
        """
        memory = self._memory
        if self._listed is None or memory.count_back(self._listed[1]) <= memory.capacity("tasks"):
            return False
        step = memory.capacity("tasks")  # of so many pairs at most so many are listed
        for start in range(0, len(memory.pairs), step):
            memory.start_again()
            memory.clear_counter(self._listed[1])
            self._rescore_listed(*self._listed, memory.pairs[start : start + step])
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
