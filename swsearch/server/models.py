"""Requests and responses of the HTTP API, as pydantic models.

FastAPI makes OpenAPI of these models. Parameters of a search come from the option tables, whose kinds read and check
the values. `SearchRequest` checks the request as a whole, so that the API has the sentences of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model
from pydantic_core import from_json

from swsearch.client.search_request import MAX_OUTPUTS, OPTION_NAMES, SERVER_ROWS, SearchRequest
from swsearch.client.urls import API_PATH
from swsearch.errors import OptionError
from swsearch.options.kinds import JOB_STATES, QUERY_FORMATS, Flag, Integer, JobState, JsonSchema, Real
from swsearch.options.row import Option
from swsearch.pipeline.table.values import IdentifierList
from swsearch.report import FORMATS
from swsearch.report.outputs import SAVED_FORMATS
from swsearch.server.errors import KINDS_BY_STATUS, STATUSES, ServerProblem
from swsearch.server.job_store import IDENTIFIER_LENGTH, LETTERS, Job, is_identifier
from swsearch.server.results import Format

MAX_WAIT_SECONDS = 60.0
"""Seconds that a request may wait for the end of a job."""

SHOWN_JOBS, MAX_JOBS = 100, 1000
"""Number of jobs of a list: by default, and at most."""

MAX_SUBJECTS = 5000
"""Number of hits of which whole subjects are sent at a time."""

MAX_JSON_VALUES = 1_000_000
"""Number of values of JSON: an empty list takes three bytes there, and a hundred when it is read."""

LISTS = frozenset({"database", *(name for name, row in SERVER_ROWS.items() if isinstance(row.kind, IdentifierList))})
"""Parameters that may be given several times."""

_RANGE = re.compile(r"\s*([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?\s*")

TextPairs = Sequence[tuple[str, str]]
"""Names and values, as a query string has them."""


def typed(parser: Callable[[Any], Any], schema: JsonSchema) -> Any:
    """Return the type of a parameter that a function reads, with its JSON Schema."""
    return Annotated[Any, BeforeValidator(parser), WithJsonSchema(schema)]


def parse_range(text: str) -> tuple[int, int] | None:
    """Return the first and the last of numbers such as 3 or 1-10; None of an empty text."""
    if not text:
        return None
    match = _RANGE.fullmatch(text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise OptionError("queries", text, "a number from 1, or two such as 1-10")
    return int(match[1]), int(match[2] or match[1])


QuerySpan = Annotated[
    Any, BeforeValidator(parse_range), WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,8}$"})
]


# searches


def _option_type(name: str, row: Option) -> Any:
    """Return the type of an option that comes as text; an empty text is no value."""
    if name in LISTS:

        def read_all(texts: list[str]) -> list[str]:
            return [each for text in texts for each in row.kind.parse(name, text)]

        return Annotated[list[str], BeforeValidator(read_all)]

    def read(text: str) -> Any:
        return row.kind.parse(name, text) if text.strip() or isinstance(row.kind, Flag) else None

    return typed(read, row.schema())


def _option_field(name: str) -> Any:
    if name not in SERVER_ROWS:  # rules, which JSON alone can state
        return str, Field(None, description="Rules of inclusion, in a body of JSON.")
    row = SERVER_ROWS[name]
    return _option_type(name, row), Field(None, description=row.description)


SearchParameters: type[BaseModel] = create_model(
    "SearchParameters", **{name: _option_field(name) for name in OPTION_NAMES}
)
"""Options of a search as text."""


class TextSearch(SearchParameters):  # type: ignore[misc,valid-type]
    """A search whose queries are the body, or a field of a form: all else stands beside them."""

    database: list[str] = Field([], description="Name of a database; several make a job for each.")
    query_format: str = Field(
        "auto", description="Format of the queries.", json_schema_extra={"enum": [*QUERY_FORMATS]}
    )
    title: str = Field("", description="Name of the search.")

    @classmethod
    def from_pairs(cls, pairs: TextPairs) -> Self:
        """Return the search that fields of a form state; raise `OptionError` if a value cannot be used."""
        check_names(pairs, tuple(cls.model_fields))
        fields: dict[str, Any] = {
            name: [each for key, each in pairs if key == name] if name in LISTS else value for name, value in pairs
        }
        try:
            return cls(**fields)
        except ValidationError as error:
            raise error.errors()[0]["ctx"]["error"] from None

    @property
    def names(self) -> list[str]:
        """Names of parameters of a search that were given."""
        return [name for name in TextSearch.model_fields if name in self.model_fields_set]

    def requests(self, queries: bytes) -> list[SearchRequest]:
        """Return the request for each database; raise `InputError` if a value cannot be used."""
        if not self.database:
            raise OptionError("database", None, "the name of a database", f"GET {API_PATH}/databases lists them")
        options = {name: value for name in OPTION_NAMES if (value := getattr(self, name)) is not None}
        names = _check_databases(self.database)
        return [SearchRequest(name, queries, self.query_format, options, self.title) for name in names]


def _wait(text: Any) -> float:
    seconds = Real().parse("wait", str(text))
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise OptionError("wait", seconds, f"seconds from 0 to {MAX_WAIT_SECONDS:g}")
    return seconds


Wait = Annotated[
    Any,
    BeforeValidator(_wait),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAX_WAIT_SECONDS, "default": 0}),
    Field(description="Seconds to wait for the job's end."),
]


class SubmitQuery(TextSearch):
    """Parameters beside a submitted job."""

    wait: Wait = 0.0


class FormatQuery(BaseModel):
    """Parameters that choose how results are written."""

    format: str = Field(
        "json",
        description=f"Format of the results; GET {API_PATH}/formats lists all.",
        json_schema_extra={"enum": [*FORMATS]},
    )
    columns: str = Field("", description="Columns of a table, with commas between them.")

    def chosen_format(self) -> Format:
        """Return the format; raise `OptionError` if there is no such format or column."""
        name, chosen = self.format.strip(), " ".join(self.columns.replace(",", " ").split())
        if len(name.split()) != 1:
            raise OptionError("format", self.format, f"one of {', '.join(FORMATS)}")
        return Format(f"{name} {chosen}".strip())


class JobResultsQuery(FormatQuery):
    """Parameters that choose which results of a job are sent, and how they are written."""

    queries: QuerySpan = Field(None, description="Only results of these queries: 3 or 1-10.")


class SearchQuery(TextSearch, FormatQuery):
    """Parameters beside a search whose results are sent at once."""


JsonOptions = Annotated[
    dict[str, Any] | None,
    WithJsonSchema({
        "type": "object", "additionalProperties": False,
        "properties": {**{name: row.schema() for name, row in SERVER_ROWS.items()}, "inclusion": {"type": "object"}},
    }),
]  # fmt: skip


class SearchBody(BaseModel):
    """A search as JSON; options are the parameters of `swsearch.search`. `SearchRequest` reads it."""

    database: str | list[str] = Field(description="Name of a database; several make a job for each.")
    queries: str | dict[str, str] = Field(description='FASTA, an alignment or profiles; or {"base64": bytes}.')
    query_format: str | None = Field(None, description="Format of the queries; auto is what the content says.")
    options: JsonOptions = Field(None, description="Options that differ from their defaults.")
    title: str | None = Field(None, description="Name of the search.", max_length=200)
    origin: dict[str, str] | None = Field(
        None, description="For reports: queries, command, started, files of options."
    )
    outputs: list[str] | None = Field(
        None, description="Files for the job to write: formats, with columns, or " + ", ".join(SAVED_FORMATS) + "."
    )
    header: bool | None = Field(None, description="Whether tables among the outputs begin with a line of names.")


def check_names(pairs: TextPairs, known: Sequence[str]) -> None:
    """Raise `OptionError` if a name is unknown, or given twice where one value is expected."""
    seen = set()
    for name, value in pairs:
        if name not in known:
            raise OptionError(name, value, f"one of {', '.join(known)}" if known else "no parameters here")
        if name in seen and name not in LISTS:
            raise OptionError(name, value, "it once")
        seen.add(name)


def parse_json_searches(body: bytes) -> list[SearchRequest]:
    """Return the request for each database of a body of JSON; raise `SwsearchError` if it cannot be used."""
    _check_json(body)
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ServerProblem("broken", f"the body is no JSON: {error}", expected="a JSON object") from None
    names = value.get("database") if isinstance(value, dict) else None
    if not isinstance(names, list):
        return [SearchRequest.from_json(value)]
    return [SearchRequest.from_json({**value, "database": name}) for name in _check_databases(names)]


def _check_databases(names: list[Any]) -> list[Any]:
    if not names:
        raise OptionError("database", [], "the name of a database")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise OptionError("database", name, "each database once")
    return names


def _check_json(body: bytes) -> None:
    """Refuse JSON that takes a hundred times its bytes when it is read; text in quotes, e.g. queries, does not."""
    if _n_values(body) <= MAX_JSON_VALUES:
        return
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') <= MAX_JSON_VALUES and _n_values(b"".join(plain.split(b'"')[::2])) <= MAX_JSON_VALUES:
        return
    expected = f"at most {MAX_JSON_VALUES:,} values"
    raise ServerProblem("too_large", f"the body is JSON of very many values, expected {expected}", expected=expected)


def _n_values(body: bytes) -> int:
    return sum(body.count(mark) for mark in (b"[", b"{", b",", b":"))


# parameters of jobs


def _identifier(text: str) -> str:
    if not is_identifier(text):
        raise ServerProblem("not_found", f"no job {text[:40]!r}; an identifier has 20 letters and digits")
    return text


_PATTERN = {"type": "string", "pattern": f"^[{LETTERS}]{{{IDENTIFIER_LENGTH}}}$"}

Identifier = typed(_identifier, _PATTERN)


def _states(text: str) -> list[str]:
    states = [state for state in text.split(",") if state]
    if unknown := [state for state in states if state not in JOB_STATES]:
        raise OptionError("state", unknown[0], f"one of {', '.join(JOB_STATES)}")
    return states or list(JOB_STATES)


States = typed(_states, {"type": "string", "enum": [*JOB_STATES]})


def _number(name: str, low: int, high: int) -> Any:
    kind = Integer(low, high)
    return typed(lambda text: kind.check(name, kind.parse(name, str(text))), kind.schema())


JobCount = _number("limit", 1, MAX_JOBS)

QueryNumber = _number("query", 1, 10**9)

OutputNumber = _number("number", 0, MAX_OUTPUTS - 1)


def parse_hits(text: str) -> list[int]:
    """Return numbers of hits such as 1,2,5-8."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or len(numbers) + last - first >= MAX_SUBJECTS:
            raise OptionError("hits", text, f"numbers from 1 such as 1,2,5-8, at most {MAX_SUBJECTS:,}")
        numbers += range(first, last + 1)
    return numbers


