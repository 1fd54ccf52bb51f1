"""The fields of the form: every option of a search with its words, in the order of the page, and what is typed there.

The words are those of the command line's help, less what only a command line has (names with dashes, files).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Literal

from swsearch.alphabet import PROTEIN
from swsearch.errors import OptionError
from swsearch.matrices import GAP_COSTS, OTHER_GAP_COSTS, PRESET_MATRICES
from swsearch.profiles.formats import QUERY_FORMATS
from swsearch.scoring import usable_matrices

FieldKind = Literal["choice", "whole", "real", "percentage", "flag", "lines", "text", "words"]

NOT_ON_THE_PAGE = {
    "distribution": "always asked for, since the report draws it",
    "inclusion": "rules that the command line has no options for either",
    "keep_next": "saves profiles, which no page shows; iterations of one search have theirs inside",
}
"""Options that the form has no field for, and why."""


@dataclass(frozen=True)
class FormField:
    """A field of the form.

    Parameters
    ----------
    name : str
        Of the option, as in `swsearch.remote.wire.OPTION_NAMES`, or of another part of a request.
    label, help : str
        Its words.
    kind : str
        What is typed: one of some words, a number, a percentage, a tick, words a line each, text, or a few words.
    default : str
        What an empty field means, shown where nothing is typed; of a choice the word that is chosen at first.
    choices : tuple of (str, str)
        Words and what the page says for them.
    """

    name: str
    label: str
    help: str
    kind: FieldKind
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()

    def value_of(self, text: str) -> Any:
        """Return what is typed as a request has it; None where it is what an empty field means.

        Raises
        ------
        OptionError
            If it is no number where one is expected.
        """
        trimmed = text.strip()
        if not trimmed or (self.kind == "choice" and trimmed == self.default):
            return None
        if self.kind == "flag":
            return True
        if self.kind == "lines":
            found = tuple(dict.fromkeys(word for each in trimmed.split() if (word := each.strip(",;"))))
            return found or None
        if self.kind in ("choice", "text", "words"):
            return text if self.kind == "text" else trimmed
        return self._number(trimmed)

    def _number(self, text: str) -> int | float:
        """Read a number as people write it: ``1e-5``, ``5M``, ``1,000``, ``50 %``."""
        found = _NUMBER.fullmatch(text.removesuffix("%").rstrip() if self.kind == "percentage" else text)
        if found is None:
            raise OptionError(self.name, text, _EXPECTED[self.kind])
        value = Decimal(re.sub("[,_]", "", found["digits"])) * _UNITS[found["unit"].lower()]
        if self.kind != "whole":
            return float(value)
        if value.adjusted() > _MOST_DIGITS or value != int(value):
            raise OptionError(self.name, text, _EXPECTED[self.kind])
        return int(value)


_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:\d{1,3}(?:[,_]\d{3})+|\d{1,40}(?=\D|$)|(?=\.\d))(?:\.\d{0,40})?(?:e[+-]?\d{1,4})?)\s?"
    r"(?P<unit>[kmgt]?)",
    re.ASCII | re.IGNORECASE,
)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_MOST_DIGITS = 18
_EXPECTED = {
    "whole": "a whole number, such as 500 or 5k",
    "real": "a number, such as 10, 0.001 or 1e-5",
    "percentage": "a percentage, 0 to 100",
}


@dataclass(frozen=True)
class FieldGroup:
    """Fields that stand together, under a heading."""

    name: str
    title: str
    fields: tuple[FormField, ...]


MASK_WORDS = (("none", "nothing"), ("lower", "lower-case letters"), ("tantan", "low complexity (tantan)"))

MAIN = (
    FormField("evalue", "E-value", "Largest E-value of a hit.", "real", "10"),
    FormField("max_hits", "Hits", "Most hits of a query: exactly the best.", "whole", "500"),
    FormField(
        "preset",
        "Purpose",
        "Chooses matrix and gap costs.",
        "choice",
        "default",
        (
            ("default", "proteins (BLOSUM62)"),
            ("sensitive", "more distant relatives (PFASUM60)"),
            ("short", "peptides (PAM30)"),
        ),
    ),
    FormField("matrix", "Matrix", "Brings its own gap costs.", "choice", ""),
    FormField("gap_open", "Gap open", "A gap of k costs open + k * extend.", "whole", "the matrix's"),
    FormField("gap_extend", "Gap extend", "Cost of each residue of a gap.", "whole", "the matrix's"),
)
"""What is seen at once."""

GROUPS = (
    FieldGroup(
        "translation",
        "DNA queries",
        (
            FormField(
                "translate",
                "Queries are DNA",
                "The proteins of their reading frames are searched with; one list of hits for each query.",
                "flag",
            ),
            FormField("genetic_code", "Genetic code", "By NCBI's number.", "whole", "1"),
            FormField(
                "strand",
                "Strands",
                "Whose three frames each are searched with.",
                "choice",
                "both",
                (("both", "both"), ("plus", "the one that is given"), ("minus", "the other one")),
            ),
            FormField(
                "frame_shift",
                "Frame shift",
                "What it costs that the frame changes along an alignment, such as 15; for noisy reads.",
                "whole",
                "none",
            ),
        ),
    ),
    FieldGroup(
        "scoring",
        "Alignment and masks",
        (
            FormField(
                "mode",
                "Mode",
                "Which ends are free: any part of both may align (local), none is left out (global), or only ends "
                "are free (semi-global).",
                "choice",
                "local",
                (("local", "local"), ("global", "global"), ("semiglobal", "semi-global")),
            ),
            FormField(
                "max_alignments",
                "Alignments of a hit",
                "At most; local mode. Each is the best that shares no pair of residues with those before and has an "
                "E-value of its own.",
                "whole",
                "1",
            ),
            FormField("query_mask", "Mask in queries", "What is scored as X.", "choice", "none", MASK_WORDS),
            FormField(
                "subject_mask",
                "Mask in subjects",
                "What is scored as X; the database's own is what it was built with. Shown in lower case.",
                "choice",
                "database",
                (("database", "the database's own"), *MASK_WORDS),
            ),
            FormField(
                "query_format",
                "Queries are",
                "FASTA, an alignment of which a profile is made, or profiles. FASTA with gaps must be named.",
                "choice",
                "auto",
            ),
            FormField(
                "query_loc",
                "Part of each query",
                "First and last residue, such as 10-80; positions count on the whole query.",
                "words",
                "all",
            ),
            FormField(
                "allow_dna", "Letters of DNA are protein", "Take sequences that hold only letters of DNA.", "flag"
            ),
            FormField(
                "matrix_text",
                "A matrix of your own",
                "In NCBI's format: letters above the columns and before the rows. It goes before all others.",
                "text",
            ),
        ),
    ),
    FieldGroup(
        "statistics",
        "Statistics",
        (
            FormField(
                "statistics",
                "E-values from",
                "Shuffled copies of each hit's sequence hold in every mode and for unusual compositions.",
                "choice",
                "auto",
                (
                    ("auto", "shuffled copies (usual)"),
                    ("fitted", "shuffled copies"),
                    ("published", "BLAST's constants"),
                    ("none", "no E-values"),
                ),
            ),
            FormField(
                "dbsize",
                "Database size",
                "Residues that E-values refer to, such as 5M or 1e9.",
                "whole",
                "the database's own",
            ),
            FormField(
                "sort",
                "Order of hits",
                "By E-value, then score; or by score alone. The best in this order are kept.",
                "choice",
                "evalue",
                (("evalue", "E-value"), ("score", "score")),
            ),
        ),
    ),
    FieldGroup(
        "filters",
        "Filters: the best hits that pass are reported",
        (
            FormField("min_score", "Least score", "Raw score, in units of the matrix.", "whole", "none"),
            FormField(
                "min_identity", "Least identity, %", "Identical columns of the alignment.", "percentage", "none"
            ),
            FormField(
                "min_query_coverage",
                "Least query coverage, %",
                "Part of the query from first to last aligned residue.",
                "percentage",
                "none",
            ),
            FormField(
                "min_subject_coverage", "Least subject coverage, %", "The same of the subject.", "percentage", "none"
            ),
            FormField(
                "include_ids",
                "Only these subjects",
                "Identifiers, one a line; E-values refer to the whole database.",
                "lines",
                "all",
            ),
            FormField("exclude_ids", "Without these subjects", "Identifiers, one a line.", "lines", "none"),
            FormField(
                "taxids",
                "Only these taxa",
                "NCBI's taxids, such as 9606, with all below them; for databases that know taxa.",
                "lines",
                "all",
            ),
            FormField("exclude_taxids", "Without these taxa", "Taxids, with all below them.", "lines", "none"),
            FormField(
                "ignore_missing_ids",
                "Some of these may be missing",
                "Leave out identifiers and taxids that the database does not have.",
                "flag",
            ),
        ),
    ),
    FieldGroup(
        "iterations",
        "Iterations: what a search finds makes the profile that searches next",
        (
            FormField(
                "iterations",
                "Searches at most",
                "It stops when the subjects that make the profile stay the same. Results are those of the last.",
                "whole",
                "1",
            ),
            FormField(
                "inclusion_evalue",
                "E-value for a profile",
                "Largest E-value of what makes the next profile.",
                "real",
                "0.002",
            ),
            FormField(
                "inclusion_coverage",
                "Coverage for a profile, %",
                "Least part of the query's positions that an alignment pairs.",
                "percentage",
                "0",
            ),
            FormField(
                "max_included",
                "Subjects in a profile",
                "At most, the best ones. Hits and filters are for reports alone.",
                "whole",
                "5000",
            ),
        ),
    ),
)
"""What is folded."""

FORM_FIELDS: Mapping[str, FormField] = {
    each.name: each for each in (*MAIN, *(each for group in GROUPS for each in group.fields))
}
"""Every field of an option, by name."""

FORMAT_WORDS = {
    "auto": "what their content says",
    "fasta": "FASTA",
    "a3m": "an alignment: A3M",
    "fasta-aligned": "an alignment: FASTA with gaps",
    "stockholm": "an alignment: Stockholm",
    "clustal": "an alignment: Clustal",
    "pssm": "a profile: PSI-BLAST, text",
    "asn": "a profile: PSI-BLAST, ASN.1",
    "hmm": "a profile: HMMER",
    "hhm": "a profile: HH-suite",
    "json": "a profile: saved by swsearch",
}


def choices_of(field: FormField) -> tuple[tuple[str, str], ...]:
    """Return the words that a field takes, with what the page says for each."""
    if field.name == "matrix":
        return (
            ("", "the purpose's"),
            *((name, f"{name} ({opened}/{extended})") for name, opened, extended in costs()),
        )
    if field.name == "query_format":
        return tuple((name, FORMAT_WORDS.get(name, name)) for name in QUERY_FORMATS)
    return field.choices


@cache
def costs() -> tuple[tuple[str, int, int], ...]:
    """Return every matrix with the gap costs that go with it, those that are shipped first."""
    names = (*GAP_COSTS, *(name for name in usable_matrices(PROTEIN) if name not in GAP_COSTS))
    return tuple((name, *GAP_COSTS.get(name, OTHER_GAP_COSTS)) for name in names)


def costs_of_preset(preset: str) -> tuple[int, int]:
    """Return the gap costs that go with a preset's matrix."""
    return GAP_COSTS[PRESET_MATRICES[preset]]  # type: ignore[index]  # the form has no other words
