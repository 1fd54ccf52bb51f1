"""Which GPUs ``device=`` and ``--device`` name, on machines that are made up."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import swsearch
from support import fake_driver
from support.fake_driver import Card
from swsearch.cli.tables import DeviceNumbers
from swsearch.engines import factory
from swsearch.engines.devices import MAX_DEVICES, available_devices_message, check_devices, resolve_devices
from swsearch.engines.factory import create_engine, create_pair_aligner
from swsearch.engines.reference import ReferenceEngine, ReferencePairAligner
from swsearch.errors import GpuUnavailableError, OptionError, SwsearchWarning

OLD = Card("Tesla P100", (6, 0), 56, 16 << 30)
SMALL = Card("NVIDIA L4", (8, 9), 58, 24 << 30)
BOTH = "there are 0 (NVIDIA L4), 1 (NVIDIA H200)"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (3, 3),
        (np.int64(3), 3),
        (3.0, 3),
        ("all", "all"),
        ([1], 1),
        ([0, 1], (0, 1)),
        ((0, 0), (0, 0)),
        (range(3), (0, 1, 2)),
        (np.array([2, 0], dtype=np.uint8), (2, 0)),
        ([np.int32(1), 0], (1, 0)),
    ],
)
def test_devices(given, expected):
    found = check_devices(given)
    assert found == expected
    assert all(type(each) is int for each in (found if isinstance(found, tuple) else ()))


BAD = [
    "", "0", "0,1", "ALL", b"all", True, np.True_, -1, 1.5, 10**9, 10**30, float("nan"), [], (), np.array([]), {0, 1},
    {0: 1}, [0, True], [0, -1], [0, 1.5], [0, None], [[0]], [0, [1]], np.array([[0, 1]]), np.array(0), [0, "1"],
    ["all"], [0] * (MAX_DEVICES + 1), [0] * 10**6, range(10**30), [0, 10**9], object(), iter([0]),
]  # fmt: skip


@pytest.mark.parametrize("given", BAD, ids=lambda value: repr(value)[:20])
def test_what_names_no_device_is_told_with_the_devices_there_are(monkeypatch, given):
    fake_driver.install(monkeypatch, [SMALL, Card()])
    with pytest.raises(OptionError) as caught:
        swsearch.search("MKVLA", ["MKVLA"], device=given)
    message = str(caught.value)
    assert re.match('device: got .*, expected the number of a GPU, a list of such numbers, or "all"', message)
    assert message.endswith(f"; {BOTH}")
    assert len(message) < 300
    fake_driver.remove(monkeypatch)  # nor does it take a GPU to say so
    for call in (create_engine, create_pair_aligner):
        with pytest.raises(OptionError, match=r"^device: got .*, expected the number of a GPU"):
            call("cpu", device=given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), (" 1 ", 1), ("0,1", (0, 1)), ("0, 0", (0, 0)), ("all", "all"), ("ALL", "all"), ("2,1,0", (2, 1, 0))],
)
def test_devices_of_the_command_line(text, expected):
    assert DeviceNumbers().parse("device", text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "0,", ",0", "0,,1", "-1", "0,-1", "1.5", "1e0", "01", "1,000", "0-3", "0;1", "0 1", "0x1", "a,ll",
     "all,0", "1" * 5000, "0," * 99 + "0", "\N{ARABIC-INDIC DIGIT ONE}", "none"],
)  # fmt: skip
def test_what_the_command_line_takes_for_no_devices(monkeypatch, text):
    fake_driver.install(monkeypatch, [SMALL, Card()])
    with pytest.raises(OptionError) as caught:
        DeviceNumbers().parse("device", text)
    assert (caught.value.expected, caught.value.remedy) == (
        "the number of a GPU, several with commas between them, such as 0,1, or all",
        BOTH,
    )


def test_where_there_is_none_none_is_named(monkeypatch):
    fake_driver.remove(monkeypatch)
    assert available_devices_message() == ""


class Made(ReferenceEngine):
    def __init__(self, *given, spare=None):
        self.given = given if spare is None else (*given, spare)


class MadePairs(ReferencePairAligner):
    def __init__(self, *given, spare=None):
        self.given = given if spare is None else (*given, spare)


@pytest.fixture
def machine(monkeypatch):
    """Return a function that makes up a machine with GPUs; engines know what they were asked for."""
    kinds = {
        "swsearch.engines.gpu.engine": ("GpuEngine", Made),
        "swsearch.engines.gpu.multi_gpu": ("MultiGpuEngine", Made),
        "swsearch.engines.gpu.pairs.aligner": ("GpuPairAligner", MadePairs),
        "swsearch.engines.gpu.pairs.multi_gpu": ("MultiGpuPairAligner", MadePairs),
    }
    for module, (name, kind) in kinds.items():
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: type(name, (kind,), {})}))
    monkeypatch.setattr(factory, "chosen_package", lambda: "pycuda")
    return lambda *cards: fake_driver.install(monkeypatch, cards)


def made(name="gpu", pairs=None, **options):
    """Return what both kinds of engine were made of."""
    both = create_engine(name, **options), create_pair_aligner(name, pairs=pairs, **options)
    return [(type(each).__name__, *each.given) for each in both]


@pytest.mark.parametrize("name", ["gpu", "auto"])
def test_one_device_takes_the_engine_for_one(machine, name):
    machine(Card())
    for device, number in ((None, None), (0, 0), ([0], 0), ("all", 0)):
        assert made(name, device=device) == [("GpuEngine", number, None), ("GpuPairAligner", number, None)]


def test_several_devices(machine):
    machine(SMALL, Card(), SMALL)
    assert made(device=[0, 2], gpu_memory=5) == [
        ("MultiGpuEngine", [0, 2], 5, False),
        ("MultiGpuPairAligner", [0, 2], 5, False),
    ]
    # for pairs those with the most multiprocessors come first
    assert made("auto", device="all") == [
        ("MultiGpuEngine", [0, 1, 2], None, True),
        ("MultiGpuPairAligner", [1, 0, 2], None, True),
    ]
    assert made(device=(0, 0)) == [
        ("MultiGpuEngine", [0, 0], None, False),
        ("MultiGpuPairAligner", [0, 0], None, False),
    ]


def test_no_more_devices_are_opened_than_there_are_pairs(machine):
    machine(SMALL, Card(), SMALL)
    assert made(pairs=1, device="all")[1] == ("GpuPairAligner", 1, None)
    assert made(pairs=2, device="all")[1] == ("MultiGpuPairAligner", [1, 0], None, True)
    assert made(pairs=0, device=[0, 1])[1] == ("MultiGpuPairAligner", [1, 0], None, False)


def test_devices_that_are_too_old_are_left_out_of_all_and_refused_by_name(machine):
    machine(OLD, SMALL, Card())
    left_out = "a GPU is left out: device 0, Tesla P100 has compute capability 6.0, expected at least 7.5"
    with pytest.warns(SwsearchWarning) as told:
        assert [each.index for each in resolve_devices("all")] == [1, 2]
    assert [str(each.message) for each in told] == [left_out]
    with pytest.raises(GpuUnavailableError, match=r"device 0, Tesla P100 has compute capability 6.0"):
        create_engine("gpu", device=[0, 1])
    machine(OLD, SMALL)
    with pytest.warns(SwsearchWarning, match=f"^{left_out}$"):
        assert made(device="all") == [("GpuEngine", 1, None), ("GpuPairAligner", 1, None)]
    machine(OLD)
    with pytest.raises(GpuUnavailableError, match=r"Tesla P100 has compute capability 6.0"):
        create_engine("gpu", device="all")


def test_a_number_that_is_not_there(machine):
    machine(SMALL, Card())
    for make in (create_engine, create_pair_aligner):
        with pytest.raises(OptionError) as caught:
            make("auto", device=[0, 2])
        assert str(caught.value) == "device: got 2, expected one of 0 (NVIDIA L4), 1 (NVIDIA H200)"


@pytest.mark.parametrize("device", ["all", [0, 1], 0])
def test_without_a_gpu_auto_takes_the_cpu_and_says_why(monkeypatch, device):
    fake_driver.remove(monkeypatch)
    for make in (create_engine, create_pair_aligner):
        told = []
        with make("auto", device=device, threads=1, on_message=told.append) as found:
            assert found.name == "cpu"
            assert told == [found.fallback]
            assert told[0].startswith(
                "running on the CPU: engine gpu cannot be used: neither PyCUDA nor cuda-bindings is installed"
            )
        with pytest.raises(GpuUnavailableError, match="neither PyCUDA nor cuda-bindings is installed"):
            make("gpu", device=device)
        for name in ("cpu", "reference"):
            with pytest.raises(OptionError, match=f"^device: got .*, expected none with engine {name}"):
                make(name, device=device)


def test_a_search_in_python_without_a_gpu(monkeypatch):
    fake_driver.remove(monkeypatch)
    (result,) = swsearch.search("MKVLA", ["MKVLA"], device="all", threads=1)
    assert len(result.hits) == 1
    with swsearch.Searcher(["MKVLA"], device=[0, 1], threads=1) as searcher:
        assert searcher.engine.name == "cpu"
    assert swsearch.score("MKVLA", ["MKVLA"], device=(0, 0), threads=1)[0, 0] > 0
    assert swsearch.align("MKVLA", "MKVLA", device="all", threads=1).score > 0
