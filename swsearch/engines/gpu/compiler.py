"""From the kernels in cuda/ to cubins: which compiler makes them, and the cache that keeps them.

A cubin is for one architecture (``sm_90``). It is compiled when it is first wanted and kept on disk under a key that
names everything it was made of, so a cache entry never has to be deleted by hand.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from swsearch.engines.gpu.toolchain import (
    OLDEST,
    SONAMES,
    CompilationError,
    Nvcc,
    Nvrtc,
    Toolchain,
    Version,
    nvcc_places,
    nvrtc_places,
)
from swsearch.errors import EngineError, GpuUnavailableError
from swsearch.processors import available_processors

# the folder is a namespace package, whose files have a path where the package itself has none
SOURCES = Path(str(resources.files("swsearch.cuda").joinpath("recurrence.cuh"))).parent
"""The folder of the kernels' sources: cuda/ in a checkout, package data where swsearch is installed."""

CHECKSUM_BYTES = hashlib.sha256().digest_size
_being_made: dict[Path, threading.Lock] = {}
"""A lock for each cubin that was not in the cache: threads of several devices want the same ones at the same time."""

LOG_LINES = 12
"""Lines of a compiler's log that an error message quotes."""


@dataclass(frozen=True)
class Kernel:
    """A source file and the constants that make one variant of it.

    Parameters
    ----------
    source : str
        File in cuda/ without ``.cu``, such as ``batch``; `variants` has all of them.
    defines : tuple of (str, int)
        Macros, such as ``(("SWSEARCH_ROWS", 24), ("SWSEARCH_MODE", 0))``.
    """

    source: str
    defines: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        constants = ", ".join(f"{name.removeprefix('SWSEARCH_')}={value}" for name, value in self.defines)
        return f"{self.source}({constants})"


@cache
def source_hash() -> str:
    """Return the SHA-256 of all kernels and headers, names and bytes, which results files carry."""
    return _digest(_named_texts(SOURCES, ".cu", ".cuh")).hex()


class Compiler:
    """Makes cubins for one architecture, or finds them in the cache.

    Parameters
    ----------
    toolchain : Toolchain
        What compiles; `find_compiler` chooses one.
    architecture : str
        Such as ``sm_90``.
    sources : Path, optional
        The folder of the kernels; tests give others.
    cache_folder : Path, optional
        Where cubins are kept; by default as `default_cache_folder` says.

    Attributes
    ----------
    cache_note : str
        Why cubins are not kept; empty while they are.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        architecture: str,
        *,
        sources: Path = SOURCES,
        cache_folder: Path | None = None,
    ) -> None:
        self.toolchain, self.architecture, self.sources = toolchain, architecture, sources
        self.cache_note = ""
        self.cache_folder = cache_folder or default_cache_folder()
        if self.cache_folder is None:
            self.cache_note = "kernels are not cached: there is no home folder; set SWSEARCH_CACHE"

    @property
    def description(self) -> str:
        """The compiler and its version, such as ``NVRTC 13.0``."""
        return self.toolchain.description

    def compile(self, kernel: Kernel) -> bytes:
        """Return a kernel's cubin, from the cache if it is there.

        Raises
        ------
        EngineError
            If the compiler refuses the source.
        """
        entry = self._entry(kernel)
        cubin = _read_entry(entry)
        if cubin is None:
            with _being_made.setdefault(entry, threading.Lock()) if entry else nullcontext():
                cubin = _read_entry(entry)  # by the thread of another device, meanwhile
                if cubin is None:
                    cubin = self._compile(kernel)
                    self._write_entry(entry, cubin)
        return cubin

    def compile_all(self, kernels: Sequence[Kernel]) -> list[bytes]:
        """Return the cubins of several kernels in the order given; what is not cached is compiled in parallel.

        Raises
        ------
        EngineError
            If the compiler refuses one of the sources.
        """
        different = list(dict.fromkeys(kernels))
        with ThreadPoolExecutor(max(1, min(available_processors(), len(different)))) as threads:
            cubins = dict(zip(different, threads.map(self.compile, different), strict=True))
        return [cubins[kernel] for kernel in kernels]

    def key(self, kernel: Kernel) -> str:
        """Return the name that a kernel's cubin has in the cache."""
        made_of = [
            (self.sources / f"{kernel.source}.cu").read_bytes(),
            *_named_texts(self.sources, ".cuh"),
            self.description.encode(),
            *(option.encode() for option in self._options(kernel)),
        ]
        return _digest(made_of).hex()

    def _options(self, kernel: Kernel) -> list[str]:
        defines = [f"-D{name}={value}" for name, value in kernel.defines]
        return [*self.toolchain.options(self.architecture), *defines]

    def _compile(self, kernel: Kernel) -> bytes:
        try:
            return self.toolchain.compile(self.sources / f"{kernel.source}.cu", self._options(kernel))
        except CompilationError as error:
            lines = str(error).splitlines()
            more = [f"... and {len(lines) - LOG_LINES} lines more"] if len(lines) > LOG_LINES else []
            raise EngineError(
                f"kernel {kernel}: {self.description} ({self.toolchain.path}) does not compile it for "
                f"{self.architecture}; use --engine cpu, and report this:\n" + "\n".join([*lines[:LOG_LINES], *more])
            ) from error

    def _entry(self, kernel: Kernel) -> Path | None:
        return self.cache_folder and self.cache_folder / f"{self.key(kernel)}.cubin"

    def _write_entry(self, entry: Path | None, cubin: bytes) -> None:
        if entry is None:
            return
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            # renamed when it is whole: another process sees all of it or nothing, and the last one wins
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=entry.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(cubin).digest() + cubin)
                Path(temporary).replace(entry)
            except BaseException:
                with suppress(OSError):
                    Path(temporary).unlink()
                raise
        except OSError as error:
            self.cache_note = f"kernels are not cached: {error}; set SWSEARCH_CACHE to a folder that can be written"


