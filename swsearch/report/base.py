"""The interface of writers: ``begin`` for the run, ``write`` for each result, ``end``."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import IO, Any, ClassVar, Generic, TypeVar, get_args

from swsearch.errors import InputError, OptionError
from swsearch.results import SearchResult
from swsearch.run_info import Program, RunInfo

ONE_QUERY = "use swsearch msa for one file per query, or --outfmt stockholm for all queries"
"""What to use for several queries, if a file holds one."""

RunT = TypeVar("RunT")
ItemT = TypeVar("ItemT")


class StreamWriter(ABC, Generic[RunT, ItemT]):
    """Writes the results of a run to a stream in one format: ``begin``, ``write`` for each result, ``end``.

    A stream of text may be a terminal. So no text from outside (headers, names of files, matrices and taxa, options)
    reaches it with a character that `swsearch.errors.printable` replaces: controls such as ESC, line ends, and
    characters that turn the direction of text. `swsearch.report.headers` replaces them by blanks; JSON and TOML may
    have them as ASCII escapes. Line feeds and tabs are a format's own structure. A `BinaryWriter` keeps headers as
    they are: the command line refuses to write it to a terminal. ``tests/report/test_escapes.py`` checks all
    formats.

    Parameters
    ----------
    stream : file object
        Where to write; neither flushed nor closed. Lines of text end in a bare line feed.
    """

    needs_alignments: bool = True
    """Whether results must have alignments."""

    def __init__(self, stream: IO[Any]) -> None:
        self._stream = stream

    def begin(self, run: RunT) -> None:
        """Keep the run, and write what precedes the first result."""
        self._run = run

    @abstractmethod
    def write(self, result: ItemT) -> None:
        """Write the next result."""

    def end(self) -> None:  # most formats have nothing there
        """Write what follows the last result."""

    def discard(self) -> None:  # most writers hold nothing
        """Release everything but the stream; called last, also after a failure."""

    def _write_lines(self, *lines: str) -> None:
        self._stream.writelines(f"{line}\n" for line in lines)


class Writer(StreamWriter[RunInfo, SearchResult]):
    """Writes the results of a search in one format; see `StreamWriter`."""

    needs_distribution: bool = False
    """Whether results must have the scores of the whole database (`SearchOptions.distribution`)."""
    needs_checksums: bool = False
    """Whether the run must have the checksums of its files (`swsearch.run_info`)."""
    binary: ClassVar[bool] = False
    """Whether the stream takes bytes."""
    is_single_query: ClassVar[bool] = False
    """Whether a file holds the result of only one query."""
    has_columns: ClassVar[bool] = False
    """Whether names of columns may follow the format's name."""
    package: ClassVar[str] = ""
    """Optional package that the format needs."""
    takes_header: ClassVar[bool] = False
    """Whether `has_header` may be set."""
    has_header: bool = False
    """Whether the first line names the columns."""
    programs: ClassVar[tuple[Program, ...]] = get_args(Program)
    """Searches whose results the format can hold."""
    unsupported_remedy: ClassVar[str] = ""
    """What to use for results of other searches."""

    @classmethod
    def create(cls, stream: IO[Any], columns: list[str], outfmt: str) -> Writer:
        """Make a writer; raise `OptionError` if ``--outfmt`` names a column that does not exist."""
        return cls(stream)

    @classmethod
    def check_queries(cls, n_queries: int, what: str) -> None:
        """Raise `InputError` if a file cannot hold so many queries; messages call the format ``what``."""
        if cls.is_single_query and n_queries > 1:
            raise InputError(f"{what}: got {n_queries:,} queries, expected one; {ONE_QUERY}")

    @classmethod
    def check_program(cls, program: Program, what: str) -> None:
        """Raise `InputError` if the format cannot hold results of a search, likewise."""
        if program not in cls.programs:
            raise InputError(
                f"{what}: got results of translated DNA ({program}), expected {' or '.join(cls.programs)}; "
                f"{cls.unsupported_remedy}"
            )


class BinaryWriter(Writer):
    """Base of formats whose stream takes bytes."""

    binary: ClassVar[bool] = True


def did_you_mean(name: str, known: Iterable[str], count: int) -> str:
    """Return the remedy for an unknown name: at most ``count`` similar names; empty if there is none."""
    close = difflib.get_close_matches(name, list(known), n=count)
    return f"did you mean {' or '.join(close)}?" if close else ""


def unknown_column(name: str, columns: Iterable[str], outfmt: str) -> OptionError:
    """Return the error for a column that ``--outfmt`` names and a format does not have."""
    known = list(columns)
    expected = f"columns out of {', '.join(known)}, not {name!r}"
    return OptionError("outfmt", outfmt, expected, did_you_mean(name.lower(), known, 3))
