"""One pair of any length on the device: its score, and the way back in memory linear in the lengths.

The matrix is computed once, keeping (H, F) of a few rows and (H, E) of a few columns. The way back then goes through
the rectangles between them, from the last cell to the first: each is computed again from the row above and the column
on its left, up to where the way entered it, this time with four bits a cell that say where it came from. A rectangle
whose directions do not fit is divided in the same way again. A pair whose directions all fit is computed only once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.engines.gpu.device import Device, GpuMemoryError
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.pairs.letters import Letters
from swsearch.engines.gpu.pairs.plan import (
    CELL_BYTES,
    DIRECT_BYTES,
    RING_COLUMNS,
    Launch,
    Spacing,
    choose_launch,
    choose_spacing,
    direction_bytes,
)
from swsearch.recurrence import Recurrence

STOP, PAIR, FROM_F, FROM_E = range(4)
"""States and operations of the way back, as ``cuda/strip.cuh`` numbers them."""

OPERATIONS = {PAIR: "M", FROM_F: "I", FROM_E: "D"}

EVERYTHING = 0xFFFFFFFF
"""A mask that no column but the first meets."""

Runs = list[tuple[int, str]]


class Scratch:
    """Device memory, taken piece by piece and given back in the reverse order; the context must be current.

    Parameters
    ----------
    device : Device
        Where.
    limit : int
        Most bytes that may be taken together.
    """

    def __init__(self, device: Device, limit: int) -> None:
        self._device, self.limit = device, limit
        self._pieces: list[tuple[Any, int]] = []
        self.used = self.peak = 0

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self.limit - self.used

    def take(self, n_bytes: int) -> int:
        """Return the address of a new piece.

        Raises
        ------
        GpuMemoryError
            If it would pass the limit.
        """
        if n_bytes > self.left:
            raise GpuMemoryError(
                f"this pair takes more than the {self.limit >> 20} MiB of GPU memory that may be used; allow more "
                "with --gpu-memory"
            )
        piece = self._device.allocate(n_bytes)
        self._pieces.append((piece, n_bytes))
        self.used += n_bytes
        self.peak = max(self.peak, self.used)
        return int(piece)

    def put(self, data: npt.NDArray[Any], stream: Any) -> int:
        """Return the address of a new piece that holds an array."""
        address = self.take(max(data.nbytes, 1))
        self._device.upload(address, data, stream)
        return address

    def mark(self) -> int:
        """Return what `release` takes to give back all that is taken from now on."""
        return len(self._pieces)

    def release(self, mark: int = 0) -> None:
        """Give back what was taken since the mark."""
        while len(self._pieces) > mark:
            piece, n_bytes = self._pieces.pop()
            piece.free()
            self.used -= n_bytes


@dataclass
class PairUsage:
    """What an aligner did, for benchmarks and ``--verbose``.

    Parameters
    ----------
    kernel_seconds : float
        Time of all kernels, by the device's clock.
    trace_seconds : float
        Of that, time in which one warp followed directions.
    launches : int
        Kernels that were started.
    cells : int
        Cells that were computed, those of the way back included.
    peak_bytes : int
        Most device memory that was held at a time.
    """

    kernel_seconds: float = 0.0
    trace_seconds: float = 0.0
    launches: int = 0
    cells: int = 0
    peak_bytes: int = 0


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


@dataclass
class Way:
    """The way back so far: rows and columns that are left, the open gap, and what was passed, last one first."""

    row: int
    column: int
    state: int = PAIR
    runs: Runs = field(default_factory=list)

    def push(self, operation: str, length: int) -> None:
        """Go on with a run."""
        if length and self.runs and self.runs[-1][1] == operation:
            self.runs[-1] = (self.runs[-1][0] + length, operation)
        elif length:
            self.runs.append((length, operation))


@dataclass(frozen=True)
class Found:
    """An alignment: score, first aligned residues and CIGAR; the CIGAR is empty where it was not asked for."""

    score: int
    query_start: int
    subject_start: int
    cigar: tuple[tuple[int, str], ...]


class LongPair:
    """A pair on the device. The context must be current; whoever made the scratch memory gives it back.

    Parameters
    ----------
    device, kernels, stream
        Where it runs.
    scratch : Scratch
        Its memory.
    query, subject : ndarray, shape (n,), uint8
        Neither empty.
    letters : Letters
        How scores are looked up.
    recurrence : Recurrence
        What is computed.
    usage : PairUsage
        Is added to.
    """

    def __init__(
        self,
        device: Device,
        kernels: Kernels,
        stream: Any,
        scratch: Scratch,
        pair: tuple[ByteArray, ByteArray],
        letters: Letters,
        recurrence: Recurrence,
        usage: PairUsage,
    ) -> None:
        self._device, self._kernels, self._stream, self._scratch = device, kernels, stream, scratch
        self._scoring, self._local, self._ends = recurrence.scoring, recurrence.is_local, recurrence.ends
        self._letters = letters
        self._usage = usage
        query, subject = pair
        self._query = scratch.put(query, stream)
        self._columns = scratch.put(letters.columns(subject), stream)
        self._table = scratch.put(letters.table, stream)
        self._whole = Rectangle(0, len(query), 0, len(subject))
        self._answer = np.empty(4, dtype=np.int32)

    def score(self) -> int:
        """Compute the score alone."""
        launch = self._launch(self._whole, directions=False)
        mark = self._scratch.mark()
        score, _, _ = self._compute_whole(launch, None, 0)
        self._scratch.release(mark)
        return score

    def align(self) -> Found:
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
            return Found(0, 0, 0, ())
        if not self._local:
            if way.row == 0 and not self._ends.subject_start:
                way.push("D", way.column)
                way.column = 0
            if way.column == 0 and not self._ends.query_start:
                way.push("I", way.row)
                way.row = 0
        return Found(score, way.row, way.column, tuple(reversed(way.runs)))

    # what is computed

    def _launch(self, rectangle: Rectangle, directions: bool) -> Launch:
        return choose_launch(
            rectangle.rows, rectangle.n, self._letters.count, self._local, directions, self._device.info
        )

    def _direct_launch(self, rectangle: Rectangle) -> Launch | None:
        """Return the launch that keeps a rectangle's directions, or None if they are too many at a time."""
        needed = direction_bytes(rectangle.rows, rectangle.n)
        launch = self._launch(rectangle, directions=True)
        beside = launch.ring_bytes + launch.progress_bytes + CELL_BYTES * (rectangle.n + rectangle.rows)
        runs = 4 * (rectangle.n + rectangle.rows)
        return launch if needed <= min(DIRECT_BYTES, self._scratch.left - beside - runs - (1 << 16)) else None

    def _check_budget(self) -> int:
        """Return the bytes for rows and columns that are kept: most of what is left beside one set of directions."""
        left = self._scratch.left
        return max((left - min(DIRECT_BYTES, left // 3)) * 3 // 4, 0)

    def _divide(self, rectangle: Rectangle, launch: Launch, budget: int) -> Divided:
        """Take memory for rows and columns to be kept."""
        spacing = choose_spacing(launch, rectangle.rows, rectangle.n, budget)
        rows = self._scratch.take(max(spacing.row_bytes(launch, rectangle.n), CELL_BYTES))
        columns = self._scratch.take(max(spacing.column_bytes(rectangle.rows, rectangle.n), CELL_BYTES))
        return Divided(rectangle, spacing, rows, columns)

    def _compute_whole(self, launch: Launch, divided: Divided | None, directions: int) -> tuple[int, int, int]:
        """Compute the whole matrix; return the score and where the alignment ends (rows and columns used)."""
        m, n = self._whole.rows, self._whole.n
        if self._local:
            best = self._scratch.take(16 * launch.strips)
            self._compute(self._whole, launch, divided, directions, best=best)
            found = np.empty((launch.strips, 4), dtype=np.int32)
            self._device.download(found, best)
            score, column, row, _ = min(found.tolist(), key=lambda each: (-each[0], each[1], each[2]))
            return score, row + 1, column + 1
        last_column = self._scratch.take(4 * m)
        last_row = self._scratch.take(4 * n) if self._ends.subject_end else 0
        self._compute(self._whole, launch, divided, directions, last_column=last_column, last_row=last_row)
        column_scores = np.empty(m, dtype=np.int32)
        self._device.download(column_scores, last_column)
        ends = [(-int(column_scores[-1]), n, m)]
        if self._ends.subject_end:
            row_scores = np.empty(n, dtype=np.int32)
            self._device.download(row_scores, last_row)
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
        launch: Launch,
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
        self._device.clear_async(progress, launch.progress_bytes, self._stream)
        ends, scoring = self._ends, self._scoring
        self._run(
            self._kernels.pair(launch.variant),
            launch.blocks,
            launch.warps * 32,
            (
                self._query + rectangle.first_row, rectangle.rows,
                self._columns + 2 * rectangle.first_column, rectangle.n, self._table,
                rectangle.first_row, rectangle.first_column, rectangle.top, rectangle.left, rectangle.corner,
                int(not ends.query_start), int(not ends.subject_start), scoring.gap_open, scoring.gap_extend, 1,
                ring, RING_COLUMNS, progress, wrap,
                divided.row_checks if divided else 0, divided.spacing.strips if divided else 0,
                divided.column_checks if divided else 0, divided.spacing.columns - 1 if divided else EVERYTHING,
                last_row, last_column, directions, best,
            ),
        )  # fmt: skip
        self._usage.cells += rectangle.rows * rectangle.n
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
        self._usage.trace_seconds += self._run(
            self._kernels.trace(), 1, 32, (directions, tile.n, row, column, way.state, runs, answer)
        )
        self._device.download(self._answer, answer)
        n_runs, row, column, way.state = self._answer.tolist()
        found = np.empty(n_runs, dtype=np.uint32)
        self._device.download(found, runs)
        for operation, length in decode_runs(found):
            way.push(operation, length)
        way.row, way.column = tile.first_row + row, tile.first_column + column
        self._scratch.release(mark)

    # the device

    def _read_h(self, address: int) -> int:
        h = np.empty(1, dtype=np.int32)
        self._device.download(h, address)
        return int(h[0])

    def _run(self, function: Any, blocks: int, threads: int, arguments: Sequence[int]) -> float:
        seconds = run_timed(self._device, self._stream, function, blocks, threads, arguments)
        self._usage.kernel_seconds += seconds
        self._usage.launches += 1
        self._usage.peak_bytes = max(self._usage.peak_bytes, self._scratch.peak)
        return seconds


def run_timed(
    device: Device, stream: Any, function: Any, blocks: int, threads: int, arguments: Sequence[int]
) -> float:
    """Start a kernel, wait for it so that Ctrl-C is answered, and return its seconds."""
    begun, ended = device.event(timing=True), device.event(timing=True)
    begun.record(stream)
    function.launch(blocks, threads, stream, arguments)
    ended.record(stream)
    pause = 0.0
    while not ended.query():
        time.sleep(pause)
        pause = min(pause + 1e-5, 0.002)
    return float(ended.time_since(begun)) * 1e-3


def decode_runs(found: npt.NDArray[np.uint32]) -> list[tuple[str, int]]:
    """Translate a kernel's runs: (operation, length)."""
    lengths, operations = found >> 2, found & 3
    return [(OPERATIONS[op], length) for op, length in zip(operations.tolist(), lengths.tolist(), strict=True)]
