"""The driver through NVIDIA's cuda-bindings, in PyCUDA's names: see `driver.Driver`.

Not through cuda-core, the layer above: its import takes three times as long; it keeps primary contexts until their
threads end, so that a closed engine would not free its memory; and memory that it frees stays in a pool.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from cuda.bindings import driver as cuda

from swsearch.processors import OwnProcess

try:
    # cuda-bindings 13 has only the variant of it that drivers before CUDA 12.8 lack
    _elapsed_time = ctypes.CDLL("libcuda.so.1").cuEventElapsedTime
except OSError as missing:
    raise ImportError(str(missing)) from missing

_process = OwnProcess("CUDA")
_retained: Counter[int] = Counter()
"""How often each context was retained here."""


class Error(Exception):
    """Any error of the driver."""


class MemoryError(Error):
    """Out of memory."""


def _named(kind: Any, prefix: str) -> SimpleNamespace:
    """Return the members of an enumeration by PyCUDA's names."""
    return SimpleNamespace(**{name.removeprefix(prefix): value for name, value in kind.__members__.items()})


device_attribute = _named(cuda.CUdevice_attribute, "CU_DEVICE_ATTRIBUTE_")
event_flags = _named(cuda.CUevent_flags, "CU_EVENT_")
function_attribute = _named(cuda.CUfunction_attribute, "CU_FUNC_ATTRIBUTE_")


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the driver; return its value, or a list of several."""
    status, *values = function(*arguments)
    if status:
        raise _error(function.__name__, status)
    return values[0] if len(values) == 1 else values


def _error(name: str, status: int) -> Error:
    reason = cuda.cuGetErrorString(cuda.CUresult(status))[1] or b"unknown error"
    kind = MemoryError if status == cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY else Error
    return kind(f"{name} failed: {reason.decode()}")


class Context:
    """A retained primary context."""

    def __init__(self, device: Any) -> None:
        self._device, self._handle = device, _call(cuda.cuDevicePrimaryCtxRetain, device)
        _retained[int(self._handle)] += 1

    def push(self) -> None:
        _call(cuda.cuCtxPushCurrent, self._handle)

    def pop(self) -> None:
        _call(cuda.cuCtxPopCurrent)

    def detach(self) -> None:
        _retained[int(self._handle)] -= 1
        _call(cuda.cuDevicePrimaryCtxRelease, self._device)


class Device:
    """A device by its number."""

    def __init__(self, index: int) -> None:
        self._device = _call(cuda.cuDeviceGet, index)

    @staticmethod
    def count() -> int:
        return int(_call(cuda.cuDeviceGetCount))

    def name(self) -> str:
        return str(_call(cuda.cuDeviceGetName, 256, self._device).split(b"\0")[0].decode())

    def pci_bus_id(self) -> str:
        return str(_call(cuda.cuDeviceGetPCIBusId, 32, self._device).split(b"\0")[0].decode())

    def total_memory(self) -> int:
        return int(_call(cuda.cuDeviceTotalMem, self._device))

    def get_attribute(self, attribute: Any) -> int:
        return int(_call(cuda.cuDeviceGetAttribute, attribute, self._device))

    def compute_capability(self) -> tuple[int, int]:
        major = self.get_attribute(device_attribute.COMPUTE_CAPABILITY_MAJOR)
        return major, self.get_attribute(device_attribute.COMPUTE_CAPABILITY_MINOR)

    def retain_primary_context(self) -> Context:
        return Context(self._device)


class _Owned:
    """A handle that belongs to the current context; it ends with its owner's last reference, by default its own."""

    def __init__(self, handle: Any, end: Callable[..., Any], owner: Any = None) -> None:
        self.handle = handle
        owner = self if owner is None else owner
        self._finalizer = weakref.finalize(owner, _end, _call(cuda.cuCtxGetCurrent), handle, end)
        self._finalizer.atexit = False  # the end of the process ends it

    def __int__(self) -> int:
        return int(self.handle)


def _end(context: Any, handle: Any, end: Callable[..., Any]) -> None:
    if _process.is_here and _retained[int(context)]:  # a context that was released took it along
        cuda.cuCtxPushCurrent(context)
        end(handle)
        cuda.cuCtxPopCurrent()


class Memory(_Owned):
    """Device memory."""

    def __init__(self, n_bytes: int) -> None:
        super().__init__(_call(cuda.cuMemAlloc, n_bytes), cuda.cuMemFree)

    def free(self) -> None:
        if self._finalizer.detach():
            _call(cuda.cuMemFree, self.handle)


