"""Selection of hits, and their lists with statistics, headers and alignments."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import FloatArray, IntArray, RunLengths
from swsearch.inputs import Query
from swsearch.lazy import Lazy
from swsearch.pipeline.backend import PairBackend
from swsearch.pipeline.batch import (
    HITS_PER_BATCH,
    Batch,
    QueryState,
    first_iterations,
    search_iteration,
    split_by_size,
)
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.evalues import fit_null_models
from swsearch.pipeline.hit_alignments import HitSource, align_lists, find_hsps
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import (
    HspPath,
    HspRequest,
    LocalPairBackend,
    PairsToAlign,
    align_alone,
    find_further_hsps,
)
from swsearch.pipeline.prefetch import map_in_threads, parallel_for
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects, concatenate
from swsearch.pipeline.search_queries import best_frame_hits, merge_frames
from swsearch.pipeline.subjects import SubjectReader
from swsearch.results import HitList, HitTable, Hsp, SearchResult
from swsearch.results.hit_list import FindHsps
from swsearch.results.table import Headers
from swsearch.run_info import RunInfo
from swsearch.statistics.distributions import Lengths
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.methods import HitStatistics, hit_statistics_arrays
from swsearch.statistics.null_model import FittedStatistics, PairNullModels
from swsearch.statistics.score_distribution import ScoreDistribution, make_distribution

HspsOf = Callable[[Query, Statistics | PairNullModels | None, Sequence[PairAlignment], int], list[Hsp]]
"""Returns alignments of a query with a subject of some length that are within the E-value."""


@dataclass(frozen=True, eq=False)
class FrameHspFinders:
    """Finder of further alignments of the hits of one DNA query.

    Parameters
    ----------
    criteria : Criteria
        Options and thresholds of the search.
    backend : LocalPairBackend
        Aligns, and makes nulls.
    reader : SubjectReader
        Reads the hits' subjects.
    hsps : callable
        Returns alignments with what statistics say of them.
    queries : sequence of Query
        The frames.
    statistics : sequence of Statistics or None
        Of each frame.
    subjects, lengths, frames : ndarray, shape (n,), int64
        Of the hits: places in the input, residues, and which frame each is best in.
    """

    criteria: Criteria
    backend: LocalPairBackend
    reader: SubjectReader
    hsps: HspsOf
    queries: Sequence[Query]
    statistics: Sequence[Statistics | None]
    subjects: IntArray
    lengths: IntArray
    frames: IntArray
    _min_scores: dict[int, IntArray] = field(default_factory=dict)

    def __call__(self, row: int, alignment: Lazy[PairAlignment]) -> Lazy[list[Hsp]]:
        """Return it for the hit of a row, from its best alignment."""
        return Lazy(lambda: self._find(row, alignment.get()))

    def _find(self, row: int, best: PairAlignment) -> list[Hsp]:
        options = self.criteria.options
        filled = [(place, query) for place, query in enumerate(self.queries) if len(query.codes)]
        hsps = [(query, hsp) for place, query in filled for hsp in self._hsps_of_frame(row, place, best)]

        def order(each: tuple[Query, Hsp]) -> tuple[float, int]:
            evalue = each[1].evalue if options.sort == "evalue" else None
            return evalue or 0.0, -each[1].score

        chosen = sorted(hsps, key=order)[: options.max_alignments - 1]  # of equal ones the first frame's
        return [hsp for query, hsp in chosen if options.filters.passes(hsp.pair, query)]

    def _hsps_of_frame(self, row: int, place: int, best: PairAlignment) -> Iterator[Hsp]:
        """Yield the alignments of a frame, but for the hit's own."""
        query, subject = self.queries[place], np.array([self.subjects[row]], dtype=np.int64)
        min_score, is_own = int(self._min_scores_of(place)[self.lengths[row]]), place == int(self.frames[row])
        first = best
        if not is_own:
            first = align_alone(self.criteria.recurrence, query, best.subject, best.subject_letters)
            if first.score < min_score:
                return
        null, nulls = self.statistics[place], None
        if isinstance(null, FittedStatistics):
            some = RankedSubjects(np.array([first.score], dtype=np.int64), subject)
            (nulls,) = fit_null_models(self.criteria, self.backend, self.reader, [(query, null, some)])
        threshold = self.criteria.options.evalue_threshold
        if nulls is not None and threshold is not None:
            min_score = max(min_score, int(nulls.min_scores(threshold, self.criteria.effective_residues)[0]))
        max_hsps = self.criteria.options.max_alignments - 1
        more = [first.with_path(*each) for each in find_further_hsps(first, max_hsps, min_score)]
        for pairs, of_these in (
            ([] if is_own else [first], nulls),
            (more, None if nulls is None else nulls.for_hsps(np.zeros(len(more), dtype=np.int64))),
        ):
            yield from self.hsps(query, null if of_these is None else of_these, pairs, int(self.lengths[row]))

    def _min_scores_of(self, place: int) -> IntArray:
        """Return the least score of an alignment of a frame, by subject length, at least 1."""
        if place not in self._min_scores:
            statistics = self.statistics[place]
            null = statistics if isinstance(statistics, FittedStatistics) else None
            self._min_scores[place] = np.maximum(
                self.criteria.score_thresholds(len(self.queries[place].codes), null), 1
            )
        return self._min_scores[place]


