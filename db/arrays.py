"""Arrays of a database file; each read checks the checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.byte_source import FileSource
from swsearch.db.file_contents import ArrayEntry
from swsearch.extension import load


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


def cut_into_groups(offsets: IntArray, max_rows: int) -> Iterator[tuple[int, int]]:
    """Yield bounds of groups of neighbours with at most ``max_rows`` rows, or of one; offsets have shape (n + 1,)."""
    first, n = 0, len(offsets) - 1
    while first < n:
        last = max(int(np.searchsorted(offsets, offsets[first] + max_rows, side="right")) - 1, first + 1)
        yield first, last
        first = last


def rows_at(data: ByteArray, starts: IntArray, width: int) -> ByteArray:
    """Copy stretches of one width out of bytes: from ``starts``, shape (n,), to shape (n, width), uint8."""
    # a stretch is one object of so many bytes to numpy, which copies it at once
    view = np.ndarray((len(data) - width + 1,), dtype=f"V{width}", buffer=data, strides=(1,))
    return view[starts].view(np.uint8).reshape(len(starts), width)


def copy_strips(
    source: npt.NDArray[Any], begins: IntArray, target: npt.NDArray[Any], to: IntArray, lengths: IntArray
) -> None:
    """Copy n stretches of rows; ``begins``, ``to`` and ``lengths``, shape (n,), int64, are their places and rows.

    ``source`` and ``target`` have shape (n_rows, ...) and one type, their rows end to end.
    """
    row = target.strides[0]
    load().copy_ranges(source, row * begins, target, row * to, row * lengths)


@dataclass(frozen=True)
class Strips:
    """Stretches of one array, one after the other: that of record i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: npt.NDArray[Any]
    """Shape (n_items,), or (n_items, 2) for masked runs."""
    offsets: IntArray
    """Shape (n_records + 1,)."""

    @classmethod
    def from_counts(cls, data: npt.NDArray[Any], counts: npt.NDArray[np.integer]) -> Strips:
        """Cut data by how many of its rows each record has, shape (n_records,)."""
        return cls(data, offsets_of(counts))

    @classmethod
    def concatenate(cls, parts: Sequence[Strips]) -> Strips:
        """Put the records of all parts one after the other; there is at least one part."""
        if len(parts) == 1:
            return parts[0]
        counts = np.concatenate([each.counts for each in parts])
        return cls.from_counts(np.concatenate([each.data for each in parts]), counts)

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
        strips = Strips.from_counts(
            np.empty((int(counts.sum()), *self.data.shape[1:]), dtype=self.data.dtype), counts
        )
        copy_strips(self.data, self.offsets[chosen], strips.data, strips.offsets[:-1], counts)
        return strips


ARRAY_READ_BYTES = 8 << 20
"""Bytes that are read at once where all are."""


class StoredArray:
    """An array of a file; ``where`` is the name of its segment in messages."""

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
                raise self._source.damage_error([f"{self.name}: checksums are not those that were written"])
            self._known = np.frombuffer(data, dtype="<u4")
        return self._known

    def _read(
        self, begins: IntArray, offsets: IntArray, step: int = 1, threads: int = 1
    ) -> tuple[ByteArray, list[int]]:
        """Read ranges of bytes as `gather` does; return them, and the numbers of broken pieces."""
        data, descriptor = np.empty(int(offsets[-1]), dtype=np.uint8), self._source.held()
        stored = descriptor.number, self._entry.at, self.n_bytes, self._entry.piece_bytes, self._sums
        broken, at, n_bytes, error = load().read_ranges(*stored, begins, offsets, step, threads, data)
        if n_bytes:
            raise self._source.read_error(at, n_bytes, error)
        return data, broken

    def gather(self, begins: IntArray, offsets: IntArray, step: int = 1, threads: int = 1) -> ByteArray:
        """Read ranges of bytes, each piece once and checked: range k is every ``step``-th byte from ``begins[k]`` on.

        ``begins`` has shape (n,), ``offsets`` in the returned bytes (n + 1,), both int64.
        """
        data, broken = self._read(begins, offsets, step, threads)
        if broken:
            raise self._source.damage_error([self._describe_piece(broken[0])])
        return data

    def _describe_piece(self, piece: int) -> str:
        """Name a piece in a message."""
        start = piece * self._entry.piece_bytes
        end = min(start + self._entry.piece_bytes, self.n_bytes)
        return f"{self.name} bytes {start} to {end}: checksum differs"

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read rows; the type is the array's, the shape (n_rows,), or (n_rows, 64) for residues."""
        data = self.gather(np.array([start * self.row]), np.array([0, max(stop - start, 0) * self.row]))
        return data.view(self.dtype).reshape(-1, *self.shape[1:])

    def all(self) -> npt.NDArray[Any]:
        """Read all rows, shape (n_rows, ...)."""
        return self.load(0, self.shape[0])

    def parts(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Read all rows, some at a time; yield which is the first, and rows, shape (n_rows, ...)."""
        step = ARRAY_READ_BYTES // self.row
        for start in range(0, self.shape[0], step):
            yield start, self.load(start, min(start + step, self.shape[0]))

    def take(self, rows: IntArray) -> npt.NDArray[Any]:
        """Read rows of one number each, shape (n,), in any order."""
        return self.gather(rows * self.row, np.arange(len(rows) + 1) * self.row).view(self.dtype)

    def ranges(self, begins: IntArray, ends: IntArray) -> Strips:
        """Read ranges of rows of one item each, in any order: from ``begins`` to ``ends``, both of shape (n,)."""
        offsets = offsets_of(ends - begins)
        return Strips(self.gather(begins * self.row, offsets * self.row).view(self.dtype), offsets)

    def find_damage(self) -> list[str]:
        """Check every byte; return a message for each piece that is not as it was written."""
        size, found = self._entry.piece_bytes, []
        step = max(ARRAY_READ_BYTES // size, 1) * size
        for begin in range(0, self.n_bytes, step):
            broken = self._read(np.array([begin]), np.array([0, min(step, self.n_bytes - begin)]))[1]
            found += [self._describe_piece(piece) for piece in broken]
        return found
