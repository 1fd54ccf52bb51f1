"""Changes of databases: append, remove, merge, split, and manifests."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from swsearch.blocks import IntArray
from swsearch.db import building, new_files
from swsearch.db.arrays import cut_into_groups, offsets_of
from swsearch.db.byte_source import FileSource
from swsearch.db.container import DatabaseFile, complete_changes
from swsearch.db.database import Database
from swsearch.db.database_files import OpenFile, PathLike, Paths, Volume, check_compatible, check_names, open_file
from swsearch.db.fasta import ReadProgress
from swsearch.db.file_contents import Contents, ContentsError, FileEntry
from swsearch.db.format import DatabaseKind
from swsearch.db.hdf5_view import differences
from swsearch.db.name_lookup import HeaderBatch, check_identifiers
from swsearch.db.records import (
    BUILD_MEMORY,
    RECORD_BYTES,
    InputOrigin,
    SegmentInput,
    check_memory,
    segment_limit,
    select_origins,
)
from swsearch.db.segment_writer import write_segment
from swsearch.db.taxid_assignment import RecordTaxa, check_taxa
from swsearch.errors import (
    DatabaseDamageError,
    DatabaseError,
    InputError,
    OptionError,
    OutputError,
    SwsearchWarning,
    check_choice,
    check_flag,
    format_value,
)
from swsearch.options.kinds import OnDuplicate
from swsearch.output_files import TemporaryFile, lock_for_change, remove_stale_files

SHOWN_MISSING = 3
"""Maximum number of missing identifiers in a message."""

MANY_SEGMENTS = 64
"""Segments of a database from which on a merge is worth its while."""


@dataclass(frozen=True)
class EditResult:
    """Counts of a change of a database.

    Parameters
    ----------
    added : int
        Number of new records.
    skipped : int
        Number of given records that were skipped, because their identifier exists.
    removed : int
        Number of removed records.
    n_subjects : int
        Number of records after the change.
    """

    added: int
    skipped: int
    removed: int
    n_subjects: int


def read_segments(
    database: Database, limit: int, progress: ReadProgress | None = None, dropped: IntArray | None = None,
    volume: Volume | None = None,
) -> Iterator[SegmentInput]:  # fmt: skip
    """Read the records of a database, or one of its volumes, ``limit`` bytes of memory at a time.

    Those with some ordinals, which ascend, shape (n,), are left out.
    """
    places = range(volume.first, volume.first + volume.n_subjects) if volume else range(database.n_subjects)
    gone = np.empty(0, dtype=np.int64) if dropped is None else dropped
    total = sum(each.stored_bytes for each in database._segments)
    done = sum(each.stored_bytes for each in database._segments if each.first < places.start)
    for segment in (each for each in database._segments if each.first in places):
        origins: list[tuple[InputOrigin, int]] = [
            ({name: source[name] for name in ("path", "sha256", "bytes")}, source["records"])
            for source in segment.sources()
        ]
        # no writer of swsearch leaves records without a source
        origins.append(({"path": database.name, "sha256": None, "bytes": 0}, segment.n_subjects))
        # all residues are read for records that take so much memory together
        others = sum(segment.stored[name].n_bytes for name in ("headers", "mask_starts", "mask_ends"))
        costs = segment.input_lengths() + np.int64(RECORD_BYTES + others // segment.n_subjects)
        for first, last in cut_into_groups(offsets_of(costs), limit // 2):
            records = segment.records(first, last)
            some = gone[slice(*np.searchsorted(gone, [segment.first + first, segment.first + last]))]
            remaining = np.setdiff1d(np.arange(first, last), some - segment.first, assume_unique=True)
            if len(some):
                records = records.take(remaining - first)
            if len(remaining):
                yield SegmentInput(records.parts, select_origins(origins, remaining))
            if progress is not None:
                progress(done + segment.stored_bytes * last // segment.n_subjects, total)
        done += segment.stored_bytes


def merge_databases(
    databases: Paths,
    output: PathLike,
    *,
    on_duplicate: OnDuplicate = "error",
    volume_size: int | None = None,
    memory: int = BUILD_MEMORY,
    overwrite: bool = True,
    progress: ReadProgress | None = None,
) -> EditResult:
    """Make one database of several, whose subjects follow each other; or of one whose segments are small.

    Parameters
    ----------
    databases : path or iterable of paths
        Database files and manifests, each file once; they must have the same mask and genetic code.
    output : path
        The database to write, none of those that are read; with ``volume_size`` the manifest of its volumes.
    on_duplicate : {"error", "skip", "keep"}, optional
        Rule for records with the same identifier, in one database or in two: raise an error, keep the first, or keep
        all.
    volume_size : int, optional
        As for `build_database`.
    memory : int, optional
        Working memory in bytes, at least 64 MiB.
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
    memory, size = check_memory(memory), new_files.check_volume_size(volume_size)
    check_flag("overwrite", overwrite)
    check_choice("on_duplicate", on_duplicate, building.DUPLICATE_RULES)
    names = check_names("databases", [databases] if isinstance(databases, (str, os.PathLike)) else databases)
    with Database.open(names) as opened:
        dropped: IntArray = np.empty(0, dtype=np.int64)
        read = [*names, *(volume.path for volume in opened.volumes)]
        new_files.check_output(output, read, overwrite)
        if on_duplicate != "keep":
            again = building.find_duplicates(opened.all_headers, opened.n_subjects, 0, memory)
            if on_duplicate == "error" and again.n_identifiers:
                raise InputError(
                    f"{os.fsdecode(output)}: {describe_duplicates(again)}; --on-duplicate skip keeps the first of "
                    f"each, keep all"
                )
            dropped = again.dropped
        stream = read_segments(opened, segment_limit(memory), progress, dropped)
        with new_files.NewDatabase(output, read, _kind_of(opened), overwrite=overwrite, volume_size=size) as new:
            building.write_database(new, [stream], memory, make_record_taxa(opened))
        n = opened.n_subjects - len(dropped)
        return EditResult(n, len(dropped), 0, n)


