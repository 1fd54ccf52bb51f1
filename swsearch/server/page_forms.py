"""What somebody typed into the form: made requests of, or shown again with what is wrong at its field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from swsearch.errors import OptionError, SequenceError, SwsearchError, printable
from swsearch.options.kinds import QueryRange, ValueKind
from swsearch.remote.wire import LONGEST_TITLE, SearchRequest
from swsearch.server.page_fields import FORM_FIELDS
from swsearch.server.problems import ServerProblem, problem_of

MOST_SHOWN_AGAIN = 1 << 20
"""Bytes of a chosen file that come back as text in the form; a larger one must be chosen again."""

_HEADER = re.compile(rb"^>[ \t]*([^\s\x01]*)", re.MULTILINE)


@dataclass(frozen=True)
class TypedSearch:
    """What the form holds.

    Parameters
    ----------
    values : dict of str to str
        What stands in the fields of `FORM_FIELDS`, by name.
    databases : tuple of str
        Names that are ticked.
    queries : str
        What stands in the field of queries.
    file_name : str
        Of the file that was chosen, without folders.
    file_content : bytes
        What it holds.
    queries_of : str
        Identifier of a job whose queries these are, where nothing was pasted and no file chosen.
    title : str
        What the search is called.
    left_out : tuple of str
        Options of a request that is shown again which the form has no fields for.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    databases: tuple[str, ...] = ()
    queries: str = ""
    file_name: str = ""
    file_content: bytes = b""
    queries_of: str = ""
    title: str = ""
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Iterable[tuple[str, str]], file: tuple[str, bytes] = ("", b"")) -> TypedSearch:
        """Return what a browser sent: names with values, and the chosen file.

        Raises
        ------
        ServerProblem
            If there is a field that the form does not have.
        """
        values: dict[str, str] = {}
        databases: list[str] = []
        others = {"queries": "", "queries_of": "", "title": ""}
        for name, value in given:
            if name == "database":
                databases.append(value)
            elif name in FORM_FIELDS:
                values[name] = value
            elif name == "file" and not value:
                continue
            elif name in others:
                others[name] = value
            else:
                raise ServerProblem("broken", f"unknown form field {name[:40]!r}; open the page again")
        name = printable(re.split(r"[/\\]", file[0])[-1], "?")[:LONGEST_TITLE]
        return cls(
            values, tuple(dict.fromkeys(databases)), others["queries"], name, file[1], others["queries_of"],
            others["title"],
        )  # fmt: skip

    @classmethod
    def of_request(cls, request: SearchRequest, queries_of: str = "") -> TypedSearch:
        """Return what would have to be typed for a request; its queries are named where they are too many to show."""
        options = dict(request.options)
        if isinstance(options.get("matrix"), Mapping):
            options["matrix_text"] = options.pop("matrix").get("text", "")
        values = {name: _as_typed(each.kind, options[name]) for name, each in FORM_FIELDS.items() if name in options}
        values["query_format"] = request.query_format
        is_short = len(request.queries) <= MOST_SHOWN_AGAIN or not queries_of
        queries = request.queries.decode("utf-8", errors="replace") if is_short else ""
        left_out = tuple(name for name in options if name not in (*values, "matrix_text", "distribution"))
        queries_of = "" if is_short else queries_of
        return cls(
            values, (request.database,), queries, title=request.title, queries_of=queries_of, left_out=left_out
        )

    def again(self) -> TypedSearch:
        """Return what the form shows when it comes back: a short file's content as text."""
        if not self.file_content or self.queries.strip() or len(self.file_content) > MOST_SHOWN_AGAIN:
            return replace(self, file_content=b"")
        text = self.file_content.decode("utf-8", errors="replace")
        return replace(self, queries=text, file_content=b"")

    @property
    def has_lost_file(self) -> bool:
        """Whether there was a file that does not come back."""
        return bool(self.file_name) and not self.queries.strip()

    def content(self) -> bytes:
        """Return the queries that were pasted or chosen; empty where there are none.

        Raises
        ------
        OptionError
            If there are both.
        """
        pasted = self.queries.replace("\r\n", "\n").encode("utf-8", errors="surrogatepass")
        if pasted.strip() and self.file_content.strip():
            raise OptionError("queries", self.file_name, "pasted queries or a file, not both", "remove one of them")
        return pasted if pasted.strip() else self.file_content

    def requests(self, queries: bytes) -> list[SearchRequest]:
        """Return what is asked for, one request for each database.

        Raises
        ------
        SwsearchError
            If something cannot be used; `field_of` says where it stands.
        """
        if not queries.strip():
            raise OptionError("queries", "none", "protein sequences as FASTA: paste them, drop a file or choose one")
        if not self.databases:
            raise OptionError("database", "none", "at least one database: tick it")
        options: dict[str, Any] = {"distribution": True}
        for name, text in self.values.items():
            value = FORM_FIELDS[name].value_of(text)
            if value is not None and name not in ("query_format", "matrix_text"):
                options[name] = value
        if own := self.values.get("matrix_text", "").strip("\r\n"):
            options["matrix"] = {"name": "custom", "text": own.replace("\r\n", "\n") + "\n"}
        title = printable(self.title.strip())[:LONGEST_TITLE] or called(queries, self.file_name)
        origin = {"queries": self.file_name or title}
        query_format = self.values.get("query_format") or "auto"
        return [SearchRequest(each, queries, query_format, options, title, origin) for each in self.databases]


