"""Pairs on several devices that are made up: what one aligner finds, in the same order, whatever the devices do."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from support import fake_driver
from support.cases import random_codes, random_profile
from support.fake_driver import Card
from support.fake_gpu import INFO, fake_engine
from support.host_pairs import HostFunction, host_aligner
from support.samples import sample
from swsearch.alignment_table import ALIGNMENT_COLUMNS
from swsearch.blocks import letters_with_mask
from swsearch.cli import main
from swsearch.engines.cpu.pairs import CpuPairAligner
from swsearch.engines.gpu import device_group
from swsearch.engines.gpu import engine as engine_module
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.engine import GPU_WORTH_HITS
from swsearch.engines.gpu.multi_gpu import MultiGpuEngine
from swsearch.engines.gpu.pairs import multi_gpu
from swsearch.engines.gpu.pairs.multi_gpu import PARTS_EACH, MultiGpuPairAligner, cuts
from swsearch.engines.gpu.pairs.plan import PAIR_MEMORY
from swsearch.engines.pools import PoolPairs, make_pool, rows_pool
from swsearch.errors import EngineError, GpuUnavailableError, InputError, MemoryLimitError, SwsearchWarning
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, codes_of

LOCAL = Recurrence(Scoring(), "local")
BUSY = GpuUnavailableError("engine gpu cannot be used: device 1, Fake could not be opened (exclusive)")
WAIT = 60.0
"""Seconds after which a thread that should have come is taken for lost; nothing takes so long."""


class FakePairs(CpuPairAligner):
    """Stands for `GpuPairAligner`: aligns on the CPU, and does what its device's plan says.

    A plan may have ``opens`` (an error instead), ``before`` (called with the number of the part, from 0, before it is
    done; may wait or raise), ``least`` (residues of a query that it has no memory for) and ``multiprocessors``.
    """

    plans: dict = {}  # noqa: RUF012
    made: list = []  # noqa: RUF012

    def __init__(self, index, memory=None):
        super().__init__(threads=1)
        self.plan = self.plans.get(index, {})
        if "opens" in self.plan:
            raise self.plan["opens"]
        many = self.plan.get("multiprocessors", 4)
        self.info = replace(INFO, index=index, name="Fake", multiprocessors=many)
        self.compiler = SimpleNamespace(description="fake compiler")
        self.index, self.given, self.parts, self.closed = index, memory, 0, 0
        self.made.append(self)

    def begin(self, lengths):
        assert not self.closed
        assert threading.current_thread().name.startswith("swsearch-pairs-")
        self.parts += 1
        self.plan.get("before", lambda number: None)(self.parts - 1)
        if max(lengths, default=0) >= self.plan.get("least", 1 << 30):
            raise GpuMemoryError(f"device {self.index}: no memory")

    def align(self, query, subject, recurrence):
        self.begin([len(query)])
        return super().align(query, subject, recurrence)

    def score(self, query, subject, recurrence):
        self.begin([len(query)])
        return super().score(query, subject, recurrence)

    def align_many(self, pairs, recurrence):
        self.begin([len(query) for query, _ in pairs])
        return super().align_many(pairs, recurrence)

    def score_many(self, pairs, recurrence):
        self.begin([len(query) for query, _ in pairs])
        return super().score_many(pairs, recurrence)

    def align_pools(self, batch, recurrence):
        self.begin(batch.places[:, 1])
        return super().align_pools(batch, recurrence)

    def stop(self):
        self.plan.get("stop", lambda: None)()

    def close(self):
        self.closed += 1


@pytest.fixture
def several(monkeypatch):
    """Return a function that makes the aligner of devices with plans; every device is closed in the end."""
    monkeypatch.setattr(multi_gpu, "GpuPairAligner", FakePairs)
    monkeypatch.setattr("swsearch.engines.gpu.pairs.aligner.GpuPairAligner", FakePairs)
    monkeypatch.setattr(multi_gpu, "PART_CELLS", 100.0)
    monkeypatch.setattr(multi_gpu, "PART_PAIRS", 2)
    monkeypatch.setattr(FakePairs, "made", [])
    aligners = []

    def make(devices, plans=None, **options):
        monkeypatch.setattr(FakePairs, "plans", plans or {})
        aligners.append(MultiGpuPairAligner(devices, **options))
        return aligners[-1]

    yield make
    for aligner in aligners:
        aligner.close()
    assert all(each.closed == 1 for each in FakePairs.made)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("swsearch-pairs-")]


def some_pairs(n=40):
    """Return pairs of sequences, some of them empty, and what one aligner finds."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(0, 30, (n, 2))
    pairs = [(random_codes(generator, int(a)), random_codes(generator, int(b))) for a, b in lengths]
    with CpuPairAligner(threads=1) as one:
        return pairs, aligned(one, pairs)


