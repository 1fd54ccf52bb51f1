"""Units of scores, and the calibration of HMMER models.

A score s of a matrix says that two residues are paired exp(lambda s) times as often as by chance, where lambda makes
these chances sum to one (Karlin and Altschul, PNAS 87:2264, 1990): 0.3176 nats per unit for BLOSUM62. Profiles have
scores in the units of the matrix whose gap costs they use.

HMMER compares bit scores with a Gumbel distribution (MSV and Viterbi filters) and an exponential tail (Forward).
Lambda is ln 2, corrected for short models. The locations depend on the model (S. R. Eddy, PLoS Comput. Biol.
4:e1000069, 2008). This module estimates them as hmmbuild does, with other random sequences: 200 of 200 residues for
the filters, and 200 of 100 residues for Forward. Forward's tail begins where a fitted Gumbel distribution leaves a
probability of 0.04. The filters count in their own units: MSV in thirds of a bit, and both charge 3 nats for all
residues outside of alignments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray
from swsearch.errors import InputError
from swsearch.matrices import GAP_COSTS, PRESET_MATRICES
from swsearch.matrices.tables import MAX_ENTRY
from swsearch.scoring import Matrix, Scoring, load_matrix
from swsearch.statistics.random_panel import background

if TYPE_CHECKING:
    from swsearch.profiles.profile import Profile

_LN2 = math.log(2)

_SEQUENCES, _FILTER_LENGTH, _FORWARD_LENGTH, _TAIL = 200, 200, 100, 0.04

_SEED = 42

_CELLS = 1 << 15
"""Cells of a matrix row that are computed at once: they fit the processor's cache."""

_OUTSIDE = 3.0
"""Nats that the filters charge for all residues outside of alignments."""

_SMALL = 1e-9
"""Runs of deletions with smaller probabilities are left out."""


@dataclass(frozen=True)
class Calibration:
    """Calibration of scores, in bits: Gumbel locations of both filters, start of Forward's tail, and lambda."""

    msv: float
    viterbi: float
    forward: float
    lambda_: float


def calibrate(emissions: FloatArray, transitions: FloatArray, background: FloatArray) -> Calibration:
    """Calibrate a model.

    Parameters
    ----------
    emissions : ndarray, shape (n, 20), float64
        Probabilities of the match states, above 0.
    transitions : ndarray, shape (n + 1, 7), float64
        Probabilities as `swsearch.profiles.formats.transitions` returns them.
    background : ndarray, shape (20,), float64
        HMMER's.
    """
    n = len(emissions)
    odds = np.ascontiguousarray((emissions / background).T)
    logs = np.log(odds)
    information = float((emissions.T * logs).sum()) / n / _LN2
    lambda_ = _LN2 + 1.44 / (n * information) if information > 0 else _LN2
    generator = np.random.default_rng(_SEED)

    def scores(length: int, score: Callable[[npt.NDArray[np.int64]], FloatArray]) -> FloatArray:
        """Return bits of random sequences, shape (sequences,), against the null model of their length."""
        drawn = generator.random((length, _SEQUENCES))
        codes = np.searchsorted(np.cumsum(background)[:-1] / background.sum(), drawn)
        parts = max(1, math.ceil(_SEQUENCES * n / _CELLS))
        scored = np.concatenate([score(part) for part in np.array_split(codes, min(parts, _SEQUENCES), axis=1)])
        return (scored - length * math.log(length / (length + 1)) + math.log(length + 1)) / _LN2

    entries = _entries(transitions)
    msv = scores(_FILTER_LENGTH, lambda codes: _msv(logs, codes))
    viterbi = scores(_FILTER_LENGTH, lambda codes: _viterbi(logs, transitions, entries, codes))
    forward = scores(_FORWARD_LENGTH, lambda codes: _forward(odds, transitions, entries, codes))
    location, slope = _fit_gumbel(forward)
    tail = location - math.log(-math.log1p(-_TAIL)) / slope + math.log(_TAIL) / lambda_
    return Calibration(_fit_location(msv, lambda_), _fit_location(viterbi, lambda_), tail, lambda_)


def occupancy(transitions: FloatArray) -> FloatArray:
    """Return the probability that a path through the whole model uses each match state, shape (n,)."""
    used = np.zeros(len(transitions) - 1)
    at = 1.0
    for k, row in enumerate(transitions[:-1].tolist()):
        at = at * (row[0] + row[1]) + (1 - at) * row[5]
        used[k] = at
    return used


