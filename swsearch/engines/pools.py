"""Sequences end to end, as what aligns many pairs takes them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import N_CODES, PROTEIN, ByteArray
from swsearch.blocks import MASK_CODE, IntArray
from swsearch.errors import InputError
from swsearch.scoring import GAP_COLUMNS, PositionGapCosts, QueryLike, QueryProfile, Scoring, rows_of

SequencePool = tuple[ByteArray, IntArray]
"""Codes of many sequences end to end, shape (n_residues,), uint8, and where each begins: offsets, shape (n + 1,)."""

PoolLetters = tuple[ByteArray | None, ByteArray | None]
"""Letters of the pools of queries and of subjects in ASCII as they are shown, masked ones in lower case: of the shape
of the codes, uint8, or None where nothing of that side is masked."""


@dataclass(frozen=True, eq=False)
class PoolPairs:
    """Pairs of sequences of two pools, to be aligned.

    Parameters
    ----------
    queries, subjects : (ndarray, ndarray)
        Codes as they are scored, X where they are masked, and offsets; see `SequencePool`.
    pairs : ndarray, shape (m, 2), int64
        Which query and which subject, by their places in the pools.
    letters : (ndarray or None, ndarray or None), optional
        What identities are counted by where something is masked; see `PoolLetters`.
    rows : QueryProfile, optional
        Scores by position of all residues of the queries' pool, and gap costs if those of some query are its own; see
        `rows_pool`. By default codes and matrix say the scores.
    known_scores : ndarray, shape (m,), int, optional
        A score that each pair reaches, such as its own from a search: what cannot reach it is left out. One that is
        not reached costs time, but changes nothing in the result.
    """

    queries: SequencePool
    subjects: SequencePool
    pairs: IntArray
    letters: PoolLetters = (None, None)
    rows: QueryProfile | None = None
    known_scores: npt.NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def places(self) -> IntArray:
        """Those of `pair_bounds`, shape (m, 4); raises ValueError unless rows are one for each residue."""
        n_rows, n_residues = 0 if self.rows is None else len(self.rows), len(self.queries[0])
        if self.rows is not None and n_rows != n_residues:
            raise ValueError(f"expected {n_residues} rows, one for each residue of the queries; got {n_rows}")
        return pair_bounds(self.queries, self.subjects, self.pairs)

    def take(self, chosen: IntArray | slice) -> PoolPairs:
        """Return some of the pairs, by their places, shape (n,)."""
        known_scores = None if self.known_scores is None else np.asarray(self.known_scores)[chosen]
        return replace(self, pairs=self.pairs[chosen], known_scores=known_scores)

    def sequences(self) -> Iterator[tuple[QueryLike, ByteArray]]:
        """Yield each pair's query and subject, whose codes have the shape (n,)."""
        for a, m, b, n in self.places.tolist():
            yield query_of(self.queries[0], self.rows, a, a + m), self.subjects[0][b : b + n]


def pair_bounds(queries: SequencePool, subjects: SequencePool, pairs: IntArray) -> IntArray:
    """Return where the sequences of pairs lie in their pools.

    Parameters
    ----------
    queries, subjects : (ndarray, ndarray)
        See `SequencePool`.
    pairs : ndarray, shape (m, 2), int64
        Which query and which subject, by their places in the pools.

    Returns
    -------
    ndarray, shape (m, 4), int64
        The query's first residue and its length, then the subject's.

    Raises
    ------
    ValueError
        If a pair names a sequence that is not there, or that does not lie within its pool.
    """
    pairs = np.asarray(pairs).reshape(-1, 2)
    places = np.empty((len(pairs), 4), dtype=np.int64)
    for side, (codes, offsets) in enumerate((queries, subjects)):
        chosen = pairs[:, side]
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(offsets) - 1):
            raise ValueError(f"expected places of sequences from 0 to {len(offsets) - 2} in the pairs' column {side}")
        begins, ends = offsets[chosen], offsets[chosen + 1]
        if len(chosen) and (begins.min() < 0 or (ends < begins).any() or ends.max() > len(codes)):
            raise ValueError(f"expected offsets that ascend, up to the {len(codes)} residues of their pool")
        places[:, 2 * side], places[:, 2 * side + 1] = begins, ends - begins
    return places


def check_lengths(places: IntArray, check: Callable[[int, int], object]) -> None:
    """Check the lengths of pairs.

    Parameters
    ----------
    places : ndarray, shape (m, 4), int64
        Of `pair_bounds`.
    check : callable
        Takes the lengths of a query and of a subject and raises `InputError` where they are too much; if it does not
        for two lengths, then neither for shorter ones.

    Raises
    ------
    InputError
        That of the first pair, by lengths, for which ``check`` raises it.
    """
    if not len(places):
        return
    with contextlib.suppress(InputError):
        check(int(places[:, 1].max()), int(places[:, 3].max()))
        return
    for m, n in np.unique(places[:, [1, 3]], axis=0).tolist():
        check(m, n)


