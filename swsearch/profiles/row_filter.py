"""Filters of the rows of an alignment: similarity, coverage and redundancy.

`RowFilter` selects rows for files: structure predictors gain from sequences that differ. Rows are examined in their
order, the best first, and the query always stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch import extension
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.errors import OptionError, check_finite, check_integer
from swsearch.profiles.query_alignment import GAP, QueryAlignment

MAX_SEQUENCES = 10**9
"""Largest number of sequences that may be asked for."""

LEVELS = tuple(range(15, 100, 5))
"""Identities, in per cent, below which rows enter one level after the other while there is room."""


@dataclass(frozen=True)
class RowFilter:
    """Thresholds for rows, validated on construction.

    Parameters
    ----------
    min_coverage : float
        Least percentage of the query's columns in which a row has a residue.
    min_identity : float
        Least percentage of these residues that are the query's.
    max_identity : float
        Largest percentage of a row's residues that are those of one row above it; from 100 on only rows that are the
        same in all columns are left out.
    max_seqs : int or None
        Most sequences, the query included. Where there are more, the most different ones are kept; see
        `select_diverse`.
    diff : int or None
        Rows of each stretch of the query, of 50 columns or more, from which on no further ones are kept there.
    """

    min_coverage: float = 0.0
    min_identity: float = 0.0
    max_identity: float = 100.0
    max_seqs: int | None = None
    diff: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_coverage", "min_identity", "max_identity"):
            value = check_finite(name, getattr(self, name), "a percentage, 0 to 100")
            if not 0 <= value <= 100:
                raise OptionError(name, value, "a percentage, 0 to 100")
            object.__setattr__(self, name, value)
        for name in ("max_seqs", "diff"):
            if (limit := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_integer(name, limit, 1, MAX_SEQUENCES))

    def similar_rows(self, alignment: QueryAlignment) -> IntArray:
        """Return the places of the rows with the least coverage and identity, redundant ones included, ascending."""
        columns = alignment.columns
        residues = np.count_nonzero(columns != GAP, axis=1)
        same = np.count_nonzero((columns == alignment.query) & (columns != GAP), axis=1)
        good = 100 * residues >= self.min_coverage * alignment.n_columns
        good &= (100 * same >= self.min_identity * residues) & (residues > 0)
        good[:1] = True
        return np.flatnonzero(good)

    def kept_rows(self, alignment: QueryAlignment) -> IntArray:
        """Return the places of the rows that are kept, ascending, shape (n,), int64; the first is the query."""
        columns, rows = alignment.columns, self.similar_rows(alignment)
        rows = rows[unique_rows(columns[rows])]
        least = min(limit for limit in (self.max_seqs, self.diff, len(rows)) if limit is not None)
        if self.max_identity < 100 or len(rows) > least:
            rows = rows[select_diverse(columns[rows], self.max_identity, self.max_seqs, self.diff)]
        return rows.astype(np.int64)

    def apply(self, alignment: QueryAlignment) -> QueryAlignment:
        """Return an alignment with the rows that are kept."""
        rows = self.kept_rows(alignment)
        return alignment if len(rows) == len(alignment) else alignment.take(rows)


def unique_rows(columns: ByteArray) -> IntArray:
    """Return the places of rows, of shape (n, n_columns), uint8, that are unlike all above them; ascending."""
    n, n_columns = columns.shape
    if not n_columns:
        return np.arange(min(n, 1))
    whole = np.ascontiguousarray(columns).view(np.dtype((np.void, n_columns))).reshape(n)
    _, first = np.unique(whole, return_index=True)
    return np.sort(first)


def select_diverse(
    columns: ByteArray, max_identity: float, max_rows: int | None = None, diff: int | None = None
) -> IntArray:
    """Choose rows that differ from each other.

    A row's identity with another is the part of its own residues that the other has too: a fragment of a row above it
    is the same as that, and a row that goes on where a fragment ends is not. Rows enter level by level, as
    with ``hhfilter -diff``: first those that have less than 15 % with all that have entered, in their order, then
    those with less than 20 %, and so on, up to the largest identity; the level that does not fit enters in part, the
    first rows of it. Without a bound there is the last level alone.

    With ``diff``, the columns are cut into stretches of equal length, as many as there can be of 50 columns. A row
    covers a stretch if it has residues in half of its columns. It enters only if it covers one that fewer than
    ``diff`` rows cover.

    Parameters
    ----------
    columns : ndarray, shape (n, n_columns), uint8
        Rows, the best first; the first always enters.

    Returns
    -------
    ndarray, shape (n_kept,), int64
        Places, ascending.
    """
    if not len(columns):
        return np.zeros(0, dtype=np.int64)
    room = len(columns) if max_rows is None else max_rows
    has_bound = room < len(columns) or diff is not None
    levels = [level for level in LEVELS if level < max_identity and has_bound]
    entered = np.empty(len(columns), dtype=np.uint8)
    extension.load().select_diverse(
        np.ascontiguousarray(columns), columns.shape[1], GAP, np.array([*levels, max_identity], dtype=np.float64),
        room, diff or 0, entered,
    )  # fmt: skip
    return np.flatnonzero(entered)