def aligned(aligner, pairs):
    return [summary(pair) for pair in aligner.align_many(pairs, LOCAL)]


def summary(pair):
    return pair.score, pair.query_start, pair.subject_start, pair.cigar


def parts_of(devices):
    """Return the number of parts that each device of these numbers began."""
    return [sum(each.parts for each in FakePairs.made if each.index == index) for index in devices]


@pytest.mark.parametrize("devices", [[0, 1], [0, 0], [3, 1, 2, 0], list(range(8))], ids=str)
def test_results_are_those_of_one(several, devices):
    pairs, expected = some_pairs()
    aligner = several(devices)
    for n in (40, 0, 1, 2):
        assert aligned(aligner, pairs[:n]) == expected[:n]
        assert list(aligner.score_many(iter(pairs[:n]), LOCAL)) == [one[0] for one in expected[:n]]
    assert summary(aligner.align(*pairs[5], LOCAL)) == expected[5]
    assert aligner.score(*pairs[5], LOCAL) == expected[5][0]
    assert sum(parts_of(set(devices))) > 20


def test_pools_of_sequences_and_profiles(several):
    generator = np.random.default_rng(3)
    queries = [random_profile(generator, length) for length in (12, 25, 8)]
    subjects = [random_codes(generator, length) for length in (0, 15, 40, 22)]
    pool, others = make_pool([codes_of(query) for query in queries]), make_pool(subjects)
    pairs = np.array([(q, s) for s in (3, 0, 1, 2) for q in (2, 0, 1)] * 3)
    letters = (None, letters_with_mask(others[0], [(3, 9), (20, 24)]))
    aligner = several([0, 1, 2])
    with CpuPairAligner(threads=1) as one:
        for rows in (None, rows_pool(queries, Scoring())):
            for some, known in ((pairs, None), (pairs, np.zeros(len(pairs), dtype=np.int32)), (pairs[:0], None)):
                batch = PoolPairs(pool, others, some, letters, rows, known)
                found, wanted = aligner.align_pools(batch, LOCAL), one.align_pools(batch, LOCAL)
                assert found.cigar_strings() == wanted.cigar_strings()
                for name in ALIGNMENT_COLUMNS:
                    assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
    with pytest.raises(ValueError, match="expected places of sequences from 0 to 2 in the pairs' column 0"):
        aligner.align_pools(PoolPairs(pool, others, pairs + 1), LOCAL)


# who does how much


def test_devices_work_at_the_same_time_and_a_faster_one_does_more(several):
    met, done, waited = threading.Barrier(3), threading.Event(), []

    def slow(number):
        if number == 0:
            met.wait(WAIT)
            waited.append(done.wait(WAIT))

    def fast(number):
        if number == 0:
            met.wait(WAIT)  # passes when all do a part
        if number == 5:
            done.set()

    pairs, expected = some_pairs()
    aligner = several(
        [0, 1, 2], {0: {"before": slow, "multiprocessors": 9}, 1: {"before": fast}, 2: {"before": slow}}
    )
    assert aligned(aligner, pairs) == expected
    assert waited == [True, True]  # device 1 did six parts while the first of the others was not done