def make_pool(sequences: list[ByteArray]) -> SequencePool:
    """Lay sequences, each of shape (n,), uint8, end to end."""
    offsets = np.zeros(len(sequences) + 1, dtype=np.int64)
    np.cumsum([len(sequence) for sequence in sequences], out=offsets[1:])
    return np.concatenate([np.zeros(0, dtype=np.uint8), *sequences]), offsets


def rows_pool(queries: Sequence[QueryLike], scoring: Scoring) -> QueryProfile:
    """Lay the scores by position of queries end to end, as `make_pool` does with their codes.

    Parameters
    ----------
    queries : sequence of QueryLike
        Codes and profiles; codes score as the matrix has it, with the scoring's gap costs.
    scoring : Scoring
        Matrix and gap costs.

    Returns
    -------
    QueryProfile
        The rows of all residues of the pool; gap costs only where those of some query are by position.
    """
    every = [rows_of(query, scoring) for query in queries]
    gaps = None
    if any(rows.gaps is not None for rows in every):
        costs = [
            rows.gaps or PositionGapCosts.uniform(len(rows), scoring.gap_open, scoring.gap_extend) for rows in every
        ]
        gaps = PositionGapCosts(*(np.concatenate([getattr(each, name) for each in costs]) for name in GAP_COLUMNS))
    scores = np.concatenate([np.zeros((0, N_CODES), dtype=np.int8), *(rows.scores for rows in every)])
    return QueryProfile(scores, make_pool([rows.codes for rows in every])[0], is_specific=True, gaps=gaps)


def query_of(codes: ByteArray, rows: QueryProfile | None, begin: int, end: int) -> QueryLike:
    """Return a query of a pool of codes, shape (n_residues,), uint8, and of its rows, where there are some."""
    if rows is None:
        return codes[begin:end]
    gaps = rows.gaps
    if gaps is not None:
        gaps = PositionGapCosts(*(getattr(gaps, name)[begin:end] for name in GAP_COLUMNS))
    return QueryProfile(rows.scores[begin:end], codes[begin:end], is_specific=True, gaps=gaps)


def subset_of(pool: SequencePool, chosen: IntArray) -> SequencePool:
    """Return some sequences of a pool, ascending places of shape (n,); those next to each other without a copy."""
    codes, offsets = pool
    if len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1:
        some = offsets[chosen[0] : chosen[-1] + 2]
        return codes[some[0] : some[-1]], some - some[0]
    parts = zip(offsets[chosen].tolist(), offsets[chosen + 1].tolist(), strict=True)
    return make_pool([codes[begin:end] for begin, end in parts])


def mask_pool(pool: SequencePool, runs: tuple[IntArray, IntArray, IntArray]) -> tuple[SequencePool, ByteArray | None]:
    """Mask stretches of a pool of proteins, as `swsearch.blocks` masks one sequence.

    Parameters
    ----------
    pool : (ndarray, ndarray)
        Codes as they are stored, and offsets; see `SequencePool`.
    runs : (ndarray, ndarray, ndarray)
        Where each sequence's stretches begin in the other two, shape (n + 1,), and where each stretch begins and
        ends in its sequence, 0-based and half-open, each of shape (n_runs,); int64. They do not overlap.

    Returns
    -------
    pool : (ndarray, ndarray)
        Codes as they are scored, X in the stretches; the given pool itself where there are none.
    letters : ndarray, shape (n_residues,), uint8, or None
        As `PoolLetters` has them.

    Raises
    ------
    ValueError
        If a stretch does not lie within its sequence.
    """
    codes, offsets = pool
    run_offsets, starts, ends = runs
    if not len(starts):
        return pool, None
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(run_offsets))
    begins, limits = offsets[sequence] + starts, offsets[sequence + 1]
    lengths = ends - starts
    if (starts < 0).any() or (lengths < 0).any() or (begins + lengths > limits).any():
        raise ValueError("expected stretches within their sequences")
    before = np.cumsum(lengths) - lengths
    places = np.repeat(begins - before, lengths) + np.arange(int(lengths.sum()))
    scored, letters = codes.copy(), PROTEIN.decode_table[codes]
    scored[places] = MASK_CODE
    letters[places] |= 0x20  # ASCII: lower case; a '*' has it set already
    return (scored, offsets), letters
