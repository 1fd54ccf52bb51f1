"""What is computed of pairs that a search has found: their nulls and their alignments, many at a time.

`LocalPairWork` does it here, on threads or in launches on a GPU.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignments import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.base import Engine
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.pairs import align_codes
from swsearch.engines.pair_base import PairAligner
from swsearch.engines.pools import pool_of, rows_pool
from swsearch.errors import EngineError, MemoryLimitError
from swsearch.inputs import Query
from swsearch.pipeline.additional_hsps import FoundFurther
from swsearch.pipeline.null_models import NullMaker, PairsAsked
from swsearch.pipeline.subjects import SubjectReader
from swsearch.recurrence import Recurrence
from swsearch.results import SubjectCodes
from swsearch.scoring import specific_rows
from swsearch.statistics.fitted import PairNulls

ALIGNMENT_MEMORY = 32 << 20
"""Bytes for the tables of each hit that is being aligned; two titins fit, and more memory saves little time. Hits of
more than 200,000 residues together take what `swsearch.engines.cpu.tracing.enough_memory` says, one at a time."""


CPU_ALIGN_MIN_THREADS = 4
"""Threads from which on the CPU aligns hits, and not a GPU that is scoring meanwhile: a hit of 350 residues takes a
thread 85 us, and launches on the GPU would wait for the scoring kernels each time. A choice."""


@dataclass(frozen=True)
class PairsToAlign:
    """Pairs of queries and subjects, as a search has found them.

    Parameters
    ----------
    queries : sequence of Query
        Some.
    of_query : ndarray, shape (n,), int64
        The query of each pair, by its place among these.
    subjects : ndarray, shape (n,), int64
        Places in the input.
    scores : ndarray, shape (n,), int64
        Matrix units.
    """

    queries: Sequence[Query]
    of_query: IntArray
    subjects: IntArray
    scores: IntArray


@dataclass(frozen=True)
class FurtherToFind:
    """Pairs whose further alignments are wanted, after the best of each.

    Parameters
    ----------
    pairs : PairsToAlign
        n of them.
    best : AlignmentTable
        Their best alignments.
    least : ndarray, shape (n,), int64
        Least scores of others, matrix units.
    most : int
        Most others of a pair.
    """

    pairs: PairsToAlign
    best: AlignmentTable
    least: IntArray
    most: int


class LocalPairWork:
    """Computes what is asked of pairs in this process; see `swsearch.pipeline.backend.PairWork`.

    Parameters
    ----------
    recurrence : Recurrence
        What pairs are aligned by.
    threads : int
        Pairs that are aligned at a time.
    maker : NullMaker or None
        Makes nulls, where statistics are fitted.
    engine : Engine or None
        May lend an aligner, which works in place of few threads.
    """

    parallel = 1

    def __init__(
        self, recurrence: Recurrence, threads: int, maker: NullMaker | None, engine: Engine | None = None
    ) -> None:
        self.recurrence, self.threads, self.maker = recurrence, threads, maker
        self._engine = engine if threads < CPU_ALIGN_MIN_THREADS else None
        self._guard, self._aligner = threading.Lock(), ExitStack()
        self._lent: PairAligner | None = None

    def nulls(self, asked: Sequence[PairsAsked], subjects: SubjectReader) -> list[PairNulls]:
        """Return the nulls of the pairs of some queries."""
        assert self.maker is not None
        return self.maker.of_pairs(asked, subjects.scored)

    def align(self, pairs: PairsToAlign, subjects: SubjectReader) -> tuple[AlignmentTable, SubjectCodes]:
        """Align pairs; return the alignments and the subjects."""
        shown = subjects.shown(pairs.subjects)
        return self.align_codes(pairs.queries, pairs.of_query, shown, pairs.scores), shown

    def align_codes(
        self, queries: Sequence[Query], of_query: IntArray, subjects: SubjectCodes, scores: IntArray | None = None
    ) -> AlignmentTable:
        """Align n subjects, each with a query: ``of_query``, and ``scores`` if they are known, are of shape (n,)."""
        if self.recurrence.frame_shift is not None:
            from swsearch.pipeline.frameshift_alignments import align_with_shifts

            return align_with_shifts(queries, of_query, subjects, self.recurrence, self.threads)
        with self._guard:
            aligner = self._aligner_for(len(of_query))
        with nullcontext() if aligner is None else self._guard:
            return align_pairs(self.recurrence, queries, subjects, of_query, scores, self.threads, aligner)

    def _aligner_for(self, n: int) -> PairAligner | None:
        if self._lent is None and self._engine is not None:
            self._lent = self._engine.pair_aligner(n)
            if self._lent is not None:
                self._aligner.enter_context(self._lent)
        return self._lent

    def further(
        self, wanted: Callable[[], FurtherToFind], subjects: SubjectReader
    ) -> list[list[FoundFurther]] | None:
        """Return None: further alignments are found when they are asked for."""
        return None

    def align_one(self, query: Query, place: int, subjects: SubjectReader) -> PairAlignment:
        """Align a query with one subject, as when a hit's alignment is asked for after the search."""
        shown = subjects.shown(np.array([place], dtype=np.int64))
        codes, letters = shown.codes_of(0), shown.letters_of(0)
        if self.recurrence.frame_shift is not None:
            from swsearch.pipeline.frameshift_alignments import align_strand

            return align_strand(query, codes, letters, self.recurrence)
        return align_alone(self.recurrence, query, codes, letters)

    def close(self) -> None:
        """Release the aligner."""
        with self._guard:
            self._engine = self._lent = None
            self._aligner.close()


