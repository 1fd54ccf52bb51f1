"""What building a database costs, and whether memory stays bounded: wall seconds, peak RSS, peak disk.

Runs `swsearch db build` on a FASTA file, then on five times its input (the file is named five times), and on made
files of as many records of 30 residues as `--records` asks for. Memory must not follow the input's size; `--memory`
passes a budget on. Disk is what the process has in files at once, its anonymous ones included, looked at every 50 ms
(Linux only).

Needs: a FASTA file as large as wanted, and six times its size of free disk; 190 bytes of free disk for each record
       that is made. With Swiss-Prot, half a minute; a hundred million records take a few minutes.
Run:   python -m benchmarks.speed.build swissprot.fasta [--records 5M 100M] [--folder FOLDER] [--keep FILE]
                [--memory 512M] [--out benchmarks/results/build.txt]
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.support.common import arguments, finish, heading, table

TIMES = (1, 5)
"""How often the input is given."""

RESIDUES = 30
"""Residues of a record that is made."""

AT_ONCE = 1 << 18
"""Records that are made at once."""

UNITS = {"K": 1000, "M": 1000_000, "G": 1000_000_000}


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float
    disk_bytes: int


def measure(line: list[str]) -> Cost:
    """Run a process to its end; this process stays small, since a child's peak begins at its parent's."""
    begun = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    disk = 0
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        disk = max(disk, written_by(process.pid))
        time.sleep(0.05)
    _, status, usage = ended
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(line)}: exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(seconds, usage.ru_maxrss * unit, usage.ru_utime + usage.ru_stime, disk)


def written_by(pid: int) -> int:
    """Return the bytes on disk of the files that a process has open and may write to; 0 where /proc does not say."""
    files = {}
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                status = link.stat()
                if stat.S_ISREG(status.st_mode) and link.lstat().st_mode & stat.S_IWUSR:
                    files[status.st_ino] = status.st_blocks * 512
    return sum(files.values())


def number(text: str) -> int:
    """Read a number of records, such as 5M."""
    try:
        return int(text.rstrip("KMG").replace("_", "")) * UNITS.get(text[-1:], 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number such as 5M") from None


def make(path: Path, n: int) -> None:
    """Write so many random records of 30 residues, named by their number."""
    generator = np.random.default_rng(n)
    letters = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", dtype=np.uint8)
    with path.open("wb") as file:
        for first in range(0, n, AT_ONCE):
            numbers = np.arange(first, min(first + AT_ONCE, n))
            rows = np.full((len(numbers), 12 + RESIDUES + 1), ord("\n"), dtype=np.uint8)
            rows[:, :2] = np.frombuffer(b">r", dtype=np.uint8)
            for digit in range(9):
                rows[:, 10 - digit] = ord("0") + numbers // 10**digit % 10
            rows[:, 12:-1] = letters[generator.integers(0, 20, (len(rows), RESIDUES), dtype=np.uint8)]
            file.write(rows.data)


def row(name: str, inputs: list[Path], database: Path, options: argparse.Namespace) -> list[str]:
    """Build a database; return what the table says of it."""
    budget = ["--memory", options.memory] if options.memory else []
    command = [sys.executable, "-m", "swsearch", "db", "build", *map(str, inputs)]
    cost = measure([*command, "-o", str(database), "--quiet", *budget])
    read, written = sum(each.stat().st_size for each in inputs), database.stat().st_size
    return [
        name, f"{read / 1e6:,.0f}", f"{written / 1e6:,.0f}", f"{cost.seconds:.2f}", f"{cost.cpu_seconds:.2f}",
        f"{cost.peak_bytes / 2**20:,.0f}", f"{cost.disk_bytes / 1e6:,.0f}", f"{read / 1e6 / cost.seconds:.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("fasta", type=Path, help="FASTA file, plain or compressed")
    parser.add_argument("--records", type=number, nargs="+", default=[], help="records to make, such as 5M 100M")
    parser.add_argument("--folder", type=Path, help="where to write, default the folder of the FASTA file")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="move the last database here")
    parser.add_argument("--memory", help="passed on to swsearch db build")
    options = parser.parse_args()
    if not options.fasta.is_file():
        parser.error(f"{options.fasta}: no such file")

    rows = []
    where = options.folder or options.fasta.parent
    with tempfile.TemporaryDirectory(prefix="swsearch-build-", dir=where) as folder:
        database, made = Path(folder) / "built.h5", Path(folder) / "made.fasta"
        for times in TIMES:
            rows.append(row(f"{options.fasta.name}, {times} x", [options.fasta] * times, database, options))
        for n in options.records:
            database.unlink()
            make(made, n)
            rows.append(row(f"{n:,} records of {RESIDUES}", [made], database, options))
            made.unlink()
        if options.keep:
            shutil.move(database, options.keep)
    columns = [
        "input", "FASTA MB", "database MB", "wall s", "CPU s", "peak RSS MiB", "peak disk MB", "FASTA MB/s",
    ]  # fmt: skip
    lines = [*heading(__file__, ["h5py", "numpy"]), f"--memory {options.memory or '(default)'}"]
    finish([*lines, "", *table(columns, rows)], options.out)


if __name__ == "__main__":
    main()
