"""The thread of one of several devices: it alone drives the device's engine, and does in order what it is given."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from swsearch.engines.base import Candidates, LoadedChunk, QueryGroup, ScoreArray, Thresholds
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.division import DevicePiece
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.errors import EngineError, MemoryLimitError
from swsearch.processors import OwnProcess

LOOK_SECONDS = 0.0005
"""How long a thread waits before it asks its device again; so many looks of several devices leave time to others."""

MOST_SHRINKS = 2
"""How often a device that runs out of memory goes on with less before it is left out."""

LESS = 0.75
"""Of the memory that was too much, what is asked for next."""

Answer = TypeVar("Answer")


Looked = list[Candidates] | ScoreArray
"""What was found in a piece: each query's candidates, or all scores."""

_Ready = tuple[Callable[[], Looked], Callable[[], bool]]
"""What waits for what was begun, and what says whether it would return at once."""


class DeviceLostError(EngineError):
    """What was asked of a device that failed, or was left out, before it was done."""


class Asker(Protocol):
    """What tasks are for, and what is told of them; it is told by the devices' threads."""

    thresholds: Thresholds | None

    def group_for(self, engine: GpuEngine) -> QueryGroup:
        """Return the queries as an engine prepared them."""
        ...

    def count(self, task: ScanPart, cells: int) -> None:
        """Be told of cells that were just finished; fewer than 0 where they have to be done again."""
        ...

    def take(self, task: ScanPart, found: Looked) -> None:
        """Be told what was found in a piece."""
        ...

    def fail(self, error: BaseException) -> None:
        """Be told of an error that is no device's."""
        ...


@dataclass(eq=False)
class ScanPart:
    """A piece that queries are to be scored with.

    Parameters
    ----------
    asker : Asker
        What it is for.
    piece : DevicePiece
        The subjects, on the device or to be loaded and released.
    turn : int
        Which of the asker's attempts it belongs to.
    """

    asker: Asker
    piece: DevicePiece
    turn: int
    cells: int = 0
    """Finished so far."""


@dataclass(eq=False)
class _Call:
    """A function that the thread is to call when everything before is done."""

    function: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)


