"""Position-based weights, the columns that they are taken over, and how many observations rows are."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.profiles.calibration import BACKGROUND
from swsearch.profiles.query_alignment import GAP
from swsearch.profiles.sequence_weights import (
    _ROWS_PER_CHANGE,
    ABSENT,
    INNER_GAP,
    UNKNOWN,
    cells_of,
    independent,
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


def test_equal_rows_share_alike() -> None:
    weights, observations = weights_of(np.ascontiguousarray(cells("ACDE", "ACDE", "ACDE").T))
    assert weights == pytest.approx([1 / 3] * 3)
    assert observations == pytest.approx(1.0, abs=0.1)


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


def test_cells_tell_gaps_from_ends() -> None:
    found = cells("ACDEF", "-C-E-", "U*X--", "-----")
    c = PROTEIN.letters.index("C")
    assert found[1].tolist() == [ABSENT, c, INNER_GAP, PROTEIN.letters.index("E"), ABSENT]
    assert found[2].tolist() == [c, UNKNOWN, UNKNOWN, ABSENT, ABSENT]
    assert (found[3] == ABSENT).all()


def test_rows_are_absent_from_long_gaps() -> None:
    rows = cells("A" * 30, "CC" + "-" * 9 + "C" * 19, "CCC" + "-" * 10 + "C" * 17, "-" * 12 + "C" * 18)
    assert (rows[1, 2:11] == INNER_GAP).all()
    assert (rows[2, 3:13] == ABSENT).all()
    found = observe(rows, 25, 100)
    assert found.n_rows.tolist() == [3] * 3 + [2] * 9 + [3] + [4] * 17
    assert found.gaps[2] > 0
    assert found.frequencies.sum(axis=1) + found.gaps == pytest.approx(np.ones(30))
    assert cells_of(np.full((2, 4), GAP, dtype=np.uint8), 1).tolist() == [[ABSENT] * 4] * 2


def test_frequencies_gaps_and_unknown_letters_sum_to_one() -> None:
    found = observe(cells("ACDEFG", "-C-EX-", "ACDEFG", "WW---W"), 1, 100)
    assert found.frequencies.sum(axis=1) + found.gaps + found.unknown == pytest.approx(np.ones(6))
    assert found.n_rows.tolist() == [3, 4, 4, 4, 4, 3]
    assert found.gaps[2] > 0
    assert found.unknown[4] > 0
    assert found.unknown[[0, 1, 2, 3, 5]].sum() == 0


def test_columns_of_the_query_alone_observe_nothing() -> None:
    found = observe(cells("ACDEFG", "--DE--"), 1, 100)
    assert found.observations[[0, 1, 4, 5]].tolist() == [0] * 4
    assert found.frequencies[0, PROTEIN.letters.index("A")] == 1
    assert found.observations[2] >= 0


def test_blocks_are_what_all_rows_of_a_column_extend_over() -> None:
    """Two rows are alike where the last is not there, and only blocks of a width see that."""
    rows = cells("ACDEFGHIKLMN", "ACDEFGHIKLWW", "WWWWWWWWWWAH", "----------YY")
    narrow, wide = (observe(rows, width, 100).frequencies[11] for width in (1, 12))
    n, w, h, y = (PROTEIN.letters.index(letter) for letter in "NWHY")
    assert narrow[[n, w, h, y]] == pytest.approx([1 / 4] * 4)
    assert wide[h] > wide[y] > wide[w] == pytest.approx(wide[n])


def test_widest_blocks_hold_their_own_columns() -> None:
    generator = np.random.default_rng(2)
    rows = generator.integers(0, 20, (6, 60)).astype(np.uint8)
    assert observe(rows, 1, 5).frequencies.sum(axis=1) == pytest.approx(np.ones(60))


def test_many_rows_share_weights_between_neighbouring_columns() -> None:
    """What begins one row at a time is weighted as if it had begun together; frequencies hardly differ."""
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


def test_independent_observations_invert_the_expected_number_of_kinds() -> None:
    for n in (1, 3, 10, 50):
        expected = (1 - (1 - BACKGROUND) ** n).sum()
        columns = np.array([int(expected), int(expected) + 1])
        between = [independent(np.array([kinds])) for kinds in columns]
        assert between[0] <= n <= between[1] + 1e-9
    assert independent(np.array([0, 0])) == 1
    assert independent(np.array([20])) == 400
