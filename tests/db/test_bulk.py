"""Many subjects read at once are what each is alone, in bounded memory; some of them can be searched alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.db_helpers import LETTERS, entry_of, put, wrong
from support.samples import random_cases
from swsearch.blocks import LANES, MASK_CODE, block_columns
from swsearch.db import Database, append_database, build_database, loaded_blocks, segment, verify_database
from swsearch.errors import DatabaseDamageError
from swsearch.options.kinds import Mask

LONGEST = 20_000
"""Residues; with its block the array of residues is longer than one checksum covers."""


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
    for name in "abc":
        build_database(folder / f"{name}.fasta", folder / f"{name}.h5", mask="lower")
    shutil.copy(folder / "a.h5", folder / "db.h5")
    for name in "bc":
        append_database(folder / "db.h5", folder / f"{name}.fasta", on_duplicate="keep")
    return folder / "db.h5"


@pytest.fixture(params=[["db"], ["a", "b", "c"]])
def db(path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    with Database.open([path.with_name(f"{name}.h5") for name in request.param]) as database:
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
    assert parted(*db.codes_of(subjects, threads=2)) == [db.codes(place).tobytes() for place in each]
    assert parted(*db.headers_of(subjects)) == [db.header(place) for place in each]
    offsets, starts, ends = db.masked_runs_of(subjects, mask)
    assert offsets.dtype == np.int64 and starts.dtype == ends.dtype == np.int32 and offsets[-1] == len(starts)
    runs = list(zip(starts.tolist(), ends.tolist(), strict=True))
    found = [runs[a:b] for a, b in pairwise(offsets.tolist())]
    assert found == [db.masked_runs(place, mask) for place in each]


@pytest.mark.parametrize("read_before", [False, True])
def test_all_and_some(db: Database, read_before: bool) -> None:
    """In and out of order, with repeats, whether the pieces were met before or not."""
    assert db.info()["n_segments"] == 3
    if read_before:
        list(db.chunks(1 << 30))
    n = len(db)
    pick = np.random.default_rng(1)
    for subjects in (range(n), pick.permutation(n), pick.integers(0, n, 60), [n - 1] * 3, []):
        check(db, subjects)
    check(db, pick.integers(0, n, 9).astype(np.uint32), "none")


@pytest.mark.parametrize(
    ("subjects", "error", "words"),
    [
        ([3, 242], IndexError, "subject 242, expected 0 to 241"),
        ([-1, 0], IndexError, "subject -1, expected 0 to 241"),
        (np.array([1 << 63], dtype=np.uint64), IndexError, "subject 9223372036854775808, expected"),
        ([0.5], TypeError, r"subjects: got \[0.5\], expected integers in one dimension"),
        ([True], TypeError, "expected integers"),
        (3, TypeError, "got 3, expected integers in one dimension"),
        ([[1], [2]], TypeError, "in one dimension"),
    ],
)
def test_what_is_no_subject(db: Database, subjects: Any, error: type[Exception], words: str) -> None:
    for read in (db.lengths_of, db.codes_of, db.headers_of, lambda some: db.masked_runs_of(some, "lower")):
        with pytest.raises(error, match=words):
            read(subjects)


READS: dict[str, Callable[[Database, Any], object]] = {
    "residues": lambda db, some: parted(*db.codes_of(some)),
    "headers": lambda db, some: parted(*db.headers_of(some)),
    "header_offsets": lambda db, some: parted(*db.headers_of(some)),
    "mask_starts": lambda db, some: [each.tolist() for each in db.masked_runs_of(some, "lower")],
    "mask_offsets": lambda db, some: [each.tolist() for each in db.masked_runs_of(some, "lower")],
}


@pytest.mark.parametrize("name", READS)
def test_one_wrong_bit_of_what_is_read_is_found_and_its_place_named(path: Path, tmp_path: Path, name: str) -> None:
    raw = bytearray(path.read_bytes())
    raw[entry_of(raw, name).at + 100] ^= 4
    (tmp_path / "bad.h5").write_bytes(raw)
    with Database.open(tmp_path / "bad.h5") as db:
        with pytest.raises(DatabaseDamageError, match=rf"/segments/0/{name} bytes 0 to \d+: checksum differs"):
            READS[name](db, np.arange(len(db)))
        if name == "residues":  # what stands in another piece is read
            some = np.flatnonzero(db.lengths == 8)
            assert len(some) > 3 and db.codes_of(some)[0].any()


def check_subset(database: Database, taken: np.ndarray, max_bytes: int, mask: str = "none") -> None:
    """Compare a subset with what the database says of each of its subjects."""
    part, seen, n_bytes = database.subset(taken), [], 0
    for chunk in part.chunks(max_bytes, mixed=True, mask=mask):
        assert (np.diff(chunk.lengths) <= 0).all()
        assert (np.diff(chunk.column_offsets) == block_columns(chunk.lengths)).all()
        assert chunk.residues.nbytes <= max_bytes or chunk.n_blocks == 1
        for place, ordinal in enumerate(chunk.subjects.tolist()):
            codes = database.codes(ordinal).copy()
            for start, end in database.masked_runs(ordinal, mask):
                codes[start:end] = MASK_CODE
            lane = chunk.block(place // LANES)[:, place % LANES]
            assert lane.tolist() == [*codes.tolist(), *[31] * (len(lane) - len(codes))]
        assert all((block[:, chunk.n_subjects % LANES or LANES :] == 31).all() for block in [*chunk][-1:])
        seen += chunk.subjects.tolist()
        n_bytes += chunk.residues.nbytes
    assert sorted(seen) == np.flatnonzero(taken).tolist()
    assert (part.n_residues, part.residue_bytes) == (database.lengths[taken].sum(), n_bytes)
    assert part.length_runs.array().tolist() == sorted(database.lengths[taken].tolist(), reverse=True)


@random_cases(40)
@given(
    st.lists(st.text("ARNDCQEGhilkm", max_size=90), min_size=1, max_size=300),
    st.integers(0, 2**32 - 1),
    st.floats(0.001, 1),
    st.sampled_from([1, 5_000, 1 << 20]),
    st.sampled_from([64, 10_000, 1 << 24]),
)
def test_a_subset_of_anything(sequences: list[str], seed: int, share: float, max_bytes: int, read: int) -> None:
    sequences[0] += "MKV"
    taken = np.random.default_rng(seed).random(len(sequences)) < share
    with Database.from_records(sequences) as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded_blocks, "STRETCH_BYTES", read)
        check_subset(database, taken, max_bytes, "lower")


N = 6000
"""Subjects; what does not grow with them takes 1 byte each or less."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, pick = tmp_path_factory.mktemp("stored"), random.Random(3)
    with (folder / "in.fasta").open("w") as file:
        for number in range(N):
            letters = "".join(pick.choices(LETTERS[:20], k=pick.randint(0, 30)))
            file.write(f">id{number % 5000} number {number}\n{letters[:9]}{letters[9:12].lower()}{letters[12:]}\n")
    build_database(folder / "in.fasta", folder / "db.h5", mask="lower")
    return folder / "db.h5"


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read everything that is read in parts in small ones."""
    monkeypatch.setattr("swsearch.db.arrays.ARRAY_READ_BYTES", 77 * 8)
    monkeypatch.setattr(segment, "SUBJECTS_PER_BATCH", 100)
    monkeypatch.setattr(segment, "HEADER_BYTES_PER_BATCH", 500)
    monkeypatch.setattr(segment, "MASKED_RUNS_PER_BATCH", 50)
    monkeypatch.setattr("swsearch.db.database.INDEXED_SUBJECTS", 640)


def said(db: Database) -> list[Any]:
    """Return what a database says of itself and its subjects."""
    (chunk,) = db.chunks(1 << 30)
    runs = db.length_runs.values.tolist(), db.length_runs.ends.tolist()
    return [db.lengths.tolist(), runs, chunk.subjects.tolist(), chunk.residues.tobytes(), db.info()]


def test_in_parts(large: Path, request: pytest.FixtureRequest) -> None:
    with Database.open(large) as db:
        whole = [said(db), db.find_many(["id0", "id70", "none"])]
        assert whole[1] == [[0, 5000], [70, 5070], []]
    request.getfixturevalue("in_parts")
    with Database.open(large) as db:
        assert [said(db), db.find_many(["id0", "id70", "none"])] == whole
    verify_database(large)


ORDERS: list[tuple[Any, str]] = [
    (put(-1, 0), "order is not a permutation"),
    (put(500, N), "order is not a permutation"),
    (lambda v: np.concatenate([v[:-3], v[-1:], v[-2:-1], v[-3:-2]]), "not in input order"),
    (lambda v: np.concatenate([v[:-72], v[-71:-70], v[-72:-71], v[-70:]]), "not in input order"),
]


@pytest.mark.parametrize(("change", "words"), ORDERS)
@pytest.mark.parametrize("small", [False, True])
def test_a_wrong_order(
    large: Path, tmp_path: Path, change: Any, words: str, small: bool, request: pytest.FixtureRequest
) -> None:
    """Also where a part ends: the empty subjects stand last, more than two parts of them."""
    if small:
        request.getfixturevalue("in_parts")
    bad = wrong(large, tmp_path / "bad.h5", "order", change)
    for read in (lambda db: next(db.chunks(1)), lambda db: db.codes(0), lambda db: db.lengths):
        with Database.open(bad) as db, pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words):
            read(db)
    with pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words):
        verify_database(bad)
