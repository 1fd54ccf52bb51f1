"""Times of contenders, what kind of search each is, and how people are told how far a benchmark is."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
    busy, begun = processor_seconds(), time.perf_counter()
    result = work()
    timing.wall.append(time.perf_counter() - begun)
    timing.busy.append(processor_seconds() - busy)
    return result


def say(text: str) -> None:
    """Tell people how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)
