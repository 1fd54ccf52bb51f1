"""Iterative search: the stage that builds profiles, and the queue of queries.

Queries of different iterations are scored together. The results of a query depend only on the query, not on what it
is scored with or when.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsearch.inputs import Query
from swsearch.pipeline import batch as batch_module
from swsearch.pipeline.batch import (
    HITS_PER_BATCH,
    Batch,
    History,
    QueryState,
    search_iteration,
    size_in_group,
    split_by_size,
    subjects_of,
)
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.prefetch import SearchCancelled, check_cancelled, map_in_threads, parallel_for
from swsearch.pipeline.profile_update import ProfileHitSelector, unmask_codes
from swsearch.pipeline.subjects import SubjectReader
from swsearch.profiles.calibration import lambda_of
from swsearch.profiles.construction import DEFAULT_SETTINGS, UNSCALED, build_profile
from swsearch.profiles.profile import PROFILE_LETTERS, Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.results import IterationStep

GROUPS_PER_BATCH = 8
"""Groups of queries that are begun and whose results are not yet taken: at least one for each stage, and some that
wait between two. More would only take more memory."""


class IterationQueue:
    """Hands out queries, those that came back first, and begins new groups while few are under way.

    Any thread may call; only `take` waits.

    Parameters
    ----------
    groups : iterator of list
        New queries, in order; used by whoever calls `take`.
    max_queries : int or None
        Queries that are handed out together at most.
    """

    def __init__(self, groups: Iterator[list[QueryState]], max_queries: int | None = None) -> None:
        self._groups, self._most = groups, max_queries
        self._changed = threading.Condition()
        self._waiting: list[QueryState] = []
        self._ends: list[int] = []
        self._under_way = self._begun = 0
        self._is_closed = self._has_all = False

    def take(self) -> list[QueryState]:
        """Wait for queries that can be searched with now; none after the last."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_something)
                if self._is_closed:
                    raise SearchCancelled
                if self._waiting:
                    return self._take_returned()
                if self._has_all:
                    return []
            group = next(self._groups, None)
            with self._changed:
                if group is None:
                    self._has_all = True
                    continue
                self._begun += len(group)
                self._under_way += len(group)
                self._ends.append(self._begun)
                return group

    def requeue(self, states: Sequence[QueryState], n_finished: int) -> None:
        """Return queries for another iteration, and count the ended ones."""
        with self._changed:
            self._waiting += states
            self._under_way -= n_finished
            self._changed.notify_all()

    def mark_delivered(self, place: int) -> None:
        """Record that the results of all queries before a place were passed on."""
        with self._changed:
            self._ends = [end for end in self._ends if end > place]
            self._changed.notify_all()

    def close(self) -> None:
        """Wake all waiting threads, which then raise `SearchCancelled`."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _has_something(self) -> bool:
        may_begin = not self._has_all and len(self._ends) < GROUPS_PER_BATCH
        return bool(self._is_closed or self._waiting or may_begin or (self._has_all and not self._under_way))

    def _take_returned(self) -> list[QueryState]:
        """Take queries that wait for their next iteration, in order, as many as are scored together."""
        self._waiting.sort(key=lambda turn: turn.index)
        rows = n = 0
        for turn in self._waiting:
            size = size_in_group(turn.query)
            if n and (rows + size > batch_module.GROUP_RESIDUES or n == self._most):
                break
            rows, n = rows + size, n + 1
        returned, self._waiting = self._waiting[:n], self._waiting[n:]
        return returned


StoreStates = Callable[[Sequence[QueryState], SubjectReader], None]
"""Stores states, and the subjects that their places are of."""


@dataclass(frozen=True, eq=False)
class ProfileGrower:
    """Makes the next states of queries.

    Parameters
    ----------
    criteria : Criteria
        Options and thresholds of the search, with those of inclusion.
    """

    criteria: Criteria

    def first_state(self, place: int, query: Query) -> QueryState:
        """Return the state of a query before its first iteration; its profile names subjects of the database."""
        profile = query.profile
        base = QueryAlignment.from_query(
            query.identifier, query.description, unmask_codes(query.codes, query.letters)
        )
        if profile is not None and profile.alignment is not None:
            stays = profile.alignment.subjects < 0
            stays[0] = True
            base = profile.alignment.take(np.flatnonzero(stays))
        last = search_iteration(profile) + self.criteria.options.own_iterations - 1
        return QueryState(place, query, None, History(base, last))

    def include_hits(
        self, batches: Iterable[Batch], selector: ProfileHitSelector
    ) -> Generator[tuple[Batch, Batch | None]]:
        """Choose the candidates for profiles; finished queries pass, with None."""

        def select(batch: Batch) -> tuple[Batch, Batch | None]:
            return batch, None if batch.is_finished else selector.select(batch)

        yield from map_in_threads(select, batches, selector.backend.parallel)

    def grow_profiles(
        self,
        batches: Iterable[tuple[Batch, Batch | None]],
        selector: ProfileHitSelector,
        rounds: IterationQueue,
        keep: StoreStates,
        forgone: Callable[[int], None],
    ) -> Generator[Batch]:
        """Make profiles, with which queries go back to the rounds, and pass on queries that have ended.

        Parameters
        ----------
        forgone : callable
            Called with the query residues of iterations that a query did not need.
        """

        def parts() -> Iterator[tuple[Batch, Batch | None]]:
            for batch, chosen in batches:
                if chosen is None:
                    yield batch, None
                    continue
                for part in split_by_size([len(each.candidates) for each in chosen.selections], HITS_PER_BATCH):
                    yield batch.part(part), chosen.part(part)

        def grow(part: tuple[Batch, Batch | None]) -> tuple[Batch, list[QueryState] | None]:
            batch, chosen = part
            return batch, None if chosen is None else self._next_states(batch, chosen, selector)

        for batch, states in map_in_threads(grow, parts(), selector.backend.parallel):
            if states is None:
                rounds.requeue([], len(batch.states))
                yield batch
                continue
            going = [state for state in states if not state.is_finished]
            done = [state for state in states if state.is_finished]
            for state in done:
                assert state.history is not None
                forgone((state.history.last - search_iteration(state.query.profile)) * len(state))
            keep(going, batch.subjects)
            rounds.requeue(going, len(done))
            if done:
                yield Batch(done, batch.subjects)

    def _next_states(self, batch: Batch, chosen: Batch, selector: ProfileHitSelector) -> list[QueryState]:
        """Return the next state of each query: with its next profile, or ended."""
        grown, tables = selector.extend(
            chosen, [state.history.base_alignment for state in batch.states if state.history is not None]
        )
        max_subjects = self.criteria.options.inclusion.most

        def make(place: int) -> QueryState:
            check_cancelled()
            included = chosen.selections[place]
            is_cut = len(included.candidates) > max_subjects
            state = self._next_state(batch.states[place], grown[place], is_cut)
            if not state.is_finished:
                return state
            kept = included.take(np.arange(len(tables[place])), tables[place])
            if not self._keeps_null_models:
                kept = replace(kept, null_models=None)
            return replace(state, selection=replace(state.candidates, included=kept))

        return parallel_for(make, range(len(batch.states)), selector.local_backend.threads)

    @property
    def _keeps_null_models(self) -> bool:
        """Whether hits of profiles have the nulls that reported ones would get: no larger limit takes more copies."""
        reported = self.criteria.options.evalue_threshold
        return reported is not None and reported >= self.criteria.options.inclusion.evalue

    def _next_state(self, state: QueryState, grown: QueryAlignment, is_cut: bool) -> QueryState:
        history, profile = state.history, state.query.profile
        assert history is not None
        iteration = search_iteration(profile)
        before = history.base_alignment if profile is None or profile.alignment is None else profile.alignment
        subjects, subjects_before = subjects_of(grown), subjects_of(before)
        step = IterationStep(iteration, len(subjects), int(np.isin(subjects, subjects_before, invert=True).sum()))
        history = replace(history, steps=(*history.steps, step))
        converged = np.array_equal(subjects, subjects_before)
        if not converged and iteration < history.last:
            following = self.make_profile(state.query, grown, iteration)
            return QueryState(state.index, replace(state.query, profile=following), None, history)
        new_profile = None
        if self.criteria.options.keep_profiles and len(state):
            if converged:
                new_profile = self.profile_after(profile, state.query, history.base_alignment)
            else:
                new_profile = self.make_profile(state.query, grown, iteration)
        ended = replace(history, is_finished=True, converged=converged, is_truncated=is_cut, next_profile=new_profile)
        return replace(state, history=ended)

    def make_profile(self, query: Query, alignment: QueryAlignment, iteration: int) -> Profile:
        """Make the profile that a query searches with next, which follows from the alignment alone."""
        options = self.criteria.options
        settings = UNSCALED if options.published else replace(DEFAULT_SETTINGS, contexts=options.contexts)
        profile = build_profile(alignment, options.scoring, settings)
        return replace(
            profile,
            identifier=query.identifier,
            description=query.description,
            alignment=alignment,
            iteration=iteration,
        )

    def profile_after(self, profile: Profile | None, query: Query, base: QueryAlignment) -> Profile:
        """Return the profile of a search that converged: of a sequence, one that finds the same."""
        if profile is not None:
            return profile if profile.alignment is not None else replace(profile, alignment=base)
        scoring = self.criteria.options.scoring
        scores = scoring.matrix.scores[base.query][:, :PROFILE_LETTERS].astype(np.int8)
        return Profile(
            query.identifier, query.description, base.query, scores, gap_open=scoring.gap_open,
            gap_extend=scoring.gap_extend, alignment=base, lambda_=lambda_of(scoring.matrix),
        )  # fmt: skip
