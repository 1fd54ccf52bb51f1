"""Several devices as one engine, without a GPU: every result is held against the CPU engine's."""

import gc
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

import swsearch
from support.cases import check, draw
from support.fake_gpu import INFO, fake_engine, launched
from support.fake_gpus import KINDS, CardDevice, CudaError, Fault, cards, fake_engines
from support.samples import sample
from support.small_jobs import Holding, Small, letters_of, results_of
from swsearch import Database
from swsearch.db import append_database, build_database
from swsearch.engines.base import Workload
from swsearch.engines.gpu import engine as engine_module
from swsearch.engines.gpu import partition
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.multi_gpu import MultiGpuEngine
from swsearch.errors import EngineError, GpuUnavailableError, OptionError, SwsearchWarning
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
    """Return the results of the CPU engine."""
    return search(database, cpu)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("swsearch-gpu")]


def search(database, engine):
    return results_of(QUERIES, database, engine, evalue=1e6, max_hits=20)


def cells_of(gpu):
    return [thread.device.usage.cells for thread in gpu.group.threads]


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
        assert gpu.is_resident == resident
        assert not resident or all(CardDevice.calls[k, "launch"] > 0 for k in range(n_devices))


@RESIDENT
def test_one_device_given_several_times_shares_its_memory(database, expected, monkeypatch, resident):
    Small(monkeypatch, CHUNK, resident)
    monkeypatch.setattr(CardDevice, "free", 256 << 20)
    with fake_engines(monkeypatch, cards(1), [0] * 8, memory=160 << 20) as gpu:
        assert search(database, gpu) == expected
        assert all(cells_of(gpu)) or not resident
        plan = gpu.plan(Workload(database.residue_bytes, database.length_runs, [[10]]))
        assert plan.note.count("of 20 MiB allowed") == 8
    assert not CardDevice.taken[0]


@QUICKLY_RESIDENT
def test_every_kind_of_job(database, cpu, monkeypatch, resident):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(3)) as gpu:
        for mode in MODES:
            values = swsearch.score(QUERIES, database, mode=mode, engine=gpu)
            assert np.array_equal(values, swsearch.score(QUERIES, database, mode=mode, engine=cpu)), mode
        for options in (
            {"max_hits": 5, "max_alignments": 2, "distribution": True},
            {"statistics": "fitted", "evalue": 1e6, "max_hits": 10, "min_identity": 50.0},
            {"iterations": 3, "evalue": 10.0},
        ):
            each = []
            for engine in (gpu, cpu):
                found = swsearch.search(QUERIES, database, engine=engine, **options)
                each.append(
                    [(r.distribution, [(str(h.alignment), h.score, h.evalue) for h in r.hits]) for r in found]
                )
            assert repr(each[0]) == repr(each[1])


def test_chunks_of_no_job_and_fewer_blocks_than_devices(cpu, monkeypatch):
    monkeypatch.setattr(CardDevice, "free", 64 << 20)
    with fake_engines(monkeypatch, cards(3)) as gpu:
        for turn in range(3):
            check(gpu, cpu, draw(turn, [20, 0, 9]), draw(turn, range(1 + turn, 40, 2)))
    for subjects in (["ACDEFGHIKL"], ["", "ACD"], ["ACDEFGHIKL"] * 130):
        with Database.from_records(subjects) as made, fake_engines(monkeypatch, cards(8)) as gpu:
            for mode in MODES:
                got = results_of(["ACDEF", ""], made, gpu, mode=mode)
                assert got == results_of(["ACDEF", ""], made, cpu, mode=mode)