class Board:
    """What the threads of all devices share.

    Attributes
    ----------
    changed : Condition
        Notified whenever anything here, or at a device, changes.
    tasks : deque of ScanPart
        For whoever is free.
    is_closed : bool
        Whether the threads are to end.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.tasks: deque[ScanPart] = deque()
        self.is_closed = False
        self.process = OwnProcess("this engine")

    def close(self) -> None:
        """Let the threads end."""
        if not self.process.is_here:
            return
        with self.changed:
            self.is_closed = True
            self.tasks.clear()
            self.changed.notify_all()


class GpuWorker:
    """A device with its thread.

    Parameters
    ----------
    device : int
        Its number.
    opened : callable
        Opens its engine: in the thread, as PyCUDA lets go of a context only where it was made. The thread alone uses
        and closes it.
    board : Board
        Shared with the other devices.

    Attributes
    ----------
    takes_tasks : bool
        Whether it takes tasks of the board.
    error : Exception or None
        Why it is left out.
    is_dead : bool
        Whether it failed for good; otherwise it may be asked again for the next job.
    wants_less : bool
        Whether what it holds is lost, as it ran out of memory, and it can go on with less.
    less : int or None
        Bytes that it goes on with at most, where it ran out of memory before.
    closing_error : Exception or None
        What went wrong when the engine was closed.
    """

    engine: GpuEngine

    def __init__(self, device: int, opened: Callable[[], GpuEngine], board: Board) -> None:
        self._device, self._opened, self._board = device, opened, board
        self._is_open: Future[None] = Future()
        self.takes_tasks = self.is_dead = self.wants_less = False
        self.error: Exception | None = None
        self.closing_error: Exception | None = None
        self.less: int | None = None
        self._shrinks = 0
        self._own: deque[_Call | ScanPart] = deque()
        self._begun: list[tuple[ScanPart, _Ready, LoadedChunk]] = []
        self._at: _Call | ScanPart | None = None
        self._thread = threading.Thread(target=self._run, name=f"swsearch-gpu-{device}", daemon=True)

    def start(self) -> None:
        """Start the thread, which opens the engine.

        Raises
        ------
        EngineError
            If no thread can be had.
        """
        try:
            self._thread.start()
        except RuntimeError as error:
            raise EngineError(
                f"device {self._device}: no thread could be started for it ({error}); allow more processes, or use "
                "one device"
            ) from error

    def wait_until_open(self) -> None:
        """Wait for the engine, and raise what its opening raised."""
        self._is_open.result()

    def join(self) -> None:
        """Wait until the thread has ended, which `Board.close` asks for."""
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def is_usable(self) -> bool:
        """Whether it takes part in the job."""
        return self.error is None

    def call(self, function: Callable[[], Answer]) -> Future[Answer]:
        """Let the thread call a function when what it was given before is done.

        The future raises `DeviceLostError` if the device fails, here or before.
        """
        self._board.process.check()
        call = _Call(function)
        with self._board.changed:
            if self.is_dead or self._board.is_closed:
                call.answer.set_exception(DeviceLostError(f"{self.engine.info} failed"))
            else:
                self._own.append(call)
                self._board.changed.notify_all()
        return call.answer

    def give(self, task: ScanPart) -> None:
        """Give the thread a task whose piece is on the device."""
        self._board.process.check()
        with self._board.changed:
            self._own.append(task)
            self._board.changed.notify_all()

    def drop_tasks(self) -> None:
        """Forget what was given with `give` and is not begun yet; the board's condition must be held."""
        self._own = deque(each for each in self._own if isinstance(each, _Call))

    def begin_job(self) -> None:
        """Take part in a job again, with all memory that there is."""
        if not self.is_dead:
            self.error, self._shrinks, self.wants_less, self.less = None, 0, False, None

    def leave_out(self, error: Exception) -> None:
        """Take no part in the job any more."""
        with self._board.changed:
            self.error, self.takes_tasks = self.error or error, False
            self._board.changed.notify_all()

    # the thread

    def _run(self) -> None:
        try:
            self.engine = self._opened()
        except BaseException as error:
            self.is_dead = True
            self._is_open.set_exception(error)
            return
        self._is_open.set_result(None)
        try:
            while self._next():
                try:
                    self._step()
                except Exception as error:
                    self._lose(error)
                    if self.is_dead:
                        break
        finally:
            try:
                self.engine.close()
            except Exception as error:
                self.closing_error = error
            with self._board.changed:
                for each in self._own:
                    if isinstance(each, _Call):
                        each.answer.set_exception(DeviceLostError(f"{self.engine.info} was closed"))
                self._own.clear()
                self._board.changed.notify_all()

    def _next(self) -> bool:
        """Wait until there is something to do, and take it; False when the thread is to end."""
        board = self._board
        with board.changed:
            while not board.is_closed:
                self._at = self._taken()
                if self._at is not None or self._begun:
                    return True
                board.changed.wait()
            return False

    def _taken(self) -> _Call | ScanPart | None:
        """Return what is next; nothing while everything that may be in work is, and before calls nothing may be."""
        has_room = len(self._begun) < self.engine.slots
        if self._own:
            can_begin = has_room if isinstance(self._own[0], ScanPart) else not self._begun
            return self._own.popleft() if can_begin else None
        if self.takes_tasks and has_room and self._board.tasks:
            return self._board.tasks.popleft()
        return None

    def _step(self) -> None:
        at = self._at
        if isinstance(at, _Call):
            self._answer(at)
        elif at is not None:
            self._begin(at)
        self._at = None
        for begun in list(self._begun):
            self._look(*begun)
        if self._begun and at is None:
            with self._board.changed:
                if not self._board.is_closed:
                    self._board.changed.wait(LOOK_SECONDS)

    def _answer(self, call: _Call) -> None:
        try:
            answer = call.function()
        except BaseException as error:
            if is_failure(error):
                raise
            call.answer.set_exception(error)
        else:
            call.answer.set_result(answer)
        with self._board.changed:
            self._board.changed.notify_all()

    def _begin(self, task: ScanPart) -> None:
        """Load what is not loaded, and begin to score it."""
        asker, loaded = task.asker, task.piece.loaded
        try:
            if loaded is None:
                loaded = self.engine.load(task.piece.chunk())
            group, progress = asker.group_for(self.engine), partial(asker.count, task)
            if asker.thresholds is None:
                ready: _Ready = partial(self.engine.score, group, loaded, progress), lambda: True
            else:
                pending = self.engine.find(group, loaded, asker.thresholds, progress)
                ready = pending.wait, pending.is_ready
        except Exception as error:
            if is_failure(error):
                raise
            asker.fail(error)
            return
        self._begun.append((task, ready, loaded))

    def _look(self, task: ScanPart, ready: _Ready, loaded: LoadedChunk) -> None:
        """Hand over what was found in a piece, if the device is ready with it."""
        wait, is_ready = ready
        try:
            if not is_ready():
                return
            found = wait()
            if task.piece.loaded is None:
                self.engine.release(loaded)
        except Exception as error:
            if is_failure(error):
                raise
            task.asker.fail(error)
        else:
            task.asker.take(task, found)
        self._begun = [each for each in self._begun if each[0] is not task]
        with self._board.changed:
            self._board.changed.notify_all()

    # failures

    def _lose(self, error: Exception) -> None:
        """Give back what was not done, and go on with less memory, or not at all."""
        board = self._board
        with board.changed:
            lost = [task for task, _, _ in self._begun]
            if isinstance(self._at, ScanPart) and self._at not in lost:
                lost.append(self._at)
            calls = [each for each in [self._at, *self._own] if isinstance(each, _Call)]
            self._begun, self._at = [], None
            self._own.clear()
            for task in lost:
                task.asker.count(task, -task.cells)
            board.tasks.extendleft(task for task in reversed(lost) if task.piece.loaded is None)
            is_short = isinstance(error, GpuMemoryError)
            plan = self.engine.memory_plan
            if is_short and plan is not None and self._shrinks < MOST_SHRINKS:
                self._shrinks += 1
                self.less = int(plan.total * LESS)
                self.wants_less = True
            else:
                self.error = error
                self.is_dead = not is_short
            self.takes_tasks = False
            for call in calls:
                if not call.answer.done():
                    call.answer.set_exception(DeviceLostError(f"{self.engine.info} failed"))
            board.changed.notify_all()
        if self.is_dead:
            return
        try:
            self.engine.forget()
        except Exception as worse:
            with board.changed:
                self.error, self.is_dead, self.wants_less = worse, True, False
                board.changed.notify_all()


def is_failure(error: BaseException) -> bool:
    """Say whether an error is the device's, so that another one may do the work."""
    return isinstance(error, (EngineError, MemoryLimitError)) or type(error).__module__.startswith("pycuda")
