"""Files, pipes and compressions, whole and broken."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from support.db_helpers import HBA, HBB, LETTERS, letters_of
from swsearch.db import build_database, read_fasta
from swsearch.db.inputs import Input
from swsearch.errors import OptionError, SequenceError

TEXT = f">a\n{HBA}\n>b\n{HBB}\n".encode()


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


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_compressions_are_told_by_their_bytes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "name.says.nothing"
    raw = COMPRESSIONS[kind](TEXT)
    path.write_bytes(raw)
    assert [letters_of(record) for record in read_fasta(path)] == [HBA, HBB]
    with Input(path) as source:
        view = memoryview(bytearray(1 << 16))
        assert source.read_into(view) == len(TEXT) and source.read_into(view) == 0
        assert (source.sha256, source.n_bytes) == (hashlib.sha256(raw).hexdigest(), len(raw))
        assert source.total == len(raw)


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    class Drip(io.BytesIO):
        """A pipe that brings a few bytes at a time."""

        def readinto(self, view: memoryview) -> int:  # type: ignore[override]
            return super().readinto(memoryview(view)[:5])

    class Stdin:
        closed = False
        buffer = Drip(COMPRESSIONS[kind](TEXT))

    monkeypatch.setattr("sys.stdin", Stdin)
    assert [letters_of(record) for record in read_fasta("-")] == [HBA, HBB]


def test_standard_input_names_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b">a\nM-\n")))
    with pytest.raises(SequenceError, match=r"^<stdin>: record 'a' line 2: '-' is a gap"):
        list(read_fasta("-"))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SequenceError, match="<stdin>: standard input is closed"):
        list(read_fasta("-"))
    with pytest.raises(OptionError, match="at most once"):
        build_database(["-", "-"], tmp_path / "out.h5")


def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(TEXT),))
    writer.start()
    assert [letters_of(record) for record in read_fasta(path)] == [HBA, HBB]
    writer.join()


@pytest.mark.parametrize("kind", ONE_EACH)
def test_truncated_at_every_length(tmp_path: Path, kind: str) -> None:
    raw = COMPRESSIONS[kind](TEXT)
    path = tmp_path / "cut"
    for size in range(6, len(raw)):
        path.write_bytes(raw[:size])
        with pytest.raises(SequenceError, match=f"(truncated|corrupt) {kind} data") as caught:
            list(read_fasta(path))
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("kind", ONE_EACH)
def test_corrupt(tmp_path: Path, kind: str) -> None:
    text = TEXT + b">r\n" + "".join(random.Random(2).choices(LETTERS[:20], k=5000)).encode()
    raw = bytearray(
        zstandard.ZstdCompressor(write_checksum=True).compress(text) if kind == "zstd" else COMPRESSIONS[kind](text)
    )
    raw[len(raw) // 2] ^= 0x10
    path = tmp_path / "corrupt"
    path.write_bytes(raw)
    with pytest.raises(SequenceError, match=f"corrupt {kind} data"):
        list(read_fasta(path))


@pytest.mark.parametrize("kind", ONE_EACH)
def test_other_bytes_behind_compressed_data(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tail"
    path.write_bytes(COMPRESSIONS[kind](TEXT) + b">c\nMKV\n")
    with pytest.raises(SequenceError, match=f"behind the {kind} data stand other bytes"):
        list(read_fasta(path))


@pytest.mark.parametrize("kind", ONE_EACH)
def test_line_numbers_count_decompressed_lines(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(COMPRESSIONS[kind](b">a\n" + b"MKV\n" * 50_000 + b"M*-\n"))
    with pytest.raises(SequenceError, match="record 'a' line 50002: '-'"):
        list(read_fasta(path))


def test_a_bomb_unpacks_in_small_steps(tmp_path: Path) -> None:
    """100 MB of blanks in a few kB: read through a small buffer, never held whole."""
    path = tmp_path / "bomb"
    path.write_bytes(zstandard.compress(b">a\n" + b"\n" * 100_000_000 + b"MKV"))
    assert path.stat().st_size < 20_000
    with Input(path) as source:
        view, total = memoryview(bytearray(1 << 20)), 0
        while n := source.read_into(view):
            total += n
    assert total == 100_000_006


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SequenceError, match="no such file"):
        list(read_fasta(tmp_path / "missing.fasta"))
    with pytest.raises(SequenceError, match="is a directory"):
        list(read_fasta(tmp_path))
    with pytest.raises(SequenceError, match="cannot be read"):
        list(read_fasta("nul\0byte"))
    locked = tmp_path / "locked.fasta"
    locked.write_bytes(TEXT)
    locked.chmod(0)
    if os.geteuid():  # root reads everything
        with pytest.raises(SequenceError, match="permission denied"):
            list(read_fasta(locked))
