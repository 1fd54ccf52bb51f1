"""``swsearch search``: a search here, on a cluster or on a server."""

from __future__ import annotations

import fcntl
import re
import shlex
import shutil
import sys
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli.console import limit_threads, print_message, size_of
from swsearch.cli.main import warm_up_gpu
from swsearch.cli.parameters import takes
from swsearch.cli.progress import SearchProgress, make_display
from swsearch.cli.tables import EngineTable, MessageTable, OutputTable, RunTable
from swsearch.client.urls import is_url, server_url
from swsearch.errors import InputError, OptionError, ServerError, format_count
from swsearch.options.row import rows_of
from swsearch.output_files import check_not_an_input, checkpoint_folder, open_outputs
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable

if TYPE_CHECKING:
    from swsearch.client.job import ServerJob
    from swsearch.db import Database
    from swsearch.inputs import Query
    from swsearch.pipeline.backend import Backend
    from swsearch.pipeline.options import SearchOptions
    from swsearch.pipeline.search import Search
    from swsearch.pipeline.search_results import SearchResults
    from swsearch.report.outputs import Output
    from swsearch.results import SearchResult
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


def server_url_in(subjects: Sequence[str]) -> str | None:
    """Return the server's address among the subjects; None if all are files.

    It raises `InputError` for an address beside other subjects, and for an invalid one.
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
        self.engine, self.run, self.messages = (
            EngineTable.from_values(given),
            RunTable.from_values(given),
            MessageTable.from_values(given),
        )
        self.url = server_url_in(subjects)
        """Address of the server that is to search instead."""
        self._kernel_seconds: Callable[[], float | None] = lambda: None
        if self.url is None and self.run.cluster is None and self.engine.engine in ("auto", "gpu"):
            warm_up_gpu(self.engine.device)

    def read_queries(self, options: SearchOptions) -> tuple[list[Query], SearchOptions]:
        """Read the queries; return the options with the gap costs of profiles among them."""
        from swsearch.inputs import check_subject_inputs
        from swsearch.pipeline.search_queries import query_warnings, search_queries

        self._begun = time.monotonic()
        check_subject_inputs(self.queries, self.subjects)
        self._threads = limit_threads(self.engine.threads, self.messages.quiet)
        queries = search_queries(Path(self.queries), options, self.query_format, argument="")
        if not self.messages.quiet and (
            profiles := [query.profile for query in queries if query.profile is not None]
        ):
            more = f", and {len(profiles) - 1:,} more profiles" if len(profiles) > 1 else ""
            print_message(f"{profiles[0].identifier}: {profiles[0].source or 'a profile'}{more}")
        for note in query_warnings(self.queries, queries):
            print_message(f"warning: {note}")
        return queries, options.with_profile_scoring(queries)

    @contextmanager
    def results(
        self, queries: list[Query], options: SearchOptions, origin: Origin, one_by_one: bool = False
    ) -> Iterator[SearchResults]:
        """Open what searches, and the results of a search that has not begun; ``one_by_one`` as of `LocalBackend`."""
        from swsearch.pipeline.search_results import SearchResults

        paths, engine_options, run, threads = (
            [Path(each) for each in self.subjects],
            self.engine,
            self.run,
            self._threads,
        )
        subjects = paths if len(paths) > 1 else paths[0]
        backend: AbstractContextManager[Any]
        backend_of: Callable[[Database], Backend]
        if run.cluster is None:
            if run.task_timeout is not None:
                raise OptionError("task_timeout", run.task_timeout, "none without --cluster", "leave it out")
            from swsearch.backends.local import LocalBackend
            from swsearch.engines import create_engine

            backend = engine = create_engine(
                engine_options.engine, threads=threads, device=engine_options.device,
                gpu_memory=engine_options.gpu_memory,
                on_message=None if self.messages.quiet or self.messages.verbose else print_message,
                cpu_only=options.cpu_only,
            )  # fmt: skip
            self._kernel_seconds = lambda: engine.kernel_seconds
            backend_of = partial(LocalBackend, engine=engine, threads=threads, one_by_one=one_by_one)
        else:
            from swsearch.cluster.backend import ClusterBackend
            from swsearch.cluster.opening import check_is_database, engine_request, open_pool

            request = engine_request(
                engine_options.engine, engine_options.gpu_memory, engine_options.device, "--cluster"
            )
            check_is_database(subjects)
            backend = pool = open_pool(run.cluster, request, threads, run.task_timeout)
            backend_of = partial(ClusterBackend, pool=pool)
        with (
            backend,
            SearchResults(queries, subjects, options, backend_of, threads=threads, origin=origin) as results,
        ):
            results.take_profiles_by(self._take_all)
            yield results

    def _take_all(self, results: SearchResults) -> list[SearchResult]:
        """Take the results of another database, with a plan, progress and a summary of their own."""
        with self.progress(results):
            return list(results)

    def check_not_an_input(self, outputs: Sequence[str | None], results: SearchResults, *read: str | None) -> None:
        """Raise `InputError` if an output is a file that this search reads."""
        search = results.search
        volumes = [each.path for each in search.backend.database.volumes]
        stored = [] if search.checkpoint is None else map(str, search.checkpoint.folder.iterdir())
        check_not_an_input(outputs, [self.queries, *self.subjects, *volumes, *stored, self.run.config, *read])

    @contextmanager
    def progress(self, results: SearchResults, written: Callable[[], str] = lambda: "") -> Iterator[SearchProgress]:
        """Print the plan of a search, show its progress, and print its summary."""
        search, messages = results.search, self.messages
        _print_plan(search, messages)
        display, counts = make_display(messages.progress, messages.quiet), list[int]()
        results.on_result(lambda result: counts.append(len(result)))
        with SearchProgress(display, search.cells, len(search.queries)) as done:
            search.progress, search.restored, search.forgone = done.advance, done.restore, done.skip
            yield done
        if messages.verbose:
            for text in search.describe_times():
                print_message(text)
            if (seconds := self._kernel_seconds()) is not None:
                print_message(f"kernels: {seconds:.2f} s")
        for text in _statistics_messages(results, messages.quiet):
            print_message(text)
        if messages.quiet:
            return
        for text in (results.iteration_counts.describe() if search.options.own_iterations > 1 else "", written()):
            if text:
                print_message(text)
        run, seconds = results.run, time.monotonic() - self._begun
        size = size_of(run.database_subjects, run.database_residues, run.database_genetic_code is not None)
        engine = "" if run.execution is None else run.execution.engine
        cells = search.cells - done.skipped_cells
        print_message(summary(len(search.queries), size, sum(counts), cells, seconds, engine))


def _print_plan(search: Search, messages: MessageTable) -> None:
    """Print the plan of a search, and allocate its memory, so that a lack of memory is reported before any output."""
    from swsearch.statistics.methods import no_evalue_message

    options, backend, subjects = search.options, search.backend, search.subjects
    if messages.verbose:
        if backend.fallback:
            print_message(backend.fallback)
        print_message(f"engine {backend.description}; {options.scoring.describe()}; {options.mode} alignment")
        print_message(f"{subjects.name}: {size_of(subjects.n_places, subjects.n_residues)}")
    note = search.session.note
    if messages.verbose and note:
        print_message(note)
    if search.checkpoint is not None and search.checkpoint.n_finished and not messages.quiet:
        finished = f"{search.checkpoint.n_finished // options.n_frames:,} of {len(search.queries):,}"
        state = "go on from where they were" if options.makes_profiles else "are done and not searched again"
        print_message(f"checkpoint {search.checkpoint.folder}: {finished} queries {state}")
    if search.criteria.statistics_method is None:
        print_message(no_evalue_message())


def _statistics_messages(results: SearchResults, quiet: bool) -> Iterator[str]:
    """Yield the source of the E-values, and, even if quiet, queries without E-values and doubtful hits."""
    from swsearch.report.headers import statistics_name
    from swsearch.statistics.null_model import FitSettings

    method, reasons = results.search.criteria.statistics_method, results.no_evalue_reasons
    if not isinstance(method, FitSettings):
        if not quiet and method is not None and results.run.program == "tblastx":
            yield f"E-values: {statistics_name(method, 'tblastx')}"
        return
    n_queries = len(results.search.queries)
    if len(reasons) < n_queries and not quiet:
        yield f"E-values: {method.name}"
    if reasons:
        yield f"{len(reasons)} of {n_queries} queries: {reasons[0]}"
    yield from results.warnings


def summary(n_queries: int, size: str, n_hits: int, cells: int, seconds: float, engine: str) -> str:
    """Return a line that says what was searched and found, and the speed of the cells that were computed."""
    rate = cells / max(seconds, 1e-9) / 1e9
    queries, hits = format_count(n_queries, "query", "queries"), format_count(n_hits, "hit")
    return f"{queries} x {size}: {hits}, {seconds:.2f} s, {rate:.2f} GCUPS, engine {engine}"


SEARCH_TABLES = (QueryTable, SearchTable, OutputTable, MessageTable, EngineTable, RunTable)
"""The options of ``swsearch search``."""


@takes(*SEARCH_TABLES)
def search_command(queries: QueriesArgument, subjects: SubjectsArgument, **given: Any) -> None:
    """Find the best hits of each query in a protein database, by exact Smith-Waterman alignment."""
    written, command = OutputTable.from_values(given), SearchCommand(queries, subjects, given)
    from swsearch.pipeline.options import SearchOptions
    from swsearch.report.outputs import (
        keep_distribution_if_shown,
        match_outputs_to_formats,
        with_config,
        write_reports,
    )
    from swsearch.report.profile_output import check_places, check_profiles, save_profiles, saved_files

    file_rows = [row for row in rows_of(SearchTable).values() if row.kind.is_file]
    files = {row.name: given[row.name] for row in file_rows if isinstance(given.get(row.name), str)}
    origin = origin_of(queries, files)
    # report errors now rather than after the search
    outputs = with_config(
        match_outputs_to_formats(written.output, written.outfmt, written.header), written.save_config
    )
    places, paths = (written.save_profile, written.save_msa), [each.path for each in outputs]
    options = SearchOptions.from_values({**given, "keep_profiles": places != (None, None)})
    for warning in options.filters.warnings():
        name, _, rest = warning.partition(" ")
        print_message(f"warning: --{name.replace('_', '-')} {rest}")
    check_places(*places, paths)
    if command.url is not None:
        run_remote_search(command, origin, options, outputs, written)
        return
    checkpoint = command.run.checkpoint
    folder = None if checkpoint is None else checkpoint_folder(checkpoint)
    queries_read, options = command.read_queries(options)
    check_profiles(written.save_profile, queries_read)
    with command.results(queries_read, options, origin) as results:
        keep_distribution_if_shown(results, outputs)  # before the search is asked for, which plans its memory by it
        if folder is not None:
            results.use_checkpoint(folder)
        identifiers = [query.identifier for query in queries_read]
        command.check_not_an_input([*paths, *saved_files(*places, identifiers)], results, *files.values())
        with command.progress(results) as done, save_profiles(results, identifiers, *places):
            write_reports(results, outputs, done.add_written)


def _check_options(url: str, engine: EngineTable, run: RunTable, options: SearchOptions) -> None:
    """Raise `InputError` for an option that says how a search runs on this machine."""
    refused = {
        "engine": (None if engine.engine == "auto" else engine.engine, "the server has its own engine"),
        "threads": (engine.threads, "the server has its own threads"),
        "device": (engine.device, "the server has its own devices"),
        "gpu-memory": (engine.gpu_memory, "the server decides about its memory"),
        "cluster": (run.cluster, "the server searches with its own machine"),
        "task-timeout": (run.task_timeout, "the server searches with its own machine"),
        "profile-from": (options.profile_from, "the server reads no files of this machine"),
    }
    for name, (value, why) in refused.items():
        if value is not None:
            raise InputError(f"got --{name} {value} with {url}, expected none: {why}; leave it out")


def run_remote_search(
    command: SearchCommand,
    origin: Origin,
    options: SearchOptions,
    outputs: Sequence[Output],
    report_written: OutputTable,
) -> None:
    """Search on a server, and download the outputs."""
    from swsearch.client.client import Client
    from swsearch.client.search_request import make_request
    from swsearch.report.outputs import saved_formats

    started, url, run, messages = time.monotonic(), str(command.url), command.run, command.messages
    _check_options(url, command.engine, run, options)
    if not origin.queries.strip():
        raise InputError("queries: the name is empty, expected a file, or - for stdin")
    read = [origin.queries, *origin.files.values(), run.config]
    saved = [each for each in (report_written.save_profile, report_written.save_msa) if each is not None]
    paths = [*(each.path for each in outputs), *saved]
    formats = [
        *(each.outfmt for each in outputs),
        *saved_formats(report_written.save_profile, report_written.save_msa),
    ]
    check_not_an_input(paths, read)
    warnings = options.filters.warnings()
    with (
        Client(url, notice=None if messages.quiet else print_message) as client,
        _submission_key(run.checkpoint) as key,
    ):
        database = client.database()
        size = size_of(database.get("n_subjects", 0), database.get("n_residues", 0))
        engine = database.get("engine", "unknown")
        if messages.verbose:
            print_message(f"{client.url}: {database['name']}: {size}; engine {engine}")
        request = make_request(
            database["name"], Path(origin.queries), options, origin, query_format=command.query_format,
            outputs=formats, header=report_written.header,
        )  # fmt: skip
        job = client.submit_request(request, "" if key is None else key.read_text())
        try:
            if job.data.get("outputs") != formats:
                raise ServerError(f"{client.url}: accepted other outputs; install the same version on both sides")
            _download(job, formats, paths, read, messages)
        except BaseException:
            if key is None or job.data["state"] in ("failed", "cancelled"):
                _end(job, key)
            else:
                print_message(f"{client.url}: job {job.identifier} continues; run the same command to resume")
            raise
        _end(job, key)
        for note in job.data.get("notes", ()):
            if note not in warnings:
                print_message(note)
        if not messages.quiet:
            n_queries, n_hits, cells = (job.data.get(name) or 0 for name in ("n_queries", "n_hits", "cells"))
            done = summary(n_queries, size, n_hits, cells, time.monotonic() - started, engine)
            print_message(f"{done}, at {client.url}/{database['name']}")


@contextmanager
def _submission_key(checkpoint: str | None) -> Iterator[Path | None]:
    """Lock the folder of a checkpoint, and yield the file of its key, created on first use; None without a folder."""
    if checkpoint is None:
        yield None
        return
    path = checkpoint_folder(checkpoint) / "server-job"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            if not re.fullmatch("[0-9a-f]{32}", file.read(33)):
                file.truncate(0)
                file.write(uuid.uuid4().hex)
                file.flush()
            yield path
    except BlockingIOError:
        raise InputError(f"checkpoint: {checkpoint} is in use by another command; choose another folder") from None
    except UnicodeDecodeError:
        raise InputError(f"checkpoint: {path} is damaged; remove it") from None


def _end(job: ServerJob, key: Path | None) -> None:
    """Remove a job from the server, and delete its key."""
    job.delete_quietly()
    if key is not None:
        key.unlink(missing_ok=True)


def _download(
    job: ServerJob, formats: Sequence[str], paths: Sequence[str | None], read: Sequence[str | None],
    messages: MessageTable,
) -> None:  # fmt: skip
    """Wait for a job, and store its outputs, which appear together; the files of a folder follow."""
    is_folder = "msa a3m" in formats  # it is the last
    files = list(zip(formats, paths, strict=True))[: -1 if is_folder else None]
    n_queries = job.data.get("n_queries", 0)
    with SearchProgress(make_display(messages.progress, messages.quiet), job.data.get("cells", 0), n_queries) as done:
        job.wait(progress=done.advance)
        with TemporaryFile() as archive, open_outputs([(path, True) for _, path in files]) as streams:
            for (outfmt, _), stream in zip(files, streams, strict=True):
                stream.writelines(job.download(outfmt))
            if is_folder:
                archive.writelines(job.download("msa a3m"))
                _unpack(archive, Path(str(paths[-1])), read)
        done.add_written(n_queries)


def _unpack(archive: IO[bytes], folder: Path, read: Sequence[str | None]) -> None:
    """Store the A3M files of a zip archive in a folder; each appears when it is complete."""
    from swsearch.report.profile_output import is_file_name, make_alignment_folder

    make_alignment_folder(folder, "--save-msa")
    try:
        with zipfile.ZipFile(archive) as opened:
            names = opened.namelist()
            if not all(is_file_name(name, ".a3m") for name in names):
                raise ServerError("save-msa: the server sent other files than alignments")
            check_not_an_input([str(folder / name) for name in names], read)
            for name in names:
                with open_outputs([(str(folder / name), True)], sweep=False) as (file,), opened.open(name) as source:
                    shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ServerError(f"save-msa: the server sent a damaged archive ({error}); try again") from None
