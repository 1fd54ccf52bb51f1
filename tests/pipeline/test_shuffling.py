"""Shuffled copies of sequences: what they hold, and that they follow from sequence and number alone."""

import numpy as np
import pytest

from support.shuffled import shuffled
from swsearch import extension
from swsearch.alphabet import PAD
from swsearch.blocks import LANES
from swsearch.engines.pools import make_pool
from swsearch.errors import InputError
from swsearch.options.kinds import MODES
from swsearch.pipeline import null_models as module
from swsearch.pipeline.null_models import (
    UNCHANGED,
    make_shuffled_chunk,
    score_shuffled,
    scores_with_copies,
    split_by_residues,
)
from swsearch.recurrence import Recurrence
from swsearch.reference import score
from swsearch.scoring import PADDING_SCORE, PositionGapCosts, QueryProfile, Scoring, dna_matrix
from swsearch.statistics.random_panel import WINDOW


def some_sequences(lengths=(7, 350, 20, 1, 41, 64, 200), seed=3):
    random = np.random.default_rng(seed)
    return [random.integers(0, 24, n).astype(np.uint8) for n in lengths]


def rows(chunk, n_copies):
    """Return the copies by sequence and number."""
    found = {}
    for place, subject in enumerate(chunk.subjects.tolist()):
        found[divmod(subject, n_copies)] = chunk.subject(place)
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_copies_are_those_that_python_makes(threads):
    sequences = some_sequences()
    for copies in (range(2, 7), range(UNCHANGED, 6)):
        chunk = make_shuffled_chunk(sequences, copies, threads)
        found = rows(chunk, len(copies))
        assert len(found) == len(copies) * len(sequences)
        for (which, copy), codes in found.items():
            assert codes.tolist() == shuffled(sequences[which], copies[copy], WINDOW).tolist()


def test_windows_keep_their_residues():
    (codes,) = some_sequences((127,))
    for copy in rows(make_shuffled_chunk([codes], range(4), 1), 4).values():
        assert copy.tolist() != codes.tolist()
        for start in range(0, len(codes), WINDOW):
            window = slice(start, start + WINDOW)
            assert sorted(copy[window].tolist()) == sorted(codes[window].tolist())


def test_every_order_of_a_window_is_as_likely():
    codes = np.array([0, 1, 2], dtype=np.uint8)
    n = 60_000
    found = rows(make_shuffled_chunk([codes], range(n), 2), n)
    orders, counts = np.unique([copy.tolist() for copy in found.values()], axis=0, return_counts=True)
    assert len(orders) == 6
    assert np.abs(counts - n / 6).max() < 5 * np.sqrt(n / 6)


def test_a_copy_does_not_depend_on_the_others():
    sequences = some_sequences()
    whole = rows(make_shuffled_chunk(sequences, range(8), 2), 8)
    alone = rows(make_shuffled_chunk(sequences[2:3], range(5, 6), 1), 1)
    assert alone[0, 0].tolist() == whole[2, 5].tolist()


def test_lanes_that_hold_nothing_are_padded():
    chunk = make_shuffled_chunk(some_sequences((9, 3)), range(2), 1)
    block = chunk.residues
    assert block.shape == (16, LANES)
    assert (block[:, 4:] == PAD).all()
    assert (block[9:, :2] == PAD).all()
    assert (block[3:, 2:4] == PAD).all()


def test_no_sequences_and_empty_ones():
    assert make_shuffled_chunk([], range(4), 1).n_subjects == 0
    chunk = make_shuffled_chunk([np.empty(0, dtype=np.uint8)], range(4), 1)
    assert chunk.lengths.tolist() == [0, 0, 0, 0]


def scored(queries, sequences, pairs, copies=range(3), recurrence=None, threads=2):
    recurrence = recurrence or Recurrence(Scoring())
    return score_shuffled(queries, make_pool(sequences), np.array(pairs), copies, recurrence, threads)


@pytest.mark.parametrize("mode", MODES)
def test_copies_score_what_the_reference_says(mode):
    queries = some_sequences((23, 0, 40, 1), seed=4)
    sequences = some_sequences((35, 0, 12, 61), seed=5)
    recurrence = Recurrence(Scoring(), mode)
    pairs = [(m, n) for n in range(4) for m in range(4)]
    found = scored(queries, sequences, pairs, range(UNCHANGED, 2), recurrence)
    for (m, n), row in zip(pairs, found.tolist(), strict=True):
        copies = [shuffled(sequences[n], copy, WINDOW) for copy in range(UNCHANGED, 2)]
        assert row == [score(queries[m], copy, recurrence.scoring, mode) for copy in copies], (m, n)


