"""The CPU's time: parasail on one thread, plain C without vector instructions, and its striped form beside it.

The plain one is what the papers compare with; the striped one is what a CPU can do. Both give the score alone, which
every timed run on the GPU must reach too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.scoring import Matrix, Scoring
from swsearch.study.problem import Pair

NAMES = ("parasail nw/sw", "parasail striped")
"""Columns of the report."""

QUICK = 0.2
"""Seconds below which a time is the best of three."""

SAMPLE = 400
"""Subjects of a database that the CPU scores; its time for all is scaled by the residues."""


@dataclass(frozen=True)
class CpuTime:
    """What one thread of the CPU takes.

    Parameters
    ----------
    seconds, striped_seconds : float
        Without and with vector instructions.
    scores : tuple of int
        Of the pairs scored.
    """

    seconds: float
    striped_seconds: float
    scores: tuple[int, ...]


def cpu_pair(pair: Pair) -> CpuTime:
    """Time one pair."""
    letters = tuple(pair.scoring.matrix.alphabet.decode(codes) for codes in (pair.query, pair.subject))
    return _time(letters[0], letters[1:], pair.scoring, pair.mode)


def cpu_database(query: ByteArray, subjects: Sequence[ByteArray], scoring: Scoring) -> CpuTime:
    """Time a sample of a database, the first `SAMPLE` subjects, local, and scale it to all residues."""
    sample = subjects[:SAMPLE]
    taken = _time(PROTEIN.decode(query), [PROTEIN.decode(one) for one in sample], scoring, "local")
    scale = sum(map(len, subjects)) / sum(map(len, sample))
    return CpuTime(taken.seconds * scale, taken.striped_seconds * scale, taken.scores)


def _time(query: str, subjects: Sequence[str], scoring: Scoring, mode: str) -> CpuTime:
    import parasail

    matrix = _parasail_matrix(scoring.matrix)
    name = "sw" if mode == "local" else "nw"
    plain, striped = getattr(parasail, name), getattr(parasail, f"{name}_striped_32")
    # parasail charges open + (k - 1) * extend
    gaps = (scoring.gap_first, scoring.gap_extend)

    def scores(function: Any) -> tuple[int, ...]:
        return tuple(function(query, subject, *gaps, matrix).score for subject in subjects)

    seconds, found = _best_of(lambda: scores(plain))
    striped_seconds, again = _best_of(lambda: scores(striped))
    if found != again:
        raise AssertionError(f"parasail's {name} gives {found[:3]}..., its striped form {again[:3]}...")
    return CpuTime(seconds, striped_seconds, found)


def _best_of(work: Callable[[], tuple[int, ...]]) -> tuple[float, tuple[int, ...]]:
    best = np.inf
    found: tuple[int, ...] = ()
    for _ in range(3):
        begun = time.perf_counter()
        found = work()
        best = min(best, time.perf_counter() - begun)
        if best > QUICK:
            break
    return float(best), found


@lru_cache(maxsize=4)
def _parasail_matrix(matrix: Matrix) -> Any:
    import parasail

    letters = matrix.alphabet.letters[:20] if matrix.alphabet is PROTEIN else "ACGT"
    made = parasail.matrix_create(letters, 1, -1)
    for i in range(len(letters)):
        for j in range(len(letters)):
            made.set_value(i, j, int(matrix.scores[i, j]))
    return made
