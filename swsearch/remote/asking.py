"""What a search was asked for here, as a request that asks a server for the same: nothing is lost on the way."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from swsearch.alphabet import DNA, PROTEIN, Alphabet
from swsearch.db.inputs import Input
from swsearch.errors import InputError
from swsearch.inputs import QueriesLike, Query, path_of
from swsearch.matrices import GAP_COSTS
from swsearch.options.words import QueryFormat
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_queries import search_queries
from swsearch.pipeline.table.values import MAX_MATRIX_NAME
from swsearch.profiles.formats import Peeked, format_of
from swsearch.profiles.saving import line_of
from swsearch.remote.wire import INCLUSION_RULES, LINES, LONGEST_NAME_TOLD, SERVER_ROWS, SearchRequest
from swsearch.run_info import Checksum, Origin
from swsearch.scoring import Matrix, load_matrix, matrix_from_text

_READ_AT_ONCE = 1 << 20

_USUAL = SearchOptions()


@dataclass(frozen=True)
class AskedQueries:
    """Queries as they were read here, and as they are sent.

    Parameters
    ----------
    found : list of Query
        As they were read.
    data : bytes
        What is sent: the FASTA that a file holds, or `LINES`.
    query_format : str
        Which of these it is.
    sha256 : str
        Of the file, as it is on disk; empty where there is none.
    """

    found: list[Query]
    data: bytes
    query_format: str
    sha256: str = ""


def read_to_send(
    queries: QueriesLike, options: SearchOptions, query_format: QueryFormat = "auto", argument: str = ""
) -> AskedQueries:
    """Read queries, once, as `swsearch.inputs.read_queries` does.

    Raises
    ------
    InputError
        As that does.
    """
    path = path_of(queries)
    if not path:
        found = search_queries(queries, options, query_format, argument)
        return AskedQueries(found, lines_of(found, options), LINES)
    with Input(path) as opened:
        data = _whole(opened)
        kind = format_of(Peeked(_NamedBytes(data, opened.name)), query_format)
        found = search_queries(_NamedBytes(data, opened.name), options, kind, argument="")
        sha256 = "" if path == "-" else opened.sha256
    if kind == "fasta":
        return AskedQueries(found, data, kind, sha256)
    return AskedQueries(found, lines_of(found, options), LINES, sha256)


class _NamedBytes(io.BytesIO):
    """The bytes of a file, which messages go on to call by its name."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer; return the number of bytes."""
        return self.readinto(view)


def _whole(opened: Input) -> bytes:
    found = bytearray()
    buffer = bytearray(_READ_AT_ONCE)
    while n := opened.read_into(memoryview(buffer)):
        found += buffer[:n]
    return bytes(found)


def lines_of(queries: Sequence[Query], options: SearchOptions) -> bytes:
    """Return queries of a search as `LINES`."""
    alphabet = PROTEIN if options.translation is None else DNA
    return b"".join(_line(query, alphabet).encode("ascii") + b"\n" for query in queries)


def _line(query: Query, alphabet: Alphabet) -> str:
    if query.profile is not None:
        return line_of(query.profile)
    given = {
        "identifier": query.identifier,
        "description": query.description,
        "sequence": alphabet.decode(query.codes),
    }
    return json.dumps({**given, "lower": [list(run) for run in query.lower]}, separators=(",", ":"))


def options_told(options: SearchOptions) -> dict[str, Any]:
    """Return options as a request states them.

    Raises
    ------
    InputError
        If its matrix cannot be written.
    """
    told: dict[str, Any] = {"max_hits": options.max_hits}  # a server may have another default
    for name in SERVER_ROWS:
        if (value := getattr(options, name)) != getattr(_USUAL, name):
            told[name] = _as_json(value)
    changed = {name: getattr(options.rules, name) for name in INCLUSION_RULES}
    if rules := {name: value for name, value in changed.items() if value != getattr(Inclusion, name)}:
        told["inclusion"] = rules
    scoring = options.scoring
    if (matrix := matrix_told(scoring.matrix)) != _USUAL.scoring.matrix.name:
        told["matrix"] = matrix
    if options.has_named_costs:
        told |= {"gap_open": scoring.gap_open, "gap_extend": scoring.gap_extend}
    return told


def _as_json(value: Any) -> Any:
    """Return an option's value as JSON gives it back, so that both sides compare equal."""
    return list(value) if isinstance(value, tuple) else value


def matrix_told(matrix: Matrix) -> str | dict[str, str]:
    """Return the name of a matrix that is shipped, or the text of any other one.

    Raises
    ------
    InputError
        If it is not the one that its text gives again.
    """
    if matrix.name in GAP_COSTS and matrix == (known := load_matrix(matrix.name)) and _is_same(matrix, known):
        return matrix.name
    letters = matrix.alphabet.letters
    rows = [" ".join(map(str, matrix.scores[place, : len(letters)].tolist())) for place in range(len(letters))]
    lines = [" ".join(letters), *(f"{letter} {row}" for letter, row in zip(letters, rows, strict=True))]
    text = "\n".join(lines) + "\n"
    name = matrix.name[:MAX_MATRIX_NAME]
    if matrix.published or not _is_same(matrix, matrix_from_text(text, name, PROTEIN)):
        raise InputError(
            f"matrix {matrix.name}: cannot be sent to a server; give its file, or the name of a known matrix"
        )
    return {"name": name, "text": text}


def _is_same(one: Matrix, other: Matrix) -> bool:
    return bool(np.array_equal(one.scores, other.scores))


def request_for(
    database: str, queries: AskedQueries, options: SearchOptions, origin: Origin, title: str = ""
) -> SearchRequest:
    """Return the request for a search.

    Parameters
    ----------
    database : str
        As the server calls it.
    queries : AskedQueries
        As they are sent.
    options : SearchOptions
        What is asked for.
    origin : Origin
        Where queries and command come from; of a path the server is told the last part.
    title : str, optional
        What to call it there.

    Raises
    ------
    InputError
        If profiles among the queries go with different gap costs, or the matrix cannot be sent.
    """
    options.with_costs_of(queries.found)
    told = {"queries": PurePath(origin.queries).name, "sha256": queries.sha256, "command": origin.command}
    shortened = {name: value[:LONGEST_NAME_TOLD] for name, value in told.items() if value}
    return SearchRequest(
        database, queries.data, queries.query_format, options_told(options), title,
        {**shortened, "begun": origin.begun.isoformat()},
    )  # fmt: skip


def checksums_here(path: str, queries: AskedQueries) -> tuple[Checksum, ...]:
    """Return the checksum of a file of queries, for reports that are written here; none of what is no file."""
    return (Checksum("queries", path, queries.sha256),) if queries.sha256 else ()
