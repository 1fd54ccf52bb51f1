"""The functions that Dask calls on a worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any

from swsearch.cluster.calls import forgetting, run_call, stop_calls
from swsearch.cluster.same_program import program
from swsearch.cluster.transport import WorkerPlace

WATCH_EVERY = 0.5
"""Seconds between two looks at whether a task is wanted."""

TRIM, TRIM_OF_DASK = "MALLOC_TRIM_THRESHOLD_", "65536"
"""The setting of glibc that Dask starts workers with, and what it sets."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of settings in glibc's mallopt: from how many bytes on free memory is given back, and blocks are mapped."""

KEPT_BYTES, MAPPED_BYTES = 128 << 20, 32 << 20
"""What these are here. In a process that Dask did not start they grow by themselves, to 64 and 32 MiB."""


def describe_worker() -> dict[str, str]:
    """Return the versions of what runs on this worker."""
    return program()


def run_on_worker(key: str, function: str, payload: bytes, place: WorkerPlace) -> tuple[str, bytes]:
    """Do a task, and stop it when nobody wants it any more.

    A client that cancels a task, is closed or is killed leaves a task that runs as it is; the worker then knows that
    it was cancelled, which this looks for.

    Parameters
    ----------
    key : str
        Dask's name of the task.
    function, payload, place : str, bytes, WorkerPlace
        As of `swsearch.cluster.calls.run_call`.
    """
    keep_freed_memory()
    with _Watch(key) as worker, as_one(str(getattr(worker, "id", "")), place) as own:
        return run_call(key, function, payload, own)


@cache
def keep_freed_memory() -> None:
    """Let this process keep the memory that one task frees for the next one, unless its user has set what it keeps.

    With what Dask sets, every array is given back at once, and the pages of the next one are asked for again.
    """
    if os.environ.get(TRIM) == TRIM_OF_DASK:
        with suppress(OSError, AttributeError):  # another C library
            import ctypes

            library = ctypes.CDLL(None)
            library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
            library.mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


_guard = threading.Lock()
_known: dict[str, tuple[WorkerPlace, int]] = {}


@contextmanager
def as_one(name: str, place: WorkerPlace) -> Iterator[WorkerPlace]:
    """Give the place of a worker of some name, for whoever counts the workers.

    One client after the other may give it another rank among those of its host. What it kept for the rank before, an
    engine on a GPU and half of its memory, is let go of then, but not while a task runs with it.
    """
    if not name:
        yield place
        return
    wanted = replace(place, index=0, owner=name)
    with _guard:
        known, n_running = _known.get(name, (wanted, 0))
        if known != wanted and not n_running:
            for forget in forgetting:
                forget(known)
            known = wanted
        _known[name] = known, n_running + 1
    try:
        yield replace(known, index=place.index)
    finally:
        with _guard:
            known, n_running = _known[name]
            _known[name] = known, n_running - 1


class _Watch:
    """A thread that stops a task that Dask has cancelled."""

    def __init__(self, key: str) -> None:
        self._key, self._is_done = key, threading.Event()
        self._worker: Any = None

    def __enter__(self) -> Any:
        with suppress(Exception):
            from distributed import get_worker

            self._worker = get_worker()
            threading.Thread(target=self._run, name="swsearch-wanted", daemon=True).start()
        return self._worker

    def __exit__(self, *_: object) -> None:
        self._is_done.set()

    def _run(self) -> None:
        while not self._is_done.wait(WATCH_EVERY):
            task = self._worker.state.tasks.get(self._key)
            if task is None or task.state == "cancelled":
                stop_calls(self._key)
                return