def test_one_pair_goes_to_the_device_with_the_most_multiprocessors(several):
    pairs, expected = some_pairs(8)
    aligner = several([0, 1, 2, 3], {2: {"multiprocessors": 132}, 3: {"multiprocessors": 132}})
    for pair, one in zip(pairs, expected, strict=True):
        assert summary(aligner.align(*pair, LOCAL)) == one
        assert list(aligner.score_many([pair], LOCAL)) == [one[0]]
    assert parts_of(range(4)) == [0, 0, 16, 0]


@pytest.mark.parametrize("n", [0, 1, 5, 3000, 100_000])
@pytest.mark.parametrize("devices", [1, 2, 8])
def test_parts_are_about_equal_and_not_too_small(monkeypatch, n, devices):
    lengths = np.random.default_rng(n).integers(0, 4000, (n, 2))
    if n > 5:
        lengths[7] = 1_000_000_000  # 10^18 cells
    found = list(cuts(lengths[:, 0], lengths[:, 1], devices))
    assert [place for some in found for place in range(some.start, some.stop)] == list(range(n))
    assert len(found) == min(n, 1) if n <= 5 else found[0].stop == 8
    if n == 100_000:
        lengths[7] = 0
        monkeypatch.setattr(multi_gpu, "PART_PAIRS", 2)
        cells = lengths[:, 0] * lengths[:, 1]
        each = [cells[some].sum() for some in cuts(lengths[:, 0], lengths[:, 1], devices)]
        assert PARTS_EACH * devices - 1 <= len(each) <= PARTS_EACH * devices + 1
        assert max(each) < 1.05 * sum(each) / (PARTS_EACH * devices)
    long = np.full(10, 100_000)
    assert list(cuts(long, long, 2)) == [slice(k, k + 1) for k in range(10)], "long pairs are parts of their own"


# failures


@pytest.mark.parametrize("at", sample([0, 3], bool))
def test_a_device_that_fails_leaves_its_work_to_the_others(several, at):
    failed = threading.Event()

    def fail(number):
        if number == at:
            failed.set()
            raise EngineError("device 1, Fake: aligning pairs failed (an illegal memory access)")

    def wait(number):
        assert failed.wait(WAIT)

    pairs, expected = some_pairs()
    plans = {0: {"before": wait}, 1: {"before": fail, "multiprocessors": 9}, 2: {"before": wait}}
    aligner = several([0, 1, 2], plans)
    told = "^device 1, Fake is left out, and the other devices do its work: device 1, Fake: aligning pairs failed"
    with pytest.warns(SwsearchWarning, match=told) as warned:
        assert aligned(aligner, pairs) == expected
    assert len(warned) == 1
    assert aligned(aligner, pairs) == expected  # and the device does not come back
    assert parts_of([1]) == [at + 1]


@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")
def test_if_all_devices_fail_the_error_of_one_is_raised(several):
    def fail(number):
        if number == 1:
            raise EngineError("device failed")

    pairs, _ = some_pairs()
    aligner = several([0, 0, 0], {0: {"before": fail}})
    for call in (lambda: list(aligner.score_many(pairs, LOCAL)), lambda: aligner.align(*pairs[0], LOCAL)):
        with pytest.raises(EngineError, match=r"^device failed$"):
            call()


@pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")
def test_what_one_device_has_no_memory_for_another_does(several):
    pairs, expected = some_pairs()
    few = [place for place, (query, _) in enumerate(pairs) if len(query) < 5]
    aligner = several([0, 1, 2], {0: {"least": 10}, 1: {"least": 5}})
    for _ in range(2):
        assert aligned(aligner, pairs) == expected

    def fail(number):
        raise EngineError("the large device failed")

    for plan, message in (({"least": 10}, "device 0: no memory"), ({"before": fail}, "device 1: no memory")):
        aligner = several([0, 1], {0: {**plan, "multiprocessors": 9}, 1: {"least": 5}})
        with pytest.raises(MemoryLimitError, match=message):
            aligned(aligner, pairs)
        assert aligned(aligner, [pairs[place] for place in few]) == [expected[place] for place in few]


