"""Inputs and measurements of the benchmark of whole commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.speed import commands
from benchmarks.support.timing import bytes_on_disk
from support.db_helpers import naive_fasta


def test_made_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "AT_ONCE", 7)
    commands.make(tmp_path / "made.fasta", 20)
    records = naive_fasta((tmp_path / "made.fasta").read_bytes())
    assert [header for header, _ in records] == [b"r%09d" % number for number in range(20)]
    assert {len(letters) for _, letters in records} == {commands.MADE} and len({*records}) == 20


def test_bytes_on_disk(tmp_path: Path) -> None:
    """Of files that are written, and also of those without a name."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    before = bytes_on_disk(os.getpid())
    with (tmp_path / "written").open("w+b") as file, (tmp_path / "written").open("rb"):
        file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        (tmp_path / "written").unlink()
        assert bytes_on_disk(os.getpid()) - before >= 1 << 19
    assert bytes_on_disk(-1) == 0
