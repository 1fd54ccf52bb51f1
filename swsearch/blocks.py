"""The interleaved layout of subjects that the database file stores and every engine reads.

Subjects sorted by length are cut into blocks of 64 lanes. A block is a matrix of columns by lanes: column j
holds residue j of each of its subjects, so that 64 lanes read 64 consecutive bytes. Columns after a
subject's end hold `PAD`, and the number of columns is a multiple of 8, so that engines may take eight at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD, ByteArray

LANES = 64
"""Subjects in a block."""

COLUMN_MULTIPLE = 8
"""Columns of a block are padded to a multiple of this."""

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def block_columns(lengths: npt.NDArray[np.integer]) -> IntArray:
    """Count the columns of each block of subjects sorted by descending length.

    Parameters
    ----------
    lengths : ndarray, shape (n_subjects,), integer
        Subject lengths in residues, descending.

    Returns
    -------
    ndarray, shape (n_blocks,), int64
        Columns of each block: its first (longest) subject rounded up to `COLUMN_MULTIPLE`.
    """
    longest = np.asarray(lengths[::LANES], dtype=np.int64)
    columns: IntArray = -(-longest // COLUMN_MULTIPLE) * COLUMN_MULTIPLE
    return columns


def interleave(residues: ByteArray, lengths: npt.NDArray[np.integer], out: ByteArray) -> None:
    """Interleave the subjects of one block.

    Parameters
    ----------
    residues : ndarray, shape (sum of lengths,), uint8
        The subjects' codes, one after the other.
    lengths : ndarray, shape (at most 64,), integer
        Subject lengths in residues.
    out : ndarray, shape (n_columns, 64), uint8
        Written: the block.
    """
    rows = np.full((LANES, out.shape[0]), PAD, dtype=np.uint8)
    inside = np.arange(out.shape[0]) < np.asarray(lengths)[:, None]
    rows[: len(lengths)][inside] = residues
    out[:] = rows.T


def deinterleave(block: ByteArray) -> ByteArray:
    """Turn a block back into one row per subject.

    Parameters
    ----------
    block : ndarray, shape (n_columns, 64), uint8

    Returns
    -------
    ndarray, shape (64, n_columns), uint8
        C-contiguous; after a subject's end stands `PAD`.
    """
    return np.ascontiguousarray(block.T)


@dataclass(frozen=True)
class Chunk:
    """A run of whole blocks: what an engine loads at once.

    Parameters
    ----------
    residues : ndarray, shape (n_columns, 64), uint8
        The blocks' columns, one block after the other.
    column_offsets : ndarray, shape (n_blocks + 1,), int64
        First column of each block in ``residues``; the last entry is ``n_columns``.
    lengths : ndarray, shape (n_subjects,), int32
        Subject lengths in residues, lane by lane and block by block, descending.
    subjects : ndarray, shape (n_subjects,), int64
        Each subject's place in the input, counted from 0 over the whole database.
    """

    residues: ByteArray
    column_offsets: IntArray
    lengths: npt.NDArray[np.int32]
    subjects: IntArray

    @property
    def n_subjects(self) -> int:
        """Number of subjects; the last block may be short of 64."""
        return len(self.lengths)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.column_offsets) - 1

    @property
    def n_residues(self) -> int:
        """Number of residues, padding not counted."""
        return int(self.lengths.sum(dtype=np.int64))

    def block(self, index: int) -> ByteArray:
        """Return one block, shape (n_columns, 64), uint8, without a copy."""
        return self.residues[self.column_offsets[index] : self.column_offsets[index + 1]]

    def lanes(self, index: int) -> slice:
        """Return the subjects of a block as a slice of ``lengths`` and ``subjects``."""
        return slice(index * LANES, min((index + 1) * LANES, self.n_subjects))

    def subject(self, place: int) -> ByteArray:
        """Return the codes of the subject at a place in the chunk, shape (length,), uint8, C-contiguous."""
        block = self.block(place // LANES)
        return np.ascontiguousarray(block[: self.lengths[place], place % LANES])

    def __iter__(self) -> Iterator[ByteArray]:
        return (self.block(index) for index in range(self.n_blocks))
