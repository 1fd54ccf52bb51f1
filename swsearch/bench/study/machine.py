"""The GPU of the kernel study.

Tests replace `GpuMachine` by the emulation in tests/support/host_machine.py.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.engines.gpu.compiler import SOURCES, Compiler, Kernel, find_compiler
from swsearch.engines.gpu.device import Device, DeviceInfo, Function, choose_device
from swsearch.engines.gpu.driver import driver

STUDY_SOURCES = SOURCES / "study"
"""The folder of the study's kernels."""

POISON = 0x7B7B7B7B
"""Contents of fresh memory: a score far above any real one, so that a missed cell shows."""

Array = npt.NDArray[Any]
StudyLaunch = Callable[..., None]
"""``launch(blocks, threads, arguments, stream=None)``."""


class StudyCompiler(Compiler):
    """Compiles what stands in ``cuda/study`` with the engine's header."""

    def key(self, kernel: Kernel) -> str:
        """Return the cache's name of a kernel, which the engine's headers are part of."""
        headers = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.cuh")))
        return super().key(Kernel(kernel.source, (*kernel.defines, ("HEADERS", hash_of(headers)))))

    def _options(self, kernel: Kernel) -> list[str]:
        return [*super()._options(kernel), f"-I{SOURCES}"]


def hash_of(text: str) -> int:
    """Return a number that stands for a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def study_hash() -> str:
    """Return the SHA-256 of the study's kernels and of the engine's headers, which results carry."""
    paths = [*sorted(SOURCES.glob("*.cuh")), *sorted(STUDY_SOURCES.glob("*.cu*"))]
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)).hexdigest()


def study_compiler(architecture: str, version: tuple[int, int] | None, cache: Path | None = None) -> StudyCompiler:
    """Choose a compiler for the study's kernels, as the engine chooses its own."""
    toolchain = find_compiler(architecture, version).toolchain
    return StudyCompiler(toolchain, architecture, sources=STUDY_SOURCES, cache_folder=cache)


class GpuBuffer:
    """Device memory, freed with the object."""

    def __init__(self, device: Device, n_bytes: int) -> None:
        with device.active(f"a matrix or buffer of {n_bytes:,} bytes"):
            self._memory = device.allocate(-(-n_bytes // 4) * 4)
        self.address, self.n_bytes = int(self._memory), n_bytes


class GpuMachine:
    """A GPU, whose context is current while `open_machine` holds it.

    Work on a stream runs in order. The main stream is ``None``.

    Parameters
    ----------
    device : Device
        Open.
    """

    def __init__(self, device: Device) -> None:
        info = device.info
        self._device, self._main = device, device.stream()
        self.name, self.multiprocessors, self.shared_limit = info.name, info.multiprocessors, info.shared_limit
        self._compiler = study_compiler(info.architecture, info.driver_version)
        self._modules: dict[Kernel, Any] = {}
        self._streams: list[Any] = []

    def allocate(self, n_bytes: int) -> GpuBuffer:
        """Allocate memory filled with `POISON`."""
        buffer = GpuBuffer(self._device, n_bytes)
        self.fill(buffer, POISON)
        return buffer

    def upload(self, data: Array) -> GpuBuffer:
        """Copy an array of any shape and type to new device memory."""
        buffer = GpuBuffer(self._device, data.nbytes)
        self._device.upload(buffer.address, data, self._main)
        return buffer

    def fill(self, buffer: GpuBuffer, word: int) -> None:
        """Set every 32-bit word of a buffer, on the main stream."""
        driver().memset_d32_async(buffer.address, word, -(-buffer.n_bytes // 4), self._main)

    def download(self, buffer: GpuBuffer, dtype: npt.DTypeLike, shape: tuple[int, ...], offset: int = 0) -> Array:
        """Wait for the main stream, and copy from a byte offset of a buffer into an array of this shape and type."""
        data = np.empty(shape, dtype)
        self._main.synchronize()
        self._device.download(data, buffer.address + offset)
        return data

    def host_array(self, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """Allocate page-locked host memory, as an array of this shape and type."""
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self._device.active(f"page-locked memory of {n_bytes:,} bytes"):
            pinned = self._device.pinned(n_bytes)
        return pinned.view(dtype)[: int(np.prod(shape))].reshape(shape)

    def copy_out(self, target: Array, buffer: GpuBuffer, stream: Any) -> None:
        """Copy from a buffer's beginning to page-locked memory of any shape, on a stream."""
        self._device.download_async(target, buffer.address, stream)

    def compile(self, codes: Sequence[Kernel]) -> None:
        """Compile and load kernels."""
        for code, cubin in zip(codes, self._compiler.compile_all(codes), strict=True):
            self._modules[code] = self._device.load(cubin)

    def kernel(self, code: Kernel, name: str, signature: str, shared_bytes: int = 0) -> StudyLaunch:
        """Compile and load a kernel."""
        if code not in self._modules:
            self._modules[code] = self._device.load(self._compiler.compile(code))
        function = Function(self._modules[code], name, signature, shared_bytes)
        main = self._main

        def launch(blocks: int, threads: int, arguments: Sequence[int], stream: Any = None) -> None:
            function.launch(blocks, threads, main if stream is None else stream, arguments)

        return launch

    def streams(self, count: int) -> list[Any]:
        """Return streams beside the main one, the same ones each time."""
        self._streams += [self._device.stream() for _ in range(count - len(self._streams))]
        return self._streams[:count]

    def fork(self, streams: Sequence[Any]) -> None:
        """Make streams wait for the work on the main one."""
        event = self._device.event()
        event.record(self._main)
        for stream in streams:
            stream.wait_for_event(event)

    def join(self, streams: Sequence[Any]) -> None:
        """Make the main stream wait for the work on others."""
        for stream in streams:
            event = self._device.event()
            event.record(stream)
            self._main.wait_for_event(event)

    def wait(self) -> None:
        """Wait for the main stream."""
        self._main.synchronize()

    def seconds(self, work: Callable[[], None]) -> float:
        """Call a function, and return the seconds that its work on the main stream took, by the GPU's clock."""
        begin, end = self._device.event(timing=True), self._device.event(timing=True)
        begin.record(self._main)
        work()
        end.record(self._main)
        end.synchronize()
        return float(end.time_since(begin)) / 1e3

    def forget(self) -> None:
        """Release all modules and streams, while the context is current."""
        self._main.synchronize()
        self._modules.clear()
        self._streams.clear()


@contextmanager
def open_machine(index: int | None = None) -> Iterator[GpuMachine]:
    """Open a GPU for the study.

    Raises
    ------
    GpuUnavailableError
        If there is none that can be used.
    """
    # streams share 8 channels to the GPU unless it is told otherwise before the driver begins; 32 is its most
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    info: DeviceInfo = choose_device(index)
    device = Device(info)
    try:
        with device.active("the kernel study"):
            machine = GpuMachine(device)
            try:
                yield machine
            finally:
                machine.forget()
    finally:
        device.close()
