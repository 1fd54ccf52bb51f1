"""What a filled matrix must hold: all of H, E and F, row by row in numpy, and the directions that follow from them.

`swsearch.reference` is what it is proved against (tests/bench/study/test_expected.py); numpy takes a second where
the reference takes minutes. The only trick is E, which runs along a row: since opening a gap never costs less than
nothing, E of a cell comes from a cell to the left whose H is not itself an E, so that a running maximum gives the
whole row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch import reference
from swsearch.bench.study.problem import Problem

STOP, PAIR, UP, LEFT = 0, 1, 2, 3
EXTENDS_E, EXTENDS_F = 4, 8
"""A cell's direction, as ``cuda/study/study.cuh`` has it: where H came from, and which gaps leave it extended."""

NO_PATH = -(1 << 40)

REFERENCE_CELLS = 20_000
"""Matrices up to here are filled by `swsearch.reference`."""

CellTable = npt.NDArray[np.int64]
ByteTable = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Tables:
    """The three matrices of a pair, each of shape (rows + 1, columns + 1), int64, matrix units."""

    h: CellTable
    e: CellTable
    f: CellTable


def expected_tables(problem: Problem) -> Tables:
    """Fill a pair's matrices: small ones by the reference, others by numpy."""
    if problem.cells <= REFERENCE_CELLS:
        filled = reference.tables(problem.query, problem.subject, problem.recurrence.scoring, problem.recurrence.mode)
        return Tables(*(np.maximum(np.array(one, dtype=np.int64), NO_PATH) for one in filled))
    return rows_in_numpy(problem)


def rows_in_numpy(problem: Problem) -> Tables:
    """Fill a pair's matrices a row at a time."""
    m, n = len(problem.query), len(problem.subject)
    scoring, local = problem.recurrence.scoring, problem.recurrence.is_local
    first, extend = scoring.gap_first, scoring.gap_extend
    scores = scoring.matrix.scores.astype(np.int64)
    h = np.zeros((m + 1, n + 1), dtype=np.int64)
    e, f = np.full_like(h, NO_PATH), np.full_like(h, NO_PATH)
    steps = np.arange(n + 1)
    if not local:
        costs = -(scoring.gap_open + steps * extend)
        h[0, 1:] = e[0, 1:] = costs[1:]
        h[1:, 0] = f[1:, 0] = -(scoring.gap_open + np.arange(1, m + 1) * extend)
    for i in range(1, m + 1):
        f[i, 1:] = np.maximum(f[i - 1, 1:] - extend, h[i - 1, 1:] - first)
        row = np.maximum(h[i - 1, :-1] + scores[problem.query[i - 1]][problem.subject], f[i, 1:])
        if local:
            row = np.maximum(row, 0)
        without_e = np.concatenate([h[i, :1], row])
        reach = np.maximum.accumulate(without_e + steps * extend)[:-1]
        e[i, 1:] = reach - scoring.gap_open - steps[1:] * extend
        h[i, 1:] = np.maximum(row, e[i, 1:])
    return Tables(h, e, f)


def expected_directions(problem: Problem, tables: Tables) -> ByteTable:
    """Return each cell's direction, shape (rows + 1, columns + 1), uint8; row 0 and column 0 hold 0."""
    scoring = problem.recurrence.scoring
    h, e, f = tables.h[1:, 1:], tables.e[1:, 1:], tables.f[1:, 1:]
    paired = tables.h[:-1, :-1] + scoring.matrix.scores[np.ix_(problem.query, problem.subject)]
    inner = np.where(h == paired, PAIR, np.where(h == f, UP, LEFT))
    if problem.recurrence.is_local:
        inner[h == 0] = STOP
    inner |= np.where(e - scoring.gap_extend >= h - scoring.gap_first, EXTENDS_E, 0)
    inner |= np.where(f - scoring.gap_extend >= h - scoring.gap_first, EXTENDS_F, 0)
    directions = np.zeros(tables.h.shape, dtype=np.uint8)
    directions[1:, 1:] = inner
    return directions
