"""Part ``cudasw`` of `gpu.py`: CUDASW++4.0 with the same queries and database, on the same device.

It is built from its source (github.com/asbschmidt/CUDASW4; NVCC_FLAGS names the architecture), and its database
is made by its ``makedb``. ``--dpx`` is faster than its default on devices that have these instructions.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

SCAN = re.compile(r"Scan time: (\S+) s, (\S+) GCUPS")


def align(program: Path, database: Path, queries: Path, top: int, passes: int) -> tuple[float, str]:
    """Return the seconds of the whole command with the queries so many times, and what it prints."""
    options = (
        f"--db {database} --dpx --verbose --uploadFull --prefetchDBFile --top {top}" + f" --query {queries}" * passes
    )
    started = time.perf_counter()
    done = subprocess.run([program, *options.split()], capture_output=True, text=True, check=True, timeout=300)
    return time.perf_counter() - started, done.stdout


def scans(program: Path, database: Path, queries: Path, top: int, runs: int) -> dict[str, Any]:
    """Return medians of the whole command and of each scan; the first pass over the queries is not counted."""
    commands = [align(program, database, queries, top, 1)[0] for _ in range(runs)]
    found = SCAN.findall(align(program, database, queries, top, runs + 1)[1])
    n_queries = len(found) // (runs + 1)
    counted = [found[k + n_queries :: n_queries] for k in range(n_queries)]
    seconds = [statistics.median(float(taken) for taken, _ in query) for query in counted]
    rates = [statistics.median(float(gcups) for _, gcups in query) for query in counted]
    return {
        "command_seconds": statistics.median(commands),
        "seconds": sum(seconds),
        "gcups": sum(gcups * taken for gcups, taken in zip(rates, seconds, strict=True)) / sum(seconds),
        "queries": rates,
    }
