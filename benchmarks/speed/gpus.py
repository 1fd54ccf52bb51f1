"""Measure what two, four and eight GPUs of one machine give: kernels, whole commands, streaming, workers, and bytes.

Twenty queries are scored with some copies of the database, resident and streamed through little memory of each GPU,
and the kernels are timed by the devices' own clocks, as the time in which any ran. Many queries are searched in the
database itself by whole commands with default options, on some GPUs and by as many local workers with a GPU each. Of
each what is shown is the median of RUNS turns. Twenty queries are searched by every number of GPUs, by workers and on
the CPU, and all must write the same bytes.

Needs: several GPUs, or one whose number is given several times, which tries everything but the gain; Swiss-Prot as
       FASTA and its database; twenty queries; dask.distributed for workers.
Run:   python -m benchmarks.speed.gpus SPROT.fasta DATABASE QUERIES20 [--devices 0,1,2,3,4,5,6,7] [--counts 2,4,8]
           [--copies 10] [--memory 536870912] [--queries 1000] [--runs 3] [--out benchmarks/results/gpus.txt]
Exit code 1 if any byte differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.devices import Devices, Scans
from benchmarks.speed.jobs import spread
from benchmarks.support.common import (
    Records,
    arguments,
    finish,
    heading,
    numbers,
    read,
    sha256_of,
    swsearch,
    table,
    write,
)
from benchmarks.support.timing import Timing, say, take_turn

COLUMNS = ["what", "GPUs", "one or resident, s", "these, s", "measured", "asked for", "met"]

LEAST_SHARE, LEAST_STREAMED, LEAST_OF_FOUR = 0.95, 0.9, 3.0
"""What is asked for: kernels' time of one GPU over N times that of N, and the command's of all over that of workers;
speed of streaming over that of what is resident; times that four GPUs are faster than one, by whole commands."""


@dataclass(frozen=True)
class Machine:
    """What is measured, and with what.

    Parameters
    ----------
    devices : list of int
        Numbers of the GPUs; one may be there several times.
    counts : list of int
        How many of them work together, in turn; 1 is measured as well.
    memory : int
        Bytes of each GPU that may be used where the database is streamed: fewer than its share takes.
    runs : int
        Turns.
    """

    devices: Devices
    counts: list[int]
    memory: int
    runs: int

    def of(self, count: int) -> Devices:
        """Return the first of the devices."""
        return self.devices[:count]

    def named(self, count: int) -> str:
        """Return the first of the devices as ``--device`` takes them."""
        return ",".join(map(str, self.of(count)))


def counted(count: int) -> str:
    """Return ``1 GPU`` or ``2 GPUs``."""
    return "1 GPU" if count == 1 else f"{count} GPUs"


def kernel_seconds(machine: Machine, count: int, queries: Path, database: Path, memory: int | None) -> float:
    """Return the median time of the kernels of a scan."""
    found = Timing()
    with closing(Scans(queries, database, machine.of(count), memory)) as scans:
        for _ in range(machine.runs):
            found.wall.append(scans.run()[0])
    say(f"{counted(count)}, {'resident' if memory is None else 'streamed'}: kernels {found.median:.3f} s")
    return found.median


def command_seconds(runs: int, name: str, work: Callable[[], object]) -> float:
    """Return the median time of a command."""
    found = Timing()
    for _ in range(runs):
        take_turn(found, work)
    say(f"{name}: {found.median:.2f} s")
    return found.median


def row(name: str, count: int, before: float, after: float, measured: float, least: float | None) -> list[str]:
    """Return a line of the table; nothing is asked for without a least value."""
    asked = ["", ""] if least is None else [f">= {least:g}", "yes" if measured >= least else "NO"]
    return [name, str(count), f"{before:.3f}", f"{after:.3f}", f"{measured:.3f}", *asked]


def scan_rows(machine: Machine, queries: Path, copies: Path) -> Iterator[list[str]]:
    """Time the kernels of scans, resident and streamed."""
    resident = {count: kernel_seconds(machine, count, queries, copies, None) for count in (1, *machine.counts)}
    for count in machine.counts:
        share = resident[1] / (count * resident[count])
        yield row("20 queries, kernels: one / (N x N's)", count, resident[1], resident[count], share, LEAST_SHARE)
    for count in (1, *machine.counts):
        streamed = kernel_seconds(machine, count, queries, copies, machine.memory)
        share = resident[count] / streamed
        yield row("the same, streamed: resident / streamed", count, resident[count], streamed, share, LEAST_STREAMED)


def command_rows(machine: Machine, queries: Path, database: Path, output: Path) -> Iterator[list[str]]:
    """Time whole commands: by some GPUs, and by as many workers."""

    def search(*places: object) -> Callable[[], object]:
        return lambda: swsearch("search", queries, database, "--engine", "gpu", *places, "--quiet", "-o", output)

    one = command_seconds(machine.runs, f"command, {counted(1)}", search("--device", machine.named(1)))
    for count in machine.counts:
        several = command_seconds(
            machine.runs, f"command, {counted(count)}", search("--device", machine.named(count))
        )
        least = LEAST_OF_FOUR if count == 4 else None
        yield row("many queries, command: one / N", count, one, several, one / several, least)
        if len(set(machine.of(count))) < count:
            continue  # workers of one machine take a GPU of their own each
        workers = command_seconds(machine.runs, f"command, {count} workers", search("--cluster", f"local:{count}"))
        share = several / workers
        yield row("a worker a GPU: together / workers", count, several, workers, share, LEAST_SHARE)


def digests(machine: Machine, queries: Path, database: Path, output: Path) -> dict[str, str]:
    """Search everywhere; return the SHA-256 of each output, by the place's name."""
    places: dict[str, Sequence[object]] = {"CPU": ("--engine", "cpu")}
    for count in (1, *machine.counts):
        places[counted(count)] = ("--engine", "gpu", "--device", machine.named(count))
    most = len(set(machine.devices))
    if most > 1:
        places[f"{most} workers"] = ("--engine", "gpu", "--cluster", f"local:{most}")
    found = {}
    for name, given in places.items():
        swsearch("search", queries, database, *given, "--quiet", "-o", output)
        found[name] = sha256_of(output)
        say(f"{name}: {found[name][:16]}")
    return found


