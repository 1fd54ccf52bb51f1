"""Who does what: tasks go in, results come out, and what fails on the way is done again.

A `Crew` has a thread that keeps the books, a `swsearch.cluster.board.CrewBoard`, and a `Transport` that carries tasks
to workers: those of Dask (`swsearch.cluster.dask_crew`), or threads of this process (`InlineCrew`).
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType

from swsearch.cluster.board import AT_A_WORKER, PATIENCE, CrewBoard, Notice
from swsearch.cluster.inline import InlineTransport
from swsearch.cluster.transport import CrewEvent, Task, Transport, WorkerPlace
from swsearch.errors import ClusterError, SwsearchError, SwsearchWarning
from swsearch.processors import OwnProcess

__all__ = ["Crew", "InlineCrew", "Task", "WorkerPlace"]

LOOK_EVERY = 0.5
"""Seconds between two looks at the time."""

AHEAD = 2
"""How many times more tasks are taken than are under way, so that there is one near to each worker that gets free."""

CLOSING = 10.0
"""Most seconds that closing takes."""


class _Submitted:
    def __init__(self, task: Task, future: Future[bytes]) -> None:
        self.task, self.future = task, future


_Inbox = queue.SimpleQueue[CrewEvent | _Submitted | None]


class _Shared:
    """What the dispatcher and the users of a crew share; it does not keep the crew alive."""

    def __init__(self, board: CrewBoard, clock: Callable[[], float]) -> None:
        self.board, self._clock = board, clock
        self.inbox: _Inbox = queue.SimpleQueue()
        self.changed = threading.Condition()
        self.places: tuple[WorkerPlace, ...] = ()
        self.is_settled = False
        self.error: SwsearchError | None = None
        self.n_open = 0

    def run(self) -> None:
        """Keep the books; the dispatcher's work."""
        error = closed()
        self.board.begin(self._clock())
        try:
            while self._turn():
                pass
        except Exception as mistake:  # others must not wait for ever
            error = ClusterError(f"the dispatcher of tasks failed: {type(mistake).__name__}: {mistake}")
            raise
        finally:
            self.board.end(error)
            self._publish()
            while not self.inbox.empty():  # no task is put there after this was published
                event = self.inbox.get()
                if isinstance(event, _Submitted):
                    self.board.submit(event.task, event.future)

    def _turn(self) -> bool:
        """Take all that happened, then look at the time."""
        waiting = True
        while True:
            try:
                event = self.inbox.get(timeout=LOOK_EVERY) if waiting else self.inbox.get_nowait()
            except queue.Empty:
                break
            waiting = False
            if event is None:
                return False
            if isinstance(event, _Submitted):
                self.board.submit(event.task, event.future)
            else:
                self.board.take(event)
        self.board.look(self._clock())
        self._publish()
        return True

    def _publish(self) -> None:
        with self.changed:
            self.places, self.is_settled = tuple(self.board.places), self.board.is_settled
            self.error = self.board.error
            self.changed.notify_all()

    def done(self, _: object) -> None:
        """Count a task that has ended."""
        with self.changed:
            self.n_open -= 1
            self.changed.notify_all()


