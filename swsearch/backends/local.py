"""A search in this process, with its own engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swsearch.engines.base import ChunkPlan, Engine, Workload
from swsearch.inputs import Query
from swsearch.pipeline.backend import SessionRequest
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import LocalPairBackend
from swsearch.pipeline.ranking import QueryCandidates
from swsearch.pipeline.scorer import ChunkResult, PreparedQueries, Scorer
from swsearch.pipeline.subjects import ChunkSource, EngineDatabase, Subjects, fits_in_memory
from swsearch.pipeline.windows import subjects_of
from swsearch.processors import useful_thread_count

if TYPE_CHECKING:
    from swsearch.db import Database

SCORED_SHARE = 0.5
"""Subjects that may be hits are gathered and scored alone where they have less than this share of the residues: with
one query of 300 residues, the gathering of half of Swiss-Prot takes as long as the scoring of the other half."""


PARALLEL_THREADS = 8
"""Threads from which on two batches of candidates are rated, and of hits aligned, at a time."""


class LocalBackend:
    """A database and an engine for one search; see `swsearch.pipeline.backend.Backend`.

    Parameters
    ----------
    database : Database
        Open.
    engine : Engine
        Open.
    threads : int, optional
        For nulls and alignments; one for each processor by default.
    one_by_one : bool, optional
        Whether results come query by query, where that takes no longer: on the CPU, with the database in memory. In
        iterations they always do.
    """

    is_shared = False

    def __init__(
        self, database: Database, engine: Engine, threads: int | None = None, one_by_one: bool = False
    ) -> None:
        self.database, self.engine, self.threads = database, engine, useful_thread_count(threads)
        self._one_by_one = one_by_one

    @property
    def description(self) -> str:
        """Description of the engine."""
        return self.engine.description

    @property
    def fallback(self) -> str:
        """Reason why the CPU replaces a requested GPU; empty if it does not."""
        return self.engine.fallback

    def subjects(self, queries: Sequence[Query], options: SearchOptions) -> Subjects:
        """Return the database as these queries are compared with it."""
        return subjects_of(self.database, queries, options)

    def criteria(self, options: SearchOptions, subjects: Subjects) -> Criteria:
        """Return the criteria of options and subjects."""
        return Criteria.from_options(options, subjects)

    def max_group_queries(self, criteria: Criteria) -> int | None:
        """Return how many queries a group has at most: one, where results come query by query."""
        return criteria.options.n_frames if self.is_one_by_one(criteria) else criteria.max_queries

    def is_one_by_one(self, criteria: Criteria) -> bool:
        """Return whether results come query by query; the engine then keeps the database."""
        is_requested = self._one_by_one or criteria.options.makes_profiles
        return is_requested and self.engine.name == "cpu" and fits_in_memory(self.database)

    def open(self, request: SessionRequest) -> LocalSession:
        """Begin a search: the engine plans for it."""
        return LocalSession(self, request)


class LocalSession:
    """A search with an engine of its own; see `swsearch.pipeline.backend.Session`."""

    def __init__(self, backend: LocalBackend, request: SessionRequest) -> None:
        criteria, threads, engine = request.criteria, backend.threads, backend.engine
        self.pairs = LocalPairBackend(
            criteria.recurrence, threads, criteria.null_model_fitter(threads), engine,
            parallel=2 if threads >= PARALLEL_THREADS else 1,
        )  # fmt: skip
        self._scorer, self._progress = Scorer(engine, criteria, threads), request.progress
        scored = _subjects_to_score(request)
        self.n_residues = scored.n_residues
        # iterations score several groups: as many are planned for as there are at least
        times = min(criteria.options.own_iterations, 2) if criteria.options.makes_profiles else 1
        groups = list(request.groups) * times
        plan = engine.plan(
            Workload(scored.residue_bytes, scored.length_runs, groups, scored.n_segments, criteria.recurrence)
        )
        self._plan: ChunkPlan = replace(plan, keep_loaded=True) if backend.is_one_by_one(criteria) else plan
        self.note = self._plan.note
        self._loaded = EngineDatabase(engine, scored, self._plan, request.subjects.mask)

    def prepare(self, queries: Sequence[Query]) -> PreparedQueries:
        """Make the nulls and thresholds of queries, and what the engine takes."""
        return self._scorer.prepare(queries)

    def select(self, prepared: PreparedQueries) -> LocalSelection:
        """Begin to score queries where the engine can have several groups in work; score them otherwise."""
        arguments = prepared, self._loaded, self._plan.in_flight, self._progress
        finish = self._scorer.start(*arguments)
        return LocalSelection(
            self._scorer, prepared, self._scorer.scan(*arguments) if finish is None else None, finish
        )

    def close(self) -> None:
        """Release what the engine has loaded."""
        self._loaded.close()
        self.pairs.close()


@dataclass
class LocalSelection:
    """Queries that are being scored, or were; see `swsearch.pipeline.backend.PendingSelection`.

    Parameters
    ----------
    scorer : Scorer
        Scores them.
    prepared : PreparedQueries
        The queries.
    results : list of ChunkResult or None
        What was found; None while they are being scored.
    finish : callable or None
        Waits for the engine.
    """

    scorer: Scorer
    prepared: PreparedQueries
    results: list[ChunkResult] | None
    finish: Callable[[], list[ChunkResult]] | None = None

    def is_ready(self) -> bool:
        """Return whether the queries are scored."""
        return self.results is not None

    def wait(self) -> None:
        """Wait for the engine."""
        if self.results is None and self.finish is not None:
            self.results = self.finish()

    def selections(self) -> list[QueryCandidates]:
        """Look at what the last chunk held."""
        return self.scorer.candidates(self.prepared, self.results or [])


def _subjects_to_score(request: SessionRequest) -> ChunkSource:
    """Return what must be scored: the subjects that may be hits, where they are less than half of all.

    E-values refer to all subjects all the same; what all scores are needed for takes all subjects.
    """
    subjects, allowed, options = request.subjects, request.criteria.subject_mask, request.criteria.options
    if allowed is None or options.distribution or options.makes_profiles:
        return subjects
    if 2 * int(np.count_nonzero(allowed)) > len(allowed):
        return subjects  # what takes little to find out
    part = subjects.select(allowed)
    return subjects if part is None or part.n_residues >= SCORED_SHARE * subjects.n_residues else part
