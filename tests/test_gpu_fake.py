"""The GPU engine without a GPU: all but the CUDA code, on the device of fake_gpu.py, against the CPU engine."""

import fake_gpu
import numpy as np
import pytest
from cases import any_codes, flat_matrix, make_chunk, random_codes, scorings
from fake_gpu import FakeDevice, fake_engine, launched
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swsearch
from swsearch import Database, job
from swsearch.alphabet import PROTEIN
from swsearch.engines.base import Pending, Thresholds, Workload, exact_scores
from swsearch.engines.cpu import CpuEngine
from swsearch.engines.gpu import launch, limits, memory, queries, slot, tracks, variants
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.slot import HITS_AT_ONCE
from swsearch.scoring import MODES, Scoring, load_matrix

MIB = 1 << 20
BATCHED, WAVEFRONT = 10**9, 0
KERNELS = pytest.mark.parametrize("fair_share", [BATCHED, WAVEFRONT], ids=["batch", "wavefront"])
EVERY_MODE = pytest.mark.parametrize("mode", MODES)
STEEP = flat_matrix(127, -127)


@pytest.fixture
def gpu(monkeypatch):
    """The GPU engine on the fake device."""
    with fake_engine(monkeypatch) as engine:
        yield engine


@pytest.fixture(scope="module")
def cpu():
    """The CPU engine, itself compared with the reference in test_engines.py."""
    with CpuEngine(2) as engine:
        yield engine


def scores_of(engine, group, chunk, scoring, mode):
    loaded = engine.load(chunk)
    try:
        return exact_scores(engine, engine.prepare([scoring.profile(q) for q in group], scoring, mode), loaded)
    finally:
        engine.release(loaded)


def check(gpu, cpu, group, subjects, scoring=None, mode="local"):
    """Compare every score, name the first that differ, and return the expected ones."""
    scoring, chunk = scoring or Scoring(), make_chunk(subjects)
    expected = scores_of(cpu, group, chunk, scoring, mode)
    got = scores_of(gpu, group, chunk, scoring, mode)
    wrong = [
        (q, len(group[q]), int(chunk.lengths[s]), int(got[q, s]), int(expected[q, s]))
        for q, s in np.argwhere(got != expected)[:5].tolist()
    ]
    case = (scoring.describe(), mode, [len(query) for query in group], len(subjects))
    assert not wrong, (case, "query, its length, subject's length, got, expected", wrong)
    return expected


def draw(seed, lengths, letters=20):
    generator = np.random.default_rng(seed)
    return [random_codes(generator, int(n), letters) for n in lengths]


# scores


@EVERY_MODE
@KERNELS
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 130])
def test_any_number_of_subjects(gpu, cpu, mode, fair_share, count, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", fair_share)
    subjects = draw(count, np.random.default_rng(count).integers(0, 40, count))
    if not any(map(len, subjects)):
        subjects[0] = subjects[0][:0]
    check(gpu, cpu, draw(1, [9, 0, 30, 61, 24]), subjects, mode=mode)
    used = "batch" if fair_share else "wavefront"
    if any(map(len, subjects)):
        assert launched(used), (used, sorted(gpu.usage.launched))


@pytest.mark.parametrize("variant", variants.batch_variants(), ids=str)
def test_every_inter_task_variant(gpu, cpu, variant, monkeypatch):
    def plan(profiles, chosen, mode, most):
        if variant.queries == 1:
            return [tracks.single_track(profiles, chosen, variant)]
        lengths = {query: len(profiles[query]) for query in chosen}
        return [tracks.two_tracks(profiles, tracks.split_tracks(lengths, variant.rows), variant)]

    monkeypatch.setattr(queries, "plan_batches", plan)
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)
    rows = variant.rows
    subjects = draw(rows, [0, 1, 7, 8, 9, 33, *np.random.default_rng(rows).integers(0, 33, 70)])
    check(gpu, cpu, draw(2, [1, rows - 1, rows, rows + 1, 17 * rows + 3]), subjects, mode=variant.mode)
    assert {each.defines["SWSEARCH_ROWS"] for each in launched("batch")} == {rows}


