"""Engines: one interface (`swsearch.engines.base`), several implementations, chosen here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from swsearch.engines.base import Engine
from swsearch.errors import GpuUnavailableError, OptionError

ENGINES = ("auto", "gpu", "cpu", "reference")
"""What ``--engine`` accepts; ``reference`` is the slow oracle and meant for tests."""

Chosen = TypeVar("Chosen")

NO_PYCUDA = "PyCUDA is not installed; pip install 'swsearch[gpu]', which the README's section GPU explains"
"""Why there is no GPU engine on a machine that was never meant to have one."""


def create_engine(
    name: str = "auto",
    *,
    threads: int | None = None,
    device: int | None = None,
    gpu_memory: int | None = None,
    notice: Callable[[str], None] | None = None,
) -> Engine:
    """Make an engine.

    Parameters
    ----------
    name : {"auto", "gpu", "cpu", "reference"}
        ``auto`` takes the GPU if it can be used, and the CPU otherwise; why is then the engine's ``fallback``.
    threads : int, optional
        For the CPU engine; by default one for each processor.
    device : int, optional
        For the GPU engine: number of the device, as ``swsearch doctor`` lists them; by default the one with the most
        multiprocessors.
    gpu_memory : int, optional
        For the GPU engine: bytes of the device's memory that may be used; by default nearly all that is free.
    notice : callable, optional
        Told, at most once, why ``auto`` does without the GPU. Where PyCUDA is not installed and no GPU option was
        given, there is nothing to tell: such a machine is meant to use the CPU.

    Raises
    ------
    OptionError
        If there is no such engine or device, or an option does not go with the engine.
    GpuUnavailableError
        If the GPU is asked for by name and cannot be used.
    """
    engine, reason = choose(
        name,
        gpu=lambda: _create_gpu(device, gpu_memory),
        cpu=lambda: _create_cpu(threads),
        reference=_create_reference,
        threads=threads,
        gpu_options={"device": device, "gpu_memory": gpu_memory},
        notice=notice,
    )
    engine.fallback = reason
    return engine


def choose(
    name: str,
    *,
    gpu: Callable[[], Chosen],
    cpu: Callable[[], Chosen],
    reference: Callable[[], Chosen],
    threads: int | None,
    gpu_options: Mapping[str, int | None],
    notice: Callable[[str], None] | None,
) -> tuple[Chosen, str]:
    """Make what an engine's name stands for: the rules that searching and aligning share.

    Parameters
    ----------
    name, threads, notice
        As for `create_engine`.
    gpu, cpu, reference : callable
        Make it; ``gpu`` raises `GpuUnavailableError` where there is none.
    gpu_options : mapping
        Options that only the GPU takes; None where not given.

    Returns
    -------
    made
        What was made.
    reason : str
        Why ``auto`` does without the GPU; empty otherwise.
    """
    if name not in ENGINES:
        raise OptionError("engine", name, f"one of {', '.join(ENGINES)}")
    if threads is not None and threads < 1:
        raise OptionError("threads", threads, "an integer >= 1")
    given = {option: value for option, value in gpu_options.items() if value is not None}
    if name == "gpu":
        return gpu(), ""
    if name == "auto":
        try:
            return gpu(), ""
        except GpuUnavailableError as error:
            reason = f"running on the CPU: {error}"
        made = cpu()
        if notice is not None and (given or pycuda_is_installed()):
            notice(reason)
        return made, reason
    for option, value in given.items():
        raise OptionError(option, value, f"none with engine {name}", "leave it out, or choose engine gpu or auto")
    return (reference() if name == "reference" else cpu()), ""


def pycuda_is_installed() -> bool:
    """Say whether PyCUDA is there, without importing it, which takes long and needs a driver."""
    if "pycuda" in sys.modules:
        return sys.modules["pycuda"] is not None
    return importlib.util.find_spec("pycuda") is not None


def _create_cpu(threads: int | None) -> Engine:
    from swsearch.engines.cpu.engine import CpuEngine

    return CpuEngine(threads)


def _create_reference() -> Engine:
    from swsearch.engines.reference import ReferenceEngine

    return ReferenceEngine()


def require_pycuda() -> None:
    """Raise `GpuUnavailableError` where PyCUDA is not installed."""
    if not pycuda_is_installed():
        raise GpuUnavailableError(f"engine gpu cannot be used: {NO_PYCUDA}, or use --engine cpu")


def _create_gpu(device: int | None, memory: int | None) -> Engine:
    require_pycuda()
    from swsearch.engines.gpu.engine import GpuEngine

    return GpuEngine(device, memory)
