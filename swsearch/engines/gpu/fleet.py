"""What several devices hold of a job's database, and what happens when one of them fails.

A database stays on the devices if they hold it together: each chunk's blocks are dealt to them. All is decided and
done in the thread of the job, which `Fleet.attend` is called from again and again; the devices' threads only say that
they failed. When something that stays is lost, the others divide the database anew, and it is read once more.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np

from swsearch.blocks import LANES, Chunk, RunLengths
from swsearch.engines.base import ChunkPlan, LoadedChunk, Workload
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.division import SLACK, Dealer, DevicePiece, DeviceRoom, Share, divided, merged, share_of
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.memory import CHUNK_BYTES
from swsearch.engines.gpu.speeds import Speeds
from swsearch.engines.gpu.worker import Answer, Board, DeviceLostError, GpuWorker
from swsearch.errors import EngineError, SwsearchWarning

CHUNKS_ON_THE_WAY = 2
"""Chunks that may be on their way to the devices while a database that stays there is brought: so many, and the one
that is read, are in the host's memory."""

MOST_TRIES = 4
"""How often a database is divided anew where devices turn out to have less memory than they said."""

WAIT_SECONDS = 0.001
"""How long a wait for the devices lasts before what happened meanwhile is looked at."""

Other = TypeVar("Other")


@dataclass(eq=False)
class Held:
    """A chunk that a job loaded.

    Parameters
    ----------
    chunk : Chunk
        Without residues.
    number : int
        Its place among the chunks of the database.
    source : Chunk or None
        With residues, while the host has them.
    pieces : list of (GpuWorker, DevicePiece)
        What stands on the devices.
    waits : list of Future
        For what is on its way to them.
    is_used : bool
        Whether it was scored once.
    """

    chunk: Chunk
    number: int
    source: Chunk | None
    pieces: list[tuple[GpuWorker, DevicePiece]] = field(default_factory=list)
    waits: list[Future[None]] = field(default_factory=list)
    is_used: bool = False

    @property
    def parts(self) -> list[tuple[Held, int]]:
        """The chunks that this is made of, itself, with their first places."""
        return [(self, 0)]


@dataclass(eq=False)
class Whole:
    """Chunks that are scored together.

    Parameters
    ----------
    chunk : Chunk
        All of them, without residues.
    parts : list of (Held, int)
        What it is made of, with their first places in it.
    pieces : list of (GpuWorker, DevicePiece)
        What stands on the devices.
    """

    chunk: Chunk
    parts: list[tuple[Held, int]]
    pieces: list[tuple[GpuWorker, DevicePiece]] = field(default_factory=list)
    source: None = None


