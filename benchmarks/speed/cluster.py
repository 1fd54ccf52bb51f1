"""Costs of a cluster: local workers beside one process, and the client's time and memory with 10,000 tasks.

Three parts run whole commands in turns (A B C, A B C, ...). A machine whose speed drifts is then fair to all:
  turns   one process with two threads, beside two local workers with one thread each. The command starts the workers
          (`--cluster local:2`), or they run before it begins. Ratios are of the same turn. --queries are proteins of
          Swiss-Prot, as many as take about a minute. No other workers run meanwhile.
  grow    1, 2 and 4 workers with one thread each. Also one process with the database of --ten, ten times as large,
          and a tenth of the queries.
  many    --groups small groups of queries by --volumes small volumes: tasks that take next to no time. It measures
          the cost of one task, and the client's memory (VmRSS) every 50 ms: flat, and below 500 MB.
The output of all contenders of a part must be the same, byte for byte; otherwise this exits with 1.

Needs: Swiss-Prot as FASTA and its database, Dask, Linux, two processors on which nothing else runs. Half an hour.
Run:   python -m benchmarks.speed.cluster SPROT.fasta DATABASE [--ten DATABASE10] [--queries 68] [--turns 3]
           [--only PART] [--groups 20] [--volumes 500] [--out benchmarks/results/cluster.txt]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.speed.command_cases import SAMPLE
from benchmarks.support.common import (
    Records,
    arguments,
    finish,
    heading,
    read,
    residues,
    sha256_of,
    spread,
    swsearch,
    table,
    write,
)
from benchmarks.support.timing import Timing, ratios, say, take_turn
from swsearch.db import Database, build_database, write_manifest

PARTS = ("turns", "grow", "many")
LOOK_EVERY = 0.05
"""Seconds between two looks at the client's memory."""
MOST_MEMORY, MOST_TIMES = 500_000_000, 1.05
"""Bytes that the client may take, and times as long as one process that two workers may take."""
MIB = 1 << 20
SMALL_GROUPS = """
import sys
from swsearch.pipeline import batch
batch.GROUP_RESIDUES = int(sys.argv.pop(1))
batch.FIRST_GROUP_RESIDUES = (batch.GROUP_RESIDUES, batch.GROUP_RESIDUES)
from swsearch.__main__ import main
sys.exit(main())
"""
"""The command line with groups of so many residues."""
ALONE, STARTED, THERE = (
    "one process, 2 threads",
    "2 local workers, started by the command",
    "2 local workers, 1 thread each",
)


@contextmanager
def workers(number: int) -> Iterator[tuple[object, ...]]:
    """Start workers that compute with one thread each; yield the option that names them, none for none."""
    if not number:
        yield ()
        return
    from distributed import LocalCluster

    started = {"n_workers": number, "threads_per_worker": 2, "env": {"SWSEARCH_THREADS": "1"}}
    with LocalCluster(**started, dashboard_address=":0") as cluster:  # type: ignore[no-untyped-call]
        yield "--cluster", str(cluster.scheduler_address)


