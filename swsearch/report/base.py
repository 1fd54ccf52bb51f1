"""Interface of report writers, and the text of numbers and JSON.

A writer gets ``begin`` for the run, ``write`` for each result, and ``end``. E-values, bit scores and percentages are
printed by the rules of NCBI's align_format, read off 14,680 lines of blastp 2.12: E-values from 1e-323 to 1e11, bit
scores from 7.7 to 1e5. JSON is built from columns, many objects at a time, in ASCII without blanks, as `json` writes
it. A column is a sequence of integers, or of texts that are JSON already.
"""

from __future__ import annotations

import difflib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii as string
from typing import IO, Any, ClassVar, Generic, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import InputError, OptionError
from swsearch.extension import load
from swsearch.results import SearchResult
from swsearch.results.fields import FieldType
from swsearch.run_info import Program, RunInfo

ONE_QUERY = "use swsearch msa for one file per query, or --outfmt stockholm for all queries"
"""Remedy for several queries in a format that holds one."""

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
        """Write the end of the report."""

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
    """Remedy for results of other searches."""

    @classmethod
    def create(cls, stream: IO[Any], columns: list[str], outfmt: str) -> Writer:
        """Make a writer; raise `OptionError` if ``--outfmt`` names a column that does not exist."""
        return cls(stream)

    @classmethod
    def check_queries(cls, n_queries: int, what: str) -> None:
        """Raise `InputError` if a file cannot hold ``n_queries`` queries; messages call the format ``what``."""
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
    names = list(columns)
    expected = f"columns out of {', '.join(names)}, not {name!r}"
    return OptionError("outfmt", outfmt, expected, did_you_mean(name.lower(), names, 3))


NO_NUMBER = "nan"
"""Table entry for a missing E-value or bit score, which every reader of floats accepts."""

MISSING = "N/A"
"""Text of an empty value, as in blastp's tables; an empty column would confuse readers."""


def finite(value: float | None) -> float | None:
    """Return a float that JSON can hold, or None: JSON knows no NaN and no infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


# columns


Form = FieldType | Literal["evalue", "short_evalue", "bit_score", ".1f", ".2f", ".3f"]
"""Form of values: texts, integers, or numbers as ``cpu/text/table.hpp`` names them; nan where there is none."""

Values = Sequence[str] | IntArray | FloatArray
"""A column, shape (n,): texts, int64 or float64."""


def write_table(columns: Iterable[tuple[Values, Form]], separator: str = "\t") -> str:
    """Return the lines of a table with the values of each column; an empty text is `MISSING`."""
    cells = [(values if form == "string" else np.ascontiguousarray(values), form) for values, form in columns]
    text: str = load().write_table(cells, separator, MISSING)
    return text


def number_texts(values: FloatArray, form: Form) -> list[str]:
    """Return numbers, shape (n,), in a form."""
    return write_table([(values, form)]).splitlines()


def percentages(parts: IntArray, wholes: IntArray) -> FloatArray:
    """Return percentages, shape (n,), float64; 0 of nothing is 0."""
    return 100.0 * parts / np.maximum(wholes, 1)


def whole_percentages(parts: IntArray, wholes: IntArray) -> IntArray:
    """Return percentages, shape (n,), int64, as the pairwise report prints them.

    They are rounded half up, but 100 only where all is meant; 0 of nothing is 0.
    """
    rounded = (200 * parts + wholes) // np.maximum(2 * wholes, 1)
    return np.where((rounded == 100) & (parts < wholes), 99, np.where(wholes == 0, 0, rounded))


_HITS = '"hits":[]'
"""Place of the hits in the text of an object without hits. No JSON string holds it, because quotes are escaped."""


def encode(value: object) -> str:
    """Return any value as JSON."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def strings(texts: Iterable[str]) -> list[str]:
    """Return texts as JSON."""
    return list(map(string, texts))


def printable(texts: Iterable[str]) -> list[str]:
    """Return printable ASCII as JSON, such as rows of alignments, which have a backslash for a frameshift."""
    return [string(text) if "\\" in text or '"' in text else f'"{text}"' for text in texts]


def floats(values: FloatArray) -> list[str]:
    """Return numbers, shape (n,), as JSON; null for NaN and infinity."""
    finite = np.isfinite(values)
    if not finite.any():
        return ["null"] * len(values)
    texts = list(map(repr, values.tolist()))
    for place in np.flatnonzero(~finite).tolist():
        texts[place] = "null"
    return texts


def lists(of_each: Iterable[Iterable[str]]) -> list[str]:
    """Return lists of JSON as JSON."""
    return [f"[{','.join(each)}]" for each in of_each]


def objects(
    columns: Mapping[str, Sequence[str | int]], absent: Mapping[str, npt.NDArray[np.bool_]] | None = None
) -> list[str]:
    """Return an object for each row of some columns.

    Parameters
    ----------
    absent : dict of str to ndarray, shape (n,), bool, optional
        Which rows do not have a key.
    """
    pieces = {key: f",{string(key).replace('%', '%%')}:%s" for key in columns}
    values = dict(columns)
    for key, missing in (absent or {}).items():
        if missing.all():
            del pieces[key], values[key]
        elif missing.any():
            pieces[key] = "%s"
            of_key = zip(columns[key], missing.tolist(), strict=True)
            values[key] = ["" if is_missing else f",{string(key)}:{value}" for value, is_missing in of_key]
    template = "{" + "".join(pieces.values())[1:] + "}"  # the first key is never absent
    return [template % row for row in zip(*values.values(), strict=True)]


def with_hits(value: Mapping[str, Any], hits: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the parts of an object whose key ``hits``, somewhere in it, has an empty list, with hits in that list.

    Parameters
    ----------
    hits : iterable of sequence of str
        Objects as JSON, some at a time, none of them empty.
    """
    before, empty_list, after = encode(value).partition(_HITS)
    assert empty_list, "hits belong in it"
    yield before + _HITS[:-1]
    comma = ""
    for some in hits:
        yield comma + ",".join(some)
        comma = ","
    yield "]" + after
