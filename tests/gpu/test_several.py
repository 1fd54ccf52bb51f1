"""Several devices as one engine, without a GPU: every result is held against the CPU engine's."""

import gc
import threading
import warnings

import numpy as np
import pytest

import swsearch
from support.cases import check, draw
from support.fake_gpu import launched
from support.fake_gpus import KINDS, CardDevice, CudaError, Fault, cards, fake_engines
from support.samples import sample
from support.small_jobs import Holding, Small, letters_of, results_of
from swsearch import Database
from swsearch.db import append_database, build_database
from swsearch.engines.gpu import division, several, speeds
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.errors import EngineError, OptionError, SwsearchWarning
from swsearch.options.kinds import MODES
from swsearch.pipeline import batch

SUBJECTS = letters_of(draw(50, [*np.random.default_rng(50).integers(1, 12, 800), 0, 30]))
QUERIES = [SUBJECTS[3] * 2, SUBJECTS[70], SUBJECTS[-1], "", SUBJECTS[299] * 3]
CHUNK = 1_600
"""Bytes of some blocks, of which there are 13."""

RESIDENT = pytest.mark.parametrize("resident", [True, False], ids=["resident", "streamed"])
QUICKLY_RESIDENT = pytest.mark.parametrize("resident", sample([True, False], bool))


@pytest.fixture(scope="module")
def database():
    with Database.from_records(SUBJECTS) as made:
        yield made


@pytest.fixture(scope="module")
def expected(database, cpu):
    """What the CPU engine finds."""
    return results_of(QUERIES, database, cpu, evalue=1e6, max_hits=20)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("swsearch-gpu")]
    assert not left


def engines_of(gpu):
    return [worker.engine for worker in gpu.fleet.workers]


def hits_of(result):
    return [(hit.subject_index, hit.score, hit.bit_score, hit.evalue) for hit in result.hits]


def search(database, gpu):
    return results_of(QUERIES, database, gpu, evalue=1e6, max_hits=20)


# results


@pytest.mark.parametrize(
    ("mode", "n_devices", "resident", "group_residues"),
    sample(
        [
            (mode, n, stays, rows)
            for mode in MODES
            for n in (1, 2, 3, 8)
            for stays in (True, False)
            for rows in (30, 10**6)
        ],
        lambda case: case[:2] in (("local", 2), ("global", 8)) and case[3] == 30,
    ),
)
def test_a_search_equals_the_cpu_engines(database, cpu, monkeypatch, mode, n_devices, resident, group_residues):
    options = {"mode": mode, "max_hits": 5, **({"evalue": 1e6} if mode == "local" else {})}
    wanted = results_of(QUERIES, database, cpu, **options)
    monkeypatch.setattr(batch, "GROUP_RESIDUES", group_residues)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(n_devices)) as gpu:
        assert results_of(QUERIES, database, gpu, **options) == wanted
        assert gpu.memory_plan.resident == resident
        assert not resident or all(CardDevice.calls[k, "launch"] > 0 for k in range(n_devices))


@RESIDENT
def test_one_device_given_several_times_shares_its_memory(database, expected, monkeypatch, resident):
    Small(monkeypatch, CHUNK, resident)
    monkeypatch.setattr(CardDevice, "free", 256 << 20)
    with fake_engines(monkeypatch, cards(1), [0] * 8, memory=160 << 20) as gpu:
        assert search(database, gpu) == expected
        assert len(gpu.fleet.used) == 8
        assert all(worker.engine.memory_plan.budget <= 20 << 20 for worker in gpu.fleet.used)
    assert not CardDevice.taken[0]


# failures


@pytest.mark.parametrize(
    ("resident", "kind"),
    sample(
        [(resident, kind) for resident in (True, False) for kind in KINDS],
        lambda case: case[1] == "launch" or (case[0] and case[1] in ("upload", "query", "load")),
    ),
)
def test_the_work_of_a_device_that_fails_goes_to_the_others(database, expected, monkeypatch, kind, resident):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        if kind == "free":  # which is done for the job before
            assert search(database, gpu) == expected
        CardDevice.faults[1] = Fault(kind, 1 if kind in ("upload", "launch") else 0)
        if not resident:  # device 0 holds six chunks at most before
            CardDevice.held_back[0] = lambda: 1 in CardDevice.gone
        with pytest.warns(SwsearchWarning, match="device 1, Fake GPU is left out, and the other") as told:
            assert search(database, gpu) == expected
            assert search(database, gpu) == expected
    assert len(told) == 1


def test_errors_of_pycuda_that_nothing_translates_are_a_devices_too(database, expected, monkeypatch):
    Small(monkeypatch, CHUNK, True)
    with fake_engines(monkeypatch, cards(2)) as gpu, pytest.warns(SwsearchWarning, match="device 0"):
        CardDevice.faults[0] = Fault("launch", 1, CudaError)
        assert search(database, gpu) == expected


