"""The MSA API that ColabFold, Boltz, Chai-1, OpenFold3 and Protenix ask for alignments.

A ticket is the checksum of a request. Its jobs, one per database, have identifiers that follow from it, so a ticket
is known as long as its jobs are. Each job writes its alignments while it searches. When all are done, a thread makes
the tar in the folder of the first. The ticket is ``COMPLETE`` when the tar is there. Clients repeat a request that
takes longer than 6 seconds, so none waits for a long search. They read no status codes.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import os
import re
import tarfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import parse_qsl

import numpy as np
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from swsearch.client.search_request import SearchRequest
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import PairStrategy
from swsearch.output_files import open_outputs
from swsearch.pipeline.search_results import SearchResults
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.profiles.row_filter import RowFilter
from swsearch.report.alignments import a3m_texts
from swsearch.report.pairing import Chain, pair_chains
from swsearch.results import SearchResult, alignment_of
from swsearch.server.api import MAX_FIELDS, PARTS_TYPE, client_of, jobs_of, media_type, read_form
from swsearch.server.blast import likely_seconds
from swsearch.server.errors import ServerProblem
from swsearch.server.job_store import IDENTIFIER_LENGTH, LETTERS, Job
from swsearch.server.jobs import Jobs
from swsearch.version import version

MAIN, ENVIRONMENTAL = "uniref", "bfd.mgnify30.metaeuk30.smag30"
"""Names of the alignments in a tar, without ``.a3m``; the second is of a server's environmental database too."""

MODE_WORDS = {"msa": ("env", "all", "nofilter", "notemplates"), "pair": ("pairgreedy", "paircomplete", "env")}
"""Words of modes by types of tickets, the default first; in a mode ``-`` stands between them."""

TITLE = "MSA "
"""Beginning of the titles of jobs of this API, before the mode."""

FILTER, MIN_FILTERED_ROWS = RowFilter(max_identity=95, diff=3000), 1000
"""Filter of alignments of so many rows or more, unless a mode says ``nofilter``, as ColabFold's server has it."""

MAX_PAIRS = 8192
"""Maximum number of paired rows: Boltz reads no more."""

MAX_HITS, MAX_EVALUE, ITERATIONS = 10_000, 1e-3, 3
"""Search of a ticket, as the defaults of ``swsearch msa``; a server's limit of hits may be lower."""

COMPRESSION = 1
"""Level of gzip: 5 takes twice as long for a tenth fewer bytes."""

SUBMIT_SECONDS, STATE_SECONDS = 3.0, 1.0
"""Maximum wait of a submission of a small search, and of a request for a ticket whose tar is being made."""


class TicketState(NamedTuple):
    """Status of a ticket in the words of the API, and the reason of a failure."""

    id: str
    status: str
    reason: str = ""


def job_identifiers(ticket: str, count: int) -> list[str]:
    """Return the identifiers of the jobs of a ticket, each 100 bits of a checksum."""
    checksums = [hashlib.sha256(f"{ticket}/{place}".encode()).digest() for place in range(count)]
    return ["".join(LETTERS[byte & 31] for byte in each[:IDENTIFIER_LENGTH]) for each in checksums]


def type_of(mode: Sequence[str]) -> str:
    """Return the type of a ticket by the words of its mode, msa or pair."""
    return "pair" if any(word.startswith("pair") for word in mode) else "msa"


def mode_of(job: Job) -> list[str]:
    """Return the words of the mode of a job."""
    return job.title.removeprefix(TITLE).split("-")


def headers_of(request: SearchRequest) -> list[str]:
    """Return the headers of queries as they came, but for NUL bytes."""
    lines = [line for line in request.queries.splitlines() if line.startswith(b">")]
    return [line[1:].replace(b"\0", b"").strip().decode("utf-8", "replace") for line in lines]


def block(header: str, alignment: QueryAlignment) -> bytes:
    """Return the A3M of a query, whose header is kept as it came, with the NUL byte that ends it."""
    _, _, rest = "".join(a3m_texts(alignment)).partition("\n")
    return f">{header}\n{rest}\0".encode("utf-8", "replace")


