"""Compiled kernels, loaded when they are first needed, each with the launch that it wants."""

from __future__ import annotations

from typing import Any

from swsearch.engines.gpu.compiler import Compiler, Kernel
from swsearch.engines.gpu.device import Device, Function
from swsearch.engines.gpu.variants import (
    BLOCK_WARPS,
    SCORES,
    TRACE,
    TRACE_BYTES,
    BatchVariant,
    PairsVariant,
    PairVariant,
    WavefrontVariant,
)

BATCH = "PPPiiiiPPiiiiIPIiIPPqP"
WAVEFRONT = "PPPiPPPPIPiiiiIPPPqP"
ARRANGE = "PQ"
COLLECT = "PqiPPiPQQPIP"
PAIR = "PiPiPiiPPiiiiiIPiPPPiPIPPPP"
PAIRS = "PPPiPiiiiiiIiiPPPPQPPPIP"
TRACED = "PiiiIPP"
"""Arguments of the kernels in ``cuda/``, as `struct` has them."""

THREADS = 256
"""Threads of a block of the small kernels."""


class Kernels:
    """The kernels of one device.

    Parameters
    ----------
    device : Device
        Where they run.
    compiler : Compiler
        What makes them.
    """

    def __init__(self, device: Device, compiler: Compiler) -> None:
        self._device, self._compiler = device, compiler
        self._modules: dict[Kernel, Any] = {}
        self._functions: dict[tuple[Kernel, str, int], Function] = {}

    @property
    def block_warps(self) -> int:
        """Warps of a block of the inter-task kernel: 16, or fewer where shared memory is small."""
        warps, limit = BLOCK_WARPS, self._device.info.shared_limit
        while warps > 1 and BatchVariant(26, 2, "local").shared_bytes(warps) > limit:
            warps //= 2
        return warps

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

    def _function(self, kernel: Kernel, name: str, signature: str, shared_bytes: int = 0) -> Function:
        key = (kernel, name, shared_bytes)
        if key not in self._functions:
            self.require([kernel])
            self._functions[key] = Function(self._modules[kernel], name, signature, shared_bytes)
        return self._functions[key]

    def batch(self, variant: BatchVariant) -> Function:
        """Return an inter-task kernel."""
        return self._function(variant.kernel, "swsearch_batch", BATCH, variant.shared_bytes(self.block_warps))

    def wavefront(self, variant: WavefrontVariant) -> Function:
        """Return an intra-task kernel."""
        shared = variant.warp_bytes * self.wavefront_warps(variant)
        return self._function(variant.kernel, "swsearch_wavefront", WAVEFRONT, shared)

    def pair(self, variant: PairVariant) -> Function:
        """Return the kernel for one pair; its shared memory is that of as many warps as a block may have."""
        return self._function(variant.kernel, "swsearch_pair", PAIR, self._most_shared(variant))

    def pairs(self, variant: PairsVariant) -> Function:
        """Return the kernel for many pairs; its shared memory is that of as many warps as a block may have."""
        return self._function(variant.kernel, "swsearch_pairs", PAIRS, self._most_shared(variant))

    def _most_shared(self, variant: PairVariant | PairsVariant) -> int:
        return variant.warp_bytes * variant.block_warps(self._device.info.shared_limit)

    def trace(self) -> Function:
        """Return the kernel that follows directions back."""
        return self._function(TRACE, "swsearch_trace", TRACED, TRACE_BYTES)

    def collect(self, what: str) -> Function:
        """Return the kernel that lists ``tasks`` or ``hits``."""
        return self._function(SCORES, f"swsearch_collect_{what}", COLLECT)

    def arrange(self, stream: Any, address: int, n_tiles: int) -> None:
        """Rearrange residues in place."""
        blocks = max(1, min(-(-n_tiles // (THREADS // 32)), self._device.info.multiprocessors * 8))
        self._function(SCORES, "swsearch_arrange", ARRANGE).launch(blocks, THREADS, stream, (address, n_tiles))

    def close(self) -> None:
        """Unload everything; the context must be current."""
        self._functions.clear()
        self._modules.clear()
