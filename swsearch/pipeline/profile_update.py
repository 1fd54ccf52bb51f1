"""Addition of included hits to the profile of a query."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.db.arrays import offsets_of, ranges
from swsearch.inputs import Query
from swsearch.pipeline.backend import PairBackend
from swsearch.pipeline.batch import Batch, QueryState, next_iteration
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.evalues import EvalueCalculator
from swsearch.pipeline.hits import HitBuilder, least_further
from swsearch.pipeline.inclusion import select_hits, trimmed
from swsearch.pipeline.pairs import LocalPairWork
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
    pairs : PairBackend
        Aligns hits, and scores shuffled copies.
    local : LocalPairWork
        Aligns what is beside hits.
    """

    criteria: Criteria
    pairs: PairBackend
    local: LocalPairWork

    @property
    def inclusion(self) -> Criteria:
        """Criteria of hits for the next profile."""
        assert self.criteria.inclusion is not None
        return self.criteria.inclusion

    def select(self, batch: Batch) -> Batch:
        """Return the candidates for profiles: the best within the E-value, one more than needed."""
        wanted = self.inclusion.options
        chosen = [
            replace(
                each,
                candidates=each.included or RankedSubjects(*_NOTHING),
                limit=wanted.max_candidates,
                included=None,
            )
            for each in batch.selections
        ]
        if self.criteria.fit is None:
            return batch.having([replace(each, candidates=each.candidates[: wanted.max_hits]) for each in chosen])
        return batch.having(
            EvalueCalculator(self.inclusion, self.pairs, batch.subjects).assign(batch.queries, chosen)
        )

    def extend(self, batch: Batch, bases: Sequence[QueryAlignment]) -> list[QueryAlignment]:
        """Lay the hits of an iteration below their queries.

        Parameters
        ----------
        batch : Batch
            What `select` returned, or a part of it.
        bases : sequence of QueryAlignment
            The alignment of each query without what these subjects add.
        """
        options = self.criteria.options
        most = options.inclusion.most
        kept = [
            replace(each, candidates=each.candidates[:most], nulls=None if each.nulls is None else each.nulls[:most])
            for each in batch.selections
        ]
        of_profiles = batch.having(kept)
        lists = self._builder.build(of_profiles, aligned=True)
        found = [_Parts.of(hits) for hits in lists]
        if options.inclusion.several and options.mode == "local":
            self._add_further(of_profiles, lists, found)

        def lay(place: int) -> QueryAlignment:
            check_cancelled()
            return self._laid(batch.states[place].query, bases[place], lists[place], found[place])

        return parallel_for(lay, range(len(lists)), self.local.threads)

    @property
    def _builder(self) -> HitBuilder:
        return HitBuilder(self.inclusion, self.pairs, self.local)

    def _laid(self, query: Query, base: QueryAlignment, hits: HitList, parts: _Parts) -> QueryAlignment:
        """Lay what passes the rules below a query."""
        options, profile = self.criteria.options, query.profile
        rules, scoring = options.inclusion, options.scoring
        subjects = hits.subjects
        if subjects is None or not len(parts.table):
            return base
        starts = subjects.offsets[:-1][parts.of_hit]
        table, order = parts.table, parts.in_order()
        if rules.ends is not None:
            least = rules.ends * math.log(2) / lambda_of(scoring.matrix)
            table = trimmed(table, query.rows(scoring), scoring, subjects.codes, starts, least)
        stored = stored_codes(subjects.codes, subjects.letters)
        good = select_hits(rules, base.query, stored, starts, table)
        chosen = order[good[order]]
        headers, pool = hits.table.headers, (stored, subjects.offsets)
        found = AlignedSubjects(
            headers.identifiers, headers.descriptions, pool, hits.table.subjects, parts.of_hit[chosen],
            parts.evalues[chosen],
        )  # fmt: skip
        earlier = None if profile is None else profile.alignment
        return build_alignment(base, found, table.take(chosen), next_iteration(profile), earlier)

    # further parts of subjects

    def _add_further(self, batch: Batch, lists: Sequence[HitList], found: Sequence[_Parts]) -> None:
        """Add alignments of what of the subjects is beside those that there are, round after round."""
        options, queries = self.criteria.options, batch.queries
        flanks = [
            _Flanks.beside(
                least_further(self.inclusion, state.query, state.found, hits.table.subject_lengths),
                state.query.rows(options.scoring), hits, parts,
            )
            for state, hits, parts in zip(batch.states, lists, found, strict=True)
        ]  # fmt: skip
        for _ in range(MAX_REPEATS):
            check_cancelled()
            if not any(len(each) for each in flanks):
                return
            pool, of_query, least = _joined(lists, flanks)
            table = self.local.align_codes(queries, of_query, pool, least)
            begin = 0
            for place, each in enumerate(flanks):
                some = table[begin : begin + len(each)]
                begin += len(each)
                numbers = partial(self._evalues, batch.states[place], lists[place])
                flanks[place] = found[place].add(each, some, numbers, options.inclusion.evalue)

    def _evalues(self, state: QueryState, hits: HitList, rows: IntArray, scores: IntArray) -> FloatArray:
        """Return the E-values of scores of further parts of some hits; all of shape (n,)."""
        nulls = None if state.found.nulls is None else state.found.nulls.further(rows)
        of_parts, lengths = replace(state.found, nulls=nulls), hits.table.subject_lengths[rows]
        return self._builder.arrays(state.query, of_parts, scores, lengths, None).evalues


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
    def of(cls, hits: HitList) -> _Parts:
        """Return the best alignments of hits."""
        table = hits.alignments
        if table is None:
            table = AlignmentTable.from_pairs([])
        return cls(table, np.arange(len(table), dtype=np.int64), hits.table.numbers.evalues)

    def in_order(self) -> IntArray:
        """Return the places of all alignments: the best hit first, and of each the best part."""
        return np.lexsort((self.table.subject_start, self.evalues, self.of_hit))

    def add(self, flanks: _Flanks, table: AlignmentTable, numbers: _Numbers, evalue: float) -> _Flanks:
        """Add the alignments of flanks that are good enough, and return the flanks beside them."""
        reached = np.flatnonzero(table.score >= flanks.least)
        evalues = numbers(flanks.of_hit[reached], table.score[reached])
        reached, evalues = reached[evalues <= evalue], evalues[evalues <= evalue]
        good, begins = table.take(reached), flanks.begins[reached]
        good = replace(good, subject_start=good.subject_start + begins, subject_end=good.subject_end + begins)
        taken = flanks.take(reached)
        self.table = AlignmentTable.concatenate([self.table, good])
        self.of_hit = np.concatenate([self.of_hit, taken.of_hit])
        self.evalues = np.concatenate([self.evalues, evalues])
        return taken.around(good)


