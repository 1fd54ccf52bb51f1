"""What the way back finds, and the kernels' notation for it: states, operations and runs.

What belongs here is the same for one pair alone and for many at a time, and knows nothing of a device.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

STOP, PAIR, FROM_F, FROM_E = range(4)
"""States and operations of the way back, as ``cuda/strip.cuh`` numbers them."""

OPERATIONS = {PAIR: "M", FROM_F: "I", FROM_E: "D"}

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
