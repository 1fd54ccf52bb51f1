"""The table of kernel variants: what is compiled, dispatched, tested and measured; no variant exists elsewhere.

A variant is a source file of ``cuda/`` with its compile-time constants. Which one a job takes is decided here, by
pure functions of the query lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from swsearch.engines.gpu.compiler import Kernel
from swsearch.scoring import Mode

MODE_NUMBERS: dict[Mode, int] = {"local": 0, "global": 1, "semiglobal": 2}
"""Numbers of the modes in ``cuda/recurrence.cuh``."""

BLOCK_WARPS = 16
"""Warps of a block, one block an SM: four on each scheduler. Other numbers lose 5 to 20 % (H200, systolic
prototype, November 2026)."""

TILE_COLUMNS = 8
"""Columns between two meetings of neighbouring warps: four lose 3 to 6 %, sixteen spill."""

SLOTS = 2
"""Tiles that a warp may be ahead of the next one."""

QUEUE = 64
"""Jobs that a pipeline's queue holds."""

BATCH_ROWS: dict[int, tuple[int, ...]] = {1: tuple(range(8, 29)), 2: tuple(range(8, 29, 2))}
"""Strip heights by queries per lane. Higher strips have less overhead per row (one query, half precision, 28 rows:
6,740 GCUPS, 12 rows: 6,140), but 32 rows of H and E do not fit 128 registers, and 30 gain nothing; a height that
divides the query well leaves the least padding to be computed. H100, benchmarks/speed/gpu_variants.py, November
2026."""

INTEGER_ROWS = 24
"""Highest strips of 16-bit integers: with 28 rows two queries per lane spill."""

EMULATED_ROWS = 16
"""Highest strips before compute capability 9.0, where the instructions for two 16-bit values are emulated, which
takes registers: 18 rows spill."""

OTHER_MODES_ROWS = (8, 16, 24)
"""Strip heights in global and semi-global mode, which look at more values where a subject ends."""

STRIP_OVERHEAD = 2.2
"""Cost of a strip besides its rows (letters, boundaries, waiting), in rows. Fitted to the times of 12 to 28 rows
(H100, benchmarks/speed/gpu_variants.py, November 2026)."""

LAST_JOBS = 1.6
"""Cost of the last jobs of a scan, in strips times the stages of a pipeline.
Jobs of one-warp pipelines take 16 times as long as those of 16 warps, and end one after the other. Measured with 30
residues against Swiss-Prot's lengths: one strip of 30 rows 1.83 ms, two of 15 rows 1.26 ms (H100, November 2026)."""

WAVEFRONT_ROWS = (4, 8, 12, 16)
"""Query rows of a lane of the wavefront kernel; a pass is 32 times that."""

WAVEFRONT_OVERHEAD = 4.0
"""Cost of a column step besides its rows (two shuffles, letters, the boundary), in rows."""


OpenExtend = tuple[int, int]
"""Costs of opening and of extending a gap. Kernels have them as constants, since what an instruction reads from
registers is what binds: as integers 6,130 GCUPS become 6,320, as half-precision numbers 6,620 become 7,330 (two
queries per lane, strips of 24 and 26 rows, H100, November 2026)."""


