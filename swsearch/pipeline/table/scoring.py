"""Options of scoring, of masks and of translation."""

# no postponed annotations: the kinds of the options follow from them
from typing import TYPE_CHECKING, ClassVar, TypedDict

from swsearch.options.kinds import (
    Integer,
    Mask,
    Mode,
    QueryFormat,
    QueryRange,
    SearchPreset,
    SearchTask,
    Strand,
    SubjectAlphabet,
    SubjectMask,
)
from swsearch.options.row import NO_COMMAND, ONLY_COMMAND, FormField, Header, Heading, OptionTable, option
from swsearch.pipeline.table.values import MatrixValue

if TYPE_CHECKING:
    from pathlib import Path

    from swsearch.scoring import Matrix


class QueryTable(OptionTable, init=False):
    """Options of reading queries, which a `swsearch.Searcher` takes with each call."""

    HEADING: ClassVar = Heading.QUERIES

    query_format: QueryFormat = option(
        "auto",
        "auto, fasta; a3m, fasta-aligned, stockholm, clustal (an alignment becomes a profile); pssm, asn, hmm, "
        "hhm, json (profiles). Gapped FASTA must be named.",
        metavar="FORMAT",
        form=FormField(
            "Query format",
            "FASTA, an alignment (which becomes a profile), or profiles. Gapped FASTA must be chosen.",
            choices={
                "auto": "recognized by content",
                "fasta": "FASTA",
                "a3m": "an alignment: A3M",
                "fasta-aligned": "an alignment: gapped FASTA",
                "stockholm": "an alignment: Stockholm",
                "clustal": "an alignment: Clustal",
                "pssm": "a profile: PSI-BLAST, ASCII",
                "asn": "a profile: PSI-BLAST, ASN.1",
                "hmm": "a profile: HMMER",
                "hhm": "a profile: HH-suite",
                "json": "a profile: saved by swsearch",
            },
        ),
    )


class ScoringTable(OptionTable, init=False):
    """Options of scoring."""

    HEADING: ClassVar = Heading.SCORING

    mode: Mode = option(
        "local",
        "local (Smith-Waterman), global (Needleman-Wunsch) or semiglobal (end gaps are free).",
        python="Alignment mode: local (Smith-Waterman), global (Needleman-Wunsch) or semiglobal (end gaps are free).",
        header=Header.NEVER,
        form=FormField(
            "Mode",
            "Local (Smith-Waterman), global (Needleman-Wunsch), or semi-global: end gaps are free.",
            choices={"local": "local", "global": "global", "semiglobal": "semi-global"},
        ),
    )
    alphabet: SubjectAlphabet | None = option(
        None,
        "Letters of queries and subjects: protein, or letters of structure: tea (The Embedded Alphabet) or 3di "
        "(Foldseek's, with --matrix FILE).",
        python="Letters of queries and subjects: ``protein``, or letters of structure: ``tea`` (The Embedded "
        "Alphabet) or ``3di`` (Foldseek's, with ``matrix``, a file).",
        unset="protein",
        resets="task preset matrix gap_open gap_extend",
        header=Header.NEVER,
        form=FormField(
            "Alphabet",
            "Amino acids, or letters of structure. 3Di needs a matrix of your own.",
            choices={"protein": "amino acids", "3di": "3Di (Foldseek)", "tea": "TEA (The Embedded Alphabet)"},
        ),
    )
    preset: SearchPreset | None = option(
        None,
        "default: BLOSUM62 11/1; sensitive: PFASUM60 15/1, for distant homologs; short: PAM30 9/1, for peptides; "
        "context: PFASUM60 15/1, each residue scored by its neighbours, for the most distant homologs. --matrix and "
        "the gap costs override it.",
        unset="default; context with iterations in local mode, unless scores or published statistics are given",
        metavar="NAME",
        decides=False,
        resets="task matrix gap_open gap_extend",
        header=Header.NEVER,
        form=FormField(
            "Preset",
            "Matrix and gap costs for a purpose.",
            choices={
                "": "default; with iterations contexts",
                "default": "proteins (BLOSUM62)",
                "sensitive": "distant homologs (PFASUM60)",
                "short": "peptides (PAM30)",
                "context": "most distant homologs (contexts)",
            },
            group="main",
        ),
    )
    contexts: bool = option(
        False,
        "Score each residue of a query by its neighbours, as --preset context.",
        interfaces=NO_COMMAND,
    )
    task: SearchTask = option(
        "default",
        "short: --preset short --evalue 20000, as blastp-short, unless these options are given.",
        interfaces=ONLY_COMMAND,
        decides=False,
        resets="preset matrix gap_open gap_extend",
        blast="task",
        header=Header.NEVER,
    )
    matrix: "Matrix | None" = option(
        None,
        "Substitution matrix, with its own default gap costs.",
        MatrixValue(),
        unset="BLOSUM62",
        resets="task preset gap_open gap_extend",
        blast="matrix",
        others="mat mx mxfile sub-mat scoring-matrix score-matrix substitution-matrix datafile",
        url="MATRIX",
        header=Header.NEVER,
        form=FormField("Matrix", "With its own default gap costs.", unset="from the preset", group="main"),
    )
    gap_open: int | None = option(
        None,
        "Cost to open a gap. A gap of k residues costs open + k * extend.",
        Integer(),
        unset="the matrix's, 11 for BLOSUM62",
        blast="gapopen",
        others="gapo gop gap-open-cost gap-opening",
        url="GAPCOSTS",
        header=Header.NEVER,
        form=FormField("Gap open", unset="the matrix's", group="main"),
    )
    gap_extend: int | None = option(
        None,
        "Cost of each residue in a gap.",
        Integer(),
        unset="the matrix's, 1 for BLOSUM62",
        blast="gapextend",
        others="gape gex gapext gap-ext gap-extension gap-extend-cost",
        url="GAPCOSTS",
        header=Header.NEVER,
        form=FormField("Gap extend", unset="the matrix's", group="main"),
    )


