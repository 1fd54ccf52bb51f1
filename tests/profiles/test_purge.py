"""Which rows of an alignment are copies of others."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.profiles import row_filter
from swsearch.profiles.row_filter import kept_rows
from swsearch.profiles.sequence_weights import ABSENT, INNER_GAP, UNKNOWN


def kept(rows: np.ndarray, identity: float = 0.94) -> list[int]:
    return kept_rows(rows.astype(np.uint8), ABSENT, UNKNOWN, identity).tolist()


def changed(row: np.ndarray, places: list[int]) -> np.ndarray:
    """A copy with other letters in some places."""
    other = row.copy()
    other[places] = (other[places] + 7) % 20
    return other


def test_copies_of_the_query_go_and_what_differs_once_stays() -> None:
    query = np.arange(100) % 20
    part = query.copy()
    part[:30] = ABSENT
    unknown = query.copy()
    unknown[5] = UNKNOWN
    rows = np.stack([query, query, part, changed(query, [50]), unknown, np.full(100, ABSENT)])
    assert kept(rows) == [0, 3]


@pytest.mark.parametrize(("differences", "stays"), [(6, False), (7, True)])
def test_rows_of_94_percent_identity_are_one(differences: int, stays: bool) -> None:
    query, one = np.arange(100) % 20, (np.arange(100) * 3 + 1) % 20
    rows = np.stack([query, one, changed(one, list(range(0, 90, 90 // differences))[:differences])])
    assert len(kept(rows)) == (3 if stays else 2)


def test_the_longest_is_kept_and_unknown_letters_are_not_compared() -> None:
    query, one = np.arange(100) % 20, (np.arange(100) * 3 + 1) % 20
    short, other = one.copy(), one.copy()
    short[60:] = ABSENT
    other[40:60] = UNKNOWN
    assert kept(np.stack([query, short, one])) == [0, 2]
    assert kept(np.stack([query, one, other])) in ([0, 1], [0, 2])
    gapped = one.copy()
    gapped[20:40] = INNER_GAP
    assert len(kept(np.stack([query, gapped, one]))) == 3


def test_above_one_only_copies_of_the_query_go() -> None:
    query, one = np.arange(100) % 20, (np.arange(100) * 3 + 1) % 20
    assert len(kept(np.stack([query, one, one, query]), 1.5)) == 3
    assert len(kept(np.stack([query, one, one, query]), 1.0)) == 2


def family(generator: np.random.Generator, n: int, n_columns: int) -> np.ndarray:
    """Rows in clusters of near-identical ones, ragged."""
    bases = generator.integers(0, 20, (max(1, n // 5), n_columns))
    rows = bases[generator.integers(0, len(bases), n)]
    places = generator.random(rows.shape) < generator.choice([0.0, 0.02, 0.08], (n, 1))
    rows[places] = generator.integers(0, 22, int(places.sum()))
    rows[rows == UNKNOWN] = 0
    columns = np.arange(n_columns)
    begins, ends = generator.integers(0, 20, n), n_columns - generator.integers(0, 20, n)
    rows[(columns < begins[:, None]) | (columns >= ends[:, None])] = ABSENT
    rows[0] = generator.integers(0, 20, n_columns)
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_words_find_what_comparing_all_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(seed)
    rows = family(generator, 40, 150)
    monkeypatch.setattr(row_filter, "FEW_ROWS", 1 << 30)
    all_compared = kept(rows)
    monkeypatch.setattr(row_filter, "FEW_ROWS", 0)
    assert kept(rows) == all_compared, f"seed {seed}"
    monkeypatch.setattr(row_filter, "MOST_PAIRS", 60)  # leaders first
    assert set(all_compared) <= set(kept(rows)), f"seed {seed}"


@pytest.mark.parametrize("seed", range(2))
def test_order_does_not_matter(seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = family(generator, 60, 120)
    order = np.concatenate([[0], 1 + generator.permutation(59)])
    assert np.array_equal(rows[kept(rows)], rows[order][kept(rows[order])]), f"seed {seed}"


def test_thousands_of_copies_with_a_difference_each_are_few() -> None:
    generator = np.random.default_rng(3)
    rows = np.tile(generator.integers(0, 20, 200), (3000, 1))
    rows[0] = generator.integers(0, 20, 200)
    rows[np.arange(3000), generator.integers(0, 200, 3000)] = generator.integers(0, 20, 3000)
    assert len(kept(rows)) == 2
