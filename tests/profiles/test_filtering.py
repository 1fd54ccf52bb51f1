"""Which rows are kept: against a plain reading of the rules."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.errors import OptionError
from swsearch.profiles.query_alignment import GAP
from swsearch.profiles.row_filter import LEVELS, RowFilter, select_diverse


def family(seed: int, n: int = 40, n_columns: int = 30) -> np.ndarray:
    """Rows that come from one by changes, some of them fragments, some of them copies."""
    generator = np.random.default_rng(seed)
    rows = np.tile(generator.integers(0, 20, n_columns).astype(np.uint8), (n, 1))
    for row in rows[1:]:
        changed = generator.random(n_columns) < generator.choice([0, 0.05, 0.2, 0.5, 0.9])
        row[changed] = generator.integers(0, 20, int(changed.sum()))
        if generator.random() < 0.4:
            begin, end = sorted(generator.integers(0, n_columns + 1, 2).tolist())
            row[:begin], row[end:] = GAP, GAP
    return rows


def identity(row: np.ndarray, other: np.ndarray) -> float:
    """The percentage of a row's residues that another has."""
    residues = row != GAP
    return 100 * np.count_nonzero((row == other) & residues) / max(1, np.count_nonzero(residues))


def lacks(rows: np.ndarray, k: int, entered: list[int], diff: int) -> bool:
    """Whether a row covers half of a stretch that too few rows cover."""
    n_columns = rows.shape[1]
    n = max(1, n_columns // 50)
    parts = [rows[:, j * n_columns // n : (j + 1) * n_columns // n] for j in range(n)]
    covered = [2 * np.count_nonzero(part != GAP, axis=1) >= part.shape[1] for part in parts]
    return any(each[k] and each[entered].sum() < diff for each in covered)


def expected(rows: np.ndarray, max_identity: float, most: int | None, diff: int | None = None) -> list[int]:
    """Return the rows to keep, worked out row by row."""
    entered = [0]
    levels = [max_identity]
    if diff is not None or (most is not None and most < len(rows)):
        levels = [level for level in LEVELS if level < max_identity] + levels
    for level in levels:
        for k in range(len(rows)):
            if k in entered or (most is not None and len(entered) >= most):
                continue
            if diff is not None and not lacks(rows, k, entered, diff):
                continue
            if level >= 100 or all(identity(rows[k], rows[j]) < level for j in entered):
                entered.append(k)
    return sorted(entered)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("max_identity", "most"), [(90, None), (50, None), (100, 12), (90, 12), (62.5, 3), (100, 1)])
def test_rows_that_differ_enter_level_by_level(seed: int, max_identity: float, most: int | None) -> None:
    rows = family(seed)
    assert select_diverse(rows, max_identity, most).tolist() == expected(rows, max_identity, most)


@pytest.mark.parametrize("n_columns", [30, 99, 100, 260])
@pytest.mark.parametrize(
    ("max_identity", "most", "diff"), [(100, None, 5), (80, None, 12), (95, 20, 9), (100, 50, 1)]
)
def test_rows_enter_until_each_stretch_has_enough(
    n_columns: int, max_identity: float, most: int | None, diff: int
) -> None:
    rows = family(n_columns, 60, n_columns)
    kept = select_diverse(rows, max_identity, most, diff).tolist()
    assert kept == expected(rows, max_identity, most, diff) and len(kept) < 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_coverage": 101}, "min_coverage: got 101.0, expected a percentage, 0 to 100"),
        ({"max_identity": -1}, "max_identity: got -1.0"),
        ({"min_identity": float("nan")}, "min_identity: got nan"),
        ({"max_seqs": 0}, "max_seqs: got 0, expected an integer >= 1"),
        ({"max_seqs": 2.5}, "max_seqs: got 2.5"),
        ({"diff": 0}, "diff: got 0, expected an integer >= 1"),
    ],
)
def test_what_a_filter_refuses(options: dict[str, float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RowFilter(**options)  # type: ignore[arg-type]
