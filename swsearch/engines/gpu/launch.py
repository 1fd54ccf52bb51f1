"""The launches for one part of the queries and one chunk: which subjects go to which kernel, and how."""

from __future__ import annotations

from collections.abc import Sequence
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

JOBS_A_BLOCK = 3
"""Jobs that each block of the inter-task kernel must have on average; below that subjects are too few to keep the
device busy to the end, and the wavefront kernel takes them all."""

WAVEFRONT_SHARE = 6
"""One in so many multiprocessors takes the wavefront kernel where it runs beside the inter-task kernel: the longest
subject's warp is the last to end, and the fewer its neighbours the sooner."""

LARGEST = 2**31 - 1
"""A score that nothing reaches, as the kernels hold it."""


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
    """

    def __init__(self, device: Device, part: Part, region: Region, stream: Any) -> None:
        self.part = part

        def put(array: npt.NDArray[Any]) -> int:
            address = region.take(array.nbytes)
            device.upload(address, array.reshape(-1).view(np.uint8), stream)
            return address

        self.batches = [(batch, put(batch.profile), put(batch.strips)) for batch in part.batches]
        wave = part.wavefront
        self.wavefronts = [(wave, put(wave.profile), put(wave.table))] if wave else []

    @staticmethod
    def n_bytes(part: Part) -> int:
        """Bytes that a part takes."""
        arrays: list[npt.NDArray[Any]] = []
        for batch in part.batches:
            arrays += [batch.profile, batch.strips]
        if part.wavefront:
            arrays += [part.wavefront.profile, part.wavefront.table]
        return sum(array.nbytes + 256 for array in arrays) + 256


class Launch:
    """The launches for one part and one chunk: which subjects go to which kernel."""

    def __init__(self, slot: Slot, uploaded: UploadedPart, chunk: GpuChunk) -> None:
        self._slot, self.chunk, self._uploaded = slot, chunk, uploaded
        self._part = uploaded.part
        self._kernels = slot.kernels
        self._sm = slot.device.info.multiprocessors
        self._n_blocks = int(np.count_nonzero(chunk.columns))
        self._n_filled = int(np.count_nonzero(chunk.chunk.lengths))
        self._batched: list[tuple[tuple[Batch, int, int], int, int]] = []
        self._limit = UNREACHABLE
        # lists of what saturated: which queries, their limits, and the counter
        self._listed: list[tuple[tuple[Wavefront, int, int], int, int]] = []
        # for each wavefront and lane width: queries and subjects
        self._tasks: list[tuple[tuple[Wavefront, int, int], int, list[int], int, int]] = []
        self._share_out()

    def kernels(self) -> list[Any]:
        """What must be compiled."""
        kernels = [SCORES, *(batch.variant.kernel for (batch, _, _), _, _ in self._batched)]
        kernels += [wave.variant(bits, self._part.mode).kernel for (wave, _, _), bits, _, _, _ in self._tasks]
        if self._saturates:
            kernels += [wave.variant(32, self._part.mode).kernel for wave, _, _ in self._uploaded.wavefronts]
        return kernels

    @property
    def _saturates(self) -> bool:
        if self._part.mode != "local" or not self._n_filled:
            return False
        return self._part.may_saturate(self._limit, int(self.chunk.chunk.lengths[0]))

    def _first_block(self, passes: int, pipelines: int) -> int:
        """Return the first block that the inter-task kernel takes: none before it is too long for it."""
        most = LONG_COLUMNS
        if passes > 1:
            most = min(most, self._slot.plan.boundary // (pipelines * 32 * BOUNDARY_BYTES))
        return int(np.count_nonzero(self.chunk.columns > most))

    def _share_out(self) -> None:
        part, columns = self._part, self.chunk.columns
        first_blocks: dict[int, int] = {}
        for item in self._uploaded.batches:
            batch = item[0]
            stages, pipelines, passes = self._shape(batch)
            first = self._first_block(passes, pipelines)
            jobs = (self._n_blocks - first) * batch.variant.queries
            rows = batch.variant.rows
            height = max(-(-len(part.profiles[query]) // rows) * rows for query in batch.queries)
            longest = int(columns[first]) if first < self._n_blocks else 0
            lane = part.common_lane(batch.queries, height, longest)
            if lane is None or jobs < max(1, JOBS_A_BLOCK * self._sm):
                continue
            self._limit = min(self._limit, lane.limit)
            self._batched.append((item, first, lane.bias))
            first_blocks.update(dict.fromkeys(batch.queries, first))
        for wave_item in self._uploaded.wavefronts:
            wave = wave_item[0]
            ends: dict[int, list[int]] = {}
            for query in wave.queries:
                ends.setdefault(min(first_blocks.get(query, self._n_blocks) * LANES, self._n_filled), []).append(query)
            for end, queries in sorted(ends.items()):
                self._add_tasks(wave_item, queries, end)

    def _add_tasks(self, item: tuple[Wavefront, int, int], queries: list[int], end: int) -> None:
        """Give subjects up to ``end`` to the wavefront kernel, in 16 bits where they fit."""
        if not end:
            return
        part, columns = self._part, int(self.chunk.columns[0])
        pass_rows = 32 * item[0].rows
        narrow, wide = [], []
        for query in queries:
            rows = -(-len(part.profiles[query]) // pass_rows) * pass_rows
            (wide if part.lane(query, rows, columns) is None else narrow).append(query)
        rows = max((-(-len(part.profiles[query]) // pass_rows) * pass_rows for query in narrow), default=0)
        lane = part.common_lane(narrow, rows, columns) if narrow else None
        if narrow and lane is None:
            wide, narrow = sorted(wide + narrow), []
        if narrow and lane is not None:
            self._limit = min(self._limit, lane.limit)
            self._tasks.append((item, 16, narrow, end, lane.bias))
        if wide:
            self._tasks.append((item, 32, wide, end, 0))

    def _shape(self, batch: Batch) -> tuple[int, int, int]:
        """Return stages of a pipeline, pipelines of the grid and passes."""
        warps = self._kernels.block_warps
        stages = choose_pipeline(len(batch.strips), warps)
        return stages, self._sm * (warps // stages), -(-len(batch.strips) // stages)

    def run(self) -> None:
        """Launch: the wavefront kernel first and beside, because its tasks are the longest."""
        slot = self._slot
        beside = bool(self._batched and self._tasks)
        stream = slot.beside if beside else slot.stream
        if beside:
            slot.cleared.record(slot.stream)
            stream.wait_for_event(slot.cleared)
        for task in self._tasks:
            self._run_tasks(task, stream, beside)
        if beside:
            slot.beside_done.record(stream)
        for batched in self._batched:
            self._run_batch(*batched)
        if beside:
            slot.stream.wait_for_event(slot.beside_done)
        if self._saturates:
            self._rescore()

    def _run_batch(self, item: tuple[Batch, int, int], first: int, bias: int) -> None:
        slot, chunk, scoring = self._slot, self.chunk, self._part.scoring
        batch, profile, strips = item
        stages, pipelines, passes = self._shape(batch)
        jobs = (self._n_blocks - first) * batch.variant.queries
        warps = self._kernels.block_warps
        columns = int(chunk.columns[first]) if passes > 1 else 0
        self._kernels.batch(batch.variant).launch(
            min(self._sm, jobs), warps * 32, slot.stream,
            (chunk.residues, chunk.tiles, chunk.lengths, chunk.n_subjects, first, jobs, stages, profile, strips,
             len(batch.strips), bias, scoring.gap_open, scoring.gap_extend, 1, slot.boundary, columns,
             slot.scores, slot.shape[1], slot.counter()),
        )  # fmt: skip

    def _run_tasks(
        self, task: tuple[tuple[Wavefront, int, int], int, list[int], int, int], stream: Any, beside: bool
    ) -> None:
        item, bits, queries, end, bias = task
        wave = item[0]
        step = 2 if bits == 16 else 1
        n_tasks = -(-end // step) * len(queries)
        variant = wave.variant(bits, self._part.mode)
        warps = self._kernels.wavefront_warps(variant)
        most = max(1, self._sm // WAVEFRONT_SHARE) if beside else self._sm
        n_warps = min(most * warps, n_tasks)
        offsets = np.zeros(n_warps, dtype=np.uint32)
        if wave.passes > 1:
            places = np.arange(n_warps) // len(queries) * step
            ends = np.cumsum(self.chunk.chunk.lengths[places], dtype=np.int64)
            room = self._slot.plan.wavefront // BOUNDARY_BYTES
            n_warps = max(1, int(np.searchsorted(ends, room, side="right")))
            offsets = np.concatenate(([0], ends[: n_warps - 1])).astype(np.uint32)
        self._launch_wavefront(item, bits, stream, n_warps, offsets, (0, 0, n_tasks), queries, bias)

    def _launch_wavefront(
        self, item: tuple[Wavefront, int, int], bits: int, stream: Any, n_warps: int,
        offsets: npt.NDArray[np.uint32], tasks: tuple[int, int, int], queries: Sequence[int], bias: int,
    ) -> None:  # fmt: skip
        slot, chunk, scoring = self._slot, self.chunk, self._part.scoring
        wave, profile, table = item
        variant = wave.variant(bits, self._part.mode)
        warps = min(self._kernels.wavefront_warps(variant), n_warps)
        blocks = max(1, n_warps // warps)
        self._kernels.wavefront(variant).launch(
            blocks, warps * 32, stream,
            (chunk.residues, chunk.tiles, chunk.lengths, chunk.n_subjects, profile, table, *tasks,
             slot.put(np.array(queries, dtype=np.int32), stream), len(queries), bias, scoring.gap_open,
             scoring.gap_extend, 1, slot.wavefront, slot.put(offsets, stream), slot.scores, slot.shape[1],
             slot.counter()),
        )  # fmt: skip

    def _rescore(self) -> None:
        """Score again in 32 bits what reached the limit."""
        slot = self._slot
        for item in self._uploaded.wavefronts:
            least = np.full(len(self._part.profiles), LARGEST, dtype=np.int32)
            least[item[0].queries] = self._limit
            address, count = slot.put(least, slot.stream), slot.counter()
            self._listed.append((item, address, count))
            self._rescore_listed(item, address, count, slot.pairs)

    def _rescore_listed(self, item: tuple[Wavefront, int, int], least: int, count: int, pairs: range) -> None:
        slot, longest = self._slot, int(self.chunk.chunk.lengths[0])
        n_warps = max(1, min(slot.plan.wavefront // (BOUNDARY_BYTES * longest), self._sm * 8))
        offsets = (np.arange(n_warps, dtype=np.int64) * longest).astype(np.uint32)
        slot.collect("tasks", 0, 0, least, count, pairs)
        tasks = (slot.hits, count, slot.capacity("tasks"))
        self._launch_wavefront(item, 32, slot.stream, n_warps, offsets, tasks, item[0].queries, 0)

    def rescore_in_parts(self, counts: npt.NDArray[np.uint32]) -> bool:
        """Score again in 32 bits if a list of tasks was too short for all that saturated; say whether it was.

        Parameters
        ----------
        counts : ndarray
            The slot's counters when everything was done.
        """
        slot = self._slot
        overflowed = [entry for entry in self._listed if counts[slot.counter_index(entry[2])] > slot.capacity("tasks")]
        for item, least, count in overflowed:
            step = slot.capacity("tasks")  # of so many pairs at most so many are listed
            for start in range(0, len(slot.pairs), step):
                slot.start_again()
                slot.clear_counter(count)
                self._rescore_listed(item, least, count, slot.pairs[start : start + step])
                slot.stream.synchronize()
        return bool(overflowed)
