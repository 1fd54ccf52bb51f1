"""One suite for every engine: each must equal the reference, whatever the case."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import fake_pycuda
from support.cases import any_codes, make_chunk, modes, random_codes, scorings
from support.samples import random_cases, sample
from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.engines import choice, create_engine
from swsearch.engines.base import Thresholds
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.engine import WAYS, CpuEngine
from swsearch.engines.cpu.queries import longest_subject
from swsearch.engines.reference import ReferenceEngine
from swsearch.errors import EngineError, GpuUnavailableError, InputError, MemoryLimitError, OptionError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import LANE_BITS, Ends, Scoring, lane_limits, load_matrix, matrix_from_text

NO_ROWS = np.empty(0, dtype=np.int8)
TRYPTOPHAN = PROTEIN.letters.index("W")


def cpu_engine(instructions, threads=None):
    """Make a CPU engine that uses an instruction set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(extension.SWITCH, instructions)
        return CpuEngine(threads)


WIDEST = extension.instruction_sets()[0]


@pytest.fixture(
    scope="module",
    params=[*((name, "chosen") for name in extension.instruction_sets()), *((WIDEST, way) for way in WAYS[1:])],
)
def cpu(request):
    """The CPU engine, with each instruction set of this machine, and the widest with each way of using its lanes.

    All sets in all ways are in `every_cpu` and, without Python, in tests/cpu/search.cpp.
    """
    with cpu_engine(request.param[0], 2) as made:
        made.way = request.param[1]
        yield made


@pytest.fixture(scope="module")
def every_cpu():
    """All of these at once."""
    made = [cpu_engine(name, 2) for name in extension.instruction_sets() for _ in WAYS]
    for engine, way in zip(made, len(extension.instruction_sets()) * WAYS, strict=True):
        engine.way = way
    return made


@pytest.fixture(scope="module", params=[*extension.instruction_sets(), "reference"])
def engine(request):
    """Every engine."""
    with ReferenceEngine() if request.param == "reference" else cpu_engine(request.param) as made:
        yield made


def scores_of(engine, queries, subjects, scoring, mode):
    """Score in input order."""
    chunk = make_chunk(subjects)
    loaded = engine.load(chunk)
    values = engine.score(engine.prepare([scoring.rows(q) for q in queries], Recurrence(scoring, mode)), loaded)
    engine.release(loaded)
    ordered = np.empty_like(values)
    ordered[:, chunk.subjects] = values
    return ordered


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
    generator = np.random.default_rng(64)
    bounds = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33]
    queries = [random_codes(generator, n, 20) for n in bounds]
    subjects = [random_codes(generator, n, 20) for n in bounds]
    check(engine, queries, subjects, Scoring(), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 63, 64, 65, 129])
def test_any_number_of_subjects(engine, mode, count):
    generator = np.random.default_rng(count)
    subjects = [random_codes(generator, int(n), 20) for n in generator.integers(0, 12, count)]
    check(engine, [random_codes(generator, 9, 20)], subjects, Scoring(), mode)


