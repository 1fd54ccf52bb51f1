"""The HTTP API: functions whose parameters and types define the routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from swsearch.client.search_request import SearchRequest
from swsearch.client.urls import API_PATH
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import JOB_STATES
from swsearch.report import OUTPUT_FORMATS
from swsearch.report.tabular import COLUMNS
from swsearch.server import models
from swsearch.server.errors import ServerProblem
from swsearch.server.jobs import Jobs
from swsearch.server.results import FASTA_TYPE
from swsearch.server.streaming import disposition, stream_response
from swsearch.server.templating import root_of

JSON_TYPE, FORM_TYPE, PARTS_TYPE = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"

SEQUENCE_TYPES = ("text/x-fasta", "text/plain", "application/octet-stream", "application/x-fasta", "")
"""Types of a request's body."""

MAX_FIELDS = 100
"""Fields of a form."""

OF_ANY_ROUTE = models.problems(401, 403, 422, 503)
SUBMITTING = models.problems(400, 404, 413, 415, 429, 507)
OF_A_JOB = models.problems(404, 410)
OF_A_DONE_JOB = OF_A_JOB | models.problems(409)

EXAMPLE = {
    "database": "sprot",
    "queries": ">query\nMKVLAAGIVGWWHHKDEFRTYPCNQS\n",
    "options": {"evalue": 0.001, "max_hits": 100},
    "title": "An example",
}
"""A body of JSON."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

ReadSearches = Callable[[], list[SearchRequest]]
"""Reads the searches of a body, in a thread."""


def jobs_of(request: Request) -> Jobs:
    """Return the jobs of the server."""
    jobs: Jobs = request.app.state.jobs
    return jobs


def client_of(request: Request) -> str:
    """Return the client, as the middleware knows it."""
    return str(request.state.client)


async def check_query(request: Request) -> None:
    """Refuse query parameters that the description of the route does not name, or that are given twice."""
    paths = request.app.openapi()["paths"]
    described = paths[request.scope["route"].path].get(request.method.lower(), {})
    parameters = [each["name"] for each in described.get("parameters", ()) if each["in"] == "query"]
    models.check_names(request.query_params.multi_items(), parameters)


async def read_body(request: Request, beside: models.TextSearch) -> ReadSearches:
    """Read the body: JSON, a form, or sequences with all else beside them as parameters."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ServerProblem("wrong_type", "the body is compressed, expected it as it is")
    kind = media_type(request)
    if kind in SEQUENCE_TYPES or (kind == FORM_TYPE and (await request.body())[:1] == b">"):  # curl calls it a form
        queries = await request.body()
        return lambda: beside.requests(queries)
    if beside.names and kind in (JSON_TYPE, FORM_TYPE, PARTS_TYPE):
        raise OptionError(beside.names[0], request.query_params[beside.names[0]], "it in the body")
    if kind == JSON_TYPE:
        body = await request.body()
        return lambda: models.parse_json_searches(body)
    if kind in (FORM_TYPE, PARTS_TYPE):
        queries, fields = _queries_of(await read_form(request))
        return lambda: models.TextSearch.from_pairs(fields).requests(queries)
    expected = ", ".join((JSON_TYPE, PARTS_TYPE, *SEQUENCE_TYPES[:2]))
    message = f"Content-Type: got {kind[:80]!r}, expected {expected}"
    raise ServerProblem("wrong_type", message, option="Content-Type", expected=expected)


