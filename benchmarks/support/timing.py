"""Times of contenders, what kind of search each is, and how people are told how far a benchmark is."""

from __future__ import annotations

import os
import resource
import stat
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

EXACT, SCORES, HEURISTIC = "exact", "exact, scores only", "heuristic"
"""Kinds of searches, as tables have them."""


@dataclass
class Timing:
    """Seconds of one contender's turns, and of the processors in them (all threads and child processes)."""

    wall: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median wall seconds."""
        return statistics.median(self.wall)

    def spread(self) -> str:
        """Format the shortest and the longest turn."""
        return f"{min(self.wall):.2f} - {max(self.wall):.2f}"


def processor_seconds() -> float:
    """Return the processor seconds of this process, its threads and its finished child processes so far."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def take_turn(timing: Timing, work: Callable[[], Any]) -> Any:
    """Time a call, and return what it returned."""
    busy, started = processor_seconds(), time.perf_counter()
    result = work()
    timing.wall.append(time.perf_counter() - started)
    timing.busy.append(processor_seconds() - busy)
    return result


def in_turns(works: Mapping[str, Callable[[], Any]], turns: int, what: str = "") -> dict[str, Timing]:
    """Time calls in turns (A B C, A B C, ...), so that a machine whose speed drifts is fair to all."""
    timings = {name: Timing() for name in works}
    for turn in range(turns):
        for name, work in works.items():
            take_turn(timings[name], work)
            say(f"{what}turn {turn + 1} of {turns}, {name}: {timings[name].wall[-1]:.2f} s")
    return timings


def ratios(these: Sequence[float], those: Sequence[float]) -> list[float]:
    """Return the ratios of seconds, turn by turn."""
    return [one / other for one, other in zip(these, those, strict=True)]


def ratio(these: Sequence[float], those: Sequence[float]) -> float:
    """Return the median of the ratios of the turns."""
    return statistics.median(ratios(these, those))


class Cost(NamedTuple):
    """Seconds, and bytes at most, of a process."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float
    disk_bytes: int


def cost_of(*words: object) -> Cost:
    """Run ``swsearch`` to its end; this process stays small, since a child's peak begins at its parent's."""
    line = [sys.executable, "-m", "swsearch", *map(str, words)]
    started = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    disk = 0
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        disk = max(disk, bytes_on_disk(process.pid))
        time.sleep(0.05)
    _, status, usage = ended
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(line)}: exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(seconds, usage.ru_maxrss * unit, usage.ru_utime + usage.ru_stime, disk)


def bytes_on_disk(pid: int) -> int:
    """Return the bytes of all files that a process has open to write, unlinked ones included; 0 without /proc."""
    files = {}
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                status = link.stat()
                if stat.S_ISREG(status.st_mode) and link.lstat().st_mode & stat.S_IWUSR:
                    files[status.st_ino] = status.st_blocks * 512
    return sum(files.values())


def say(text: str) -> None:
    """Tell people how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)
