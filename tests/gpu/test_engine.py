"""The GPU engine on a GPU: every variant of the table, every path, against the CPU engine and the reference."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.cases import check, make_chunk, plan_of, random_codes, random_profile, scores_of, scorings
from support.samples import random_cases
from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.engines.base import HitThresholds
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.engines.gpu import launch, queries, tracks, variants
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.slot_memory import SlotMemory
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, load_matrix

pytestmark = pytest.mark.gpu

TRYPTOPHAN = PROTEIN.letters.index("W")


@pytest.fixture(scope="module")
def gpu(has_gpu):
    """The GPU engine, or a skip that says why."""
    with GpuEngine() as engine:
        kernels = [variant.kernel for variant in [*variants.batch_variants(), *variants.wavefront_variants()]]
        with engine._device.active("compiling"):
            engine.kernels.require([*kernels, variants.SCORES])
        yield engine


@pytest.fixture(scope="module")
def cpu():
    """The CPU engine, itself compared with the reference in test_engines.py."""
    with CpuEngine() as engine:
        yield engine


@pytest.fixture
def batch_always(monkeypatch):
    """Few subjects are enough for the inter-task kernel."""
    monkeypatch.setattr(launch, "FAIR_SHARE", 10**9)


def subjects_around_tiles(generator, n=300, longest=90):
    lengths = [*range(20), 31, 32, 33, 63, 64, 65, longest, *generator.integers(0, longest, n - 27).tolist()]
    return [random_codes(generator, int(length)) for length in lengths]


@pytest.mark.parametrize("variant", variants.batch_variants(), ids=str)
def test_every_inter_task_variant(gpu, cpu, variant, monkeypatch, batch_always):
    monkeypatch.setattr(queries, "plan_batches", plan_of(variant))
    rows = variant.rows
    generator = np.random.default_rng(rows)
    subjects = subjects_around_tiles(generator)
    around = [1, rows - 1, rows, rows + 1, 2 * rows, 5 * rows + 3]
    check(gpu, cpu, [random_codes(generator, n) for n in around], subjects, Scoring(), variant.mode)
    # one query at every number of stages, and around whole passes
    for n in (rows, 2 * rows, 3 * rows - 1, 8 * rows, 16 * rows - 1, 16 * rows, 16 * rows + 1, 33 * rows + 5):
        check(gpu, cpu, [random_codes(generator, n)], subjects, Scoring(), variant.mode)


@pytest.mark.parametrize("variant", variants.wavefront_variants(), ids=str)
def test_every_wavefront_variant(gpu, cpu, variant, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", 0)
    monkeypatch.setattr(tracks, "choose_wavefront_rows", lambda lengths: variant.rows)
    if variant.bits == 32:
        monkeypatch.setattr(queries, "lane16", lambda *arguments: None)
    generator = np.random.default_rng(variant.rows)
    subjects = subjects_around_tiles(generator, 150)
    whole = variant.pass_rows
    lengths = [1, variant.rows, variant.rows + 1, whole - 1, whole, whole + 1, 2 * whole + 7]
    check(gpu, cpu, [random_codes(generator, n) for n in lengths], subjects, Scoring(), variant.mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 129, 5000])
def test_any_number_of_subjects_and_queries(gpu, cpu, mode, count):
    generator = np.random.default_rng(count)
    subjects = [random_codes(generator, int(n)) for n in generator.integers(0, 120, count)]
    for lengths in ([9], [400], [30, 0, 200], generator.integers(1, 300, 21).tolist()):
        check(gpu, cpu, [random_codes(generator, int(n)) for n in lengths], subjects, Scoring(), mode)


@pytest.mark.parametrize("mode", MODES)
def test_real_lengths_take_both_kernels(gpu, cpu, mode):
    generator = np.random.default_rng(5)
    lengths = np.minimum(generator.lognormal(5.65, 0.8, 200_000).astype(int), 9_000)
    lengths[:3] = (20_000, 9_500, 9_000)
    subjects = [random_codes(generator, int(n), 20) for n in lengths]
    check(gpu, cpu, [random_codes(generator, n, 20) for n in (60, 375, 1_000)], subjects, Scoring(), mode)
    assert {"batch", "wavefront"} <= gpu.usage.launched


@pytest.mark.parametrize("variant", [*variants.batch_variants(), *variants.wavefront_variants()], ids=str)
def test_profiles_in_every_variant(gpu, cpu, variant, monkeypatch):
    if isinstance(variant, variants.BatchVariant):
        monkeypatch.setattr(queries, "plan_batches", plan_of(variant))
        monkeypatch.setattr(launch, "FAIR_SHARE", 10**9)
        whole = 16 * variant.rows
    else:
        monkeypatch.setattr(launch, "FAIR_SHARE", 0)
        monkeypatch.setattr(tracks, "choose_wavefront_rows", lambda lengths: variant.rows)
        whole = variant.pass_rows
        if variant.bits == 32:
            monkeypatch.setattr(queries, "lane16", lambda *arguments: None)
    generator = np.random.default_rng(variant.rows)
    subjects = subjects_around_tiles(generator, 150)
    for bounds in ((-9, 12), (-127, 127), (-127, -1), (-40, 127)):
        group = [random_profile(generator, n, *bounds) for n in (1, variant.rows + 1, whole, whole + 7)]
        check(gpu, cpu, [*group, random_codes(generator, 50)], subjects, Scoring(), variant.mode)


@pytest.mark.parametrize("batched", [True, False])
def test_profiles_around_the_16_bit_limit(gpu, cpu, batched, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", 10**9 if batched else 0)
    generator = np.random.default_rng(8)
    profile = random_profile(generator, 400, -127, -1)
    query = profile.codes
    profile.scores[np.arange(400), query] = 127
    subjects = [query[:n] for n in range(240, 301)] + [query[k : k + 258] for k in range(8)]
    expected = check(gpu, cpu, [profile, query, random_profile(generator, 90)], subjects)
    assert expected.max() == 300 * 127 > 32_767


@random_cases(60, suppress_health_check=list(HealthCheck))
@given(scorings, st.sampled_from(MODES), st.integers(0, 2**32), st.booleans())
def test_random_matrices_and_gap_costs(gpu, cpu, scoring, mode, seed, batched):
    generator = np.random.default_rng(seed)
    letters = int(generator.choice([1, 2, 3, 20, 27]))
    group = [random_codes(generator, int(n), letters) for n in generator.integers(1, 90, 3)]
    subjects = [random_codes(generator, int(n), letters) for n in generator.integers(0, 90, 100)]
    before = launch.FAIR_SHARE
    launch.FAIR_SHARE = 10**9 if batched else 0
    try:
        check(gpu, cpu, group, subjects, scoring, mode)
    finally:
        launch.FAIR_SHARE = before


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("gaps", [(0, 0), (0, 1), (0, 5), (1, 0), (100, 0), (10_000, 10_000)])
def test_gap_costs_at_their_extremes(gpu, cpu, mode, gaps, batch_always):
    generator = np.random.default_rng(7)
    group = [random_codes(generator, 30, k) for k in (2, 20)]
    subjects = [random_codes(generator, n, k) for n in (1, 20, 37) for k in (2, 20)]
    check(gpu, cpu, group, subjects, Scoring(load_matrix("BLOSUM62"), *gaps), mode)


@pytest.mark.parametrize("batched", [True, False])
def test_every_score_around_the_16_bit_limit(gpu, cpu, batched, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", 10**9 if batched else 0)
    scoring = Scoring()
    query = np.full(3_100, TRYPTOPHAN, dtype=np.uint8)
    # tryptophans score 11 each, alanines after them 4, so that scores near the limit are dense
    alanine = PROTEIN.letters.index("A")
    subjects = [query[:n] for n in range(2_960, 3_000)]
    tails = [np.full(k, alanine, dtype=np.uint8) for k in (1, 2)]
    subjects += [np.concatenate((query[:n], tail)) for n in (2_970, 2_975) for tail in tails]
    both = np.concatenate((query[:2_990], np.full(5, alanine, dtype=np.uint8)))
    check(gpu, cpu, [query, both], subjects, scoring, "local")


def test_more_saturated_pairs_than_a_list_holds(gpu, cpu, monkeypatch):
    monkeypatch.setattr(launch, "FAIR_SHARE", 10**9)
    monkeypatch.setattr(SlotMemory, "capacity", lambda self, what: 16)
    query = np.full(3_200, TRYPTOPHAN, dtype=np.uint8)
    check(gpu, cpu, [query], [query[: 3_200 - k] for k in range(70)], Scoring(), "local")


def test_scores_beyond_16_bits_in_every_mode(gpu):
    # 40,000 tryptophans score 440,000 against themselves
    query = np.full(40_000, TRYPTOPHAN, dtype=np.uint8)
    for mode in MODES:
        got = scores_of(gpu, [query, query[:100]], make_chunk([query, query[:100]]), Scoring(), mode)
        tail = Scoring().gap_cost(39_900) if mode == "global" else 0
        assert got.tolist() == [[440_000, 1_100 - tail], [1_100 - tail, 1_100]], mode


def test_scores_are_the_references(gpu, batch_always):
    generator = np.random.default_rng(3)
    group = [random_codes(generator, n) for n in (1, 12, 25, 40)]
    limits = ((1, (-9, 12)), (30, (-9, 12)), (41, (-127, 127)))
    group += [random_profile(generator, n, *bounds) for n, bounds in limits]
    subjects = [random_codes(generator, n) for n in (1, 7, 8, 9, 25, 30, 40, 41)]
    chunk = make_chunk(subjects)
    for mode in MODES:
        got = scores_of(gpu, group, chunk, Scoring(), mode)
        for q, query in enumerate(group):
            for place, subject in enumerate(chunk.subjects.tolist()):
                assert got[q, place] == reference.score(query, subjects[subject], Scoring(), mode), (mode, q, place)


def test_hits_are_those_of_all_scores(gpu, cpu):
    generator = np.random.default_rng(9)
    subjects = [random_codes(generator, int(n), 20) for n in generator.integers(0, 400, 6_000)]
    group = [random_codes(generator, n, 20) for n in (50, 0, 200, 333)]
    chunk, scoring = make_chunk(subjects), Scoring()
    tables = [np.full(401, 40), np.full(401, 40), 20 + np.arange(401) // 10, None]
    for least in ([None, 3, 45, 50], [60, None, None, 1]):  # the last has more hits than fit the first copy
        thresholds = HitThresholds(tables, least)
        found = []
        for engine in (cpu, gpu):
            loaded = engine.load(chunk)
            prepared = engine.prepare([scoring.rows(query) for query in group], Recurrence(scoring, "local"))
            one = engine.start_scan(prepared, loaded, thresholds)
            found.append([sorted(zip(c.indices.tolist(), c.scores.tolist(), strict=True)) for c in one.wait()])
            engine.release(loaded)
        assert found[0] == found[1]
        assert sum(map(len, found[0])) > 20


def test_repeated_runs_and_any_grouping_give_the_same(gpu):
    generator = np.random.default_rng(11)
    subjects = [random_codes(generator, int(n), 20) for n in generator.integers(1, 600, 20_000)]
    group = [random_codes(generator, int(n), 20) for n in generator.integers(1, 900, 7)]
    chunk = make_chunk(subjects)
    expected = scores_of(gpu, group, chunk, Scoring(), "local")
    for _ in range(5):
        assert np.array_equal(scores_of(gpu, group, chunk, Scoring(), "local"), expected)
    alone = [scores_of(gpu, [query], chunk, Scoring(), "local")[0] for query in group]
    assert np.array_equal(np.array(alone), expected)


def test_small_memory_streams_and_gives_the_same_hits(gpu, tmp_path):
    from swsearch import Database, search

    generator = np.random.default_rng(13)
    letters = np.array(list(PROTEIN.letters[:20]))
    made = ["".join(letters[generator.integers(0, 20, int(n))]) for n in generator.lognormal(5.5, 0.7, 60_000)]
    group = [(f"q{k}", made[k][: 40 + 30 * k]) for k in range(12)]
    with Database.from_records(made) as database:
        expected = [
            [(hit.subject_id, hit.score) for hit in result.hits] for result in search(group, database, engine=gpu)
        ]
        assert not gpu.memory_plan.resident or gpu.memory_plan.total > 0
        with GpuEngine(memory=36 << 20) as small:
            got = [
                [(hit.subject_id, hit.score) for hit in result.hits]
                for result in search(group, database, engine=small)
            ]
            assert not small.memory_plan.resident
            assert small.memory_plan.total <= 36 << 20
    assert got == expected
    assert sum(map(len, got)) >= 12
