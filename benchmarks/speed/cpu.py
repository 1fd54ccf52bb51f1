"""Measure what the CPU engine reaches, beside the exact and heuristic peers that package managers install.

In one run, each table's contenders in turn (A B C, A B C, ...), as medians and, in brackets, the extremes:
  whole commands    `swsearch search` and the peers' programs, their databases built before: start, reading, search,
                    statistics, alignments of each query's ten best (mmseqs2: of all it finds), output; with 2 threads
                    also the bare loops of parasail and pyopal, which find scores only, in a process that runs already
                    and has encoded the subjects;
  scans             one query against every subject in memory, scores only: the CPU engine with each instruction set
                    of this machine, parasail and pyopal; all scores of a turn are compared. Queries under 1,000
                    residues have two turns more;
  cells a cycle     those scans on one thread, by processor time, beside the bound that the inner loop's instructions
                    have on this processor (cpu_bound.py has the model);
  a large database  (--large) one query: the scan in memory, and the whole command.
Processor seconds are those of all threads and processes. SWIPE is in no package registry and is left out.

Needs: ncbi-blast+, diamond-aligner, fasta3, mmseqs2, gcc and binutils; pip install parasail pyopal scoring-matrices;
a quiet machine. About ten minutes on two cores. Exit code 1 if a score, or a byte of swsearch's output, differs.
Run:   python -m benchmarks.speed.cpu --queries queries20.fasta [--subjects DB.fasta.gz] [--large SPROT.h5]
           [--out benchmarks/results/cpu.txt]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.speed import cpu_bound
from benchmarks.speed.cpu_parts import TOP, Contenders, Files, of_threads, search, whole_commands
from benchmarks.speed.cpu_scans import (
    MORE_RUNS,
    Turns,
    library_scans,
    padding,
    read_chunks,
    swsearch_scan,
    time_scans,
)
from benchmarks.support.common import (
    Records,
    arguments,
    data_line,
    finish,
    heading,
    numbered,
    read,
    residues,
    table,
    write,
)
from benchmarks.support.timing import EXACT, HEURISTIC, SCORES, Timing, say, take_turn
from swsearch import Database
from swsearch.engines.base import LoadedChunk
from swsearch.engines.cpu import extension

THREADS = (1, 2)

PEERS = ["parasail", "pyopal", "diamond", "ssearch36", "blastp", "mmseqs"]

LENGTHS = (144, 222, 375, 464, 1000, 3005, 5478)
"""Query lengths whose scans are timed; the nearest query stands for each."""

LARGE = 375
"""Query length for the large database."""


def rate(cells: float, seconds: float) -> str:
    """Format GCUPS."""
    return f"{cells / seconds / 1e9:.1f}"


def seconds_of(timing: Timing) -> str:
    """Format a median and its extremes."""
    return f"{timing.median:.2f}" + (f" ({timing.spread()})" if len(timing.wall) > 1 else "")


def nearest(queries: Records, length: int) -> str:
    """Return the letters of the query whose length is nearest."""
    return min((letters for _, letters in queries), key=lambda letters: abs(len(letters) - length))


def library_loops(queries: Records, subjects: Records, threads: int) -> Contenders:
    """Return the libraries' loops over all queries."""

    def loop(run: Callable[[str], object]) -> Callable[[], str]:
        def work() -> str:
            for _, letters in queries:
                run(letters)
            return ""

        return work

    scans = library_scans(subjects, threads)
    return {f"{name}, bare loop": (SCORES, loop(scan.run)) for name, scan in scans.items()}


def time_commands(contenders: Contenders, threads: int, runs: int, cells: int) -> tuple[list[str], set[str]]:
    """Time every program; return its table, and swsearch's different outputs."""
    timings = {name: Timing() for name in contenders}
    outputs = set()
    for turn in range(runs):
        for name, (_, work) in contenders.items():
            found = take_turn(timings[name], work)
            if name.startswith("swsearch"):
                outputs.add(found)
            say(f"{threads} thread(s), turn {turn + 1}, {name}: {timings[name].wall[-1]:.2f} s")
    ours = next(iter(timings.values())).wall
    times = {
        name: statistics.median(wall / our for wall, our in zip(timing.wall, ours, strict=True))
        for name, timing in timings.items()
    }
    rows = [
        [
            name, contenders[name][0], seconds_of(timing), rate(cells, timing.median), f"{times[name]:.2f}",
            f"{statistics.median(timing.busy):.1f}",
        ]
        for name, timing in timings.items()
    ]  # fmt: skip
    exact_peers = [name for name in times if contenders[name][0] != HEURISTIC and not name.startswith("swsearch")]
    exact = min(exact_peers, key=lambda name: times[name])
    lines = [
        f"Whole commands, {of_threads(threads)}, {TOP} best hits per query with alignments, {of_runs(runs)}:", "",
        *table(["", "what", "seconds", "GCUPS", "time / ours", "processor s"], rows), "",
        f"The fastest exact peer ({exact}) takes {times[exact]:.2f} times as long as swsearch, blastp "
        f"{times['blastp']:.2f} times (medians of the turns' ratios).", "",
    ]  # fmt: skip
    return lines, outputs


def of_runs(runs: int) -> str:
    """Say what the numbers are."""
    return f"medians of {runs} turns" if runs > 1 else "one turn"


