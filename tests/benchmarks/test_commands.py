"""Inputs and measurements of the benchmark of whole commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.speed import command_cases, commands
from benchmarks.support.scanning import Seconds
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


@pytest.mark.parametrize(("wrong", "expected"), [("none", "0.500"), ("0,1", "differ"), ("local:2", "differ")])
def test_places_of_gpus_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, expected: str
) -> None:
    """Scans take 8 s of one GPU and 4 of two; commands with a word write that word."""

    def search(*parts: object) -> str:
        line = [str(part) for part in parts]
        Path(line[line.index("-o") + 1]).write_text(wrong if wrong in line else "the same")
        return ""

    def scan(*_: object, device: int | list[int], **__: object) -> Seconds:
        return Seconds(8.0, 9.0) if isinstance(device, int) else Seconds(4.0, 4.5)

    files = [tmp_path / name for name in ("s.fasta", "s.h5", "q.fasta")]
    for path in files:
        path.write_text(">a\nACDEFGHIKL\n>b\nMNPQRSTVWY\n")
    out = tmp_path / "out.txt"
    words = ["--engine", "gpu", "--devices", "0,1", "--many", "2", "--runs", "1", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["commands", "places", *map(str, files), *words])
    monkeypatch.setattr(command_cases, "swsearch", search)
    monkeypatch.setattr(command_cases, "scan_seconds", scan)
    if expected == "differ":
        with pytest.raises(SystemExit, match="the bytes differ"):
            commands.main()
        return
    commands.main()
    rows = [
        [cell.strip() for cell in row.split("|")[1:-1]] for row in out.read_text().splitlines() if "queries," in row
    ]
    assert {tuple(row[:2]) for row in rows} == {
        (f"{n} queries, {kind}", what) for n in (20, 2) for kind in ("resident", "streamed")
        for what in ("command", "kernels", "scan")
    }  # fmt: skip
    assert ["2 queries, streamed", "scan", "GPUs 0,1", "4.500 (4.50 - 4.50)", "0.500"] in rows
    assert any(row[:3] == ["20 queries, resident", "command", "as many workers"] for row in rows)
