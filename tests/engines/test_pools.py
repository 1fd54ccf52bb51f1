"""Sequences end to end: where pairs lie, parts of pools, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest

from support.cases import random_profile
from swsearch.blocks import apply_mask, letters_with_mask
from swsearch.engines.pools import (
    PoolPairs,
    check_lengths,
    make_pool,
    mask_pool,
    pair_bounds,
    query_of,
    rows_pool,
    subset_of,
)
from swsearch.errors import InputError
from swsearch.scoring import GAP_COLUMNS, Scoring, codes_of, rows_of

SEQUENCES = [np.array(codes, dtype=np.uint8) for codes in ([1, 2, 3], [], [4], [5, 6], [])]
POOL = make_pool(SEQUENCES)


def test_rows_of_a_pool_are_those_of_its_queries():
    generator, scoring = np.random.default_rng(1), Scoring(gap_open=7, gap_extend=2)
    queries = [random_profile(generator, 3), np.array([4, 5], dtype=np.uint8), random_profile(generator, 4)]
    rows = rows_pool(queries, scoring)
    assert (len(rows), rows.is_specific, rows.gaps) == (9, True, None)
    assert rows.codes.tolist() == make_pool([codes_of(query) for query in queries])[0].tolist()
    for query, begin, end in zip(queries, (0, 3, 5), (3, 5, 9), strict=True):
        one = query_of(rows.codes, rows, begin, end)
        assert one.scores.tolist() == rows_of(query, scoring).scores.tolist()
        assert one.codes.tolist() == codes_of(query).tolist()
        assert query_of(rows.codes, None, begin, end).tolist() == codes_of(query).tolist()
    queries.append(random_profile(generator, 2, most_cost=20))
    rows = rows_pool(queries, scoring)
    assert rows.gaps.deletion_open[:9].tolist() == [7] * 9
    assert rows.gaps.insertion_extend[:9].tolist() == [2] * 9
    last = query_of(rows.codes, rows, 9, 11).gaps
    for name in GAP_COLUMNS:
        assert getattr(last, name).tolist() == getattr(queries[-1].gaps, name).tolist()
    assert len(rows_pool([], scoring)) == 0
    none = np.zeros((0, 2), dtype=np.int64)
    assert PoolPairs(make_pool([rows.codes]), POOL, none, rows=rows).places.shape == (0, 4)
    with pytest.raises(ValueError, match="rows, one for each residue"):
        _ = PoolPairs(POOL, POOL, none, rows=rows).places


@pytest.mark.parametrize("chosen", [[], [0], [4], [1, 2, 3], [0, 2, 3], [0, 1, 2, 3, 4], [0, 4]])
def test_a_subset_holds_what_was_chosen(chosen):
    codes, offsets = subset_of(POOL, np.array(chosen, dtype=np.int64))
    assert offsets[0] == 0 and offsets[-1] == len(codes)
    cut = [codes[begin:end].tolist() for begin, end in pairwise(offsets)]
    assert cut == [SEQUENCES[place].tolist() for place in chosen]
    if chosen == [1, 2, 3]:
        assert np.shares_memory(codes, POOL[0])


@pytest.mark.parametrize(
    "offsets", [[0, 3, 2], [-1, 3, 6], [0, 3, 7], [0, 2**63 - 1, 3], [2**63 - 1, -(2**63), 3], [0, 3, -(2**63)]]
)
def test_offsets_that_are_wrong(offsets):
    with pytest.raises(ValueError, match="expected offsets that ascend, up to the 6 residues"):
        pair_bounds((POOL[0], np.array(offsets)), POOL, np.array([[0, 0], [1, 0]]))


def test_only_lengths_that_occur_are_too_much():
    asked = []

    def check(m, n):
        asked.append((m, n))
        if m * n > 2:
            raise InputError(f"{m} by {n}")

    check_lengths(pair_bounds(POOL, POOL, np.array([[0, 1], [1, 3], [2, 3]])), check)
    assert asked[0] == (3, 2) and sorted(asked[1:]) == [(0, 2), (1, 2), (3, 0)]
    with pytest.raises(InputError, match="3 by 1"):
        check_lengths(pair_bounds(POOL, POOL, np.array([[0, 1], [0, 2], [2, 3]])), check)
    asked.clear()
    check_lengths(pair_bounds(POOL, POOL, np.array([[2, 3]] * 5)), check)
    check_lengths(pair_bounds(POOL, POOL, np.zeros((0, 2), dtype=np.int64)), check)
    assert asked == [(1, 2)]


@pytest.mark.parametrize(
    "runs", [[[], [], [], [], []], [[(0, 3)], [], [(0, 0)], [(1, 2)], []], [[(0, 1), (2, 3)]] + [[]] * 4]
)
def test_masked_pools_are_masked_sequences(runs):
    flat = np.array([run for some in runs for run in some], dtype=np.int64).reshape(-1, 2)
    given = np.cumsum([0, *map(len, runs)]), flat[:, 0], flat[:, 1]
    (codes, offsets), letters = mask_pool(POOL, given)
    each = list(zip(SEQUENCES, runs, strict=True))
    assert offsets is POOL[1] and codes.tolist() == make_pool([apply_mask(*one) for one in each])[0].tolist()
    if any(runs):
        assert letters.tolist() == make_pool([letters_with_mask(*one) for one in each])[0].tolist()
        assert POOL[0].tolist() == [1, 2, 3, 4, 5, 6]
    else:
        assert letters is None


@pytest.mark.parametrize("run", [(0, 4), (-1, 2), (2, 1), (3, 4), (0, 2**62)])
def test_stretches_that_are_not_there(run):
    with pytest.raises(ValueError, match="expected stretches within their sequences"):
        mask_pool(POOL, (np.array([0, 1, 1, 1, 1, 1]), np.array(run[:1]), np.array(run[1:])))
