"""Reading an alignment off stored directions, on the CPU, with `swsearch.reference`'s choices.

With linear gaps two bits per cell suffice: a gap's steps are each a step back to H. With affine gaps the walk stays
in a gap while the cell that it came from says so.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import numpy as np
import numpy.typing as npt

from swsearch.bench.study.expected import EXTENDS_E, EXTENDS_F, LEFT, PAIR, STOP, UP, ByteTable
from swsearch.bench.study.problem import Problem
from swsearch.reference import Cigar
from swsearch.scoring import Scoring

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
    """Return a reader of packed rows that unpacks only what is asked for."""
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
    direction : callable
        Row and column to direction.
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
