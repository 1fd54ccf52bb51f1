"""Nulls of queries and pairs, made of scores whose distribution is known."""

import math
import pickle

import numpy as np
import pytest

from swsearch.statistics import null_model
from swsearch.statistics.distributions import MAX_SHAPE, Gumbel, Lengths, PearsonThree
from swsearch.statistics.null_model import (
    REVERSED_FULL,
    REVERSED_POWER,
    SPREADS,
    FitSettings,
    PairNullModels,
    fit_panel,
    fit_panels,
    probabilities_of,
)
from swsearch.statistics.random_panel import COPIES

MODES = ("local", "global", "semiglobal")
LENGTHS = (16, 64, 256, 1024)
QUERY = 200


def fit_of(mode, n_subjects=1000, residues=300_000):
    return FitSettings(mode, 1, n_subjects, residues)


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
    means, variances = null.moments(at)
    assert means == pytest.approx(mean_at(mode, at), abs=0.15)
    assert variances == pytest.approx(SPREADS[mode].share(QUERY) * np.full(4, 25 + 1 / 12), rel=0.04)


def test_the_distribution_is_that_of_the_mode():
    assert made_up("local").distribution == made_up("semiglobal").distribution == Gumbel()
    found = made_up("global").distribution
    assert isinstance(found, PearsonThree)
    assert 30 <= found.shape <= 42


def test_the_shape_stays_within_bounds():
    def shape_of(skew):
        return null_model._distribution("global", [skew], [1e9]).shape

    assert shape_of(-1.0) == shape_of(0.0) == MAX_SHAPE
    assert shape_of(3.0) == null_model.MIN_SHAPE
    assert shape_of(0.4) == 25
    # few scores say little
    assert null_model._distribution("global", [2.0], [1]).shape == 35


@pytest.mark.parametrize("mode", MODES)
def test_lines_go_on_beyond_the_panel(mode):
    null = made_up(mode)
    far = np.array([1, 4096, 30_000])
    means, variances = null.moments(far)
    assert means == pytest.approx(mean_at(mode, far), abs=1.5)
    ends = null.moments(np.array([LENGTHS[0], LENGTHS[-1]]))[1]
    assert variances == pytest.approx([ends[0], ends[1], ends[1]])


def test_composition_of_random_sequences_does_not_widen_the_variance():
    random = np.random.default_rng(4)
    own = random.normal(0, 20, (500, 1))
    scores = [np.rint(50 + own + random.normal(0, 3, (500, COPIES))).astype(np.int64)]
    null = fit_panel(fit_of("local"), QUERY, (100,), scores)
    assert null.variances[0] == pytest.approx(9.1 * SPREADS["local"].share(QUERY), rel=0.1)


def test_short_queries_have_short_tails():
    spread = SPREADS["semiglobal"]
    assert spread.share(10_000) == pytest.approx(spread.base, rel=0.002)
    assert spread.share(20) < 0.7 * spread.base
    assert spread.share(0) > 0


