"""The compiled extension against the reference: every mode, tile bounds, checkpoints, first passes, threads.

Queries are sequences, and profiles with scores, and some with gap costs, by position.
"""

import os
import signal
import threading
import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import numpy_traceback as traceback
from support.additional_hsps import further_after
from support.cases import any_codes, flat_matrix, modes_with_ends, random_codes, random_profile, scorings
from support.profiles import like_matrix, profiles
from support.samples import random_cases
from swsearch import extension, reference
from swsearch.alphabet import PROTEIN
from swsearch.engines.cpu import tracing
from swsearch.engines.cpu.pairs import align_codes
from swsearch.engines.pools import PoolPairs, make_pool, rows_pool
from swsearch.errors import InputError, MemoryLimitError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, PositionGapCosts, QueryProfile, Scoring, dna_matrix

dna_scorings = st.builds(
    Scoring,
    st.builds(dna_matrix, st.sampled_from([1, 5, 127]), st.sampled_from([-127, -4, -1, 0])),
    st.sampled_from([0, 1, 10, 10_000]),
    st.sampled_from([0, 1, 3, 10_000]),
)
ways = st.fixed_dictionaries(
    {
        "tile": st.sampled_from([0, 1, 2, 3, 5, 16, 33, 256]),
        "beam": st.sampled_from([0, 1, 20, 350]),
        "threads": st.sampled_from([1, 2, 3]),
    }
)


def least_memory(query, subject, tile):
    """Bytes that are needed before anything is kept."""
    tile = tile or 64
    return 20 * (len(query) + len(subject)) + 2 * tile * 32 * -(-tile // 32)


@st.composite
def relatives(draw):
    """Make a sequence and a copy of it with changes: pairs of which most of the matrix can be left out."""
    query = draw(any_codes(60))
    changes = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(0, 3)), max_size=6))
    subject = query.tolist()
    for place, kind, letter in changes:
        at = place % (len(subject) + 1)
        subject[at : at + (kind != 1)] = [letter] if kind < 2 else []
    return query, np.array(subject, dtype=np.uint8)


pairs = st.one_of(st.tuples(any_codes(45), any_codes(45)), relatives())
profile_pairs = st.tuples(profiles(), any_codes(40))
any_scorings = st.one_of(scorings, dna_scorings)


@random_cases(400)
@given(st.one_of(st.tuples(pairs, any_scorings), st.tuples(profile_pairs, scorings)), modes_with_ends, ways)
def test_the_references_alignment_is_found(case, mode_and_ends, way):
    pair, scoring = case
    recurrence = Recurrence(scoring, *mode_and_ends)
    expected = reference.align(*pair, scoring, *mode_and_ends)
    assert tracing.align(*pair, recurrence, **way) == expected
    assert tracing.score(*pair, recurrence, **way) == expected[0]
    assert align_codes(*pair, recurrence, threads=1).recompute_score() == expected[0]


@random_cases(250)
@given(pairs, any_scorings, modes_with_ends, ways, st.sampled_from([1_000, 3_000, 10_000, 40_000]))
def test_memory_changes_nothing(pair, scoring, mode_and_ends, way, memory):
    mode, ends = mode_and_ends
    memory += least_memory(*pair, way["tile"])
    try:
        found = tracing.align(*pair, Recurrence(scoring, mode, ends), memory, **way)
    except MemoryLimitError:
        return
    assert found == reference.align(*pair, scoring, mode, ends)


