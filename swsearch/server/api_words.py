"""What the API's description says: each route, what it takes, and what it answers."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

from swsearch.options.words import QUERY_FORMATS
from swsearch.remote.wire import SERVER_ROWS
from swsearch.report import FORMATS, OUTPUT_FORMATS
from swsearch.server import schemas
from swsearch.server.answers import API
from swsearch.server.given import TEXT_FIELDS
from swsearch.server.jobs import JOB_STATES
from swsearch.server.rendering import OWN_FORMAT, OWN_TYPE

STATES = JOB_STATES

ROUTES = (
    ("GET", "/databases", "databases"),
    ("GET", "/databases/{name}", "database"),
    ("POST", "/jobs", "submit"),
    ("GET", "/jobs", "jobs"),
    ("GET", "/jobs/{identifier}", "job"),
    ("DELETE", "/jobs/{identifier}", "forget"),
    ("POST", "/jobs/{identifier}/cancel", "cancel"),
    ("GET", "/jobs/{identifier}/results", "results"),
    ("GET", "/jobs/{identifier}/queries", "queries"),
    ("GET", "/jobs/{identifier}/subjects", "subjects"),
    ("POST", "/search", "search"),
    ("GET", "/formats", "formats"),
    ("GET", "/health", "health"),
    ("GET", "/ready", "ready"),
)
"""Method, path and what the endpoint is called."""

_JOB = "Whoever knows a job's identifier may read it; cancelling and removing it is for who submitted it."

SUMMARIES: dict[str, tuple[str, str]] = {
    "databases": ("List the databases", "Names, counts, checksums and engines, in the order of the command line."),
    "database": ("Tell of a database", "One of the list."),
    "submit": (
        "Submit a job",
        "The body is JSON; or sequences, with everything else as query parameters; or a form with the field queries, "
        "text or a file, and everything else beside it. Several databases make a job for each. The job is on disk "
        "when this is answered.",
    ),
    "jobs": (
        "List my jobs",
        "Those of the token, or else of the address, that asks; the last first. Identifiers and matrices among "
        "their options are left out.",
    ),
    "job": ("Tell of a job", f"With ?wait= when it has ended, or the time is over. {_JOB}"),
    "forget": ("Remove a job", "Stops it if it runs, and removes its queries and results."),
    "cancel": ("Cancel a job", "Its work stops. What has ended stays as it is."),
    "results": ("Get results", "In any format of `swsearch search`, byte for byte; sent as they are written."),
    "queries": ("Get the queries", "As they were sent."),
    "subjects": ("Get whole subjects", "Sequences of hits of a query, as FASTA."),
    "search": (
        "Search at once",
        "Takes what a job takes, for one database, and answers with the results. Nothing is kept, and a client that "
        "leaves stops it.",
    ),
    "formats": ("List the formats", "Every format of results, and every column of tables."),
    "health": ("Tell how the server is", "200 if every database can be searched and jobs can be kept, else 503."),
    "ready": ("Tell whether requests are taken", "For a load balancer; takes no token."),
}
"""What each endpoint does, in a line and in full."""

MODELS: dict[str, tuple[int, Any]] = {
    "databases": (200, schemas.DatabasesAnswer),
    "database": (200, schemas.DatabaseAnswer),
    "submit": (202, schemas.SubmittedAnswer),
    "jobs": (200, schemas.JobsAnswer),
    "job": (200, schemas.JobAnswer),
    "cancel": (200, schemas.JobAnswer),
    "formats": (200, schemas.FormatsAnswer),
    "health": (200, schemas.HealthAnswer),
    "ready": (200, schemas.ReadyAnswer),
}
"""What is answered where all is well; the others send files, or nothing."""

PROBLEMS: dict[int, str] = {
    400: "The body is broken.",
    401: "The server has tokens, and there is none here.",
    403: "It is another client's, or the request comes from another site.",
    404: "There is no such job or database.",
    405: "The path is there, and takes another method.",
    409: "The job is not in a state for this: it is not done, or does not end.",
    410: "The job was removed when its time was over.",
    413: "More than the server takes.",
    415: "A body of this type is not taken.",
    422: "An option is unknown, missing, or has a value that cannot be used.",
    429: "The client, or all of them, have as many jobs as there may be; ask again later.",
    500: "The server failed.",
    503: "The server cannot now: an engine failed, or it is ending.",
    507: "The server's disk is full.",
}
"""What is wrong, by status."""

_ALWAYS = (401, 403, 422, 503)
_SUBMITTING = (*_ALWAYS, 400, 404, 413, 415, 429, 507)
_OF_A_JOB = (*_ALWAYS, 404, 410)
_STATUSES = {
    "database": (*_ALWAYS, 404),
    "submit": _SUBMITTING,
    "search": _SUBMITTING,
    "job": _OF_A_JOB,
    "forget": (*_OF_A_JOB, 409),
    "cancel": _OF_A_JOB,
    "queries": _OF_A_JOB,
    "results": (*_OF_A_JOB, 409),
    "subjects": (*_OF_A_JOB, 409),
}


def methods_of(path: str) -> list[str]:
    """Return the methods that a path of the API takes; none for any other path."""
    patterns = ((verb, re.sub(r"\{\w+\}", "[^/]+", API + place)) for verb, place, _ in ROUTES)
    return [verb for verb, pattern in patterns if re.fullmatch(pattern, path)]


def description_of(method: str, path: str) -> dict[str, Any]:
    """Return what a route is described with, as ``add_api_route`` takes it."""
    name = next(each for verb, place, each in ROUTES if (verb, place) == (method, path))
    summary, text = SUMMARIES[name]
    statuses = _STATUSES.get(name, _ALWAYS)
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": PROBLEMS[status], "model": schemas.ErrorAnswer} for status in sorted(statuses)
    }
    if name == "health":
        responses[503] = {"description": "Something is wrong.", "model": schemas.HealthAnswer}
    found: dict[str, Any] = {
        "summary": summary,
        "description": text,
        "response_model": None,
        "operation_id": name,
        "tags": [_tag_of(name)],
    }
    if name in MODELS:
        status, model = MODELS[name]
        responses[status] = {"model": model, "description": _first_line(model)}
        found["status_code"] = status
    elif name == "forget":
        found["status_code"] = 204
        responses[204] = {"description": "It is gone."}
    else:
        responses[200] = {"description": "A file.", "content": _files_of(name)}
    found["responses"] = responses
    found["openapi_extra"] = _extra(name, path)
    return found


def _tag_of(name: str) -> str:
    return "server" if name in ("databases", "database", "formats", "health", "ready") else "jobs"


def _first_line(model: Any) -> str:
    return (inspect.getdoc(model) or "").partition("\n")[0]


def _files_of(name: str) -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary"}}
    if name == "queries":
        return {"text/plain": binary}
    if name == "subjects":
        return {"text/x-fasta": binary}
    types = sorted({each.media_type for each in OUTPUT_FORMATS} | {OWN_TYPE})
    return {each: {"schema": {"type": "object"}} if each == "application/json" else binary for each in types}


def _extra(name: str, path: str) -> dict[str, Any]:
    parameters = [_parameter(each, "path") for each in ("name", "identifier") if f"{{{each}}}" in path]
    parameters += [_parameter(each, "query") for each in _QUERY.get(name, ())]
    extra: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if name in ("submit", "search"):
        extra["requestBody"] = _body()
    return extra


_QUERY = {
    "submit": ("wait", *TEXT_FIELDS),
    "search": ("format", "columns", *TEXT_FIELDS),
    "job": ("wait",),
    "jobs": ("state", "limit"),
    "results": ("format", "columns", "queries"),
    "subjects": ("query", "hits"),
}
"""Query parameters of each endpoint."""

_TEXTS = {
    "name": "Name of a database.",
    "identifier": "Of the job.",
    "wait": "Seconds to wait for the job's end, at most 60.",
    "format": "A format of results, such as json, 6 or html; GET /api/v1/formats lists them. swsearch is what "
    "swsearch.Client reads.",
    "columns": "Columns of a table, with commas between them.",
    "queries": "Only results of these queries: 3 or 1-10.",
    "query": "Number of the query, from 1.",
    "hits": "Numbers of hits, from 1: 1,2,5-8.",
    "state": "Only jobs of these states, with commas between them.",
    "limit": "Most jobs, 100 by default.",
    "database": "Name of a database; may stand there again. For a body of sequences.",
    "query_format": "What the body holds; auto is what the content says. For a body of sequences.",
    "title": "What you call it. For a body of sequences.",
}

_SCHEMAS: dict[str, dict[str, Any]] = {
    "name": {"type": "string"},
    "identifier": {"type": "string"},
    "wait": {"type": "number", "minimum": 0, "maximum": 60},
    "query": {"type": "integer", "minimum": 1},
    "hits": {"type": "string", "pattern": "^[1-9][0-9]{0,3}(,[1-9][0-9]{0,3}){0,9}$"},
    "queries": {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"},
    "state": {"type": "string", "enum": list(JOB_STATES)},
    "query_format": {"type": "string", "enum": list(QUERY_FORMATS)},
    "format": {"type": "string", "enum": [*FORMATS, OWN_FORMAT]},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
}


def _parameter(name: str, place: str) -> dict[str, Any]:
    text = _TEXTS.get(name, f"The option {name} of a search; for a body of sequences.")
    found: dict[str, Any] = {"name": name, "in": place, "description": text, "schema": _schema(name)}
    if place == "path" or name == "hits":
        found["required"] = True
    return found


def _schema(name: str) -> dict[str, Any]:
    if name in SERVER_ROWS:
        return SERVER_ROWS[name].schema()
    return _SCHEMAS.get(name, {"type": "string"})


EXAMPLE = {
    "database": "sprot",
    "queries": ">query\nMKVLAAGIVGWWHHKDEFRTYPCNQS\n",
    "options": {"evalue": 0.001, "max_hits": 100},
    "title": "An example",
}
"""Of a body of JSON."""


def _body() -> dict[str, Any]:
    text = {"type": "string"}
    fields = {"queries": text, "database": text, "title": text, "query_format": text}
    fields |= {name: row.schema() for name, row in SERVER_ROWS.items()}
    form = {"type": "object", "properties": fields, "required": ["queries", "database"]}
    return {
        "required": True,
        "content": {
            "application/json": {"schema": schemas.AskedSearch.model_json_schema(), "example": EXAMPLE},
            "text/x-fasta": {"schema": text, "example": EXAMPLE["queries"]},
            "multipart/form-data": {"schema": form},
        },
    }


@cache
def formats_stated() -> list[dict[str, Any]]:
    """Return every format as the API tells of it."""
    return [
        {
            "format": each.key,
            "names": list(each.names),
            "description": each.description,
            "content_type": each.content_type,
            "has_columns": each.writer.has_columns
            and not each.writer.binary,  # `columns` beside it has those of text
            "is_binary": each.writer.binary,
            "is_of_one_query": each.writer.is_single_query,
        }
        for each in OUTPUT_FORMATS
    ]
