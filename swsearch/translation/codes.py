"""From nucleotides to residues: NCBI's genetic codes, and the six frames of a record, a whole record at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, get_args

import numpy as np

from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.errors import OptionError, check_choice, check_flag, whole_number
from swsearch.options.words import Strand
from swsearch.recurrence import check_frame_shift
from swsearch.translation.frame import CODON, FRAME_NUMBERS

STANDARD_CODE = 1
"""NCBI's number of the standard genetic code."""

MOST_CODE = 10**6
"""No number of a genetic code is larger; what is not known is told with those that are."""

_BASES = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT",
    "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
"""What each letter of `DNA` may stand for."""

_COMPLEMENTS = dict(zip("ACGTURYSWKMBDHVN", "TGCAAYRSWMKVHDBN", strict=True))


@dataclass(frozen=True)
class QueryTranslation:
    """How DNA queries are translated; every value is checked when it is made.

    Parameters
    ----------
    genetic_code : int
        NCBI's number.
    strand : {"both", "plus", "minus"}
        Which frames are searched: all six, the three of the strand that is given, or those of the other one.
    frame_shift : int or None
        What it costs in matrix units that the frame changes along an alignment; the three frames of a strand are then
        searched as one. None where it may not.

    Raises
    ------
    OptionError
        If there is no such code or strand, or nothing that a shift can cost.
    """

    genetic_code: int = STANDARD_CODE
    strand: Strand = "both"
    frame_shift: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "genetic_code", checked_code(self.genetic_code))
        check_choice("strand", self.strand, get_args(Strand))
        object.__setattr__(self, "frame_shift", check_frame_shift(self.frame_shift))

    @property
    def frames(self) -> tuple[int, ...]:
        """The numbers of the frames that are searched, in order; with frame shifts the first of each strand."""
        return frames_of(self.strand)[:: 1 if self.frame_shift is None else CODON]


def asked_translation(
    translate: object,
    genetic_code: int | None = None,
    strand: Strand | None = None,
    frame_shift: int | None = None,
) -> QueryTranslation | None:
    """Return how queries are to be translated; None where they are not.

    Parameters
    ----------
    translate : bool
        Whether to.
    genetic_code, strand, frame_shift : optional
        As for `QueryTranslation`; by default its own.

    Raises
    ------
    OptionError
        If one cannot be used, or is there although nothing is translated.
    """
    check_flag("translate", translate)
    given = {"genetic_code": genetic_code, "strand": strand, "frame_shift": frame_shift}
    asked = {name: value for name, value in given.items() if value is not None}
    if not translate:
        for name, value in asked.items():
            remedy = "add --translate (in Python translate=True) for DNA queries, or leave it out"
            raise OptionError(name, value, "none without translation", remedy)
        return None
    return QueryTranslation(**asked)  # type: ignore[arg-type]  # checked there


def frames_of(strand: Strand) -> tuple[int, ...]:
    """Return the numbers of the frames of a strand, in the order in which they are searched."""
    wanted = {"both": FRAME_NUMBERS, "plus": FRAME_NUMBERS[:3], "minus": FRAME_NUMBERS[3:]}
    return wanted[strand]


@cache
def genetic_codes() -> dict[int, str]:
    """Return the names of all genetic codes that are known, by NCBI's number."""
    from Bio.Data.CodonTable import unambiguous_dna_by_id  # half of what --help takes

    return {number: str(table.names[0]) for number, table in sorted(unambiguous_dna_by_id.items())}


def checked_code(genetic_code: Any) -> int:
    """Return the number of a genetic code.

    Raises
    ------
    OptionError
        If there is none of this number.
    """
    if type(genetic_code) is int and genetic_code == STANDARD_CODE:
        return STANDARD_CODE  # which needs no table yet
    known = genetic_codes()
    expected = f"an NCBI genetic code: {', '.join(map(str, known))}"
    number = whole_number("genetic_code", genetic_code, 1, MOST_CODE, expected)
    if number not in known:
        raise OptionError("genetic_code", genetic_code, expected)
    return number