_NONE: IntArray = np.empty(0, dtype=np.int64)

MIN_ALIGNED, MAX_ALIGNED = 64, 4096
"""Candidates that are aligned at a time until enough have passed the filters: some for every thread, few in vain,
and no more than memory holds."""

PARALLEL_QUERIES = 4
"""Queries of each batch whose candidates are aligned side by side, where batches are."""


@dataclass(frozen=True, eq=False)
class _HitColumns:
    """The hits of a query, or of all frames of a DNA query, best first.

    Parameters
    ----------
    ranked : RankedSubjects
        n of them.
    lengths : ndarray, shape (n,), int64
        Residues of their subjects.
    statistics : HitStatistics
        Of their scores.
    alignments : AlignmentTable or None
        Where they are known.
    frames : ndarray, shape (n,), int64
        Which frame each is of.
    """

    ranked: RankedSubjects
    lengths: IntArray
    statistics: HitStatistics
    alignments: AlignmentTable | None
    frames: IntArray


@dataclass(frozen=True, eq=False)
class HitBuilder:
    """Builds lists of chosen hits.

    Parameters
    ----------
    criteria : Criteria
        Options and thresholds of the search.
    backend : PairBackend
        Aligns now.
    local_backend : LocalPairBackend
        Aligns when a hit's alignment is asked for later.
    """

    criteria: Criteria
    backend: PairBackend
    local_backend: LocalPairBackend

    def build(self, batch: Batch, aligned: bool = False) -> list[HitList]:
        """Return the hits of each query, best first; one list for all frames of a DNA query.

        Parameters
        ----------
        aligned : bool, optional
            Whether to find their alignments now, and further ones where hits may have several.
        """
        options, n = self.criteria.options, self.criteria.options.n_frames
        columns = self._columns(batch)
        parts = [slice(first, first + n) for first in range(0, len(columns), n)]
        if options.translation is not None:
            columns = [self._merge_frames(columns[part]) for part in parts]
        headers = batch.subjects.headers(np.concatenate([_NONE, *(each.ranked.subjects for each in columns)]))
        lists: list[HitList] = []
        end = 0
        for part, each in zip(parts, columns, strict=True):
            begin, end = end, end + len(each.ranked)
            lists.append(self._make_list(batch.part(part), each, headers.slice_rows(begin, end)))
        if aligned:
            align_lists(lists, self.backend, batch.subjects)
            self._find_hsps([hits for hits in lists if hits.may_have_more_hsps], batch.subjects)
        return lists

    def _columns(self, batch: Batch) -> list[_HitColumns]:
        """Return the hits of each query, or frame."""
        subjects, criteria = batch.subjects, self.criteria
        places = np.concatenate([_NONE, *(each.candidates.subjects for each in batch.selections)])
        lengths, counted = subjects.lengths_of(places), criteria.lengths_of(subjects, places)
        published = self._published_evalues(batch, subjects.published_lengths_of(places))
        columns: list[_HitColumns] = []
        end = 0
        for state, selection in zip(batch.states, batch.selections, strict=True):
            ranked, n = selection.candidates, len(selection.candidates)
            part = slice(end, end := end + n)
            numbers = self.statistics(state.query, selection, ranked.scores, counted[part], ranked.evalues)
            columns.append(
                _HitColumns(
                    ranked, lengths[part],
                    replace(numbers, evalues_published=published[part]), selection.alignments,
                    np.zeros(n, dtype=np.int64),
                )
            )  # fmt: skip
        return columns

    def _published_evalues(self, batch: Batch, lengths: IntArray) -> FloatArray:
        """Return the published E-values of all hits of a batch at once, NaN where there are none."""
        criteria = self.criteria
        if criteria.published is None or not len(lengths):
            return np.full(len(lengths), np.nan)
        counts = [len(each.candidates) for each in batch.selections]
        scores = np.concatenate([each.candidates.scores for each in batch.selections])
        rows = np.repeat([len(state) for state in batch.states], counts)
        evalues = criteria.published.evalues(scores, rows, lengths, criteria.published_residues)
        evalues[np.repeat([_is_scaled(query) for query in batch.queries], counts)] = np.nan
        return evalues

    def _merge_frames(self, parts: Sequence[_HitColumns]) -> _HitColumns:
        """Return the hits of a DNA query, at most `max_hits`, from the hits of its frames."""
        options, ranked = self.criteria.options, [each.ranked for each in parts]
        frames, rows = best_frame_hits(ranked, options.max_hits, options.sort)
        tables = [each.alignments for each in parts if each.alignments is not None]
        return _HitColumns(
            concatenate(ranked)[rows], np.concatenate([each.lengths for each in parts])[rows],
            HitStatistics.concatenate([each.statistics for each in parts]).take(rows),
            AlignmentTable.concatenate(tables).take(rows) if tables else None, frames,
        )  # fmt: skip

    def _make_list(self, batch: Batch, columns: _HitColumns, headers: Headers) -> HitList:
        """Return the hits of one query, or of the frames of one."""
        options, places, queries = self.criteria.options, columns.ranked.subjects, batch.queries
        records, frames = batch.subjects.records(places)
        table = HitTable(
            records, columns.lengths, columns.ranked.scores, columns.statistics, headers,
            None if options.translation is None else columns.frames, frames,
        )  # fmt: skip
        included = batch.selections[0].included
        source = HitSource(self.local_backend, batch.subjects, queries, columns.frames, places, included)
        hits = HitList(queries[0], options.scoring, table, source, self._hsp_finder(batch, columns), queries=queries)
        if columns.alignments is not None:
            hits.set_alignments(columns.alignments, batch.subjects.read_with_letters(places))
        return hits

    def _hsp_finder(self, batch: Batch, columns: _HitColumns) -> FindHsps | None:
        """Return the finder of further alignments of hits; None for DNA subjects, where they are separate hits."""
        options = self.criteria.options
        if options.max_alignments == 1 or self.criteria.counts.are_windows:
            return None
        if options.translation is None:
            return _HspFinder(self, batch.queries[0], batch.selections[0], columns.lengths)
        return FrameHspFinders(
            self.criteria, self.local_backend, batch.subjects, self.hsps, batch.queries,
            [each.statistics for each in batch.selections], columns.ranked.subjects, columns.lengths, columns.frames,
        )  # fmt: skip

    def _find_hsps(self, lists: Sequence[HitList], subjects: SubjectReader) -> None:
        """Find the further alignments of all hits of some lists, whose best ones are known."""
        some = [(hits, hits.further) for hits in lists if len(hits) and isinstance(hits.further, _HspFinder)]
        sizes = [len(hits) for hits, _ in some]

        def wanted() -> HspRequest:
            pairs = PairsToAlign(
                [hits.query for hits, _ in some], np.repeat(np.arange(len(some)), sizes),
                np.concatenate([hits.table.subjects for hits, _ in some]),
                np.concatenate([hits.table.scores for hits, _ in some]),
            )  # fmt: skip
            best = AlignmentTable.concatenate([hits.alignments for hits, _ in some if hits.alignments is not None])
            min_scores = np.concatenate([further.min_scores for _, further in some])
            return HspRequest(pairs, best, min_scores, self.criteria.options.max_alignments - 1)

        paths = self.backend.find_hsps(wanted, subjects) if some else None
        if paths is not None:
            for (_, further), (begin, end) in zip(some, pairwise(np.cumsum([0, *sizes]).tolist()), strict=True):
                further.known_hsps = paths[begin:end]
        find_hsps([hit for hits in lists for hit in hits], self.local_backend.threads)

    def hsps(
        self,
        query: Query,
        statistics: Statistics | PairNullModels | None,
        pairs: Sequence[PairAlignment],
        length: int,
    ) -> list[Hsp]:
        """Return alignments of a query with a subject of some length that are within the E-value."""
        criteria, threshold = self.criteria, self.criteria.options.evalue_threshold
        published, lengths = None if _is_scaled(query) else criteria.published, np.full(len(pairs), length)
        scores = np.array([pair.score for pair in pairs], dtype=np.int64)
        residues = criteria.effective_residues
        numbers = hit_statistics_arrays(statistics, published, scores, len(query.codes), lengths, residues)
        return [
            Hsp(pair, pair.score, bits, evalue, z_score, beside, query.frame)
            for pair, bits, evalue, z_score, beside in zip(pairs, *numbers.optional, strict=True)
            if threshold is None or evalue is None or evalue <= threshold
        ]

    def statistics(
        self,
        query: Query,
        selection: QueryCandidates,
        scores: IntArray,
        lengths: IntArray,
        evalues: FloatArray | None,
    ) -> HitStatistics:
        """Return bit scores, E-values and z-scores of a query's hits, all of shape (n,)."""
        statistics = selection.statistics if selection.null_models is None else selection.null_models
        residues = self.criteria.effective_residues
        return hit_statistics_arrays(statistics, None, scores, len(query.codes), lengths, residues, evalues)


