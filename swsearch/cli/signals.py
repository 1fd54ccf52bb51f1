"""Signals that end a command: at once while it starts, later as an exception, so that files are removed.

A signal that is ignored stays ignored: so it is with SIGINT in a job in the background, and with SIGHUP under nohup.
Little is imported here, because this is the first thing that a process does.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end."""

SAME_WISH = 1.0
"""Seconds in which further signals are the same wish: a terminal and timeout may both send one, and what is being
removed after the first must not be left because of the second."""

AGAIN = 0.02
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
    """End the process when a signal comes, and clean up nothing: while it starts, and when its work is done."""
    _installed[:] = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in _installed:
        signal.signal(number, _quit)


def listen() -> None:
    """Raise KeyboardInterrupt when a signal comes; nothing where `quit_at_once` was not called, as in tests."""
    for number in _installed:
        signal.signal(number, _raise)
    if _installed:
        sys.unraisablehook = _dropped
        signal.signal(signal.SIGALRM, signal.default_int_handler)


def pass_on(hear: Callable[[], None]) -> None:
    """Call a function at the first signal, from which the command then ends itself; a second wish ends it at once."""

    def handle(number: int, frame: object) -> None:
        now = time.monotonic()
        if _received.number is None:
            _received.number, _received.at = number, now
            hear()
        elif now - _received.at >= SAME_WISH:
            _quit(number, frame)

    for number in _installed:
        signal.signal(number, handle)


def only_note() -> None:
    """Let a command that is ending clean up whatever comes: a signal decides its exit code alone."""
    pass_on(lambda: None)
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
    if _received.number is not None and now - _received.at < SAME_WISH:
        return
    _received.number, _received.at = _received.number or number, now
    raise KeyboardInterrupt


def _dropped(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise an interruption again that came in a destructor or a callback, where Python would print and forget it."""
    if unraisable.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    elif unraisable.exc_type is not MemoryError:
        sys.__unraisablehook__(unraisable)
