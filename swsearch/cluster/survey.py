"""What a cluster offers: its workers, whether they run this program, what they score with, and what they can read.

A survey asks each worker by itself, and gives no task to a `Crew`: workers that could not be used are part of the
answer.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from swsearch.cluster.same_program import difference, program
from swsearch.cluster.sent import EngineWanted, VolumeWanted, of_bytes, to_bytes
from swsearch.cluster.transport import WorkerFound, WorkerPlace
from swsearch.errors import GpuUnavailableError, SwsearchError
from swsearch.processors import threads_that_help

if TYPE_CHECKING:
    from swsearch.db.volumes import Volume

MOST_AT_A_TIME = 32
"""Workers that are asked at a time."""

FIRST_INDEX = 1 << 30
"""Indices of places from here on are a survey's: what a search keeps on a worker is not touched."""


class Surveyed(Protocol):
    """What a survey asks: `swsearch.cluster.dask_crew.DaskTransport`, or what stands for it in a test."""

    def present(self) -> Mapping[str, WorkerFound]:
        """Return the workers that are there, by address."""

    def describe(self, worker: WorkerFound) -> dict[str, str]:
        """Return what a worker's `swsearch.cluster.on_worker.describe_worker` says, though it is busy."""

    def ask(self, worker: WorkerFound, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns that a thread of a worker calls; a busy one may be too late."""


@dataclass(frozen=True)
class VolumeSeen:
    """A volume as a worker finds it.

    Parameters
    ----------
    path : str
        Where it was found; empty if it was not.
    problem : str
        Why it cannot be read; empty if it can.
    """

    path: str
    problem: str = ""


@dataclass(frozen=True)
class WorkerSeen:
    """A worker, and what was found out about it.

    Parameters
    ----------
    found : WorkerFound
        The worker.
    on_host : int
        Its rank among those of its host, from 0.
    problem : str
        Why it cannot be used; empty if it can.
    versions : dict
        Of what runs there, by name.
    engine : str
        What it scores with, as a run would name it.
    why : str
        Why that is no GPU; empty if it is one.
    devices : int
        GPUs that it sees.
    volumes : dict
        `VolumeSeen` by the path of the client.
    """

    found: WorkerFound
    on_host: int
    problem: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    engine: str = ""
    why: str = ""
    devices: int = 0
    volumes: dict[str, VolumeSeen] = field(default_factory=dict)

    @property
    def shares_a_device(self) -> bool:
        """Whether a worker of its host came before that has the same GPU."""
        return 0 < self.devices <= self.on_host


def survey(asked: Surveyed, volumes: Sequence[Volume] = ()) -> list[WorkerSeen]:
    """Ask every worker of a cluster what it is, and whether it can read the volumes of a database.

    Parameters
    ----------
    asked : Surveyed
        Who is there.
    volumes : sequence of Volume, optional
        Of a database.

    Returns
    -------
    list of WorkerSeen
        By host and address.
    """
    workers = sorted(asked.present().values(), key=lambda each: (each.host, each.address))
    payload = to_bytes([VolumeWanted(each.path, each.identity()) for each in volumes])
    ranks: Counter[str] = Counter()
    placed = []
    for worker in workers:
        placed.append((worker, ranks[worker.host]))
        ranks[worker.host] += 1
    if not placed:
        return []
    with ThreadPoolExecutor(min(len(placed), MOST_AT_A_TIME), thread_name_prefix="swsearch-survey") as pool:
        return list(pool.map(lambda each: _seen(asked, each[0], each[1], payload), placed))


def _seen(asked: Surveyed, worker: WorkerFound, rank: int, payload: bytes) -> WorkerSeen:
    """Ask a worker; whatever it cannot tell is its problem."""
    try:
        versions = asked.describe(worker)
    except TimeoutError:
        return WorkerSeen(worker, rank, "no answer")
    except Exception as error:
        return WorkerSeen(worker, rank, f"it cannot load swsearch ({_one_line(error)})")
    problem = difference(versions, program())
    if problem:
        return WorkerSeen(worker, rank, problem, versions)
    place = WorkerPlace(FIRST_INDEX + rank, rank, worker.n_threads, worker.memory, worker.host)
    try:
        told = json.loads(asked.ask(worker, look, payload, place))
    except TimeoutError:
        return WorkerSeen(worker, rank, "no answer; it is busy or hangs", versions)
    except Exception as error:
        return WorkerSeen(worker, rank, _one_line(error), versions)
    found = {path: VolumeSeen(*each) for path, each in told.pop("volumes").items()}
    return WorkerSeen(worker, rank, versions={**versions, "python": told.pop("python")}, volumes=found, **told)


def look(payload: bytes, place: WorkerPlace) -> bytes:
    """Tell what a worker scores with, and which volumes it can read; this is what a worker runs.

    Parameters
    ----------
    payload : bytes
        A list of `VolumeWanted`.
    place : WorkerPlace
        The worker.

    Returns
    -------
    bytes
        An object of JSON: ``problem``, ``engine``, ``why`` and ``devices`` as `WorkerSeen` has them, ``python``, and
        ``volumes``: for each path where it was found and why it cannot be read.
    """
    wanted: list[VolumeWanted] = of_bytes(payload)
    told: dict[str, Any] = {"python": platform.python_version(), **_engine_of(place)}
    told["volumes"] = {each.path: _volume_of(each, place.host) for each in wanted}
    return json.dumps(told).encode()


def _engine_of(place: WorkerPlace) -> dict[str, Any]:
    """Make the engine that a search would have here, and say what it is."""
    from swsearch.cluster.worker import make_engine

    devices, why = _devices()
    try:
        with make_engine(EngineWanted(), place, threads_that_help(place.n_threads)) as engine:
            no_gpu = "" if engine.name == "gpu" else engine.fallback or why
            return {"problem": "", "engine": engine.description, "why": no_gpu, "devices": devices}
    except SwsearchError as error:
        return {"problem": str(error), "engine": "", "why": why, "devices": devices}


def _devices() -> tuple[int, str]:
    """Count the GPUs that this process sees, and say why there is none."""
    from swsearch.engines.choice import NO_PYCUDA, pycuda_is_installed

    if not pycuda_is_installed():
        return 0, NO_PYCUDA
    from swsearch.engines.gpu.device import list_devices

    try:
        return len(list_devices()), ""
    except GpuUnavailableError as error:
        return 0, str(error).removeprefix("engine gpu cannot be used: ")


def _volume_of(wanted: VolumeWanted, host: str) -> tuple[str, str]:
    """Say where a volume was found, and why it cannot be read."""
    from swsearch.cluster.worker import open_volume

    try:
        with open_volume(wanted, host) as database:
            return database.volumes[0].path, ""
    except SwsearchError as error:
        return "", str(error)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
