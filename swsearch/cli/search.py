"""``swsearch search``: parse, call, say what was done."""

from __future__ import annotations

import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli.console import checked_threads, command, say
from swsearch.cli.parameters import command_rows, files_of, takes
from swsearch.cli.search_notes import say_afterwards, say_of_queries
from swsearch.cli.tables import EngineTable, MessageTable, OutputTable, RunTable
from swsearch.cli.urls import url_among
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable

if TYPE_CHECKING:
    from swsearch.inputs import Query
    from swsearch.options.words import QueryFormat
    from swsearch.pipeline.options import SearchOptions
    from swsearch.pipeline.search import Search

SEARCH_ROWS = command_rows(QueryTable, SearchTable, OutputTable, MessageTable, EngineTable, RunTable)
"""The options of ``swsearch search``."""

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


@command
@takes(SEARCH_ROWS)
def search_command(queries: QueriesArgument, subjects: SubjectsArgument, **given: Any) -> None:
    """Find the best hits of each query in a protein database, by exact Smith-Waterman alignment."""
    url, engine, run = url_among(subjects), EngineTable.of(given), RunTable.of(given)
    written, messages = OutputTable.of(given), MessageTable.of(given)
    if url is None and run.cluster is None and engine.engine in ("auto", "gpu"):
        warm_up_gpu(engine.device)
    from swsearch.cli.clusters import backend_for
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import SearchProgress
    from swsearch.inputs import check_subject_inputs
    from swsearch.output_files import check_spared
    from swsearch.pipeline.options import SearchOptions
    from swsearch.pipeline.search_results import SearchResults
    from swsearch.report.outputs import keep_what_is_shown, pair_outputs, with_config, write_reports
    from swsearch.report.saved import check_places, check_saved, saved, saved_files
    from swsearch.run_info import Origin

    begun = time.monotonic()
    files = files_of(SEARCH_ROWS.values(), given)
    origin = Origin(queries, shlex.join(["swsearch", *sys.argv[1:]]), datetime.now(UTC), files=files)
    read = [queries, *files.values(), run.config]
    # report errors now rather than after the search
    outputs = with_config(pair_outputs(written.output, written.outfmt, written.header), written.save_config)
    places = written.save_profile, written.save_msa
    options = SearchOptions.of({**given, "keep_next": places != (None, None)})
    for doubt in options.filters.doubts():
        name, _, rest = doubt.partition(" ")
        say(f"swsearch: warning: --{name.replace('_', '-')} {rest}")
    check_places(*places, [each.path for each in outputs])
    if url is not None:
        from swsearch.cli.remote import SearchAsked, check_there, search_there

        more = {"cluster": run.cluster, "task_timeout": run.task_timeout, "checkpoint": run.checkpoint}
        check_there(url, engine.engine, engine.device, engine.gpu_memory, more)
        threads = checked_threads(engine.threads, messages.quiet)
        search_there(SearchAsked(
            url, origin, given["query_format"], options, outputs, *places, read, threads, messages.progress,
            messages.quiet, messages.verbose,
        ))  # fmt: skip
        return
    check_subject_inputs(queries, subjects)
    folder = None if run.checkpoint is None else _folder(run.checkpoint)
    threads = checked_threads(engine.threads, messages.quiet)
    found, options = read_queries(queries, options, given["query_format"], messages.quiet)
    check_saved(written.save_profile, found)
    asked_for = paths_of(subjects)
    made, backend_of = backend_for(engine, run, asked_for, threads, messages, options.cpu_only)
    with made, SearchResults(found, asked_for, options, backend_of, threads=threads, origin=origin) as results:
        keep_what_is_shown(results, outputs)  # before the search is asked for, which plans its memory by it
        if folder is not None:
            results.keep_in(folder)
        search = results.search
        read += [*subjects, *(each.path for each in search.backend.database.volumes)]
        read += [] if folder is None else map(str, folder.iterdir())
        identifiers = [query.identifier for query in found]
        check_spared([*(each.path for each in outputs), *saved_files(*places, identifiers)], read)
        say_beforehand(search, messages)
        with SearchProgress(display_of(messages.progress, messages.quiet), search.cells, len(found)) as done:
            search.progress, search.restored, search.forgone = done.advance, done.restored, done.forgone
            with saved(results, identifiers, *places):
                write_reports(results, outputs, done.written)
        say_afterwards(results, time.monotonic() - begun, done.spared_cells, messages.quiet)


def paths_of(subjects: list[str]) -> Path | list[Path]:
    """Return what stands for the subjects: one file, or several that are searched as one."""
    paths = [Path(each) for each in subjects]
    return paths if len(paths) > 1 else paths[0]


def _folder(checkpoint: str) -> Path:
    from swsearch.pipeline.checkpoint import checkpoint_folder

    return checkpoint_folder(checkpoint)


def read_queries(
    path: str, options: SearchOptions, query_format: QueryFormat, quiet: bool
) -> tuple[list[Query], SearchOptions]:
    """Read the queries; return the options with the gap costs of profiles among them."""
    from swsearch.pipeline.search_queries import search_queries

    queries = search_queries(Path(path), options, query_format, argument="")
    say_of_queries(path, queries, quiet)
    return queries, options.with_costs_of(queries)


def say_beforehand(search: Search, messages: MessageTable) -> None:
    """Say what will run; allocates, so that what does not fit is told before any output."""
    from swsearch.statistics.choice import why_none

    options, backend, subjects = search.options, search.backend, search.subjects
    if messages.verbose:
        if backend.fallback:
            say(f"swsearch: {backend.fallback}")
        say(f"swsearch: engine {backend.description}; {options.scoring.describe()}; {options.mode} alignment")
        say(f"swsearch: {subjects.name}: {subjects.n_places:,} subjects, {subjects.n_residues:,} residues")
    note = search.session.note
    if messages.verbose and note:
        say(f"swsearch: {note}")
    if search.checkpoint is not None and search.checkpoint.n_kept and not messages.quiet:
        kept = f"{search.checkpoint.n_kept // options.n_frames:,} of {len(search.queries):,}"
        state = "go on from where they were" if options.makes_profiles else "are done and not searched again"
        say(f"swsearch: checkpoint {search.checkpoint.folder}: {kept} queries {state}")
    if search.criteria.method is None:
        say(f"swsearch: {why_none()}")
