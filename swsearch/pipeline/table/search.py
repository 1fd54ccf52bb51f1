"""The option table of a search, and options of iterations."""

# no postponed annotations: the kinds of the options follow from them
from typing import TYPE_CHECKING, ClassVar, TypedDict

from swsearch.options.kinds import Integer, Percentage, Real
from swsearch.options.row import NO_COMMAND, NO_SERVER, FormField, Header, Heading, OptionTable, option
from swsearch.pipeline.table.hits import FilterKeywords, FilterTable, SelectionKeywords, SelectionTable
from swsearch.pipeline.table.scoring import ScoringKeywords, ScoringTable, SequenceKeywords, SequenceTable
from swsearch.pipeline.table.values import DatabaseFile

if TYPE_CHECKING:
    from pathlib import Path

MAX_ITERATIONS = 1000
"""Far more iterations than a query needs to converge."""

MAX_INCLUDED = 1_000_000
"""Largest number of subjects in a profile."""


class IterationTable(OptionTable, init=False):
    """Options of iterated searches."""

    HEADING: ClassVar = Heading.ITERATIONS

    iterations: int = option(
        1,
        "Maximum number of iterations; stops early when a query converges. Reports the last one.",
        Integer(1, MAX_ITERATIONS, f"a whole number from 1 to {MAX_ITERATIONS:,}"),
        blast="num-iterations",
        others="N num-iter",
        form=FormField(
            "Maximum iterations",
            "Stops early when a query converges. Reports the last one.",
        ),
    )
    profile_from: "str | None" = option(
        None,
        "Database for all iterations but the last, which searches SUBJECTS with the profile.",
        DatabaseFile(),
        python="Path of a database for all iterations but the last, which searches ``subjects`` with the profile.",
        unset="SUBJECTS",
        interfaces=NO_SERVER,
        requires="iterations",
    )
    inclusion_evalue: float = option(  # type: ignore[assignment]  # set on construction
        None,
        "Maximum E-value to enter the profile.",
        Real(is_positive=True),
        unset="0.02 with contexts, else 0.002",
        requires="iterations",
        blast="inclusion-ethresh",
        others="incE incdomE e-profile",
        header=Header.ALWAYS,
        form=FormField("Inclusion E-value"),
    )
    """Without contexts psiblast's default. E-values of contexts are on the safe side (`INCLUSION_EVALUES`)."""
    inclusion_coverage: float = option(
        0.0,
        "Minimum percentage of query positions aligned, to enter the profile.",
        Percentage(),
        requires="iterations",
        form=FormField("Inclusion coverage (%)"),
    )
    max_included: int = option(
        5000,
        "Maximum number of subjects in the profile.",
        Integer(1, MAX_INCLUDED),
        requires="iterations",
        form=FormField("Maximum subjects in profile", "The best ones. Filters only affect reports."),
    )
    """It bounds the memory of a profile's alignment: one byte per subject and position."""
    keep_profiles: bool = option(
        False,
        "Keep the profile that the next iteration would use, to continue in another search.",
        interfaces=NO_COMMAND,
        header=Header.NEVER,
    )


class IterationKeywords(TypedDict, total=False):
    """Keywords of `IterationTable`."""

    iterations: int
    profile_from: "str | Path | None"
    inclusion_evalue: float
    inclusion_coverage: float
    max_included: int
    keep_profiles: bool


class SearchTable(IterationTable, SequenceTable, FilterTable, SelectionTable, ScoringTable, init=False):
    """All options that affect hits. Data classes order fields by base class, the last base first."""


class TableKeywords(
    ScoringKeywords, SelectionKeywords, FilterKeywords, SequenceKeywords, IterationKeywords, total=False
):
    """Keywords of `SearchTable`."""
