"""A segment's bytes: subjects sorted and interleaved, every dataset with its checksums.

HDF5 makes the structure and says where each dataset stands; the bytes then go there with plain writes. So a
full disk is an ordinary error of the operating system, not one inside HDF5, which cannot close its file then.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD, ByteArray
from swsearch.blocks import COLUMN_MULTIPLE, LANES, IntArray
from swsearch.db.classes import LengthClasses
from swsearch.db.format import BYTES_PER_CHECKSUM, DATASET_TYPES, Parts
from swsearch.db.numbers import MIB, NUMBERS_AT_ONCE, NumberSequence, RunFile, RunNumbers, SeekableFile, running_sums
from swsearch.db.regroup import Groups, SubjectGroup, group_bounds, pieces, rows_at, sorted_places, whole_group
from swsearch.db.spool import ExtraPart, Spool
from swsearch.masking import tantan
from swsearch.options.words import Mask

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


class Records(Protocol):
    """What a segment is made of: a `Spool`, or a part of one."""

    @property
    def folder(self) -> Path | None:
        """Where temporary files go; the system's place if None."""

    @property
    def sources(self) -> list[dict[str, Any]]:
        """What the inputs are called, and what they hold."""

    @property
    def codes(self) -> SeekableFile:
        """All residues, in input order."""

    @property
    def headers(self) -> SeekableFile:
        """All header lines."""

    @property
    def lengths(self) -> NumberSequence:
        """Residues of each subject."""

    @property
    def header_lengths(self) -> NumberSequence:
        """Bytes of each header line."""

    @property
    def masks(self) -> RunNumbers:
        """The runs of lower case."""

    @property
    def tantan(self) -> RunNumbers | None:
        """What tantan masks, where that is known."""

    @property
    def groups(self) -> Groups | None:
        """The subjects group by group, where they do not stand in ``codes``."""

    @property
    def extras(self) -> Sequence[ExtraPart]:
        """Optional parts of the database, in the order of their names."""

    @property
    def n_header_bytes(self) -> int:
        """Bytes of all headers."""

    def finish(self) -> LengthClasses:
        """Return the order of the subjects."""

    def hold(self, file: Any) -> Any:
        """Close a file in the end."""