def _entries(transitions: FloatArray) -> FloatArray:
    """Return the probabilities that an alignment begins at each position, shape (n,), all its ends being alike."""
    used = occupancy(transitions)
    entries: FloatArray = used / (used * np.arange(len(used), 0, -1)).sum()
    return entries


def _shift(row: npt.NDArray[Any], first: float) -> npt.NDArray[Any]:
    """Return each position's predecessor in rows of shape (sequences, n)."""
    moved = np.empty_like(row)
    moved[:, 0], moved[:, 1:] = first, row[:, :-1]
    return moved


def _msv(logs: FloatArray, codes: npt.NDArray[np.int64]) -> FloatArray:
    """Return scores in nats of sequences, shape (length, sequences), without gaps, in thirds of a bit."""
    n, unit = logs.shape[1], 3 / _LN2
    length, n_sequences = codes.shape
    scores = np.floor(logs * unit + 0.5)
    entry, half = (round(unit * math.log(part)) for part in (2 / (n * (n + 1)), 0.5))
    move = round(unit * math.log(3 / (length + 3)))
    match = np.full((n_sequences, n), -np.inf)
    best, begin = np.full(n_sequences, -np.inf), np.full(n_sequences, float(move))
    for residues in codes:
        match = np.maximum(_shift(match, -np.inf), (begin + entry)[:, None])
        match += scores[residues]
        best = np.maximum(best, match.max(axis=1) + half)
        begin = np.maximum(begin, best + move)
    return (best + move) / unit - _OUTSIDE


def _viterbi(
    logs: FloatArray, transitions: FloatArray, entries: FloatArray, codes: npt.NDArray[np.int64]
) -> FloatArray:
    """Return scores in nats of the best paths of sequences, shape (length, sequences)."""
    length, n_sequences = codes.shape
    with np.errstate(divide="ignore"):
        to_match, to_insert, to_delete, from_insert, inserting, from_delete, deleting = np.log(transitions[1:].T)
        begins = np.log(entries)
    runs = np.concatenate([[0.0], np.cumsum(deleting[:-1])])
    move, half = math.log(3 / (length + 3)), math.log(0.5)
    match = np.full((n_sequences, logs.shape[1]), -np.inf)
    insert, delete = match.copy(), match.copy()
    best, begin = np.full(n_sequences, -np.inf), np.full(n_sequences, move)
    for residues in codes:
        before = np.maximum(np.maximum(match + to_match, insert + from_insert), delete + from_delete)
        insert = np.maximum(match + to_insert, insert + inserting)
        match = np.maximum(_shift(before, -np.inf), begin[:, None] + begins) + logs[residues]
        delete = np.maximum.accumulate(_shift(match + to_delete, -np.inf) - runs, axis=1) + runs
        best = np.maximum(best, match.max(axis=1) + half)
        begin = np.maximum(begin, best + move)
    return best + move - _OUTSIDE


def _forward(
    odds: FloatArray, transitions: FloatArray, entries: FloatArray, codes: npt.NDArray[np.int64]
) -> FloatArray:
    """Return scores in nats of all paths together of sequences, shape (length, sequences)."""
    length, n_sequences = codes.shape
    to_match, to_insert, to_delete, from_insert, inserting, from_delete, deleting = transitions[1:].T
    runs = list(_deletion_runs(deleting))
    loop, move = length / (length + 3), 3 / (length + 3)
    match = np.zeros((n_sequences, odds.shape[1]))
    insert, delete = match.copy(), match.copy()
    outside, joined, ended = np.ones(n_sequences), np.zeros(n_sequences), np.zeros(n_sequences)
    for residues in codes:
        before = match * to_match + insert * from_insert + delete * from_delete
        insert = match * to_insert + insert * inserting
        begin = (outside + joined) * move
        match = (_shift(before, 0.0) + begin[:, None] * entries) * odds[residues]
        delete = _shift(match * to_delete, 0.0)
        for step, going_on in runs:
            delete[:, step:] += going_on * delete[:, :-step]
        part = (match + delete).sum(axis=1) / 2
        outside, joined, ended = outside * loop, joined * loop + part, ended * loop + part
    scores: FloatArray = np.log(ended * move)
    return scores