def blocks(results: SearchResults, headers: Sequence[str], mode: Sequence[str]) -> Iterator[bytes]:
    """Yield a block for each query of a search, whose results are taken."""
    found = (result for batch in results.batches(aligned=True) for result in batch)
    if type_of(mode) == "pair":
        pair: PairStrategy = "complete" if "paircomplete" in mode else "greedy"
        yield from map(block, headers, paired_alignments(list(found), pair))
        return
    for header, result in zip(headers, found, strict=True):
        alignment = alignment_of(result)
        is_filtered = "nofilter" not in mode and len(alignment) >= MIN_FILTERED_ROWS
        rows = FILTER if is_filtered else RowFilter()
        yield block(header, rows.apply(alignment) if result.query_length else alignment)


def paired_alignments(results: Sequence[SearchResult], pair: PairStrategy) -> list[QueryAlignment]:
    """Return the paired rows of chains; of a database without taxa the queries alone."""
    chains = [Chain.from_result("", result, RowFilter()) for result in results]
    if not any(chain.best for chain in chains):
        return [chain.alignment.take(np.zeros(1, dtype=np.int64)) for chain in chains]
    return [each.paired or each.unpaired for each in pair_chains(chains, pair, MAX_PAIRS)[0]]


def write_tar(path: Path, members: Iterable[tuple[str, IO[bytes]]], modified: float) -> None:
    """Write a gzipped tar of files without a folder."""
    with (
        open_outputs([(str(path), True)]) as (stream,),
        tarfile.open(fileobj=stream, mode="w:gz", compresslevel=COMPRESSION) as archive,
    ):
        for name, file in members:
            with file:
                info = tarfile.TarInfo(name)
                info.size, info.mtime = file.seek(0, os.SEEK_END), int(modified)
                file.seek(0)
                archive.addfile(info, file)