def many_copies(records: Records, copies: int, folder: Path) -> Path:
    """Build a database of copies of the records, each with names of its own."""
    fasta, database = folder / "copies.fasta", folder / "copies.h5"
    write(fasta, ((f"{name}_{copy}", letters) for copy in range(copies) for name, letters in records))
    swsearch("db", "build", fasta, "-o", database, "--quiet")
    fasta.unlink()
    return database


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("fasta", type=Path, help="the database's proteins, of which queries are taken")
    parser.add_argument("database", type=Path)
    parser.add_argument("twenty", type=Path, help="twenty queries")
    parser.add_argument("--devices", type=numbers, default=list(range(8)), help="numbers of GPUs, default 0 to 7")
    parser.add_argument("--counts", type=numbers, default=[2, 4, 8], help="how many work together, default 2,4,8")
    parser.add_argument("--copies", type=int, default=10, help="of the database for scans, default %(default)s")
    parser.add_argument("--memory", type=int, default=512 << 20, help="bytes of each GPU to stream through")
    parser.add_argument("--queries", type=int, default=1000, help="how many are many, default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="turns, default %(default)s")
    options = parser.parse_args()
    if max(options.counts) > len(options.devices):
        parser.error(f"--counts: got {max(options.counts)}, expected at most the {len(options.devices)} of --devices")
    machine = Machine(options.devices, options.counts, options.memory, options.runs)
    sys.exit(measure(machine, options))


def measure(machine: Machine, options: argparse.Namespace) -> int:
    """Measure everything and report; return the exit code."""
    records = read(options.fasta)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        many, output = write(folder / "many.fasta", spread(records, options.queries)), folder / "out.tsv"
        found = digests(machine, options.twenty, options.database, output)
        rows = list(command_rows(machine, many, options.database, output))
        rows += scan_rows(machine, options.twenty, many_copies(records, options.copies, folder))
    differ = len(set(found.values())) > 1
    devices = ",".join(map(str, machine.devices))
    about = [
        *heading(__file__, ("numpy", "distributed")),
        f"{options.database.name}; devices {devices}; {options.copies} copies for scans, streamed through "
        f"{machine.memory >> 20} MiB of each; {options.queries:,} queries are many; medians of {machine.runs} turns",
    ]
    bytes_ = table(["place", "SHA-256 of 20 queries' output"], [[place, digest] for place, digest in found.items()])
    verdict = "The bytes differ." if differ else f"The bytes are the same in all {len(found)} places."
    finish([*about, "", *bytes_, "", verdict, "", *table(COLUMNS, rows)], options.out)
    return int(differ)


if __name__ == "__main__":
    main()
