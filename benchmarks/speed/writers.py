"""Measure what writing costs: microseconds per hit, for each format, of one Python thread.

A search is made first, and its hits are aligned; then each format writes all results, several times over. Times are
those of the processor, so that others at work on the machine disturb little. Headers are taken apart when the first
format asks for them, which is a row of its own.

Needs: pyarrow. A minute.
Run:   python -m benchmarks.speed.writers [--queries Q.fasta] [--subjects DB] [--first 40] [--hits 500] [--runs 5]
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
from benchmarks.support.common import Records, arguments, data_line, finish, heading, read, table
from swsearch.options.kinds import Mode
from swsearch.report import OUTPUT_FORMATS, create_writer
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo

SCORES_ALONE = "6 qseqid sseqid evalue bitscore"
"""A table that takes no alignments."""

FORMATS = [kind.key for kind in OUTPUT_FORMATS] + [SCORES_ALONE, "6 std qseq sseq btop", "parquet subject_id evalue"]
"""What is measured: every format, and some choices of columns."""

TOGETHER = ("html", "parquet", "5")
"""Formats whose sum is shown."""


SAMPLE = Path("examples/data/swissprot_sample.fasta.gz")
"""3,575 proteins of Swiss-Prot."""

TITLE = "RecName: Full=Probable protein {0}; OS=Arabidopsis thaliana (Mouse-ear cress) OX=3702 GN={0} PE=1 SV=2"
"""What each subject is called after its identifier: as long as UniProt's headers, which the sample has not."""

MODES: tuple[Mode, ...] = ("local", "global")
"""Alignments of whatever is alike, and of whole proteins, which are longer."""


def search(queries: Records, subjects: Records, mode: Mode, hits: int) -> tuple[RunInfo, list[SearchResult]]:
    """Return results with as many hits per query, aligned, whatever their scores."""
    titled = [(f"{name} {TITLE.format(name)}", letters) for name, letters in subjects]
    found = swsearch.search(
        queries, titled, engine="cpu", mode=mode, max_hits=hits, distribution=True,
        statistics="published" if mode == "local" else "none", evalue=1e300 if mode == "local" else None,
    )  # fmt: skip
    return found.run, [result for batch in found.batches(True) for result in batch]


def written(outfmt: str, run: RunInfo, results: list[SearchResult]) -> int:
    """Write all results into memory, each by itself where the format takes one; return characters, or bytes."""
    writer = create_writer(outfmt, io.StringIO())
    if writer.is_single_query and len(results) > 1:
        return sum(written(outfmt, run, [result]) for result in results)
    binary = writer.binary
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


def measure(run: RunInfo, results: list[SearchResult], runs: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return microseconds and bytes, per hit, of each format."""
    hits = sum(len(result) for result in results)
    times = {"headers, once": busy(lambda: [result.table.headers.texts for result in results]) / hits * 1e6}
    sizes = {}
    for outfmt in FORMATS:
        sizes[outfmt] = written(outfmt, run, results) / hits
        times[outfmt] = busy(partial(written, outfmt, run, results), runs) / hits * 1e6
    times[" and ".join(TOGETHER)] = sum(times[outfmt] for outfmt in TOGETHER)
    return times, sizes


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(queries=SAMPLE, subjects=SAMPLE, first=40)
    parser.add_argument("--hits", type=int, default=500, help="hits per query, default %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="times that each is written, default %(default)s")
    options = parser.parse_args()
    queries, subjects = read(options.queries, options.first), read(options.subjects)
    lines = [*heading(__file__, ("numpy", "pyarrow")), data_line(queries, subjects, options)]
    cells: dict[str, list[str]] = {}
    names = ["format"]
    for mode in MODES:
        run, results = search(queries, subjects, mode, options.hits)
        hits = sum(len(result) for result in results)
        columns = sum(int(result.hsps.alignments.length.sum()) for result in results)
        times, sizes = measure(run, results, options.runs)
        lines.append(f"{mode}: {hits:,} hits, {columns / hits:.0f} columns per alignment")
        names += [f"us per hit, {mode}", "bytes per hit"]
        for outfmt, each in times.items():
            size = f"{sizes[outfmt]:,.0f}" if outfmt in sizes else ""
            cells.setdefault(outfmt, []).extend((f"{each:.2f}", size))
    lines += [f"processor time, medians of {options.runs}", ""]
    finish([*lines, *table(names, [[outfmt, *row] for outfmt, row in cells.items()])], options.out)


if __name__ == "__main__":
    main()
