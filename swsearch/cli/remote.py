"""``swsearch search`` of a database on a server: the same options, and reports with the same bytes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from swsearch.cli.console import say
from swsearch.cli.displays import display_of
from swsearch.cli.progress import SearchProgress
from swsearch.cli.search_notes import say_afterwards, say_of_queries
from swsearch.errors import InputError
from swsearch.options.words import ProgressKind

if TYPE_CHECKING:
    from swsearch.options.words import QueryFormat
    from swsearch.pipeline.options import SearchOptions
    from swsearch.remote.client import Client
    from swsearch.remote.server_job import SearchToSend
    from swsearch.report.outputs import Output
    from swsearch.run_info import Origin


@dataclass(frozen=True)
class SearchAsked:
    """What the command line asks a server for; what can be checked here was checked.

    Parameters
    ----------
    url : str
        Of the server, or of a database there.
    origin : Origin
        With the name of the query file.
    query_format : str
        What that holds.
    options : SearchOptions
        What is asked for.
    outputs : list of Output
        Reports.
    save_profile, save_msa : str or None
        What else is written.
    read : list of str or None
        Files that are read, and so must not be written.
    threads : int or None
        For alignments, here.
    progress : str
        How that is shown.
    quiet, verbose : bool
        How much is said.
    """

    url: str
    origin: Origin
    query_format: QueryFormat
    options: SearchOptions
    outputs: Sequence[Output]
    save_profile: str | None
    save_msa: str | None
    read: Sequence[str | None]
    threads: int | None
    progress: ProgressKind
    quiet: bool
    verbose: bool


def check_there(url: str, engine: str, device: Any, gpu_memory: Any, more: Mapping[str, Any]) -> None:
    """Refuse options that say how a search runs here.

    Parameters
    ----------
    url : str
        Of the server.
    engine, device, gpu_memory
        As they were given.
    more : dict of str to object
        Other options of that kind, by name.

    Raises
    ------
    InputError
        It names the option.
    """
    there = {
        "engine": (None if engine == "auto" else engine, "the server has its own engine"),
        "device": (device, "the server has its own devices"),
        "gpu-memory": (gpu_memory, "the server decides about its memory"),
        "cluster": (more["cluster"], "the server searches with its own machine"),
        "task-timeout": (more["task_timeout"], "the server searches with its own machine"),
        "checkpoint": (more["checkpoint"], "the server keeps what is done, and goes on after a restart"),
    }
    for name, (value, why) in there.items():
        if value is not None:
            raise InputError(f"got --{name} {value} with {url}, expected none: {why}; leave it out")


def search_there(asked: SearchAsked) -> None:
    """Have a server search, and write the reports here.

    Raises
    ------
    SwsearchError
        If something cannot be read, written or searched.
    """
    from pathlib import Path

    from swsearch.remote.asking import checksums_here, read_to_send
    from swsearch.remote.client import Client
    from swsearch.remote.server_job import SearchToSend

    begun, path = time.monotonic(), asked.origin.queries
    if not path.strip():
        raise InputError("queries: the name is empty, expected a file, or - for stdin")
    with Client(asked.url) as client:
        queries = read_to_send(Path(path), asked.options, asked.query_format)
        say_of_queries(path, queries.found, asked.quiet)
        origin = replace(asked.origin, checksums=checksums_here(path, queries))
        _run(asked, client, SearchToSend(queries, asked.options, origin), begun)


def _run(asked: SearchAsked, client: Client, search: SearchToSend, begun: float) -> None:
    from swsearch.output_files import check_spared
    from swsearch.report.outputs import check_queries, keep_what_is_shown, write_reports
    from swsearch.report.saved import check_saved, saved, saved_files
    from swsearch.statistics.choice import why_none

    queries = search.queries.found
    check_queries(len(queries), asked.outputs)
    check_saved(asked.save_profile, queries)
    identifiers = [query.identifier for query in queries]
    written = saved_files(asked.save_profile, asked.save_msa, identifiers)
    check_spared([*(each.path for each in asked.outputs), *written], asked.read)
    database = client.database()
    if asked.verbose:
        say(f"swsearch: {client.url}: {database['name']}: {database.get('n_subjects', 0):,} subjects, "
            f"{database.get('n_residues', 0):,} residues; engine {database.get('engine', 'unknown')}")  # fmt: skip
    cells = asked.options.iterations * sum(len(query.codes) for query in queries) * database.get("n_residues", 0)
    with SearchProgress(display_of(asked.progress, asked.quiet), cells, len(queries)) as done:
        notice = None if asked.quiet else lambda text: say(f"swsearch: {text}")
        counted = _Counted(done)
        results = client.results_of(
            search, database["name"], threads=asked.threads, progress=counted.add, notice=notice
        )
        with results:
            keep_what_is_shown(results, asked.outputs)
            criteria = results.search.criteria  # waits for the server
            done.forgone(max(cells - counted.cells, 0))
            if criteria.method is None:
                say(f"swsearch: {why_none()}")
            with saved(results, identifiers, asked.save_profile, asked.save_msa):
                write_reports(results, asked.outputs, done.written)
    where = f"{client.url}/{database['name']}"
    say_afterwards(results, time.monotonic() - begun, done.spared_cells, asked.quiet, where)


class _Counted:
    """Passes on cells, and counts them."""

    def __init__(self, shown: SearchProgress) -> None:
        self._shown = shown
        self.cells = 0

    def add(self, cells: int) -> None:
        """Take note that cells were computed."""
        self.cells += cells
        self._shown.advance(cells)
