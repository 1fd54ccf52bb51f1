"""Addition of included hits to the profile of a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.db.arrays import offsets_of, ranges
from swsearch.inputs import Query
from swsearch.pipeline.backend import PairBackend
from swsearch.pipeline.batch import Batch, QueryState, search_iteration
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.evalues import EvalueCalculator
from swsearch.pipeline.hits import HitBuilder, min_hsp_scores
from swsearch.pipeline.inclusion import select_hits, trim_ends
from swsearch.pipeline.pairs import LocalPairBackend
from swsearch.pipeline.prefetch import check_cancelled, parallel_for
from swsearch.pipeline.ranking import RankedSubjects
from swsearch.profiles.calibration import lambda_of
from swsearch.profiles.construction import AlignedSubjects, build_alignment
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.results import HitList, SubjectCodes
from swsearch.scoring import QueryProfile

MAX_REPEATS = 100
"""Parts of one subject that enter at most: titin has some hundred domains of one family."""


@dataclass(frozen=True, eq=False)
class ProfileHitSelector:
    """Selects the hits that make profiles, and aligns them.

    Parameters
    ----------
    criteria : Criteria
        Of the whole search, with those of inclusion.
    backend : PairBackend
        Aligns hits, and scores shuffled copies.
    local_backend : LocalPairBackend
        Aligns what is beside hits.
    """

    criteria: Criteria
    backend: PairBackend
    local_backend: LocalPairBackend

    @property
    def inclusion(self) -> Criteria:
        """Criteria of hits for the next profile."""
        assert self.criteria.inclusion is not None
        return self.criteria.inclusion

    def select(self, batch: Batch) -> Batch:
        """Return the candidates for profiles: the best within the E-value, one more than needed."""
        options = self.inclusion.options
        chosen = [
            replace(
                each,
                candidates=each.profile_candidates or RankedSubjects(*_NOTHING),
                limit=options.max_candidates,
                profile_candidates=None,
            )
            for each in batch.selections
        ]
        if self.criteria.fit is None:
            return batch.with_selections(
                [replace(each, candidates=each.candidates[: options.max_hits]) for each in chosen]
            )
        return batch.with_selections(
            EvalueCalculator(self.inclusion, self.backend, batch.subjects).assign(batch.queries, chosen)
        )

    def extend(
        self, batch: Batch, bases: Sequence[QueryAlignment]
    ) -> tuple[list[QueryAlignment], list[AlignmentTable]]:
        """Lay the hits of an iteration below their queries.

        Parameters
        ----------
        batch : Batch
            What `select` returned, or a part of it.
        bases : sequence of QueryAlignment
            The alignment of each query without what these subjects add.

        Returns
        -------
        alignments : list of QueryAlignment
            Each query with all its hits that pass the inclusion rules.
        tables : list of AlignmentTable
            The best alignments of each query's first candidates, as many as may enter.
        """
        options = self.criteria.options
        max_subjects = options.inclusion.most
        candidates = [
            replace(
                each,
                candidates=each.candidates[:max_subjects],
                null_models=None if each.null_models is None else each.null_models[:max_subjects],
            )
            for each in batch.selections
        ]
        of_profiles = batch.with_selections(candidates)
        lists = self._builder.build(of_profiles, aligned=True)
        parts = [_Parts.from_hits(hits) for hits in lists]
        tables = [each.table for each in parts]
        if options.inclusion.several and options.mode == "local":
            self._add_hsps(of_profiles, bases, lists, parts)

        def lay(place: int) -> QueryAlignment:
            check_cancelled()
            return self._extend_alignment(batch.states[place].query, bases[place], lists[place], parts[place])

        return parallel_for(lay, range(len(lists)), self.local_backend.threads), tables

    @property
    def _builder(self) -> HitBuilder:
        return HitBuilder(self.inclusion, self.backend, self.local_backend)

    def _extend_alignment(self, query: Query, base: QueryAlignment, hits: HitList, parts: _Parts) -> QueryAlignment:
        """Return the alignment of a query with all hits that pass the inclusion rules."""
        subjects, profile = hits.subjects, query.profile
        if subjects is None or not len(parts.table):
            return base
        order = parts.order()
        table, good = self._apply_rules(query, base, subjects, parts)
        chosen = order[good[order]]
        headers, pool = hits.table.headers, (unmask_codes(subjects.codes, subjects.letters), subjects.offsets)
        aligned = AlignedSubjects(
            headers.identifiers, headers.descriptions, pool, hits.table.subjects, parts.of_hit[chosen],
            parts.evalues[chosen],
        )  # fmt: skip
        earlier = None if profile is None else profile.alignment
        return build_alignment(base, aligned, table.take(chosen), search_iteration(profile), earlier)

    def _apply_rules(
        self, query: Query, base: QueryAlignment, subjects: SubjectCodes, parts: _Parts
    ) -> tuple[AlignmentTable, npt.NDArray[np.bool_]]:
        """Return alignments cut back by the inclusion rules, and a mask of those that pass."""
        rules, scoring = self.criteria.options.inclusion, self.criteria.options.scoring
        starts, table = subjects.offsets[:-1][parts.of_hit], parts.table
        if rules.ends is not None:
            min_score = rules.ends * math.log(2) / lambda_of(scoring.matrix)
            table = trim_ends(table, query.rows(scoring), scoring, subjects.codes, starts, min_score)
        stored = unmask_codes(subjects.codes, subjects.letters)
        return table, select_hits(rules, base.query, stored, starts, table)

    # further parts of subjects

    def _add_hsps(
        self, batch: Batch, bases: Sequence[QueryAlignment], lists: Sequence[HitList], all_parts: Sequence[_Parts]
    ) -> None:
        """Align what subjects have beside their alignments, round after round; add the results to ``all_parts``."""
        flanks = list(map(self._find_flanks, batch.states, bases, lists, all_parts))
        for _ in range(MAX_REPEATS):
            check_cancelled()
            if not any(map(len, flanks)):
                return
            scores = self.local_backend.score_codes(batch.queries, *_concatenate(lists, flanks))
            by_list = np.split(scores.astype(np.int64), np.cumsum([len(each) for each in flanks])[:-1])
            good = list(map(self._good_flanks, batch.states, lists, flanks, by_list))
            flanks = [each for each, _, _ in good]
            if not any(map(len, flanks)):
                return
            known = np.concatenate([each for _, each, _ in good])
            table = self.local_backend.align_codes(batch.queries, *_concatenate(lists, flanks), known)
            begin = 0
            for place, each in enumerate(flanks):
                some = table[begin : begin + len(each)]
                begin += len(each)
                flanks[place] = all_parts[place].add(each, some, good[place][2])

    def _good_flanks(
        self, state: QueryState, hits: HitList, flanks: _Flanks, scores: IntArray
    ) -> tuple[_Flanks, IntArray, FloatArray]:
        """Return the flanks whose scores, shape (n,), are good enough, with scores and E-values."""
        reached = np.flatnonzero(scores >= flanks.min_scores)
        evalues = self._evalues(state, hits, flanks.of_hit[reached], scores[reached])
        good = evalues <= self.criteria.options.inclusion.evalue
        return flanks.take(reached[good]), scores[reached[good]], evalues[good]

    def _is_last(self, state: QueryState) -> bool:
        """Whether no profile is made of what a query finds: its subjects are only counted."""
        history = state.history
        ends = history is not None and search_iteration(state.query.profile) >= history.last
        return ends and not self.criteria.options.keep_profiles

    def _find_flanks(self, state: QueryState, base: QueryAlignment, hits: HitList, parts: _Parts) -> _Flanks:
        """Return the flanks of the best alignments of a query's hits that may hold further parts."""
        options, query = self.criteria.options, state.query
        min_scores = min_hsp_scores(self.inclusion, query, state.candidates, hits.table.subject_lengths)
        flanks = _Flanks.from_parts(min_scores, query.rows(options.scoring), hits, parts)
        if self._is_last(state) and hits.subjects is not None:
            # a subject counts once: further parts matter if its best one does not enter
            table, good = self._apply_rules(query, base, hits.subjects, parts)
            enters = good & (table.length > table.gaps)
            flanks = flanks.take(np.flatnonzero(~enters[flanks.of_hit]))
        return flanks

    def _evalues(self, state: QueryState, hits: HitList, rows: IntArray, scores: IntArray) -> FloatArray:
        """Return the E-values of scores of further parts of some hits; all of shape (n,)."""
        nulls = None if state.candidates.null_models is None else state.candidates.null_models.for_hsps(rows)
        of_parts, lengths = replace(state.candidates, null_models=nulls), hits.table.subject_lengths[rows]
        return self._builder.statistics(state.query, of_parts, scores, lengths, None).evalues


