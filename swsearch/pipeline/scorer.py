"""Scoring of query batches, and the stages around it.

Stages are generators. Each runs in its own thread, and pauses when it is one batch ahead, so that memory stays
bounded for any number of queries.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from swsearch.blocks import Chunk
from swsearch.engines.base import (
    ChunkHits,
    Engine,
    HitThresholds,
    LoadedChunk,
    PendingHits,
    Progress,
    QueryGroup,
    ScoreArray,
)
from swsearch.inputs import Query
from swsearch.pipeline.backend import PendingSelection, Session
from swsearch.pipeline.batch import Batch, QueryState
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import (
    InlineIterator,
    ItemT,
    PrefetchIterator,
    SearchCancelled,
    check_cancelled,
    parallel_for,
)
from swsearch.pipeline.ranking import QueryCandidates, TopHits, TopHitsAndMembers
from swsearch.pipeline.subjects import EngineDatabase, SubjectReader
from swsearch.recurrence import Recurrence
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.methods import no_evalue_message
from swsearch.statistics.null_model import FittedStatistics
from swsearch.statistics.score_distribution import ScoreCounter

if TYPE_CHECKING:
    from swsearch.pipeline.iterate import IterationQueue


@dataclass(frozen=True)
class PreparedQueries:
    """Queries that are ready to be scored together, once.

    Parameters
    ----------
    queries : sequence of Query
        At least one.
    null_models : sequence of FittedStatistics or None
        Each query's null, where statistics are fitted and it has residues.
    tops : sequence of TopHits or TopHitsAndMembers
        The best subjects of each query.
    group : QueryGroup
        The prepared queries of the engine.
    counters : sequence of ScoreCounter
        Counts of each query's scores, if requested.
    """

    queries: Sequence[Query]
    null_models: Sequence[FittedStatistics | None]
    tops: Sequence[TopHits | TopHitsAndMembers]
    group: QueryGroup
    counters: Sequence[ScoreCounter]


@dataclass(frozen=True)
class ChunkResult:
    """An engine's results for a chunk: candidates of each query, or all scores.

    Parameters
    ----------
    chunk : Chunk
        Which; its residues are not needed any more.
    candidates : sequence of ChunkHits or None
        One per query.
    scores : ndarray, shape (n_queries, n_subjects), int32, or None
        Matrix units.
    """

    chunk: Chunk
    candidates: Sequence[ChunkHits] | None
    scores: ScoreArray | None


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores queries with a database, and keeps the best subjects of each.

    Parameters
    ----------
    engine : Engine
        Open.
    criteria : Criteria
        Options and thresholds of the search.
    threads : int
        For nulls, and for counting scores.
    """

    engine: Engine
    criteria: Criteria
    threads: int

    @property
    def options(self) -> SearchOptions:
        """The options by which subjects are selected."""
        return self.criteria.selection_options

    @property
    def recurrence(self) -> Recurrence:
        """Scoring, mode and frameshift cost."""
        return self.criteria.recurrence

    def prepare(
        self, queries: Sequence[Query], nulls: Sequence[FittedStatistics | None] | None = None
    ) -> PreparedQueries:
        """Make queries ready, which takes neither the engine's device nor the database; with nulls that are known."""
        if nulls is None:
            maker = self.criteria.null_model_fitter(self.threads)
            nulls = [None] * len(queries) if maker is None else maker.fit_queries(queries)
        tops = [self._make_top_hits(len(query.codes), null) for query, null in zip(queries, nulls, strict=True)]
        tallies = [ScoreCounter() for _ in queries]
        return PreparedQueries(queries, nulls, tops, prepare(self.engine, queries, self.recurrence), tallies)

    def _make_top_hits(self, n: int, null: FittedStatistics | None) -> TopHits | TopHitsAndMembers:
        """Make the ranking of the subjects of a query of n residues."""
        criteria, limit = self.criteria, self.options.max_candidates
        top = TopHits(
            criteria.engine_thresholds(n, null), limit, criteria.subject_mask, criteria.evalue_function(n, null)
        )
        if criteria.inclusion is None:
            return top
        included, max_candidates = criteria.inclusion, criteria.inclusion.options.max_candidates
        return TopHitsAndMembers(
            top, TopHits(included.engine_thresholds(n, null), max_candidates, None, included.evalue_function(n, null))
        )

    def join(self, parts: Sequence[PreparedQueries]) -> PreparedQueries:
        """Join queries that were made ready one after the other, to be scored together."""
        if len(parts) == 1:
            return parts[0]
        queries = [query for each in parts for query in each.queries]
        nulls, tops = (
            [null for each in parts for null in each.null_models],
            [top for each in parts for top in each.tops],
        )
        tallies = [tally for each in parts for tally in each.counters]
        return PreparedQueries(queries, nulls, tops, prepare(self.engine, queries, self.recurrence), tallies)

    def scan(
        self, prepared: PreparedQueries, loaded: EngineDatabase, in_flight: int, progress: Progress | None = None
    ) -> list[ChunkResult]:
        """Score queries, and return what `candidates` has to look at: the last chunk, or the only one.

        Of the chunks before it the best are kept at once, so that thresholds rise for those that follow.
        """
        last: list[ChunkResult] = []
        for result in self._scored(prepared, loaded, in_flight, progress):
            self.update_top_hits(prepared, last)
            last = [result]
        return last

    def start(
        self, prepared: PreparedQueries, loaded: EngineDatabase, in_flight: int, progress: Progress | None = None
    ) -> Callable[[], list[ChunkResult]] | None:
        """Begin to score queries, where the engine keeps the database as one chunk and can have others in work.

        Returns
        -------
        callable or None
            Waits for what was begun and returns it as `scan` does; None where `scan` must be asked.
        """
        chunk = loaded.resident_chunk
        if chunk is None or in_flight < 2 or self.options.distribution:
            return None
        check_cancelled()
        pending = self.engine.start_scan(prepared.group, chunk, _thresholds(prepared, chunk.chunk), progress)

        def finish() -> list[ChunkResult]:
            _first_ready([pending])
            results = [ChunkResult(_without_residues(chunk.chunk), pending.wait(), None)]
            loaded.release(chunk)
            return results

        return finish

    def candidates(self, prepared: PreparedQueries, waiting: Sequence[ChunkResult]) -> list[QueryCandidates]:
        """Return the candidates of each query, without use of the engine or the database."""
        self.update_top_hits(prepared, waiting)
        limit = self.options.max_candidates
        counts = [tally.counts() if self.options.distribution else None for tally in prepared.counters]
        each = zip(prepared.tops, prepared.null_models, counts, strict=True)
        return [
            QueryCandidates(
                top.ranked, limit, *self._statistics_of(null), count,
                profile_candidates=top.included.ranked if isinstance(top, TopHitsAndMembers) else None,
            )
            for top, null, count in each
        ]  # fmt: skip

    def update_top_hits(self, prepared: PreparedQueries, waiting: Sequence[ChunkResult]) -> None:
        """Add results to the rankings; `candidates` does this too."""
        for result in waiting:
            self._collect(prepared, result)

    def clear(self, prepared: PreparedQueries) -> None:
        """Drop the results of queries, so that they can be scored again."""
        for top, tally in zip(prepared.tops, prepared.counters, strict=True):
            top.clear()
            tally.clear()

    def part(self, prepared: PreparedQueries, part: slice) -> PreparedQueries:
        """Return some of the queries, to be scored without the others; they share their rankings."""
        queries = prepared.queries[part]
        group = prepare(self.engine, queries, self.recurrence)
        return PreparedQueries(
            queries, prepared.null_models[part], prepared.tops[part], group, prepared.counters[part]
        )

    def _scored(
        self, prepared: PreparedQueries, loaded: EngineDatabase, in_flight: int, progress: Progress | None
    ) -> Iterator[ChunkResult]:
        """Yield the results of chunks; thresholds rise meanwhile."""
        pending: list[tuple[LoadedChunk, PendingHits]] = []

        def ended(max_pending: int) -> Iterator[ChunkResult]:
            while len(pending) > max_pending:
                chunk, hits = pending.pop(_first_ready([hits for _, hits in pending]))
                yield ChunkResult(_without_residues(chunk.chunk), hits.wait(), None)
                loaded.release(chunk)

        for chunk in loaded:
            check_cancelled()
            if self.options.distribution:
                yield ChunkResult(
                    _without_residues(chunk.chunk), None, self.engine.score(prepared.group, chunk, progress)
                )
                loaded.release(chunk)
                continue
            hits = self.engine.start_scan(prepared.group, chunk, _thresholds(prepared, chunk.chunk), progress)
            pending.append((chunk, hits))
            yield from ended(in_flight - 1)
        yield from ended(0)

    def _collect(self, prepared: PreparedQueries, result: ChunkResult) -> None:
        """Add the results of a chunk to the rankings, and count its scores, if all are known."""
        if result.candidates is not None:
            for top, candidates in zip(prepared.tops, result.candidates, strict=True):
                top.add(result.chunk, candidates)
            return
        assert result.scores is not None
        thresholds, lengths, rows = _thresholds(prepared, result.chunk), result.chunk.lengths, result.scores

        def collect(query: int) -> None:
            places = thresholds.select(query, lengths, rows[query])
            prepared.tops[query].add(result.chunk, ChunkHits(places, rows[query][places]))
            prepared.counters[query].add(rows[query])

        parallel_for(collect, range(len(rows)), self.threads)

    def _statistics_of(self, null: FittedStatistics | None) -> tuple[Statistics | None, str]:
        """Return the statistics of a query, and why there are none."""
        if not self.options.uses_fitted_statistics:
            statistics = self.options.published
            return statistics, "" if statistics is not None else no_evalue_message()
        return null, "" if null is not None else no_evalue_message("the query has no residues")


