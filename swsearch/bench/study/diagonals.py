"""Host code of the kernels that fill one pair's matrix.

Diagonal blocks, element diagonals and skewed matrices keep the whole matrix in global memory. They differ only in
their launches. Strips keep one row, and copy the directions to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.bench.study.expected import (
    ByteTable,
    DirectionWords,
    Problem,
    packed_bits,
    packed_direction,
    unpack,
    walk_back,
)
from swsearch.bench.study.machine import POISON, GpuBuffer, GpuMachine, StudyLaunch
from swsearch.bench.study.variants import Variant
from swsearch.errors import OptionError
from swsearch.reference import Cigar

DIAGONAL_ARGUMENTS = "PPiiiiiiI"
"""Parameters that every kernel of a pair begins with, as `struct` has them."""

SIGNATURES = {
    "study_boundary": DIAGONAL_ARGUMENTS + "PPPP",
    "study_diagonal_blocks": DIAGONAL_ARGUMENTS + "PPPii",
    "study_warp": DIAGONAL_ARGUMENTS + "PPPii",
    "study_block": DIAGONAL_ARGUMENTS + "PPPii",
    "study_grid": DIAGONAL_ARGUMENTS + "PPPi",
    "study_launch": DIAGONAL_ARGUMENTS + "PPPPi",
    "study_barrier": DIAGONAL_ARGUMENTS + "PPPPiiP",
}

WARP, BLOCK = 32, 1024
"""Lengths up to which a warp, or a block, takes the element diagonals of Huynh et al."""

TILE = 32
"""Rows and columns of a warp's tile of Patel et al. in shared memory."""

