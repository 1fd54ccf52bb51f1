"""What a build knows of every record, in temporary files: it grows with the records, and memory does not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray

MIB = 1 << 20

BUILD_MEMORY = 512 * MIB
"""Memory of a build in bytes."""

NUMBERS_AT_ONCE = 1 << 18
"""NumberSequence that are read at once: 1 or 2 MiB. A multiple of the 64 subjects of a block."""

IN_MEMORY = 4 * MIB
"""Size up to which a temporary file is none, but memory."""


def temporary(folder: Path | None) -> IO[bytes]:
    """Open an anonymous file that touches the disk (in ``folder``) only when it outgrows `IN_MEMORY`."""
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=None if folder is None else str(folder))


def temporary_on_disk(folder: Path | None) -> IO[bytes]:
    """Open an anonymous file to be written in any order: in memory it would be as long as its last byte says."""
    return tempfile.TemporaryFile(dir=None if folder is None else str(folder))


class SeekableFile(Protocol):
    """A binary file to read from any place, or a part of one."""

    def seek(self, at: int, /) -> int:
        """Go on reading at a place."""

    def read(self, n_bytes: int, /) -> bytes:
        """Return so many bytes; fewer at the end."""

    def close(self) -> None:
        """Give back what it takes."""


class NumberSequence(Protocol):
    """NumberSequence of one type: a `NumberFile`, or a part of one."""

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return numbers ``start`` to ``stop``, shape (stop - start,)."""

    def pieces(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all numbers, `NUMBERS_AT_ONCE` at a time; shape (n,)."""

    def close(self) -> None:
        """Give back what it takes."""


class RunNumbers(Protocol):
    """Masked runs of records in input order: a `RunFile`, or a part of one."""

    @property
    def starts(self) -> NumberSequence:
        """Where each begins in its record."""

    @property
    def ends(self) -> NumberSequence:
        """Where each ends there."""

    @property
    def n_masked(self) -> int:
        """Residues in all runs."""

    def __len__(self) -> int: ...

    def counts(self, n_subjects: int) -> Iterator[IntArray]:
        """Yield how many runs each record has, `NUMBERS_AT_ONCE` records at a time; shape (n_records,), int64."""


class NumberFile:
    """NumberSequence of one type in an anonymous file.

    Parameters
    ----------
    folder : path, optional
        Where the file goes; the system's place if None.
    dtype : str
        Their type, as numpy names it.
    on_disk : bool, optional
        Whether they come in any order.
    """

    def __init__(self, folder: Path | None, dtype: str, on_disk: bool = False) -> None:
        self._file = temporary_on_disk(folder) if on_disk else temporary(folder)
        self._dtype, self._n = np.dtype(dtype), 0

    def __len__(self) -> int:
        return self._n

    def write(self, numbers: npt.NDArray[Any], at: int | None = None) -> None:
        """Write numbers, shape (n,), at a place; after all others where none is given."""
        at = self._n if at is None else at
        self._file.seek(at * self._dtype.itemsize)
        self._file.write(np.ascontiguousarray(numbers, dtype=self._dtype).data)
        self._n = max(self._n, at + len(numbers))

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return numbers ``start`` to ``stop``, shape (stop - start,); they cannot be written to."""
        self._file.seek(start * self._dtype.itemsize)
        return np.frombuffer(self._file.read((stop - start) * self._dtype.itemsize), dtype=self._dtype)

    def pieces(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all numbers, `NUMBERS_AT_ONCE` at a time; shape (n,)."""
        for start in range(0, self._n, NUMBERS_AT_ONCE):
            yield self.read(start, min(start + NUMBERS_AT_ONCE, self._n))

    def close(self) -> None:
        """Close the file, which removes it."""
        self._file.close()


def running_sums(pieces: Iterator[npt.NDArray[np.integer[Any]]]) -> Iterator[IntArray]:
    """Turn lengths into offsets, both in pieces of shape (n,): 0, then the running sum, int64."""
    total = 0
    yield np.zeros(1, dtype=np.int64)
    for piece in pieces:
        sums = np.cumsum(piece, dtype=np.int64)
        sums += total
        total = int(sums[-1]) if len(sums) else total
        yield sums


class RunFile:
    """Masked runs of records in input order.

    Parameters
    ----------
    folder : path, optional
        Where its files go; the system's place if None.
    """

    def __init__(self, folder: Path | None) -> None:
        self.owners = NumberFile(folder, "<i8")
        """The record of each."""
        self.starts: NumberFile = NumberFile(folder, "<i4")
        self.ends: NumberFile = NumberFile(folder, "<i4")
        self.n_masked = 0
        """Residues in all runs."""

    def __len__(self) -> int:
        return len(self.owners)

    def add(self, owners: IntArray, starts: IntArray, ends: IntArray) -> None:
        """Take runs: their records, ascending over all calls, and where they start and end there; each shape (n,)."""
        if len(owners):
            self.owners.write(owners)
            self.starts.write(starts)
            self.ends.write(ends)
            self.n_masked += int((ends - starts).sum())

    def counts(self, n_subjects: int) -> Iterator[IntArray]:
        """Yield how many runs each record has, `NUMBERS_AT_ONCE` records at a time; shape (n_records,), int64."""
        return run_counts(self.owners, 0, n_subjects)

    def close(self) -> None:
        """Close the files, which removes them."""
        for file in (self.owners, self.starts, self.ends):
            file.close()


def run_counts(owners: NumberSequence, begin: int, n_subjects: int) -> Iterator[IntArray]:
    """Yield how many runs each of some records has, in pieces; shape (n_records,), int64.

    Parameters
    ----------
    owners : NumberSequence
        The record of each run, ascending.
    begin, n_subjects : int
        The first of the records, and how many there are; no run is of another.
    """
    at = 0
    for first in range(begin, begin + n_subjects, NUMBERS_AT_ONCE):
        last = min(first + NUMBERS_AT_ONCE, begin + n_subjects)
        counts = np.zeros(last - first, dtype=np.int64)
        while at < len(owners):
            part = owners.read(at, min(at + NUMBERS_AT_ONCE, len(owners)))
            n = int(np.searchsorted(part, last))
            counts += np.bincount(part[:n] - first, minlength=last - first)
            at += n
            if n < len(part):
                break
        yield counts
