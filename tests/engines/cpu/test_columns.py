"""Columns of many alignments from the extension against `PairAlignment`: counts, rows, BTOP, with masks and DNA."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, modes_with_ends, random_codes, scorings
from support.samples import random_cases
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import ALIGNMENT_COLUMNS, split_pool
from swsearch.blocks import apply_mask, letters_with_mask
from swsearch.engines.cpu import columns, tracing
from swsearch.engines.pools import PoolPairs, make_pool
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

DNA = Scoring(dna_matrix(), 4, 1)


def expected_rows(table, queries, subjects, pairs, scoring, letters):
    """Return the values of `PairAlignment` for each alignment of a table."""
    for k, (q, s) in enumerate(pairs.tolist()):
        one, other = (slice(*pool[1][place : place + 2]) for pool, place in ((queries, q), (subjects, s)))
        shown = [None if side is None else side[part] for side, part in zip(letters, (one, other), strict=True)]
        start = (int(table.score[k]), int(table.query_start[k]), int(table.subject_start[k]))
        yield PairAlignment(queries[0][one], subjects[0][other], scoring, *start, table.cigar(k), *shown)


def check(table, queries, subjects, pairs, scoring, letters=(None, None), threads=1):
    """Compare all that is said of a table's alignments with `PairAlignment`."""
    given = (PoolPairs(queries, subjects, pairs, letters), scoring.matrix, threads)
    expected = list(expected_rows(table, queries, subjects, pairs, scoring, letters))
    for name in ALIGNMENT_COLUMNS:
        assert getattr(table, name).tolist() == [getattr(one, name) for one in expected], name
    rows = columns.rows_of(table, *given)
    cut = (split_pool(row, rows.offsets) for row in (rows.query, rows.middle, rows.subject))
    assert list(zip(*cut, strict=True)) == [one.rows() for one in expected]
    assert columns.btops_of(table, *given) == [one.btop() for one in expected]
    assert table.cigar_strings() == [one.cigar_string for one in expected]


@st.composite
def masked(draw, sequences):
    """Runs to be masked in each of some sequences; they may be empty."""
    ends = st.tuples(st.integers(0, 45), st.integers(0, 45)).map(sorted)
    return [draw(st.lists(ends, max_size=2)) for _ in sequences]


@random_cases(200)
@given(
    st.lists(any_codes(45), min_size=1, max_size=4),
    st.lists(any_codes(45), min_size=1, max_size=4),
    scorings,
    modes_with_ends,
    st.data(),
)
def test_columns_are_those_of_pair_alignments(queries, subjects, scoring, mode_and_ends, data):
    places = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(subjects) - 1))
    pairs = np.array(data.draw(st.lists(places, max_size=6)), dtype=np.int64).reshape(-1, 2)
    scored, letters = [], []
    for side in (queries, subjects):
        runs = data.draw(masked(side))
        scored.append(make_pool([apply_mask(*each) for each in zip(side, runs, strict=True)]))
        letters.append(
            make_pool([letters_with_mask(*each) for each in zip(side, runs, strict=True)])[0] if any(runs) else None
        )
    recurrence = Recurrence(scoring, *mode_and_ends)
    table, needed = tracing.align_pools(
        PoolPairs(*scored, pairs, tuple(letters)), recurrence, tracing.BatchLimits(threads=2)
    )
    assert needed.tolist() == [0] * len(pairs)
    check(table, *scored, pairs, scoring, tuple(letters))
    for (q, s), *found in zip(pairs, table.score.tolist(), table.query_start.tolist(), strict=False):
        one, other = ((pool[offsets[k] : offsets[k + 1]]) for k, (pool, offsets) in zip((q, s), scored, strict=True))
        assert tracing.align(one, other, recurrence)[:2] == tuple(found)


def test_letters_of_dna_that_stand_for_the_same():
    alphabet = DNA.matrix.alphabet
    queries = make_pool([alphabet.encode("ACGTACGTNR"), alphabet.encode("AUGU")])
    subjects = make_pool([alphabet.encode("ACGUACGUNR"), alphabet.encode("ATGTA"), alphabet.encode("")])
    pairs = np.array([[0, 0], [1, 1], [1, 0], [0, 2]])
    for letters in ((None, None), (alphabet.decode_table[queries[0]], None)):
        table, _ = tracing.align_pools(PoolPairs(queries, subjects, pairs, letters), Recurrence(DNA, "global"))
        check(table, queries, subjects, pairs, DNA, letters)
    assert table.identities.tolist()[:2] == [10, 4]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_number_of_threads_counts_the_same(threads):
    generator = np.random.default_rng(3)
    queries = make_pool([random_codes(generator, 900), random_codes(generator, 3)])
    parts = [np.delete(queries[0][:900], generator.integers(0, 900, 40)) for _ in range(3)]
    subjects = make_pool([np.concatenate((part, random_codes(generator, 50))) for part in parts])
    pairs = np.stack((np.arange(700) % 2, np.arange(700) % 3), axis=1)  # enough columns for several threads
    table, _ = tracing.align_pools(
        PoolPairs(queries, subjects, pairs[:6]), Recurrence(Scoring(), "local"), tracing.BatchLimits(threads=threads)
    )
    check(table.take(np.arange(700) % 6), queries, subjects, pairs, Scoring(), threads=threads)


def test_long_runs_of_any_kind():
    query = np.zeros(70_000, dtype=np.uint8)
    queries, subjects = make_pool([query, query[:0]]), make_pool([query[:69_000], query[:12]])
    pairs = np.array([[0, 0], [1, 0], [0, 1]])
    table, _ = tracing.align_pools(PoolPairs(queries, subjects, pairs), Recurrence(Scoring(), "global"))
    assert table.cigar_strings()[:2] == ["1000I69000M", "69000D"]
    check(table, queries, subjects, pairs, Scoring())


@pytest.mark.parametrize("bad", [0, 9, 10, 11, 12, 39])
def test_codes_are_looked_at_where_a_pair_names_them(bad):
    codes = np.zeros(40, dtype=np.uint8)
    codes[bad] = 32
    pool, fine = (codes, np.array([0, 10, 12, 40])), (np.zeros_like(codes), np.array([0, 40]))
    one = np.array([1, 1])
    found = columns.UncountedAlignments(
        one, 0 * one, 0 * one, np.arange(3), one, np.frombuffer(b"MM", dtype=np.uint8)
    )
    recurrence = Recurrence(Scoring(), "local")
    # fewer residues than the pool has, and as many or more
    for places, named in (([0, 0], range(10)), ([0, 1], range(12)), ([2, 2], range(40))):
        for side, pools in enumerate(((pool, fine), (fine, pool))):
            pairs = np.zeros((2, 2), dtype=np.int64)
            pairs[:, side] = places
            batch = PoolPairs(*pools, pairs)
            if bad in named:
                with pytest.raises(ValueError, match="expected codes below 32"):
                    columns.count_pools(found, batch, Scoring().matrix)
                with pytest.raises(ValueError, match="expected codes below 32"):
                    tracing.align_pools(batch, recurrence)
            else:
                assert columns.count_pools(found, batch, Scoring().matrix).identities.tolist() == [1, 1]
                assert tracing.align_pools(batch, recurrence)[1].tolist() == [0, 0]
