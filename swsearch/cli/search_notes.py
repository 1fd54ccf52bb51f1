"""What a search says on stderr beside its progress: of its queries before, and of what it found after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from swsearch.cli.console import say

if TYPE_CHECKING:
    from swsearch.inputs import Query
    from swsearch.pipeline.search_results import OpenedSearch, ResultIterator


def say_of_queries(path: str, found: Sequence[Query], quiet: bool) -> None:
    """Say which profiles are among the queries, and warn of queries that are empty."""
    if not quiet and (profiles := [query.profile for query in found if query.profile is not None]):
        more = f", and {len(profiles) - 1:,} more profiles" if len(profiles) > 1 else ""
        say(f"swsearch: {profiles[0].identifier}: {profiles[0].source or 'a profile'}{more}")
    empty = [query.identifier for query in found if not len(query.codes)]
    if empty:
        say(f"swsearch: warning: {path}: {len(empty)} queries have no residues, such as {empty[0]!r}")


def say_afterwards(results: ResultIterator[Any], seconds: float, spared: int, quiet: bool, where: str = "") -> None:
    """Say what was found out about statistics, and what was done.

    Parameters
    ----------
    results : ResultIterator
        Taken to the last.
    seconds : float
        That it took.
    spared : int
        Cells that were not computed.
    quiet : bool
        Whether to say only what is doubtful.
    where : str, optional
        The server that searched.
    """
    for text in fit_notes(results, quiet):
        say(f"swsearch: {text}")
    if not quiet:
        if results.search.options.iterations > 1:
            say(f"swsearch: {results.iterated.describe()}")
        say(summary(results.search, seconds, spared) + (f", at {where}" if where else ""))


def fit_notes(results: ResultIterator[Any], quiet: bool) -> Iterator[str]:
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


def summary(search: OpenedSearch, seconds: float, spared: int) -> str:
    """Return a line that says what was done, in how many seconds, but for cells that were spared."""
    rate = (search.cells - spared) / max(seconds, 1e-9) / 1e9
    plural = "query" if len(search.queries) == 1 else "queries"
    run, engine = search.run, "" if search.run.execution is None else search.run.execution.engine
    subjects, residues = ("subjects", "residues") if run.database_code is None else ("records of DNA", "nucleotides")
    return (
        f"swsearch: {len(search.queries)} {plural} x {run.database_subjects:,} {subjects}, "
        f"{run.database_residues:,} {residues}, {seconds:.2f} s, {rate:.2f} GCUPS, engine {engine}"
    )
