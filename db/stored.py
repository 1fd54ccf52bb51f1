"""Reading a segment: every byte is checked against its checksum before it is used."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, Chunk, IntArray, block_columns
from swsearch.db.fasta import header_text, split_header
from swsearch.db.format import BYTES_PER_CHECKSUM, DATASET_TYPES, datasets_of, n_checksums
from swsearch.errors import DatabaseDamageError, DatabaseError
from swsearch.masking import MASKED, Mask

RUNS = {"lower": "mask", "tantan": "tantan"}
"""How the names of each mask's datasets begin."""

MASKED_AT_ONCE = 1 << 20
"""Residues that are masked at a time."""


def _ranges(begins: IntArray, counts: IntArray) -> IntArray:
    """Return ranges of whole numbers, one after the other, from their beginnings and how many numbers each has."""
    ends = np.cumsum(counts)
    ranges: IntArray = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begins - ends + counts, counts)
    return ranges


class StoredArray:
    """One dataset and its checksums.

    Parameters
    ----------
    path : str
        The database, for messages.
    group : h5py.Group
        The segment.
    name : str
        One of `DATASET_TYPES`.
    """

    def __init__(self, path: str, group: Any, name: str) -> None:
        self._path = path
        try:
            self._data = group[name]
            sums = group[f"checksums/{name}"][()]
        except (KeyError, OSError, RuntimeError, AttributeError) as error:
            raise DatabaseDamageError(path, [f"{group.name}/{name} is missing or unreadable"]) from error
        self.name = f"{group.name}/{name}"
        self.shape: tuple[int, ...] = self._data.shape
        self._row = int(np.prod(self.shape[1:], dtype=np.int64)) * self._data.dtype.itemsize
        self.n_bytes = self.shape[0] * self._row if self.shape else 0
        expected = (n_checksums(self.n_bytes),)
        if self._data.dtype != np.dtype(DATASET_TYPES[name]) or sums.shape != expected or not self.shape:
            raise DatabaseDamageError(path, [f"{self.name} has not the type or shape that was written"])
        self._sums: list[int] = sums.tolist()
        self._checked = np.zeros(len(self._sums), dtype=bool)

    def pieces(self, start: int, stop: int, *, broken: list[int] | None = None) -> npt.NDArray[Any]:
        """Read and check the pieces that hold rows ``start`` to ``stop``; return all of their rows.

        The type is the dataset's; the shape is (n_rows,), or (n_rows, 64) for residues.
        """
        first, last = start * self._row // BYTES_PER_CHECKSUM, n_checksums(stop * self._row)
        begin = first * BYTES_PER_CHECKSUM // self._row
        end = min(last * BYTES_PER_CHECKSUM // self._row, self.shape[0])
        rows: npt.NDArray[Any] = np.empty((end - begin, *self.shape[1:]), dtype=self._data.dtype)
        try:
            self._data.read_direct(rows, np.s_[begin:end])
        except (OSError, RuntimeError) as error:
            raise DatabaseDamageError(self._path, [f"{self.name} cannot be read ({error})"]) from error
        view = rows.data.cast("B") if rows.size else memoryview(b"")
        for piece in range(first, last):
            at = (piece - first) * BYTES_PER_CHECKSUM
            if zlib.crc32(view[at : at + BYTES_PER_CHECKSUM]) == self._sums[piece]:
                self._checked[piece] = True
            elif broken is None:
                raise DatabaseDamageError(self._path, [self.place(piece)])
            else:
                broken.append(piece)
        return rows

    def place(self, piece: int) -> str:
        """Name a piece in a message."""
        start = piece * BYTES_PER_CHECKSUM
        return f"{self.name} bytes {start} to {min(start + BYTES_PER_CHECKSUM, self.n_bytes)}: checksum differs"

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read rows and check them now; shape and type as of `pieces`."""
        if start >= stop:
            return np.empty((0, *self.shape[1:]), dtype=self._data.dtype)
        rows = self.pieces(start, stop)
        begin = start * self._row // BYTES_PER_CHECKSUM * BYTES_PER_CHECKSUM // self._row
        return rows[start - begin : stop - begin]

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read a few rows, checking each piece when it is first met; shape and type as of `pieces`."""
        pieces = slice(start * self._row // BYTES_PER_CHECKSUM, n_checksums(stop * self._row))
        if start >= stop or not self._checked[pieces].all():
            return self.load(start, stop)
        try:
            rows: npt.NDArray[Any] = self._data[start:stop]
        except (OSError, RuntimeError) as error:
            raise DatabaseDamageError(self._path, [f"{self.name} cannot be read ({error})"]) from error
        return rows

    def all(self) -> npt.NDArray[Any]:
        """Read and check everything; shape and type are the dataset's."""
        return self.load(0, self.shape[0])

    def problems(self) -> tuple[int, list[str]]:
        """Check everything, a few pieces at a time; return how many and a message for each broken one."""
        broken: list[int] = []
        step = 8 * BYTES_PER_CHECKSUM // self._row if self._row else 1
        for start in range(0, self.shape[0], step):
            self.pieces(start, min(start + step, self.shape[0]), broken=broken)
        return len(self._sums), [self.place(piece) for piece in broken]


class Segment:
    """One segment of a database.

    Parameters
    ----------
    path : str
        The database, for messages.
    group : h5py.Group
        The segment's group.
    first : int
        Ordinal of its first subject in the whole database.
    mask : {"none", "lower", "tantan"}
        The database's.
    """

    def __init__(self, path: str, group: Any, first: int, mask: Mask) -> None:
        self.path, self.first = path, first
        self.stored = {name: StoredArray(path, group, name) for name in datasets_of(mask)}
        self.attributes: dict[str, Any] = {}
        for name, value in group.attrs.items():
            self.attributes[name] = value.decode() if isinstance(value, bytes) else value
        self.lengths: npt.NDArray[np.int32] = self.stored["lengths"].all()
        self.order: IntArray = self.stored["order"].all()
        self.block_offsets: IntArray = self.stored["block_offsets"].all()
        self.n_subjects = len(self.lengths)
        self._lazy: dict[str, npt.NDArray[Any]] = {}
        shapes = {
            "order": (self.n_subjects,),
            "block_offsets": (-(-self.n_subjects // LANES) + 1,),
            "residues": (int(self.block_offsets[-1]) if len(self.block_offsets) else 0, LANES),
            "header_offsets": (self.n_subjects + 1,),
            "mask_offsets": (self.n_subjects + 1,),
            "mask_ends": self.stored["mask_starts"].shape,
        }
        if mask == "tantan":
            shapes |= {"tantan_offsets": (self.n_subjects + 1,), "tantan_ends": self.stored["tantan_starts"].shape}
        wrong = [self.stored[name].name for name, shape in shapes.items() if self.stored[name].shape != shape]
        if wrong:
            raise DatabaseDamageError(path, [f"{name} does not fit the number of subjects" for name in wrong])
        if problems := self._problems():
            raise DatabaseDamageError(path, [f"{group.name}: {problem}" for problem in problems])

    def _problems(self) -> list[str]:
        """Return errors that a wrong writer may have made, which checksums do not show."""
        lengths, order = self.lengths, self.order
        if not len(lengths) or lengths[-1] < 0 or (lengths[1:] > lengths[:-1]).any():
            return ["lengths do not descend"]
        if (np.sort(order) != np.arange(len(order))).any():
            return ["order is no permutation"]
        if self.block_offsets[0] or (np.diff(self.block_offsets) != block_columns(lengths)).any():
            return ["block offsets do not fit the lengths"]
        return []

    def lazy(self, name: str) -> npt.NDArray[Any]:
        """Return a dataset that is loaded whole at its first use; shape and type are the dataset's.

        Or ``ranks``, shape (n_subjects,), int64: the inverse of the order.
        """
        if name not in self._lazy:
            if name == "ranks":
                ranks = np.empty(self.n_subjects, dtype=np.int64)
                ranks[self.order] = np.arange(self.n_subjects)
                self._lazy[name] = ranks
            else:
                self._lazy[name] = self.stored[name].all()
        return self._lazy[name]

    def chunk(self, first: int, last: int, mask: Mask = "none") -> Chunk:
        """Load the blocks ``first`` to ``last`` (excluded), X in the place of what is masked."""
        start, stop = int(self.block_offsets[first]), int(self.block_offsets[last])
        lanes = slice(first * LANES, min(last * LANES, self.n_subjects))
        residues = self.stored["residues"].load(start, stop)
        if mask != "none":
            self._mask(residues, mask, lanes)
        return Chunk(
            residues,
            self.block_offsets[first : last + 1] - start,
            self.lengths[lanes],
            self.order[lanes] + self.first,
        )

    def _mask(self, residues: ByteArray, mask: Mask, lanes: slice) -> None:
        """Put X where subjects, given by their sorted places, are masked in blocks that begin with the first."""
        offsets, starts, ends = (self.lazy(f"{RUNS[mask]}_{part}") for part in ("offsets", "starts", "ends"))
        places = self.order[lanes]
        counts = offsets[places + 1] - offsets[places]
        runs = _ranges(offsets[places], counts)
        ranks = np.repeat(np.arange(lanes.start, lanes.stop), counts)
        columns = self.block_offsets[ranks // LANES] - self.block_offsets[lanes.start // LANES]
        first = (columns + starts[runs]) * LANES + ranks % LANES
        lengths = (ends[runs] - starts[runs]).astype(np.int64)
        flat = residues.reshape(-1)
        total = np.cumsum(lengths)
        at = 0
        while at < len(lengths):  # some runs at a time: their places take 24 bytes per residue
            limit = (int(total[at - 1]) if at else 0) + MASKED_AT_ONCE
            last = max(int(np.searchsorted(total, limit, side="right")), at + 1)
            chosen = slice(at, last)
            inside = _ranges(np.zeros(last - at, dtype=np.int64), lengths[chosen])
            flat[np.repeat(first[chosen], lengths[chosen]) + inside * LANES] = MASKED
            at = last

    def next_block(self, first: int, max_bytes: int) -> int:
        """Return the end of the longest run of blocks from ``first`` that takes at most ``max_bytes``."""
        limit = int(self.block_offsets[first]) + max_bytes // LANES
        return max(int(np.searchsorted(self.block_offsets, limit, side="right")) - 1, first + 1)

    def codes(self, index: int) -> ByteArray:
        """Return one subject's codes, shape (length,), uint8."""
        rank = int(self.lazy("ranks")[index])
        start = int(self.block_offsets[rank // LANES])
        slab = self.stored["residues"].read(start, start + int(self.lengths[rank]))
        return np.ascontiguousarray(slab[:, rank % LANES])

    def masked(self, index: int, mask: Mask = "lower") -> list[tuple[int, int]]:
        """Return what of one subject is masked."""
        if mask == "none":
            return []
        start, stop = self.lazy(f"{RUNS[mask]}_offsets")[index : index + 2].tolist()
        starts, ends = (self.stored[f"{RUNS[mask]}_{part}"].read(start, stop).tolist() for part in ("starts", "ends"))
        return list(zip(starts, ends, strict=True))

    def header(self, index: int) -> bytes:
        """Return one subject's header line."""
        start, stop = self.lazy("header_offsets")[index : index + 2].tolist()
        return self.stored["headers"].read(start, stop).tobytes()

    def find(self, identifiers: Sequence[str]) -> list[list[int]]:
        """Return for each identifier the subjects that have it, in input order."""
        if "identifier_sums" not in self._lazy:
            sums = self._identifier_sums()
            by_sum = np.argsort(sums, kind="stable")
            self._lazy["identifier_sums"], self._lazy["by_identifier_sum"] = sums[by_sum], by_sum
        sums, by_sum = self._lazy["identifier_sums"], self._lazy["by_identifier_sum"]
        found: list[set[int]] = [set() for _ in identifiers]
        for encoding in ("utf-8", "latin-1"):
            # what cannot be encoded has the sum of something else, which its header then tells
            wanted = [zlib.crc32(identifier.encode(encoding, "replace")) for identifier in identifiers]
            wanted_sums = np.array(wanted, dtype=np.uint32)
            bounds = zip(
                np.searchsorted(sums, wanted_sums, side="left").tolist(),
                np.searchsorted(sums, wanted_sums, side="right").tolist(),
                strict=True,
            )
            for places, (start, stop) in zip(found, bounds, strict=True):
                places.update(by_sum[start:stop].tolist())
        return [
            sorted(place for place in places if header_text(self.header(place))[0] == identifier)
            for identifier, places in zip(identifiers, found, strict=True)
        ]

    def _identifier_sums(self) -> npt.NDArray[np.uint32]:
        """Compute the CRC-32 of every identifier: four bytes per subject in the place of a dictionary."""
        offsets = self.lazy("header_offsets")
        sums = np.empty(self.n_subjects, dtype=np.uint32)
        step = 1 << 16
        for first in range(0, self.n_subjects, step):
            bounds = offsets[first : first + step + 1].tolist()
            pool = self.stored["headers"].load(bounds[0], bounds[-1]).tobytes()
            headers = (pool[a - bounds[0] : b - bounds[0]] for a, b in pairwise(bounds))
            sums[first : first + step] = [zlib.crc32(split_header(header)[0]) for header in headers]
        return sums

    def sources(self) -> list[dict[str, Any]]:
        """Return the files that the segment was made from."""
        try:
            sources: list[dict[str, Any]] = json.loads(self.stored["sources"].all().tobytes())
        except ValueError as error:
            raise DatabaseError(f"{self.path}: {self.stored['sources'].name} is no JSON") from error
        return sources
