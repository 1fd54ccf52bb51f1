"""Compiled kernels; no GPU is needed.

The numbers are the same from nvcc 13.0 and NVRTC 13.5 unless a comment says otherwise (November 2026).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support import sass
from support.compiled import folder
from support.samples import first_of_each, sample
from swsearch.engines.gpu.compiler import Compiler, Kernel, find_compiler
from swsearch.engines.gpu.variants import (
    INTEGER_ROWS,
    SCORES,
    TILE_COLUMNS,
    TRACE,
    BatchVariant,
    PairVariant,
    WavefrontVariant,
    batch_variants,
    device_kind,
    pair_variants,
    pairs_variants,
    wavefront_variants,
)
from swsearch.errors import GpuUnavailableError

THREADS = 2
DPX = "sm_90"

SPILL_STORES = {"sm_90": 0, "sm_120": 0, "sm_80": 32}
"""Bytes that a thread may spill. Before sm_90 the instructions for two 16-bit values are emulated and their
intermediate values need registers too: NVRTC 13.5 spills a few bytes at 16 rows, nvcc 13.0 none."""

FALLBACK_SPILLS = 32
"""The same of strips that are higher than those of integers should be: databases of one family take them."""

SEMIGLOBAL_SPILLS = 8
"""The same of the semi-global strip of 24 rows, one query: it loads them once per tile, of 1,778 instructions."""

REGISTERS = 128
"""65,536 registers shared by the 512 threads of a block."""

INSTRUCTIONS = {(False, 1): 7.0, (False, 2): 6.0, (True, 1): 7.0, (True, 2): 6.0}
"""Instructions of a cell pair, by half precision and queries per lane: the recurrence (3 VIADDMNMX, 1.5 VIMNMX3, 1
IMAD, or 2, 1.5 and 1 HADD2) with its scores (0.25 to 0.5 LDS; 1 PRMT, 2 HFMA2, none, or 1 HADD2)."""

TILE_OVERHEAD = {False: 165, True: 220}
"""Bound for the instructions of a tile besides its cell pairs, by half precision: letters, boundaries, waiting,
register moves. 112 to 163 and 153 to 216 were found."""

PAIR_INSTRUCTIONS = {4: 7.3, 8: 7.3, 32: 7.6}
"""Bound for the instructions of a cell of the pair kernel, by letters of the lookup: 7 are the recurrence (3
VIADDMNMX, 1 VIMNMX, 2 IMAD) with its score (1 PRMT); a quarter of an LDS where scores are in shared memory."""

PAIR_OVERHEAD = 40
"""Bound for the instructions of a column step besides its cells and the branch that keeps the last row."""

ENTRIES = {
    "batch": {"swsearch_batch"},
    "wavefront": {"swsearch_wavefront"},
    "pair": {"swsearch_pair"},
    "pairs": {"swsearch_pairs"},
    "trace": {"swsearch_trace"},
    "scores": {"swsearch_arrange", "swsearch_collect_tasks", "swsearch_collect_hits"},
}

LOCAL_BATCH = [variant for variant in batch_variants() if variant.mode == "local"]
LOCAL_WAVEFRONT = [variant for variant in wavefront_variants() if variant.mode == "local"]

PAIR_SCORES = [variant for variant in pair_variants() if not variant.local and not variant.directions]

CASES = pytest.mark.parametrize(
    ("architecture", "every"),
    sample([(DPX, False), *((name, True) for name in SPILL_STORES)], lambda case: not case[1]),
)


def kernels(architecture: str) -> list[Kernel]:
    """Every variant with DPX; elsewhere the lowest, and the highest that the engine chooses.

    Compiling is all that takes time here: half a second per kernel with nvcc.
    """
    batch, wavefront, pair, pairs = batch_variants(), wavefront_variants(), pair_variants(), pairs_variants()
    if architecture != DPX:
        highest = device_kind((int(architecture[3:-1]), int(architecture[-1]))).highest
        batch = [variant for variant in batch if variant.rows in (8, 28 if variant.half else highest)]
        wavefront = [variant for variant in wavefront if variant.rows == 16]
        pair = [variant for variant in pair if variant.rows == 16 or variant.directions]
    return [*(variant.kernel for variant in [*batch, *wavefront, *pair, *pairs]), SCORES, TRACE]


def name(variant: BatchVariant | WavefrontVariant | PairVariant) -> str:
    return str(variant.kernel).replace(" ", "")


def one_of_each_source() -> list[Kernel]:
    """Return a kernel of every source, those of a quick run."""
    return list({kernel.source: kernel for kernel in reversed(kernels(DPX))}.values())


def compiled(architecture: str, wanted: list[Kernel]) -> dict[Kernel, bytes]:
    """Compile kernels, or take what another test compiled; skip without a compiler."""
    try:
        toolchain = find_compiler(architecture, None).toolchain
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    compiler = Compiler(toolchain, architecture, cache_folder=folder("kernels"))
    return dict(zip(wanted, compiler.compile_all(wanted), strict=True))


def inner_loop(kernel: Kernel) -> sass.Loop:
    """Return the inner loop of a local kernel for sm_90."""
    need_disassembler()
    cubin = compiled(DPX, [kernel])[kernel]
    return sass.disassemble(cubin)[f"swsearch_{kernel.source}"].inner_loop


def need_disassembler() -> None:
    if sass.find_disassembler() is None:
        pytest.skip("nvdisasm was not found; pip install nvidia-cuda-nvdisasm")


def most_spilled(kernel: Kernel, architecture: str) -> int:
    """Return the bytes that a thread of a kernel may spill."""
    given = dict(kernel.defines)
    is_fallback = kernel.source == "batch" and not given["SWSEARCH_HALF"] and given["SWSEARCH_ROWS"] > INTEGER_ROWS
    is_semiglobal = kernel == BatchVariant(24, 1, "semiglobal").kernel
    return max(SPILL_STORES[architecture], FALLBACK_SPILLS * is_fallback, SEMIGLOBAL_SPILLS * is_semiglobal)


@CASES
def test_every_variant_compiles_within_the_registers(architecture: str, every: bool) -> None:
    for kernel, cubin in compiled(architecture, kernels(architecture) if every else one_of_each_source()).items():
        found = sass.resources(cubin)
        assert set(found) == ENTRIES[kernel.source], f"{architecture} {kernel}"
        for function, needs in found.items():
            assert 0 < needs.registers <= REGISTERS, f"{architecture} {kernel} {function}: {needs}"


@CASES
def test_spills_stay_within_the_stated_bound(architecture: str, every: bool) -> None:
    cubins = compiled(architecture, kernels(architecture) if every else one_of_each_source())
    # without local memory there is nothing to spill to, so that most need no disassembly
    spilling = {
        kernel: cubin
        for kernel, cubin in cubins.items()
        if any(needs.frame > 0 for needs in sass.resources(cubin).values())
    }
    if not spilling:
        return
    need_disassembler()
    with ThreadPoolExecutor(THREADS) as threads:
        for kernel, functions in zip(spilling, threads.map(sass.disassemble, spilling.values()), strict=True):
            bound = most_spilled(kernel, architecture)
            for function in functions.values():
                found = (
                    f"{architecture} {kernel}: {function.spill_stores} bytes stored, {function.spill_loads} loaded"
                )
                assert function.spill_stores <= bound, found
                assert function.spill_loads <= 2 * bound, found


@pytest.mark.parametrize("variant", first_of_each(LOCAL_BATCH, lambda one: (one.queries, one.half)), ids=name)
def test_inner_loop_of_a_batch_kernel(variant: BatchVariant) -> None:
    loop = inner_loop(variant.kernel)
    opcodes, rows = loop.opcodes, variant.rows
    case = f"{variant.kernel}: {len(loop)} instructions, {dict(opcodes.most_common(12))}"
    pairs = TILE_COLUMNS * rows
    odd = TILE_COLUMNS * (rows % 2)  # the last of an odd number of rows is compared alone
    # 3.5 instructions of the ALU for two cells in half precision, 4.5 as integers
    assert opcodes["VIADDMNMX"] == (2 if variant.half else 3) * pairs, case
    merged_odd = opcodes["VIMNMX3"] - pairs - TILE_COLUMNS * (rows // 2)  # the last rows of two columns
    assert 0 <= merged_odd <= odd // 2, case
    assert opcodes["VIMNMX"] == odd - 2 * merged_odd, case
    if variant.half:
        assert opcodes["HADD2"] + opcodes["HFMA2"] == (4 - variant.queries) * pairs, case
    else:
        assert opcodes["IMAD"] >= pairs, f"the subtraction left the FMA pipe; {case}"
    letters = TILE_COLUMNS * (2 if variant.queries == 1 else 1)
    merged = pairs if variant.queries == 1 and not variant.half else 0
    # up to two more compare the counters of neighbouring warps
    assert 0 <= opcodes["PRMT"] - merged - letters <= 2, case
    as_bytes = variant.queries == 1 and not variant.half  # two lines at once
    assert opcodes["LDS"] >= letters * (-(-variant.lines // 2) if as_bytes else variant.lines), case
    assert loop.local_bytes <= 3 * most_spilled(variant.kernel, DPX), case
    assert len(loop) <= INSTRUCTIONS[variant.half, variant.queries] * pairs + TILE_OVERHEAD[variant.half], case


@pytest.mark.parametrize("variant", first_of_each(LOCAL_WAVEFRONT, lambda one: one.bits), ids=name)
def test_inner_loop_of_a_wavefront_kernel(variant: WavefrontVariant) -> None:
    loop = inner_loop(variant.kernel)
    opcodes = loop.opcodes
    case = f"{variant.kernel}: {len(loop)} instructions, {dict(opcodes.most_common(12))}"
    cells = 4 * variant.rows  # the loop over columns is unrolled four times
    assert opcodes["VIADDMNMX"] == 3 * cells, case
    assert 2 * opcodes["VIMNMX3"] == 3 * cells, case
    assert opcodes["PRMT"] == cells, case
    assert opcodes["IMAD"] >= cells, f"the subtraction left the FMA pipe; {case}"
    assert loop.local_bytes == 0, case


@pytest.mark.parametrize("variant", first_of_each(PAIR_SCORES, lambda one: one.letters), ids=name)
def test_inner_loop_of_a_pair_kernel(variant: PairVariant) -> None:
    loop = inner_loop(variant.kernel)
    opcodes = loop.opcodes
    case = f"{variant.kernel}: {len(loop)} instructions, {dict(opcodes.most_common(12))}"
    steps = opcodes["SHFL"] // 3  # H, F and the letter go down a lane in every step
    cells = steps * variant.rows
    assert steps in (1, 2, 4), case
    assert opcodes["VIADDMNMX"] == 3 * cells, case
    assert opcodes["VIMNMX"] == cells, case
    assert opcodes["PRMT"] == cells, case
    assert opcodes["IMAD"] >= 2 * cells, f"a subtraction left the FMA pipe; {case}"
    assert loop.local_bytes == 0, case
    keeps_row = steps * 2 * variant.rows  # compares and selects of the row that is kept, which seldom runs
    assert len(loop) <= PAIR_INSTRUCTIONS[variant.letters] * cells + steps * PAIR_OVERHEAD + keeps_row, case