def prepare(engine: Engine, queries: Sequence[Query], recurrence: Recurrence) -> QueryGroup:
    """Make a group of queries ready for an engine."""
    return engine.prepare([query.rows(recurrence.scoring) for query in queries], recurrence)


def _without_residues(chunk: Chunk) -> Chunk:
    """Return a chunk without its residues, which are not needed once it was scored."""
    return chunk.without_residues() if len(chunk.residues) else chunk


def _thresholds(prepared: PreparedQueries, chunk: Chunk) -> HitThresholds:
    return HitThresholds(
        [top.by_length for top in prepared.tops], [top.min_useful_score(chunk) for top in prepared.tops]
    )


def _first_ready(pending: Sequence[PendingHits]) -> int:
    """Wait until one of several is ready; return its place."""
    while True:
        for place, hits in enumerate(pending):
            if hits.is_ready():
                return place
        check_cancelled()
        time.sleep(0.0002)


PENDING_BATCHES = 2
"""Batches that are being selected at a time: the next one is begun before one is waited for."""


class Stages:
    """The stages of one search, in the order in which they are added."""

    def __init__(self) -> None:
        self._in_threads = True
        self._stages: list[PrefetchIterator[Any] | InlineIterator[Any]] = []
        self._closing: list[Callable[[], None]] = []
        self._is_stopped = False

    def begin(self, in_threads: bool) -> None:
        """Set whether each stage has a thread; otherwise all run when the last one is read."""
        self.check_cancelled()
        self._in_threads = in_threads

    def add(self, name: str, items: Generator[ItemT]) -> Iterator[ItemT]:
        """Run a generator as the next stage, and return its items."""
        if not self._in_threads:
            return items
        stage = PrefetchIterator(items, name)
        self._stages.append(stage)
        return stage

    def last(self, name: str, items: Generator[ItemT]) -> Iterator[ItemT]:
        """Return the items of the last stage, which end with `SearchCancelled` once the search was stopped."""
        self._stages.append(PrefetchIterator(items, name) if self._in_threads else InlineIterator(items))
        self.check_cancelled()
        yield from self._stages[-1]

    def on_close(self, call: Callable[[], None]) -> None:
        """Register a function to call before the stages are closed, e.g. to wake one that waits."""
        self._closing.append(call)

    def check_cancelled(self) -> None:
        """Raise `SearchCancelled` if the search was stopped."""
        if self._is_stopped:
            raise SearchCancelled

    def close(self) -> None:
        """End all threads, the first one first: those after it wait for it."""
        for call in self._closing:
            call()
        for stage in list(self._stages):
            stage.close()

    def describe_times(self) -> list[str]:
        """Return a line for each stage with its seconds: worked, waited for the stage before, for the one after."""
        lines, before = [], 0.0
        for stage in self._stages:
            if isinstance(stage, PrefetchIterator):
                ran, for_room, awaited = stage.times
                worked = max(ran - for_room - before, 0.0)
                lines.append(f"stage {stage.name}: worked {worked:.2f} s, waited {before:.2f} + {for_room:.2f} s")
                before = awaited
        return lines

    def stop(self) -> None:
        """End the search from any thread, at any time."""
        self._is_stopped = True
        self.close()