@RESIDENT
def test_several_segments_and_blocks_that_are_not_full(cpu, monkeypatch, tmp_path, resident):
    """Segments begin with long subjects again and end with blocks that are not full."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    for place, part in enumerate((SUBJECTS[:200], SUBJECTS[200:330], SUBJECTS[330:500])):
        (tmp_path / "part.fasta").write_text("".join(f">s{place}.{k}\n{text}\n" for k, text in enumerate(part)))
        (append_database if place else lambda db, more: build_database(more, db))(
            tmp_path / "made.h5", tmp_path / "part.fasta"
        )
    Small(monkeypatch, CHUNK, resident)
    with Database.open(tmp_path / "made.h5") as made, fake_engines(monkeypatch, cards(3)) as gpu:
        assert made.info()["n_segments"] == 3
        assert search(made, gpu) == search(made, cpu)


# who gets how much


def test_a_resident_database_is_partitioned_by_strength_and_by_memory(database, expected, monkeypatch):
    with fake_engines(monkeypatch, cards(3, multiprocessors=[4, 8, 12])) as gpu:
        assert search(database, gpu) == expected
        assert np.array(cells_of(gpu)) / sum(cells_of(gpu)) == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=0.1)
    parts = partition.partition_by_weight([1.0, 1.0], lambda device, part: device == 1 or part <= 0.2)
    assert parts == pytest.approx([0.2, 0.8], abs=1e-3)
    assert partition.partition_by_weight([1.0, 1.0], lambda device, part: part <= 0.4) is None


def test_the_faster_device_takes_more_of_what_is_streamed(database, expected, monkeypatch):
    Small(monkeypatch, 512, False)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        n_pieces = len(list(database.chunks(512)))
        CardDevice.held_back = {0: lambda: CardDevice.calls[1, "event"] > 0 and len(launched("arrange")) >= n_pieces}
        assert search(database, gpu) == expected
        assert 0 < CardDevice.calls[0, "launch"] < CardDevice.calls[1, "launch"]


# failures


@pytest.mark.parametrize(
    ("resident", "kind", "error"),
    sample(
        [(resident, kind, EngineError) for resident in (True, False) for kind in KINDS]
        + [(True, "launch", CudaError)],
        lambda case: case[1] == "launch" or (case[0] and case[1] in ("upload", "query", "load")),
    ),
)
def test_the_work_of_a_device_that_fails_goes_to_the_others(database, expected, monkeypatch, kind, resident, error):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        if kind == "free":  # which is done for the job before
            assert search(database, gpu) == expected
        CardDevice.faults[1] = Fault(kind, 1 if kind in ("upload", "launch") else 0, error)
        if not resident:  # device 0 holds six chunks at most before
            CardDevice.held_back[0] = lambda: 1 in CardDevice.gone
        with pytest.warns(
            SwsearchWarning, match="device 1, Fake GPU is left out, and the other devices do its"
        ) as told:
            assert search(database, gpu) == expected
            assert search(database, gpu) == expected
    assert len(told) == 1


@pytest.mark.parametrize("calls", [2, 14], ids=["first group", "later"])
def test_what_no_longer_fits_is_streamed(database, expected, monkeypatch, calls):
    """Two of three devices hold two thirds of the database, which is then read again for each group."""
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    monkeypatch.setattr(partition, "SLACK_BLOCKS", 2)
    Holding(monkeypatch, CHUNK, int(database.residue_bytes * 0.45) + 2 * 32 * 64)
    read, chunks = [], Database.chunks
    monkeypatch.setattr(Database, "chunks", lambda self, *a, **k: (read.append(1), chunks(self, *a, **k))[1])
    with fake_engines(monkeypatch, cards(3)) as gpu:
        assert search(database, gpu) == expected
        assert (gpu.is_resident, len(read)) == (True, 1)
        CardDevice.faults[2] = Fault("launch", calls)
        with pytest.warns(SwsearchWarning, match="device 2"):
            assert search(database, gpu) == expected
        assert not gpu.is_resident
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


@RESIDENT
def test_a_device_that_lacks_memory_is_left_out_of_the_job(database, expected, monkeypatch, resident):
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(2)) as gpu:
        CardDevice.faults[1] = Fault("upload", 1, GpuMemoryError)
        CardDevice.held_back[0] = lambda: 1 not in CardDevice.faults
        with pytest.warns(SwsearchWarning, match="device 1, Fake GPU is left out"):
            assert search(database, gpu) == expected
        before = cells_of(gpu)[1]
        CardDevice.held_back[0] = lambda: resident or CardDevice.calls[1, "query"] > 0
        assert search(database, gpu) == expected, "for the next job there may be memory again"
        assert cells_of(gpu)[1] > before
        free = CardDevice.free_memory
        monkeypatch.setattr(CardDevice, "free_memory", lambda self: 1 << 20 if self.info.index else free(self))
        with pytest.warns(SwsearchWarning, match="left out.*too little"):
            assert search(database, gpu) == expected


def test_a_job_that_fits_no_device(database, expected, monkeypatch):
    with fake_engines(monkeypatch, cards(2)) as gpu:
        with monkeypatch.context() as small:
            small.setattr(CardDevice, "free", 1 << 20)
            with pytest.raises(GpuMemoryError, match="expected at least") as caught:
                search(database, gpu)
            assert caught.value.exit_code == 4
        assert search(database, gpu) == expected, "the engine can be used again"


@QUICKLY_RESIDENT
def test_a_searcher_goes_on_with_the_devices_that_are_left(database, expected, monkeypatch, resident):
    monkeypatch.setattr(CardDevice, "free", 64 << 20)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(2)) as gpu, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with swsearch.Searcher(database, engine=gpu, max_hits=20, evalue=1e6) as searcher:
            for turn in range(3):
                found = [
                    [(h.subject_index, h.score, h.bit_score, h.evalue) for h in r.hits]
                    for r in searcher.search(QUERIES)
                ]
                assert found == expected
                if not turn:
                    CardDevice.faults[1] = Fault("launch", 3)
                    CardDevice.held_back[0] = lambda: resident or 1 in CardDevice.gone
    assert ["device 1" in str(each.message) for each in told] == [True]


@QUICKLY_RESIDENT
def test_progress_counts_every_cell_once_whatever_fails(database, monkeypatch, resident):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 30)
    Small(monkeypatch, CHUNK, resident)
    with fake_engines(monkeypatch, cards(3)) as gpu:
        for fault in ({}, {2: Fault("query", 9)}):
            CardDevice.faults, seen = fault, []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                list(swsearch.search(QUERIES, database, engine=gpu, progress=seen.append))
            assert sum(seen) == sum(map(len, QUERIES)) * database.n_residues
            assert min(seen) > 0


# beginning and ending


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
        CardDevice.held_back = dict.fromkeys((0, 1), lambda: False)
        results = swsearch.search(QUERIES, database, engine=gpu)
        waiting = threading.Thread(target=lambda: next(results, None))
        waiting.start()
        while not any(CardDevice.calls[k, "query"] > 0 for k in (0, 1)):
            waiting.join(0.001)
        CardDevice.held_back = {}
        waiting.join()
        results.close()


def test_devices_that_cannot_be_opened(monkeypatch):
    with pytest.raises(OptionError, match="at least one device"):
        fake_engines(monkeypatch, cards(1), [])
    with pytest.raises(OptionError, match="gpu_memory: got 0"):
        fake_engines(monkeypatch, cards(1), memory=0)

    def choose(index):
        if index == 1:
            raise GpuUnavailableError("engine gpu cannot be used: device 1 could not be opened (exclusive)")
        return replace(INFO, index=index)

    fake_engine(monkeypatch).close()
    monkeypatch.setattr(engine_module, "choose_device", choose)
    with pytest.warns(SwsearchWarning, match=r"^a GPU is left out: device 1 could not be opened \(exclusive\)$"):
        engine = MultiGpuEngine([0, 1, 2], spare=True)
    with engine:
        assert engine.description == "gpu (2 x Fake GPU, sm_90, fake compiler)"
    for devices, spare in (([0, 1], False), ([1], True), ([1, 1], True)):
        with pytest.raises(GpuUnavailableError, match="device 1 could not be opened"):
            MultiGpuEngine(devices, spare=spare)


def test_an_engine_that_nobody_closes_ends_its_threads(database, monkeypatch):
    gpu = fake_engines(monkeypatch, cards(2))
    search(database, gpu)
    del gpu
    gc.collect()  # the fixture sees that the threads have ended


def test_descriptions(database, monkeypatch):
    with fake_engines(monkeypatch, cards(2)) as gpu:
        assert gpu.description == "gpu (2 x Fake GPU, sm_90, fake compiler)"
        search(database, gpu)
        assert gpu.usage.cells == sum(cells_of(gpu)) > 0
        assert gpu.usage.kernel_seconds > 0
    with fake_engines(monkeypatch, cards(2, name=["Big", "Small"], capability=[(9, 0), (8, 6)])) as gpu:
        assert gpu.description == "gpu (device 0, Big; device 1, Small, sm_90, sm_86, fake compiler)"
    with fake_engines(monkeypatch, cards(1), [0, 0]) as gpu:
        assert gpu.description.startswith("gpu (device 0, Fake GPU; device 0, Fake GPU, sm_90")
