"""Several GPUs as one engine: each has its thread, its context and its share of the work.

A database that fits all of them together stays there, divided; otherwise chunks go to whichever is free. Queries are
scored together on each. A device that fails leaves its work to the others. Results never depend on who did what.
"""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from swsearch.blocks import Chunk
from swsearch.engines.base import (
    ChunkPlan,
    Engine,
    LoadedChunk,
    Pending,
    Progress,
    QueryGroup,
    ScoreArray,
    Thresholds,
    Workload,
)
from swsearch.engines.devices import warn_left_out
from swsearch.engines.gpu.chunks import Usage
from swsearch.engines.gpu.device import describe_devices
from swsearch.engines.gpu.engine import GPU_WORTH_HITS, GpuEngine
from swsearch.engines.gpu.fleet import Fleet
from swsearch.engines.gpu.limits import check_memory
from swsearch.engines.gpu.memory import MemoryPlan
from swsearch.engines.gpu.together import Scan
from swsearch.engines.gpu.variants import DeviceKind, device_kind
from swsearch.engines.gpu.worker import Board, GpuWorker
from swsearch.engines.pair_base import PairAligner
from swsearch.errors import EngineError, GpuUnavailableError, OptionError, SwsearchWarning
from swsearch.processors import has_room_for_threads
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryRows


@dataclass(frozen=True)
class MemoryPlans:
    """How the memory of several devices is divided.

    Parameters
    ----------
    plans : sequence of MemoryPlan
        One for each device that has a part.
    """

    plans: Sequence[MemoryPlan]

    @property
    def resident(self) -> bool:
        """Whether the database stays on the devices."""
        return all(plan.resident for plan in self.plans)

    @property
    def n_slots(self) -> int:
        """Pieces in work at a time, on all devices."""
        return sum(plan.n_slots for plan in self.plans)

    @property
    def total(self) -> int:
        """Bytes that are allocated, on all devices."""
        return sum(plan.total for plan in self.plans)

    def __str__(self) -> str:
        return "; ".join(map(str, self.plans))


