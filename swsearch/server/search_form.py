"""The search form: fields from the option tables, form data, example queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from starlette.datastructures import FormData, UploadFile

from swsearch.alphabet import PROTEIN
from swsearch.client.search_request import MAX_TITLE, SearchRequest
from swsearch.errors import OptionError, SequenceError, SwsearchError, printable
from swsearch.matrices import FALLBACK_GAP_COSTS, GAP_COSTS
from swsearch.options.kinds import QueryRange, ValueKind, Widget
from swsearch.options.row import Heading, Option, rows_of
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable
from swsearch.scoring import matrix_names
from swsearch.server.errors import ServerProblem, problem_of

NOT_ON_THE_PAGE = {
    "distribution": "always on, since the report draws it",
    "inclusion": "rules that the command line has no options for either",
    "keep_profiles": "saves profiles, which no page shows; iterations of one search have theirs inside",
}
"""Options without a field in the form, and why."""

GROUP_TITLES = {
    each.name.lower(): each.value
    for each in (
        Heading.QUERIES, Heading.SCORING, Heading.HITS, Heading.FILTERS, Heading.TRANSLATION, Heading.ITERATIONS
    )
}  # fmt: skip
"""Groups of fields that can be folded, in their order; the group "main" stands above them."""

MAX_FILE_TEXT = 1 << 20
"""Bytes of queries that the form shows as text; a larger file must be chosen again."""

_HEADER = re.compile(rb"^>[ \t]*([^\s\x01]*)", re.MULTILINE)


@dataclass(frozen=True)
class PageField:
    """A field of the form.

    ``default`` is the meaning of an empty field; for a choice, the word that is selected first.
    """

    name: str
    label: str
    help: str
    widget: Widget
    default: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    group: str = "scoring"
    kind: ValueKind = ValueKind()

    @classmethod
    def from_option(cls, row: Option) -> PageField:
        """Return the field of an option."""
        form = row.form
        assert form is not None and row.heading is not None
        default = f"{row.default:g}" if isinstance(row.default, float) else str(row.default)
        if isinstance(row.default, bool) or row.name == "matrix":
            default = ""
        elif row.default is None:
            default = form.unset or row.unset
        return cls(
            row.name, form.label, form.help or row.help, row.kind.widget, default, form.choices or {},
            form.group or row.heading.name.lower(), row.kind,
        )  # fmt: skip

    def parse(self, text: str) -> Any:
        """Return text as a request has it; None if it means the same as an empty field."""
        trimmed = text.strip()
        if not trimmed or (self.widget == "choice" and trimmed == self.default):
            return None
        value = text if self.widget == "text" else self.kind.parse(self.name, trimmed)
        return None if value == [] or value is False else value

    def format(self, value: Any) -> str:
        """Return a value of a request as text of the field."""
        if isinstance(self.kind, QueryRange):
            return self.kind.format(self.kind.check("", value))
        if isinstance(value, bool):
            return "on" if value else ""
        if isinstance(value, (list, tuple)):
            return "".join(f"{each}\n" for each in value)  # an identifier may contain a comma
        return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


FORM_FIELDS = {
    row.name: PageField.from_option(row)
    for row in (*rows_of(QueryTable).values(), *rows_of(SearchTable).values())
    if row.form is not None
} | {
    "matrix_text": PageField(
        "matrix_text",
        "Custom matrix",
        "In NCBI's format: letters above the columns and before the rows. It overrides all other matrices.",
        "text",
    )
}
"""Every field of an option, by name."""


@cache
def matrix_costs() -> dict[str, tuple[int, int]]:
    """Return the default gap costs of every matrix; our own matrices come first."""
    return {name: GAP_COSTS.get(name, FALLBACK_GAP_COSTS) for name in (*GAP_COSTS, *matrix_names(PROTEIN))}


def choices_of(field: PageField) -> Mapping[str, str]:
    """Return the words of a menu with their labels."""
    if field.name != "matrix":
        return field.choices
    return {"": "from the preset"} | {name: f"{name} ({a}/{b})" for name, (a, b) in matrix_costs().items()}


@dataclass(frozen=True)
class FilledForm:
    """Content of the form."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Texts of the fields in `FORM_FIELDS`."""
    databases: tuple[str, ...] = ()
    queries: str = ""
    """Pasted queries."""
    file_name: str = ""
    file_content: bytes = b""
    queries_of: str = ""
    """Identifier of a job whose queries are searched, without pasted queries or a file."""
    title: str = ""
    left_out: tuple[str, ...] = ()
    """Options of an earlier search that the form has no fields for."""

    @classmethod
    async def from_fields(cls, sent: FormData) -> FilledForm:
        """Return what a browser sent; raise `ServerProblem` for an unknown field."""
        values: dict[str, str] = {}
        texts: dict[str, Any] = {}
        databases: list[str] = []
        file_name, content = "", b""
        for name, value in sent.multi_items():
            if isinstance(value, UploadFile):
                file_name, content = value.filename or "", await value.read()
            elif name == "database":
                databases.append(value)
            elif name in FORM_FIELDS:
                values[name] = value
            elif name in ("queries", "queries_of", "title"):
                texts[name] = value
            elif name != "file" or value:
                raise ServerProblem("broken", f"unknown form field {name[:40]!r}; open the page again")
        file_name = printable(re.split(r"[/\\]", file_name)[-1], "?")[:MAX_TITLE]
        return cls(values, tuple(dict.fromkeys(databases)), file_name=file_name, file_content=content, **texts)

    @classmethod
    def from_request(cls, request: SearchRequest, identifier: str, databases: tuple[str, ...]) -> FilledForm:
        """Return the form of a job; it names the job if the queries are too long to show."""
        options = dict(request.options)
        if isinstance(options.get("matrix"), Mapping):
            options["matrix_text"] = options.pop("matrix").get("text", "")
        values = {name: each.format(options[name]) for name, each in FORM_FIELDS.items() if name in options}
        left_out = tuple(name for name in options if name not in (*values, "distribution"))
        values["query_format"] = request.query_format
        filled = cls(values, databases, title=request.title, left_out=left_out)
        if len(request.queries) > MAX_FILE_TEXT:
            return replace(filled, queries_of=identifier)
        return replace(filled, queries=request.queries.decode("utf-8", errors="replace"))

    def again(self) -> FilledForm:
        """Return the form as it is shown again, with a short file as text."""
        if not self.file_content or self.queries.strip() or len(self.file_content) > MAX_FILE_TEXT:
            return replace(self, file_content=b"")
        return replace(self, queries=self.file_content.decode("utf-8", errors="replace"), file_content=b"")

    @property
    def has_lost_file(self) -> bool:
        """Whether the form does not show the file again."""
        return bool(self.file_name) and not self.queries.strip()

    def content(self) -> bytes:
        """Return the pasted queries or the file; raise `OptionError` for both."""
        pasted = self.queries.replace("\r\n", "\n").encode("utf-8", errors="surrogatepass")
        if pasted.strip() and self.file_content.strip():
            raise OptionError("queries", self.file_name, "pasted queries or a file, not both", "remove one of them")
        return pasted if pasted.strip() else self.file_content

    def requests(self, queries: bytes) -> list[SearchRequest]:
        """Return a request for each database; `field_of` names the field of an error."""
        if not queries.strip():
            raise OptionError("queries", "none", "protein sequences as FASTA: paste them, drop a file or choose one")
        if not self.databases:
            raise OptionError("database", "none", "at least one database: tick it")
        texts = dict(self.values)
        own_matrix = texts.pop("matrix_text", "").strip("\r\n").replace("\r\n", "\n")
        query_format = texts.pop("query_format", "") or "auto"
        values = {name: FORM_FIELDS[name].parse(text) for name, text in texts.items()}
        options: dict[str, Any] = {"distribution": True} | {
            name: value for name, value in values.items() if value is not None
        }
        if own_matrix:
            options["matrix"] = {"name": "custom", "text": f"{own_matrix}\n"}
        title = printable(self.title.strip())[:MAX_TITLE] or default_title(queries, self.file_name)
        origin = {"queries": self.file_name or title}
        return [SearchRequest(each, queries, query_format, options, title, origin) for each in self.databases]


