"""Several GPUs as one engine: each has a thread, a context and a share of the database.

A database that fits all devices together is partitioned once and stays on them; otherwise chunks go to whichever
device is free. The engine's own state changes only in the thread of the job, which `handle_failures` is called from
again and again: a device that fails is left out, and the others read its share once more.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

from swsearch.blocks import LANES, Chunk, IntArray, RunLengths
from swsearch.engines.base import (
    ChunkHits,
    ChunkPlan,
    Engine,
    HitThresholds,
    LoadedChunk,
    PairAligner,
    PendingHits,
    Progress,
    QueryGroup,
    ScoreArray,
    Workload,
)
from swsearch.engines.gpu.device import GpuMemoryError, describe_devices
from swsearch.engines.gpu.device_group import DeviceGroup, DeviceLostError, DeviceThread, TaskResult
from swsearch.engines.gpu.engine import GPU_WORTH_HITS, UNPLANNED_QUERIES, UNPLANNED_ROWS, GpuEngine
from swsearch.engines.gpu.limits import check_memory
from swsearch.engines.gpu.memory import CHUNK_BYTES
from swsearch.engines.gpu.partition import (
    SLACK,
    BlockPartitioner,
    DevicePiece,
    DeviceShare,
    merge_pieces,
    partition_by_weight,
    share_of,
    split_chunk,
)
from swsearch.engines.gpu.slot_memory import EngineUsage
from swsearch.engines.gpu.variants import device_kind
from swsearch.errors import EngineError, OptionError
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryProfile

GpuThread = DeviceThread[GpuEngine]

CHUNKS_ON_THE_WAY = 2
"""Chunks that may be on their way to the devices while a resident database is loaded: these, and the one that is
read, are in the host's memory."""

WAIT_SECONDS = 0.001
"""Time until a wait for the devices looks at failures."""


@dataclass(eq=False)
class DistributedChunk:
    """A chunk that a job loaded, or several that are scored as one.

    Parameters
    ----------
    chunk : Chunk
        Without residues.
    firsts : dict of int to int
        Places of the chunks in the database, and in this one the place of the first subject of each.
    source : Chunk or None
        With residues, while the host has them.
    pieces : list of (GpuThread, DevicePiece)
        What is resident on the devices.
    loads : list of Future
        Loads that may not have ended.
    """

    chunk: Chunk
    firsts: dict[int, int]
    source: Chunk | None = None
    pieces: list[tuple[GpuThread, DevicePiece]] = field(default_factory=list)
    loads: list[Future[None]] = field(default_factory=list)