def split_database(
    database: PathLike,
    output: PathLike,
    *,
    volume_size: int,
    memory: int = BUILD_MEMORY,
    overwrite: bool = True,
    progress: ReadProgress | None = None,
) -> None:
    """Write a database as volumes and a manifest that names them; the database stays as it is.

    Searches of the manifest find what searches of the database find. Its subjects keep their order.

    Parameters
    ----------
    database : path
        A database file, or a manifest whose volumes are to be larger or smaller.
    output : path
        The list; ``trembl.json`` has its volumes ``trembl.000.h5``, ``trembl.001.h5`` and so on beside it. All of
        them appear when the last one is complete.
    volume_size : int
        Bytes that a file may have; one with a single subject may be larger.
    memory, overwrite, progress : optional
        As for `merge_databases`, which raises the same errors.
    """
    if volume_size is None:
        raise OptionError("volume_size", volume_size, "a number of bytes")
    merge_databases(
        [database], output, on_duplicate="keep", volume_size=volume_size, memory=memory, overwrite=overwrite,
        progress=progress,
    )  # fmt: skip


def _kind_of(database: Database) -> DatabaseKind:
    return DatabaseKind(database.mask, database.genetic_code, database.has_taxa, database.alphabet)


def make_record_taxa(database: Database) -> RecordTaxa | None:
    """Return what writes the taxa of records that come from a database; None if it has none."""
    return RecordTaxa(None, database.taxonomy) if database.has_taxa else None


