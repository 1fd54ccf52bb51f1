"""CUDA kernels on the CPU: compiled by a C++ compiler with ``host_cuda/shim.h``, one coroutine per CUDA thread.

It proves a kernel's logic where there is no GPU: indices, shuffles, barriers, and how blocks hand over to each other,
under schedules that a seed shuffles. It proves nothing of the GPU's memory model (stores are seen at once, in order)
and nothing of speed.

What a kernel must keep to:

- ``__shared__`` variables stand in functions, one per declaration; ``extern __shared__`` arrays have no bounds.
- Waiting means polling by ``load_acquire``, an atomic, ``__nanosleep``, or an empty loop, ``while (...) {}``, to
  which this module gives a body. Any other loop that polls memory never ends: threads run until a scheduling point.
- Blocks are whole warps, in one dimension; a mask names lanes that have not returned.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support import compiled

SHIM = Path(__file__).resolve().parent / "host_cuda"
OPTIONS = ("-std=c++17", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-fvisibility=hidden", "-w")
TYPES: dict[str, type[Any]] = {
    "P": ctypes.c_void_p,
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
}
"""Letters of a signature, as in `swsearch.engines.gpu.device.Function`."""

Argument = npt.NDArray[Any] | int | None

_ALIGNED = r"(?:__align__\(\d+\)\s*)?"
_DYNAMIC = re.compile(rf"extern\s+__shared__\s+{_ALIGNED}([^;\[\]=,()]+?)\s+(\w+)\s*\[\s*\]\s*;")
_STATIC = re.compile(rf"(?<!extern )__shared__\s+{_ALIGNED}([^;\[\]=,()]+?)\s+(\w+)\s*((?:\[[^\]]*\]\s*)*);")
_EMPTY_LOOP = re.compile(r"(while\s*\([^;{}]*\)\s*)\{(\s*)\}")


_MAIN = """#include "{source}"
extern "C" __attribute__((visibility("default"))) const char* host_cuda_launch(const host_cuda::Launch& launch) {{
  return host_cuda::run({name}, launch);
}}
"""


class HostCompileError(AssertionError):
    """A source that the C++ compiler refused; the text is its log."""


class HostLaunchError(AssertionError):
    """A launch that did not end: a deadlock, or a kernel that did what the emulation forbids."""


def rewrite(text: str) -> str:
    """Return a source with what a C++ compiler cannot be told by macros; lines keep their numbers."""

    def declare(match: re.Match[str], kind: str, shape: str, function: str) -> str:
        lines = "\n" * match[0].count("\n")
        return f"{kind} {match[2]} = ::host_cuda::{function}<{' '.join(match[1].split())}{shape}>();{lines}"

    text = _DYNAMIC.sub(lambda match: declare(match, "auto*", "", "dynamic_shared"), text)
    text = _STATIC.sub(lambda match: declare(match, "auto&", match[3] + ", __COUNTER__", "static_shared"), text)
    return _EMPTY_LOOP.sub(r"\1{ ::host_cuda::idle();\2}", text)


class HostKernel:
    """A kernel that runs on the CPU.

    Parameters
    ----------
    source : Path
        The ``.cu`` file.
    name : str
        The kernel in it.
    signature : str
        One letter for each argument, as `struct` has them (``P``, ``i``, ``I``, ``q``, ``Q``).
    defines : mapping of str to int
        Macros.
    include : Path
        The folder of its headers (``.cuh``).

    Raises
    ------
    HostCompileError
        If the compiler refuses it. Without a compiler the test is skipped.
    """

    def __init__(self, source: Path, name: str, signature: str, defines: Mapping[str, int], include: Path) -> None:
        self.name, self._types = name, [TYPES[letter] for letter in signature]
        self._signature = signature
        self._library = _compile(_sources(source, include), name, tuple(sorted(defines.items())))

    def launch(
        self,
        blocks: int,
        threads: int,
        arguments: Sequence[Argument],
        shared_bytes: int = 0,
        seed: int = 0,
        seconds: float = 60.0,
    ) -> None:
        """Run the kernel to its end.

        Parameters
        ----------
        blocks, threads : int
            Of the grid and of a block; threads are a multiple of 32.
        arguments : sequence
            For ``P`` an array (contiguous; the kernel works on it in place), None for a null pointer, or an address.
        shared_bytes : int
            Dynamic shared memory of a block; it begins as garbage.
        seed : int
            0 runs blocks, warps and lanes in order; others shuffle them.
        seconds : float
            Processor time after which the launch is given up.

        Raises
        ------
        HostLaunchError
            If nobody can go on, with what each thread waits for; the message begins with kernel and seed.
        """
        if len(arguments) != len(self._types):
            raise HostLaunchError(f"{self.name}: {len(arguments)} arguments for signature {self._signature}")
        values = [kind(_plain(value)) for kind, value in zip(self._types, arguments, strict=True)]
        addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        sizes = (ctypes.c_int * len(values))(*(ctypes.sizeof(kind) for kind in self._types))
        launch = _Launch(blocks, threads, addresses, sizes, len(values), shared_bytes, seed, seconds)
        with self._library.lock:
            error = self._library.launch(ctypes.byref(launch)).decode()
        if error:
            raise HostLaunchError(f"{self.name}, seed {seed}: {error}")


class _Launch(ctypes.Structure):
    """The launch structure of ``scheduler.h``."""

    _fields_ = (
        ("blocks", ctypes.c_uint),
        ("threads", ctypes.c_uint),
        ("values", ctypes.POINTER(ctypes.c_void_p)),
        ("sizes", ctypes.POINTER(ctypes.c_int)),
        ("n_values", ctypes.c_int),
        ("shared_bytes", ctypes.c_size_t),
        ("seed", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
    )


class _Library:
    """A loaded kernel; its grid is one, so that launches take turns."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.Lock()
        self._dll = ctypes.CDLL(str(path))
        self.launch = self._dll.host_cuda_launch
        self.launch.restype = ctypes.c_char_p