_NOTHING = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(eq=False)
class _Parts:
    """The alignments of a query with its hits: of each the best one, and further ones.

    Parameters
    ----------
    table : AlignmentTable
        m of them; subject positions are those in whole subjects.
    of_hit : ndarray, shape (m,), int64
        The row of each one's hit.
    evalues : ndarray, shape (m,), float64
        Of each.
    """

    table: AlignmentTable
    of_hit: IntArray
    evalues: FloatArray

    @classmethod
    def from_hits(cls, hits: HitList) -> _Parts:
        """Return the best alignments of hits."""
        table = hits.alignments
        if table is None:
            table = AlignmentTable.from_pairs([])
        return cls(table, np.arange(len(table), dtype=np.int64), hits.table.statistics.evalues)

    def order(self) -> IntArray:
        """Return the places of all alignments: the best hit first, and of each the best part."""
        return np.lexsort((self.table.subject_start, self.evalues, self.of_hit))

    def add(self, flanks: _Flanks, table: AlignmentTable, evalues: FloatArray) -> _Flanks:
        """Add the alignments of flanks, shape (n,), and return the flanks beside them."""
        begins = flanks.begins
        found = replace(table, subject_start=table.subject_start + begins, subject_end=table.subject_end + begins)
        self.table = AlignmentTable.concatenate([self.table, found])
        self.of_hit = np.concatenate([self.of_hit, flanks.of_hit])
        self.evalues = np.concatenate([self.evalues, evalues])
        return flanks.beside_found(found)