def default_cache_folder() -> Path | None:
    """Return ``kernels`` in ``$SWSEARCH_CACHE``, ``$XDG_CACHE_HOME/swsearch`` or ``~/.cache/swsearch``."""
    if own := os.environ.get("SWSEARCH_CACHE"):
        return Path(own).absolute() / "kernels"
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not shared.is_absolute():  # the XDG specification says to ignore a relative path
        try:
            shared = Path.home() / ".cache"
        except RuntimeError:
            return None
    return shared / "swsearch" / "kernels"


def find_compiler(architecture: str, driver_version: Version | None) -> Compiler:
    """Choose a compiler: NVRTC before nvcc, and of each the version that suits the driver best.

    A driver cannot load cubins of a later major version of CUDA, so those compilers are not taken. Of the others
    the newest that is not newer than the driver comes first, then those of the driver's major version.

    Parameters
    ----------
    architecture : str
        Of the device, such as ``sm_90``.
    driver_version : tuple of (int, int), optional
        CUDA version of the driver; without one the newest compiler is taken.

    Raises
    ------
    GpuUnavailableError
        If there is none.
    """
    refused: list[str] = []
    searches = ((Nvrtc, nvrtc_places()), (Nvcc, nvcc_places()))
    for kind, places in searches:
        usable = list(_usable(kind, places, architecture, driver_version, refused))
        if usable:
            return Compiler(max(usable, key=lambda found: suitability(found.version, driver_version)), architecture)
    driver = f" and a driver of CUDA {_dotted(driver_version)}" if driver_version else ""
    package = "nvidia-cuda-nvrtc-cu12" if driver_version and driver_version[0] == 12 else "nvidia-cuda-nvrtc"
    raise GpuUnavailableError(
        f"no CUDA compiler for {architecture}{driver}: looked for libnvrtc in pip's NVIDIA packages, CUDA_HOME, "
        f"CUDA_PATH, /usr/local/cuda* and the dynamic loader, and for nvcc on PATH and in the same toolkits; found "
        f"{'; '.join(refused) or 'none'}. Remedy: pip install {package}, or install a CUDA toolkit"
    )


def suitability(version: Version, driver_version: Version | None) -> tuple[bool, Version]:
    """Return what a compiler that may be taken is ranked by; the greatest is the best."""
    if driver_version is None or version <= driver_version:
        return True, version
    return False, (-version[0], -version[1])  # the least newer of those that are newer than the driver


def _usable(
    kind: Callable[[str], Toolchain],
    places: Sequence[str],
    architecture: str,
    driver_version: Version | None,
    refused: list[str],
) -> Iterator[Toolchain]:
    for place in places:
        try:
            found = kind(place)
            reason = _objection(found, architecture, driver_version)
        except (OSError, CompilationError) as error:
            if place not in SONAMES:  # those were a guess
                refused.append(f"{place} ({error})")
            continue
        if reason:
            refused.append(f"{found.description} at {place} ({reason})")
        else:
            yield found


def _objection(found: Toolchain, architecture: str, driver_version: Version | None) -> str:
    if found.version < OLDEST:
        return f"older than {_dotted(OLDEST)}"
    if driver_version is not None and found.version[0] > driver_version[0]:
        return f"the driver loads kernels up to CUDA {driver_version[0]}"
    if architecture not in found.architectures():
        return f"does not know {architecture}"
    return ""


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _named_texts(folder: Path, *suffixes: str) -> list[bytes]:
    files = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    return [text for path in files for text in (path.name.encode(), path.read_bytes())]


def _digest(texts: Sequence[bytes]) -> bytes:
    # each text's own digest has a fixed length, so that no two lists run together to the same bytes
    return hashlib.sha256(b"".join(hashlib.sha256(text).digest() for text in texts)).digest()


def _read_entry(entry: Path | None) -> bytes | None:
    if entry is None:
        return None
    try:
        content = entry.read_bytes()
    except OSError:
        return None
    checksum, cubin = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    return cubin if hashlib.sha256(cubin).digest() == checksum else None