HitRanges = typed(parse_hits, {"type": "string", "pattern": "^[1-9][0-9]{0,3}(,[1-9][0-9]{0,3}){0,9}$"})


# responses


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProblemStated(_StrictModel):
    """Details of an error."""

    code: str = Field(description="Which problem it is: one of " + ", ".join(STATUSES) + ".")
    message: str = Field(description="What was wrong, where, what was expected and what to do.")
    option: str | None = Field(None, description="The option or parameter that it is about.")
    expected: str | None = Field(None, description="What that may be.")
    retry_after: int | None = Field(None, description="Seconds after which to ask again.")


class ErrorAnswer(_StrictModel):
    """Every answer of a status from 400."""

    error: ProblemStated


class JobLinks(_StrictModel):
    """Where to go on from a job."""

    self: str = Field(description="The job itself.")
    results: str = Field(description="Its results, when it is done; ?format= says how.")
    outputs: str = Field(description="Its files, by their numbers from 0.")
    queries: str = Field(description="What was sent.")
    subjects: str = Field(description="Whole sequences of hits, as FASTA.")
    cancel: str = Field(description="POST there stops it.")
    page: str = Field(description="For people.")


StatedIdentifier = Annotated[str, WithJsonSchema(_PATTERN)]

Time = Annotated[
    str | None,
    BeforeValidator(
        lambda seconds: (
            seconds and datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
            if isinstance(seconds, float)
            else seconds
        )
    ),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}),
]
"""A time of the Unix clock, in seconds, as an ISO time."""


