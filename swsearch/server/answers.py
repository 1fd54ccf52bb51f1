"""Answers of the server as bytes: JSON, problems, jobs as everybody may see them, and safe names of files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from swsearch.errors import printable
from swsearch.server.jobs import Job
from swsearch.server.problems import ServerProblem

API = "/api/v1"
"""What stands before all paths of the API."""

MOST_OF_A_NAME = 100
"""Letters of a file's name in an answer."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def json_answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer of JSON; what is no text, such as halves of surrogate pairs, is escaped."""
    body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    return Response(body, status, headers, media_type="application/json")


def problem_answer(problem: ServerProblem) -> Response:
    """Return what a refused request is answered with."""
    headers = {}
    if problem.retry_after is not None or problem.status in (429, 503):
        headers["Retry-After"] = str(problem.retry_after or 10)
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="swsearch"'
    return json_answer(problem.stated(), problem.status, headers)


def time_stated(seconds: float | None) -> str | None:
    """Return a time of the Unix clock as an ISO time."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def job_stated(job: Job, client: str, root: str = "", is_brief: bool = False) -> dict[str, Any]:
    """Return a job as the API tells of it.

    Parameters
    ----------
    job : Job
        As it is now.
    client : str
        Who asks.
    root : str, optional
        What stands before all paths.
    is_brief : bool, optional
        Leave out options that may be long: identifiers and the text of a matrix.
    """
    place = f"{root}{API}/jobs/{job.identifier}"
    return {
        "id": job.identifier,
        "group": job.group,
        "database": job.database,
        "title": job.title,
        "state": job.state,
        "progress": job.progress,
        "place": job.place,
        "problem": job.problem,
        "notes": list(job.notes),
        "n_queries": job.n_queries,
        "n_residues": job.n_residues,
        "n_hits": job.n_hits,
        "cells": job.cells,
        "cells_done": job.cells_done,
        "submitted": time_stated(job.submitted),
        "begun": time_stated(job.begun),
        "ended": time_stated(job.ended),
        "expires": time_stated(job.expires),
        "is_mine": job.client == client,
        "options": {
            name: value for name, value in job.options.items() if not is_brief or not isinstance(value, (list, dict))
        },
        "links": {
            "self": place,
            "results": f"{place}/results",
            "queries": f"{place}/queries",
            "subjects": f"{place}/subjects",
            "cancel": f"{place}/cancel",
            "page": f"{root}/jobs/{job.identifier}",
        },
    }


def disposition(name: str) -> str:
    """Return the header that lets a browser keep an answer as a file, whatever the name holds."""
    plain = _UNSAFE.sub("_", name)[:MOST_OF_A_NAME].lstrip(".") or "results"
    if plain == name:
        return f'attachment; filename="{plain}"'
    shown = printable(name, "_").replace("/", "_").replace("\\", "_")[:MOST_OF_A_NAME].lstrip(".") or "results"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(shown, safe='', errors='replace')}"