def called(queries: bytes, file_name: str) -> str:
    """Say what a search without a title is: its file, or its first query and how many more there are."""
    if file_name:
        return printable(file_name, "?")[:LONGEST_TITLE]
    first = _HEADER.search(queries)
    name = printable(first[1].decode("utf-8", "replace"), "?") if first is not None else ""
    others = queries.count(b"\n>") - (0 if queries.startswith(b">") or not first else 1)
    tail = f" and {others:,} more" if others > 0 else ""
    return (name or "pasted")[: LONGEST_TITLE - len(tail)] + tail


def field_of(error: SwsearchError) -> str:
    """Return the name of the field that an error is about; empty if it is about none."""
    if isinstance(error, SequenceError):
        return "queries"
    problem = problem_of(error)
    name = problem.option or str(problem).partition(":")[0]
    name = {
        "matrix.text": "matrix_text",
        "matrix custom": "matrix_text",
        "origin.queries": "queries",
        "residues": "queries",
    }.get(name, name)
    return name if name in FORM_FIELDS or name in ("queries", "database", "title") else ""


def in_words(message: str, name: str, is_there: bool = False) -> str:
    """Return a message that begins with a field's name as whoever sees the field reads it.

    Parameters
    ----------
    message : str
        What is wrong.
    name : str
        Of the field; empty if it is about none.
    is_there : bool, optional
        Whether it stands at the field, whose label says already which it is.
    """
    label = _LABELS.get(name) or (FORM_FIELDS[name].label if name in FORM_FIELDS else "")
    head, colon, rest = message.partition(": ")
    if not label or not colon or head not in (name, name.replace("_text", "")):
        return message
    return f"{rest[:1].upper()}{rest[1:]}" if is_there else f"{label}: {rest}"


_LABELS = {"queries": "Queries", "database": "Databases", "title": "Name"}


def group_of(name: str) -> str:
    """Return the name of the folded group that a field stands in; empty if it is always seen."""
    return "" if name not in FORM_FIELDS or FORM_FIELDS[name].group == "main" else FORM_FIELDS[name].group


def _as_typed(kind: ValueKind, value: Any) -> str:
    if isinstance(kind, QueryRange):
        return kind.format(kind.check("", value))
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, (list, tuple)):
        return "".join(f"{each}\n" for each in value)  # commas belong to identifiers then
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
