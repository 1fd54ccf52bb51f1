"""Batches of alignments of hits, on threads or on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import IntArray
from swsearch.inputs import Query
from swsearch.pipeline.backend import PairBackend
from swsearch.pipeline.batch import split_by_size
from swsearch.pipeline.pairs import LocalPairBackend, PairsToAlign
from swsearch.pipeline.prefetch import parallel_for
from swsearch.pipeline.ranking import QueryCandidates
from swsearch.pipeline.subjects import SubjectReader
from swsearch.results import Hit, HitList, SearchResult

HIT_BATCH_RESIDUES = 16 << 20
"""Subject residues of the hits that are aligned in one call of the extension; about 40,000 hits."""


@dataclass(frozen=True, eq=False)
class HitSource:
    """The sequences of a query's hits, aligned on access.

    Parameters
    ----------
    backend : LocalPairBackend
        Aligns them.
    subjects : SubjectReader
        Reads them.
    queries : sequence of Query
        The query, or its frames where it is DNA.
    query_indices : ndarray, shape (n,), int64
        Which of these each hit is of.
    places : ndarray, shape (n,), int64
        The hits' places among the subjects.
    included : QueryCandidates or None
        Hits of the query's last profile, whose alignments are known.
    """

    backend: LocalPairBackend
    subjects: SubjectReader
    queries: Sequence[Query]
    query_indices: IntArray
    places: IntArray
    included: QueryCandidates | None = None

    def find_known(self) -> tuple[IntArray, AlignmentTable]:
        """Return which hits have alignments already, shape (m,), and these."""
        if self.included is None or self.included.alignments is None:
            return np.empty(0, dtype=np.int64), AlignmentTable.concatenate([])
        rows = self.included.candidates.find(self.places)
        return np.flatnonzero(rows >= 0), self.included.alignments.take(rows[rows >= 0])

    def __call__(self, row: int) -> PairAlignment:
        """Align one of them on the CPU."""
        return self.backend.align_pair(
            self.queries[int(self.query_indices[row])], int(self.places[row]), self.subjects
        )


def align_hits(results: Sequence[SearchResult], threads: int) -> None:
    """Find the alignments of all hits, in parallel; afterwards ``hit.pair`` and ``hit.hsps`` cost nothing.

    Parameters
    ----------
    threads : int
        Hits that are aligned side by side, the longest first, so that all threads end at about the same time; the
        tables of each take at most `ALIGNMENT_MEMORY`.
    """
    lists = [each.hits for each in results if isinstance(each.hits, HitList) and not each.hits.is_aligned]
    readable = [each for each in lists if isinstance(each.source, HitSource)]
    for _, some in groupby(readable, key=lambda each: (id(each.source.backend), id(each.source.subjects))):
        of_batch = list(some)
        align_lists(of_batch, of_batch[0].source.backend, of_batch[0].source.subjects)
    find_hsps(list(chain.from_iterable(result.hits for result in results if result.may_have_more_hsps)), threads)


def find_hsps(hits: Sequence[Hit], threads: int) -> None:
    """Find the further alignments of hits that may have some, ``threads`` hits at a time."""

    def find(hit: Hit) -> None:
        _ = hit.hsps

    parallel_for(find, hits, threads)


def align_lists(lists: Sequence[HitList], pairs: PairBackend, subjects: SubjectReader) -> None:
    """Find the alignment of every hit of some lists, whose places are all of the same subjects."""
    left = [each for each in lists if not each.is_aligned]
    for part in split_by_size([int(each.table.subject_lengths.sum()) for each in left], HIT_BATCH_RESIDUES):
        some = left[part]
        firsts = np.cumsum([0, *(len(each.queries) for each in some)]).tolist()
        of_query = [first + each.query_numbers for first, each in zip(firsts, some, strict=False)]
        begins = np.cumsum([0, *map(len, some)]).tolist()
        places = np.concatenate([each.source.places for each in some])
        known = [each.source.find_known() for each in some]
        rows = np.concatenate([begin + of_list for begin, (of_list, _) in zip(begins, known, strict=False)])
        is_new = np.ones(len(places), dtype=np.bool_)
        is_new[rows] = False
        pairs_to_align = PairsToAlign(
            [query for each in some for query in each.queries], np.concatenate(of_query)[is_new], places[is_new],
            np.concatenate([each.table.scores for each in some])[is_new],
        )  # fmt: skip
        alignments, codes = pairs.align(pairs_to_align, subjects)
        if len(rows):
            tables = AlignmentTable.concatenate([table for _, table in known])
            alignments = AlignmentTable.merge([(np.flatnonzero(is_new), alignments), (rows, tables)])
            codes = subjects.read_with_letters(places)
        for each, (begin, end) in zip(some, pairwise(begins), strict=True):
            each.set_alignments(alignments[begin:end], codes.slice_rows(begin, end))
