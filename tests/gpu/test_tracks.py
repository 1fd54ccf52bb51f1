"""How queries are cut into strips for the kernels, and which variants do them; that they fit: test_fake.py."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import modes, random_codes
from support.samples import random_cases
from swsearch.engines.gpu import variants
from swsearch.engines.gpu.tracks import (
    choose_pair,
    plan_batches,
    split_tracks,
)
from swsearch.engines.gpu.variants import Form, WavefrontVariant
from swsearch.options.kinds import MODES
from swsearch.scoring import Scoring

lengths_of_queries = st.lists(st.integers(1, 130), min_size=1, max_size=9)
strip_rows = st.sampled_from([8, 9, 16, 18, 23, 24])
MOST = (8, variants.EMULATED_ROWS, variants.INTEGER_ROWS)
LOCAL = Form("local", True, (11, 1), variants.INTEGER_ROWS)
forms = st.builds(Form, modes, st.booleans(), st.just((11, 1)), st.sampled_from(MOST)).filter(
    lambda form: form.mode == "local" or not form.half
)


def profiles_of(lengths, seed=1):
    generator = np.random.default_rng(seed)
    return [Scoring().rows(random_codes(generator, n)) for n in lengths]


@given(st.dictionaries(st.integers(0, 300), st.integers(1, 5_000), min_size=1, max_size=60), strip_rows)
def test_tracks_are_balanced(lengths, rows):
    halves = split_tracks(lengths, rows)
    assert sorted(halves[0] + halves[1]) == sorted(lengths), lengths
    heights = [sum(-(-lengths[query] // rows) for query in half) for half in halves]
    longest = max(-(-length // rows) for length in lengths.values())
    assert abs(heights[0] - heights[1]) <= longest, (lengths, rows, heights)


@random_cases(40)
@given(st.lists(st.integers(1, 900), min_size=1, max_size=12), forms, st.data())
def test_every_query_is_in_one_launch(lengths, form, data):
    profiles = profiles_of(lengths)
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(lengths))), min_size=1)))
    batches = plan_batches(profiles, chosen, form)
    case = (lengths, chosen, form, [(batch.variant, batch.queries) for batch in batches])
    assert sorted(query for batch in batches for query in batch.queries) == chosen, case
    for batch in batches:
        named = {int(query) for query in batch.strips["query"].reshape(-1) if query >= 0}
        assert named == set(batch.queries), case
        assert batch.variant in variants.batch_variants(), case
        assert batch.variant.rows <= form.highest or form.half, case
        assert (batch.variant.mode, batch.variant.half, batch.variant.gaps) == (form.mode, form.half, form.gaps), case
        # each query ends once in its half (in both halves where they are equal)
        assert (batch.strips["last"] >= 0).sum() == len(batch.queries) * (3 - batch.variant.queries), case


def test_equal_queries_go_in_pairs_and_one_alone_goes_alone():
    profiles = profiles_of([192, 192, 192, 192, 960])
    (pair,) = plan_batches(profiles, [0, 1, 2, 3], LOCAL)
    assert (pair.variant.queries, len(pair.strips) * pair.variant.rows) == (2, 384)
    (single,) = plan_batches(profiles, [4], LOCAL)
    assert single.variant.queries == 1
    mixed = plan_batches(profiles_of([9_000, 240, 240]), [0, 1, 2], LOCAL)
    assert [batch.variant.queries for batch in mixed] == [1, 2]


@given(st.integers(1, 3_000), st.sampled_from([1, 2, 4, 8, 16]))
def test_a_pipeline(n_strips, warps):
    stages = variants.choose_pipeline(n_strips, warps)
    assert stages & (stages - 1) == 0, n_strips
    assert stages <= min(warps, variants.BLOCK_WARPS), (n_strips, warps)
    if n_strips < warps:
        assert stages < 2 * n_strips, "not twice as many warps as strips"
    passes = -(-n_strips // stages)
    if n_strips <= warps // 2:
        assert passes == 1, (n_strips, warps, stages)
    # a short track is done in one pass, or half a block leaves fewer warps without a strip
    assert passes * stages <= -(-n_strips // warps) * warps, (n_strips, warps, stages)


def cost_of(lengths, rows):
    """Compute the cost of a track, independently of the product."""
    n = sum(-(-length // rows) for length in lengths)
    stages = variants.choose_pipeline(n)
    return -(-n // stages) * stages * (rows + variants.STRIP_OVERHEAD) + rows * min(1, variants.LAST_JOBS / stages)


def heights_of(form, queries):
    """Strip heights of the table that a form allows."""
    kind = queries, form.mode, form.half
    rows = [each.rows for each in variants.batch_variants() if (each.queries, each.mode, each.half) == kind]
    return [each for each in rows if form.half or each <= form.highest]


@given(st.integers(1, 40_000), forms)
def test_no_other_height_is_cheaper_for_a_query_alone(length, form):
    chosen = variants.choose_single(length, form)
    costs = {rows: cost_of([length], rows) for rows in heights_of(form, 1)}
    assert costs[chosen.rows] == min(costs.values()), (length, form, chosen)
    assert chosen.rows == max(rows for rows, cost in costs.items() if cost == costs[chosen.rows]), (
        "the higher of equals"
    )
    assert (chosen.queries, chosen.mode, chosen.half) == (1, form.mode, form.half)


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=20), forms)
def test_no_other_height_is_cheaper_for_pairs(lengths, form):
    named = dict(enumerate(lengths))
    cost, variant, halves = choose_pair(named, form)
    costs = {}
    for rows in heights_of(form, 2):
        tracks = split_tracks(named, rows)
        costs[rows] = max(cost_of([named[query] for query in half], rows) for half in tracks)
    assert cost == costs[variant.rows] == min(costs.values()), (lengths, form)
    assert halves == split_tracks(named, variant.rows)


@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=20))
def test_no_other_height_is_cheaper_for_the_wavefront_kernel(lengths):
    chosen = variants.choose_wavefront_rows(lengths)
    costs = {
        rows: sum(-(-length // (32 * rows)) for length in lengths) * (rows + variants.WAVEFRONT_OVERHEAD)
        for rows in {each.rows for each in variants.wavefront_variants()}
    }
    assert costs[chosen] == min(costs.values()), lengths


@pytest.mark.parametrize(
    ("capability", "half", "rows"),
    [((7, 5), False, 16), ((8, 0), True, 16), ((8, 9), True, 16), ((9, 0), True, 24), ((12, 0), True, 24)],
)
def test_the_kind_of_a_device(capability, half, rows):
    kind = variants.device_kind(capability)
    assert (kind.half, kind.highest, kind.emulates) == (half, rows, rows == 16)


@pytest.mark.parametrize(("kib", "warps"), [(227, 16), (163, 16), (99, 8), (64, 8), (16, 2), (1, 1)])
def test_the_warps_of_a_block_fit_its_shared_memory_in_every_variant(kib, warps):
    assert variants.batch_warps(kib << 10) == warps
    if warps > 1:
        assert all(each.shared_bytes(warps) <= kib << 10 for each in variants.batch_variants())


def test_the_table_of_variants():
    batch, wave = variants.batch_variants(), variants.wavefront_variants()
    kernels = [each.kernel for each in [*batch, *wave]]
    assert len(set(kernels)) == len(kernels)
    for mode in MODES:
        for queries in (1, 2):
            for form in (Form(mode, half, (11, 1), most) for half in (False, mode == "local") for most in MOST):
                heights = form.heights(queries)
                assert heights, (form, queries)
                assert all(form.variant(rows, queries) in batch for rows in heights)
                # where half precision does not do, the same strips are scored as integers
                assert all(replace(form.variant(rows, queries), half=False) in batch for rows in heights)
        assert {(each.rows, each.bits) for each in wave if each.mode == mode} == {
            (rows, bits) for rows in variants.WAVEFRONT_ROWS for bits in (16, 32)
        }
    for each in batch:  # the largest block of compute capability 7.5 has 64 KiB of shared memory, 9.0 has 227
        assert each.shared_bytes(16) <= 227 << 10
        assert each.shared_bytes(4) <= 64 << 10
    for each in wave:
        assert each.block_warps(227 << 10) * each.warp_bytes <= 227 << 10
        assert 1 <= each.block_warps(1) <= each.block_warps(64 << 10) <= variants.BLOCK_WARPS
    assert WavefrontVariant(16, 32, "local").pass_rows == 512
