"""The interface of what aligns pairs: two sequences of any length, or many pairs of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TypeVar

from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.recurrence import Recurrence

Aligner = TypeVar("Aligner", bound="PairAligner")

Pair = tuple[ByteArray, ByteArray]
"""Codes of a query and a subject, each of shape (n,), uint8."""

SequencePool = tuple[ByteArray, IntArray]
"""Codes of many sequences end to end, shape (n_residues,), uint8, and where each begins: offsets, shape (n + 1,)."""

PoolLetters = tuple[ByteArray | None, ByteArray | None]
"""Letters of the pools of queries and of subjects in ASCII as they are shown, masked ones in lower case: of the shape
of the codes, uint8, or None where nothing of that side is masked."""


class PairAligner(ABC):
    """Aligns or scores pairs, one after the other; a context manager.

    Of several equal alignments every engine returns the one that `swsearch.reference` states.
    """

    name: str
    """What ``--engine`` calls it."""
    fallback: str = ""
    """Why ``auto`` did not take the GPU; empty otherwise."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What runs, such as the library and the number of threads."""

    @abstractmethod
    def align(self, query: ByteArray, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """Align two encoded sequences.

        Parameters
        ----------
        query, subject : ndarray, shape (n,), uint8
            Codes of the scoring's alphabet; may be empty.
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
    def score(self, query: ByteArray, subject: ByteArray, recurrence: Recurrence) -> int:
        """Score two encoded sequences without their alignment, in memory linear in their lengths.

        Parameters
        ----------
        query, subject : ndarray, shape (n,), uint8
            As for `align`.
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

    def close(self) -> None:  # noqa: B027  # not every engine holds something
        """Let go of what the engine holds."""

    def __enter__(self: Aligner) -> Aligner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
