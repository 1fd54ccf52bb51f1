"""The last stage of a search: results of chosen hits, wherever these were found."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from swsearch.blocks import IntArray, RunLengths
from swsearch.inputs import Query
from swsearch.pipeline.backend import PairWork
from swsearch.pipeline.batch import Batch, QueryState
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.groups import HITS_PER_PART, split_by_size
from swsearch.pipeline.hits import HitBuilder
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import LocalPairWork
from swsearch.pipeline.prefetch import for_each, side_by_side
from swsearch.pipeline.profile_members import first_found, next_iteration
from swsearch.pipeline.query_frames import told_of_frames
from swsearch.pipeline.selection import Selection
from swsearch.results import HitList, SearchResult
from swsearch.run_info import RunInfo
from swsearch.statistics.lengths import Lengths
from swsearch.statistics.observed import ScoreDistribution, distribution_of


@dataclass(frozen=True, eq=False)
class ResultBuilder:
    """Builds the results of hits.

    Parameters
    ----------
    queries : sequence of Query
        All that were searched, as they were given.
    criteria : Criteria
        What was looked for.
    run : RunInfo
        What reports say of the search as a whole.
    length_runs : RunLengths
        How many subjects have each length.
    local : LocalPairWork
        Aligns when a hit's alignment is asked for later.
    """

    queries: Sequence[Query]
    criteria: Criteria
    run: RunInfo
    length_runs: RunLengths
    local: LocalPairWork

    @property
    def options(self) -> SearchOptions:
        """What is asked for."""
        return self.criteria.options

    def results(
        self, batches: Iterable[Batch], pairs: PairWork, aligned: bool = False
    ) -> Generator[list[SearchResult]]:
        """Yield the results of chosen hits, some at a time.

        Parameters
        ----------
        batches : iterable of Batch
            The hits, in query order.
        pairs : PairWork
            Aligns now.
        aligned : bool, optional
            Whether hits come with their alignments, and further ones where they may have several.
        """
        builder = HitBuilder(self.criteria, pairs, self.local)

        def parts() -> Generator[Batch]:
            for batch in batches:
                sizes = [len(each.candidates) for each in batch.selections]
                for part in split_by_size(sizes, HITS_PER_PART, self.options.n_frames):
                    yield batch.part(part)

        yield from side_by_side(
            lambda part: self._results(part, builder.build(part, aligned)), parts(), pairs.parallel
        )

    def _results(self, batch: Batch, lists: Sequence[HitList]) -> list[SearchResult]:
        n = self.options.n_frames
        firsts, selections = batch.states[::n], batch.selections
        told = [told_of_frames(selections[place : place + n]) for place in range(0, len(selections), n)]
        shown: list[ScoreDistribution | None] = [None] * len(lists)

        def compare(place: int) -> None:
            counts = told[place].distribution
            if counts is not None:
                statistics, residues = told[place].statistics, self.length_runs.n_residues
                shown[place] = distribution_of(counts, len(firsts[place]), self._lengths, statistics, residues)

        for_each(compare, range(len(lists)) if self.options.distribution else (), self.local.threads)
        return [self._result(*each) for each in zip(firsts, told, lists, shown, strict=True)]

    @cached_property
    def _lengths(self) -> Lengths:
        return Lengths.of_runs(self.length_runs)

    def _result(
        self, state: QueryState, told: Selection, hits: HitList, distribution: ScoreDistribution | None
    ) -> SearchResult:
        query, history, run = state.query, state.history, self.run
        asked = query if history is not None else self.queries[state.place]
        return SearchResult(
            query_id=query.identifier, query_description=query.description, query_length=query.length, hits=hits,
            scoring=self.options.scoring, mode=self.options.mode, statistics=told.statistics,
            database_name=run.database_name, database_subjects=run.database_subjects,
            database_residues=run.database_residues,
            effective_residues=self.criteria.thresholds.effective_residues, no_statistics=told.reason,
            doubt="; ".join(filter(None, (told.doubt, self._doubt(state)))), asked=run.asked,
            distribution=distribution, run=run, profile=asked.profile, iteration=next_iteration(query.profile),
            converged=history is not None and history.converged, first_found=self._first_found(state, hits),
            steps=() if history is None else history.steps,
            next_profile=None if history is None else history.next_profile,
            program=run.program, genetic_code=run.genetic_code, database_code=run.database_code,
        )  # fmt: skip

    def _doubt(self, state: QueryState) -> str:
        if state.history is None or not state.history.is_cut:
            return ""
        return (
            f"query {state.query.identifier!r}: more than {self.options.inclusion.most:,} subjects are within the "
            "inclusion E-value; only the best enter its profile; raise the limit with --max-included"
        )

    def _first_found(self, state: QueryState, hits: HitList) -> IntArray | None:
        """Return the iteration that first found each hit, of a profile that comes from iterations."""
        profile = state.query.profile
        is_iterated = self.options.iterations > 1 or next_iteration(profile) > 1
        return first_found(hits.table.subjects, profile) if is_iterated else None
