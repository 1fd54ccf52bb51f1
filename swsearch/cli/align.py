"""``swsearch align``: pairs of sequences, of any length, aligned or scored and written as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli.console import ProgressBar, checked_threads, command, parse_size, say
from swsearch.cli.numbers import real, whole
from swsearch.cli.options import (
    OUTPUT,
    RUN,
    SCORING,
    AllowDnaOption,
    AlphabetName,
    DeviceOption,
    EngineName,
    EngineOption,
    GpuMemoryOption,
    ModeName,
    ModeOption,
    OutputOption,
    PresetName,
    PresetOption,
    QuietOption,
    ThreadsOption,
    VerboseOption,
)
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import InputError, OptionError
from swsearch.output_files import check_output, check_spared, open_output

if TYPE_CHECKING:
    from swsearch.alignment import PairAlignment
    from swsearch.engines.pair_base import PairAligner
    from swsearch.inputs import Query
    from swsearch.report.pair_writers import PairRun, PairWriter
    from swsearch.scoring import Scoring

PairMatrixOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Substitution matrix: a name or a file.",
        show_default="the preset's, BLOSUM62; for DNA match/mismatch",
        rich_help_panel=SCORING,
    ),
]
MatchOption = Annotated[
    int | None,
    typer.Option(parser=whole(), metavar="N", help="DNA: equal bases.", show_default="5", rich_help_panel=SCORING),
]
MismatchOption = Annotated[
    int | None,
    typer.Option(parser=whole(), metavar="N", help="DNA: unequal bases.", show_default="-4", rich_help_panel=SCORING),
]
PairGapOpenOption = Annotated[
    float | None,
    typer.Option(
        parser=real(),
        metavar="N",
        help="A gap of k costs open + k * extend; 0 makes gap costs linear. Both may be fractions: 9.5 and 0.5 "
        "are what EMBOSS calls 10 and 0.5.",
        show_default="the matrix's own, 11 for BLOSUM62; for DNA 10",
        rich_help_panel=SCORING,
    ),
]
PairGapExtendOption = Annotated[
    float | None,
    typer.Option(
        parser=real(),
        metavar="N",
        help="Cost of each residue of a gap.",
        show_default="the matrix's own, 1 for BLOSUM62",
        rich_help_panel=SCORING,
    ),
]
AlphabetOption = Annotated[
    AlphabetName,
    typer.Option(help="What the letters are; dna takes the IUPAC codes.", rich_help_panel=SCORING),
]
FreeEndsOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="With --mode semiglobal, the ends that cost nothing: any of query-start, query-end, subject-start, "
        "subject-end, query (both of its ends), subject, all; separated by commas.",
        show_default="all",
        rich_help_panel=SCORING,
    ),
]
PairMemoryOption = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="Memory for tables on the CPU.", rich_help_panel=RUN)
]

DNA_GAP_OPEN = 10
"""Cost of opening a gap of DNA, where none is asked for."""

FLUSH_AFTER = 0.5
"""Seconds after which what was found is written out, so that slow work is seen as it comes."""


@command
def align_command(
    a: Annotated[str, typer.Argument(metavar="A", help="Queries: a FASTA file, - for stdin, or the letters.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Subjects: a FASTA file, - for stdin, or the letters.")],
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Align the first of A with the first of B, and so on, not all with all.")
    ] = False,
    mode: ModeOption = ModeName.global_,
    free_ends: FreeEndsOption = None,
    alphabet: AlphabetOption = AlphabetName.protein,
    preset: PresetOption = PresetName.default,
    matrix: PairMatrixOption = None,
    match: MatchOption = None,
    mismatch: MismatchOption = None,
    gap_open: PairGapOpenOption = None,
    gap_extend: PairGapExtendOption = None,
    allow_dna: AllowDnaOption = False,
    outfmt: Annotated[
        str | None,
        typer.Option(
            metavar="FMT",
            help="pairwise (blocks as EMBOSS prints them), cigar (ids, score, from-to of both, CIGAR), sam, paf, "
            "jsonl (a line of JSON per pair), score (ids and score; finds no alignment).",
            show_default="by the file's extension, else pairwise",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    score_only: Annotated[
        bool,
        typer.Option("--score-only", help="Find no alignment, print scores: --outfmt score.", rich_help_panel=OUTPUT),
    ] = False,
    output: OutputOption = None,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    gpu_memory: GpuMemoryOption = None,
    threads: ThreadsOption = None,
    memory: PairMemoryOption = "256M",
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Align every sequence of A with every sequence of B, or pair by pair.

    Exact, for two sequences of any length. A holds queries, B subjects; in SAM these are reads and references. Little
    work (under 500,000,000 cells) is done on the CPU by --engine auto, before a GPU would have started.
    """
    if engine is EngineName.gpu:
        warm_up_gpu(device)
    from swsearch.engines.choice import create_pair_aligner
    from swsearch.inputs import check_two_inputs
    from swsearch.recurrence import Recurrence
    from swsearch.report.pair_formats import check_format, create_pair_writer, format_of_file
    from swsearch.report.pair_writers import PairRun
    from swsearch.scoring import Ends, check_ends
    from swsearch.version import version

    begun = time.monotonic()
    if score_only and outfmt not in (None, "score"):
        raise OptionError("outfmt", outfmt, "score with --score-only", "leave one of them out")
    by_name = format_of_file(output)
    wanted = "score" if score_only else outfmt or by_name
    check_format(wanted)
    check_two_inputs(a, b, ("A", "B"))
    if output is not None:
        check_output(Path(output))
        check_spared([output], [a, b, matrix])
    ends = check_ends(mode.value, None if free_ends is None else Ends.parse(free_ends))
    budget = parse_size(memory, "memory")
    threads = checked_threads(threads, quiet)
    allowed = None if gpu_memory is None else parse_size(gpu_memory, "gpu_memory")
    scoring = pair_scoring(alphabet, preset, matrix, match, mismatch, gap_open, gap_extend)
    queries, subjects = (_read(name, text, scoring, allow_dna, quiet) for name, text in (("A", a), ("B", b)))
    if pairs:
        _check_in_order(queries, subjects)
    run = PairRun(queries, subjects, pairs, Recurrence(scoring, mode.value, ends), version())
    made = create_pair_aligner(
        engine.value,
        threads=threads,
        memory=budget,
        device=device,
        gpu_memory=allowed,
        notice=None if quiet or verbose else lambda text: say(f"swsearch: {text}"),
        cells=run.cells,
        pairs=run.n_pairs,
    )
    with made as aligner:
        if verbose:
            _say_what_runs(aligner, run)
        _write(create_pair_writer(wanted, run), aligner, output, quiet)
        if not quiet:
            say(_summary(run.n_pairs, run.cells, time.monotonic() - begun, aligner.description))


