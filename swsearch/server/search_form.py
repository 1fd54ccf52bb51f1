"""The search form: fields from the option tables, form data, example queries."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from starlette.datastructures import FormData, UploadFile

from swsearch.alphabet import DNA, PROTEIN
from swsearch.client.search_request import MAX_TITLE, SearchRequest
from swsearch.db.foreign_formats import FILE_HEAD_BYTES, foreign_bytes, foreign_text
from swsearch.db.input_stream import ByteSource, compression_of
from swsearch.errors import SequenceError, SwsearchError, printable
from swsearch.matrices import FALLBACK_GAP_COSTS, GAP_COSTS
from swsearch.options.kinds import QueryRange, ValueKind, Widget
from swsearch.options.row import Heading, Option
from swsearch.profiles.formats import HEAD_BYTES, detect_format
from swsearch.scoring import matrix_names
from swsearch.server.errors import ServerProblem, problem_of
from swsearch.server.page_words import FORM_ROWS, LABELS, LOOKS_LIKE_DNA, in_page_words, with_choices

NOT_ON_THE_PAGE = {
    "contexts": "contexts",  # the preset asks for them
    "distribution": "all scores",  # always on, since the report draws it
    "inclusion": "inclusion rules",  # the command line has no options for them either
    "keep_profiles": "saved profiles",  # no page shows them; iterations of one search have theirs inside
}
"""Options without a field in the form, in words."""

GROUP_TITLES = {
    each.name.lower(): each.value
    for each in (
        Heading.QUERIES, Heading.SCORING, Heading.HITS, Heading.FILTERS, Heading.TRANSLATION, Heading.ITERATIONS
    )
}  # fmt: skip
"""Groups of fields that can be folded, in their order; the group "main" stands above them."""

NO_QUERIES = "Paste a sequence or choose a file."

_SEVERAL = "For several sequences, put a line such as >name above each."

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
        if isinstance(row.default, bool) or row.name in ("matrix", "preset"):
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


FORM_FIELDS = {name: PageField.from_option(row) for name, row in FORM_ROWS.items()} | {
    "matrix_text": PageField(
        "matrix_text",
        LABELS["matrix_text"],
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
    file_sha256: str = ""
    """Checksum of the file as it was sent."""
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
        return cls(
            values, tuple(dict.fromkeys(databases)), file_name=file_name, file_content=content,
            file_sha256=sha256(content).hexdigest(), **texts,
        )  # fmt: skip

    @classmethod
    def from_request(cls, request: SearchRequest, identifier: str, databases: tuple[str, ...]) -> FilledForm:
        """Return the form of a job; it names the job if the queries are too long to show."""
        options = dict(request.options)
        if isinstance(options.get("matrix"), Mapping):
            options["matrix_text"] = options.pop("matrix").get("text", "")
        values = {name: each.format(options[name]) for name, each in FORM_FIELDS.items() if name in options}
        left_out = tuple(NOT_ON_THE_PAGE.get(name, name) for name in options if name not in (*values, "distribution"))
        values["query_format"] = request.query_format
        filled = cls(values, databases, title=request.title, left_out=left_out)
        if len(request.queries) > MAX_FILE_TEXT:
            return replace(filled, queries_of=identifier)
        return replace(filled, queries=request.queries.decode("utf-8", errors="replace"))

    def again(self) -> FilledForm:
        """Return the form as it is shown again, with a short file of text."""
        is_text = b"\0" not in self.file_content and not compression_of(self.file_content)
        if not self.file_content or self.queries.strip() or len(self.file_content) > MAX_FILE_TEXT or not is_text:
            return replace(self, file_content=b"")
        return replace(self, queries=self.file_content.decode("utf-8", errors="replace"), file_content=b"")

    @property
    def has_lost_file(self) -> bool:
        """Whether the form does not show the file again."""
        return bool(self.file_name) and not self.queries.strip()

    @property
    def is_compressed(self) -> bool:
        """Whether the file is gzip data."""
        return self.file_content.startswith(b"\x1f\x8b")

    def decompressed(self) -> FilledForm:
        """Return the form with the content of a gzip file."""
        return replace(self, file_content=gzip.decompress(self.file_content))

    def content(self) -> bytes:
        """Return the pasted queries or the file; raise `ServerProblem` for both."""
        pasted = self.queries.replace("\r\n", "\n").encode("utf-8", errors="surrogatepass")
        if pasted.strip() and self.file_content.strip():
            raise _problem(f"Remove the pasted text or the file {self.file_name}: only one of them can be searched.")
        if foreign := foreign_bytes(self.file_content[:FILE_HEAD_BYTES], is_file=True):
            raise _problem(f"The file {foreign}.")
        if kind := compression_of(self.file_content):
            raise _problem(f"The file is compressed with {kind}. Decompress it, or send it as .gz.")
        return pasted if pasted.strip() else self.file_content

    def requests(self, queries: bytes) -> list[SearchRequest]:
        """Return a request for each database; `explain` names the field of an error."""
        if not queries.strip():
            raise _problem(NO_QUERIES)
        if not self.databases:
            raise _problem("Choose at least one database.", "database")
        texts = dict(self.values)
        own_matrix = texts.pop("matrix_text", "").strip("\r\n").replace("\r\n", "\n")
        query_format = texts.pop("query_format", "") or "auto"
        values = {name: FORM_FIELDS[name].parse(text) for name, text in texts.items()}
        if query_format in ("auto", "fasta"):
            queries = with_header(queries, is_dna=bool(values.get("translate")))
        options: dict[str, Any] = {"distribution": True} | {
            name: value for name, value in values.items() if value is not None
        }
        if own_matrix:
            options["matrix"] = {"name": "custom", "text": f"{own_matrix}\n"}
        title = printable(self.title.strip())[:MAX_TITLE] or default_title(queries, self.file_name)
        origin = {"queries": self.file_name or title} | ({"sha256": self.file_sha256} if self.file_name else {})
        return [SearchRequest(each, queries, query_format, options, title, origin) for each in self.databases]


_FLAT_LINES = re.compile(rb"\A\s*(?:ORIGIN|SQ   )[^\n]*\n|^//\s*\Z", re.MULTILINE)
"""Lines around a sequence in flat files of GenBank and UniProt."""

_ACCESSION = re.compile(
    rb"\s*(?:[A-Z]{1,3}_?\d{4,}(?:\.\d+)?|[OPQ]\d[A-Z\d]{3}\d|[A-NR-Z]\d[A-Z\d]{3}\d)(?:[\s,;]|\Z)", re.IGNORECASE
)

_LINE_LETTERS = re.compile(rb"(.{60})(?=.)")

_DIGITS = b"0123456789"

_WITHOUT_DIGITS = bytes.maketrans(_DIGITS, b" " * len(_DIGITS))


def with_header(queries: bytes, is_dna: bool) -> bytes:
    """Return a sequence without a header as FASTA, and queries in any format as they are.

    Digits, blanks and line ends are layout, as in flat files of GenBank and UniProt. It raises `SwsearchError` for
    text that is no sequence.
    """
    if re.match(rb"(\xef\xbb\xbf)?\s*[>;]", queries):
        return queries
    text = _FLAT_LINES.sub(b"\n", re.sub(rb"\r\n?", b"\n", queries.removeprefix(b"\xef\xbb\xbf")))
    if b"\n>" in text or foreign_text(text.lstrip()[:FILE_HEAD_BYTES]):
        return queries
    if detect_format(ByteSource("queries", iter([text[:HEAD_BYTES]]))) != "fasta":
        return queries
    if _ACCESSION.match(text):
        raise _problem("This looks like an accession. Paste the sequence itself.")
    if any(map(_is_prose, text[:HEAD_BYTES].translate(None, _DIGITS).splitlines())):
        raise _problem(f"This looks like text. Paste a sequence. {_SEVERAL}")
    if re.search(rb"[^\s\d][ \t]*\n[ \t]*\n\s*[^\s\d]", text):
        raise _problem(f"There is a blank line inside the sequence. {_SEVERAL}")
    try:
        (DNA if is_dna else PROTEIN).encode(text.translate(_WITHOUT_DIGITS), source="queries")
    except SequenceError as error:
        remedy = f'; untick "{LABELS["translate"]}" for proteins' if is_dna else ""
        raise SequenceError(error.source, error.problem + remedy, line=error.line) from None
    letters = text.translate(None, _DIGITS + b" \t\n\v\f")
    if not letters:
        raise _problem(NO_QUERIES)
    return b">query\n" + _LINE_LETTERS.sub(rb"\1\n", letters) + b"\n"


def _is_prose(line: bytes) -> bool:
    """Return whether a line has words as sentences have, not blocks of equal length with a shorter one at the end."""
    words = line.split()
    return len({len(word) for word in words[:-1]}) > 1 and re.search(b"[ou]", line) is not None


def _problem(message: str, field: str = "queries") -> ServerProblem:
    """Return a problem of a field in the page's own words."""
    return ServerProblem("wrong", message, option=field)


