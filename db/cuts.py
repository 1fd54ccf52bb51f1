"""Where input is cut into volumes, and what of it each of them holds.

What was read is cut between two records, so that a volume holds a run of the input. The size of its file is known
beforehand: it follows from the lengths of its records, their headers and their masked runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.db.classes import LengthClasses, LengthCounts
from swsearch.db.format import n_checksums
from swsearch.db.layout import dataset_bytes, shapes_of
from swsearch.db.numbers import RunNumbers
from swsearch.db.spool import ExtraPart, Spool
from swsearch.errors import OptionError

METADATA_BYTES = 24 << 10
"""Bytes of a database file besides its datasets and their checksums, with room to spare: 14 to 18 KiB were seen."""

PART_METADATA_BYTES = 16 << 10
"""The same for an optional part of the database."""

MOST_BUILT = 500
"""Most volumes of a database: a process may often have no more than 1,024 files open."""

RECORD_BYTES = 28
"""Least bytes of a record besides its residues and its header: length, place, two offsets."""


@dataclass(frozen=True)
class RecordNumbers:
    """NumberSequence of some records that stand one after the other.

    Parameters
    ----------
    lengths, header_lengths, runs, tantan : ndarray, shape (n,), integer
        Residues, bytes of the header, runs of lower case, and runs that tantan masks: 0 where it masks nothing.
    """

    lengths: npt.NDArray[np.integer[Any]]
    header_lengths: npt.NDArray[np.integer[Any]]
    runs: npt.NDArray[np.integer[Any]]
    tantan: npt.NDArray[np.integer[Any]]

    def part(self, first: int, last: int) -> RecordNumbers:
        """Return those from ``first`` to ``last``, excluded."""
        chosen = slice(first, last)
        return RecordNumbers(
            self.lengths[chosen], self.header_lengths[chosen], self.runs[chosen], self.tantan[chosen]
        )

    def __len__(self) -> int:
        return len(self.lengths)


def _windows(spool: Spool) -> Iterator[RecordNumbers]:
    """Yield the numbers of all records, some at a time."""
    n = len(spool.lengths)
    low: Iterator[IntArray] | None = None if spool.tantan is None else spool.tantan.counts(n)
    each = zip(spool.lengths.pieces(), spool.header_lengths.pieces(), spool.masks.counts(n), strict=True)
    for lengths, header_lengths, runs in each:
        yield RecordNumbers(
            lengths, header_lengths, runs, np.zeros(len(runs), np.int64) if low is None else next(low)
        )


class _Volume:
    """The numbers of a volume that grows.

    Parameters
    ----------
    n_source_bytes : int
        Most bytes of the JSON that says what it is made of.
    has_tantan : bool
        Whether it has the datasets of tantan's mask.
    extras : sequence of ExtraPart
        Optional parts of the database.
    first : int
        Its first record.
    """

    def __init__(self, n_source_bytes: int, has_tantan: bool, extras: Sequence[ExtraPart], first: int) -> None:
        self._n_source_bytes, self._has_tantan = n_source_bytes, has_tantan
        self._extras, self._first = extras, first
        self._values = self._counts = np.empty(0, dtype=np.int64)
        self._sums = np.zeros(3, dtype=np.int64)
        self.n = 0
        """Its records."""

    def _with(self, more: RecordNumbers) -> tuple[LengthClasses, IntArray]:
        counts = LengthCounts()
        counts.add(more.lengths)
        added = counts.classes()
        values, back = np.unique(np.concatenate([self._values, added.values]), return_inverse=True)
        numbers = np.zeros(len(values), dtype=np.int64)
        np.add.at(numbers, back, np.concatenate([self._counts, added.counts]))
        sums = [each.sum(dtype=np.int64) for each in (more.header_lengths, more.runs, more.tantan)]
        return LengthClasses(values[::-1], numbers[::-1]), self._sums + np.array(sums)

    def size_with(self, more: RecordNumbers) -> int:
        """Return the size of its file with more records, in bytes; the file has no more."""
        classes, sums = self._with(more)
        header_bytes, runs, low = sums.tolist()
        shapes = shapes_of(classes, header_bytes, self._n_source_bytes, runs, low if self._has_tantan else None)
        extra = 0
        for each in self._extras:
            shapes |= each.of((self._first, self._first + self.n + len(more))).shapes()
            extra += PART_METADATA_BYTES
        return METADATA_BYTES + extra + sum(n + 4 * n_checksums(n) for n in dataset_bytes(shapes).values())

    def add(self, more: RecordNumbers) -> None:
        """Take more records; at least one."""
        classes, self._sums = self._with(more)
        self._values, self._counts = classes.values, classes.counts
        self.n += len(more)

    def room_for(self, more: RecordNumbers, size: int) -> int:
        """Return how many of some records, one at least, it can take if its file is to have at most so many bytes."""
        least = np.cumsum(more.lengths.astype(np.int64) + more.header_lengths + (8 * (more.runs + more.tantan)))
        least += RECORD_BYTES * np.arange(1, len(more) + 1)
        none, most = 0, int(np.searchsorted(least, size, side="right"))
        if most and self.size_with(more.part(0, most)) <= size:
            return most
        while most - none > 1:  # `none` fits, `most` does not
            middle = (none + most) // 2
            fits = self.size_with(more.part(0, middle)) <= size
            none, most = (middle, most) if fits else (none, middle)
        return none


def ends_by_size(spool: Spool, size: int) -> list[int]:
    """Cut what was read into volumes whose files have at most so many bytes, as few as possible.

    Parameters
    ----------
    spool : Spool
        All input.
    size : int
        Bytes of a file; one that holds a single record may be larger.

    Returns
    -------
    list of int
        The record after each volume's last.

    Raises
    ------
    OptionError
        If there would be more than `MOST_BUILT`.
    """
    n_source_bytes, has_tantan = len(json.dumps(spool.sources).encode()), spool.tantan is not None
    ends: list[int] = []
    at = 0
    volume = _Volume(n_source_bytes, has_tantan, spool.extras, at)
    for window in _windows(spool):
        while len(window):
            n = volume.room_for(window, size)
            if n < len(window):
                if not volume.n:
                    n = max(n, 1)
                if n:
                    volume.add(window.part(0, n))
                at += volume.n
                ends.append(at)
                volume = _Volume(n_source_bytes, has_tantan, spool.extras, at)
                if len(ends) > MOST_BUILT:
                    problem = f"a size that makes at most {MOST_BUILT} volumes; after so many {at:,} of"
                    raise OptionError("volume_size", size, f"{problem} {len(spool.lengths):,} records are stored")
            else:
                volume.add(window)
            window = window.part(n, len(window))  # noqa: PLW2901
    return [*ends, at + volume.n] if volume.n else ends


def ends_by_number(spool: Spool, volumes: int) -> list[int]:
    """Cut what was read into so many volumes of about as many residues each.

    Returns
    -------
    list of int
        The record after each volume's last.

    Raises
    ------
    OptionError
        If there are fewer records, or more volumes than `MOST_BUILT`.
    """
    n = len(spool.lengths)
    if not 1 <= volumes <= min(n, MOST_BUILT):
        expected = f"1 to {MOST_BUILT}" if n > MOST_BUILT else f"1 to {n}, the number of subjects"
        raise OptionError("volumes", volumes, expected)
    goals = [spool.n_residues * (number + 1) // volumes for number in range(volumes)]
    found: list[int] = []
    residues = at = 0
    for lengths in spool.lengths.pieces():
        sums = np.cumsum(lengths, dtype=np.int64) + residues
        while len(found) < volumes and goals[len(found)] <= int(sums[-1]):
            found.append(at + int(np.searchsorted(sums, goals[len(found)])) + 1)
        residues, at = int(sums[-1]), at + len(lengths)
    found[-1] = n  # empty records may follow the last residue
    for number in range(volumes):  # each has one at least, and leaves one for each of the others
        least = found[number - 1] + 1 if number else 1
        found[number] = min(max(found[number], least), n - (volumes - 1 - number))
    return found


@dataclass(frozen=True)
class VolumeRun:
    """What of the input a volume holds.

    Parameters
    ----------
    records, residues, header_bytes, masked, tantan : tuple of (int, int)
        The first of each, and the one after the last, among those of all input.
    classes : LengthClasses
        The order of its records.
    sources : list of dict
        What it is made of: for each input the records and residues that are in it.
    """

    records: tuple[int, int]
    residues: tuple[int, int]
    header_bytes: tuple[int, int]
    masked: tuple[int, int]
    tantan: tuple[int, int]
    classes: LengthClasses
    sources: list[dict[str, Any]]


class _SourceCounts:
    """Counts the records and residues of each input that a volume holds."""

    def __init__(self, sources: list[dict[str, Any]]) -> None:
        self._sources = sources
        self._ends = np.cumsum([source["records"] for source in sources], dtype=np.int64)
        self._counts = np.zeros((2, len(sources) + 1), dtype=np.int64)

    def add(self, first: int, lengths: npt.NDArray[np.integer[Any]]) -> None:
        """Take records, the first of which is the ``first`` of all."""
        cuts = np.clip(self._ends - first, 0, len(lengths))
        sums = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        for counts, each in zip(self._counts, (cuts, sums[cuts]), strict=True):
            counts[:-1] += np.diff(each, prepend=0)

    def take(self) -> list[dict[str, Any]]:
        """Return what was counted, and begin anew."""
        found = [
            {**source, "records": n, "residues": residues}
            for source, n, residues in zip(self._sources, *self._counts[:, :-1].tolist(), strict=True)
            if n
        ]
        self._counts[:] = 0
        return found


def runs_of(spool: Spool, ends: Sequence[int]) -> Iterator[VolumeRun]:
    """Yield what each volume holds, one after the other.

    Parameters
    ----------
    spool : Spool
        All input.
    ends : sequence of int
        The record after each volume's last.
    """
    windows, window, at = _windows(spool), RecordNumbers(*[np.empty(0, np.int64)] * 4), 0
    sources, before = _SourceCounts(spool.sources), np.zeros(4, dtype=np.int64)
    first = 0
    for end in ends:
        counts, sums = LengthCounts(), before.copy()
        while at < end:
            window = window if len(window) else next(windows)
            part = window.part(0, end - at)
            counts.add(part.lengths)
            sources.add(at, part.lengths)
            numbers = (part.lengths, part.header_lengths, part.runs, part.tantan)
            sums += np.array([each.sum(dtype=np.int64) for each in numbers])
            at, window = at + len(part), window.part(len(part), len(window))
        bounds = list(zip(before.tolist(), sums.tolist(), strict=True))
        yield VolumeRun((first, end), bounds[0], bounds[1], bounds[2], bounds[3], counts.classes(), sources.take())
        first, before = end, sums


def n_masked_between(runs: RunNumbers, first: int, last: int) -> int:
    """Count the residues of runs from ``first`` to ``last``, excluded."""
    step = 1 << 18
    bounds = [(at, min(at + step, last)) for at in range(first, last, step)]
    return sum(int((runs.ends.read(a, b).astype(np.int64) - runs.starts.read(a, b)).sum()) for a, b in bounds)
