"""Devices, and what CUDA says in the user's words; the driver is made up, so no GPU is needed."""

from pathlib import Path

import pytest

from support import fake_pycuda
from support.fake_pycuda import Card
from swsearch.engines.gpu import device as module
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


def test_pycuda_is_missing(monkeypatch):
    fake_pycuda.remove(monkeypatch)
    message = unavailable()
    assert "PyCUDA is not installed" in message
    assert "pip install 'swsearch[gpu]'" in message


def test_the_driver_is_missing(monkeypatch, tmp_path):
    fake_pycuda.install_without_driver(monkeypatch, tmp_path)
    assert "(libcuda.so.1: cannot open shared object file: No such file or directory)" in unavailable()


def test_cuda_does_not_start(monkeypatch):
    fake_pycuda.install(monkeypatch, init_error=fake_pycuda.LogicError("cuInit failed: unknown error"))
    message = unavailable()
    assert "the NVIDIA driver does not answer (cuInit failed: unknown error)" in message
    assert "nvidia-smi" in message


def test_there_is_no_device(monkeypatch):
    fake_pycuda.install(monkeypatch, [])
    assert "there is no CUDA device" in unavailable()


def test_devices_are_described(monkeypatch):
    fake_pycuda.install(monkeypatch, [LAPTOP, Card()], driver_version=12080)
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
    fake_pycuda.install(monkeypatch, cards)
    assert choose_device(index).index == expected


@pytest.mark.parametrize("index", [-1, 2, 99])
def test_a_device_number_that_there_is_not(monkeypatch, index):
    fake_pycuda.install(monkeypatch, [LAPTOP, Card()])
    with pytest.raises(OptionError) as caught:
        choose_device(index)
    assert caught.value.exit_code == 1
    assert str(caught.value) == (f"device: got {index}, expected one of 0 (NVIDIA GeForce RTX 2060), 1 (NVIDIA H200)")


def test_a_device_that_is_too_old(monkeypatch):
    fake_pycuda.install(monkeypatch, [OLD])
    message = unavailable(lambda: choose_device(None))
    assert "device 0, Tesla P100 has compute capability 6.0, expected at least 7.5" in message


def test_a_device_that_cannot_be_opened(monkeypatch):
    error = fake_pycuda.LogicError("cuDevicePrimaryCtxRetain failed: exclusive")
    fake_pycuda.install(monkeypatch, open_error=error)
    info = choose_device(None)
    message = unavailable(lambda: Device(info))
    assert "device 0, NVIDIA H200 could not be opened (cuDevicePrimaryCtxRetain failed: exclusive)" in message


@pytest.fixture
def opened(monkeypatch):
    """Return an open device and its context."""
    driver = fake_pycuda.install(monkeypatch)
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


def test_out_of_memory(opened):
    device, _ = opened
    with pytest.raises(GpuMemoryError) as caught, device.active("allocating 512 MiB"):
        raise fake_pycuda.MemoryError("cuMemAlloc failed: out of memory")
    assert isinstance(caught.value, MemoryLimitError)
    assert caught.value.exit_code == 4
    message = str(caught.value)
    assert message.startswith(
        "device 0, NVIDIA H200: not enough GPU memory for allocating 512 MiB (cuMemAlloc failed"
    )
    assert "--gpu-memory" in message


@pytest.mark.parametrize(
    "error",
    [
        fake_pycuda.LaunchError("cuLaunchKernel failed: an illegal memory access was encountered"),
        fake_pycuda.LogicError("cuModuleLoadDataEx failed: device kernel image is invalid"),
    ],
)
def test_a_failure_names_the_device_and_what_it_did(opened, error):
    device, _ = opened
    with pytest.raises(EngineError) as caught, device.active("scoring"):
        raise error
    assert not isinstance(caught.value, GpuUnavailableError)
    assert caught.value.exit_code == 3
    assert str(caught.value).startswith(f"device 0, NVIDIA H200: scoring failed ({error})")
    assert "--engine cpu" in str(caught.value)


def test_a_context_that_is_lost(opened):
    device, context = opened
    context.push_error = fake_pycuda.LogicError("cuCtxPushCurrent failed: context is destroyed")
    with pytest.raises(EngineError, match=r"scoring failed .*context is destroyed"), device.active("scoring"):
        pytest.fail("entered")


def test_other_errors_go_through(opened):
    device, _ = opened
    with pytest.raises(KeyboardInterrupt), device.active("scoring"):
        raise KeyboardInterrupt


def test_only_the_device_module_imports_pycuda():
    names = [
        path.name
        for path in Path(module.__file__).parents[2].rglob("*.py")
        if any(line.strip().startswith(("import pycuda", "from pycuda")) for line in path.read_text().splitlines())
    ]
    assert names == []  # the device module does it by name, when it is asked for a device
