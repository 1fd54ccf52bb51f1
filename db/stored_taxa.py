"""Reading which taxa the subjects of a database are of, checked when first read like all that a file says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.db.classes import offsets_of
from swsearch.db.content import ranges, some_offsets_problem
from swsearch.db.stored import HEADERS_AT_ONCE, Segment
from swsearch.db.taxonomy import Taxa, TaxidArray, Taxonomy, TaxonomyDamageError
from swsearch.errors import DatabaseDamageError

TAXID = "taxid"
"""How the name of the offsets of subjects' taxids begins."""


class SubjectTaxa(NamedTuple):
    """The taxids of subjects: subject i has ``taxids[offsets[i]:offsets[i + 1]]``, ascending."""

    offsets: IntArray
    """Shape (n + 1,)."""
    taxids: TaxidArray
    """Shape (n_taxids,)."""


def has_taxa(segments: Sequence[Segment]) -> bool:
    """Say whether one of some segments has taxids."""
    return any("taxids" in segment.stored for segment in segments)


def taxonomy_of(segments: Sequence[Segment]) -> Taxonomy:
    """Return the taxonomy of segments together; of a taxon that two have, the later one's word counts.

    Raises
    ------
    DatabaseDamageError
        If one is none that was written.
    """
    found = []
    for segment in segments:
        if "taxids" not in segment.stored:
            continue
        taxa, parents, names, merged, into, known = (
            segment.stored[name].all()
            for name in ("taxa", "taxon_parents", "taxon_names", "merged_taxids", "merged_into", "known_taxids")
        )
        tree = Taxonomy(taxa, parents, names.tobytes(), merged, into, known.tobytes())
        try:
            tree.check()
        except TaxonomyDamageError as error:
            raise _wrong(segment, str(error)) from error
        found.append(tree)
    return Taxonomy.joined(found)


def _wrong(segment: Segment, problem: str) -> DatabaseDamageError:
    return DatabaseDamageError(segment.source.name, [f"{segment.name}: {problem}"])


def taxids_in(segment: Segment, places: IntArray) -> SubjectTaxa:
    """Return the taxids of subjects of a segment, by their places in it, shape (n,)."""
    if "taxids" not in segment.stored:
        return SubjectTaxa(np.zeros(len(places) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
    first, last = segment.bounds_of(TAXID, places)
    rows = ranges(first, last - first)
    order = np.argsort(rows, kind="stable")
    taxids = np.empty(len(rows), dtype=np.int32)
    taxids[order] = segment.stored["taxids"].take(rows[order])
    offsets = offsets_of(last - first)
    _check(segment, offsets, taxids)
    return SubjectTaxa(offsets, taxids)


def _check(segment: Segment, offsets: IntArray, taxids: TaxidArray) -> None:
    ascend = taxids[1:] > taxids[:-1]
    firsts = offsets[1:-1]
    ascend[firsts[(firsts > 0) & (firsts < len(taxids))] - 1] = True  # that of another subject
    if not ascend.all() or (taxids < 1).any():
        raise _wrong(segment, "taxids do not ascend within a subject")


def all_taxids(segment: Segment) -> SubjectTaxa:
    """Return the taxids of all subjects of a segment, in input order."""
    if "taxids" not in segment.stored:
        return taxids_in(segment, np.empty(segment.n_subjects, dtype=np.int64))
    offsets: IntArray = segment.stored["taxid_offsets"].all()
    taxids: TaxidArray = segment.stored["taxids"].all()
    n, rows = segment.n_subjects, np.arange(segment.n_subjects + 1)
    pairs: tuple[Any, Any] = np.repeat(rows, 2)[1:-1], np.repeat(offsets, 2)[1:-1]
    if problem := some_offsets_problem(*pairs, n, len(taxids), TAXID):
        raise _wrong(segment, problem)
    _check(segment, offsets, taxids)
    return SubjectTaxa(offsets, taxids)


def taxids_of(segments: Sequence[Segment], subjects: IntArray) -> SubjectTaxa:
    """Return the taxids of subjects of a database, by their ordinals, shape (n,)."""
    from swsearch.db.bulk import by_segment

    parts, counts = [], np.zeros(len(subjects), dtype=np.int64)
    for segment, which, places in by_segment(segments, subjects):
        found = taxids_in(segment, places)
        counts[which] = np.diff(found.offsets)
        parts.append((which, found.taxids))
    offsets = offsets_of(counts)
    taxids = np.empty(int(offsets[-1]), dtype=np.int32)
    for which, some in parts:
        taxids[ranges(offsets[which], counts[which])] = some
    return SubjectTaxa(offsets, taxids)


def with_names(found: SubjectTaxa, taxonomy: Taxonomy) -> list[Taxa]:
    """Return the taxa of subjects, shape (n,), with what a taxonomy calls them."""
    taxids = found.taxids.tolist()
    known = {taxid: taxonomy.taxon(taxid) for taxid in {*taxids}}
    return [tuple(known[each] for each in taxids[a:b]) for a, b in pairwise(found.offsets.tolist())]


def subjects_of(segments: Sequence[Segment], taxids: npt.NDArray[np.integer]) -> IntArray:
    """Return the ordinals of the subjects that have one of some taxids, shape (m,), both ascending, shape (n,)."""
    ordinals = [np.empty(0, dtype=np.int64)]
    for segment in segments:
        found = all_taxids(segment)
        owners = np.searchsorted(found.offsets, np.flatnonzero(np.isin(found.taxids, taxids)), side="right") - 1
        ordinals.append(np.unique(owners) + segment.first)
    return np.concatenate(ordinals)


def taxids_there(segments: Sequence[Segment]) -> TaxidArray:
    """Return the taxids of all subjects, each once, ascending, shape (n,)."""
    kinds = [np.unique(all_taxids(segment).taxids) for segment in segments]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int32), *kinds]))


def described_taxa(segments: Sequence[Segment]) -> dict[str, int]:
    """Return what `Database.info` says of the taxa of subjects; nothing for a database without any."""
    if not has_taxa(segments):
        return {}
    filled = sum(int((np.diff(all_taxids(segment).offsets) > 0).sum()) for segment in segments)
    return {"n_with_taxid": filled, "n_taxids": len(taxids_there(segments)), "n_taxonomy": len(taxonomy_of(segments))}


def check_taxa_of(segment: Segment) -> None:
    """Raise `DatabaseDamageError` if the taxa of a segment are none that were written."""
    if "taxids" in segment.stored:
        for start in range(0, segment.n_subjects, HEADERS_AT_ONCE):
            taxids_in(segment, np.arange(start, min(start + HEADERS_AT_ONCE, segment.n_subjects)))
        taxonomy_of([segment])