@pytest.mark.parametrize("stage", ["first group", "later"])
def test_what_no_longer_fits_is_streamed(database, expected, monkeypatch, stage):
    """Two of three devices hold two thirds of the database, and what the third had is read again for each group."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    monkeypatch.setattr(division, "SLACK_BLOCKS", 2)
    Holding(monkeypatch, CHUNK, int(database.residue_bytes * 0.45) + 2 * 32 * 64)
    with fake_engines(monkeypatch, cards(3)) as gpu:
        read, chunks = [], Database.chunks
        monkeypatch.setattr(Database, "chunks", lambda self, *a, **k: (read.append(1), chunks(self, *a, **k))[1])
        assert search(database, gpu) == expected
        assert gpu.memory_plan.resident
        assert len(read) == 1
        CardDevice.faults[2] = Fault("launch", 2 if stage == "first group" else 14)
        with pytest.warns(SwsearchWarning, match="device 2"):
            assert search(database, gpu) == expected
        assert not gpu.memory_plan.resident
        assert len(read) > 2


@RESIDENT
def test_when_every_device_fails_there_is_one_error(database, monkeypatch, resident):
    Small(monkeypatch, 512, resident)
    with fake_engines(monkeypatch, cards(3)) as gpu:
        assert len(list(database.chunks(512))) > 12, "two devices do not have all of them in work"
        for index in range(3):
            CardDevice.faults[index] = Fault("launch", index)
            CardDevice.held_back[index] = lambda index=index: len(CardDevice.gone) >= index
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(EngineError, match=r"every GPU failed: device 0.*device 2"):
                search(database, gpu)
        with pytest.raises(EngineError, match="every GPU failed"):
            search(database, gpu)


def test_a_device_that_runs_out_of_memory_goes_on_with_less(database, expected, monkeypatch):
    Small(monkeypatch, CHUNK, False)
    monkeypatch.setattr(CardDevice, "free", 40 << 20)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        for after in (1, 5):
            CardDevice.faults[1] = Fault("upload", after, GpuMemoryError)
            CardDevice.held_back[0] = lambda: 1 not in CardDevice.faults
            assert search(database, gpu) == expected
        budgets = [engine.memory_plan.budget for engine in engines_of(gpu)]
        assert budgets[1] < 0.8 * budgets[0]


@RESIDENT
def test_a_device_that_lacks_memory_again_and_again_is_left_out(database, expected, monkeypatch, resident):
    Small(monkeypatch, CHUNK, resident)
    monkeypatch.setattr(CardDevice, "free", 30 << 20)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        CardDevice.faults[1] = Fault("upload", 1, GpuMemoryError, again=True)
        CardDevice.held_back[0] = lambda: resident or gpu.fleet.workers[1].error is not None
        with pytest.warns(SwsearchWarning, match="device 1, Fake GPU is left out"):
            assert search(database, gpu) == expected
        CardDevice.faults, CardDevice.held_back = {}, {}
        assert search(database, gpu) == expected
        assert len(gpu.fleet.used) == 2, "for the next job there may be memory again"


@RESIDENT
def test_a_device_without_memory_is_left_out_from_the_beginning(database, expected, monkeypatch, resident):
    Small(monkeypatch, CHUNK, resident)
    free = CardDevice.free_memory
    monkeypatch.setattr(CardDevice, "free_memory", lambda self: 1 << 20 if self.info.index else free(self))
    with fake_engines(monkeypatch, cards(2)) as gpu, pytest.warns(SwsearchWarning, match="left out.*too little"):
        assert search(database, gpu) == expected


def test_a_job_that_fits_no_device(database, expected, monkeypatch):
    with fake_engines(monkeypatch, cards(2)) as gpu:
        with monkeypatch.context() as small:
            small.setattr(CardDevice, "free", 1 << 20)
            with pytest.raises(GpuMemoryError, match="expected at least") as caught:
                search(database, gpu)
            assert caught.value.exit_code == 4
        assert search(database, gpu) == expected, "the engine can be used again"


# who gets how much


def test_the_division_goes_by_strength_and_by_memory(database, expected, monkeypatch):
    with fake_engines(monkeypatch, cards(3, multiprocessors=[4, 8, 12])) as gpu:
        assert search(database, gpu) == expected
        parts = [share.part for _, share in gpu.fleet._shares]
        assert parts == pytest.approx([1 / 6, 1 / 3, 1 / 2])
        assert [each.usage.cells for each in engines_of(gpu)] == sorted(each.usage.cells for each in engines_of(gpu))
    assert division.divided([1.0, 1.0], lambda device, part: device == 1 or part <= 0.2) == pytest.approx(
        [0.2, 0.8], abs=1e-3
    )
    assert division.divided([1.0, 1.0], lambda device, part: part <= 0.4) is None


def test_a_database_is_divided_anew_by_the_speeds_that_are_measured(database, cpu, monkeypatch):
    group = [query for query in QUERIES * 4 if query]
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
    monkeypatch.setattr(speeds, "READ_RATE", 1e15)
    Small(monkeypatch, CHUNK, True)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        CardDevice.speeds = {0: 1e6, 1: 3e6}
        assert results_of(group, database, gpu, evalue=1e6) == results_of(group, database, cpu, evalue=1e6)
        slow, fast = gpu.fleet.weights
        assert 2 * slow < fast < 4 * slow
        cells = [engine.usage.cells for engine in engines_of(gpu)]
        assert cells[1] > 1.5 * cells[0]


def test_the_faster_device_takes_more_of_what_is_streamed(database, expected, monkeypatch):
    Small(monkeypatch, 512, False)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        n_pieces = len(list(database.chunks(512)))
        CardDevice.held_back = {0: lambda: CardDevice.calls[1, "event"] > 0 and len(launched("arrange")) >= n_pieces}
        assert search(database, gpu) == expected
        slow, fast = (len(engine.usage.spans) for engine in engines_of(gpu))
        assert slow + fast == n_pieces
        assert slow <= 6 < fast


# all that a job may ask


@QUICKLY_RESIDENT
def test_every_kind_of_job(database, cpu, monkeypatch, resident):
    """Distributions, all scores, and hits that are aligned with several alignments each."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(3)) as gpu:
        for mode in MODES:
            values = swsearch.score(QUERIES, database, mode=mode, engine=gpu)
            assert np.array_equal(values, swsearch.score(QUERIES, database, mode=mode, engine=cpu)), mode
        each = []
        for engine in (gpu, cpu):
            found = swsearch.search(QUERIES, database, engine=engine, max_hits=5, max_alignments=2, distribution=True)
            each.append([(r.distribution, [(str(h.alignment), h.score) for h in r.hits]) for r in found])
        assert repr(each[0]) == repr(each[1])


