"""Cut a database that there is into volumes, without the files that it was built from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice

from swsearch.blocks import IntArray
from swsearch.db.build import checked_memory
from swsearch.db.cuts import MOST_BUILT, ends_by_number, ends_by_size, runs_of
from swsearch.db.database import Database
from swsearch.db.fasta import ReadProgress
from swsearch.db.gathered import MOST_CHUNK_BYTES, Said, check_disk, fill_groups, part_to_fill, take_all_but_residues
from swsearch.db.layout import Layout
from swsearch.db.numbers import BUILD_MEMORY
from swsearch.db.spool import Spool
from swsearch.db.volume_files import VolumeFiles, checked_volume_size
from swsearch.db.writing import PathLike, fill, output_errors
from swsearch.errors import DatabaseError, InputError, check_flag, whole_number

VOLUMES_AT_ONCE = 32
"""Volumes that are filled in one pass over the residues; each has three temporary files."""


def split_database(
    database: PathLike,
    output: PathLike,
    *,
    volume_size: int | None = None,
    volumes: int | None = None,
    memory: int = BUILD_MEMORY,
    overwrite: bool = True,
    progress: ReadProgress | None = None,
) -> None:
    """Cut a database into volumes and write a manifest that names them; the database stays as it is.

    Searches of the manifest find what searches of the database find. Its subjects keep their order.

    Parameters
    ----------
    database : path
        A database file, or a manifest whose volumes are to be larger or smaller.
    output : path
        The manifest; ``trembl.json`` has its volumes ``trembl.000.h5``, ``trembl.001.h5`` and so on beside it. All of
        them appear when the last one is complete. Temporary files stand in their folder meanwhile: with the volumes
        that is 2 bytes for each residue and each byte of a header, and 48 for each record.
    volume_size : int, optional
        Bytes that the file of a volume may have; one with a single subject may be larger.
    volumes : int, optional
        How many volumes, with about as many residues each; instead of ``volume_size``.
    memory : int, optional
        Working memory in bytes, at least 64 MiB; besides, 4 bytes for each subject.
    overwrite : bool, optional
        Replace a database, in volumes or not, that has this name. Other files are never replaced.
    progress : callable, optional
        Called now and then with bytes read and their total.

    Raises
    ------
    InputError
        If there is not one of ``volume_size`` and ``volumes``, or it does not fit the database.
    DatabaseError
        If there is no such database, or it is damaged.
    OutputError
        If the volumes cannot be written, or the disk has not as much room as they take; nothing is left behind.
    MemoryLimitError
        If the 64 longest records need more than ``memory``.
    """
    if (volume_size is None) == (volumes is None):
        raise InputError(
            "volume_size, volumes: expected one of them; give the size of a volume, or the number of volumes"
        )
    if volume_size is not None:
        volume_size = checked_volume_size(volume_size)
    memory = checked_memory(memory)
    check_flag("overwrite", overwrite)
    with Database.open(database) as opened:
        if opened.genetic_code is not None:
            raise DatabaseError(
                f"{opened.name}: a DNA database cannot be split into volumes; build several smaller databases and "
                "search them together"
            )
        names = [str(opened.name), *(volume.path for volume in opened.volumes if volume.path)]
        with (
            VolumeFiles(output, names, overwrite) as files,
            output_errors(files.path),
            Spool(files.path.parent) as spool,
        ):
            take_all_but_residues(spool, opened)
            if volume_size is not None:
                ends = ends_by_size(spool, volume_size)
            else:
                ends = ends_by_number(spool, whole_number("volumes", volumes, 1, MOST_BUILT))
            fill_volumes(files, spool, opened, None, ends, memory, progress)


def fill_volumes(
    files: VolumeFiles,
    spool: Spool,
    database: Database,
    subjects: IntArray | None,
    ends: Sequence[int],
    memory: int,
    progress: ReadProgress | None,
) -> None:
    """Write volumes and their manifest.

    Parameters
    ----------
    files : VolumeFiles
        Where they go.
    spool : Spool
        All but the residues of the subjects.
    database : Database
        Of which they are.
    subjects : ndarray, shape (n,), int64, or None
        Their ordinals, ascending; all if None.
    ends : sequence of int
        The subject after each volume's last, counted from 0 over ``subjects``.
    memory : int
        Working memory in bytes.
    progress : callable, optional
        Called now and then with bytes read and their total.
    """
    check_disk(spool, files.path)
    n_passes = -(-len(ends) // VOLUMES_AT_ONCE)
    said = Said(progress, database.residue_bytes * n_passes)
    runs = runs_of(spool, ends)
    while some := list(islice(runs, VOLUMES_AT_ONCE)):
        with ExitStack() as held:
            parts = [(run, held.enter_context(part_to_fill(spool, run, memory))) for run in some]
            fill_groups(database, subjects, parts, said, min(MOST_CHUNK_BYTES, memory // 16))
            for _, part in parts:
                fill(files.new(), Layout(part, memory, database.mask))
                part.close()
    files.publish(database.sources() if subjects is None else spool.sources)
