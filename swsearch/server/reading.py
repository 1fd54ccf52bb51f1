"""The results of jobs that are done, from what was kept: nothing is scored again, however often they are read."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from weakref import WeakSet

from swsearch.errors import InputError, OutputError
from swsearch.job.job import SearchJob
from swsearch.results import SearchResult
from swsearch.server.jobs import Job
from swsearch.server.places import ServedPlace
from swsearch.server.problems import ServerProblem
from swsearch.server.rendering import Format, Pieces, Rendered, fasta, written
from swsearch.server.store import KEPT, Store


class ResultReader:
    """Reads what jobs found; one that is being read is not removed under whoever reads it.

    Parameters
    ----------
    store : Store
        Has the jobs.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._readers: dict[str, int] = {}
        self._removed: set[str] = set()
        """Jobs whose rows are gone, and whose folders go with their last reader."""
        self._open: WeakSet[Pieces] = WeakSet()

    @property
    def n_open(self) -> int:
        """Results that are being read."""
        with self._guard:
            return sum(self._readers.values())

    def rendered(self, job: Job, place: ServedPlace, wanted: Format, queries: tuple[int, int] | None) -> Rendered:
        """Return results in a format.

        Parameters
        ----------
        job : Job
            Done.
        place : ServedPlace
            Its database.
        wanted : Format
            Which.
        queries : (int, int), optional
            The first and the last one, counted from 1; all by default.

        Raises
        ------
        ServerProblem
            If there are no such queries.
        InputError
            If the format cannot hold so many.
        """
        first, last = queries or (1, job.n_queries)
        if not 1 <= first <= last <= job.n_queries:
            expected = f"a range within 1-{job.n_queries:,}"
            raise ServerProblem(
                "wrong", f"queries: got {first}-{last}, expected {expected}", option="queries", expected=expected
            )
        wanted.check(last - first + 1)
        with ExitStack() as closing:
            closing.enter_context(self._reading(job.identifier))
            search = self._opened(job, place, wanted.needs_distribution)
            batches = self._batches(job, search, first - 1, last - first + 1, wanted.needs_alignments)
            pieces = Pieces(written(wanted, lambda: search.run, batches), closing.pop_all())
        self.watch(pieces)
        return wanted.rendered(f"swsearch-{job.database}-{job.identifier[:8]}", pieces)

    def subjects(self, job: Job, place: ServedPlace, query: int, hits: Sequence[int]) -> Iterator[bytes]:
        """Yield whole subjects of hits as FASTA.

        Parameters
        ----------
        job, place
            As for `rendered`.
        query : int
            Counted from 1, and so are hits.
        hits : sequence of int
            In the order of the report.

        Raises
        ------
        ServerProblem
            If there is no such query or hit.
        """
        if not 1 <= query <= job.n_queries:
            raise ServerProblem("wrong", f"query: got {query}, expected 1 to {job.n_queries:,}", option="query")
        with self._reading(job.identifier):
            search = self._opened(job, place, False)
            result = next(iter(next(self._batches(job, search, query - 1, 1, False))))
            found = result.table.subjects.tolist()
        for hit in hits:
            if not 1 <= hit <= len(found):
                expected = f"1 to {len(found):,}" if found else "none, for the query has no hits"
                raise ServerProblem(
                    "wrong", f"hits: got {hit}, expected {expected}", option="hits", expected=expected
                )
        database = place.database
        return (fasta(database.header(found[hit - 1]), database.sequence(found[hit - 1])) for hit in hits)

    def remove(self, identifier: str, until: float | None = None, *, waits: bool = False) -> None:
        """Remove a job that waits and runs no more.

        Parameters
        ----------
        identifier : str
            The job.
        until : float, optional
            Until when to remember that it was there.
        waits : bool
            Whether to leave it as it is while it is being read; otherwise it is gone for all but its readers.
        """
        with self._guard:
            is_read = identifier in self._readers
            if waits and is_read:
                return
            self._store.forget(identifier, until)
            if is_read:
                self._removed.add(identifier)
        if not is_read:
            self._store.clear(identifier)

    def watch(self, pieces: Pieces) -> None:
        """End these, too, when this is closed."""
        with self._guard:
            self._open.add(pieces)

    def close(self) -> None:
        """End what is being read: whoever reads is told so."""
        with self._guard:
            pieces = list(self._open)
        for each in pieces:
            each.abort()

    def _reading(self, identifier: str) -> ExitStack:
        """Return what lets go of a job that is held from now on."""
        with self._guard:
            self._readers[identifier] = self._readers.get(identifier, 0) + 1
        closing = ExitStack()
        closing.callback(self._read, identifier)
        return closing

    def _read(self, identifier: str) -> None:
        with self._guard:
            left = self._readers[identifier] - 1
            if left:
                self._readers[identifier] = left
                return
            del self._readers[identifier]
            is_removed = identifier in self._removed
            self._removed.discard(identifier)
        if is_removed:
            self._store.clear(identifier)

    def _opened(self, job: Job, place: ServedPlace, distribution: bool) -> SearchJob:
        """Return the search as it was asked for, which reads what was kept."""
        try:
            request = self._store.request(job.identifier)
        except FileNotFoundError:  # removed since it was looked up
            self._store.job(job.identifier)
            raise
        queries, options = request.read()
        options = replace(options, distribution=distribution)
        origin = place.origin(request)
        if job.ended is not None:
            origin = replace(origin, ended=datetime.fromtimestamp(job.ended, UTC))
        search = place.resident.job(options).for_queries(queries, origin=origin)
        if not options.makes_profiles:
            try:
                search.keep_in(self._store.folder_of(job.identifier) / KEPT, is_read=True)
            except InputError as error:
                why = "the database or the version of swsearch is another one since"
                message = f"job {job.identifier}: what it found cannot be read: {why}; submit it again"
                raise ServerProblem("expired", message) from error
            except OutputError as error:
                raise _damaged(job) from error
        return search

    @staticmethod
    def _batches(job: Job, search: SearchJob, first: int, count: int, aligned: bool) -> Generator[list[SearchResult]]:
        if search.checkpoint is not None:
            try:
                yield from search.kept(first, count, aligned)
            except OutputError as error:
                raise _damaged(job) from error
            return
        # a search with iterations is done again: what its profiles were is not kept
        place = 0
        for batch in search.batches(aligned):
            some = [each for number, each in enumerate(batch, place) if first <= number < first + count]
            place += len(batch)
            if some:
                yield some


def _damaged(job: Job) -> ServerProblem:
    return ServerProblem("failed", f"job {job.identifier}: what it found is damaged on the disk; submit it again")
