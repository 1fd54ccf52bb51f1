"""One array of a database file: every byte is checked against its checksum whenever it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.contents import ArrayEntry
from swsearch.db.fast_zlib import crc32
from swsearch.db.source import FileSource
from swsearch.db.strips import Strips, copy_strips, offsets_of, ranges

READ_TOGETHER = 1 << 20
"""Bytes that are read at once where many ranges are asked for; they stay in the cache."""

ARRAY_READ_BYTES = 8 << 20
"""Bytes that are read at once where all are."""


class StoredArray:
    """An array of a file.

    Parameters
    ----------
    source : FileSource
        The file.
    entry : ArrayEntry
        Where it is, as its contents say.
    where : str
        What messages call the segment.
    """

    def __init__(self, source: FileSource, entry: ArrayEntry, where: str) -> None:
        self._source, self._entry = source, entry
        self.name, self.shape, self.n_bytes = f"{where}/{entry.name}", entry.shape, entry.n_bytes
        self.n_pieces, self.dtype = entry.n_pieces, np.dtype(entry.dtype)
        self.row = self.dtype.itemsize * int(np.prod(entry.shape[1:], dtype=np.int64))
        self._known: npt.NDArray[np.uint32] | None = None

    @property
    def _sums(self) -> npt.NDArray[np.uint32]:
        """The checksums, checked when they are first read."""
        if self._known is None:
            entry = self._entry
            data = self._source.read(entry.sums_at, 4 * entry.n_pieces)
            wrong = entry.sha256 is not None and hashlib.sha256(data).hexdigest() != entry.sha256
            if wrong or len(data) < 4 * entry.n_pieces:
                raise self._source.damage([f"{self.name}: checksums are not those that were written"])
            self._known = np.frombuffer(data, dtype="<u4")
        return self._known

    def _pieces(self, first: int, last: int, broken: list[str] | None = None) -> ByteArray:
        """Read and check whole pieces, ``last`` excluded; shape (n_bytes,), uint8."""
        size, sums = self._entry.piece_bytes, self._sums[first:last].tolist()
        data = np.empty(min(last * size, self.n_bytes) - first * size, dtype=np.uint8)
        for begin in range(0, len(data), READ_TOGETHER):
            # what was just read is checked in the cache, and each read lets other threads of Python run
            part = data[begin : begin + READ_TOGETHER]
            self._source.read_into(part, self._entry.at + first * size + begin)
            view = part.data
            for at in range(0, len(part), size):
                piece = (begin + at) // size
                if crc32(view[at : at + size]) != sums[piece]:
                    if broken is None:
                        raise self._source.damage([self._place(first + piece)])
                    broken.append(self._place(first + piece))
        return data

    def _place(self, piece: int) -> str:
        """Name a piece in a message."""
        start = piece * self._entry.piece_bytes
        end = min(start + self._entry.piece_bytes, self.n_bytes)
        return f"{self.name} bytes {start} to {end}: checksum differs"

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read rows; the type is the array's, the shape (n_rows,), or (n_rows, 64) for residues."""
        if start >= stop:
            return np.empty((0, *self.shape[1:]), dtype=self.dtype)
        begin, end, size = start * self.row, stop * self.row, self._entry.piece_bytes
        first = begin // size
        data = self._pieces(first, -(-end // size))[begin - first * size :][: end - begin]
        return data.view(self.dtype).reshape(-1, *self.shape[1:])

    def all(self) -> npt.NDArray[Any]:
        """Read all rows, shape (n_rows, ...)."""
        return self.load(0, self.shape[0])

    def parts(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Read all rows, some at a time; yield which is the first, and rows, shape (n_rows, ...)."""
        step = ARRAY_READ_BYTES // self.row
        for start in range(0, self.shape[0], step):
            yield start, self.load(start, min(start + step, self.shape[0]))

    def windows(self, begins: IntArray, ends: IntArray) -> Iterator[tuple[slice, int, npt.NDArray[Any]]]:
        """Read ranges of rows, neighbours together.

        Parameters
        ----------
        begins, ends : ndarray, shape (n,), int64
            First row of each range, ascending, and the row after its last.

        Yields
        ------
        which : slice
            Ranges that were read together.
        first : int
            The first row of ``rows``.
        rows : ndarray, shape (n_rows, ...)
            All rows from the first of these ranges to their last.
        """
        most, near, at = max(READ_TOGETHER // self.row, 1), self._entry.piece_bytes // self.row, 0
        far = np.flatnonzero(begins[1:] > np.maximum.accumulate(ends)[:-1] + near) + 1
        for stop in [*far.tolist(), len(begins)]:
            while at < stop:
                last, first, end = at + 1, int(begins[at]), int(ends[at])
                if stop > last:
                    last = at + max(int(np.searchsorted(begins[at:stop], first + most)), 1)
                    end = int(ends[at:last].max())
                yield slice(at, last), first, self.load(first, end)
                at = last

    def take(self, rows: IntArray) -> npt.NDArray[Any]:
        """Read rows of one number each, shape (n,), in any order."""
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        found = np.empty(len(rows), dtype=self.dtype)
        for which, first, table in self.windows(ascending, ascending + 1):
            found[order[which]] = table[ascending[which] - first]
        return found

    def ranges(self, begins: IntArray, ends: IntArray) -> Strips:
        """Read ranges of rows of one item each, in any order: from ``begins`` to ``ends``, both of shape (n,)."""
        counts = ends - begins
        offsets = offsets_of(counts)
        if len(begins) and (begins[1:] == ends[:-1]).all():  # one after the other, as where all are asked for
            return Strips(self.load(int(begins[0]), int(ends[-1])), offsets)
        found = np.empty(int(offsets[-1]), dtype=self.dtype)
        order = np.argsort(begins, kind="stable")
        order = order[counts[order] > 0]
        for which, first, rows in self.windows(begins[order], ends[order]):
            some = order[which]
            at, to, n = begins[some] - first, offsets[some], counts[some]
            if self.dtype == np.uint8:
                copy_strips(rows, at, found, to, n)
            else:
                found[ranges(to, n)] = rows[ranges(at, n)]
        return Strips(found, offsets)

    def broken(self) -> list[str]:
        """Check every byte; return a message for each piece that is not as it was written."""
        broken: list[str] = []
        step = max(ARRAY_READ_BYTES // self._entry.piece_bytes, 1)
        for first in range(0, self.n_pieces, step):
            self._pieces(first, min(first + step, self.n_pieces), broken)
        return broken
