"""``swsearch align``: pairwise alignments and scores of sequences of any length."""

# no postponed annotations: the kinds of the options follow from them
import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from swsearch.cli.console import limit_threads, print_message
from swsearch.cli.main import warm_up_gpu
from swsearch.cli.parameters import takes
from swsearch.cli.progress import WorkProgress, is_terminal, make_display
from swsearch.cli.tables import CommandTable, EngineTable, MessageTable, OneOutputTable
from swsearch.errors import InputError, OptionError, format_count
from swsearch.options.kinds import PRESETS, AlphabetName, ByteSize, Choice, PairSelection, Preset
from swsearch.options.row import Heading, option
from swsearch.output_files import check_not_an_input, check_output, open_output
from swsearch.pipeline.table.scoring import ScoringTable, SequenceTable

if TYPE_CHECKING:
    from swsearch.engines.base import PairAligner
    from swsearch.inputs import Query
    from swsearch.report.pairs import PairRun
    from swsearch.scoring import Scoring

DNA_GAP_OPEN = 10
"""Cost of opening a gap of DNA, where none is asked for."""

FLUSH_SECONDS = 0.5
"""Seconds after which what was found is written out, so that slow work is seen as it comes."""


class PairTable(CommandTable):
    """Options of pairwise alignments and their output."""

    HEADING: ClassVar = Heading.SCORING

    pairs: bool = option(
        False, "Align the first sequence of A with the first of B, the second with the second, and so on."
    )
    free_ends: str | None = option(
        None,
        "With --mode semiglobal: the free ends, separated by commas: query-start, query-end, subject-start, "
        "subject-end, query (both ends), subject or all.",
        unset="all",
        metavar="LIST",
    )
    alphabet: AlphabetName = option(
        "protein", "Alphabet of the sequences; dna accepts IUPAC codes, 3di (with --matrix) and tea are of structure."
    )
    match: int | None = option(None, "DNA: score of equal bases.", unset="5")
    mismatch: int | None = option(None, "DNA: score of different bases.", unset="-4")
    gap_open: float | None = option(
        None,
        "Cost to open a gap. A gap of k residues costs open + k * extend; 0 makes gap costs linear. Fractions are "
        "allowed: 9.5 and 0.5 equal 10 and 0.5 of EMBOSS.",
        unset="the matrix's, 11 for BLOSUM62; for DNA 10",
        metavar="N",
        others="gapopen gapo gop gap-open-cost gap-opening",
    )
    gap_extend: float | None = option(
        None,
        "Cost of each residue in a gap.",
        unset="the matrix's, 1 for BLOSUM62",
        metavar="N",
        others="gapextend gape gex gapext gap-ext gap-extension gap-extend-cost",
    )
    outfmt: str | None = option(
        None,
        "pairwise (blocks as in EMBOSS), cigar (identifiers, score, positions, CIGAR), sam, paf, jsonl (one JSON "
        "line per pair) or score (identifiers and score, without an alignment).",
        unset="from the file extension, else pairwise",
        metavar="FORMAT",
        others="format f m format-mode format-output aformat output-format",
        heading=Heading.OUTPUT,
    )
    score_only: bool = option(False, "Print only scores, as --outfmt score.", heading=Heading.OUTPUT)
    memory: int = option(
        256 << 20, "Maximum memory for alignment tables on the CPU.", ByteSize(), heading=Heading.RUNNING
    )


@takes(
    ScoringTable, SequenceTable, PairTable, OneOutputTable, EngineTable, MessageTable,
    names="pairs mode free_ends alphabet preset matrix match mismatch gap_open gap_extend allow_dna outfmt "
    "score_only output engine device gpu_memory threads memory quiet verbose",
    pairs={"heading": None},
    mode={"default": "global"},
    preset={
        "default": "default",
        "unset": "",
        "kind": Choice(*PRESETS),
        "metavar": "",
        "help": "default: BLOSUM62 11/1; sensitive: PFASUM60 15/1, for distant homologs; short: PAM30 9/1, for "
        "peptides. --matrix and the gap costs override it.",
    },
    matrix={"unset": "BLOSUM62; for DNA match/mismatch"},
)  # fmt: skip
def align_command(
    a: Annotated[str, typer.Argument(metavar="A", help="Queries: a FASTA file, - for stdin, or the letters.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Subjects: a FASTA file, - for stdin, or the letters.")],
    **given: Any,
) -> None:
    """Align every sequence of A with every sequence of B, or pair by pair.

    Exact, for two sequences of any length. A holds queries, B subjects; in SAM these are reads and references.
    --engine auto uses the CPU below 500,000,000 cells, because a GPU takes longer to start.
    """
    options, messages, output = (
        PairTable.from_values(given),
        MessageTable.from_values(given),
        OneOutputTable.from_values(given).output,
    )
    if given["engine"] == "gpu":
        warm_up_gpu(given["device"])
    from swsearch.inputs import check_distinct_inputs
    from swsearch.recurrence import Recurrence
    from swsearch.report.pairs import PairRun, check_format, format_of_file
    from swsearch.scoring import Ends, check_ends
    from swsearch.version import version

    started = time.monotonic()
    if options.score_only and options.outfmt not in (None, "score"):
        raise OptionError("outfmt", options.outfmt, "score with --score-only", "leave one of them out")
    by_name = format_of_file(output)
    outfmt = "score" if options.score_only else options.outfmt or by_name
    check_format(outfmt)
    check_distinct_inputs(a, b, ("A", "B"))
    if output is not None:
        check_output(Path(output))
        check_not_an_input([output], [a, b, given["matrix"]])
    ends = check_ends(given["mode"], None if options.free_ends is None else Ends.parse(options.free_ends))
    threads = limit_threads(given["threads"], messages.quiet)
    scoring = pair_scoring(options, given["preset"], given["matrix"])
    queries, subjects = (
        _read(name, text, scoring, given["allow_dna"], messages.quiet) for name, text in (("A", a), ("B", b))
    )
    if options.pairs and len(queries) != len(subjects):
        raise InputError(
            f"--pairs: A has {len(queries):,} sequences and B has {len(subjects):,}, expected as many in both; "
            "without --pairs all are aligned with all"
        )
    kind: PairSelection = "order" if options.pairs else "all"
    run = PairRun(queries, subjects, kind, Recurrence(scoring, given["mode"], ends), version())
    with pair_aligner(given, threads, run.cells, run.n_pairs) as aligner:
        if messages.verbose:
            _print_plan(aligner, run)
        _write(outfmt, run, aligner, output, messages.quiet)
        if not messages.quiet:
            seconds = time.monotonic() - started
            rate = run.cells / max(seconds, 1e-9) / 1e9
            print_message(
                f"{format_count(run.n_pairs, 'pair')}, {run.cells:,} cells, {seconds:.2f} s, {rate:.2f} GCUPS, "
                f"engine {aligner.description}"
            )