def _is_scaled(query: Query) -> bool:
    """Return whether a query's scores are scaled, so that published constants do not hold."""
    return query.profile is not None and query.profile.scale != 1


class _HspFinder:
    """Finder of further alignments of the hits of one query.

    Parameters
    ----------
    builder : HitBuilder
        Whose hits they are.
    query : Query
        The query.
    selection : QueryCandidates
        The hits.
    lengths : ndarray, shape (n,), int64
        Residues of the hits' subjects.
    """

    def __init__(self, builder: HitBuilder, query: Query, selection: QueryCandidates, lengths: IntArray) -> None:
        self._builder, self._query, self._lengths = builder, query, lengths
        self._statistics, self._nulls = selection.statistics, selection.null_models
        self.min_scores = min_hsp_scores(builder.criteria, query, selection, lengths)
        self.known_hsps: Sequence[list[HspPath]] | None = None
        """By row, where they were found elsewhere."""

    def __call__(self, row: int, alignment: Lazy[PairAlignment]) -> Lazy[list[Hsp]]:
        """Return it for the hit of a row, from its best alignment."""
        return Lazy(lambda: self._find(row, alignment.get()))

    def _find(self, row: int, first: PairAlignment) -> list[Hsp]:
        options, query = self._builder.criteria.options, self._query
        max_hsps, min_score = options.max_alignments - 1, int(self.min_scores[row])
        traced = find_further_hsps(first, max_hsps, min_score) if self.known_hsps is None else self.known_hsps[row]
        pairs = [first.with_path(*each) for each in traced]
        statistics = self._statistics if self._nulls is None else self._nulls.for_hsps(np.full(len(pairs), row))
        hsps = self._builder.hsps(query, statistics, pairs, int(self._lengths[row]))
        return [hsp for hsp in hsps if options.filters.passes(hsp.pair, query)]


