"""What runs jobs: threads that take them in turn, fair to those who submitted them, and a watch over what runs."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from swsearch.pipeline.prefetch import Stopped
from swsearch.pipeline.search_results import SearchResults
from swsearch.server.places import Log

WATCH_SECONDS = 0.1
"""Between looks at what runs: so much longer than its limit may a search take, or than it is wanted."""

IDLE_SECONDS = 0.25
"""The same while nothing ran at the last look. What begins does not wake whoever looks, which would cost a short
search the time of two changes of threads."""

Why = Literal["", "cancelled", "time", "unwanted", "ending"]
"""What a search was stopped for; empty while it was not."""


class FairQueue:
    """Jobs that wait: clients take turns, and the jobs of each stay in order. Not safe for threads."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[str]] = OrderedDict()
        """The jobs of each client, the one whose turn is next first."""
        self._clients: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def put(self, identifier: str, client: str) -> None:
        """Let a job wait."""
        self._waiting.setdefault(client, deque()).append(identifier)
        self._clients[identifier] = client

    def take(self, may_have: Callable[[str], bool]) -> tuple[str, str] | None:
        """Return the job whose turn it is, and its client, who may have one; None if there is none."""
        for client, jobs in self._waiting.items():
            if may_have(client):
                identifier = jobs.popleft()
                del self._clients[identifier]
                if jobs:
                    self._waiting.move_to_end(client)
                else:
                    del self._waiting[client]
                return identifier, client
        return None

    def remove(self, identifier: str) -> bool:
        """Take a job out; False if it does not wait."""
        client = self._clients.pop(identifier, None)
        if client is None:
            return False
        self._waiting[client].remove(identifier)
        if not self._waiting[client]:
            del self._waiting[client]
        return True

    def place_of(self, identifier: str) -> int | None:
        """Return how many jobs come before, if all clients may have any number; None if it does not wait."""
        client = self._clients.get(identifier)
        if client is None:
            return None
        own = self._waiting[client].index(identifier)
        before, is_before = 0, True
        for other, jobs in self._waiting.items():
            if other == client:
                before, is_before = before + own, False
            else:
                before += min(len(jobs), own + is_before)
        return before

    def waiting_of(self, client: str) -> int:
        """Return how many jobs of a client wait."""
        return len(self._waiting.get(client, ()))


@dataclass(eq=False)
class Running:
    """A search that runs, so that it can be stopped.

    Parameters
    ----------
    client : str
        Who asked for it.
    seconds : float
        That it may take.
    is_wanted : callable
        Asked now and then, from another thread; once it says no the search is stopped.
    """

    client: str
    seconds: float
    is_wanted: Callable[[], bool] = lambda: True
    why: Why = ""
    cells_done: int = 0
    cells: int = 0
    begun: float = field(default_factory=time.monotonic)
    _results: SearchResults | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def holds(self, results: SearchResults) -> None:
        """Be told what to stop; its job is open. Raises `Stopped` if it is not wanted any more."""
        with self._guard:
            self._results = results
            if self.why:
                raise Stopped

    def advance(self, cells: int) -> None:
        """Count cells that are done."""
        with self._guard:
            self.cells_done += cells

    @property
    def progress(self) -> float:
        """What part is done, from 0 to 1."""
        return min(1.0, self.cells_done / self.cells) if self.cells else 0.0

    def stop(self, why: Why) -> bool:
        """Stop it, if that was not done before; say whether this did it."""
        with self._guard:
            if self.why:
                return False
            self.why = why
            results = self._results
        if results is not None:
            results.stop()
        return True


