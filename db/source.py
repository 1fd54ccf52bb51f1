"""Where a database's bytes come from: a file that stays open, or memory."""

from __future__ import annotations

import errno
import os
import stat
import weakref
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from swsearch.db.foreign import foreign_database
from swsearch.db.format import FORMAT_VERSION, HDF5_SIGNATURE, USER_BLOCK, UserBlock, is_manifest
from swsearch.errors import DatabaseDamageError, DatabaseError

FEWEST_WRITTEN = 1 / 4
"""Share of a large file that must stand on the disk; the rest may be holes, which copies make of zeros."""

HOLES_FROM = 1 << 22
"""Bytes of a file from which on its holes are counted."""

MOST_OPEN = 64
"""Volumes of which a process holds a descriptor; many systems allow it 256 of all kinds."""

MOST_PIECES = 100_000
"""FramePieces between holes that are counted; a file with more has been written in earnest."""


class Source(Protocol):
    """Bytes of a database by their place."""

    name: str
    """What messages call it."""
    trusted: bool
    """Whether nobody else can change the bytes."""

    @property
    def n_bytes(self) -> int:
        """How many there are."""

    def read(self, at: int, n_bytes: int) -> bytes:
        """Return bytes from a place on; fewer at the end."""

    def read_into(self, target: npt.NDArray[np.uint8], at: int) -> None:
        """Fill an array, shape (n,), with the bytes from a place on."""

    def damage(self, problems: list[str], *, known: bool = False) -> DatabaseError:
        """Make the error for bytes that are not those that were written.

        It says that the file was changed where that is so, or where the bytes are ``known`` to have been right.
        """

    def close(self) -> None:
        """Give everything back."""


class Descriptor:
    """A file descriptor that is closed with the last object that reads through it.

    Whoever reads holds it meanwhile, so that it cannot be closed, and its number be given to another file, under a
    thread that reads.

    Parameters
    ----------
    path : str
        A file, to be opened for reading.

    Raises
    ------
    OSError, ValueError
        If it cannot be opened.
    """

    __slots__ = ("number",)

    def __init__(self, path: str) -> None:
        self.number = -1
        # a pipe without a writer would otherwise be waited for
        self.number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def __del__(self) -> None:
        if self.number >= 0:
            os.close(self.number)


def too_new(path: str, version: int) -> DatabaseError:
    """Make the error for a file that a later swsearch wrote."""
    return DatabaseError(
        f"{path}: format version {version}, this swsearch reads up to {FORMAT_VERSION}; upgrade swsearch or rebuild"
    )


