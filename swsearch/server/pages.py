"""The pages: search form, jobs, results, this server. They work without scripts."""

from __future__ import annotations

import importlib.util
import json
import re
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from swsearch.client.search_request import OPTION_NAMES
from swsearch.client.urls import API_PATH, TOKEN_VARIABLE
from swsearch.errors import OptionError, SwsearchError, format_count
from swsearch.matrices import PRESET_MATRICES
from swsearch.pipeline.fingerprint import PROGRAM_NAMES
from swsearch.report import OUTPUT_FORMATS, OutputFormat
from swsearch.report.html import Link, content_policy
from swsearch.server import search_form
from swsearch.server.access import CLIENT_COOKIE, TOKEN_COOKIE, Tokens
from swsearch.server.api import client_of, jobs_of
from swsearch.server.errors import JOB_ADVICE, ServerProblem, problem_page
from swsearch.server.job_store import Job, is_identifier
from swsearch.server.models import parse_hits, parse_range
from swsearch.server.page_words import in_page_words
from swsearch.server.results import FASTA_TYPE, Format
from swsearch.server.streaming import stream_response
from swsearch.server.templating import (
    PAGE_HEADERS,
    STATIC_TYPES,
    format_duration,
    page,
    root_of,
    safe_name,
    static_answer,
)
from swsearch.server.validation import check_gzip

ROWS_PER_PAGE = 50
"""Jobs of a list, rows of a summary, and queries of a report, which a browser holds with all their alignments."""

CLEARED_COOKIE = "swsearch-cleared"
"""Time at which a browser cleared its list of recent searches."""

COOKIE_SECONDS = 365 * 24 * 3600
"""Seconds that a browser keeps our cookies."""

MAX_FORM_FIELDS = 500

MIN_SECONDS = 1.0
"""Run time from which a page estimates the remaining time, and least remaining time that it states."""

RECENT_JOBS = 5
"""Jobs below the form."""

STATE_WORDS = {
    "queued": "waiting",
    "running": "running",
    "done": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}