class JobSchema(_StrictModel):
    """A job as it is now. Times are ISO 8601 in UTC."""

    id: StatedIdentifier = Field(description="Whoever knows it may read the job.")
    group: StatedIdentifier = Field(description="The first of the jobs that were submitted together.")
    database: str = Field(description="Name of the database.")
    title: str = Field(description="What whoever submitted it calls it.")
    state: JobState = Field(description="queued, running, then done, failed or cancelled.")
    progress: float = Field(description="Part that is done, from 0 to 1.", ge=0, le=1)
    queue_position: int | None = Field(description="Jobs that come before, while it is queued.")
    problem: ProblemStated | None = Field(description="Why it failed.")
    notes: list[str] = Field(description="What is to be told of it: doubts, queries without E-values.")
    n_queries: int = Field(description="Queries.")
    n_residues: int = Field(description="Residues of the queries.")
    n_hits: int | None = Field(description="Hits, when it is done.")
    cells: int = Field(description="Query residues times subject residues.")
    cells_done: int = Field(description="Those that were scored.")
    submitted: Annotated[Time, WithJsonSchema({"type": "string", "format": "date-time"})]
    started: Time
    ended: Time
    expires: Time = Field(description="When it is removed.")
    is_mine: bool = Field(description="Whether whoever asks has submitted it, and may cancel or remove it.")
    options: dict[str, Any] = Field(description="As they were given; all others have their defaults.")
    outputs: list[str] = Field(description="Formats of its files outputs/0, outputs/1 ..., there when it is done.")
    links: JobLinks

    @classmethod
    def from_job(cls, job: Job, client: str, root: str, *, is_brief: bool = False, **more: Any) -> Self:
        """Return a job as a client sees it, without long options if brief; ``root`` stands before all paths."""
        place = f"{root}{API_PATH}/jobs/{job.identifier}"
        links = {name: f"{place}/{name}" for name in ("results", "outputs", "queries", "subjects", "cancel")}
        values = {name: getattr(job, name) for name in JobSchema.model_fields if hasattr(job, name)}
        options = {k: v for k, v in job.options.items() if not is_brief or not isinstance(v, (list, dict))}
        return cls(**{
            **values, "id": job.identifier, "is_mine": job.client == client, "options": options,
            "links": {"self": place, **links, "page": f"{root}/jobs/{job.identifier}"}, **more,
        })  # fmt: skip


