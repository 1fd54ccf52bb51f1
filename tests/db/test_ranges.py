"""Ranges of a file that the extension reads: their bytes, and what is said of pieces that differ or are missing."""

from __future__ import annotations

import errno
import os
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.samples import random_cases
from swsearch.extension import load

LARGE, PIECE, SKIPPED = 6 << 20, 1 << 14, 321
"""Bytes of a file with turns for several threads, of its pieces, and before its array."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Write random bytes; return the file, and those of its array."""
    path = tmp_path_factory.mktemp("ranges") / "file"
    data = np.random.default_rng(1).integers(0, 256, SKIPPED + LARGE, dtype=np.uint8)
    path.write_bytes(data.tobytes())
    return path, data[SKIPPED:]


def read(path: Path, sums: Any, ranges: list[tuple[int, int]], **given: int) -> tuple[list[bytes], Any]:
    """Read ranges, each given by its beginning and its number of bytes; return these, and what was said."""
    use = {"n_bytes": LARGE, "piece": PIECE, "step": 1, "threads": 1} | given
    begins = np.array([begin for begin, _ in ranges], dtype=np.int64)
    offsets = np.cumsum([0, *(count for _, count in ranges)])
    out = np.zeros(int(offsets[-1]), dtype=np.uint8)
    with path.open("rb") as file:
        number = use.get("file", file.fileno())
        array = (number, SKIPPED, use["n_bytes"], use["piece"], np.array(sums, dtype=np.uint32))
        said = load().read_ranges(*array, begins, offsets, use["step"], use["threads"], out)
    return [out[a:b].tobytes() for a, b in pairwise(offsets.tolist())], said


def sums_of(data: Any, piece: int) -> list[int]:
    return [zlib.crc32(data[at : at + piece]) for at in range(0, len(data), piece)]


@random_cases(60)
@given(
    st.data(), st.integers(1, 300) | st.sampled_from([PIECE, 300_000]), st.sampled_from([1, 2, 64]), st.integers(1, 3)
)
def test_any_ranges(stored: tuple[Path, Any], cases: st.DataObject, piece: int, step: int, threads: int) -> None:
    draw = cases.draw
    n_bytes = draw(st.integers(1, min(LARGE, 200 * piece)))
    data, ranges = stored[1][:n_bytes], []
    for begin in draw(st.lists(st.integers(0, n_bytes - 1), max_size=8)):
        ranges.append((begin, draw(st.integers(0, (n_bytes - 1 - begin) // step + 1))))
    found, said = read(
        stored[0], sums_of(data, piece), ranges, n_bytes=n_bytes, piece=piece, step=step, threads=threads
    )
    assert said == ([], 0, 0, 0)
    assert found == [data[begin : begin + step * count : step].tobytes() for begin, count in ranges]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_large_ranges_and_lanes(stored: tuple[Path, Any], threads: int) -> None:
    path, data = stored
    pick, sums = np.random.default_rng(2), sums_of(data, PIECE)
    assert read(path, sums, [(0, LARGE)], threads=threads) == ([data.tobytes()], ([], 0, 0, 0))
    ranges = [(begin, 3000) for begin in pick.integers(0, LARGE - 64 * 3000, 300).tolist()]
    found, _ = read(path, sums, ranges, step=64, threads=threads)
    assert found == [data[begin : begin + 64 * count : 64].tobytes() for begin, count in ranges]


@pytest.mark.parametrize("threads", [1, 3])
def test_all_broken_pieces_of_what_is_read_are_told(stored: tuple[Path, Any], threads: int) -> None:
    path, data = stored
    sums = sums_of(data, PIECE)
    for piece in (300, 2, 77):
        sums[piece] ^= 1
    assert read(path, sums, [(0, LARGE)], threads=threads)[1] == ([2, 77, 300], 0, 0, 0)
    some = [(PIECE * 77 + 5, 1), (PIECE * 3, 2 * PIECE), (PIECE * 2 - 1, 1)]
    assert read(path, sums, some, threads=threads)[1] == ([77], 0, 0, 0)


def test_any_byte_that_differs_breaks_its_piece(stored: tuple[Path, Any], tmp_path: Path) -> None:
    data = stored[1][:400].copy()
    sums = sums_of(data, 200)
    for place in range(400):
        changed = data.copy()
        changed[place] ^= 1 << place % 8
        (tmp_path / "changed").write_bytes(bytes(SKIPPED) + changed.tobytes())
        assert read(tmp_path / "changed", sums, [(0, 400)], n_bytes=400, piece=200)[1][0] == [place // 200]


@pytest.mark.parametrize("threads", [1, 3])
def test_where_a_file_ends_or_cannot_be_read(stored: tuple[Path, Any], tmp_path: Path, threads: int) -> None:
    path, data = stored
    sums = sums_of(data, PIECE)
    short = tmp_path / "short"
    short.write_bytes(path.read_bytes()[: 4 << 20])
    _, (broken, at, wanted, error) = read(short, sums, [(0, LARGE)], threads=threads)
    assert (broken, at, error) == ([], 4 << 20, 0) and wanted > 0
    assert read(short, sums, [(0, 3 << 20)], threads=threads)[1] == ([], 0, 0, 0)
    number = os.open(path, os.O_WRONLY)
    try:
        _, (broken, at, wanted, error) = read(path, sums, [(PIECE, LARGE - PIECE)], threads=threads, file=number)
    finally:
        os.close(number)
    assert (broken, at, error) == ([], SKIPPED + PIECE, errno.EBADF) and wanted > 0
