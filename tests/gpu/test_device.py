"""Devices, and what CUDA says in the user's words; the driver is made up, so no GPU is needed."""

import re
from pathlib import Path

import pytest

from support import fake_driver
from support.fake_driver import Card
from swsearch.engines.gpu import driver as driver_module
from swsearch.engines.gpu.device import Device, GpuMemoryError, choose_device, list_devices
from swsearch.errors import EngineError, GpuUnavailableError, MemoryLimitError, OptionError

LAPTOP = Card("NVIDIA GeForce RTX 2060", (7, 5), 30, 6 << 30)
OLD = Card("Tesla P100", (6, 0), 56, 16 << 30)


def unavailable(call=list_devices):
    """Return the message; every one says what it is about and what to do."""
    with pytest.raises(GpuUnavailableError) as caught:
        call()
    assert caught.value.exit_code == 7
    message = str(caught.value)
    assert message.startswith("engine gpu cannot be used: ")
    assert message.endswith("use --engine cpu")
    return message


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (
            lambda patch, folder: fake_driver.remove(patch),
            ["neither PyCUDA nor cuda-bindings is installed", "pip install 'swsearch[gpu]'"],
        ),
        (fake_driver.install_without_driver, ["(libcuda.so.1: cannot open shared object file: No such file or dir"]),
        (
            lambda patch, folder: fake_driver.install(patch, init_error=fake_driver.LogicError("cuInit failed: why")),
            ["the NVIDIA driver does not answer (cuInit failed: why)", "nvidia-smi"],
        ),
        (lambda patch, folder: fake_driver.install(patch, []), ["there is no CUDA device"]),
        (
            lambda patch, folder: fake_driver.install(patch, driver_version=11080),
            ["the NVIDIA driver is for CUDA 11.8, expected at least 12.0; install a newer driver"],
        ),
        (
            lambda patch, folder: fake_driver.install(patch, [OLD]),
            ["device 0, Tesla P100 has compute capability 6.0, expected at least 7.5"],
        ),
    ],
    ids=["no package", "no driver", "no start", "no device", "old driver", "too old"],
)
def test_there_is_no_gpu(monkeypatch, tmp_path, prepare, words):
    prepare(monkeypatch, tmp_path)
    message = unavailable(lambda: choose_device(None))
    assert all(each in message for each in words), message


@pytest.mark.parametrize("package", ["pycuda", "cuda-bindings"])
def test_devices_are_described(monkeypatch, package):
    fake_driver.install(monkeypatch, [LAPTOP, Card()], driver_version=12080, package=package)
    first, second = list_devices()
    assert (first.index, first.name, first.capability, first.architecture) == (0, LAPTOP.name, (7, 5), "sm_75")
    assert (second.index, second.multiprocessors, second.memory) == (1, 132, 141 << 30)
    assert second.shared_limit == 227 << 10
    assert first.driver_version == second.driver_version == (12, 8)
    assert str(second) == "device 1, NVIDIA H200"


@pytest.mark.parametrize(
    ("cards", "index", "expected"),
    [
        ([LAPTOP, Card(), Card()], None, 1),
        ([Card(), LAPTOP], None, 0),
        ([LAPTOP, Card()], 0, 0),
        ([LAPTOP, OLD], 0, 0),
        ([OLD, LAPTOP], None, 1),
    ],
)
def test_a_device_is_chosen(monkeypatch, cards, index, expected):
    fake_driver.install(monkeypatch, cards)
    assert choose_device(index).index == expected


@pytest.mark.parametrize("index", [-1, 2, 99])
def test_a_device_number_that_there_is_not(monkeypatch, index):
    fake_driver.install(monkeypatch, [LAPTOP, Card()])
    with pytest.raises(OptionError) as caught:
        choose_device(index)
    assert caught.value.exit_code == 1
    assert str(caught.value) == (f"device: got {index}, expected one of 0 (NVIDIA GeForce RTX 2060), 1 (NVIDIA H200)")


def test_a_device_that_cannot_be_opened(monkeypatch):
    error = fake_driver.LogicError("cuDevicePrimaryCtxRetain failed: exclusive")
    fake_driver.install(monkeypatch, open_error=error)
    info = choose_device(None)
    message = unavailable(lambda: Device(info))
    assert "device 0, NVIDIA H200 could not be opened (cuDevicePrimaryCtxRetain failed: exclusive)" in message


@pytest.fixture
def opened(monkeypatch):
    """Return an open device and its context."""
    driver = fake_driver.install(monkeypatch)
    device = Device(choose_device(None))
    yield device, driver.contexts[0]
    assert driver.contexts[0].depth == 0, "the context was left current"
    device.close()
    assert driver.contexts[0].detached


def test_the_context_is_current_while_it_is_used(opened):
    device, context = opened
    with device.active("scoring"):
        assert context.depth == 1
        with device.active("copying"):
            assert context.depth == 2
    with pytest.raises(KeyboardInterrupt), device.active("scoring"):
        raise KeyboardInterrupt
    context.push_error = fake_driver.LogicError("cuCtxPushCurrent failed: context is destroyed")
    with pytest.raises(EngineError, match=r"scoring failed .*context is destroyed"), device.active("scoring"):
        pytest.fail("entered")


@pytest.mark.parametrize(
    ("error", "kind", "code", "begins", "says"),
    [
        (
            fake_driver.MemoryError("cuMemAlloc failed: out of memory"), GpuMemoryError, 4,
            "not enough GPU memory for scoring (cuMemAlloc failed", "--gpu-memory",
        ),
        (
            fake_driver.LaunchError("cuLaunchKernel failed: an illegal memory access"), EngineError, 3,
            "scoring failed (cuLaunchKernel failed: an illegal memory access)", "--engine cpu",
        ),
        (
            fake_driver.LogicError("cuModuleLoadDataEx failed: device kernel image is invalid"), EngineError, 3,
            "scoring failed (cuModuleLoadDataEx failed: device kernel image is invalid)", "--engine cpu",
        ),
    ],
    ids=["memory", "launch", "logic"],
)  # fmt: skip
def test_a_failure_names_the_device_and_what_it_did(opened, error, kind, code, begins, says):
    with pytest.raises(kind) as caught, opened[0].active("scoring"):
        raise error
    assert not isinstance(caught.value, GpuUnavailableError)
    assert isinstance(caught.value, MemoryLimitError) == (kind is GpuMemoryError)
    assert caught.value.exit_code == code
    assert str(caught.value).startswith(f"device 0, NVIDIA H200: {begins}")
    assert says in str(caught.value)


def test_only_the_driver_modules_import_packages():
    package = Path(driver_module.__file__).parent
    names = {
        path.relative_to(package.parents[1]).as_posix()
        for path in package.parents[1].rglob("*.py")
        if re.search(r"pycuda\.(driver|autoinit)|(import|from) (pycuda|cuda\.)", path.read_text())
    }
    assert names == {"engines/gpu/driver.py", "engines/gpu/cuda_bindings.py"}
