"""Translation of nucleotides by NCBI's genetic codes, in six reading frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.errors import OptionError, check_choice, check_flag, check_integer
from swsearch.options.kinds import Strand
from swsearch.recurrence import check_frame_shift

CODON = 3
"""Nucleotides of a residue."""

FRAME_NUMBERS = (1, 2, 3, -1, -2, -3)
"""NCBI's numbers of the six frames, in the order in which they are searched."""


@dataclass(frozen=True)
class Frame:
    """A reading frame of a DNA record, or a piece of one.

    Parameters
    ----------
    number : int
        1, 2 or 3 for a frame that begins at the first, second or third nucleotide; -1, -2 or -3 for one that is read
        on the other strand and begins at the last nucleotide, the last but one or the one before. 0 for a part of a
        protein, whose residues are what the record holds.
    dna_length : int
        Nucleotides of the whole record; residues of a protein.
    start : int
        Codons of the frame, or residues of the protein, before the first residue; 0 unless it begins further on.
    step : int
        Nucleotides from one residue to the next: 3, or 1 for a whole strand, of which a codon may begin at each
        nucleotide since alignments may shift the frame. Places are nucleotides there, and the number is 1 or -1.

    Raises
    ------
    ValueError
        If there is no such frame.
    """

    number: int
    dna_length: int
    start: int = 0
    step: int = CODON

    def __post_init__(self) -> None:
        if self.number not in (0, *FRAME_NUMBERS):
            raise ValueError(f"frame {self.number!r}: expected one of {', '.join(map(str, FRAME_NUMBERS))}, or 0")
        if self.dna_length < 0 or self.start < 0:
            raise ValueError(f"{self}: got a negative number, expected a length and a start of 0 or more")
        if self.step != CODON and (self.step, abs(self.number), self.start) != (1, 1, 0):
            raise ValueError(f"{self}: expected a step of 3, or of 1 for a whole strand, 1 or -1")

    @property
    def is_reverse(self) -> bool:
        """Whether the frame is on the reverse strand."""
        return self.number < 0

    def dna_span(self, begin: int, end: int) -> tuple[int, int]:
        """Return the nucleotides that residues are read from.

        Parameters
        ----------
        begin, end : int
            Residues of the piece, 0-based and half-open; of a whole strand its nucleotides.

        Returns
        -------
        begin, end : int
            Nucleotides of the strand that was given, 0-based and half-open, whatever strand the frame is read on.
        """
        if not self.number:
            return self.start + begin, self.start + end
        first, last = (abs(self.number) - 1 + self.step * (self.start + place) for place in (begin, end))
        return (self.dna_length - last, self.dna_length - first) if self.is_reverse else (first, last)

    def number_at(self, begin: int) -> int:
        """Return the number of the frame of the residue at a place: that of a whole strand differs along it."""
        return self.number if self.step == CODON else self.number * (begin % CODON + 1)