class Runner:
    """Threads that run jobs, and one that watches what runs.

    Parameters
    ----------
    workers : int
        Jobs that run at a time.
    run : callable
        Runs a job; called with its identifier and its `Running`, in a thread of this.
    tidy : callable
        Called now and then in the thread that watches.
    seconds : float
        That a job may run.
    log : callable
        Is told of what should not happen.
    """

    def __init__(
        self, workers: int, run: Callable[[str, Running], None], tidy: Callable[[], None], seconds: float, log: Log
    ) -> None:
        self._run, self._tidy, self._seconds, self._log = run, tidy, seconds, log
        self._queue = FairQueue()
        self._changed = threading.Condition()
        self._running: dict[str, Running] = {}
        self._searches: set[Running] = set()
        self._ended: dict[str, threading.Event] = {}
        """Of the jobs that wait or run: set when they have ended."""
        self._is_closed = threading.Event()
        self._n_workers = workers
        works = [(self._work, f"swsearch-job-{number}") for number in range(workers)]
        self._threads = [threading.Thread(target=work, name=name, daemon=True) for work, name in works]
        self._threads.append(threading.Thread(target=self._watch, name="swsearch-watch", daemon=True))

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def put(self, identifier: str, client: str) -> None:
        """Let a job wait for its turn."""
        with self._changed:
            self._ended[identifier] = threading.Event()
            self._queue.put(identifier, client)
            self._changed.notify()

    def withdraw(self, identifier: str) -> bool:
        """Take a job out of the queue; False if it does not wait. `ended` is to be called once that is kept."""
        with self._changed:
            return self._queue.remove(identifier)

    def stop(self, identifier: str) -> bool:
        """Stop a job that runs because it was cancelled; False if it does not run, or is being stopped."""
        running = self.running(identifier)
        return running is not None and running.stop("cancelled")

    def ended(self, identifier: str) -> None:
        """Let those who wait for a job know that it has ended."""
        with self._changed:
            if (ended := self._ended.pop(identifier, None)) is not None:
                ended.set()

    def wait(self, identifier: str, seconds: float) -> None:
        """Wait until a job ended, at most so long; one that is not known has ended."""
        with self._changed:
            ended = self._ended.get(identifier)
        if ended is not None:
            ended.wait(seconds)

    def running(self, identifier: str) -> Running | None:
        """Return a job that runs."""
        with self._changed:
            return self._running.get(identifier)

    def place_of(self, identifier: str) -> int | None:
        """Return how many jobs come before one that waits."""
        with self._changed:
            return self._queue.place_of(identifier)

    def n_active(self, client: str | None = None) -> int:
        """Return how many jobs wait or run, of a client or of all."""
        with self._changed:
            if client is None:
                return len(self._queue) + len(self._running)
            return self._queue.waiting_of(client) + self._n_running(client)

    def n_searches(self, client: str | None = None) -> int:
        """Return how many searches run that are no jobs, of a client or of all."""
        with self._changed:
            return sum(client in (None, each.client) for each in self._searches)

    @property
    def n_queued(self) -> int:
        """Jobs that wait."""
        with self._changed:
            return len(self._queue)

    @property
    def n_running(self) -> int:
        """Jobs that run."""
        with self._changed:
            return len(self._running)

    def watch(self, search: Running) -> None:
        """Stop a search that is no job when it is not wanted any more, or takes too long."""
        with self._changed:
            self._searches.add(search)

    def unwatch(self, search: Running) -> None:
        """Be told that it ended."""
        with self._changed:
            self._searches.discard(search)

    def close(self) -> None:
        """Stop everything, and wait for it; jobs that wait or run are not ended by this."""
        self._is_closed.set()
        with self._changed:
            active = [*self._running.values(), *self._searches]
            self._changed.notify_all()
        for each in active:
            each.stop("ending")
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        with self._changed:
            for ended in self._ended.values():
                ended.set()

    # the threads

    def _n_running(self, client: str) -> int:
        return sum(each.client == client for each in self._running.values())

    def _may_have(self, client: str) -> bool:
        """Say whether a client may have one more worker: as many as then are left for others.

        So nobody who comes later waits for the end of somebody's long jobs, unless very many run.
        """
        return self._n_running(client) < self._n_workers - len(self._running)

    def _next(self) -> tuple[str, Running] | None:
        with self._changed:
            while not self._is_closed.is_set():
                taken = self._queue.take(self._may_have)
                if taken is not None:
                    identifier, client = taken
                    running = Running(client, self._seconds)
                    self._running[identifier] = running
                    return identifier, running
                self._changed.wait()
        return None

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            identifier, running = taken
            try:
                self._run(identifier, running)
            except BaseException as error:  # a worker that ends would be missed
                self._log(f"job {identifier}: {type(error).__name__}: {error}")
            with self._changed:
                del self._running[identifier]
                self._changed.notify_all()
            if running.why != "ending":
                self.ended(identifier)

    def _watch(self) -> None:
        while not self._is_closed.is_set():
            with self._changed:
                active = [*self._running.values(), *self._searches]
            for each in active:
                if time.monotonic() - each.begun > each.seconds:
                    each.stop("time")
                elif not each.is_wanted():
                    each.stop("unwanted")
            try:
                self._tidy()
            except Exception as error:  # such as a full disk; it is tried again
                self._log(f"expired jobs could not be removed: {error}")
            self._is_closed.wait(WATCH_SECONDS if active else IDLE_SECONDS)
