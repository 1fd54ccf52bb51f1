"""Many pairs on several GPUs: they are cut into parts, and each device takes the next one when it is free."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from operator import methodcaller
from typing import TypeVar

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.base import Pair, PairAligner
from swsearch.engines.gpu.device import describe_devices
from swsearch.engines.gpu.device_group import DeviceGroup
from swsearch.engines.gpu.limits import check_memory
from swsearch.engines.gpu.pairs.aligner import SHORT_BYTES, GpuPairAligner, batches_of, check_pairs
from swsearch.engines.gpu.pairs.plan import PAIR_MEMORY, direction_bytes
from swsearch.engines.pools import PoolPairs
from swsearch.errors import OptionError
from swsearch.recurrence import Recurrence
from swsearch.scoring import QueryLike

PartResult = TypeVar("PartResult")

PARTS_EACH = 8
"""Parts for each device of what is cut at a time: one that is eight times slower than another holds up no end."""

PART_CELLS, PART_PAIRS = 2_000_000_000.0, 2_048
"""Least cells of a part, some milliseconds of an H200, and least short pairs of one, of which a warp each takes one:
fewer would leave warps without any."""


class MultiGpuPairAligner(PairAligner):
    """Aligns on several NVIDIA GPUs, each opened, used and closed by a thread of its own.

    One pair is never divided: it goes to the free device with the most multiprocessors. What one device has too
    little memory for goes to another. A device that fails is left out from then on, with a warning, and the others do
    its part again; if none is left, its error is raised.

    Parameters
    ----------
    devices : sequence of int
        Their numbers, at least one; one that comes again is opened again, and its memory is shared.
    memory : int, optional
        Bytes of each device's memory that may be used; by default as for `GpuPairAligner`.
    spare : bool, optional
        Whether a device that cannot be opened is left out, with a warning, unless it is the last.

    Raises
    ------
    GpuUnavailableError
        If a device cannot be used.
    OptionError
        If there is no device of a number.
    """

    name = "gpu"

    def __init__(self, devices: Sequence[int], memory: int | None = None, *, spare: bool = False) -> None:
        if not devices:
            raise OptionError("device", devices, "at least one device")
        check_memory(memory)
        times = Counter(devices)

        def allowed(index: int) -> int | None:
            return memory if times[index] == 1 else max((memory or PAIR_MEMORY) // times[index], 1)

        openers = [partial(GpuPairAligner, index, allowed(index)) for index in devices]
        self._group: DeviceGroup[GpuPairAligner] = DeviceGroup(
            openers, "swsearch-pairs", spare, stop=methodcaller("stop"), moves_large=True
        )
        self._close = weakref.finalize(self, self._group.close)  # threads end where nobody closes it, too
        aligners = [thread.device for thread in self._group.threads]
        self._description = describe_devices(
            [each.info for each in aligners], [each.compiler.description for each in aligners]
        )

    @property
    def description(self) -> str:
        """Devices, architectures and compilers."""
        return self._description

    def align(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """Align a query with a subject."""
        return self._result(self._group.put(lambda aligner: aligner.align(query, subject, recurrence)))

    def score(self, query: QueryLike, subject: ByteArray, recurrence: Recurrence) -> int:
        """Score a query with a subject, without their alignment."""
        return self._result(self._group.put(lambda aligner: aligner.score(query, subject, recurrence)))

    def align_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[PairAlignment]:
        """Align (query, subject) pairs, in order."""
        return self._divided(pairs, lambda some, aligner: list(aligner.align_many(some, recurrence)))

    def score_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[int]:
        """Score (query, subject) pairs, in order."""
        return self._divided(pairs, lambda some, aligner: list(aligner.score_many(some, recurrence)))

    def align_pools(self, batch: PoolPairs, recurrence: Recurrence) -> AlignmentTable:
        """Align pairs of sequences of two pools, and count their columns.

        Raises
        ------
        InputError
            Also if queries have gap costs by position.
        """
        check_pairs(batch, recurrence)

        def align(some: slice, aligner: PairAligner) -> AlignmentTable:
            return aligner.align_pools(batch.take(some), recurrence)

        cut = cuts(batch.places[:, 1], batch.places[:, 3], len(self._group.threads))
        parts = deque(self._group.put(partial(align, some)) for some in cut)
        tables = []
        try:
            while parts:
                tables.append(self._result(parts.popleft()))
            return AlignmentTable.concatenate(tables)
        finally:
            self._group.drop(parts)

    def _divided(
        self, pairs: Iterable[Pair], find: Callable[[list[Pair], PairAligner], list[PartResult]]
    ) -> Iterator[PartResult]:
        """Yield what is found of pairs, in order; as many parts are under way as two batches have."""
        parts: deque[Future[list[PartResult]]] = deque()
        n = len(self._group.threads)
        try:
            for batch in batches_of(pairs):
                lengths = np.array([(len(query), len(subject)) for query, subject in batch], dtype=np.int64)
                for some in cuts(lengths[:, 0], lengths[:, 1], n):
                    parts.append(self._group.put(partial(find, batch[some])))
                    while parts and (parts[0].done() or len(parts) > 2 * PARTS_EACH * n):
                        yield from self._result(parts.popleft())
            while parts:
                yield from self._result(parts.popleft())
        finally:
            self._group.drop(parts)

    def _result(self, part: Future[PartResult]) -> PartResult:
        """Wait for a part, warn of devices that failed meanwhile, and return what was found."""
        part.exception()
        self._group.warn_of_lost()
        return part.result()

    def close(self) -> None:
        """Release the devices; what is under way ends with the kernel that runs."""
        self._close()


def cuts(m: IntArray, n: IntArray, devices: int) -> Iterator[slice]:
    """Cut pairs into parts for several devices, about equal in cells and not too small.

    Parameters
    ----------
    m, n : ndarray, shape (n_pairs,), int64
        Lengths of the queries and of the subjects.
    devices : int
        How many take parts.

    Yields
    ------
    slice
        Pairs next to each other; all together are all pairs, in order.
    """
    cells = np.cumsum(m.astype(np.float64) * n)
    # one pair that is no short one takes a whole device
    crowd = np.cumsum(np.where(direction_bytes(m, n) <= SHORT_BYTES, 1, PART_PAIRS))
    begin, done, crowded = 0, 0.0, 0
    while begin < len(cells):
        target = max(PART_CELLS, float(cells[-1]) / (PARTS_EACH * devices))
        end = 1 + max(int(np.searchsorted(cells, done + target)), int(np.searchsorted(crowd, crowded + PART_PAIRS)))
        end = min(end, len(cells))
        yield slice(begin, end)
        begin, done, crowded = end, float(cells[end - 1]), int(crowd[end - 1])
