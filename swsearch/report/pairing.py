"""Alignments of the chains of one complex, rows of the same taxon joined.

Homologs of two chains in one organism may interact as the chains do. Each chain has at most one row for a taxon, its
best hit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsearch.blocks import IntArray
from swsearch.db.taxid_assignment import taxid_in_header
from swsearch.errors import InputError
from swsearch.options.kinds import PairStrategy
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.profiles.row_filter import RowFilter
from swsearch.results import SearchResult, alignment_of

MAX_PAIRED_EVALUE = 1e-3
"""Largest E-value of a row that is paired."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A query with its rows, to be paired with others.

    Parameters
    ----------
    name : str
        Name of its files, without an extension.
    alignment : QueryAlignment
        All its rows, the best first.
    kept : ndarray, shape (n_kept,), int64
        Rows of the unpaired alignment, ascending.
    best : dict of int to int
        The first row of each taxon.
    n_candidates : int
        Rows that are paired if their taxon is known.
    """

    name: str
    alignment: QueryAlignment
    kept: IntArray
    best: dict[int, int]
    n_candidates: int

    @classmethod
    def from_result(cls, name: str, result: SearchResult, rows: RowFilter) -> Chain:
        """Align a result; only rows with the filter's coverage and identity are paired."""
        alignment = alignment_of(result)
        candidates = rows.similar_rows(alignment)[1:]
        candidates = candidates[alignment.evalues[candidates] <= MAX_PAIRED_EVALUE]
        taxids, best = taxids_of(result, alignment), dict[int, int]()
        for row in candidates.tolist():
            if taxids[row]:
                best.setdefault(taxids[row], row)
        return cls(name, alignment, rows.kept_rows(alignment), best, len(candidates))


@dataclass(frozen=True, eq=False)
class ChainRows:
    """The rows of one query's files.

    Parameters
    ----------
    name : str
        Name of its files, without an extension.
    unpaired : QueryAlignment
        The query and its rows that are in no pair.
    paired : QueryAlignment or None
        The query and a row for each taxon, of gaps where the chain has no hit; None where nothing was to be paired.
    """

    name: str
    unpaired: QueryAlignment
    paired: QueryAlignment | None = None


def taxids_of(result: SearchResult, alignment: QueryAlignment) -> list[int]:
    """Return the taxid of each row, of the database or else of the header (``OX=``, ``TaxID=``); 0 where unknown."""
    taxa = result.table.headers.taxa if len(result.hits) else None
    subjects = result.table.subjects.tolist() if taxa else []
    known = {place: each[0].taxid for place, each in zip(subjects, taxa or [], strict=True) if each}
    rows = zip(alignment.subjects.tolist(), alignment.descriptions, strict=True)
    return [known.get(place) or taxid_in_header(f" {text}") for place, text in rows]


def distinct_chains(alignments: Sequence[QueryAlignment]) -> list[list[int]]:
    """Return the places of the chains of each sequence, in order of the first ones."""
    places: dict[bytes, list[int]] = {}
    for place, alignment in enumerate(alignments):
        places.setdefault(alignment.query.tobytes(), []).append(place)
    return list(places.values())


def pair_chains(chains: Sequence[Chain], strategy: PairStrategy, max_rows: int) -> tuple[list[ChainRows], list[int]]:
    """Join the rows of chains by taxon; copies of a chain have the same rows.

    Parameters
    ----------
    max_rows : int
        Maximum number of paired rows, the query included.

    Returns
    -------
    list of ChainRows
        One per chain, paired rows with the same place belonging together: first those of taxa in most chains, then
        those of the best hits.
    list of int
        The taxid of each paired row but the first.

    Raises
    ------
    InputError
        If there are rows, but no taxon of any.
    """
    if not any(chain.best for chain in chains) and any(chain.n_candidates for chain in chains):
        raise InputError(
            f"--pair {strategy}: no row with E <= {MAX_PAIRED_EVALUE:g} has a taxon, expected OX= or TaxID= in "
            "headers, or a database with taxids; build it with swsearch db build --taxids FILE, or leave --pair out"
        )
    best = [chains[places[0]].best for places in distinct_chains([chain.alignment for chain in chains])]
    counts = Counter(taxid for rows in best for taxid in rows)
    n_needed = len(best) if strategy == "complete" else 2
    ranks = {taxid: sum(rows.get(taxid, 0) for rows in best) for taxid, n in counts.items() if n >= n_needed}
    taxids = sorted(ranks, key=lambda taxid: (-counts[taxid], ranks[taxid], taxid))[: max_rows - 1]
    return [_paired(chain, taxids) for chain in chains], taxids


def _paired(chain: Chain, taxids: list[int]) -> ChainRows:
    alignment, n = chain.alignment, len(chain.alignment)
    rows = np.array([0, *(chain.best.get(taxid, n) for taxid in taxids)])
    unpaired = np.union1d([0], np.setdiff1d(chain.kept, rows))
    gaps = replace(
        QueryAlignment.from_query("no_hit", "", np.full(alignment.n_columns, GAP, dtype=np.uint8)),
        ends=np.zeros(1, dtype=np.int64),
        evalues=np.full(1, np.nan),
    )
    return ChainRows(chain.name, alignment.take(unpaired), alignment.with_rows(gaps).take(rows))
