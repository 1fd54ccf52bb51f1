"""A wrong writer with right checksums: what it wrote is noticed when it is first read, and by verify."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import swsearch
from support.db_helpers import LETTERS, put, wrong
from support.samples import sample
from swsearch.alphabet import PAD
from swsearch.blocks import LANES, RunLengths, block_columns
from swsearch.db import Database, append_database, build_database, verify_database
from swsearch.db.content import lengths_problem, residues_problem, runs_problem
from swsearch.db.writing import seal
from swsearch.errors import DatabaseDamageError

N = 100


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("content")
    pick = random.Random(4)
    with (folder / "in.fasta").open("w") as file:
        for number in range(N):
            letters = "".join(pick.choices(LETTERS[:20], k=10 + number // 3))
            file.write(f">name{number} of many\n{letters[:3]}{letters[3:7].lower()}{letters[7:]}\n")
    build_database(folder / "in.fasta", folder / "sound.h5", mask="lower")
    return folder / "sound.h5"


def chunks(database: Database) -> None:
    list(database.chunks(1 << 20))


def codes(database: Database) -> None:
    for place in range(N):
        database.codes(place)


def headers(database: Database) -> None:
    for place in range(N):
        database.header(place)


def masked(database: Database) -> None:
    for place in range(N):
        database.masked(place, "lower")


IN_BULK: dict[Callable[[Database], None], Callable[[Database], object]] = {
    codes: lambda database: database.codes_of(range(N)),
    headers: lambda database: database.headers_of(range(N)),
    masked: lambda database: database.masked_of(range(N), "lower"),
}
"""What reads the same at once."""


def nothing(_: Database) -> None:
    """Opening alone finds it."""


Case = tuple[str, Callable[[Any], Any], str, Callable[[Database], None]]

CASES: dict[str, Case] = {
    "code 32": ("residues", put((3, 0), 32), "residues are not letters", chunks),
    "code 255": ("residues", put((3, 70 % LANES), 255), "residues are not letters", chunks),
    "code 30": ("residues", put((0, 9), 30), "residues are not letters", chunks),
    "code 27": ("residues", put((1, 1), 27), "residues are not letters", chunks),
    "code 32 of one subject": ("residues", lambda v: np.where(v == PAD, v, 32), "residues are not letters", codes),
    "padding in a subject": ("residues", put((3, 0), PAD), "padding do not fit", chunks),
    "padding in a subject, read alone": ("residues", put((4, 2), PAD), "residues ", codes),
    "letter for padding": ("residues", put((-1, 63), 0), "padding do not fit", chunks),
    "padding moved": ("residues", lambda v: np.roll(v, 1, axis=0), "padding do not fit", chunks),
    "lanes in another order": ("residues", lambda v: v[:, ::-1], "padding do not fit", chunks),
    "negative length": ("lengths", put(-1, -1), "lengths do not descend", nothing),
    "ascending lengths": ("lengths", lambda v: v[::-1], "lengths do not descend", nothing),
    "one length": ("lengths", put(0, 44), "attribute n_residues", nothing),
    "order twice": ("order", put(0, 1), "order is not a permutation", chunks),
    "negative order": ("order", put(0, -1), "order is not a permutation", chunks),
    "order beyond": ("order", put(0, 1 << 62), "order is not a permutation", chunks),
    "order among equals": ("order", lambda v: np.concatenate([v[1:2], v[:1], v[2:]]), "not in input order", chunks),
    "wrapped block offsets": ("block_offsets", put(1, -(1 << 63) + 8), "block offsets do not fit", nothing),
    "shifted block offsets": ("block_offsets", lambda v: v + 8, "block offsets do not fit", nothing),
    "shifted header offsets": ("header_offsets", lambda v: v + 4, "header offsets do not fit", headers),
    "rolled header offsets": ("header_offsets", lambda v: np.roll(v, 1), "header offsets do not fit", headers),
    "one header of no bytes": ("header_offsets", lambda v: put(2, v[1])(v), "header offsets do not fit", headers),
    "negative header offset": ("header_offsets", put(1, -5), "header offsets do not fit", headers),
    "header offset beyond": ("header_offsets", put(-2, 1 << 62), "header offsets do not fit", headers),
    "wrapped header offset": ("header_offsets", put(1, -(1 << 63)), "header offsets do not fit", headers),
    "line end in a header": ("headers", put(7, 10), "holds a line end or a NUL", headers),
    "return in a header": ("headers", put(7, 13), "holds a line end or a NUL", headers),
    "NUL in a header": ("headers", put(9, 0), "holds a line end or a NUL", headers),
    "blank headers": ("headers", put(slice(None), 32), "has no identifier", headers),
    "negative mask start": ("mask_starts", put(0, -1), "masked runs", masked),
    "mask start beyond": ("mask_starts", put(3, 1 << 30), "masked runs", masked),
    "mask end beyond": ("mask_ends", put(3, 1 << 30), "masked runs", masked),
    "negative mask start, searched": ("mask_starts", put(0, -64), "masked runs", chunks),
    "mask end beyond, searched": ("mask_ends", put(3, 1 << 30), "masked runs", chunks),
    "empty masked run": ("mask_ends", put(3, 3), "masked runs", masked),
    "mask offsets shifted": ("mask_offsets", lambda v: v + 1, "mask offsets do not fit", masked),
    "negative mask offset": ("mask_offsets", put(1, -1), "mask offsets do not fit", chunks),
    "mask of another subject": ("mask_offsets", put(1, 0), "masked runs", chunks),
}


@pytest.mark.parametrize("kind", CASES)
def test_noticed(sound: Path, tmp_path: Path, kind: str) -> None:
    name, change, words, read = CASES[kind]
    path = wrong(sound, tmp_path / "wrong.h5", name, change)
    with pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words):
        verify_database(path)
    with pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words), Database.open(path) as database:
        read(database)


@pytest.mark.parametrize("kind", CASES)
def test_noticed_by_an_append(sound: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at a piece at a time, here at 64 records of 100, and goes over the lengths more than once."""
    monkeypatch.setattr("swsearch.db.streamed.NUMBERS_AT_ONCE", LANES)
    monkeypatch.setattr("swsearch.db.streamed.PLACES_AT_ONCE", LANES)
    monkeypatch.setattr("swsearch.db.streamed.BYTES_AT_ONCE", 3000)
    name, change, words, _ = CASES[kind]
    path = wrong(sound, tmp_path / "wrong.h5", name, change)
    before = path.read_bytes()
    with pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words):
        append_database(path, sound.parent / "in.fasta", on_duplicate="keep")
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", [kind for kind, case in CASES.items() if case[3] in IN_BULK])
def test_noticed_in_bulk(sound: Path, tmp_path: Path, kind: str) -> None:
    name, change, words, read = CASES[kind]
    path = wrong(sound, tmp_path / "wrong.h5", name, change)
    with Database.open(path) as database, pytest.raises(DatabaseDamageError, match="/segments/0: .*" + words):
        IN_BULK[read](database)


