"""Records on their way into a database: their bytes in anonymous temporary files, their numbers in memory.

A build reads its inputs once and forwards only. The spool takes what comes and knows at the end how long
everything is, which fixes the order of the subjects and the place of every byte in the database file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.fasta import RecordBatch
from swsearch.errors import MemoryLimitError, SequenceError

MIB = 1 << 20

SUBJECT_BYTES = 64
"""Working memory per subject: numbers kept while reading, and the arrays of the sort at its peak."""

INTERVAL_BYTES = 48
"""Working memory per soft-mask interval."""

LONGEST = 2**31 - 9
"""Longest subject: lengths are 32-bit, and a block's columns are rounded up to a multiple of 8."""


def temporary(folder: Path | None) -> IO[bytes]:
    """Open an anonymous file that touches the disk (in ``folder``) only when it outgrows 4 MiB."""
    return tempfile.SpooledTemporaryFile(max_size=4 * MIB, dir=None if folder is None else str(folder))


def joined(arrays: list[npt.NDArray[Any]], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Concatenate arrays, each of shape (n,), and forget them; an empty list makes an empty array."""
    whole = np.concatenate(arrays) if arrays else np.empty(0, dtype)
    arrays.clear()
    return whole


@dataclass(frozen=True)
class Masks:
    """Soft-masked runs in the layout of the database file.

    Parameters
    ----------
    offsets : ndarray, shape (n_subjects + 1,), int64
        First run of each subject.
    starts, ends : ndarray, shape (n_runs,), int32
        Runs, counted from the subject's first residue.
    """

    offsets: IntArray
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]


class Spool:
    """Everything that was read, in input order.

    Parameters
    ----------
    folder : path, optional
        Where the temporary files go; the system's place if None.
    memory : int
        Budget in bytes; numbers of the subjects may take half of it.
    """

    def __init__(self, folder: Path | None, memory: int) -> None:
        self.folder, self._memory = folder, memory
        self.sources: list[dict[str, Any]] = []
        self.n_residues = 0
        self.n_subjects = 0
        self._starts: list[IntArray] = []
        self._header_lengths: list[npt.NDArray[np.int32]] = []
        self._mask_starts: list[IntArray] = []
        self._mask_ends: list[IntArray] = []
        self._n_masks = 0
        self.codes = temporary(folder)
        self.headers = temporary(folder)

    def add(self, batches: Iterable[RecordBatch]) -> None:
        """Take batches; the first begins with a new record."""
        for batch in batches:
            self.codes.write(batch.codes.data)
            self.headers.write(batch.headers)
            self._starts.append(batch.starts + self.n_residues)
            self._header_lengths.append(batch.header_lengths.astype(np.int32))
            if len(batch.mask_starts):
                self._mask_starts.append(batch.mask_starts + self.n_residues)
                self._mask_ends.append(batch.mask_ends + self.n_residues)
                self._n_masks += len(batch.mask_starts)
            self.n_residues += len(batch.codes)
            self.n_subjects += len(batch.starts)
            need = self.n_subjects * SUBJECT_BYTES + self._n_masks * INTERVAL_BYTES
            if need > self._memory // 2:
                raise MemoryLimitError(
                    f"memory: the numbers of {self.n_subjects:,} records take more than half of the"
                    f" {self._memory // MIB} MiB allowed; allow more, 128 bytes a record in all"
                )

    def numbers(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Masks]:
        """Return what is known of all subjects, and forget it here.

        Returns
        -------
        lengths, header_lengths : ndarray, shape (n_subjects,), int32
            Residues, and bytes of the header line.
        masks : Masks
            Their runs of lower case.

        Raises
        ------
        SequenceError
            If there is no residue at all, or a record is too long.
        """
        sources = ", ".join(source["path"] for source in self.sources[:3])
        if not self.n_residues:
            raise SequenceError(
                sources or "<records>",
                f"no residues in {self.n_subjects} records; expected a sequence below a header line",
            )
        starts = joined(self._starts, np.int64)
        lengths = np.diff(starts, append=self.n_residues)
        if lengths.max() > LONGEST:
            number = int(lengths.argmax()) + 1
            problem = f"record {number} has {lengths.max():,} residues, expected at most {LONGEST:,}"
            raise SequenceError(sources, problem)
        masks = self._masks(starts)
        return lengths.astype(np.int32), joined(self._header_lengths, np.int32), masks

    def _masks(self, starts: IntArray) -> Masks:
        """Give each run of lower case to its subject; join those that a buffer's end cut in two."""
        mask_starts, mask_ends = joined(self._mask_starts, np.int64), joined(self._mask_ends, np.int64)
        # of several subjects that begin at one place all but the last are empty
        owners = np.searchsorted(starts, mask_starts, side="right") - 1
        cut = (mask_starts[1:] == mask_ends[:-1]) & (owners[1:] == owners[:-1])
        begins, finishes = np.insert(~cut, 0, True), np.append(~cut, True)
        if not len(mask_starts):
            begins = finishes = np.empty(0, dtype=bool)
        owners = owners[begins]
        offsets = np.zeros(len(starts) + 1, dtype=np.int64)
        np.cumsum(np.bincount(owners, minlength=len(starts)), out=offsets[1:])
        base = starts[owners]
        return Masks(
            offsets,
            (mask_starts[begins] - base).astype(np.int32),
            (mask_ends[finishes] - base).astype(np.int32),
        )

    def close(self) -> None:
        """Close the temporary files, which removes them."""
        self.codes.close()
        self.headers.close()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pieces(file: IO[bytes], at: int, lengths: IntArray, piece_bytes: int) -> Iterator[tuple[int, int, ByteArray]]:
    """Read subjects that stand one after the other in a file, several at once.

    Parameters
    ----------
    file : binary file
        Where they stand; others may seek in it between two pieces.
    at : int
        Where the first begins.
    lengths : ndarray, shape (n,), int64
        Their lengths.
    piece_bytes : int
        Bytes to read at once; a longer subject is read whole.

    Yields
    ------
    first, last : int
        The subjects of the piece, ``last`` excluded.
    data : ndarray, shape (n_bytes,), uint8
        Their bytes.
    """
    ends = np.cumsum(lengths)
    first, start = 0, 0
    while first < len(lengths):
        last = max(int(np.searchsorted(ends, start + piece_bytes, side="right")), first + 1)
        stop = int(ends[last - 1])
        file.seek(at + start)
        yield first, last, np.frombuffer(file.read(stop - start), dtype=np.uint8)
        first, start = last, stop


def regroup(
    spool: IO[bytes], lengths: IntArray, groups: npt.NDArray[np.int32], out: IO[bytes], piece_bytes: int
) -> None:
    """Copy subjects so that those of a group stand together, in input order within it: one pass.

    Parameters
    ----------
    spool, out : binary file
        Where subjects stand in input order, and where they go.
    lengths : ndarray, shape (n_subjects,), int64
        In input order.
    groups : ndarray, shape (n_subjects,), int32
        Group of each subject, from 0.
    piece_bytes : int
        Bytes to read at once.
    """
    sizes = np.bincount(groups, weights=lengths).astype(np.int64).tolist()
    places = [0, *accumulate(sizes)]
    for first, last, data in pieces(spool, 0, lengths, piece_bytes):
        ends = np.cumsum(lengths[first:last])
        of = groups[first:last]
        chosen = np.argsort(of, kind="stable")
        bounds = np.searchsorted(of[chosen], np.arange(len(sizes) + 1)).tolist()
        begins = ends - lengths[first:last]
        view = data.data
        slices = [view[a:b] for a, b in zip(begins[chosen].tolist(), ends[chosen].tolist(), strict=True)]
        for group, (a, b) in enumerate(pairwise(bounds)):
            if a < b:
                out.seek(places[group])
                places[group] += out.write(b"".join(slices[a:b]))
