"""``swsearch bench align``: what aligning one pair costs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swsearch.cli.align import AlphabetOption, PairMemoryOption, pair_scoring
from swsearch.cli.console import checked_threads, command, parse_size, say
from swsearch.cli.numbers import whole
from swsearch.cli.options import (
    RUNS_OPTION,
    AlphabetName,
    DeviceOption,
    EngineName,
    EngineOption,
    GpuMemoryOption,
    ModeName,
    ModeOption,
    PresetName,
    ThreadsOption,
)
from swsearch.errors import OptionError


@command
def bench_align(
    random: Annotated[
        int,
        typer.Option(
            "--random",
            parser=whole("a whole number from 1 to 1e9", 1, 10**9),
            metavar="N",
            help="Residues of the first sequence, which is made up.",
        ),
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
    mode: ModeOption = ModeName.global_,
    score_only: Annotated[bool, typer.Option("--score-only", help="Find no alignment.")] = False,
    runs: Annotated[
        int, typer.Option(parser=RUNS_OPTION, metavar="N", help="Runs, 1 to 1,000; the median counts.")
    ] = 3,
    seed: Annotated[
        int,
        typer.Option(
            parser=whole("a whole number >= 0", least=0), metavar="N", help="The same seed makes the same pair."
        ),
    ] = 1,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    gpu_memory: GpuMemoryOption = None,
    threads: ThreadsOption = None,
    memory: PairMemoryOption = "256M",
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FOLDER", help="Write the pair too, as a.fasta and b.fasta.")
    ] = None,
) -> None:
    """Measure what aligning one pair of random sequences takes here, in seconds and memory."""
    from swsearch.bench.pairs import measure, parse_identity, print_timing, random_pair, write_pair
    from swsearch.engines.choice import create_pair_aligner
    from swsearch.recurrence import Recurrence

    share = parse_identity(identity)
    budget = parse_size(memory, "memory")
    threads = checked_threads(threads)
    allowed = None if gpu_memory is None else parse_size(gpu_memory, "gpu_memory")
    scoring = pair_scoring(alphabet, PresetName.default, None, None, None, None, None)
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
        pairs=1,
    )
    with made as aligner:
        timing = measure(aligner, pair, Recurrence(scoring, mode.value), runs, score_only)
        how = f"{mode.value}, {scoring.describe()}{', score only' if score_only else ''}"
        print_timing(timing, pair, label, how, aligner.description)
    if write is not None:
        for path in write_pair(write, pair, letters, label):
            say(f"swsearch: wrote {path}")
