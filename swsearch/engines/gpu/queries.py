"""Queries on the device: a group is cut into parts that are scored together, each laid out for the kernels."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from swsearch.engines.gpu.limits import UNCERTAIN, Lane16, half_lane, has_room, highest_score, lane16
from swsearch.engines.gpu.memory import PART_QUERIES
from swsearch.engines.gpu.tracks import BatchLayout, WavefrontLayout, plan_batches, plan_wavefront
from swsearch.engines.gpu.variants import DeviceKind, Form, OpenExtend
from swsearch.scoring import Mode, QueryRows, Scoring


@dataclass(eq=False)
class Part:
    """Queries that are scored together; numbers count within the part.

    Parameters
    ----------
    first : int
        Place of its first query in the group.
    profiles : sequence of QueryRows
        Some may be empty; those take no part in any launch.
    scoring : Scoring
        Matrix and gap costs, with bounds that cover the queries.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    kind : DeviceKind
        Of the device.
    """

    first: int
    profiles: Sequence[QueryRows]
    scoring: Scoring
    mode: Mode
    kind: DeviceKind
    batches: list[BatchLayout] = field(init=False)
    wavefront: WavefrontLayout | None = field(init=False)

    def __post_init__(self) -> None:
        filled = [query for query, profile in enumerate(self.profiles) if len(profile)]
        self._highest = {query: highest_score(self.profiles[query]) for query in filled}
        batchable = [query for query in filled if self.lane(query, 1, 1) is not None]
        half = self.kind.half and half_lane(self.scoring, self.mode) is not None
        form = Form(self.mode, half, self.gaps, self.kind.highest)
        self.batches = plan_batches(self.profiles, batchable, form) if batchable else []
        self.wavefront = plan_wavefront(self.profiles, filled, self.mode) if filled else None

    @property
    def gaps(self) -> OpenExtend:
        """Costs of opening and of extending a gap."""
        return self.scoring.gap_open, self.scoring.gap_extend

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
        entry = max(self.scoring.highest, 0)
        return any(min(high, longest * entry) >= limit for high in self._highest.values())


_laying_out = threading.Lock()
"""Devices of one kind share a group; what is laid out for one of them is not laid out again."""


@dataclass
class Group:
    """A group of queries, cut into parts as memory allows."""

    profiles: Sequence[QueryRows]
    scoring: Scoring
    mode: Mode
    kind: DeviceKind
    _parts: dict[int, list[Part]] = field(default_factory=dict)

    def parts(self, at_once: int) -> list[Part]:
        """Return parts of at most ``at_once`` queries, the same objects every time."""
        size = max(1, min(at_once, PART_QUERIES))
        # equal parts: a last part of one query would be the slowest
        n = -(-len(self.profiles) // size)
        if n not in self._parts:
            with _laying_out:
                if n not in self._parts:
                    self._parts[n] = list(self._cut(n))
        return self._parts[n]

    def _cut(self, n: int) -> Iterator[Part]:
        for bounds in np.array_split(np.arange(len(self.profiles)), n):
            first, last = int(bounds[0]), int(bounds[-1]) + 1
            yield Part(first, self.profiles[first:last], self.scoring, self.mode, self.kind)