def test_fitted_statistics_and_filters(database, cpu, monkeypatch):
    Small(monkeypatch, CHUNK, True)
    options = {"statistics": "fitted", "evalue": 1e6, "max_hits": 10, "min_identity": 50.0}
    with fake_engines(monkeypatch, cards(2)) as gpu:
        assert results_of(QUERIES, database, gpu, **options) == results_of(QUERIES, database, cpu, **options)


@QUICKLY_RESIDENT
def test_iterations(cpu, monkeypatch, resident):
    generator = np.random.default_rng(51)
    founder = draw(52, [40])[0]
    members = [
        np.where(generator.random(40) < rate, generator.integers(0, 20, 40), founder).astype(np.uint8)
        for rate in (0, 0.1, 0.2, 0.3, 0.4)
    ]
    subjects = letters_of([*members, *draw(55, generator.integers(5, 20, 200))])
    asked = [subjects[0], "WWWWWCCCCCWWWWW", subjects[2]]
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 50)
    Small(monkeypatch, CHUNK, resident)
    with Database.from_records(subjects) as made, fake_engines(monkeypatch, cards(2)) as gpu:
        expected = results_of(asked, made, cpu, iterations=3)
        assert results_of(asked, made, gpu, iterations=3) == expected
        if resident:
            CardDevice.faults[0] = Fault("launch", 10)
            with pytest.warns(SwsearchWarning, match="device 0"):
                assert results_of(asked, made, gpu, iterations=3) == expected


@QUICKLY_RESIDENT
def test_a_searcher(database, expected, monkeypatch, resident):
    monkeypatch.setattr(CardDevice, "free", 64 << 20)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        with swsearch.Searcher(database, engine=gpu, max_hits=20, evalue=1e6) as searcher:
            first = [hits_of(result) for result in searcher.search(QUERIES)]
            CardDevice.faults[1] = Fault("launch", 3)
            CardDevice.held_back[0] = lambda: resident or 1 in CardDevice.gone
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                rest = [[hits_of(result) for result in searcher.search(QUERIES)] for _ in range(2)]
        assert first == rest[0] == rest[1] == expected
        assert ["device 1" in str(each.message) for each in told] == [True]


@QUICKLY_RESIDENT
def test_progress_counts_every_cell_once_whatever_fails(database, monkeypatch, resident):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    Small(monkeypatch, CHUNK, resident)
    cells = sum(map(len, QUERIES)) * database.n_residues
    with fake_engines(monkeypatch, cards(3)) as gpu:
        for fault in ({}, {2: Fault("query", 9)}):
            CardDevice.faults = fault
            seen = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                list(swsearch.search(QUERIES, database, engine=gpu, progress=seen.append))
            assert sum(seen) == cells
            assert min(seen) > 0
        assert gpu.usage.cells >= 2 * cells


