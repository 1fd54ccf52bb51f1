"""Time whole jobs of the size that users run, beside the time that the kernels need for them.

The kernels' time is that of scoring the queries with a database that is on the device already, by the device's
own clock, in groups as a job makes them; on the CPU it is the time of the scan alone. Commands are whole processes,
start, reading, E-values, alignments and output included; each is run RUNS times, and medians are shown. The resident
searcher is timed from the call to arrays of hits and alignments, database and engine being open.

Needs: Swiss-Prot as FASTA and its database; twenty queries; pyarrow for parquet, else JSON lines are written.
Run:   python -m benchmarks.speed.jobs SPROT.fasta DATABASE QUERIES20 [--engine gpu] [--queries 1000] [--runs 3]
           [--only PART] [--out benchmarks/results/jobs_gpu.txt]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from benchmarks.support.common import arguments, finish, heading, read, residues, swsearch, table, write
from benchmarks.support.scanning import Scan
from benchmarks.support.timing import Timing, say, take_turn
from swsearch.db import Database
from swsearch.engines import create_engine
from swsearch.inputs import read_queries
from swsearch.pipeline.batch import query_groups

PEPTIDES = 990
"""Peptides of 9 to 15 residues, cut from the database's own proteins."""

RESIDENT_CALLS = 30
"""Calls of the resident searcher that are timed, after three that are not."""

Record = tuple[str, str]


