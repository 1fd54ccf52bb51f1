"""FASTA reading against a parser that goes line by line, and every fault with its message."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from support.db_helpers import HBA, LETTERS, letters_of, naive_fasta, runs_of_lower
from support.samples import random_cases
from swsearch.db import read_fasta
from swsearch.db.arrays import offsets_of
from swsearch.db.fasta import header_text, split_header
from swsearch.errors import SequenceError
from swsearch.results.table import Headers

LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b" \n", b"\n\t\r\n"])
SEQUENCE_LINE = st.text(alphabet=LETTERS + LETTERS.lower() + " \t", max_size=30).map(str.encode)
HEADER = st.tuples(
    st.sampled_from([b"", b" ", b"\t "]),
    st.text(alphabet="ab|.>1", min_size=1, max_size=12).map(str.encode),
    st.binary(max_size=25).map(lambda raw: raw.translate(None, b"\0\r\n")),
).map(lambda parts: parts[0] + parts[1] + b" " + parts[2])


@st.composite
def fasta(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\n", b" \r\n"]))
    for header in draw(st.lists(HEADER, min_size=1, max_size=8)):
        text += b">" + header + draw(LINE_ENDS)
        for line in draw(st.lists(SEQUENCE_LINE, max_size=4)):
            text += line + draw(LINE_ENDS)
    # a '>' after blanks is no header but an illegal byte, so the text ends its lines itself
    return text.rstrip(b"\r\n") if draw(st.booleans()) else text


@random_cases(400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=fasta(), buffer_bytes=st.integers(16, 90))
@example(data=b">a\r\nAC\r\n>b\r\nc", buffer_bytes=16)
@example(data=b">" + b"a" * 100 + b"\nM\n>b", buffer_bytes=16)
@example(data=b"\xef\xbb\xbf>a\nM", buffer_bytes=16)
@example(data=b">only a -> header", buffer_bytes=16)
@example(data=b">e1\n>e2\n\n>a\nM\n>e3\n", buffer_bytes=16)
@example(data=b">a\n" + 999 * b"MVLSP" + b"\n>a\nMK", buffer_bytes=16)
def test_equals_a_line_by_line_parser_at_any_buffer_size(tmp_path: Path, data: bytes, buffer_bytes: int) -> None:
    path = tmp_path / "in.fasta"
    path.write_bytes(data)
    expected = naive_fasta(data)
    for size in (buffer_bytes, 1 << 20):
        found = list(read_fasta(path, buffer_bytes=size))
        assert [(record.header, letters_of(record)) for record in found] == expected
        assert [record.masked for record in found] == [runs_of_lower(each) for _, each in expected]


@random_cases(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=fasta(), buffer_bytes=st.integers(16, 90), place=st.floats(0, 1), bad=st.sampled_from(b"-.7\0\x07\xc3~>@")
)
def test_an_illegal_byte_is_placed_exactly(
    tmp_path: Path, data: bytes, buffer_bytes: int, place: float, bad: int
) -> None:
    at = int(place * len(data))
    before = data[:at].removeprefix(b"\xef\xbb\xbf")
    lines = before.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    headers = [line for line in lines if line.startswith(b">")]
    in_header = lines[-1].startswith(b">") or (data[at - 1 : at] == b"\r" and data[at : at + 1] == b"\n")
    if in_header or not headers or (bad == ord(">") and not lines[-1]):
        return
    path = tmp_path / "in.fasta"
    path.write_bytes(data[:at] + bytes([bad]) + data[at:])
    with pytest.raises(SequenceError) as caught:
        list(read_fasta(path, buffer_bytes=buffer_bytes))
    assert caught.value.line == len(lines)
    assert str(caught.value).endswith(f" (column {len(lines[-1]) + 1})")
    assert caught.value.record == header_text(headers[-1][1:])[0]
    assert str(path) in str(caught.value)


@given(headers=st.lists(st.binary(max_size=20) | HEADER | st.text(max_size=8).map(str.encode), max_size=6))
def test_headers_are_split_at_the_first_word(headers: list[bytes]) -> None:
    expected = []
    for header in headers:
        match = re.match(rb"[ \t\v\f]*([^ \t\v\f\x01]*)", header)
        assert match is not None
        parts = match[1], header[match.end() :].strip(b" \t\v\f")
        assert split_header(header) == parts
        try:
            texts = header.decode() and (parts[0].decode(), parts[1].decode())
        except UnicodeDecodeError:
            texts = parts[0].decode("latin-1"), parts[1].decode("latin-1")
        expected.append(texts or ("", ""))
    assert list(map(header_text, headers)) == expected
    assert Headers(b"".join(headers), offsets_of(np.array([*map(len, headers)], dtype=np.int64))).texts == expected


FAULTS = [
    (b"", "no FASTA records", None, None),
    (b"\n \n\r\n", "no FASTA records", None, None),
    (HBA.encode() + b"\n", "got 'M' before the first record, expected a line such as '>name'", None, 1),
    (b"\n\n; comment\n>a\nM\n", "got ';' before the first record", None, 3),
    (b">a\nMV\nKL-P\n", "'-' is a gap character", "a", 3),
    (b">a\nMV\r\nK.P\r\n", "'.' is a gap character", "a", 3),
    (b">a gcg\n  1 MVLS PADK\n", "'1' is a digit", "a", 2),
    (b">a\nMV\n>b\nM\0M\n", "byte 0x00 is no residue letter", "b", 4),
    (b">a\nMVL\x07P\n", "byte 0x07 is no residue letter", "a", 2),
    (b">a\nMV\n >b\nM\n", "'>' is no residue letter", "a", 3),
    (b">a\nMV\n>\nM\n", "header without an identifier", None, 3),
    (b">a\nMV\n>  \t\nM\n", "header without an identifier", None, 3),
    (b">a\nMV\n>\x01gi|1\nM\n", "header without an identifier", None, 3),
    (b">a\nMV\n>b\0c\nM\n", "NUL byte in a header line", None, 3),
    (b">a\nM-V\n>\nM\n", "'-' is a gap character", "a", 2),
    (b">\nM-V\n", "header without an identifier", None, 1),
    (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "got byte 0x89 before the first record", None, 1),
]


@pytest.mark.parametrize(("data", "words", "record", "line"), FAULTS)
@pytest.mark.parametrize("buffer_bytes", [16, 1 << 20])
def test_faults(
    tmp_path: Path, data: bytes, words: str, record: str | None, line: int | None, buffer_bytes: int
) -> None:
    path = tmp_path / "bad.fasta"
    path.write_bytes(data)
    with pytest.raises(SequenceError) as caught:
        list(read_fasta(path, buffer_bytes=buffer_bytes))
    assert words in str(caught.value) and str(path) in str(caught.value)
    assert (caught.value.record, caught.value.line) == (record, line)


def test_headers(tmp_path: Path) -> None:
    path = tmp_path / "in.fasta"
    raw = b"> sp|P1|A  first  one \nM\n>gi|1| hba\x01gi|2| hba old\nM\n>x\x01y\nM\n"
    raw += b">\xc3\xa9t\xc3\xa9 \xe2\x82\xac\nM\n>\xe9 caf\xe9\nM\n"
    path.write_bytes(raw)
    records = list(read_fasta(path))
    assert [(record.identifier, record.description) for record in records] == [
        ("sp|P1|A", "first  one"),
        ("gi|1|", "hba\x01gi|2| hba old"),
        ("x", "\x01y"),
        ("été", "€"),
        ("é", "café"),
    ]
    assert records[0].header == b" sp|P1|A  first  one "
    assert len(records[0]) == 1


def test_header_longer_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.db.fasta.HEADER_LIMIT", 4096)
    path = tmp_path / "in.fasta"
    path.write_text(f">a\nM\n>{'x' * 3000}\nM\n")
    assert [len(record.header) for record in read_fasta(path, buffer_bytes=16)] == [1, 3000]
    path.write_text(f">a\nM\n>{'x' * 30000}\nM\n")
    with pytest.raises(SequenceError, match="line 3: header line longer"):
        list(read_fasta(path, buffer_bytes=16))
