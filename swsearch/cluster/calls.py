"""What a worker runs now: tasks by their names, each of which can be told to stop, and errors as bytes."""

from __future__ import annotations

import importlib
import itertools
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from swsearch.cluster.transport import WorkerPlace
from swsearch.engines.cpu import extension
from swsearch.errors import ClusterError, MemoryLimitError, SwsearchError
from swsearch.pipeline.prefetch import Stopped

TaskFunction = Callable[[bytes, WorkerPlace], bytes]

Forget = Callable[[WorkerPlace], None]

forgetting: list[Forget] = []
"""What is called for each worker that was a thread of this process, when it ends: whoever keeps something for workers
adds a function that lets go of it."""

RESULT, ERROR, STOPPED = "result", "error", "stopped"
"""What became of a call."""


class _Call:
    """A call that runs, by the number that the extension knows its thread's work by."""

    def __init__(self) -> None:
        self.work = next(_numbers)
        self.is_stopped = False


# far from those of `swsearch.pipeline.prefetch`, which count from 1 in the same process
_numbers = itertools.count(1 << 40)
_guard = threading.Lock()
_running: dict[str, _Call] = {}
_own = threading.local()


def run_call(
    key: str, function: str, payload: bytes, place: WorkerPlace, is_wanted: Callable[[], bool] = lambda: True
) -> tuple[str, bytes]:
    """Call what a task names, and return what became of it and the result or the error as bytes.

    Parameters
    ----------
    key : str
        Name of this call, which no other has; see `stop_calls`.
    function : str
        ``module:name``.
    payload : bytes
        What it is called with.
    place : WorkerPlace
        Where it runs.
    is_wanted : callable, optional
        Asked once when `stop_calls` would find the call: whoever stops calls may have come before.
    """
    try:
        with _begun(key):
            if not is_wanted():
                return STOPPED, b""
            result = _function(function)(payload, place)
            return (STOPPED, b"") if _own.call.is_stopped else (RESULT, result)
    except Exception as error:
        return ERROR, packed_error(error)
    except (Stopped, KeyboardInterrupt):
        return STOPPED, b""


def _function(name: str) -> TaskFunction:
    module, _, function = name.partition(":")
    return cast(TaskFunction, getattr(importlib.import_module(module), function))


@contextmanager
def _begun(key: str) -> Iterator[None]:
    call = _Call()
    with _guard:
        _running[key] = call
    _own.call = call
    extension.load().work_on(call.work)
    try:
        yield
    finally:
        _own.call = None
        extension.load().work_on(0)
        with _guard:
            _running.pop(key, None)
        if call.is_stopped:
            extension.load().forget(call.work)


def stop_calls(prefix: str) -> int:
    """Tell all calls whose names begin so to stop, and return how many there were; they end by themselves soon."""
    with _guard:
        calls = [call for key, call in _running.items() if key.startswith(prefix) and not call.is_stopped]
        for call in calls:
            call.is_stopped = True
            extension.load().stop(call.work)
    return len(calls)


def packed_error(error: Exception) -> bytes:
    """Return an error as bytes: one of ours as it is, any other as one of ours that says what it was."""
    if isinstance(error, MemoryError) and not isinstance(error, SwsearchError):
        error = MemoryLimitError("out of memory on the worker")
    if isinstance(error, SwsearchError):
        with suppress(Exception):  # of what it keeps beside its text
            return pickle.dumps((type(error), error.args, vars(error)))
        return pickle.dumps((type(error), (str(error),), {}))
    return pickle.dumps((ClusterError, (one_line(error),), {}))


def unpacked_error(packed: bytes) -> Exception:
    """Return the error that `packed_error` made bytes of.

    It is made without its class's constructor, whose arguments are other ones than those that errors keep.
    """
    try:
        kind, arguments, state = pickle.loads(packed)
        error: Any = BaseException.__new__(kind, *arguments)
        error.args = arguments
        error.__dict__.update(state)
    except Exception as unreadable:
        return ClusterError(f"a worker's error could not be read ({one_line(unreadable)})")
    return cast(Exception, error)


def one_line(error: BaseException) -> str:
    """Return an error's kind and text on one line, cut where it is long."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
