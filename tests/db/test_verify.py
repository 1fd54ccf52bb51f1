"""Verification finds a wrong byte wherever it stands."""

from __future__ import annotations

import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from support.db_helpers import HBA, HBB
from support.samples import sample
from swsearch.db import append_database, build_database, verify_database
from swsearch.db.writing import seal
from swsearch.errors import DatabaseDamageError, DatabaseError

REGIONS = ["residues", "lengths", "order", "headers", "header_offsets", "mask_starts", "mask_offsets", "sources"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a database of two segments with masks, empty records and short last blocks."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "in.fasta").write_text(f">a alpha\n{HBA[:40]}\n>b beta\n{HBB.lower()[:20]}{HBA[:9]}\n>empty\n")
    build_database(folder / "in.fasta", folder / "small.h5")
    append_database(folder / "small.h5", folder / "in.fasta", on_duplicate="keep")
    return folder / "small.h5"


def place_of(path: Path, name: str) -> tuple[int, int]:
    with h5py.File(path) as file:
        dataset = file[name]
        return dataset.id.get_offset(), dataset.size * dataset.dtype.itemsize


def test_whole(small: Path) -> None:
    assert verify_database(small) == {
        "bytes": small.stat().st_size, "checksums": 20, "segments": 2, "blocks": 2, "subjects": 6, "residues": 138,
    }  # fmt: skip


@pytest.mark.parametrize("step", sample([1, 10], lambda step: step > 1))
def test_any_flipped_byte_is_found(small: Path, tmp_path: Path, step: int) -> None:
    raw = small.read_bytes()
    path = tmp_path / "flipped.h5"
    path.write_bytes(raw)
    positions = {*range(0, 700, 11 * step), *range(700, len(raw), 89 * step), len(raw) - 1}
    for name in REGIONS:
        at, size = place_of(small, f"segments/1/{name}")
        positions |= {at, at + size // 2, at + size - 1}
    with path.open("r+b", buffering=0) as file:
        for at in sorted(positions):
            file.seek(at)
            file.write(bytes([raw[at] ^ (1 << at % 8)]))
            with pytest.raises(DatabaseError) as caught:
                verify_database(path)
            assert caught.value.exit_code == 2 and str(path) in str(caught.value)
            file.seek(at)
            file.write(raw[at : at + 1])
    verify_database(path)


@pytest.mark.parametrize("name", [*REGIONS, "block_offsets", "mask_ends", "checksums/residues"])
@pytest.mark.parametrize("segment", [0, 1])
def test_the_place_is_named(small: Path, tmp_path: Path, name: str, segment: int) -> None:
    raw = bytearray(small.read_bytes())
    at, _ = place_of(small, f"segments/{segment}/{name}")
    raw[at] ^= 0x40
    path = tmp_path / "flipped.h5"
    path.write_bytes(raw)
    with pytest.raises(DatabaseDamageError) as caught:
        verify_database(path)
    dataset = name.removeprefix("checksums/")
    assert any(f"/segments/{segment}/{dataset} bytes 0 to" in problem for problem in caught.value.problems)


def test_every_place_is_listed(small: Path, tmp_path: Path) -> None:
    raw = bytearray(small.read_bytes())
    for name in REGIONS:
        raw[place_of(small, f"segments/0/{name}")[0]] ^= 1
    path = tmp_path / "flipped.h5"
    path.write_bytes(raw)
    with pytest.raises(DatabaseDamageError) as caught:
        verify_database(path)
    assert len(caught.value.problems) == len(REGIONS)
    assert "and 3 more" in str(caught.value)


def test_bytes_between_datasets(small: Path, tmp_path: Path) -> None:
    raw = small.read_bytes()
    path = tmp_path / "padded.h5"
    path.write_bytes(raw.replace(b"\0" * 40, b"\0" * 39 + b"\1", 1))  # in the user block's padding
    with pytest.raises(DatabaseDamageError, match="user block"):
        verify_database(path)


@pytest.mark.parametrize(
    ("name", "at", "value", "words"),
    [
        ("residues", (3, 0), 31, "residues or padding do not fit"),
        ("residues", (39, 1), 3, "residues or padding do not fit"),
        ("residues", (0, 63), 30, "residues are not letters"),
        ("lengths", 0, 39, "attribute n_residues is 69, expected 68"),
        ("lengths", 0, 29, "block offsets do not fit"),
        ("order", 0, 1, "not a permutation"),
        ("header_offsets", 1, 10_000, "header offsets"),
        ("mask_offsets", 0, 1, "mask offsets"),
        ("mask_ends", 0, 30, "masked runs"),
        ("mask_starts", 0, 20, "masked runs"),
    ],
)
def test_a_wrong_writer_is_found(small: Path, tmp_path: Path, name: str, at: object, value: int, words: str) -> None:
    """Checksums right, content wrong: invariants tell."""
    path = tmp_path / "wrong.h5"
    path.write_bytes(small.read_bytes())
    with h5py.File(path, "r+") as file:
        group = file["segments/0"]
        group[name][at] = value
        group[f"checksums/{name}"][0] = zlib.crc32(np.ascontiguousarray(group[name][()]).tobytes())
    seal(path, 1)
    with pytest.raises(DatabaseDamageError, match=words):
        verify_database(path)


def test_missing_and_foreign(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="no such database"):
        verify_database(tmp_path / "none.h5")
    (tmp_path / "x.fasta").write_text(">a\nM\n")
    with pytest.raises(DatabaseError, match="is not a swsearch database"):
        verify_database(tmp_path / "x.fasta")
