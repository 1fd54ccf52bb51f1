"""A search job: every query against every subject; which subjects are a query's best, and the hits made of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.blocks import Chunk, IntArray
from swsearch.engines.base import (
    Candidates,
    ChunkPlan,
    Engine,
    LoadedChunk,
    Pending,
    Progress,
    QueryGroup,
    ScoreArray,
    Thresholds,
    Workload,
)
from swsearch.engines.choice import engine_for_copies
from swsearch.inputs import Query
from swsearch.job.filters import allowed_subjects
from swsearch.job.hit_alignments import SubjectReader
from swsearch.job.hits import HitMaker
from swsearch.job.least import LeastScores
from swsearch.job.loaded import LoadedDatabase, database_mask
from swsearch.job.nulls import NullMaker
from swsearch.job.options import SearchOptions
from swsearch.job.ranking import TopHits, rank
from swsearch.job.rated import Rater
from swsearch.job.selection import Selection
from swsearch.processors import threads_that_help
from swsearch.recurrence import Recurrence
from swsearch.results import SearchResult
from swsearch.run_info import Asked, Execution, Origin, RunInfo
from swsearch.statistics.choice import why_none
from swsearch.statistics.fitted import Fit, FittedStatistics
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.statistics.lengths import Lengths
from swsearch.statistics.observed import count_scores, distribution_of
from swsearch.statistics.random_sequences import longest_random
from swsearch.version import version

if TYPE_CHECKING:
    from swsearch.db import Database
    from swsearch.job.checkpoint import Checkpoint

GROUP_ROWS = 50_000
"""Query residues that are scored together. Each group reads the database once, which takes less than a hundredth of
the time of scoring this many; larger groups would only keep more hits in memory."""

SCORES_MEMORY = 256 << 20
"""Bytes for the scores of all queries that are scored together with every subject, where all are kept."""

SEEN_MEMORY = 64 << 20
"""Residues of candidates that are kept from when their chunk was at hand; others are read again."""


class SearchJob:
    """Queries, a database and an engine, ready to run.

    Parameters
    ----------
    queries : list of Query
        In the order of the results.
    database : Database
        Open; hits read their subjects from it.
    engine : Engine
        Open.
    options : SearchOptions
        What is asked for.
    progress : callable, optional
        Called with the number of cells just finished.
    threads : int, optional
        Hits that are aligned at a time, where filters take alignments; one for each processor by default.
    origin : Origin, optional
        Where the queries and the command come from, for reports.

    Raises
    ------
    InputError
        If the filters name a subject that the database lacks, or leave no subject, or the database lacks the mask.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        database: Database,
        engine: Engine,
        options: SearchOptions,
        progress: Progress | None = None,
        threads: int | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.queries = [query.masked(options.query_mask) for query in queries]
        self.database, self.engine, self.options = database, engine, options
        self.progress, self._origin = progress, origin or Origin()
        mask = database_mask(database, options.subject_mask)
        self.reader = SubjectReader(database, mask, Recurrence(options.scoring, options.mode))
        self.least = LeastScores(options, database)
        self._threads = threads_that_help(threads)
        self._maker = HitMaker(self.reader, options, self.least, self._threads)
        self._seen: dict[int, ByteArray] = {}
        self._seen_bytes = 0
        self._allowed = allowed_subjects(database, options.filters)
        self.checkpoint: Checkpoint | None = None
        self.restored: Progress | None = None
        """Called, in place of `progress`, with the cells of queries that the checkpoint had."""

    def keep_in(self, folder: Path) -> None:
        """Keep groups that are done in a folder, and take from there what is done; see `Checkpoint`.

        Raises
        ------
        InputError
            If the folder is in use, or of another search; the message names all that differs.
        OutputError
            If it cannot be written.
        """
        from swsearch.job.checkpoint import Checkpoint
        from swsearch.job.manifest import manifest

        asked = manifest(self.queries, self.database, self.reader.mask, self.options)
        self.checkpoint = Checkpoint(folder, asked, self.options.statistics, self.database.n_subjects)

    @cached_property
    def asked(self) -> Asked:
        """What is asked for beyond every search's parameters, by name, as reports show it."""
        options = self.options
        masks = {"query_mask": options.query_mask, "subject_mask": self.reader.mask}
        found: Asked = {name: mask for name, mask in masks.items() if mask != "none"}
        if options.sort != "evalue":
            found["sort"] = options.sort
        if options.max_alignments > 1:
            found["max_alignments"] = options.max_alignments
        return {**found, **options.filters.described()}

    @cached_property
    def plan(self) -> ChunkPlan:
        """How the engine wants the database; what it allocates is allocated now."""
        return plan_for(self.engine, self.queries, self.database, self._most_queries)

    @cached_property
    def method(self) -> KarlinAltschul | Fit | None:
        """What E-values are made with."""
        return self._fit or self.options.statistics

    @cached_property
    def run(self) -> RunInfo:
        """What reports say of the job as a whole."""
        database, options = self.database, self.options
        return RunInfo(
            version(), database.name, database.n_subjects, database.n_residues, options.scoring, options.mode,
            self.method, options.threshold, options.max_hits,
            execution=Execution(self.engine.description, self._origin.command, self._origin.begun), asked=self.asked,
            effective_residues=self.least.effective_residues, database_sources=tuple(database.sources()),
            queries=self._origin.queries,
        )  # fmt: skip

    @cached_property
    def _fit(self) -> Fit | None:
        options, database = self.options, self.database
        if not options.is_fitted:
            return None
        n_subjects = int(np.count_nonzero(database.lengths))
        return Fit(options.mode, options.scoring.gap_extend, n_subjects, database.n_residues)

    @cached_property
    def _nulls(self) -> NullMaker | None:
        if self._fit is None:
            return None
        return NullMaker(self._fit, self.reader.recurrence, self._copies_engine, self._threads)

    @cached_property
    def _copies_engine(self) -> Engine:
        lengths = [len(query.codes) for query in self.queries]
        longest = max(int(self.database.lengths.max(initial=0)), longest_random(self.options.mode, lengths))
        return engine_for_copies(self.engine, self._threads, lengths, longest)

    @cached_property
    def _rater(self) -> Rater | None:
        if self._nulls is None:
            return None
        least = self.least
        return Rater(self.database, self.options, self._nulls, least.effective_residues, least.published)

    @property
    def _needs_all_scores(self) -> bool:
        """Whether every subject's score is kept until a query is done."""
        return self.options.distribution

    @property
    def _most_queries(self) -> int | None:
        """Queries that are scored together at most, where every subject may have to be kept for each."""
        if self._needs_all_scores:
            each = 8  # twice an int32, for a chunk and for all
        elif self.options.filters.needs_alignments:
            each = 16  # score and place
        else:
            return None
        n_subjects: int = self.database.n_subjects
        return max(1, SCORES_MEMORY // (each * max(1, n_subjects)))

    @property
    def cells(self) -> int:
        """Cells of the whole job: query residues times subject residues."""
        return sum(len(query.codes) for query in self.queries) * self.database.n_residues

    def results(self) -> Iterator[SearchResult]:
        """Yield one result per query, in query order; alignments are made when asked for."""
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[SearchResult]]:
        """Yield the results of each group of queries that is scored together."""
        loaded = LoadedDatabase(self.engine, self.database, self.plan, self.reader.mask)
        with closing(loaded), self.checkpoint or nullcontext():
            first = 0
            try:
                for group in _groups(self.queries, self._most_queries):
                    yield self.run_group(group, loaded, first)
                    first += len(group)
            finally:
                self._close_copies()

    def _close_copies(self) -> None:
        """Close what scored copies, if there is such an engine; another is made where batches are asked for again."""
        engine = self.__dict__.pop("_copies_engine", None)
        if engine is not None:
            engine.close()
        for name in ("_nulls", "_rater"):
            self.__dict__.pop(name, None)

    def run_group(self, queries: Sequence[Query], loaded: LoadedDatabase, first: int = 0) -> list[SearchResult]:
        """Return the results of some of the queries, scored together; `plan` made the loaded database.

        The first of them is at place ``first``, counted from 0.
        """
        selections = self.selections(queries, loaded, first)
        found = [self.result(query, selection) for query, selection in zip(queries, selections, strict=True)]
        self._seen.clear()
        self._seen_bytes = 0
        return found

    # selecting

    def selections(self, queries: Sequence[Query], loaded: LoadedDatabase, first: int) -> list[Selection]:
        """Return what is reported for some of the queries: from the checkpoint, or scored, rated and kept there."""
        kept = None if self.checkpoint is None else self.checkpoint.load(first, len(queries))
        if kept is not None:
            if (count := self.restored or self.progress) is not None:
                count(sum(len(query.codes) for query in queries) * self.database.n_residues)
            return kept
        found = self.select(queries, loaded)
        if self._rater is not None:
            rate = self._rater.rated
            found = [rate(query, each, self._read) for query, each in zip(queries, found, strict=True)]
        if self.checkpoint is not None:
            self.checkpoint.save(first, found)
        return found

    def select(self, queries: Sequence[Query], loaded: LoadedDatabase) -> list[Selection]:
        """Score some of the queries together, and return what may be reported for each."""
        nulls = [None] * len(queries) if self._nulls is None else self._nulls.of_queries(queries)
        if not self._needs_all_scores:
            return self._select_above(queries, nulls, loaded)
        rows = self._all_scores(queries, loaded)
        return [self._select_of_all(*each) for each in zip(queries, nulls, rows, strict=True)]

    def _select_above(
        self, queries: Sequence[Query], nulls: Sequence[FittedStatistics | None], loaded: LoadedDatabase
    ) -> list[Selection]:
        """Let the engine look for what reaches the threshold, which rises while the best are found."""
        least, limit = self.least, self.options.max_candidates
        tops = [
            TopHits(least.bound(n, null), limit, self._allowed, least.rating(n, null))
            for n, null in zip((len(query.codes) for query in queries), nulls, strict=True)
        ]
        group = prepare(self.engine, queries, self.reader.recurrence)
        pending: list[tuple[LoadedChunk, Pending]] = []

        def finish() -> None:
            chunk, found = pending.pop(_first_ready([found for _, found in pending]))
            for top, candidates in zip(tops, found.wait(), strict=True):
                top.add(chunk.chunk, candidates)
                self._see(chunk.chunk, candidates)
            loaded.done(chunk)

        for chunk in loaded:
            thresholds = Thresholds([top.by_length for top in tops], [top.least(chunk.chunk) for top in tops])
            pending.append((chunk, self.engine.find(group, chunk, thresholds, self.progress)))
            while len(pending) >= self.plan.in_flight:
                finish()
        while pending:
            finish()
        return [
            Selection(top.ranked, limit, *self._statistics_of(null)) for top, null in zip(tops, nulls, strict=True)
        ]

    def _see(self, chunk: Chunk, candidates: Candidates) -> None:
        """Keep the residues of candidates while they are at hand: their nulls need them soon."""
        if self._nulls is None or not len(chunk.residues):
            return
        for place, subject in zip(
            candidates.places.tolist(), chunk.subjects[candidates.places].tolist(), strict=True
        ):
            if subject not in self._seen and self._seen_bytes < SEEN_MEMORY:
                self._keep(subject, chunk.subject(place))

    def _keep(self, subject: int, codes: ByteArray) -> None:
        if self._seen_bytes < SEEN_MEMORY:
            self._seen[subject] = codes
            self._seen_bytes += len(codes)

    def _read(self, subject: int) -> ByteArray:
        """Return a subject's codes as they were scored."""
        if subject in self._seen:
            return self._seen[subject]
        codes = self.reader.scored(subject)
        self._keep(subject, codes)
        return codes

    def _select_of_all(self, query: Query, null: FittedStatistics | None, row: ScoreArray) -> Selection:
        """Choose from the scores with every subject, in input order, which are counted too."""
        n = len(query.codes)
        among = self._passing(row, np.flatnonzero(row >= self.least.of(n, null)[self.database.lengths]))
        limit, rating = self.options.max_candidates, self.least.rating(n, null)
        evalues = None if rating is None else rating.evalues(row[among], self.database.lengths[among])
        ranked = rank(row[among], among, limit, evalues)
        return Selection(ranked, limit, *self._statistics_of(null), distribution=count_scores(row))

    def _statistics_of(self, null: FittedStatistics | None) -> tuple[KarlinAltschul | FittedStatistics | None, str]:
        """Return the statistics of a query, and why there are none."""
        if self._fit is None:
            return self.options.statistics, self._why_none
        return null, "" if null is not None else why_none("the query has no residues")

    def _all_scores(self, queries: Sequence[Query], loaded: LoadedDatabase) -> ScoreArray:
        """Return the scores of some of the queries with every subject, in input order."""
        group = prepare(self.engine, queries, self.reader.recurrence)
        scores: ScoreArray = np.zeros((len(queries), self.database.n_subjects), dtype=np.int32)
        _score_all(self.engine, group, loaded, scores, self.progress)
        return scores

    def _passing(self, row: ScoreArray, among: IntArray) -> IntArray:
        """Return those of some subjects that the filters by score and identifier let pass."""
        if self.options.filters.min_score is not None:
            among = among[row[among] >= self.options.filters.min_score]
        return among if self._allowed is None else among[self._allowed[among]]

    @cached_property
    def _by_length(self) -> Lengths:
        return Lengths(self.database.lengths)

    @property
    def _why_none(self) -> str:
        """Why no query has E-values, where that is known before the search."""
        return "" if self.method is not None else why_none()

    # making results

    def result(self, query: Query, selection: Selection) -> SearchResult:
        """Make the result of a query."""
        database = self.database
        is_rated = selection.nulls is not None or not isinstance(selection.statistics, FittedStatistics)
        if not is_rated and self._rater is not None:
            selection = self._rater.rated(query, selection, self._read)
        distribution = None
        if selection.distribution is not None:
            distribution = distribution_of(
                selection.distribution, len(query.codes), self._by_length, selection.statistics, database.n_residues
            )
        return SearchResult(
            query_id=query.identifier,
            query_description=query.description,
            query_length=len(query.codes),
            hits=self._maker.hits(query, selection, self._seen),
            scoring=self.options.scoring,
            mode=self.options.mode,
            statistics=selection.statistics,
            database_name=database.name,
            database_subjects=database.n_subjects,
            database_residues=database.n_residues,
            effective_residues=self.least.effective_residues,
            no_statistics=selection.reason,
            doubt=selection.doubt,
            asked=self.asked,
            distribution=distribution,
            run=self.run,
        )