def scan_table(turns: Turns, threads: int, lengths: Sequence[int], n_residues: int) -> list[str]:
    """Return GCUPS by query length."""
    rows = []
    for name in dict.fromkeys(name for name, _, _ in turns):
        timings = {length: turns.get((name, length, threads)) for length in lengths}
        found = [timing for timing in timings.values() if timing]
        apart = max((max(timing.wall) - min(timing.wall)) / timing.median for timing in found)
        cells = [rate(n * n_residues, timing.median) if timing else "" for n, timing in timings.items()]
        rows.append([name, *cells, f"{apart:.0%}"])
    return table([of_threads(threads), *map(str, lengths), "largest spread"], rows)


def large_database(path: Path, query: str, runs: int) -> tuple[list[str], set[str]]:
    """Time one query against a large database; return the table, and swsearch's different outputs."""
    with Database.open(path) as database:
        chunks, n_subjects, n_residues = read_chunks(database), database.n_subjects, database.n_residues
    scans = {threads: swsearch_scan(chunks, extension.chosen(), threads) for threads in THREADS}
    timings = {(kind, threads): Timing() for kind in ("scan", "command") for threads in THREADS}
    outputs = set()
    with tempfile.TemporaryDirectory(prefix="swsearch-cpu-") as folder:
        file = write(Path(folder) / "q.fasta", [("q", query)])
        for _ in range(runs):
            for threads, scan in scans.items():
                take_turn(timings["scan", threads], partial(scan.run, query))
                outputs.add(take_turn(timings["command", threads], partial(search, file, path, threads)))
    cells = len(query) * n_residues
    rows = [
        [
            of_threads(threads),
            *(text for kind in ("scan", "command")
              for text in (seconds_of(timings[kind, threads]), rate(cells, timings[kind, threads].median))),
        ]
        for threads in THREADS
    ]  # fmt: skip
    lines = [
        f"{path.name}: {n_subjects:,} subjects, {n_residues:,} residues; query of {len(query)}, "
        f"{extension.chosen()}, padding {padding(chunks):.3f}, {of_runs(runs)}:", "",
        *table(["", "scan in memory, seconds", "GCUPS", "whole command, seconds", "GCUPS"], rows), "",
    ]  # fmt: skip
    return lines, outputs


def commands(
    queries: Records, subjects: Records, runs: Mapping[int, int]
) -> tuple[list[str], set[str], list[LoadedChunk]]:
    """Time all whole commands; return their tables, swsearch's different outputs, and its database."""
    lines: list[str] = []
    outputs: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="swsearch-cpu-") as name:
        files = Files(write(Path(name) / "q.fasta", queries), write(Path(name) / "s.fasta", subjects), Path(name))
        files.prepare()
        for threads in THREADS[::-1]:
            contenders = whole_commands(files, threads)
            if threads > 1:  # on one thread, the scans say as much
                contenders["swsearch, FASTA"] = (EXACT, lambda: search(files.queries, files.subjects, THREADS[-1]))
                contenders |= library_loops(queries, subjects, threads)
            cells = residues(queries) * residues(subjects)
            text, found = time_commands(contenders, threads, runs[threads], cells)
            lines, outputs = lines + text, outputs | found
        with Database.open(files.database) as database:
            return lines, outputs, read_chunks(database)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--large", type=Path, metavar="DB.h5", help="database for one query; none by default")
    parser.add_argument("--runs", type=int, default=3, help="turns of each contender, default %(default)s")
    parser.add_argument(
        "--runs-one-thread", type=int, default=1, help="the same of whole commands on one thread, default %(default)s"
    )
    options = parser.parse_args()
    queries, subjects = numbered(read(options.queries, options.first), "q"), numbered(read(options.subjects), "s")
    lines = [
        *heading(__file__, PEERS),
        data_line(queries, subjects, options),
        f"CPU engine: {extension.chosen()}",
        "",
    ]
    text, outputs, chunks = commands(queries, subjects, {1: options.runs_one_thread, 2: options.runs})
    lines += text
    n_residues = residues(subjects)

    chosen = list(dict.fromkeys(nearest(queries, length) for length in LENGTHS))
    lengths = [len(query) for query in chosen]
    turns, differing = time_scans(chosen, subjects, chunks, THREADS, options.runs)
    lines += [
        f"Scans, GCUPS by query length, {of_runs(options.runs)} (short queries: {options.runs + MORE_RUNS}):",
        "",
    ]
    for threads in THREADS:
        lines += [*scan_table(turns, threads, lengths, n_residues), ""]
    reached = {
        instructions: [
            length * n_residues / statistics.median(timing.busy) / 1e9
            for (name, length, threads), timing in turns.items()
            if name == f"swsearch {instructions}" and threads == 1
        ]
        for instructions in extension.instruction_sets()
    }
    lines += cpu_bound.report(reached, padding(chunks))
    if options.large:
        text, found = large_database(options.large, nearest(queries, LARGE), options.runs)
        lines += text
        if len(found) > 1:
            differing.append("swsearch's output, large database")
    if len(outputs) > 1:
        differing.append("swsearch's output")
    compared = (
        f"Compared with each other: all scores of every turn, swsearch's output in {len(THREADS)} numbers of threads"
    )
    lines += [f"{compared}: {'equal.' if not differing else 'DIFFERENT: ' + '; '.join(differing)}"]
    finish(lines, options.out)
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
