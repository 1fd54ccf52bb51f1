"""The database file's layout: names, types and constants.

The file is HDF5 after a user block of 512 bytes::

    user block                      readable text: format version, length of the file, place of the newest contents
    /                               attributes: what the file is, alphabet, layout constants
    /segments/0, /segments/1 ...    `PROTEIN_ARRAYS` or `DNA_ARRAYS` in each, and ``checksums``
    /contents/0, /contents/1 ...    the table of contents, JSON: one piece for the build and one for each append

Every array is contiguous, so that it has one place in the file, where it is written and read without HDF5.
``checksums`` has the CRC-32 of every `CHECKED_BYTES` of each array, in the order of the arrays' names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from swsearch.alphabet import DNA, PAD, PROTEIN
from swsearch.blocks import COLUMN_MULTIPLE, LANES
from swsearch.options.kinds import Mask, SubjectAlphabet

FORMAT_NAME = "swsearch database"
"""Beginning of the user block, and value of ``format`` in a table of contents."""

FORMAT_VERSION = 4
"""The layout that is written and read. `swsearch.db.convert` reads the layouts before it."""

USER_BLOCK = 512
"""Bytes before the HDF5 superblock; HDF5 allows 512 and its doublings."""

CHECKED_BYTES = 1 << 14
"""Bytes of an array under one CRC-32."""

OLD_MANIFEST = "swsearch volumes"
"""Value of ``format`` in manifests before format 4."""

LIBVER = ("v108", "v108")
"""HDF5's file format: 1.8's, the first whose own metadata carry checksums; every tool since 2008 reads it."""

COMMON_ARRAYS = {
    "headers": "u1",  # the header lines without '>', in input order, one after the other
    "header_offsets": "<i8",  # (n_subjects + 1,): in input order
    "mask_offsets": "<i8",  # (n_subjects + 1,): first interval of each subject, in input order
    "mask_starts": "<i4",  # (n_intervals,): soft-masked (lower case) residues, 0-based
    "mask_ends": "<i4",  # (n_intervals,): excluded
    "sources": "u1",  # JSON: a list of {path, sha256, bytes, records, residues}
}

PROTEIN_ARRAYS = {
    "residues": "u1",  # (n_columns, 64): the interleaved blocks, see swsearch.blocks
    "block_offsets": "<i8",  # (n_blocks + 1,): first column of each block
    "lengths": "<i4",  # (n_subjects,): sorted order, descending; equal lengths in input order
    "order": "<i8",  # (n_subjects,): place in the segment's input of each sorted subject
    **COMMON_ARRAYS,
}
"""Names and types of the arrays of a segment; every multi-byte number is little-endian."""

TANTAN_ARRAYS = {
    "tantan_offsets": "<i8",  # as mask_offsets, of what tantan masks
    "tantan_starts": "<i4",
    "tantan_ends": "<i4",
}
"""More arrays, of a database whose ``mask`` is tantan."""

TAXONOMY_ARRAYS = {
    "taxid_offsets": "<i8",  # (n_subjects + 1,): first taxid of each subject, in input order
    "taxids": "<i4",  # (n_taxids,): NCBI's numbers, ascending within a subject
    "taxa": "<i4",  # (n_taxa,): ascending: the taxa of the file's subjects and all above them
    "taxon_parents": "<i4",  # (n_taxa,): the taxon above each, the root's is itself
    "taxon_names": "u1",  # a line for each taxon: rank, scientific, common and BLAST name, tabs between them
    "merged_taxids": "<i4",  # (n_merged,): ascending: numbers that taxa had before
    "merged_into": "<i4",  # (n_merged,): what each became
}
"""More arrays, of a database with taxids. The first segment of a file has the taxa, those of the others are empty."""

DNA_ARRAYS = {
    "nucleotides": "u1",  # all records end to end, two letters a byte, the first in its upper half
    "record_lengths": "<i4",  # (n_subjects,): nucleotides of each record, in input order
    **COMMON_ARRAYS,
}
"""Names and types of the arrays of a segment of DNA. It has the records alone: reading frames are made of them when
they are searched."""

ARRAY_TYPES = PROTEIN_ARRAYS | TANTAN_ARRAYS | TAXONOMY_ARRAYS | DNA_ARRAYS
"""Types of all arrays, by name."""

LAYOUT: dict[str, int | str] = {
    "letters": PROTEIN.letters,
    "lanes": LANES,
    "pad": PAD,
    "column_multiple": COLUMN_MULTIPLE,
    "piece_bytes": CHECKED_BYTES,
}
"""Values of a file's layout, checked when it is opened."""


@dataclass(frozen=True)
class DatabaseKind:
    """Kind of a database; files that are searched together have the same mask and genetic code."""

    mask: Mask = "none"
    """Mask that searches apply by default."""
    genetic_code: int | None = None
    """NCBI's number of the code that DNA is translated by; None for proteins."""
    has_taxids: bool = False
    alphabet: SubjectAlphabet = "protein"
    """Meaning of the letters of proteins."""

    @cached_property
    def arrays(self) -> list[str]:
        """Names of a segment's arrays, ascending."""
        more = [*(TANTAN_ARRAYS if self.mask == "tantan" else ()), *(TAXONOMY_ARRAYS if self.has_taxids else ())]
        return sorted([*(PROTEIN_ARRAYS if self.genetic_code is None else DNA_ARRAYS), *more])

    @property
    def attributes(self) -> dict[str, int | str]:
        """Attributes of a file of this kind."""
        attributes: dict[str, int | str] = {"mask": self.mask, "taxids": int(self.has_taxids)}
        if self.genetic_code is not None:
            attributes |= {"genetic_code": self.genetic_code, "dna_letters": DNA.letters}
        if self.alphabet != "protein":
            attributes["alphabet"] = self.alphabet
        return attributes

    @property
    def description(self) -> str:
        """Description for messages."""
        if self.genetic_code is not None:
            return f"DNA to be translated by genetic code {self.genetic_code}"
        return "proteins" if self.alphabet == "protein" else f"letters of the alphabet {self.alphabet}"


def software() -> str:
    """Name this software and its version, for the file's attributes."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"swsearch {version('swsearch')}"
    except PackageNotFoundError:
        return "swsearch (not installed)"
