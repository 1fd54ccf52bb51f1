"""Which rows are kept: against a plain reading of the rules."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.errors import OptionError
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.profiles.row_filter import LEVELS, RowFilter, different, first_ones, identical
from tests.support.query_alignments import a3m_rows, alignment_from


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


def expected(rows: np.ndarray, max_identity: float, most: int | None) -> list[int]:
    """What is kept, worked out row by row."""
    entered = [0]
    levels = [max_identity]
    if most is not None and most < len(rows):
        levels = [level for level in LEVELS if level < max_identity] + levels
    for level in levels:
        for k in range(len(rows)):
            if k in entered or (most is not None and len(entered) >= most):
                continue
            if level >= 100 or all(identity(rows[k], rows[j]) < level for j in entered):
                entered.append(k)
    return sorted(entered)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("max_identity", "most"), [(90, None), (50, None), (100, 12), (90, 12), (62.5, 3), (100, 1)])
def test_rows_that_differ_enter_level_by_level(seed: int, max_identity: float, most: int | None) -> None:
    rows = family(seed)
    assert different(rows, max_identity, most).tolist() == expected(rows, max_identity, most)


def test_rows_longer_than_a_byte_counts() -> None:
    rows = family(7, 12, 600)
    counts = identical(np.ascontiguousarray(rows.T), np.where(rows[0] == GAP, 255, rows[0]).astype(np.uint8))
    assert counts.tolist() == [np.count_nonzero((row == rows[0]) & (row != GAP)) for row in rows]
    assert different(rows, 90).tolist() == expected(rows, 90, None)


def test_nothing_and_one() -> None:
    none = np.zeros((0, 5), dtype=np.uint8)
    assert different(none, 90).tolist() == first_ones(none).tolist() == []
    assert different(none[:, :0], 90).tolist() == []
    one = np.zeros((1, 5), dtype=np.uint8)
    assert different(one, 0, 1).tolist() == first_ones(one).tolist() == [0]
    assert first_ones(np.zeros((3, 0), dtype=np.uint8)).tolist() == [0]


TEXTS = "MKTAYIAK", "MKTAYIAK", "MKTAYggIAK", "MKSAYIAR", "----YIAK", "WWWWWIAK", "MKSAYIAR", "--------"


def filtered(**options: float) -> list[str]:
    """What a filter leaves."""
    alignment = alignment_from(*TEXTS)
    before = a3m_rows(alignment)
    left = a3m_rows(RowFilter(**options).filtered(alignment))  # type: ignore[arg-type]
    assert a3m_rows(alignment) == before and left[0] == TEXTS[0]
    return left


def test_rows_that_are_the_same_in_all_columns_enter_once() -> None:
    assert filtered() == ["MKTAYIAK", "MKSAYIAR", "----YIAK", "WWWWWIAK"]


def test_coverage_and_identity_are_of_residues_in_columns() -> None:
    assert filtered(min_coverage=50.1) == ["MKTAYIAK", "MKSAYIAR", "WWWWWIAK"]
    assert filtered(min_coverage=50) == filtered()
    assert filtered(min_identity=75) == ["MKTAYIAK", "MKSAYIAR", "----YIAK"]
    assert filtered(min_identity=100) == ["MKTAYIAK", "----YIAK"]
    assert filtered(max_identity=75) == ["MKTAYIAK", "WWWWWIAK"]
    assert filtered(max_identity=0) == filtered(max_seqs=1) == ["MKTAYIAK"]
    assert filtered(max_seqs=2) == ["MKTAYIAK", "WWWWWIAK"], "the most different one"
    assert filtered(max_seqs=3) == ["MKTAYIAK", "MKSAYIAR", "WWWWWIAK"]


def test_what_is_kept_whole_is_not_copied() -> None:
    alone = QueryAlignment.of_query("q", "", np.zeros(0, dtype=np.uint8))
    assert RowFilter(min_coverage=100, min_identity=100, max_identity=0, max_seqs=1).filtered(alone) is alone


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_coverage": 101}, "min_coverage: got 101.0, expected a percentage, 0 to 100"),
        ({"max_identity": -1}, "max_identity: got -1.0"),
        ({"min_identity": float("nan")}, "min_identity: got nan"),
        ({"max_seqs": 0}, "max_seqs: got 0, expected an integer >= 1"),
        ({"max_seqs": 2.5}, "max_seqs: got 2.5"),
    ],
)
def test_what_a_filter_refuses(options: dict[str, float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RowFilter(**options)  # type: ignore[arg-type]
