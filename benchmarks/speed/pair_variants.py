"""Time every variant of the pair kernel, with several grids, on made-up pairs: what `pair_plan` is fitted to.

    python -m benchmarks.speed.pair_variants [--sizes 5000,37000,200000] [--letters 4,32] [--json FILE]

Every variant must find the same score. One line a variant and size: rows a lane, blocks, warps of each, kernel
milliseconds (median of three), GCUPS, and what the plan expects in the same unit.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import numpy as np

from swsearch.engines.gpu.pairs import long_pair, plan
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.engines.gpu.variants import PAIR_ROWS, PairVariant
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

CLOCK = 1.98e9
RUNS = 3


def made_up(generator: np.random.Generator, n: int, letters: int) -> tuple[np.ndarray, np.ndarray]:
    query = generator.integers(0, letters, n).astype(np.uint8)
    subject = query[generator.random(n) > 0.01]
    changed = generator.random(len(subject)) < 0.05
    return query, np.where(changed, generator.integers(0, letters, len(subject)), subject).astype(np.uint8)


def launches(rows: int, letters: int, local: bool, directions: bool, info):
    heights = (8,) if directions else PAIR_ROWS[letters]
    for height in heights:
        variant = PairVariant(height, letters, local, directions)
        strips = -(-rows // variant.strip_rows)
        most = min(16, info.shared_limit // variant.warp_bytes)
        enough = -(-strips // info.multiprocessors)
        for warps in sorted({1, 2, 4, 8, 12, 13, 14, 16, enough}):
            if warps <= most and warps <= enough:
                yield plan.Launch(variant, strips, min(info.multiprocessors, strips), warps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="5000,37000,200000")
    parser.add_argument("--letters", default="4")
    parser.add_argument("--modes", default="global")
    parser.add_argument("--directions", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    generator = np.random.default_rng(1)
    with GpuPairAligner() as aligner:
        print(aligner.description)
        for size in map(int, arguments.sizes.split(",")):
            for count in map(int, arguments.letters.split(",")):
                scoring = Scoring(dna_matrix(), 10, 1) if count < 32 else Scoring()
                letters = {4: 4, 8: 6, 32: 20}[count]
                query, subject = made_up(generator, size, letters)
                for mode in arguments.modes.split(","):
                    scores = set()
                    for launch in launches(size, count, mode == "local", arguments.directions, aligner.info):
                        taken = []
                        for _ in range(RUNS if size < 500_000 else 1):
                            before = aligner.usage.kernel_seconds
                            original = long_pair.choose_launch
                            long_pair.choose_launch = lambda *_, chosen=launch, **__: chosen
                            try:
                                if arguments.directions:
                                    scores.add(aligner.align(query, subject, Recurrence(scoring, mode)).score)
                                else:
                                    scores.add(aligner.score(query, subject, Recurrence(scoring, mode)))
                            finally:
                                long_pair.choose_launch = original
                            taken.append(aligner.usage.kernel_seconds - before)
                        seconds = statistics.median(taken)
                        cells = len(query) * len(subject)
                        expected = plan.cost(
                            launch.variant, size, len(subject), launch.blocks, launch.warps
                        ) / CLOCK  # fmt: skip
                        rows.append(
                            (mode, count, size, launch.variant.rows, launch.blocks, launch.warps, seconds, expected)
                        )
                        print(
                            f"{mode:10} letters {count:2} {size:9,} rows {launch.variant.rows:2} "
                            f"{launch.blocks:3} x {launch.warps:2} {seconds * 1e3:9.3f} ms "
                            f"{cells / seconds / 1e9:8.1f} GCUPS, plan {expected * 1e3:9.3f} ms",
                            flush=True,
                        )
                    assert len(scores) == 1, f"variants disagree: {scores}"
    if arguments.json:
        arguments.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