@pytest.mark.parametrize("limit", [127, 242, 255, 32_767, 65_522, 65_535])
def test_saturation_at_a_lanes_limit_and_beside_it(cpu, limit):
    # a run of equal letters scores its length times the matrix entry, so every score near the limit occurs
    for letter in "WCAX" if limit < 10_000 else "W":
        scoring = Scoring()
        entry = max(scoring.matrix[letter, letter], 1)
        around = [max(limit // entry + k, 1) for k in (-13, -12, -2, -1, 0, 1, 2, 12, 13)]
        code = PROTEIN.letters.index(letter)
        query = np.full(max(around), code, dtype=np.uint8)
        got = scores_of(cpu, [query], [query[:n] for n in around], scoring, "local")[0]
        expected = [n * max(scoring.matrix[letter, letter], 0) for n in around]
        assert got.tolist() == expected, letter


def in_lanes_of(bits, cpu, query, chunk, scoring, mode):
    """Let the extension score one query in lanes of one width alone; return the scores and what it flags."""
    values, flags = np.zeros((1, chunk.n_subjects), dtype=np.int32), np.zeros((1, chunk.n_subjects), dtype=np.uint8)
    longest = np.array([0 if bits == 32 else 1 << 20], dtype=np.int32)  # whatever it scores
    extension.load().search(
        query, np.array([0, len(query)]), longest, NO_ROWS, NO_ROWS, chunk.residues, chunk.column_offsets,
        chunk.lengths, np.zeros(0, dtype=np.int64), False, scoring.matrix.scores.astype(np.int8), scoring.gap_first,
        scoring.gap_extend, scoring.gap_first, scoring.gap_extend,
        ("local", "global", "semiglobal").index(mode), bits, bits, cpu.threads,
        WAYS.index(cpu.way), cpu.instructions, None, values, flags,
    )  # fmt: skip
    return values[0], flags[0] != 0


@pytest.mark.parametrize(("gap_open", "gap_extend"), sample([(11, 1), (0, 5), (40, 3)], lambda gaps: gaps == (11, 1)))
@pytest.mark.parametrize("bits", LANE_BITS)
def test_a_lane_is_exact_up_to_its_limit_and_flags_what_is_beyond(cpu, bits, gap_open, gap_extend):
    scoring = Scoring("BLOSUM62", gap_open, gap_extend)
    low, high = lane_limits(bits)
    most = high - low - scoring.gap_first - scoring.gap_extend if bits < 32 else high
    # W is 11, V is 4, I is 4: tryptophans and up to 10 valines reach every score
    scores = [most + k for k in range(-14, 15)] if bits < 32 else [1_000, 70_000]
    sequences = []
    for score in scores:
        valines = next(k for k in range(11) if (score - 4 * k) % 11 == 0)
        sequences.append(PROTEIN.encode("W" * ((score - 4 * valines) // 11) + "V" * valines))
    query = PROTEIN.encode("W" * ((scores[-1] // 11) + 1) + "V" * 10)
    chunk = make_chunk(sequences)
    group = cpu.prepare([scoring.rows(query)], Recurrence(scoring, "local"))
    values, flags = in_lanes_of(bits, cpu, query, chunk, scoring, "local")
    for place, subject in enumerate(chunk.subjects):
        assert flags[place] == (scores[subject] >= most), (scores[subject], most)
        assert flags[place] or values[place] >= scores[subject]
    exact = cpu.score(group, cpu.load(chunk))[0]
    assert exact.tolist() == [scores[subject] for subject in chunk.subjects]
    assert np.array_equal(values[~flags], exact[~flags])


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


def test_every_score_near_the_8_bit_limit(cpu):
    # W is 11, A is 4, G is 6, E is 5: sums of these reach every score from 100 to 160
    scoring = Scoring()
    for target in range(100, 161):
        for last in "AEG":
            rest = target - scoring.matrix[last, last]
            if rest % 11 == 0:
                query = PROTEIN.encode("W" * (rest // 11) + last)
                assert scores_of(cpu, [query], [query], scoring, "local")[0, 0] == target


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
    generator = np.random.default_rng(7)
    queries = [random_codes(generator, 30, k) for k in (2, 20)]
    subjects = [random_codes(generator, n, k) for n in (1, 20, 37) for k in (2, 20)]
    check(cpu, queries, subjects, Scoring(load_matrix("BLOSUM62"), *gaps), mode)


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
            several.way = cpu.way
            assert np.array_equal(scores_of(several, queries, subjects, Scoring(), mode), expected)
    each = [scores_of(cpu, [query], subjects, Scoring(), mode)[0] for query in queries]
    assert np.array_equal(np.array(each), expected)


def test_a_matrix_with_scores_of_its_own_for_every_letter(cpu):
    text = "   " + " ".join(PROTEIN.letters) + "\n"
    for k, a in enumerate(PROTEIN.letters):
        text += a + " " + " ".join(str(9 + k if a == b else k - 29) for b in PROTEIN.letters) + "\n"
    scoring = Scoring(matrix_from_text(text, "lopsided", PROTEIN))  # not symmetric
    generator = np.random.default_rng(27)
    sequences = [random_codes(generator, 20) for _ in range(30)]
    for mode in MODES:
        check(cpu, sequences[:2], sequences, scoring, mode)


@pytest.mark.parametrize("entry", [62, 63, 64, 127])
@pytest.mark.parametrize("mode", MODES)
def test_the_largest_matrix_entries(cpu, mode, entry):
    letters = PROTEIN.letters
    text = "   " + " ".join(letters) + "\n"
    for a in letters:
        text += a + " " + " ".join(str(entry if a == b else -entry) for b in letters) + "\n"
    generator = np.random.default_rng(entry)
    sequences = [random_codes(generator, 20, 3) for _ in range(20)]
    for gaps in ((0, 1), (0, 62), (60, 1)):
        scoring = Scoring(matrix_from_text(text, "identity", PROTEIN), *gaps)
        check(cpu, sequences[:2], sequences, scoring, mode)


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


class _StopError(Exception):
    """Raised by one test's progress."""


def test_what_progress_raises_ends_the_search(cpu):
    generator = np.random.default_rng(5)
    subjects = [random_codes(generator, 3_000, 20) for _ in range(512)]
    query = Scoring().rows(random_codes(generator, 3_000, 20))
    seen = []

    def progress(cells):
        seen.append(cells)
        raise _StopError

    group = cpu.prepare([query] * 4, Recurrence(Scoring(), "local"))
    with pytest.raises(_StopError):
        cpu.score(group, cpu.load(make_chunk(subjects)), progress)
    assert len(seen) == 1
    assert seen[0] < 4 * 3_000 * 3_000 * 512


def test_the_extension_checks_what_it_is_given():
    chunk = make_chunk([random_codes(np.random.default_rng(1), n, 20) for n in (40, 30)])
    good = {
        "codes": np.zeros(5, dtype=np.uint8),
        "query_offsets": np.array([0, 5]),
        "longest_16": np.array([9], dtype=np.int32),
        "row_scores": NO_ROWS,
        "row_costs": NO_ROWS,
        "residues": chunk.residues,
        "column_offsets": chunk.column_offsets,
        "lengths": chunk.lengths,
        "chosen": np.zeros(0, dtype=np.int64),
        "only_chosen": False,
        "scores": np.zeros((32, 32), dtype=np.int8),
        "gap_first": 12,
        "gap_extend": 1,
        "most_gap_first": 12,
        "most_gap_extend": 1,
        "mode": 0,
        "first_bits": 8,
        "last_bits": 32,
        "threads": 1,
        "way": 0,
        "instructions": "scalar",
        "progress": None,
        "values": np.zeros((1, 2), dtype=np.int32),
        "saturated": np.zeros((1, 2), dtype=np.uint8),
    }
    assert extension.load().search(*good.values()) == (2, 0, 0)
    bad = {
        "codes": np.full(5, 32, dtype=np.uint8),
        "query_offsets": np.array([0, 6]),
        "longest_16": np.zeros(2, dtype=np.int32),
        "residues": chunk.residues[:39],
        "column_offsets": chunk.column_offsets[:1],
        "lengths": np.array([30, 40], dtype=np.int32),
        "scores": np.zeros((32, 31), dtype=np.int8),
        "row_scores": np.zeros(4 * 32, dtype=np.int8),
        "row_costs": np.zeros((5, 4), dtype=np.int16),
        "gap_first": 0,
        "mode": 3,
        "first_bits": 7,
        "threads": 0,
        "way": 3,
        "instructions": "vax",
        "values": np.zeros((1, 3), dtype=np.int32),
        "saturated": np.zeros((2, 2), dtype=np.uint8),
    }
    for name, value in bad.items():
        with pytest.raises(ValueError, match="expected"):
            extension.load().search(*(good | {name: value}).values())
    some = {"only_chosen": True, "values": good["values"][:, :1], "saturated": good["saturated"][:, :1]}
    for place in (-1, 2):
        with pytest.raises(ValueError, match="expected"):
            extension.load().search(*(good | some | {"chosen": np.array([place])}).values())


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
    found = engine.find(group, loaded, Thresholds([None, None, table], [None, 0, None])).wait()
    expected = [np.ones(30, dtype=bool), scores[1] >= 0, scores[2] >= table[chunk.lengths]]
    assert 0 < expected[2].sum() < 30
    for hits, good, row in zip(found, expected, scores, strict=True):
        assert sorted(hits.places.tolist()) == np.flatnonzero(good).tolist()
        assert hits.scores.tolist() == row[hits.places].tolist()


def plural(threads):
    return f"{threads} thread{'' if threads == 1 else 's'}"


def test_choosing_an_engine():
    with create_engine("cpu") as engine:
        assert engine.name == "cpu"
        assert engine.description == f"cpu ({extension.chosen()}, {plural(engine.threads)})"
        assert engine.fallback == ""
    with create_engine("auto") as engine:
        assert (engine.name == "cpu") == bool(engine.fallback)
    with pytest.raises(OptionError, match="engine: got 'tpu', expected one of auto, gpu, cpu"):
        create_engine("tpu")
    for name in ("auto", "gpu", "cpu"):
        with pytest.raises(OptionError, match="threads: got 0"):
            create_engine(name, threads=0)


@pytest.fixture
def gpu(monkeypatch):
    """Return a function that decides what becomes of the attempt to make a GPU engine."""

    def decide(outcome, installed=True):
        def create(device, memory):
            asked.append((device, memory))
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        asked = []
        monkeypatch.setattr(choice, "_gpu_engine", create)
        monkeypatch.setattr(choice, "pycuda_is_installed", lambda: installed)
        return asked

    return decide


NO_DRIVER = GpuUnavailableError("engine gpu cannot be used: no NVIDIA driver was found")


def test_auto_takes_the_gpu_where_it_can(gpu):
    made, told = ReferenceEngine(), []
    asked = gpu(made)
    assert create_engine("auto", device=1, gpu_memory=100, notice=told.append) is made
    assert create_engine("gpu", device=2) is made
    assert asked == [(1, 100), (2, None)]
    assert (told, made.fallback) == ([], "")


def test_auto_falls_back_and_says_why_once(gpu):
    gpu(NO_DRIVER)
    told = []
    with create_engine("auto", threads=1, notice=told.append) as engine:
        assert (engine.name, engine.threads) == ("cpu", 1)
        assert told == [engine.fallback] == [f"running on the CPU: {NO_DRIVER}"]
    with create_engine("auto") as engine:  # nobody listens, as from Python
        assert engine.fallback == told[0]
    with pytest.raises(GpuUnavailableError) as caught:
        create_engine("gpu", notice=told.append)
    assert caught.value.exit_code == 7
    assert len(told) == 1


@pytest.mark.parametrize("options", [{}, {"device": 0}, {"gpu_memory": 1 << 30}])
def test_a_machine_without_pycuda_is_not_nagged_unless_it_asks_for_a_gpu(gpu, options):
    gpu(NO_DRIVER, installed=False)
    told = []
    with create_engine("auto", notice=told.append, **options) as engine:
        assert engine.name == "cpu"
        assert engine.fallback
    assert len(told) == len(options)


@pytest.mark.parametrize(
    "error",
    [EngineError("a kernel does not compile"), OptionError("device", 7, "one of 0"), MemoryLimitError("too little")],
)
def test_auto_hides_no_other_error(gpu, error):
    gpu(error)
    with pytest.raises(type(error)) as caught:
        create_engine("auto")
    assert caught.value is error


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_gpu_options_with_an_engine_that_has_no_use_for_them(name):
    for options in ({"device": 0}, {"gpu_memory": 1 << 30}):
        ((option, value),) = options.items()
        with pytest.raises(OptionError) as caught:
            create_engine(name, **options)
        assert str(caught.value) == (
            f"{option}: got {value}, expected none with engine {name}; leave it out, or choose engine gpu or auto"
        )


def test_whether_pycuda_is_installed(monkeypatch):
    fake_pycuda.remove(monkeypatch)
    assert not choice.pycuda_is_installed()
    with pytest.raises(GpuUnavailableError, match="PyCUDA is not installed; pip install 'swsearch"):
        create_engine("gpu")
    fake_pycuda.install(monkeypatch)
    assert choice.pycuda_is_installed()