class MultiGpuEngine(Engine):
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
        If one of the devices, the driver, package for it or a compiler cannot be used.
    OptionError
        If there is no such device.
    EngineError
        If no threads can be started.
    """

    name = "gpu"

    def __init__(self, devices: Sequence[int], memory: int | None = None, *, spare: bool = False) -> None:
        if not devices:
            raise OptionError("device", devices, "at least one device")
        check_memory(memory)
        self._memory_limit, times = memory, Counter(devices)
        limits = [None if memory is None else max(memory // times[device], 1) for device in devices]
        openers = [partial(GpuEngine, device, limit) for device, limit in zip(devices, limits, strict=True)]
        self.group: DeviceGroup[GpuEngine] = DeviceGroup(openers, "swsearch-gpu", spare, slots=attrgetter("slots"))
        self._close = weakref.finalize(self, self.group.close)
        self.is_resident = self.keeps = False
        """Whether the database is partitioned, and whether it was when the job began, which then keeps its chunks."""
        self.generation = 0
        """Number of plans of the devices so far: a scan restarts if it changed."""
        self.in_flight = self.piece_bytes = 1
        """Pieces that may be in work at a time, and the most bytes of one that is streamed."""
        self._reload: Callable[[], Iterator[Chunk]] | None = None
        self._workload, self._longest = Workload(0, RunLengths.from_unsorted([]), []), 0
        self._used: list[GpuThread] = []
        self._shares: list[DeviceShare] = []
        self._loaded: list[DistributedChunk] = []
        self._merged: DistributedChunk | None = None
        self._pair_calls = count()

    @property
    def _engines(self) -> list[GpuEngine]:
        return [thread.device for thread in self.group.threads]

    @property
    def description(self) -> str:
        """Devices, architectures and compilers."""
        return describe_devices(
            [each.info for each in self._engines], [each.compiler.description for each in self._engines]
        )

    @property
    def kernel_seconds(self) -> float:
        """Seconds in which kernels of any device ran so far, by the devices' clocks."""
        return self.usage.kernel_seconds

    @property
    def usage(self) -> EngineUsage:
        """Work of all devices; their kernels are taken to run at the same time."""
        every = [engine.usage for engine in self._engines]
        return EngineUsage(
            sum(each.load_seconds for each in every),
            sum(each.cells for each in every),
            max(each.kernel_seconds for each in every),
            set().union(*(each.launched for each in every)),
        )

    # plans

    def plan(self, workload: Workload) -> ChunkPlan:
        """Plan a job; a device with too little memory for it is left out."""
        self.group.begin_job()
        self._reload = None
        plans = self._plan(workload, may_stay=True)
        note = "; ".join(plan.note for plan in plans)
        return ChunkPlan(self.piece_bytes, self.is_resident, not self.is_resident, self.in_flight, note)

    def _plan(self, workload: Workload, may_stay: bool) -> list[ChunkPlan]:
        self._workload, self._longest = workload, RunLengths.from_unsorted([workload.lengths]).longest
        self._loaded, self._merged = [], None
        plans = self._arrange(may_stay)
        self.keeps = self.is_resident
        return plans

    def usable(self) -> list[GpuThread]:
        """Return the devices that are not left out; raise if none is left."""
        if usable := self.group.usable:
            return usable
        found = [thread.error for thread in self.group.threads]
        errors = list(dict.fromkeys(map(str, found)))
        if len(errors) == 1 and isinstance(found[0], (EngineError, GpuMemoryError)):
            raise found[0]
        causes = "; ".join(error.split("; ")[0] for error in errors)
        if all(isinstance(error, GpuMemoryError) for error in found):
            raise GpuMemoryError(f"{causes}; allow more with --gpu-memory, or use --engine cpu")
        raise EngineError(f"every GPU failed: {causes}; run again, with --engine cpu if it stays")

    def _arrange(self, may_stay: bool) -> list[ChunkPlan]:
        """Plan on the usable devices, with a resident database if it may stay and fits; drop what they held."""
        self.generation += 1
        for each in self._loaded if self._merged is None else [*self._loaded, self._merged]:
            each.pieces, each.loads = [], []
        results_of(thread.call(GpuEngine.forget) for thread in self.group.threads if not thread.is_dead)
        self._used = used = self.usable()
        times = Counter(thread.device.info.index for thread in used)
        budgets = results_of(thread.call(methodcaller("budget", times[thread.device.info.index])) for thread in used)
        if len(budgets) < len(used):
            return self._arrange(may_stay)
        parts = self._parts(budgets) if may_stay else None
        self.is_resident = parts is not None
        self._shares = [share_of(self._workload, part) for part in parts or [1.0] * len(used)]
        for thread, share in zip(used, self._shares, strict=True):
            if not share.part:
                text = f"{thread.device.info}: too little memory is free for a part of the database"
                self.group.leave_out(thread, GpuMemoryError(text))
        if parts is not None and not all(parts):
            return self._arrange(may_stay)
        plans = results_of(
            thread.call(methodcaller("plan", share.workload, self.is_resident, budget))
            for thread, share, budget in zip(used, self._shares, budgets, strict=True)
        )
        if len(plans) < len(used):
            return self._arrange(may_stay)
        if self.is_resident and not all(plan.keep_loaded for plan in plans):  # a device had less memory than it said
            return self._arrange(may_stay=False)
        self._partitioner = BlockPartitioner(self._shares)
        self.in_flight = sum(plan.in_flight for plan in plans)
        sizes = [
            plan.chunk_bytes / min(share.part * SLACK, 1.0) for plan, share in zip(plans, self._shares, strict=True)
        ]
        self.piece_bytes = min(CHUNK_BYTES, int(min(sizes)))
        self.group.warn_of_lost()
        return plans

    def _parts(self, budgets: Sequence[int]) -> list[float] | None:
        def fits(place: int, part: float) -> bool:
            return self._used[place].device.would_stay(share_of(self._workload, part).workload, budgets[place])

        infos = [thread.device.info for thread in self._used]
        return partition_by_weight([float(info.multiprocessors * info.clock) for info in infos], fits)

    def handle_failures(self) -> None:
        """Warn of devices that failed, and partition a resident database anew; raise if every device failed."""
        while any(thread.error is not None for thread in self._used):
            if not self.is_resident:
                self._used = self.usable()
                self.group.warn_of_lost()
                continue
            self._arrange(may_stay=True)
            for each, chunk in zip(self._loaded, self.read_again() if self._loaded else (), strict=False):
                if not self.is_resident:
                    break  # the scans read what they need
                each.source = chunk
                self._send(each)
            if self.is_resident and self._merged is not None:
                self._merge_pieces(self._merged)

    def read_again(self) -> Iterator[Chunk]:
        """Read the chunks of the database once more."""
        if self._reload is None:
            raise EngineError("chunks were lost with a device and cannot be read again; please report it")
        return self._reload()

    # queries and chunks

    def prepare(self, profiles: Sequence[QueryProfile], recurrence: Recurrence) -> QueryGroup:
        """Prepare a group of queries, once for all devices of one kind."""
        engines = {device_kind(engine.info.capability): engine for engine in reversed(self._engines)}
        groups = {kind: engine.prepare(profiles, recurrence) for kind, engine in engines.items()}
        return QueryGroup(profiles, recurrence, groups)

    def set_reload(self, chunks: Callable[[], Iterator[Chunk]]) -> None:
        """Register a function that reads the chunks of a failed device again, for the other devices."""
        self._reload = chunks

    def load(self, chunk: Chunk) -> LoadedChunk:
        """Load a chunk; the devices' threads copy it while earlier chunks are scored."""
        self.handle_failures()
        if not self._loaded and not self._foresaw(chunk):
            rows = [UNPLANNED_ROWS // UNPLANNED_QUERIES] * UNPLANNED_QUERIES
            self._plan(Workload(chunk.residues.nbytes, chunk.runs, [rows]), may_stay=False)
        loaded = DistributedChunk(chunk.without_residues(), {len(self._loaded): 0}, chunk)
        self._loaded.append(loaded)
        if self.is_resident:
            self._send(loaded)
        return LoadedChunk(loaded.chunk, loaded)

    def _foresaw(self, chunk: Chunk) -> bool:
        """Return whether a chunk is of the job that was planned; without a job each chunk has a plan of its own."""
        fits = chunk.residues.nbytes <= self._workload.residue_bytes and chunk.runs.longest <= self._longest
        return fits and bool(self._used)

    def _send(self, loaded: DistributedChunk) -> None:
        """Deal a chunk's blocks to the devices; if these are full, stream the database from now on."""
        assert loaded.source is not None
        dealt = self._partitioner.deal(loaded.source)
        if dealt is None:
            self._arrange(may_stay=False)
            return
        loaded.pieces = [(thread, piece) for thread, piece in zip(self._used, dealt, strict=True) if piece]
        loaded.loads = [thread.call(piece.load) for thread, piece in loaded.pieces]
        self._wait_for_loads(CHUNKS_ON_THE_WAY)

    def _wait_for_loads(self, most: int) -> None:
        """Wait until at most so many chunks are on their way; of those that arrived the host keeps no residues."""
        coming = [each for each in self._loaded if each.loads]
        while coming and (len(coming) > most or all(load.done() for load in coming[0].loads)):
            first = coming.pop(0)
            results_of(first.loads)
            first.loads, first.source = [], None

    def merge(self, loaded: Sequence[LoadedChunk]) -> list[LoadedChunk]:
        """Merge all chunks into one."""
        if len(loaded) < 2:
            return list(loaded)
        chunks = [each.chunk for each in loaded]
        ends = np.cumsum([chunk.n_subjects for chunk in chunks]).tolist()
        subjects = np.concatenate([chunk.subjects for chunk in chunks])
        runs = RunLengths.concatenate([chunk.runs for chunk in chunks])
        whole = Chunk(np.empty((0, LANES), dtype=np.uint8), np.zeros(1, dtype=np.int64), runs, subjects)
        firsts = {}
        for each, end in zip(loaded, ends, strict=True):
            begin = end - each.chunk.n_subjects
            each.chunk.subjects = subjects[begin:end]  # not twice in memory
            firsts.update(dict.fromkeys(each.handle.firsts, begin))
        self._merged = DistributedChunk(whole, firsts)
        if self.is_resident:
            self._merge_pieces(self._merged)
        self.handle_failures()
        return [LoadedChunk(whole, self._merged)]

    def _merge_pieces(self, whole: DistributedChunk) -> None:
        """Merge the pieces of each device."""
        self._wait_for_loads(0)
        asked = {}
        for thread in self._used:
            pieces = [
                DevicePiece(piece.firsts + begin, None, piece.blocks, piece.loaded)
                for number, begin in whole.firsts.items()
                for owner, piece in self._loaded[number].pieces
                if owner is thread and piece.loaded is not None
            ]
            asked[thread] = thread.call(partial(merge_pieces, pieces))
        merged = [(thread, pieces) for thread, answer in asked.items() for pieces in results_of([answer])]
        whole.pieces = [(thread, piece) for thread, pieces in merged for piece in pieces]

    def release(self, loaded: LoadedChunk) -> None:
        """Release a chunk; it may not be scored again."""
        if loaded.handle is self._merged:
            self._merged = None
            return
        self._loaded = [each for each in self._loaded if each is not loaded.handle]
        if not self._loaded and self.is_resident:
            self.generation += 1  # what nobody waits for is not begun any more
            for thread in self._used:
                thread.call(GpuEngine.release_all)
            self._partitioner = BlockPartitioner(self._shares)

    # scans

    def start_scan(
        self, group: QueryGroup, loaded: LoadedChunk, thresholds: HitThresholds, progress: Progress | None = None
    ) -> PendingHits:
        """Begin to find the hits of every query of a group in a chunk."""
        scan = MultiGpuScan(self, group, loaded.handle, thresholds, progress)
        return PendingHits(scan.candidates, scan.is_ready)

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """Score a group against a chunk, on all devices."""
        return MultiGpuScan(self, group, loaded.handle, None, progress).scores()

    def takes_pairs(self) -> bool:
        """Return whether all devices would score pairs."""
        usable = self.group.usable
        return bool(usable) and all(thread.device.takes_pairs() for thread in usable)

    def score_pairs(
        self, profiles: Sequence[QueryProfile], of_subject: IntArray, chunk: Chunk, recurrence: Recurrence
    ) -> ScoreArray:
        """Score each subject of a chunk with one query, on the devices in turn."""
        usable = self.usable()
        thread = usable[next(self._pair_calls) % len(usable)]
        return thread.device.score_pairs(profiles, of_subject, chunk, recurrence)

    def pair_aligner(self, n_hits: int) -> PairAligner | None:
        """Make the aligner of hits: each device once, or only the CPU if a memory limit leaves no room."""
        usable = self.group.usable
        if n_hits < GPU_WORTH_HITS or self._memory_limit is not None or not usable:
            return None
        different = list(dict.fromkeys(thread.device.info.index for thread in usable))
        if len(different) == 1:
            return usable[0].device.pair_aligner(n_hits)
        from swsearch.engines.gpu.pairs.multi_gpu import MultiGpuPairAligner

        return MultiGpuPairAligner(different, spare=True)

    def close(self) -> None:
        """Free the devices' memory, release their contexts and end their threads."""
        self._close()


def results_of(asked: Iterable[Future[TaskResult]]) -> list[TaskResult]:
    """Return what calls on devices answered, without those whose device failed."""
    found = []
    for each in list(asked):
        try:
            found.append(each.result())
        except DeviceLostError:
            continue
    return found


class MultiGpuScan:
    """A chunk scored on all devices, begun at once; it begins again where a resident database is partitioned anew.

    Parameters
    ----------
    engine : MultiGpuEngine
        Of the devices.
    group : QueryGroup
        The queries; its handle has what engines made of them, by kind of device.
    subjects : DistributedChunk
        The chunk.
    thresholds : HitThresholds or None
        Which scores are hits; None for all scores.
    progress : callable, optional
        Called from the thread that waits.
    """

    def __init__(
        self,
        engine: MultiGpuEngine,
        group: QueryGroup,
        subjects: DistributedChunk,
        thresholds: HitThresholds | None,
        progress: Progress | None,
    ) -> None:
        self._engine, self._group, self._subjects = engine, group, subjects
        self._thresholds, self._progress, self._n_reported = thresholds, progress, 0
        engine.handle_failures()
        self._begin()

    def _begin(self) -> None:
        """Queue all tasks of the devices, or none yet if chunks have to be read again."""
        self._generation, subjects = self._engine.generation, self._subjects
        self._tasks: list[tuple[DevicePiece, Future[Any]]] = []
        self._cells: dict[int, int] = {}
        self._coming: Iterator[DevicePiece] | None = None
        for thread, piece in subjects.pieces:
            self._add(piece, thread)
        if not subjects.pieces and subjects.source is not None:
            for piece in self._split(subjects.source, 0):
                self._add(piece)
        elif not subjects.pieces:
            self._coming = self._read_again()

    def _split(self, chunk: Chunk, first: int) -> Iterator[DevicePiece]:
        """Split a chunk into pieces for whichever device is free; for all scores, at least one for each device."""
        n_bytes, most = chunk.residues.nbytes, self._engine.piece_bytes
        if self._thresholds is None:
            most = min(most, -(-n_bytes // len(self._engine.usable())))
        for piece in split_chunk(chunk, most):
            piece.firsts = piece.firsts + first
            yield piece

    def _read_again(self) -> Iterator[DevicePiece]:
        """Read chunks once more that are nowhere any more."""
        firsts = dict(self._subjects.firsts)
        for number, chunk in enumerate(self._engine.read_again()):
            if number in firsts:
                yield from self._split(chunk, firsts.pop(number))
            if not firsts:
                return

    def _add(self, piece: DevicePiece, owner: GpuThread | None = None) -> None:
        """Queue a piece for the device that has it, or for any device."""
        cells, number, generation = self._cells, len(self._tasks), self._generation

        def scan(engine: GpuEngine) -> PendingHits | None:
            if generation != self._engine.generation:  # nobody waits for it, and the piece may be gone
                return None
            loaded = piece.loaded or engine.load(piece.chunk())
            group = self._group.handle[device_kind(engine.info.capability)]
            cells[number] = 0

            def count(n: int) -> None:
                cells[number] += n

            def finish() -> Any:
                found = pending.wait()
                if piece.loaded is None:
                    engine.release(loaded)
                    piece.source = None
                return found

            if self._thresholds is None:
                pending = PendingHits(partial(engine.score, group, loaded, count))  # type: ignore[arg-type]
            else:
                pending = engine.start_scan(group, loaded, self._thresholds, count)
            return PendingHits(finish, pending.is_ready)

        self._tasks.append((piece, self._engine.group.put(scan, owner)))

    def is_ready(self) -> bool:
        """Handle what happened meanwhile, and return whether everything was found."""
        engine = self._engine
        engine.handle_failures()
        if self._generation != engine.generation and not self._is_done():
            self._begin()
        while self._coming is not None and sum(not task.done() for _, task in self._tasks) < engine.in_flight:
            piece = next(self._coming, None)
            if piece is None:
                self._coming = None
            else:
                self._add(piece)
        total = sum(list(self._cells.values()))
        if self._progress is not None and total > self._n_reported:
            self._progress(total - self._n_reported)
            self._n_reported = total
        return self._is_done()

    def _is_done(self) -> bool:
        """Return whether all results are there; raise the error of a task."""
        is_done = self._coming is None
        for _, task in self._tasks:
            if not task.done() or isinstance(task.exception(), DeviceLostError):
                is_done = False
            elif task.exception() is not None:
                self._engine.usable()  # raises for all devices, if none is left
                task.result()
            elif task.result() is None:  # it came when the database was partitioned anew already
                is_done = False
        return is_done

    def _wait(self) -> list[tuple[DevicePiece, Any]]:
        changed = self._engine.group.changed
        while not self.is_ready():
            with changed:
                changed.wait(WAIT_SECONDS)
        if self._engine.keeps:
            self._subjects.source = None
        return [(piece, task.result()) for piece, task in self._tasks]

    def candidates(self) -> list[ChunkHits]:
        """Wait for the hits of every query."""
        found = self._wait()
        together = []
        for query in range(len(self._group.profiles)):
            each = [piece.moved(candidates[query]) for piece, candidates in found]
            places = np.concatenate([np.empty(0, dtype=np.int64), *(one.indices for one in each)])
            scores = np.concatenate([np.empty(0, dtype=np.int32), *(one.scores for one in each)])
            together.append(ChunkHits(places, scores))
        return together

    def scores(self) -> ScoreArray:
        """Wait for all scores, shape (n_queries, n_subjects)."""
        values: ScoreArray = np.zeros((len(self._group.profiles), self._subjects.chunk.n_subjects), dtype=np.int32)
        for piece, scores in self._wait():
            values[:, piece.places(np.arange(scores.shape[1]))] = scores
        return values