def group_budget(memory: int) -> int:
    """Return the bytes of the groups in which subjects are sorted, of a budget of so many."""
    return max((memory - 48 * MIB) // 2, 4 * MIB)


def piece_budget(memory: int) -> int:
    """Return the residues that are read at once from input order."""
    return min(8 * MIB, group_budget(memory) // 4)


def low_complexity(spool: Spool, piece_bytes: int) -> RunFile:
    """Mask what was read by tantan, in input order."""
    find = tantan()
    runs: RunFile = spool.hold(RunFile(spool.folder))
    for piece in pieces(spool.codes, spool.lengths, piece_bytes):
        ends = np.cumsum(piece.lengths, dtype=np.int64)[:-1]
        found = [find(codes) for codes in np.split(piece.residues, ends)]
        both = np.array([run for of_one in found for run in of_one], dtype=np.int64).reshape(-1, 2)
        owners = np.repeat(np.arange(len(found)) + piece.first, [len(of_one) for of_one in found])
        runs.add(owners, both[:, 0], both[:, 1])
    return runs


def shapes_of(
    classes: LengthClasses, n_header_bytes: int, n_source_bytes: int, n_runs: int, n_tantan: int | None
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every dataset of a segment.

    Parameters
    ----------
    classes : LengthClasses
        The order of its subjects.
    n_header_bytes, n_source_bytes : int
        Bytes of all headers, and of the JSON that says what it is made of.
    n_runs : int
        RunNumbers of lower case.
    n_tantan : int or None
        RunNumbers that tantan masks; None where it masks nothing.
    """
    n = classes.n_subjects
    low: dict[str, tuple[int, ...]] = {}
    if n_tantan is not None:
        low = {"tantan_offsets": (n + 1,), "tantan_starts": (n_tantan,), "tantan_ends": (n_tantan,)}
    return {
        "residues": (classes.n_columns, LANES),
        "block_offsets": (classes.n_blocks + 1,),
        "lengths": (n,),
        "order": (n,),
        "headers": (n_header_bytes,),
        "header_offsets": (n + 1,),
        "mask_offsets": (n + 1,),
        "mask_starts": (n_runs,),
        "mask_ends": (n_runs,),
        "sources": (n_source_bytes,),
        **low,
    }


def dataset_bytes(shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the bytes of datasets of these shapes."""
    return {name: int(DATASET_TYPES[name][-1]) * math.prod(shape) for name, shape in shapes.items()}


class Layout:
    """The plan of one segment: what is known once all input has been read.

    Parameters
    ----------
    spool : Records
        All input of the segment; nothing can be added any more.
    memory : int
        Budget in bytes.
    mask : {"none", "lower", "tantan"}
        The mask that is to be in force.
    """

    genetic_code = None
    """Its records are proteins."""

    def __init__(self, spool: Records, memory: int, mask: Mask = "none") -> None:
        self._spool, self.mask = spool, mask
        self._classes = spool.finish()
        self._sources = json.dumps(spool.sources).encode()
        self._group_bytes = group_budget(memory)
        self._groups = spool.groups
        self._tantan = spool.tantan if mask == "tantan" else None
        if mask == "tantan" and self._tantan is None:
            assert isinstance(spool, Spool)
            self._tantan = low_complexity(spool, self._piece_bytes)

    @property
    def parts(self) -> Parts:
        """The optional parts of the segment."""
        return tuple(each.name for each in self._spool.extras)

    @property
    def n_bytes(self) -> int:
        """Bytes of the segment's datasets, to a few KiB."""
        return sum(dataset_bytes(self.shapes()).values())

    @property
    def counts(self) -> dict[str, int]:
        """Attributes of the segment."""
        low = {} if self._tantan is None else {"n_tantan": self._tantan.n_masked}
        return {
            "n_subjects": self._classes.n_subjects,
            "n_residues": self._classes.n_residues,
            "n_empty": self._classes.n_empty,
            "n_masked": self._spool.masks.n_masked,
            **low,
            "n_columns": self._classes.n_columns,
            "n_blocks": self._classes.n_blocks,
            "longest": int(self._classes.values[0]),
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every dataset of the segment."""
        n_tantan = None if self._tantan is None else len(self._tantan)
        spool = self._spool
        shapes = shapes_of(self._classes, spool.n_header_bytes, len(self._sources), len(spool.masks), n_tantan)
        for each in spool.extras:
            shapes |= each.shapes()
        return shapes

    def write(self, sink: Sink) -> None:
        """Write every dataset and its checksums."""
        n = self._classes.n_subjects
        numbers: dict[str, Iterator[Any]] = {
            "block_offsets": running_sums(_columns(self._classes)),
            "lengths": _lengths(self._classes),
            "header_offsets": running_sums(self._spool.header_lengths.pieces()),
        }
        for name, runs in (("mask", self._spool.masks), ("tantan", self._tantan)):
            if runs is not None:
                numbers[f"{name}_offsets"] = running_sums(runs.counts(n))
                numbers[f"{name}_starts"], numbers[f"{name}_ends"] = runs.starts.pieces(), runs.ends.pieces()
        for each in self._spool.extras:
            numbers |= each.pieces()
        write_numbers(sink, numbers)
        write_texts(sink, self._spool, self._sources)
        residues, order = DatasetWriter(sink, "residues"), DatasetWriter(sink, "order")
        for group in self._each_group():
            chosen = sorted_places(group.lengths)
            for first in range(0, len(chosen), NUMBERS_AT_ONCE):
                places = group.places[chosen[first : first + NUMBERS_AT_ONCE]]
                order.write(places.astype(DATASET_TYPES["order"], copy=False))
            _write_blocks(group, chosen, residues)
            del group, chosen  # before the next is read
        residues.close()
        order.close()

    def _each_group(self) -> Iterator[SubjectGroup]:
        """Read the subjects, as many at a time as fit the budget."""
        spool, classes = self._spool, self._classes
        spare = min(int(classes.values[0]) + COLUMN_MULTIPLE, WINDOW_COLUMNS)  # what is read at once from any place
        if self._groups is None:
            bounds = group_bounds(classes, self._group_bytes)
            if len(bounds) == 2:
                yield whole_group(spool.codes, spool.lengths, classes.n_residues, spare)
                return
            self._groups = spool.hold(Groups(spool.folder, classes, bounds, self._piece_bytes))
            self._groups.fill(spool.codes, spool.lengths)
            spool.codes.close()  # the disk has room for two of them, not for three
            spool.lengths.close()
        for number in range(len(self._groups)):
            yield self._groups.read(number, spare)

    @property
    def _piece_bytes(self) -> int:
        return min(8 * MIB, self._group_bytes // 4)


def write_numbers(sink: Sink, numbers: dict[str, Iterator[Any]]) -> None:
    """Write datasets of numbers, each given piece by piece."""
    for name, parts in numbers.items():
        writer = DatasetWriter(sink, name)
        for part in parts:
            writer.write(part.astype(DATASET_TYPES[name], copy=False))
        writer.close()


def write_texts(sink: Sink, spool: Records, sources: bytes) -> None:
    """Write the headers, and what says where the records come from."""
    for name in ("headers", "sources"):
        writer = DatasetWriter(sink, name)
        if name == "sources":
            writer.write(sources)
        else:
            spool.headers.seek(0)
            while piece := spool.headers.read(MIB):
                writer.write(piece)
        writer.close()


def _lengths(classes: LengthClasses) -> Iterator[IntArray]:
    """Yield the lengths of all subjects in their order."""
    for first in range(0, classes.n_subjects, NUMBERS_AT_ONCE):
        yield classes.lengths(np.arange(first, min(first + NUMBERS_AT_ONCE, classes.n_subjects)))


def _whole_columns(longest: npt.NDArray[np.integer]) -> IntArray:
    """Turn the lengths of the longest subjects of blocks into the blocks' numbers of columns."""
    columns: IntArray = -(-longest.astype(np.int64) // COLUMN_MULTIPLE) * COLUMN_MULTIPLE
    return columns


def _columns(classes: LengthClasses) -> Iterator[IntArray]:
    """Yield the numbers of columns of all blocks."""
    for first in range(0, classes.n_subjects, NUMBERS_AT_ONCE * LANES):
        longest = classes.lengths(np.arange(first, min(first + NUMBERS_AT_ONCE * LANES, classes.n_subjects), LANES))
        yield _whole_columns(longest)


def _write_blocks(group: SubjectGroup, chosen: IntArray, writer: DatasetWriter) -> None:
    """Interleave and write the blocks of a group whose subjects come in the order ``chosen``."""
    starts = np.cumsum(group.lengths, dtype=np.int64)
    starts -= group.lengths
    columns = _whole_columns(group.lengths[chosen[::LANES]])
    firsts = np.flatnonzero(np.diff(columns, prepend=-1))
    # blocks of as many columns are one array
    for first, last in zip(firsts.tolist(), [*firsts[1:].tolist(), len(columns)], strict=True):
        n_columns = int(columns[first])
        step = max(WINDOW_COLUMNS // max(n_columns, 1), 1)
        for block in range(first, last, step):
            lanes = chosen[block * LANES : min(block + step, last) * LANES]
            begins, lengths = starts[lanes], group.lengths[lanes].astype(np.int64)
            for column in range(0, n_columns, WINDOW_COLUMNS):
                width = min(WINDOW_COLUMNS, n_columns - column)
                writer.write(_interleaved(group.residues, begins + column, lengths - column, width))


def _interleaved(residues: ByteArray, starts: IntArray, lengths: IntArray, width: int) -> ByteArray:
    """Interleave so many columns of blocks.

    Parameters
    ----------
    residues : ndarray, shape (n,), uint8
        Codes.
    starts, lengths : ndarray, shape (n_subjects,), int64
        Where each subject goes on in ``residues``, and how many residues it has from there; none if negative.
    width : int
        Columns.

    Returns
    -------
    ndarray, shape (n_blocks, width, 64), uint8
    """
    n_blocks = -(-len(starts) // LANES)
    # what stands after a subject's end does not matter: it is replaced by padding
    rows = rows_at(residues, np.minimum(starts, len(residues) - width), width)
    shortest = max(int(lengths.min()), 0)
    rows[:, shortest:][np.arange(shortest, width) >= lengths[:, None]] = PAD
    if len(rows) < n_blocks * LANES:
        missing = np.full((n_blocks * LANES - len(rows), width), PAD, dtype=np.uint8)
        rows = np.concatenate([rows, missing])
    return np.ascontiguousarray(rows.reshape(n_blocks, LANES, width).transpose(0, 2, 1))