def _gap_defines(gaps: OpenExtend) -> tuple[tuple[str, int], ...]:
    return ("SWSEARCH_GAP_OPEN", gaps[0]), ("SWSEARCH_GAP_EXTEND", gaps[1])


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
    half : bool
        Whether scores are half-precision numbers, in local mode: ``Half16`` of ``cuda/recurrence.cuh``.
    gaps : (int, int)
        Costs of opening and of extending a gap.
    """

    rows: int
    queries: int
    mode: Mode
    half: bool = False
    gaps: OpenExtend = (11, 1)

    @property
    def kernel(self) -> Kernel:
        """Kernel that the compiler gets."""
        defines = (
            ("SWSEARCH_ROWS", self.rows),
            ("SWSEARCH_MODE", MODE_NUMBERS[self.mode]),
            ("SWSEARCH_QUERIES", self.queries),
            ("SWSEARCH_HALF", int(self.half)),
            *_gap_defines(self.gaps),
        )
        return Kernel("batch", defines)

    @property
    def lines(self) -> int:
        """Lines that hold a strip's scores: four of each letter, of four rows or of two rows of two queries."""
        return -(-self.rows * self.queries // 4)

    def shared_bytes(self, warps: int) -> int:
        """Shared memory of a block of ``warps`` warps: scores of 16 bits, and what neighbours exchange."""
        exchange = warps * SLOTS * TILE_COLUMNS * 32 * 8
        return warps * self.lines * 32 * 8 + exchange + BLOCK_WARPS * 4 + warps * QUEUE * 4


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
    gaps : (int, int)
        Costs of opening and of extending a gap.
    """

    rows: int
    bits: int
    mode: Mode
    gaps: OpenExtend = (11, 1)

    @property
    def kernel(self) -> Kernel:
        """Kernel that the compiler gets."""
        defines = (
            ("SWSEARCH_ROWS", self.rows),
            ("SWSEARCH_MODE", MODE_NUMBERS[self.mode]),
            ("SWSEARCH_BITS", self.bits),
            *_gap_defines(self.gaps),
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
    local = [
        BatchVariant(rows, queries, "local", half)
        for half in (True, False)
        for queries in (1, 2)
        for rows in BATCH_ROWS[queries]
    ]
    modes: tuple[Mode, ...] = ("global", "semiglobal")
    return local + [
        BatchVariant(rows, queries, mode) for mode in modes for queries in (1, 2) for rows in OTHER_MODES_ROWS
    ]


def wavefront_variants() -> list[WavefrontVariant]:
    """Return every intra-task variant."""
    return [
        WavefrontVariant(rows, bits, mode) for mode in MODE_NUMBERS for bits in (16, 32) for rows in WAVEFRONT_ROWS
    ]


class DeviceKind(NamedTuple):
    """Capabilities of a device's instructions; devices of one kind share the layouts of queries.

    Parameters
    ----------
    half : bool
        Whether half-precision numbers have a maximum.
    highest : int
        Highest strip of 16-bit integers.
    """

    half: bool
    highest: int

    @property
    def emulates(self) -> bool:
        """Whether instructions for two 16-bit integers are emulated, which takes longer than 32 bits do."""
        return self.highest < INTEGER_ROWS


def device_kind(capability: tuple[int, int]) -> DeviceKind:
    """Return the kind of a device of some compute capability."""
    return DeviceKind(capability >= (8, 0), INTEGER_ROWS if capability >= (9, 0) else EMULATED_ROWS)


@dataclass(frozen=True)
class Form:
    """Properties common to the inter-task kernels of some queries.

    Parameters
    ----------
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    half : bool
    gaps : (int, int)
        As in `BatchVariant`.
    highest : int
        As in `DeviceKind`.
    """

    mode: Mode
    half: bool
    gaps: OpenExtend
    highest: int

    def heights(self, queries: int) -> tuple[int, ...]:
        """Return the strip heights to choose from."""
        heights = BATCH_ROWS[queries] if self.mode == "local" else OTHER_MODES_ROWS
        return tuple(rows for rows in heights if self.half or rows <= self.highest)

    def variant(self, rows: int, queries: int) -> BatchVariant:
        """Return the kernel for a strip height."""
        return BatchVariant(rows, queries, self.mode, self.half, self.gaps)


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
    return -(-n_strips // stages) * stages * (rows + STRIP_OVERHEAD) + rows * min(1.0, LAST_JOBS / stages)


def count_strips(lengths: Iterable[int], rows: int) -> int:
    """Count the strips of queries laid end to end."""
    return sum(-(-length // rows) for length in lengths)


def choose_single(length: int, form: Form) -> BatchVariant:
    """Choose the strip height for one query; the higher of two equal ones."""
    return form.variant(max(form.heights(1), key=lambda rows: (-track_cost(-(-length // rows), rows), rows)), 1)


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
        """Kernel that the compiler gets."""
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
        """Kernel that the compiler gets."""
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
