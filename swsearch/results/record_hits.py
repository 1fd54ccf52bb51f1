"""Hits of a translated database, grouped by record.

The frames of one record have hits of their own. Readers of BLAST's formats expect all alignments of a subject below
one heading, the best first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch.blocks import IntArray
from swsearch.results.table import HitTable, HspTable


@dataclass(frozen=True, eq=False)
class RecordHits:
    """The records of a result's hits, in the order of the best hit of each.

    Parameters
    ----------
    hits : HitTable
        The best hit of each record, m of them.
    loci : HitTable
        All n hits, those of a record together.
    of_locus : ndarray, shape (n,), int64
        Row of each locus's record, ascending.
    of_hit : ndarray, shape (n,), int64
        Row of each hit's record, in the result's order.
    """

    hits: HitTable
    loci: HitTable
    of_locus: IntArray
    of_hit: IntArray

    @classmethod
    def of(cls, hits: HitTable) -> RecordHits | None:
        """Return the records of hits; None if each hit has a record of its own."""
        if hits.subject_frames is None:
            return None
        _, first, of_hit = np.unique(hits.record_places, return_index=True, return_inverse=True)
        if len(first) == len(hits):
            return None
        by_rank = np.argsort(first)
        rank = np.empty(len(first), dtype=np.int64)
        rank[by_rank] = np.arange(len(first))
        ranks = rank[of_hit.reshape(-1)]
        order = np.argsort(ranks, kind="stable")
        return cls(hits.take(first[by_rank]), hits.take(order), ranks[order], ranks)

    def order_of(self, hsps: HspTable) -> IntArray:
        """Return the rows of alignments by record, shape (k,): within a record by E-value, then by score."""
        evalues, scores = hsps.numbers.evalues, hsps.alignments.score
        return np.lexsort((-scores, np.where(np.isnan(evalues), 0.0, evalues), self.of_hit[hsps.hits]))


def shown_hits(hits: HitTable) -> HitTable:
    """Return the hits of a report in its order: the best hit of each record."""
    records = RecordHits.of(hits)
    return hits if records is None else records.hits
