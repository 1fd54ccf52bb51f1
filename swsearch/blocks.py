"""Interleaved blocks of subjects, and masked residues.

The database file stores this layout and every engine reads it. Subjects sorted by length are cut into blocks of 64
lanes. A block is a matrix of columns by lanes: column j holds residue j of each of its subjects, so that 64 lanes
read 64 consecutive bytes. Columns after a subject's end hold `PAD`, and the number of columns is a multiple of 8, so
that engines may take eight at once.

Masked residues, of low complexity or in lower case, are scored as X: -1 with every letter in BLAST's matrices, so
that a masked stretch cannot make a hit. Alignments and identities use the letters themselves, masked ones in lower
case. (BLAST's soft masking only stops matches from beginning there, which means nothing to an exact search.) tantan
(M. C. Frith, Nucleic Acids Res. 39:e23, 2011) comes with pytantan, whose licence is the GPL 3 and which is therefore
optional. Its defaults for proteins are used, those of ``tantan -p``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PAD, PROTEIN, ByteArray
from swsearch.errors import InputError, check_choice
from swsearch.options.kinds import MASKS

LANES = 64
"""Subjects in a block."""

COLUMN_MULTIPLE = 8
"""Columns of a block are padded to a multiple of this."""

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def unique_with_places(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return whole numbers ascending and each once, and where each of those that were given stands among them.

    ``numpy.unique`` imports numpy's masked arrays when it is first called. That takes 20 ms; and where a thread is at
    it while the process forks, the copy waits for it without end.

    Parameters
    ----------
    numbers : ndarray, shape (n,), int64
        In any order.

    Returns
    -------
    chosen : ndarray, shape (m,), int64
        The numbers.
    back : ndarray, shape (n,), int64
        Places in them.
    """
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    is_new = np.ones(len(numbers), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    back: IntArray = np.empty(len(numbers), dtype=np.int64)
    back[order] = np.cumsum(is_new) - 1
    return ascending[is_new], back


class RunLengths:
    """Lengths of subjects in an order in which equal ones stand together, in a few bytes for each distinct length.

    Sorted by length, a hundred million subjects have some thousands of distinct lengths.

    Parameters
    ----------
    values : ndarray, shape (n_runs,), int32
        The length of each run, in residues; neighbours differ.
    ends : ndarray, shape (n_runs,), int64
        Subjects up to the end of each run, ascending.
    """

    def __init__(self, values: npt.NDArray[np.int32], ends: IntArray) -> None:
        self.values, self.ends = values, ends

    @classmethod
    def from_lengths(cls, lengths: RunLengths | npt.NDArray[np.integer]) -> RunLengths:
        """Find the runs of lengths, shape (n_subjects,), any integer type; what are runs already stays as it is."""
        if isinstance(lengths, RunLengths):
            return lengths
        ends = np.append(np.flatnonzero(lengths[1:] != lengths[:-1]) + 1, len(lengths))[: len(lengths)]
        return cls(lengths[ends - 1].astype(np.int32), ends)

    @classmethod
    def concatenate(cls, parts: Sequence[RunLengths]) -> RunLengths:
        """Put lengths one after the other."""
        values = np.concatenate([np.empty(0, dtype=np.int32), *(part.values for part in parts)])
        counts = np.concatenate([np.empty(0, dtype=np.int64), *(part.counts for part in parts)])
        return cls._of_parts(values, counts)

    @classmethod
    def _of_parts(cls, values: npt.NDArray[np.int32], counts: IntArray) -> RunLengths:
        """Make one run of neighbours of the same length; of each part the length and the subjects."""
        if not len(values):
            return cls(values, counts)
        last = np.append(np.flatnonzero(values[1:] != values[:-1]), len(values) - 1)
        return cls(values[last], np.cumsum(counts)[last])

    @classmethod
    def from_unsorted(cls, parts: Sequence[RunLengths | npt.NDArray[np.integer]]) -> RunLengths:
        """Sort lengths, shape (n_subjects,) each, in any order: one run for each length, the longest first."""
        each = [cls.from_lengths(part) for part in parts]
        values = np.concatenate([np.empty(0, dtype=np.int32), *(part.values for part in each)])
        counts = np.concatenate([np.empty(0, dtype=np.int64), *(part.counts for part in each)])
        order = np.argsort(values, kind="stable")[::-1]
        return cls._of_parts(values[order], counts[order])

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def counts(self) -> IntArray:
        """Subjects of each run, shape (n_runs,), int64."""
        return np.diff(self.ends, prepend=0)

    @property
    def n_residues(self) -> int:
        """Residues of all subjects."""
        return int((self.values * self.counts).sum())

    @property
    def n_nonempty(self) -> int:
        """Subjects that have residues."""
        return int(self.counts[self.values > 0].sum())

    @property
    def longest(self) -> int:
        """The largest length; 0 if there is none."""
        return int(self.values.max(initial=0))

    @property
    def shortest_nonempty(self) -> int:
        """The least length of a subject that has residues; 0 if there is none."""
        return int(np.min(self.values[self.values > 0], initial=self.longest))

    @property
    def is_descending(self) -> bool:
        """Whether lengths never rise."""
        return bool((self.values[1:] < self.values[:-1]).all())

    def at(self, places: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the lengths at places, shape (n,), as int32 of the same shape."""
        return self.values[np.searchsorted(self.ends, places, side="right")]

    def part(self, start: int, stop: int) -> RunLengths:
        """Return the lengths at places from ``start`` to ``stop``, excluded; there are as many."""
        if start >= stop:
            return RunLengths(self.values[:0], self.ends[:0])
        first, last = np.searchsorted(self.ends, [start, stop - 1], side="right").tolist()
        return RunLengths(self.values[first : last + 1], np.minimum(self.ends[first : last + 1], stop) - start)

    def array(self) -> npt.NDArray[np.int32]:
        """Return every length, shape (n_subjects,), int32."""
        return np.repeat(self.values, self.counts)

    def block_columns(self) -> IntArray:
        """Count the columns of each block, shape (n_blocks,), int64, as `block_columns` does."""
        return _columns(self.at(np.arange(0, len(self), LANES)))


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
    return _columns(lengths[::LANES])


def _columns(longest: npt.NDArray[np.integer]) -> IntArray:
    """Return the columns of blocks by the length of their longest subjects."""
    return -(-longest.astype(np.int64) // COLUMN_MULTIPLE) * COLUMN_MULTIPLE


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
    at = 0
    for row, length in zip(rows, lengths.tolist(), strict=False):
        row[:length] = residues[at : at + length]
        at += length
    out[:] = rows.T


class Chunk:
    """A run of whole blocks, the unit that an engine loads.

    Parameters
    ----------
    residues : ndarray, shape (n_columns, 64), uint8
        The blocks' columns, one block after the other.
    column_offsets : ndarray, shape (n_blocks + 1,), int64
        First column of each block in ``residues``; the last entry is ``n_columns``.
    lengths : RunLengths, or ndarray, shape (n_subjects,), int32
        Subject lengths in residues, lane by lane and block by block, descending.
    subjects : ndarray, shape (n_subjects,), int64; uint32 in what `without_residues` returns
        Each subject's place in the input, counted from 0 over the whole database.

    Attributes
    ----------
    runs : RunLengths
        The lengths; they take no memory to speak of.
    """

    def __init__(
        self,
        residues: ByteArray,
        column_offsets: IntArray,
        lengths: RunLengths | npt.NDArray[np.int32],
        subjects: npt.NDArray[np.int64] | npt.NDArray[np.uint32],
    ) -> None:
        self.residues, self.column_offsets, self.subjects = residues, column_offsets, subjects
        self.runs = RunLengths.from_lengths(lengths)

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Every subject's length, shape (n_subjects,), int32; made at every call, unlike ``runs``."""
        return self.runs.array()

    @property
    def n_subjects(self) -> int:
        """Number of subjects; the last block may be short of 64."""
        return len(self.subjects)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.column_offsets) - 1

    @property
    def n_residues(self) -> int:
        """Number of residues, padding not counted."""
        return self.runs.n_residues

    def block(self, index: int) -> ByteArray:
        """Return one block, shape (n_columns, 64), uint8, without a copy."""
        return self.residues[self.column_offsets[index] : self.column_offsets[index + 1]]

    def lanes(self, index: int) -> slice:
        """Return the subjects of a block as a slice of ``lengths`` and ``subjects``."""
        return slice(index * LANES, min((index + 1) * LANES, self.n_subjects))

    def subject(self, place: int) -> ByteArray:
        """Return the codes of the subject at a place in the chunk, shape (length,), uint8, C-contiguous."""
        block = self.block(place // LANES)
        return np.ascontiguousarray(block[: int(self.runs.at(place)), place % LANES])

    def without_residues(self) -> Chunk:
        """Return the chunk without its residues, in 4 bytes per subject where that is enough, for one that stays."""
        subjects = self.subjects
        if len(subjects) and subjects.max() <= np.iinfo(np.uint32).max:
            subjects = subjects.astype(np.uint32)
        return Chunk(np.empty((0, LANES), dtype=np.uint8), self.column_offsets, self.runs, subjects)

    def __iter__(self) -> Iterator[ByteArray]:
        return (self.block(index) for index in range(self.n_blocks))


MaskedRuns = Iterable[tuple[int, int]]
"""Stretches of a sequence, 0-based and half-open."""

MASK_CODE = PROTEIN.letters.index("X")
"""The code that stands in the place of a masked residue."""


def check_mask(name: str, value: str) -> None:
    """Raise `OptionError` unless a mask is known, and for tantan unless it is installed."""
    check_choice(name, value, MASKS)
    if value == "tantan":
        tantan_finder()


def tantan_finder() -> Callable[[ByteArray], list[tuple[int, int]]]:
    """Return a function that finds the low-complexity regions of a protein's codes, shape (n,), uint8."""
    try:
        from pytantan import RepeatFinder
        from pytantan.lib import default_scoring_matrix
    except ImportError as error:
        raise InputError(
            f"mask: tantan needs pytantan, which cannot be imported ({error}); pip install 'swsearch[mask]'"
        ) from None
    finder: Any = RepeatFinder(default_scoring_matrix(protein=True), protein=True)

    def find(codes: ByteArray) -> list[tuple[int, int]]:
        letters = PROTEIN.decode(codes).replace("*", "X")  # which pytantan does not know
        masked = finder.mask_repeats(letters) if letters else ""
        return runs_of(np.frombuffer(masked.encode("ascii"), dtype=np.uint8) > ord("Z"))

    return find


def runs_of(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the stretches where a flag is set, of flags of shape (n,), bool; 0-based and half-open."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def apply_mask(codes: ByteArray, runs: MaskedRuns) -> ByteArray:
    """Return codes with X in stretches; both of shape (n,), uint8."""
    masked = codes.copy()
    for start, end in runs:
        masked[start:end] = MASK_CODE
    return masked


def letters_with_mask(codes: ByteArray, runs: MaskedRuns) -> ByteArray:
    """Return the ASCII letters of codes, lower case in stretches; shape (n,), uint8."""
    letters: ByteArray = PROTEIN.decode_table[codes]
    for start, end in runs:
        letters[start:end] |= 0x20  # ASCII: lower case; a '*' has it set already
    return letters
