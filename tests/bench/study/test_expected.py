"""Matrices that the study compares with, checked against the reference; alignments read from directions."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch import reference
from swsearch.bench.study.expected import (
    GAPS,
    Problem,
    expected_directions,
    expected_tables,
    random_problem,
    rows_in_numpy,
    score_of,
    walk_back,
)
from swsearch.bench.study.timing import cpu_pair, last_row
from swsearch.options.kinds import Mode

MODES: tuple[Mode, ...] = ("local", "global")
EACH_MODE = pytest.mark.parametrize("mode", MODES)
EACH_KIND = pytest.mark.parametrize("gaps", GAPS)
SIZES = [(1, 1), (1, 40), (40, 1), (33, 57), (64, 20)]


@EACH_MODE
@EACH_KIND
@pytest.mark.parametrize("protein", [False, True])
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_rows_in_numpy_are_the_references(mode: Mode, gaps: str, protein: bool, rows: int, columns: int) -> None:
    problem = random_problem(rows, columns, mode, gaps, protein=protein)
    case = f"{problem}"
    found, expected = rows_in_numpy(problem), expected_tables(problem)
    np.testing.assert_array_equal(found.h, expected.h, case)
    np.testing.assert_array_equal(found.e[1:, 1:], expected.e[1:, 1:], case)
    np.testing.assert_array_equal(found.f[1:, 1:], expected.f[1:, 1:], case)


@EACH_MODE
@EACH_KIND
@pytest.mark.parametrize("seed", range(8))
def test_directions_lead_to_the_references_alignment(mode: Mode, gaps: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    letters = 3  # so that ties are many
    query, subject = (generator.integers(0, letters, n, dtype=np.uint8) for n in generator.integers(1, 40, 2))
    problem = Problem(query, subject, random_problem(1, 1, mode, gaps).recurrence)
    tables = expected_tables(problem)
    directions = expected_directions(problem, tables)
    score, i, j, cigar = reference.align(query, subject, problem.recurrence.scoring, mode)
    end = reference.end_cell(tables.h.tolist(), mode)
    found = walk_back(lambda i, j: int(directions[i, j]), end, mode, gap_states=True)
    assert found == (i, j, cigar), f"seed {seed}: {problem}"
    # two bits a cell suffice for an alignment as good, if gaps are linear
    if gaps == "linear":
        i, j, cigar = walk_back(lambda i, j: int(directions[i, j]) & 3, end, mode, gap_states=False)
        assert score_of(problem, (i, j), cigar) == score, f"seed {seed}: {problem}"


@EACH_MODE
@EACH_KIND
@pytest.mark.parametrize("protein", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (33, 57), (170, 120), (90, 200)])
def test_the_cpu_that_is_timed_is_right(mode: Mode, gaps: str, protein: bool, rows: int, columns: int) -> None:
    problem = random_problem(rows, columns, mode, gaps, protein=protein)
    h = rows_in_numpy(problem).h
    assert cpu_pair(problem).scores == (h.max() if mode == "local" else h[-1, -1],)
    np.testing.assert_array_equal(last_row(problem), h[-1, 1:])
