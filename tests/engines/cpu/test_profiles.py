"""Queries with scores and gap costs by position: the CPU engine equals the reference with every instruction set."""

import numpy as np
import pytest

from support.cases import N_LETTERS, random_codes, random_profile, scores_in_order
from support.profiles import like_matrix
from support.samples import sample
from swsearch import extension, reference
from swsearch.alphabet import N_CODES
from swsearch.engines.cpu.engine import LANE_LAYOUTS, CpuEngine
from swsearch.errors import InputError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring

SCORING = Scoring()
EVERY_MODE = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(params=extension.instruction_sets())
def engine(request, monkeypatch):
    """The CPU engine, with each instruction set."""
    monkeypatch.setenv(extension.SIMD_VARIABLE, request.param)
    return CpuEngine(2)


def scored(engine, queries, subjects, mode="local"):
    return scores_in_order(engine, queries, subjects, Recurrence(SCORING, mode))


def check(engine, queries, subjects, mode, ways=LANE_LAYOUTS):
    expected = [[reference.score(query, subject, SCORING, mode) for subject in subjects] for query in queries]
    for engine.lane_layout in ways:
        assert scored(engine, queries, subjects, mode).tolist() == expected, (
            engine.description,
            engine.lane_layout,
            mode,
        )


def fitting(rows, generator, n):
    """Make a subject of good letters of some rows, with a gap of either kind."""
    best = rows.scores[:, :N_LETTERS].argmax(axis=1).astype(np.uint8)
    begin = int(generator.integers(0, max(len(best) - n, 1)))
    part = best[begin : begin + n]
    return np.concatenate([part[: n // 3], random_codes(generator, 2), part[n // 3 : n // 2], part[n // 2 + 3 :]])


@EVERY_MODE
@pytest.mark.parametrize(
    ("lengths", "low", "high"),
    [((1, 2, 17, 33), -9, 12), *(((3, 20), *limits) for limits in ((-127, 127), (-127, -1), (-40, 60), (120, 127)))],
)
def test_profiles_score_as_the_reference_has_it(engine, mode, lengths, low, high):
    generator = np.random.default_rng(high - low)
    queries = [random_profile(generator, n, low, high) for n in lengths]
    subjects = [random_codes(generator, n) for n in (0, 1, 9, 19)] + [fitting(queries[-1], generator, 24)]
    check(engine, queries, subjects, mode)


def test_lanes_that_saturate(engine):
    """Every score around what lanes of 8 and of 16 bits hold."""
    rows = np.full((800, N_CODES), -20, dtype=np.int8)
    rows[:, 0] = 1
    cases = [(12, (17, 18, 19, 20), range(12)), (127, (257, 258, 515, 516), range(0, 130, 8))]
    for best, counts, more in cases:
        rows[:, 1] = best
        query = QueryProfile(rows.copy(), np.zeros(800, dtype=np.uint8), is_specific=True)
        assert engine.prepare([query], Recurrence(SCORING)).handle.queries.recurrence.scoring.min_score == -20
        subjects = [np.repeat(np.array([1, 0], dtype=np.uint8), (n, k)) for n in counts for k in more]
        for engine.lane_layout in LANE_LAYOUTS:
            assert scored(engine, [query], subjects)[0].tolist() == [best * n + k for n in counts for k in more]


@EVERY_MODE
def test_profiles_of_the_matrix_score_as_sequences_do(engine, mode):
    """Longer than a strip, and many short ones in one strip; long subjects, blocks of many, and empty ones."""
    generator = np.random.default_rng(6)
    codes = [random_codes(generator, n) for n in (2, 0, 2100, 60, 31)]
    subjects = [random_codes(generator, n) for n in (0, 1, 40, 150, 600, *generator.integers(1, 90, 66))]
    subjects += [codes[2][1000:1100], codes[2][2040:2070]]
    expected = scored(engine, codes, subjects, mode)
    alike = [like_matrix(each, SCORING) for each in codes]
    mixed = [alike[k] if k % 2 else each for k, each in enumerate(codes)]
    for engine.lane_layout in LANE_LAYOUTS:
        assert (scored(engine, alike, subjects, mode) == expected).all()
        assert (scored(engine, mixed, subjects, mode) == expected).all()
    costs = [like_matrix(each, SCORING, PositionGapCosts.uniform(len(each), 11, 1)) for each in codes]
    assert (scored(engine, costs, subjects, mode) == expected).all()


@EVERY_MODE
def test_a_group_may_be_mixed(engine, mode):
    generator = np.random.default_rng(7)
    queries = [random_profile(generator, 15, -30, 40), random_profile(generator, 0)]
    queries += [random_profile(generator, 11, most_cost=14)]
    subjects = [random_codes(generator, n) for n in (14, 0, 9)] + [fitting(queries[0], generator, 14)]
    check(engine, [random_codes(generator, 12), *queries], subjects, mode)


@EVERY_MODE
@pytest.mark.parametrize("highest", sample([0, 3, 14, 60, 3000, 10_000], lambda highest: highest in (14, 3000)))
def test_gap_costs_by_position(engine, mode, highest):
    generator = np.random.default_rng(highest)
    queries = [random_profile(generator, n, -6, 9, most_cost=highest) for n in (1, 9, 34)]
    subjects = [random_codes(generator, n) for n in (0, 1, 12)]
    subjects += [fitting(queries[2], generator, n) for n in (20, 30)]
    check(engine, queries, subjects, mode, [engine.lane_layout])
    # rows in several strips, of which the lower ones pay for all rows above them
    query = random_profile(generator, 1200, -6, 6, most_cost=9)
    check(engine, [query], [fitting(query, generator, 12), random_codes(generator, 3)], mode, [engine.lane_layout])


def test_what_32_bits_might_not_hold_is_refused():
    codes = np.zeros(110_000, dtype=np.uint8)
    costly = like_matrix(codes, SCORING, PositionGapCosts.uniform(len(codes), 10_000, 10_000))
    Recurrence(SCORING, "global").lane_bits(len(codes), len(codes))
    with pytest.raises(InputError, match="more than 32 bits"):
        scored(CpuEngine(1), [costly], [codes], "global")