def media_type(request: Request) -> str:
    """Return the type of a request's body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_form(request: Request) -> list[tuple[str, str | bytes]]:
    """Return the fields of a form; the content of a file is bytes."""
    try:
        async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=1 << 62) as form:
            return [
                (name, await value.read() if isinstance(value, UploadFile) else value)
                for name, value in form.multi_items()
            ]
    except HTTPException as error:
        raise ServerProblem("broken", f"the form cannot be read: {error.detail}") from None


def _queries_of(form: list[tuple[str, str | bytes]]) -> tuple[bytes, list[tuple[str, str]]]:
    """Return the queries of a form, which are text or a file, and the other fields."""
    queries: list[bytes] = []
    fields: list[tuple[str, str]] = []
    for name, value in form:
        if name == "queries":
            queries.append(value if isinstance(value, bytes) else value.encode())
        elif isinstance(value, bytes):
            raise OptionError(name, "a file", "text; the file of queries is the field queries")
        else:
            fields.append((name, value))
    if len(queries) != 1:
        raise InputError(f"queries: got {len(queries)} fields, expected one with FASTA, an alignment or profiles")
    return queries[0], fields


def _body() -> dict[str, Any]:
    """Return the description of the bodies of a search, of which FastAPI knows one kind for a route."""
    text = {"type": "string"}
    fields = models.TextSearch.model_json_schema()["properties"] | {"queries": text}
    return {"requestBody": {"required": True, "content": {
        JSON_TYPE: {"schema": models.SearchBody.model_json_schema(), "example": EXAMPLE},
        "text/x-fasta": {"schema": text, "example": EXAMPLE["queries"]},
        PARTS_TYPE: {"schema": {"type": "object", "properties": fields, "required": ["queries", "database"]}},
    }}}  # fmt: skip


def _files(*types: str) -> dict[int | str, dict[str, Any]]:
    """Return the description of a response that is a file."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    content = {each: {"schema": {"type": "object"}} if each == JSON_TYPE else binary for each in types}
    return {200: {"description": "A file.", "content": content}}


RESULTS = _files(*sorted({each.media_type for each in OUTPUT_FORMATS}))

OfJob = Annotated[models.Identifier, Path(description="Identifier of the job.")]

_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})?")
"""The one form of Range that is taken."""

SubmissionKey = Annotated[
    str, Header(alias="Idempotency-Key", max_length=100, description="Any text, another one for each submission.")
]


class _DocumentedRoute(APIRoute):
    """A route whose docstring is its summary and its description in OpenAPI; answers have only the fields set."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        summary, _, description = (inspect.getdoc(endpoint) or "").partition("\n")
        documented = {"summary": summary.rstrip("."), "description": " ".join(description.split())}
        super().__init__(path, endpoint, **{**options, **documented, "response_model_exclude_unset": True})


router = APIRouter(
    prefix=API_PATH, route_class=_DocumentedRoute, dependencies=[Depends(check_query)], responses=OF_ANY_ROUTE
)


def _file_route(path: str, method: str = "GET", **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Return the decorator of a route that answers with a file."""
    return router.api_route(path, methods=[method], tags=["jobs"], response_class=Response, **options)


@router.get("/databases", tags=["server"])
def databases(request: Request) -> models.DatabasesAnswer:
    """List the databases.

    Names, counts, checksums and engines, in the order of the command line.
    """
    descriptions = [each.to_json() for each in jobs_of(request).databases.values()]
    return models.DatabasesAnswer(databases=[models.DatabaseAnswer(**each) for each in descriptions])


@router.get("/databases/{name}", tags=["server"], responses=models.problems(404))
def database(
    request: Request, name: Annotated[str, Path(description="Name of a database.")]
) -> models.DatabaseAnswer:
    """Describe a database.

    One of the list.
    """
    databases = jobs_of(request).databases
    if name not in databases:
        message = f"no database {name[:80]!r}, expected one of {', '.join(databases)}"
        raise ServerProblem("not_found", message, option="database")
    return models.DatabaseAnswer(**databases[name].to_json())


