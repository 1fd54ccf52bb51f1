"""The version of the installed package."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """Return the version; of a checkout that was never installed, a name that says so."""
    try:
        return metadata.version("swsearch")
    except metadata.PackageNotFoundError:
        return "0+not.installed"
