"""A crew of Dask's workers: `open_cluster` finds or makes a cluster, `DaskTransport` carries tasks through a client.

Dask is imported where it is used. A task goes to the worker that the crew chose and to no other, under a name that no
other has, and Dask never runs it twice: what is lost the crew begins again.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
import re
import shutil
import signal
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from multiprocessing import resource_tracker
from typing import Any

from swsearch.cluster.board import AT_A_WORKER, PATIENCE, Notice
from swsearch.cluster.calls import ERROR, RESULT, one_line, unpacked_error
from swsearch.cluster.crew import Crew
from swsearch.cluster.on_worker import describe_worker, run_on_worker
from swsearch.cluster.probing import check_scheduler, checked_address
from swsearch.cluster.same_program import difference, program
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
from swsearch.errors import ClusterError, InputError, OptionError, SwsearchError, real_number
from swsearch.processors import available_processors

CONNECTING = 10.0
"""Seconds to reach a scheduler."""

POLL = 0.5
"""Seconds between two looks at the workers."""

ANSWER = 60.0
"""Seconds that a worker has to say what it is, and a scheduler to say who is there."""

UNREACHED = 2.0
"""Seconds after which a worker is asked again that could not be reached."""

LOST = 30.0
"""Seconds after which a scheduler that gives no answer counts as gone; a client connects again until then."""

LARGE_PAYLOAD = 1 << 20
"""Bytes of a task from which on Dask may warn of its size, as it does from 10 MB."""

TIMEOUT = "more than 0 seconds"

SELDOM = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "5s",
    "distributed.scheduler.work-stealing": False,
}
"""Settings of Dask for workers on this machine: what they and their scheduler look at all the time took 13 % of a
processor for two workers that had nothing to do, and takes 2 % so."""

Closer = Callable[[], None]


def open_cluster(
    name: str,
    *,
    task_timeout: float | None = None,
    notice: Notice | None = None,
    patience: float = PATIENCE,
    option: str = "--cluster",
    threads: int | None = None,
) -> Crew:
    """Open a cluster by its name, and wait until there is a worker that can be used.

    Parameters
    ----------
    name : str
        A scheduler's address, such as ``tcp://host:8786``, or ``local:N`` for N worker processes on this machine,
        among which its processors are divided; these are ended with the crew.
    task_timeout, notice, patience : optional
        As of `Crew`.
    option : str
        What messages call the name.
    threads : int, optional
        Of ``local:N``, divided among its workers; by default one for each processor.

    Raises
    ------
    OptionError
        If it is no such name.
    InputError
        If dask.distributed is not installed.
    ClusterError
        If the scheduler cannot be reached, or has no worker that can be used.
    """
    checked_timeout(task_timeout)
    transport = connected(name, option, threads)
    return _opened(transport, transport.n_started, task_timeout, notice, patience)


def crew_of(
    client: Any, *, task_timeout: float | None = None, notice: Notice | None = None, patience: float = PATIENCE
) -> Crew:
    """Return a crew of the workers of a client, which stays open, and wait until there is one that can be used.

    Parameters
    ----------
    client : dask.distributed.Client
        Open; not an asynchronous one.
    task_timeout, notice, patience : optional
        As of `Crew`.

    Raises
    ------
    OptionError
        If it is something else.
    ClusterError
        If it is closed, or has no worker that can be used.
    """
    checked_timeout(task_timeout)
    distributed = _distributed()
    if not isinstance(client, distributed.Client):
        raise OptionError("client", client, "a dask.distributed.Client")
    if client.asynchronous or getattr(client, "_asynchronous", False):
        raise OptionError("client", client, "a dask.distributed.Client made without asynchronous=True")
    return _opened(DaskTransport(client), 1, task_timeout, notice, patience)


def checked_timeout(seconds: float | None) -> None:
    """Raise `OptionError` unless a limit of a task's time is more than 0 seconds, or None."""
    if seconds is not None and real_number("task_timeout", seconds, TIMEOUT) <= 0:
        raise OptionError("task_timeout", seconds, TIMEOUT)


def connected(name: str, option: str = "--cluster", threads: int | None = None) -> DaskTransport:
    """Connect to a cluster by its name, whatever workers it has; arguments and errors are those of `open_cluster`."""
    local = re.fullmatch(r"local:([0-9]{1,4})", name.strip())
    if local is not None and int(local[1]) > 0:
        return _local(int(local[1]), threads or available_processors())
    return _reached(checked_address(name.strip(), option))


