"""Reading a segment of DNA: records by place, and residues of their reading frames, translated when they are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.blocks import Chunk, IntArray, RunLengths
from swsearch.db.classes import offsets_of
from swsearch.db.contents import SegmentContents
from swsearch.db.dna_layout import unpacked
from swsearch.db.finding import NameIndex
from swsearch.db.source import Source
from swsearch.db.stored import Segment
from swsearch.db.stored_array import StoredArray
from swsearch.errors import DatabaseError
from swsearch.masking import Mask
from swsearch.translation.codes import codon_table, reverse_complement
from swsearch.translation.frame import CODON, FRAME_NUMBERS

LETTER_CODES: ByteArray = np.array([PROTEIN.letters.index(letter) for letter in DNA.letters], dtype=np.uint8)
"""The codes that letters of DNA have as residues, by their codes as DNA: a database's letters are of one alphabet."""

CHECKED_AT_ONCE = 1 << 22
"""Bytes of packed letters that are checked at a time."""


class DnaSegment(Segment):
    """A segment of DNA, whose subjects are records and whose residues are their nucleotides.

    Parameters
    ----------
    source : Source
        The database's bytes.
    contents : SegmentContents
        What the segment is made of.
    first : int
        Ordinal of its first record in the whole database.
    """

    def __init__(self, source: Source, contents: SegmentContents, first: int) -> None:
        self.source, self.first, self.name = source, first, contents.name
        self.attributes = contents.attributes
        self.stored = {
            name: StoredArray(source, dataset, contents.checksums[name])
            for name, dataset in contents.datasets.items()
        }
        self.n_subjects = self.stored["record_lengths"].shape[0]
        if problem := self._misfit():
            raise self._wrong(problem)
        lengths: npt.NDArray[np.int32] = self.stored["record_lengths"].all()
        if not len(lengths) or lengths.min() < 0:
            raise self._wrong("record lengths are none, or negative")
        self.lengths = RunLengths.of(lengths)
        """Of the records, in input order."""
        self.offsets = offsets_of(lengths.astype(np.int64))
        """Where each record begins among all nucleotides, and where the last one ends."""
        self.block_offsets: IntArray = np.zeros(1, dtype=np.int64)  # records are in no blocks
        self._ranks: npt.NDArray[np.int64] | None = None
        self._index: NameIndex | None = None
        self._n_masked: dict[Mask, int] = {}
        self._near: dict[str, tuple[int, IntArray]] = {}
        if self.stored["nucleotides"].shape[0] != -(-int(self.offsets[-1]) // 2):
            raise self._wrong("nucleotides do not fit the record lengths")
        for name, count in self.counts().items():
            if self.attributes.get(name) != count:
                raise self._wrong(f"attribute {name} is {self.attributes.get(name)!r}, expected {count}")

    def _misfit(self) -> str:
        """Say which dataset has not as many rows as the number of records asks for."""
        n, rows = self.n_subjects, {name: stored.shape[0] for name, stored in self.stored.items()}
        expected = {"header_offsets": n + 1, "mask_offsets": n + 1, "mask_ends": rows["mask_starts"]}
        if "taxids" in rows:
            expected |= {"taxid_offsets": n + 1, "taxon_parents": rows["taxa"], "merged_into": rows["merged_taxids"]}
        return next(
            (f"{name} does not fit the number of records" for name in expected if rows[name] != expected[name]), ""
        )

    def counts(self) -> dict[str, int]:
        """Return what the attributes must say of the lengths."""
        return {
            "n_subjects": self.n_subjects,
            "n_residues": self.lengths.n_residues,
            "n_empty": self.n_subjects - self.lengths.n_filled,
            "longest": self.lengths.longest,
        }

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """The place of each record, shape (n_subjects,), which is that in the input."""
        if self._ranks is None:
            self._ranks = np.arange(self.n_subjects)
        return self._ranks

    def input_lengths(self) -> npt.NDArray[np.int32]:
        """Return the lengths in input order, shape (n_subjects,), in nucleotides."""
        return self.lengths.array()

    def chunk(self, first: int, last: int, mask: Mask = "none") -> Chunk:
        """Raise: records are not scored, their frames are; see `swsearch.db.frames`."""
        raise DatabaseError(f"{self.source.name}: holds DNA, which is searched in its reading frames")

    def nucleotides(self, begin: int, end: int) -> ByteArray:
        """Return letters, counted over all records, as codes of `swsearch.alphabet.DNA`, shape (n,), uint8."""
        data = self.stored["nucleotides"].read(begin // 2, -(-end // 2))
        return unpacked(data)[begin % 2 : begin % 2 + end - begin]

    def codes(self, index: int) -> ByteArray:
        """Return one record's letters as residue codes, shape (length,), uint8."""
        return LETTER_CODES[self.nucleotides(int(self.offsets[index]), int(self.offsets[index + 1]))]

    def copy_codes(self, places: IntArray, to: IntArray, pool: ByteArray) -> None:
        """Write the letters of records, shape (n,), as residue codes into a pool; see `Segment.copy_codes`."""
        for place, at in zip(places.tolist(), to.tolist(), strict=True):
            codes = self.codes(place)
            pool[at : at + len(codes)] = codes

    def translated(
        self, genetic_code: int, records: IntArray, numbers: IntArray, begins: IntArray, ends: IntArray
    ) -> Sequence[ByteArray]:
        """Translate pieces of reading frames.

        Parameters
        ----------
        genetic_code : int
            NCBI's number.
        records, numbers : ndarray, shape (n,), int64
            The record of each piece, and its frame; see `swsearch.translation.Frame`.
        begins, ends : ndarray, shape (n,), int64
            Residues of the frame, 0-based and half-open.

        Returns
        -------
        sequence of ndarray, shape (end - begin,), uint8
            Residue codes of each.
        """
        table = codon_table(genetic_code).reshape(-1)
        shifts, reverse = np.abs(numbers) - 1, numbers < 0
        first, last = shifts + CODON * begins, shifts + CODON * ends
        lengths = self.offsets[records + 1] - self.offsets[records]
        begin = self.offsets[records] + np.where(reverse, lengths - last, first)
        found = []
        for a, n, is_reverse in zip(begin.tolist(), (last - first).tolist(), reverse.tolist(), strict=True):
            letters = self.nucleotides(a, a + n)
            if is_reverse:
                letters = reverse_complement(letters)
            codons = letters[0::CODON].astype(np.int16)
            codons <<= 4
            codons |= letters[1::CODON]
            codons <<= 4
            codons |= letters[2::CODON]
            found.append(table[codons])
        return found

    def check_letters(self) -> None:
        """Check that what stands after the last letter is 0, as it is written; every half of a byte is a letter."""
        total = int(self.offsets[-1])
        if total % 2 and int(self.stored["nucleotides"].read(total // 2, total // 2 + 1)[0]) & 15:
            raise self._wrong("something stands after the last nucleotide")


def frame_lengths(dna_lengths: npt.NDArray[np.integer]) -> IntArray:
    """Return the residues of every frame of records, shape (n, 6), int64, in the order of `FRAME_NUMBERS`."""
    shifts = np.abs(np.array(FRAME_NUMBERS, dtype=np.int64)) - 1
    residues: IntArray = np.maximum(dna_lengths.astype(np.int64)[:, None] - shifts, 0) // CODON
    return residues
