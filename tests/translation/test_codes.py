"""Genetic codes and translation: what Biopython's Seq says, and NCBI's ways with ambiguous codons."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from Bio.Seq import Seq

from support.samples import sample
from swsearch.alphabet import DNA, PROTEIN
from swsearch.errors import OptionError
from swsearch.translation import FRAME_NUMBERS, QueryTranslation
from swsearch.translation.genetic_codes import genetic_codes, reverse_complement, translate, translated_frames


def biopython(letters: str, number: int, genetic_code: int) -> str:
    """A frame's residues as Biopython has them; B, Z and J, which NCBI's BLAST has as X, are X here."""
    strand = Seq(letters.replace("U", "T"))
    strand = (strand if number > 0 else strand.reverse_complement())[abs(number) - 1 :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of codons that mean both a residue and a stop
        residues = str(strand[: len(strand) // 3 * 3].translate(table=genetic_code))
    return "".join("X" if letter in "BZJ" else letter for letter in residues)


@pytest.mark.parametrize("genetic_code", sample(sorted(genetic_codes()), lambda code: code in (1, 27)))
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 299, 300, 301])
def test_frames_are_those_of_biopython(genetic_code: int, length: int) -> None:
    random = np.random.default_rng([genetic_code, length])
    codes = random.integers(0, len(DNA.letters), length).astype(np.uint8)
    codes[random.random(length) < 0.8] %= 4  # most codons are of A, C, G and T
    frames = dict(translated_frames(codes, genetic_code))
    assert tuple(frames) == FRAME_NUMBERS
    for number, residues in frames.items():
        assert PROTEIN.decode(residues) == biopython(DNA.decode(codes), number, genetic_code), number


@pytest.mark.parametrize(
    ("codon", "residue"),
    [
        ("GCN", "A"), ("TAR", "*"), ("TRA", "*"), ("YTG", "L"), ("MGR", "R"),  # all mean the same
        ("RAY", "X"), ("SAR", "X"), ("NNN", "X"), ("MTH", "X"), ("TGR", "X"),  # never B, Z or J
        ("AUG", "M"), ("TUY", "F"),
    ],
)  # fmt: skip
def test_ambiguous_codons_mean_what_their_codons_have_in_common(codon: str, residue: str) -> None:
    assert PROTEIN.decode(translate(DNA.encode(codon))) == residue


def test_the_other_strand_of_every_letter_is_biopythons() -> None:
    letters = DNA.letters
    assert DNA.decode(reverse_complement(DNA.encode(letters))) == str(Seq(letters).reverse_complement())


@pytest.mark.parametrize(
    ("strand", "frames"), [("both", FRAME_NUMBERS), ("plus", (1, 2, 3)), ("minus", (-1, -2, -3))]
)
def test_a_strand_has_its_frames(strand: str, frames: tuple[int, ...]) -> None:
    assert QueryTranslation(strand=strand).frames == frames  # type: ignore[arg-type]


@pytest.mark.parametrize("genetic_code", [0, 7, 8, 34, -1, 1.5, True, "x", None])
def test_unknown_genetic_codes_are_refused(genetic_code: object) -> None:
    with pytest.raises(OptionError, match=r"genetic_code: got .*, expected an NCBI genetic code: 1, 2, 3"):
        QueryTranslation(genetic_code)  # type: ignore[arg-type]


def test_unknown_strands_are_refused() -> None:
    with pytest.raises(OptionError, match="strand: got 'forward', expected one of both, plus, minus"):
        QueryTranslation(strand="forward")  # type: ignore[arg-type]
