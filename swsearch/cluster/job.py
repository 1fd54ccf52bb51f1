"""A search job whose queries are scored, rated and aligned by the workers of a crew.

The stages are those of `swsearch.pipeline.search_job`. Here a stage submits tasks and waits for them: several groups
of queries are under way at a time, results of shares are merged as they come, and what comes out is in the order of
the queries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from swsearch.cluster.client import (
    MODULE,
    Remote,
    TaskShare,
    allowed_part,
    result_of,
    results_of,
    side_by_side,
    wait_for_some,
)
from swsearch.cluster.pairs import ClusterPairs
from swsearch.cluster.sent import (
    EngineWanted,
    GroupSent,
    VolumeWanted,
    VolumeWork,
    of_bytes,
    to_bytes,
    without_history,
)
from swsearch.cluster.transport import Task
from swsearch.engines.base import ChunkPlan, Engine, LoadedChunk, Progress, QueryGroup, Workload
from swsearch.errors import OptionError
from swsearch.inputs import Query
from swsearch.pipeline.candidate_codec import unpacked
from swsearch.pipeline.database_loading import LoadedDatabase
from swsearch.pipeline.filters import ALL_SUBJECTS
from swsearch.pipeline.iterative import IteratedJob
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.scorer import Found, Prepared, Scorer
from swsearch.pipeline.search_job import Collected, SearchJob, Selected
from swsearch.pipeline.selection import Selection, merge, moved
from swsearch.recurrence import Recurrence
from swsearch.results import SearchResult
from swsearch.scoring import QueryRows
from swsearch.statistics.fitted import FittedStatistics
from swsearch.statistics.karlin_altschul import KarlinAltschul

if TYPE_CHECKING:
    from swsearch.blocks import Chunk
    from swsearch.cluster.crew import Crew

SHARES_OF_WORKER = 2
"""Shares of the database for each worker without a GPU: what one is slow with, another takes over. A GPU has one
share, which stays on it."""

MERGED_AT = 8
"""Parts of a group's results that are merged at a time."""

GROUPS_BESIDE = 4
"""Groups of queries that are rated, and aligned, side by side: each of these waits for workers most of the time."""

FIT_ROWS = 8_000
"""Query residues whose nulls one task makes: a second of a thread."""

FIT_RESIDUES = 800_000
"""Residues of random sequences that a query is scored with."""


