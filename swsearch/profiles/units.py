"""The units of scores: how many nats a matrix's unit is, scores of log ratios in it, and of letters beyond the 20.

A score s of a matrix says that two residues stand together exp(lambda s) times as often as by chance, where lambda
makes these chances sum to one (Karlin and Altschul, PNAS 87:2264, 1990): 0.3176 nats per unit for BLOSUM62. A profile
that is to be searched with a matrix's gap costs has scores in the same units.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray
from swsearch.errors import InputError
from swsearch.matrices.costs import MAX_ENTRY
from swsearch.scoring import Matrix
from swsearch.statistics.random_sequences import background

AMINO_ACIDS = PROTEIN.letters[:20]
"""The letters that frequencies are of, in the order of the codes."""

N_AMINO_ACIDS = len(AMINO_ACIDS)

BACKGROUND: FloatArray = background()
"""Frequencies of the amino acids in proteins, shape (20,), by which BLAST's lambdas are computed."""

_MEANT = {"B": "DN", "J": "IL", "Z": "EQ", "U": "C"}
"""Letters that stand for some of the 20."""

_ITERATIONS = 200


def ungapped_lambda(
    scores: npt.ArrayLike, rows: FloatArray = BACKGROUND, columns: FloatArray = BACKGROUND, name: str = "the matrix"
) -> float:
    """Return the lambda of scores: where the mean of exp(lambda score) over pairs by chance is 1.

    Parameters
    ----------
    scores : array_like, shape (n, m)
        Scores of n rows, which are amino acids or positions of a profile, with m letters.
    rows, columns : ndarray, shape (n,) and (m,), float64, optional
        Frequencies of both; they are scaled to sum to 1. By default those of proteins.
    name : str, optional
        What messages call the scores.

    Returns
    -------
    float
        Nats per unit.

    Raises
    ------
    InputError
        If there is none, since no score is above 0 or the mean score is not below 0.
    """
    table = np.asarray(scores, dtype=np.float64)
    weights = np.outer(rows / rows.sum(), columns / columns.sum())
    table, weights = table[weights > 0], weights[weights > 0]
    if not table.size or table.max() <= 0 or (weights * table).sum() >= 0:
        raise InputError(
            f"{name}: its scores have no lambda, expected a score above 0 and a mean score below 0 for two random "
            "residues; take another matrix, such as BLOSUM62"
        )
    high = 1.0 / float(table.max())
    while float((weights * np.exp(high * table)).sum()) < 1:
        high *= 2
    low = 0.0
    for _ in range(_ITERATIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if float((weights * np.exp(middle * table)).sum()) < 1:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=32)
def _lambda_of(scores: bytes, name: str) -> float:
    table = np.frombuffer(scores, dtype=np.int32).reshape(N_AMINO_ACIDS, N_AMINO_ACIDS)
    return ungapped_lambda(table, name=f"matrix {name}")


def lambda_of(matrix: Matrix) -> float:
    """Return a protein matrix's lambda, nats per unit, of ungapped alignments of proteins of usual composition.

    Raises
    ------
    InputError
        If its scores have none.
    """
    table = np.ascontiguousarray(matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS], dtype=np.int32)
    return _lambda_of(table.tobytes(), matrix.name)


def whole_scores(scores: FloatArray) -> npt.NDArray[np.int8]:
    """Round scores of any shape, to the nearest, halves up, and cut them to what a profile holds, -127 to 127."""
    return np.clip(np.floor(scores + 0.5), -MAX_ENTRY, MAX_ENTRY).astype(np.int8)


def scores_of_ratios(log_ratios: FloatArray, matrix: Matrix) -> FloatArray:
    """Turn the logarithms of ratios to the background, nats, any shape, into scores in a matrix's units."""
    return log_ratios / lambda_of(matrix)


def letter_scores(scores: FloatArray, codes: ByteArray, matrix: Matrix) -> npt.NDArray[np.int8]:
    """Complete the scores of positions by those of the letters that are no amino acid, and round them.

    B, J and Z have the mean of what they stand for, U scores as C; X, O and ``*`` score as in the matrix with the
    letter that the position is shown as: -1, -1 and the matrix's worst for those of BLAST.

    Parameters
    ----------
    scores : ndarray, shape (n, 20), float64
        Of the amino acids in the order of the codes, in the matrix's units.
    codes : ndarray, shape (n,), uint8
        What the positions are shown as.
    matrix : Matrix
        That of the search.

    Returns
    -------
    ndarray, shape (n, 27), int8
        As `Profile.scores`.
    """
    complete = matrix.scores[codes][:, : len(PROTEIN.letters)].astype(np.float64)
    complete[:, :N_AMINO_ACIDS] = scores
    for letter, meant in _MEANT.items():
        columns = [PROTEIN.letters.index(one) for one in meant]
        complete[:, PROTEIN.letters.index(letter)] = scores[:, columns].mean(axis=1)
    return whole_scores(complete)


def scores_of_frequencies(frequencies: FloatArray, background: FloatArray, matrix: Matrix) -> FloatArray:
    """Turn frequencies of the amino acids in positions into scores.

    Parameters
    ----------
    frequencies : ndarray, shape (n, 20), float64
        Of each position; where one is 0, the score is the least that a profile holds.
    background : ndarray, shape (20,), float64
        What they are compared with.
    matrix : Matrix
        In whose units scores are.

    Returns
    -------
    ndarray, shape (n, 20), float64
        Not rounded.
    """
    with np.errstate(divide="ignore"):
        scores = scores_of_ratios(np.log(frequencies / background), matrix)
    return np.maximum(scores, -MAX_ENTRY)


def information(frequencies: FloatArray, background: FloatArray | None) -> FloatArray:
    """Return how far the frequencies of positions, shape (n, 20), are from the background: shape (n,), bits."""
    expected = BACKGROUND if background is None else background
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(frequencies > 0, frequencies * np.log2(frequencies / expected), 0.0)
    bits: FloatArray = parts.sum(axis=1)
    return bits


def is_same_unit(a: float, b: float) -> bool:
    """Say whether two lambdas are those of one matrix, as far as files that print few digits can tell."""
    return math.isclose(a, b, rel_tol=0.04)