def default_title(queries: bytes, file_name: str) -> str:
    """Return the title of a search without one: its file, or its first query and the number of others."""
    if file_name:
        return printable(file_name, "?")[:MAX_TITLE]
    first = _HEADER.search(queries)
    name = printable(first[1].decode("utf-8", "replace"), "?") if first is not None else ""
    others = queries.count(b"\n>") - (0 if queries.startswith(b">") or not first else 1)
    tail = f" and {others:,} more" if others > 0 else ""
    return (name or "pasted")[: MAX_TITLE - len(tail)] + tail


_LABELS = {"queries": "Queries", "database": "Databases", "title": "Name"} | {
    name: each.label for name, each in FORM_FIELDS.items()
}

_FIELD_OF_OPTION = {
    "matrix.text": "matrix_text",
    "matrix custom": "matrix_text",
    "origin.queries": "queries",
    "residues": "queries",
}


def field_of(error: SwsearchError) -> str:
    """Return the name of the field that an error is about, or an empty string."""
    if isinstance(error, SequenceError):
        return "queries"
    option = problem_of(error).option or str(error).partition(":")[0]
    name = _FIELD_OF_OPTION.get(option, option)
    return name if name in _LABELS else ""


def without_name(message: str, name: str) -> tuple[str, str]:
    """Return a message that begins with the name of a field as it stands above the form, and at the field."""
    head, colon, rest = message.partition(": ")
    if name not in _LABELS or not colon or head not in (name, name.replace("_text", "")):
        return message, message
    return f"{_LABELS[name]}: {rest}", f"{rest[:1].upper()}{rest[1:]}"


class Example(NamedTuple):
    """Queries to try, from ``static/examples.fasta``, which names their source."""

    key: str
    """Name in addresses."""
    label: str
    identifiers: tuple[str, ...]
    values: Mapping[str, str] = {}
    """Texts of fields of the form."""

    @property
    def fasta(self) -> str:
        """Its records."""
        text = (files("swsearch.server") / "static" / "examples.fasta").read_text(encoding="ascii")
        records = {each.split(maxsplit=1)[0]: each.rstrip("\n") for each in text.split("\n>")[1:]}
        return "".join(f">{records[name]}\n" for name in self.identifiers)


EXAMPLES = {
    each.key: each
    for each in (
        Example("insulin", "Insulin", ("P01308",)),
        Example("lysozyme", "Lysozyme", ("P00698",)),
        Example("globins", "Four globins", ("P69905", "P68871", "P02100", "P02144")),
        Example("glucagon", "A peptide: glucagon", ("P01275_53-81",), {"preset": "short"}),
    )
}
"""Examples by key."""
