"""Weighted residue frequencies of alignment columns, and pseudo-counts.

The extension weights rows by position (``cpu/profiles/weights.hpp``).

Pseudo-counts are the residues that a matrix expects in place of the observed ones (R. L. Tatusov, S. F. Altschul and
E. V. Koonin, PNAS 91:12091, 1994). Their number is a constant, or follows from how far the column's frequencies are
from those of proteins in general (S. F. Altschul, E. M. Gertz, R. Agarwala, A. A. Schaffer and Y.-K. Yu, Nucleic
Acids Res. 37:815, 2009): a conserved column needs few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch.blocks import FloatArray, IntArray
from swsearch.profiles.calibration import BACKGROUND, N_AMINO_ACIDS, lambda_of
from swsearch.scoring import Matrix
from swsearch.statistics import portable_math

_COUNTS, _NUMERATOR, _EXPONENT = 500.0, 0.0457, 0.8
"""A column has 500 a / (1 - a) pseudo-counts, where a is 0.0457 by its entropy in nats to the power of 0.8."""

_SMOOTHING = 5.5
"""Background counts that are added before the entropy is taken, so that few observations are no strong ones."""

_ALL_PSEUDO = 30.0
"""Pseudo-counts of columns that look like the background (a is 1 or more); observations do not count there."""


@dataclass(frozen=True, eq=False)
class ColumnObservations:
    """Weighted observations of an alignment, by column.

    Parameters
    ----------
    frequencies : ndarray, shape (n_columns, 20), float64
        Weighted frequencies of the amino acids; they sum to 1 less the weights below.
    unknown, gaps : ndarray, shape (n_columns,), float64
        Weight of the rows that have another letter there, or a gap.
    observations : ndarray, shape (n_columns,), float64
        How many independent sequences the column amounts to, beside the query; 0 where there is only the query.
    n_rows : ndarray, shape (n_columns,), int64
        Rows that cover the column, the query included.
    """

    frequencies: FloatArray
    unknown: FloatArray
    gaps: FloatArray
    observations: FloatArray
    n_rows: IntArray


def replacements(matrix: Matrix) -> FloatArray:
    """Return how often each amino acid stands where another one does, as a matrix says.

    A matrix with scores s and background p expects residues a and b together with probability p_a p_b exp(lambda s).

    Returns
    -------
    ndarray, shape (20, 20), float64
        Row b holds the frequencies of what stands opposite b; they sum to 1.
    """
    scores = matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS].astype(np.float64)
    expected = BACKGROUND * portable_math.exp(lambda_of(matrix) * scores)
    return expected / np.cumsum(expected, axis=1)[:, -1:]


def with_pseudocounts(
    observed: FloatArray, observations: FloatArray, expected: FloatArray, counts: float | None = None, part: float = 1
) -> tuple[FloatArray, FloatArray]:
    """Mix observed frequencies with expected ones.

    Parameters
    ----------
    observed : ndarray, shape (n, 20), float64
        Frequencies; each row sums to 1.
    observations : ndarray, shape (n,), float64
        Independent observations, beside the query.
    expected : ndarray, shape (n, 20), float64
        Frequencies that `opposite`, or contexts, expect with these; none is 0.
    counts : float, optional
        Pseudo-counts of every column; by default they follow from its entropy.
    part : float
        Part of these that is taken.

    Returns
    -------
    mixed : ndarray, shape (n, 20), float64
        Frequencies; each row sums to 1, and none is 0.
    share : ndarray, shape (n,), float64
        Share of the expected ones in them.
    """
    if counts is None:
        seen, pseudo = observations_by_entropy(observed, observations)
    else:
        seen, pseudo = observations, np.full(len(observations), float(counts))
    pseudo *= part
    mixed: FloatArray = seen[:, None] * observed + pseudo[:, None] * expected
    mixed /= np.cumsum(mixed, axis=1)[:, -1:]
    return mixed, pseudo / (seen + pseudo)


def opposite(observed: FloatArray, replaced: FloatArray) -> FloatArray:
    """Return the residues that a matrix, by its `replacements`, expects opposite those of columns, shape (n, 20)."""
    expected = np.zeros_like(observed)
    for letter in range(N_AMINO_ACIDS):  # not a matrix product, whose last bit is each machine's own
        expected += observed[:, letter, None] * replaced[letter]
    return expected


DEFAULT_DIVERSITY = 4.0
"""Effective number of sequences that is taken for granted where frequencies come without it."""


def mix_by_diversity(frequencies: FloatArray, diversity: FloatArray, matrix: Matrix) -> FloatArray:
    """Mix the frequencies of a file with those that a matrix expects.

    The part of the pseudo-counts is 1 / (1 + diversity / 1.5), so that a single sequence has 0.6 and ten different
    ones 0.13, in the form that HH-suite takes (J. Soeding, Bioinformatics 21:951, 2005).

    Parameters
    ----------
    frequencies : ndarray, shape (n, 20), float64
        Observed ones, which sum to 1.
    diversity : ndarray, shape (n,), float64
        Effective number of different sequences in each position.

    Returns
    -------
    ndarray, shape (n, 20), float64
        None is 0.
    """
    part = (1 / (1 + diversity / 1.5))[:, None]
    return (1 - part) * frequencies + part * opposite(frequencies, replacements(matrix))


def observations_by_entropy(observed: FloatArray, observations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how many observations and how many pseudo-counts each column has, both of shape (n,)."""
    smoothed = observed * observations[:, None] + BACKGROUND * _SMOOTHING
    smoothed /= np.cumsum(smoothed, axis=1)[:, -1:]
    terms = smoothed * portable_math.log(smoothed / BACKGROUND)
    entropy = np.maximum(np.cumsum(terms, axis=1)[:, -1], 1e-10)
    share = _NUMERATOR * portable_math.exp(-_EXPONENT * portable_math.log(entropy))
    is_enough = share < 1.0 - 1e-4
    pseudo = _COUNTS * share / (1.0 - np.where(is_enough, share, 0.0))
    return np.where(is_enough, observations, 0.0), np.where(is_enough, pseudo, _ALL_PSEUDO)
