"""HDF5 metadata, read without libhdf5: which datasets and attributes a database has and where their bytes stand.

A database may come from anywhere, and libhdf5 takes a file at its word: it follows links to other files, expands
what is compressed, allocates what a damaged size asks for and can crash. So it only writes databases. They are read
here, and nothing is accepted but what our writer makes: version 2 of the superblock and of object headers, each
with its checksum; hard links; contiguous datasets of whole numbers inside the file; attributes that are numbers or
texts of fixed length. No byte of the file may belong to two objects, so that neither a circle nor a small file
with the content of a large one is possible, and the work is bounded by the file's size.

The names and numbers of this module are those of the HDF5 File Format Specification, version 3.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from swsearch.db.format import HDF5_SIGNATURE, USER_BLOCK
from swsearch.db.fractal_heap import Heap, Nodes
from swsearch.db.hdf5_messages import (
    UNDEFINED,
    StructureError,
    attribute,
    checksum,
    dataspace,
    datatype,
    dense_places,
    link,
    split,
)

MOST_ATTRIBUTES = 64
"""Attributes of an object; our writer makes 16."""

MOST_LINKS = 64
"""Links of a group, but for that of the segments; our writer makes 14."""

LARGEST_HEADER = 1 << 14
"""Bytes of a part of an object's header; our writer makes 500."""

MOST_PARTS = 16
"""Parts of an object's header; our writer makes 2."""

(DATASPACE, LINK_INFO, DATATYPE, LINK, EXTERNAL, LAYOUT, FILTER_PIPELINE, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE) = (
    1, 2, 3, 6, 7, 8, 11, 12, 16, 17,
)  # fmt: skip
ATTRIBUTE_INFO = 21

LARGEST_ENTRY = 1 << 10
"""Bytes of a link or an attribute, on average, and the room beside it in the heap."""

HEAP_PLACE = {5: slice(4, 11), 8: slice(0, 8)}
"""Where in a tree's record the place in the heap stands: links by name (5), attributes by name (8)."""

NOT_OURS = {
    EXTERNAL: "keeps its bytes in another file",
    FILTER_PIPELINE: "is compressed",
    SYMBOL_TABLE: "is an old-style group",
}
"""Messages that no object of ours has."""


class Readable(Protocol):
    """A file that the structure is read from."""

    @property
    def n_bytes(self) -> int:
        """The file's length."""

    def read(self, at: int, n_bytes: int) -> bytes:
        """Read bytes from ``at`` on; fewer than asked for at the end of the file."""


