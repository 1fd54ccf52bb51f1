"""How many cells a cycle the CPU engine's scan could do, from its instructions and the processor's rates.

The model: the instructions that compute a vector of cells, n in all and n_k of kind k, take at least
max(n / fastest rate, n_k / rate of k) cycles, and all instructions at least as many as it takes to begin them.
Rates are measured by ``cpu_rates.c``; instructions are counted in the extension that was built, in the inner loop of
local mode in 8 bits (``fill`` of ``cpu/search/scan_kernel.hpp``), and divided by the vectors of cells that it
computes. Loads and stores, waiting for results, and what is outside of the loop are left out, so that this is an
upper bound.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.common import command, table
from swsearch import extension

HERE = Path(__file__).resolve().parent

SOURCES = HERE.parents[1] / "cpu"
"""Of the extension."""

KINDS = {"paddsb": "sum", "psubb": "difference", "pmaxsb": "maximum"}
"""Kinds of the loop's arithmetic instructions."""

BITS = {"scalar": 128, "sse41": 128, "avx2": 256, "avx512bw": 512, "avx512vbmi": 512}
"""Width of a vector."""


@dataclass(frozen=True)
class Loop:
    """Instructions of the inner loop; ``columns`` vectors of cells are computed each time round.

    Parameters
    ----------
    columns : int
        Vectors of cells.
    instructions : int
        All of them; an operand in memory belongs to the instruction that uses it.
    kinds : dict of str to int
        Those that compute with vectors, by kind; ``other`` are those whose rate is not measured.
    moves : int
        From register to register.
    memory : int
        Vector loads and stores, also as operands.
    """

    columns: int
    instructions: int
    kinds: dict[str, int]
    moves: int
    memory: int

    @property
    def computing(self) -> int:
        """Instructions that compute with vectors."""
        return sum(self.kinds.values())


@dataclass(frozen=True)
class Rates:
    """Rates of a processor.

    Parameters
    ----------
    ghz : float
        Cycles a nanosecond.
    per_cycle : dict of str to float
        ``moves``, and ``sum``, ``difference``, ``maximum`` and ``cell`` (their mix) with a width after each.
    """

    ghz: float
    per_cycle: dict[str, float]

    def of(self, kind: str, instructions: str) -> float:
        """Return the rate of a kind at an instruction set's width; what was not measured is as fast as anything."""
        return self.per_cycle.get(f"{kind}{BITS[instructions]}", self.fastest(instructions))

    def fastest(self, instructions: str) -> float:
        """Return the highest rate of any kind at an instruction set's width."""
        return max(self.per_cycle[f"{kind}{BITS[instructions]}"] for kind in KINDS.values())


