"""Filters of hits: score, identity, coverage, identifiers and taxa.

The limit on hits counts only hits that pass. Scores and identifiers are known after scoring. Identity and coverage
need alignments: candidates are aligned, the best first, until enough have passed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.db.taxonomy import Taxonomy
from swsearch.errors import InputError, SwsearchWarning, format_value
from swsearch.inputs import Query
from swsearch.pipeline.table.hits import FilterTable
from swsearch.pipeline.table.values import SHOWN_TAXIDS

if TYPE_CHECKING:
    from swsearch.alignment import PairAlignment
    from swsearch.alignment_table import AlignmentTable
    from swsearch.db import Database


TAXON_OPTIONS = ("taxids", "exclude_taxids")
"""Filters that take taxids."""


def subjects_of_taxa(database: Database, taxids: tuple[int, ...], option: str, ignore_missing: bool) -> IntArray:
    """Return the ordinals of the subjects that are of some taxa, or below them, shape (n,).

    Parameters
    ----------
    ignore_missing : bool
        Whether taxids that the database does not have are left out.

    Warns
    -----
    SwsearchWarning
        If a taxid was merged; if only subjects of the taxids themselves are found, because the database has no
        taxonomy; if it is several files, of which one knows no taxa.
    """
    if not database.has_taxa:
        raise InputError(
            f"{option}: {database.name} has no taxids; build it with: swsearch db build --taxids FILE|header "
            "--taxonomy FOLDER"
        )
    tree, there = database.taxonomy, {*database.taxids.tolist()}
    if not ignore_missing:
        _check_known(database, taxids, option, tree, there)
    for note in _taxon_warnings(database, taxids, option, tree, there):
        warnings.warn(note, SwsearchWarning, stacklevel=4)
    current = [tree.current_taxid(taxid) if taxid not in there else taxid for taxid in taxids]
    below = {*tree.descendants(current).tolist()}
    # subjects may have a number that was merged since
    former = {int(old) for old, now in zip(tree.merged_taxids, tree.merged_into, strict=True) if int(now) in below}
    return database.subjects_of(below | former)


def _check_known(database: Database, taxids: tuple[int, ...], option: str, tree: Taxonomy, there: set[int]) -> None:
    """Raise `InputError` if no subject is of a taxid or below it."""
    lost = [taxid for taxid in taxids if taxid not in there and not tree.has(taxid)]
    if lost:
        verb = "is" if len(lost) == 1 else "are"
        where, above = ("in the taxonomy", " or of taxa above them") if len(tree) else ("among the taxids", "")
        raise InputError(
            f"{option}: {_list_taxids(lost)} {verb} not {where} of {database.name}; expected NCBI taxids of its "
            f"subjects{above}; use --ignore-missing-ids to skip the missing ones"
        )


def _taxon_warnings(
    database: Database, taxids: tuple[int, ...], option: str, tree: Taxonomy, there: set[int]
) -> Iterable[str]:
    """Return warnings about requested taxids and about the database."""
    if database.n_without_taxids:
        yield (
            f"{option}: {database.n_without_taxids:,} of {database.n_subjects:,} subjects have no taxids and belong "
            "to no taxon; rebuild their files with --taxids"
        )
    if not len(tree):
        yield f"{option}: {database.name} has no taxonomy; subjects of taxa below are not found"
        return
    for taxid in taxids:
        if taxid not in there and (current := tree.current_taxid(taxid)) != taxid:
            yield f"{option}: taxid {taxid} was merged into {current}; using {current}"


def _list_taxids(taxids: list[int]) -> str:
    text = ", ".join(map(str, taxids[:SHOWN_TAXIDS])) + (", ..." if len(taxids) > SHOWN_TAXIDS else "")
    return f"taxid {text}" if len(taxids) == 1 else f"taxids {text}"


MAX_LISTED_IDS = 3
"""Most unknown identifiers that a message names."""

PERCENTAGES = ("min_identity", "min_query_coverage", "min_subject_coverage")
"""Filters that take a percentage."""

SUBJECT_FILTERS = (("include_ids", True), ("taxids", True), ("exclude_ids", False), ("exclude_taxids", False))
"""Filters that name subjects, and whether these may be hits or may not; all of them hold together."""

ALL_SUBJECTS: dict[str, Any] = {name: None for name, _ in SUBJECT_FILTERS}
"""Options without filters that name subjects."""

SubjectMask = npt.NDArray[np.bool_]


class HitFilters(FilterTable, eq=True, repr=True):
    """Filters of hits. None asks for nothing.

    Identity is the percentage of identical columns of the alignment, gaps included, as BLAST's ``pident``. Coverage
    is that of the sequence between its first and its last aligned residue, as BLAST's ``qcovhsp``; of the
    nucleotides of a DNA query.
    """

    @property
    def needs_alignments(self) -> bool:
        """Whether filters need the alignment of a hit."""
        return any((self.min_identity, self.min_query_coverage, self.min_subject_coverage))

    def passes(self, pair: PairAlignment, query: Query) -> bool:
        """Return whether an alignment of a query passes the filters of identity, coverage and score."""
        return bool(self.select(pair, query, np.int64(len(pair.subject))))

    def select(
        self,
        alignments: AlignmentTable | PairAlignment,
        query: Query,
        subject_lengths: npt.NDArray[np.integer] | np.int64,
    ) -> SubjectMask:
        """Return a mask of the alignments of a query that pass; lengths and result have shape (n,)."""
        covered, subject = (
            alignments.query_end - alignments.query_start,
            alignments.subject_end - alignments.subject_start,
        )
        if query.frame is not None and query.frame.number:
            covered = query.frame.step * covered
        passing: SubjectMask = 100 * np.asarray(alignments.identities) >= (self.min_identity or 0) * alignments.length
        passing &= 100 * covered >= (self.min_query_coverage or 0) * query.length
        passing &= 100 * subject >= (self.min_subject_coverage or 0) * subject_lengths
        if self.min_score is not None:
            passing &= alignments.score >= self.min_score
        return passing

    def warnings(self) -> list[str]:
        """Return warnings about percentages from 0 to 1, which may be meant as shares."""
        percentages = {
            name: value for name in PERCENTAGES if (value := getattr(self, name)) is not None and 0 < value <= 1
        }
        return [
            f"{name} {value:g} means {value:g}%; if you mean {100 * value:g}%, give {100 * value:g}"
            for name, value in percentages.items()
        ]


def allowed_subjects(database: Database, filters: HitFilters) -> SubjectMask | None:
    """Return which subjects may be hits, by ordinal; None if all may."""
    active = [(name, is_wanted) for name, is_wanted in SUBJECT_FILTERS if getattr(filters, name) is not None]
    if not active:
        return None
    allowed: SubjectMask = np.ones(database.n_subjects, dtype=np.bool_)
    for name, is_wanted in active:
        find = subjects_of_taxa if name in TAXON_OPTIONS else _places
        named: SubjectMask = np.zeros(database.n_subjects, dtype=np.bool_)
        named[find(database, getattr(filters, name), name, filters.ignore_missing_ids)] = True
        allowed &= named if is_wanted else ~named
    if not allowed.any():
        names = ", ".join(name for name, _ in active)
        raise InputError(f"{names}: no subject of {database.name} is left, expected at least one")
    return allowed


def _places(database: Database, identifiers: tuple[str, ...], option: str, ignore_missing: bool) -> IntArray:
    """Return the ordinals of all subjects with these names."""
    found, subjects = database.find_many_as_arrays(identifiers)
    if not ignore_missing:
        is_found = np.zeros(len(identifiers), dtype=np.bool_)
        is_found[found] = True
        unknown = np.flatnonzero(~is_found)
        if len(unknown):
            names = ", ".join(format_value(identifiers[place]) for place in unknown[:MAX_LISTED_IDS].tolist())
            raise InputError(
                f"{option}: {len(unknown):,} of {len(identifiers):,} identifiers not found in {database.name}: "
                f"{names}{', ...' if len(unknown) > MAX_LISTED_IDS else ''}; expected identifiers or accessions; use "
                "--ignore-missing-ids to skip the missing ones"
            )
    return subjects