def score_everything(
    queries: Sequence[Query], database: Database, engine: Engine, recurrence: Recurrence, progress: Progress | None
) -> ScoreArray:
    """Score every query with every subject, masked as the database says.

    Returns
    -------
    ndarray, shape (n_queries, n_subjects), int32
        Exact scores in matrix units, queries and subjects in input order.
    """
    scores: ScoreArray = np.zeros((len(queries), database.n_subjects), dtype=np.int32)
    start = 0
    with closing(LoadedDatabase(engine, database, plan_for(engine, queries, database))) as chunks:
        for group in _groups(queries):
            rows = slice(start, start + len(group))
            prepared = prepare(engine, group, recurrence)
            _score_all(engine, prepared, chunks, scores[rows], progress)
            start = rows.stop
    return scores


def _first_ready(pending: Sequence[Pending]) -> int:
    """Wait until one of several is ready; return its place."""
    while True:
        for place, found in enumerate(pending):
            if found.is_ready():
                return place
        time.sleep(0.0002)


def _groups(queries: Sequence[Query], most: int | None = None) -> Iterator[Sequence[Query]]:
    """Cut the queries into runs of about `GROUP_ROWS` residues, and at most so many queries."""
    group: list[Query] = []
    rows = 0
    for query in queries:
        if group and (rows + len(query.codes) > GROUP_ROWS or len(group) == most):
            yield group
            group, rows = [], 0
        group.append(query)
        rows += len(query.codes)
    if group:
        yield group


def plan_for(engine: Engine, queries: Sequence[Query], database: Database, most: int | None = None) -> ChunkPlan:
    """Tell an engine what is coming; ``most`` queries are scored together at most."""
    groups = [[len(query.codes) for query in group] for group in _groups(queries, most)]
    return engine.plan(Workload(database.residue_bytes, database.lengths, groups))


def prepare(engine: Engine, queries: Sequence[Query], recurrence: Recurrence) -> QueryGroup:
    """Make a group of queries ready for an engine."""
    return engine.prepare([recurrence.scoring.profile(query.codes) for query in queries], recurrence)


def _score_all(
    engine: Engine, group: QueryGroup, chunks: LoadedDatabase, scores: ScoreArray, progress: Progress | None
) -> None:
    """Fill in the scores of a group with every subject, in input order."""
    for loaded in chunks:
        scores[:, loaded.chunk.subjects] = engine.score(group, loaded, progress)
        chunks.done(loaded)
