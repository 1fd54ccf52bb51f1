"""Counts of the comparison with psiblast's matrices."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.agreement.psiblast_pssm import HEADS, Differences, alignment_of, bits
from swsearch.profiles.query_alignment import GAP


def test_rows_become_an_alignment_of_the_query() -> None:
    made = alignment_of("ACD", ["A-D", "-C-"])
    assert made.columns.tolist() == [[0, 4, 3], [0, GAP, 3], [GAP, 4, GAP]]
    assert len(made) == 3


def test_information_of_the_background_is_none() -> None:
    background = np.full(20, 0.05)
    assert bits(np.stack([background, np.eye(20)[3] + 1e-12]), background) == pytest.approx(
        [0, np.log2(20)], abs=1e-6
    )


def test_a_row_has_a_cell_for_each_head() -> None:
    sums = Differences(
        [np.array([1.0, 2, 3]), np.array([0.0, 5, 9])],
        [np.array([1.0, 2, 4]), np.array([4.0, 5, 9])],
        [np.array([0.5, 1.0])] * 2,
        [np.array([0.5, 1.5])] * 2,
    )
    row = sums.row()
    assert len(row) == len(HEADS) - 2
    assert row[:2] == ["2", "6"]
    assert row[4:9] == ["66.7%", "83.33%", "16.667%", "2", "4"]
