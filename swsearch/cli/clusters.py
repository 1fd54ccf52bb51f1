"""Where a command searches: on this machine, or by the workers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swsearch.cli.console import say
from swsearch.errors import OptionError

if TYPE_CHECKING:
    from swsearch.cli.tables import EngineTable, MessageTable, RunTable
    from swsearch.engines.base import Engine
    from swsearch.pipeline.search_results import SearchResults


def engine_for(
    asked: EngineTable, run: RunTable, subjects: Any, threads: int | None, messages: MessageTable, cpu_only: str = ""
) -> tuple[Engine, type[SearchResults]]:
    """Return the engine of a search of some paths, and the class of its results; ``cpu_only`` as `create_engine`."""
    from swsearch.pipeline.search_results import SearchResults

    if run.cluster is None:
        if run.task_timeout is not None:
            raise OptionError("task_timeout", run.task_timeout, "none without --cluster", "leave it out")
        from swsearch.engines import create_engine

        notice = None if messages.quiet or messages.verbose else lambda text: say(f"swsearch: {text}")
        return create_engine(
            asked.engine, threads=threads, device=asked.device, gpu_memory=asked.gpu_memory, notice=notice,
            cpu_only=cpu_only,
        ), SearchResults  # fmt: skip
    from swsearch.cluster.running import ClusterResults, check_is_database, search_by_cluster, wanted_of

    wanted = wanted_of(asked.engine, asked.gpu_memory, asked.device, "--cluster")
    check_is_database(subjects)
    return search_by_cluster(run.cluster, wanted, threads, run.task_timeout), ClusterResults