def remove_records(
    path: PathLike,
    identifiers: Iterable[str],
    *,
    ignore_missing: bool = False,
    memory: int = BUILD_MEMORY,
    progress: ReadProgress | None = None,
) -> EditResult:
    """Remove records from a database; each file that has some of them is rewritten.

    Parameters
    ----------
    path : path
        The database or the manifest of its volumes; it stays as it is if anything fails.
    identifiers : iterable of str
        Identifiers as for `Database.find`; all records with one of them are removed.
    ignore_missing : bool, optional
        Whether to skip identifiers that are not found. By default they are an error, and nothing is removed.
    memory : int, optional
        Working memory in bytes, at least 64 MiB.
    progress : callable, optional
        Called now and then with bytes read and their total.

    Returns
    -------
    Edited

    Raises
    ------
    InputError
        If an identifier is not found, or no residue would be left.
    DatabaseError
        If there is no such database, or it is damaged.
    OutputError
        If the database cannot be written; it is then as it was.
    """
    memory = check_memory(memory)
    check_flag("ignore_missing", ignore_missing)
    names = check_identifiers(identifiers)
    resolved = new_files.check_output(path, [], True)
    with ExitStack() as stack:
        with new_files.output_errors(resolved):
            stack.enter_context(lock_for_change(resolved))
        before = open_file(str(resolved)).contents
        opened = stack.enter_context(Database.open(path))
        name_places, subjects = opened.find_many_as_arrays(names)
        missing = np.setdiff1d(np.arange(len(names)), name_places)
        if len(missing) and not ignore_missing:
            some = ", ".join(format_value(names[place]) for place in missing[:SHOWN_MISSING].tolist())
            more = ", ..." if len(missing) > SHOWN_MISSING else ""
            raise InputError(
                f"{os.fsdecode(path)}: {len(missing):,} of {len(names):,} identifiers not found: {some}{more}; "
                "nothing was removed; use --ignore-missing-ids to remove the others"
            )
        gone: IntArray = np.unique(subjects)
        if int(opened.lengths_of(gone).sum(dtype=np.int64)) == opened.n_residues:
            raise InputError(f"{opened.name}: no residues would be left; delete the file instead")
        if len(gone):
            check = partial(_check_unchanged, resolved, before, "removed; remove them again")
            size = new_files.MAX_VOLUME_BYTES if before.files else None
            with new_files.NewDatabase(resolved, [], _kind_of(opened), volume_size=size, check=check) as new:
                streams = _records_without(opened, before.files, gone, segment_limit(memory), progress)
                building.write_database(new, streams, memory, make_record_taxa(opened))
        return EditResult(0, 0, len(gone), opened.n_subjects - len(gone))


def _records_without(
    database: Database, listed: Sequence[FileEntry], gone: IntArray, limit: int, progress: ReadProgress | None
) -> Iterator[Iterator[SegmentInput] | FileEntry]:
    """Yield the records of each volume without some; the manifest's entry of a volume that keeps all."""
    for number, volume in enumerate(database.volumes):
        first, last = np.searchsorted(gone, [volume.first, volume.first + volume.n_subjects]).tolist()
        if first == last:
            yield listed[number]
        elif last - first < volume.n_subjects:
            yield read_segments(database, limit, progress, gone, volume)


def _check_unchanged(path: Path, before: Contents, what: str) -> None:
    """Raise if a program that heeds no lock has changed a database or its manifest."""
    if open_file(str(path)).contents != before:
        raise OutputError(f"{path}: changed while records were {what}")


