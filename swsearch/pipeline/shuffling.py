"""Shuffled and reversed copies of sequences, and queries' scores with them.

A copy follows from the sequence and the copy's number alone: ``cpu/shuffle/shuffle.hpp`` says how. The extension
makes and scores copies on all threads, whatever engine searches: they are few beside a database, each query has its
own, and a thread needs room for no more than 64 of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import LANES, Chunk, IntArray, block_columns
from swsearch.engines.base import ScoreArray
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.cpu.queries import Queries, shift_cost, what_is_computed
from swsearch.engines.pools import pool_of
from swsearch.errors import InputError
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike, rows_of
from swsearch.statistics.random_sequences import WINDOW

REVERSED = -1
"""Number of the copy that is the sequence backwards."""

CELLS_OF_CALL = 1 << 33
"""Cells of each thread in one call of the extension, a quarter of a second: where the call does not come from the
main thread, what ends a search is heard between calls alone."""


@dataclass(frozen=True)
class Joined:
    """Sequences one after the other.

    Parameters
    ----------
    codes : ndarray, shape (total length,), uint8
        Their codes.
    offsets : ndarray, shape (n + 1,), int64
        Where each begins, and the last one ends.
    """

    codes: ByteArray
    offsets: IntArray

    @classmethod
    def of(cls, sequences: Sequence[ByteArray]) -> Joined:
        """Put sequences, each of shape (length,), uint8, one after the other."""
        return cls(*pool_of(list(sequences)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Residues of each, shape (n,)."""
        lengths: IntArray = np.diff(self.offsets)
        return lengths


def score_shuffled(
    queries: Sequence[QueryLike],
    sequences: Joined,
    pairs: IntArray,
    copies: range,
    recurrence: Recurrence,
    threads: int,
) -> ScoreArray:
    """Score queries with shuffled copies of sequences.

    Parameters
    ----------
    queries : sequence of (ndarray, shape (length,), uint8, or QueryRows)
        Codes, or scores by position; may be empty.
    sequences : Joined
        Codes; may be empty.
    pairs : ndarray, shape (n_pairs, 2), int64
        The query's place and the sequence's.
    copies : range
        Numbers of the copies, from `REVERSED` on; other numbers are other copies.
    recurrence : Recurrence
        What is computed.
    threads : int
        How many to use.

    Returns
    -------
    ndarray, shape (n_pairs, n_copies), int32
        Exact scores, matrix units.

    Raises
    ------
    InputError
        If a score might not fit 32 bits.
    """
    scores = np.empty((len(pairs), len(copies)), dtype=np.int32)
    if not scores.size:
        return scores
    joined = Queries.of(queries, recurrence)
    rows, lengths = joined.lengths[pairs[:, 0]], sequences.lengths[pairs[:, 1]]
    _check_reach(rows, lengths, joined.recurrence)
    score, computed = extension.load().score_shuffled, what_is_computed(joined.recurrence)
    rest = *computed, threads, 0, extension.chosen()
    for part in cut_at(rows * lengths * len(copies), CELLS_OF_CALL * threads):
        score(
            *joined.arguments, sequences.codes, sequences.offsets,
            np.ascontiguousarray(pairs[part]), copies.start, len(copies), WINDOW, *rest, scores[part],
            *shift_cost(joined.recurrence),
        )  # fmt: skip
    return scores


def _check_reach(rows: IntArray, lengths: IntArray, recurrence: Recurrence) -> None:
    """Raise `InputError` where a pair's score might not fit 32 bits."""
    m, n = int(rows.max()), int(lengths.max())
    try:
        recurrence.lane_bits(max(m, 1), max(n, 1))  # what is enough for the longest of both is enough for every pair
    except InputError:
        for m in np.unique(rows[rows > 0]).tolist():
            recurrence.lane_bits(m, max(int(lengths[rows == m].max()), 1))


def cut_at(sizes: IntArray, most: int) -> Iterator[slice]:
    """Cut items of these sizes, shape (n,), into runs of about ``most`` together; what is larger stands alone."""
    before = np.cumsum(sizes) - sizes
    begin = 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(before + sizes, before[begin] + most, side="right")))
        yield slice(begin, end)
        begin = end


def shuffled_chunk(sequences: Sequence[ByteArray], copies: range, threads: int) -> Chunk:
    """Return shuffled copies of sequences, as a chunk that engines score.

    Parameters
    ----------
    sequences : sequence of ndarray, shape (length,), uint8
        Codes; none is empty.
    copies : range
        Numbers of the copies, from `REVERSED` on; other numbers are other copies.
    threads : int
        How many to use.

    Returns
    -------
    Chunk
        Its ``subjects`` count the copies of the first sequence, then those of the second, and so on.
    """
    joined = Joined.of(sequences)
    lengths = joined.lengths.astype(np.int32)
    order = np.argsort(-lengths, kind="stable")
    of_lane = np.repeat(order, len(copies)).astype(np.int64)
    copy_of_lane = np.tile(np.arange(copies.start, copies.stop, dtype=np.int32), len(sequences))
    lane_lengths = lengths[of_lane]
    columns = np.concatenate([[0], np.cumsum(block_columns(lane_lengths))]).astype(np.int64)
    residues = np.empty((int(columns[-1]), LANES), dtype=np.uint8)
    extension.load().shuffle(joined.codes, joined.offsets, of_lane, copy_of_lane, columns, WINDOW, threads, residues)
    places = of_lane * len(copies) + (copy_of_lane - copies.start)
    return Chunk(residues, columns, lane_lengths, places)


def scores_with_copies(
    queries: Sequence[QueryLike], recurrence: Recurrence, chunk: Chunk, threads: int
) -> npt.NDArray[np.int32]:
    """Score queries with one and the same chunk of copies.

    Returns
    -------
    ndarray, shape (n_queries, n_copies), int32
        Exact scores, matrix units, in the order of the chunk's ``subjects``.
    """
    with CpuEngine(threads) as engine:
        group = engine.prepare([rows_of(query, recurrence.scoring) for query in queries], recurrence)
        found = engine.score(group, engine.load(chunk))
    scores = np.empty_like(found)
    scores[:, chunk.subjects] = found
    return scores
