"""Whether a worker runs the same program: only then are its results those of this process."""

from __future__ import annotations

import hashlib
import platform
import sys
from functools import cache
from importlib import metadata, resources
from pathlib import Path

from swsearch.version import version

SOURCE_SUFFIXES = (".py", ".txt", ".cu", ".cuh")
"""Ends of the names of files that decide what a search finds."""

MUST_EQUAL = {
    "swsearch": "swsearch",
    "digest": "the sources of swsearch",
    "python": "Python",
    "dask": "dask",
    "distributed": "distributed",
}
"""What must be equal, and what messages call it."""


@cache
def program() -> dict[str, str]:
    """Return the versions that must be equal, and a digest of the package's sources."""
    return {
        "swsearch": version(),
        "digest": _digest(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "dask": _version("dask"),
        "distributed": _version("distributed"),
    }


def difference(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """Return what differs, as text for people; nothing if all is equal."""
    found = []
    for key, name in MUST_EQUAL.items():
        its, own = theirs.get(key, "none"), ours[key]
        if its != own:
            short = key == "digest"
            found.append(f"{name} {its[:8]}, here {own[:8]}" if short else f"{name} {its}, here {own}")
    return "; ".join(found)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        module = sys.modules.get(name)
        return str(getattr(module, "__version__", "unknown"))


def _digest() -> str:
    """Return the digest of what a wheel brings, in Python, CUDA and tables.

    It is that of a checkout of the same sources too, wherever they lie and whatever ends their lines. The extension's
    binary is no part of it: compilers make others of the same sources.
    """
    whole = hashlib.sha256()
    for package in ("swsearch", "swsearch.db", "swsearch.cuda"):
        folder = Path(str(resources.files(package).joinpath("x"))).parent
        for inside in sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")):
            # in an installed package these are folders of swsearch, in a checkout they stand beside it
            if package == "swsearch" and inside.startswith(("db/", "cuda/")):
                continue
            path = folder / inside
            is_hidden = inside.startswith(".") or "/." in inside  # as what editors leave
            if path.suffix not in SOURCE_SUFFIXES or is_hidden or not path.is_file():
                continue
            whole.update(f"{package}/{inside}\0".encode())
            whole.update(hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).digest())
    return whole.hexdigest()
