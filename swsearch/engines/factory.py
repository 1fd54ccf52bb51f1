"""Choice of the engine of a search and of the aligner: by name, by hardware, and by amount of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from swsearch.cuda_package import UNUSABLE, chosen_package, why_no_package
from swsearch.engines.base import Engine, PairAligner
from swsearch.engines.devices import CheckedDevices, Devices, check_devices, resolve_devices
from swsearch.errors import (
    GpuUnavailableError,
    OptionError,
    check_choice,
    check_integer,
    format_count,
)
from swsearch.options.kinds import ENGINES
from swsearch.processors import useful_thread_count

Picked = TypeVar("Picked")

RANGES = {
    "threads": (1, 2**31 - 1),
    "memory": (1, 10**18),
    "gpu_memory": (1, 10**18),
}
"""Least and greatest value of the options of engines; bytes where it is memory."""

GPU_WORTH_CELLS = 500_000_000
"""Cells of a job from which ``auto`` takes the GPU: it takes 0.3 to 0.5 s to start, time for a CPU to do as many."""


def create_engine(
    name: str = "auto",
    *,
    threads: int | None = None,
    device: Devices | None = None,
    gpu_memory: int | None = None,
    on_message: Callable[[str], None] | None = None,
    cpu_only: str = "",
) -> Engine:
    """Make an engine.

    Parameters
    ----------
    name : {"auto", "gpu", "cpu", "reference"}
        ``auto`` takes the GPU if it can be used, and the CPU otherwise; why is then the engine's ``fallback``.
    threads : int, optional
        For the CPU engine; at most, and by default, one for each processor.
    device : int, sequence of int, or "all", optional
        For the GPU engine: number of the device, as ``swsearch doctor`` lists them; by default the one with the most
        multiprocessors. Several share the database out; a number that comes twice is a device opened twice. ``"all"``
        are all that can be used.
    gpu_memory : int, optional
        For the GPU engine: bytes of each device's memory that may be used; by default nearly all that is free.
    on_message : callable, optional
        Called, at most once, with the reason why ``auto`` does not use the GPU. It is not called where no package for
        GPUs is installed and no GPU option was given: such a machine is meant to use the CPU.
    cpu_only : str, optional
        What is to be computed that the GPU cannot; ``auto`` is the CPU then.

    Raises
    ------
    OptionError
        If there is no such engine or device, or an option does not go with the engine.
    GpuUnavailableError
        If the GPU is asked for by name and cannot be used.
    """
    if cpu_only and name in ("auto", "gpu"):
        if name == "gpu":
            raise OptionError("engine", name, "cpu or auto", f"{cpu_only} are computed on the CPU alone")
        engine = create_engine("cpu", threads=threads, device=device, gpu_memory=gpu_memory, on_message=on_message)
        engine.fallback = f"running on the CPU: {cpu_only} are computed there alone"
        return engine
    threads = check_engine_option("threads", threads)
    devices, gpu_memory = check_devices(device), check_engine_option("gpu_memory", gpu_memory)
    engine, reason = resolve_engine(
        name,
        {
            "gpu": lambda: _gpu_engine(devices, gpu_memory),
            "cpu": lambda: _cpu_engine(threads),
            "reference": _reference_engine,
        },
        {"device": devices, "gpu_memory": gpu_memory},
        on_message,
    )
    engine.fallback = reason
    return engine


def create_pair_aligner(
    engine: str = "auto",
    *,
    threads: int | None = None,
    memory: int | None = None,
    device: Devices | None = None,
    gpu_memory: int | None = None,
    on_message: Callable[[str], None] | None = None,
    cells: int | None = None,
    pairs: int | None = None,
) -> PairAligner:
    """Make what aligns pairs.

    Parameters
    ----------
    engine : {"auto", "gpu", "cpu", "reference"}
        ``auto`` takes the GPU if it can be used and the work is worth starting it, and the CPU otherwise; why is
        then the aligner's ``fallback``.
    threads, memory : int, optional
        For the CPU: pairs at a time, at most one for each processor, and bytes that tables may take.
    device, gpu_memory, on_message
        As for `create_engine`; with ``auto``, a GPU option means that the GPU is wanted. Several devices share pairs
        out, and one pair is aligned by one device: that of those with the most multiprocessors.
    cells, pairs : int, optional
        Size of the work: query length times subject length over all pairs, and their number: there are no more
        devices opened than pairs. Work of unknown size is worth a GPU, and several.

    Raises
    ------
    OptionError
        If there is no such engine or device, or an option does not go with the engine.
    GpuUnavailableError
        If the GPU is asked for by name and cannot be used.
    """
    threads, memory = check_engine_option("threads", threads), check_engine_option("memory", memory)
    devices, gpu_memory = check_devices(device), check_engine_option("gpu_memory", gpu_memory)
    wants_gpu = devices is not None or gpu_memory is not None
    small = cells is not None and cells < GPU_WORTH_CELLS
    if engine == "auto" and small and not wants_gpu:
        aligner = create_pair_aligner("cpu", threads=threads, memory=memory)
        work = format_count(pairs or 1, "pair")
        aligner.fallback = f"running on the CPU: {work}, {cells:,} cells, are not worth starting a GPU"
        return aligner
    chosen, reason = resolve_engine(
        engine,
        {
            "gpu": lambda: _gpu_pairs(devices, gpu_memory, pairs=pairs),
            "cpu": lambda: _cpu_pairs(memory, threads),
            "reference": _reference_pairs,
        },
        {"device": devices, "gpu_memory": gpu_memory},
        on_message,
    )
    chosen.fallback = reason
    return chosen


def check_engine_option(option: str, value: int | None) -> int | None:
    """Return an engine's option as an int, or None where it was not given.

    Raises
    ------
    OptionError
        If it is no whole number in the option's range.
    """
    return None if value is None else check_integer(option, value, *RANGES[option])


def resolve_engine(
    name: str,
    makers: Mapping[str, Callable[[], Picked]],
    gpu_options: Mapping[str, CheckedDevices | None],
    on_message: Callable[[str], None] | None,
) -> tuple[Picked, str]:
    """Make the engine or aligner of a name; return it, and the reason why ``auto`` does without the GPU.

    Parameters
    ----------
    makers : mapping
        Functions by the names of `ENGINES` except ``auto``; ``gpu`` raises `GpuUnavailableError` without a GPU.
    gpu_options : mapping
        Options that only the GPU takes; None where not given.
    """
    check_choice("engine", name, ENGINES)
    given_options = {option: value for option, value in gpu_options.items() if value is not None}
    if name == "auto":
        try:
            return makers["gpu"](), ""
        except GpuUnavailableError as error:
            reason = f"running on the CPU: {error}"
        picked = makers["cpu"]()
        if on_message is not None and (given_options or chosen_package()):
            on_message(reason)
        return picked, reason
    if name != "gpu":
        for option, value in given_options.items():
            raise OptionError(option, value, f"none with engine {name}", "leave it out, or choose engine gpu or auto")
    return makers[name](), ""


def _cpu_engine(threads: int | None) -> Engine:
    from swsearch.engines.cpu.engine import CpuEngine

    return CpuEngine(None if threads is None else useful_thread_count(threads))


def _reference_engine() -> Engine:
    from swsearch.engines.reference import ReferenceEngine

    return ReferenceEngine()


def require_package() -> None:
    """Raise `GpuUnavailableError` where no package reaches CUDA's driver."""
    if not chosen_package():
        raise GpuUnavailableError(f"{UNUSABLE}{why_no_package()}, or use --engine cpu")


