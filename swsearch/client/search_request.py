"""A search request as JSON, checked on construction.

A server must not read its own files for a client. So identifiers are lists, a matrix is a known name or a text, and
queries are the content of a file. Names and values are those of the arguments of `swsearch.search`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from swsearch.alphabet import DNA, PROTEIN, Alphabet
from swsearch.db.fasta import Record
from swsearch.db.input_stream import Input
from swsearch.errors import InputError, OptionError, check_choice, format_value
from swsearch.inputs import QueriesLike, Query, input_path
from swsearch.matrices import GAP_COSTS
from swsearch.options.kinds import QUERY_FORMATS, QueryFormat
from swsearch.options.row import Interface, rows_of
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_queries import search_queries
from swsearch.pipeline.table.search import SearchTable
from swsearch.pipeline.table.values import MAX_MATRIX_NAME
from swsearch.profiles.json_profile import read_json, to_json_line
from swsearch.profiles.profile import Profile
from swsearch.profiles.text_lines import TextFile
from swsearch.report.outputs import SAVED_FORMATS, check_outputs
from swsearch.run_info import Checksum, Origin
from swsearch.scoring import Matrix, load_matrix, matrix_from_text

FIELDS = ("database", "queries", "query_format", "options", "title", "origin", "outputs", "header")
"""Fields of a request."""

INCLUSION_RULES = ("columns", "low_complexity", "coiled_coil", "ends", "several")
"""Keys of ``inclusion``: rules without an option of their own."""

SERVER_ROWS = rows_of(SearchTable, Interface.SERVER)
"""Options that a request may name."""

OPTION_NAMES = (*SERVER_ROWS, "inclusion")

FILE_NAMES = tuple(name for name, row in SERVER_ROWS.items() if row.kind.is_file)
"""Options that the client may have read from files, whose names reports show."""

ORIGIN_NAMES = ("queries", "sha256", "command", "started", *FILE_NAMES)

MAX_OUTPUTS, MAX_OUTPUT = 20, 2000
"""Outputs of a job, and characters of the format of one."""

MAX_TITLE = 200
"""Characters of a title, and of the name of a database."""

MAX_NAME_LENGTH = 65_536
"""Characters of a name or a command line that a request gives for reports."""

QUERY_LINES_FORMAT = "lines"
"""Format of queries that come from no file: a JSON line each, a profile as in `swsearch.profiles.json_profile`, or a
sequence with ``identifier``, ``description``, ``sequence`` and ``lower``, its lower-case ranges."""

REQUEST_FORMATS = (*QUERY_FORMATS, QUERY_LINES_FORMAT)
"""Formats of the queries of a request."""


@dataclass(frozen=True)
class SearchRequest:
    """A search request."""

    database: str
    """Name of a database of the server."""
    queries: bytes
    """Content of a query file, not compressed."""
    query_format: str = "auto"
    options: Mapping[str, Any] = None  # type: ignore[assignment]  # made a dict when this is made
    """Named options by `OPTION_NAMES`; None counts as not named."""
    title: str = ""
    origin: Mapping[str, str] = None  # type: ignore[assignment]
    """For reports, all optional: ``queries`` (name of their file), ``sha256``, ``command``, ``started`` (ISO time),
    and the files of `FILE_NAMES`.
    """
    outputs: Sequence[str] = ()
    """Files that a job writes: formats as in ``--outfmt``, or `swsearch.report.outputs.SAVED_FORMATS`."""
    header: bool = False
    """Whether tables among them begin with column names."""

    def __post_init__(self) -> None:
        for name in ("database", "title"):
            _check_text(name, getattr(self, name))
        check_choice("query_format", self.query_format, REQUEST_FORMATS)
        options = _mapping("options", self.options)
        _check_names("options", options, OPTION_NAMES)
        object.__setattr__(self, "options", {name: value for name, value in options.items() if value is not None})
        origin = _mapping("origin", self.origin)
        _check_names("origin", origin, ORIGIN_NAMES)
        for name, value in origin.items():
            _check_text(f"origin.{name}", value, MAX_NAME_LENGTH)
        object.__setattr__(self, "origin", dict(origin))
        if not isinstance(self.header, bool):
            raise OptionError("header", self.header, "true or false")
        if not isinstance(self.outputs, (list, tuple)) or len(self.outputs) > MAX_OUTPUTS:
            raise OptionError("outputs", self.outputs, f"a list of at most {MAX_OUTPUTS} formats")
        for outfmt in self.outputs:
            _check_text("outputs", outfmt, MAX_OUTPUT)
        check_outputs(self.outputs, self.header)
        object.__setattr__(self, "outputs", tuple(self.outputs))
        self.search_options, self.run_origin  # noqa: B018  # what is wrong is told now

    @classmethod
    def from_json(cls, data: Any) -> SearchRequest:
        """Return the request in JSON; the `InputError` of a wrong field names it."""
        fields = _mapping("request", data)
        _check_names("request", fields, FIELDS)
        for name in ("database", "queries"):
            if fields.get(name) is None:
                raise InputError(f"{name}: got none, expected {_EXPECTED[name]}")
        rest = {name: fields[name] for name in FIELDS[2:] if fields.get(name) is not None}
        return cls(fields["database"], _content(fields["queries"]), **rest)

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON has it; `from_json` makes the same of it."""
        try:
            queries: Any = self.queries.decode("utf-8")
        except UnicodeDecodeError:
            queries = {"base64": base64.b64encode(self.queries).decode("ascii")}
        return {name: getattr(self, name) for name in FIELDS} | {"queries": queries, "outputs": list(self.outputs)}

    @cached_property
    def search_options(self) -> SearchOptions:
        """The options, but for gap costs that profiles among the queries go with."""
        options = options_from_json(self.options)
        return replace(options, keep_profiles=True) if not SAVED_FORMATS.keys().isdisjoint(self.outputs) else options

    @property
    def warnings(self) -> list[str]:
        """Warnings about options that are likely mistakes."""
        return list(self.search_options.filters.warnings())

    @cached_property
    def run_origin(self) -> Origin:
        """Origin of queries and search for reports; the checksum is that of named queries."""
        usual, name = Origin(), self.origin.get("queries", "")
        sha256 = self.origin.get("sha256", "")
        if sha256 and not re.fullmatch("[0-9a-f]{64}", sha256):
            raise OptionError("origin.sha256", sha256, "64 hexadecimal digits in lower case")
        if name and not sha256:
            sha256 = hashlib.sha256(self.queries).hexdigest()
        sums = (Checksum("queries", name, sha256),) if name not in ("", "-") else ()
        files = {each: self.origin[each] for each in FILE_NAMES if each in self.origin}
        command = self.origin.get("command", usual.command)
        origin = replace(usual, queries=name, command=command, files=files, checksums=sums)
        if "started" not in self.origin:
            return origin
        try:
            started = datetime.fromisoformat(self.origin["started"])
        except ValueError:
            raise OptionError(
                "origin.started", self.origin["started"], "an ISO time such as 2026-11-23T14:00:00+00:00"
            ) from None
        if started.tzinfo is None:
            raise OptionError("origin.started", self.origin["started"], "an ISO time with its time zone")
        return replace(origin, started=started)

    def origin_with(self, database: Iterable[Checksum]) -> Origin:
        """Return `run_origin` with the checksums of the database too, as its reports name it."""
        origin = self.run_origin
        return replace(origin, checksums=(*(origin.checksums or ()), *database))

    def read_queries(self) -> tuple[list[Query], SearchOptions]:
        """Read the queries, and return them with the options of their search."""
        options = self.search_options
        is_lines = self.query_format == QUERY_LINES_FORMAT
        queries = search_queries(
            _parse_query_lines(self.queries) if is_lines else self._file(), options,
            "auto" if is_lines else self.query_format,  # type: ignore[arg-type]  # it was checked
        )  # fmt: skip
        return queries, options.with_profile_scoring(queries)

    def _file(self) -> io.BytesIO:
        """Return the queries as an open file, which messages call what whoever asks does."""
        file = io.BytesIO(self.queries)
        file.name = self.origin.get("queries") or "queries"  # as open files have one
        return file


