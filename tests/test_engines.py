"""One suite for every engine: each must equal the reference, whatever the case."""

import fake_pycuda
import numpy as np
import pytest
from cases import any_codes, make_chunk, modes, random_codes, scorings
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch import engines, reference
from swsearch.alphabet import PROTEIN
from swsearch.engines import create_engine
from swsearch.engines.base import Engine, LoadedChunk, QueryGroup, Scores, exact_scores
from swsearch.engines.cpu import CpuEngine, cut_tasks, first_bits, kernel_for
from swsearch.engines.opal_library import can_score
from swsearch.engines.parasail_library import instruction_set, version
from swsearch.engines.reference import ReferenceEngine
from swsearch.errors import EngineError, GpuUnavailableError, MemoryLimitError, OptionError
from swsearch.scoring import LANE_BITS, MODES, Scoring, load_matrix, matrix_from_text

TRYPTOPHAN = PROTEIN.letters.index("W")


class _Parasail(CpuEngine):
    kernel = staticmethod(lambda query_length, n_subjects, scoring, mode: "parasail")


class _Opal(CpuEngine):
    kernel = staticmethod(
        lambda query_length, n_subjects, scoring, mode: "opal" if can_score(scoring, mode) else "parasail"
    )


@pytest.fixture(scope="module", params=[_Parasail, _Opal])
def cpu(request):
    """The CPU engine, each of its libraries taking everything that it can."""
    with request.param(2) as made:
        yield made


@pytest.fixture(scope="module", params=[_Parasail, _Opal, ReferenceEngine])
def engine(request):
    """Every engine."""
    with request.param() as made:
        yield made


def scores_of(engine, queries, subjects, scoring, mode):
    """Score in input order."""
    chunk = make_chunk(subjects)
    loaded = engine.load(chunk)
    values = exact_scores(engine, engine.prepare([scoring.profile(q) for q in queries], scoring, mode), loaded)
    engine.release(loaded)
    ordered = np.empty_like(values)
    ordered[:, chunk.subjects] = values
    return ordered


def check(engine, queries, subjects, scoring, mode):
    got = scores_of(engine, queries, subjects, scoring, mode)
    for q, query in enumerate(queries):
        for s, subject in enumerate(subjects):
            expected = reference.score(query, subject, scoring, mode)
            case = (scoring.describe(), mode, PROTEIN.decode(query), PROTEIN.decode(subject))
            assert got[q, s] == expected, case


@settings(max_examples=150)
@given(
    st.lists(any_codes(40), min_size=1, max_size=3), st.lists(any_codes(40), min_size=1, max_size=6), scorings, modes
)
def test_the_cpu_engine_equals_the_reference(cpu, queries, subjects, scoring, mode):
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


@pytest.mark.parametrize("limit", [127, 255, 32_767])
def test_saturation_at_a_lanes_limit_and_beside_it(cpu, limit):
    # a run of equal letters scores its length times the matrix entry, so every score near the limit occurs
    for letter in "WCAX":
        scoring = Scoring()
        entry = max(scoring.matrix[letter, letter], 1)
        around = [max(limit // entry + k, 1) for k in (-13, -12, -2, -1, 0, 1, 2, 12, 13)]
        code = PROTEIN.letters.index(letter)
        query = np.full(max(around), code, dtype=np.uint8)
        got = scores_of(cpu, [query], [query[:n] for n in around], scoring, "local")[0]
        expected = [n * max(scoring.matrix[letter, letter], 0) for n in around]
        assert got.tolist() == expected, letter


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
    # a homopolymer of 35,000 tryptophans scores 385,000 against itself
    query = np.full(35_000, TRYPTOPHAN, dtype=np.uint8)
    scoring = Scoring()
    expected = 11 * 35_000
    for mode in MODES:
        got = scores_of(cpu, [query], [query, query[:100]], scoring, mode)[0]
        tail = scoring.gap_cost(34_900) if mode == "global" else 0
        assert got.tolist() == [expected, 1_100 - tail], mode


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


@pytest.mark.parametrize("kind", [_Parasail, _Opal])
def test_threads_tasks_pieces_and_grouping_do_not_change_scores(kind, monkeypatch):
    generator = np.random.default_rng(11)
    queries = [random_codes(generator, n, 20) for n in (40, 150, 90)]
    subjects = [random_codes(generator, int(n), 20) for n in generator.integers(0, 200, 300)]
    with CpuEngine(1) as one:
        expected = scores_of(one, queries, subjects, Scoring(), "local")
    for threads, cells, least, blocks in ((2, 10_000, 7, 1), (3, 1, 1, 2), (5, 10**9, 10**9, 3)):
        monkeypatch.setattr("swsearch.engines.cpu.TASK_CELLS", cells)
        monkeypatch.setattr("swsearch.engines.cpu.OPAL_TASK_SUBJECTS", least)
        monkeypatch.setattr("swsearch.engines.cpu.OPAL_PIECE_BLOCKS", blocks)
        with kind(threads) as several:
            assert np.array_equal(scores_of(several, queries, subjects, Scoring(), "local"), expected)
            each = [scores_of(several, [query], subjects, Scoring(), "local")[0] for query in queries]
            assert np.array_equal(np.array(each), expected)


@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=200), st.integers(1, 6_000), st.integers(1, 50))
def test_tasks_cover_every_subject_once(lengths, query_length, least):
    ordered = np.sort(np.array(lengths, dtype=np.int32))[::-1]
    tasks = cut_tasks(ordered, query_length, least)
    covered = [place for task in tasks for place in range(task.start, task.stop)]
    assert covered == list(range(len(lengths)))
    assert all(task.stop - task.start >= least for task in tasks[:-1])


