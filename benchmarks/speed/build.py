"""What building a database costs, and whether memory stays bounded: wall seconds and peak RSS.

Runs `swsearch db build` on a FASTA file, then on five times its input (the file is named five times). Memory must
not follow the input's size; --memory passes a budget on.

Needs: a FASTA file as large as wanted, and six times its size of free disk. With Swiss-Prot, half a minute.
Run:   python -m benchmarks.speed.build swissprot.fasta [--memory 512M] [--out benchmarks/results/build.txt]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.common import arguments, finish, heading, table

TIMES = (1, 5)
"""How often the input is given."""


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float


def measure(line: list[str]) -> Cost:
    """Run a process to its end; this process stays small, since a child's peak begins at its parent's."""
    begun = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(line)}: exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(seconds, usage.ru_maxrss * unit, usage.ru_utime + usage.ru_stime)


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("fasta", type=Path, help="FASTA file, plain or compressed")
    parser.add_argument("--memory", help="passed on to swsearch db build")
    options = parser.parse_args()
    if not options.fasta.is_file():
        parser.error(f"{options.fasta}: no such file")

    budget = ["--memory", options.memory] if options.memory else []
    rows = []
    for times in TIMES:
        with tempfile.TemporaryDirectory(prefix="swsearch-build-", dir=options.fasta.parent) as folder:
            database = Path(folder) / "built.h5"
            inputs = [str(options.fasta)] * times
            cost = measure(
                [sys.executable, "-m", "swsearch", "db", "build", *inputs, "-o", str(database), "--quiet", *budget]
            )
            read, written = options.fasta.stat().st_size * times, database.stat().st_size
        rows.append(
            [
                f"{times} x", f"{read / 1e6:,.0f}", f"{written / 1e6:,.0f}", f"{cost.seconds:.2f}",
                f"{cost.cpu_seconds:.2f}", f"{cost.peak_bytes / 2**20:,.0f}", f"{read / 1e6 / cost.seconds:.0f}",
            ]
        )  # fmt: skip
    columns = ["input", "FASTA MB", "database MB", "wall s", "CPU s", "peak RSS MiB", "FASTA MB/s"]
    lines = [*heading(__file__, ["h5py", "numpy"]), f"{options.fasta.name}, --memory {options.memory or '(default)'}"]
    finish([*lines, "", *table(columns, rows)], options.out)


if __name__ == "__main__":
    main()
