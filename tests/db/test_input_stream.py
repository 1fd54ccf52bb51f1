"""Files, pipes, compressions and lists of identifiers, whole and broken."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
import zstandard

from support.db_helpers import HBA, HBB, LETTERS, letters_of
from swsearch.db import Database, build_database, name_lookup, read_fasta
from swsearch.db.input_stream import Input
from swsearch.db.name_lookup import read_list
from swsearch.errors import InputError, OptionError, SequenceError

TEXT = f">a\n{HBA}\n>b\n{HBB}\n".encode()
LONG = TEXT + b">r\n" + "".join(random.Random(2).choices(LETTERS[:20], k=150_000)).encode()


def bgzip(data: bytes) -> bytes:
    """Compress in many members and an empty last one, as bgzip does."""
    return b"".join(gzip.compress(data[at : at + 7]) for at in range(0, len(data), 7)) + gzip.compress(b"")


def pzstd(data: bytes) -> bytes:
    """Compress in frames with skippable ones between them, as pzstd does."""
    half = len(data) // 2
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    return b"".join([skippable, zstandard.compress(data[:half]), skippable, zstandard.compress(data[half:])])


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "gzip members": bgzip,
    "gzip padded": lambda data: gzip.compress(data) + b"\0" * 512,
    "xz": lzma.compress,
    "xz streams": lambda data: lzma.compress(data[:50]) + b"\0" * 8 + lzma.compress(data[50:]),
    "bzip2": bz2.compress,
    "bzip2 streams": lambda data: bz2.compress(data[:50]) + bz2.compress(b"") + bz2.compress(data[50:]),
    "zstd": zstandard.compress,
    "zstd frames": pzstd,
    "zstd without size": lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
}
ONE_EACH = ["gzip", "xz", "bzip2", "zstd"]


class Stdin:
    """A standard input whose bytes come from a stream."""

    closed = False

    def __init__(self, buffer: object) -> None:
        self.buffer = buffer


class Drip(io.BytesIO):
    """A terminal or pipe that brings a few bytes at a time, and more behind its end to who asks again."""

    def readinto1(self, view: memoryview) -> int:  # type: ignore[override]
        n = super().readinto(memoryview(view)[:5])
        if not n:
            self.seek(0)
        return n


def is_read(source: str | Path) -> bool:
    return [letters_of(record) for record in read_fasta(source)] == [HBA, HBB]


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_compressions_are_told_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path, raw = tmp_path / "name.says.nothing", COMPRESSIONS[kind](TEXT)
    path.write_bytes(raw)
    assert is_read(path)
    with Database.from_fasta(path) as database:
        (source,) = database.sources()
        assert (source["sha256"], source["bytes"]) == (hashlib.sha256(raw).hexdigest(), len(raw))
    monkeypatch.setattr("sys.stdin", Stdin(Drip(raw)))
    assert is_read("-")


@pytest.mark.parametrize("way", ["FIFO", "stdin", "stdin that does not block"])
def test_pipes_that_have_nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    raw, fifo = gzip.compress(TEXT), tmp_path / "pipe"
    os.mkfifo(fifo)

    def write() -> None:
        with fifo.open("wb", buffering=0) as pipe:
            for piece in (raw[:1], raw[1:20], raw[20:], b""):
                time.sleep(0.01)
                pipe.write(piece)

    with ThreadPoolExecutor() as threads:
        threads.submit(write)
        if way == "FIFO":
            assert is_read(fifo)
            return
        with fifo.open("rb") as stream:
            os.set_blocking(stream.fileno(), way == "stdin")
            monkeypatch.setattr("sys.stdin", Stdin(stream))
            assert is_read("-")


class Hesitant(io.BytesIO):
    def readinto1(self, view: object) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize(
    ("stdin", "words"),
    [
        (io.TextIOWrapper(io.BytesIO(b">a\nM-\n")), "record 'a' line 2: '-' is a gap"),
        (None, "standard input is closed"),
        (io.StringIO(">a\nMKV\n"), "standard input gives text, expected bytes"),
        (Stdin(Hesitant()), "got nothing from a stream that does not block"),
    ],
)
def test_standard_input_names_itself(monkeypatch: pytest.MonkeyPatch, stdin: object, words: str) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(SequenceError, match=f"^<stdin>: {words}"):
        list(read_fasta("-"))


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    locked, pipe = tmp_path / "locked.fasta", tmp_path / "pipe"
    locked.write_bytes(TEXT)
    locked.chmod(0)
    os.mkfifo(pipe)
    for source, words in (
        (tmp_path / "missing.fasta", "no such file"),
        (tmp_path, "is a directory"),
        ("nul\0byte", "cannot be read"),
        ("", "a file name is empty"),
        *([(locked, "permission denied")] if os.geteuid() else []),  # root reads everything
    ):
        with pytest.raises(SequenceError, match=words):
            list(read_fasta(source))
    for inputs, words in ((["-", "-"], "at most once"), ([pipe, tmp_path / "." / "pipe"], "each pipe at most once")):
        with pytest.raises(OptionError, match=words):
            build_database(inputs, tmp_path / "out.h5")


@pytest.mark.parametrize("kind", ONE_EACH)
def test_truncated_at_every_length(tmp_path: Path, kind: str) -> None:
    raw = COMPRESSIONS[kind](TEXT)
    path = tmp_path / "cut"
    for size in range(6, len(raw)):
        path.write_bytes(raw[:size])
        with pytest.raises(SequenceError, match=f"^{path}: (truncated|corrupt) {kind} data"):
            list(read_fasta(path))


def flipped(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes([raw[middle] ^ 0x10]) + raw[middle + 1 :]


@pytest.mark.parametrize("kind", ONE_EACH)
def test_damaged(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "damaged"
    pack = COMPRESSIONS[kind]
    checked = zstandard.ZstdCompressor(write_checksum=True).compress if kind == "zstd" else pack
    for raw, words in (
        (flipped(checked(LONG)), f"corrupt {kind} data"),
        (pack(TEXT) + b">c\nMKV\n", f"other bytes follow the {kind} data"),
        (pack(b">a\n" + b"MKV\n" * 50_000 + b"M*-\n"), "record 'a' line 50002: '-'"),
    ):
        path.write_bytes(raw)
        with pytest.raises(SequenceError, match=words):
            list(read_fasta(path))


@pytest.mark.parametrize("kind", ONE_EACH)
def test_a_bomb_unpacks_in_small_steps(tmp_path: Path, kind: str) -> None:
    """Blanks in a few kB, read through a small buffer, are never held whole."""
    path = tmp_path / "bomb"
    n_blanks = 200_000_000 if kind == "zstd" else 20_000_000
    path.write_bytes(COMPRESSIONS[kind](b">a\n" + b"\n" * n_blanks + b"MKV"))
    tracemalloc.start()
    with Input(path) as source:
        view, total = memoryview(bytearray(1 << 20)), 0
        while n := source.read_into(view):
            total += n
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == n_blanks + 6 and peak < n_blanks


CHANGES: dict[str, Callable[[Path, bytes], object]] = {
    "shrinks": lambda path, data: os.truncate(path, 600),
    "grows": lambda path, data: path.write_bytes(data + b">late\nMKV\n"),
    "is overwritten": lambda path, data: (path.write_bytes(data), os.utime(path, ns=(1, 1))),
}
CHANGED = [*product(["plain"], CHANGES, [False, True]), *((kind, "shrinks", False) for kind in ONE_EACH)]


@pytest.mark.parametrize(("kind", "change", "stdin"), CHANGED)
def test_a_file_that_changes_while_it_is_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, change: str, stdin: bool
) -> None:
    path, raw = tmp_path / "in.fasta", COMPRESSIONS[kind](LONG)
    path.write_bytes(raw)
    name = "<stdin>" if stdin else str(path)
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        records = read_fasta("-" if stdin else path, buffer_bytes=500)
        next(records)
        CHANGES[change](path, raw)
        with pytest.raises(SequenceError, match=f"^{name}: changed while it was read: {len(raw):,} bytes at first"):
            list(records)


LISTS = {
    "plain": b"a\nb\n\n  c  \nb\n",
    "no end": b"a\nb\nc",
    "CRLF": b"a\r\nb\r\n\r\nc\r\n",
    "CR": b"a\rb\rc",
    "mark": b"\xef\xbb\xbfa\nb\nc\n",
    "comments": b"# mine\na\n#a1\nb\n  # more\nc\n",
    "UTF-8": "a\nb\n\u00e9\n".encode(),
    "Latin-1": "a\nb\n\u00e9\n".encode("latin-1"),
    "gzip": gzip.compress(b"a\nb\nc\n"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_what_a_list_may_be(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ids").write_bytes(LISTS[kind])
    assert read_list(tmp_path / "ids", "ids") == ["a", "b", "\u00e9" if kind in ("UTF-8", "Latin-1") else "c"]


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
    monkeypatch.setattr(name_lookup, "LIST_BYTES", 1000)
    content, problem = WRONG[kind]
    (tmp_path / "ids").write_bytes(content)
    with pytest.raises(InputError, match=rf"ids: .*: .*{problem}"):
        read_list(tmp_path / "ids", "ids")


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, problem in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file"), ("", "")):
        with pytest.raises(InputError, match=f"ids: .*cannot be read: {problem}"):
            read_list(path, "ids")
