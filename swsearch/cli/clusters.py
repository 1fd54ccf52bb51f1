"""Where a command searches: on this machine, or by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from swsearch.cli.console import say
from swsearch.errors import OptionError

if TYPE_CHECKING:
    from swsearch.cli.tables import EngineTable, MessageTable, RunTable
    from swsearch.db import Database
    from swsearch.pipeline.backend import Backend


def backend_for(
    asked: EngineTable,
    run: RunTable,
    subjects: Any,
    threads: int | None,
    messages: MessageTable,
    cpu_only: str = "",
    one_by_one: bool = False,
) -> tuple[AbstractContextManager[Any], Callable[[Database], Backend]]:
    """Return what searches some paths, to be closed, and what makes it a backend.

    Parameters
    ----------
    asked, run, subjects, threads, messages
        What the command was given.
    cpu_only : str, optional
        As for `create_engine`.
    one_by_one : bool, optional
        As for `LocalBackend`.
    """
    if run.cluster is None:
        if run.task_timeout is not None:
            raise OptionError("task_timeout", run.task_timeout, "none without --cluster", "leave it out")
        from swsearch.backends.local import LocalBackend
        from swsearch.engines import create_engine

        notice = None if messages.quiet or messages.verbose else lambda text: say(f"swsearch: {text}")
        engine = create_engine(
            asked.engine, threads=threads, device=asked.device, gpu_memory=asked.gpu_memory, notice=notice,
            cpu_only=cpu_only,
        )  # fmt: skip
        return engine, partial(LocalBackend, engine=engine, threads=threads, one_by_one=one_by_one)
    from swsearch.cluster.backend import ClusterBackend
    from swsearch.cluster.opening import check_is_database, engine_request, open_pool

    wanted = engine_request(asked.engine, asked.gpu_memory, asked.device, "--cluster")
    check_is_database(subjects)
    pool = open_pool(run.cluster, wanted, threads, run.task_timeout)
    return pool, partial(ClusterBackend, pool=pool)