class CrewEngine(Engine):
    """Stands for the engines of a crew's workers: it says what they are, and scores nothing itself.

    Parameters
    ----------
    crew : Crew
        Open.
    wanted : EngineWanted, optional
        What workers score with.
    owns_crew : bool, optional
        Whether to close the crew with this.
    """

    name = "cluster"

    def __init__(self, crew: Crew, wanted: EngineWanted | None = None, owns_crew: bool = True) -> None:
        self.crew, self.wanted, self._owns_crew = crew, wanted or EngineWanted(), owns_crew
        self.is_closed = False

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What one of the workers tells of itself; see `swsearch.cluster.tasks.facts`."""
        self.crew.wait_for_workers()
        task = Task(f"{MODULE}:facts", to_bytes((self.wanted, [])), ("facts",), 1)
        found: dict[str, Any] = json.loads(result_of(self.crew.submit(task)))
        return found

    @property
    def description(self) -> str:
        """The cluster, its workers, and what one of them scores with."""
        n = self.crew.n_workers
        each = self.facts["engine"] or "no engine"
        return f"cluster ({self.crew.name}, {n:,} worker{'' if n == 1 else 's'}: {each})"

    @property
    def n_shares(self) -> int:
        """Shares that a database is cut into, if its volumes are fewer."""
        n = max(self.crew.n_workers, 1)
        return n if self.facts["name"] == "gpu" else SHARES_OF_WORKER * n

    def plan(self, workload: Workload) -> ChunkPlan:
        """Return a plan that holds for nobody: workers have theirs."""
        return ChunkPlan()

    def prepare(self, profiles: Sequence[QueryRows], recurrence: Recurrence) -> NoReturn:
        """Refuse: workers do that."""
        raise NotImplementedError("a crew's engine scores nothing itself")

    def load(self, chunk: Chunk) -> NoReturn:
        """Refuse: workers do that."""
        raise NotImplementedError("a crew's engine scores nothing itself")

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> NoReturn:
        """Refuse: workers do that."""
        raise NotImplementedError("a crew's engine scores nothing itself")

    def close(self) -> None:
        """Close the crew; what is asked of pairs after that is computed here."""
        self.is_closed = True
        if self._owns_crew:
            self.crew.close()


@dataclass
class UnderWay:
    """The tasks of a group of queries, and what came of them so far.

    Parameters
    ----------
    rows : int
        Residues of the queries.
    tasks : dict
        What is not there yet, and of which share it is.
    parts : list
        What is there: selections by query, of some shares.
    """

    rows: int
    tasks: dict[Future[bytes], TaskShare] = field(default_factory=dict)
    parts: list[list[Selection]] = field(default_factory=list)

    def add(self, part: list[Selection], limit: int | None) -> None:
        """Take the results of a share; some are merged as soon as there are many."""
        self.parts.append(part)
        if len(self.parts) >= MERGED_AT:
            self.parts = [self.merged(limit)]

    def merged(self, limit: int | None) -> list[Selection]:
        """Return what is there as one."""
        if len(self.parts) == 1:
            return self.parts[0]
        return [merge(of_query, limit) for of_query in zip(*self.parts, strict=True)]


@dataclass(frozen=True)
class ClusterScorer(Scorer):
    """Has groups of queries scored by workers; `prepare` submits them, and `found` waits.

    Parameters
    ----------
    remote : Remote or None
        Submits tasks.
    published : KarlinAltschul or None
        The statistics that the options name.
    """

    remote: Remote | None = None
    published: KarlinAltschul | None = None

    def prepare(self, queries: Sequence[Query], nulls: Sequence[FittedStatistics | None] | None = None) -> Prepared:
        """Submit queries, as there is room, once their nulls are known."""
        assert self.remote is not None
        if nulls is None:
            nulls = [None] * len(queries) if self.nulls is None else self.fitted(self.begin_to_fit(queries))
        group = to_bytes(GroupSent([without_history(each) for each in queries], list(nulls)))
        under_way = UnderWay(sum(len(query.codes) for query in queries))
        try:
            for share, future in self.remote.score(group, under_way.rows):
                under_way.tasks[future] = share
        except BaseException:
            _cancel(under_way.tasks)
            raise
        return Prepared(queries, nulls, [], QueryGroup([], self.recurrence, under_way), [])

    def begin_to_fit(self, queries: Sequence[Query]) -> list[Future[bytes]]:
        """Submit what makes the nulls of queries."""
        assert self.remote is not None
        if self.nulls is None:
            return []
        futures = []
        for part in groups_of_rows(queries, FIT_ROWS):
            sent = self.nulls.fit, self.recurrence, [without_history(each) for each in part]
            cells = sum(len(query.codes) for query in part) * FIT_RESIDUES
            futures.append(self.remote.submit("fit", to_bytes(sent), ("fit",), cells))
        return futures

    @staticmethod
    def fitted(futures: Sequence[Future[bytes]]) -> list[FittedStatistics | None]:
        """Wait for the nulls of queries."""
        return [null for found in results_of(futures) for null in of_bytes(found)]

    def begun(
        self, prepared: Prepared, loaded: LoadedDatabase, in_flight: int, progress: Progress | None = None
    ) -> Callable[[], list[Found]] | None:
        """Say that `found` is to be asked."""
        return None

    def found(
        self, prepared: Prepared, loaded: LoadedDatabase, in_flight: int, progress: Progress | None = None
    ) -> list[Found]:
        """Wait for the tasks of a group, and merge what comes; `collected` has the rest."""
        under_way: UnderWay = prepared.group.handle
        limit = None if self.included is None else self.included.options.max_candidates
        try:
            while tasks := under_way.tasks:
                waiting = wait_for_some(set(tasks))
                for future in [each for each in tasks if each not in waiting]:
                    share = tasks.pop(future)
                    under_way.add(self._unpacked(future.result(), share), limit)
                    if progress is not None:
                        progress(under_way.rows * share.n_residues)
        except BaseException:
            _cancel(under_way.tasks)
            raise
        return []

    def _unpacked(self, data: bytes, share: TaskShare) -> list[Selection]:
        """Return the selections of a share, with places in the whole database."""
        assert self.remote is not None
        volume = self.remote.volumes[share.volume]
        found = unpacked(data, self.published, volume.n_subjects)
        return [moved(each, volume.first) for each in found] if volume.first else found

    def collected(self, prepared: Prepared, waiting: Sequence[Found]) -> list[Selection]:
        """Return what may be reported for each query."""
        under_way: UnderWay = prepared.group.handle
        return under_way.merged(None if self.included is None else self.included.options.max_candidates)


def _cancel(tasks: Iterable[Future[bytes]]) -> None:
    for future in tasks:
        future.cancel()


def groups_of_rows(queries: Sequence[Query], most: int) -> list[Sequence[Query]]:
    """Cut queries into runs of about so many residues."""
    sizes = np.cumsum([len(query.codes) for query in queries])
    cuts = [0, *(np.flatnonzero(np.diff(sizes // most)) + 1).tolist(), len(queries)]
    return [queries[begin:end] for begin, end in pairwise(cuts)]


@dataclass(frozen=True)
class Coming:
    """A group of queries before it is scored.

    Parameters
    ----------
    queries : sequence of Query
        The queries.
    kept : list of Selection or None
        What the checkpoint has of them.
    nulls : list of Future
        Tasks that make their nulls.
    """

    queries: Sequence[Query]
    kept: list[Selection] | None
    nulls: list[Future[bytes]]


class ClusterJob(SearchJob):
    """Queries, a database in files, and a crew, ready to search; parameters are those of `SearchJob`.

    The database is one of files, which `swsearch.cluster.running.check_is_database` has seen to.
    """

    engine: CrewEngine
    skips = False  # workers hold all of a volume, for any search

    def _take(self, queries: Sequence[Query], options: SearchOptions) -> None:
        if options.frame_shift is not None:
            why = "frameshift searches run on one machine; leave the cluster out"
            raise OptionError("frame_shift", options.frame_shift, "none with a cluster", why)
        super()._take(queries, options)

    @cached_property
    def remote(self) -> Remote:
        """What submits tasks."""
        return Remote(self.engine, self.database.volumes, self._work_of, self.engine.n_shares)

    @cached_property
    def plan(self) -> ChunkPlan:
        """How the database is cut; engines are on workers and have plans of their own."""
        volumes, shares = len(self.remote.volumes), len(self.remote.shares)
        plural = "" if volumes == 1 else "s"
        return ChunkPlan(
            note=f"{volumes:,} volume{plural} in {shares:,} shares, each a task of every group of queries"
        )

    def _work_of(self, number: int) -> VolumeWork:
        """Return what all tasks on a volume have in common."""
        volume, options = self.database.volumes[number], self.options
        has_statistics = options.published is not None or options.is_fitted
        # one without residues is no number to be asked for, and its volumes have none either
        dbsize = (self.least.effective_residues or None) if has_statistics else None
        groups = [[len(query.codes) for query in group] for group in self.groups()]
        return VolumeWork(
            VolumeWanted(volume.path, volume.identity()), self.engine.wanted,
            replace(options, **ALL_SUBJECTS, dbsize=dbsize), self.reader.mask, self._fit,
            allowed_part(self._allowed, volume.first, volume.n_subjects),
            (max(map(len, groups), default=1), max(map(sum, groups), default=1)), options.makes_profiles,
        )  # fmt: skip

    @cached_property
    def scorer(self) -> Scorer:
        """What has queries scored with the database."""
        return ClusterScorer(
            self.engine, self.options, self.reader.recurrence, self.least, None, self._nulls, self._threads,
            None, self.remote, self.options.published,
        )  # fmt: skip

    @cached_property
    def work(self) -> ClusterPairs:
        """What has nulls and alignments of pairs computed."""
        return ClusterPairs(self.reader, self._threads, self._nulls, self.remote)

    def _prepared(self) -> Generator[Prepared | Selected]:
        """Submit groups of queries, but for those that the checkpoint has."""
        scorer, before = self.scorer, None
        assert isinstance(scorer, ClusterScorer)
        for coming in chain(self._coming(scorer), [None]):
            if before is not None:
                if before.kept is not None:
                    yield before.queries, before.kept
                else:
                    nulls = None if self._nulls is None else scorer.fitted(before.nulls)
                    yield scorer.prepare(before.queries, nulls)
            before = coming

    def _coming(self, scorer: ClusterScorer) -> Iterator[Coming]:
        """Yield groups of queries whose nulls are being made, those of the next before one is waited for."""
        first = 0
        for group in self.groups():
            kept = None if self.checkpoint is None else self.checkpoint.load(first, len(group))
            yield Coming(group, kept, [] if kept is not None else scorer.begin_to_fit(group))
            first += len(group)

    def _held_against_nulls(self, scored: Iterable[Collected]) -> Generator[Selected]:
        """Choose hits among candidates, of several groups at a time."""

        def rate(group: Collected) -> tuple[Sequence[Query], list[Selection], list[Selection]]:
            queries, selections = group[0], group[1]()
            return queries, selections, self.rated(queries, selections)

        first = 0
        with closing(side_by_side(rate, scored, GROUPS_BESIDE)) as each:
            for queries, selections, rated in each:
                if any(after is not before for after, before in zip(rated, selections, strict=True)):
                    self._keep(first, rated)
                yield queries, rated
                first += len(queries)

    def _finished(self, scored: Iterable[Selected], aligned: bool) -> Generator[list[SearchResult]]:
        """Make results of what was scored, of several groups at a time."""
        parts = ((queries[part], rated[part]) for queries, rated in scored for part in self.parts(rated))
        with closing(side_by_side(lambda part: self.made(*part, aligned), parts, GROUPS_BESIDE)) as results:
            yield from results


class IteratedClusterJob(IteratedJob, ClusterJob):
    """A search in iterations, whose queries are scored, rated and aligned by the workers of a crew.

    Further parts of subjects are aligned here, and profiles are made here.
    """

    plan = ClusterJob.plan
