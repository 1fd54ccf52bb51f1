"""The order of a database's subjects, told by how many have which length.

Subjects stand by length, longest first, and those of one length in input order. So the lengths of all, in that order,
follow from the lengths that occur and how often: a table that hardly grows. A database of 10^12 residues has at most
1.4 million different lengths, for there are no more numbers with so small a sum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from swsearch.blocks import COLUMN_MULTIPLE, LANES, IntArray

MOST_PENDING = 1 << 16
"""Entries that wait to be added up."""


def counted(values: npt.NDArray[np.integer]) -> tuple[IntArray, IntArray]:
    """Return the different values among some, ascending, and how often each occurs; all of shape (n,), int64.

    By sorting: ``numpy.unique`` hashes, which takes ten times as long.
    """
    ordered = np.sort(values)
    firsts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    return ordered[firsts].astype(np.int64), np.diff(firsts, append=len(ordered))


class LengthCounts:
    """Counts lengths as they come."""

    def __init__(self) -> None:
        self._values: list[IntArray] = []
        self._counts: list[IntArray] = []

    def add(self, lengths: npt.NDArray[np.integer]) -> None:
        """Count lengths, shape (n,)."""
        if len(lengths):
            values, counts = counted(lengths)
            self._values.append(values)
            self._counts.append(counts)
            if sum(map(len, self._values[1:])) > max(MOST_PENDING, len(self._values[0])):
                self._merge()

    def _merge(self) -> None:
        values, counts = np.concatenate(self._values), np.concatenate(self._counts)
        by_value = np.argsort(values, kind="stable")
        values, counts = values[by_value], counts[by_value]
        firsts = np.flatnonzero(np.diff(values, prepend=-1))
        self._values, self._counts = [values[firsts]], [np.add.reduceat(counts, firsts)]

    def classes(self) -> LengthClasses:
        """Return the order of all that were counted; at least one length must have been."""
        self._merge()
        return LengthClasses(self._values[0][::-1], self._counts[0][::-1])


class LengthClasses:
    """All subjects of a segment in their order, as classes of equal length.

    A subject's rank is its place in that order.

    Parameters
    ----------
    values : ndarray, shape (n_classes,), int64
        The lengths that occur, descending.
    counts : ndarray, shape (n_classes,), int64
        How many subjects have each.
    """

    def __init__(self, values: IntArray, counts: IntArray) -> None:
        self.values, self.counts = values, counts
        self.firsts = offsets_of(counts)
        """Rank of the first subject of each class, and the number of subjects; shape (n_classes + 1,)."""
        self._residues = offsets_of(values * counts)  # before each class

    @property
    def n_subjects(self) -> int:
        """Number of subjects."""
        return int(self.firsts[-1])

    @property
    def n_residues(self) -> int:
        """Number of residues."""
        return int(self._residues[-1])

    @property
    def n_empty(self) -> int:
        """Number of subjects without residues."""
        return int(self.counts[-1]) if self.values[-1] == 0 else 0

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_subjects // LANES)

    @property
    def n_columns(self) -> int:
        """Number of columns of all blocks."""
        first_blocks = -(-self.firsts // LANES)  # blocks that begin before each class
        return int((np.diff(first_blocks) * -(-self.values // COLUMN_MULTIPLE) * COLUMN_MULTIPLE).sum())

    def lengths(self, ranks: IntArray) -> IntArray:
        """Return the lengths of the subjects of some ranks, both of shape (n,)."""
        return self.values[np.searchsorted(self.firsts, ranks, side="right") - 1]

    def of_lengths(self, lengths: npt.NDArray[np.integer]) -> IntArray:
        """Return the classes of lengths that occur, both of shape (n,)."""
        return len(self.values) - 1 - np.searchsorted(self.values[::-1], lengths)

    def residues_before(self, rank: int) -> int:
        """Count the residues of all subjects before a rank."""
        if rank >= self.n_subjects:
            return self.n_residues
        at = int(np.searchsorted(self.firsts, rank, side="right")) - 1
        return int(self._residues[at]) + (rank - int(self.firsts[at])) * int(self.values[at])

    def rank_within(self, begin: int, budget: int, subject_bytes: int) -> int:
        """Say how far subjects from a rank on fit a budget of bytes: a residue takes one, a subject so many more.

        Returns
        -------
        int
            The rank of the first that does not fit; the number of subjects if all do.
        """
        costs = self._residues + self.firsts * subject_bytes
        limit = self.residues_before(begin) + begin * subject_bytes + budget
        if limit >= int(costs[-1]):
            return self.n_subjects
        at = int(np.searchsorted(costs, limit, side="right")) - 1
        each = int(self.values[at]) + subject_bytes
        return int(self.firsts[at]) + (limit - int(costs[at])) // each


def offsets_of(lengths: npt.NDArray[np.integer]) -> IntArray:
    """Turn lengths, shape (n,), into offsets, shape (n + 1,), int64: 0, then the running sum."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
