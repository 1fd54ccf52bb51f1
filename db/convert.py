"""Conversion of databases of earlier formats; every byte is checked.

Files before format 4 have no table of contents. h5py finds their arrays, which are checked as contents are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from swsearch.db.building import write_database
from swsearch.db.byte_source import FileSource
from swsearch.db.database import Database
from swsearch.db.database_files import (
    SHOWN_IDENTITY,
    OpenFile,
    PathLike,
    check_compatible,
    is_manifest,
    open_file,
    volume_path,
)
from swsearch.db.editing import make_record_taxa, read_segments
from swsearch.db.fasta import ReadProgress
from swsearch.db.file_contents import (
    ArrayEntry,
    Contents,
    ContentsError,
    SegmentEntry,
    check_segment,
    kind_from_attributes,
)
from swsearch.db.format import ARRAY_TYPES, FORMAT_NAME, FORMAT_VERSION, OLD_MANIFEST, USER_BLOCK
from swsearch.db.hdf5_view import hdf5_view
from swsearch.db.new_files import MAX_VOLUME_BYTES, NewDatabase
from swsearch.db.records import BUILD_MEMORY, check_memory, segment_limit
from swsearch.errors import DatabaseDamageError, DatabaseError, check_flag

REMOVED_ARRAYS = frozenset({"known_taxids"})
"""Arrays that earlier formats had and this one has not: which taxids NCBI knew."""

OLD_PIECE_BYTES = 1 << 20
"""Bytes of an array under one CRC-32 in the formats before 4."""

_OLD_BLOCK = re.compile(rb"%s\nformat ([123])\nbytes (\d{1,18})\nsha256 ([0-9a-f]{64})\n\0*" % FORMAT_NAME.encode())


def convert_database(
    path: PathLike,
    output: PathLike,
    *,
    memory: int = BUILD_MEMORY,
    overwrite: bool = True,
    progress: ReadProgress | None = None,
) -> None:
    """Write a database of an earlier format anew in the present one.

    Results of searches, masks, taxa and the order of the subjects stay the same.

    Parameters
    ----------
    path : path
        The old database, or the manifest of its volumes; it stays as it is.
    output : path
        The new database, or the new manifest: its volumes are written beside it.
    memory : int, optional
        Working memory in bytes, at least 64 MiB. All residues are read once for each third of it that the records of
        an old segment take.
    overwrite : bool, optional
        Replace a database, in volumes or not, that has this name. Other files are never replaced.
    progress : callable, optional
        Called now and then with bytes copied and their total.

    Raises
    ------
    DatabaseError
        If there is no such database, or it needs no conversion.
    DatabaseDamageError
        If a byte of it is not as it was written.
    OutputError
        If the database cannot be written; nothing is left behind.
    """
    memory = check_memory(memory)
    check_flag("overwrite", overwrite)
    name = os.fsdecode(path)
    volumes = _volumes_of(name) if is_manifest(name) else [(name, "")]
    files = [_old_file(volume, name, sha256) for volume, sha256 in volumes]
    check_compatible(files)
    kind, size = files[0].contents.kind, MAX_VOLUME_BYTES if is_manifest(name) else None
    with NewDatabase(
        output, [name, *(volume for volume, _ in volumes)], kind, overwrite=overwrite, volume_size=size
    ) as new:
        old = Database(files)
        streams = (read_segments(old, segment_limit(memory), progress, None, volume) for volume in old.volumes)
        write_database(new, streams, memory, make_record_taxa(old))


def _already_new(path: str) -> DatabaseError:
    return DatabaseError(f"{path}: is of format {FORMAT_VERSION}, expected an earlier one; use it as it is")


def _volumes_of(name: str) -> list[tuple[str, str]]:
    """Return the paths of the volumes of an old manifest, and the SHA-256 of each."""
    try:
        manifest = json.loads(Path(name).read_text(encoding="utf-8-sig"))
        if manifest["format"] != OLD_MANIFEST:
            raise _already_new(name)
        return [(volume_path(name, str(each["path"])), str(each["sha256"])) for each in manifest["volumes"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DatabaseDamageError(name, ["it is not a manifest that swsearch wrote"]) from error


def _old_file(path: str, manifest: str, sha256: str) -> OpenFile:
    """Open a file of an earlier format, and check its SHA-256, and that of a manifest if there is one."""
    source = FileSource(path)
    head = source.read(0, USER_BLOCK)
    block = _OLD_BLOCK.fullmatch(head)
    if block is None:
        open_file(path)  # says what it is, if it is no database
        raise _already_new(path)
    if source.n_bytes != int(block[2]) + USER_BLOCK:
        what = "truncated" if source.n_bytes < int(block[2]) + USER_BLOCK else "too long"
        raise source.damage_error([f"{what}: {source.n_bytes} bytes, expected {int(block[2]) + USER_BLOCK}"])
    source.check_written()
    sha256_read = block[3].decode()
    if sha256 and sha256 != sha256_read:
        raise DatabaseError(
            f"{path}: is not the volume that {manifest} names (SHA-256 {sha256_read[:SHOWN_IDENTITY]}, expected "
            f"{sha256[:SHOWN_IDENTITY]}); restore that file, or build the volumes again"
        )
    with open(source.fileno(), "rb", closefd=False) as file:
        file.seek(USER_BLOCK)
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256_read:
            raise source.damage_error([f"bytes {USER_BLOCK} to {source.n_bytes}: SHA-256 differs"])
    seen = hdf5_view(source, source.n_bytes)
    try:
        attributes = {
            "mask": "none",
            **seen["attributes"],
            "taxids": int(seen["attributes"].get("parts") == "taxonomy"),
        }
        segments = [_old_segment(source, *each) for each in seen["segments"].items()]
        if not segments:
            raise ContentsError("no segments found")
        kind = kind_from_attributes(attributes)
        for segment in segments:
            if sorted(segment.arrays) != kind.arrays:
                raise ContentsError(f"a segment has the arrays {', '.join(segment.arrays)}")
        return OpenFile(source, Contents(kind, tuple(segments), n_bytes=source.n_bytes))
    except ContentsError as error:
        raise DatabaseDamageError(source.name, [str(error)]) from error


def _old_segment(source: FileSource, number: str, seen: dict[str, Any]) -> SegmentEntry:
    arrays: dict[str, ArrayEntry] = {}
    for name, (dtype, shape, at) in sorted(seen["arrays"].items()):
        if name in REMOVED_ARRAYS:
            continue
        sums_dtype, sums_shape, sums_at = seen["checksums"].get(name, ["", [], -1])
        if name not in ARRAY_TYPES or dtype.lstrip("|") != ARRAY_TYPES[name]:
            raise ContentsError(f"/segments/{number}/{name} has an unexpected type")
        entry = ArrayEntry(name, tuple(shape), at, sums_at, None, OLD_PIECE_BYTES)
        inside = 0 <= at <= at + entry.n_bytes <= source.n_bytes and sums_at >= 0
        if [sums_dtype, sums_shape] != ["<u4", [entry.n_pieces]] or not inside:
            raise ContentsError(f"/segments/{number}/{name} has an unexpected shape or place")
        arrays[name] = entry
    return check_segment(f"/segments/{number}", SegmentEntry(seen["attributes"], arrays))
