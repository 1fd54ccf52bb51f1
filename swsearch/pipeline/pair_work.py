"""What is computed of pairs that a search has found: their nulls and their alignments, many at a time.

`PairWork` does it here, on threads or in launches on a GPU. A search that runs in several places has one of its own,
which does it where the subjects are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignments import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.pairs import align_codes
from swsearch.engines.pair_base import PairAligner
from swsearch.engines.pools import pool_of, rows_pool
from swsearch.errors import EngineError, MemoryLimitError
from swsearch.inputs import Query
from swsearch.pipeline.additional_hsps import FoundFurther
from swsearch.pipeline.null_models import NullMaker, PairsAsked
from swsearch.pipeline.subject_reader import SubjectReader
from swsearch.results import SubjectCodes
from swsearch.scoring import QueryLike, specific_rows
from swsearch.statistics.fitted import PairNulls

OfQuery = TypeVar("OfQuery")

ALIGNMENT_MEMORY = 32 << 20
"""Bytes for the tables of each hit that is being aligned; two titins fit, and more memory saves little time. Hits of
more than 200,000 residues together take what `swsearch.engines.cpu.tracing.enough_memory` says, one at a time."""


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

    def take(self, places: IntArray, pairs: PairsToAlign) -> FurtherToFind:
        """Return some, by their places, shape (m,), whose pairs are known."""
        return FurtherToFind(pairs, self.best.take(places), self.least[places], self.most)


@dataclass(frozen=True)
class PairWork:
    """Computes what is asked of pairs, in this process.

    Parameters
    ----------
    reader : SubjectReader
        Reads the subjects, now and whenever a hit's alignment is asked for.
    threads : int
        Pairs that are aligned at a time.
    maker : NullMaker or None
        Makes nulls, where statistics are fitted.
    """

    reader: SubjectReader
    threads: int
    maker: NullMaker | None = None

    def nulls(self, asked: Sequence[PairsAsked]) -> list[PairNulls]:
        """Return the nulls of the pairs of some queries; what a pair gets follows from it alone.

        Raises
        ------
        ValueError
            If statistics are not fitted.
        """
        if self.maker is None:
            raise ValueError("maker: got None, expected what makes nulls")
        return self.maker.of_pairs(asked, self.reader.scored)

    def aligned(self, pairs: PairsToAlign, aligner: PairAligner | None = None) -> tuple[AlignmentTable, SubjectCodes]:
        """Align pairs.

        Parameters
        ----------
        pairs : PairsToAlign
            n of them.
        aligner : PairAligner, optional
            What aligns instead of the CPU.

        Returns
        -------
        AlignmentTable
            Of the pairs, in their order.
        SubjectCodes
            Their subjects, in the same order.
        """
        subjects = self.reader.shown(pairs.subjects)
        if self.reader.recurrence.frame_shift is not None:
            from swsearch.pipeline.frameshift_alignments import align_with_shifts

            recurrence = self.reader.recurrence
            return align_with_shifts(pairs.queries, pairs.of_query, subjects, recurrence, self.threads), subjects
        found = align_pairs(self.reader, pairs.queries, subjects, pairs.of_query, pairs.scores, self.threads, aligner)
        return found, subjects

    def further(self, wanted: Callable[[], FurtherToFind]) -> list[list[FoundFurther]] | None:
        """Return the further alignments of pairs; None where each is found when it is asked for, as it is here."""
        return None

    def of_queries(self, choose: Callable[[int], OfQuery], n: int) -> list[OfQuery]:
        """Return what is chosen of each of n queries, by their places."""
        return [choose(place) for place in range(n)]

    def aligned_alone(self, query: Query, subject: int) -> PairAlignment:
        """Align a query with the subject of a place in the input, on the CPU."""
        codes, letters = self.reader.one(subject)
        if self.reader.recurrence.frame_shift is not None:
            from swsearch.pipeline.frameshift_alignments import align_strand

            return align_strand(query, codes, letters, self.reader.recurrence)
        scored = query.scored(self.reader.recurrence.scoring)
        return aligned_alone(self.reader, scored, codes).shown_as(query.letters, letters)


def aligned_alone(reader: SubjectReader, query: QueryLike, codes: ByteArray) -> PairAlignment:
    """Align a query with a subject's codes, shape (n,), uint8, in as much memory as that takes."""
    rows = specific_rows(query)
    gaps_vary = rows is not None and rows.gaps is not None
    memory = max(ALIGNMENT_MEMORY, tracing.enough_memory(len(query), len(codes), gaps_vary=gaps_vary))
    return align_codes(query, codes, reader.recurrence, memory=memory)


def align_pairs(
    reader: SubjectReader,
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
    reader : SubjectReader
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
    pool, letters = pool_of([query.codes for query in queries]), (_letters_of(queries), subjects.letters)
    places = np.stack([of_query, np.arange(len(of_query), dtype=np.int64)], axis=1)
    of_subjects, recurrence = (subjects.codes, subjects.offsets), reader.recurrence
    scored = [query.scored(recurrence.scoring) for query in queries]
    has_profiles = any(query.profile is not None for query in queries)
    rows = rows_pool(scored, recurrence.scoring) if has_profiles else None
    if aligner is not None:
        with contextlib.suppress(EngineError, MemoryLimitError):
            return aligner.align_pools(
                pool, of_subjects, places, recurrence, known=scores, letters=letters, rows=rows
            )
    limits = tracing.Limits(ALIGNMENT_MEMORY, threads)
    table, needed = tracing.align_pools(
        pool, of_subjects, places, recurrence, limits, known=scores, letters=letters, rows=rows
    )
    alone = np.flatnonzero(needed)
    if not len(alone):
        return table
    found = [
        aligned_alone(reader, scored[k], subjects.codes_of(row)).shown_as(
            queries[k].letters, subjects.letters_of(row)
        )
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