def min_hsp_scores(criteria: Criteria, query: Query, selection: QueryCandidates, lengths: IntArray) -> IntArray:
    """Return the least score of a further alignment with each subject of some lengths, both of shape (n,)."""
    threshold = criteria.options.evalue_threshold
    min_scores = np.maximum(criteria.score_thresholds(len(query.codes))[lengths], 1)
    if selection.null_models is not None and threshold is not None:
        min_scores = np.maximum(min_scores, selection.null_models.min_scores(threshold, criteria.effective_residues))
    return min_scores


def choose_hits(batches: Iterable[Batch], criteria: Criteria, pairs: PairBackend) -> Iterator[Batch]:
    """Choose the hits of batches among candidates, with their alignments where these were needed or are known."""
    options = criteria.options
    n = PARALLEL_QUERIES * pairs.parallel if pairs.parallel > 1 else 1

    def choose(batch: Batch) -> Batch:
        is_aligned = criteria.counts.are_windows or options.filters.needs_alignments
        if not is_aligned or all(each.alignments is not None for each in batch.selections):
            return batch
        chosen = map_in_threads(partial(_choose_aligned, options, pairs, batch.subjects), batch.states, n)
        return batch.with_selections(list(chosen))

    yield from map_in_threads(choose, batches, pairs.parallel)


def _choose_aligned(
    options: SearchOptions, pairs: PairBackend, subjects: SubjectReader, state: QueryState
) -> QueryCandidates:
    """Align the candidates of a query, the best first, until enough have passed the filters."""
    selection, max_hits = state.candidates, options.max_hits
    if selection.alignments is not None:
        return selection
    best = selection.candidates
    if (located := subjects.alignments_of(best.subjects[:max_hits])) is not None:
        return selection.take(np.arange(len(best[:max_hits])), located)
    chosen, tables, first = _NONE, [AlignmentTable.concatenate([])], 0
    while first < len(best) and len(chosen) < max_hits:
        some = best[first : first + min(max(MIN_ALIGNED, max_hits - len(chosen)), MAX_ALIGNED)]
        pairs_to_align = PairsToAlign([state.query], np.zeros(len(some), dtype=np.int64), some.subjects, some.scores)
        table, aligned = pairs.align(pairs_to_align, subjects)
        good = options.filters.select(table, state.query, np.diff(aligned.offsets))
        rows = np.flatnonzero(good)[: max_hits - len(chosen)]
        tables.append(table.take(rows))
        chosen, first = np.append(chosen, rows + first), first + len(some)
    return selection.take(chosen, AlignmentTable.concatenate(tables))


