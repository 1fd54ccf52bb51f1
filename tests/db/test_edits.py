"""Append, remove and merge with records of one identifier, compared with the same done to lists of records."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.databases import Entry, cut_small, drawn, files, held, names, written
from support.samples import sample
from swsearch.db import (
    Database,
    EditResult,
    append_database,
    build_database,
    building,
    merge_databases,
    remove_records,
)
from swsearch.errors import DatabaseError, InputError, OutputError, SwsearchWarning
from swsearch.options.kinds import OnDuplicate


def named(record: Entry) -> str:
    return record[0].split()[0]


def expected(old: list[Entry], new: list[Entry], rule: str) -> list[Entry]:
    """Do to lists what a rule asks for."""
    kept = list(old)
    seen = set(map(named, kept))
    for each in new:
        if rule == "keep" or named(each) not in seen:
            kept.append(each)
        seen.add(named(each))
    return kept


WAYS: dict[str, tuple[str, Any]] = {
    "passes": ("RECORD_BYTES_MET", 1 << 20),
    "equal hashes": ("sums_of", lambda _, starts, ends: ((ends - starts) % 2).astype(np.uint64) << 63),
}
"""Ways to find duplicates that few databases need."""


@pytest.mark.parametrize("way", sample(["as it is", *WAYS], lambda way: way == "as it is"))
@pytest.mark.parametrize("rule", ["skip", "keep"])
@pytest.mark.parametrize("form", ["a.h5", "a.json", "dna.h5"])
def test_rules_do_what_they_do_to_lists(
    tmp_path: Path, rule: OnDuplicate, form: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_small(monkeypatch)
    if way in WAYS:
        monkeypatch.setattr(building, *WAYS[way])
    dna, path = form == "dna.h5", tmp_path / form
    old, middle, new = (drawn((rule, way, n), n, kinds=90, dna=dna) for n in (60, 30, 50))
    options: dict[str, Any] = {"volume_size": 40_000} if form == "a.json" else {"translate": dna}
    build_database(written(tmp_path / "old", old), path, taxids="header", **options)
    with pytest.warns(SwsearchWarning, match="none were given for 30 new records"):
        append_database(path, written(tmp_path / "middle", middle), on_duplicate="keep")
    edited = append_database(path, written(tmp_path / "new", new), on_duplicate=rule, taxids="header")
    after = expected(old + middle, new, rule)
    assert held(path) == after
    kept = len(after) - 90
    assert edited == EditResult(kept, len(new) - kept, 0, len(after))
    with Database.open(path) as database:
        assert sum(source["records"] for source in database.sources()) == len(after)
        counts = np.diff(database.taxids_of(np.arange(len(database))).offsets).tolist()
        assert counts == [int(each not in middle) for each in after]  # which were appended without


@pytest.mark.parametrize("rule", ["skip", "keep"])
@pytest.mark.parametrize("output", ["all.h5", "all.json"])
def test_merged_databases(tmp_path: Path, rule: OnDuplicate, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [drawn((rule, n), n, kinds=80) for n in (50, 1, 70)]
    for number, each in enumerate(parts):
        build_database(written(tmp_path / str(number), each), tmp_path / f"{number}.h5")
    build_database(tmp_path / "2", tmp_path / "2.json", volume_size=40_000)
    cut_small(monkeypatch)
    read = [tmp_path / name for name in ("0.h5", "1.h5", "2.json")]
    size = 80_000 if output.endswith("json") else None
    edited = merge_databases(read, tmp_path / output, on_duplicate=rule, volume_size=size)
    after = expected([], [each for part in parts for each in part], rule)
    assert held(tmp_path / output) == after
    assert edited == EditResult(len(after), 121 - len(after), 0, len(after))


def test_what_is_there_is_refused_by_default(tmp_path: Path) -> None:
    """Duplicates that a database already holds remain."""
    old = written(tmp_path / "old", [("a 1", "MKV"), ("b", "MKW"), ("a 2", "M")])
    other = written(tmp_path / "other", [("c", "MKV"), ("b 2", "W")])
    a, b, volumes = (tmp_path / name for name in ("a.h5", "b.h5", "v.json"))
    build_database(old, a)
    build_database(old, volumes, volume_size=1 << 20)
    build_database(other, b)
    more, before = written(tmp_path / "more", [("d", "MKV")]), files(tmp_path)
    for path in (a, volumes):
        words = rf"{path.name}: more than one record is named 'b'; nothing was appended; --on-dup"
        with pytest.raises(InputError, match=words):
            append_database(path, other)
        assert append_database(path, old, on_duplicate="skip") == EditResult(0, 3, 0, 3)
    with pytest.raises(InputError, match=r"2 identifiers .*: '[ab]', '[ab]'; --on-duplicate skip"):
        merge_databases([a, b], tmp_path / "c.h5")
    assert files(tmp_path) == before
    for path in (a, volumes):
        assert append_database(path, more) == EditResult(1, 0, 0, 4)


@pytest.mark.parametrize("form", ["a.h5", "a.json", "dna.h5"])
def test_records_are_removed(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Volumes without any of them stay as they are; those that lose all of theirs go."""
    cut_small(monkeypatch)
    dna, path = form == "dna.h5", tmp_path / form
    records = [*drawn("first", 20, dna=dna), *drawn(3, 60, kinds=30, dna=dna), ("s1 OX=3", "AAA")]
    records += [("sp|Q12345|X_Y z OX=7", "ACG"), ("nothing OX=9", "")]
    options: dict[str, Any] = {"translate": True} if dna else {"mask": "lower"}
    size = {"volume_size": 50_000} if form == "a.json" else {}
    build_database(written(tmp_path / "in", records), path, taxids="header", **options, **size)
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"1 of 2 identifiers not found: 'nobody'; nothing was removed"):
        remove_records(path, ["s1", "nobody"])
    with pytest.raises(InputError, match="no residues would be left"):
        remove_records(path, [named(each) for each in records if each[1]])
    assert files(tmp_path) == before
    gone = [each for each in records if named(each) in ("s1", "s2", "sp|Q12345|X_Y")]
    edited = remove_records(path, ["Q12345", "s1", "s2", "nobody"], ignore_missing=True)
    assert edited == EditResult(0, 0, len(gone), len(records) - len(gone))
    after = [each for each in records if each not in gone]
    assert held(path) == after
    with Database.open(path) as database:
        assert database.mask == options.get("mask", "none")
        found = database.taxids_of(np.arange(len(database)))
        assert found.data.tolist() == [int(each[0].split("OX=")[1]) for each in after]
        kept = {Path(volume.path).name for volume in database.volumes}
    if form == "a.json":
        assert len(before) - 2 > 3 and kept & {*before}
        assert all((tmp_path / name).read_bytes() == before[name] for name in kept & {*before})
        remove_records(path, [named(each) for each in after if "first" not in named(each)])
        assert held(path) == after[:20]
        with Database.open(path) as database:
            assert len(database.volumes) < len(kept)
            kept = {Path(volume.path).name for volume in database.volumes}
    assert names(tmp_path) == sorted({"in", form} | (kept if form == "a.json" else set()))


