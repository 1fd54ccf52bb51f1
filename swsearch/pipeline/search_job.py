"""A search job: every query against every subject, group after group, in stages that work at the same time.

While the engine scores a group of queries, the next one is made ready, and the hits of the one before are rated, read
and aligned; whoever takes the results writes those before that. Each stage waits for the next when it is ahead by a
group, so that memory stays flat however many queries there are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from swsearch.blocks import IntArray
from swsearch.engines.base import ChunkPlan, Engine, Progress, Workload
from swsearch.engines.pair_base import PairAligner
from swsearch.errors import OutputError
from swsearch.inputs import Query
from swsearch.options.row import Header, rows_of
from swsearch.pipeline.database_loading import ChunkSource, LoadedDatabase, database_mask, fits_the_host
from swsearch.pipeline.evalues import Rater
from swsearch.pipeline.filtered_scan import scored_part
from swsearch.pipeline.filters import Allowed, allowed_subjects
from swsearch.pipeline.hits import HitMaker
from swsearch.pipeline.null_models import NullMaker
from swsearch.pipeline.options import SearchOptions, check_scales
from swsearch.pipeline.pair_work import PairWork
from swsearch.pipeline.prefetch import Ahead, InPlace, Stopped, for_each
from swsearch.pipeline.profile_members import first_found, localized, next_iteration
from swsearch.pipeline.query_frames import searched_queries, told_of_frames
from swsearch.pipeline.saved_options import settings_of
from swsearch.pipeline.scorer import Found, Prepared, Scorer
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.subject_reader import SubjectReader
from swsearch.pipeline.table.search import SearchTable
from swsearch.pipeline.thresholds import LeastScores
from swsearch.processors import threads_that_help
from swsearch.results import HitList, SearchResult
from swsearch.run_info import Asked, Execution, Origin, Program, RunInfo
from swsearch.statistics.fitted import Fit
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.statistics.lengths import Lengths
from swsearch.statistics.observed import ScoreDistribution, distribution_of
from swsearch.version import version

if TYPE_CHECKING:
    from swsearch.db import Database
    from swsearch.pipeline.checkpoint import Checkpoint

GROUP_ROWS = 50_000
"""Query residues that are scored together. Each group reads the database once, which takes less than a hundredth of
the time of scoring this many; larger groups would only keep more hits in memory."""

FIRST_ROWS, SMALL_ROWS, PARTS = (4_000, 16_000), 8_000, 8
"""Query residues of the first groups; and of the others where all queries have few, at least so many and an eighth of
all: the first results come early, and the stages after scoring, as long on a GPU's host, work beside it."""

SCORES_MEMORY = 256 << 20
"""Bytes for the scores of all queries that are scored together with every subject, where all are kept."""

HITS_TOGETHER = 16_000
"""Hits that are read and aligned together, those of whole queries."""

KEPT_TOGETHER = 32
"""Queries whose kept results are read together: as they are read, so much memory do they take."""

ENOUGH_THREADS = 4
"""Threads from which on hits are aligned by them, and not by a GPU that is scoring meanwhile: a hit of 350 residues
takes a thread 85 us, and launches on the GPU would wait for the scoring kernels each time. A choice."""

Selected = tuple[Sequence[Query], list[Selection]]
"""Queries that were scored together, and what was selected for each."""

Collected = tuple[Sequence[Query], Callable[[], list[Selection]]]
"""Queries that were scored together, and what tells what was selected for each."""


