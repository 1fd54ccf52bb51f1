"""Add a segment to a database file: in a new file beside it, renamed when all is on disk."""

from __future__ import annotations

import os
from contextlib import ExitStack

from swsearch.db.build import BUILD_MEMORY, Inputs, checked_inputs, checked_memory, read_inputs
from swsearch.db.contents import SegmentContents, read_contents
from swsearch.db.disk import DiskWatch
from swsearch.db.fasta import ReadProgress
from swsearch.db.format import BYTES_PER_CHECKSUM, is_manifest
from swsearch.db.layout import DatasetWriter, Layout, Sink
from swsearch.db.source import FileSource
from swsearch.db.spool import Spool
from swsearch.db.stored_array import StoredArray
from swsearch.db.streamed import check_content
from swsearch.db.taxids import without_taxa
from swsearch.db.verify import verify_source
from swsearch.db.writing import PathLike, check_output, fill, output_errors, replacement
from swsearch.errors import DatabaseError, OutputError, check_flag

COUNTED = ("n_subjects", "n_residues", "n_empty", "longest", "software")
"""Attributes of the root that the segments decide."""


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
    memory: int = BUILD_MEMORY,
    progress: ReadProgress | None = None,
    allow_dna: bool = False,
) -> None:
    """Add the records of FASTA files to a database, as a new segment; they are masked like the others.

    Parameters
    ----------
    path : path
        The database; it is replaced by a longer one when that is complete.
    inputs, memory, progress, allow_dna
        As for `build_database`.

    Raises
    ------
    DatabaseError
        If there is no such database, or it is damaged, which a copy would hide; or it is a manifest of volumes.
    SequenceError, OutputError, MemoryLimitError
        As for `build_database`; the database is then as it was.
    """
    names, memory = checked_inputs(inputs), checked_memory(memory)
    check_flag("allow_dna", allow_dna)
    if is_manifest(path):
        raise DatabaseError(
            f"{os.fsdecode(path)}: is a manifest of volumes, to which nothing is appended; build a database of the"
            " new sequences and search both, or make the volumes again"
        )
    _open(path).close()  # what is wrong with it is said before the inputs are read
    resolved = check_output(path, names, True)
    with (
        output_errors(resolved),
        ExitStack() as held,
        Spool(resolved.parent) as spool,
        replacement(resolved) as temporary,
    ):
        disk = DiskWatch(resolved, memory, resolved.stat().st_size)
        read_inputs(spool, names, memory, progress, allow_dna, disk)
        source = _open(resolved)
        held.callback(source.close)  # after the renaming, until which its turn lasts
        verify_source(source, content=False)  # a copy would hide the damage
        contents = read_contents(source)
        check_content(source, contents)
        if "taxonomy" in contents.parts:
            without_taxa(spool)
        layout = Layout(spool, memory, contents.mask)
        earlier = [(CopiedSegment(source, each), each.attributes) for each in contents.segments]
        root = {name: value for name, value in contents.attributes.items() if name not in COUNTED}
        fill(temporary, layout, earlier, root)
        source.take_turn()  # of two that find that the database stands, the second would undo what the first did
        if not source.stands():
            raise OutputError(f"{resolved}: changed while records were appended; append them again")


def _open(path: PathLike) -> FileSource:
    """Open a database and read its structure."""
    source = FileSource(os.fspath(path))
    try:
        read_contents(source)
    except BaseException:
        source.close()
        raise
    return source
