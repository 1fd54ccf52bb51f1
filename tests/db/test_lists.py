"""Lists of identifiers as people keep them, and what is none."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from swsearch.db import lists
from swsearch.db.lists import read_list
from swsearch.errors import InputError

LISTS = {
    "plain": b"a\nb\n\n  c  \nb\n",
    "no end": b"a\nb\nc",
    "CRLF": b"a\r\nb\r\n\r\nc\r\n",
    "CR": b"a\rb\rc",
    "mark": b"\xef\xbb\xbfa\nb\nc\n",
    "comments": b"# mine\na\n#a1\nb\n  # more\nc\n",
    "gzip": gzip.compress(b"a\nb\nc\n"),
    "bzip2": bz2.compress(b"a\nb\nc\n"),
    "xz": lzma.compress(b"a\nb\nc\n"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_what_a_list_may_be(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ids").write_bytes(LISTS[kind])
    assert read_list(tmp_path / "ids", "ids") == ["a", "b", "c"]


def test_a_list_in_other_encodings(tmp_path: Path) -> None:
    for encoding in ("utf-8", "latin-1"):
        (tmp_path / "ids").write_text("pr\u00e9\n", encoding=encoding)
        assert read_list(tmp_path / "ids", "ids") == ["pr\u00e9"]


WRONG = {
    "empty": (b"", "no identifiers found"),
    "blank": (b"\n \r\n", "no identifiers found"),
    "comments": (b"# one\n#two", "no identifiers found"),
    "binary": (b"\0\1\2" * 9, "got NUL bytes, expected identifiers as text"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(99), "is not text"),
    "damaged": (gzip.compress(b"a\nb\n" * 99)[:-12], "truncated gzip"),
    "large": (b"a\n" * 600, "more than 1,000 bytes"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_list(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LIST_BYTES", 1000)
    content, problem = WRONG[kind]
    (tmp_path / "ids").write_bytes(content)
    with pytest.raises(InputError, match=rf"ids: .*: .*{problem}"):
        read_list(tmp_path / "ids", "ids")


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, problem in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file"), ("", "")):
        with pytest.raises(InputError, match=f"ids: .*cannot be read: {problem}"):
            read_list(path, "ids")
