"""Add a segment to a database file: in a new file beside it, renamed when all is on disk."""

from __future__ import annotations

import warnings
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path

import numpy as np

from swsearch.alphabet import DNA, PROTEIN
from swsearch.blocks import IntArray
from swsearch.db.build import Inputs, checked_inputs, checked_memory, layout_of, read_inputs
from swsearch.db.contents import Contents, SegmentContents, read_contents
from swsearch.db.database import Database
from swsearch.db.disk import DiskWatch
from swsearch.db.duplicates import check_rule, duplicates_among, headers_of_spool
from swsearch.db.edits import Edited, check_stands, open_to_change, others, several
from swsearch.db.fasta import ReadProgress
from swsearch.db.format import BYTES_PER_CHECKSUM
from swsearch.db.gathered import gathered
from swsearch.db.layout import DatasetWriter, Sink
from swsearch.db.numbers import BUILD_MEMORY
from swsearch.db.source import FileSource
from swsearch.db.spool import Spool
from swsearch.db.stored_array import StoredArray
from swsearch.db.streamed import check_content
from swsearch.db.taxids import TaxonSources, check_taxa, take_taxa, without_taxa
from swsearch.db.verify import verify_source
from swsearch.db.writing import PathLike, check_output, fill, output_errors, replacement
from swsearch.errors import InputError, OutputError, SwsearchWarning, check_flag
from swsearch.options.words import OnDuplicate
from swsearch.output_files import TemporaryFile, lock_for_change

COUNTED = ("n_subjects", "n_residues", "n_empty", "longest", "software")
"""Attributes of the root that the segments decide."""

NO_APPEND = (
    "expected a database file; build a database of the new sequences and search both, or merge the volumes with: "
    "swsearch db merge"
)


class CopiedSegment:
    """A segment of a database as a part of another.

    Parameters
    ----------
    source : Source
        The database's bytes.
    contents : SegmentContents
        Where they stand.
    """

    def __init__(self, source: FileSource, contents: SegmentContents) -> None:
        self._source, self._contents = source, contents

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every dataset."""
        return {name: dataset.shape for name, dataset in self._contents.datasets.items()}

    def write(self, sink: Sink) -> None:
        """Write every dataset and its checksums; every byte is checked once more."""
        for name, dataset in self._contents.datasets.items():
            stored = StoredArray(self._source, dataset, self._contents.checksums[name])
            writer = DatasetWriter(sink, name)
            step = 8 * BYTES_PER_CHECKSUM // max(stored.row, 1)
            for start in range(0, stored.shape[0], step):
                writer.write(stored.load(start, min(start + step, stored.shape[0])))
            writer.close()


def append_database(
    path: PathLike,
    inputs: Inputs,
    *,
    on_duplicate: OnDuplicate = "error",
    memory: int = BUILD_MEMORY,
    progress: ReadProgress | None = None,
    allow_dna: bool = False,
    taxids: PathLike | None = None,
    taxonomy: PathLike | None = None,
) -> Edited:
    """Add the records of FASTA files to a database, as a new segment; they are masked like the others.

    To a database of DNA, DNA is added.

    Parameters
    ----------
    path : path
        The database; it is replaced by a longer one when that is complete.
    inputs : path or iterable of paths
        As for `build_database`.
    on_duplicate : {"error", "skip", "replace", "keep"}, optional
        What to do with a record whose identifier, the first word of its header, the database has, or an earlier
        record of the inputs: refuse all of them; leave it out; have it in place of the other, as one of the last; or
        have both. Records that the database has beside each other stay so. Where some are left out or replaced, the
        database is sorted anew, which takes 16 bytes of memory for each subject besides.
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
        If there is no such database, or it is damaged, which a copy would hide; or it is a manifest of volumes.
    SequenceError, OutputError, MemoryLimitError
        As for `build_database`; the database is then as it was.

    Warns
    -----
    SwsearchWarning
        Of records without a taxid in a database that has them for others, and of taxids that no taxonomy has.
    """
    names, memory = checked_inputs(inputs), checked_memory(memory)
    check_flag("allow_dna", allow_dna)
    check_rule("on_duplicate", on_duplicate)
    taxa = check_taxa(taxids, taxonomy)
    code, has_taxa = earlier = _kind_of(path, taxa)
    resolved = check_output(path, names, True)
    with (
        output_errors(resolved),
        suppress(_NothingAddedError),
        ExitStack() as held,
        Spool(resolved.parent) as spool,
        replacement(resolved, is_locked=True) as temporary,
    ):
        disk = DiskWatch(resolved, memory, resolved.stat().st_size)
        read_inputs(spool, names, memory, progress, allow_dna, disk, PROTEIN if code is None else DNA)
        spool.finish()
        held.enter_context(lock_for_change(resolved))
        database, source = open_to_change(resolved, NO_APPEND)
        held.callback(source.close)
        if (database.genetic_code, database.has_taxa) != earlier:
            raise OutputError(f"{resolved}: changed while records were read; append the records again")
        verify_source(source, content=code is not None)  # a copy would hide the damage
        contents = read_contents(source)
        if code is None:
            check_content(source, contents)
        dropped = _dropped(database, spool, on_duplicate, memory)
        edited = _edited(database.n_subjects, spool.n_subjects, dropped)
        if not edited.added:
            raise _NothingAddedError
        if has_taxa:
            _take_taxa(spool, taxa, database)
        if len(dropped):
            _fill_joined(temporary, database, spool, dropped, memory)
        else:
            _fill_longer(temporary, source, contents, spool, memory)
        check_stands(source, "records were appended; append them again")
    return edited


def _edited(n_old: int, n_new: int, dropped: IntArray) -> Edited:
    """Count what is added to a database, left out and replaced."""
    n_gone = int(np.searchsorted(dropped, n_old))
    left_out = len(dropped) - n_gone
    return Edited(n_new - left_out, left_out, n_gone, n_old + n_new - len(dropped))


class _NothingAddedError(Exception):
    """Leaves the database as it is."""


def _kind_of(path: PathLike, taxa: TaxonSources | None) -> tuple[int | None, bool]:
    """Return a database's genetic code, and whether it has taxids; what is wrong is said before inputs are read."""
    with open_to_change(path, NO_APPEND)[0] as database:
        if taxa is not None and not database.has_taxa:
            raise InputError(
                f"taxids: {database.name} has no taxids, so none can be appended; build the new records with "
                "--taxids and combine both with swsearch db merge"
            )
        return database.genetic_code, database.has_taxa


