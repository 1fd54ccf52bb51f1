"""A search: queries, options and a backend, as a chain of stages.

    prepare -> select -> collect -> (locate loci) -> (include hits -> grow profiles)
            -> assign E-values -> choose hits -> restore order -> build results

Loci are located if subjects are windows of DNA. Profiles grow in iterative searches. Stages exchange `Batch` objects:
query states, and the subjects that their places refer to. A checkpoint stores the states between stages; a stored
query enters the chain after the stage that stored it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from swsearch.engines.base import Progress
from swsearch.inputs import Query
from swsearch.pipeline.backend import Backend, Session, SessionRequest
from swsearch.pipeline.batch import Batch, QueryState, query_groups, restrict_to_database, search_iteration
from swsearch.pipeline.evalues import assign_evalues
from swsearch.pipeline.fingerprint import run_info
from swsearch.pipeline.hits import ResultBuilder, choose_hits
from swsearch.pipeline.options import SearchOptions, check_profile_scales
from swsearch.pipeline.pairs import LocalPairBackend
from swsearch.pipeline.scorer import (
    Stages,
    collect_selections,
    prepare_batches,
    restore_order,
    select_subjects,
)
from swsearch.pipeline.search_queries import prepare_queries
from swsearch.pipeline.subjects import SubjectReader
from swsearch.pipeline.windows import FrameWindows
from swsearch.results import SearchResult
from swsearch.run_info import Origin, RunInfo

if TYPE_CHECKING:
    from swsearch.pipeline.checkpoint import Checkpoint
    from swsearch.pipeline.iterate import IterationQueue, ProfileGrower

STORED_QUERIES = 32
"""Queries whose stored results are read together: as they are read, so much memory do they take."""


class Search:
    """Queries, and a backend that has the subjects.

    Parameters
    ----------
    queries : sequence of Query
        As they were read, in the order of the results.
    options : SearchOptions
        Options of the search.
    backend : Backend
        Backend that computes the search.
    progress : callable, optional
        Called with the cells just finished, from a thread of the search.
    origin : Origin, optional
        Query file, command and times, for reports.

    Raises
    ------
    InputError
        If the filters name a subject that the database lacks, or leave no subject, the database lacks the mask, or a
        profile's scores are not those that published statistics are of.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        options: SearchOptions,
        backend: Backend,
        progress: Progress | None = None,
        origin: Origin | None = None,
    ) -> None:
        check_profile_scales(queries, options)
        self.options, self.backend, self._origin = options, backend, origin or Origin()
        self.searched = prepare_queries(queries, options, backend.threads)
        """Sequences to score: the masked queries, or the reading frames of DNA queries."""
        self.queries: Sequence[Query] = self.searched if options.translation is None else queries
        self.subjects = backend.subjects(self.searched, options)
        self.criteria = backend.criteria(options, self.subjects)
        self.progress = progress
        self.restored: Progress | None = None
        """Called, in place of `progress`, with the cells of queries that the checkpoint had."""
        self.forgone: Progress | None = None
        """Called with the cells of iterations that queries did not need."""
        self.checkpoint: Checkpoint | None = None
        self._grower: ProfileGrower | None = None
        if options.makes_profiles:
            from swsearch.pipeline.iterate import ProfileGrower

            self._grower = ProfileGrower(self.criteria)
        threads = backend.threads
        self._local = LocalPairBackend(self.criteria.recurrence, threads, self.criteria.null_model_fitter(threads))
        self._stages = Stages()
        self._session: Session | None = None

    def use_checkpoint(self, folder: Path, is_read_only: bool = False) -> None:
        """Store finished work in a folder, and resume from it; see `Checkpoint`.

        Parameters
        ----------
        is_read_only : bool, optional
            Whether all is done, and `stored_results` is to read it.
        """
        from swsearch.pipeline.checkpoint import Checkpoint

        self.checkpoint = Checkpoint(
            folder, self._scored_queries, self.criteria, self.subjects, self._grower, is_read_only=is_read_only
        )

    @property
    def session(self) -> Session:
        """The session of the backend, opened on first access, which allocates its memory."""
        if self._session is None:
            lengths = [[len(query.codes) for query in group] for group in self._groups()]
            request = SessionRequest(self.subjects, self.criteria, lengths, self._count)
            self._session = self.backend.open(request)
        return self._session

    @property
    def cells(self) -> int:
        """Cells of the whole search, if no query converges: query residues times residues of scored subjects."""
        n = sum(len(query.codes) for query in self.searched)
        return self.options.own_iterations * n * self.session.n_residues

    def _count(self, cells: int) -> None:
        if self.progress is not None:
            self.progress(cells)

    # the chain of stages

    def results(self, aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield results, some at a time, in query order.

        Parameters
        ----------
        aligned : bool, optional
            Whether hits come with their alignments, and further ones where they may have several.
        """
        with self._run_stages() as (stages, session):
            hits = self._find_hits(stages, session)
            yield from stages.last("align", self._builder.results(hits, session.pairs, aligned))

    @contextmanager
    def _run_stages(self) -> Iterator[tuple[Stages, Session]]:
        self._stages.check_cancelled()
        try:
            session = self.session
            with self.checkpoint or nullcontext():
                # for one batch alone, new threads would cost a short search on a shared engine a third of its time
                is_short = self.backend.is_shared and len([*zip(self._groups(), range(2), strict=False)]) < 2
                self._stages.begin(not is_short)
                with closing(self._stages) as stages:
                    yield stages, session
        finally:
            self.close()

    def close(self) -> None:
        """Release the session and the checkpoint."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
        if self.checkpoint is not None:
            self.checkpoint.close()

    def _find_hits(self, stages: Stages, session: Session) -> Generator[Batch]:
        """Begin the stages, the first one first, and return the hits of all queries, in query order."""
        rounds: IterationQueue | None = None
        if self._grower is not None:
            from swsearch.pipeline.iterate import IterationQueue
            from swsearch.pipeline.profile_update import ProfileHitSelector

            rounds = IterationQueue(self._first_states(), self.criteria.max_queries)
            stages.on_close(rounds.close)
        ready = stages.add("prepare", prepare_batches(self._start_batches(rounds), session))
        selected = select_subjects(ready, session)
        if self.checkpoint is None or self._grower is not None or isinstance(self.subjects, FrameWindows):
            hits: Iterator[Batch] = stages.add("collect", collect_selections(stages.add("score", selected)))
        else:  # what was scored is stored before more is scored
            hits = stages.add("score", self._store_batches(collect_selections(selected)))
        if isinstance(self.subjects, FrameWindows):
            from swsearch.pipeline.loci import locate_loci

            hits = locate_loci(hits, self.subjects, self.criteria, self.backend.threads)
        if self._grower is not None and rounds is not None:
            selector = ProfileHitSelector(self.criteria, session.pairs, self._local)
            included = stages.add("rate", self._grower.include_hits(hits, selector))
            grown = self._grower.grow_profiles(included, selector, rounds, self._store, self._skip)
            hits = stages.add("build", grown)
        rated: Iterator[Batch] = assign_evalues(self._store_batches(hits), self.criteria, session.pairs)
        if self._grower is None:
            rated = stages.add("rate", self._store_batches(rated))
        return restore_order(self._store_batches(choose_hits(rated, self.criteria, session.pairs)), rounds)

    def stored_results(self, first: int, count: int, aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield the results of some queries in a row as the checkpoint has them; nothing is scored.

        Parameters
        ----------
        first : int
            Place of the first query, counted from 0.
        """
        aligned = aligned or self.options.max_alignments > 1
        yield from self.results_of(self._stored_states(first, count), aligned)

    def results_of(self, batches: Iterable[Batch], aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield the results of hits that were found before, in query order."""
        yield from self._builder.results(batches, self._local, aligned)

    def _stored_states(self, first: int, count: int) -> Generator[Batch]:
        assert self.checkpoint is not None
        n, end = self.options.n_frames, self.options.n_frames * (first + count)
        for place in range(n * first, end, n * STORED_QUERIES):
            stored = self.checkpoint.read_stored(range(place, min(place + n * STORED_QUERIES, end)))
            rated = assign_evalues(stored, self.criteria, self._local)
            yield from restore_order(choose_hits(rated, self.criteria, self._local), None, place)

    def describe_times(self) -> list[str]:
        """Return a line for each stage that had a thread: the seconds that it worked and waited."""
        return self._stages.describe_times()

    def stop(self) -> None:
        """Cancel the search from any thread: `SearchCancelled` is raised where its results are awaited."""
        self._stages.stop()

    # where batches come from

    def _groups(self) -> Iterator[Sequence[Query]]:
        """Yield the groups of queries that are scored together; all frames of a query are in one."""
        return query_groups(self.searched, self.backend.max_group_queries(self.criteria), self.options.n_frames)

    @cached_property
    def _scored_queries(self) -> Sequence[Query]:
        """The scored queries. Their profiles name only subjects of the database."""
        return [restrict_to_database(query, self.subjects.database) for query in self.searched]

    def _first_states(self) -> Generator[list[QueryState]]:
        """Yield the first states of queries, some at a time."""
        make = QueryState if self._grower is None else self._grower.first_state
        place = 0
        for group in self._groups():
            yield [make(place + k, self._scored_queries[place + k]) for k in range(len(group))]
            place += len(group)

    def _start_batches(self, rounds: IterationQueue | None) -> Generator[Batch]:
        """Yield batches of queries as they begin or come back, or as the checkpoint has them: further on."""
        for states in self._first_states() if rounds is None else iter(rounds.take, []):
            if self.checkpoint is None:
                yield Batch(states, self.subjects)
                continue
            started = set(map(id, states))
            for batch in self.checkpoint.resume(states):
                self._count_restored([state for state in batch.states if id(state) not in started])
                yield batch

    def _count_restored(self, states: Sequence[QueryState]) -> None:
        """Report the cells of iterations that the checkpoint had, and of those that queries did not need."""
        times = [1 if state.history is None else len(state.history.steps) for state in states]
        residues = sum(n * len(state) for n, state in zip(times, states, strict=True))
        if residues and (count := self.restored or self.progress) is not None:
            count(residues * self.session.n_residues)
        for state in states:
            if state.history is not None and state.is_finished:
                self._skip((state.history.last - search_iteration(state.query.profile)) * len(state))

    # what happens beside the stages

    def _store_batches(self, batches: Iterable[Batch]) -> Generator[Batch]:
        """Store what passes, if it is not as it was stored."""
        for batch in batches:
            self._store(batch.states, batch.subjects)
            yield batch

    def _store(self, states: Sequence[QueryState], subjects: SubjectReader) -> None:
        if self.checkpoint is not None and states:
            self.checkpoint.save(states, subjects)

    def _skip(self, residues: int) -> None:
        if self.forgone is not None:
            self.forgone(residues * self.subjects.n_residues)

    @cached_property
    def run(self) -> RunInfo:
        """Facts of the search for reports."""
        return run_info(self.criteria, self.subjects, self.backend.description, self._origin)

    @cached_property
    def _builder(self) -> ResultBuilder:
        return ResultBuilder(self.searched, self.criteria, self.run, self.subjects.length_runs, self._local)
