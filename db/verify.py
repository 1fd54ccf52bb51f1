"""Check every byte and every invariant of a database file."""

from __future__ import annotations

import hashlib
import os
from collections import Counter

import numpy as np

from swsearch.db.content import header_problem
from swsearch.db.contents import read_contents
from swsearch.db.dna_stored import DnaSegment
from swsearch.db.fasta import split_header
from swsearch.db.format import BYTES_PER_CHECKSUM, USER_BLOCK, UserBlock, is_manifest
from swsearch.db.manifest import Manifest, VolumeEntry, read_manifest
from swsearch.db.source import FileSource
from swsearch.db.stored import RUNS, Segment
from swsearch.db.stored_array import StoredArray
from swsearch.db.stored_taxa import check_taxa_of
from swsearch.db.volumes import SHOWN_IDENTITY, load_segments, open_members, replaced
from swsearch.errors import DatabaseDamageError, DatabaseError
from swsearch.options.words import Mask


def verify_database(path: str | os.PathLike[str]) -> dict[str, int]:
    """Check a database file: its SHA-256, every checksum and every invariant of the layout.

    Of a manifest every volume is checked so, and that it is the file that the manifest names.

    Parameters
    ----------
    path : path
        The database, or the manifest of its volumes.

    Returns
    -------
    dict of str to int
        What was checked: bytes, checksums, segments, blocks, subjects, residues; of a manifest the volumes too.

    Raises
    ------
    DatabaseError
        If there is no such file or it is no database.
    DatabaseDamageError
        If anything is not as it was written; lists every place found.
    """
    if is_manifest(path):
        return _verify_volumes(read_manifest(path))
    source = FileSource(os.fspath(path))
    try:
        return verify_source(source)
    finally:
        source.close()


def _verify_volumes(manifest: Manifest) -> dict[str, int]:
    """Check every volume of a manifest, and that it is the one that the manifest names."""
    counts: Counter[str] = Counter(volumes=len(manifest.volumes))
    errors: list[DatabaseError] = []
    for entry in manifest.volumes:
        try:
            counts.update(_verify_volume(manifest, entry))
        except DatabaseError as error:
            errors.append(error)
    if len(errors) > 1:
        raise DatabaseDamageError(manifest.name, [problem for error in errors for problem in _problems_of(error)])
    if errors:
        raise errors[0]
    for file in (file for member in open_members(manifest.name) for file in member.files):
        file.source.close()  # what is wrong with them together was said when they were opened
    return dict(counts)


def _verify_volume(manifest: Manifest, entry: VolumeEntry) -> dict[str, int]:
    source = FileSource(manifest.path_of(entry))
    try:
        counts = verify_source(source)
        sha256 = "" if source.block is None else source.block.sha256
    finally:
        source.close()
    if sha256 != entry.sha256:
        raise replaced(
            manifest, entry, f"SHA-256 {sha256[:SHOWN_IDENTITY]}, expected {entry.sha256[:SHOWN_IDENTITY]}"
        )
    return counts


def _problems_of(error: DatabaseError) -> list[str]:
    if isinstance(error, DatabaseDamageError):
        return [f"{error.path}: {problem}" for problem in error.problems]
    return [str(error)]


def verify_source(source: FileSource, *, content: bool = True) -> dict[str, int]:
    """Check an open file as `verify_database` does; without its content every byte, in memory that does not grow."""
    problems: list[str] = []
    counts = {"bytes": source.n_bytes}
    try:
        counts |= _check_content(source, problems, content)
    except DatabaseDamageError as error:
        problems += [problem for problem in error.problems if problem not in problems]
    block = source.block
    if block is None or block.pack() != source.read(0, USER_BLOCK):
        problems.insert(0, f"user block (bytes 0 to {USER_BLOCK})")
    elif not problems and UserBlock(block.version, *_hash(source)) != block:
        problems.append("SHA-256 differs, all datasets are whole: HDF5 metadata or space between")
    if problems:
        raise source.damage(problems)
    return counts


def _hash(source: FileSource) -> tuple[int, str]:
    """Hash all of a file after its user block; return its length and SHA-256."""
    digest = hashlib.sha256()
    at = USER_BLOCK
    while piece := source.read(at, BYTES_PER_CHECKSUM):
        digest.update(piece)
        at += len(piece)
    return at - USER_BLOCK, digest.hexdigest()


def _check_content(source: FileSource, problems: list[str], content: bool) -> dict[str, int]:
    """Check the checksums of all datasets, then what the numbers say where that is asked for."""
    contents = read_contents(source)
    n_checked = 0
    for each in contents.segments:
        for name, dataset in each.datasets.items():
            n, broken = StoredArray(source, dataset, each.checksums[name]).problems()
            n_checked += n
            problems += broken
    if problems or not content:
        return {}
    segments = load_segments(source, contents)
    for segment in segments:
        problems += [f"{segment.name}: {problem}" for problem in _invariants(segment)]
    return {
        "checksums": n_checked,
        "segments": len(segments),
        "blocks": sum(len(segment.block_offsets) - 1 for segment in segments),
        "subjects": sum(segment.n_subjects for segment in segments),
        "residues": sum(segment.lengths.n_residues for segment in segments),
    }


def _invariants(segment: Segment) -> list[str]:
    """Return a message for each broken rule, of those that are not checked when a segment is opened."""
    masks: tuple[Mask, ...] = ("lower", "tantan")
    try:
        segment.sources()
        _ = segment.ranks
        if isinstance(segment, DnaSegment):
            segment.check_letters()
        for mask in masks:
            if f"{RUNS[mask]}_offsets" in segment.stored:
                segment.check_masked(mask)
        check_taxa_of(segment)
        headers = _header_problems(segment)
    except DatabaseDamageError as error:
        return [problem.removeprefix(f"{segment.name}: ") for problem in error.problems]
    return [*headers, *(_residue_problems(segment) if not isinstance(segment, DnaSegment) else ())]


def _header_problems(segment: Segment) -> list[str]:
    """Check that every header is a line with an identifier."""
    headers = segment.stored["headers"]
    for first, offsets in segment.header_bounds(0, segment.n_subjects):
        bounds = offsets.tolist()
        text = headers.load(bounds[0], bounds[-1]).tobytes()
        if problem := header_problem(b"x" + text):
            return [problem]
        begins = np.frombuffer(text, dtype=np.uint8)[np.array(bounds[:-1]) - bounds[0]]
        for place in np.flatnonzero(begins <= ord(" ")).tolist():  # most begin with their identifier
            if not split_header(text[bounds[place] - bounds[0] : bounds[place + 1] - bounds[0]])[0]:
                return [f"subject {segment.first + first + place}: a header has no identifier"]
    return []


def _residue_problems(segment: Segment) -> list[str]:
    """Check that every residue is a letter and that padding stands after every end and nowhere else."""
    problems: list[str] = []
    n_blocks, first = len(segment.block_offsets) - 1, 0
    while first < n_blocks and len(problems) < 5:
        last = segment.next_block(first, 8 * BYTES_PER_CHECKSUM)
        try:
            segment.chunk(first, last)
        except DatabaseDamageError as error:
            problems += [problem.removeprefix(f"{segment.name}: ") for problem in error.problems]
        first = last
    return problems
