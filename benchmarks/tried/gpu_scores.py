"""Can the inter-task kernel do with fewer instructions on the ALU pipe, or wait less? Four forms of it, measured.

With one query in a lane the loop over a tile has 5.7 ALU instructions for each pair of cells, as nvdisasm shows; one
of them is the byte permute that makes a pair of scores of two profile words. The ALU pipe takes an instruction of a
warp every other cycle on each scheduler, and was 92.4 % busy with a query of 1,000 residues, 88.0 % with 20 queries
at once, where the loop has 4.7 (ncu, H200 at 1,980 MHz, 2026-11-22): at 100 % they would reach 5,580 and 6,975 GCUPS.

Tried:
  fma N    in N of 4 rows the scores are loaded byte by byte and added to the diagonal on the FMA pipe, so that no
           permute is needed: with 1,000 residues 1 row is slower by less than 1 %, 2 rows by 4 %, 3 by 8 %. The ALU
           pipe is then less busy (81 % with 2), but each permute saved is two loads and two additions more, and warps
           wait to be dispatched,
  fence    a lighter fence (acquire and release) where a tile is handed on: no difference,
  unfenced none at all, which is not safe and shows what it could gain: no difference,
  sleep    warps that wait for another sleep for some 20 ns instead of polling: no difference.
Not used. Every form gives the same scores, and the script says so if not.

Needs: an NVIDIA GPU of compute capability 9.0 or later, a quiet machine; two minutes.
Run:   python -m benchmarks.tried.gpu_scores [--lengths lengths.npy] [--out benchmarks/results/gpu_scores.txt]
Exit code 1 if scores differ.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.gpu_variants import STANDARD, Scans, lengths_of, replaced
from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.fingerprint import fingerprint
from swsearch.engines.gpu import queries
from swsearch.engines.gpu.compiler import SOURCES
from swsearch.engines.gpu.limits import lane16
from swsearch.recurrence import Recurrence
from swsearch.scoring import PAD_SCORE

Edits = list[tuple[str, str]]
"""Text of batch.cu, and what replaces it."""

HAND_OVER = "        __threadfence_block();\n        __syncwarp();\n        if (lane == 0) done[warp] = tick + 1;"
POLLING = "  while (*counter < value) {\n"
CELL = "            cell<Pair16, kMode>(diagonal, column_scores.at(r), H[r], E[r], F, costs);\n"

ADDED = """            if (kQueries == 1 && kMode == kLocal && r % 4 < kAdded) {
              const u32 t = Pair16::max2(column_scores.add(diagonal, r, one, one << 16), E[r]);
              cell<Pair16, kMode>(diagonal, 0, H[r], E[r], F, costs, t);
            } else {
              cell<Pair16, kMode>(diagonal, column_scores.at(r), H[r], E[r], F, costs);
            }
"""
ADD = """  u32 four_a, four_b;
  // 32-bit sums: a negative score borrows from the upper half what the lower half's bias gives back
  __device__ __forceinline__ u32 add(u32 diagonal, int r, u32 one, u32 high) {
    const int at = r / 4 * kLineBytes + r % 4;
    const int low = *reinterpret_cast<const signed char*>(a + at), up = *reinterpret_cast<const signed char*>(b + at);
    return multiply_add((u32)up, high, multiply_add((u32)low, one, diagonal));
  }
"""
FINISH = """
template <class Lane, Mode kMode>
__device__ __forceinline__ void cell(u32& diagonal, u32, u32& h, u32& e, u32& f, const Costs& costs, u32 t) {
  diagonal = h;
  h = kMode == kLocal ? Lane::max3(t, f, costs.floor) : Lane::max2(t, f);
  const u32 g = multiply_add(h, costs.one, costs.minus_first);
  e = Lane::add_max(e, costs.minus_extend, g);
  f = Lane::add_max(f, costs.minus_extend, g);
}

"""


def on_the_fma_pipe(rows: int) -> Edits:
    """Return what adds the scores of some of four rows on the FMA pipe."""
    struct = "// Scores of one letter down the strip;"
    return [
        (struct, f"constexpr int kAdded = {rows};\n{FINISH}{struct}"),
        ("  u32 four_a, four_b;\n", ADD),
        ("if (k == 0) {", "if (k == kAdded) {"),
        (CELL, ADDED),
    ]


FORMS: dict[str, Edits] = {
    "as it is": [],
    **{f"fma {rows}": on_the_fma_pipe(rows) for rows in (1, 2, 3)},
    "fence": [
        (HAND_OVER, HAND_OVER.replace("__threadfence_block();", 'asm volatile("fence.acq_rel.cta;" ::: "memory");'))
    ],
    "unfenced": [(HAND_OVER, HAND_OVER.replace("__threadfence_block();", ""))],
    "sleep": [(POLLING, f"{POLLING}    __nanosleep(20);\n")],
}


def edited(folder: Path, edits: Edits) -> Path:
    """Copy the kernels and change the inter-task one."""
    shutil.copytree(SOURCES, folder)
    path = folder / "batch.cu"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        if text.count(old) != 1:
            sys.exit(f"{path.name}: {old.strip()!r} is there {text.count(old)} times, expected once")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return folder


def biased(*arguments: Any) -> Any:
    """As `lane16`, with a bias that no score takes below 0."""
    lane = lane16(*arguments)
    more = max(-PAD_SCORE - lane.bias, 0) if lane is not None else 0
    return lane and replace(lane, bias=lane.bias + more, limit=lane.limit - more)


def checksum(scans: Scans) -> int:
    """Return the CRC-32 of all scores of a query of 375 residues."""
    codes = np.random.default_rng(5).integers(0, 20, 375).astype(np.uint8)
    group = scans.engine.prepare([scans.scoring.profile(codes)], Recurrence(scans.scoring, "local"))
    crc = 0
    for loaded in scans.chunks:
        crc = zlib.crc32(scans.engine.score(group, loaded).tobytes(), crc)
    return crc


def measure(lengths: Any, folder: Path) -> tuple[list[float], int, str]:
    """Return GCUPS of three groups of queries with the kernels of a folder, all scores' checksum, and the engine."""
    scans = Scans(lengths)
    with scans.engine:
        scans.engine.compiler.sources = folder
        groups = ([375], [1000], list(STANDARD))
        rates = [sum(group) * scans.residues / scans.scan(group) / 1e9 for group in groups]
        return rates, checksum(scans), scans.engine.description


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--lengths", type=Path, metavar="FILE.npy", help="int32 array of subject lengths")
    options = parser.parse_args()
    lengths = lengths_of(options.lengths)
    rows, checksums, description = [], set(), ""
    add: Callable[[tuple[str, ...]], None] = rows.append
    with tempfile.TemporaryDirectory(prefix="swsearch-gpu-") as temporary, replaced(queries, lane16=biased):
        for number, (name, edits) in enumerate(FORMS.items()):
            rates, crc, description = measure(lengths, edited(Path(temporary) / str(number), edits))
            checksums.add(crc)
            add((name, *(f"{rate:,.0f}" for rate in rates)))
    stamp = fingerprint()
    lines = [
        *heading(__file__, ["pycuda", "numpy"]), description, f"kernels {stamp.kernels}", f"engine  {stamp.engine}",
        f"{len(lengths):,} random subjects; best of three scans", "",
        *table(["form", "375 residues, GCUPS", "1,000 residues", "20 queries at once"], rows),
    ]  # fmt: skip
    if len(checksums) > 1:
        lines += ["", "SCORES DIFFER"]
    finish(lines, options.out)
    sys.exit(len(checksums) > 1)


if __name__ == "__main__":
    main()
