"""Pages of jobs: watched while they run, then the report, a summary of many queries, downloads; and my jobs."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import Form, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from swsearch.errors import OptionError
from swsearch.report import OUTPUT_FORMATS, OutputFormat
from swsearch.report.html import Link, content_policy
from swsearch.server.answers import disposition
from swsearch.server.api import MOST_SUBJECTS
from swsearch.server.given import numbers_of_text, range_of_text
from swsearch.server.jobs import Job, is_identifier
from swsearch.server.page_fields import FORM_FIELDS, NOT_ON_THE_PAGE, choices_of
from swsearch.server.page_problems import JOB_ADVICE
from swsearch.server.page_views import PAGE_HEADERS, Shell, counted, lasting, named, progress_of
from swsearch.server.problems import ServerProblem
from swsearch.server.threads import GATHERED, ChunkedAnswer, gathered

if TYPE_CHECKING:
    from swsearch.server.house import House

QUERIES_A_PAGE = 50
"""Queries of one report, which a browser holds with all their alignments, and rows of a summary."""

JOBS_A_PAGE = 50

STATE_WORDS = {
    "queued": "waiting",
    "running": "running",
    "done": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}


@dataclass(frozen=True)
class SummaryRow:
    """What was found for a query: its number from 1, its name, hits, and the best with score and E-value as text."""

    number: int
    query: str
    hits: int
    best: str = ""
    score: str = ""
    evalue: str = ""


class JobPages:
    """Answers requests for pages of jobs.

    Parameters
    ----------
    house : House
        What the server can do.
    """

    def __init__(self, house: House) -> None:
        self._house = house

    def shell(self, request: Request) -> Shell:
        """Return what builds the pages of a request."""
        return Shell.of(request, bool(self._house.settings.tokens))

    def mine(self, request: Request, page: str = "1") -> Response:
        """List the jobs of whoever asks."""
        jobs = self._house.jobs_of(client_of(request))
        pages = max(1, -(-len(jobs) // JOBS_A_PAGE))
        number = min(whole_of("page", page), pages)
        now = time.time()
        shown = [(job, progress_of(job, now)) for job in jobs[(number - 1) * JOBS_A_PAGE : number * JOBS_A_PAGE]]
        shell = self.shell(request)
        values = {
            "jobs": shown, "total": len(jobs), "page": number, "pages": pages,
            "pager": f"{shell.root}/jobs?page=", "days": days_of(self._house.settings.limits.days),
        }  # fmt: skip
        return shell.page("jobs.html", values)

    def job(self, request: Request, identifier: str) -> Response:
        """Show how far a job is, or its report."""
        job = self._known(identifier)
        if job.state == "done":
            return self._report(request, job, (1, min(job.n_queries, QUERIES_A_PAGE)))
        values = self._values(request, job)
        code = (job.problem or {}).get("code", "failed")
        values |= {
            "progress": progress_of(job, time.time()),
            "advice": JOB_ADVICE.get(code, "Change the search and submit it again."),
        }
        return self.shell(request).page("job.html", values, headers={"Cache-Control": "no-store"})

    def state(self, request: Request, identifier: str) -> Response:
        """Say how far a job is, for the script of the page."""
        found = progress_of(self._known(identifier), time.time())
        return JSONResponse(found, headers={**PAGE_HEADERS, "Cache-Control": "no-store"})

    def report(self, request: Request, identifier: str, queries: str = "") -> Response:
        """Show the report of some of a job's queries."""
        job = self._known(identifier)
        return self._report(request, job, range_of(queries, job.n_queries))

    def subjects(self, request: Request, identifier: str, first: int, query: str = "1", hits: str = "1") -> Response:
        """Give whole subjects of a query as FASTA, where ``query`` counts from the first of a page of the report."""
        job = self._known(identifier)
        number = first + whole_of("query", query) - 1
        if not 1 <= first <= number <= job.n_queries:
            raise OptionError("query", query, "one of the report's queries")
        chunks = iter(self._house.subjects(identifier, number, numbers_of_text("hits", hits, MOST_SUBJECTS)))
        headers = {"Content-Disposition": disposition(f"{identifier}-{number}.fasta")}
        return _streamed(request, chunks, headers, "text/x-fasta; charset=utf-8")

    def details(self, request: Request, identifier: str) -> Response:
        """Show what was asked, the downloads and the address to share."""
        job = self._known(identifier)
        shell = self.shell(request)
        size = len(self._house.queries(identifier))
        place = self._house.places.get(job.database)
        values = self._values(request, job) | {
            "downloads": list(downloads_of(job, place is not None and place.is_dna)),
            "asked": list(asked_of(job)),
            "size": f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes",
            "address": f"{address_of(request)}/jobs/{job.identifier}",
        }
        return shell.page("details.html", values)

    def summary(self, request: Request, identifier: str, page: str = "1") -> Response:
        """Show the best hit of each query."""
        job = self._known(identifier)
        pages = max(1, -(-job.n_queries // QUERIES_A_PAGE))
        number = min(whole_of("page", page), pages)
        first = (number - 1) * QUERIES_A_PAGE
        last = min(first + QUERIES_A_PAGE, job.n_queries)
        rendered = self._house.rendered(identifier, "7 sseqid score evalue", queries=(first + 1, last))
        shell = self.shell(request)
        values = self._values(request, job) | {
            "rows": list(summary_of(rendered.chunks, first)), "page": number, "pages": pages,
            "pager": f"{shell.root}/jobs/{identifier}/summary?page=",
        }  # fmt: skip
        return shell.page("summary.html", values)

    def cancel(self, request: Request, identifier: str, then: str = Form("")) -> Response:
        """Cancel a job, and show it or the list."""
        self._known(identifier)
        try:
            self._house.cancel(identifier, client_of(request))
        except ServerProblem as problem:
            if problem.code != "conflict":  # it has ended meanwhile
                raise
        return self._go(request, "/jobs" if then == "jobs" else f"/jobs/{identifier}")

    def delete(self, request: Request, identifier: str) -> Response:
        """Delete a job, and show the list."""
        self._known(identifier)
        self._house.forget(identifier, client_of(request))
        return self._go(request, "/jobs")

    def _known(self, identifier: str) -> Job:
        if not is_identifier(identifier):
            raise ServerProblem("not_found", f"job {named(identifier[:40])!r} not found")
        return self._house.job(identifier)

    def _go(self, request: Request, path: str) -> Response:
        return RedirectResponse(f"{self.shell(request).root}{path}", 303, PAGE_HEADERS)

    def _values(self, request: Request, job: Job) -> dict[str, Any]:
        return {
            "job": job, "group": self._house.group(job.group), "states": STATE_WORDS,
            "is_mine": job.client == client_of(request),
        }  # fmt: skip

    def _report(self, request: Request, job: Job, queries: tuple[int, int]) -> Response:
        """Return the report of queries, from the first to the last of two numbers."""
        shell = self.shell(request)
        first, last = queries
        bar = list(bar_of(shell.root, job, self._house.group(job.group), queries))
        rendered = self._house.rendered(
            job.identifier, "html", queries=(first, last), bar=bar,
            subjects_url=f"{shell.root}/jobs/{job.identifier}/report/{first}/subjects",
        )  # fmt: skip
        headers = {**PAGE_HEADERS, "Content-Security-Policy": f"{content_policy()}; frame-ancestors 'none'"}
        return _streamed(request, iter(rendered.chunks), headers, "text/html; charset=utf-8")


def _streamed(request: Request, chunks: Iterator[bytes], headers: dict[str, str], media_type: str) -> Response:
    """Return what is sent as it is made; the first of it is made here, where what is wrong is still told."""
    begun = gathered(chunks, GATHERED)
    return ChunkedAnswer(begun, chunks, request.app.state.pools, headers, media_type)


def client_of(request: Request) -> str:
    """Return who asks, as the gate has found out."""
    return str(request.state.client)


def address_of(request: Request) -> str:
    """Return the address of the server as whoever asks knows it."""
    host = request.headers.get("host", "localhost")
    return f"{request.url.scheme}://{host}{str(request.scope.get('root_path', '')).rstrip('/')}"


def bar_of(root: str, job: Job, group: Sequence[Job], queries: tuple[int, int]) -> Iterator[Link]:
    """Yield the links above a report: pages of queries, what can be had of it, and the group's other databases."""
    place = f"{root}/jobs/{job.identifier}"
    yield Link("New search", f"{root}/")
    yield Link("My jobs", f"{root}/jobs")
    yield Link("Edit and search again", f"{root}/?from={job.identifier}")
    yield Link("Downloads, sharing, settings", f"{place}/details")
    yield Link("Table (TSV)", f"{root}/api/v1/jobs/{job.identifier}/results?format=6")
    first, last = queries
    if last - first + 1 < job.n_queries:
        yield Link(f"Queries {first:,} to {last:,} of {job.n_queries:,}: summary", f"{place}/summary")
        if first > 1:
            before = max(1, first - QUERIES_A_PAGE)
            yield Link("Previous queries", f"{place}/report?queries={before}-{first - 1}")
        if last < job.n_queries:
            after = min(job.n_queries, last + QUERIES_A_PAGE)
            yield Link("Next queries", f"{place}/report?queries={last + 1}-{after}")
    for each in group:
        if each.identifier != job.identifier:
            words = f"{named(each.database)}: {STATE_WORDS[each.state]}"
            yield Link(words, f"{root}/jobs/{each.identifier}")


def downloads_of(job: Job, is_dna: bool) -> Iterator[OutputFormat]:
    """Yield the formats that can hold a job's results and whose packages are installed."""
    for each in OUTPUT_FORMATS:
        writer = each.writer
        if writer.package and importlib.util.find_spec(writer.package) is None:
            continue
        if job.program(is_dna) in writer.programs and (job.n_queries == 1 or not writer.is_single_query):
            yield each


def asked_of(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the options that were chosen, in the words of the form."""
    for name, value in job.options.items():
        if name in NOT_ON_THE_PAGE or value is None:
            continue
        field = FORM_FIELDS.get(name)
        label = name if field is None else field.label
        if isinstance(value, dict):
            yield label, f"{value.get('name', 'custom')}, own matrix"
        elif isinstance(value, (list, tuple)):
            shown = ", ".join(map(str, value[:5]))
            yield label, f"{shown}, ... ({len(value):,})" if len(value) > 5 else shown
        elif isinstance(value, bool):
            yield label, "yes" if value else "no"
        else:
            words = dict(choices_of(field)) if field is not None and field.widget == "choice" else {}
            yield label, words.get(str(value), str(value))


def summary_of(chunks: Iterable[bytes], n_before: int) -> Iterator[SummaryRow]:
    """Yield a row for each query of a table with comments, whose columns are subject, score and E-value."""
    text = b"".join(chunks).decode("utf-8", "replace")
    query, best = "", ("", "", "")
    number = n_before
    row: SummaryRow | None = None
    for line in text.split("\n"):
        if line.startswith("# Query: "):
            query = line.removeprefix("# Query: ")
        elif found := re.fullmatch(r"# (\d+) hits found", line):
            if row is not None:
                yield row
            number += 1
            row = SummaryRow(number, query, int(found[1]))
        elif line and not line.startswith("#") and row is not None and not row.best and row.hits:
            best = tuple((*line.split("\t"), "", "")[:3])  # type: ignore[assignment]  # three of them
            row = SummaryRow(row.number, row.query, row.hits, *best)
    if row is not None:
        yield row


def whole_of(name: str, text: str) -> int:
    """Return a number from 1 in an address."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise OptionError(name, text, "a number from 1")
    return int(text)


def range_of(text: str, n_queries: int) -> tuple[int, int]:
    """Return the first and the last query that an address asks for; a page of them if it names none."""
    if not text:
        return 1, min(n_queries, QUERIES_A_PAGE)
    first, last = range_of_text("queries", text)
    if last > n_queries or last - first >= QUERIES_A_PAGE:
        expected = f"numbers from 1 to {n_queries:,}, at most {QUERIES_A_PAGE} of them"
        raise OptionError("queries", text, expected)
    return first, last


def days_of(days: float) -> str:
    """Return how long something is kept, for people."""
    return counted(int(days), "day") if days >= 1 and days == int(days) else lasting(days * 86400)
