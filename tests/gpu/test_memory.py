"""The memory plan: what is allocated fits what is allowed, and what is handed out fits what was planned."""

import re
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import random_codes
from support.samples import random_cases
from swsearch.blocks import LANES, block_columns
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.memory import (
    CHUNK_BYTES,
    LEAST_CHUNK_BYTES,
    MIB,
    PART_QUERIES,
    QUERY_AREAS,
    RESIDENT_SLOTS,
    STREAMED_SLOTS,
    TILE_PADDING,
    Region,
    demand_of,
    make_plan,
)
from swsearch.engines.gpu.queries import Group, UploadedPart
from swsearch.engines.gpu.variants import device_kind
from swsearch.options.kinds import MODES
from swsearch.scoring import Scoring

budgets = st.integers(1, 400).map(lambda n: n * MIB // 2)


@st.composite
def demands(draw):
    """Databases of up to 100,000 subjects and groups of up to 500 queries, by their lengths."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = int(10 ** draw(st.floats(0, 5)))
    lengths = generator.lognormal(draw(st.floats(1, 6)), draw(st.floats(0.1, 1)), n)
    lengths = np.minimum(lengths, 40_000).astype(np.int32)
    residue_bytes = int(block_columns(np.sort(lengths)[::-1]).sum()) * LANES
    queries = generator.integers(0, int(10 ** draw(st.floats(0.5, 4))), int(10 ** draw(st.floats(0, 2.7)))).tolist()
    return demand_of(lengths, len(queries), sum(queries), residue_bytes, draw(st.sampled_from([4, 40, 132]))), lengths


def plan_or_error(demand, budget):
    try:
        return make_plan(demand, budget)
    except GpuMemoryError as error:
        return str(error)


def described(demand, budget):
    return {
        **{each.name: getattr(demand, each.name) for each in fields(demand) if each.name != "blocks"},
        "budget": budget,
    }


@given(demands(), budgets)
def test_a_plan_keeps_to_its_budget(drawn, budget):
    demand, _ = drawn
    plan, case = plan_or_error(demand, budget), described(demand, budget)
    if isinstance(plan, str):
        allowed, needed = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) MiB", plan))
        assert allowed == round(budget / MIB), (case, plan)
        assert needed * MIB > budget, (case, plan)
        assert plan.endswith("allow more with --gpu-memory, or use --engine cpu"), plan
        return
    assert plan.total <= plan.budget == budget, (case, plan)
    assert plan.total == plan.residues + plan.queries + plan.boundary + plan.wavefront + plan.n_slots * plan.slot, (
        case,
        plan,
    )
    assert plan.n_slots == (RESIDENT_SLOTS if plan.resident else STREAMED_SLOTS), (case, plan)
    assert min(LEAST_CHUNK_BYTES, demand.residue_bytes) <= plan.chunk_bytes <= CHUNK_BYTES, (case, plan)
    assert 1 <= plan.at_once <= PART_QUERIES, (case, plan)
    assert plan.n_areas in (1, QUERY_AREAS) and plan.queries % (4096 * plan.n_areas) == 0, (case, plan)
    parts = (plan.residues, plan.queries, plan.scores, plan.boundary, plan.wavefront, plan.hits, plan.small)
    assert all(size > 0 and size % 4096 == 0 for size in parts), (case, plan)


@given(demands(), budgets)
def test_an_error_says_how_much_is_needed(drawn, budget):
    demand, _ = drawn
    plan = plan_or_error(demand, budget)
    if isinstance(plan, str):
        needed = int(re.search(r"at least ([\d,]+) MiB", plan).group(1).replace(",", ""))
        enough = plan_or_error(demand, needed * MIB)
        assert not isinstance(enough, str), (described(demand, budget), plan, enough)


@given(demands(), budgets, st.floats(0.3, 1))
def test_less_memory_never_gives_more(drawn, budget, share):
    demand, _ = drawn
    plan, smaller = plan_or_error(demand, budget), plan_or_error(demand, int(budget * share))
    case = (described(demand, budget), share, plan, smaller)
    if isinstance(smaller, str):
        return
    assert not isinstance(plan, str), case
    assert plan.resident or not smaller.resident, case
    if plan.resident == smaller.resident:  # what is streamed may come in larger chunks than what just stays
        assert smaller.chunk_bytes <= plan.chunk_bytes, case
    assert smaller.at_once <= plan.at_once, case
    if (plan.resident, plan.chunk_bytes, plan.scores) == (smaller.resident, smaller.chunk_bytes, smaller.scores):
        assert smaller.n_areas <= plan.n_areas, case


@given(demands(), budgets)
def test_everything_stays_where_it_fits(drawn, budget):
    demand, lengths = drawn
    plan = plan_or_error(demand, budget)
    if isinstance(plan, str) or plan.resident:
        return
    chunk = min(CHUNK_BYTES, demand.residue_bytes)  # as small as chunks may be, by halves
    while chunk // 2 >= LEAST_CHUNK_BYTES:
        chunk //= 2
    held = max(chunk, demand.longest_block)
    scores = 4 * demand.most_subjects(held) * plan.at_once
    rest = plan.queries + plan.boundary + plan.wavefront + RESIDENT_SLOTS * (plan.slot - plan.scores + scores)
    # a length and a share of a tile number for each subject, twice, and 1 kB or less a chunk
    residues = demand.residue_bytes + 2 * 5 * (len(lengths) + LANES) + 1024 * (demand.residue_bytes // MIB + 20)
    assert rest + residues + 16 * 4096 > budget, (described(demand, budget), plan)


def cut_chunks(columns, chunk_bytes):
    """Cut blocks into chunks as the database does; yield the blocks' numbers."""
    first = 0
    while first < len(columns):
        last, size = first + 1, columns[first] * LANES
        while last < len(columns) and size + columns[last] * LANES <= chunk_bytes:
            size += columns[last] * LANES
            last += 1
        yield range(first, last)
        first = last


@random_cases(80)
@given(demands(), budgets)
def test_chunks_fit_what_was_planned_for_them(drawn, budget):
    demand, lengths = drawn
    plan = plan_or_error(demand, budget)
    if isinstance(plan, str):
        return
    case = (described(demand, budget), plan)
    columns = block_columns(np.sort(lengths)[::-1]).tolist()
    chunks = list(cut_chunks(columns, plan.chunk_bytes))
    region = Region(256, plan.residues // (1 if plan.resident else plan.n_slots))

    def numbers(n_blocks):
        region.take_end(4 * (n_blocks + 1))
        region.take_end(4 * min(n_blocks * LANES, len(lengths)))

    expected = 256
    for chunk in chunks:
        if not plan.resident:
            region.reset()
        size = sum(columns[block] for block in chunk) * LANES
        address = region.take(size)
        if plan.resident:
            assert address == expected, (case, "chunks that are merged stand one behind the other")
            expected += size
        numbers(len(chunk))
        assert region.used + TILE_PADDING <= region.end, (case, chunk, "the tile behind the last is fetched")
        assert 4 * min(LANES * len(chunk), len(lengths)) <= plan.scores, (case, chunk)
    if plan.resident and len(chunks) > 1:
        numbers(len(columns))
        assert region.used + TILE_PADDING <= region.end, (case, "merged")


@pytest.mark.parametrize("n_empty", [0, 64, 640, 64_000])
def test_scores_of_subjects_without_residues_have_room(n_empty):
    lengths = np.concatenate([np.full(700, 5), np.zeros(n_empty)]).astype(np.int32)
    demand = demand_of(lengths, 1, 100, int(block_columns(lengths).sum()) * LANES, 4)
    assert make_plan(demand, 8 * MIB).scores >= 4 * len(lengths), "their blocks have no columns"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0)])
