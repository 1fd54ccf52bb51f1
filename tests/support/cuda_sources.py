"""Kernels in the CUDA sources, read with regular expressions: names and parameters."""

from __future__ import annotations

import re
from pathlib import Path

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{")
_PARAMETER = re.compile(r"(.*?[\s*])(\w+)", re.DOTALL)

LETTERS = {"int": "i", "u32": "I", "unsigned": "I", "long long": "q", "unsigned long long": "Q"}
"""Types of parameters that are no addresses, as `struct` has them."""


def kernel_parameters(source: Path) -> dict[str, list[tuple[str, str]]]:
    """Return name and type, a letter of `struct`, of each parameter of each kernel in a source, in order."""
    text = _COMMENT.sub("", source.read_text())
    kernels = {name: [_parameter(part) for part in inside.split(",")] for name, inside in _KERNEL.findall(text)}
    assert len(kernels) == text.count("__global__"), f"{source.name}: a kernel that is written in another way"
    return kernels


def _parameter(declaration: str) -> tuple[str, str]:
    found = _PARAMETER.fullmatch(declaration.strip())
    assert found is not None, declaration
    kind, name = found.groups()
    words = [word for word in kind.replace("*", " * ").split() if word not in ("const", "__restrict__")]
    return name, "P" if "*" in words else LETTERS[" ".join(words)]
