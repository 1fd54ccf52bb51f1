"""What follows from options and subjects alone, whatever the queries: made once, and shared by searches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from swsearch.options.numbers import MAX_INTEGER
from swsearch.pipeline.filters import Allowed
from swsearch.pipeline.null_models import NullMaker
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.subjects import SubjectCounts, Subjects
from swsearch.pipeline.thresholds import ScoreThresholds
from swsearch.recurrence import Recurrence
from swsearch.statistics.fitted import Fit
from swsearch.statistics.karlin_altschul import KarlinAltschul

SCORES_MEMORY = 256 << 20
"""Bytes for the scores of all queries that are scored together with every subject, where all are kept."""


@dataclass(frozen=True, eq=False)
class Criteria:
    """What a search looks for.

    Parameters
    ----------
    options : SearchOptions
        What is asked for.
    counts : SubjectCounts
        Of the subjects.
    allowed : ndarray, shape (n_places,), bool, or None
        Which of what is scored may be hits.
    n_places : int
        Places that are scored.
    """

    options: SearchOptions
    counts: SubjectCounts
    allowed: Allowed | None
    n_places: int

    @classmethod
    def of(cls, options: SearchOptions, subjects: Subjects) -> Criteria:
        """Make what follows from options and subjects.

        Raises
        ------
        InputError
            If the filters name a subject that is not there, or leave none.
        """
        return cls(options, subjects.counts, subjects.allowed(options.filters), subjects.n_places)

    @property
    def recurrence(self) -> Recurrence:
        """What is computed."""
        return self.options.recurrence

    @cached_property
    def thresholds(self) -> ScoreThresholds:
        """The least scores of hits."""
        return ScoreThresholds(self.options, self.counts)

    @cached_property
    def inclusion(self) -> Criteria | None:
        """What the next profile is made of; None where hits make no profiles."""
        if not self.options.makes_profiles:
            return None
        return Criteria(self.options.of_inclusion(), self.counts, None, self.n_places)

    @property
    def fit(self) -> Fit | None:
        """How statistics are fitted; None where they are not."""
        return self.thresholds.fit

    @property
    def method(self) -> KarlinAltschul | Fit | None:
        """What E-values are made with."""
        return self.fit or self.options.published

    def null_maker(self, threads: int) -> NullMaker | None:
        """Return what makes nulls, where statistics are fitted."""
        return None if self.fit is None else NullMaker(self.fit, self.recurrence, threads)

    @cached_property
    def selecting(self) -> SearchOptions:
        """The options by which places are selected: all windows of DNA are kept that may hold a hit."""
        return replace(self.options, max_hits=MAX_INTEGER) if self.counts.are_windows else self.options

    @property
    def max_queries(self) -> int | None:
        """Queries that are scored together at most, where every place may have to be kept for each."""
        if self.options.distribution:
            each = 8  # two int32: of the engine, and while it counts
        elif self.options.filters.needs_alignments or self.counts.are_windows:
            each = 16  # score and place
        else:
            return None
        return max(1, SCORES_MEMORY // (each * max(1, self.n_places)))
