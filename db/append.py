"""Add a segment to a database file: in a copy beside it, renamed when all is on disk."""

from __future__ import annotations

import hashlib
from pathlib import Path

from swsearch.db.build import (
    BUILD_MEMORY,
    Inputs,
    PathLike,
    check_output,
    checked_inputs,
    checked_memory,
    fill,
    output_errors,
    read_inputs,
    replacement,
)
from swsearch.db.database import Database
from swsearch.db.fasta import ReadProgress
from swsearch.db.format import USER_BLOCK, UserBlock
from swsearch.db.layout import Layout
from swsearch.db.spool import MIB, Spool
from swsearch.errors import DatabaseDamageError, DatabaseError, OutputError, check_flag
from swsearch.masking import check_mask


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
        The database; it is replaced by a longer copy when that is complete.
    inputs, memory, progress, allow_dna
        As for `build_database`.

    Raises
    ------
    DatabaseError
        If there is no such database, or it is damaged; a copy would hide the damage.
    SequenceError, OutputError, MemoryLimitError
        As for `build_database`; the database is then as it was.
    """
    names, memory = checked_inputs(inputs), checked_memory(memory)
    check_flag("allow_dna", allow_dna)
    with Database.open(path) as database:
        mask = database.mask
    check_mask("mask", mask)
    resolved = check_output(path, names, True)
    with output_errors(resolved), Spool(resolved.parent, memory) as spool, replacement(resolved) as temporary:
        read_inputs(spool, names, memory, progress, allow_dna)
        layout = Layout(spool, memory, mask)
        before = resolved.stat()
        _copy(resolved, temporary)
        fill(temporary, layout, "r+")
        after = resolved.stat()
        if (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns):
            raise OutputError(f"{resolved}: changed while records were appended; append them again")


def _copy(path: Path, temporary: Path) -> None:
    """Copy a database, and raise if its bytes are not those that were written."""
    digest = hashlib.sha256()
    with path.open("rb") as old, temporary.open("wb") as new:
        head = old.read(USER_BLOCK)
        new.write(head)
        n_bytes = 0
        while piece := old.read(MIB):
            digest.update(piece)
            n_bytes += new.write(piece)
    block = UserBlock.parse(head)
    if block is None or block.n_bytes < 0:
        raise DatabaseError(f"{path}: is no swsearch database; make one with: swsearch db build")
    if UserBlock(block.version, n_bytes, digest.hexdigest()) != block:
        raise DatabaseDamageError(str(path), ["SHA-256 differs (swsearch db verify says where)"])
