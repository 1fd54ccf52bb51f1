"""Frames: which nucleotides residues are read from, held against Biopython's own translation."""

from __future__ import annotations

import random

import numpy as np
import pytest
from Bio.Seq import Seq

from swsearch.translation import FRAME_NUMBERS, Frame, Frames

DNA = "".join(random.Random(20).choices("ACGT", k=61))


def residues(number: int, dna: str = DNA) -> str:
    """The frame of a number, translated by Biopython."""
    strand = Seq(dna) if number > 0 else Seq(dna).reverse_complement()
    rest = strand[abs(number) - 1 :]
    return str(rest[: len(rest) // 3 * 3].translate())


@pytest.mark.parametrize("number", FRAME_NUMBERS)
@pytest.mark.parametrize("length", [59, 60, 61])
def test_the_nucleotides_of_residues_translate_to_them(number: int, length: int) -> None:
    dna = DNA[:length]
    frame, piece = Frame(number, length), Frame(number, length, start=4)
    protein = residues(number, dna)
    for begin, end in ((0, len(protein)), (0, 1), (3, 7)):
        first, last = frame.dna_span(begin, end)
        assert 0 <= first < last <= length
        part = Seq(dna[first:last])
        assert str((part if number > 0 else part.reverse_complement()).translate()) == protein[begin:end]
        if begin >= 4:
            assert piece.dna_span(begin - 4, end - 4) == (first, last)


def test_columns_say_what_each_frame_says() -> None:
    frames = [Frame(number, 61 + number, start) for number in FRAME_NUMBERS for start in (0, 5)]
    begins = np.arange(len(frames))
    columns = Frames.from_frames(frames)
    assert list(columns) == frames
    spans = list(zip(*(each.tolist() for each in columns.dna_spans(begins, begins + 3)), strict=True))
    assert spans == [frame.dna_span(begin, begin + 3) for begin, frame in enumerate(frames)]
    some = np.array([3, 0])
    assert list(Frames.concatenate([columns.take(some), columns.take(slice(1, 2))])) == [
        frames[3], frames[0], frames[1],
    ]  # fmt: skip
    assert len(Frames.concatenate([])) == 0


def test_frames_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="frame 4: expected one of 1, 2, 3, -1, -2, -3"):
        Frame(4, 10)
    with pytest.raises(ValueError, match="expected a length and a start of 0 or more"):
        Frame(1, 10, -1)
