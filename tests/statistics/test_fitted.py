"""Nulls of queries and pairs, made of scores whose distribution is known."""

import math

import numpy as np
import pytest

from swsearch.statistics.null_model import (
    SPREADS,
    Fit,
    PairNulls,
    fit_panel,
)
from swsearch.statistics.random_panel import COPIES

MODES = ("local", "global", "semiglobal")
LENGTHS = (16, 64, 256, 1024)
QUERY = 200


def fit_of(mode, n_subjects=1000, residues=300_000):
    return Fit(mode, 1, n_subjects, residues)


def mean_at(mode, n):
    return 20 + 4 * np.log(n) - (np.abs(n - QUERY) if mode == "global" else 0)


def made_up(mode, n_sequences=8000, deviation=5.0, seed=1):
    """A panel's scores of known means and deviation, and a null fitted to them."""
    random = np.random.default_rng(seed)
    scores = []
    for n in LENGTHS:
        shape = (n_sequences, COPIES)
        if mode == "global":
            noise = (random.gamma(36, 1.0, shape) - 36) / 6
        else:
            noise = (random.gumbel(size=shape) - 0.5772156649) * math.sqrt(6) / math.pi
        scores.append(np.rint(mean_at(mode, n) + deviation * noise).astype(np.int64))
    return fit_panel(fit_of(mode), QUERY, LENGTHS, scores)


@pytest.mark.parametrize("mode", MODES)
def test_known_parameters_are_found(mode):
    null = made_up(mode)
    at = np.array(LENGTHS)
    means, variances = null.at(at)
    assert means == pytest.approx(mean_at(mode, at), abs=0.15)
    assert variances == pytest.approx(SPREADS[mode].share(QUERY) * np.full(4, 25 + 1 / 12), rel=0.04)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("evalue", [1e-30, 1e-3, 1.0, 30.0, 390.0])
def test_least_scores_are_a_bound(mode, evalue):
    null = made_up(mode, n_sequences=20)
    lengths = np.arange(1, 1500)
    least = null.least_scores(evalue, 1499, 300_000)
    below = null.evalues(least[1:] - 1, QUERY, lengths, 300_000)
    assert (below > evalue).all()
    assert (null.evalues(least[1:] + 3, QUERY, lengths, 300_000) <= evalue).all()


def pairs_of(mode, means, lengths, bounds=None):
    null = made_up(mode, n_sequences=50)
    bounds = np.ones(len(means)) if bounds is None else np.array(bounds)
    return PairNulls(null, np.array(lengths), np.array(means, dtype=float), bounds)


def test_what_is_identical_cannot_be_chance():
    pairs = pairs_of("local", [400.0, 400.0], [100, 100], bounds=[1e-90, 1.0])
    first, second = pairs.evalues([400, 400], 300_000)
    assert first == pairs.statistics.evalues([400], QUERY, [100], 300_000)[0] < 1e-30
    assert second > 100
    # where random sequences leave a doubt, the bound says how good it is
    assert pairs_of("local", [45.0], [100], bounds=[1e-9]).probabilities([50]) == pytest.approx([1e-9])
    # another alignment of the same pair is not the identical one
    assert pairs.further(np.zeros(1, dtype=np.int64)).evalues([400], 300_000)[0] == second


@pytest.mark.parametrize("evalue", [1e-9, 0.1, 10.0])
def test_least_scores_of_pairs_are_a_bound(evalue):
    pairs = pairs_of("semiglobal", [41.0, 38.0, 60.0], [300, 150, 20])
    least = pairs.least_scores(evalue, 300_000)
    assert (pairs.evalues(least - 1, 300_000) > evalue).all()
    assert (pairs.evalues(least + 3, 300_000) <= evalue).all()
