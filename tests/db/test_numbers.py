"""Numbers in files come back as they went in, in pieces of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.samples import random_cases
from swsearch.db.numbers import NumberFile, RunFile, running_sums


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_numbers(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.db.numbers.NUMBERS_AT_ONCE", at_once)
    file = NumberFile(None, "<i4")
    assert list(file.pieces()) == [] and [each.tolist() for each in running_sums(file.pieces())] == [[0]]
    file.write(np.arange(7)[::-1])  # a view in another order, of another type
    assert file.read(2, 4).tolist() == [4, 3]
    file.write(np.arange(5))
    file.write(np.array([9, 9]), at=1)
    expected = [6, 9, 9, 3, 2, 1, 0, 0, 1, 2, 3, 4]
    assert np.concatenate(list(file.pieces())).tolist() == expected and len(file) == 12
    assert np.concatenate(list(running_sums(file.pieces()))).tolist() == [0, *np.cumsum(expected)]
    file.close()


@random_cases(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.integers(0, 4), max_size=40), at_once=st.integers(1, 9), added=st.integers(1, 9))
def test_runs(counts: list[int], at_once: int, added: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.db.numbers.NUMBERS_AT_ONCE", at_once)
    owners = np.repeat(np.arange(len(counts)), counts)
    starts = np.arange(len(owners))
    runs = RunFile(None)
    for first in range(0, len(owners), added):
        part = slice(first, first + added)
        runs.add(owners[part], starts[part], starts[part] + 2)
    found = [each for piece in runs.counts(len(counts)) for each in piece.tolist()]
    assert (found, len(runs), runs.n_masked) == (counts, len(owners), 2 * len(owners))
    assert np.concatenate([[], *runs.starts.pieces()]).tolist() == starts.tolist()
    runs.close()
