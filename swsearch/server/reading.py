"""The results of jobs that are done, from what was kept: nothing is scored again, however often they are read."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from weakref import WeakSet

from swsearch.errors import InputError, OutputError
from swsearch.pipeline.search import Search
from swsearch.remote.transfer import write_transfer
from swsearch.remote.wire import SearchRequest
from swsearch.report.records import shown_hits
from swsearch.server.jobs import Job
from swsearch.server.places import ServedPlace, begin_search
from swsearch.server.problems import ServerProblem
from swsearch.server.rendering import Format, Pieces, Rendered, fasta, written
from swsearch.server.store import KEPT, OLD_RESULTS, Store

Found = TypeVar("Found")


class ResultReader:
    """Reads what jobs found; one that is being read is not removed under whoever reads it.

    Parameters
    ----------
    store : Store
        Has the jobs.
    message : callable
        Returns what is told of an error that ends results while they are sent.
    """

    def __init__(self, store: Store, message: Callable[[BaseException], str]) -> None:
        self._store, self._message = store, message
        self._guard = threading.Lock()
        self._readers: Counter[str] = Counter()
        self._removed: set[str] = set()
        """Jobs whose rows are gone, and whose folders go with their last reader."""
        self._open: WeakSet[Pieces] = WeakSet()

    @property
    def n_open(self) -> int:
        """Results that are being read."""
        with self._guard:
            return self._readers.total()

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
            If there are no such queries, or what was found cannot be read.
        InputError
            If the format cannot hold so many.
        """
        first, last = queries or (1, job.n_queries)
        if not 1 <= first <= last <= job.n_queries:
            expected, message = f"a range within 1-{job.n_queries:,}", f"queries: got {first}-{last}, expected "
            raise ServerProblem("wrong", message + expected, option="queries", expected=expected)
        wanted.check(last - first + 1, job.program(place.is_dna))
        with ExitStack() as closing:
            search, request = self._opened(closing, job, place, wanted.needs_distribution)
            if wanted.is_transfer:
                kept = _each(job, search.stored_batches(0, job.n_queries))
                made = write_transfer(search, kept, request, self._message)
            else:
                batches = _each(job, search.stored(first - 1, last - first + 1, wanted.needs_alignments))
                made = written(wanted, lambda: search.run, batches)
            pieces = Pieces(made, closing.pop_all())
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
        with ExitStack() as closing:
            search, _ = self._opened(closing, job, place, False)
            ((result,),) = _each(job, search.stored(query - 1, 1))
            subjects = shown_hits(result.table).record_places.tolist()
        for hit in hits:
            if not 1 <= hit <= len(subjects):
                expected = f"1 to {len(subjects):,}" if subjects else "none, for the query has no hits"
                message = f"hits: got {hit}, expected {expected}"
                raise ServerProblem("wrong", message, option="hits", expected=expected)
        database = place.database
        wanted = [subjects[hit - 1] for hit in hits]
        return (fasta(database.header(subject), database.sequence(subject)) for subject in wanted)

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

    def _opened(
        self, closing: ExitStack, job: Job, place: ServedPlace, distribution: bool
    ) -> tuple[Search, SearchRequest]:
        """Open what a job found, until the end, and what it was asked for; nobody removes it meanwhile."""
        with self._guard:
            self._readers[job.identifier] += 1
        closing.callback(self._read, job.identifier)
        self._store.job(job.identifier)  # it may have been removed before it was held
        with _readable(job):
            request, folder = self._store.request(job.identifier), self._store.folder_of(job.identifier)
            if (folder / OLD_RESULTS).exists() and not (folder / KEPT).exists():
                raise InputError(f"{folder / OLD_RESULTS}: got results of an earlier version, expected {KEPT}")
            origin = place.origin(request, job.submitted, job.ended)
            search = begin_search(place.backend, *request.read(), distribution=distribution, origin=origin).search
            search.keep_in(folder / KEPT, is_read=True)
            closing.callback(search.close)
        return search, request

    def _read(self, identifier: str) -> None:
        with self._guard:
            self._readers -= Counter([identifier])  # keeps no zeros
            if identifier in self._readers or identifier not in self._removed:
                return
            self._removed.discard(identifier)
        self._store.clear(identifier)


def _each(job: Job, found: Iterator[Found]) -> Generator[Found]:
    """Yield what is read of a job."""
    with _readable(job):
        yield from found


@contextmanager
def _readable(job: Job) -> Iterator[None]:
    """Turn what is wrong with what was kept into what is told to whoever reads it."""
    try:
        yield
    except ServerProblem:
        raise
    except InputError as error:
        why = "the database or the version of swsearch is another one since"
        message = f"job {job.identifier}: what it found cannot be read: {why}; submit it again"
        raise ServerProblem("expired", message) from error
    except (OutputError, OSError) as error:
        message = f"job {job.identifier}: what it found is damaged or gone from the disk; submit it again"
        raise ServerProblem("failed", message) from error
