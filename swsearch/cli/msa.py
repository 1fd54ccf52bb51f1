"""``swsearch msa``: an alignment per query, as structure predictors take them."""

from __future__ import annotations

import shlex
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from swsearch.cli.console import checked_threads, command, parse_size, say
from swsearch.cli.numbers import percentage, real, whole
from swsearch.cli.options import (
    OUTPUT,
    SCORING,
    STATISTICS,
    AllowDnaOption,
    ClusterOption,
    DeviceOption,
    EngineName,
    EngineOption,
    GapExtendOption,
    GapOpenOption,
    GpuMemoryOption,
    InclusionCoverageOption,
    InclusionEvalueOption,
    IterationsOption,
    MaskName,
    MatrixOption,
    MaxIncludedOption,
    PresetName,
    PresetOption,
    ProgressName,
    ProgressOption,
    QueryFormatName,
    QueryFormatOption,
    QuietOption,
    StatisticsName,
    SubjectMaskName,
    SubjectsArgument,
    TaskTimeoutOption,
    ThreadsOption,
    VerboseOption,
)
from swsearch.cli.search import _paths, _read, _say_beforehand, _scoring
from swsearch.cli.search_notes import fit_notes, summary
from swsearch.cli.urls import refuse_urls
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import OptionError

ROWS = "Sequences of an alignment: the query first, then the best"


class AlignmentFormatName(StrEnum):
    """Values of --outfmt."""

    a3m = "a3m"
    stockholm = "stockholm"
    fasta_aligned = "fasta-aligned"


def _percentage(text: str) -> Any:
    return typer.Option(parser=percentage, metavar="PERCENT", help=text, rich_help_panel=ROWS)


