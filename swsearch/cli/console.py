"""Messages and exit codes, shared by all commands."""

from __future__ import annotations

import contextlib
import errno
import functools
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from swsearch.cli import memory_limit, signals
from swsearch.errors import DatabaseError, MemoryLimitError, OutputError, SwsearchError, SwsearchWarning, printable
from swsearch.processors import useful_thread_count

Command = TypeVar("Command", bound=Callable[..., Any])


class Interrupted(SwsearchError):  # noqa: N818  # it is no error
    """Ctrl-C or another signal: the command cleans up and ends with exit code 128 + its number and no message."""

    exit_code = 128 + signal.SIGINT

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.exit_code = 128 + number


class PipeClosed(SwsearchError):  # noqa: N818
    """The reader of our output has gone, e.g. ``head``: the command ends quietly with success."""

    exit_code = 0


def command(function: Command) -> Command:
    """Turn what ends a command early into errors with an exit code."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            signals.raise_on_signal()
            with print_warnings():
                result = function(*arguments, **options)
            sys.stdout.flush()
        except BaseException as error:
            meant = to_cli_error(error)
            if meant is error:
                raise
            raise meant from None
        return result

    return run  # type: ignore[return-value]


def to_cli_error(error: BaseException) -> BaseException:
    """Return what an exception means for a command: an error with an exit code, or itself."""
    number = signals.received()
    if number is not None or isinstance(error, KeyboardInterrupt):
        # whatever it is: an import that was interrupted fails in many ways
        return Interrupted(number or signal.SIGINT)
    if is_out_of_memory(error):
        return MemoryLimitError(memory_limit.out_of_memory_message())
    if isinstance(error, DatabaseError) and memory_limit.hit_memory_limit():
        # HDF5 says that it cannot open an object, whatever it cannot do for it
        return MemoryLimitError(f"{memory_limit.out_of_memory_message()} (it ended with: {error})")
    if isinstance(error, BrokenPipeError):
        return PipeClosed()
    if isinstance(error, OSError):
        what = "is closed" if error.errno == errno.EBADF else error.strerror or error
        return OutputError(f"{error.filename or 'stdout'}: {what}; the output is not complete")
    return error


_NO_MEMORY = (
    "cannot allocate memory",
    "not enough memory",
    "failed to map segment",
    "memory allocation failed",
    "bad_alloc",
    "badalloc",
    "can't start new thread",
)
"""Parts of error messages of libraries when the system has no memory."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an exception, or its cause, means that the system has no memory.

    A `MemoryLimitError` does not count, because its message is more precise.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError):
            return not isinstance(error, MemoryLimitError)
        if not isinstance(error, SwsearchError) and any(sign in str(error).lower() for sign in _NO_MEMORY):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def print_error(error: SwsearchError) -> int:
    """Print an error the way the command line does, and return its exit code."""
    if isinstance(error, PipeClosed):
        signals.drop_stdout()  # python writes to stdout once more when it ends, which would print an error
    elif not isinstance(error, Interrupted):
        print_message(f"error: {error}", keep="\n")  # of errors only those of an engine have several lines
    memory_limit.report_error(error.exit_code)
    return error.exit_code


def print_message(text: str, keep: str = "", prefix: str = "swsearch: ") -> None:
    """Print a message on stderr, one line whatever names stand in it; data go to stdout alone."""
    if sys.stderr is not None:  # print would take stdout instead
        with contextlib.suppress(OSError, ValueError):
            print(prefix + printable(text, keep=keep), file=sys.stderr, flush=True)


def size_of(n_subjects: int, n_residues: int, is_dna: bool = False) -> str:
    """Return the size of a database for a message."""
    subjects, residues = ("records of DNA", "nucleotides") if is_dna else ("subjects", "residues")
    return f"{n_subjects:,} {subjects}, {n_residues:,} {residues}"


@contextlib.contextmanager
def print_warnings() -> Iterator[None]:
    """Print warnings of swsearch as messages, whatever Python's warning filters are."""
    before: Any = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, SwsearchWarning):
            print_message(f"warning: {message}")
        else:
            before(message, category, *place)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SwsearchWarning)
        warnings.showwarning = show  # type: ignore[assignment]  # of its arguments two matter
        yield


def limit_threads(threads: int | None, quiet: bool = False) -> int | None:
    """Return a number of threads that was asked for, less where more than there are processors would be of no use."""
    if threads is None or threads < 1:
        return threads  # whoever takes it says what is wrong with it
    helping = useful_thread_count(threads)
    if helping < threads and not quiet:
        print_message(f"--threads {threads}: {helping} used, one for each processor that this process may run on")
    return helping
