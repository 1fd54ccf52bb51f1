"""Check of every byte and every invariant of a database."""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from contextlib import ExitStack

from swsearch.db.arrays import StoredArray
from swsearch.db.database import segments_of
from swsearch.db.database_files import OpenFile, check_compatible, open_file, open_volume
from swsearch.db.file_contents import UserBlock
from swsearch.db.format import USER_BLOCK
from swsearch.db.hdf5_view import differences
from swsearch.errors import DatabaseDamageError, DatabaseError, SwsearchWarning

ATTEMPTS, APPEND_SECONDS = 8, 0.2
"""Checks of a file that appends change meanwhile, and seconds that an append may take to change HDF5's metadata."""


def verify_database(path: str | os.PathLike[str]) -> dict[str, int]:
    """Check a database file: every checksum, every invariant of the layout, and that HDF5 says what the contents say.

    Of a manifest every file is checked so, and that it is the one that the manifest names.

    Parameters
    ----------
    path : path
        The database file or the manifest.

    Returns
    -------
    dict of str to int
        What was checked: bytes, checksums, segments, blocks, subjects, residues; of a manifest the volumes too.

    Raises
    ------
    DatabaseError
        If there is no such file or it is no database.
    DatabaseDamageError
        If anything is not as it was written; lists every place found.

    Warns
    -----
    SwsearchWarning
        If an append was ended after its records were in, but before HDF5's metadata said so.
    """
    name = os.fsdecode(path)
    opened = open_file(name)
    if opened.contents.segments:
        return _verify_file(opened)
    counts: Counter[str] = Counter(volumes=len(opened.contents.files))
    errors: list[DatabaseError] = []
    files: list[OpenFile] = []
    with ExitStack() as stack:
        for entry in opened.contents.files:
            try:
                files.append(open_volume(name, opened.contents.kind, entry, stack))
                counts.update(_verify_file(files[-1]))
            except DatabaseError as error:
                errors.append(error)
    if len(errors) > 1:
        raise DatabaseDamageError(name, [problem for error in errors for problem in _problems_of(error)])
    if errors:
        raise errors[0]
    check_compatible(files)
    return dict(counts)


def _problems_of(error: DatabaseError) -> list[str]:
    if isinstance(error, DatabaseDamageError):
        return [f"{error.path}: {problem}" for problem in error.problems]
    return [str(error)]


def _verify_file(file: OpenFile, attempts: int = ATTEMPTS) -> dict[str, int]:
    """Check a file; where an append changed it meanwhile, what it is then."""
    try:
        return _check_open_file(file)
    except DatabaseError:
        if attempts == 1 or not file.source.has_changed():
            raise
    return _verify_file(open_file(file.source.name), attempts - 1)


def _check_open_file(file: OpenFile) -> dict[str, int]:
    """Check every byte of an open file, what the bytes say, and what HDF5 says of the file; return counts."""
    counts = {"bytes": file.source.n_bytes, "checksums": check_bytes(file)}
    segments = segments_of(file)
    problems = [f"{segment.name}: {problem}" for segment in segments for problem in segment.find_damage()]
    if problems := problems or _hdf5_problems(file):
        raise file.source.damage_error(problems)
    return counts | {
        "segments": len(segments),
        "blocks": sum(len(segment.block_offsets) - 1 for segment in segments),
        "subjects": sum(segment.n_subjects for segment in segments),
        "residues": sum(segment.lengths.n_residues for segment in segments),
    }


def _hdf5_problems(file: OpenFile) -> list[str]:
    """Return where HDF5's metadata say something else than the contents; warn if an append has yet to change them."""
    block = UserBlock.parse(file.source.read(0, USER_BLOCK))
    changes = None if block is None else block.changes
    if changes is None:
        return list(differences(file.source, file.contents))
    time.sleep(APPEND_SECONDS)
    if file.source.has_changed():
        return ["an append changes HDF5's metadata"]
    if not changes.matches(file.source.read(changes.at, changes.n_bytes)):
        return [f"changes of HDF5's metadata (byte {changes.at}): checksum differs"]
    text = "an append was ended before it had changed HDF5's metadata; the next append changes them"
    warnings.warn(f"{file.source.name}: {text}, until then other programs may not read the file", SwsearchWarning, 2)
    return []


def check_bytes(file: OpenFile) -> int:
    """Check every byte of the arrays of a file; return the number of checksums."""
    arrays = [
        StoredArray(file.source, each, f"/segments/{number}")
        for number, segment in enumerate(file.contents.segments)
        for each in segment.arrays.values()
    ]
    if problems := [problem for array in arrays for problem in array.find_damage()]:
        raise file.source.damage_error(problems)
    return sum(array.n_pieces for array in arrays)
