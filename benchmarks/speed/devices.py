"""Time one GPU, and the same GPU opened twice as two that share the work, in turns: what dividing the work costs.

Kernels are timed by the device's own clock, as the time in which any ran, and so is the scan that they are for; the
database is read before where it stays on the device, and read by every scan where it is streamed, for which the
memory is bounded. Commands are whole processes with default options. Each kind is run in turns, once so and once
so, RUNS times; medians are shown, and the outputs of both must be the same bytes.

Needs: a GPU; Swiss-Prot as FASTA and its database; twenty queries.
Run:   python -m benchmarks.speed.devices SPROT.fasta DATABASE QUERIES20 [--devices 0,0] [--queries 1000] [--runs 3]
           [--only PART] [--out benchmarks/results/devices.txt] [--json benchmarks/results/devices.json]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.speed.jobs import spread
from benchmarks.support.common import arguments, finish, heading, numbers, read, residues, swsearch, table, write
from benchmarks.support.scanning import Scan, Seconds
from benchmarks.support.timing import Timing, say, take_turn
from swsearch.db import Database
from swsearch.engines import create_engine
from swsearch.inputs import read_queries
from swsearch.pipeline.batch import query_groups

STREAMED_MEMORY = 200 << 20
"""Bytes of the device's memory where the database is not to stay there; Swiss-Prot takes 186 MiB, and more with what
it needs beside."""

Devices = list[int]


class Scans:
    """The queries scored with the database again and again, by one choice of devices.

    Parameters
    ----------
    queries, database : Path
        As files.
    devices : list of int
        Numbers; one may be there twice.
    memory : int or None
        Bytes of each that may be used.
    """

    def __init__(self, queries: Path, database: Path, devices: Devices, memory: int | None) -> None:
        found = read_queries(queries)
        self._groups = list(query_groups(found))
        self._engine = create_engine("gpu", device=devices if len(devices) > 1 else devices[0], gpu_memory=memory)
        self._opened = Database.open(database)
        self._scan = Scan(self._engine, self._opened, self._groups)
        for _ in range(2):  # kernels are compiled, and the database is there, in one piece, if it stays
            self._scan.select(found[:20])

    def run(self) -> Seconds:
        """Scan once, group after group as searches do."""
        return self._scan.score(*self._groups)

    def close(self) -> None:
        """Let go of everything."""
        self._scan.close()
        self._engine.close()
        self._opened.close()


def scans(queries: Path, options: argparse.Namespace, memory: int | None) -> tuple[list[Timing], list[Timing]]:
    """Scan in turns, with one device and with all that are asked for; return the times of the kernels, and of all."""
    kernels, walls = [Timing(), Timing()], [Timing(), Timing()]
    for turn in range(options.runs):
        for place, devices in enumerate((options.devices[:1], options.devices)):
            with closing(Scans(queries, options.database, devices, memory)) as now:
                kernel, wall = now.run()
            kernels[place].wall.append(kernel)
            walls[place].wall.append(wall)
            say(f"turn {turn + 1}, {len(devices)} engines: kernels {kernel:.3f} s, scan {wall:.3f} s")
    return kernels, walls


def command_lines(queries: Path, options: argparse.Namespace, memory: int | None, folder: Path) -> list[Timing]:
    """Time whole commands in turns; their outputs must be the same bytes."""
    timings = [Timing(), Timing()]
    more: Sequence[object] = () if memory is None else ("--gpu-memory", memory)
    for _ in range(options.runs):
        for timing, devices in zip(timings, (options.devices[:1], options.devices), strict=True):
            output = folder / f"{len(devices)}.tsv"
            given = (queries, options.database, "--engine", "gpu", "--device", ",".join(map(str, devices)), *more)
            take_turn(timing, lambda given=given, output=output: swsearch("search", *given, "--quiet", "-o", output))
            say(f"{len(devices)} engines: {timing.wall[-1]:.2f} s")
    if (folder / "1.tsv").read_bytes() != (folder / f"{len(options.devices)}.tsv").read_bytes():
        raise SystemExit("the outputs differ")
    return timings


def measure(options: argparse.Namespace, folder: Path) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Measure everything; return the rows of the table and the points for growth.py."""
    records = read(options.fasta)
    many = folder / "many.fasta"
    write(many, spread(records, options.queries))
    with Database.open(options.database) as opened:
        database_residues = opened.n_residues
    rows: list[list[str]] = []
    points: list[dict[str, Any]] = []
    for memory, kind in ((None, "resident"), (STREAMED_MEMORY, "streamed")):
        for queries, count in ((options.twenty, 20), (many, options.queries)):
            name = f"{count:,} queries, {kind}"
            if not any(part in name for part in options.only):
                continue
            kernels, walls = scans(queries, options, memory)
            rows += [[name, "kernels", *_ratio(*kernels)], [name, "scan", *_ratio(*walls)]]
            commands = command_lines(queries, options, memory, folder)
            rows.append([name, "command", *_ratio(*commands)])
            lines = sum(1 for _ in (folder / "1.tsv").open(encoding="utf-8"))
            for timing, engines in zip(commands, (1, len(options.devices)), strict=True):
                points.append({
                    "name": _point(engines, kind, count, options.queries), "seconds": timing.median,
                    "turns": timing.wall, "engine": "gpu", "engines": engines,
                    "distinct": len(set(options.devices[:engines])), "threads": os.cpu_count(), "queries": count,
                    "query_residues": residues(read(queries)), "residues": database_residues, "max_hits": 500,
                    "fitted": True, "hits": lines, "streamed": memory is not None,
                })  # fmt: skip
    return rows, points


def _ratio(once: Timing, again: Timing) -> list[str]:
    shown = [f"{each.median:.3f} ({each.spread()})" for each in (once, again)]
    return [*shown, f"{again.median / once.median:.3f}"]


def _point(engines: int, kind: str, count: int, many: int) -> str:
    """Name a point; growth.py looks for those of many queries."""
    name = "one GPU" if engines == 1 else "one GPU opened twice"
    if kind == "streamed":
        name += ", streamed"
    return name if count == many else f"{name}, {count} queries"


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("fasta", type=Path, help="the database's proteins, of which queries are taken")
    parser.add_argument("database", type=Path)
    parser.add_argument("twenty", type=Path, help="twenty queries")
    parser.add_argument("--devices", type=numbers, default=[0, 0], help="against the first alone")
    parser.add_argument("--only", action="append", metavar="PART", help="what has this in its name; may be repeated")
    parser.add_argument("--queries", type=int, default=1000, help="how many are many, default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="turns, default %(default)s")
    parser.add_argument("--json", type=Path, help="also write points for growth.py here")
    options = parser.parse_args()
    options.only = options.only or [""]
    with tempfile.TemporaryDirectory() as folder:
        rows, points = measure(options, Path(folder))
    devices = ",".join(map(str, options.devices))
    about = [
        *heading(__file__, ("numpy",)),
        f"{options.database.name}; device {options.devices[0]} beside devices {devices}; medians of {options.runs} "
        f"turns; streamed through {STREAMED_MEMORY >> 20} MiB",
    ]
    columns = ["job", "what", "one, s", f"{devices}, s", "ratio"]
    finish([*about, "", *table(columns, rows)], options.out)
    if options.json is not None:
        options.json.write_text(json.dumps({"about": {"heading": about}, "points": points}, indent=1) + "\n")


if __name__ == "__main__":
    main()
