"""Score matrices: every query against every subject, without E-values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.engines.base import Engine, Progress, ScoreArray, Workload
from swsearch.errors import MemoryLimitError
from swsearch.inputs import Query
from swsearch.pipeline.batch import query_groups
from swsearch.pipeline.criteria import SCORES_MEMORY
from swsearch.pipeline.scorer import prepare
from swsearch.pipeline.subjects import EngineDatabase, host_memory
from swsearch.recurrence import Recurrence

if TYPE_CHECKING:
    from swsearch.db import Database


def score_all_pairs(
    queries: Sequence[Query], database: Database, engine: Engine, recurrence: Recurrence, progress: Progress | None
) -> ScoreArray:
    """Score every query with every subject, masked as the database says.

    Returns
    -------
    ndarray, shape (n_queries, n_subjects), int32
        Exact scores in matrix units, queries and subjects in input order.
    """
    scores = _allocate_scores(len(queries), database.n_subjects)
    for _ in _scored(queries, database, engine, recurrence, progress, into=scores):
        pass
    return scores


def _scored(
    queries: Sequence[Query], database: Database, engine: Engine, recurrence: Recurrence, progress: Progress | None,
    max_queries: int | None = None, into: ScoreArray | None = None,
) -> Iterator[tuple[int, ScoreArray]]:  # fmt: skip
    """Score groups of at most ``max_queries`` queries; yield the place of the first and all scores of each group."""
    groups, first = list(query_groups(queries, max_queries)), 0
    lengths = [[len(query.codes) for query in group] for group in groups]
    plan = engine.plan(Workload(database.residue_bytes, database.length_runs, lengths, database.n_segments))
    with closing(EngineDatabase(engine, database, plan)) as chunks:
        for group in groups:
            end = first + len(group)
            scores = np.zeros((len(group), database.n_subjects), dtype=np.int32) if into is None else into[first:end]
            prepared = prepare(engine, group, recurrence)
            for loaded in chunks:
                scores[:, loaded.chunk.subjects] = engine.score(prepared, loaded, progress)
                chunks.release(loaded)
            yield first, scores
            first = end


def _allocate_scores(n_queries: int, n_subjects: int) -> ScoreArray:
    """Return a score matrix, or raise `MemoryLimitError` if it does not fit the memory."""
    n_bytes, memory = 4 * n_queries * n_subjects, host_memory()
    with suppress(MemoryError):
        if n_bytes <= memory:  # a larger one might be given all the same, and end the process when it is filled
            return np.zeros((n_queries, n_subjects), dtype=np.int32)
    raise MemoryLimitError(
        f"score: got {n_queries:,} queries and {n_subjects:,} subjects, a score matrix of {n_bytes / 1e9:,.1f} GB, "
        f"expected at most the memory of {memory / 1e9:,.1f} GB; use top= to keep only the best subjects of each "
        "query"
    )


class TopScores(NamedTuple):
    """The best subjects of each query.

    Parameters
    ----------
    scores : ndarray, shape (n_queries, k), int32
        Exact scores, matrix units, the best first.
    subjects : ndarray, shape (n_queries, k), int64
        Places in the input; of equal scores the first subject comes first.
    """

    scores: ScoreArray
    subjects: IntArray


def top_scores(
    queries: Sequence[Query],
    database: Database,
    engine: Engine,
    recurrence: Recurrence,
    top: int,
    progress: Progress | None,
) -> TopScores:
    """Score every query with every subject, and keep the best; memory holds all scores of some queries at a time.

    Parameters
    ----------
    top : int
        Subjects of each query: all, where there are no more.
    """
    k = min(top, database.n_subjects)
    scores = np.zeros((len(queries), k), dtype=np.int32)
    subjects = np.zeros((len(queries), k), dtype=np.int64)
    max_queries = max(1, SCORES_MEMORY // (4 * max(1, database.n_subjects)))
    for first, every in _scored(queries, database, engine, recurrence, progress, max_queries):
        for row, of_query in enumerate(every, first):
            best = _best_places(of_query, k)
            subjects[row], scores[row] = best, of_query[best]
    return TopScores(scores, subjects)


def _best_places(scores: npt.NDArray[np.int32], k: int) -> IntArray:
    """Return the places of the k best scores, shape (k,), the first place first among equal ones."""
    min_score = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, equal = np.flatnonzero(scores > min_score), np.flatnonzero(scores == min_score)
    places = np.concatenate([above, equal[: k - len(above)]])
    return places[np.argsort(-scores[places].astype(np.int64), kind="stable")]
