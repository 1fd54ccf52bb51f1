"""Entries of a database: as FASTA in any order, as items of a sequence, and in another process."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

import swsearch
from support.command_line import fails, run
from swsearch.db import Database, Entry, fetch, read_fasta
from swsearch.errors import DatabaseError

RECORDS = 200


def wrapped(letters: str) -> str:
    return "".join(f"{letters[at : at + 60]}\n" for at in range(0, len(letters), 60))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    draw = random.Random(5)
    lengths = [0, 1, 59, 60, 61, 120, 121, *(draw.randrange(300) for _ in range(RECORDS - 7))]
    headers = [f">s{number} d\u00e9 {'x' * draw.randrange(90)}" for number in range(RECORDS)]
    letters = ["".join(draw.choices("ACDEFGHIKLMNPQRSTVWYXBZJUO*acdefg", k=length)) for length in lengths]
    return [f"{header}\n{wrapped(each)}" for header, each in zip(headers, letters, strict=True)]


@pytest.fixture(scope="module")
def fasta(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("entries") / "in.fasta"
    path.write_bytes("".join(texts).encode("latin-1"))  # bytes come back as they went in, whatever they mean
    Database.build(path, path.with_suffix(".h5")).close()
    return path


@pytest.fixture
def database(fasta: Path) -> Database:
    return Database.open(fasta.with_suffix(".h5"))


@pytest.mark.parametrize("window", [300, 20_000, fetch.WINDOW_BYTES])
def test_entries_come_back_in_any_order(
    window: int, database: Database, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "WINDOW_BYTES", window)
    monkeypatch.setattr(fetch, "PREAD_BYTES", 50)
    monkeypatch.setattr(fetch, "TEXT_BYTES", min(window // 2, fetch.TEXT_BYTES))
    for order in (range(RECORDS), random.Random(1).sample(range(RECORDS), 150), [3, 3, 150, 0, 150]):
        found = b"".join(fetch.fasta_of(database, np.array(order)))
        assert found.decode("latin-1") == "".join(texts[place] for place in order)
    assert [entry.sequence for entry in database[::-3]] == ["".join(each.split("\n")[1:]) for each in texts[::-3]]


@pytest.mark.parametrize(("text", "start", "end"), [("10-80", 9, 80), ("60-", 59, None), ("1-1", 0, 1)])
def test_a_range_of_each_entry(text: str, start: int, end: int | None, fasta: Path, texts: list[str]) -> None:
    expected = []
    for record in texts:
        header, *lines = record.split("\n")
        letters = "".join(lines)[start:end]
        named = header.replace(" ", f":{start + 1}-{start + len(letters)} ", 1)
        expected += [f"{named}\n{wrapped(letters)}"] if letters else []
    done = run("db", "fetch", fasta.with_suffix(".h5"), "--all", "--range", text, text=False)
    assert done.stdout.decode("latin-1") == "".join(expected)
    assert (done.returncode, f"no residues in --range {text}: 's0'".encode() in done.stderr) == (1, True)


@pytest.mark.parametrize("text", ["", "5", "0-3", "8-7", "-7", "a-b", "1-2-3", " 1-2", "1" * 30 + "-"])
def test_what_is_no_range(text: str, fasta: Path) -> None:
    done = run("db", "fetch", fasta.with_suffix(".h5"), "--all", f"--range={text}")
    fails(
        done, 1, "--range", "expected residues counted from 1, such as 10-80" if text else "expected --range FROM-TO"
    )


def told(entry: Entry) -> tuple[object, ...]:
    return entry.header, entry.identifier, entry.description, entry.codes.tolist(), list(entry.masked)


def test_a_database_is_a_sequence_of_its_records(fasta: Path, database: Database, texts: list[str]) -> None:
    records, sequences = list(database), ["".join(each.split("\n")[1:]) for each in texts]
    assert [told(entry) for entry in records] == [told(record) for record in read_fasta(fasta)]  # type: ignore[arg-type]
    assert [(entry.index, entry.sequence) for entry in records] == list(enumerate(sequences))
    for place in (0, 3, np.int64(5), -1, -RECORDS):
        assert database[place] == records[place]
    for part in (slice(2, 9), slice(-3, None), slice(5, 5), slice(RECORDS - 2, RECORDS + 9)):
        assert database[part] == records[part]
    assert "s5" in database
    for absent in (f"s{RECORDS}", 5, records[5]):  # an entry is no name
        assert absent not in database
    queries = [each for each in records[3:9] if len(each)]
    with swsearch.search(queries, database, engine="cpu", max_hits=1) as results:
        assert [result[0].subject_id for result in results] == [each.identifier for each in queries]


def test_what_is_no_place_is_refused(database: Database) -> None:
    for place in (RECORDS, -RECORDS - 1, 10**20):
        with pytest.raises(IndexError, match=f"expected -{RECORDS} to {RECORDS - 1}"):
            database[place]
    for given in (1.0, True, None, (1, 2), [1], "s3"):
        remedy = ".*find" if given == "s3" else ""
        with pytest.raises(TypeError, match=f"got .*, expected an integer or a slice{remedy}"):
            database[given]  # type: ignore[call-overload]


def test_a_database_goes_to_another_process_by_its_files(fasta: Path, database: Database, tmp_path: Path) -> None:
    with (
        Database.build(fasta, tmp_path / "v.json", volume_size=100_000) as volumes,
        Database.concatenate([database, volumes]) as joined,
    ):
        volumes.name = "mine"
        assert len(volumes.volumes) > 1
        for each in (database, joined, volumes, volumes.share(1, 3), volumes.share(0, 2).share(1, 2)):
            for again in (pickle.loads(pickle.dumps(each)), copy.copy(each)):
                with again:
                    assert (again.name, again.n_residues, repr(again)) == (each.name, each.n_residues, repr(each))
                    assert list(again) == list(each) and again.identity() == each.identity()


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
    for ask in (iter, pickle.dumps):
        with pytest.raises(DatabaseError, match="was closed"):
            ask(database)


def test_a_notebook_shows_a_database_without_its_markup() -> None:
    with Database.from_records(["MKV"], name="<b>x") as database:
        assert "<th>subjects</th><td>1</td>" in database._repr_html_()
        assert "<b>" not in database._repr_html_()
