"""A stage on which a test says what happens to a crew, and when: workers, results and time are all told by hand."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from concurrent.futures import Future

from swsearch.cluster.board import CrewBoard
from swsearch.cluster.transport import (
    Task,
    TaskEnded,
    TaskFailed,
    TaskVanished,
    Tell,
    Transport,
    TransportGone,
    WorkerFound,
    WorkerInspected,
    WorkerPlace,
    WorkersPresent,
)

GIB = 1 << 30


class ScriptedTransport(Transport):
    """Writes down what is asked of it, and does nothing."""

    name = "the stage"

    def __init__(self) -> None:
        self.inspected: list[WorkerFound] = []
        self.running: dict[int, tuple[str, Task, WorkerPlace]] = {}
        self.dropped: list[int] = []
        self.restarted: list[str] = []
        self.tell: Tell = lambda event: None
        self.is_closed = False
        self.begun = threading.Semaphore(0)  # once for each task

    def open(self, tell: Tell) -> None:
        self.tell = tell

    def inspect(self, worker: WorkerFound) -> None:
        self.inspected.append(worker)

    def run(self, number: int, worker: WorkerFound, task: Task, place: WorkerPlace) -> None:
        assert number not in self.running
        self.running[number] = worker.address, task, place
        self.begun.release()

    def drop(self, number: int) -> None:
        self.dropped.append(number)
        self.running.pop(number)

    def restart(self, worker: WorkerFound) -> None:
        self.restarted.append(worker.address)

    def close(self) -> None:
        self.is_closed = True


class Stage:
    """A board, what it asked for, and a clock that a test moves."""

    def __init__(self, *workers: str, **options: float) -> None:
        self.transport = ScriptedTransport()
        self.notices: list[str] = []
        self.board = CrewBoard(self.transport, self.notices.append, **options)
        self.now = 1000.0
        self.board.begin(self.now)
        self.there: dict[str, WorkerFound] = {}
        self.futures: list[Future[bytes]] = []
        if workers:
            self.come(*workers)

    def come(self, *names: str, fit: bool = True, **facts) -> None:
        """Let workers come, and be looked at."""
        for name in names:
            self.there[name] = WorkerFound(**{"address": name, "host": "h", "memory": 2 * GIB, **facts})
        self.see()
        if fit:
            for name in names:
                self.fit(name)

    def leave(self, *names: str) -> None:
        for name in names:
            del self.there[name]
        self.see()

    def see(self) -> None:
        self.board.take(WorkersPresent(dict(self.there)))
        self.look()

    def fit(self, name: str, problem: str = "") -> None:
        self.board.take(WorkerInspected(self.there[name], problem))
        self.look()

    def look(self, seconds: float = 0.0) -> None:
        """Let time pass, with a look at least every second."""
        while seconds > 0:
            self.now += min(seconds, 1.0)
            seconds -= 1.0
            self.board.look(self.now)
        self.board.look(self.now)

    def submit(
        self, near: Hashable = "volume", cells: int = 1, count: int = 1, is_urgent: bool = False
    ) -> Future[bytes]:
        """Submit tasks alike, and return the last one's future."""
        for _ in range(count):
            future: Future[bytes] = Future()
            self.futures.append(future)
            task = Task("tasks:work", b"%d" % (len(self.futures) - 1), near, cells, is_urgent)
            self.board.submit(task, future)
        self.look()
        return future

    def at(self, name: str) -> list[int]:
        """The numbers of the tasks of a worker, the oldest first."""
        return [number for number, (address, _, _) in self.transport.running.items() if address == name]

    def near_at(self, name: str) -> list[Hashable]:
        return [task.near for address, task, _ in self.transport.running.values() if address == name]

    def end(self, number: int, result: bytes = b"done") -> None:
        self.transport.running.pop(number, None)
        self.board.take(TaskEnded(number, result))
        self.look()

    def fail(self, number: int, error: Exception) -> None:
        self.transport.running.pop(number, None)
        self.board.take(TaskFailed(number, error))
        self.look()

    def vanish(self, number: int, reason: str = "KilledWorker", counts: bool = True) -> None:
        self.transport.running.pop(number, None)
        self.board.take(TaskVanished(number, reason, counts))
        self.look()

    def gone(self, error) -> None:
        self.board.take(TransportGone(error))
        self.look()

    def work_off(self) -> None:
        """End whatever runs until nothing does."""
        while self.transport.running:
            self.end(next(iter(self.transport.running)))
