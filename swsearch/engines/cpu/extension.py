"""The compiled extension `_simd` and the instruction set that it uses, chosen here for every caller.

The names, from narrow to wide: ``scalar`` (whatever the compiler aims at by default), ``sse41``, ``avx2``,
``avx512bw`` (AVX-512 F, BW, DQ and VL) and ``avx512vbmi`` (and VBMI) on x86-64; ``scalar`` and ``neon`` on aarch64.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from swsearch.errors import EngineError, OptionError

SIMD_VARIABLE = "SWSEARCH_SIMD"
"""Environment variable that forces an instruction set by its name; empty or ``auto`` is the widest there is."""


@cache
def load() -> ModuleType:
    """Return `swsearch.engines.cpu._simd`.

    Raises
    ------
    EngineError
        If it was not built, or cannot be loaded on this machine.
    """
    try:
        from swsearch.engines.cpu import _simd
    except ImportError as error:
        if (installed := _load_installed()) is not None:
            return installed
        package = Path(__file__).resolve().parents[2]
        remedy = "pip install swsearch"
        if (package.parent / "setup.cfg").is_file():
            remedy = f"pip install -e {package.parent}, which takes g++ or clang++"
        raise EngineError(
            f"{package}: expected the compiled extension swsearch.engines.cpu._simd here, which cannot be "
            f"imported ({error}); build it: {remedy}"
        ) from error
    return _simd


def _load_installed() -> ModuleType | None:
    """Load the extension of the installed package where Python found the sources of a checkout first.

    That is what ``python`` does in the folder where ``pip install .`` was run.
    """
    # several, because a checkout has an .egg-info of its own
    for distribution in metadata.distributions(name="swsearch"):
        for path in sorted(Path(str(distribution.locate_file("swsearch/engines/cpu"))).glob("_simd.*")):
            spec = importlib.util.spec_from_file_location("swsearch.engines.cpu._simd", path)
            if path.suffix in (".so", ".pyd") and spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    return None


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
        As for `extension`.
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
