"""The alignments of a search's hits, many of them at a time: on threads, or in launches on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.blocks import IntArray
from swsearch.engines.pair_base import PairAligner
from swsearch.inputs import Query
from swsearch.pipeline.pair_work import PairsToAlign, PairWork
from swsearch.processors import has_room_for_threads
from swsearch.results import Hit, HitList, SearchResult

HIT_BATCH_RESIDUES = 16 << 20
"""Subject residues of the hits that are aligned in one call of the extension; about 40,000 hits."""


@dataclass(frozen=True)
class HitSource:
    """The sequences of a query's hits, to be aligned when that is asked for.

    Parameters
    ----------
    work : PairWork
        Aligns them.
    queries : sequence of Query
        The query, or its frames where it is DNA.
    of_query : ndarray, shape (n,), int64
        Which of these each hit is of.
    subjects : ndarray, shape (n,), int64
        The hits' places in the input.
    """

    work: PairWork
    queries: Sequence[Query]
    of_query: IntArray
    subjects: IntArray

    def __call__(self, row: int) -> PairAlignment:
        """Align one of them on the CPU."""
        return self.work.aligned_alone(self.queries[int(self.of_query[row])], int(self.subjects[row]))


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
    align_lists([result.hits for result in results if isinstance(result.hits, HitList)], aligner)
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


def align_lists(lists: Sequence[HitList], aligner: PairAligner | None = None) -> None:
    """Find the alignment of every hit of some lists."""
    for batch in _batches([each for each in lists if not each.is_aligned and isinstance(each.source, HitSource)]):
        sources = [each.source for each in batch]
        subjects = np.concatenate([source.subjects for source in sources])
        ends = np.cumsum([0, *(len(source.subjects) for source in sources)]).tolist()
        scores = np.concatenate([each.table.scores for each in batch])
        firsts = np.cumsum([0, *(len(source.queries) for source in sources)]).tolist()
        of_query = np.concatenate([first + source.of_query for first, source in zip(firsts, sources, strict=False)])
        queries = [query for source in sources for query in source.queries]
        pairs = PairsToAlign(queries, of_query, subjects, scores)
        found, codes = sources[0].work.aligned(pairs, aligner)
        for each, begin, end in zip(batch, ends[:-1], ends[1:], strict=True):
            each.give(found[begin:end], codes.part(begin, end))


def _batches(lists: Sequence[HitList]) -> Iterator[list[HitList]]:
    """Yield runs of lists whose hits are aligned together."""
    batch: list[HitList] = []
    residues = 0
    for each in lists:
        if batch and (residues > HIT_BATCH_RESIDUES or each.source.work is not batch[0].source.work):
            yield batch
            batch, residues = [], 0
        batch.append(each)
        residues += int(each.table.subject_lengths.sum())
    if batch:
        yield batch
