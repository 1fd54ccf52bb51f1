"""Whole jobs on the GPU engine without a GPU, its memory and its life; see test_fake.py."""

from itertools import product

import numpy as np
import pytest

import swsearch
from support import fake_gpu
from support.cases import check, draw, make_chunk
from support.fake_gpu import FakeDevice, fake_engine, launched
from support.samples import sample
from support.small_jobs import CHUNK, Small, letters_of, results_of
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalBackend
from swsearch.engines.base import PendingHits, Workload
from swsearch.engines.gpu import launch, memory, queries, slot
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.memory import MIB
from swsearch.engines.gpu.slot_memory import TurnOrder
from swsearch.options.kinds import MODES
from swsearch.pipeline import batch
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search import Search

EVERY_MODE = pytest.mark.parametrize("mode", MODES)


# whole jobs


SUBJECTS = letters_of(draw(50, [*np.random.default_rng(50).integers(1, 50, 300), 0, 90]))
QUERIES = [SUBJECTS[3] * 2, SUBJECTS[70], SUBJECTS[200][:20], "", SUBJECTS[299]]


@pytest.fixture(scope="module")
def database():
    with Database.from_records(SUBJECTS) as made:
        yield made


HOW = pytest.mark.parametrize(
    ("resident", "group_residues"),
    sample(product([True, False], [60, 10**6]), lambda how: how[0] == (how[1] == 60)),
    ids=["resident-groups", "resident-one group", "streamed-groups", "streamed-one group"],
)


@pytest.mark.parametrize(
    ("mode", "max_hits"), sample(product(MODES, (3, 500)), lambda case: case[1] == 3 or case[0] == "local")
)
@HOW
def test_a_search_equals_the_cpu_engines(database, cpu, monkeypatch, mode, max_hits, resident, group_residues):
    options = {"mode": mode, "max_hits": max_hits}
    if mode == "local":
        options["evalue"] = 1e6
    expected = results_of(QUERIES, database, cpu, **options)
    monkeypatch.setattr(batch, "GROUP_RESIDUES", group_residues)
    Small(monkeypatch, CHUNK, resident)
    with fake_engine(monkeypatch) as gpu:
        got = results_of(QUERIES, database, gpu, **options)
        assert gpu.memory_plan.resident == resident
        n_groups = len(list(batch.query_groups(swsearch.inputs.read_queries(QUERIES, PROTEIN))))
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
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    monkeypatch.setattr(launch, "FAIR_SHARE", 0)
    Small(monkeypatch, CHUNK, resident)
    group = [query for query in QUERIES if query]
    n_chunks = len(list(database.chunks(CHUNK)))
    with fake_engine(monkeypatch) as gpu:
        got = results_of(group, database, gpu, evalue=1e6)
        expected = n_chunks + len(group) - 1 if resident else n_chunks * len(group)
        assert len(launched("wavefront")) == expected
    assert got == results_of(group, database, cpu, evalue=1e6)


@HOW
def test_iterations_equal_the_cpu_engines(cpu, monkeypatch, resident, group_residues):
    """Profiles of one group are brought while sequences of the next are scored."""
    generator = np.random.default_rng(51)
    families = [draw(seed, [60])[0] for seed in (52, 53, 54)]
    members = []
    for founder in families:
        for rate in (0, 0.1, 0.2, 0.3, 0.4, 0.5):
            changed = generator.random(60) < rate
            members.append(np.where(changed, generator.integers(0, 20, 60), founder).astype(np.uint8))
    subjects = letters_of([*members, *draw(55, generator.integers(20, 90, 40))])
    asked = [subjects[0], subjects[6], "WWWWWCCCCCWWWWW", subjects[12], subjects[2]]
    monkeypatch.setattr(batch, "GROUP_RESIDUES", group_residues)
    Small(monkeypatch, CHUNK, resident)
    with Database.from_records(subjects) as made, fake_engine(monkeypatch) as gpu:
        expected = results_of(asked, made, cpu, iterations=3)
        assert results_of(asked, made, gpu, iterations=3) == expected
    assert len(expected[0]) > 3


@EVERY_MODE
@pytest.mark.parametrize("resident", [True, False])
def test_score_gives_every_score(database, cpu, monkeypatch, mode, resident):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 100)
    Small(monkeypatch, CHUNK, resident)
    with fake_engine(monkeypatch) as gpu:
        got = swsearch.score(QUERIES, database, mode=mode, engine=gpu)
    assert np.array_equal(got, swsearch.score(QUERIES, database, mode=mode, engine=cpu)), mode


@pytest.mark.parametrize("tight", [False, True])
def test_scores_of_merged_chunks_fit_the_memory_for_scores(monkeypatch, cpu, tight):
    # one query per group: a chunk's scores are few, but those of all chunks together are more
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    monkeypatch.setattr(memory, "CHUNK_BYTES", 16 << 10)
    monkeypatch.setattr(memory, "LEAST_CHUNK_BYTES", 8 << 10)
    subjects, group = letters_of(draw(51, [90] * 64 + [1] * 6_000)), letters_of(draw(52, [20, 30]))
    shapes = []
    start = GpuEngine._start

    def started(self, used, part, chunk, thresholds):
        turn = start(self, used, part, chunk, thresholds)
        shapes.append((used.shape, 4 * used.shape[0] * used.shape[1], used.plan.scores))
        return turn

    monkeypatch.setattr(GpuEngine, "_start", started)
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
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 60)
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
    monkeypatch.setattr(slot.Turn, "is_done", property(lambda self: bool(generator.integers(0, 2))))
    monkeypatch.setattr(slot.Turn, "_wait", lambda self: None)
    with fake_engine(monkeypatch) as gpu:
        got = results_of(QUERIES, database, gpu, evalue=1e6, max_hits=max_hits)
    assert got == results_of(QUERIES, database, cpu, evalue=1e6, max_hits=max_hits)


