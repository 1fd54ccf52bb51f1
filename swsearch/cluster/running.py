"""A search by the workers of a crew, as its caller sees it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from swsearch.cluster.crew import Crew
from swsearch.cluster.job import ClusterJob, CrewEngine, IteratedClusterJob
from swsearch.cluster.sent import EngineWanted
from swsearch.engines.choice import checked
from swsearch.errors import DatabaseError, EngineError, GpuUnavailableError, InputError, OptionError, check_choice
from swsearch.inputs import path_of
from swsearch.options.words import ENGINES
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_job import SearchJob
from swsearch.pipeline.search_results import SearchResults

if TYPE_CHECKING:
    from swsearch.db import Database

NO_FILE = "{}: got no database file, expected one that all workers can read; build it with swsearch db build"


class ClusterResults(SearchResults):
    """The results of a search by a crew; parameters are those of `SearchResults`, with a `CrewEngine`."""

    @staticmethod
    def kind_of(options: SearchOptions) -> type[SearchJob]:
        """Return the kind of job that does what is asked for."""
        return IteratedClusterJob if options.makes_profiles else ClusterJob

    @staticmethod
    def kind_of_dna(database: Database) -> NoReturn:
        """Raise: workers search proteins."""
        raise DatabaseError(f"{database.name}: a cluster cannot search a DNA database; search it on one machine")


def search_by_client(
    client: Any, engine: Any, threads: int | None, device: Any, gpu_memory: int | None
) -> CrewEngine:
    """Return what scores by the workers of a Dask client, from the arguments of `swsearch.search`.

    Parameters
    ----------
    client : dask.distributed.Client or Crew
        Open; it stays open.
    engine, gpu_memory
        For each worker.
    threads, device
        Which have to be None: workers have the threads that they were started with, and a GPU each.

    Raises
    ------
    OptionError
        If something is not as it should be.
    """
    wanted = wanted_of(engine, gpu_memory, device, "client")
    if threads is not None:
        raise OptionError("threads", threads, "none with client", "set the threads when you start the workers")
    if isinstance(client, Crew):
        return engine_of(client, wanted, owns_crew=False)
    from swsearch.cluster.dask_crew import crew_of

    return engine_of(crew_of(client), wanted)


def search_by_cluster(
    name: str, wanted: EngineWanted, threads: int | None = None, task_timeout: float | None = None
) -> CrewEngine:
    """Return what scores by the workers of a cluster.

    Parameters
    ----------
    name : str
        A scheduler's address, or ``local:N``.
    wanted : EngineWanted
        What workers score with.
    threads : int, optional
        Threads that are divided among the workers of ``local:N``.
    task_timeout : float, optional
        Seconds that a task may take.

    Raises
    ------
    OptionError
        If there is no such name, or threads are given for workers that have theirs already.
    ClusterError
        If there is no worker that can be used.
    """
    from swsearch.cluster.dask_crew import open_cluster

    if threads is not None and not name.strip().startswith("local:"):
        remedy = "set the threads when you start the workers"
        raise OptionError("threads", threads, f"none with --cluster {name}", remedy)
    return engine_of(open_cluster(name, task_timeout=task_timeout, threads=threads), wanted)


def wanted_of(engine: Any, gpu_memory: int | None, device: Any, option: str) -> EngineWanted:
    """Check what workers are to score with; ``option`` says what names the workers."""
    check_choice("engine", engine, ENGINES)
    if device is not None:
        remedy = "each worker uses its own GPU; choose it with CUDA_VISIBLE_DEVICES of the worker"
        raise OptionError("device", device, f"none with {option}", remedy)
    return EngineWanted(engine, checked("gpu_memory", gpu_memory))


def engine_of(crew: Crew, wanted: EngineWanted, owns_crew: bool = True) -> CrewEngine:
    """Return what stands for the engines of a crew's workers, one of which has made its own.

    Raises
    ------
    EngineError
        If it could not.
    """
    engine = CrewEngine(crew, wanted, owns_crew)
    try:
        problem = engine.facts["problem"]
        if problem:
            kind = GpuUnavailableError if wanted.name == "gpu" else EngineError
            raise kind(f"a worker on {engine.facts['host']}: {problem}")
        engine.fallback = engine.facts["fallback"]
    except BaseException:
        engine.close()
        raise
    return engine


def check_is_database(subjects: Any) -> None:
    """Raise `InputError` for subjects that are in no database file, before any of them is read.

    Parameters
    ----------
    subjects : Database, or as for `swsearch.inputs.open_subjects`
        What is to be searched.
    """
    from swsearch.db import Database, is_database

    if isinstance(subjects, Database):
        if all(volume.path for volume in subjects.volumes):
            return
        raise InputError(NO_FILE.format(subjects.name))
    several = subjects if isinstance(subjects, (list, tuple)) else [subjects]
    for each in several:
        path = path_of(each)
        if not path:
            raise InputError(NO_FILE.format("subjects"))
        if path == "-" or (Path(path).is_file() and Path(path).suffix != ".h5" and not is_database(path)):
            raise InputError(NO_FILE.format(path))
