"""A database that stays with its engine between searches, and calls from several threads that are scored together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from swsearch.engines.base import ChunkPlan, Engine, Workload
from swsearch.errors import EngineError
from swsearch.inputs import Query
from swsearch.job.job import GROUP_ROWS, SearchJob, groups_of
from swsearch.job.loaded import LoadedDatabase, fits_the_host
from swsearch.job.options import SearchOptions, check_scales
from swsearch.job.scored import Prepared
from swsearch.job.selection import Selection

if TYPE_CHECKING:
    from swsearch.db import Database
    from swsearch.results import SearchResult

QUERIES_TOGETHER = 256
"""Queries that are scored together at most."""


@dataclass(frozen=True)
class _Request:
    """Queries that one call wants to be scored."""

    prepared: Prepared
    selections: Future[list[Selection]] = field(default_factory=Future)

    @property
    def n_rows(self) -> int:
        return sum(len(query.codes) for query in self.prepared.queries)


class ResidentSearch:
    """Searches one database again and again, with the same options.

    One thread has the engine. Calls leave their queries to it, and those that wait at the same time are scored
    together; each call makes its own hits of what is found.

    Parameters
    ----------
    database : Database
        Open; closed by whoever opened it.
    engine : Engine
        Open, and used by nobody else; closed by whoever made it.
    options : SearchOptions
        What is asked for.
    threads : int, optional
        For alignments; one for each processor by default.
    """

    def __init__(
        self, database: Database, engine: Engine, options: SearchOptions, threads: int | None = None
    ) -> None:
        self.job = self._job(database, engine, options, threads)
        self._engine, self._database = engine, database
        self._most = min(QUERIES_TOGETHER, self.job.most_queries or QUERIES_TOGETHER)
        self._planned = 0
        self._plan = ChunkPlan()
        self._loaded: LoadedDatabase | None = None
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._make_room(GROUP_ROWS)
        self._thread = threading.Thread(target=self._serve, name="swsearch-resident", daemon=True)
        self._thread.start()

    def search(self, queries: Sequence[Query], aligned: bool = False) -> Iterator[list[SearchResult]]:
        """Yield the results of queries, in query order, some at a time.

        Parameters
        ----------
        queries : sequence of Query
            As they were read; they are masked here as the options say.
        aligned : bool, optional
            Whether hits come with their alignments.

        Raises
        ------
        EngineError
            If the engine fails, or this was closed.
        OptionError
            If a profile's scores are not those that published statistics are of.
        """
        options = self.job.options
        check_scales(queries, options)
        masked = [query.masked(options.query_mask) for query in queries]
        if options.makes_profiles:
            yield from self._iterated(masked, aligned)
            return
        requests: deque[_Request] = deque()
        try:
            for group in groups_of(masked, self._most):
                requests.append(self._ask(group))
                if len(requests) > 1:  # one is scored while the hits of the one before are made
                    yield self._made(requests.popleft(), aligned)
            while requests:
                yield self._made(requests.popleft(), aligned)
        finally:
            for request in requests:
                request.selections.cancel()

    def _iterated(self, queries: Sequence[Query], aligned: bool) -> Iterator[list[SearchResult]]:
        """Yield the results of queries that are searched with again and again, group after group."""
        from swsearch.job.iterated import IteratedJob

        job = self.job
        assert isinstance(job, IteratedJob)
        place = 0
        for group in groups_of(queries, self._most):
            turns = [job.first_turn(place + k, query) for k, query in enumerate(group)]
            place += len(group)
            results: dict[int, SearchResult] = {}
            while turns:
                request = self._ask([turn.query for turn in turns])
                selections = self._selections(request)
                chosen = job.includer.rated([turn.query for turn in turns], selections)
                turns, ended = job.grow(turns, selections, chosen)
                rated = job.rated([each.turn.query for each in ended], [each.selection for each in ended])
                places = [each.turn.place for each in ended]
                results.update(zip(places, job.told(ended, rated, aligned), strict=True))
            yield [results[each] for each in sorted(results)]

    def close(self) -> None:
        """Let go of the database, when what is being scored is done; calls that still wait raise `EngineError`."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _ask(self, queries: Sequence[Query]) -> _Request:
        request = _Request(self.job.scorer.prepare(queries))
        with self._changed:
            if self._is_closed:
                raise EngineError("this Searcher was closed; make another one")
            self._waiting.append(request)
            self._changed.notify_all()
        return request

    def _selections(self, request: _Request) -> list[Selection]:
        try:
            return request.selections.result()
        except CancelledError:
            raise EngineError("this Searcher was closed while a search was waiting; make another one") from None

    def _made(self, request: _Request, aligned: bool) -> list[SearchResult]:
        selections = self._selections(request)
        queries = request.prepared.queries
        return self.job.made(queries, self.job.rated(queries, selections), aligned)

    @staticmethod
    def _job(database: Database, engine: Engine, options: SearchOptions, threads: int | None) -> SearchJob:
        if not options.makes_profiles:
            return SearchJob((), database, engine, options, threads=threads)
        from swsearch.job.iterated import IteratedJob

        return IteratedJob((), database, engine, options, threads=threads)

    # the thread that has the engine

    def _serve(self) -> None:
        try:
            while requests := self._next():
                try:
                    found = self._scored([request.prepared for request in requests])
                except BaseException as error:  # it is raised again in each call
                    for request in requests:
                        request.selections.set_exception(error)
                    continue
                for request, selections in zip(requests, found, strict=True):
                    request.selections.set_result(selections)
        finally:
            self._unload()
            for request in self._waiting:
                request.selections.cancel()

    def _next(self) -> list[_Request]:
        """Wait for calls, and take those that can be scored together; none when this is closed."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return []
                taken: list[_Request] = []
                rows = queries = 0
                while self._waiting:
                    request = self._waiting[0]
                    rows, queries = rows + request.n_rows, queries + len(request.prepared.queries)
                    if taken and (rows > GROUP_ROWS or queries > self._most):
                        break
                    self._waiting.popleft()
                    if request.selections.set_running_or_notify_cancel():
                        taken.append(request)
                if taken:
                    return taken

    def _scored(self, prepared: Sequence[Prepared]) -> list[list[Selection]]:
        together = self.job.scorer.together(prepared)
        rows = sum(len(query.codes) for query in together.queries)
        if rows > self._planned:
            self._make_room(2 * rows)
        if self._loaded is None:
            self._loaded = LoadedDatabase(self._engine, self._database, self._plan, self.job.reader.mask)
        try:
            found = self.job.scorer.select(together, self._loaded, self._plan.in_flight)
        except BaseException:
            self._unload()  # what is loaded may be in an unknown state
            raise
        ends = [0]
        for each in prepared:
            ends.append(ends[-1] + len(each.queries))
        return [found[begin:end] for begin, end in pairwise(ends)]

    def _make_room(self, rows: int) -> None:
        """Let the engine plan for queries of so many residues together."""
        self._unload()
        each = max(1, rows // QUERIES_TOGETHER)
        groups = [[rows - each * (self._most - 1)] + [each] * (self._most - 1)]
        self._plan = self._engine.plan(Workload(self._database.residue_bytes, self._database.length_runs, groups))
        self._planned = rows
        if not self._plan.keep and self._engine.name == "cpu" and fits_the_host(self._database):
            self._plan = replace(self._plan, keep=True)

    def _unload(self) -> None:
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None
