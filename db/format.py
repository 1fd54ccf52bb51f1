"""The database file's layout: names, types, checksums and the user block; nothing here reads FASTA.

The file is HDF5 after a user block of 512 bytes::

    user block                      readable text: format version, length and SHA-256 of all that follows
    /                               attributes: what the file is, counts, alphabet, layout constants
    /segments/0, /segments/1 ...    one group for the build and one for each append; `DATASETS` in each
    /segments/0/checksums           for each dataset the CRC-32 of every `BYTES_PER_CHECKSUM` of its bytes

Every dataset is contiguous, so that it has one place in the file: it is written and can be read or mapped
there without HDF5.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

FORMAT_NAME = "swsearch database"
"""The root attribute ``format`` and the first line of the user block."""

FORMAT_VERSION = 3
"""The newest layout that this module writes and reads. A database without a mask in force is of version 1, so that a
reader that knows no masks can read this one, and only this one; one with optional parts is of version 3, and one of
DNA, which is searched in its reading frames."""

USER_BLOCK = 512
"""Bytes before the HDF5 superblock; HDF5 allows 512 and its doublings."""

BYTES_PER_CHECKSUM = 1 << 20
"""Bytes of a dataset under one CRC-32."""

LIBVER = ("v108", "v108")
"""HDF5's file format: 1.8's, the first whose own metadata carry checksums; every tool since 2008 reads it."""

DATASETS = {
    "residues": "u1",  # (n_columns, 64): the interleaved blocks, see swsearch.blocks
    "block_offsets": "<i8",  # (n_blocks + 1,): first column of each block
    "lengths": "<i4",  # (n_subjects,): sorted order, descending; equal lengths in input order
    "order": "<i8",  # (n_subjects,): place in the segment's input of each sorted subject
    "headers": "u1",  # the header lines without '>', in input order, one after the other
    "header_offsets": "<i8",  # (n_subjects + 1,): in input order
    "mask_offsets": "<i8",  # (n_subjects + 1,): first interval of each subject, in input order
    "mask_starts": "<i4",  # (n_intervals,): soft-masked (lower case) residues, 0-based
    "mask_ends": "<i4",  # (n_intervals,): excluded
    "sources": "u1",  # JSON: a list of {path, sha256, bytes, records, residues}
}
"""Names and types of a segment's datasets; every multi-byte number is little-endian."""

TANTAN_DATASETS = {
    "tantan_offsets": "<i8",  # as mask_offsets, of what tantan masks
    "tantan_starts": "<i4",
    "tantan_ends": "<i4",
}
"""More datasets, of a database whose root attribute ``mask`` is tantan; without a mask it has no such attribute."""

PART_DATASETS: dict[str, dict[str, str]] = {
    "taxonomy": {
        "taxid_offsets": "<i8",  # (n_subjects + 1,): first taxid of each subject, in input order
        "taxids": "<i4",  # (n_taxids,): NCBI's numbers, ascending within a subject
        "taxa": "<i4",  # (n_taxa,): ascending: the taxa of the subjects and all above them
        "taxon_parents": "<i4",  # (n_taxa,): the taxon above each, the root's is itself
        "taxon_names": "u1",  # a line for each taxon: rank, scientific, common and BLAST name, tabs between them
        "merged_taxids": "<i4",  # (n_merged,): ascending: numbers that taxa had before
        "merged_into": "<i4",  # (n_merged,): what each became
        "known_taxids": "u1",  # zlib: the numbers of all taxa there were, see swsearch.db.taxonomy
    },
}
"""More datasets, of a database whose root attribute ``parts`` names what they are for; one without has no such
attribute."""

DNA_DATASETS = {
    "nucleotides": "u1",  # all records end to end, two letters a byte, the first in its upper half
    "record_lengths": "<i4",  # (n_subjects,): nucleotides of each record, in input order
    **{name: kind for name, kind in DATASETS.items() if name.startswith(("header", "mask_")) or name == "sources"},
}
"""Names and types of the datasets of a segment of DNA, of a database whose root attribute ``genetic_code`` says how
it is translated. It has the records alone: reading frames are made of them when they are searched."""

DATASET_TYPES = (
    DATASETS
    | TANTAN_DATASETS
    | DNA_DATASETS
    | {name: kind for part in PART_DATASETS.values() for name, kind in part.items()}
)
"""Types of all datasets, by name."""

Parts = tuple[str, ...]
"""The optional parts that a database has: keys of `PART_DATASETS`, in alphabetical order."""


def datasets_of(mask: str, parts: Parts = (), genetic_code: int | None = None) -> list[str]:
    """Return the names of a segment's datasets in a database with this mask in force, and these optional parts.

    With a genetic code it is one of DNA.
    """
    return [
        *(DATASETS if genetic_code is None else DNA_DATASETS),
        *(TANTAN_DATASETS if mask == "tantan" else ()),
        *(n for part in parts for n in PART_DATASETS[part]),
    ]


def version_of(mask: str, parts: Parts = (), genetic_code: int | None = None) -> int:
    """Return the format version of a database with this mask in force, and these optional parts, or of one of DNA."""
    if parts or genetic_code is not None:
        return 3
    return 1 if mask == "none" else 2


