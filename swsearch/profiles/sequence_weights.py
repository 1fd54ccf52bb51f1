"""Weighted residue frequencies of alignment columns, and pseudo-counts.

Rows are weighted by position (S. Henikoff and J. G. Henikoff, J. Mol. Biol. 243:574, 1994): a column gives each kind
of letter the same weight, which the rows that have it share, and a row has the mean of its columns' weights. As in
PSI-BLAST (S. F. Altschul et al., Nucleic Acids Res. 25:3389, 1997) each column has weights of its own, from the rows
that cover it and the columns over which all of these extend, its block. Many rows make narrow blocks, where weights
mean little; a block is therefore widened to a minimum width (K. Oda et al., BMC Bioinformatics 18:288, 2017). Rows
that do not reach the added columns are not counted there.

Pseudo-counts are the residues that a matrix expects in place of the observed ones (R. L. Tatusov, S. F. Altschul and
E. V. Koonin, PNAS 91:12091, 1994). Their number is a constant, or follows from how far the column's frequencies are
from those of proteins in general (S. F. Altschul, E. M. Gertz, R. Agarwala, A. A. Schaffer and Y.-K. Yu, Nucleic
Acids Res. 37:815, 2009): a conserved column needs few.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.profiles.calibration import BACKGROUND, N_AMINO_ACIDS, lambda_of
from swsearch.profiles.query_alignment import GAP
from swsearch.scoring import Matrix
from swsearch.statistics import portable_math

_COUNTS, _NUMERATOR, _EXPONENT = 500.0, 0.0457, 0.8
"""A column has 500 a / (1 - a) pseudo-counts, where a is 0.0457 by its entropy in nats to the power of 0.8."""

_SMOOTHING = 5.5
"""Background counts that are added before the entropy is taken, so that few observations are no strong ones."""

_ALL_PSEUDO = 30.0
"""Pseudo-counts of columns that look like the background (a is 1 or more); observations do not count there."""


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
    observed: FloatArray, observations: FloatArray, opposite: FloatArray, counts: float | None = None
) -> FloatArray:
    """Mix observed frequencies with those that a matrix expects.

    Parameters
    ----------
    observed : ndarray, shape (n, 20), float64
        Frequencies; each row sums to 1.
    observations : ndarray, shape (n,), float64
        Independent observations, beside the query.
    opposite : ndarray, shape (20, 20), float64
        What `replacements` returns.
    counts : float, optional
        Pseudo-counts of every column; by default they follow from its entropy.

    Returns
    -------
    ndarray, shape (n, 20), float64
        Frequencies; each row sums to 1, and none is 0.
    """
    expected = _opposite(observed, opposite)
    if counts is None:
        seen, pseudo = observations_by_entropy(observed, observations)
    else:
        seen, pseudo = observations, np.full(len(observations), float(counts))
    mixed: FloatArray = seen[:, None] * observed + pseudo[:, None] * expected
    mixed /= np.cumsum(mixed, axis=1)[:, -1:]
    return mixed


def _opposite(observed: FloatArray, opposite: FloatArray) -> FloatArray:
    """Return the residues that a matrix expects opposite the letters of columns, shape (n, 20)."""
    expected = np.zeros_like(observed)
    for letter in range(N_AMINO_ACIDS):  # not a matrix product, whose last bit is each machine's own
        expected += observed[:, letter, None] * opposite[letter]
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
    return (1 - part) * frequencies + part * _opposite(frequencies, replacements(matrix))


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


UNKNOWN, INNER_GAP, ABSENT = N_AMINO_ACIDS, N_AMINO_ACIDS + 1, N_AMINO_ACIDS + 2
"""Cells that are no amino acid: another letter, a gap within a row's aligned part, and a column outside of it or in a
long gap."""

_KINDS = ABSENT + 1

_ROWS_PER_CHANGE = 32
"""Weights stay while fewer than one in so many rows begin or end: of 1,000 rows one begins in nearly every column,
and weights of its own for each column would take three times as long to differ by nothing."""

_MAX_OBSERVATIONS = 400
"""Beyond these, all amino acids are expected in a column."""


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


def cells_of(columns: ByteArray, max_gap_length: int) -> ByteArray:
    """Turn codes and gaps of an alignment into cells.

    Amino acids have their codes and U is C; see `UNKNOWN`, `INNER_GAP` and `ABSENT` for the others.

    Parameters
    ----------
    columns : ndarray, shape (n_rows, n_columns), uint8
        Codes, and `GAP`.
    max_gap_length : int
        Columns of the longest gap that is a gap; a row is absent from longer ones.

    Returns
    -------
    ndarray, shape (n_rows, n_columns), uint8
    """
    table = np.full(256, UNKNOWN, dtype=np.uint8)
    table[:N_AMINO_ACIDS] = np.arange(N_AMINO_ACIDS)
    table[PROTEIN.letters.index("U")] = PROTEIN.letters.index("C")
    table[GAP] = INNER_GAP
    cells = table[columns]
    begins, ends = extents(cells)
    places = np.arange(columns.shape[1])
    cells[(places < begins[:, None]) | (places >= ends[:, None])] = ABSENT
    gaps = np.flatnonzero(cells == INNER_GAP)  # those of a row one after the other; no gap touches its row's ends
    if len(gaps) > max_gap_length:
        of_run = np.cumsum(np.diff(gaps, prepend=-2) != 1)
        cells.ravel()[gaps[np.bincount(of_run)[of_run] > max_gap_length]] = ABSENT
    return cells


def extents(cells: ByteArray) -> tuple[IntArray, IntArray]:
    """Return where the aligned part of each row begins and ends, shape (n_rows,), half-open; 0 of rows without."""
    is_residue = cells < INNER_GAP
    if not cells.size:
        return np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells), dtype=np.int64)
    any_residue = is_residue.any(axis=1)
    begins = is_residue.argmax(axis=1)
    ends = cells.shape[1] - is_residue[:, ::-1].argmax(axis=1)
    return np.where(any_residue, begins, 0).astype(np.int64), np.where(any_residue, ends, 0).astype(np.int64)


def observe(cells: ByteArray, min_block_columns: int, max_block_columns: int) -> ColumnObservations:
    """Weight the rows of an alignment in each column, and count what they observe.

    Parameters
    ----------
    cells : ndarray, shape (n_rows, n_columns), uint8
        What `cells_of` returns; the first row is the query, and has residues in all columns.
    min_block_columns, max_block_columns : int
        Columns of a block, where there are so many.
    """
    n_rows, n_columns = cells.shape
    begins, ends = extents(cells)
    by_column = np.ascontiguousarray(cells.T)
    weights = np.zeros((n_columns, _KINDS))
    observations = np.zeros(n_columns)
    is_absent = by_column == ABSENT
    n_present = n_rows - is_absent.sum(axis=1)
    for begin, end in _stretches((is_absent[1:] != is_absent[:-1]).sum(axis=1), n_present):
        here = slice(begin, end)
        rows = np.flatnonzero(~is_absent[here].all(axis=0))
        if len(rows) == 1:
            weights[np.arange(begin, end), by_column[here, 0]] = 1.0
            continue
        inner = min(begin, int(begins[rows[1:]].max())), max(end, int(ends[rows[1:]].min()))
        block = by_column[slice(*_block(begin, end, inner, n_columns, min_block_columns, max_block_columns))]
        of_rows, observed = weights_of(block if len(rows) == n_rows else block[:, rows])
        observations[here] = max(0.0, min(observed, float(len(rows))) - 1.0)
        cells_here = by_column[here] if len(rows) == n_rows else by_column[here][:, rows]
        places = cells_here + np.arange(end - begin)[:, None] * _KINDS
        weights[here] = np.bincount(
            places.ravel(), np.broadcast_to(of_rows, places.shape).ravel(), (end - begin) * _KINDS
        ).reshape(-1, _KINDS)
    weights[:, ABSENT] = 0.0
    weights /= np.cumsum(weights, axis=1)[:, -1:]
    return ColumnObservations(
        weights[:, :N_AMINO_ACIDS], weights[:, UNKNOWN].copy(), weights[:, INNER_GAP].copy(), observations, n_present
    )


def _stretches(changes: IntArray, n_present: IntArray) -> list[tuple[int, int]]:
    """Divide the columns into stretches that the same rows cover, but for one in `_ROWS_PER_CHANGE` of many.

    Parameters
    ----------
    changes : ndarray, shape (n_columns - 1,), int64
        Rows that begin or end between each column and the next.
    n_present : ndarray, shape (n_columns,), int64
        Rows of each column.
    """
    n_columns = len(n_present)
    stretches: list[tuple[int, int]] = []
    begin, changed = 0, 0
    for bound in (np.flatnonzero(changes) + 1).tolist():
        changed += int(changes[bound - 1])
        if changed * _ROWS_PER_CHANGE > n_present[bound]:
            stretches.append((begin, bound))
            begin, changed = bound, 0
    return [*stretches, (begin, n_columns)] if n_columns else []


def _block(
    begin: int, end: int, inner: tuple[int, int], n_columns: int, min_block_columns: int, max_block_columns: int
) -> tuple[int, int]:
    """Widen or narrow a block around the columns from ``begin`` to ``end``, of which it holds all."""
    left, right = inner
    if right - left < min_block_columns:
        missing = min_block_columns - (right - left)
        left = max(0, left - (missing + 1) // 2)
        right = min(n_columns, left + min_block_columns)
        left = max(0, right - min_block_columns)
    elif right - left > max(max_block_columns, end - begin):
        margin = max(0, max_block_columns - (end - begin)) // 2
        left, right = max(left, begin - margin), min(right, end + margin)
    return left, right


def weights_of(block: npt.NDArray[np.uint8]) -> tuple[FloatArray, float]:
    """Weight rows by position over a block of columns, and count the independent sequences that they amount to.

    The number of independent sequences is that which would show, on average, as many kinds of amino acids as the more
    varied half of the columns does (S. F. Altschul et al., Nucleic Acids Res. 37:815, 2009).

    Parameters
    ----------
    block : ndarray, shape (n_columns, n_rows), uint8
        Cells; the first row is absent nowhere.

    Returns
    -------
    weights : ndarray, shape (n_rows,), float64
        They sum to 1.
    observations : float
        At least 1.
    """
    n_columns, n_rows = block.shape
    places = block + np.arange(n_columns)[:, None] * _KINDS
    counts = np.bincount(places.ravel(), minlength=n_columns * _KINDS).reshape(n_columns, _KINDS)
    present = n_rows - counts[:, ABSENT]
    kinds = (counts[:, :ABSENT] > 0).sum(axis=1)
    shares = present[:, None] / (kinds[:, None] * np.maximum(1, counts))
    shares[:, ABSENT] = 0.0
    total = np.zeros(n_rows)
    for column in shares.ravel()[places]:  # one after the other, so that sums are the same on every machine
        total += column
    covered = n_columns if not counts[:, ABSENT].any() else (block != ABSENT).sum(axis=0)
    weights = total / covered
    weights /= np.cumsum(weights)[-1]
    return weights, count_independent(np.sort((counts[:, :N_AMINO_ACIDS] > 0).sum(axis=1))[n_columns // 2 :])


def count_independent(kinds: IntArray) -> float:
    """Return how many random sequences show as many kinds of residues as columns, shape (n,), do on average."""
    mean = int(kinds.sum()) / len(kinds)
    expected = _expected_kinds()
    above = int(np.searchsorted(expected, mean, side="right"))
    if above >= len(expected):
        return float(_MAX_OBSERVATIONS)
    return max(1.0, above - float(expected[above] - mean) / float(expected[above] - expected[above - 1]))


@cache
def _expected_kinds() -> FloatArray:
    """Return how many kinds of amino acids 0, 1, 2, ... random residues are expected to be, ascending."""
    missing = np.ones(N_AMINO_ACIDS)
    expected = np.zeros(_MAX_OBSERVATIONS + 1)
    for n in range(1, _MAX_OBSERVATIONS + 1):
        missing = missing * (1.0 - BACKGROUND)
        expected[n] = N_AMINO_ACIDS - np.cumsum(missing)[-1]
    return expected
