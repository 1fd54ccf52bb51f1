"""swsearch.server.blast: what clients of NCBI's server read, whatever a request brought."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Generator

import pytest

from swsearch.server.blast import BLAST_FORMATS, format_of, report_in

RID = "ABCDEFGH23456789JKLM"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, "html"),
        ({"FORMAT_TYPE": "Text"}, "0"),
        ({"FORMAT_TYPE": "TEXT", "ALIGNMENT_VIEW": "Pairwise"}, "0"),
        ({"FORMAT_TYPE": "Text", "ALIGNMENT_VIEW": "Tabular"}, "7 std ppos"),
        ({"ALIGNMENT_VIEW": "Tabular"}, "7 std ppos"),
        ({"FORMAT_TYPE": "Tabular"}, "7 std ppos"),
        ({"FORMAT_TYPE": "CSV", "ALIGNMENT_VIEW": "Tabular"}, "10 std ppos"),
        ({"FORMAT_TYPE": "XML", "ALIGNMENT_VIEW": "Tabular"}, "5"),
        ({"FORMAT_TYPE": "json2_s"}, "15"),
    ],
)
def test_formats(words: dict[str, str], expected: str) -> None:
    assert format_of(words).outfmt == expected


def pieces(content: bytes, size: int) -> Generator[bytes]:
    """Some bytes in chunks of a size."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


def wrapped(name: str, content: bytes, n_queries: int = 1, size: int = 7) -> bytes:
    """A report in a format, from chunks of a size."""
    return b"".join(report_in(BLAST_FORMATS[name], RID, n_queries, pieces(content, size)))


@pytest.mark.parametrize("size", [1, 2, 5, 7, 100])
def test_no_header_passes_for_the_state_of_a_search(size: int) -> None:
    found = wrapped("XML", b"<a>Status=1 and SStatus=2 Status</a>", size=size)
    assert b"Status=" not in found
    assert found.replace(b"&#61;", b"=") == b"<a>Status=1 and SStatus=2 Status</a>"
    stated = {"title": "Status=WAITING"}
    found = wrapped("JSON2_S", json.dumps(stated).encode(), size=size)
    assert b"Status=" not in found
    assert json.loads(found) == stated


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 18, 1000])
@pytest.mark.parametrize("n_queries", [1, 2, 3])
def test_an_archive_has_a_file_for_each_query(size: int, n_queries: int) -> None:
    reports = [{"report": {"results": {"n": number}}} for number in range(n_queries)]
    content = '{"BlastOutput2":[\n' + ",\n".join(map(json.dumps, reports)) + "\n]}\n"
    found = wrapped("JSON2", content.encode(), n_queries, size)
    assert found.startswith(b"PK\x03\x04")
    with zipfile.ZipFile(io.BytesIO(found)) as archive:
        assert archive.testzip() is None
        listed = [each["File"] for each in json.loads(archive.read(f"{RID}.json"))["BlastJSON"]]
        assert archive.namelist() == [f"{RID}.json", *listed]
        assert [json.loads(archive.read(name))["BlastOutput2"] for name in listed] == reports


def test_a_client_that_leaves_closes_the_report() -> None:
    closed = []

    def report() -> Generator[bytes]:
        try:
            while True:
                yield b"x" * 100
        finally:
            closed.append(True)

    answer = report_in(BLAST_FORMATS["XML"], RID, 1, report())
    next(answer)
    answer.close()  # type: ignore[attr-defined]
    assert closed == [True]