def _plain(value: Argument) -> int | None:
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError("an argument's array must be contiguous")
        return int(value.ctypes.data)
    return None if value is None else int(value)


def _sources(source: Path, include: Path) -> tuple[tuple[str, str], ...]:
    files = {path.name: path for path in (*sorted(include.glob("*.cuh")), source)}
    return tuple((name, f'#line 1 "{name}"\n' + rewrite(path.read_text())) for name, path in files.items())


# by what the files hold: a test that writes its kernel anew compiles it once
@functools.cache
def _compile(sources: tuple[tuple[str, str], ...], name: str, defines: tuple[tuple[str, int], ...]) -> _Library:
    main = ("main.cpp", _MAIN.format(source=sources[-1][0], name=name))
    macros = [f"-D{macro}={value}" for macro, value in defines]
    options = ("-O1", *macros, "-include", "shim.h", "-shared", str(_scheduler()))
    return _Library(_made((*_headers(), *sources, main), options, ".so"))


@functools.cache
def _scheduler() -> Path:
    """Return the object file of what is the same for all kernels."""
    text = (SHIM / "scheduler.cpp").read_text()
    return _made((*_headers(), ("scheduler.cpp", text)), ("-O2", "-c"), ".o")


@functools.cache
def _headers() -> tuple[tuple[str, str], ...]:
    return tuple((path.name, path.read_text()) for path in sorted(SHIM.glob("*.h")))


def _made(files: tuple[tuple[str, str], ...], options: tuple[str, ...], ending: str) -> Path:
    """Return what the compiler makes of the last of some files, or made of them before."""
    compiler, said = _compiler()
    key = hashlib.sha256(repr((said, OPTIONS, options, files)).encode()).hexdigest()[:32]
    made = compiled.folder("host_cuda") / f"{key}{ending}"
    if made.exists():
        return made
    with tempfile.TemporaryDirectory(prefix="host_cuda_") as folder:
        for file, text in files:
            Path(folder, file).write_text(text)
        # renamed when it is whole, so that another process sees all of it or nothing
        arriving = made.with_suffix(f".{os.getpid()}.tmp")
        command = [compiler, *OPTIONS, files[-1][0], *options, "-o", str(arriving)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HostCompileError(f"{options} does not compile for the CPU:\n{done.stderr[:4000]}")
    return arriving.replace(made)


@functools.cache
def _compiler() -> tuple[str, str]:
    """Return the compiler, and what it says of itself; without one the test is skipped."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ was not found, which compiles kernels for the CPU")
    return compiler, subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
