"""One suite for every engine: each must equal the reference, whatever the case."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, draw, flat_matrix, make_chunk, modes, random_codes, scores_in_order, scorings
from support.samples import random_cases, sample
from swsearch import extension, reference
from swsearch.alphabet import PROTEIN
from swsearch.engines.base import HitThresholds
from swsearch.engines.cpu.engine import LANE_LAYOUTS, CpuEngine
from swsearch.engines.cpu.queries import longest_subject
from swsearch.engines.reference import ReferenceEngine
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import LANE_BITS, Ends, Scoring, lane_limits, matrix_from_text

NO_ROWS = np.empty(0, dtype=np.int8)
TRYPTOPHAN = PROTEIN.letters.index("W")


def cpu_engine(instructions, threads=None):
    """Make a CPU engine that uses an instruction set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(extension.SIMD_VARIABLE, instructions)
        return CpuEngine(threads)


WIDEST = extension.instruction_sets()[0]


@pytest.fixture(
    scope="module",
    params=[
        *((name, "chosen") for name in extension.instruction_sets()),
        *((WIDEST, way) for way in LANE_LAYOUTS[1:]),
    ],
)
def cpu(request):
    """The CPU engine, with each instruction set of this machine, and the widest with each way of using its lanes.

    All sets in all ways are in `every_cpu` and, without Python, in tests/cpu/search.cpp.
    """
    with cpu_engine(request.param[0], 2) as made:
        made.lane_layout = request.param[1]
        yield made


@pytest.fixture(scope="module")
def every_cpu():
    """All of these at once."""
    made = [cpu_engine(name, 2) for name in extension.instruction_sets() for _ in LANE_LAYOUTS]
    for engine, way in zip(made, len(extension.instruction_sets()) * LANE_LAYOUTS, strict=True):
        engine.lane_layout = way
    return made


@pytest.fixture(scope="module", params=[*extension.instruction_sets(), "reference"])
def engine(request):
    """Every engine."""
    with ReferenceEngine() if request.param == "reference" else cpu_engine(request.param) as made:
        yield made


def scores_of(engine, queries, subjects, scoring, mode):
    return scores_in_order(engine, queries, subjects, Recurrence(scoring, mode))


@lru_cache(maxsize=100_000)
def reference_score(query, subject, scoring, content, mode):
    """Score bytes of codes; every engine is compared with the same few pairs, and the reference is slow."""
    del content  # two matrices may have one name; their scores tell them apart
    codes = (np.frombuffer(each, dtype=np.uint8) for each in (query, subject))
    return reference.score(*codes, scoring, mode)


def expected_score(query, subject, scoring, mode):
    return reference_score(query.tobytes(), subject.tobytes(), scoring, scoring.matrix.scores.tobytes(), mode)


def check(engine, queries, subjects, scoring, mode):
    got = scores_of(engine, queries, subjects, scoring, mode)
    for q, query in enumerate(queries):
        for s, subject in enumerate(subjects):
            expected = expected_score(query, subject, scoring, mode)
            case = (engine.description, scoring.describe(), mode, PROTEIN.decode(query), PROTEIN.decode(subject))
            assert got[q, s] == expected, case


@random_cases(150)
@given(
    st.lists(any_codes(40), min_size=1, max_size=3), st.lists(any_codes(40), min_size=1, max_size=6), scorings, modes
)
def test_the_cpu_engine_equals_the_reference(every_cpu, queries, subjects, scoring, mode):
    for cpu in every_cpu:
        check(cpu, queries, subjects, scoring, mode)


@pytest.mark.parametrize("mode", MODES)
def test_lengths_around_lane_and_block_bounds(engine, mode):
    bounds = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33]
    check(engine, draw(64, bounds), draw(65, bounds), Scoring(), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 63, 64, 65, 129])
def test_any_number_of_subjects(engine, mode, count):
    generator = np.random.default_rng(count)
    subjects = [random_codes(generator, int(n), 20) for n in generator.integers(0, 12, count)]
    check(engine, [random_codes(generator, 9, 20)], subjects, Scoring(), mode)


