"""Residues that are scored as X: low complexity as tantan finds it, or what the input has in lower case.

X scores -1 with every letter in BLAST's matrices, so that a masked stretch cannot make a hit. Nothing is thrown away:
alignments are shown, and identities counted, with the letters themselves, masked ones in lower case; a score is that
of the alignment with X in the place of every lower-case letter. (BLAST's soft masking keeps matches from beginning
where a sequence is masked, which means nothing to an exact search.)

tantan (M. C. Frith, Nucleic Acids Res. 39:e23, 2011) comes with pytantan, which is installed only where it is asked
for: its licence is the GPL 3. Its defaults for proteins are used, those of ``tantan -p``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.errors import InputError, check_choice
from swsearch.options.words import MASKS

MaskedRuns = Iterable[tuple[int, int]]
"""Stretches of a sequence, 0-based and half-open."""

MASKED = PROTEIN.letters.index("X")
"""The code that stands in the place of a masked residue."""


def check_mask(name: str, value: str) -> None:
    """Raise `OptionError` unless a mask is known, and tantan here where it is asked for."""
    check_choice(name, value, MASKS)
    if value == "tantan":
        tantan()


def tantan() -> Callable[[ByteArray], list[tuple[int, int]]]:
    """Return what finds the stretches of low complexity of a protein's codes, shape (n,), uint8.

    Raises
    ------
    InputError
        If pytantan is not installed.
    """
    try:
        from pytantan import RepeatFinder
        from pytantan.lib import default_scoring_matrix
    except ImportError as error:
        raise InputError(
            f"mask: tantan needs pytantan, which cannot be imported ({error}); pip install 'swsearch[mask]'"
        ) from None
    finder: Any = RepeatFinder(default_scoring_matrix(protein=True), protein=True)

    def find(codes: ByteArray) -> list[tuple[int, int]]:
        letters = PROTEIN.decode(codes).replace("*", "X")  # which pytantan does not know
        masked = finder.mask_repeats(letters) if letters else ""
        return runs_of(np.frombuffer(masked.encode("ascii"), dtype=np.uint8) > ord("Z"))

    return find


def runs_of(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the stretches where a flag is set, of flags of shape (n,), bool; 0-based and half-open."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def masked_codes(codes: ByteArray, runs: MaskedRuns) -> ByteArray:
    """Return codes with X in stretches; both of shape (n,), uint8."""
    masked = codes.copy()
    for start, end in runs:
        masked[start:end] = MASKED
    return masked


def shown_letters(codes: ByteArray, runs: MaskedRuns) -> ByteArray:
    """Return the ASCII letters of codes, lower case in stretches; shape (n,), uint8."""
    letters: ByteArray = PROTEIN.decode_table[codes]
    for start, end in runs:
        letters[start:end] |= 0x20  # ASCII: lower case; a '*' has it set already
    return letters
