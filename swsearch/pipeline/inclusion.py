"""Which hits of an iteration make the next profile, and which part of each: rules against drift.

A sequence that does not belong to the family, once it is in a profile, brings its own relatives with the next search.
Each rule stands in a function of its own, says where it comes from, and can be switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alignments import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import check_flag, real_number, whole_number
from swsearch.options.row import rows_of
from swsearch.pipeline.table.search import SearchTable

ENTROPY_WINDOW, LEAST_ENTROPY = 12, 2.2
"""Residues, and bits: SEG's window and lower cutoff (Wootton and Federhen, Comput. Chem. 17:149, 1993)."""

HEPTADS_WINDOW = 28
"""Residues: four heptads, as in COILS (Lupas, Van Dyke and Stock, Science 252:1162, 1991)."""

CORE, CHARGED = "AILMV", "DEKRQ"
"""Residues that the positions a and d of a heptad hold mostly, and those that the others do (McLachlan and Stewart,
J. Mol. Biol. 98:293, 1975)."""

CORE_INSIDE, CORE_OUTSIDE, CHARGED_OUTSIDE = 6, 5, 10
"""Of the 8 residues of a window at a and d so many at least are `CORE`; of the 20 others so many at most, and so many
at least are `CHARGED`. A choice: most windows of tropomyosin are like this, and none of myoglobin."""

LEAST_OF_ENDS = 0.05
"""Bits per column of the end of an alignment. On 50 queries of SCOPe this much costs nothing, 0.17 half a point of
what is found before the first wrong hit, and 0.33 three points: domains that stand alone have no ends to lose
(November 2026, ``python -m benchmarks.statistics.iterated``, searches with such rules given by ``--hits``)."""

Taken = npt.NDArray[np.bool_]

OfWindows = Callable[[ByteArray], Taken]
"""Says which windows of a sequence are of a kind."""


INCLUSION_OPTIONS = {"inclusion_evalue": "evalue", "inclusion_coverage": "coverage", "max_included": "most"}
"""Options that are fields of `Inclusion`."""


@dataclass(frozen=True)
class Inclusion:
    """Which hits of an iteration make the next profile. None switches a rule off.

    Parameters
    ----------
    evalue : float
        Largest E-value.
    most : int
        Most subjects, the best first.
    coverage : float
        Least percentage of the query's positions that an alignment pairs.
    columns : int
        Least number of these.
    low_complexity : float or None
        Largest percentage of an alignment's windows, of either side, that are of low complexity; see
        `low_complexity`.
    coiled_coil : float or None
        The same of those that look like a coiled coil; see `coiled_coil`.
    ends : float or None
        Ends of alignments that score less than this, on average per column in bits, are cut back; see
        `swsearch.pipeline.trimming.trimmed`.
    several : bool
        Whether further parts of a subject enter, each with an E-value of its own.
    """

    evalue: float = SearchTable.inclusion_evalue
    most: int = SearchTable.max_included
    coverage: float = SearchTable.inclusion_coverage
    columns: int = 20
    low_complexity: float | None = 50.0
    coiled_coil: float | None = 50.0
    ends: float | None = LEAST_OF_ENDS
    several: bool = True

    def __post_init__(self) -> None:
        for option, name in INCLUSION_OPTIONS.items():
            object.__setattr__(self, name, rows_of(SearchTable)[option].check(getattr(self, name)))
        object.__setattr__(self, "columns", whole_number("inclusion.columns", self.columns, 0, 1_000_000))
        check_flag("inclusion.several", self.several)
        for name in ("low_complexity", "coiled_coil", "ends"):
            if (value := getattr(self, name)) is not None:
                number = real_number(f"inclusion.{name}", value, "a number, or null")
                object.__setattr__(self, name, number)


def passing(
    rules: Inclusion, query: ByteArray, subjects: ByteArray, starts: IntArray, found: AlignmentTable
) -> Taken:
    """Say which alignments of a query may enter its profile.

    Parameters
    ----------
    rules : Inclusion
        What is asked for.
    query : ndarray, shape (n,), uint8
        Codes that are not masked.
    subjects : ndarray, shape (n_residues,), uint8
        Codes of subjects end to end, not masked.
    starts : ndarray, shape (m,), int64
        Where the subject of each alignment begins in these.
    found : AlignmentTable
        m of them.

    Returns
    -------
    ndarray, shape (m,), bool
    """
    good = covering(rules, len(query), found)
    kinds = ((rules.low_complexity, low_complexity, ENTROPY_WINDOW), (rules.coiled_coil, coiled_coil, HEPTADS_WINDOW))
    for largest, of_windows, window in kinds:
        if largest is None:
            continue
        for codes, begins, ends in (
            (query, found.query_start, found.query_end),
            (subjects, starts + found.subject_start, starts + found.subject_end),
        ):
            good[good] = shares(of_windows, window, codes, begins[good], ends[good]) <= largest
    return good


