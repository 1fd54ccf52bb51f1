"""From candidates to hits: each candidate of a query gets a null of its own, and an E-value by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.inputs import Query
from swsearch.job.nulls import NullMaker
from swsearch.job.options import SearchOptions
from swsearch.job.ranking import Ranked, in_order
from swsearch.job.selection import Selection
from swsearch.statistics.fitted import FittedStatistics, PairNulls
from swsearch.statistics.karlin_altschul import KarlinAltschul

if TYPE_CHECKING:
    from swsearch.db import Database

MOST_AT_ONCE, FEWEST_AT_ONCE = 512, 64
"""Candidates that get their nulls at a time, the best first, until no other can be a hit."""

SURE, DOUBTFUL = 1e-6, 0.01
"""A subject of so small an E-value by published statistics, and a larger one than this by its null, is told of."""


@dataclass(frozen=True)
class Rater:
    """Gives candidates their nulls, and keeps those that are hits.

    Parameters
    ----------
    database : Database
        Open.
    options : SearchOptions
        What is asked for; with a threshold.
    maker : NullMaker
        Scores shuffled copies.
    residues : int
        Residues that E-values refer to.
    published : KarlinAltschul or None
        What to compare with.
    """

    database: Database
    options: SearchOptions
    maker: NullMaker
    residues: int
    published: KarlinAltschul | None

    def rated(self, query: Query, selection: Selection, read: Callable[[int], ByteArray]) -> Selection:
        """Return the hits among a query's candidates.

        Parameters
        ----------
        query : Query
            The query.
        selection : Selection
            Of it; what has no null, or whose candidates have theirs, stays as it is.
        read : callable
            Returns the codes of a subject as it was scored, shape (length,), uint8, by its place in the input.

        Returns
        -------
        Selection
            Its candidates are hits: within the threshold by their own nulls, in order, no more than are asked for.
        """
        null, threshold = selection.statistics, self.options.threshold
        assert threshold is not None
        if not isinstance(null, FittedStatistics) or selection.nulls is not None:
            return selection
        candidates = selection.candidates
        at_once = min(max(2 * self.options.max_hits, FEWEST_AT_ONCE), MOST_AT_ONCE)
        found: list[PairNulls] = []
        evalues = np.empty(0)
        for begin in range(0, len(candidates), at_once):
            part = candidates[begin : begin + at_once]
            nulls = self._nulls(query, null, part, read)
            found.append(nulls)
            evalues = np.concatenate([evalues, nulls.evalues(part.scores, self.residues)])
            if self._is_enough(evalues, threshold, candidates[begin + at_once :]):
                break
        if not found:
            return replace(selection, nulls=_joined(null, found))
        return self._kept(query, selection, _joined(null, found), evalues, threshold)

    def _nulls(
        self, query: Query, null: FittedStatistics, part: Ranked, read: Callable[[int], ByteArray]
    ) -> PairNulls:
        assert self.options.threshold is not None
        limit = self.options.threshold / max(null.fit.subjects(self.residues), 1e-300)
        subjects = [read(subject) for subject in part.subjects.tolist()]
        return self.maker.of_pairs(query, null, part.scores, subjects, limit)

    def _is_enough(self, evalues: FloatArray, threshold: float, others: Ranked) -> bool:
        """Say whether none of the other candidates can be among the hits: an own null makes no E-value smaller."""
        most = self.options.max_hits
        if self.options.filters.needs_alignments or not len(others):
            return False
        if self.options.sort == "score":
            return int(np.count_nonzero(evalues <= threshold)) >= most
        if len(evalues) < most or others.evalues is None:
            return False
        return bool(np.partition(evalues, most - 1)[most - 1] <= others.evalues[0])

    def _kept(
        self, query: Query, selection: Selection, nulls: PairNulls, evalues: FloatArray, threshold: float
    ) -> Selection:
        """Choose from the candidates that have E-values, those first in line."""
        candidates, options = selection.candidates[: len(evalues)], self.options
        rated = evalues if options.sort == "evalue" else None
        order = in_order(candidates.scores, candidates.subjects, rated)
        most = len(order) if options.filters.needs_alignments else options.max_hits
        best = order[evalues[order] <= threshold][:most]
        ranked = Ranked(candidates.scores[best], candidates.subjects[best], None if rated is None else rated[best])
        doubt = self._doubt(query, candidates, nulls, evalues)
        return replace(selection, candidates=ranked, nulls=nulls[best], doubt=doubt)

    def _doubt(self, query: Query, candidates: Ranked, nulls: PairNulls, evalues: FloatArray) -> str:
        """Tell of subjects that are sure hits by published statistics, and hardly or none by their nulls."""
        if self.published is None:
            return ""
        published = self.published.evalues(candidates.scores, len(query.codes), nulls.lengths, self.residues)
        doubted = np.flatnonzero((published <= SURE) & (evalues > DOUBTFUL))
        if not len(doubted):
            return ""
        first = int(doubted[np.argmin(published[doubted])])
        name = self.database.identifier(int(candidates.subjects[first]))
        return (
            f"query {query.identifier!r}: {len(doubted):,} subject{'s have' if len(doubted) > 1 else ' has'} "
            f"E <= {SURE:g} by published statistics and more than {DOUBTFUL:g} by fitted ones, such as {name!r} "
            f"(score {candidates.scores[first]}, E {published[first]:.1e} and {evalues[first]:.1e}): with its "
            f"residues shuffled it still scores {nulls.shuffled[first]:.0f} on average: most of it is composition"
        )


def _joined(statistics: FittedStatistics, parts: list[PairNulls]) -> PairNulls:
    """Put nulls of one query one after the other."""
    lengths: IntArray = np.concatenate([np.empty(0, dtype=np.int64), *(part.lengths for part in parts)])
    shuffled: FloatArray = np.concatenate([np.empty(0), *(part.shuffled for part in parts)])
    bounds: npt.NDArray[np.float64] = np.concatenate([np.empty(0), *(part.bounds for part in parts)])
    return PairNulls(statistics, lengths, shuffled, bounds)
