"""Nulls of a search's queries and hits: which scores with random and shuffled sequences are needed, and their making.

What is scored follows from the pair alone. A pair whose first copies say that composition does not matter, or chance
has nothing to do with it, keeps the mean of these; all others that may be hits get the mean of more.

What scores the copies is an engine of its own, for which `swsearch.engines.choice.engine_for_copies` decides: each
query has copies of its own, which are few for an engine that has planned for a database.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.blocks import Chunk, FloatArray, IntArray
from swsearch.engines.base import Engine
from swsearch.engines.choice import QUERIES_AT_ONCE, ROWS_AT_ONCE
from swsearch.inputs import Query
from swsearch.job.shuffled import MOST_RESIDUES, scores_with_copies, shuffled_chunk
from swsearch.recurrence import Recurrence
from swsearch.scoring import Mode
from swsearch.statistics.fitted import CERTAIN, Fit, FittedStatistics, PairNulls, fit_panel
from swsearch.statistics.random_sequences import COPIES, Panel, panel_for, probability_of

FIRST_COPIES, ALL_COPIES = 4, 32
"""Shuffled copies of each candidate; and of one to which it matters. The mean of so many is off by 1.9 and 1.25 fold
in terms of E-values (one standard error)."""

HOPELESS = 30.0
"""E-value in thresholds above which a candidate is given up after its first copies: five standard errors, so that it
hardly ever matters to a pair what the threshold is."""

NO_CHANCE = 1e-12
"""Probability of a pair by chance below which its first copies are enough."""


@dataclass(frozen=True)
class NullMaker:
    """Makes nulls.

    Parameters
    ----------
    fit : Fit
        The search.
    recurrence : Recurrence
        What is computed.
    engine : Engine
        Scores random and shuffled sequences; open.
    threads : int
        For shuffling.
    """

    fit: Fit
    recurrence: Recurrence
    engine: Engine
    threads: int

    def of_queries(self, queries: Sequence[Query]) -> list[FittedStatistics | None]:
        """Return the null of each query; None for one without residues."""
        found: list[FittedStatistics | None] = []
        for part in _together(queries, self.fit.mode):
            if not len(part[0].codes):
                found += [None] * len(part)
                continue
            panel = panel_for(self.fit.mode, len(part[0].codes))
            profiles = [self.recurrence.scoring.profile(query.codes) for query in part]
            chunk = _panel_chunk(panel, self.threads)
            for query, scores in zip(
                part, scores_with_copies(self.engine, profiles, self.recurrence, chunk), strict=True
            ):
                found.append(fit_panel(self.fit, len(query.codes), panel.lengths, panel.parted(scores)))
        return found

    def of_pairs(
        self,
        query: Query,
        statistics: FittedStatistics,
        scores: IntArray,
        subjects: Sequence[ByteArray],
        limit: float,
    ) -> PairNulls:
        """Return the nulls of a query's pairs with some subjects.

        Parameters
        ----------
        query : Query
            With residues.
        statistics : FittedStatistics
            Its null.
        scores : ndarray, shape (n,), int64
            Of the pairs, matrix units.
        subjects : sequence of ndarray, shape (length,), uint8
            Codes as they were scored.
        limit : float
            Probability by chance up to which a pair is a hit.
        """
        lengths = np.array([len(each) for each in subjects], dtype=np.int64)
        bounds = np.array([_bound(query.codes, each) for each in subjects], dtype=np.float64)
        sums = self._sums(query, subjects, range(FIRST_COPIES))
        first = PairNulls(statistics, lengths, sums / float(FIRST_COPIES), bounds)
        chance = first.probabilities(scores)
        matters = first.may_rise(3.0 / math.sqrt(FIRST_COPIES))  # three standard errors
        near = np.flatnonzero(matters & (chance >= NO_CHANCE) & (chance <= HOPELESS * limit))
        more = self._sums(query, [subjects[k] for k in near.tolist()], range(FIRST_COPIES, ALL_COPIES))
        shuffled = first.shuffled.copy()
        shuffled[near] = (sums[near] + more) / float(ALL_COPIES)
        return PairNulls(statistics, lengths, shuffled, bounds)

    def _sums(self, query: Query, subjects: Sequence[ByteArray], copies: range) -> FloatArray:
        """Sum the query's scores with shuffled copies of each subject; shape (n_subjects,), whole numbers."""
        profile = self.recurrence.scoring.profile(query.codes)
        sums = np.zeros(len(subjects), dtype=np.int64)
        for part in _parts([len(each) * len(copies) for each in subjects]):
            chunk = shuffled_chunk(subjects[part], copies, self.threads)
            scores = scores_with_copies(self.engine, [profile], self.recurrence, chunk)[0]
            sums[part] = scores.astype(np.int64).reshape(-1, len(copies)).sum(axis=1)
        return sums.astype(np.float64)


def _together(queries: Sequence[Query], mode: Mode) -> list[list[Query]]:
    """Cut queries into runs that are scored together with one panel; those without residues stand alone."""
    runs: list[list[Query]] = []
    rows = 0
    for query in queries:
        n = len(query.codes)
        fits = (
            runs and n and rows and mode != "global" and rows + n <= ROWS_AT_ONCE and len(runs[-1]) < QUERIES_AT_ONCE
        )
        if fits:
            runs[-1].append(query)
            rows += n
        else:
            runs.append([query])
            rows = n
    return runs


@lru_cache(maxsize=2)
def _panel_chunk(panel: Panel, threads: int) -> Chunk:
    return shuffled_chunk(panel.codes(), range(COPIES), threads)


def _parts(sizes: Sequence[int]) -> list[slice]:
    """Cut items into runs of at most `MOST_RESIDUES`, or of one item."""
    cuts, total = [0], 0
    for place, size in enumerate(sizes):
        if total and total + size > MOST_RESIDUES:
            cuts.append(place)
            total = 0
        total += size
    return [slice(begin, end) for begin, end in zip(cuts, [*cuts[1:], len(sizes)], strict=True) if end > begin]


def _bound(query: ByteArray, subject: ByteArray) -> float:
    """Return the probability of an identical subject by chance, or `CERTAIN` for one that differs."""
    if len(query) != len(subject) or not np.array_equal(query, subject):
        return CERTAIN
    return probability_of(query)
