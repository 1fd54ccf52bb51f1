"""Several fake devices in one machine: of different speed and memory, and such as fail when they are told to."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace

from support import fake_gpu
from support.fake_gpu import INFO, FakeDevice, fake_engine
from swsearch.engines.gpu import engine as engine_module
from swsearch.engines.gpu import kernels as kernels_module
from swsearch.engines.gpu.device import GpuMemoryError
from swsearch.engines.gpu.several import SeveralGpus
from swsearch.errors import EngineError


class CudaError(Exception):
    """What PyCUDA raises where nothing translates it."""


CudaError.__module__ = "pycuda._driver"

KINDS = (
    "push", "allocate", "free", "pinned", "stream", "event", "query", "upload", "download", "clear", "load", "launch",
)  # fmt: skip
"""Calls that can fail; ``push`` is that of the context, before any other."""


@dataclass
class Fault:
    """When a device fails, and how.

    Parameters
    ----------
    kind : str
        One of `KINDS`, or ``any``.
    after : int
        Calls of this kind that go well first, from when the fault was set.
    error : type
        What is raised; a device that lacks memory goes on, any other is gone for good.
    again : bool
        Whether a device that lacks memory lacks it again, after as many calls.
    """

    kind: str
    after: int = 0
    error: type = EngineError
    again: bool = False

    def __post_init__(self):
        self.left = self.after


class CardDevice(FakeDevice):
    """A fake device that is one of several; what all of them share stands at the class, by a device's number."""

    free = 16 << 20
    faults: dict = {}  # noqa: RUF012
    gone: set = set()  # noqa: RUF012
    taken: Counter = Counter()  # noqa: RUF012
    held_back: dict = {}  # noqa: RUF012  # says whether what a device has begun is done
    speeds: dict = {}  # noqa: RUF012  # pairs in a second
    calls: Counter = Counter()  # noqa: RUF012
    guard = threading.RLock()

    def __init__(self, info):
        self.clock = 0.0
        super().__init__(replace(info))
        self.thread = None

    def strike(self, kind):
        """Fail if it is time to."""
        with self.guard:
            index, fault = self.info.index, self.faults.get(self.info.index)
            self.calls[index, kind] += 1
            if index in self.gone:
                raise EngineError(f"{self.info}: {kind} failed (gone)")
            if fault is None or fault.kind not in (kind, "any"):
                return
            fault.left -= 1
            if fault.left < 0:
                if fault.again:
                    fault.left = fault.after
                elif fault.error is GpuMemoryError:
                    del self.faults[index]
                else:
                    self.gone.add(index)
                raise fault.error(f"{self.info}: {kind} failed (on purpose); see to it")

    @contextmanager
    def active(self, doing):
        here = threading.current_thread()
        assert self.depth == 0 or self.thread is here, "two threads drive one device"
        self.thread = here
        self.strike("push")
        with super().active(doing):
            yield

    def free_memory(self):
        return min(self.free, self.info.memory) - self.taken[self.info.index]

    def allocate(self, n_bytes):
        self.strike("allocate")
        if n_bytes > self.free_memory():
            self.asked.append(n_bytes)
            raise GpuMemoryError(f"no {n_bytes} bytes")
        memory = super().allocate(n_bytes)
        with self.guard:
            self.taken[self.info.index] += n_bytes
        return CardMemory(memory)

    def pinned(self, n_bytes):
        self.strike("pinned")
        return super().pinned(n_bytes)

    def stream(self):
        self.strike("stream")
        return super().stream()

    def event(self, timing=False):
        self.strike("event")
        return CardEvent(self)

    def upload_async(self, address, pinned, stream):
        self.strike("upload")
        super().upload_async(address, pinned, stream)

    def download(self, data, address):
        self.strike("download")
        super().download(data, address)

    def clear_async(self, address, n_bytes, stream):
        self.strike("clear")
        super().clear_async(address, n_bytes, stream)

    def load(self, cubin):
        self.strike("load")
        return super().load(cubin)

    def worked(self, n_pairs):
        """Let the device's clock go on."""
        self.clock += n_pairs / self.speeds.get(self.info.index, 1e9)


class CardMemory:
    """Memory that all who use the device share."""

    def __init__(self, memory):
        self.memory = memory

    def __int__(self):
        return int(self.memory)

    def free(self):
        device = self.memory.device
        device.strike("free")
        with device.guard:
            device.taken[device.info.index] -= self.memory.n_bytes
        self.memory.free()


class CardEvent(fake_gpu.Event):
    """An event that knows when it was recorded, by the device's clock."""

    at = 0.0

    def record(self, stream=None):
        super().record(stream)
        self.at = self.device.clock

    def query(self):
        self.device.strike("query")
        is_done = self.device.held_back.get(self.device.info.index)
        return super().query() and (is_done is None or is_done())

    def time_since(self, other):
        super().time_since(other)
        return 1000.0 * (self.at - other.at)


class CardFunction(fake_gpu.FakeFunction):
    """A kernel whose device may fail; the scores that it fills take the device's time."""

    def launch(self, blocks, threads, stream, arguments):
        self.device.strike("launch")
        super().launch(blocks, threads, stream, arguments)
        given = self.table.by_name(arguments)
        if self.name == "swsearch_batch":
            self.device.worked(given["n_jobs"] * fake_gpu.LANES)
        elif self.name == "swsearch_wavefront" and not given["tasks"]:
            self.device.worked(given["n_tasks"] * (2 if self.defines["SWSEARCH_BITS"] == 16 else 1))


def cards(count, **fields):
    """Describe so many devices; fields that are lists hold one value for each."""
    each = [
        {name: value[k] if isinstance(value, list) else value for name, value in fields.items()} for k in range(count)
    ]
    return [replace(INFO, index=k, **more) for k, more in enumerate(each)]


def fake_engines(monkeypatch, infos, devices=None, memory=None):
    """Make an engine of several fake devices: ``infos`` are there, ``devices`` are opened, by default all."""
    by_index = {info.index: info for info in infos}
    fake_engine(monkeypatch).close()
    for module, name, value in (
        (engine_module, "choose_device", lambda index: by_index[index]),
        (engine_module, "Device", CardDevice),
        (kernels_module, "Function", CardFunction),
    ):
        monkeypatch.setattr(module, name, value)
    CardDevice.faults, CardDevice.gone, CardDevice.speeds, CardDevice.held_back = {}, set(), {}, {}
    CardDevice.taken, CardDevice.calls = Counter(), Counter()
    FakeDevice.launches, FakeDevice.asked = [], []
    return SeveralGpus(list(by_index) if devices is None else devices, memory)