def _opened(
    transport: DaskTransport, least: int, timeout: float | None, notice: Notice | None, patience: float
) -> Crew:
    crew = Crew(transport, task_timeout=timeout, notice=notice, patience=patience)
    try:
        crew.wait_for_workers(least, ANSWER)
    except BaseException:
        crew.close()
        raise
    return crew


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise InputError(f"a cluster needs dask.distributed ({error}); pip install 'swsearch[cluster]'") from None


def _reached(address: str) -> DaskTransport:
    """Connect to a scheduler."""
    distributed = _distributed()
    louder = _quiet()
    try:
        check_scheduler(address, CONNECTING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions, which each worker is asked for
            client = distributed.Client(address, timeout=CONNECTING, set_as_default=False)
    except ClusterError:
        louder()
        raise
    except Exception as error:  # of many kinds, by version of Dask
        louder()
        raise ClusterError(f"{address}: the Dask scheduler accepted no client ({one_line(error)})") from error

    def close() -> None:
        _close_client(client)
        louder()

    return DaskTransport(client, address, close)


def _quiet() -> Closer:
    """Let Dask say nothing in this process, where the crew says what happens; return what lets it speak again."""
    handlers = [(handler, handler.level) for handler in logging.getLogger("distributed").handlers]
    for handler, _ in handlers:
        handler.setLevel(logging.CRITICAL + 1)

    def louder() -> None:
        for handler, level in handlers:
            handler.setLevel(level)

    return louder


def _close_client(client: Any) -> None:
    try:
        client.close(timeout=2)
    except Exception:  # the scheduler does not answer; it would be tried again, for longer, when Python ends
        client.status = "closed"


def _local(n_workers: int, threads: int) -> DaskTransport:
    """Start worker processes on this machine."""
    _distributed()
    folder = tempfile.mkdtemp(prefix="swsearch-cluster-")
    louder = _quiet()
    opened: list[Any] = []
    is_given_up = threading.Event()
    errors: list[BaseException] = []

    def close() -> None:
        is_given_up.set()
        _close_cluster(opened, folder)
        louder()

    def start() -> None:
        # threads and processes that are born here never hear Ctrl-C, which a terminal sends to all of them: this
        # process hears it, and ends them
        _track_quietly()  # started later, it would let the signal through again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            _start(opened, n_workers, folder)
        except BaseException as error:
            errors.append(error)
        if is_given_up.is_set():
            _close_cluster(opened, folder)

    thread = threading.Thread(target=start, name="swsearch-local-cluster", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        close()
        raise
    if errors:
        close()
        raise ClusterError(f"local:{n_workers}: no workers could be started ({one_line(errors[0])})") from errors[0]
    transport = DaskTransport(opened[-1], f"local:{n_workers}", close, max(threads // n_workers, 1))
    transport.n_started = n_workers
    return transport


def _track_quietly() -> None:
    """Start Python's own process that removes what others leave, unless it runs already.

    Where this process or a worker is ended at once, as at Ctrl-C, it removes their semaphores, and would write to the
    user's terminal of "leaked" ones.
    """
    name = "PYTHONWARNINGS"
    before = os.environ.get(name)
    os.environ[name] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _start(opened: list[Any], n_workers: int, folder: str) -> None:
    """Append a cluster of worker processes, and then its client."""
    distributed, system = _distributed(), importlib.import_module("distributed.system")
    with warnings.catch_warnings(), importlib.import_module("dask").config.set(SELDOM):
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=AT_A_WORKER,  # one may compute while the other reads
            memory_limit=system.MEMORY_LIMIT // n_workers,
            processes=True,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # it listens all the same, and only here
            silence_logs=logging.CRITICAL,
            local_directory=folder,
        )
        opened.append(cluster)
        opened.append(distributed.Client(cluster, timeout=CONNECTING, set_as_default=False))


def _close_cluster(opened: list[Any], folder: str) -> None:
    """Close a client and the cluster before it, and remove their folder; all of it, though Ctrl-C comes meanwhile."""
    with ExitStack() as rest:
        rest.callback(shutil.rmtree, folder, ignore_errors=True)
        for place, each in enumerate(opened):
            rest.callback(_close_client if place else _close_workers, each)


def _close_workers(cluster: Any) -> None:
    with suppress(Exception):
        cluster.close(timeout=5)


class DaskTransport(Transport):
    """Tasks and results by way of a Dask client.

    Parameters
    ----------
    client : dask.distributed.Client
        Open, not asynchronous.
    name : str, optional
        What messages call the cluster; by default the scheduler's address.
    close : callable, optional
        Closes what was made for it; by default everything stays open.
    n_threads : int, optional
        Threads that each worker is to work with; by default as many as it has in Dask's book.
    """

    def __init__(
        self, client: Any, name: str = "", close: Closer | None = None, n_threads: int | None = None
    ) -> None:
        self._client, self._close, self._n_threads = client, close, n_threads
        self.name = name or str(getattr(client.scheduler, "address", "") or "the Dask client")
        self.n_started = 1  # workers to wait for at first
        self._prefix = f"swsearch-{uuid.uuid4().hex}-"
        self._futures: dict[int, Any] = {}
        self._guard = threading.Lock()
        self._is_closed = threading.Event()
        self._tell: Tell = lambda event: None
        self._watcher = threading.Thread(target=self._watch, name="swsearch-workers", daemon=True)

    def open(self, tell: Tell) -> None:
        """Begin to tell of workers."""
        self._tell = tell
        self._watcher.start()

    def inspect(self, worker: WorkerFound) -> None:
        """Ask a worker for its versions."""
        self._begin(self._inspected(worker))

    def run(self, number: int, worker: WorkerFound, task: Task, place: WorkerPlace) -> None:
        """Submit a task for one worker."""
        key = f"{self._prefix}{number}."
        if len(task.payload) > LARGE_PAYLOAD:  # which Dask may warn of
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        try:
            future = self._client.submit(
                run_on_worker, key, task.function, task.payload, place,
                key=key, pure=False, workers=[worker.address], allow_other_workers=False,
            )  # fmt: skip
        except Exception as error:
            closed = self._gone(error, 0)
            self._tell(
                TaskVanished(number, f"Dask rejected the task ({one_line(error)})")
                if closed is None
                else TransportGone(closed)
            )
            return
        with self._guard:
            self._futures[number] = future
        self._begin(self._awaited(number, future))

    def drop(self, number: int) -> None:
        """Let go of a task: the scheduler forgets it, and a worker that runs it stops; see `run_on_worker`."""
        with self._guard:
            future = self._futures.pop(number, None)
        if future is not None:
            with suppress(Exception):
                future.release()

    def restart(self, worker: WorkerFound) -> None:
        """Have the nanny of a worker end it and start another."""

        def restart() -> None:
            with suppress(Exception):
                self._client.restart_workers([worker.address], timeout=ANSWER, raise_for_error=False)

        threading.Thread(target=restart, name="swsearch-restart", daemon=True).start()

    def close(self) -> None:
        """Let go of all tasks, and close what was made for this."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        try:
            for number in list(self._futures):
                self.drop(number)
            if self._watcher.is_alive():
                self._watcher.join(2)
        finally:
            if self._close is not None:
                self._close()

    def present(self) -> dict[str, WorkerFound]:
        """Ask the scheduler who is there now, by address."""
        return self._present()

    def describe(self, worker: WorkerFound) -> dict[str, str]:
        """Ask a worker for its versions, which it tells though it is busy.

        Raises
        ------
        TimeoutError
            If it does not within `ANSWER`.
        """

        async def ask() -> Any:
            return await self._client.run(describe_worker, workers=[worker.address], on_error="raise")

        told = asyncio.run_coroutine_threadsafe(ask(), self._client.loop.asyncio_loop).result(ANSWER)
        return dict(told[worker.address])

    def ask(self, worker: WorkerFound, function: Callable[..., Any], *arguments: Any) -> Any:
        """Have a thread of a worker call a function, and return what it returns.

        Raises
        ------
        TimeoutError
            If the worker takes longer than `ANSWER`, since it is busy with tasks.
        """
        key = f"{self._prefix}{uuid.uuid4().hex}"
        future = self._client.submit(
            function, *arguments, key=key, pure=False, workers=[worker.address], allow_other_workers=False
        )
        try:
            return future.result(ANSWER)
        finally:
            future.release()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Let the client's loop do something."""
        try:
            asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)
        except RuntimeError:  # the loop is closed; the watcher finds out
            work.close()

    async def _awaited(self, number: int, future: Any) -> None:
        try:
            what, packed = await future
        except (Exception, asyncio.CancelledError) as error:
            # without its scheduler a client cancels all that it waits for
            is_connected = self._client.status == "running"
            told: TaskEnded | TaskFailed | TaskVanished = TaskVanished(
                number, f"Dask gave up the task ({one_line(error)})", counts=is_connected
            )
        else:
            if what == RESULT:
                told = TaskEnded(number, packed)
            elif what == ERROR:
                told = TaskFailed(number, unpacked_error(packed))
            else:
                told = TaskVanished(number, "the task was stopped")
        with self._guard:
            is_wanted = self._futures.pop(number, None) is not None
        if is_wanted:
            self._tell(told)

    async def _inspected(self, worker: WorkerFound) -> None:
        problem = "no answer"
        with suppress(Exception, asyncio.CancelledError):
            theirs = await asyncio.wait_for(self._described(worker), ANSWER)
            if isinstance(theirs, dict):
                problem = difference(theirs, program())
            else:
                problem = f"it cannot load swsearch ({one_line(theirs)})"
        self._tell(WorkerInspected(worker, problem))

    async def _described(self, worker: WorkerFound) -> Any:
        """Return what a worker says of itself, or what it raised.

        One that cannot be reached is asked again until it answers: it may be lost, which the scheduler tells.
        """
        while True:
            told = await self._client.run(describe_worker, workers=[worker.address], on_error="return")
            theirs = told[worker.address]
            if self._is_closed.is_set() or not _is_unreachable(theirs):
                return theirs
            await asyncio.sleep(UNREACHED)

    def _watch(self) -> None:
        """Tell of workers whenever they change, until closed or the scheduler is gone."""
        seen: dict[str, WorkerFound] | None = None
        last = time.monotonic()
        while not self._is_closed.is_set():
            try:
                found = self._present()
            except Exception as error:
                gone = self._gone(error, time.monotonic() - last)
                if gone is not None:
                    self._tell(TransportGone(gone))
                    return
            else:
                last = time.monotonic()
                if found != seen:
                    self._tell(WorkersPresent(found))
                    seen = found
            self._is_closed.wait(POLL)

    def _gone(self, error: Exception, seconds: float) -> SwsearchError | None:
        if self._client.status in ("closed", "closing"):
            why = (
                "the Dask client was closed, or its scheduler is gone"
                if self._close is None
                else "the scheduler is gone"
            )
        elif seconds < LOST:
            return None
        else:
            why = f"no answer for {LOST:.0f} s ({one_line(error)})"
        return ClusterError(f"{self.name}: {why}; run the search again; with --checkpoint it resumes")

    def _present(self) -> dict[str, WorkerFound]:
        """Ask the scheduler who is there."""
        if self._client.status in ("closed", "closing"):
            raise ClusterError("closed")
        every = {"n_workers": -1} if "n_workers" in inspect.signature(self._client.scheduler_info).parameters else {}

        async def ask() -> Any:
            return await self._client.scheduler.identity(**every)

        asked = asyncio.run_coroutine_threadsafe(ask(), self._client.loop.asyncio_loop)
        try:
            told = asked.result(LOST)
        finally:
            asked.cancel()
        return {address: _found(address, facts, self._n_threads) for address, facts in told["workers"].items()}


def _is_unreachable(told: object) -> bool:
    """Say whether this is the error of a connection; what a worker raises of its files is of other kinds."""
    lost = importlib.import_module("distributed.comm").CommClosedError
    return type(told) is OSError or isinstance(told, (lost, ConnectionError, TimeoutError))


def _found(address: str, facts: dict[str, Any], n_threads: int | None) -> WorkerFound:
    is_ready = str(facts.get("status", "running")) == "running"
    counts = facts.get("metrics", {}).get("task_counts", {})
    return WorkerFound(
        address=address,
        host=str(facts.get("host") or ""),
        n_threads=n_threads or int(facts.get("nthreads") or 1),
        memory=int(facts.get("memory_limit") or 0),
        is_restartable=bool(facts.get("nanny")),
        incarnation=str(facts.get("local_directory") or facts.get("id") or ""),
        is_ready=is_ready,
        n_executing=0 if is_ready else int(counts.get("executing", 0)),
    )
