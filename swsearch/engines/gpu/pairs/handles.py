"""The handles that every alignment of pairs on a device needs, together in one object.

What belongs here lends, launches and counts; what is computed stands in `long_pair` and `short_pairs`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.engines.gpu.device import Device, GpuMemoryError
from swsearch.engines.gpu.kernels import Kernels, LoadedKernel
from swsearch.engines.gpu.memory import FREE_SHARE
from swsearch.errors import EngineError


class Scratch:
    """Device memory, taken piece by piece and given back in the reverse order; the context must be current.

    Parameters
    ----------
    device : Device
        Where.
    most : int
        Most bytes that may be taken together, however many are free.
    """

    def __init__(self, device: Device, most: int) -> None:
        self.device, self._most, self.limit = device, most, 0
        self._pieces: list[tuple[Any, int]] = []
        self.used = self.peak = 0

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Allow allocations of as much memory as is free now; free the rest on exit."""
        self.limit, self.peak = min(int(self.device.free_memory() * FREE_SHARE), self._most), 0
        try:
            yield
        finally:
            self.release()

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self.limit - self.used

    def take(self, n_bytes: int) -> int:
        """Return the address of a new piece.

        Raises
        ------
        GpuMemoryError
            If it would pass the limit.
        """
        if n_bytes > self.left:
            raise GpuMemoryError(
                f"this pair takes more than the {self.limit >> 20} MiB of GPU memory that may be used; allow more "
                "with --gpu-memory"
            )
        piece = self.device.allocate(n_bytes)
        self._pieces.append((piece, n_bytes))
        self.used += n_bytes
        self.peak = max(self.peak, self.used)
        return int(piece)

    def put(self, data: npt.NDArray[Any], stream: Any) -> int:
        """Return the address of a new piece that holds an array of any shape and type."""
        address = self.take(max(data.nbytes, 1))
        self.device.upload(address, data, stream)
        return address

    def mark(self) -> int:
        """Return what `release` takes to give back all that is taken from now on."""
        return len(self._pieces)

    def release(self, mark: int = 0) -> None:
        """Free the memory allocated since the mark."""
        while len(self._pieces) > mark:
            piece, n_bytes = self._pieces.pop()
            piece.free()
            self.used -= n_bytes


@dataclass
class PairUsage:
    """Work of an aligner so far, for benchmarks and ``--verbose``.

    Parameters
    ----------
    kernel_seconds : float
        Time of all kernels, by the device's clock.
    trace_seconds : float
        Part of `kernel_seconds` in which one warp follows directions.
    launches : int
        Kernels started.
    cells : int
        Cells computed, including those of the traceback.
    peak_bytes : int
        Peak device memory.
    """

    kernel_seconds: float = 0.0
    trace_seconds: float = 0.0
    launches: int = 0
    cells: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True)
class PairHandles:
    """Device resources of an aligner, made once for it. Methods need the device's context to be current.

    Parameters
    ----------
    device : Device
        The device.
    kernels : Kernels
        Its kernels.
    stream : Stream
        Where they are launched.
    scratch : Scratch
        Memory of the device.
    usage : PairUsage
        Is added to.
    stopping : threading.Event
        Set by another thread that wants no more; a new one by default.
    """

    device: Device
    kernels: Kernels
    stream: Any
    scratch: Scratch
    usage: PairUsage
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        if self.scratch.device is not self.device:
            raise ValueError("scratch memory of another device")

    def put(self, data: npt.NDArray[Any]) -> int:
        """Return the address of new scratch memory that holds an array of any shape and type."""
        return self.scratch.put(data, self.stream)

    def download(self, dtype: npt.DTypeLike, shape: int | tuple[int, ...], address: int) -> npt.NDArray[Any]:
        """Return what stands at an address, when everything before has been waited for, as a new array."""
        found: npt.NDArray[Any] = np.empty(shape, dtype=dtype)
        self.device.download(found, address)
        return found

    def run(self, kernel: LoadedKernel, blocks: int, threads: int, /, **arguments: int) -> float:
        """Start a kernel, wait for it so that Ctrl-C is answered, and return its seconds."""
        started, ended = self.device.event(timing=True), self.device.event(timing=True)
        started.record(self.stream)
        kernel.launch(blocks, threads, self.stream, **arguments)
        ended.record(self.stream)
        pause = 0.0
        while not ended.query():
            time.sleep(pause)
            pause = min(pause + 1e-5, 0.002)
        if self.stopping.is_set():
            raise EngineError(f"{self.device.info}: the alignment of pairs was stopped")
        seconds = float(ended.time_since(started)) * 1e-3
        self.usage.kernel_seconds += seconds
        self.usage.launches += 1
        self.usage.peak_bytes = max(self.usage.peak_bytes, self.scratch.peak)
        return seconds
