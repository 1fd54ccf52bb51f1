"""What the study fills matrices for: pairs of made-up sequences, and the two kinds of gap costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.options.words import Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring, dna_matrix, load_matrix

GAPS = ("linear", "affine")
"""Kinds of gap costs; linear is affine with gap_open 0."""

MATCH, MISMATCH = 5, -4
DNA_GAPS = {"linear": (0, 6), "affine": (10, 1)}
PROTEIN_GAPS = {"linear": (0, 5), "affine": (11, 1)}
"""gap_open and gap_extend. The papers with DNA leave their scores open; Szafarczyk's gaps cost 5."""

SEED = 2026


@dataclass(frozen=True)
class Problem:
    """Two sequences and the recurrence that is computed for them.

    Parameters
    ----------
    query, subject : ndarray, shape (n,), uint8
        Codes of the scoring's alphabet.
    recurrence : Recurrence
        What fills the matrix, local or global.
    """

    query: ByteArray
    subject: ByteArray
    recurrence: Recurrence

    @property
    def cells(self) -> int:
        """Cells of the matrix without row 0 and column 0."""
        return len(self.query) * len(self.subject)


def dna_scoring(gaps: str) -> Scoring:
    """Return match and mismatch scores with gap costs of a kind."""
    return Scoring(dna_matrix(MATCH, MISMATCH), *DNA_GAPS[gaps])


def protein_scoring(gaps: str) -> Scoring:
    """Return BLOSUM62 with gap costs of a kind."""
    return Scoring(load_matrix("BLOSUM62"), *PROTEIN_GAPS[gaps])


def random_problem(rows: int, columns: int, mode: Mode, gaps: str, *, protein: bool = False) -> Problem:
    """Make a pair up; a stretch of the query stands in the subject, so that some alignment is long.

    Parameters
    ----------
    rows, columns : int
        Lengths of query and subject.
    mode : {"local", "global"}
        Which matrix is filled.
    gaps : {"linear", "affine"}
        Kind of gap costs.
    protein : bool
        20 amino acids with BLOSUM62 instead of 4 bases with match and mismatch.
    """
    generator = np.random.default_rng([SEED, rows, columns, protein])
    letters = 20 if protein else 4
    query = generator.integers(0, letters, rows, dtype=np.uint8)
    subject = generator.integers(0, letters, columns, dtype=np.uint8)
    shared = min(rows, columns) // 2
    subject[columns - shared :] = query[:shared]
    scoring = protein_scoring(gaps) if protein else dna_scoring(gaps)
    return Problem(query, subject, Recurrence(scoring, mode))
