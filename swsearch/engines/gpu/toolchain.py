"""The two compilers that make a cubin of a kernel, NVRTC (a library) and nvcc: how to call them, where to find them.

Only the standard library is used, so that ``swsearch doctor`` can look for a compiler on a machine without a GPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

Version = tuple[int, int]
"""Major and minor version of CUDA."""

OLDEST: Version = (12, 0)
"""The first CUDA with the DPX functions that `recurrence.cuh` calls."""

SONAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
"""Library names for the dynamic loader, tried after the files found."""


class CompilationError(Exception):
    """A compiler refused a source; the text is its log."""


class Toolchain(ABC):
    """A compiler from CUDA C++ to a cubin.

    Attributes
    ----------
    path : str
        The library or the program, or the name that the dynamic loader knows.
    version : tuple of (int, int)
        CUDA version.
    """

    kind: ClassVar[str]
    path: str
    version: Version

    @property
    def description(self) -> str:
        """Kind and version, such as ``NVRTC 13.0``."""
        return f"{self.kind} {self.version[0]}.{self.version[1]}"

    @abstractmethod
    def architectures(self) -> frozenset[str]:
        """Return the architectures it compiles for, such as ``sm_90``."""

    @abstractmethod
    def options(self, architecture: str) -> list[str]:
        """Return the options that every kernel is compiled with, the folder of headers apart."""

    @abstractmethod
    def compile(self, source: Path, options: Sequence[str]) -> bytes:
        """Compile one source file, whose folder holds its headers.

        Raises
        ------
        CompilationError
            If the compiler refuses it.
        """


class Nvrtc(Toolchain):
    """NVRTC, called through ctypes, which lets other threads run meanwhile.

    Raises
    ------
    OSError
        If the library cannot be loaded or is not NVRTC.
    """

    kind = "NVRTC"

    def __init__(self, path: str) -> None:
        self.path = path
        if os.sep in path:  # NVRTC looks for its built-in headers elsewhere, in NVIDIA's package of 13.0 in vain
            for headers in Path(path).parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(headers))
        self._library = ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        try:
            self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
            self._check(self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        except (AttributeError, CompilationError) as error:
            raise OSError(f"not a usable NVRTC: {error}") from error
        self.version = (major.value, minor.value)

    def architectures(self) -> frozenset[str]:
        """Return the architectures it compiles for."""
        count = ctypes.c_int()
        self._check(self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        numbers = (ctypes.c_int * count.value)()
        self._check(self._library.nvrtcGetSupportedArchs(numbers))
        return frozenset(f"sm_{number}" for number in numbers)

    def options(self, architecture: str) -> list[str]:
        """Return the options that every kernel is compiled with."""
        return [f"--gpu-architecture={architecture}", "-std=c++17", "-default-device"]

    def compile(self, source: Path, options: Sequence[str]) -> bytes:
        """Compile one source file."""
        encoded = [os.fsencode(option) for option in [*options, f"-I{source.parent}"]]
        program = ctypes.c_void_p()
        self._check(
            self._library.nvrtcCreateProgram(
                ctypes.byref(program), source.read_bytes(), os.fsencode(source.name), 0, None, None
            )
        )
        try:
            array = (ctypes.c_char_p * len(encoded))(*encoded)
            status = self._library.nvrtcCompileProgram(program, len(encoded), array)
            if status != 0:
                log = self._text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
                raise CompilationError(log.strip() or self._reason(status))
            return self._text(program, "CUBIN")
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(max(size.value, 1))
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, text))
        return text.raw[: size.value]

    def _check(self, status: int) -> None:
        if status != 0:
            raise CompilationError(self._reason(status))

    def _reason(self, status: int) -> str:
        return bytes(self._library.nvrtcGetErrorString(status)).decode(errors="replace")


class Nvcc(Toolchain):
    """The CUDA toolkit's compiler driver, which needs a C++ compiler of the host as well.

    Raises
    ------
    OSError
        If the program cannot be run or does not tell its version.
    """

    kind = "nvcc"

    def __init__(self, path: str) -> None:
        self.path = path
        text = self._run(["--version"]).stdout
        found = re.search(r"release (\d+)\.(\d+)", text)
        if found is None:
            raise OSError(f"does not tell its version: {text[:80]!r}")
        self.version = (int(found[1]), int(found[2]))

    def architectures(self) -> frozenset[str]:
        """Return the architectures it compiles for."""
        return frozenset(self._run(["--list-gpu-code"]).stdout.split())

    def options(self, architecture: str) -> list[str]:
        """Return the options that every kernel is compiled with."""
        return ["-cubin", f"-arch={architecture}", "-std=c++17"]

    def compile(self, source: Path, options: Sequence[str]) -> bytes:
        """Compile one source file."""
        with tempfile.TemporaryDirectory(prefix="swsearch-") as folder:
            cubin = Path(folder) / "kernel.cubin"
            line = [*options, f"-I{source.parent}", "-o", str(cubin), str(source)]
            try:
                done = self._run(line)
            except OSError as error:
                raise CompilationError(str(error)) from error
            if done.returncode != 0 or not cubin.is_file():
                raise CompilationError((done.stderr + done.stdout).strip() or f"exit code {done.returncode}")
            return cubin.read_bytes()

    def _run(self, line: list[str]) -> subprocess.CompletedProcess[str]:
        # replace: a log may quote a path or a source in any encoding
        return subprocess.run([self.path, *line], capture_output=True, text=True, errors="replace", check=False)


def nvrtc_places() -> list[str]:
    """List the NVRTC libraries to try: pip's packages, the CUDA toolkits, then what the dynamic loader knows."""
    patterns = [(folder, "cu*/lib/libnvrtc.so*") for folder in _nvidia_packages()]
    patterns += [(folder, "cuda_nvrtc/lib/libnvrtc.so*") for folder in _nvidia_packages()]
    patterns += [(folder, "lib64/libnvrtc.so*") for folder in _toolkits()]
    patterns += [(folder, "lib/libnvrtc.so*") for folder in [*_toolkits(), Path(sys.prefix)]]
    files = list(_unique(path for folder, pattern in patterns for path in sorted(folder.glob(pattern))))
    # a name that was found already would only load the same library again
    return [*files, *(name for name in SONAMES if name not in {Path(path).name for path in files})]


def nvcc_places() -> list[str]:
    """List the nvcc programs to try: on PATH, then those of the CUDA toolkits."""
    on_path = shutil.which("nvcc")
    places = [Path(on_path)] if on_path else []
    return list(_unique([*places, *(folder / "bin" / "nvcc" for folder in _toolkits())]))


def _nvidia_packages() -> list[Path]:
    # pip's NVIDIA packages share one namespace package; no code of theirs is run to find it
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []


def _toolkits() -> list[Path]:
    named = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return [*named, *sorted(Path("/usr/local").glob("cuda*"), reverse=True)]


def _unique(paths: Iterable[Path]) -> Iterator[str]:
    seen: set[Path] = set()
    for path in paths:
        real = path.resolve()
        if real.is_file() and real not in seen:
            seen.add(real)
            yield str(path)
