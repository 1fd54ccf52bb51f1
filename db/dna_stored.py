"""Reading a segment of DNA: records by place, and residues of their reading frames, translated when they are read."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.blocks import Chunk, IntArray, RunLengths
from swsearch.db.classes import offsets_of
from swsearch.db.content import ranges
from swsearch.db.dna_layout import unpacked
from swsearch.db.stored import Segment
from swsearch.errors import DatabaseError
from swsearch.options.words import Mask
from swsearch.translation.codes import codon_table, reverse_complement
from swsearch.translation.frame import CODON, FRAME_NUMBERS

LETTER_CODES: ByteArray = np.array([PROTEIN.letters.index(letter) for letter in DNA.letters], dtype=np.uint8)
"""The codes that letters of DNA have as residues, by their codes as DNA: a database's letters are of one alphabet."""

CHECKED_AT_ONCE = 1 << 22
"""Bytes of packed letters that are checked at a time."""

LONG_PIECE = 4096
"""Residues from which on a piece of a frame is translated by itself; shorter ones are translated together, since each
costs 20 us of Python's time alone."""

SHORT_RESIDUES = 1 << 22
"""Residues of short pieces that are translated together, with up to 25 bytes of memory each."""


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

    counted = "record_lengths"

    def _take_lengths(self) -> None:
        """Read how long the records are, and check that the nucleotides fit this."""
        lengths: npt.NDArray[np.int32] = self.stored["record_lengths"].all()
        if not len(lengths) or lengths.min() < 0:
            raise self._wrong("record lengths are missing or negative")
        self.lengths = RunLengths.of(lengths)
        """Of the records, in input order."""
        self.offsets = offsets_of(lengths.astype(np.int64))
        """Where each record begins among all nucleotides, and where the last one ends."""
        self.block_offsets: IntArray = np.zeros(1, dtype=np.int64)  # records are in no blocks
        if self.stored["nucleotides"].shape[0] != -(-int(self.offsets[-1]) // 2):
            raise self._wrong("nucleotides do not fit the record lengths")

    def check_blocks(self) -> None:
        """Raise `DatabaseError`: what would be scored are no subjects, and there would be none."""
        raise self._not_scored()

    def _not_scored(self) -> DatabaseError:
        """Return the error for a caller that would score the records themselves."""
        return DatabaseError(
            f"{self.source.name}: a DNA database has no protein residues to score; search it with swsearch search, "
            "or swsearch.search in Python"
        )

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
        raise self._not_scored()

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
    ) -> tuple[ByteArray, IntArray]:
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
        codes : ndarray, shape (n_residues,), uint8
            Residue codes of all, end to end.
        offsets : ndarray, shape (n + 1,), int64
            Where each begins.
        """
        shifts, reverse, counts = np.abs(numbers) - 1, numbers < 0, ends - begins
        lengths = self.offsets[records + 1] - self.offsets[records]
        from_end = lengths - shifts - CODON * ends
        at = self.offsets[records] + np.where(reverse, from_end, shifts + CODON * begins)
        offsets = offsets_of(counts)
        codes = np.empty(int(offsets[-1]), dtype=np.uint8)
        tables = _tables(genetic_code)
        rows = np.flatnonzero(counts >= LONG_PIECE)
        for row, first, n in zip(rows.tolist(), at[rows].tolist(), counts[rows].tolist(), strict=True):
            found = tables[int(reverse[row])][_codons(self.nucleotides(first, first + CODON * n))[::CODON]]
            codes[offsets[row] : offsets[row + 1]] = found[::-1] if reverse[row] else found
        rows = np.flatnonzero((counts > 0) & (counts < LONG_PIECE))
        total = np.cumsum(counts[rows])
        cuts = np.searchsorted(total, np.arange(SHORT_RESIDUES, total[-1] if len(rows) else 0, SHORT_RESIDUES))
        for some in filter(len, np.split(rows, cuts)):
            found = self._short(tables, at[some], counts[some], reverse[some])
            if len(rows) == len(counts):
                codes[offsets[some[0]] : offsets[some[-1] + 1]] = found
            else:
                codes[ranges(offsets[some], counts[some])] = found
        return codes, offsets

    def _short(self, tables: ByteArray, at: IntArray, counts: IntArray, reverse: npt.NDArray[np.bool_]) -> ByteArray:
        """Translate short pieces together, n of them, end to end.

        Pieces that overlap, as frames of a record do, are read once, and the codons of both strands are translated
        wherever they begin: each piece is every third of them.

        Parameters
        ----------
        tables : ndarray, shape (2, n_codons), uint8
            See `_tables`.
        at, counts : ndarray, shape (n,), int64
            First letters, counted over all records on the strand that was given, and residues; at least 1.
        reverse : ndarray, shape (n,), bool
            Which are of the other strand.

        Returns
        -------
        ndarray, shape (n_residues,), uint8
        """
        first, last = at // 2, -(-(at + CODON * counts) // 2)  # bytes
        order = np.argsort(first, kind="stable")
        until = np.maximum.accumulate(last[order])
        new = np.append(True, first[order][1:] > until[:-1])
        heads = np.flatnonzero(new)
        starts, stops = first[order][heads], until[np.append(heads[1:], len(order)) - 1]
        places = offsets_of(stops - starts)
        data = np.empty(int(places[-1]), dtype=np.uint8)
        self.stored["nucleotides"].copy(starts, stops - starts, places[:-1], data)
        codons = _codons(unpacked(data))
        residues = tables[:, codons].reshape(-1)
        moved = np.empty(len(at), dtype=np.int64)
        moved[order] = 2 * (places[:-1] - starts)[np.cumsum(new) - 1]
        begin = at + moved + np.where(reverse, len(codons) + CODON * (counts - 1), 0)
        step = np.where(reverse, -CODON, CODON)
        within = np.repeat(step, counts)
        firsts = np.cumsum(counts) - counts
        within[firsts[1:]] = begin[1:] - (begin + step * (counts - 1))[:-1]  # from the end of the piece before
        within[0] = begin[0]
        found: ByteArray = residues[np.cumsum(within, out=within)]
        return found

    def check_letters(self) -> None:
        """Check that what stands after the last letter is 0, as it is written; every half of a byte is a letter."""
        total = int(self.offsets[-1])
        if total % 2 and int(self.stored["nucleotides"].read(total // 2, total // 2 + 1)[0]) & 15:
            raise self._wrong("bytes found after the last nucleotide")


def _codons(letters: ByteArray) -> npt.NDArray[np.int16]:
    """Return the codons that begin with each letter, shape (n,), as shape (n - 2,): four bits for each letter."""
    codons = letters[: 1 - CODON].astype(np.int16)
    codons <<= 4
    codons |= letters[1:-1]
    codons <<= 4
    codons |= letters[CODON - 1 :]
    return codons


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
