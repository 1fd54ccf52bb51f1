"""The HTTP API: jobs, results and databases, as `swsearch.server.house.House` has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from swsearch import report
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Integer, Real
from swsearch.remote.wire import SearchRequest
from swsearch.report.columns import COLUMNS
from swsearch.server import api_words as words
from swsearch.server.answers import API, disposition, job_stated, json_answer
from swsearch.server.given import (
    FORM_TYPE,
    JSON_TYPE,
    PARTS_TYPE,
    SEQUENCE_TYPES,
    TextPairs,
    check_names,
    media_type,
    numbers_of_text,
    range_of_text,
    searches_of_json,
    searches_of_text,
    without_fields,
)
from swsearch.server.jobs import Job, is_identifier
from swsearch.server.problems import ServerProblem
from swsearch.server.rendering import OWN_FORMAT
from swsearch.server.threads import GATHERED, ChunkedAnswer, Pools, Waiters, Watch, gathered

if TYPE_CHECKING:
    from swsearch.server.house import House
    from swsearch.server.rendering import Rendered

LONGEST_WAIT = 60.0
"""Seconds that a request may wait for the end of a job."""

MOST_FIELDS = 100
"""Fields of a form."""

MOST_SUBJECTS = 5000
"""Hits of which whole subjects are sent at a time."""

SHOWN_JOBS, MOST_JOBS = 100, 1000
"""Jobs of a list."""


def router_for(house: House, pools: Pools, waiters: Waiters) -> APIRouter:
    """Return the routes of the API.

    Parameters
    ----------
    house : House
        What the server can do.
    pools : Pools
        Threads that do it.
    waiters : Waiters
        Requests that wait for jobs.
    """
    endpoints = _Endpoints(house, pools, waiters)
    router = APIRouter(prefix=API)
    for method, path, name in words.ROUTES:
        router.add_api_route(
            path, getattr(endpoints, name), methods=[method], name=name, **words.description_of(method, path)
        )
    for name in ("health", "ready"):  # what watches servers likes to ask so
        router.add_api_route(f"/{name}", getattr(endpoints, name), methods=["HEAD"], include_in_schema=False)
    return router


class _Endpoints:
    """What each route does."""

    def __init__(self, house: House, pools: Pools, waiters: Waiters) -> None:
        self._house, self._pools, self._waiters = house, pools, waiters

    # jobs

    async def submit(self, request: Request) -> Response:
        """Submit a job, or one for each of several databases."""
        pairs = request.query_params.multi_items()
        wait = _wait_of(pairs)
        make = await self._asked(request, without_fields(pairs, ("wait",)))
        jobs = await self._pools.short(self._submitted, make, request.state.client)
        first = await self._waiters.wait(jobs[0].identifier, wait, request.receive) if wait else jobs[0]
        stated = {**self._stated(first, request), "jobs": [job.identifier for job in jobs]}
        return json_answer(stated, 202, {"Location": stated["links"]["self"]})

    def _submitted(self, make: Callable[[], list[SearchRequest]], client: str) -> list[Job]:
        return self._house.submit(make(), client)

    async def _asked(self, request: Request, pairs: TextPairs) -> Callable[[], list[SearchRequest]]:
        """Read a request's body, and return what makes searches of it, in a thread."""
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise ServerProblem("wrong_type", "the body is compressed, expected it as it is")
        kind = media_type(request.headers.get("content-type", ""))
        if kind == PARTS_TYPE:
            return partial(searches_of_text, *await _form(request, pairs))
        body = await request.body()
        if kind == JSON_TYPE:
            check_names(pairs, ())
            return partial(searches_of_json, body)
        if kind in SEQUENCE_TYPES or (kind == FORM_TYPE and body[:1] == b">"):  # curl calls all data a form
            return partial(searches_of_text, body, pairs)
        if kind == FORM_TYPE:
            return partial(searches_of_text, *await _form(request, pairs))
        expected = ", ".join((JSON_TYPE, PARTS_TYPE, *SEQUENCE_TYPES[:2]))
        raise ServerProblem(
            "wrong_type", f"Content-Type: got {kind[:80]!r}, expected {expected}", option="Content-Type",
            expected=expected,
        )  # fmt: skip

    async def jobs(self, request: Request) -> Response:
        """List the client's jobs."""
        given = check_names(request.query_params.multi_items(), ("state", "limit"))
        states, most = (
            given.get("state", "").split(","),
            Integer().parse("limit", given.get("limit", str(SHOWN_JOBS))),
        )
        if not 1 <= most <= MOST_JOBS:
            raise OptionError("limit", most, f"a whole number from 1 to {MOST_JOBS:,}")
        if unknown := [state for state in states if state and state not in words.STATES]:
            raise OptionError("state", unknown[0], f"one of {', '.join(words.STATES)}")
        found = await self._pools.short(self._house.jobs_of, request.state.client)
        if any(states):
            found = [job for job in found if job.state in states]
        return json_answer({"jobs": [self._stated(job, request, is_brief=True) for job in found[:most]]})

    async def job(self, request: Request) -> Response:
        """Tell of a job, when it has ended or the time is over."""
        pairs = request.query_params.multi_items()
        check_names(pairs, ("wait",))
        found = await self._waiters.wait(_identifier(request), _wait_of(pairs), request.receive)
        return json_answer(self._stated(found, request))

    async def cancel(self, request: Request) -> Response:
        """Stop a job."""
        _nothing(request)
        found = await self._pools.short(self._house.cancel, _identifier(request), request.state.client)
        return json_answer(self._stated(found, request))

    async def forget(self, request: Request) -> Response:
        """Stop and remove a job."""
        _nothing(request)
        await self._pools.short(self._house.forget, _identifier(request), request.state.client)
        return Response(status_code=204)

    async def queries(self, request: Request) -> Response:
        """Send a job's queries."""
        _nothing(request)
        identifier = _identifier(request)
        found = await self._pools.short(self._house.queries, identifier)
        headers = {"Content-Disposition": disposition(f"{identifier}.queries.txt")}
        return Response(found, headers=headers, media_type="text/plain; charset=utf-8")

    async def results(self, request: Request) -> Response:
        """Send a job's results."""
        given = check_names(request.query_params.multi_items(), ("format", "columns", "queries"))
        outfmt, identifier = _outfmt(given.get("format"), given.get("columns")), _identifier(request)
        queries = range_of_text("queries", given["queries"]) if "queries" in given else None
        rendered = await self._pools.rendered(self._house.rendered, identifier, outfmt, queries)
        return await self._file(rendered)

    async def subjects(self, request: Request) -> Response:
        """Send whole subjects."""
        given = check_names(request.query_params.multi_items(), ("query", "hits"))
        query = Integer().parse("query", given.get("query", "1"))
        if "hits" not in given:
            raise OptionError("hits", None, "the numbers of hits, such as 1,2,5-8")
        hits = numbers_of_text("hits", given["hits"], MOST_SUBJECTS)
        identifier = _identifier(request)
        chunks = iter(await self._pools.rendered(self._house.subjects, identifier, query, hits))
        begun = await self._pools.rendered(gathered, chunks, GATHERED)
        headers = {"Content-Disposition": disposition(f"{identifier}.fasta")}
        return ChunkedAnswer(begun, chunks, self._pools, headers, "text/x-fasta; charset=utf-8")

    async def search(self, request: Request) -> Response:
        """Search at once, and keep nothing; a client that leaves stops it."""
        pairs = request.query_params.multi_items()
        named = check_names([pair for pair in pairs if pair[0] in ("format", "columns")], ("format", "columns"))
        outfmt = _outfmt(named.get("format"), named.get("columns"))
        make = await self._asked(request, without_fields(pairs, ("format", "columns")))
        watch = Watch(request.receive)
        try:
            found = await self._pools.searched(watch, partial(self._searched, make, outfmt, request.state.client))
        except BaseException:
            watch.leave()
            raise
        if found is None:
            return Response(status_code=499)  # to nobody
        return self._answer(*found, watch)

    def _searched(
        self, make: Callable[[], list[SearchRequest]], outfmt: str, client: str, is_wanted: Callable[[], bool]
    ) -> tuple[bytes, Rendered, Any]:
        searches = make()
        if len(searches) > 1:
            raise InputError(f"database: got {len(searches)}, expected one; POST {API}/jobs takes several")
        rendered = self._house.search_now(searches[0], outfmt, client, is_wanted)
        chunks = iter(rendered.chunks)
        return gathered(chunks, GATHERED), rendered, chunks

    async def _file(self, rendered: Rendered) -> Response:
        chunks = iter(rendered.chunks)
        begun = await self._pools.rendered(gathered, chunks, GATHERED)
        return self._answer(begun, rendered, chunks)

    def _answer(self, begun: bytes, rendered: Rendered, chunks: Any, watch: Watch | None = None) -> Response:
        headers = {"Content-Disposition": disposition(rendered.file_name)}
        if len(begun) < GATHERED:
            self._pools.drop(chunks)
            if watch is not None:
                watch.leave()
            return Response(begun, headers=headers, media_type=rendered.content_type)
        return ChunkedAnswer(begun, chunks, self._pools, headers, rendered.content_type, watch)

    # what there is

    async def databases(self, request: Request) -> Response:
        """List the databases."""
        _nothing(request)
        places = list(self._house.places.values())
        return json_answer({"databases": await self._pools.short(lambda: [place.stated() for place in places])})

    async def database(self, request: Request) -> Response:
        """Tell of a database."""
        _nothing(request)
        name = request.path_params["name"]
        place = self._house.places.get(name)
        if place is None:
            raise ServerProblem(
                "not_found", f"no database {name[:80]!r}, expected one of {', '.join(self._house.places)}",
                option="database",
            )  # fmt: skip
        return json_answer(await self._pools.short(place.stated))

    async def formats(self, request: Request) -> Response:
        """List the formats of results."""
        _nothing(request)
        return json_answer({"formats": words.formats_stated(), "columns": ["std", *COLUMNS]})

    async def health(self, request: Request) -> Response:
        """Tell how the server is."""
        _nothing(request)
        found = await self._pools.short(self._house.health)
        return json_answer(found.stated(), 200 if found.ok else 503)

    async def ready(self, request: Request) -> Response:
        """Tell whether requests are taken."""
        _nothing(request)
        return json_answer({"ready": True})

    def _stated(self, job: Job, request: Request, is_brief: bool = False) -> dict[str, Any]:
        return job_stated(job, request.state.client, request.scope.get("root_path", ""), is_brief)