def pair_aligner(given: Mapping[str, Any], threads: int | None, cells: int, pairs: int) -> "PairAligner":
    """Make what aligns pairs, as the options of a command say."""
    from swsearch.engines.factory import create_pair_aligner

    engine, messages = EngineTable.from_values(given), MessageTable.from_values(given)
    return create_pair_aligner(
        engine.engine,
        threads=threads,
        memory=PairTable.from_values(given).memory,
        device=engine.device,
        gpu_memory=engine.gpu_memory,
        on_message=None if messages.quiet or messages.verbose else print_message,
        cells=cells,
        pairs=pairs,
    )


def _read(name: str, text: str, scoring: "Scoring", allow_dna: bool, quiet: bool) -> "list[Query]":
    """Read A or B, and say where it is taken for letters."""
    from swsearch.inputs import input_path, read_queries

    queries = read_queries(text, scoring.matrix.alphabet, name, allow_dna=allow_dna)
    if not quiet and not input_path(text):
        letters = format_count(len(queries[0].codes), "letter")
        print_message(f"{name} is taken as {letters}, not as the name of a file")
    return queries


def _print_plan(aligner: "PairAligner", run: "PairRun") -> None:
    if aligner.fallback:
        print_message(aligner.fallback)
    recurrence = run.recurrence
    print_message(f"engine {aligner.description}; {recurrence.scoring.describe()}; {recurrence.describe_ends()}")
    print_message(f"{format_count(run.n_pairs, 'pair')}, {run.cells:,} cells to do")


def _write(outfmt: str, run: "PairRun", aligner: "PairAligner", output: str | None, quiet: bool) -> None:
    """Align and write every pair of a run."""
    from swsearch.report.pairs import ScoredPair, create_pair_writer

    text = io.StringIO()  # the head is written with the first pair, so that nothing is written if that fails
    writer = create_pair_writer(outfmt, text)
    writer.begin(run)  # raises if the format cannot hold the pairs, before the output is opened
    display = make_display("auto" if is_terminal() else "none", quiet)
    with open_output(output) as stream, WorkProgress(display, "aligning", run.cells) as done:
        flushed = time.monotonic()
        codes = ((query.codes, subject.codes) for query, subject in run)
        align_or_score: Any = aligner.align_many if writer.needs_alignments else aligner.score_many
        for (query, subject), one in zip(run, align_or_score(codes, run.recurrence), strict=True):
            writer.write(ScoredPair(query, subject, one))
            _move(text, stream)
            if time.monotonic() - flushed > FLUSH_SECONDS:
                stream.flush()
                flushed = time.monotonic()
            done.advance(len(query.codes) * len(subject.codes))
        writer.end()
        _move(text, stream)


def _move(text: io.StringIO, stream: IO[str]) -> None:
    stream.write(text.getvalue())
    text.seek(0)
    text.truncate()


def pair_scoring(options: PairTable, preset: Preset = "default", matrix: str | None = None) -> "Scoring":
    """Make the scoring of a pair, checking which of its options go together."""
    from swsearch.alphabet import ALPHABETS
    from swsearch.matrices import PRESET_MATRICES
    from swsearch.pipeline.options import structural_matrix
    from swsearch.scoring import Scoring, dna_matrix, load_matrix

    match, mismatch, alphabet = options.match, options.mismatch, ALPHABETS[options.alphabet]
    simple = match is not None or mismatch is not None
    if simple and options.alphabet != "dna":
        raise InputError(f"--match and --mismatch go with --alphabet dna; for {options.alphabet} use --matrix")
    if simple and matrix is not None:
        raise InputError("--match and --mismatch cannot go with --matrix; use one or the other")
    if options.alphabet == "dna":
        if preset != "default":
            raise InputError(f"--preset {preset} is for protein; for DNA use --match, --mismatch or --matrix")
        simplest = (5 if match is None else match, -4 if mismatch is None else mismatch)
        chosen = dna_matrix(*simplest) if matrix is None else load_matrix(matrix, alphabet)
        return Scoring(chosen, DNA_GAP_OPEN if options.gap_open is None else options.gap_open, options.gap_extend)
    if alphabet.is_structural:
        if preset != "default":
            raise InputError(f"--preset {preset} is for protein; leave it out with --alphabet {alphabet.name}")
        chosen = structural_matrix(options.alphabet, None if matrix is None else load_matrix(matrix))
        return Scoring(chosen, options.gap_open, options.gap_extend)
    chosen = load_matrix(PRESET_MATRICES[preset] if matrix is None else matrix, alphabet)
    return Scoring(chosen, options.gap_open, options.gap_extend)
