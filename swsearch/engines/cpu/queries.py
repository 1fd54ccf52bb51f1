"""Queries and recurrence as the extension's arguments: pools of codes, scores and gap costs by row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import N_CODES, ByteArray
from swsearch.blocks import IntArray
from swsearch.options.kinds import Mode
from swsearch.recurrence import Recurrence
from swsearch.scoring import (
    LANE_BITS,
    PositionGapCosts,
    QueryLike,
    QueryProfile,
    codes_of,
    fits_lane,
    lane_holds_gap_costs,
    position_specific_rows,
    rows_of,
)

_MODES: dict[Mode, int] = {"local": 0, "global": 1, "semiglobal": 2}
_SHIFTED = 3
"""Mode's values in ``cpu/search/scan.hpp``; the last one is for frame shifts."""

_MAX_SHIFT_COST = {8: 1 << 6, 16: 1 << 14, 32: 1 << 14}
"""Maximum cost of a frameshift, by bits of the lanes tried first; ``mode_fits`` in ``cpu/module/`` checks it."""

_MAX_SUBJECT_LENGTH = 1 << 20
"""Lengths from here on are not tried: hardly any scoring system would fit lanes of 16 bits there."""

_NO_SCORES = np.empty((0, N_CODES), dtype=np.int8)
_NO_COSTS = np.empty((0, 4), dtype=np.int16)


@dataclass(frozen=True)
class QueryArguments:
    """Queries one after the other.

    If one of them has scores of its own, all are scored by row, and likewise with gap costs.

    Parameters
    ----------
    codes : ndarray, shape (total length,), uint8
        Their codes.
    offsets : ndarray, shape (n + 1,), int64
        Where each begins, and the last one ends.
    scores : ndarray, shape (total length, 32) or (0, 32), int8
        Of each row; none where the matrix has them.
    costs : ndarray, shape (total length, 4) or (0, 4), int16
        Of each row: a deletion's first and each other residue, then an insertion's; none where the scoring has them.
    longest_16 : ndarray, shape (n,), int32
        The longest subject that lanes of 16 bits hold, whatever it scores.
    recurrence : Recurrence
        What is computed, with bounds that hold for all of them.
    """

    codes: ByteArray
    offsets: IntArray
    scores: npt.NDArray[np.int8]
    costs: npt.NDArray[np.int16]
    longest_16: npt.NDArray[np.int32]
    recurrence: Recurrence

    @classmethod
    def from_queries(cls, queries: Sequence[QueryLike], recurrence: Recurrence) -> QueryArguments:
        """Put queries, given as codes, shape (length,), uint8, or as scores by position, one after the other."""
        specific = [own for query in queries if (own := position_specific_rows(query)) is not None and len(own)]
        covering = recurrence.with_bounds_for(specific)
        lengths = [len(query) for query in queries]
        offsets = np.zeros(len(queries) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        codes = np.concatenate([np.empty(0, dtype=np.uint8), *(codes_of(query) for query in queries)])
        scores, costs = _NO_SCORES, _NO_COSTS
        if specific:
            rows = [rows_of(query, recurrence.scoring) for query in queries]
            scores = np.concatenate([each.scores for each in rows])
            if any(each.gaps is not None for each in specific):
                costs = np.concatenate([_costs(each, recurrence) for each in rows])
        longest = np.array([longest_subject(n, covering, 16) for n in lengths], dtype=np.int32)
        return cls(codes, offsets, scores, costs, longest, covering)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Residues of each, shape (n,)."""
        lengths: IntArray = np.diff(self.offsets)
        return lengths

    @property
    def arguments(
        self,
    ) -> tuple[ByteArray, IntArray, npt.NDArray[np.int32], npt.NDArray[np.int8], npt.NDArray[np.int16]]:
        """Codes, shape (total length,), and what else the extension takes, in its order."""
        return self.codes, self.offsets, self.longest_16, self.scores, self.costs


def _costs(rows: QueryProfile, recurrence: Recurrence) -> npt.NDArray[np.int16]:
    """Return a query's gap costs, shape (n_rows, 4), in the order of `QueryArguments.costs`."""
    scoring = recurrence.scoring
    gaps = rows.gaps or PositionGapCosts.uniform(len(rows), scoring.gap_open, scoring.gap_extend)
    return np.stack(
        [
            gaps.deletion_open + gaps.deletion_extend,
            gaps.deletion_extend,
            gaps.insertion_open + gaps.insertion_extend,
            gaps.insertion_extend,
        ],
        axis=1,
    )


def recurrence_arguments(recurrence: Recurrence) -> tuple[npt.NDArray[np.int8], int, int, int, int, int, int, int]:
    """Return what the extension takes of a recurrence: scores, gap costs, mode, lanes to begin with and to end with.

    The scores have shape (32, 32), the costs are those of a gap's first residue and of each other one, then the most
    that either costs at any row, and lanes are in bits. What `shift_cost` returns comes last of all.
    """
    scoring, mode, shift = recurrence.scoring, recurrence.mode, recurrence.frame_shift or 0
    fitting = [
        bits for bits in LANE_BITS if lane_holds_gap_costs(bits, mode, scoring) and shift <= _MAX_SHIFT_COST[bits]
    ]
    first_bits = fitting[0] if fitting else LANE_BITS[-1]
    scores = np.ascontiguousarray(scoring.matrix.scores.astype(np.int8))
    most_extend = scoring.max_gap_cost(2) - scoring.max_gap_cost(1)
    costs = scoring.gap_first, scoring.gap_extend, scoring.max_first_gap_cost, most_extend
    return scores, *costs, _SHIFTED if shift else _MODES[mode], first_bits, LANE_BITS[-1]


def shift_cost(recurrence: Recurrence) -> tuple[int, ...]:
    """Return what a frame shift costs, alone in a tuple; an empty one where there are none."""
    return () if recurrence.frame_shift is None else (recurrence.frame_shift,)


@lru_cache(maxsize=1024)
def longest_subject(query_length: int, recurrence: Recurrence, bits: int) -> int:
    """Return the length up to which every subject's values fit a lane, whatever it scores; at most 1,048,576."""

    def too_long(length: int) -> bool:
        return not fits_lane(bits, *recurrence.score_range(query_length, length), recurrence.scoring)

    return bisect_left(range(1, _MAX_SUBJECT_LENGTH), True, key=too_long)
