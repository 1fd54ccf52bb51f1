"""Engines: one interface (`swsearch.engines.base`), several implementations, chosen here."""

from __future__ import annotations

from swsearch.engines.base import Engine
from swsearch.errors import GpuUnavailableError, OptionError

ENGINES = ("auto", "gpu", "cpu", "reference")
"""What ``--engine`` accepts; ``reference`` is the slow oracle and meant for tests."""

NO_GPU_ENGINE = "this release has no GPU engine yet"


def create_engine(name: str = "auto", *, threads: int | None = None) -> Engine:
    """Make an engine.

    Parameters
    ----------
    name : {"auto", "gpu", "cpu", "reference"}
        ``auto`` takes the fastest that works on this machine.
    threads : int, optional
        For the CPU engine; by default one for each processor.

    Raises
    ------
    OptionError
        If there is no such engine.
    GpuUnavailableError
        If the GPU is asked for and cannot be used.
    """
    if name not in ENGINES:
        raise OptionError("engine", name, f"one of {', '.join(ENGINES)}")
    if name == "gpu":
        raise GpuUnavailableError(f"engine gpu cannot be used: {NO_GPU_ENGINE}; use --engine cpu or auto")
    if name == "reference":
        from swsearch.engines.reference import ReferenceEngine

        return ReferenceEngine()
    from swsearch.engines.cpu import CpuEngine

    return CpuEngine(threads)
