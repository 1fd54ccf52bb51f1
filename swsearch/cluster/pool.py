"""Workers of a Dask client, and the running tasks of a search.

Dask assigns tasks to workers, repeats the tasks of lost workers, and moves tasks to idle workers. This module does
the rest: it repeats failed tasks elsewhere, leaves out unusable workers, restarts hung workers, and limits every
wait.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from swsearch.cluster import tasks
from swsearch.cluster.messages import (
    EngineRequest,
    OtherProgramError,
    TaskFailure,
    join_some,
    one_line,
    program_versions,
    version_mismatch,
    worker_problem,
)
from swsearch.cluster.tasks import VolumeShare
from swsearch.errors import (
    ClusterError,
    DatabaseError,
    EngineError,
    GpuUnavailableError,
    InputError,
    MemoryLimitError,
    OutputError,
    SwsearchError,
    SwsearchWarning,
)
from swsearch.pipeline.prefetch import SearchCancelled, check_cancelled

MAX_TRIES = 3
"""Failures of a task, and failed tasks of a worker, after which it is given up."""

LISTEN_SECONDS, FETCH_SECONDS = 0.02, 3.0
"""Seconds between two looks at tasks; to wait for one result while there may be others."""

WORKERS_SECONDS, FIRST_ANSWER_SECONDS, ANSWER_SECONDS, WORKER_WAIT_SECONDS = 1.0, 10.0, 60.0, 120.0
"""Seconds between two looks at workers; in which all may say what they are before a search begins, and that each has;
to wait for a worker."""

FIRST_LIMIT_SECONDS, MIN_LIMIT_SECONDS, LIMIT_FACTOR = 3600.0, 300.0, 20.0
"""Seconds that a worker may take for its first result, and for any; how many times longer than any took before."""

MAX_CONCURRENT_TASKS = 2
"""Tasks that a worker should have at a time: hits are aligned while others are scored. A worker with room for more is
never full to Dask, and gives nothing to one that comes later."""

KEYS = "swsearch_"
"""With this all names of tasks begin."""

MessageHandler = Callable[[str], None]


@dataclass(eq=False)
class Call:
    """A task, and what became of it so far; ``workers`` are those that may do it, None for any."""

    function: Callable[..., Any]
    data: bytes
    share: VolumeShare | None
    priority: int
    future: Any = None
    workers: list[str] | None = None
    avoided: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether Dask has a result, or an error."""
        future = self.future
        return future is not None and bool(future.done())


