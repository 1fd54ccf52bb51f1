"""Columns of many alignments, from the compiled extension: counts, rows of text, BTOP.

Results equal those of `swsearch.alignment.PairAlignment`. The extension computes all alignments at a time, on
threads and without the GIL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.alignment_table import AlignmentTable, split_pool
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.pools import PoolPairs
from swsearch.processors import available_processors
from swsearch.reference import Cigar
from swsearch.scoring import Matrix

ColumnArguments = tuple[ByteArray | IntArray | npt.NDArray[np.int8] | int, ...]
"""First arguments of the extension's functions for columns: see ``cpu/module/module_columns.cpp``."""

RunArguments = tuple[IntArray, IntArray, IntArray, IntArray, ByteArray]
"""First arguments of the extension's functions for profiles: see ``cpu/module/module_inclusion.cpp``."""


@dataclass(frozen=True, eq=False)
class UncountedAlignments:
    """Alignments of m pairs as they were found, not yet counted; parameters as those of `AlignmentTable`."""

    score: IntArray
    query_start: IntArray
    subject_start: IntArray
    run_offsets: IntArray
    run_lengths: IntArray
    run_operations: ByteArray

    @classmethod
    def from_raw(cls, traced: Sequence[tuple[int, int, int, Cigar]]) -> UncountedAlignments:
        """Lay out alignments that were found one by one: score, starts in query and subject, and CIGAR of each."""
        runs = [run for each in traced for run in each[3]]
        score, query_start, subject_start = (np.array([each[k] for each in traced], dtype=np.int64) for k in range(3))
        return cls(
            score,
            query_start,
            subject_start,
            np.cumsum([0, *(len(each[3]) for each in traced)], dtype=np.int64),
            np.array([length for length, _ in runs], dtype=np.int64),
            np.frombuffer("".join(operation for _, operation in runs).encode("ascii"), dtype=np.uint8),
        )


class AlignmentRows(NamedTuple):
    """Alignments as three rows of text each, all end to end.

    Parameters
    ----------
    query, middle, subject : ndarray, shape (n_columns,), uint8
        ASCII; what `PairAlignment.rows` returns.
    offsets : ndarray, shape (m + 1,), int64
        Where each alignment begins in all three; `swsearch.alignment_table.split_pool` cuts them.
    """

    query: ByteArray
    middle: ByteArray
    subject: ByteArray
    offsets: IntArray


def count_pools(
    raw: UncountedAlignments,
    batch: PoolPairs,
    matrix: Matrix,
    threads: int | None = None,
) -> AlignmentTable:
    """Count alignments that were found, by this engine or another one.

    Parameters
    ----------
    raw : UncountedAlignments
        The alignments.
    batch : PoolPairs
        The pairs.
    matrix : Matrix
        What they were scored with.
    threads : int, optional
        At most this many; by default all processors that this process may use. Few columns take one.

    Returns
    -------
    AlignmentTable
        One per pair, in their order.

    Raises
    ------
    ValueError
        If a CIGAR does not lie within its sequences, or an array is not of the size of what it belongs to.
    EngineError
        If the extension cannot be used.
    """
    common = _common(raw, batch, matrix, threads)
    counts = np.empty((7, len(raw.score)), dtype=np.int64)
    extension.load().count(common, counts)
    query_end, subject_end, length, identities, positives, gaps, gap_openings = counts
    return AlignmentTable(
        raw.score,
        raw.query_start,
        query_end,
        raw.subject_start,
        subject_end,
        length,
        identities,
        positives,
        gaps,
        gap_openings,
        raw.run_offsets,
        raw.run_lengths,
        raw.run_operations,
    )


def rows_of(
    table: AlignmentTable,
    batch: PoolPairs,
    matrix: Matrix,
    threads: int | None = None,
) -> AlignmentRows:
    """Write alignments as rows of text; they take three bytes per column, so give parts of a large table.

    Parameters
    ----------
    table : AlignmentTable
        The alignments.
    batch, matrix, threads
        As for `count_pools`; masked residues are in lower case where the batch's letters have them so.

    Returns
    -------
    AlignmentRows
        Three arrays of shape (n_columns,) and offsets.

    Raises
    ------
    ValueError, EngineError
        As `count_pools` does.
    """
    common = _common(table, batch, matrix, threads)
    offsets = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(table.length, out=offsets[1:])
    query, middle, subject = (np.empty(int(offsets[-1]), dtype=np.uint8) for _ in range(3))
    extension.load().rows(common, offsets, query, middle, subject)
    return AlignmentRows(query, middle, subject, offsets)


def btop_pool(
    table: AlignmentTable,
    batch: PoolPairs,
    matrix: Matrix,
    threads: int | None = None,
) -> tuple[ByteArray, IntArray]:
    """Return BLAST's trace-back operations of alignments, end to end.

    Parameters and errors are those of `rows_of`.

    Returns
    -------
    pool : ndarray, shape (n_bytes,), uint8
        ASCII.
    offsets : ndarray, shape (m + 1,), int64
        Where each alignment's begin in the pool.
    """
    common = _common(table, batch, matrix, threads)
    sizes = np.empty(len(table), dtype=np.int64)
    pool = extension.load().trace_back_operations(common, sizes)
    offsets = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return np.frombuffer(pool, dtype=np.uint8), offsets


def btops_of(
    table: AlignmentTable,
    batch: PoolPairs,
    matrix: Matrix,
    threads: int | None = None,
) -> list[str]:
    """Return BLAST's trace-back operations of alignments as texts; parameters, shapes and errors as of `rows_of`."""
    return split_pool(*btop_pool(table, batch, matrix, threads))


def run_arguments(table: AlignmentTable, subject_starts: IntArray) -> RunArguments:
    """Return m alignments of one query as the extension's functions for profiles take them.

    Parameters
    ----------
    subject_starts : ndarray, shape (m,), int64
        First aligned residue of each subject in the pool that they are in.
    """
    return (
        np.ascontiguousarray(table.query_start),
        np.ascontiguousarray(subject_starts),
        np.ascontiguousarray(table.run_offsets),
        np.ascontiguousarray(table.run_lengths),
        np.ascontiguousarray(table.run_operations),
    )


def _common(
    raw: UncountedAlignments | AlignmentTable,
    batch: PoolPairs,
    matrix: Matrix,
    threads: int | None,
) -> ColumnArguments:
    """Return what all functions of the extension take."""
    nothing = np.zeros(0, dtype=np.uint8)
    letters = [nothing if each is None else np.ascontiguousarray(each) for each in batch.letters]
    alphabet = matrix.alphabet
    return (
        np.ascontiguousarray(batch.queries[0]),
        np.ascontiguousarray(batch.subjects[0]),
        *letters,
        batch.places,
        np.stack((raw.query_start, raw.subject_start), axis=1),
        np.ascontiguousarray(raw.run_offsets),
        np.ascontiguousarray(raw.run_lengths),
        np.ascontiguousarray(raw.run_operations),
        np.ascontiguousarray(matrix.scores.astype(np.int8)),
        alphabet.identity_table,
        alphabet.encode_table,
        alphabet.decode_table,
        threads or available_processors(),
    )
