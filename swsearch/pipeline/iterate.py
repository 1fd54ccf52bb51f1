"""A search in iterations: one more stage, which makes profiles, and a source that takes queries back.

Queries of all iterations are scored together, and those of the next ones meanwhile. A query's results follow from the
query alone, whatever it is scored with and when.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsearch.inputs import Query
from swsearch.pipeline.backend import PairWork
from swsearch.pipeline.batch import Batch, History, QueryState
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.groups import HITS_PER_PART, split_by_size
from swsearch.pipeline.iteration_queue import Rounds
from swsearch.pipeline.pairs import LocalPairWork
from swsearch.pipeline.prefetch import check_wanted, for_each
from swsearch.pipeline.profile_members import next_iteration, subjects_of
from swsearch.pipeline.profile_update import Growth, ProfileHitSelector, stored_codes
from swsearch.pipeline.subjects import SubjectReader
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.construction import UNSCALED, USUAL, build_profile
from swsearch.profiles.profile import PROFILE_LETTERS, Profile
from swsearch.profiles.units import lambda_of
from swsearch.results import IterationStep

Keep = Callable[[Sequence[QueryState], SubjectReader], None]
"""Stores states, and the subjects that their places are of."""


@dataclass(frozen=True, eq=False)
class ProfileGrower:
    """Makes the next states of queries.

    Parameters
    ----------
    criteria : Criteria
        What is looked for, with what profiles are made of.
    """

    criteria: Criteria

    def first_state(self, place: int, query: Query) -> QueryState:
        """Return a query before its first iteration here; a profile of it names what is in the database."""
        profile = query.profile
        base = QueryAlignment.of_query(query.identifier, query.description, stored_codes(query.codes, query.letters))
        if profile is not None and profile.alignment is not None:
            stays = profile.alignment.subjects < 0
            stays[0] = True
            base = profile.alignment.take(np.flatnonzero(stays))
        last = next_iteration(profile) + self.criteria.options.iterations - 1
        return QueryState(place, query, None, History(base, last))

    def include_hits(
        self, batches: Iterable[Batch], pairs: PairWork, local: LocalPairWork
    ) -> Generator[tuple[Batch, Batch | None]]:
        """Choose what makes profiles among candidates; queries that have ended pass, with None."""
        selector = ProfileHitSelector(self.criteria, pairs, local)
        for batch in batches:
            yield batch, None if batch.is_ended else selector.select(batch)

    def grow_profiles(
        self,
        batches: Iterable[tuple[Batch, Batch | None]],
        selector: ProfileHitSelector,
        rounds: Rounds,
        keep: Keep,
        forgone: Callable[[int], None],
    ) -> Generator[Batch]:
        """Make profiles, with which queries go back to the rounds, and pass on queries that have ended.

        Parameters
        ----------
        batches : iterable of (Batch, Batch or None)
            What `include_hits` yields.
        selector : ProfileHitSelector
            Aligns hits.
        rounds : Rounds
            Takes queries back.
        keep : callable
            Stores queries before they go back.
        forgone : callable
            Called with the query residues of iterations that a query did not need.
        """
        for batch, chosen in batches:
            if chosen is None:
                rounds.give_back([], len(batch.states))
                yield batch
                continue
            ended: list[QueryState] = []
            for part in split_by_size([len(each.candidates) for each in chosen.selections], HITS_PER_PART):
                states = self._grown(batch.part(part), chosen.part(part), selector)
                going = [state for state in states if not state.is_ended]
                done = [state for state in states if state.is_ended]
                for state in done:
                    assert state.history is not None
                    forgone((state.history.last - next_iteration(state.query.profile)) * len(state))
                keep(going, batch.subjects)
                rounds.give_back(going, len(done))
                ended += done
            if ended:
                yield Batch(ended, batch.subjects)

    def _grown(self, batch: Batch, chosen: Batch, selector: ProfileHitSelector) -> list[QueryState]:
        """Return the next state of each query: with its next profile, or ended."""
        grown = selector.extend(chosen, [state.history.base for state in batch.states if state.history is not None])
        made: dict[int, QueryState] = {}

        def make(place: int) -> None:
            check_wanted()
            made[place] = self._next(batch.states[place], grown[place])

        for_each(make, range(len(batch.states)), selector.local.threads)
        return [made[place] for place in range(len(batch.states))]

    def _next(self, state: QueryState, growth: Growth) -> QueryState:
        history, profile = state.history, state.query.profile
        assert history is not None
        iteration = next_iteration(profile)
        before = history.base if profile is None or profile.alignment is None else profile.alignment
        subjects, known = subjects_of(growth.alignment), subjects_of(before)
        step = IterationStep(iteration, len(subjects), int(np.isin(subjects, known, invert=True).sum()))
        history = replace(history, steps=(*history.steps, step))
        converged = np.array_equal(subjects, known)
        if not converged and iteration < history.last:
            following = self.profile_of(state.query, growth.alignment, iteration)
            return QueryState(state.place, replace(state.query, profile=following), None, history)
        made = None
        if self.criteria.options.keep_next and len(state):
            if converged:
                made = profile or self.profile_alone(state.query, history.base)
            else:
                made = self.profile_of(state.query, growth.alignment, iteration)
        ended = replace(history, is_ended=True, converged=converged, is_cut=growth.is_cut, next_profile=made)
        return replace(state, history=ended)

    def profile_of(self, query: Query, alignment: QueryAlignment, iteration: int) -> Profile:
        """Make the profile that a query searches with next, which follows from the alignment alone."""
        options = self.criteria.options
        made = build_profile(alignment, options.scoring, UNSCALED if options.published else USUAL)
        return replace(
            made, identifier=query.identifier, description=query.description, alignment=alignment, iteration=iteration
        )

    def profile_alone(self, query: Query, base: QueryAlignment) -> Profile:
        """Return a sequence that found nothing as a profile, which finds the same."""
        scoring = self.criteria.options.scoring
        scores = scoring.matrix.scores[base.query][:, :PROFILE_LETTERS].astype(np.int8)
        return Profile(
            query.identifier, query.description, base.query, scores, gap_open=scoring.gap_open,
            gap_extend=scoring.gap_extend, alignment=base, lambda_=lambda_of(scoring.matrix),
        )  # fmt: skip
