"""Nulls of a search's queries and hits: which scores with random and shuffled sequences are needed, and their making.

What is scored follows from the pair alone. A pair whose first copies say that composition does not matter, or chance
has nothing to do with it, keeps the mean of these; all others that may be hits get the mean of more.

The copies are scored on the CPU whatever engine searches: they are few, and each query has its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.blocks import Chunk, FloatArray, IntArray
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.inputs import Query
from swsearch.job.shuffled import MOST_RESIDUES, scores_with_copies, shuffled_chunk
from swsearch.recurrence import Recurrence
from swsearch.statistics.fitted import CERTAIN, Fit, FittedStatistics, PairNulls, fit_panel
from swsearch.statistics.random_sequences import COPIES, Panel, panel_for, probability_of

FIRST_COPIES, ALL_COPIES = 8, 32
"""Shuffled copies of each candidate; and of one to which it matters. The mean of so many is off by 1.6 and 1.25 fold
in terms of E-values (one standard error)."""

HOPELESS = 4.0
"""E-value in thresholds above which a candidate is given up after its first copies: three standard errors."""

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
    threads : int
        How many to use.
    """

    fit: Fit
    recurrence: Recurrence
    threads: int

    def of_queries(self, queries: Sequence[Query]) -> list[FittedStatistics | None]:
        """Return the null of each query; None for one without residues."""
        found: list[FittedStatistics | None] = []
        engine = CpuEngine(self.threads)
        for query in queries:
            if not len(query.codes):
                found.append(None)
                continue
            panel = panel_for(self.fit.mode, len(query.codes))
            profile = self.recurrence.scoring.profile(query.codes)
            scores = scores_with_copies(engine, [profile], self.recurrence, _panel_chunk(panel, self.threads))[0]
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
        engine = CpuEngine(self.threads)
        sums = np.zeros(len(subjects), dtype=np.int64)
        for part in _parts([len(each) * len(copies) for each in subjects]):
            chunk = shuffled_chunk(subjects[part], copies, self.threads)
            scores = scores_with_copies(engine, [profile], self.recurrence, chunk)[0]
            sums[part] = scores.astype(np.int64).reshape(-1, len(copies)).sum(axis=1)
        return sums.astype(np.float64)


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
