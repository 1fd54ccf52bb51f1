"""Benchmark of several GPUs: the table's arithmetic, and the error for bytes that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.speed import devices
from benchmarks.support.scanning import Seconds

FASTA = ">a\nACDEFGHIKL\n>b\nMNPQRSTVWY\n"


def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, *given: str
) -> tuple[int, str, dict[tuple[str, str], list[str]]]:
    """Measure with scans that take 8 s of one GPU and 4 of two; commands with a word write that word."""

    def search(*parts: object) -> str:
        line = [str(part) for part in parts]
        Path(line[line.index("-o") + 1]).write_text(wrong if wrong in line else "the same")
        return ""

    def scan(queries: Path, database: Path, chosen: list[int], memory: int | None) -> Seconds:
        return Seconds(8.0 / len(chosen), 9.0 / len(chosen))

    for name in ("s.fasta", "q.fasta"):
        (tmp_path / name).write_text(FASTA)
    out = tmp_path / "out.txt"
    line = [str(tmp_path / "s.fasta"), "s.h5", str(tmp_path / "q.fasta"), "--runs", "1", "--out", str(out), *given]
    monkeypatch.setattr("sys.argv", ["devices", *line])
    monkeypatch.setattr(devices, "swsearch", search)
    monkeypatch.setattr(devices, "scan", scan)
    with pytest.raises(SystemExit) as caught:
        devices.main()
    text = out.read_text()
    rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in text.splitlines() if " queries, " in row]
    return int(caught.value.code or 0), text, {(row[0], row[1]): row[2:] for row in rows}


def test_the_table_has_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text, rows = run(tmp_path, monkeypatch, "nothing", "--devices", "0,1", "--queries", "2", "--cpu")
    assert (code, "differ" in text) == (0, False)
    assert rows["20 queries, resident", "kernels"] == ["8.000 (8.00 - 8.00)", "4.000 (4.00 - 4.00)", "0.500"]
    assert rows["2 queries, streamed", "scan"] == ["9.000 (9.00 - 9.00)", "4.500 (4.50 - 4.50)", "0.500"]
    assert ("2 queries, resident", "command by as many workers") in rows


@pytest.mark.parametrize("wrong", ["0,1", "local:2", "cpu"])
def test_bytes_that_differ_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    code, text, _ = run(tmp_path, monkeypatch, wrong, "--devices", "0,1", "--queries", "2", "--cpu")
    assert code == 1
    assert "The bytes differ." in text


def test_one_gpu_may_be_given_several_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, rows = run(tmp_path, monkeypatch, "nothing", "--devices", "0,0", "--queries", "2")
    assert {what for _, what in rows} == {"kernels", "scan", "command"}


def test_copies_have_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "swsearch", lambda *parts: "")
    devices.copies_of([("a", "ACD"), ("b", "WY")], 2, tmp_path)
    assert (tmp_path / "copies.fasta").read_text() == ">a_0\nACD\n>b_0\nWY\n>a_1\nACD\n>b_1\nWY\n"