@pytest.mark.parametrize("mode", MODES)
def test_scores_that_do_not_vary(mode):
    null = fit_panel(fit_of(mode), 5, (4, 8), [np.full((2, COPIES), -7), np.full((2, COPIES), -7)])
    evalues = null.evalues([-7, -6], 5, [4, 4], 300_000)
    assert np.isfinite(evalues).all()
    assert evalues[0] > evalues[1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("evalue", [1e-30, 1e-3, 1.0, 30.0, 390.0])
def test_least_scores_are_a_bound(mode, evalue):
    null = made_up(mode, n_sequences=20)
    lengths = np.arange(1, 1500)
    least = null.min_scores(evalue, Lengths(lengths), 300_000)
    below = null.evalues(least - 1, QUERY, lengths, 300_000)
    assert (below > evalue).all()
    assert (null.evalues(least + 3, QUERY, lengths, 300_000) <= evalue).all()


def test_everything_is_within_a_large_evalue():
    null = made_up("local", n_sequences=20)
    assert null.min_scores(500.0, Lengths(np.arange(1, 30)), 300_000) is None


def pairs_of(mode, means, lengths, bounds=None):
    null = made_up(mode, n_sequences=50)
    bounds = np.ones(len(means)) if bounds is None else np.array(bounds)
    return PairNullModels(null, np.array(lengths), np.array(means, dtype=float), bounds)


@pytest.mark.parametrize("mode", MODES)
def test_evalues_of_pairs_are_the_number_of_subjects_times_the_probability(mode):
    pairs = pairs_of(mode, [50.0, 55.0], [300, 300])
    probabilities = pairs.probabilities([90, 90])
    assert pairs.evalues([90, 90], 300_000) == pytest.approx(1000 * probabilities)
    assert pairs.evalues([90, 90], 600_000) == pytest.approx(2000 * probabilities)
    assert probabilities[0] < probabilities[1]
    z = pairs.z_scores([90, 90])
    assert z == pytest.approx((90 - pairs.means) / np.sqrt(pairs.variances))
    assert probabilities == pytest.approx(
        pairs.statistics.distribution.survival((89.5 - pairs.means) / np.sqrt(pairs.variances))
    )


@pytest.mark.parametrize("mode", MODES)
def test_composition_counts_where_it_is_unusual_and_never_helps(mode):
    null = made_up(mode, n_sequences=50)
    mean, variance = (values[0] for values in null.moments(np.array([256])))
    deviation, full = math.sqrt(variance), SPREADS[mode].full
    above = np.array([-20.0, -1.0, 0.0, full / 2, full, full + 2])
    pairs = PairNullModels(null, np.full(6, 256), mean + above * deviation, np.ones(6))
    assert pairs.variances == pytest.approx(np.full(6, variance))
    assert pairs.means == pytest.approx(mean + np.array([0, 0, 0, full / 4, full, full + 2]) * deviation)
    # errors of few copies count as much as the mean rises with them
    nothing = np.full(6, -1000)
    errors = pairs.errors(pairs.levels, nothing, 4)
    assert errors[0] == 0
    assert (np.diff(errors) >= 0).all()
    assert errors[-1] == 0.5
    assert pairs.errors(pairs.levels, nothing, 16)[-1] == 0.25
    scores = np.full(6, round(mean + 9 * deviation))
    assert (pairs.evalues(scores, 300_000) >= null.evalues(scores, QUERY, pairs.lengths, 300_000)).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_reversed_subject_counts_where_it_scores_far_more_than_shuffled_ones(mode):
    pairs = pairs_of(mode, [50.0] * 3, [256] * 3)
    deviation = math.sqrt(pairs.variances[0])
    reversed_ = 50.0 + np.array([-20.0, 0.2, 1.2]) * REVERSED_FULL * deviation
    found = pairs.with_copies(pairs.levels, reversed_)
    assert found.levels == pytest.approx([50.0, 50.0 + 0.2**REVERSED_POWER * REVERSED_FULL * deviation, reversed_[2]])
    errors = found.errors(pairs.levels, reversed_, 4)
    assert errors[0] > 0 == errors[2]  # more shuffled copies would change nothing


def test_bits_and_evalues_agree_where_both_are_small():
    pairs = pairs_of("local", [41.0, 38.0], [300, 150])
    scores = [140, 120]
    bits = pairs.bit_scores(scores)
    space = QUERY * pairs.lengths * 1000
    assert space * 2.0**-bits == pytest.approx(pairs.evalues(scores, 300_000), rel=1e-6)
    assert pairs_of("global", [41.0], [300]).bit_scores([140]) is None


def test_what_is_identical_cannot_be_chance():
    pairs = pairs_of("local", [400.0, 400.0], [100, 100], bounds=[1e-90, 1.0])
    first, second = pairs.evalues([400, 400], 300_000)
    assert first == pairs.statistics.evalues([400], QUERY, [100], 300_000)[0] < 1e-30
    assert second > 100
    # where random sequences leave a doubt, the bound says how good it is
    assert pairs_of("local", [45.0], [100], bounds=[1e-9]).probabilities([50]) == pytest.approx([1e-9])
    # another alignment of the same pair is not the identical one
    assert pairs.for_hsps(np.zeros(1, dtype=np.int64)).evalues([400], 300_000)[0] == second


@pytest.mark.parametrize("evalue", [1e-9, 0.1, 10.0])
def test_least_scores_of_pairs_are_a_bound(evalue):
    pairs = pairs_of("semiglobal", [41.0, 38.0, 60.0], [300, 150, 20])
    least = pairs.min_scores(evalue, 300_000)
    assert (pairs.evalues(least - 1, 300_000) > evalue).all()
    assert (pairs.evalues(least + 3, 300_000) <= evalue).all()


def test_a_null_describes_itself():
    null = made_up("global", n_sequences=50)
    assert null.describe().startswith("random sequences of the query's length score ")
    assert [knot["length"] for knot in null.parameters()["by_length"]] == list(LENGTHS)
    assert null.parameters()["by_length"][0]["mean"] == pytest.approx(mean_at("global", 16), abs=1.0)
    assert "shuffled" in null.name


@pytest.mark.parametrize("mode", MODES)
def test_nulls_made_together_are_those_made_alone(mode):
    generator = np.random.default_rng(31)
    scores = [generator.integers(-40, 90, (5, n, COPIES)) for n in (3, 1, 6)]
    lengths, queries = (16, 100, 700), [1, 12, 350, 20_000, 12]
    together = fit_panels(fit_of(mode), queries, lengths, scores)
    for place, (n, found) in enumerate(zip(queries, together, strict=True)):
        assert found == fit_panel(fit_of(mode), n, lengths, [each[place] for each in scores])


@pytest.mark.parametrize("mode", MODES)
def test_pairs_of_several_queries_have_the_probabilities_of_each(mode, monkeypatch):
    generator = np.random.default_rng(32)
    panels = [[generator.integers(20, 40 + 9 * k, (30, COPIES)) for _ in range(2)] for k in range(3)]
    nulls = [fit_panel(fit_of(mode), 60 + k, (30, 300), panel) for k, panel in enumerate(panels)]
    pairs = [
        PairNullModels(null, generator.integers(1, 20_000, n), generator.normal(30, 5, n), np.ones(n))
        for null, n in zip(nulls, (7, 0, 40), strict=True)
    ]
    scores = [generator.integers(20, 200, len(each)) for each in pairs]
    alone = [each.probabilities(of_query).tolist() for each, of_query in zip(pairs, scores, strict=True)]
    monkeypatch.setattr(null_model, "PROBABILITIES_PER_BATCH", 6)
    assert [found.tolist() for found in probabilities_of(pairs, scores)] == alone
    assert probabilities_of([], []) == []


def test_nulls_that_are_cut_joined_or_given_other_copies_are_those_made_anew():
    generator = np.random.default_rng(33)
    null = fit_panel(fit_of("local"), 60, (30, 300), [generator.integers(20, 40, (30, COPIES)) for _ in range(2)])
    n, means, bounds = generator.integers(1, 900, 20), generator.normal(30, 5, 20), generator.random(20)

    def values(made):
        every = (made.lengths, made.levels, made.bounds, made.means, made.variances)
        return [each.tolist() for each in (*every, made.evalues(np.full(len(made), 50), 10_000))]

    whole = PairNullModels(null, n, means, bounds)
    assert values(PairNullModels.concatenate(null, [whole[:7], whole[7:7], whole[7:]])) == values(whole)
    nothing = np.full(20, -1000)
    assert values(whole.with_copies(means + 2, nothing)) == values(PairNullModels(null, n, means + 2, bounds))
    assert values(whole[np.array([3, 1])]) == values(PairNullModels(null, n[[3, 1]], means[[3, 1]], bounds[[3, 1]]))
    assert len(PairNullModels.concatenate(null, [])) == 0
    assert values(pickle.loads(pickle.dumps(whole))) == values(whole)
