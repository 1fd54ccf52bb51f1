"""What is wrong, as a page for people and as JSON for programs."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from swsearch.server.answers import API, problem_answer
from swsearch.server.page_views import Shell
from swsearch.server.problems import ServerProblem

PROBLEM_HEADINGS = {
    401: "Log in first",
    403: "Not allowed",
    404: "Not found",
    410: "Results expired",
    413: "Too large",
    429: "Too many searches",
    500: "The server failed",
    503: "Not available now",
    507: "The server's disk is full",
}

JOB_ADVICE = {
    "too_large": "Send fewer or shorter queries in one search.",
    "too_many": "Wait until some of your searches have ended.",
    "unavailable": "Search again later; if it fails again, tell the administrator of this server.",
    "disk_full": "Tell the administrator of this server: its disk is full.",
    "failed": "Search again; if it fails again, tell the administrator of this server the job identifier.",
}
"""What to do about a search that failed, by the code of its problem."""

PAGE_ADVICE = {
    **JOB_ADVICE,
    "not_found": "Check the address: a job identifier has 20 letters. A deleted job cannot be restored.",
    "expired": "Results are kept for a few days only. Search again.",
    "not_allowed": "Only the browser that submitted a job can cancel or delete it, and only from these pages.",
    "conflict": "Reload the page of the job: its state may have changed.",
    "failed": "Try again; if it fails again, tell the administrator of this server.",
}

FOR_PROGRAMS = (f"{API}/", "/metrics", "/static/")
"""Beginnings of paths that no person looks at."""


def answer_to(scope: Scope, problem: ServerProblem) -> Response:
    """Return what is wrong as whoever asks reads it: a page in a browser, else JSON."""
    path = _path_of(scope)
    accepted = Headers(scope=scope).get("accept", "")
    if "text/html" not in accepted or path.startswith(FOR_PROGRAMS) or path.endswith("/Blast.cgi"):
        return problem_answer(problem)
    return problem_page(scope, problem)


def problem_page(scope: Scope, problem: ServerProblem, status: int | None = None) -> Response:
    """Return the page that says what is wrong; the one to log in where that is missing.

    Parameters
    ----------
    scope : dict
        Of the request.
    problem : ServerProblem
        What is wrong.
    status : int, optional
        The problem's own by default.
    """
    status = problem.status if status is None else status
    shell = Shell(str(scope.get("root_path", "")).rstrip("/"))
    headers = {name: value for name, value in problem_answer(problem).headers.items() if name in _OF_PROBLEMS}
    if problem.code == "not_authenticated":
        asked = _path_of(scope)
        if query := scope.get("query_string", b""):
            asked += f"?{query.decode('latin-1')}"
        is_read = scope["method"] == "GET"
        problem_shown = "" if is_read else "Log in, then go back to the previous page. Your input is still there."
        values = {"problem": problem_shown, "next": asked if is_read else "/"}
        return shell.page("login.html", values, status, {**headers, "Cache-Control": "no-store"})
    values = {
        "heading": PROBLEM_HEADINGS.get(status, "The request failed"),
        "message": str(problem),
        "advice": PAGE_ADVICE.get(problem.code, "Go back and change your input; it is still there."),
    }
    return shell.page("problem.html", values, status, headers)


_OF_PROBLEMS = ("retry-after", "www-authenticate")


def _path_of(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