def why_not() -> str:
    """Say why nothing can be measured or counted here; empty if it can."""
    if platform.machine() != "x86_64":
        return f"this is {platform.machine()}, and cpu_rates.c is for x86-64"
    missing = [program for program in (_compiler(), "objdump") if shutil.which(program) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


def _compiler() -> str:
    return os.environ.get("CC", "gcc").split()[0]


def measure_rates() -> Rates:
    """Compile and run ``cpu_rates.c``."""
    with tempfile.TemporaryDirectory(prefix="swsearch-rates-") as folder:
        program = Path(folder) / "cpu_rates"
        command(_compiler(), "-O2", HERE / "cpu_rates.c", "-o", program)
        lines = dict(line.split() for line in command(program).splitlines())
    ghz = float(lines.pop("clock"))
    return Rates(ghz, {name: float(rate) / ghz for name, rate in lines.items()})


def count_loop(instructions: str) -> Loop | None:
    """Count the inner loop of an instruction set; None where the extension has no symbols."""
    library = extension.load().__file__
    symbol = re.compile(rf"\S*8swsearch{len(instructions)}{instructions}4fillIaLNS0_5CellsE0ELNS0_2ByE0E\S*")
    found = symbol.search(command("objdump", "-t", library))
    if found is None:
        return None
    listing = command("objdump", "-d", "--no-show-raw-insn", f"--disassemble={found[0]}", library)
    return _count(_inner_loop(listing), _columns(instructions))


def _columns(instructions: str) -> int:
    """Return the vectors of cells that are computed at a time, from the sources."""
    name = "avx512" if instructions.startswith("avx512") else instructions
    (header,) = SOURCES.rglob(f"vector_{name}.hpp")
    text = header.read_text(encoding="utf-8")
    return int(re.findall(r"kColumns = (\d+)", text)[0])


def _inner_loop(listing: str) -> list[str]:
    """Return the longest run of instructions from where a jump back leads up to it, that has no other inside."""
    lines = re.findall(r"^\s+([0-9a-f]+):\s+(\S.*)$", listing, re.MULTILINE)
    places = {address: place for place, (address, _) in enumerate(lines)}
    loop: list[str] = []
    end = 0
    for place, (_, text) in enumerate(lines):
        jump = re.match(r"j\w+\s+([0-9a-f]+)", text)
        target = places.get(jump[1], place) if jump else place
        if end <= target < place:
            end = place + 1
            loop = max(loop, [text for _, text in lines[target:end]], key=len)
    return loop


def _count(loop: list[str], columns: int) -> Loop:
    kinds = dict.fromkeys([*KINDS.values(), "other"], 0)
    moves = memory = 0
    for text in loop:
        name = text.split()[0].removeprefix("v")
        if not re.search(r"%[xyz]mm", text):
            continue
        memory += "(" in text
        if name.startswith("mov"):
            moves += "(" not in text
        else:
            kinds[KINDS.get(name, "other")] += 1
    return Loop(columns, len(loop), kinds, moves, memory)


def bound(loop: Loop, rates: Rates, instructions: str) -> tuple[float, str]:
    """Return the cells a cycle that the model allows, and what limits them."""
    cycles = {"computing": loop.computing / rates.fastest(instructions)}
    cycles |= {f"{kind}s": n / rates.of(kind, instructions) for kind, n in loop.kinds.items() if kind != "other"}
    cycles["beginning"] = loop.instructions / rates.per_cycle["moves"]
    limit = max(cycles, key=lambda name: cycles[name])
    return BITS[instructions] / 8 * loop.columns / cycles[limit], limit


def report(reached: Mapping[str, Sequence[float]], padded: float) -> list[str]:
    """Compare with the bound.

    Parameters
    ----------
    reached : mapping of str to sequence of float
        GCUPS on one thread, by instruction set.
    padded : float
        Cells that are computed for each one that counts.
    """
    reason = why_not()
    if reason:
        return [f"Cells a cycle: not measured, {reason}.", ""]
    rates = measure_rates()
    return [
        f"Instructions a cycle, at {rates.ghz:.2f} GHz; of any, {rates.per_cycle['moves']:.2f} can be begun:", "",
        *_rates_table(rates), "",
        "Instructions of the inner loop (local mode, 8 bits) for a vector of cells: all, those that compute, moves",
        "between registers, and loads and stores, operands in memory included. Bound: cells a cycle if the computing",
        "ones, the saturated sums alone, or all that must be begun, took as long as they must, whichever is least.",
        "Reached: one thread, by processor time, over the queries; in the last column with padding,",
        f"{padded:.3f} cells computed for each that counts (with narrower vectors a little less).", "",
        *_bound_table(reached, padded, rates), "",
    ]  # fmt: skip


def _rates_table(rates: Rates) -> list[str]:
    kinds = [*KINDS.values(), "cell"]
    rows = [
        [f"{bits} bits", *(f"{rates.per_cycle[f'{kind}{bits}']:.2f}" for kind in kinds)]
        for bits in (128, 256, 512)
        if f"cell{bits}" in rates.per_cycle
    ]
    return table(["", "saturated sum", "difference", "maximum", "mix of a cell (1 : 3 : 6)"], rows)


def _bound_table(reached: Mapping[str, Sequence[float]], padded: float, rates: Rates) -> list[str]:
    rows = []
    for name, speeds in reached.items():
        loop = count_loop(name)
        if loop is None:
            return ["The extension has no symbols, so that its inner loops were not counted."]
        most, limit = bound(loop, rates, name)
        parts = [loop.instructions, loop.computing, loop.moves, loop.memory]
        low, high = min(speeds) / rates.ghz, max(speeds) / rates.ghz
        rows.append(
            [
                name, BITS[name] // 8, *(f"{part / loop.columns:.1f}" for part in parts), f"{most:.2f}",
                f"{most * rates.ghz:.1f}", limit, f"{low:.2f} - {high:.2f}", f"{low / most:.0%} - {high / most:.0%}",
                f"{high * padded / most:.0%}",
            ]
        )  # fmt: skip
    columns = [
        "", "lanes", "instructions", "computing", "moves", "loads, stores", "bound, cells a cycle", "in GCUPS",
        "set by", "reached, cells a cycle", "of the bound", "best with padding",
    ]  # fmt: skip
    return table(columns, rows)
