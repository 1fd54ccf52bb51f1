"""The interface to CUDA's driver, and the import of the package that implements it.

`Driver` lists the part of PyCUDA that swsearch uses: ``pycuda.driver`` is one implementation, as it is, and
`cuda_bindings` the other, over NVIDIA's cuda-bindings, which pip installs without a compiler. No other module imports
either package, and these do so only when a device is needed: without a package or a driver everything else works.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from swsearch.cuda_package import UNUSABLE, chosen_package, is_driver_error, why_no_package
from swsearch.errors import GpuUnavailableError
from swsearch.processors import OwnProcess

OLDEST_DRIVER = 12000
"""CUDA version of the oldest driver, as `get_driver_version` returns it: older ones load no kernels of CUDA 12."""


class Memory(Protocol):
    """Device memory; ``int`` returns its address."""

    def __int__(self) -> int: ...
    def free(self) -> None: ...


class Event(Protocol):
    """An event; times are in milliseconds."""

    def record(self, stream: Any) -> Any: ...
    def query(self) -> bool: ...
    def synchronize(self) -> Any: ...
    def time_since(self, event: Any) -> float: ...


class Stream(Protocol):
    """A stream."""

    def synchronize(self) -> Any: ...
    def wait_for_event(self, event: Any) -> Any: ...


class Module(Protocol):
    """A loaded cubin; its functions have ``set_attribute``, ``prepare`` and ``prepared_async_call``."""

    def get_function(self, name: str) -> Any: ...


class Driver(Protocol):
    """The driver. Memory, streams, events and modules belong to the current context, and end with the last reference.

    ``Device(index)`` has ``name``, ``compute_capability``, ``total_memory``, ``pci_bus_id``, ``get_attribute`` and
    ``retain_primary_context``, whose context has ``push``, ``pop`` and ``detach``; ``Device.count`` counts devices.
    """

    Device: Any
    Error: Any
    MemoryError: Any
    device_attribute: Any
    event_flags: Any
    function_attribute: Any

    @property
    def Stream(self) -> Callable[[int], Stream]: ...
    @property
    def Event(self) -> Callable[[int], Event]: ...
    def init(self) -> None: ...
    def get_driver_version(self) -> int: ...
    def mem_get_info(self) -> tuple[int, ...]: ...
    def mem_alloc(self, n_bytes: int) -> Memory: ...
    def pagelocked_empty(self, shape: int, dtype: Any) -> npt.NDArray[np.uint8]: ...
    def memcpy_htod_async(self, address: int, data: npt.NDArray[Any], stream: Any) -> None: ...
    def memcpy_dtoh(self, data: npt.NDArray[Any], address: int) -> None: ...
    def memcpy_dtoh_async(self, data: npt.NDArray[Any], address: int, stream: Any) -> None: ...
    def memset_d32_async(self, address: int, value: int, count: int, stream: Any) -> None: ...
    def module_from_buffer(self, cubin: bytes) -> Module: ...


def driver() -> Driver:
    """Return the driver, with CUDA initialised.

    Raises
    ------
    GpuUnavailableError
        If there is no package, driver or device, the driver is too old, or CUDA was initialised before this process
        was forked.
    """
    found, process = _driver()
    if not process.is_here:
        raise GpuUnavailableError(
            f"{UNUSABLE}CUDA was initialised before this process was forked; start processes with "
            "multiprocessing.get_context('spawn'), or use --engine cpu"
        )
    return found


@functools.cache
def _driver() -> tuple[Driver, OwnProcess]:
    """Import the package and initialise CUDA in this process."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # nvidia-smi's numbers
    try:
        found = _import(chosen_package())
        found.init()
        count, version = found.Device.count(), found.get_driver_version()
    except ImportError as error:
        raise GpuUnavailableError(f"{UNUSABLE}{_why_no_import(error)}, or use --engine cpu") from error
    except Exception as error:
        if not is_driver_error(error):
            raise
        why = f"the NVIDIA driver does not answer ({error}); see that nvidia-smi works"
        raise GpuUnavailableError(f"{UNUSABLE}{why}, or use --engine cpu") from error
    if count == 0:
        raise GpuUnavailableError(f"{UNUSABLE}there is no CUDA device; use --engine cpu")
    if version < OLDEST_DRIVER:
        why = f"the NVIDIA driver is for CUDA {version // 1000}.{version % 1000 // 10}, expected at least 12.0"
        raise GpuUnavailableError(f"{UNUSABLE}{why}; install a newer driver, or use --engine cpu")
    return found, OwnProcess("CUDA")


def _import(package: str) -> Driver:
    if package == "pycuda":
        return cast("Driver", importlib.import_module("pycuda.driver"))
    if not package:
        raise ModuleNotFoundError(why_no_package())
    from swsearch.engines.gpu import cuda_bindings

    return cuda_bindings


def _why_no_import(error: ImportError) -> str:
    """Say why a package cannot be imported, and what to do about it."""
    if isinstance(error, ModuleNotFoundError):
        return str(error)
    if "undefined symbol" in str(error):
        return (
            f"PyCUDA was built for another driver ({error}); build it again with the CUDA headers of the driver's "
            "version (README, GPU): pip install --no-cache-dir --force-reinstall pycuda"
        )
    return f"no NVIDIA driver was found ({error}); install the driver"