@pytest.mark.parametrize("instructions", extension.known_instruction_sets())
def test_every_instruction_set_gives_the_same(instructions, monkeypatch):
    monkeypatch.setenv(extension.SIMD_VARIABLE, instructions)
    if instructions not in extension.instruction_sets():
        pytest.skip(f"this processor has no {instructions}")
    generator = np.random.default_rng(3)
    for size in (1, 31, 32, 33, 300, 700):
        query = random_codes(generator, size, 4)
        subject = np.concatenate((query[size // 3 :], random_codes(generator, 20, 4), query[: size // 2]))
        systems = Scoring(), Scoring(flat_matrix(127, -127), 10_000, 100), Scoring(gap_open=0)
        for mode, scoring in product(MODES, systems):
            expected = traceback.trace(query, subject, scoring, mode)
            for each, tile in ((query, 0), *((like_matrix(query, scoring), tile) for tile in (0, 64, 512))):
                found = tracing.align(each, subject, Recurrence(scoring, mode), tile=tile)
                assert found == expected, (size, mode, scoring.describe(), tile)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "scoring", [Scoring(), Scoring(flat_matrix(127, -127), 4_000, 200)], ids=["16 bits", "32 bits"]
)
def test_checkpoints_at_several_levels(mode, scoring):
    generator = np.random.default_rng(11)
    query = random_codes(generator, 1_500, 20)
    subject = np.concatenate((query[100:600], random_codes(generator, 150, 20), query[630:1_490]))
    expected = traceback.trace(query, subject, scoring, mode)
    found = 0
    for memory in (80_000, 160_000, 320_000, 1 << 20):
        budget = memory + least_memory(query, subject, 16)
        for beam in (0, 350):
            try:
                result = tracing.align(
                    query, subject, Recurrence(scoring, mode), budget, tile=16, beam=beam, threads=2
                )
            except MemoryLimitError:
                continue
            assert result == expected, (memory, beam)
            found += 1
    assert found >= 6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("highest", [12, 127], ids=["16 bits", "32 bits"])
def test_checkpoints_and_tiles_of_profiles(mode, highest):
    generator, scoring = np.random.default_rng(6), Scoring()
    profile = random_profile(generator, 900, -highest, highest)
    subject = random_codes(generator, 1_100, 20)
    recurrence = Recurrence(scoring, mode)
    expected = tracing.align(profile, subject, recurrence, tile=64, beam=0)
    if mode != "global":  # before the query the scoring's costs hold
        other = Recurrence(Scoring(gap_open=3), mode)
        gaps = PositionGapCosts.uniform(900, 11, 1)
        assert tracing.align(replace(profile, gaps=gaps), subject, other) == expected  # row by row
    n_found = 0
    for memory in (150_000, 1 << 20, 64 << 20):
        for tile in (16, 0, 256):
            try:
                found = tracing.align(profile, subject, recurrence, memory, tile=tile, threads=2)
            except MemoryLimitError:
                continue
            assert found == expected, (memory, tile)
            n_found += 1
    assert n_found >= 6


@pytest.mark.parametrize("tile", [16, 64])
@pytest.mark.parametrize("shape", [(3_000, 3_000), (300, 4_000), (2_000, 100)])
def test_the_memory_that_the_message_asks_for_is_enough(shape, tile):
    generator = np.random.default_rng(12)
    query, subject = (random_codes(generator, size, 20) for size in shape)
    free = 15  # all four ends
    module, scores = extension.load(), Scoring().matrix.scores.astype(np.int8)
    needed = module.align(query, subject, scores, 11, 11, 1, False, free, True, 1_000, 1, tile, 0, "scalar")
    assert isinstance(needed, int) and needed < 150 * sum(shape) + 50_000
    found = tracing.align(query, subject, Recurrence(Scoring(), "semiglobal"), needed, tile=tile, beam=0)
    assert found == traceback.trace(query, subject, Scoring(), "semiglobal")


def test_too_little_memory_says_so():
    long, short = np.zeros(20_000, dtype=np.uint8), np.zeros(10, dtype=np.uint8)
    several, recurrence = [(short, short), (long, long), (short, short)], Recurrence(Scoring(), "global")
    found = tracing.align_many(several, recurrence, 100_000)
    assert found[0] == found[2] == (40, 0, 0, ((10, "M"),))
    for ask in (lambda: found[1], lambda: tracing.align(long, long, recurrence, 100_000)):
        with pytest.raises(MemoryLimitError, match="subject of 20000 residues takes more memory than the 0 MiB"):
            ask()


def test_a_similar_pair_leaves_most_of_the_matrix_out():
    generator = np.random.default_rng(1)
    query = random_codes(generator, 20_000, 4)
    subject = np.delete(query, generator.integers(0, len(query), 100))
    scoring = Scoring(dna_matrix(), 10, 1)
    whole = tracing._run(query, subject, Recurrence(scoring, "global"), 1 << 28, 2, 0, 0, path=True)
    part = tracing._run(query, subject, Recurrence(scoring, "global"), 1 << 28, 2, 0, tracing.BEAM_WIDTH, path=True)
    assert part[:4] == whole[:4]
    assert part[4] < whole[4] / 5


def test_an_unrelated_pair_is_computed_once_and_a_little():
    generator = np.random.default_rng(2)
    query, subject = random_codes(generator, 6_000, 4), random_codes(generator, 6_000, 4)
    scoring = Scoring(dna_matrix(), 10, 1)
    for mode in MODES:
        found = tracing._run(query, subject, Recurrence(scoring, mode), 1 << 28, 2, 256, 350, path=True)
        assert found[4] < 1.35 * len(query) * len(subject)


def test_scores_beyond_32_bits_are_refused():
    scoring = Scoring(gap_extend=10_000)
    query = PROTEIN.encode("MKV")
    assert tracing.score(query, np.tile(query, 700), Recurrence(scoring, "global")) == -11 - 10_000 * 2_097 + 14
    said = (
        r"a pair of 3 and 27,000 residues with BLOSUM62, .*: scores may reach .*, expected less than 268,435,456; use"
    )
    for call in (tracing.align, tracing.score):
        with pytest.raises(InputError, match=said):
            call(query, np.tile(query, 9_000), Recurrence(scoring, "global"))


@random_cases(150)
@given(
    st.one_of(
        st.tuples(st.lists(pairs, max_size=8), any_scorings),
        st.tuples(st.lists(st.one_of(pairs, profile_pairs), max_size=8), scorings),
    ),
    modes_with_ends, ways, st.integers(-30, 30),
)  # fmt: skip
def test_many_are_the_references_in_order_whatever_is_known(case, mode_and_ends, way, off):
    several, scoring = case
    recurrence = Recurrence(scoring, *mode_and_ends)
    expected = [reference.align(*pair, scoring, *mode_and_ends) for pair in several]
    for known in (None, [one[0] for one in expected], [one[0] + off for one in expected]):
        assert list(tracing.align_many(several, recurrence, 1 << 20, known_scores=known, **way)) == expected, known
    scores = tracing.align_many(several, recurrence, 1 << 20, path=False, **way)
    assert [one[0] for one in scores] == [one[0] for one in expected]
    queries, subjects = [query for query, _ in several], make_pool([subject for _, subject in several])
    rows = rows_pool(queries, scoring)
    offsets = np.cumsum([0, *map(len, queries)])
    places = np.stack((np.arange(len(several)),) * 2, axis=1)
    table, needed = tracing.align_pools(
        PoolPairs((rows.codes, offsets), subjects, places, rows=rows), recurrence, tracing.BatchLimits(threads=1)
    )
    assert not needed.any()
    found = zip(table.score.tolist(), table.query_start.tolist(), table.subject_start.tolist(), strict=True)
    assert [(*each, table.cigar(k)) for k, each in enumerate(found)] == expected


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("mode", MODES)
def test_many_are_found_by_any_number_of_threads(mode, threads):
    generator = np.random.default_rng(8)
    query, empty = random_codes(generator, 600, 20), np.zeros(0, dtype=np.uint8)
    several = [(empty, empty), (query, empty), (empty, query)]
    for n in generator.integers(1, 900, 40).tolist():
        subject = random_codes(generator, n, 20)
        several += [(query, subject), (query[:n], np.concatenate((subject[: n // 3], query[n // 2 :])))]
    expected = [tracing.align(*pair, Recurrence(Scoring(), mode), threads=1) for pair in several]
    known = [one[0] for one in expected]
    assert list(tracing.align_many(several, Recurrence(Scoring(), mode), threads=threads)) == expected
    assert (
        list(tracing.align_many(several, Recurrence(Scoring(), mode), threads=threads, known_scores=known))
        == expected
    )
    assert list(tracing.align_many([], Recurrence(Scoring(), mode), threads=threads)) == []


@pytest.mark.usefixtures("ctrl_c")
def test_control_c_is_answered():
    generator, recurrence = np.random.default_rng(4), Recurrence(Scoring(dna_matrix(), 10, 1), "local")
    short, long = ([random_codes(generator, size, 4) for _ in range(2)] for size in (2_000, 400_000))
    by_rows = random_profile(generator, 300_000, most_cost=12), random_codes(generator, 300_000, 20)
    for call in (
        lambda: tracing.align_many([short] * 20_000, recurrence, threads=1),
        lambda: tracing.align_many([long] * 2, recurrence, threads=3),
        lambda: tracing.align(*long, recurrence),
        lambda: tracing.score(*by_rows, recurrence),
    ):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.perf_counter() - started < 20  # to the end each takes minutes


@random_cases(150)
@given(profile_pairs, scorings)
def test_further_alignments_are_the_references(pair, scoring):
    expected = reference.align_with_hsps(*pair, scoring, 4)
    if expected:
        best = align_codes(*pair, Recurrence(scoring), threads=1)
        found = [best, *further_after(best, 3)]
        assert [(each.score, each.query_start, each.subject_start, each.cigar) for each in found] == expected
        assert [each.recompute_score() for each in found] == [each[0] for each in expected]


def test_gap_costs_by_position_that_are_all_the_same():
    generator = np.random.default_rng(7)
    query = random_codes(generator, 400, 20)
    subject = np.concatenate((query[:100], random_codes(generator, 9), query[130:390]))
    profile = like_matrix(query, Scoring(), PositionGapCosts.uniform(400, 9, 2))
    expected = tracing.align(query, subject, Recurrence(Scoring(gap_open=9, gap_extend=2)))
    assert tracing.align(profile, subject, Recurrence(Scoring(gap_open=9, gap_extend=2))) == expected
    assert tracing.align(profile, subject, Recurrence(Scoring(gap_open=3, gap_extend=1))) == expected


def test_gaps_stand_where_they_cost_least():
    query = np.repeat(np.arange(6, dtype=np.uint8), 4)
    subject = np.delete(query, 9)  # one of four equal residues, so that the costs decide which
    gaps = PositionGapCosts.uniform(24, 11, 1)
    gaps.deletion_open[10] = 2
    found = tracing.align(like_matrix(query, Scoring(), gaps), subject, Recurrence(Scoring(), "global"))
    assert found[3] == ((10, "M"), (1, "I"), (13, "M"))


def test_memory_for_gap_costs_by_position():
    generator = np.random.default_rng(8)
    profile, subject = random_profile(generator, 700, most_cost=12), random_codes(generator, 900, 20)
    recurrence = Recurrence(Scoring(), "semiglobal")
    expected = tracing.align(profile, subject, recurrence)
    with pytest.raises(MemoryLimitError, match="subject of 900 residues takes more memory than the 0 MiB"):
        tracing.align(profile, subject, recurrence, 100_000)
    needed = tracing.align_many([(profile, subject)], recurrence, 100_000)._numbers[0, 4]
    assert tracing.align(profile, subject, recurrence, int(needed)) == expected
    assert needed <= tracing.memory_needed(700, 900, gaps_vary=True) < 2 << 20
    for m, n in ((1, 1), (2, 50_000), (50_000, 2), (7_000, 7_000)):
        codes = np.zeros(m, dtype=np.uint8)
        profile = like_matrix(codes, Scoring(), PositionGapCosts.uniform(m, 2, 1))
        enough = tracing.memory_needed(m, n, gaps_vary=True)
        assert tracing.score(profile, codes[:1].repeat(n), recurrence, enough) == 4 * min(m, n)


def test_bounds_are_those_of_the_profile():
    codes = np.zeros(3, dtype=np.uint8)
    gaps = PositionGapCosts.uniform(3, 0, 10_000)
    with pytest.raises(InputError, match=r"scores may reach .*, expected less than 268,435,456"):
        tracing.align(like_matrix(codes, Scoring(), gaps), np.zeros(27_000, dtype=np.uint8), Recurrence(Scoring()))
    # scores that only a profile has: tiles would overflow if they counted with the matrix's largest
    profile, subject = random_profile(np.random.default_rng(1), 3_000, 127, 127), np.zeros(3_000, dtype=np.uint8)
    for mode in MODES:
        assert tracing.align(profile, subject, Recurrence(Scoring(), mode)) == (381_000, 0, 0, ((3_000, "M"),))


@pytest.mark.parametrize("ends", [Ends(), Ends(False, True, True, False), Ends(False, False, False, False)])
def test_one_side_is_empty(ends):
    recurrence = Recurrence(Scoring(), "semiglobal", ends)
    nothing, subject = np.zeros(0, dtype=np.uint8), np.zeros(3, dtype=np.uint8)
    empty = QueryProfile(
        np.zeros((0, 32), dtype=np.int8), nothing, is_specific=True, gaps=PositionGapCosts.uniform(0, 1, 1)
    )
    profile = random_profile(np.random.default_rng(2), 3, most_cost=20)
    for pair in ((empty, subject), (profile, nothing), (empty, nothing)):
        assert tracing.align(*pair, recurrence) == reference.align(*pair, Scoring(), "semiglobal", ends)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_titin_against_titin_equals_the_numpy_path(mode, shared_data):
    import lzma

    text = lzma.decompress((shared_data / "extremes.fasta.xz").read_bytes()).decode()
    records = [entry.partition("\n") for entry in text.split(">")[1:]]
    titins = {header.split()[0]: letters.replace("\n", "") for header, _, letters in records}
    query, subject = (PROTEIN.encode(titins[name]) for name in ("Q8WZ42", "A2ASS6"))
    assert tracing.align(query, subject, Recurrence(Scoring(), mode), threads=2) == traceback.trace(
        query, subject, Scoring(), mode
    )
