"""Which worker does which task, and what follows when one fails: rules alone, with no thread and no clock.

A `CrewBoard` takes events and the time, and asks a `Transport` for what follows. Of one worker at most `AT_A_WORKER`
tasks are under way, one that runs and one that waits for it. What was lost is begun again elsewhere, `TRIES` times in
all.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from swsearch.cluster.pace import Pace
from swsearch.cluster.transport import (
    CrewEvent,
    Task,
    TaskEnded,
    TaskFailed,
    TaskVanished,
    Transport,
    TransportGone,
    WorkerFound,
    WorkerInspected,
    WorkerPlace,
    WorkersPresent,
    volume_of,
)
from swsearch.errors import ClusterError, DatabaseError, InputError, MemoryLimitError, OutputError, SwsearchError

Notice = Callable[[str], None]
"""Tells the user of something that the work survives."""

AT_A_WORKER = 2
"""Tasks of one worker that are under way."""

TRIES = 3
"""How often a task is begun whose workers are lost, hang or fail."""

FAILURES = 3
"""Tasks that a worker may fail at, one after the other, before it gets no more."""

LOOK_AHEAD = 1000
"""Tasks that are compared when a worker chooses; the rest wait their turn."""

PATIENCE = 120.0
"""Seconds to wait for a worker where there is none."""

SETTLED = 3.0
"""Seconds after which workers count as all that come at once."""

SILENT = 10.0
"""Seconds after which a worker that does not say what it is, such as one that hangs, is not waited for."""

PAUSED_SECONDS = 10.0
"""Seconds after which a paused worker's waiting tasks go to other workers; its count of tasks may be 5 s old."""

PAUSED = "Dask paused it for lack of memory"

LONGEST_STEP = 5.0
"""Most seconds that pass between two looks: where this process itself stood still, nobody's limit is over."""


@dataclass
class _Work:
    """A task and what became of it so far."""

    task: Task
    future: Future[bytes]
    losses: list[str] = field(default_factory=list)
    avoid: set[int] = field(default_factory=set)
    is_begun = False
    is_suspect = False
    """Whether a worker was lost that had it: it then runs alone, so that no other task is blamed."""


class _Worker:
    """A worker, and what the board knows of it."""

    def __init__(self, found: WorkerFound, place: WorkerPlace) -> None:
        self.found, self.place = found, place
        self.is_usable = self.is_known = self.has_done = False
        self.problem = ""
        self.under_way: dict[int, _Work] = {}
        self.homes: set[Hashable] = set()
        self.lacks: dict[Hashable, str] = {}
        self.since = 0.0
        self.paused_since: float | None = None
        self.failures = 0
        self.pace = Pace()

    @property
    def name(self) -> str:
        return self.found.address

    @property
    def trouble(self) -> str:
        """Why it gets no tasks, if it gets none."""
        return self.problem or (PAUSED if self.is_usable and not self.found.is_ready else "")

    @property
    def load(self) -> tuple[int, int, int]:
        """What to compare workers by: the least loaded first."""
        return len(self.under_way), len(self.homes), self.place.index

    def takes(self, work: _Work) -> bool:
        """Say whether it may begin a task now."""
        if not (self.is_usable and self.found.is_ready) or work.task.volume in self.lacks:
            return False
        if work.is_suspect or any(other.is_suspect for other in self.under_way.values()):
            return not self.under_way
        return len(self.under_way) < AT_A_WORKER


