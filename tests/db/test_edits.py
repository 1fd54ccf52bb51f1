"""Append, remove and merge with records of one identifier, compared with the same done to lists of records."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from swsearch.db import (
    Database,
    Edited,
    append_database,
    build_database,
    duplicates,
    entries,
    merge_databases,
    remove_records,
    verify_database,
)
from swsearch.db.duplicates import DUPLICATE_RULES
from swsearch.db.names import NamedPool
from swsearch.errors import DatabaseError, InputError, OutputError, SwsearchWarning
from swsearch.options.words import OnDuplicate

Record = tuple[str, str]


def drawn(draw: random.Random, n: int, kinds: int) -> list[Record]:
    """Draw records, of which several may have one identifier."""
    return [
        (
            f"s{draw.randrange(kinds)} {draw.random()} OX={draw.randrange(1, 5)}",
            "".join(draw.choices("MKVWacdX", k=k)),
        )
        for k in (draw.randrange(1, 90) for _ in range(n))
    ]


def written(folder: Path, name: str, records: list[Record]) -> Path:
    (folder / name).write_text("".join(f">{header}\n{letters}\n" for header, letters in records))
    return folder / name


def held(path: Path) -> list[Record]:
    verify_database(path)
    with Database.open(path) as database:
        return [(database.header(k).decode(), database.sequence(k)) for k in range(len(database))]


def expected(old: list[Record], new: list[Record], rule: str) -> list[Record]:
    """Do to lists what a rule asks for."""
    kept = list(old) if rule != "replace" else [each for each in old if named(each) not in set(map(named, new))]
    seen = set(map(named, kept))
    for number, each in enumerate(new):
        later = set(map(named, new[number + 1 :]))
        if (
            rule == "keep"
            or (rule == "skip" and named(each) not in seen)
            or (rule == "replace" and named(each) not in later)
        ):
            kept.append(each)
        seen.add(named(each))
    return kept


def named(record: Record) -> str:
    return record[0].split()[0]


@pytest.fixture(
    params=["as it is", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("equal hashes", "passes"))]
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Find duplicates in ways that few databases need."""
    if request.param == "equal hashes":
        monkeypatch.setattr(NamedPool, "sums", lambda self, starts, lengths: (lengths % 2).astype(np.uint64) << 63)
    if request.param == "passes":
        monkeypatch.setattr(duplicates, "RECORD_BYTES_MET", 1 << 20)
    return str(request.param)


@pytest.mark.parametrize(
    "rule", ["replace", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("skip", "keep"))]
)
def test_rules_do_what_they_do_to_lists(tmp_path: Path, rule: OnDuplicate, way: str) -> None:
    draw = random.Random(f"{rule} {way}")
    old, middle, new = drawn(draw, 60, 90), drawn(draw, 30, 90), drawn(draw, 60, 90)
    build_database(written(tmp_path, "old", old), tmp_path / "a.h5", taxids="header")
    with pytest.warns(SwsearchWarning, match="none were given for 30 new records"):
        append_database(tmp_path / "a.h5", written(tmp_path, "middle", middle), on_duplicate="keep")
    edited = append_database(tmp_path / "a.h5", written(tmp_path, "new", new), on_duplicate=rule, taxids="header")
    after = expected(old + middle, new, rule)
    assert held(tmp_path / "a.h5") == after
    kept = sum(each in after for each in new)
    assert edited == Edited(kept, len(new) - kept, len(old) + len(middle) + kept - len(after), len(after))
    with Database.open(tmp_path / "a.h5") as database:
        assert sum(source["records"] for source in database.sources()) == len(after)
        of = database.taxids_of(np.arange(len(database)))
        counts = np.diff(of.offsets).tolist()
        assert counts == [int(each not in middle) for each in after]  # which were appended without


@pytest.mark.parametrize(
    "rule", ["skip", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("replace", "keep"))]
)
@pytest.mark.parametrize("volume_size", [None, pytest.param(40_000, marks=pytest.mark.exhaustive)])
def test_merged_databases(tmp_path: Path, rule: OnDuplicate, volume_size: int | None) -> None:
    draw = random.Random(f"{rule} {volume_size}")
    parts = [drawn(draw, n, 80) for n in (50, 1, 70)]
    for number, each in enumerate(parts):
        build_database(written(tmp_path, str(number), each), tmp_path / f"{number}.h5")
    build_database(tmp_path / "2", tmp_path / "2.json", volume_size=40_000)
    output = tmp_path / ("all.json" if volume_size else "all.h5")
    read = [tmp_path / name for name in ("0.h5", "1.h5", "2.json")]
    edited = merge_databases(read, output, on_duplicate=rule, volume_size=volume_size)
    after = expected([], [each for part in parts for each in part], rule)
    assert held(output) == after
    assert edited == Edited(len(after), 121 - len(after), 0, len(after))


