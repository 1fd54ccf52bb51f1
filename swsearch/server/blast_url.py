"""BLAST's URL API: what Biopython's qblast and other programs ask of NCBI's server, asked of this one.

The words are those of `swsearch.server.blast_words`, the reports those of `swsearch.server.blast_formats`. A Put that
is refused is answered with status 200, as NCBI's server does it, since clients print the sentence only then. A Get
that cannot be answered has the status that says so: with 200, clients would take it for a report, or wait for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from swsearch.errors import OptionError, SwsearchError
from swsearch.server import blast_answers
from swsearch.server.answers import disposition
from swsearch.server.blast_formats import BlastFormat, format_of, report_in
from swsearch.server.blast_words import command_of, notes_on, request_of, sentence_of, words_of
from swsearch.server.gate import BLAST_PATHS
from swsearch.server.given import FORM_TYPE, PARTS_TYPE, media_type
from swsearch.server.jobs import Job, is_identifier
from swsearch.server.problems import STATUSES, ServerProblem, problem_of
from swsearch.server.threads import GATHERED, ChunkedAnswer, Pools, gathered

if TYPE_CHECKING:
    from swsearch.server.house import House

LONGEST_HELD = 15.0
"""Seconds that a question for a report is held while its search runs: Biopython asks at once, and next after 20."""

STATE_HELD = 5.0
"""Seconds that a question for the state of a search is held: who asks that asks often, and may not wait for long."""

LONGEST_LIKELY = 3600
"""Most seconds that a search is said to take."""

MOST_WORDS = 100
"""Parameters of a request."""

SHOWN_WITH_200 = ("broken", "not_found", "too_large", "wrong")
"""Codes of problems that clients are to print where a Put is refused for them."""

REPORT_POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Of the HTML report, whose own policy, within it, allows its script and nothing else."""


def router_for(house: House) -> APIRouter:
    """Return the routes of BLAST's URL API; the application that has them brings threads, and waits for jobs."""
    router = APIRouter(include_in_schema=False)
    desk = _Desk(house)
    for path in BLAST_PATHS:
        router.add_api_route(f"/{path}", desk.answer, methods=["GET", "POST"], response_model=None)
    return router