def align_alone(recurrence: Recurrence, query: Query, codes: ByteArray, letters: ByteArray | None) -> PairAlignment:
    """Align a query with a subject, codes and letters of shape (n,), uint8, in as much memory as that takes."""
    scored = query.scored(recurrence.scoring)
    rows = specific_rows(scored)
    gaps_vary = rows is not None and rows.gaps is not None
    memory = max(ALIGNMENT_MEMORY, tracing.enough_memory(len(scored), len(codes), gaps_vary=gaps_vary))
    return align_codes(scored, codes, recurrence, memory=memory).shown_as(query.letters, letters)


def align_pairs(
    recurrence: Recurrence,
    queries: Sequence[Query],
    subjects: SubjectCodes,
    of_query: IntArray,
    scores: IntArray | None,
    threads: int,
    aligner: PairAligner | None = None,
) -> AlignmentTable:
    """Align subjects with queries.

    Parameters
    ----------
    recurrence : Recurrence
        What they are aligned by.
    queries : sequence of Query
        Some.
    subjects : SubjectCodes
        n of them.
    of_query : ndarray, shape (n,), int64
        The query that each is aligned with.
    scores : ndarray, shape (n,), int64, or None
        The pairs' scores, where these are known.
    threads : int
        Pairs that are aligned at a time.
    aligner : PairAligner, optional
        What aligns instead of the CPU, which goes on where it fails.
    """
    scored = [query.scored(recurrence.scoring) for query in queries]
    has_profiles = any(query.profile is not None for query in queries)
    places = np.stack([of_query, np.arange(len(of_query), dtype=np.int64)], axis=1)
    pools = pool_of([query.codes for query in queries]), (subjects.codes, subjects.offsets), places, recurrence
    letters = _letters_of(queries), subjects.letters
    rows = rows_pool(scored, recurrence.scoring) if has_profiles else None
    if aligner is not None:
        with contextlib.suppress(EngineError, MemoryLimitError):
            return aligner.align_pools(*pools, known=scores, letters=letters, rows=rows)
    limits = tracing.Limits(ALIGNMENT_MEMORY, threads)
    table, needed = tracing.align_pools(*pools, limits, known=scores, letters=letters, rows=rows)
    alone = np.flatnonzero(needed)
    if not len(alone):
        return table
    found = [
        align_alone(recurrence, queries[k], subjects.codes_of(row), subjects.letters_of(row))
        for row, k in zip(alone.tolist(), of_query[alone].tolist(), strict=True)
    ]
    done = np.flatnonzero(needed == 0)
    return AlignmentTable.merge([(done, table.take(done)), (alone, AlignmentTable.of(found))])


def _letters_of(queries: Sequence[Query]) -> ByteArray | None:
    """Return the letters that queries are shown with, one after the other; None where nothing is masked."""
    if all(query.letters is None for query in queries):
        return None
    decode = PROTEIN.decode_table
    return np.concatenate([decode[query.codes] if query.letters is None else query.letters for query in queries])
