"""Files, pipes and compressions, whole and broken."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import signal
import threading
from collections.abc import Callable
from itertools import pairwise
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
    monkeypatch.setattr("sys.stdin", io.StringIO(">a\nMKV\n"))
    with pytest.raises(SequenceError, match="<stdin>: standard input gives text, expected bytes"):
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
    with pytest.raises(SequenceError, match=f"other bytes follow the {kind} data"):
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


class Pipe:
    """A pipe's end: what is to come is written, piece by piece, when the reader has begun to wait for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, end: int, pieces: list[bytes]) -> None:
        self.waits, self.written, self.pieces, self._end = 0, 0, pieces, end
        wait = Input._wait

        def write_and_wait(source: Input) -> None:
            self.waits += 1
            # by another thread, since the wait must last until something is there
            writer = threading.Timer(0.01, self.write)
            writer.start()
            wait(source)
            assert self.written == self.waits, "the wait ended before there was something to read"
            writer.join()

        monkeypatch.setattr(Input, "_wait", write_and_wait)

    def write(self) -> None:
        self.written += 1
        if self.pieces:
            os.write(self._end, self.pieces.pop(0))
        else:
            os.close(self._end)


@pytest.mark.parametrize("kind", ["plain", "gzip members", *ONE_EACH])
@pytest.mark.parametrize("buffering", [0, -1])
def test_a_pipe_without_data_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch, kind: str, buffering: int) -> None:
    raw = COMPRESSIONS[kind](TEXT)
    cuts = [0, 1, 20, len(raw) // 2, len(raw)]
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    pipe = Pipe(monkeypatch, writing, [raw[a:b] for a, b in pairwise(cuts)])
    with os.fdopen(reading, "rb", buffering=buffering) as stream:
        monkeypatch.setattr("sys.stdin", Stdin(stream))
        assert [letters_of(record) for record in read_fasta("-")] == [HBA, HBB]
    assert pipe.waits == len(cuts)  # once for each piece, and once for the end


class Stdin:
    """A standard input whose bytes come from a stream."""

    closed = False

    def __init__(self, buffer: object) -> None:
        self.buffer = buffer


def test_a_stream_that_cannot_be_waited_for_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hesitant(io.BytesIO):
        """Something of Python's own, without a descriptor, that has nothing every other time."""

        turn = 0

        def readinto(self, view: memoryview) -> int | None:  # type: ignore[override]
            self.turn += 1
            if self.turn % 3 == 1:
                return None
            if self.turn % 3 == 2:
                raise BlockingIOError(11, "nothing yet")
            return super().readinto(memoryview(view)[:50])

    monkeypatch.setattr("swsearch.db.inputs.ASK_AGAIN", 0.0)
    monkeypatch.setattr("sys.stdin", Stdin(Hesitant(TEXT)))
    assert [letters_of(record) for record in read_fasta("-")] == [HBA, HBB]


def test_ctrl_c_ends_a_wait(monkeypatch: pytest.MonkeyPatch, ctrl_c: None) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    press = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    give_up = threading.Timer(20, os.write, (writing, b"no end in 20 seconds"))
    with os.fdopen(reading) as stream, os.fdopen(writing):
        monkeypatch.setattr("sys.stdin", stream)
        press.start()
        give_up.start()
        with pytest.raises(KeyboardInterrupt):
            try:
                list(read_fasta("-"))
            finally:
                press.join()
        give_up.cancel()


def test_the_end_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal a second question would need a second Ctrl-D, and read what is typed then."""

    class Terminal(io.BytesIO):
        def readinto(self, view: memoryview) -> int:  # type: ignore[override]
            n = super().readinto(view)
            if not n:
                self.seek(0)
            return n

    monkeypatch.setattr("sys.stdin", Stdin(Terminal(TEXT)))
    assert [letters_of(record) for record in read_fasta("-")] == [HBA, HBB]


CHANGES: dict[str, Callable[[Path, bytes], object]] = {
    "shrinks": lambda path, data: os.truncate(path, 600),
    "is emptied": lambda path, data: os.truncate(path, 0),
    "grows": lambda path, data: path.write_bytes(data + b">late\nMKV\n"),
    "is overwritten": lambda path, data: (path.write_bytes(data), os.utime(path, ns=(1, 1))),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("stdin", [False, True])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, stdin: bool
) -> None:
    path = tmp_path / "in.fasta"
    data = TEXT * 100
    path.write_bytes(data)
    name = "<stdin>" if stdin else str(path)
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        with Input("-" if stdin else path) as source:
            assert source.read_into(memoryview(bytearray(500))) == 500
            CHANGES[change](path, data)
            with pytest.raises(
                SequenceError, match=f"^{name}: changed while it was read: {len(data):,} bytes at first"
            ):
                source.read_into(memoryview(bytearray(1 << 20)))


@pytest.mark.parametrize("kind", ONE_EACH)
def test_a_compressed_file_that_shrinks_is_not_called_damaged(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "in"
    text = TEXT + b">r\n" + "".join(random.Random(2).choices(LETTERS[:20], k=150_000)).encode()
    path.write_bytes(COMPRESSIONS[kind](text))
    with Input(path) as source:
        source.read_into(memoryview(bytearray(10)))
        os.truncate(path, path.stat().st_size - 1)
        with pytest.raises(SequenceError, match="changed while it was read"):
            source.read_into(memoryview(bytearray(1 << 20)))


def test_a_build_of_a_file_that_shrinks_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "in.fasta", tmp_path / "out"
    folder.mkdir()
    path.write_bytes(TEXT * 100)
    fill = Input._fill

    def shrink_and_fill(source: Input, view: memoryview) -> int:
        if source.n_bytes:
            os.truncate(path, 2000)
        return fill(source, view)

    monkeypatch.setattr(Input, "_fill", shrink_and_fill)
    with pytest.raises(SequenceError, match="changed while it was read"):
        build_database(path, folder / "out.h5")
    assert list(folder.iterdir()) == []


def test_what_others_left_of_standard_input_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.fasta"
    path.write_bytes(b"a line for someone else\n" + TEXT)
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", Stdin(file))
        file.readline()
        assert [letters_of(record) for record in read_fasta("-")] == [HBA, HBB]


@pytest.mark.skipif(not Path("/proc/self/limits").is_file(), reason="no /proc here")
def test_a_file_that_is_made_as_it_is_read_has_no_size() -> None:
    with Input("/proc/self/limits") as source:
        assert source.total == 0
        assert source.read_into(memoryview(bytearray(1 << 16))) > 100


def test_a_pipe_can_be_given_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OptionError, match="each pipe at most once"):
        build_database([path, tmp_path / "." / "pipe"], tmp_path / "out.h5")


def test_an_empty_name(tmp_path: Path) -> None:
    with pytest.raises(SequenceError, match="a file name is empty"):
        build_database([""], tmp_path / "out.h5")


@pytest.mark.parametrize("zeros", range(6))
def test_padding_of_xz_is_whole(zeros, tmp_path):
    """It comes by four zeros, so that fewer say that a file was cut off in it, as xz has it too."""
    path = tmp_path / "a.fasta.xz"
    for rest in (b"", lzma.compress(b">b\nWW\n")):
        path.write_bytes(lzma.compress(b">a\nMKV\n") + b"\0" * zeros + rest)
        if zeros % 4:
            with pytest.raises(SequenceError, match=f"truncated xz data: {zeros} zeros after a stream"):
                list(read_fasta(path))
        else:
            assert [record.identifier for record in read_fasta(path)] == ["a", "b"][: 2 if rest else 1]
