"""The alignments of a search's hits, many of them at a time: on threads, or in launches on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

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
from swsearch.job.subjects import SubjectReader
from swsearch.processors import has_room_for_threads
from swsearch.results import Hit, HitList, SearchResult, SubjectCodes
from swsearch.scoring import QueryLike, specific_rows

ALIGNMENT_MEMORY = 32 << 20
"""Bytes for the tables of each hit that is being aligned; two titins fit, and more memory saves little time. Hits of
more than 200,000 residues together take what `swsearch.engines.cpu.tracing.enough_memory` says, one at a time."""

HIT_BATCH_RESIDUES = 16 << 20
"""Subject residues of the hits that are aligned in one call of the extension; about 40,000 hits."""


@dataclass(frozen=True)
class HitSource:
    """The sequences of a query's hits, to be aligned when that is asked for.

    Parameters
    ----------
    reader : SubjectReader
        Reads the subjects.
    query : Query
        The query.
    subjects : ndarray, shape (n,), int64
        The hits' places in the input.
    """

    reader: SubjectReader
    query: Query
    subjects: IntArray

    def __call__(self, row: int) -> PairAlignment:
        """Align one of them on the CPU."""
        codes, letters = self.reader.one(int(self.subjects[row]))
        return aligned_alone(self.reader, self.scored, codes).shown_as(self.query.letters, letters)

    @cached_property
    def scored(self) -> QueryLike:
        """What is aligned with the subjects."""
        return self.query.scored(self.reader.recurrence.scoring)


def aligned_alone(reader: SubjectReader, query: QueryLike, codes: ByteArray) -> PairAlignment:
    """Align a query with a subject's codes, shape (n,), uint8, in as much memory as that takes."""
    rows = specific_rows(query)
    gaps_vary = rows is not None and rows.gaps is not None
    memory = max(ALIGNMENT_MEMORY, tracing.enough_memory(len(query), len(codes), gaps_vary=gaps_vary))
    return align_codes(query, codes, reader.recurrence, memory=memory)


def align_hits(results: Sequence[SearchResult], threads: int, aligner: PairAligner | None = None) -> None:
    """Find the alignments of all hits, in parallel; afterwards ``hit.pair`` and ``hit.hsps`` cost nothing.

    Parameters
    ----------
    results : sequence of SearchResult
        From a search job.
    threads : int
        Hits that are aligned side by side on the CPU, the longest first, so that all threads end at about the same
        time; the tables of each take at most `ALIGNMENT_MEMORY`.
    aligner : PairAligner, optional
        What aligns instead of the CPU, which goes on where it fails. The alignments are the same.
    """
    align_lists([result.hits for result in results if isinstance(result.hits, HitList)], threads, aligner)
    find_further(list(chain.from_iterable(result.hits for result in results if result.may_have_several)), threads)


def find_further(hits: Sequence[Hit], threads: int) -> None:
    """Find the further alignments of hits that may have some, ``threads`` hits at a time."""
    if hits and has_room_for_threads(threads):
        with (
            contextlib.suppress(RuntimeError),  # not as many threads to be had
            ThreadPoolExecutor(threads, thread_name_prefix="swsearch-align") as workers,
        ):
            for _ in workers.map(lambda hit: hit.hsps, hits):
                pass
    for hit in hits:
        _ = hit.hsps  # where threads have not found them


def align_lists(lists: Sequence[HitList], threads: int, aligner: PairAligner | None = None) -> None:
    """Find the alignment of every hit of some lists."""
    for batch in _batches([each for each in lists if not each.is_aligned and isinstance(each.source, HitSource)]):
        sources = [each.source for each in batch]
        reader = sources[0].reader
        subjects = reader.shown(np.concatenate([source.subjects for source in sources]))
        ends = np.cumsum([0, *(len(source.subjects) for source in sources)]).tolist()
        scores = np.concatenate([each.table.scores for each in batch])
        of_query = np.repeat(np.arange(len(batch)), np.diff(ends))
        found = align_pairs(
            reader, [source.query for source in sources], subjects, of_query, scores, threads, aligner
        )
        for each, begin, end in zip(batch, ends[:-1], ends[1:], strict=True):
            each.give(found[begin:end], subjects.part(begin, end))


def _batches(lists: Sequence[HitList]) -> Iterator[list[HitList]]:
    """Yield runs of lists whose hits are aligned together."""
    batch: list[HitList] = []
    residues = 0
    for each in lists:
        if batch and (residues > HIT_BATCH_RESIDUES or each.source.reader is not batch[0].source.reader):
            yield batch
            batch, residues = [], 0
        batch.append(each)
        residues += int(each.table.subject_lengths.sum())
    if batch:
        yield batch


def align_pairs(
    reader: SubjectReader,
    queries: Sequence[Query],
    subjects: SubjectCodes,
    of_query: IntArray,
    scores: IntArray,
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
    scores : ndarray, shape (n,), int64
        The pairs' scores.
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
