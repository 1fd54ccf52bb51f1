"""Findings of the doctor, on made-up machines."""

import re
import sys
from types import ModuleType, SimpleNamespace

import pytest

from support import fake_driver
from support.fake_driver import Card
from swsearch.cli import doctor, main
from swsearch.engines.gpu import compiler as compiler_module
from swsearch.engines.gpu import engine as engine_module
from swsearch.engines.reference import ReferenceEngine
from swsearch.errors import EngineError, GpuUnavailableError

EQUAL = "192 scores equal to the reference, local, global and semi-global"


class _Gpu(ReferenceEngine):
    name = "gpu"

    def __init__(self, device=None):
        self.device = device

    description = "gpu (NVIDIA H200, sm_90, NVRTC 13.0)"


class _Wrong(_Gpu):
    def score(self, group, loaded, progress=None):
        scores = super().score(group, loaded, progress)
        scores[:, 3] += 1
        return scores


class _Crashing(_Gpu):
    def score(self, group, loaded, progress=None):
        raise EngineError("device 0, NVIDIA H200: scoring failed (an illegal memory access was encountered)")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that makes up a machine with GPUs, and the folder of its kernel cache."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def make(*cards, engine=_Gpu, compiler=None, tests=False):
        if not tests:  # the real ones take long
            monkeypatch.setattr(doctor, "self_test", lambda engine: 0)
        found = SimpleNamespace(
            description="NVRTC 13.0",
            toolchain=SimpleNamespace(path="libnvrtc.so.13"),
            cache_folder=tmp_path,
            cache_note="",
        )

        def find(architecture, driver_version):
            assert (architecture, driver_version) == ("sm_90", (13, 0))
            if compiler is not None:
                raise compiler
            return found

        fake_driver.install(monkeypatch, cards)
        monkeypatch.setattr(compiler_module, "find_compiler", find)
        monkeypatch.setattr(engine_module, "GpuEngine", engine)
        monkeypatch.setattr(doctor, "_distribution_version", lambda name: "2026.1")
        return found

    return make


def findings():
    found = list(doctor.check_machine())
    assert [each.topic for each in found[:2]] == ["swsearch", "libraries"]
    return [(each.topic, each.text) for each in found[2:] if each.topic not in ("cpu", "extension")], [
        each.topic for each in found if not each.is_ok
    ]


L4, OLD = Card("NVIDIA L4", (8, 9), 58, 24 << 30), Card("Tesla P100", (6, 0), 156, 16 << 30)


def test_a_machine_with_several_gpus(machine, tmp_path):
    machine(L4, Card(), OLD)
    for name in ("a", "b"):
        (tmp_path / f"{name}.cubin").write_bytes(bytes(1 << 20))
    lines, bad = findings()
    assert bad == []
    assert lines == [
        ("gpu package", "pycuda 2026.1; cuda-bindings is not installed (pip install 'swsearch[gpu]')"),
        ("driver", "for CUDA 13.0"),
        ("device 0", "NVIDIA L4, compute capability 8.9, 24.0 GiB, 58 multiprocessors"),
        ("device 1", "NVIDIA H200, compute capability 9.0, 141.0 GiB, 132 multiprocessors"),
        (
            "device 2",
            "Tesla P100, compute capability 6.0, 16.0 GiB, 156 multiprocessors; too old, expected compute "
            "capability 7.5 or later",
        ),
        ("compiler", "NVRTC 13.0 (libnvrtc.so.13), for sm_90"),
        ("kernel cache", f"{tmp_path}: 2 kernels, 2.0 MiB"),
        ("gpu", "usable: gpu (NVIDIA H200, sm_90, NVRTC 13.0)"),
        ("self-test", f"gpu: {EQUAL}"),
        ("self-test", f"device 0: {EQUAL}"),
        ("device all", "--device all takes 0 (NVIDIA L4), 1 (NVIDIA H200)"),
        ("self-test", f"cpu: {EQUAL}"),
        ("auto", "--engine auto takes gpu"),
    ]


def test_of_several_gpus_some_do_not_work(machine, monkeypatch):
    class Some(_Gpu):
        def __init__(self, device=None):
            super().__init__(device)
            if device == 0:
                raise GpuUnavailableError("engine gpu cannot be used: device 0 could not be opened (exclusive)")

    def test(engine):
        if getattr(engine, "device", None) == 2:
            raise EngineError("device 2 failed (an illegal memory access)")
        return 5 if getattr(engine, "device", None) == 3 else 0

    machine(L4, Card(), L4, L4, engine=Some)
    monkeypatch.setattr(doctor, "self_test", test)
    lines, bad = findings()
    after = [topic for topic, _ in lines].index("gpu") + 2
    assert lines[after : after + 4] == [
        ("device 0", "not used: device 0 could not be opened (exclusive)"),
        ("device 2", "failed: device 2 failed (an illegal memory access); search with another --device"),
        ("self-test", "device 3: 5 scores differ from the reference; use another --engine and report this"),
        ("device all", "--device all takes 1 (NVIDIA H200), 2 (NVIDIA L4), 3 (NVIDIA L4)"),
    ]
    assert bad == ["device 2", "self-test"]