@pytest.mark.parametrize("resident", [True, False])
def test_as_much_is_in_flight_as_was_said_and_no_more(database, monkeypatch, resident):
    Small(monkeypatch, CHUNK, resident)
    waiting, most, loaded = [], [], []
    with fake_engine(monkeypatch) as gpu:
        find = gpu.start_scan

        def watched(*arguments):
            pending = find(*arguments)
            waiting.append(pending)
            most.append(len(waiting))
            loaded.append(len(gpu._loaded))
            return PendingHits(lambda: (waiting.remove(pending), pending.wait())[1], pending.is_ready)

        gpu.start_scan = watched
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


def test_an_engine_is_used_many_times_and_closed(monkeypatch, cpu):
    with fake_engine(monkeypatch) as gpu:
        for turn in range(20):
            check(gpu, cpu, draw(turn, [20]), draw(turn, range(1 + turn, 90, 7)))
            assert not gpu._loaded
            assert all(region.used == 0 and region.end == region.n_bytes for region in gpu._regions)
            assert 0 < gpu._device.allocated < 64 * MIB
    assert (gpu._device.allocated, gpu._device.closed) == (0, 1)
    gpu.close()
    assert gpu._device.closed == 1
    fake_engine(monkeypatch).close()  # nothing was loaded


@pytest.mark.parametrize(
    "lengths", sample([[900] * 130 + [4_000], [90] * 70 + [400]], lambda lengths: len(lengths) < 100), ids=max
)
def test_chunks_after_a_plan_come_and_go_and_a_longer_one_has_another(gpu, cpu, lengths):
    subjects = draw(61, [30] * 200)
    chunk = make_chunk(subjects)
    gpu.plan(Workload(chunk.residues.nbytes, chunk.lengths, [[20]]))
    plan, allocated = gpu.memory_plan, gpu._device.allocated
    for _ in range(20):
        check(gpu, cpu, draw(65, [20]), subjects)
    assert gpu.memory_plan is plan
    assert gpu._device.allocated == allocated
    check(gpu, cpu, draw(63, [20, 700]), draw(64, lengths))
    assert gpu.memory_plan is not plan


def test_a_database_is_loaded_again_without_a_new_plan(database, gpu, monkeypatch):
    for resident in (True, False):
        Small(monkeypatch, CHUNK, resident)
        read, found = swsearch.inputs.read_queries(QUERIES[:2], PROTEIN), []
        session = Search(read, SearchOptions(), LocalBackend(database, gpu)).session
        for _ in range(2):
            pending = session.select(session.prepare(read))
            pending.wait()
            found.append([each.candidates for each in pending.selections()])
            session.close()  # releases the database
        assert found[0] == found[1]
        monkeypatch.undo()


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
    plan = gpu.plan(Workload(database.residue_bytes, database.length_runs, [[*map(len, QUERIES)]]))
    assert gpu.description == "gpu (Fake GPU, sm_90, fake compiler)"
    assert plan.keep_loaded
    assert plan.in_flight == gpu.memory_plan.n_slots
    assert plan.note == f"device 0, Fake GPU: {gpu.memory_plan}"
    assert fake_gpu.INFO.architecture == "sm_90"


class At:
    """An event that was over at a time in seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def time_since(self, other):
        return 1000.0 * (self.seconds - other.seconds)


def test_kernels_that_run_at_the_same_time_count_once(gpu):
    gpu.load(make_chunk(draw(1, [20])))
    slot = gpu._slots[0]
    slot.shared.last_ended = At(0.0)
    for started, ended in [(1.0, 3.0), (2.0, 2.5), (2.0, 4.0), (6.0, 7.0), (6.5, 7.0)]:
        slot.started, slot.ended = At(started), At(ended)
        slot.add_times()
    assert gpu.usage.kernel_seconds == 4.0


def test_a_turn_waits_for_the_one_before_unless_it_is_much_smaller():
    class Logged:
        def __init__(self):
            self.log = []

        def record(self, other):
            self.log.append(other)

        wait_for_event = record

    event, one, two = Logged(), Logged(), Logged()
    order = TurnOrder(event)
    waited = []
    for stream, n_rows in ((one, 50_000), (two, 12_500), (one, 50_000), (two, 12_499), (two, 49_000)):
        waited.append(order.wait(stream, n_rows))
        order.end(stream)
    assert waited == [True, True, True, False, True]  # what is smaller runs beside, and the next one does not wait
    assert (one.log, two.log, event.log) == ([event] * 2, [event] * 2, [one, two, one, two, two])


def test_residues_on_the_device_are_not_kept_in_the_hosts_memory_as_well(gpu):
    chunks = [make_chunk(draw(70 + k, [90 - k] * 64)) for k in range(3)]
    residues = sum(chunk.residues.nbytes for chunk in chunks)
    gpu.plan(Workload(residues, np.concatenate([chunk.lengths for chunk in chunks]), [[20]]))
    loaded = [gpu.load(chunk) for chunk in chunks]
    merged = gpu.merge(loaded)
    assert len(merged) == 1
    for each in (*loaded, *merged):
        assert each.chunk.residues.size == 0
        assert each.chunk.residues.base is None
        assert each.handle.chunk is each.chunk
        assert each.chunk.subjects.dtype == np.uint32
        assert np.shares_memory(each.chunk.subjects, merged[0].chunk.subjects)
    assert np.concatenate([each.chunk.subjects for each in loaded]).tolist() == merged[0].chunk.subjects.tolist()
    assert merged[0].chunk.n_residues == sum(chunk.n_residues for chunk in chunks)
