"""Taxa of hits, as reports write them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from swsearch.db.taxonomy import Taxon
from swsearch.report import base, headers
from swsearch.report.base import finite
from swsearch.results import HitTable
from swsearch.results.hit_batches import HitBatch
from swsearch.results.record_hits import shown_hits


@dataclass
class TaxonHits:
    """The hits of a taxon.

    Parameters
    ----------
    taxon : Taxon
        Whose.
    n_hits : int
        How many there are.
    evalue : float
        The least E-value of them; NaN where there are no statistics.
    """

    taxon: Taxon
    n_hits: int = 0
    evalue: float = math.nan


def hits_by_taxon(hits: HitTable) -> list[TaxonHits]:
    """Count the hits of each taxon as reports show them, pieces of a record as one.

    Returns
    -------
    counts : list of TaxonHits
        The most frequent taxon first; of equally frequent ones that of the better hit. A hit of several taxa counts
        for each of them. None where the database knows no taxa, or those of no hit.
    """
    if not hits.headers.taxa:
        return []
    shown, counts = shown_hits(hits), dict[int, TaxonHits]()
    for taxa, evalue in zip(shown.headers.taxa or (), shown.numbers.evalues.tolist(), strict=True):
        for taxon in taxa:
            found = counts.setdefault(taxon.taxid, TaxonHits(taxon))
            found.n_hits += 1
            found.evalue = evalue if math.isnan(found.evalue) else min(found.evalue, evalue)
            if not found.taxon.scientific:  # of several databases, not all may have a taxonomy
                found.taxon = taxon
    return sorted(counts.values(), key=lambda each: -each.n_hits)


def query_member(hits: HitTable) -> dict[str, list[dict[str, Any]]]:
    """Return the member that ``jsonl`` has of a query whose hits have taxa; nothing of others."""
    counts = [
        {
            "taxid": each.taxon.taxid,
            "scientific_name": headers.encodable(each.taxon.scientific) or None,
            "hits": each.n_hits,
            "evalue": finite(each.evalue),
        }
        for each in hits_by_taxon(hits)
    ]
    return {"taxa": counts} if counts else {}


def entry_members(batch: HitBatch) -> list[str]:
    """Return what BLAST's JSON says of the taxon of each hit, with a comma before it; nothing where it is not known.

    Of a subject that stands for several sequences it is not known which of them is of which of several taxa.
    """
    members = []
    for taxa in batch.taxa or [()] * batch.n_hits:
        if len(taxa) != 1:
            members.append("")
            continue
        name = f',"sciname":{base.encode(headers.encodable(taxa[0].scientific))}' if taxa[0].scientific else ""
        members.append(f',"taxid":{taxa[0].taxid}{name}')
    return members


def subject_members(batch: HitBatch) -> dict[str, list[str]]:
    """Return the members that ``jsonl`` has of each subject, as JSON; none where the database knows no taxa."""
    if batch.taxa is None:
        return {}
    names = [[headers.encodable(each.scientific) or None for each in taxa] for taxa in batch.taxa]
    return {
        "taxids": [base.encode([each.taxid for each in taxa]) for taxa in batch.taxa],
        "scientific_names": [base.encode(each) for each in names],
    }
