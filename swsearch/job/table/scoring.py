"""Options of scoring, of masks and of translation."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypedDict, Union

from swsearch.job.table.values import MatrixValue
from swsearch.options.kinds import Integer, QueryRange
from swsearch.options.row import ONLY_COMMAND, FormField, Heading, OptionTable, option
from swsearch.options.words import Mask, Mode, Preset, QueryFormat, SearchTask, Strand, SubjectMask

if TYPE_CHECKING:
    from pathlib import Path

    from swsearch.scoring import Matrix


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class QueryTable(OptionTable):
    """Options of reading queries, which a `swsearch.Searcher` takes with each call."""

    HEADING: ClassVar = Heading.SCORING

    query_format: QueryFormat = option(
        "auto",
        "What QUERIES holds: FASTA; an alignment, of which a profile is made (a3m, fasta-aligned, stockholm, "
        "clustal); or profiles: PSI-BLAST's (pssm, asn), HMMER's (hmm), HH-suite's (hhm), saved ones (json). "
        "auto is what the content says; FASTA with gaps must be named.",
        form=FormField(
            "Queries are",
            "FASTA, an alignment of which a profile is made, or profiles. FASTA with gaps must be named.",
            choices={
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
            },
        ),
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class ScoringTable(OptionTable):
    """How pairs are scored."""

    HEADING: ClassVar = Heading.SCORING

    mode: Mode = option(
        "local",
        "Free ends: any part (local), none (global), all four (semiglobal).",
        form=FormField(
            "Mode",
            "Which ends are free: any part of both may align (local), none is left out (global), or only ends "
            "are free (semi-global).",
            choices={"local": "local", "global": "global", "semiglobal": "semi-global"},
        ),
    )
    task: SearchTask = option(
        "default",
        "short is for peptides: --preset short and --evalue 20000, which go with it as with blastp-short; other "
        "options go before it.",
        interfaces=ONLY_COMMAND,
        decides=False,
        resets="preset matrix gap_open gap_extend",
        blast="task",
    )
    preset: Preset = option(
        "default",
        "Matrix and gap costs for a purpose: default is BLOSUM62 11/1, sensitive PFASUM60 15/1 (finds more "
        "distant relatives), short PAM30 9/1 (peptides). --matrix, which brings its own gap costs, --gap-open "
        "and --gap-extend go before it.",
        decides=False,
        resets="task matrix gap_open gap_extend",
        form=FormField(
            "Purpose",
            "Chooses matrix and gap costs.",
            choices={
                "default": "proteins (BLOSUM62)",
                "sensitive": "more distant relatives (PFASUM60)",
                "short": "peptides (PAM30)",
            },
            group="main",
        ),
    )
    matrix: "Matrix | None" = option(
        None,
        "Substitution matrix: a name or a file.",
        MatrixValue(),
        unset="the preset's, BLOSUM62",
        resets="task preset gap_open gap_extend",
        blast="matrix",
        others="mat mx mxfile sub-mat scoring-matrix score-matrix substitution-matrix datafile",
        url="MATRIX",
        form=FormField("Matrix", "Brings its own gap costs.", unset="the purpose's", group="main"),
    )
    gap_open: int | None = option(
        None,
        "A gap of k costs open + k * extend.",
        Integer(),
        unset="the matrix's own, 11 for BLOSUM62",
        blast="gapopen",
        others="gapo gop gap-open-cost gap-opening",
        url="GAPCOSTS",
        form=FormField("Gap open", unset="the matrix's", group="main"),
    )
    gap_extend: int | None = option(
        None,
        "Cost of each residue of a gap.",
        Integer(),
        unset="the matrix's own, 1 for BLOSUM62",
        blast="gapextend",
        others="gape gex gapext gap-ext gap-extension gap-extend-cost",
        url="GAPCOSTS",
        form=FormField("Gap extend", unset="the matrix's", group="main"),
    )


class ScoringKeywords(TypedDict, total=False):
    """Keywords of `ScoringTable`."""

    mode: Mode
    preset: Preset | None
    matrix: Union["Matrix", str, "Path", None]
    gap_open: int | None
    gap_extend: int | None


_MASKS = {"none": "nothing", "lower": "lower-case letters", "tantan": "low complexity (tantan)"}


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class SequenceTable(OptionTable):
    """How sequences are read."""

    HEADING: ClassVar = Heading.SCORING

    query_loc: tuple[int, int] | None = option(
        None,
        "Search with these residues of each query, counted from 1, such as 10-80; positions count on the whole "
        "query, its length and coverage are those of the part.",
        QueryRange(),
        unset="all",
        blast="query-loc",
        form=FormField(
            "Part of each query", "First and last residue, such as 10-80; positions count on the whole query."
        ),
    )
    query_mask: Mask = option(
        "none",
        "What of the queries is scored as X: none, its lower case, or low complexity (tantan).",
        form=FormField("Mask in queries", "What is scored as X.", choices=_MASKS),
    )
    subject_mask: SubjectMask = option(
        "database",
        "The same of the subjects; database is what db build --mask says. Alignments show masked residues in "
        "lower case. Without masks scores and E-values are those of blastp -seg no.",
        form=FormField(
            "Mask in subjects",
            "What is scored as X; the database's own is what it was built with. Shown in lower case.",
            choices={"database": "the database's own", **_MASKS},
        ),
    )
    translate: bool = option(
        False,
        "QUERIES are DNA: search with the proteins of all six frames, one ranking a query, positions on the DNA. "
        "Local mode.",
        form=FormField(
            "Queries are DNA",
            "The proteins of their reading frames are searched with; one list of hits for each query.",
            group="translation",
        ),
    )
    genetic_code: int | None = option(
        None,
        "With --translate: the genetic code, by NCBI's number.",
        Integer(),
        unset="1, the standard code",
        requires="translate",
        blast="query-gencode",
        url="GENETIC_CODE",
        form=FormField("Genetic code", "By NCBI's number.", unset="1", group="translation"),
    )
    strand: Strand | None = option(
        None,
        "With --translate: the frames of both strands, of the one that is given, or of the other one.",
        unset="both",
        requires="translate",
        blast="strand",
        form=FormField(
            "Strands",
            "Whose three frames each are searched with.",
            choices={"both": "both", "plus": "the one that is given", "minus": "the other one"},
            group="translation",
        ),
    )
    frame_shift: int | None = option(
        None,
        "With --translate: let the frame change along an alignment, by one nucleotide before a codon, for COST; "
        "for noisy reads, such as 15. On the CPU, E-values fitted.",
        Integer(),
        unset="frames do not change",
        metavar="COST",
        requires="translate",
        form=FormField(
            "Frame shift",
            "What it costs that the frame changes along an alignment, such as 15; for noisy reads.",
            unset="none",
            group="translation",
        ),
    )
    allow_dna: bool = option(
        False,
        "Take sequences for protein that hold only letters of DNA.",
        decides=False,  # a checkpoint knows the sequences
        form=FormField("Letters of DNA are protein", "Take sequences that hold only letters of DNA."),
    )


class SequenceKeywords(TypedDict, total=False):
    """Keywords of `SequenceTable`."""

    query_loc: tuple[int, int] | str | None
    query_mask: Mask
    subject_mask: SubjectMask
    translate: bool
    genetic_code: int | None
    strand: Strand | None
    frame_shift: int | None
    allow_dna: bool