def _parse_query_lines(data: bytes) -> list[Record | Profile]:
    """Return the sequences and profiles of `QUERY_LINES_FORMAT`."""
    queries: list[Record | Profile] = []
    text = TextFile.from_bytes("queries", data)
    for number, line in enumerate(text.lines):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            text.fail("no JSON, expected a sequence or a profile", number)
        if isinstance(value, dict) and "swsearch" in value:
            queries += read_json(TextFile("queries", [line]))
        else:
            queries.append(_record(text, number, value))
    return queries


def _record(text: TextFile, at: int, value: Any) -> Record:
    """Return the sequence of a line."""
    names = ("identifier", "description", "sequence")
    if not isinstance(value, dict) or not {*value} <= {*names, "lower"}:
        text.fail(f"got {format_value(value)}, expected {', '.join(names)} and lower", at)
    identifier, description, letters = (value.get(name, "") for name in names)
    if not all(isinstance(each, str) for each in (identifier, description, letters)):
        text.fail(f"expected texts for {', '.join(names)}", at)
    codes, runs, end = text.encode(letters, at), value.get("lower", []), 0
    for run in runs if isinstance(runs, list) else [None]:
        if (
            not isinstance(run, list)
            or list(map(type, run)) != [int, int]
            or not end <= run[0] < run[1] <= len(codes)
        ):
            text.fail("lower: expected runs of the sequence, ascending, as pairs of where they begin and end", at)
        end = run[1]
    header = f"{identifier} {description}".strip().encode("utf-8", "surrogatepass")
    return Record(header, identifier, description, codes, [(run[0], run[1]) for run in runs])


