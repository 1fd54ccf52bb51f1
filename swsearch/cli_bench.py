"""``swsearch bench``: what searching and aligning cost on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from swsearch.cli_align import AlphabetOption, PairMemory, pair_scoring
from swsearch.cli_options import (
    AlphabetName,
    Device,
    Engine,
    EngineName,
    GpuMemory,
    Mode,
    ModeName,
    Threads,
)
from swsearch.console import command, parse_size, say
from swsearch.errors import InputError, OptionError


class BenchGroup(TyperGroup):
    """Commands, of which ``search`` is meant where none is named: ``swsearch bench QUERIES SUBJECTS``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer brings its own Context, or click's
        """Put the name of the default command in front of what names none."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["search", *args]
        return super().parse_args(ctx, args)


bench_app = typer.Typer(cls=BenchGroup, help="Measure throughput here: of search (the default) or align.")


@bench_app.command("search")
@command
def bench_search_command(
    queries: Annotated[str | None, typer.Argument(metavar="[QUERIES]", help="FASTA file.")] = None,
    subjects: Annotated[str | None, typer.Argument(metavar="[SUBJECTS]", help="FASTA file.")] = None,
    peers: Annotated[bool, typer.Option(help="Run the peers that are installed beside it.")] = True,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each; the median counts.")] = 3,
    top: Annotated[int, typer.Option(min=1, help="Hits with alignments a query.")] = 10,
    threads: Threads = None,
) -> None:
    """Measure the throughput of each engine here, and of installed peers, in one run.

    Without files: 4 made-up queries against 10,000 made-up subjects of protein-like lengths.
    """
    from swsearch.bench import measure, print_table
    from swsearch.engines.base import available_processors

    if (queries is None) != (subjects is None):
        raise InputError("bench takes both QUERIES and SUBJECTS, or neither")
    print_table(
        measure(queries, subjects, peers=peers, runs=runs, top=top, threads=threads or available_processors())
    )


@bench_app.command("align")
@command
def bench_align_command(
    random: Annotated[
        int, typer.Option("--random", metavar="N", min=1, help="Residues of the first sequence, which is made up.")
    ] = 10_000,
    alphabet: AlphabetOption = AlphabetName.protein,
    identity: Annotated[
        str,
        typer.Option(
            metavar="SHARE|unrelated",
            help="Share of the first sequence that is found again in the second, which is made from it by "
            "substitutions, insertions and deletions; or unrelated.",
        ),
    ] = "0.9",
    mode: Mode = ModeName.global_,
    score_only: Annotated[bool, typer.Option("--score-only", help="Find no alignment.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Runs; the median counts.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same pair.")] = 1,
    engine: Engine = EngineName.auto,
    device: Device = None,
    gpu_memory: GpuMemory = None,
    threads: Threads = None,
    memory: PairMemory = "256M",
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FOLDER", help="Write the pair too, as a.fasta and b.fasta.")
    ] = None,
) -> None:
    """Measure what aligning one pair of random sequences takes here, in seconds and memory."""
    from swsearch.bench_align import measure, parse_identity, print_timing, random_pair, write_pair
    from swsearch.pairs import create_pair_aligner

    share = parse_identity(identity)
    budget = parse_size(memory, "memory")
    allowed = None if gpu_memory is None else parse_size(gpu_memory, "gpu_memory")
    scoring = pair_scoring(alphabet, None, None, None, None, 1)
    letters = scoring.matrix.alphabet
    if write is not None and write.exists() and not write.is_dir():
        raise OptionError("write", str(write), "a folder", "choose another name")
    pair = random_pair(random, letters, share, seed)
    label = f"random {letters.name}, {'unrelated' if share is None else f'identity {share:g}'}, seed {seed}"
    made = create_pair_aligner(
        engine.value,
        threads=threads,
        memory=budget,
        device=device,
        gpu_memory=allowed,
        notice=lambda text: say(f"swsearch: {text}"),
        cells=len(pair[0]) * len(pair[1]),
    )
    with made as aligner:
        timing = measure(aligner, pair, scoring, mode.value, runs, score_only)
        how = f"{mode.value}, {scoring.describe()}{', score only' if score_only else ''}"
        print_timing(timing, pair, label, how, aligner.description)
    if write is not None:
        for path in write_pair(write, pair, letters, label):
            say(f"swsearch: wrote {path}")
