"""Cutting what was read into volumes: where, and what each holds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from support.db_helpers import HBA, HBB
from support.samples import sample
from swsearch.db.build import read_inputs
from swsearch.db.cuts import METADATA_BYTES, ends_by_number, ends_by_size, runs_of
from swsearch.db.layout import Layout
from swsearch.db.numbers import BUILD_MEMORY
from swsearch.db.parts import SpoolPart
from swsearch.db.spool import Spool
from swsearch.db.writing import fill
from swsearch.errors import OptionError


def spooled(folder: Path, lengths: list[list[int]]) -> Spool:
    """Read files of records of these lengths, some in lower case."""
    spool, names = Spool(folder), []
    for number, each in enumerate(lengths):
        names.append(str(folder / f"{number}.fasta"))
        letters = (HBA + HBB) * (max(each) // 200 + 1)
        lines = (
            f">r{i} {'d' * (i % 50)}\n{(str.lower if i % 3 else str)(letters[:n])}\n" for i, n in enumerate(each)
        )
        Path(names[-1]).write_text("".join(lines))
    read_inputs(spool, names, BUILD_MEMORY, None)
    spool.finish()
    return spool


def sizes(folder: Path, spool: Spool, ends: list[int]) -> Iterator[int]:
    for run in runs_of(spool, ends):
        with SpoolPart(spool, run) as part:
            fill(folder / "v.h5", Layout(part, BUILD_MEMORY))
        yield (folder / "v.h5").stat().st_size


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("numbers", "layout", "parts"):
        monkeypatch.setattr(f"swsearch.db.{module}.NUMBERS_AT_ONCE", 64)


@pytest.mark.parametrize(
    ("size", "n"), sample([(45_000, 200), (90_000, 900), (30_000, 900)], lambda each: each[1] < 900)
)
def test_no_file_is_larger_than_was_asked_and_one_record_more_would_be(
    tmp_path: Path, size: int, n: int, small_windows: None
) -> None:
    pick = random.Random(size)
    lengths = [pick.choice([0, pick.randint(1, 600), pick.randint(1, 60)]) for _ in range(n)]
    lengths[n // 2] = 3000  # its volume may be larger if it holds nothing else
    with spooled(tmp_path, [lengths[: n // 3], lengths[n // 3 :]]) as spool:
        ends = ends_by_size(spool, size)
        assert ends[-1] == n and ends == sorted(set(ends)) and len(ends) > 3
        found = list(sizes(tmp_path, spool, ends))
        bounds = list(pairwise([0, *ends]))
        assert [b - a for (a, b), each in zip(bounds, found, strict=True) if each > size and b - a > 1] == []
        # sizes are known to within what is kept for the structure of the file
        more = [list(sizes(tmp_path, spool, [a, b + 1] if a else [b + 1]))[-1] for a, b in bounds[:3]]
        assert min(more) > size - METADATA_BYTES / 2


def test_sizes_beyond_all_and_below_one(tmp_path: Path) -> None:
    with spooled(tmp_path, [[5, 0, 7]]) as spool:
        assert ends_by_size(spool, 1) == [1, 2, 3]
        assert ends_by_size(spool, 1 << 50) == [3]


def test_too_many_volumes_are_refused(tmp_path: Path) -> None:
    with spooled(tmp_path, [[1] * 501]) as spool:
        with pytest.raises(
            OptionError, match=r"volume_size: got 1, .* at most 500 volumes; after so many 501 of 501"
        ):
            ends_by_size(spool, 1)
        assert len(ends_by_number(spool, 500)) == 500
        with pytest.raises(OptionError, match="volumes: got 501, expected 1 to 500"):
            ends_by_number(spool, 501)


@pytest.mark.parametrize(
    ("lengths", "volumes", "ends"),
    [
        ([10, 10, 10, 10], 2, [2, 4]),
        ([10, 10, 10, 10], 1, [4]),
        ([10, 10, 10, 10], 4, [1, 2, 3, 4]),
        ([0, 0, 9, 0, 0], 2, [3, 5]),
        ([9, 0, 0, 0, 0], 3, [1, 2, 5]),
        ([0, 0, 0, 0, 9], 3, [3, 4, 5]),
        ([1000, 1, 1, 1], 3, [1, 2, 4]),
        ([1, 1, 1, 1000], 3, [2, 3, 4]),
        ([7], 1, [1]),
    ],
)
def test_volumes_of_like_sizes_none_of_them_empty(
    tmp_path: Path, lengths: list[int], volumes: int, ends: list[int]
) -> None:
    with spooled(tmp_path, [lengths]) as spool:
        assert ends_by_number(spool, volumes) == ends


@pytest.mark.parametrize("volumes", [0, 3, -1])
def test_as_many_volumes_as_subjects_at_most(tmp_path: Path, volumes: int) -> None:
    with (
        spooled(tmp_path, [[5, 6]]) as spool,
        pytest.raises(OptionError, match=f"volumes: got {volumes}, expected 1 to 2, the number of subjects"),
    ):
        ends_by_number(spool, volumes)


def test_what_each_holds(tmp_path: Path, small_windows: None) -> None:
    pick = random.Random(4)
    lengths = [[pick.randint(0, 90) for _ in range(n)] for n in (100, 1, 150)]
    every = [n for each in lengths for n in each]
    with spooled(tmp_path, lengths) as spool:
        ends = [50, 100, 120, 251]
        runs = list(runs_of(spool, ends))
        assert [run.records for run in runs] == list(pairwise([0, *ends]))
        assert [run.residues[1] - run.residues[0] for run in runs] == [
            sum(every[a:b]) for a, b in pairwise([0, *ends])
        ]
        assert runs[-1].header_bytes[1] == spool.n_header_bytes and runs[-1].masked[1] == len(spool.masks)
        held = [
            [(Path(each["path"]).stem, each["records"], each["residues"]) for each in run.sources] for run in runs
        ]
        assert held == [
            [("0", 50, sum(every[:50]))],
            [("0", 50, sum(every[50:100]))],
            [("1", 1, every[100]), ("2", 19, sum(every[101:120]))],
            [("2", 131, sum(every[120:]))],
        ]
