"""Time several GPUs, or one that is opened twice, beside one: kernels, scans, whole commands, workers; and bytes.

Kernels are timed by the devices' own clocks, as the time in which any ran, and so is the scan that they are for; the
database is read before where it stays on the devices, and read by every scan where it is streamed, for which the
memory of each is bounded. Commands are whole processes with default options; where all devices are different ones, as
many local workers with a GPU each run the command too. Each kind is run in turns, once by the first device and once
by all of --devices; medians are shown, and all outputs, and that of the CPU with --cpu, must be the same bytes.

Needs: a GPU; Swiss-Prot as FASTA and its database; twenty queries; dask.distributed for workers.
Run:   python -m benchmarks.speed.devices SPROT.fasta DATABASE QUERIES20 [--devices 0,0] [--queries 1000] [--runs 3]
           [--copies 1] [--only PART] [--out benchmarks/results/devices.txt]
Exit code 1 if any byte differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.support.common import (
    Records,
    arguments,
    finish,
    heading,
    numbers,
    read,
    sha256_of,
    spread,
    swsearch,
    table,
    write,
)
from benchmarks.support.scanning import Scan, Seconds
from benchmarks.support.timing import Timing, in_turns, say
from swsearch.db import Database
from swsearch.engines import create_engine
from swsearch.inputs import read_queries
from swsearch.pipeline.batch import query_groups

STREAMED_MEMORY = 200 << 20
"""Bytes of a device's memory where the database is not to stay there; Swiss-Prot takes 186 MiB, and more with what it
needs beside."""


def scan(queries: Path, database: Path, devices: list[int], memory: int | None) -> Seconds:
    """Score the queries with the database on some devices, group after group as searches do."""
    found = read_queries(queries)
    groups = list(query_groups(found))
    with (
        create_engine("gpu", device=devices if len(devices) > 1 else devices[0], gpu_memory=memory) as engine,
        Database.open(database) as opened,
        closing(Scan(engine, opened, groups)) as made,
    ):
        for _ in range(2):  # kernels are compiled, and the database is there, in one piece, if it stays
            made.select(found[:20])
        return made.score(*groups)


def copies_of(records: Records, copies: int, folder: Path) -> Path:
    """Build a database of copies of the records, each with names of its own."""
    fasta = write(folder / "copies.fasta", ((f"{name}_{k}", each) for k in range(copies) for name, each in records))
    swsearch("db", "build", fasta, "-o", folder / "copies.h5", "--quiet")
    return folder / "copies.h5"


def row(name: str, what: str, once: Timing, again: Timing) -> list[str]:
    """Return a line of the table."""
    shown = [f"{each.median:.3f} ({each.spread()})" for each in (once, again)]
    return [name, what, *shown, f"{again.median / once.median:.3f}"]


def measure(options: argparse.Namespace, folder: Path) -> tuple[list[list[str]], bool]:
    """Measure everything; return the rows of the table, and whether all outputs are the same."""
    records, rows, is_same = read(options.fasta), [], True
    many = write(folder / "many.fasta", spread(records, options.queries))
    scanned = copies_of(records, options.copies, folder) if options.copies > 1 else options.database
    sides = {"one": options.devices[:1], "all": options.devices}
    is_several = len(set(options.devices)) == len(options.devices)
    for memory, kind in ((None, "resident"), (STREAMED_MEMORY, "streamed")):
        for queries, count in ((options.twenty, 20), (many, options.queries)):
            name = f"{count:,} queries, {kind}"
            if not any(part in name for part in options.only):
                continue
            kernels, walls = {side: Timing() for side in sides}, {side: Timing() for side in sides}
            for turn in range(options.runs):
                for side, devices in sides.items():
                    kernel, wall = scan(queries, scanned, devices, memory)
                    kernels[side].wall.append(kernel)
                    walls[side].wall.append(wall)
                    say(f"turn {turn + 1}, {side}: kernels {kernel:.3f} s, scan {wall:.3f} s")
            rows += [row(name, "kernels", *kernels.values()), row(name, "scan", *walls.values())]
            limit = () if memory is None else ("--gpu-memory", memory)
            words = ("search", queries, options.database, "--quiet", "-o")
            works: dict[str, Callable[[], object]] = {}
            for side, devices in sides.items():
                where = ("--engine", "gpu", "--device", ",".join(map(str, devices)), *limit)
                works[side] = partial(swsearch, *words, folder / side, *where)
            if is_several and memory is None:
                where = ("--engine", "gpu", "--cluster", f"local:{len(options.devices)}")
                works["workers"] = partial(swsearch, *words, folder / "workers", *where)
            commands = in_turns(works, options.runs, f"{name}, ")
            rows.append(row(name, "command", commands["one"], commands["all"]))
            if "workers" in commands:
                rows.append(row(name, "command by as many workers", commands["one"], commands["workers"]))
            if options.cpu:
                swsearch(*words, folder / "cpu", "--engine", "cpu")
            outputs = [folder / each for each in (*works, *(["cpu"] if options.cpu else []))]
            is_same = is_same and len({sha256_of(output) for output in outputs}) == 1
    return rows, is_same


def main() -> None:
    parser = arguments(__doc__, files=False)
    add = parser.add_argument
    add("fasta", type=Path, help="the database's proteins, of which queries are taken")
    add("database", type=Path)
    add("twenty", type=Path, help="twenty queries")
    add("--devices", type=numbers, default=[0, 0], help="against the first alone")
    add("--only", action="append", metavar="PART", help="what has this in its name; may be repeated")
    add("--queries", type=int, default=1000, help="how many are many, default %(default)s")
    add("--copies", type=int, default=1, help="of the database for scans, default %(default)s")
    add("--runs", type=int, default=3, help="turns, default %(default)s")
    add("--cpu", action="store_true", help="compare the bytes with those of the CPU too")
    options = parser.parse_args()
    options.only = options.only or [""]
    with tempfile.TemporaryDirectory() as folder:
        rows, is_same = measure(options, Path(folder))
    devices = ",".join(map(str, options.devices))
    copies = f", {options.copies} copies for scans" if options.copies > 1 else ""
    about = [
        *heading(__file__, ("numpy",)),
        f"{options.database.name}{copies}; device {options.devices[0]} beside devices {devices}; medians of "
        f"{options.runs} turns; streamed through {STREAMED_MEMORY >> 20} MiB",
    ]
    verdict = [] if is_same else ["", "The bytes differ."]
    columns = ["job", "what", "one, s", f"{devices}, s", "ratio"]
    finish([*about, "", *table(columns, rows), *verdict], options.out)
    sys.exit(not is_same)


if __name__ == "__main__":
    main()