class CrewBoard:
    """The state of a crew; used by one thread.

    Parameters
    ----------
    transport : Transport
        Asked for what follows from events.
    notice : callable
        Told of what the work survives.
    task_timeout : float, optional
        Seconds that every task may take; by default what tasks took before decides, generously.
    patience : float, optional
        Seconds to wait for a worker where there is none.
    """

    def __init__(
        self, transport: Transport, notice: Notice, task_timeout: float | None = None, patience: float = PATIENCE
    ) -> None:
        self._transport, self._notice = transport, notice
        self._task_timeout, self._patience = task_timeout, patience
        self._workers: dict[str, _Worker] = {}
        self._queue: deque[_Work] = deque()
        self._under_way: dict[int, tuple[_Work, _Worker, float]] = {}
        self._numbers, self._indices = itertools.count(), itertools.count()
        self._said: set[str] = set()
        self._now = self._looked = 0.0
        self._none_since: float | None = 0.0
        self._came = 0.0
        self._had_workers = False
        self.error: SwsearchError | None = None

    @property
    def places(self) -> list[WorkerPlace]:
        """The workers that can be used, in the order in which they came."""
        return [worker.place for worker in self._usable()]

    @property
    def is_settled(self) -> bool:
        """Whether there is a worker, and all that came are known to be usable or not, or do not say so for long."""
        are_known = all(worker.is_known for worker in self._workers.values())
        return any(self._usable()) and (are_known or self._now - self._came >= SILENT)

    def begin(self, now: float) -> None:
        """Set the clock."""
        self._looked = now

    def submit(self, task: Task, future: Future[bytes]) -> None:
        """Take a task."""
        if self.error is not None:
            self._end(_Work(task, future), self.error)
        else:
            self._queue.append(_Work(task, future))

    def take(self, event: CrewEvent) -> None:
        """Take note of what happened."""
        match event:
            case WorkersPresent(workers):
                self._see(workers.values())
            case WorkerInspected(found, problem):
                self._inspected(found, problem)
            case TaskEnded(number, result):
                self._ended(number, result)
            case TaskFailed(number, error):
                self._failed(number, error)
            case TaskVanished(number, reason, counts):
                self._vanished(number, reason, counts)
            case TransportGone(error):
                self.end(error)

    def look(self, now: float) -> None:
        """Let time pass: end what takes too long, begin what can be begun, and give up what nobody can do."""
        self._now += min(max(now - self._looked, 0.0), LONGEST_STEP)
        self._looked = now
        for worker in list(self._usable()):
            self._check_time(worker)
            self._check_paused(worker)
        self._place()
        self._check_workers()
        self._check_readers()

    def end(self, error: SwsearchError) -> None:
        """Give up: every task ends with an error, those to come too."""
        self.error = self.error or error
        for number in list(self._under_way):
            work, _ = self._take_off(number)
            self._transport.drop(number)
            self._end(work, error)
        while self._queue:
            self._end(self._queue.popleft(), error)

    # Workers

    def _usable(self) -> Iterator[_Worker]:
        return (worker for worker in self._workers.values() if worker.is_usable)

    def _see(self, found: Iterable[WorkerFound]) -> None:
        """Take note of who is there: greet who came, and take the tasks of who left."""
        there = {each.address: each for each in found}
        for address, worker in list(self._workers.items()):
            now = there.get(address)
            if now is None or now.incarnation != worker.found.incarnation:
                del self._workers[address]
                self._left(worker)
            else:
                worker.found = now
        for address, each in there.items():
            if address not in self._workers:
                self._workers[address] = _Worker(each, self._place_of(each))
                self._came = self._now
                self._transport.inspect(each)

    def _place_of(self, found: WorkerFound) -> WorkerPlace:
        taken = {worker.place.on_host for worker in self._workers.values() if worker.place.host == found.host}
        rank = next(rank for rank in itertools.count() if rank not in taken)
        return WorkerPlace(next(self._indices), rank, found.n_threads, found.memory, found.host)

    def _left(self, worker: _Worker) -> None:
        if worker.under_way:
            self._say(f"worker {worker.name} was lost; repeating its tasks")
        elif not worker.is_known:
            self._say(f"worker {worker.name} was lost while it started")
        self._abandon(worker, f"worker {worker.name} was lost")

    def _abandon(self, worker: _Worker, reason: str) -> None:
        """Take all tasks from a worker that is not used again; the first of them is to blame, if one is."""
        worker.is_usable = False
        for place, number in reversed(list(enumerate(list(worker.under_way)))):
            work, _ = self._take_off(number)
            self._transport.drop(number)
            work.is_suspect = True
            if place == 0:
                self._lose(work, worker, reason)
            else:
                self._queue.appendleft(work)

    def _inspected(self, found: WorkerFound, problem: str) -> None:
        worker = self._workers.get(found.address)
        if worker is None or worker.found.incarnation != found.incarnation or worker.is_known:
            return
        worker.is_known, worker.is_usable, worker.problem = True, not problem, problem
        worker.since = self._now
        if problem:
            self._say_once(f"worker {worker.name} is not used: {problem}", problem)
        else:
            self._had_workers = True

    def _check_time(self, worker: _Worker) -> None:
        """Leave a worker that has given nothing for longer than any of its tasks may take."""
        if not worker.under_way:
            return
        limit = max(self._limit(worker, work.task) for work in worker.under_way.values())
        if self._now - worker.since <= limit:
            return
        follows = "restarting it" if worker.found.is_restartable else "it gets no more tasks"
        self._say(f"worker {worker.name} returned no result within the task timeout of {limit:,.0f} s; {follows}")
        worker.problem = f"no result within {limit:,.0f} s"
        self._abandon(worker, f"worker {worker.name} returned no result within {limit:,.0f} s (--task-timeout)")
        if worker.found.is_restartable:
            self._transport.restart(worker.found)

    def _check_paused(self, worker: _Worker) -> None:
        """Give the tasks that a paused worker has not begun to other workers; those that it executes it can end."""
        if worker.found.is_ready:
            worker.paused_since = None
            return
        if worker.paused_since is None:
            worker.paused_since = self._now
            self._say_once(
                f"worker {worker.name}: {PAUSED}; other workers do its tasks; give workers more memory, or start "
                "fewer workers per machine",
                (PAUSED, worker.name),
            )
        if self._now - worker.paused_since >= PAUSED_SECONDS:
            for number in list(worker.under_way)[worker.found.n_executing :][::-1]:
                work, _ = self._take_off(number)
                self._transport.drop(number)
                self._queue.appendleft(work)

    def _limit(self, worker: _Worker, task: Task) -> float:
        if self._task_timeout is not None:
            return self._task_timeout
        kind = task.function, task.near
        return worker.pace.limit(kind, task.cells)

    def _check_workers(self) -> None:
        """Give up where no worker has been there for too long, or where none of those that are there can be used."""
        if self.error is not None:
            return
        if any(worker.found.is_ready or worker.under_way for worker in self._usable()):
            self._none_since = None
            return
        if self._none_since is None:
            self._none_since = self._now
            if self._queue:
                self._say(f"{self._transport.name} has no worker; waiting up to {self._patience:,.0f} s for one")
        problems = [f"{worker.name}: {text}" for worker in self._workers.values() if (text := worker.trouble)]
        are_known = bool(problems) and all(worker.is_known for worker in self._workers.values())
        if are_known and not self._had_workers and self._now - self._came >= SETTLED:
            self.end(ClusterError(f"{self._transport.name}: none of its workers can be used: {listed(problems)}"))
        elif self._now - self._none_since >= self._patience:
            why = (
                f" that can be used: {listed(problems)}"
                if problems
                else ("; start workers, and run the search again")
            )
            waited = f"waited {self._patience:,.0f} s for a worker"
            self.end(ClusterError(f"{self._transport.name}: {waited}, found none{why}"))

    # Tasks

    def _place(self) -> None:
        """Begin what can be begun: the least loaded worker chooses first."""
        while self._queue:
            free = [worker for worker in self._usable() if len(worker.under_way) < AT_A_WORKER]
            for worker in sorted(free, key=lambda worker: worker.load):
                work = self._choice(worker)
                if work is not None:
                    self._begin(work, worker)
                    break
            else:
                return

    def _choice(self, worker: _Worker) -> _Work | None:
        """Return the task that a worker should begin: near to it, else of a file that it reads, else of a new file.

        One that is near to others is taken only by a worker that would have nothing to do. Urgent ones come before
        others, but not if they are near to others: those take them next.
        """
        others = [other for other in self._usable() if other is not worker]
        held = {near for other in others for near in other.homes}
        read = {volume_of(near) for near in held}
        own = {volume_of(near) for near in worker.homes}

        def distance(work: _Work) -> int:
            near, volume = work.task.near, work.task.volume
            if near in worker.homes:
                return 0
            if near in held and not (work.task.is_urgent and volume in own):
                return 4
            return 1 if volume in own else 3 if volume in read else 2

        def order(work: _Work) -> tuple[bool, bool, int]:
            far = distance(work)
            return far >= 3, not work.task.is_urgent, far

        fit = [
            work
            for work in itertools.islice(self._queue, LOOK_AHEAD)
            if worker.takes(work) and self._may_go(work, worker)
        ]
        best = min(fit, key=order, default=None)
        return best if best is not None and (distance(best) < 3 or not worker.under_way) else None

    def _may_go(self, work: _Work, worker: _Worker) -> bool:
        """Say whether a task may go to a worker: to one that it failed on only where there is no other."""
        if worker.place.index not in work.avoid:
            return True
        rest = (other for other in self._usable() if other.place.index not in work.avoid)
        return not any(work.task.volume not in other.lacks for other in rest)

    def _begin(self, work: _Work, worker: _Worker) -> None:
        self._queue.remove(work)
        if not work.is_begun and not work.future.set_running_or_notify_cancel():
            return
        work.is_begun = True
        number = next(self._numbers)
        if not worker.under_way:
            worker.since = self._now
        self._under_way[number] = work, worker, self._now
        worker.under_way[number] = work
        worker.homes.add(work.task.near)
        self._transport.run(number, worker.found, work.task, worker.place)

    def _take_off(self, number: int) -> tuple[_Work, _Worker]:
        work, worker, _ = self._under_way.pop(number)
        del worker.under_way[number]
        return work, worker

    def _ended(self, number: int, result: bytes) -> None:
        if number not in self._under_way:
            return  # it was lost, and came after all
        begun = self._under_way[number][2]
        work, worker = self._take_off(number)
        worker.pace.add((work.task.function, work.task.near), work.task.cells, self._now - begun)
        worker.since, worker.failures, worker.has_done = self._now, 0, True
        work.future.set_result(result)

    def _failed(self, number: int, error: Exception) -> None:
        if number not in self._under_way:
            return
        work, worker = self._take_off(number)
        worker.since = self._now
        if isinstance(error, (InputError, OutputError)):
            self._end(work, error)
            return
        worker.homes.discard(work.task.near)
        if isinstance(error, DatabaseError):
            worker.lacks[work.task.volume] = str(error)
            self._queue.appendleft(work)
            self._say_once(f"worker {worker.name}: {error}; trying other workers", (worker.name, work.task.volume))
            return
        worker.failures += 1
        work.avoid.add(worker.place.index)
        self._lose(work, worker, f"worker {worker.name}: {error}", error)
        # a worker is to blame only where another one does better
        others = any(other.failures == 0 and other.has_done for other in self._usable() if other is not worker)
        if worker.failures >= FAILURES and worker.is_usable and others:
            self._say(f"worker {worker.name} failed {FAILURES} times in a row and gets no more tasks: {error}")
            worker.problem = str(error)
            self._abandon(worker, f"worker {worker.name} failed")

    def _vanished(self, number: int, reason: str, counts: bool) -> None:
        if number not in self._under_way:
            return
        work, worker = self._take_off(number)
        if counts:
            self._lose(work, worker, reason)
        else:
            self._queue.appendleft(work)

    def _lose(self, work: _Work, worker: _Worker, reason: str, error: Exception | None = None) -> None:
        """Begin a task again, or give it up after so many tries."""
        work.avoid.add(worker.place.index)
        work.losses.append(f"{' '.join(reason.split())} ({_memory(worker.found.memory)})")
        if len(work.losses) < TRIES:
            self._queue.appendleft(work)
            return
        told = f"a task was tried {TRIES} times: {listed(work.losses)}"
        if isinstance(error, MemoryLimitError):
            self._end(
                work, MemoryLimitError(f"{told}; give workers more memory, or search a database of smaller volumes")
            )
        elif isinstance(error, SwsearchError):
            self._end(work, ClusterError(told))
        else:
            remedy = "see the workers' logs; if they ran out of memory, give them more"
            self._end(work, ClusterError(f"{told}; {remedy}"))

    def _check_readers(self) -> None:
        """Give up tasks whose file none of the workers can read."""
        workers = list(self._usable())
        if not workers or not self.is_settled or self._now - self._came < SETTLED:
            return
        for work in [work for work in self._queue if all(work.task.volume in worker.lacks for worker in workers)]:
            self._queue.remove(work)
            why = listed([f"{worker.name}: {worker.lacks[work.task.volume]}" for worker in workers])
            remedy = "put the file where the workers can read it (SWSEARCH_VOLUMES names folders on their disks)"
            self._end(work, DatabaseError(f"{work.task.volume}: no worker can read it: {why}; {remedy}"))

    def _end(self, work: _Work, error: Exception) -> None:
        if work.is_begun or work.future.set_running_or_notify_cancel():
            work.future.set_exception(error)

    def _say(self, text: str) -> None:
        self._notice(text)

    def _say_once(self, text: str, about: Hashable) -> None:
        if str(about) not in self._said:
            self._said.add(str(about))
            self._say(text)


def listed(texts: list[str], most: int = 3) -> str:
    """Return texts as one, the first of them where there are many."""
    more = f"; and {len(texts) - most:,} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


def _memory(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB of memory" if size else "memory limit unknown"
