"""What a build knows of every record, in temporary files: it grows with the records, and memory does not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray

MIB = 1 << 20

NUMBERS_AT_ONCE = 1 << 18
"""Numbers that are read at once: 1 or 2 MiB. A multiple of the 64 subjects of a block."""

IN_MEMORY = 4 * MIB
"""Size up to which a temporary file is none, but memory."""


def temporary(folder: Path | None) -> IO[bytes]:
    """Open an anonymous file that touches the disk (in ``folder``) only when it outgrows `IN_MEMORY`."""
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=None if folder is None else str(folder))


def temporary_on_disk(folder: Path | None) -> IO[bytes]:
    """Open an anonymous file to be written in any order: in memory it would be as long as its last byte says."""
    return tempfile.TemporaryFile(dir=None if folder is None else str(folder))


class NumberFile:
    """Numbers of one type in an anonymous file.

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
        self._owners = NumberFile(folder, "<i8")
        self.starts, self.ends = NumberFile(folder, "<i4"), NumberFile(folder, "<i4")
        self.n_masked = 0
        """Residues in all runs."""

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, owners: IntArray, starts: IntArray, ends: IntArray) -> None:
        """Take runs: their records, ascending over all calls, and where they start and end there; each shape (n,)."""
        if len(owners):
            self._owners.write(owners)
            self.starts.write(starts)
            self.ends.write(ends)
            self.n_masked += int((ends - starts).sum())

    def counts(self, n_subjects: int) -> Iterator[IntArray]:
        """Yield how many runs each record has, `NUMBERS_AT_ONCE` records at a time; shape (n_records,), int64."""
        at = 0
        for first in range(0, n_subjects, NUMBERS_AT_ONCE):
            last = min(first + NUMBERS_AT_ONCE, n_subjects)
            counts = np.zeros(last - first, dtype=np.int64)
            while at < len(self._owners):
                owners = self._owners.read(at, min(at + NUMBERS_AT_ONCE, len(self._owners)))
                n = int(np.searchsorted(owners, last))
                counts += np.bincount(owners[:n] - first, minlength=last - first)
                at += n
                if n < len(owners):
                    break
            yield counts

    def close(self) -> None:
        """Close the files, which removes them."""
        for file in (self._owners, self.starts, self.ends):
            file.close()
