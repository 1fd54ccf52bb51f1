"""Which blocks of a database are loaded: all of them, or those of one of several shares, chunk by chunk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from swsearch.blocks import LANES, RunLengths
from swsearch.db.stored import Segment

Run = tuple[Segment, int, int]
"""A segment, its first block of some and the end of these."""

SHORT_RUNS = 6
"""Chunks of short subjects after each one of long subjects, where they are mixed."""


def all_blocks(segments: Sequence[Segment]) -> tuple[Run, ...]:
    """Return every block of segments."""
    return tuple((segment, 0, len(segment.block_offsets) - 1) for segment in segments)


def n_bytes_of(runs: Sequence[Run]) -> int:
    """Count the bytes of the interleaved residues, padding included."""
    columns = sum(int(segment.block_offsets[last] - segment.block_offsets[first]) for segment, first, last in runs)
    return columns * LANES


def lengths_in(runs: Sequence[Run]) -> RunLengths:
    """Return the lengths of the subjects of blocks, sorted, the longest first."""
    return RunLengths.counted([_lengths(*run) for run in runs])


def _lengths(segment: Segment, first: int, last: int) -> RunLengths:
    if (first, last) == (0, len(segment.block_offsets) - 1):
        return segment.lengths
    return segment.lengths.part(first * LANES, min(last * LANES, segment.n_subjects))


def share_of(runs: Sequence[Run], place: int, of: int) -> tuple[Run, ...]:
    """Return the blocks of one share of about equal bytes; all shares one after the other are the blocks.

    A block belongs to the share in which its middle stands, so that a share is empty where there are fewer blocks
    than shares; those of empty subjects alone, which have no bytes, belong to the last.
    """
    total, found, at = n_bytes_of(runs) // LANES, [], 0
    for segment, first, last in runs:
        offsets = segment.block_offsets[first : last + 1]
        middles = 2 * at + (offsets[:-1] - offsets[0]) + (offsets[1:] - offsets[0])
        begin, end = (int(np.searchsorted(middles, -(-2 * total * each // of))) for each in (place, place + 1))
        end = last - first if place == of - 1 else end
        if begin < end:
            found.append((segment, first + begin, first + end))
        at += int(offsets[-1] - offsets[0])
    return tuple(found)


def chunks_of(runs: Sequence[Run], max_bytes: int, mixed: bool) -> Iterator[Run]:
    """Cut blocks into runs of at most ``max_bytes``, or of one block; long and short ones mixed if asked for."""
    found: list[Run] = []
    for segment, begin, end in runs:
        segment.check_blocks()
        first = begin
        while first < end:
            last = min(segment.next_block(first, max_bytes), end)
            found.append((segment, first, last))
            first = last
    return _mixed(found) if mixed else iter(found)


def _mixed(runs: list[Run]) -> Iterator[Run]:
    """Take one run from the front, some from the back, and so on until they meet."""
    waiting = deque(runs)
    while waiting:
        yield waiting.popleft()
        for _ in range(min(SHORT_RUNS, len(waiting))):
            yield waiting.pop()
