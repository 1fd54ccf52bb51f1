"""What a cluster costs: local workers beside one process, and the client's time and memory with 10,000 tasks.

Three parts, of whole commands in turns (A B C, A B C, ...), so that a machine whose speed drifts is fair to all:
  turns   one process with two threads, two local workers with one thread each that the command starts
          (`--cluster local:2`), and the same that are there before it begins: ratios of the same turn. --queries are
          proteins of Swiss-Prot, as many as take about a minute. No other workers are there meanwhile.
  grow    1, 2 and 4 workers with one thread each, and one process with the database of --ten, ten times as large, and
          a tenth of the queries.
  many    --groups small groups of queries by --volumes small volumes, tasks that take next to no time: what one
          costs, and the client's memory (VmRSS), looked at every 50 ms. It should be flat, and below 500 MB.
The output of all contenders of a part must be the same, byte for byte; otherwise this exits with 1.

Needs: Swiss-Prot as FASTA and its database, Dask, Linux, two processors on which nothing else runs. Half an hour.
Run:   python -m benchmarks.speed.cluster SPROT.fasta DATABASE [--ten DATABASE10] [--queries 68] [--turns 3]
           [--only PART] [--groups 20] [--volumes 500] [--out benchmarks/results/cluster.txt]
With --out, numbers are kept beside the report, as .json, for benchmarks/speed/growth.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.speed.jobs import spread
from benchmarks.speed.writers import SAMPLE
from benchmarks.support.common import Records, arguments, finish, heading, read, residues, swsearch, table, write
from benchmarks.support.timing import Timing, say, take_turn
from swsearch.processors import available_processors

PARTS = ("turns", "grow", "many")

LOOK_EVERY = 0.05
"""Seconds between two looks at the client's memory."""

MOST_MEMORY = 500_000_000
"""Bytes that the client may take."""

MOST_TIMES = 1.05
"""Times as long as one process that two workers may take."""

MIB = 1 << 20

SMALL_GROUPS = """
import sys
from swsearch.pipeline import groups
groups.GROUP_RESIDUES = int(sys.argv.pop(1))
groups.FIRST_GROUP_RESIDUES = (groups.GROUP_RESIDUES, groups.GROUP_RESIDUES)
from swsearch.__main__ import main
sys.exit(main())
"""
"""The command line with groups of so many residues."""


@contextmanager
def workers(number: int) -> Iterator[str]:
    """Start workers that compute with one thread each; yield the scheduler's address."""
    from distributed import LocalCluster

    started = {"n_workers": number, "threads_per_worker": 2, "env": {"SWSEARCH_THREADS": "1"}}
    with LocalCluster(**started, dashboard_address=":0") as cluster:  # type: ignore[no-untyped-call]
        yield str(cluster.scheduler_address)