def covering(rules: Inclusion, query_length: int, found: AlignmentTable) -> Taken:
    """Say which alignments pair enough positions of a query: a few residues may be alike by chance."""
    lengths = np.where(found.run_operations == ord("M"), found.run_lengths, 0)
    paired = np.diff(np.concatenate([[0], np.cumsum(lengths)])[found.run_offsets])
    good: Taken = (paired >= min(rules.columns, query_length)) & (100 * paired >= rules.coverage * query_length)
    return good


def shares(of_windows: OfWindows, window: int, codes: ByteArray, begins: IntArray, ends: IntArray) -> FloatArray:
    """Return which percentage of the windows in each part of some sequences is of a kind.

    Parameters
    ----------
    of_windows : callable
        `low_complexity` or `coiled_coil`.
    window : int
        Residues of its windows; a part that is shorter has none.
    codes : ndarray, shape (n_residues,), uint8
        Sequences end to end.
    begins, ends : ndarray, shape (m,), int64
        Parts of these.

    Returns
    -------
    ndarray, shape (m,), float64
    """
    if len(codes) < window:
        return np.zeros(len(begins))
    before = np.concatenate([[0], np.cumsum(of_windows(codes))])
    n = np.maximum(ends - begins - window + 1, 0)
    first = np.minimum(begins, len(before) - 1)  # of parts without windows
    found: FloatArray = 100.0 * (before[first + n] - before[first]) / np.maximum(n, 1)
    return found


def low_complexity(residues: ByteArray) -> Taken:
    """Say which windows of a sequence, shape (n,), uint8, have less than `LEAST_ENTROPY`; shape (n - window + 1,).

    SEG's measure of compositional complexity (Wootton and Federhen, Comput. Chem. 17:149, 1993), without its search
    for the best part of a window.
    """
    window = ENTROPY_WINDOW
    low: Taken = _squares(residues) > window * window * 2.0**-LEAST_ENTROPY  # no other window's entropy is so small
    some = np.flatnonzero(low)
    letters = residues[some[:, None] + np.arange(window)]
    terms = np.array([0.0, *(-k / window * np.log2(k / window) for k in range(1, window + 1))])
    entropies = np.zeros(len(some))
    for letter in np.unique(letters).tolist():
        entropies += terms[(letters == letter).sum(axis=1)]
    low[some] = entropies < LEAST_ENTROPY
    return low


def _squares(residues: ByteArray) -> IntArray:
    """Return the sum of the squares of how often each letter is in a window of `ENTROPY_WINDOW`; shape as of these.

    The logarithm of the sum of squared frequencies, negative, is at most the entropy (Renyi).
    """
    n, window = len(residues), ENTROPY_WINDOW
    before, after = np.zeros(n, dtype=np.int16), np.zeros(n, dtype=np.int16)
    for distance in range(1, window):
        same = residues[distance:] == residues[:-distance]
        before[distance:] += same
        after[:-distance] += same
    # a window to the right: what comes in is alike to some, and what goes out was
    first = np.bincount(residues[:window])
    changes = before[window:].astype(np.int64) - after[: n - window]
    return np.concatenate([[0], 2 * np.cumsum(changes)]) + int((first * first).sum())


def coiled_coil(residues: ByteArray) -> Taken:
    """Say which windows of a sequence, shape (n,), uint8, look like a coiled coil; shape (n - window + 1,).

    Four heptads with `CORE` residues at the positions a and d and hardly elsewhere, where most are `CHARGED`; of the
    seven registers any will do.
    """
    n = len(residues) - HEPTADS_WINDOW + 1
    kinds = np.zeros(256, dtype=np.uint8)
    counts = []
    for letters in (CORE, CHARGED):
        kinds[:] = 0
        kinds[PROTEIN.encode(letters)] = 1
        marked = kinds[residues]
        of_place = [np.sum([marked[k + 7 * m :][:n] for m in range(4)], axis=0, dtype=np.uint8) for k in range(7)]
        counts.append((of_place, np.sum(of_place, axis=0, dtype=np.uint8)))
    (core, all_core), (charged, all_charged) = counts
    found = np.zeros(n, dtype=np.bool_)
    for register in range(7):
        a, d = (7 - register) % 7, (10 - register) % 7
        inner_core, inner_charged = core[a] + core[d], charged[a] + charged[d]
        found |= (
            (inner_core >= CORE_INSIDE)
            & (all_core - inner_core <= CORE_OUTSIDE)
            & (all_charged - inner_charged >= CHARGED_OUTSIDE)
        )
    return found
