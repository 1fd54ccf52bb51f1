"""The table of kernel variants: what is compiled, dispatched, tested and measured; no variant exists elsewhere.

A variant is a source file of ``cuda/`` with its compile-time constants. Which one a job takes is decided here, by
pure functions of the query lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from swsearch.engines.gpu.compiler import Kernel
from swsearch.scoring import Mode

MODE_NUMBERS: dict[Mode, int] = {"local": 0, "global": 1, "semiglobal": 2}
"""As in ``cuda/recurrence.cuh``."""

BLOCK_WARPS = 16
"""Warps of a block, one block an SM: four on each scheduler. Other numbers lose 5 to 20 % (H200, systolic
prototype, November 2026)."""

TILE_COLUMNS = 8
"""Columns between two meetings of neighbouring warps: four lose 3 to 6 %, sixteen spill."""

SLOTS = 2
"""Tiles that a warp may be ahead of the next one."""

QUEUE = 64
"""Jobs that a pipeline's queue holds."""

BATCH_ROWS: dict[int, tuple[int, ...]] = {1: tuple(range(8, 25)), 2: tuple(range(8, 25, 2))}
"""Strip heights by queries per lane. Higher strips have less overhead per row (24 rows: 5,315 GCUPS, 8 rows: 4,820),
but more than 24 rows of H and E do not fit 128 registers; a height that divides the query well leaves the least
padding to be computed. H200, benchmarks/speed/gpu_variants.py, November 2026."""

EMULATED_ROWS = 16
"""Highest strips before compute capability 9.0, where the instructions for two 16-bit values are emulated, which
takes registers: 18 rows spill."""

OTHER_MODES_ROWS = (8, 16, 24)
"""Strip heights in global and semi-global mode, which look at more values where a subject ends."""

STRIP_OVERHEAD = 1.4
"""What a strip costs besides its rows (letters, boundaries, waiting), in rows: from 24 rows to 8 throughput falls by
a tenth (H200, benchmarks/speed/gpu_variants.py, November 2026)."""

WAVEFRONT_ROWS = (4, 8, 12, 16)
"""Query rows of a lane of the wavefront kernel; a pass is 32 times that."""

WAVEFRONT_OVERHEAD = 4.0
"""What a column step costs besides its rows (two shuffles, letters, the boundary), in rows."""


