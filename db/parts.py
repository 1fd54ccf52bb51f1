"""A run of what was read, as if nothing else had been: what a volume is laid out from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.db.classes import LengthClasses
from swsearch.db.cuts import VolumeRun, n_masked_between
from swsearch.db.numbers import NUMBERS_AT_ONCE, NumberSequence, RunFile, SeekableFile, run_counts
from swsearch.db.regroup import Groups
from swsearch.db.spool import Spool

Bounds = tuple[int, int]


class FilePart:
    """A part of a binary file, to be read from any place; the file stays open.

    Parameters
    ----------
    file : SeekableFile
        All of it; others may seek in it between two calls of `seek` and `read`, not within.
    bounds : (int, int)
        First byte, and the one after the last.
    """

    def __init__(self, file: SeekableFile, bounds: Bounds) -> None:
        self._file, (self._begin, self._end), self._at = file, bounds, 0

    def seek(self, at: int) -> int:
        """Go on reading at a place."""
        self._at = at
        return at

    def read(self, n_bytes: int) -> bytes:
        """Return so many bytes; fewer at the end."""
        place = self._begin + self._at
        self._file.seek(place)
        found = self._file.read(max(min(n_bytes, self._end - place), 0))
        self._at += len(found)
        return found

    def close(self) -> None:
        """Do nothing: other parts are read after this one."""


class NumbersPart:
    """A part of some numbers, which stay open.

    Parameters
    ----------
    numbers : NumberSequence
        All of them.
    bounds : (int, int)
        The first, and the one after the last.
    """

    def __init__(self, numbers: NumberSequence, bounds: Bounds) -> None:
        self._numbers, (self._begin, self._end) = numbers, bounds

    def __len__(self) -> int:
        return self._end - self._begin

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return numbers ``start`` to ``stop``, shape (stop - start,)."""
        return self._numbers.read(self._begin + start, self._begin + stop)

    def pieces(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all numbers of the part, some at a time; shape (n,)."""
        for start in range(0, len(self), NUMBERS_AT_ONCE):
            yield self.read(start, min(start + NUMBERS_AT_ONCE, len(self)))

    def close(self) -> None:
        """Do nothing: other parts are read after this one."""


class RunsPart:
    """The masked runs of some records.

    Parameters
    ----------
    runs : RunFile
        Those of all records.
    bounds : (int, int)
        The first run, and the one after the last.
    first : int
        The first of the records.
    """

    def __init__(self, runs: RunFile, bounds: Bounds, first: int) -> None:
        self._owners = NumbersPart(runs.owners, bounds)
        self._first = first
        self.starts, self.ends = NumbersPart(runs.starts, bounds), NumbersPart(runs.ends, bounds)
        self.n_masked = n_masked_between(runs, *bounds)

    def __len__(self) -> int:
        return len(self._owners)

    def counts(self, n_subjects: int) -> Iterator[IntArray]:
        """Yield how many runs each record of the part has, some at a time; shape (n_records,), int64."""
        return run_counts(self._owners, self._first, n_subjects)


class SpoolPart:
    """A run of what a spool holds, which takes no room but for what is held with it.

    Parameters
    ----------
    spool : Spool
        All input.
    run : VolumeRun
        What of it.
    groups : Groups, optional
        The run's subjects, where the spool has no residues; closed with this.
    """

    def __init__(self, spool: Spool, run: VolumeRun, groups: Groups | None = None) -> None:
        self.folder: Path | None = spool.folder
        self.sources, self.groups = run.sources, groups
        self.n_header_bytes = run.header_bytes[1] - run.header_bytes[0]
        self.codes, self.headers = FilePart(spool.codes, run.residues), FilePart(spool.headers, run.header_bytes)
        self.lengths = NumbersPart(spool.lengths, run.records)
        self.header_lengths = NumbersPart(spool.header_lengths, run.records)
        self.masks = RunsPart(spool.masks, run.masked, run.records[0])
        self.tantan = None if spool.tantan is None else RunsPart(spool.tantan, run.tantan, run.records[0])
        self.extras = [each.of(run.records) for each in spool.extras]
        self._classes, self._held = run.classes, ExitStack()
        if groups is not None:
            self.hold(groups)

    def finish(self) -> LengthClasses:
        """Return the order of the subjects."""
        return self._classes

    def hold(self, file: Any) -> Any:
        """Close a file, too, when this is closed; return it."""
        self._held.callback(file.close)
        return file

    def __enter__(self) -> SpoolPart:
        return self

    def close(self) -> None:
        """Close what was made for this."""
        self._held.close()

    def __exit__(self, *_: object) -> None:
        self.close()
