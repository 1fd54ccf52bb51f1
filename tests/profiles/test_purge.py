"""Which rows of an alignment are copies of others."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.profiles import row_filter
from swsearch.profiles.row_filter import unique_sequences
from swsearch.profiles.sequence_weights import ABSENT, UNKNOWN


def kept(rows: np.ndarray, identity: float = 0.94) -> list[int]:
    return unique_sequences(rows.astype(np.uint8), ABSENT, UNKNOWN, identity).tolist()


def changed(row: np.ndarray, places: list[int]) -> np.ndarray:
    """A copy with other letters in some places."""
    other = row.copy()
    other[places] = (other[places] + 7) % 20
    return other


@pytest.mark.parametrize(("differences", "stays"), [(6, False), (7, True)])
def test_rows_of_94_percent_identity_are_one(differences: int, stays: bool) -> None:
    query, one = np.arange(100) % 20, (np.arange(100) * 3 + 1) % 20
    rows = np.stack([query, one, changed(one, list(range(0, 90, 90 // differences))[:differences])])
    assert len(kept(rows)) == (3 if stays else 2)


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
    monkeypatch.setattr(row_filter, "MAX_PAIRS", 60)  # leaders first
    assert set(all_compared) <= set(kept(rows)), f"seed {seed}"
