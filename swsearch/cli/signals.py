"""Ending signals and standard streams of a command.

While the process starts, a signal ends it at once; later it raises an exception, so that files are removed. An
ignored signal stays ignored, e.g. SIGINT of a background job or SIGHUP under nohup. Few modules are imported here,
because this code runs first.

A closed descriptor is reused by the next file that is opened, which would then receive messages of stderr. So closed
standard descriptors are opened at once. Reading from or writing to a closed stream still fails, but messages that
nobody can read are dropped.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end."""

SAME_SIGNAL_SECONDS = 1.0
"""Seconds in which further signals are the same wish: a terminal and timeout may both send one, and what is being
removed after the first must not be left because of the second."""

RETRY_SECONDS = 0.02
"""Seconds after which an exception is raised again that came where Python drops exceptions."""


class _Received:
    number: int | None = None
    at = 0.0


_received = _Received()
_installed: list[int] = []


def received() -> int | None:
    """Return the signal that asked this process to end; None if there was none."""
    return _received.number


def quit_at_once() -> None:
    """End the process at a signal without cleanup: during startup, and after the work."""
    _installed[:] = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in _installed:
        signal.signal(number, _quit)


def raise_on_signal() -> None:
    """Raise KeyboardInterrupt when a signal comes; nothing where `quit_at_once` was not called, as in tests."""
    for number in _installed:
        signal.signal(number, _raise)
    if _installed:
        sys.unraisablehook = _raise_dropped
        signal.signal(signal.SIGALRM, signal.default_int_handler)


def call_on_signal(callback: Callable[[], None]) -> None:
    """Call a function at the first signal; one more than `SAME_SIGNAL_SECONDS` later ends the process."""

    def handle(number: int, frame: object) -> None:
        now = time.monotonic()
        if _received.number is None:
            _received.number, _received.at = number, now
            callback()
        elif now - _received.at >= SAME_SIGNAL_SECONDS:
            _quit(number, frame)

    for number in _installed:
        signal.signal(number, handle)


def only_note() -> None:
    """Only record signals while a command cleans up; they decide its exit code."""
    call_on_signal(lambda: None)
    if _installed:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


def stop_listening() -> None:
    """End at once again: what follows has nothing to clean up."""
    for number in _installed:
        signal.signal(number, _quit)


def _quit(number: int, frame: object) -> None:
    os._exit(128 + number)


def _raise(number: int, frame: object) -> None:
    now = time.monotonic()
    if _received.number is not None and now - _received.at < SAME_SIGNAL_SECONDS:
        return
    _received.number, _received.at = _received.number or number, now
    raise KeyboardInterrupt


def _raise_dropped(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise an interruption again that came in a destructor or a callback, where Python would print and forget it."""
    if unraisable.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)
    elif unraisable.exc_type is not MemoryError:
        sys.__unraisablehook__(unraisable)


class _Forgiving(io.FileIO):
    """A file that drops what it cannot write."""

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or len(data)
        return len(data)


def reopen_closed_streams() -> None:
    """Open those of the descriptors 0, 1 and 2 that are closed, and let messages that nobody can take be dropped."""
    # the wrong way round: to read from 0 and to write to 1 fails; what is written to 2 goes nowhere
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # it lives as long as the process
    sys.stderr = messages_to(2)


def messages_to(number: int) -> TextIO:
    """Return a stream for messages, which drops what a descriptor does not take."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    raw = io.BufferedWriter(_Forgiving(number, "w", closefd=False))
    return io.TextIOWrapper(raw, encoding, "backslashreplace", line_buffering=True)


def flush_stdout() -> OSError | None:
    """Write out what stdout holds; return why that fails. Python then has nothing left to write when it ends."""
    try:
        sys.stdout.flush()
    except OSError as error:
        drop_stdout()
        return error
    except ValueError:  # somebody closed it
        pass
    return None


def drop_stdout() -> None:
    """Discard all further output to stdout."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
