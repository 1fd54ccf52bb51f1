"""``swsearch bench align``: what aligning one pair costs on this machine."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swsearch.cli.align import PairTable, pair_aligner, pair_scoring
from swsearch.cli.console import checked_threads, command, say
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import CommandTable, EngineTable
from swsearch.errors import OptionError
from swsearch.options.kinds import Integer
from swsearch.options.row import option
from swsearch.pipeline.table.scoring import ScoringTable


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RunsTable(CommandTable):
    """How often something is measured."""

    runs: int = option(
        3, "Number of runs, 1 to 1,000; reports the median.", Integer(1, 1000, "a whole number from 1 to 1,000")
    )
    """More would run for days."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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


@command
@takes(
    command_rows(
        RandomPairTable, PairTable, ScoringTable, EngineTable,
        names="random alphabet identity mode score_only runs seed engine device gpu_memory threads memory write",
        mode={"default": "global"},
        score_only={"help": "Compute only the score.", "heading": None},
    )
)  # fmt: skip
def bench_align(**given: Any) -> None:
    """Measure what aligning one pair of random sequences takes here, in seconds and memory."""
    from swsearch.bench.pairs import measure, parse_identity, print_timing, random_pair, write_pair
    from swsearch.recurrence import Recurrence

    made, asked, mode = RandomPairTable.of(given), PairTable.of(given), given["mode"]
    share, scoring = parse_identity(made.identity), pair_scoring(asked)
    threads = checked_threads(given["threads"])
    letters = scoring.matrix.alphabet
    folder = None if made.write is None else Path(made.write)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise OptionError("write", str(folder), "a folder", "choose another name")
    pair = random_pair(made.random, letters, share, made.seed)
    label = f"random {letters.name}, {'unrelated' if share is None else f'identity {share:g}'}, seed {made.seed}"
    with pair_aligner(given, threads, len(pair[0]) * len(pair[1]), 1) as aligner:
        timing = measure(aligner, pair, Recurrence(scoring, mode), made.runs, asked.score_only)
        how = f"{mode}, {scoring.describe()}{', score only' if asked.score_only else ''}"
        print_timing(timing, pair, label, how, aligner.description)
    if folder is not None:
        for path in write_pair(folder, pair, letters, label):
            say(f"swsearch: wrote {path}")
