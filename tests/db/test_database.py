"""What goes into a database comes out of it, whichever way it was made."""

from __future__ import annotations

import json
import random
from pathlib import Path

import h5py
import numpy as np
import pytest
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.db_helpers import HBA, HBB, LETTERS
from support.samples import random_cases
from swsearch.alphabet import PAD, PROTEIN
from swsearch.blocks import LANES, deinterleave
from swsearch.db import Database, append_database, build_database, is_database, read_fasta, verify_database
from swsearch.errors import DatabaseDamageError, DatabaseError, InputError, OptionError, SequenceError

Entry = tuple[str, str]


def fasta_of(entries: list[Entry]) -> str:
    return "".join(f">{header}\n{letters}\n" for header, letters in entries)


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
        for index, block in enumerate(chunk):
            lanes = chunk.lanes(index)
            rows = deinterleave(block)
            for row, length, subject in zip(rows, chunk.lengths[lanes], chunk.subjects[lanes], strict=False):
                assert PROTEIN.decode(row[:length]) == entries[subject][1].upper()
                assert (row[length:] == PAD).all()
            assert (rows[len(chunk.lengths[lanes]) :] == PAD).all()
    assert sorted(seen) == list(range(len(entries)))


@pytest.fixture
def entries() -> list[Entry]:
    special = [0, 1, 7, 8, 9, 16, 24, 63, 64, 65, 127, 128, 0, 8, 64]
    return [(f"len{n} twin", (LETTERS * 5)[:n]) for n in special] + some_entries(150) + [("len8", "MKV")]


@pytest.fixture
def path(tmp_path: Path, entries: list[Entry]) -> Path:
    source = tmp_path / "in.fasta"
    source.write_text(fasta_of(entries))
    build_database(source, tmp_path / "out.h5")
    return tmp_path / "out.h5"


@pytest.mark.parametrize("max_bytes", [1, 20_000, 1 << 30])
def test_round_trip(path: Path, entries: list[Entry], max_bytes: int) -> None:
    with Database.open(path) as db:
        check(db, entries, max_bytes)
        assert db.name == str(path)
    counts = verify_database(path)
    assert (counts["subjects"], counts["bytes"]) == (len(entries), path.stat().st_size)


def test_in_memory_is_the_same(path: Path, tmp_path: Path, entries: list[Entry]) -> None:
    records = [SeqRecord(Seq(letters), id=h.split()[0], description=h) for h, letters in entries]
    from_fasta, again = Database.from_fasta(tmp_path / "in.fasta"), Database.from_fasta([tmp_path / "in.fasta"])
    with Database.open(path) as db, from_fasta, again, Database.from_records(records) as from_records:
        (expected,) = db.chunks(1 << 30)
        for other in (from_fasta, again, from_records):
            check(other, entries)
            (chunk,) = other.chunks(1 << 30)
            np.testing.assert_array_equal(chunk.residues, expected.residues)
            np.testing.assert_array_equal(chunk.subjects, expected.subjects)


