"""Queries scored with a database that is read once, and the seconds that this takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swsearch import Database
from swsearch.backends.local import LocalBackend
from swsearch.engines.base import Engine
from swsearch.inputs import Query
from swsearch.pipeline.backend import SessionRequest
from swsearch.pipeline.batch import Batch, QueryState
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.ranking import QueryCandidates
from swsearch.pipeline.search import Search
from swsearch.results import SearchResult

MAX_HITS = 10
"""Hits of a query, as in the command."""

SCANNED = SearchOptions(max_hits=MAX_HITS, statistics="published")
"""Options that only scan the database, without the CPU's scores of random and shuffled sequences."""


class Seconds(NamedTuple):
    """Seconds of a call: kernels by the GPU's clock, and the call by the wall clock."""

    kernel: float
    wall: float


def kernel_seconds(engine: Engine) -> float | None:
    """Return how long kernels have run so far; None for an engine without kernels."""
    usage = getattr(engine, "usage", None)
    return None if usage is None else float(usage.kernel_seconds)


def seconds_of(engine: Engine, work: Callable[[], object]) -> Seconds:
    """Time a call; an engine without kernels counts as computing all the time."""
    before = kernel_seconds(engine)
    started = time.perf_counter()
    work()
    wall = time.perf_counter() - started
    after = kernel_seconds(engine)
    return Seconds(wall if before is None or after is None else after - before, wall)


class Scan:
    """A search whose database is read once, when it is first asked for, and stays on the device if it can.

    Parameters
    ----------
    engine : Engine
        Open; what it held before is given up.
    database : Database
        Open.
    groups : sequence of sequence of Query
        Queries that the engine is to have room for together; others may be asked for.
    """

    def __init__(self, engine: Engine, database: Database, groups: Sequence[Sequence[Query]]) -> None:
        self.engine = engine
        self._search = Search([query for group in groups for query in group], SCANNED, LocalBackend(database, engine))
        lengths = [[len(query.codes) for query in group] for group in groups]
        asked = SessionRequest(self._search.subjects, self._search.criteria, lengths)
        self._session = self._search.backend.open(asked)

    @property
    def note(self) -> str:
        """Memory that the engine has allocated, as text."""
        return self._session.note

    def select(self, queries: Sequence[Query]) -> list[QueryCandidates]:
        """Score queries as one group, and return the hits of each by place and score."""
        pending = self._session.select(self._session.prepare(queries))
        pending.wait()
        return pending.selections()

    def score(self, *groups: Sequence[Query]) -> Seconds:
        """Score groups of queries one after the other."""
        return seconds_of(self.engine, lambda: [self.select(group) for group in groups])

    def run(self, *groups: Sequence[Query]) -> Seconds:
        """Score groups of queries one after the other, and make the results of each."""
        return seconds_of(self.engine, lambda: [self._results(group) for group in groups])

    def _results(self, queries: Sequence[Query]) -> list[list[SearchResult]]:
        return list(self._search.results_of([batch_of(self._search, queries, self.select(queries))]))

    def close(self) -> None:
        """Give the database back."""
        self._session.close()


def batch_of(search: Search, queries: Sequence[Query], selections: Sequence[QueryCandidates]) -> Batch:
    """Return queries of a search with what was selected for each, as its stages take them."""
    states = [QueryState(place, query) for place, query in enumerate(queries)]
    return Batch(states, search.subjects).with_selections(selections)
