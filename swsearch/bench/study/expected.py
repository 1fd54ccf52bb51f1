"""Expected matrices and directions, and the traceback on the CPU.

H, E and F are computed row by row in numpy, and proved against `swsearch.reference`
(tests/bench/study/test_expected.py); numpy takes a second where the reference takes minutes. E runs along a row:
opening a gap never costs less than nothing, so E of a cell comes from a cell to the left whose H is not itself an E,
and a running maximum gives the whole row. The traceback makes the choices of `swsearch.reference`. With linear gaps
two bits per cell are enough. With affine gaps the traceback stays in a gap while the previous cell says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from swsearch import reference
from swsearch.alphabet import ByteArray
from swsearch.options.kinds import Mode
from swsearch.recurrence import Recurrence
from swsearch.reference import Cigar
from swsearch.scoring import Scoring, dna_matrix, load_matrix

GAPS = ("linear", "affine")
"""Kinds of gap costs; linear is affine with gap_open 0."""

MATCH, MISMATCH = 5, -4
DNA_GAPS = {"linear": (0, 6), "affine": (10, 1)}
PROTEIN_GAPS = {"linear": (0, 5), "affine": (11, 1)}
"""gap_open and gap_extend. The papers with DNA leave their scores open; Szafarczyk's gaps cost 5."""

SEED = 2026


@dataclass(frozen=True)
class Problem:
    """Two sequences and the recurrence that is computed for them.

    Parameters
    ----------
    query, subject : ndarray, shape (n,), uint8
        Codes of the scoring's alphabet.
    recurrence : Recurrence
        What fills the matrix, local or global.
    """

    query: ByteArray
    subject: ByteArray
    recurrence: Recurrence

    @property
    def cells(self) -> int:
        """Cells of the matrix without row 0 and column 0."""
        return len(self.query) * len(self.subject)


def dna_scoring(gaps: str) -> Scoring:
    """Return match and mismatch scores with gap costs of a kind."""
    return Scoring(dna_matrix(MATCH, MISMATCH), *DNA_GAPS[gaps])


def protein_scoring(gaps: str) -> Scoring:
    """Return BLOSUM62 with gap costs of a kind."""
    return Scoring(load_matrix("BLOSUM62"), *PROTEIN_GAPS[gaps])


def random_problem(rows: int, columns: int, mode: Mode, gaps: str, *, protein: bool = False) -> Problem:
    """Make a pair up; a stretch of the query stands in the subject, so that some alignment is long.

    Parameters
    ----------
    protein : bool
        20 amino acids with BLOSUM62 instead of 4 bases with match and mismatch.
    """
    generator = np.random.default_rng([SEED, rows, columns, protein])
    letters = 20 if protein else 4
    query = generator.integers(0, letters, rows, dtype=np.uint8)
    subject = generator.integers(0, letters, columns, dtype=np.uint8)
    shared = min(rows, columns) // 2
    subject[columns - shared :] = query[:shared]
    scoring = protein_scoring(gaps) if protein else dna_scoring(gaps)
    return Problem(query, subject, Recurrence(scoring, mode))


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


DirectionWords = npt.NDArray[np.uint32]
Direction = Callable[[int, int], int]
"""Row and column, counted from 1, to a cell's direction."""


def packed_bits(linear: bool) -> int:
    """Return the bits a cell takes in a word of directions."""
    return 2 if linear else 4


def unpack(words: DirectionWords, columns: int, linear: bool) -> ByteTable:
    """Return the directions in packed rows of shape (rows, words), uint32, as shape (rows, columns), uint8."""
    bits = packed_bits(linear)
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    cells = (words[:, :, None] >> shifts) & np.uint32((1 << bits) - 1)
    return cells.reshape(len(words), -1)[:, :columns].astype(np.uint8)


def packed_direction(words: DirectionWords, linear: bool) -> Direction:
    """Return a reader of packed rows that unpacks single cells."""
    bits = packed_bits(linear)
    cells, mask = 32 // bits, (1 << bits) - 1

    def direction(i: int, j: int) -> int:
        word, place = divmod(j - 1, cells)
        return int(words[i - 1, word]) >> (place * bits) & mask

    return direction


def walk_back(direction: Direction, end: tuple[int, int], mode: str, gap_states: bool) -> tuple[int, int, Cigar]:
    """Walk from an end cell to the beginning of the alignment.

    Parameters
    ----------
    end : (int, int)
        The cell to begin at: query rows and subject columns used.
    mode : {"local", "global"}
        Where to stop: at a cell whose H is 0, or in the corner.
    gap_states : bool
        Whether directions say which gaps go on; False for two bits per cell.

    Returns
    -------
    query_start, subject_start : int
        Where the first operation begins, counted from 0.
    cigar : tuple of (int, str)
        As `swsearch.reference.align` returns it.
    """
    i, j = end
    steps: list[str] = []
    while i and j:
        came = direction(i, j)
        source = came & 3
        if source == STOP and mode == "local":
            break
        if source == PAIR:
            steps.append("M")
            i, j = i - 1, j - 1
        elif source == UP:
            steps.append("I")
            i -= 1
            while gap_states and i and direction(i, j) & EXTENDS_F:
                steps.append("I")
                i -= 1
        elif source == LEFT:
            steps.append("D")
            j -= 1
            while gap_states and j and direction(i, j) & EXTENDS_E:
                steps.append("D")
                j -= 1
    if mode == "global":
        steps += "I" * i + "D" * j
        i = j = 0
    return i, j, tuple((len(list(run)), step) for step, run in groupby(reversed(steps)))


def score_of(problem: Problem, start: tuple[int, int], cigar: Cigar) -> int:
    """Score an alignment from its operations alone."""
    scoring: Scoring = problem.recurrence.scoring
    (i, j), total = start, 0
    for length, step in cigar:
        if step == "M":
            total += int(scoring.matrix.scores[problem.query[i : i + length], problem.subject[j : j + length]].sum())
        else:
            total -= scoring.gap_cost(length)
        i += length if step != "D" else 0
        j += length if step != "I" else 0
    return total
