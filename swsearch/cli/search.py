"""``swsearch search``: parse, call, say what was done."""

from __future__ import annotations

from typing import Any

from swsearch.cli.console import say
from swsearch.cli.parameters import takes
from swsearch.cli.searching import QueriesArgument, SearchCommand, SubjectsArgument, origin_of
from swsearch.cli.tables import EngineTable, MessageTable, OutputTable, RunTable
from swsearch.options.row import rows_of
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable

SEARCH_TABLES = (QueryTable, SearchTable, OutputTable, MessageTable, EngineTable, RunTable)
"""The options of ``swsearch search``."""


@takes(*SEARCH_TABLES)
def search_command(queries: QueriesArgument, subjects: SubjectsArgument, **given: Any) -> None:
    """Find the best hits of each query in a protein database, by exact Smith-Waterman alignment."""
    written, command = OutputTable.of(given), SearchCommand(queries, subjects, given)
    from swsearch.pipeline.checkpoint import checkpoint_folder
    from swsearch.pipeline.options import SearchOptions
    from swsearch.report.outputs import keep_what_is_shown, pair_outputs, with_config, write_reports
    from swsearch.report.saved import check_places, check_saved, saved, saved_files

    file_rows = [row for row in rows_of(SearchTable).values() if row.kind.is_file]
    files = {row.name: given[row.name] for row in file_rows if isinstance(given.get(row.name), str)}
    origin = origin_of(queries, files)
    # report errors now rather than after the search
    outputs = with_config(pair_outputs(written.output, written.outfmt, written.header), written.save_config)
    places, paths = (written.save_profile, written.save_msa), [each.path for each in outputs]
    options = SearchOptions.of({**given, "keep_next": places != (None, None)})
    for doubt in options.filters.doubts():
        name, _, rest = doubt.partition(" ")
        say(f"warning: --{name.replace('_', '-')} {rest}")
    check_places(*places, paths)
    if command.url is not None:
        from swsearch.cli.remote import run_remote_search

        run_remote_search(command, origin, options, outputs, written)
        return
    checkpoint = command.run.checkpoint
    folder = None if checkpoint is None else checkpoint_folder(checkpoint)
    found, options = command.read_queries(options)
    check_saved(written.save_profile, found)
    with command.results(found, options, origin) as results:
        keep_what_is_shown(results, outputs)  # before the search is asked for, which plans its memory by it
        if folder is not None:
            results.keep_in(folder)
        identifiers = [query.identifier for query in found]
        command.check_spared([*paths, *saved_files(*places, identifiers)], results, *files.values())
        with command.progress(results) as done, saved(results, identifiers, *places):
            write_reports(results, outputs, done.written)
