"""Files of a new database: one, or volumes and a manifest.

They get their names when all bytes are on disk.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from swsearch.db.container import METADATA_BYTES, DatabaseFile, SegmentSink
from swsearch.db.database_files import PathLike, is_manifest, open_file
from swsearch.db.file_contents import Contents, FileEntry, pack_piece, version_of
from swsearch.db.format import USER_BLOCK, DatabaseKind
from swsearch.db.records import SegmentInput
from swsearch.db.segment_writer import segment_bytes, write_segment
from swsearch.errors import DatabaseError, OptionError, OutputError, check_integer
from swsearch.output_files import TemporaryFile, is_same_file, lock_for_change, sync_folder

NOTES_SUFFIX = ".swsearch-volumes"
"""End of the hidden name of a file that lists the volumes being made or removed."""

ENDINGS = (".json", ".h5")
"""Endings of a manifest's name that the names of its volumes do not have before their numbers."""

MAX_VOLUMES = 500
"""Maximum number of files of a database: many processes may have only 1,024 open files."""

MAX_VOLUME_BYTES = 1 << 62
"""Largest size of a volume that can be asked for."""


def check_volume_size(volume_size: int | None) -> int | None:
    """Return the size that the files of volumes may have, or raise `OptionError` if it is none."""
    if volume_size is None:
        return None
    return check_integer("volume_size", volume_size, 1, MAX_VOLUME_BYTES, "a number of bytes")


def _reason(error: Exception) -> str:
    """Return why a file could not be written, with the remedy."""
    number = getattr(error, "errno", None)
    text = os.strerror(number) if number else str(error)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"{text}; free space there or choose another folder"
    if number == errno.EFBIG:
        return f"{text}; raise the limit on file sizes (ulimit -f) or choose another file system"
    if number == errno.EMFILE:
        return f"{text}; allow this process more with: ulimit -n"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{text}; choose a folder that you may write to"
    return text


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system, which HDF5's are too, into ones that name the output."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {_reason(error)}") from error


def check_output(output: PathLike, inputs: Sequence[str], overwrite: bool) -> Path:
    """Check the output before the work begins; return the file to replace."""
    output_name = os.fspath(output)
    path = Path(output).resolve()
    with output_errors(path):
        if not path.parent.is_dir():
            raise OutputError(f"{output_name}: folder {path.parent} not found; create it or choose another name")
        if path.is_dir():
            raise OutputError(f"{output_name}: is a directory, expected a file name for the database")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OutputError(f"{output_name}: no permission to write to {path.parent}; choose another folder")
        if path.exists():
            gone = [path, *(path.with_name(each.path) for each in _own_volumes(path))]
            for each in (each for each in gone for name in inputs if name != "-" and is_same_file(each, name)):
                raise OutputError(f"{each}: is one of the inputs; choose another name for the database")
            if not _may_replace(path):
                raise OutputError(f"{output_name}: exists and is not a swsearch database; choose another name")
            if not overwrite:
                raise OutputError(f"{output_name}: exists; choose another name or allow to overwrite it")
    return path


def _may_replace(path: Path) -> bool:
    """Return whether a file is a database, a manifest, or empty."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return False
    with path.open("rb") as file:
        return status.st_size == 0 or version_of(file.read(USER_BLOCK)) is not None or is_manifest(path)


def existing_mode(path: Path) -> int | None:
    """Return a file's permissions, for what comes in its place; None if there is none."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


def volume_names(path: Path) -> Iterator[Path]:
    """Yield names for volumes of a manifest that nothing has: for ``trembl.json`` ``trembl.000.h5`` and so on."""
    for number in count():
        name = path.with_name(f"{_stem(path)}.{number:03d}.h5")
        if not os.path.lexists(name):
            yield name


def _stem(path: Path) -> str:
    return path.name.removesuffix(path.suffix) if path.suffix in ENDINGS else path.name


def _listed_entries(path: Path) -> tuple[FileEntry, ...]:
    """Return what a manifest lists; nothing if it is none, or damaged and about to be replaced."""
    with suppress(DatabaseError):
        return open_file(str(path)).contents.files if is_manifest(path) else ()
    return ()


def _own_volumes(path: Path) -> list[FileEntry]:
    """Return those that have the names of volumes that were made for the manifest, which go with it."""
    pattern = re.escape(_stem(path)) + r"\.[0-9]{3,}\.h5"
    return [each for each in _listed_entries(path) if re.fullmatch(pattern, each.path)]


@contextmanager
def changed_volumes(path: Path, kind: DatabaseKind, new: Sequence[FileEntry]) -> Iterator[None]:
    """Publish new volumes and then the manifest inside this context; the caller holds the lock.

    Afterwards volumes that the manifest does not list are removed, new or earlier ones. A hidden file lists all of
    them meanwhile, so that the next command removes the remains of a killed one.
    """
    notes = path.with_name(f".{path.name[:150]}{NOTES_SUFFIX}")
    _remove_unlisted(path, notes)
    noted = [*new, *_own_volumes(path)]
    if not noted:
        yield
        return
    try:
        with notes.open("wb") as stream:
            stream.write(pack_piece(kind, noted))
            stream.flush()
            os.fsync(stream.fileno())
        yield
    finally:
        _remove_unlisted(path, notes)


