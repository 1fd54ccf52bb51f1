"""Files of a database, one or several, whose subjects follow each other."""

from __future__ import annotations

import codecs
import json
import os
import re
import shlex
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from swsearch.db.byte_source import FileSource
from swsearch.db.file_contents import (
    MAX_CONTENTS_BYTES,
    Contents,
    ContentsError,
    FileEntry,
    UserBlock,
    read_contents,
    version_of,
)
from swsearch.db.foreign_formats import foreign_database
from swsearch.db.format import FORMAT_NAME, FORMAT_VERSION, OLD_MANIFEST, USER_BLOCK, DatabaseKind
from swsearch.errors import DatabaseDamageError, DatabaseError, OptionError, SwsearchWarning

PathLike = str | os.PathLike[str]

Paths = PathLike | Iterable[PathLike]
"""A database file or a manifest, or several of either."""

MANIFEST_HEAD = 1 << 12
"""Bytes at the beginning of a file in which a manifest must say what it is."""

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

SHOWN_IDENTITY = 12
"""Digits of an identity that a message shows."""


def _head_of(path: PathLike) -> bytes:
    """Return the first bytes of a file; none of what cannot be read, and none of a pipe, where looking reads."""
    try:
        return FileSource(os.fsdecode(path)).read(0, MANIFEST_HEAD)
    except DatabaseError:
        return b""


def is_manifest(path: PathLike) -> bool:
    """Return whether a file begins as a manifest of any version."""
    head = _head_of(path)
    begins = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    names = f"{FORMAT_NAME}|{OLD_MANIFEST}".encode()
    return begins and re.search(rb'"format"\s*:\s*"(%s)"' % names, head) is not None


def is_database(path: PathLike) -> bool:
    """Return whether a file is HDF5 or a manifest; False if it cannot be read.

    HDF5's signature may be at offset 0, 512, 1024 or a further doubling. `Database.open` checks whether the file is
    ours.
    """
    try:
        return is_manifest(path) or _has_signature(FileSource(os.fsdecode(path)))
    except DatabaseError:
        return False