class Stream(_Owned):
    """A stream."""

    def __init__(self, flags: int) -> None:
        super().__init__(_call(cuda.cuStreamCreate, flags), cuda.cuStreamDestroy)

    def synchronize(self) -> None:
        _call(cuda.cuStreamSynchronize, self.handle)

    def wait_for_event(self, event: Event) -> None:
        _call(cuda.cuStreamWaitEvent, self.handle, event.handle, 0)


class Event(_Owned):
    """An event."""

    def __init__(self, flags: int) -> None:
        super().__init__(_call(cuda.cuEventCreate, flags), cuda.cuEventDestroy)

    def record(self, stream: Stream) -> None:
        _call(cuda.cuEventRecord, self.handle, stream.handle)

    def query(self) -> bool:
        (status,) = cuda.cuEventQuery(self.handle)
        if status and status != cuda.CUresult.CUDA_ERROR_NOT_READY:
            raise _error("cuEventQuery", status)
        return not status

    def synchronize(self) -> None:
        _call(cuda.cuEventSynchronize, self.handle)

    def time_since(self, event: Event) -> float:
        time = ctypes.c_float()
        if status := _elapsed_time(ctypes.byref(time), ctypes.c_void_p(int(event)), ctypes.c_void_p(int(self))):
            raise _error("cuEventElapsedTime", status)
        return time.value


class Function:
    """A kernel; threads of one device launch one after another."""

    def __init__(self, module: Module, name: str) -> None:
        self._module, self._function = module, _call(cuda.cuModuleGetFunction, module.handle, name.encode())

    def set_attribute(self, attribute: Any, value: int) -> None:
        _call(cuda.cuFuncSetAttribute, self._function, attribute, value)

    def prepare(self, signature: str) -> None:
        self._layout = struct.Struct(signature)
        self._arguments = ctypes.create_string_buffer(self._layout.size)
        self._size = ctypes.c_size_t(self._layout.size)
        pointers = ctypes.addressof(self._arguments), ctypes.addressof(self._size)
        # CU_LAUNCH_PARAM_BUFFER_POINTER, ..._BUFFER_SIZE, ..._END
        self._extra = (ctypes.c_void_p * 5)(1, pointers[0], 2, pointers[1], 0)

    def prepared_async_call(self, grid: Any, block: Any, stream: Stream, *arguments: int, shared_size: int) -> None:
        self._layout.pack_into(self._arguments, 0, *arguments)
        extra = ctypes.addressof(self._extra)
        _call(cuda.cuLaunchKernel, self._function, *grid, 1, *block, shared_size, stream.handle, 0, extra)


class Module(_Owned):
    """A loaded cubin."""

    def __init__(self, cubin: bytes) -> None:
        super().__init__(_call(cuda.cuModuleLoadData, cubin), cuda.cuModuleUnload)

    def get_function(self, name: str) -> Function:
        return Function(self, name)


mem_alloc, module_from_buffer = Memory, Module


def init() -> None:
    """Initialise CUDA in this process."""
    _call(cuda.cuInit, 0)


def get_driver_version() -> int:
    """Return the driver's version of CUDA, e.g. 13000."""
    return int(_call(cuda.cuDriverGetVersion))


def mem_get_info() -> tuple[int, ...]:
    """Return the bytes that are free, and all."""
    return tuple(_call(cuda.cuMemGetInfo))


def pagelocked_empty(shape: int, dtype: Any) -> npt.NDArray[Any]:
    """Return an array in page-locked host memory."""
    n_bytes = shape * np.dtype(dtype).itemsize
    address = _call(cuda.cuMemHostAlloc, n_bytes, 0)
    memory = (ctypes.c_uint8 * n_bytes).from_address(int(address))
    _Owned(address, cuda.cuMemFreeHost, memory)
    return np.frombuffer(memory, dtype)


def memcpy_htod_async(address: int, data: npt.NDArray[Any], stream: Stream) -> None:
    """Copy an array to the device; do not wait."""
    _call(cuda.cuMemcpyHtoDAsync, address, data.ctypes.data, data.nbytes, stream.handle)


def memcpy_dtoh(data: npt.NDArray[Any], address: int) -> None:
    """Copy device memory into an array, and wait for it."""
    _call(cuda.cuMemcpyDtoH, data.ctypes.data, address, data.nbytes)


def memcpy_dtoh_async(data: npt.NDArray[Any], address: int, stream: Stream) -> None:
    """Copy device memory into an array in page-locked memory; do not wait."""
    _call(cuda.cuMemcpyDtoHAsync, data.ctypes.data, address, data.nbytes, stream.handle)


def memset_d32_async(address: int, value: int, count: int, stream: Stream) -> None:
    """Set words of four bytes; do not wait."""
    _call(cuda.cuMemsetD32Async, address, value, count, stream.handle)
