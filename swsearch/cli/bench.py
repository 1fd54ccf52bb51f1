"""``swsearch bench`` and its subcommands; the default is ``bench search``."""

# no postponed annotations: the kinds of the options follow from them
from pathlib import Path
from typing import Annotated, Any

import typer

from swsearch.cli.align import PairTable, pair_aligner, pair_scoring
from swsearch.cli.argument_checks import CheckedCommand, CommandGroup
from swsearch.cli.console import limit_threads, print_message
from swsearch.cli.parameters import takes
from swsearch.cli.tables import CommandTable, EngineTable, FileName
from swsearch.errors import EngineError, InputError, OptionError
from swsearch.options.kinds import Integer, Repeated, parse_integer
from swsearch.options.row import option
from swsearch.pipeline.table.scoring import ScoringTable


class BenchGroup(CommandGroup):
    """A group that takes ``swsearch bench QUERIES SUBJECTS`` for ``swsearch bench search QUERIES SUBJECTS``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Insert the subcommand ``search`` if there is none."""
        if not args or args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["search", *args]
        return super().parse_args(ctx, args)


bench_app = typer.Typer(
    name="bench",
    cls=BenchGroup,
    help="Measure throughput on this machine: whole searches (search, also without the word), one pair (align), "
    "published kernels (study).",
)


class RunsTable(CommandTable):
    """Number of runs of a benchmark."""

    runs: int = option(
        3, "Number of runs, 1 to 1,000; reports the median.", Integer(1, 1000, "a whole number from 1 to 1,000")
    )
    """More would run for days."""


class BenchTable(RunsTable):
    """Options of the benchmark of searches."""

    peers: bool = option(True, "Run the installed peers too.")
    top: int = option(
        10, "Number of hits with alignments per query.", Integer(1), others="max-hits max-target-seqs k"
    )


@bench_app.command("search", cls=CheckedCommand)
@takes(
    BenchTable,
    EngineTable,
    names="peers runs top threads",
    runs={"help": "Number of runs of each, 1 to 1,000; reports the median."},
)
def bench_search(
    queries: Annotated[str | None, typer.Argument(metavar="[QUERIES]", help="FASTA file.")] = None,
    subjects: Annotated[str | None, typer.Argument(metavar="[SUBJECTS]", help="FASTA file.")] = None,
    **given: Any,
) -> None:
    """Measure the throughput of each engine here, and of installed peers, in one run.

    Without files: 4 made-up queries against 10,000 made-up subjects of protein-like lengths.
    """
    from swsearch.bench.searches import measure, print_table
    from swsearch.engines.factory import check_engine_option
    from swsearch.processors import available_processors

    if (queries is None) != (subjects is None):
        raise InputError("bench takes both QUERIES and SUBJECTS, or neither")
    threads = (
        limit_threads(check_engine_option("threads", EngineTable.from_values(given).threads))
        or available_processors()
    )
    print_table(measure(queries, subjects, threads=threads, **vars(BenchTable.from_values(given))))


class RandomPairTable(RunsTable):
    """A pair that is made up."""

    random: int = option(10_000, "Residues of the first random sequence.", Integer(1, 10**9))
    identity: str = option(
        "0.9",
        "Fraction of the first sequence that the second one keeps after substitutions, insertions and deletions; "
        "or unrelated.",
        metavar="SHARE|unrelated",
    )
    seed: int = option(1, "Seed of the random pair.", Integer(0))
    write: str | None = option(None, "Also write the pair, as a.fasta and b.fasta.", metavar="FOLDER")