@router.post("/jobs", status_code=202, tags=["jobs"], responses=SUBMITTING, openapi_extra=_body())
async def submit(
    request: Request, response: Response, beside: Annotated[models.SubmitQuery, Query()], key: SubmissionKey = ""
) -> models.SubmittedAnswer:
    """Submit a job.

    The body is JSON; or sequences, with everything else as query parameters; or a form with the field
    queries, text or a file, and everything else beside it. Several databases make a job for each. The job is
    on disk when this is answered. A request that is repeated with its Idempotency-Key is answered with the jobs of
    the first.
    """
    jobs, client = jobs_of(request), client_of(request)
    searches = await read_body(request, beside)
    submitted = await run_sync(lambda: jobs.submit(searches(), client, key))
    first = await jobs.wait(submitted[0].identifier, beside.wait) if beside.wait else submitted[0]
    names = [job.identifier for job in submitted]
    submitted_job = models.SubmittedAnswer.from_job(first, client, root_of(request.scope), jobs=names)
    response.headers["Location"] = submitted_job.links.self
    return submitted_job


@router.get("/jobs", tags=["jobs"])
def jobs(
    request: Request,
    state: Annotated[
        models.States, Query(description="Only jobs of these states, with commas between them.")
    ] = JOB_STATES,
    limit: Annotated[models.JobCount, Query(description="Maximum number of jobs.")] = models.SHOWN_JOBS,
) -> models.JobsAnswer:
    """List my jobs.

    Those of the token, or else of the address, that asks; the last first. Identifiers and matrices among
    their options are left out.
    """
    client, root = client_of(request), root_of(request.scope)
    found_jobs = jobs_of(request).jobs_of(client, limit, state)
    return models.JobsAnswer(jobs=[models.JobSchema.from_job(job, client, root, is_brief=True) for job in found_jobs])


@router.get("/jobs/{identifier}", tags=["jobs"], responses=OF_A_JOB)
async def job(request: Request, identifier: OfJob, wait: models.Wait = 0.0) -> models.JobSchema:
    """Describe a job.

    With ?wait= when it has ended, or the time is over. Whoever knows a job's identifier may read it;
    cancelling and removing it is for who submitted it.
    """
    ended = await jobs_of(request).wait(identifier, wait)
    return models.JobSchema.from_job(ended, client_of(request), root_of(request.scope))


@router.delete("/jobs/{identifier}", status_code=204, tags=["jobs"], responses=OF_A_DONE_JOB)
async def forget(request: Request, identifier: OfJob) -> None:
    """Remove a job.

    Stops it if it runs, and removes its queries and results.
    """
    await jobs_of(request).delete(identifier, client_of(request))


@router.post("/jobs/{identifier}/cancel", tags=["jobs"], responses=OF_A_JOB)
async def cancel(request: Request, identifier: OfJob) -> models.JobSchema:
    """Cancel a job.

    Its work stops. What has ended stays as it is.
    """
    cancelled = await jobs_of(request).cancel(identifier, client_of(request))
    return models.JobSchema.from_job(cancelled, client_of(request), root_of(request.scope))


@_file_route("/jobs/{identifier}/results", responses=RESULTS | OF_A_DONE_JOB)
async def results(request: Request, identifier: OfJob, asked: Annotated[models.JobResultsQuery, Query()]) -> Response:
    """Get results.

    In any format of `swsearch search`, byte for byte; sent as they are written.
    """
    jobs, output_format = jobs_of(request), asked.chosen_format()
    job = await run_sync(jobs.store.job, identifier)
    pieces = await run_sync(jobs.render, identifier, output_format, asked.queries)
    name = output_format.file_name(f"swsearch-{job.database}-{identifier[:8]}")
    return await stream_response(request, pieces, output_format.media_type, "reports", name)


@_file_route("/jobs/{identifier}/outputs/{number}", responses=RESULTS | OF_A_DONE_JOB)
async def output(
    request: Request, identifier: OfJob, number: Annotated[models.OutputNumber, Path(description="Number, from 0.")]
) -> Response:
    """Get a file.

    One of the outputs that the job was submitted with; it has a length, and Range is taken.
    """
    jobs = jobs_of(request)
    job, file, size = await run_sync(jobs.output, identifier, number)
    byte_range = _RANGE.fullmatch(request.headers.get("range", ""))
    part = range(int(byte_range[1]), min(int(byte_range[2] or size), size - 1) + 1) if byte_range else range(size)
    headers = {"Accept-Ranges": "bytes"}
    if part and len(part) < size:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    else:  # no range, or one that is not there
        part = range(size)
    headers["Content-Length"] = str(len(part))
    name = file.file_name(f"swsearch-{job.database}-{identifier[:8]}")
    pieces, status = jobs.results.part(job, file, part), 206 if len(part) < size else 200
    return await stream_response(request, pieces, file.media_type, "reports", name, headers=headers, status=status)


