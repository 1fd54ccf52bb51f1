"""Segments of DNA: records by place, and pieces of reading frames.

Frames are translated when they are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.blocks import IntArray, RunLengths
from swsearch.db.arrays import Strips, copy_strips, cut_into_groups, offsets_of
from swsearch.db.segment import Segment
from swsearch.translation.genetic_codes import CODON, FRAME_NUMBERS, codon_table, reverse_complement

LETTER_CODES: ByteArray = np.array([PROTEIN.letters.index(letter) for letter in DNA.letters], dtype=np.uint8)
"""The codes that letters of DNA have as residues, by their codes as DNA: a database's letters are of one alphabet."""

RESIDUES_PER_TRANSLATION = 1 << 19
"""Residues that are translated at once, with about 25 bytes of memory each."""


@dataclass(frozen=True, eq=False)
class FramePieces:
    """Pieces of reading frames as columns, each of shape (n,), int64."""

    records: IntArray
    """Places of the records in the input."""
    numbers: IntArray
    """Frames, by NCBI's numbers."""
    begins: IntArray
    ends: IntArray
    """Residues of the frame from ``begins``, 0-based and half-open."""

    def __len__(self) -> int:
        return len(self.records)

    @property
    def lengths(self) -> IntArray:
        """Their residues, shape (n,)."""
        lengths: IntArray = self.ends - self.begins
        return lengths

    def take(self, rows: npt.NDArray[np.integer]) -> FramePieces:
        """Return some, by their rows, shape (m,)."""
        return FramePieces(self.records[rows], self.numbers[rows], self.begins[rows], self.ends[rows])


class DnaSegment(Segment):
    """A segment of DNA, whose subjects are records and whose residues are their nucleotides."""

    def _read_lengths(self) -> None:
        """Read how long the records are, and check that the nucleotides fit this."""
        lengths: npt.NDArray[np.int32] = self.stored["record_lengths"].all()
        if lengths.min() < 0:
            raise self.damage_error("record lengths are negative")
        self.lengths = RunLengths.from_lengths(lengths)
        """Lengths of the records, in input order."""
        self.offsets = offsets_of(lengths.astype(np.int64))
        """Offsets of the records among all nucleotides."""
        self.block_offsets: IntArray = np.zeros(1, dtype=np.int64)  # records are in no blocks
        if self.stored["nucleotides"].shape[0] != -(-int(self.offsets[-1]) // 2):
            raise self.damage_error("nucleotides do not fit the record lengths")

    def _compute_ranks(self) -> npt.NDArray[np.uint32]:
        """Return the places of the records, which are those in the input, shape (n_subjects,)."""
        return np.arange(self.n_subjects, dtype=np.uint32)

    def _nucleotides(self, begins: IntArray, counts: IntArray) -> Strips:
        """Read letters, counted over all records, n times some, as codes of `swsearch.alphabet.DNA`."""
        ends = np.where(counts > 0, -(-(begins + counts) // 2), begins // 2)
        data = self.stored["nucleotides"].ranges(begins // 2, ends)
        strips = Strips.from_counts(np.empty(int(counts.sum()), dtype=np.uint8), counts)
        codes = np.column_stack([data.data >> 4, data.data & 15]).reshape(-1)
        copy_strips(codes, 2 * data.offsets[:-1] + begins % 2, strips.data, strips.offsets[:-1], counts)
        return strips

    def codes_of(self, places: IntArray, threads: int = 1) -> Strips:
        """Return the letters of records, shape (n,), as residue codes."""
        strips = self._nucleotides(self.offsets[places], self.offsets[places + 1] - self.offsets[places])
        return Strips(LETTER_CODES[strips.data], strips.offsets)

    def _codes_between(self, first: int, last: int) -> Strips:
        """Return the letters of neighbours in the input as codes of `swsearch.alphabet.DNA`."""
        bounds = self.offsets[first : last + 1]
        return self._nucleotides(bounds[:-1], np.diff(bounds))

    def translate(self, genetic_code: int, pieces: FramePieces) -> Strips:
        """Translate pieces of frames by NCBI's number of a code; records are places in the segment."""
        shifts, reverse = np.abs(pieces.numbers) - 1, pieces.numbers < 0
        # the first letter of each on the strand that is stored
        begins = self.offsets[pieces.records] + shifts + CODON * pieces.begins
        begins[reverse] = (self.offsets[pieces.records + 1] - shifts - CODON * pieces.ends)[reverse]
        strips = Strips.from_counts(np.empty(int(pieces.lengths.sum()), dtype=np.uint8), pieces.lengths)
        for strand, table in enumerate(_tables(genetic_code)):
            rows = np.flatnonzero(reverse == strand)
            rows = rows[np.argsort(begins[rows])]
            for first, last in cut_into_groups(offsets_of(pieces.lengths[rows]), RESIDUES_PER_TRANSLATION):
                some = rows[first:last]
                letters = self._nucleotides(begins[some], CODON * pieces.lengths[some])
                codons = letters.data[::CODON].astype(np.int16)  # four bits for each letter
                for place in range(1, CODON):
                    codons <<= 4
                    codons |= letters.data[place::CODON]
                at = letters.offsets // CODON
                at = len(codons) - at[1:] if strand else at[:-1]
                residues = table.take(codons[:: -1 if strand else 1])
                copy_strips(residues, at, strips.data, strips.offsets[some], pieces.lengths[some])
        return strips

    def _check_residues(self) -> None:
        """Check that what stands after the last letter is 0, as it is written; every half of a byte is a letter."""
        total, stored = int(self.offsets[-1]), self.stored["nucleotides"]
        if total % 2 and int(stored.load(total // 2, total // 2 + 1)[0]) & 15:
            raise self.damage_error("bytes found after the last nucleotide")


@cache
def _tables(genetic_code: int) -> ByteArray:
    """Return the residue of each codon, and of its reverse complement, shape (2, n_codons), uint8."""
    table = codon_table(genetic_code)
    other = reverse_complement(np.arange(len(DNA.letters), dtype=np.uint8))[::-1]  # the complement of each letter
    of_other = table[np.ix_(other, other, other)].transpose(2, 1, 0)
    return np.stack([table.reshape(-1), of_other.reshape(-1)])


def frame_lengths(dna_lengths: npt.NDArray[np.integer]) -> IntArray:
    """Return the residues of every frame of records, shape (n, 6), int64, in the order of `FRAME_NUMBERS`."""
    shifts = np.abs(np.array(FRAME_NUMBERS, dtype=np.int64)) - 1
    residues: IntArray = np.maximum(dna_lengths.astype(np.int64)[:, None] - shifts, 0) // CODON
    return residues
