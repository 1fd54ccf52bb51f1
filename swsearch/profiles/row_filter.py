"""Filters of the rows of an alignment: similarity, coverage and redundancy.

`RowFilter` selects rows for files: structure predictors gain from sequences that differ. Rows are examined in their
order, the best first, and the query always stays.

`unique_sequences` removes near-identical sequences before a profile is built, because a hundred strains are one
observation of a family. As PSI-BLAST does, it removes copies of the query, and keeps one of the sequences that agree
in 94 % of their columns (S. F. Altschul et al., Nucleic Acids Res. 25:3389, 1997, with 98 %; A. A. Schaffer et al.,
29:2994, 2001). It keeps the longest, so that the order of the sequences does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.alphabet import ByteArray
from swsearch.blocks import FloatArray, IntArray
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
        Most sequences, the query included. Where there are more, the most different ones are kept; see `different`.
    """

    min_coverage: float = 0.0
    min_identity: float = 0.0
    max_identity: float = 100.0
    max_seqs: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_coverage", "min_identity", "max_identity"):
            value = check_finite(name, getattr(self, name), "a percentage, 0 to 100")
            if not 0 <= value <= 100:
                raise OptionError(name, value, "a percentage, 0 to 100")
            object.__setattr__(self, name, value)
        if self.max_seqs is not None:
            object.__setattr__(self, "max_seqs", check_integer("max_seqs", self.max_seqs, 1, MAX_SEQUENCES))

    def kept_rows(self, alignment: QueryAlignment) -> IntArray:
        """Return the places of the rows that are kept, ascending, shape (n,), int64; the first is the query."""
        columns = alignment.columns
        residues = np.count_nonzero(columns != GAP, axis=1)
        same = np.count_nonzero((columns == alignment.query) & (columns != GAP), axis=1)
        good = 100 * residues >= self.min_coverage * alignment.n_columns
        good &= (100 * same >= self.min_identity * residues) & (residues > 0)
        good[:1] = True
        rows = np.flatnonzero(good)
        rows = rows[unique_rows(columns[rows])]
        if self.max_identity < 100 or (self.max_seqs is not None and len(rows) > self.max_seqs):
            rows = rows[select_diverse(columns[rows], self.max_identity, self.max_seqs)]
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