_Numbers = Callable[[IntArray, IntArray], FloatArray]
"""Returns the E-values of scores with the subjects of some hits' rows."""


@dataclass(frozen=True, eq=False)
class _Flanks:
    """Stretches of a query's hits that may hold further parts.

    Parameters
    ----------
    reach : ndarray, shape (n_rows + 1,), int64
        Largest score that so many residues may have with the query.
    of_hit, begins, ends : ndarray, shape (n,), int64
        The row of each one's hit, and where in its subject it lies, half-open.
    least : ndarray, shape (n,), int64
        Least score of a part of it.
    """

    reach: IntArray
    of_hit: IntArray
    begins: IntArray
    ends: IntArray
    least: IntArray

    def __len__(self) -> int:
        return len(self.of_hit)

    @classmethod
    def beside(cls, least: IntArray, rows: QueryProfile, hits: HitList, parts: _Parts) -> _Flanks:
        """Return the flanks of the best alignments of hits, with the minimum scores of further parts."""
        best = np.sort(np.maximum(rows.scores.max(axis=1), 0))[::-1]
        reach = np.concatenate([[0], np.cumsum(best, dtype=np.int64)])
        nothing = np.zeros(len(parts.of_hit), dtype=np.int64)
        whole = cls(reach, parts.of_hit, nothing, hits.table.subject_lengths[parts.of_hit], least[parts.of_hit])
        return whole.around(parts.table)

    def take(self, chosen: IntArray) -> _Flanks:
        """Return some, places of shape (m,)."""
        return _Flanks(self.reach, *(each[chosen] for each in (self.of_hit, self.begins, self.ends, self.least)))

    def around(self, found: AlignmentTable) -> _Flanks:
        """Return the flanks left on both sides of an alignment in each, if long enough for another."""
        begins, ends = np.append(self.begins, found.subject_end), np.append(found.subject_start, self.ends)
        both = _Flanks(self.reach, np.tile(self.of_hit, 2), begins, ends, np.tile(self.least, 2))
        reach = self.reach[np.clip(both.ends - both.begins, 0, len(self.reach) - 1)]
        return both.take(np.flatnonzero((both.ends > both.begins) & (reach >= both.least)))


def _joined(lists: Sequence[HitList], flanks: Sequence[_Flanks]) -> tuple[SubjectCodes, IntArray, IntArray]:
    """Return the residues of all flanks end to end, the place of each one's list, and its least score."""
    of_lists = [(hits.subjects, each) for hits, each in zip(lists, flanks, strict=True) if hits.subjects is not None]
    codes = [
        subjects.codes[ranges(subjects.offsets[each.of_hit] + each.begins, each.ends - each.begins)]
        for subjects, each in of_lists
    ]
    offsets = offsets_of(np.concatenate([each.ends - each.begins for each in flanks]))
    of_query = np.repeat(np.arange(len(flanks)), [len(each) for each in flanks])
    least = np.concatenate([each.least for each in flanks])
    return SubjectCodes(np.concatenate(codes), None, offsets), of_query, least


def stored_codes(codes: ByteArray, letters: ByteArray | None) -> ByteArray:
    """Return codes, shape (n,), uint8, without X where they are masked, from the letters that are shown."""
    if letters is None:
        return codes
    return PROTEIN.encode_table[letters]
