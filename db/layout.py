"""A segment's bytes: subjects sorted and interleaved, every dataset with its checksums.

HDF5 makes the structure and says where each dataset stands; the bytes then go there with plain writes. So a
full disk is an ordinary error of the operating system, not one inside HDF5, which cannot close its file then.
"""

from __future__ import annotations

import json
import os
import zlib
from itertools import pairwise
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, IntArray, block_columns, interleave
from swsearch.db.format import BYTES_PER_CHECKSUM, DATASET_TYPES
from swsearch.db.spool import MIB, Masks, Spool, pieces, regroup, temporary
from swsearch.errors import MemoryLimitError
from swsearch.masking import Mask, tantan

WINDOW_COLUMNS = 1 << 15
"""Columns of a block that are interleaved at once: 2 MiB. Titin's block has 35,216."""


class Sink(Protocol):
    """Where the bytes of datasets go."""

    def write(self, name: str, at: int, data: memoryview) -> None:
        """Write bytes of the dataset ``name``, ``at`` bytes after its beginning."""


class FileSink:
    """A database file on disk whose structure is made and closed.

    Parameters
    ----------
    fd : int
        The file, open for writing.
    places : dict of str to int
        Where in the file each dataset begins.
    """

    def __init__(self, fd: int, places: dict[str, int]) -> None:
        self._fd, self._places = fd, places

    def write(self, name: str, at: int, data: memoryview) -> None:
        """Write bytes of a dataset."""
        at += self._places[name]
        while data:  # one call writes at most 2 GiB, and less on a disk that is nearly full
            n = os.pwrite(self._fd, data, at)
            at, data = at + n, data[n:]


class MemorySink:
    """A database in memory, without checksums: nobody else can write there.

    Parameters
    ----------
    target : ndarray, shape (n_bytes,), uint8
        Written: all datasets.
    places : dict of str to int
        Where each dataset begins.
    """

    def __init__(self, target: ByteArray, places: dict[str, int]) -> None:
        self._target, self._places = target, places

    def write(self, name: str, at: int, data: memoryview) -> None:
        """Write bytes of a dataset."""
        if name in self._places:
            at += self._places[name]
            self._target[at : at + len(data)] = data


class DatasetWriter:
    """Write one dataset from its beginning to its end, then its checksums."""

    def __init__(self, sink: Sink, name: str) -> None:
        self._sink, self._name, self._at = sink, name, 0
        self._sums: list[int] = []

    def write(self, values: Any) -> None:
        """Append bytes or an array."""
        data = memoryview(values).cast("B") if len(values) else memoryview(b"")
        if data:
            self._sink.write(self._name, self._at, data)
        while data:
            used = self._at % BYTES_PER_CHECKSUM
            piece = data[: BYTES_PER_CHECKSUM - used]
            if used:
                self._sums[-1] = zlib.crc32(piece, self._sums[-1])
            else:
                self._sums.append(zlib.crc32(piece))
            self._at, data = self._at + len(piece), data[len(piece) :]

    def close(self) -> None:
        """Write the checksums."""
        data = memoryview(np.array(self._sums, dtype="<u4").tobytes())
        if data:
            self._sink.write(f"checksums/{self._name}", 0, data)


