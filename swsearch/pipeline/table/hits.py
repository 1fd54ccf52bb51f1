"""Options of hits: E-values, order, number and filters."""

# no postponed annotations: the kinds of the options follow from them
from typing import ClassVar, TypedDict

from swsearch.options.kinds import MAX_INTEGER, Integer, Percentage, Real, SortKey, StatisticsMethod
from swsearch.options.row import NO_COMMAND, FormField, Header, Heading, OptionTable, option
from swsearch.pipeline.table.values import IdentifierList, Identifiers, TaxidList, Taxids


class SelectionTable(OptionTable, init=False):
    """Options of the number, order and E-values of hits."""

    HEADING: ClassVar = Heading.HITS

    evalue: float | None = option(
        None,
        "Maximum E-value of a hit.",
        Real(is_positive=True),
        unset="10",
        blast="evalue",
        others="e E domE expect max-evalue e-value",
        url="EXPECT",
        header=Header.NEVER,
        form=FormField("Maximum E-value", group="main"),
    )
    max_hits: int = option(
        500,
        "Maximum number of hits per query, after filtering.",
        Integer(1),
        blast="max-target-seqs",
        others="num-alignments num-descriptions max-seqs topscore-num num-hits hits limit k b n",
        url="HITLIST_SIZE",
        header=Header.NEVER,
        form=FormField("Maximum hits", "Per query, the best ones.", group="main"),
    )
    sort: SortKey = option(
        "evalue",
        "Order of hits: evalue (then score) or score.",
        metavar="KEY",
        form=FormField(
            "Order of hits",
            "By E-value, then score; or by score only.",
            choices={"evalue": "E-value", "score": "score"},
        ),
    )
    dbsize: int | None = option(
        None,
        "Database size for E-values, e.g. 5M or 1e9.",
        Integer(1, expected=f"a number of residues from 1 to {MAX_INTEGER:.0e}"),
        unset="actual size",
        metavar="RESIDUES",
        blast="dbsize",
        others="db-size z",
        header=Header.NEVER,
        form=FormField("Database size", "Residues for E-values, e.g. 5M or 1e9."),
    )
    statistics: StatisticsMethod = option(
        "auto",
        "Source of E-values: fitted (shuffled sequences, any mode; auto is the same), published (BLAST's constants) "
        "or none.",
        metavar="METHOD",
        url="COMPOSITION_BASED_STATISTICS",
        header=Header.NEVER,
        form=FormField(
            "E-values from",
            "Shuffled sequences are valid in every mode and for biased compositions.",
            choices={
                "auto": "shuffled sequences (default)",
                "fitted": "shuffled sequences",
                "published": "BLAST's constants",
                "none": "no E-values",
            },
        ),
    )
    max_alignments: int = option(
        1,
        "Maximum number of alignments (HSPs) per hit, in local mode. They share no residue pair; each has its own "
        "E-value.",
        Integer(1),
        blast="max-hsps",
        others="hsps alt-ali",
        form=FormField(
            "Alignments per hit",
            "Maximum, in local mode. They share no residue pair; each has its own E-value.",
        ),
    )
    distribution: bool = option(
        False,
        "Keep the distribution of all scores of the database.",
        interfaces=NO_COMMAND,
        header=Header.NEVER,
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


class FilterTable(OptionTable, init=False):
    """Filters of hits."""

    HEADING: ClassVar = Heading.FILTERS

    min_score: int | None = option(
        None,
        "Minimum raw score.",
        Integer(-MAX_SCORE, MAX_SCORE, f"an integer in matrix units, of magnitude up to {MAX_SCORE:,}"),
        unset="none",
        form=FormField("Minimum score", "Raw score, in matrix units."),
    )
    min_identity: float | None = option(
        None,
        "Minimum percentage of identical alignment columns.",
        Percentage(),
        unset="none",
        others="id identity perc-identity pident approx-id",
        form=FormField("Minimum identity (%)", "Identical alignment columns."),
    )
    min_query_coverage: float | None = option(
        None,
        "Minimum percentage of the query between first and last aligned residue.",
        Percentage(),
        unset="none",
        spellings="--min-query-coverage --min-coverage",
        blast="qcov-hsp-perc",
        others="query-cover qcov query-coverage",
        form=FormField("Minimum query coverage (%)", "Query between first and last aligned residue."),
    )
    min_subject_coverage: float | None = option(
        None,
        "Minimum percentage of the subject, likewise.",
        Percentage(),
        unset="none",
        others="subject-cover scov subject-coverage target-cover",
        form=FormField("Minimum subject coverage (%)", "Subject between first and last aligned residue."),
    )
    include_ids: tuple[str, ...] | None = option(
        None,
        "Report only these subjects: one identifier or accession per line. E-values still refer to the whole "
        "database.",
        IdentifierList(),
        python="Identifiers or accessions of the only subjects to report; a string is the name of a file with "
        "one per line. E-values still refer to the whole database.",
        unset="all",
        blast="seqidlist",
        others="seqid-list ids",
        form=FormField(
            "Include only subjects", "Identifiers, one per line. E-values still refer to the whole database."
        ),
    )
    exclude_ids: tuple[str, ...] | None = option(
        None,
        "Exclude these subjects.",
        IdentifierList(),
        python="Identifiers or accessions of subjects to exclude, likewise.",
        unset="none",
        blast="negative-seqidlist",
        form=FormField("Exclude subjects", "Identifiers, one per line."),
    )
    ignore_missing_ids: bool = option(
        False,
        "Skip identifiers and taxids that the database does not have, instead of failing.",
        form=FormField("Ignore unknown identifiers", "Skip identifiers and taxids that the database does not have."),
    )
    taxids: tuple[int, ...] | None = option(
        None,
        "Report only these NCBI taxids and their descendants, e.g. 9606,10090. Needs a database with taxids (db "
        "build --taxids).",
        TaxidList(),
        python="NCBI taxids to report, with their descendants; a string is a list such as ``9606,10090``, or "
        "the name of a file with one per line. Needs a database with taxids.",
        unset="all",
        blast="taxids taxidlist",
        form=FormField(
            "Include only taxa", "NCBI taxids, e.g. 9606, with their descendants. Needs a database with taxids."
        ),
    )
    exclude_taxids: tuple[int, ...] | None = option(
        None,
        "Exclude these taxids and their descendants.",
        TaxidList(),
        python="NCBI taxids to exclude, with their descendants, likewise.",
        unset="none",
        blast="negative-taxids negative-taxidlist",
        form=FormField("Exclude taxa", "NCBI taxids, with their descendants."),
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