@dataclass(frozen=True, eq=False)
class _Flanks:
    """Stretches of a query's hits that may hold further parts.

    Parameters
    ----------
    reach : ndarray, shape (n_rows + 1,), int64
        Largest score that so many residues may have with the query.
    of_hit, begins, ends : ndarray, shape (n,), int64
        The row of each one's hit, and where in its subject it lies, half-open.
    min_scores : ndarray, shape (n,), int64
        Least score of a part of it.
    """

    reach: IntArray
    of_hit: IntArray
    begins: IntArray
    ends: IntArray
    min_scores: IntArray

    def __len__(self) -> int:
        return len(self.of_hit)

    @classmethod
    def from_parts(cls, min_score: IntArray, rows: QueryProfile, hits: HitList, parts: _Parts) -> _Flanks:
        """Return the flanks of the best alignments of hits, with the minimum scores of further parts."""
        best = np.sort(np.maximum(rows.scores.max(axis=1), 0))[::-1]
        reach = np.concatenate([[0], np.cumsum(best, dtype=np.int64)])
        nothing = np.zeros(len(parts.of_hit), dtype=np.int64)
        whole = cls(reach, parts.of_hit, nothing, hits.table.subject_lengths[parts.of_hit], min_score[parts.of_hit])
        return whole.beside_found(parts.table)

    def take(self, chosen: IntArray) -> _Flanks:
        """Return some, places of shape (m,)."""
        return _Flanks(self.reach, *(each[chosen] for each in (self.of_hit, self.begins, self.ends, self.min_scores)))

    def beside_found(self, alignments: AlignmentTable) -> _Flanks:
        """Return the flanks left on both sides of an alignment in each, if long enough for another."""
        begins, ends = np.append(self.begins, alignments.subject_end), np.append(alignments.subject_start, self.ends)
        both = _Flanks(self.reach, np.tile(self.of_hit, 2), begins, ends, np.tile(self.min_scores, 2))
        reach = self.reach[np.clip(both.ends - both.begins, 0, len(self.reach) - 1)]
        return both.take(np.flatnonzero((both.ends > both.begins) & (reach >= both.min_scores)))


def _concatenate(lists: Sequence[HitList], flanks: Sequence[_Flanks]) -> tuple[IntArray, SubjectCodes]:
    """Return the place of each flank's list, and the residues of all flanks end to end."""
    of_lists = [(hits.subjects, each) for hits, each in zip(lists, flanks, strict=True) if hits.subjects is not None]
    codes = [
        subjects.codes[ranges(subjects.offsets[each.of_hit] + each.begins, each.ends - each.begins)]
        for subjects, each in of_lists
    ]
    offsets = offsets_of(np.concatenate([each.ends - each.begins for each in flanks]))
    of_query = np.repeat(np.arange(len(flanks)), [len(each) for each in flanks])
    return of_query, SubjectCodes(np.concatenate(codes), None, offsets)


def unmask_codes(codes: ByteArray, letters: ByteArray | None) -> ByteArray:
    """Return codes, shape (n,), uint8, without X where they are masked, from the letters that are shown."""
    if letters is None:
        return codes
    return PROTEIN.encode_table[letters]