def _remove_unlisted(path: Path, notes: Path) -> None:
    """Remove the volumes that notes name and the manifest does not, and the notes."""
    listed = {each.path for each in _listed_entries(path)}
    for each in _listed_entries(notes):
        volume = path.with_name(each.path)
        with suppress(DatabaseError, OSError):
            if each.path not in listed and open_file(str(volume)).identity == each.identity:
                volume.unlink()
    notes.unlink(missing_ok=True)


def publish_manifest(path: Path, kind: DatabaseKind, entries: Sequence[FileEntry]) -> None:
    """Write a manifest, in place of what has its name; the caller has its lock."""
    temporary = TemporaryFile(path)
    try:
        with open(temporary.descriptor, "wb", closefd=False) as stream:
            stream.write(pack_piece(kind, entries))
        os.fsync(temporary.descriptor)
        publish_file(temporary, path, existing_mode(path))
    finally:
        temporary.discard()


def publish_file(temporary: TemporaryFile, path: Path, mode: int | None) -> None:
    """Move a file to its name, with permissions if there are some to keep."""
    if mode is not None:
        temporary.path.chmod(mode)
    temporary.publish(path)
    sync_folder(path.parent)


def publish_volumes(path: Path, kind: DatabaseKind, volumes: Sequence[FileEntry | NewFile]) -> list[FileEntry]:
    """Move new volumes to their names, write the manifest, and return its entries; the caller holds the lock."""
    names, mode = volume_names(path), existing_mode(path)
    entries = [replace(each.entry, path=next(names).name) if isinstance(each, NewFile) else each for each in volumes]
    new = [(file, entry) for file, entry in zip(volumes, entries, strict=True) if isinstance(file, NewFile)]
    with changed_volumes(path, kind, [entry for _, entry in new]):
        for file, entry in new:
            publish_file(file.temporary, path.with_name(entry.path), mode)
        publish_manifest(path, kind, entries)
    return entries


class NewFile(DatabaseFile):
    """A new file of a database; ``sweep`` removes the remains of killed commands in the folder."""

    def __init__(self, path: Path, kind: DatabaseKind, sweep: bool = True) -> None:
        self.temporary = TemporaryFile(path, sweep=sweep)
        self.entry = FileEntry("", "", 0, 0)
        """Entry of a manifest when the file is complete, without its name."""
        try:
            super().__init__(self.temporary.descriptor, Contents(kind))
        except BaseException:
            self.temporary.discard()
            raise

    def commit(self, added: Contents) -> None:
        """Complete the file."""
        super().commit(added)
        totals = (added.total(name) for name in ("n_subjects", "n_residues"))
        self.entry = FileEntry("", added.identity(), *totals)

    def __exit__(self, *_: object) -> None:
        """Remove it, if it has no name yet."""
        super().__exit__()
        with suppress(OSError):
            self.temporary.discard()


class NewDatabase:
    """A new database; a context manager, which leaves nothing unless `publish` ran.

    With ``volume_size``, the bytes of a file, ``output`` is the manifest. ``inputs`` cannot be replaced. ``check`` is
    called before anything is replaced, if the caller holds the lock of the output.
    """

    def __init__(
        self,
        output: PathLike,
        inputs: Sequence[str],
        kind: DatabaseKind,
        *,
        overwrite: bool = True,
        volume_size: int | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.path = check_output(output, inputs, overwrite)
        self.kind, self.volume_size, self._check = kind, volume_size, check
        self.files: list[NewFile] = []
        self._volumes: list[FileEntry | NewFile] = []
        self._n_bytes = 0  # of the last file

    def keep(self, entry: FileEntry) -> None:
        """Keep a volume of the manifest as the next one."""
        self._volumes.append(entry)

    def add(self, records: SegmentInput, begins_file: bool = False) -> None:
        """Write records as a segment, or as several where one would be too large for a file."""
        n, size = len(records), self.volume_size or MAX_VOLUME_BYTES
        n_bytes = segment_bytes(records, self.kind) + METADATA_BYTES
        if n_bytes + METADATA_BYTES > size and n > 1:
            self.add(records.part(0, n // 2), begins_file)
            self.add(records.part(n // 2, n))
            return
        if begins_file or not self.files or self._n_bytes + n_bytes > size:
            self._begin_file()
        write_segment(self.files[-1], records)
        self._n_bytes += n_bytes

    def _begin_file(self) -> None:
        if len(self.files) == MAX_VOLUMES:
            n = sum(int(sink.attributes["n_subjects"]) for file in self.files for sink in file.sinks)
            problem = f"a size that makes at most {MAX_VOLUMES} volumes; so many hold the first {n:,} records"
            raise OptionError("volume_size", self.volume_size, problem)
        self.files.append(NewFile(self.path, self.kind, sweep=not self.files))
        self._volumes.append(self.files[-1])
        self._n_bytes = METADATA_BYTES

    def publish(self, finish: Callable[[list[list[SegmentSink]]], Any] | None = None) -> None:
        """Complete all files and move them to their names, the manifest last.

        ``finish`` is called first, with the segments of each file.
        """
        if finish is not None:
            finish([file.sinks for file in self.files])
        for file in self.files:
            file.commit(file.finish())
        with ExitStack() as stack:
            if self._check is not None:
                self._check()
            else:
                stack.enter_context(lock_for_change(self.path, is_needed=False))
            if self.volume_size is not None:
                publish_volumes(self.path, self.kind, self._volumes)
            else:
                stack.enter_context(changed_volumes(self.path, self.kind, []))  # of a manifest that had the name
                publish_file(self.files[0].temporary, self.path, existing_mode(self.path))

    def __enter__(self) -> NewDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.__exit__()
