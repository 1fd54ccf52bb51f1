"""Writers of segments into new, existing or unnamed files.

HDF5 makes the structure and chooses the place of each array; plain writes store the bytes. HDF5's own writes stay in
memory until all arrays are on disk. They are written next, and the user block last, by which readers find the rest.
So a full disk is an ordinary error, and an interrupted write leaves the database as it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.db.file_contents import (
    MAX_CONTENTS_BYTES,
    ArrayEntry,
    Attributes,
    BytesPlace,
    Contents,
    ContentsError,
    SegmentEntry,
    UserBlock,
    pack_piece,
)
from swsearch.db.format import (
    ARRAY_TYPES,
    CHECKED_BYTES,
    FORMAT_NAME,
    FORMAT_VERSION,
    LAYOUT,
    LIBVER,
    USER_BLOCK,
    DatabaseKind,
    software,
)
from swsearch.db.input_stream import crc32
from swsearch.db.records import SourcePart
from swsearch.errors import OutputError

METADATA_BYTES = 12 << 10
"""Bytes of HDF5's metadata of a segment, and of what the contents say of it, with room to spare."""

_CHANGE = struct.Struct("<QI")


def utc_now() -> str:
    """Return the time in UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_at(fd: int, data: memoryview | bytes, at: int) -> None:
    """Write bytes into an open file, from a place on."""
    view = memoryview(data)
    while view:  # one call writes at most 2 GiB, and less on a disk that is nearly full
        n = os.pwrite(fd, view, at)
        at, view = at + n, view[n:]


class Overlay(io.RawIOBase):
    """File object for HDF5 that reads a file and keeps writes in memory."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd, self.size, self._at = fd, size, 0
        self.writes: list[tuple[int, bytes]] = []
        """Places and bytes of the writes."""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at

    def truncate(self, size: int | None = None) -> int:
        """Set the size."""
        self.size = self._at if size is None else size
        return self.size

    def readinto(self, buffer: Any) -> int:
        """Read the bytes of the file, with the bytes written so far over them."""
        view, begin = memoryview(buffer).cast("B"), self._at
        end = begin + len(view)
        view[:] = os.pread(self._fd, len(view), begin).ljust(len(view), b"\0")
        for at, data in self.writes:
            first, last = max(at, begin), min(at + len(data), end)
            if first < last:
                view[first - begin : last - begin] = data[first - at : last - at]
        self._at = end
        return len(view)

    def write(self, data: Any) -> int:
        """Keep what is written."""
        self.writes.append((self._at, bytes(data)))
        self._at += len(self.writes[-1][1])
        self.size = max(self.size, self._at)
        return len(self.writes[-1][1])