@pytest.mark.parametrize("variant", variants.wavefront_variants(), ids=str)
def test_every_wavefront_variant(gpu, cpu, variant, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", WAVEFRONT)
    monkeypatch.setattr(tracks, "choose_wavefront_rows", lambda lengths: variant.rows)
    if variant.bits == 32:
        monkeypatch.setattr(queries, "lane16", lambda *arguments: None)
    whole = variant.pass_rows
    subjects = draw(variant.rows, [0, 1, 9, 30, *range(20, 29)])
    check(gpu, cpu, draw(3, [1, variant.rows + 1, whole - 1, whole, whole + 1]), subjects, mode=variant.mode)
    assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} == {variant.bits}


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    st.lists(any_codes(70), min_size=1, max_size=5),
    st.lists(any_codes(40), min_size=1, max_size=9),
    scorings, st.sampled_from(MODES), st.sampled_from([BATCHED, WAVEFRONT]),
)  # fmt: skip
def test_random_queries_subjects_and_scorings(cpu, group, subjects, scoring, mode, fair_share):
    with pytest.MonkeyPatch.context() as patch, fake_engine(patch) as gpu:
        patch.setattr(launch, "FAIR_SHARE", fair_share)
        check(gpu, cpu, group, subjects, scoring, mode)


@EVERY_MODE
def test_both_kernels_share_the_subjects_of_a_chunk(gpu, cpu, mode, monkeypatch):
    monkeypatch.setattr(launch, "LONG_COLUMNS", 40)
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)
    subjects = draw(4, [300, 41, 40, *[30] * 200, 0])
    check(gpu, cpu, draw(5, [20, 70, 33]), subjects, mode=mode)
    assert launched("batch")[0].arguments[4] == 1, "the first block that the inter-task kernel takes"
    assert launched("wavefront")


@EVERY_MODE
def test_kernels_side_by_side_keep_apart_between_passes(gpu, cpu, mode, monkeypatch):
    monkeypatch.setattr(launch, "LONG_COLUMNS", 40)
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)
    subjects = draw(4, [200, 150, *[60] * 40, *[30] * 100])
    check(gpu, cpu, draw(5, [700, 800, 30, 900]), subjects, mode=mode)
    kept = {name: [span[1:] for span in gpu._device.kept if span[0] == name] for name in ("batch", "wavefront")}
    assert all(kept.values()), kept
    for first, last in kept["wavefront"]:
        for start, end in kept["batch"]:
            assert last <= start or end <= first, (mode, (first, last), (start, end))


@EVERY_MODE
@KERNELS
@pytest.mark.parametrize("gaps", [(0, 0), (0, 5), (100, 0), (10_000, 10_000)], ids=str)
def test_gap_costs_at_their_extremes(gpu, cpu, mode, fair_share, gaps, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", fair_share)
    group = [*draw(7, [30, 12], 2), *draw(8, [30])]
    check(gpu, cpu, group, draw(9, [1, 20, 37, 20, 0], 3), Scoring("BLOSUM62", *gaps), mode)
    if gaps[0] == 10_000:  # does not fit 16 bits
        assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} == {32}
        assert not launched("batch")


@pytest.mark.parametrize(("mode", "extend"), [("global", 25), ("semiglobal", 60)])
def test_long_queries_that_do_not_fit_16_bits_beside_short_ones(gpu, cpu, mode, extend):
    check(gpu, cpu, draw(10, [700, 30, 0, 90]), draw(11, [650, 20, 25]), Scoring("BLOSUM62", 11, extend), mode)
    assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} == {32, 16}