def test_what_is_wrong_with_a_pair_is_told_and_ends_nothing_else(several):
    def refuse(number):
        if number == 3:
            raise InputError("too long")

    pairs, expected = some_pairs()
    aligner = several([0], {0: {"before": refuse}})
    with pytest.raises(InputError, match=r"^too long$"):
        for pair, one in zip(aligner.align_many(pairs, LOCAL), expected, strict=True):
            assert summary(pair) == one
    assert parts_of([0])[0] >= 4
    assert aligned(aligner, pairs) == expected  # it goes on


# beginning and ending


def test_pairs_are_drawn_as_results_are_taken_and_what_nobody_takes_is_not_done(several, monkeypatch):
    monkeypatch.setattr("swsearch.engines.gpu.pairs.aligner.BATCH_PAIRS", 4)
    drawn, opened = [], threading.Event()
    pairs, expected = some_pairs()

    def endless():
        while True:
            drawn.append(None)
            yield pairs[0]

    plan = {"before": lambda number: number < 5 or opened.wait(WAIT)}
    aligner = several([0, 1], {0: plan, 1: plan})
    found = aligner.align_many(endless(), LOCAL)
    for _ in range(10):
        assert summary(next(found)) == expected[0]
    found.close()
    opened.set()
    assert len(drawn) <= 10 + 4 * (2 * PARTS_EACH * 2 + 2)
    assert aligned(aligner, pairs[:9]) == expected[:9]
    assert sum(parts_of([0, 1])) < 30


def test_closing_stops_what_is_under_way(several):
    started, stopped, failures = threading.Event(), threading.Event(), []

    def wait(number):
        started.set()
        assert stopped.wait(WAIT)
        raise EngineError("the alignment of pairs was stopped")

    aligner = several([0, 1], {index: {"before": wait, "stop": stopped.set} for index in (0, 1)})
    pairs, _ = some_pairs()

    def take():
        try:
            aligned(aligner, pairs)
        except EngineError as error:
            failures.append(str(error))

    taker = threading.Thread(target=take)
    taker.start()
    assert started.wait(WAIT)
    aligner.close()
    taker.join(WAIT)
    assert len(failures) == 1
    with pytest.raises(EngineError, match=r"^the aligner was closed$"):
        aligner.align(*pairs[0], LOCAL)


def test_devices_that_cannot_be_opened(several, monkeypatch):
    with pytest.raises(GpuUnavailableError, match="device 1, Fake could not be opened"):
        several([0, 1, 2], {1: {"opens": BUSY}})
    pairs, expected = some_pairs()
    with pytest.warns(
        SwsearchWarning, match=r"^a GPU is left out: device 1, Fake could not be opened \(exclusive\)$"
    ):
        aligner = several([0, 1, 2], {1: {"opens": BUSY}}, spare=True)
    assert aligned(aligner, pairs) == expected
    with pytest.raises(GpuUnavailableError, match="device 1, Fake could not be opened"):
        several([0, 1], {0: {"opens": BUSY}, 1: {"opens": BUSY}}, spare=True)
    start = threading.Thread.start

    def none_left(self):
        if self.name == "swsearch-pairs-1":
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", none_left)
    with pytest.raises(EngineError, match=r"no thread for a GPU could be started \(can't start new thread\)"):
        several([0, 1])
    monkeypatch.setattr(device_group, "can_start_threads", lambda count: count < 2)
    with pytest.raises(EngineError, match="a limit of memory, ulimit -v, is near"):
        several([0, 1])


