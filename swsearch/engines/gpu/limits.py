"""Limits of a 16-bit lane: the bias of its values, and the scores it holds exactly.

As integers: a register holds score + bias. Every H must stay at or above the cost of a gap's first residue. Otherwise
the kernels' 32-bit subtraction would borrow from the neighbouring half. No value may exceed 32,767.
As half-precision numbers: scores below 2,048, only in local mode; ``cuda/recurrence.cuh`` proves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from swsearch.errors import InputError, OptionError
from swsearch.scoring import Mode, QueryProfile, Scoring, lane_limits

LANE_MAX = lane_limits(16)[1]


@dataclass(frozen=True)
class Lane16:
    """Representation of scores in 16 bits.

    Parameters
    ----------
    bias : int
        Register value of score 0.
    limit : int
        Scores at or above this are not certain and are computed again; out of reach where nothing can saturate.
    """

    bias: int
    limit: int


UNCERTAIN = 1 << 30
"""Mark of a score that a lane could not hold: ``kUncertain`` of ``cuda/recurrence.cuh``. As a limit, no score
reaches it."""

HALF_END = 2048
"""The first score that half precision does not hold: from 2^11 on not every whole number has its own bits."""

LARGEST = 2**31 - 1
"""The largest threshold that the kernels hold: no score reaches it, and every score reaches its negative."""

WIDE = Lane16(0, LARGEST)
"""A lane of 32 bits."""


def highest_score(profile: QueryProfile) -> int:
    """Return a bound for the score of any alignment of a query, matrix units: every row at its best letter."""
    scores = profile.scores[:, :-1].astype(np.int64)
    return int(np.maximum(scores.max(axis=1, initial=0), 0).sum())


def has_room(scoring: Scoring, bias: int, highest: int) -> bool:
    """Say whether scores of up to ``highest`` can be held with a bias, and one more pair's score added to them."""
    return bias + highest + max(scoring.max_score, 0) <= LANE_MAX


def lane16(
    scoring: Scoring, mode: Mode, profile: QueryProfile, rows: int, columns: int, highest: int | None = None
) -> Lane16 | None:
    """Say how a query is scored in 16 bits against subjects of up to ``columns`` columns, or None if it cannot be.

    Parameters
    ----------
    scoring : Scoring
        One whose bounds cover the query.
    rows, columns : int
        Of the score matrix, padding included.
    highest : int, optional
        The query's `highest_score`, where it is known already.

    Notes
    -----
    Local: the floor is the bias, and H that reaches ``32768 - scoring.highest`` might wrap at the next cell, so a
    score is certain below that. Global and semi-global: H is at least the cost of gapping both prefixes away (or,
    with free ends, the cheaper of both), and at most `highest_score`, so the lengths say beforehand whether it fits.
    """
    first = scoring.gap_first
    if mode == "local":
        limit = LANE_MAX + 1 - max(scoring.max_score, 0) - first
        return Lane16(first, limit) if limit >= LANE_MAX // 2 else None
    gaps = (scoring.gap_cost(rows), scoring.gap_cost(columns))
    bias = (sum(gaps) if mode == "global" else min(gaps)) + first
    if not has_room(scoring, bias, highest_score(profile) if highest is None else highest):
        return None
    return Lane16(bias, UNCERTAIN)


def half_lane(scoring: Scoring, mode: Mode) -> Lane16 | None:
    """Say how queries are scored as half-precision numbers, or None if they cannot be.

    No entry of a profile, of 8 bits, is too large for it; costs of gaps may be.
    """
    fits = mode == "local" and scoring.gap_first < HALF_END and scoring.gap_extend < HALF_END
    return Lane16(0, HALF_END) if fits else None


def refuse_position_gaps(queries: Iterable[QueryProfile]) -> None:
    """Refuse queries whose gap costs change from row to row: the kernels hold one cost of each kind in a register.

    Raises
    ------
    InputError
        If there is such a query.
    """
    for rows in queries:
        if rows.gaps is not None:
            raise InputError(
                f"a profile of {len(rows):,} positions has gap costs by position, which the GPU does not compute; "
                "use --engine cpu"
            )


def check_memory(memory: int | None) -> None:
    """Raise `OptionError` unless a bound on a device's memory, in bytes, is none, or can be one."""
    if memory is not None and memory < 1:
        raise OptionError("gpu_memory", memory, "a positive number of bytes")
