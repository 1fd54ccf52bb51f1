"""The arguments of every kernel in ``cuda/``, and the compiled kernels, loaded when they are first launched.

Each table mirrors the parameters of a kernel, in their order; tests/gpu/test_arguments.py compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

from swsearch.engines.gpu.compiler import Compiler, Kernel
from swsearch.engines.gpu.device import Device, Function
from swsearch.engines.gpu.variants import (
    SCORES,
    TRACE,
    TRACE_BYTES,
    BatchVariant,
    PairsVariant,
    PairVariant,
    WavefrontVariant,
    batch_warps,
)

THREADS = 256
"""Threads of a block of the small kernels."""


@dataclass(frozen=True)
class KernelArguments:
    """The arguments of one kernel.

    Parameters
    ----------
    kernel : str
        Its name.
    source : str
        Its file in ``cuda/``, without ``.cu``.
    table : tuple of (str, str)
        Name and type of each argument in order. Types are letters of `struct`: ``P`` an address, ``i`` and ``I`` 32
        bits with and without sign, ``q`` and ``Q`` 64 bits.
    """

    kernel: str
    source: str
    table: tuple[tuple[str, str], ...]

    @cached_property
    def _values_of(self) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
        # made once: a launch only calls it
        return itemgetter(*self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments, in order."""
        return tuple(name for name, _ in self.table)

    @property
    def signature(self) -> str:
        """Types of the arguments, in order."""
        return "".join(kind for _, kind in self.table)

    def in_order(self, arguments: Mapping[str, int]) -> tuple[int, ...]:
        """Return the values of arguments that are given by name in the kernel's order.

        Raises
        ------
        TypeError
            If an argument is missing, or one is given that the kernel does not have.
        """
        # as many names as the kernel has, and each of the kernel's among them: there are no others
        if len(arguments) == len(self.table):
            try:
                return self._values_of(arguments)
            except KeyError:
                pass
        missing = [name for name in self.names if name not in arguments]
        unknown = [name for name in arguments if name not in self.names]
        raise TypeError(f"arguments of {self.kernel}: missing {missing}, unknown {unknown}")

    def by_name(self, values: Sequence[int]) -> dict[str, int]:
        """Return the names and values of arguments that are given in the kernel's order, for tests."""
        return dict(zip(self.names, values, strict=True))


ALL: dict[str, KernelArguments] = {}
"""Every kernel's arguments, by its name."""


def _arguments(kernel: str, source: str, text: str) -> KernelArguments:
    """Read a table that is written as ``name:type`` words."""
    table = tuple((name, kind) for name, kind in (word.split(":") for word in text.split()))
    ALL[kernel] = KernelArguments(kernel, source, table)
    return ALL[kernel]


BATCH_ARGUMENTS = _arguments(
    "swsearch_batch",
    "batch",
    """
    residues:P tile_offsets:P lengths:P n_subjects:i first_block:i n_jobs:i pipeline_warps:i
    profile:P strips:P n_strips:i
    bias:i limit:i one:I
    boundary:P region_columns:I n_regions:i pipeline_columns:I taken:P
    scores:P score_stride:q counter:P uncertain:P most_uncertain:I
    """,
)
WAVEFRONT_ARGUMENTS = _arguments(
    "swsearch_wavefront",
    "wavefront",
    """
    residues:P tile_offsets:P lengths:P n_subjects:i
    profiles:P queries:P tasks:P n_listed:P n_tasks:I query_list:P n_queries:i
    bias:i limit:i one:I
    boundary:P boundary_offsets:P
    scores:P score_stride:q counter:P
    """,
)
ARRANGE_ARGUMENTS = _arguments("swsearch_arrange", "scores", "residues:P n_tiles:Q")
_COLLECT = """
    scores:P score_stride:q n_subjects:i lengths:P
    thresholds:P n_lengths:i least:P
    begin:Q end:Q list:P capacity:I count:P
    """
COLLECT_TASKS_ARGUMENTS = _arguments("swsearch_collect_tasks", "scores", _COLLECT)
COLLECT_HITS_ARGUMENTS = _arguments("swsearch_collect_hits", "scores", _COLLECT)
PAIR_ARGUMENTS = _arguments(
    "swsearch_pair",
    "pair",
    """
    query:P rows:i columns:P n:i table:P
    first_row:i first_column:i top:P left:P corner:i
    pays_rows:i pays_columns:i open:i extend:i one:I
    ring:P ring_columns:i progress:P wrap:P
    row_checks:P check_strips:i column_checks:P check_mask:I
    last_row:P last_column:P directions:P best:P
    """,
)
PAIRS_ARGUMENTS = _arguments(
    "swsearch_pairs",
    "pairs",
    """
    queries:P subjects:P pairs:P n_pairs:i table:P
    free_query_start:i free_query_end:i free_subject_start:i free_subject_end:i
    open:i extend:i one:I most_rows:i most_columns:i
    boundaries:P edges:P scratch_runs:P directions:P direction_words:Q
    results:P run_places:P runs:P most_runs:I counters:P
    """,
)
TRACE_ARGUMENTS = _arguments("swsearch_trace", "trace", "directions:P n:i row:i column:i state:I runs:P result:P")

