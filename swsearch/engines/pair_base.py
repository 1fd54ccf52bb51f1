"""The interface of what aligns pairs: two sequences of any length, or many pairs of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import ALIGNMENT_COLUMNS, AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.engines.pools import PoolPairs
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike

Aligner = TypeVar("Aligner", bound="PairAligner")

Pair = tuple[QueryLike, ByteArray]
"""A query's codes or its scores by position, and a subject's codes; codes are of shape (n,), uint8."""


class PairAligner(ABC):
    """Aligns or scores pairs, one after the other; a context manager.

    Of several equal alignments every engine returns the one that `swsearch.reference` states.
    """

    name: str
    """Name for ``--engine``."""
    fallback: str = ""
    """Reason why ``auto`` did not choose the GPU; empty otherwise."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Implementation, e.g. the library, and number of threads."""

    @abstractmethod
    def align(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """Align a query with a subject.

        Parameters
        ----------
        query : ndarray, shape (n,), uint8, or QueryProfile
            Codes of the scoring's alphabet, or scores by position; may be empty.
        subject : ndarray, shape (n,), uint8
            Codes; may be empty.
        recurrence : Recurrence
            What is computed.

        Raises
        ------
        MemoryLimitError
            If the pair does not fit the memory allowed.
        EngineError
            If the device fails.
        """

    @abstractmethod
    def score(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> int:
        """Score a query with a subject without their alignment, in memory linear in their lengths.

        Parameters
        ----------
        query : ndarray, shape (n,), uint8, or QueryProfile
            Codes of the scoring's alphabet, or scores by position; may be empty.
        subject : ndarray, shape (n,), uint8
            Codes; may be empty.
        recurrence : Recurrence
            What is computed.

        Returns
        -------
        int
            Matrix units.
        """

    def align_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[PairAlignment]:
        """Align (query, subject) pairs, in order; they are drawn as results are taken."""
        return (self.align(query, subject, recurrence) for query, subject in pairs)

    def score_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[int]:
        """Score (query, subject) pairs, in order; they are drawn as results are taken."""
        return (self.score(query, subject, recurrence) for query, subject in pairs)

    def align_pools(self, batch: PoolPairs, recurrence: Recurrence) -> AlignmentTable:
        """Align pairs of sequences of two pools, all at a time, and count their columns.

        Parameters
        ----------
        batch : PoolPairs
            The pairs.
        recurrence : Recurrence
            What is computed.

        Returns
        -------
        AlignmentTable
            One per pair, in their order.

        Raises
        ------
        MemoryLimitError
            If a pair does not fit the memory allowed.
        EngineError
            If the device fails.
        ValueError
            If pairs, offsets, letters or rows are not within or beside the pools.
        """
        queries, subjects = batch.letters
        found = zip(self.align_many(batch.sequences(), recurrence), batch.places.tolist(), strict=True)
        return _table_of(
            replace(
                pair,
                query_letters=None if queries is None else queries[a : a + m],
                subject_letters=None if subjects is None else subjects[b : b + n],
            )
            for pair, (a, m, b, n) in found
        )

    def close(self) -> None:  # noqa: B027  # not every engine holds something
        """Release everything that the engine holds."""

    def __enter__(self: Aligner) -> Aligner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _table_of(alignments: Iterable[PairAlignment]) -> AlignmentTable:
    """Return alignments as a table."""
    every = list(alignments)
    runs = [run for each in every for run in each.cigar]
    return AlignmentTable(
        **{name: np.array([getattr(each, name) for each in every], dtype=np.int64) for name in ALIGNMENT_COLUMNS},
        run_offsets=np.cumsum([0, *(len(each.cigar) for each in every)], dtype=np.int64),
        run_lengths=np.array([length for length, _ in runs], dtype=np.int64),
        run_operations=np.frombuffer("".join(op for _, op in runs).encode("ascii"), dtype=np.uint8),
    )
