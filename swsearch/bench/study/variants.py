"""The table of variants, for checks, timing, report and tests.

A variant with ``sweep`` is one point of a plot over block sizes, tiles or concurrent kernels, and is timed at one
size. The others are timed at all sizes up to their ``largest``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swsearch.engines.gpu.compiler import Kernel
from swsearch.engines.gpu.variants import MODE_NUMBERS
from swsearch.options.kinds import Mode

HUYNH = "Huynh et al."
PATEL = "Patel et al."
SZAFARCZYK = "Szafarczyk"
CUDASW = "CUDASW++ for short queries"

APPROACHES = ("diagonal-blocks", "element-diagonals", "skewed", "strips", "inter-task")
"""Names of the approaches, in the order of the report."""

MATRIX_APPROACHES = APPROACHES[:3]
"""Those that keep the whole matrix in global memory."""

TILES = ((8, 8), (16, 16), (32, 32), (8, 128), (16, 64))
"""Rows and columns of a block of Huynh et al."""

SKEWED_THREADS = (128, 256, 512, 1024)
"""Threads of a block of Patel et al."""

CONCURRENT = {1024: (1, 2, 4, 8), 256: (1, 2, 4, 8, 16, 32, 64)}
"""Kernels under way at a time, by the rows of a strip: no more than the strips of `MEDIUM` rows. Szafarczyk's strips
have 1,024."""

GRIDS = ((64, 64), (64, 128), (64, 256), (132, 64), (264, 64), (528, 64), (528, 128), (528, 256))
"""Blocks and threads of the inter-task kernels; the seed varied both around 64."""

LARGE, MEDIUM = 37_000, 16_384


@dataclass(frozen=True)
class Variant:
    """One way to fill the matrix.

    Parameters
    ----------
    approach : str
        Which host code runs it.
    name : str
        Unique within the approach.
    paper : str
        Where it comes from.
    source : str
        File in ``cuda/study`` without ``.cu``.
    constants : tuple of (str, int)
        Macros, without ``SWSEARCH_``.
    threads : int
        Of a block.
    mode : {"local", "global"}
        Which matrix.
    launches : str
        ``diagonal``: one per diagonal; ``barrier``: one in all.
    blocks : int
        Of the grid (inter-task) or kernels at a time (strips); 0 where the size decides.
    sweep : str
        What is varied; empty for a variant that is timed at all sizes.
    largest : int
        Length of the longest pair that it is timed with.
    """

    approach: str
    name: str
    paper: str
    source: str
    constants: tuple[tuple[str, int], ...]
    threads: int
    mode: Mode = "global"
    launches: str = "diagonal"
    blocks: int = 0
    sweep: str = ""
    largest: int = LARGE

    def constant(self, name: str) -> int:
        """Return a macro's value, 0 if it is not set."""
        return dict(self.constants).get(name, 0)

    def kernel(self, gaps: str, *, keep: bool = True, source: str = "") -> Kernel:
        """Return the kernel of a kind of gap costs.

        Parameters
        ----------
        keep : bool
            Whether kernels that need no matrix write it nevertheless, to be checked.
        """
        every = {"MODE": MODE_NUMBERS[self.mode], "AFFINE": int(gaps == "affine"), **dict(self.constants)}
        if self.approach not in MATRIX_APPROACHES:
            every["KEEP"] = int(keep)
        if source == "boundary":  # one for all variants with the same matrices
            every = {name: every[name] for name in ("MODE", "AFFINE", "DIRECTIONS", "SKEWED") if name in every}
        return Kernel(source or self.source, tuple((f"SWSEARCH_{name}", value) for name, value in every.items()))

    def kernels(self, gaps: Sequence[str]) -> list[Kernel]:
        """Return everything that is compiled for checks and timing."""
        kernels = [self.kernel(kind, keep=keep) for kind in gaps for keep in (True, False)]
        if self.approach in MATRIX_APPROACHES:
            kernels += [self.kernel(kind, source="boundary") for kind in gaps]
        return list(dict.fromkeys(kernels))

    def __str__(self) -> str:
        return f"{self.approach}: {self.name}"


def _diagonal_blocks() -> list[Variant]:
    return [
        Variant(
            "diagonal-blocks", f"{rows}x{columns}, {'shared' if shared else 'global'}", HUYNH, "diagonal_blocks",
            (("ROWS", rows), ("COLUMNS", columns), ("SHARED", shared)), rows * columns,
            sweep="" if rows == columns else "tile",
        )
        for shared in (0, 1)
        for rows, columns in TILES
    ]  # fmt: skip


def _element_diagonals() -> list[Variant]:
    return [
        Variant("element-diagonals", f"{threads} threads", HUYNH, "element_diagonals", (), threads,
                sweep="" if threads == 1024 else "threads")
        for threads in (256, 1024)
    ]  # fmt: skip


def _skewed() -> list[Variant]:
    forms: list[tuple[str, str, int, int, int]] = [
        # name, launches, shared memory, lock-free, skewed storage
        ("launches", "diagonal", 0, 0, 0),
        ("lock-based", "barrier", 0, 0, 0),
        ("lock-free", "barrier", 0, 1, 0),
        ("launches, shared", "diagonal", 1, 0, 0),
        ("lock-based, shared", "barrier", 1, 0, 0),
        ("lock-free, shared", "barrier", 1, 1, 0),
        ("launches, skewed storage", "diagonal", 0, 0, 1),
        ("lock-free, skewed storage", "barrier", 0, 1, 1),
    ]
    return [
        Variant(
            "skewed", f"{name}, {threads} threads", PATEL, "skewed",
            (("SHARED", shared), ("LOCK_FREE", free), ("SKEWED", storage), ("DIRECTIONS", 1)), threads,
            launches=launches, sweep="" if threads == 256 else "threads", largest=32_768,
        )
        for name, launches, shared, free, storage in forms
        for threads in SKEWED_THREADS
        if threads == 256 or not storage
    ]  # fmt: skip


def _strips() -> list[Variant]:
    def made(mode: Mode, threads: int, chunk: int, kernels: int, sweep: str) -> Variant:
        columns = "a column" if chunk == 1 else f"{chunk} columns"
        return Variant(
            "strips", f"{mode}, {kernels} kernels of {threads} rows, {columns} at a time", SZAFARCZYK, "strips",
            (("CHUNK", chunk), ("DIRECTIONS", 1)), threads, mode, blocks=kernels, sweep=sweep, largest=32_768,
        )  # fmt: skip

    both: tuple[Mode, ...] = ("global", "local")
    variants = [made(mode, 1024, chunk, 32, "") for mode in both for chunk in (1, 32)]
    return variants + [
        made("global", rows, chunk, kernels, "kernels")
        for rows, counts in CONCURRENT.items()
        for chunk in (1, 32)
        for kernels in counts
    ]


def _inter_task() -> list[Variant]:
    return [
        Variant(
            "inter-task", f"{'shared' if shared else 'global'} buffers, {blocks} blocks of {threads}", CUDASW,
            "inter_task", (("SHARED", shared),), threads, "local", blocks=blocks,
            sweep="" if (blocks, threads) == (528, 64) else "grid",
        )
        for shared in (0, 1)
        for blocks, threads in GRIDS
    ]  # fmt: skip


def all_variants() -> list[Variant]:
    """Return the table."""
    return [*_diagonal_blocks(), *_element_diagonals(), *_skewed(), *_strips(), *_inter_task()]


def variants_of(approach: str) -> list[Variant]:
    """Return the rows of one approach."""
    return [variant for variant in all_variants() if variant.approach == approach]
