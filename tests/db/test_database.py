"""Round trips of records through databases, by every way to make a database."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.databases import Entry, names, written
from support.db_helpers import LETTERS
from support.samples import random_cases
from swsearch.alphabet import PAD, PROTEIN
from swsearch.blocks import LANES
from swsearch.db import Database, append_database, build_database, is_database, verify_database
from swsearch.errors import DatabaseDamageError, DatabaseError, OptionError, SequenceError


def some_entries(n: int, seed: int = 0, longest: int = 300) -> list[Entry]:
    pick = random.Random(seed)
    letters = LETTERS + LETTERS[:20].lower()
    return [(f"id{i} description {i}", "".join(pick.choices(letters, k=pick.randint(0, longest)))) for i in range(n)]


def check(db: Database, entries: list[Entry], max_bytes: int = 20_000) -> None:
    """Compare everything that a database says with what was put in."""
    assert (db.n_subjects, len(db)) == (len(entries), len(entries))
    assert db.n_residues == sum(len(letters) for _, letters in entries)
    assert db.lengths.dtype == np.int32
    assert db.lengths.tolist() == [len(letters) for _, letters in entries]
    for index, (header, letters) in enumerate(entries):
        identifier, _, description = header.partition(" ")
        assert db.sequence(index) == letters
        assert PROTEIN.decode(db.codes(index)) == letters.upper()
        assert db.codes(index).flags.c_contiguous and db.codes(index).dtype == np.uint8
        assert db.header(index) == header.encode()
        assert (db.identifier(index), db.description(index)) == (identifier, description)
    seen: list[int] = []
    for chunk in db.chunks(max_bytes):
        assert chunk.residues.flags.c_contiguous and chunk.residues.shape[1] == LANES
        assert chunk.residues.nbytes <= max_bytes or chunk.n_blocks == 1
        assert chunk.lengths.dtype == np.int32 and chunk.subjects.dtype == np.int64
        seen += chunk.subjects.tolist()
        for place, subject in enumerate(chunk.subjects.tolist()):
            assert PROTEIN.decode(chunk.subject(place)) == entries[subject][1].upper()
        assert (chunk.residues != PAD).sum() == chunk.lengths.sum()
    assert sorted(seen) == list(range(len(entries)))


@pytest.fixture
def entries() -> list[Entry]:
    special = [0, 1, 7, 8, 9, 16, 24, 63, 64, 65, 127, 128, 0, 8, 64]
    return [(f"len{n} twin", (LETTERS * 5)[:n]) for n in special] + some_entries(150) + [("len8", "MKV")]


@pytest.fixture
def path(tmp_path: Path, entries: list[Entry]) -> Path:
    build_database(written(tmp_path / "in.fasta", entries), tmp_path / "out.h5")
    return tmp_path / "out.h5"


@pytest.mark.parametrize("max_bytes", [1, 20_000, 1 << 30])
def test_what_goes_in_comes_out(path: Path, entries: list[Entry], max_bytes: int) -> None:
    with Database.open(path) as db:
        check(db, entries, max_bytes)
        info = json.loads(json.dumps(db.info()))
        assert db.name == str(path) and "166 subjects" in repr(db)
    counts = verify_database(path)
    assert (counts["subjects"], counts["bytes"], info["n_bytes"]) == (len(entries), *[path.stat().st_size] * 2)
    assert info["format_version"] == 4 and info["letters"] == LETTERS
    assert info["n_empty"] == sum(not letters for _, letters in entries) > 1
    assert info["longest"] == max(len(letters) for _, letters in entries)
    assert [source["records"] for source in info["segments"][0]["sources"]] == [len(entries)]


def test_a_database_larger_than_its_memory_goes_to_a_file(
    tmp_path: Path, path: Path, entries: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swsearch.db.building.total_bytes", lambda _: None)  # as of a pipe
    before = names(tmp_path)
    with Database.from_fasta(tmp_path / "in.fasta") as db:
        check(db, entries)
        assert names(tmp_path) == before and json.dumps(db.info())


@random_cases(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entries=st.lists(
        st.tuples(st.text("abz09|._", min_size=1, max_size=10), st.text(LETTERS + LETTERS[:20].lower(), max_size=80)),
        min_size=1, max_size=140,
    ).filter(lambda entries: any(letters for _, letters in entries))
)  # fmt: skip
def test_round_trip_of_anything(tmp_path: Path, entries: list[Entry]) -> None:
    with Database.from_records(entries) as db:
        check(db, entries, 4096)
    with Database.build(written(tmp_path / "in.fasta", entries), tmp_path / "out.h5") as db:
        check(db, entries, 4096)
    verify_database(tmp_path / "out.h5")


def test_masks_that_buffers_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.db.building.BUFFER_BYTES", 16)
    entries = [("a", "m" * 100), ("b", "m" * 50 + "K" * 50), ("c", ""), ("d", "mK" * 40), ("e", "kkkk")]
    written(tmp_path / "in.fasta", entries)
    with Database.from_fasta(tmp_path / "in.fasta") as db:
        check(db, entries)
        assert db.info()["n_masked"] == 100 + 50 + 40 + 4
    build_database(tmp_path / "in.fasta", tmp_path / "out.h5")
    verify_database(tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["segments/0/mask_offsets"][:].tolist() == [0, 1, 2, 2, 42, 43]


def test_ordinals_outside_are_refused(path: Path) -> None:
    with Database.open(path) as db:
        for method, index in product((db.codes, db.sequence, db.identifier, db.description, db.header), (-1, 166)):
            with pytest.raises(IndexError, match="expected 0 to 165"):
                method(index)
        with pytest.raises(OptionError):
            next(db.chunks(0))


def test_other_tools_can_read_it(path: Path) -> None:
    """HDF5 describes each array as the contents do: `verify_database` compares them."""
    assert path.read_bytes().startswith(b"swsearch database\nformat 4\nbytes ") and is_database(path)
    with h5py.File(path) as file:
        assert (file.userblock_size, file.attrs["format"]) == (512, b"swsearch database")
        assert all(each.chunks is None and each.dtype.kind in "ui" for each in file["segments/0"].values())


def test_records_in_memory_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.db.python_records.RECORDS_PER_BATCH", 9)
    with Database.from_records(some_entries(200), name="mine") as db:
        check(db, some_entries(200))
        assert db.name == "mine" and json.loads(json.dumps(db.info()))["n_bytes"] is None


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([("a", "MK-V")], "record 'a': '-' is a gap character.*position 3"),
        ([("", "MKV")], "got identifier ''"),
        ([("a\nb", "MKV")], "line ends"),
        ([], "no residues in 0 records"),
        ([("a", ""), ("b", " ")], "no residues in 2 records"),
    ],
)
def test_records_that_are_refused(records: list[Entry], words: str) -> None:
    with pytest.raises(SequenceError, match=words):
        Database.from_records(records)


NONE = {
    "": "is a directory",
    "none.h5": "no such database",
    "in.fasta": "build one from FASTA",
    "pipe": "is a pipe or",
}


def test_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text(">a\nMKV\n")
    os.mkfifo(tmp_path / "pipe")
    for (name, words), call in product(NONE.items(), (Database.open, verify_database)):
        with pytest.raises(DatabaseError, match=words):
            call(tmp_path / name)
        assert not is_database(tmp_path / name)


@pytest.mark.parametrize("userblock", [0, 512, 2048])
def test_foreign_hdf5_is_no_damaged_database(tmp_path: Path, userblock: int) -> None:
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=userblock) as file:
        file["segments/0/residues"] = np.zeros(5)
    assert is_database(tmp_path / "x.h5")
    for call in (Database.open, verify_database):
        with pytest.raises(DatabaseError, match="is HDF5 but not a swsearch database") as caught:
            call(tmp_path / "x.h5")
        assert not isinstance(caught.value, DatabaseDamageError)


def test_mixed_chunks_are_the_same_chunks_in_another_order():
    sequences = ["A" * n for n in range(1, 1500)]
    with Database.from_records(sequences) as database:
        plain = list(database.chunks(64 * 64 * 8))
        mixed = list(database.chunks(64 * 64 * 8, mixed=True))
    assert len(plain) > 20
    assert sorted(tuple(chunk.subjects) for chunk in mixed) == sorted(tuple(chunk.subjects) for chunk in plain)
    longest = [int(chunk.lengths[0]) for chunk in mixed]
    assert longest[0] == 1499
    assert longest[1:7] == sorted(longest)[:6]  # the shortest come between the longest
    assert longest[7] == int(plain[1].lengths[0])


IDENTIFIED = [("one", "MKVLAAGIVGWW"), ("two some words", "hhkdEFRTYPC"), ("three", "")]


@pytest.fixture
def identified(tmp_path: Path) -> Callable[..., str]:
    def build(name: str = "some.h5", **options: Any) -> str:
        with Database.build(written(tmp_path / "some.fasta", IDENTIFIED), tmp_path / name, **options) as database:
            return database.identity()

    return build


def test_databases_of_one_content_have_one_identity(tmp_path: Path, identified: Callable[..., str]) -> None:
    identity = identified()
    shutil.copy(tmp_path / "some.h5", tmp_path / "other.h5")
    broken = written(tmp_path / "lines.fasta", [(header, each.replace("K", "K\n")) for header, each in IDENTIFIED])
    for same in (
        Database.open(tmp_path / "other.h5"),
        Database.from_fasta(tmp_path / "some.fasta"),
        Database.from_fasta(broken),
    ):
        with same:
            assert same.identity() == identity == identified("again.h5") and len(identity) == 64


@pytest.mark.parametrize(
    ("number", "record"),
    [(0, ("one", "MKVLAAGIVGWV")), (0, ("One", "MKVLAAGIVGWW")), (1, ("two some word", "hhkdEFRTYPC")),
     (1, ("two some words", "HHKDEFRTYPC")), (2, ("three", "M")), (2, None)],
)  # fmt: skip
def test_every_change_of_the_content_changes_the_identity(
    identified: Callable[..., str], number: int, record: Entry | None
) -> None:
    records = [*IDENTIFIED[:number], *([record] if record else []), *IDENTIFIED[number + 1 :]]
    with Database.from_records(records) as database:
        assert database.identity() != identified()


def test_the_mask_the_genetic_code_and_what_is_appended_change_it(
    tmp_path: Path, identified: Callable[..., str]
) -> None:
    found = {identified(), identified(mask="lower")}
    append_database(tmp_path / "some.h5", tmp_path / "some.fasta", on_duplicate="keep")
    found.add(Database.open(tmp_path / "some.h5").identity())
    for code in (1, 11):
        found.add(Database.from_records([("a", "ACGT")], translate=True, genetic_code=code).identity())
    assert len(found) == 5
