"""Score lookup of the pair kernels: letters that score alike become one, and few letters fit registers.

The module turns codes and a matrix, or the scores of a profile, into tables on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import N_CODES, ByteArray
from swsearch.scoring import QueryProfile, Scoring

LETTER_COUNTS = (4, 8, 32)
"""Different letters of a subject that a lookup holds: in one register per row, in two, or in shared memory."""

PROFILE_ROW_BYTES = N_CODES
"""Bytes of a row of a profile in its table."""

LINE_BYTES = 128
"""Shared memory between two letters of the same rows: four bytes per lane."""

_TOGETHER = 1 << 16
"""Residues that are translated at a time; more leave the processor's caches."""


@dataclass(frozen=True)
class Letters:
    """The scores of a pair, as a lookup takes them.

    Parameters
    ----------
    count : {4, 8, 32}
        How many letters the lookup holds.
    table : ndarray, shape (32, count), int8
        Score of each query letter with each of the subject's classes of letters; or, by row, shape (n_rows, 32):
        score of each query row with each letter.
    columns_of : ndarray, shape (32,), uint16
        What stands for a subject letter in a column.
    by_row : bool
        Whether the table's lines are the query's rows, which then has no letters.
    """

    count: int
    table: npt.NDArray[np.int8]
    columns_of: npt.NDArray[np.uint16]
    by_row: bool = False

    def columns(self, subject: ByteArray) -> npt.NDArray[np.uint16]:
        """Translate a subject, shape (n,), uint8, for the kernels: shape (n,), uint16."""
        columns = np.empty(len(subject), dtype=np.uint16)
        for begin in range(0, len(subject), _TOGETHER):  # numpy makes 8 bytes of every index
            part = slice(begin, begin + _TOGETHER)
            # codes below 32, as letters_in has seen; "clip" spares looking again, a third of the time
            np.take(self.columns_of, subject[part], out=columns[part], mode="clip")
        return columns


def letters_of(scoring: Scoring, query_letters: ByteArray, subject_letters: ByteArray) -> Letters:
    """Build the lookup for pairs.

    Parameters
    ----------
    scoring : Scoring
        Its matrix is used.
    query_letters, subject_letters : ndarray, shape (n,), uint8
        Codes that occur, each once, in any order. Letters of a subject that score alike with all the query's become
        one: U as T, or all but a few where the query has few.
    """
    scores = scoring.matrix.scores.astype(np.int8)
    alike, classes = np.unique(scores[query_letters][:, subject_letters], axis=1, return_inverse=True)
    classes = np.asarray(classes).reshape(-1)
    count = next(count for count in LETTER_COUNTS if alike.shape[1] <= count)
    class_of = np.zeros(N_CODES, dtype=np.int64)
    class_of[subject_letters] = classes
    table = np.zeros((N_CODES, count), dtype=np.int8)
    table[query_letters, : alike.shape[1]] = alike
    return Letters(count, table, _columns(count, class_of))


def letters_by_row(rows: QueryProfile) -> Letters:
    """Build the lookup for pairs whose queries' scores are the positions' own: always that of 32 letters."""
    count = LETTER_COUNTS[-1]
    return Letters(count, np.ascontiguousarray(rows.scores), _columns(count, np.arange(N_CODES)), by_row=True)


def letters_in(codes: ByteArray) -> ByteArray:
    """Return the codes that occur in a sequence, shape (n,), uint8, in ascending order: shape (n_letters,), uint8."""
    found = np.zeros(N_CODES, dtype=np.bool_)
    for begin in range(0, len(codes), _TOGETHER):
        found |= np.bincount(codes[begin : begin + _TOGETHER], minlength=N_CODES) > 0
    letters: ByteArray = np.flatnonzero(found).astype(np.uint8)
    return letters


def _columns(count: int, classes: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    sign = classes | 8
    # a place in shared memory, or a PRMT selector: the byte, then its sign three times
    by_register = classes | sign << 4 | sign << 8 | sign << 12
    columns: npt.NDArray[np.uint16] = (classes * LINE_BYTES if count == LETTER_COUNTS[-1] else by_register).astype(
        np.uint16
    )
    return columns