class ScoringKeywords(TypedDict, total=False):
    """Keywords of `ScoringTable`."""

    mode: Mode
    alphabet: "SubjectAlphabet | None"
    preset: "SearchPreset | None"
    contexts: bool
    matrix: "Matrix | str | Path | None"
    gap_open: int | None
    gap_extend: int | None


_MASKS = {"none": "none", "lower": "lower case", "tantan": "low complexity (tantan)"}


class SequenceTable(OptionTable, init=False):
    """Options of masks and translation."""

    HEADING: ClassVar = Heading.TRANSLATION

    query_loc: tuple[int, int] | None = option(
        None,
        "Search only with these residues of each query, e.g. 10-80. Reported positions count on the whole query.",
        QueryRange(),
        python='Search only with these residues of each query, e.g. ``(10, 80)`` or ``"10-80"``, counted '
        "from 1. Reported positions count on the whole query.",
        unset="all",
        blast="query-loc",
        heading=Heading.QUERIES,
        form=FormField(
            "Query range", "First and last residue, e.g. 10-80. Reported positions count on the whole query."
        ),
    )
    query_mask: Mask = option(
        "none",
        "Query residues scored as X: none, lower (lower case) or tantan (low complexity).",
        metavar="MASK",
        heading=Heading.QUERIES,
        form=FormField("Mask queries", "Masked residues score as X.", choices=_MASKS),
    )
    subject_mask: SubjectMask = option(
        "database",
        "Subject residues scored as X: database (as in db build --mask), none, lower or tantan.",
        metavar="MASK",
        python="Subject residues scored as X: database (as the database was built), none, lower or tantan.",
        heading=Heading.SCORING,
        form=FormField(
            "Mask subjects",
            "Masked residues score as X. Alignments show them in lower case.",
            choices={"database": "as the database was built", **_MASKS},
        ),
    )
    translate: bool = option(
        False,
        "Queries are DNA: search with their six reading frames, as blastx. Local mode only.",
        header=Header.NEVER,
        form=FormField(
            "Queries are DNA",
            "Searches with the six reading frames of each query. One list of hits per query.",
        ),
    )
    genetic_code: int | None = option(
        None,
        "NCBI number of the genetic code.",
        Integer(),
        unset="1",
        requires="translate",
        blast="query-gencode",
        url="GENETIC_CODE",
        header=Header.NEVER,
        form=FormField("Genetic code", "NCBI number."),
    )
    strand: Strand | None = option(
        None,
        "Query strand to translate: both, plus or minus.",
        unset="both",
        requires="translate",
        blast="strand",
        form=FormField(
            "Strands",
            "Strands of the query to translate.",
            choices={"both": "both", "plus": "plus (as given)", "minus": "minus (reverse complement)"},
        ),
    )
    frame_shift: int | None = option(
        None,
        "Allow frameshifts of one nucleotide at COST each, e.g. 15, for noisy reads. CPU only, fitted E-values.",
        Integer(),
        unset="no frameshifts",
        metavar="COST",
        requires="translate",
        form=FormField(
            "Frameshift cost",
            "Cost of a frameshift of one nucleotide, e.g. 15, for noisy reads.",
        ),
    )
    allow_dna: bool = option(
        False,
        "Accept sequences that look like DNA as protein.",
        decides=False,  # a checkpoint knows the sequences
        heading=Heading.QUERIES,
        header=Header.NEVER,
        form=FormField("Accept DNA-like protein sequences", "They are an error otherwise.", group="translation"),
    )


class SequenceKeywords(TypedDict, total=False):
    """Keywords of `SequenceTable`."""

    query_loc: tuple[int, int] | str | None
    query_mask: Mask
    subject_mask: SubjectMask
    translate: bool
    genetic_code: int | None
    strand: "Strand | None"
    frame_shift: int | None
    allow_dna: bool
