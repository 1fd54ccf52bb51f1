"""Entries of a database as FASTA, in any order, whatever its size."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.blocks import IntArray
from swsearch.db.arrays import Strips, copy_strips, cut_into_groups, offsets_of, ranges
from swsearch.db.fasta import split_header
from swsearch.errors import OptionError

LINE = 60
"""Residues in a line."""

WINDOW_BYTES = 64 << 20
"""Residues that are read at once; the text of more, in another order than the input's, goes through a file."""

TEXT_BYTES = 2 << 20
"""Residues that become text at once, and text that is written at once."""

PREAD_BYTES = 1 << 30
"""Bytes of one read; Linux reads less than 2 GiB at once."""

ENTRY_BYTES = 256
"""Bytes that an entry counts for besides its residues."""

_RANGE = re.compile(r"([0-9]{1,10})-([0-9]{1,10})?")


class ResidueRange(NamedTuple):
    """A part of every entry, 0-based and half-open."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str, option: str = "range") -> ResidueRange:
        """Parse ``10-80``, or ``10-`` up to the end: residues counted from 1, the last one included."""
        match = _RANGE.fullmatch(text) if isinstance(text, str) else None
        first, end = (int(match[1]), int(match[2] or 1 << 62)) if match else (0, 0)
        if not 1 <= first <= end:
            raise OptionError(option, text, "residues counted from 1, such as 10-80, or 10- for all from there on")
        return cls(first - 1, end)


def in_order(database: Any, subjects: IntArray) -> Iterator[tuple[IntArray, Strips]]:
    """Yield subjects and their residues in the order of their ordinals' array, shape (n,), int64, some at a time.

    Neighbours are read together, so ascending ordinals are read fastest.
    """
    sizes = offsets_of(database.lengths_of(subjects) + np.int64(ENTRY_BYTES))
    for first, last in cut_into_groups(sizes, WINDOW_BYTES):
        codes = Strips(*database.codes_of(subjects[first:last]))
        for begin, end in cut_into_groups(sizes[first : last + 1], TEXT_BYTES):
            yield subjects[first + begin : first + end], codes.part(begin, end)


def fasta_of(database: Any, subjects: IntArray, part: ResidueRange | None = None) -> Iterator[bytes]:
    """Yield subjects by ordinals, shape (n,), int64, as the FASTA that they came from, with 60 residues a line.

    With a part, ``:10-80`` follows each identifier, and entries that end before it are left out.
    """
    n_residues = int(database.lengths_of(subjects).sum(dtype=np.int64))
    if n_residues <= WINDOW_BYTES or (subjects[1:] > subjects[:-1]).all():
        for some, codes in in_order(database, subjects):
            yield _texts(database, some, codes, part).data.tobytes()
        return
    order = np.argsort(subjects, kind="stable")
    sizes, begins = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    with TemporaryFile() as file:
        done = 0
        for some, codes in in_order(database, subjects[order]):
            texts, places = _texts(database, some, codes, part), order[done : done + len(some)]
            sizes[places], begins[places] = texts.counts, file.tell() + texts.offsets[:-1]
            file.write(texts.data.data)
            done += len(some)
        file.flush()
        for first, last in cut_into_groups(offsets_of(sizes), TEXT_BYTES):
            ranges = zip(begins[first:last].tolist(), sizes[first:last].tolist(), strict=True)
            yield b"".join(
                os.pread(file.fileno(), min(size - done, PREAD_BYTES), begin + done)
                for begin, size in ranges
                for done in range(0, size, PREAD_BYTES)
            )


def _texts(database: Any, subjects: IntArray, codes: Strips, part: ResidueRange | None) -> Strips:
    """Return the FASTA text of each subject, or of its part; it is empty if the subject ends before the part."""
    # takes half the time of decode_table[...]
    letters = np.frombuffer(bytearray(codes.data).translate(PROTEIN.decode_table.tobytes()), dtype=np.uint8)
    starts, lengths = codes.offsets[:-1], codes.counts
    runs, begins, ends = database.masked_runs_of(subjects, "lower")
    if len(begins):
        letters[ranges(np.repeat(starts, np.diff(runs)) + begins, (ends - begins).astype(np.int64))] |= 0x20
    headers = Strips(*database.headers_of(subjects))
    is_shown = np.ones(len(subjects), dtype=bool)
    if part is not None:
        starts, lengths = starts + part.start, np.maximum(np.minimum(lengths, part.end) - part.start, 0)
        is_shown = lengths > 0
        text, bounds = headers.data.tobytes(), headers.offsets
        named = [
            _with_range(text[a:b], part.start + 1, part.start + n) if n else b""
            for a, b, n in zip(bounds[:-1].tolist(), bounds[1:].tolist(), lengths.tolist(), strict=True)
        ]
        headers = Strips.from_counts(np.frombuffer(b"".join(named), dtype=np.uint8), np.array([*map(len, named)]))
    n_lines = -(-lengths // LINE)
    at = offsets_of((headers.counts + lengths + n_lines + 2) * is_shown)
    texts = np.full(int(at[-1]), ord("\n"), dtype=np.uint8)
    texts[at[:-1][is_shown]] = ord(">")
    copy_strips(headers.data, headers.offsets[:-1], texts, at[:-1] + 1, headers.counts)
    number, owners = ranges(np.zeros_like(n_lines), n_lines), np.repeat(np.arange(len(n_lines)), n_lines)
    counts = np.minimum(lengths[owners] - number * LINE, LINE)
    to = (at[:-1] + headers.counts + 2)[owners] + number * (LINE + 1)
    copy_strips(letters, starts[owners] + number * LINE, texts, to, counts)
    return Strips(texts, at)


def _with_range(header: bytes, first: int, last: int) -> bytes:
    """Return a header line with the residues that are shown after its identifier."""
    identifier, _ = split_header(header)
    at = header.index(identifier) + len(identifier)
    return b"%s:%d-%d%s" % (header[:at], first, last, header[at:])
