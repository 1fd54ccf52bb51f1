"""Near-identical sequences of an alignment, of which one is enough.

A family that was sequenced from a hundred strains is one observation of it, not a hundred. As PSI-BLAST does, copies
of the query are left out, and of sequences that are alike in 94 % of their columns only one is kept (S. F. Altschul
et al., Nucleic Acids Res. 25:3389, 1997, with 98 %; A. A. Schaffer et al., 29:2994, 2001). Here the longest of them
is kept, and what lies within it goes, so that the order of the sequences does not matter.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

WORD = 8
"""Columns of a word. Two rows that differ in 6 % of n columns have half of their n / 8 words in common at least,
since each difference spoils one."""

MOST_PAIRS = 1 << 20
"""Pairs with a word in common that are counted at once; beyond that only the first of each word is compared first."""

FEW_ROWS = 48
"""So many rows are compared each with each."""

_CHUNK = 1 << 22
"""Cells that are compared at once."""


def kept_rows(cells: ByteArray, absent: int, unknown: int, identity: float) -> IntArray:
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
    """Say which rows stay, of rows that are ordered by preference; shape (n,), bool."""
    stays = np.ones(len(rows), dtype=np.bool_)
    if len(rows) <= FEW_ROWS:
        pairs = np.stack(np.triu_indices(len(rows), 1), axis=1)
        return ~_gone(rows, lengths, pairs, absent, unknown, identity)
    words = _words(rows, absent)
    n_pairs = _count_pairs(words)
    while n_pairs.sum() > MOST_PAIRS:
        left = np.flatnonzero(stays)
        gone = _gone(rows[left], lengths[left], _leaders(words[left]), absent, unknown, identity)
        if not gone.any():
            break
        stays[left[gone]] = False
        n_pairs = _count_pairs(words[stays])
    left = np.flatnonzero(stays)
    order = np.argsort(n_pairs, kind="stable")
    used = order[np.cumsum(n_pairs[order]) <= MOST_PAIRS]
    pairs = _pairs(words[left][:, used], lengths[left], identity)
    stays[left[_gone(rows[left], lengths[left], pairs, absent, unknown, identity)]] = False
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
    found = [np.zeros(0, dtype=np.int64)]
    for column in words.T:
        order, begins, sizes = _groups(column)
        members = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        firsts, others = np.repeat(order[begins], sizes), order[members]
        found.append((firsts * len(words) + others)[firsts != others])
    keys = np.unique(np.concatenate(found))
    return np.stack([keys // len(words), keys % len(words)], axis=1)


@lru_cache(maxsize=64)
def _pairs_of(size: int) -> tuple[IntArray, IntArray]:
    """Return the places of all pairs of so many, the first one and the other, each of shape (n_pairs,)."""
    one, other = np.triu_indices(size, 1)
    return one.astype(np.int64), other.astype(np.int64)


def _pairs(words: npt.NDArray[np.uint64], lengths: IntArray, identity: float) -> IntArray:
    """Pair rows that share as many words as rows so alike must, shape (n_pairs, 2), first row first."""
    n = len(words)
    found = [np.zeros(0, dtype=np.int64)]
    for column in words.T:
        order, begins, sizes = _groups(column)
        for size in np.unique(sizes).tolist():
            members = order[begins[sizes == size][:, None] + np.arange(size)]
            one, other = _pairs_of(size)
            found.append((members[:, one] * n + members[:, other]).ravel())
    keys, shared = np.unique(np.concatenate(found), return_counts=True)
    has = (words < np.uint64(1 << (5 * WORD))).sum(axis=1)
    least = has - np.floor((1.0 - identity) * lengths + 1e-9).astype(np.int64)
    enough = shared >= least[keys % n]
    return np.stack([keys[enough] // n, keys[enough] % n], axis=1)


def _gone(
    rows: ByteArray, lengths: IntArray, pairs: IntArray, absent: int, unknown: int, identity: float
) -> BoolArray:
    """Say which rows are alike to one before them that stays, of pairs that may be; shape (n,), bool."""
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
