"""What the command line shares: messages, progress, and how a command ends."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from swsearch.errors import MemoryLimitError, OptionError, OutputError, SwsearchError, SwsearchWarning, printable

Command = TypeVar("Command", bound=Callable[..., Any])

SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

PROGRESS_AFTER = 2.0
"""Seconds of work before a progress bar appears."""


class Interrupted(SwsearchError):  # noqa: N818  # it is no error
    """Ctrl-C: the command ends with exit code 130 and no message."""

    exit_code = 130


class Terminated(Interrupted):
    """SIGTERM: the command cleans up and ends with exit code 143 and no message."""

    exit_code = 143


class PipeClosed(SwsearchError):  # noqa: N818
    """Whoever read our output has gone, as ``head`` does: a quiet and successful end."""

    exit_code = 0


def command(function: Command) -> Command:
    """Turn what ends a command early into errors with an exit code."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            with warnings_said():
                result = function(*arguments, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise Interrupted() from None
        except BrokenPipeError:
            raise PipeClosed() from None
        except MemoryLimitError:
            raise
        except MemoryError:
            raise MemoryLimitError("out of memory; use fewer threads, or a database instead of FASTA") from None
        except OSError as error:
            where = error.filename or "stdout"
            raise OutputError(f"{where}: {error.strerror or error}; the output is not complete") from error
        return result

    return run  # type: ignore[return-value]


def terminate(number: int, frame: object) -> None:
    """Handle SIGTERM by ending the command as an exception does."""
    raise Terminated()


def finish(error: SwsearchError) -> int:
    """Print an error the way the command line does, and return its exit code."""
    if isinstance(error, PipeClosed):
        # python flushes stdout once more when it ends, which would print an error
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    elif not isinstance(error, Interrupted):
        say(f"swsearch: error: {error}", keep="\n")  # of errors only those of an engine have several lines
    return error.exit_code


def say(text: str, keep: str = "") -> None:
    """Print a message on stderr, one line whatever names stand in it; data go to stdout alone."""
    with contextlib.suppress(BrokenPipeError):
        print(printable(text, keep=keep), file=sys.stderr, flush=True)


@contextlib.contextmanager
def warnings_said() -> Iterator[None]:
    """Say warnings of swsearch as messages, however Python was told to treat warnings."""
    before: Any = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, SwsearchWarning):
            say(f"swsearch: warning: {message}")
        else:
            before(message, category, *place)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SwsearchWarning)
        warnings.showwarning = show  # type: ignore[assignment]  # of its arguments two matter
        yield


def parse_size(text: str, option: str) -> int:
    """Read a size such as ``512M`` or ``2G``, in bytes.

    Raises
    ------
    OptionError
        If it is no size.
    """
    trimmed = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = trimmed[-1:] if trimmed[-1:] in SIZE_UNITS else ""
    number = trimmed.removesuffix(unit)
    try:
        size = int(float(number) * SIZE_UNITS[unit])
    except ValueError:
        size = 0
    if size <= 0:
        raise OptionError(option, text, "a size such as 512M or 2G")
    return size


class ProgressBar:
    """A bar on stderr for work that takes long, if a person is looking.

    Parameters
    ----------
    label : str
        What is going on.
    total : float or None
        Amount of work, in any unit; None if unknown.
    quiet : bool
        Never show it.
    """

    def __init__(self, label: str, total: float | None, quiet: bool = False) -> None:
        self._label, self._total, self._done = label, total, 0.0
        self._wanted = not quiet and sys.stderr.isatty()
        self._begun = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def advance(self, amount: float) -> None:
        """Add to the work that is done."""
        self._done += amount
        if not self._wanted:
            return
        if self._bar is None:
            if time.monotonic() - self._begun < PROGRESS_AFTER:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=self._total)
        self._bar.update(self._task, completed=self._done)

    def move_to(self, done: float, total: float | None = None) -> None:
        """Say how much is done in all, and how much there is."""
        self._total = total
        self.advance(done - self._done)
        if self._bar is not None:
            self._bar.update(self._task, total=total)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
