"""The command line: parse, call, print; the work is done elsewhere."""

from __future__ import annotations

import json
import signal
import sys
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.bench_commands import bench_app
from swsearch.console import (
    ProgressBar,
    check_output,
    command,
    finish,
    open_output,
    parse_size,
    say,
    terminate,
)
from swsearch.errors import InputError, OptionError, SwsearchError
from swsearch.warm_up import warm_up_gpu

if TYPE_CHECKING:
    from swsearch.job import SearchJob
    from swsearch.scoring import Scoring

app = typer.Typer(
    name="swsearch",
    help="Search protein databases exactly: Smith-Waterman with E-values and alignments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db_app = typer.Typer(help="Build and look after database files.", no_args_is_help=True)
app.add_typer(db_app, name="db")
app.add_typer(bench_app, name="bench")


class ModeName(str, Enum):
    """Values of --mode."""

    local = "local"
    # "global" is a keyword, so the member has another name than its value
    global_ = "global"
    semiglobal = "semiglobal"


class AlphabetName(str, Enum):
    """Values of --alphabet."""

    protein = "protein"
    dna = "dna"


class EngineName(str, Enum):
    """Values of --engine."""

    auto = "auto"
    gpu = "gpu"
    cpu = "cpu"
    reference = "reference"


SCORING, STATISTICS, OUTPUT, RUN = "Scoring", "Statistics and hits", "Output", "Running"

Mode = Annotated[
    ModeName,
    typer.Option(help="Free ends: any part (local), none (global), all four (semiglobal).", rich_help_panel=SCORING),
]
MatrixName = Annotated[
    str, typer.Option(metavar="NAME|FILE", help="Substitution matrix: a name or a file.", rich_help_panel=SCORING)
]
GapOpen = Annotated[int, typer.Option(help="A gap of k costs open + k * extend.", rich_help_panel=SCORING)]
GapExtend = Annotated[int, typer.Option(help="Cost of each residue of a gap.", rich_help_panel=SCORING)]
Engine = Annotated[
    EngineName,
    typer.Option(help="What scores; auto is the GPU where it can be used, else the CPU.", rich_help_panel=RUN),
]
Device = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Which GPU, as swsearch doctor numbers them.",
        show_default="the one with the most multiprocessors",
        rich_help_panel=RUN,
    ),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Most GPU memory to use, such as 512M or 2G; a larger database streams.",
        show_default="nearly all that is free",
        rich_help_panel=RUN,
    ),
]
Threads = Annotated[
    int | None, typer.Option(help="Worker threads.", show_default="one a processor", rich_help_panel=RUN)
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where to write.", show_default="stdout", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.", rich_help_panel=OUTPUT)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more about the run.", rich_help_panel=OUTPUT)]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Memory to use, such as 512M or 2G.")]


def main() -> None:
    """Run the command line and exit with BLAST+'s codes."""
    signal.signal(signal.SIGTERM, terminate)  # so that temporary files are removed
    try:
        app()
    except SystemExit as end:
        # the parser ends with 2 for a bad option, which is BLAST's code for a bad database
        sys.exit(1 if end.code == 2 else end.code)
    except SwsearchError as error:
        sys.exit(finish(error))


