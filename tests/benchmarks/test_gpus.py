"""What several GPUs give: the table's arithmetic, and that bytes which differ are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed import gpus

FASTA = ">a\nACDEFGHIKL\n>b\nMNPQRSTVWY\n"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let commands write what they were asked for with, but for places; return them as they come."""
    found: list[list[str]] = []

    def run(*parts: object) -> str:
        line = [str(part) for part in parts]
        found.append(line)
        Path(line[line.index("-o") + 1]).write_text("the same\n")
        return ""

    monkeypatch.setattr(gpus, "swsearch", run)
    return found


class FakeScans:
    """Takes 8 s on one GPU, a little more than its share on several, and a tenth more where it is streamed."""

    def __init__(self, queries: Path, database: Path, devices: list[int], memory: int | None) -> None:
        assert database.name == "copies.h5"
        self.seconds = (
            8.0 / len(devices) * (1.0 if len(devices) == 1 else 1.0 / 0.96) * (1.0 if memory is None else 1.1)
        )

    def run(self) -> tuple[float, float]:
        return self.seconds, self.seconds + 1.0

    def close(self) -> None:
        pass


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *given: str) -> tuple[int, str]:
    for name in ("s.fasta", "q.fasta"):
        (tmp_path / name).write_text(FASTA)
    out = tmp_path / "out.txt"
    line = [str(tmp_path / "s.fasta"), "s.h5", str(tmp_path / "q.fasta"), "--runs", "1", "--out", str(out), *given]
    monkeypatch.setattr("sys.argv", ["gpus", *line])
    monkeypatch.setattr(gpus, "Scans", FakeScans)
    with pytest.raises(SystemExit) as caught:
        gpus.main()
    return int(caught.value.code or 0), out.read_text() if out.exists() else ""


def rows_of(text: str) -> list[list[str]]:
    lines = text.partition("| what |")[2].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]


def test_the_table_has_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]) -> None:
    code, text = run(tmp_path, monkeypatch, "--devices", "0,1,2,3", "--counts", "2,4", "--queries", "2")
    assert code == 0
    assert "The bytes are the same in all 5 places." in text
    rows = rows_of(text)
    assert [(row[0].partition(":")[0], row[1]) for row in rows] == [
        ("many queries, command", "2"), ("a worker a GPU", "2"), ("many queries, command", "4"),
        ("a worker a GPU", "4"), ("20 queries, kernels", "2"), ("20 queries, kernels", "4"),
        ("the same, streamed", "1"), ("the same, streamed", "2"), ("the same, streamed", "4"),
    ]  # fmt: skip
    kernels = [row for row in rows if row[0].startswith("20 queries, kernels")]
    assert kernels[1][2:] == ["8.000", "2.083", "0.960", ">= 0.95", "yes"]
    streamed = [row for row in rows if row[0].startswith("the same, streamed")]
    assert streamed[0][2:] == ["8.000", "8.800", "0.909", ">= 0.9", "yes"]
    devices = [line[line.index("--device") + 1] for line in commands if "--device" in line]
    assert devices == ["0", "0,1", "0,1,2,3", "0", "0,1", "0,1,2,3"]
    assert [line[line.index("--cluster") + 1] for line in commands if "--cluster" in line] == [
        "local:4", "local:2", "local:4",
    ]  # fmt: skip


def test_one_gpu_may_be_given_several_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]
) -> None:
    code, text = run(tmp_path, monkeypatch, "--devices", "0,0", "--counts", "2", "--queries", "2")
    assert code == 0
    assert "workers" not in text.partition("| what |")[2]
    assert not any("--cluster" in line for line in commands)


def test_bytes_that_differ_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_commands(*parts: Any) -> str:
        line = [str(part) for part in parts]
        Path(line[line.index("-o") + 1]).write_text("0,0" if "0,0" in line else "the same")
        return ""

    monkeypatch.setattr(gpus, "swsearch", run_commands)
    code, text = run(tmp_path, monkeypatch, "--devices", "0,0", "--counts", "2", "--queries", "2")
    assert code == 1
    assert "The bytes differ." in text


def test_copies_have_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def build(*parts: Any) -> str:
        seen.append(Path(parts[2]).read_text())
        return ""

    monkeypatch.setattr(gpus, "swsearch", build)
    gpus.many_copies([("a", "ACD"), ("b", "WY")], 2, tmp_path)
    assert seen == [">a_0\nACD\n>b_0\nWY\n>a_1\nACD\n>b_1\nWY\n"]
    assert not list(tmp_path.iterdir())


def test_more_gpus_than_there_are_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(tmp_path, monkeypatch, "--devices", "0", "--counts", "2")
    assert code == 2
    assert "--counts: got 2, expected at most the 1 of --devices" in capsys.readouterr().err