class PageRoute(APIRoute):
    """A path whose problems are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except SwsearchError as error:
                return problem_page(request.scope, jobs_of(request).problem_for(error))
            except HTTPException as error:
                return problem_page(request.scope, ServerProblem("broken", str(error.detail)), error.status_code)
            except RequestValidationError:
                problem = ServerProblem("not_found", f"page {safe_name(request.url.path)} not found")
                return problem_page(request.scope, problem)

        return answered


router = APIRouter(route_class=PageRoute, include_in_schema=False)


def show_page(
    request: Request, template: str, values: Mapping[str, Any], status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:  # fmt: skip
    """Return a page of this server."""
    has_tokens = bool(jobs_of(request).settings.tokens)
    return page(request.scope, template, {**values, "has_tokens": has_tokens}, status, headers)


def go_to(request: Request, path: str) -> Response:
    """Lead a browser to another page."""
    return RedirectResponse(f"{root_of(request.scope)}{path}", 303, PAGE_HEADERS)


def address_of(request: Request) -> str:
    """Return the address of the server as the client knows it."""
    host = request.headers.get("host", "localhost")
    return f"{request.url.scheme}://{host}{root_of(request.scope)}"


# the form


@router.api_route("/", methods=["GET", "HEAD"], response_model=None)
def form(request: Request) -> Response:
    """Show the form: empty, with an example, or as an earlier job was submitted."""
    query = request.query_params
    filled = search_form.FilledForm(databases=tuple(query.getlist("database")))
    if example := search_form.EXAMPLES.get(query.get("example", "")):
        filled = replace(filled, queries=example.fasta, values=example.values)
    elif identifier := query.get("from"):
        databases = tuple(job.database for job in jobs_of(request).group(check_identifier(identifier)))
        filled = search_form.FilledForm.from_request(
            jobs_of(request).store.request(identifier), identifier, databases
        )
    return _form(request, filled)


@router.api_route("/search", methods=["POST"], response_model=None)
async def search(request: Request) -> Response:
    """Submit a filled form, or show it again with its problem."""
    limit = jobs_of(request).settings.limits.body
    async with request.form(max_files=1, max_fields=MAX_FORM_FIELDS, max_part_size=max(limit, 1 << 20)) as sent:
        filled = await search_form.FilledForm.from_fields(sent)
    try:
        if filled.is_compressed:
            request.state.hold(await run_sync(check_gzip, filled.file_content, limit))
            filled = await run_sync(filled.decompressed)
    except SwsearchError as error:
        return await run_sync(_form, request, replace(filled, file_content=b""), error)
    return await run_sync(_submit, request, filled)


def _submit(request: Request, filled: search_form.FilledForm) -> Response:
    client, cookie = client_of(request), ""
    if CLIENT_COOKIE not in request.cookies:
        # only now, as the browser comes from this site: from another site it would not send the cookie that it has
        cookie = secrets.token_urlsafe(24)
        client = f"{client}/{cookie}"
    try:
        queries = filled.content()
        if not queries.strip() and filled.queries_of:
            queries = jobs_of(request).store.request(check_identifier(filled.queries_of)).queries
        jobs = jobs_of(request).submit(filled.requests(queries), client)
    except SwsearchError as error:
        return _form(request, filled.again(), error)
    answer = go_to(request, f"/jobs/{jobs[0].identifier}")
    if cookie:
        _set_cookie(request, answer, CLIENT_COOKIE, cookie)
    return answer


def _form(request: Request, filled: search_form.FilledForm, error: SwsearchError | None = None) -> Response:
    """Return the filled form, with a problem at its field."""
    jobs, places = jobs_of(request), _places(request)
    ready = [place["name"] for place in places if place["state"] == "ready"]
    if not filled.databases and ready and (error is None or len(places) == 1):
        filled = replace(filled, databases=(ready[0],))
    status, headers, wrong, alert, field_message = 200, {}, "", "", ""
    if error is not None:
        problem = jobs.problem_for(error)
        wrong, alert, field_message = search_form.explain(error, str(problem))
        status = problem.status
        headers = {"Retry-After": str(problem.retry_after)} if problem.retry_after else {}
    fields = search_form.FORM_FIELDS
    recent, now = _recent(request), time.time()
    chosen = [name for name, text in filled.values.items() if text.strip() and text != fields[name].default]
    costs = search_form.matrix_costs()
    values = {
        "here": "form", "typed": filled, "places": places, "limits": jobs.settings.limits, "fields": fields,
        "titles": search_form.GROUP_TITLES, "choices_of": search_form.choices_of,
        "examples": search_form.EXAMPLES.values(),
        "costs": {"matrices": costs, "presets": {word: costs[name] for word, name in PRESET_MATRICES.items()}},
        "opened": {fields[name].group for name in (*chosen, wrong) if name in fields},
        "problem": alert, "wrong": wrong, "told": field_message,
        "recent": [(job, progress_of(job, now)) for job in recent],
    }  # fmt: skip
    return show_page(request, "form.html", values, status, headers)


def _recent(request: Request) -> list[Job]:
    """Return the last jobs of a browser that can be shown, unless it has cleared the list since."""
    if CLIENT_COOKIE not in request.cookies:
        return []
    jobs, cleared = jobs_of(request), request.cookies.get(CLEARED_COOKIE, "")
    since = float(cleared) if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", cleared) else 0.0
    recent = jobs.jobs_of(client_of(request), RECENT_JOBS)
    return [job for job in recent if job.submitted > since and job.database in jobs.databases]


@router.api_route("/clear", methods=["POST"], response_model=None)
def clear(request: Request) -> Response:
    """Clear the list of recent searches; the jobs stay."""
    answer = go_to(request, "/")
    _set_cookie(request, answer, CLEARED_COOKIE, f"{time.time():.3f}")
    return answer


@router.api_route("/examples/{key}", methods=["GET", "HEAD"], response_model=None)
def example(key: str) -> Response:
    """Send the sequences of an example."""
    if key not in search_form.EXAMPLES:
        raise ServerProblem("not_found", f"example {safe_name(key[:40])!r} not found")
    headers = {**PAGE_HEADERS, "Cache-Control": "public, max-age=3600"}
    return PlainTextResponse(search_form.EXAMPLES[key].fasta, headers=headers)


# jobs


def check_identifier(identifier: str) -> str:
    """Return an identifier; raise ``not_found`` if no job can have it."""
    if not is_identifier(identifier):
        raise ServerProblem("not_found", f"job {safe_name(identifier[:40])!r} not found")
    return identifier


def _job(request: Request, identifier: str) -> Job:
    return jobs_of(request).job(check_identifier(identifier))


OfPath = Annotated[Job, Depends(_job)]
"""The job that a path names."""

IdentifierOfPath = Annotated[str, Depends(check_identifier)]


def progress_of(job: Job, now: float) -> dict[str, Any]:
    """Return the progress of a job in numbers and words, for its page and for the script that updates the page."""
    percent = 100 if job.state == "done" else round(100 * job.progress)
    started = job.started if job.started is not None else job.submitted
    elapsed = (job.ended if job.ended is not None else now) - started
    words = STATE_WORDS[job.state].capitalize()
    if job.state == "running":
        words = f"Searching: {percent}%"
        left = elapsed * (job.work_left or 0)
        if min(elapsed, left) >= MIN_SECONDS:
            words += f", about {f'{left:.0f} s' if left < 10 else format_duration(left)} left"
    elif job.state == "queued" and job.queue_position is not None:
        ahead = job.queue_position
        words = (
            f"Waiting: {format_count(ahead, 'search', 'searches')} ahead" if ahead else "Waiting: next in the queue"
        )
    spent = f"{format_duration(elapsed)} so far"
    return {"state": job.state, "percent": percent, "words": words, "elapsed": spent, "is_ended": job.is_ended}


@router.api_route("/jobs", methods=["GET", "HEAD"], response_model=None)
def mine(request: Request, page: str = "1") -> Response:
    """List the jobs of the client."""
    jobs = jobs_of(request).jobs_of(client_of(request))
    first, pager = _pager(f"{root_of(request.scope)}/jobs", page, len(jobs))
    now = time.time()
    rows = [(job, progress_of(job, now)) for job in jobs[first : first + ROWS_PER_PAGE]]
    values = {"jobs": rows, "total": len(jobs), "limits": jobs_of(request).settings.limits, **pager}
    return show_page(request, "jobs.html", values)


@router.api_route("/jobs/{identifier}", methods=["GET", "HEAD"], response_model=None)
async def job(request: Request, job: OfPath) -> Response:
    """Show the progress of a job, or its report."""
    if job.state == "done":
        return await _report(request, job, parse_query_range("", job.n_queries))
    return await run_sync(_progress, request, job)


def _progress(request: Request, job: Job) -> Response:
    values = _values(request, job)
    code = (job.problem or {}).get("code", "failed")
    values["progress"] = progress_of(job, time.time())
    values["message"] = in_page_words((job.problem or {}).get("message", "the server gave no reason"))
    values["advice"] = JOB_ADVICE.get(code, "Change the search and submit it again.")
    return show_page(request, "job.html", values, headers={"Cache-Control": "no-store"})


@router.api_route("/jobs/{identifier}/state", methods=["GET", "HEAD"], response_model=None)
def state(job: OfPath) -> Response:
    """Send the progress of a job to the script of its page."""
    return JSONResponse(progress_of(job, time.time()), headers={**PAGE_HEADERS, "Cache-Control": "no-store"})


@router.api_route("/jobs/{identifier}/report", methods=["GET", "HEAD"], response_model=None)
async def report(request: Request, job: OfPath, queries: str = "") -> Response:
    """Show the report of some queries of a job."""
    return await _report(request, job, parse_query_range(queries, job.n_queries))


@router.api_route("/jobs/{identifier}/text", methods=["GET", "HEAD"], response_model=None)
async def text(request: Request, job: OfPath, queries: str = "") -> Response:
    """Show the alignments of some queries of a job as text."""
    span = parse_query_range(queries, job.n_queries)
    pieces = await run_sync(jobs_of(request).render, job.identifier, Format("0"), span)
    return await stream_response(request, pieces, "text/plain; charset=utf-8", "reports", headers=PAGE_HEADERS)


@router.api_route("/jobs/{identifier}/report/{first}/subjects", methods=["GET", "HEAD"], response_model=None)
async def subjects(request: Request, job: OfPath, first: int, query: str = "1", hits: str = "1") -> Response:
    """Send whole subjects of a query as FASTA; ``query`` counts from the first query of a page of the report."""
    number = first + parse_positive("query", query) - 1
    if not 1 <= first <= number <= job.n_queries:
        raise OptionError("query", query, "one of the report's queries")
    pieces = await run_sync(jobs_of(request).subjects, job.identifier, number, parse_hits(hits))
    return await stream_response(request, pieces, FASTA_TYPE, "reports", f"{job.identifier}-{number}.fasta")


@router.api_route("/jobs/{identifier}/details", methods=["GET", "HEAD"], response_model=None)
def details(request: Request, job: OfPath) -> Response:
    """Show the options of a job, its downloads and the address to share."""
    size = len(jobs_of(request).store.request(job.identifier).queries)
    database = jobs_of(request).databases.get(job.database)
    values = _values(request, job) | {
        "notes": map(in_page_words, job.notes),
        "downloads": list(downloads_of(job, database is not None and database.is_dna)),
        "asked": list(job_options(job)),
        "size": f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes",
        "address": f"{address_of(request)}/jobs/{job.identifier}",
    }
    return show_page(request, "details.html", values)


@router.api_route("/jobs/{identifier}/summary", methods=["GET", "HEAD"], response_model=None)
def summary(request: Request, job: OfPath, page: str = "1") -> Response:
    """Show the best hit of each query."""
    first, pager = _pager(f"{root_of(request.scope)}/jobs/{job.identifier}/summary", page, job.n_queries)
    span = (first + 1, min(first + ROWS_PER_PAGE, job.n_queries))
    table = jobs_of(request).render(job.identifier, Format("7 sseqid score evalue"), span)
    rows = parse_summary(b"".join(table), first)
    return show_page(request, "summary.html", {**_values(request, job), "rows": rows, **pager})


@router.api_route("/jobs/{identifier}/cancel", methods=["POST"], response_model=None)
async def cancel(request: Request, identifier: IdentifierOfPath, then: str = Form("")) -> Response:
    """Cancel a job, and show it or the list."""
    await jobs_of(request).cancel(identifier, client_of(request))
    return go_to(request, "/jobs" if then == "jobs" else f"/jobs/{identifier}")


@router.api_route("/jobs/{identifier}/delete", methods=["POST"], response_model=None)
async def delete(request: Request, identifier: IdentifierOfPath) -> Response:
    """Delete a job, and show the list."""
    await jobs_of(request).delete(identifier, client_of(request))
    return go_to(request, "/jobs")


def _values(request: Request, job: Job) -> dict[str, Any]:
    """Return the values of all pages of a job."""
    group = jobs_of(request).group(job.identifier)
    return {"job": job, "group": group, "states": STATE_WORDS, "is_mine": job.client == client_of(request)}


async def _report(request: Request, job: Job, queries: tuple[int, int]) -> Response:
    """Return the report of the queries from the first to the last of two numbers."""
    group = await run_sync(jobs_of(request).group, job.identifier)
    root = root_of(request.scope)
    bar = list(report_links(root, job, group, queries))
    output_format = Format("html", bar, f"{root}/jobs/{job.identifier}/report/{queries[0]}/subjects")
    pieces = await run_sync(jobs_of(request).render, job.identifier, output_format, queries)
    headers = {**PAGE_HEADERS, "Content-Security-Policy": f"{content_policy()}; frame-ancestors 'none'"}
    return await stream_response(request, pieces, output_format.media_type, "reports", headers=headers)


def report_links(root: str, job: Job, group: Sequence[Job], queries: tuple[int, int]) -> Iterator[Link]:
    """Yield the links above a report: other pages of its queries, downloads, and the other jobs of the group."""
    place = f"{root}/jobs/{job.identifier}"
    yield Link("New search", f"{root}/")
    yield Link("My jobs", f"{root}/jobs")
    yield Link("Edit and search again", f"{root}/?from={job.identifier}")
    yield Link("Downloads, sharing, settings", f"{place}/details")
    yield Link("Table (TSV)", f"{root}{API_PATH}/jobs/{job.identifier}/results?format=6")
    first, last = queries
    yield Link("Alignments (text)", f"{place}/text?queries={first}-{last}")
    if last - first + 1 < job.n_queries:
        yield Link(f"Queries {first:,} to {last:,} of {job.n_queries:,}: summary", f"{place}/summary")
    if first > 1:
        yield Link("Previous queries", f"{place}/report?queries={max(1, first - ROWS_PER_PAGE)}-{first - 1}")
    if last < job.n_queries:
        after = min(job.n_queries, last + ROWS_PER_PAGE)
        yield Link("Next queries", f"{place}/report?queries={last + 1}-{after}")
    for each in group:
        if each.identifier != job.identifier:
            yield Link(f"{safe_name(each.database)}: {STATE_WORDS[each.state]}", f"{root}/jobs/{each.identifier}")


def downloads_of(job: Job, is_dna: bool) -> Iterator[OutputFormat]:
    """Yield the formats that can hold a job's results and whose packages are installed."""
    for each in OUTPUT_FORMATS:
        writer = each.writer
        if writer.package and importlib.util.find_spec(writer.package) is None:
            continue
        if job.program(is_dna) in writer.programs and (job.n_queries == 1 or not writer.is_single_query):
            yield each


