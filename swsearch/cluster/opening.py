"""Opening and inspection of clusters.

A cluster is named by a scheduler's address, ``local:N`` or a Dask client. `inspect_cluster` inspects its workers for
``swsearch doctor``.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import platform
import re
import signal
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swsearch.cluster.messages import EngineRequest, VolumeFile, one_line, worker_problem
from swsearch.cluster.pool import MAX_CONCURRENT_TASKS, MessageHandler, WorkerPool, ask
from swsearch.cluster.tasks import describe
from swsearch.cluster.worker import THREADS_VARIABLE, open_volume, worker_state
from swsearch.engines.factory import check_engine_option
from swsearch.errors import (
    ClusterError,
    GpuUnavailableError,
    InputError,
    OptionError,
    SwsearchError,
    check_choice,
    check_finite,
)
from swsearch.inputs import input_path
from swsearch.options.kinds import ENGINES
from swsearch.processors import available_processors

if TYPE_CHECKING:
    from swsearch.db.database_files import Volume


REACH_SECONDS, EXTRA_SECONDS = 10.0, 3.0
"""Seconds that Dask has to reach a scheduler, and more after them: it waits for ever for what says nothing."""

DASK_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "5s",
}
"""Settings for workers on this machine: what they and their scheduler look at all the time took 13 % of a processor
for two workers that had nothing to do, and takes 2 % so."""

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|wss?)://)?(?:\[[0-9a-fA-F:.]+\]|[^\s/:\[\]@]+):([0-9]{1,5})/?")
_EXPECTED = "the address of a Dask scheduler, such as tcp://host:8786, or local:4 for 4 workers on this machine"
_NO_FILE = "{}: got no database file, expected one that all workers can read; build it with swsearch db build"


def engine_request(engine: Any, gpu_memory: int | None, device: Any, option: str) -> EngineRequest:
    """Check what workers are to score with; ``option`` says what names the workers."""
    check_choice("engine", engine, ENGINES)
    if device is not None:
        remedy = "each worker uses its own GPU; choose it with CUDA_VISIBLE_DEVICES of the worker"
        raise OptionError("device", device, f"none with {option}", remedy)
    return EngineRequest(engine, check_engine_option("gpu_memory", gpu_memory))


def check_is_database(subjects: Any) -> None:
    """Raise `InputError` if subjects are not in database files, before any of them is read."""
    from swsearch.db import Database, is_database

    for each in subjects if isinstance(subjects, (list, tuple)) else [subjects]:
        if isinstance(each, Database):
            if not all(volume.path for volume in each.volumes):
                raise InputError(_NO_FILE.format(each.name))
            continue
        path = input_path(each)
        if not path:
            raise InputError(_NO_FILE.format("subjects"))
        if path == "-" or (Path(path).is_file() and Path(path).suffix != ".h5" and not is_database(path)):
            raise InputError(_NO_FILE.format(path))


def pool_of_client(
    client: Any, engine: EngineRequest, threads: int | None = None, on_message: MessageHandler | None = None
) -> WorkerPool:
    """Return the workers of a Dask client, which stays open.

    It raises `OptionError` for another object or if ``threads`` is given, and `ClusterError` if no worker can be
    used.
    """
    if threads is not None:
        raise OptionError("threads", threads, "none with client", "set the threads when you start the workers")
    if not isinstance(client, _distributed().Client):
        raise OptionError("client", client, "a dask.distributed.Client")
    if client.asynchronous or getattr(client, "_asynchronous", False):
        raise OptionError("client", client, "a dask.distributed.Client made without asynchronous=True")
    return WorkerPool(client, engine, on_message=on_message).open()


def open_pool(
    name: str, engine: EngineRequest, threads: int | None = None, timeout: float | None = None,
    on_message: MessageHandler | None = None,
) -> WorkerPool:  # fmt: skip
    """Open a cluster by its name: a scheduler's address, or ``local:N`` for N worker processes.

    Worker processes of ``local:N`` end with the pool. ``threads`` are divided among them, by default one per
    processor. ``timeout`` is the number of seconds after which a worker without a result counts as hung.
    """
    expected = "a number of seconds, more than 0"
    if timeout is not None and check_finite("task_timeout", timeout, expected) <= 0:
        raise OptionError("task_timeout", timeout, expected)
    if threads is not None and not name.strip().startswith("local:"):
        remedy = "set the threads when you start the workers"
        raise OptionError("threads", threads, f"none with --cluster {name}", remedy)
    with ExitStack() as opened:
        client = opened.enter_context(connect(name, threads))
        pool = WorkerPool(
            client, engine, name.strip(), threads=threads, timeout=timeout, on_message=on_message
        ).open()
        pool.then_close = opened.pop_all().close
        return pool


@contextmanager
def connect(name: str, threads: int | None = None) -> Iterator[Any]:
    """Yield a client of a cluster, whatever workers it has; arguments and errors are those of `open_pool`."""
    name = name.strip()
    local, address = re.fullmatch(r"local:([1-9][0-9]{0,3})", name), _ADDRESS.fullmatch(name)
    if local is None and (address is None or name.startswith("local:") or not 0 < int(address[1]) < 1 << 16):
        raise OptionError("--cluster", name, _EXPECTED)
    distributed = _distributed()
    with ExitStack() as opened:
        for handler in logging.getLogger("distributed").handlers:
            opened.callback(handler.setLevel, handler.level)
            handler.setLevel(logging.CRITICAL + 1)  # the pool says what happens
        what = "no workers could be started" if local else "no Dask scheduler answered"
        try:
            if local is None:
                where = name if "://" in name else f"tcp://{name}"
                client = _connect_in_time(
                    lambda: distributed.Client(where, timeout=REACH_SECONDS, set_as_default=False)
                )
            else:
                client = _start_local(distributed, opened, int(local[1]), threads or available_processors())
        except Exception as error:  # of many kinds, by what is there and the version of Dask
            raise ClusterError(f"{name}: {what} ({one_line(error)})") from error
        opened.callback(_close, client, 2)
        yield client


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise InputError(f"a cluster needs dask.distributed ({error}); pip install 'swsearch[cluster]'") from None


def _connect_in_time(connect: Callable[[], Any]) -> Any:
    """Connect, and give up in time; shown by ``test_what_listens_and_says_nothing_is_given_up``."""
    opened: list[Any] = []

    def run() -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of other versions, which each worker is asked for
                opened.append(connect())
        except Exception as error:
            opened.append(error)

    thread = threading.Thread(target=run, name="swsearch-connect", daemon=True)
    thread.start()
    thread.join(REACH_SECONDS + EXTRA_SECONDS)
    result = opened[0] if opened else TimeoutError(f"nothing within {REACH_SECONDS:.0f} s")
    if isinstance(result, Exception):
        raise result
    return result


def _start_local(distributed: Any, opened: ExitStack, workers: int, threads: int) -> Any:
    """Start worker processes on this machine, and return their client."""
    system, config = importlib.import_module("distributed.system"), importlib.import_module("dask").config
    folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="swsearch-cluster-", ignore_cleanup_errors=True))
    _track_quietly()  # started later, it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:  # what is born here never hears Ctrl-C, this process does (test_nothing_goes_on_running)
        with warnings.catch_warnings(), config.set(DASK_SETTINGS):
            warnings.simplefilter("ignore")
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=MAX_CONCURRENT_TASKS, processes=True, local_directory=folder,
                memory_limit=system.MEMORY_LIMIT // workers, silence_logs=logging.CRITICAL,
                # it listens all the same, and only here
                dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                env={THREADS_VARIABLE: str(max(threads // workers, 1))},
            )  # fmt: skip
            opened.callback(_close, cluster, 5)
            return distributed.Client(cluster, timeout=REACH_SECONDS, set_as_default=False)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _track_quietly() -> None:
    """Start Python's own process that removes what others leave: at Ctrl-C it would write of "leaked" semaphores."""
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


