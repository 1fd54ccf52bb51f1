"""The oracle for pairs too large for `swsearch.reference`: rows vectorised with numpy, checkpoints.

A forward pass keeps H and F of some rows (checkpoints), as many as rows between two of them; the path is then
followed backwards through one strip of rows at a time, filled again from the checkpoint above it. Within a row the
horizontal gap E is a running maximum: it may be opened from max(pair, F) alone, since opening a gap right after a gap
never gains (gap_open >= 0). Which of several equal alignments is reported is stated, and proved against, in
`swsearch.reference`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.options.kinds import Mode
from swsearch.reference import Cigar
from swsearch.scoring import Ends, Scoring, check_ends

Array = npt.NDArray[Any]


@dataclass
class _Path:
    """Where the way back stands: a cell, the matrix it is in, and the steps so far, last one first."""

    row: int
    column: int
    state: str
    steps: list[str]
    done: bool = False


class _Rows:
    """The recurrence, one row of the matrix at a time."""

    def __init__(self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends) -> None:
        self.query, self.scoring, self.mode, self.ends = query, scoring, mode, ends
        low, high = scoring.score_range(mode, len(query), len(subject))
        reach = max(-low, high) + scoring.gap_cost(len(subject)) + scoring.gap_first
        # four times the reach: minus infinity must survive additions without wrapping
        self.dtype: type[np.signedinteger[Any]] = np.int32 if reach < 1 << 28 else np.int64
        self.neg = -(1 << 29) if self.dtype is np.int32 else -(1 << 60)
        letters = scoring.matrix.scores[:, subject].astype(self.dtype)
        self._scores = {int(code): letters[code] for code in np.unique(query)}
        self._ramp = np.arange(len(subject) + 1, dtype=self.dtype) * scoring.gap_extend

    def top(self, columns: int) -> tuple[Array, Array]:
        """Return H and F of row 0, shape (columns + 1,)."""
        H = np.zeros(columns + 1, dtype=self.dtype)
        if not self.ends.subject_start:
            H[1:] = -self.scoring.gap_open - self._ramp[1 : columns + 1]
        return H, np.full(columns + 1, self.neg, dtype=self.dtype)

    def step(self, row: int, above: tuple[Array, Array], out: tuple[Array, Array, Array]) -> None:
        """Fill H, E and F of a row (counted from 1) from H and F of the row above; all (columns + 1,)."""
        H_above, F_above = above
        H, E, F = out
        columns = len(H) - 1
        open_, extend = self.scoring.gap_open, self.scoring.gap_extend
        np.subtract(H_above, open_, out=F)
        np.maximum(F, F_above, out=F)
        np.subtract(F, extend, out=F)
        np.add(H_above[:-1], self._scores[int(self.query[row - 1])][:columns], out=H[1:])
        np.maximum(H[1:], F[1:], out=H[1:])
        if not self.ends.query_start:
            H[0] = F[0] = -self.scoring.gap_cost(row)
        else:
            H[0], F[0] = 0, self.neg
            if self.mode == "local":
                np.maximum(H, 0, out=H)
        ramp = self._ramp[: columns + 1]
        np.add(H[:-1], ramp[:-1], out=E[1:])
        np.maximum.accumulate(E[1:], out=E[1:])
        np.subtract(E[1:], ramp[1:], out=E[1:])
        np.subtract(E[1:], open_, out=E[1:])
        E[0] = self.neg
        np.maximum(H, E, out=H)

    def walk(self, first: int, last: int, above: tuple[Array, Array]) -> Iterator[tuple[int, Array, Array]]:
        """Yield (row, H, F) for the rows ``first`` to ``last``; the arrays are used again for the next row."""
        columns = len(above[0]) - 1
        spare = [np.empty((2, columns + 1), dtype=self.dtype) for _ in range(2)]
        E = np.empty(columns + 1, dtype=self.dtype)
        for row in range(first, last + 1):
            H, F = spare[row % 2]
            self.step(row, above, (H, E, F))
            above = (H, F)
            yield row, H, F


def _through_strip(path: _Path, first: int, above: tuple[Array, Array], rows: _Rows) -> None:
    """Move ``path`` up to row ``first`` (or to its end), given H and F of row ``first``."""
    columns, n_rows = path.column, path.row - first + 1
    H, E, F = np.empty((3, n_rows, columns + 1), dtype=rows.dtype)
    H[0], F[0], E[0] = above[0][: columns + 1], above[1][: columns + 1], rows.neg
    if not rows.ends.subject_start and first == 0:
        E[0, 1:] = H[0, 1:]
    for k in range(1, n_rows):
        rows.step(first + k, (H[k - 1], F[k - 1]), (H[k], E[k], F[k]))
    follow(path, first, H, E, F, rows)


def follow(path: _Path, first: int, H: Array, E: Array, F: Array, rows: _Rows) -> None:
    """Follow the path through rows ``first`` (matrix row 0 of the tables) to its own row, in place."""
    extend, mode, ends = rows.scoring.gap_extend, rows.mode, rows.ends
    scores, query = rows._scores, rows.query
    i, j, state, push = path.row, path.column, path.state, path.steps.append
    while i > first or (i == first == 0 and not path.done):
        k = i - first
        if state == "M":
            h = H[k, j]
            free = (i == 0 and ends.subject_start) or (j == 0 and ends.query_start)
            if (mode == "local" and h == 0) or free or (i == 0 and j == 0):
                path.done = True
                break
            if i and j and H[k - 1, j - 1] + scores[int(query[i - 1])][j - 1] == h:
                push("M")
                i, j = i - 1, j - 1
            else:
                state = "I" if i and F[k, j] == h else "D"
        elif state == "I":
            push("I")
            state = "I" if i > 1 and F[k - 1, j] - extend == F[k, j] else "M"
            i -= 1
        else:
            push("D")
            state = "D" if j > 1 and E[k, j - 1] - extend == E[k, j] else "M"
            j -= 1
    path.row, path.column, path.state = i, j, state


def trace(
    query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
) -> tuple[int, int, int, Cigar]:
    """Align two encoded sequences, shape (n,), uint8; they may be empty.

    Returns
    -------
    score, query_start, subject_start, cigar
        As `swsearch.reference.align` returns them, and equal to it.
    """
    ends = check_ends(mode, ends)
    rows = _Rows(query, subject, scoring, mode, ends)
    m, n = len(query), len(subject)
    top, every = rows.top(n), math.isqrt(m) + 1
    kept = {0: top}
    end = _End(m, n, mode, ends)
    end.look(0, top[0])
    for row, H, F in rows.walk(1, m, top):
        if row % every == 0:
            kept[row] = (H.copy(), F.copy())
        end.look(row, H)
    path = _Path(end.row, end.column, "M", [])
    for row in sorted(kept, reverse=True):
        if row < path.row and not path.done:
            _through_strip(path, row, kept[row], rows)
    if path.row == 0 and not path.done and not ends.subject_start:
        path.steps += ["D"] * path.column
        path.column = 0
    cigar = tuple((sum(1 for _ in run), op) for op, run in groupby(reversed(path.steps)))
    return end.score, path.row, path.column, cigar


def score(
    query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode = "local", ends: Ends | None = None
) -> int:
    """Score a pair of encoded sequences with a few rows in memory; the parameters are those of `trace`."""
    ends = check_ends(mode, ends)
    rows = _Rows(query, subject, scoring, mode, ends)
    top = rows.top(len(subject))
    end = _End(len(query), len(subject), mode, ends)
    end.look(0, top[0])
    for row, H, _ in rows.walk(1, len(query), top):
        end.look(row, H)
    return end.score


class _End:
    """The best cell for an alignment to end: highest score, then smallest column, then smallest row."""

    def __init__(self, m: int, n: int, mode: Mode, ends: Ends) -> None:
        self._m, self._n, self._local, self._ends = m, n, mode == "local", ends
        self.score, self.row, self.column = -(1 << 62), m, n

    def look(self, row: int, H: Array) -> None:
        """Take in a row, shape (n + 1,); rows come in order."""
        column = self._n
        if self._local or (row == self._m and self._ends.subject_end):
            column = int(H.argmax())
        elif row != self._m and not self._ends.query_end:
            return
        score = int(H[column])
        if score > self.score or (score == self.score and column < self.column):
            self.score, self.row, self.column = score, row, column