COLLECTED = {"tasks": COLLECT_TASKS_ARGUMENTS, "hits": COLLECT_HITS_ARGUMENTS}
"""Arguments of the small kernels, by what they list."""


class LoadedKernel:
    """A kernel that can be launched, with its arguments given by name.

    Parameters
    ----------
    function : Function
        The kernel, loaded.
    table : KernelArguments
        Its arguments.
    """

    def __init__(self, function: Function, table: KernelArguments) -> None:
        self._function, self._table = function, table

    def launch(self, blocks: int, threads: int, stream: Any, /, **values: int) -> None:
        """Start the kernel; it runs after what the stream holds already.

        Raises
        ------
        TypeError
            If an argument is missing, or one is given that the kernel does not have.
        """
        self._function.launch(blocks, threads, stream, self._table.in_order(values))


class Kernels:
    """The kernels of one device.

    Parameters
    ----------
    device : Device
        Where they run.
    compiler : Compiler
        What makes them.

    Attributes
    ----------
    block_warps : int
        Warps of a block of the inter-task kernel.
    """

    def __init__(self, device: Device, compiler: Compiler) -> None:
        self._device, self._compiler = device, compiler
        self.block_warps = batch_warps(device.info.shared_limit)
        self._modules: dict[Kernel, Any] = {}
        self._loaded: dict[tuple[Kernel, str, int], LoadedKernel] = {}

    def wavefront_warps(self, variant: WavefrontVariant) -> int:
        """Warps of a block of the wavefront kernel."""
        return variant.block_warps(self._device.info.shared_limit)

    def require(self, kernels: list[Kernel]) -> None:
        """Compile and load what is missing, all at a time. The context must be current."""
        missing = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self._modules]
        if not missing:
            return  # nearly always: this stands before every launch
        for kernel, cubin in zip(missing, self._compiler.compile_all(missing), strict=True):
            self._modules[kernel] = self._device.load(cubin)

    def _load(self, kernel: Kernel, table: KernelArguments, shared_bytes: int = 0) -> LoadedKernel:
        key = (kernel, table.kernel, shared_bytes)
        if key not in self._loaded:
            self.require([kernel])
            function = Function(self._modules[kernel], table.kernel, table.signature, shared_bytes)
            self._loaded[key] = LoadedKernel(function, table)
        return self._loaded[key]

    def batch(self, variant: BatchVariant) -> LoadedKernel:
        """Return an inter-task kernel."""
        return self._load(variant.kernel, BATCH_ARGUMENTS, variant.shared_bytes(self.block_warps))

    def wavefront(self, variant: WavefrontVariant) -> LoadedKernel:
        """Return an intra-task kernel."""
        shared = variant.warp_bytes * self.wavefront_warps(variant)
        return self._load(variant.kernel, WAVEFRONT_ARGUMENTS, shared)

    def pair(self, variant: PairVariant) -> LoadedKernel:
        """Return the kernel for one pair; its shared memory is that of as many warps as a block may have."""
        return self._load(variant.kernel, PAIR_ARGUMENTS, self._most_shared(variant))

    def pairs(self, variant: PairsVariant) -> LoadedKernel:
        """Return the kernel for many pairs; its shared memory is that of as many warps as a block may have."""
        return self._load(variant.kernel, PAIRS_ARGUMENTS, self._most_shared(variant))

    def _most_shared(self, variant: PairVariant | PairsVariant) -> int:
        return variant.warp_bytes * variant.block_warps(self._device.info.shared_limit)

    def trace(self) -> LoadedKernel:
        """Return the kernel that follows directions back."""
        return self._load(TRACE, TRACE_ARGUMENTS, TRACE_BYTES)

    def collect(self, what: str) -> LoadedKernel:
        """Return the kernel that lists ``tasks`` or ``hits``."""
        return self._load(SCORES, COLLECTED[what])

    def arrange(self, stream: Any, address: int, n_tiles: int) -> None:
        """Rearrange residues in place."""
        blocks = max(1, min(-(-n_tiles // (THREADS // 32)), self._device.info.multiprocessors * 8))
        self._load(SCORES, ARRANGE_ARGUMENTS).launch(blocks, THREADS, stream, residues=address, n_tiles=n_tiles)

    def close(self) -> None:
        """Unload everything; the context must be current."""
        self._loaded.clear()
        self._modules.clear()