def _show_version(wanted: bool) -> None:
    if wanted:
        from swsearch import __version__

        typer.echo(f"swsearch {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("search")
@command
def search_command(
    queries: Annotated[str, typer.Argument(metavar="QUERIES", help="FASTA file, plain or compressed; - is stdin.")],
    subjects: Annotated[
        str, typer.Argument(metavar="SUBJECTS", help="A database, or a FASTA file (read into memory).")
    ],
    output: Output = None,
    outfmt: Annotated[
        str,
        typer.Option(
            metavar="FMT",
            help="0 pairwise, 6 tabular, 7 tabular with comments, 10 comma separated, json (one line a query); "
            "'6 qseqid sseqid score ...' chooses columns.",
            rich_help_panel=OUTPUT,
        ),
    ] = "6",
    mode: Mode = ModeName.local,
    matrix: MatrixName = "BLOSUM62",
    gap_open: GapOpen = 11,
    gap_extend: GapExtend = 1,
    evalue: Annotated[
        float | None,
        typer.Option(help="Largest E-value of a hit.", show_default="10", rich_help_panel=STATISTICS),
    ] = None,
    max_hits: Annotated[
        int, typer.Option(help="Most hits of a query: exactly the best.", rich_help_panel=STATISTICS)
    ] = 500,
    dbsize: Annotated[
        int | None,
        typer.Option(
            metavar="RESIDUES",
            help="Database size that E-values refer to.",
            show_default="the database's own",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    engine: Engine = EngineName.auto,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Search SUBJECTS for the best exact matches of each query."""
    if engine in (EngineName.auto, EngineName.gpu):
        warm_up_gpu(device)
    from swsearch import __version__, report
    from swsearch.alignment import load_library
    from swsearch.engines import create_engine
    from swsearch.engines.base import available_processors
    from swsearch.inputs import open_subjects, read_queries
    from swsearch.job import SearchJob, SearchOptions, align_hits
    from swsearch.results import RunInfo
    from swsearch.statistics import why_no_statistics

    begun = time.monotonic()
    options = SearchOptions(_scoring(matrix, gap_open, gap_extend), mode.value, max_hits, evalue, dbsize)
    if output is not None:
        check_output(Path(output))
    if queries == subjects == "-":
        raise InputError("queries and subjects cannot both come from stdin; give one of them as a file")
    allowed = None if gpu_memory is None else parse_size(gpu_memory, "gpu_memory")
    report.create_writer(outfmt, sys.stdout)  # a bad format is better told now than after the search
    found = read_queries(Path(queries), options.scoring.matrix.alphabet)
    empty = [query.identifier for query in found if not len(query.codes)]
    if empty:
        say(f"swsearch: warning: {queries}: {len(empty)} queries have no residues, such as {empty[0]!r}")
    made = create_engine(
        engine.value,
        threads=threads,
        device=device,
        gpu_memory=allowed,
        notice=None if quiet or verbose else lambda text: say(f"swsearch: {text}"),
    )
    with made as used, open_subjects(Path(subjects)) as database:
        workers = threads or available_processors()
        job = SearchJob(found, database, used, options)
        if verbose:
            if used.fallback:
                say(f"swsearch: {used.fallback}")
            say(f"swsearch: engine {used.description}; {options.scoring.describe()}; {mode.value} alignment")
            say(f"swsearch: {database.name}: {database.n_subjects:,} subjects, {database.n_residues:,} residues")
        note = job.plan.note  # allocates, so that what does not fit is told before any output
        if verbose and note:
            say(f"swsearch: {note}")
        if options.statistics is None and not quiet:
            say(f"swsearch: {why_no_statistics(options.scoring, options.mode)}")
        run = RunInfo(
            __version__, database.name, database.n_subjects, database.n_residues, options.scoring, options.mode,
            options.statistics, options.threshold, max_hits,
        )  # fmt: skip
        with open_output(output) as stream:
            writer = report.create_writer(outfmt, stream)
            writer.begin(run)
            with ProgressBar("searching", float(job.cells) or None, quiet) as bar:

                def advance(cells: int) -> None:
                    bar.advance(cells)
                    if writer.needs_alignments:
                        load_library()

                job.progress = advance
                for batch in job.batches():
                    if writer.needs_alignments:
                        align_hits(batch, workers)
                    for result in batch:
                        writer.write(result)
            writer.end()
        if not quiet:
            say(_summary(job, time.monotonic() - begun))


def _summary(job: SearchJob, seconds: float) -> str:
    rate = job.cells / max(seconds, 1e-9) / 1e9
    plural = "query" if len(job.queries) == 1 else "queries"
    return (
        f"swsearch: {len(job.queries)} {plural} x {job.database.n_subjects:,} subjects, "
        f"{job.database.n_residues:,} residues, {seconds:.2f} s, {rate:.2f} GCUPS, engine {job.engine.description}"
    )


def _scoring(matrix: str, gap_open: int, gap_extend: int) -> Scoring:
    from swsearch.scoring import Scoring, load_matrix

    return Scoring(load_matrix(matrix), gap_open, gap_extend)


@app.command("align")
@command
def align_command(
    a: Annotated[str, typer.Argument(metavar="A", help="Queries: a FASTA file, - for stdin, or the letters.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Subjects: a FASTA file or the letters.")],
    mode: Mode = ModeName.global_,
    alphabet: Annotated[AlphabetName, typer.Option(help="What the letters are.", rich_help_panel=SCORING)] = (
        AlphabetName.protein
    ),
    matrix: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Substitution matrix.",
            show_default="BLOSUM62; for DNA match/mismatch",
            rich_help_panel=SCORING,
        ),
    ] = None,
    match: Annotated[
        int | None, typer.Option(help="DNA: equal bases.", show_default="5", rich_help_panel=SCORING)
    ] = None,
    mismatch: Annotated[
        int | None, typer.Option(help="DNA: unequal bases.", show_default="-4", rich_help_panel=SCORING)
    ] = None,
    gap_open: Annotated[
        int | None,
        typer.Option(
            help="A gap of k costs open + k * extend.", show_default="11; for DNA 10", rich_help_panel=SCORING
        ),
    ] = None,
    gap_extend: GapExtend = 1,
    outfmt: Annotated[
        str, typer.Option(metavar="FMT", help="pairwise, cigar, json or score.", rich_help_panel=OUTPUT)
    ] = "pairwise",
    output: Output = None,
    memory: Memory = "256M",
) -> None:
    """Align every sequence of A with every sequence of B."""
    from swsearch.alignment import align_codes
    from swsearch.inputs import read_queries
    from swsearch.pairwise import PAIR_FORMATS

    if outfmt not in PAIR_FORMATS:
        raise OptionError("outfmt", outfmt, f"one of {', '.join(PAIR_FORMATS)}")
    if a == b == "-":
        raise InputError("A and B cannot both come from stdin; give one of them as a file")
    budget = parse_size(memory, "memory")
    scoring = _pair_scoring(alphabet, matrix, match, mismatch, gap_open, gap_extend)
    queries = read_queries(a, scoring.matrix.alphabet, "A")
    subjects = read_queries(b, scoring.matrix.alphabet, "B")
    with open_output(output) as stream:
        for query in queries:
            for subject in subjects:
                pair = align_codes(query.codes, subject.codes, scoring, mode.value, memory=budget)
                stream.write(PAIR_FORMATS[outfmt](pair, query, subject, mode.value))


def _pair_scoring(
    alphabet: AlphabetName,
    matrix: str | None,
    match: int | None,
    mismatch: int | None,
    gap_open: int | None,
    gap_extend: int,
) -> Scoring:
    """Check which of the scoring options go together."""
    from swsearch.alphabet import ALPHABETS
    from swsearch.scoring import Scoring, dna_matrix, load_matrix

    simple = match is not None or mismatch is not None
    if simple and alphabet is AlphabetName.protein:
        raise InputError("--match and --mismatch go with --alphabet dna; for protein use --matrix")
    if simple and matrix is not None:
        raise InputError("--match and --mismatch cannot go with --matrix; use one or the other")
    if alphabet is AlphabetName.dna and matrix is None:
        chosen = dna_matrix(5 if match is None else match, -4 if mismatch is None else mismatch)
    else:
        chosen = load_matrix(matrix or "BLOSUM62", ALPHABETS[alphabet.value])
    default_open = 11 if alphabet is AlphabetName.protein else 10
    return Scoring(chosen, default_open if gap_open is None else gap_open, gap_extend)


@app.command("doctor")
@command
def doctor_command() -> None:
    """Say which engine would run here, and why not a faster one."""
    from swsearch.doctor import examine

    healthy = True
    for line in examine():
        healthy = healthy and line.good
        typer.echo(f"{line.topic:<12} {line.text}")
    if not healthy:
        raise typer.Exit(3)


@db_app.command("build")
@command
def db_build(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="FASTA files, plain or compressed; - is stdin.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DB.h5", help="The database file to write.")],
    memory: Memory = "512M",
    quiet: Quiet = False,
) -> None:
    """Build a database from FASTA."""
    from swsearch.db import Database

    begun = time.monotonic()
    with ProgressBar("building", None, quiet) as bar:
        database = Database.build(inputs, output, memory=parse_size(memory, "memory"), progress=bar.move_to)
    with database:
        _warn_of_empty(database.info(), output)
        if not quiet:
            say(
                f"swsearch: {output}: {database.n_subjects:,} subjects, {database.n_residues:,} residues, "
                f"{time.monotonic() - begun:.2f} s"
            )


def _warn_of_empty(info: dict[str, object], path: str) -> None:
    if info["n_empty"]:
        say(f"swsearch: warning: {path}: {info['n_empty']} records have no residues; they are kept")


@db_app.command("info")
@command
def db_info(
    database: Annotated[str, typer.Argument(metavar="DB.h5")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what a database holds and where it came from."""
    from swsearch.db import Database

    with Database.open(database) as opened:
        info = opened.info()
    if as_json:
        typer.echo(json.dumps(info, indent=2))
        return
    segments = info.pop("segments")
    for key, value in info.items():
        _show(key, value)
    for number, segment in enumerate(segments):
        sources = segment.pop("sources")
        typer.echo(f"segment {number}")
        for key, value in segment.items():
            _show(f"  {key}", value)
        for source in sources:
            _show("  source", ", ".join(f"{name} {value}" for name, value in source.items()))


def _show(key: str, value: object) -> None:
    shown = f"{value:,}" if isinstance(value, int) else value
    typer.echo(f"{key.replace('_', ' '):<16} {shown}")


@db_app.command("verify")
@command
def db_verify(
    database: Annotated[str, typer.Argument(metavar="DB.h5")],
    quiet: Quiet = False,
) -> None:
    """Check every checksum and every invariant; exit code 2 and the place if something is broken."""
    from swsearch.db import verify_database

    checked = verify_database(database)
    if not quiet:
        say(f"swsearch: {database}: sound ({', '.join(f'{n:,} {what}' for what, n in checked.items())})")


@db_app.command("append")
@command
def db_append(
    database: Annotated[str, typer.Argument(metavar="DB.h5")],
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="FASTA files; - is stdin.")],
    memory: Memory = "512M",
    quiet: Quiet = False,
) -> None:
    """Add the sequences of more FASTA files to a database."""
    from swsearch.db import Database, append_database

    with ProgressBar("appending", None, quiet) as bar:
        append_database(database, inputs, memory=parse_size(memory, "memory"), progress=bar.move_to)
    with Database.open(database) as opened:
        _warn_of_empty(opened.info(), database)
        if not quiet:
            say(f"swsearch: {database}: now {opened.n_subjects:,} subjects, {opened.n_residues:,} residues")


@db_app.command("fetch")
@command
def db_fetch(
    database: Annotated[str, typer.Argument(metavar="DB.h5")],
    identifiers: Annotated[list[str], typer.Argument(metavar="ID...", help="Identifiers; all entries of that name.")],
    output: Output = None,
) -> None:
    """Write entries of a database as FASTA, as they came in."""
    from swsearch.db import Database
    from swsearch.db.fasta import header_encoding

    with Database.open(database) as opened, open_output(output) as stream:
        missing = []
        for identifier in identifiers:
            places = opened.find(identifier)
            if not places:
                missing.append(identifier)
            for place in places:
                letters = opened.sequence(place)
                lines = (letters[start : start + 60] for start in range(0, len(letters), 60))
                header = opened.header(place)
                stream.write("\n".join([f">{header.decode(header_encoding(header))}", *lines]) + "\n")
        if missing:
            raise InputError(f"{database}: no entry named {', '.join(map(repr, missing))}; expected an identifier")
