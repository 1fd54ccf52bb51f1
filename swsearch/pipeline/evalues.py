"""E-values of candidates from null models of their own, and the hits."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsearch.blocks import FloatArray
from swsearch.inputs import Query
from swsearch.pipeline.backend import PairBackend
from swsearch.pipeline.batch import Batch
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.null_models import NullModelRequest, split_by_residues
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import map_in_threads
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects, in_order
from swsearch.pipeline.subjects import SubjectReader
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.statistics.null_model import PROBABILITIES_PER_BATCH, FittedStatistics, PairNullModels, probabilities_of

MAX_BATCH_SIZE, MIN_BATCH_SIZE = 512, 64
"""Candidates that get their nulls first, the best ones; see `_QueryInProgress.next_part`."""

MAX_RATED = 1 << 20
"""Candidates of queries whose nulls are made together, which takes 64 bytes of each."""

SURE, DOUBTFUL = 1e-6, 0.01
"""A subject of so small an E-value by published statistics, and a larger one than this by its null, is told of."""


_Wanted = tuple[Query, FittedStatistics, RankedSubjects]


@dataclass(frozen=True, eq=False)
class EvalueCalculator:
    """Gives the candidates of a batch their nulls, and keeps those that are hits.

    Parameters
    ----------
    criteria : Criteria
        What is looked for; with fitted statistics.
    pairs : PairBackend
        Scores shuffled copies.
    subjects : SubjectReader
        Reads the subjects of the batch.
    published : KarlinAltschul or None
        What to compare with.
    """

    criteria: Criteria
    pairs: PairBackend
    subjects: SubjectReader
    published: KarlinAltschul | None = None

    @property
    def options(self) -> SearchOptions:
        """Options of the search."""
        return self.criteria.options

    @property
    def residues(self) -> int:
        """Residues that E-values refer to."""
        return self.criteria.effective_residues

    def assign(self, queries: Sequence[Query], selections: Sequence[QueryCandidates]) -> list[QueryCandidates]:
        """Return the hits among the candidates of some queries.

        All of them are worked on together, in rounds, until each has enough.

        Parameters
        ----------
        selections : sequence of QueryCandidates
            Of each; what has no null, or whose candidates have theirs, stays as it is.

        Returns
        -------
        list of QueryCandidates
            Candidates are hits: within the threshold by their own nulls, in order, no more than are asked for.
        """
        found = list(selections)
        rating = [
            _QueryInProgress(query, selection, selection.statistics, place)
            for place, (query, selection) in enumerate(zip(queries, selections, strict=True))
            if isinstance(selection.statistics, FittedStatistics) and selection.nulls is None
        ]
        sizes = np.array([1 + len(each.selection.candidates) for each in rating], dtype=np.int64)
        for part in split_by_residues(sizes, MAX_RATED):
            for each, kept in zip(rating[part], self._hits_of(rating[part]), strict=True):
                found[each.place] = kept
        return found

    def _hits_of(self, rating: Sequence[_QueryInProgress]) -> list[QueryCandidates]:
        """Rate candidates in rounds over all queries, and choose the hits of each."""
        open_ones = [each for each in rating if len(each.selection.candidates)]
        first = min(max(2 * self.options.max_hits, MIN_BATCH_SIZE), MAX_BATCH_SIZE)
        while open_ones:
            parts = [each.next_part(first) for each in open_ones]
            wanted = [(each.query, each.statistics, part) for each, part in zip(open_ones, parts, strict=True)]
            nulls = nulls_of(self.criteria, self.pairs, self.subjects, wanted)
            chances = probabilities_of(nulls, [part.scores for part in parts])
            for each, of_part, chance in zip(open_ones, nulls, chances, strict=True):
                each.add(of_part, each.statistics.fit.subjects(self.residues) * chance)
            open_ones = [each for each in open_ones if not self._is_enough(each)]
        return list(map(self._kept, rating, self._published_of_suspects(rating)))

    @property
    def _threshold(self) -> float:
        assert self.options.threshold is not None
        return self.options.threshold

    def _is_enough(self, rating: _QueryInProgress) -> bool:
        """Return whether no other candidate can be a hit: a null of its own never makes an E-value smaller."""
        evalues, most = rating.evalues, self.options.max_hits
        others = rating.selection.candidates[len(evalues) :]
        if not len(others):
            return True
        if self.options.filters.needs_alignments:
            return False
        if self.options.sort == "score":
            return int(np.count_nonzero(evalues <= self._threshold)) >= most
        if len(evalues) < most or others.evalues is None:
            return False
        return bool(np.partition(evalues, most - 1)[most - 1] <= others.evalues[0])

    def _published_of_suspects(self, rating: Sequence[_QueryInProgress]) -> list[FloatArray]:
        """Return published E-values of candidates that have large ones, by query, infinity for all others.

        Of many queries together, since that takes hardly longer than of one.
        """
        found = [np.full(len(each.evalues), np.inf) for each in rating]
        if self.published is None:
            return found
        suspects = [np.flatnonzero(each.evalues > DOUBTFUL) for each in rating]
        for part in split_by_residues(
            np.array([len(places) for places in suspects], dtype=np.int64), PROBABILITIES_PER_BATCH
        ):
            sizes = [len(places) for places in suspects[part]]
            pairs = list(zip(rating[part], suspects[part], strict=True))
            published = self.published.evalues(
                np.concatenate([each.selection.candidates.scores[places] for each, places in pairs]),
                np.repeat([len(each.query.codes) for each, _ in pairs], sizes),
                np.concatenate([each.nulls.lengths[places] for each, places in pairs]), self.residues,
            )  # fmt: skip
            values = np.split(published, np.cumsum(sizes)[:-1])
            for column, places, some in zip(found[part], suspects[part], values, strict=True):
                column[places] = some
        return found

    def _kept(self, rating: _QueryInProgress, published: FloatArray) -> QueryCandidates:
        """Choose hits from the candidates with E-values, the best first."""
        evalues, nulls, options = rating.evalues, rating.nulls, self.options
        candidates = rating.selection.candidates[: len(evalues)]
        if not len(candidates):
            return replace(rating.selection, nulls=nulls)
        ranked = replace(candidates, evalues=evalues if options.sort == "evalue" else None)
        order = in_order(ranked)
        most = len(order) if options.filters.needs_alignments else options.max_hits
        best = order[evalues[order] <= self._threshold][:most]
        warning = self._doubt(rating, published)
        return replace(rating.selection, candidates=ranked[best], nulls=nulls[best], warning=warning)

    def _doubt(self, rating: _QueryInProgress, published: FloatArray) -> str:
        """Return a warning about subjects that are sure hits by published statistics, but not by their nulls."""
        doubted = np.flatnonzero(published <= SURE)
        if not len(doubted) or rating.query.profile is not None:
            return ""  # a profile rewards composition more than the matrix that published constants are of
        first = int(doubted[np.argmin(published[doubted])])
        candidates = rating.selection.candidates
        (name,) = self.subjects.headers(candidates.subjects[first : first + 1]).identifiers
        return (
            f"query {rating.query.identifier!r}: {len(doubted):,} subject{'s have' if len(doubted) > 1 else ' has'} "
            f"a published E-value <= {SURE:g} but a fitted one > {DOUBTFUL:g}, e.g. {name!r} (score "
            f"{candidates.scores[first]}, E {published[first]:.1e} and {rating.evalues[first]:.1e}): its shuffled or "
            f"reversed sequence still scores {rating.nulls.levels[first]:.0f}: most of the score is composition or a "
            "repeated pattern"
        )


def nulls_of(
    criteria: Criteria, pairs: PairBackend, subjects: SubjectReader, wanted: Sequence[_Wanted]
) -> list[PairNullModels]:
    """Make the nulls of candidates of queries, whose own nulls are known."""
    threshold, residues = criteria.options.threshold, criteria.effective_residues
    assert threshold is not None
    asked: list[NullModelRequest] = []
    for query, null, some in wanted:
        limit = threshold / max(null.fit.subjects(residues), 1e-300)
        lengths = subjects.lengths_of(some.subjects)
        asked.append(NullModelRequest(query, null, some.subjects, some.scores, lengths, limit))
    return pairs.nulls(asked, subjects)


class _QueryInProgress:
    """A query whose candidates get their nulls, the best first; ``place`` is the query's among the others."""

    def __init__(self, query: Query, selection: QueryCandidates, statistics: FittedStatistics, place: int) -> None:
        self.query, self.selection, self.statistics, self.place = query, selection, statistics, place
        self.evalues: FloatArray = np.empty(0)
        self._found: list[PairNullModels] = []

    def next_part(self, first: int) -> RankedSubjects:
        """Return the next candidates: ``first`` of them, and then as many as already have nulls.

        So a query with thousands of candidates has few rounds, in which all threads have something to do, and twice
        as many of them get nulls as have to, at most.
        """
        done = len(self.evalues)
        return self.selection.candidates[done : 2 * done or first]

    def add(self, nulls: PairNullModels, evalues: FloatArray) -> None:
        """Store the nulls and E-values, shape (n,), of the next candidates."""
        self._found.append(nulls)
        self.evalues = np.concatenate([self.evalues, evalues])

    @property
    def nulls(self) -> PairNullModels:
        """All nulls so far."""
        if len(self._found) != 1:
            self._found = [PairNullModels.joined(self.statistics, self._found)]
        return self._found[0]


def assign_evalues(batches: Iterable[Batch], criteria: Criteria, pairs: PairBackend) -> Generator[Batch]:
    """Compute E-values of candidates from their own nulls, if statistics are fitted, and select the hits."""

    def assigned(batch: Batch) -> Batch:
        if criteria.fit is None:
            return batch
        published = None if criteria.counts.are_windows else criteria.published
        found = EvalueCalculator(criteria, pairs, batch.subjects, published).assign(batch.queries, batch.selections)
        same = all(after is before for after, before in zip(found, batch.selections, strict=True))
        return batch if same else batch.having(found)

    yield from map_in_threads(assigned, batches, pairs.parallel)