@pytest.mark.parametrize("mode", MODES)
def test_profiles_score_by_their_own_rows(mode):
    random = np.random.default_rng(10)
    table = np.full((23, 32), PADDING_SCORE, dtype=np.int8)
    table[:, :27] = random.integers(-7, 9, (23, 27))
    (codes,) = some_sequences((23,))
    gaps = PositionGapCosts(*random.integers(1, 12, (4, 23)))
    own = QueryProfile(table, codes, is_specific=True)
    queries = [own, codes, np.empty(0, dtype=np.uint8), QueryProfile(table, codes, is_specific=True, gaps=gaps)]
    sequences = some_sequences((35, 0, 12), seed=5)
    recurrence = Recurrence(Scoring(), mode)
    for group in (queries[:3], queries):
        pairs = [(m, n) for n in range(3) for m in range(len(group))]
        found = scored(group, sequences, pairs, range(2, 4), recurrence)
        for (m, n), row in zip(pairs, found.tolist(), strict=True):
            copies = [shuffled(sequences[n], copy, WINDOW) for copy in range(2, 4)]
            assert row == [score(group[m], copy, recurrence.scoring, mode) for copy in copies], (m, n)
    chunk = make_shuffled_chunk(sequences[::2], range(3), 1)
    found = scores_with_copies(queries[:3], recurrence, chunk, 2)
    assert found[0].tolist() == [
        score(own, shuffled(sequences[n], copy, WINDOW), recurrence.scoring, mode)
        for n in (0, 2)
        for copy in range(3)
    ]


@pytest.fixture(scope="module")
def alike():
    """Sequences of few kinds of residues: copies of theirs score beyond lanes of 8 bits, and many do not."""
    random = np.random.default_rng(6)
    few = [random.choice([5, 11, 17], n).astype(np.uint8) for n in (90, 400, 401, 77, 1500)]
    return [*few, *some_sequences((350, 90, 7, 64, 2000), seed=7)]


@pytest.mark.parametrize("name", extension.instruction_sets())
@pytest.mark.parametrize("mode", MODES)
def test_every_instruction_set_scores_what_the_engine_does(alike, mode, name, monkeypatch):
    recurrence = Recurrence(Scoring(), mode)
    chunk = make_shuffled_chunk(alike, range(4, 11), 2)
    expected = scores_with_copies(alike, recurrence, chunk, 2).reshape(len(alike), len(alike), 7)
    pairs = np.random.default_rng(8).permutation([(m, n) for m in range(len(alike)) for n in range(len(alike))])
    monkeypatch.setenv(extension.SIMD_VARIABLE, name)
    for threads in (1, 3):
        found = scored(alike, alike, pairs, range(4, 11), recurrence, threads)
        assert (found == expected[pairs[:, 0], pairs[:, 1]]).all()
    assert found.max() > 255 or mode != "local"


@pytest.mark.parametrize("mode", MODES)
def test_long_copies_that_threads_share_out_score_the_same(mode):
    random = np.random.default_rng(11)
    low = random.choice([5, 11, 17], 1300).astype(np.uint8)
    queries = [low, *some_sequences((2500, 700, 60), seed=12)]
    sequences = [low[:900], *some_sequences((6000, 3000, 500, 350, 90, 1), seed=13)]
    pairs = [(m, n) for n in range(7) for m in range(4)]
    recurrence = Recurrence(Scoring(), mode)
    alone = scored(queries, sequences, pairs, range(3, 10), recurrence, threads=1)
    for threads in (2, 5, 64):
        assert (scored(queries, sequences, pairs, range(3, 10), recurrence, threads) == alone).all(), threads
    one_query = scored(queries[:1], sequences, [(0, n) for n in range(7)], range(3, 10), recurrence, threads=7)
    assert (one_query == alone[::4]).all()


def test_scores_beyond_16_bits():
    sequence = np.zeros(7000, dtype=np.uint8)
    recurrence = Recurrence(Scoring(dna_matrix(match=10), 20, 2))
    assert scored([sequence], [sequence], [(0, 0)], recurrence=recurrence).tolist() == [[70_000] * 3]


def test_pairs_may_be_named_again_and_be_none():
    queries, sequences = some_sequences((30, 50)), some_sequences((40, 41), seed=9)
    once = scored(queries, sequences, [(0, 1), (1, 0)])
    again = scored(queries, sequences, [(1, 0), (0, 1), (1, 0), (1, 0)] * 40)
    assert again.tolist() == once[[1, 0, 1, 1] * 40].tolist()
    assert scored(queries, sequences, np.empty((0, 2), dtype=np.int64)).shape == (0, 3)
    assert scored([], [], np.empty((0, 2), dtype=np.int64)).shape == (0, 3)


def test_calls_are_cut_and_scores_are_the_same(monkeypatch):
    queries, sequences = some_sequences((30, 50)), some_sequences((40, 0, 41, 90), seed=9)
    pairs = [(m, n) for m in range(2) for n in range(4)]
    expected = scored(queries, sequences, pairs).tolist()
    monkeypatch.setattr(module, "CELLS_OF_CALL", 3000)
    assert scored(queries, sequences, pairs).tolist() == expected


def test_values_beyond_32_bits_are_refused():
    # no memory is taken for what is only as long as this
    rows = np.array([10, 1000])
    huge = Recurrence(Scoring(gap_open=10_000, gap_extend=10_000), "global")
    with pytest.raises(InputError, match="32"):
        module._check_reach(rows, np.array([300_000, 300_000]), huge)
    module._check_reach(rows, np.array([1000, 1000]), huge)


def test_cutting_into_runs():
    assert [(part.start, part.stop) for part in split_by_residues(np.array([3, 3, 9, 1, 0, 0]), 6)] == [
        (0, 2),
        (2, 3),
        (3, 6),
    ]
    assert list(split_by_residues(np.empty(0, dtype=np.int64), 6)) == []
    assert len(list(split_by_residues(np.full(7, 10), 1))) == 7
