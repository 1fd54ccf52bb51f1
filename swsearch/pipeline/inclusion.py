"""Rules that choose the hits, and their parts, for the next profile.

An unrelated sequence in a profile attracts its own relatives in the next iteration. Each rule is a function that
cites its source, and can be switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import check_finite, check_flag, check_integer
from swsearch.options.row import rows_of
from swsearch.pipeline.table.search import SearchTable
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring

ENTROPY_WINDOW, MIN_ENTROPY = 12, 2.2
"""Residues, and bits: SEG's window and lower cutoff (Wootton and Federhen, Comput. Chem. 17:149, 1993)."""

HEPTADS_WINDOW = 28
"""Residues: four heptads, as in COILS (Lupas, Van Dyke and Stock, Science 252:1162, 1991)."""

CORE, CHARGED = "AILMV", "DEKRQ"
"""Residues that the positions a and d of a heptad hold mostly, and those that the others do (McLachlan and Stewart,
J. Mol. Biol. 98:293, 1975)."""

CORE_INSIDE, CORE_OUTSIDE, CHARGED_OUTSIDE = 6, 5, 10
"""Minimum number of `CORE` residues among the 8 at a and d of a window, and maximum number among the 20 others.
The last is the minimum number of `CHARGED` residues among the 20. A choice: most windows of tropomyosin pass, and
none of myoglobin."""

MIN_END_BITS = 0.05
"""Bits per column of the end of an alignment. On 50 queries of SCOPe this much costs nothing, 0.17 half a point of
what is found before the first wrong hit, and 0.33 three points: domains that stand alone have no ends to lose
(November 2026, ``python -m benchmarks.statistics.iterated``, searches with such rules given by ``--hits``)."""

WindowMask = npt.NDArray[np.bool_]

WindowTest = Callable[[ByteArray], WindowMask]
"""Says which windows of a sequence are of a kind."""


INCLUSION_OPTIONS = {"inclusion_evalue": "evalue", "inclusion_coverage": "coverage", "max_included": "most"}
"""Options that are fields of `Inclusion`."""


@dataclass(frozen=True)
class Inclusion:
    """Rules for the hits of an iteration that enter the next profile. None switches a rule off.

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
        `swsearch.pipeline.inclusion.trim_ends`.
    several : bool
        Whether further parts of a subject enter, each with an E-value of its own.
    """

    evalue: float = SearchTable.inclusion_evalue
    most: int = SearchTable.max_included
    coverage: float = SearchTable.inclusion_coverage
    columns: int = 20
    low_complexity: float | None = 50.0
    coiled_coil: float | None = 50.0
    ends: float | None = MIN_END_BITS
    several: bool = True

    def __post_init__(self) -> None:
        for option, name in INCLUSION_OPTIONS.items():
            object.__setattr__(self, name, rows_of(SearchTable)[option].check(getattr(self, name)))
        object.__setattr__(self, "columns", check_integer("inclusion.columns", self.columns, 0, 1_000_000))
        check_flag("inclusion.several", self.several)
        for name in ("low_complexity", "coiled_coil", "ends"):
            if (value := getattr(self, name)) is not None:
                number = check_finite(f"inclusion.{name}", value, "a number, or null")
                object.__setattr__(self, name, number)


def select_hits(
    rules: Inclusion, query: ByteArray, subjects: ByteArray, starts: IntArray, alignments: AlignmentTable
) -> WindowMask:
    """Return a mask of the alignments that may enter the profile of a query.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8
        Codes that are not masked.
    subjects : ndarray, shape (n_residues,), uint8
        Codes of subjects end to end, not masked.
    starts : ndarray, shape (m,), int64
        Where the subject of each alignment begins in these.
    alignments : AlignmentTable
        m of them.

    Returns
    -------
    ndarray, shape (m,), bool
    """
    good = has_enough_columns(rules, len(query), alignments)
    kinds = ((rules.low_complexity, low_complexity, ENTROPY_WINDOW), (rules.coiled_coil, coiled_coil, HEPTADS_WINDOW))
    for largest, of_windows, window in kinds:
        if largest is None:
            continue
        for codes, begins, ends in (
            (query, alignments.query_start, alignments.query_end),
            (subjects, starts + alignments.subject_start, starts + alignments.subject_end),
        ):
            good[good] = shares(of_windows, window, codes, begins[good], ends[good]) <= largest
    return good


def has_enough_columns(rules: Inclusion, query_length: int, alignments: AlignmentTable) -> WindowMask:
    """Return a mask of the alignments that pair enough positions of a query; short ones match by chance."""
    lengths = np.where(alignments.run_operations == ord("M"), alignments.run_lengths, 0)
    paired = np.diff(np.concatenate([[0], np.cumsum(lengths)])[alignments.run_offsets])
    return (paired >= min(rules.columns, query_length)) & (100 * paired >= rules.coverage * query_length)


