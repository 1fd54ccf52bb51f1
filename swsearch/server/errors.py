"""Problems of requests and of the server, as JSON and as pages."""

from __future__ import annotations

import errno
import json
from typing import Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from swsearch.client.urls import API_PATH
from swsearch.errors import InputError, OptionError, OutputError, SwsearchError, format_value
from swsearch.server.page_words import in_page_words
from swsearch.server.templating import page, root_of


class ProblemKind(NamedTuple):
    """A kind of problem of a request or of the server."""

    status: int
    """HTTP status."""
    description: str
    """Description in OpenAPI."""
    heading: str = "The request failed"
    """Heading of its page."""


PROBLEM_KINDS = {
    "broken": ProblemKind(400, "The body is broken."),
    "not_authenticated": ProblemKind(401, "The server has tokens, and there is none here.", "Log in first"),
    "not_allowed": ProblemKind(403, "It is another client's, or the request comes from another site.", "Not allowed"),
    "not_found": ProblemKind(404, "There is no such job or database.", "Not found"),
    "not_possible": ProblemKind(405, "The path is there, and takes another method."),
    "conflict": ProblemKind(409, "The job is not in a state for this: it is not done, or does not end."),
    "expired": ProblemKind(410, "The job was removed when its time was over.", "Results expired"),
    "too_large": ProblemKind(413, "More than the server takes.", "Too large"),
    "wrong_type": ProblemKind(415, "A body of this type is not taken."),
    "wrong": ProblemKind(422, "An option is unknown, missing, or has a value that cannot be used."),
    "too_many": ProblemKind(
        429, "The client, or all of them, have as many jobs as there may be; ask again later.", "Too many searches"
    ),
    "failed": ProblemKind(500, "The server failed.", "The server failed"),
    "unavailable": ProblemKind(503, "The server cannot now: an engine failed, or it is ending.", "Not available now"),
    "disk_full": ProblemKind(507, "The server's disk is full.", "The server's disk is full"),
}
"""Kinds of problems by their codes."""

STATUSES = {code: kind.status for code, kind in PROBLEM_KINDS.items()}

KINDS_BY_STATUS = {kind.status: kind for kind in PROBLEM_KINDS.values()}


class ServerProblem(SwsearchError):  # noqa: N818  # not always an error of the server
    """A problem of a request or of the server; ``code`` is a key of `PROBLEM_KINDS`.

    ``message`` states the problem, the place, the expected value and the remedy. ``option`` is the name of the option
    with the problem, ``expected`` its valid values. ``retry_after`` is the number of seconds after which to send the
    request again.
    """

    def __init__(
        self, code: str, message: str, *, option: str = "", expected: str = "", retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.status = code, STATUSES[code]
        self.option, self.expected, self.retry_after = option, expected, retry_after

    def to_json(self) -> dict[str, Any]:
        """Return the problem as JSON: ``{"error": {...}}``."""
        more = {name: value for name in ("option", "expected", "retry_after") if (value := getattr(self, name))}
        return {"error": {"code": self.code, "message": str(self), **more}}


def problem_of(error: BaseException) -> ServerProblem:
    """Return the problem that a client is told of an error."""
    if isinstance(error, ServerProblem):
        return error
    if isinstance(error, OptionError):
        return ServerProblem("wrong", str(error), option=error.name, expected=error.expected)
    if isinstance(error, SwsearchError):
        code = "wrong" if isinstance(error, InputError) else "unavailable"
        return ServerProblem("disk_full" if isinstance(error, OutputError) else code, str(error))
    if isinstance(error, MemoryError):
        return ServerProblem("unavailable", "the server is out of memory; ask for less, or again later")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ServerProblem("disk_full", "the server's disk is full")
    return ServerProblem("failed", "the server failed; its log says more")


def framework_problem(scope: Scope, error: Exception) -> ServerProblem:
    """Return the problem of an error of the web framework."""
    if isinstance(error, RequestValidationError):
        first: dict[str, Any] = dict(error.errors()[0])
        if isinstance(cause := first.get("ctx", {}).get("error"), SwsearchError):
            return problem_of(cause)
        name = ".".join(str(part) for part in first.get("loc", ())[1:])
        got = "none" if first.get("type") == "missing" else format_value(first.get("input"))
        return ServerProblem("wrong", f"{name}: got {got}, expected another value", option=name)
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, SwsearchError):  # raised while the framework read a form
        return problem_of(error.__cause__)
    path, method = str(scope["path"])[:200], str(scope["method"])
    messages = {
        "not_found": f"no page {format_value(path)}; {API_PATH}/openapi.json lists what there is",
        "not_possible": f"{method[:20]} is not possible for {format_value(path)}",
    }
    codes = {status: code for code, status in STATUSES.items()}
    code = codes.get(error.status_code, "broken" if error.status_code < 500 else "failed")
    return ServerProblem(code, messages.get(code, str(error.detail)))


