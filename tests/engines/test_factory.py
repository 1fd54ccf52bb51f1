"""Which engine and which pair aligner a name stands for, whatever becomes of the attempt to use a GPU."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from support import fake_driver
from swsearch import extension
from swsearch.engines import factory
from swsearch.engines.factory import GPU_WORTH_CELLS, create_engine, create_pair_aligner
from swsearch.engines.reference import ReferenceEngine, ReferencePairAligner
from swsearch.errors import EngineError, GpuUnavailableError, MemoryLimitError, OptionError

NO_DRIVER = GpuUnavailableError("engine gpu cannot be used: no NVIDIA driver was found")
KINDS = {
    "engine": (create_engine, "_gpu_engine", ReferenceEngine),
    "pairs": (create_pair_aligner, "_gpu_pairs", ReferencePairAligner),
}


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    """Return a factory of engines or pair aligners; its `gpu` sets the outcome of the attempt to use a GPU."""
    create, name, made = KINDS[request.param]

    def gpu(outcome, installed=True):
        def attempt(device, memory, pairs=None):
            asked.append((device, memory))
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        asked = []
        monkeypatch.setattr(factory, name, attempt)
        monkeypatch.setattr(factory, "chosen_package", lambda: "pycuda" * installed)
        return asked

    return SimpleNamespace(create=create, gpu=gpu, made=made)


def test_choosing(kind):
    with kind.create("cpu", threads=1) as engine:
        assert (engine.name, engine.threads, engine.fallback) == ("cpu", 1, "")
        assert extension.active_instruction_set() in engine.description and "1 thread" in engine.description
    with kind.create("auto") as engine:
        assert (engine.name == "cpu") == bool(engine.fallback)
    with pytest.raises(OptionError, match="engine: got 'tpu', expected one of auto, gpu, cpu"):
        kind.create("tpu")
    for name in ("auto", "gpu", "cpu"):
        with pytest.raises(OptionError, match="threads: got 0"):
            kind.create(name, threads=0)


def test_auto_takes_the_gpu_where_it_can(kind):
    made, told = kind.made(), []
    asked = kind.gpu(made)
    assert kind.create("auto", device=1, gpu_memory=100, on_message=told.append) is made
    assert kind.create("gpu", device=2) is made
    assert asked == [(1, 100), (2, None)]
    assert (told, made.fallback) == ([], "")


def test_auto_falls_back_and_says_why_once(kind):
    kind.gpu(NO_DRIVER)
    told = []
    with kind.create("auto", threads=1, on_message=told.append) as engine:
        assert (engine.name, engine.threads) == ("cpu", 1)
        assert told == [engine.fallback] == [f"running on the CPU: {NO_DRIVER}"]
    with kind.create("auto") as engine:  # nobody listens, as from Python
        assert engine.fallback == told[0]
    with pytest.raises(GpuUnavailableError) as caught:
        kind.create("gpu", on_message=told.append)
    assert caught.value.exit_code == 7
    assert len(told) == 1


@pytest.mark.parametrize("options", [{}, {"device": 0}, {"gpu_memory": 1 << 30}], ids=str)
def test_a_machine_without_pycuda_is_not_nagged_unless_it_asks_for_a_gpu(kind, options):
    kind.gpu(NO_DRIVER, installed=False)
    told = []
    with kind.create("auto", on_message=told.append, **options) as engine:
        assert engine.name == "cpu" and engine.fallback
    assert len(told) == len(options)


@pytest.mark.parametrize(
    "error",
    [EngineError("a kernel does not compile"), OptionError("device", 7, "one of 0"), MemoryLimitError("too little")],
)
def test_auto_hides_no_other_error(kind, error):
    kind.gpu(error)
    with pytest.raises(type(error)) as caught:
        kind.create("auto")
    assert caught.value is error


@pytest.mark.parametrize("name", ["cpu", "reference"])
@pytest.mark.parametrize(("option", "value"), [("device", 0), ("gpu_memory", 1 << 30)])
def test_gpu_options_with_an_engine_that_has_no_use_for_them(kind, name, option, value):
    with pytest.raises(OptionError) as caught:
        kind.create(name, **{option: value})
    assert str(caught.value) == (
        f"{option}: got {value}, expected none with engine {name}; leave it out, or choose engine gpu or auto"
    )


def test_whether_pycuda_is_installed(monkeypatch):
    fake_driver.remove(monkeypatch)
    assert not factory.chosen_package()
    with pytest.raises(
        GpuUnavailableError, match="neither PyCUDA nor cuda-bindings is installed; pip install 'swsearch"
    ):
        create_engine("gpu")
    fake_driver.install(monkeypatch)
    assert factory.chosen_package() == "pycuda"


def test_the_package_that_the_variable_names(monkeypatch):
    fake_driver.install(monkeypatch)
    monkeypatch.setitem(sys.modules, "cuda.bindings", ModuleType("cuda.bindings"))
    assert factory.chosen_package() == "pycuda"
    monkeypatch.setenv("SWSEARCH_CUDA_DRIVER", "cuda-bindings")
    assert factory.chosen_package() == "cuda-bindings"
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(GpuUnavailableError) as caught:
        create_engine("gpu")
    assert str(caught.value) == (
        "engine gpu cannot be used: cuda-bindings, which SWSEARCH_CUDA_DRIVER names, is not installed; pip install "
        "'swsearch[gpu]', or use --engine cpu"
    )
    monkeypatch.setenv("SWSEARCH_CUDA_DRIVER", "cuda")
    for name in ("gpu", "auto"):
        with pytest.raises(OptionError) as refused:
            create_engine(name)
        assert str(refused.value) == "SWSEARCH_CUDA_DRIVER: got 'cuda', expected one of pycuda, cuda-bindings"


@pytest.mark.parametrize("kind", ["pairs"], indirect=True)
def test_few_pairs_are_not_worth_a_gpu(kind):
    made, told = kind.made(), []
    asked = kind.gpu(made)
    worth = GPU_WORTH_CELLS
    for name, options in (("auto", {"cells": worth}), ("gpu", {"cells": 1}), ("auto", {"cells": 1, "gpu_memory": 5})):
        assert kind.create(name, **options) is made
    assert asked == [(None, None)] * 2 + [(None, 5)]
    with kind.create("auto", cells=worth - 1, pairs=7, memory=1 << 20, on_message=told.append) as chosen:
        assert (chosen.name, chosen.memory) == ("cpu", 1 << 20)
        assert chosen.fallback == f"running on the CPU: 7 pairs, {worth - 1:,} cells, are not worth starting a GPU"
    assert told == []
    assert len(asked) == 3
