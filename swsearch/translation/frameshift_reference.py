"""Reference recurrence of alignments with frameshifts: the oracle of tests.

One strand of DNA is aligned with a protein. Codons may begin at every nucleotide: a column of the tables stands for
the subject's residues up to j, a row for the strand's nucleotides up to i, and ``codon(i)`` is the amino acid of the
three nucleotides that end there. Gaps are affine, and of whole codons and residues, as in `swsearch.reference`; a
pair of a codon and a residue may begin one nucleotide early or late, which costs ``shift``:

    E[i][j] = max(E[i][j-1], H[i][j-1] - gap_open) - gap_extend      subject residue j left over
    F[i][j] = max(F[i-3][j], H[i-3][j] - gap_open) - gap_extend      codon i left over
    P[i][j] = max(H[i-3][j-1],                                       the codon follows what was read before it
                  H[i-2][j-1] - shift,                               its first nucleotide is read for the second time
                  H[i-4][j-1] - shift)                               a nucleotide before it is skipped
    H[i][j] = max(P[i][j] + score(codon(i), j), E[i][j], F[i][j], 0)

So the frame changes at the boundary of a codon, by one nucleotide at a time, and only right before a pair: after a
gap as well as after a pair. A shift before a gap would cost what it costs after the gap, and two shifts in a row are
none of this recurrence. The model is that of FASTX (W. R. Pearson, T. Wood, Z. Zhang, W. Miller, Genomics 46:24,
1997), with affine gaps; DIAMOND's option ``-F`` has the same three steps.

Alignments are local. The two strands of a DNA query are two sequences here, each aligned on its own.

Of equally good alignments this one is reported:

- the end is the best cell with the smallest subject position, then the smallest nucleotide position;
- going back from H: a pair without a shift, one whose first nucleotide is read twice, one with a nucleotide skipped
  before it, then a gap in the subject (F), then a gap in the query (E);
- going back inside a gap: extending it before opening it;
- the alignment begins where H first falls to 0.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.reference import NEG, Cigar, Table
from swsearch.scoring import Scoring
from swsearch.translation.genetic_codes import CODON

SHIFTS = ((0, ""), (-1, "R"), (1, "F"))
"""Nucleotides by which a codon begins late, and how a CIGAR states that, in the order in which equals are chosen."""


def shifted_tables(codons: ByteArray, subject: ByteArray, scoring: Scoring, shift: int) -> tuple[Table, Table, Table]:
    """Fill the three matrices.

    Parameters
    ----------
    codons, subject : ndarray, shape (n,), uint8
        As for `shifted_align`, like the others.

    Returns
    -------
    H, E, F : list of lists of int
        Each of one row more than the strand has nucleotides, and len(subject) + 1 columns, matrix units.
    """
    rows, m = nucleotides(codons) + 1, len(subject)
    scores = scoring.matrix.scores
    H = [[0] * (m + 1) for _ in range(rows)]
    E = [[NEG] * (m + 1) for _ in range(rows)]
    F = [[NEG] * (m + 1) for _ in range(rows)]
    for i in range(CODON, rows):
        for j in range(1, m + 1):
            E[i][j] = max(E[i][j - 1], H[i][j - 1] - scoring.gap_open) - scoring.gap_extend
            F[i][j] = max(F[i - CODON][j], H[i - CODON][j] - scoring.gap_open) - scoring.gap_extend
            before = max(value for value, _, _ in _pairs(H, i, j, shift))
            paired = before + int(scores[codons[i - CODON], subject[j - 1]])
            H[i][j] = max(paired, E[i][j], F[i][j], 0)
    return H, E, F


def nucleotides(codons: ByteArray) -> int:
    """Count the nucleotides of a strand of which codons are given, shape (n,); 0 where it has no codon."""
    return len(codons) + CODON - 1 if len(codons) else 0


def _pairs(H: Table, i: int, j: int, shift: int) -> list[tuple[int, int, str]]:
    """Return what a pair of the codon that ends at i may follow: value, nucleotides read before it, and the shift."""
    return [
        (H[i - CODON - late][j - 1] - (shift if late else 0), i - CODON - late, how)
        for late, how in SHIFTS
        if i - CODON - late >= 0
    ]


def shifted_score(codons: ByteArray, subject: ByteArray, scoring: Scoring, shift: int) -> int:
    """Return the score that `shifted_align` does, matrix units; `codons` and `subject` of shape (n,), uint8."""
    H, _, _ = shifted_tables(codons, subject, scoring, shift)
    return max(max(row) for row in H)


def shifted_align(codons: ByteArray, subject: ByteArray, scoring: Scoring, shift: int) -> tuple[int, int, int, Cigar]:
    """Align a strand of DNA with a protein.

    Parameters
    ----------
    codons : ndarray, shape (n,), uint8
        Amino acids of the codons that begin at each nucleotide of the strand, which has n + 2; codes of the scoring's
        alphabet. May be empty.
    subject : ndarray, shape (m,), uint8
        Codes; may be empty.
    shift : int
        What a frame shift costs, matrix units, at least 1.

    Returns
    -------
    score : int
        Matrix units.
    query_start, subject_start : int
        The nucleotide of the strand, and the residue, where the first operation begins, counted from 0.
    cigar : tuple of (int, str)
        Runs of ``M`` (a codon with a residue), ``I`` (a codon alone), ``D`` (a residue alone), ``F`` (a nucleotide
        that is skipped) and ``R`` (the codon after it begins one nucleotide early: the last one is read twice).
    """
    H, E, F = shifted_tables(codons, subject, scoring, shift)
    cells = [(i, j) for i in range(len(H)) for j in range(len(H[0]))]
    i, j = min(cells, key=lambda cell: (-H[cell[0]][cell[1]], cell[1], cell[0]))
    best, steps, state = H[i][j], [], "M"
    while state != "M" or H[i][j] > 0:
        if state == "M":
            score = int(scoring.matrix.scores[codons[i - CODON], subject[j - 1]])
            predecessors = [
                (before, how) for value, before, how in _pairs(H, i, j, shift) if value + score == H[i][j]
            ]
            if predecessors:
                i, j = predecessors[0][0], j - 1
                steps += ["M", *predecessors[0][1]]
            else:
                state = "I" if F[i][j] == H[i][j] else "D"
        elif state == "I":
            steps.append("I")
            state = "I" if F[i - CODON][j] - scoring.gap_extend == F[i][j] else "M"
            i -= CODON
        else:
            steps.append("D")
            state = "D" if E[i][j - 1] - scoring.gap_extend == E[i][j] else "M"
            j -= 1
    cigar = tuple((len(list(run)), op) for op, run in groupby(reversed(steps)))
    return best, i, j, cigar


def read_codons(codons: ByteArray, start: int, cigar: Cigar) -> ByteArray:
    """Return the amino acids that an alignment reads, one after the other: of the strand as it was corrected.

    Returns
    -------
    ndarray, shape (n,), uint8
        One for each pair and each codon alone.
    """
    places: list[int] = []
    at = start
    for length, operation in cigar:
        if operation in "MI":
            places += range(at, at + CODON * length, CODON)
        at += length * {"M": CODON, "I": CODON, "D": 0, "F": 1, "R": -1}[operation]
    return codons[np.array(places, dtype=np.int64)]