class Crew:
    """Workers, and a thread that gives them tasks.

    Parameters
    ----------
    transport : Transport
        Opened here, and closed with the crew.
    task_timeout : float, optional
        Seconds that a task may take; by default what tasks took before decides, generously.
    patience : float, optional
        Seconds to wait for a worker where there is none.
    notice : callable, optional
        Told of what the work survives, from a thread of the crew; by default a `SwsearchWarning`.
    clock : callable, optional
        Seconds, for tests.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        task_timeout: float | None = None,
        patience: float = PATIENCE,
        notice: Notice | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._shared = shared = _Shared(CrewBoard(transport, notice or _warn, task_timeout, patience), clock)
        self._thread = threading.Thread(target=shared.run, name="swsearch-crew", daemon=True)
        self._process = OwnProcess("this client of a cluster")
        self._finalizer = weakref.finalize(self, _finish, transport, shared.inbox, self._thread, self._process)
        transport.open(shared.inbox.put)
        self._thread.start()

    @property
    def name(self) -> str:
        """What messages call the workers as a whole."""
        return self._transport.name

    @property
    def workers(self) -> tuple[WorkerPlace, ...]:
        """The workers that can be used now, in the order in which they came."""
        with self._shared.changed:
            return self._shared.places

    @property
    def room(self) -> int:
        """How many more tasks should be submitted now: two for each worker are under way, and as many wait."""
        with self._shared.changed:
            return self._room()

    def _room(self) -> int:
        return max(len(self._shared.places) * AT_A_WORKER * AHEAD - self._shared.n_open, 0)

    def submit(self, task: Task) -> Future[bytes]:
        """Take a task, and return at once what will hold its result.

        Errors of the task come as they were raised; what is wrong with the cluster comes as a `ClusterError`. What
        is called when it is done is called in the crew's thread, and must not wait for the crew.
        """
        self._process.check()
        future: Future[bytes] = Future()
        with self._shared.changed:
            self._shared.n_open += 1
            error = self._shared.error
            if error is None:
                self._shared.inbox.put(_Submitted(task, future))
        future.add_done_callback(self._shared.done)
        if error is not None:
            future.set_exception(error)
        return future

    @property
    def n_workers(self) -> int:
        """How many workers can be used now."""
        return len(self.workers)

    def wait_for_workers(self, least: int = 1, timeout: float | None = None) -> tuple[WorkerPlace, ...]:
        """Wait until workers can be used, and nothing is unknown of any that is there; return them.

        Parameters
        ----------
        least : int, optional
            How many to wait for.
        timeout : float, optional
            Most seconds to wait for more than one.

        Raises
        ------
        ClusterError
            If none come in time, or none of those that come can be used.
        """
        if not self._wait(lambda: self._shared.is_settled and len(self._shared.places) >= least, timeout):
            self._wait(lambda: self._shared.is_settled)
        return self.workers

    def _wait(self, is_there: Callable[[], bool], timeout: float | None = None) -> bool:
        self._process.check()
        shared = self._shared
        with shared.changed:
            shared.changed.wait_for(lambda: is_there() or shared.error is not None, timeout)
            if shared.error is not None:
                raise shared.error
            return is_there()

    def close(self) -> None:
        """Stop all tasks; what is not done ends with an error. It takes some seconds at most."""
        self._finalizer()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InlineCrew(Crew):
    """A crew of threads of this process, for tests and where there is no Dask.

    Parameters
    ----------
    n_workers : int
        Threads that run tasks.
    n_threads : int, optional
        What each is told to work with; by default the processors are divided.
    notice : callable, optional
        As of `Crew`.
    """

    def __init__(self, n_workers: int = 1, n_threads: int | None = None, notice: Notice | None = None) -> None:
        super().__init__(InlineTransport(n_workers, n_threads), notice=notice)
        self.wait_for_workers(n_workers)


def closed() -> ClusterError:
    """Return the error of what is asked of a crew after its end."""
    return ClusterError("the worker pool is closed")


def _finish(transport: Transport, inbox: _Inbox, thread: threading.Thread, process: OwnProcess) -> None:
    """End the dispatcher, which lets go of all tasks, and then the transport."""
    if not process.is_here:
        return
    inbox.put(None)
    try:
        if thread.is_alive() and thread is not threading.current_thread():
            thread.join(CLOSING)
    finally:  # at Ctrl-C too
        transport.close()


def _warn(text: str) -> None:
    # made an error by whoever filters warnings, it would end the dispatcher
    with contextlib.suppress(SwsearchWarning):
        warnings.warn(text, SwsearchWarning, stacklevel=2)
