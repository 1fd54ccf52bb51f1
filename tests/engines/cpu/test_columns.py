"""Columns of many alignments from the extension against `PairAlignment`: counts, rows, BTOP, with masks and DNA."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, modes_with_ends, random_codes, scorings
from support.samples import random_cases
from swsearch.alignment import PairAlignment
from swsearch.alignment_table import ALIGNMENT_COLUMNS, texts
from swsearch.alphabet import PROTEIN
from swsearch.blocks import masked_codes, shown_letters
from swsearch.engines.cpu import columns, extension, tracing
from swsearch.engines.pools import PoolPairs, pool_of
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix

DNA = Scoring(dna_matrix(), 4, 1)


def expected_rows(table, queries, subjects, pairs, scoring, letters):
    """What `PairAlignment` says of each alignment of a table."""
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
    cut = (texts(row, rows.offsets) for row in (rows.query, rows.middle, rows.subject))
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
        scored.append(pool_of([masked_codes(*each) for each in zip(side, runs, strict=True)]))
        letters.append(
            pool_of([shown_letters(*each) for each in zip(side, runs, strict=True)])[0] if any(runs) else None
        )
    recurrence = Recurrence(scoring, *mode_and_ends)
    table, needed = tracing.align_pools(
        PoolPairs(*scored, pairs, tuple(letters)), recurrence, tracing.Limits(threads=2)
    )
    assert needed.tolist() == [0] * len(pairs)
    check(table, *scored, pairs, scoring, tuple(letters))
    for (q, s), *found in zip(pairs, table.score.tolist(), table.query_start.tolist(), strict=False):
        one, other = ((pool[offsets[k] : offsets[k + 1]]) for k, (pool, offsets) in zip((q, s), scored, strict=True))
        assert tracing.trace(one, other, recurrence)[:2] == tuple(found)


def test_letters_of_dna_that_stand_for_the_same():
    alphabet = DNA.matrix.alphabet
    queries = pool_of([alphabet.encode("ACGTACGTNR"), alphabet.encode("AUGU")])
    subjects = pool_of([alphabet.encode("ACGUACGUNR"), alphabet.encode("ATGTA"), alphabet.encode("")])
    pairs = np.array([[0, 0], [1, 1], [1, 0], [0, 2]])
    for letters in ((None, None), (alphabet.decode_table[queries[0]], None)):
        table, _ = tracing.align_pools(PoolPairs(queries, subjects, pairs, letters), Recurrence(DNA, "global"))
        check(table, queries, subjects, pairs, DNA, letters)
    assert table.identities.tolist()[:2] == [10, 4]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_number_of_threads_counts_the_same(threads):
    generator = np.random.default_rng(3)
    queries = pool_of([random_codes(generator, 900), random_codes(generator, 3)])
    parts = [np.delete(queries[0][:900], generator.integers(0, 900, 40)) for _ in range(3)]
    subjects = pool_of([np.concatenate((part, random_codes(generator, 50))) for part in parts])
    pairs = np.stack((np.arange(700) % 2, np.arange(700) % 3), axis=1)  # enough columns for several threads
    table, _ = tracing.align_pools(
        PoolPairs(queries, subjects, pairs[:6]), Recurrence(Scoring(), "local"), tracing.Limits(threads=threads)
    )
    check(table.take(np.arange(700) % 6), queries, subjects, pairs, Scoring(), threads=threads)


def test_long_runs_of_any_kind():
    query = np.zeros(70_000, dtype=np.uint8)
    queries, subjects = pool_of([query, query[:0]]), pool_of([query[:69_000], query[:12]])
    pairs = np.array([[0, 0], [1, 0], [0, 1]])
    table, _ = tracing.align_pools(PoolPairs(queries, subjects, pairs), Recurrence(Scoring(), "global"))
    assert table.cigar_strings()[:2] == ["1000I69000M", "69000D"]
    check(table, queries, subjects, pairs, Scoring())


def test_a_pair_that_takes_more_memory_is_named():
    long, short = np.zeros(20_000, dtype=np.uint8), np.zeros(10, dtype=np.uint8)
    both = pool_of([short, long])
    pairs = np.array([[0, 0], [1, 1], [0, 0]])
    table, needed = tracing.align_pools(
        PoolPairs(both, both, pairs), Recurrence(Scoring(), "global"), tracing.Limits(100_000)
    )
    assert (needed > 100_000).tolist() == [False, True, False]
    assert table.score.tolist() == [40, 0, 40]
    assert table.cigar_strings() == ["10M", "", "10M"]
    assert tracing.trace(long, long, Recurrence(Scoring(), "global"), int(needed[1]))[0] == 80_000


def test_known_scores_change_nothing():
    generator = np.random.default_rng(5)
    queries, subjects = pool_of([random_codes(generator, 300)]), pool_of([random_codes(generator, 280)] * 3)
    pairs = np.array([[0, 2], [0, 0], [0, 1]])
    recurrence = Recurrence(Scoring(), "local")
    first, _ = tracing.align_pools(PoolPairs(queries, subjects, pairs), recurrence)
    for off in (-5, 0, 5):
        again, _ = tracing.align_pools(PoolPairs(queries, subjects, pairs, known=first.score + off), recurrence)
        assert again.cigar_strings() == first.cigar_strings()
    nothing, needed = tracing.align_pools(PoolPairs(queries, subjects, pairs[:0]), recurrence)
    assert len(nothing) == len(needed) == 0 and nothing.run_offsets.tolist() == [0]
    check(nothing, queries, subjects, pairs[:0], Scoring())


@pytest.mark.parametrize("pairs", [[[0, 1]], [[-1, 0]], [[2, 0]], [[0, 2**62]]])
def test_pairs_of_sequences_that_are_not_there(pairs):
    queries, subjects = pool_of([PROTEIN.encode("MKV"), PROTEIN.encode("MK")]), pool_of([PROTEIN.encode("MKV")])
    with pytest.raises(ValueError, match="expected places of sequences from 0 to"):
        tracing.align_pools(PoolPairs(queries, subjects, np.array(pairs)), Recurrence(Scoring(), "local"))


CODES = np.zeros(40, dtype=np.uint8)
FOUND = columns.FoundPairs(
    np.array([5, 5]),
    np.array([0, 30]),
    np.array([10, 0]),
    np.array([0, 3, 4]),
    np.array([10, 20, 10, 10]),
    np.frombuffer(b"MDIM", dtype=np.uint8),
)
TWO = np.zeros((2, 2), dtype=np.int64)
POOL = (CODES, np.array([0, 40]))
BATCH = PoolPairs(POOL, POOL, TWO)


def test_the_case_that_the_next_ones_break_is_fine():
    table = columns.count_pools(FOUND, BATCH, Scoring().matrix)
    check(table, POOL, POOL, TWO, Scoring())
    assert table.gaps.tolist() == [30, 0]


def moved(array):
    """Return the same items where no item of their size may begin."""
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)
    raw[1:] = array.view(np.uint8).reshape(-1)
    return raw[1:]


WRONG = {
    "codes": {0: CODES + np.uint8(32)},
    "other codes": {1: CODES + np.uint8(32)},
    "letters": {2: CODES[1:]},
    "other letters": {3: CODES[1:]},
    "places": {4: np.array([[0, 40, 0, 40]])},
    "places beyond": {4: np.array([[0, 40, 0, 40], [1, 40, 0, 40]])},
    "places before": {4: np.array([[0, 40, 0, 40], [0, 40, -1, 40]])},
    "places far away": {4: np.array([[0, 40, 0, 40], [2**62, 2**62, 0, 40]])},
    "starts": {5: np.array([0, 10])},
    "half a start": {5: np.array([0, 10, 30])},
    "start before": {5: np.array([[0, 10], [-1, 0]])},
    "start beyond": {5: np.array([[0, 10], [31, 0]])},
    "start far away": {5: np.array([[0, 10], [0, 2**63 - 1]])},
    "moved": {5: moved(np.array([0, 10, 30, 0]))},
    "offsets": {6: np.array([0, 4])},
    "offsets that descend": {6: np.array([0, 5, 4])},
    "offsets from 1": {6: np.array([1, 3, 4])},
    "offsets beyond": {6: np.array([0, 3, 5])},
    "too short a run": {7: np.array([10, 20, 10, 0])},
    "too long a run": {7: np.array([10, 20, 10, 11])},
    "a run below 0": {7: np.array([10, 20, 10, -(2**63)])},
    "a run beyond": {7: np.array([10, 20, 2**63 - 1, 10])},
    "fewer runs": {7: np.array([10, 20, 10])},
    "operations": {8: np.frombuffer(b"MDXM", dtype=np.uint8)},
    "fewer operations": {8: np.frombuffer(b"MDI", dtype=np.uint8)},
    "scores": {9: np.zeros((31, 32), dtype=np.int8)},
    "identities": {10: CODES},
    "encode": {11: CODES},
    "decode": {12: CODES},
    "threads": {13: 0},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_columns_cannot_be_given(wrong):
    common = list(columns._common(FOUND, BATCH, Scoring().matrix, 1))
    for place, value in wrong.items():
        common[place] = value
    module, numbers, offsets = extension.load(), np.zeros(14, dtype=np.int64), np.array([0, 40, 50])
    rows = [np.zeros(50, dtype=np.uint8) for _ in range(3)]
    for call in (
        lambda: module.count(tuple(common), numbers),
        lambda: module.rows(tuple(common), offsets, *rows),
        lambda: module.trace_back_operations(tuple(common), numbers[:2]),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()


@pytest.mark.parametrize("bad", [0, 9, 10, 11, 12, 39])
def test_codes_are_looked_at_where_a_pair_names_them(bad):
    codes = CODES.copy()
    codes[bad] = 32
    pool, fine = (codes, np.array([0, 10, 12, 40])), (CODES, POOL[1])
    one = np.array([1, 1])
    found = columns.FoundPairs(one, 0 * one, 0 * one, np.arange(3), one, FOUND.run_operations[[0, 0]])
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
                assert columns.count_pools(found, batch, Scoring().matrix).identities.tolist() == [
                    1,
                    1,
                ]
                assert tracing.align_pools(batch, recurrence)[1].tolist() == [0, 0]


def test_what_takes_the_result_must_have_its_size():
    common = columns._common(FOUND, BATCH, Scoring().matrix, 1)
    module, row = extension.load(), np.zeros(50, dtype=np.uint8)
    for numbers in (np.zeros(13, dtype=np.int64), np.zeros(15, dtype=np.int64), moved(np.zeros(14, dtype=np.int64))):
        with pytest.raises(ValueError, match="expected room for seven"):
            module.count(common, numbers)
        with pytest.raises(ValueError, match="expected room for a number a pair"):
            module.trace_back_operations(common, numbers)
    for offsets in ([0, 40, 51], [0, 50], [0, 39, 50], [0, 2**62, 50], [-1, 40, 50], [0, 40, 50, 50]):
        with pytest.raises(ValueError, match="expected"):
            module.rows(common, np.array(offsets), row, row.copy(), row.copy())
    with pytest.raises(ValueError, match="three rows of one size"):
        module.rows(common, np.array([0, 40, 50]), row, row.copy(), row[1:])
    with pytest.raises(ValueError, match="expected"):
        columns.rows_of(replace_table(length=np.array([1, 2])), BATCH, Scoring().matrix)


def replace_table(**changed):
    """The table of `FOUND` with other columns."""
    return replace(columns.count_pools(FOUND, BATCH, Scoring().matrix), **changed)