def _read(name: str, given: str, scoring: Scoring, allow_dna: bool, quiet: bool) -> list[Query]:
    """Read A or B, and say where it is taken for letters."""
    from swsearch.inputs import path_of, read_queries

    found = read_queries(given, scoring.matrix.alphabet, name, allow_dna=allow_dna)
    if not quiet and not path_of(given):
        letters = len(found[0].codes)
        say(f"swsearch: {name} is taken as {letters:,} letter{'s' * (letters != 1)}, not as the name of a file")
    return found


def _check_in_order(queries: list[Query], subjects: list[Query]) -> None:
    """Raise unless there are as many subjects as queries."""
    if len(queries) != len(subjects):
        raise InputError(
            f"--pairs: A has {len(queries):,} sequences and B has {len(subjects):,}, expected as many in both; "
            "without --pairs all are aligned with all"
        )


def _say_what_runs(aligner: PairAligner, run: PairRun) -> None:
    from swsearch.engines.choice import count_pairs

    if aligner.fallback:
        say(f"swsearch: {aligner.fallback}")
    recurrence = run.recurrence
    say(f"swsearch: engine {aligner.description}; {recurrence.scoring.describe()}; {recurrence.describe_ends()}")
    say(f"swsearch: {count_pairs(run.n_pairs)}, {run.cells:,} cells to do")


def _write(writer: PairWriter, aligner: PairAligner, output: str | None, quiet: bool) -> None:
    """Align and write every pair of the writer's run."""
    run = writer.run
    head = writer.begin()  # also says what the format cannot hold, before anything is written
    with open_output(output) as stream, ProgressBar("aligning", float(run.cells) or None, quiet) as bar:
        flushed = time.monotonic()
        found = _found(aligner, run, writer.needs_alignment)
        for (query, subject), one in zip(run.pairs(), found, strict=True):
            stream.write(head + writer.write(one, query, subject))
            head = ""  # written with the first pair, so that nothing is written where that fails
            if time.monotonic() - flushed > FLUSH_AFTER:
                stream.flush()
                flushed = time.monotonic()
            bar.advance(float(len(query.codes) * len(subject.codes)))
        stream.write(writer.end())


def _found(aligner: PairAligner, run: PairRun, aligned: bool) -> Iterator[PairAlignment | int]:
    codes = ((query.codes, subject.codes) for query, subject in run.pairs())
    if aligned:
        return aligner.align_many(codes, run.recurrence)
    return aligner.score_many(codes, run.recurrence)


def _summary(pairs: int, cells: int, seconds: float, engine: str) -> str:
    from swsearch.engines.choice import count_pairs

    rate = cells / max(seconds, 1e-9) / 1e9
    return f"swsearch: {count_pairs(pairs)}, {cells:,} cells, {seconds:.2f} s, {rate:.2f} GCUPS, engine {engine}"


def pair_scoring(
    alphabet: AlphabetName,
    preset: PresetName,
    matrix: str | None,
    match: int | None,
    mismatch: int | None,
    gap_open: float | None,
    gap_extend: float | None,
) -> Scoring:
    """Make the scoring of a pair, checking which of its options go together."""
    from swsearch.alphabet import ALPHABETS
    from swsearch.matrices import PRESET_MATRICES
    from swsearch.scoring import Scoring, dna_matrix, load_matrix

    simple = match is not None or mismatch is not None
    if simple and alphabet is AlphabetName.protein:
        raise InputError("--match and --mismatch go with --alphabet dna; for protein use --matrix")
    if simple and matrix is not None:
        raise InputError("--match and --mismatch cannot go with --matrix; use one or the other")
    if alphabet is AlphabetName.dna:
        if preset is not PresetName.default:
            raise InputError(f"--preset {preset.value} is for protein; for DNA use --match, --mismatch or --matrix")
        simplest = (5 if match is None else match, -4 if mismatch is None else mismatch)
        chosen = dna_matrix(*simplest) if matrix is None else load_matrix(matrix, ALPHABETS[alphabet.value])
        return Scoring(chosen, DNA_GAP_OPEN if gap_open is None else gap_open, gap_extend)
    chosen = load_matrix(PRESET_MATRICES[preset.value] if matrix is None else matrix, ALPHABETS[alphabet.value])
    return Scoring(chosen, gap_open, gap_extend)
