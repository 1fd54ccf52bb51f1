"""The records that the benchmark of builds makes are what it says."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from benchmarks.speed import build
from support.db_helpers import naive_fasta


def test_made_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "AT_ONCE", 7)
    build.make(tmp_path / "made.fasta", 20)
    records = naive_fasta((tmp_path / "made.fasta").read_bytes())
    assert [header for header, _ in records] == [b"r%09d" % number for number in range(20)]
    assert {len(letters) for _, letters in records} == {build.RESIDUES} and len({*records}) == 20


def test_numbers() -> None:
    assert [build.number(text) for text in ("5M", "100M", "30", "2_000K")] == [5_000_000, 100_000_000, 30, 2_000_000]
    with pytest.raises(argparse.ArgumentTypeError, match="no number such as 5M"):
        build.number("many")


def test_bytes_on_disk(tmp_path: Path) -> None:
    """Of files that are written, and also of those without a name."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    before = build.written_by(os.getpid())
    with (tmp_path / "written").open("w+b") as file, (tmp_path / "written").open("rb"):
        file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        (tmp_path / "written").unlink()
        assert build.written_by(os.getpid()) - before >= 1 << 19
    assert build.written_by(-1) == 0
