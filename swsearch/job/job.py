"""A search job: every query against every subject, the best hits, their statistics and alignments."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.engines import create_engine
from swsearch.engines.base import (
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
from swsearch.errors import InputError
from swsearch.inputs import Query, Sequences, open_subjects, read_queries
from swsearch.job.filters import HitFilters, allowed_subjects, named_ids
from swsearch.job.hits import HitMaker
from swsearch.job.loaded import LoadedDatabase
from swsearch.job.options import DEFAULT_MAX_HITS, SearchOptions
from swsearch.job.ranking import TopHits, best_by_fit, best_of
from swsearch.masking import Mask, database_mask
from swsearch.recurrence import Recurrence
from swsearch.results import Asked, SearchResult
from swsearch.scoring import Mode, Scoring
from swsearch.statistics.choice import StatisticsMethod, why_none
from swsearch.statistics.fitted import Fit, FitError, FittedStatistics, fit_scores
from swsearch.statistics.karlin_altschul import (
    KarlinAltschul,
    MinimumScores,
    Statistics,
    statistics_for,
)
from swsearch.statistics.observed import distribution_of
from swsearch.statistics.regression import Lengths

if TYPE_CHECKING:
    from swsearch.db import Database

GROUP_ROWS = 50_000
"""Query residues that are scored together. Each group reads the database once, which takes less than a hundredth of
the time that scoring this many takes; more would only keep more hits in memory."""

FIT_MEMORY = 256 << 20
"""Bytes for the scores of all queries that are scored together with every subject, where statistics are fitted."""


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

    Raises
    ------
    InputError
        If the filters name a subject that the database has not, or leave none, or it has not the mask.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        database: Database,
        engine: Engine,
        options: SearchOptions,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> None:
        self.queries = [query.masked(options.query_mask) for query in queries]
        self.database, self.engine, self.options = database, engine, options
        self.subject_mask = database_mask(database, options.subject_mask)
        self.progress, self.threads = progress, threads
        self._allowed = allowed_subjects(database, options.filters)

    @cached_property
    def asked(self) -> Asked:
        """What is asked for beyond every search's parameters, by name, as reports show it."""
        options = self.options
        masks = {"query_mask": options.query_mask, "subject_mask": self.subject_mask}
        found: Asked = {name: mask for name, mask in masks.items() if mask != "none"}
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
    def _fit(self) -> Fit | None:
        options, database = self.options, self.database
        if not options.is_fitted:
            return None
        return Fit(options.mode, options.scoring.gap_extend, database.n_subjects, database.n_residues)

    @property
    def _most_queries(self) -> int | None:
        """Queries that are scored together at most, where every subject may have to be kept for each."""
        if self.options.is_fitted or self.options.distribution:
            each = 8  # twice an int32, for a chunk and for all
        elif self.options.filters.needs_alignments:
            each = 16  # score and place
        else:
            return None
        n_subjects: int = self.database.n_subjects
        return max(1, FIT_MEMORY // (each * max(1, n_subjects)))

    @property
    def cells(self) -> int:
        """Cells of the whole job: query residues times subject residues."""
        return sum(len(query.codes) for query in self.queries) * self.database.n_residues

    @property
    def effective_residues(self) -> int:
        """Database size that E-values refer to."""
        return self.options.dbsize or self.database.n_residues

    def results(self) -> Iterator[SearchResult]:
        """Yield one result a query, in query order; alignments are made when asked for."""
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[SearchResult]]:
        """Yield the results of each group of queries that is scored together."""
        with closing(LoadedDatabase(self.engine, self.database, self.plan, self.subject_mask)) as loaded:
            for group in _groups(self.queries, self._most_queries):
                yield self.run_group(group, loaded)

    def run_group(self, queries: Sequence[Query], loaded: LoadedDatabase) -> list[SearchResult]:
        """Return the results of some of the queries, scored together; `plan` made the loaded database."""
        options = self.options
        if self._fit is not None:
            return self._run_fitted(queries, loaded, self._fit)
        if options.distribution:
            return self._run_counted(queries, loaded)
        tops = [
            TopHits(self.least_scores(len(query.codes)), options.max_candidates, self._allowed) for query in queries
        ]
        group = prepare(self.engine, queries, options.scoring, options.mode)
        pending: list[tuple[LoadedChunk, Pending]] = []

        def finish() -> None:
            chunk, found = pending.pop(_first_ready([found for _, found in pending]))
            for top, candidates in zip(tops, found.wait(), strict=True):
                top.add(chunk.chunk, candidates)
            loaded.done(chunk)

        for chunk in loaded:
            thresholds = Thresholds([top.by_length for top in tops], [top.least for top in tops])
            pending.append((chunk, self.engine.find(group, chunk, thresholds, self.progress)))
            while len(pending) >= self.plan.in_flight:
                finish()
        while pending:
            finish()
        return [
            self._result(query, list(top), options.statistics, self._why_none)
            for query, top in zip(queries, tops, strict=True)
        ]

    def _run_fitted(self, queries: Sequence[Query], loaded: LoadedDatabase, fit: Fit) -> list[SearchResult]:
        """Score everything, fit, then look for hits: the E-value threshold is known only when all is scored."""
        options, lengths = self.options, self._by_length.all
        results = []
        for query, row in zip(queries, self._all_scores(queries, loaded), strict=True):
            statistics: FittedStatistics | None = None
            reason = ""
            try:
                statistics = fit_scores(fit, len(query.codes), self._by_length, row)
            except FitError as error:
                reason = why_none(str(error), self.published is not None)
            if statistics is not None:
                assert options.threshold is not None
                among = best_by_fit(row, lengths, statistics, options.threshold, self.effective_residues)
            else:
                among = np.arange(len(row))
            if options.mode != "global":
                among = among[row[among] > 0]  # an empty alignment, which scores 0, is no hit
            best = best_of(row, self._passing(row, among), options.max_candidates)
            result = self._result(query, best, statistics, reason)
            results.append(self._with_distribution(result, row) if options.distribution else result)
        return results

    def _run_counted(self, queries: Sequence[Query], loaded: LoadedDatabase) -> list[SearchResult]:
        """Score everything and keep how it is distributed; the hits are those that `Engine.find` finds."""
        options, lengths = self.options, self.database.lengths
        results = []
        for query, row in zip(queries, self._all_scores(queries, loaded), strict=True):
            among = np.flatnonzero(row >= self.least_scores(len(query.codes))[lengths])
            best = best_of(row, self._passing(row, among), options.max_candidates)
            result = self._result(query, best, options.statistics, self._why_none)
            results.append(self._with_distribution(result, row))
        return results

    def _all_scores(self, queries: Sequence[Query], loaded: LoadedDatabase) -> ScoreArray:
        """Return the scores of some of the queries with every subject, in input order."""
        group = prepare(self.engine, queries, self.options.scoring, self.options.mode)
        scores: ScoreArray = np.zeros((len(queries), self.database.n_subjects), dtype=np.int32)
        _score_all(self.engine, group, loaded, scores, self.progress)
        return scores

    def _passing(self, row: ScoreArray, among: IntArray) -> IntArray:
        """Return those of some subjects that the filters by score and identifier let pass."""
        if self.options.filters.min_score is not None:
            among = among[row[among] >= self.options.filters.min_score]
        return among if self._allowed is None else among[self._allowed[among]]

    def _with_distribution(self, result: SearchResult, row: ScoreArray) -> SearchResult:
        found = distribution_of(
            row, result.query_length, self._by_length, result.statistics, self.database.n_residues
        )
        return replace(result, distribution=found)

    @cached_property
    def _by_length(self) -> Lengths:
        return Lengths(self.database.lengths)

    @cached_property
    def _lengths(self) -> npt.NDArray[np.int32]:
        """Every subject length that occurs, but 0."""
        # counted, not sorted: np.unique takes 0.3 s at its first call, half a million lengths or not
        counts = np.bincount(self.database.lengths)
        lengths: npt.NDArray[np.int32] = np.flatnonzero(counts[1:]).astype(np.int32) + np.int32(1)
        return lengths

    @property
    def _why_none(self) -> str:
        """Why no query has E-values, where that is known before the search."""
        return "" if self.method is not None else why_none()

    @cached_property
    def published(self) -> KarlinAltschul | None:
        """What is reported beside fitted E-values, where it exists."""
        return statistics_for(self.options.scoring, self.options.mode) if self.options.is_fitted else None

    @cached_property
    def _minimum_scores(self) -> MinimumScores | None:
        statistics = self.options.statistics
        return MinimumScores(statistics, self._lengths, self.effective_residues) if statistics else None

    def least_scores(self, query_length: int) -> npt.NDArray[np.int64]:
        """Tabulate the smallest score of a hit by subject length: the E-value threshold, exactly."""
        lengths, statistics, threshold = self._lengths, self.options.statistics, self.options.threshold
        longest = int(lengths[-1]) if len(lengths) else 0
        least = np.ones(longest + 1, dtype=np.int64)  # an empty alignment, which scores 0, is no hit
        if statistics is not None and threshold is not None and query_length:
            assert self._minimum_scores is not None
            least[lengths] = self._minimum_scores.of(threshold, query_length)
        if self.options.filters.min_score is not None:
            np.maximum(least, self.options.filters.min_score, out=least)
        return least

    def _result(
        self, query: Query, best: list[tuple[int, int]], statistics: Statistics | None, reason: str = ""
    ) -> SearchResult:
        database = self.database
        hits = HitMaker(self, query, statistics).hits(best)
        return SearchResult(
            query_id=query.identifier,
            query_description=query.description,
            query_length=len(query.codes),
            hits=hits,
            scoring=self.options.scoring,
            mode=self.options.mode,
            statistics=statistics,
            database_name=database.name,
            database_subjects=database.n_subjects,
            database_residues=database.n_residues,
            effective_residues=self.effective_residues,
            no_statistics=reason,
            asked=self.asked,
        )


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


