"""Records on their way into a database: all that grows with them stands in anonymous temporary files.

A build reads its inputs once and forwards only. The spool takes what comes and knows at the end how many records
have which length, which fixes the order of the subjects and the place of every byte in the database file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.classes import LengthClasses, LengthCounts
from swsearch.db.fasta import RecordBatch
from swsearch.db.numbers import NumberFile, RunFile, temporary
from swsearch.db.regroup import Groups
from swsearch.errors import SequenceError

LONGEST = 2**31 - 9
"""Longest subject: lengths are 32-bit, and a block's columns are rounded up to a multiple of 8."""


class _Run(NamedTuple):
    """A run of lower case that may go on: its record, where that begins, and the run's bounds, among all residues."""

    owner: int
    begin: int
    start: int
    end: int


class ExtraPart(Protocol):
    """What a segment has of an optional part of the database, beyond the datasets that all segments have."""

    @property
    def name(self) -> str:
        """The part: a key of `swsearch.db.format.PART_DATASETS`."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each of its datasets."""

    def pieces(self) -> Mapping[str, Iterator[npt.NDArray[Any]]]:
        """Return what each of them holds, some at a time; shape (n,), or (n, 64)."""

    def of(self, records: tuple[int, int]) -> ExtraPart:
        """Return that of the records from one to another, excluded; it is read before this one is closed."""


class Spool:
    """Everything that was read, in input order.

    Parameters
    ----------
    folder : path, optional
        Where the temporary files go; the system's place if None.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.sources: list[dict[str, Any]] = []
        self.n_residues = 0
        self.n_subjects = 0
        self.n_header_bytes = 0
        self._counts = LengthCounts()
        self._begun = 0  # where the record that is open begins among all residues
        self._run: _Run | None = None
        self._longest = (0, 0)  # most residues of a record, and its number
        self._classes: LengthClasses | None = None
        self.tantan: RunFile | None = None
        """What tantan masks, where that is known."""
        self.groups: Groups | None = None
        """The subjects group by group, where they were never together in input order."""
        self.extras: list[ExtraPart] = []
        """Optional parts of the database, in the order of their names."""
        self._held = ExitStack()
        self.codes = self._held.enter_context(temporary(folder))
        self.headers = self._held.enter_context(temporary(folder))
        self.lengths, self.header_lengths = NumberFile(folder, "<i4"), NumberFile(folder, "<i4")
        self.masks = RunFile(folder)
        for file in (self.lengths, self.header_lengths, self.masks):
            self._held.callback(file.close)

    def add(self, batches: Iterable[RecordBatch]) -> None:
        """Take batches; the first begins with a new record."""
        for batch in batches:
            self.codes.write(batch.codes.data)
            self.headers.write(batch.headers)
            self.header_lengths.write(batch.header_lengths)
            if len(batch.mask_starts):
                self._add_runs(batch)
            starts = batch.starts + self.n_residues
            if len(starts):
                bounds = np.concatenate([[self._begun], starts])
                self._add_lengths(np.diff(bounds[0 if self.n_subjects else 1 :]))
                self._begun = int(starts[-1])
            self.n_residues += len(batch.codes)
            self.n_subjects += len(starts)
            self.n_header_bytes += len(batch.headers)

    def add_known(self, lengths: npt.NDArray[np.int32], headers: ByteArray, header_lengths: IntArray) -> None:
        """Take records of a database without their residues, which come sorted, and without their masked runs.

        Parameters
        ----------
        lengths, header_lengths : ndarray, shape (n,), integer
            Residues of each, and bytes of its header.
        headers : ndarray, shape (n_bytes,), uint8
            The headers, one after the other.
        """
        self.lengths.write(lengths)
        self.headers.write(headers.data)
        self.header_lengths.write(header_lengths)
        self.n_subjects += len(lengths)
        self.n_residues += int(lengths.sum(dtype=np.int64))
        self.n_header_bytes += len(headers)

    def _add_lengths(self, lengths: IntArray) -> None:
        if not len(lengths):
            return
        longest = int(lengths.max())
        if longest > self._longest[0]:
            self._longest = (longest, len(self.lengths) + int(lengths.argmax()) + 1)
        if longest <= LONGEST:  # else `finish` says which record is too long
            self._counts.add(lengths)
        self.lengths.write(np.minimum(lengths, LONGEST))

    def _add_runs(self, batch: RecordBatch) -> None:
        """Give each run of lower case to its subject; join those that a buffer's end cut in two."""
        # of several subjects that begin at one place all but the last are empty
        inside = np.searchsorted(batch.starts, batch.mask_starts, side="right")
        owners = inside + (self.n_subjects - 1)
        starts, ends = batch.mask_starts + self.n_residues, batch.mask_ends + self.n_residues
        begins = np.concatenate([[self._begun], batch.starts + self.n_residues])[inside]
        held = self._run
        if held is not None:
            if (held.owner, held.end) == (int(owners[0]), int(starts[0])):
                starts[0] = held.start
            else:
                self._close_run()
        self.masks.add(owners[:-1], (starts - begins)[:-1], (ends - begins)[:-1])
        self._run = _Run(int(owners[-1]), int(begins[-1]), int(starts[-1]), int(ends[-1]))

    def _close_run(self) -> None:
        if self._run is not None:
            owner, begin, start, end = self._run
            self.masks.add(np.array([owner]), np.array([start - begin]), np.array([end - begin]))
            self._run = None

    def finish(self) -> LengthClasses:
        """Close the last record, after which nothing can be added.

        Returns
        -------
        LengthClasses
            The order of the subjects.

        Raises
        ------
        SequenceError
            If there is no residue at all, or a record is too long.
        """
        if self._classes is None:
            sources = ", ".join(source["path"] for source in self.sources[:3])
            if not self.n_residues:
                raise SequenceError(
                    sources or "<records>",
                    f"no residues in {self.n_subjects} records; expected a sequence below a header line",
                )
            self._close_run()
            self._add_lengths(np.array([self.n_residues - self._begun]))
            longest, number = self._longest
            if longest > LONGEST:
                problem = f"record {number} has {longest:,} residues, expected at most {LONGEST:,}"
                raise SequenceError(sources, problem)
            self._classes = self._counts.classes()
        return self._classes

    def hold(self, file: Any) -> Any:
        """Close a file, too, when the spool is closed; return it."""
        self._held.callback(file.close)
        return file

    def close(self) -> None:
        """Close the temporary files, which removes them."""
        self._held.close()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