class Tickets:
    """Tickets of a server, over its jobs. Methods that are not coroutines may block, and run in threads."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        jobs.take_results = self.write_blocks
        self._guard = threading.Lock()
        """Held while a ticket is looked up and its jobs are submitted."""
        self._tars: dict[str, asyncio.Task[None]] = {}
        """Tars that are being made, or could not be made."""

    # submission

    def _databases(self, names: Sequence[str], mode: Sequence[str]) -> list[str]:
        """Return the databases of a request: the main one, and the environmental one if the mode wants it."""
        proteins = [name for name, each in self._jobs.databases.items() if not each.is_dna]
        chosen = list(dict.fromkeys(names))[:2] or [name for name in proteins if name != ENVIRONMENTAL][:1]
        if not chosen or not {*chosen} <= {*proteins}:
            expected = f"databases of proteins, of which the server has {', '.join(proteins) or 'none'}"
            raise OptionError("database[]", ", ".join(names), expected)
        if len(chosen) == 1 and ENVIRONMENTAL in proteins:
            chosen.append(ENVIRONMENTAL)
        return chosen if "env" in mode and type_of(mode) == "msa" else chosen[:1]

    def requests(self, kind: str, fasta: bytes, mode: str, databases: Sequence[str]) -> list[SearchRequest]:
        """Return the searches of a request; raise `InputError` if the mode or a database is wrong."""
        known, words = MODE_WORDS[kind], mode.split("-")
        if type_of(words) != kind or not {*words} <= {*known}:
            raise OptionError("mode", mode, f"words of {', '.join(known)} with - between them, such as {known[0]}")
        if not fasta.lstrip().startswith(b">"):
            raise InputError("q: got no FASTA, expected records that begin with >")
        max_hits = min(MAX_HITS, self._jobs.settings.limits.hits)
        options = {"iterations": ITERATIONS, "evalue": MAX_EVALUE, "max_hits": max_hits, "allow_dna": True}
        names = self._databases(databases, words)
        return [SearchRequest(name, fasta, "fasta", options, TITLE + mode) for name in names]

    def ticket_of(self, searches: Sequence[SearchRequest]) -> str:
        """Return the SHA-224 checksum of searches and of what they depend on, 38 characters."""
        databases = [self._jobs.databases[each.database] for each in searches]
        text = json.dumps([version(), *map(str, (each.checksums for each in databases))])
        text += json.dumps([each.to_json() for each in searches], sort_keys=True)
        return base64.urlsafe_b64encode(hashlib.sha224(text.encode()).digest()).decode().rstrip("=")

    def submit(self, searches: Sequence[SearchRequest], client: str) -> str:
        """Return the ticket of searches, whose jobs are submitted if they are not there or have failed."""
        ticket = self.ticket_of(searches)
        with self._guard:
            jobs = self.jobs(ticket)
            if jobs and self._state_of(ticket, jobs).status != "ERROR":
                return ticket
            self._tars.pop(ticket, None)
            for each in (identifiers := job_identifiers(ticket, len(searches))):
                self._jobs.store.delete(each)  # also where others of the ticket were removed on the pages
            self._jobs.submit(searches, client, identifiers=identifiers)
        return ticket

    # state

    def jobs(self, ticket: str) -> list[Job]:
        """Return the jobs of a ticket; none if it is unknown or its time is over."""
        try:
            return self._jobs.group(*job_identifiers(ticket, 1))
        except ServerProblem as problem:
            if problem.code in ("not_found", "expired"):
                return []
            raise

    def path(self, ticket: str) -> Path:
        """Return the path of the tar of a ticket; it is removed with its job."""
        return self._jobs.store.checkpoint_of(*job_identifiers(ticket, 1)).parent / "msa.tar.gz"

    def _state_of(self, ticket: str, jobs: Sequence[Job]) -> TicketState:
        if not jobs:
            return TicketState(ticket, "UNKNOWN")
        if not all(job.is_ended for job in jobs):
            return TicketState(ticket, "PENDING" if all(job.state == "queued" for job in jobs) else "RUNNING")
        if failed := [job for job in jobs if job.state != "done"]:
            problem = failed[0].problem or {"message": "the search was cancelled"}
            return TicketState(ticket, "ERROR", str(problem["message"]))
        if self.path(ticket).exists():
            return TicketState(ticket, "COMPLETE")
        if (tar := self._tars.get(ticket)) is not None and tar.done() and (error := tar.exception()) is not None:
            return TicketState(ticket, "ERROR", str(self._jobs.problem_for(error)))
        return TicketState(ticket, "RUNNING")

    async def state(self, ticket: str, request: Request, *, is_new: bool = False) -> TicketState:
        """Return the state of a ticket, when a small search or its tar is done, or after a few seconds."""
        jobs = await run_sync(self.jobs, ticket)
        end = time.monotonic() + (SUBMIT_SECONDS if is_new else STATE_SECONDS)
        totals = self._jobs.scoring_totals()
        if is_new and sum(likely_seconds(job, *totals) for job in jobs) <= SUBMIT_SECONDS:
            jobs = [await self._jobs.wait(job.identifier, end - time.monotonic()) for job in jobs]
        state = await run_sync(self._state_of, ticket, jobs)
        if state.status == "RUNNING" and all(job.state == "done" for job in jobs):
            if ticket not in self._tars:
                limiter = request.app.state.limiters["reports"]
                self._tars[ticket] = asyncio.create_task(run_sync(self.make_tar, ticket, jobs, limiter=limiter))
            await asyncio.wait([self._tars[ticket]], timeout=max(0.0, end - time.monotonic()))
            state = await run_sync(self._state_of, ticket, jobs)
        if state.status == "COMPLETE":
            self._tars.pop(ticket, None)
        return state

    # results

    def _blocks_of(self, job: Job) -> Path:
        return self._jobs.store.checkpoint_of(job.identifier).parent / "blocks.a3m"

    def write_blocks(self, job: Job, request: SearchRequest, results: SearchResults) -> None:
        """Write the alignments of a job of this API while it searches."""
        if not job.title.startswith(TITLE) or self._jobs.databases[job.database].is_dna:
            return
        with open_outputs([(str(self._blocks_of(job)), True)]) as (stream,):
            stream.writelines(blocks(results, headers_of(request), mode_of(job)))

    def make_tar(self, ticket: str, jobs: Sequence[Job]) -> None:
        """Write the tar of a ticket whose jobs are done."""
        mode = mode_of(jobs[0])

        def members() -> Iterator[tuple[str, IO[bytes]]]:
            names = ("pair",) if type_of(mode) == "pair" else (MAIN, ENVIRONMENTAL)
            for name, job in zip(names, jobs, strict=False):
                yield f"{name}.a3m", self._blocks_of(job).open("rb")
            if "env" in mode and type_of(mode) == "msa" and len(jobs) == 1:  # clients expect the file
                request = self._jobs.store.request(jobs[0].identifier)
                queries = zip(headers_of(request), request.read_queries()[0], strict=True)
                alone = (block(header, QueryAlignment.from_query("", "", query.codes)) for header, query in queries)
                yield f"{ENVIRONMENTAL}.a3m", io.BytesIO(b"".join(alone))
            if type_of(mode) == "msa" and "notemplates" not in mode:
                yield "pdb70.m8", io.BytesIO()

        write_tar(self.path(ticket), members(), jobs[0].submitted)


router = APIRouter(include_in_schema=False)


async def _fields(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form, whose type may be named wrongly: Boltz calls it JSON."""
    if media_type(request) == PARTS_TYPE:
        form = await read_form(request)
        return [(name, text if isinstance(text, str) else text.decode("utf-8", "replace")) for name, text in form]
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace")
    except ValueError as error:
        raise ServerProblem("broken", f"the form cannot be read: {error}") from None


