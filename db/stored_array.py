"""One dataset of a database: bytes are checked against their checksums whenever they are read."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.content import ranges
from swsearch.db.format import BYTES_PER_CHECKSUM, n_checksums
from swsearch.db.hdf5_structure import StoredDataset
from swsearch.db.source import Source

STEP = 1 << 12
"""Bytes after which the running checksum of a piece is kept, so that a few rows can be checked alone; the rows of a
subject of 350 residues are 22 KiB. It divides `BYTES_PER_CHECKSUM`."""

STEPS_PER_PIECE = BYTES_PER_CHECKSUM // STEP

JOINED_STEPS = 2
"""Steps between two ranges that are read with them: one more call takes as long."""

READ_TOGETHER = 1 << 20
"""Bytes that are read at once where many ranges are asked for; they stay in the cache."""

STRIPS_AT_ONCE = 1 << 16
"""Strips that are copied at a time: as Python's numbers they take 100 bytes each."""


class StoredArray:
    """One dataset and its checksums.

    Parameters
    ----------
    source : Source
        The database's bytes.
    dataset, sums : StoredDataset
        The dataset and its checksums, of the types and shapes that were written.
    """

    def __init__(self, source: Source, dataset: StoredDataset, sums: StoredDataset) -> None:
        self._source, self._dataset = source, dataset
        self.name, self.shape, self.n_bytes = dataset.name, dataset.shape, dataset.n_bytes
        self._dtype = np.dtype(dataset.dtype)
        self.row = int(np.prod(self.shape[1:], dtype=np.int64)) * self._dtype.itemsize
        self._sums: list[int] = [] if source.trusted else self._bytes(sums.offset, sums.n_bytes).view("<u4").tolist()
        self._checked = bytearray(len(self._sums))
        self._running = array("I", bytes(4 * -(-self.n_bytes // STEP)) if not source.trusted else b"")

    def _bytes(self, at: int, n_bytes: int) -> ByteArray:
        """Read bytes of the file."""
        found = np.empty(n_bytes, dtype=np.uint8)
        if n_bytes:
            self._source.read_into(found, at)
        return found

    def _rows(self, data: ByteArray) -> npt.NDArray[Any]:
        """Take whole rows for what they are."""
        return data.view(self._dtype).reshape(-1, *self.shape[1:])

    def _pieces(self, first: int, last: int, broken: list[int] | None = None) -> ByteArray:
        """Read and check whole pieces; shape (n_bytes,), uint8."""
        begin, end = first * BYTES_PER_CHECKSUM, min(last * BYTES_PER_CHECKSUM, self.n_bytes)
        if self._source.trusted:
            return self._bytes(self._dataset.offset + begin, end - begin)
        data = np.empty(end - begin, dtype=np.uint8)
        for piece in range(first, last):
            # one by one: what was just read is checked in the cache, and each read lets other threads of Python run,
            # such as the one that copies to a GPU, which the sums of steps do not
            at = (piece - first) * BYTES_PER_CHECKSUM
            part = data[at : at + BYTES_PER_CHECKSUM]
            self._source.read_into(part, self._dataset.offset + begin + at)
            if self._check(piece, part.data):
                self._checked[piece] = True
            elif broken is None:
                raise self._source.damage([self.place(piece)], known=bool(self._checked[piece]))
            else:
                broken.append(piece)
        return data

    def pieces(self, start: int, stop: int, *, broken: list[int] | None = None) -> npt.NDArray[Any]:
        """Read and check the pieces that hold rows ``start`` to ``stop``; return all of their rows.

        The type is the dataset's; the shape is (n_rows,), or (n_rows, 64) for residues.
        """
        first, last = start * self.row // BYTES_PER_CHECKSUM, n_checksums(stop * self.row)
        return self._rows(self._pieces(first, last, broken))

    def _check(self, piece: int, data: memoryview) -> bool:
        """Say whether a piece is what was written; keep its running checksum."""
        if self._checked[piece]:
            return zlib.crc32(data) == self._sums[piece]
        running = array("I")
        value = 0
        for at in range(0, len(data), STEP):
            value = zlib.crc32(data[at : at + STEP], value)
            running.append(value)
        begin = piece * STEPS_PER_PIECE
        self._running[begin : begin + len(running)] = running
        return value == self._sums[piece]

    def _check_steps(self, at: int, view: memoryview) -> None:
        """Check whole steps, from byte ``at`` on, of pieces that were right when they were first met."""
        place, after = at, at + len(view)
        while place < after:  # piece by piece, hardly ever more than one
            stop = min((place // BYTES_PER_CHECKSUM + 1) * BYTES_PER_CHECKSUM, after)
            before = self._running[place // STEP - 1] if place % BYTES_PER_CHECKSUM else 0
            if zlib.crc32(view[place - at : stop - at], before) != self._running[-(-stop // STEP) - 1]:
                raise self._source.damage([self.place(place // BYTES_PER_CHECKSUM)], known=True)
            place = stop

    def place(self, piece: int) -> str:
        """Name a piece in a message."""
        start = piece * BYTES_PER_CHECKSUM
        return f"{self.name} bytes {start} to {min(start + BYTES_PER_CHECKSUM, self.n_bytes)}: checksum differs"

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read rows and check them now; shape and type as of `pieces`."""
        if start >= stop:
            return np.empty((0, *self.shape[1:]), dtype=self._dtype)
        if self._source.trusted:
            return self._rows(self._bytes(self._dataset.offset + start * self.row, (stop - start) * self.row))
        rows = self.pieces(start, stop)
        begin = start * self.row // BYTES_PER_CHECKSUM * BYTES_PER_CHECKSUM // self.row
        return rows[start - begin : stop - begin]

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read a few rows and check them; shape and type as of `pieces`.

        A piece is read whole when it is first met, and then only the steps that hold the rows: the file may have
        been written to since.
        """
        begin, end = start * self.row, stop * self.row
        first, last = begin // BYTES_PER_CHECKSUM, n_checksums(end)
        if start >= stop or self._source.trusted or 0 in self._checked[first:last]:
            return self.load(start, stop)
        at, after = begin // STEP * STEP, min(-(-end // STEP) * STEP, self.n_bytes)
        data = self._source.read(self._dataset.offset + at, after - at)
        if len(data) < after - at:
            raise self._source.damage([self.place(last - 1)], known=True)
        self._check_steps(at, memoryview(data))
        rows: npt.NDArray[Any] = np.frombuffer(data, self._dtype, (end - begin) // self._dtype.itemsize, begin - at)
        return rows.reshape(-1, *self.shape[1:])

    def _windows(self, begins: IntArray, ends: IntArray) -> Iterator[tuple[int, int, int, ByteArray]]:
        """Read and check ranges of bytes in file order, those that are neighbours together.

        Parameters
        ----------
        begins, ends : ndarray, shape (n,), int64
            Bytes of the dataset; beginnings ascend, and no range is empty or much longer than a window.

        Yields
        ------
        first, last, at : int
            Ranges ``first`` to ``last`` (excluded) stand in ``data``, which begins with byte ``at``.
        data : ndarray, shape (n_bytes,), uint8
            Checked; valid until the next is asked for.
        """
        if not len(begins):
            return
        first_steps, last_steps = begins // STEP, np.maximum.accumulate(-(-ends // STEP))
        breaks = np.flatnonzero(first_steps[1:] > last_steps[:-1] + JOINED_STEPS) + 1
        starts, stops = np.append(0, breaks), np.append(breaks, len(begins))
        bounds = (starts, stops, first_steps[starts], last_steps[stops - 1])
        buffer = np.empty(0, dtype=np.uint8)
        most = READ_TOGETHER // STEP
        for start, stop, begin, end in zip(*(each.tolist() for each in bounds), strict=True):
            first = start
            while first < stop:
                step = begin if first == start else int(first_steps[first])
                last, until = stop, end
                if end - step > most:
                    last = first + int(np.searchsorted(last_steps[first:stop], step + most, side="right"))
                    last = max(last, first + 1)
                    until = int(last_steps[last - 1])
                at, after = step * STEP, min(until * STEP, self.n_bytes)
                if after - at > len(buffer):
                    buffer = np.empty(after - at, dtype=np.uint8)
                yield first, last, *self._window(at, after, buffer)
                first = last

    def _window(self, at: int, after: int, buffer: ByteArray) -> tuple[int, ByteArray]:
        """Read and check bytes from the beginning of a step to the end of one; return where they begin, and them."""
        first, last = at // BYTES_PER_CHECKSUM, n_checksums(after)
        if not self._source.trusted and 0 in self._checked[first:last]:
            return first * BYTES_PER_CHECKSUM, self._pieces(first, last)
        data = buffer[: after - at]
        self._source.read_into(data, self._dataset.offset + at)
        if not self._source.trusted:
            self._check_steps(at, data.data)
        return at, data

    def take(self, rows: IntArray) -> npt.NDArray[Any]:
        """Read rows of one number each, and check them.

        Parameters
        ----------
        rows : ndarray, shape (n,), int64
            Ascending, repeats allowed, within the dataset.

        Returns
        -------
        ndarray, shape (n,)
            Of the dataset's type.
        """
        assert not len(rows) or (rows[1:] >= rows[:-1]).all(), "rows ascend"
        values = np.empty(len(rows), dtype=self._dtype)
        begins = rows * self.row
        for first, last, at, data in self._windows(begins, begins + self.row):
            table = data.view(self._dtype)
            values[first:last] = table[rows[first:last] - at // self.row]
        return values

    def copy(
        self, begins: IntArray, counts: IntArray, to: IntArray, target: ByteArray, *, column: IntArray | None = None
    ) -> None:
        """Read strips of bytes, one byte of every row, and check what was read.

        Parameters
        ----------
        begins, counts : ndarray, shape (n,), int64
            First row of each strip and its rows, in any order, within the dataset.
        to : ndarray, shape (n,), int64
            Where each goes.
        target : ndarray, shape (n_bytes,), uint8
            Written: the strips.
        column : ndarray, shape (n,), int64, optional
            Which byte of its rows each strip takes; by default the first.
        """
        row = self.row
        most = max(READ_TOGETHER // row, 1)
        which = np.repeat(np.arange(len(begins)), -(-counts // most))
        done = ranges(np.zeros(len(begins), dtype=np.int64), -(-counts // most)) * most
        begins, counts, to = begins[which] + done, np.minimum(counts[which] - done, most), to[which] + done
        order = np.argsort(begins, kind="stable")
        begins, counts, to = begins[order] * row, counts[order], to[order]
        firsts = begins if column is None else begins + column[which][order]
        for batch in range(0, len(begins), STRIPS_AT_ONCE):
            some = slice(batch, batch + STRIPS_AT_ONCE)
            self._copy(begins[some], counts[some], firsts[some], to[some], target)

    def _copy(self, begins: IntArray, counts: IntArray, firsts: IntArray, to: IntArray, target: ByteArray) -> None:
        """Copy strips whose rows begin at ascending bytes; ``firsts`` are the first bytes to be copied."""
        row, where, lengths, places = self.row, firsts.tolist(), counts.tolist(), to.tolist()
        # neighbouring bytes are copied fastest by memoryviews (0.2 us), single ones of rows by numpy (0.3 us)
        into: Any = target.data if row == 1 else target
        for first, last, at, data in self._windows(begins, begins + counts * row):
            source: Any = data.data if row == 1 else data
            for strip in range(first, last):
                begin, n, place = where[strip] - at, lengths[strip], places[strip]
                into[place : place + n] = source[begin : begin + n * row : row]

    def parts(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Read and check all rows, some at a time; yield which is the first, and rows, shape (n_rows, ...)."""
        step = 8 * BYTES_PER_CHECKSUM // max(self.row, 1)
        for start in range(0, self.shape[0], step):
            yield start, self.load(start, min(start + step, self.shape[0]))

    def all(self) -> npt.NDArray[Any]:
        """Read and check everything; shape and type are the dataset's."""
        return self.load(0, self.shape[0])

    def problems(self) -> tuple[int, list[str]]:
        """Check everything, a few pieces at a time; return how many and a message for each broken one."""
        broken: list[int] = []
        step = 8 * BYTES_PER_CHECKSUM // self.row if self.row else 1
        for start in range(0, self.shape[0], step):
            self.pieces(start, min(start + step, self.shape[0]), broken=broken)
        return len(self._sums), [self.place(piece) for piece in broken]
