"""What the number of segments of a database costs a search: the same records in one segment and in several, in turns.

`swsearch db build --memory` says how large segments are. Each database is searched once uncounted, then in turns.
Blocks of a segment are padded to the lengths of its own subjects, so that more segments have more padding.

Needs: a FASTA file of subjects, the first of which are the queries.
Run:   python -m benchmarks.speed.segments SUBJECTS.fasta [--engine cpu] [--queries 10] [--runs 5] [--out FILE]
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.support.common import arguments, finish, heading, read, swsearch, table, write
from benchmarks.support.timing import Timing, say, take_turn
from swsearch.db import Database

MEMORY = ("3G", "128M", "64M")
"""Memory of the builds: segments take a third of it."""


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("subjects", type=Path)
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    rows, timings = [], {memory: Timing() for memory in MEMORY}
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        queries = write(folder / "queries.fasta", read(options.subjects, options.queries))
        for memory in MEMORY:
            swsearch("db", "build", options.subjects, "-o", folder / f"{memory}.h5", "--memory", memory, "-q")
        for turn in range(options.runs + 1):
            for memory, timing in timings.items():
                report = folder / f"{memory}.tsv"
                search = ("search", queries, folder / f"{memory}.h5", "--engine", options.engine, "-q", "-o", report)
                take_turn(timing if turn else Timing(), lambda search=search: swsearch(*search))
            say(f"turn {turn} of {options.runs}")
        for memory, timing in timings.items():
            assert (folder / f"{memory}.tsv").read_bytes() == (folder / f"{MEMORY[0]}.tsv").read_bytes()
            with Database.open(folder / f"{memory}.h5") as database:
                n_segments, padding = database.info()["n_segments"], database.residue_bytes / database.n_residues - 1
            ratio = timing.median / timings[MEMORY[0]].median
            rows.append(
                [f"{n_segments}", f"{padding:.1%}", f"{timing.median:.2f} ({timing.spread()})", f"{ratio:.2f}"]
            )
    columns = ["segments", "padding", "seconds", "ratio"]
    lines = [*heading(__file__, ("numpy",)), f"{options.subjects.name}; engine {options.engine}; "]
    lines[-1] += f"{options.queries} queries; medians of {options.runs} searches in turns; the same reports"
    finish([*lines, "", *table(columns, rows)], options.out)


if __name__ == "__main__":
    main()
