"""Which kernels, and which GPU engine around them, results are results of."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from swsearch.engines.gpu import compiler


class Fingerprint(NamedTuple):
    """Hashes of the sources that produced the results.

    Parameters
    ----------
    kernels : str
        SHA-256 of the kernels' sources, cuda/.
    engine : str
        SHA-256 of the Python files of the GPU engine, names and bytes.
    """

    kernels: str
    engine: str


def fingerprint() -> Fingerprint:
    """Return the hashes of the kernels and the engine that would run now."""
    digest = hashlib.sha256()
    for path in sorted(Path(compiler.__file__).parent.rglob("*.py")):
        digest.update(hashlib.sha256(path.name.encode()).digest() + hashlib.sha256(path.read_bytes()).digest())
    return Fingerprint(compiler.source_hash(), digest.hexdigest())
