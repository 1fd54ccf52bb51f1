"""The GPU's pair aligner: its own kernels, on the CPU everywhere and on a GPU where there is one.

Every result equals the reference's, or where that would take too long the bounded-memory traceback's, which
test_alignment.py compares with it.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import numpy_traceback as traceback
from support.cases import any_codes, modes_with_ends, random_codes, random_profile, scorings
from support.host_pairs import HostDevice, HostFunction, host_aligner
from support.samples import sample
from swsearch import reference
from swsearch import scoring as scoring_module
from swsearch.alignment_table import ALIGNMENT_COLUMNS
from swsearch.blocks import apply_mask, letters_with_mask
from swsearch.engines.cpu.pairs import CpuPairAligner
from swsearch.engines.gpu.device import DeviceInfo, GpuMemoryError
from swsearch.engines.gpu.pairs import aligner as aligner_module
from swsearch.engines.gpu.pairs import long_pair, plan, short_pairs
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner
from swsearch.engines.gpu.pairs.found import FoundAlignment
from swsearch.engines.gpu.pairs.handles import Scratch
from swsearch.engines.gpu.pairs.letters import letters_in, letters_of
from swsearch.engines.gpu.variants import PairVariant, pair_variants, pairs_variants
from swsearch.engines.pools import PoolPairs, make_pool, rows_pool
from swsearch.errors import EngineError, GpuUnavailableError, InputError
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, PositionGapCosts, QueryProfile, Scoring, codes_of, dna_matrix

DNA = Scoring(dna_matrix(), 10, 1)
LINEAR = Scoring(gap_open=0, gap_extend=2)
EXHAUSTIVE = pytest.mark.exhaustive
H200 = DeviceInfo(0, "H200", (9, 0), 132, 140 << 30, 227 << 10, (13, 0))

MODES = [
    ("local", None),
    ("global", None),
    ("semiglobal", None),
    ("semiglobal", Ends.parse("subject")),
    ("semiglobal", Ends.parse("query-start,subject-end")),
    ("semiglobal", Ends.parse("query-end")),
]
FEW = [MODES[0], MODES[1], MODES[4]]
"""Those of a quick run: the last has ends that are free and ends that are not, on both sides."""


def summary(pair):
    return pair.score, pair.query_start, pair.subject_start, pair.cigar


def check_tables(found, expected):
    """Compare a table with the beginning of another."""
    for name in ALIGNMENT_COLUMNS:
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()[: len(found)], name
    assert found.cigar_strings() == expected.cigar_strings()[: len(found)]


def related(generator, length, letters, changes=0.15):
    """Return a sequence and a changed copy, with a long gap in each."""
    query = random_codes(generator, length, letters)
    subject = query[generator.random(length) > changes / 3]
    changed = generator.random(len(subject)) < changes
    subject = np.where(changed, random_codes(generator, len(subject), letters), subject)
    cut = length // 3
    return query, np.concatenate((subject[:cut], random_codes(generator, length // 5, letters), subject[cut + 20 :]))


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def make_aligner(request, monkeypatch):
    """Return a function of memory and schedule that makes the aligner: on the CPU, or on a GPU."""
    if request.param == "host":
        return lambda memory=None, seed=0: host_aligner(monkeypatch, memory, seed)
    try:
        GpuPairAligner().close()
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    return lambda memory=None, seed=0: GpuPairAligner(memory=memory)


@pytest.mark.parametrize(("mode", "ends"), sample(MODES, FEW.__contains__))
@pytest.mark.parametrize("scoring", [DNA, Scoring(), LINEAR], ids=["dna", "blosum", "linear"])
def test_pairs_equal_the_reference(make_aligner, mode, ends, scoring):
    generator = np.random.default_rng(4)
    letters = 4 if scoring is DNA else 20
    with make_aligner(seed=3) as aligner:
        for length in (300, 530):
            query, subject = related(generator, length, letters)
            expected = traceback.trace(query, subject, scoring, mode, ends=ends)
            assert summary(aligner.align(query, subject, Recurrence(scoring, mode, ends))) == expected
            assert aligner.score(query, subject, Recurrence(scoring, mode, ends)) == expected[0]


@pytest.mark.parametrize(
    "variant", sample(pair_variants(), lambda one: one.rows == 8 and (one.letters == 8) == one.local), ids=str
)
def test_every_variant_around_lanes_and_strips(make_aligner, variant, monkeypatch):
    letters = {4: 4, 8: 7, 32: 20}[variant.letters]
    scoring = Scoring() if variant.letters == 32 else DNA
    modes = [("local", None)] if variant.local else [mode for mode in MODES if mode[0] != "local"]
    generator = np.random.default_rng(variant.rows)

    def choose(rows, n, count, local, directions, info):
        chosen = PairVariant(variant.rows, count, local, directions)
        strips = -(-rows // chosen.strip_rows)
        return plan.PairLaunch(chosen, strips, min(2, strips), 1)

    monkeypatch.setattr(long_pair, "choose_launch", choose)
    strip = variant.strip_rows
    lengths = [(1, 1), (variant.rows, 31), (variant.rows + 1, 64), (strip - 1, 33), (strip, 32), (strip + 1, 95)]
    lengths += [(3 * strip + 5, 40)]
    with make_aligner(seed=1) as aligner:
        for place, (m, n) in enumerate(lengths):
            # all letters occur, so that the lookup is the one that is meant
            query = np.concatenate((random_codes(generator, m, letters)[:-1], [letters - 1])).astype(np.uint8)
            subject = np.concatenate((np.arange(letters), random_codes(generator, n, letters))).astype(np.uint8)
            mode, ends = modes[place % len(modes)]
            if variant.directions:
                found = aligner.align(query, subject, Recurrence(scoring, mode, ends))
                assert summary(found) == traceback.trace(query, subject, scoring, mode, ends=ends), (m, n, mode, ends)
            else:
                expected = traceback.trace(query, subject, scoring, mode, ends=ends)[0]
                assert aligner.score(query, subject, Recurrence(scoring, mode, ends)) == expected, (m, n, mode, ends)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(any_codes(70), any_codes(70), scorings, modes_with_ends, st.integers(0, 9))
def test_any_pair_and_scoring(make_aligner, query, subject, scoring, mode_and_ends, seed):
    mode, ends = mode_and_ends
    expected = reference.align(query, subject, scoring, mode, ends)
    with make_aligner(seed=seed) as aligner:
        assert summary(aligner.align(query, subject, Recurrence(scoring, mode, ends))) == expected
        assert aligner.score(query, subject, Recurrence(scoring, mode, ends)) == expected[0]
        several = list(aligner.align_many([(query, subject), (query[1:], subject)], Recurrence(scoring, mode, ends)))
    assert summary(several[0]) == expected
    assert summary(several[1]) == reference.align(query[1:], subject, scoring, mode, ends)


@pytest.mark.parametrize(("mode", "ends"), MODES)
@pytest.mark.parametrize("seed", sample([0, 5], bool))
@pytest.mark.usefixtures("divided")
def test_rows_and_columns_that_are_kept_change_nothing(make_aligner, mode, ends, seed):
    generator = np.random.default_rng(seed)
    query, subject = related(generator, 2_000, 4)
    expected = traceback.trace(query, subject, DNA, mode, ends=ends)
    for memory in (2_000_000, 1_000_000):
        with make_aligner(memory, seed) as aligner:
            if memory == 1_000_000 and aligner.info.multiprocessors > 2:
                continue  # rings of that many warps alone would not fit
            found = aligner.align(query, subject, Recurrence(DNA, mode, ends))
            assert summary(found) == expected
            assert aligner.usage.peak_bytes <= memory
            assert aligner.usage.launches > 10


@pytest.fixture
def divided(monkeypatch):
    """Let directions have room for at most two strips by 600 columns: pairs are divided, some parts again."""
    monkeypatch.setattr(long_pair, "DIRECT_BYTES", 80_000)
    monkeypatch.setattr(plan, "LEAST_SPACING", 256)


@pytest.mark.usefixtures("divided")
def test_a_long_gap_crosses_kept_rows_and_columns(make_aligner):
    query = random_codes(np.random.default_rng(2), 1_500, 4)
    scoring = Scoring(dna_matrix(), 20, 0)  # long gaps cost no more than short ones
    for pair in ((query, np.delete(query, slice(300, 1_200))), (np.delete(query, slice(300, 1_200)), query)):
        with make_aligner(2_000_000) as aligner:
            found = aligner.align(*pair, Recurrence(scoring, "global"))
        assert summary(found) == traceback.trace(*pair, scoring, "global")
        assert max(length for length, op in found.cigar if op != "M") >= 890


@pytest.mark.parametrize(("mode", "ends"), sample(MODES, FEW.__contains__))
@pytest.mark.parametrize("variant", pairs_variants()[::2], ids=str)
def test_many_short_pairs_in_one_launch(make_aligner, mode, ends, variant):
    generator = np.random.default_rng(8)
    letters = {4: 4, 8: 7, 32: 24}[variant.letters]
    scoring = Scoring() if variant.letters == 32 else DNA
    lengths = [(1, 1), (1, 40), (40, 1), (8, 32), (255, 33), (256, 64), (257, 31), (0, 5), (7, 0), (300, 300)]
    pairs = [tuple(random_codes(generator, length, letters) for length in pair) for pair in lengths]
    pairs += [related(generator, length, letters) for length in (60, 120, 270)]
    with make_aligner(seed=2) as aligner:
        found = list(aligner.align_many(pairs, Recurrence(scoring, mode, ends)))
    for (query, subject), one in zip(pairs, found, strict=True):
        assert summary(one) == traceback.trace(query, subject, scoring, mode, ends=ends)


@pytest.mark.parametrize("rows", [(10, 266), (266, 10)])
def test_of_equal_ends_the_first_column_counts_whatever_strip_it_is_in(make_aligner, rows):
    # two stretches of the query in the same lane of two strips; the other letters match nothing
    query, subject = np.full(520, 0, dtype=np.uint8), np.full(120, 1, dtype=np.uint8)
    for letter, row, column in zip((2, 3), rows, (70, 5), strict=True):
        query[row : row + 5] = subject[column : column + 5] = letter
    with make_aligner() as aligner:
        several = list(aligner.align_many([(query, subject)] * 2, Recurrence(DNA, "local")))
        alone = aligner.align(query, subject, Recurrence(DNA, "local"))
    expected = traceback.trace(query, subject, DNA, "local")
    assert [summary(one) for one in (*several, alone)] == [expected] * 3


def test_runs_that_do_not_fit_are_asked_for_again(make_aligner, monkeypatch):
    monkeypatch.setattr(short_pairs, "RUN_SHARE", 1)
    generator = np.random.default_rng(8)
    pairs = [related(generator, 100, 4) for _ in range(60)]
    with make_aligner() as aligner:
        found = list(aligner.align_many(pairs, Recurrence(DNA, "global")))
        assert aligner.usage.launches > 1
    assert [summary(one) for one in found] == [traceback.trace(*pair, DNA, "global") for pair in pairs]


@pytest.mark.parametrize("mode", ["local", pytest.param("global", marks=pytest.mark.exhaustive)])
def test_pools_are_the_references_in_columns(make_aligner, monkeypatch, mode):
    monkeypatch.setattr(short_pairs, "RUN_SHARE", 1)
    monkeypatch.setattr(aligner_module, "BATCH_BYTES", 250)
    monkeypatch.setattr(aligner_module, "SHORT_BYTES", 40_000)
    generator = np.random.default_rng(5)
    both = [related(generator, length, 20) for length in (20, 30, 30, 45)]
    queries = make_pool([np.zeros(0, dtype=np.uint8), *(query for query, _ in both)])
    subjects = make_pool([*(subject for _, subject in both), random_codes(generator, 300), queries[0][:0]])
    places = [(2, 3), (4, 0), (0, 1), (1, 4), (3, 5), (2, 2), (2, 3), (4, 1), (0, 5), (1, 0)]
    pairs = np.array(places)
    recurrence, letters = Recurrence(Scoring(), mode), (None, letters_with_mask(subjects[0], [(10, 30)]))
    subjects = apply_mask(subjects[0], [(10, 30)]), subjects[1]
    with CpuPairAligner(threads=1) as cpu:
        expected = cpu.align_pools(PoolPairs(queries, subjects, pairs, letters=letters), recurrence)
    with make_aligner() as aligner:
        found = aligner.align_pools(PoolPairs(queries, subjects, pairs, letters=letters), recurrence)
        assert aligner.usage.launches > 3
        alone = aligner.align_pools(PoolPairs(queries, subjects, pairs[:1], letters=letters), recurrence)
        assert len(aligner.align_pools(PoolPairs(queries, subjects, pairs[:0]), recurrence)) == 0
        with pytest.raises(ValueError, match="expected places of sequences"):
            aligner.align_pools(PoolPairs(queries, subjects, pairs + 1), recurrence)
    check_tables(found, expected)
    check_tables(alone, expected)


@pytest.mark.parametrize(("mode", "ends"), sample(MODES, FEW.__contains__))
@pytest.mark.parametrize(("lowest", "highest"), sample([(-9, 12), (-127, 127), (-127, -1)], lambda one: one[1] == 12))
def test_profiles_equal_the_reference(make_aligner, mode, ends, lowest, highest):
    generator, scoring = np.random.default_rng(11), Scoring()
    lengths = [(1, 1), (257, 40), (300, 70), (40, 33), (0, 5), (7, 0)]
    pairs = [(random_profile(generator, m, lowest, highest), random_codes(generator, n)) for m, n in lengths]
    pairs += [(pairs[3][0], random_codes(generator, 20)), (random_codes(generator, 40), pairs[3][1])]
    recurrence = Recurrence(scoring, mode, ends)
    expected = [reference.align(*pair, scoring, mode, ends) for pair in pairs]
    with make_aligner(seed=3) as aligner:
        found = list(aligner.align_many(pairs, recurrence))
        assert [summary(each) for each in found] == expected
        assert [each.recompute_score() for each in found] == [each[0] for each in expected]
        assert [each.query_rows for each in found[:7]] == [query for query, _ in pairs[:7]]
        assert found[-1].query_rows is None
        assert list(aligner.score_many(pairs, recurrence)) == [each[0] for each in expected]
        for pair, right in zip(pairs[1:3], expected[1:3], strict=True):
            assert summary(aligner.align(*pair, recurrence)) == right
            assert aligner.score(*pair, recurrence) == right[0]


@pytest.mark.parametrize(
    "mode", ["local", *(pytest.param(mode, marks=EXHAUSTIVE) for mode in ("global", "semiglobal"))]
)
@pytest.mark.usefixtures("divided")
def test_rows_of_a_profile_follow_the_rectangles(make_aligner, mode):
    # kept rows and columns: rectangles begin at other rows than the first
    generator = np.random.default_rng(12)
    query, subject = random_profile(generator, 560, -6, 5), random_codes(generator, 600)
    with make_aligner(1_500_000, 2) as aligner:
        if aligner.info.multiprocessors > 2:
            pytest.skip("rings of that many warps would not fit")
        found = aligner.align(query, subject, Recurrence(Scoring(), mode))
        assert aligner.usage.launches > 10
    assert summary(found) == reference.align(query, subject, Scoring(), mode)


@pytest.mark.parametrize("mode", ["local", pytest.param("global", marks=EXHAUSTIVE)])
def test_pools_of_profiles_are_the_references_in_columns(make_aligner, monkeypatch, mode):
    monkeypatch.setattr(aligner_module, "SHORT_BYTES", 40_000)
    generator, recurrence = np.random.default_rng(13), Recurrence(Scoring(), mode)
    every = [random_profile(generator, n) for n in (20, 0, 35, 300)] + [random_codes(generator, 25)]
    queries, rows = make_pool([codes_of(query) for query in every]), rows_pool(every, Scoring())
    subjects = make_pool([random_codes(generator, n, 20) for n in (30, 44, 9)])
    pairs = np.array([(0, 1), (3, 0), (2, 2), (4, 0), (1, 1), (0, 2), (2, 1)])
    with CpuPairAligner(threads=1) as cpu:
        expected = cpu.align_pools(PoolPairs(queries, subjects, pairs, rows=rows), recurrence)
    with make_aligner() as aligner:
        found = aligner.align_pools(PoolPairs(queries, subjects, pairs, rows=rows), recurrence)
        with pytest.raises(ValueError, match="rows, one for each residue"):
            aligner.align_pools(PoolPairs(make_pool([every[0].codes]), subjects, pairs[:1], rows=rows), recurrence)
    check_tables(found, expected)


def test_gap_costs_by_position_are_refused(monkeypatch):
    profile = random_profile(np.random.default_rng(14), 20)
    varied = replace(profile, gaps=PositionGapCosts.uniform(20, 11, 1))
    subject, recurrence = random_codes(np.random.default_rng(15), 30), Recurrence(Scoring())
    pool, pairs = make_pool([varied.codes]), np.zeros((1, 2), dtype=np.int64)
    with host_aligner(monkeypatch) as aligner:
        for ask in (
            lambda: aligner.align(varied, subject, recurrence),
            lambda: list(aligner.align_many([(profile, subject), (varied, subject)], recurrence)),
            lambda: aligner.align_pools(PoolPairs(pool, make_pool([subject]), pairs, rows=varied), recurrence),
        ):
            with pytest.raises(InputError, match=r"gap costs by position, .*; use --engine cpu"):
                ask()


def test_nothing_to_align_is_no_alignment(make_aligner):
    with make_aligner() as aligner:
        assert list(aligner.align_many([], Recurrence(DNA, "global"))) == []
        alone = np.zeros(3, dtype=np.uint8), np.ones(4, dtype=np.uint8)
        assert summary(aligner.align(*alone, Recurrence(DNA, "local"))) == (0, 0, 0, ())


def test_memory_that_is_short_is_told_and_given_back(monkeypatch):
    generator = np.random.default_rng(2)
    query, subject = related(generator, 900, 4)
    with host_aligner(monkeypatch, 30_000) as aligner:
        with pytest.raises(GpuMemoryError, match="--gpu-memory"):
            aligner.align(query, subject, Recurrence(DNA, "global"))
        assert aligner._device.held == 0


def test_scratch_memory_is_lent_up_to_what_is_free_and_taken_back(monkeypatch):
    with host_aligner(monkeypatch, 30_000) as aligner:
        device, scratch = aligner._device, aligner._handles.scratch
        with device.active("testing"):
            with scratch.lent():
                scratch.take(20_000)
                assert (scratch.left, scratch.peak, device.held) == (10_000, 20_000, 1)
                with pytest.raises(GpuMemoryError, match="--gpu-memory"):
                    scratch.take(10_001)
            assert (scratch.used, device.held) == (0, 0)
            monkeypatch.setattr(type(device), "free_memory", lambda self: 10_000)
            with scratch.lent():
                assert (scratch.left, scratch.peak) == (9_200, 0)


def test_handles_are_of_one_device(monkeypatch):
    with host_aligner(monkeypatch) as aligner, pytest.raises(ValueError, match="another device"):
        replace(aligner._handles, scratch=Scratch(HostDevice(H200), 100))


def test_scores_beyond_32_bits_are_refused(monkeypatch):
    query, recurrence = np.zeros(300_000, dtype=np.uint8), Recurrence(Scoring(dna_matrix(), 0, 10_000), "global")
    with host_aligner(monkeypatch) as aligner:
        with pytest.raises(InputError, match="more than 32 bits"):
            aligner.score(query, query, recurrence)
        # with the matrix's 5 it would fit
        rows = QueryProfile(np.full((300, 32), 127, dtype=np.int8), query[:300], is_specific=True)
        monkeypatch.setattr(scoring_module, "LANE_BITS", (8, 16))
        with pytest.raises(InputError, match="may reach 38100"):
            aligner.score(rows, query[:300], Recurrence(Scoring()))


def test_an_alignment_that_does_not_add_up_is_an_error(monkeypatch):
    wrong = FoundAlignment(99, 0, 0, ((3, "M"),))
    monkeypatch.setattr(long_pair.LongPair, "align", lambda self: wrong)
    query = np.zeros(3, dtype=np.uint8)
    with (
        host_aligner(monkeypatch) as aligner,
        pytest.raises(EngineError, match="adds up to 15 instead of its score 99"),
    ):
        aligner.align(query, query, Recurrence(DNA, "global"))


def test_blocks_are_never_more_than_are_resident():
    for rows in (1, 100, 5_000, 37_000, 1_660_000, 40_000_000):
        for count in (4, 8, 32):
            for directions in (False, True):
                launch = plan.choose_launch(rows, rows, count, False, directions, H200)
                assert 1 <= launch.blocks <= H200.multiprocessors
                assert 1 <= launch.warps <= 16
                assert launch.warps * launch.variant.warp_bytes <= H200.shared_limit
                assert launch.strips * launch.variant.strip_rows >= rows


@pytest.mark.parametrize("length", [37_000, 1_660_000, 4_640_000])
def test_kept_rows_and_columns_fit_what_is_allowed(length):
    launch = plan.choose_launch(length, length, 4, False, False, H200)
    spacing = plan.choose_spacing(launch, length, length, 1_500 << 20)
    assert spacing.row_bytes(launch, length) + spacing.column_bytes(length, length) <= 1_500 << 20
    assert spacing.rows % launch.variant.strip_rows == 0
    with pytest.raises(GpuMemoryError):
        plan.choose_spacing(launch, length, length, 1_000)


def test_letters_that_score_alike_are_one():
    codes, everything = dna_matrix().alphabet.encode("ACGTUNRY"), np.arange(20, dtype=np.uint8)
    assert letters_of(DNA, codes[:4], codes[:5]).count == 4  # U is T
    assert letters_of(DNA, codes, codes).count == 8
    assert letters_of(Scoring(), everything, everything).count == 32
    # a query of one letter sees few different ones
    assert letters_of(Scoring(), everything[:1], everything).count <= 8
    assert letters_in(np.array([3, 3, 0], dtype=np.uint8)).tolist() == [0, 3]


def test_pairs_of_a_launch_are_alike_in_size():
    sizes = [10, 4_000, 900, 39, 4_001, 1_000, 41]
    groups = short_pairs.classes(np.array(sizes))
    assert sorted(place for group in groups for place in group) == list(range(7))
    assert [[sizes[place] for place in group] for group in groups] == [[4_001, 4_000], [1_000, 900], [41, 39], [10]]


def test_the_emulation_runs_what_the_plan_launches(monkeypatch):
    with host_aligner(monkeypatch) as aligner:
        aligner.align(*related(np.random.default_rng(1), 300, 4), Recurrence(DNA, "global"))
    assert [kernel.source for kernel, _, _ in HostFunction.launches] == ["pair", "trace"]
