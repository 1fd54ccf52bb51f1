"""Shuffled copies scored by a GPU engine, on the device of fake_gpu.py or a real one, against the extension."""

import threading

import numpy as np
import pytest

from support.cases import draw, flat_matrix, random_profile
from support.fake_gpu import FakeDevice, fake_engine, launched
from swsearch.engines.gpu import pair_scores
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.pools import make_pool
from swsearch.options.kinds import MODES
from swsearch.pipeline import null_models
from swsearch.pipeline.null_models import REVERSED, UNCHANGED, score_shuffled
from swsearch.recurrence import Recurrence
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring

ALL_COPIES = [range(REVERSED, 3), range(3, 7), range(UNCHANGED, UNCHANGED + 1), range(2, 5)]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(null_models, "ENGINE_WORTH_CELLS", 0)
    monkeypatch.setattr(pair_scores, "CALL_BYTES", 8 << 20)
    with fake_engine(monkeypatch) as engine:
        yield engine


def check(engine, queries, sequences, pairs, copies, recurrence):
    """Compare what an engine and the CPU score."""
    arguments = queries, make_pool(sequences), np.array(pairs, dtype=np.int64), copies, recurrence, 2
    found = score_shuffled(*arguments, engine)
    assert found.tolist() == score_shuffled(*arguments).tolist()
    return found


def all_pairs(queries, sequences):
    return [(a, b) for a in range(len(queries)) for b in range(len(sequences))]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("copies", ALL_COPIES)
def test_copies_of_all_pairs(gpu, mode, copies):
    queries, sequences = draw(1, [5, 130, 600, 33]), draw(2, [1, 70, 301, 64, 9, 200])
    check(gpu, queries, sequences, all_pairs(queries, sequences), copies, Recurrence(Scoring(), mode))
    (launch,) = launched("wavefront")
    narrow = mode == "local" and len(copies) % 2 == 0
    assert launch.defines["SWSEARCH_BITS"] == (16 if narrow else 32)


@pytest.mark.parametrize("mode", MODES)
def test_profiles_beside_sequences(gpu, mode):
    queries = [random_profile(np.random.default_rng(3), 90), *draw(4, [40])]
    sequences = draw(5, [80, 20, 55])
    check(gpu, queries, sequences, all_pairs(queries, sequences), range(4), Recurrence(Scoring(), mode))


def test_scores_beyond_16_bits(gpu):
    recurrence = Recurrence(Scoring(flat_matrix(127, -127)), "local")
    queries, sequences = [np.full(400, 3, dtype=np.uint8)], [np.full(390, 3, dtype=np.uint8), *draw(6, [30])]
    found = check(gpu, queries, sequences, [(0, 0), (0, 1)], range(4), recurrence)
    assert found.max() == 390 * 127
    assert [launch.defines["SWSEARCH_BITS"] for launch in launched("wavefront")] == [16, 32]


def test_more_subjects_than_one_call_takes(gpu, monkeypatch):
    monkeypatch.setattr(null_models, "PAIR_RESIDUES", 1000)
    queries, sequences = draw(7, [50, 20]), draw(8, [100, 90, 120, 80, 1500])
    check(gpu, queries, sequences, all_pairs(queries, sequences), range(4), Recurrence(Scoring(), "local"))
    assert len(launched("wavefront")) > 2


def test_little_memory_between_passes(gpu, monkeypatch):
    monkeypatch.setattr(pair_scores, "CALL_BYTES", 1 << 20)
    queries, sequences = draw(9, [1500, 600]), draw(10, [700] * 40)
    check(gpu, queries, sequences, all_pairs(queries, sequences), range(4), Recurrence(Scoring(), "local"))
    (launch,) = launched("wavefront")
    assert launch.blocks * launch.threads // 32 < 2 * 40 * 4 // 2  # fewer warps than tasks


@pytest.mark.parametrize("length", [0, 40])
def test_the_cpu_scores_what_a_gpu_does_not(gpu, length):
    gaps = PositionGapCosts.uniform(30, 11, 1)
    rows = random_profile(np.random.default_rng(11), 30)
    queries = [QueryProfile(rows.scores, rows.codes, gaps=gaps, is_specific=True)] if length else draw(12, [30])
    check(gpu, queries, draw(13, [length, 50]), [(0, 0), (0, 1)], range(2), Recurrence(Scoring(), "global"))
    assert not launched("wavefront")


def test_the_cpu_goes_on_without_memory(gpu, monkeypatch):
    def fail(self, n_bytes):
        raise GpuMemoryError("no memory")

    monkeypatch.setattr(FakeDevice, "allocate", fail)
    check(gpu, draw(14, [30]), draw(15, [50, 40]), [(0, 0), (0, 1)], range(2), Recurrence(Scoring(), "local"))
    assert not launched("wavefront")


def test_few_cells_are_left_to_the_cpu(monkeypatch):
    with fake_engine(monkeypatch) as engine:
        check(engine, draw(16, [30]), draw(17, [50]), [(0, 0)], range(2), Recurrence(Scoring(), "local"))
    assert not launched("wavefront")


@pytest.mark.gpu
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("copies", ALL_COPIES)
def test_on_a_gpu(real_gpu, mode, copies, monkeypatch):
    monkeypatch.setattr(null_models, "ENGINE_WORTH_CELLS", 0)
    generator = np.random.default_rng(18)
    queries = draw(19, generator.integers(1, 3000, 30).tolist())
    sequences = draw(20, generator.integers(1, 2500, 300).tolist())
    pairs = np.stack([generator.integers(0, 30, 2000), generator.integers(0, 300, 2000)], axis=1)
    check(real_gpu, queries, sequences, pairs, copies, Recurrence(Scoring(), mode))


@pytest.mark.gpu
def test_threads_on_a_gpu(real_gpu, monkeypatch):
    monkeypatch.setattr(null_models, "ENGINE_WORTH_CELLS", 0)
    failed = []

    def work(seed):
        queries, sequences = draw(seed, [300, 700]), draw(seed + 100, [400] * 50)
        try:
            check(
                real_gpu, queries, sequences, all_pairs(queries, sequences), range(4), Recurrence(Scoring(), "local")
            )
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