class SeveralGpus(Engine):
    """Scores on several NVIDIA GPUs at the same time.

    Parameters
    ----------
    devices : sequence of int
        Which ones; one that is named twice is opened twice, and its memory divided.
    memory : int, optional
        Bytes of each device's memory that may be used; by default nearly all that is free.
    spare : bool, optional
        Whether a device that cannot be opened is left out, with a warning, unless it is the last.

    Raises
    ------
    GpuUnavailableError
        If one of the devices, the driver, PyCUDA or a compiler cannot be used.
    OptionError
        If there is no such device.
    EngineError
        If there are no threads to be had.
    """

    name = "gpu"

    def __init__(self, devices: Sequence[int], memory: int | None = None, *, spare: bool = False) -> None:
        if not devices:
            raise OptionError("device", devices, "at least one device")
        check_memory(memory)
        self._memory_limit, times = memory, Counter(devices)
        self._board = Board()
        if not has_room_for_threads(len(devices)):
            raise EngineError(
                f"no memory is left for the threads of {len(devices)} devices; raise its limit (ulimit -v), or "
                "use one device"
            )
        limits = [None if memory is None else max(memory // times[device], 1) for device in devices]
        workers = [
            GpuWorker(device, partial(GpuEngine, device, limit), self._board)
            for device, limit in zip(devices, limits, strict=True)
        ]
        try:
            workers = _opened(workers, spare)
        except BaseException:
            _end(self._board, workers)
            raise
        self.fleet = Fleet(workers, self._board)
        self._end = weakref.finalize(self, _end, self._board, workers)

    # what is there

    @property
    def description(self) -> str:
        """Devices, architectures and compilers."""
        engines = [worker.engine for worker in self.fleet.workers]
        return describe_devices([each.info for each in engines], [each.compiler.description for each in engines])

    @property
    def usage(self) -> Usage:
        """What all devices did so far; when kernels ran is by the clock of the first."""
        engines = [worker.engine for worker in self.fleet.workers]
        usage = Usage()
        for engine in engines:
            usage.add(engine.usage, engine.clock_begun - engines[0].clock_begun)
        return usage

    @property
    def memory_plan(self) -> MemoryPlans | None:
        """How the devices' memory is divided; None before a job has planned."""
        plans = [worker.engine.memory_plan for worker in self.fleet.used]
        known = [plan for plan in plans if plan is not None]
        return MemoryPlans(known) if known else None

    # the engine's interface

    def plan(self, workload: Workload) -> ChunkPlan:
        """See `Engine.plan`; a device with too little memory for the job is left out."""
        return self.fleet.plan(workload)

    def prepare(self, profiles: Sequence[QueryRows], recurrence: Recurrence) -> QueryGroup:
        """See `Engine.prepare`; once for all devices of one kind."""
        groups: dict[DeviceKind, QueryGroup] = {}
        for worker in self.fleet.workers:
            kind = device_kind(worker.engine.info.capability)
            if kind not in groups:
                groups[kind] = worker.engine.prepare(profiles, recurrence)
        return QueryGroup(profiles, recurrence, groups)

    def reads_again(self, chunks: Callable[[], Iterator[Chunk]]) -> None:
        """See `Engine.reads_again`: what a device that fails had is read once more for the others."""
        self.fleet.again = chunks

    def load(self, chunk: Chunk) -> LoadedChunk:
        """See `Engine.load`; the devices' threads copy, while earlier chunks are scored."""
        return self.fleet.load(chunk)

    def merge(self, loaded: Sequence[LoadedChunk]) -> list[LoadedChunk]:
        """See `Engine.merge`."""
        return self.fleet.merge(loaded)

    def release(self, loaded: LoadedChunk) -> None:
        """See `Engine.release`."""
        self.fleet.release(loaded)

    def find(
        self, group: QueryGroup, loaded: LoadedChunk, thresholds: Thresholds, progress: Progress | None = None
    ) -> Pending:
        """See `Engine.find`."""
        return Scan(self.fleet, group, loaded.handle, thresholds, progress).pending()

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """See `Engine.score`; all devices score one chunk."""
        return Scan(self.fleet, group, loaded.handle, None, progress).scores()

    def pair_aligner(self, n_hits: int) -> PairAligner | None:
        """See `Engine.pair_aligner`; each device once, and only the CPU where a bound on memory leaves no room."""
        usable = [worker for worker in self.fleet.workers if worker.is_usable]
        if n_hits < GPU_WORTH_HITS or self._memory_limit is not None or not usable:
            return None
        different = list(dict.fromkeys(worker.engine.info.index for worker in usable))
        if len(different) == 1:
            return usable[0].engine.pair_aligner(n_hits)
        from swsearch.engines.gpu.pairs.several import SeveralPairAligners

        return SeveralPairAligners(different, spare=True)

    def synchronize(self) -> None:
        """Wait until everything that was begun is done."""
        for asked in [worker.call(worker.engine.synchronize) for worker in self.fleet.used]:
            self.fleet.answer(asked, None)
        self.fleet.attend()

    def close(self) -> None:
        """Free the devices' memory, let go of their contexts and end their threads."""
        if self._end.detach() is None:
            return
        _end(self._board, self.fleet.workers)
        for worker in self.fleet.workers:
            if worker.closing_error is not None and not worker.is_dead:
                warnings.warn(f"closed after all was done: {worker.closing_error}", SwsearchWarning, stacklevel=2)


def _opened(workers: Sequence[GpuWorker], spare: bool) -> list[GpuWorker]:
    """Open devices, the first alone, which finds the driver and the compiler; return those that could be opened."""
    usable: list[GpuWorker] = []
    refused: list[GpuUnavailableError] = []
    for some in (workers[:1], workers[1:]):
        for worker in some:
            worker.start()
        for worker in some:
            try:
                worker.wait_until_open()
                usable.append(worker)
            except GpuUnavailableError as error:
                refused.append(error)
                if not spare:
                    raise
    if not usable:
        raise refused[0]
    warn_left_out(refused)
    return usable


def _end(board: Board, workers: Sequence[GpuWorker]) -> None:
    """End the threads, which close the engines."""
    board.close()
    for worker in workers:
        worker.join()