def test_an_engine_without_a_job(cpu, monkeypatch):
    monkeypatch.setattr(CardDevice, "free", 64 << 20)
    with fake_engines(monkeypatch, cards(3)) as gpu:
        for turn in range(3):
            check(gpu, cpu, draw(turn, [20, 0, 9]), draw(turn, range(1 + turn, 40, 2)))


def test_more_devices_than_blocks(cpu, monkeypatch):
    for subjects in (["ACDEFGHIKL"], ["", "ACD"], ["ACDEFGHIKL"] * 130):
        with Database.from_records(subjects) as made, fake_engines(monkeypatch, cards(8)) as gpu:
            for mode in MODES:
                got = results_of(["ACDEF", ""], made, gpu, mode=mode)
                assert got == results_of(["ACDEF", ""], made, cpu, mode=mode)


def test_several_segments_and_blocks_that_are_not_full(cpu, monkeypatch, tmp_path):
    """Segments begin with long subjects again and end with blocks that are not full."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    for place, part in enumerate((SUBJECTS[:200], SUBJECTS[200:330], SUBJECTS[330:500])):
        (tmp_path / "part.fasta").write_text("".join(f">s{place}.{k}\n{text}\n" for k, text in enumerate(part)))
        (append_database if place else lambda db, more: build_database(more, db))(
            tmp_path / "made.h5", tmp_path / "part.fasta"
        )
    with Database.open(tmp_path / "made.h5") as made:
        assert made.info()["n_segments"] == 3
        for resident in (True, False):
            with monkeypatch.context() as patched:
                Small(patched, CHUNK, resident)
                with fake_engines(patched, cards(3)) as gpu:
                    assert search(made, gpu) == search(made, cpu)


# stopping


@RESIDENT
def test_a_search_that_is_given_up(database, expected, monkeypatch, resident):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    Small(monkeypatch, CHUNK, resident)

    def stop(cells):
        raise KeyboardInterrupt

    with fake_engines(monkeypatch, cards(2)) as gpu:
        with pytest.raises(KeyboardInterrupt):
            list(swsearch.search(QUERIES, database, engine=gpu, progress=stop))
        assert search(database, gpu) == expected
        next(swsearch.search(QUERIES, database, engine=gpu))  # dropped after its first result
        assert search(database, gpu) == expected
        # one that waits for a device for ever is ended all the same
        CardDevice.held_back = dict.fromkeys((0, 1), lambda: False)
        results = swsearch.search(QUERIES, database, engine=gpu)
        waiting = threading.Thread(target=lambda: next(results, None))
        waiting.start()
        while not any(CardDevice.calls[k, "query"] > 0 for k in (0, 1)):
            waiting.join(0.001)
        CardDevice.held_back = {}
        waiting.join()
        results.close()


def test_what_is_no_device_is_refused(monkeypatch):
    with pytest.raises(OptionError, match="at least one device"):
        fake_engines(monkeypatch, cards(1), [])
    with pytest.raises(OptionError, match="gpu_memory: got 0"):
        fake_engines(monkeypatch, cards(1), memory=0)


def test_a_thread_that_cannot_be_had(monkeypatch):
    monkeypatch.setattr(several, "has_room_for_threads", lambda count: False)
    with pytest.raises(EngineError, match="threads of 2 devices"):
        fake_engines(monkeypatch, cards(2))
    assert not CardDevice.taken[0]


def test_an_engine_that_nobody_closes_ends_its_threads(monkeypatch):
    gpu = fake_engines(monkeypatch, cards(2))
    threads = [worker._thread for worker in gpu.fleet.workers]
    del gpu
    gc.collect()
    for thread in threads:
        thread.join()


def test_descriptions(database, monkeypatch):
    with fake_engines(monkeypatch, cards(2)) as gpu:
        assert gpu.description == "gpu (2 x Fake GPU, sm_90, fake compiler)"
        assert gpu.memory_plan is None
        search(database, gpu)
        assert str(gpu.memory_plan).count("MiB allowed") == 2
        assert gpu.usage.kernel_seconds > 0
        gpu.synchronize()
    names = {"name": ["Big GPU", "Small GPU"], "capability": [(9, 0), (8, 6)]}
    with fake_engines(monkeypatch, cards(2, **names)) as gpu:
        assert gpu.description == "gpu (device 0, Big GPU; device 1, Small GPU, sm_90, sm_86, fake compiler)"
    with fake_engines(monkeypatch, cards(1), [0, 0]) as gpu:
        assert gpu.description.startswith("gpu (device 0, Fake GPU; device 0, Fake GPU, sm_90")
