"""Compare the time of a search by default, whose E-values come from shuffled copies, with that of published ones.

Whole commands, in turn on one machine, so that alignments and output count too. Both list other hits, and not equally
many, which the table says.

Needs: queries and a database, built or FASTA, or several.
Run:   python -m benchmarks.speed.evalues QUERIES DATABASE... [--engine gpu] [--runs 5]
           [--out benchmarks/results/evalues_cpu.txt]
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from benchmarks.support.common import arguments, finish, heading, numbers, read, residues, swsearch, table
from benchmarks.support.timing import Timing, say, take_turn

METHODS = ("published", "auto")


def measure(queries: Path, database: Path, engine: str, runs: int, max_hits: int) -> list[str]:
    """Time both in turn; return a row of the table."""
    timings = {method: Timing() for method in METHODS}
    hits = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            for method, timing in timings.items():
                out = Path(folder) / f"{method}.tsv"
                options = ("--engine", engine, "--statistics", method, "--max-hits", max_hits, "-o", out, "--quiet")
                take_turn(timing, lambda: swsearch("search", queries, database, *options))  # noqa: B023
                hits[method] = sum(1 for _ in out.open(encoding="utf-8"))
                say(f"{database.name} {method}: {timing.wall[-1]:.2f} s")
    published, default = (timings[method] for method in METHODS)
    pairs = [after / before for before, after in zip(published.wall, default.wall, strict=True)]
    busy = [after / before for before, after in zip(published.busy, default.busy, strict=True)]
    return [
        database.name, str(max_hits), f"{published.median:.2f}", f"{default.median:.2f}",
        f"{statistics.median(pairs):.3f} ({min(pairs):.2f} - {max(pairs):.2f})", f"{statistics.median(busy):.3f}",
        f"{hits['published']:,}", f"{hits['auto']:,}",
    ]  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("queries", type=Path)
    parser.add_argument("databases", type=Path, nargs="+")
    parser.add_argument("--engine", default="cpu", help="what searches, default %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="turns of each, default %(default)s")
    parser.add_argument("--max-hits", type=numbers, default=[500], help="of a query, such as 10,500; default 500")
    options = parser.parse_args()
    records = read(options.queries)
    rows = [
        measure(options.queries, each, options.engine, options.runs, max_hits)
        for each in options.databases
        for max_hits in options.max_hits
    ]
    columns = ["database", "--max-hits", "published, s", "default, s", "ratio (range)", "ratio of processor time"]
    lines = [
        *heading(__file__, ("numpy",)),
        f"{options.queries.name}: {len(records):,} queries, {residues(records):,} residues; engine {options.engine}; "
        f"whole commands, {options.runs} turns, medians",
        "",
        *table([*columns, "hits, published", "hits, default"], rows),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