class Layout:
    """The plan of one segment: what is known once all input has been read.

    Parameters
    ----------
    spool : Spool
        All input.
    memory : int
        Budget in bytes.
    mask : {"none", "lower", "tantan"}
        The mask that is to be in force.
    """

    def __init__(self, spool: Spool, memory: int, mask: Mask = "none") -> None:
        self._spool, self.mask = spool, mask
        lengths, header_lengths, masks = spool.numbers()
        self.order: IntArray = np.argsort(-lengths, kind="stable")
        self.lengths: npt.NDArray[np.int32] = lengths[self.order]
        self.block_offsets: IntArray = offsets_of(block_columns(self.lengths))
        self._header_lengths, self._masks = header_lengths, masks
        self._sources = json.dumps(spool.sources).encode()
        reserve = len(lengths) * 64 + 48 * MIB
        self._group_bytes = max((memory - reserve) // 2, 4 * MIB)
        self._tantan = self._find_low_complexity(lengths) if mask == "tantan" else None

    def _find_low_complexity(self, lengths: npt.NDArray[np.int32]) -> Masks:
        """Mask by tantan, in input order."""
        find = tantan()
        runs: list[IntArray] = []
        counts: list[int] = []
        for begin, end, data in pieces(self._spool.codes, 0, lengths.astype(np.int64), self._piece_bytes):
            ends = np.cumsum(lengths[begin:end], dtype=np.int64)[:-1]
            for codes in np.split(data, ends):
                found = find(codes)
                counts.append(len(found))
                if found:
                    runs.append(np.array(found, dtype=np.int32))
        both = np.concatenate([np.empty((0, 2), dtype=np.int32), *runs])
        return Masks(offsets_of(np.array(counts, dtype=np.int64)), both[:, 0].copy(), both[:, 1].copy())

    @property
    def n_bytes(self) -> int:
        """Bytes of the segment's datasets, to a few KiB."""
        return sum(int(DATASET_TYPES[name][-1]) * int(np.prod(shape)) for name, shape in self.shapes().items())

    @property
    def counts(self) -> dict[str, int]:
        """Attributes of the segment."""
        low = {} if self._tantan is None else {"n_tantan": _n_masked(self._tantan)}
        return {
            "n_subjects": len(self.lengths),
            "n_residues": int(self.lengths.sum(dtype=np.int64)),
            "n_empty": int(np.count_nonzero(self.lengths == 0)),
            "n_masked": _n_masked(self._masks),
            **low,
            "n_columns": int(self.block_offsets[-1]),
            "n_blocks": len(self.block_offsets) - 1,
            "longest": int(self.lengths[0]),
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every dataset of the segment."""
        n = len(self.lengths)
        low: dict[str, tuple[int, ...]] = {}
        if self._tantan is not None:
            runs = (len(self._tantan.starts),)
            low = {"tantan_offsets": (n + 1,), "tantan_starts": runs, "tantan_ends": runs}
        return {
            "residues": (int(self.block_offsets[-1]), LANES),
            "block_offsets": (len(self.block_offsets),),
            "lengths": (n,),
            "order": (n,),
            "headers": (int(self._header_lengths.sum(dtype=np.int64)),),
            "header_offsets": (n + 1,),
            "mask_offsets": (n + 1,),
            "mask_starts": (len(self._masks.starts),),
            "mask_ends": (len(self._masks.ends),),
            "sources": (len(self._sources),),
            **low,
        }

    def write(self, sink: Sink) -> None:
        """Write every dataset and its checksums."""
        arrays: dict[str, Any] = {
            "block_offsets": self.block_offsets,
            "lengths": self.lengths,
            "order": self.order,
            "header_offsets": offsets_of(self._header_lengths),
            "mask_offsets": self._masks.offsets,
            "mask_starts": self._masks.starts,
            "mask_ends": self._masks.ends,
        }
        if self._tantan is not None:
            arrays |= {
                "tantan_offsets": self._tantan.offsets,
                "tantan_starts": self._tantan.starts,
                "tantan_ends": self._tantan.ends,
            }
        for name in list(arrays):
            writer = DatasetWriter(sink, name)
            writer.write(arrays.pop(name).astype(DATASET_TYPES[name], copy=False))
            writer.close()
        for name in ("headers", "sources"):
            writer = DatasetWriter(sink, name)
            if name == "sources":
                writer.write(self._sources)
            else:
                self._spool.headers.seek(0)
                while piece := self._spool.headers.read(MIB):
                    writer.write(piece)
            writer.close()
        writer = DatasetWriter(sink, "residues")
        self._write_residues(writer)
        writer.close()

    def _groups(self) -> list[int]:
        """Cut the blocks into groups whose residues fit the budget: first block of each, and the end."""
        n_blocks = len(self.block_offsets) - 1
        ends = offsets_of(self.lengths)[np.minimum(np.arange(1, n_blocks + 1) * LANES, len(self.lengths))]
        bounds, done = [0], 0
        while bounds[-1] < n_blocks:
            last = int(np.searchsorted(ends, done + self._group_bytes, side="right"))
            if last <= bounds[-1]:
                need = (int(ends[bounds[-1]]) - done) * 2 + len(self.lengths) * 64 + 50 * MIB
                raise MemoryLimitError(
                    f"memory: the {LANES} longest records have {int(ends[bounds[-1]]) - done:,} residues"
                    f" together; allow at least {-(-need // MIB)} MiB"
                )
            bounds.append(last)
            done = int(ends[last - 1])
        return bounds

    def _write_residues(self, writer: DatasetWriter) -> None:
        bounds = self._groups()
        if len(bounds) == 2:
            self._write_group(self._spool.codes, 0, 0, bounds[1], writer)
            return
        groups = np.empty(len(self.order), dtype=np.int32)
        for group, (first, last) in enumerate(pairwise(bounds)):
            groups[self.order[first * LANES : last * LANES]] = group
        lengths = np.empty(len(self.order), dtype=np.int64)
        lengths[self.order] = self.lengths
        with temporary(self._spool.folder) as grouped:
            regroup(self._spool.codes, lengths, groups, grouped, self._piece_bytes)
            del groups, lengths
            at = 0
            for first, last in pairwise(bounds):
                at += self._write_group(grouped, at, first, last, writer)

    @property
    def _piece_bytes(self) -> int:
        return min(8 * MIB, self._group_bytes)

    def _write_group(self, file: IO[bytes], at: int, first: int, last: int, writer: DatasetWriter) -> int:
        """Interleave and write blocks whose subjects stand in input order at ``at`` in a file."""
        subjects = slice(first * LANES, last * LANES)
        sorted_lengths = self.lengths[subjects].astype(np.int64)
        by_input = np.argsort(self.order[subjects], kind="stable")
        places = offsets_of(sorted_lengths)
        residues = np.empty(int(places[-1]), dtype=np.uint8)
        target = residues.data
        lengths = sorted_lengths[by_input]
        targets = places[by_input]
        for begin, end, data in pieces(file, at, lengths, self._piece_bytes):
            view, start = data.data, 0
            # one copy per subject: 0.16 us, where numpy's index arrays would take 5 ns a residue
            for n, to in zip(lengths[begin:end].tolist(), targets[begin:end].tolist(), strict=True):
                target[to : to + n] = view[start : start + n]
                start += n
        done = first
        while done < last:  # as many blocks as fit a window, or one that is longer
            limit = int(self.block_offsets[done]) + WINDOW_COLUMNS
            after = min(int(np.searchsorted(self.block_offsets, limit, side="right")) - 1, last)
            if after <= done:
                after = done + 1
                self._write_long_block(residues, places[(done - first) * LANES :], done, writer)
            else:
                self._write_blocks(residues, places[(done - first) * LANES :], range(done, after), writer)
            done = after
        return int(places[-1])

    def _write_blocks(self, residues: ByteArray, places: IntArray, blocks: range, writer: DatasetWriter) -> None:
        """Interleave and write blocks whose subjects begin at ``places`` in ``residues``."""
        columns = self.block_offsets[blocks.start : blocks.stop + 1] - self.block_offsets[blocks.start]
        out = np.empty((int(columns[-1]), LANES), dtype=np.uint8)
        for index, (top, bottom) in enumerate(zip(columns[:-1].tolist(), columns[1:].tolist(), strict=True)):
            ends = places[index * LANES : (index + 1) * LANES + 1]
            interleave(residues[ends[0] : ends[-1]], np.diff(ends), out[top:bottom])
        writer.write(out)

    def _write_long_block(self, residues: ByteArray, places: IntArray, block: int, writer: DatasetWriter) -> None:
        """Interleave and write one block, a window of columns at a time."""
        ends = places[: LANES + 1]
        lengths, starts = np.diff(ends), ends[:-1].tolist()
        n_columns = int(self.block_offsets[block + 1] - self.block_offsets[block])
        for column in range(0, n_columns, WINDOW_COLUMNS):
            out = np.empty((min(WINDOW_COLUMNS, n_columns - column), LANES), dtype=np.uint8)
            inside = np.clip(lengths - column, 0, len(out))
            runs = zip(starts, inside.tolist(), strict=True)
            parts = [residues[at + column : at + column + n] for at, n in runs]
            interleave(np.concatenate(parts), inside, out)
            writer.write(out)


def offsets_of(lengths: npt.NDArray[np.integer]) -> IntArray:
    """Turn lengths, shape (n,), into offsets, shape (n + 1,), int64: 0, then the running sum."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _n_masked(masks: Masks) -> int:
    """Count the residues of masked runs."""
    return int((masks.ends.astype(np.int64) - masks.starts).sum())
