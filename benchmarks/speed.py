"""Is a whole search as fast as the bare loops of the libraries it runs on? Required: at most 1.15 times the faster.

Times, in turn (A B C, A B C, ...) and as the median of three,
  A  swsearch search QUERIES DB.h5 --max-hits 10 --outfmt 6: start of Python, reading, scan, statistics,
     alignments of the hits, writing; the database was built before,
  B  parasail's own functions as users write them: for each query profile_create_sat, then
     sw_striped_profile_sat(...).score over all subjects in as many Python threads; reading and encoding of the
     subjects and the start of Python are not timed, and it finds scores only,
  C  pyopal's own functions in the same way: an Aligner a query, align(..., mode="score", overflow="simple") over a
     Database a thread that holds every n-th subject, made before,
  D  A with the FASTA file instead of the database, which is then built in memory.
The table also shows the processor seconds of all threads: where they say something else than the wall seconds, other
programs had a share of the machine, and the run is to be repeated on a quiet one. The load before each turn is shown.

Needs: pip install 'swsearch[bench]'; a quiet machine. Four minutes on two cores.
Exit code 1 if A takes more than 1.15 times the faster of B and C.
Run:   python benchmarks/speed.py --queries queries20.fasta [--subjects DB.fasta.gz] [--threads 2] [--out FILE]
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import parasail
import pyopal
from common import (
    PARASAIL_GAPS,
    Records,
    arguments,
    data_line,
    finish,
    heading,
    numbered,
    read,
    residues,
    swsearch,
    table,
    timed,
    write,
)

LIMIT = 1.15
"""Largest accepted ratio of A to the faster of B and C."""


def bare_loop(queries: list[bytes], subjects: list[bytes], threads: int) -> None:
    """Score every query against every subject; each thread takes every n-th subject."""

    def work(profile: parasail.Profile, part: int) -> list[int]:
        return [parasail.sw_striped_profile_sat(profile, s, *PARASAIL_GAPS).score for s in subjects[part::threads]]

    with ThreadPoolExecutor(threads) as pool:
        waiting = []
        for query in queries:
            profile = parasail.profile_create_sat(query, parasail.blosum62)
            waiting += [pool.submit(work, profile, part) for part in range(threads)]
        for future in waiting:
            future.result()


def opal_loop(queries: list[bytes], databases: list[pyopal.Database]) -> None:
    """Score every query against every subject; each thread has a database of its own."""
    gap_open, gap_extend = PARASAIL_GAPS

    def work(query: bytes, database: pyopal.Database) -> list[int]:
        aligner = pyopal.Aligner(gap_open=gap_open, gap_extend=gap_extend)  # BLOSUM62
        found = aligner.align(query, database, mode="score", overflow="simple", algorithm="sw")
        return [result.score for result in found]

    with ThreadPoolExecutor(len(databases)) as pool:
        waiting = [pool.submit(work, query, database) for query in queries for database in databases]
        for future in waiting:
            future.result()


def processor_seconds() -> float:
    """Return what this process and its finished children have used so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def encoded(records: Records) -> list[bytes]:
    """Return the sequences as parasail takes them without a conversion."""
    return [letters.encode() for _, letters in records]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--threads", type=int, default=2, help="of every contender, default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each, default %(default)s")
    options = parser.parse_args()
    queries, subjects = numbered(read(options.queries, options.first), "q"), numbered(read(options.subjects), "s")
    query_codes, subject_codes = encoded(queries), encoded(subjects)
    cells = residues(queries) * residues(subjects)
    opal_databases = [pyopal.Database(subject_codes[part :: options.threads]) for part in range(options.threads)]

    with tempfile.TemporaryDirectory(prefix="swsearch-speed-") as name:
        folder = Path(name)
        query_file, fasta = write(folder / "q.fasta", queries), write(folder / "s.fasta", subjects)
        database, output = folder / "s.h5", folder / "hits.tsv"
        swsearch("db", "build", fasta, "-o", database, "--quiet")

        def search(subject_file: Path) -> None:
            swsearch(
                "search", query_file, subject_file, "--max-hits", 10, "--threads", options.threads,
                "--outfmt", "6", "-o", output, "--quiet", "--engine", "cpu",
            )  # fmt: skip

        contenders = {
            "A: swsearch, database": lambda: search(database),
            "B: parasail, bare loop": lambda: bare_loop(query_codes, subject_codes, options.threads),
            "C: pyopal, bare loop": lambda: opal_loop(query_codes, opal_databases),
            "D: swsearch, FASTA": lambda: search(fasta),
        }
        search(database)  # not counted: compiles bytecode, fills the page cache
        seconds: dict[str, list[float]] = {contender: [] for contender in contenders}
        processor: dict[str, list[float]] = {contender: [] for contender in contenders}
        loads = []
        for _ in range(options.runs):
            loads.append(f"{os.getloadavg()[0]:.1f}")
            for contender, run in contenders.items():
                before = processor_seconds()
                seconds[contender].append(timed(run))
                processor[contender].append(processor_seconds() - before)
        n_hits = len(output.read_text().splitlines())

    medians = {contender: statistics.median(values) for contender, values in seconds.items()}
    first, base = medians["A: swsearch, database"], min(median for name, median in medians.items() if "bare" in name)
    rows = [
        [
            contender, *(f"{value:.2f}" for value in seconds[contender]), f"{median:.2f}",
            f"{cells / median / 1e9:.1f}", f"{median / base:.3f}", f"{statistics.median(processor[contender]):.1f}",
        ]
        for contender, median in medians.items()
    ]  # fmt: skip
    columns = [
        "contender",
        *(f"run {k} s" for k in range(1, options.runs + 1)),
        "median s",
        "GCUPS",
        "time / faster bare loop",
        "median CPU s",
    ]
    lines = [*heading(__file__, ["parasail", "pyopal"]), data_line(queries, subjects, options)]
    lines += [f"{options.threads} threads each, {n_hits} hits reported by A; load average {', '.join(loads)}"]
    lines += [f"required: A / faster bare loop <= {LIMIT}; measured {first / base:.3f}", "", *table(columns, rows)]
    finish(lines, options.out)
    sys.exit(1 if first / base > LIMIT else 0)


if __name__ == "__main__":
    main()
