"""``swsearch search``: parse, call, say what was done."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli.console import checked_threads, command, parse_size, say
from swsearch.cli.numbers import real, whole
from swsearch.cli.options import (
    FILTERS,
    SCORING,
    STATISTICS,
    AllowDnaOption,
    CheckpointOption,
    ClusterOption,
    ConfigOption,
    DeviceOption,
    EngineName,
    EngineOption,
    ExcludeTaxidsOption,
    FrameShiftOption,
    GapExtendOption,
    GapOpenOption,
    GeneticCodeOption,
    GpuMemoryOption,
    HeaderOption,
    IgnoreMissingIdsOption,
    InclusionCoverageOption,
    InclusionEvalueOption,
    IterationsOption,
    MaskName,
    MatrixOption,
    MaxIncludedOption,
    MinIdentityOption,
    MinQueryCoverageOption,
    MinSubjectCoverageOption,
    ModeName,
    ModeOption,
    OutputFormatsOption,
    OutputsOption,
    PresetName,
    PresetOption,
    ProgressName,
    ProgressOption,
    QueryFormatName,
    QueryFormatOption,
    QueryLocOption,
    QuietOption,
    SaveConfigOption,
    SaveMsaOption,
    SaveProfileOption,
    SortName,
    StatisticsName,
    StrandOption,
    SubjectMaskName,
    SubjectsArgument,
    TaskName,
    TaskOption,
    TaskTimeoutOption,
    TaxidsOption,
    ThreadsOption,
    TranslateOption,
    VerboseOption,
)
from swsearch.cli.search_notes import say_afterwards, say_of_queries
from swsearch.cli.urls import url_among
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import InputError

if TYPE_CHECKING:
    from swsearch.inputs import Query
    from swsearch.job.job import SearchJob
    from swsearch.job.options import SearchOptions
    from swsearch.scoring import Scoring


@command
def search_command(
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="FASTA, alignments or profiles, plain or compressed; - is stdin.")
    ],
    subjects: SubjectsArgument,
    query_format: QueryFormatOption = QueryFormatName.auto,
    query_loc: QueryLocOption = None,
    output: OutputsOption = None,
    outfmt: OutputFormatsOption = None,
    header: HeaderOption = False,
    mode: ModeOption = ModeName.local,
    task: TaskOption = TaskName.default,
    preset: PresetOption = PresetName.default,
    matrix: MatrixOption = None,
    gap_open: GapOpenOption = None,
    gap_extend: GapExtendOption = None,
    evalue: Annotated[
        float | None,
        typer.Option(
            parser=real(),
            metavar="NUMBER",
            help="Largest E-value of a hit.",
            show_default="10",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    max_hits: Annotated[
        int,
        typer.Option(
            parser=whole(),
            metavar="N",
            help="Most hits of a query: exactly the best (that pass the filters).",
            rich_help_panel=STATISTICS,
        ),
    ] = 500,
    sort: Annotated[
        SortName,
        typer.Option(
            help="The order of hits: by E-value, then score; or by score alone. --max-hits keeps the best in it.",
            rich_help_panel=STATISTICS,
        ),
    ] = SortName.evalue,
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
        typer.Option(
            help="What E-values come from: scores with shuffled copies of each hit's sequence (fitted; auto is the "
            "same), which hold in every mode and for queries of unusual composition, or BLAST's constants "
            "(published).",
            rich_help_panel=STATISTICS,
        ),
    ] = StatisticsName.auto,
    min_score: Annotated[
        int | None,
        typer.Option(
            parser=whole(),
            metavar="N",
            help="Least raw score of a hit.",
            show_default="none",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    min_identity: MinIdentityOption = None,
    min_query_coverage: MinQueryCoverageOption = None,
    min_subject_coverage: MinSubjectCoverageOption = None,
    include_ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Report only subjects named there, an identifier or accession a line; E-values refer to the whole "
            "database.",
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
    ignore_missing_ids: IgnoreMissingIdsOption = False,
    taxids: TaxidsOption = None,
    exclude_taxids: ExcludeTaxidsOption = None,
    max_alignments: Annotated[
        int,
        typer.Option(
            parser=whole(),
            metavar="N",
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
    translate: TranslateOption = False,
    genetic_code: GeneticCodeOption = None,
    strand: StrandOption = None,
    frame_shift: FrameShiftOption = None,
    allow_dna: AllowDnaOption = False,
    iterations: IterationsOption = 1,
    inclusion_evalue: InclusionEvalueOption = 0.002,
    inclusion_coverage: InclusionCoverageOption = 0.0,
    max_included: MaxIncludedOption = 5000,
    save_profile: SaveProfileOption = None,
    save_msa: SaveMsaOption = None,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    gpu_memory: GpuMemoryOption = None,
    threads: ThreadsOption = None,
    config: ConfigOption = None,
    save_config: SaveConfigOption = None,
    checkpoint: CheckpointOption = None,
    cluster: ClusterOption = None,
    task_timeout: TaskTimeoutOption = None,
    progress: ProgressOption = ProgressName.auto,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Search SUBJECTS for the best exact matches of each query."""
    url = url_among(subjects)
    if url is None and cluster is None and engine in (EngineName.auto, EngineName.gpu):
        warm_up_gpu(device)
    from swsearch.cli.clusters import Where, engine_for
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import SearchProgress
    from swsearch.inputs import check_subject_inputs
    from swsearch.job.filters import HitFilters, named_ids
    from swsearch.job.inclusion import Inclusion
    from swsearch.job.options import SearchOptions
    from swsearch.job.parts import checked_query_loc
    from swsearch.job.taxa import named_taxids
    from swsearch.output_files import check_spared
    from swsearch.report.outputs import keep_what_is_shown, pair_outputs, with_config, write_reports
    from swsearch.report.saved import check_places, check_saved, saved, saved_files
    from swsearch.run_info import Origin
    from swsearch.translation import asked_translation

    begun = time.monotonic()
    files = {"matrix": matrix, "include_ids": include_ids, "exclude_ids": exclude_ids}
    named = {name: path for name, path in files.items() if path is not None}
    read = [queries, *named.values(), taxids, exclude_taxids, config]
    origin = Origin(queries, shlex.join(["swsearch", *sys.argv[1:]]), datetime.now(UTC), files=named)
    # what is wrong is better told now than after the search
    outputs = with_config(pair_outputs(output or [], outfmt or [], header), save_config)
    included, excluded = named_ids(include_ids, "include_ids"), named_ids(exclude_ids, "exclude_ids")
    coverages = min_query_coverage, min_subject_coverage
    taxa = named_taxids(taxids, "taxids"), named_taxids(exclude_taxids, "exclude_taxids")
    filters = HitFilters(min_score, min_identity, *coverages, included, excluded, ignore_missing_ids, *taxa)
    for doubt in filters.doubts():
        name, _, rest = doubt.partition(" ")
        say(f"swsearch: warning: --{name.replace('_', '-')} {rest}")
    preset, evalue = _of_task(task, preset, evalue)
    scoring = _scoring(preset, matrix, gap_open, gap_extend)
    options = SearchOptions(
        scoring, mode.value, max_hits, evalue, dbsize, statistics.value, filters, max_alignments,
        query_mask.value, subject_mask.value, sort.value, allow_dna=allow_dna, iterations=iterations,
        inclusion=Inclusion(inclusion_evalue, max_included, inclusion_coverage),
        keep_next=save_profile is not None or save_msa is not None,
        translation=asked_translation(
            translate, genetic_code, None if strand is None else strand.value, frame_shift
        ),
        query_loc=checked_query_loc(query_loc),
    )  # fmt: skip
    check_places(save_profile, save_msa, [each.path for each in outputs])
    is_named = preset is not PresetName.default or gap_open is not None or gap_extend is not None
    if url is not None:
        from swsearch.cli.remote import SearchAsked, check_there, search_there

        more = {"cluster": cluster, "task_timeout": task_timeout, "checkpoint": checkpoint}
        check_there(url, engine.value, device, gpu_memory, more)
        threads = checked_threads(threads, quiet)
        search_there(SearchAsked(
            url, origin, query_format.value, options, is_named, outputs, save_profile, save_msa, read, threads,
            progress.value, quiet, verbose,
        ))  # fmt: skip
        return
    check_subject_inputs(queries, subjects)
    folder = None if checkpoint is None else _folder(checkpoint)
    threads = checked_threads(threads, quiet)
    allowed = None if gpu_memory is None else parse_size(gpu_memory, "gpu_memory")
    found, options = _read(queries, options, query_format, is_named, quiet)
    check_saved(save_profile, found)
    notice = None if quiet or verbose else lambda text: say(f"swsearch: {text}")
    asked_for = _paths(subjects)
    where = Where(cluster, task_timeout, engine.value, threads, device, allowed, options.cpu_only)
    made, kind = engine_for(where, asked_for, notice)
    with made, kind(found, asked_for, options, made, threads=threads, origin=origin) as results:
        keep_what_is_shown(results, outputs)  # before the job is asked for, which plans its memory by it
        if folder is not None:
            results.keep_in(folder)
        job = results.job
        read += [*subjects, *(each.path for each in job.database.volumes)]
        if folder is not None:
            read += map(str, folder.iterdir())
        identifiers = [query.identifier for query in found]
        check_spared([*(each.path for each in outputs), *saved_files(save_profile, save_msa, identifiers)], read)
        _say_beforehand(job, quiet, verbose)
        with SearchProgress(display_of(progress.value, quiet), job.cells, len(found)) as done:
            job.progress, job.restored, job.forgone = done.advance, done.restored, done.forgone
            with saved(results, identifiers, save_profile, save_msa):
                write_reports(results, outputs, done.written)
        say_afterwards(results, time.monotonic() - begun, done.spared_cells, quiet)


