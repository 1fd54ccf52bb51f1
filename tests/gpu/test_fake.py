"""The GPU engine without a GPU: all but the CUDA code, on the device of fake_gpu.py, against the CPU engine."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.cases import (
    any_codes,
    check,
    draw,
    flat_matrix,
    make_chunk,
    plan_of,
    random_profile,
    scores_of,
    scorings,
)
from support.fake_gpu import fake_engine, launched
from support.samples import first_of_each, random_cases, sample
from swsearch import reference
from swsearch.engines.base import HitThresholds, Workload
from swsearch.engines.gpu import launch, limits, memory, queries, tracks, variants
from swsearch.engines.gpu.slot_memory import HITS_AT_ONCE, SlotMemory
from swsearch.errors import InputError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import PositionGapCosts, Scoring

BATCHED, WAVEFRONT = 10**9, 0


@pytest.fixture(params=[BATCHED, WAVEFRONT], ids=["batch", "wavefront"])
def fair_share(request, monkeypatch):
    """With each of the two kernels, whatever the number of subjects."""
    monkeypatch.setattr(launch, "FAIR_SHARE", request.param)
    return request.param


@pytest.fixture
def batched(monkeypatch):
    """With the inter-task kernel."""
    monkeypatch.setattr(launch, "FAIR_SHARE", BATCHED)


EVERY_MODE = pytest.mark.parametrize("mode", MODES)
STEEP = flat_matrix(127, -127)
LOCAL = Recurrence(Scoring(), "local")


def rows_of_each(seed, lengths, letters=20):
    """Draw queries and return their rows."""
    return [Scoring().rows(query) for query in draw(seed, lengths, letters)]


# scores


@EVERY_MODE
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 130])
def test_any_number_of_subjects(gpu, cpu, mode, fair_share, count):
    subjects = draw(count, np.random.default_rng(count).integers(0, 40, count))
    if not any(map(len, subjects)):
        subjects[0] = subjects[0][:0]
    check(gpu, cpu, draw(1, [9, 0, 30, 61, 24]), subjects, mode=mode)
    used = "batch" if fair_share else "wavefront"
    if any(map(len, subjects)):
        assert launched(used), (used, sorted(gpu.usage.launched))


@pytest.mark.parametrize(
    "variant", first_of_each(variants.batch_variants(), lambda one: (one.mode, one.queries, one.half)), ids=str
)
def test_every_inter_task_variant(gpu, cpu, batched, variant, monkeypatch):
    monkeypatch.setattr(queries, "plan_batches", plan_of(variant))
    rows = variant.rows
    subjects = draw(rows, [0, 1, 7, 8, 9, 33, *np.random.default_rng(rows).integers(0, 33, 70)])
    check(gpu, cpu, draw(2, [1, rows - 1, rows, rows + 1, 17 * rows + 3]), subjects, mode=variant.mode)
    assert {each.defines["SWSEARCH_ROWS"] for each in launched("batch")} == {rows}


@pytest.mark.parametrize(
    "variant", first_of_each(variants.wavefront_variants(), lambda one: (one.mode, one.bits)), ids=str
)
def test_every_wavefront_variant(gpu, cpu, variant, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", WAVEFRONT)
    monkeypatch.setattr(tracks, "choose_wavefront_rows", lambda lengths: variant.rows)
    if variant.bits == 32:
        monkeypatch.setattr(queries, "lane16", lambda *arguments: None)
    whole = variant.pass_rows
    subjects = draw(variant.rows, [0, 1, 9, 30, *range(20, 29)])
    check(gpu, cpu, draw(3, [1, variant.rows + 1, whole - 1, whole, whole + 1]), subjects, mode=variant.mode)
    assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} == {variant.bits}


@random_cases(40, suppress_health_check=list(HealthCheck))
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
def test_both_kernels_share_the_subjects_of_a_chunk(gpu, cpu, batched, mode, monkeypatch):
    monkeypatch.setattr(launch, "LONG_COLUMNS", 40)
    subjects = draw(4, [300, 41, 40, *[30] * 200, 0])
    check(gpu, cpu, draw(5, [20, 70, 33]), subjects, mode=mode)
    assert launched("batch")[0].arguments["first_block"] == 1, "the first block that the inter-task kernel takes"
    assert launched("wavefront")


@pytest.mark.parametrize("mode", sample(MODES, lambda mode: mode == "local"))
def test_kernels_side_by_side_keep_apart_between_passes(gpu, cpu, batched, mode, monkeypatch):
    monkeypatch.setattr(launch, "LONG_COLUMNS", 40)
    subjects = draw(4, [200, 150, *[60] * 40, *[30] * 100])
    check(gpu, cpu, draw(5, [700, 800, 30, 900]), subjects, mode=mode)
    kept = {name: [span[1:] for span in gpu._device.kept if span[0] == name] for name in ("batch", "wavefront")}
    assert all(kept.values()), kept
    for first, last in kept["wavefront"]:
        for start, end in kept["batch"]:
            assert last <= start or end <= first, (mode, (first, last), (start, end))


@EVERY_MODE
@pytest.mark.parametrize("gaps", [(0, 0), (0, 5), (100, 0), (10_000, 10_000)], ids=str)
def test_gap_costs_at_their_extremes(gpu, cpu, mode, fair_share, gaps):
    group = [*draw(7, [30, 12], 2), *draw(8, [30])]
    check(gpu, cpu, group, draw(9, [1, 20, 37, 20, 0], 3), Scoring("BLOSUM62", *gaps), mode)
    if gaps[0] == 10_000:  # does not fit 16 bits
        assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} == {32}
        assert not launched("batch")


@pytest.mark.parametrize(("mode", "extend"), [("global", 25), ("semiglobal", 60)])
def test_long_queries_that_do_not_fit_16_bits_beside_short_ones(gpu, cpu, mode, extend):
    check(gpu, cpu, draw(10, [700, 30, 0, 90]), draw(11, [650, 20, 25]), Scoring("BLOSUM62", 11, extend), mode)
    assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} == {32, 16}


def test_scores_around_the_16_bit_limit_and_far_beyond(gpu, cpu, fair_share):
    scoring = Scoring(STEEP, 3, 1)
    lane = limits.lane16(scoring, "local", scoring.rows(np.zeros(1, dtype=np.uint8)), 1, 1)
    query = draw(12, [600])[0]
    at = lane.limit // 127
    subjects = [query[:n] for n in (*range(at - 3, at + 5), 2 * at, 600)]
    subjects += [np.concatenate((query[: at - 1], query[at:n])) for n in (at + 1, at + 2, 500)]
    expected = check(gpu, cpu, [query, query[:100], query[:0]], subjects, scoring)
    assert (expected < lane.limit).any()
    assert (expected >= lane.limit).any()
    assert expected.max() == 600 * 127
    assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} >= {32}


@pytest.mark.parametrize("capacity", sample([1, 7, 64, 10**6], lambda capacity: capacity in (7, 10**6)))
def test_more_saturated_pairs_than_a_list_holds(gpu, cpu, fair_share, capacity, monkeypatch):
    monkeypatch.setattr(launch, "PAIRS_PER_UNCERTAIN", 1)  # nothing is scored as integers instead
    given_ = SlotMemory.capacity
    monkeypatch.setattr(SlotMemory, "capacity", lambda self, what: min(capacity, given_(self, what)))
    query = draw(13, [330])[0]
    subjects = [query[: 330 - k] for k in range(30)] + draw(14, [20] * 40)
    for group in ([query], [query[:300], query[:9], query]):
        before = len(launched("collect_tasks"))
        expected = check(gpu, cpu, group, subjects, Scoring(STEEP, 3, 1))
        saturated = (expected >= (limits.HALF_END if fair_share else 32_000)).sum()
        lists = len(launched("collect_tasks")) - before
        parts = -(-len(group) * len(subjects) // capacity) if saturated > capacity else 0
        assert lists == 1 + parts, (capacity, saturated)


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@EVERY_MODE
def test_groups_cut_in_parts(gpu, cpu, batched, mode, at_once, monkeypatch):
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
        assert {each.arguments["n_subjects"] for each in launched("wavefront") + launched("batch")} == {200}
        assert len(gpu._uploaded) == 3, "nine queries, three at once"


def test_queries_that_do_not_fit_beside_others_take_their_place(gpu, cpu, monkeypatch):
    # twelve groups of 14 kB each, against two areas of 36 kB for queries
    monkeypatch.setattr(memory, "MIB", 4096)
    chunk = make_chunk(draw(19, [10] * 70))
    profiles = [[each] for each in rows_of_each(20, [200] * 12)]
    groups = [(gpu.prepare(each, LOCAL), cpu.prepare(each, LOCAL)) for each in profiles]
    gpu.plan(Workload(chunk.residues.nbytes, chunk.lengths, [[200]]))
    loaded, held = gpu.load(chunk), cpu.load(chunk)
    for turn in range(2):
        for number, (here, there) in enumerate(groups):
            assert np.array_equal(gpu.score(here, loaded), cpu.score(there, held)), (turn, number)
    assert len(gpu._uploaded) < len(groups)


def test_a_part_is_brought_while_the_one_before_is_scored(gpu, cpu, monkeypatch):
    monkeypatch.setattr(memory, "MIB", 4096)  # so that an area holds one of these
    chunk, thresholds = make_chunk(draw(50, [10] * 70)), HitThresholds([None], [9])
    profiles = [[each] for each in rows_of_each(51, [300] * 4)]
    gpu.plan(Workload(chunk.residues.nbytes, chunk.lengths, [[100]]))
    loaded = gpu.load(chunk)
    assert (gpu.memory_plan.n_areas, len(gpu._slots)) == (2, 2)
    started = []
    for number, group in enumerate(gpu.prepare(each, LOCAL) for each in profiles):
        started.append(gpu.start_scan(group, loaded, thresholds))
        # what was begun before the last one is done, since its area and its slot are taken again
        assert [slot.is_awaited for slot in gpu._slots].count(True) == min(number + 1, 2)
        assert len(gpu._uploaded) == min(number + 1, 2)
    assert [of(found) for found in started] == [hits_of(cpu, each, chunk, thresholds) for each in profiles]


def test_what_is_overwritten_is_done_and_nothing_else_is_waited_for(monkeypatch):
    # with six slots it is the areas that decide
    chunk, awaited = make_chunk(draw(52, [10] * 70)), []
    monkeypatch.setattr(memory, "RESIDENT_SLOTS", 6)
    monkeypatch.setattr(memory, "MIB", 4096)
    with fake_engine(monkeypatch) as gpu:
        gpu.plan(Workload(chunk.residues.nbytes, chunk.lengths, [[100]]))
        loaded = gpu.load(chunk)
        groups = [gpu.prepare([each], LOCAL) for each in rows_of_each(53, [300] * 3)]
        for number in (0, 0, 1, 2):
            gpu.start_scan(groups[number], loaded, HitThresholds([None], [10**6]))
            awaited.append(sum(slot.is_awaited for slot in gpu._slots))
    assert awaited == [1, 2, 3, 2], "the third takes the place of the first, on which two were waiting"


@EVERY_MODE
def test_empty_queries_only(gpu, cpu, mode):
    check(gpu, cpu, [np.zeros(0, dtype=np.uint8)] * 3, draw(21, [5, 0, 9]), mode=mode)
    assert not launched("batch")
    assert not launched("wavefront")


@EVERY_MODE
@pytest.mark.parametrize("lengths", [[1], [0], [1] * 70, [3, 0, 2], [0] * 65, [500]], ids=str)
def test_short_few_and_empty_subjects(gpu, cpu, mode, fair_share, lengths):
    check(gpu, cpu, draw(22, [40, 1]), draw(23, lengths), mode=mode)


# profiles


@EVERY_MODE
def test_profiles_beside_sequences(gpu, cpu, mode, fair_share):
    generator = np.random.default_rng(63)
    group = [random_profile(generator, 30), *draw(64, [25, 0, 61]), random_profile(generator, 0)]
    group += [random_profile(generator, n, -127, 127) for n in (1, 44)]
    check(gpu, cpu, group, draw(65, [*range(0, 40, 3), *[12] * 90], 27), mode=mode)
    got = scores_of(gpu, group[:2], chunk := make_chunk(draw(66, [9, 17, 1])), Scoring(), mode)
    for place, subject in enumerate(map(chunk.subject, range(3))):
        assert got[0, place] == reference.score(group[0], subject, Scoring(), mode)


@pytest.mark.parametrize("highest", [127, 100])
def test_profiles_with_scores_around_the_16_bit_limit(gpu, cpu, fair_share, highest):
    # BLOSUM62 has no score beyond 11: a lane's limit must follow from the profile
    scoring, generator = Scoring("BLOSUM62", 3, 1), np.random.default_rng(67)
    profile = random_profile(generator, 32_768 // highest + 60, -highest, -1)
    query = profile.codes
    profile.scores[np.arange(len(query)), query] = highest
    at = limits.lane16(scoring.with_bounds_for([profile]), "local", profile, 1, 1).limit // highest
    lengths = (*range(at - 3, at + 5), at + 50)
    subjects = [query[:n] for n in lengths] + [np.concatenate((query[: at - 1], query[at : at + 9]))]
    expected = check(gpu, cpu, [profile, query[:100]], subjects, scoring)
    assert expected[0].max() >= highest * (at + 2) > 32_768 - 2 * highest


@EVERY_MODE
@pytest.mark.parametrize("fair_share", sample([BATCHED, WAVEFRONT], bool))
@random_cases(15, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), scorings, st.sampled_from([(-127, 127), (-127, -1), (-1, 127), (-4, 6), (0, 0)]))
def test_random_profiles(cpu, mode, fair_share, seed, scoring, bounds):
    generator = np.random.default_rng(seed)
    group = [random_profile(generator, int(n), *bounds) for n in generator.integers(0, 60, 3)]
    subjects = draw(seed, generator.integers(0, 40, 9), 27)
    with pytest.MonkeyPatch.context() as patch, fake_engine(patch) as gpu:
        patch.setattr(launch, "FAIR_SHARE", fair_share)
        check(gpu, cpu, [*group, subjects[0]], subjects, scoring, mode)


def test_gap_costs_by_position_are_refused(gpu):
    profile = random_profile(np.random.default_rng(68), 20)
    varied = replace(profile, gaps=PositionGapCosts.uniform(20, 11, 1))
    with pytest.raises(InputError, match=r"of 20 positions has gap costs by position, .*; use --engine cpu"):
        gpu.prepare([profile, varied], Recurrence(Scoring(), "local"))


# hits


def of(pending):
    """Return the places and scores of each query's hits."""
    return [sorted(zip(each.indices.tolist(), each.scores.tolist(), strict=True)) for each in pending.wait()]