@random_cases(15)
@given(
    st.one_of(
        st.lists(st.integers(0, 30), min_size=1, max_size=80),
        st.lists(st.integers(0, 1_500), min_size=1, max_size=12),
        st.lists(st.sampled_from([1, 2, 35, 513, 9_000]), min_size=1, max_size=10),
        st.lists(st.sampled_from([1, 2, 20_000, 60_000]), min_size=1, max_size=2),
    )
)
def test_queries_fit_what_was_planned_for_them(mode, capability, lengths):
    codes = random_codes(np.random.default_rng(1), max(lengths), 20)
    profiles = [Scoring().rows(codes[:n]) for n in lengths]
    plan = make_plan(
        demand_of(np.array([300], dtype=np.int32), len(lengths), sum(lengths), 300 * LANES, 132), 1 << 34
    )
    for part in Group(profiles, Scoring(), mode, device_kind(capability)).parts(plan.at_once):
        assert UploadedPart.n_bytes(part, 300) <= plan.queries // plan.n_areas, (mode, lengths, part.first)


def test_what_a_plan_says():
    lengths = np.full(100_000, 300, dtype=np.int32)
    demand = demand_of(lengths, 8, 8 * 400, 100_000 * 304, 132)
    resident, streamed = make_plan(demand, 1 << 32), make_plan(demand, 44 * MIB)
    for plan, kind in ((resident, "resident"), (streamed, "streamed")):
        text = str(plan)
        numbers = re.findall(r"([\d,]+) MiB", text)
        sizes = [
            plan.total, plan.budget, plan.residues, plan.chunk_bytes, plan.queries,
            plan.boundary + plan.wavefront + plan.n_slots * plan.rescored, plan.scores, plan.hits + plan.small,
        ]  # fmt: skip
        assert numbers == [f"{size / MIB:,.0f}" for size in sizes], text
        assert f"({kind}, chunks of" in text
        assert f"in each of {plan.n_slots} slots scores" in text
    assert resident.total < 1 << 30, "no more is taken than the job has use for"


