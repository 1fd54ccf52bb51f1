"""Results that come from a server, as results of a search: hits are aligned here, when that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

from swsearch.pipeline.batch import Batch
from swsearch.pipeline.codec import StateDecoder
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.description import run_info
from swsearch.pipeline.iterate import ProfileGrower
from swsearch.pipeline.number_arrays import Unreadable
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import LocalPairWork
from swsearch.pipeline.prefetch import Stopped
from swsearch.pipeline.query_frames import searched_queries
from swsearch.pipeline.result_builder import ResultBuilder
from swsearch.pipeline.search_results import ResultIterator
from swsearch.processors import threads_that_help
from swsearch.remote.frames import BrokenOffError
from swsearch.remote.transfer import TransferReader, request_facts
from swsearch.remote.wire import SearchRequest
from swsearch.results import SearchResult
from swsearch.run_info import Execution, Origin, RunInfo, checksums


class ReceivedSearch:
    """A search that ran on a server: results are built of the hits that the server has sent.

    Parameters
    ----------
    reader : TransferReader
        At the first batch.
    request : SearchRequest
        What was asked for.
    origin : Origin, optional
        Where queries and command come from here; by default what the request says.
    threads : int, optional
        For alignments.
    distribution : bool, optional
        Whether results keep how the whole database scores, where that came; by default they do.
    reopened : callable, optional
        Returns a reader of the same results from the beginning, where this one broke off for a reason.

    Raises
    ------
    ServerError
        If the results are those of another search.
    """

    def __init__(
        self, reader: TransferReader, request: SearchRequest, origin: Origin | None = None,
        threads: int | None = None, distribution: bool = True,
        reopened: Callable[[BrokenOffError], TransferReader] | None = None,
    ) -> None:  # fmt: skip
        header, origin = reader.header, origin or request.run_origin
        asked = request_facts(request)
        if any(header.asked.get(name) != asked[name] for name in ("sha256", "query_format", "options")):
            raise reader.wrong("belong to another search")
        self.queries, options = request.read()
        distribution = header.distribution and distribution
        self.options = options = replace(options, distribution=distribution, keep_next=header.keep_next)
        searched = searched_queries(self.queries, options)
        if len(searched) != header.n_states:
            raise reader.wrong(f"are those of {header.n_states:,} queries, expected {len(searched):,}")
        self.cells = options.iterations * sum(len(query.codes) for query in searched) * header.n_residues
        """Cells of the whole search, if no query converged."""
        self._reader, self._reopened, self._is_stopped = reader, reopened, False
        self.criteria = criteria = Criteria(options, header.counts, None, 0)
        self._decoder = StateDecoder(searched, criteria, ProfileGrower(criteria) if options.makes_profiles else None)
        known = checksums(origin.queries, "", ()) if origin.checksums is None else origin.checksums
        self.run: RunInfo = replace(
            run_info(criteria, header.described, header.engine, origin),
            version=header.version,
            execution=Execution(header.engine, origin.command, origin.begun, origin.ended),
            known_checksums=(*(each for each in known if each.what == "queries"), *header.checksums),
        )
        """What reports say of the search: version, engine and database are the server's, all else is of here."""
        n = threads_that_help(threads)
        self._local = LocalPairWork(criteria.recurrence, n, criteria.null_maker(n))
        self._builder = ResultBuilder(searched, criteria, self.run, header.length_runs, self._local)

    def results(self, aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield results, some at a time, in query order; see `swsearch.pipeline.search.Search.results`."""
        yield from self._builder.results(self._batches(), self._local, aligned)

    def _batches(self) -> Iterator[Batch]:
        """Yield what comes, each query once, however often it breaks off."""
        done = 0
        while True:
            place = 0  # of those that this reader has read
            try:
                for facts, arrays in self._reader.batches():
                    if self._is_stopped:
                        raise Stopped
                    try:
                        batch = self._decoder.decode(facts, arrays)
                    except Unreadable as error:
                        raise self._reader.wrong(f"hold {error}") from None
                    n = len(batch.states)
                    if not n or n % self.options.n_frames:
                        raise self._reader.wrong("lack frames of a query")
                    if [state.place for state in batch.states] != [*range(place, place + n)]:
                        raise self._reader.wrong("contain queries in another order")
                    if not batch.is_scored:
                        raise self._reader.wrong("contain queries that were not searched")
                    if place + n > done:
                        yield batch.part(slice(max(done - place, 0), n))
                        done = place + n
                    place += n
                return
            except BrokenOffError as error:
                if self._reopened is None:
                    raise
                self._reader = self._reopened(error)

    def stop(self) -> None:
        """End the search, which raises `Stopped` where it is waited for."""
        self._is_stopped = True

    def close(self) -> None:
        """Release what aligns."""
        self._local.close()


class ReceivedResults(ResultIterator[ReceivedSearch]):
    """The results of a search that runs, or ran, on a server; see `SearchResults`.

    Parameters
    ----------
    opened : callable
        Returns the search, from the options that results are to have.
    options : SearchOptions
        What is asked for.
    threads : int, optional
        For alignments.
    close, stop : callable, optional
        Called in the end, and when the search is to end while another thread takes results.
    """

    def __init__(
        self, opened: Callable[[SearchOptions], ReceivedSearch], options: SearchOptions,
        threads: int | None = None, close: Callable[[], None] = lambda: None, stop: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__(lambda options, _: opened(options), options, close, threads)
        self._stop = stop

    @classmethod
    def of(
        cls, search: ReceivedSearch, threads: int | None = None, close: Callable[[], None] = lambda: None
    ) -> ReceivedResults:
        """Return the results of a search that was opened: what they keep was decided when it ran."""
        results = cls(lambda _: search, search.options, threads, close)
        results.search  # noqa: B018  # nobody can ask for more
        return results

    def stop(self) -> None:
        """End the search from another thread than the one that takes results, which raises `Stopped` there."""
        self._stop()
        if (opened := self._search.opened) is not None:
            opened.stop()
