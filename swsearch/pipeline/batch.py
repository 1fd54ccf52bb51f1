"""Batches of queries and their candidates, as stages pass them on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swsearch.blocks import IntArray
from swsearch.inputs import Query
from swsearch.pipeline.ranking import QueryCandidates
from swsearch.pipeline.subjects import SubjectReader
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.results import IterationStep

if TYPE_CHECKING:
    from swsearch.db import Database


@dataclass(frozen=True, eq=False)
class History:
    """Finished iterations of a query.

    Parameters
    ----------
    base_alignment : QueryAlignment
        The query alone, or with what stays of a profile that was given, whatever these subjects add.
    last : int
        Number of its last iteration.
    steps : tuple of IterationStep
        Subjects that each iteration included.
    is_finished, converged, is_truncated : bool
        Whether no other iteration follows; whether it would search with the same subjects; whether there were more
        subjects than a profile takes.
    next_profile : Profile or None
        Profile of the next iteration, if requested.
    """

    base_alignment: QueryAlignment
    last: int
    steps: tuple[IterationStep, ...] = ()
    is_finished: bool = False
    converged: bool = False
    is_truncated: bool = False
    next_profile: Profile | None = None


@dataclass(frozen=True, eq=False)
class QueryState:
    """A query, or a frame of one, in one of its searches: the unit that is stored and sent.

    Parameters
    ----------
    index : int
        Among all that are searched.
    query : Query
        As it is scored, with the profile of its iteration.
    selection : QueryCandidates or None
        Its candidates; None before it is scored.
    history : History or None
        Its iterations; None where hits make no profiles.
    """

    index: int
    query: Query
    selection: QueryCandidates | None = None
    history: History | None = None

    def __len__(self) -> int:
        return len(self.query.codes)

    @property
    def candidates(self) -> QueryCandidates:
        """Its candidates."""
        assert self.selection is not None
        return self.selection

    @property
    def is_finished(self) -> bool:
        """Whether its last profile is built."""
        return self.history is not None and self.history.is_finished


@dataclass(frozen=True, eq=False)
class Batch:
    """Queries that go through the stages together.

    Parameters
    ----------
    states : sequence of QueryState
        All scored, or none. Frames of one DNA query stand together.
    subjects : SubjectReader
        Subjects that the places in their selections refer to.
    """

    states: Sequence[QueryState]
    subjects: SubjectReader

    @property
    def queries(self) -> list[Query]:
        """The queries."""
        return [state.query for state in self.states]

    @property
    def selections(self) -> list[QueryCandidates]:
        """The candidates of each query."""
        return [state.candidates for state in self.states]

    @property
    def is_scored(self) -> bool:
        """Whether its queries have candidates already, e.g. from a checkpoint."""
        return self.states[0].selection is not None

    @property
    def is_finished(self) -> bool:
        """Whether the last profiles of its queries are built."""
        return self.states[0].is_finished

    def with_selections(self, selections: Sequence[QueryCandidates], subjects: SubjectReader | None = None) -> Batch:
        """Return the batch with other selections, whose places may be of other subjects."""
        states = [replace(state, selection=each) for state, each in zip(self.states, selections, strict=True)]
        return Batch(states, self.subjects if subjects is None else subjects)

    def part(self, states: slice) -> Batch:
        """Return some of the states."""
        return Batch(self.states[states], self.subjects)


GROUP_RESIDUES = 16_000
"""Query residues that are scored together. Each group reads the database once, which takes less than a hundredth of
the time of scoring this many. With larger groups, stages after scoring would begin later and end later."""

QUERY_RESIDUES = 100
"""Residues that a query counts as besides its own: that many take as long to score as the work that each query is."""

FIRST_GROUP_RESIDUES, SMALL_GROUP_RESIDUES, MIN_GROUPS = (4_000, 16_000), 8_000, 8
"""Query residues of the first groups. Where all queries are few, the others have an eighth of all residues, and at
least `SMALL_GROUP_RESIDUES`: the first results come early, and later stages work beside scoring. The last groups have
half of what is left, down to the size of the first, so that little is left to do when the last one is scored."""

HITS_PER_BATCH = 16_000
"""Hits that are read and aligned together, those of whole queries."""


def size_in_group(query: Query) -> int:
    """Return the residues that a query counts as in a group."""
    return len(query.codes) + QUERY_RESIDUES


def query_groups(
    queries: Sequence[Query], max_queries: int | None = None, multiple: int = 1
) -> Iterator[Sequence[Query]]:
    """Cut queries into groups that are scored together.

    Parameters
    ----------
    multiple : int
        Frames of one query, which stay in one group.
    """
    left = sum(map(size_in_group, queries))
    usual = min(GROUP_RESIDUES, max(SMALL_GROUP_RESIDUES, left // MIN_GROUPS))
    sizes = (min(size, usual) for size in (FIRST_GROUP_RESIDUES if left > 2 * FIRST_GROUP_RESIDUES[0] else ()))
    limit = next(sizes, usual)
    group: list[Query] = []
    residues = 0
    for first in range(0, len(queries), multiple):
        some = queries[first : first + multiple]
        n = sum(map(size_in_group, some))
        if group and (residues + n > limit or (max_queries is not None and len(group) + multiple > max_queries)):
            yield group
            group, residues, left = [], 0, left - residues
            limit = next(sizes, min(usual, max(left // 2, FIRST_GROUP_RESIDUES[0])))
        group += some
        residues += n
    if group:
        yield group


def split_by_size(sizes: Sequence[int], max_size: int, multiple: int = 1) -> Iterator[slice]:
    """Cut items of some sizes into runs of about ``max_size``; groups of ``multiple`` items stay in one run."""
    begin = total = 0
    for place in range(0, len(sizes), multiple):
        size = sum(sizes[place : place + multiple])
        if place > begin and total + size > max_size:
            yield slice(begin, place)
            begin, total = place, 0
        total += size
    if begin < len(sizes):
        yield slice(begin, len(sizes))


def search_iteration(profile: Profile | None) -> int:
    """Return the number of the search that has a profile as its query."""
    return 1 if profile is None else profile.iteration + 1


def subjects_of(alignment: QueryAlignment) -> IntArray:
    """Return the distinct database places of the rows of an alignment, ascending; shape (n,), int64."""
    return np.unique(alignment.subjects[alignment.subjects >= 0])


def first_iterations(subjects: IntArray, profile: Profile | None) -> IntArray:
    """Return the iteration that first included each subject in a profile.

    Parameters
    ----------
    subjects : ndarray, shape (n,), int64
        Places in the database.
    profile : Profile or None
        What found them, of a query that was `restrict_to_database`.

    Returns
    -------
    ndarray, shape (n,), int64
        The iteration that found them, where none before did.
    """
    iteration = search_iteration(profile)
    iterations = np.full(len(subjects), iteration, dtype=np.int64)
    if profile is not None and profile.alignment is not None:
        alignment = profile.alignment
        of_subject = dict(zip(alignment.subjects.tolist(), alignment.iterations.tolist(), strict=True))
        of_subject.pop(-1, None)
        for row, subject in enumerate(subjects.tolist()):
            iterations[row] = of_subject.get(subject, iteration)
    return iterations


def restrict_to_database(query: Query, database: Database) -> Query:
    """Return a query whose profile names only subjects of this database, at the same place."""
    profile = query.profile
    alignment = None if profile is None else profile.alignment
    if profile is None or alignment is None:
        return query
    places = alignment.subjects.copy()
    for row in np.flatnonzero(places >= 0).tolist():
        place = int(places[row])
        if place >= database.n_subjects or database.identifier(place) != alignment.identifiers[row]:
            places[row] = -1
    if np.array_equal(places, alignment.subjects):
        return query
    return replace(query, profile=replace(profile, alignment=replace(alignment, subjects=places)))
