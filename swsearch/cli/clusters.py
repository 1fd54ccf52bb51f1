"""Where a command searches: on this machine, or by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swsearch.errors import OptionError

if TYPE_CHECKING:
    from swsearch.engines.base import Engine
    from swsearch.job.running import SearchResults


@dataclass(frozen=True)
class Where:
    """What a command was told of where to search.

    Parameters
    ----------
    cluster : str or None
        A scheduler's address, or ``local:N``.
    task_timeout : float or None
        Seconds that a task may take.
    engine : str
        Name of what scores, here or on each worker.
    threads : int or None
        Of this machine.
    device : int or other
        Which GPU of this machine.
    gpu_memory : int or None
        Bytes, here or of each worker.
    """

    cluster: str | None
    task_timeout: float | None
    engine: str
    threads: int | None
    device: Any
    gpu_memory: int | None
    cpu_only: str = ""


def engine_for(
    where: Where, subjects: Any, notice: Callable[[str], None] | None
) -> tuple[Engine, type[SearchResults]]:
    """Return what scores, and the kind of results that it takes.

    Parameters
    ----------
    where : Where
        What was asked for.
    subjects : path or list of paths
        What is to be searched.
    notice : callable or None
        Told why there is no GPU, as of `swsearch.engines.create_engine`.
    """
    from swsearch.job.running import SearchResults

    if where.cluster is None:
        if where.task_timeout is not None:
            raise OptionError("task_timeout", where.task_timeout, "none without --cluster", "leave it out")
        from swsearch.engines import create_engine

        options = {"threads": where.threads, "device": where.device, "gpu_memory": where.gpu_memory}
        return create_engine(where.engine, notice=notice, cpu_only=where.cpu_only, **options), SearchResults
    from swsearch.cluster.running import ClusterResults, check_is_database, search_by_cluster, wanted_of

    if where.task_timeout is not None and where.task_timeout <= 0:
        raise OptionError("task_timeout", where.task_timeout, "a number of seconds > 0, such as 600")
    wanted = wanted_of(where.engine, where.gpu_memory, where.device, "--cluster")
    check_is_database(subjects)
    return search_by_cluster(where.cluster, wanted, where.threads, where.task_timeout), ClusterResults
