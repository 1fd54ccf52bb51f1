"""One thread for each of several GPUs, which alone opens, uses and closes it.

A task is for one device, or for whichever is free; of the latter, what a failed device leaves undone goes to others.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from swsearch.cuda_package import is_driver_error
from swsearch.engines.base import PendingHits
from swsearch.engines.devices import warn_skipped
from swsearch.engines.gpu.device import DeviceInfo
from swsearch.errors import EngineError, MemoryLimitError, SwsearchWarning
from swsearch.processors import OwnProcess, can_start_threads

DEVICE_POLL_SECONDS = 0.0005
"""Time until a thread asks its device again: polls of several devices leave time to other threads."""


class OpenDevice(Protocol):
    """An engine or an aligner on one device."""

    info: DeviceInfo

    def close(self) -> None:
        """Release the device."""


Opened = TypeVar("Opened", bound=OpenDevice)
TaskResult = TypeVar("TaskResult")


class DeviceLostError(EngineError):
    """A task was not done, as its device failed."""


@dataclass(eq=False)
class DeviceTask:
    """A function that a thread calls with its device; what a `PendingHits` waits for is the result of its task."""

    function: Callable[[Any], Any]
    owner: DeviceThread[Any] | None
    """The device that must do it; None for any."""
    is_exclusive: bool
    """Whether it waits until nothing of the device is pending."""
    future: Future[Any] = field(default_factory=Future)
    refusals: dict[int, MemoryLimitError] = field(default_factory=dict)
    """Errors of devices, by place, whose memory is too small for it."""


class DeviceThread(Generic[Opened]):
    """The thread of one device.

    Attributes
    ----------
    device
        What the opener returned.
    opening : Future
        Done when the device is open, or failed to open.
    error : Exception or None
        Why the device is left out.
    is_dead : bool
        Whether it failed for good; otherwise it may take part in the next job.
    """

    device: Opened

    def __init__(self, group: DeviceGroup[Opened], place: int, opener: Callable[[], Opened]) -> None:
        self._group, self.place, self._opener = group, place, opener
        self.opening: Future[None] = Future()
        self.error: BaseException | None = None
        self.is_dead = self.is_idle = self.is_reported = False
        self.pending: list[tuple[DeviceTask, PendingHits]] = []
        self._thread = threading.Thread(target=self._run, name=f"{group.name}-{place}", daemon=True)

    def start(self, has_room: bool) -> None:
        """Start the thread, which opens the device."""
        try:
            if not has_room:
                raise RuntimeError("a limit of memory, ulimit -v, is near")
            self._thread.start()
        except RuntimeError as error:
            text = (
                f"no thread for a GPU could be started ({error}); allow more processes and memory, or use one device"
            )
            self.opening.set_exception(EngineError(text))

    def join(self) -> None:
        """Wait until the thread has ended."""
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def call(self, function: Callable[[Opened], TaskResult]) -> Future[TaskResult]:
        """Call a function in the thread when nothing is pending; `DeviceLostError` if the device fails."""
        return self._group.put(function, self, is_exclusive=True)

    def can_do(self, task: DeviceTask) -> bool:
        """Return whether the device may be given a task, now or later."""
        if task.owner is not None and task.is_exclusive:
            return task.owner is self and not self.is_dead
        return task.owner in (None, self) and self.error is None and self.place not in task.refusals

    def can_start(self, task: DeviceTask) -> bool:
        """Return whether the device has a slot for a task."""
        return len(self.pending) < (1 if task.is_exclusive else self._group.slots(self.device))

    # in the thread

    def _run(self) -> None:
        try:
            self.device = self._opener()
        except BaseException as error:
            self.opening.set_exception(error)
            return
        self.opening.set_result(None)
        try:
            while not (self.is_dead or self._group.is_closed):
                self._step()
        finally:
            with suppress(Exception):  # a device that failed cannot be closed either
                self.device.close()

    def _step(self) -> None:
        """Start the next task, then finish those whose results are ready."""
        task = self._next()
        if task is not None:
            self._attempt(task, partial(task.function, self.device))
        for started, pending in list(self.pending):
            if not self.is_dead:
                self._attempt(started, partial(_poll, pending))

    def _next(self) -> DeviceTask | None:
        """Wait for a task; return None when it is time to poll, or to end."""
        group = self._group
        with group.changed:
            self.is_idle = True
            while (task := group.take(self)) is None and not group.is_closed:
                if not group.changed.wait(DEVICE_POLL_SECONDS if self.pending else None):
                    break
            self.is_idle = False
            return task

    def _attempt(self, task: DeviceTask, function: Callable[[], Any]) -> None:
        """Start or poll a task; set its result if there is one."""
        group, error, result = self._group, None, None
        try:
            result = function()
        except BaseException as problem:
            error = problem
        with group.changed:
            self.pending = [each for each in self.pending if each[0] is not task]
            if isinstance(result, PendingHits):
                self.pending.append((task, result))
                return
            if error is None:
                self.is_idle = not self.pending  # before the result is known, so that the next task may come here
                task.future.set_result(result)
            elif group.is_closed or not is_failure(error):
                task.future.set_exception(error)
            elif group.moves_large and isinstance(error, MemoryLimitError):
                task.refusals[self.place] = error
                group.tasks.appendleft(task)
                group.settle([task])
            else:
                self._lose(task, error)
            group.changed.notify_all()

    def _lose(self, task: DeviceTask, error: BaseException) -> None:
        """Leave the device out, and return what it has not done; the lock must be held."""
        self.error, self.is_dead = error, not isinstance(error, MemoryLimitError)
        unfinished = [*(started for started, _ in self.pending), task]
        self.pending = []
        self._group.tasks.extendleft(each for each in unfinished if each.owner is None)
        for each in unfinished:
            if each.owner is not None:
                each.future.set_exception(DeviceLostError(f"{self.device.info} failed"))
        self._group.settle(list(self._group.tasks))


class DeviceGroup(Generic[Opened]):
    """Threads of several devices, and the tasks that wait for them.

    Parameters
    ----------
    openers : sequence of callable
        Open each device, in its thread.
    name : str
        Of the threads.
    is_optional : bool
        Whether a device that cannot be opened is left out, with a warning, unless it is the last.
    slots : callable, optional
        Returns the tasks that a device may have in work at a time; by default 1.
    stop : callable, optional
        Ends the task that runs on a device; called when the group is closed.
    moves_large : bool, optional
        Whether a device whose memory is too small for a task stays, and the task goes to another one.

    Raises
    ------
    Exception
        The first error of opening a device.
    """

    def __init__(
        self,
        openers: Sequence[Callable[[], Opened]],
        name: str,
        is_optional: bool,
        *,
        slots: Callable[[Opened], int] = lambda device: 1,
        stop: Callable[[Opened], None] = lambda device: None,
        moves_large: bool = False,
    ) -> None:
        self.name, self.slots, self._stop, self.moves_large = name, slots, stop, moves_large
        self.changed, self._process = threading.Condition(), OwnProcess("this engine")
        self.tasks: deque[DeviceTask] = deque()
        self.is_closed = False
        self._every = [DeviceThread(self, place, opener) for place, opener in enumerate(openers)]
        self.threads: list[DeviceThread[Opened]] = []
        """Those of devices that are open."""
        has_room = can_start_threads(len(openers))
        try:
            for thread in self._every:
                thread.start(has_room)
            refused = [error for thread in self._every if (error := thread.opening.exception()) is not None]
            self.threads = [thread for thread in self._every if thread.opening.exception() is None]
            if refused and not (is_optional and self.threads):
                raise refused[0]
            warn_skipped(refused)
        except BaseException:
            self.close()
            raise

    @property
    def usable(self) -> list[DeviceThread[Opened]]:
        """Devices that are not left out."""
        return [thread for thread in self.threads if thread.error is None]

    def put(
        self,
        function: Callable[[Opened], TaskResult],
        owner: DeviceThread[Opened] | None = None,
        *,
        is_exclusive: bool = False,
    ) -> Future[TaskResult]:
        """Call a function with one device, or with whichever is free first."""
        self._process.check()
        task = DeviceTask(function, owner, is_exclusive)
        with self.changed:
            self.tasks.append(task)
            self.settle([task])
        return task.future

    def drop(self, futures: Collection[Future[Any]]) -> None:
        """Forget tasks that have not started."""
        with self.changed:
            self.tasks = deque(task for task in self.tasks if task.future not in futures)

    def take(self, thread: DeviceThread[Opened]) -> DeviceTask | None:
        """Remove and return the next task for an idle device; the lock must be held."""
        for task in self.tasks:
            if task.owner is thread and not thread.can_start(task):
                return None
            if thread is self._first_for(task):
                self.tasks.remove(task)
                self.changed.notify_all()  # another device is now the first for the next task
                return task
        return None

    def _first_for(self, task: DeviceTask) -> DeviceThread[Opened] | None:
        """Return the idle device that takes a task: the least busy, of these the largest."""
        able = [each for each in self.threads if each.is_idle and each.can_do(task) and each.can_start(task)]
        return min(able, key=lambda each: (len(each.pending), -each.device.info.multiprocessors), default=None)

    def settle(self, tasks: Sequence[DeviceTask]) -> None:
        """Fail those of some tasks that no device is left for, and wake all threads; the lock must be held."""
        for task in tasks:
            if self.is_closed:
                error: BaseException | None = EngineError("the aligner was closed")
            elif any(thread.can_do(task) for thread in self.threads):
                continue
            elif task.owner is not None:
                error = DeviceLostError(f"{task.owner.device.info} failed")
            else:
                error = task.refusals[min(task.refusals)] if task.refusals else self.threads[0].error
            self.tasks.remove(task)
            task.future.set_exception(error)
        self.changed.notify_all()

    def leave_out(self, thread: DeviceThread[Opened], error: Exception) -> None:
        """Exclude a device from the job."""
        with self.changed:
            thread.error = thread.error or error
            self.settle(list(self.tasks))

    def warn_of_lost(self) -> None:
        """Warn once of each device that is left out, if others are left."""
        for thread in self.threads if self.usable else []:
            if thread.error is not None and not thread.is_reported:
                thread.is_reported = True
                text = f"{thread.device.info} is left out, and the other devices do its work: {thread.error}"
                warnings.warn(text, SwsearchWarning, stacklevel=3)

    def begin_job(self) -> None:
        """Restore the devices that lacked memory to the group."""
        for thread in self.threads:
            if not thread.is_dead:
                thread.error, thread.is_reported = None, False

    def close(self) -> None:
        """End the threads, which close their devices; tasks that wait fail."""
        if not self._process.is_here:
            return
        with self.changed:
            self.is_closed = True
            for thread in self.threads:
                self._stop(thread.device)
            self.settle(list(self.tasks))
        for thread in self._every:
            thread.join()


def _poll(pending: PendingHits) -> Any:
    """Return the result, or what is still pending."""
    return pending.wait() if pending.is_ready() else pending


def is_failure(error: BaseException) -> bool:
    """Return whether an error is the device's, so that another device may do the work."""
    return isinstance(error, (EngineError, MemoryLimitError)) or is_driver_error(error)