def job_options(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the options of a job in the words of the form."""
    for name, value in job.options.items():
        if name in search_form.NOT_ON_THE_PAGE or value is None:
            continue
        field = search_form.FORM_FIELDS.get(name)
        if isinstance(value, dict):
            text = f"{value.get('name', 'custom')}, own matrix"
        elif isinstance(value, (list, tuple)):
            text = ", ".join(map(str, value[:5])) + (f", ... ({len(value):,})" if len(value) > 5 else "")
        elif isinstance(value, bool):
            text = "yes" if value else "no"
        else:
            text = search_form.choices_of(field).get(str(value), str(value)) if field else str(value)
        yield field.label if field else name, text


def parse_summary(table: bytes, n_before: int) -> list[dict[str, Any]]:
    """Return a row for each query of a table with comments, whose columns are subject, score and E-value."""
    rows: list[dict[str, Any]] = []
    query = ""
    for line in table.decode("utf-8", "replace").split("\n"):
        if line.startswith("# Query: "):
            query = line.removeprefix("# Query: ")
        elif hits := re.fullmatch(r"# (\d+) hits found", line):
            row = {"number": n_before + len(rows) + 1, "query": query, "hits": int(hits[1])}
            rows.append(row | dict.fromkeys(("best", "score", "evalue"), ""))
        elif line and not line.startswith("#") and rows and not rows[-1]["best"]:
            rows[-1].update(zip(("best", "score", "evalue"), line.split("\t"), strict=True))
    return rows


def _pager(path: str, text: str, count: int) -> tuple[int, dict[str, Any]]:
    """Return the number of rows before a page of a list, and the values of its links to other pages."""
    pages = max(1, -(-count // ROWS_PER_PAGE))
    number = min(parse_positive("page", text), pages)
    return (number - 1) * ROWS_PER_PAGE, {"page": number, "pages": pages, "pager": f"{path}?page="}


def parse_positive(name: str, text: str) -> int:
    """Parse a number from 1 in an address."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise OptionError(name, text, "a number from 1")
    return int(text)


def parse_query_range(text: str, n_queries: int) -> tuple[int, int]:
    """Parse the first and the last query in an address; by default the first page of queries."""
    first, last = parse_range(text) or (1, min(n_queries, ROWS_PER_PAGE))
    if last > n_queries or last - first >= ROWS_PER_PAGE:
        expected = f"numbers from 1 to {n_queries:,}, at most {ROWS_PER_PAGE} of them"
        raise OptionError("queries", text, expected)
    return first, last


# this server


def _places(request: Request) -> list[dict[str, Any]]:
    """Return the databases as templates show them."""
    places = []
    for each in jobs_of(request).databases.values():
        place = {"nucleotides": 0, "genetic_code": "", **each.to_json(), "is_dna": each.is_dna}
        place["title"] = PurePath(place["title"]).stem
        place["sources"] = [source["path"] for source in place["sources"]]
        if place["state"] == "replaced":  # searched as it was opened
            place["state"] = "ready"
        places.append(place)
    return places


@router.api_route("/about", methods=["GET", "HEAD"], response_model=None)
def about(request: Request) -> Response:
    """Describe this server, its databases and limits."""
    jobs, places = jobs_of(request), _places(request)
    values = {
        "places": places, "limits": jobs.settings.limits, "address": address_of(request), "health": jobs.health(),
        "program": PROGRAM_NAMES[False, places[0]["is_dna"]], "token_variable": TOKEN_VARIABLE,
    }  # fmt: skip
    return show_page(request, "about.html", values)


@router.api_route("/api", methods=["GET"], response_model=None)
def api(request: Request) -> Response:
    """Document the HTTP API by its OpenAPI description."""
    values = {
        "paths": request.app.openapi()["paths"],
        "option_names": OPTION_NAMES,
        "pretty": partial(json.dumps, indent=2),
    }
    return show_page(request, "api.html", values)


@router.api_route("/static/{digest}/{name}", methods=["GET", "HEAD"], response_model=None)
def static(digest: str, name: str) -> Response:
    """Send a static file."""
    if name not in STATIC_TYPES:
        raise ServerProblem("not_found", f"file {safe_name(name[:40])!r} not found")
    return static_answer(digest, name)


@router.api_route("/login", methods=["GET", "HEAD"], response_model=None)
def login(request: Request, next: str = "/") -> Response:
    """Show the form for a token."""
    if not jobs_of(request).settings.tokens:
        return go_to(request, "/")
    values = {"problem": "", "next": safe_path(next)}
    return show_page(request, "login.html", values, headers={"Cache-Control": "no-store"})


@router.api_route("/login", methods=["POST"], response_model=None)
def log_in(request: Request, token: str = Form(""), next: str = Form("/")) -> Response:
    """Check a token, set its cookie, and go to the page that the browser wanted."""
    tokens = Tokens(jobs_of(request).settings.tokens)
    if tokens and tokens.owner(token.strip()) is None:
        values = {"problem": "Unknown token.", "next": safe_path(next)}
        return show_page(request, "login.html", values, 401, {"Cache-Control": "no-store"})
    answer = go_to(request, safe_path(next))
    if tokens:
        _set_cookie(request, answer, TOKEN_COOKIE, Tokens.cookie(token.strip()))
    return answer


@router.api_route("/logout", methods=["POST"], response_model=None)
def log_out(request: Request) -> Response:
    """Delete the cookie of a browser's token; the browser keeps its jobs."""
    answer = go_to(request, "/login" if jobs_of(request).settings.tokens else "/")
    answer.delete_cookie(TOKEN_COOKIE, path=root_of(request.scope) or "/")
    return answer


def _set_cookie(request: Request, answer: Response, name: str, value: str) -> None:
    answer.set_cookie(
        name, value, max_age=COOKIE_SECONDS, path=root_of(request.scope) or "/",
        secure=request.url.scheme == "https", httponly=True, samesite="strict",
    )  # fmt: skip


def safe_path(path: str) -> str:
    """Return a path of this server; the form's if it could lead to another server."""
    return path if re.fullmatch(r"/(?![/\\])[\w/?=&.~%-]*", path, re.ASCII) and len(path) < 500 else "/"
