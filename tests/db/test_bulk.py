"""Many subjects read at once are what each is when it is read alone, and damage in one of them is found and named."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.db_helpers import LETTERS
from support.samples import random_cases
from swsearch.blocks import LANES
from swsearch.db import Database, append_database, build_database, stored_array
from swsearch.errors import DatabaseDamageError, DatabaseError, OptionError
from swsearch.options.words import MASKS, Mask

LONGEST = 20_000
"""Residues; with its block the dataset of residues is longer than one checksum covers."""


def records(pick: random.Random, n: int) -> str:
    """Write records, some of them empty, some in lower case, with headers that hold a tab."""
    text = []
    for number in range(n):
        letters = "".join(pick.choices(LETTERS[:20] + "acdef", k=pick.choice([0, 1, 8, 63, 64, 65, 200])))
        text.append(f">id{number} {'x' * pick.randint(0, 30)}\ty\n{letters}\n")
    return "".join(text)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, pick = tmp_path_factory.mktemp("bulk"), random.Random(9)
    long = "".join(pick.choices(LETTERS[:20] + "kl", k=LONGEST))
    (folder / "a.fasta").write_text(records(pick, 150) + f">long\n{long}\n" + records(pick, 20))
    (folder / "b.fasta").write_text(f">alone\n{LETTERS[:20]}\n")
    (folder / "c.fasta").write_text(records(pick, 70))
    build_database(folder / "a.fasta", folder / "db.h5", mask="lower")
    for name in ("b", "c"):
        append_database(folder / "db.h5", folder / f"{name}.fasta", on_duplicate="keep")
    return folder / "db.h5"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    with Database.open(path) as database:
        yield database


def parted(pool: Any, offsets: Any) -> list[bytes]:
    """Cut a pool into its parts."""
    assert pool.dtype == np.uint8 and offsets.dtype == np.int64 and offsets[0] == 0 and offsets[-1] == len(pool)
    return [pool[a:b].tobytes() for a, b in pairwise(offsets.tolist())]


def check(db: Database, subjects: Any, mask: Mask = "lower") -> None:
    """Compare what is read at once with what is read one by one."""
    each = list(map(int, subjects))
    lengths = db.lengths_of(subjects)
    assert lengths.dtype == np.int32 and lengths.tolist() == [len(db.codes(place)) for place in each]
    assert parted(*db.codes_of(subjects)) == [db.codes(place).tobytes() for place in each]
    assert parted(*db.headers_of(subjects)) == [db.header(place) for place in each]
    offsets, starts, ends = db.masked_of(subjects, mask)
    assert offsets.dtype == np.int64 and starts.dtype == ends.dtype == np.int32 and offsets[-1] == len(starts)
    runs = list(zip(starts.tolist(), ends.tolist(), strict=True))
    found = [runs[a:b] for a, b in pairwise(offsets.tolist())]
    assert found == [db.masked(place, mask) for place in each]


@pytest.mark.parametrize("read_before", [False, True])
@pytest.mark.parametrize("window", [4096, 1 << 14, 1 << 20])
def test_all_and_some(db: Database, window: int, read_before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In and out of order, with repeats, whatever is read at once, whether the pieces were met before or not."""
    monkeypatch.setattr(stored_array, "READ_TOGETHER", window)
    monkeypatch.setattr(stored_array, "STRIPS_AT_ONCE", 37)
    assert db.info()["n_segments"] == 3
    if read_before:
        list(db.chunks(1 << 30))
    n = len(db)
    pick = np.random.default_rng(1)
    for subjects in (range(n), list(range(n))[::-1], pick.permutation(n), pick.integers(0, n, 400), [n - 1] * 3, []):
        check(db, subjects)
    check(db, pick.integers(0, n, 9).astype(np.uint32), "none")


@pytest.mark.parametrize("mask", MASKS)
def test_in_memory(path: Path, mask: Mask) -> None:
    with Database.from_fasta([path.parent / "a.fasta", path.parent / "b.fasta"], mask=mask) as db:
        for each in {"none", "lower", mask}:
            check(db, np.random.default_rng(2).integers(0, len(db), 60), each)