@pytest.mark.parametrize(("gap_open", "gap_extend"), sample([(11, 1), (0, 5), (40, 3)], lambda gaps: gaps == (11, 1)))
@pytest.mark.parametrize("bits", [8, 16])
def test_saturation_at_a_lanes_limit_and_beside_it(cpu, bits, gap_open, gap_extend):
    # tryptophans, 11 each, and up to 10 valines, 4 each, reach every score near what a lane of either sign holds
    scoring = Scoring("BLOSUM62", gap_open, gap_extend)
    low, high = lane_limits(bits)
    limits = (high, high - low - scoring.gap_first - scoring.gap_extend, high - low)
    scores = [limit + k for limit in limits for k in (range(-14, 15) if bits == 8 else range(-3, 4))]
    valines = [next(k for k in range(11) if (score - 4 * k) % 11 == 0) for score in scores]
    sequences = [
        PROTEIN.encode("W" * ((score - 4 * k) // 11) + "V" * k) for score, k in zip(scores, valines, strict=True)
    ]
    query = PROTEIN.encode("W" * (max(scores) // 11 + 1) + "V" * 10)
    assert scores_of(cpu, [query], sequences, scoring, "local")[0].tolist() == scores


def in_lanes_of(bits, cpu, query, chunk, scoring, mode):
    """Let the extension score one query in lanes of one width alone; return the scores and what it flags."""
    values, flags = np.zeros((1, chunk.n_subjects), dtype=np.int32), np.zeros((1, chunk.n_subjects), dtype=np.uint8)
    longest = np.array([0 if bits == 32 else 1 << 20], dtype=np.int32)  # whatever it scores
    extension.load().search(
        query, np.array([0, len(query)]), longest, NO_ROWS, NO_ROWS, chunk.residues, chunk.column_offsets,
        chunk.lengths, np.zeros(0, dtype=np.int64), False, scoring.matrix.scores.astype(np.int8), scoring.gap_first,
        scoring.gap_extend, scoring.gap_first, scoring.gap_extend,
        ("local", "global", "semiglobal").index(mode), bits, bits, cpu.threads,
        LANE_LAYOUTS.index(cpu.lane_layout), cpu.instructions, None, values, flags,
    )  # fmt: skip
    return values[0], flags[0] != 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", sample([512, 1_024, 2_048], lambda rows: rows == 1_024))
def test_queries_around_the_bounds_of_a_strip(cpu, mode, rows):
    # strips have 2,016 rows in lanes of 8 bits, 1,008 in 16 and 504 in 32
    generator = np.random.default_rng(rows)
    subjects = [random_codes(generator, n, 20) for n in (1, 7, 8, 9, 12)]
    for length in (rows - 1, rows, rows + 1, 2 * rows + 1):
        query = random_codes(generator, length, 20)
        query[rows - 5 : rows - 1] = subjects[-1][:4]  # a good alignment across the bound
        query[rows - 1 : rows + 7] = subjects[-1][4:][: len(query[rows - 1 : rows + 7])]
        expected = [expected_score(query, subject, Scoring(), mode) for subject in subjects]
        chunk = make_chunk(subjects)
        ordered = [expected[subject] for subject in chunk.subjects]
        for bits in LANE_BITS if mode == "local" else (16, 32):
            values, flags = in_lanes_of(bits, cpu, query, chunk, Scoring(), mode)
            if mode == "local" or bits == 32 or longest_subject(length, Recurrence(Scoring(), mode), bits) >= 12:
                assert not flags.any()
                assert values.tolist() == ordered, (length, bits)


@pytest.mark.parametrize("mode", MODES)
def test_many_short_queries_with_long_and_empty_ones_among_them(cpu, mode):
    generator = np.random.default_rng(3)
    queries = [random_codes(generator, int(n), 20) for n in generator.integers(0, 12, 40)]
    queries.insert(20, random_codes(generator, 1_500, 20))
    subjects = [random_codes(generator, int(n), 20) for n in generator.integers(0, 30, 12)]
    check(cpu, queries, subjects, Scoring(), mode)


def test_scores_beyond_16_bits(cpu):
    # a homopolymer of 7,000 tryptophans scores 77,000 against itself
    query = np.full(7_000, TRYPTOPHAN, dtype=np.uint8)
    scoring = Scoring()
    for mode in MODES:
        got = scores_of(cpu, [query], [query, query[:100]], scoring, mode)[0]
        tail = scoring.gap_cost(6_900) if mode == "global" else 0
        assert got.tolist() == [77_000, 1_100 - tail], mode


def test_every_letter_against_every_letter(engine):
    scoring = Scoring()
    letters = [np.array([code], dtype=np.uint8) for code in range(len(PROTEIN.letters))]
    n = len(letters)
    got = scores_of(engine, letters, letters, scoring, "global")
    expected = np.maximum(scoring.matrix.scores[:n, :n], -2 * scoring.gap_first)
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("gaps", [(0, 0), (0, 1), (0, 5), (1, 0), (100, 0), (10_000, 10_000)])
@pytest.mark.parametrize("mode", MODES)
def test_gap_costs_at_their_extremes(cpu, mode, gaps):
    queries, subjects = ([codes for k in (2, 20) for codes in draw(k, n, k)] for n in ([30], [1, 20, 37]))
    check(cpu, queries, subjects, Scoring("BLOSUM62", *gaps), mode)


@pytest.mark.parametrize("mode", MODES)
def test_threads_and_grouping_do_not_change_scores(cpu, mode):
    generator = np.random.default_rng(11)
    queries = [random_codes(generator, n, 20) for n in (40, 150, 90, 700)]
    subjects = [random_codes(generator, int(n), 20) for n in generator.integers(0, 200, 300)]
    subjects += [queries[3], queries[3][:600]]  # they saturate 8 bits
    with cpu_engine("scalar", 1) as one:
        expected = scores_of(one, queries, subjects, Scoring(), mode)
    for threads in (1, 2, 5, 200):
        with cpu_engine(cpu.instructions, threads) as several:
            several.lane_layout = cpu.lane_layout
            assert np.array_equal(scores_of(several, queries, subjects, Scoring(), mode), expected)
    each = [scores_of(cpu, [query], subjects, Scoring(), mode)[0] for query in queries]
    assert np.array_equal(np.array(each), expected)


def test_a_matrix_with_scores_of_its_own_for_every_letter(cpu):
    text = "   " + " ".join(PROTEIN.letters) + "\n"
    for k, a in enumerate(PROTEIN.letters):
        text += a + " " + " ".join(str(9 + k if a == b else k - 29) for b in PROTEIN.letters) + "\n"
    scoring = Scoring(matrix_from_text(text, "lopsided", PROTEIN))  # not symmetric
    sequences = draw(27, [20] * 30, len(PROTEIN.letters))
    for mode in MODES:
        check(cpu, sequences[:2], sequences, scoring, mode)


@pytest.mark.parametrize("entry", [62, 63, 64, 127])
@pytest.mark.parametrize("mode", MODES)
def test_the_largest_matrix_entries(cpu, mode, entry):
    sequences = draw(entry, [20] * 20, 3)
    for gaps in ((0, 1), (0, 62), (60, 1)):
        check(cpu, sequences[:2], sequences, Scoring(flat_matrix(entry, -entry), *gaps), mode)


@pytest.mark.parametrize("mode", ["global", "semiglobal"])
def test_the_longest_subject_of_a_lane(mode):
    for scoring in (Scoring(), Scoring("PAM30", 40, 9)):
        for length in (1, 300, 20_000):
            longest = longest_subject(length, Recurrence(scoring, mode), 16)
            fitting = [n for n in (1, longest, longest + 1) if n and scoring.lane_bits(mode, length, n) <= 16]
            assert fitting == [n for n in (1, longest) if longest], (length, longest)


def test_values_beyond_32_bits_are_refused(cpu):
    scoring = Scoring("BLOSUM62", 0, 10_000)
    chunk = make_chunk([np.zeros(250_000, dtype=np.uint8)])
    group = cpu.prepare([scoring.rows(np.zeros(9, dtype=np.uint8))], Recurrence(scoring, "global"))
    with pytest.raises(InputError, match=r"scores of 9 x 250000 residues may reach .*, more than 32 bits"):
        cpu.score(group, cpu.load(chunk))


def test_ends_that_no_search_leaves_free_are_refused(engine):
    some = Recurrence(Scoring(), "semiglobal", Ends.parse("query"))
    with pytest.raises(
        OptionError, match="free_ends: got 'query-start, query-end', expected all four ends free in a"
    ):
        engine.prepare([Scoring().rows(np.zeros(3, dtype=np.uint8))], some)


def test_what_progress_raises_ends_the_search(cpu):
    query, *subjects = draw(5, [3_000] * 513)
    seen = []

    def progress(cells):
        seen.append(cells)
        raise ZeroDivisionError

    group = cpu.prepare([Scoring().rows(query)] * 4, Recurrence(Scoring(), "local"))
    with pytest.raises(ZeroDivisionError):
        cpu.score(group, cpu.load(make_chunk(subjects)), progress)
    assert len(seen) == 1
    assert seen[0] < 4 * 3_000 * 3_000 * 512


def test_progress_counts_every_cell(engine):
    subjects = [random_codes(np.random.default_rng(2), n, 20) for n in (5, 6, 7)]
    chunk = make_chunk(subjects)
    seen: list[int] = []
    group = engine.prepare([Scoring().rows(subjects[0]), Scoring().rows(subjects[2])], Recurrence(Scoring(), "local"))
    engine.score(group, engine.load(chunk), seen.append)
    assert sum(seen) == 18 * 12


@pytest.mark.parametrize("mode", MODES)
def test_hits_are_the_scores_that_reach_the_thresholds(engine, mode):
    generator = np.random.default_rng(9)
    queries = [random_codes(generator, n, 20) for n in (0, 12, 25)]
    chunk = make_chunk([random_codes(generator, int(n), 20) for n in generator.integers(0, 20, 30)])
    group = engine.prepare([Scoring().rows(query) for query in queries], Recurrence(Scoring(), mode))
    loaded = engine.load(chunk)
    scores = engine.score(group, loaded)
    assert (scores.dtype, scores.shape) == (np.int32, (3, 30))
    middle = int(np.median(scores[2]))
    table = np.full(20, middle, dtype=np.int64)
    table[10:] += 2  # longer subjects must score more
    found = engine.start_scan(group, loaded, HitThresholds([None, None, table], [None, 0, None])).wait()
    expected = [np.ones(30, dtype=bool), scores[1] >= 0, scores[2] >= table[chunk.lengths]]
    assert 0 < expected[2].sum() < 30
    for hits, good, row in zip(found, expected, scores, strict=True):
        assert sorted(hits.indices.tolist()) == np.flatnonzero(good).tolist()
        assert hits.scores.tolist() == row[hits.indices].tolist()
