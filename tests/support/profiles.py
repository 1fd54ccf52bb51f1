"""Random queries with scores by position, and gap costs by position, for tests of pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from support.cases import random_profile
from swsearch.alphabet import ByteArray
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring

random_rows = random_profile

RANGES = [(-1, 1), (-9, 12), (-127, 127), (-127, 0), (0, 3), (127, 127), (-127, -127)]
"""Least and largest scores: few, which make many ties, usual ones, and all that a profile may hold."""


def profiles(max_size: int = 40, *, gaps: bool = True) -> st.SearchStrategy[QueryProfile]:
    """Queries with scores by position, and gap costs by position in some of them where these are wanted."""
    return st.builds(
        lambda seed, length, limits, cost: random_profile(
            np.random.default_rng(seed), length, *limits, most_cost=cost if gaps else None
        ),
        st.integers(0, 2**32 - 1),
        st.integers(0, max_size),
        st.sampled_from(RANGES),
        st.sampled_from([None, None, 0, 1, 12, 300]),
    )


def like_matrix(codes: ByteArray, scoring: Scoring, gaps: PositionGapCosts | None = None) -> QueryProfile:
    """Return a profile that scores as a sequence, shape (n,), uint8, does."""
    return replace(scoring.rows(codes), is_specific=True, gaps=gaps)