@KERNELS
def test_scores_around_the_16_bit_limit_and_far_beyond(gpu, cpu, fair_share, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", fair_share)
    scoring = Scoring(STEEP, 3, 1)
    lane = limits.lane16(scoring, "local", scoring.profile(np.zeros(1, dtype=np.uint8)), 1, 1)
    query = draw(12, [600])[0]
    at = lane.limit // 127
    subjects = [query[:n] for n in (*range(at - 3, at + 5), 2 * at, 600)]
    subjects += [np.concatenate((query[: at - 1], query[at:n])) for n in (at + 1, at + 2, 500)]
    expected = check(gpu, cpu, [query, query[:100], query[:0]], subjects, scoring)
    assert (expected < lane.limit).any()
    assert (expected >= lane.limit).any()
    assert expected.max() == 600 * 127
    assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} >= {32}


@KERNELS
@pytest.mark.parametrize("capacity", [1, 7, 64, 10**6])
def test_more_saturated_pairs_than_a_list_holds(gpu, cpu, fair_share, capacity, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", fair_share)
    given_ = slot.Slot.capacity
    monkeypatch.setattr(slot.Slot, "capacity", lambda self, what: min(capacity, given_(self, what)))
    query = draw(13, [330])[0]
    subjects = [query[: 330 - k] for k in range(30)] + draw(14, [20] * 40)
    for group in ([query], [query[:300], query[:9], query]):
        before = len(launched("collect_tasks"))
        expected = check(gpu, cpu, group, subjects, Scoring(STEEP, 3, 1))
        saturated = (expected > 32_000).sum()
        lists = len(launched("collect_tasks")) - before
        parts = -(-len(group) * len(subjects) // capacity) if saturated > capacity else 0
        assert lists == 1 + parts, (capacity, saturated)


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@EVERY_MODE
def test_groups_cut_in_parts(gpu, cpu, mode, at_once, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)
    monkeypatch.setattr(queries, "PART_QUERIES", at_once)
    group, subjects = draw(15, [30, 0, 5, 44, 21, 0, 9]), draw(16, [*range(0, 40, 3), *[12] * 90])
    expected = check(gpu, cpu, group, subjects, mode=mode)
    alone = [check(gpu, cpu, [query], subjects, mode=mode)[0] for query in group]
    assert np.array_equal(expected, np.array(alone))


def test_parts_follow_the_memory_for_scores(cpu, monkeypatch):
    group, subjects = draw(17, [20] * 9), draw(18, [10] * 200)
    with fake_engine(monkeypatch) as gpu:
        gpu.plan(Workload(4 * 64 * 16, np.full(200, 10, dtype=np.int32), [[20] * 3]))
        assert gpu.memory_plan.at_once == 3
        check(gpu, cpu, group, subjects)
        assert {each.arguments[3] for each in launched("wavefront") + launched("batch")} == {200}
        parts = len({id(part) for part in gpu._uploaded})
        assert parts == 3, "nine queries, three at once"


def test_queries_that_do_not_fit_beside_others_take_their_place(gpu, cpu, monkeypatch):
    # twelve groups of 130 kB each, against 1.3 MB for queries
    chunk = make_chunk(draw(19, [10] * 70))
    profiles = [[Scoring().profile(query)] for query in draw(20, [2_000] * 12)]
    groups = [(gpu.prepare(each, Scoring(), "local"), cpu.prepare(each, Scoring(), "local")) for each in profiles]
    gpu.plan(Workload(chunk.residues.nbytes, chunk.lengths, [[2_000]]))
    loaded, held = gpu.load(chunk), cpu.load(chunk)
    for turn in range(2):
        for number, (here, there) in enumerate(groups):
            expected = exact_scores(cpu, there, held)
            assert np.array_equal(exact_scores(gpu, here, loaded), expected), (turn, number)
    assert len(gpu._uploaded) < len(groups)


@EVERY_MODE
def test_empty_queries_only(gpu, cpu, mode):
    check(gpu, cpu, [np.zeros(0, dtype=np.uint8)] * 3, draw(21, [5, 0, 9]), mode=mode)
    assert not launched("batch")
    assert not launched("wavefront")


@EVERY_MODE
@KERNELS
@pytest.mark.parametrize("lengths", [[1], [0], [1] * 70, [3, 0, 2], [0] * 65, [500]], ids=str)
def test_short_few_and_empty_subjects(gpu, cpu, mode, fair_share, lengths, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", fair_share)
    check(gpu, cpu, draw(22, [40, 1]), draw(23, lengths), mode=mode)


# hits


def hits_of(engine, group, loaded, thresholds):
    found = engine.find(group, loaded, thresholds).wait()
    return [sorted(zip(each.places.tolist(), each.scores.tolist(), strict=True)) for each in found]


TABLE = 8 + np.arange(41) // 4


@pytest.mark.parametrize("capacity", [3, 10**6])
@pytest.mark.parametrize("part", [2, 256])
@pytest.mark.parametrize(
    ("by_length", "least"),
    [
        ([np.full(41, 30), np.ones(41), TABLE, None], [None, 3, 45, 12]),
        ([None] * 4, [20, 1, 15, 10_000]),
        ([TABLE] * 4, [None] * 4),
        ([np.ones(41)] * 4, [None, 1, None, 5]),
        ([None, TABLE, TABLE, TABLE], [None, None, 9, 9]),
        ([None] * 4, [0, -5, 1, 2**31 - 1]),
    ],
    ids=["mixed", "least", "by length", "nearly all", "all of one", "extremes"],
)
def test_hits_are_those_of_all_scores(gpu, cpu, capacity, part, by_length, least, monkeypatch):
    given_ = slot.Slot.capacity
    monkeypatch.setattr(slot.Slot, "capacity", lambda self, what: min(capacity, given_(self, what)))
    monkeypatch.setattr(queries, "PART_QUERIES", part)
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)
    lengths = [40, *np.random.default_rng(24).integers(0, 41, 1_000)]
    chunk, scoring = make_chunk(draw(25, lengths)), Scoring()
    profiles = [scoring.profile(query) for query in draw(26, [50, 0, 20, 33])]
    tables = [None if table is None else table.astype(np.int64) for table in by_length]
    thresholds = Thresholds(tables, least)
    expected, got = (
        hits_of(engine, engine.prepare(profiles, scoring, "local"), engine.load(chunk), thresholds)
        for engine in (cpu, gpu)
    )
    assert got == expected, ([len(hits) for hits in got], [len(hits) for hits in expected])


def test_more_hits_than_come_back_at_once(gpu, cpu):
    chunk, scoring = make_chunk(draw(27, [12] * 900, 3)), Scoring()
    profiles = [scoring.profile(query) for query in draw(28, [9, 14, 20], 3)]
    for least, more in ((1, True), (25, False)):
        thresholds = Thresholds([None] * 3, [least] * 3)
        expected, got = (
            hits_of(engine, engine.prepare(profiles, scoring, "local"), engine.load(chunk), thresholds)
            for engine in (cpu, gpu)
        )
        assert got == expected, least
        assert (sum(map(len, got)) > HITS_AT_ONCE) == more, least


@pytest.mark.parametrize(
    ("mode", "least"),
    [(mode, least) for mode in MODES for least in (-(10**6), -40, 0, 1)],
)
def test_hits_with_an_empty_side(gpu, cpu, mode, least):
    # nothing pairs: 0, but in global mode a gap, which a threshold below 0 may take
    scoring, chunk = Scoring(), make_chunk(draw(29, [9, 5, 1, 0, 0]))
    profiles = [scoring.profile(query) for query in draw(30, [20, 0, 3])]
    thresholds = Thresholds([None] * 3, [least] * 3)
    expected, got = (
        hits_of(engine, engine.prepare(profiles, scoring, mode), engine.load(chunk), thresholds)
        for engine in (cpu, gpu)
    )
    assert got == expected, (mode, least)


def test_two_finds_in_flight_and_results_that_are_taken_late(gpu, cpu):
    scoring = Scoring()
    chunks = [make_chunk(draw(31 + k, [20] * (70 + k))) for k in range(2)]
    profiles = [scoring.profile(query) for query in draw(40, [15, 25])]
    group, other = (engine.prepare(profiles, scoring, "local") for engine in (gpu, cpu))
    thresholds = Thresholds([None, None], [12, 14])
    lengths = np.concatenate([chunk.lengths for chunk in chunks])
    gpu.plan(Workload(sum(chunk.residues.nbytes for chunk in chunks), lengths, [[15, 25]]))
    loaded = [gpu.load(chunk) for chunk in chunks]
    waits = [gpu.find(group, each, thresholds) for each in loaded for _ in range(3)]
    got = [
        [sorted(zip(c.places.tolist(), c.scores.tolist(), strict=True)) for c in each.wait()] for each in waits[::-1]
    ]
    expected = [hits_of(cpu, other, cpu.load(chunk), thresholds) for chunk in chunks]
    assert got == [expected[1]] * 3 + [expected[0]] * 3


# whole jobs


def letters_of(sequences):
    return [PROTEIN.decode(codes) for codes in sequences]


def results_of(group, database, engine, **options):
    found = swsearch.search(group, database, engine=engine, **options)
    return [[(hit.subject_index, hit.score, hit.bit_score, hit.evalue) for hit in result.hits] for result in found]


CHUNK = 3_500
"""Bytes of a block or two."""


class Small:
    """Plans with chunks of a few blocks, whatever the memory."""

    def __init__(self, monkeypatch, chunk_bytes, resident):
        real = memory.make_plan

        def make_plan(demand, budget):
            if not resident:  # what streams has no room for all
                demand = memory.Demand(**{**demand.__dict__, "residue_bytes": demand.residue_bytes + (1 << 30)})
            plan = real(demand, budget)
            assert plan.resident == resident
            return memory.MemoryPlan(**{**plan.__dict__, "chunk_bytes": chunk_bytes})

        monkeypatch.setattr("swsearch.engines.gpu.engine.make_plan", make_plan)


SUBJECTS = letters_of(draw(50, [*np.random.default_rng(50).integers(1, 50, 300), 0, 90]))
QUERIES = [SUBJECTS[3] * 2, SUBJECTS[70], SUBJECTS[200][:20], "", SUBJECTS[299]]


@pytest.fixture(scope="module")
def database():
    with Database.from_records(SUBJECTS) as made:
        yield made


@pytest.mark.parametrize(
    ("mode", "max_hits"),
    [(mode, most) for mode in MODES for most in (3, 500)],
)
@pytest.mark.parametrize("resident", [True, False], ids=["resident", "streamed"])
@pytest.mark.parametrize("group_rows", [60, 10**6], ids=["groups", "one group"])
def test_a_search_equals_the_cpu_engines(database, cpu, monkeypatch, mode, max_hits, resident, group_rows):
    options = {"mode": mode, "max_hits": max_hits}
    if mode == "local":
        options["evalue"] = 1e6
    expected = results_of(QUERIES, database, cpu, **options)
    monkeypatch.setattr(job, "GROUP_ROWS", group_rows)
    Small(monkeypatch, CHUNK, resident)
    with fake_engine(monkeypatch) as gpu:
        got = results_of(QUERIES, database, gpu, **options)
        assert gpu.memory_plan.resident == resident
        n_groups = len(list(job._groups(swsearch.inputs.read_queries(QUERIES, PROTEIN))))
        assert n_groups == 1 or n_groups > 2
        n_chunks = len(list(database.chunks(CHUNK)))
        assert n_chunks > 3
        assert len(launched("arrange")) == n_chunks * (1 if resident else n_groups), "chunks are kept, or read again"
        assert not gpu._loaded
    for number, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a == b, (mode, options, number)
    assert sum(map(len, expected)) > 10


@pytest.mark.parametrize("resident", [True, False])
def test_kept_chunks_are_scored_in_one_launch_from_the_second_group_on(database, cpu, monkeypatch, resident):
    monkeypatch.setattr(job, "GROUP_ROWS", 1)
    monkeypatch.setattr(launch, "FAIR_SHARE", WAVEFRONT)
    Small(monkeypatch, CHUNK, resident)
    group = [query for query in QUERIES if query]
    n_chunks = len(list(database.chunks(CHUNK)))
    with fake_engine(monkeypatch) as gpu:
        got = results_of(group, database, gpu, evalue=1e6)
        expected = n_chunks + len(group) - 1 if resident else n_chunks * len(group)
        assert len(launched("wavefront")) == expected
    assert got == results_of(group, database, cpu, evalue=1e6)


@EVERY_MODE
@pytest.mark.parametrize("resident", [True, False])
def test_score_gives_every_score(database, cpu, monkeypatch, mode, resident):
    monkeypatch.setattr(job, "GROUP_ROWS", 100)
    Small(monkeypatch, CHUNK, resident)
    with fake_engine(monkeypatch) as gpu:
        got = swsearch.score(QUERIES, database, mode=mode, engine=gpu)
    assert np.array_equal(got, swsearch.score(QUERIES, database, mode=mode, engine=cpu)), mode


@pytest.mark.parametrize(
    "tight",
    [
        False,
        True,
    ],
)
def test_scores_of_merged_chunks_fit_the_memory_for_scores(monkeypatch, cpu, tight):
    # one query a group: a chunk's scores are few, but those of all chunks together are more
    monkeypatch.setattr(job, "GROUP_ROWS", 1)
    monkeypatch.setattr(memory, "CHUNK_BYTES", 16 << 10)
    monkeypatch.setattr(memory, "LEAST_CHUNK_BYTES", 8 << 10)
    subjects, group = letters_of(draw(51, [90] * 64 + [1] * 6_000)), letters_of(draw(52, [20, 30]))
    shapes = []
    start = slot.Slot.start

    def started(self, uploaded, chunk, thresholds):
        results = start(self, uploaded, chunk, thresholds)
        shapes.append((self.shape, 4 * self.shape[0] * self.shape[1], self.plan.scores))
        return results

    monkeypatch.setattr(slot.Slot, "start", started)
    with Database.from_records(subjects) as database:
        expected = swsearch.score(group, database, engine=cpu)
        budget = None
        if tight:  # everything stays, but there is room for the scores of one chunk only
            demand = memory.demand_of(database.lengths, 1, 20, database.residue_bytes, fake_gpu.INFO.multiprocessors)
            plans = (memory.make_plan(demand, n) for n in range(6 * MIB, 0, -4096))
            found = next(plan for plan in plans if plan.scores < 4 * len(subjects))
            assert found.resident
            budget = found.budget
        with fake_engine(monkeypatch, memory=budget) as gpu:
            assert np.array_equal(swsearch.score(group, database, engine=gpu), expected)
            assert gpu.memory_plan.resident
    assert all(needed <= planned for _, needed, planned in shapes), ("shape, bytes, planned", shapes)


def test_every_group_fits_the_memory_for_queries(monkeypatch, cpu):
    # the first group has more queries, the second more rows: the plan must have room for each
    group = letters_of(draw(53, [1_000] * 27 + [25_000] * 2))
    with Database.from_records(letters_of(draw(54, [4, 5]))) as database, fake_engine(monkeypatch) as gpu:
        got = swsearch.score(group, database, engine=gpu)
        assert np.array_equal(got, swsearch.score(group, database, engine=cpu))


@pytest.mark.parametrize("resident", [True, False])
def test_progress_counts_every_cell_once(database, monkeypatch, resident):
    monkeypatch.setattr(job, "GROUP_ROWS", 60)
    monkeypatch.setattr(queries, "PART_QUERIES", 2)
    Small(monkeypatch, CHUNK, resident)
    cells = sum(map(len, QUERIES)) * database.n_residues
    for run in (swsearch.search, swsearch.score):
        for mode in MODES:
            seen = []
            with fake_engine(monkeypatch) as gpu:
                list(run(QUERIES, database, engine=gpu, mode=mode, progress=seen.append))
                assert sum(seen) == cells == gpu.usage.cells, (run.__name__, mode)


@pytest.mark.parametrize("max_hits", [3, 500])
def test_chunks_may_end_in_any_order(database, cpu, monkeypatch, max_hits):
    Small(monkeypatch, CHUNK, False)
    generator = np.random.default_rng(57)
    monkeypatch.setattr(slot.Slot, "is_done", property(lambda self: bool(generator.integers(0, 2))))
    monkeypatch.setattr(slot.Slot, "_wait", lambda self: None)
    with fake_engine(monkeypatch) as gpu:
        got = results_of(QUERIES, database, gpu, evalue=1e6, max_hits=max_hits)
    assert got == results_of(QUERIES, database, cpu, evalue=1e6, max_hits=max_hits)


@pytest.mark.parametrize("resident", [True, False])
def test_no_more_is_in_flight_than_was_said(database, monkeypatch, resident):
    Small(monkeypatch, CHUNK, resident)
    waiting, most, loaded = [], [], []
    with fake_engine(monkeypatch) as gpu:
        find = gpu.find

        def watched(*arguments):
            pending = find(*arguments)
            waiting.append(pending)
            most.append(len(waiting))
            loaded.append(len(gpu._loaded))

            def wait():
                waiting.remove(pending)
                return pending.wait()

            return Pending(wait, pending.is_ready)

        gpu.find = watched
        list(swsearch.search(QUERIES, database, engine=gpu))
        n_slots = gpu.memory_plan.n_slots
    assert 1 < max(most) == min(n_slots, len(most))
    assert resident or max(loaded) == max(most)


# memory


def test_a_device_with_less_memory_than_it_said(cpu, monkeypatch):
    # a long subject makes the planner generous with memory between passes
    subjects, group = letters_of(draw(55, [1_000, *[40] * 100])), letters_of(draw(56, [30, 20]))
    with Database.from_records(subjects) as database, fake_engine(monkeypatch) as gpu:
        expected = results_of(group, database, cpu, evalue=1e6)
        assert results_of(group, database, gpu, evalue=1e6) == expected
        (first,) = FakeDevice.asked
        for less in (first - 4096, first * 4 // 5):
            FakeDevice.asked.clear()
            monkeypatch.setattr(FakeDevice, "fails_above", less)
            assert results_of(group, database, gpu, evalue=1e6) == expected
            asked = FakeDevice.asked
            assert len(asked) > 1, (first, less, asked)
            assert asked == sorted(asked, reverse=True), (first, less, asked)
            assert asked[-1] == gpu.memory_plan.total == gpu._device.allocated <= less, (first, less, asked)


@pytest.mark.parametrize("fails_above", [0, MIB])
def test_a_job_that_fits_nowhere(database, monkeypatch, fails_above):
    with fake_engine(monkeypatch) as gpu:
        monkeypatch.setattr(FakeDevice, "fails_above", fails_above)
        with pytest.raises(
            GpuMemoryError, match=r"expected at least \d+ MiB; allow more with --gpu-memory"
        ) as caught:
            results_of(QUERIES, database, gpu)
        assert caught.value.exit_code == 4
        assert "--engine cpu" in str(caught.value)
        assert gpu._device.allocated == 0
        monkeypatch.setattr(FakeDevice, "fails_above", 1 << 40)
        assert any(results_of(QUERIES, database, gpu)), "the engine can be used again"


def test_no_more_is_allocated_than_is_allowed(database, cpu, monkeypatch):
    for megabytes in (6, 8, 16):
        with fake_engine(monkeypatch, memory=megabytes * MIB) as gpu:
            assert results_of(QUERIES, database, gpu) == results_of(QUERIES, database, cpu), megabytes
            assert 0 < gpu._device.allocated <= megabytes * MIB
    with pytest.raises(swsearch.errors.OptionError, match="gpu_memory: got 0, expected a positive number of bytes"):
        fake_engine(monkeypatch, memory=0)


# life of an engine


def test_closing(monkeypatch):
    with fake_engine(monkeypatch) as gpu:
        gpu.load(make_chunk(draw(60, [9])))
        assert gpu._device.allocated > 0
    assert (gpu._device.allocated, gpu._device.closed) == (0, 1)
    gpu.close()
    assert gpu._device.closed == 1
    fake_engine(monkeypatch).close()  # nothing was loaded


def test_loading_and_releasing_many_times(gpu, cpu):
    allocated = set()
    for turn in range(20):
        check(gpu, cpu, draw(turn, [20]), draw(turn, range(1 + turn, 90, 7)))
        assert not gpu._loaded
        assert all(region.used == 0 and region.end == region.n_bytes for region in gpu._regions)
        allocated.add(gpu._device.allocated)
    assert max(allocated) < 64 * MIB


def test_chunks_after_a_plan_come_and_go(gpu, cpu):
    subjects = draw(61, [30] * 200)
    chunk = make_chunk(subjects)
    gpu.plan(Workload(chunk.residues.nbytes, chunk.lengths, [[20]]))
    plan, allocated = gpu.memory_plan, gpu._device.allocated
    for _ in range(20):
        check(gpu, cpu, draw(65, [20]), subjects)
    assert gpu.memory_plan is plan
    assert gpu._device.allocated == allocated


def test_a_database_is_loaded_again_without_a_new_plan(database, gpu, monkeypatch):
    for resident in (True, False):
        Small(monkeypatch, CHUNK, resident)
        read = swsearch.inputs.read_queries(QUERIES[:2], PROTEIN)
        searching = job.SearchJob(read, database, gpu, job.SearchOptions(Scoring()))
        first, second = ([result.hits for result in searching.results()] for _ in range(2))
        assert first == second
        monkeypatch.undo()


def test_a_chunk_that_no_plan_foresaw(gpu, cpu):
    # engines can be used without a job: after one, a longer chunk needs other memory than the plan has
    small = make_chunk(draw(62, [30] * 70))
    gpu.plan(Workload(small.residues.nbytes, small.lengths, [[20]]))
    check(gpu, cpu, draw(63, [20]), draw(62, [30] * 70))
    check(gpu, cpu, draw(63, [20, 700]), draw(64, [900] * 130 + [4_000]))


def test_a_search_that_is_given_up(database, cpu, monkeypatch):
    Small(monkeypatch, CHUNK, False)
    with fake_engine(monkeypatch) as gpu:

        def stop(cells):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            list(swsearch.search(QUERIES, database, engine=gpu, progress=stop))
        got = results_of(QUERIES, database, gpu)
    assert got == results_of(QUERIES, database, cpu)


def test_usage_and_descriptions(gpu, database):
    plan = job.plan_for(gpu, swsearch.inputs.read_queries(QUERIES, PROTEIN), database)
    assert gpu.description == "gpu (Fake GPU, sm_90, fake compiler)"
    assert plan.keep
    assert plan.in_flight == gpu.memory_plan.n_slots
    assert plan.note == f"device 0, Fake GPU: {gpu.memory_plan}"
    usage = gpu.usage
    usage.spans += [(1.0, 3.0), (2.0, 2.5), (2.0, 4.0), (6.0, 7.0)]
    assert usage.kernel_seconds == 4.0
    assert fake_gpu.INFO.architecture == "sm_90"
    assert load_matrix("BLOSUM62").max == 11