@command
def msa_command(
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="FASTA, alignments or profiles, plain or compressed; - is stdin.")
    ],
    subjects: SubjectsArgument,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder of the alignments, a file per query, named after it; made if it is not there. Files that "
            "are there are replaced, each when its successor is complete.",
            rich_help_panel=OUTPUT,
        ),
    ],
    query_format: QueryFormatOption = QueryFormatName.auto,
    outfmt: Annotated[
        AlignmentFormatName,
        typer.Option(help="Format of the alignments: .a3m, .sto or .afa.", rich_help_panel=OUTPUT),
    ] = AlignmentFormatName.a3m,
    iterations: IterationsOption = 3,
    inclusion_evalue: InclusionEvalueOption = 0.002,
    inclusion_coverage: InclusionCoverageOption = 0.0,
    max_included: MaxIncludedOption = 5000,
    evalue: Annotated[
        float,
        typer.Option(parser=real(), metavar="NUMBER", help="Largest E-value of a sequence.", rich_help_panel=ROWS),
    ] = 1e-3,
    max_seqs: Annotated[
        int,
        typer.Option(
            parser=whole(),
            metavar="N",
            help="Most sequences, the query included: where there are more, those that differ most from each other.",
            rich_help_panel=ROWS,
        ),
    ] = 5000,
    min_coverage: Annotated[
        float, _percentage("Least part of the query's positions that a sequence has a residue for.")
    ] = 0.0,
    min_identity: Annotated[float, _percentage("Least part of these residues that are the query's.")] = 0.0,
    max_identity: Annotated[
        float,
        _percentage(
            "Largest part of a sequence's residues that a better one has too; 100 leaves out only what is the same "
            "at all of the query's positions."
        ),
    ] = 100.0,
    max_hits: Annotated[
        int,
        typer.Option(
            parser=whole(), metavar="N", help="Most hits of a query that are aligned, the best.", rich_help_panel=ROWS
        ),
    ] = 10_000,
    max_alignments: Annotated[
        int,
        typer.Option(
            parser=whole(),
            metavar="N",
            help="Most alignments of a subject, each a sequence of its own.",
            rich_help_panel=ROWS,
        ),
    ] = 1,
    preset: PresetOption = PresetName.default,
    matrix: MatrixOption = None,
    gap_open: GapOpenOption = None,
    gap_extend: GapExtendOption = None,
    query_mask: Annotated[
        MaskName,
        typer.Option(
            help="What of the queries is scored as X; alignments show the letters.", rich_help_panel=SCORING
        ),
    ] = MaskName.none,
    subject_mask: Annotated[
        SubjectMaskName,
        typer.Option(
            help="The same of the subjects; database is what db build --mask says.", rich_help_panel=SCORING
        ),
    ] = SubjectMaskName.database,
    allow_dna: AllowDnaOption = False,
    dbsize: Annotated[
        int | None,
        typer.Option(
            parser=whole(),
            metavar="RESIDUES",
            help="Database size that E-values refer to, such as 5000000, 5M or 1e9.",
            show_default="the database's own",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    statistics: Annotated[
        StatisticsName,
        typer.Option(help="What E-values come from: fitted (auto) or published.", rich_help_panel=STATISTICS),
    ] = StatisticsName.auto,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    gpu_memory: GpuMemoryOption = None,
    threads: ThreadsOption = None,
    cluster: ClusterOption = None,
    task_timeout: TaskTimeoutOption = None,
    progress: ProgressOption = ProgressName.auto,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Search SUBJECTS in iterations, and write an alignment for each query: A3M for structure prediction."""
    refuse_urls(subjects, "msa")
    if cluster is None and engine in (EngineName.auto, EngineName.gpu):
        warm_up_gpu(device)
    from swsearch.cli.clusters import Where, engine_for
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import SearchProgress
    from swsearch.inputs import check_subject_inputs
    from swsearch.job.inclusion import Inclusion
    from swsearch.job.options import SearchOptions
    from swsearch.output_files import check_spared
    from swsearch.profiles.filtering import RowFilter
    from swsearch.report.msa import AlignmentFolder
    from swsearch.run_info import Origin

    begun = time.monotonic()
    origin = Origin(queries, shlex.join(["swsearch", *sys.argv[1:]]), datetime.now(UTC))
    if output.strip() in ("", "-"):
        raise OptionError("output", output, "a folder for a file of each query")
    rows = RowFilter(min_coverage, min_identity, max_identity, max_seqs)
    options = SearchOptions(
        _scoring(preset, matrix, gap_open, gap_extend), max_hits=max_hits, evalue=evalue, dbsize=dbsize,
        statistics_method=statistics.value, max_alignments=max_alignments, query_mask=query_mask.value,
        subject_mask=subject_mask.value, allow_dna=allow_dna, iterations=iterations,
        inclusion=Inclusion(inclusion_evalue, max_included, inclusion_coverage),
    )  # fmt: skip
    check_subject_inputs(queries, subjects)
    threads = checked_threads(threads, quiet)
    allowed = None if gpu_memory is None else parse_size(gpu_memory, "gpu_memory")
    is_named = preset is not PresetName.default or gap_open is not None or gap_extend is not None
    found, options = _read(queries, options, query_format, is_named, quiet)
    notice = None if quiet or verbose else lambda text: say(f"swsearch: {text}")
    asked_for = _paths(subjects)
    where = Where(cluster, task_timeout, engine.value, threads, device, allowed)
    made, kind = engine_for(where, asked_for, notice)
    with made, kind(found, asked_for, options, made, threads=threads, origin=origin) as results:
        job = results.job
        job.one_by_one = True  # each file is there when its query is done
        folder = AlignmentFolder(Path(output), [query.identifier for query in found], outfmt.value, rows)
        check_spared(folder.paths, [queries, *subjects, *(each.path for each in job.database.volumes), matrix])
        _say_beforehand(job, quiet, verbose)
        with SearchProgress(display_of(progress.value, quiet), job.cells, len(found)) as done:
            job.progress, job.forgone = done.advance, done.forgone
            for batch in results.batches(aligned=True):
                for result in batch:
                    folder.write(result)
                    done.written(1)
        for text in fit_notes(results, quiet):
            say(f"swsearch: {text}")
        if not quiet:
            if options.iterations > 1:
                say(f"swsearch: {results.iterated.describe()}")
            say(f"swsearch: {folder.written.describe(folder.folder)}")
            say(summary(job, time.monotonic() - begun, done.spared_cells))
