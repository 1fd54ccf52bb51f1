"""What flows through a search: queries, some at a time, and the subjects that they have found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from swsearch.inputs import Query
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.subjects import SubjectReader
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.profile import Profile
from swsearch.results import IterationStep


@dataclass(frozen=True, eq=False)
class History:
    """The iterations of a query so far.

    Parameters
    ----------
    base : QueryAlignment
        The query alone, or with what stays of a profile that was given, whatever these subjects add.
    last : int
        Number of its last iteration.
    steps : tuple of IterationStep
        What each iteration found for the next profile.
    is_ended, converged, is_cut : bool
        Whether no other iteration follows; whether it would search with the same subjects; whether there were more
        subjects than a profile takes.
    next_profile : Profile or None
        What the next iteration would search with, where that was asked for.
    """

    base: QueryAlignment
    last: int
    steps: tuple[IterationStep, ...] = ()
    is_ended: bool = False
    converged: bool = False
    is_cut: bool = False
    next_profile: Profile | None = None


@dataclass(frozen=True, eq=False)
class QueryState:
    """A query, or a frame of one, in one of its searches: the unit that is stored and sent.

    Parameters
    ----------
    place : int
        Among all that are searched.
    query : Query
        As it is scored, with the profile of its iteration.
    selection : Selection or None
        What was found for it; None before it is scored.
    history : History or None
        Its iterations; None where hits make no profiles.
    """

    place: int
    query: Query
    selection: Selection | None = None
    history: History | None = None

    def __len__(self) -> int:
        return len(self.query.codes)

    @property
    def found(self) -> Selection:
        """What was found for it."""
        assert self.selection is not None
        return self.selection

    @property
    def is_ended(self) -> bool:
        """Whether it has made its last profile."""
        return self.history is not None and self.history.is_ended


@dataclass(frozen=True, eq=False)
class Batch:
    """Queries that go through the stages together.

    Parameters
    ----------
    states : sequence of QueryState
        All scored, or none. Frames of one DNA query stand together.
    subjects : SubjectReader
        What the places in their selections are of.
    """

    states: Sequence[QueryState]
    subjects: SubjectReader

    @property
    def queries(self) -> list[Query]:
        """The queries."""
        return [state.query for state in self.states]

    @property
    def selections(self) -> list[Selection]:
        """What was found for each."""
        return [state.found for state in self.states]

    @property
    def is_scored(self) -> bool:
        """Whether something was found already, such as in an earlier run."""
        return self.states[0].selection is not None

    @property
    def is_ended(self) -> bool:
        """Whether its queries have made their last profiles."""
        return self.states[0].is_ended

    def having(self, selections: Sequence[Selection], subjects: SubjectReader | None = None) -> Batch:
        """Return the batch with other selections, whose places may be of other subjects."""
        states = [replace(state, selection=each) for state, each in zip(self.states, selections, strict=True)]
        return Batch(states, self.subjects if subjects is None else subjects)

    def part(self, part: slice) -> Batch:
        """Return some of the states."""
        return Batch(self.states[part], self.subjects)
