"""Pairs on the CPU: long ones one by one with all threads, short ones many in a call, each on one thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from swsearch import extension
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.engines.base import Pair, PairAligner
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.columns import UncountedAlignments, count_pools
from swsearch.engines.pools import PoolPairs
from swsearch.processors import available_processors
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike, codes_of, position_specific_rows

ALONE_CELLS = 64_000_000
"""Cells from which all threads work on one pair, about 15 ms of one thread; smaller pairs are done side by side."""

CELLS_PER_CALL, PAIRS_PER_CALL = 250_000_000, 4_096
"""Most cells for each thread, a tenth of a second, and most pairs in one call, so that results come steadily."""


def align_codes(
    query: QueryLike,
    subject: ByteArray,
    recurrence: Recurrence,
    *,
    memory: int = tracing.TABLE_MEMORY,
    threads: int | None = None,
) -> PairAlignment:
    """Align a query with a subject.

    Of several equal alignments the one is returned that `swsearch.reference` states.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8, or QueryProfile
        Codes of the scoring's alphabet, or scores by position.
    subject : ndarray, shape (n,), uint8
        Codes.
    recurrence : Recurrence
        What is computed.
    memory : int, optional
        Bytes that tables may take.
    threads : int, optional
        At most this many; by default every processor there is.

    Returns
    -------
    PairAlignment

    Raises
    ------
    MemoryLimitError
        If the pair cannot be aligned within ``memory``.
    InputError
        If scores could be beyond what is computed with; see `swsearch.engines.cpu.tracing.align`.
    """
    return _to_alignment(query, subject, recurrence, tracing.align(query, subject, recurrence, memory, threads))


def _to_alignment(
    query: QueryLike, subject: ByteArray, recurrence: Recurrence, raw: tracing.RawAlignment
) -> PairAlignment:
    """Return what was found of a pair as an alignment."""
    return PairAlignment(codes_of(query), subject, recurrence.scoring, *raw, query_rows=position_specific_rows(query))


class CpuPairAligner(PairAligner):
    """Aligns on the CPU with the compiled extension: long pairs one by one, short ones many in a call.

    Parameters
    ----------
    memory : int, optional
        Bytes that the tables of all pairs that are worked on may take together.
    threads : int, optional
        At most this many; by default one per processor.
    """

    name = "cpu"

    def __init__(self, memory: int | None = None, threads: int | None = None) -> None:
        self.memory = tracing.TABLE_MEMORY if memory is None else memory
        self.threads = threads or available_processors()

    @property
    def description(self) -> str:
        """Implementation, instruction set and number of threads."""
        plural = "" if self.threads == 1 else "s"
        return f"cpu (C++ extension, {extension.active_instruction_set()}, {self.threads} thread{plural})"

    def align(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """Align a query with a subject on all threads."""
        return align_codes(query, subject, recurrence, memory=self.memory, threads=self.threads)

    def score(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> int:
        """Score a query with a subject on all threads, without their alignment."""
        return tracing.score(query, subject, recurrence, self.memory, self.threads)

    def align_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[PairAlignment]:
        """Align (query, subject) pairs, in order."""
        for batch in self._batches(pairs):
            if self._is_alone(batch[0]):
                yield self.align(*batch[0], recurrence)
                continue
            alignments = self._find(batch, recurrence, path=True)
            for (query, subject), one in zip(batch, alignments, strict=True):
                yield _to_alignment(query, subject, recurrence, one)

    def score_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[int]:
        """Score (query, subject) pairs, in order."""
        for batch in self._batches(pairs):
            if self._is_alone(batch[0]):
                yield self.score(*batch[0], recurrence)
                continue
            yield from (one[0] for one in self._find(batch, recurrence, path=False))

    def align_pools(self, batch: PoolPairs, recurrence: Recurrence) -> AlignmentTable:
        """Align pairs of sequences of two pools, and count their columns."""
        m, n = batch.places[:, 1], batch.places[:, 3]
        share = tracing.BatchLimits(self.memory // self.threads, self.threads)
        gaps_vary = batch.rows is not None and batch.rows.gaps is not None
        alone = (m * n >= ALONE_CELLS) | (tracing.memory_needed(m, n, gaps_vary=gaps_vary) > share.memory)
        together = np.flatnonzero(~alone)
        table, needed = tracing.align_pools(batch.take(together), recurrence, share)
        alone[together[needed > 0]] = True
        if not alone.any():
            return table
        fits, large = needed == 0, np.flatnonzero(alone)
        others = batch.take(large)
        traced = [tracing.align(*pair, recurrence, self.memory, self.threads) for pair in others.sequences()]
        counted = count_pools(UncountedAlignments.from_raw(traced), others, recurrence.scoring.matrix, self.threads)
        return AlignmentTable.merge([(together[fits], table.take(np.flatnonzero(fits))), (large, counted)])

    def _find(self, batch: Sequence[Pair], recurrence: Recurrence, *, path: bool) -> Iterator[tracing.RawAlignment]:
        memory = self.memory // self.threads
        return iter(tracing.align_many(batch, recurrence, memory, self.threads, path=path))

    def _is_alone(self, pair: Pair) -> bool:
        """Say whether a pair takes all threads, or may take more than a thread's share of the memory."""
        m, n = len(pair[0]), len(pair[1])
        rows = position_specific_rows(pair[0])
        enough = tracing.memory_needed(m, n, gaps_vary=rows is not None and rows.gaps is not None)
        return m * n >= ALONE_CELLS or enough > self.memory // self.threads

    def _batches(self, pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
        """Yield runs of pairs that are done together, in order; a pair that is done alone is one of its own."""
        batch: list[Pair] = []
        cells = 0
        for pair in pairs:
            alone = self._is_alone(pair)
            if batch and (alone or cells >= CELLS_PER_CALL * self.threads or len(batch) >= PAIRS_PER_CALL):
                yield batch
                batch, cells = [], 0
            if alone:
                yield [pair]
                continue
            batch.append(pair)
            cells += len(pair[0]) * len(pair[1])
        if batch:
            yield batch
