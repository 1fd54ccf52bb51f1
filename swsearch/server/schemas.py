"""What the API's answers hold, for its description: OpenAPI is made of these, and tests hold answers against them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from swsearch.server.jobs import IDENTIFIER_LENGTH, LETTERS, JobState
from swsearch.server.problems import STATUSES

Identifier = Annotated[str, Field(pattern=f"^[{LETTERS}]{{{IDENTIFIER_LENGTH}}}$")]


class _Stated(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProblemStated(_Stated):
    """What was wrong."""

    code: str = Field(description="Which problem it is: one of " + ", ".join(STATUSES) + ".")
    message: str = Field(description="What was wrong, where, what was expected and what to do.")
    option: str | None = Field(None, description="The option or parameter that it is about.")
    expected: str | None = Field(None, description="What that may be.")
    retry_after: int | None = Field(None, description="Seconds after which to ask again.")


class ErrorAnswer(_Stated):
    """Every answer of a status from 400."""

    error: ProblemStated


class JobLinks(_Stated):
    """Where to go on from a job."""

    self: str = Field(description="The job itself.")
    results: str = Field(description="Its results, when it is done; ?format= says how.")
    queries: str = Field(description="What was sent.")
    subjects: str = Field(description="Whole sequences of hits, as FASTA.")
    cancel: str = Field(description="POST there stops it.")
    page: str = Field(description="For people.")


class JobAnswer(_Stated):
    """A job as it is now. Times are ISO 8601 in UTC."""

    id: Identifier = Field(description="Whoever knows it may read the job.")
    group: Identifier = Field(description="The first of the jobs that were submitted together.")
    database: str = Field(description="Name of the database.")
    title: str = Field(description="What whoever submitted it calls it.")
    state: JobState = Field(description="queued, running, then done, failed or cancelled.")
    progress: float = Field(description="Part that is done, from 0 to 1.", ge=0, le=1)
    place: int | None = Field(description="Jobs that come before, while it is queued.")
    problem: ProblemStated | None = Field(description="Why it failed.")
    notes: list[str] = Field(description="What is to be told of it: doubts, queries without E-values.")
    n_queries: int = Field(description="Queries.")
    n_residues: int = Field(description="Residues of the queries.")
    n_hits: int | None = Field(description="Hits, when it is done.")
    cells: int = Field(description="Query residues times subject residues.")
    cells_done: int = Field(description="Those that were scored.")
    submitted: datetime
    begun: datetime | None
    ended: datetime | None
    expires: datetime | None = Field(description="When it is removed.")
    is_mine: bool = Field(description="Whether whoever asks has submitted it, and may cancel or remove it.")
    options: dict[str, Any] = Field(description="As they were given; all others have their defaults.")
    links: JobLinks


class SubmittedAnswer(JobAnswer):
    """The job that was submitted; with several databases the first."""

    jobs: list[Identifier] = Field(description="All jobs of the group, one for each database.")


class JobsAnswer(_Stated):
    """Jobs, the last first."""

    jobs: list[JobAnswer]


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


class DatabasesAnswer(_Stated):
    """All databases, in the order of the command line."""

    databases: list[DatabaseAnswer]


class FormatAnswer(_Stated):
    """A format of results."""

    format: str = Field(description="What it is asked for by.")
    names: list[str] = Field(description="Other names for it.")
    description: str
    content_type: str
    has_columns: bool = Field(description="Whether columns can be chosen.")
    is_binary: bool
    is_of_one_query: bool = Field(description="Whether it holds one query's results; choose it with queries=.")


class FormatsAnswer(_Stated):
    """All formats, and all columns of tables."""

    formats: list[FormatAnswer]
    columns: list[str] = Field(description="Columns of tables; std stands for twelve of them.")


class HealthAnswer(BaseModel):
    """How the server is."""

    model_config = ConfigDict(extra="allow")

    ok: bool = Field(description="Whether all is as it should be.")


class ReadyAnswer(_Stated):
    """Whether the server takes requests."""

    ready: bool


class AskedSearch(BaseModel):
    """A search that is asked for; options are the parameters of `swsearch.search`."""

    database: str | list[str] = Field(description="Name of a database; several make a job for each.")
    queries: str | dict[str, str] = Field(description='FASTA, an alignment or profiles; or {"base64": bytes}.')
    query_format: str | None = Field(None, description="What queries holds; auto is what the content says.")
    options: dict[str, Any] | None = Field(None, description="What is to differ from the defaults.")
    title: str | None = Field(None, description="What you call it.", max_length=200)
    origin: dict[str, str] | None = Field(None, description="For reports: queries, command, begun.")