def prepare(engine: Engine, queries: Sequence[Query], scoring: Scoring, mode: Mode) -> QueryGroup:
    """Make a group of queries ready for an engine."""
    return engine.prepare([scoring.profile(query.codes) for query in queries], Recurrence(scoring, mode))


def _score_all(
    engine: Engine, group: QueryGroup, chunks: LoadedDatabase, scores: ScoreArray, progress: Progress | None
) -> None:
    """Fill in the scores of a group with every subject, in input order."""
    for loaded in chunks:
        scores[:, loaded.chunk.subjects] = engine.score(group, loaded, progress)
        chunks.done(loaded)


def _make_engine(
    engine: str | Engine, threads: int | None, device: int | None, gpu_memory: int | None
) -> Engine | None:
    """Make the engine that is named; None if it was made already."""
    if isinstance(engine, str):
        return create_engine(engine, threads=threads, device=device, gpu_memory=gpu_memory)
    if device is not None or gpu_memory is not None:
        raise InputError(
            "device and gpu_memory: got an engine that is made already, expected the name of one; give them to "
            "create_engine instead"
        )
    return None


def search(
    queries: Sequences,
    subjects: Any,
    *,
    scoring: Scoring | None = None,
    mode: Mode = "local",
    max_hits: int = DEFAULT_MAX_HITS,
    evalue: float | None = None,
    dbsize: int | None = None,
    statistics: StatisticsMethod = "auto",
    min_score: int | None = None,
    min_identity: float | None = None,
    min_query_coverage: float | None = None,
    min_subject_coverage: float | None = None,
    include_ids: Iterable[str] | str | Path | None = None,
    exclude_ids: Iterable[str] | str | Path | None = None,
    max_alignments: int = 1,
    query_mask: Mask = "none",
    subject_mask: Mask | Literal["database"] = "database",
    distribution: bool = False,
    engine: str | Engine = "auto",
    threads: int | None = None,
    device: int | None = None,
    gpu_memory: int | None = None,
    progress: Progress | None = None,
) -> Iterator[SearchResult]:
    """Search a database with every query, exactly.

    Parameters
    ----------
    queries : path, str, Bio.SeqRecord, (id, sequence) or an iterable of sequences
        A FASTA path (``-`` is stdin) or sequences; see `swsearch.inputs.read_queries`.
    subjects : Database, path, or an iterable of sequences
        A database, its path, the path of a FASTA file, or sequences.
    scoring : Scoring, optional
        Matrix and gap costs; BLOSUM62, 11, 1 by default.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    max_hits : int, optional
        Most hits of a query.
    evalue : float, optional
        Largest E-value of a hit; 10 by default where there are statistics, published or fitted. Hits are ranked by
        score; fitted E-values depend on the subject's length too, so that they need not rise down the list.
    dbsize : int, optional
        Residues that E-values refer to, instead of the database's own.
    statistics : {"auto", "published", "fitted", "none"}
        What E-values come from: BLAST's published constants, or a distribution fitted to each query's scores with the
        whole database. ``auto`` is the former where they exist (local mode, usual matrices and gap costs) and the
        latter elsewhere. With ``fitted``, hits have ``evalue_published`` too where constants exist.
    min_score : int, optional
        Least raw score of a hit. This and the following filters compose with ``max_hits``: the best hits that pass
        are reported.
    min_identity, min_query_coverage, min_subject_coverage : float, optional
        Least percentage of identical columns of a hit's alignment, and of the query or the subject between its first
        and its last aligned residue. Candidates are aligned, the best first, until ``max_hits`` pass; till then each
        subject that reaches the E-value threshold takes 16 bytes.
    include_ids, exclude_ids : iterable of str or path, optional
        Identifiers of the subjects that alone may be hits, and of those that may not; a string is the name of a file
        with an identifier a line. E-values refer to the whole database all the same.
    max_alignments : int, optional
        Most alignments of a hit (its `hsps`), in local mode: each the best that shares no pair of residues with those
        before, and within the E-value threshold by its own score (no sum statistics). Filters apply to each.
    query_mask : {"none", "lower", "tantan"}, optional
        What is scored as X: nothing, lower case, or low complexity, which takes pytantan.
    subject_mask : {"database", "none", "lower", "tantan"}, optional
        The same of subjects; by default what the database was built to mask. E-values take no account of masks.
    distribution : bool, optional
        Whether results keep how the whole database scores, for `SearchResult.plot_scores`.
    engine : {"auto", "gpu", "cpu"} or Engine
        What scores; ``auto`` is the GPU where it can be used, and silently the CPU elsewhere.
    threads : int, optional
        Worker threads; one for each processor by default.
    device : int, optional
        Which GPU, as ``swsearch doctor`` numbers them; by default the one with the most multiprocessors.
    gpu_memory : int, optional
        Bytes of the GPU's memory that may be used; by default nearly all that is free.
    progress : callable, optional
        Called with the number of cells just finished.

    Yields
    ------
    SearchResult
        One a query, in query order. Arguments are checked, and queries read, before this function returns.

    Raises
    ------
    InputError
        If a query or an argument cannot be used.
    DatabaseError
        If the subjects cannot be read.
    EngineError
        If the engine fails.
    GpuUnavailableError
        If ``engine`` is ``gpu`` and the GPU cannot be used.
    MemoryLimitError
        If the job does not fit the memory that the engine may use.
    """
    filters = HitFilters(
        min_score,
        min_identity,
        min_query_coverage,
        min_subject_coverage,
        named_ids(include_ids, "include_ids"),
        named_ids(exclude_ids, "exclude_ids"),
    )
    options = SearchOptions(
        scoring or Scoring(),
        mode,
        max_hits,
        evalue,
        dbsize,
        statistics,
        filters,
        max_alignments,
        query_mask,
        subject_mask,
        distribution,
    )
    read = read_queries(queries, options.scoring.matrix.alphabet)
    made = _make_engine(engine, threads, device, gpu_memory)

    def run() -> Iterator[SearchResult]:
        used = made or engine
        assert isinstance(used, Engine)
        try:
            # not closed here: hits read their subjects from it when their alignments are asked for
            database = open_subjects(subjects, subject_mask)
            yield from SearchJob(read, database, used, options, progress, threads).results()
        finally:
            if made is not None:
                made.close()

    return run()


