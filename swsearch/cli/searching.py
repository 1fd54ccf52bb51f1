"""What ``swsearch search`` and ``swsearch msa`` share: arguments, where they search, and what they say on stderr."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli.console import say, size_of
from swsearch.client.urls import is_url, server_url
from swsearch.errors import InputError, OptionError

if TYPE_CHECKING:
    from swsearch.cli.tables import EngineTable, MessageTable, RunTable
    from swsearch.db import Database
    from swsearch.inputs import Query
    from swsearch.options.words import QueryFormat
    from swsearch.pipeline.backend import Backend
    from swsearch.pipeline.options import SearchOptions
    from swsearch.pipeline.search import Search
    from swsearch.pipeline.search_results import SearchResults
    from swsearch.run_info import Origin

QueriesArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUERIES", help="Query file: FASTA, alignments or profiles; may be compressed; - reads stdin."
    ),
]
SubjectsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SUBJECTS...",
        help="Databases, volume manifests or FASTA files, searched as one; or, for search, one database on a server, "
        "e.g. http://host:8080/sprot.",
    ),
]


def url_among(subjects: Sequence[str]) -> str | None:
    """Return the address of a server that is to search; None where all subjects are files.

    Raises
    ------
    InputError
        If there is something beside it, or it is no address, or holds a password.
    """
    urls = [each for each in subjects if is_url(each)]
    if urls:
        server_url(urls[0])
    if urls and len(subjects) > 1:
        raise InputError(
            f"subjects: got {urls[0]} and {len(subjects) - 1} more, expected one database of a server alone; search "
            "the others after it"
        )
    return urls[0] if urls else None


def origin_of(queries: str, files: Mapping[str, str] | None = None) -> Origin:
    """Return where a search comes from: this command line, now, with the query file and other files by option."""
    from swsearch.run_info import Origin

    return Origin(queries, shlex.join(["swsearch", *sys.argv[1:]]), datetime.now(UTC), files=files or {})


def paths_of(subjects: list[str]) -> Path | list[Path]:
    """Return what stands for the subjects: one file, or several that are searched as one."""
    paths = [Path(each) for each in subjects]
    return paths if len(paths) > 1 else paths[0]


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


def read_queries(
    path: str, options: SearchOptions, query_format: QueryFormat, quiet: bool
) -> tuple[list[Query], SearchOptions]:
    """Read the queries; return the options with the gap costs of profiles among them."""
    from swsearch.pipeline.search_queries import search_queries

    queries = search_queries(Path(path), options, query_format, argument="")
    say_of_queries(path, queries, quiet)
    return queries, options.with_costs_of(queries)


def say_of_queries(path: str, found: Sequence[Query], quiet: bool) -> None:
    """Say which profiles are among the queries, and warn of queries that are empty."""
    from swsearch.pipeline.search_queries import query_notes

    if not quiet and (profiles := [query.profile for query in found if query.profile is not None]):
        more = f", and {len(profiles) - 1:,} more profiles" if len(profiles) > 1 else ""
        say(f"swsearch: {profiles[0].identifier}: {profiles[0].source or 'a profile'}{more}")
    for note in query_notes(path, found):
        say(f"swsearch: warning: {note}")


def say_beforehand(search: Search, messages: MessageTable) -> None:
    """Say what will run; allocates, so that what does not fit is told before any output."""
    from swsearch.statistics.choice import why_none

    options, backend, subjects = search.options, search.backend, search.subjects
    if messages.verbose:
        if backend.fallback:
            say(f"swsearch: {backend.fallback}")
        say(f"swsearch: engine {backend.description}; {options.scoring.describe()}; {options.mode} alignment")
        say(f"swsearch: {subjects.name}: {size_of(subjects.n_places, subjects.n_residues)}")
    note = search.session.note
    if messages.verbose and note:
        say(f"swsearch: {note}")
    if search.checkpoint is not None and search.checkpoint.n_kept and not messages.quiet:
        kept = f"{search.checkpoint.n_kept // options.n_frames:,} of {len(search.queries):,}"
        state = "go on from where they were" if options.makes_profiles else "are done and not searched again"
        say(f"swsearch: checkpoint {search.checkpoint.folder}: {kept} queries {state}")
    if search.criteria.method is None:
        say(f"swsearch: {why_none()}")


def say_afterwards(results: SearchResults, seconds: float, spared: int, quiet: bool, *, written: str = "") -> None:
    """Say what was found out about statistics, and what was done.

    Parameters
    ----------
    results : SearchResults
        Taken to the last.
    seconds : float
        That it took.
    spared : int
        Cells that were not computed.
    quiet : bool
        Whether to say only what is doubtful.
    written : str, optional
        What was written, beside reports.
    """
    for text in _fit_notes(results, quiet):
        say(f"swsearch: {text}")
    if not quiet:
        if results.search.options.iterations > 1:
            say(f"swsearch: {results.iterated.describe()}")
        if written:
            say(f"swsearch: {written}")
        search, run = results.search, results.run
        size = size_of(run.database_subjects, run.database_residues, run.database_code is not None)
        engine = "" if run.execution is None else run.execution.engine
        say(summary(len(search.queries), size, search.cells - spared, seconds, engine))


def _fit_notes(results: SearchResults, quiet: bool) -> Iterator[str]:
    """Say where E-values come from, and, however quiet, of which queries there are none, or doubtful ones."""
    from swsearch.report.headers import statistics_name
    from swsearch.statistics.fitted import Fit

    method, reasons = results.search.criteria.method, results.unfitted
    if not isinstance(method, Fit):
        if not quiet and method is not None and results.run.program == "tblastx":
            yield f"E-values: {statistics_name(method, 'tblastx')}"
        return
    n_queries = len(results.search.queries)
    if len(reasons) < n_queries and not quiet:
        yield f"E-values: {method.name}"
    if reasons:
        yield f"{len(reasons)} of {n_queries} queries: {reasons[0]}"
    yield from results.doubts


def summary(n_queries: int, size: str, cells: int, seconds: float, engine: str) -> str:
    """Return a line that says what was done, of how many cells that were computed, in how many seconds."""
    rate = cells / max(seconds, 1e-9) / 1e9
    plural = "query" if n_queries == 1 else "queries"
    return f"swsearch: {n_queries} {plural} x {size}, {seconds:.2f} s, {rate:.2f} GCUPS, engine {engine}"
