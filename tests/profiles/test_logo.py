"""What a logo shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.profiles import calibration
from swsearch.profiles.profile import Profile
from swsearch.report.html import LEAST_BITS, frequencies_of, logo_of
from swsearch.scoring import load_matrix

DATA = Path(__file__).parent / "data"


def test_a_position_is_as_high_as_its_information() -> None:
    frequencies = np.tile(calibration.BACKGROUND, (3, 1))
    frequencies[1] = np.eye(20)[PROTEIN.letters.index("W")]
    frequencies[2] = 0
    frequencies[2, :2] = 0.75, 0.25
    profile = Profile("p", "", PROTEIN.encode("AWA"), np.zeros((3, 27)), frequencies=frequencies)
    nothing, tryptophan, two = logo_of(profile)
    assert nothing == ("", [])
    assert tryptophan[0] == "W"
    assert tryptophan[1] == [pytest.approx(-np.log2(0.0133), abs=0.01)]
    assert two[0] == "AR"
    assert two[1][0] == pytest.approx(3 * two[1][1], abs=0.02)


def test_scores_say_the_frequencies_where_there_are_none() -> None:
    matrix, codes = load_matrix("BLOSUM62"), PROTEIN.encode("WACX")
    profile = Profile("p", "", codes, matrix.scores[codes][:, :27])
    assert frequencies_of(profile).sum(axis=1) == pytest.approx(1)
    assert [letters[:1] for letters, _ in logo_of(profile)] == ["W", "A", "C", ""]
    made = Profile.read(DATA / "sh3.sto")
    for (letters, _), (others, heights) in zip(logo_of(made), logo_of(replace(made, frequencies=None)), strict=True):
        assert letters[:1] == others[:1] or heights[0] < 0.5
        assert min(heights, default=1) >= LEAST_BITS