def _tickets_of(request: Request) -> Tickets:
    return request.app.state.tickets  # type: ignore[no-any-return]


def _checked(ticket: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{38}", ticket):
        raise ServerProblem("broken", f"ticket: got {ticket[:40]!r}, expected 38 letters, digits, - and _")
    return ticket


@router.post("/ticket/msa")
@router.post("/ticket/pair")
async def submit(request: Request) -> Response:
    """Submit queries, or find their ticket."""
    fields, tickets = await _fields(request), _tickets_of(request)
    texts = [value for name, value in fields if name == "q"]
    if len(texts) != 1:
        raise InputError(f"q: got {len(texts)} fields, expected one with FASTA")
    kind = str(request.scope["route"].path).rpartition("/")[2]
    mode = next((value for name, value in fields if name == "mode" and value), MODE_WORDS[kind][0])
    databases = [value for name, value in fields if name == "database[]"]
    try:
        searches = await run_sync(tickets.requests, kind, texts[0].encode(), mode, databases)
        ticket = await run_sync(tickets.submit, searches, client_of(request))
    except ServerProblem as problem:
        if problem.code not in ("too_many", "unavailable", "disk_full"):
            raise  # else clients submit again
        return JSONResponse({"status": "RATELIMIT", "reason": str(problem)}, 429)
    return JSONResponse((await tickets.state(ticket, request, is_new=True))._asdict())


@router.get("/ticket/{ticket}")
async def state(request: Request, ticket: str) -> Response:
    """Send the status of a ticket."""
    return JSONResponse((await _tickets_of(request).state(_checked(ticket), request))._asdict())


@router.post("/tickets")
async def states(request: Request) -> Response:
    """Send the status of several tickets."""
    tickets = [_checked(value) for name, value in await _fields(request) if name == "tickets[]"]
    found = await asyncio.gather(*(_tickets_of(request).state(each, request) for each in tickets))
    return JSONResponse([each._asdict() for each in found])


@router.get("/ticket/type/{ticket}")
async def send_type(request: Request, ticket: str) -> Response:
    """Send the type of a ticket."""
    for job in await run_sync(_tickets_of(request).jobs, _checked(ticket)):
        return JSONResponse({"type": type_of(mode_of(job))})
    raise ServerProblem("broken", f"ticket {ticket}: there is none, or its time is over; submit it again")


@router.get("/result/download/{ticket}")
async def download(request: Request, ticket: str) -> Response:
    """Send the tar of a ticket."""
    path = _tickets_of(request).path(_checked(ticket))
    if not await run_sync(path.exists):
        raise ServerProblem("broken", f"ticket {ticket}: it is not complete, ask for its status")
    return FileResponse(path, media_type="application/octet-stream", filename="msa.tar.gz")


@router.get("/queue")
async def queue(request: Request) -> Response:
    """Send the number of jobs that wait."""
    return JSONResponse({"queued": (await run_sync(jobs_of(request).store.counts)).get("queued", 0)})
