"""What a database keeps in memory for its subjects, and reading in parts what is too large to be read whole."""

from __future__ import annotations

import gc
import os
import random
import signal
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from support.db_helpers import LETTERS, put, wrong
from swsearch.alphabet import PROTEIN
from swsearch.blocks import RunLengths
from swsearch.db import Database, append_database, build_database, stored, verify_database
from swsearch.db.source import FileSource
from swsearch.db.stored import Segment
from swsearch.db.stored_array import StoredArray
from swsearch.errors import DatabaseDamageError

N = 6000
"""Subjects; what does not grow with them takes 1 byte each or less."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, pick = tmp_path_factory.mktemp("stored"), random.Random(3)
    with (folder / "in.fasta").open("w") as file:
        for number in range(N):
            letters = "".join(pick.choices(LETTERS[:20], k=pick.randint(0, 30)))
            file.write(f">id{number % 5000} number {number}\n{letters[:9]}{letters[9:12].lower()}{letters[12:]}\n")
    build_database(folder / "in.fasta", folder / "db.h5", mask="lower")
    return folder / "db.h5"


def kept_bytes(thing: object) -> int:
    """Count the bytes of all arrays that can be reached from an object, each once."""
    seen: set[int] = set()
    waiting, n_bytes = [thing], 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or callable(each):
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            if each.base is None:
                n_bytes += each.nbytes
            waiting.append(each.base)
        elif isinstance(each, (array, bytes, bytearray)):
            n_bytes += len(each) * getattr(each, "itemsize", 1)
        elif isinstance(each, (dict, list, tuple, set)) or hasattr(each, "__dict__"):
            waiting += gc.get_referents(each)
            waiting += [vars(each)] if hasattr(each, "__dict__") else []
    return n_bytes


def test_bytes_are_counted() -> None:
    numbers = np.zeros(100)
    assert kept_bytes({"a": [numbers, numbers[3:], (array("I", [1, 2]), b"123")]}) == 800 + 8 + 3


def test_bytes_for_each_subject(path: Path) -> None:
    """After a search with hits, their alignments, names and masks, and reads of many and of one."""
    with Database.open(path) as db:
        assert kept_bytes(db) < 2 * N
        letters = next(sequence for sequence in map(db.sequence, range(N)) if len(sequence) == 30)
        results = list(swsearch.search(("q", letters), db, engine="cpu", statistics="none", min_score=10))
        assert results[0].hits[0].cigar and results[0].hits[0].subject_description
        db.codes_of(range(N))
        db.headers_of(range(N))
        db.masked_of(range(N), "lower")
        assert (db.codes(7).size, db.info()["n_subjects"]) == (db.lengths[7], N)
        assert kept_bytes(db) <= 6 * N


def test_a_chunk_that_an_engine_keeps(path: Path) -> None:
    with Database.open(path) as db:
        (chunk,) = db.chunks(1 << 30)
        lean = chunk.kept()
        assert (lean.subjects == chunk.subjects).all() and lean.subjects.dtype == np.uint32
        assert (lean.lengths == chunk.lengths).all() and lean.residues.size == 0
        del chunk
        assert kept_bytes(lean) < 5 * N


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read everything that is read in parts in small ones."""

    def parts(self: StoredArray) -> Iterator[tuple[int, Any]]:
        for start in range(0, self.shape[0], 77):
            yield start, self.load(start, min(start + 77, self.shape[0]))

    monkeypatch.setattr(StoredArray, "parts", parts)
    monkeypatch.setattr(stored, "HEADERS_AT_ONCE", 100)
    monkeypatch.setattr(stored, "HEADER_BYTES_AT_ONCE", 500)
    monkeypatch.setattr(stored, "INDEXED_SUBJECTS", 640)


def said(db: Database) -> list[Any]:
    """Return what a database says of itself and its subjects."""
    (chunk,) = db.chunks(1 << 30)
    runs = db.length_runs.values.tolist(), db.length_runs.ends.tolist()
    return [db.lengths.tolist(), runs, chunk.subjects.tolist(), chunk.residues.tobytes(), db.info()]