def hits_of(engine, profiles, chunk, thresholds, mode="local"):
    group = engine.prepare(profiles, Recurrence(Scoring(), mode))
    return of(engine.start_scan(group, engine.load(chunk), thresholds))


def check_hits(gpu, cpu, profiles, chunk, thresholds, mode="local"):
    expected, got = (hits_of(engine, profiles, chunk, thresholds, mode) for engine in (cpu, gpu))
    assert got == expected, ([len(hits) for hits in got], [len(hits) for hits in expected])
    return got


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
def test_hits_are_those_of_all_scores(gpu, cpu, batched, capacity, part, by_length, least, monkeypatch):
    given_ = SlotMemory.capacity
    monkeypatch.setattr(SlotMemory, "capacity", lambda self, what: min(capacity, given_(self, what)))
    monkeypatch.setattr(queries, "PART_QUERIES", part)
    lengths = [40, *np.random.default_rng(24).integers(0, 41, 1_000)]
    chunk, profiles = make_chunk(draw(25, lengths)), rows_of_each(26, [50, 0, 20, 33])
    tables = [None if table is None else table.astype(np.int64) for table in by_length]
    check_hits(gpu, cpu, profiles, chunk, HitThresholds(tables, least))


def test_more_hits_than_come_back_at_once(gpu, cpu):
    chunk, profiles = make_chunk(draw(27, [12] * 900, 3)), rows_of_each(28, [9, 14, 20], 3)
    for least, more in ((1, True), (25, False)):
        found = check_hits(gpu, cpu, profiles, chunk, HitThresholds([None] * 3, [least] * 3))
        assert (sum(map(len, found)) > HITS_AT_ONCE) == more, least


