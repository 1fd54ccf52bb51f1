"""A slot's turns: the launches for a part of the queries and a chunk, from their start to what comes back.

A slot has its own memory and two streams, so that the wavefront kernel, which takes the longest subjects, runs
at the same time as the inter-task kernel, and so that the next chunk's kernels may begin on another slot while this
one's last jobs are running. What belongs here says when something begins and ends; what is launched stands in
`launch`.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from swsearch.engines.base import HitThresholds, ScoreArray
from swsearch.engines.gpu.launch import Launch, NeededScores
from swsearch.engines.gpu.limits import LARGEST
from swsearch.engines.gpu.memory import HIT_BYTES
from swsearch.engines.gpu.queries import UploadedPart
from swsearch.engines.gpu.slot_memory import HITS_AT_ONCE, GpuChunk, SlotMemory

INTEGER_TURNS = 16
"""Turns with a chunk that begin as integers after one that had to be done again so: in a database of one family one
turn in so many is done twice, and after a query with many relatives a few are slower than they could be."""

HIT = np.dtype([("query", "<i4"), ("place", "<i4"), ("score", "<i4")])
"""``Found`` of ``cuda/scores.cu``."""

assert HIT.itemsize == HIT_BYTES

Listed = npt.NDArray[np.void]
"""Hits, shape (n_hits,), `HIT`."""


class Turn:
    """The launches for one part and one chunk, and what they found.

    It is kept here when the slot goes on to its next turn.

    Parameters
    ----------
    memory : SlotMemory
        The slot's, which no other turn uses until this one is settled; the device's context must be current.
    uploaded : UploadedPart
        The queries.
    chunk : GpuChunk
        The subjects.
    thresholds : HitThresholds, optional
        With thresholds, hits are listed.

    Attributes
    ----------
    uploaded : UploadedPart
        The queries.
    """

    def __init__(
        self, memory: SlotMemory, uploaded: UploadedPart, chunk: GpuChunk, thresholds: HitThresholds | None
    ) -> None:
        self._memory, self.uploaded, self._chunk, self._thresholds = memory, uploaded, chunk, thresholds
        self._needed: NeededScores | None = None
        self._settled = False
        self._values: tuple[Listed | None, ScoreArray | None] = (None, None)
        as_integers = chunk.integer_turns > 0
        chunk.integer_turns -= as_integers
        self._begin(as_integers)

    def _begin(self, as_integers: bool, is_again: bool = False) -> None:
        """Launch everything."""
        memory, uploaded, chunk = self._memory, self.uploaded, self._chunk
        memory.take_all(len(uploaded.part.profiles), chunk.n_subjects)
        self._launch = Launch(memory, uploaded, chunk, as_integers)
        needed = self._launch.kernels()
        memory.kernels.require(needed)
        memory.shared.usage.launched.update(kernel.source for kernel in needed)
        memory.stream.wait_for_event(chunk.ready)
        memory.wait_for_turn(sum(len(profile) for profile in uploaded.part.profiles))
        if not is_again:
            memory.started.record(memory.stream)
        memory.clear()
        self._launch.run()
        if self._thresholds is not None:
            self._needed = self._put_thresholds(uploaded, self._thresholds)
            self._list_hits(self._needed)
        memory.keep()
        self._finish()

    def _put_thresholds(self, uploaded: UploadedPart, thresholds: HitThresholds) -> NeededScores:
        """Copy the thresholds of the part's queries to the device."""
        part, memory = uploaded.part, self._memory
        queries = range(part.first, part.first + len(part.profiles))
        tables = [thresholds.by_length[query] for query in queries]
        least = [thresholds.min_scores[query] for query in queries]
        floor = np.array([-LARGEST if value is None else value for value in least], dtype=np.int32)
        by_length = uploaded.thresholds(tables)
        return NeededScores(by_length, uploaded.n_lengths, memory.put(floor, memory.stream))

    def _list_hits(self, needed: NeededScores) -> None:
        memory = self._memory
        self._launch.list_hits(needed)
        n_first = min(HITS_AT_ONCE, memory.capacity("hits"))
        memory.device.download_async(memory.hits_back[: n_first * HIT_BYTES], memory.hits, memory.stream)

    def _finish(self) -> None:
        self._memory.fetch_counters()
        self._memory.ended.record(self._memory.stream)

    @property
    def is_settled(self) -> bool:
        """Whether what was found is kept here, so that the slot is free."""
        return self._settled

    @property
    def is_done(self) -> bool:
        """Whether the device has done what was started last on the slot."""
        done: bool = self._memory.ended.query()
        return done

    def is_ready(self) -> bool:
        """Say whether `get` would not wait."""
        return self._settled or self.is_done

    def settle(self) -> None:
        """Wait for what was started, and keep what it found."""
        if not self._settled:
            self._values = self._fetch()
            self._settled = True

    def get(self) -> tuple[Listed | None, ScoreArray | None]:
        """Wait for the results and hand them over, once.

        Returns
        -------
        listed : ndarray, shape (n_hits,), `HIT`, or None
            Hits ordered by query; None if no thresholds were given, or if there are more than the list holds.
        values : ndarray, shape (n_queries, n_subjects), int32, or None
            All scores, in matrix units, where there is no list. Places of pairs with an empty side hold 0.
        """
        self.settle()
        values, self._values = self._values, (None, None)
        return values

    def _wait(self) -> None:
        """Wait for the device, open to Ctrl-C."""
        while not self._memory.ended.query():
            time.sleep(0.0002)

    def _fetch(self) -> tuple[Listed | None, ScoreArray | None]:
        """Wait for what was started and bring it back; see `get`."""
        memory = self._memory
        self._wait()
        if self._launch.is_too_uncertain:
            self._chunk.integer_turns = INTEGER_TURNS
            self._begin(as_integers=True, is_again=True)
            self._wait()
        if self._launch.rescore_in_parts():
            if self._needed is not None:
                self._list_hits(self._needed)
            self._finish()
            self._wait()
        memory.add_times()
        count = memory.count_back(memory.hit_counter)
        if self._needed is not None and count <= memory.capacity("hits"):
            return self._fetch_hits(count), None
        values: ScoreArray = np.empty(memory.shape, dtype=np.int32)
        memory.device.download(values, memory.scores)
        return None, values

    def _fetch_hits(self, count: int) -> Listed:
        found: Listed = np.empty(count, dtype=HIT)
        if count <= HITS_AT_ONCE:
            found[:] = self._memory.hits_back[: count * HIT_BYTES].view(HIT)
        else:
            self._memory.device.download(found, self._memory.hits)
        return found[np.argsort(found["query"], kind="stable")]
