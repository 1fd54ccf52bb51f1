"""The hits of a translated database by record: pieces of one are found each on its own, and shown as one hit.

Whoever reads BLAST's formats expects all alignments of a subject below one heading, the best first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch.blocks import IntArray
from swsearch.results import HitTable, HspTable


@dataclass(frozen=True, eq=False)
class RecordHits:
    """The records that a result's hits are pieces of, in the order of their best ones.

    Parameters
    ----------
    hits : HitTable
        The best hit of each, m of them.
    pieces : HitTable
        All n hits, those of a record together.
    of_piece : ndarray, shape (n,), int64
        The row of each one's record, ascending.
    of_hit : ndarray, shape (n,), int64
        The row of the record of each hit, in the result's order.
    """

    hits: HitTable
    pieces: HitTable
    of_piece: IntArray
    of_hit: IntArray

    @classmethod
    def of(cls, hits: HitTable) -> RecordHits | None:
        """Return the records of hits; None where each hit has a record of its own."""
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
        """Return the rows of alignments, shape (k,), by record: within each by E-value, then by score."""
        evalues, scores = hsps.numbers.evalues, hsps.alignments.score
        return np.lexsort((-scores, np.where(np.isnan(evalues), 0.0, evalues), self.of_hit[hsps.hits]))


def shown_hits(hits: HitTable) -> HitTable:
    """Return the hits of a report in its order: the best one of each record."""
    records = RecordHits.of(hits)
    return hits if records is None else records.hits
