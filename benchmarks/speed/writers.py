"""Measure what writing costs: microseconds per hit, for each format, of one Python thread.

A search is made first, and its hits are aligned; then each format writes all results, several times over. Times are
those of the processor, so that others at work on the machine disturb little. Headers are taken apart when the first
format asks for them, which is a row of its own.

Needs: queries and a database, built or FASTA. Half a minute for 40 queries and 20,000 proteins.
Run:   python -m benchmarks.speed.writers QUERIES DATABASE [--hits 500] [--runs 5]
           [--out benchmarks/results/writers.txt]
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import swsearch
from benchmarks.support.common import arguments, finish, heading, table
from swsearch.report import KINDS, create_writer
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo

SCORES_ALONE = "6 qseqid sseqid evalue bitscore"
"""A table that takes no alignments."""

FORMATS = [kind.key for kind in KINDS] + [SCORES_ALONE, "6 std qseq sseq btop", "parquet subject_id evalue"]
"""What is measured: every format, and some choices of columns."""

TOGETHER = ("html", "parquet", "5")
"""Formats whose sum is shown."""


def search(queries: str, database: str, hits: int) -> tuple[RunInfo, list[SearchResult]]:
    """Return results with as many hits per query, aligned, whatever their E-values."""
    found = swsearch.search(
        queries, database, engine="cpu", statistics="published", evalue=1e300, max_hits=hits, distribution=True
    )
    return found.run, [result for batch in found.batches(True) for result in batch]


def written(outfmt: str, run: RunInfo, results: list[SearchResult]) -> int:
    """Write all results into memory; return characters, or bytes."""
    binary = create_writer(outfmt, io.StringIO()).binary
    stream: io.BytesIO | io.StringIO = io.BytesIO() if binary else io.StringIO()
    writer = create_writer(outfmt, stream)
    writer.begin(run)
    for result in results:
        writer.write(result)
    writer.end()
    writer.discard()
    return stream.tell()


def busy(work: Callable[[], object], runs: int = 1) -> float:
    """Return the processor seconds of a call, the median of several."""
    seconds = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("queries", type=Path)
    parser.add_argument("database", type=Path)
    parser.add_argument("--hits", type=int, default=500, help="hits per query, default %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="times that each is written, default %(default)s")
    options = parser.parse_args()
    run, results = search(str(options.queries), str(options.database), options.hits)
    hits = sum(len(result) for result in results)
    columns = sum(int(result.hsps.alignments.length.sum()) for result in results)
    headers = busy(lambda: [result.table.headers.texts for result in results])
    rows = [["headers, once", f"{headers / hits * 1e6:.2f}", ""]]
    seconds = {}
    for outfmt in FORMATS:
        size = written(outfmt, run, results)
        seconds[outfmt] = busy(partial(written, outfmt, run, results), options.runs)
        rows.append([outfmt, f"{seconds[outfmt] / hits * 1e6:.2f}", f"{size / hits:,.0f}"])
    together = sum(seconds[outfmt] for outfmt in TOGETHER)
    rows.append([" and ".join(TOGETHER), f"{together / hits * 1e6:.2f}", ""])
    lines = [
        *heading(__file__, ("numpy", "pyarrow")),
        f"{options.queries.name} x {options.database.name}: {len(results):,} queries, {hits:,} hits, "
        f"{columns / hits:.0f} columns per alignment",
        f"processor time, medians of {options.runs}; 350,000 hits to {', '.join(TOGETHER)}: "
        f"{together / hits * 350_000:.1f} s",
        "",
        *table(["format", "us per hit", "bytes per hit"], rows),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
