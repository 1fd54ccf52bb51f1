"""State of a worker process between tasks: engine, open volumes, loaded shares.

One task at a time uses the engine. Shares take up to half of the worker's memory on a CPU, or the memory of the
engine's plan on a GPU. The share unused for the longest time is unloaded first.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from swsearch.blocks import RunLengths
from swsearch.cluster.messages import EngineRequest, VolumeFile
from swsearch.db import Database
from swsearch.engines import create_engine
from swsearch.engines.base import Engine, Workload
from swsearch.errors import DatabaseError, GpuUnavailableError
from swsearch.pipeline.batch import GROUP_RESIDUES
from swsearch.pipeline.subjects import EngineDatabase, Subjects, host_memory
from swsearch.processors import useful_thread_count

FOLDERS_VARIABLE = "SWSEARCH_VOLUMES"
"""Environment variable of a worker: folders that hold copies of volumes, separated as in PATH. They are looked at
before a volume's own path: a copy was put there to be used."""

THREADS_VARIABLE = "SWSEARCH_THREADS"
"""Environment variable of a worker: threads to compute with. Dask's ``--nthreads`` is tasks at a time."""

CPU_MEMORY_PART, MAX_OPEN_VOLUMES = 2, 32
"""A CPU's shares take this part of the worker's memory; volumes that stay open."""

TYPICAL_QUERIES = 256
"""Queries that a GPU plans for at least, so that later groups need no new plan."""

DASK_TRIM, KEPT_BYTES, MAPPED_BYTES = "65536", 128 << 20, 32 << 20
"""Dask's value of ``MALLOC_TRIM_THRESHOLD_``, with which glibc returns every freed array to the system at once;
our bytes of free memory that the process keeps, and bytes from which arrays are mapped one by one.
"""


@dataclass(eq=False)
class LoadedShare:
    """A share as the engine has it, with the largest group (queries, residues) that it was planned for."""

    subjects: Subjects
    mask: Any
    loaded: EngineDatabase
    in_flight: int
    planned: tuple[int, int]


class WorkerState:
    """State of a worker process; ``worker`` is the first Dask worker of this process that has a task."""

    def __init__(self, worker: Any) -> None:
        self.threads = useful_thread_count(int(os.environ.get(THREADS_VARIABLE) or worker.state.nthreads))
        self.memory: int = worker.memory_manager.memory_limit or host_memory() // 2
        self.exclusive_engine = threading.RLock()
        """Held by the task that uses the engine."""
        self._made: tuple[EngineRequest, Engine] | None = None
        self._shares: OrderedDict[Hashable, LoadedShare] = OrderedDict()
        _keep_freed_memory()

    @property
    def request(self) -> EngineRequest:
        """Request that its engine was created for."""
        return EngineRequest() if self._made is None else self._made[0]

    def engine(self, request: EngineRequest) -> Engine:
        """Return the worker's engine, created now if it is another one."""
        current = self._made
        if current is not None and current[0] == request:
            return current[1]
        with self.exclusive_engine:
            if self._made is None or self._made[0] != request:
                self.unload()
                if self._made is not None:
                    self._made[1].close()
                    self._made = None
                device = own_device() if request.name in ("auto", "gpu") else None
                name = "cpu" if request.name == "auto" and device is None else request.name
                memory = request.gpu_memory if name in ("auto", "gpu") else None
                engine = create_engine(name, threads=self.threads, device=device, gpu_memory=memory)
                self._made = request, engine
            return self._made[1]

    def share(
        self, engine: Engine, key: Hashable, subjects: Subjects, mask: Any, largest: tuple[int, int]
    ) -> LoadedShare:
        """Return a loaded share; the caller holds `exclusive_engine`."""
        loaded = self._shares.pop(key, None)
        if loaded is not None and loaded.planned[0] >= largest[0] and loaded.planned[1] >= largest[1]:
            self._shares[key] = loaded
            return loaded
        if loaded is not None:
            loaded.loaded.close()
        load = self._load_on_device if engine.name == "gpu" else self._load_in_memory
        return load(engine, key, subjects, mask, largest)

    def _load_in_memory(
        self, engine: Engine, key: Hashable, subjects: Subjects, mask: Any, largest: tuple[int, int]
    ) -> LoadedShare:
        """Load a share into memory in place of others; a share that does not fit is read at each scan."""
        room = self.memory // CPU_MEMORY_PART - subjects.residue_bytes
        while self._shares and sum(each.subjects.residue_bytes for each in self._shares.values()) > room >= 0:
            self._shares.popitem(last=False)[1].loaded.close()
        plan = engine.plan(_workload([subjects], largest))
        plan = replace(plan, keep_loaded=plan.keep_loaded or room >= 0)
        loaded = EngineDatabase(engine, subjects, plan, mask)
        share = LoadedShare(subjects, mask, loaded, plan.in_flight, largest)
        if room >= 0:
            self._shares[key] = share
        return share

    def _load_on_device(
        self, engine: Engine, key: Hashable, subjects: Subjects, mask: Any, largest: tuple[int, int]
    ) -> LoadedShare:
        """Load the new share and as many recent ones as fit on a device, with one plan for all."""
        largest = max(largest[0], TYPICAL_QUERIES), max(largest[1], GROUP_RESIDUES)
        last = [
            (each, loaded_share.subjects, loaded_share.mask) for each, loaded_share in reversed(self._shares.items())
        ]
        shares = [(key, subjects, mask), *last]
        self.unload()
        while (
            not (plan := engine.plan(_workload([each for _, each, _ in shares], largest))).keep_loaded
            and len(shares) > 1
        ):
            shares.pop()
        for each, some, its_mask in reversed(shares):
            loaded = EngineDatabase(engine, some, plan, its_mask)
            self._shares[each] = LoadedShare(some, its_mask, loaded, plan.in_flight, largest)
        return self._shares[key]

    def unload(self) -> None:
        """Release all shares; the caller holds `exclusive_engine`."""
        while self._shares:
            self._shares.popitem()[1].loaded.close()


