"""Resources of a slot on the device and the host, and resources shared by all slots.

The module hands out memory, counters, streams and events for one turn of a slot. `launch` knows which kernels use
them, `slot` when a turn begins and ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import Chunk, IntArray
from swsearch.engines.gpu.device import Device
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.memory import HIT_BYTES, MemoryPlan, Region

TASK_BYTES = 8
"""Bytes of a task in the device's list: ``Task`` of ``cuda/wavefront.cu``."""

COUNTERS = 256
"""Counters of a slot, cleared at every turn: that of hits first, then one for each launch and each list of tasks."""

HIT_COUNTERS = 1
"""The counter of hits, which launches do not get."""

COUNTER_BYTES = 4
"""Bytes of a counter, which is a 32-bit word."""

HITS_AT_ONCE = 2048
"""Hits that are copied back with their count; a second copy brings the rest."""


MUCH_SMALLER = 4
"""Times that a turn has to have more query residues than another for this not to wait for it. A choice."""


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
class EngineUsage:
    """Work of an engine, for benchmarks, servers and ``--verbose``.

    Parameters
    ----------
    load_seconds : float
        Wall time of handing residues to the device.
    cells : int
        Query residues times subject residues that were scored.
    kernel_seconds : float
        Time in which kernels ran, by the device's clock.
    launched : set of str
        Which kernels were used, by their source.
    """

    load_seconds: float = 0.0
    cells: int = 0
    kernel_seconds: float = 0.0
    launched: set[str] = field(default_factory=set)


class TurnOrder:
    """Lets the launches of one turn begin when those of the one before are done, and not beside them.

    Launches of two streams share the device, so that two turns of the same size end together, and whoever waits for
    the first has waited for both. A turn that is much smaller than the one before waits for nothing: it is asked for
    by somebody else, and does not take long.

    Parameters
    ----------
    event : Event
        Nobody else's.
    """

    def __init__(self, event: Any) -> None:
        self._event, self._n_rows = event, 0

    def wait(self, stream: Any, n_rows: int) -> bool:
        """Make the stream of a turn of ``n_rows`` query residues wait; return whether the next turn waits for it."""
        if MUCH_SMALLER * n_rows < self._n_rows:
            return False
        stream.wait_for_event(self._event)
        self._n_rows = n_rows
        return True

    def end(self, stream: Any) -> None:
        """Record on a stream that the next turn may begin after the launches so far."""
        self._event.record(stream)


@dataclass
class Shared:
    """Resources that the slots of an engine share.

    Parameters
    ----------
    device : Device
        Where everything runs.
    kernels : Kernels
        What is launched.
    plan : MemoryPlan
        Sizes.
    usage : EngineUsage
        Is added to.
    last_ended : Event
        When kernels ended last, of those whose time was added.
    boundary, taken, wavefront : int
        Addresses of the regions for what the inter-task kernel keeps between passes, of a word for each that says
        whether a block has it, and of the memory for what the wavefront kernel keeps.
    wavefront_free : Event
        Recorded when the last wavefront kernel is done with its memory.
    order : TurnOrder or None
        When turns begin; None where each begins at once: small chunks leave room for the next.
    """

    device: Device
    kernels: Kernels
    plan: MemoryPlan
    usage: EngineUsage
    last_ended: Any
    boundary: int
    taken: int
    wavefront: int
    wavefront_free: Any
    order: TurnOrder | None = None


