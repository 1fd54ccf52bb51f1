"""BLAST's URL API, for Biopython's qblast and other clients of NCBI's server.

A refused Put is answered with status 200, as by NCBI's server, since clients print the sentence only then. A failed
Get has the status of its problem: with 200, clients would take it for a report, or wait for ever. Clients search
pages for ``RID =``, ``RTOE =`` and ``Status=``, so no text of a request may contain these marks.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qsl

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from swsearch.errors import OptionError, SwsearchError
from swsearch.server.api import FORM_TYPE, MAX_FIELDS, PARTS_TYPE, client_of, jobs_of, media_type, read_form
from swsearch.server.blast_parameters import command_of, notes_on, parse_parameters, request_of, sentence_of
from swsearch.server.errors import STATUSES, ServerProblem
from swsearch.server.job_store import Job, is_identifier
from swsearch.server.results import Format
from swsearch.server.streaming import stream_response

_MARKS = re.compile(r"(RID|RTOE|Status|ThereAreHits|QBlastInfo)(?=\s*=|Begin|End)", re.IGNORECASE)


def escape_markup(text: str) -> str:
    """Return any text as markup without marks; quotes stay, as clients print them."""
    return _MARKS.sub(lambda mark: f"{mark[0][0]}&#{ord(mark[0][1])};{mark[0][2:]}", escape(text, quote=False))


def marks(*lines: str) -> str:
    """Return a block that clients read."""
    return "\n".join(["<!--QBlastInfoBegin", *lines, "QBlastInfoEnd", "-->"])


def small_page(
    text: str, items: Sequence[str] = (), blocks: Sequence[str] = (), *, title: str = "BLAST search", head: str = ""
) -> str:
    """Return a page: markup of a paragraph, a list of any texts, and blocks of `marks`."""
    parts = [f"<p>{text}</p>"] if text else []
    if items:
        parts += ["<ul>", *(f"<li>{escape_markup(item)}</li>" for item in items), "</ul>"]
    body = "\n".join([*parts, *blocks])
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">{head}
<title>{title}</title>
</head>
<body>
{body}
</body>
</html>
"""


def refusal_page(problem: str, status: str = "") -> str:
    """Return the page of a request that failed, with the status of its search if there is one.

    It does not begin as a page that clients wait for, and has the sentence where they look for NCBI's.
    """
    block = f"<p>{marks(chr(9) + 'Status=' + status)}</p>\n" if status else ""
    return (
        '<html lang="en"><head><meta charset="utf-8"><title>BLAST search</title></head><body>\n'
        f'<ul id="msg" class="msg"><li class="error"><p class="error">{escape_markup(problem)}</p></li></ul>\n{block}'
        "</body></html>\n"
    )


_READY = b"QBlastInfoBegin\n\tStatus=READY\nQBlastInfoEnd"
"""Mark in NCBI's reports."""

Wrapper = Callable[[str, int, Iterable[bytes]], Iterator[bytes]]
"""Yields a report as its readers expect it, from the RID, the number of queries and the bytes of our report."""


