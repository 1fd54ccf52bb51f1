"""Order of hits, and selection of the best subjects.

Hits are sorted by ascending E-value, then by descending score, then by the subject's place in the input. Without
E-values, or with ``--sort score``, the score comes first. No two subjects are equal in this order. So the best N of a
database are the best N of the best N of its parts. E-values are compared in full precision, which
`swsearch.statistics.portable_math` makes equal on every machine. A `QueryCandidates` is a plain value: it can be
pickled, and the selections of the parts of a database merge in any order.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray

if TYPE_CHECKING:
    from swsearch.alignment_table import AlignmentTable
    from swsearch.blocks import Chunk
    from swsearch.engines.base import ChunkHits, ScoreArray
    from swsearch.statistics.karlin_altschul import Statistics
    from swsearch.statistics.null_model import PairNullModels
    from swsearch.statistics.score_distribution import ScoreCounts


_PRUNED_FROM = 4
"""Hits of a chunk that all get an E-value, for each hit that is kept."""


@dataclass(frozen=True, eq=False)
class RankedSubjects:
    """Subjects of one query, the best first.

    Parameters
    ----------
    scores : ndarray, shape (n,), int64
        Exact scores, matrix units.
    subjects : ndarray, shape (n,), int64
        Each subject's place in the input.
    evalues : ndarray, shape (n,), float64, or None
        E-values, if the order is by them.
    """

    scores: IntArray
    subjects: IntArray
    evalues: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, part: slice | npt.NDArray[np.integer | np.bool_]) -> RankedSubjects:
        evalues = None if self.evalues is None else self.evalues[part]
        return RankedSubjects(self.scores[part], self.subjects[part], evalues)

    def find(self, subjects: IntArray) -> IntArray:
        """Return the row of each of some subjects, -1 where it is not among these; both of shape (m,), int64."""
        if not len(self):
            return np.full(len(subjects), -1, dtype=np.int64)
        order = np.argsort(self.subjects)
        rows = order[np.minimum(np.searchsorted(self.subjects, subjects, sorter=order), len(order) - 1)]
        return np.where(self.subjects[rows] == subjects, rows, -1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RankedSubjects):
            return NotImplemented
        if self.evalues is None or other.evalues is None:
            same = self.evalues is other.evalues
        else:
            same = np.array_equal(self.evalues, other.evalues)
        return same and np.array_equal(self.scores, other.scores) and np.array_equal(self.subjects, other.subjects)

    __hash__ = None  # type: ignore[assignment]


def rank(
    scores: npt.ArrayLike, subjects: npt.ArrayLike, limit: int, evalues: npt.ArrayLike | None = None
) -> RankedSubjects:
    """Return the best of some subjects, at most ``limit``.

    Parameters
    ----------
    scores : array_like, shape (n,), integer
        Matrix units.
    subjects : array_like, shape (n,), integer
        Places in the input, each once.
    evalues : array_like, shape (n,), optional
        Sort key of the order; scores by default.
    """
    rated = None if evalues is None else np.asarray(evalues, dtype=np.float64)
    ranked = RankedSubjects(np.asarray(scores, dtype=np.int64), np.asarray(subjects, dtype=np.int64), rated)
    if len(ranked) > limit:  # few of many are sorted
        worst_first = -ranked.scores if ranked.evalues is None else ranked.evalues
        ranked = ranked[worst_first <= np.partition(worst_first, limit - 1)[limit - 1]]
    return ranked[best_first(ranked)[:limit]]


def best_first(ranked: RankedSubjects) -> IntArray:
    """Return the rows of subjects, shape (n,), the best first, by E-value if known, else by score."""
    keys = (ranked.subjects, -ranked.scores)
    return np.lexsort(keys if ranked.evalues is None else (*keys, ranked.evalues))


def concatenate(parts: Sequence[RankedSubjects]) -> RankedSubjects:
    """Return the rows of several rankings, at least one and all of the same order, one after the other."""
    rated = [each.evalues for each in parts if each.evalues is not None]
    scores, subjects = (np.concatenate([getattr(each, name) for each in parts]) for name in ("scores", "subjects"))
    return RankedSubjects(scores, subjects, np.concatenate(rated) if rated else None)


def merge_ranked(parts: Sequence[RankedSubjects], limit: int) -> RankedSubjects:
    """Return the best of the subjects of several rankings, at least one and all of the same order."""
    every = concatenate(parts)
    return rank(every.scores, every.subjects, limit, every.evalues)


@dataclass(frozen=True)
class EvalueFunction:
    """E-values of one query's scores, where they are known before all subjects are scored.

    Parameters
    ----------
    evalues : callable
        Returns the E-values of scores, shape (n,), with subjects of some lengths, shape (n,).
    lowest : callable
        Returns the least score that may have an E-value of at most so much with a subject of so many residues: from
        E-value, least and largest length.
    """

    evalues: Callable[[npt.NDArray[np.integer], npt.NDArray[np.integer]], FloatArray]
    lowest: Callable[[float, int, int], int]


class TopHits:
    """The best subjects of one query, kept exactly while chunks go by.

    Parameters
    ----------
    by_length : ndarray, shape (longest subject + 1,), int64, or None
        Least score of a hit by subject length, matrix units; None where every subject is a hit.
    limit : int
        Most subjects kept.
    subject_mask : ndarray, shape (n_subjects,), bool, optional
        Which subjects may be hits, in input order; by default all.
    evalue_function : EvalueFunction, optional
        Sort key of the order; scores by default.
    """

    def __init__(
        self,
        by_length: IntArray | None,
        limit: int,
        subject_mask: npt.NDArray[np.bool_] | None = None,
        evalue_function: EvalueFunction | None = None,
    ) -> None:
        self.by_length, self._limit, self._allowed, self._rating = by_length, limit, subject_mask, evalue_function
        self.clear()

    def clear(self) -> None:
        """Drop all hits."""
        self.ranked = rank([], [], self._limit, None if self._rating is None else [])

    def min_useful_score(self, chunk: Chunk) -> int | None:
        """Return the score below which no subject of a chunk can become one of the best any more.

        None while everything can. It falls short of what each length takes by as much as the lengths in the chunk
        differ, which `by_length` makes up for in part.
        """
        if len(self.ranked) < self._limit:
            return None
        if self._rating is None or self.ranked.evalues is None:
            return int(self.ranked.scores[-1])
        if not chunk.runs.n_nonempty:
            return None
        shortest, longest = chunk.runs.shortest_nonempty, chunk.runs.longest
        return self._rating.lowest(float(self.ranked.evalues[-1]), shortest, longest)

    def add(self, chunk: Chunk, hits: ChunkHits) -> None:
        """Add the hits of a chunk."""
        places, scores = hits.indices, hits.scores
        if self._allowed is not None:
            allowed = self._allowed[chunk.subjects[places]]
            places, scores = places[allowed], scores[allowed]
        if not len(places):
            return  # as with most chunks, where the database is read in many
        evalues = None
        if self._rating is not None:
            if len(scores) > _PRUNED_FROM * self._limit:
                near = self._near(scores, chunk.runs.at(places))
                places, scores = places[near], scores[near]
            evalues = self._rating.evalues(scores, chunk.runs.at(places))
        found_here = rank(scores, chunk.subjects[places], self._limit, evalues)
        self.ranked = merge_ranked([self.ranked, found_here], self._limit) if len(self.ranked) else found_here

    def above_threshold(self, chunk: Chunk, hits: ChunkHits) -> ChunkHits:
        """Return the hits of a chunk that reach the minimum score of their length."""
        if self.by_length is None:
            return hits
        good = hits.scores >= self.by_length[chunk.runs.at(hits.indices)]
        return replace(hits, indices=hits.indices[good], scores=hits.scores[good])

    def _near(self, scores: ScoreArray, lengths: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Return a mask of the subjects that may be among the best, without computing all E-values.

        No E-value above the largest of those that the best scores have can be among the best.
        """
        assert self._rating is not None
        best = np.argpartition(scores, -self._limit)[-self._limit :]
        largest = float(self._rating.evalues(scores[best], lengths[best]).max())
        return scores >= self._rating.lowest(largest, int(lengths.min()), int(lengths.max()))


