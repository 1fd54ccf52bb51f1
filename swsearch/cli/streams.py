"""The three standard streams, whatever a process was started with: open, closed, or full.

A descriptor that is closed is the next one that is opened: messages would be written into a database or an output, as
if it were stderr. So each is taken at once. Reading from or writing to a stream that was closed still fails. Messages
are different: where nobody can read them, they are dropped, and the command does its work.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, TextIO


class _Forgiving(io.FileIO):
    """A file that drops what it cannot write."""

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or len(data)
        return len(data)


def repair() -> None:
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
    """Let what is still written to stdout go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
