"""Filters by taxon: which subjects are of some taxa or below them, and what is wrong with a taxid."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from swsearch.blocks import IntArray
from swsearch.db.taxonomy import Taxonomy
from swsearch.errors import InputError, SwsearchWarning
from swsearch.pipeline.table.values import SHOWN_TAXIDS

if TYPE_CHECKING:
    from swsearch.db import Database

TAXON_OPTIONS = ("taxids", "exclude_taxids")
"""Filters that take taxids."""


def subjects_of_taxa(database: Database, taxids: tuple[int, ...], option: str, ignore_missing: bool) -> IntArray:
    """Return the ordinals of the subjects that are of some taxa, or below them, shape (n,).

    Parameters
    ----------
    database : Database
        Open.
    taxids : tuple of int
        Merged ones are followed.
    option : str
        Named in messages.
    ignore_missing : bool
        Whether taxids that the database does not have are left out.

    Raises
    ------
    InputError
        If the database has no taxids, or no subject of a taxid or below it.

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
    for note in _notes(database, taxids, option, tree, there):
        warnings.warn(note, SwsearchWarning, stacklevel=4)
    current = [tree.current(taxid) if taxid not in there else taxid for taxid in taxids]
    below = {*tree.below(current).tolist()}
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
            f"{option}: {_named(lost)} {verb} not {where} of {database.name}; expected NCBI taxids of its "
            f"subjects{above}; use --ignore-missing-ids to skip the missing ones"
        )


def _notes(
    database: Database, taxids: tuple[int, ...], option: str, tree: Taxonomy, there: set[int]
) -> Iterable[str]:
    """Say what is odd of taxids that are asked for, and of the database."""
    if database.n_of_no_taxa:
        yield (
            f"{option}: {database.n_of_no_taxa:,} of {database.n_subjects:,} subjects have no taxids and belong to "
            "no taxon; rebuild their files with --taxids"
        )
    if not len(tree):
        yield f"{option}: {database.name} has no taxonomy; subjects of taxa below are not found"
        return
    for taxid in taxids:
        if taxid not in there and tree.current(taxid) != taxid:
            yield f"{option}: taxid {taxid} was merged into {tree.current(taxid)}; using {tree.current(taxid)}"


def _named(taxids: list[int]) -> str:
    shown = ", ".join(map(str, taxids[:SHOWN_TAXIDS])) + (", ..." if len(taxids) > SHOWN_TAXIDS else "")
    return f"taxid {shown}" if len(taxids) == 1 else f"taxids {shown}"
