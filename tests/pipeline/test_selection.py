"""Selections are plain values: they are pickled, and merge into the same whatever the parts and their order."""

import itertools
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsearch.pipeline.ranking import QueryCandidates, merge, rank
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import published_statistics
from swsearch.statistics.score_distribution import count_scores

STATISTICS = published_statistics(Scoring(), "local")


def selection(scored, limit=3, **others):
    scores = [score for score, _ in scored]
    return QueryCandidates(rank(scores, [place for _, place in scored], limit), limit, STATISTICS, **others)


def equal(one, other):
    return all(getattr(one, field.name) == getattr(other, field.name) for field in fields(QueryCandidates))


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(1, 12), st.lists(st.integers(0, 30), max_size=3))
def test_any_order_and_any_nesting_merge_into_the_same(scores, limit, cuts):
    scored = [(score, place) for place, score in enumerate(scores)]
    edges = [0, *sorted(min(cut, len(scored)) for cut in cuts), len(scored)]
    runs = [scored[first:end] for first, end in itertools.pairwise(edges)]
    parts = [selection(run, limit, distribution=count_scores([score for score, _ in run])) for run in runs]
    whole = selection(scored, limit, distribution=count_scores(scores))
    for order in itertools.permutations(parts):
        assert equal(merge(order), whole)
        assert equal(merge([merge(order[:1]), *order[1:]]), whole)
        if len(order) > 1:
            assert equal(merge([merge(order[:-1]), order[-1]]), whole)


@pytest.mark.parametrize(
    "other",
    [
        {"limit": 4},
        {"statistics": None},
        {"no_evalue_reason": "no fit"},
        {"distribution": count_scores([1])},
    ],
)
def test_what_is_of_different_searches_does_not_merge(other):
    made = selection([(5, 2)])
    with pytest.raises(ValueError, match="same limit, order, statistics and distribution"):
        merge([made, replace(selection([(4, 3)]), **other)])
