"""The best subjects of each query without the whole matrix, and many pairs of `swsearch.align`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import MODES
from swsearch.pipeline import score_matrix as everything


def proteins(seed: int, n: int, most: int = 60) -> dict[str, str]:
    rng = np.random.default_rng(seed)
    return {f"p{k}": "".join(rng.choice(list("AMKVLW"), rng.integers(1, most))) for k in range(n)}


QUERIES, SUBJECTS = proteins(1, 7), proteins(2, 90)


@pytest.mark.parametrize("mode", MODES)
def test_the_best_are_those_of_the_whole_matrix(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everything, "SCORES_MEMORY", 3 * 4 * len(SUBJECTS))  # three queries at a time
    whole = swsearch.score(QUERIES, SUBJECTS, mode=mode, engine="cpu")
    order = np.argsort(-whole.astype(np.int64), axis=1, kind="stable")
    for top in (1, 5, 89, 90, 1000):
        scores, subjects = swsearch.score(QUERIES, SUBJECTS, mode=mode, engine="cpu", top=top)
        assert scores.shape == subjects.shape == (7, min(top, 90))
        assert (scores.dtype, subjects.dtype) == (np.int32, np.int64)
        assert np.array_equal(subjects, order[:, :top])  # of equal scores the first in the input
        assert np.array_equal(scores, np.take_along_axis(whole, subjects, axis=1))


@pytest.mark.parametrize("top", [0, -1, 1.5, "five", True])
def test_a_number_that_is_none_is_refused(top: Any) -> None:
    with pytest.raises(OptionError, match="top: got"):
        swsearch.score(QUERIES, SUBJECTS, engine="cpu", top=top)


@pytest.mark.parametrize("mode", MODES)
def test_many_pairs_are_each_as_alone(mode: Any) -> None:
    queries, subjects = list(QUERIES.values()), list(SUBJECTS.values())[:7]
    alone = [[swsearch.align([a], [b], mode=mode) for b in subjects] for a in queries]
    expected = np.array([[one.score for one in row] for row in alone])
    scores = swsearch.align(QUERIES, subjects, mode=mode, pairs="all", score_only=True)
    assert (scores.dtype, scores.shape) == (np.int32, (7, 7))
    assert np.array_equal(scores, expected)
    in_order = swsearch.align(queries, subjects, mode=mode, pairs="order", score_only=True)
    assert np.array_equal(in_order, expected.diagonal())
    assert swsearch.align([queries[0]], [subjects[0]], mode=mode, score_only=True) == expected[0, 0]
    every = swsearch.align(QUERIES, subjects, mode=mode, pairs="all")
    assert [[str(one) for one in row] for row in every] != []
    for k, one in enumerate(swsearch.align(QUERIES, subjects, mode=mode, pairs="order")):
        assert np.array_equal(one.coordinates, alone[k][k].coordinates)
        assert np.array_equal(every[k][k].coordinates, one.coordinates)
        assert one.query.id == f"p{k}"


def test_pairs_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="pairs: got 7 sequences as a and 90 as b, expected equal numbers"):
        swsearch.align(QUERIES, SUBJECTS, pairs="order")
    with pytest.raises(InputError, match="a: got 7 sequences, expected one"):
        swsearch.align(QUERIES, "MKV")
    with pytest.raises(OptionError, match="pairs: got 'some', expected one of one, order, all"):
        swsearch.align("MKV", "MKV", pairs="some")
    with pytest.raises(OptionError, match="score_only: got 1"):
        swsearch.align("MKV", "MKV", score_only=1)  # type: ignore[arg-type]


def test_a_profile_is_aligned_with_many(tmp_path: Any) -> None:
    (tmp_path / "a.sto").write_text("# STOCKHOLM 1.0\na MKVLAAGIV\nb MKVLWAGIV\n//\n")
    profile = swsearch.Profile.from_alignment(tmp_path / "a.sto")
    scores = swsearch.align([profile], SUBJECTS, mode="local", pairs="all", score_only=True)
    alone = [swsearch.align(profile, [one], mode="local").score for one in SUBJECTS.values()]
    assert scores.tolist() == [alone]
    with pytest.raises(InputError, match="b: got a Profile, expected sequences; give profiles as a"):
        swsearch.align("MKV", profile, pairs="all")
