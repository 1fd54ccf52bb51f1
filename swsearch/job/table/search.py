"""The option table of a search, and options of iterations."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from typing import ClassVar, TypedDict

from swsearch.job.table.hits import FilterKeywords, FilterTable, SelectionKeywords, SelectionTable
from swsearch.job.table.scoring import ScoringKeywords, ScoringTable, SequenceKeywords, SequenceTable
from swsearch.options.kinds import Integer, Percentage, Real
from swsearch.options.row import NO_COMMAND, FormField, Heading, OptionTable, option

MAX_ITERATIONS = 1000
"""Far more iterations than a query needs to converge."""

MAX_INCLUDED = 1_000_000
"""Largest number of subjects in a profile."""


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class IterationTable(OptionTable):
    """Options of iterated searches."""

    HEADING: ClassVar = Heading.ITERATIONS

    iterations: int = option(
        1,
        "Searches of each query at most; it stops when the subjects that make its profile stay the same. Results "
        "are those of the last. A profile that was saved goes on with the iteration after its own.",
        Integer(1, MAX_ITERATIONS, f"a whole number from 1 to {MAX_ITERATIONS:,}"),
        blast="num-iterations",
        others="N num-iter",
        form=FormField(
            "Searches at most",
            "It stops when the subjects that make the profile stay the same. Results are those of the last.",
        ),
    )
    inclusion_evalue: float = option(
        0.002,
        "Largest E-value of what makes the next profile.",
        Real(is_positive=True),
        requires="iterations",
        blast="inclusion-ethresh",
        others="incE incdomE e-profile",
        form=FormField("E-value for a profile"),
    )
    """As psiblast. In SCOPe 0.005 finds more before the first error of a query, and less in the order of all queries'
    hits (``benchmarks/results/iterated.txt``)."""
    inclusion_coverage: float = option(
        0.0,
        "Least part of the query's positions that an alignment pairs, to be in a profile.",
        Percentage(),
        requires="iterations",
        form=FormField("Coverage for a profile, %", "Least part of the query's positions that an alignment pairs."),
    )
    max_included: int = option(
        5000,
        "Most subjects in a profile, the best ones. --max-hits and filters are for reports alone.",
        Integer(1, MAX_INCLUDED),
        requires="iterations",
        form=FormField("Subjects in a profile", "At most, the best ones. Hits and filters are for reports alone."),
    )
    """It bounds the memory of a profile's alignment: one byte per subject and position."""
    keep_next: bool = option(
        False,
        "Keep the profile that the next iteration would use, to continue in another search.",
        interfaces=NO_COMMAND,
        decides=False,
    )


class IterationKeywords(TypedDict, total=False):
    """Keywords of `IterationTable`."""

    iterations: int
    inclusion_evalue: float
    inclusion_coverage: float
    max_included: int
    keep_next: bool


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class SearchTable(IterationTable, SequenceTable, FilterTable, SelectionTable, ScoringTable):
    """All options that affect hits. Data classes order fields by base class, the last base first."""


class TableKeywords(
    ScoringKeywords, SelectionKeywords, FilterKeywords, SequenceKeywords, IterationKeywords, total=False
):
    """Keywords of `SearchTable`."""
