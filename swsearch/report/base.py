"""What every format is to a search job: a writer that is told of the run, of each result, and of the end."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import IO, Any, ClassVar, get_args

from swsearch.errors import InputError
from swsearch.results import SearchResult
from swsearch.run_info import Program, RunInfo


class Writer(ABC):
    """Writes results in one format; called as ``begin``, ``write`` for each query in turn, ``end``.

    A stream of text may be a terminal. So no text from outside (headers, names of files, matrices and taxa, options)
    reaches it with a character that `swsearch.errors.printable` replaces: controls such as ESC, line ends, and those
    that turn the direction of text. `swsearch.report.headers` puts a blank in their place; JSON and TOML may have
    them as ASCII escapes. Line feeds and tabs are a format's own structure. A `BinaryWriter` keeps headers as they
    were: the command line refuses to write it to a terminal. ``tests/report/test_escapes.py`` holds every format to
    this.

    Parameters
    ----------
    stream : file object
        Where to write text; neither flushed nor closed. Lines end in a bare line feed.

    Attributes
    ----------
    needs_alignments : bool
        False when what is written takes no alignments, so that a job need not find them.
    needs_distribution : bool
        True when results are to keep how the whole database scores (`SearchOptions.distribution`).
    needs_checksums : bool
        True when the run is to name the checksums of its files (`swsearch.run_info`).
    """

    needs_alignments: bool = True
    needs_distribution: bool = False
    needs_checksums: bool = False

    binary: ClassVar[bool] = False
    """Whether the stream takes bytes."""
    is_single_query: ClassVar[bool] = False
    """Whether a file holds one query's result, and more are refused."""
    has_columns: ClassVar[bool] = False
    """Whether names of columns may follow the format's name."""
    package: ClassVar[str] = ""
    """Name of the optional package that it needs."""
    takes_header: ClassVar[bool] = False
    """Whether a first line with the names of columns can be asked for, by `has_header`."""
    has_header: bool = False
    programs: ClassVar[tuple[Program, ...]] = get_args(Program)
    """The searches whose results it can hold."""
    unsupported_remedy: ClassVar[str] = ""
    """What to use for the results of other programs."""

    def __init__(self, stream: IO[Any]) -> None:
        self._stream = stream

    @classmethod
    def create(cls, stream: IO[Any], columns: list[str], outfmt: str) -> Writer:
        """Make a writer; raise `OptionError` if a column that ``--outfmt`` names does not exist."""
        return cls(stream)

    @classmethod
    def check_program(cls, program: Program, what: str) -> None:
        """Raise `InputError` if this cannot hold what such a search finds; ``what`` names the format in messages."""
        if program not in cls.programs:
            raise InputError(
                f"{what}: got results of translated DNA ({program}), expected {' or '.join(cls.programs)}; "
                f"{cls.unsupported_remedy}"
            )

    @abstractmethod
    def begin(self, run: RunInfo) -> None:
        """Write what stands before the first result."""

    @abstractmethod
    def write(self, result: SearchResult) -> None:
        """Write the result of one query."""

    @abstractmethod
    def end(self) -> None:
        """Write what follows the last result."""

    def discard(self) -> None:  # noqa: B027  # most writers hold nothing
        """Let go of what is held besides the stream; called last, after a failure too."""


class BinaryWriter(Writer):
    """Base of formats whose stream takes bytes."""

    binary: ClassVar[bool] = True


def did_you_mean(name: str, known: Iterable[str], most: int) -> str:
    """Return the remedy for an unknown name: the names that are like it, at most so many; empty if none is."""
    close = difflib.get_close_matches(name, list(known), n=most)
    return f"did you mean {' or '.join(close)}?" if close else ""
