"""The emulation of `host_cuda` as a machine of the kernel study: its host code and kernels, whole, on the CPU."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from support.host_cuda import HostKernel
from swsearch.bench.study.machine import POISON, STUDY_SOURCES, Array, StudyLaunch
from swsearch.engines.gpu.compiler import SOURCES, Kernel

GUARD = 64
"""Words after every buffer that no kernel may touch."""


@cache
def headers() -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the headers of cuda/ and cuda/study/, which the emulation takes from one folder."""
    folder = tempfile.TemporaryDirectory(prefix="study_headers_")
    for path in (*SOURCES.glob("*.cuh"), *STUDY_SOURCES.glob("*.cuh")):
        shutil.copy(path, folder.name)
    return folder


class HostBuffer:
    """Host memory that stands for device memory."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.words = np.full(-(-n_bytes // 4) + GUARD, POISON, np.uint32)
        self.address = int(self.words.ctypes.data)


class HostMachine:
    """Stands for `swsearch.bench.study.machine.GpuMachine`; streams run at once, in the order of launches.

    Parameters
    ----------
    seed : int
        The schedule of every launch.
    multiprocessors : int
        Blocks that a grid barrier is given.
    """

    name, shared_limit = "host", 227 << 10

    def __init__(self, seed: int = 0, multiprocessors: int = 3) -> None:
        self.seed, self.multiprocessors = seed, multiprocessors
        self._buffers: list[HostBuffer] = []

    def allocate(self, n_bytes: int) -> HostBuffer:
        self._buffers.append(HostBuffer(n_bytes))
        return self._buffers[-1]

    def upload(self, data: Array) -> HostBuffer:
        buffer = self.allocate(data.nbytes)
        buffer.words.view(np.uint8)[: data.nbytes] = np.ascontiguousarray(data).view(np.uint8).ravel()
        return buffer

    def fill(self, buffer: HostBuffer, word: int) -> None:
        buffer.words[:-GUARD] = word

    def download(self, buffer: HostBuffer, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> Array:
        self.check_guards()
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return buffer.words.view(np.uint8)[offset : offset + count].view(dtype).reshape(shape).copy()

    def host_array(self, dtype: Any, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape, dtype)

    def copy_out(self, target: Array, buffer: HostBuffer, stream: Any) -> None:
        target.reshape(-1).view(np.uint8)[:] = buffer.words.view(np.uint8)[: target.nbytes]

    def compile(self, codes: Sequence[Kernel]) -> None:
        pass

    def kernel(self, code: Kernel, name: str, signature: str, shared_bytes: int = 0) -> StudyLaunch:
        source = STUDY_SOURCES / f"{code.source}.cu"
        compiled = HostKernel(source, name, signature, dict(code.defines), Path(headers().name))

        def launch(blocks: int, threads: int, arguments: Sequence[int], stream: Any = None) -> None:
            values = [
                value or None if letter == "P" else value for letter, value in zip(signature, arguments, strict=True)
            ]
            compiled.launch(blocks, threads, values, shared_bytes, self.seed)

        return launch

    def streams(self, count: int) -> list[Any]:
        return list(range(1, count + 1))

    def fork(self, streams: Sequence[Any]) -> None:
        pass

    def join(self, streams: Sequence[Any]) -> None:
        pass

    def wait(self) -> None:
        pass

    def seconds(self, work: Callable[[], None]) -> float:
        work()
        return 1e-3

    def check_guards(self) -> None:
        for one in self._buffers:
            assert (one.words[-GUARD:] == POISON).all(), f"something wrote behind a buffer of {one.n_bytes} bytes"
