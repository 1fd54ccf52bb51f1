"""Open database files, which stay readable when their names are replaced."""

from __future__ import annotations

import errno
import os
import stat

from swsearch.db.foreign_formats import foreign_database
from swsearch.errors import DatabaseDamageError, DatabaseError
from swsearch.processors import allow_files

MIN_WRITTEN = 1 / 4
"""Share of a large file that must stand on the disk; the rest may be holes, which copies make of zeros."""

HOLES_FROM = 1 << 22
"""Bytes of a file from which on its holes are counted."""

MAX_STRETCHES = 100_000
"""Stretches between holes that are counted; a file with more has been written in earnest."""

SPARE_FILES = 128
"""Files that a process may open besides those that are open."""


class Descriptor:
    """A file descriptor that is closed with the last object that reads through it.

    A reader holds it meanwhile, so that it cannot be closed, and its number be given to another file, during a read.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number
        allow_files(number + SPARE_FILES)

    def __del__(self) -> None:
        os.close(self.number)


class FileSource:
    """A file, open for reading; raises `DatabaseError` if it cannot be opened.

    All reads use one descriptor, so a database that replaces this one under its name changes nothing here. Nothing is
    mapped, because a truncated file would end a process that maps it. ``path`` is empty for a file without a name,
    ``name`` is that of messages, and ``number`` a descriptor that the source takes over.
    """

    def __init__(self, path: str, name: str | None = None, number: int | None = None) -> None:
        self.path, self.name = path, path if name is None else name
        try:
            # a pipe without a writer would otherwise be waited for
            number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK) if number is None else number
        except (OSError, ValueError) as error:
            raise self._not_opened(error) from error
        self._descriptor: Descriptor | None = Descriptor(number)
        self._status = os.fstat(number)
        if stat.S_ISDIR(self._status.st_mode):
            raise DatabaseError(f"{self.name}: is a directory, expected a database file")
        if not stat.S_ISREG(self._status.st_mode):
            raise DatabaseError(f"{self.name}: is a pipe or a device, expected a database file")

    def _not_opened(self, error: OSError | ValueError) -> DatabaseError:
        if isinstance(error, FileNotFoundError):
            return DatabaseError(f"{self.name}: {foreign_database(self.path) or 'no such database; check the name'}")
        if isinstance(error, PermissionError):
            return DatabaseError(f"{self.name}: permission denied; the database must be readable")
        remedy = "; allow this process more with: ulimit -n" if getattr(error, "errno", 0) == errno.EMFILE else ""
        return DatabaseError(f"{self.name}: cannot be opened: {getattr(error, 'strerror', None) or error}{remedy}")

    def held(self) -> Descriptor:
        """Return the descriptor to read through; the caller keeps it meanwhile."""
        descriptor = self._descriptor  # another thread may close the database at any moment
        if descriptor is None:
            raise DatabaseError(f"{self.name}: the database was closed; open it again")
        return descriptor

    @property
    def n_bytes(self) -> int:
        """The file's length when it was opened."""
        return self._status.st_size

    def fileno(self) -> int:
        """Return the descriptor, for a child process; the caller keeps the source open meanwhile."""
        return self.held().number

    def check_written(self) -> None:
        """Raise `DatabaseDamageError` if most of a large file are holes."""
        if self.n_bytes >= HOLES_FROM and (written := self._written()) < self.n_bytes * MIN_WRITTEN:
            raise DatabaseDamageError(self.name, [f"only {written} of its {self.n_bytes} bytes were ever written"])

    def _written(self) -> int:
        """Count the bytes that are no holes."""
        written = at = 0
        number = self.fileno()
        try:
            for _ in range(MAX_STRETCHES):
                at = os.lseek(number, at, os.SEEK_DATA)
                end = os.lseek(number, at, os.SEEK_HOLE)
                written += end - at
                at = end
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return written
        return self.n_bytes

    def read(self, at: int, n_bytes: int) -> bytes:
        """Return bytes from a place on; fewer at the end."""
        descriptor = self.held()
        try:
            return os.pread(descriptor.number, n_bytes, at)
        except OSError as error:
            raise self._unreadable(at, n_bytes, error) from error

    def read_error(self, at: int, n_bytes: int, error: int) -> DatabaseError:
        """Make the error for bytes that could not be read: by errno, or 0 where the file ends before them."""
        if error:
            return self._unreadable(at, n_bytes, OSError(error, os.strerror(error)))
        return self.damage_error([f"ends at byte {at}"])

    def _unreadable(self, at: int, n_bytes: int, error: OSError) -> DatabaseDamageError:
        return DatabaseDamageError(self.name, [f"bytes {at} to {at + n_bytes} cannot be read ({error.strerror})"])

    def damage_error(self, problems: list[str]) -> DatabaseError:
        """Make the error for bytes that are not those that were written; it says where the file was changed since."""
        if self.has_changed():
            return DatabaseError(
                f"{self.name}: was changed while it was in use ({problems[0]}); run this again when nothing writes "
                "to the file, and replace a database only by renaming a new one"
            )
        return DatabaseDamageError(self.name, problems)

    def has_changed(self) -> bool:
        """Return whether the file was written to since it was opened."""
        descriptor = self._descriptor
        now = self._status if descriptor is None else os.fstat(descriptor.number)
        names = ("st_size", "st_mtime_ns", "st_ctime_ns")
        return any(getattr(now, name) != getattr(self._status, name) for name in names)

    @property
    def file(self) -> tuple[int, int]:
        """Device and inode of the file."""
        return self._status.st_dev, self._status.st_ino

    def close(self) -> None:
        """Close the file, when the last thread that reads from it has done so."""
        self._descriptor = None
