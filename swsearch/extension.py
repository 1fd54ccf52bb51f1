"""The compiled extension `_simd` and the instruction set that it uses, chosen here for every caller.

The names, from narrow to wide: ``scalar`` (whatever the compiler aims at by default), ``sse41``, ``avx2``,
``avx512bw`` (AVX-512 F, BW, DQ and VL) and ``avx512vbmi`` (and VBMI) on x86-64; ``scalar`` and ``neon`` on aarch64.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from swsearch.errors import EngineError, OptionError

SIMD_VARIABLE = "SWSEARCH_SIMD"
"""Environment variable that forces an instruction set by its name; empty or ``auto`` is the widest there is."""

NAME = "swsearch.engines.cpu._simd"
"""The extension's name as a module."""


@cache
def load() -> ModuleType:
    """Return `swsearch.engines.cpu._simd`, without importing the packages that it is in.

    Raises
    ------
    EngineError
        If it was not built, or cannot be loaded on this machine.
    """
    package, reason = Path(__file__).resolve().parent, f"No module named {NAME!r}"
    for folder in _folders(package):
        spec = PathFinder.find_spec(NAME, [str(folder)])
        if spec is None or spec.loader is None:
            continue
        try:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except ImportError as error:
            reason = str(error)
        else:
            return module
    remedy = "pip install swsearch"
    if (package.parent / "setup.cfg").is_file():
        remedy = f"pip install -e {package.parent}, which takes g++ or clang++"
    raise EngineError(
        f"{package}: expected the compiled extension {NAME} here, which cannot be imported ({reason}); build it: "
        f"{remedy}"
    )


def _folders(package: Path) -> Iterator[Path]:
    """Yield the folders in which it may be: that of this package, then those of installed ones.

    Python found the sources of a checkout first where ``python`` runs in the folder of ``pip install .``.
    """
    yield package / "engines" / "cpu"
    from importlib import metadata

    # several, because a checkout has an .egg-info of its own
    for distribution in metadata.distributions(name="swsearch"):
        yield Path(str(distribution.locate_file("swsearch/engines/cpu")))


@cache
def known_instruction_sets() -> tuple[str, ...]:
    """Return the names of all instruction sets, of this machine or not."""
    return tuple(name for name, _ in load().instruction_sets())


@cache
def instruction_sets() -> tuple[str, ...]:
    """Return the names of the instruction sets that this machine has, the widest first."""
    return tuple(name for name, available in reversed(load().instruction_sets()) if available)


def active_instruction_set() -> str:
    """Return the name of the instruction set to be used: the one that `SIMD_VARIABLE` forces, or the widest.

    Raises
    ------
    OptionError
        If what is forced is unknown, or if this machine lacks it.
    EngineError
        As for `load`.
    """
    forced = os.environ.get(SIMD_VARIABLE, "").strip()
    if forced in ("", "auto"):
        return instruction_sets()[0]
    if forced not in known_instruction_sets():
        raise OptionError(
            SIMD_VARIABLE, forced, f"one of {', '.join(('auto', *known_instruction_sets()))}, or nothing"
        )
    if forced not in instruction_sets():
        raise OptionError(
            SIMD_VARIABLE, forced, f"an instruction set of this machine: {', '.join(instruction_sets())}"
        )
    return forced
