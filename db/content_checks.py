"""What no right writer writes, though every checksum is right: each function returns what is wrong, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD, PROTEIN, ByteArray
from swsearch.blocks import LANES, IntArray, RunLengths
from swsearch.db.fasta import split_header

N_LETTERS = len(PROTEIN.letters)

ENDS_AT_ONCE = 1 << 11
"""Columns in which subjects end that are checked at a time: 128 KiB of codes, so that all stays in the cache."""


def lengths_problem(lengths: RunLengths, block_offsets: IntArray) -> str:
    """Check the numbers that say where the sorted subjects stand; block offsets have the shape (n_blocks + 1,)."""
    if not len(lengths) or lengths.values[-1] < 0 or not lengths.descend:
        return "lengths do not descend"
    if block_offsets[0] or (np.diff(block_offsets) != lengths.block_columns()).any():
        return "block offsets do not fit the lengths"
    return ""


def some_offsets_problem(rows: IntArray, offsets: Any, n: int, end: int, what: str, least: int = 0) -> str:
    """Check pairs of neighbours among offsets that go from 0 to ``end`` in steps of at least ``least``.

    Parameters
    ----------
    rows, offsets : ndarray, shape (2 * n_pairs,), int64
        Where they stand, of 0 to ``n``: both of a pair, then those of the next; and their values.
    n, end : int
        The place of the last offset, and its value.
    what : str
        What they are called.
    least : int, optional
        Least difference of neighbours.
    """
    fine = not offsets[rows == 0].any() and bool((offsets[rows == n] == end).all())
    # compared, not subtracted: a difference of two int64 may wrap
    fine = fine and bool((offsets >= 0).all() and (offsets <= end).all())
    starts, stops = offsets[::2], offsets[1::2]
    fine = fine and bool((stops > starts).all() if least else (stops >= starts).all())
    return "" if fine else f"{what} offsets do not fit the {what}s"


def runs_problem(offsets: IntArray, starts: Any, ends: Any, lengths: npt.NDArray[np.integer]) -> str:
    """Check masked runs: ascending, apart and inside their subjects, whose lengths stand in input order.

    Offsets have the shape (n_subjects + 1,), starts and ends (n_runs,), lengths (n_subjects,).
    """
    counts = np.diff(offsets)
    if not len(starts):
        return ""
    inside = (starts >= 0) & (starts < ends) & (ends <= np.repeat(lengths, counts))
    apart = starts[1:] > ends[:-1]
    firsts = offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(starts))]
    apart[firsts - 1] = True  # the first of a subject need not come after the last of another
    return "" if inside.all() and apart.all() else "masked runs overlap or leave their subject"


def residues_problem(residues: ByteArray, offsets: IntArray, lengths: npt.NDArray[np.integer]) -> str:
    """Check blocks: a letter at every place of a subject, padding after its end and nowhere else.

    Parameters
    ----------
    residues : ndarray, shape (n_columns, 64), uint8
        Whole blocks.
    offsets : ndarray, shape (n_blocks + 1,), int64
        First column of each.
    lengths : ndarray, shape (n_subjects,), integer
        Lengths of their subjects, descending.
    """
    n_blocks = len(offsets) - 1
    table: npt.NDArray[np.int32] = np.zeros((n_blocks, LANES), dtype=np.int32)
    table.reshape(-1)[: len(lengths)] = lengths
    # up to the end of a block's shortest subject there are letters only, and hardly anything stands after it
    shortest = table[:, -1].astype(np.int64)
    if (most := _greatest(residues.reshape(-1), offsets[:-1] * LANES, shortest * LANES)) >= N_LETTERS:
        return "residues or padding do not fit the lengths" if most == PAD else "residues are not letters"
    counts = np.diff(offsets) - shortest
    ends = np.cumsum(counts)
    for at in range(0, int(ends[-1]) if n_blocks else 0, ENDS_AT_ONCE):
        places = np.arange(at, min(at + ENDS_AT_ONCE, int(ends[-1])))
        blocks = np.searchsorted(ends, places, side="right")
        columns = places - (ends - counts)[blocks] + shortest[blocks]
        inside = columns[:, None] < table[blocks]
        found = residues[offsets[blocks] + columns]
        padding = found == PAD
        if ((found >= N_LETTERS) & ~padding).any():
            return "residues are not letters"
        if (padding == inside).any():
            return "residues or padding do not fit the lengths"
    return ""


def _greatest(values: ByteArray, begins: IntArray, counts: IntArray) -> int:
    """Return the greatest of ranges of bytes, which ascend and are apart; 0 where all are empty.

    All are looked at in one call, which reads each byte once and lets other threads run meanwhile.
    """
    filled = counts > 0
    if not filled.any():
        return 0
    bounds = np.column_stack([begins[filled], (begins + counts)[filled]]).reshape(-1)
    if bounds[-1] == len(values):  # the last range goes to the end, where no further one may begin
        bounds = bounds[:-1]
    return int(np.maximum.reduceat(values, bounds)[::2].max())


def headers_problem(pool: ByteArray, begins: IntArray, counts: IntArray) -> int | None:
    """Return the first of some header lines that `header_problem` finds something wrong with.

    Parameters
    ----------
    pool : ndarray, shape (n_bytes,), uint8
        Holds them.
    begins, counts : ndarray, shape (n,), int64
        Where each begins, and its bytes, at least one.
    """
    if not len(begins):
        return None
    text = pool.data
    # most begin with their identifier, and hold no control characters
    odd = pool[begins] <= ord(" ")
    low = np.flatnonzero(pool < ord(" "))
    if len(low):
        order = np.argsort(begins, kind="stable")
        odd[order[np.searchsorted(begins[order], low, side="right") - 1]] = True
    for place in np.flatnonzero(odd).tolist():
        if header_problem(bytes(text[begins[place] : begins[place] + counts[place]])):
            return int(place)
    return None


def header_problem(header: bytes) -> str:
    """Check one header line."""
    if b"\n" in header or b"\r" in header or b"\0" in header:
        return "a header holds a line end or a NUL"
    # most begin with their identifier
    return "" if header[:1] > b" " or split_header(header)[0] else "a header has no identifier"
