"""The GPU engine on `fake_gpu.FakeDevice` with the kernels of cuda/ themselves, run by `host_cuda`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from support.fake_gpu import FakeDevice, Launched, fake_engine
from support.host_cuda import HostKernel
from swsearch.engines.gpu import kernels as kernels_module
from swsearch.engines.gpu.compiler import SOURCES
from swsearch.engines.gpu.engine import GpuEngine


class HostFunction:
    """Stands for `swsearch.engines.gpu.device.Function`."""

    seed = 0
    """Of every launch; tests set it at the class."""

    def __init__(self, module: Any, name: str, signature: str, shared_bytes: int = 0) -> None:
        self.device, defines = module
        self.defines = {key: value for key, value in defines.items() if key != "source"}
        self.name, self._table, self._shared = name, kernels_module.ALL[name], shared_bytes
        assert signature == self._table.signature
        self._kernel = HostKernel(SOURCES / f"{defines['source']}.cu", name, signature, self.defines, SOURCES)

    def launch(self, blocks: int, threads: int, stream: Any, arguments: Sequence[int]) -> None:
        """Run the kernel; addresses count from the beginning of the device's memory."""
        named = self._table.by_name(arguments)
        FakeDevice.launches.append(Launched(self.name, self.defines, blocks, threads, named))
        base = int(self.device.bytes.ctypes.data)
        places = [
            (base + value if value else None) if letter == "P" else value
            for letter, value in zip(self._table.signature, arguments, strict=True)
        ]
        self._kernel.launch(blocks, threads, places, self._shared, self.seed)


@contextmanager
def host_engine(monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> Iterator[GpuEngine]:
    """Make a GPU engine whose kernels run on the CPU under the schedule of a seed."""
    with fake_engine(monkeypatch) as engine:
        monkeypatch.setattr(kernels_module, "Function", HostFunction)
        monkeypatch.setattr(HostFunction, "seed", seed)
        yield engine