class TopHitsAndMembers:
    """The best subjects of one query in two rankings: for the report, and for its next profile.

    Parameters
    ----------
    reported, included : TopHits
        The two rankings.
    """

    def __init__(self, reported: TopHits, included: TopHits) -> None:
        self.reported, self.included = reported, included
        self.by_length = None
        if reported.by_length is not None and included.by_length is not None:
            self.by_length = np.minimum(reported.by_length, included.by_length)

    def clear(self) -> None:
        """Drop all hits."""
        for top in (self.reported, self.included):
            top.clear()

    @property
    def ranked(self) -> RankedSubjects:
        """Candidates for the report."""
        return self.reported.ranked

    def min_useful_score(self, chunk: Chunk) -> int | None:
        """Return the score below which no subject of a chunk can become one of either's best any more."""
        both_scores = self.reported.min_useful_score(chunk), self.included.min_useful_score(chunk)
        return None if both_scores[0] is None or both_scores[1] is None else min(both_scores[0], both_scores[1])

    def add(self, chunk: Chunk, hits: ChunkHits) -> None:
        """Add the hits of a chunk to both rankings."""
        for top in (self.reported, self.included):
            top.add(chunk, top.above_threshold(chunk, hits))


@dataclass(frozen=True)
class QueryCandidates:
    """The subjects of one query that may be reported.

    Parameters
    ----------
    candidates : RankedSubjects
        The best subjects that reach the threshold and that the filters by score and identifier let pass. With fitted
        statistics they reach it by the query's null, until each has its own.
    limit : int
        Most candidates that are kept.
    statistics : Statistics or None
        Source of bit scores and E-values.
    no_evalue_reason : str
        Why there are no statistics, where scoring and mode do not say it already.
    distribution : ScoreCounts or None
        How many subjects have which score, where that was asked for.
    null_models : PairNullModels or None
        The candidates' own nulls, in their order, once these are known; then candidates are hits.
    warning : str
        What to tell of subjects that published statistics take for hits and these do not; empty if there are none.
    profile_candidates : RankedSubjects or None
        The candidates of the query's next profile, where there is to be one: filters do not apply to them.
    alignments : AlignmentTable or None
        Of the candidates, in their order, where these were needed to choose hits; then candidates are hits.
    included : QueryCandidates or None
        The hits of the query's last profile, with their alignments, which are not made again for the candidates. They
        have nulls if candidates would get the same.
    """

    candidates: RankedSubjects
    limit: int
    statistics: Statistics | None = None
    no_evalue_reason: str = ""
    distribution: ScoreCounts | None = None
    null_models: PairNullModels | None = None
    warning: str = ""
    profile_candidates: RankedSubjects | None = None
    alignments: AlignmentTable | None = None
    included: QueryCandidates | None = None

    def take(self, rows: IntArray, alignments: AlignmentTable | None) -> QueryCandidates:
        """Return some of the candidates, by their rows, shape (m,), as hits with their alignments."""
        nulls = None if self.null_models is None else self.null_models[rows]
        return replace(self, candidates=self.candidates[rows], null_models=nulls, alignments=alignments)


