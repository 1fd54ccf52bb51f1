"""Entries of a database as FASTA again, in any order, whatever its size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import LANES, Chunk, IntArray
from swsearch.db.classes import offsets_of
from swsearch.db.content import ranges
from swsearch.db.fasta import split_header
from swsearch.db.numbers import MIB, NumberFile, temporary_on_disk
from swsearch.db.regroup import rows_at
from swsearch.errors import OptionError

LINE = 60
"""Residues in a line."""

SUBJECTS_TOGETHER = 1 << 14
"""Entries whose headers and masked runs are read at once."""

FEW_ENTRIES = 1 << 12
"""Entries that are read one block after the other; of more, all of the file is read, once."""

WINDOW_RESIDUES = 128 * MIB
"""Residues that are put into another order at once: more go through a temporary file."""

PASS_BYTES = 8 * MIB
"""Interleaved residues that are read at once."""

_STRIP = (64, 16, 4, 1)
_RANGE = re.compile(r"([0-9]{1,10})-([0-9]{1,10})?")


class ResidueRange(NamedTuple):
    """A part of every entry, 0-based and half-open; the end is None where it is each entry's own."""

    start: int
    end: int | None

    @classmethod
    def parse(cls, text: str, option: str = "range") -> ResidueRange:
        """Read ``10-80``, or ``10-`` for all from there on: residues counted from 1, the last one included.

        Raises
        ------
        OptionError
            If it is none.
        """
        found = _RANGE.fullmatch(text) if isinstance(text, str) else None
        expected = "residues counted from 1, such as 10-80, or 10- for all from there on"
        if found is None:
            raise OptionError(option, text, expected)
        first, last = int(found[1]), None if found[2] is None else int(found[2])
        if first < 1 or (last is not None and last < first):
            raise OptionError(option, text, expected)
        return cls(first - 1, last)


class EntryBatch(NamedTuple):
    """Some subjects with their residues, in the order that was asked for."""

    subjects: IntArray
    """Their ordinals, shape (n,)."""
    codes: ByteArray
    """Their residues, one subject after the other."""
    offsets: IntArray
    """Where each begins in ``codes``, and the end of the last, shape (n + 1,)."""