def test_what_is_there_is_refused_by_default(tmp_path: Path) -> None:
    build_database(written(tmp_path, "old", [("a 1", "MKV"), ("b", "MKW"), ("a 2", "M")]), tmp_path / "a.h5")
    build_database(written(tmp_path, "other", [("c", "MKV"), ("b 2", "W")]), tmp_path / "b.h5")
    before = (tmp_path / "a.h5").read_bytes()
    with pytest.raises(InputError, match=r"a.h5: more than one record is named 'b'; nothing was appended; --on-dup"):
        append_database(tmp_path / "a.h5", tmp_path / "other")
    with pytest.raises(InputError, match=r"2 identifiers .*: '[ab]', '[ab]'; --on-duplicate skip"):
        merge_databases([tmp_path / "a.h5", tmp_path / "b.h5"], tmp_path / "c.h5")
    assert append_database(tmp_path / "a.h5", tmp_path / "old", on_duplicate="skip") == Edited(0, 3, 0, 3)
    assert (tmp_path / "a.h5").read_bytes() == before
    # what stands twice in the database stays so
    assert append_database(tmp_path / "a.h5", written(tmp_path, "more", [("d", "MKV")])) == Edited(1, 0, 0, 4)
    assert {each.name for each in tmp_path.iterdir()} == {"old", "other", "more", "a.h5", "b.h5"}


def test_records_are_removed(tmp_path: Path) -> None:
    draw = random.Random(3)
    records = [*drawn(draw, 60, 30), ("s1 OX=3", "MMM"), ("sp|Q12345|X_Y z OX=7", "MKV"), ("nothing OX=9", "")]
    build_database(written(tmp_path, "in", records), tmp_path / "a.h5", mask="lower", taxids="header")
    before = held(tmp_path / "a.h5")
    with pytest.raises(InputError, match=r"1 of 2 identifiers not found: 'nobody'; nothing was removed"):
        remove_records(tmp_path / "a.h5", ["s1", "nobody"])
    assert held(tmp_path / "a.h5") == before
    gone = [each for each in records if named(each) in ("s1", "s2", "sp|Q12345|X_Y")]
    edited = remove_records(tmp_path / "a.h5", ["Q12345", "s1", "s2", "nobody"], ignore_missing=True)
    assert edited == Edited(0, 0, len(gone), len(records) - len(gone))
    after = [each for each in records if each not in gone]
    assert held(tmp_path / "a.h5") == after
    with Database.open(tmp_path / "a.h5") as database:
        assert database.mask == "lower"
        found = database.taxids_of(np.arange(len(database)))
        assert found.taxids.tolist() == [int(each[0].split("OX=")[1]) for each in after]
        assert b"".join(entries.fasta_of(database, np.arange(2))).decode() == "".join(
            f">{header}\n{letters[:60]}\n{letters[60:]}{chr(10) * (len(letters) > 60)}"
            for header, letters in after[:2]
        )
    every = [named(each) for each in after if each[1]]
    with pytest.raises(InputError, match="no residues would be left"):
        remove_records(tmp_path / "a.h5", every)
    assert held(tmp_path / "a.h5") == after
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.h5", "in"]


def test_what_cannot_be_changed(tmp_path: Path) -> None:
    source = written(tmp_path, "in", [("a", "MKV"), ("b", "MKV")])
    build_database(source, tmp_path / "a.json", volume_size=1 << 20)
    build_database(source, tmp_path / "a.h5")
    build_database(source, tmp_path / "masked.h5", mask="lower")
    with pytest.raises(DatabaseError, match=r"is a manifest of volumes, expected a database file; merge the volumes"):
        remove_records(tmp_path / "a.json", ["a"])
    with pytest.raises(DatabaseError, match="no such database"):
        remove_records(tmp_path / "none.h5", ["a"])
    with pytest.raises(DatabaseError, match="with the same --mask"):
        merge_databases([tmp_path / "a.h5", tmp_path / "masked.h5"], tmp_path / "c.h5", on_duplicate="keep")
    with pytest.raises(OutputError, match="is one of the inputs"):
        merge_databases(tmp_path / "a.h5", tmp_path / "a.h5")
    with pytest.raises(OutputError, match="is one of the inputs"):
        merge_databases([tmp_path / "a.json"], tmp_path / "a.000.h5")
    assert DUPLICATE_RULES == ("error", "skip", "replace", "keep")


def test_a_database_that_changes_while_records_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path, "in", [("a", "MKV"), ("b", "MKV")])
    build_database(source, tmp_path / "a.h5")
    taken = entries.rows_of

    def changing(chunk):
        shutil.copy(tmp_path / "a.h5", tmp_path / "copy")
        (tmp_path / "copy").replace(tmp_path / "a.h5")  # by a program that knows no lock
        return taken(chunk)

    monkeypatch.setattr("swsearch.db.gathered.rows_of", changing)
    with pytest.raises(OutputError, match="changed while records were removed; remove them again"):
        remove_records(tmp_path / "a.h5", ["a"])
    assert len(held(tmp_path / "a.h5")) == 2