def test_what_does_not_go_together_stays_apart(tmp_path: Path) -> None:
    source, one, masked = written(tmp_path / "in", [("a", "MKV")]), tmp_path / "a.h5", tmp_path / "masked.h5"
    build_database(source, one)
    build_database(source, masked, mask="lower")
    for work, error, words in (
        (lambda: remove_records(tmp_path / "none.h5", ["a"]), DatabaseError, "no such database"),
        (lambda: append_database(tmp_path / "none.h5", source), DatabaseError, "no such database"),
        (lambda: append_database(source, source), DatabaseError, "is not a swsearch database"),
        (lambda: append_database(one, one), OutputError, "is one of the inputs"),
        (lambda: merge_databases([one, masked], tmp_path / "out.h5"), DatabaseError, "with the same --mask"),
    ):
        with pytest.raises(error, match=words):
            work()
    assert names(tmp_path) == ["a.h5", "in", "masked.h5"]


@pytest.mark.parametrize("size", [None, 1 << 20])
def test_a_database_that_changes_while_records_are_removed(
    tmp_path: Path, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "db", tmp_path / "other"
    build_database(written(tmp_path / "in", drawn(1, 9)), path, volume_size=size)
    build_database(written(tmp_path / "new", [("a", "MKV")]), other, volume_size=size)
    read = Database.find_many_as_arrays

    def changing(*given: Any) -> Any:
        shutil.move(other, path)  # by a program that knows no lock
        return read(*given)

    monkeypatch.setattr(Database, "find_many_as_arrays", changing)
    with pytest.raises(OutputError, match="changed while records were removed; remove them again"):
        remove_records(path, ["s1_1"])
    assert held(path) == [("a", "MKV")]
