"""The value of a profile, and what the reference makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError
from swsearch.options.kinds import MODES, Mode
from swsearch.profiles.profile import PROFILE_LETTERS, Profile
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring
from tests.support.cases import random_codes

SCORING = Scoring()


def as_profile(codes: np.ndarray) -> Profile:
    """A profile that scores as the matrix does."""
    return Profile("q", "", codes, SCORING.matrix.scores[codes][:, :PROFILE_LETTERS])


@pytest.mark.parametrize("mode", MODES)
def test_a_profile_of_the_matrix_scores_as_the_sequence(mode: Mode) -> None:
    generator = np.random.default_rng(3)
    query, subject = random_codes(generator, 12), random_codes(generator, 15)
    rows = as_profile(query).rows(SCORING)
    assert rows.is_specific
    assert np.array_equal(rows.scores, SCORING.rows(query).scores)
    assert reference.align(rows, subject, SCORING, mode) == reference.align(query, subject, SCORING, mode)


@pytest.mark.parametrize("mode", MODES)
def test_uniform_gap_costs_by_position_are_the_scorings(mode: Mode) -> None:
    generator = np.random.default_rng(4)
    query, subject = random_codes(generator, 9), random_codes(generator, 14)
    plain = SCORING.rows(query)
    rows = QueryProfile(plain.scores, query, is_specific=True, gaps=PositionGapCosts.uniform(9, 11, 1))
    assert reference.align(rows, subject, SCORING, mode) == reference.align(query, subject, SCORING, mode)


def test_gap_costs_by_position_are_paid_where_the_gap_is() -> None:
    """WWCWW with a cheap insertion after the second residue, and with a free deletion of the third."""
    query = PROTEIN.encode("WWCWW")
    scores = SCORING.rows(query).scores
    costs = [np.full(5, cost, dtype=np.int16) for cost in (11, 1, 11, 1)]
    costs[2] = np.array([11, 2, 11, 11, 11], dtype=np.int16)
    inserted = QueryProfile(scores, query, is_specific=True, gaps=PositionGapCosts(*costs))
    score, i, j, cigar = reference.align(inserted, PROTEIN.encode("WWAACWW"), SCORING, "global")
    assert (score, i, j) == (4 * 11 + 9 - 2 - 2 * 1, 0, 0)
    assert cigar == ((2, "M"), (2, "D"), (3, "M"))
    costs = [np.full(5, cost, dtype=np.int16) for cost in (11, 1, 11, 1)]
    costs[0], costs[1] = np.array([11, 11, 0, 11, 11]), np.array([1, 1, 0, 1, 1])
    deleted = QueryProfile(scores, query, is_specific=True, gaps=PositionGapCosts(*costs))
    assert reference.align(deleted, PROTEIN.encode("WWWW"), SCORING) == (44, 0, 0, ((2, "M"), (1, "I"), (2, "M")))


def test_shapes_and_values_are_checked() -> None:
    codes = PROTEIN.encode("ACD")
    with pytest.raises(InputError, match=r"shape \(3, 20\), expected \(3, 27\)"):
        Profile("p", "", codes, np.zeros((3, 20), dtype=np.int8))
    with pytest.raises(InputError, match="from -127 to 127"):
        Profile("p", "", codes, np.full((3, PROFILE_LETTERS), 300))
    with pytest.raises(InputError, match="2 gap costs, expected 3"):
        Profile("p", "", codes, np.zeros((3, PROFILE_LETTERS)), gaps=PositionGapCosts.uniform(2, 11, 1))
    with pytest.raises(ValueError, match="costs from 0"):
        PositionGapCosts.uniform(2, -1, 1)