def prepare_batches(batches: Iterable[Batch], session: Session) -> Generator[tuple[Batch, Any]]:
    """Make batches ready to be scored, but for those that were."""
    for batch in batches:
        yield batch, None if batch.is_scored else session.prepare(batch.queries)


def select_subjects(
    batches: Iterator[tuple[Batch, Any]], session: Session
) -> Generator[tuple[Batch, PendingSelection | None]]:
    """Select the subjects of batches; where the backend can, the next batch is begun before one is waited for.

    The next batch is taken only if it is there: in iterations it may come of one that is still being selected.
    """
    started: deque[tuple[Batch, PendingSelection | None]] = deque()

    def first() -> tuple[Batch, PendingSelection | None]:
        batch, pending = started.popleft()
        if pending is not None:
            pending.wait()
        return batch, pending

    while True:
        if started and not (isinstance(batches, PrefetchIterator) and batches.is_ready()):
            yield first()
            continue
        batch, ready = next(batches, (None, None))
        if batch is None:
            break
        started.append((batch, None if batch.is_scored else session.select(ready)))
        while started and (len(started) >= PENDING_BATCHES or started[0][1] is None or started[0][1].is_ready()):
            yield first()
    while started:
        yield first()


def collect_selections(batches: Iterable[tuple[Batch, PendingSelection | None]]) -> Generator[Batch]:
    """Collect candidates, without engine and subjects: the next batch is scored meanwhile."""
    for batch, pending in batches:
        yield batch if pending is None else batch.with_selections(pending.selections())


def restore_order(batches: Iterable[Batch], rounds: IterationQueue | None = None, first: int = 0) -> Generator[Batch]:
    """Delay each state until all earlier ones have arrived, and yield states in order.

    New queries begin as these go on, so that every chain with rounds has this stage.

    Parameters
    ----------
    batches : iterable of Batch
        Those of a query once.
    """
    waiting: dict[int, tuple[QueryState, SubjectReader]] = {}
    place = first
    for batch in batches:
        waiting.update((state.index, (state, batch.subjects)) for state in batch.states)
        ready: list[tuple[QueryState, SubjectReader]] = []
        while place in waiting:
            ready.append(waiting.pop(place))
            place += 1
        if rounds is not None:
            rounds.mark_delivered(place)
        yield from group_states(ready)


def group_states(states: Iterable[tuple[QueryState, SubjectReader]]) -> Iterator[Batch]:
    """Return states in batches of those that have their subjects in common."""
    for _, some in groupby(states, key=lambda each: id(each[1])):
        each = list(some)
        yield Batch([state for state, _ in each], each[0][1])
