"""What a matrix expects beside what was observed, and how much it counts."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.errors import InputError
from swsearch.profiles.calibration import BACKGROUND
from swsearch.profiles.sequence_weights import by_entropy, replacements, with_pseudocounts
from swsearch.scoring import load_matrix


@pytest.mark.parametrize("name", ["BLOSUM62", "PFASUM60", "VTML200", "PAM30"])
def test_replacements_are_frequencies_in_the_order_of_scores(name: str) -> None:
    matrix = load_matrix(name)
    found = replacements(matrix)
    assert found.sum(axis=1) == pytest.approx(np.ones(20))
    for row, scores in zip(found / BACKGROUND, matrix.scores[:20, :20], strict=True):
        assert (np.diff(row[np.argsort(scores, kind="stable")]) > -1e-9).all()


def test_a_matrix_without_a_lambda_is_refused() -> None:
    table = {(a, b): 1 for a in "ARNDCQEGHILKMFPSTWYV" for b in "ARNDCQEGHILKMFPSTWYV"}
    with pytest.raises(InputError, match="lambda"):
        replacements(load_matrix(table))


def test_mixtures_go_from_the_matrix_to_what_was_observed() -> None:
    opposite = replacements(load_matrix("BLOSUM62"))
    observed = np.zeros((3, 20))
    observed[:, 4] = 1.0
    found = with_pseudocounts(observed, np.array([0.0, 10.0, 1e9]), opposite, 10.0)
    assert found[0] == pytest.approx(opposite[4])
    assert found[1] == pytest.approx((observed[0] + opposite[4]) / 2)
    assert found[2] == pytest.approx(observed[0], abs=1e-6)


def test_conserved_columns_have_fewer_pseudocounts_and_those_of_the_background_nothing_else() -> None:
    observed = np.stack([np.eye(20)[17], np.eye(20)[10], (np.eye(20)[9] + np.eye(20)[10]) / 2, BACKGROUND])
    seen, pseudo = by_entropy(observed, np.full(4, 8.0))
    assert pseudo[0] < pseudo[1] < pseudo[2]
    assert seen.tolist() == [8, 8, 8, 0]
    assert pseudo[3] == 30