def test_memory_of_a_device_that_comes_again_is_shared(several):
    several([0, 1, 0])
    found = sorted((each.index, each.given or 0) for each in FakePairs.made)
    assert found == [(0, PAIR_MEMORY // 2), (0, PAIR_MEMORY // 2), (1, 0)]
    several([2, 2, 3], memory=1000)
    assert sorted((each.index, each.given) for each in FakePairs.made[3:]) == [(2, 500), (2, 500), (3, 1000)]
    assert several([0, 1]).description == "gpu (2 x Fake, sm_90, fake compiler)"


# the whole


def test_the_kernels_themselves_on_one_device_opened_twice(monkeypatch):
    generator = np.random.default_rng(6)
    pairs = [(random_codes(generator, 40), random_codes(generator, n)) for n in (30, 1, 50, 33, 20, 60)]
    monkeypatch.setattr(multi_gpu, "PART_CELLS", 100.0)
    monkeypatch.setattr(multi_gpu, "PART_PAIRS", 2)
    with host_aligner(monkeypatch, seed=1) as one, MultiGpuPairAligner([0, 0]) as both:
        expected = aligned(one, pairs)
        HostFunction.launches.clear()
        assert aligned(both, pairs) == expected
        assert len(HostFunction.launches) == 3


def test_what_a_search_found_is_aligned_by_its_devices(several, monkeypatch):
    several([0]).close()  # for what it puts in place of devices
    fake_engine(monkeypatch).close()
    monkeypatch.setattr(engine_module, "choose_device", lambda index: replace(INFO, index=index))
    pairs, expected = some_pairs()
    with MultiGpuEngine([2, 0, 2, 1]) as engine:
        assert engine.pair_aligner(GPU_WORTH_HITS - 1) is None
        FakePairs.made.clear()
        with engine.pair_aligner(GPU_WORTH_HITS) as aligner:
            assert aligned(aligner, pairs) == expected
        assert sorted(each.index for each in FakePairs.made) == [0, 1, 2]
        # one that cannot be opened for this leaves the others to do it
        monkeypatch.setattr(FakePairs, "plans", {1: {"opens": BUSY}})
        with pytest.warns(SwsearchWarning, match=r"^a GPU is left out: device 1, Fake could not be opened"):
            engine.pair_aligner(GPU_WORTH_HITS).close()
    with MultiGpuEngine([0, 1], memory=32 << 20) as engine:
        assert engine.pair_aligner(GPU_WORTH_HITS) is None


def test_the_command_line_prints_the_same_and_says_what_failed(several, monkeypatch, tmp_path, capsys):
    several([0]).close()  # for what it puts in place of devices
    fake_driver.install(
        monkeypatch, [Card(), Card("NVIDIA L4", (8, 9), 58, 24 << 30), Card("Old", (6, 0), 10, 1 << 30)]
    )
    monkeypatch.setattr("swsearch.engines.factory.chosen_package", lambda: "pycuda")
    monkeypatch.setattr("signal.signal", lambda *_: None)
    met = threading.Barrier(2)

    def fail(number):
        met.wait(WAIT)  # both devices have a part
        raise EngineError("device 0, NVIDIA H200: aligning pairs failed (unspecified launch failure)")

    def meet(number):
        if number == 0:
            met.wait(WAIT)

    monkeypatch.setattr(FakePairs, "plans", {0: {"before": fail}, 1: {"before": meet}})
    generator = np.random.default_rng(1)
    letters = Scoring().matrix.alphabet
    for name, n in (("a", 6), ("b", 5)):
        sequences = [letters.decode(random_codes(generator, 20, 20)) for _ in range(n)]
        (tmp_path / name).write_text("".join(f">{name}{k}\n{one}\n" for k, one in enumerate(sequences)))
    printed = []
    for options in (["--engine", "cpu", "-q"], ["--device", "all", "-q"]):
        words = ["align", str(tmp_path / "a"), str(tmp_path / "b"), "--mode", "local", "--outfmt", "cigar", *options]
        monkeypatch.setattr("sys.argv", ["swsearch", *words])
        assert not main.main()
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out != ""
    assert printed[0].err == ""
    assert printed[1].err.splitlines() == [
        "swsearch: warning: a GPU is left out: device 2, Old has compute capability 6.0, expected at least 7.5",
        "swsearch: warning: device 0, Fake is left out, and the other devices do its work: device 0, NVIDIA H200: "
        "aligning pairs failed (unspecified launch failure)",
    ]
