"""What a search job is asked to do, and what follows from it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from swsearch.errors import InputError, OptionError, check_choice, real_number, whole_number
from swsearch.inputs import Query
from swsearch.job.costs import check_is_whole
from swsearch.job.filters import HitFilters
from swsearch.job.inclusion import Inclusion
from swsearch.job.parts import QueryLoc, checked_query_loc
from swsearch.masking import Mask, check_mask
from swsearch.profiles.units import lambda_of
from swsearch.recurrence import Recurrence
from swsearch.scoring import Mode, Scoring, check_mode
from swsearch.statistics.choice import StatisticsMethod, check_statistics, statistics_in_force
from swsearch.statistics.karlin_altschul import DEFAULT_EVALUE, KarlinAltschul, statistics_for
from swsearch.translation import QueryTranslation

DEFAULT_MAX_HITS = 500
"""As BLAST has it."""

MOST_ASKED_FOR = 10**18
"""Most hits, alignments or residues that may be asked for: it fits 64 bits, and nothing comes near it."""

MOST_ITERATIONS = 1000
"""Most iterations that may be asked for; a query converges, or goes on between few profiles, long before."""

CANDIDATES_PER_HIT, LEAST_CANDIDATES = 20, 1000
"""Candidates by the query's null that are kept for each hit that is asked for, and at least: their own nulls may
refuse most of them, where a query is of biased composition."""

SortKey = Literal["evalue", "score"]
"""What hits are put in order by."""


@dataclass(frozen=True)
class SearchOptions:
    """What a search job is asked to do; every value is checked when it is made.

    Parameters
    ----------
    scoring : Scoring
        Matrix and gap costs.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    max_hits : int
        Most hits of a query; the best in the order of ``sort``.
    evalue : float or None
        Largest E-value of a hit; None is `DEFAULT_EVALUE` where there are statistics, and no limit elsewhere.
    dbsize : int or None
        Residues that E-values refer to, instead of the database's own.
    statistics_method : {"auto", "published", "fitted", "none"}
        What E-values come from; see `swsearch.statistics.choice`.
    filters : HitFilters
        What else a hit must be like; `max_hits` counts those that pass.
    max_alignments : int
        Most alignments of a hit, in local mode.
    query_mask : {"none", "lower", "tantan"}
        What of the queries is scored as X.
    subject_mask : {"database", "none", "lower", "tantan"}
        What of the subjects is scored as X; "database" is what the database was built to mask.
    sort : {"evalue", "score"}
        The order of hits: by E-value where there are any, then by score, then by place in the input; or by score,
        then by place, whatever E-values say.
    distribution : bool
        Whether results keep how the whole database scores; local mode then scores all of it before it looks for hits.
    allow_dna : bool
        Whether subjects that are read for this search may hold only letters of DNA.
    iterations : int
        Searches of a query at most, each with a profile of what the one before found.
    inclusion : Inclusion
        What of it, where there are several.
    keep_next : bool
        Whether results keep the profile that the next search would have, as one that goes on needs it.
    translation : QueryTranslation or None
        How queries are translated, which are DNA then, in local mode and without iterations.
    query_loc : (int, int) or None
        First and last residue of each query that is searched, counted from 1; None is all of it.
    """

    scoring: Scoring
    mode: Mode = "local"
    max_hits: int = DEFAULT_MAX_HITS
    evalue: float | None = None
    dbsize: int | None = None
    statistics_method: StatisticsMethod = "auto"
    filters: HitFilters = field(default_factory=HitFilters)
    max_alignments: int = 1
    query_mask: Mask = "none"
    subject_mask: Mask | Literal["database"] = "database"
    sort: SortKey = "evalue"
    distribution: bool = False
    allow_dna: bool = False
    iterations: int = 1
    inclusion: Inclusion = field(default_factory=Inclusion)
    keep_next: bool = False
    translation: QueryTranslation | None = None
    query_loc: QueryLoc | None = None

    def __post_init__(self) -> None:
        check_mode(self.mode)
        check_is_whole(self.scoring)
        check_mask("query_mask", self.query_mask)
        check_mask("subject_mask", self.subject_mask, ("database",))
        self._check_numbers()
        if self.max_alignments > 1 and self.mode != "local":
            raise OptionError(
                "max_alignments",
                self.max_alignments,
                f"1 in {self.mode} mode",
                "only local alignments may be several",
            )
        check_choice("sort", self.sort, get_args(SortKey))
        check_statistics(self.statistics_method, self.scoring, self.mode, evalue=self.evalue, dbsize=self.dbsize)
        self._check_iterations()
        self._check_translation()
        self._check_query_loc()

    def _check_query_loc(self) -> None:
        object.__setattr__(self, "query_loc", checked_query_loc(self.query_loc))
        if self.query_loc is not None and (self.makes_profiles or self.translation is not None):
            beside = self.profiles_asked if self.makes_profiles else "--translate"
            raise OptionError("query_loc", self.query_loc, f"none with {beside}", "cut the queries beforehand")

    def _check_translation(self) -> None:
        """Check that DNA is searched with in a way that its frames can be."""
        if self.translation is None:
            return
        why = "DNA queries are searched with as the proteins of their frames"
        if self.mode != "local":
            raise OptionError("mode", self.mode, "local with --translate (in Python translate=True)", why)
        if self.makes_profiles:
            raise InputError(f"translate: {self.profiles_asked} cannot be had, since profiles are of proteins; {why}")
        if self.frame_shift is not None:
            self._check_shifts()

    def _check_shifts(self) -> None:
        """Check that nothing is asked for that alignments with frame shifts do not have."""
        if self.statistics_method == "published":
            why = "published constants are of alignments without frame shifts"
            raise OptionError("statistics", self.statistics_method, "fitted or none with --frame-shift", why)
        if self.max_alignments > 1:
            why = "only the best alignment of a strand is found with shifts"
            raise OptionError("max_alignments", self.max_alignments, "1 with --frame-shift", why)
        if self.query_mask == "tantan":
            why = "tantan masks proteins, and the codons of a strand are none"
            raise OptionError("query_mask", self.query_mask, "none or lower with --frame-shift", why)

    def _check_iterations(self) -> None:
        """Check that hits can make profiles, where they are to: this takes E-values, and a matrix that has units."""
        iterations = whole_number("iterations", self.iterations, 1, MOST_ITERATIONS)
        object.__setattr__(self, "iterations", iterations)
        if not self.makes_profiles:
            return
        if self.threshold is None:
            why = f"{self.profiles_asked} takes E-values to choose hits by"
            raise OptionError("statistics", self.statistics_method, "fitted or published", why)
        lambda_of(self.scoring.matrix)

    def _check_numbers(self) -> None:
        """Check what is counted and measured; numbers of numpy become Python's, which reports can hold."""
        for name in ("max_hits", "max_alignments", "dbsize"):
            value = getattr(self, name)
            if value is not None or name != "dbsize":
                expected = f"a number of residues from 1 to {MOST_ASKED_FOR:.0e}" if name == "dbsize" else ""
                object.__setattr__(self, name, whole_number(name, value, 1, MOST_ASKED_FOR, expected))
        if self.evalue is not None:
            evalue = real_number("evalue", self.evalue, "a number > 0")
            if evalue <= 0:
                raise OptionError("evalue", self.evalue, "a number > 0")
            object.__setattr__(self, "evalue", evalue)

    @property
    def statistics(self) -> KarlinAltschul | None:
        """Published statistics, where bit scores and E-values come from these."""
        published = statistics_in_force(self.statistics_method) == "published"
        return statistics_for(self.scoring, self.mode) if published else None

    @property
    def frame_shift(self) -> int | None:
        """What a frame shift costs; None where there are none."""
        return None if self.translation is None else self.translation.frame_shift

    @property
    def cpu_only(self) -> str:
        """What is asked for that the CPU alone computes; empty where any engine does."""
        return "" if self.frame_shift is None else "alignments with frame shifts"

    @property
    def recurrence(self) -> Recurrence:
        """What is computed."""
        return Recurrence(self.scoring, self.mode, frame_shift=self.frame_shift)

    @property
    def n_frames(self) -> int:
        """Frames that are searched in place of each query; 1 where it is protein."""
        return 1 if self.translation is None else len(self.translation.frames)

    @property
    def makes_profiles(self) -> bool:
        """Whether hits make profiles."""
        return self.iterations > 1 or self.keep_next

    @property
    def profiles_asked(self) -> str:
        """What asks for profiles of hits, for messages."""
        return f"--iterations {self.iterations}" if self.iterations > 1 else "a profile of the hits"

    def of_inclusion(self) -> SearchOptions:
        """Return what chooses the hits that make the next profile: one more than wanted, which tells of others."""
        return replace(
            self, max_hits=self.inclusion.most + 1, evalue=self.inclusion.evalue, filters=HitFilters(),
            max_alignments=1, sort="evalue", distribution=False, iterations=1, keep_next=False,
        )  # fmt: skip

    @property
    def is_fitted(self) -> bool:
        """Whether each hit is held against shuffled copies of its subject."""
        return statistics_in_force(self.statistics_method) == "fitted"

    @property
    def threshold(self) -> float | None:
        """The E-value threshold in force."""
        if self.statistics is None and not self.is_fitted:
            return None
        return DEFAULT_EVALUE if self.evalue is None else self.evalue

    @property
    def max_candidates(self) -> int:
        """Subjects that may be needed for `max_hits` hits: more, where alignments or nulls may refuse some."""
        if self.filters.needs_alignments:
            return sys.maxsize
        return max(LEAST_CANDIDATES, CANDIDATES_PER_HIT * self.max_hits) if self.is_fitted else self.max_hits


def check_scales(queries: Sequence[Query], options: SearchOptions) -> None:
    """Raise `OptionError` if published statistics are asked for, and a profile has other scores than they are of."""
    if options.statistics is None:
        return
    for query in queries:
        if query.profile is None or query.profile.scale == 1:
            continue
        raise OptionError(
            "statistics",
            "published",
            f"fitted: the scores of profile {query.identifier} are {query.profile.scale:g} times the matrix's units, "
            "which published constants are not of",
        )
