"""A compiled kernel, read from its cubin: registers and stack, spills, the instructions of a loop.

The cubin is an ELF file that states registers and stack, so that they need no other program. Instructions need
``nvdisasm``, which pip installs (nvidia-cuda-nvdisasm, 5 MB) and every CUDA toolkit has. It takes a third of a
second, however small the kernel is.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

RECURRENCE = frozenset({"VIADDMNMX", "VIMNMX3", "VIMNMX"})
"""Opcodes that the recurrence is made of where the architecture has them (sm_90), and little else is."""

_FUNCTION = re.compile(r"^\.text\.(\w+):")
_LABEL = re.compile(r"^(\.L_x_\w+):")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][^;]*?)\s*(?:\(\*.*?\*\))?\s*;")
_TARGET = re.compile(r"^BRA\b.*`\((\.L_x_\w+)\)")

_REGISTER_COUNT, _FRAME_SIZE = 0x2F, 0x11  # EIATTR_ numbers, as cuobjdump -elf names them
_SIZED_VALUE = 0x04  # EIFMT_SVAL: the two bytes that follow are a length; otherwise they are the value


@cache
def find_disassembler() -> str | None:
    """Return the path of nvdisasm: on PATH, in a CUDA toolkit or in pip's package; None if there is none."""
    places = [Path(found)] if (found := shutil.which("nvdisasm")) else []
    toolkits = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places += [Path(folder) / "bin" / "nvdisasm" for folder in [*toolkits, "/usr/local/cuda"]]
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        places += sorted(Path(folder).glob("*/bin/nvdisasm"))
    return next((str(place) for place in places if place.is_file()), None)


@dataclass(frozen=True)
class Resources:
    """Resources that a thread of a kernel needs.

    Parameters
    ----------
    registers : int
        Registers of 32 bits.
    frame : int
        Bytes of local memory; 0 means that nothing was spilled.
    """

    registers: int
    frame: int


@dataclass(frozen=True)
class Function:
    """The code of one kernel.

    Parameters
    ----------
    name : str
        As it is launched.
    instructions : tuple of str
        In order, without predicates and comments.
    labels : dict of str to int
        Index of the instruction that each label stands before.
    """

    name: str
    instructions: tuple[str, ...]
    labels: dict[str, int]

    @property
    def spill_stores(self) -> int:
        """Bytes stored by local stores, each counted once, as ``ptxas -v`` counts them."""
        return _local_bytes(self.instructions, "STL")

    @property
    def spill_loads(self) -> int:
        """Bytes loaded by local loads, each counted once, as ``ptxas -v`` counts them."""
        return _local_bytes(self.instructions, "LDL")

    @cached_property
    def inner_loop(self) -> Loop:
        """The innermost loop that holds most of the recurrence."""
        whole = _recurrence(self.instructions)
        bodies = [body for body in self._loops() if 2 * _recurrence(body) > whole]
        assert bodies, f"{self.name}: no loop holds most of the {whole} instructions of the recurrence"
        return Loop(min(bodies, key=len))

    def _loops(self) -> Iterator[tuple[str, ...]]:
        for index, instruction in enumerate(self.instructions):
            target = _TARGET.match(instruction)
            if target and self.labels.get(target[1], index + 1) <= index:
                yield self.instructions[self.labels[target[1]] : index + 1]


@dataclass(frozen=True)
class Loop:
    """The instructions between a label and the branch back to it."""

    instructions: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.instructions)

    @cached_property
    def opcodes(self) -> Counter[str]:
        """How often each opcode stands in it, without its modifiers."""
        return Counter(_opcode(instruction) for instruction in self.instructions)

    @property
    def local_bytes(self) -> int:
        """Bytes that local loads and stores move in one turn."""
        return _local_bytes(self.instructions, "LDL") + _local_bytes(self.instructions, "STL")


def resources(cubin: bytes) -> dict[str, Resources]:
    """Read what the kernels of a cubin need, by name."""
    registers, frames = _attribute(cubin, _REGISTER_COUNT), _attribute(cubin, _FRAME_SIZE)
    return {name: Resources(count, frames[name]) for name, count in registers.items()}


def disassemble(cubin: bytes) -> dict[str, Function]:
    """Read the code of a cubin's kernels, by name; `find_disassembler` must have found one."""
    disassembler = find_disassembler()
    assert disassembler is not None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([disassembler, "-c", file.name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{disassembler}: {done.stderr or done.stdout}"
    functions = {}
    for name, lines in _functions(done.stdout):
        labels: dict[str, int] = {}
        instructions: list[str] = []
        for line in lines:
            if label := _LABEL.match(line):
                labels[label[1]] = len(instructions)
            elif instruction := _INSTRUCTION.match(line):
                instructions.append(instruction[1])
        functions[name] = Function(name, tuple(instructions), labels)
    return functions


def _functions(text: str) -> Iterator[tuple[str, list[str]]]:
    name = ""
    lines: list[str] = []
    for line in text.splitlines():
        if start := _FUNCTION.match(line):
            if name:
                yield name, lines
            name, lines = start[1], []
        lines.append(line)
    if name:
        yield name, lines


def _opcode(instruction: str) -> str:
    return re.split(r"[.\s]", instruction, maxsplit=1)[0]


def _recurrence(instructions: tuple[str, ...]) -> int:
    return sum(_opcode(instruction) in RECURRENCE for instruction in instructions)


def _local_bytes(instructions: tuple[str, ...], opcode: str) -> int:
    words = [instruction.split()[0].split(".") for instruction in instructions]
    sizes = {"64": 8, "128": 16}
    return sum(next((sizes[part] for part in word if part in sizes), 4) for word in words if word[0] == opcode)


def _attribute(cubin: bytes, wanted: int) -> dict[str, int]:
    """Read one attribute of every function from the section .nv.info: pairs of a symbol's index and a value."""
    sections = _sections(cubin)
    info = next(content for name, _, content in sections if name == ".nv.info")
    symbols, names = _symbols(sections)
    values = {}
    place = 0
    while place < len(info):
        kind, attribute, size = struct.unpack_from("<BBH", info, place)
        place += 4
        if kind == _SIZED_VALUE:
            if attribute == wanted:
                symbol, value = struct.unpack_from("<II", info, place)
                values[_string(names, symbols[symbol])] = value
            place += size
    return values


def _sections(cubin: bytes) -> list[tuple[str, int, bytes]]:
    """List the sections of an ELF file of 64 bits: name, link, content."""
    start = struct.unpack_from("<Q", cubin, 40)[0]
    entry, count, of_names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQII", cubin, start + entry * index) for index in range(count)]
    names = cubin[headers[of_names][4] :]
    no_content = 8  # SHT_NOBITS
    return [
        (_string(names, header[0]), header[6], b"" if header[1] == no_content else cubin[header[4] :][: header[5]])
        for header in headers
    ]


def _symbols(sections: list[tuple[str, int, bytes]]) -> tuple[list[int], bytes]:
    """Return where the name of each symbol begins, and the names."""
    link, content = next((link, content) for name, link, content in sections if name == ".symtab")
    return [name for name, *_ in struct.iter_unpack("<IBBHQQ", content)], sections[link][2]


def _string(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()
