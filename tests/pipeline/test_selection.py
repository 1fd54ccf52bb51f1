"""Selections are plain values: they are pickled, and merge into the same whatever the parts and their order."""

import itertools
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import random_codes
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.inputs import read_queries
from swsearch.pipeline.batch import Batch, QueryState
from swsearch.pipeline.evalues import assign_evalues
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pairs import LocalPairWork
from swsearch.pipeline.ranking import Selection, merge, moved, rank
from swsearch.pipeline.search import Search
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import statistics_for
from swsearch.statistics.score_distribution import ScoreCounts, count_scores

STATISTICS = statistics_for(Scoring(), "local")


def selection(scored, limit=3, **others):
    scores = [score for score, _ in scored]
    return Selection(rank(scores, [place for _, place in scored], limit), limit, STATISTICS, **others)


def equal(one, other):
    return all(getattr(one, field.name) == getattr(other, field.name) for field in fields(Selection))


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


def test_candidates_of_next_profiles_merge_too():
    parts = [
        replace(selection([(5, 2)]), included=rank([9, 3], [2, 4], 2)),
        replace(selection([]), included=rank([], [], 2)),
    ]
    parts.append(moved(replace(selection([(7, 1)]), included=rank([9, 4], [1, 5], 2)), 10))
    for order in itertools.permutations(parts):
        found = merge(order, 3)
        assert (found.included.scores.tolist(), found.included.subjects.tolist()) == ([9, 9, 4], [2, 11, 15])
        assert found.candidates.subjects.tolist() == [11, 2]
        assert equal(merge([merge(order[:2], 3), order[2]], 3), found)
    with pytest.raises(ValueError, match="most_included: got None"):
        merge(parts)
    with pytest.raises(ValueError, match="same limit, order"):
        merge([parts[0], selection([(4, 3)])], 3)


def test_counts_add_up():
    one, other = count_scores([3, -1, 3]), count_scores([4, 3])
    assert one + other == other + one == ScoreCounts(np.array([-1, 3, 4]), np.array([1, 3, 1]))
    assert one != other
    assert one != "counts"


def test_a_selection_is_pickled_as_it_is():
    made = selection([(5, 2), (7, 1)], reason="a reason", distribution=count_scores([5, 7, 0]))
    assert equal(pickle.loads(pickle.dumps(made)), made)


@pytest.mark.parametrize(
    "other",
    [
        {"limit": 4},
        {"statistics": None},
        {"reason": "no fit"},
        {"distribution": count_scores([1])},
    ],
)
def test_what_is_of_different_searches_does_not_merge(other):
    made = selection([(5, 2)])
    with pytest.raises(ValueError, match="same limit, order, statistics and distribution"):
        merge([made, replace(selection([(4, 3)]), **other)])


def selected(search):
    """Return what a search selects, before it is rated."""
    pending = search.session.select(search.session.prepare(search.searched))
    pending.wait()
    return pending.selections()


def test_nothing_does_not_merge():
    with pytest.raises(ValueError, match="got none, expected at least one selection"):
        merge([])


@pytest.mark.parametrize(
    "options",
    [
        {"statistics": "published"},
        {"mode": "global", "statistics": "none"},
        {"statistics": "published", "distribution": True},
    ],
)
def test_what_parts_of_a_database_select_merges_into_what_the_whole_selects(options):
    generator = np.random.default_rng(5)
    subjects = [PROTEIN.decode(random_codes(generator, n, 20)) for n in generator.integers(1, 60, 90)]
    queries = read_queries([subjects[5], subjects[40] + subjects[41]], PROTEIN)
    chosen = SearchOptions(max_hits=20, dbsize=None if "mode" in options else 10_000, evalue=None, **options)

    def select(part):
        with Database.from_records(part) as database, CpuEngine(1) as engine:
            return selected(Search(queries, chosen, LocalBackend(database, engine)))

    whole, parts = select(subjects), []
    for first in (0, 30, 60):
        found = select(subjects[first : first + 30])
        parts.append(
            [
                replace(each, candidates=replace(each.candidates, subjects=each.candidates.subjects + first))
                for each in found
            ]
        )
    for expected, *found in zip(whole, *parts, strict=True):
        assert len(expected.candidates)
        assert equal(merge(found), expected)
        assert equal(merge(found[::-1]), expected)


@pytest.mark.parametrize("mode", ["local", "global"])
def test_parts_merge_before_their_candidates_have_nulls_of_their_own(mode):
    generator = np.random.default_rng(6)
    subjects = [PROTEIN.decode(random_codes(generator, n, 20)) for n in generator.integers(1, 60, 90)]
    queries = read_queries([subjects[5], subjects[40] + subjects[41]], PROTEIN)
    with Database.from_records(subjects) as database, CpuEngine(1) as engine:

        def job_of(*names):
            chosen = SearchOptions(mode=mode, max_hits=20, include_ids=names or None)
            return Search(queries, chosen, LocalBackend(database, engine))

        names = [database.identifier(k) for k in range(database.n_subjects)]
        whole = job_of()
        maker = whole.criteria.null_maker(1)
        parts = [selected(job_of(*names[first::3])) for first in range(3)]
        for query, expected, *found in zip(queries, selected(whole), *parts, strict=True):
            merged = merge(found)
            assert len(expected.candidates) > max(len(each.candidates) for each in found)
            assert merged.nulls is None
            assert equal(merged, expected)
            assert equal(merge(found[::-1]), expected)
            batches = [Batch([QueryState(0, query, each)], whole.subjects) for each in (merged, expected)]
            rated = list(assign_evalues(batches, whole.criteria, LocalPairWork(whole.criteria.recurrence, 1, maker)))
            results = [result for each in whole.results_of(rated) for result in each]
            assert results[0].hits == results[1].hits
            assert results[0].hits[0].evalue < 1e-6
            (of_query,) = rated[0].selections
            assert len(of_query.nulls) == len(of_query.candidates)
            with pytest.raises(ValueError, match="no nulls of their own yet"):
                merge([of_query, of_query])
