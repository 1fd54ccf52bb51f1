"""Subjects that stand together in the database brought together: one pass over all input, whatever its size.

The subjects' order is cut into groups that fit the memory. Each subject's group follows from its length and from how
many of that length came before, so that one pass writes every subject to the place of its group; within a group the
order is then found in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, IntArray
from swsearch.db.classes import LengthClasses, offsets_of
from swsearch.db.numbers import MIB, NumberFile, NumberSequence, SeekableFile, temporary_on_disk
from swsearch.errors import MemoryLimitError

SUBJECT_BYTES = 40
"""Working memory for each subject of a group: its place (8), its length (4), and three arrays of the sort (24)."""

_LONGEST_FIRST = np.uint64(2**32 - 1)


class Piece(NamedTuple):
    """Some subjects that stand one after the other in the input."""

    first: int
    """Place of the first in the input."""
    lengths: npt.NDArray[np.int32]
    """Their lengths, shape (n,)."""
    residues: ByteArray
    """Their codes, one after the other."""


def pieces(codes: SeekableFile, lengths: NumberSequence, piece_bytes: int) -> Iterator[Piece]:
    """Read all subjects in input order.

    Parameters
    ----------
    codes : SeekableFile
        Where they stand; others may seek in it between two pieces.
    lengths : NumberSequence
        Their lengths.
    piece_bytes : int
        Residues to read at once; a longer subject is read whole.
    """
    at = place = 0
    for part in lengths.pieces():
        ends = np.cumsum(part, dtype=np.int64)
        first = start = 0
        while first < len(part):
            last = max(int(np.searchsorted(ends, start + piece_bytes, side="right")), first + 1)
            stop = int(ends[last - 1])
            codes.seek(at + start)
            residues = np.frombuffer(codes.read(stop - start), dtype=np.uint8)
            yield Piece(place + first, part[first:last], residues)
            first, start = last, stop
        at, place = at + start, place + len(part)


def sorted_places(lengths: npt.NDArray[np.int32]) -> IntArray:
    """Sort subjects by descending length, those of one length as they stand: return places, both of shape (n,)."""
    # one number of 64 bits each: numpy sorts these many times as fast as it sorts pairs or keeps ties in order
    keys = lengths.astype(np.uint64)
    np.subtract(_LONGEST_FIRST, keys, out=keys)
    keys <<= np.uint64(32)
    keys |= np.arange(len(lengths), dtype=np.uint64)
    keys.sort()
    keys &= _LONGEST_FIRST
    return keys.view(np.int64)


def rows_at(residues: ByteArray, starts: IntArray, width: int) -> ByteArray:
    """Copy stretches of one width out of residues: from ``starts``, shape (n,), to shape (n, width), uint8."""
    # a stretch is one object of so many bytes to numpy, which copies it at once
    view = np.ndarray((len(residues) - width + 1,), dtype=f"V{width}", buffer=residues, strides=(1,))
    return view[starts].view(np.uint8).reshape(len(starts), width)


def group_bounds(classes: LengthClasses, most_residues: int) -> list[int]:
    """Cut the order of the subjects into groups of whole blocks.

    Parameters
    ----------
    classes : LengthClasses
        The order.
    most_residues : int
        Residues that a group may have; with the numbers of its subjects it takes up to three halves as many bytes.

    Returns
    -------
    list of int
        Rank of the first subject of each group, and the number of subjects.

    Raises
    ------
    MemoryLimitError
        If a single block has too many residues.
    """
    bounds = [0]
    while bounds[-1] < classes.n_subjects:
        begin = bounds[-1]
        end = classes.rank_within(begin, most_residues, 0)
        block_end = min(begin + LANES, classes.n_subjects)
        if end < block_end:
            n_residues = classes.residues_before(block_end) - classes.residues_before(begin)
            raise MemoryLimitError(
                f"memory: the {LANES} longest records have {n_residues:,} residues together; allow at least"
                f" {-(-n_residues * 2 // MIB) + 50} MiB"
            )
        end = min(end, classes.rank_within(begin, most_residues * 3 // 2, SUBJECT_BYTES))
        if end < classes.n_subjects:
            end -= end % LANES
        bounds.append(max(end, block_end))
    return bounds


class SubjectGroup(NamedTuple):
    """The subjects of a group, those of one length in input order."""

    places: IntArray
    """Their places in the input, shape (n,)."""
    lengths: npt.NDArray[np.int32]
    """Their lengths, shape (n,)."""
    residues: ByteArray
    """Their codes, one after the other, and then as many zeros as were asked for."""


class Groups:
    """All subjects, group by group.

    Parameters
    ----------
    folder : path, optional
        Where temporary files go; the system's place if None.
    classes : LengthClasses
        The order of the subjects.
    bounds : list of int
        Rank of the first subject of each group, and the number of subjects.
    piece_bytes : int
        Residues to read at once.
    """

    def __init__(self, folder: Path | None, classes: LengthClasses, bounds: list[int], piece_bytes: int) -> None:
        self._classes, self._bounds, self._piece_bytes = classes, np.array(bounds), piece_bytes
        self._codes = temporary_on_disk(folder)
        self._places, self._lengths = NumberFile(folder, "<i8", on_disk=True), NumberFile(folder, "<i4", on_disk=True)
        self._ranks_next = classes.firsts[:-1].copy()
        self._numbers_at = self._bounds[:-1].tolist()
        self._codes_at = [classes.residues_before(rank) for rank in self._numbers_at]

    def fill(self, codes: SeekableFile, lengths: NumberSequence) -> None:
        """Take all subjects, as they stand in input order: one pass."""
        for piece in pieces(codes, lengths, self._piece_bytes):
            self.add(piece.first + np.arange(len(piece.lengths)), piece.lengths, piece.residues)

    def add(self, places: IntArray, lengths: npt.NDArray[np.int32], residues: ByteArray) -> None:
        """Take some subjects; those of one length come in input order, over all calls.

        Parameters
        ----------
        places : ndarray, shape (n,), int64
            Their places in the input.
        lengths : ndarray, shape (n,), int32
            Their lengths.
        residues : ndarray, shape (n_residues,), uint8
            Their codes, one after the other.
        """
        chosen = sorted_places(lengths)
        ordered = lengths[chosen]
        firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
        counts = np.diff(firsts, append=len(ordered))
        of = self._classes.of_lengths(ordered[firsts])
        ranks = np.arange(len(ordered)) + np.repeat(self._ranks_next[of] - firsts, counts)
        self._ranks_next[of] += counts
        gathered = _gathered(lengths, residues, chosen, firsts.tolist())
        cuts = np.searchsorted(ranks, self._bounds).tolist()
        ends = offsets_of(ordered)
        for group, (a, b) in enumerate(pairwise(cuts)):
            if a < b:
                at = self._numbers_at[group]
                self._places.write(places[chosen[a:b]], at)
                self._lengths.write(ordered[a:b], at)
                self._numbers_at[group] += b - a
                self._codes.seek(self._codes_at[group])
                self._codes_at[group] += self._codes.write(gathered[ends[a] : ends[b]].data)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def read(self, group: int, spare: int) -> SubjectGroup:
        """Read a group, and append so many zeros to its residues."""
        begin, end = self._bounds[group : group + 2].tolist()
        at = self._classes.residues_before(begin)
        n = self._classes.residues_before(end) - at
        residues = read_residues(self._codes, at, n, spare)
        return SubjectGroup(self._places.read(begin, end), self._lengths.read(begin, end), residues)

    def close(self) -> None:
        """Close the temporary files, which removes them."""
        for file in (self._codes, self._places, self._lengths):
            file.close()


def _gathered(lengths: npt.NDArray[np.int32], residues: ByteArray, chosen: IntArray, firsts: list[int]) -> ByteArray:
    """Copy subjects in another order, in which those of one length stand together and begin at ``firsts``."""
    starts = (np.cumsum(lengths, dtype=np.int64) - lengths)[chosen]
    gathered = np.empty(len(residues), dtype=np.uint8)
    at = 0
    for first, last in pairwise([*firsts, len(chosen)]):
        width = int(lengths[chosen[first]])
        if width:
            after = at + width * (last - first)
            gathered[at:after] = rows_at(residues, starts[first:last], width).reshape(-1)
            at = after
    return gathered


def read_residues(codes: SeekableFile, at: int, n_residues: int, spare: int) -> ByteArray:
    """Read residues and append zeros: shape (n_residues + spare,), uint8."""
    residues = np.empty(n_residues + spare, dtype=np.uint8)
    codes.seek(at)
    done = 0
    while done < n_residues:
        part = codes.read(min(n_residues - done, 8 * MIB))
        residues[done : done + len(part)] = np.frombuffer(part, dtype=np.uint8)
        done += len(part)
    residues[n_residues:] = 0
    return residues


def whole_group(codes: SeekableFile, lengths: NumberSequence, n_residues: int, spare: int) -> SubjectGroup:
    """Make one group of all subjects, which stand in input order as it is; as `Groups.read` does."""
    every = np.concatenate(list(lengths.pieces()))
    return SubjectGroup(np.arange(len(every)), every, read_residues(codes, 0, n_residues, spare))
