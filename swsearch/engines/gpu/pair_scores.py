"""Scores of pairs, each subject of a chunk with one query, by the wavefront kernel, beside what the engine has."""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import LANES, Chunk, IntArray
from swsearch.engines.base import ScoreArray
from swsearch.engines.gpu.device import Device
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.limits import UNCERTAIN, WIDE, Lane16, lane16
from swsearch.engines.gpu.memory import BOUNDARY_BYTES, MIB, SMALL_BYTES, Region
from swsearch.engines.gpu.tracks import WavefrontLayout, plan_wavefront
from swsearch.engines.gpu.variants import device_kind
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryProfile

CALLS_AT_ONCE = 2
"""Calls that have memory at a time: while one waits for the device, another brings its subjects."""

CALL_BYTES = 192 * MIB
"""Device memory of a call, for subjects, queries and what warps keep between passes."""


class PairScorer:
    """Scores pairs for any thread, in memory that is allocated once.

    Parameters
    ----------
    device : Device
        Where.
    kernels : Kernels
        Its kernels.
    """

    def __init__(self, device: Device, kernels: Kernels) -> None:
        self._device, self._kernels = device, kernels
        self._calls: queue.LifoQueue[_Call] = queue.LifoQueue()
        for _ in range(CALLS_AT_ONCE):
            self._calls.put(_Call(device, kernels))

    def score(
        self, profiles: Sequence[QueryProfile], of_subject: IntArray, chunk: Chunk, recurrence: Recurrence
    ) -> ScoreArray:
        """Score pairs for `swsearch.engines.base.Engine.score_pairs`."""
        call = self._calls.get()
        try:
            with self._device.active("scoring pairs"):
                return call.score(profiles, of_subject, chunk, recurrence)
        finally:
            self._calls.put(call)

    def close(self) -> None:
        """Free the memory; the context must be current."""
        for _ in range(CALLS_AT_ONCE):
            self._calls.get().close()


class _Call:
    """Memory and a stream for one call at a time. Methods need the device's context to be current."""

    def __init__(self, device: Device, kernels: Kernels) -> None:
        self._device, self._kernels = device, kernels
        self._memory: Any = None
        self._stream: Any = None

    def score(
        self, profiles: Sequence[QueryProfile], of_subject: IntArray, chunk: Chunk, recurrence: Recurrence
    ) -> ScoreArray:
        """Score each subject with its query: two at a time in 16 bits where neighbours have the same one."""
        if self._memory is None:
            self._memory, self._stream = self._device.allocate(CALL_BYTES), self._device.stream()
        region = Region(int(self._memory), CALL_BYTES)
        residues = region.take(chunk.residues.nbytes)
        self._device.upload_async(residues, chunk.residues, self._stream)
        self._kernels.arrange(self._stream, residues, chunk.residues.nbytes // (LANES * 8))
        layout = plan_wavefront(profiles, range(len(profiles)), recurrence.mode)
        lane = self._narrow_lane(profiles, of_subject, recurrence)
        mark = region.used
        scores = self._run(layout, of_subject, chunk, recurrence, residues, lane or WIDE, region)
        if lane is not None and (scores == UNCERTAIN).any():
            region.used = mark
            scores = self._run(layout, of_subject, chunk, recurrence, residues, WIDE, region)
        return scores

    def _narrow_lane(
        self, profiles: Sequence[QueryProfile], of_subject: IntArray, recurrence: Recurrence
    ) -> Lane16 | None:
        """Return the lane of 16 bits, or None where 32 are taken."""
        are_twins = len(of_subject) % 2 == 0 and bool((of_subject[::2] == of_subject[1::2]).all())
        if recurrence.mode != "local" or not are_twins or device_kind(self._device.info.capability).emulates:
            return None
        return lane16(recurrence.scoring.with_bounds_for(profiles), "local", profiles[0], 1, 1)

    def _run(
        self,
        layout: WavefrontLayout,
        of_subject: IntArray,
        chunk: Chunk,
        recurrence: Recurrence,
        residues: int,
        lane: Lane16,
        region: Region,
    ) -> ScoreArray:
        """Launch the kernel, the largest tasks first, and wait for the scores."""
        bits, scoring, longest = 32 if lane is WIDE else 16, recurrence.scoring, chunk.runs.longest
        variant = layout.variant(bits, recurrence.mode, (scoring.gap_open, scoring.gap_extend))
        tasks = _tasks(layout, of_subject, chunk.lengths, 32 // bits)
        arrays: dict[str, npt.NDArray[Any]] = {
            "tile_offsets": (chunk.column_offsets // 8).astype(np.uint32),
            "lengths": chunk.lengths,
            "profiles": layout.profile,
            "queries": layout.table,
            "tasks": tasks,
            "n_listed": np.array([len(tasks)], dtype=np.uint32),
            "counter": np.zeros(1, dtype=np.uint32),
        }
        addresses = self._put(arrays, region)
        scores: ScoreArray = np.empty(len(of_subject), dtype=np.int32)
        found = region.take(scores.nbytes)
        blocks = min(self._device.info.multiprocessors, len(tasks))
        warps = min(self._kernels.wavefront_warps(variant), -(-len(tasks) // blocks))
        step = longest if layout.passes > 1 else 0
        if step:
            left = region.n_bytes - region.used - SMALL_BYTES
            n_warps = max(1, min(blocks * warps, left // (BOUNDARY_BYTES * step)))
            blocks, warps = min(blocks, n_warps), max(1, n_warps // blocks)
        offsets = np.arange(blocks * warps, dtype=np.uint32) * np.uint32(step)
        addresses |= self._put({"boundary_offsets": offsets}, region)
        self._kernels.wavefront(variant).launch(
            blocks,
            warps * 32,
            self._stream,
            **addresses,
            residues=residues,
            n_subjects=len(of_subject),
            n_tasks=len(tasks),
            query_list=0,
            n_queries=0,
            bias=lane.bias,
            limit=lane.limit,
            one=1,
            boundary=region.take(BOUNDARY_BYTES * step * len(offsets)),
            scores=found,
            score_stride=0,
        )
        self._stream.synchronize()
        self._device.download(scores, found)
        return scores

    def _put(self, arrays: Mapping[str, npt.NDArray[Any]], region: Region) -> dict[str, int]:
        """Copy arrays of any shape and type to the device in one go; return their addresses.

        Each call of the driver lets go of the interpreter's lock, and may wait for it.
        """
        places = np.cumsum([0, *(-(-array.nbytes // 256) * 256 for array in arrays.values())]).tolist()
        joined = np.zeros(places[-1], dtype=np.uint8)
        for place, array in zip(places, arrays.values(), strict=False):
            joined[place : place + array.nbytes] = array.reshape(-1).view(np.uint8)
        address = region.take(len(joined))
        self._device.upload_async(address, joined, self._stream)
        return {name: address + place for name, place in zip(arrays, places, strict=False)}

    def close(self) -> None:
        """Free the memory."""
        if self._memory is not None:
            self._memory.free()
            self._memory = self._stream = None


def _tasks(
    layout: WavefrontLayout, of_subject: IntArray, lengths: npt.NDArray[np.int32], step: int
) -> npt.NDArray[np.int32]:
    """Return the query and the first of ``step`` subjects of each task, the largest first, shape (n_tasks, 2)."""
    places = np.arange(0, len(of_subject), step)
    passes = layout.table["passes"][of_subject[places]].astype(np.int64)
    order = np.argsort(-passes * lengths[places], kind="stable")
    return np.stack([of_subject[places], places], axis=1).astype(np.int32)[order]
