"""Databases of DNA: what is built is what was given, appended to, found and checked; what is damaged is refused."""

from __future__ import annotations

import random
from pathlib import Path

import h5py
import numpy as np
import pytest

import swsearch
from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.db import Database, append_database, build_database, dna_stored, split_database, verify_database
from swsearch.db.dna_layout import packed, unpacked
from swsearch.db.frames import Windows
from swsearch.db.writing import seal
from swsearch.errors import DatabaseDamageError, DatabaseError, OptionError, SequenceError
from swsearch.pipeline.windows import FrameWindows
from swsearch.translation.codes import translated_frames
from swsearch.translation.frame import FRAME_NUMBERS

RECORDS = [("chr1 first", "acgtNNACGTTGCATTTAGRYK"), ("empty", ""), ("one", "A"), ("u", "ACGUacguACG")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fasta, made = tmp_path / "dna.fa", tmp_path / "dna.h5"
    fasta.write_text("".join(f">{name}\n{letters}\n" for name, letters in RECORDS))
    build_database(fasta, made, translate=True, genetic_code=11)
    return made


def test_records_are_given_back_and_checked(path: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.fa"
    more.write_text(">late\nTTTacg\n")
    append_database(path, more)
    with Database.open(path) as database:
        held = [(database.header(k).decode(), database.sequence(k)) for k in range(database.n_subjects)]
        assert held == [*RECORDS, ("late", "TTTacg")]
        assert (database.genetic_code, database.n_residues) == (11, 40)
        assert database.find("u") == [3]
        assert database.info()["genetic_code"] == 11
    assert verify_database(path)["residues"] == 40
    with pytest.raises(DatabaseError, match="a DNA database cannot be split into volumes"):
        split_database(path, tmp_path / "v.json", volumes=2)


@pytest.mark.parametrize("alone", [1, 5, 4096])
def test_windows_are_pieces_of_frames(alone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dna_stored, "LONG_PIECE", alone)  # shorter ones are translated together
    monkeypatch.setattr(dna_stored, "SHORT_RESIDUES", 300)
    rng = random.Random(3)
    records = [
        (f"r{k}", "".join(rng.choice("ACGTN") for _ in range(rng.choice([0, 2, 3, 50, 400])))) for k in range(9)
    ]
    with Database.from_records(records, translate=True) as database:
        windows = FrameWindows(database, Windows(20, 7))
        places = np.arange(windows.n_places)
        pieces = windows.pieces_of(places)
        assert windows.lengths_of(places).tolist() == (pieces.ends - pieces.begins).tolist()
        scored = {}
        for chunk in windows.chunks(1 << 12):
            scored |= {int(subject): chunk.subject(k) for k, subject in enumerate(chunk.subjects)}
        for place in places:
            record, number = int(pieces.records[place]), int(pieces.numbers[place])
            dna = database.codes(record)
            frames = dict(translated_frames(_dna_codes(dna)))
            expected = frames[number][pieces.begins[place] : pieces.ends[place]]
            np.testing.assert_array_equal(windows.scored(places[place : place + 1])[0], expected)
            np.testing.assert_array_equal(scored[place], expected)
            codes, offsets = windows.translated(pieces.take(np.array([place, 0, place])))
            assert np.diff(offsets).tolist() == [len(expected), len(scored[0]), len(expected)]
            np.testing.assert_array_equal(codes[offsets[2] :], expected)
        cores = windows.cores_of(places)
        assert int((cores[1] - cores[0]).sum()) == sum(
            max(len(dna) - abs(number) + 1, 0) // 3 for _, dna in records for number in FRAME_NUMBERS
        )


def _dna_codes(residues: ByteArray) -> ByteArray:
    return DNA.encode(PROTEIN.decode(residues))


def test_letters_are_packed_and_unpacked() -> None:
    for n in range(5):
        codes = np.arange(n, dtype=np.uint8) + 11
        np.testing.assert_array_equal(unpacked(packed(codes))[:n], codes)


def test_what_is_no_dna_is_refused(tmp_path: Path) -> None:
    protein = tmp_path / "protein.fa"
    protein.write_text(">p\nMKVLEE\n")
    with pytest.raises(SequenceError, match=r"'[EL]' is no residue letter, expected one of the dna letters"):
        build_database(protein, tmp_path / "x.h5", translate=True)
    for asked in ({"mask": "lower"}, {"volume_size": 1 << 30}, {"genetic_code": 7}):
        with pytest.raises(OptionError):
            build_database(protein, tmp_path / "x.h5", translate=True, **asked)
    with pytest.raises(OptionError, match="genetic_code"):
        build_database(protein, tmp_path / "x.h5", genetic_code=11)
    assert sorted(tmp_path.iterdir()) == [protein]


DAMAGE = {
    "genetic_code": ("attribute", 7),
    "dna_letters": ("attribute", np.bytes_(b"ACGT")),
    "n_residues": ("attribute", 33),
    "record_lengths": ("dataset", np.array([22, -1, 1, 11], dtype="<i4")),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_no_build_writes_is_refused(path: Path, what: str) -> None:
    kind, value = DAMAGE[what]
    with h5py.File(path, "r+") as file:
        if kind == "attribute":
            file.attrs[what] = value
        else:
            file[f"segments/0/{what}"][...] = value
    seal(path, 3)
    with pytest.raises(DatabaseDamageError):
        Database.open(path)


def test_a_truncated_or_changed_file_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(DatabaseDamageError, match="truncated"):
        Database.open(path)
    path.write_bytes(whole)
    with h5py.File(path, "r") as file:
        at = file["segments/0/nucleotides"].id.get_offset()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
    with Database.open(path) as database, pytest.raises(DatabaseDamageError, match="nucleotides"):
        database.sequence(0)
    with pytest.raises(DatabaseDamageError, match="nucleotides"):
        verify_database(path)


SEARCHED = "QRMHYEEV"


def _found(path: Path) -> list[object]:
    """Return all that is read of a database: what a search finds, headers and letters."""
    with Database.open(path) as database:
        result = next(swsearch.search(SEARCHED, database, statistics="none", min_score=1, max_hits=99))
        entries = [(database.header(k), database.sequence(k)) for k in range(database.n_subjects)]
        hits = [(hit.score, hit.subject_id, hit.subject_range, hit.pair.rows()) for hit in result.hits]
        return [database.genetic_code, entries, hits]


@pytest.mark.exhaustive
def test_a_file_that_is_damaged_anywhere_is_refused_or_gives_the_same(path: Path) -> None:
    whole, rng = path.read_bytes(), random.Random(20)
    expected, n_refused = _found(path), 0
    assert expected[-1], "the search finds something"
    for number in range(300):
        raw = bytearray(whole)
        at, n = rng.randrange(len(raw)), rng.choice([1, 1, 4, 64])
        if number % 4:
            raw[at : at + n] = rng.randbytes(len(raw[at : at + n]))
        else:
            del raw[at:]
        path.write_bytes(raw)
        try:
            found = _found(path)
        except DatabaseError:
            n_refused += 1
        else:
            assert found == expected, f"case {number}, {n} bytes at {at}"
    assert n_refused > 75  # the quarter that was cut off, and others
