"""What ``swsearch search`` and ``swsearch msa`` share: arguments, where they search, and what they say on stderr."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli.console import checked_threads, say, size_of
from swsearch.cli.tables import EngineTable, MessageTable, RunTable
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.client.urls import is_url, server_url
from swsearch.errors import InputError, OptionError

if TYPE_CHECKING:
    from swsearch.cli.progress import SearchProgress
    from swsearch.db import Database
    from swsearch.inputs import Query
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


class SearchCommand:
    """A search as a command runs it, from its words to its summary. Importing waits until the GPU warms up."""

    def __init__(self, queries: str, subjects: list[str], given: Mapping[str, Any]) -> None:
        self.queries, self.subjects, self.query_format = queries, subjects, given["query_format"]
        self.engine, self.run, self.messages = EngineTable.of(given), RunTable.of(given), MessageTable.of(given)
        self.url = url_among(subjects)
        """Address of the server that is to search instead."""
        if self.url is None and self.run.cluster is None and self.engine.engine in ("auto", "gpu"):
            warm_up_gpu(self.engine.device)

    def read_queries(self, options: SearchOptions) -> tuple[list[Query], SearchOptions]:
        """Read the queries; return the options with the gap costs of profiles among them."""
        from swsearch.inputs import check_subject_inputs
        from swsearch.pipeline.search_queries import query_notes, search_queries

        self._begun = time.monotonic()
        check_subject_inputs(self.queries, self.subjects)
        self._threads = checked_threads(self.engine.threads, self.messages.quiet)
        found = search_queries(Path(self.queries), options, self.query_format, argument="")
        if not self.messages.quiet and (profiles := [query.profile for query in found if query.profile is not None]):
            more = f", and {len(profiles) - 1:,} more profiles" if len(profiles) > 1 else ""
            say(f"{profiles[0].identifier}: {profiles[0].source or 'a profile'}{more}")
        for note in query_notes(self.queries, found):
            say(f"warning: {note}")
        return found, options.with_costs_of(found)

    @contextmanager
    def results(
        self, found: list[Query], options: SearchOptions, origin: Origin, one_by_one: bool = False
    ) -> Iterator[SearchResults]:
        """Open what searches, and the results of a search that has not begun; ``one_by_one`` as of `LocalBackend`."""
        from swsearch.pipeline.search_results import SearchResults

        paths, asked, run, threads = [Path(each) for each in self.subjects], self.engine, self.run, self._threads
        subjects = paths if len(paths) > 1 else paths[0]
        made: AbstractContextManager[Any]
        backend_of: Callable[[Database], Backend]
        if run.cluster is None:
            if run.task_timeout is not None:
                raise OptionError("task_timeout", run.task_timeout, "none without --cluster", "leave it out")
            from swsearch.backends.local import LocalBackend
            from swsearch.engines import create_engine

            made = engine = create_engine(
                asked.engine, threads=threads, device=asked.device, gpu_memory=asked.gpu_memory,
                notice=None if self.messages.quiet or self.messages.verbose else say, cpu_only=options.cpu_only,
            )  # fmt: skip
            backend_of = partial(LocalBackend, engine=engine, threads=threads, one_by_one=one_by_one)
        else:
            from swsearch.cluster.backend import ClusterBackend
            from swsearch.cluster.opening import check_is_database, engine_request, open_pool

            wanted = engine_request(asked.engine, asked.gpu_memory, asked.device, "--cluster")
            check_is_database(subjects)
            made = pool = open_pool(run.cluster, wanted, threads, run.task_timeout)
            backend_of = partial(ClusterBackend, pool=pool)
        with made, SearchResults(found, subjects, options, backend_of, threads=threads, origin=origin) as results:
            yield results

    def check_spared(self, outputs: Sequence[str | None], results: SearchResults, *read: str | None) -> None:
        """Raise `InputError` if an output is a file that this search reads."""
        from swsearch.output_files import check_spared

        search = results.search
        volumes = [each.path for each in search.backend.database.volumes]
        kept = [] if search.checkpoint is None else map(str, search.checkpoint.folder.iterdir())
        check_spared(outputs, [self.queries, *self.subjects, *volumes, *kept, self.run.config, *read])

    @contextmanager
    def progress(self, results: SearchResults, written: Callable[[], str] = lambda: "") -> Iterator[SearchProgress]:
        """Say what will run, show how far it is, and say what was done and, beside reports, written."""
        from swsearch.cli.progress import SearchProgress, display_of

        search, messages = results.search, self.messages
        _say_beforehand(search, messages)
        display = display_of(messages.progress, messages.quiet)
        with SearchProgress(display, search.cells, len(search.queries)) as done:
            search.progress, search.restored, search.forgone = done.advance, done.restored, done.forgone
            yield done
        for text in _fit_notes(results, messages.quiet):
            say(text)
        if messages.quiet:
            return
        for text in (results.iterated.describe() if search.options.iterations > 1 else "", written()):
            if text:
                say(text)
        run, seconds = results.run, time.monotonic() - self._begun
        size = size_of(run.database_subjects, run.database_residues, run.database_code is not None)
        engine = "" if run.execution is None else run.execution.engine
        say(summary(len(search.queries), size, search.cells - done.spared_cells, seconds, engine))


def _say_beforehand(search: Search, messages: MessageTable) -> None:
    """Say what will run; allocates, so that what does not fit is told before any output."""
    from swsearch.statistics.choice import why_none

    options, backend, subjects = search.options, search.backend, search.subjects
    if messages.verbose:
        if backend.fallback:
            say(backend.fallback)
        say(f"engine {backend.description}; {options.scoring.describe()}; {options.mode} alignment")
        say(f"{subjects.name}: {size_of(subjects.n_places, subjects.n_residues)}")
    note = search.session.note
    if messages.verbose and note:
        say(note)
    if search.checkpoint is not None and search.checkpoint.n_kept and not messages.quiet:
        kept = f"{search.checkpoint.n_kept // options.n_frames:,} of {len(search.queries):,}"
        state = "go on from where they were" if options.makes_profiles else "are done and not searched again"
        say(f"checkpoint {search.checkpoint.folder}: {kept} queries {state}")
    if search.criteria.method is None:
        say(why_none())


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
    return f"{n_queries} {plural} x {size}, {seconds:.2f} s, {rate:.2f} GCUPS, engine {engine}"