class SubmittedAnswer(JobSchema):
    """The job that was submitted; with several databases the first."""

    jobs: list[StatedIdentifier] = Field(description="All jobs of the group, one for each database.")


class JobsAnswer(_StrictModel):
    """Jobs, the last first."""

    jobs: list[JobSchema]


class DatabaseAnswer(BaseModel):
    """A database of the server."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(description="What requests call it.")
    title: str = Field(description="Name of its file.")
    n_subjects: int = Field(description="Sequences.")
    n_residues: int = Field(description="Their residues; of DNA those of its six reading frames.")
    nucleotides: int | None = Field(None, description="Of DNA alone.")
    genetic_code: int | None = Field(None, description="Of DNA alone: NCBI's number of the code of its frames.")
    state: str = Field(description="ready; replaced: its file is another one now, the open one is searched; failed.")
    problem: str = Field("", description="What is wrong with it.")
    engine: str = Field(description="What scores.")
    identity: str | None = Field(None, description="Checksum of its content.")
    sha256: str | None = Field(None, description="Checksum of its file.")


class DatabasesAnswer(_StrictModel):
    """All databases, in the order of the command line."""

    databases: list[DatabaseAnswer]


class FormatAnswer(_StrictModel):
    """A format of results."""

    format: str = Field(description="What it is asked for by.")
    names: list[str] = Field(description="Other names for it.")
    description: str
    content_type: str
    has_columns: bool = Field(description="Whether columns can be chosen.")
    is_binary: bool
    is_of_one_query: bool = Field(description="Whether it holds one query's results; choose it with queries=.")


class FormatsAnswer(_StrictModel):
    """All formats, and all columns of tables."""

    formats: list[FormatAnswer]
    columns: list[str] = Field(description="Columns of tables; std stands for twelve of them.")


class HealthAnswer(BaseModel):
    """How the server is."""

    model_config = ConfigDict(extra="allow")

    ok: bool = Field(description="Whether all is as it should be.")


class ReadyAnswer(_StrictModel):
    """Whether the server takes requests."""

    ready: bool


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of responses of these statuses."""
    return {status: {"description": KINDS_BY_STATUS[status].description, "model": ErrorAnswer} for status in statuses}
