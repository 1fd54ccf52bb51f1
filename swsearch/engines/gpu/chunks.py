"""Records that everything else of the GPU engine shares: a chunk on the device, and what the engine has done so far.

What belongs here knows of addresses and numbers alone: it launches nothing and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from swsearch.blocks import Chunk, IntArray
from swsearch.engines.gpu.memory import Region

Span = tuple[float, float]
"""Two times in seconds, or a duration and a time."""

SPANS_KEPT = 256
"""Runs of kernels of which it is known when they were, at least: more than there are at a time on a device."""


@dataclass
class GpuChunk:
    """A chunk on the device.

    Parameters
    ----------
    chunk : Chunk
        What it was made of, without the residues.
    residues, tiles, lengths : int
        Addresses of the arranged residues, of each block's first tile and of the subjects' lengths.
    columns : ndarray, shape (n_blocks,), int64
        Columns of each block.
    region : Region
        Where it stands.
    ready : Event
        Recorded when it is complete.
    integer_turns : int
        Turns that begin as integers, since one before had too many scores that half precision does not hold.
    """

    chunk: Chunk
    residues: int
    tiles: int
    lengths: int
    columns: IntArray
    region: Region
    ready: Any
    integer_turns: int = 0

    @property
    def n_subjects(self) -> int:
        """Subjects, empty ones included."""
        return self.chunk.n_subjects


@dataclass
class Usage:
    """What an engine did, for benchmarks, servers and ``--verbose``.

    Parameters
    ----------
    load_seconds : float
        Wall time of handing residues to the device.
    cells : int
        Query residues times subject residues that were scored.
    spans : list of (float, float)
        When kernels ran lately, in seconds by the device's clock; `ran` adds one.
    n_folded : int
        Spans that are there no more, and are contained in ``kernel_seconds``.
    launched : set of str
        Which kernels were used, by their source.
    """

    load_seconds: float = 0.0
    cells: int = 0
    spans: list[Span] = field(default_factory=list)
    n_folded: int = 0
    launched: set[str] = field(default_factory=set)
    _folded: Span = (0.0, float("-inf"))
    """Seconds in the spans that are there no more, and where the last of them ended."""

    @property
    def kernel_seconds(self) -> float:
        """Time in which at least one slot's kernels were running."""
        spans = list(self.spans)  # first: what is folded meanwhile is then in both, and counts once
        return together(self._folded, spans)[0]

    @property
    def n_runs(self) -> int:
        """Runs of kernels, each for a part of the queries and a chunk."""
        return self.n_folded + len(self.spans)

    def ran(self, begin: float, end: float) -> None:
        """Note when kernels ran; an engine that runs for months keeps no more of it than it needs."""
        self.spans.append((begin, end))
        if len(self.spans) >= 2 * SPANS_KEPT:
            self._folded = together(self._folded, self.spans[:SPANS_KEPT])
            self.spans, self.n_folded = self.spans[SPANS_KEPT:], self.n_folded + SPANS_KEPT

    def add(self, other: Usage, after: float) -> None:
        """Add what another device did, whose clock began so many seconds after this one's.

        What is there no more of its spans is taken for having been at the same time.
        """
        self.load_seconds += other.load_seconds
        self.cells += other.cells
        self.spans += [(begin + after, end + after) for begin, end in list(other.spans)]
        self.n_folded += other.n_folded
        self.launched |= set(other.launched)
        self._folded = (max(self._folded[0], other._folded[0]), max(self._folded[1], other._folded[1] + after))


def together(before: Span, spans: Sequence[Span]) -> Span:
    """Return the seconds in which there was at least one of some spans, and where the last one ends.

    Parameters
    ----------
    before : (float, float)
        The same for spans that came before.
    spans : sequence of (float, float)
        Begin and end, in any order.
    """
    total, end = before
    for begin, stop in sorted(spans):
        total += max(stop - max(begin, end), 0.0)
        end = max(end, stop)
    return total, end
