"""The disk that a build takes is known before it begins, or seen while it grows."""

from __future__ import annotations

import gzip
import io
import random
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.db_helpers import LETTERS
from swsearch.db import Database, append_database, build_database, disk
from swsearch.db.disk import Amount, DiskWatch, estimate, shown_bytes
from swsearch.db.fasta import FastaReader
from swsearch.db.inputs import Input, plain_size
from swsearch.db.spool import Spool
from swsearch.errors import OutputError

MB = 10**6


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Let a disk have as much room as a test says, and forget what is written to it."""
    room = SimpleNamespace(free=0, folders=set())

    def usage(folder: Path) -> SimpleNamespace:
        room.folders.add(folder)
        return SimpleNamespace(free=room.free, total=1 << 50)

    monkeypatch.setattr(disk.shutil, "disk_usage", usage)
    return room


def fasta(n: int, lengths: tuple[int, int] = (30, 30), end: str = "\n") -> bytes:
    pick = random.Random(n)
    letters = "".join(pick.choices(LETTERS[:20], k=2000))
    sizes = sorted(pick.randint(*lengths) for _ in range(n))
    lines = (f">r{number}{end}{letters[:size]}{end}" for number, size in enumerate(sizes))
    return "".join(lines).encode()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.fasta"
    path.write_bytes(fasta(2000))
    return path


def refused(folder: Path, words: str, call: object) -> None:
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    with pytest.raises(OutputError, match=words) as caught:
        call()  # type: ignore[operator]
    assert caught.value.exit_code == 6
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == before


def test_plain_files_are_refused_before_they_are_read(
    tmp_path: Path, source: Path, free: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    free.free = 100_000  # it takes 240,000 bytes
    monkeypatch.setattr(FastaReader, "__iter__", lambda self: pytest.fail("it was read"))
    words = r"out\.h5: the build will take about 2\d\d,\d{3} bytes of disk, .* 100,000 bytes are free for it; free"
    refused(tmp_path, words, lambda: build_database(source, tmp_path / "out.h5"))
    assert free.folders == {tmp_path}


def test_what_is_compressed_is_refused_as_it_grows(
    tmp_path: Path, source: Path, free: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swsearch.db.build.BUFFER_BYTES", 1 << 12)
    packed = tmp_path / "in.fasta.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    free.free = 100_000
    words = r"out\.h5: the build takes, for the \d\d,\d{3} residues read so far, 1\d\d,\d{3} bytes"
    refused(tmp_path, words, lambda: build_database(packed, tmp_path / "out.h5"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source.read_bytes())))
    refused(tmp_path, words, lambda: build_database("-", tmp_path / "out.h5"))
    free.free = 250_000
    build_database(packed, tmp_path / "out.h5")


def test_an_append_needs_room_for_the_database_too(tmp_path: Path, source: Path, free: SimpleNamespace) -> None:
    free.free = MB
    build_database(source, tmp_path / "out.h5")
    size = (tmp_path / "out.h5").stat().st_size
    free.free = 250_000 + size // 2
    refused(
        tmp_path,
        "the build will take about",
        lambda: append_database(tmp_path / "out.h5", source, on_duplicate="keep"),
    )
    free.free = 250_000 + size
    append_database(tmp_path / "out.h5", source, on_duplicate="keep")


def test_a_database_for_this_process(source: Path, free: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory it takes the disk of temporary files; larger than its memory it goes to a file."""
    free.free = 70_000
    with pytest.raises(OutputError, match="set TMPDIR to another folder"):
        Database.from_fasta(source)
    free.free = 120_000
    Database.from_fasta(source).close()
    assert free.folders == {Path(tempfile.gettempdir())}
    watch = DiskWatch(None, memory=1000)
    with pytest.raises(OutputError, match="will take about"):
        watch.check_before([str(source)])


def test_a_file_system_that_does_not_say(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(folder: Path) -> None:
        raise OSError

    for usage in (unknown, lambda folder: SimpleNamespace(free=0, total=0)):
        monkeypatch.setattr(disk.shutil, "disk_usage", usage)
        build_database(source, tmp_path / "out.h5")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("n", "lengths"), [(2000, (30, 30)), (60_000, (1, 200)), (3000, (0, 2000)), (1, (5, 5))])
def test_estimate(tmp_path: Path, n: int, lengths: tuple[int, int], end: str) -> None:
    """Parts of a file stand for all of it, also where records are sorted by length."""
    path = tmp_path / "in.fasta"
    path.write_bytes(fasta(n, lengths, end))
    with Spool(None) as spool, Input(path) as opened:
        spool.add(FastaReader(opened))
        right = Amount.of(spool)
    found = estimate(str(path), path.stat().st_size)
    for name in ("records", "residues", "header_bytes"):
        assert getattr(found, name) == pytest.approx(getattr(right, name), rel=0.05)


def test_plain_sizes(tmp_path: Path, source: Path) -> None:
    (tmp_path / "in.gz").write_bytes(gzip.compress(b">a\nM\n"))
    assert plain_size(str(source)) == source.stat().st_size
    for name in ("-", "", str(tmp_path), str(tmp_path / "in.gz"), str(tmp_path / "missing"), "a\0b"):
        assert plain_size(name) == 0


def test_what_a_build_takes_is_what_is_said(tmp_path: Path, source: Path) -> None:
    build_database(source, tmp_path / "out.h5")
    with Spool(tmp_path) as spool, Input(source) as opened:
        spool.add(FastaReader(opened))
        amount = Amount.of(spool)
    assert (amount.records, amount.residues) == (2000, 60_000)
    padding = 2000 * 2
    assert (tmp_path / "out.h5").stat().st_size == pytest.approx(amount.stored + padding, abs=20_000)


def test_shown_bytes() -> None:
    shown = [shown_bytes(n) for n in (999_999, 1_000_000, 12_345_000_000, 5e15)]
    assert shown == ["999,999 bytes", "1.0 MB", "12.3 GB", "5,000.0 TB"]