def _close(opened: Any, timeout: int) -> None:
    with suppress(Exception):
        opened.close(timeout=timeout)


@dataclass(frozen=True)
class VolumeReport:
    """A volume as a worker finds it: where, empty if nowhere, and why it cannot be read, empty if it can."""

    path: str
    problem: str = ""


@dataclass(frozen=True)
class WorkerReport:
    """State of a worker, as `inspect_cluster` found it."""

    address: str
    host: str
    at_once: int
    """Number of tasks at a time, its ``--nthreads``."""
    memory: int
    """Maximum bytes of memory; 0 without a limit."""
    on_host: int = 0
    """Rank among the workers of its host, from 0."""
    problem: str = ""
    """Reason why the worker cannot be used, or an empty string."""
    threads: int = 0
    processors: int = 0
    is_set: bool = False
    """Whether its environment sets the number of threads."""
    python: str = ""
    description: str = ""
    """Description of its engine."""
    why: str = ""
    """Reason why the engine has no GPU, or an empty string."""
    devices: int = 0
    """Number of GPUs that it sees."""
    volumes: dict[str, VolumeReport] = field(default_factory=dict)
    """Volumes by the client's paths."""

    @property
    def shares_a_device(self) -> bool:
        """Whether a worker of its host came before that has the same GPU."""
        return 0 < self.devices <= self.on_host


