"""The interface between a search job and the engines that score.

A job tells what is coming (`Engine.plan`), encodes its queries (`Engine.prepare`), then walks over the database in
chunks; for each chunk it loads (`Engine.load`), looks for hits of a group of queries (`Engine.start_scan`), and
releases, or keeps the chunk for the next group. `Engine.score` gives whole arrays. Every score that leaves an engine
is exact: what saturates in narrow lanes the engine computes again in wider ones, and what 32 bits might not hold it
refuses.

A `PairAligner` aligns pairs: two sequences of any length, or many pairs of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import ALIGNMENT_COLUMNS, AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.blocks import Chunk, IntArray, RunLengths
from swsearch.engines.pools import PoolPairs
from swsearch.errors import OptionError
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike, QueryProfile

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

        Parameters and errors are those of `align`.

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
        aligned = zip(self.align_many(batch.sequences(), recurrence), batch.places.tolist(), strict=True)
        return _table_of(
            replace(
                pair,
                query_letters=None if queries is None else queries[a : a + m],
                subject_letters=None if subjects is None else subjects[b : b + n],
            )
            for pair, (a, m, b, n) in aligned
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


PAIR_RESIDUES = 32 << 20
"""Most residues that `Engine.score_pairs` takes."""

ScoreArray = npt.NDArray[np.int32]
Progress = Callable[[int], None]
"""Called with the number of cells (query residues times subject residues) that were just finished."""


@dataclass(frozen=True)
class QueryGroup:
    """Queries that are scored together.

    Parameters
    ----------
    profiles : sequence of QueryProfile
        One per query.
    recurrence : Recurrence
        What is computed, with the usual ends of its mode.
    handle : object
        What the engine made of them, for its own use.

    Raises
    ------
    OptionError
        If ends are chosen: a search leaves all four free in semi-global mode.
    """

    profiles: Sequence[QueryProfile]
    recurrence: Recurrence
    handle: Any = None

    def __post_init__(self) -> None:
        if not self.recurrence.has_default_ends:
            raise OptionError("free_ends", self.recurrence.ends.describe(), "all four ends free in a search")


@dataclass(frozen=True)
class LoadedChunk:
    """A chunk that an engine has taken in, with the engine's own handle to it."""

    chunk: Chunk
    handle: Any = None


@dataclass(frozen=True)
class Workload:
    """Work of a job, from which an engine plans memory and chunks.

    Parameters
    ----------
    residue_bytes : int
        Interleaved residues of the whole database, padding included.
    lengths : RunLengths, or ndarray, shape (n_subjects,), int32
        Every subject's length, in any order.
    groups : sequence of sequence of int
        Query lengths of each group that is scored together.
    n_segments : int
        Segments that the database stands in: the last block of each may be partly filled, and begins a chunk.
    recurrence : Recurrence, optional
        What will be computed: with it a GPU loads its kernels now, because loading would wait for others that run.
    """

    residue_bytes: int
    lengths: RunLengths | npt.NDArray[np.int32]
    groups: Sequence[Sequence[int]]
    n_segments: int = 1
    recurrence: Recurrence | None = None


@dataclass(frozen=True)
class ChunkPlan:
    """Division of the database that an engine needs.

    Parameters
    ----------
    chunk_bytes : int
        Most bytes of interleaved residues in a chunk. By default so few that memory is used again: with 64 MiB, a
        tenth of one query's search of Swiss-Prot went into clearing new pages.
    keep_loaded : bool
        Whether all chunks may stay loaded until the job ends.
    mix_lengths : bool
        Whether chunks of long and of short subjects should take turns.
    in_flight : int
        How many results of `Engine.start_scan` may be waited for at a time.
    note : str
        What the engine will allocate, as text for people.
    """

    chunk_bytes: int = 16 << 20
    keep_loaded: bool = False
    mix_lengths: bool = False
    in_flight: int = 1
    note: str = ""


