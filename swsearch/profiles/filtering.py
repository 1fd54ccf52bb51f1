"""Which rows of an alignment are kept: near the query, long enough, and not all of them alike.

Structure predictors gain from sequences that differ; a thousand copies of a well-studied protein cost time and say
nothing. Rows are looked at in their order, the best first, and the query is always kept as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import OptionError, real_number, whole_number
from swsearch.profiles.alignment import GAP, QueryAlignment

MOST_SEQUENCES = 10**9
"""Largest number of sequences that may be asked for."""

LEVELS = tuple(range(15, 100, 5))
"""Identities, in per cent, below which rows enter one level after the other while there is room."""

_OTHER_GAP = 255
"""Stands for a gap of the sequence that others are compared with, so that no gap equals it."""

_BLOCK = 255
"""Columns whose identities are counted in a byte."""


@dataclass(frozen=True)
class RowFilter:
    """What rows must be like; every value is checked when it is made.

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
        Most sequences, the query included. Where there are more, the most different ones are kept; see `different`.
    """

    min_coverage: float = 0.0
    min_identity: float = 0.0
    max_identity: float = 100.0
    max_seqs: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_coverage", "min_identity", "max_identity"):
            value = real_number(name, getattr(self, name), "a percentage, 0 to 100")
            if not 0 <= value <= 100:
                raise OptionError(name, value, "a percentage, 0 to 100")
            object.__setattr__(self, name, value)
        if self.max_seqs is not None:
            object.__setattr__(self, "max_seqs", whole_number("max_seqs", self.max_seqs, 1, MOST_SEQUENCES))

    def kept(self, alignment: QueryAlignment) -> IntArray:
        """Return the places of the rows that are kept, ascending, shape (n,), int64; the first is the query."""
        columns = alignment.columns
        residues = np.count_nonzero(columns != GAP, axis=1)
        same = np.count_nonzero((columns == alignment.query) & (columns != GAP), axis=1)
        good = 100 * residues >= self.min_coverage * alignment.n_columns
        good &= (100 * same >= self.min_identity * residues) & (residues > 0)
        good[:1] = True
        rows = np.flatnonzero(good)
        rows = rows[first_ones(columns[rows])]
        if self.max_identity < 100 or (self.max_seqs is not None and len(rows) > self.max_seqs):
            rows = rows[different(columns[rows], self.max_identity, self.max_seqs)]
        kept: IntArray = rows.astype(np.int64)
        return kept

    def filtered(self, alignment: QueryAlignment) -> QueryAlignment:
        """Return an alignment with the rows that are kept."""
        kept = self.kept(alignment)
        return alignment if len(kept) == len(alignment) else alignment.take(kept)


def first_ones(columns: ByteArray) -> IntArray:
    """Return the places of rows, of shape (n, n_columns), uint8, that are unlike all above them; ascending."""
    n, n_columns = columns.shape
    if not n_columns:
        return np.arange(min(n, 1))
    whole = np.ascontiguousarray(columns).view(np.dtype((np.void, n_columns))).reshape(n)
    _, first = np.unique(whole, return_index=True)
    kept: IntArray = np.sort(first)
    return kept


def different(columns: ByteArray, max_identity: float, most: int | None = None) -> IntArray:
    """Choose rows that differ from each other.

    A row's identity with another is the part of its own residues that the other has too: a fragment of a row above it
    is the same as that, and a row that goes on where a fragment ends is not. Rows enter level by level, as
    with ``hhfilter -diff``: first those that have less than 15 % with all that have entered, in their order, then
    those with less than 20 %, and so on, up to the largest identity; the level that does not fit enters in part, the
    first rows of it. Without a bound there is the last level alone.

    Parameters
    ----------
    columns : ndarray, shape (n, n_columns), uint8
        Rows, the best first; the first always enters.
    max_identity : float
        Per cent. At 100 all enter.
    most : int, optional
        Most rows.

    Returns
    -------
    ndarray, shape (n_kept,), int64
        Places, ascending.
    """
    if not len(columns):
        return np.zeros(0, dtype=np.int64)
    room = len(columns) if most is None else most
    chooser = _Chooser(columns)
    if room < len(columns):
        for level in LEVELS:
            if level < max_identity:
                chooser.enter(level, room)
    chooser.enter_last(max_identity, room)
    return np.sort(np.array(chooser.entered, dtype=np.int64))


class _Chooser:
    """Rows that have entered, and how much of each other one is in one of them."""

    def __init__(self, columns: ByteArray) -> None:
        self.entered: list[int] = []
        """Places of those that have entered."""
        self._residues = np.maximum(np.count_nonzero(columns != GAP, axis=1), 1)
        # a column of all rows lies together, so that one residue is compared with many at a time
        self._columns = np.ascontiguousarray(columns.T)
        self._rows, self._nearest = np.arange(len(columns)), np.zeros(len(columns))
        self._take(0, 1)

    def enter(self, level: float, most: int) -> None:
        """Let rows that have less than a percentage with all that have entered follow them, in their order."""
        at = 0
        while len(self.entered) < most and (found := self._next(at, level)) is not None:
            self._take(found, 0)
            at = found + 1
        self._keep(np.isfinite(self._nearest))

    def enter_last(self, level: float, most: int) -> None:
        """Do the same for the last time, so that rows that were passed are done with."""
        if level >= 100:
            self._keep(np.isfinite(self._nearest))
            self.entered += self._rows[: max(most - len(self.entered), 0)].tolist()
            return
        at = 0
        while len(self.entered) < most and (found := self._next(at, level)) is not None:
            self._take(found, found + 1)
            at = found + 1
            waiting = self._nearest < level
            waiting[:at] = False
            if 2 * np.count_nonzero(waiting) < len(waiting):
                self._keep(waiting)
                at = 0

    def _next(self, at: int, level: float) -> int | None:
        """Return the first row from one on that may enter."""
        below = self._nearest[at:] < level
        first = int(below.argmax()) if len(below) else 0
        return at + first if len(below) and below[first] else None

    def _take(self, place: int, begin: int) -> None:
        """Let a row enter, and compare others with it, from a place on."""
        self.entered.append(int(self._rows[place]))
        one = self._columns[:, place].copy()
        one[one == GAP] = _OTHER_GAP
        share = 100 * identical(self._columns[:, begin:], one) / self._residues[begin:]
        self._nearest[begin:] = np.maximum(self._nearest[begin:], share)
        self._nearest[place] = np.inf

    def _keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Leave out all others: they have entered, or cannot any more."""
        self._columns, self._residues = np.ascontiguousarray(self._columns[:, rows]), self._residues[rows]
        self._rows, self._nearest = self._rows[rows], self._nearest[rows]


def identical(columns: ByteArray, one: ByteArray) -> FloatArray:
    """Count the columns of many rows that have the letters of one.

    Parameters
    ----------
    columns : ndarray, shape (n_columns, n), uint8
        Rows, a column of all of them together.
    one : ndarray, shape (n_columns,), uint8

    Returns
    -------
    ndarray, shape (n,), float64
    """
    counts = np.zeros(columns.shape[1])
    for begin in range(0, len(one), _BLOCK):
        same = columns[begin : begin + _BLOCK] == one[begin : begin + _BLOCK, None]
        counts += np.add.reduce(same.view(np.uint8), axis=0, dtype=np.uint8)
    return counts