_DEFAULTS = SearchOptions()

_EXPECTED = {"database": "the name of a database", "queries": "what a file of queries holds, such as FASTA"}


def options_from_json(data: Mapping[str, Any]) -> SearchOptions:
    """Return the options in JSON by the names in `OPTION_NAMES`; raise `InputError` for a wrong one."""
    _check_names("options", data, OPTION_NAMES)
    values = {
        name: row.kind.check_json(name, data[name]) for name, row in SERVER_ROWS.items() if data.get(name) is not None
    }
    rules = _mapping("inclusion", data.get("inclusion"))
    _check_names("inclusion", rules, INCLUSION_RULES)
    return SearchOptions(**values, rules=Inclusion(**rules))


def _content(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", errors="surrogatepass")
    if isinstance(value, Mapping) and list(value) == ["base64"] and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise OptionError("queries.base64", value["base64"], "bytes in base64") from None
    raise OptionError("queries", value, f"{_EXPECTED['queries']}, or {{'base64': ...}}")


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise OptionError(name, value, "names with their values, as a JSON object")
    return value


def _check_names(where: str, names: Mapping[str, Any], known: tuple[str, ...]) -> None:
    import difflib

    for name in names:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            remedy = f"; did you mean {close[0]}?" if close else ""
            raise InputError(f"{where}: got {format_value(name)}, expected {', '.join(known)}{remedy}")


def _check_text(name: str, value: Any, max_length: int = MAX_TITLE) -> None:
    if not isinstance(value, str) or len(value) > max_length or "\0" in value:
        raise OptionError(name, value, f"a text of at most {max_length:,} characters")


# what is asked for here, as a request


def make_request(
    database: str, queries: QueriesLike, options: SearchOptions, origin: Origin, *,
    query_format: QueryFormat = "auto", title: str = "", outputs: Sequence[str] = (), header: bool = False,
) -> SearchRequest:  # fmt: skip
    """Return the request for a search. A query file is sent decompressed, and the server reads it.

    It raises `InputError` if a query or the matrix cannot be sent.
    """
    origin_fields = {"queries": origin.queries, "command": origin.command, **origin.files}
    if path := input_path(queries):
        with Input(path) as opened:
            data, sent_format = opened.read(sys.maxsize), str(query_format)
            origin_fields["sha256"] = "" if path == "-" else opened.sha256
    else:
        data = format_query_lines(search_queries(queries, options, query_format, "queries"), options)
        sent_format = QUERY_LINES_FORMAT
    shortened = {name: value[:MAX_NAME_LENGTH] for name, value in origin_fields.items() if value}
    return SearchRequest(
        database, data, sent_format, options_to_json(options), title,
        {**shortened, "started": origin.started.isoformat()}, outputs, header,
    )  # fmt: skip


def format_query_lines(queries: Sequence[Query], options: SearchOptions) -> bytes:
    """Return queries of a search as `QUERY_LINES_FORMAT`."""
    alphabet = PROTEIN if options.translation is None else DNA
    return b"".join(_line(query, alphabet).encode("ascii") + b"\n" for query in queries)


def _line(query: Query, alphabet: Alphabet) -> str:
    if query.profile is not None:
        return to_json_line(query.profile)
    fields = {
        "identifier": query.identifier,
        "description": query.description,
        "sequence": alphabet.decode(query.codes),
    }
    return json.dumps({**fields, "lower": [list(run) for run in query.lower]}, separators=(",", ":"))


def options_to_json(options: SearchOptions) -> dict[str, Any]:
    """Return options as JSON of a request."""
    values: dict[str, Any] = {"max_hits": options.max_hits}  # a server may have another default
    for name in SERVER_ROWS:
        if (value := getattr(options, name)) != getattr(_DEFAULTS, name):
            values[name] = list(value) if isinstance(value, tuple) else value  # as JSON gives it back
    changed = {name: getattr(options.rules, name) for name in INCLUSION_RULES}
    if rules := {name: value for name, value in changed.items() if value != getattr(Inclusion, name)}:
        values["inclusion"] = rules
    scoring = options.scoring
    if (matrix := matrix_to_json(scoring.matrix)) != _DEFAULTS.scoring.matrix.name:
        values["matrix"] = matrix
    if (alphabet := options.effective("alphabet")) is not None:
        values["alphabet"] = alphabet
    if options.has_named_costs:
        values |= {"gap_open": scoring.gap_open, "gap_extend": scoring.gap_extend}
    return values


def matrix_to_json(matrix: Matrix) -> str | dict[str, str]:
    """Return the name of a built-in matrix, or the text of another; raise `InputError` if its text is not exact."""
    if matrix.name in GAP_COSTS and matrix == (shipped := load_matrix(matrix.name)) and _is_same(matrix, shipped):
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
