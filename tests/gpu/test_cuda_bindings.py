"""The driver through cuda-bindings itself, on a libcuda.so.1 that is made for it; no GPU is needed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SOURCE = Path(__file__).resolve().parents[1] / "support" / "stub_libcuda.c"

PROGRAM = """
import ctypes, gc, struct, threading
import numpy as np
from swsearch.engines.gpu.device import Device, Function, GpuMemoryError, choose_device
from swsearch.engines.gpu.driver import driver
from swsearch.errors import EngineError

stub = ctypes.CDLL("libcuda.so.1")
NAMES = "retained", "memory", "pinned", "streams", "events", "modules"

def held():
    gc.collect()
    return tuple(ctypes.c_int.in_dll(stub, "stub_" + name).value for name in NAMES)

def set_variable(name, value):
    ctypes.CDLL(None).setenv(name.encode(), str(value).encode(), 1)

def fails(kind, doing, call, *arguments):
    try:
        with device.active(doing):
            call(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError(doing)

info = choose_device(None)
assert (info.name, info.capability, info.multiprocessors, info.memory) == ("Stub", (9, 0), 132, 1 << 33)
assert (info.shared_limit, info.driver_version, info.clock) == (227 << 10, (12, 0), 1980000)
assert driver().Device(0).pci_bus_id() == "0000:01:00.0"
device, second = Device(info), Device(info)
with device.active("working"):
    assert device.free_memory() == 1 << 30
    memory, stream, event, timed = device.allocate(400), device.stream(), device.event(), device.event(timing=True)
    pinned, module = device.pinned(400), device.load(b"cubin")
    assert held() == (2, 1, 1, 1, 2, 1)
    data = np.arange(100, dtype=np.int32).reshape(10, 10)
    device.upload(int(memory), data.T, stream)
    device.download_async(pinned.view(np.int32), int(memory), stream)
    assert (pinned.view(np.int32).reshape(10, 10) == data.T).all()
    device.clear_async(int(memory), 396, stream)
    back = np.empty((10, 10), np.int32)
    device.download(back, int(memory))
    assert not back.reshape(-1)[:99].any() and back[9, 9] == 99
    device.upload_async(int(memory), back, stream)
    timed.record(stream)
    event.record(stream)
    stream.wait_for_event(timed)
    event.synchronize()
    assert event.query() and event.time_since(timed) == 1.5
    set_variable("STUB_QUERY", 600)
    assert not event.query()
    function = Function(module, "kernel", "PiqP", 60000)
    function.launch(5, 32, stream, [int(memory), -1, 7, 2**63 + 5])
    expected = struct.pack("PiqP", int(memory), -1, 7, 2**63 + 5).hex()
    launched = ctypes.c_char.in_dll(stub, "stub_launch")
    assert ctypes.string_at(ctypes.addressof(launched)).decode() == "8=60000 5,1,1 32,1,1 60000 " + expected
    view = pinned[7:]
    del pinned
    assert held()[2] == 1
    del view
    assert held()[2] == 0
    memory.free()
    memory.free()
    memory = device.allocate(0)
    assert held()[1] == 1
    del memory
    assert held()[1] == 0

    # other threads run while this one waits
    counted, waits = [0], threading.Event()
    def count():
        while not waits.is_set():
            counted[0] += 1
    thread = threading.Thread(target=count)
    thread.start()
    set_variable("STUB_SLEEP", 300000)
    before = counted[0]
    stream.synchronize()
    assert counted[0] - before > 1000
    waits.set()
    thread.join()
    set_variable("STUB_SLEEP", 0)

message = fails(GpuMemoryError, "loading", device.allocate, 1 << 29)
assert message.startswith("device 0, Stub: not enough GPU memory for loading (cuMemAlloc failed: out of memory)")
message = fails(EngineError, "compiling", device.load, b"no cubin")
assert "compiling failed (cuModuleLoadData failed: another error)" in message
assert "(cuEventQuery failed:" in (set_variable("STUB_QUERY", 1), fails(EngineError, "asking", event.query))[1]
set_variable("STUB_SYNCHRONIZE", 700)
message = fails(EngineError, "scoring", stream.synchronize)
assert "scoring failed (cuStreamSynchronize failed: an illegal memory access was encountered)" in message
del function, module
assert held() == (2, 0, 0, 1, 2, 0)
device.close()
del event
assert held() == (1, 0, 0, 1, 1, 0)  # the other device holds the context
second.close()
del stream, timed
assert held() == (0, 0, 0, 1, 1, 0)  # ended with the context, so that nothing may touch them
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the library."""
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        pytest.skip("cuda-bindings is not installed (swsearch[gpu])")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("stub")
    line = [compiler, "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(SOURCE), "-ldl"]
    subprocess.run(line, check=True)
    return folder


def run(code: str, folder: Path, **variables: str) -> str:
    """Run a program with cuda-bindings on a library; return what it prints."""
    environment = {
        **os.environ, "SWSEARCH_CUDA_DRIVER": "cuda-bindings", "LD_LIBRARY_PATH": str(folder), **variables,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }  # fmt: skip
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_that_is_asked_of_a_driver(stub: Path) -> None:
    assert run(PROGRAM, stub) == ""


LISTING = """
from swsearch.engines.gpu.device import list_devices
try:
    list_devices()
except Exception as error:
    print(type(error).__name__, error)
"""

UNUSABLE = "GpuUnavailableError engine gpu cannot be used: "


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"STUB_INIT": "100"},
            "the NVIDIA driver does not answer (cuInit failed: another error); see that nvidia-smi works",
        ),
        ({"STUB_COUNT": "0"}, "there is no CUDA device"),
        (
            {"STUB_VERSION": "11080"},
            "the NVIDIA driver is for CUDA 11.8, expected at least 12.0; install a newer driver",
        ),
    ],
    ids=["no answer", "no device", "old driver"],
)
def test_a_driver_that_cannot_be_used(stub: Path, variables: dict[str, str], message: str) -> None:
    assert run(LISTING, stub, **variables).startswith(UNUSABLE + message)


def test_a_library_that_cannot_be_loaded(stub: Path, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    printed = run(LISTING, tmp_path)
    assert printed.startswith(f"{UNUSABLE}no NVIDIA driver was found (")
    assert printed.endswith("); install the driver, or use --engine cpu\n")
