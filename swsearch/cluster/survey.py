"""What a cluster offers: its workers, whether they run this program, what they score with, and what they can read."""

from __future__ import annotations

import asyncio
import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swsearch.cluster.messages import VolumeFile, problem_of
from swsearch.cluster.pool import ask
from swsearch.cluster.tasks import describe
from swsearch.cluster.worker import THREADS_VARIABLE, open_volume, state_of
from swsearch.errors import GpuUnavailableError, SwsearchError

if TYPE_CHECKING:
    from swsearch.db.database_files import Volume


@dataclass(frozen=True)
class VolumeSeen:
    """A volume as a worker finds it: where, empty if nowhere, and why it cannot be read, empty if it can."""

    path: str
    problem: str = ""


@dataclass(frozen=True)
class WorkerSeen:
    """A worker, and what was found out about it.

    Parameters
    ----------
    address, host : str
        Where it is.
    at_once : int
        Tasks that it does at a time, as its ``--nthreads`` says.
    memory : int
        Bytes that it may use; 0 without a limit.
    on_host : int
        Its rank among those of its host, from 0.
    problem : str
        Why it cannot be used; empty if it can.
    threads, processors : int
        That it computes with, and that it may use.
    is_set : bool
        Whether its environment says how many threads it computes with.
    python, description, why : str
        Its Python; what it scores with; why that is no GPU, empty if it is one.
    devices : int
        GPUs that it sees.
    volumes : dict
        `VolumeSeen` by the path of the client.
    """

    address: str
    host: str
    at_once: int
    memory: int
    on_host: int = 0
    problem: str = ""
    threads: int = 0
    processors: int = 0
    is_set: bool = False
    python: str = ""
    description: str = ""
    why: str = ""
    devices: int = 0
    volumes: dict[str, VolumeSeen] = field(default_factory=dict)

    @property
    def shares_a_device(self) -> bool:
        """Whether a worker of its host came before that has the same GPU."""
        return 0 < self.devices <= self.on_host


def survey(client: Any, volumes: Sequence[Volume] = ()) -> list[WorkerSeen]:
    """Ask every worker of a cluster what it is, and whether it can read volumes; return them by host and address."""
    told = client.scheduler_info(n_workers=-1)["workers"]
    order = sorted(told, key=lambda address: (told[address]["host"], address))
    files = [VolumeFile(each.path, each.identity()) for each in volumes]
    ranks: Counter[str] = Counter()
    answers: dict[str, Any] = {}
    ask(client, look_closely, files, workers=order, hear=answers.__setitem__)
    found = []
    for address in order:
        each, answer = told[address], answers[address]
        facts = answer if isinstance(answer, dict) else {"problem": problem_of(answer)}
        host, memory = each["host"], each["memory_limit"] or 0
        found.append(WorkerSeen(address, host, each["nthreads"], memory, ranks[host], **facts))
        ranks[host] += 1
    return found


async def look_closely(files: Sequence[VolumeFile], dask_worker: Any = None) -> dict[str, Any]:
    """Tell of a worker what `WorkerSeen` has; this is what a worker runs."""
    return await asyncio.to_thread(_look_closely, files, dask_worker)


def _look_closely(files: Sequence[VolumeFile], worker: Any) -> dict[str, Any]:
    from swsearch.processors import available_processors

    here = state_of(worker)
    told, (devices, why) = describe(here.request, worker), _devices()
    return {
        "problem": told["problem"],
        "threads": here.threads,
        "processors": available_processors(),
        "is_set": THREADS_VARIABLE in os.environ,
        "python": platform.python_version(),
        "description": told["description"],
        "why": "" if told["engine"] == "gpu" else told["fallback"] or why,
        "devices": devices,
        "volumes": {each.path: _volume_of(each) for each in files},
    }


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


def _volume_of(wanted: VolumeFile) -> VolumeSeen:
    """Say where a volume is found now, whatever is open already."""
    try:
        with open_volume.__wrapped__(wanted) as database:
            return VolumeSeen(database.volumes[0].path)
    except SwsearchError as error:
        return VolumeSeen("", str(error))