@bench_app.command("align", cls=CheckedCommand)
@takes(
    RandomPairTable, ScoringTable, PairTable, EngineTable,
    names="random alphabet identity mode score_only runs seed engine device gpu_memory threads memory write",
    mode={"default": "global"},
    score_only={"help": "Compute only the score.", "heading": None},
)  # fmt: skip
def bench_align(**given: Any) -> None:
    """Measure what aligning one pair of random sequences takes here, in seconds and memory."""
    from swsearch.bench.pairs import measure, parse_identity, print_timing, random_pair, write_pair
    from swsearch.recurrence import Recurrence

    pair_options, table, mode = RandomPairTable.from_values(given), PairTable.from_values(given), given["mode"]
    share, scoring = parse_identity(pair_options.identity), pair_scoring(table)
    threads = limit_threads(given["threads"])
    letters = scoring.matrix.alphabet
    folder = None if pair_options.write is None else Path(pair_options.write)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise OptionError("write", str(folder), "a folder", "choose another name")
    pair = random_pair(pair_options.random, letters, share, pair_options.seed)
    label = (
        f"random {letters.name}, {'unrelated' if share is None else f'identity {share:g}'}, seed {pair_options.seed}"
    )
    with pair_aligner(given, threads, len(pair[0]) * len(pair[1]), 1) as aligner:
        timing = measure(aligner, pair, Recurrence(scoring, mode), pair_options.runs, table.score_only)
        how = f"{mode}, {scoring.describe()}{', score only' if table.score_only else ''}"
        print_timing(timing, pair, label, how, aligner.description)
    if folder is not None:
        for path in write_pair(folder, pair, letters, label):
            print_message(f"wrote {path}")


class OneDevice(Integer):
    """The number of a GPU."""

    def parse(self, name: str, text: str) -> int:
        """Parse a number; other text is refused in the same words as a wrong number."""
        number = parse_integer(text)
        return self.check(name, text if number is None else number)


class StudyTable(CommandTable):
    """Options of the benchmark of published kernels."""

    approach: tuple[str, ...] = option(
        (),
        "diagonal-blocks, element-diagonals, skewed, strips or inter-task; may be given several times.",
        Repeated(),
        unset="all",
        metavar="NAME",
    )
    sizes: str = option("1024,4096,16384", "Lengths of the pairs to time.", metavar="N,...")
    gaps: str = option("both", "linear, affine or both.", metavar="KIND")
    json: str | None = option(None, "Also write all numbers here.", FileName())
    plot: str | None = option(None, "Also write plots here, as SVG; needs matplotlib.", metavar="FOLDER")
    check_only: bool = option(False, "Check the matrices without timing.")
    device: int | None = option(
        None,
        "GPU to use, only one.",
        OneDevice(0, expected="the number of one GPU, since kernels are studied on one"),
        unset="the one with the most multiprocessors",
    )


@bench_app.command("study", cls=CheckedCommand)
@takes(StudyTable)
def bench_study(**given: Any) -> None:
    """Check published GPU kernels cell by cell, and time them beside the CPU and our own.

    Needs a GPU, and parasail for the times of the CPU. Every variant's whole matrix is compared with the reference
    before anything of it is timed.
    """
    import json

    from swsearch.bench.study.plots import check_matplotlib, report, save_plots, summary
    from swsearch.bench.study.runner import Settings, StudyResults, run_study
    from swsearch.bench.study.timing import check_parasail
    from swsearch.bench.study.variants import APPROACHES

    options = StudyTable.from_values(given)
    settings = Settings(
        options.approach or APPROACHES,
        _numbers(options.sizes),
        ("linear", "affine") if options.gaps == "both" else (options.gaps,),
        options.check_only,
        options.device,
    )
    if options.plot is not None:
        check_matplotlib()
    if not options.check_only:
        check_parasail()

    def save(results: StudyResults) -> None:
        if options.json is not None:
            Path(options.json).write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")

    results = run_study(settings, typer.echo, save)
    typer.echo("\n".join(["", *report(results), "", *summary(results)]))
    if options.plot is not None:
        save_plots(results.as_json(), Path(options.plot))
    if results.failures:
        raise EngineError(f"{len(results.failures)} variants are wrong, the first: {results.failures[0]}")


def _numbers(text: str) -> tuple[int, ...]:
    numbers = [parse_integer(part) for part in text.split(",")]
    if None in numbers:
        raise OptionError("sizes", text, "whole numbers with commas between them")
    return tuple(each for each in numbers if each is not None)
