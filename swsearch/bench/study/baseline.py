"""The CPU's time: parasail on one thread, plain C without vector instructions, and its scan form beside it.

The plain one is what the papers compare with; the scan form, with vector instructions, is what a CPU can do. Both
give the score alone, which every timed run on the GPU must reach too. The striped form is not taken, because with
linear gaps its scores can be too low: its lazy F loop stops too early where opening a gap costs no more than
extending it (parasail 1.3.4).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.bench.study.problem import Problem
from swsearch.errors import InputError
from swsearch.scoring import Matrix, Scoring

NAMES = ("parasail nw/sw", "parasail scan")
"""Columns of the report."""

QUICK = 0.2
"""Seconds below which a time is the best of three."""

SAMPLE = 400
"""Subjects of a database that the CPU scores; its time for all is scaled by the residues."""


def check_parasail() -> None:
    """Raise `InputError` if there is no parasail."""
    if find_spec("parasail") is None:
        raise InputError(
            "times beside one thread of the CPU need parasail; pip install 'swsearch[bench]', or use --check-only"
        )


@dataclass(frozen=True)
class CpuTime:
    """What one thread of the CPU takes.

    Parameters
    ----------
    seconds, vector_seconds : float
        Without and with vector instructions.
    scores : tuple of int
        Of the pairs scored.
    """

    seconds: float
    vector_seconds: float
    scores: tuple[int, ...]


def cpu_pair(problem: Problem) -> CpuTime:
    """Time one pair."""
    query, subject = _letters(problem)
    return _time(query, [subject], problem.recurrence.scoring, problem.recurrence.mode)


def last_row(problem: Problem) -> npt.NDArray[np.int32]:
    """Return the last row of H without column 0, shape (columns,), int32, which depends on nearly every cell."""
    import parasail

    fill = getattr(parasail, f"{_program(problem.recurrence.mode)}_rowcol_scan_32")
    gaps = (problem.recurrence.scoring.gap_first, problem.recurrence.scoring.gap_extend)
    result = fill(*_letters(problem), *gaps, _parasail_matrix(problem.recurrence.scoring.matrix))
    return np.array(result.score_row, np.int32)  # copied while the result, whose memory it is, still lives


def _letters(problem: Problem) -> tuple[str, str]:
    decode = problem.recurrence.scoring.matrix.alphabet.decode
    return decode(problem.query), decode(problem.subject)


def _program(mode: str) -> str:
    return "sw" if mode == "local" else "nw"


def cpu_database(query: ByteArray, subjects: Sequence[ByteArray], scoring: Scoring) -> CpuTime:
    """Time a sample of a database, the first `SAMPLE` subjects, local, and scale it to all residues.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8
        Codes of the scoring's alphabet.
    subjects : sequence of ndarray, each of shape (n,), uint8
        The database.
    scoring : Scoring
        Matrix and gap costs.
    """
    sample = subjects[:SAMPLE]
    taken = _time(PROTEIN.decode(query), [PROTEIN.decode(one) for one in sample], scoring, "local")
    scale = sum(map(len, subjects)) / sum(map(len, sample))
    return CpuTime(taken.seconds * scale, taken.vector_seconds * scale, taken.scores)


def _time(query: str, subjects: Sequence[str], scoring: Scoring, mode: str) -> CpuTime:
    import parasail

    matrix = _parasail_matrix(scoring.matrix)
    name = _program(mode)
    plain, vectorised = getattr(parasail, name), getattr(parasail, f"{name}_scan_32")
    # parasail charges open + (k - 1) * extend
    gaps = (scoring.gap_first, scoring.gap_extend)

    def scores(function: Any) -> tuple[int, ...]:
        return tuple(function(query, subject, *gaps, matrix).score for subject in subjects)

    seconds, found = _best_of(lambda: scores(plain))
    vector_seconds, again = _best_of(lambda: scores(vectorised))
    if found != again:
        raise AssertionError(f"parasail's {name} gives {found[:3]}..., its scan form {again[:3]}...")
    return CpuTime(seconds, vector_seconds, found)


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