def _deletion_runs(deleting: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield the probabilities that a run of deletions goes on for 1, 2, 4, ... positions, shape (n - step,).

    Applied one after the other, they make up runs of every length.
    """
    step, going_on = 1, deleting[:-1]
    while going_on.size and going_on.max() > _SMALL:
        yield step, going_on
        going_on = going_on[step:] * going_on[:-step]
        step *= 2


def _fit_location(scores: FloatArray, lambda_: float) -> float:
    """Return the maximum-likelihood location of a Gumbel distribution with known lambda."""
    low = float(scores.min())
    return low - math.log(float(np.exp(-lambda_ * (scores - low)).mean())) / lambda_


def _fit_gumbel(scores: FloatArray) -> tuple[float, float]:
    """Return the maximum-likelihood location and lambda of a Gumbel distribution, by Newton's method."""
    moved = scores - scores.min()
    slope = math.pi / math.sqrt(6 * max(float(moved.var()), 1e-12))
    for _ in range(100):
        weights = np.exp(-slope * moved)
        first, second = (float((weights * moved**power).sum() / weights.sum()) for power in (1, 2))
        error = 1 / slope - float(moved.mean()) + first
        change = error / (1 / slope**2 + second - first**2)
        slope = max(slope + change, slope / 2)
        if abs(change) < 1e-9 * slope:
            break
    return _fit_location(scores, slope), slope


AMINO_ACIDS = PROTEIN.letters[:20]
"""The letters that frequencies are of, in the order of the codes."""

N_AMINO_ACIDS = len(AMINO_ACIDS)

BACKGROUND: FloatArray = background()
"""Frequencies of the amino acids in proteins, shape (20,), by which BLAST's lambdas are computed."""

_MEANT = {"B": "DN", "J": "IL", "Z": "EQ", "U": "C"}
"""Letters that stand for some of the 20."""

_ITERATIONS = 200


def solve_lambda(
    scores: npt.ArrayLike, rows: FloatArray = BACKGROUND, columns: FloatArray = BACKGROUND, name: str = "the matrix"
) -> float:
    """Return the lambda of scores: where the mean of exp(lambda score) over pairs by chance is 1.

    Parameters
    ----------
    scores : array_like, shape (n, m)
        Scores of n rows, which are amino acids or positions of a profile, with m letters.
    rows, columns : ndarray, shape (n,) and (m,), float64, optional
        Frequencies of both; they are scaled to sum to 1. By default those of proteins.

    Returns
    -------
    float
        Nats per unit.
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
    return solve_lambda(table, name=f"matrix {name}")


def lambda_of(matrix: Matrix) -> float:
    """Return a protein matrix's lambda, nats per unit, of ungapped alignments of proteins of usual composition."""
    table = np.ascontiguousarray(matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS], dtype=np.int32)
    return _lambda_of(table.tobytes(), matrix.name)


def round_scores(scores: FloatArray) -> npt.NDArray[np.int8]:
    """Round scores of any shape, to the nearest, halves up, and cut them to what a profile holds, -127 to 127."""
    return np.clip(np.floor(scores + 0.5), -MAX_ENTRY, MAX_ENTRY).astype(np.int8)


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
    return round_scores(complete)


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
        scores = np.log(frequencies / background) / lambda_of(matrix)
    return np.maximum(scores, -MAX_ENTRY)


def information(frequencies: FloatArray, background: FloatArray | None) -> FloatArray:
    """Return how far the frequencies of positions, shape (n, 20), are from the background: shape (n,), bits."""
    expected = BACKGROUND if background is None else background
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(frequencies > 0, frequencies * np.log2(frequencies / expected), 0.0)
    bits: FloatArray = parts.sum(axis=1)
    return bits


def is_same_unit(a: float, b: float) -> bool:
    """Return whether two lambdas may be of one matrix, given the few digits that files print."""
    return math.isclose(a, b, rel_tol=0.04)


def profile_matrix(profile: Profile, scoring: Scoring, has_explicit_scoring: bool) -> Matrix:
    """Return the matrix in whose units a profile is: the search's, or another if that is the default of a search.

    It raises `InputError` if there is none.
    """
    own = lambda_of(scoring.matrix)
    if profile.lambda_ is None or is_same_unit(profile.lambda_, own):
        return scoring.matrix
    fitting = [name for name in GAP_COSTS if is_same_unit(lambda_of(load_matrix(name)), profile.lambda_)]
    fitting.sort(key=lambda name: GAP_COSTS[name] != (profile.gap_open, profile.gap_extend))
    defaults = PRESET_MATRICES["default"], PRESET_MATRICES["context"]
    if fitting and scoring.matrix.name in defaults and not has_explicit_scoring:
        return load_matrix(fitting[0])
    remedy = (
        f"; search with --matrix {' or '.join(fitting)}" if fitting else "; search with the matrix it was made for"
    )
    raise InputError(
        f"profile {profile.identifier}: got scores in units of {profile.lambda_:.4f} nats, expected {own:.4f} nats "
        f"as in {scoring.matrix.name}{remedy}"
    )
