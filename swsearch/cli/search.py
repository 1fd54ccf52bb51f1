"""``swsearch search``: parse, call, say what was done."""

from __future__ import annotations

import time
from typing import Any

from swsearch.cli.console import checked_threads, say
from swsearch.cli.parameters import takes
from swsearch.cli.searching import (
    QueriesArgument,
    SubjectsArgument,
    backend_for,
    origin_of,
    paths_of,
    read_queries,
    say_afterwards,
    say_beforehand,
    url_among,
)
from swsearch.cli.tables import EngineTable, MessageTable, OutputTable, RunTable
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.options.row import rows_of
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable

SEARCH_TABLES = (QueryTable, SearchTable, OutputTable, MessageTable, EngineTable, RunTable)
"""The options of ``swsearch search``."""


@takes(*SEARCH_TABLES)
def search_command(queries: QueriesArgument, subjects: SubjectsArgument, **given: Any) -> None:
    """Find the best hits of each query in a protein database, by exact Smith-Waterman alignment."""
    url, engine, run = url_among(subjects), EngineTable.of(given), RunTable.of(given)
    written, messages = OutputTable.of(given), MessageTable.of(given)
    if url is None and run.cluster is None and engine.engine in ("auto", "gpu"):
        warm_up_gpu(engine.device)
    from swsearch.cli.progress import SearchProgress, display_of
    from swsearch.inputs import check_subject_inputs
    from swsearch.output_files import check_spared
    from swsearch.pipeline.checkpoint import checkpoint_folder
    from swsearch.pipeline.options import SearchOptions
    from swsearch.pipeline.search_results import SearchResults
    from swsearch.report.outputs import keep_what_is_shown, pair_outputs, with_config, write_reports
    from swsearch.report.saved import check_places, check_saved, saved, saved_files

    begun = time.monotonic()
    file_rows = [row for row in rows_of(SearchTable).values() if row.kind.is_file]
    files = {row.name: given[row.name] for row in file_rows if isinstance(given.get(row.name), str)}
    origin = origin_of(queries, files)
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
        from swsearch.cli.remote import check_remote_options, run_remote_search

        check_remote_options(url, engine, run)
        run_remote_search(url, origin, given["query_format"], options, outputs, written, run, messages)
        return
    check_subject_inputs(queries, subjects)
    folder = None if run.checkpoint is None else checkpoint_folder(run.checkpoint)
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
