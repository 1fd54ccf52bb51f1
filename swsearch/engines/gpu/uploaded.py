"""Queries on the device: their scores by letter, strips and tables, and the thresholds of their hits.

What belongs here copies queries to the device, knows where they are, and what must be done before they are
overwritten; `queries` and `tracks` lay them out on the host, and `launch` hands the addresses to the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.engines.gpu.device import Device
from swsearch.engines.gpu.limits import LARGEST
from swsearch.engines.gpu.memory import Region
from swsearch.engines.gpu.queries import Part
from swsearch.engines.gpu.tracks import BatchLayout, WavefrontLayout

Settle = Callable[[Collection["UploadedPart"]], None]
"""Waits until no kernel uses some parts."""


@dataclass(frozen=True)
class UploadedBatch:
    """A `BatchLayout` with the addresses of its scores by letter and its strips."""

    batch: BatchLayout
    profile: int
    strips: int


@dataclass(frozen=True)
class UploadedWavefront:
    """A `WavefrontLayout` with the addresses of its scores by letter and its table of queries."""

    wavefront: WavefrontLayout
    profile: int
    table: int


class UploadedPart:
    """A part's scores by letter, strips and tables on the device.

    Parameters
    ----------
    device : Device
        Its context must be current.
    part : Part
        The queries.
    region : Region
        Where it goes.
    stream : Stream
        For the copies.
    longest : int
        Longest subject, in residues.
    settle : callable
        Waits until no kernel uses the parts that it is given.

    Attributes
    ----------
    part : Part
        The queries.
    n_lengths : int
        Lengths of subjects that thresholds are held for: 0 to the longest.
    batches : list of UploadedBatch
        For the inter-task kernel.
    wavefront : UploadedWavefront or None
        For the wavefront kernel; None if all queries are empty.
    """

    def __init__(self, device: Device, part: Part, region: Region, stream: Any, longest: int, settle: Settle) -> None:
        self.part, self._device, self._stream, self._settle = part, device, stream, settle

        def put(array: npt.NDArray[Any]) -> int:
            address = region.take(array.nbytes)
            device.upload(address, array.reshape(-1).view(np.uint8), stream)
            return address

        self._tables: list[npt.NDArray[np.int64] | None] | None = None
        self.n_lengths = longest + 1
        self._thresholds = region.take(4 * len(part.profiles) * self.n_lengths)

        self.batches = [UploadedBatch(batch, put(batch.profile), put(batch.strips)) for batch in part.batches]
        self.wavefront: UploadedWavefront | None = None
        if wave := part.wavefront:
            self.wavefront = UploadedWavefront(wave, put(wave.profile), put(wave.table))

    def thresholds(self, tables: Sequence[npt.NDArray[np.int64] | None]) -> int:
        """Bring the least scores by subject length to the device, unless they are there already.

        They are the same for every chunk of a job, so that they are brought once.

        Parameters
        ----------
        tables : sequence of (ndarray or None)
            For each query of the part the least score of a hit for each length, shape (n_lengths,), int64, matrix
            units; None where there is no such bound.

        Returns
        -------
        int
            Address of the table, shape (n_queries, n_lengths), int32; 0 where no query has a bound by length.
        """
        if all(table is None for table in tables):
            return 0
        known = self._tables
        if known is None or any(a is not b for a, b in zip(known, tables, strict=True)):
            rows = np.full((len(tables), self.n_lengths), -LARGEST, dtype=np.int32)
            for row, table in zip(rows, tables, strict=True):
                if table is not None:
                    # a table that ends before the longest subject is of a database without it
                    row[: len(table)] = np.minimum(table[: self.n_lengths], LARGEST)
            if known is not None:
                self._settle([self])
            self._device.upload(self._thresholds, rows, self._stream)
            self._tables = list(tables)
        return self._thresholds

    @staticmethod
    def n_bytes(part: Part, longest: int) -> int:
        """Return the bytes that a part takes, with thresholds for subjects of up to ``longest`` residues."""
        arrays: list[npt.NDArray[Any]] = []
        for batch in part.batches:
            arrays += [batch.profile, batch.strips]
        if part.wavefront:
            arrays += [part.wavefront.profile, part.wavefront.table]
        return sum(array.nbytes + 256 for array in arrays) + 4 * len(part.profiles) * (longest + 1) + 512


class UploadedParts:
    """The parts on the device, in areas that are filled in turn, so that one is filled while another is in use.

    Parameters
    ----------
    device : Device
        Where they are.
    areas : sequence of Region
        At least one.
    stream : Stream
        For the copies.
    longest : int
        Longest subject, in residues.
    settle : callable
        Waits until no kernel uses the parts that it is given.
    """

    def __init__(self, device: Device, areas: Sequence[Region], stream: Any, longest: int, settle: Settle) -> None:
        self._device, self._stream, self._longest, self._settle = device, stream, longest, settle
        self._areas: list[tuple[Region, dict[Part, UploadedPart]]] = [(area, {}) for area in areas]

    def __len__(self) -> int:
        return sum(len(held) for _, held in self._areas)

    def get(self, part: Part) -> UploadedPart:
        """Return a part as it is on the device, where it stays while there is room; the context must be current."""
        for _, held in self._areas:
            if part in held:
                return held[part]
        size = UploadedPart.n_bytes(part, self._longest)
        if not self._areas[0][0].fits(size):
            self._areas.append(self._areas.pop(0))  # the one that was filled longest ago
            area, held = self._areas[0]
            if held:
                self._settle(held.values())
            held.clear()
            area.reset()
        area, held = self._areas[0]
        region = Region(area.take(size), size)
        held[part] = UploadedPart(self._device, part, region, self._stream, self._longest, self._settle)
        return held[part]