def _headers_of(problem: ServerProblem) -> dict[str, str]:
    headers = {}
    if problem.retry_after is not None or problem.status in (429, 503):
        headers["Retry-After"] = str(problem.retry_after or 10)
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="swsearch"'
    return headers


JOB_ADVICE = {
    "too_large": "Send fewer or shorter queries in one search.",
    "too_many": "Wait until some of your searches have ended.",
    "unavailable": "Search again later; if it fails again, tell the administrator of this server.",
    "disk_full": "Tell the administrator of this server: its disk is full.",
    "failed": "Search again; if it fails again, tell the administrator of this server the job identifier.",
}
"""Advice about a search that failed, by the code of its problem."""

PAGE_ADVICE = {
    **JOB_ADVICE,
    "not_found": "Check the address: a job identifier has 20 letters. A deleted job cannot be restored.",
    "expired": "Results are kept for a few days only. Search again.",
    "not_allowed": "Only the browser that submitted a job can cancel or delete it, and only from these pages.",
    "conflict": "Reload the page of the job: its state may have changed.",
    "failed": "Try again; if it fails again, tell the administrator of this server.",
}

FOR_PROGRAMS = (f"{API_PATH}/", "/metrics", "/static/")
"""Beginnings of paths for programs only."""

MSA_PATHS = ("/ticket/", "/tickets", "/result/", "/queue")
"""Beginnings of paths of the MSA API, whose clients expect plain text with status 400 for a wrong request."""


def respond(scope: Scope, problem: ServerProblem) -> Response:
    """Return a problem as a page to a browser, as plain text to clients of the MSA API, else as JSON."""
    path = _path_of(scope)
    if path.startswith(MSA_PATHS):
        status = problem.status if problem.status in (401, 403) or problem.status >= 429 else 400
        return Response(f"{problem}\n", status, _headers_of(problem), media_type="text/plain; charset=utf-8")
    accepted = Headers(scope=scope).get("accept", "")
    if "text/html" in accepted and not path.startswith(FOR_PROGRAMS) and not path.endswith("/Blast.cgi"):
        return problem_page(scope, problem)
    body = json.dumps(problem.to_json(), separators=(",", ":")).encode("ascii")
    return Response(body, problem.status, _headers_of(problem), media_type="application/json")


def problem_page(scope: Scope, problem: ServerProblem, status: int | None = None) -> Response:
    """Return the page of a problem, or the page to log in; ``status`` is the problem's own by default."""
    status = problem.status if status is None else status
    headers = _headers_of(problem)
    if problem.code == "not_authenticated":
        values = {"problem": "Log in, then go back to the previous page. Your input is still there.", "next": "/"}
        if scope["method"] == "GET":
            query = scope.get("query_string", b"").decode("latin-1")
            values = {"problem": "", "next": _path_of(scope) + (f"?{query}" if query else "")}
        return page(scope, "login.html", values, status, {**headers, "Cache-Control": "no-store"})
    values = {
        "heading": KINDS_BY_STATUS.get(status, PROBLEM_KINDS["broken"]).heading,
        # of a host that is not allowed, an administrator sees the advice first
        "message": str(problem) if problem.code == "not_allowed" else in_page_words(str(problem)),
        "advice": PAGE_ADVICE.get(problem.code, "Go back and change your input; it is still there."),
    }
    return page(scope, "problem.html", values, status, headers)


def _path_of(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(root_of(scope))