class WorkerPool:
    """Workers of a Dask client, for one search at a time. The client is open and not asynchronous.

    ``threads`` limits the threads of this process. ``timeout`` is the number of seconds after which a worker without
    a result counts as hung; by default it follows from earlier tasks. ``on_message`` is called with messages about
    failures that the search survives; by default they are warnings.
    """

    def __init__(
        self, client: Any, engine: EngineRequest, name: str = "", *, threads: int | None = None,
        timeout: float | None = None, on_message: MessageHandler | None = None,
    ) -> None:  # fmt: skip
        self.client, self.engine, self.threads = client, engine, threads
        self.name = name or str(getattr(client.scheduler, "address", "") or "the Dask client")
        self._timeout, self._notice = timeout, on_message or _warn
        self.then_close: Callable[[], None] = lambda: None
        """Called when this is closed, for what was opened with it."""
        self.facts: dict[str, dict[str, Any]] = {}
        self._problems: dict[str, str] = {}
        self._lacks: dict[str, dict[str, str]] = {}  # by path of a volume, and worker
        self._failed: dict[str, int] = {}
        self._tokens: dict[VolumeShare, Any] = {}
        self._calls: set[Call] = set()
        self._busy: dict[str, tuple[set[str], float]] = {}  # tasks of each worker that is there, and since when
        self._clock = self._none_since = self._slowest = 0.0
        self._numbers, self._id = itertools.count(), uuid.uuid4().hex
        self._guard, self._is_closed = threading.RLock(), threading.Event()
        self._error: SwsearchError | None = None
        self._is_told = False  # of workers that do too many tasks at a time

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # workers

    @property
    def workers(self) -> list[str]:
        """The workers that are there and can be used."""
        return sorted(set(self._busy) - set(self._problems))

    @property
    def engine_description(self) -> dict[str, Any]:
        """Engine of one of the workers."""
        usable = [each for address, each in self.facts.items() if address not in self._problems]
        return usable[0] if usable else {"engine": "", "description": "no engine", "fallback": ""}

    def open(self) -> WorkerPool:
        """Wait for a worker, ask all workers for their engines, and watch them from now on.

        It raises `ClusterError` if no worker can be used, or `EngineError` if none can create the engine.
        """
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # as profiles are
        self._check_scheduler()
        try:
            self.client.wait_for_workers(1, timeout=WORKER_WAIT_SECONDS)
        except Exception as error:
            raise ClusterError(
                f"{self.name}: no worker came within {WORKER_WAIT_SECONDS:.0f} s; start some"
            ) from error
        self._busy = {address: (set(), 0.0) for address in self.client.nthreads()}
        asking = threading.Thread(target=self._ask_workers, args=(sorted(self._busy),), daemon=True)
        asking.start()
        asking.join(FIRST_ANSWER_SECONDS)
        if not self.facts:
            asking.join()
        if not self.workers:
            kind = GpuUnavailableError if self.engine.name == "gpu" else EngineError
            for address, worker_facts in self.facts.items():
                if worker_facts["problem"]:
                    raise kind(f"a worker at {address}: {worker_facts['problem']}")
            raise ClusterError(f"{self.name}: none of its workers can be used: {join_some(self._problems)}")
        threading.Thread(target=_watch, args=(weakref.ref(self),), name="swsearch-workers", daemon=True).start()
        return self

    def _check_scheduler(self) -> None:
        """Raise unless the scheduler has this program: it unpickles what tasks call."""
        try:
            problem = version_mismatch(self.client.run_on_scheduler(program_versions), program_versions())
        except Exception as error:
            problem = f"it cannot load swsearch ({one_line(error)})"
        if self.client.status != "running":
            raise self._gone()
        if problem:
            raise ClusterError(f"{self.name}: the scheduler cannot be used: {problem}; install swsearch there, too")

    def update_workers(self) -> None:
        """Update the list of workers; restart hung ones, and raise `ClusterError` after a long time without any."""
        started = time.monotonic()
        processing, before = self.client.processing(), self._busy
        self._busy = {
            address: self._stalled_since(*before.get(address, (set(), 0.0)), set(map(str, keys)))
            for address, keys in processing.items()
        }
        for address in sorted(set(before) - set(self._busy) - set(self._problems)):
            self._notice(f"worker {address} was lost; repeating its tasks")
        if came := sorted(set(self._busy) - set(before)):
            threading.Thread(target=self._ask_workers, args=(came,), daemon=True).start()
        limit = self._timeout or max(MIN_LIMIT_SECONDS, LIMIT_FACTOR * self._slowest or FIRST_LIMIT_SECONDS)
        for address, (keys, since) in list(self._busy.items()):
            is_ours = all(key.startswith(KEYS) for key in keys)
            if keys and is_ours and self._clock - since > limit and address not in self._problems:
                self._restart(address, limit)
        paused = set(self.client.run_on_scheduler(tasks.paused_workers))
        stalled = [address for address, (keys, _) in self._busy.items() if keys and address in paused]
        if stalled and not paused.issuperset(self.workers):
            threading.Thread(target=self._reassign_paused, args=(stalled,), daemon=True).start()
        if self.workers:
            self._none_since = self._clock
        elif self._clock - self._none_since > WORKER_WAIT_SECONDS:
            why = join_some(self._problems) or "start workers, then the search again"
            raise ClusterError(
                f"{self.name}: waited {WORKER_WAIT_SECONDS:.0f} s for a worker, and there is none: {why}"
            )
        for call in list(self._calls):
            is_restricted = call.workers is not None and not set(call.workers) & set(self._busy)
            # Dask would wait for just these workers, for ever (test_a_task_for_a_worker_that_has_gone_goes_elsewhere)
            if is_restricted or call.future is None:
                self._submit(call)
        # time in which all stood still, as on a laptop that slept, is nobody's
        self._clock += min(time.monotonic() - started + WORKERS_SECONDS, 5 * WORKERS_SECONDS)

    def _stalled_since(self, before: set[str], since: float, now: set[str]) -> tuple[set[str], float]:
        """Return the tasks of a worker, and since when it has given none back."""
        if before and before <= now:
            return now, since
        if before and since:
            self._slowest = max(self._slowest, self._clock - since)
        return now, self._clock

    def _restart(self, address: str, limit: float) -> None:
        """Start a worker anew that hangs; where it has no nanny leave it out, with all that Dask has there.

        Shown by ``test_a_worker_that_hangs_is_started_anew`` and
        ``test_a_worker_that_hangs_and_has_no_nanny_is_left_out``.
        """
        what = "the task timeout of " if self._timeout else ""
        self._notice(f"worker {address}: returned no result within {what}{limit:,.0f} s; restarting it")
        self._busy[address] = set(), self._clock
        try:
            self.client.restart_workers([address], timeout=ANSWER_SECONDS, raise_for_error=False)
        except Exception as error:
            if self._is_closed.is_set():  # the search came to its end meanwhile
                return
            self._exclude(address, f"it returned no result within {limit:,.0f} s ({one_line(error)})")
            with self._guard:
                self._tokens.clear()
                for call in list(self._calls):
                    self._submit(call)

    def _reassign_paused(self, workers: Sequence[str]) -> None:
        """Repeat tasks elsewhere that wait at workers paused by Dask; tasks that run there may end.

        Shown by ``test_what_a_paused_worker_has_begun_ends_there_and_others_do_what_waits``.
        """
        with suppress(Exception):  # the client was closed meanwhile
            ask(self.client, tasks.waiting_tasks, workers=workers, on_answer=self._reassign_waiting)

    def _reassign_waiting(self, address: str, keys: Any) -> None:
        """Begin tasks again that wait at a worker, and those whose share does."""
        if isinstance(keys, Exception):
            return
        with self._guard:
            shares = {share for share, token in self._tokens.items() if token.key in keys}
            for share in shares:
                del self._tokens[share]
            again = [
                call for call in list(self._calls)
                if call.share in shares or (call.future is not None and call.future.key in keys)
            ]  # fmt: skip
            for call in again:
                self._submit(call)
        if again:
            self._notice(f"worker {address}: Dask paused it for lack of memory; other workers do its tasks")

    def _ask_workers(self, workers: Sequence[str]) -> None:
        """Ask workers what they are; who does not answer is used all the same, since Dask says that it is there."""
        with suppress(Exception):  # the client was closed meanwhile
            ask(self.client, tasks.inspect_worker, self.engine, workers=workers, on_answer=self._record_answer)

    def _record_answer(self, address: str, answer: Any) -> None:
        """Record a worker's answer about itself."""
        if isinstance(answer, dict):
            self.facts[address] = answer
            if answer["problem"]:
                self._exclude(address, answer["problem"])
            if answer["at_once"] > MAX_CONCURRENT_TASKS and not self._is_told:
                self._is_told = True
                self._notice(too_many_at_once(answer["at_once"]))
        elif not isinstance(answer, OSError):  # as of a lost connection, or of no answer in time
            # it must get no task: Dask closes a worker that cannot load what a task calls
            # (test_workers_that_have_other_sources_or_none_are_not_used)
            self._exclude(address, worker_problem(answer))

    def _exclude(self, address: str, problem: str) -> None:
        if address not in self._problems:
            self._problems[address] = problem
            self._notice(f"worker {address} is not used: {problem}")

    # tasks

    def call(
        self, function: Callable[..., Any], data: bytes, share: VolumeShare | None = None, priority: int = 0
    ) -> Call:
        """Begin a task of `swsearch.cluster.tasks`: a function of a share, if one is given, and packed arguments."""
        call = Call(function, data, share, priority)
        self._calls.add(call)
        self._submit(call)
        return call

    def _submit(self, call: Call) -> None:
        """Submit a task, or hold it back until there is a worker for it."""
        with self._guard:
            if call not in self._calls or self._is_closed.is_set():
                return
            call.workers, call.future = self._workers_for(call), None
            if call.workers == []:
                return
            try:
                share = () if call.share is None else (self._share_token(call.share, call.workers),)
                call.future = self.client.submit(
                    tasks.run, program_versions(), call.function, call.data, *share, pure=False,
                    priority=call.priority,
                    key=self._key(call.function.__name__), workers=call.workers,
                )  # fmt: skip
            except Exception as error:  # the client was closed, also where its scheduler has gone
                raise self._gone() from error

    def _key(self, name: str) -> str:
        return f"{KEYS}{name}-{self._id}{next(self._numbers):08x}"

    def _workers_for(self, call: Call) -> list[str] | None:
        """Return who may do a task: None for anyone who is there or comes, unless somebody is to be left out."""
        workers, path = self.workers, "" if call.share is None else call.share.search.file.path
        lacks = self._lacks.get(path, {})
        fit = [each for each in workers if each not in lacks]
        if workers and not fit:
            raise DatabaseError(f"{path}: no worker can read it: {join_some(lacks)}")
        chosen = [each for each in fit if each not in call.avoided] or fit
        return None if chosen and len(chosen) == len(self._busy) else chosen

    def _share_token(self, share: VolumeShare, workers: list[str] | None) -> Any:
        """Return a share as Dask knows it, made again where it was lost."""
        token = self._tokens.get(share)
        if token is None or token.status in ("error", "cancelled", "lost"):
            token = self._tokens[share] = self.client.submit(
                tasks.token,
                tasks.encode_arguments(share),
                key=self._key("share"),
                pure=False,
                workers=workers,
                priority=1000,
            )
        return token

    def results(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        """Yield the results of tasks with their places as they arrive; repeat failed tasks.

        It raises errors that would occur on every worker, the last error of a task that failed too often, and
        `SearchCancelled` if the tasks are stopped.
        """
        waiting = dict(enumerate(calls))
        while waiting:
            check_cancelled()
            if self._error is not None:
                raise self._error
            if self._is_closed.is_set() or not self._calls.issuperset(waiting.values()):
                raise SearchCancelled
            done = [place for place, call in waiting.items() if call.is_done]
            if not done:
                time.sleep(LISTEN_SECONDS)
            for place in done:
                call = waiting[place]
                future = call.future
                try:
                    result = future.result(FETCH_SECONDS)
                except (Exception, CancelledError) as error:
                    if isinstance(error, TimeoutError) and future.status == "finished":
                        continue  # the worker that has it hangs
                    result = TaskFailure("", error)
                if call.future is not future:  # it was begun again meanwhile
                    continue
                if isinstance(result, TaskFailure):
                    self._retry(call, result.worker, result.error)
                    continue
                del waiting[place]
                self._release(call)
                yield place, result

    def collect(self, calls: Sequence[Call]) -> list[Any]:
        """Return what tasks return, in their order."""
        by_place = dict(self.results(calls))
        return [by_place[place] for place in range(len(calls))]

    def _retry(self, call: Call, worker: str, cause: BaseException) -> None:
        """Begin a task again that failed, elsewhere; raise where that is in vain.

        Shown by ``test_errors_keep_their_class_after_some_tries``: Dask's own retries would be one worker's.
        """
        if isinstance(cause, (InputError, OutputError)):
            raise cause
        if isinstance(cause, CancelledError):  # a client that loses its scheduler gives up all that it waits for
            raise self._gone() from cause
        if isinstance(cause, DatabaseError) and call.share is not None:
            lacks = self._lacks.setdefault(call.share.search.file.path, {})
            if worker not in lacks:
                lacks[worker] = str(cause)
                self._notice(f"worker {worker}: {cause}; other workers are asked")
        elif isinstance(cause, OtherProgramError):
            self._exclude(worker, str(cause))
        else:
            call.failures.append(f"worker {worker}: {one_line(cause)}" if worker else one_line(cause))
            call.avoided.add(worker)
            self._failed[worker] = self._failed.get(worker, 0) + 1
            if worker and self._failed[worker] >= MAX_TRIES and len(self.workers) > 1:
                self._exclude(worker, f"it failed {MAX_TRIES} times: {cause}")
            if len(call.failures) >= MAX_TRIES:
                kind = MemoryLimitError if isinstance(cause, MemoryLimitError) else ClusterError
                raise kind(f"a task was tried {MAX_TRIES} times: {'; '.join(call.failures)}") from cause
        self._submit(call)

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"{self.name}: the Dask client was closed, or its scheduler is gone; run the search again, which goes on "
            "where it was if it has a checkpoint"
        )

    def _release(self, call: Call) -> None:
        """Release a task at Dask: it stops soon if it runs, and is dropped if it waits."""
        with self._guard:
            self._calls.discard(call)
            future, call.future = call.future, None
        if future is not None:
            with suppress(Exception):
                future.release()

    def cancel(self) -> None:
        """Stop all tasks and release their shares."""
        for call in list(self._calls):
            self._release(call)
        with self._guard:
            self._tokens.clear()

    def close(self) -> None:
        """Stop all tasks, and close what was opened for this."""
        if not self._is_closed.is_set():
            self._is_closed.set()
            self.cancel()
            self.then_close()

    def update_later(self) -> bool:
        """Look at workers in a moment, unless this is closed; an error is raised wherever results are waited for."""
        if not self._is_closed.wait(WORKERS_SECONDS):
            try:
                self.update_workers()
            except Exception as error:
                self._error = error if isinstance(error, SwsearchError) else self._gone()
        return not self._is_closed.is_set() and self._error is None


