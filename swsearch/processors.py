"""Number of processors, limits of threads and open files, and fork detection."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

from swsearch.errors import EngineError

THREAD_BYTES = 64 << 20
"""Bytes that are to be left below a limit of memory where a thread of Python is started. It is born with a stack of
some 8 MiB; if it then finds no memory for its first object, whoever started it waits for ever."""


class OwnProcess:
    """The process that made something; a fork of it has a copy, but none of its threads, connections and devices.

    Parameters
    ----------
    what : str
        What messages call it, e.g. ``this Searcher``.
    """

    def __init__(self, what: str) -> None:
        self._what, self._number = what, os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is the process itself, not a fork."""
        return os.getpid() == self._number

    def check(self) -> None:
        """Raise `EngineError` in a fork."""
        if not self.is_here:
            raise EngineError(
                f"{self._what}: was made before this process was forked, and cannot be used in the fork; make one in "
                "each process (e.g. in the initializer of a multiprocessing.Pool)"
            )


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def useful_thread_count(requested: int | None) -> int:
    """Return the number of threads to use: as requested, at most one for each processor.

    More would take turns, and memory.
    """
    return min(requested or available_processors(), available_processors())


def can_start_threads(count: int = 1) -> bool:
    """Return whether Python threads may start: not near a memory limit (``ulimit -v``)."""
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft == resource.RLIM_INFINITY:
        return True
    used = 0
    with contextlib.suppress(OSError, ValueError):
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    return soft - used > count * THREAD_BYTES


def allow_files(number: int) -> int:
    """Raise the limit of open files (``ulimit -n``) as far as the hard limit allows, and return it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (sys.maxsize if limit == resource.RLIM_INFINITY else limit for limit in limits)
    if soft < number:
        new_limit = min(number, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS has a limit besides
            resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, limits[1]))
            soft = new_limit
    return soft