def test_a_chunk_is_read_and_checked_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two pieces other threads of Python can run: the one that copies to a GPU waited for whole chunks."""
    (tmp_path / "in.fasta").write_text("".join(f">s{k}\n{LETTERS[:20] * 2000}\n" for k in range(64)))
    build_database(tmp_path / "in.fasta", tmp_path / "db.h5")
    steps: list[tuple[str, int]] = []
    read_into, check = FileSource.read_into, StoredArray._check

    def reading(source: FileSource, target: Any, at: int) -> None:
        steps.append(("read", len(target)))
        read_into(source, target, at)

    def checking(stored: StoredArray, piece: int, data: memoryview) -> bool:
        steps.append(("check", len(data)))
        return check(stored, piece, data)

    monkeypatch.setattr(FileSource, "read_into", reading)
    monkeypatch.setattr(StoredArray, "_check", checking)
    with Database.open(tmp_path / "db.h5") as database:
        steps.clear()
        (chunk,) = database.chunks(1 << 30)
    n_bytes = 64 * 40_000
    assert chunk.residues.nbytes == n_bytes
    pieces = [min(1 << 20, n_bytes - at) for at in range(0, n_bytes, 1 << 20)]
    assert [step for step in steps if step[1] > 1000] == [(what, n) for n in pieces for what in ("read", "check")]


def test_in_parts(path: Path, request: pytest.FixtureRequest) -> None:
    with Database.open(path) as db:
        whole = [said(db), db.find_all(["id0", "id70", "none"])]
        assert whole[1] == [[0, 5000], [70, 5070], []]
    request.getfixturevalue("in_parts")
    with Database.open(path) as db:
        assert [said(db), db.find_all(["id0", "id70", "none"])] == whole
    verify_database(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(-1, 0), "order is not a permutation"),
        (put(500, N), "order is not a permutation"),
        (lambda v: np.concatenate([v[:-3], v[-1:], v[-2:-1], v[-3:-2]]), "not in input order"),
        (lambda v: np.concatenate([v[:-78], v[-77:-76], v[-78:-77], v[-76:]]), "not in input order"),
    ],
)
@pytest.mark.parametrize("small", [False, True])
def test_a_wrong_order(
    path: Path, tmp_path: Path, change: Any, words: str, small: bool, request: pytest.FixtureRequest
) -> None:
    """Also where a part ends: the empty subjects stand last, more than two parts of them."""
    if small:
        request.getfixturevalue("in_parts")
    bad = wrong(path, tmp_path / "bad.h5", "order", change)
    for read in (lambda db: next(db.chunks(1)), lambda db: db.codes(0), lambda db: db.lengths):
        with Database.open(bad) as db, pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words):
            read(db)
    with pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words):
        verify_database(bad)


def test_several_segments(path: Path, tmp_path: Path) -> None:
    grown = tmp_path / "grown.h5"
    grown.write_bytes(path.read_bytes())
    (tmp_path / "more.fasta").write_text(f">long\n{LETTERS[:20] * 5}\n>empty\n>id3 again\n{LETTERS[:9]}\n")
    append_database(grown, tmp_path / "more.fasta", on_duplicate="keep")
    with Database.open(grown) as db, Database.open(path) as before:
        assert db.lengths.tolist() == [*before.lengths.tolist(), 100, 0, 9]
        expected = RunLengths.of(np.sort(db.lengths)[::-1])
        assert (db.length_runs.values == expected.values).all() and (db.length_runs.ends == expected.ends).all()
        assert db.find("id3") == [3, 5003, N + 2]
        assert (db.info()["longest"], db.info()["shortest"]) == (100, 0)


def test_a_process_that_is_forked_while_another_thread_looks_for_subjects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds nothing locked; the fork comes from inside, where a thread would hold a lock."""
    (tmp_path / "a.fasta").write_text(">a\nMKT\n>b\nMK\n")
    build_database(tmp_path / "a.fasta", tmp_path / "a.h5")
    found, children = Segment._found_ranks, []

    def forking(segment: Segment) -> Any:
        monkeypatch.setattr(Segment, "_found_ranks", found)
        children.append(os.fork())
        if not children[0]:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)  # ends it where it waits for ever
            os._exit(0 if database.codes(1).tolist() == expected else 1)
        return found(segment)

    with Database.open(tmp_path / "a.h5") as database:
        expected = [PROTEIN.letters.index(letter) for letter in "MK"]
        monkeypatch.setattr(Segment, "_found_ranks", forking)
        assert database.codes(1).tolist() == expected
    assert os.waitpid(children[0], 0)[1] == 0
