"""Measure what a profile costs as a query on the CPU, beside a sequence of its length.

One query against every subject of a database in memory, scores only, on one thread: a sequence drawn at random, the
same rows as a profile (so that both find the same scores, which are compared), and the same profile with gap costs by
position. Contenders take turns, and ratios are those of each turn's processor seconds, so that what else runs on the
machine weighs on all; their median is given. Each instruction set, and each mode.

Needs: a database; a few minutes. Exit code 1 if a score differs.
Run:   python -m benchmarks.speed.profiles_cpu --database DB.h5 [--length 250] [--turns 11]
           [--out benchmarks/results/profiles_cpu.txt]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.speed.cpu_scans import engine_for, read_chunks
from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.timing import Timing, say, take_turn
from swsearch import Database
from swsearch.engines.base import LoadedChunk
from swsearch.engines.cpu import extension
from swsearch.options.kinds import MODES, Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import PositionGaps, QueryRows, Scoring

SEQUENCE, PROFILE, COSTS = "sequence", "profile", "profile with gap costs by position"

HEADS = [
    "", "mode", "sequence, GCUPS", "profile, GCUPS", "time / sequence's", "with gap costs, GCUPS",
    "time / sequence's",
]  # fmt: skip


def queries_of(length: int, scoring: Scoring) -> dict[str, QueryRows]:
    """Draw a sequence, and make profiles that score as it does."""
    codes = np.random.default_rng(1).integers(0, 20, length).astype(np.uint8)
    rows = scoring.rows(codes)
    gaps = PositionGaps.uniform(length, scoring.gap_open, scoring.gap_extend)
    return {
        SEQUENCE: rows,
        PROFILE: QueryRows(rows.scores, codes, is_specific=True),
        COSTS: QueryRows(rows.scores, codes, is_specific=True, gaps=gaps),
    }


def measure(
    chunks: Sequence[LoadedChunk], queries: dict[str, QueryRows], instructions: str, mode: Mode, turns: int
) -> tuple[dict[str, Timing], bool]:
    """Time all contenders in turn; also say whether all scores are the same."""
    engine, recurrence = engine_for(instructions, 1), Recurrence(Scoring(), mode)
    groups = {name: engine.prepare([rows], recurrence) for name, rows in queries.items()}
    timings = {name: Timing() for name in groups}
    same = True
    for turn in range(turns):
        expected = None
        for name, group in groups.items():
            found = take_turn(timings[name], lambda group=group: [engine.score(group, each) for each in chunks])
            scores = np.concatenate(found, axis=1)
            expected = scores if expected is None else expected
            same = same and bool((scores == expected).all())
        say(f"{instructions}, {mode}, turn {turn + 1} of {turns}")
    return timings, same


def row_of(timings: dict[str, Timing], cells: int) -> list[str]:
    """Return the numbers of a row of the table."""
    base = timings[SEQUENCE].busy
    row = [f"{cells / statistics.median(base) / 1e9:.1f}"]
    for name in (PROFILE, COSTS):
        busy = timings[name].busy
        ratio = statistics.median(own / other for own, other in zip(busy, base, strict=True))
        row += [f"{cells / statistics.median(busy) / 1e9:.1f}", f"{ratio:.3f}"]
    return row


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--database", type=Path, required=True, help="HDF5 file of subjects")
    parser.add_argument("--length", type=int, default=250, help="residues of the query, default %(default)s")
    parser.add_argument("--turns", type=int, default=11, help="of every contender, default %(default)s")
    options = parser.parse_args()
    queries = queries_of(options.length, Scoring())
    rows, all_same = [], True
    with Database.open(options.database) as database:
        chunks = read_chunks(database)
        cells = options.length * database.n_residues
        size = f"{database.n_subjects:,} subjects, {database.n_residues:,} residues"
        for instructions in extension.instruction_sets():
            for mode in MODES:
                timings, same = measure(chunks, queries, instructions, mode, options.turns)
                rows.append([instructions, mode, *row_of(timings, cells)])
                all_same = all_same and same
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.database.name}: {size}; query of {options.length}, one thread, medians of {options.turns} turns;",
        f"scores are {'the same' if all_same else 'NOT the same'}.", "",
        *table(HEADS, rows),
    ]  # fmt: skip
    finish(lines, options.out)
    if not all_same:
        sys.exit(1)


if __name__ == "__main__":
    main()
