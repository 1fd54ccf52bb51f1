"""Position-based weights, the columns that they are taken over, and how many observations rows are."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.profiles.query_alignment import GAP
from swsearch.profiles.sequence_weights import (
    _ROWS_PER_CHANGE,
    ABSENT,
    cells_of,
    observe,
    weights_of,
)

FIGURE = ("GYVGS", "GFDGF", "GYDGF", "GYQGG")
"""The example of Henikoff and Henikoff, J. Mol. Biol. 243:574, 1994."""


def cells(*rows: str) -> np.ndarray:
    """Rows of letters and dashes as cells."""
    codes = np.array([[GAP if letter == "-" else PROTEIN.letters.index(letter) for letter in row] for row in rows])
    return cells_of(codes.astype(np.uint8), 9)


def test_weights_are_those_of_the_paper() -> None:
    """Column by column: G 1/4 each; F 1/2, Y 1/6; V and Q 1/3, D 1/6; G 1/4; S and G 1/3, F 1/6. Their mean."""
    weights, _ = weights_of(np.ascontiguousarray(cells(*FIGURE).T))
    first = (1 / 4 + 1 / 6 + 1 / 3 + 1 / 4 + 1 / 3) / 5
    second = (1 / 4 + 1 / 2 + 1 / 6 + 1 / 4 + 1 / 6) / 5
    third = (1 / 4 + 1 / 6 + 1 / 6 + 1 / 4 + 1 / 6) / 5
    assert weights == pytest.approx([first, second, third, first])
    assert [round(weight, 2) for weight in weights.tolist()] == [0.27, 0.27, 0.2, 0.27]


def test_a_row_is_not_counted_where_it_is_absent() -> None:
    """In the last column two rows share, and the third has the mean of its first three."""
    weights, _ = weights_of(np.ascontiguousarray(cells("ACDE", "ACDF", "WCD-").T))
    shares = [
        [3 / (2 * 2), 1, 1, 2 / (2 * 1)],
        [3 / (2 * 2), 1, 1, 2 / (2 * 1)],
        [3 / (2 * 1), 1, 1],
    ]
    means = [np.mean(share) for share in shares]
    assert weights == pytest.approx(np.array(means) / sum(means))


def test_many_rows_share_weights_between_neighbouring_columns() -> None:
    """Rows that begin one at a time get the weights of rows that begin together; frequencies hardly differ."""
    generator = np.random.default_rng(1)
    n = 4 * _ROWS_PER_CHANGE
    rows = generator.integers(0, 20, (n, 80)).astype(np.uint8)
    for row in range(1, n):
        rows[row, : row % 40] = ABSENT
    found = observe(rows, 25, 100)
    exact = np.array([np.bincount(column[column < 20], minlength=20) for column in rows.T])
    assert found.frequencies.sum(axis=1) == pytest.approx(np.ones(80))
    assert found.n_rows.tolist() == (rows != ABSENT).sum(axis=0).tolist()
    assert np.abs(found.frequencies - exact / exact.sum(axis=1, keepdims=True)).max() < 0.05