class SlotMemory:
    """Memory, streams and events of one slot.

    Parameters
    ----------
    shared : Shared
        What the slots share; the device's context must be current.
    region : Region
        The slot's memory.

    Attributes
    ----------
    stream, beside : Stream
        The slot's own stream, and a second one for what runs at the same time.
    cleared, beside_done : Event
        When the second stream may begin, and when it is done.
    started, ended : Event
        When the turn's work began and ended, by the device's clock.
    scores, hits, rescored : int
        Addresses of all scores, of the list of hits or tasks, and of what is kept when pairs are scored again.
    counters_back : ndarray, shape (COUNTERS,), uint32
        Page-locked; the counters as they were copied back last.
    hits_back : ndarray, shape (HITS_AT_ONCE * HIT_BYTES,), uint8
        Page-locked; room for the first hits.
    shape : tuple of (int, int)
        Queries and subjects of the turn.
    """

    def __init__(self, shared: Shared, region: Region) -> None:
        device, plan = shared.device, shared.plan
        self.shared, self.device, self.kernels, self.plan = shared, device, shared.kernels, plan
        self.stream, self.beside = device.stream(), device.stream()
        self.cleared, self.beside_done = device.event(), device.event()
        self.started, self.ended = device.event(timing=True), device.event(timing=True)
        self._counters = region.take(COUNTERS * COUNTER_BYTES)
        self.scores = region.take(plan.scores)
        self.hits = region.take(plan.hits)
        self.rescored = region.take(plan.rescored)
        self._small = Region(region.take(plan.small), plan.small)
        self._small_host = device.pinned(plan.small)
        back = device.pinned(COUNTERS * COUNTER_BYTES + HITS_AT_ONCE * HIT_BYTES)
        self.counters_back: npt.NDArray[np.uint32] = back[: COUNTERS * COUNTER_BYTES].view(np.uint32)
        self.hits_back: npt.NDArray[np.uint8] = back[COUNTERS * COUNTER_BYTES :]
        self.shape = (0, 0)
        self._next_counter = self._kept_counters = self._kept_small = 0
        self._is_followed = False
        self.turn: Any = None
        """The `swsearch.engines.gpu.slot.Turn` that uses the slot, or did last."""

    # a turn

    @property
    def is_awaited(self) -> bool:
        """Whether a turn was begun that is not settled yet."""
        return self.turn is not None and not self.turn.is_settled

    def wait_for_turn(self, n_rows: int) -> None:
        """Make the slot's stream wait until a turn of ``n_rows`` query residues may begin."""
        order = self.shared.order
        self._is_followed = order is not None and order.wait(self.stream, n_rows)

    def end_turn(self) -> None:
        """Say that the next turn may begin after what was launched for this one."""
        if self._is_followed and self.shared.order is not None:
            self.shared.order.end(self.stream)

    def add_times(self) -> None:
        """Add the time of the turn's work, which has ended, to that of the engine; what overlaps counts once."""
        shared = self.shared
        later = float(self.ended.time_since(shared.last_ended)) / 1000.0
        if later > 0.0:
            shared.usage.kernel_seconds += min(later, float(self.ended.time_since(self.started)) / 1000.0)
            self.ended, shared.last_ended = shared.last_ended, self.ended

    def take_all(self, n_queries: int, n_subjects: int) -> None:
        """Begin a turn: everything that the last one was given is free again."""
        self.shape = (n_queries, n_subjects)
        self._small.reset()
        self._next_counter = HIT_COUNTERS

    def clear(self) -> None:
        """Set the counters and the scores to 0, on the slot's stream."""
        self.device.clear_async(self._counters, COUNTERS * COUNTER_BYTES, self.stream)
        self.device.clear_async(self.scores, 4 * self.shape[0] * self.shape[1], self.stream)

    def keep(self) -> None:
        """Keep what was given so far through every `start_again`."""
        self._kept_small, self._kept_counters = self._small.used, self._next_counter

    def start_again(self) -> None:
        """Reclaim the memory handed out since `keep`, after the launches that used it."""
        self._small.used, self._next_counter = self._kept_small, self._kept_counters
        n_bytes = COUNTER_BYTES * (COUNTERS - self._kept_counters)
        self.device.clear_async(self._counters + COUNTER_BYTES * self._kept_counters, n_bytes, self.stream)

    # small tables and counters

    def put(self, array: npt.NDArray[Any], stream: Any) -> int:
        """Copy a small array of any shape and type to the device through page-locked memory; return its address."""
        address = self._small.take(array.nbytes)
        offset = address - self._small.address
        pinned = self._small_host[offset : offset + array.nbytes]
        pinned[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.device.upload_async(address, pinned, stream)
        return address

    @property
    def hit_counter(self) -> int:
        """Address of the counter of hits."""
        return self._counters

    def counter(self) -> int:
        """Return the address of a counter that no launch of this turn has used."""
        self._next_counter += 1
        assert self._next_counter <= COUNTERS
        return self._counters + COUNTER_BYTES * (self._next_counter - 1)

    def clear_counter(self, address: int) -> None:
        """Set one counter back to 0."""
        self.device.clear_async(address, COUNTER_BYTES, self.stream)

    def count_back(self, address: int) -> int:
        """Return what a counter was when the counters were copied back last."""
        return int(self.counters_back[(address - self._counters) // COUNTER_BYTES])

    def fetch_counters(self) -> None:
        """Copy the counters back, after what the slot's stream holds."""
        self.device.download_async(self.counters_back.view(np.uint8), self._counters, self.stream)

    # lists of pairs of a query and a subject

    def capacity(self, what: str) -> int:
        """Return the entries that the list of ``hits`` or of ``tasks`` holds."""
        return self.plan.hits // (HIT_BYTES if what == "hits" else TASK_BYTES)

    @property
    def pairs(self) -> range:
        """Numbers of all pairs of queries and subjects."""
        return range(self.shape[0] * self.shape[1])

    # the wavefront kernel's memory, which all slots share

    def wait_for_wavefront(self, stream: Any) -> None:
        """Make a stream wait until no other slot's wavefront kernel uses the shared memory."""
        stream.wait_for_event(self.shared.wavefront_free)

    def end_wavefront(self, stream: Any) -> None:
        """Say that what a stream holds so far uses that memory."""
        self.shared.wavefront_free.record(stream)

    def close(self) -> None:
        """Wait for everything and let go of it, while the context is current."""
        self.turn = None
        self.stream.synchronize()
        self.beside.synchronize()
        for name in (
            "stream", "beside", "cleared", "beside_done", "started", "ended", "_small_host", "counters_back",
            "hits_back",
        ):  # fmt: skip
            delattr(self, name)
