"""The order of hits: ties, limits, and the best of parts."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsearch.blocks import Chunk
from swsearch.engines.base import Candidates
from swsearch.pipeline.ranking import Ranked, Rating, TopHits, rank

SCORED = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 10**6)), unique_by=lambda each: each[1], max_size=40)
"""Few different scores, so that most are ties."""


def listed(ranked):
    return list(zip(ranked.scores.tolist(), ranked.subjects.tolist(), strict=True))


def in_order(scored):
    return sorted(scored, key=lambda each: (-each[0], each[1]))


@given(SCORED, st.integers(1, 50))
def test_the_order_is_by_score_then_by_place(scored, limit):
    ranked = rank([score for score, _ in scored], [place for _, place in scored], limit)
    assert listed(ranked) == in_order(scored)[:limit]
    assert ranked.scores.dtype == ranked.subjects.dtype == np.int64


@pytest.mark.parametrize("limit", range(1, 6))
def test_ties_at_the_limit_keep_the_earliest(limit):
    for places in itertools.permutations([7, 3, 9, 1]):
        assert listed(rank([2, 2, 2, 2], places, limit)) == [(2, place) for place in [1, 3, 7, 9][:limit]]


def test_the_lowest_scores_do_not_wrap():
    lowest = np.iinfo(np.int32).min
    assert listed(rank(np.array([lowest, 3], dtype=np.int32), [0, 1], 5)) == [(3, 1), (lowest, 0)]


def test_nothing_ranks():
    assert listed(rank([], [], 3)) == []
    assert len(rank([], [], 3)) == 0


def test_parts_of_a_ranking_are_rankings():
    ranked = rank([5, 4, 3], [2, 1, 0], 3)
    assert ranked[1:] == Ranked(np.array([4, 3]), np.array([1, 0]))
    assert ranked[1:] != ranked
    assert ranked != "a ranking"


def chunk(scored):
    """A chunk that stands for some places in the input, with lengths that depend on the place."""
    nothing = np.zeros(0, dtype=np.int64)
    subjects = np.array([place for _, place in scored], dtype=np.int64)
    return Chunk(np.zeros((0, 64), dtype=np.uint8), nothing, np.array(lengths_of(scored), dtype=np.int32), subjects)


def add(top, scored):
    """Let a chunk of these subjects go by, all of which reach the threshold."""
    places, scores = np.arange(len(scored)), np.array([score for score, _ in scored], dtype=np.int32)
    top.add(chunk(scored), Candidates(places, scores))


def rated(scored):
    """E-values of which many are equal, and which do not fall with the score as long as the place decides too."""
    return [2.0 ** (place % 3 - score // 2) for score, place in scored]


def in_order_of_evalues(scored):
    return sorted(scored, key=lambda each: (*rated([each]), -each[0], each[1]))


@given(SCORED, st.integers(1, 50))
def test_evalues_come_before_scores(scored, limit):
    ranked = rank([score for score, _ in scored], [place for _, place in scored], limit, rated(scored))
    assert listed(ranked) == in_order_of_evalues(scored)[:limit]
    assert ranked.evalues.tolist() == rated(listed(ranked))
    assert ranked[1:].evalues.tolist() == ranked.evalues[1:].tolist()
    assert ranked != rank([score for score, _ in scored], [place for _, place in scored], limit)


def by_length(scores, lengths):
    """E-values that fall by half with each unit of score, and rise with a subject's length."""
    return lengths * 2.0 ** -np.asarray(scores, dtype=float)


def lowest(evalue, shortest, longest):
    assert shortest <= longest
    return next(score for score in range(-20, 40) if by_length(score, shortest) <= evalue)


RATING = Rating(by_length, lowest)


def lengths_of(scored):
    return [1 + place % 7 for _, place in scored]


def in_order_of_rating(scored):
    return sorted(scored, key=lambda each: (by_length(each[0], np.array(lengths_of([each])))[0], -each[0], each[1]))


def test_a_chunk_without_hits_costs_no_e_values():
    asked = []

    def rated(scores, lengths):
        asked.append(len(scores))
        return by_length(scores, lengths)

    top = TopHits(None, 3, rating=Rating(rated, lowest))
    for scored in ([], [(4, 7)], []):
        found = Candidates(np.arange(len(scored)), np.array([score for score, _ in scored], dtype=np.int32))
        top.add(chunk(scored), found)
    assert asked == [1]
    assert listed(top.ranked) == [(4, 7)]


@pytest.mark.parametrize(("rating", "expected"), [(None, in_order), (RATING, in_order_of_rating)])
@given(SCORED, st.integers(1, 50), st.lists(st.integers(0, 40), max_size=4))
def test_chunks_in_any_order_leave_the_same(rating, expected, scored, limit, cuts):
    edges = [0, *sorted(min(cut, len(scored)) for cut in cuts), len(scored)]
    pieces = [scored[first:end] for first, end in itertools.pairwise(edges)]
    for order in itertools.islice(itertools.permutations(pieces), 6):
        top = TopHits(np.ones(2, dtype=np.int64), limit, rating=rating)
        for piece in order:
            add(top, piece)
        assert listed(top.ranked) == expected(scored)[:limit]


@pytest.mark.parametrize(("rating", "expected"), [(None, in_order), (RATING, in_order_of_rating)])
@given(SCORED, st.integers(1, 12), st.lists(st.integers(0, 40), max_size=4))
def test_what_scores_below_the_least_would_not_be_kept(rating, expected, scored, limit, cuts):
    edges = [0, *sorted(min(cut, len(scored)) for cut in cuts), len(scored)]
    top = TopHits(None, limit, rating=rating)
    for first, end in itertools.pairwise(edges):
        piece = scored[first:end]
        least = top.least(chunk(piece))
        add(top, [each for each in piece if least is None or each[0] >= least])
    assert listed(top.ranked) == expected(scored)[:limit]


def test_the_least_score_rises_once_the_list_is_full():
    top = TopHits(np.ones(2, dtype=np.int64), 2)
    assert top.least(chunk([])) is None
    add(top, [(5, 0)])
    assert top.least(chunk([])) is None
    add(top, [(7, 1)])
    assert top.least(chunk([])) == 5
    add(top, [(9, 2), (1, 3)])
    assert top.least(chunk([])) == 7


def test_the_least_score_is_as_tight_as_the_lengths_of_a_chunk():
    top = TopHits(None, 2, rating=RATING)
    add(top, [(5, 0), (7, 0)])  # both of length 1, the worse with an E-value of 1/32
    assert [top.least(chunk([(0, place)])) for place in (0, 1, 3)] == [5, 6, 7]
    assert top.least(chunk([(0, 3), (0, 0)])) == 5  # the shortest of the chunk decides
    assert top.least(chunk([])) is None


def test_only_what_is_allowed_is_kept():
    for rating in (None, RATING):
        top = TopHits(np.ones(2, dtype=np.int64), 5, np.array([True, False, True]), rating)
        add(top, [(5, 0), (9, 1), (8, 2)])
        assert listed(top.ranked) == [(8, 2), (5, 0)]