def test_no_pycuda(monkeypatch):
    monkeypatch.setattr(doctor, "self_test", lambda engine: 0)
    fake_driver.remove(monkeypatch)
    lines, bad = findings()
    assert bad == []
    assert lines == [
        (
            "gpu",
            "not used: neither PyCUDA nor cuda-bindings is installed; pip install 'swsearch[gpu]' (guide: CPUs and "
            "GPUs)",
        ),
        ("self-test", f"cpu: {EQUAL}"),
        ("auto", "--engine auto takes cpu"),
    ]


def test_no_driver(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "self_test", lambda engine: 0)
    fake_driver.install_without_driver(monkeypatch, tmp_path)
    lines, bad = findings()
    assert bad == []
    assert [topic for topic, _ in lines] == ["gpu package", "gpu", "self-test", "auto"]
    assert lines[1][1].startswith("not used: no NVIDIA driver was found (libcuda.so.1: cannot open")
    assert lines[-1][1] == "--engine auto takes cpu"


def test_both_packages(machine, monkeypatch):
    machine(Card())
    monkeypatch.setitem(sys.modules, "cuda.bindings", ModuleType("cuda.bindings"))
    text = "pycuda 2026.1; not used: cuda-bindings 2026.1 (SWSEARCH_CUDA_DRIVER=cuda-bindings)"
    assert dict(findings()[0])["gpu package"] == text
    monkeypatch.setenv("SWSEARCH_CUDA_DRIVER", "pycuda")
    assert dict(findings()[0])["gpu package"] == text.replace(";", ", as SWSEARCH_CUDA_DRIVER says;")


@pytest.mark.parametrize("package", ["pycuda", "cuda-bindings"])
def test_an_old_driver(monkeypatch, package):
    monkeypatch.setattr(doctor, "self_test", lambda engine: 0)
    fake_driver.install(monkeypatch, driver_version=11040, package=package)
    lines, bad = findings()
    assert bad == []
    assert lines[1] == (
        "gpu",
        "not used: the NVIDIA driver is for CUDA 11.4, expected at least 12.0; install a newer driver, or use "
        "--engine cpu",
    )


def test_a_gpu_that_is_too_old(machine):
    machine(Card("Tesla P100", (6, 0), 56, 16 << 30))
    lines, bad = findings()
    assert bad == []
    described = dict(lines)
    assert described["device 0"].endswith("56 multiprocessors; too old, expected compute capability 7.5 or later")
    assert described["gpu"].startswith("not used: device 0, Tesla P100 has compute capability 6.0")
    assert described["auto"] == "--engine auto takes cpu"


def test_no_compiler(machine):
    machine(Card(), compiler=GpuUnavailableError("no CUDA compiler for sm_90; pip install nvidia-cuda-nvrtc"))
    lines, bad = findings()
    assert bad == []
    assert dict(lines)["gpu"] == "not used: no CUDA compiler for sm_90; pip install nvidia-cuda-nvrtc"
    assert dict(lines)["auto"] == "--engine auto takes cpu"


def test_no_cache(machine):
    found = machine(Card())
    found.cache_folder, found.cache_note = None, "kernels are not cached: there is no home folder; set SWSEARCH_CACHE"
    assert dict(findings()[0])["kernel cache"] == found.cache_note


def test_a_gpu_that_computes_wrongly(machine, monkeypatch, capsys):
    machine(Card(), engine=_Wrong, tests=True)
    monkeypatch.setattr(sys, "argv", ["swsearch", "doctor"])
    assert main.main() == 3
    printed = capsys.readouterr().out
    for line in (
        "self-test +gpu: 3 scores differ from the reference; use another --engine and report this",
        f"self-test +cpu: {EQUAL}",
        "auto +--engine auto takes gpu, which is wrong: use --engine cpu",
        r"kernel cache .*: 0 kernels, 0\.0 MiB",
    ):
        assert re.search(f"^{line}$", printed, re.MULTILINE), printed


def test_a_gpu_that_fails(machine):
    machine(Card(), engine=_Crashing, tests=True)
    lines, bad = findings()
    assert bad == ["gpu"]
    assert ("gpu", "failed: device 0, NVIDIA H200: scoring failed (an illegal memory access was encountered); search "
            "with --engine cpu") in lines  # fmt: skip
    assert lines[-1] == ("auto", "--engine auto takes gpu, which fails: use --engine cpu")


def test_the_extension_is_described(monkeypatch):
    from swsearch import extension

    monkeypatch.setenv(extension.SIMD_VARIABLE, "scalar")
    monkeypatch.setattr(doctor, "self_test", lambda engine: 0)
    found = {each.topic: each.text for each in doctor.check_machine()}
    assert found["extension"] == "used to align pairs, with scalar instructions"


def test_a_library_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (library,) = (line for line in doctor.check_machine() if line.topic == "libraries")
    assert library.text.endswith(", zstandard is missing (pip install swsearch)")
    assert not library.is_ok
