"""Result of a traceback, and the kernels' notation for it: states, operations and runs.

The module serves one pair and many pairs alike, and is independent of devices.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.cpu.columns import UncountedAlignments

STOP, PAIR, FROM_F, FROM_E = range(4)
"""States and operations of the way back, as ``cuda/strip.cuh`` numbers them."""

OPERATIONS = {PAIR: "M", FROM_F: "I", FROM_E: "D"}

_CODES: ByteArray = np.array([ord(OPERATIONS.get(operation, "?")) for operation in range(4)], dtype=np.uint8)

Runs = list[tuple[int, str]]


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
class FoundAlignment:
    """An alignment: score, first aligned residues and CIGAR; the CIGAR is empty where it was not asked for."""

    score: int
    query_start: int
    subject_start: int
    cigar: tuple[tuple[int, str], ...]


def decode_runs(found: npt.NDArray[np.uint32]) -> list[tuple[str, int]]:
    """Translate a kernel's runs, shape (n_runs,), uint32, into operations and lengths."""
    lengths, operations = found >> 2, found & 3
    return [(OPERATIONS[op], length) for op, length in zip(operations.tolist(), lengths.tolist(), strict=True)]


def decode_answers(
    answers: npt.NDArray[np.int32], starts: npt.NDArray[np.uint32], runs: npt.NDArray[np.uint32], local: bool
) -> tuple[npt.NDArray[np.bool_], UncountedAlignments]:
    """Translate what the kernel for many pairs found.

    Parameters
    ----------
    answers : ndarray, shape (m, 4), int32
        Score, row and column where each alignment begins, and its number of runs; below 0 where they did not fit.
    starts : ndarray, shape (m,), uint32
        Where the runs of each begin.
    runs : ndarray, shape (n_runs,), uint32
        Length and operation of each run, an alignment's last one first.
    local : bool
        Whether a score of 0 means that there is no alignment.

    Returns
    -------
    fitted : ndarray, shape (m,), bool
        Whose runs fitted.
    found : UncountedAlignments
        The alignments of these, in their order.
    """
    fitted = answers[:, 3] >= 0
    score, row, column, counts = np.ascontiguousarray(answers[fitted].T, dtype=np.int64)
    if local:
        for each in (row, column, counts):
            each[score == 0] = 0
    ends: IntArray = starts[fitted].astype(np.int64) + counts
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    # the last run of each stands where its first one is to stand
    words = runs[np.repeat(ends + offsets[:-1], counts) - 1 - np.arange(offsets[-1])]
    return fitted, UncountedAlignments(score, row, column, offsets, (words >> 2).astype(np.int64), _CODES[words & 3])