def spread(records: Sequence[Record], n: int) -> list[Record]:
    """Take n records at equal distances."""
    return [records[k * len(records) // n] for k in range(n)]


def peptides(records: Sequence[Record]) -> list[Record]:
    """Cut a peptide out of the middle of each of some proteins, of 9 to 15 residues in turn."""
    found = []
    for k, (_, sequence) in enumerate(spread([each for each in records if len(each[1]) >= 60], PEPTIDES)):
        begin = len(sequence) // 2
        found.append((f"peptide_{k}", sequence[begin : begin + 9 + k % 7]))
    return found


def scan_seconds(engine: str, queries: Path, database: Path) -> float:
    """Return the seconds of scoring the queries with a loaded database: of the kernels, or of the scan on the CPU."""
    found = read_queries(queries)
    groups = list(query_groups(found))
    with (
        create_engine(engine) as made,
        Database.open(database) as opened,
        closing(Scan(made, opened, groups)) as scan,
    ):
        scan.select(found[:1])  # now the database is on the device, and kernels are compiled
        return scan.score(*groups).kernel


def command_seconds(timing: Timing, parts: Sequence[object], runs: int) -> Timing:
    """Time a command."""
    for _ in range(runs):
        take_turn(timing, lambda: swsearch("search", *parts, "--quiet"))
        say(f"{' '.join(map(str, parts[2:]))}: {timing.wall[-1]:.2f} s")
    return timing


def resident_seconds(engine: str, database: Path, record: Record) -> tuple[float, float, int]:
    """Return median and longest seconds of a call of a resident searcher with one query, and its hits."""
    import swsearch as library

    walls = []
    with library.Searcher(database, engine=engine, max_hits=100) as searcher:
        for call in range(RESIDENT_CALLS + 3):
            begun = time.perf_counter()
            (result,) = searcher.search([record])
            hits, alignments = result.table, result.hsps.alignments
            columns = hits.subjects, hits.scores, hits.numbers.evalues, alignments.query_start, alignments.identities
            wall = time.perf_counter() - begun
            assert all(len(column) == len(result) for column in columns)
            if call >= 3:
                walls.append(wall)
    return statistics.median(walls), max(walls), len(result)


def measure(options: argparse.Namespace, folder: Path) -> list[list[str]]:
    """Measure every job; return the rows of the table."""
    records, engine, database = read(options.fasta), options.engine, options.database
    paths = {"many": folder / "many.fasta", "peptides": folder / "peptides.fasta", "twenty": options.twenty}
    write(paths["many"], spread(records, options.queries))
    write(paths["peptides"], peptides(records))
    many = f"{options.queries:,} queries"
    typed = "parquet" if find_spec("pyarrow") else "jsonl"
    short = ("--evalue", 1000, "--max-hits", 10)
    jobs: list[tuple[str, str, tuple[object, ...], tuple[str, ...]]] = [
        (f"{many}, defaults", "many", (), ("o.tsv",)),
        (f"{many}, `--max-hits 10`", "many", ("--max-hits", 10), ("o.tsv",)),
        (f"{many}, `--statistics published`", "many", ("--statistics", "published"), ("o.tsv",)),
        (f"{many}, published, best 10", "many", ("--statistics", "published", "--max-hits", 10), ("o.tsv",)),
        (f"{many}, html, {typed} and xml", "many", (), ("o.html", f"o.{typed}", "o.xml")),
        (f"{PEPTIDES} peptides, E <= 1000, best 10", "peptides", short, ("o.tsv",)),
        ("20 queries, best 10", "twenty", ("--max-hits", 10), ("o.tsv",)),
    ]
    rows = []
    jobs = [job for job in jobs if any(part in job[0] for part in options.only)]
    scans = {which: scan_seconds(engine, paths[which], database) for which in dict.fromkeys(job[1] for job in jobs)}
    say(", ".join(f"{name}: scan {seconds:.2f} s" for name, seconds in scans.items()))
    for name, which, asked, outputs in jobs:
        given = [part for output in outputs for part in ("-o", folder / output)]
        timing = command_seconds(Timing(), (paths[which], database, "--engine", engine, *asked, *given), options.runs)
        lines = sum(1 for _ in (folder / "o.tsv").open(encoding="utf-8")) if outputs == ("o.tsv",) else None
        rows.append([
            name, f"{scans[which]:.2f}", f"{timing.median:.2f} ({timing.spread()})",
            f"{timing.median / scans[which]:.2f}", "" if lines is None else f"{lines:,}",
        ])  # fmt: skip
    if any(part in (name := f"{many}, three iterations, a file of A3M each") for part in options.only):
        scan = scans.get("many") or scan_seconds(engine, paths["many"], database)
        made = folder / "a3m"
        asked = (paths["many"], database, "--engine", engine, "--iterations", 3, "-o", made, "--quiet")
        timing = Timing()
        for _ in range(options.runs):
            take_turn(timing, lambda: swsearch("msa", *asked))
            say(f"{name}: {timing.wall[-1]:.2f} s")
        rows_of_all = sum(text.count(">") for text in (one.read_text(encoding="utf-8") for one in made.iterdir()))
        rows.append([
            name, f"3 x {scan:.2f}", f"{timing.median:.2f} ({timing.spread()})", f"{timing.median / scan / 3:.2f}",
            f"{rows_of_all:,}",
        ])  # fmt: skip
    for length in (250, 1133) if any(part in "resident searcher" for part in options.only) else ():
        record = min(records, key=lambda each: abs(len(each[1]) - length))
        write(folder / "one.fasta", [record])
        scan = scan_seconds(engine, folder / "one.fasta", database)
        wall, longest, hits = resident_seconds(engine, database, record)
        name = f"resident searcher, {len(record[1]):,} residues, best 100"
        rows.append([name, f"{scan:.4f}", f"{wall:.4f} (longest {longest:.4f})", f"{wall / scan:.2f}", f"{hits:,}"])
    return rows


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("fasta", type=Path, help="the database's proteins, of which queries are taken")
    parser.add_argument("database", type=Path)
    parser.add_argument("twenty", type=Path, help="twenty queries")
    parser.add_argument("--engine", default="gpu", help="what searches, default %(default)s")
    parser.add_argument("--only", action="append", metavar="PART", help="jobs whose name has this; may be repeated")
    parser.add_argument("--queries", type=int, default=1000, help="how many are many, default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="turns of each command, default %(default)s")
    options = parser.parse_args()
    options.only = options.only or [""]
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options, Path(folder))
    records = spread(read(options.fasta), options.queries)
    lines = [
        *heading(__file__, ("numpy",)),
        f"{options.database.name}; {options.queries:,} queries have {residues(records):,} residues; engine "
        f"{options.engine}; medians of {options.runs}",
        "",
        *table(["job", "kernels or scan, s", "whole, s", "ratio", "lines or hits"], rows),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
