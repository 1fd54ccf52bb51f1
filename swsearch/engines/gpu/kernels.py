"""Compiled kernels, loaded when they are first needed, each with the launch that it wants."""

from __future__ import annotations

from typing import Any

from swsearch.engines.gpu import arguments
from swsearch.engines.gpu.arguments import KernelArguments
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

COLLECTED = {"tasks": arguments.COLLECT_TASKS, "hits": arguments.COLLECT_HITS}
"""What the small kernels list."""


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
        return self._load(variant.kernel, arguments.BATCH, variant.shared_bytes(self.block_warps))

    def wavefront(self, variant: WavefrontVariant) -> LoadedKernel:
        """Return an intra-task kernel."""
        shared = variant.warp_bytes * self.wavefront_warps(variant)
        return self._load(variant.kernel, arguments.WAVEFRONT, shared)

    def pair(self, variant: PairVariant) -> LoadedKernel:
        """Return the kernel for one pair; its shared memory is that of as many warps as a block may have."""
        return self._load(variant.kernel, arguments.PAIR, self._most_shared(variant))

    def pairs(self, variant: PairsVariant) -> LoadedKernel:
        """Return the kernel for many pairs; its shared memory is that of as many warps as a block may have."""
        return self._load(variant.kernel, arguments.PAIRS, self._most_shared(variant))

    def _most_shared(self, variant: PairVariant | PairsVariant) -> int:
        return variant.warp_bytes * variant.block_warps(self._device.info.shared_limit)

    def trace(self) -> LoadedKernel:
        """Return the kernel that follows directions back."""
        return self._load(TRACE, arguments.TRACE, TRACE_BYTES)

    def collect(self, what: str) -> LoadedKernel:
        """Return the kernel that lists ``tasks`` or ``hits``."""
        return self._load(SCORES, COLLECTED[what])

    def arrange(self, stream: Any, address: int, n_tiles: int) -> None:
        """Rearrange residues in place."""
        blocks = max(1, min(-(-n_tiles // (THREADS // 32)), self._device.info.multiprocessors * 8))
        self._load(SCORES, arguments.ARRANGE).launch(blocks, THREADS, stream, residues=address, n_tiles=n_tiles)

    def close(self) -> None:
        """Unload everything; the context must be current."""
        self._loaded.clear()
        self._modules.clear()
