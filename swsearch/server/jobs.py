"""Jobs and immediate searches, started by the event loop and computed in threads.

`Jobs.submit` checks a request and adds a row to the table. `Jobs.run` claims the row and starts a thread. The thread
saves its results in the job's checkpoint, which `swsearch.server.results` reads.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

import anyio
from anyio.to_thread import run_sync

from swsearch.client.search_request import SearchRequest
from swsearch.errors import InputError, MemoryLimitError, OtherCheckpointError, OutputError
from swsearch.options.kinds import JOB_STATES, JobState
from swsearch.pipeline.fingerprint import PROGRAM_NAMES
from swsearch.pipeline.prefetch import SearchCancelled
from swsearch.pipeline.search import Search
from swsearch.pipeline.search_results import SearchResults
from swsearch.report.outputs import JobOutput, write_job_outputs
from swsearch.server.databases import (
    EngineLease,
    ServedDatabase,
    begin_search,
    note_failure,
    open_databases,
    with_engine,
    without_folders,
)
from swsearch.server.errors import ServerProblem, problem_of
from swsearch.server.job_store import SECONDS_PER_DAY, Job, JobStore, disk_full, is_full, new_identifier, payer_of
from swsearch.server.results import Format, StoredResults
from swsearch.server.settings import ServerSettings
from swsearch.server.validation import find_database, validate_request

log = logging.getLogger(__name__)

StopReason = Literal["", "cancelled", "time", "unwanted", "ending"]

SWEEP_SECONDS = 60.0
"""Seconds between removals of jobs whose time is over."""

CANCEL_SECONDS = 5.0
"""Maximum seconds that a cancellation waits for the job's end."""

FULL_SECONDS = 1.0
"""Seconds after which the end of a job is written again to a disk that was full."""

MAX_BUFFERED_HITS = 20_000
"""Hits that a search may request, in all, so that its report is made before it is sent: a failure is a response then,
and an engine that another search brought down is tried again. A hit with its alignment takes a kilobyte."""

MIN_PROGRESS = 0.05
"""Share of a search that must have been scored to estimate the remaining time."""

MAX_LISTED = 1000
"""Jobs of a client in a list."""

MAX_NOTES = 20
"""Notes of a job."""

MIN_FREE_BYTES = 64 << 20
"""Bytes on the disk below which the health report warns."""

SEARCH_THREADS = 256
"""Searches whose clients wait, at a time: the engine scores them together."""

REPORT_THREADS = 16
"""Reports that are written at a time."""


class RunningSearch:
    """A search that runs, which any thread may stop."""

    def __init__(self, client: str) -> None:
        self.payer = payer_of(client)
        self.reason: StopReason = ""
        """Reason why the job was stopped."""
        self.cells = self.cells_done = self.cells_skipped = 0
        self.timer: asyncio.TimerHandle | None = None
        self._guard = threading.Lock()
        self._results: SearchResults | None = None

    def set_results(self, results: SearchResults) -> None:
        """Set the search that `stop` stops; raise `SearchCancelled` if it was stopped before."""
        with self._guard:
            self._results, self.cells, self.cells_done = results, results.search.cells, 0
            if self.reason:
                raise SearchCancelled

    def advance(self, cells: int) -> None:
        """Count cells."""
        with self._guard:
            self.cells_done += cells

    def skip(self, cells: int) -> None:
        """Count cells that are not scored: they were before a restart, or their query converged."""
        with self._guard:
            self.cells_done += cells
            self.cells_skipped += cells

    @property
    def progress(self) -> float:
        """Share of the cells, from 0 to 1."""
        return min(1.0, self.cells_done / self.cells) if self.cells else 0.0

    @property
    def work_left(self) -> float | None:
        """Cells to score per cell that was scored; None if too few were."""
        scored = self.cells_done - self.cells_skipped
        return max(self.cells - self.cells_done, 0) / scored if scored >= MIN_PROGRESS * self.cells > 0 else None

    def stop(self, reason: StopReason) -> None:
        """Stop it; the first reason counts."""
        with self._guard:
            self.reason = self.reason or reason
            results = self._results
        if results is not None:
            results.stop()

    def problem(self, seconds: float) -> ServerProblem:
        """Return the problem of a search that was stopped, at a limit of ``seconds``."""
        if self.reason == "time":
            return ServerProblem(
                "too_large",
                f"the search took longer than {seconds:,.0f} s, this server's limit; send fewer queries at a time, "
                "or ask for fewer hits or iterations",
            )
        if self.reason == "ending":
            return _ending()
        return ServerProblem("conflict", "the search was cancelled")


