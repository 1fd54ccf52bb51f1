"""Building: within the memory that is allowed, and nothing left behind whatever happens."""

from __future__ import annotations

import gc
import gzip
import random
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.databases import drawn, files, held, names, written
from support.db_helpers import HBA, HBB
from swsearch.db import Database, append_database, build_database, merge_databases, split_database, verify_database
from swsearch.db.fasta import FastaReader
from swsearch.errors import MemoryLimitError, OptionError, OutputError, SequenceError

MIB = 1 << 20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "in.fasta", drawn("build", 1000))


def test_memory_that_is_asked_for(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_database([source], str(tmp_path / "out.h5"), memory=64 * MIB)
    with pytest.raises(OptionError, match="at least one"):
        build_database([], tmp_path / "other.h5")
    for memory in (64 * MIB - 1, 0, -5, 1e9, "1G", True):
        with pytest.raises(OptionError, match=r"memory: got .* at least"):
            build_database(source, tmp_path / "other.h5", memory=memory)  # type: ignore[arg-type]
    long = written(tmp_path / "long.fasta", [("short", "MKV"), ("long", "M" * (33 * MIB))])
    with pytest.raises(
        MemoryLimitError, match=r"record 2 of .*long.fasta has more than 33,554,432 .* than 6[4-9] MiB"
    ):
        build_database(long, tmp_path / "long.h5", memory=64 * MIB)
    monkeypatch.setattr("swsearch.db.records.MAX_LENGTH", 20)
    with pytest.raises(SequenceError, match=r"record 2 has more than 20 residues, expected at most so many"):
        build_database(written(tmp_path / "long.fasta", [("a", "M" * 20), ("b", "M" * 21)]), tmp_path / "long.h5")
    assert names(tmp_path) == ["in.fasta", "long.fasta", "out.h5"]


@contextmanager
def at_most(n_bytes: int) -> Iterator[None]:
    """Fail if Python and numpy hold more memory than this at any time."""
    gc.collect()
    gc.freeze()  # how often garbage is collected follows from how much is there that stays: here as in a new process
    gc.collect()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < n_bytes
    finally:
        tracemalloc.stop()
        gc.unfreeze()


RECORDS: dict[str, tuple[int, Callable[[random.Random, int], str]]] = {
    "any length": (500_000, lambda pick, n: "".join(f">r\n{'M' * pick.randint(1, 60)}\n" for _ in range(n))),
    "masked": (400_000, lambda pick, n: f">r and more\n{'Mm' * 15}\n" * n),
    "long headers": (50_000, lambda pick, n: f">r {'x' * 3000}\nMK\n" * n),
    "long records": (2_000, lambda pick, n: "".join(f">r\n{'M' * pick.randint(1, 35_000)}\n" for _ in range(n))),
    "chromosomes": (6, lambda pick, n: f">r\n{'ACGTN' * (5 * MIB)}\n" * n),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", RECORDS)
def test_a_million_records_within_the_smallest_memory(tmp_path: Path, kind: str) -> None:
    n, text = RECORDS[kind]
    (tmp_path / "in.fasta").write_text(text(random.Random(1), n))
    with at_most(64 * MIB):
        build_database(tmp_path / "in.fasta", tmp_path / "out.h5", memory=64 * MIB, translate=kind == "chromosomes")
    verify_database(tmp_path / "out.h5")


def test_edits_within_the_smallest_memory(tmp_path: Path) -> None:
    """A large segment is read in parts."""
    draw = random.Random(2)
    for name in "ab":
        records = [(f"{name}{k}", "M" * draw.randint(1, 400)) for k in range(80_000)]
        written(tmp_path / name, records)
    out = tmp_path / "out.h5"
    build_database(tmp_path / "a", out)
    works: list[Callable[[], Any]] = [
        lambda: append_database(out, tmp_path / "b", memory=64 * MIB, on_duplicate="skip"),
        lambda: merge_databases(out, tmp_path / "merged.h5", memory=64 * MIB),
        lambda: split_database(out, tmp_path / "split.json", memory=64 * MIB, volume_size=16 * MIB),
    ]
    for work in works:
        with at_most(64 * MIB):
            work()
    with Database.open(tmp_path / "split.json") as database, Database.open(tmp_path / "merged.h5") as merged:
        assert (merged.lengths == database.lengths).all() and len(merged) == 160_000


def test_several_inputs(tmp_path: Path, source: Path) -> None:
    packed = tmp_path / "b.fasta.gz"
    packed.write_bytes(gzip.compress(f">x\n{HBA}".encode()))  # no final newline: its record must not run on
    calls: list[tuple[int, int | None]] = []
    with Database.build(
        [source, packed, source], tmp_path / "out.h5", progress=lambda done, total: calls.append((done, total))
    ) as db:
        assert (db.n_subjects, db.sequence(1000), db.identifier(1001)) == (2001, HBA, "s0_build")
        sources = db.info()["segments"][0]["sources"]
    assert [each["path"] for each in sources] == [str(source), str(packed), str(source)]
    assert [each["records"] for each in sources] == [1000, 1, 1000]
    total = 2 * source.stat().st_size + packed.stat().st_size
    assert calls[-1] == (total, total) and calls == sorted(calls)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no FASTA records"),
        (b">only a header", "no residues in 1 records"),
        (b">a\n>b\n\n", "no residues in 2 records"),
        (b">a\nM-V\n", "line 2: '-' is a gap"),
        (None, "no such file"),
    ],
)
def test_bad_input_leaves_what_was_there(tmp_path: Path, source: Path, text: bytes | None, words: str) -> None:
    bad, out = tmp_path / "bad.fasta", tmp_path / "out.h5"
    if text is not None:
        bad.write_bytes(text)
    inputs = [bad] if "no residues" in words else [source, bad]
    for make in (lambda: None, lambda: build_database(source, out)):
        make()
        before = files(tmp_path)
        with pytest.raises(SequenceError, match=words):
            build_database(inputs, out)
        assert files(tmp_path) == before
    with pytest.raises(SequenceError, match=words):
        append_database(out, inputs, on_duplicate="keep")
    assert files(tmp_path) == before


def test_replacing(tmp_path: Path, source: Path) -> None:
    output, link = tmp_path / "out.h5", tmp_path / "link.h5"
    output.touch(mode=0o640)  # an empty file, as mktemp makes it, is nobody's data
    build_database(source, output)
    link.symlink_to(output)
    with Database.open(output) as old:
        build_database(written(tmp_path / "b.fasta", [("b", HBB)]), link)
        assert old.identifier(999) == "s999_build"  # whoever has the old one open keeps it
    assert link.is_symlink() and output.stat().st_mode & 0o777 == 0o640
    assert held(output) == [("b", HBB)] and names(tmp_path) == ["b.fasta", "in.fasta", "link.h5", "out.h5"]


@pytest.mark.parametrize("name", ["in.fasta", "in.fasta.gz"])
def test_a_disk_without_room_is_seen_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    letters = "".join(random.Random(3).choices("ACDEFGHIKLMNPQRSTVWYX", k=300_000))
    text = f">a\n{letters}\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=100_000, total=1 << 40))
    monkeypatch.setattr(FastaReader, "__iter__", lambda self: pytest.fail("it was read"))
    with pytest.raises(OutputError, match=r"out.h5: 0.1 MB are free there, expected at least the 0.[23] MB of"):
        build_database(tmp_path / name, tmp_path / "out.h5")
    assert names(tmp_path) == [name]
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=0, total=0))  # it does not say
    build_database(tmp_path / name, tmp_path / "out.h5")