class _Desk:
    """Answers requests."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def answer(self, request: Request) -> Response:
        """Answer a request, whatever is wrong with it."""
        is_put = False
        try:
            pairs = await _pairs_of(request)
            if not pairs and request.method == "GET":
                return _page(blast_answers.described(list(self._house.places)))
            is_put = any(name.strip().upper() == "CMD" and value.strip().lower() == "put" for name, value in pairs)
            words = await _pools(request).short(words_of, pairs)
            command = command_of(words)
            if command != "Get" and request.state.why_foreign:  # a link or a picture of another site asks by GET
                raise ServerProblem("not_allowed", request.state.why_foreign)
            act = {"Put": self._put, "Get": self._get, "Delete": self._delete}[command]
            return await act(request, words)
        except SwsearchError as error:
            return _refusal(problem_of(error), is_put)

    async def _put(self, request: Request, words: Mapping[str, str]) -> Response:
        job, seconds = await _pools(request).short(self._submitted, words, request.state.client)
        return _page(blast_answers.submitted(job.identifier, seconds, [*notes_on(words), *job.notes]))

    def _submitted(self, words: Mapping[str, str], client: str) -> tuple[Job, int]:
        format_of(words)  # what no Get will be answered with is said before the search
        places = self._house.places
        dna = [name for name, place in places.items() if place.is_dna]
        job = self._house.submit([request_of(words, list(places), dna)], client)[0]
        counts = self._house.counts()
        return job, seconds_likely(job, counts.cells, counts.seconds)

    async def _get(self, request: Request, words: Mapping[str, str]) -> Response:
        wanted = None if _is_about_state(words) else format_of(words)
        try:
            held = STATE_HELD if wanted is None else LONGEST_HELD
            job = await request.app.state.waiters.wait(_rid(words), held, request.receive)
        except ServerProblem as problem:
            if wanted is not None or problem.code not in ("not_found", "expired"):
                raise
            return _page(blast_answers.search_info("UNKNOWN", problem=str(problem)))
        why = _why_none(job)
        if wanted is None:
            state: blast_answers.SearchStatus = "FAILED" if why else "READY" if job.is_ended else "WAITING"
            return _page(blast_answers.search_info(state, bool(job.n_hits), sentence_of(why) if why else ""))
        if why is not None:
            return _refusal(why, status="FAILED")
        if not job.is_ended:
            return _page(blast_answers.waiting(job.progress))
        return await self._report(job, wanted, _pools(request))

    async def _report(self, job: Job, wanted: BlastFormat, pools: Pools) -> Response:
        rendered = await pools.rendered(self._house.rendered, job.identifier, wanted.outfmt)
        content_type = wanted.content_type or rendered.content_type
        headers = {}
        if content_type.startswith("text/html"):
            headers["Content-Security-Policy"] = REPORT_POLICY
        if content_type == "application/zip":
            headers["Content-Disposition"] = disposition(f"{job.identifier}.zip")
        chunks = report_in(wanted, job.identifier, job.n_queries, rendered.chunks)
        begun = await pools.rendered(gathered, chunks, GATHERED)
        if len(begun) < GATHERED:
            return Response(begun, headers=headers, media_type=content_type)
        return ChunkedAnswer(begun, chunks, pools, headers, content_type)

    async def _delete(self, request: Request, words: Mapping[str, str]) -> Response:
        rid = _rid(words)
        await _pools(request).short(self._house.forget, rid, request.state.client)
        return _page(blast_answers.deleted(rid))


def seconds_likely(job: Job, cells: float, seconds: float) -> int:
    """Return in how many seconds a job is likely to be done.

    Parameters
    ----------
    job : Job
        As it was when it was submitted.
    cells : float
        Scored by this server until now.
    seconds : float
        That this took.
    """
    if not cells > 0 or not seconds > 0:
        return 1
    each = job.cells * seconds / cells
    return max(1, min(LONGEST_LIKELY, math.ceil(each * (1 + (job.place or 0)))))


async def _pairs_of(request: Request) -> list[tuple[str, str]]:
    """Return the parameters of a request, those of its body after those of its address."""
    pairs = list(request.query_params.multi_items())
    if request.method != "POST":
        return pairs
    kind = media_type(request.headers.get("content-type", ""))
    try:
        if kind in (FORM_TYPE, "text/plain", ""):
            return pairs + await _pools(request).short(_pairs_in, await request.body())
        if kind == PARTS_TYPE:
            return pairs + await _parts_of(request)
    except HTTPException as error:  # the framework takes all that reading a form raises for its own
        if isinstance(error.__cause__, SwsearchError):
            raise error.__cause__ from None
        raise ServerProblem("broken", f"the form cannot be read: {error.detail}") from None
    except ValueError as error:
        raise ServerProblem("broken", f"the form cannot be read: {error}") from None
    raise ServerProblem("wrong_type", f"Content-Type: got {kind[:80]!r}, expected {FORM_TYPE} or {PARTS_TYPE}")


async def _parts_of(request: Request) -> list[tuple[str, str]]:
    """Return the parameters of a form of parts; a file is a text like any other."""
    found = []
    async with request.form(max_files=1, max_fields=MOST_WORDS, max_part_size=1 << 62) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                found.append((name, (await value.read()).decode("utf-8", errors="replace")))
            else:
                found.append((name, value))
    return found


def _pairs_in(body: bytes) -> list[tuple[str, str]]:
    text = body.decode("utf-8", errors="replace")
    return parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_WORDS, errors="replace")


def _pools(request: Request) -> Pools:
    pools: Pools = request.app.state.pools
    return pools


def _is_about_state(words: Mapping[str, str]) -> bool:
    """Say whether a Get asks for the state of a search, and not for its report."""
    given = words.get("FORMAT_OBJECT", "Alignment")
    if given.lower() not in ("alignment", "searchinfo"):
        raise OptionError("FORMAT_OBJECT", given, "Alignment or SearchInfo")
    return given.lower() == "searchinfo"


def _rid(words: Mapping[str, str]) -> str:
    rid = words.get("RID", "").upper()
    if not is_identifier(rid):
        raise ServerProblem("not_found", f"RID: got {words.get('RID', '')[:40]!r}, expected that of a search here")
    return rid


def _why_none(job: Job) -> ServerProblem | None:
    """Return why a job has no results and never will."""
    if job.state == "cancelled":
        return ServerProblem("expired", "the search was cancelled")
    if job.state != "failed":
        return None
    told = job.problem or {}
    code = told.get("code")
    return ServerProblem(
        code if code in STATUSES else "failed", str(told.get("message") or "the search failed"),
        option=str(told.get("option") or ""),
    )  # fmt: skip


def _page(content: str, status: int = 200) -> Response:
    return Response(content, status, media_type="text/html; charset=utf-8")


def _refusal(
    problem: ServerProblem, is_put: bool = False, status: blast_answers.SearchStatus | None = None
) -> Response:
    """Return the page of a request that cannot be done."""
    if status is None and not is_put and problem.code in ("not_found", "expired"):
        status = "UNKNOWN"
    is_shown = is_put and problem.code in SHOWN_WITH_200
    answer = _page(blast_answers.refused(sentence_of(problem), status), 200 if is_shown else problem.status)
    if answer.status_code in (429, 503):
        answer.headers["Retry-After"] = str(problem.retry_after or 10)
    return answer