@dataclass(frozen=True)
class HitThresholds:
    """Minimum scores of hits.

    Parameters
    ----------
    by_length : sequence of (ndarray or None)
        For each query the least score of a hit by subject length; None where only ``min_scores`` counts.
    min_scores : sequence of (int or None)
        For each query the least score of a hit whatever the length; None where every subject is a hit.
    """

    by_length: Sequence[npt.NDArray[np.int64] | None]
    min_scores: Sequence[int | None]

    def takes_all(self, query: int) -> bool:
        """Say whether every subject is a hit of a query."""
        return self.by_length[query] is None and self.min_scores[query] is None

    def select(self, query: int, lengths: npt.NDArray[np.int32], scores: ScoreArray) -> IntArray:
        """Choose the scores that are hits of a query.

        Parameters
        ----------
        query : int
            The query's place in the group.
        lengths : ndarray, shape (n,), int32
            Residues of each subject.
        scores : ndarray, shape (n,), int32
            Exact scores, matrix units.

        Returns
        -------
        ndarray, shape (n_hits,), int64
            Places of the hits, ascending.
        """
        good = np.ones(len(scores), dtype=np.bool_)
        table, min_score = self.by_length[query], self.min_scores[query]
        if table is not None:
            good &= scores >= table[lengths]
        if min_score is not None:
            good &= scores >= min_score
        places: IntArray = np.flatnonzero(good).astype(np.int64)
        return places


@dataclass(frozen=True)
class ChunkHits:
    """The hits of one query in a chunk.

    Parameters
    ----------
    indices : ndarray, shape (n,), int64
        Places in the chunk, in any order.
    scores : ndarray, shape (n,), int32
        Exact scores, matrix units.
    """

    indices: IntArray
    scores: ScoreArray


@dataclass(frozen=True)
class PendingHits:
    """Hits that `Engine.start_scan` is computing.

    Parameters
    ----------
    wait : callable
        Waits for the hits, one entry per query; to be called once.
    is_ready : callable
        Says whether ``wait`` would return at once.
    """

    wait: Callable[[], list[ChunkHits]]
    is_ready: Callable[[], bool] = lambda: True


