"""Records that everything else of the GPU engine shares: a chunk on the device, and what the engine has done so far.

What belongs here knows of addresses and numbers alone: it launches nothing and waits for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from swsearch.blocks import Chunk, IntArray
from swsearch.engines.gpu.memory import Region


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
    """

    chunk: Chunk
    residues: int
    tiles: int
    lengths: int
    columns: IntArray
    region: Region
    ready: Any

    @property
    def n_subjects(self) -> int:
        """Subjects, empty ones included."""
        return self.chunk.n_subjects


@dataclass
class Usage:
    """What an engine did, for benchmarks and ``--verbose``.

    Parameters
    ----------
    load_seconds : float
        Wall time of handing residues to the device.
    cells : int
        Query residues times subject residues that were scored.
    spans : list of (float, float)
        When kernels ran, in seconds by the device's clock.
    launched : set of str
        Which kernels were used, by their source.
    """

    load_seconds: float = 0.0
    cells: int = 0
    spans: list[tuple[float, float]] = field(default_factory=list)
    launched: set[str] = field(default_factory=set)

    @property
    def kernel_seconds(self) -> float:
        """Time in which at least one slot's kernels were running."""
        total, end = 0.0, float("-inf")
        for start, stop in sorted(self.spans):
            total += max(stop - max(start, end), 0.0)
            end = max(end, stop)
        return total
