"""Nulls and alignments of found pairs, made by workers: split by volume and cut into tasks, put together in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from swsearch.alignments import AlignmentTable
from swsearch.blocks import IntArray
from swsearch.cluster.client import Remote, results_of, side_by_side
from swsearch.cluster.sent import PairsSent, of_bytes, to_bytes, without_history
from swsearch.engines.pair_base import PairAligner
from swsearch.pipeline.additional_hsps import FoundFurther
from swsearch.pipeline.null_models import N_COPIES, PairsAsked
from swsearch.pipeline.pair_work import FurtherToFind, OfQuery, PairsToAlign, PairWork
from swsearch.results import SubjectCodes
from swsearch.statistics.fitted import PairNulls

LEAST_CELLS = 1 << 29
"""Cells of a task of pairs at least, a twentieth of a second of a thread: smaller ones cost more than they spare."""

CELLS_OF_PAIR = 200_000
"""Cells in whose time a pair is read and written that is aligned."""

CELLS_OF_ALIGNED = 16
"""Cells whose scores take as long as one of an alignment."""

PARTS_OF_WORKER = 2
"""Tasks of pairs for each worker: no two of the same size take the same time."""

MOST_CELLS = 1 << 36
"""Cells of a task of pairs at most, but for those of one pair."""

CHOSEN_AT_ONCE = 16
"""Queries whose candidates are aligned side by side until enough have passed the filters."""


@dataclass(frozen=True)
class ClusterPairs(PairWork):
    """Has what is asked of pairs computed by workers.

    Parameters
    ----------
    remote : Remote or None
        Submits tasks; where it is closed, pairs are computed here.
    """

    remote: Remote | None = None

    def nulls(self, asked: Sequence[PairsAsked]) -> list[PairNulls]:
        """See `PairWork.nulls`."""
        if self.remote is None or self.remote.is_closed:
            return super().nulls(asked)
        counts = [len(each.subjects) for each in asked]
        of_query = np.repeat(np.arange(len(asked)), counts)
        none: IntArray = np.empty(0, dtype=np.int64)
        subjects, scores, lengths = (
            np.concatenate([none, *(getattr(each, name) for each in asked)])
            for name in ("subjects", "scores", "lengths")
        )
        rows = np.array([len(each.query.codes) for each in asked], dtype=np.int64)
        futures: list[Future[bytes]] = []
        parts: list[IntArray] = []
        cells = rows[of_query] * lengths * (1 + N_COPIES[0])
        for volume, chosen in self._cut(subjects, cells):
            first, whose = int(self.remote.firsts[volume]), of_query[chosen]
            here = np.unique(whose)
            of_these = [asked[k] for k in here.tolist()]
            sent = PairsSent(
                [without_history(each.query) for each in of_these], [each.statistics for each in of_these],
                [each.limit for each in of_these], np.diff(np.searchsorted(whose, [*here, len(asked)])).tolist(),
                subjects[chosen] - first, scores[chosen], lengths[chosen],
            )  # fmt: skip
            futures.append(self._submit("nulls", volume, sent, int(cells[chosen].sum())))
            parts.append(chosen)
        levels, bounds = np.empty(len(subjects)), np.empty(len(subjects))
        for chosen, found in zip(parts, results_of(futures), strict=True):
            levels[chosen], bounds[chosen] = of_bytes(found)
        ends = np.cumsum([0, *counts]).tolist()
        return [
            PairNulls(each.statistics, each.lengths, levels[begin:end], bounds[begin:end])
            for each, begin, end in zip(asked, ends[:-1], ends[1:], strict=True)
        ]

    def aligned(self, pairs: PairsToAlign, aligner: PairAligner | None = None) -> tuple[AlignmentTable, SubjectCodes]:
        """See `PairWork.aligned`."""
        if self.remote is None or self.remote.is_closed:
            return super().aligned(pairs, aligner)
        cells = CELLS_OF_ALIGNED * (self._cells(pairs) + CELLS_OF_PAIR)
        futures: list[Future[bytes]] = []
        parts: list[IntArray] = []
        for volume, chosen in self._cut(pairs.subjects, cells):
            sent = self._sent(pairs, volume, chosen)
            futures.append(self._submit("align", volume, sent, int(cells[chosen].sum())))
            parts.append(chosen)
        found = [of_bytes(each) for each in results_of(futures)]
        order = np.argsort(np.concatenate([np.empty(0, dtype=np.int64), *parts]), kind="stable")
        table = AlignmentTable.concatenate([each for each, _ in found]).take(order)
        return table, SubjectCodes.joined([codes for _, codes in found]).take(order)

    def further(self, wanted: Callable[[], FurtherToFind]) -> list[list[FoundFurther]] | None:
        """See `PairWork.further`."""
        if self.remote is None or self.remote.is_closed:
            return super().further(wanted)
        asked = wanted()
        futures: list[Future[bytes]] = []
        parts: list[IntArray] = []
        cells = CELLS_OF_ALIGNED * (self._cells(asked.pairs) + CELLS_OF_PAIR)
        for volume, chosen in self._cut(asked.pairs.subjects, asked.most * cells):
            sent = asked.take(chosen, self._sent(asked.pairs, volume, chosen))
            futures.append(self._submit("further", volume, sent, asked.most * int(cells[chosen].sum())))
            parts.append(chosen)
        found: list[list[FoundFurther]] = [[] for _ in cells]
        for chosen, data in zip(parts, results_of(futures), strict=True):
            for place, each in zip(chosen.tolist(), of_bytes(data), strict=True):
                found[place] = each
        return found

    def of_queries(self, choose: Callable[[int], OfQuery], n: int) -> list[OfQuery]:
        """See `PairWork.of_queries`; many at a time, since each may wait for workers."""
        if self.remote is None or self.remote.is_closed:
            return super().of_queries(choose, n)
        return list(side_by_side(choose, range(n), CHOSEN_AT_ONCE))

    def _cells(self, pairs: PairsToAlign) -> IntArray:
        """Return the cells of each pair, shape (n,)."""
        rows = np.array([len(query.codes) for query in pairs.queries], dtype=np.int64)
        cells: IntArray = rows[pairs.of_query] * self.reader.database.lengths_of(pairs.subjects).astype(np.int64)
        return cells

    def _sent(self, pairs: PairsToAlign, volume: int, chosen: IntArray) -> PairsToAlign:
        """Return some pairs, by their places, shape (m,), as a volume has them."""
        assert self.remote is not None
        here, of_query = np.unique(pairs.of_query[chosen], return_inverse=True)
        return PairsToAlign(
            [without_history(pairs.queries[k]) for k in here.tolist()],
            of_query.astype(np.int64),
            pairs.subjects[chosen] - int(self.remote.firsts[volume]),
            pairs.scores[chosen],
        )

    def _submit(self, function: str, volume: int, sent: object, cells: int) -> Future[bytes]:
        assert self.remote is not None
        payload = to_bytes((self.remote.common(volume), sent))
        # before the scores of later queries, so that reports come while these are searched with
        return self.remote.submit(function, payload, (self.remote.volumes[volume].path,), cells, is_urgent=True)

    def _cut(self, subjects: IntArray, cells: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Yield the pairs of each task, by their places, with the volume that they are of; see `cut_into_tasks`."""
        assert self.remote is not None
        return cut_into_tasks(self.remote.volumes_of(subjects), cells, self.remote.crew.n_workers)


def cut_into_tasks(volumes: IntArray, cells: IntArray, n_workers: int) -> Iterator[tuple[int, IntArray]]:
    """Cut pairs into tasks of about the same size, each of one volume.

    Parameters
    ----------
    volumes : ndarray, shape (n,), int64
        Which volume each pair's subject is in.
    cells : ndarray, shape (n,), int64
        What each pair costs.
    n_workers : int
        For which there are to be tasks.

    Yields
    ------
    tuple of int and ndarray, shape (m,), int64
        A volume, and the places of some of its pairs, ascending.
    """
    total = int(cells.sum())
    wanted = min(total // LEAST_CELLS, PARTS_OF_WORKER * n_workers)
    for volume in np.unique(volumes).tolist():
        places = np.flatnonzero(volumes == volume)
        ends = np.cumsum(cells[places])
        size = int(ends[-1])
        n_parts = max(round(wanted * size / max(total, 1)), -(-size // MOST_CELLS), 1)
        cuts = np.searchsorted(ends, np.linspace(0.0, size, n_parts + 1)[1:-1], side="right")
        for part in np.split(places, np.unique(cuts)):
            if len(part):
                yield volume, part
