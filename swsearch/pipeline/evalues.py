"""E-values of candidates from null models of their own, and the hits."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsearch.blocks import FloatArray, IntArray
from swsearch.inputs import Query
from swsearch.pipeline.backend import PairBackend
from swsearch.pipeline.batch import Batch
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.null_models import NullModelRequest, split_by_residues
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import map_in_threads
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects, best_first
from swsearch.pipeline.subjects import SubjectReader
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.statistics.null_model import PROBABILITIES_PER_BATCH, FittedStatistics, PairNullModels, probabilities_of

MAX_BATCH_SIZE, MIN_BATCH_SIZE = 512, 64
"""Candidates that get their nulls first, the best ones; see `_QueryInProgress.next_batch`."""

MAX_CANDIDATES = 1 << 20
"""Candidates of queries whose nulls are made together, which takes 64 bytes of each."""

CONFIDENT_EVALUE, DOUBTFUL_EVALUE = 1e-6, 0.01
"""A subject of so small an E-value by published statistics, and a larger one than this by its null, is told of."""


_NullModelsWanted = tuple[Query, FittedStatistics, RankedSubjects]


@dataclass(frozen=True, eq=False)
class EvalueCalculator:
    """Gives the candidates of a batch their nulls, and keeps those that are hits.

    Parameters
    ----------
    criteria : Criteria
        What is looked for; with fitted statistics.
    backend : PairBackend
        Scores shuffled copies.
    subjects : SubjectReader
        Reads the subjects of the batch.
    published : KarlinAltschul or None
        What to compare with.
    """

    criteria: Criteria
    backend: PairBackend
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
        hits = list(selections)
        rating = [
            _QueryInProgress(query, selection, selection.statistics, place)
            for place, (query, selection) in enumerate(zip(queries, selections, strict=True))
            if isinstance(selection.statistics, FittedStatistics) and selection.null_models is None
        ]
        sizes = np.array([1 + len(each.selection.candidates) for each in rating], dtype=np.int64)
        for part in split_by_residues(sizes, MAX_CANDIDATES):
            for each, hits_of_query in zip(rating[part], self._hits_of(rating[part]), strict=True):
                hits[each.place] = hits_of_query
        return hits

    def _hits_of(self, in_progress: Sequence[_QueryInProgress]) -> list[QueryCandidates]:
        """Rate candidates in rounds over all queries, and choose the hits of each."""
        open_ones = [each for each in in_progress if len(each.selection.candidates)]
        first = min(max(2 * self.options.max_hits, MIN_BATCH_SIZE), MAX_BATCH_SIZE)
        while open_ones:
            parts = [each.next_batch(first) for each in open_ones]
            nulls = self._make_null_models(open_ones, parts)
            chances = probabilities_of(nulls, [part.scores for part in parts])
            for each, of_part, chance in zip(open_ones, nulls, chances, strict=True):
                each.add(of_part, each.statistics.fit.subjects(self.residues) * chance)
            open_ones = [each for each in open_ones if not self._is_enough(each)]
        return list(map(self._choose_hits, in_progress, self._published_of_suspects(in_progress)))

    def _make_null_models(
        self, in_progress: Sequence[_QueryInProgress], parts: Sequence[RankedSubjects]
    ) -> list[PairNullModels]:
        """Return the nulls of the next candidates of each query, but make only those that are not known."""
        known = list(map(_QueryInProgress.find_known, in_progress, parts))
        wanted = [
            (each.query, each.statistics, part[np.flatnonzero(rows < 0)])
            for each, part, rows in zip(in_progress, parts, known, strict=True)
        ]
        made = fit_null_models(self.criteria, self.backend, self.subjects, wanted)
        return list(map(_QueryInProgress.merge_null_models, in_progress, known, made))

    @property
    def _threshold(self) -> float:
        assert self.options.evalue_threshold is not None
        return self.options.evalue_threshold

    def _is_enough(self, in_progress: _QueryInProgress) -> bool:
        """Return whether no other candidate can be a hit: a null of its own never makes an E-value smaller."""
        evalues, max_hits = in_progress.evalues, self.options.max_hits
        others = in_progress.selection.candidates[len(evalues) :]
        if not len(others):
            return True
        if self.options.filters.needs_alignments:
            return False
        if self.options.sort == "score":
            return int(np.count_nonzero(evalues <= self._threshold)) >= max_hits
        if len(evalues) < max_hits or others.evalues is None:
            return False
        return bool(np.partition(evalues, max_hits - 1)[max_hits - 1] <= others.evalues[0])

    def _published_of_suspects(self, in_progress: Sequence[_QueryInProgress]) -> list[FloatArray]:
        """Return published E-values of candidates that have large ones, by query, infinity for all others.

        Of many queries together, since that takes hardly longer than of one.
        """
        evalues = [np.full(len(each.evalues), np.inf) for each in in_progress]
        if self.published is None:
            return evalues
        suspects = [np.flatnonzero(each.evalues > DOUBTFUL_EVALUE) for each in in_progress]
        for part in split_by_residues(
            np.array([len(places) for places in suspects], dtype=np.int64), PROBABILITIES_PER_BATCH
        ):
            sizes = [len(places) for places in suspects[part]]
            pairs = list(zip(in_progress[part], suspects[part], strict=True))
            published = self.published.evalues(
                np.concatenate([each.selection.candidates.scores[places] for each, places in pairs]),
                np.repeat([len(each.query.codes) for each, _ in pairs], sizes),
                np.concatenate([each.null_models.lengths[places] for each, places in pairs]), self.residues,
            )  # fmt: skip
            values = np.split(published, np.cumsum(sizes)[:-1])
            for column, places, some in zip(evalues[part], suspects[part], values, strict=True):
                column[places] = some
        return evalues

    def _choose_hits(self, in_progress: _QueryInProgress, published: FloatArray) -> QueryCandidates:
        """Choose hits from the candidates with E-values, the best first."""
        evalues, nulls, options = in_progress.evalues, in_progress.null_models, self.options
        candidates = in_progress.selection.candidates[: len(evalues)]
        if not len(candidates):
            return replace(in_progress.selection, null_models=nulls)
        ranked = replace(candidates, evalues=evalues if options.sort == "evalue" else None)
        order = best_first(ranked)
        max_hits = len(order) if options.filters.needs_alignments else options.max_hits
        best = order[evalues[order] <= self._threshold][:max_hits]
        warning = self._composition_warning(in_progress, published)
        return replace(in_progress.selection, candidates=ranked[best], null_models=nulls[best], warning=warning)

    def _composition_warning(self, in_progress: _QueryInProgress, published: FloatArray) -> str:
        """Return a warning about subjects that are sure hits by published statistics, but not by their nulls."""
        doubted = np.flatnonzero(published <= CONFIDENT_EVALUE)
        if not len(doubted) or in_progress.query.profile is not None:
            return ""  # a profile rewards composition more than the matrix that published constants are of
        first = int(doubted[np.argmin(published[doubted])])
        candidates = in_progress.selection.candidates
        (name,) = self.subjects.headers(candidates.subjects[first : first + 1]).identifiers
        level, fitted = in_progress.null_models.levels[first], in_progress.evalues[first]
        have = "subjects have" if len(doubted) > 1 else "subject has"
        return (
            f"query {in_progress.query.identifier!r}: {len(doubted):,} {have} a published E-value <= "
            f"{CONFIDENT_EVALUE:g} but a fitted one > {DOUBTFUL_EVALUE:g}, e.g. {name!r} "
            f"(score {candidates.scores[first]}, published E {published[first]:.1e}, fitted E {fitted:.1e}): its "
            f"shuffled or reversed sequence still scores {level:.0f}: most of the score is composition or a "
            "repeated pattern"
        )


def fit_null_models(
    criteria: Criteria, pairs: PairBackend, subjects: SubjectReader, selected: Sequence[_NullModelsWanted]
) -> list[PairNullModels]:
    """Make the nulls of candidates of queries, whose own nulls are known."""
    threshold, residues = criteria.options.evalue_threshold, criteria.effective_residues
    assert threshold is not None
    requests: list[NullModelRequest] = []
    for query, null, some in selected:
        limit = threshold / max(null.fit.subjects(residues), 1e-300)
        lengths = subjects.lengths_of(some.subjects)
        requests.append(NullModelRequest(query, null, some.subjects, some.scores, lengths, limit))
    return pairs.fit_null_models(requests, subjects)


class _QueryInProgress:
    """A query whose candidates get their nulls, the best first; ``place`` is the query's among the others."""

    def __init__(self, query: Query, selection: QueryCandidates, statistics: FittedStatistics, place: int) -> None:
        self.query, self.selection, self.statistics, self.place = query, selection, statistics, place
        self.evalues: FloatArray = np.empty(0)
        self._found: list[PairNullModels] = []

    def next_batch(self, first: int) -> RankedSubjects:
        """Return the next candidates: ``first`` of them, and then as many as already have nulls.

        So a query with thousands of candidates has few rounds, in which all threads have something to do, and twice
        as many of them get nulls as have to, at most.
        """
        done = len(self.evalues)
        return self.selection.candidates[done : 2 * done or first]

    def find_known(self, part: RankedSubjects) -> IntArray:
        """Return the row of each candidate's null among those of the last profile's hits, shape (n,), or -1."""
        included = self.selection.included
        if included is None or included.null_models is None:
            return np.full(len(part), -1, dtype=np.int64)
        return included.candidates.find(part.subjects)

    def merge_null_models(self, known: IntArray, made: PairNullModels) -> PairNullModels:
        """Return the nulls of candidates, by their rows of `find_known`, and of the others those that were made."""
        included = self.selection.included
        if included is None or included.null_models is None:
            return made
        places, is_new = known.copy(), known < 0
        places[is_new] = len(included.null_models) + np.arange(len(made))
        return PairNullModels.concatenate(self.statistics, [included.null_models, made])[places]

    def add(self, nulls: PairNullModels, evalues: FloatArray) -> None:
        """Store the nulls and E-values, shape (n,), of the next candidates."""
        self._found.append(nulls)
        self.evalues = np.concatenate([self.evalues, evalues])

    @property
    def null_models(self) -> PairNullModels:
        """All nulls so far."""
        if len(self._found) != 1:
            self._found = [PairNullModels.concatenate(self.statistics, self._found)]
        return self._found[0]


def assign_evalues(batches: Iterable[Batch], criteria: Criteria, pairs: PairBackend) -> Generator[Batch]:
    """Compute E-values of candidates from their own nulls, if statistics are fitted, and select the hits."""

    def assigned(batch: Batch) -> Batch:
        if criteria.fit is None:
            return batch
        published = None if criteria.counts.are_windows else criteria.published
        selections = EvalueCalculator(criteria, pairs, batch.subjects, published).assign(
            batch.queries, batch.selections
        )
        same = all(after is before for after, before in zip(selections, batch.selections, strict=True))
        return batch if same else batch.with_selections(selections)

    yield from map_in_threads(assigned, batches, pairs.parallel)
