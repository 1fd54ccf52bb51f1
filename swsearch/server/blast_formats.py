"""Reports and small pages of BLAST's URL API, as clients of NCBI's server read them.

Clients search pages for ``RID =``, ``RTOE =`` and ``Status=``, so no text of a request may contain these marks.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from html import escape
from typing import NamedTuple

from swsearch.errors import OptionError

_MARKS = re.compile(r"(RID|RTOE|Status|ThereAreHits|QBlastInfo)(?=\s*=|Begin|End)", re.IGNORECASE)


def told(text: str) -> str:
    """Return any text as markup without marks; quotes stay, as clients print them."""
    return _MARKS.sub(lambda mark: f"{mark[0][0]}&#{ord(mark[0][1])};{mark[0][2:]}", escape(text, quote=False))


def marks(*lines: str) -> str:
    """Return a block that clients read."""
    return "\n".join(["<!--QBlastInfoBegin", *lines, "QBlastInfoEnd", "-->"])


def small_page(
    text: str, items: Sequence[str] = (), blocks: Sequence[str] = (), *, title: str = "BLAST search", head: str = ""
) -> str:
    """Return a page: markup of a paragraph, a list of any texts, and blocks of `marks`."""
    parts = [f"<p>{text}</p>"] if text else []
    if items:
        parts += ["<ul>", *(f"<li>{told(item)}</li>" for item in items), "</ul>"]
    body = "\n".join([*parts, *blocks])
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">{head}
<title>{title}</title>
</head>
<body>
{body}
</body>
</html>
"""


def refused(problem: str, status: str = "") -> str:
    """Return the page of a request that failed, with the status of its search if there is one.

    It does not begin as a page that clients wait for, and has the sentence where they look for NCBI's.
    """
    block = f"<p>{marks(chr(9) + 'Status=' + status)}</p>\n" if status else ""
    return (
        '<html lang="en"><head><meta charset="utf-8"><title>BLAST search</title></head><body>\n'
        f'<ul id="msg" class="msg"><li class="error"><p class="error">{told(problem)}</p></li></ul>\n{block}'
        "</body></html>\n"
    )


_READY = b"QBlastInfoBegin\n\tStatus=READY\nQBlastInfoEnd"
"""Mark in NCBI's reports."""

Wrapper = Callable[[str, int, Iterable[bytes]], Iterator[bytes]]
"""Yields a report as its readers expect it, from the RID, the number of queries and the bytes of our report."""


def _framed(head: bytes = b"", tail: bytes = b"") -> Wrapper:
    """Return a wrapper that puts bytes before and after a report."""

    def framed(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        yield head
        yield from chunks
        yield tail

    return framed


def _without_status(escaped: bytes) -> Wrapper:
    """Return a wrapper that hides ``Status=`` in headers, which NCBIWWW.qblast takes for the search's status."""
    mark = b"Status="

    def hidden(_rid: str, _n_queries: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        held = b""
        for chunk in chunks:
            text = (held + chunk).replace(mark, escaped)
            held = text[1 - len(mark) :]
            yield text[: len(text) - len(held)]
        yield held

    return hidden


def _zipped(rid: str, n_queries: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
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
    """A file that an archive is written to, piece by piece."""

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
        data, self._parts = b"".join(self._parts), []
        return data


class BlastFormat(NamedTuple):
    """A report of BLAST's URL API."""

    outfmt: str
    """Our report, as in ``--outfmt``."""
    wrap: Wrapper
    what: str
    """Description for people."""
    content_type: str = ""
    """Media type, unless it is that of our report."""


_PLAIN = "text/plain; charset=utf-8"

# clients cut the text out; it is plain text, so nothing is escaped
_TEXT = _framed(b"<p><!--\n" + _READY + b"\n--><p>\n<PRE>\n", b"</PRE>\n")

_TABULAR = BlastFormat(
    "7 std ppos", _TEXT, "a table with comment lines, as above; after blastp's columns % positives", _PLAIN
)

BLAST_FORMATS: Mapping[str, BlastFormat] = {
    "HTML": BlastFormat(
        "html", _framed(b"<!--\n" + _READY + b"\n-->\n"), "this server's page of results; the default"
    ),
    "Text": BlastFormat("0", _TEXT, "blastp's report for people, between `<PRE>` and `</PRE>`", _PLAIN),
    "Tabular": _TABULAR,
    "CSV": BlastFormat("10 std ppos", _framed(), "the same table with commas, nothing else"),
    "XML": BlastFormat("5", _without_status(b"Status&#61;"), "BLAST XML"),
    "JSON2": BlastFormat(
        "15", _zipped, "BLAST JSON, zipped: a list of files, and one for each query", "application/zip"
    ),
    "JSON2_S": BlastFormat("15", _without_status(b"Status\\u003d"), "BLAST JSON in one file"),
    "SAM": BlastFormat("sam", _framed(), "SAM"),
}
"""Every FORMAT_TYPE."""


def format_of(words: Mapping[str, str]) -> BlastFormat:
    """Return the report that a Get requests; raise `OptionError` if there is no such report."""
    given = words.get("FORMAT_TYPE", "HTML")
    name = next((known for known in BLAST_FORMATS if known.lower() == given.lower()), None)
    if name is None:
        raise OptionError("FORMAT_TYPE", given, f"one of {', '.join(BLAST_FORMATS)}")
    view = words.get("ALIGNMENT_VIEW", "Pairwise") if name in ("Text", "HTML") else "Pairwise"
    if view.lower() not in ("pairwise", "tabular"):
        raise OptionError("ALIGNMENT_VIEW", view, "Pairwise or Tabular")
    return _TABULAR if view.lower() == "tabular" else BLAST_FORMATS[name]


def report_in(wanted: BlastFormat, rid: str, n_queries: int, chunks: Generator[bytes]) -> Generator[bytes]:
    """Yield a report as its readers expect it; closing it closes our report."""
    with closing(chunks):
        yield from wanted.wrap(rid, n_queries, chunks)
