"""Checks of requests against the limits of a server."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from swsearch.client.search_request import QUERY_LINES_FORMAT, SearchRequest
from swsearch.db.input_stream import compression_of
from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.pipeline.filters import SUBJECT_FILTERS
from swsearch.pipeline.fingerprint import PROGRAM_NAMES
from swsearch.pipeline.options import SearchOptions, check_profile_scales
from swsearch.pipeline.search import Search
from swsearch.pipeline.search_queries import query_warnings
from swsearch.report.outputs import check_outputs_fit
from swsearch.server.databases import ServedDatabase
from swsearch.server.errors import ServerProblem
from swsearch.server.settings import ServerLimits

GZIP_PIECE = 1 << 16
"""Bytes that are decompressed at once while they are counted."""

GZIP_BEGIN, MAX_GZIP_PARTS = b"\x1f\x8b\x08", 10_000
"""Beginning of each part of a gzip file, and number of them: an empty part takes 20 bytes, and time to read."""

MAX_IN_PROFILES = 100_000
"""Subjects of a profile, each of which takes an alignment in memory."""

MAX_IDENTIFIERS = 100_000
"""Identifiers of a filter; a cache of options keeps them in memory."""


def check_gzip(data: bytes, limit: int) -> int:
    """Return the number of bytes in gzip data, without keeping them; raise `ServerProblem` above a limit."""
    if data.count(GZIP_BEGIN) > MAX_GZIP_PARTS:
        raise ServerProblem("too_large", "The .gz file has too many parts. Compress it again.", option="queries")
    size = 0
    try:
        with gzip.open(io.BytesIO(data)) as file:
            while piece := file.read(GZIP_PIECE):
                size += len(piece)
                if size > limit:
                    message = f"The file has more than {limit:,} bytes when it is decompressed. Send it in parts."
                    raise ServerProblem("too_large", message, option="queries")
    except (EOFError, OSError, zlib.error) as error:
        what = "ends early" if isinstance(error, EOFError) else f"is damaged ({error})"
        raise ServerProblem("wrong", f"The .gz file {what}. Compress it again.", option="queries") from error
    return size


@dataclass(frozen=True)
class ValidatedRequest:
    """A request within the limits, with its queries and options."""

    request: SearchRequest
    """The request; its ``max_hits`` is set if the default is above the limit."""
    queries: list[Query]
    options: SearchOptions
    notes: tuple[str, ...]
    """Notes for the client."""

    @property
    def n_residues(self) -> int:
        """Number of query residues."""
        return sum(len(query.codes) for query in self.queries)

    def cells(self, database: ServedDatabase) -> int:
        """Return the number of cells to score if no query converges before its last iteration."""
        return self.n_residues * database.n_residues * self.options.iterations


def find_database(databases: Mapping[str, ServedDatabase], name: str) -> ServedDatabase:
    """Return a database by its name; raise `ServerProblem` if there is none."""
    if name in databases:
        return databases[name]
    expected = f"one of {', '.join(databases)}"
    message = f"database: got {name[:80]!r}, expected {expected}"
    raise ServerProblem("wrong", message, option="database", expected=expected)


def validate_request(
    request: SearchRequest, databases: Mapping[str, ServedDatabase], limits: ServerLimits
) -> ValidatedRequest:
    """Read a request in bounded memory.

    It raises `ServerProblem` if the request is beyond a limit, and `InputError` if a query or an option is wrong.
    """
    database = find_database(databases, request.database)
    _check_size(request, limits)
    notes = list(request.warnings)
    options = dict(request.options)
    if "max_hits" not in options and limits.hits < SearchOptions.max_hits:
        options["max_hits"] = limits.hits
        notes.append(f"at most {limits.hits:,} hits of a query are reported, which is this server's limit")
        request = replace(request, options=options)
    _check_options(request.search_options, limits)
    try:
        queries, search_options = request.read_queries()
    except RecursionError:
        raise InputError("queries: got JSON that is nested too deeply, expected what swsearch wrote") from None
    _check_count("queries", len(queries), limits.queries)
    notes += query_warnings(request.run_origin.queries or "queries", queries)
    result = ValidatedRequest(request, queries, search_options, tuple(notes))
    _check_count("query residues", result.n_residues, limits.residues)
    check_outputs_fit(
        request.outputs, queries, PROGRAM_NAMES[search_options.translation is not None, database.is_dna]
    )
    check_profile_scales(queries, search_options)
    Search(
        (), search_options, database.lease().backend
    )  # raises if the options do not fit the database; caches the rest
    return result


def _check_size(request: SearchRequest, limits: ServerLimits) -> None:
    queries = request.queries
    _check_count("bytes of queries", len(queries), limits.body)
    # a kilobyte may decompress to a gigabyte; only the page takes gzip
    if kind := compression_of(queries) or ("zip" if queries.startswith(b"PK\x03\x04") else ""):
        expected = "queries that are not compressed"
        message = f"queries: got {kind} data, expected {expected}; decompress them first"
        raise ServerProblem("wrong", message, option="queries", expected=expected)
    if request.query_format in ("auto", "fasta"):  # a record of two bytes takes a kilobyte of memory
        records = queries.count(b"\n>") + queries.count(b"\r>") + queries.startswith(b">")
        _check_count("queries", records, limits.queries)
    elif request.query_format == QUERY_LINES_FORMAT:
        _check_count("queries", queries.count(b"\n") + queries.count(b"\r"), limits.queries)


def _check_options(options: SearchOptions, limits: ServerLimits) -> None:
    _check_max("max_hits", options.max_hits, limits.hits)
    _check_max("max_alignments", options.max_alignments, limits.hits)
    _check_max("max_included", options.max_included, MAX_IN_PROFILES)
    for name, _ in SUBJECT_FILTERS:
        named = getattr(options, name)
        if named is not None and len(named) > MAX_IDENTIFIERS:
            expected = f"at most {MAX_IDENTIFIERS:,} identifiers"
            raise ServerProblem("too_large", f"{name}: got {len(named):,}, expected {expected}", option=name)


def _check_max(option: str, value: int, maximum: int) -> None:
    if value > maximum:
        expected = f"at most {maximum:,}, this server's limit"
        raise ServerProblem(
            "wrong", f"{option}: got {value:,}, expected {expected}", option=option, expected=expected
        )


def _check_count(what: str, count: int, maximum: int) -> None:
    if count > maximum:
        raise ServerProblem(
            "too_large",
            f"queries: got {count:,} {what}, expected at most {maximum:,}, this server's limit; send them in parts",
            option="queries",
            expected=f"at most {maximum:,} {what}",
        )
