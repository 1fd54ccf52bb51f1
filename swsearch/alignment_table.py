"""Many alignments as columns, with their CIGARs in one pool of runs.

`swsearch.alignment` is one alignment with its sequences. This module knows no sequences and no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.reference import Cigar

_TENS: IntArray = 10 ** np.arange(1, 19, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class AlignmentTable:
    """Alignments of m pairs, counted as `swsearch.alignment.PairAlignment` counts them.

    Parameters
    ----------
    score : ndarray, shape (m,), int64
        Matrix units.
    query_start, query_end, subject_start, subject_end : ndarray, shape (m,), int64
        First aligned residues, and one past the last ones, in the whole sequences, counted from 0.
    length : ndarray, shape (m,), int64
        Columns, gaps included.
    identities, positives : ndarray, shape (m,), int64
        Columns with the same letter on both sides, masked or not; those and others that score above 0.
    gaps, gap_openings : ndarray, shape (m,), int64
        Residues opposite a gap, and gaps.
    run_offsets : ndarray, shape (m + 1,), int64
        Where each alignment's runs begin in the pool; the first is 0, the last the number of runs.
    run_lengths : ndarray, shape (n_runs,), int64
        Columns of each run, 1 or more.
    run_operations : ndarray, shape (n_runs,), uint8
        ASCII code of ``M`` (a pair), ``I`` (a query residue opposite a gap) or ``D`` (a subject residue).
    """

    score: IntArray
    query_start: IntArray
    query_end: IntArray
    subject_start: IntArray
    subject_end: IntArray
    length: IntArray
    identities: IntArray
    positives: IntArray
    gaps: IntArray
    gap_openings: IntArray
    run_offsets: IntArray
    run_lengths: IntArray
    run_operations: ByteArray

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: slice) -> AlignmentTable:
        """Return alignments next to each other, which share this table's memory; steps other than 1 are refused."""
        begin, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"step {step}: expected alignments next to each other; use take for others")
        end = max(begin, end)
        first, last = int(self.run_offsets[begin]), int(self.run_offsets[end])
        return AlignmentTable(
            **{name: getattr(self, name)[begin:end] for name in ALIGNMENT_COLUMNS},
            run_offsets=self.run_offsets[begin : end + 1] - first,
            run_lengths=self.run_lengths[first:last],
            run_operations=self.run_operations[first:last],
        )

    def take(self, indices: npt.NDArray[np.integer]) -> AlignmentTable:
        """Return the alignments at some places, shape (n,), in their order, as arrays of their own."""
        offsets, lengths, operations = select_runs(self.run_offsets, self.run_lengths, self.run_operations, indices)
        return AlignmentTable(
            **{name: getattr(self, name)[indices] for name in ALIGNMENT_COLUMNS},
            run_offsets=offsets,
            run_lengths=lengths,
            run_operations=operations,
        )

    @classmethod
    def concatenate(cls, tables: Sequence[AlignmentTable]) -> AlignmentTable:
        """Return the alignments of all tables, one after the other; of none an empty table."""

        def joined(name: str) -> IntArray:
            return np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(table, name) for table in tables)])

        counts = [np.zeros(1, dtype=np.int64), *(np.diff(table.run_offsets) for table in tables)]
        return cls(
            **{name: joined(name) for name in ALIGNMENT_COLUMNS},
            run_offsets=np.cumsum(np.concatenate(counts)),
            run_lengths=joined("run_lengths"),
            run_operations=np.concatenate([np.zeros(0, dtype=np.uint8), *(table.run_operations for table in tables)]),
        )

    @classmethod
    def from_pairs(cls, pairs: Sequence[PairAlignment]) -> AlignmentTable:
        """Return the columns of alignments that were found one by one."""
        runs = [run for pair in pairs for run in pair.cigar]
        counts = np.array([0, *(len(pair.cigar) for pair in pairs)], dtype=np.int64)
        return cls(
            **{name: np.array([getattr(pair, name) for pair in pairs], dtype=np.int64) for name in ALIGNMENT_COLUMNS},
            run_offsets=np.cumsum(counts),
            run_lengths=np.array([length for length, _ in runs], dtype=np.int64),
            run_operations=np.frombuffer("".join(op for _, op in runs).encode("ascii"), dtype=np.uint8),
        )

    @classmethod
    def merge(cls, parts: Sequence[tuple[IntArray, AlignmentTable]]) -> AlignmentTable:
        """Return one table of several, each given with the places, shape (n,), where its alignments are to stand.

        The places are 0 to m - 1, each once.
        """
        everything = cls.concatenate([table for _, table in parts])
        order = np.concatenate([np.zeros(0, dtype=np.int64), *(places for places, _ in parts)])
        return everything.take(np.argsort(order, kind="stable"))

    def cigar(self, place: int) -> Cigar:
        """Return one alignment's CIGAR as `swsearch.alignment.PairAlignment` has it."""
        place = range(len(self))[place]
        runs = slice(int(self.run_offsets[place]), int(self.run_offsets[place + 1]))
        operations = self.run_operations[runs].tobytes().decode("ascii")
        return tuple(zip(self.run_lengths[runs].tolist(), operations, strict=True))

    def cigar_pool(self) -> tuple[ByteArray, IntArray]:
        """Return all CIGARs as text, end to end.

        Returns
        -------
        pool : ndarray, shape (n_bytes,), uint8
            ASCII, such as ``12M1D30M`` of the first alignment and then the second's.
        offsets : ndarray, shape (m + 1,), int64
            Where each begins in the pool; the last is the pool's size.
        """
        digits = np.searchsorted(_TENS, self.run_lengths, side="right") + 1
        ends = np.zeros(len(digits) + 1, dtype=np.int64)
        np.cumsum(digits + 1, out=ends[1:])
        pool = np.empty(int(ends[-1]), dtype=np.uint8)
        pool[ends[1:] - 1] = self.run_operations
        left, places = self.run_lengths, ends[1:] - 2
        while len(left):
            pool[places] = ord("0") + left % 10
            more = left > 9
            left, places = left[more] // 10, places[more] - 1
        return pool, ends[self.run_offsets]

    def cigar_strings(self) -> list[str]:
        """Return all CIGARs, such as ``12M1D30M``; I consumes the query, D the subject."""
        return split_pool(*self.cigar_pool())


ALIGNMENT_COLUMNS = tuple(each.name for each in fields(AlignmentTable) if not each.name.startswith("run_"))
"""Names of the columns that hold one number per alignment, in the order of `AlignmentTable`."""


def split_pool(pool: ByteArray, offsets: IntArray) -> list[str]:
    """Cut a pool of ASCII, shape (n_bytes,), uint8, into texts at offsets, shape (m + 1,), int64."""
    text = pool.tobytes().decode("ascii")
    ends = offsets.tolist()
    return [text[begin:end] for begin, end in pairwise(ends)]


def select_runs(
    offsets: IntArray, lengths: IntArray, operations: ByteArray, indices: npt.NDArray[np.integer]
) -> tuple[IntArray, IntArray, ByteArray]:
    """Gather the runs of some alignments.

    Parameters
    ----------
    offsets, lengths, operations : ndarray
        As ``run_offsets``, ``run_lengths`` and ``run_operations`` of `AlignmentTable`.
    indices : ndarray, shape (n,), int
        Which alignments, in which order.

    Returns
    -------
    offsets, lengths, operations : ndarray
        Those of the alignments that were asked for.
    """
    counts = np.diff(offsets)[indices]
    new = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=new[1:])
    places = np.repeat(offsets[:-1][indices] - new[:-1], counts) + np.arange(new[-1])
    return new, lengths[places], operations[places]
