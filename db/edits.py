"""Change what a database holds: leave records out of it, or make one of several; a new file takes its place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from swsearch.blocks import IntArray
from swsearch.db.build import checked_memory
from swsearch.db.cuts import ends_by_size
from swsearch.db.database import Database
from swsearch.db.duplicates import Duplicates, check_rule, duplicates_among
from swsearch.db.fasta import ReadProgress
from swsearch.db.finding import checked_identifiers
from swsearch.db.format import is_manifest
from swsearch.db.gathered import gathered, take_all_but_residues
from swsearch.db.numbers import BUILD_MEMORY
from swsearch.db.source import FileSource
from swsearch.db.split import fill_volumes
from swsearch.db.spool import Spool
from swsearch.db.volume_files import VolumeFiles, checked_volume_size, remove_volumes, volumes_beside
from swsearch.db.volumes import Member, OpenFile, Paths
from swsearch.db.writing import PathLike, check_output, fill, output_errors, replacement
from swsearch.errors import DatabaseError, InputError, OptionError, OutputError, check_flag, shown
from swsearch.options.words import OnDuplicate
from swsearch.output_files import lock_for_change

NAMED_MISSING = 3
"""Identifiers that are not there which a message names."""


@dataclass(frozen=True)
class Edited:
    """What became of the records of a database.

    Parameters
    ----------
    added : int
        Records that came in.
    left_out : int
        Records that were given and did not come in, because their identifier was there.
    removed : int
        Records that were there and are no more.
    n_subjects : int
        Records that are there now.
    """

    added: int
    left_out: int
    removed: int
    n_subjects: int


def open_to_change(path: PathLike, what: str) -> tuple[Database, FileSource]:
    """Open a database file that is to be replaced; return it, and what it is read from.

    Raises
    ------
    DatabaseError
        If it is none that can be opened, or a manifest of volumes.
    """
    if is_manifest(path):
        raise DatabaseError(f"{os.fsdecode(path)}: is a manifest of volumes, {what}")
    source = FileSource(os.fspath(path))
    return Database([Member(source.name, (OpenFile.read(source),))]), source


def check_stands(source: FileSource, what: str) -> None:
    """Raise `OutputError` if a file is no longer the one that was opened: not all who change it ask for the lock."""
    if not source.stands():
        raise OutputError(f"{source.path}: changed while {what}")


def remove_records(
    path: PathLike,
    identifiers: Iterable[str],
    *,
    ignore_missing: bool = False,
    memory: int = BUILD_MEMORY,
    progress: ReadProgress | None = None,
) -> Edited:
    """Take records out of a database file, which is then made anew.

    Parameters
    ----------
    path : path
        The database; it is replaced by a smaller one when that is complete, and stays as it is if anything fails.
    identifiers : iterable of str
        What `Database.find` finds: all records of each go.
    ignore_missing : bool, optional
        Whether identifiers that are not there are left alone; they are an error otherwise, and nothing is removed.
    memory : int, optional
        Working memory in bytes, at least 64 MiB; besides, 16 bytes for each subject.
    progress : callable, optional
        Called now and then with bytes read and their total.

    Returns
    -------
    Edited

    Raises
    ------
    InputError
        If an identifier is not there, or no residue would be left.
    DatabaseError
        If there is no such database, or it is damaged or a manifest of volumes.
    OutputError
        If the database cannot be written; it is then as it was.
    """
    memory = checked_memory(memory)
    check_flag("ignore_missing", ignore_missing)
    names = checked_identifiers(identifiers)
    resolved = check_output(path, [], True)
    with ExitStack() as held:
        with output_errors(resolved):
            held.enter_context(lock_for_change(resolved))
        opened, source = open_to_change(path, "expected a database file; merge the volumes with: swsearch db merge")
        held.enter_context(opened)
        asked, found = opened.places_of(names)
        missing = np.setdiff1d(np.arange(len(names)), asked)
        if len(missing) and not ignore_missing:
            some = ", ".join(shown(names[place]) for place in missing[:NAMED_MISSING].tolist())
            more = ", ..." if len(missing) > NAMED_MISSING else ""
            raise InputError(
                f"{os.fsdecode(path)}: {len(missing):,} of {len(names):,} identifiers not found: {some}{more}; "
                "nothing was removed; use --ignore-missing-ids to remove the others"
            )
        gone = np.unique(found)
        if len(gone):
            kept = others(opened, gone)
            _replace(opened, source, kept, resolved, memory, progress)
        return Edited(0, 0, len(gone), opened.n_subjects - len(gone))


def others(database: Database, gone: IntArray) -> IntArray:
    """Return the subjects that stay, shape (n,), without ``gone``; raise `InputError` if they have no residue."""
    stays = np.ones(database.n_subjects, dtype=bool)
    stays[gone] = False
    kept: IntArray = np.flatnonzero(stays)
    if not len(kept) or not database.lengths_of(kept).any():
        raise InputError(f"{database.name}: no residues would be left; delete the file instead")
    return kept


def _replace(
    database: Database, source: FileSource, kept: IntArray, output: Path, memory: int, progress: ReadProgress | None
) -> None:
    """Put a file with some of the subjects in the place of the one that they are read from."""
    with (
        replacement(output, is_locked=True) as temporary,
        gathered(database, kept, output, memory, progress) as layout,
    ):
        fill(temporary, layout)
        check_stands(source, "records were removed; remove them again")


def merge_databases(
    databases: Paths,
    output: PathLike,
    *,
    on_duplicate: OnDuplicate = "error",
    volume_size: int | None = None,
    memory: int = BUILD_MEMORY,
    overwrite: bool = True,
    progress: ReadProgress | None = None,
) -> Edited:
    """Make one database of several, whose subjects follow each other.

    Parameters
    ----------
    databases : path or iterable of paths
        Database files and manifests of volumes, each file once; they must have the same mask.
    output : path
        The database to write, none of those that are read; with ``volume_size`` the manifest of its volumes.
    on_duplicate : {"error", "skip", "replace", "keep"}, optional
        What to do where several records have the same identifier, in one of the databases or in two: refuse them,
        keep the first, keep the last, or keep all.
    volume_size : int, optional
        As for `build_database`.
    memory : int, optional
        Working memory in bytes, at least 64 MiB; besides, 4 bytes for each subject, and 16 where some are left out.
    overwrite : bool, optional
        Replace a database, in volumes or not, that has this name. Other files are never replaced.
    progress : callable, optional
        Called now and then with bytes read and their total.

    Returns
    -------
    Edited

    Raises
    ------
    InputError
        If an identifier is there twice and ``on_duplicate`` is ``error``.
    DatabaseError
        If there is no such database, or it is damaged, or they do not go together.
    OutputError
        If the database cannot be written; nothing is left behind.
    """
    memory = checked_memory(memory)
    check_flag("overwrite", overwrite)
    check_rule("on_duplicate", on_duplicate)
    size = None if volume_size is None else checked_volume_size(volume_size)
    if not isinstance(databases, (str, bytes, os.PathLike)) and isinstance(databases, Iterable):
        databases = list(databases)
        if not databases:
            raise OptionError("databases", databases, "at least one database file")
    with Database.open(databases) as opened:
        read = [str(volume.path) for volume in opened.volumes]
        path = check_output(output, read, overwrite)
        kept = None
        if on_duplicate != "keep":
            again = duplicates_in(opened, on_duplicate, memory)
            if on_duplicate == "error" and again.n_identifiers:
                raise InputError(
                    f"{os.fsdecode(output)}: {several(again)}; --on-duplicate skip keeps the first of each, replace "
                    "the last, keep all"
                )
            kept = others(opened, again.dropped) if len(again.dropped) else None
        n = opened.n_subjects if kept is None else len(kept)
        if size is None:
            earlier = volumes_beside(path)
            with (
                output_errors(path),
                replacement(path) as temporary,
                gathered(opened, kept, path, memory, progress) as layout,
            ):
                fill(temporary, layout)
            remove_volumes(earlier)
        else:
            with VolumeFiles(output, read, overwrite) as files, output_errors(path), Spool(path.parent) as spool:
                take_all_but_residues(spool, opened, kept)
                fill_volumes(files, spool, opened, kept, ends_by_size(spool, size), memory, progress)
        return Edited(n, opened.n_subjects - n, 0, n)


def duplicates_in(database: Database, rule: OnDuplicate, memory: int, first_new: int = 0) -> Duplicates:
    """Find the subjects that have the identifier of another; see `duplicates_among`."""
    return duplicates_among(database.all_headers, database.n_subjects, first_new, rule, memory)


def several(found: Duplicates) -> str:
    """Say which identifiers several records have."""
    names = ", ".join(map(shown, found.shown)) + (", ..." if found.n_identifiers > len(found.shown) else "")
    if found.n_identifiers == 1:
        return f"more than one record is named {names}"
    return f"{found.n_identifiers:,} identifiers would each have more than one record: {names}"