_states: list[WorkerState] = []
_states_guard = threading.Lock()


def worker_state(worker: Any = None) -> WorkerState:
    """Return what this process keeps; the worker is that of this thread's task, if none is given."""
    with _states_guard:
        if not _states:
            from distributed import get_worker

            _states.append(WorkerState(worker or get_worker()))
        return _states[0]


def _keep_freed_memory() -> None:
    """Keep freed memory in this process for the next task, unless the user's environment sets a limit."""
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") == DASK_TRIM:
        with suppress(OSError, AttributeError):  # another C library
            import ctypes

            mallopt = ctypes.CDLL(None).mallopt
            mallopt(-1, KEPT_BYTES)  # M_TRIM_THRESHOLD
            mallopt(-3, MAPPED_BYTES)  # M_MMAP_THRESHOLD


@cache
def own_device() -> int | None:
    """Return a GPU that no other worker of this host has locked, else the first; None without a GPU.

    The lock ends with this process.
    """
    from swsearch.cuda_package import chosen_package

    if not chosen_package():
        return None
    from swsearch.engines.gpu.device import list_devices
    from swsearch.engines.gpu.driver import driver

    with suppress(GpuUnavailableError):
        devices = list_devices()
        for device in devices:
            bus = driver().Device(device.index).pci_bus_id()  # whatever CUDA_VISIBLE_DEVICES makes its number
            name = f"/tmp/swsearch-gpu-{os.getuid()}-{bus.replace(':', '-')}"
            with suppress(OSError), ExitStack() as locks:  # also where another user has put a link there
                file = os.open(name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
                locks.callback(os.close, file)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locks.pop_all()
                return device.index
        return devices[0].index
    return None


@lru_cache(MAX_OPEN_VOLUMES)
def open_volume(file: VolumeFile) -> Database:
    """Open a volume: a copy in the folders of `FOLDERS_VARIABLE`, else the file itself.

    It raises `DatabaseError` if the volume is in neither place, or if another database is there.
    """
    folders = [each for each in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep) if each]
    copies = [str(Path(folder) / Path(file.path).name) for folder in folders]
    problems: list[str] = []
    for path in dict.fromkeys([*copies, file.path]):
        if not Path(path).exists():
            problems.append(f"{path} not found")
            continue
        try:
            database = Database.open(path)
        except DatabaseError as error:
            problems.append(str(error))
            continue
        if (identity := database.identity()) == file.identity:
            return database
        database.close()
        problems.append(f"{path} is another database (sha256 {identity[:12]}, expected {file.identity[:12]})")
    raise DatabaseError(
        f"volume {Path(file.path).name}: {'; '.join(problems)}; move it where this machine can read it, or copy it "
        f"into a folder in the worker's {FOLDERS_VARIABLE}"
    )


def _workload(shares: Sequence[Subjects], largest: tuple[int, int]) -> Workload:
    """Return what is asked of an engine that is to hold some shares."""
    queries, rows = largest
    group = [max(rows - (queries - 1), 1)] + [1] * (queries - 1)
    lengths = RunLengths.concatenate([each.length_runs for each in shares])
    n_segments = sum(each.n_segments for each in shares)
    return Workload(sum(each.residue_bytes for each in shares), lengths, [group], n_segments)
