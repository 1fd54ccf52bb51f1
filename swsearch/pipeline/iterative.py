"""A search in iterations: what a query finds makes the profile that searches next, until nothing new comes.

The stages are those of `swsearch.pipeline.search_job`, with one more, which makes the profiles. What it makes goes
back to where queries come from, so that queries of all iterations are scored together, and those of the next ones
meanwhile. The database stays where it is. No more queries are under way than `GROUPS_AT_ONCE` groups have; results
that are ready before those of earlier queries wait.

A query's results follow from the query alone, whatever it is scored with and when.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from swsearch.engines.base import ChunkPlan, Workload
from swsearch.engines.pair_base import PairAligner
from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.pipeline.database_loading import LoadedDatabase
from swsearch.pipeline.evalues import Rater
from swsearch.pipeline.hits import HitMaker
from swsearch.pipeline.iteration_queue import Rounds
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import Ahead, check_wanted, for_each
from swsearch.pipeline.profile_members import first_found, localized, next_iteration, subjects_of
from swsearch.pipeline.profile_update import Growth, Includer, stored_codes
from swsearch.pipeline.scorer import Prepared, Scorer
from swsearch.pipeline.search_job import HITS_TOGETHER, SearchJob, parts_of
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.thresholds import LeastScores
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.construction import UNSCALED, USUAL, build_profile
from swsearch.profiles.profile import PROFILE_LETTERS, Profile
from swsearch.profiles.units import lambda_of
from swsearch.results import IterationStep, SearchResult


@dataclass(frozen=True, eq=False)
class QueryTurn:
    """A query in one of its iterations.

    Parameters
    ----------
    place : int
        Of the query among all.
    query : Query
        With the profile that this iteration searches with, if there is one.
    base : QueryAlignment
        The query alone, or with what stays of a profile that was given, whatever this database adds.
    last : int
        Number of its last iteration.
    steps : tuple of IterationStep
        What the iterations before this one found.
    """

    place: int
    query: Query
    base: QueryAlignment
    last: int
    steps: tuple[IterationStep, ...] = ()

    def __len__(self) -> int:
        return len(self.query.codes)

    @property
    def iteration(self) -> int:
        """The number of this one, counted from 1; a profile that was given goes on with its own."""
        return next_iteration(self.query.profile)


@dataclass(frozen=True, eq=False)
class Ended:
    """A query after its last iteration.

    Parameters
    ----------
    turn : QueryTurn
        The last.
    selection : Selection
        What may be reported, not yet rated.
    growth : Growth
        What this iteration would give the next profile.
    converged : bool
        Whether the next iteration would search with the same subjects.
    next_profile : Profile or None
        What the next iteration would search with, where that was asked for.
    """

    turn: QueryTurn
    selection: Selection
    growth: Growth
    converged: bool
    next_profile: Profile | None


class IteratedJob(SearchJob):
    """Queries, a database and an engine, ready to search in iterations; parameters are those of `SearchJob`."""

    one_by_one = True
    _rounds: Rounds[QueryTurn] | None = None

    def keep_in(self, folder: Path, is_read: bool = False) -> None:
        """Refuse to keep what is done: profiles of iterations are not kept."""
        raise InputError(
            f"checkpoint: {folder} cannot be combined with iterations; leave one of them out, or split the queries "
            "into several searches"
        )

    @property
    def cells(self) -> int:
        """Cells of the whole job, if no query converges before its last iteration."""
        return self.options.iterations * super().cells

    @cached_property
    def plan(self) -> ChunkPlan:
        """How the engine wants the database, which it reads in every iteration."""
        groups = [[len(query.codes) for query in group] for group in self.groups()]
        workload = Workload(
            self.database.residue_bytes, self.database.length_runs, groups * min(self.options.iterations, 2)
        )
        plan = self.engine.plan(workload)
        return replace(plan, keep=True) if self._is_one_by_one else plan

    @cached_property
    def _inclusion(self) -> LeastScores:
        return LeastScores(self.options.of_inclusion(), self.database)

    @cached_property
    def scorer(self) -> Scorer:
        """What scores queries, and keeps the candidates of profiles too."""
        return replace(super().scorer, included=self._inclusion)

    @cached_property
    def includer(self) -> Includer:
        """What chooses the hits that make profiles."""
        least, options = self._inclusion, self._inclusion.options
        rater = None
        if self._nulls is not None:
            rater = Rater(self.database, options, self.work, least.effective_residues, None)
        return Includer(HitMaker(self.work, options, least), rater, self.options, self._threads)

    def make_tables(self) -> None:
        """Make what follows from the options alone now; see `SearchJob.make_tables`."""
        super().make_tables()
        self._inclusion, self.includer  # noqa: B018

    def batches(self, aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield results, some at a time, in query order; see `SearchJob.batches`."""
        self._check_wanted()
        rounds: Rounds[QueryTurn] = Rounds(self._begun(), self.most_queries)
        self._rounds, stages = rounds, self._stages
        with self._loaded() as loaded:
            try:
                stages.append(Ahead(self._readied(rounds), "prepare"))
                stages.append(Ahead(self._found(stages[-1], loaded), "score"))
                stages.append(Ahead(self._included(stages[-1]), "rate"))
                stages.append(Ahead(self._grown(stages[-1], rounds), "build"))
                stages.append(Ahead(self._reported(stages[-1], rounds, aligned), "align"))
                yield from self._taken()
            finally:
                self._close_stages()

    def _close_stages(self) -> None:
        if self._rounds is not None:
            self._rounds.close()
        super()._close_stages()

    def _begun(self) -> Iterator[list[QueryTurn]]:
        """Yield groups of queries before their first iterations."""
        place = 0
        for group in self.groups():
            yield [self.first_turn(place + k, query) for k, query in enumerate(group)]
            place += len(group)

    def first_turn(self, place: int, query: Query) -> QueryTurn:
        """Return a query before its first iteration here."""
        profile = query.profile
        codes = stored_codes(query.codes, query.letters)
        base = QueryAlignment.of_query(query.identifier, query.description, codes)
        if profile is not None and profile.alignment is not None:
            profile = localized(profile, self.database)
            assert profile.alignment is not None
            stays = profile.alignment.subjects < 0
            stays[0] = True
            base = profile.alignment.take(np.flatnonzero(stays))
        last = next_iteration(profile) + self.options.iterations - 1
        return QueryTurn(place, replace(query, profile=profile), base, last)

    # stages

    def _readied(self, rounds: Rounds[QueryTurn]) -> Generator[tuple[list[QueryTurn], Prepared]]:
        """Make queries ready to be scored, of whatever iteration."""
        while turns := rounds.take():
            yield turns, self.scorer.prepare([turn.query for turn in turns])

    def _found(
        self, readied: Iterable[tuple[list[QueryTurn], Prepared]], loaded: LoadedDatabase
    ) -> Generator[tuple[list[QueryTurn], Callable[[], list[Selection]]]]:
        """Score queries; what the last chunk holds is looked at while the next ones are scored."""
        for turns, prepared in readied:
            found = self.scorer.found(prepared, loaded, self.plan.in_flight, self.progress)
            yield turns, partial(self.scorer.collected, prepared, found)

    def _included(
        self, scored: Iterable[tuple[list[QueryTurn], Callable[[], list[Selection]]]]
    ) -> Generator[tuple[list[QueryTurn], list[Selection], list[Selection]]]:
        """Choose what makes profiles among candidates."""
        for turns, collect in scored:
            selections = collect()
            yield turns, selections, self.includer.rated([turn.query for turn in turns], selections)

    def _grown(
        self, included: Iterable[tuple[list[QueryTurn], list[Selection], list[Selection]]], rounds: Rounds[QueryTurn]
    ) -> Generator[list[Ended]]:
        """Make profiles, which search next, and pass on queries that were searched with for the last time."""
        with ExitStack() as stack:
            aligner: PairAligner | None = None
            for turns, selections, chosen in included:
                ended: list[Ended] = []
                for part in parts_of([len(each.candidates) for each in chosen], HITS_TOGETHER):
                    if aligner is None:
                        aligner = self._pair_aligner(sum(len(each.candidates) for each in chosen[part]))
                        stack.enter_context(aligner or nullcontext())
                    going, done = self.grow(turns[part], selections[part], chosen[part], aligner)
                    ended += done
                    rounds.give_back(going, len(done))
                if ended:
                    yield ended

    def grow(
        self,
        turns: Sequence[QueryTurn],
        selections: Sequence[Selection],
        chosen: Sequence[Selection],
        aligner: PairAligner | None = None,
    ) -> tuple[list[QueryTurn], list[Ended]]:
        """Return queries with their next profiles, and those that have ended.

        Parameters
        ----------
        turns : sequence of QueryTurn
            Queries that were scored.
        selections, chosen : sequence of Selection
            What may be reported of each, not rated, and what makes its next profile.
        aligner : PairAligner, optional
            What aligns instead of the CPU.
        """
        queries, bases = [turn.query for turn in turns], [turn.base for turn in turns]
        grown = self.includer.grown(queries, bases, chosen, aligner)
        made: list[QueryTurn | Ended | None] = [None] * len(turns)

        def make(place: int) -> None:
            check_wanted()
            made[place] = self._next(turns[place], selections[place], grown[place])

        for_each(make, range(len(turns)), self._threads)
        ended = [each for each in made if isinstance(each, Ended)]
        for each in ended:
            self._forgo(each.turn)
        return [each for each in made if isinstance(each, QueryTurn)], ended

    def _next(self, turn: QueryTurn, selection: Selection, growth: Growth) -> QueryTurn | Ended:
        """Return a query's next turn, or that it has none."""
        profile = turn.query.profile
        before = turn.base if profile is None or profile.alignment is None else profile.alignment
        subjects, known = subjects_of(growth.alignment), subjects_of(before)
        step = IterationStep(turn.iteration, len(subjects), int(np.isin(subjects, known, invert=True).sum()))
        turn = replace(turn, steps=(*turn.steps, step))
        converged = np.array_equal(subjects, known)
        if not converged and turn.iteration < turn.last:
            return replace(turn, query=replace(turn.query, profile=self._built(turn, growth)))
        following = None
        if self.options.keep_next and len(turn):
            following = (profile or self._of_sequence(turn)) if converged else self._built(turn, growth)
        return Ended(turn, selection, growth, converged, following)

    def _built(self, turn: QueryTurn, growth: Growth) -> Profile:
        """Make the profile that a query searches with next."""
        made = build_profile(growth.alignment, self.options.scoring, UNSCALED if self.options.published else USUAL)
        query = turn.query
        return replace(
            made,
            identifier=query.identifier,
            description=query.description,
            alignment=growth.alignment,
            iteration=turn.iteration,
        )

    def _of_sequence(self, turn: QueryTurn) -> Profile:
        """Return a sequence that found nothing as a profile, which finds the same."""
        query, scoring = turn.query, self.options.scoring
        scores = scoring.matrix.scores[turn.base.query][:, :PROFILE_LETTERS].astype(np.int8)
        return Profile(
            query.identifier,
            query.description,
            turn.base.query,
            scores,
            gap_open=scoring.gap_open,
            gap_extend=scoring.gap_extend,
            alignment=turn.base,
            lambda_=lambda_of(scoring.matrix),
        )

    def _forgo(self, turn: QueryTurn) -> None:
        """Tell of the cells that a query's other iterations would have had."""
        if self.forgone is not None:
            self.forgone((turn.last - turn.iteration) * len(turn) * self.database.n_residues)

    def _reported(
        self, grown: Iterable[list[Ended]], rounds: Rounds[QueryTurn], aligned: bool
    ) -> Generator[list[SearchResult]]:
        """Make results of queries that have ended, and hold them back until those before them are there."""
        held: dict[int, SearchResult] = {}
        place = 0
        with ExitStack() as stack:
            aligner: PairAligner | None = None
            for ended in grown:
                rated = self.rated([each.turn.query for each in ended], [each.selection for each in ended])
                for part in parts_of([len(each.candidates) for each in rated], HITS_TOGETHER):
                    if aligned and aligner is None:
                        aligner = self._pair_aligner(sum(len(each.candidates) for each in rated[part]))
                        stack.enter_context(aligner or nullcontext())
                    made = self.told(ended[part], rated[part], aligned, aligner)
                    held.update(zip([each.turn.place for each in ended[part]], made, strict=True))
                ready: list[SearchResult] = []
                while place in held:
                    ready.append(held.pop(place))
                    place += 1
                rounds.passed_on(place)
                if ready:
                    yield ready

    def told(
        self,
        ended: Sequence[Ended],
        rated: Sequence[Selection],
        aligned: bool = False,
        aligner: PairAligner | None = None,
    ) -> list[SearchResult]:
        """Make the results of queries that have ended, from what was selected and rated."""
        made = self.made([each.turn.query for each in ended], rated, aligned, aligner)
        return [_with_iterations(result, each, self.options) for result, each in zip(made, ended, strict=True)]


def _with_iterations(result: SearchResult, ended: Ended, options: SearchOptions) -> SearchResult:
    """Add to a result what its iterations were."""
    turn, profile, most = ended.turn, ended.turn.query.profile, options.inclusion.most
    is_iterated = options.iterations > 1 or turn.iteration > 1
    doubt = result.doubt
    if ended.growth.is_cut:
        told = (
            f"query {result.query_id!r}: more than {most:,} subjects are within the inclusion E-value; only the best "
            "enter its profile; raise the limit with --max-included"
        )
        doubt = f"{doubt}; {told}" if doubt else told
    return replace(
        result,
        doubt=doubt,
        profile=profile,
        iteration=turn.iteration,
        converged=ended.converged,
        first_found=first_found(result.table.subjects, profile) if is_iterated else None,
        steps=turn.steps,
        next_profile=ended.next_profile,
    )