class Fleet:
    """Devices that work for one job.

    Parameters
    ----------
    workers : sequence of GpuWorker
        At least one; started.
    board : Board
        Theirs.

    Attributes
    ----------
    stays : bool
        Whether the database is divided, and stays on the devices.
    turn : int
        How often it was divided so far: what was begun in an earlier turn has to be begun again.
    again : callable or None
        Reads the database's chunks once more.
    """

    def __init__(self, workers: Sequence[GpuWorker], board: Board) -> None:
        self.workers, self.board = list(workers), board
        self.weights = [_strength(each.engine) for each in workers]
        self.stays, self.turn = False, 0
        self.again: Callable[[], Iterator[Chunk]] | None = None
        self._workload: Workload | None = None
        self._shares: list[tuple[GpuWorker, Share]] = []
        self._dealer: Dealer | None = None
        self._held: list[Held] = []
        self._whole: Whole | None = None
        self._longest = self._divided_anew = 0
        self._speeds: Speeds | None = None
        # those of which it was said that they are left out, and those that have no part in what was planned last
        self._told: set[GpuWorker] = set()
        self._out: set[GpuWorker] = set()

    # plans

    def plan(self, workload: Workload) -> ChunkPlan:
        """Get ready for a job; see `Engine.plan`."""
        for worker in self.workers:
            worker.begin_job()
        self._told = {worker for worker in self._told if worker.is_dead}
        self._workload, self._held, self._whole, self.again = workload, [], None, None
        self._longest = RunLengths.counted([workload.lengths]).longest
        self.weights, self._divided_anew = [_strength(worker.engine) for worker in self.workers], 0
        self._arrange(may_stay=True)
        self._tell()
        used = self.used
        notes = [f"{each.engine.info}: {each.engine.memory_plan}" for each in used]
        return ChunkPlan(self._chunk_bytes(), self.stays, not self.stays, self.in_flight, "; ".join(notes))

    @property
    def used(self) -> list[GpuWorker]:
        """The devices that have a part in the job."""
        if not self.stays:
            return [worker for worker in self.workers if worker.is_usable]
        return [worker for worker, share in self._shares if share.part > 0]

    @property
    def in_flight(self) -> int:
        """Pieces that may be in work at a time."""
        return max(sum(worker.engine.slots for worker in self.used), 1)

    def piece_bytes(self) -> int:
        """Return the most bytes of a piece that any device may take where chunks are not divided for good."""
        plans = [worker.engine.memory_plan for worker in self.used]
        return min((plan.chunk_bytes for plan in plans if plan is not None), default=CHUNK_BYTES)

    def _chunk_bytes(self) -> int:
        if not self.stays:
            return self.piece_bytes()
        sizes = [CHUNK_BYTES]
        for worker, share in self._shares:
            if share.part > 0 and worker.engine.memory_plan is not None:
                sizes.append(int(worker.engine.memory_plan.chunk_bytes / min(share.part * SLACK, 1.0)))
        return min(sizes)

    def _usable(self) -> list[GpuWorker]:
        """Return the devices that did not fail.

        Raises
        ------
        EngineError, GpuMemoryError
            If all did.
        """
        usable = [worker for worker in self.workers if worker.is_usable]
        if usable:
            return usable
        errors = list(dict.fromkeys(str(worker.error) for worker in self.workers))
        first = self.workers[0].error
        if len(errors) == 1 and isinstance(first, (EngineError, GpuMemoryError)):
            raise first
        causes = "; ".join(error.split("; ")[0] for error in errors)
        if all(isinstance(worker.error, GpuMemoryError) for worker in self.workers):
            raise GpuMemoryError(f"{causes}; allow more with --gpu-memory, or use --engine cpu")
        raise EngineError(f"every GPU failed: {causes}; run again, with --engine cpu if it stays")

    def _arrange(self, may_stay: bool) -> None:
        """Plan with the devices that there are, divided or not; what they held is gone."""
        assert self._workload is not None
        with self.board.changed:
            self.turn += 1
            self.board.tasks.clear()
            for worker in self.workers:
                worker.drop_tasks()
                worker.takes_tasks = False
        for attempt in range(MOST_TRIES + len(self.workers)):
            usable = self._usable()
            self._out = {worker for worker in self.workers if worker not in usable}
            budgets = self._budgets(usable)
            if budgets is None:
                continue
            parts = self._parts(usable, budgets) if may_stay and attempt < MOST_TRIES else None
            self.stays = parts is not None
            if parts is not None and (
                without := [each for each, part in zip(usable, parts, strict=True) if not part]
            ):
                for worker in without:
                    info = worker.engine.info
                    worker.leave_out(GpuMemoryError(f"{info}: too little memory is free for a part of the database"))
                continue
            if self._allocate(usable, parts):
                break
        self._usable()
        with self.board.changed:
            for worker in self.workers:
                worker.takes_tasks = worker.is_usable and not self.stays
        rooms = [share.room if share.part > 0 else DeviceRoom(0, 0) for _, share in self._shares]
        self._dealer = Dealer([share.part for _, share in self._shares], rooms) if self.stays else None
        self._speeds = Speeds([worker.engine for worker in self.used], self._workload.residue_bytes)

    def _budgets(self, usable: Sequence[GpuWorker]) -> list[int] | None:
        """Let devices free everything, and return the bytes that each may plan with; None if one failed."""
        sharing = Counter(worker.engine.info.index for worker in usable)

        def budget(engine: GpuEngine, less: int | None) -> int:
            engine.most = less
            engine.most = engine.budget(sharing[engine.info.index])
            return engine.most

        freed = [worker.call(worker.engine.forget) for worker in usable]
        if any(self.answer(each, EngineError) is not None for each in freed):
            return None
        for worker in usable:
            worker.wants_less = False
        found = [self.answer(worker.call(partial(budget, worker.engine, worker.less)), -1) for worker in usable]
        return None if any(each < 0 for each in found) else found

    def _parts(self, usable: Sequence[GpuWorker], budgets: Sequence[int]) -> list[float] | None:
        workload = self._workload
        assert workload is not None

        def fits(place: int, part: float) -> bool:
            return usable[place].engine.would_stay(share_of(workload, part).workload, budgets[place])

        return divided([self.weights[self.workers.index(worker)] for worker in usable], fits)

    def _allocate(self, usable: Sequence[GpuWorker], parts: Sequence[float] | None) -> bool:
        """Let every device allocate what it needs; say whether all could, as was thought."""
        workload = self._workload
        assert workload is not None
        self._shares = []
        works = [workload] * len(usable)
        if parts is not None:
            self._shares = [(worker, share_of(workload, part)) for worker, part in zip(usable, parts, strict=True)]
            works = [share.workload for _, share in self._shares]
        asked = [
            (worker, worker.call(partial(_planned, worker.engine, work, parts is not None)))
            for worker, work, part in zip(usable, works, parts or [1.0] * len(usable), strict=True)
            if part > 0
        ]
        good = True
        for worker, answer in asked:
            problem = self.answer(answer, DeviceLostError("lost"))
            if isinstance(problem, GpuMemoryError):
                worker.leave_out(problem)
            plan = worker.engine.memory_plan
            if problem is None and parts is not None and plan is not None and not plan.resident:
                worker.less, problem = plan.budget, GpuMemoryError("less")
            good &= problem is None
        return good

    # what happens meanwhile

    def answer(self, asked: Future[Answer], otherwise: Other) -> Answer | Other:
        """Return what a device's thread answers, or something else where the device failed."""
        try:
            return asked.result()
        except DeviceLostError:
            return otherwise

    def attend(self) -> None:
        """Look whether a device failed, and let the others have its work.

        Raises
        ------
        EngineError, GpuMemoryError
            If every device failed.
        """
        while lost := [each for each in self.workers if self._is_lost(each)]:
            self._tell()
            self._usable()
            if self._workload is None:
                self._out.update(worker for worker in lost if worker.error)
                for worker in lost:
                    worker.engine.most, worker.wants_less = worker.less, False
                    worker.takes_tasks = worker.is_usable
            elif self.stays:
                self._arrange(may_stay=True)
                self._bring_again()
            else:
                self._out.update(worker for worker in lost if worker.error)
                self._go_on_with_less([worker for worker in lost if worker.wants_less])
            self._tell()
            with self.board.changed:
                self.board.changed.notify_all()

    def _is_lost(self, worker: GpuWorker) -> bool:
        """Say whether what a device had of the job, as it was planned last, is lost."""
        return worker.wants_less if worker.is_usable else worker not in self._out

    def balance(self) -> None:
        """Divide a database that stays anew, if the devices' speeds turn out to be other than was thought.

        What was begun ends first.
        """
        if not self.stays or self._whole is None or self.again is None or self._speeds is None:
            return
        speeds = self._speeds.measured(self._divided_anew)
        if speeds is None:
            return
        used = self.used
        for asked in [worker.call(_nothing) for worker in used]:
            self.answer(asked, None)
        mean = sum(speeds) / sum(self.weights[self.workers.index(worker)] for worker in used)
        known = dict(zip(used, speeds, strict=True))
        self.weights = [
            known.get(worker, weight * mean) for worker, weight in zip(self.workers, self.weights, strict=True)
        ]
        self._divided_anew += 1
        self._arrange(may_stay=True)
        self._bring_again()
        self._tell()

    def _go_on_with_less(self, workers: Sequence[GpuWorker]) -> None:
        """Let devices that ran out of memory plan for less, beside the others."""
        workload = self._workload
        assert workload is not None
        for worker in workers:
            worker.wants_less, worker.engine.most = False, worker.less
            problem = self.answer(worker.call(partial(_planned, worker.engine, workload, False)), None)
            if problem is not None:
                worker.leave_out(problem)
            worker.takes_tasks = worker.is_usable

    def _tell(self) -> None:
        """Say once of each device that it is left out."""
        for worker in self.workers:
            if worker.error is not None and worker not in self._told:
                self._told.add(worker)
                if any(other.is_usable for other in self.workers):
                    warnings.warn(
                        f"{worker.engine.info} is left out, and the other devices do its work: {worker.error}",
                        SwsearchWarning,
                        stacklevel=2,
                    )

    def _bring_again(self) -> None:
        """Read what the devices held once more; where it does not stay any more, what is needed soon stays here."""
        held, self._held = self._held, []
        if not held:
            return
        for each in held:
            each.pieces, each.waits = [], []
        self._held = held
        if self._whole is not None:
            self._whole.pieces = []
        if self.stays or not all(each.is_used or each.source is not None for each in held):
            for each, chunk in zip(held, self._sources(held), strict=False):
                if self.stays:
                    each.source = chunk
                    self._send(each)
                    self._wait_for_loads(held[: each.number + 1], 0)
                elif not each.is_used:
                    each.source = chunk
        if self._whole is not None and self.stays:
            self._merge(self._whole)

    def _sources(self, held: Sequence[Held]) -> Iterator[Chunk]:
        if self.again is not None:
            yield from self.again()
            return
        for each in held:
            assert each.source is not None
            yield each.source

    # chunks

    def load(self, chunk: Chunk) -> LoadedChunk:
        """Take in a chunk; it comes to the devices later."""
        self.attend()
        if not self._foresaw(chunk):
            self._plan_for_none()
        held = Held(chunk.kept(), len(self._held), chunk)
        self._held.append(held)
        if self.stays:
            self._send(held)
            self._wait_for_loads(self._held, CHUNKS_ON_THE_WAY)
        return LoadedChunk(held.chunk, held)

    def _foresaw(self, chunk: Chunk) -> bool:
        """Say whether a chunk is of the job that was planned."""
        if self._held or self._workload is None:
            return bool(self._held)
        return chunk.residues.nbytes <= self._workload.residue_bytes and chunk.runs.longest <= self._longest

    def _plan_for_none(self) -> None:
        """Let devices plan for each chunk as it comes: engines can be used without a job."""
        with self.board.changed:
            self.turn += 1
            self.board.tasks.clear()
            for worker in self.workers:
                worker.drop_tasks()
                worker.takes_tasks = worker.is_usable
        self._workload, self.stays = None, False
        sharing = Counter(worker.engine.info.index for worker in self._usable())
        for worker in self._usable():
            self.answer(worker.call(worker.engine.forget), None)
            worker.engine.most = worker.less
            found = self.answer(worker.call(partial(worker.engine.budget, sharing[worker.engine.info.index])), None)
            worker.engine.most = found

    def _send(self, held: Held) -> None:
        """Deal a chunk's blocks to the devices; if they do not hold the database together, nothing stays there."""
        assert self._dealer is not None
        assert held.source is not None
        dealt = self._dealer.deal(held.source)
        if dealt is None:
            self._arrange(may_stay=False)
            self._bring_again()
            return
        for (worker, _), piece in zip(self._shares, dealt, strict=True):
            if piece is not None:
                held.pieces.append((worker, piece))
                held.waits.append(worker.call(partial(piece.load, worker.engine)))

    def _wait_for_loads(self, held: Sequence[Held], most: int) -> None:
        """Wait until at most so many chunks are on their way; of those that are there the host keeps no residues."""
        coming = [each for each in held if each.waits]
        while coming and (len(coming) > most or all(wait.done() for wait in coming[0].waits)):
            first = coming.pop(0)
            for wait in first.waits:
                self.answer(wait, None)
            first.waits = []
            if self.again is not None:
                first.source = None

    def merge(self, loaded: Sequence[LoadedChunk]) -> list[LoadedChunk]:
        """Make one chunk of all that stay."""
        if len(loaded) < 2:
            return list(loaded)
        chunks = [each.chunk for each in loaded]
        ends = np.cumsum([chunk.n_subjects for chunk in chunks]).tolist()
        subjects = np.concatenate([chunk.subjects for chunk in chunks])
        runs = RunLengths.joined([chunk.runs for chunk in chunks])
        chunk = Chunk(np.empty((0, LANES), dtype=np.uint8), np.zeros(1, dtype=np.int64), runs, subjects)
        parts = []
        for each, end in zip(loaded, ends, strict=True):
            begin = end - each.chunk.n_subjects
            each.chunk.subjects = subjects[begin:end]  # not twice in memory
            parts.append((each.handle, begin))
        self._whole = Whole(chunk, parts)
        if self.stays:
            self._wait_for_loads(self._held, 0)
            self._merge(self._whole)
        self.attend()
        return [LoadedChunk(chunk, self._whole)]

    def _merge(self, whole: Whole) -> None:
        """Let every device make fewer of the pieces that it has."""
        asked = []
        for worker in self.used:
            pieces = [
                DevicePiece(piece.firsts + begin, None, piece.blocks, piece.loaded)
                for held, begin in whole.parts
                for owner, piece in held.pieces
                if owner is worker and piece.loaded is not None
            ]
            asked.append((worker, worker.call(partial(merged, worker.engine, pieces))))
        none: list[DevicePiece] = []
        whole.pieces = [(worker, piece) for worker, answer in asked for piece in self.answer(answer, none)]

    def release(self, loaded: LoadedChunk) -> None:
        """Let go of a chunk."""
        if isinstance(loaded.handle, Whole):
            self._whole = None
            return
        self._held = [held for held in self._held if held is not loaded.handle]
        if not self._held and self.stays:
            for worker in self.used:
                worker.call(worker.engine.release_all)
            rooms = [share.room if share.part > 0 else DeviceRoom(0, 0) for _, share in self._shares]
            self._dealer = Dealer([share.part for _, share in self._shares], rooms)


def _strength(engine: GpuEngine) -> float:
    """Return how fast a device may be, beside others, before it has done anything."""
    return float(engine.info.multiprocessors * engine.info.clock)


def _nothing() -> None:
    """Be done, when everything before is."""


def _planned(engine: GpuEngine, workload: Workload, may_stay: bool) -> GpuMemoryError | None:
    """Let an engine plan; return why the job does not fit its memory, if so."""
    try:
        engine.plan(workload, may_stay)
    except GpuMemoryError as error:
        return error
    return None
