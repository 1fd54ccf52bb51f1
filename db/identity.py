"""What tells one database from another: its content, whatever its name, its age and how it is kept."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np

from swsearch.db.contents import Contents
from swsearch.db.format import BYTES_PER_CHECKSUM
from swsearch.db.hdf5_structure import StoredDataset
from swsearch.db.source import Source

_NO_CONTENT = {"sources"}
"""Datasets that say where the content came from."""


def identity_of(source: Source, contents: Contents) -> str:
    """Return what two databases have in common only if a search finds the same in both.

    It is made of the checksums that every mebibyte has, which are stored in a file, so that little is read. In memory
    they are computed, and are the same.

    Parameters
    ----------
    source : Source
        The bytes.
    contents : Contents
        Where they hold what.

    Returns
    -------
    str
        SHA-256, lower-case hexadecimal.
    """
    digest = hashlib.sha256(f"mask {contents.mask}\n".encode())
    for segment in contents.segments:
        for name, dataset in segment.datasets.items():
            if name not in _NO_CONTENT:
                digest.update(f"{name} {dataset.dtype} {dataset.shape}\n".encode())
                stored = segment.checksums[name]
                sums = _computed(source, dataset) if source.trusted else source.read(stored.offset, stored.n_bytes)
                digest.update(sums)
    return digest.hexdigest()


def _computed(source: Source, dataset: StoredDataset) -> bytes:
    """Compute a dataset's checksums, as a file has them."""
    end = dataset.offset + dataset.n_bytes
    places = range(dataset.offset, end, BYTES_PER_CHECKSUM)
    sums = [zlib.crc32(source.read(at, min(BYTES_PER_CHECKSUM, end - at))) for at in places]
    return np.array(sums, dtype="<u4").tobytes()
