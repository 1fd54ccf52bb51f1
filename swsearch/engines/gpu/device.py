"""Devices, contexts, memory and launches over `driver`, and CUDA's errors in the user's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.cuda_package import UNUSABLE
from swsearch.engines.gpu.driver import Event, Memory, Module, Stream, driver
from swsearch.errors import EngineError, GpuUnavailableError, MemoryLimitError, OptionError
from swsearch.processors import OwnProcess

OLDEST_CAPABILITY = (7, 5)
"""Compute capability below which the compilers of CUDA 13 make no code."""


_NON_BLOCKING = 1
"""CU_STREAM_NON_BLOCKING."""


class GpuMemoryError(MemoryLimitError):
    """The device has less memory than was asked for; the engine asks for less before it gives up."""


@dataclass(frozen=True)
class DeviceInfo:
    """Properties of a device, known before it is opened.

    Parameters
    ----------
    index : int
        As ``--device`` takes it.
    name : str
        The vendor's name.
    capability : (int, int)
        Compute capability.
    multiprocessors : int
        Streaming multiprocessors.
    memory : int
        Bytes.
    shared_limit : int
        Largest shared memory of a block, bytes.
    driver_version : (int, int)
        CUDA version of the driver.
    clock : int
        Of the multiprocessors at most, in kHz; 1 if the driver does not tell.
    """

    index: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    shared_limit: int
    driver_version: tuple[int, int]
    clock: int = 1

    @property
    def architecture(self) -> str:
        """Name of the architecture for compilers, e.g. ``sm_90``."""
        return "sm_{}{}".format(*self.capability)

    def __str__(self) -> str:
        return f"device {self.index}, {self.name}"


def list_devices() -> list[DeviceInfo]:
    """Describe every device.

    Raises
    ------
    GpuUnavailableError
        If there is none, or no way to reach it.
    """
    cuda = driver()
    version = cuda.get_driver_version()
    found = []
    for index in range(cuda.Device.count()):
        device = cuda.Device(index)
        attribute = cuda.device_attribute
        found.append(
            DeviceInfo(
                index,
                device.name(),
                tuple(device.compute_capability()),
                device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
                device.total_memory(),
                device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
                if hasattr(attribute, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
                else device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) - 1024,
                (version // 1000, version % 1000 // 10),
                device.get_attribute(attribute.CLOCK_RATE) if hasattr(attribute, "CLOCK_RATE") else 1,
            )
        )
    return found


def choose_device(index: int | None) -> DeviceInfo:
    """Return a device, by default the first of those with the most multiprocessors that are not too old.

    Raises
    ------
    GpuUnavailableError
        If there is none, or it is too old.
    OptionError
        If there is no device of that number.
    """
    devices = list_devices()
    if index is not None and not 0 <= index < len(devices):
        raise OptionError("device", index, f"one of {names_of(devices)}")
    usable = [each for each in devices if not why_too_old(each)] or devices
    chosen = devices[index] if index is not None else max(usable, key=lambda each: each.multiprocessors)
    if why := why_too_old(chosen):
        raise GpuUnavailableError(f"{UNUSABLE}{chosen} {why}; use --engine cpu")
    return chosen


def names_of(devices: Sequence[DeviceInfo]) -> str:
    """List devices for a message: ``0 (NVIDIA H200), 1 (NVIDIA L4)``."""
    return ", ".join(f"{each.index} ({each.name})" for each in devices)


def describe_devices(devices: Sequence[DeviceInfo], compilers: Iterable[str]) -> str:
    """Describe what runs on several devices: how many of one kind, or all of them, and what compiles for them."""
    named = "; ".join(map(str, devices))
    if len({each.name for each in devices}) == 1 and len({each.index for each in devices}) == len(devices):
        named = f"{len(devices)} x {devices[0].name}" if len(devices) > 1 else devices[0].name
    made = dict.fromkeys(each.architecture for each in devices)
    return f"gpu ({', '.join([named, *made, *dict.fromkeys(compilers)])})"


def why_too_old(device: DeviceInfo) -> str:
    """Say why a device cannot be used; empty where it can."""
    if device.capability >= OLDEST_CAPABILITY:
        return ""
    return "has compute capability {}.{}, expected at least {}.{}".format(*device.capability, *OLDEST_CAPABILITY)


class Device:
    """An open device: its primary context, which is shared with other libraries of the process.

    Parameters
    ----------
    info : DeviceInfo
        Which one.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self._process = OwnProcess(str(info))
        self._cuda = driver()
        try:
            self._context = self._cuda.Device(info.index).retain_primary_context()
        except self._cuda.Error as error:
            raise GpuUnavailableError(
                f"{UNUSABLE}{info} could not be opened ({error}); see with nvidia-smi whether "
                "another process holds it, or use --engine cpu"
            ) from error

    @property
    def is_here(self) -> bool:
        """Whether this process opened the device; a fork of it cannot use it."""
        return self._process.is_here

    @contextmanager
    def active(self, doing: str) -> Iterator[None]:
        """Make the context current, and translate what CUDA says when ``doing`` fails."""
        self._process.check()
        cuda = self._cuda
        try:
            self._context.push()
        except cuda.Error as error:
            raise self._failure(doing, error) from error
        try:
            yield
        except cuda.MemoryError as error:
            raise GpuMemoryError(
                f"{self.info}: not enough GPU memory for {doing} ({error}); close other programs that use it, or "
                "allow less with --gpu-memory"
            ) from error
        except cuda.Error as error:
            raise self._failure(doing, error) from error
        finally:
            self._context.pop()

    def _failure(self, doing: str, error: Exception) -> EngineError:
        return EngineError(
            f"{self.info}: {doing} failed ({error}); run again, with --engine cpu if it stays, and please report it"
        )

    def close(self) -> None:
        """Release the context; the device frees its memory when nothing else holds the context."""
        self._context.detach()

    # What follows needs the context to be current.

    def free_memory(self) -> int:
        """Return the bytes that are free on the device."""
        return self._cuda.mem_get_info()[0]

    def allocate(self, n_bytes: int) -> Memory:
        """Allocate device memory; freed when the last reference goes, or by its ``free``."""
        return self._cuda.mem_alloc(max(n_bytes, 1))

    def pinned(self, n_bytes: int) -> npt.NDArray[np.uint8]:
        """Allocate page-locked host memory, shape (max(n_bytes, 1),), uint8."""
        return self._cuda.pagelocked_empty(max(n_bytes, 1), np.uint8)

    def stream(self) -> Stream:
        """Make a stream that does not wait for copies on the default stream."""
        return self._cuda.Stream(_NON_BLOCKING)

    def event(self, timing: bool = False) -> Event:
        """Make an event."""
        return self._cuda.Event(0 if timing else self._cuda.event_flags.DISABLE_TIMING)

    def upload(self, address: int, data: npt.NDArray[Any], stream: Any) -> None:
        """Copy an array of any shape and type to the device and wait until it is there, as plain copies need not."""
        if data.nbytes:
            self._cuda.memcpy_htod_async(address, np.ascontiguousarray(data), stream)
            stream.synchronize()

    def download(self, data: npt.NDArray[Any], address: int) -> None:
        """Copy device memory into an array of any shape and type, which must be contiguous, and wait for it."""
        if data.nbytes:
            self._cuda.memcpy_dtoh(data, address)

    def upload_async(self, address: int, data: npt.NDArray[Any], stream: Any) -> None:
        """Copy an array of any shape and type to the device; do not wait.

        What is not page-locked the driver has read when this returns.
        """
        if data.nbytes:
            self._cuda.memcpy_htod_async(address, data, stream)

    def download_async(self, pinned: npt.NDArray[Any], address: int, stream: Any) -> None:
        """Copy device memory to page-locked memory, an array of any shape and type; do not wait."""
        if pinned.nbytes:
            self._cuda.memcpy_dtoh_async(pinned, address, stream)

    def clear_async(self, address: int, n_bytes: int, stream: Any) -> None:
        """Set device memory, a multiple of four bytes, to 0; do not wait."""
        if n_bytes:
            self._cuda.memset_d32_async(address, 0, n_bytes // 4, stream)

    def load(self, cubin: bytes) -> Module:
        """Load a compiled module."""
        return self._cuda.module_from_buffer(cubin)


class Function:
    """A kernel of a loaded module.

    Parameters
    ----------
    module : Module
        Loaded; kept alive.
    name : str
        The kernel.
    signature : str
        One letter for each argument, as `struct` has them; ``P`` is an address.
    shared_bytes : int
        Shared memory of a block.
    """

    def __init__(self, module: Module, name: str, signature: str, shared_bytes: int = 0) -> None:
        self._module, self._shared = module, shared_bytes
        self._function = module.get_function(name)
        if shared_bytes > 48 << 10:
            cuda = driver()
            self._function.set_attribute(cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
        self._function.prepare(signature)

    def launch(self, blocks: int, threads: int, stream: Any, arguments: Sequence[int]) -> None:
        """Start the kernel; it runs after what the stream holds already.

        Parameters
        ----------
        blocks, threads : int
            Blocks of the grid, and threads of each.
        stream : Stream
            Where it runs.
        arguments : sequence of int
            Numbers and addresses, in the order of the signature.
        """
        self._function.prepared_async_call((blocks, 1), (threads, 1, 1), stream, *arguments, shared_size=self._shared)