TILE_BYTES = ((TILE + 1) * (TILE + 2) + TILE + TILE * TILE // 4) * 4
"""Shared memory of a warp's tile: ``kTileWords`` of ``skewed.cu``."""

IntTable = npt.NDArray[np.int32]


class MatrixRun:
    """A variant with a pair, its matrices on the machine.

    Parameters
    ----------
    machine : GpuMachine
        GPU of the run.
    variant : Variant
        Of one of the three approaches.
    problem : Problem
        What is filled; scores are match and mismatch.
    gaps : {"linear", "affine"}
        As the pair's gap costs are.
    """

    def __init__(self, machine: GpuMachine, variant: Variant, problem: Problem, gaps: str) -> None:
        self.machine, self.variant, self.problem = machine, variant, problem
        m, n = len(problem.query), len(problem.subject)
        self._rows, self._columns = m, n
        self._skewed = bool(variant.constant("SKEWED"))
        places = (m + n + 1) * (m + 1) if self._skewed else (m + 1) * (n + 1)
        scoring = problem.recurrence.scoring
        self._sequences = [machine.upload(problem.query), machine.upload(problem.subject)]
        self._h = machine.allocate(4 * places)
        self._matrices = [self._h, *(machine.allocate(4 * places) if gaps == "affine" else None for _ in "ef")]
        has_directions = bool(variant.constant("DIRECTIONS"))
        self._directions = machine.allocate((m + 1) * (n + 1)) if has_directions else None
        match, mismatch = (int(scoring.matrix.scores[0, b]) for b in (0, 1))
        self._pair = (
            *(buffer.address for buffer in self._sequences), m, n, match, mismatch, scoring.gap_open,
            scoring.gap_extend, 1,
        )  # fmt: skip
        self._addresses = tuple(one.address if one else 0 for one in self._matrices)
        boundary = variant.kernel(gaps, source="boundary")
        self._boundary = machine.kernel(boundary, "study_boundary", SIGNATURES["study_boundary"])
        self._code = variant.kernel(gaps)
        self._flags: GpuBuffer | None = None
        self.launches = 0
        self._work = list(self._launch_list())

    @property
    def device_bytes(self) -> int:
        """Memory of the matrices."""
        return sum(one.n_bytes for one in (*self._matrices, self._directions) if one is not None)

    def poison(self) -> None:
        """Overwrite the matrices, so that a cell that is left out is seen."""
        for one in (*self._matrices, self._directions):
            if one is not None:
                self.machine.fill(one, POISON)

    def enqueue(self) -> None:
        """Start everything that fills the matrix, the boundary included."""
        threads = 256
        directions = self._directions.address if self._directions else 0
        blocks = max(self._rows, self._columns) // threads + 1
        self._boundary(blocks, threads, (*self._pair, *self._addresses, directions))
        if self._flags is not None:
            self.machine.fill(self._flags, 0)
        self.launches = 1 + len(self._work)
        for step in self._work:
            step()

    def scores(self) -> IntTable:
        """Return H, shape (rows + 1, columns + 1), int32."""
        m, n = self._rows, self._columns
        if not self._skewed:
            return self.machine.download(self._h, np.int32, (m + 1, n + 1))
        stored = self.machine.download(self._h, np.int32, (m + n + 1, m + 1))
        i, j = np.ogrid[: m + 1, : n + 1]
        unskewed: IntTable = stored[i + j, i]
        return unskewed

    def last_score(self) -> int:
        """Return H of the last cell alone."""
        m, n = self._rows, self._columns
        place = (m + n) * (m + 1) + m if self._skewed else (m + 1) * (n + 1) - 1
        return int(self.machine.download(self._h, np.int32, (1,), 4 * place)[0])

    def last_row(self) -> IntTable | None:
        """Return H of the last row without column 0, shape (columns,), int32, or None where it is scattered."""
        if self._skewed:
            return None
        m, n = self._rows, self._columns
        return self.machine.download(self._h, np.int32, (n,), 4 * (m * (n + 1) + 1))

    def directions(self) -> ByteTable | None:
        """Return directions, shape (rows + 1, columns + 1), uint8, or None."""
        if self._directions is None:
            return None
        return self.machine.download(self._directions, np.uint8, (self._rows + 1, self._columns + 1))

    def _kernel(self, name: str, shared_bytes: int = 0) -> StudyLaunch:
        if shared_bytes > self.machine.shared_limit:
            raise OptionError(
                "variant", str(self.variant), f"at most {self.machine.shared_limit} bytes of shared memory a block",
                f"it needs {shared_bytes}",
            )  # fmt: skip
        return self.machine.kernel(self._code, name, SIGNATURES[name], shared_bytes)

    def _launch_list(self) -> Iterator[Callable[[], None]]:
        return {"diagonal-blocks": self._blocks, "element-diagonals": self._elements, "skewed": self._skew}[
            self.variant.approach
        ]()

    def _blocks(self) -> Iterator[Callable[[], None]]:
        rows, columns = self.variant.constant("ROWS"), self.variant.constant("COLUMNS")
        shared = 0
        if self.variant.constant("SHARED"):
            tables = 3 if self._addresses[1] else 1
            shared = -(-(tables * 4 * (rows + 1) * (columns + 1) + rows + columns) // 16) * 16
        launch = self._kernel("study_diagonal_blocks", shared)
        n_rows, n_columns = -(-self._rows // rows), -(-self._columns // columns)
        for d in range(n_rows + n_columns - 1):
            first, last = max(0, d - n_columns + 1), min(n_rows - 1, d)
            yield partial(launch, last - first + 1, self.variant.threads, (*self._pair, *self._addresses, d, first))

    def _elements(self) -> Iterator[Callable[[], None]]:
        warp, block, grid = (self._kernel(name) for name in ("study_warp", "study_block", "study_grid"))
        fixed = (*self._pair, *self._addresses)

        def size(d: int) -> int:
            length = self._length(d)
            return WARP if length <= WARP else BLOCK if length <= BLOCK else 0

        for kind, run in groupby(range(2, self._rows + self._columns + 1), size):
            diagonals = list(run)
            if kind:
                launch = warp if kind == WARP else block
                yield partial(launch, 1, kind, (*fixed, diagonals[0], diagonals[-1]))
                continue
            threads = self.variant.threads
            for d in diagonals:
                yield partial(grid, -(-self._length(d) // threads), threads, (*fixed, d))

    def _skew(self) -> Iterator[Callable[[], None]]:
        threads, tiles = self.variant.threads, bool(self.variant.constant("SHARED"))
        fixed = (*self._pair, *self._addresses, self._directions.address if self._directions else 0)
        shared = threads // WARP * TILE_BYTES if tiles else 0
        a_block = threads // WARP if tiles else threads
        diagonals = self._diagonals(tiles)
        longest = max(length for _, length in diagonals)
        if self.variant.launches == "barrier":
            # no more blocks than processors: one fits on each, so that all are resident and the barrier ends
            blocks = min(self.machine.multiprocessors, -(-longest // a_block))
            self._flags = self.machine.allocate(4 * 2 * blocks)
            arguments = (*fixed, diagonals[0][0], diagonals[-1][0], self._flags.address)
            yield partial(self._kernel("study_barrier", shared), blocks, threads, arguments)
            return
        launch = self._kernel("study_launch", shared)
        for d, length in diagonals:
            yield partial(launch, -(-length // a_block), threads, (*fixed, d))

    def _length(self, d: int) -> int:
        return min(self._rows, d - 1) - max(1, d - self._columns) + 1

    def _diagonals(self, tiles: bool) -> list[tuple[int, int]]:
        """List the diagonals and their lengths, in cells or in tiles."""
        if not tiles:
            return [(d, self._length(d)) for d in range(2, self._rows + self._columns + 1)]
        n_rows, n_columns = -(-self._rows // TILE), -(-self._columns // TILE)
        return [(d, min(n_rows - 1, d) - max(0, d - n_columns + 1) + 1) for d in range(n_rows + n_columns - 1)]


STRIP_ARGUMENTS = "PPPiiiiiiIPPPPPPP"
"""Arguments of ``study_strip``, as `struct` has them."""


class StripRun:
    """A variant with a pair.

    Parameters
    ----------
    machine : GpuMachine
        GPU of the run.
    variant : Variant
        Its threads are the rows of a strip, its blocks the kernels under way at a time.
    problem : Problem
        What is filled.
    gaps : {"linear", "affine"}
        As the pair's gap costs are.
    keep : bool
        Whether the score matrix is written too, to be checked.
    """

    def __init__(
        self, machine: GpuMachine, variant: Variant, problem: Problem, gaps: str, *, keep: bool = False
    ) -> None:
        self.machine, self.variant, self.problem = machine, variant, problem
        self._linear = gaps == "linear"
        m, n = len(problem.query), len(problem.subject)
        self._rows, self._columns = m, n
        self._height = variant.threads
        self._n_strips = -(-m // self._height)
        # a strip waits for the one before: all that are under way must be resident
        self._streams = machine.streams(min(variant.blocks, machine.multiprocessors, self._n_strips))
        words = -(-n // (32 // packed_bits(self._linear)))
        table = problem.recurrence.scoring.matrix.scores.astype(np.int8)
        self._inputs = [machine.upload(one) for one in (problem.query, problem.subject, table)]
        self._row = [machine.allocate(4 * n) for _ in "hf"]
        self._progress = machine.allocate(4 * self._n_strips)
        self._strip_buffers = [machine.allocate(4 * words * self._height) for _ in self._streams]
        self._best = [machine.allocate(4 * m) for _ in "sc"]
        self._scores = machine.allocate(4 * m * n) if keep else None
        self.words: DirectionWords = machine.host_array(np.uint32, (m, words))
        shared = 4 * (4 * self._height + 32 * 32)
        self._launch = machine.kernel(variant.kernel(gaps, keep=keep), "study_strip", STRIP_ARGUMENTS, shared)
        self.launches = self._n_strips

    @property
    def concurrent(self) -> int:
        """Kernels that are under way at a time."""
        return len(self._streams)

    @property
    def device_bytes(self) -> int:
        """Memory of the directions on the device."""
        return sum(one.n_bytes for one in self._strip_buffers)

    def poison(self) -> None:
        """Overwrite all outputs, so that a missing cell is seen."""
        self.words.fill(POISON)
        for one in (*self._strip_buffers, *self._best, self._scores):
            if one is not None:
                self.machine.fill(one, POISON)

    def enqueue(self) -> None:
        """Start all strips, in order, each with its copy to the host after it."""
        machine, scoring = self.machine, self.problem.recurrence.scoring
        inputs = tuple(one.address for one in self._inputs)
        machine.fill(self._progress, 0)
        machine.fork(self._streams)
        for strip in range(self._n_strips):
            stream: Any = self._streams[strip % len(self._streams)]
            buffer = self._strip_buffers[strip % len(self._streams)]
            first = strip * self._height
            rows = min(self._height, self._rows - first)
            arguments = (
                *inputs, first, rows, self._columns, strip, scoring.gap_open, scoring.gap_extend, 1,
                *(one.address for one in self._row), self._progress.address, buffer.address,
                *(one.address for one in self._best), self._scores.address if self._scores else 0,
            )  # fmt: skip
            self._launch(1, self._height, arguments, stream)
            machine.copy_out(self.words[first : first + rows], buffer, stream)
        machine.join(self._streams)

    def scores(self) -> IntTable:
        """Return H without row 0 and column 0, shape (rows, columns), int32."""
        assert self._scores is not None
        return self.machine.download(self._scores, np.int32, (self._rows, self._columns))

    def directions(self) -> ByteTable:
        """Return directions without row 0 and column 0, shape (rows, columns), uint8."""
        return unpack(self.words, self._columns, self._linear)

    def end(self) -> tuple[tuple[int, int], int | None]:
        """Return the cell where the alignment ends, and its score in local mode."""
        if self.problem.recurrence.mode == "global":
            return (self._rows, self._columns), None
        best, columns = (self.machine.download(one, np.int32, (self._rows,)) for one in self._best)
        row = min(range(self._rows), key=lambda i: (-best[i], columns[i], i))
        if best[row] == 0:
            return (0, 0), 0
        return (row + 1, int(columns[row]) + 1), int(best[row])

    def last_score(self) -> int:
        """Return the score: the last cell's H as it was handed on, or the best of all rows."""
        _, score = self.end()
        if score is not None:
            return score
        return int(self.last_row()[-1])

    def last_row(self) -> IntTable:
        """Return H of the last row without column 0, shape (columns,), int32; the last strip hands it on to none."""
        return self.machine.download(self._row[0], np.int32, (self._columns,))

    def trace(self) -> tuple[int, int, Cigar]:
        """Walk back on the CPU; what `enqueue` started must be done."""
        end, _ = self.end()
        return walk_back(
            packed_direction(self.words, self._linear), end, self.problem.recurrence.mode, not self._linear
        )


def align_batch(runs: list[StripRun], *, overlap: bool) -> Iterator[tuple[int, int, Cigar]]:
    """Align pairs one after the other.

    Parameters
    ----------
    runs : list of StripRun
        In order; with ``overlap`` neighbours must not be the same object, whose memory is still read.
    overlap : bool
        Whether the GPU fills the next pair's matrix while the CPU walks back through the last one's.
    """
    previous: StripRun | None = None
    for run in runs:
        if not overlap:
            run.machine.seconds(run.enqueue)
            yield run.trace()
            continue
        if previous is not None:
            previous.machine.wait()
        run.enqueue()
        if previous is not None:
            yield previous.trace()
        previous = run
    if previous is not None:
        previous.machine.wait()
        yield previous.trace()
