"""A database as a sequence of its subjects, and in another process."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import swsearch
from support.samples import sample
from swsearch.db import Database, Entry, entries, read_fasta
from swsearch.errors import DatabaseError

LETTERS = "ARNDCQEGHILKMFPSTWYVacdefX*"


@pytest.fixture(scope="module")
def fasta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    lengths = [0, 1, 31, 64, *rng.integers(1, 200, 60).tolist()]
    path = tmp_path_factory.mktemp("collection") / "in.fasta"
    texts = [f">s{k} d {k}\n{''.join(rng.choice(list(LETTERS), n))}\n" for k, n in enumerate(lengths)]
    path.write_text("".join(texts))
    return path


@pytest.fixture(scope="module")
def database(fasta: Path) -> Database:
    return Database.build(fasta, fasta.with_suffix(".h5"))


def told(entry: Entry) -> tuple[object, ...]:
    return entry.header, entry.identifier, entry.description, entry.codes.tolist(), list(entry.masked)


@pytest.mark.parametrize("at_once", [0, entries.FEW_ENTRIES])
def test_subjects_are_the_records_that_came_in(
    fasta: Path, database: Database, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "FEW_ENTRIES", at_once)
    records = list(read_fasta(fasta))
    assert [told(entry) for entry in database] == [told(record) for record in records]  # type: ignore[arg-type]
    assert [entry.index for entry in database] == list(range(len(database)))
    text = fasta.read_text().splitlines()[1::2]
    assert [entry.sequence for entry in database] == text
    for place in (0, 3, np.int64(5), -1, -len(records)):
        assert database[place].sequence == text[place]
        assert database[place] == list(database)[place]
    for part in (slice(2, 9), slice(None, None, -7), slice(-3, None), slice(5, 5), slice(90, 99)):
        assert [entry.sequence for entry in database[part]] == text[part]


def test_what_is_no_place_is_refused(database: Database) -> None:
    for place in (len(database), -len(database) - 1, 10**20):
        with pytest.raises(IndexError, match="expected -64 to 63"):
            database[place]
    for given in (1.0, True, None, (1, 2), [1]):
        with pytest.raises(TypeError, match="expected an integer or a slice"):
            database[given]  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"got 's3', .*find"):
        database["s3"]  # type: ignore[call-overload]


def test_names_are_looked_for(database: Database) -> None:
    assert "s5" in database
    assert "s64" not in database
    assert 5 not in database
    assert database[5] not in database  # an entry is no name


def test_entries_are_queries(database: Database) -> None:
    with swsearch.search(
        [each for each in database[4:7] if len(each)], database, engine="cpu", max_hits=1
    ) as results:
        assert [result[0].subject_id for result in results] == ["s4", "s5", "s6"]


@pytest.mark.parametrize("volume_size", sample([4096, 40_000], lambda size: size != 4096))
def test_a_database_goes_to_another_process_by_its_files(
    fasta: Path, database: Database, tmp_path: Path, volume_size: int
) -> None:
    other = tmp_path / "b.fasta"
    other.write_text(">b\nMKVLAAGIV\n")
    with (
        Database.build(other, tmp_path / "b.h5") as second,
        Database.joined([database, second]) as joined,
        Database.build(fasta, tmp_path / "v.json", volume_size=volume_size) as volumes,
    ):
        volumes.name = "mine"
        assert len(volumes.volumes) > 1
        for each in (database, joined, volumes, volumes.share(1, 3), volumes.share(0, 2).share(1, 2)):
            for again in (pickle.loads(pickle.dumps(each)), copy.copy(each)):
                with again:
                    assert (again.name, again.n_residues, repr(again)) == (each.name, each.n_residues, repr(each))
                    assert list(again) == list(each)
                    assert again.identity() == each.identity()


def test_a_file_that_is_another_one_now_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.fasta"
    path.write_text(">a\nMKVLAAGIV\n")
    with Database.build(path, tmp_path / "a.h5") as database:
        kept = pickle.dumps(database)
        path.write_text(">a\nMKVLAAGIW\n")
        Database.build(path, tmp_path / "a.h5").close()
        with pytest.raises(DatabaseError, match="got another database than the pickled one"):
            pickle.loads(kept)
        (tmp_path / "a.h5").unlink()
        with pytest.raises(DatabaseError, match="no such database"):
            pickle.loads(kept)
    with pytest.raises(DatabaseError, match="was closed"):
        iter(database)
    with pytest.raises(DatabaseError, match="was closed"):
        pickle.dumps(database)


def test_a_notebook_shows_a_database_without_its_markup() -> None:
    with Database.from_records(["MKV"], name="<b>x") as database:
        assert "<th>subjects</th><td>1</td>" in database._repr_html_()
        assert "<b>" not in database._repr_html_()
