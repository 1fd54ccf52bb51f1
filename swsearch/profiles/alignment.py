"""Sequences that are aligned to a query: what profiles are made from, and what A3M files hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
    def of_query(cls, identifier: str, description: str, codes: ByteArray) -> QueryAlignment:
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

    def take(self, chosen: IntArray) -> QueryAlignment:
        """Return some of the sequences, in the order of their places, shape (n,); the first is the query."""
        of_sequence = np.searchsorted(self.insertions[:, 0], np.arange(len(self) + 1))
        parts = [np.arange(of_sequence[k], of_sequence[k + 1]) for k in chosen.tolist()]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        insertions = self.insertions[rows].copy()
        insertions[:, 0] = np.repeat(np.arange(len(chosen)), [len(part) for part in parts])
        return QueryAlignment(
            [self.identifiers[k] for k in chosen.tolist()],
            [self.descriptions[k] for k in chosen.tolist()],
            self.columns[chosen],
            self.starts[chosen],
            self.ends[chosen],
            insertions,
            self.inserted,
            self.subjects[chosen],
            self.evalues[chosen],
            self.iterations[chosen],
        )
