"""A database that stays with its engine between searches: those of several callers are scored in turns, and together.

One thread has the engine. Searches leave their queries to it in parts that take about a turn; it takes one part of
each search after the other, and scores together those of the same recurrence and mask, whatever else is asked for. So
a short search that comes while a long one runs waits for a turn, and not for its end.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from swsearch.engines.base import ChunkPlan, Engine, Progress, Workload
from swsearch.engines.pair_base import PairAligner
from swsearch.errors import DatabaseError, EngineError, MemoryLimitError
from swsearch.inputs import Query
from swsearch.options.words import Mask
from swsearch.pipeline.database_loading import LoadedDatabase, fits_the_host
from swsearch.pipeline.iterative import IteratedJob
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import InPlace, Stopped, begin_work, check_wanted, end_work, stop_work
from swsearch.pipeline.scorer import Found, Prepared, Scorer
from swsearch.pipeline.search_job import GROUP_ROWS, SearchJob, parts_of
from swsearch.pipeline.search_results import SearchResults
from swsearch.processors import OwnProcess
from swsearch.recurrence import Recurrence
from swsearch.run_info import Origin

if TYPE_CHECKING:
    from swsearch.db import Database

QUERIES_TOGETHER = 256
"""Queries that are scored together at most."""

PART_SECONDS = 1.0
"""What the engine should take for a part, by what it took for those before: so long a short search waits for a long
one. In shorter turns reading the database would take a larger share: it is a hundredth of one of this length."""

FIRST_RATE = 1e10
"""Cells a second that the engine is thought to score before it has."""

WANTED_EVERY = 0.1
"""Seconds after which a search that waits looks whether it is still wanted."""

KINDS_KEPT = 16
"""Options of which the tables that follow from them are kept."""


@dataclass(eq=False)
class _QueryPart:
    """Queries of one search that are scored in one go.

    Parameters
    ----------
    scorer : Scorer
        The search's own.
    prepared : Prepared
        The queries.
    mask : str
        Of the subjects.
    most : int
        Queries that may be scored together with these, and these.
    progress : callable or None
        Called with the cells that were scored for these.
    """

    scorer: Scorer
    prepared: Prepared
    mask: Mask
    most: int
    progress: Progress | None
    ended: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    is_wanted: bool = True

    @property
    def n_queries(self) -> int:
        return len(self.prepared.queries)

    @property
    def n_rows(self) -> int:
        return sum(len(query.codes) for query in self.prepared.queries)

    @property
    def kind(self) -> tuple[Recurrence, Mask, bool]:
        """What parts that are scored together have in common."""
        return self.scorer.recurrence, self.mask, self.scorer.options.distribution


class Resident:
    """A database and its engine, for any number of searches at a time, each with options of its own.

    Parameters
    ----------
    database : Database
        Open; closed by whoever opened it.
    engine : Engine
        Open, and used by nobody else; closed by whoever made it.
    threads : int, optional
        For the alignments of a search; one for each processor by default.
    """

    def __init__(self, database: Database, engine: Engine, threads: int | None = None) -> None:
        if database.genetic_code is not None:
            raise DatabaseError(
                f"{database.name}: a Searcher or server cannot use a DNA database; search it with swsearch search, "
                "or swsearch.search in Python"
            )
        self.database, self.engine = database, engine
        self.threads = threads
        self._kinds: OrderedDict[SearchOptions, SearchJob] = OrderedDict()
        self._kinds_guard = threading.Lock()
        self._waiting: OrderedDict[int, deque[_QueryPart]] = OrderedDict()
        """The parts of each search that are not yet scored, by its thread: the one whose turn is next comes first."""
        self._running: list[_QueryPart] = []
        self._work = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self._process = OwnProcess("this Searcher")
        self._rate = FIRST_RATE
        self.cells, self.seconds = 0, 0.0
        """What was scored so far, query residues times subject residues, and the seconds that it took: kernels, by
        the device's clock, on a GPU."""
        self.plan = ChunkPlan()
        self._planned = 0
        self._loaded: LoadedDatabase | None = None
        self._mask: Mask = "none"
        self._make_room(GROUP_ROWS)
        self._thread = threading.Thread(target=self._serve, name="swsearch-resident", daemon=True)
        self._thread.start()

    def search(
        self,
        queries: Sequence[Query],
        options: SearchOptions,
        *,
        progress: Progress | None = None,
        origin: Origin | None = None,
    ) -> ResidentResults:
        """Return the results of a search, which runs as they are taken; close them to end it.

        Parameters
        ----------
        queries : sequence of Query
            As they were read; they are masked here as the options say.
        options : SearchOptions
            What is asked for.
        progress : callable, optional
            Called with the number of cells just finished, from the engine's thread.
        origin : Origin, optional
            Where the queries come from, for reports.
        """
        return ResidentResults(self, queries, options, progress, origin)

    def job(self, options: SearchOptions) -> SearchJob:
        """Return a job without queries, with what follows from its options; kept for the next search with the same.

        Raises
        ------
        InputError
            If the options do not fit the database; see `SearchJob`.
        """
        self._process.check()
        with self._kinds_guard:
            found = self._kinds.get(options)
            if found is not None:
                self._kinds.move_to_end(options)
                return found
        # not under the guard: to find many identifiers takes seconds, for which other searches need not wait
        kind = ResidentIteratedJob if options.makes_profiles else ResidentJob
        made = kind(self, options, self.threads)
        with self._kinds_guard:
            found = self._kinds.setdefault(options, made)
            self._kinds.move_to_end(options)
            if len(self._kinds) > KINDS_KEPT:
                self._kinds.popitem(last=False)
        return found

    def close(self) -> None:
        """Let go of the database, when what is being scored is done; searches that still wait raise `EngineError`."""
        if not self._process.is_here:
            return
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        with self._kinds_guard:
            self._kinds.clear()  # they hold the database's files open

    # what a search asks for, in a thread of its own

    def score(
        self, scorer: Scorer, prepared: Prepared, mask: Mask, most: int | None, progress: Progress | None
    ) -> None:
        """Have queries scored, and wait for it; what was found is then in ``prepared``.

        Raises
        ------
        EngineError
            If the engine fails, or this was closed.
        Stopped
            If this thread's work is not wanted any more; the engine goes on with that of others.
        """
        self._process.check()
        most = min(QUERIES_TOGETHER, most or QUERIES_TOGETHER)
        parts = [_QueryPart(scorer, part, mask, most, progress) for part in self._cut(scorer, prepared, most)]
        with self._changed:
            self._check_open()
            self._waiting.setdefault(threading.get_ident(), deque()).extend(parts)
            self._changed.notify_all()
        try:
            for part in parts:
                while not part.ended.wait(WANTED_EVERY):
                    check_wanted()
                if part.error is not None:
                    raise part.error
        except BaseException:
            self._forget(parts)
            raise

    def _check_open(self) -> None:
        if self._is_closed:
            raise EngineError("this Searcher was closed; create a new one")

    def _cut(self, scorer: Scorer, prepared: Prepared, most: int) -> Iterator[Prepared]:
        """Cut queries into parts of about a turn, and of so many at most."""
        queries = prepared.queries
        rows = self._rows
        each = [max(len(query.codes), -(-rows // most)) for query in queries]
        parts = list(parts_of(each, rows))
        for part in parts:
            yield prepared if len(parts) == 1 else scorer.part(prepared, part)

    @property
    def _rows(self) -> int:
        """Query residues that take about a turn."""
        if not self.plan.keep:  # then each part reads the whole database
            return GROUP_ROWS
        return max(1, min(GROUP_ROWS, int(self._rate * PART_SECONDS / max(1, self.database.n_residues))))

    def _forget(self, parts: Sequence[_QueryPart]) -> None:
        """Do not score what nobody waits for; stop what is being scored, if that was for these alone."""
        with self._changed:
            for part in parts:
                part.is_wanted = False
            self._drop_unwanted()
            if self._running and not any(part.is_wanted for part in self._running):
                stop_work(self._work)

    def _drop_unwanted(self) -> None:
        for owner, waiting in list(self._waiting.items()):
            left = deque(part for part in waiting if part.is_wanted)
            if left:
                self._waiting[owner] = left
            else:
                del self._waiting[owner]

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
                part.ended.set()

    def _next(self) -> list[_QueryPart]:
        """Wait for parts, and take those that are scored together next; none when this is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if self._is_closed:
                return []
            self._running = self._taken()
            self._work = begin_work()
            return self._running

    def _taken(self) -> list[_QueryPart]:
        """Take a part of the first search, and what fits to it of the others in turn, as often as there is room."""
        first = next(iter(self._waiting.values()))[0]
        taken: list[_QueryPart] = []
        kind, rows, most, limit = first.kind, 0, first.most, self._rows
        n_before = -1
        while len(taken) > n_before:
            n_before, n_queries = len(taken), sum(part.n_queries for part in taken)
            for owner in list(self._waiting):
                part = self._waiting[owner][0]
                fits = rows + part.n_rows <= limit and n_queries + part.n_queries <= min(most, part.most)
                if taken and not (fits and part.kind == kind):
                    continue
                taken.append(self._waiting[owner].popleft())
                rows, n_queries, most = rows + part.n_rows, n_queries + part.n_queries, min(most, part.most)
                if self._waiting[owner]:
                    self._waiting.move_to_end(owner)
                else:
                    del self._waiting[owner]
        return taken

    def _run(self, parts: list[_QueryPart]) -> None:
        errors = [self._error_of(parts)] * len(parts)
        if errors[0] is not None and len(parts) > 1:
            errors = [self._error_alone(part) for part in parts]  # a part that cannot be scored fails no others
        with self._changed:
            self._running = []
            end_work(self._work)
        for part, error in zip(parts, errors, strict=True):
            part.error = error  # it is raised again in the search
            part.ended.set()

    def _error_alone(self, part: _QueryPart) -> BaseException | None:
        if not part.is_wanted:
            return Stopped()
        part.scorer.clear(part.prepared)
        return self._error_of([part])

    def _error_of(self, parts: Sequence[_QueryPart]) -> BaseException | None:
        try:
            self._score(parts)
        except BaseException as error:
            return error
        return None

    def _score(self, parts: Sequence[_QueryPart]) -> None:
        scorer = parts[0].scorer
        together = scorer.together([part.prepared for part in parts])
        rows = sum(part.n_rows for part in parts)
        if rows > self._planned:
            self._make_room(2 * rows)
        loaded = self._load(parts[0].mask)
        begun, clock = time.monotonic(), self._engine_seconds()
        try:
            found = scorer.found(together, loaded, self.plan.in_flight, _shared(parts, self.database.n_residues))
            scorer.collect(together, found)
        except BaseException as error:
            if not isinstance(error, Stopped) or self.engine.name != "cpu":
                self._unload()  # what is loaded may be in an unknown state
            raise
        seconds = max(time.monotonic() - begun, 1e-6)
        cells = rows * self.database.n_residues
        scored = seconds if clock is None else (self._engine_seconds() or 0.0) - clock
        self.cells, self.seconds = self.cells + cells, self.seconds + scored
        self._rate = (self._rate + cells / seconds) / 2

    def _engine_seconds(self) -> float | None:
        """Return how long kernels have run so far, for an engine that has a clock of its own."""
        usage = getattr(self.engine, "usage", None)
        return None if usage is None else float(usage.kernel_seconds)

    def _load(self, mask: Mask) -> LoadedDatabase:
        if self._loaded is None or self._mask != mask:
            self._unload()
            self._loaded, self._mask = LoadedDatabase(self.engine, self.database, self.plan, mask), mask
        return self._loaded

    def _make_room(self, rows: int) -> None:
        """Let the engine plan for queries of so many residues together."""
        self._unload()
        try:
            self.plan = self._plan_for(rows)
        except MemoryLimitError:
            if self._planned:  # what was there is given up by now: make it again, for the searches after this one
                self.plan = self._plan_for(self._planned)
            raise
        self._planned = rows

    def _plan_for(self, rows: int) -> ChunkPlan:
        each = max(1, rows // QUERIES_TOGETHER)
        groups = [[rows - each * (QUERIES_TOGETHER - 1)] + [each] * (QUERIES_TOGETHER - 1)]
        plan = self.engine.plan(Workload(self.database.residue_bytes, self.database.length_runs, groups))
        if not plan.keep and self.engine.name == "cpu" and fits_the_host(self.database):
            return replace(plan, keep=True)
        return plan

    def _unload(self) -> None:
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None


def _shared(parts: Sequence[_QueryPart], n_residues: int) -> Progress:
    """Return what tells each of the parts of its share in the cells that were scored for all."""
    rows = [part.n_rows for part in parts]
    told, total, done = [0] * len(parts), sum(rows), 0

    def count(cells: int) -> None:
        nonlocal done
        done += cells
        for place, part in enumerate(parts):
            share = done * rows[place] // max(total, 1)
            if part.progress is not None and part.is_wanted and share > told[place]:
                part.progress(share - told[place])
                told[place] = share

    return count


@dataclass(frozen=True)
class _Asking(Scorer):
    """Scores queries by asking a `Resident`; parameters are those of `Scorer`, and what the search is asked with."""

    plain: Scorer | None = None
    resident: Resident | None = None
    mask: Mask = "none"
    most: int | None = None

    @classmethod
    def of(cls, scorer: Scorer, resident: Resident, mask: Mask, most: int | None) -> _Asking:
        """Return what asks a resident for what a scorer does."""
        return cls(
            **{each.name: getattr(scorer, each.name) for each in fields(Scorer)},
            plain=scorer,
            resident=resident,
            mask=mask,
            most=most,
        )

    def begun(
        self, prepared: Prepared, loaded: Any, in_flight: int, progress: Progress | None = None
    ) -> Callable[[], list[Found]] | None:
        """Begin nothing: `found` asks and waits."""
        return None

    def found(self, prepared: Prepared, loaded: Any, in_flight: int, progress: Progress | None = None) -> list[Found]:
        """Have queries scored; nothing is left to be collected."""
        assert self.resident is not None
        assert self.plain is not None
        self.resident.score(self.plain, prepared, self.mask, self.most, progress)
        return []


class ResidentResults(SearchResults):
    """The results of a search by a `Resident`; see `SearchResults`.

    Parameters
    ----------
    resident : Resident
        Scores the queries.
    queries, options, progress, origin
        As for `Resident.search`.
    """

    def __init__(
        self,
        resident: Resident,
        queries: Sequence[Query],
        options: SearchOptions,
        progress: Progress | None = None,
        origin: Origin | None = None,
    ) -> None:
        def job_of(queries: Sequence[Query], *given: Any) -> SearchJob:
            _, _, options, progress, _, origin = given
            return resident.job(options).for_queries(queries, progress, origin)

        self.kind_of = lambda _: job_of
        super().__init__(
            queries, resident.database, options, resident.engine,
            progress=progress, threads=resident.threads, origin=origin,
        )  # fmt: skip


class ResidentJob(SearchJob):
    """A job without queries whose `for_queries` are scored by a `Resident`.

    Parameters
    ----------
    resident : Resident
        Has the database and the engine.
    options : SearchOptions
        What is asked for.
    threads : int or None
        As for `SearchJob`.
    """

    skips = False  # it has all of the database, for any search

    def __init__(self, resident: Resident, options: SearchOptions, threads: int | None) -> None:
        super().__init__((), resident.database, resident.engine, options, threads=threads)
        self._resident = resident
        self.make_tables()  # once for all searches

    @property
    def plan(self) -> ChunkPlan:
        """How the engine has the database."""
        return self._resident.plan

    @cached_property
    def scorer(self) -> Scorer:
        """What has queries scored with the database."""
        return _Asking.of(super().scorer, self._resident, self.reader.mask, self.most_queries)

    def _loaded(self) -> AbstractContextManager[Any]:
        return nullcontext()  # the resident has it

    def _begin(self, loaded: LoadedDatabase, aligned: bool) -> None:
        if len(list(islice(self.groups(), 2))) > 1:
            super()._begin(loaded, aligned)
            return
        # one stage has nothing to do while another works, and new threads cost a short search a third of its time
        rated = self._held_against_nulls(self._scored(self._prepared(), loaded))
        self._stages.append(InPlace(self._finished(rated, aligned)))

    def _pair_aligner(self, n_hits: int) -> PairAligner | None:
        return None


class ResidentIteratedJob(ResidentJob, IteratedJob):
    """The same in iterations; parameters are those of `ResidentJob`."""

    one_by_one = False