def select_diverse(columns: ByteArray, max_identity: float, max_rows: int | None = None) -> IntArray:
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

    Returns
    -------
    ndarray, shape (n_kept,), int64
        Places, ascending.
    """
    if not len(columns):
        return np.zeros(0, dtype=np.int64)
    room = len(columns) if max_rows is None else max_rows
    levels = [level for level in LEVELS if level < max_identity and room < len(columns)]
    entered = np.empty(len(columns), dtype=np.uint8)
    extension.load().select_diverse(
        np.ascontiguousarray(columns), columns.shape[1], GAP, np.array([*levels, max_identity], dtype=np.float64),
        room, entered,
    )  # fmt: skip
    return np.flatnonzero(entered)


BoolArray = npt.NDArray[np.bool_]

WORD = 8
"""Columns of a word. Two rows that differ in 6 % of n columns have half of their n / 8 words in common at least,
since each difference spoils one."""

MAX_PAIRS = 1 << 20
"""Pairs with a word in common that are counted at once; beyond that only the first of each word is compared first."""

FEW_ROWS = 48
"""So many rows are compared each with each."""

_CHUNK = 1 << 22
"""Cells that are compared at once."""


def unique_sequences(cells: ByteArray, absent: int, unknown: int, identity: float) -> IntArray:
    """Find the rows of an alignment that are not copies of the first or of one another.

    A row goes if it is alike in so many of its own columns to one that stays; columns where either is unknown are not
    counted. Rows are considered from the longest to the shortest, equally long ones by their letters.

    Parameters
    ----------
    cells : ndarray, shape (n_rows, n_columns), uint8
        Letters, below 32; the first row is the query.
    absent, unknown : int
        Cell where a row has ended or not begun, and that of letters that are not compared.
    identity : float
        Share of columns, above 0; above 1 nothing but copies of the query goes.

    Returns
    -------
    ndarray, shape (n_kept,), int64
        0, then the others in the order of their letters, so that it does not matter in which they came.
    """
    inside = cells != absent
    differs = inside & (cells != cells[0]) & (cells != unknown) & (cells[0] != unknown)
    others = np.flatnonzero(differs.any(axis=1))
    letters = np.ascontiguousarray(cells[others])
    if len(others) > 1:
        order = np.argsort(letters.view(f"S{letters.shape[1]}").ravel(), kind="stable")
        others, letters = others[order], letters[order]
    if identity <= 1 and len(others) > 1:
        lengths = inside[others].sum(axis=1)
        ranked = np.argsort(-lengths, kind="stable")
        stays = _longest(letters[ranked], lengths[ranked], absent, unknown, identity)
        others = others[np.sort(ranked[stays])]
    return np.concatenate([[0], others]).astype(np.int64)


def _longest(rows: ByteArray, lengths: IntArray, absent: int, unknown: int, identity: float) -> BoolArray:
    """Return a mask, shape (n,), of the rows to keep, given in order of preference."""
    stays = np.ones(len(rows), dtype=np.bool_)
    if len(rows) <= FEW_ROWS:
        pairs = np.stack(np.triu_indices(len(rows), 1), axis=1)
        return ~_redundant(rows, lengths, pairs, absent, unknown, identity)
    words = _words(rows, absent)
    n_pairs = _count_pairs(words)
    while n_pairs.sum() > MAX_PAIRS:
        left = np.flatnonzero(stays)
        gone = _redundant(rows[left], lengths[left], _leaders(words[left]), absent, unknown, identity)
        if not gone.any():
            break
        stays[left[gone]] = False
        n_pairs = _count_pairs(words[stays])
    left = np.flatnonzero(stays)
    order = np.argsort(n_pairs, kind="stable")
    used = order[np.cumsum(n_pairs[order]) <= MAX_PAIRS]
    pairs = _pairs(words[left][:, used], lengths[left], identity)
    stays[left[_redundant(rows[left], lengths[left], pairs, absent, unknown, identity)]] = False
    return stays


def _words(rows: ByteArray, absent: int) -> npt.NDArray[np.uint64]:
    """Return words of columns as numbers, shape (n, n_columns // WORD); no two alike where a row is absent."""
    n_words = rows.shape[1] // WORD
    parts = rows[:, : n_words * WORD].reshape(len(rows), n_words, WORD)
    words = np.zeros((len(rows), n_words), dtype=np.uint64)
    for place in range(WORD):
        words = (words << np.uint64(5)) | parts[:, :, place]
    of_row = (np.arange(len(rows), dtype=np.uint64) + np.uint64(1)) << np.uint64(5 * WORD)
    return np.where((parts == absent).any(axis=2), of_row[:, None], words)


def _groups(column: npt.NDArray[np.uint64]) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows ordered by word, and begin and size of each run of equal ones that has two rows or more."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(begins, len(ordered)))
    several = sizes > 1
    return order, begins[several], sizes[several]


def _count_pairs(words: npt.NDArray[np.uint64]) -> IntArray:
    """Count the pairs of rows that share each word, shape (n_words,), int64."""
    sizes = [_groups(column)[2] for column in words.T]
    return np.array([int((size * (size - 1) // 2).sum()) for size in sizes], dtype=np.int64)


def _leaders(words: npt.NDArray[np.uint64]) -> IntArray:
    """Pair each row with the first that shares a word with it, for each word; shape (n_pairs, 2), first row first."""
    leaders = [np.zeros(0, dtype=np.int64)]
    for column in words.T:
        order, begins, sizes = _groups(column)
        members = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        firsts, others = np.repeat(order[begins], sizes), order[members]
        leaders.append((firsts * len(words) + others)[firsts != others])
    keys = np.unique(np.concatenate(leaders))
    return np.stack([keys // len(words), keys % len(words)], axis=1)


@lru_cache(maxsize=64)
def _pairs_of(size: int) -> tuple[IntArray, IntArray]:
    """Return the places of all pairs of ``size`` items, first and second, each of shape (n_pairs,)."""
    one, other = np.triu_indices(size, 1)
    return one.astype(np.int64), other.astype(np.int64)


def _pairs(words: npt.NDArray[np.uint64], lengths: IntArray, identity: float) -> IntArray:
    """Pair rows that share as many words as rows so alike must, shape (n_pairs, 2), first row first."""
    n = len(words)
    pairs = [np.zeros(0, dtype=np.int64)]
    for column in words.T:
        order, begins, sizes = _groups(column)
        for size in np.unique(sizes).tolist():
            members = order[begins[sizes == size][:, None] + np.arange(size)]
            one, other = _pairs_of(size)
            pairs.append((members[:, one] * n + members[:, other]).ravel())
    keys, shared = np.unique(np.concatenate(pairs), return_counts=True)
    has = (words < np.uint64(1 << (5 * WORD))).sum(axis=1)
    min_shared = has - np.floor((1.0 - identity) * lengths + 1e-9).astype(np.int64)
    enough = shared >= min_shared[keys % n]
    return np.stack([keys[enough] // n, keys[enough] % n], axis=1)


def _redundant(
    rows: ByteArray, lengths: IntArray, pairs: IntArray, absent: int, unknown: int, identity: float
) -> BoolArray:
    """Return a mask, shape (n,), of the rows similar to an earlier row that stays, from candidate pairs."""
    gone = np.zeros(len(rows), dtype=np.bool_)
    alike = [np.zeros((0, 2), dtype=np.int64)]
    step = max(1, _CHUNK // max(1, rows.shape[1]))
    for begin in range(0, len(pairs), step):
        part = pairs[begin : begin + step]
        alike.append(part[_identity(rows[part[:, 0]], rows[part[:, 1]], absent, unknown) >= identity - 1e-9])
    pairs = np.concatenate(alike)
    for one, other in pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))].tolist():
        if not gone[one]:
            gone[other] = True
    return gone


def _identity(ones: ByteArray, others: ByteArray, absent: int, unknown: int) -> FloatArray:
    """Return the share of the columns of ``others``, shape (n, n_columns), that ``ones`` have too, shape (n,)."""
    counted = (others != absent) & (others != unknown) & (ones != unknown)
    same = (counted & (ones == others)).sum(axis=1)
    share: FloatArray = same / np.maximum(1, counted.sum(axis=1))
    return share