@dataclass(frozen=True, eq=False)
class ResultBuilder:
    """Builds the results of hits.

    Parameters
    ----------
    queries : sequence of Query
        All that were searched, as they were given.
    criteria : Criteria
        Options and thresholds of the search.
    run : RunInfo
        Facts of the search for reports.
    length_runs : RunLengths
        How many subjects have each length.
    local_backend : LocalPairBackend
        Aligns when a hit's alignment is asked for later.
    """

    queries: Sequence[Query]
    criteria: Criteria
    run: RunInfo
    length_runs: RunLengths
    local_backend: LocalPairBackend

    @property
    def options(self) -> SearchOptions:
        """Options of the search."""
        return self.criteria.options

    def results(
        self, batches: Iterable[Batch], pairs: PairBackend, aligned: bool = False
    ) -> Generator[list[SearchResult]]:
        """Yield the results of chosen hits, some at a time.

        Parameters
        ----------
        aligned : bool, optional
            Whether hits come with their alignments, and further ones where they may have several.
        """
        builder = HitBuilder(self.criteria, pairs, self.local_backend)

        def parts() -> Generator[Batch]:
            for batch in batches:
                sizes = [len(each.candidates) for each in batch.selections]
                for part in split_by_size(sizes, HITS_PER_BATCH, self.options.n_frames):
                    yield batch.part(part)

        yield from map_in_threads(
            lambda part: self._results(part, builder.build(part, aligned)), parts(), pairs.parallel
        )

    def _results(self, batch: Batch, lists: Sequence[HitList]) -> list[SearchResult]:
        n = self.options.n_frames
        firsts, selections = batch.states[::n], batch.selections
        merged = [merge_frames(selections[place : place + n]) for place in range(0, len(selections), n)]

        def compare(place: int) -> ScoreDistribution | None:
            counts, statistics = merged[place].distribution, merged[place].statistics
            if counts is None:
                return None
            return make_distribution(
                counts, len(firsts[place]), self._lengths, statistics, self.length_runs.n_residues
            )

        distributions = parallel_for(
            compare, range(len(lists)), self.local_backend.threads if self.options.distribution else 1
        )
        return [self._result(*each) for each in zip(firsts, merged, lists, distributions, strict=True)]

    @cached_property
    def _lengths(self) -> Lengths:
        return Lengths.from_runs(self.length_runs)

    def _result(
        self, state: QueryState, selection: QueryCandidates, hits: HitList, distribution: ScoreDistribution | None
    ) -> SearchResult:
        query, history, run = state.query, state.history, self.run
        reported = query if history is not None else self.queries[state.index]
        return SearchResult(
            query_id=query.identifier, query_description=query.description, query_length=query.length, hits=hits,
            scoring=self.options.scoring, mode=self.options.mode, statistics=selection.statistics,
            database_name=run.database_name, database_subjects=run.database_subjects,
            database_residues=run.database_residues,
            effective_residues=self.criteria.effective_residues, no_evalue_reason=selection.no_evalue_reason,
            warning="; ".join(filter(None, (selection.warning, self._warning(state)))), options=run.options,
            distribution=distribution, run=run, profile=reported.profile, iteration=search_iteration(query.profile),
            converged=history is not None and history.converged, first_iterations=self._first_iterations(state, hits),
            steps=() if history is None else history.steps,
            next_profile=None if history is None else history.next_profile,
            program=run.program, genetic_code=run.genetic_code, database_genetic_code=run.database_genetic_code,
        )  # fmt: skip

    def _warning(self, state: QueryState) -> str:
        if state.history is None or not state.history.is_truncated:
            return ""
        return (
            f"query {state.query.identifier!r}: more than {self.options.inclusion.most:,} subjects are within the "
            "inclusion E-value; only the best enter its profile; raise the limit with --max-included"
        )

    def _first_iterations(self, state: QueryState, hits: HitList) -> IntArray | None:
        """Return the iteration that first found each hit, of a profile that comes from iterations."""
        profile = state.query.profile
        is_iterated = self.options.iterations > 1 or search_iteration(profile) > 1
        return first_iterations(hits.table.subjects, profile) if is_iterated else None