class Jobs:
    """All that a server can do. Methods that are not coroutines may block, and run in threads.

    Errors are `SwsearchError`; `problem_for` makes of any error what the client is told.
    """

    def __init__(self, settings: ServerSettings, databases: Mapping[str, ServedDatabase], store: JobStore) -> None:
        self.settings, self.databases, self.store = settings, databases, store
        self.results = StoredResults(store)
        self.running: dict[str, RunningSearch] = {}
        self.searches: set[RunningSearch] = set()
        """Searches that are not stored."""
        self.take_results: Callable[[Job, SearchRequest, SearchResults], None] = lambda *_: None
        """Takes the results of a job while it searches, or leaves them."""
        self.is_ending = False
        self._ends: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        """Set at the end of each job that a request waits for."""
        self._changed = asyncio.Event()
        """Set when the queue may have a job that can be claimed."""
        self._loop: asyncio.AbstractEventLoop | None = None
        folders = [settings.folder, *(each.parent for each in settings.databases)]
        self._folders = [path for each in dict.fromkeys(folders) for path in (each.resolve(), each.absolute(), each)]

    # jobs

    def submit(
        self, requests: Sequence[SearchRequest], client: str, key: str = "", identifiers: Sequence[str] = ()
    ) -> list[Job]:
        """Queue a job for each request, as a group; all are on disk when this returns, or none.

        If the client submitted them with this key before, return those jobs. Jobs get these identifiers, which must
        be new, or random ones.
        """
        self._check_ending()
        if not requests:
            raise ServerProblem("wrong", "got no search, expected at least one", option="database")
        limits, jobs = self.settings.limits, []
        validated = [validate_request(each, self.databases, limits) for each in requests]
        identifiers = identifiers or [new_identifier() for _ in requests]
        for identifier, each in zip(identifiers, validated, strict=True):
            request = each.request
            jobs.append(Job(
                identifier=identifier, group=identifiers[0], client=client, payer=payer_of(client),
                database=request.database, title=request.title, options=dict(request.options),
                n_queries=len(each.queries), n_residues=each.n_residues,
                cells=each.cells(self.databases[request.database]), submitted=time.time(), notes=each.notes,
                outputs=tuple(request.outputs),
            ))  # fmt: skip
        group = self.store.add(jobs, [each.request for each in validated], limits.queued, limits.client_jobs, key)
        queued = self.store.group(group)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._changed.set)
        return queued

    def _check_ending(self) -> None:
        if self.is_ending:
            raise _ending()

    def _with_progress(self, job: Job) -> Job:
        """Return a job with its progress."""
        running = self.running.get(job.identifier)
        if running is None or job.state != "running":
            return job
        return replace(job, progress=running.progress, cells_done=running.cells_done, work_left=running.work_left)

    def job(self, identifier: str) -> Job:
        """Return a job as it is now; raise as `JobStore.job` does."""
        return self._with_progress(self.store.job(identifier))

    def group(self, identifier: str) -> list[Job]:
        """Return the jobs that were submitted with a job, in their order."""
        return list(map(self._with_progress, self.store.group(identifier)))

    def jobs_of(self, client: str, count: int = MAX_LISTED, states: Sequence[str] = JOB_STATES) -> list[Job]:
        """Return the last jobs of a client that are in some states, the last first."""
        return list(map(self._with_progress, self.store.jobs_of(client, count, states)))

    async def wait(self, identifier: str, seconds: float) -> Job:
        """Return a job when it has ended, or after ``seconds``."""
        ended = self._ends.setdefault(identifier, asyncio.Event())
        job = await run_sync(self.job, identifier)
        if job.is_ended or seconds <= 0 or self.is_ending:
            return job
        with anyio.move_on_after(seconds):
            await ended.wait()
        return await run_sync(self.job, identifier)

    def _report_end(self, identifier: str) -> None:
        if (ended := self._ends.get(identifier)) is not None:
            ended.set()

    async def cancel(self, identifier: str, client: str) -> Job:
        """Cancel a job that waits or runs; raise ``not_allowed`` if it is another client's."""
        job = await run_sync(self.store.job, identifier)
        if job.client != client:
            raise ServerProblem("not_allowed", f"job {identifier} is another client's; only that one may end it")
        days = self.settings.limits.days
        for _ in range(2):
            if await run_sync(self.store.end, identifier, "queued", "cancelled", days):
                self._report_end(identifier)
                break
            if (running := self.running.get(identifier)) is not None:
                running.stop("cancelled")
                return await self.wait(identifier, CANCEL_SECONDS)
            if job.is_ended:
                break
            await anyio.sleep(0.05)  # claimed at this moment
        return await run_sync(self.job, identifier)

    async def delete(self, identifier: str, client: str) -> None:
        """Cancel a job and remove it with its results; raise ``conflict`` if it does not end in time."""
        if not (await self.cancel(identifier, client)).is_ended:
            raise ServerProblem("conflict", f"job {identifier} is being stopped; try again", retry_after=1)
        await run_sync(self.store.delete, identifier)

    # results

    def render(
        self, identifier: str, output_format: Format, queries: tuple[int, int] | None = None
    ) -> Generator[bytes]:
        """Return the results of a job; see `StoredResults.render`."""
        job = self.store.job(identifier)
        return self.results.render(job, self._database_of(job), output_format, queries)

    def output(self, identifier: str, number: int) -> tuple[Job, JobOutput, int]:
        """Return a job, one of its files and its size; see `StoredResults.output`."""
        job = self.store.job(identifier)
        return job, *self.results.output(job, number)

    def subjects(self, identifier: str, query: int, hits: Sequence[int]) -> Generator[bytes]:
        """Return the whole subjects of hits; see `StoredResults.subjects`."""
        job = self.store.job(identifier)
        return self.results.subjects(job, self._database_of(job), query, hits)

    def _database_of(self, job: Job) -> ServedDatabase:
        if job.database not in self.databases:
            message = f"job {job.identifier}: the server has no database {job.database} any more"
            raise ServerProblem("expired", message)
        return self.databases[job.database]

    # what runs

    async def run(self) -> None:
        """Run jobs, and remove those whose time is over, until this is cancelled; then stop all, and wait for it."""
        self._loop = asyncio.get_running_loop()
        threads = anyio.CapacityLimiter(self.settings.workers + 1)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._sweep)
                while True:
                    self._changed.clear()
                    try:
                        while job := await self._claim(threads):
                            group.start_soon(self._run, job, threads)
                    except Exception as error:  # e.g. a full disk
                        log.error("no job can be claimed: %s", error)
                        await anyio.sleep(FULL_SECONDS)
                        continue
                    await self._changed.wait()
        finally:
            self.begin_shutdown()

    async def _claim(self, threads: anyio.CapacityLimiter) -> Job | None:
        if self.is_ending:
            return None
        job = await run_sync(self.store.claim, self.settings.workers, limiter=threads)
        if job is not None:  # before anything else runs in the loop: whoever sees the row finds this
            self.running[job.identifier] = RunningSearch(job.client)
        return job

    async def _run(self, job: Job, threads: anyio.CapacityLimiter) -> None:
        """Run a job to its end, in a thread."""
        running = self.running[job.identifier]
        self._limit_time(running)
        try:
            await run_sync(self._find_and_end, job, running, limiter=threads)
        except Exception as error:
            log.error("job %s: its end could not be recorded: %s", job.identifier, error)
        finally:
            self._unlimit_time(running)
            del self.running[job.identifier]
            if not self.is_ending:
                self._report_end(job.identifier)
            self._changed.set()

    def _limit_time(self, running: RunningSearch) -> None:
        loop = asyncio.get_running_loop()
        running.timer = loop.call_later(self.settings.limits.seconds, running.stop, "time")

    async def _sweep(self) -> None:
        """Remove the jobs whose time is over, unless their results are being read."""
        while True:
            try:
                await run_sync(self.remove_expired)
            except Exception as error:  # e.g. a full disk
                log.error("expired jobs could not be removed: %s", error)
            await anyio.sleep(SWEEP_SECONDS)

    def remove_expired(self) -> None:
        """Remove the jobs whose time is over, unless their results are being read."""
        until = time.time() + self.settings.limits.days * SECONDS_PER_DAY
        for identifier in self.store.expired():
            if not self.results.is_read(identifier):
                self.store.delete(identifier, until)

    def begin_shutdown(self) -> None:
        """Claim no more jobs, and answer requests that wait for jobs."""
        self.is_ending = True
        for ended in list(self._ends.values()):
            ended.set()

    def stop_all(self) -> None:
        """Stop all that runs; jobs go on where they were when a server starts with the same folder."""
        self.begin_shutdown()
        for each in (*self.running.values(), *self.searches):
            each.stop("ending")

    def _find_and_end(self, job: Job, running: RunningSearch) -> None:
        """Run a job and record its end, whatever that is."""
        state: JobState = "failed"
        changes: dict[str, Any] = {}
        try:
            n_hits, notes = self._find(job, running)
            state, changes = "done", {"n_hits": n_hits, "notes": [*job.notes, *map(self._clean, notes)]}
        except (Exception, SearchCancelled) as error:
            if running.reason == "ending":
                self.store.release(job.identifier)
                return
            if running.reason == "cancelled":
                state = "cancelled"
            elif running.reason:
                changes["problem"] = running.problem(self.settings.limits.seconds).to_json()["error"]
            else:
                changes["problem"] = self.problem_for(error).to_json()["error"]
        while True:
            try:
                self.store.end(job.identifier, "running", state, self.settings.limits.days, **changes)
                return
            except ServerProblem as problem:  # a full disk: the job runs until its end is on disk
                if problem.code != "disk_full" or self.is_ending:
                    raise
                log.error("job %s: %s", job.identifier, problem)
                time.sleep(FULL_SECONDS)

    def _find(self, job: Job, running: RunningSearch) -> tuple[int, list[str]]:
        """Search, save what is found in the job's checkpoint, and return the number of hits and the notes."""
        database = find_database(self.databases, job.database)
        request = self.store.request(job.identifier)
        queries, options = request.read_queries()
        checkpoint = self.store.checkpoint_of(job.identifier)
        checkpoint.parent.mkdir(mode=0o700, exist_ok=True)
        outputs = self.store.outputs_of(job)

        def work(lease: EngineLease) -> tuple[int, list[str]]:
            # with the scores of the whole database, for the report of html
            results = begin_search(
                lease.backend, queries, options,
                keep_distribution=True, progress=running.advance, origin=database.origin(request),
            )  # fmt: skip
            with results:
                search = _resume(results, checkpoint)
                search.restored = search.forgone = running.skip
                running.set_results(results)
                if outputs:
                    write_job_outputs(results, outputs, request.header)
                self.take_results(job, request, results)
                for _ in results.batches(several=False):
                    pass
                why = results.no_evalue_reasons
                unfitted = [f"{len(why):,} of {len(search.queries):,} queries: {why[0]}"] if why else []
                return results.iteration_counts.hits, [*unfitted, *results.warnings][:MAX_NOTES]

        return with_engine(database, work)

    # searches that are not stored

    def begin_search(self, client: str) -> RunningSearch:
        """Count a search and limit its time, in the event loop; `end_search` must follow.

        It raises ``too_many`` at the limit of searches of the client or of all.
        """
        self._check_ending()
        limits, payer = self.settings.limits, payer_of(client)
        own = sum(each.payer == payer for each in self.searches)
        for count, maximum in ((len(self.searches), limits.queued), (own, limits.client_jobs)):
            if count >= maximum:
                message = f"{count:,} searches run, of at most {maximum:,}; ask later"
                raise ServerProblem("too_many", message, retry_after=1)
        running = RunningSearch(client)
        self._limit_time(running)
        self.searches.add(running)
        return running

    def end_search(self, running: RunningSearch) -> None:
        """Stop a search whose client has left, and count it no more."""
        self._unlimit_time(running)
        self.searches.discard(running)
        running.stop("unwanted")

    def _unlimit_time(self, running: RunningSearch) -> None:
        if running.timer is not None:
            running.timer.cancel()

    def search(self, request: SearchRequest, output_format: Format, running: RunningSearch) -> Generator[bytes]:
        """Search, and yield the report; errors of the request are raised before the first bytes."""
        validated = validate_request(request, self.databases, self.settings.limits)
        database = self.databases[validated.request.database]
        output_format.check(
            len(validated.queries), PROGRAM_NAMES[validated.options.translation is not None, database.is_dna]
        )

        def made(lease: EngineLease) -> Generator[bytes]:
            results = begin_search(
                lease.backend, validated.queries, validated.options,
                keep_distribution=output_format.needs_distribution, progress=running.advance,
                origin=database.origin(validated.request),
            )  # fmt: skip
            with results:
                try:
                    running.set_results(results)
                    yield from output_format.render(
                        lambda: results.run, results.batches(output_format.needs_alignments)
                    )
                except SearchCancelled:
                    raise running.problem(self.settings.limits.seconds) from None

        if len(validated.queries) * validated.options.max_hits <= MAX_BUFFERED_HITS:
            yield with_engine(database, lambda lease: b"".join(made(lease)))
            return
        lease = database.lease()
        try:
            yield from made(lease)
            database.report_success(lease)
        except Exception as error:
            note_failure(database, lease, error)
            raise

    # health and problems

    def health(self) -> dict[str, Any]:
        """Return whether every database can be searched and jobs can be stored, as JSON states it."""
        databases, why = [], []
        for name, database in self.databases.items():
            state, note = database.check_files()
            device = getattr(getattr(database.engine, "info", None), "name", "")
            entry = {"name": name, "state": state, "engine": database.engine.description}
            databases.append({**entry, "device": str(device), "note": self._clean(note)})
            if state == "failed":
                why.append(f"{name}: {self._clean(note)}")
        free = shutil.disk_usage(self.settings.folder).free
        if free < MIN_FREE_BYTES:
            why.append(f"the disk has {free >> 20:,} MiB left, and jobs may not be kept")
        if self.is_ending:
            why.append("the server is ending")
        return {"ok": not why, "why": "; ".join(why), "databases": databases}

    def scoring_totals(self) -> tuple[int, float]:
        """Return the number of cells that all engines scored, and the seconds that this took."""
        totals = [each.scoring_totals for each in self.databases.values()]
        return sum(cells for cells, _ in totals), sum(seconds for _, seconds in totals)

    def _clean(self, text: str) -> str:
        return without_folders(text, self._folders)

    def problem_for(self, error: BaseException) -> ServerProblem:
        """Return the problem that the client is told of, without the server's folders; log what is a bug."""
        problem = problem_of(error)
        if isinstance(error, SearchCancelled):
            problem = ServerProblem("conflict", "the search was stopped")
        elif isinstance(error, MemoryError) and not isinstance(error, MemoryLimitError):
            message = "the server has no memory for this search; send its queries in parts"
            problem = ServerProblem("unavailable", message)
        elif is_full(error) or (isinstance(error, OutputError) and error.__cause__ and is_full(error.__cause__)):
            problem = disk_full()
        elif problem.code == "failed" and not isinstance(error, ServerProblem):
            log.error("%s", "".join(traceback.format_exception(error)).rstrip())
        elif not isinstance(error, (InputError, ServerProblem)):
            log.error("%s: %s", type(error).__name__, error)
        details = {name: getattr(problem, name) for name in ("option", "expected", "retry_after")}
        return ServerProblem(problem.code, self._clean(str(problem)), **details)


@contextmanager
def open_jobs(settings: ServerSettings) -> Iterator[Jobs]:
    """Open the folder and the databases of a server, and close them at the end."""
    with closing(JobStore(settings.folder)) as store, open_databases(settings) as databases:
        yield Jobs(settings, databases, store)


def _resume(results: SearchResults, checkpoint: Path) -> Search:
    """Return the search, which resumes from the checkpoint if that is of this database and version."""
    results.use_checkpoint(checkpoint)
    try:
        return results.search
    except OtherCheckpointError:
        shutil.rmtree(checkpoint)
        return results.search


def _ending() -> ServerProblem:
    return ServerProblem("unavailable", "the server is ending; ask again when it was started", retry_after=10)
