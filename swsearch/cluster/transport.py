"""What a crew is told and what it asks for: tasks, workers, events, and the interface to whatever carries them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from swsearch.errors import SwsearchError


def volume_of(near: Hashable) -> Hashable:
    """Return the file of what a worker should hold: the first of a tuple."""
    return near[0] if isinstance(near, tuple) and near else near


@dataclass(frozen=True)
class Task:
    """What a worker is to do once.

    Parameters
    ----------
    function : str
        ``module:name`` of what is called on the worker, with the payload and the worker's `WorkerPlace`; it returns
        bytes.
    payload : bytes
        What it is called with.
    near : hashable
        What the worker should hold already; of a tuple the first is the file that it has to read.
    cells : int
        The size, for the limit of its time.
    is_urgent : bool, optional
        Whether it comes before others that wait, since what it is for is finished with it.
    """

    function: str
    payload: bytes
    near: Hashable
    cells: int
    is_urgent: bool = False

    @property
    def volume(self) -> Hashable:
        """The file that a worker has to read for it."""
        return volume_of(self.near)


@dataclass(frozen=True)
class WorkerPlace:
    """Where a task runs.

    Parameters
    ----------
    index : int
        The worker's number, in the order in which workers came, from 0.
    on_host : int
        Its rank among those of its host, from 0: a worker that takes another's place takes its rank.
    n_threads : int
        Threads to work with.
    memory : int
        Bytes that it may use; 0 if nothing is said.
    host : str
        Its machine.
    owner : str, optional
        The worker's own name, where it has one: clients may count workers differently, at the same time or one after
        the other, but what a worker keeps is its own.
    """

    index: int
    on_host: int
    n_threads: int
    memory: int
    host: str
    owner: str = field(default="", repr=False)


@dataclass(frozen=True)
class WorkerFound:
    """A worker as a transport sees it.

    Parameters
    ----------
    address : str
        Its name for people and for the transport.
    host : str
        Its machine.
    n_threads : int
        Threads to work with.
    memory : int
        Bytes that it may use; 0 if nothing is said.
    is_restartable : bool
        Whether `Transport.restart` can be asked for.
    incarnation : str
        Differs from that of a worker that had the same address before.
    is_ready : bool
        Whether it takes tasks now.
    n_executing : int
        Number of tasks that it has begun and not ended; only counted where it is not ready.
    """

    address: str
    host: str = ""
    n_threads: int = 1
    memory: int = 0
    is_restartable: bool = False
    incarnation: str = ""
    is_ready: bool = True
    n_executing: int = 0


@dataclass(frozen=True)
class WorkersPresent:
    """All workers that are there now."""

    workers: Mapping[str, WorkerFound]


@dataclass(frozen=True)
class WorkerInspected:
    """What `Transport.inspect` found: why a worker cannot be used, or nothing."""

    worker: WorkerFound
    problem: str = ""


@dataclass(frozen=True)
class TaskEnded:
    """A task's result."""

    number: int
    result: bytes


@dataclass(frozen=True)
class TaskFailed:
    """What a task raised."""

    number: int
    error: Exception


@dataclass(frozen=True)
class TaskVanished:
    """A task of which there will be no result, though nothing is known of its worker.

    Parameters
    ----------
    number : int
        The task's.
    reason : str
        For messages.
    counts : bool
        Whether this was a try, and not an accident that has nothing to do with the task.
    """

    number: int
    reason: str
    counts: bool = True


@dataclass(frozen=True)
class TransportGone:
    """Why a transport cannot go on."""

    error: SwsearchError


CrewEvent = WorkersPresent | WorkerInspected | TaskEnded | TaskFailed | TaskVanished | TransportGone
Tell = Callable[[CrewEvent], None]
"""Takes an event, from any thread, and returns at once."""


class Transport(ABC):
    """What carries tasks to workers and results back; no method but `close` may wait for long."""

    name = "the cluster"
    """What messages call it."""

    @abstractmethod
    def open(self, tell: Tell) -> None:
        """Begin to tell of workers, now and whenever they change."""

    @abstractmethod
    def inspect(self, worker: WorkerFound) -> None:
        """Find out whether a worker can be used; `WorkerInspected` says so."""

    @abstractmethod
    def run(self, number: int, worker: WorkerFound, task: Task, place: WorkerPlace) -> None:
        """Begin a task under a number that no other has."""

    @abstractmethod
    def drop(self, number: int) -> None:
        """Forget a task that may be waiting or running: it is to stop, and its result is not wanted."""

    @abstractmethod
    def restart(self, worker: WorkerFound) -> None:
        """End a worker that hangs, so that another comes in its place."""

    @abstractmethod
    def close(self) -> None:
        """Stop all tasks and tell of nothing more; it may be called twice."""