def _watch(known: weakref.ref[WorkerPool]) -> None:
    """Look at the workers of a pool as long as somebody has it."""
    while (pool := known()) is not None and pool.update_later():
        del pool


def ask(
    client: Any, function: Callable[..., Any], *arguments: Any, workers: Sequence[str],
    on_answer: Callable[[str, Any], None],
) -> None:  # fmt: skip
    """Call an asynchronous function on each worker, and pass each result or error to ``on_answer`` as it arrives.

    The error is `OtherProgramError` for another version, and ``TimeoutError`` without an answer.
    """

    async def run(address: str, called: Callable[..., Any], *given: Any) -> Any:
        answers = client._run(called, *given, workers=[address], on_error="return")
        return (await asyncio.wait_for(answers, ANSWER_SECONDS))[address]

    async def one(address: str) -> None:
        try:
            answer = await run(address, program_versions)
            if isinstance(answer, dict):
                problem = version_mismatch(answer, program_versions())
                answer = OtherProgramError(problem) if problem else await run(address, function, *arguments)
        except Exception as error:
            answer = error
        on_answer(address, answer)

    async def every() -> None:
        await asyncio.gather(*map(one, workers))

    client.sync(every)


def too_many_at_once(number: int) -> str:
    """Return what is to be said of a worker that does so many tasks at a time."""
    return (
        f"workers do {number} tasks at a time, and share tasks out badly so; start them with "
        f"SWSEARCH_THREADS={number} dask worker ... --nthreads {MAX_CONCURRENT_TASKS}"
    )


def _warn(text: str) -> None:
    with suppress(SwsearchWarning):  # where a filter makes errors of warnings
        warnings.warn(text, SwsearchWarning, stacklevel=2)
