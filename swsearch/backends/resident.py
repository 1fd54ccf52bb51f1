"""A database that stays loaded in an engine, shared by several searches.

One thread owns the engine. Sessions queue their queries in parts of about one turn. The thread takes one part of each
session after the other, and scores parts of the same recurrence and subjects together. So a short search that starts
during a long one waits for a turn, not for its end.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swsearch.engines.base import ChunkPlan, Engine, Progress, Workload
from swsearch.errors import EngineError, MemoryLimitError
from swsearch.inputs import Query
from swsearch.options.kinds import Mask
from swsearch.pipeline.backend import SessionRequest
from swsearch.pipeline.batch import GROUP_RESIDUES, split_by_size
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import LocalPairBackend
from swsearch.pipeline.prefetch import (
    CHECK_SECONDS,
    SearchCancelled,
    begin_task,
    cancel_task,
    check_cancelled,
    end_task,
)
from swsearch.pipeline.ranking import QueryCandidates
from swsearch.pipeline.scorer import PreparedQueries, Scorer
from swsearch.pipeline.subjects import EngineDatabase, Subjects, fits_in_memory
from swsearch.pipeline.windows import FrameWindows, subjects_of
from swsearch.processors import OwnProcess, useful_thread_count
from swsearch.recurrence import Recurrence

if TYPE_CHECKING:
    from swsearch.db import Database

MAX_BATCH_QUERIES = 256
"""Queries that are scored together at most."""

BATCH_SECONDS = 1.0
"""Target time of the engine for a part, estimated from earlier parts: the wait of a short search behind a long one.
Reading the database takes a hundredth of such a part, and would take a larger share of a shorter one."""

FIRST_CELLS_PER_SECOND = 1e10
"""Cells a second that the engine is thought to score before it has."""

CACHED_JOBS = 16
"""Options of which the tables that follow from them are kept."""

MAX_SHARED_MARGIN = 8192
"""Residues of a margin of shared windows at most: a search that needs wider ones has its own."""


@dataclass(eq=False)
class _QueryPart:
    """Queries of one session that are scored in one go."""

    session: ResidentSession
    prepared: PreparedQueries
    finished: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    is_wanted: bool = True

    @property
    def n_queries(self) -> int:
        return len(self.prepared.queries)

    @property
    def n_rows(self) -> int:
        return sum(len(query.codes) for query in self.prepared.queries)

    @property
    def kind(self) -> tuple[Subjects, Recurrence, bool]:
        """Subjects (by identity), recurrence and kind of result: equal for parts scored together."""
        scorer = self.session.scorer
        return self.session.request.subjects, scorer.recurrence, scorer.options.distribution


class ResidentBackend:
    """A database and its engine, for any number of searches at a time; see `swsearch.pipeline.backend.Backend`.

    Parameters
    ----------
    database : Database
        Open; closed by whoever opened it.
    engine : Engine
        Open, and used by nobody else; closed by whoever made it.
    threads : int, optional
        For nulls and alignments of a search; one for each processor by default.

    Raises
    ------
    MemoryLimitError
        If the database does not fit the memory that the engine may use.
    """

    is_shared = True

    def __init__(self, database: Database, engine: Engine, threads: int | None = None) -> None:
        self.database, self.engine, self.threads = database, engine, useful_thread_count(threads)
        self._subjects: dict[Mask, Subjects] = {}
        """Subjects shared by searches, by mask. Windows of DNA have the mask "none"; the widest so far are kept."""
        self._kinds: OrderedDict[tuple[SearchOptions, Subjects], Criteria] = OrderedDict()
        self._guard = threading.Lock()
        self._waiting: OrderedDict[ResidentSession, deque[_QueryPart]] = OrderedDict()
        """The parts of each session that are not yet scored: the one whose turn is next comes first."""
        self._running: list[_QueryPart] = []
        self._work = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self._process = OwnProcess("this Searcher")
        self._rate = FIRST_CELLS_PER_SECOND
        self.cells, self.seconds = 0, 0.0
        """Cells scored so far (query residues times subject residues), and the seconds they took.
        On a GPU, seconds are those of kernels, by the device's clock."""
        self._loaded: tuple[Subjects, EngineDatabase] | None = None
        self._planned = _workload(self.subjects((), SearchOptions()), GROUP_RESIDUES)
        self.plan = self._plan_for(self._planned)
        self._thread = threading.Thread(target=self._serve, name="swsearch-resident", daemon=True)
        self._thread.start()

    @property
    def description(self) -> str:
        """Description of the engine."""
        return self.engine.description

    @property
    def fallback(self) -> str:
        """Reason why the CPU replaces a requested GPU; empty if it does not."""
        return self.engine.fallback

    def subjects(self, queries: Sequence[Query], options: SearchOptions) -> Subjects:
        """Return the subjects that searches share, or wider windows of DNA where these are too narrow for queries."""
        self._process.check()
        shared = self._subjects.get("none")
        # not under the guard: to look at the profiles of many queries takes seconds
        subjects = subjects_of(self.database, queries, options, shared if isinstance(shared, FrameWindows) else None)
        if isinstance(subjects, FrameWindows) and shared is not None:
            return subjects  # `open` shares them, for whoever only reads what is stored needs no others to have them
        with self._guard:
            return subjects if self._is_closed else self._subjects.setdefault(subjects.mask, subjects)

    def criteria(self, options: SearchOptions, subjects: Subjects) -> Criteria:
        """Return the criteria of options and subjects, cached for the next search."""
        key = options, subjects
        with self._guard:
            if key in self._kinds:
                self._kinds.move_to_end(key)
                return self._kinds[key]
        # not under the guard: to find many identifiers takes seconds, for which other searches need not wait
        new = Criteria.from_options(options, subjects)
        with self._guard:
            if subjects is not self._subjects.get(subjects.mask):
                return new
            criteria = self._kinds.setdefault(key, new)
            self._kinds.move_to_end(key)
            if len(self._kinds) > CACHED_JOBS:
                self._kinds.popitem(last=False)
        return criteria

    def max_group_queries(self, criteria: Criteria) -> int | None:
        """Return how many queries a group has at most."""
        return criteria.max_queries

    def open(self, request: SessionRequest) -> ResidentSession:
        """Begin a search; windows of DNA that are wider than those that searches share take their place."""
        subjects = request.subjects
        with self._guard:
            shared = self._subjects.get("none")
            if isinstance(subjects, FrameWindows) and isinstance(shared, FrameWindows) and not self._is_closed:
                if shared.windows == subjects.windows:  # another search cut them at the same time
                    request = replace(request, subjects=shared)
                elif shared.windows.margin < subjects.windows.margin <= MAX_SHARED_MARGIN:
                    self._subjects["none"] = subjects
                    self._kinds.clear()  # of narrower windows
                    self._kinds[request.criteria.options, subjects] = request.criteria
        return ResidentSession(self, request)

    def close(self) -> None:
        """Release the database after the running part; searches that still wait raise `EngineError`."""
        if not self._process.is_here:
            return
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        with self._guard:  # they hold the database's files open
            self._kinds.clear()
            self._subjects.clear()

    def _check_open(self) -> None:
        self._process.check()
        if self._is_closed:
            raise EngineError("this Searcher was closed; create a new one")

    # what sessions ask for, in threads of their own

    def queue(self, parts: Sequence[_QueryPart]) -> None:
        """Queue parts of a session."""
        with self._changed:
            self._check_open()
            for part in parts:
                self._waiting.setdefault(part.session, deque()).append(part)
            self._changed.notify_all()

    def drop(self, session: ResidentSession) -> None:
        """Drop the parts of a session; stop the running parts if no other session needs them."""
        if not self._process.is_here:  # in a fork, the condition may be held by a thread that is not there
            return
        with self._changed:
            dropped = [*self._waiting.pop(session, ()), *(part for part in self._running if part.session is session)]
            for part in dropped:
                part.is_wanted = False
            if self._running and not any(part.is_wanted for part in self._running):
                cancel_task(self._work)

    def rows_per_batch(self, subjects: Subjects) -> int:
        """Return the query residues that take about a turn."""
        if not self.plan.keep_loaded:  # then each part reads the whole database
            return GROUP_RESIDUES
        return max(1, min(GROUP_RESIDUES, int(self._rate * BATCH_SECONDS / max(1, subjects.n_residues))))

    # the thread that has the engine

    def _serve(self) -> None:
        try:
            while parts := self._next():
                self._run(parts)
        finally:
            self._unload()
            with self._changed:
                self._is_closed = True
                left = [part for waiting in self._waiting.values() for part in waiting]
                self._waiting.clear()
            for part in left:
                part.error = EngineError("this Searcher was closed while a search was waiting; create a new one")
                part.finished.set()

    def _next(self) -> list[_QueryPart]:
        """Wait for parts, and take those that are scored together next; none when this is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if self._is_closed:
                return []
            self._running, self._work = self._take_matching(), begin_task()
            return self._running

    def _take_matching(self) -> list[_QueryPart]:
        """Return a part of the first session, and matching parts of the others in turn while there is room."""
        first = next(iter(self._waiting.values()))[0]
        parts: list[_QueryPart] = []
        kind, rows, max_queries, limit = (
            first.kind,
            0,
            first.session.max_queries,
            self.rows_per_batch(first.session.request.subjects),
        )
        n_before = -1
        while len(parts) > n_before:
            n_before, n_queries = len(parts), sum(part.n_queries for part in parts)
            for session in list(self._waiting):
                part, fewest = self._waiting[session][0], min(max_queries, session.max_queries)
                fits = rows + part.n_rows <= limit and n_queries + part.n_queries <= fewest
                if parts and not (fits and part.kind == kind):
                    continue
                parts.append(self._waiting[session].popleft())
                rows, n_queries, max_queries = rows + part.n_rows, n_queries + part.n_queries, fewest
                if self._waiting[session]:
                    self._waiting.move_to_end(session)
                else:
                    del self._waiting[session]
        return parts

    def _run(self, parts: list[_QueryPart]) -> None:
        errors = [self._error_of(parts)] * len(parts)
        if errors[0] is not None and len(parts) > 1:
            for part in parts:
                part.session.scorer.clear(part.prepared)
            # a part that cannot be scored fails no others
            errors = [self._error_of([part]) if part.is_wanted else SearchCancelled() for part in parts]
        with self._changed:
            self._running = []
            end_task(self._work)
        for part, error in zip(parts, errors, strict=True):
            part.error = error  # it is raised again in the search
            part.finished.set()

    def _error_of(self, parts: Sequence[_QueryPart]) -> BaseException | None:
        try:
            self._score(parts)
        except BaseException as error:
            return error
        return None

    def _score(self, parts: Sequence[_QueryPart]) -> None:
        scorer, subjects = parts[0].session.scorer, parts[0].session.request.subjects
        together = scorer.join([part.prepared for part in parts])
        rows = sum(part.n_rows for part in parts)
        loaded = self._load(subjects, rows)
        started, clock = time.monotonic(), self.engine.kernel_seconds
        try:
            scorer.update_top_hits(
                together, scorer.scan(together, loaded, self.plan.in_flight, _share_progress(parts))
            )
        except BaseException as error:
            if not isinstance(error, SearchCancelled) or self.engine.name != "cpu":
                self._unload()  # what is loaded may be in an unknown state
            raise
        seconds = max(time.monotonic() - started, 1e-6)
        cells = rows * subjects.n_residues
        scored = seconds if clock is None else (self.engine.kernel_seconds or 0.0) - clock
        self.cells, self.seconds = self.cells + cells, self.seconds + scored
        self._rate = (self._rate + cells / seconds) / 2

    def _load(self, subjects: Subjects, rows: int) -> EngineDatabase:
        """Return the subjects loaded in the engine, with memory for queries of some residues."""
        is_same = subjects.length_runs is self._planned.lengths  # those of other masks are
        if not is_same or rows > sum(self._planned.groups[0]):
            self._plan_again(_workload(subjects, GROUP_RESIDUES if rows <= GROUP_RESIDUES else 2 * rows))
        if self._loaded is None or self._loaded[0] is not subjects:
            self._unload()
            self._loaded = subjects, EngineDatabase(self.engine, subjects, self.plan, subjects.mask)
        return self._loaded[1]

    def _plan_again(self, workload: Workload) -> None:
        """Plan the memory of the engine again."""
        self._unload()
        try:
            self.plan = self._plan_for(workload)
        except MemoryLimitError:  # what was there is given up by now: make it again, for the searches after this one
            self.plan = self._plan_for(self._planned)
            raise
        self._planned = workload

    def _plan_for(self, workload: Workload) -> ChunkPlan:
        plan = self.engine.plan(workload)
        if not plan.keep_loaded and self.engine.name == "cpu" and fits_in_memory(workload):
            return replace(plan, keep_loaded=True)
        return plan

    def _unload(self) -> None:
        if self._loaded is not None:
            self._loaded[1].close()
            self._loaded = None


class ResidentSession:
    """A search by a `ResidentBackend`: it prepares queries and processes candidates in its own threads."""

    def __init__(self, backend: ResidentBackend, request: SessionRequest) -> None:
        criteria, threads = request.criteria, backend.threads
        fitter = criteria.null_model_fitter(threads)
        self.pairs = LocalPairBackend(criteria.recurrence, threads, fitter, backend.engine)
        self.request, self.scorer = request, Scorer(backend.engine, criteria, threads)
        self.n_residues = request.subjects.n_residues
        self.max_queries = min(MAX_BATCH_QUERIES, criteria.max_queries or MAX_BATCH_QUERIES)
        """Queries that may be scored together with its own, and these."""
        self._backend = backend

    @property
    def note(self) -> str:
        """Description of the allocated memory."""
        return self._backend.plan.note

    def prepare(self, queries: Sequence[Query]) -> PreparedQueries:
        """Make the nulls and thresholds of queries, and what the engine takes."""
        return self.scorer.prepare(queries)

    def select(self, prepared: PreparedQueries) -> ResidentSelection:
        """Leave queries to the thread that has the engine."""
        parts = [_QueryPart(self, part) for part in self._split(prepared)]
        self._backend.queue(parts)
        return ResidentSelection(self, prepared, parts)

    def _split(self, prepared: PreparedQueries) -> Iterator[PreparedQueries]:
        """Cut queries into parts of about one turn, and at most `max_queries` queries."""
        rows = self._backend.rows_per_batch(self.request.subjects)
        each = [max(len(query.codes), -(-rows // self.max_queries)) for query in prepared.queries]
        parts = list(split_by_size(each, rows))
        for part in parts:
            yield prepared if len(parts) == 1 else self.scorer.part(prepared, part)

    def close(self) -> None:
        """Drop the waiting parts, and stop a running part that only this session needs."""
        self._backend.drop(self)
        self.pairs.close()


@dataclass
class ResidentSelection:
    """Queries of a session that wait for their turns; see `swsearch.pipeline.backend.PendingSelection`."""

    session: ResidentSession
    prepared: PreparedQueries
    parts: Sequence[_QueryPart]

    def is_ready(self) -> bool:
        """Return whether all parts are scored."""
        return all(part.finished.is_set() for part in self.parts)

    def wait(self) -> None:
        """Wait until all were scored; if that fails, or is not wanted any more, nothing else of the session is."""
        try:
            for part in self.parts:
                while not part.finished.wait(CHECK_SECONDS):
                    check_cancelled()
                if part.error is not None:
                    raise part.error
        except BaseException:
            self.session.close()
            raise

    def selections(self) -> list[QueryCandidates]:
        """Return the candidates, which the engine's thread has collected."""
        return self.session.scorer.candidates(self.prepared, ())


def _workload(subjects: Subjects, rows: int) -> Workload:
    """Return the workload of queries of some residues together."""
    each = max(1, rows // MAX_BATCH_QUERIES)
    groups = [[rows - each * (MAX_BATCH_QUERIES - 1)] + [each] * (MAX_BATCH_QUERIES - 1)]
    return Workload(subjects.residue_bytes, subjects.length_runs, groups, subjects.n_segments)


def _share_progress(parts: Sequence[_QueryPart]) -> Progress:
    """Return what tells each of the parts of its share in the cells that were scored for all."""
    rows = [part.n_rows for part in parts]
    reported, total, done = [0] * len(parts), sum(rows), 0

    def count(cells: int) -> None:
        nonlocal done
        done += cells
        for place, part in enumerate(parts):
            share, progress = done * rows[place] // max(total, 1), part.session.request.progress
            if progress is not None and part.is_wanted and share > reported[place]:
                progress(share - reported[place])
                reported[place] = share

    return count
