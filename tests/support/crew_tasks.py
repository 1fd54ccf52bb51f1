"""Tasks of crews in tests, which workers load by their names."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from swsearch.cluster.transport import WorkerPlace
from swsearch.errors import DatabaseError, EngineError, OptionError
from swsearch.pipeline.prefetch import check_wanted

begun, stopped = threading.Event(), threading.Event()
"""Set by `endless`, in the process that runs it."""


def double(payload: bytes, place: WorkerPlace) -> bytes:
    return payload * 2


def where(payload: bytes, place: WorkerPlace) -> bytes:
    return repr(place).encode()


def bad_option(payload: bytes, place: WorkerPlace) -> bytes:
    raise OptionError("matrix", "none", "a matrix")


def no_file(payload: bytes, place: WorkerPlace) -> bytes:
    raise DatabaseError(f"{payload.decode()}: no such database; check the name")


def broken_engine(payload: bytes, place: WorkerPlace) -> bytes:
    raise EngineError("the device has gone")


def mistake(payload: bytes, place: WorkerPlace) -> bytes:
    raise ZeroDivisionError("a mistake\nof two lines")


def no_memory(payload: bytes, place: WorkerPlace) -> bytes:
    raise MemoryError


def endless(payload: bytes, place: WorkerPlace) -> bytes:
    """Work until told to stop."""
    try:
        begun.set()
        while True:
            check_wanted()
            time.sleep(0.001)
    finally:
        stopped.set()


def slow(payload: bytes, place: WorkerPlace) -> bytes:
    """Work for so many hundredths of a second."""
    for _ in range(int(payload)):
        check_wanted()
        time.sleep(0.01)
    return payload


def hang_once(payload: bytes, place: WorkerPlace) -> bytes:
    """Hang, but not where a file says that this was done."""
    mark = Path(payload.decode())
    if not mark.exists():
        mark.touch()
        time.sleep(1000)
    return b"done"
