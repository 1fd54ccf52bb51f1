"""The reports of BLAST's URL API: which of ours each FORMAT_TYPE is, and what is around it for readers of NCBI's."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from swsearch.errors import OptionError

READY = "QBlastInfoBegin\n\tStatus=READY\nQBlastInfoEnd"
"""What readers of NCBI's pages look for."""

_TABLE = "std ppos"
"""The columns of NCBI's tables, which end with one more than blastp's."""

Chunks = Iterator[bytes]


@dataclass(frozen=True)
class BlastFormat:
    """A report as BLAST's URL API gives it.

    Parameters
    ----------
    outfmt : str
        That of ours, as ``--outfmt`` has it.
    content_type : str
        Of the answer; empty where it is our report's own.
    wrapped : callable
        Puts a report into what its readers expect; takes the RID, the number of queries and the report's bytes.
    what : str
        For people.
    """

    outfmt: str
    content_type: str
    wrapped: Callable[[str, int, Iterable[bytes]], Chunks]
    what: str


def _as_it_is(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Chunks:
    yield from chunks


def _preformatted(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Chunks:
    """Yield a text within the marks that clients cut it out of; it goes out as plain text, so nothing is escaped."""
    yield f"<p><!--\n{READY}\n--><p>\n<PRE>\n".encode()
    yield from chunks
    yield b"</PRE>\n"


def _commented(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Chunks:
    yield f"<!--\n{READY}\n-->\n".encode()
    yield from chunks


_STATUS = b"Status="


def _without_status(escaped: bytes) -> Callable[[str, int, Iterable[bytes]], Chunks]:
    """Return what hides ``Status=`` in headers: NCBIWWW.qblast takes any in a report for the search's, and waits."""

    def hidden(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Chunks:
        held = b""
        for chunk in chunks:
            found = (held + chunk).replace(_STATUS, escaped)
            held = found[1 - len(_STATUS) :]
            yield found[: len(found) - len(held)]
        yield held

    return hidden


def _zipped(rid: str, n_queries: int, chunks: Iterable[bytes]) -> Chunks:
    """Yield an archive of NCBI's JSON: a list of files, and one file for each query.

    Our report has a line for each query, with a comma at the end of all but one, between a first and a last line.
    """
    sink = _Sink()
    names = [f"{rid}_{number}.json" for number in range(1, n_queries + 1)]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            f"{rid}.json", json.dumps({"BlastJSON": [{"File": name} for name in names]}, indent=1) + "\n"
        )
        pieces = _pieces_of_lines(chunks)
        for _piece, is_end in pieces:  # the first line
            if is_end:
                break
        for name in names:
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(b'{"BlastOutput2":')
                held = b""
                for piece, is_end in pieces:
                    held += piece
                    if is_end:
                        file.write(held.removesuffix(b",") + b"}\n")
                        break
                    file.write(held[:-1])
                    held = held[-1:]
                    yield sink.taken()
        for _rest in pieces:
            pass
    yield sink.taken()


def _pieces_of_lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield parts of lines without their ends, and whether each is the last of its line."""
    for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield line, True
        if rest:
            yield rest, False


class _Sink(io.RawIOBase):
    """What an archive is written to that goes out as it is made."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: object) -> int:
        data = bytes(part)  # type: ignore[call-overload]  # what zipfile writes is bytes
        self._parts.append(data)
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        found, self._parts = b"".join(self._parts), []
        return found


_PLAIN = "text/plain; charset=utf-8"

_PAIRWISE = BlastFormat("0", _PLAIN, _preformatted, "blastp's report for people, between `<PRE>` and `</PRE>`")
_TABULAR = BlastFormat(
    f"7 {_TABLE}", _PLAIN, _preformatted, "a table with comment lines, as above; after blastp's columns % positives"
)

BLAST_FORMATS: Mapping[str, BlastFormat] = {
    "HTML": BlastFormat("html", "", _commented, "this server's page of results; the default"),
    "Text": _PAIRWISE,
    "Tabular": _TABULAR,
    "CSV": BlastFormat(f"10 {_TABLE}", "", _as_it_is, "the same table with commas, nothing else"),
    "XML": BlastFormat("5", "", _without_status(b"Status&#61;"), "BLAST XML"),
    "JSON2": BlastFormat(
        "15", "application/zip", _zipped, "BLAST JSON, zipped: a list of files, and one for each query"
    ),
    "JSON2_S": BlastFormat("15", "", _without_status(b"Status\\u003d"), "BLAST JSON in one file"),
    "SAM": BlastFormat("sam", "", _as_it_is, "SAM"),
}
"""Every FORMAT_TYPE."""


def format_of(words: Mapping[str, str]) -> BlastFormat:
    """Return the report that a Get asks for.

    Raises
    ------
    OptionError
        If there is no such report.
    """
    given = words.get("FORMAT_TYPE", "HTML")
    name = next((known for known in BLAST_FORMATS if known.lower() == given.lower()), None)
    if name is None:
        raise OptionError("FORMAT_TYPE", given, f"one of {', '.join(BLAST_FORMATS)}")
    if name not in ("Text", "HTML"):
        return BLAST_FORMATS[name]
    view = words.get("ALIGNMENT_VIEW", "Pairwise")
    if view.lower() == "tabular":
        return _TABULAR
    if view.lower() != "pairwise":
        raise OptionError("ALIGNMENT_VIEW", view, "Pairwise or Tabular")
    return BLAST_FORMATS[name]


def report_in(wanted: BlastFormat, rid: str, n_queries: int, chunks: Iterator[bytes]) -> Chunks:
    """Yield a report as its readers expect it; closing it closes the report."""
    try:
        yield from wanted.wrapped(rid, n_queries, chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
