"""What a database is made of: its attributes, and for each segment its attributes and datasets.

This is the one gate to a file's structure: nothing else asks HDF5 for an object.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any

from swsearch.alphabet import DNA, PAD, PROTEIN
from swsearch.blocks import COLUMN_MULTIPLE, LANES
from swsearch.db.format import (
    BYTES_PER_CHECKSUM,
    DATASET_TYPES,
    FORMAT_NAME,
    FORMAT_VERSION,
    USER_BLOCK,
    Parts,
    datasets_of,
    n_checksums,
    parts_in,
    version_of,
)
from swsearch.db.hdf5_messages import StructureError
from swsearch.db.hdf5_structure import StoredDataset, StoredGroup, Structure
from swsearch.db.source import FileSource, too_new
from swsearch.errors import DatabaseDamageError, DatabaseError
from swsearch.options.words import MASKS, Mask

Attributes = dict[str, int | str]

MOST_SEGMENTS = 100_000
"""More than anybody appends: each append copies the file."""

ROW = {"residues": (LANES,)}
"""What the shape of each dataset holds after its number of rows."""


@dataclass(frozen=True)
class SegmentContents:
    """One segment.

    Parameters
    ----------
    name : str
        Its path in the file.
    attributes : dict of str to (int or str)
        What it says of itself.
    datasets, checksums : dict of str to StoredDataset
        By the names of `DATASET_TYPES`.
    """

    name: str
    attributes: Attributes
    datasets: dict[str, StoredDataset]
    checksums: dict[str, StoredDataset]


@dataclass(frozen=True)
class Contents:
    """A database.

    Parameters
    ----------
    attributes : dict of str to (int or str)
        What it says of itself.
    mask : {"none", "lower", "tantan"}
        The mask in force.
    segments : list of SegmentContents
        In the order in which they were added.
    parts : tuple of str
        The optional parts that it has: keys of `swsearch.db.format.PART_DATASETS`.
    genetic_code : int or None
        NCBI's number of the code that its DNA is translated by; None where it holds proteins.
    """

    attributes: Attributes
    mask: Mask
    segments: list[SegmentContents]
    parts: Parts = ()
    genetic_code: int | None = None


def read_contents(source: FileSource) -> Contents:
    """Read and check what a file is made of.

    Raises
    ------
    DatabaseError
        If it is HDF5 but no database of ours, or of a later version.
    DatabaseDamageError
        If its structure is not one that our writer makes; the message names the place.
    """
    ours = source.block is not None
    try:
        structure = Structure(source)
        root = structure.root()
        ours = ours or root.attributes.get("format") == FORMAT_NAME
        mask, parts = _checked_root(source, root)
        group = structure.group(root, "segments", MOST_SEGMENTS)
        names = [str(number) for number in range(len(group.links))]
        code = _genetic_code(root)
        wanted = datasets_of(mask, parts, code)
        segments = [_segment(structure, structure.group(group, name), wanted) for name in names]
        structure.check_apart()
    except (StructureError, struct.error, LookupError, ArithmeticError) as error:
        if not ours:
            raise _foreign(source) from error
        problem = str(error) if isinstance(error, StructureError) else f"HDF5 structure ({error})"
        raise source.damage([problem]) from error
    if not segments:
        raise DatabaseDamageError(source.name, ["no segments found"])
    return Contents(root.attributes, mask, segments, parts, code)


def stored_attributes(path: str | os.PathLike[str]) -> Attributes:
    """Return what a database file says of itself, its counts among it; nothing that grows with them is read.

    Raises
    ------
    DatabaseError, DatabaseDamageError
        As for `read_contents`.
    """
    source = FileSource(os.fspath(path))
    try:
        return read_contents(source).attributes
    finally:
        source.close()


def _foreign(source: FileSource) -> DatabaseError:
    return DatabaseError(f"{source.name}: is HDF5 but not a swsearch database; build one with: swsearch db build")


def _checked_root(source: FileSource, root: StoredGroup) -> tuple[Mask, Parts]:
    """Check what a database says of itself; return the mask in force and the optional parts."""
    attributes = root.attributes
    if attributes.get("format") != FORMAT_NAME:
        if source.block is not None:
            raise StructureError(f"attribute format is {attributes.get('format')!r}, expected {FORMAT_NAME!r}")
        raise _foreign(source)
    version = attributes.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise too_new(source.name, version)
    # version 1 knows no masks, version 3 need not have one
    found = attributes.get("mask", None if version == 2 else "none")
    mask = next((mask for mask in MASKS if mask == found), None)
    wrong = [] if mask else [f"mask is {found!r}, expected one of {', '.join(MASKS)}"]
    parts: Parts = ()
    try:
        parts = parts_in(attributes["parts"]) if "parts" in attributes else ()
    except ValueError as error:
        wrong.append(str(error))
    expected: dict[str, Any] = {
        "format_version": version_of(mask, parts, _genetic_code(root)) if mask else FORMAT_VERSION,
        "letters": PROTEIN.letters,
        "lanes": LANES,
        "pad": PAD,
        "column_multiple": COLUMN_MULTIPLE,
        "checksum_bytes": BYTES_PER_CHECKSUM,
    }
    if source.block is not None and version != source.block.version:
        wrong.append(f"format_version is {version!r}, expected {source.block.version} as in the user block")
    wrong += [
        f"{name} is {attributes.get(name)!r}, expected {value!r}"
        for name, value in expected.items()
        if attributes.get(name) != value
    ]
    if "genetic_code" in attributes:
        wrong += _wrong_of_dna(attributes)
    if wrong or mask is None:
        raise DatabaseDamageError(source.name, wrong)
    return mask, parts


def _genetic_code(root: StoredGroup) -> int | None:
    """Return what a database says its DNA is translated by, which is to be checked; None if it is of proteins."""
    found = root.attributes.get("genetic_code")
    return found if found is None or type(found) is int else 0


def _wrong_of_dna(attributes: Attributes) -> list[str]:
    """Say what is wrong with what a database of DNA says of itself."""
    from swsearch.translation.codes import genetic_codes

    wrong = []
    if attributes["genetic_code"] not in genetic_codes():
        wrong.append(f"genetic_code is {attributes['genetic_code']!r}, expected NCBI's number of one")
    if attributes.get("dna_letters") != DNA.letters:
        wrong.append(f"dna_letters is {attributes.get('dna_letters')!r}, expected {DNA.letters!r}")
    if attributes.get("mask", "none") != "none":
        wrong.append(f"mask is {attributes.get('mask')!r}, expected 'none'")
    return wrong


def _segment(structure: Structure, group: StoredGroup, names: list[str]) -> SegmentContents:
    """Read where the datasets of a segment stand."""
    sums = structure.group(group, "checksums")
    datasets = {name: structure.dataset(group, name) for name in names}
    checksums = {name: structure.dataset(sums, name) for name in datasets}
    for name, dataset in datasets.items():
        fits = dataset.dtype == DATASET_TYPES[name] and dataset.shape[1:] == ROW.get(name, ())
        sums_fit = checksums[name].dtype == "<u4" and checksums[name].shape == (n_checksums(dataset.n_bytes),)
        if not fits or not sums_fit:
            raise StructureError(f"{dataset.name} has an unexpected type or shape")
    return SegmentContents(group.name, group.attributes, datasets, checksums)


def planned(attributes: Attributes, shapes: dict[str, tuple[int, ...]]) -> tuple[SegmentContents, int]:
    """Plan a segment of these shapes in memory: dataset after dataset; return it and how many bytes it takes."""
    datasets: dict[str, StoredDataset] = {}
    none: dict[str, StoredDataset] = {}
    at = 0
    for name, shape in shapes.items():
        n_bytes = int(DATASET_TYPES[name][-1])
        for extent in shape:
            n_bytes *= extent
        path = f"/segments/0/{name}"
        datasets[name] = StoredDataset(path, DATASET_TYPES[name], shape, at, n_bytes)
        none[name] = StoredDataset(f"{path}'s checksums", "<u4", (0,), 0, 0)
        at += -(-n_bytes // USER_BLOCK) * USER_BLOCK
    return SegmentContents("/segments/0", attributes, datasets, none), at
