"""Workers that are threads of this process."""

from __future__ import annotations

import itertools
import queue
import threading
from dataclasses import replace

from swsearch.cluster.calls import ERROR, RESULT, forgetting, run_call, stop_calls, unpacked_error
from swsearch.cluster.transport import (
    CrewEvent,
    Task,
    TaskEnded,
    TaskFailed,
    TaskVanished,
    Tell,
    Transport,
    WorkerFound,
    WorkerInspected,
    WorkerPlace,
    WorkersPresent,
)
from swsearch.processors import available_processors

_crews = itertools.count()


class InlineTransport(Transport):
    """Threads, each of which does one task after the other.

    Parameters
    ----------
    n_workers : int
        How many.
    n_threads : int, optional
        What each is told to work with; by default the processors are divided.
    """

    name = "this process"

    def __init__(self, n_workers: int, n_threads: int | None = None) -> None:
        threads = n_threads or max(available_processors() // n_workers, 1)
        self._prefix = f"inline-{next(_crews)}-"
        self._found = [WorkerFound(f"thread-{number}", "localhost", threads) for number in range(n_workers)]
        self._queues: dict[str, queue.SimpleQueue[tuple[int, Task, WorkerPlace] | None]] = {
            found.address: queue.SimpleQueue() for found in self._found
        }
        self._dropped: set[int] = set()
        self._places: dict[str, WorkerPlace] = {}
        self._threads: list[threading.Thread] = []
        self._tell: Tell = lambda event: None

    def open(self, tell: Tell) -> None:
        """Start the threads."""
        self._tell = tell
        for found in self._found:
            thread = threading.Thread(target=self._work, args=(found.address,), name=f"swsearch-{found.address}")
            thread.daemon = True
            thread.start()
            self._threads.append(thread)
        tell(WorkersPresent({found.address: found for found in self._found}))

    def inspect(self, worker: WorkerFound) -> None:
        """Say that a thread of this process can be used."""
        self._tell(WorkerInspected(worker))

    def run(self, number: int, worker: WorkerFound, task: Task, place: WorkerPlace) -> None:
        """Put a task in a thread's queue."""
        place = replace(place, owner=f"{self._prefix}{worker.address}")
        self._places[worker.address] = place
        self._queues[worker.address].put((number, task, place))

    def drop(self, number: int) -> None:
        """Stop a task, or forget it where it has not begun."""
        self._dropped.add(number)
        stop_calls(f"{self._prefix}{number}.")

    def restart(self, worker: WorkerFound) -> None:
        """Do nothing: a thread cannot be ended."""

    def close(self) -> None:
        """Stop all tasks, and wait for the threads."""
        for waiting in self._queues.values():
            waiting.put(None)
        stop_calls(self._prefix)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        while self._places:
            _, place = self._places.popitem()
            for forget in forgetting:
                forget(place)

    def _work(self, address: str) -> None:
        while (item := self._queues[address].get()) is not None:
            number, task, place = item
            if number not in self._dropped:
                self._tell(self._done(number, task, place))
            self._dropped.discard(number)

    def _done(self, number: int, task: Task, place: WorkerPlace) -> CrewEvent:
        def is_wanted() -> bool:
            return number not in self._dropped

        what, packed = run_call(f"{self._prefix}{number}.", task.function, task.payload, place, is_wanted)
        if what == RESULT:
            return TaskEnded(number, packed)
        return (
            TaskFailed(number, unpacked_error(packed))
            if what == ERROR
            else TaskVanished(number, "the task was stopped")
        )
