"""One chunk in work: the launches for a part of the queries, and what comes back.

A slot has its own memory and two streams, so that the wavefront kernel, which takes the longest subjects, runs
beside the inter-task kernel, and so that the next chunk's kernels may begin on another slot while this one's last
jobs are running.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swsearch.engines.base import ScoreArray, Thresholds
from swsearch.engines.gpu.device import Device
from swsearch.engines.gpu.kernels import THREADS, Kernels
from swsearch.engines.gpu.launch import LARGEST, Launch, UploadedPart
from swsearch.engines.gpu.memory import HIT_BYTES, MemoryPlan, Region

if TYPE_CHECKING:
    from swsearch.engines.gpu.engine import GpuChunk, Usage

HIT = np.dtype([("query", "<i4"), ("place", "<i4"), ("score", "<i4")])
"""``Found`` of ``cuda/scores.cu``."""

assert HIT.itemsize == HIT_BYTES

COUNTERS = 256
"""Counters of a slot, cleared at every turn: of hits first, then one for each launch and each list of tasks."""

LIST_COUNTERS = 1
"""The counter of hits."""

HITS_AT_ONCE = 2048
"""Hits that are copied back with their count; a second copy brings the rest."""


class Results:
    """What a slot will have when its launches are done; kept here when the slot goes on to its next turn."""

    def __init__(self, slot: Slot) -> None:
        self._slot: Slot | None = slot
        self._values: tuple[npt.NDArray[np.void] | None, ScoreArray | None] = (None, None)

    def is_ready(self) -> bool:
        """Say whether `get` would not wait."""
        return self._slot is None or self._slot.is_done

    def get(self) -> tuple[npt.NDArray[np.void] | None, ScoreArray | None]:
        """Wait; return the hits ordered by query, or all scores if those were asked for or hits are too many."""
        if self._slot is not None:
            self._values = self._slot.fetch()
            self._slot = None
        return self._values


@dataclass(frozen=True)
class Common:
    """What the slots of an engine share.

    Parameters
    ----------
    device : Device
        Where everything runs.
    kernels : Kernels
        What is launched.
    plan : MemoryPlan
        Sizes.
    clock : Event
        Where times count from.
    usage : Usage
        Where they are noted.
    boundary, taken, wavefront : int
        Addresses of the regions for what the inter-task kernel keeps between passes, of a word for each that says
        whether a block has it, and of the memory for what the wavefront kernel keeps.
    wavefront_free : Event
        Recorded when the last wavefront kernel is done with its memory.
    """

    device: Device
    kernels: Kernels
    plan: MemoryPlan
    clock: Any
    usage: Usage
    boundary: int
    taken: int
    wavefront: int
    wavefront_free: Any


class Slot:
    """Memory and streams for one chunk in work.

    Parameters
    ----------
    common : Common
        What the slots share; the device's context must be current.
    region : Region
        The slot's memory.
    """

    def __init__(self, common: Common, region: Region) -> None:
        self.common, device, plan = common, common.device, common.plan
        self.device, self.kernels, self.plan = device, common.kernels, plan
        self.stream, self.beside = device.stream(), device.stream()
        self.cleared, self.beside_done = device.event(), device.event()
        self._begin, self._end = device.event(timing=True), device.event(timing=True)
        self._counters = region.take(COUNTERS * 4)
        self.scores = region.take(plan.scores)
        self.hits = region.take(plan.hits)
        self._small = Region(region.take(plan.small), plan.small)
        self._host = device.pinned(plan.small)
        self._back = device.pinned(COUNTERS * 4 + HITS_AT_ONCE * HIT_BYTES)
        self.shape = (0, 0)
        self._next_counter = self._kept_counters = self._kept_small = 0
        self._launch: Launch | None = None
        self._lists_hits = False
        self._results: Results | None = None

    # launching

    def start(self, uploaded: UploadedPart, chunk: GpuChunk, thresholds: Thresholds | None) -> Results:
        """Launch everything for a part and a chunk; with thresholds, hits are listed."""
        self.settle()
        part, stream = uploaded.part, self.stream
        self.shape = (len(part.profiles), chunk.n_subjects)
        self._small.reset()
        self._next_counter = LIST_COUNTERS
        self._launch = Launch(self, uploaded, chunk)
        needed = self._launch.kernels()
        self.kernels.require(needed)
        self.common.usage.launched.update(kernel.source for kernel in needed)
        stream.wait_for_event(chunk.ready)
        self._begin.record(stream)
        self.device.clear_async(self._counters, COUNTERS * 4, stream)
        self.device.clear_async(self.scores, 4 * self.shape[0] * self.shape[1], stream)
        self._launch.run()
        self._lists_hits = thresholds is not None
        if thresholds is not None:
            self._prepare_thresholds(uploaded, thresholds)
            self._list_hits()
        self._kept_small, self._kept_counters = self._small.used, self._next_counter
        self._finish()
        self._results = Results(self)
        return self._results

    def put(self, array: npt.NDArray[Any], stream: Any) -> int:
        """Bring a small array to the device through page-locked memory."""
        address = self._small.take(array.nbytes)
        offset = address - self._small.address
        pinned = self._host[offset : offset + array.nbytes]
        pinned[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.device.upload_async(address, pinned, stream)
        return address

    def wait_for_wavefront(self, stream: Any) -> None:
        """Let a stream wait until no other slot's wavefront kernel uses the memory that they share."""
        stream.wait_for_event(self.common.wavefront_free)

    def end_wavefront(self, stream: Any) -> None:
        """Say that what a stream holds so far uses that memory."""
        self.common.wavefront_free.record(stream)

    def counter(self) -> int:
        """Return the address of a counter that no launch of this turn has used."""
        self._next_counter += 1
        assert self._next_counter <= COUNTERS
        return self._counters + 4 * (self._next_counter - 1)

    def counter_index(self, address: int) -> int:
        """Return a counter's place among the slot's counters."""
        return (address - self._counters) // 4

    def clear_counter(self, address: int) -> None:
        """Set one counter back to 0."""
        self.device.clear_async(address, 4, self.stream)

    def start_again(self) -> None:
        """Give launches of this turn that are done their small memory and counters back, but those of lists."""
        self._small.used = self._kept_small
        self._next_counter = self._kept_counters
        self.device.clear_async(
            self._counters + 4 * self._kept_counters, 4 * (COUNTERS - self._kept_counters), self.stream
        )

    def collect(self, what: str, thresholds: int, n_lengths: int, least: int, count: int, pairs: range) -> None:
        """Launch the kernel that lists tasks or hits among pairs of queries and subjects."""
        assert self._launch is not None
        arguments = (self.scores, self.shape[1], self.shape[1], self._launch.chunk.lengths, thresholds, n_lengths,
                     least, pairs.start, pairs.stop, self.hits, self.capacity(what), count)  # fmt: skip
        blocks = max(1, min(-(-len(pairs) // THREADS), self.device.info.multiprocessors * 8))
        self.kernels.collect(what).launch(blocks, THREADS, self.stream, arguments)

    def capacity(self, what: str) -> int:
        """Entries that the list holds."""
        return self.plan.hits // (HIT_BYTES if what == "hits" else 8)

    @property
    def pairs(self) -> range:
        """Numbers of all pairs of queries and subjects."""
        return range(self.shape[0] * self.shape[1])

    def _prepare_thresholds(self, uploaded: UploadedPart, thresholds: Thresholds) -> None:
        part = uploaded.part
        n = len(part.profiles)
        tables = [thresholds.by_length[part.first + query] for query in range(n)]
        least = [thresholds.least[part.first + query] for query in range(n)]
        floor = np.array([-LARGEST if value is None else value for value in least], dtype=np.int32)
        self._thresholds = (uploaded.thresholds(tables), uploaded.n_lengths, self.put(floor, self.stream))

    def _list_hits(self) -> None:
        self.device.clear_async(self._counters, 4, self.stream)
        self.collect("hits", *self._thresholds, self._counters, self.pairs)
        n_first = min(HITS_AT_ONCE, self.capacity("hits"))
        back = self._back[COUNTERS * 4 : COUNTERS * 4 + n_first * HIT_BYTES]
        self.device.download_async(back, self.hits, self.stream)

    def _finish(self) -> None:
        self.device.download_async(self._back[: COUNTERS * 4], self._counters, self.stream)
        self._end.record(self.stream)

    # results

    @property
    def is_awaited(self) -> bool:
        """Whether results were begun that nobody took yet."""
        return self._results is not None

    @property
    def is_done(self) -> bool:
        """Whether the device has done what was started last."""
        done: bool = self._end.query()
        return done

    def _wait(self) -> None:
        """Wait for the device, open to Ctrl-C."""
        while not self._end.query():
            time.sleep(0.0002)

    def settle(self) -> None:
        """Wait for what was started last, and keep its results if nobody took them yet."""
        if self._results is not None:
            self._results.get()

    def fetch(self) -> tuple[npt.NDArray[np.void] | None, ScoreArray | None]:
        """Wait for what was started last and bring it back; see `Results.get`."""
        self._wait()
        self._results = None
        assert self._launch is not None
        counts = self._back[: COUNTERS * 4].view(np.uint32)
        if self._launch.rescore_in_parts(counts):
            if self._lists_hits:
                self._list_hits()
            self._finish()
            self._wait()
        span = (self._begin.time_since(self.common.clock), self._end.time_since(self.common.clock))
        self.common.usage.spans.append((span[0] / 1000.0, span[1] / 1000.0))
        count = int(counts[0])
        if self._lists_hits and count <= self.capacity("hits"):
            return self._fetch_hits(count), None
        values: ScoreArray = np.empty(self.shape, dtype=np.int32)
        self.device.download(values, self.scores)
        return None, values

    def _fetch_hits(self, count: int) -> npt.NDArray[np.void]:
        found: npt.NDArray[np.void] = np.empty(count, dtype=HIT)
        if count <= HITS_AT_ONCE:
            found[:] = self._back[COUNTERS * 4 : COUNTERS * 4 + count * HIT_BYTES].view(HIT)
        else:
            self.device.download(found, self.hits)
        return found[np.argsort(found["query"], kind="stable")]

    def close(self) -> None:
        """Wait for everything and let go of it, while the context is current."""
        self.stream.synchronize()
        self.beside.synchronize()
        self._launch = self._results = None
        for name in ("stream", "beside", "cleared", "beside_done", "_begin", "_end", "_host", "_back"):
            delattr(self, name)
