"""What this machine offers: which engine would run, and why not a faster one."""

from __future__ import annotations

import contextlib
import importlib
import platform
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np

from swsearch.engines.choice import NO_PYCUDA, pycuda_is_installed
from swsearch.errors import GpuUnavailableError

if TYPE_CHECKING:
    from swsearch.engines.base import Engine
    from swsearch.engines.gpu.compiler import Compiler
    from swsearch.engines.gpu.device import DeviceInfo

DEPENDENCIES = ("numpy", "Bio", "h5py", "typer", "zstandard")
"""Modules that swsearch cannot do without."""

UNUSABLE = "engine gpu cannot be used: "
"""How errors of GPUs begin."""


@dataclass(frozen=True)
class Finding:
    """One line of the examination."""

    topic: str
    text: str
    good: bool = True


def examine() -> Iterator[Finding]:
    """Yield findings, the most general first; one that is not good means that searching would fail.

    A machine without a usable GPU is fine: ``auto`` takes the CPU there.
    """
    from swsearch.version import version

    yield Finding("swsearch", f"{version()}, Python {platform.python_version()}, {platform.platform()}")
    yield Finding("libraries", ", ".join(_versions()))
    taken = yield from _examine_gpu()
    yield from _examine_cpu()
    yield Finding("extension", _describe_extension())
    yield Finding("auto", f"--engine auto takes {taken}")


def _versions() -> Iterator[str]:
    for name in DEPENDENCIES:
        module = importlib.import_module(name)
        yield f"{name} {getattr(module, '__version__', '?')}"


def _examine_gpu() -> Generator[Finding, None, str]:
    """Yield findings, one part after the other until something is missing; return what ``auto`` takes."""
    if not pycuda_is_installed():
        yield Finding("gpu", f"not used: {NO_PYCUDA}")
        return "cpu"
    try:
        return (yield from _examine_gpu_parts())
    except GpuUnavailableError as error:
        yield Finding("gpu", f"not used: {str(error).removeprefix(UNUSABLE)}")
        return "cpu"
    except Exception as error:
        # auto takes a GPU that can be opened, so what fails here fails a search too
        yield Finding("gpu", f"failed: {error}; search with --engine cpu", good=False)
        return "gpu, which fails: use --engine cpu"


def _examine_gpu_parts() -> Generator[Finding, None, str]:
    from swsearch.engines.gpu.compiler import find_compiler
    from swsearch.engines.gpu.device import choose_device, list_devices
    from swsearch.engines.gpu.engine import GpuEngine

    yield Finding("pycuda", _distribution_version("pycuda"))
    devices = list_devices()
    yield Finding("driver", "for CUDA {}.{}".format(*devices[0].driver_version))
    for device in devices:
        yield Finding(f"device {device.index}", _describe_device(device))
    chosen = choose_device(None)
    compiler = find_compiler(chosen.architecture, chosen.driver_version)
    yield Finding("compiler", f"{compiler.description} ({compiler.toolchain.path}), for {chosen.architecture}")
    yield Finding("kernel cache", _describe_cache(compiler))
    with GpuEngine() as engine:
        yield Finding("gpu", f"usable: {engine.description}")
        finding = _tested(engine)
    yield finding
    if len(devices) > 1:
        yield from _examine_other_devices(devices, chosen)
    return "gpu" if finding.good else "gpu, which is wrong: use --engine cpu"


def _examine_other_devices(devices: Sequence[DeviceInfo], chosen: DeviceInfo) -> Iterator[Finding]:
    """Yield whether every other device than the one that was examined computes, and what ``--device all`` takes."""
    from swsearch.engines.gpu.device import names_of, why_too_old
    from swsearch.engines.gpu.engine import GpuEngine

    taken = []
    for each in devices:
        if each.index == chosen.index:
            taken.append(each)
        elif not why_too_old(each):
            try:
                with GpuEngine(each.index) as engine:
                    yield _tested(engine, f"device {each.index}")
                taken.append(each)
            except GpuUnavailableError as error:
                yield Finding(f"device {each.index}", f"not used: {str(error).removeprefix(UNUSABLE)}")
            except Exception as error:
                yield Finding(f"device {each.index}", f"failed: {error}; search with another --device", good=False)
                taken.append(each)  # it can be opened
    yield Finding("device all", f"--device all takes {names_of(taken)}")


def _describe_device(device: DeviceInfo) -> str:
    from swsearch.engines.gpu.device import OLDEST_CAPABILITY

    major, minor = device.capability
    text = (
        f"{device.name}, compute capability {major}.{minor}, {device.memory / (1 << 30):.1f} GiB, "
        f"{device.multiprocessors} multiprocessors"
    )
    if device.capability < OLDEST_CAPABILITY:
        text += "; too old, expected compute capability {}.{} or later".format(*OLDEST_CAPABILITY)
    return text


def _describe_cache(compiler: Compiler) -> str:
    if compiler.cache_folder is None:
        return compiler.cache_note
    # another process may rename or remove entries meanwhile
    sizes = []
    for entry in compiler.cache_folder.glob("*.cubin"):
        with contextlib.suppress(OSError):
            sizes.append(entry.stat().st_size)
    return f"{compiler.cache_folder}: {len(sizes)} kernels, {sum(sizes) / (1 << 20):.1f} MiB"


def _distribution_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _examine_cpu() -> Iterator[Finding]:
    from swsearch.engines.cpu.engine import CpuEngine

    try:
        with CpuEngine() as engine:
            yield Finding("cpu", f"usable: {engine.description}")
            yield _tested(engine)
    except Exception as error:
        yield Finding("cpu", f"failed: {error}", good=False)


def _describe_extension() -> str:
    from swsearch.engines.cpu import extension

    return f"used to align pairs, with {extension.chosen()} instructions"


def _tested(engine: Engine, name: str = "") -> Finding:
    wrong, name = self_test(engine), name or engine.name
    if wrong:
        text = f"{name}: {wrong} scores differ from the reference; use another --engine and report this"
        return Finding("self-test", text, good=False)
    return Finding("self-test", f"{name}: 192 scores equal to the reference, local, global and semi-global")


def self_test(engine: Engine) -> int:
    """Score 64 made-up subjects in every mode and count the scores that differ from the reference."""
    from swsearch import reference
    from swsearch.db import Database
    from swsearch.options.words import MODES
    from swsearch.recurrence import Recurrence
    from swsearch.scoring import Scoring

    generator = np.random.default_rng(1)
    scoring = Scoring()
    letters = scoring.matrix.alphabet.letters
    sequences = ["".join(letters[k] for k in generator.integers(0, 20, length)) for length in range(1, 65)]
    query = scoring.matrix.alphabet.encode(sequences[40] * 2)
    wrong = 0
    with Database.from_records(sequences) as database:
        for mode in MODES:
            group = engine.prepare([scoring.rows(query)], Recurrence(scoring, mode))
            for chunk in database.chunks(1 << 20):
                loaded = engine.load(chunk)
                values = engine.score(group, loaded)[0]
                engine.release(loaded)
                for place in range(chunk.n_subjects):
                    wrong += int(values[place]) != reference.score(query, chunk.subject(place), scoring, mode)
    return wrong