def default_title(queries: bytes, file_name: str) -> str:
    """Return the title of a search without one: its file, or its first query and the number of others."""
    if file_name:
        return printable(file_name, "?")[:MAX_TITLE]
    first = _HEADER.search(queries)
    name = printable(first[1].decode("utf-8", "replace"), "?") if first is not None else ""
    others = queries.count(b"\n>") - (0 if queries.startswith(b">") or not first else 1)
    tail = f" and {others:,} more" if others > 0 else ""
    return (name or "pasted")[: MAX_TITLE - len(tail)] + tail


_FIELD_OF_OPTION = {
    "matrix.text": "matrix_text",
    "matrix custom": "matrix_text",
    "origin.queries": "queries",
    "residues": "queries",
}


def explain(error: SwsearchError, message: str) -> tuple[str, str, str]:
    """Return the field that an error is about (or an empty text), its message above the form and at the field."""
    words = in_page_words(message)
    if words == LOOKS_LIKE_DNA:
        return "translate", words, words
    head, colon, rest = message.partition(": ")
    option = problem_of(error).option or head
    name = _FIELD_OF_OPTION.get(option, option)
    if isinstance(error, SequenceError):
        name, head, rest = "queries", "queries", message.removeprefix(f"{error.source}: ")
    if name not in LABELS:
        return "", words, words
    if not colon or head not in (name, option, name.removesuffix("_text")):
        return name, words, words
    rest = in_page_words(with_choices(rest, name))
    return name, f"{LABELS[name]}: {rest}", f"{rest[:1].upper()}{rest[1:]}"


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
