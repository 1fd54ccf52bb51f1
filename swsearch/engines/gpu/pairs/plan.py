"""Plan of one pair on a device: strips and warps, data saved for the traceback, and memory.

The functions are pure functions of lengths and device properties, so that tests and messages need no device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import hypot
from typing import TypeVar

from swsearch.blocks import IntArray
from swsearch.engines.gpu.device import DeviceInfo, GpuMemoryError
from swsearch.engines.gpu.variants import DIRECTION_ROWS, PAIR_ROWS, PairVariant

Size = TypeVar("Size", int, IntArray)

RING_COLUMNS = 512
"""Columns that a strip may be ahead of the next one, a power of two."""

CELL_BYTES = 8
"""H with E or F of a cell on a boundary."""

PAIR_MEMORY = 3 << 30
"""Bytes of device memory that a pair may take where no other bound is given."""

DIRECT_BYTES = 1 << 30
"""Most directions that are kept at a time; a rectangle with more is divided."""

LEAST_SPACING = 4096
"""Least rows and columns between two that are kept: below, launches would take longer than cells."""

STEP_CYCLES, ROW_CYCLES = 75.0, 11.0
"""Cycles of a column step of a warp that has a scheduler for itself, and what each row of a lane adds: five
instructions for the ALU, two cycles each."""

SHARED_STEP_CYCLES, SHARED_ROW_CYCLES = 9.3, 2.0
"""Cycles that a column step of a warp takes from a multiprocessor that is busy with many, and what a row adds."""

SCHEDULERS = 4
"""Schedulers of a multiprocessor, which share its warps out."""

SHARED_LETTERS_FACTOR = 1.07
"""Time of a lookup in shared memory, relative to one in registers."""

LAG = 170
"""Columns that a strip lags after the one above: 31 of skew, up to 32 until they are told, and the way to memory."""


@dataclass(frozen=True)
class PairLaunch:
    """A kernel and the grid for it.

    Parameters
    ----------
    variant : PairVariant
        The kernel.
    strips : int
        Strips of the rows.
    blocks, warps : int
        Blocks, no more than multiprocessors, and warps of each.
    """

    variant: PairVariant
    strips: int
    blocks: int
    warps: int

    @property
    def resident(self) -> int:
        """Warps of the grid."""
        return self.blocks * self.warps

    @property
    def progress_bytes(self) -> int:
        """Bytes that tell how far each strip is."""
        return 4 * self.strips

    @property
    def ring_bytes(self) -> int:
        """Bytes of all warps' rings."""
        return self.resident * RING_COLUMNS * CELL_BYTES

    @property
    def wraps(self) -> bool:
        """Whether a warp has more than one strip."""
        return self.strips > self.resident


def direction_bytes(rows: Size, n: Size) -> Size:
    """Return the bytes of the directions of ``rows`` by ``n`` cells, of one pair or of pairs, of any shape."""
    strips = -(-rows // (32 * DIRECTION_ROWS))
    steps = -(-(n + 31) // 32) * 32
    return strips * steps * 32 * 4


def cost(variant: PairVariant, rows: int, n: int, blocks: int, warps: int) -> float:
    """Estimate what a launch takes, in cycles.

    Of 12 grids for 1.66 Mb it was within 13 % of what was measured (H200, November 2026;
    benchmarks/speed/pair_variants.py).
    Warps take strips in rounds; in the last one fewer may be left, which then have more of the device.
    """
    strips = -(-rows // variant.strip_rows)
    resident = blocks * warps
    full, rest = divmod(strips, resident)
    lag = LAG * min(strips, resident)

    def step(busy: int) -> float:
        alone = STEP_CYCLES + ROW_CYCLES * variant.rows
        crowd = -(-busy // SCHEDULERS) * SCHEDULERS  # the slowest scheduler has the most warps
        if crowd == SCHEDULERS:
            return alone
        # few warps hide each other's waiting in part, many of them nearly all
        return hypot(alone, crowd * (SHARED_STEP_CYCLES + SHARED_ROW_CYCLES * variant.rows))

    cycles = full * n * step(warps) + (n * step(-(-rest // blocks)) if rest else 0)
    cycles += lag * step(warps if full else -(-rest // blocks))
    return cycles * (SHARED_LETTERS_FACTOR if variant.letters == 32 else 1)


def choose_launch(rows: int, n: int, letters: int, local: bool, directions: bool, info: DeviceInfo) -> PairLaunch:
    """Choose the kernel and its grid for a rectangle of ``rows`` by ``n`` cells."""
    heights: Iterable[int] = (DIRECTION_ROWS,) if directions else PAIR_ROWS[letters]
    best: tuple[float, PairLaunch] | None = None
    for height in heights:
        variant = PairVariant(height, letters, local, directions)
        strips = -(-rows // variant.strip_rows)
        blocks = min(info.multiprocessors, strips)
        for warps in range(1, variant.block_warps(info.shared_limit) + 1):
            found = cost(variant, rows, n, blocks, warps)
            if best is None or found < best[0]:
                best = found, PairLaunch(variant, strips, blocks, warps)
    assert best is not None
    return best[1]


@dataclass(frozen=True)
class Spacing:
    """Rows and columns of a rectangle that are kept for the way back.

    Parameters
    ----------
    strips : int
        Strips between two rows.
    rows : int
        Rows between two, a whole number of strips.
    columns : int
        Columns between two, a power of two.
    """

    strips: int
    rows: int
    columns: int

    def n_rows(self, launch: PairLaunch) -> int:
        """Return the number of rows kept."""
        return (launch.strips - 1) // self.strips

    def n_columns(self, n: int) -> int:
        """Return the number of columns kept."""
        return n // self.columns

    def row_bytes(self, launch: PairLaunch, n: int) -> int:
        """Bytes of the rows kept."""
        return self.n_rows(launch) * n * CELL_BYTES

    def column_bytes(self, rows: int, n: int) -> int:
        """Bytes of the columns kept."""
        return self.n_columns(n) * rows * CELL_BYTES


def choose_spacing(launch: PairLaunch, rows: int, n: int, budget: int) -> Spacing:
    """Choose the closest spacing, up to what one set of directions holds, that fits ``budget`` bytes.

    Raises
    ------
    GpuMemoryError
        If nothing that divides the rectangle fits.
    """
    columns = LEAST_SPACING
    while columns < max(rows, n):
        strips = max(1, columns // launch.variant.strip_rows)
        spacing = Spacing(strips, strips * launch.variant.strip_rows, columns)
        if spacing.row_bytes(launch, n) + spacing.column_bytes(rows, n) <= budget:
            return spacing
        columns *= 2
    raise GpuMemoryError(
        f"aligning {rows:,} with {n:,} residues takes more than the {budget >> 20} MiB of GPU memory left for it; "
        "allow more with --gpu-memory"
    )
