"""Results as bytes, a piece at a time as they are taken: memory stays flat, and who takes no more ends the work."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

from swsearch import report
from swsearch.errors import InputError, OptionError
from swsearch.report.a3m import ONE_QUERY
from swsearch.report.base import Writer
from swsearch.report.html import HtmlWriter, Link
from swsearch.results import SearchResult
from swsearch.run_info import Program, RunInfo
from swsearch.server.problems import ServerProblem

PIECE_BYTES = 1 << 16
"""Characters or bytes that are passed on together, and those of the query that filled them."""

OWN_FORMAT, OWN_TYPE = "swsearch", "application/x-swsearch"
"""The format that swsearch reads itself, and what HTTP calls it."""

RESIDUES_A_LINE = 60
"""Of FASTA."""


class Pieces(Iterator[bytes]):
    """Bytes as they are made, once.

    Parameters
    ----------
    made : generator of bytes, or bytes
        Makes them, and is closed with this; or all of them.
    closing : ExitStack, optional
        What is let go of at the end, even if nothing was taken.
    """

    def __init__(self, made: Generator[bytes] | bytes, closing: ExitStack | None = None) -> None:
        self._made = (each for each in (made,)) if isinstance(made, bytes) else made
        self._closing = closing or ExitStack()
        self._guard = threading.RLock()
        self._is_aborted = False
        self.told: Callable[[Exception], Exception] = lambda error: error
        """Returns what to raise in place of an error."""

    def __next__(self) -> bytes:
        with self._guard:
            if self._is_aborted:
                raise ServerProblem("unavailable", "the server is ending; ask again when it was started")
            try:
                return next(self._made)
            except StopIteration:
                self.close()
                raise
            except Exception as error:
                self.close()
                raise self.told(error) from error

    def close(self) -> None:
        """End the work; any thread may call this, and waits for a piece that is being made."""
        with self._guard:
            self._made.close()
            self._closing.close()

    def abort(self) -> None:
        """Do the same, and let whoever takes another piece know that not all was made."""
        with self._guard:
            self._is_aborted = True
            self.close()

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True)
class Rendered:
    """Results in a format.

    Parameters
    ----------
    content_type : str
        As HTTP has it.
    file_name : str
        What to call it, of letters, digits, ``.``, ``-`` and ``_``.
    is_binary : bool
        Whether the format is no text; text is UTF-8.
    chunks : Pieces
        The bytes; closing it ends the work.
    """

    content_type: str
    file_name: str
    is_binary: bool
    chunks: Pieces

    def close(self) -> None:
        """End the work, whether or not all was taken."""
        self.chunks.close()

    def whole(self) -> bytes:
        """Return all that is left."""
        try:
            return b"".join(self.chunks)
        finally:
            self.close()


@dataclass(frozen=True)
class Format:
    """A format as it was asked for, checked before anything is searched.

    Parameters
    ----------
    outfmt : str
        As `swsearch.report.create_writer` takes it.
    bar : sequence of Link
        For the report of ``html``.
    subjects_url : str or None
        The same.

    Raises
    ------
    OptionError
        If there is no such format or column.
    """

    outfmt: str
    bar: Sequence[Link] = ()
    subjects_url: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.outfmt, str):
            raise OptionError("format", self.outfmt, "a format such as json")
        if not self.is_transfer:
            self.writer(io.StringIO())

    @property
    def is_transfer(self) -> bool:
        """Whether it is what swsearch itself reads; see `swsearch.remote.transfer`."""
        return self.outfmt == OWN_FORMAT

    @property
    def needs_alignments(self) -> bool:
        """Whether it shows alignments."""
        return self.writer(io.StringIO()).needs_alignments

    @property
    def needs_distribution(self) -> bool:
        """Whether it shows how the whole database scores."""
        return not self.is_transfer and self.output_format.writer.needs_distribution

    @property
    def output_format(self) -> report.OutputFormat:
        """Row of `swsearch.report.OUTPUT_FORMATS`."""
        return report.find_format(self.outfmt)

    def writer(self, stream: Any) -> Writer:
        """Make what writes it."""
        if self.output_format.key == "html" and (self.bar or self.subjects_url):
            return HtmlWriter(stream, bar=self.bar, subjects_url=self.subjects_url)
        return report.create_writer(self.outfmt, stream)

    def check(self, n_queries: int, program: Program) -> None:
        """Raise `InputError` if a file of this format cannot hold so many queries, or results of such a search."""
        if self.is_transfer:
            return
        key, writer = self.output_format.key, self.output_format.writer
        writer.check_program(program, f"format {key}")
        if writer.is_single_query and n_queries != 1:
            raise InputError(f"format {key}: got {n_queries:,} queries, expected one; {ONE_QUERY}")

    def rendered(self, name: str, pieces: Pieces) -> Rendered:
        """Return pieces of this format with what they are called."""
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "results"
        if self.is_transfer:
            return Rendered(OWN_TYPE, f"{stem}.swsearch", True, pieces)
        found = self.output_format
        return Rendered(found.content_type, found.file_name(stem), found.writer.binary, pieces)


class _Text:
    """What a writer writes, until it is taken: text as bytes, as in the files of the command line."""

    def __init__(self, binary: bool) -> None:
        self._bytes = io.BytesIO()
        self.stream: IO[Any] = self._bytes
        if not binary:
            self.stream = io.TextIOWrapper(self._bytes, "utf-8", "backslashreplace", newline="\n", write_through=True)

    def taken(self, least: int = 1) -> bytes:
        """Return what was written since, if that is so much; otherwise nothing."""
        if self._bytes.tell() < least:
            return b""
        found = self._bytes.getvalue()
        self._bytes.seek(0)
        self._bytes.truncate()
        return found


def written(wanted: Format, run: Callable[[], RunInfo], batches: Iterable[list[SearchResult]]) -> Generator[bytes]:
    """Write results in a format, and yield the bytes as they come.

    Parameters
    ----------
    wanted : Format
        Which.
    run : callable
        Returns what the search is, for the head of the report.
    batches : iterable of list of SearchResult
        Aligned, if the format takes that.
    """
    text = _Text(wanted.output_format.writer.binary)
    writer = wanted.writer(text.stream)
    try:
        found = run()
        writer.begin(found.with_checksums() if writer.needs_checksums else found)
        for batch in batches:
            for result in batch:
                writer.write(result)
                if piece := text.taken(PIECE_BYTES):
                    yield piece
        writer.end()
        if piece := text.taken():
            yield piece
    finally:
        writer.discard()


def fasta(header: bytes, letters: str) -> bytes:
    """Return a record of FASTA."""
    lines = [letters[at : at + RESIDUES_A_LINE] for at in range(0, len(letters), RESIDUES_A_LINE)]
    return b">" + header + b"\n" + "".join(f"{line}\n" for line in lines).encode("ascii")
