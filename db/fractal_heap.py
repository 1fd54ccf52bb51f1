"""Links and attributes that are too many for an object's header: HDF5 keeps them in a heap, and a tree says where."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

from swsearch.db.hdf5_messages import UNDEFINED, StructureError, checksum

LARGEST_NODE = 1 << 16
"""Bytes of a tree's node or a heap's block; libhdf5 makes trees of 512 bytes and blocks up to 64 KiB."""

DEEPEST = 8
"""Levels of a tree or a heap; a tree of 4 has room for 10 million links."""


class Blocks(Protocol):
    """What blocks of metadata are read from; each raises `StructureError`."""

    def block(self, address: int, n_bytes: int, what: str) -> bytes:
        """Read bytes that nothing else has."""

    def check_sum(self, block: bytes, what: str) -> None:
        """Raise unless a block ends in its own checksum."""


def bytes_for(limit: int) -> int:
    """Return how many bytes HDF5 takes for numbers up to a limit."""
    return (limit.bit_length() - 1) // 8 + 1 if limit else 1


class Heap:
    """A fractal heap: bytes of many objects in blocks whose sizes double from row to row.

    Parameters
    ----------
    blocks : Blocks
        Where blocks are read from.
    address : int
        The heap's header.
    where : str
        The object whose heap it is, for messages.
    limit : int
        Where the heap's objects must begin before: what stands further is not read.
    """

    def __init__(self, blocks: Blocks, address: int, where: str, limit: int) -> None:
        self._blocks, self._address, self._where = blocks, address, where
        header = blocks.block(address, 146, where)
        blocks.check_sum(header, where)
        id_length, filters, self._flags, largest = struct.unpack_from("<2HBI", header, 5)
        width, self._start, most, bits, _, root, n_rows = struct.unpack_from("<HQQHHQH", header, 110)
        fine = header[:5] == b"FRHP\0" and not filters and 0 < width <= 64 and 0 < bits <= 64
        fine = fine and 0 < self._start <= most <= LARGEST_NODE and largest > 0
        if not fine or self._start & self._start - 1 or most & most - 1:
            raise StructureError(f"{where}: its heap is not as it was written")
        self._width, self._most, self._offset_bytes = width, most, (bits + 7) // 8
        self._length_bytes = min(bytes_for(most), bytes_for(largest))
        if 1 + self._offset_bytes + self._length_bytes > id_length:
            raise StructureError(f"{where}: its heap is not as it was written")
        self._limit = limit
        self._direct: dict[int, bytes] = {}
        self._places: dict[int, tuple[int, int]] = {}
        if root != UNDEFINED and n_rows:
            self._read_rows(root, 0, n_rows, 0)
        elif root != UNDEFINED:
            self._places[0] = (root, self._start)
        self._starts = sorted(self._places)

    def object(self, place: bytes) -> bytes:
        """Return the object that a place, as trees hold them, stands for."""
        offset = int.from_bytes(place[1 : 1 + self._offset_bytes], "little")
        length = int.from_bytes(place[1 + self._offset_bytes :][: self._length_bytes], "little")
        if place[0] == 0 and length and offset < self._limit:
            index = bisect_right(self._starts, offset) - 1
            if index >= 0:
                begin = offset - self._starts[index]
                found = self._block(self._starts[index])[begin : begin + length]
                if len(found) == length:
                    return found
        raise StructureError(f"{self._where}: a place in its heap is outside")

    def _check_owner(self, block: bytes, signature: bytes, at: int) -> None:
        owner = int.from_bytes(block[5:13], "little")
        offset = int.from_bytes(block[13 : 13 + self._offset_bytes], "little")
        if block[:5] != signature + b"\0" or owner != self._address or offset != at:
            raise StructureError(f"{self._where}: a block of its heap is not as it was written")

    def _block(self, at: int) -> bytes:
        """Return the block that begins at a place of the heap, read when it is first asked for."""
        if at in self._direct:
            return self._direct[at]
        block = self._blocks.block(*self._places[at], self._where)
        self._check_owner(block, b"FHDB", at)
        if self._flags & 2:
            place = 13 + self._offset_bytes
            plain = block[:place] + b"\0\0\0\0" + block[place + 4 :]
            if checksum(plain) != int.from_bytes(block[place : place + 4], "little"):
                raise StructureError(f"{self._where}: checksum of HDF5 metadata differs")
        self._direct[at] = block
        return block

    def _read_rows(self, address: int, at: int, n_rows: int, depth: int) -> None:
        """Read an indirect block: addresses of blocks, rows of ``width``; and what it points to."""
        if n_rows > 64 or depth > DEEPEST:
            raise StructureError(f"{self._where}: its heap is too deep")
        sizes = [self._start << max(row - 1, 0) for row in range(n_rows)]
        places = 13 + self._offset_bytes
        block = self._blocks.block(address, places + 8 * self._width * n_rows + 4, self._where)
        self._blocks.check_sum(block, self._where)
        self._check_owner(block, b"FHIB", at)
        addresses = iter(struct.unpack_from(f"<{self._width * n_rows}Q", block, places))
        for size in sizes:
            if at >= self._limit:
                break
            for _ in range(self._width):
                if (child := next(addresses)) != UNDEFINED:
                    if size <= self._most:
                        self._places[at] = (child, size)
                    else:
                        rows = size.bit_length() - (self._start * self._width).bit_length() + 1
                        self._read_rows(child, at, rows, depth + 1)
                at += size


class Nodes:
    """The records of a tree (version 2), in its order.

    Parameters
    ----------
    blocks : Blocks
        Where blocks are read from.
    address : int
        The tree's header.
    kind : int
        Type of its records.
    where : str
        The object whose tree it is, for messages.
    """

    def __init__(self, blocks: Blocks, address: int, kind: int, where: str) -> None:
        self._blocks, self._kind, self._where = blocks, kind, where
        header = blocks.block(address, 38, where)
        blocks.check_sum(header, where)
        numbers = struct.unpack_from("<IHHHQHQ", header, 6)
        self._size, self._record, self._depth, _, self._root, self._n, self.total = numbers
        fine = header[:6] == b"BTHD\0" + bytes([kind]) and self._record == {5: 11, 8: 17}[kind]
        if not fine or not 64 <= self._size <= LARGEST_NODE or self._depth > DEEPEST:
            raise StructureError(f"{where}: its tree is not as it was written")
        most = (self._size - 10) // self._record
        self._count_bytes = bytes_for(most)
        self._total_bytes, records = [0], most
        for _ in range(self._depth):
            pointer = 8 + self._count_bytes + self._total_bytes[-1]
            inside = (self._size - 10 - pointer) // (self._record + pointer)
            records = (inside + 1) * records + inside
            self._total_bytes.append(bytes_for(records))

    def __iter__(self) -> Iterator[bytes]:
        """Yield every record."""
        found = 0
        if self._root != UNDEFINED:
            for record in self._node(self._root, self._n, self._depth):
                found += 1
                yield record
        if found != self.total:
            raise StructureError(f"{self._where}: its tree has {found} records, expected {self.total}")

    def _node(self, address: int, n: int, depth: int) -> Iterator[bytes]:
        block = self._blocks.block(address, self._size, self._where)
        pointer = 8 + self._count_bytes + self._total_bytes[depth - 1] if depth else 0
        end = 6 + n * self._record + ((n + 1) * pointer if depth else 0)
        if block[:6] != (b"BTIN\0" if depth else b"BTLF\0") + bytes([self._kind]) or end + 4 > self._size:
            raise StructureError(f"{self._where}: a node of its tree is not as it was written")
        self._blocks.check_sum(block[: end + 4], self._where)
        records = [block[6 + k * self._record : 6 + (k + 1) * self._record] for k in range(n)]
        if not depth:
            yield from records
            return
        for k in range(n + 1):
            at = 6 + n * self._record + k * pointer
            child = int.from_bytes(block[at : at + 8], "little")
            count = int.from_bytes(block[at + 8 : at + 8 + self._count_bytes], "little")
            yield from self._node(child, count, depth - 1)
            yield from records[k : k + 1]
