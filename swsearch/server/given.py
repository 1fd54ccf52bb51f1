"""What a request gives: searches as JSON, as sequences with options beside them, or as a form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from swsearch.errors import OptionError, shown
from swsearch.options.kinds import Flag
from swsearch.pipeline.table.values import IdentifierList
from swsearch.remote.wire import OPTION_NAMES, SERVER_ROWS, SearchRequest
from swsearch.server.problems import ServerProblem

JSON_TYPE, FORM_TYPE, PARTS_TYPE = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
SEQUENCE_TYPES = ("text/x-fasta", "text/plain", "application/octet-stream", "application/x-fasta", "")
"""Types of a request's body."""

TEXT_FIELDS = ("database", "query_format", "title", *OPTION_NAMES)
"""What may stand beside sequences, as query parameters or fields of a form."""

TextPairs = Sequence[tuple[str, str]]
"""Names with their values, as a query string has them."""

MOST_JSON_VALUES = 1_000_000
"""Values of JSON: an empty list takes three bytes there, and seventy when it is read."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def media_type(header: str) -> str:
    """Return the type in a ``Content-Type`` header, without what follows it."""
    return header.partition(";")[0].strip().lower()


def searches_of_json(body: bytes) -> list[SearchRequest]:
    """Return the searches that a body of JSON asks for: one, or one for each of several databases.

    Raises
    ------
    ServerProblem
        If it is no JSON.
    InputError
        If something in it is unknown, missing or cannot be used.
    """
    stated = json_of(body)
    names = stated.get("database") if isinstance(stated, dict) else None
    if not isinstance(names, list):
        return [SearchRequest.of(stated)]
    return [SearchRequest.of({**stated, "database": name}) for name in checked_names(names)]


def checked_names(names: Sequence[Any]) -> list[Any]:
    """Return the names of databases, of which none is there twice."""
    if not names:
        raise OptionError("database", [], "the name of a database")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise OptionError("database", name, "each database once")
    return list(names)


def json_of(body: bytes) -> Any:
    """Return what JSON states, in which no name stands twice and each number is one.

    Raises
    ------
    ServerProblem
        If it is none, or of very many parts.
    """
    _check_parts(body)
    try:
        text = body.decode("utf-8")
        stated = json.loads(text, parse_constant=_refused, object_pairs_hook=_once)
        if _SURROGATE.search(text):
            json.dumps(stated, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ServerProblem("broken", "the body is JSON within JSON, deeper than any request") from None
    except ValueError as error:
        said = "half a character" if isinstance(error, UnicodeEncodeError) else str(error)
        raise ServerProblem("broken", f"the body is no JSON: {said}", expected="a JSON object") from None
    return stated


def _check_parts(body: bytes) -> None:
    """Refuse what takes a hundred times its bytes when it is read; what stands in texts, such as queries, is none."""
    if _n_parts(body) <= MOST_JSON_VALUES:
        return
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') <= MOST_JSON_VALUES and _n_parts(b"".join(plain.split(b'"')[::2])) <= MOST_JSON_VALUES:
        return
    expected = f"at most {MOST_JSON_VALUES:,} values"
    raise ServerProblem("too_large", f"the body is JSON of very many values, expected {expected}", expected=expected)


def _n_parts(body: bytes) -> int:
    return sum(body.count(mark) for mark in (b"[", b"{", b",", b":"))


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{shown(twice)} stands there twice")
    return found


def searches_of_text(queries: bytes, pairs: TextPairs) -> list[SearchRequest]:
    """Return the searches of sequences with options beside them; a name may stand for several databases.

    Raises
    ------
    InputError
        If something is unknown, missing or cannot be used.
    """
    databases = [value for name, value in pairs if name == "database"]
    options: dict[str, Any] = {}
    rest: dict[str, str] = {}
    for name, value in pairs:
        if name == "database":
            continue
        if name not in TEXT_FIELDS:
            raise OptionError(name, value, f"one of {', '.join(TEXT_FIELDS)}")
        if isinstance(options.get(name), list):
            options[name] += option_of_text(name, value) or []
        elif name in options or name in rest:
            raise OptionError(name, value, "it once")
        elif name in OPTION_NAMES:
            options[name] = option_of_text(name, value)
        else:
            rest[name] = value
    if not databases:
        raise OptionError("database", None, "the name of a database", "GET /api/v1/databases lists them")
    return [
        SearchRequest(name, queries, rest.get("query_format", "auto"), options, rest.get("title", ""))
        for name in checked_names(databases)
    ]


def option_of_text(name: str, text: str) -> Any:
    """Return an option's value that came as text, as JSON has it; empty text is None."""
    row = SERVER_ROWS.get(name)
    if row is None or (not text.strip() and not isinstance(row.kind, (Flag, IdentifierList))):
        return text.strip() or None
    return row.kind.parse(name, text)


def numbers_of_text(name: str, text: str, most: int) -> list[int]:
    """Return numbers from 1 that came as text: ``1,2,5-8``.

    Raises
    ------
    OptionError
        If they are none, or more than so many.
    """
    expected = f"numbers from 1 such as 1,2,5-8, at most {most:,}"
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?\s*", part)
        if match is None:
            raise OptionError(name, text, expected)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or len(found) + last - first >= most:
            raise OptionError(name, text, expected)
        found += range(first, last + 1)
    return found


def range_of_text(name: str, text: str) -> tuple[int, int]:
    """Return the first and the last of some numbers from 1 that came as text: ``3`` or ``1-10``."""
    match = re.fullmatch(r"\s*([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?\s*", text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise OptionError(name, text, "a number from 1, or two such as 1-10")
    return int(match[1]), int(match[2] or match[1])


def check_names(given: TextPairs, known: Sequence[str]) -> Mapping[str, str]:
    """Return query parameters by name; each is known, and there once.

    Raises
    ------
    OptionError
        If not so.
    """
    found: dict[str, str] = {}
    for name, value in given:
        if name not in known:
            raise OptionError(name, value, f"one of {', '.join(known)}" if known else "no parameters here")
        if name in found:
            raise OptionError(name, value, "it once")
        found[name] = value
    return found


def without_fields(pairs: TextPairs, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of other names."""
    return [(name, value) for name, value in pairs if name not in names]
