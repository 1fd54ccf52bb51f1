"""Backend of a search on a cluster.

A group of queries becomes one task for each share of the subjects. Pairs become tasks of one volume. A worker scores
as a single process does: with `Criteria`, and with subjects cut as the client cuts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import IntArray
from swsearch.cluster import tasks
from swsearch.cluster.messages import VolumeFile, VolumeSearch, without_history
from swsearch.cluster.pool import Call, WorkerPool
from swsearch.cluster.tasks import VolumeShare, encode_arguments
from swsearch.errors import format_count
from swsearch.inputs import Query
from swsearch.pipeline.backend import SessionRequest
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.filters import ALL_SUBJECTS
from swsearch.pipeline.null_models import N_COPIES, NullModelRequest, split_by_residues
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import HspPath, HspRequest, LocalPairBackend, PairsToAlign
from swsearch.pipeline.ranking import QueryCandidates, merge
from swsearch.pipeline.subjects import ProteinSubjects, SubjectReader, Subjects
from swsearch.pipeline.windows import FrameWindows, subjects_of
from swsearch.processors import useful_thread_count
from swsearch.results import SubjectCodes
from swsearch.statistics.null_model import PairNullModels

if TYPE_CHECKING:
    from swsearch.db import Database

SHARES_PER_WORKER, MERGE_BATCH_SIZE, CONCURRENT_BATCHES = 2, 8, 4
"""Shares of the subjects, and tasks of pairs, for each worker without a GPU; parts of results that are merged at a
time; batches whose pairs are computed side by side."""

FIT_RESIDUES = 8_000
"""Query residues whose nulls one task makes."""

MIN_CELLS, MAX_CELLS, CELLS_OF_PAIR, CELLS_OF_ALIGNED = 1 << 29, 1 << 36, 200_000, 16
"""Cells of a task of pairs: fewer take a twentieth of a second, and cost more than they spare. Cells in whose time a
pair is read and written that is aligned, and whose scores take as long as one of an alignment."""

FIT_PRIORITY, PAIRS_PRIORITY = 20, 10
"""Priorities of tasks that other work waits for, above that of scoring: reports are written while later queries
are scored.
"""

_NONE: IntArray = np.empty(0, dtype=np.int64)


class ClusterBackend:
    """A database in files that workers read; see `swsearch.pipeline.backend.Backend`. Database and pool are open."""

    is_shared = False

    def __init__(self, database: Database, pool: WorkerPool) -> None:
        self.database, self.pool, self.threads = database, pool, useful_thread_count(pool.threads)

    @property
    def description(self) -> str:
        """The cluster, its workers, and what one of them scores with."""
        n, what = len(self.pool.workers), self.pool.engine_description["description"]
        return f"cluster ({self.pool.name}, {format_count(n, 'worker')}: {what})"

    @property
    def fallback(self) -> str:
        """Reason why a worker's CPU replaces a requested GPU."""
        return str(self.pool.engine_description["fallback"])

    def subjects(self, queries: Sequence[Query], options: SearchOptions) -> Subjects:
        """Return the database as these queries are compared with it: workers cut it in the same way."""
        return subjects_of(self.database, queries, options)

    def criteria(self, options: SearchOptions, subjects: Subjects) -> Criteria:
        """Return what follows from options and subjects."""
        return Criteria.from_options(options, subjects)

    def max_group_queries(self, criteria: Criteria) -> int | None:
        """Return how many queries a group has at most."""
        return criteria.max_queries

    def open(self, request: SessionRequest) -> ClusterSession:
        """Begin a search."""
        return ClusterSession(self, request)


