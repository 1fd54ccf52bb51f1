"""Measure what frame shifts cost on the CPU, beside the same rows without shifts.

One query against every subject of a database in memory, scores only, on one thread: rows drawn from the database's
residues, scored as a protein and as the codons of a strand. Both take turns, and the ratio is the median of those of
each turn's processor seconds, so that what else runs on the machine weighs on both. Each instruction set, and queries
of two lengths.

Needs: a database; a minute. Exit code 1 if a score with shifts is below the best of the three plain frames.
Run:   python -m benchmarks.speed.frame_shifts --database DB.h5 [--turns 9]
           [--out benchmarks/results/frame_shifts_cpu.txt]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.speed.cpu_scans import engine_for, read_chunks
from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.timing import Timing, say, take_turn
from swsearch import Database
from swsearch.engines.base import Engine, LoadedChunk, QueryGroup, ScoreArray
from swsearch.engines.cpu import extension
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring

LENGTHS, COST = (998, 9998), 15
HEADS = ["", "rows", "protein, GCUPS", f"shifts for {COST}, GCUPS", "time / protein's"]


def scores_of(engine: Engine, group: QueryGroup, chunks: Sequence[LoadedChunk]) -> list[ScoreArray]:
    """Score a group with all chunks."""
    return [engine.score(group, each) for each in chunks]


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--database", type=Path, required=True, help="HDF5 file of subjects")
    parser.add_argument("--turns", type=int, default=9, help="of both, default %(default)s")
    options = parser.parse_args()
    generator, scoring = np.random.default_rng(1), Scoring()
    rows: list[list[object]] = []
    good = True
    with Database.open(options.database) as database:
        chunks = read_chunks(database)
        residues = np.concatenate([database.codes(place) for place in range(min(1000, database.n_subjects))])
        for instructions in extension.instruction_sets():
            engine = engine_for(instructions, 1)
            for length in LENGTHS:
                codes = generator.permutation(residues)[:length].astype(np.uint8)
                whole = scoring.rows(codes)
                frames = engine.prepare([scoring.rows(codes[k::3].copy()) for k in range(3)], Recurrence(scoring))
                plain = engine.prepare([whole], Recurrence(scoring))
                shifted = engine.prepare([whole], Recurrence(scoring, frame_shift=COST))
                timings = Timing(), Timing()
                for turn in range(options.turns):
                    take_turn(timings[0], partial(scores_of, engine, plain, chunks))
                    found = take_turn(timings[1], partial(scores_of, engine, shifted, chunks))
                    say(f"{instructions}, {length} rows, turn {turn + 1} of {options.turns}")
                best = [each.max(axis=0) for each in scores_of(engine, frames, chunks)]
                good = good and all((a[0] >= b).all() for a, b in zip(found, best, strict=True))
                cells = length * database.n_residues
                base, busy = timings[0].busy, timings[1].busy
                ratio = statistics.median(own / other for own, other in zip(busy, base, strict=True))
                rates = [f"{cells / statistics.median(each) / 1e9:.1f}" for each in (base, busy)]
                rows.append([instructions, length, *rates, f"{ratio:.2f}"])
        size = f"{database.n_subjects:,} subjects, {database.n_residues:,} residues"
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.database.name}: {size}; one thread, medians of {options.turns} turns;",
        f"scores with shifts are {'never' if good else 'SOMETIMES'} below those of the best frame.",
        "",
        *table(HEADS, rows),
    ]
    finish(lines, options.out)
    if not good:
        sys.exit(1)


if __name__ == "__main__":
    main()
