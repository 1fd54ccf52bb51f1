"""Refuse DNA where protein is expected, by the first residues of an input.

The letters of DNA are all letters of proteins too. A third of a protein's letters (E, F, I, L, P, Q) stand for no
base, so that few letters decide: by chance 20 of a protein's are all bases less often than once in 10^10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.db.fasta import RecordBatch, header_text
from swsearch.errors import SequenceError

FIRST_RESIDUES = 1 << 20
"""Residues of an input that decide."""

ENOUGH_BASES = 20
"""Bases (A, C, G, T, U) from which on letters are taken for DNA."""

BASES_PER_CODE = 9
"""Bases that there must be for each IUPAC code of several bases."""

_BASES, _CODES, _ANY = (
    [PROTEIN.letters.index(letter) for letter in letters] for letters in ("ACGTU", "RYSWKMBDHV", "NX")
)


def _is_dna(codes: ByteArray) -> bool:
    counts = np.bincount(codes, minlength=len(PROTEIN.letters))
    a, c, g, t, u = map(int, counts[_BASES])
    n_bases, n_codes = a + c + g + t + u, int(counts[_CODES].sum())
    only_dna = n_bases + n_codes + int(counts[_ANY].sum()) == len(codes)
    return only_dna and min(a, c, g, t + u) > 0 and n_bases >= max(ENOUGH_BASES, BASES_PER_CODE * n_codes)


def check_no_dna(
    source: str, name: str, codes: ByteArray, remedy: str = "build a DNA database with: swsearch db build --translate"
) -> None:
    """Raise `SequenceError` if an input of residues ``codes``, shape (n,), whose first record is ``name``, is DNA."""
    if _is_dna(codes[:FIRST_RESIDUES]):
        problem = f"holds only letters of DNA, expected protein; {remedy}"
        override = "pass --allow-dna (in Python allow_dna=True) to accept it as protein"
        raise SequenceError(source, f"{problem}, or {override}", name)


def without_dna(source: str, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Yield batches; raise `SequenceError` if the first one is DNA."""
    batches = iter(batches)
    for first in batches:
        check_no_dna(source, header_text(first.headers[: int(first.header_lengths[0])])[0], first.codes)
        yield first
        yield from batches