def _of_task(task: TaskName, preset: PresetName, evalue: float | None) -> tuple[PresetName, float | None]:
    """Return preset and largest E-value: those asked for, else those that go with a task."""
    from swsearch.matrices import SHORT_EVALUE

    if task is TaskName.default:
        return preset, evalue
    if preset is PresetName.sensitive:
        raise InputError(f"got --task {task.value} and --preset {preset.value}, expected one of them")
    return PresetName.short, SHORT_EVALUE if evalue is None else evalue


def _scoring(preset: PresetName, matrix: str | None, gap_open: int | None, gap_extend: int | None) -> Scoring:
    """Return the matrix that is asked for, else the preset's, with the gap costs asked for, else the matrix's."""
    from swsearch.alphabet import PROTEIN
    from swsearch.matrices import PRESET_MATRICES
    from swsearch.scoring import Scoring, load_matrix

    chosen = PRESET_MATRICES[preset.value] if matrix is None else matrix
    return Scoring(load_matrix(chosen, PROTEIN), gap_open, gap_extend)


def _paths(subjects: list[str]) -> Path | list[Path]:
    """Return what stands for the subjects: one file, or several that are searched as one."""
    paths = [Path(each) for each in subjects]
    return paths if len(paths) > 1 else paths[0]


def _folder(checkpoint: str) -> Path:
    from swsearch.job.checkpoint import checkpoint_folder

    return checkpoint_folder(checkpoint)