def _take_taxa(spool: Spool, taxa: TaxonSources | None, database: Database) -> None:
    """Find the taxa of what was read, for a database that knows those of its records."""
    if taxa is not None:
        take_taxa(spool, taxa, database.taxonomy)
        return
    without_taxa(spool)
    warnings.warn(
        f"taxids: {database.name} has taxids, but none were given for {spool.n_subjects:,} new records; use db "
        "append --taxids header, or a file of accessions and taxids",
        SwsearchWarning,
        stacklevel=3,
    )


def _dropped(database: Database, spool: Spool, rule: OnDuplicate, memory: int) -> IntArray:
    """Return which records a rule leaves out, those of a database and those that were read counted together."""
    n_old = database.n_subjects
    if rule == "keep":
        return np.empty(0, dtype=np.int64)
    found = duplicates_among(
        lambda: chain(database.all_headers(), headers_of_spool(spool, n_old)),
        n_old + spool.n_subjects, n_old, rule, memory,
    )  # fmt: skip
    if rule == "error" and found.n_identifiers:
        raise InputError(
            f"{database.name}: {several(found)}; nothing was appended; --on-duplicate skip keeps the old record, "
            "replace the new record, keep both records"
        )
    return found.dropped


def _fill_longer(output: Path, source: FileSource, contents: Contents, spool: Spool, memory: int) -> None:
    """Write the segments of a database and one of what was read."""
    layout = layout_of(spool, memory, contents.mask, contents.genetic_code)
    earlier = [(CopiedSegment(source, each), each.attributes) for each in contents.segments]
    root = {name: value for name, value in contents.attributes.items() if name not in COUNTED}
    fill(output, layout, earlier, root)


def _fill_joined(output: Path, database: Database, spool: Spool, dropped: IntArray, memory: int) -> None:
    """Write a database of what was there and what was read, less what is dropped."""
    with ExitStack() as held:
        new = TemporaryFile(output)
        held.callback(new.discard)
        fill(new.path, layout_of(spool, memory, database.mask, database.genetic_code))
        more = held.enter_context(Database.open(new.path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SwsearchWarning)  # that one file is a copy of the other
            both = held.enter_context(Database.joined([database, more]))
        layout = held.enter_context(gathered(both, others(both, dropped), output, memory))
        fill(output, layout)
