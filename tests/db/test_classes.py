"""The order of the subjects as a table of lengths is the order of all subjects sorted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.samples import random_cases
from swsearch.blocks import LANES, IntArray, block_columns
from swsearch.db.classes import LengthCounts, counted
from swsearch.db.regroup import SUBJECT_BYTES, group_bounds
from swsearch.errors import MemoryLimitError

lengths_of_many = st.lists(st.sampled_from([0, 0, 1, 7, 8, 9, 30, 31, 64, 65, 400]) | st.integers(0, 900), min_size=1)


@random_cases(60)
@given(st.lists(st.integers(0, 20)))
def test_counted(values: list[int]) -> None:
    expected = np.unique(np.array(values, dtype=np.int32), return_counts=True)
    for found, right in zip(counted(np.array(values, dtype=np.int32)), expected, strict=True):
        assert found.tolist() == right.tolist() and found.dtype == np.int64


@random_cases(200)
@given(lengths_of_many, st.integers(1, 7), st.integers(0, 3000), st.integers(0, 50), st.data())
def test_as_all_subjects_sorted(
    lengths: list[int], at_once: int, budget: int, each: int, data: st.DataObject
) -> None:
    counts = LengthCounts()
    for first in range(0, len(lengths), at_once):
        counts.add(np.array(lengths[first : first + at_once], dtype=np.int64))
    classes = counts.classes()
    ordered: IntArray = np.sort(lengths)[::-1].astype(np.int64)
    before = np.concatenate([[0], np.cumsum(ordered)])
    assert classes.lengths(np.arange(len(ordered))).tolist() == ordered.tolist()
    assert (classes.n_subjects, classes.n_residues) == (len(ordered), ordered.sum())
    assert classes.n_empty == lengths.count(0)
    columns = block_columns(ordered)
    assert (classes.n_blocks, classes.n_columns) == (len(columns), columns.sum())
    assert [classes.residues_before(rank) for rank in range(len(ordered) + 1)] == before.tolist()
    assert (classes.values[classes.of_lengths(ordered)] == ordered).all()
    begin = data.draw(st.integers(0, len(ordered)))
    costs = before + each * np.arange(len(before))
    assert classes.rank_within(begin, budget, each) == np.flatnonzero(costs - costs[begin] <= budget)[-1]


@random_cases(100)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=700), st.integers(0, 20_000))
def test_group_bounds(lengths: list[int], most: int) -> None:
    counts = LengthCounts()
    counts.add(np.array(lengths))
    classes = counts.classes()
    first_block = classes.residues_before(min(LANES, len(lengths)))
    if first_block > most:
        with pytest.raises(MemoryLimitError, match=f"have {first_block:,} residues together; allow at least"):
            group_bounds(classes, most)
        return
    bounds = group_bounds(classes, most)
    assert bounds[0] == 0 and bounds[-1] == len(lengths)
    for begin, end in pairwise(bounds):
        n_residues = classes.residues_before(end) - classes.residues_before(begin)
        assert begin < end and (end % LANES == 0 or end == len(lengths)) and n_residues <= most
        assert n_residues + SUBJECT_BYTES * (end - begin) <= most * 3 // 2 or end - begin <= LANES