@dataclass(frozen=True)
class BatchVariant:
    """An inter-task kernel.

    Parameters
    ----------
    rows : int
        Query rows of a strip.
    queries : {1, 2}
        Queries in a lane: one against two subjects, or two against one.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    """

    rows: int
    queries: int
    mode: Mode

    @property
    def kernel(self) -> Kernel:
        """What the compiler is given."""
        defines = (
            ("SWSEARCH_ROWS", self.rows),
            ("SWSEARCH_MODE", MODE_NUMBERS[self.mode]),
            ("SWSEARCH_QUERIES", self.queries),
        )
        return Kernel("batch", defines)

    @property
    def lines(self) -> int:
        """Lines of 128 bytes that hold a strip's scores."""
        return -(-self.rows // 4) if self.queries == 1 else self.rows

    @property
    def profile_bytes(self) -> int:
        """Bytes of a strip's scores."""
        return self.lines * 128

    def shared_bytes(self, warps: int) -> int:
        """Shared memory of a block of ``warps`` warps."""
        exchange = warps * SLOTS * TILE_COLUMNS * 32 * 8
        return warps * self.profile_bytes + exchange + BLOCK_WARPS * 4 + warps * QUEUE * 4


def batch_warps(shared_limit: int) -> int:
    """Return the warps of a block of the inter-task kernel: 16, or fewer where shared memory is small.

    All variants have as many, so that a track's pipelines do not depend on the strip height.
    """
    warps = BLOCK_WARPS
    while warps > 1 and max(variant.shared_bytes(warps) for variant in batch_variants()) > shared_limit:
        warps //= 2
    return warps


@dataclass(frozen=True)
class WavefrontVariant:
    """An intra-task kernel.

    Parameters
    ----------
    rows : int
        Query rows of a lane.
    bits : {16, 32}
        Lane width; 16 scores two neighbouring subjects at a time.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    """

    rows: int
    bits: int
    mode: Mode

    @property
    def kernel(self) -> Kernel:
        """What the compiler is given."""
        defines = (
            ("SWSEARCH_ROWS", self.rows),
            ("SWSEARCH_MODE", MODE_NUMBERS[self.mode]),
            ("SWSEARCH_BITS", self.bits),
        )
        return Kernel("wavefront", defines)

    @property
    def pass_rows(self) -> int:
        """Query rows of a pass."""
        return 32 * self.rows

    @property
    def warp_bytes(self) -> int:
        """Shared memory of a warp."""
        return 4 * (self.rows // 4 * 32 * 32 + 4 * 32)

    def block_warps(self, shared_limit: int) -> int:
        """Return the warps of a block that fit the device's shared memory."""
        return _warps_that_fit(self.warp_bytes, shared_limit)


def _warps_that_fit(warp_bytes: int, shared_limit: int) -> int:
    return max(1, min(BLOCK_WARPS, shared_limit // warp_bytes))


SCORES = Kernel("scores", ())
"""Arranging residues and collecting hits."""


def batch_variants() -> list[BatchVariant]:
    """Return every inter-task variant."""
    local = [BatchVariant(rows, queries, "local") for queries in (1, 2) for rows in BATCH_ROWS[queries]]
    modes: tuple[Mode, ...] = ("global", "semiglobal")
    return local + [
        BatchVariant(rows, queries, mode) for mode in modes for queries in (1, 2) for rows in OTHER_MODES_ROWS
    ]


def wavefront_variants() -> list[WavefrontVariant]:
    """Return every intra-task variant."""
    return [
        WavefrontVariant(rows, bits, mode) for mode in MODE_NUMBERS for bits in (16, 32) for rows in WAVEFRONT_ROWS
    ]


def highest_strip(capability: tuple[int, int]) -> int:
    """Return the highest strip for a device's compute capability."""
    return max(BATCH_ROWS[1]) if capability >= (9, 0) else EMULATED_ROWS


def batch_rows(queries: int, mode: Mode, most: int) -> tuple[int, ...]:
    """Return the strip heights of at most ``most`` rows to choose from."""
    heights = BATCH_ROWS[queries] if mode == "local" else OTHER_MODES_ROWS
    return tuple(rows for rows in heights if rows <= most)


def choose_pipeline(n_strips: int, warps: int = BLOCK_WARPS) -> int:
    """Choose the warps of a pipeline for a track of ``n_strips`` strips in a block of ``warps`` warps.

    A short track gets just as many as it has strips, rounded up to a power of two; a long one goes through a whole
    block, or half of one, in passes: whichever leaves fewer warps without a strip.
    """
    stages = 1
    while stages < min(n_strips, warps):
        stages *= 2
    half = max(stages // 2, 1)
    if stages == warps and -(-n_strips // half) * half < -(-n_strips // stages) * stages:
        return half
    return stages


def track_cost(n_strips: int, rows: int) -> float:
    """Estimate what a track costs with strips of ``rows`` rows, in rows; warps without a strip cost as much."""
    stages = choose_pipeline(n_strips)
    return -(-n_strips // stages) * stages * (rows + STRIP_OVERHEAD)


def count_strips(lengths: Iterable[int], rows: int) -> int:
    """Count the strips of queries laid end to end."""
    return sum(-(-length // rows) for length in lengths)


def choose_single(length: int, mode: Mode, most: int) -> BatchVariant:
    """Choose the strip height, at most ``most``, for one query; the higher of two equal ones."""
    heights = batch_rows(1, mode, most)
    return BatchVariant(max(heights, key=lambda rows: (-track_cost(-(-length // rows), rows), rows)), 1, mode)


def choose_wavefront_rows(lengths: Sequence[int]) -> int:
    """Choose the rows per lane for queries of these lengths; the higher of two equal ones."""

    def cost(rows: int) -> float:
        return sum(-(-length // (32 * rows)) for length in lengths) * (rows + WAVEFRONT_OVERHEAD)

    return max(WAVEFRONT_ROWS, key=lambda rows: (-cost(rows), rows))


PAIR_ROWS: dict[int, tuple[int, ...]] = {4: (4, 8, 16), 8: (4, 8, 12), 32: (4, 8, 16)}
"""Query rows of a lane of the pair kernel, by the letters that its lookup holds: more would spill inside the loop."""

DIRECTION_ROWS = 8
"""Query rows of a lane where directions are kept: four bits each fill a word."""


@dataclass(frozen=True)
class PairVariant:
    """A kernel for one pair of any length.

    Parameters
    ----------
    rows : int
        Query rows of a lane.
    letters : {4, 8, 32}
        Different letters of the subject that the lookup holds.
    local : bool
        Whether scores have a floor of 0 and the best cell is looked for.
    directions : bool
        Whether the way back is kept.
    """

    rows: int
    letters: int
    local: bool
    directions: bool = False

    @property
    def kernel(self) -> Kernel:
        """What the compiler is given."""
        defines = (
            ("SWSEARCH_ROWS", self.rows),
            ("SWSEARCH_LETTERS", self.letters),
            ("SWSEARCH_LOCAL", int(self.local)),
            ("SWSEARCH_DIRECTIONS", int(self.directions)),
        )
        return Kernel("pair", defines)

    @property
    def strip_rows(self) -> int:
        """Query rows of a strip."""
        return 32 * self.rows

    @property
    def warp_bytes(self) -> int:
        """Shared memory of a warp."""
        return _pair_warp_bytes(self.rows, self.letters)

    def block_warps(self, shared_limit: int) -> int:
        """Return the warps of a block that fit the device's shared memory."""
        return _warps_that_fit(self.warp_bytes, shared_limit)


@dataclass(frozen=True)
class PairsVariant:
    """The kernel for many short pairs.

    Parameters
    ----------
    letters : {4, 8, 32}
        Different letters of all subjects that the lookup holds.
    local : bool
        Whether scores have a floor of 0 and the best cell is looked for.
    """

    letters: int
    local: bool

    @property
    def kernel(self) -> Kernel:
        """What the compiler is given."""
        return Kernel("pairs", (("SWSEARCH_LETTERS", self.letters), ("SWSEARCH_LOCAL", int(self.local))))

    @property
    def warp_bytes(self) -> int:
        """Shared memory of a warp."""
        return _pair_warp_bytes(DIRECTION_ROWS, self.letters) + TRACE_BYTES

    def block_warps(self, shared_limit: int) -> int:
        """Return the warps of a block that fit the device's shared memory."""
        return _warps_that_fit(self.warp_bytes, shared_limit)


TRACE = Kernel("trace", ())
"""The way back through the directions of one rectangle."""

TRACE_BYTES = 4 * 4 * 32
"""Shared memory of the way back: four groups of eight rows, 32 columns of each."""


def _pair_warp_bytes(rows: int, letters: int) -> int:
    profile = rows // 4 * 32 * 32 * 4 if letters == 32 else 0
    return profile + 33 * 16


def pair_variants() -> list[PairVariant]:
    """Return every variant for one pair."""
    scores = [
        PairVariant(rows, letters, local)
        for letters, heights in PAIR_ROWS.items()
        for rows in heights
        for local in (False, True)
    ]
    return scores + [
        PairVariant(DIRECTION_ROWS, letters, local, True) for letters in PAIR_ROWS for local in (False, True)
    ]


def pairs_variants() -> list[PairsVariant]:
    """Return every variant for many pairs."""
    return [PairsVariant(letters, local) for letters in PAIR_ROWS for local in (False, True)]
