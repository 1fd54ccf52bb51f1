"""Range of a 16-bit lane, against a plain score matrix of unbounded integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, flat_matrix, modes, scorings
from support.samples import random_cases
from swsearch.alphabet import PAD, PROTEIN
from swsearch.engines.gpu.limits import LANE_MAX, UNCERTAIN, highest_score, lane16
from swsearch.engines.gpu.queries import Part
from swsearch.engines.gpu.tracks import padded_rows
from swsearch.engines.gpu.variants import device_kind
from swsearch.scoring import Scoring

STEEP = flat_matrix(127, -127)
steep_scorings = st.builds(
    Scoring, st.sampled_from([STEEP, flat_matrix(-127, -127), "PAM30"]), st.integers(0, 2_000), st.integers(0, 700)
)


def matrix_values(profile, codes, rows, columns, scoring, mode):
    """Return the least H, the least E or F, and the greatest sum or H of a score matrix with padding.

    Padding rows stand where the kernels have them, padding columns after the subject; scores without bias.
    """
    scores = padded_rows(profile, rows, mode).astype(int)
    padding = len(scores) - len(profile) if mode == "semiglobal" else 0
    letters = [*codes.tolist(), *[PAD] * (-len(codes) % columns)]

    def edge(steps):
        return -scoring.gap_cost(steps) if mode == "global" else 0

    first, extend = scoring.gap_first, scoring.gap_extend
    column = [edge(max(i - padding, 0)) for i in range(len(scores) + 1)]
    gaps = [h - first for h in column]
    lowest, lowest_gap, highest = min(column), min(gaps), 0
    for j, letter in enumerate(letters, 1):
        diagonal, column[0] = column[0], edge(j)
        down = column[0] - first
        lowest, lowest_gap = min(lowest, column[0]), min(lowest_gap, down)
        for i, row in enumerate(scores, 1):
            total = diagonal + int(row[letter])
            value = max(total, gaps[i], down, *([0] if mode == "local" else []))
            diagonal, column[i] = column[i], value
            gaps[i] = max(gaps[i] - extend, value - first)
            down = max(down - extend, value - first)
            lowest, highest = min(lowest, value), max(highest, value, total)
            lowest_gap = min(lowest_gap, gaps[i], down)
    return lowest, lowest_gap, highest


def shape_of(profile, codes, rows, columns):
    return -(-len(profile) // rows) * rows, -(-len(codes) // columns) * columns


@random_cases(150)
@given(
    any_codes(24, 1), any_codes(24, 1), st.one_of(scorings, steep_scorings), modes,
    st.sampled_from([1, 8, 24, 33]), st.sampled_from([1, 8]),
)  # fmt: skip
def test_every_value_fits(query, subject, scoring, mode, rows, columns):
    profile = scoring.rows(query)
    case = (scoring.describe(), mode, PROTEIN.decode(query), PROTEIN.decode(subject), rows, columns)
    shape = shape_of(profile, subject, rows, columns)
    lane = lane16(scoring, mode, profile, *shape)
    lowest, lowest_gap, highest = matrix_values(profile, subject, rows, columns, scoring, mode)
    if lane is None:
        # what is certain before anything is computed is too much: the lowest and the highest value together
        gaps = [scoring.gap_cost(n) for n in shape]
        low = {"local": 0, "global": sum(gaps), "semiglobal": min(gaps)}[mode]
        room = LANE_MAX // 2 if mode == "local" else LANE_MAX - highest_score(profile)
        assert low + scoring.gap_first + max(scoring.matrix.max, 0) > room, case
        return
    assert lowest + lane.bias >= scoring.gap_first, case
    assert lowest_gap + lane.bias >= 0, case
    if mode != "local" or highest < lane.limit:
        assert highest + lane.bias <= LANE_MAX, case
    assert (lane.limit == UNCERTAIN) == (mode != "local"), case


@random_cases(100)
@given(st.lists(any_codes(30), min_size=1, max_size=4), any_codes(24, 1), st.one_of(scorings, steep_scorings), modes)
def test_queries_that_share_a_lane_all_fit_it(queries, subject, scoring, mode):
    part = Part(0, [scoring.rows(query) for query in queries], scoring, mode, device_kind((9, 0)))
    filled = [number for number, query in enumerate(queries) if len(query)]
    rows = max((shape_of(part.profiles[number], subject, 8, 8)[0] for number in filled), default=0)
    columns = shape_of([], subject, 8, 8)[1]
    lane = part.common_lane(filled, rows, columns)
    alone = [part.lane(number, rows, columns) for number in filled]
    case = (scoring.describe(), mode, [PROTEIN.decode(query) for query in queries], PROTEIN.decode(subject))
    if lane is None:
        assert None in alone or len(filled) > 1, case
        return
    for number in filled:
        lowest, lowest_gap, highest = matrix_values(part.profiles[number], subject, 8, 8, scoring, mode)
        assert lowest + lane.bias >= scoring.gap_first, (case, number)
        assert lowest_gap + lane.bias >= 0, (case, number)
        assert highest + lane.bias <= LANE_MAX or highest >= lane.limit, (case, number)


@pytest.mark.parametrize("mode", ["global", "semiglobal"])
@pytest.mark.parametrize("gaps", [(0, 1), (11, 1), (0, 0), (3, 7)], ids=str)
def test_the_bias_is_no_greater_than_it_must_be(mode, gaps):
    # where nothing pairs the lowest value is two gaps, or the cheaper one, and it stands in the last cell
    scoring = Scoring(flat_matrix(-127, -127), *gaps)
    query, subject = np.zeros(16, dtype=np.uint8), np.zeros(8, dtype=np.uint8)
    profile = scoring.rows(query)
    lane = lane16(scoring, mode, profile, 16, 8)
    lowest, _, _ = matrix_values(profile, subject, 8, 8, scoring, mode)
    assert lowest + lane.bias == scoring.gap_first, (lowest, lane)


@pytest.mark.parametrize("gaps", [(0, 0), (11, 1), (3, 2), (500, 500)], ids=str)
@pytest.mark.parametrize("same", [127, 11, 1, 0])
def test_the_local_limit_is_tight(same, gaps):
    scoring = Scoring(flat_matrix(same, -1), *gaps)
    lane = lane16(scoring, "local", scoring.rows(np.zeros(9, dtype=np.uint8)), 1, 1)
    # from the last certain score one more match just fits, from the first uncertain one it does not
    assert lane.limit - 1 + same + lane.bias == LANE_MAX
    assert lane.bias == scoring.gap_first


def test_what_does_not_fit():
    query = np.zeros(100, dtype=np.uint8)

    def lane(mode, gap_open, gap_extend, rows=100, columns=100):
        scoring = Scoring("BLOSUM62", gap_open, gap_extend)
        return lane16(scoring, mode, scoring.rows(query), rows, columns)

    assert lane("local", 10_000, 10_000) is None  # half of a lane would be the bias
    assert lane("local", 10_000, 0) is not None
    assert lane("global", 11, 1) is not None
    assert lane("global", 11, 1, 100, 40_000) is None
    assert lane("semiglobal", 11, 1, 100, 40_000) is not None  # one of two gaps is short
    assert lane("semiglobal", 11, 1, 40_000, 40_000) is None
    assert lane("global", 0, 200) is None
    assert lane("semiglobal", 0, 200) is not None
    assert lane("semiglobal", 0, 330) is None


@given(any_codes(30), st.one_of(scorings, st.just(Scoring(flat_matrix(0, -4), 1, 1))))
def test_the_highest_score_is_that_of_the_best_subject(query, scoring):
    profile = scoring.rows(query)
    best = [int(row[: len(PROTEIN.letters)].max()) for row in scoring.matrix.scores[query]]
    assert highest_score(profile) == sum(max(score, 0) for score in best), scoring.describe()
