"""What a server takes: a request is read within its limits, and refused with the limit that it is beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.pipeline.filters import SUBJECT_FILTERS
from swsearch.pipeline.options import SearchOptions, check_scales
from swsearch.pipeline.search import Search
from swsearch.remote.wire import LINES, SearchRequest
from swsearch.server.places import ServedPlace
from swsearch.server.problems import ServerProblem
from swsearch.server.settings import ServerLimits

COMPRESSED_AS = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
"""How compressed files begin. They are refused: a kilobyte of them may hold a gigabyte."""

MOST_IN_PROFILES = 100_000
"""Subjects that may make a profile, of which each takes an alignment in memory."""

MOST_IDENTIFIERS = 100_000
"""Identifiers that a filter may name: they stay in memory with what follows from the options of a search."""


@dataclass(frozen=True)
class TakenRequest:
    """A request that was read, and is within the limits.

    Parameters
    ----------
    request : SearchRequest
        As it came, or with the most hits where the usual number is above the limit.
    queries : list of Query
        Of it.
    options : SearchOptions
        They are searched with these.
    notes : tuple of str
        What is to be told.
    """

    request: SearchRequest
    queries: list[Query]
    options: SearchOptions
    notes: tuple[str, ...]

    @property
    def n_residues(self) -> int:
        """Residues of the queries."""
        return sum(len(query.codes) for query in self.queries)

    def cells(self, place: ServedPlace) -> int:
        """Cells that are to be scored, if no query converges before its last iteration."""
        return self.n_residues * place.n_residues * self.options.iterations


def place_of(places: Mapping[str, ServedPlace], name: str) -> ServedPlace:
    """Return the database that a request names.

    Raises
    ------
    ServerProblem
        If there is none of that name.
    """
    if name in places:
        return places[name]
    known = ", ".join(places)
    message = f"database: got {name[:80]!r}, expected one of {known}"
    raise ServerProblem("wrong", message, option="database", expected=f"one of {known}")


def taken(request: SearchRequest, places: Mapping[str, ServedPlace], limits: ServerLimits) -> TakenRequest:
    """Read a request, in as little memory as its limits say.

    Raises
    ------
    ServerProblem
        ``too_large`` or ``wrong``, with the limit.
    InputError
        If a query or an option cannot be used.
    """
    place = place_of(places, request.database)
    _check_size(request, limits)
    notes = list(request.doubts)
    options = dict(request.options)
    if "max_hits" not in options and limits.hits < SearchOptions.max_hits:
        options["max_hits"] = limits.hits
        notes.append(f"at most {limits.hits:,} hits of a query are reported, which is this server's limit")
        request = replace(request, options=options)
    _check_options(request.search_options, limits)
    try:
        queries, asked = request.read()
    except RecursionError:
        raise InputError("queries: got JSON that is nested too deeply, expected what swsearch wrote") from None
    _check_count("queries", len(queries), limits.queries)
    found = TakenRequest(request, queries, asked, tuple(notes))
    _check_count("query residues", found.n_residues, limits.residues)
    check_scales(queries, asked)
    Search((), asked, place.lease().backend)  # raises if the options do not fit the database; kept for the search
    return found


def _check_size(request: SearchRequest, limits: ServerLimits) -> None:
    queries = request.queries
    _check_count("bytes of queries", len(queries), limits.body)
    for magic, name in COMPRESSED_AS.items():
        if queries.startswith(magic):
            expected = "queries that are not compressed"
            message = f"queries: got {name} data, expected {expected}; decompress them first"
            raise ServerProblem("wrong", message, option="queries", expected=expected)
    if request.query_format in ("auto", "fasta"):  # a record of two bytes takes a thousand when it is read
        records = queries.count(b"\n>") + queries.count(b"\r>") + queries.startswith(b">")
        _check_count("queries", records, limits.queries)
    elif request.query_format == LINES:
        _check_count("queries", queries.count(b"\n") + queries.count(b"\r"), limits.queries)


def _check_options(options: SearchOptions, limits: ServerLimits) -> None:
    _check_most("max_hits", options.max_hits, limits.hits)
    _check_most("max_alignments", options.max_alignments, limits.hits)
    _check_most("max_included", options.max_included, MOST_IN_PROFILES)
    for name, _ in SUBJECT_FILTERS:
        named = getattr(options, name)
        if named is not None and len(named) > MOST_IDENTIFIERS:
            expected = f"at most {MOST_IDENTIFIERS:,} identifiers"
            raise ServerProblem("too_large", f"{name}: got {len(named):,}, expected {expected}", option=name)


def _check_most(option: str, value: int, most: int) -> None:
    if value > most:
        expected = f"at most {most:,}, this server's limit"
        raise ServerProblem(
            "wrong", f"{option}: got {value:,}, expected {expected}", option=option, expected=expected
        )


def _check_count(what: str, count: int, most: int) -> None:
    if count > most:
        raise ServerProblem(
            "too_large",
            f"queries: got {count:,} {what}, expected at most {most:,}, this server's limit; send them in parts",
            option="queries",
            expected=f"at most {most:,} {what}",
        )


def problem_stated(problem: ServerProblem) -> dict[str, Any]:
    """Return what is kept of why a job failed."""
    found: dict[str, Any] = problem.stated()["error"]
    return found
