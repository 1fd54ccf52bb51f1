"""One pair of any length on the device: its score, and the way back in memory linear in the lengths.

The matrix is computed once, keeping (H, F) of a few rows and (H, E) of a few columns. The way back then goes through
the rectangles between them, from the last cell to the first: each is computed again from the row above and the column
to its left, up to where the way entered it, this time with four bits per cell that say where it came from. A
rectangle whose directions do not fit is divided in the same way again. A pair whose directions all fit is computed
only once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.engines.gpu.pairs.found import STOP, FoundAlignment, Way, decode_runs
from swsearch.engines.gpu.pairs.handles import PairHandles
from swsearch.engines.gpu.pairs.letters import PROFILE_ROW_BYTES, Letters
from swsearch.engines.gpu.pairs.plan import (
    CELL_BYTES,
    DIRECT_BYTES,
    RING_COLUMNS,
    PairLaunch,
    Spacing,
    choose_launch,
    choose_spacing,
    direction_bytes,
)
from swsearch.recurrence import Recurrence

EVERYTHING = 0xFFFFFFFF
"""A mask that no column but the first meets."""


@dataclass(frozen=True)
class Rectangle:
    """Rows ``first_row`` to ``last_row`` and columns ``first_column`` to ``last_column``, half open, counted from 0.

    ``top`` and ``left`` are the addresses of (H, F) above its first row and (H, E) on the left of its first column,
    0 where that is the matrix's own boundary; ``corner`` is H above and on the left of it.
    """

    first_row: int
    last_row: int
    first_column: int
    last_column: int
    top: int = 0
    left: int = 0
    corner: int = 0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.last_row - self.first_row

    @property
    def n(self) -> int:
        """Number of columns."""
        return self.last_column - self.first_column


@dataclass(frozen=True)
class Divided:
    """A rectangle of which some rows and columns are kept."""

    whole: Rectangle
    spacing: Spacing
    row_checks: int
    column_checks: int


class LongPair:
    """A pair on the device. The context must be current; whoever lent the scratch memory takes it back.

    Parameters
    ----------
    handles : PairHandles
        Where it is aligned.
    pair : tuple of (ndarray, ndarray), each of shape (n,), uint8
        Codes of the query and of the subject, neither empty; those of a profile are not looked at.
    letters : Letters
        How scores are looked up.
    recurrence : Recurrence
        What is computed.
    """

    def __init__(
        self,
        handles: PairHandles,
        pair: tuple[ByteArray, ByteArray],
        letters: Letters,
        recurrence: Recurrence,
    ) -> None:
        self._handles, self._device, self._scratch = handles, handles.device, handles.scratch
        self._scoring, self._local, self._ends = recurrence.scoring, recurrence.is_local, recurrence.ends
        self._letters = letters
        query, subject = pair
        self._query = 0 if letters.by_row else handles.put(query)
        self._columns = handles.put(letters.columns(subject))
        self._table = handles.put(letters.table)
        self._whole = Rectangle(0, len(query), 0, len(subject))

    def score(self) -> int:
        """Compute the score alone."""
        launch = self._launch(self._whole, directions=False)
        mark = self._scratch.mark()
        score, _, _ = self._compute_whole(launch, None, 0)
        self._scratch.release(mark)
        return score

    def align(self) -> FoundAlignment:
        """Compute the score and the alignment."""
        whole = self._whole
        direct = self._direct_launch(whole)
        mark = self._scratch.mark()
        if direct is not None:
            at = self._scratch.take(direction_bytes(whole.rows, whole.n))
            score, row, column = self._compute_whole(direct, None, at)
            way = Way(row, column)
            if self._inside(way, whole) and not (self._local and score == 0):
                self._follow(way, whole, at)
        else:
            launch = self._launch(whole, directions=False)
            divided = self._divide(whole, launch, self._check_budget())
            score, row, column = self._compute_whole(launch, divided, 0)
            way = Way(row, column)
            if not (self._local and score == 0):
                self._back_through(way, divided)
        self._scratch.release(mark)
        if self._local and score == 0:
            return FoundAlignment(0, 0, 0, ())
        if not self._local:
            if way.row == 0 and not self._ends.subject_start:
                way.push("D", way.column)
                way.column = 0
            if way.column == 0 and not self._ends.query_start:
                way.push("I", way.row)
                way.row = 0
        return FoundAlignment(score, way.row, way.column, tuple(reversed(way.runs)))

    # what is computed

    def _launch(self, rectangle: Rectangle, directions: bool) -> PairLaunch:
        return choose_launch(
            rectangle.rows, rectangle.n, self._letters.count, self._local, directions, self._device.info
        )

    def _direct_launch(self, rectangle: Rectangle) -> PairLaunch | None:
        """Return the launch that keeps a rectangle's directions, or None if they are too many at a time."""
        needed = direction_bytes(rectangle.rows, rectangle.n)
        launch = self._launch(rectangle, directions=True)
        beside = launch.ring_bytes + launch.progress_bytes + CELL_BYTES * (rectangle.n + rectangle.rows)
        runs = 4 * (rectangle.n + rectangle.rows)
        return launch if needed <= min(DIRECT_BYTES, self._scratch.left - beside - runs - (1 << 16)) else None

    def _check_budget(self) -> int:
        """Return the bytes for rows and columns that are kept: most of what one set of directions leaves."""
        left = self._scratch.left
        return max((left - min(DIRECT_BYTES, left // 3)) * 3 // 4, 0)

    def _divide(self, rectangle: Rectangle, launch: PairLaunch, budget: int) -> Divided:
        """Allocate memory for the saved rows and columns."""
        spacing = choose_spacing(launch, rectangle.rows, rectangle.n, budget)
        rows = self._scratch.take(max(spacing.row_bytes(launch, rectangle.n), CELL_BYTES))
        columns = self._scratch.take(max(spacing.column_bytes(rectangle.rows, rectangle.n), CELL_BYTES))
        return Divided(rectangle, spacing, rows, columns)

    def _compute_whole(self, launch: PairLaunch, divided: Divided | None, directions: int) -> tuple[int, int, int]:
        """Compute the whole matrix; return the score and where the alignment ends (rows and columns used)."""
        m, n = self._whole.rows, self._whole.n
        if self._local:
            best = self._scratch.take(16 * launch.strips)
            self._compute(self._whole, launch, divided, directions, best=best)
            found = self._handles.download(np.int32, (launch.strips, 4), best)
            score, column, row, _ = min(found.tolist(), key=lambda each: (-each[0], each[1], each[2]))
            return score, row + 1, column + 1
        last_column = self._scratch.take(4 * m)
        last_row = self._scratch.take(4 * n) if self._ends.subject_end else 0
        self._compute(self._whole, launch, divided, directions, last_column=last_column, last_row=last_row)
        column_scores = self._handles.download(np.int32, m, last_column)
        ends = [(-int(column_scores[-1]), n, m)]
        if self._ends.subject_end:
            row_scores = self._handles.download(np.int32, n, last_row)
            at = int(row_scores.argmax())
            ends += [(self._gap(m, self._ends.query_start), 0, m), (-int(row_scores[at]), at + 1, m)]
        if self._ends.query_end:
            at = int(column_scores.argmax())
            ends += [(self._gap(n, self._ends.subject_start), n, 0), (-int(column_scores[at]), n, at + 1)]
        score, column, row = min(ends)
        return -score, row, column

    def _gap(self, length: int, free: bool) -> int:
        return 0 if free else self._scoring.gap_cost(length)

    def _compute(
        self,
        rectangle: Rectangle,
        launch: PairLaunch,
        divided: Divided | None,
        directions: int,
        *,
        last_row: int = 0,
        last_column: int = 0,
        best: int = 0,
    ) -> None:
        """Run the kernel on a rectangle and wait for it."""
        mark = self._scratch.mark()
        ring = self._scratch.take(launch.ring_bytes)
        progress = self._scratch.take(launch.progress_bytes)
        wrap = self._scratch.take(rectangle.n * CELL_BYTES) if launch.wraps else 0
        self._device.clear_async(progress, launch.progress_bytes, self._handles.stream)
        ends, scoring = self._ends, self._scoring
        self._handles.run(
            self._handles.kernels.pair(launch.variant),
            launch.blocks,
            launch.warps * 32,
            query=0 if self._letters.by_row else self._query + rectangle.first_row,
            rows=rectangle.rows,
            columns=self._columns + 2 * rectangle.first_column,
            n=rectangle.n,
            table=self._table + (PROFILE_ROW_BYTES * rectangle.first_row if self._letters.by_row else 0),
            first_row=rectangle.first_row,
            first_column=rectangle.first_column,
            top=rectangle.top,
            left=rectangle.left,
            corner=rectangle.corner,
            pays_rows=int(not ends.query_start),
            pays_columns=int(not ends.subject_start),
            open=scoring.gap_open,
            extend=scoring.gap_extend,
            one=1,
            ring=ring,
            ring_columns=RING_COLUMNS,
            progress=progress,
            wrap=wrap,
            row_checks=divided.row_checks if divided else 0,
            check_strips=divided.spacing.strips if divided else 0,
            column_checks=divided.column_checks if divided else 0,
            check_mask=divided.spacing.columns - 1 if divided else EVERYTHING,
            last_row=last_row,
            last_column=last_column,
            directions=directions,
            best=best,
        )
        self._handles.usage.cells += rectangle.rows * rectangle.n
        self._scratch.release(mark)

    # the way back

    def _inside(self, way: Way, rectangle: Rectangle) -> bool:
        return way.state != STOP and way.row > rectangle.first_row and way.column > rectangle.first_column

    def _back_through(self, way: Way, divided: Divided) -> None:
        """Follow the way through a rectangle whose rows and columns are kept."""
        whole, spacing = divided.whole, divided.spacing
        while self._inside(way, whole):
            tile = self._tile(
                way, divided, (way.row - 1 - whole.first_row) // spacing.rows,
                (way.column - 1 - whole.first_column) // spacing.columns,
            )  # fmt: skip
            self._solve(way, tile)

    def _tile(self, way: Way, divided: Divided, i: int, j: int) -> Rectangle:
        """Return the part of a tile that the way can pass through."""
        whole, spacing = divided.whole, divided.spacing
        row, column = whole.first_row + i * spacing.rows, whole.first_column + j * spacing.columns
        above = divided.row_checks + (i - 1) * whole.n * CELL_BYTES if i else whole.top
        beside = divided.column_checks + (j - 1) * whole.rows * CELL_BYTES if j else whole.left
        top = above + j * spacing.columns * CELL_BYTES if above else 0
        left = beside + i * spacing.rows * CELL_BYTES if beside else 0
        if row == 0:
            corner = -self._gap(column, self._ends.subject_start)
        elif column == 0:
            corner = -self._gap(row, self._ends.query_start)
        elif j:
            corner = self._read_h(top - CELL_BYTES)
        elif i:
            corner = self._read_h(left - CELL_BYTES)
        else:
            corner = whole.corner
        return Rectangle(row, way.row, column, way.column, top, left, corner)

    def _solve(self, way: Way, tile: Rectangle) -> None:
        """Follow the way through a tile, by its directions or divided again."""
        mark = self._scratch.mark()
        direct = self._direct_launch(tile)
        if direct is not None:
            at = self._scratch.take(direction_bytes(tile.rows, tile.n))
            self._compute(tile, direct, None, at)
            self._follow(way, tile, at)
        else:
            launch = self._launch(tile, directions=False)
            divided = self._divide(tile, launch, self._check_budget())
            self._compute(tile, launch, divided, 0)
            self._back_through(way, divided)
        self._scratch.release(mark)

    def _follow(self, way: Way, tile: Rectangle, directions: int) -> None:
        """Follow the way through a rectangle's directions."""
        mark = self._scratch.mark()
        row, column = way.row - tile.first_row, way.column - tile.first_column
        runs, answer = self._scratch.take(4 * (row + column)), self._scratch.take(16)
        handles = self._handles
        handles.usage.trace_seconds += handles.run(
            handles.kernels.trace(),
            1,
            32,
            directions=directions,
            n=tile.n,
            row=row,
            column=column,
            state=way.state,
            runs=runs,
            result=answer,
        )
        n_runs, row, column, way.state = handles.download(np.int32, 4, answer).tolist()
        found = handles.download(np.uint32, n_runs, runs)
        for operation, length in decode_runs(found):
            way.push(operation, length)
        way.row, way.column = tile.first_row + row, tile.first_column + column
        self._scratch.release(mark)

    # the device

    def _read_h(self, address: int) -> int:
        return int(self._handles.download(np.int32, 1, address)[0])