def append_database(
    path: PathLike,
    inputs: building.Inputs,
    *,
    on_duplicate: OnDuplicate = "error",
    memory: int = BUILD_MEMORY,
    progress: ReadProgress | None = None,
    allow_dna: bool = False,
    taxids: PathLike | None = None,
    taxonomy: PathLike | None = None,
) -> EditResult:
    """Add the records of FASTA files to a database, masked like the others; what it has is not written again.

    To a database of DNA, DNA is added.

    Parameters
    ----------
    path : path
        The database file, which becomes longer when all is on disk; or a manifest, to which one is added.
    inputs : path or iterable of paths
        As for `build_database`.
    on_duplicate : {"error", "skip", "keep"}, optional
        Rule for a record whose identifier, the first word of its header, is in the database or in an earlier record
        of the inputs: append nothing and raise an error, skip the record, or keep both. Existing duplicates stay.
    memory, progress, allow_dna : optional
        As for `build_database`.
    taxids, taxonomy : path, optional
        As for `build_database`, for a database that was built with taxids. Without ``taxonomy`` taxa have the names,
        and stand below those, that the database has for them.

    Returns
    -------
    Edited

    Raises
    ------
    InputError
        If an identifier is there and ``on_duplicate`` is ``error``, or there are taxids for a database without any.
    DatabaseError
        If there is no such database, or it is damaged.
    SequenceError, OutputError, MemoryLimitError
        As for `build_database`; the database is then as it was.

    Warns
    -----
    SwsearchWarning
        Of records without a taxid in a database that has them for others, of taxids that no taxonomy has, and of many
        small segments.
    """
    names, memory = building.check_inputs(inputs), check_memory(memory)
    check_flag("allow_dna", allow_dna)
    check_choice("on_duplicate", on_duplicate, building.DUPLICATE_RULES)
    sources = check_taxa(taxids, taxonomy)
    with Database.open(path) as before:  # what is wrong is said before inputs are read
        kind = _kind_of(before)
        if sources is not None and not before.has_taxa:
            raise InputError(
                f"taxids: {before.name} has no taxids, so none can be appended; build the new records with "
                "--taxids and combine both with swsearch db merge"
            )
    resolved = new_files.check_output(path, names, True)
    building.check_free_space(resolved, names)
    taxa = RecordTaxa(sources) if kind.has_taxids else None
    stream = building.read_inputs(names, memory, progress, allow_dna, building.alphabet_of(kind))
    with new_files.output_errors(resolved), ExitStack() as stack:
        limit, dropped = segment_limit(memory), np.empty(0, dtype=np.int64)
        if on_duplicate == "skip":
            bare = DatabaseKind("none", kind.genetic_code, alphabet=kind.alphabet)
            file = building.anonymous_file(stream, bare, resolved.name, memory, False, resolved.parent)
            new = stack.enter_context(Database([file]))
        else:
            segments = building.prepare_segments(stream, kind, taxa, limit)
            segments = chain([next(segments)], segments)  # what fits the memory is read before others have to wait
        remove_stale_files(resolved.parent)
        is_locked = stack.enter_context(lock_for_change(resolved))
        there = open_file(str(resolved)).contents
        database = stack.enter_context(Database.open(path))
        if _kind_of(database) != kind:
            raise OutputError(f"{resolved}: changed while records were read; append the records again")
        if on_duplicate == "skip":
            dropped = _find_repeated(database, new, memory).dropped - database.n_subjects
            if len(dropped) == new.n_subjects:
                return EditResult(0, len(dropped), 0, database.n_subjects)
            segments = building.prepare_segments(read_segments(new, limit, None, dropped), kind, taxa, limit)
        if taxa is not None:
            taxa.there = database.taxonomy
        n = _append(resolved, database, segments, taxa, on_duplicate == "error", memory, there, is_locked)
        if taxa is not None and sources is None:
            warnings.warn(
                f"taxids: {database.name} has taxids, but none were given for {n:,} new records; use db append "
                "--taxids header, or a file of accessions and taxids",
                SwsearchWarning,
                stacklevel=2,
            )
        return EditResult(n, len(dropped), 0, database.n_subjects + n)


