"""Subjects of databases on their way into other files: what split, remove, merge and append have in common.

All but the residues is read in the order of the input; the residues in one pass over the files, in which subjects
come by length. What grows with them stands in temporary files, but for 12 bytes for each subject where some are left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.cuts import VolumeRun, runs_of
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
from swsearch.errors import DatabaseError
from swsearch.options.words import Mask

SUBJECTS_AT_ONCE = 1 << 14
"""Subjects whose headers and masked runs are read at once."""

MOST_CHUNK_BYTES = 8 * MIB
"""Interleaved residues that are read at once."""


class Said:
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


def _some_at_a_time(database: Database, subjects: IntArray | None) -> Iterator[tuple[int, IntArray]]:
    """Yield subjects, some at a time, and the number of the first; all of a database where none are named."""
    n = database.n_subjects if subjects is None else len(subjects)
    for first in range(0, n, SUBJECTS_AT_ONCE):
        last = min(first + SUBJECTS_AT_ONCE, n)
        yield first, np.arange(first, last) if subjects is None else subjects[first:last]


def take_all_but_residues(spool: Spool, database: Database, subjects: IntArray | None = None) -> None:
    """Read lengths, headers, masked runs and optional parts of subjects.

    Parameters
    ----------
    spool : Spool
        Takes them; it is empty.
    database : Database
        Of which.
    subjects : ndarray, shape (n,), int64, optional
        Ordinals, ascending; all by default.
    """
    sources = _Sources(database)
    tantan = spool.hold(RunFile(spool.folder)) if database.mask == "tantan" else None
    for first, places in _some_at_a_time(database, subjects):
        headers, offsets = database.headers_of(places)
        lengths = database.lengths_of(places)
        sources.add(places, lengths)
        spool.add_known(lengths, headers, np.diff(offsets))
        spool.masks.add(*_runs(database, places, first, "lower"))
        if tantan is not None:
            tantan.add(*_runs(database, places, first, "tantan"))
    spool.sources += sources.found()
    spool.tantan = tantan
    if database.has_taxa:
        add_part(spool, _taxa(spool, database, subjects))


class _Sources:
    """Counts what of each file that a database was built from is taken."""

    def __init__(self, database: Database) -> None:
        self._sources = database.sources()
        self._ends = np.cumsum([source["records"] for source in self._sources], dtype=np.int64)
        self._counts = np.zeros((2, len(self._sources) + 1), dtype=np.int64)

    def add(self, subjects: IntArray, lengths: npt.NDArray[np.int32]) -> None:
        of = np.searchsorted(self._ends, subjects, side="right")
        np.add.at(self._counts[0], of, 1)
        np.add.at(self._counts[1], of, lengths)

    def found(self) -> list[dict[str, Any]]:
        counts = zip(self._sources, *self._counts[:, : len(self._sources)].tolist(), strict=True)
        return [{**source, "records": n, "residues": residues} for source, n, residues in counts if n]


def _taxa(spool: Spool, database: Database, subjects: IntArray | None) -> SubjectTaxids:
    """Return the taxids of subjects, and the taxonomy that they are of."""
    owners, taxids = spool.hold(NumberFile(spool.folder, "<i8")), spool.hold(NumberFile(spool.folder, "<i4"))
    for first, places in _some_at_a_time(database, subjects):
        found = database.taxids_of(places)
        owners.write(np.repeat(np.arange(first, first + len(places)), np.diff(found.offsets)))
        taxids.write(found.taxids)
    return SubjectTaxids(owners, taxids, (0, spool.n_subjects), database.taxonomy)


def _runs(database: Database, places: IntArray, first: int, mask: Mask) -> tuple[IntArray, IntArray, IntArray]:
    """Return what a mask covers of some subjects: whose each run is, its first residue, and the one after it."""
    offsets, starts, ends = database.masked_of(places, mask)
    owners = np.repeat(np.arange(first, first + len(places)), np.diff(offsets))
    return owners, starts.astype(np.int64), ends.astype(np.int64)


def check_disk(spool: Spool, output: Path) -> None:
    """Raise `OutputError` if what is laid out will take more than is free."""
    amount = Amount.of(spool)
    DiskWatch(output, 0).check_amount(amount, amount.spooled - spool.n_residues)


def part_to_fill(spool: Spool, run: VolumeRun, memory: int) -> SpoolPart:
    """Return what a file is laid out from; its residues are to come."""
    bounds = group_bounds(run.classes, group_budget(memory))
    return SpoolPart(spool, run, Groups(spool.folder, run.classes, bounds, piece_budget(memory)))


def fill_groups(
    database: Database,
    subjects: IntArray | None,
    parts: Sequence[tuple[VolumeRun, SpoolPart]],
    said: Said,
    chunk_bytes: int,
) -> None:
    """Give files their residues: one pass over all of the database, in which subjects come by length.

    Parameters
    ----------
    database : Database
        Of which.
    subjects : ndarray, shape (n,), int64, or None
        Ordinals of the records of the spool, ascending; all if None.
    parts : sequence of (VolumeRun, SpoolPart)
        What each file holds of the spool, one after the other.
    said : Said
        Told of the bytes that were read.
    chunk_bytes : int
        Interleaved residues to read at once.
    """
    runs = [run for run, _ in parts]
    ends, first = np.array([run.records[1] for run in runs]), runs[0].records[0]
    place_of: npt.NDArray[Any] | None = None
    if subjects is not None:
        small = database.n_subjects < np.iinfo(np.int32).max
        place_of = np.full(database.n_subjects, -1, dtype=np.int32 if small else np.int64)
        place_of[subjects] = np.arange(len(subjects), dtype=place_of.dtype)
    for chunk in database.chunks(chunk_bytes, mask="none"):
        found: dict[int, list[tuple[IntArray, npt.NDArray[np.int32], ByteArray]]] = {}
        for rows, lengths, ordinals in rows_of(chunk):
            places = ordinals if place_of is None else place_of[ordinals].astype(np.int64)
            of = np.searchsorted(ends, places, side="right")
            of[places < first] = len(runs)
            by_file = np.argsort(of, kind="stable")
            cuts = np.searchsorted(of[by_file], np.arange(len(runs) + 1)).tolist()
            for number, (a, b) in enumerate(pairwise(cuts)):
                if a < b:
                    chosen = by_file[a:b]
                    inside = np.arange(rows.shape[1]) < lengths[chosen, None]
                    place = places[chosen] - runs[number].records[0]
                    found.setdefault(number, []).append((place, lengths[chosen], rows[chosen][inside]))
        for number, each in found.items():
            groups = parts[number][1].groups
            assert groups is not None
            groups.add(*map(np.concatenate, zip(*each, strict=True)))
        said.add(chunk.residues.nbytes)


@contextmanager
def gathered(
    database: Database, subjects: IntArray | None, output: Path, memory: int, progress: ReadProgress | None = None
) -> Iterator[Layout]:
    """Give a layout of one segment that holds some subjects.

    Parameters
    ----------
    database : Database
        Of which.
    subjects : ndarray, shape (n,), int64, or None
        Ordinals, ascending, at least one that has residues; all if None.
    output : path
        The file that will hold them, in whose folder temporary files stand.
    memory : int
        Working memory in bytes.
    progress : callable, optional
        Called with bytes read and their total.
    """
    if database.genetic_code is not None:
        raise DatabaseError(
            f"{database.name}: records of a DNA database cannot be removed, replaced or merged; build it again from "
            "the output of swsearch db fetch --all"
        )
    with Spool(output.parent) as spool:
        take_all_but_residues(spool, database, subjects)
        check_disk(spool, output)
        (run,) = runs_of(spool, [spool.n_subjects])
        with part_to_fill(spool, run, memory) as part:
            said = Said(progress, database.residue_bytes)
            fill_groups(database, subjects, [(run, part)], said, min(MOST_CHUNK_BYTES, memory // 16))
            yield Layout(part, memory, database.mask)
