"""Measure every variant of the pair kernel, with several grids, on made-up pairs.

The plan of `swsearch/engines/gpu/pairs/plan.py` is fitted to it. Prints a line for each variant, size and grid: rows
per lane, blocks, warps of each, kernel milliseconds (median of three), GCUPS, and what the plan expects, at
`CLOCK`. Every variant must find the same score.

Needs: an NVIDIA GPU, a quiet machine; some minutes.
Run:   python -m benchmarks.speed.pair_variants [--sizes 5000,37000,200000] [--letters 4,32] [--out FILE]
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import product
from unittest import mock

import numpy as np

from benchmarks.support.common import arguments, finish, heading, numbers
from benchmarks.support.timing import say
from swsearch.alphabet import ByteArray
from swsearch.engines.gpu.device import DeviceInfo
from swsearch.engines.gpu.pairs import long_pair, plan
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.engines.gpu.variants import PAIR_ROWS, PairVariant
from swsearch.options.kinds import MODES, Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

CLOCK = 1.98e9
"""Cycles a second of an H200, by which the plan's cycles become seconds."""

RUNS = 3

IN_USE = {4: 4, 8: 6, 32: 20}
"""Letters that sequences are made of, by the letters that a variant's table of scores has."""

Pair = tuple[ByteArray, ByteArray]


def launches(info: DeviceInfo, variant: PairVariant, size: int) -> Iterator[plan.PairLaunch]:
    """Yield several grids of a variant."""
    strips = -(-size // variant.strip_rows)
    most, enough = min(16, info.shared_limit // variant.warp_bytes), -(-strips // info.multiprocessors)
    for warps in sorted({1, 2, 4, 8, 12, 13, 14, 16, enough}):
        if warps <= min(most, enough):
            yield plan.PairLaunch(variant, strips, min(info.multiprocessors, strips), warps)


def made_up(generator: np.random.Generator, n: int, letters: int) -> Pair:
    """Make up a sequence, and a copy with one residue in twenty exchanged and one in a hundred left out."""
    query = generator.integers(0, letters, n).astype(np.uint8)
    subject = query[generator.random(n) > 0.01]
    changed = generator.random(len(subject)) < 0.05
    return query, np.where(changed, generator.integers(0, letters, len(subject)), subject).astype(np.uint8)


def measure(aligner: GpuPairAligner, pair: Pair, mode: Mode, letters: int, aligns: bool) -> Iterator[str]:
    """Time every launch, with the alignment or the score alone; yield what it took, and what the plan expects."""
    scores, (m, n) = set(), map(len, pair)
    recurrence = Recurrence(Scoring(dna_matrix(), 10, 1) if letters < 32 else Scoring(), mode)
    heights = (8,) if aligns else PAIR_ROWS[letters]
    every = [PairVariant(height, letters, mode == "local", aligns) for height in heights]
    for launch in (each for variant in every for each in launches(aligner.info, variant, m)):
        taken = []
        with mock.patch.object(long_pair, "choose_launch", lambda *_, launch=launch, **__: launch):
            for _ in range(RUNS if m < 500_000 else 1):
                before = aligner.usage.kernel_seconds
                scores.add(aligner.align(*pair, recurrence).score if aligns else aligner.score(*pair, recurrence))
                taken.append(aligner.usage.kernel_seconds - before)
        expected = plan.cost(launch.variant, m, n, launch.blocks, launch.warps) / CLOCK
        seconds = statistics.median(taken)
        yield (
            f"{mode:10} letters {letters:2} {m:9,} rows {launch.variant.rows:2} {launch.blocks:3} x {launch.warps:2} "
            f"{seconds * 1e3:9.3f} ms {m * n / seconds / 1e9:8.1f} GCUPS, plan {expected * 1e3:9.3f} ms"
        )
    assert len(scores) == 1, f"{mode}, {letters} letters, {m:,}: variants disagree: {scores}"


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--sizes", type=numbers, default=[5000, 37_000, 200_000], help="default 5000,37000,200000")
    parser.add_argument("--letters", type=numbers, default=[4], help="some of 4,8,32, default 4")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["global"], help="default global")
    parser.add_argument("--directions", action="store_true", help="with the alignment, not the score alone")
    options = parser.parse_args()
    report = heading(__file__, ["pycuda", "cuda-bindings", "numpy"])
    generator = np.random.default_rng(1)
    with GpuPairAligner() as aligner:
        report += [aligner.description, ""]
        for size, letters in product(options.sizes, options.letters):
            pair = made_up(generator, size, IN_USE[letters])
            for mode in options.modes:
                for line in measure(aligner, pair, mode, letters, options.directions):
                    report.append(line)
                    say(line)
    finish(report, options.out)


if __name__ == "__main__":
    main()
