"""How many processors there are to work with."""

from __future__ import annotations

import os


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_that_help(asked: int | None) -> int:
    """Return how many threads to work with: as many as were asked for, at most one for each processor.

    More would take turns, and memory.
    """
    return min(asked or available_processors(), available_processors())
