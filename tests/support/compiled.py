"""Where tests keep what compilers made, for other tests, other processes and the next run.

Whoever writes there names a file by everything that it is made of, and puts it there whole.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

DAYS = 14
"""A file that is older is removed, and made again if it is still wanted."""

_chosen: list[Path] = []


def use(path: Path) -> None:
    """Keep things in a folder beyond the end of this process; what is old goes."""
    _chosen[:] = [path]
    oldest = time.time() - DAYS * 86_400
    for file in path.glob("*/*"):
        with suppress(FileNotFoundError):  # another process removed it first
            if file.stat().st_mtime < oldest:
                file.unlink()


def folder(name: str) -> Path:
    """Return the folder for one kind of things."""
    path = (_chosen[0] if _chosen else Path(_temporary().name)) / name
    path.mkdir(parents=True, exist_ok=True)
    return path


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that goes when the interpreter ends."""
    return tempfile.TemporaryDirectory(prefix="swsearch_compiled_")
