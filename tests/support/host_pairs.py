"""The GPU's pair aligner on a device made of host memory, with the kernels of cuda/ run by `host_cuda`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pytest

from support.host_cuda import HostKernel
from swsearch.engines.gpu import kernels as kernels_module
from swsearch.engines.gpu.compiler import SOURCES, Kernel
from swsearch.engines.gpu.device import DeviceInfo
from swsearch.engines.gpu.pairs import aligner as pairs_module
from swsearch.engines.gpu.pairs.aligner import GpuPairAligner

INFO = DeviceInfo(0, "Host", (9, 0), 2, 1 << 30, 40 << 10, (13, 0))
GARBAGE = (0xA5, 0x25)
"""Bytes that memory begins and ends with, in turn: words far below and far above every score."""


class HostMemory:
    """A piece of host memory that stands for device memory; it begins as garbage, and ends so."""

    def __init__(self, device: HostDevice, n_bytes: int) -> None:
        self._device, self.data = device, np.full(n_bytes + 64, GARBAGE[device.n_made % 2], dtype=np.uint8)
        device.n_made += 1
        self._at = -int(self.data.ctypes.data) % 16
        device.held += 1

    def __int__(self) -> int:
        return int(self.data.ctypes.data) + self._at

    def free(self) -> None:
        self._device.held -= 1
        self.data[:] = GARBAGE[0]


class HostEvent:
    def record(self, stream: Any) -> None: ...

    def query(self) -> bool:
        return True

    def time_since(self, other: HostEvent) -> float:
        return 1.0


class HostDevice:
    """Stands for `swsearch.engines.gpu.device.Device`."""

    is_here = True

    def __init__(self, info: DeviceInfo) -> None:
        self.info, self.held, self.depth, self.n_made = info, 0, 0, 0

    @contextmanager
    def active(self, doing: str) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def free_memory(self) -> int:
        return self.info.memory

    def allocate(self, n_bytes: int) -> HostMemory:
        assert self.depth
        return HostMemory(self, n_bytes)

    def upload(self, address: int, data: np.ndarray, stream: Any) -> None:
        whole = np.ascontiguousarray(data)
        ctypes.memmove(address, whole.ctypes.data, whole.nbytes)

    def download(self, data: np.ndarray, address: int) -> None:
        ctypes.memmove(data.ctypes.data, address, data.nbytes)

    def clear_async(self, address: int, n_bytes: int, stream: Any) -> None:
        ctypes.memset(address, 0, n_bytes)

    def stream(self) -> None:
        return None

    def event(self, timing: bool = False) -> HostEvent:
        return HostEvent()

    def load(self, kernel: Kernel) -> Kernel:
        return kernel

    def close(self) -> None:
        assert not self.held, "device memory was not given back"


class HostCompiler:
    """Compiles nothing: what is loaded is the kernel's name and constants."""

    description = "host"

    def compile_all(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        return list(kernels)


class HostFunction:
    """Stands for `swsearch.engines.gpu.device.Function`; keeps what was launched."""

    seed: ClassVar[int] = 0
    lock: ClassVar[threading.Lock] = threading.Lock()
    launches: ClassVar[list[tuple[Kernel, int, int]]] = []

    def __init__(self, kernel: Kernel, name: str, signature: str, shared_bytes: int = 0) -> None:
        self._source, self._shared, self._table = kernel, shared_bytes, kernels_module.ALL[name]
        assert (kernel.source, signature) == (self._table.source, self._table.signature)
        self._kernel = HostKernel(SOURCES / f"{kernel.source}.cu", name, signature, dict(kernel.defines), SOURCES)

    def launch(self, blocks: int, threads: int, stream: Any, arguments: Sequence[int]) -> None:
        assert 1 <= blocks <= INFO.multiprocessors, "a block might wait for one that is not resident"
        assert 32 <= threads <= 512
        assert self._shared <= INFO.shared_limit
        assert self._table.by_name(arguments).get("one", 1) == 1
        with self.lock:  # of several devices too: the host's kernels have one set of shared variables
            HostFunction.launches.append((self._source, blocks, threads))
            self._kernel.launch(blocks, threads, list(arguments), self._shared, self.seed)


def host_aligner(monkeypatch: pytest.MonkeyPatch, memory: int | None = None, seed: int = 0) -> GpuPairAligner:
    """Make a GPU pair aligner whose kernels run on the CPU under the schedule of a seed."""
    monkeypatch.setattr(pairs_module, "choose_device", lambda index: INFO)
    monkeypatch.setattr(pairs_module, "find_compiler", lambda architecture, version: HostCompiler())
    monkeypatch.setattr(pairs_module, "Device", HostDevice)
    monkeypatch.setattr(kernels_module, "Function", HostFunction)
    monkeypatch.setattr(HostFunction, "seed", seed)
    HostFunction.launches.clear()
    return GpuPairAligner(memory=memory)