@pytest.mark.parametrize("name", ["n_masked"])
def test_counts_of_masks(sound: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "wrong.h5"
    path.write_bytes(sound.read_bytes())
    with h5py.File(path, "r+") as file:
        file["segments/0"].attrs[name] = 3
    seal(path, 2)
    for call in (
        verify_database,
        lambda given: append_database(given, sound.parent / "in.fasta", on_duplicate="keep"),
    ):
        with pytest.raises(DatabaseDamageError, match=f"attribute {name} is 3"):
            call(path)
    with Database.open(path) as database, pytest.raises(DatabaseDamageError, match=f"attribute {name} is 3"):
        database.info()


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_search_ends(sound: Path, tmp_path: Path, engine: str) -> None:
    """Codes of 32 and more would score differently by engine and instruction set."""
    path = wrong(sound, tmp_path / "wrong.h5", "residues", put((2, 5), 200))
    with pytest.raises(DatabaseDamageError, match="residues are not letters"):
        list(swsearch.search(("q", "MKVLAAGIV"), path, engine=engine, statistics="none"))


def blocks(pick: np.random.Generator, n: int, longest: int) -> tuple[Any, Any, Any]:
    """Make blocks: residues, offsets, lengths."""
    lengths = np.sort(pick.integers(0, longest + 1, size=n))[::-1].astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(block_columns(lengths))])
    residues = np.full((int(offsets[-1]), LANES), PAD, dtype=np.uint8)
    for place, length in enumerate(lengths.tolist()):
        at = int(offsets[place // LANES])
        residues[at : at + length, place % LANES] = pick.integers(0, len(LETTERS), size=length)
    return residues, offsets, lengths


@pytest.mark.parametrize("seed", sample(range(60), lambda seed: seed < 6))
def test_residues(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One wrong residue or padding anywhere is found, whatever the blocks."""
    pick = np.random.default_rng(seed)
    monkeypatch.setattr("swsearch.db.content.ENDS_AT_ONCE", int(pick.integers(1, 50)))
    residues, offsets, lengths = blocks(pick, int(pick.integers(1, 300)), int(pick.integers(1, 60)))
    assert residues_problem(residues, offsets, lengths) == ""
    flat = residues.reshape(-1)
    for _ in range(40):
        a, b = (int(each) for each in pick.integers(len(flat), size=2)) if len(flat) else (0, 0)
        if not len(flat):
            return
        before = flat[[a, b]]
        if (before[0] == PAD) != (before[1] == PAD):  # as much padding as before, in another place
            flat[[a, b]] = before[::-1]
            assert "do not fit" in residues_problem(residues, offsets, lengths)
        flat[[a, b]] = before
        flat[a] = 3 if before[0] == PAD else pick.integers(len(LETTERS), 256)
        assert residues_problem(residues, offsets, lengths)
        flat[a] = before[0]


@pytest.mark.parametrize("seed", sample(range(40), lambda seed: seed < 4))
def test_runs(seed: int) -> None:
    """As one loop over the runs says it."""
    pick = np.random.default_rng(seed)
    for _ in range(30):
        lengths = pick.integers(0, 9, size=int(pick.integers(1, 6)))
        counts = pick.integers(0, 3, size=len(lengths))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        starts, ends = np.sort(pick.integers(-1, 9, size=(2, int(offsets[-1]))), axis=0)
        fine = True
        for subject, length in enumerate(lengths.tolist()):
            before = -1
            for run in range(int(offsets[subject]), int(offsets[subject + 1])):
                fine = fine and before < starts[run] < ends[run] <= length and starts[run] >= 0
                before = ends[run]
        assert (runs_problem(offsets, starts, ends, lengths) == "") == fine


def test_no_subjects() -> None:
    none = RunLengths.of(np.empty(0, dtype=np.int32))
    assert lengths_problem(none, np.zeros(1, dtype=np.int64)) == "lengths do not descend"
