"""The launches for one part of the queries and one chunk: which subjects go to which kernel, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import LANES
from swsearch.engines.gpu.compiler import Kernel
from swsearch.engines.gpu.device import Device
from swsearch.engines.gpu.limits import UNREACHABLE
from swsearch.engines.gpu.memory import BOUNDARY_BYTES, LONG_COLUMNS, Region
from swsearch.engines.gpu.queries import Part
from swsearch.engines.gpu.tracks import Batch, Wavefront
from swsearch.engines.gpu.variants import SCORES, choose_pipeline

if TYPE_CHECKING:
    from swsearch.engines.gpu.engine import GpuChunk
    from swsearch.engines.gpu.slot import Slot

FAIR_SHARE = 0.5
"""Most columns of a job of the inter-task kernel, as a share of what each multiprocessor does on average: longer
subjects would still be running when everything else is done, and go to the wavefront kernel (with 64,000 subjects
that takes a ninth less time; H200, benchmarks/speed/gpu_variants.py, November 2026)."""

WAVEFRONT_SHARE = 6
"""One in so many multiprocessors at least takes the wavefront kernel where it runs beside the inter-task kernel: a
twelfth is too few for short queries, a quarter gains nothing (H200, benchmarks/speed/gpu_variants.py, November
2026)."""

WAVEFRONT_COST = 1.2
"""Time of a cell in the wavefront kernel over one in the inter-task kernel (H200, 16 rows a lane: 4,440 over 5,315
GCUPS, benchmarks/speed/gpu_variants.py, November 2026)."""

LONE_JOB = 0.65
"""Time of a column of a job that has a multiprocessor for itself, over one among others."""

ALWAYS = 10**6
"""A `FAIR_SHARE` with which the inter-task kernel takes everything, for tests."""

LARGEST = 2**31 - 1
"""A score that nothing reaches, as the kernels hold it."""


@dataclass(frozen=True)
class UploadedBatch:
    """A `Batch` with the addresses of its scores by letter and its strips."""

    batch: Batch
    profile: int
    strips: int


@dataclass(frozen=True)
class UploadedWavefront:
    """A `Wavefront` with the addresses of its scores by letter and its table of queries."""

    wavefront: Wavefront
    profile: int
    table: int


class UploadedPart:
    """A part's scores by letter, strips and tables on the device.

    Parameters
    ----------
    device : Device
        Its context must be current.
    part : Part
        The queries.
    region : Region
        Where it goes.
    stream : Stream
        For the copies.
    longest : int
        Longest subject, in residues.
    settle : callable
        Waits until no kernel uses what is about to be overwritten.
    """

    def __init__(
        self, device: Device, part: Part, region: Region, stream: Any, longest: int, settle: Callable[[], None]
    ) -> None:
        self.part, self._device, self._stream, self._settle = part, device, stream, settle

        def put(array: npt.NDArray[Any]) -> int:
            address = region.take(array.nbytes)
            device.upload(address, array.reshape(-1).view(np.uint8), stream)
            return address

        self._tables: list[npt.NDArray[np.int64] | None] | None = None
        self.n_lengths = longest + 1
        self._thresholds = region.take(4 * len(part.profiles) * self.n_lengths)

        self.batches = [UploadedBatch(batch, put(batch.profile), put(batch.strips)) for batch in part.batches]
        self.wavefront: UploadedWavefront | None = None
        if wave := part.wavefront:
            self.wavefront = UploadedWavefront(wave, put(wave.profile), put(wave.table))

    def thresholds(self, tables: Sequence[npt.NDArray[np.int64] | None]) -> int:
        """Return the address of the least scores by subject length, one row a query; 0 where there are none.

        They are the same for every chunk of a job, and brought to the device once.
        """
        if all(table is None for table in tables):
            return 0
        known = self._tables
        if known is None or any(a is not b for a, b in zip(known, tables, strict=True)):
            rows = np.full((len(tables), self.n_lengths), -LARGEST, dtype=np.int32)
            for row, table in zip(rows, tables, strict=True):
                if table is not None:
                    # a table that ends before the longest subject is of a database without it
                    row[: len(table)] = np.minimum(table[: self.n_lengths], LARGEST)
            if known is not None:
                self._settle()
            self._device.upload(self._thresholds, rows, self._stream)
            self._tables = list(tables)
        return self._thresholds

    @staticmethod
    def n_bytes(part: Part, longest: int) -> int:
        """Bytes that a part takes, with thresholds for subjects of up to ``longest`` residues."""
        arrays: list[npt.NDArray[Any]] = []
        for batch in part.batches:
            arrays += [batch.profile, batch.strips]
        if part.wavefront:
            arrays += [part.wavefront.profile, part.wavefront.table]
        return sum(array.nbytes + 256 for array in arrays) + 4 * len(part.profiles) * (longest + 1) + 512


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


class Launch:
    """The launches for one part and one chunk.

    Parameters
    ----------
    slot : Slot
        Where memory and streams are.
    uploaded : UploadedPart
        The queries.
    chunk : GpuChunk
        The subjects.
    """

    def __init__(self, slot: Slot, uploaded: UploadedPart, chunk: GpuChunk) -> None:
        self._slot, self._uploaded, self.chunk = slot, uploaded, chunk
        self._part, self._sm = uploaded.part, slot.device.info.multiprocessors
        self._n_blocks = int(np.count_nonzero(chunk.columns))
        self._n_filled = int(np.count_nonzero(chunk.chunk.lengths))
        self._limit = UNREACHABLE
        self._batches: list[BatchLaunch] = []
        self._wavefronts: list[WavefrontLaunch] = []
        # what saturated: addresses of the limits and of the counter, if a list was made
        self._listed: tuple[int, int] | None = None
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
        return self._part.may_saturate(self._limit, int(self.chunk.chunk.lengths[0]))

    # which subjects go to which kernel

    def _share_out(self) -> None:
        firsts: dict[int, int] = {}
        for uploaded in self._uploaded.batches:
            batch, first = uploaded.batch, self._first_block(uploaded.batch)
            if first == self._n_blocks:
                continue
            height = max(self._padded(query, batch.variant.rows) for query in batch.queries)
            lane = self._part.common_lane(batch.queries, height, int(self.chunk.columns[first]))
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

    def _first_block(self, batch: Batch) -> int:
        """Return the first block that the inter-task kernel takes: none before it is too long for it."""
        # other chunks fill the device while this one ends, so that the whole database counts
        most = min(LONG_COLUMNS, FAIR_SHARE * self._slot.plan.columns * batch.variant.queries)
        _, pipelines, passes = self._shape(batch)
        if passes > 1:
            most = min(most, self._slot.plan.region_columns // pipelines)
        first = min(int(np.count_nonzero(self.chunk.columns > most)), self._n_blocks)
        return first if self._pays(batch, first) else self._n_blocks

    def _share(self, first: int, end: int | None = None) -> float:
        """Return the columns of some blocks for each multiprocessor."""
        return float(self.chunk.columns[first:end].sum()) / self._sm

    def _pays(self, batch: Batch, first: int) -> bool:
        """Say whether the inter-task kernel pays, with the longest subjects in the wavefront kernel beside it.

        Else the wavefront kernel takes everything. Times are in rows times columns of 64 subjects on one
        multiprocessor. Few subjects leave most of them idle, or wait for the longest job.
        """
        if first == self._n_blocks or FAIR_SHARE >= ALWAYS:
            return first < self._n_blocks
        wave = self._part.wavefront
        assert wave is not None
        rows = len(batch.strips) * batch.variant.rows
        wave_rows = WAVEFRONT_COST * sum(self._padded(query, wave.pass_rows) for query in batch.queries)
        share = self._slot.plan.columns - self._share(0, first)
        batched = rows * max(share * batch.variant.queries, LONE_JOB * float(self.chunk.columns[first]))
        beside = wave_rows * self._share(0, first) * WAVEFRONT_SHARE
        return max(batched, beside) <= wave_rows * self._slot.plan.columns

    def _padded(self, query: int, rows: int) -> int:
        return -(-len(self._part.profiles[query]) // rows) * rows

    def _add_wavefronts(self, uploaded: UploadedWavefront, queries: list[int], end: int) -> None:
        """Give subjects up to ``end`` to the wavefront kernel, in 16 bits where they fit."""
        part, columns = self._part, int(self.chunk.columns[0])
        heights = {query: self._padded(query, uploaded.wavefront.pass_rows) for query in queries}
        narrow = [query for query in queries if part.lane(query, heights[query], columns) is not None]
        lane = part.common_lane(narrow, max((heights[query] for query in narrow), default=0), columns)
        if narrow and lane is not None:
            self._limit = min(self._limit, lane.limit)
            self._wavefronts.append(WavefrontLaunch(uploaded, 16, narrow, end, lane.bias))
        else:
            narrow = []
        if wide := [query for query in queries if query not in set(narrow)]:
            self._wavefronts.append(WavefrontLaunch(uploaded, 32, wide, end, 0))

    def _shape(self, batch: Batch) -> tuple[int, int, int]:
        """Return stages of a pipeline, pipelines of a block and passes."""
        warps = self._slot.kernels.block_warps
        stages = choose_pipeline(len(batch.strips), warps)
        return stages, warps // stages, -(-len(batch.strips) // stages)

    # launching

    def run(self) -> None:
        """Launch: the wavefront kernel first and beside, because its tasks are the longest."""
        slot = self._slot
        beside = bool(self._batches and self._wavefronts)
        stream = slot.beside if beside else slot.stream
        if beside:
            slot.cleared.record(slot.stream)
            stream.wait_for_event(slot.cleared)
        if self._wavefronts:
            slot.wait_for_wavefront(stream)
        for wavefront in self._wavefronts:
            self._run_wavefront(wavefront, stream, beside)
        if self._wavefronts:
            slot.end_wavefront(stream)
        if beside:
            slot.beside_done.record(stream)
        for batch in self._batches:
            self._run_batch(batch)
        if beside:
            slot.stream.wait_for_event(slot.beside_done)
        if self._saturates:
            self._rescore()

    def _run_batch(self, launch: BatchLaunch) -> None:
        slot, chunk, scoring, uploaded = self._slot, self.chunk, self._part.scoring, launch.uploaded
        batch = uploaded.batch
        stages = self._shape(batch)[0]
        jobs = (self._n_blocks - launch.first) * batch.variant.queries
        slot.kernels.batch(batch.variant).launch(
            min(self._sm, jobs), slot.kernels.block_warps * 32, slot.stream,
            (chunk.residues, chunk.tiles, chunk.lengths, chunk.n_subjects, launch.first, jobs, stages,
             uploaded.profile, uploaded.strips, len(batch.strips), launch.bias, scoring.gap_open,
             scoring.gap_extend, 1, slot.common.boundary, slot.plan.region_columns, self._sm,
             int(chunk.columns[launch.first]), slot.common.taken, slot.scores, slot.shape[1], slot.counter()),
        )  # fmt: skip

    def _run_wavefront(self, launch: WavefrontLaunch, stream: Any, beside: bool) -> None:
        """Launch with as many warps as the boundaries between passes leave room for."""
        slot, wave = self._slot, launch.uploaded.wavefront
        step = 2 if launch.bits == 16 else 1
        n_tasks = -(-launch.end // step) * len(launch.queries)
        warps = slot.kernels.wavefront_warps(wave.variant(launch.bits, self._part.mode))
        most = self._wavefront_blocks(launch) if beside else self._sm
        n_warps = min(most * warps, n_tasks)
        offsets = np.zeros(n_warps, dtype=np.int64)
        if wave.passes > 1:
            # a warp's first task is the one of its number, and none after it is longer
            places = np.arange(n_warps) // len(launch.queries) * step
            ends = np.cumsum(self.chunk.chunk.lengths[places], dtype=np.int64)
            n_warps = max(1, int(np.searchsorted(ends, slot.plan.wavefront // BOUNDARY_BYTES, side="right")))
            offsets = np.concatenate(([0], ends[: n_warps - 1]))
        self._launch_wavefront(launch, stream, offsets, (0, 0, n_tasks))

    def _wavefront_blocks(self, launch: WavefrontLaunch) -> int:
        """Return the multiprocessors for the wavefront kernel beside the other: by its part of the work, and more."""
        rows = sum(self._padded(query, launch.uploaded.wavefront.pass_rows) for query in launch.queries)
        alone = 2 * WAVEFRONT_COST * rows * self._share(0, launch.end // LANES)
        other = sum(
            len(each.uploaded.batch.strips) * each.uploaded.batch.variant.rows * each.uploaded.batch.variant.queries
            for each in self._batches
        ) * self._share(launch.end // LANES)
        return max(1, self._sm // WAVEFRONT_SHARE, min(self._sm // 2, int(self._sm * alone / (alone + other + 1))))

    def _launch_wavefront(
        self, launch: WavefrontLaunch, stream: Any, offsets: npt.NDArray[np.int64], tasks: Sequence[int]
    ) -> None:
        slot, chunk, scoring, uploaded = self._slot, self.chunk, self._part.scoring, launch.uploaded
        variant = uploaded.wavefront.variant(launch.bits, self._part.mode)
        warps = min(slot.kernels.wavefront_warps(variant), len(offsets))
        slot.kernels.wavefront(variant).launch(
            len(offsets) // warps, warps * 32, stream,
            (chunk.residues, chunk.tiles, chunk.lengths, chunk.n_subjects, uploaded.profile, uploaded.table, *tasks,
             slot.put(np.array(launch.queries, dtype=np.int32), stream), len(launch.queries), launch.bias,
             scoring.gap_open, scoring.gap_extend, 1, slot.common.wavefront,
             slot.put(offsets.astype(np.uint32), stream), slot.scores, slot.shape[1], slot.counter()),
        )  # fmt: skip

    # what saturated

    def _rescore(self) -> None:
        """Score again in 32 bits what reached the limit."""
        slot = self._slot
        least = np.full(len(self._part.profiles), self._limit, dtype=np.int32)
        self._listed = (slot.put(least, slot.stream), slot.counter())
        self._rescore_listed(*self._listed, slot.pairs)

    def _rescore_listed(self, least: int, count: int, pairs: range) -> None:
        slot, longest = self._slot, int(self.chunk.chunk.lengths[0])
        assert self._uploaded.wavefront is not None
        n_warps = max(1, min(slot.plan.wavefront // (BOUNDARY_BYTES * longest), self._sm * 8))
        slot.collect("tasks", 0, 0, least, count, pairs)
        slot.wait_for_wavefront(slot.stream)
        launch = WavefrontLaunch(self._uploaded.wavefront, 32, [], 0, 0)
        tasks = (slot.hits, count, slot.capacity("tasks"))
        self._launch_wavefront(launch, slot.stream, np.arange(n_warps, dtype=np.int64) * longest, tasks)
        slot.end_wavefront(slot.stream)

    def rescore_in_parts(self, counts: npt.NDArray[np.uint32]) -> bool:
        """Score again in 32 bits if the list was too short for all that saturated; say whether it was.

        Parameters
        ----------
        counts : ndarray
            The slot's counters when everything was done.
        """
        slot = self._slot
        if self._listed is None or counts[slot.counter_index(self._listed[1])] <= slot.capacity("tasks"):
            return False
        step = slot.capacity("tasks")  # of so many pairs at most so many are listed
        for start in range(0, len(slot.pairs), step):
            slot.start_again()
            slot.clear_counter(self._listed[1])
            self._rescore_listed(*self._listed, slot.pairs[start : start + step])
            slot.stream.synchronize()
        return True
