"""Sequences aligned to a query: the source of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import FloatArray, IntArray

GAP = 30
"""Code of a column in which a sequence has no residue; no letter has it."""


@dataclass(frozen=True, eq=False)
class QueryAlignment:
    """Sequences in the columns of a query, and what they have between columns. The query is the first sequence.

    Parameters
    ----------
    identifiers, descriptions : sequence of str
        One per sequence; the same identifier may occur several times, where several parts of a sequence are aligned.
    columns : ndarray, shape (n_sequences, n_columns), uint8
        Codes, `GAP` where a sequence has no residue, be it within its aligned part or outside.
    starts, ends : ndarray, shape (n_sequences,), int64
        The part of each sequence that is aligned, 0-based and half-open, in residues of the whole sequence.
    insertions : ndarray, shape (n_insertions, 4), int64
        Residues between columns: sequence, number of columns before them, and begin and end in ``inserted``. Ordered
        by sequence, then by column.
    inserted : ndarray, shape (n_inserted,), uint8
        Codes of these residues.
    subjects : ndarray, shape (n_sequences,), int64
        Places in the database; -1 of what does not come from it.
    evalues : ndarray, shape (n_sequences,), float64
        With which each was found; 0 of the query, NaN where there is none.
    iterations : ndarray, shape (n_sequences,), int64
        The search that found each first; 0 of what was there before.
    """

    identifiers: Sequence[str]
    descriptions: Sequence[str]
    columns: ByteArray
    starts: IntArray
    ends: IntArray
    insertions: IntArray
    inserted: ByteArray
    subjects: IntArray
    evalues: FloatArray
    iterations: IntArray

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def n_columns(self) -> int:
        """Residues of the query."""
        return int(self.columns.shape[1])

    @property
    def query(self) -> ByteArray:
        """The query's codes, shape (n_columns,), uint8."""
        codes: ByteArray = self.columns[0]
        return codes

    @classmethod
    def from_query(cls, identifier: str, description: str, codes: ByteArray) -> QueryAlignment:
        """Return the alignment that holds a query, shape (n,), uint8, alone."""
        return cls(
            [identifier],
            [description],
            codes[None, :].copy(),
            starts=np.zeros(1, dtype=np.int64),
            ends=np.array([len(codes)], dtype=np.int64),
            insertions=np.zeros((0, 4), dtype=np.int64),
            inserted=np.zeros(0, dtype=np.uint8),
            subjects=np.full(1, -1, dtype=np.int64),
            evalues=np.zeros(1),
            iterations=np.zeros(1, dtype=np.int64),
        )

    @cached_property
    def insertion_offsets(self) -> IntArray:
        """Offsets of the insertions of each sequence, shape (n_sequences + 1,), int64."""
        return np.searchsorted(self.insertions[:, 0], np.arange(len(self) + 1))

    @property
    def spans(self) -> tuple[IntArray, IntArray]:
        """First column with a residue of each sequence, and one past the last; 0 and 0 where there is none.

        Each of shape (n_sequences,), int64.
        """
        filled = self.columns != GAP
        some = filled.any(axis=1)
        begins = np.where(some, filled.argmax(axis=1), 0) if self.n_columns else np.zeros(len(self), dtype=np.int64)
        ends = self.n_columns - filled[:, ::-1].argmax(axis=1) if self.n_columns else begins
        return begins.astype(np.int64), np.where(some, ends, 0).astype(np.int64)

    def take(self, chosen: npt.NDArray[np.integer]) -> QueryAlignment:
        """Return some of the sequences, in the order of their places, shape (n,); the first is the query."""
        places = chosen.tolist()
        counts = np.diff(self.insertion_offsets)[chosen]
        rows = stretch_places(self.insertion_offsets[:-1][chosen], counts)
        insertions = self.insertions[rows]
        lengths = insertions[:, 3] - insertions[:, 2]
        inserted = self.inserted[stretch_places(insertions[:, 2], lengths)]
        insertions[:, 0] = np.repeat(np.arange(len(places)), counts)
        insertions[:, 3] = np.cumsum(lengths)
        insertions[:, 2] = insertions[:, 3] - lengths
        return QueryAlignment(
            [self.identifiers[k] for k in places],
            [self.descriptions[k] for k in places],
            self.columns[chosen],
            self.starts[chosen],
            self.ends[chosen],
            insertions,
            inserted,
            self.subjects[chosen],
            self.evalues[chosen],
            self.iterations[chosen],
        )

    def with_rows(self, rows: QueryAlignment) -> QueryAlignment:
        """Return these sequences and below them those of other rows in the same columns, all of them."""
        if rows.n_columns != self.n_columns:
            raise ValueError(f"got rows of {rows.n_columns} columns, expected {self.n_columns}")
        moved = rows.insertions + np.array([len(self), 0, len(self.inserted), len(self.inserted)])
        joined = {
            name: np.concatenate([getattr(self, name), getattr(rows, name)])
            for name in ("columns", "starts", "ends", "inserted", "subjects", "evalues", "iterations")
        }
        return QueryAlignment(
            [*self.identifiers, *rows.identifiers],
            [*self.descriptions, *rows.descriptions],
            insertions=np.concatenate([self.insertions, moved]),
            **joined,
        )


def stretch_places(begins: IntArray, lengths: IntArray) -> IntArray:
    """Return the places of stretches, one stretch after the other.

    Parameters
    ----------
    begins, lengths : ndarray, shape (n,), int64
        First place of each stretch, and how many there are.

    Returns
    -------
    ndarray, shape (sum of lengths,), int64
    """
    before = np.cumsum(lengths) - lengths
    places: IntArray = np.repeat(begins - before, lengths)
    places += np.arange(len(places))
    return places
