"""All that a server can do, whoever asks and however: searches that are kept as jobs, and such as are not."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from swsearch.pipeline.description import PROGRAM_NAMES
from swsearch.pipeline.prefetch import Stopped
from swsearch.pipeline.search_results import SearchResults
from swsearch.remote.transfer import write_transfer
from swsearch.remote.wire import SearchRequest
from swsearch.report.html import Link
from swsearch.server.health import Health, HouseCounts, PlaceHealth
from swsearch.server.intake import place_of, problem_stated, taken
from swsearch.server.jobs import ENDED, Job, JobState, counted_for, new_identifier
from swsearch.server.places import Lease, Log, ServedPlace, begin_search, opened_places, without_folders
from swsearch.server.problems import ServerProblem
from swsearch.server.reading import ResultReader
from swsearch.server.rendering import Format, Pieces, Rendered, written
from swsearch.server.runner import Runner, Running
from swsearch.server.settings import ServerSettings
from swsearch.server.store import Store
from swsearch.server.work import note_failure, run_job, told, why_stopped, with_engine

SECONDS_A_DAY = 86_400.0

SWEEP_SECONDS = 60.0
"""Between looks for jobs whose time is over."""

MOST_LISTED = 1000
"""Jobs of a client that are listed."""

RETRY_SECONDS = 10
"""After which one who was refused for want of room may ask again."""

LEAST_FREE = 64 << 20
"""Bytes that are to be free on the disk; with less, health says that jobs may fail."""

WHOLE_HITS = 20_000
"""Hits that a search may ask for, in all, so that its answer is made before it is begun to be sent: a failure is then
told as one, and what another search has brought down is done again. A hit with its alignment takes a kilobyte."""

CANCEL_SECONDS = 5.0
"""That `House.cancel` waits for a job to end."""


class House:
    """The databases, the jobs and what runs them. Methods block, and may be called from any thread.

    A context manager. What is wrong is raised as `ServerProblem`, or as another `SwsearchError`, which
    `swsearch.server.problems.problem_of` turns into one; messages name none of the server's folders.

    Parameters
    ----------
    settings : ServerSettings
        What to open, and its limits.
    log : callable, optional
        Called with what whoever runs the server should know, a message at a time.

    Raises
    ------
    SwsearchError
        If a database cannot be opened, or another server uses the folder.
    """

    def __init__(self, settings: ServerSettings, *, log: Log | None = None) -> None:
        self.settings = settings
        self._log: Log = log or (lambda _: None)
        self._swept = 0.0
        self._is_ending = False
        self._ended: dict[str, int] = dict.fromkeys(ENDED, 0)
        self._guard = threading.Lock()
        self._coming: Counter[str] = Counter()
        """Jobs of each client that are being read and written."""
        folders = [settings.folder, *(each.parent for each in settings.databases)]
        self._folders = [path for each in dict.fromkeys(folders) for path in (each.resolve(), each.absolute(), each)]
        with ExitStack() as opened:
            self._store = Store(settings.folder)
            opened.callback(self._store.close)
            self.places: Mapping[str, ServedPlace] = opened.enter_context(opened_places(settings, self._log))
            self._reader = ResultReader(self._store, self._message)
            opened.callback(self._reader.close)
            limits = settings.limits
            self._runner = Runner(settings.workers, self._run, self._tidy, limits.seconds, self._log)
            opened.callback(self._runner.close)
            for job in self._store.restarted():
                self._runner.put(job.identifier, counted_for(job.client))
            self._runner.start()
            self._closing = opened.pop_all()

    def __enter__(self) -> House:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End: what runs is stopped, and goes on where it was when a server begins with the same folder."""
        self._is_ending = True
        self._closing.close()

    # jobs

    def submit(self, requests: Sequence[SearchRequest], client: str) -> list[Job]:
        """Take searches as jobs, one each, which are a group; they are on the disk when this returns.

        Parameters
        ----------
        requests : sequence of SearchRequest
            At least one.
        client : str
            Who asks.

        Raises
        ------
        ServerProblem
            If one is beyond the limits, there are too many jobs, or the disk is full; none is taken then.
        SwsearchError
            If one cannot be done.
        """
        with self._room(len(requests), counted_for(client)):
            with self._told():
                found = [taken(each, self.places, self.settings.limits) for each in requests]
            identifiers = [new_identifier() for _ in found]
            jobs = [
                Job(
                    identifier, identifiers[0], client, each.request.database, each.request.title, "queued",
                    dict(each.request.options), len(each.queries), each.n_residues, time.time(),
                    cells=each.cells(self.places[each.request.database]), notes=each.notes,
                )
                for each, identifier in zip(found, identifiers, strict=True)
            ]  # fmt: skip
            self._store.add(jobs, [each.request for each in found])
        for job in jobs:
            self._runner.put(job.identifier, counted_for(client))
        return [self._seen(job) for job in jobs]

    @contextmanager
    def _room(self, n_jobs: int, client: str) -> Iterator[None]:
        """Keep room for jobs that are coming, so that not everybody finds the same."""
        with self._guard:
            self._check_room(n_jobs, client)
            self._coming[client] += n_jobs
        try:
            yield
        finally:
            with self._guard:
                self._coming -= Counter({client: n_jobs})  # keeps no zeros

    def _check_room(self, n_jobs: int, client: str) -> None:
        if self._is_ending:
            raise ServerProblem("unavailable", "the server is ending; ask again when it was started", retry_after=10)
        if not n_jobs:
            raise ServerProblem("wrong", "got no search, expected at least one", option="database")
        limits, runner = self.settings.limits, self._runner
        active = runner.n_active() + self._coming.total()
        if active + n_jobs > limits.queued:
            why = f"{active:,} jobs wait or run, of at most {limits.queued:,}"
            raise ServerProblem("too_many", f"the queue is full: {why}; ask again later", retry_after=RETRY_SECONDS)
        own = runner.n_active(client) + self._coming[client]
        if own + n_jobs > limits.client_jobs:
            why = f"{own:,} of your jobs wait or run, of at most {limits.client_jobs:,}"
            raise ServerProblem("too_many", f"{why}; submit more when some are done", retry_after=RETRY_SECONDS)

    def job(self, identifier: str) -> Job:
        """Return a job as it is now.

        Raises
        ------
        ServerProblem
            ``not_found``, or ``expired``.
        """
        return self._seen(self._store.job(identifier))

    def group(self, identifier: str) -> list[Job]:
        """Return the jobs that were submitted with one of them, in their order.

        Raises
        ------
        ServerProblem
            ``not_found``, or ``expired``.
        """
        return [self._seen(job) for job in self._store.group(self._store.job(identifier).group)]

    def jobs_of(self, client: str) -> list[Job]:
        """Return the jobs of a client, the last first."""
        return [self._seen(job) for job in self._store.jobs_of(client, MOST_LISTED)]

    def _seen(self, job: Job) -> Job:
        """Return a job with what is not kept of it: its place and its progress."""
        if job.state == "queued":
            return replace(job, place=self._runner.place_of(job.identifier))
        if job.state != "running" or (running := self._runner.running(job.identifier)) is None:
            return job
        return replace(job, progress=running.progress, cells_done=running.cells_done)

    def wait(self, identifier: str, seconds: float) -> Job:
        """Return a job when it has ended, or after so many seconds."""
        self._store.job(identifier)
        self._runner.wait(identifier, seconds)
        return self.job(identifier)

    def cancel(self, identifier: str, client: str) -> Job:
        """Cancel a job that waits or runs; one that has ended stays as it is.

        Raises
        ------
        ServerProblem
            ``not_allowed`` if it is another client's.
        """
        self._own(identifier, client)
        if self._runner.withdraw(identifier):
            self._keep_end(identifier, "cancelled")
            self._runner.ended(identifier)
        elif self._runner.stop(identifier):
            self._runner.wait(identifier, CANCEL_SECONDS)
        return self.job(identifier)

    def forget(self, identifier: str, client: str) -> None:
        """Cancel a job, and remove it with its results.

        Raises
        ------
        ServerProblem
            ``not_allowed`` if it is another client's; ``conflict`` if it does not end.
        """
        self._own(identifier, client)
        if not self.cancel(identifier, client).is_ended:
            raise ServerProblem("conflict", f"job {identifier} is being stopped; try again", retry_after=1)
        self._reader.remove(identifier)

    def _own(self, identifier: str, client: str) -> None:
        if self._store.job(identifier).client != client:
            raise ServerProblem("not_allowed", f"job {identifier} is another client's; only that one may end it")

    def queries(self, identifier: str) -> bytes:
        """Return the queries of a job as they were sent."""
        self._store.job(identifier)
        return self._store.queries(identifier)

    def request(self, identifier: str) -> SearchRequest:
        """Return what a job was asked for."""
        self._store.job(identifier)
        return self._store.request(identifier)

    # results

    def rendered(
        self, identifier: str, outfmt: str, queries: tuple[int, int] | None = None, *,
        bar: Sequence[Link] = (), subjects_url: str | None = None,
    ) -> Rendered:  # fmt: skip
        """Return the results of a job in a format of `swsearch search`.

        Parameters
        ----------
        identifier : str
            The job.
        outfmt : str
            As ``--outfmt``.
        queries : (int, int), optional
            The first and the last query, counted from 1; all by default.
        bar, subjects_url
            For the report of ``html``, as `swsearch.report.html.HtmlWriter` takes them.

        Raises
        ------
        ServerProblem
            ``conflict`` unless the job is done.
        InputError
            If there is no such format, or it cannot hold these queries.
        """
        with self._told():
            wanted = Format(outfmt, bar, subjects_url)
            job = self._done(identifier)
            rendered = self._reader.rendered(job, self._place_of(job), wanted, queries)
            rendered.chunks.told = self._as_told
            return rendered

    def subjects(self, identifier: str, query: int, hits: Sequence[int]) -> Iterator[bytes]:
        """Return whole subjects of hits of a query as FASTA, one at a time; all are counted from 1.

        Raises
        ------
        ServerProblem
            ``conflict`` unless the job is done, ``wrong`` if there is no such query or hit.
        """
        with self._told():
            job = self._done(identifier)
            found = self._reader.subjects(job, self._place_of(job), query, hits)
        return self._each(found)

    def _each(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        with self._told():
            yield from pieces

    def _done(self, identifier: str) -> Job:
        job = self._store.job(identifier)
        if job.state == "done":
            return job
        what = f"is {job.state}" if job.state in ("queued", "running") else f"has {job.state}"
        what = "was cancelled" if job.state == "cancelled" else what
        retry_after = None if job.is_ended else 1
        raise ServerProblem("conflict", f"job {identifier} {what}, and has no results", retry_after=retry_after)

    def _place_of(self, job: Job) -> ServedPlace:
        """Return a job's database: one that is not served any more, or another one of its name, has no results."""
        if job.database not in self.places:
            raise ServerProblem(
                "expired", f"job {job.identifier}: the server has no database {job.database} any more"
            )
        return self.places[job.database]

    # searches that are not stored

    def search_now(
        self, request: SearchRequest, outfmt: str, client: str, is_wanted: Callable[[], bool] = lambda: True
    ) -> Rendered:
        """Search, and return the results; nothing is kept.

        Parameters
        ----------
        request : SearchRequest
            What for.
        outfmt : str
            As ``--outfmt``.
        client : str
            Who asks.
        is_wanted : callable, optional
            Asked ten times a second, in a thread of the server's: once it says no the search is stopped. It should
            take no time, such as the ``is_set`` of an event.

        Raises
        ------
        SwsearchError
            As for `submit`; ``too_many`` counts searches of this kind.
        """
        with self._told(), ExitStack() as closing:
            wanted = Format(outfmt)
            self._check_searches(counted_for(client))
            running = Running(counted_for(client), self.settings.limits.seconds, is_wanted)
            self._runner.watch(running)
            closing.callback(self._runner.unwatch, running)
            found = taken(request, self.places, self.settings.limits)
            place = self.places[found.request.database]
            wanted.check(len(found.queries), PROGRAM_NAMES[found.options.translation is not None, place.is_dna])

            def made(lease: Lease) -> Generator[bytes]:
                """Yield the results as they are found."""
                results = begin_search(
                    lease.backend, found.queries, found.options, distribution=wanted.needs_distribution,
                    progress=running.advance, origin=place.origin(found.request),
                )  # fmt: skip
                with results:
                    running.cells, running.cells_done = results.search.cells, 0
                    try:
                        running.holds(results)
                        yield from self._written(results, wanted, found.request)
                    except Stopped:
                        raise why_stopped(running) from None

            if len(found.queries) * found.options.max_hits <= WHOLE_HITS:
                pieces = Pieces(with_engine(place, lambda lease: b"".join(made(lease))))
            else:
                pieces = Pieces(_watched(place, made), closing.pop_all())
                pieces.told = self._as_told
                self._reader.watch(pieces)
            return wanted.rendered(f"swsearch-{place.name}", pieces)

    def _written(self, results: SearchResults, wanted: Format, request: SearchRequest) -> Iterator[bytes]:
        if wanted.is_transfer:
            return write_transfer(results.search, results.search.batches(), request, self._message)
        return written(wanted, lambda: results.run, results.batches(wanted.needs_alignments))

    def _check_searches(self, client: str) -> None:
        self._check_room(1, client)
        limits, runner = self.settings.limits, self._runner
        for count, most in ((runner.n_searches(), limits.queued), (runner.n_searches(client), limits.client_jobs)):
            if count >= most:
                raise ServerProblem(
                    "too_many", f"{count:,} searches run, of at most {most:,}; ask later", retry_after=1
                )

    # what runs, in threads of the runner's

    def _run(self, identifier: str, running: Running) -> None:
        """Run a job to its end, whatever that is."""
        try:
            job = self._store.job(identifier)
            self._store.update(identifier, state="running", begun=time.time())
            place = place_of(self.places, job.database)
            request = self._store.request(identifier)
            n_hits, notes = run_job(place, request, running, self._store.folder_of(identifier))
        except Stopped:
            self._keep_stopped(identifier, running)
        except Exception as error:
            if running.why:  # it failed because it was stopped
                self._keep_stopped(identifier, running)
            else:
                self._keep_end(identifier, "failed", problem=problem_stated(self._as_told(error)))
        else:
            told_of = tuple(map(self._clean, (*job.notes, *notes)))
            self._keep_end(identifier, "done", n_hits=n_hits, notes=told_of)

    def _keep_stopped(self, identifier: str, running: Running) -> None:
        if running.why == "ending":
            self._store.update(identifier, state="queued", begun=None)
        elif running.why == "cancelled":
            self._keep_end(identifier, "cancelled")
        else:
            self._keep_end(identifier, "failed", problem=problem_stated(why_stopped(running)))

    def _keep_end(self, identifier: str, state: JobState, **changes: Any) -> None:
        if state != "done":
            self._store.drop_kept(identifier)
        now = time.time()
        expires = now + self.settings.limits.days * SECONDS_A_DAY
        self._store.update(identifier, lasting=True, state=state, ended=now, expires=expires, **changes)
        with self._guard:
            self._ended[state] += 1

    def _tidy(self) -> None:
        """Remove the jobs whose time is over, now and then."""
        now = time.monotonic()
        if now < self._swept + SWEEP_SECONDS:
            return
        self._swept = now
        until = time.time() + self.settings.limits.days * SECONDS_A_DAY
        for identifier in self._store.expired(time.time()):
            self._reader.remove(identifier, until, waits=True)

    # what it says of itself

    def health(self) -> Health:
        """Return whether all works."""
        places = tuple(map(self._health_of, self.places.values()))
        why = [f"{each.name}: {each.note}" for each in places if each.state == "failed"]
        free = shutil.disk_usage(self.settings.folder).free
        if free < LEAST_FREE:
            why.append(f"the disk has {free >> 20:,} MiB left, and jobs may not be kept")
        if self._is_ending:
            why.append("the server is ending")
        return Health(not why, "; ".join(why), places)

    def _health_of(self, place: ServedPlace) -> PlaceHealth:
        state, note = place.looked()
        device = getattr(getattr(place.engine, "info", None), "name", "")
        return PlaceHealth(place.name, state, place.engine.description, str(device), self._clean(note))

    def counts(self) -> HouseCounts:
        """Return how much was done since the server began, and is to be done."""
        with self._guard:
            ended = dict(self._ended)
        done = [place.scored for place in self.places.values()]
        runner = self._runner
        return HouseCounts(
            self._store.counts(), runner.n_queued, runner.n_running, runner.n_searches(), self._reader.n_open,
            sum(cells for cells, _ in done), sum(seconds for _, seconds in done), ended,
        )  # fmt: skip

    def _clean(self, text: str) -> str:
        return without_folders(text, self._folders)

    def _message(self, error: BaseException) -> str:
        return str(self._as_told(error)) if isinstance(error, Exception) else "the search was stopped"

    def _as_told(self, error: Exception) -> ServerProblem:
        """Return an error as whoever asked is told of it."""
        return told(error, self._clean, self._log)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors into what whoever asked is told."""
        try:
            yield
        except Exception as error:
            raise self._as_told(error) from error


def _watched(place: ServedPlace, made: Callable[[Lease], Generator[bytes]]) -> Generator[bytes]:
    """Yield what is made with a place's engine, and let the place know what that fails with."""
    lease = place.lease()
    try:
        yield from made(lease)
    except Exception as error:
        note_failure(place, lease, error)
        raise
    place.worked(lease)
