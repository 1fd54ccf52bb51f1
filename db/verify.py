"""Check every byte and every invariant of a database file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.alphabet import PAD, PROTEIN
from swsearch.blocks import LANES
from swsearch.db.database import check_format, check_readable, load_segments, open_hdf5
from swsearch.db.format import (
    BYTES_PER_CHECKSUM,
    USER_BLOCK,
    UserBlock,
    datasets_of,
    hash_rest,
    read_user_block,
    text_attribute,
)
from swsearch.db.stored import RUNS, Segment, StoredArray
from swsearch.errors import DatabaseDamageError, DatabaseError


def verify_database(path: str | os.PathLike[str]) -> dict[str, int]:
    """Check a database file: its SHA-256, every checksum and every invariant of the layout.

    Parameters
    ----------
    path : path
        The database.

    Returns
    -------
    dict of str to int
        What was checked: bytes, checksums, segments, blocks, subjects, residues.

    Raises
    ------
    DatabaseError
        If there is no such file or it is no database.
    DatabaseDamageError
        If anything is not as it was written; lists every place found.
    """
    name = os.fspath(path)
    check_readable(name)
    problems: list[str] = []
    with Path(name).open("rb") as file:
        head = file.read(USER_BLOCK)
        n_bytes, sha256 = hash_rest(file)
    block = read_user_block(name)
    whole = block is not None and UserBlock(block.version, n_bytes, sha256).pack() == head
    counts = {"bytes": n_bytes + USER_BLOCK}
    if whole:
        counts |= _check_content(name, problems)
    else:
        # HDF5 may fail in any way on bytes that are broken
        try:
            counts |= _check_content(name, problems)
        except DatabaseDamageError as error:
            problems += [problem for problem in error.problems if problem not in problems]
        except Exception as error:
            if block is None and isinstance(error, DatabaseError):
                raise
            problems.append(f"HDF5 structure ({error})")
        if block is None or block.pack() != head:
            problems.insert(0, f"user block (bytes 0 to {USER_BLOCK})")
        if not problems:
            problems.append("SHA-256 differs, all datasets are whole: HDF5 metadata or space between")
    if problems:
        raise DatabaseDamageError(name, problems)
    return counts


def _check_content(name: str, problems: list[str]) -> dict[str, int]:
    """Check the checksums of all datasets, then what the numbers say."""
    n_checked = 0
    with open_hdf5(name) as file:
        check_format(name, file)
        if "segments" in file:
            for group in file["segments"].values():
                for dataset in datasets_of(text_attribute(file.attrs.get("mask", "none"))):
                    try:
                        n, broken = StoredArray(name, group, dataset).problems()
                    except DatabaseDamageError as error:
                        n, broken = 0, error.problems
                    n_checked += n
                    problems += broken
        if problems:
            return {}
        attributes, segments = load_segments(name, file)
        for segment in segments:
            problems += [f"segment {segments.index(segment)}: {problem}" for problem in _invariants(segment)]
        counts = {
            "checksums": n_checked,
            "segments": len(segments),
            "blocks": sum(len(segment.block_offsets) - 1 for segment in segments),
            "subjects": sum(segment.n_subjects for segment in segments),
            "residues": sum(int(segment.lengths.sum(dtype=np.int64)) for segment in segments),
        }
        for key in ("subjects", "residues"):
            if attributes.get(f"n_{key}") != counts[key]:
                problems.append(f"attribute n_{key} is {attributes.get(f'n_{key}')}, expected {counts[key]}")
    return counts


def _offsets_fit(offsets: Any, end: int) -> bool:
    return len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == end and bool((np.diff(offsets) >= 0).all())


def _invariants(segment: Segment) -> list[str]:
    """Return a message for each broken rule, of those that are not checked when a segment is opened."""
    lengths, stored = segment.lengths, segment.stored
    rules = {
        "equal lengths are not in input order": bool(
            ((lengths[1:] < lengths[:-1]) | (segment.order[1:] > segment.order[:-1])).all()
        ),
        "header offsets do not fit the headers": _offsets_fit(
            segment.lazy("header_offsets"), stored["headers"].shape[0]
        ),
        "mask offsets do not fit the masks": _offsets_fit(
            segment.lazy("mask_offsets"), stored["mask_starts"].shape[0]
        ),
    }
    if "tantan_offsets" in stored:
        rules["tantan offsets do not fit the masks"] = _offsets_fit(
            segment.lazy("tantan_offsets"), stored["tantan_starts"].shape[0]
        )
    problems = [rule for rule, kept in rules.items() if not kept]
    masks = [name for name in RUNS.values() if f"{name}_offsets" in stored]
    return problems or [
        *(text for name in masks for text in _mask_problems(segment, name)),
        *_residue_problems(segment),
    ]


def _mask_problems(segment: Segment, name: str) -> list[str]:
    """Check that masked runs are ascending, apart and inside their subject."""
    starts, ends = segment.stored[f"{name}_starts"].all(), segment.stored[f"{name}_ends"].all()
    offsets = segment.lazy(f"{name}_offsets")
    lengths = np.empty(segment.n_subjects, dtype=np.int64)
    lengths[segment.order] = segment.lengths
    owners = np.repeat(np.arange(segment.n_subjects), np.diff(offsets))
    inside = (starts >= 0) & (starts < ends) & (ends <= lengths[owners])
    apart = (owners[1:] != owners[:-1]) | (starts[1:] > ends[:-1])
    return [] if inside.all() and apart.all() else ["masked runs overlap or leave their subject"]


def _residue_problems(segment: Segment) -> list[str]:
    """Check that every residue is a letter and that padding stands after every end and nowhere else."""
    problems: list[str] = []
    n_blocks, first = len(segment.block_offsets) - 1, 0
    while first < n_blocks and len(problems) < 5:
        last = segment.next_block(first, 8 * BYTES_PER_CHECKSUM)
        chunk = segment.chunk(first, last)
        for index, block in enumerate(chunk):
            lengths = np.zeros(LANES, dtype=np.int64)
            in_block = chunk.lengths[chunk.lanes(index)]
            lengths[: len(in_block)] = in_block
            inside = np.arange(len(block))[:, None] < lengths
            if ((block < len(PROTEIN.letters)) != inside).any() or ((block == PAD) == inside).any():
                problems.append(f"block {first + index}: residues or padding do not fit the lengths")
        first = last
    return problems