def _has_signature(source: FileSource) -> bool:
    """Return whether a file has HDF5's signature at byte 0, 512, 1024 or a further doubling."""
    places = [0, *(USER_BLOCK << k for k in range(max(source.n_bytes // USER_BLOCK, 1).bit_length()))]
    return any(source.read(at, len(HDF5_SIGNATURE)) == HDF5_SIGNATURE for at in places)


@dataclass(frozen=True)
class OpenFile:
    """An open file with its contents."""

    source: FileSource
    contents: Contents

    @property
    def path(self) -> str:
        """The file's absolute path; empty for what has no name."""
        return str(Path(self.source.path).absolute()) if self.source.path else ""

    @cached_property
    def identity(self) -> str:
        """Checksum of its content, lower-case hexadecimal."""
        return self.contents.identity()


def open_file(path: str) -> OpenFile:
    """Open a database file or a manifest and read its contents."""
    source = FileSource(path)
    head = source.read(0, USER_BLOCK)
    try:
        return _open_source(source)
    except BaseException as error:
        is_other = isinstance(error, DatabaseError) and (source.has_changed() or source.read(0, USER_BLOCK) != head)
        source.close()
        if not is_other:  # by an append just now
            raise
    return _open_source(FileSource(path))


def _open_source(source: FileSource) -> OpenFile:
    head = source.read(0, USER_BLOCK)
    version = version_of(head)
    if version is None and not is_manifest(source.path):
        raise _not_a_database_error(source, head)
    if version not in (None, FORMAT_VERSION):
        raise _version_error(source.path, version)
    try:
        contents = read_contents(source)
    except ContentsError as error:
        other = _manifest_error(source) if version is None else None
        raise other or source.damage_error([str(error)]) from error
    if contents.segments:
        source.check_written()
    return OpenFile(source, contents)


def _not_a_database_error(source: FileSource, head: bytes) -> DatabaseError:
    """Make the error for a file that is no database of any version."""
    if _has_signature(source):
        if FORMAT_NAME.encode() in head or b"\ncontents " in head or b"\nsha256 " in head:
            return DatabaseDamageError(source.name, [f"user block (bytes 0 to {USER_BLOCK})"])
        return DatabaseError(f"{source.name}: is HDF5 but not a swsearch database; build one with: swsearch db build")
    # a FASTA file may be beside databases that were made of it
    what = "" if head[:1] == b">" else foreign_database(source.path, head[:32])
    what = what or "is not a swsearch database; build one from FASTA with: swsearch db build"
    return DatabaseError(f"{source.name}: {what}")


def _manifest_error(source: FileSource) -> DatabaseError | None:
    """Make the error for a manifest that another version of swsearch wrote; None for any other."""
    with suppress(ValueError, RecursionError):
        manifest = json.loads(source.read(0, min(source.n_bytes, MAX_CONTENTS_BYTES)))
        version = manifest.get("format_version") if isinstance(manifest, dict) else None
        if type(version) is int and (version > FORMAT_VERSION or manifest.get("format") == OLD_MANIFEST):
            return _version_error(source.path, version)
    return None


def _version_error(path: str, version: int) -> DatabaseError:
    """Make the error for a file, or a manifest, that a later or an earlier swsearch wrote."""
    if version > FORMAT_VERSION:
        limit = f"this swsearch reads up to {FORMAT_VERSION}; upgrade swsearch or rebuild"
        return DatabaseError(f"{path}: format version {version}, {limit}")
    new = "NEW.json" if is_manifest(path) else "NEW.h5"
    return DatabaseError(
        f"{path}: got format {version}, expected format {FORMAT_VERSION}; write a new one with: "
        f"swsearch db convert {shlex.quote(path)} {new}"
    )


def volume_path(listed: str, name: str) -> str:
    """Return the path of a manifest's volume: beside the manifest, or beside the file that it links to."""
    for folder in (Path(listed).parent, Path(listed).resolve().parent):
        with suppress(OSError, ValueError):  # such as a name that is too long, which is not there either
            (folder / name).stat()
            return str(folder / name)
    beside = Path(listed).parent / name
    raise DatabaseError(f"{listed}: volume {beside} not found; restore it, or build the volumes again")


def open_files(paths: Paths) -> tuple[list[str], list[OpenFile]]:
    """Open database files and those of manifests; return the given names, and the files in order."""
    names = [os.fsdecode(paths)] if isinstance(paths, (str, os.PathLike)) else check_names("path", paths)
    with ExitStack() as stack:
        files = [file for name in names for file in _files_of(name, stack)]
        check_compatible(files)
        stack.pop_all()  # they stay open
    return names, files


def check_files(paths: Any) -> None:
    """Raise `OptionError` unless files make a `Database`: a caller may have given its class a path."""
    if isinstance(paths, (list, tuple)) and paths and all(isinstance(each, OpenFile) for each in paths):
        return
    remedy = "use Database.open for files, Database.from_records for sequences"
    if isinstance(paths, (str, os.PathLike)):
        remedy = f"use Database.open({os.fspath(paths)!r})"
    raise OptionError("Database", paths, "a call of one of its class methods", remedy)


def check_names(argument: str, paths: Any) -> list[str]:
    """Return the names of several files, at least one, or raise `OptionError`."""
    names = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, (str, bytes)) else []
    if not names or not all(isinstance(name, (str, os.PathLike)) for name in names):
        raise OptionError(argument, paths, "names of databases, at least one")
    return [os.fsdecode(name) for name in names]


def _files_of(name: str, stack: ExitStack) -> Iterator[OpenFile]:
    """Open a file, or those of a manifest, each of which must be the one that is listed."""
    file = open_file(name)
    stack.callback(file.source.close)
    if file.contents.segments:
        yield file
        return
    for entry in file.contents.files:
        yield open_volume(name, file.contents.kind, entry, stack)


def open_volume(name: str, kind: DatabaseKind, entry: FileEntry, stack: ExitStack) -> OpenFile:
    """Open a file that a manifest of some kind names; raise if it is another one."""
    file = open_file(volume_path(name, entry.path))
    stack.callback(file.source.close)
    if file.contents.files:
        raise DatabaseError(f"{file.source.path}: is a manifest itself, expected a database file in {name}")
    if file.identity != entry.identity:
        got, expected = (each[:SHOWN_IDENTITY] for each in (file.identity, entry.identity))
        raise DatabaseError(
            f"{file.source.path}: is not the volume that {name} names (identity {got}, expected {expected}); "
            "restore that file, or build the volumes again"
        )
    for count in ("n_subjects", "n_residues"):
        if file.contents.total(count) != getattr(entry, count):
            problem = f"volume {entry.path}: {count} is {getattr(entry, count)}, the file has "
            raise DatabaseDamageError(name, [f"{problem}{file.contents.total(count)}"])
    if file.contents.kind != kind:
        raise DatabaseDamageError(name, [f"it says {kind.attributes}, {entry.path} says otherwise"])
    return file


def check_compatible(files: Sequence[OpenFile]) -> None:
    """Check that files can be one database; warn if two have the same content.

    It raises `DatabaseError` if a file is given twice, or has another mask, alphabet or genetic code than the first.
    """
    first, seen, copies = files[0], set(), []
    names_by_identity: dict[str, str] = {}
    for file in files:
        name, kind, other = file.source.name, file.contents.kind, first.contents.kind
        if kind.mask != other.mask:
            raise DatabaseError(
                f"{name}: was built with the mask {kind.mask}, {first.source.name} with {other.mask}; build both "
                "with the same --mask to search them together"
            )
        if (kind.genetic_code, kind.alphabet) != (other.genetic_code, other.alphabet):
            what = f"{kind.description}, {first.source.name} {other.description}"
            raise DatabaseError(f"{name}: holds {what}; search them separately")
        if file.source.file in seen:
            raise DatabaseError(f"{name}: is given twice; name each file once")
        seen.add(file.source.file)
        same = names_by_identity.setdefault(file.identity, name)
        copies += [(name, same)] if same != name else []
    if copies:
        more = f", and {len(copies) - 1} more are copies" if len(copies) > 1 else ""
        text = f"{copies[0][0]}: is a copy of {copies[0][1]}{more}; their subjects are searched twice"
        warnings.warn(text, SwsearchWarning, stacklevel=2)


@dataclass(frozen=True)
class Volume:
    """One of the files that a database consists of.

    Parameters
    ----------
    path : str
        Absolute; empty for what is in memory, or in a temporary file.
    first : int
        The ordinal of its first subject.
    n_subjects, n_residues : int
        Its size.
    residue_bytes : int
        Bytes of its interleaved residues, padding included.
    """

    path: str
    first: int
    n_subjects: int
    n_residues: int
    residue_bytes: int
    _identity: str = field(repr=False, compare=False)
    _n_bytes: int = field(repr=False, compare=False)

    @classmethod
    def from_file(cls, file: OpenFile, first: int) -> Volume:
        """Describe an open file, which its user may close."""
        contents = file.contents
        n_bytes = sum(each.arrays["residues"].n_bytes for each in contents.segments if "residues" in each.arrays)
        n_subjects, n_residues = (contents.total(name) for name in ("n_subjects", "n_residues"))
        return cls(file.path, first, n_subjects, n_residues, n_bytes, file.identity, file.source.n_bytes)

    def identity(self) -> str:
        """Return what tells its content from that of others, as `Database.identity` of the file alone does."""
        return self._identity

    def info(self) -> dict[str, Any]:
        """Return what `Database.info` says of one file among several."""
        return {
            "path": self.path or None,
            "identity": self._identity,
            "n_subjects": self.n_subjects,
            "n_residues": self.n_residues,
            "n_bytes": self._n_bytes if self.path else None,
        }


def read_totals(path: PathLike) -> dict[str, int]:
    """Return how much a database holds: subjects, residues, empty ones; volumes or a genetic code if any."""
    _, files = open_files(path)
    names = ("n_subjects", "n_residues", "n_empty")
    totals = {name: sum(file.contents.total(name) for file in files) for name in names}
    if is_manifest(path):
        totals["volumes"] = len(files)
    if (code := files[0].contents.kind.genetic_code) is not None:
        totals["genetic_code"] = code
    return totals


def fingerprint_of(path: PathLike) -> str:
    """Return the SHA-256 of the newest contents of a database file, which cover all of its arrays; '' if it has none.

    The file's arrays are not read.
    """
    block = UserBlock.parse(_head_of(path)[:USER_BLOCK])
    return "" if block is None else block.contents.sha256
