"""The command line: parse, call, print; the work is done elsewhere."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli.align import align_command
from swsearch.cli.bench import bench_app
from swsearch.cli.console import (
    ProgressBar,
    command,
    finish,
    parse_size,
    say,
    terminate,
)
from swsearch.cli.options import (
    FILTERS,
    SCORING,
    STATISTICS,
    Device,
    Engine,
    EngineName,
    GapExtend,
    GapOpen,
    GpuMemory,
    MaskName,
    MatrixName,
    Memory,
    MinIdentity,
    MinQueryCoverage,
    MinSubjectCoverage,
    Mode,
    ModeName,
    Output,
    OutputFormats,
    Outputs,
    Quiet,
    StatisticsName,
    SubjectMaskName,
    Threads,
    Verbose,
)
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import InputError, SwsearchError
from swsearch.output_files import open_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swsearch.job.job import SearchJob
    from swsearch.scoring import Scoring
    from swsearch.statistics.fitted import Fit

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
app.command("align")(align_command)

DatabaseFile = Annotated[str, typer.Argument(metavar="DB.h5", help="A database that db build made.")]


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
    output: Outputs = None,
    outfmt: OutputFormats = None,
    mode: Mode = ModeName.local,
    matrix: MatrixName = "BLOSUM62",
    gap_open: GapOpen = 11,
    gap_extend: GapExtend = 1,
    evalue: Annotated[
        float | None,
        typer.Option(
            help="Largest E-value of a hit.",
            show_default="10",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    max_hits: Annotated[
        int,
        typer.Option(
            help="Most hits of a query: exactly the best (that pass the filters).", rich_help_panel=STATISTICS
        ),
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
    statistics: Annotated[
        StatisticsName,
        typer.Option(
            help="What E-values come from: BLAST's constants (published), or a distribution fitted to the query's "
            "scores with the whole database (fitted); auto is the first where it exists, else the second.",
            rich_help_panel=STATISTICS,
        ),
    ] = StatisticsName.auto,
    min_score: Annotated[
        int | None, typer.Option(help="Least raw score of a hit.", show_default="none", rich_help_panel=FILTERS)
    ] = None,
    min_identity: MinIdentity = None,
    min_query_coverage: MinQueryCoverage = None,
    min_subject_coverage: MinSubjectCoverage = None,
    include_ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Report only subjects named there, an identifier a line; E-values refer to the whole database.",
            show_default="all",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    exclude_ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Leave out subjects named there.", show_default="none", rich_help_panel=FILTERS
        ),
    ] = None,
    max_alignments: Annotated[
        int,
        typer.Option(
            help="Most alignments of a subject, local mode: each the best that shares no pair of residues with those "
            "before, with its own E-value (no sum statistics); of these, those that pass the filters.",
            rich_help_panel=STATISTICS,
        ),
    ] = 1,
    query_mask: Annotated[
        MaskName,
        typer.Option(
            help="What of the queries is scored as X: none, its lower case, or low complexity (tantan).",
            rich_help_panel=SCORING,
        ),
    ] = MaskName.none,
    subject_mask: Annotated[
        SubjectMaskName,
        typer.Option(
            help="The same of the subjects; database is what db build --mask says. Alignments show masked residues "
            "in lower case. Without masks scores and E-values are those of blastp -seg no.",
            rich_help_panel=SCORING,
        ),
    ] = SubjectMaskName.database,
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
    from swsearch import __version__
    from swsearch.engines import create_engine
    from swsearch.inputs import open_subjects, read_queries
    from swsearch.job.filters import HitFilters, named_ids
    from swsearch.job.hit_alignments import align_hits
    from swsearch.job.job import SearchJob
    from swsearch.job.options import SearchOptions
    from swsearch.processors import available_processors
    from swsearch.report import kind_of
    from swsearch.report.outputs import open_reports, pair_outputs
    from swsearch.results import RunInfo
    from swsearch.run_info import Execution, checksums
    from swsearch.statistics.choice import why_none
    from swsearch.statistics.fitted import Fit

    begun = time.monotonic()
    begun_at = datetime.now(UTC)
    outputs = pair_outputs(output or [], outfmt or [])  # what is wrong is better told now than after the search
    writers = [kind_of(each.outfmt).writer for each in outputs]
    filters = HitFilters(
        min_score,
        min_identity,
        min_query_coverage,
        min_subject_coverage,
        named_ids(include_ids, "include_ids"),
        named_ids(exclude_ids, "exclude_ids"),
    )
    options = SearchOptions(
        _scoring(matrix, gap_open, gap_extend),
        mode.value,
        max_hits,
        evalue,
        dbsize,
        statistics.value,
        filters,
        max_alignments,
        query_mask.value,
        subject_mask.value,
        any(writer.needs_distribution for writer in writers),
    )
    if queries == subjects == "-":
        raise InputError("queries and subjects cannot both come from stdin; give one of them as a file")
    allowed = None if gpu_memory is None else parse_size(gpu_memory, "gpu_memory")
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
    with made as used, open_subjects(Path(subjects), subject_mask.value) as database:
        workers = threads or available_processors()
        job = SearchJob(found, database, used, options, threads=workers)
        if verbose:
            if used.fallback:
                say(f"swsearch: {used.fallback}")
            say(f"swsearch: engine {used.description}; {options.scoring.describe()}; {mode.value} alignment")
            say(f"swsearch: {database.name}: {database.n_subjects:,} subjects, {database.n_residues:,} residues")
        note = job.plan.note  # allocates, so that what does not fit is told before any output
        if verbose and note:
            say(f"swsearch: {note}")
        if job.method is None and not quiet:
            say(f"swsearch: {why_none()}")
        run = RunInfo(
            __version__, database.name, database.n_subjects, database.n_residues, options.scoring, options.mode,
            job.method, options.threshold, max_hits,
            checksums(queries, database) if any(writer.needs_checksums for writer in writers) else (),
            Execution(used.description, shlex.join(["swsearch", *sys.argv[1:]]), begun_at), job.asked,
            job.effective_residues, tuple(database.sources()),
        )  # fmt: skip
        unfitted: list[str] = []
        with open_reports(outputs) as reports:
            reports.begin(run)
            with ProgressBar("searching", float(job.cells) or None, quiet) as bar:
                job.progress = bar.advance
                for batch in job.batches():
                    unfitted += [result.no_statistics for result in batch if result.no_statistics]
                    if reports.needs_alignments or max_alignments > 1:
                        aligner = used.pair_aligner(sum(len(result.hits) for result in batch))
                        with aligner or nullcontext():
                            align_hits(batch, workers, aligner)
                    for result in batch:
                        reports.write(result)
            reports.end()
        if not quiet and isinstance(job.method, Fit):
            for text in _fit_notes(job.method, len(found), unfitted):
                say(f"swsearch: {text}")
        if not quiet:
            say(_summary(job, time.monotonic() - begun))


def _fit_notes(fit: Fit, n_queries: int, reasons: list[str]) -> Iterator[str]:
    """Say which statistics E-values came from, and why some queries have none."""
    if len(reasons) < n_queries:
        yield f"E-values: {fit.name}"
    if reasons:
        yield f"{len(reasons)} of {n_queries} queries: {reasons[0]}"


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


@app.command("doctor")
@command
def doctor_command() -> None:
    """Say which engine would run here, and why not a faster one."""
    from swsearch.cli.doctor import examine

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
    mask: Annotated[
        MaskName,
        typer.Option(
            help="What searches are to score as X: none (lower case is only remembered), lower case, or low "
            "complexity (tantan). No letter is lost."
        ),
    ] = MaskName.none,
    memory: Memory = "512M",
    quiet: Quiet = False,
) -> None:
    """Build a database from FASTA."""
    from swsearch.db import Database

    begun = time.monotonic()
    with ProgressBar("building", None, quiet) as bar:
        database = Database.build(
            inputs, output, memory=parse_size(memory, "memory"), progress=bar.move_to, mask=mask.value
        )
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
    database: DatabaseFile,
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
    database: DatabaseFile,
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
    database: DatabaseFile,
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
    database: DatabaseFile,
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