@random_cases(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(subjects=st.lists(st.integers(0, 241), max_size=30))
def test_any_subjects(db: Database, subjects: list[int]) -> None:
    assert len(db) == 242
    check(db, subjects)


@pytest.mark.parametrize(
    ("subjects", "error", "words"),
    [
        ([3, 242], IndexError, "subject 242, expected 0 to 241"),
        ([-1, 0], IndexError, "subject -1, expected 0 to 241"),
        (np.array([1 << 63], dtype=np.uint64), IndexError, "subject 9223372036854775808, expected"),
        ([0.5], TypeError, r"subjects: got \[0.5\], expected integers in one dimension"),
        ([True], TypeError, "expected integers"),
        (["a"], TypeError, "expected integers"),
        (3, TypeError, "got 3, expected integers in one dimension"),
        ([[1], [2]], TypeError, "in one dimension"),
        (None, TypeError, "got None"),
    ],
)
def test_what_is_no_subject(db: Database, subjects: Any, error: type[Exception], words: str) -> None:
    for read in (db.lengths_of, db.codes_of, db.headers_of, lambda some: db.masked_of(some, "lower")):
        with pytest.raises(error, match=words):
            read(subjects)


def test_a_mask_that_there_is_not(db: Database) -> None:
    wrong: Any = "upper"
    with pytest.raises(OptionError, match="mask"):
        db.masked_of([0], wrong)


READS: dict[str, Callable[[Database, Any], object]] = {
    "residues": lambda db, some: parted(*db.codes_of(some)),
    "headers": lambda db, some: parted(*db.headers_of(some)),
    "header_offsets": lambda db, some: parted(*db.headers_of(some)),
    "mask_starts": lambda db, some: [each.tolist() for each in db.masked_of(some, "lower")],
    "mask_offsets": lambda db, some: [each.tolist() for each in db.masked_of(some, "lower")],
}


def place_of(path: Path, name: str, at: int) -> int:
    """Return where in the file a byte of a dataset of the first segment stands."""
    import h5py

    with h5py.File(path) as file:
        return int(file[f"segments/0/{name}"].id.get_offset()) + at


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("when", ["before", "while it is open", "while it is in use"])
def test_damage(path: Path, tmp_path: Path, name: str, when: str) -> None:
    """One bit of what is read is found, and the place is named."""
    bad = tmp_path / "bad.h5"
    bad.write_bytes(path.read_bytes())

    def damage() -> None:
        at = place_of(path, name, 100)
        with bad.open("r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 4]))

    if when == "before":
        damage()
    with Database.open(bad) as db:
        everything = np.arange(len(db))
        if when == "while it is in use":
            assert READS[name](db, everything)
        if when != "before":
            damage()
        words = rf"/segments/0/{name} bytes 0 to \d+: checksum differs"
        words = words if when == "before" else rf"was changed while it was in use \({words}"
        kind = DatabaseDamageError if when == "before" else DatabaseError
        with pytest.raises(kind, match=words):
            READS[name](db, everything)


def test_damage_elsewhere(path: Path, tmp_path: Path) -> None:
    """What stands in another piece is read; what stands in the broken one is not, and says so."""
    bad = tmp_path / "bad.h5"
    bad.write_bytes(path.read_bytes())
    with bad.open("r+b") as file:
        file.seek(place_of(path, "residues", 50))
        file.write(b"\xff")
    with Database.open(bad) as db, Database.open(path) as sound:
        lengths = sound.lengths_of(range(len(sound)))
        short = np.flatnonzero(lengths == 8)  # the first block, of the long one, reaches into the second piece
        assert LONGEST * LANES > 1 << 20 and len(short) > 3
        assert parted(*db.codes_of(short)) == parted(*sound.codes_of(short))
        with pytest.raises(DatabaseDamageError, match="/segments/0/residues bytes 0 to 1048576: checksum differs"):
            db.codes_of([*short, int(np.argmax(lengths))])


def test_each_part_of_the_file_is_read_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours together, whatever the order they are asked for in."""
    everything = np.random.default_rng(3).permutation(len(db))
    db.codes_of(everything)
    source = db._held.files[0].source
    read: list[int] = []
    read_into = source.read_into

    def counted(target: Any, at: int) -> None:
        read.append(len(target))
        read_into(target, at)

    monkeypatch.setattr(source, "read_into", counted)
    db.codes_of(everything)
    assert sum(read) <= db.residue_bytes + 4096 * len(read) + (1 << 16)
    assert len(read) <= db.residue_bytes / stored_array.READ_TOGETHER + 2 * 3


def test_after_close(path: Path) -> None:
    db = Database.open(path)
    db.close()
    for read in READS.values():
        with pytest.raises(DatabaseError, match="was closed"):
            read(db, [0])


def test_subjects_that_several_queries_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats on both sides of where one read ends and the next begins."""
    (tmp_path / "many.fasta").write_text("".join(f">id{k}\nMKT{LETTERS[k % 20]}\n" for k in range(3_000)))
    build_database(tmp_path / "many.fasta", tmp_path / "many.h5")
    monkeypatch.setattr(stored_array, "READ_TOGETHER", stored_array.STEP)
    with Database.open(tmp_path / "many.h5") as database:
        for subjects in (np.repeat(np.arange(3_000), 3), np.tile(np.arange(2_999, -1, -1), 2)):
            for _ in range(2):  # when pieces are first met, and later
                headers = parted(*database.headers_of(subjects))
                assert headers == [f"id{k}".encode() for k in subjects.tolist()]
                assert parted(*database.codes_of(subjects)) == [
                    database.codes(k).tobytes() for k in subjects.tolist()
                ]
