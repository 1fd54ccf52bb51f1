"""Scoring groups of queries with a database: what each engine finds, and which subjects are a query's best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from swsearch.blocks import Chunk
from swsearch.engines.base import (
    Candidates,
    Engine,
    LoadedChunk,
    Pending,
    Progress,
    QueryGroup,
    ScoreArray,
    Thresholds,
)
from swsearch.inputs import Query
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.database_loading import LoadedDatabase
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import check_wanted, for_each
from swsearch.pipeline.ranking import TopHits, TwoTops
from swsearch.pipeline.selection import Selection
from swsearch.recurrence import Recurrence
from swsearch.statistics.choice import why_none
from swsearch.statistics.fitted import FittedStatistics
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.observed import ScoreTally


@dataclass(frozen=True)
class PreparedQueries:
    """Queries that are ready to be scored together, once.

    Parameters
    ----------
    queries : sequence of Query
        At least one.
    nulls : sequence of FittedStatistics or None
        Each query's null, where statistics are fitted and it has residues.
    tops : sequence of TopHits or TwoTops
        What keeps each query's best subjects.
    group : QueryGroup
        What the engine made of them.
    tallies : sequence of ScoreTally
        What counts each query's scores, where that is asked for.
    """

    queries: Sequence[Query]
    nulls: Sequence[FittedStatistics | None]
    tops: Sequence[TopHits | TwoTops]
    group: QueryGroup
    tallies: Sequence[ScoreTally]


@dataclass(frozen=True)
class ChunkResult:
    """What an engine found in a chunk: candidates of each query, or all scores.

    Parameters
    ----------
    chunk : Chunk
        Which; its residues are not needed any more.
    candidates : sequence of Candidates or None
        One per query.
    scores : ndarray, shape (n_queries, n_subjects), int32, or None
        Matrix units.
    """

    chunk: Chunk
    candidates: Sequence[Candidates] | None
    scores: ScoreArray | None


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores queries with a database, and keeps the best subjects of each.

    Parameters
    ----------
    engine : Engine
        Open.
    criteria : Criteria
        What is looked for.
    threads : int
        For nulls, and for counting scores.
    """

    engine: Engine
    criteria: Criteria
    threads: int

    @property
    def options(self) -> SearchOptions:
        """The options by which subjects are selected."""
        return self.criteria.selecting

    @property
    def recurrence(self) -> Recurrence:
        """What is computed."""
        return self.criteria.recurrence

    def prepare(
        self, queries: Sequence[Query], nulls: Sequence[FittedStatistics | None] | None = None
    ) -> PreparedQueries:
        """Make queries ready, which takes neither the engine's device nor the database; with nulls that are known."""
        if nulls is None:
            maker = self.criteria.null_maker(self.threads)
            nulls = [None] * len(queries) if maker is None else maker.of_queries(queries)
        tops = [self._top(len(query.codes), null) for query, null in zip(queries, nulls, strict=True)]
        tallies = [ScoreTally() for _ in queries]
        return PreparedQueries(queries, nulls, tops, prepare(self.engine, queries, self.recurrence), tallies)

    def _top(self, n: int, null: FittedStatistics | None) -> TopHits | TwoTops:
        """Make what keeps the best subjects of a query of n residues."""
        thresholds, limit, allowed = self.criteria.thresholds, self.options.max_candidates, self.criteria.allowed
        top = TopHits(thresholds.bound(n, null), limit, allowed, thresholds.rating(n, null))
        if self.criteria.inclusion is None:
            return top
        included, most = self.criteria.inclusion.thresholds, self.criteria.inclusion.options.max_candidates
        return TwoTops(top, TopHits(included.bound(n, null), most, None, included.rating(n, null)))

    def join(self, parts: Sequence[PreparedQueries]) -> PreparedQueries:
        """Join queries that were made ready one after the other, to be scored together."""
        if len(parts) == 1:
            return parts[0]
        queries = [query for each in parts for query in each.queries]
        nulls, tops = [null for each in parts for null in each.nulls], [top for each in parts for top in each.tops]
        tallies = [tally for each in parts for tally in each.tallies]
        return PreparedQueries(queries, nulls, tops, prepare(self.engine, queries, self.recurrence), tallies)

    def scan(
        self, prepared: PreparedQueries, loaded: LoadedDatabase, in_flight: int, progress: Progress | None = None
    ) -> list[ChunkResult]:
        """Score queries, and return what `candidates` has to look at: the last chunk, or the only one.

        Of the chunks before it the best are kept at once, so that thresholds rise for those that follow.
        """
        last: list[ChunkResult] = []
        for found in self._scored(prepared, loaded, in_flight, progress):
            self.update_top_hits(prepared, last)
            last = [found]
        return last

    def start(
        self, prepared: PreparedQueries, loaded: LoadedDatabase, in_flight: int, progress: Progress | None = None
    ) -> Callable[[], list[ChunkResult]] | None:
        """Begin to score queries, where the engine keeps the database as one chunk and can have others in work.

        Returns
        -------
        callable or None
            Waits for what was begun and returns it as `scan` does; None where `scan` must be asked.
        """
        chunk = loaded.whole
        if chunk is None or in_flight < 2 or self.options.distribution:
            return None
        check_wanted()
        pending = self.engine.find(prepared.group, chunk, _thresholds(prepared, chunk.chunk), progress)

        def finish() -> list[ChunkResult]:
            _first_ready([pending])
            found = [ChunkResult(_bare(chunk.chunk), pending.wait(), None)]
            loaded.done(chunk)
            return found

        return finish

    def candidates(self, prepared: PreparedQueries, waiting: Sequence[ChunkResult]) -> list[Selection]:
        """Return what may be reported for each query; takes neither the engine nor the database."""
        self.update_top_hits(prepared, waiting)
        limit = self.options.max_candidates
        counts = [tally.counts() if self.options.distribution else None for tally in prepared.tallies]
        each = zip(prepared.tops, prepared.nulls, counts, strict=True)
        return [
            Selection(
                top.ranked, limit, *self._statistics_of(null), count,
                included=top.included.ranked if isinstance(top, TwoTops) else None,
            )
            for top, null, count in each
        ]  # fmt: skip

    def update_top_hits(self, prepared: PreparedQueries, waiting: Sequence[ChunkResult]) -> None:
        """Keep the best of what was found; `candidates` does this too."""
        for found in waiting:
            self._collect(prepared, found)

    def clear(self, prepared: PreparedQueries) -> None:
        """Forget what was found for queries, so that they can be scored once more."""
        for top, tally in zip(prepared.tops, prepared.tallies, strict=True):
            top.clear()
            tally.clear()

    def part(self, prepared: PreparedQueries, part: slice) -> PreparedQueries:
        """Return some of the queries, to be scored without the others; what keeps their best subjects is the same."""
        queries = prepared.queries[part]
        group = prepare(self.engine, queries, self.recurrence)
        return PreparedQueries(queries, prepared.nulls[part], prepared.tops[part], group, prepared.tallies[part])

    def _scored(
        self, prepared: PreparedQueries, loaded: LoadedDatabase, in_flight: int, progress: Progress | None
    ) -> Iterator[ChunkResult]:
        """Yield what is found in chunks; thresholds rise while the best are found."""
        pending: list[tuple[LoadedChunk, Pending]] = []

        def ended(most: int) -> Iterator[ChunkResult]:
            while len(pending) > most:
                chunk, found = pending.pop(_first_ready([found for _, found in pending]))
                yield ChunkResult(_bare(chunk.chunk), found.wait(), None)
                loaded.done(chunk)

        for chunk in loaded:
            check_wanted()
            if self.options.distribution:
                yield ChunkResult(_bare(chunk.chunk), None, self.engine.score(prepared.group, chunk, progress))
                loaded.done(chunk)
                continue
            found = self.engine.find(prepared.group, chunk, _thresholds(prepared, chunk.chunk), progress)
            pending.append((chunk, found))
            yield from ended(in_flight - 1)
        yield from ended(0)

    def _collect(self, prepared: PreparedQueries, found: ChunkResult) -> None:
        """Keep the best of what was found in a chunk, and count its scores, if they are all there."""
        if found.candidates is not None:
            for top, candidates in zip(prepared.tops, found.candidates, strict=True):
                top.add(found.chunk, candidates)
            return
        assert found.scores is not None
        thresholds, lengths, rows = _thresholds(prepared, found.chunk), found.chunk.lengths, found.scores

        def collect(query: int) -> None:
            places = thresholds.select(query, lengths, rows[query])
            prepared.tops[query].add(found.chunk, Candidates(places, rows[query][places]))
            prepared.tallies[query].add(rows[query])

        for_each(collect, range(len(rows)), self.threads)

    def _statistics_of(self, null: FittedStatistics | None) -> tuple[Statistics | None, str]:
        """Return the statistics of a query, and why there are none."""
        if not self.options.is_fitted:
            statistics = self.options.published
            return statistics, "" if statistics is not None else why_none()
        return null, "" if null is not None else why_none("the query has no residues")


def prepare(engine: Engine, queries: Sequence[Query], recurrence: Recurrence) -> QueryGroup:
    """Make a group of queries ready for an engine."""
    return engine.prepare([query.rows(recurrence.scoring) for query in queries], recurrence)


def _bare(chunk: Chunk) -> Chunk:
    """Return a chunk without its residues, which are not needed once it was scored."""
    return chunk.kept() if len(chunk.residues) else chunk


def _thresholds(prepared: PreparedQueries, chunk: Chunk) -> Thresholds:
    return Thresholds([top.by_length for top in prepared.tops], [top.least(chunk) for top in prepared.tops])


def _first_ready(pending: Sequence[Pending]) -> int:
    """Wait until one of several is ready; return its place."""
    while True:
        for place, found in enumerate(pending):
            if found.is_ready():
                return place
        check_wanted()
        time.sleep(0.0002)
