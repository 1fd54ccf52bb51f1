"""Pairs of a group of queries, cut into tasks."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.cluster.backend import MAX_CELLS, MIN_CELLS, SHARES_PER_WORKER, cut_into_tasks


@pytest.mark.parametrize("n_workers", [0, 1, 2, 7])
@pytest.mark.parametrize("cells_of_pair", [0, 1, MIN_CELLS // 400, MIN_CELLS // 10, 2 * MIN_CELLS])
def test_every_pair_is_in_one_task_of_its_volume(cells_of_pair: int, n_workers: int) -> None:
    chance = np.random.default_rng(n_workers)
    volumes = chance.integers(0, 3, 500)
    cells = chance.integers(0, 2 * cells_of_pair + 1, 500)
    found = list(cut_into_tasks(volumes, cells, n_workers))
    for volume in range(3):
        places = np.concatenate([part for of, part in found if of == volume])
        assert places.tolist() == np.flatnonzero(volumes == volume).tolist()
    assert len(found) <= max(SHARES_PER_WORKER * n_workers, -(-int(cells.sum()) // MAX_CELLS)) + 3
    assert all(cells[part].sum() <= MAX_CELLS + cells.max() for _, part in found)


def test_tasks_of_a_volume_are_about_equal_and_none_is_tiny() -> None:
    cells = np.full(1000, MIN_CELLS // 50)
    sizes = [len(part) for _, part in cut_into_tasks(np.zeros(1000, dtype=np.int64), cells, 3)]
    assert len(sizes) == 3 * SHARES_PER_WORKER
    assert max(sizes) - min(sizes) <= 1


def test_little_is_one_task() -> None:
    cells = np.full(40, MIN_CELLS // 50)
    assert [len(part) for _, part in cut_into_tasks(np.zeros(40, dtype=np.int64), cells, 3)] == [40]


def test_no_pairs_are_no_task() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert list(cut_into_tasks(nothing, nothing, 3)) == []