class FileSource:
    """A database file, open for reading.

    All is read through one descriptor, so a database that replaces this one under its name changes nothing here.
    What is written into the file itself is noticed, for every byte that is used has a checksum, and the checksums
    were read when the file was opened.

    Parameters
    ----------
    path : str
        The file.
    name : str, optional
        What messages call it; by default its path.

    Raises
    ------
    DatabaseError
        If it cannot be opened, is no HDF5, or of a later version.
    DatabaseDamageError
        If it is not as long as it was written.
    """

    trusted = False

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path, self.name = path, path if name is None else name
        self._descriptor: Descriptor | None = None
        try:
            self._descriptor = descriptor = self._open()
            self._status = os.fstat(descriptor.number)
            self._check_kind()
            self.block = UserBlock.parse(self.read(0, USER_BLOCK))
            self._check_length()
        except BaseException as error:
            self.close()
            if isinstance(error, (OSError, ValueError)):
                raise self._not_opened(error) from error
            raise

    def _open(self) -> Descriptor:
        return Descriptor(self.path)

    def _held(self) -> Descriptor:
        """Return what to read through."""
        if self._descriptor is None:
            raise self._closed()
        return self._descriptor

    def _closed(self) -> DatabaseError:
        return DatabaseError(f"{self.name}: the database was closed; open it again")

    @property
    def n_bytes(self) -> int:
        """The file's length when it was opened."""
        return self._status.st_size

    def _not_opened(self, error: OSError | ValueError) -> DatabaseError:
        if isinstance(error, FileNotFoundError):
            return DatabaseError(f"{self.name}: {foreign_database(self.path) or 'no such database; check the name'}")
        if isinstance(error, PermissionError):
            return DatabaseError(f"{self.name}: permission denied; the database must be readable")
        return DatabaseError(f"{self.name}: cannot be opened: {getattr(error, 'strerror', None) or error}")

    def _check_kind(self) -> None:
        mode = self._status.st_mode
        if stat.S_ISDIR(mode):
            raise DatabaseError(f"{self.name}: is a directory, expected a database file")
        if not stat.S_ISREG(mode):
            raise DatabaseError(f"{self.name}: is a pipe or a device, expected a database file")

    def _check_length(self) -> None:
        size, block = self.n_bytes, self.block
        if block is not None:
            if block.version > FORMAT_VERSION:
                raise too_new(self.name, block.version)
            if block.n_bytes >= 0 and size != block.n_bytes + USER_BLOCK:
                what = "truncated" if size < block.n_bytes + USER_BLOCK else "too long"
                raise DatabaseDamageError(self.name, [f"{what}: {size} bytes, expected {block.n_bytes + USER_BLOCK}"])
        elif not self._has_signature():
            head = self.read(0, 32)  # a FASTA file may stand beside databases that were made of it
            what = "" if head[:1] == b">" else foreign_database(self.path, head)
            if is_manifest(self.path):
                what = "is a manifest of volumes, expected a database file; give one of its volumes"
            what = what or "is not a swsearch database; build one from FASTA with: swsearch db build"
            raise DatabaseError(f"{self.name}: {what}")
        if size >= HOLES_FROM and (written := self._written()) < size * FEWEST_WRITTEN:
            raise DatabaseDamageError(self.name, [f"only {written} of its {size} bytes were ever written"])

    def _has_signature(self) -> bool:
        """Say whether the file is HDF5: its signature stands at byte 0, 512, 1024 or a further doubling."""
        places = [0, *(USER_BLOCK << k for k in range(max(self.n_bytes // USER_BLOCK, 1).bit_length()))]
        return any(self.read(at, len(HDF5_SIGNATURE)) == HDF5_SIGNATURE for at in places)

    def _written(self) -> int:
        """Count the bytes that are no holes."""
        written = at = 0
        held = self._held()
        try:
            for _ in range(MOST_PIECES):
                at = os.lseek(held.number, at, os.SEEK_DATA)
                end = os.lseek(held.number, at, os.SEEK_HOLE)
                written += end - at
                at = end
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return written
        return self.n_bytes

    def read(self, at: int, n_bytes: int) -> bytes:
        """Return bytes from a place on; fewer at the end."""
        held = self._held()
        try:
            return os.pread(held.number, n_bytes, at)
        except OSError as error:
            raise self._unreadable(at, n_bytes, error) from error

    def read_into(self, target: npt.NDArray[np.uint8], at: int) -> None:
        """Fill an array, shape (n,), with the bytes from a place on."""
        held = self._held()
        view = target.data
        while view:  # one call reads at most 2 GiB
            try:
                n = os.preadv(held.number, [view], at)
            except OSError as error:
                raise self._unreadable(at, len(view), error) from error
            if not n:
                raise self.damage([f"ends at byte {at}"])
            at, view = at + n, view[n:]

    def _unreadable(self, at: int, n_bytes: int, error: OSError) -> DatabaseDamageError:
        return DatabaseDamageError(self.name, [f"bytes {at} to {at + n_bytes} cannot be read ({error.strerror})"])

    def damage(self, problems: list[str], *, known: bool = False) -> DatabaseError:
        """Make the error for bytes that are not those that were written."""
        now = self._now()
        names = ("st_size", "st_mtime_ns", "st_ctime_ns")
        if known or any(getattr(now, name) != getattr(self._status, name) for name in names):
            return DatabaseError(
                f"{self.name}: was changed while it was in use ({problems[0]}); run this again when nothing writes "
                "to the file, and replace a database only by renaming a new one"
            )
        return DatabaseDamageError(self.name, problems)

    def _now(self) -> os.stat_result:
        """Return what the file is now, as far as it can be told."""
        descriptor = self._descriptor
        return self._status if descriptor is None else os.fstat(descriptor.number)

    def stands(self) -> bool:
        """Say whether the path still leads to this file, and nobody wrote to it since it was opened."""
        try:
            now = Path(self.path).stat()
        except OSError:
            return False
        return _file_of(now) == self.file

    @property
    def file(self) -> tuple[int, ...]:
        """What tells this file, as it was when it was opened, from all others, whatever their names."""
        return _file_of(self._status)

    def close(self) -> None:
        """Close the file, when the last thread that reads from it has done so."""
        self._descriptor = None


def _file_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class VolumeSource(FileSource):
    """A database file among many, of which no more than `MOST_OPEN` of this process are open at a time.

    One that has to give its descriptor back opens the file again when it is read from, if it is the same file still.
    """

    def __init__(self, path: str, name: str | None = None) -> None:
        self._is_closed = False
        super().__init__(path, name)
        self._keep_open()

    def _open(self) -> Descriptor:
        try:
            opened = Descriptor(self.path)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not _open_volumes:
                raise
            _give_back(0)
            opened = Descriptor(self.path)
        return opened

    def _keep_open(self) -> None:
        """Count this one among those that are open, as the last."""
        _open_volumes.pop(id(self), None)
        _open_volumes[id(self)] = weakref.ref(self)
        _give_back(MOST_OPEN)

    def _held(self) -> Descriptor:
        held = self._descriptor  # another thread may take it away at any moment
        if held is None:
            if self._is_closed:
                raise self._closed()
            try:
                held = self._open()
                now = os.fstat(held.number)
            except (OSError, ValueError) as error:
                raise self._not_opened(error) from error
            if _file_of(now) != self.file:
                raise DatabaseError(
                    f"{self.name}: was changed or replaced while it was in use; run this again when nothing writes to"
                    " the file"
                )
            self._descriptor = held
            self._keep_open()
        return held

    def _now(self) -> os.stat_result:
        try:  # the descriptor that read what is wrong may have been given back since
            return super()._now() if self._descriptor is not None else Path(self.path).stat()
        except OSError:
            return self._status

    def give_back(self) -> None:
        """Let go of the descriptor until it is read from."""
        self._descriptor = None

    def close(self) -> None:
        """Close the file for good."""
        self._is_closed = True
        super().close()
        _open_volumes.pop(id(self), None)

    def __del__(self) -> None:
        _open_volumes.pop(id(self), None)


_open_volumes: dict[int, weakref.ref[VolumeSource]] = {}
"""Those with a descriptor, the one that was opened first first."""


def _give_back(n_kept: int) -> None:
    """Let volumes give their descriptors back, but for the last ones."""
    # no lock, which a process that is forked meanwhile would find locked for ever: no step can be interrupted
    every = list(_open_volumes)
    for key in every[: max(len(every) - n_kept, 0)]:
        reference = _open_volumes.pop(key, None)
        volume = reference() if reference is not None else None
        if volume is not None:
            volume.give_back()


class MemorySource:
    """A database in memory.

    Parameters
    ----------
    name : str
        What messages call it.
    n_bytes : int
        How much room it takes.
    """

    trusted = True

    def __init__(self, name: str, n_bytes: int) -> None:
        self.name = name
        self.bytes: npt.NDArray[np.uint8] = np.empty(n_bytes, dtype=np.uint8)

    @property
    def n_bytes(self) -> int:
        """Bytes of all datasets."""
        return len(self.bytes)

    def read(self, at: int, n_bytes: int) -> bytes:
        """Return bytes from a place on; fewer at the end."""
        return self.bytes[at : at + n_bytes].tobytes()

    def read_into(self, target: npt.NDArray[np.uint8], at: int) -> None:
        """Fill an array, shape (n,), with the bytes from a place on."""
        if not len(self.bytes):
            raise DatabaseError(f"{self.name}: the database was closed; create it again")
        target[:] = self.bytes[at : at + len(target)]

    def damage(self, problems: list[str], *, known: bool = False) -> DatabaseError:
        """Make the error for bytes that are not those that were written."""
        return DatabaseDamageError(self.name, problems)

    def close(self) -> None:
        """Give the memory back."""
        self.bytes = np.empty(0, dtype=np.uint8)
