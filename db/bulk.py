"""Many subjects at once: each block and each piece of a file is read once, in file order, and checked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.classes import offsets_of
from swsearch.db.content import ranges
from swsearch.db.stored import Segment
from swsearch.errors import shown
from swsearch.options.words import Mask

LengthArray = npt.NDArray[np.int32]
Pool = tuple[ByteArray, IntArray]
RunArrays = tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32]]


def checked_subjects(subjects: Any, n_subjects: int) -> IntArray:
    """Return ordinals as an array, shape (n,), int64.

    Raises
    ------
    TypeError
        If they are no whole numbers, or in more than one dimension.
    IndexError
        If there is no such subject.
    """
    given = np.asarray(subjects)
    if given.ndim != 1 or (len(given) and not np.issubdtype(given.dtype, np.integer)):
        raise TypeError(f"subjects: got {shown(subjects)}, expected integers in one dimension")
    outside = (given < 0) | (given >= n_subjects) if len(given) else given
    if outside.any():
        raise IndexError(f"subject {given[np.argmax(outside)]}, expected 0 to {n_subjects - 1}")
    return given.astype(np.int64)


def by_segment(segments: Sequence[Segment], subjects: IntArray) -> Iterator[tuple[Segment, IntArray, IntArray]]:
    """Yield each segment that holds some of the subjects, shape (n,), which of them, and their places in it."""
    if len(segments) == 1:
        yield segments[0], np.arange(len(subjects)), subjects - segments[0].first
        return
    firsts = np.array([segment.first for segment in segments])
    of = np.searchsorted(firsts, subjects, side="right") - 1
    for number in np.flatnonzero(np.bincount(of, minlength=1)).tolist():
        which, segment = np.flatnonzero(of == number), segments[number]
        yield segment, which, subjects[which] - segment.first


def lengths_of(segments: Sequence[Segment], subjects: IntArray) -> LengthArray:
    """See `Database.lengths_of`."""
    lengths = np.empty(len(subjects), dtype=np.int32)
    for segment, which, places in by_segment(segments, subjects):
        lengths[which] = segment.lengths_of(places)
    return lengths


def codes_of(segments: Sequence[Segment], subjects: IntArray) -> Pool:
    """See `Database.codes_of`."""
    offsets = offsets_of(lengths_of(segments, subjects))
    pool = np.empty(int(offsets[-1]), dtype=np.uint8)
    for segment, which, places in by_segment(segments, subjects):
        segment.copy_codes(places, offsets[which], pool)
    return pool, offsets


def headers_of(segments: Sequence[Segment], subjects: IntArray) -> Pool:
    """See `Database.headers_of`."""
    begins, counts = np.empty(len(subjects), dtype=np.int64), np.empty(len(subjects), dtype=np.int64)
    for segment, which, places in by_segment(segments, subjects):
        begins[which], ends = segment.bounds_of("header", places)
        counts[which] = ends - begins[which]
    offsets = offsets_of(counts)
    pool = np.empty(int(offsets[-1]), dtype=np.uint8)
    for segment, which, places in by_segment(segments, subjects):
        segment.copy_headers(places, begins[which], counts[which], offsets[which], pool)
    return pool, offsets


def masked_of(segments: Sequence[Segment], subjects: IntArray, mask: Mask) -> RunArrays:
    """See `Database.masked_of`."""
    counts = np.zeros(len(subjects), dtype=np.int64)
    found = []
    for segment, which, places in by_segment(segments, subjects) if mask != "none" else ():
        counts[which], some_starts, some_ends = segment.runs_of(places, mask)
        found.append((which, some_starts, some_ends))
    offsets = offsets_of(counts)
    starts, ends = (np.empty(int(offsets[-1]), dtype=np.int32) for _ in range(2))
    for which, some_starts, some_ends in found:
        rows = ranges(offsets[which], counts[which])
        starts[rows], ends[rows] = some_starts, some_ends
    return offsets, starts, ends
