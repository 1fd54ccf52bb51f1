"""What the study's matrices are compared with, itself compared with the reference; alignments read off directions."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch import reference
from swsearch.bench.study.expected import (
    GAPS,
    Problem,
    expected_directions,
    expected_tables,
    packed_bits,
    packed_direction,
    protein_scoring,
    random_problem,
    rows_in_numpy,
    score_of,
    unpack,
    walk_back,
)
from swsearch.bench.study.inter_task import SIDE, WARP_LANES, interleave, packed_profile
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


@pytest.mark.parametrize("linear", [True, False])
def test_packed_directions(linear: bool) -> None:
    cells = 32 // packed_bits(linear)
    directions = np.random.default_rng(5).integers(0, 1 << packed_bits(linear), (3, 50), dtype=np.uint8)
    words = np.zeros((3, -(-50 // cells)), np.uint32)
    for (i, j), value in np.ndenumerate(directions):
        words[i, j // cells] |= np.uint32(int(value) << (j % cells * packed_bits(linear)))
    np.testing.assert_array_equal(unpack(words, 50, linear), directions)
    read = packed_direction(words, linear)
    assert [[read(i + 1, j + 1) for j in range(50)] for i in range(3)] == directions.tolist()


def test_a_score_from_operations_alone() -> None:
    problem = random_problem(10, 12, "global", "affine")
    matched = int(problem.recurrence.scoring.matrix.scores[problem.query[:10], problem.subject[:10]].sum())
    assert score_of(problem, (0, 0), ((10, "M"), (2, "D"))) == matched - problem.recurrence.scoring.gap_cost(2)


def test_the_interleaved_database() -> None:
    generator = np.random.default_rng(3)
    subjects = [generator.integers(0, 20, n, dtype=np.uint8) for n in generator.integers(1, 30, 70)]
    layout = interleave(subjects)
    assert layout.n_residues == sum(map(len, subjects))
    assert (np.diff([len(subjects[place]) for place in layout.order]) >= 0).all()
    for place, subject in enumerate(layout.order):
        group, lane = divmod(place, WARP_LANES)
        begin = int(layout.begins[group]) + lane
        words = layout.words[begin : int(layout.begins[group]) + WARP_LANES * int(layout.lengths[group]) : WARP_LANES]
        residues = np.ascontiguousarray(words).view(np.uint8)
        assert residues[: len(subjects[subject])].tolist() == subjects[subject].tolist()
        assert (residues[len(subjects[subject]) :] == 31).all()


def test_the_packed_profile() -> None:
    query = np.arange(6, dtype=np.uint8)
    scoring = protein_scoring("affine")
    profile = packed_profile(query, scoring)
    assert profile.shape == (2, 32)
    bytes_of = profile.view(np.int8).reshape(2, 32, SIDE)
    for row in range(6):
        assert bytes_of[row // SIDE, :, row % SIDE].tolist() == scoring.matrix.scores[row].tolist()
    assert (bytes_of[1, :, 2:] < -100).all()


@EACH_MODE
@EACH_KIND
@pytest.mark.parametrize("protein", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (33, 57), (170, 120), (90, 200)])
def test_the_cpu_that_is_timed_is_right(mode: Mode, gaps: str, protein: bool, rows: int, columns: int) -> None:
    problem = random_problem(rows, columns, mode, gaps, protein=protein)
    h = rows_in_numpy(problem).h
    assert cpu_pair(problem).scores == (h.max() if mode == "local" else h[-1, -1],)
    np.testing.assert_array_equal(last_row(problem), h[-1, 1:])
