"""The numbers of a database checked a piece at a time, for one that is copied: memory is a bit for each record."""

from __future__ import annotations

import numpy as np

from swsearch.blocks import LANES, block_columns
from swsearch.db.contents import Contents, SegmentContents
from swsearch.db.numbers import AT_ONCE
from swsearch.db.source import Source
from swsearch.db.stored import StoredArray
from swsearch.errors import DatabaseDamageError

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8).reshape(-1, 1), axis=1).sum(axis=1, dtype=np.uint8)
"""How many bits of a byte are set."""


def check_numbers(source: Source, contents: Contents) -> None:
    """Check what says which subject stands where, and the counts of all attributes.

    Raises
    ------
    DatabaseDamageError
        If they are not those that a build makes.
    """
    totals = {"n_subjects": 0, "n_residues": 0}
    for segment in contents.segments:
        counts = _counts(source, segment)
        for name, count in counts.items():
            if segment.attributes.get(name) != count:
                found = segment.attributes.get(name)
                raise _wrong(source, segment, f"attribute {name} is {found!r}, expected {count}")
        for name in totals:
            totals[name] += counts[name]
    for name, total in totals.items():
        if contents.attributes.get(name) != total:
            found = contents.attributes.get(name)
            raise DatabaseDamageError(source.name, [f"attribute {name} is {found!r}, its segments have {total}"])


def _counts(source: Source, segment: SegmentContents) -> dict[str, int]:
    """Check lengths, order and block offsets; return what the attributes must say of them."""
    names = ("lengths", "order", "block_offsets")
    stored = {name: StoredArray(source, segment.datasets[name], segment.checksums[name]) for name in names}
    n = stored["lengths"].shape[0]
    if stored["order"].shape != (n,) or stored["block_offsets"].shape != (-(-n // LANES) + 1,):
        raise _wrong(source, segment, "order or block offsets do not fit the number of subjects")
    met = np.zeros(-(-n // 8), dtype=np.uint8)
    n_residues = n_empty = longest = n_columns = 0
    before = None  # length and place of the subject before a piece
    for first in range(0, n, AT_ONCE):
        last = min(first + AT_ONCE, n)
        lengths = stored["lengths"].load(first, last).astype(np.int64)
        order = stored["order"].load(first, last)
        offsets = stored["block_offsets"].load(first // LANES, -(-last // LANES) + 1)
        if before is None:
            longest, before = int(lengths[0]), (int(lengths[0]) + 1, -1)
        steps = np.diff(lengths, prepend=before[0])
        if lengths[-1] < 0 or (steps > 0).any():
            raise _wrong(source, segment, "lengths do not descend")
        if order.min() < 0 or order.max() >= n:
            raise _wrong(source, segment, "order is no permutation")
        if not ((steps < 0) | (np.diff(order, prepend=before[1]) > 0)).all():
            raise _wrong(source, segment, "equal lengths are not in input order")
        if offsets[0] != n_columns or (np.diff(offsets) != block_columns(lengths)).any():
            raise _wrong(source, segment, "block offsets do not fit the lengths")
        np.bitwise_or.at(met, order >> 3, np.left_shift(1, order & 7).astype(np.uint8))
        n_residues += int(lengths.sum())
        n_empty += int(np.count_nonzero(lengths == 0))
        before, n_columns = (int(lengths[-1]), int(order[-1])), int(offsets[-1])
    n_met = sum(int(_BITS[met[at : at + AT_ONCE]].sum(dtype=np.int64)) for at in range(0, len(met), AT_ONCE))
    if n_met != n:  # each place is met, so none is met twice
        raise _wrong(source, segment, "order is no permutation")
    if not n:
        raise _wrong(source, segment, "lengths do not descend")
    if segment.datasets["residues"].shape[0] != n_columns:
        raise _wrong(source, segment, "residues do not fit the block offsets")
    return {
        "n_subjects": n,
        "n_residues": n_residues,
        "n_empty": n_empty,
        "n_columns": n_columns,
        "n_blocks": stored["block_offsets"].shape[0] - 1,
        "longest": longest,
    }


def _wrong(source: Source, segment: SegmentContents, problem: str) -> DatabaseDamageError:
    """Make the error for what a wrong writer made."""
    return DatabaseDamageError(source.name, [f"{segment.name}: {problem}"])
