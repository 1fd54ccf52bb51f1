"""Ends of alignments that run out of a family, and what is left when these are cut back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swsearch.alignments import AlignmentTable
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.scoring import PositionGaps, QueryRows, Scoring

FINE = 1000
"""Parts of a matrix unit in which means are compared: whole numbers add up to the same everywhere."""


def trimmed(
    found: AlignmentTable, rows: QueryRows, scoring: Scoring, subjects: ByteArray, starts: IntArray, least: float
) -> AlignmentTable:
    """Cut back the ends of alignments that score less than ``least`` a column, in matrix units.

    What is left of each is the part of the largest sum of scores less ``least`` per column, so that no end of it, of
    whatever length, has a smaller mean. Local alignments run on beyond what is homologous as long as that costs
    little, and the profile grows with it (Gonzalez and Pearson, Nucleic Acids Res. 38:2177, 2010).

    Parameters
    ----------
    found : AlignmentTable
        m alignments of one query; of the result all but the counts hold: score, identities and positives are those
        of the whole alignments.
    rows : QueryRows
        The query's scores by position.
    scoring : Scoring
        Gap costs.
    subjects : ndarray, shape (n_residues,), uint8
        Codes of subjects end to end, as they are scored.
    starts : ndarray, shape (m,), int64
        Where the subject of each alignment begins in these.
    least : float
        Matrix units per column.

    Returns
    -------
    AlignmentTable
        One per alignment; one that scores too little everywhere has no columns.
    """
    columns = _Columns.of(found, starts)
    rest = FINE * columns.scores(rows, scoring, subjects) - round(FINE * least)
    return columns.part(found, *best_parts(rest, columns.offsets))


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
    def of(cls, found: AlignmentTable, starts: IntArray) -> _Columns:
        """Expand alignments whose subjects begin at some places of their pool, shape (m,)."""
        ends = np.concatenate([[0], np.cumsum(found.run_lengths)])
        offsets = ends[found.run_offsets]
        operations = np.repeat(found.run_operations, found.run_lengths)
        is_first = np.zeros(len(operations), dtype=np.bool_)
        is_first[ends[:-1]] = True
        sizes = np.diff(offsets)
        sides = []
        for gap, begins in ((ord("D"), found.query_start), (ord("I"), starts + found.subject_start)):
            steps = np.concatenate([[0], np.cumsum(operations != gap)])[:-1]
            filled = np.minimum(offsets[:-1], max(len(steps) - 1, 0))
            at_first = steps[filled] if len(steps) else np.zeros(len(sizes), dtype=np.int64)
            sides.append(steps + np.repeat(begins - at_first, sizes))
        return cls(offsets, operations, sides[0], sides[1], is_first)

    def scores(self, rows: QueryRows, scoring: Scoring, subjects: ByteArray) -> IntArray:
        """Return the score of each column, shape (n,); a gap's opening belongs to its first."""
        gaps = rows.gaps or PositionGaps.uniform(len(rows), scoring.gap_open, scoring.gap_extend)
        scores = np.zeros(len(self.operations), dtype=np.int64)
        pairs, deleted, inserted = (self.operations == ord(operation) for operation in "MID")
        scores[pairs] = rows.scores[self.query[pairs], subjects[self.subject[pairs]]]
        for chosen, row, opening, extending in (
            (deleted, self.query[deleted], gaps.deletion_open, gaps.deletion_extend),
            (inserted, np.maximum(self.query[inserted] - 1, 0), gaps.insertion_open, gaps.insertion_extend),
        ):
            scores[chosen] = -extending[row].astype(np.int64) - np.where(self.is_first[chosen], opening[row], 0)
        return scores

    def part(self, found: AlignmentTable, begins: IntArray, ends: IntArray) -> AlignmentTable:
        """Return a part of the columns of each alignment, shape (m,), as alignments; gaps at their ends go too."""
        sizes = np.diff(self.offsets)
        at = np.arange(len(self.operations))
        kept = (at >= np.repeat(begins, sizes)) & (at < np.repeat(ends, sizes))
        counts = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        operations, starts = self.operations[kept], self.is_first[kept]
        starts[counts[:-1][np.diff(counts) > 0]] = True
        run = np.flatnonzero(starts)
        lengths = np.diff(np.append(run, len(operations)))
        pairs = np.concatenate([[0], np.cumsum(operations == ord("M"))])
        in_query = np.concatenate([[0], np.cumsum(operations != ord("D"))])
        in_subject = np.concatenate([[0], np.cumsum(operations != ord("I"))])
        query = _moved(self.query, found.query_start, self.offsets, begins, ends)
        subject = _moved(self.subject, found.subject_start, self.offsets, begins, ends)
        columns = np.diff(counts)
        return replace(
            found, query_start=query, query_end=query + np.diff(in_query[counts]), subject_start=subject,
            subject_end=subject + np.diff(in_subject[counts]), length=columns, gaps=columns - np.diff(pairs[counts]),
            run_offsets=np.searchsorted(run, counts), run_lengths=lengths, run_operations=operations[run],
        )  # fmt: skip


def _moved(places: IntArray, starts: IntArray, offsets: IntArray, begins: IntArray, ends: IntArray) -> IntArray:
    """Return the first residue of each part, shape (m,), from those of the whole alignments."""
    moved = starts.copy()
    some = np.flatnonzero(ends > begins)
    moved[some] += places[begins[some]] - places[offsets[:-1][some]]
    return moved
