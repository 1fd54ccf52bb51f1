"""Cut a database that there is into volumes, without the files that it was built from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice, pairwise

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.build import BUILD_MEMORY, checked_memory
from swsearch.db.cuts import MOST_BUILT, VolumeRun, ends_by_number, ends_by_size, runs_of
from swsearch.db.database import Database
from swsearch.db.disk import Amount, DiskWatch
from swsearch.db.entries import rows_of
from swsearch.db.fasta import ReadProgress
from swsearch.db.layout import Layout, group_budget, piece_budget
from swsearch.db.numbers import MIB, NumberFile, RunFile
from swsearch.db.parts import SpoolPart
from swsearch.db.regroup import Groups, group_bounds
from swsearch.db.spool import Spool
from swsearch.db.taxids import SubjectTaxids, add_part
from swsearch.db.volume_files import VolumeFiles, checked_volume_size
from swsearch.db.writing import PathLike, fill, output_errors
from swsearch.errors import InputError, check_flag, whole_number
from swsearch.masking import Mask

SUBJECTS_AT_ONCE = 1 << 14
"""Subjects whose headers and masked runs are read at once."""

VOLUMES_AT_ONCE = 32
"""Volumes that are filled in one pass over the residues; each has three temporary files."""

MOST_CHUNK_BYTES = 8 * MIB
"""Interleaved residues that are read at once."""


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
        raise InputError("volume_size, volumes: expected one of both; give the size of a volume, or how many to make")
    if volume_size is not None:
        volume_size = checked_volume_size(volume_size)
    memory = checked_memory(memory)
    check_flag("overwrite", overwrite)
    with Database.open(database) as opened:
        names = [str(opened.name), *(volume.path for volume in opened.volumes if volume.path)]
        with (
            VolumeFiles(output, names, overwrite) as files,
            output_errors(files.path),
            Spool(files.path.parent) as spool,
        ):
            _take_all_but_residues(spool, opened)
            if volume_size is not None:
                ends = ends_by_size(spool, volume_size)
            else:
                ends = ends_by_number(spool, whole_number("volumes", volumes, 1, MOST_BUILT))
            _check_disk(spool, files)
            n_passes = -(-len(ends) // VOLUMES_AT_ONCE)
            said = _Said(progress, opened.residue_bytes * n_passes)
            runs = runs_of(spool, ends)
            while some := list(islice(runs, VOLUMES_AT_ONCE)):
                with ExitStack() as held:
                    parts = [held.enter_context(_part(spool, run, memory)) for run in some]
                    _fill_groups(opened, some, parts, said, min(MOST_CHUNK_BYTES, memory // 16))
                    for part in parts:
                        fill(files.new(), Layout(part, memory, opened.mask))
                        part.close()
            files.publish(opened.sources())


def _take_all_but_residues(spool: Spool, database: Database) -> None:
    """Read lengths, headers and masked runs, in the order of the input."""
    spool.sources += database.sources()
    tantan = spool.hold(RunFile(spool.folder)) if database.mask == "tantan" else None
    for first in range(0, database.n_subjects, SUBJECTS_AT_ONCE):
        places = np.arange(first, min(first + SUBJECTS_AT_ONCE, database.n_subjects))
        headers, offsets = database.headers_of(places)
        spool.add_known(database.lengths_of(places), headers, np.diff(offsets))
        spool.masks.add(*_runs(database, places, "lower"))
        if tantan is not None:
            tantan.add(*_runs(database, places, "tantan"))
    spool.tantan = tantan
    if database.has_taxa:
        add_part(spool, _taxa(spool, database))


def _taxa(spool: Spool, database: Database) -> SubjectTaxids:
    """Return the taxids of all subjects, and the taxonomy that they are of."""
    owners, taxids = spool.hold(NumberFile(spool.folder, "<i8")), spool.hold(NumberFile(spool.folder, "<i4"))
    for first in range(0, database.n_subjects, SUBJECTS_AT_ONCE):
        places = np.arange(first, min(first + SUBJECTS_AT_ONCE, database.n_subjects))
        found = database.taxids_of(places)
        owners.write(np.repeat(places, np.diff(found.offsets)))
        taxids.write(found.taxids)
    return SubjectTaxids(owners, taxids, (0, database.n_subjects), database.taxonomy)


def _runs(database: Database, places: IntArray, mask: Mask) -> tuple[IntArray, IntArray, IntArray]:
    """Return what a mask covers of some subjects: the subject of each run, its first residue and the one after it."""
    offsets, starts, ends = database.masked_of(places, mask)
    return np.repeat(places, np.diff(offsets)), starts.astype(np.int64), ends.astype(np.int64)


def _check_disk(spool: Spool, files: VolumeFiles) -> None:
    """Raise `OutputError` if the volumes will take more than is free."""
    amount = Amount.of(spool)
    DiskWatch(files.path, 0).check_amount(amount, amount.spooled - spool.n_residues)


def _part(spool: Spool, run: VolumeRun, memory: int) -> SpoolPart:
    """Return what a volume is laid out from; its residues are to come."""
    bounds = group_bounds(run.classes, group_budget(memory))
    return SpoolPart(spool, run, Groups(spool.folder, run.classes, bounds, piece_budget(memory)))


class _Said:
    """Says how much of a known number of bytes was read.

    Parameters
    ----------
    progress : callable, optional
        Told of it.
    total : int
        All of them.
    """

    def __init__(self, progress: ReadProgress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, n_bytes: int) -> None:
        """Count more."""
        self._done += n_bytes
        if self._progress is not None:
            self._progress(self._done, self._total)


def _fill_groups(
    database: Database, runs: Sequence[VolumeRun], parts: Sequence[SpoolPart], said: _Said, chunk_bytes: int
) -> None:
    """Give volumes their residues: one pass over all of the database, in which subjects come by length."""
    ends = np.array([run.records[1] for run in runs])
    first = runs[0].records[0]
    for chunk in database.chunks(chunk_bytes, mask="none"):
        if chunk.subjects.min() < ends[-1] and chunk.subjects.max() >= first:
            found: dict[int, list[tuple[IntArray, npt.NDArray[np.int32], ByteArray]]] = {}
            for rows, lengths, subjects in rows_of(chunk):
                of = np.searchsorted(ends, subjects, side="right")
                of[subjects < first] = len(runs)
                by_volume = np.argsort(of, kind="stable")
                cuts = np.searchsorted(of[by_volume], np.arange(len(runs) + 1)).tolist()
                for number, (a, b) in enumerate(pairwise(cuts)):
                    if a < b:
                        chosen = by_volume[a:b]
                        inside = np.arange(rows.shape[1]) < lengths[chosen, None]
                        place = subjects[chosen] - runs[number].records[0]
                        found.setdefault(number, []).append((place, lengths[chosen], rows[chosen][inside]))
            for number, each in found.items():
                groups = parts[number].groups
                assert groups is not None
                groups.add(*map(np.concatenate, zip(*each, strict=True)))
        said.add(chunk.residues.nbytes)
