"""Reading frames of DNA: which nucleotides the residues of a frame are read from, of one frame and of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray

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
        """Whether it is read on the other strand."""
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
    def of(cls, frames: Sequence[Frame]) -> Frames:
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