def shares(of_windows: WindowTest, window: int, codes: ByteArray, begins: IntArray, ends: IntArray) -> FloatArray:
    """Return which percentage of the windows in each part of some sequences is of a kind.

    Parameters
    ----------
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
    percentages: FloatArray = 100.0 * (before[first + n] - before[first]) / np.maximum(n, 1)
    return percentages


def low_complexity(residues: ByteArray) -> WindowMask:
    """Return a mask of the windows below `MIN_ENTROPY`, shape (n - window + 1,), of a sequence, shape (n,), uint8.

    SEG's measure of compositional complexity (Wootton and Federhen, Comput. Chem. 17:149, 1993), without its search
    for the best part of a window.
    """
    window = ENTROPY_WINDOW
    low: WindowMask = (
        _squares(residues) > window * window * 2.0**-MIN_ENTROPY
    )  # no other window's entropy is so small
    some = np.flatnonzero(low)
    letters = residues[some[:, None] + np.arange(window)]
    terms = np.array([0.0, *(-k / window * np.log2(k / window) for k in range(1, window + 1))])
    entropies = np.zeros(len(some))
    for letter in np.unique(letters).tolist():
        entropies += terms[(letters == letter).sum(axis=1)]
    low[some] = entropies < MIN_ENTROPY
    return low


def _squares(residues: ByteArray) -> IntArray:
    """Return the sum of squared letter counts of each window of `ENTROPY_WINDOW`, shape (n - window + 1,).

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


