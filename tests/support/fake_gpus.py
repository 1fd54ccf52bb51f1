"""Several fake devices in one machine, which differ in strength and memory and fail on purpose."""

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
from swsearch.engines.gpu.multi_gpu import MultiGpuEngine
from swsearch.errors import EngineError


class CudaError(Exception):
    """PyCUDA's exception, where nothing translates it."""


CudaError.__module__ = "pycuda._driver"

METHODS = {
    "pinned": "pinned", "stream": "stream", "upload": "upload_async", "download": "download", "clear": "clear_async",
    "load": "load",
}  # fmt: skip
"""Methods of `FakeDevice` that only fail, and do what they do."""

KINDS = ("push", "allocate", "free", "event", "query", "launch", *METHODS)
"""Calls that can fail; ``push`` is that of the context, before any other."""


@dataclass
class Fault:
    """When a device fails: after how many calls of a kind (``any`` for all), and with which error.

    A device that lacks memory does so once; any other error is for good.
    """

    kind: str
    left: int = 0
    error: type = EngineError


class CardDevice(FakeDevice):
    """A fake device that is one of several; their state stands at the class, by number of the device."""

    free = 16 << 20
    guard = threading.RLock()

    @classmethod
    def reset(cls):
        """Forget all that was set and counted."""
        cls.faults, cls.gone, cls.held_back = {}, set(), {}  # held_back: says whether what was begun is done
        cls.taken, cls.calls = Counter(), Counter()

    def __init__(self, info):
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
                self.gone.update([index] if fault.error is not GpuMemoryError else [])
                del self.faults[index]
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
            raise GpuMemoryError(f"no {n_bytes} bytes")
        memory = super().allocate(n_bytes)
        with self.guard:
            self.taken[self.info.index] += n_bytes
        return CardMemory(self, memory.address, n_bytes)

    def event(self, timing=False):
        self.strike("event")
        return CardEvent(self)


def _striking(kind, method):
    def strike_and_call(self, *given):
        self.strike(kind)
        return method(self, *given)

    return strike_and_call


for kind, name in METHODS.items():
    setattr(CardDevice, name, _striking(kind, getattr(FakeDevice, name)))


class CardMemory(fake_gpu.Memory):
    """Memory that all who use the device share."""

    def free(self):
        self.device.strike("free")
        with self.device.guard:
            self.device.taken[self.device.info.index] -= self.n_bytes
        super().free()


class CardEvent(fake_gpu.Event):
    """An event that has happened unless its device is held back."""

    def query(self):
        self.device.strike("query")
        is_done = self.device.held_back.get(self.device.info.index)
        return super().query() and (is_done is None or is_done())


class CardFunction(fake_gpu.FakeFunction):
    """A kernel whose device may fail."""

    def launch(self, blocks, threads, stream, arguments):
        self.device.strike("launch")
        super().launch(blocks, threads, stream, arguments)


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
    monkeypatch.setattr(engine_module, "choose_device", lambda index: by_index[index])
    monkeypatch.setattr(engine_module, "Device", CardDevice)
    monkeypatch.setattr(kernels_module, "Function", CardFunction)
    CardDevice.reset()
    return MultiGpuEngine(list(by_index) if devices is None else devices, memory)
