"""Options that several commands share, each stated once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from swsearch.cli.numbers import devices, percentage, real, whole

RUNS_OPTION = whole("a whole number from 1 to 1,000", 1, 1000)
"""Parser of --runs of what measures: more would run for days."""


def outfmt_words(incomplete: str) -> list[str]:
    """Return the formats that begin so."""
    from swsearch.report import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def matrix_words(incomplete: str) -> list[str]:
    """Return the matrices that are shipped and begin so."""
    from swsearch.matrices import GAP_COSTS

    return [name for name in GAP_COSTS if name.startswith(incomplete)]


class ModeName(StrEnum):
    """Values of --mode."""

    local = "local"
    # "global" is a keyword, so the member has another name than its value
    global_ = "global"
    semiglobal = "semiglobal"


class AlphabetName(StrEnum):
    """Values of --alphabet."""

    protein = "protein"
    dna = "dna"


class PresetName(StrEnum):
    """Values of --preset."""

    default = "default"
    sensitive = "sensitive"
    short = "short"


class TaskName(StrEnum):
    """Values of --task."""

    default = "default"
    short = "short"


class MaskName(StrEnum):
    """Values of --query-mask, and of --mask of db build."""

    none = "none"
    lower_ = "lower"  # str.lower is a method
    tantan = "tantan"


class SubjectMaskName(StrEnum):
    """Values of --subject-mask."""

    database = "database"
    none = "none"
    lower_ = "lower"  # str.lower is a method
    tantan = "tantan"


class EngineName(StrEnum):
    """Values of --engine."""

    auto = "auto"
    gpu = "gpu"
    cpu = "cpu"
    reference = "reference"


class ProgressName(StrEnum):
    """Values of --progress."""

    auto = "auto"
    bar = "bar"
    lines = "lines"
    json = "json"
    none = "none"


class StatisticsName(StrEnum):
    """Values of --statistics."""

    auto = "auto"
    published = "published"
    fitted = "fitted"
    none = "none"


class StrandName(StrEnum):
    """Values of --strand."""

    both = "both"
    plus = "plus"
    minus = "minus"


class SortName(StrEnum):
    """Values of --sort."""

    evalue = "evalue"
    score = "score"


class QueryFormatName(StrEnum):
    """Values of --query-format."""

    auto = "auto"
    fasta = "fasta"
    a3m = "a3m"
    fasta_aligned = "fasta-aligned"
    stockholm = "stockholm"
    clustal = "clustal"
    pssm = "pssm"
    asn = "asn"
    hmm = "hmm"
    hhm = "hhm"
    json = "json"


SCORING, STATISTICS, OUTPUT, RUN = "Scoring", "Statistics and hits", "Output", "Running"
FILTERS = "Filters: the best hits that pass are reported, --max-hits of them"
ITERATIONS = "Iterations: what a search finds makes the profile that searches next"

QueryFormatOption = Annotated[
    QueryFormatName,
    typer.Option(
        help="What QUERIES holds: FASTA; an alignment, of which a profile is made (a3m, fasta-aligned, stockholm, "
        "clustal); or profiles: PSI-BLAST's (pssm, asn), HMMER's (hmm), HH-suite's (hhm), saved ones (json). auto is "
        "what the content says; FASTA with gaps must be named.",
        rich_help_panel=SCORING,
    ),
]
QueryLocOption = Annotated[
    str | None,
    typer.Option(
        metavar="FIRST-LAST",
        help="Search with these residues of each query, counted from 1, such as 10-80; positions count on the whole "
        "query, its length and coverage are those of the part.",
        show_default="all",
        rich_help_panel=SCORING,
    ),
]
ModeOption = Annotated[
    ModeName,
    typer.Option(help="Free ends: any part (local), none (global), all four (semiglobal).", rich_help_panel=SCORING),
]
PresetOption = Annotated[
    PresetName,
    typer.Option(
        help="Matrix and gap costs for a purpose: default is BLOSUM62 11/1, sensitive PFASUM60 15/1 (finds more "
        "distant relatives), short PAM30 9/1 (peptides). --matrix, which brings its own gap costs, --gap-open and "
        "--gap-extend go before it.",
        rich_help_panel=SCORING,
    ),
]
TaskOption = Annotated[
    TaskName,
    typer.Option(
        help="short is for peptides: --preset short and --evalue 20000, which go with it as with blastp-short; other "
        "options go before it.",
        rich_help_panel=SCORING,
    ),
]
MatrixOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Substitution matrix: a name or a file.",
        autocompletion=matrix_words,
        show_default="the preset's, BLOSUM62",
        rich_help_panel=SCORING,
    ),
]
GapOpenOption = Annotated[
    int | None,
    typer.Option(
        parser=whole(),
        metavar="N",
        help="A gap of k costs open + k * extend.",
        show_default="the matrix's own, 11 for BLOSUM62",
        rich_help_panel=SCORING,
    ),
]
GapExtendOption = Annotated[
    int | None,
    typer.Option(
        parser=whole(),
        metavar="N",
        help="Cost of each residue of a gap.",
        show_default="the matrix's own, 1 for BLOSUM62",
        rich_help_panel=SCORING,
    ),
]
TranslateOption = Annotated[
    bool,
    typer.Option(
        "--translate",
        help="QUERIES are DNA: search with the proteins of all six frames, one ranking a query, positions on the "
        "DNA. Local mode.",
        rich_help_panel=SCORING,
    ),
]
GeneticCodeOption = Annotated[
    int | None,
    typer.Option(
        parser=whole(),
        metavar="N",
        help="With --translate: the genetic code, by NCBI's number.",
        show_default="1, the standard code",
        rich_help_panel=SCORING,
    ),
]
StrandOption = Annotated[
    StrandName | None,
    typer.Option(
        help="With --translate: the frames of both strands, of the one that is given, or of the other one.",
        show_default="both",
        rich_help_panel=SCORING,
    ),
]
FrameShiftOption = Annotated[
    int | None,
    typer.Option(
        parser=whole(),
        metavar="COST",
        help="With --translate: let the frame change along an alignment, by one nucleotide before a codon, for COST; "
        "for noisy reads, such as 15. On the CPU, E-values fitted.",
        show_default="frames do not change",
        rich_help_panel=SCORING,
    ),
]
AllowDnaOption = Annotated[
    bool,
    typer.Option(
        "--allow-dna", help="Take sequences for protein that hold only letters of DNA.", rich_help_panel=SCORING
    ),
]
TaxidsOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST|FILE",
        help="Report only subjects of these taxa and of all below: NCBI's numbers, such as 9606,10090, or a file "
        "with one a line. The database must know taxa (db build --taxids).",
        show_default="all",
        rich_help_panel=FILTERS,
    ),
]
ExcludeTaxidsOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST|FILE",
        help="Leave out subjects of these taxa and of all below them.",
        show_default="none",
        rich_help_panel=FILTERS,
    ),
]
IgnoreMissingIdsOption = Annotated[
    bool,
    typer.Option(
        "--ignore-missing-ids",
        help="Leave out identifiers and taxids that the database does not have; they are an error otherwise.",
        rich_help_panel=FILTERS,
    ),
]
EngineOption = Annotated[
    EngineName,
    typer.Option(help="What scores; auto is the GPU where it can be used, else the CPU.", rich_help_panel=RUN),
]
DeviceOption = Annotated[
    Any,  # int | tuple[int, ...] | str | None, but typer takes no unions
    typer.Option(
        parser=devices,
        metavar="N,...|all",
        help="Which GPU, as swsearch doctor numbers them; several, which share the work, with commas between them "
        "(0,1), or all that can be used.",
        show_default="the one with the most multiprocessors",
        rich_help_panel=RUN,
    ),
]
GpuMemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Most GPU memory to use, on each GPU, such as 512M or 2G; a larger database streams.",
        show_default="nearly all that is free",
        rich_help_panel=RUN,
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        parser=whole(),
        metavar="N",
        help="Worker threads, at most one a processor.",
        show_default="one a processor",
        rich_help_panel=RUN,
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where to write.", show_default="stdout", rich_help_panel=OUTPUT
    ),
]
OutputsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write; again for a further file, of another format.",
        show_default="stdout",
        rich_help_panel=OUTPUT,
    ),
]
OutputFormatsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FMT",
        help="0 pairwise, 5 BLAST XML, 6 tabular, 7 tabular with comments, 10 comma separated, 15 or json BLAST's "
        "JSON, jsonl (a line of JSON per query), html, sam, paf, parquet, arrow, a3m, "
        "fasta-aligned, stockholm (the hits below the query); '6 qseqid sseqid score ...' chooses "
        "columns. With several outputs one for each, in the same order.",
        show_default="by the file's extension, else 6",
        autocompletion=outfmt_words,
        rich_help_panel=OUTPUT,
    ),
]
HeaderOption = Annotated[
    bool,
    typer.Option(
        "--header", help="Begin tables of --outfmt 6 and 10 with the columns' names.", rich_help_panel=OUTPUT
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.", rich_help_panel=OUTPUT)]
ProgressOption = Annotated[
    ProgressName,
    typer.Option(
        help="How stderr tells how far the work is: a bar, lines from time to time, or objects of JSON, one per "
        "line; auto is a bar in a terminal, lines elsewhere, and nothing with --quiet.",
        rich_help_panel=OUTPUT,
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Options from a file of TOML, by long names (max-hits = 10), or of a report of --outfmt jsonl or html, "
        "which holds those of its search. The command line goes before them.",
        show_default="none",
        rich_help_panel=RUN,
    ),
]
SaveConfigOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Write there what decides the hits of this search, defaults included, for --config.",
        show_default="none",
        rich_help_panel=OUTPUT,
    ),
]
CheckpointOption = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep what is done there; the same command goes on from it when it was ended or killed, and writes the "
        "same. What is kept of other inputs, options or another version is refused.",
        show_default="none",
        rich_help_panel=RUN,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|local:N",
        help="Search by the workers of a Dask cluster: the address of its scheduler, such as tcp://host:8786, or N "
        "workers on this machine, among which --threads are divided. SUBJECTS are then database files that they can "
        "read; --engine and --gpu-memory are for each of them, and each takes a GPU of its own.",
        show_default="none",
        rich_help_panel=RUN,
    ),
]
TaskTimeoutOption = Annotated[
    float | None,
    typer.Option(
        parser=real("a number of seconds > 0, such as 600"),
        metavar="SECONDS",
        help="With --cluster: a worker that gives nothing for so long counts as lost, and others do its work.",
        show_default="20 times what such tasks took before",
        rich_help_panel=RUN,
    ),
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say more about the run.", rich_help_panel=OUTPUT)
]
SubjectsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SUBJECTS...",
        help="A database, the manifest of one in volumes, or a FASTA file (read into memory); several are searched "
        "as one. search takes a database of a server, too: http://host:8080/sprot.",
    ),
]
MemoryOption = Annotated[str, typer.Option(metavar="SIZE", help="Memory to use, such as 512M or 2G.")]


IterationsOption = Annotated[
    int,
    typer.Option(
        parser=whole("a whole number from 1 to 1,000", 1, 1000),
        metavar="N",
        help="Searches of each query at most; it stops when the subjects that make its profile stay the same. "
        "Results are those of the last. A profile that was saved goes on with the iteration after its own.",
        rich_help_panel=ITERATIONS,
    ),
]
InclusionEvalueOption = Annotated[
    float,
    typer.Option(
        parser=real(),
        metavar="NUMBER",
        help="Largest E-value of what makes the next profile.",
        rich_help_panel=ITERATIONS,
    ),
]
InclusionCoverageOption = Annotated[
    float,
    typer.Option(
        parser=percentage,
        metavar="PERCENT",
        help="Least part of the query's positions that an alignment pairs, to be in a profile.",
        rich_help_panel=ITERATIONS,
    ),
]
MaxIncludedOption = Annotated[
    int,
    typer.Option(
        parser=whole(),
        metavar="N",
        help="Most subjects in a profile, the best ones. --max-hits and filters are for reports alone.",
        rich_help_panel=ITERATIONS,
    ),
]


SaveProfileOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Save the profile that the last iteration makes of each query, in the format of FILE's ending: .json or "
        ".jsonl (JSON lines, as - on stdout; another search goes on from it), .hmm (HMMER), or for one query .asn, "
        ".smp or .chk (psiblast -in_pssm), .pssm (psiblast's ASCII), .hhm (HH-suite).",
        show_default="none",
        rich_help_panel=ITERATIONS,
    ),
]
SaveMsaOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Save the alignments that these profiles are made of: a folder for a file of A3M per query, or a name "
        "that ends in .sto for all as Stockholm.",
        show_default="none",
        rich_help_panel=ITERATIONS,
    ),
]


def _percentage(text: str, *names: str) -> Any:
    """Make an option for a percentage of alignments."""
    return typer.Option(
        *names, parser=percentage, metavar="PERCENT", help=text, show_default="none", rich_help_panel=FILTERS
    )


MinIdentityOption = Annotated[
    float | None,
    _percentage(
        "Least identity of the alignment. This and coverage align candidates, the best first, until enough pass; "
        "memory: 16 bytes for each subject that reaches the E-value threshold."
    ),
]
MinQueryCoverageOption = Annotated[
    float | None,
    _percentage(
        "Least part of the query from first to last aligned residue.", "--min-query-coverage", "--min-coverage"
    ),
]
MinSubjectCoverageOption = Annotated[float | None, _percentage("The same of the subject.")]


class DuplicateName(StrEnum):
    """Values of --on-duplicate."""

    error = "error"
    skip = "skip"
    replace_ = "replace"  # str.replace is a method
    keep = "keep"


DatabaseArgument = Annotated[
    str, typer.Argument(metavar="DB.h5", help="A database that db build made, or the manifest of one in volumes.")
]
TaxidsOfOption = Annotated[
    str | None,
    typer.Option(
        "--taxids",
        metavar="FILE|header",
        help="Which taxa the sequences are of: a file of accessions and taxids, in two columns or in the four of "
        "NCBI's prot.accession2taxid.gz; or header, where headers say it (OX=9606, TaxID=9606).",
        show_default="not known",
    ),
]

TaxonomyOption = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="NCBI's taxonomy, of which the database keeps what it needs: a folder with nodes.dmp and names.dmp, "
        "or taxdump.tar.gz.",
        show_default="none: taxa have no names, and nothing stands below them",
    ),
]

VolumeSizeOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Most bytes of a file, such as 8G: volumes DB.000.h5, DB.001.h5 and so on are written beside --output, "
        "which becomes a small manifest, DB.json, that stands for all of them.",
        show_default="no volumes",
    ),
]
IdsOption = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="FILE",
        help="A list, an identifier a line, plain or compressed; lines that begin with # are comments; - is stdin.",
        show_default="none",
    ),
]