def _identifier(request: Request) -> str:
    identifier = str(request.path_params["identifier"])
    if not is_identifier(identifier):
        raise ServerProblem("not_found", f"no job {identifier[:40]!r}; an identifier has 20 letters and digits")
    return identifier


def _nothing(request: Request) -> None:
    check_names(request.query_params.multi_items(), ())


def _wait_of(pairs: TextPairs) -> float:
    given = check_names([pair for pair in pairs if pair[0] == "wait"], ("wait",))
    seconds = Real().parse("wait", given["wait"]) if "wait" in given else 0.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise OptionError("wait", seconds, f"seconds from 0 to {LONGEST_WAIT:g}")
    return seconds


def _outfmt(name: str | None, columns: str | None) -> str:
    """Return what is asked for as ``--outfmt`` has it; it is checked here, and for a saved search elsewhere."""
    given = "json" if name is None else name.strip()
    chosen = " ".join((columns or "").replace(",", " ").split())
    if given == OWN_FORMAT:
        if chosen:
            raise OptionError("columns", columns, f"none with format={OWN_FORMAT}")
        return given
    if not given or len(given.split()) > 1:
        raise OptionError("format", name, f"one of {', '.join(report.FORMATS)}")
    import io

    outfmt = f"{given} {chosen}" if chosen else given
    report.create_writer(outfmt, io.StringIO())
    return outfmt


async def _form(request: Request, pairs: TextPairs) -> tuple[bytes, Sequence[tuple[str, str]]]:
    """Read a form: queries, as text or as a file, and what stands beside them."""
    check_names(pairs, ())
    try:
        form = await request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=1 << 62)
    except HTTPException as error:
        raise ServerProblem("broken", f"the form cannot be read: {error.detail}") from None
    queries: list[bytes] = []
    beside: list[tuple[str, str]] = []
    try:
        for name, value in form.multi_items():
            if name == "queries":
                queries.append(await value.read() if isinstance(value, UploadFile) else value.encode())
            elif isinstance(value, UploadFile):
                raise OptionError(name, "a file", "text; the file of queries is the field queries")
            else:
                beside.append((name, value))
    finally:
        await form.close()
    if len(queries) != 1:
        raise InputError(f"queries: got {len(queries)} fields, expected one with FASTA, an alignment or profiles")
    return queries[0], beside
