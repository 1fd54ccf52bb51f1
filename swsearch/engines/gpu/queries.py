"""Queries on the device: a group is cut into parts that are scored together, each laid out for the kernels.

A part stays on the device, with the thresholds of its hits, until another one needs the memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.engines.gpu.compiler import Kernel
from swsearch.engines.gpu.device import Device
from swsearch.engines.gpu.limits import LARGEST, UNCERTAIN, Lane16, half_lane, has_room, highest_score, lane16
from swsearch.engines.gpu.memory import PART_QUERIES, Region
from swsearch.engines.gpu.tracks import BatchLayout, WavefrontLayout, choose_batches, plan_batches, plan_wavefront
from swsearch.engines.gpu.variants import DeviceKind, Form, OpenExtend, WavefrontVariant, choose_wavefront_rows
from swsearch.recurrence import Recurrence
from swsearch.scoring import Mode, QueryProfile, Scoring


@dataclass(eq=False)
class Part:
    """Queries that are scored together; numbers count within the part.

    Parameters
    ----------
    first : int
        Place of its first query in the group.
    profiles : sequence of QueryProfile
        Some may be empty; those take no part in any launch.
    scoring : Scoring
        Matrix and gap costs, with bounds that cover the queries.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    kind : DeviceKind
        Of the device.
    """

    first: int
    profiles: Sequence[QueryProfile]
    scoring: Scoring
    mode: Mode
    kind: DeviceKind
    batches: list[BatchLayout] = field(init=False)
    wavefront: WavefrontLayout | None = field(init=False)

    def __post_init__(self) -> None:
        filled = [query for query, profile in enumerate(self.profiles) if len(profile)]
        self._highest = {query: highest_score(self.profiles[query]) for query in filled}
        batchable = [query for query in filled if self.lane(query, 1, 1) is not None]
        form = _form(self.scoring, self.mode, self.kind)
        self.batches = plan_batches(self.profiles, batchable, form) if batchable else []
        self.wavefront = plan_wavefront(self.profiles, filled, self.mode) if filled else None

    @property
    def gaps(self) -> OpenExtend:
        """Costs of opening and of extending a gap."""
        return _gaps(self.scoring)

    def lane(self, query: int, rows: int, columns: int) -> Lane16 | None:
        """Say how a query is scored in 16 bits; ``rows`` is rounded up to the query's length."""
        rows = max(rows, len(self.profiles[query]))
        return lane16(self.scoring, self.mode, self.profiles[query], rows, columns, self._highest[query])

    def common_lane(self, queries: Sequence[int], rows: int, columns: int) -> Lane16 | None:
        """Say how several queries are scored in one launch, or None if one of them does not fit.

        Parameters
        ----------
        rows : int
            Most rows of a query, padding included.
        columns : int
            Most columns of a subject, padding included.
        """
        lanes = [self.lane(query, rows, columns) for query in queries]
        bias = max((lane.bias for lane in lanes if lane is not None), default=0)
        room = [has_room(self.scoring, bias, self._highest[query]) for query in queries]
        if any(lane is None for lane in lanes) or (self.mode != "local" and not all(room)):
            return None
        return Lane16(bias, min((lane.limit for lane in lanes if lane is not None), default=UNCERTAIN))

    def may_saturate(self, limit: int, longest: int) -> bool:
        """Say whether a local score could reach a lane's limit."""
        entry = max(self.scoring.max_score, 0)
        return any(min(high, longest * entry) >= limit for high in self._highest.values())


def _gaps(scoring: Scoring) -> OpenExtend:
    return scoring.gap_open, scoring.gap_extend


def _form(scoring: Scoring, mode: Mode, kind: DeviceKind) -> Form:
    """Return the form of the inter-task kernel: with scores as half-precision numbers where these may be held so."""
    half = kind.half and half_lane(scoring, mode) is not None
    return Form(mode, half, _gaps(scoring), kind.highest)


def _n_parts(n_queries: int, at_once: int) -> int:
    return -(-n_queries // max(1, min(at_once, PART_QUERIES)))


def _cut(n_queries: int, n_parts: int) -> Iterator[slice]:
    """Cut queries into parts of equal size: a last part of one query would be the slowest."""
    for bounds in np.array_split(np.arange(n_queries), n_parts):
        yield slice(int(bounds[0]), int(bounds[-1]) + 1)


def kernels_of(lengths: Sequence[int], recurrence: Recurrence, kind: DeviceKind, at_once: int) -> set[Kernel]:
    """Return the kernels that a group of queries of these lengths takes, as a rule: see `Launch.kernels`."""
    scoring, mode, kernels = recurrence.scoring, recurrence.mode, set[Kernel]()
    for part in _cut(len(lengths), _n_parts(len(lengths), at_once)):
        filled = {query: length for query, length in enumerate(lengths[part]) if length}
        if filled:
            chosen = choose_batches(filled, _form(scoring, mode, kind))
            rows = choose_wavefront_rows(list(filled.values()))
            kernels |= {variant.kernel for variant, _ in chosen}
            kernels |= {WavefrontVariant(rows, bits, mode, _gaps(scoring)).kernel for bits in (16, 32)}
    return kernels


_laying_out = threading.Lock()
"""Devices of one kind share a group; what is laid out for one of them is not laid out again."""


@dataclass
class Group:
    """A group of queries, cut into parts as memory allows."""

    profiles: Sequence[QueryProfile]
    scoring: Scoring
    mode: Mode
    kind: DeviceKind
    _parts: dict[int, list[Part]] = field(default_factory=dict)

    def parts(self, at_once: int) -> list[Part]:
        """Return parts of at most ``at_once`` queries, the same objects every time."""
        n = _n_parts(len(self.profiles), at_once)
        if n not in self._parts:
            with _laying_out:
                if n not in self._parts:
                    self._parts[n] = [
                        Part(part.start, self.profiles[part], self.scoring, self.mode, self.kind)
                        for part in _cut(len(self.profiles), n)
                    ]
        return self._parts[n]


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
        """Copy the minimum scores by subject length to the device, unless they are there already.

        The scores are the same for every chunk of a job.

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
