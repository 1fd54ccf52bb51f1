"""How one search runs to its end: with the engine that is there, and once more if that was made anew meanwhile."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from swsearch.errors import (
    DatabaseError,
    EngineError,
    InputError,
    MemoryLimitError,
    OtherCheckpointError,
    OutputError,
)
from swsearch.pipeline.search import Search
from swsearch.pipeline.search_results import SearchResults
from swsearch.remote.wire import SearchRequest
from swsearch.server.places import Lease, Log, ServedPlace, begin_search
from swsearch.server.problems import ServerProblem, problem_of
from swsearch.server.runner import Running
from swsearch.server.store import KEPT, disk_full, is_full

MOST_BEGUN = 5
"""Engines that a search is begun with, each of which another search brings down, before it is given up."""

MOST_NOTES = 20
"""Notes of a job that are kept."""

Outcome = TypeVar("Outcome")


def with_engine(place: ServedPlace, work: Callable[[Lease], Outcome]) -> Outcome:
    """Do something with a place's engine; if that fails, have it made anew.

    What failed because another search brought the engine down is done again with the next one.

    Raises
    ------
    SwsearchError
        As the work does.
    """
    for _ in range(MOST_BEGUN):
        lease = place.lease()
        try:
            found = work(lease)
        except Exception as error:
            if isinstance(error, (InputError, ServerProblem)) or place.is_current(lease):
                note_failure(place, lease, error)
                raise
        else:
            place.worked(lease)
            return found
    raise EngineError(f"the engine failed {MOST_BEGUN} times under other searches; submit this one again")


def note_failure(place: ServedPlace, lease: Lease, error: Exception) -> None:
    """Let a place know what a search failed with: its engine may be of no more use, or its file damaged."""
    if isinstance(error, (InputError, ServerProblem)) or not place.is_current(lease):
        return
    if isinstance(error, DatabaseError):
        place.damaged(str(error))
    elif isinstance(error, (EngineError, MemoryLimitError)) or type(error).__module__.startswith("pycuda"):
        # what is too large for the memory says nothing of the engine, however often it is asked for
        place.reopen(lease, str(error) or type(error).__name__, counts=not isinstance(error, MemoryLimitError))


def run_job(place: ServedPlace, request: SearchRequest, running: Running, folder: Path) -> tuple[int, list[str]]:
    """Search, and keep what is found in the job's folder; results are dropped as they come.

    Returns
    -------
    n_hits : int
        Of all queries.
    notes : list of str
        What is to be told of it.

    Raises
    ------
    SwsearchError
        If the search fails.
    Stopped
        If it was stopped.
    """
    queries, options = request.read()

    def work(lease: Lease) -> tuple[int, list[str]]:
        # how the whole database scores is kept for the report of html, whatever report is asked for first
        results = begin_search(
            lease.backend, queries, options,
            distribution=True, progress=running.advance, origin=place.origin(request),
        )  # fmt: skip
        with results:
            search = _kept_search(results, folder / KEPT)
            search.restored = search.forgone = running.advance
            running.cells, running.cells_done = search.cells, 0
            running.holds(results)
            n_hits = sum(len(result.hits) for batch in results.batches(several=False) for result in batch)
            why = results.unfitted
            unfitted = [f"{len(why):,} of {len(search.queries):,} queries: {why[0]}"] if why else []
            return n_hits, [*unfitted, *results.doubts][:MOST_NOTES]

    return with_engine(place, work)


def _kept_search(results: SearchResults, checkpoint: Path) -> Search:
    """Begin a search, from what was kept of it before the server was started again if that can be used."""
    results.keep_in(checkpoint)
    try:
        return results.search
    except OtherCheckpointError:  # of another version of the program, or of a database that was replaced since
        shutil.rmtree(checkpoint)
        return results.search


def why_stopped(running: Running) -> ServerProblem:
    """Return what is told of a search that was stopped."""
    if running.why == "time":
        return ServerProblem(
            "too_large",
            f"the search took longer than {running.seconds:,.0f} s, this server's limit; send fewer queries at a "
            "time, or ask for fewer hits or iterations",
        )
    if running.why == "ending":
        return ServerProblem("unavailable", "the server is ending; ask again when it was started", retry_after=10)
    return ServerProblem("conflict", "the search was cancelled")


def told(error: BaseException, clean: Callable[[str], str], log: Log) -> ServerProblem:
    """Return what whoever asked is told of an error, without the server's folders; the log is told all."""
    found = problem_of(error)
    if isinstance(error, MemoryError) and not isinstance(error, MemoryLimitError):
        found = ServerProblem("unavailable", "the server has no memory for this search; send its queries in parts")
    if is_full(error) or (isinstance(error, OutputError) and error.__cause__ and is_full(error.__cause__)):
        found = disk_full()
    if found.code == "failed" and not isinstance(error, ServerProblem):
        log("".join(traceback.format_exception(error)).rstrip())
    elif not isinstance(error, (InputError, ServerProblem)):
        log(f"{type(error).__name__}: {error}")
    return ServerProblem(
        found.code, clean(str(found)), option=found.option, expected=found.expected, retry_after=found.retry_after
    )