def test_which_library_scores():
    scoring = Scoring()
    assert kernel_for(300, 10_000, scoring, "local") == "opal"
    assert kernel_for(300, 10, scoring, "local") == "parasail"  # too few subjects to fill the lanes
    assert kernel_for(5_000, 10_000, scoring, "local") == "parasail"
    assert kernel_for(300, 10_000, scoring, "global") == "parasail"
    assert kernel_for(300, 10_000, Scoring(gap_open=100), "local") == "parasail"  # too much for 8 bits


def test_a_matrix_with_scores_of_its_own_for_rare_letters_is_not_opals():
    text = "   " + " ".join(PROTEIN.letters) + "\n"
    for a in PROTEIN.letters:
        text += a + " " + " ".join(str(9 if a == b else -2) for b in PROTEIN.letters) + "\n"
    scoring = Scoring(matrix_from_text(text, "identity", PROTEIN))
    assert not can_score(scoring, "local")
    assert can_score(Scoring(), "local")
    generator = np.random.default_rng(27)
    sequences = [random_codes(generator, 20) for _ in range(600)]
    with CpuEngine(1) as engine:
        check(engine, sequences[:1], sequences, scoring, "local")


def test_progress_counts_every_cell(engine):
    subjects = [random_codes(np.random.default_rng(2), n, 20) for n in (5, 6, 7)]
    chunk = make_chunk(subjects)
    seen: list[int] = []
    group = engine.prepare([Scoring().profile(subjects[0]), Scoring().profile(subjects[2])], Scoring(), "local")
    engine.score(group, engine.load(chunk), seen.append)
    assert sum(seen) == 18 * 12


def test_the_starting_lane():
    def group(mode, scoring):
        return QueryGroup([], scoring, mode)

    assert first_bits(group("local", Scoring())) == 8
    assert first_bits(group("local", Scoring(gap_open=100))) == 16
    assert first_bits(group("local", Scoring(gap_extend=10_000, gap_open=10_000))) == 32
    assert first_bits(group("global", Scoring())) is None


class _Stubborn(Engine):
    """Says that everything is saturated, up to a lane width."""

    name = "stubborn"
    description = "for one test"

    def __init__(self, knows_at):
        self.knows_at, self.asked = knows_at, []

    def prepare(self, profiles, scoring, mode):
        return QueryGroup(profiles, scoring, mode)

    def load(self, chunk):
        return LoadedChunk(chunk)

    def score(self, group, loaded, progress=None):
        shape = (len(group.profiles), loaded.chunk.n_subjects)
        return Scores(np.full(shape, -99, dtype=np.int32), np.ones(shape, dtype=np.bool_), 8)

    def rescore(self, group, loaded, query, subjects, bits):
        self.asked.append((query, subjects.tolist(), bits))
        # half of what is asked is known at 16 bits, the rest only at the widest
        known = (subjects % 2 == 0) if bits < self.knows_at else np.ones(len(subjects), dtype=np.bool_)
        return (subjects * 10 + bits).astype(np.int32), ~known


def test_saturated_lanes_are_rescored_wider_until_none_is_left():
    stubborn = _Stubborn(knows_at=32)
    chunk = make_chunk([np.zeros(n, dtype=np.uint8) for n in (4, 3, 2)])
    group = stubborn.prepare([Scoring().profile(np.zeros(3, dtype=np.uint8))], Scoring(), "local")
    values = exact_scores(stubborn, group, stubborn.load(chunk))
    assert stubborn.asked == [(0, [0, 1, 2], 16), (0, [1], 32)]
    assert values.tolist() == [[16, 42, 36]]


def test_a_score_beyond_every_lane_is_an_error_and_never_a_number():
    stubborn = _Stubborn(knows_at=LANE_BITS[-1] + 1)
    chunk = make_chunk([np.zeros(n, dtype=np.uint8) for n in (4, 3)])
    group = stubborn.prepare([Scoring().profile(np.zeros(3, dtype=np.uint8))], Scoring(), "local")
    with pytest.raises(EngineError, match="passes 32 bits"):
        exact_scores(stubborn, group, stubborn.load(chunk))


def test_choosing_an_engine():
    with create_engine("cpu") as engine:
        assert engine.name == "cpu"
        assert version() in engine.description
        assert instruction_set() in engine.description
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
        monkeypatch.setattr(engines, "_create_gpu", create)
        monkeypatch.setattr(engines, "pycuda_is_installed", lambda: installed)
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
    assert not engines.pycuda_is_installed()
    with pytest.raises(GpuUnavailableError, match="PyCUDA is not installed; pip install 'swsearch"):
        create_engine("gpu")
    fake_pycuda.install(monkeypatch)
    assert engines.pycuda_is_installed()
