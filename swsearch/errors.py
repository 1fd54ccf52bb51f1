"""Errors of swsearch, their exit codes, and checks of numbers.

Codes 0 to 6 and 255 are those of BLAST+; 7 is swsearch's own. A message says what was wrong, where, what was expected
and what to do about it. Numbers of options are checked here too, in one way for all of them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from numbers import Number
from pathlib import PurePath
from typing import Any

# C0 and C1 controls (ESC, tab, line ends ...), Unicode's own line ends, what turns the direction of the text around
# it, and halves of surrogate pairs, which stand for bytes of file names that were not UTF-8
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, instead: str | None = None, keep: str = "") -> str:
    """Return a text without what would act on a terminal or forge a line; other text is returned as it is.

    Parameters
    ----------
    text : str
        Whatever a file name, a header or an option holds.
    instead : str, optional
        What stands for each such character; by default its escape, as in Python's strings.
    keep : str, optional
        Characters that are kept all the same.
    """
    if text.isascii() and text.isprintable():
        return text

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        return character if character in keep else ascii(character)[1:-1] if instead is None else instead

    return _UNPRINTABLE.sub(shown, text)


MAX_WORD_LENGTH = 255
"""Most characters of a name that a message repeats; file systems take no longer ones, folders not counted."""

_TOO_LONG = re.compile(rf"([^\s/:]{{60}})[^\s/:]{{{MAX_WORD_LENGTH - 59},}}")


class SwsearchWarning(UserWarning):
    """A likely mistake, which does not stop the run."""


class SwsearchError(Exception):
    """Base of every error that swsearch raises on purpose; its message is one line that is fit to print.

    A word of more than `MAX_WORD_LENGTH` characters, which no file's name can be, is cut to its beginning.
    """

    exit_code = 255
    _keep = ""
    """Characters that a message may hold though they are no text."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*(self._fit(part) if isinstance(part, str) else part for part in parts))

    @classmethod
    def _fit(cls, part: str) -> str:
        return _TOO_LONG.sub(r"\1...", printable(part, keep=cls._keep))

    def __reduce__(self) -> Any:
        return _unpickle_error, (type(self), self.args, vars(self))


def _unpickle_error(kind: type[SwsearchError], arguments: tuple[object, ...], state: dict[str, Any]) -> SwsearchError:
    """Make an error as it was pickled; constructors take other arguments than those that errors keep."""
    error: SwsearchError = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(state)
    return error


class InputError(SwsearchError, ValueError):
    """A bad query, sequence file, option or argument."""

    exit_code = 1


MAX_SHOWN_LENGTH = 80
"""Most characters of a value that a message shows."""


def format_count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as ``1,200 pairs``; the plural is ``ones`` or `many`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_value(value: object) -> str:
    """Return a value as a message shows it: whole if it is short, else a string's beginning or the kind of object."""
    if isinstance(value, str):
        return repr(value) if len(value) <= MAX_SHOWN_LENGTH else f"{value[:MAX_SHOWN_LENGTH]!r}..."
    short = not isinstance(value, (bytes, tuple, list)) or len(value) <= MAX_SHOWN_LENGTH
    if value is None or (short and isinstance(value, (Number, bytes, tuple, list, PurePath))):
        with suppress(ValueError):  # an integer of thousands of digits
            text = repr(value)
            if len(text) <= MAX_SHOWN_LENGTH and "\n" not in text:
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
        super().__init__(f"{name}: got {format_value(value)}, expected {expected}{tail}")


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


class OtherCheckpointError(InputError):
    """A checkpoint folder of another search, or with other files."""


class DatabaseError(SwsearchError):
    """A database file that is missing, damaged, foreign or too new."""

    exit_code = 2


class DatabaseDamageError(DatabaseError):
    """A damaged database file.

    Parameters
    ----------
    path : str
        The database.
    problems : iterable of str
        Every place found broken.
    """

    def __init__(self, path: str, problems: Iterable[str]) -> None:
        self.path, self.problems = path, list(problems)
        first_problems = "; ".join(self.problems[:5])
        more = f"; and {len(self.problems) - 5} more" if len(self.problems) > 5 else ""
        super().__init__(f"{path}: damaged: {first_problems}{more}; restore the file or build it again")


class EngineError(SwsearchError):
    """An engine failed."""

    exit_code = 3
    _keep = "\n"  # a compiler's report has several lines


class ClusterError(EngineError):
    """A cluster, or its workers, cannot do the work."""


class ServerError(EngineError):
    """A server that cannot be reached, fails a request, or answers unexpectedly."""


class MemoryLimitError(SwsearchError, MemoryError):
    """The work does not fit the memory that was allowed."""

    exit_code = 4


class OutputError(SwsearchError):
    """Output that cannot be written."""

    exit_code = 6


class GpuUnavailableError(EngineError):
    """A requested GPU cannot be used."""

    exit_code = 7


def check_integer(name: str, value: Any, minimum: int, maximum: int, expected: str = "") -> int:
    """Return an option's value as an int.

    Parameters
    ----------
    name : str
        The option.
    value : int, integer of numpy, or float without a fraction
        What was given.
    minimum, maximum : int
        Range, both included.
    expected : str, optional
        For the message.

    Raises
    ------
    OptionError
        If it is something else, such as a bool or a string, or not in the range.
    """
    number = _as_whole(value)
    if number is None or not minimum <= number <= maximum:
        range_text = (
            f"integer from {minimum:,} to {maximum:,}"
            if number is None or number > maximum
            else f"integer >= {minimum:,}"
        )
        raise OptionError(name, value, expected or f"an {range_text}")
    return number


def check_finite(name: str, value: Any, expected: str = "a number") -> float:
    """Return an option's value as a finite float.

    Parameters
    ----------
    name : str
        The option.
    value : float, int, or a number of numpy
        What was given.
    expected : str, optional
        For the message.

    Raises
    ------
    OptionError
        If it is something else, such as a bool or a string, or not finite.
    """
    try:
        number = math.nan if _is_no_number(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(name, value, expected)
    return number


def _is_no_number(value: Any) -> bool:
    """Return whether a value only looks like a number: a bool, of numpy too, or text."""
    return isinstance(value, (bool, str, bytes, bytearray)) or type(value).__name__ in ("bool", "bool_", "ndarray")


def _as_whole(value: Any) -> int | None:
    if _is_no_number(value):
        return None
    try:
        return operator.index(value)
    except TypeError:
        pass
    try:
        return int(value) if int(value) == value else None
    except (TypeError, ValueError, OverflowError):
        return None
