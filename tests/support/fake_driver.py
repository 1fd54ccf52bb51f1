"""A stand-in for CUDA's driver: as much of `swsearch.engines.gpu.driver.Driver` as is used before any kernel.

`install` puts it where PyCUDA or cuda-bindings would be, whether they are installed or not; what fails can be chosen.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

from swsearch import cuda_package
from swsearch.engines import gpu
from swsearch.engines.gpu import driver as driver_module


class Error(Exception):
    """Root of what PyCUDA raises."""


class MemoryError(Error):
    """Out of memory."""


class LogicError(Error):
    """Wrong use, which includes a missing device."""


class LaunchError(Error):
    """A kernel that crashed."""


for each in (Error, MemoryError, LogicError, LaunchError):
    each.__module__ = "pycuda._driver"


@dataclass(frozen=True)
class Card:
    """A made-up GPU."""

    name: str = "NVIDIA H200"
    capability: tuple[int, int] = (9, 0)
    multiprocessors: int = 132
    memory: int = 141 << 30


class Context:
    """Counts how often it is current."""

    def __init__(self):
        self.depth, self.detached = 0, False
        self.push_error = None

    def push(self):
        if self.push_error is not None:
            raise self.push_error
        self.depth += 1

    def pop(self):
        self.depth -= 1

    def detach(self):
        self.detached = True


def install(
    monkeypatch, cards=(Card(),), *, init_error=None, open_error=None, driver_version=13000, package="pycuda"
):
    """Make the stand-in a package's driver; return its driver module, whose ``contexts`` are those made."""
    driver = ModuleType("pycuda.driver")
    driver.contexts = []

    class Device:
        def __init__(self, index):
            self.card = cards[index]

        @staticmethod
        def count():
            return len(cards)

        def name(self):
            return self.card.name

        def compute_capability(self):
            return self.card.capability

        def total_memory(self):
            return self.card.memory

        def get_attribute(self, attribute):
            return {"multiprocessors": self.card.multiprocessors, "shared": 227 << 10}.get(attribute, 0)

        def pci_bus_id(self):
            return f"0000:{cards.index(self.card):02x}:00.0"

        def retain_primary_context(self):
            if open_error is not None:
                raise open_error
            driver.contexts.append(Context())
            return driver.contexts[-1]

    def init():
        if init_error is not None:
            raise init_error

    attributes = SimpleNamespace(
        MULTIPROCESSOR_COUNT="multiprocessors",
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="shared",
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR="shared",
    )
    driver.__dict__.update(
        Error=Error, MemoryError=MemoryError, LogicError=LogicError, LaunchError=LaunchError, Device=Device,
        Context=Context, init=init, device_attribute=attributes, get_driver_version=lambda: driver_version,
    )  # fmt: skip
    remove(monkeypatch)
    monkeypatch.setitem(sys.modules, cuda_package.PACKAGES[package], ModuleType(package))
    if package == "pycuda":
        monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    else:
        monkeypatch.setattr(gpu, "cuda_bindings", driver, raising=False)
    return driver


def install_without_driver(monkeypatch, folder):
    """Put a PyCUDA where it would be that finds no driver, as on a machine without one."""
    write_without_driver(folder)
    remove(monkeypatch)
    package = ModuleType("pycuda")
    package.__path__ = [str(folder / "pycuda")]
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.delitem(sys.modules, "pycuda.driver", raising=False)


def write_without_driver(folder):
    """Write such a PyCUDA into a folder, for the path of another process."""
    (folder / "pycuda").mkdir(parents=True)
    (folder / "pycuda" / "__init__.py").write_text("")
    (folder / "pycuda" / "driver.py").write_text(
        'raise ImportError("libcuda.so.1: cannot open shared object file: No such file or directory")\n'
    )


def remove(monkeypatch):
    """Make both packages missing, even where they are installed."""
    for module in cuda_package.PACKAGES.values():
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "pycuda.driver", raising=False)
    monkeypatch.delenv(cuda_package.VARIABLE, raising=False)
    # look again, now and, as it is put back, afterwards
    monkeypatch.setattr(driver_module, "_driver", functools.cache(driver_module._driver.__wrapped__))