def parts_in(value: object) -> Parts:
    """Return the parts that a root attribute names, words in alphabetical order.

    Raises
    ------
    ValueError
        If one is not known, or they are not in order.
    """
    names = tuple(value.split()) if isinstance(value, str) else ()
    if not names or list(names) != sorted({*names} & {*PART_DATASETS}):
        raise ValueError(f"parts is {value!r}, expected some of {', '.join(PART_DATASETS)}")
    return names


HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

MANIFEST_FORMAT = "swsearch volumes"
"""What a manifest of volumes, a JSON file, says under ``format``; see `swsearch.db.manifest`."""

MANIFEST_HEAD = 1 << 12
"""Bytes at the beginning of a file in which a manifest must say what it is."""


def software() -> str:
    """Name this software and its version, for the file's attributes."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"swsearch {version('swsearch')}"
    except PackageNotFoundError:
        return "swsearch (not installed)"


def n_checksums(n_bytes: int) -> int:
    """Count the checksums of a dataset of ``n_bytes`` bytes."""
    return -(-n_bytes // BYTES_PER_CHECKSUM)


def checksums(data: Any) -> list[int]:
    """Compute the CRC-32 of every `BYTES_PER_CHECKSUM` of a contiguous buffer."""
    view = memoryview(data).cast("B") if len(data) else memoryview(b"")
    return [zlib.crc32(view[at : at + BYTES_PER_CHECKSUM]) for at in range(0, len(view), BYTES_PER_CHECKSUM)]


@dataclass(frozen=True)
class UserBlock:
    """What the first 512 bytes say about the rest of the file.

    Parameters
    ----------
    version : int
        Format version.
    n_bytes : int
        Length of the file after the user block.
    sha256 : str
        SHA-256 of these bytes, lower-case hexadecimal.
    """

    version: int
    n_bytes: int
    sha256: str

    def pack(self) -> bytes:
        """Write the block, 512 bytes; there is exactly one way to write it."""
        lines = (FORMAT_NAME, f"format {self.version}", f"bytes {self.n_bytes}", f"sha256 {self.sha256}", "")
        return "\n".join(lines).encode("ascii").ljust(USER_BLOCK, b"\0")

    @classmethod
    def parse(cls, block: bytes) -> UserBlock | None:
        """Read a block; None if it is not ours. A newer version may say more after its second line."""
        found = re.match(rb"%s\nformat (\d{1,9})\n" % FORMAT_NAME.encode(), block)
        if not found:
            return None
        rest = re.match(rb"bytes (\d{1,18})\nsha256 ([0-9a-f]{64})\n", block[found.end() :])
        n_bytes, sha256 = (int(rest[1]), rest[2].decode()) if rest else (-1, "")
        return cls(int(found[1]), n_bytes, sha256)


def read_user_block(path: str | os.PathLike[str]) -> UserBlock | None:
    """Read a file's user block; None if it is not that of a database."""
    with Path(path).open("rb") as file:
        return UserBlock.parse(file.read(USER_BLOCK))


def is_manifest(path: str | os.PathLike[str]) -> bool:
    """Say whether a file is a manifest of volumes, by how it begins; a missing or unreadable file is none."""
    name = os.fspath(path)
    try:
        number = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        # nothing is read from a pipe: looking would swallow what stands there
        head = os.pread(number, MANIFEST_HEAD, 0) if stat.S_ISREG(os.fstat(number).st_mode) else b""
    except OSError:
        return False
    finally:
        os.close(number)
    begins = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    return begins and re.search(rb'"format"\s*:\s*"%s"' % MANIFEST_FORMAT.encode(), head) is not None


def is_database(path: str | os.PathLike[str]) -> bool:
    """Say whether a file is a database: HDF5, or a manifest of volumes, which a FASTA file never is.

    Parameters
    ----------
    path : str or path
        Any file name; a missing or unreadable file is no database.

    Returns
    -------
    bool
        True if HDF5's signature stands at offset 0, 512, 1024 or a further doubling, or if it is JSON that says that
        it names volumes. Whether the file is one of ours, `Database.open` says.
    """
    return _is_hdf5(path) or is_manifest(path)


def _is_hdf5(path: str | os.PathLike[str]) -> bool:
    try:
        with Path(path).open("rb") as file:
            if not file.seekable():  # a pipe: looking would swallow what stands there
                return False
            size = os.fstat(file.fileno()).st_size
            at = 0
            while at < size:
                file.seek(at)
                if file.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE:
                    return True
                at = at * 2 if at else USER_BLOCK
    except (OSError, ValueError):
        pass
    return False


def hash_rest(file: BinaryIO) -> tuple[int, str]:
    """Hash all of a file after its user block; return its length and SHA-256."""
    digest = hashlib.sha256()
    n_bytes = 0
    file.seek(USER_BLOCK)
    while piece := file.read(BYTES_PER_CHECKSUM):
        digest.update(piece)
        n_bytes += len(piece)
    return n_bytes, digest.hexdigest()


def fixed_text(value: str) -> np.bytes_:
    """Make a text attribute of fixed length: variable ones live in a heap that few tools read straight."""
    text: np.bytes_ = np.bytes_(value.encode("utf-8"))
    return text