class SearchJob:
    """Queries, a database and an engine, ready to run.

    Parameters
    ----------
    queries : list of Query
        In the order of the results.
    database : Database
        Open; hits read their subjects from it.
    engine : Engine
        Open.
    options : SearchOptions
        What is asked for.
    progress : callable, optional
        Called with the number of cells just finished, from a thread of the search.
    threads : int, optional
        Hits that are aligned at a time, where filters take alignments; one for each processor by default.
    origin : Origin, optional
        Where the queries and the command come from, for reports.

    Raises
    ------
    InputError
        If the filters name a subject that the database lacks, or leave no subject, the database lacks the mask, or a
        profile's scores are not those that published statistics are of.
    """

    skips: ClassVar[bool] = True
    """Whether subjects that cannot be hits are left out before they are scored, where that takes less time."""

    one_by_one = False
    """Whether results come query by query, where that takes no longer: on the CPU, with the database in memory."""

    def __init__(
        self,
        queries: Sequence[Query],
        database: Database,
        engine: Engine,
        options: SearchOptions,
        progress: Progress | None = None,
        threads: int | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._take(queries, options)
        self.database, self.engine, self.options = database, engine, options
        self.progress, self._origin = progress, origin or Origin()
        mask = database_mask(database, options.subject_mask)
        self.reader = SubjectReader(database, mask, options.recurrence)
        self.least = LeastScores(options, database)
        self._threads = threads_that_help(threads)
        self._allowed = self._allowed_subjects()
        self.checkpoint: Checkpoint | None = None
        self.restored: Progress | None = None
        """Called, in place of `progress`, with the cells of queries that the checkpoint had."""
        self.forgone: Progress | None = None
        """Called with the cells of iterations that queries did not need."""
        self._stages: list[Ahead[Any] | InPlace[Any]] = []
        self._is_stopped = False

    def _take(self, queries: Sequence[Query], options: SearchOptions) -> None:
        check_scales(queries, options)
        self.searched = searched_queries(queries, options)
        """What is scored: the queries as they are masked, or their frames where they are DNA."""
        self.queries: Sequence[Query] = self.searched if options.translation is None else queries

    def _allowed_subjects(self) -> Allowed | None:
        return allowed_subjects(self.database, self.options.filters)

    @cached_property
    def scored(self) -> ChunkSource:
        """What is scored: the database, or, where filters leave out most of it, the subjects that may be hits."""
        return scored_part(self.database, self._allowed, self.options) if self.skips else self.database

    def keep_in(self, folder: Path, is_read: bool = False) -> None:
        """Keep groups that are done in a folder, and take from there what is done; see `Checkpoint`.

        Parameters
        ----------
        folder : Path
            Made if it is not there.
        is_read : bool, optional
            Whether all is done, and `kept` is to read it.

        Raises
        ------
        InputError
            If the folder is in use, or of another search; the message names all that differs.
        OutputError
            If it cannot be written.
        """
        from swsearch.pipeline.checkpoint import Checkpoint
        from swsearch.pipeline.fingerprint import manifest

        asked = manifest(self.searched, self.database, self.reader.mask, self.options)
        n_subjects = self.database.n_subjects
        self.checkpoint = Checkpoint(folder, asked, self.options.published, n_subjects, is_read)

    def kept(self, first: int, count: int, aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield the results of some queries in a row as the checkpoint has them, some at a time; nothing is scored.

        Parameters
        ----------
        first : int
            Place of the first query, counted from 0.
        count : int
            How many.
        aligned : bool, optional
            As for `batches`.

        Raises
        ------
        OutputError
            If what was kept is damaged, or not there.
        """
        assert self.checkpoint is not None
        together = self.options.n_frames
        end = together * (first + count)
        for place in range(together * first, end, together * KEPT_TOGETHER):
            queries = self.searched[place : min(place + together * KEPT_TOGETHER, end)]
            found = self.checkpoint.load(place, len(queries))
            if found is None:
                numbers = f"{place // together + 1:,} to {(place + len(queries)) // together:,}"
                raise OutputError(f"the stored results of queries {numbers} are damaged; search them again")
            rated = self.rated(queries, found)
            for part in self.parts(rated):
                yield self.made(queries[part], rated[part], aligned or self.options.max_alignments > 1)

    def for_queries(
        self, queries: Sequence[Query], progress: Progress | None = None, origin: Origin | None = None
    ) -> Self:
        """Return a job with the same options for other queries; what follows from options is not made again.

        Raises
        ------
        InputError
            If a profile's scores are not those that published statistics are of.
        """
        job = copy.copy(self)
        job._take(queries, self.options)
        job.progress, job._origin = progress, origin or Origin()
        job.checkpoint = job.restored = job.forgone = None
        job._stages, job._is_stopped = [], False
        for name in ("run", "plan"):
            vars(job).pop(name, None)
        return job

    def make_tables(self) -> None:
        """Make what follows from the options alone now, so that all jobs that `for_queries` makes have it."""
        self.asked, self.method, self.work, self._maker, self._rater, self.scorer  # noqa: B018

    @cached_property
    def asked(self) -> Asked:
        """What is asked for beyond every search's parameters, by name, as reports show it."""
        options, mask = self.options, self.reader.mask
        told: Asked = {}
        for name, row in rows_of(SearchTable).items():
            is_told = row.header is Header.ALWAYS or getattr(options, name) != row.default
            value = options.effective(name) if is_told else None
            if row.header is Header.NEVER or (row.requires == "iterations" and options.iterations == 1):
                continue
            if name == "subject_mask":
                value = None if mask == "none" else mask  # the database's own mask too
            if value is not None:
                told[name] = row.kind.describe(value)
        return told

    @cached_property
    def plan(self) -> ChunkPlan:
        """How the engine wants the database; what it allocates is allocated now."""
        plan = plan_for(self.engine, self.groups(), self.scored)
        return replace(plan, keep=True) if self._is_one_by_one else plan

    @property
    def _is_one_by_one(self) -> bool:
        return self.one_by_one and self.engine.name == "cpu" and fits_the_host(self.database)

    def groups(self) -> Iterator[Sequence[Query]]:
        """Yield runs of what is scored that are scored together, all frames of a query in one."""
        n_frames = self.options.n_frames
        return groups_of(self.searched, n_frames if self._is_one_by_one else self.most_queries, n_frames)

    def parts(self, rated: Sequence[Selection]) -> Iterator[slice]:
        """Cut what was selected into runs whose hits are made together, all frames of a query in one."""
        return parts_of([len(each.candidates) for each in rated], HITS_TOGETHER, self.options.n_frames)

    @cached_property
    def method(self) -> KarlinAltschul | Fit | None:
        """What E-values are made with."""
        return self._fit or self.options.published

    @property
    def program(self) -> Program:
        """BLAST's name for what is searched with what."""
        return "blastp" if self.options.translation is None else "blastx"

    @property
    def genetic_code(self) -> int | None:
        """NCBI's number of the code that queries are translated by, where they are DNA."""
        return None if self.options.translation is None else self.options.translation.genetic_code

    @cached_property
    def run(self) -> RunInfo:
        """What reports say of the job as a whole."""
        return self._described()

    def _described(self) -> RunInfo:
        database, options, origin = self.database, self.options, self._origin
        execution = Execution(self.engine.description, origin.command, origin.begun, origin.ended)
        return RunInfo(
            version(), database.name, database.n_subjects, database.n_residues, options.scoring, options.mode,
            self.method, options.threshold, options.max_hits,
            execution=execution, asked=self.asked,
            effective_residues=self.least.effective_residues, database_sources=tuple(database.sources()),
            queries=origin.queries, known_checksums=origin.checksums, settings=settings_of(options, origin.files),
            program=self.program, genetic_code=self.genetic_code,
        )  # fmt: skip

    @cached_property
    def _fit(self) -> Fit | None:
        options, database = self.options, self.database
        if not options.is_fitted:
            return None
        n_subjects = database.length_runs.n_filled
        return Fit(options.mode, options.scoring.gap_extend, n_subjects, database.n_residues, options.n_frames)

    @cached_property
    def _nulls(self) -> NullMaker | None:
        if self._fit is None:
            return None
        return NullMaker(self._fit, self.reader.recurrence, self._threads)

    @cached_property
    def work(self) -> PairWork:
        """What computes nulls and alignments of pairs."""
        return PairWork(self.reader, self._threads, self._nulls)

    @cached_property
    def _maker(self) -> HitMaker:
        return HitMaker(self.work, self.options, self.least)

    @cached_property
    def _rater(self) -> Rater | None:
        if self._nulls is None:
            return None
        least = self.least
        return Rater(self.database, self.options, self.work, least.effective_residues, least.published)

    @cached_property
    def scorer(self) -> Scorer:
        """What scores queries with the database."""
        return Scorer(
            self.engine, self.options, self.reader.recurrence, self.least, self._allowed, self._nulls, self._threads
        )

    @property
    def most_queries(self) -> int | None:
        """Queries that are scored together at most, where every subject may have to be kept for each."""
        if self.options.distribution:
            each = 8  # two int32: of the engine, and while it counts
        elif self.options.filters.needs_alignments:
            each = 16  # score and place
        else:
            return None
        n_subjects: int = self.database.n_subjects
        return max(1, SCORES_MEMORY // (each * max(1, n_subjects)))

    @property
    def cells(self) -> int:
        """Cells of the whole job: query residues, of all frames of DNA, times those of subjects that are scored."""
        return sum(len(query.codes) for query in self.searched) * self.scored.n_residues

    def batches(self, aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield results, some at a time, in query order.

        Parameters
        ----------
        aligned : bool, optional
            Whether hits come with their alignments, and further ones where they may have several.
        """
        self._check_wanted()
        with self._loaded() as loaded, self.checkpoint or nullcontext():
            try:
                self._begin(loaded, aligned)
                yield from self._taken()
            finally:
                self._close_stages()

    def _begin(self, loaded: LoadedDatabase, aligned: bool) -> None:
        """Let the stages run, each in a thread of its own."""
        stages = self._stages
        stages.append(Ahead(self._prepared(), "prepare"))
        stages.append(Ahead(self._scored(stages[-1], loaded), "score"))
        stages.append(Ahead(self._held_against_nulls(stages[-1]), "rate"))
        stages.append(Ahead(self._finished(stages[-1], aligned), "align"))

    def _taken(self) -> Iterator[list[SearchResult]]:
        """Yield what the last stage makes, unless the job was stopped before it had all its stages."""
        self._check_wanted()
        yield from self._stages[-1]

    def _check_wanted(self) -> None:
        if self._is_stopped:
            raise Stopped

    def _close_stages(self) -> None:
        for stage in list(self._stages):  # the first one first: those after it wait for it
            stage.close()

    def stop(self) -> None:
        """End `batches`, which raises `Stopped` where it is waited for; any thread may call this, at any time."""
        self._is_stopped = True
        self._close_stages()

    def _prepared(self) -> Generator[Prepared | Selected]:
        """Make groups of queries ready, but for those that the checkpoint has."""
        first = 0
        for group in self.groups():
            kept = None if self.checkpoint is None else self.checkpoint.load(first, len(group))
            yield self.scorer.prepare(group) if kept is None else (group, kept)
            first += len(group)

    def _scored(self, prepared: Iterable[Prepared | Selected], loaded: LoadedDatabase) -> Generator[Collected]:
        """Score groups of queries; with a checkpoint keep what is found, which is kept again when it is rated."""
        if self.checkpoint is None:
            yield from self._scored_in_turn((group for group in prepared if isinstance(group, Prepared)), loaded)
            return
        first = 0
        for group in prepared:
            if not isinstance(group, Prepared):
                queries, selections = group
                self._count_restored(queries)
            else:
                queries, selections = group.queries, self._selected(group, loaded)
                self._keep(first, selections)
            yield queries, partial(list, selections)
            first += len(queries)

    def _scored_in_turn(self, prepared: Iterable[Prepared], loaded: LoadedDatabase) -> Generator[Collected]:
        """Score groups of queries, where the engine can the next one begun before one is waited for.

        What the last chunk holds is looked at while the next group is scored.
        """
        scorer, in_flight = self.scorer, self.plan.in_flight
        begun: tuple[Prepared, Callable[[], list[Found]]] | None = None
        for group in prepared:
            finish = scorer.begun(group, loaded, in_flight, self.progress)
            if begun is not None:
                yield begun[0].queries, partial(scorer.collected, begun[0], begun[1]())
            begun = None if finish is None else (group, finish)
            if finish is None:
                found = scorer.found(group, loaded, in_flight, self.progress)
                yield group.queries, partial(scorer.collected, group, found)
        if begun is not None:
            yield begun[0].queries, partial(scorer.collected, begun[0], begun[1]())

    def _held_against_nulls(self, scored: Iterable[Collected]) -> Generator[Selected]:
        """Choose hits among candidates."""
        first = 0
        for queries, collect in scored:
            selections = collect()
            rated = self.rated(queries, selections)
            if any(after is not before for after, before in zip(rated, selections, strict=True)):
                self._keep(first, rated)
            yield queries, rated
            first += len(queries)

    def _keep(self, first: int, selections: Sequence[Selection]) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(first, selections)

    def _count_restored(self, queries: Sequence[Query]) -> None:
        if (count := self.restored or self.progress) is not None:
            count(sum(len(query.codes) for query in queries) * self.scored.n_residues)

    def _finished(self, scored: Iterable[Selected], aligned: bool) -> Generator[list[SearchResult]]:
        """Make results of what was scored."""
        aligner: PairAligner | None = None
        with ExitStack() as stack:
            for queries, rated in scored:
                for part in self.parts(rated):
                    if aligned and aligner is None:
                        aligner = self._pair_aligner(sum(len(each.candidates) for each in rated[part]))
                        stack.enter_context(aligner or nullcontext())
                    yield self.made(queries[part], rated[part], aligned, aligner)

    def _loaded(self) -> AbstractContextManager[Any]:
        """Return the database as the engine takes it, for as long as the job runs."""
        return closing(LoadedDatabase(self.engine, self.scored, self.plan, self.reader.mask))

    def _pair_aligner(self, n_hits: int) -> PairAligner | None:
        """Return what aligns hits in place of the processors' threads, if these are few."""
        return self.engine.pair_aligner(n_hits) if self._threads < ENOUGH_THREADS else None

    def run_group(self, queries: Sequence[Query], loaded: LoadedDatabase) -> list[SearchResult]:
        """Return the results of some of the queries, scored together; `plan` made the loaded database."""
        return self.made(queries, self.rated(queries, self.select(queries, loaded)))

    def select(self, queries: Sequence[Query], loaded: LoadedDatabase) -> list[Selection]:
        """Score some of the queries together, and return what may be reported for each."""
        return self._selected(self.scorer.prepare(queries), loaded)

    def _selected(self, prepared: Prepared, loaded: LoadedDatabase) -> list[Selection]:
        return self.scorer.select(prepared, loaded, self.plan.in_flight, self.progress)

    def rated(self, queries: Sequence[Query], selections: Sequence[Selection]) -> list[Selection]:
        """Hold candidates against nulls of their own, where statistics are fitted: what is left are hits."""
        if self._rater is None:
            return list(selections)
        return self._rater.rated_group(queries, selections)

    @cached_property
    def _by_length(self) -> Lengths:
        return Lengths.of_runs(self.database.length_runs)

    # making results

    def made(
        self,
        queries: Sequence[Query],
        selections: Sequence[Selection],
        aligned: bool = False,
        aligner: PairAligner | None = None,
    ) -> list[SearchResult]:
        """Make the results of queries, or of frames of whole DNA queries, from what was selected and rated."""
        lists = self._maker.lists(queries, selections, aligned, aligner)
        together = self.options.n_frames
        told = [told_of_frames(selections[first : first + together]) for first in range(0, len(queries), together)]
        firsts = queries[::together]
        shown: list[ScoreDistribution | None] = [None] * len(lists)

        def compare(place: int) -> None:
            counts, n = told[place].distribution, len(firsts[place].codes)
            if counts is not None:
                statistics, residues = told[place].statistics, self.database.n_residues
                shown[place] = distribution_of(counts, n, self._by_length, statistics, residues)

        for_each(compare, range(len(lists)) if self.options.distribution else (), self._threads)
        return [self._result(*each) for each in zip(firsts, told, lists, shown, strict=True)]

    def _result(
        self, query: Query, selection: Selection, hits: HitList, distribution: ScoreDistribution | None
    ) -> SearchResult:
        database, profile = self.database, query.profile
        return SearchResult(
            query_id=query.identifier,
            query_description=query.description,
            query_length=query.length,
            hits=hits,
            scoring=self.options.scoring,
            mode=self.options.mode,
            statistics=selection.statistics,
            database_name=database.name,
            database_subjects=database.n_subjects,
            database_residues=database.n_residues,
            effective_residues=self.least.effective_residues,
            no_statistics=selection.reason,
            doubt=selection.doubt,
            asked=self.asked,
            distribution=distribution,
            run=self.run,
            profile=profile,
            iteration=next_iteration(profile),
            first_found=self._first_found(query, hits),
            program=self.program,
            genetic_code=self.genetic_code,
        )

    def _first_found(self, query: Query, hits: HitList) -> IntArray | None:
        """Return the iteration that first found each hit, of a profile that comes from iterations."""
        profile = query.profile
        if profile is None or not profile.iteration or self.options.makes_profiles:
            return None
        return first_found(hits.table.subjects, localized(profile, self.database))


def groups_of(queries: Sequence[Query], most: int | None = None, together: int = 1) -> Iterator[Sequence[Query]]:
    """Cut the queries into runs that are scored together, of at most so many queries.

    A run has about `GROUP_ROWS` residues, or an eighth of all; the first runs are smaller. So many queries as are
    frames of one (``together``) stay in one run.
    """
    total = sum(len(query.codes) for query in queries)
    usual = min(GROUP_ROWS, max(SMALL_ROWS, total // PARTS))
    sizes = (min(rows, usual) for rows in (FIRST_ROWS if total > 2 * FIRST_ROWS[0] else ()))
    limit = next(sizes, usual)
    group: list[Query] = []
    rows = 0
    for first in range(0, len(queries), together):
        some = queries[first : first + together]
        n = sum(len(query.codes) for query in some)
        if group and (rows + n > limit or (most is not None and len(group) + together > most)):
            yield group
            group, rows = [], 0
            limit = next(sizes, usual)
        group += some
        rows += n
    if group:
        yield group


def parts_of(sizes: Sequence[int], most: int, together: int = 1) -> Iterator[slice]:
    """Cut items of some sizes into runs of about ``most``; so many as belong together stay in one run."""
    begin = total = 0
    for place in range(0, len(sizes), together):
        size = sum(sizes[place : place + together])
        if place > begin and total + size > most:
            yield slice(begin, place)
            begin, total = place, 0
        total += size
    if begin < len(sizes):
        yield slice(begin, len(sizes))


def plan_for(engine: Engine, groups: Iterable[Sequence[Query]], database: ChunkSource) -> ChunkPlan:
    """Tell an engine what is coming: queries that are scored together."""
    rows = [[len(query.codes) for query in group] for group in groups]
    return engine.plan(Workload(database.residue_bytes, database.length_runs, rows))
