"""Wrong contents under right checksums: the first read reports them, and verify finds every wrong byte."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.db_helpers import HBA, HBB, LETTERS, Bytes, change_contents, put, wrong
from support.samples import sample
from support.taxa import write_taxonomy
from swsearch.alphabet import PAD
from swsearch.db import Database, append_database, build_database, merge_databases, verify_database
from swsearch.db.file_contents import read_contents
from swsearch.db.format import USER_BLOCK
from swsearch.errors import DatabaseDamageError, DatabaseError, OutputError

N = 100


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("content")
    pick = random.Random(4)
    with (folder / "in.fasta").open("w") as file:
        for number in range(N):
            letters = "".join(pick.choices(LETTERS[:20], k=10 + number // 3))
            parts = letters[:3], letters[3:7].lower(), letters[7], letters[8:].lower() if number % 3 else letters[8:]
            file.write(f">name{number} of many\n{''.join(parts)}\n")
    build_database(folder / "in.fasta", folder / "sound.h5", mask="lower")
    return folder / "sound.h5"


Reads = dict[str, list[Callable[[Database], object]]]

READS: Reads = {
    "opening": [lambda _: None],
    "chunks": [lambda database: list(database.chunks(1 << 20))],
    "codes": [lambda database: [*map(database.codes, range(N))], lambda database: database.codes_of(range(N))],
    "headers": [lambda database: [*map(database.header, range(N))], lambda database: database.headers_of(range(N))],
    "masked": [
        lambda database: [database.masked_runs(place, "lower") for place in range(N)],
        lambda database: database.masked_runs_of(range(N), "lower"),
    ],
}
"""Reads that find the error: one record at a time, and all at once."""


Case = tuple[str, Callable[[Any], Any], str, str]

CASES: dict[str, Case] = {
    "code 30": ("residues", put((0, 9), 30), "residues are not letters", "chunks"),
    "code 32 of one subject": ("residues", lambda v: np.where(v == PAD, v, 32), "residues are not letters", "codes"),
    "padding in a subject": ("residues", put((3, 0), PAD), "padding do not fit", "chunks"),
    "padding in a subject, read alone": ("residues", put((4, 2), PAD), "residues ", "codes"),
    "letter for padding": ("residues", put((-1, 63), 0), "padding do not fit", "chunks"),
    "lanes in another order": ("residues", lambda v: v[:, ::-1], "padding do not fit", "chunks"),
    "negative length": ("lengths", put(-1, -1), "lengths do not descend", "opening"),
    "ascending lengths": ("lengths", lambda v: v[::-1], "lengths do not descend", "opening"),
    "a length of fewer columns": ("lengths", lambda v: v // 2, "block offsets do not fit", "opening"),
    "order twice": ("order", put(0, 1), "order is not a permutation", "chunks"),
    "order beyond": ("order", put(0, 1 << 62), "order is not a permutation", "chunks"),
    "order among equals": ("order", lambda v: np.concatenate([v[1:2], v[:1], v[2:]]), "not in input order", "chunks"),
    "shifted block offsets": ("block_offsets", lambda v: v + 8, "block offsets do not fit", "opening"),
    "shifted header offsets": ("header_offsets", lambda v: v + 4, "header offsets do not fit", "headers"),
    "one header of no bytes": ("header_offsets", lambda v: put(2, v[1])(v), "header offsets do not fit", "headers"),
    "negative header offset": ("header_offsets", put(1, -5), "header offsets do not fit", "headers"),
    "wrapped header offset": ("header_offsets", put(1, -(1 << 63)), "header offsets do not fit", "headers"),
    "line end in a header": ("headers", put(7, 10), "holds a line end or a NUL", "headers"),
    "NUL in a header": ("headers", put(9, 0), "holds a line end or a NUL", "headers"),
    "blank headers": ("headers", put(slice(None), 32), "has no identifier", "headers"),
    "negative mask start": ("mask_starts", put(0, -1), "masked runs", "masked"),
    "mask end beyond": ("mask_ends", put(5, 1 << 30), "masked runs", "masked"),
    "negative mask start, searched": ("mask_starts", put(0, -64), "masked runs", "chunks"),
    "masked runs that touch": ("mask_starts", put(2, 7), "masked runs", "masked"),
    "empty masked run": ("mask_ends", put(3, 3), "masked runs", "masked"),
    "mask offsets shifted": ("mask_offsets", lambda v: v + 1, "mask offsets do not fit", "masked"),
    "negative mask offset": ("mask_offsets", put(1, -1), "mask offsets do not fit", "chunks"),
    "mask of another subject": ("mask_offsets", put(1, 0), "masked runs", "chunks"),
}


@pytest.mark.parametrize("kind", CASES)
def test_noticed(sound: Path, tmp_path: Path, kind: str) -> None:
    """When it is first read, by verify, and by what writes the records anew."""
    name, change, words, read = CASES[kind]
    path, words = wrong(sound, tmp_path / "wrong.h5", name, change), "/segments/0: .*" + words
    for each in READS[read]:
        with pytest.raises(DatabaseDamageError, match=words), Database.open(path) as database:
            each(database)
    with pytest.raises(DatabaseDamageError, match=words):
        verify_database(path)
    with pytest.raises(DatabaseDamageError, match=words):
        merge_databases(path, tmp_path / "new.h5", on_duplicate="keep")
    assert [each.name for each in tmp_path.iterdir()] == ["wrong.h5"]


def test_counts_of_masks(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong.h5"
    path.write_bytes(sound.read_bytes())
    change_contents(path, lambda piece: piece["segments"][0]["attributes"].update(n_masked=3))
    for call in (verify_database, lambda given: Database.open(given).info()):
        with pytest.raises(DatabaseDamageError, match="attribute n_masked is 3"):
            call(path)


@pytest.mark.parametrize("seed", sample(range(60), lambda seed: seed < 6))
def test_one_wrong_residue_or_padding_anywhere_is_found(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the blocks."""
    pick = np.random.default_rng(seed)
    monkeypatch.setattr("swsearch.db.segment.ENDS_PER_BATCH", int(pick.integers(1, 50)))
    lengths = pick.integers(0, pick.integers(2, 60), size=int(pick.integers(2, 300)))
    (tmp_path / "in.fasta").write_text("".join(f">r\n{'M' * n}\n" for n in [1, 2, *lengths]))
    build_database(tmp_path / "in.fasta", tmp_path / "sound.h5")
    verify_database(tmp_path / "sound.h5")

    def change(values: Any) -> None:
        flat = values.reshape(-1)
        a, b = pick.integers(len(flat), size=2)
        if (flat[a] == PAD) != (flat[b] == PAD):  # as much padding as before, in another place
            flat[[a, b]] = flat[[b, a]]
        else:
            flat[a] = 3 if flat[a] == PAD else pick.integers(len(LETTERS), 256)

    for _ in range(20):
        path = wrong(tmp_path / "sound.h5", tmp_path / "wrong.h5", "residues", change)
        with pytest.raises(DatabaseDamageError, match="residues "):
            verify_database(path)