def inspect_cluster(client: Any, volumes: Sequence[Volume] = ()) -> list[WorkerReport]:
    """Ask every worker of a cluster what it is, and whether it can read volumes; return them by host and address."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    order = sorted(workers, key=lambda address: (workers[address]["host"], address))
    files = [VolumeFile(each.path, each.identity()) for each in volumes]
    ranks: Counter[str] = Counter()
    answers: dict[str, Any] = {}
    ask(client, examine_worker, files, workers=order, on_answer=answers.__setitem__)
    reports = []
    for address in order:
        each, answer = workers[address], answers[address]
        facts = answer if isinstance(answer, dict) else {"problem": worker_problem(answer)}
        host, memory = each["host"], each["memory_limit"] or 0
        reports.append(WorkerReport(address, host, each["nthreads"], memory, ranks[host], **facts))
        ranks[host] += 1
    return reports


async def examine_worker(files: Sequence[VolumeFile], dask_worker: Any = None) -> dict[str, Any]:
    """Return the fields of `WorkerReport`; runs on a worker."""
    return await asyncio.to_thread(_examine, files, dask_worker)


def _examine(files: Sequence[VolumeFile], worker: Any) -> dict[str, Any]:
    here = worker_state(worker)
    report, (devices, why) = describe(here.request, worker), _devices()
    return {
        "problem": report["problem"],
        "threads": here.threads,
        "processors": available_processors(),
        "is_set": THREADS_VARIABLE in os.environ,
        "python": platform.python_version(),
        "description": report["description"],
        "why": "" if report["engine"] == "gpu" else report["fallback"] or why,
        "devices": devices,
        "volumes": {each.path: _find_volume(each) for each in files},
    }


def _devices() -> tuple[int, str]:
    """Count the GPUs that this process sees, and say why there is none."""
    from swsearch.cuda_package import UNUSABLE, chosen_package, why_no_package

    if not chosen_package():
        return 0, why_no_package()
    from swsearch.engines.gpu.device import list_devices

    try:
        return len(list_devices()), ""
    except GpuUnavailableError as error:
        return 0, str(error).removeprefix(UNUSABLE)


def _find_volume(file: VolumeFile) -> VolumeReport:
    """Return where a volume is found now, without the cache of open volumes."""
    try:
        with open_volume.__wrapped__(file) as database:
            return VolumeReport(database.volumes[0].path)
    except SwsearchError as error:
        return VolumeReport("", str(error))
