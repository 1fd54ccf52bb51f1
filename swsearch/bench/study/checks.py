"""Checks of whole matrices, cell by cell, before the timing.

The matrices on the device are poisoned before each run, so that a missing cell cannot pass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch import reference
from swsearch.alphabet import ByteArray
from swsearch.bench.study.diagonals import MatrixRun, StripRun
from swsearch.bench.study.expected import (
    ByteTable,
    CellTable,
    Problem,
    expected_directions,
    expected_tables,
    protein_scoring,
    random_problem,
    score_of,
    walk_back,
)
from swsearch.bench.study.inter_task import DatabaseOnDevice, InterTaskRun
from swsearch.bench.study.machine import GpuMachine
from swsearch.bench.study.variants import Variant
from swsearch.errors import EngineError
from swsearch.options.kinds import Mode
from swsearch.recurrence import Recurrence

SMALL = ((70, 90), (1, 1), (33, 31), (5, 140))
"""Rows and columns around the borders of tiles; filled by the reference."""

LARGER = (2_100, 2_300)
"""Long enough for launches of whole grids, several strips, and a barrier of many blocks; filled by numpy."""

CHECK_SEED = 7
CHECK_SUBJECTS = 150
CHECK_QUERIES = (37, 4, 1)
"""Query lengths, in residues, that check the inter-task kernels."""


class MismatchError(EngineError):
    """A matrix that is not what the reference says.

    Parameters
    ----------
    variant : Variant
        What filled it.
    case : str
        Gap costs and size.
    what : str
        Which matrix.
    result, expected : ndarray
        Of one shape.
    """

    def __init__(
        self, variant: Variant, case: str, what: str, result: npt.NDArray[Any], expected: npt.NDArray[Any]
    ) -> None:
        wrong = np.argwhere(result != expected)
        i, j = wrong[0]
        super().__init__(
            f"{variant}, {case}: {what} of cell ({i}, {j}) is {result[i, j]}, expected {expected[i, j]}; "
            f"{len(wrong):,} of {result.size:,} cells differ"
        )


@lru_cache(maxsize=16)
def known(
    rows: int, columns: int, mode: Mode, gaps: str, protein: bool
) -> tuple[Problem, CellTable, ByteTable, tuple[int, reference.Cigar | None]]:
    """Make up a pair and return what the reference fills.

    Returns
    -------
    problem : Problem
        The pair.
    h : ndarray, shape (rows + 1, columns + 1), int64
        Matrix units.
    directions : ndarray, shape (rows + 1, columns + 1), uint8
        As `expected_directions` returns them.
    alignment : tuple
        The score and, of a small pair, the reference's CIGAR.
    """
    problem = random_problem(rows, columns, mode, gaps, protein=protein)
    tables = expected_tables(problem)
    if (rows, columns) == LARGER:
        score, cigar = int(tables.h.max() if mode == "local" else tables.h[-1, -1]), None
    else:
        score, _, _, cigar = reference.align(
            problem.query, problem.subject, problem.recurrence.scoring, problem.recurrence.mode
        )
    return problem, tables.h, expected_directions(problem, tables), (score, cigar)


def check_variant(
    machine: GpuMachine, variant: Variant, gaps: str, shapes: tuple[tuple[int, int], ...] = (*SMALL, LARGER)
) -> int:
    """Fill matrices of several sizes and compare every cell; return how many cells were compared.

    Raises
    ------
    MismatchError
        If a cell differs.
    """
    if variant.approach == "inter-task":
        return sum(_check_inter_task(machine, variant, gaps, length) for length in CHECK_QUERIES)
    check = _check_strips if variant.approach == "strips" else _check_matrix
    return sum(check(machine, variant, gaps, rows, columns) for rows, columns in shapes)


def _check_matrix(machine: GpuMachine, variant: Variant, gaps: str, rows: int, columns: int) -> int:
    problem, h, directions, (score, cigar) = known(rows, columns, variant.mode, gaps, False)
    case = f"{gaps} gaps, {rows} x {columns}"
    run = MatrixRun(machine, variant, problem, gaps)
    run.poison()
    run.enqueue()
    _compare(variant, case, "H", run.scores(), h)
    result = run.directions()
    if result is not None:
        _compare(variant, case, "direction", result, directions)
        start_i, start_j, walked = walk_back(
            lambda i, j: int(result[i, j]), (rows, columns), variant.mode, gap_states=True
        )
        _compare_alignment(variant, case, problem, (start_i, start_j), walked, (score, cigar))
    return rows * columns


def _check_strips(machine: GpuMachine, variant: Variant, gaps: str, rows: int, columns: int) -> int:
    problem, h, directions, (score, cigar) = known(rows, columns, variant.mode, gaps, True)
    case = f"{gaps} gaps, {rows} x {columns}"
    run = StripRun(machine, variant, problem, gaps, keep=True)
    run.poison()
    run.enqueue()
    machine.wait()
    _compare(variant, case, "H", run.scores(), h[1:, 1:])
    linear = gaps == "linear"
    _compare(variant, case, "direction", run.directions(), directions[1:, 1:] & (3 if linear else 15))
    i, j, walked = run.trace()
    # two bits per cell may choose another of several equally good alignments
    _compare_alignment(variant, case, problem, (i, j), walked, (score, None if linear else cigar))
    if run.last_score() != score:
        raise EngineError(f"{variant}, {case}: score {run.last_score()}, expected {score}")
    return rows * columns


@lru_cache(maxsize=16)
def known_subjects(gaps: str, length: int) -> tuple[ByteArray, list[ByteArray], list[CellTable]]:
    """Make up a query and subjects, and return what the reference fills.

    Returns
    -------
    query : ndarray, shape (length,), uint8
        Codes of amino acids.
    subjects : list of ndarray, each of shape (n,), uint8
        The same.
    tables : list of ndarray, each of shape (length, n), int64
        H of the query and each subject without row 0 and column 0, matrix units.
    """
    generator = np.random.default_rng([CHECK_SEED, length])
    scoring = protein_scoring(gaps)
    query = generator.integers(0, 20, length, dtype=np.uint8)
    lengths = generator.integers(1, 80, CHECK_SUBJECTS).tolist()
    subjects = [generator.integers(0, 20, n, dtype=np.uint8) for n in lengths]
    tables = [expected_tables(Problem(query, one, Recurrence(scoring))).h[1:, 1:] for one in subjects]
    return query, subjects, tables


def _check_inter_task(machine: GpuMachine, variant: Variant, gaps: str, length: int) -> int:
    query, subjects, tables = known_subjects(gaps, length)
    scoring = protein_scoring(gaps)
    run = InterTaskRun(machine, variant, DatabaseOnDevice(machine, subjects), query, scoring, gaps, keep=True)
    timed = InterTaskRun(machine, variant, run.database, query, scoring, gaps)
    for one in (run, timed):
        one.poison()
        one.enqueue()
    scores, plain = run.scores(), timed.scores()
    for place, (matrix, expected) in enumerate(zip(run.matrices(), tables, strict=True)):
        case = f"{gaps} gaps, query of {length}, subject {place} of {len(subjects[place])}"
        _compare(variant, case, "H", matrix, expected)
        if not scores[place] == plain[place] == expected.max():
            raise EngineError(
                f"{variant}, {case}: scores {scores[place]} and, without the matrix, {plain[place]}, expected "
                f"{expected.max()}"
            )
    return sum(table.size for table in tables)


def _compare(variant: Variant, case: str, what: str, result: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    if result.shape != expected.shape:
        raise EngineError(f"{variant}, {case}: {what} has shape {result.shape}, expected {expected.shape}")
    if not np.array_equal(result, expected):
        raise MismatchError(variant, case, what, result, expected)


def _compare_alignment(
    variant: Variant, case: str, problem: Problem, start: tuple[int, int], walked: reference.Cigar,
    expected: tuple[int, reference.Cigar | None],
) -> None:  # fmt: skip
    score, cigar = expected
    if cigar is not None and walked != cigar:
        raise EngineError(f"{variant}, {case}: alignment {walked}, expected {cigar}")
    if score_of(problem, start, walked) != score:
        raise EngineError(f"{variant}, {case}: an alignment of {score_of(problem, start, walked)}, expected {score}")