def test_a_database_larger_than_its_memory_goes_to_a_file(
    tmp_path: Path, path: Path, entries: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("swsearch.db.layout.Layout.n_bytes", 1 << 60)
    with Database.from_fasta(tmp_path / "in.fasta") as db:
        check(db, entries)
        assert not list(folder.iterdir())
        json.dumps(db.info())


@random_cases(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entries=st.lists(
        st.tuples(
            st.text("abz09|._", min_size=1, max_size=10),
            st.text(LETTERS + LETTERS[:20].lower(), max_size=80),
        ),
        min_size=1,
        max_size=140,
    ).filter(lambda entries: any(letters for _, letters in entries))
)
def test_round_trip_of_anything(tmp_path: Path, entries: list[Entry]) -> None:
    with Database.from_records(entries) as db:
        check(db, entries, 4096)
    (tmp_path / "in.fasta").write_text(fasta_of(entries))
    with Database.build(tmp_path / "in.fasta", tmp_path / "out.h5") as db:
        check(db, entries, 4096)
    verify_database(tmp_path / "out.h5")


def test_masks_that_buffers_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.db.build.BUFFER_BYTES", 16)
    entries = [("a", "m" * 100), ("b", "m" * 50 + "K" * 50), ("c", ""), ("d", "mK" * 40), ("e", "kkkk")]
    (tmp_path / "in.fasta").write_text(fasta_of(entries))
    with Database.from_fasta(tmp_path / "in.fasta") as db:
        check(db, entries)
        assert db.info()["n_masked"] == 100 + 50 + 40 + 4
    build_database(tmp_path / "in.fasta", tmp_path / "out.h5")
    verify_database(tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["segments/0/mask_offsets"][:].tolist() == [0, 1, 2, 2, 42, 43]


def test_find(path: Path, entries: list[Entry]) -> None:
    with Database.open(path) as db:
        assert db.find("len8") == [i for i, (header, _) in enumerate(entries) if header.split()[0] == "len8"]
        assert len(db.find("len8")) == 3
        assert db.find("id77") == [15 + 77]
        assert db.find("id7") == [15 + 7]
        assert db.find("nothing") == db.find("") == db.find("\N{SNOWMAN}") == []


def test_find_in_any_encoding(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_bytes(b">\xe9t\xe9 latin\nMK\n>\xc3\xa9t\xc3\xa9 utf-8\nMV\n> spaced out\nML\n")
    with Database.from_fasta(tmp_path / "in.fasta") as db:
        assert db.find("été") == [0, 1]
        assert db.find("spaced") == [2]
        assert db.description(2) == "out" and db.header(2) == b" spaced out"


@pytest.mark.parametrize("index", [-1, 166, 10**9])
def test_ordinals_outside(path: Path, index: int) -> None:
    with Database.open(path) as db:
        for method in (db.codes, db.sequence, db.identifier, db.description, db.header):
            with pytest.raises(IndexError, match="expected 0 to 165"):
                method(index)
        with pytest.raises(OptionError):
            next(db.chunks(0))


def test_info(path: Path, entries: list[Entry]) -> None:
    with Database.open(path) as db:
        info = json.loads(json.dumps(db.info()))
        assert "166 subjects" in repr(db)
    assert info["format_version"] == 1 and info["letters"] == LETTERS
    assert info["n_empty"] == sum(not letters for _, letters in entries) > 1
    assert info["longest"] == max(len(letters) for _, letters in entries)
    assert info["n_bytes"] == path.stat().st_size
    (segment,) = info["segments"]
    assert segment["sources"][0]["records"] == len(entries)


def test_append(path: Path, tmp_path: Path, entries: list[Entry]) -> None:
    more = [*some_entries(70, seed=5), ("id7 again", "MKV")]
    (tmp_path / "more.fasta").write_text(fasta_of(more))
    for times in (1, 2):
        append_database(path, tmp_path / "more.fasta", on_duplicate="keep")
        verify_database(path)
        with Database.open(path) as db:
            check(db, entries + more * times)
            assert db.info()["n_segments"] == times + 1
            assert db.find("id7") == [22, *sorted(166 + 71 * k + at for k in range(times) for at in (7, 70))]
            with h5py.File(path) as file:
                assert file.attrs["n_subjects"] == db.n_subjects
                assert file.attrs["n_residues"] == db.n_residues


def test_other_tools_can_read_it(path: Path, entries: list[Entry]) -> None:
    assert path.read_bytes().startswith(b"swsearch database\nformat 1\nbytes ")
    assert is_database(path)
    with h5py.File(path) as file:
        assert file.userblock_size == 512
        assert file.attrs["format"] == b"swsearch database"
        for dataset in file["segments/0"].values():
            if isinstance(dataset, h5py.Dataset):
                assert dataset.chunks is None and dataset.dtype.kind in "ui"
        residues = file["segments/0/residues"]
        raw = np.fromfile(path, dtype=np.uint8, offset=residues.id.get_offset(), count=residues.size)
        np.testing.assert_array_equal(raw.reshape(residues.shape), residues[:])


class TestRecords:
    def test_kinds(self) -> None:
        query = SeqRecord(Seq("MKV"), id="s1", description="s1 a protein")
        plain = SeqRecord(Seq("MKV"), id="s2")
        records = [query, plain, ("t a pair", "mkV"), "MK", Seq("MKL"), b"MKW", ["u", Seq("ACD")]]
        with Database.from_records(iter(records), name="mine") as db:
            assert [db.identifier(i) for i in range(7)] == [
                "s1", "s2", "t", "subject_4", "subject_5", "subject_6", "u",
            ]  # fmt: skip
            assert [db.description(i) for i in range(3)] == ["a protein", "", "a pair"]
            assert [db.sequence(i) for i in range(7)] == ["MKV", "MKV", "mkV", "MK", "MKL", "MKW", "ACD"]
            assert db.name == "mine"
            assert json.loads(json.dumps(db.info()))["n_bytes"] is None

    def test_fasta_records(self, tmp_path: Path) -> None:
        (tmp_path / "in.fasta").write_text(f">a x\n{HBA}\n>b\n{HBB.lower()}AC\n")
        with Database.from_records(read_fasta(tmp_path / "in.fasta")) as db:
            assert [db.sequence(0), db.sequence(1)] == [HBA, HBB.lower() + "AC"]

    def test_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("swsearch.db.records.RECORD_BATCH_RESIDUES", 1000)
        entries = some_entries(200)
        with Database.from_records(entries) as db:
            check(db, entries)

    @pytest.mark.parametrize(
        ("records", "error", "words"),
        [
            ([("a", "MK-V")], SequenceError, "record 'a': '-' is a gap character.*position 3"),
            ([("", "MKV")], SequenceError, "got identifier ''"),
            ([("a\nb", "MKV")], SequenceError, "line ends"),
            ([("a", None)], SequenceError, "got no sequence"),
            ([("a", 7.5)], SequenceError, "is not text"),
            ([SeqRecord(Seq(None, 5), id="a")], SequenceError, "is not text"),
            ([], SequenceError, "no residues in 0 records"),
            ([("a", ""), ("b", " ")], SequenceError, "no residues in 2 records"),
            ([7], InputError, "subject 1: got 7"),
            ("MKV", OptionError, "an iterable of records"),
            (SeqRecord(Seq("MKV"), id="a"), OptionError, "into a list"),
        ],
    )
    def test_faults(self, records: object, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            Database.from_records(records)  # type: ignore[arg-type]


class TestOpening:
    def test_missing_and_directory(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseError, match="no such database"):
            Database.open(tmp_path / "missing.h5")
        with pytest.raises(DatabaseError, match="is a directory"):
            Database.open(tmp_path)
        assert not is_database(tmp_path) and not is_database(tmp_path / "missing.h5")

    def test_fasta(self, tmp_path: Path) -> None:
        (tmp_path / "in.fasta").write_text(">a\nMKV\n")
        with pytest.raises(DatabaseError, match="is not a swsearch database; build one from FASTA"):
            Database.open(tmp_path / "in.fasta")
        assert not is_database(tmp_path / "in.fasta")

    @pytest.mark.parametrize("userblock", [0, 512, 2048])
    def test_foreign_hdf5(self, tmp_path: Path, userblock: int) -> None:
        with h5py.File(tmp_path / "x.h5", "w", userblock_size=userblock) as file:
            file["segments/0/residues"] = np.zeros(5)
        assert is_database(tmp_path / "x.h5")
        for check_it in (Database.open, verify_database):
            with pytest.raises(DatabaseError, match="is HDF5 but not a swsearch database") as caught:
                check_it(tmp_path / "x.h5")
            assert not isinstance(caught.value, DatabaseDamageError)

    def test_newer(self, path: Path) -> None:
        raw = path.read_bytes()
        path.write_bytes(raw.replace(b"\nformat 1\n", b"\nformat 4\n", 1))
        with pytest.raises(DatabaseError, match="format version 4, this swsearch reads up to 3; upgrade"):
            Database.open(path)
        path.write_bytes(raw)
        with h5py.File(path, "r+") as file:
            file.attrs["format_version"] = 4
        with path.open("r+b") as file_:
            file_.write(b"\0" * 512)
        with pytest.raises(DatabaseError, match="format version 4"):
            Database.open(path)

    def test_truncated_anywhere(self, path: Path) -> None:
        raw = path.read_bytes()
        for size in [0, 1, 100, 511, 512, 520, 600, 2000, len(raw) // 2, len(raw) - 1]:
            path.write_bytes(raw[:size])
            with pytest.raises(DatabaseError) as caught:
                Database.open(path)
            if size > 150:
                assert "truncated" in str(caught.value)
        path.write_bytes(raw + b"x")
        with pytest.raises(DatabaseDamageError, match="too long"):
            Database.open(path)

    def test_damaged_residues_are_met_when_they_are_loaded(self, path: Path) -> None:
        with h5py.File(path) as file:
            offset = file["segments/0/residues"].id.get_offset()
        raw = bytearray(path.read_bytes())
        raw[offset + 5000] ^= 1
        path.write_bytes(raw)
        with Database.open(path) as db:
            for load in (lambda: list(db.chunks(1 << 20)), lambda: db.codes(3), lambda: db.sequence(3)):
                with pytest.raises(DatabaseDamageError, match=r"residues bytes 0 to .* checksum differs"):
                    load()

    def test_wrong_numbers_with_right_checksums(self, path: Path) -> None:
        """What only a wrong writer could make, not a broken disk."""
        import zlib

        for name, at, value in [("order", 3, 10**6), ("lengths", 0, 10**6), ("block_offsets", 1, 7)]:
            raw = path.read_bytes()
            with h5py.File(path, "r+") as file:
                group = file["segments/0"]
                group[name][at] = value
                group[f"checksums/{name}"][0] = zlib.crc32(group[name][:].tobytes())
            with pytest.raises(DatabaseDamageError, match="segments/0"), Database.open(path) as db:
                next(db.chunks(1 << 20))  # the order is checked when it is first needed
            path.write_bytes(raw)


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