@dataclass(frozen=True)
class StoredDataset:
    """A dataset whose bytes stand in one place of the file.

    Parameters
    ----------
    name : str
        Its path in the file.
    dtype : str
        Type as numpy writes it, such as ``<i8``.
    shape : tuple of int
        Numbers of rows, and of columns if there are any.
    offset : int
        Place of its first byte in the file; 0 if it has none.
    n_bytes : int
        How many there are.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    n_bytes: int


@dataclass
class StoredGroup:
    """A group: its attributes, and what it links to.

    Parameters
    ----------
    name : str
        Its path in the file.
    attributes : dict of str to (int or str)
        Whole numbers and texts; others are left out.
    links : dict of str to int
        Address of each object by its name.
    """

    name: str
    attributes: dict[str, int | str]
    links: dict[str, int] = field(default_factory=dict)


class Structure:
    """The objects of an HDF5 file.

    Parameters
    ----------
    file : Readable
        The file; HDF5 begins after the user block.

    Raises
    ------
    StructureError
        Here and in every method: if something is not as our writer makes it.
    """

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._claimed: dict[int, int] = {}
        self._n_claimed = 0
        block = self.block(0, 48, "superblock")
        if not block.startswith(HDF5_SIGNATURE):
            raise StructureError("HDF5's signature is gone")
        if block[8] not in (2, 3) or block[9:11] != b"\x08\x08":
            raise StructureError("superblock: not the version that was written")
        self.check_sum(block, "superblock")
        base, _, _, self._root = struct.unpack("<4Q", block[12:44])
        if base != USER_BLOCK:
            raise StructureError("superblock: the base address is not after the user block")

    def root(self) -> StoredGroup:
        """Read the root group."""
        return self._group("", self._root, MOST_LINKS)

    def group(self, parent: StoredGroup, name: str, most: int = MOST_LINKS) -> StoredGroup:
        """Read a group by its name in another; it has at most so many links."""
        return self._group(f"{parent.name}/{name}", self._address(parent, name), most)

    def dataset(self, parent: StoredGroup, name: str) -> StoredDataset:
        """Read where a dataset stands, by its name in a group."""
        path = f"{parent.name}/{name}"
        messages = self._messages(self._address(parent, name), path)
        if not {DATASPACE, DATATYPE, LAYOUT} <= {kind for kind, _ in messages}:
            raise StructureError(f"{path} is no dataset")
        found = dict(messages)
        shape, dtype = dataspace(found[DATASPACE], path), datatype(found[DATATYPE], path)
        if shape is None or not 1 <= len(shape) <= 2 or dtype[:1] in ("", "S"):
            raise StructureError(f"{path} has an unexpected type or shape")
        layout = found[LAYOUT]
        if layout[:1] not in (b"\x03", b"\x04") or len(layout) < 18 or layout[1] != 1:
            raise StructureError(f"{path} is not contiguous")
        address, stored = struct.unpack_from("<2Q", layout, 2)
        n_bytes = int(dtype[-1])
        for extent in shape:
            n_bytes *= extent
        if stored != n_bytes:
            raise StructureError(f"{path} has {stored} bytes, expected {n_bytes}")
        if n_bytes == 0:
            return StoredDataset(path, dtype, shape, 0, 0)
        if address == UNDEFINED or address + n_bytes + USER_BLOCK > self._file.n_bytes:
            raise StructureError(f"{path} reaches beyond the file")
        self._claim(address, n_bytes, path)
        return StoredDataset(path, dtype, shape, address + USER_BLOCK, n_bytes)

    def check_apart(self) -> None:
        """Raise if two objects that were read share bytes."""
        for (start, n_bytes), (after, _) in pairwise(sorted(self._claimed.items())):
            if start + n_bytes > after:
                raise StructureError(f"bytes {after + USER_BLOCK} to {start + n_bytes + USER_BLOCK} have two owners")

    def block(self, address: int, n_bytes: int, what: str) -> bytes:
        """Read bytes that nothing else has, given by an address."""
        if address == UNDEFINED or address + n_bytes + USER_BLOCK > self._file.n_bytes:
            raise StructureError(f"{what}: reaches beyond the file")
        self._claim(address, n_bytes, what)
        block = self._file.read(address + USER_BLOCK, n_bytes)
        if len(block) != n_bytes:
            raise StructureError(f"{what}: reaches beyond the file")
        return block

    def _claim(self, address: int, n_bytes: int, what: str) -> None:
        self._n_claimed += n_bytes
        if address in self._claimed or self._n_claimed > self._file.n_bytes:
            raise StructureError(f"{what} (byte {address + USER_BLOCK}): is used twice")
        self._claimed[address] = n_bytes

    def check_sum(self, block: bytes, what: str) -> None:
        """Raise unless a block ends in its own checksum."""
        if checksum(block[:-4]) != int.from_bytes(block[-4:], "little"):
            raise StructureError(f"{what}: checksum of HDF5 metadata differs")

    def _address(self, parent: StoredGroup, name: str) -> int:
        if name not in parent.links:
            raise StructureError(f"{parent.name}/{name} is missing")
        if parent.links[name] == UNDEFINED:
            raise StructureError(f"{parent.name}/{name} is a link to somewhere else")
        return parent.links[name]

    def _group(self, path: str, address: int, most: int) -> StoredGroup:
        where = path or "/"
        messages = self._messages(address, where)
        kinds = [kind for kind, _ in messages]
        if LINK_INFO not in kinds or LAYOUT in kinds:
            raise StructureError(f"{where} is no group")
        group = StoredGroup(path, self._attributes(messages, where))
        links = [link(body, where) for kind, body in messages if kind == LINK]
        info = dict(messages)[LINK_INFO]
        places = dense_places(info, 8, where)
        if places:
            links += [link(body, where) for body in self._dense(places, 5, most, where)]
        for name, target in links:
            if name in group.links:
                raise StructureError(f"{where}: two links are called {name!r}")
            group.links[name] = target
        return group

    def _attributes(self, messages: list[tuple[int, bytes]], where: str) -> dict[str, int | str]:
        bodies = [body for kind, body in messages if kind == ATTRIBUTE]
        for kind, info in messages:
            if kind == ATTRIBUTE_INFO and (places := dense_places(info, 2, where)):
                bodies += self._dense(places, 8, MOST_ATTRIBUTES, where)
        if len(bodies) > MOST_ATTRIBUTES:
            raise StructureError(f"{where} has {len(bodies)} attributes")
        found: dict[str, int | str] = {}
        for body in bodies:
            name, value = attribute(body, where)
            if name in found:
                raise StructureError(f"{where}: two attributes are called {name!r}")
            if value is not None:
                found[name] = value
        return found

    def _dense(self, places: tuple[int, int], kind: int, most: int, where: str) -> Iterator[bytes]:
        """Read links or attributes that are too many for the object's header."""
        part = HEAP_PLACE[kind]
        try:
            nodes = Nodes(self, places[1], kind, where)
            if nodes.total > most:
                raise StructureError(f"{where} has {nodes.total} links or attributes, expected at most {most}")
            heap = Heap(self, places[0], where, (64 + nodes.total) * LARGEST_ENTRY)
            for record in nodes:
                yield heap.object(record[part])
        except (struct.error, IndexError) as error:
            raise StructureError(f"{where}: cannot be read ({error})") from error

    def _messages(self, address: int, where: str) -> list[tuple[int, bytes]]:
        """Read an object's header: kinds and bodies of its messages."""
        start = self._peek(address, 6, where)
        if start[:5] != b"OHDR\x02":
            raise StructureError(f"{where} (byte {address + USER_BLOCK}): no object of the version that was written")
        flags = start[5]
        before = 6 + (16 if flags & 32 else 0) + (4 if flags & 16 else 0)
        width = 1 << (flags & 3)
        size = int.from_bytes(self._peek(address + before, width, where), "little")
        before += width
        if size > LARGEST_HEADER:
            raise StructureError(f"{where}: its header is too long")
        block = self.block(address, before + size + 4, where)
        self.check_sum(block, where)
        messages: list[tuple[int, bytes]] = []
        waiting, n_parts = [block[before:-4]], 1
        while waiting:
            for kind, body in split(waiting.pop(), 6 if flags & 4 else 4, where):
                if kind in NOT_OURS:
                    raise StructureError(f"{where} {NOT_OURS[kind]}")
                if kind != CONTINUATION:
                    messages.append((kind, body))
                    continue
                if len(body) < 16:
                    raise StructureError(f"{where}: a message is too short")
                place, length = struct.unpack_from("<2Q", body)
                n_parts += 1
                if length > LARGEST_HEADER or n_parts > MOST_PARTS:
                    raise StructureError(f"{where}: its header is too long")
                further = self.block(place, length, where)
                if further[:4] != b"OCHK" or len(further) < 8:
                    raise StructureError(f"{where}: its header does not go on where it should")
                self.check_sum(further, where)
                waiting.append(further[4:-4])
        return messages

    def _peek(self, address: int, n_bytes: int, where: str) -> bytes:
        """Read bytes that decide how many there are."""
        found = b"" if address >= self._file.n_bytes else self._file.read(address + USER_BLOCK, n_bytes)
        if len(found) != n_bytes:
            raise StructureError(f"{where}: reaches beyond the file")
        return found