def copy_strips(source: ByteArray, begins: IntArray, target: ByteArray, to: IntArray, lengths: IntArray) -> None:
    """Copy stretches of bytes from one array to another, some millions in a second.

    Parameters
    ----------
    source, target : ndarray, shape (n_bytes,), uint8
        Read, and written.
    begins, to : ndarray, shape (n,), int64
        Where each stretch begins in both.
    lengths : ndarray, shape (n,), int64
        Bytes of each.
    """
    rest = np.flatnonzero(lengths > 0)
    for width in _STRIP:
        fits = lengths[rest] >= width
        chosen, rest = rest[fits], rest[~fits]
        if not len(chosen):
            continue
        # the last piece ends where the stretch ends, and may overlap the one before
        n = -(-lengths[chosen] // width)
        owners = np.repeat(chosen, n)
        at = np.minimum(ranges(np.zeros(len(chosen), dtype=np.int64), n) * width, lengths[owners] - width)
        pieces = np.ndarray((len(target) - width + 1,), dtype=f"V{width}", buffer=target, strides=(1,))
        pieces[to[owners] + at] = rows_at(source, begins[owners] + at, width).view(f"V{width}").reshape(-1)


def rows_of(chunk: Chunk) -> Iterator[tuple[ByteArray, npt.NDArray[np.int32], IntArray]]:
    """Yield subjects whose blocks have as many columns: residues, shape (n, columns), lengths, and ordinals."""
    columns, lengths = np.diff(chunk.column_offsets), chunk.lengths
    firsts = np.flatnonzero(np.diff(columns, prepend=-1))
    for first, last in pairwise([*firsts.tolist(), len(columns)]):
        blocks = chunk.residues[chunk.column_offsets[first] : chunk.column_offsets[last]]
        lanes = slice(first * LANES, min(last * LANES, len(lengths)))
        by_lane = blocks.reshape(last - first, columns[first], LANES).transpose(0, 2, 1)
        rows = by_lane.reshape((last - first) * LANES, columns[first])  # of empty subjects there are no columns
        yield rows, lengths[lanes], chunk.subjects[lanes].astype(np.int64)


def in_order(database: Any, subjects: IntArray, folder: Path | None = None) -> Iterator[EntryBatch]:
    """Yield subjects with their residues in an order that is asked for.

    Parameters
    ----------
    database : Database
        Of which; its own module imports this one, so that it is not named in types.
    subjects : ndarray, shape (n,), int64
        Ordinals, each once.
    folder : path, optional
        Where temporary files go; the system's place if None.
    """
    if len(subjects) <= FEW_ENTRIES:
        for first in range(0, len(subjects), 64):
            some = subjects[first : first + 64]
            yield EntryBatch(some, *database.codes_of(some))
        return
    with _Windows(database, subjects, folder) as windows:
        for number in range(len(windows)):
            whole = windows.read(number)
            for first in range(0, len(whole.subjects), SUBJECTS_TOGETHER):
                offsets = whole.offsets[first : first + SUBJECTS_TOGETHER + 1]
                codes = whole.codes[offsets[0] : offsets[-1]]
                yield EntryBatch(whole.subjects[first : first + len(offsets) - 1], codes, offsets - offsets[0])


class _Windows:
    """Subjects in windows of their order, filled in one pass over the file; a context manager.

    Parameters
    ----------
    database, subjects, folder
        As for `in_order`.
    """

    def __init__(self, database: Any, subjects: IntArray, folder: Path | None) -> None:
        self._subjects = subjects
        lengths = database.lengths
        self._offsets = offsets_of(lengths[subjects])
        self._place = np.full(database.n_subjects, -1, dtype=np.int64)
        self._place[subjects] = np.arange(len(subjects))
        self._ends = self._cut()
        self._held = ExitStack()
        self._memory = np.empty(int(self._offsets[-1]) if len(self._ends) == 1 else 0, dtype=np.uint8)
        if len(self._ends) > 1:
            self._codes = self._held.enter_context(temporary_on_disk(folder))
            self._places = NumberFile(folder, "<i8", on_disk=True)
            self._held.callback(self._places.close)
        begins = np.append(0, self._ends[:-1])
        self._codes_at, self._places_at = self._offsets[begins].copy(), begins.copy()
        self._begins = begins
        for chunk in database.chunks(PASS_BYTES, mask="none"):
            for rows, counts, ordinals in rows_of(chunk):
                places = self._place[ordinals]
                wanted = np.flatnonzero(places >= 0)
                if len(wanted):
                    self._add(rows, counts[wanted].astype(np.int64), places[wanted], wanted)

    def _cut(self) -> IntArray:
        ends = [0]
        while ends[-1] < len(self._subjects):
            limit = int(self._offsets[ends[-1]]) + WINDOW_RESIDUES
            ends.append(max(int(np.searchsorted(self._offsets, limit, side="right")) - 1, ends[-1] + 1))
        return np.array(ends[1:])

    def _add(self, rows: ByteArray, lengths: IntArray, places: IntArray, wanted: IntArray) -> None:
        """Take some rows of a table of residues: those of some places in the order."""
        begins = wanted * rows.shape[1]
        flat = rows.reshape(-1)
        if len(self._memory):
            copy_strips(flat, begins, self._memory, self._offsets[places], lengths)
        if len(self._ends) == 1:
            return
        windows = np.searchsorted(self._ends, places, side="right")
        order = np.argsort(windows, kind="stable")
        cuts = np.searchsorted(windows[order], np.arange(len(self._ends) + 1)).tolist()
        for window, (a, b) in enumerate(pairwise(cuts)):
            if a < b:
                some = order[a:b]
                to = offsets_of(lengths[some])
                codes = np.empty(int(to[-1]), dtype=np.uint8)
                copy_strips(flat, begins[some], codes, to[:-1], lengths[some])
                self._codes.seek(int(self._codes_at[window]))
                self._codes.write(codes.data)
                self._places.write(places[some], int(self._places_at[window]))
                self._codes_at[window] += len(codes)
                self._places_at[window] += len(some)

    def __len__(self) -> int:
        return len(self._ends)

    def read(self, number: int) -> EntryBatch:
        """Return the subjects of a window."""
        first, last = int(self._begins[number]), int(self._ends[number])
        offsets = self._offsets[first : last + 1]
        subjects = self._subjects[first:last]
        if len(self._ends) == 1:
            return EntryBatch(subjects, self._memory, offsets)
        places = self._places.read(first, last)
        self._codes.seek(int(offsets[0]))
        arrived = np.frombuffer(self._codes.read(int(offsets[-1] - offsets[0])), dtype=np.uint8)
        lengths = self._offsets[places + 1] - self._offsets[places]
        codes = np.empty(len(arrived), dtype=np.uint8)
        copy_strips(arrived, offsets_of(lengths)[:-1], codes, self._offsets[places] - offsets[0], lengths)
        return EntryBatch(subjects, codes, offsets - offsets[0])

    def __enter__(self) -> _Windows:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


def fasta_of(
    database: Any, subjects: IntArray, part: ResidueRange | None = None, folder: Path | None = None
) -> Iterator[bytes]:
    """Yield subjects as FASTA, as they came in: 60 residues a line, masked ones in lower case.

    Parameters
    ----------
    database : Database
        Of which.
    subjects : ndarray, shape (n,), int64
        Ordinals, each once.
    folder : path, optional
        Where temporary files go; the system's place if None.
    part : ResidueRange, optional
        What of each; ``:10-80`` then follows its identifier. Entries that end before it are left out.
    """
    for batch in in_order(database, subjects, folder):
        letters = PROTEIN.decode_table[batch.codes]
        _lower(database, batch, letters)
        headers, bounds = database.headers_of(batch.subjects)
        begins, ends = batch.offsets[:-1], batch.offsets[1:]
        if part is None:
            yield _text(headers, bounds, letters, begins, ends - begins)
            continue
        stops = ends if part.end is None else np.minimum(begins + part.end, ends)
        kept = np.flatnonzero(begins + part.start < stops)
        last = (stops - begins).tolist()
        named = [
            _with_range(headers[bounds[place] : bounds[place + 1]].tobytes(), part.start + 1, last[place])
            for place in kept.tolist()
        ]
        pool = np.frombuffer(b"".join(named), dtype=np.uint8)
        sizes = np.array([len(each) for each in named], dtype=np.int64)
        begins = begins[kept] + part.start
        yield _text(pool, offsets_of(sizes), letters, begins, stops[kept] - begins)


def _with_range(header: bytes, first: int, last: int) -> bytes:
    identifier, _ = split_header(header)
    at = header.index(identifier) + len(identifier)
    return b"%s:%d-%d%s" % (header[:at], first, last, header[at:])


def _lower(database: Any, batch: EntryBatch, letters: ByteArray) -> None:
    """Write what is soft-masked in lower case."""
    offsets, starts, ends = database.masked_of(batch.subjects, "lower")
    if len(starts):
        begins = np.repeat(batch.offsets[:-1], np.diff(offsets)) + starts
        letters[ranges(begins, (ends - starts).astype(np.int64))] |= 0x20  # a masked '*' has it set already


def _text(headers: ByteArray, bounds: IntArray, letters: ByteArray, begins: IntArray, lengths: IntArray) -> bytes:
    """Return records as FASTA: headers with their bounds, and where each sequence stands in ``letters``."""
    sizes = np.diff(bounds)
    n_lines = -(-lengths // LINE)
    at = offsets_of(sizes + lengths + n_lines + 2)
    text = np.full(int(at[-1]), ord("\n"), dtype=np.uint8)
    text[at[:-1]] = ord(">")
    copy_strips(headers, bounds[:-1], text, at[:-1] + 1, sizes)
    number = ranges(np.zeros(len(n_lines), dtype=np.int64), n_lines)
    owners = np.repeat(np.arange(len(n_lines)), n_lines)
    counts = np.minimum(lengths[owners] - number * LINE, LINE)
    to = (at[:-1] + sizes + 2)[owners] + number * (LINE + 1)
    copy_strips(letters, begins[owners] + number * LINE, text, to, counts)
    return text.tobytes()