def _append(
    path: Path, database: Database, segments: Iterable[SegmentInput], taxa: RecordTaxa | None,
    is_checked: bool, memory: int, before: Contents, is_locked: bool,
) -> int:  # fmt: skip
    """Write segments into a database file, or into a new volume; return how many records they have.

    Where the file system has no locks, a copy of the file becomes longer and takes its place.
    """
    kind = _kind_of(database)
    with ExitStack() as stack:
        volume = new_files.NewFile(path, kind) if before.files else None
        copy = None if volume or is_locked else TemporaryFile(path)
        place = volume.temporary.path if volume else path
        if copy:
            stack.callback(copy.discard)
            place = Path(shutil.copyfile(path, copy.path))
        new_file = stack.enter_context(volume or _open_to_append(place, stack))
        for records in segments:
            write_segment(new_file, records)
            del records  # before the next are read
        if taxa is not None:
            taxa.write([new_file.sinks])
        added = new_file.finish()
        if is_checked:
            with Database([OpenFile(FileSource(str(place)), added)]) as new:
                duplicates = _find_repeated(database, new, memory)
            if duplicates.n_identifiers:
                raise InputError(
                    f"{database.name}: {describe_duplicates(duplicates)}; nothing was appended; --on-duplicate skip "
                    "keeps the old record, keep both records"
                )
        what = "read; append the records again"
        if place == path:
            _check_unchanged(path, before, what)
        new_file.commit(added)
        if place != path:
            _check_unchanged(path, before, what)
        if volume:
            new_files.publish_volumes(path, kind, [*before.files, volume])
        elif copy:
            new_files.publish_file(copy, path, new_files.existing_mode(path))
        n_segments = len(database._segments) + len(added.segments)
        if n_segments >= MANY_SEGMENTS:
            warnings.warn(
                f"{path}: has {n_segments:,} segments, which searches read one after the other; make large ones of "
                "them with: swsearch db merge",
                SwsearchWarning,
                stacklevel=3,
            )
        return added.total("n_subjects")


def _open_to_append(path: Path, stack: ExitStack) -> DatabaseFile:
    """Open a database file to append to it: complete an interrupted append, let h5py check it in another process."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    try:
        complete_changes(fd)
    except ContentsError as error:
        raise DatabaseDamageError(str(path), [str(error)]) from error
    file = open_file(str(path))
    stack.callback(file.source.close)
    # what HDF5 cannot read ends the process that looks, not this one, which is about to open it
    if problems := list(differences(file.source, file.contents)):
        raise file.source.damage_error(problems)
    return DatabaseFile(fd, file.contents)


def _find_repeated(database: Database, new: Database, memory: int) -> building.Duplicates:
    """Find the new records whose identifier another record has."""
    n = database.n_subjects

    def headers() -> Iterator[HeaderBatch]:
        yield from database.all_headers()
        for strips, first in new.all_headers():
            yield strips, first + n

    return building.find_duplicates(headers, n + new.n_subjects, n, memory)


def describe_duplicates(duplicates: building.Duplicates) -> str:
    """Return the text that lists identifiers of several records."""
    names = ", ".join(map(format_value, duplicates.examples)) + (
        ", ..." if duplicates.n_identifiers > len(duplicates.examples) else ""
    )
    if duplicates.n_identifiers == 1:
        return f"more than one record is named {names}"
    return f"{duplicates.n_identifiers:,} identifiers would each have more than one record: {names}"


def write_manifest(path: PathLike, volumes: Iterable[PathLike], *, overwrite: bool = True) -> None:
    """Write a manifest that makes one database of several files; little of them is read.

    Parameters
    ----------
    path : path
        The manifest; it appears under this name when it is complete.
    volumes : iterable of paths
        Database files, in order, in the manifest's folder or one below it.
    overwrite : bool, optional
        Whether to replace a database or manifest of this name. Other files are never replaced.

    Raises
    ------
    DatabaseError
        If a volume cannot be read, is there twice, or has another mask than the first.
    OutputError
        If the manifest cannot be written.
    """
    check_flag("overwrite", overwrite)
    names = check_names("volumes", volumes)
    files = [open_file(name) for name in names]
    check_compatible(files)
    entries = []
    for name, file in zip(names, files, strict=True):
        # a volume may be a link; the folders are compared as they are
        folder, inside = Path(path).resolve().parent, Path(name).parent.resolve() / Path(name).name
        if not inside.is_relative_to(folder):
            raise DatabaseError(f"{name}: is outside the folder of {os.fsdecode(path)}; move it into that folder")
        totals = (file.contents.total(count) for count in ("n_subjects", "n_residues"))
        entries.append(FileEntry(inside.relative_to(folder).as_posix(), file.identity, *totals))
    target = new_files.check_output(path, names, overwrite)
    with new_files.output_errors(target), lock_for_change(target, is_needed=False):
        new_files.publish_manifest(target, files[0].contents.kind, entries)
