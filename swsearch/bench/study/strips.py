"""Host code of the concurrent strips: launches over streams, directions streamed to the host, traceback there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from swsearch.bench.study.diagonals import IntTable
from swsearch.bench.study.expected import ByteTable
from swsearch.bench.study.machine import POISON, Machine
from swsearch.bench.study.problem import Problem
from swsearch.bench.study.traceback import DirectionWords, packed_bits, packed_direction, unpack, walk_back
from swsearch.bench.study.variants import Variant
from swsearch.reference import Cigar

STRIP_ARGUMENTS = "PPPiiiiiiIPPPPPPP"
"""Arguments of ``study_strip``, as `struct` has them."""


class StripRun:
    """A variant with a pair.

    Parameters
    ----------
    machine : Machine
        Where it runs.
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
        self, machine: Machine, variant: Variant, problem: Problem, gaps: str, *, keep: bool = False
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
        """Overwrite what is filled, so that a cell that is left out is seen."""
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