def _read(
    path: str, options: SearchOptions, query_format: QueryFormatName, is_named: bool, quiet: bool
) -> tuple[list[Query], SearchOptions]:
    """Read the queries, and take the gap costs of profiles where none are named."""
    from swsearch.inputs import with_gap_costs_of
    from swsearch.job.search_queries import search_queries

    found = search_queries(Path(path), options, query_format.value, argument="")
    scoring = with_gap_costs_of(found, options.scoring, is_named)
    if scoring is not options.scoring:
        options = replace(options, scoring=scoring)
    say_of_queries(path, found, quiet)
    return found, options


def _say_beforehand(job: SearchJob, quiet: bool, verbose: bool) -> None:
    """Say what will run; allocates, so that what does not fit is told before any output."""
    from swsearch.statistics.choice import why_none

    options, database = job.options, job.database
    if verbose:
        if job.engine.fallback:
            say(f"swsearch: {job.engine.fallback}")
        say(f"swsearch: engine {job.engine.description}; {options.scoring.describe()}; {options.mode} alignment")
        say(f"swsearch: {database.name}: {database.n_subjects:,} subjects, {database.n_residues:,} residues")
    note = job.plan.note
    if verbose and note:
        say(f"swsearch: {note}")
    if job.checkpoint is not None and job.checkpoint.n_kept and not quiet:
        kept = f"{job.checkpoint.n_kept // options.n_frames:,} of {len(job.queries):,}"
        say(f"swsearch: checkpoint {job.checkpoint.folder}: {kept} queries are done and not searched again")
    if job.method is None:
        say(f"swsearch: {why_none()}")
