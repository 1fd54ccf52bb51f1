"""The errors that swsearch raises; each knows the exit code that the command line ends with.

Codes 0 to 6 and 255 are those of BLAST+; 7 is ours. A message says what was wrong, where, what was expected and
what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from numbers import Number
from pathlib import PurePath


class SwsearchError(Exception):
    """Base of every error that swsearch raises on purpose."""

    exit_code = 255


class InputError(SwsearchError, ValueError):
    """A bad query, sequence file, option or argument."""

    exit_code = 1


SHOWN = 80
"""Most characters of a value that a message shows."""


def shown(value: object) -> str:
    """Return a value as a message shows it: whole if it is short, else a string's beginning or the kind of object."""
    if isinstance(value, str):
        return repr(value) if len(value) <= SHOWN else f"{value[:SHOWN]!r}..."
    short = not isinstance(value, (bytes, tuple, list)) or len(value) <= SHOWN
    if value is None or (short and isinstance(value, (Number, bytes, tuple, list, PurePath))):
        with suppress(ValueError):  # an integer of thousands of digits
            text = repr(value)
            if len(text) <= SHOWN and "\n" not in text:
                return text
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOaeio' or name == 'ndarray' else 'a'} {name}"


class OptionError(InputError):
    """An option or argument with a value that cannot be used.

    Parameters
    ----------
    name : str
        The option or argument, as the user wrote it.
    value : object
        What was given.
    expected : str
        What would have been accepted.
    remedy : str, optional
        What to do about it, when ``expected`` does not say it already.
    """

    def __init__(self, name: str, value: object, expected: str, remedy: str = "") -> None:
        self.name, self.value, self.expected, self.remedy = name, value, expected, remedy
        tail = f"; {remedy}" if remedy else ""
        super().__init__(f"{name}: got {shown(value)}, expected {expected}{tail}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise `OptionError` unless an option's value is one of the words that it takes."""
    if not isinstance(value, str) or value not in choices:
        raise OptionError(name, value, f"one of {', '.join(choices)}")


def check_flag(name: str, value: object) -> None:
    """Raise `OptionError` unless an option's value is True or False, of numpy too."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise OptionError(name, value, "True or False")


class SequenceError(InputError):
    """A sequence or sequence file that cannot be read.

    Parameters
    ----------
    source : str
        The file, or ``<stdin>``, or a word for where the sequence came from.
    problem : str
        What is wrong, what was expected and the remedy.
    record : str, optional
        Identifier of the record.
    line : int, optional
        Line in the source, counted from 1.
    """

    def __init__(self, source: str, problem: str, record: str | None = None, line: int | None = None) -> None:
        self.source, self.problem, self.record, self.line = source, problem, record, line
        place = source
        if record is not None:
            place += f": record '{record}'"
        if line is not None:
            place += f" line {line}" if record is not None else f": line {line}"
        super().__init__(f"{place}: {problem}")


class DatabaseError(SwsearchError):
    """A database file that is missing, damaged, foreign or too new."""

    exit_code = 2


class DatabaseDamageError(DatabaseError):
    """A database file whose content is not what was written.

    Parameters
    ----------
    path : str
        The database.
    problems : iterable of str
        Every place found broken.
    """

    def __init__(self, path: str, problems: Iterable[str]) -> None:
        self.path, self.problems = path, list(problems)
        shown = "; ".join(self.problems[:5])
        more = f"; and {len(self.problems) - 5} more" if len(self.problems) > 5 else ""
        super().__init__(f"{path}: damaged: {shown}{more}; restore the file or build it again")


class EngineError(SwsearchError):
    """An engine failed."""

    exit_code = 3


class MemoryLimitError(SwsearchError, MemoryError):
    """The work does not fit the memory that was allowed."""

    exit_code = 4


class OutputError(SwsearchError):
    """Output that cannot be written."""

    exit_code = 6


class GpuUnavailableError(EngineError):
    """The GPU was asked for and cannot be used."""

    exit_code = 7