KINDS: dict[str, dict[str, Any]] = {
    "lower.h5": {"mask": "lower"},
    "tantan.h5": {"mask": "tantan"},
    "taxids.h5": {"taxids": "header", "taxonomy": "taxdump"},
    "dna.h5": {"translate": True, "genetic_code": 11},
    "appended.h5": {},
    "list.json": {"volume_size": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make small databases with masks, empty records and short last blocks."""
    folder = tmp_path_factory.mktemp("small")
    text = f">a alpha OX=9606\n{HBA[:40]}\n>b beta OX=562\n{HBB.lower()[:20]}{HBA[:9]}{'Q' * 30}\n>empty OX=9606\n"
    (folder / "in.fasta").write_text(text)
    (folder / "dna.fasta").write_text(">a\nACGTNNACGTTGCA\n>b\nacgtACGTA\n>empty\n")
    write_taxonomy(folder / "taxdump")
    for name, given in KINDS.items():
        options = given | ({"taxonomy": folder / "taxdump"} if "taxonomy" in given else {})
        build_database(folder / ("dna.fasta" if name == "dna.h5" else "in.fasta"), folder / name, **options)
    append_database(folder / "appended.h5", folder / "in.fasta", on_duplicate="keep")
    return folder


def stretches(raw: bytes) -> Iterator[tuple[str, range]]:
    """Yield what is read of a database, by what messages call it: contents, arrays, their checksums."""
    if raw.startswith(b"{"):
        yield "", range(len(raw))
        return
    contents = read_contents(Bytes(raw))
    yield "user block (bytes 0 to 512)", range(USER_BLOCK)
    for place in contents.pieces:
        yield f"contents (bytes {place.at} to", range(place.at, place.at + place.n_bytes)
    for number, segment in enumerate(contents.segments):
        for each in segment.arrays.values():
            yield f"/segments/{number}/{each.name} bytes 0 to", range(each.at, each.at + each.n_bytes)
            sums = range(each.sums_at, each.sums_at + 4 * each.n_pieces)
            yield f"/segments/{number}/{each.name}: checksums", sums


def test_whole(folder: Path) -> None:
    size = (folder / "appended.h5").stat().st_size
    assert verify_database(folder / "appended.h5") == {
        "bytes": size, "checksums": 20, "segments": 2, "blocks": 2, "subjects": 6, "residues": 198,
    }  # fmt: skip


@pytest.mark.parametrize("step", sample([1, 97], lambda step: step > 1))
@pytest.mark.parametrize("name", KINDS)
def test_any_flipped_byte_that_is_read_is_found(folder: Path, name: str, step: int) -> None:
    raw, path = (folder / name).read_bytes(), folder / f"flipped_{name}"
    path.write_bytes(raw)
    with path.open("r+b", buffering=0) as file:
        for words, where in stretches(raw):
            for at in {where[0], where[-1], *where[::step]} if where else ():
                file.seek(at)
                file.write(bytes([raw[at] ^ 1 << at % 8]))
                with pytest.raises(DatabaseError) as caught:
                    verify_database(path)
                message = str(caught.value)
                assert caught.value.exit_code == 2 and path.name in message, at
                # the user block may say another version, name or place, each with a message of its own
                assert "block" in words or words in message, (at, message)
                file.seek(at)
                file.write(raw[at : at + 1])
    verify_database(path)


def test_every_place_is_listed(folder: Path, tmp_path: Path) -> None:
    raw = bytearray((folder / "lower.h5").read_bytes())
    arrays = [where for words, where in stretches(bytes(raw)) if "bytes 0 to" in words and "/" in words]
    for where in arrays:
        raw[where[0]] ^= 1
    (tmp_path / "flipped.h5").write_bytes(raw)
    with pytest.raises(DatabaseDamageError, match=f"and {len(arrays) - 5} more") as caught:
        verify_database(tmp_path / "flipped.h5")
    assert len(caught.value.problems) == len(arrays) == 10


@pytest.mark.parametrize("n", sample([20, 300], lambda n: n < 300))
def test_many_segments(tmp_path: Path, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 keeps many links in structures of another kind than a few."""
    monkeypatch.setattr("swsearch.db.building.segment_limit", lambda *_: 1)  # each record is one
    (tmp_path / "in.fasta").write_text("".join(f">s{k}\nMKVmm{'L' * k}\n" for k in range(n)))
    path = tmp_path / "many.h5"
    build_database(tmp_path / "in.fasta", path)
    with Database.open(path) as database:
        assert (database.n_subjects, database.info()["n_segments"]) == (n, n)
        assert [database.sequence(k) for k in range(n)] == [f"MKVmm{'L' * k}" for k in range(n)]
    assert verify_database(path)["segments"] == n
    before = path.read_bytes()
    monkeypatch.setattr("swsearch.db.container.MAX_CONTENTS_BYTES", 500 * n)
    with pytest.raises(OutputError, match=f"segments: got {n} new ones, expected fewer in one file; .* db merge"):
        build_database(tmp_path / "in.fasta", path)
    assert path.read_bytes() == before
