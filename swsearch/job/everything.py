"""All scores of some queries with all subjects, nothing chosen and nothing rated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from swsearch.engines.base import Engine, Progress, ScoreArray
from swsearch.inputs import Query
from swsearch.job.job import groups_of, plan_for
from swsearch.job.loaded import LoadedDatabase
from swsearch.job.scored import prepare, score_all
from swsearch.recurrence import Recurrence

if TYPE_CHECKING:
    from swsearch.db import Database


def score_everything(
    queries: Sequence[Query], database: Database, engine: Engine, recurrence: Recurrence, progress: Progress | None
) -> ScoreArray:
    """Score every query with every subject, masked as the database says.

    Returns
    -------
    ndarray, shape (n_queries, n_subjects), int32
        Exact scores in matrix units, queries and subjects in input order.
    """
    scores: ScoreArray = np.zeros((len(queries), database.n_subjects), dtype=np.int32)
    start = 0
    with closing(LoadedDatabase(engine, database, plan_for(engine, groups_of(queries), database))) as chunks:
        for group in groups_of(queries):
            rows = slice(start, start + len(group))
            prepared = prepare(engine, group, recurrence)
            score_all(engine, prepared, chunks, scores[rows], progress)
            start = rows.stop
    return scores