class ClusterSession:
    """A search by workers; see `swsearch.pipeline.backend.Session`."""

    def __init__(self, backend: ClusterBackend, request: SessionRequest) -> None:
        self.criteria, self.pool, self._progress = request.criteria, backend.pool, request.progress
        volumes, subjects, threads = backend.database.volumes, request.subjects, backend.threads
        self._maker = self.criteria.null_model_fitter(threads)
        windows = subjects if isinstance(subjects, FrameWindows) else None
        firsts = [each.first for each in volumes] if windows is None else windows.volume_firsts
        ends = [*firsts[1:], subjects.n_places]
        self.volumes = [
            VolumeShare(
                _make_volume_search(request, backend.pool, VolumeFile(volume.path, volume.identity()), first, end)
            )
            for volume, first, end in zip(volumes, firsts, ends, strict=True)
        ]
        of_worker = 1 if self.pool.engine_description["engine"] == "gpu" else SHARES_PER_WORKER
        n_shares, sizes = of_worker * len(self.pool.workers), [each.residue_bytes for each in volumes]
        self.shares = cut_shares(self.volumes, sizes, subjects.residue_bytes, n_shares)
        self.n_residues = subjects.n_residues
        local = LocalPairBackend(self.criteria.recurrence, threads, self._maker)
        self.pairs = ClusterPairBackend(local, self.pool, self.volumes)

    @property
    def note(self) -> str:
        """Number of volumes and shares."""
        volumes = format_count(len(self.volumes), "volume")
        return f"{volumes} in {len(self.shares):,} shares, each a task of every group of queries"

    def prepare(self, queries: Sequence[Query]) -> tuple[Sequence[Query], list[Call] | None]:
        """Begin to make the nulls of queries, if they have any: the next ones' while these are scored."""
        sent = [without_history(each) for each in queries]
        if self._maker is None:
            return sent, None
        parts = split_by_residues(np.array([len(query.codes) for query in sent], dtype=np.int64), FIT_RESIDUES)
        arguments = self._maker.fit, self._maker.recurrence, self._maker.sample
        fits = [
            self.pool.call(tasks.fit_queries, encode_arguments(*arguments, sent[part]), priority=FIT_PRIORITY)
            for part in parts
        ]
        return sent, fits

    def select(self, prepared: tuple[Sequence[Query], list[Call] | None]) -> ClusterSelection:
        """Begin to score queries with all shares, once their nulls are known."""
        queries, fits = prepared
        nulls = [None] * len(queries) if fits is None else [null for part in self.pool.collect(fits) for null in part]
        group = encode_arguments(queries, nulls)
        calls = [self.pool.call(tasks.score, group, share) for share in self.shares]
        return ClusterSelection(self, sum(len(query.codes) for query in queries), calls)

    def count(self, residues: int, share: int) -> None:
        """Report the cells of query residues and a share to the progress callback."""
        if self._progress is not None:
            sizes = np.cumsum([0, *(each.n_bytes for each in self.shares)])
            first, last = (int(sizes[k]) * self.n_residues // max(int(sizes[-1]), 1) for k in (share, share + 1))
            self._progress(residues * (last - first))

    def close(self) -> None:
        """Stop what is under way."""
        self.pool.cancel()
        self.pairs.local.close()


def _make_volume_search(
    request: SessionRequest, pool: WorkerPool, file: VolumeFile, first: int, end: int
) -> VolumeSearch:
    """Return what all tasks on a volume have in common, whose places are those from one to another."""
    subjects, criteria, groups = request.subjects, request.criteria, request.groups
    engine = replace(pool.engine, name="cpu") if criteria.options.cpu_only else pool.engine
    return VolumeSearch(
        file, engine, replace(criteria.options, **ALL_SUBJECTS), criteria.counts, subjects.mask,
        subjects.windows if isinstance(subjects, FrameWindows) else None,
        None if criteria.subject_mask is None else np.packbits(criteria.subject_mask[first:end]), first,
        (max(map(len, groups), default=1), max(map(sum, groups), default=1)),
    )  # fmt: skip


def cut_shares(
    volumes: Sequence[VolumeShare], sizes: Sequence[int], n_bytes: int, n_shares: int
) -> list[VolumeShare]:
    """Cut volumes of some sizes into about so many equal shares, at least one of each, the largest first."""
    total, shares = max(sum(sizes), 1), []
    for volume, size in zip(volumes, sizes, strict=True):
        of = max(round(n_shares * size / total), 1)
        shares += [VolumeShare(volume.search, place, of, n_bytes * size // (total * of)) for place in range(of)]
    return sorted(shares, key=lambda share: -share.n_bytes)


@dataclass
class ClusterSelection:
    """Queries whose tasks are running; see `swsearch.pipeline.backend.PendingSelection`."""

    session: ClusterSession
    residues: int
    """Residues of the queries."""
    calls: list[Call]
    """One task for each share."""
    _parts: list[list[QueryCandidates]] = field(default_factory=list)

    def is_ready(self) -> bool:
        """Return whether all tasks have ended."""
        return all(call.is_done for call in self.calls)

    def wait(self) -> None:
        """Wait for the tasks; what comes is merged as soon as there is much."""
        for place, part in self.session.pool.results(self.calls):
            self._parts.append(part)
            if len(self._parts) >= MERGE_BATCH_SIZE:
                self._parts = [self.selections()]
            self.session.count(self.residues, place)

    def selections(self) -> list[QueryCandidates]:
        """Return what was selected, of all shares."""
        inclusion = self.session.criteria.inclusion
        max_included = None if inclusion is None else inclusion.options.max_candidates
        return [merge(of_query, max_included) for of_query in zip(*self._parts, strict=True)]


class ClusterPairBackend:
    """Computes pairs of proteins on workers, and loci in DNA in this process; ``volumes`` are whole."""

    parallel = CONCURRENT_BATCHES

    def __init__(self, local: LocalPairBackend, pool: WorkerPool, volumes: Sequence[VolumeShare]) -> None:
        self.local, self._pool, self._volumes = local, pool, volumes
        self._firsts: IntArray = np.array([each.search.first for each in volumes], dtype=np.int64)

    def fit_null_models(self, requests: Sequence[NullModelRequest], subjects: SubjectReader) -> list[PairNullModels]:
        """Return the nulls of the pairs of some queries."""
        if not isinstance(subjects, ProteinSubjects):
            return self.local.fit_null_models(requests, subjects)
        sent = [replace(each, query=without_history(each.query)) for each in requests]
        sizes = [len(each.subjects) for each in requests]
        ends, whose = np.cumsum([0, *sizes]), np.repeat(np.arange(len(requests)), sizes)
        places = np.concatenate([_NONE, *(each.subjects for each in requests)])

        def task(chosen: IntArray, first: int) -> list[NullModelRequest]:
            parts = [(k, chosen[whose[chosen] == k] - ends[k]) for k in np.unique(whose[chosen]).tolist()]
            return [replace(some, subjects=some.subjects - first) for some in (sent[k][rows] for k, rows in parts)]

        levels, bounds = np.empty(len(places)), np.empty(len(places))
        cells = np.concatenate([_NONE, *(len(each.query.codes) * each.lengths for each in requests)]) * (
            1 + N_COPIES[0]
        )
        for chosen, results in self._compute(tasks.fit_pairs, task, places, cells):
            levels[chosen], bounds[chosen] = (np.concatenate(each) for each in zip(*results, strict=True))
        return [
            PairNullModels(each.statistics, each.lengths, levels[begin:end], bounds[begin:end])
            for each, (begin, end) in zip(requests, pairwise(ends.tolist()), strict=True)
        ]

    def align(self, pairs: PairsToAlign, subjects: SubjectReader) -> tuple[AlignmentTable, SubjectCodes]:
        """Align pairs; return the alignments and the subjects."""
        if not isinstance(subjects, ProteinSubjects):
            return self.local.align(pairs, subjects)

        def task(chosen: IntArray, first: int) -> PairsToAlign:
            return _select_pairs(pairs, chosen, first)

        results = self._compute(tasks.align, task, pairs.subjects, _pair_cells(pairs, subjects))
        order = np.argsort(np.concatenate([_NONE, *(chosen for chosen, _ in results)]))
        table = AlignmentTable.concatenate([table for _, (table, _) in results]).take(order)
        return table, SubjectCodes.concatenate([codes for _, (_, codes) in results]).take(order)

    def find_hsps(self, request: Callable[[], HspRequest], subjects: SubjectReader) -> list[list[HspPath]] | None:
        """Return further alignments of pairs."""
        requested = request()

        def task(chosen: IntArray, first: int) -> HspRequest:
            pairs = _select_pairs(requested.pairs, chosen, first)
            return HspRequest(pairs, requested.best.take(chosen), requested.min_scores[chosen], requested.max_hsps)

        cells = requested.max_hsps * _pair_cells(requested.pairs, subjects)
        computed = self._compute(tasks.find_hsps, task, requested.pairs.subjects, cells)
        by_place = {place: each for rows, some in computed for place, each in zip(rows.tolist(), some, strict=True)}
        return [by_place[place] for place in range(len(requested.min_scores))]

    def _compute(
        self, function: Any, task: Callable[[IntArray, int], Any], places: IntArray, cells: IntArray
    ) -> list[tuple[IntArray, Any]]:
        """Compute pairs on workers; return the result of each task with the places of its pairs."""
        numbers = np.searchsorted(self._firsts, places, side="right") - 1
        chosen, calls = [], []
        for number, some in cut_into_tasks(numbers, cells, len(self._pool.workers)):
            chosen.append(some)
            data = encode_arguments(task(some, int(self._firsts[number])))
            calls.append(self._pool.call(function, data, self._volumes[number], PAIRS_PRIORITY))
        return list(zip(chosen, self._pool.collect(calls), strict=True))


def _pair_cells(pairs: PairsToAlign, subjects: SubjectReader) -> IntArray:
    """Return what the alignment of each pair costs, shape (n,)."""
    rows = np.array([len(query.codes) for query in pairs.queries], dtype=np.int64)
    cells: IntArray = CELLS_OF_ALIGNED * (
        rows[pairs.query_indices] * subjects.lengths_of(pairs.subjects) + CELLS_OF_PAIR
    )
    return cells


def _select_pairs(pairs: PairsToAlign, chosen: IntArray, first: int) -> PairsToAlign:
    """Return some pairs, by their places, as a volume has them."""
    here, of_query = np.unique(pairs.query_indices[chosen], return_inverse=True)
    queries = [without_history(pairs.queries[k]) for k in here.tolist()]
    return PairsToAlign(queries, of_query.astype(np.int64), pairs.subjects[chosen] - first, pairs.scores[chosen])


def cut_into_tasks(volumes: IntArray, cells: IntArray, n_workers: int) -> Iterator[tuple[int, IntArray]]:
    """Cut pairs into tasks of similar cost, each of one volume.

    ``volumes`` and ``cells`` are the volume and the cost of each pair, shape (n,), int64. Yields a volume and the
    places of its pairs, ascending, shape (m,), int64.
    """
    total = int(cells.sum())
    n_tasks = min(total // MIN_CELLS, SHARES_PER_WORKER * n_workers)
    for volume in np.unique(volumes).tolist():
        places = np.flatnonzero(volumes == volume)
        ends = np.cumsum(cells[places])
        size = int(ends[-1])
        n_parts = max(round(n_tasks * size / max(total, 1)), -(-size // MAX_CELLS), 1)
        cuts = np.searchsorted(ends, np.linspace(0.0, size, n_parts + 1)[1:-1], side="right")
        for part in filter(len, np.split(places, np.unique(cuts))):
            yield volume, part