def score(
    queries: Sequences,
    subjects: Any,
    *,
    scoring: Scoring | None = None,
    mode: Mode = "local",
    engine: str | Engine = "auto",
    threads: int | None = None,
    device: int | None = None,
    gpu_memory: int | None = None,
    progress: Progress | None = None,
) -> ScoreArray:
    """Score every query against every subject, masked as the database says.

    Parameters are those of `search`.

    Returns
    -------
    ndarray, shape (n_queries, n_subjects), int32
        Exact scores in matrix units, queries and subjects in input order.
    """
    options = SearchOptions(scoring or Scoring(), mode)
    read = read_queries(queries, options.scoring.matrix.alphabet)
    made = _make_engine(engine, threads, device, gpu_memory)
    used = made or engine
    assert isinstance(used, Engine)
    database = open_subjects(subjects)
    try:
        scores = np.zeros((len(read), database.n_subjects), dtype=np.int32)
        start = 0
        with closing(LoadedDatabase(used, database, plan_for(used, read, database))) as chunks:
            for group in _groups(read):
                rows = slice(start, start + len(group))
                prepared = prepare(used, group, options.scoring, options.mode)
                _score_all(used, prepared, chunks, scores[rows], progress)
                start = rows.stop
        return scores
    finally:
        if database is not subjects:
            database.close()
        if made is not None:
            made.close()