@_file_route("/jobs/{identifier}/queries", responses=_files("text/plain") | OF_A_JOB)
def queries(request: Request, identifier: OfJob) -> Response:
    """Get the queries.

    As they were sent.
    """
    stored = jobs_of(request).store.request(identifier)
    headers = {"Content-Disposition": disposition(f"{identifier}.queries.txt")}
    return Response(stored.queries, headers=headers, media_type="text/plain; charset=utf-8")


@_file_route("/jobs/{identifier}/subjects", responses=_files("text/x-fasta") | OF_A_DONE_JOB)
async def subjects(
    request: Request, identifier: OfJob,
    hits: Annotated[models.HitRanges, Query(description="Numbers of hits, from 1: 1,2,5-8.")],
    query: Annotated[models.QueryNumber, Query(description="Number of the query, from 1.")] = 1,
) -> Response:  # fmt: skip
    """Get whole subjects.

    Sequences of hits of a query, as FASTA.
    """
    pieces = await run_sync(jobs_of(request).subjects, identifier, query, hits)
    return await stream_response(request, pieces, FASTA_TYPE, "reports", f"{identifier}.fasta")


@_file_route("/search", "POST", responses=RESULTS | SUBMITTING, openapi_extra=_body())
async def search(request: Request, beside: Annotated[models.SearchQuery, Query()]) -> Response:
    """Search at once.

    Takes what a job takes, for one database, and answers with the results. Nothing is kept, and a client that
    leaves stops it.
    """
    jobs, output_format = jobs_of(request), beside.chosen_format()
    searches = await run_sync(await read_body(request, beside))
    if len(searches) > 1:
        raise InputError(f"database: got {len(searches)}, expected one; POST {API_PATH}/jobs takes several")
    running = jobs.begin_search(client_of(request))
    pieces = jobs.search(searches[0], output_format, running)
    name = output_format.file_name(f"swsearch-{searches[0].database}")
    return await stream_response(
        request, pieces, output_format.media_type, "searches", name, stop=lambda: jobs.end_search(running)
    )


@cache
def _formats() -> models.FormatsAnswer:
    described = [
        models.FormatAnswer(
            format=each.key, names=list(each.names), description=each.description, content_type=each.content_type,
            has_columns=each.writer.has_columns and not each.writer.binary,  # `columns` names those of text
            is_binary=each.writer.binary, is_of_one_query=each.writer.is_single_query,
        )
        for each in OUTPUT_FORMATS
    ]  # fmt: skip
    return models.FormatsAnswer(formats=described, columns=["std", *COLUMNS])


@router.get("/formats", tags=["server"])
async def formats() -> models.FormatsAnswer:
    """List the formats.

    Every format of results, and every column of tables.
    """
    return _formats()


@router.head("/health", include_in_schema=False)
@router.get(
    "/health", tags=["server"], response_model=models.HealthAnswer,
    responses={503: {"description": "Something is wrong.", "model": models.HealthAnswer}},
)  # fmt: skip
def health(request: Request) -> Response:
    """Describe the server's state.

    200 if every database can be searched and jobs can be kept, else 503.
    """
    state = jobs_of(request).health()
    return JSONResponse(state, 200 if state["ok"] else 503)


@router.head("/ready", include_in_schema=False)
@router.get("/ready", tags=["server"])
async def ready() -> models.ReadyAnswer:
    """Say whether requests are taken.

    For a load balancer; takes no token.
    """
    return models.ReadyAnswer(ready=True)