def merge(parts: Sequence[QueryCandidates], max_included: int | None = None) -> QueryCandidates:
    """Merge the selections of the parts of a database.

    Parameters
    ----------
    parts : sequence of QueryCandidates
        Of one query, from parts that share no subject, in any order; places in the input are those in the whole. At
        least one.
    max_included : int, optional
        Most candidates of the query's next profile that are kept, where there is to be one.

    Returns
    -------
    QueryCandidates
        The same for every order of the parts, and for every way of merging some of them first.
    """
    if not parts:
        raise ValueError("parts: got none, expected at least one selection")
    if any(part.null_models is not None for part in parts):
        raise ValueError("parts: expected selections whose candidates have no nulls of their own yet")
    first = parts[0]
    for part in parts[1:]:
        same = (part.limit, part.statistics, part.no_evalue_reason) == (
            first.limit,
            first.statistics,
            first.no_evalue_reason,
        )
        same &= (part.candidates.evalues is None) == (first.candidates.evalues is None)
        same &= (part.profile_candidates is None) == (first.profile_candidates is None)
        if not same or (part.distribution is None) != (first.distribution is None):
            raise ValueError(
                "parts: expected selections of one query with the same limit, order, statistics and distribution"
            )
    ranked = merge_ranked([part.candidates for part in parts], first.limit)
    counts = [part.distribution for part in parts if part.distribution is not None]
    included = [part.profile_candidates for part in parts if part.profile_candidates is not None]
    if included and max_included is None:
        raise ValueError("most_included: got None, expected how many candidates of the next profile are kept")
    return replace(
        first,
        candidates=ranked,
        distribution=functools.reduce(operator.add, counts) if counts else None,
        profile_candidates=merge_ranked(included, max_included) if included and max_included is not None else None,
    )


def shift_subjects(selection: QueryCandidates, offset: int) -> QueryCandidates:
    """Return a selection of a part whose first subject has another place in the input, by so much later."""
    included = selection.profile_candidates
    return replace(
        selection,
        candidates=replace(selection.candidates, subjects=selection.candidates.subjects + offset),
        profile_candidates=None if included is None else replace(included, subjects=included.subjects + offset),
    )