class Engine(ABC):
    """Scores queries against chunks of a database. Close it, or use it as a context manager."""

    name: str
    """Short name, as ``--engine`` takes it."""

    fallback: str = ""
    """Reason why ``auto`` chose this engine instead of the GPU; empty otherwise."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Instruction set or device, and number of threads."""

    @property
    def kernel_seconds(self) -> float | None:
        """Seconds in which kernels ran so far, by the device's clock; None for an engine without a device."""
        return None

    def plan(self, workload: Workload) -> ChunkPlan:
        """Prepare for a job, and return how the database is to be divided.

        Raises
        ------
        MemoryLimitError
            If the job does not fit the memory that the engine may use.
        """
        return ChunkPlan()

    @abstractmethod
    def prepare(self, profiles: Sequence[QueryProfile], recurrence: Recurrence) -> QueryGroup:
        """Prepare a group of queries.

        Parameters
        ----------
        profiles : sequence of QueryProfile
            One per query; a query may be empty.
        recurrence : Recurrence
            What is computed, with the usual ends of its mode.
        """

    @abstractmethod
    def load(self, chunk: Chunk) -> LoadedChunk:
        """Load a chunk, which any number of groups may score before it is released."""

    @abstractmethod
    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> ScoreArray:
        """Score every query of a group against every subject of a chunk.

        Parameters
        ----------
        group : QueryGroup
            From this engine's `prepare`.
        loaded : LoadedChunk
            From this engine's `load`.
        progress : callable, optional
            Called from this thread with the number of cells just finished.

        Returns
        -------
        ndarray, shape (n_queries, n_subjects), int32
            Exact scores in matrix units, subjects in chunk order.

        Raises
        ------
        InputError
            If a score might not fit 32 bits.
        EngineError
            If the library or the device fails.
        """

    def start_scan(
        self, group: QueryGroup, loaded: LoadedChunk, thresholds: HitThresholds, progress: Progress | None = None
    ) -> PendingHits:
        """Begin to look for the hits of every query of a group in a chunk.

        Parameters
        ----------
        group, loaded, progress
            As for `score`.
        thresholds : HitThresholds
            What is a hit.

        Returns
        -------
        PendingHits
            To be waited for before the chunk is released; the hits' scores are exact.
        """

        def wait() -> list[ChunkHits]:
            values = self.score(group, loaded, progress)
            lengths = loaded.chunk.lengths
            places = [thresholds.select(query, lengths, row) for query, row in enumerate(values)]
            return [ChunkHits(chosen, row[chosen]) for chosen, row in zip(places, values, strict=True)]

        return PendingHits(wait)

    def set_reload(self, chunks: Callable[[], Iterator[Chunk]]) -> None:  # noqa: B027
        """Register a function that reads the job's chunks again, from the first on, if loaded chunks are lost."""

    def merge(self, loaded: Sequence[LoadedChunk]) -> list[LoadedChunk]:
        """Make fewer of chunks that stay loaded, where that is faster.

        Only what is returned is scored from then on; what was given and what is returned is released in the end.
        """
        return list(loaded)

    def release(self, loaded: LoadedChunk) -> None:  # noqa: B027  # most engines have nothing to do
        """Release a chunk; it may not be scored again."""

    def takes_pairs(self) -> bool:
        """Return whether `score_pairs` is to score pairs now, and not the CPU."""
        return False

    def score_pairs(
        self, profiles: Sequence[QueryProfile], of_subject: IntArray, chunk: Chunk, recurrence: Recurrence
    ) -> ScoreArray:
        """Score each subject of a chunk with one query; any thread may call this while others score.

        Parameters
        ----------
        profiles : sequence of QueryProfile
            One per query, without gap costs by position; none is empty.
        of_subject : ndarray, shape (n_subjects,), int64
            The query of each subject.
        chunk : Chunk
            In the host's memory, at most `PAIR_RESIDUES` residues; no subject is empty.
        recurrence : Recurrence
            What is computed; its scores fit 32 bits.

        Returns
        -------
        ndarray, shape (n_subjects,), int32
            Exact scores in matrix units, subjects in chunk order.

        Raises
        ------
        MemoryLimitError, EngineError
            If the device has no memory for it, or fails.
        """
        raise NotImplementedError

    def pair_aligner(self, n_hits: int) -> PairAligner | None:
        """Make what aligns the hits of a search that this engine scored, to be closed by the caller.

        Parameters
        ----------
        n_hits : int
            How many there are.

        Returns
        -------
        PairAligner or None
            None where the CPU aligns them.
        """
        return None

    def close(self) -> None:  # noqa: B027
        """Release everything that the engine holds."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def scores_of_empty(
    query: QueryProfile | int, lengths: npt.NDArray[np.integer], recurrence: Recurrence
) -> ScoreArray:
    """Score pairs of which one side is empty.

    Parameters
    ----------
    query : QueryProfile or int
        The query, or how many residues it has.
    lengths : ndarray, shape (n,), integer
        Residues of the subjects; all are 0 if the query is not empty.
    recurrence : Recurrence
        What is computed.

    Returns
    -------
    ndarray, shape (n,), int32
        Matrix units: nothing pairs, and only global mode pays for the gap.
    """
    if recurrence.mode != "global":
        return np.zeros(len(lengths), dtype=np.int32)
    if isinstance(query, QueryProfile) and query.gaps is not None and len(query):
        gaps = query.gaps
        cost = int(gaps.deletion_open[0]) + int(gaps.deletion_extend.sum(dtype=np.int64))
        return np.full(len(lengths), -cost, dtype=np.int32)
    n = query if isinstance(query, int) else len(query)
    return np.array([recurrence.empty_score(n, int(length)) for length in lengths], dtype=np.int32)