@cache
def codon_table(genetic_code: int) -> ByteArray:
    """Return what every codon means.

    A codon with ambiguous letters means what all those have in common that it may stand for, and else X. Codons that
    mean a residue or a stop, as context has it (codes 27, 28 and 31), mean the residue, as NCBI has it.

    Parameters
    ----------
    genetic_code : int
        NCBI's number, of those in `genetic_codes`.

    Returns
    -------
    ndarray, shape (16, 16, 16), uint8
        Codes of `PROTEIN`, by three codes of `DNA`.
    """
    from Bio.Data.CodonTable import unambiguous_dna_by_id

    table = unambiguous_dna_by_id[genetic_code]
    exact = dict.fromkeys(table.stop_codons, "*") | dict(table.forward_table)
    n = len(DNA.letters)
    found = np.empty((n, n, n), dtype=np.uint8)
    for places in product(range(n), repeat=CODON):
        choices = product(*(_BASES[DNA.letters[place]] for place in places))
        meant = {exact["".join(codon)] for codon in choices}
        found[places] = PROTEIN.letters.index(meant.pop() if len(meant) == 1 else "X")
    found.setflags(write=False)
    return found


def _complement_table() -> ByteArray:
    return np.array([DNA.letters.index(_COMPLEMENTS[letter]) for letter in DNA.letters], dtype=np.uint8)


_COMPLEMENT = _complement_table()


def reverse_complement(codes: ByteArray) -> ByteArray:
    """Return the other strand, read in its own direction; codes of `DNA`, shape (n,), uint8."""
    return _COMPLEMENT[codes[::-1]]


def translate(codes: ByteArray, genetic_code: int = STANDARD_CODE) -> ByteArray:
    """Translate DNA from its first letter on.

    Parameters
    ----------
    codes : ndarray, shape (n,), uint8
        Codes of `DNA`.
    genetic_code : int, optional
        NCBI's number.

    Returns
    -------
    ndarray, shape (n // 3,), uint8
        Codes of `PROTEIN`; stops are ``*``. One or two letters at the end that make no codon are left out.
    """
    n = len(codes) // CODON
    first, second, third = (codes[place : CODON * n : CODON] for place in range(CODON))
    found: ByteArray = codon_table(genetic_code)[first, second, third]
    return found


def strand_codons(codes: ByteArray, genetic_code: int = STANDARD_CODE) -> ByteArray:
    """Translate the codons that begin at each letter of DNA.

    Parameters
    ----------
    codes : ndarray, shape (n,), uint8
        Codes of `DNA`.
    genetic_code : int, optional
        NCBI's number.

    Returns
    -------
    ndarray, shape (max(n - 2, 0),), uint8
        Codes of `PROTEIN`; every third one is of the same frame.
    """
    n = max(len(codes) - CODON + 1, 0)
    found: ByteArray = codon_table(genetic_code)[codes[:n], codes[1 : n + 1], codes[2 : n + 2]]
    return found


def translated_frames(
    codes: ByteArray, genetic_code: int = STANDARD_CODE, numbers: Sequence[int] = FRAME_NUMBERS
) -> Iterator[tuple[int, ByteArray]]:
    """Translate DNA in several frames.

    Parameters
    ----------
    codes : ndarray, shape (n,), uint8
        Codes of `DNA`.
    genetic_code : int, optional
        NCBI's number.
    numbers : sequence of int, optional
        Which frames, by NCBI's numbers; see `Frame`.

    Yields
    ------
    number : int
        Of the frame.
    residues : ndarray, shape (max(n - abs(number) + 1, 0) // 3,), uint8
        Codes of `PROTEIN`.
    """
    other = reverse_complement(codes) if min(numbers, default=0) < 0 else codes
    for number in numbers:
        strand = other if number < 0 else codes
        yield number, translate(strand[abs(number) - 1 :], genetic_code)
