"""Alignment of DNA with a protein, with frameshifts of one nucleotide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.translation.frameshift_reference import read_codons
from swsearch.translation.genetic_codes import CODON

if TYPE_CHECKING:
    from Bio.Align import Alignment

SHIFT_MARKS = {"F": "\\", "R": "/"}
"""Marks in the query's row, opposite a gap, for a skipped nucleotide and for one that is read twice."""

NUCLEOTIDES_OF = {"M": CODON, "I": CODON, "D": 0, "F": 1, "R": -1}
"""By how many nucleotides each operation goes on."""


@dataclass(frozen=True, eq=False)
class ShiftedAlignment(PairAlignment):
    r"""An alignment with frame shifts, as `swsearch.translation.frameshift_reference.shifted_align` returns it.

    It counts and shows the residues that are read. A shift is a column of its own, ``\`` or ``/`` in the query's row
    and a gap in the subject's, and counts as a gap.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8
        Amino acids of the codons that begin at each nucleotide of the strand, which has n + 2.
    subject, scoring, score, subject_start, query_letters, subject_letters, counts, query_rows
        As of a `PairAlignment`; letters are those of the codons.
    query_start : int
        The strand's nucleotide where the first codon begins, counted from 0.
    cigar : tuple of (int, str)
        Runs of ``M``, ``I``, ``D``, ``F`` and ``R``.
    frame_shift : int or None
        What a shift costs, matrix units, where that is known.
    """

    frame_shift: int | None = None

    @cached_property
    def query_end(self) -> int:
        """One past the last aligned nucleotide of the strand."""
        return self.query_start + sum(n * NUCLEOTIDES_OF[op] for n, op in self.cigar)

    @cached_property
    def subject_end(self) -> int:
        """One past the last aligned subject residue."""
        return self.subject_start + sum(n for n, op in self.cigar if op in "MD")

    def _paired(self, query: ByteArray, subject: ByteArray) -> tuple[ByteArray, ByteArray]:
        ops = self.column_ops
        read = read_codons(query, self.query_start, self.cigar)
        on_subject = subject[self.subject_start : self.subject_end]
        pair = ord("M")
        return read[ops[np.isin(ops, (pair, ord("I")))] == pair], on_subject[
            ops[np.isin(ops, (pair, ord("D")))] == pair
        ]

    def _row(self, codes: ByteArray, letters: ByteArray | None, start: int, end: int, gap: str) -> str:
        alphabet, ops = self.scoring.matrix.alphabet, self.column_ops
        characters = alphabet.decode_table[codes] if letters is None else letters
        is_query = gap == "D"
        part = read_codons(characters, start, self.cigar) if is_query else characters[start:end]
        row = np.full(self.length, ord("-"), dtype=np.uint8)
        row[np.isin(ops, [ord(op) for op in ("MI" if is_query else "MD")])] = part
        for op, mark in SHIFT_MARKS.items() if is_query else ():
            row[ops == ord(op)] = ord(mark)
        return row.tobytes().decode("ascii")

    def recompute_score(self) -> int:
        """Add the score up again, column by column, independently of how it was found."""
        assert self.frame_shift is not None, "what a shift costs is not known"
        total, i, j = 0, self.query_start, self.subject_start
        for n, op in self.cigar:
            if op == "M":
                codons, residues = self.query[i : i + CODON * n : CODON], self.subject[j : j + n]
                total += int(self.scoring.matrix.scores[codons, residues].sum(dtype=np.int64))
            else:
                total -= self.frame_shift if op in SHIFT_MARKS else self.scoring.gap_cost(n)
            i, j = i + n * NUCLEOTIDES_OF[op], j + n * (op in "MD")
        return total

    def as_read(self) -> PairAlignment:
        """Return the alignment of the residues that are read, one after the other, without the shifts."""
        runs = [(n, op) for n, op in self.cigar if op not in SHIFT_MARKS]
        cigar = tuple((sum(n for n, _ in some), op) for op, some in groupby(runs, key=itemgetter(1)))
        letters = (
            None if self.query_letters is None else read_codons(self.query_letters, self.query_start, self.cigar)
        )
        return PairAlignment(
            read_codons(self.query, self.query_start, self.cigar), self.subject, self.scoring, self.score, 0,
            self.subject_start, cigar, letters, self.subject_letters,
        )  # fmt: skip

    def to_biopython(self, query_id: str = "query", subject_id: str = "subject") -> Alignment:
        """Return the residues that are read as a Bio.Align.Alignment; the query's coordinates count these."""
        return self.as_read().to_biopython(query_id, subject_id)
