"""Options of hits: E-values, order, number and filters."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from typing import ClassVar, TypedDict

from swsearch.job.table.values import IdentifierList, Identifiers, TaxidList, Taxids
from swsearch.options.kinds import Integer, Percentage, Real
from swsearch.options.numbers import MAX_INTEGER
from swsearch.options.row import NO_COMMAND, FormField, Heading, OptionTable, option
from swsearch.options.words import SortKey, StatisticsMethod


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class SelectionTable(OptionTable):
    """Which hits are reported, and how they are rated."""

    HEADING: ClassVar = Heading.HITS

    evalue: float | None = option(
        None,
        "Largest E-value of a hit.",
        Real(is_positive=True),
        unset="10",
        blast="evalue",
        others="e E domE expect max-evalue e-value",
        url="EXPECT",
        form=FormField("E-value", group="main"),
    )
    max_hits: int = option(
        500,
        "Most hits of a query: exactly the best (that pass the filters).",
        Integer(1),
        blast="max-target-seqs",
        others="num-alignments num-descriptions max-seqs topscore-num num-hits hits limit k b n",
        url="HITLIST_SIZE",
        form=FormField("Hits", "Most hits of a query: exactly the best.", group="main"),
    )
    sort: SortKey = option(
        "evalue",
        "The order of hits: by E-value, then score; or by score alone. --max-hits keeps the best in it.",
        form=FormField(
            "Order of hits",
            "By E-value, then score; or by score alone. The best in this order are kept.",
            choices={"evalue": "E-value", "score": "score"},
        ),
    )
    dbsize: int | None = option(
        None,
        "Database size that E-values refer to, such as 5000000, 5M or 1e9.",
        Integer(1, expected=f"a number of residues from 1 to {MAX_INTEGER:.0e}"),
        unset="the database's own",
        metavar="RESIDUES",
        blast="dbsize",
        others="db-size z",
        form=FormField("Database size", "Residues that E-values refer to, such as 5M or 1e9."),
    )
    statistics: StatisticsMethod = option(
        "auto",
        "What E-values come from: scores with shuffled copies of each hit's sequence (fitted; auto is the same), "
        "which hold in every mode and for queries of unusual composition, or BLAST's constants (published).",
        url="COMPOSITION_BASED_STATISTICS",
        form=FormField(
            "E-values from",
            "Shuffled copies of each hit's sequence hold in every mode and for unusual compositions.",
            choices={
                "auto": "shuffled copies (usual)",
                "fitted": "shuffled copies",
                "published": "BLAST's constants",
                "none": "no E-values",
            },
        ),
    )
    max_alignments: int = option(
        1,
        "Most alignments of a subject, local mode: each the best that shares no pair of residues with those "
        "before, with its own E-value (no sum statistics); of these, those that pass the filters.",
        Integer(1),
        blast="max-hsps",
        others="hsps alt-ali",
        form=FormField(
            "Alignments of a hit",
            "At most; local mode. Each is the best that shares no pair of residues with those before and has an "
            "E-value of its own.",
        ),
    )
    distribution: bool = option(
        False,
        "Keep the distribution of all scores of the database.",
        interfaces=NO_COMMAND,
    )


class SelectionKeywords(TypedDict, total=False):
    """Keywords of `SelectionTable`."""

    evalue: float | None
    max_hits: int
    sort: SortKey
    dbsize: int | None
    statistics: StatisticsMethod
    max_alignments: int
    distribution: bool


MAX_SCORE = 2**31 - 1
"""Largest magnitude of a score: engines hold 32 bits."""


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class FilterTable(OptionTable):
    """Filters of hits."""

    HEADING: ClassVar = Heading.FILTERS

    min_score: int | None = option(
        None,
        "Least raw score of a hit.",
        Integer(-MAX_SCORE, MAX_SCORE, f"an integer in matrix units, of magnitude up to {MAX_SCORE:,}"),
        unset="none",
        form=FormField("Least score", "Raw score, in units of the matrix."),
    )
    min_identity: float | None = option(
        None,
        "Least identity of the alignment. This and coverage align candidates, the best first, until enough pass; "
        "memory: 16 bytes for each subject that reaches the E-value threshold.",
        Percentage(),
        unset="none",
        others="id identity perc-identity pident approx-id",
        form=FormField("Least identity, %", "Identical columns of the alignment."),
    )
    min_query_coverage: float | None = option(
        None,
        "Least part of the query from first to last aligned residue.",
        Percentage(),
        unset="none",
        spellings="--min-query-coverage --min-coverage",
        blast="qcov-hsp-perc",
        others="query-cover qcov query-coverage",
        form=FormField("Least query coverage, %", "Part of the query from first to last aligned residue."),
    )
    min_subject_coverage: float | None = option(
        None,
        "The same of the subject.",
        Percentage(),
        unset="none",
        others="subject-cover scov subject-coverage target-cover",
        form=FormField("Least subject coverage, %"),
    )
    include_ids: tuple[str, ...] | None = option(
        None,
        "Report only subjects named there, an identifier or accession a line; E-values refer to the whole database.",
        IdentifierList(),
        unset="all",
        blast="seqidlist",
        others="seqid-list ids",
        form=FormField("Only these subjects", "Identifiers, one a line; E-values refer to the whole database."),
    )
    exclude_ids: tuple[str, ...] | None = option(
        None,
        "Leave out subjects named there.",
        IdentifierList(),
        unset="none",
        blast="negative-seqidlist",
        form=FormField("Without these subjects", "Identifiers, one a line."),
    )
    ignore_missing_ids: bool = option(
        False,
        "Leave out identifiers and taxids that the database does not have; they are an error otherwise.",
        form=FormField(
            "Some of these may be missing", "Leave out identifiers and taxids that the database does not have."
        ),
    )
    taxids: tuple[int, ...] | None = option(
        None,
        "Report only subjects of these taxa and of all below: NCBI's numbers, such as 9606,10090, or a file with "
        "one a line. The database must know taxa (db build --taxids).",
        TaxidList(),
        unset="all",
        blast="taxids taxidlist",
        form=FormField(
            "Only these taxa", "NCBI's taxids, such as 9606, with all below them; for databases that know taxa."
        ),
    )
    exclude_taxids: tuple[int, ...] | None = option(
        None,
        "Leave out subjects of these taxa and of all below them.",
        TaxidList(),
        unset="none",
        blast="negative-taxids negative-taxidlist",
        form=FormField("Without these taxa", "Taxids, with all below them."),
    )


class FilterKeywords(TypedDict, total=False):
    """Keywords of `FilterTable`."""

    min_score: int | None
    min_identity: float | None
    min_query_coverage: float | None
    min_subject_coverage: float | None
    include_ids: Identifiers | None
    exclude_ids: Identifiers | None
    ignore_missing_ids: bool
    taxids: Taxids | None
    exclude_taxids: Taxids | None