@dataclass(frozen=True, eq=False)
class Frames:
    """The frames of n rows, one each, as columns.

    Parameters
    ----------
    numbers, starts, dna_lengths : ndarray, shape (n,), int64
        As ``number``, ``start`` and ``dna_length`` of a `Frame`.
    step : int
        As of a `Frame`, the same for all.
    """

    numbers: IntArray
    starts: IntArray
    dna_lengths: IntArray
    step: int = CODON

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> Frame:
        return Frame(int(self.numbers[row]), int(self.dna_lengths[row]), int(self.starts[row]), self.step)

    def __iter__(self) -> Iterator[Frame]:
        return (self[row] for row in range(len(self)))

    @classmethod
    def from_frames(cls, frames: Sequence[Frame]) -> Frames:
        """Return the columns of frames."""
        return cls(
            np.array([frame.number for frame in frames], dtype=np.int64),
            np.array([frame.start for frame in frames], dtype=np.int64),
            np.array([frame.dna_length for frame in frames], dtype=np.int64),
            frames[0].step if frames else CODON,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Frames]) -> Frames:
        """Return the rows of several, one after the other; of none an empty table."""
        numbers, starts, dna_lengths = (
            np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(part, name) for part in parts)])
            for name in ("numbers", "starts", "dna_lengths")
        )
        return cls(numbers, starts, dna_lengths, parts[0].step if parts else CODON)

    def take(self, rows: slice | npt.NDArray[np.integer]) -> Frames:
        """Return some rows, shape (m,), in their order."""
        return Frames(self.numbers[rows], self.starts[rows], self.dna_lengths[rows], self.step)

    def dna_spans(self, begins: npt.NDArray[Any], ends: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Return the nucleotides that residues of each row are read from; see `Frame.dna_span`.

        Parameters
        ----------
        begins, ends : ndarray, shape (n,), int
            Residues of the rows' pieces, 0-based and half-open.

        Returns
        -------
        begins, ends : ndarray, shape (n,), int64
            Nucleotides, 0-based and half-open.
        """
        offsets, reverse = np.abs(self.numbers) - 1, self.numbers < 0
        first, last = (offsets + self.step * (self.starts + places) for places in (begins, ends))
        dna, protein = self.dna_lengths, self.numbers == 0
        return (
            np.where(protein, self.starts + begins, np.where(reverse, dna - last, first)),
            np.where(protein, self.starts + ends, np.where(reverse, dna - first, last)),
        )

    def numbers_at(self, begins: npt.NDArray[Any]) -> IntArray:
        """Return the number of the frame of a residue of each row, shape (n,); see `Frame.number_at`."""
        return self.numbers if self.step == CODON else self.numbers * (begins % CODON + 1)


STANDARD_CODE = 1
"""NCBI's number of the standard genetic code."""

MAX_CODE = 10**6
"""No number of a genetic code is larger; what is not known is told with those that are."""

_BASES = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT",
    "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
"""Nucleotides that each letter of `DNA` may stand for."""

_COMPLEMENTS = dict(zip("ACGTURYSWKMBDHVN", "TGCAAYRSWMKVHDBN", strict=True))


@dataclass(frozen=True)
class QueryTranslation:
    """Translation of DNA queries, validated on construction.

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
        object.__setattr__(self, "genetic_code", check_genetic_code(self.genetic_code))
        check_choice("strand", self.strand, get_args(Strand))
        object.__setattr__(self, "frame_shift", check_frame_shift(self.frame_shift))

    @property
    def frames(self) -> tuple[int, ...]:
        """The numbers of the frames that are searched, in order; with frame shifts the first of each strand."""
        return frames_of(self.strand)[:: 1 if self.frame_shift is None else CODON]


def make_translation(
    translate: object, genetic_code: int | None = None, strand: Strand | None = None, frame_shift: int | None = None
) -> QueryTranslation | None:
    """Return how queries are to be translated; None where they are not.

    Parameters
    ----------
    genetic_code, strand, frame_shift : optional
        As for `QueryTranslation`; by default its own.
    """
    check_flag("translate", translate)
    options = {"genetic_code": genetic_code, "strand": strand, "frame_shift": frame_shift}
    given_options = {name: value for name, value in options.items() if value is not None}
    if not translate:
        for name, value in given_options.items():
            remedy = "add --translate (in Python translate=True) for DNA queries, or leave it out"
            raise OptionError(name, value, "none without translation", remedy)
        return None
    return QueryTranslation(**given_options)  # type: ignore[arg-type]  # checked there


def frames_of(strand: Strand) -> tuple[int, ...]:
    """Return the numbers of the frames of a strand, in the order in which they are searched."""
    by_strand = {"both": FRAME_NUMBERS, "plus": FRAME_NUMBERS[:3], "minus": FRAME_NUMBERS[3:]}
    return by_strand[strand]


@cache
def genetic_codes() -> dict[int, str]:
    """Return the names of all genetic codes that are known, by NCBI's number."""
    from Bio.Data.CodonTable import unambiguous_dna_by_id  # half of what --help takes

    return {number: str(table.names[0]) for number, table in sorted(unambiguous_dna_by_id.items())}


def check_genetic_code(genetic_code: Any) -> int:
    """Return the number of a genetic code."""
    if type(genetic_code) is int and genetic_code == STANDARD_CODE:
        return STANDARD_CODE  # which needs no table yet
    codes = genetic_codes()
    expected = f"an NCBI genetic code: {', '.join(map(str, codes))}"
    number = check_integer("genetic_code", genetic_code, 1, MAX_CODE, expected)
    if number not in codes:
        raise OptionError("genetic_code", genetic_code, expected)
    return number


@cache
def codon_table(genetic_code: int) -> ByteArray:
    """Return what every codon means.

    A codon with ambiguous letters means what all those have in common that it may stand for, and else X. Codons that
    mean a residue or a stop, as context has it (codes 27, 28 and 31), mean the residue, as NCBI has it.

    Returns
    -------
    ndarray, shape (16, 16, 16), uint8
        Codes of `PROTEIN`, by three codes of `DNA`.
    """
    from Bio.Data.CodonTable import unambiguous_dna_by_id

    table = unambiguous_dna_by_id[genetic_code]
    exact = dict.fromkeys(table.stop_codons, "*") | dict(table.forward_table)
    n = len(DNA.letters)
    meanings = np.empty((n, n, n), dtype=np.uint8)
    for places in product(range(n), repeat=CODON):
        choices = product(*(_BASES[DNA.letters[place]] for place in places))
        meant = {exact["".join(codon)] for codon in choices}
        meanings[places] = PROTEIN.letters.index(meant.pop() if len(meant) == 1 else "X")
    meanings.setflags(write=False)
    return meanings


_COMPLEMENT: ByteArray = np.array([DNA.letters.index(_COMPLEMENTS[letter]) for letter in DNA.letters], dtype=np.uint8)


def reverse_complement(codes: ByteArray) -> ByteArray:
    """Return the other strand, read in its own direction; codes of `DNA`, shape (n,), uint8."""
    return _COMPLEMENT[codes[::-1]]


def translate(codes: ByteArray, genetic_code: int = STANDARD_CODE) -> ByteArray:
    """Translate DNA from its first letter on.

    Parameters
    ----------
    codes : ndarray, shape (n,), uint8
        Codes of `DNA`.

    Returns
    -------
    ndarray, shape (n // 3,), uint8
        Codes of `PROTEIN`; stops are ``*``. One or two letters at the end that make no codon are left out.
    """
    n = len(codes) // CODON
    first, second, third = (codes[place : CODON * n : CODON] for place in range(CODON))
    return codon_table(genetic_code)[first, second, third]


def strand_codons(codes: ByteArray, genetic_code: int = STANDARD_CODE) -> ByteArray:
    """Translate the codons that begin at each letter of DNA.

    Parameters
    ----------
    codes : ndarray, shape (n,), uint8
        Codes of `DNA`.

    Returns
    -------
    ndarray, shape (max(n - 2, 0),), uint8
        Codes of `PROTEIN`; every third one is of the same frame.
    """
    n = max(len(codes) - CODON + 1, 0)
    return codon_table(genetic_code)[codes[:n], codes[1 : n + 1], codes[2 : n + 2]]


def translated_frames(
    codes: ByteArray, genetic_code: int = STANDARD_CODE, numbers: Sequence[int] = FRAME_NUMBERS
) -> Iterator[tuple[int, ByteArray]]:
    """Translate DNA in several frames.

    Parameters
    ----------
    codes : ndarray, shape (n,), uint8
        Codes of `DNA`.
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