def compared(options: argparse.Namespace, folder: Path, proteins: Records) -> tuple[list[str], bool]:
    """Measure the parts ``turns`` and ``grow``; return lines, and whether all outputs are the same."""
    many, few = spread(proteins, options.queries), spread(proteins, max(1, options.queries // 10))
    asked, database = write(folder / "queries.fasta", many), options.database
    lines: dict[str, tuple[int, list[object]]] = {ALONE: (0, [asked, database, "--threads", 2])}
    if "turns" in options.only:
        lines[STARTED] = 0, [asked, database, "--cluster", "local:2"]
    for n in (1, 2, 4):
        if "grow" in options.only or n == 2:
            lines[f"{n} local worker{'s' * (n > 1)}, 1 thread{' each' * (n > 1)}"] = n, [asked, database]
    names = list(lines)
    if options.ten is not None and "grow" in options.only:
        ten = [write(folder / "few.fasta", few), options.ten, "--threads", 2]
        lines[f"{ALONE}, 10 x Swiss-Prot"] = 0, ten
    timings, outputs = {name: Timing() for name in lines}, {name: folder / f"{name}.tsv" for name in lines}
    for turn in range(options.turns):
        for name, (n_workers, words) in lines.items():
            with workers(n_workers) as where:
                line = ("search", *words, "--engine", "cpu", *where, "--quiet", "-o", outputs[name])
                take_turn(timings[name], partial(swsearch, *line))
            say(f"turn {turn + 1}, {name}: {timings[name].wall[-1]:.2f} s")
    rows, times = [], {name: ratios(timings[name].wall, timings[ALONE].wall) for name in names}
    for name, timing in timings.items():
        each = times.get(name)
        shown = f"{statistics.median(each):.3f} ({min(each):.3f} - {max(each):.3f})" if each else ""
        busy = f"{statistics.median(timing.busy):.2f}"
        rows.append([name, f"{timing.median:.2f}", timing.spread(), shown, busy])
    differing = [name for name in names if sha256_of(outputs[name]) != sha256_of(outputs[ALONE])]
    with Database.open(database) as opened:
        about = f"{database.name}, {opened.n_residues:,} residues"
    verdicts = []
    for name in (STARTED, THERE):
        if name in times:
            median = statistics.median(times[name])
            met = "yes" if median <= MOST_TIMES else "no"
            verdicts.append(f"{name}, at most {MOST_TIMES} times one process: {met} ({median:.3f})")
    return [
        f"{len(many)} queries, {residues(many):,} residues, against {about}; "
        f"{len(outputs[ALONE].read_bytes().splitlines()):,} hits; {options.turns} turns. "
        "Workers were there before the command, but for those that it starts.",
        "", *table(["", "seconds", "all", "times one process", "processor s of the command"], rows), "",
        f"Outputs that differ from those of one process: {', '.join(differing) or 'none'}.", *verdicts,
    ], not differing  # fmt: skip


def small_volumes(folder: Path, records: Records, number: int) -> tuple[Path, Path]:
    """Write records as one database, and as volumes; return both, the manifest last."""
    paths = []
    for place in range(number):
        part = records[place * len(records) // number : (place + 1) * len(records) // number]
        paths.append(folder / f"v{place:04d}.h5")
        build_database(write(folder / "part.fasta", part), paths[-1])
    build_database(write(folder / "whole.fasta", records), folder / "whole.h5")
    write_manifest(folder / "whole.json", paths)
    return folder / "whole.h5", folder / "whole.json"


def watched(*words: object) -> tuple[float, list[tuple[float, int]]]:
    """Search in small groups; return the seconds, and the client's resident bytes at some of them."""
    line = [sys.executable, "-c", SMALL_GROUPS, str(5 * 300), "search", *map(str, words)]
    started, seen = time.perf_counter(), []
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(line, stderr=said) as process:
        while process.poll() is None:
            for entry in Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
                if entry.startswith("VmRSS:"):
                    seen.append((time.perf_counter() - started, int(entry.split()[1]) * 1024))
            time.sleep(LOOK_EVERY)
        said.seek(0)
        if process.returncode:
            sys.exit(f"{' '.join(line)}: exit code {process.returncode}\n{said.read()[-2000:]}")
    return time.perf_counter() - started, seen


def many_tasks(options: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    """Measure a job of many small tasks; return lines, and whether its output is that of one process."""
    records = read(SAMPLE)
    whole, manifest = small_volumes(folder, records, options.volumes)
    queries = [(name, letters[:300].ljust(300, "A")) for name, letters in spread(records, 5 * options.groups)]
    asked, n_tasks = write(folder / "many.fasta", queries), options.groups * options.volumes
    common = ("--engine", "cpu", "--max-hits", 10, "--statistics", options.statistics, "--quiet", "-o")
    alone, _ = watched(asked, whole, *common, folder / "alone.tsv", "--threads", 2)
    with workers(2) as where:
        seconds, seen = watched(asked, manifest, *common, folder / "many.tsv", *where)
    same = (folder / "alone.tsv").read_bytes() == (folder / "many.tsv").read_bytes()
    peak, each = max(size for _, size in seen), (seconds - alone) / n_tasks
    tenths = [max([size for at, size in seen if k <= 10 * at / seconds < k + 1], default=0) for k in range(10)]
    heads = ["tenth of the time", *map(str, range(1, 11))]
    return [
        f"{n_tasks:,} tasks: {options.groups} groups of 1,500 residues by {options.volumes} volumes of "
        f"{residues(records):,} residues in all, {options.statistics} statistics, 2 local workers with one thread. "
        "Tasks that align hits, and with fitted statistics those of shuffled copies, come on top.",
        "", *table(heads, [["client's largest MiB", *(f"{size / MIB:.0f}" for size in tenths)]]), "",
        f"{seconds:.1f} s, and {alone:.1f} s in one process with one file: {each * 1e3:.2f} ms for each task.",
        f"Largest: {peak / 1e6:.0f} MB, below {MOST_MEMORY / 1e6:.0f} MB: {'yes' if peak < MOST_MEMORY else 'no'}; "
        f"the second half's is {max(tenths[5:]) / max(tenths[:5]):.2f} times the first's.",
        f"The same output as of one process: {'yes' if same else 'no'}.",
    ], same  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, files=False)
    add = parser.add_argument
    add("fasta", type=Path, help="Swiss-Prot, of which queries are taken")
    add("database", type=Path, help="made of it by swsearch db build")
    add("--ten", type=Path, metavar="DATABASE10", help="the same ten times as large")
    add("--queries", type=int, default=68, help="that take about a minute, default %(default)s")
    add("--turns", type=int, default=3, help="of each contender, default %(default)s")
    add("--only", action="append", choices=PARTS, metavar="PART", help="turns, grow or many")
    add("--groups", type=int, default=20, help="of queries, in many; default %(default)s")
    add("--volumes", type=int, default=500, help="of the database, in many; default %(default)s")
    add("--statistics", default="published", help="of the search in many, default %(default)s")
    add("--note", default="", help="a sentence for the report, such as what else ran")
    options = parser.parse_args()
    options.only = options.only or list(PARTS)
    lines, all_same = [*heading(__file__, ("numpy", "dask", "distributed")), *filter(None, [options.note])], True
    with tempfile.TemporaryDirectory() as name:
        if {"turns", "grow"} & set(options.only):
            more, same = compared(options, Path(name), read(options.fasta))
            lines, all_same = [*lines, "", *more], same
        if "many" in options.only:
            more, same = many_tasks(options, Path(name))
            lines, all_same = [*lines, "", *more], all_same and same
    finish(lines, options.out)
    sys.exit(not all_same)


if __name__ == "__main__":
    main()
