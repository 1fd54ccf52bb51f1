"""Lambda of matrices, and scores of letters beyond the 20."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError
from swsearch.profiles import calibration
from swsearch.scoring import load_matrix

UNGAPPED = {"BLOSUM45": 0.2291, "BLOSUM50": 0.2318, "BLOSUM62": 0.3176, "BLOSUM80": 0.3430, "BLOSUM90": 0.3346}
"""Of NCBI's blast_stat.c, for alignments without gaps."""


@pytest.mark.parametrize(("name", "expected"), UNGAPPED.items())
def test_lambda_is_that_of_blast(name: str, expected: float) -> None:
    assert calibration.lambda_of(load_matrix(name)) == pytest.approx(expected, abs=2e-4)


def test_scores_without_a_lambda_are_refused() -> None:
    with pytest.raises(InputError, match="m: its scores have no lambda"):
        calibration.ungapped_lambda(np.ones((20, 20)), name="m")
    with pytest.raises(InputError, match="no lambda"):
        calibration.ungapped_lambda(-np.ones((20, 20)))


def test_the_matrix_itself_is_completed_to_itself() -> None:
    """Of BLOSUM62's own rows only B, J and Z may differ, which there are means over both letters' frequencies."""
    matrix, codes = load_matrix("BLOSUM62"), PROTEIN.encode(calibration.AMINO_ACIDS)
    found = calibration.letter_scores(matrix.scores[codes][:, :20].astype(float), codes, matrix)
    expected = matrix.scores[codes][:, : len(PROTEIN.letters)]
    exact = [k for k, letter in enumerate(PROTEIN.letters) if letter not in "BJZ"]
    assert np.array_equal(found[:, exact], expected[:, exact])
    assert np.abs(found - expected).max() <= 2


def test_scores_are_rounded_and_cut() -> None:
    assert calibration.whole_scores(np.array([0.5, -0.5, 1.49, 400.0, -400.0])).tolist() == [1, 0, 1, 127, -127]