def test_one_area_for_queries_is_enough_where_two_do_not_fit():
    demand = demand_of(np.full(1_000, 300, dtype=np.int32), 64, 64 * 400, 1_000 * 304, 132)
    plan = make_plan(demand, 1 << 30)
    areas = plan.queries // plan.n_areas
    small = [make_plan(demand, budget) for budget in range(12 * MIB, 64 * MIB, areas // 4)]
    assert {each.n_areas for each in small} == {1, QUERY_AREAS}
    assert all(each.queries == each.n_areas * areas for each in small if each.at_once == plan.at_once)


def test_no_subjects_and_no_queries():
    for lengths in ([], [0], [0] * 100):
        demand = demand_of(np.array(lengths, dtype=np.int32), 0, 0, 0, 4)
        assert (demand.longest, demand.n_queries, demand.n_rows) == (1, 1, 0), lengths
        assert make_plan(demand, 16 * MIB).resident, lengths


region_sizes = st.one_of(st.integers(256, 40_000), st.integers(1, 150).map(lambda n: 256 * n))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3_000)), max_size=30), region_sizes)
def test_what_a_region_hands_out_is_aligned_and_nothing_twice(requests, n_bytes):
    region, taken = Region(4096, n_bytes), []
    for at_end, size in requests:
        take = region.take_end if at_end else region.take
        fits = region.fits(size)
        try:
            address = take(size)
        except GpuMemoryError as error:
            assert "please report it" in str(error)
            assert at_end or not fits, (requests, n_bytes)
            continue
        assert at_end or fits, (requests, n_bytes)
        assert at_end or address % 256 == 0, (requests, n_bytes)
        assert (n_bytes % 256 and at_end) or address % 256 == 0, (requests, n_bytes, "aligned from the end too")
        taken.append((address, address + size))
    assert all(start >= 4096 and end <= 4096 + n_bytes for start, end in taken), (requests, n_bytes)
    taken = sorted(span for span in taken if span[0] < span[1])
    assert all(before[1] <= after[0] for before, after in pairwise(taken)), (requests, n_bytes)
    region.reset()
    assert (region.take(n_bytes), region.used) == (4096, n_bytes)