def _frame(head: bytes = b"", tail: bytes = b"") -> Wrapper:
    """Return a wrapper that puts bytes before and after a report."""

    def framed(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        yield head
        yield from chunks
        yield tail

    return framed


def _without_status(escaped: bytes) -> Wrapper:
    """Return a `Wrapper` that replaces ``Status=`` in a report: NCBIWWW.qblast takes it for the search's status."""
    mark = b"Status="

    def hidden(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        pending = b""
        for chunk in chunks:
            text = (pending + chunk).replace(mark, escaped)
            pending = text[1 - len(mark) :]
            yield text[: len(text) - len(pending)]
        yield pending

    return hidden


def _zip(rid: str, n_queries: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield an archive of NCBI's JSON: a list of files, and one file for each query.

    Our report has a line for each query, with a comma at the end of all but one, between a first and a last line.
    """
    sink = _Sink()
    names = [f"{rid}_{number}.json" for number in range(1, n_queries + 1)]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            f"{rid}.json", json.dumps({"BlastJSON": [{"File": name} for name in names]}, indent=1) + "\n"
        )
        pieces = _pieces_of_lines(chunks)
        for _piece, is_end in pieces:  # the first line
            if is_end:
                break
        for name in names:
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(b'{"BlastOutput2":')
                pending = b""
                for piece, is_end in pieces:
                    pending += piece
                    if is_end:
                        file.write(pending.removesuffix(b",") + b"}\n")
                        break
                    file.write(pending[:-1])
                    pending = pending[-1:]
                    yield sink.take()
        for _rest in pieces:
            pass
    yield sink.take()


def _pieces_of_lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield parts of lines without their ends, and whether each is the last of its line."""
    for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield line, True
        if rest:
            yield rest, False


class _Sink(io.RawIOBase):
    """A file that an archive is written to, piece by piece."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: object) -> int:
        data = bytes(part)  # type: ignore[call-overload]  # what zipfile writes is bytes
        self._parts.append(data)
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        data, self._parts = b"".join(self._parts), []
        return data


class BlastFormat(NamedTuple):
    """A report of BLAST's URL API."""

    outfmt: str
    """Our report, as in ``--outfmt``."""
    wrap: Wrapper
    what: str
    """Description for people."""
    content_type: str = ""
    """Media type, unless it is that of our report."""


_PLAIN = "text/plain; charset=utf-8"

# clients cut the text out; it is plain text, so nothing is escaped
_TEXT = _frame(b"<p><!--\n" + _READY + b"\n--><p>\n<PRE>\n", b"</PRE>\n")

_TABULAR = BlastFormat(
    "7 std ppos", _TEXT, "a table with comment lines, as above; after blastp's columns % positives", _PLAIN
)

BLAST_FORMATS: Mapping[str, BlastFormat] = {
    "HTML": BlastFormat(
        "html", _frame(b"<!--\n" + _READY + b"\n-->\n"), "this server's page of results; the default"
    ),
    "Text": BlastFormat("0", _TEXT, "blastp's report for people, between `<PRE>` and `</PRE>`", _PLAIN),
    "Tabular": _TABULAR,
    "CSV": BlastFormat("10 std ppos", _frame(), "the same table with commas, nothing else"),
    "XML": BlastFormat("5", _without_status(b"Status&#61;"), "BLAST XML"),
    "JSON2": BlastFormat(
        "15", _zip, "BLAST JSON, zipped: a list of files, and one for each query", "application/zip"
    ),
    "JSON2_S": BlastFormat("15", _without_status(b"Status\\u003d"), "BLAST JSON in one file"),
    "SAM": BlastFormat("sam", _frame(), "SAM"),
}
"""Every FORMAT_TYPE."""


def format_of(words: Mapping[str, str]) -> BlastFormat:
    """Return the report that a Get requests; raise `OptionError` if there is no such report."""
    text = words.get("FORMAT_TYPE", "HTML")
    name = next((format_name for format_name in BLAST_FORMATS if format_name.lower() == text.lower()), None)
    if name is None:
        raise OptionError("FORMAT_TYPE", text, f"one of {', '.join(BLAST_FORMATS)}")
    view = words.get("ALIGNMENT_VIEW", "Pairwise") if name in ("Text", "HTML") else "Pairwise"
    if view.lower() not in ("pairwise", "tabular"):
        raise OptionError("ALIGNMENT_VIEW", view, "Pairwise or Tabular")
    return _TABULAR if view.lower() == "tabular" else BLAST_FORMATS[name]


def report_in(blast_format: BlastFormat, rid: str, n_queries: int, chunks: Generator[bytes]) -> Generator[bytes]:
    """Yield a report as its readers expect it; closing it closes our report."""
    with closing(chunks):
        yield from blast_format.wrap(rid, n_queries, chunks)


REPORT_SECONDS = 15.0
"""Maximum wait of a request for a report: Biopython asks at once, and then every 20 seconds."""

STATE_SECONDS = 5.0
"""Maximum wait of a request for the state of a search: its clients ask often."""

MAX_LIKELY_SECONDS = 3600
"""Maximum estimate of a search's time."""

SHOWN_WITH_200 = ("broken", "not_found", "too_large", "wrong")
"""Codes of problems of a Put that clients print."""

REPORT_POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Policy of the HTML report, which contains a policy for its script and its style."""

router = APIRouter(include_in_schema=False)


@router.api_route("/Blast.cgi", methods=["GET", "POST"])
@router.api_route("/blast/Blast.cgi", methods=["GET", "POST"])
async def ask(request: Request) -> Response:
    """Answer a request, also a wrong one."""
    jobs, is_put = jobs_of(request), False
    try:
        pairs = await _pairs_of(request)
        if not pairs and request.method == "GET":
            return _page(_description(list(jobs.databases)))
        is_put = any(name.strip().upper() == "CMD" and value.strip().lower() == "put" for name, value in pairs)
        words = await run_sync(parse_parameters, pairs)
        command = command_of(words)
        if command != "Get" and request.state.why_foreign:  # a link or an image of another site sends GET
            raise ServerProblem("not_allowed", request.state.why_foreign)
        return await {"Put": put, "Get": get, "Delete": delete}[command](request, words)
    except SwsearchError as error:
        problem = jobs.problem_for(error)
        status = "UNKNOWN" if not is_put and problem.code in ("not_found", "expired") else ""
        return _refusal(problem, status, is_shown=is_put and problem.code in SHOWN_WITH_200)


async def put(request: Request, words: Mapping[str, str]) -> Response:
    """Submit a search."""
    jobs = jobs_of(request)
    format_of(words)  # a report that no Get can send is refused before the search
    dna = [name for name, each in jobs.databases.items() if each.is_dna]
    search = await run_sync(request_of, words, list(jobs.databases), dna)
    (job,) = await run_sync(jobs.submit, [search], client_of(request))
    seconds = likely_seconds(job, *jobs.scoring_totals())
    link = f'<a href="?CMD=Get&amp;RID={job.identifier}">its report</a>'
    block = marks(f"    RID = {job.identifier}", f"    RTOE = {seconds}")
    return _page(small_page(f"The search was submitted: {link}.", [*notes_on(words), *job.notes], [block]))


async def get(request: Request, words: Mapping[str, str]) -> Response:
    """Send the state of a search or its report."""
    blast_format = None if _is_about_state(words) else format_of(words)
    try:
        job = await jobs_of(request).wait(_rid(words), REPORT_SECONDS if blast_format else STATE_SECONDS)
    except ServerProblem as problem:
        if blast_format is not None or problem.code not in ("not_found", "expired"):
            raise
        return _page(state_page("UNKNOWN", problem=str(problem)))
    failure = _failure(job)
    if blast_format is None:
        state = "FAILED" if failure else "READY" if job.is_ended else "WAITING"
        return _page(state_page(state, bool(job.n_hits), sentence_of(failure) if failure else ""))
    if failure is not None:
        return _refusal(failure, "FAILED")
    return await _report(request, job, blast_format) if job.is_ended else _page(waiting_page(job.progress))


def state_page(state: str, has_hits: bool = False, problem: str = "") -> str:
    """Return the response to FORMAT_OBJECT=SearchInfo."""
    blocks = [marks(f"\tStatus={state}")]
    if state == "READY":
        blocks.append(marks(f"\tThereAreHits={'yes' if has_hits else 'no'}"))
    return small_page(escape_markup(problem), blocks=blocks)


def waiting_page(progress: float) -> str:
    """Return the response to a request for a report before its search has ended; a browser loads it again."""
    refresh = '\n<meta http-equiv="refresh" content="2">'
    return small_page(
        f"The search runs: {100 * progress:.0f} % are done.", blocks=[marks("\tStatus=WAITING")], head=refresh
    )


async def _report(request: Request, job: Job, blast_format: BlastFormat) -> Response:
    report = Format(blast_format.outfmt)
    content_type = blast_format.content_type or report.media_type
    headers = {"Content-Security-Policy": REPORT_POLICY} if content_type.startswith("text/html") else {}
    name = f"{job.identifier}.zip" if content_type == "application/zip" else ""
    rendered = await run_sync(jobs_of(request).render, job.identifier, report)
    pieces = report_in(blast_format, job.identifier, job.n_queries, rendered)
    return await stream_response(request, pieces, content_type, "reports", name, headers=headers)


async def delete(request: Request, words: Mapping[str, str]) -> Response:
    """Delete a search."""
    rid = _rid(words)
    await jobs_of(request).delete(rid, client_of(request))
    return _page(small_page(f"The search {rid} and its results are deleted."))


def _description(databases: list[str]) -> str:
    """Return the response to a request without parameters."""
    text = (
        "This address answers programs that speak BLAST's URL API: CMD is Put, Get or Delete, PROGRAM is blastp "
        "or blastx, and tblastn or tblastx of a DNA database.</p>\n<p>DATABASE is one of"
    )
    return small_page(text, databases, title="BLAST's URL API")


def likely_seconds(job: Job, cells: float, seconds: float) -> int:
    """Return the likely time of a queued job, as this server took ``seconds`` for ``cells`` until now."""
    if not cells > 0 or not seconds > 0:
        return 1
    of_job = job.cells * seconds / cells
    return max(1, min(MAX_LIKELY_SECONDS, math.ceil(of_job * (1 + (job.queue_position or 0)))))


async def _pairs_of(request: Request) -> list[tuple[str, str]]:
    """Return the parameters of a request: those of its address, then those of its body."""
    pairs = list(request.query_params.multi_items())
    if request.method != "POST":
        return pairs
    kind = media_type(request)
    if kind == PARTS_TYPE:
        form = await read_form(request)
        return pairs + [
            (name, text if isinstance(text, str) else text.decode("utf-8", "replace")) for name, text in form
        ]
    if kind not in (FORM_TYPE, "text/plain", ""):
        raise ServerProblem("wrong_type", f"Content-Type: got {kind[:80]!r}, expected {FORM_TYPE} or {PARTS_TYPE}")
    try:
        return pairs + await run_sync(_pairs_in, await request.body())
    except ValueError as error:  # too many fields
        raise ServerProblem("broken", f"the form cannot be read: {error}") from None


def _pairs_in(body: bytes) -> list[tuple[str, str]]:
    text = body.decode("utf-8", errors="replace")
    return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace")


def _is_about_state(words: Mapping[str, str]) -> bool:
    """Return whether a Get requests the state of a search, not its report."""
    value = words.get("FORMAT_OBJECT", "Alignment")
    if value.lower() not in ("alignment", "searchinfo"):
        raise OptionError("FORMAT_OBJECT", value, "Alignment or SearchInfo")
    return value.lower() == "searchinfo"


def _rid(words: Mapping[str, str]) -> str:
    rid = words.get("RID", "").upper()
    if not is_identifier(rid):
        raise ServerProblem("not_found", f"RID: got {words.get('RID', '')[:40]!r}, expected that of a search here")
    return rid


def _failure(job: Job) -> ServerProblem | None:
    """Return the problem of a job that has ended without results."""
    if job.state == "cancelled":
        return ServerProblem("expired", "the search was cancelled")
    if job.state != "failed":
        return None
    problem = job.problem or {}
    code = problem.get("code")
    message = str(problem.get("message") or "the search failed")
    return ServerProblem(code if code in STATUSES else "failed", message, option=str(problem.get("option") or ""))


def _page(content: str, status: int = 200) -> Response:
    return Response(content, status, media_type="text/html; charset=utf-8")


def _refusal(problem: ServerProblem, search_status: str, is_shown: bool = False) -> Response:
    """Return the page of a request that failed."""
    page = _page(refusal_page(sentence_of(problem), search_status), 200 if is_shown else problem.status)
    if page.status_code in (429, 503):
        page.headers["Retry-After"] = str(problem.retry_after or 10)
    return page