def coiled_coil(residues: ByteArray) -> WindowMask:
    """Return a mask of the windows like a coiled coil, shape (n - window + 1,), of a sequence, shape (n,), uint8.

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
    is_coiled = np.zeros(n, dtype=np.bool_)
    for register in range(7):
        a, d = (7 - register) % 7, (10 - register) % 7
        inner_core, inner_charged = core[a] + core[d], charged[a] + charged[d]
        is_coiled |= (
            (inner_core >= CORE_INSIDE)
            & (all_core - inner_core <= CORE_OUTSIDE)
            & (all_charged - inner_charged >= CHARGED_OUTSIDE)
        )
    return is_coiled


FINE = 1000
"""Parts of a matrix unit in which means are compared: whole numbers add up to the same everywhere."""


def trim_ends(
    alignments: AlignmentTable,
    rows: QueryProfile,
    scoring: Scoring,
    subjects: ByteArray,
    starts: IntArray,
    min_score: float,
) -> AlignmentTable:
    """Cut back the ends of alignments that score less than ``min_score`` a column, in matrix units.

    What is left of each is the part of the largest sum of scores less ``min_score`` per column, so that no end of it,
    of whatever length, has a smaller mean. Local alignments run on beyond what is homologous as long as that costs
    little, and the profile grows with it (Gonzalez and Pearson, Nucleic Acids Res. 38:2177, 2010).

    Parameters
    ----------
    alignments : AlignmentTable
        m alignments of one query; of the result all but the counts hold: score, identities and positives are those
        of the whole alignments.
    subjects : ndarray, shape (n_residues,), uint8
        Codes of subjects end to end, as they are scored.
    starts : ndarray, shape (m,), int64
        Where the subject of each alignment begins in these.
    min_score : float
        Matrix units per column.

    Returns
    -------
    AlignmentTable
        One per alignment; one that scores too little everywhere has no columns.
    """
    columns = _Columns.from_alignments(alignments, starts)
    rest = FINE * columns.scores(rows, scoring, subjects) - round(FINE * min_score)
    return columns.part(alignments, *best_parts(rest, columns.offsets))


def best_parts(values: IntArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the part of the largest sum of each run of numbers begins and ends.

    Parameters
    ----------
    values : ndarray, shape (n,), int64
        The runs end to end.
    offsets : ndarray, shape (m + 1,), int64
        Where each begins.

    Returns
    -------
    begins, ends : ndarray, shape (m,), int64
        Half-open; the shortest of equal parts, and an empty one where none is above 0.
    """
    sizes = np.diff(offsets)
    filled = np.flatnonzero(sizes)
    begins, ends = offsets[:-1].copy(), offsets[:-1].copy()
    if not len(filled):
        return begins, ends
    # each run stands far below the one before, so that one running minimum serves them all
    of_run = np.repeat(np.arange(len(sizes)), sizes)
    total = np.concatenate([[0], np.cumsum(values)])
    level = of_run * (2 * int(np.abs(values).sum()) + 1)
    before, after = total[:-1] - level, total[1:] - level
    lowest = np.minimum.accumulate(before)
    gains, first = after - lowest, offsets[filled]
    best = np.maximum.reduceat(gains, first)
    is_best = np.flatnonzero(gains == np.repeat(best, sizes[filled]))
    last = is_best[np.searchsorted(is_best, first)][best > 0]
    lows = np.flatnonzero(before == lowest)
    good = filled[best > 0]
    begins[good], ends[good] = lows[np.searchsorted(lows, last, side="right") - 1], last + 1
    return begins, ends


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns of some alignments, end to end.

    Parameters
    ----------
    offsets : ndarray, shape (m + 1,), int64
        Where each alignment's begin.
    operations : ndarray, shape (n,), uint8
        As of an `AlignmentTable`.
    query, subject : ndarray, shape (n,), int64
        The residue of each side, or the next one where there is a gap; those of subjects in their pool.
    is_first : ndarray, shape (n,), bool
        Where a run begins.
    """

    offsets: IntArray
    operations: ByteArray
    query: IntArray
    subject: IntArray
    is_first: npt.NDArray[np.bool_]

    @classmethod
    def from_alignments(cls, alignments: AlignmentTable, starts: IntArray) -> _Columns:
        """Expand alignments whose subjects begin at some places of their pool, shape (m,)."""
        ends = np.concatenate([[0], np.cumsum(alignments.run_lengths)])
        offsets = ends[alignments.run_offsets]
        operations = np.repeat(alignments.run_operations, alignments.run_lengths)
        is_first = np.zeros(len(operations), dtype=np.bool_)
        is_first[ends[:-1]] = True
        sizes = np.diff(offsets)
        sides = []
        for gap, begins in ((ord("D"), alignments.query_start), (ord("I"), starts + alignments.subject_start)):
            steps = np.concatenate([[0], np.cumsum(operations != gap)])[:-1]
            filled = np.minimum(offsets[:-1], max(len(steps) - 1, 0))
            at_first = steps[filled] if len(steps) else np.zeros(len(sizes), dtype=np.int64)
            sides.append(steps + np.repeat(begins - at_first, sizes))
        return cls(offsets, operations, sides[0], sides[1], is_first)

    def scores(self, rows: QueryProfile, scoring: Scoring, subjects: ByteArray) -> IntArray:
        """Return the score of each column, shape (n,); a gap's opening belongs to its first."""
        gaps = rows.gaps or PositionGapCosts.uniform(len(rows), scoring.gap_open, scoring.gap_extend)
        scores = np.zeros(len(self.operations), dtype=np.int64)
        pairs, deleted, inserted = (self.operations == ord(operation) for operation in "MID")
        scores[pairs] = rows.scores[self.query[pairs], subjects[self.subject[pairs]]]
        for chosen, row, opening, extending in (
            (deleted, self.query[deleted], gaps.deletion_open, gaps.deletion_extend),
            (inserted, np.maximum(self.query[inserted] - 1, 0), gaps.insertion_open, gaps.insertion_extend),
        ):
            scores[chosen] = -extending[row].astype(np.int64) - np.where(self.is_first[chosen], opening[row], 0)
        return scores

    def part(self, alignments: AlignmentTable, begins: IntArray, ends: IntArray) -> AlignmentTable:
        """Return a part of the columns of each alignment, shape (m,), as alignments; gaps at their ends go too."""
        sizes = np.diff(self.offsets)
        at = np.arange(len(self.operations))
        is_inside = (at >= np.repeat(begins, sizes)) & (at < np.repeat(ends, sizes))
        counts = np.concatenate([[0], np.cumsum(is_inside)])[self.offsets]
        operations, starts = self.operations[is_inside], self.is_first[is_inside]
        starts[counts[:-1][np.diff(counts) > 0]] = True
        run = np.flatnonzero(starts)
        lengths = np.diff(np.append(run, len(operations)))
        pairs = np.concatenate([[0], np.cumsum(operations == ord("M"))])
        in_query = np.concatenate([[0], np.cumsum(operations != ord("D"))])
        in_subject = np.concatenate([[0], np.cumsum(operations != ord("I"))])
        query = _shift_starts(self.query, alignments.query_start, self.offsets, begins, ends)
        subject = _shift_starts(self.subject, alignments.subject_start, self.offsets, begins, ends)
        columns = np.diff(counts)
        return replace(
            alignments, query_start=query, query_end=query + np.diff(in_query[counts]), subject_start=subject,
            subject_end=subject + np.diff(in_subject[counts]), length=columns, gaps=columns - np.diff(pairs[counts]),
            run_offsets=np.searchsorted(run, counts), run_lengths=lengths, run_operations=operations[run],
        )  # fmt: skip


def _shift_starts(
    places: IntArray, starts: IntArray, offsets: IntArray, begins: IntArray, ends: IntArray
) -> IntArray:
    """Return the first residue of each part, shape (m,), from the first residues of the alignments."""
    moved = starts.copy()
    some = np.flatnonzero(ends > begins)
    moved[some] += places[begins[some]] - places[offsets[:-1][some]]
    return moved