class Contenders:
    """Commands that search the same and take turns.

    Parameters
    ----------
    folder : Path
        For their outputs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.timings: dict[str, Timing] = {}
        self._lines: dict[str, list[object]] = {}
        self._workers: dict[str, int] = {}
        self._outputs: dict[str, Path] = {}

    def add(self, name: str, queries: Path, database: Path, *options: object, n_workers: int = 0) -> None:
        """Add a search, by so many workers that are started before it and ended after it."""
        out = self.folder / f"{len(self._lines)}.tsv"
        self._outputs[name], self.timings[name], self._workers[name] = out, Timing(), n_workers
        self._lines[name] = ["search", queries, database, "--engine", "cpu", *options, "--quiet", "-o", out]

    def take_turns(self, turns: int) -> None:
        """Run all, some times."""
        for turn in range(turns):
            for name, line in self._lines.items():
                self._outputs[name].unlink(missing_ok=True)
                with ExitStack() as stack:
                    n_workers, where = self._workers[name], []
                    if n_workers:
                        where = ["--cluster", stack.enter_context(workers(n_workers))]
                    take_turn(self.timings[name], partial(swsearch, *line, *where))
                say(f"turn {turn + 1}, {name}: {self.timings[name].wall[-1]:.2f} s")

    def lines(self, name: str) -> int:
        """Return the lines of an output."""
        return self._outputs[name].read_bytes().count(b"\n")

    def differing(self, names: Sequence[str]) -> list[str]:
        """Name those whose output is not that of the first."""
        first = self._outputs[names[0]].read_bytes()
        return [name for name in names[1:] if self._outputs[name].read_bytes() != first]


def point(name: str, timing: Timing, place: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """Return a point as `growth.py` reads it."""
    return {"name": name, "engine": "cpu", **place, **job, "seconds": timing.median, "turns": timing.wall}


def local(number: int) -> dict[str, Any]:
    """Describe a place of workers with one thread each on this machine."""
    return {"engines": number, "threads": 1, "cluster": True, "processors": available_processors()}


def job_of(queries: Records, database: Path, hits: int) -> dict[str, Any]:
    """Describe what was searched."""
    from swsearch.db import Database

    with Database.open(database) as opened:
        n_residues = opened.n_residues
    return {"queries": len(queries), "query_residues": residues(queries), "residues": n_residues, "hits": hits}


ALONE, STARTED, THERE = (
    "one process, 2 threads",
    "2 local workers, started by the command",
    "2 local workers, 1 thread each",
)


def timed(
    options: argparse.Namespace, folder: Path, proteins: Records
) -> tuple[list[str], list[dict[str, Any]], bool]:
    """Measure the parts ``turns`` and ``grow``; return lines, points, and whether all outputs are the same."""
    found = Contenders(folder)
    many = spread(proteins, options.queries)
    asked = write(folder / "queries.fasta", many)
    found.add(ALONE, asked, options.database, "--threads", 2)
    if "turns" in options.only:
        found.add(STARTED, asked, options.database, "--cluster", "local:2")
    numbers = [number for number in (1, 2, 4) if "grow" in options.only or number == 2]
    places = {f"{n} local worker{'' if n == 1 else 's'}, 1 thread{'' if n == 1 else ' each'}": n for n in numbers}
    for name, number in places.items():
        found.add(name, asked, options.database, n_workers=number)
    compared = list(found.timings)
    few, ten = spread(proteins, max(1, options.queries // 10)), f"{ALONE}, 10 x Swiss-Prot"
    if options.ten is not None and "grow" in options.only:
        found.add(ten, write(folder / "few.fasta", few), options.ten, "--threads", 2)
    found.take_turns(options.turns)
    job = job_of(many, options.database, found.lines(ALONE))
    points = [point(ALONE, found.timings[ALONE], {"engines": 1, "threads": 2}, job)]
    points += [point(name, found.timings[name], local(number), job) for name, number in places.items()]
    if ten in found.timings:
        of_ten = job_of(few, options.ten, found.lines(ten))
        points.append(point(ten, found.timings[ten], {"engines": 1, "threads": 2}, of_ten))
    rows = [_row(name, timing, found.timings[ALONE] if name in compared else None)
            for name, timing in found.timings.items()]  # fmt: skip
    differing = found.differing(compared)
    lines = [
        f"{len(many)} queries, {residues(many):,} residues, against {options.database.name}, {job['residues']:,} "
        f"residues; {job['hits']:,} hits; {options.turns} turns. "
        "Workers were there before the command, but for those that it starts.",
        "", *table(["", "seconds", "all", "times one process", "processor s of the command"], rows), "",
        f"Outputs that differ from those of one process: {', '.join(differing) or 'none'}.",
    ]  # fmt: skip
    for name in (STARTED, THERE):
        if name in found.timings:
            times = _ratios(found.timings[name], found.timings[ALONE])
            met = "yes" if statistics.median(times) <= MOST_TIMES else "no"
            lines.append(f"{name}, at most {MOST_TIMES} times one process: {met} ({statistics.median(times):.3f})")
    return lines, points, not differing


def _ratios(one: Timing, other: Timing) -> list[float]:
    return [mine / its for mine, its in zip(one.wall, other.wall, strict=True)]


def _row(name: str, timing: Timing, alone: Timing | None) -> list[str]:
    ratios = _ratios(timing, alone) if alone is not None else []
    times = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} - {max(ratios):.3f})" if ratios else ""
    return [name, f"{timing.median:.2f}", timing.spread(), times, f"{statistics.median(timing.busy):.2f}"]


def small_volumes(folder: Path, records: Records, number: int) -> tuple[Path, Path]:
    """Write records as one database, and as volumes; return both, the manifest last."""
    from swsearch.db import build_database, write_manifest

    paths = []
    for place in range(number):
        part = records[place * len(records) // number : (place + 1) * len(records) // number]
        paths.append(folder / f"v{place:04d}.h5")
        build_database(write(folder / "part.fasta", part), paths[-1])
    build_database(write(folder / "whole.fasta", records), folder / "whole.h5")
    write_manifest(folder / "whole.json", paths)
    return folder / "whole.h5", folder / "whole.json"


def watched(line: list[str]) -> tuple[float, list[tuple[float, int]]]:
    """Run a command; return its seconds, and its resident bytes at some of them."""
    begun = time.perf_counter()
    seen = []
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(line, stderr=said) as process:
        while process.poll() is None:
            for entry in Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
                if entry.startswith("VmRSS:"):
                    seen.append((time.perf_counter() - begun, int(entry.split()[1]) * 1024))
            time.sleep(LOOK_EVERY)
        said.seek(0)
        if process.returncode:
            sys.exit(f"{' '.join(line)}: exit code {process.returncode}\n{said.read()[-2000:]}")
    return time.perf_counter() - begun, seen


def many_tasks(options: argparse.Namespace, folder: Path) -> tuple[list[str], dict[str, Any], bool]:
    """Measure a job of many small tasks; return lines, numbers, and whether its output is that of one process."""
    records = read(SAMPLE)
    whole, manifest = small_volumes(folder, records, options.volumes)
    queries = spread(records, 5 * options.groups)
    queries = [(name, letters[:300].ljust(300, "A")) for name, letters in queries]
    asked, n_tasks = write(folder / "many.fasta", queries), options.groups * options.volumes
    line = [sys.executable, "-c", SMALL_GROUPS, str(5 * 300), "search", str(asked)]
    common = ["--engine", "cpu", "--max-hits", "10", "--statistics", options.statistics, "--quiet", "-o"]
    alone, _ = watched([*line, str(whole), *common, str(folder / "alone.tsv"), "--threads", "2"])
    with workers(2) as address:
        seconds, seen = watched([*line, str(manifest), *common, str(folder / "many.tsv"), "--cluster", address])
    same = (folder / "alone.tsv").read_bytes() == (folder / "many.tsv").read_bytes()
    peak, each = max(size for _, size in seen), (seconds - alone) / n_tasks
    heads = ["tenth of the time", *map(str, range(1, 11))]
    tenths = [max([size for at, size in seen if k <= 10 * at / seconds < k + 1], default=0) for k in range(10)]
    lines = [
        f"{n_tasks:,} tasks: {options.groups} groups of 1,500 residues by {options.volumes} volumes of "
        f"{residues(records):,} residues in all, {options.statistics} statistics, 2 local workers with one thread. "
        "Tasks that align hits, and with fitted statistics those of shuffled copies, come on top.",
        "", *table(heads, [["client's largest MiB", *(f"{size / MIB:.0f}" for size in tenths)]]), "",
        f"{seconds:.1f} s, and {alone:.1f} s in one process with one file: {each * 1e3:.2f} ms for each task.",
        f"Largest: {peak / 1e6:.0f} MB, below {MOST_MEMORY / 1e6:.0f} MB: {'yes' if peak < MOST_MEMORY else 'no'}; "
        f"the second half's is {max(tenths[5:]) / max(tenths[:5]):.2f} times the first's.",
        f"The same output as of one process: {'yes' if same else 'no'}.",
    ]  # fmt: skip
    return lines, {"task_seconds": max(each, 0.0), "tasks": n_tasks, "client_bytes": peak}, same


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("fasta", type=Path, help="Swiss-Prot, of which queries are taken")
    parser.add_argument("database", type=Path, help="made of it by swsearch db build")
    parser.add_argument("--ten", type=Path, metavar="DATABASE10", help="the same ten times as large")
    parser.add_argument("--queries", type=int, default=68, help="that take about a minute, default %(default)s")
    parser.add_argument("--turns", type=int, default=3, help="of each contender, default %(default)s")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", help="turns, grow or many")
    parser.add_argument("--groups", type=int, default=20, help="of queries, in many; default %(default)s")
    parser.add_argument("--volumes", type=int, default=500, help="of the database, in many; default %(default)s")
    parser.add_argument("--statistics", default="published", help="of the search in many, default %(default)s")
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else ran")
    options = parser.parse_args()
    options.only = options.only or list(PARTS)
    head = heading(__file__, ("numpy", "dask", "distributed"))
    lines, about, points, same = [*head, *filter(None, [options.note])], {"heading": head}, [], True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"turns", "grow"} & set(options.only):
            more, points, same = timed(options, folder, read(options.fasta))
            lines += ["", *more]
        if "many" in options.only:
            more, numbers, are_same = many_tasks(options, folder)
            lines += ["", *more]
            about, same = {**about, **numbers}, same and are_same
    finish(lines, options.out)
    if options.out is not None:
        stored = json.dumps({"about": about, "points": points}, indent=1)
        options.out.with_suffix(".json").write_text(f"{stored}\n", encoding="utf-8")
    sys.exit(not same)


if __name__ == "__main__":
    main()