@EVERY_MODE
@pytest.mark.parametrize("least", [-(10**6), -40, 0, 1])
def test_hits_with_an_empty_side(gpu, cpu, mode, least):
    # nothing pairs: 0, but in global mode a gap, which a threshold below 0 may take
    chunk = make_chunk(draw(29, [9, 5, 1, 0, 0]))
    check_hits(gpu, cpu, rows_of_each(30, [20, 0, 3]), chunk, HitThresholds([None] * 3, [least] * 3), mode)


def test_two_finds_in_flight_and_results_that_are_taken_late(gpu, cpu):
    chunks = [make_chunk(draw(31 + k, [20] * (70 + k))) for k in range(2)]
    profiles, thresholds = rows_of_each(40, [15, 25]), HitThresholds([None, None], [12, 14])
    group = gpu.prepare(profiles, LOCAL)
    lengths = np.concatenate([chunk.lengths for chunk in chunks])
    gpu.plan(Workload(sum(chunk.residues.nbytes for chunk in chunks), lengths, [[15, 25]]))
    loaded = [gpu.load(chunk) for chunk in chunks]
    pending = [gpu.start_scan(group, each, thresholds) for each in loaded for _ in range(3)]
    expected = [hits_of(cpu, profiles, chunk, thresholds) for chunk in chunks]
    assert [of(each) for each in pending[::-1]] == [expected[1]] * 3 + [expected[0]] * 3


