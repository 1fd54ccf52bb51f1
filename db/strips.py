"""Stretches of one array, such as the header lines of records end to end: cut, taken in another order, copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray

_WIDTHS = (1024, 128, 60, 16, 4, 1)
"""Bytes of the pieces that are copied at once; a line of FASTA has 60 residues."""

FEW = 16
"""Stretches that are copied faster one by one."""


def offsets_of(lengths: npt.NDArray[np.integer]) -> IntArray:
    """Turn lengths, shape (n,), into offsets, shape (n + 1,), int64: 0, then the running sum."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(begins: IntArray, counts: IntArray) -> IntArray:
    """Return ranges of whole numbers, one after the other, from their beginnings and counts, both of shape (n,)."""
    ends = np.cumsum(counts)
    whole: IntArray = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begins - ends + counts, counts)
    return whole


def cut(offsets: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """Yield bounds of groups of neighbours with at most ``most`` rows, or of one; offsets have shape (n + 1,)."""
    first, n = 0, len(offsets) - 1
    while first < n:
        last = max(int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1, first + 1)
        yield first, last
        first = last


def rows_at(data: ByteArray, starts: IntArray, width: int) -> ByteArray:
    """Copy stretches of one width out of bytes: from ``starts``, shape (n,), to shape (n, width), uint8."""
    # a stretch is one object of so many bytes to numpy, which copies it at once
    view = np.ndarray((len(data) - width + 1,), dtype=f"V{width}", buffer=data, strides=(1,))
    return view[starts].view(np.uint8).reshape(len(starts), width)


def copy_strips(source: ByteArray, begins: IntArray, target: ByteArray, to: IntArray, lengths: IntArray) -> None:
    """Copy stretches of bytes from one array to another, some millions in a second.

    Parameters
    ----------
    source, target : ndarray, shape (n_bytes,), uint8
        Read, and written.
    begins, to : ndarray, shape (n,), int64
        Where each stretch begins in both.
    lengths : ndarray, shape (n,), int64
        Bytes of each.
    """
    if len(lengths) <= FEW:
        for begin, start, length in zip(begins.tolist(), to.tolist(), lengths.tolist(), strict=True):
            target[start : start + length] = source[begin : begin + length]
        return
    rest = np.flatnonzero(lengths > 0)
    for width in _WIDTHS:
        fits = lengths[rest] >= width
        chosen, rest = rest[fits], rest[~fits]
        if not len(chosen):
            continue
        # the last piece ends where the stretch ends, and may overlap the one before
        n = -(-lengths[chosen] // width)
        owners = np.repeat(chosen, n)
        at = np.minimum(ranges(np.zeros(len(chosen), dtype=np.int64), n) * width, lengths[owners] - width)
        pieces = np.ndarray((len(target) - width + 1,), dtype=f"V{width}", buffer=target, strides=(1,))
        pieces[to[owners] + at] = rows_at(source, begins[owners] + at, width).view(f"V{width}").reshape(-1)


@dataclass(frozen=True)
class Strips:
    """Stretches of one array, one after the other: that of record i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: npt.NDArray[Any]
    """Shape (n_items,), or (n_items, 2) for masked runs."""
    offsets: IntArray
    """Shape (n_records + 1,)."""

    @classmethod
    def of(cls, data: npt.NDArray[Any], counts: npt.NDArray[np.integer]) -> Strips:
        """Cut data by how many of its rows each record has, shape (n_records,)."""
        return cls(data, offsets_of(counts))

    @classmethod
    def joined(cls, parts: Sequence[Strips]) -> Strips:
        """Put the records of all parts one after the other; there is at least one part."""
        if len(parts) == 1:
            return parts[0]
        counts = np.concatenate([each.counts for each in parts])
        return cls.of(np.concatenate([each.data for each in parts]), counts)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> IntArray:
        """Rows of each record, shape (n_records,)."""
        counts: IntArray = np.diff(self.offsets)
        return counts

    def part(self, first: int, last: int) -> Strips:
        """Return the records from ``first`` to ``last``, excluded, without a copy."""
        bounds = self.offsets[first : last + 1]
        return Strips(self.data[bounds[0] : bounds[-1]], bounds - bounds[0])

    def take(self, chosen: IntArray) -> Strips:
        """Return some records by their places, shape (n,), in any order."""
        counts = self.counts[chosen]
        found = Strips.of(np.empty((int(counts.sum()), *self.data.shape[1:]), dtype=self.data.dtype), counts)
        if self.data.dtype == np.uint8 and self.data.ndim == 1:
            copy_strips(self.data, self.offsets[chosen], found.data, found.offsets[:-1], counts)
        else:
            found.data[:] = self.data[ranges(self.offsets[chosen], counts)]
        return found
