"""Choice of the Python package that reaches CUDA's driver, without importing it."""

from __future__ import annotations

import importlib.util
import os
import sys

from swsearch.errors import check_choice

VARIABLE = "SWSEARCH_CUDA_DRIVER"
"""Environment variable that names the package."""

PACKAGES = {"pycuda": "pycuda", "cuda-bindings": "cuda.bindings"}
"""Modules of the packages, by the names that pip knows; the first that is installed is used."""

EXTRAS = {"pycuda": "pycuda", "cuda-bindings": "gpu"}
"""Extras of swsearch that install them."""


UNUSABLE = "engine gpu cannot be used: "
"""Beginning of error messages about GPUs."""


def chosen_package() -> str:
    """Return the package that `VARIABLE` names, else the first of `PACKAGES`, if it is installed; else "".

    Raises
    ------
    OptionError
        If the variable names no package that swsearch can use.
    """
    if wanted := os.environ.get(VARIABLE, ""):
        check_choice(VARIABLE, wanted, tuple(PACKAGES))
    return next((each for each in installed_packages() if wanted in ("", each)), "")


def installed_packages() -> list[str]:
    """Return the packages that are installed."""
    return [each for each, module in PACKAGES.items() if _is_installed(module)]


def why_no_package() -> str:
    """Say that no package is installed, and how to install one."""
    if wanted := os.environ.get(VARIABLE):
        return f"{wanted}, which {VARIABLE} names, is not installed; pip install 'swsearch[{EXTRAS[wanted]}]'"
    return "neither PyCUDA nor cuda-bindings is installed; pip install 'swsearch[gpu]' (guide: CPUs and GPUs)"


def is_driver_error(error: BaseException) -> bool:
    """Return whether an error is the driver's, by the module of its class."""
    return type(error).__module__.startswith(("pycuda", "swsearch.engines.gpu.cuda_bindings"))


def _is_installed(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False