def test_thresholds_that_a_find_in_flight_uses_are_not_overwritten(gpu, cpu):
    # a job's thresholds by length never change, but an engine may be asked with others while one answer is awaited
    chunk, profiles = make_chunk(draw(61, [20] * 90)), rows_of_each(62, [15, 25])
    one, other = (HitThresholds([np.full(21, least, dtype=np.int64)] * 2, [None, None]) for least in (12, 18))
    group, loaded = gpu.prepare(profiles, LOCAL), gpu.load(chunk)
    pending = [gpu.start_scan(group, loaded, one), gpu.start_scan(group, loaded, one)]
    assert sum(each.is_awaited for each in gpu._slots) == 2, "the same thresholds let both run"
    pending.append(gpu.start_scan(group, loaded, other))
    assert sum(each.is_awaited for each in gpu._slots) == 1, "all others are done before theirs are overwritten"
    for found, thresholds in zip(pending, (one, one, other), strict=True):
        assert of(found) == hits_of(cpu, profiles, chunk, thresholds)


@EVERY_MODE
@pytest.mark.parametrize(("capability", "half"), [((7, 5), 0), ((8, 9), 1), ((12, 0), 1)])
def test_what_other_devices_take(cpu, batched, mode, capability, half, monkeypatch):
    """Half precision from 8.0 on, and 32 bits instead of 16-bit integers where these are emulated."""
    monkeypatch.setattr(launch, "LONG_COLUMNS", 40)
    query = draw(13, [330])[0]
    subjects = [query[: 330 - k] for k in range(30)] + draw(14, [38] * 40)
    with fake_engine(monkeypatch) as gpu:
        gpu.info = replace(gpu.info, capability=capability)
        check(gpu, cpu, [query, query[:30]], subjects, Scoring(STEEP, 3, 1) if mode == "local" else None, mode)
        emulated = capability < (9, 0)
        assert {each.defines["SWSEARCH_BITS"] for each in launched("wavefront")} <= ({32} if emulated else {16, 32})
        halves = [each.defines["SWSEARCH_HALF"] for each in launched("batch")]
    if mode != "local":
        assert set(halves) == {0}
    else:
        assert halves[0] == half
        assert 0 in halves if capability == (12, 0) else len(set(halves)) == 1