class SegmentSink:
    """Writes the arrays of a segment, each from its beginning to its end."""

    def __init__(self, file: SegmentFile, attributes: Attributes) -> None:
        self._file = file
        self.attributes: Attributes = {"created": utc_now(), "software": software(), **attributes}
        self._group = file.group_of(self.attributes)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._begin: dict[str, int] = {}
        self._n: dict[str, int] = {}
        self._sums: dict[str, list[int]] = {}

    def create(self, name: str, shape: tuple[int, ...]) -> None:
        """Make an array that is written piece by piece."""
        self._begin[name] = self._file.place_of(self._group, name, ARRAY_TYPES[name], shape)
        self._shapes[name], self._n[name], self._sums[name] = shape, 0, []

    def write(self, name: str, values: npt.NDArray[Any]) -> None:
        """Append rows of the array's type to it, shape (n_rows, ...)."""
        data = np.ascontiguousarray(values).data.cast("B") if values.size else memoryview(b"")
        write_at(self._file.fd, data, self._begin[name] + self._n[name])
        sums, n = self._sums[name], self._n[name]
        self._n[name] += len(data)
        while data:
            used = n % CHECKED_BYTES
            part = data[: CHECKED_BYTES - used]
            if used:
                sums[-1] = crc32(part, sums[-1])
            else:
                sums.append(crc32(part))
            n, data = n + len(part), data[len(part) :]

    def put(self, name: str, values: npt.NDArray[Any]) -> None:
        """Make a whole array, of any shape; numbers are turned into its type."""
        self.create(name, values.shape)
        self.write(name, values.astype(ARRAY_TYPES[name], copy=False))

    def finish(self) -> SegmentEntry:
        """Write the checksums, and return the segment's entry of the contents."""
        names = sorted(self._shapes)
        packed = [np.array(self._sums[name], dtype="<u4").tobytes() for name in names]
        at = self._file.place_of(self._group, "checksums", "<u4", (sum(map(len, packed)) // 4,))
        write_at(self._file.fd, b"".join(packed), at)
        arrays = {}
        for name, sums in zip(names, packed, strict=True):
            sha256 = hashlib.sha256(sums).hexdigest()
            arrays[name] = ArrayEntry(name, self._shapes[name], self._begin[name], at, sha256)
            assert self._n[name] == arrays[name].n_bytes, f"{name} is not complete"
            at += len(sums)
        return SegmentEntry(self.attributes, arrays)


class SegmentFile:
    """Segments that are written to a file, array after array; only this process reads the file."""

    def __init__(self, fd: int, kind: DatabaseKind) -> None:
        self.fd, self.kind, self._end = fd, kind, USER_BLOCK
        self.sinks: list[SegmentSink] = []
        self._sources: list[list[SourcePart]] = []

    def group_of(self, attributes: Attributes) -> Any:
        """Make the next segment; return an argument of `place_of`."""

    def place_of(self, group: Any, name: str, dtype: str, shape: tuple[int, ...]) -> int:
        """Make an array of a segment; return where its first byte goes, 0 if it has none."""
        n_bytes, at = int(dtype[-1]) * math.prod(shape), self._end
        self._end += -(-n_bytes // 8) * 8
        return at if n_bytes else 0

    def add(self, attributes: Attributes, sources: list[SourcePart]) -> SegmentSink:
        """Make a segment of records from some inputs; return its writer."""
        self.sinks.append(SegmentSink(self, attributes))
        self._sources.append(sources)
        return self.sinks[-1]

    def finish(self) -> Contents:
        """Write the inputs, whose checksums are known when all are read, and the checksums; return what was added."""
        for sink, sources in zip(self.sinks, self._sources, strict=True):
            sink.put("sources", np.frombuffer(json.dumps(total_sources(sources)).encode(), dtype=np.uint8))
        return Contents(self.kind, tuple(sink.finish() for sink in self.sinks))


def total_sources(sources: Sequence[SourcePart]) -> list[dict[str, Any]]:
    """Return what a segment says of its inputs: path, sha256, bytes, records and residues of each."""
    totals = []
    for _, parts in groupby(sources, key=lambda part: id(part[0])):
        origins, records, residues = zip(*parts, strict=True)
        totals.append({**origins[0], "records": sum(records), "residues": sum(residues)})
    return totals


def _set_attributes(place: Any, values: Mapping[str, int | str]) -> None:
    """Write attributes of an h5py object; texts of fixed length: variable ones live in a heap."""
    for name, value in values.items():
        place.attrs[name] = np.bytes_(value.encode()) if isinstance(value, str) else value


class DatabaseFile(SegmentFile):
    """A database file that is written; nothing of it shows before `commit`. A context manager.

    The descriptor ``fd`` is open for reading and writing, and stays open. ``contents`` are those of the file, without
    segments if it is new. It raises ``OSError`` if the file cannot be read or written.
    """

    def __init__(self, fd: int, contents: Contents) -> None:
        import h5py

        super().__init__(fd, contents.kind)
        self._contents, self._block = contents, UserBlock.parse(os.pread(fd, USER_BLOCK, 0))
        self._overlay = Overlay(fd, contents.n_bytes)
        try:
            if contents.segments:
                self._file = h5py.File(self._overlay, "r+", libver=LIBVER)
            else:
                self._file = h5py.File(self._overlay, "w", libver=LIBVER, userblock_size=USER_BLOCK)
                head: Attributes = {"format": FORMAT_NAME, "format_version": FORMAT_VERSION}
                _set_attributes(self._file, {**head, **self.kind.attributes, **LAYOUT})
            self._segments, self._pieces = (self._file.require_group(name) for name in ("segments", "contents"))
        except RuntimeError as error:  # h5py's choice of class for some failures of HDF5
            raise OSError(str(error)) from error

    def group_of(self, attributes: Attributes) -> Any:
        """Make the next segment in HDF5."""
        group = self._segments.create_group(str(len(self._segments)))
        _set_attributes(group, attributes)
        return group

    def place_of(self, group: Any, name: str, dtype: str, shape: tuple[int, ...]) -> int:
        """Make an array in HDF5; return where its first byte goes, 0 if it has none."""
        from h5py import h5d, h5p, h5s, h5t

        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_layout(h5d.CONTIGUOUS)
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)  # it has a place now
        plist.set_fill_time(h5d.FILL_TIME_NEVER)  # no zeros are written there
        kind = h5t.py_create(np.dtype(dtype), logical=True)
        dataset = h5d.create(group.id, name.encode(), kind, h5s.create_simple(shape), plist)
        if not math.prod(shape):
            return 0
        at = int(dataset.get_offset())
        if at < max(self._contents.n_bytes, USER_BLOCK):
            raise OSError(f"HDF5 placed {name} over what is there")
        return at

    def commit(self, added: Contents) -> None:
        """Publish the segments that `finish` returned.

        It raises `OutputError` if the file would have too many segments, or if another process changed it.
        """
        before, end = self._contents.pieces, self._contents.n_bytes
        text = pack_piece(self.kind, added.segments, before[-1] if before else None)
        if len(text) + sum(each.n_bytes for each in before) > MAX_CONTENTS_BYTES:
            raise OutputError(
                f"segments: got {len(added.segments):,} new ones, expected fewer in one file; make large ones of "
                "small ones with: swsearch db merge, or build with more --memory"
            )
        if UserBlock.parse(os.pread(self.fd, USER_BLOCK, 0)) != self._block:
            raise OutputError("another process has changed the file meanwhile, expected this one alone; do it again")
        at = self.place_of(self._pieces, str(len(self._pieces)), "u1", (len(text),))
        self._file.close()  # HDF5 writes its structure
        written, size = self._overlay.writes, max(self._overlay.size, at + len(text))
        changes = b"".join(_CHANGE.pack(place, len(data)) + data for place, data in written if place < end)
        for place, data in [(at, text), (size, changes), *(each for each in written if each[0] >= end)]:
            write_at(self.fd, data, place)
        if size > os.fstat(self.fd).st_size:
            os.ftruncate(self.fd, size)
        os.fsync(self.fd)
        _point(
            self.fd,
            UserBlock(
                size, BytesPlace.from_bytes(at, text), BytesPlace.from_bytes(size, changes) if changes else None
            ),
        )
        complete_changes(self.fd)

    def __enter__(self) -> DatabaseFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove bytes that were not committed."""
        with suppress(Exception):  # whatever state HDF5's file is in
            self._file.close()
        with suppress(OSError):
            block = UserBlock.parse(os.pread(self.fd, USER_BLOCK, 0))
            if block is not None and os.fstat(self.fd).st_size > block.end:
                os.ftruncate(self.fd, block.end)


def _point(fd: int, block: UserBlock) -> None:
    """Write the user block of a file."""
    write_at(fd, block.pack(), 0)
    os.fsync(fd)


def complete_changes(fd: int) -> None:
    """Complete the changes of HDF5's metadata after an interrupted append; raise `ContentsError` if damaged."""
    block = UserBlock.parse(os.pread(fd, USER_BLOCK, 0))
    if block is None or block.changes is None:
        return
    place, at = block.changes, 0
    data = os.pread(fd, place.n_bytes, place.at)
    if not place.matches(data):
        raise ContentsError(f"changes of HDF5's metadata (byte {place.at}): checksum differs")
    while at < len(data):
        begin, n = _CHANGE.unpack_from(data, at)
        at += _CHANGE.size + n
        write_at(fd, data[at - n : at], begin)
    os.fsync(fd)
    _point(fd, replace(block, changes=None))
    os.ftruncate(fd, block.n_bytes)
