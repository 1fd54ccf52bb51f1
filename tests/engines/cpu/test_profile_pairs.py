"""Profiles aligned with sequences by the extension: the reference's alignments, whatever way they are found."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, modes_with_ends, random_codes, scorings
from support.further import further_after
from support.profiles import like_matrix, profiles, random_rows
from support.samples import random_cases
from swsearch import reference
from swsearch.engines.cpu import extension, tracing
from swsearch.engines.cpu.pairs import align_codes
from swsearch.engines.pools import PoolPairs, pool_of, rows_pool
from swsearch.errors import InputError, MemoryLimitError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, PositionGaps, QueryRows, Scoring

ways = st.fixed_dictionaries(
    {
        "tile": st.sampled_from([0, 1, 2, 3, 5, 16, 33, 256]),
        "beam": st.sampled_from([0, 1, 20, 350]),
        "threads": st.sampled_from([1, 2, 3]),
    }
)
pairs = st.tuples(profiles(), any_codes(40))


def numbers(alignments):
    return [(each.score, each.query_start, each.subject_start, each.cigar) for each in alignments]


@random_cases(400)
@given(pairs, scorings, modes_with_ends, ways)
def test_the_references_alignment_is_found(pair, scoring, mode_and_ends, way):
    recurrence = Recurrence(scoring, *mode_and_ends)
    expected = reference.align(*pair, scoring, *mode_and_ends)
    assert tracing.trace(*pair, recurrence, **way) == expected
    assert tracing.score(*pair, recurrence, **way) == expected[0]
    assert align_codes(*pair, recurrence, threads=1).rescored() == expected[0]


@random_cases(200)
@given(st.lists(st.one_of(pairs, st.tuples(any_codes(40), any_codes(40))), max_size=6), scorings, modes_with_ends)
def test_many_pairs_of_profiles_and_sequences(several, scoring, mode_and_ends):
    recurrence = Recurrence(scoring, *mode_and_ends)
    expected = [reference.align(*pair, scoring, *mode_and_ends) for pair in several]
    for known in (None, [one[0] for one in expected], [one[0] + 3 for one in expected]):
        assert list(tracing.find_many(several, recurrence, 1 << 20, 2, known=known)) == expected
    queries, subjects = [query for query, _ in several], [subject for _, subject in several]
    rows = rows_pool(queries, scoring)
    pools = (rows.codes, pool_of([np.zeros(len(query), dtype=np.uint8) for query in queries])[1]), pool_of(subjects)
    places = np.stack((np.arange(len(several)),) * 2, axis=1)
    table, needed = tracing.align_pools(PoolPairs(*pools, places, rows=rows), recurrence, tracing.Limits(threads=1))
    assert not needed.any()
    found = zip(table.score.tolist(), table.query_start.tolist(), table.subject_start.tolist(), strict=True)
    assert [(*each, table.cigar(k)) for k, each in enumerate(found)] == expected


@random_cases(150)
@given(pairs, scorings)
def test_further_alignments_are_the_references(pair, scoring):
    expected = reference.align_with_further(*pair, scoring, 4)
    if expected:
        best = align_codes(*pair, Recurrence(scoring), threads=1)
        found = [best, *further_after(best, 3)]
        assert numbers(found) == expected
        assert [each.rescored() for each in found] == [each[0] for each in expected]


@pytest.mark.parametrize("instructions", extension.known())
def test_a_profile_like_the_matrix_is_aligned_as_its_sequence(instructions, monkeypatch):
    monkeypatch.setenv(extension.SWITCH, instructions)
    if instructions not in extension.instruction_sets():
        pytest.skip(f"this processor has no {instructions}")
    generator, scoring = np.random.default_rng(5), Scoring()
    for size in (31, 32, 33, 300, 700):
        query = random_codes(generator, size, 4)
        subject = np.concatenate((query[size // 3 :], random_codes(generator, 20, 4), query[: size // 2]))
        profile = like_matrix(query, scoring)
        for mode in MODES:
            recurrence = Recurrence(scoring, mode)
            expected = tracing.trace(query, subject, recurrence, threads=1)
            for tile in (0, 64, 512):
                assert tracing.trace(profile, subject, recurrence, threads=1, tile=tile) == expected, (size, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("highest", [12, 127], ids=["16 bits", "32 bits"])
def test_checkpoints_and_tiles_change_nothing(mode, highest):
    generator, scoring = np.random.default_rng(6), Scoring()
    profile = random_rows(generator, 900, -highest, highest)
    subject = random_codes(generator, 1_100, 20)
    recurrence = Recurrence(scoring, mode)
    expected = tracing.trace(profile, subject, recurrence, tile=64, beam=0)
    if mode != "global":  # before the query the scoring's costs hold
        other = Recurrence(Scoring(gap_open=3), mode)
        gaps = PositionGaps.uniform(900, 11, 1)
        assert tracing.trace(replace(profile, gaps=gaps), subject, other) == expected  # row by row
    n_found = 0
    for memory in (150_000, 1 << 20, 64 << 20):
        for tile in (16, 0, 256):
            try:
                found = tracing.trace(profile, subject, recurrence, memory, tile=tile, threads=2)
            except MemoryLimitError:
                continue
            assert found == expected, (memory, tile)
            n_found += 1
    assert n_found >= 6


def test_gap_costs_by_position_that_are_all_the_same():
    generator = np.random.default_rng(7)
    query = random_codes(generator, 400, 20)
    subject = np.concatenate((query[:100], random_codes(generator, 9), query[130:390]))
    profile = like_matrix(query, Scoring(), PositionGaps.uniform(400, 9, 2))
    expected = tracing.trace(query, subject, Recurrence(Scoring(gap_open=9, gap_extend=2)))
    assert tracing.trace(profile, subject, Recurrence(Scoring(gap_open=9, gap_extend=2))) == expected
    assert tracing.trace(profile, subject, Recurrence(Scoring(gap_open=3, gap_extend=1))) == expected


def test_gaps_stand_where_they_cost_least():
    query = np.repeat(np.arange(6, dtype=np.uint8), 4)
    subject = np.delete(query, 9)  # one of four equal residues, so that the costs decide which
    gaps = PositionGaps.uniform(24, 11, 1)
    gaps.deletion_open[10] = 2
    found = tracing.trace(like_matrix(query, Scoring(), gaps), subject, Recurrence(Scoring(), "global"))
    assert found[3] == ((10, "M"), (1, "I"), (13, "M"))


def test_memory_for_gap_costs_by_position():
    generator = np.random.default_rng(8)
    profile, subject = random_rows(generator, 700, most_cost=12), random_codes(generator, 900, 20)
    recurrence = Recurrence(Scoring(), "semiglobal")
    expected = tracing.trace(profile, subject, recurrence)
    with pytest.raises(MemoryLimitError, match="subject of 900 residues takes more memory than the 0 MiB"):
        tracing.trace(profile, subject, recurrence, 100_000)
    needed = tracing.find_many([(profile, subject)], recurrence, 100_000)._numbers[0, 4]
    assert tracing.trace(profile, subject, recurrence, int(needed)) == expected
    assert needed <= tracing.enough_memory(700, 900, gaps_vary=True) < 2 << 20
    for m, n in ((1, 1), (2, 50_000), (50_000, 2), (7_000, 7_000)):
        codes = np.zeros(m, dtype=np.uint8)
        profile = like_matrix(codes, Scoring(), PositionGaps.uniform(m, 2, 1))
        enough = tracing.enough_memory(m, n, gaps_vary=True)
        assert tracing.score(profile, codes[:1].repeat(n), recurrence, enough) == 4 * min(m, n)


def test_bounds_are_those_of_the_profile():
    codes = np.zeros(3, dtype=np.uint8)
    gaps = PositionGaps.uniform(3, 0, 10_000)
    with pytest.raises(InputError, match=r"scores may reach .*, expected less than 268,435,456"):
        tracing.trace(like_matrix(codes, Scoring(), gaps), np.zeros(27_000, dtype=np.uint8), Recurrence(Scoring()))
    # scores that only a profile has: tiles would overflow if they counted with the matrix's largest
    profile, subject = random_rows(np.random.default_rng(1), 3_000, 127, 127), np.zeros(3_000, dtype=np.uint8)
    for mode in MODES:
        assert tracing.trace(profile, subject, Recurrence(Scoring(), mode)) == (381_000, 0, 0, ((3_000, "M"),))


NO_ROWS, NO_GAPS = np.zeros((0, 32), dtype=np.int8), np.zeros((0, 4), dtype=np.int16)
ROWS, GAPS = np.ones((40, 32), dtype=np.int8), np.ones((40, 4), dtype=np.int16)


@pytest.mark.parametrize(
    "own",
    [
        (ROWS[:39], NO_GAPS),
        (ROWS + 1, NO_GAPS),
        (NO_ROWS, GAPS),
        (ROWS, GAPS[:39]),
        (ROWS, -GAPS),
        (ROWS, GAPS[:39].tobytes() + b"1234567"),
    ],
)
def test_what_the_extension_refuses(own):
    codes, table, none = np.zeros(40, dtype=np.uint8), np.eye(32, dtype=np.int8), np.zeros(0, dtype=np.int64)
    rest = (1, 11, 1, True, 15, True, 1 << 20, 1, 0, 0, "scalar")
    with pytest.raises(ValueError, match="expected 32 scores and four costs for each residue"):
        extension.load().align(codes, codes, table, *rest, *own)
    with pytest.raises(ValueError, match="expected 32 scores and four costs for each residue"):
        extension.load().align_many(codes, codes, np.array([0, 40, 0, 40]), none, table, *rest, *own)
    if int(np.frombuffer(own[0], dtype=np.int8).max(initial=0)) < 2:  # it needs no bound of scores
        with pytest.raises(ValueError, match="expected 32 scores and four costs for each residue"):
            extension.load().align_further(codes, codes, table, none, 11, 1, 1, 3, *own)


def test_costs_that_long_sequences_make_too_large():
    codes = np.zeros(40_000, dtype=np.uint8)
    rows, gaps = np.ones((40_000, 32), dtype=np.int8), np.full((40_000, 4), 32_000, dtype=np.int16)
    table = np.eye(32, dtype=np.int8)
    with pytest.raises(ValueError, match="whose scores are within"):
        extension.load().align(codes, codes, table, 1, 11, 1, False, 0, True, 1, 1, 0, 0, "scalar", rows, gaps)


def test_rows_stand_beside_their_pool():
    queries, subjects = pool_of([np.zeros(4, dtype=np.uint8)]), pool_of([np.zeros(2, dtype=np.uint8)])
    rows = random_rows(np.random.default_rng(1), 3)
    with pytest.raises(ValueError, match="expected 4 rows, one for each residue of the queries; got 3"):
        tracing.align_pools(PoolPairs(queries, subjects, np.array([[0, 0]]), rows=rows), Recurrence(Scoring()))


@pytest.mark.usefixtures("ctrl_c")
def test_control_c_ends_rows():
    generator = np.random.default_rng(9)
    profile = random_rows(generator, 60_000, most_cost=12)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        tracing.score(profile, random_codes(generator, 60_000, 20), Recurrence(Scoring()))


@pytest.mark.parametrize("ends", [Ends(), Ends(False, True, True, False), Ends(False, False, False, False)])
def test_one_side_is_empty(ends):
    recurrence = Recurrence(Scoring(), "semiglobal", ends)
    nothing, subject = np.zeros(0, dtype=np.uint8), np.zeros(3, dtype=np.uint8)
    empty = QueryRows(np.zeros((0, 32), dtype=np.int8), nothing, is_specific=True, gaps=PositionGaps.uniform(0, 1, 1))
    profile = random_rows(np.random.default_rng(2), 3, most_cost=20)
    for pair in ((empty, subject), (profile, nothing), (empty, nothing)):
        assert tracing.trace(*pair, recurrence) == reference.align(*pair, Scoring(), "semiglobal", ends)