def _gpu_engine(devices: CheckedDevices | None, memory: int | None) -> Engine:
    require_package()
    from swsearch.engines.gpu.engine import GpuEngine

    if devices is None or isinstance(devices, int):
        return GpuEngine(devices, memory)
    chosen = resolve_devices(devices)
    if len(chosen) == 1:
        return GpuEngine(chosen[0].index, memory)
    from swsearch.engines.gpu.multi_gpu import MultiGpuEngine

    return MultiGpuEngine([each.index for each in chosen], memory, spare=devices == "all")


def _cpu_pairs(memory: int | None, threads: int | None) -> PairAligner:
    from swsearch.engines.cpu.pairs import CpuPairAligner

    return CpuPairAligner(memory, None if threads is None else useful_thread_count(threads))


def _reference_pairs() -> PairAligner:
    from swsearch.engines.reference import ReferencePairAligner

    return ReferencePairAligner()


def _gpu_pairs(devices: CheckedDevices | None, memory: int | None, *, pairs: int | None) -> PairAligner:
    require_package()
    from swsearch.engines.gpu.pairs.aligner import GpuPairAligner

    if devices is None or isinstance(devices, int):
        return GpuPairAligner(devices, memory)
    strongest = sorted(resolve_devices(devices), key=lambda each: -each.multiprocessors)[: pairs or None]
    if len(strongest) == 1:
        return GpuPairAligner(strongest[0].index, memory)
    from swsearch.engines.gpu.pairs.multi_gpu import MultiGpuPairAligner

    return MultiGpuPairAligner([each.index for each in strongest], memory, spare=devices == "all")
