import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.samples import random_cases
from swsearch.statistics import fitted
from swsearch.statistics.distributions import Gumbel, StudentT
from swsearch.statistics.fitted import Fit, FitError, fit_scores
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.regression import BrokenLine, Lengths

QUERY_LENGTH = 250


def made_up(mode, n=20_000, seed=5, slope=10.0, deviation=12.0):
    """Scores of known mean and deviation by log length."""
    random = np.random.default_rng(seed)
    lengths = np.clip(np.exp(random.normal(5.8, 0.7, n)), 5, 30_000).astype(np.int32)
    mean = 20 + slope * np.log(lengths)
    spread = deviation * np.sqrt(np.log(lengths) / 5)
    if mode != "global":
        uniform = random.uniform(1e-12, 1, n)
        noise = (-np.log(-np.log(uniform)) - 0.5772156649) * math.sqrt(6) / math.pi
    else:
        noise = random.standard_t(31, n) * math.sqrt(29 / 31)
        mean = mean - np.abs(lengths - QUERY_LENGTH)
    return lengths, np.rint(mean + spread * noise).astype(np.int32)


def fitted_to(mode, lengths, scores, query_length=QUERY_LENGTH):
    fit = Fit(mode, 1, len(lengths), int(lengths.sum()))
    return fit_scores(fit, query_length, Lengths(lengths), scores)


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_known_parameters_are_found(mode, seed):
    lengths, scores = made_up(mode, seed=seed)
    statistics = fitted_to(mode, lengths, scores)
    at = np.array([100, 200, 300, 500, 1000])
    mean = 20 + 10 * np.log(at) - (np.abs(at - QUERY_LENGTH) if mode == "global" else 0)
    deviation = 12 * np.sqrt(np.log(at) / 5)
    assert statistics.z_scores(np.rint(mean), at) == pytest.approx(np.zeros(5), abs=0.2), seed
    # in local mode a length's variance counts where it is above that of all, whose mean log length is 5.8
    counted = np.maximum(deviation, 12 * math.sqrt(5.8 / 5)) if mode == "local" else deviation
    z_scores = statistics.z_scores(np.rint(mean + 3 * deviation), at)
    assert z_scores == pytest.approx(3 * deviation / counted, abs=0.3), seed
    assert statistics.n_outliers < 20, seed


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_evalues_are_the_number_of_chance_hits(mode):
    found = {0.1: 0, 1.0: 0, 10.0: 0, 100.0: 0}
    searches = 60
    for seed in range(searches):
        lengths, scores = made_up(mode, n=2_000, seed=seed)
        statistics = fitted_to(mode, lengths, scores)
        evalues = statistics.evalues(scores, QUERY_LENGTH, lengths, int(lengths.sum()))
        for evalue in found:
            found[evalue] += int((evalues <= evalue).sum())
    for evalue, count in found.items():
        assert abs(count - evalue * searches) < 4 * math.sqrt(evalue * searches) + 0.15 * evalue * searches, found


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
@pytest.mark.parametrize("share", [0.001, 0.02, 0.08])
def test_relatives_do_not_move_the_fit(mode, share):
    lengths, scores = made_up(mode)
    clean = fitted_to(mode, lengths, scores)
    relatives = np.random.default_rng(9).choice(len(scores), int(share * len(scores)), replace=False)
    with_relatives = scores.copy()
    with_relatives[relatives] += 900
    moved = fitted_to(mode, lengths, with_relatives)
    assert moved.n_outliers >= len(relatives)
    at = np.array([60, 150, 250, 251, 400, 900, 3_000])
    for offset in (0, 40, 100):
        score = 20 + 10 * np.log(at) - (np.abs(at - QUERY_LENGTH) if mode == "global" else 0) + offset
        before, after = clean.z_scores(np.rint(score), at), moved.z_scores(np.rint(score), at)
        assert after == pytest.approx(before, abs=0.25), (offset, share)


def test_a_family_of_one_length_is_left_out():
    # a third of the proteins of some length may be relatives of the query
    lengths, scores = made_up("global")
    family = np.flatnonzero((lengths >= 240) & (lengths <= 262))
    family = family[: len(family) // 3]
    moved = scores.copy()
    moved[family] += 600
    before, after = fitted_to("global", lengths, scores), fitted_to("global", lengths, moved)
    at = np.array([245, 250, 255])
    assert after.z_scores([75, 75, 75], at) == pytest.approx(before.z_scores([75, 75, 75], at), abs=0.3)


def test_a_score_of_global_mode_falls_on_either_side_of_the_querys_length():
    lengths, scores = made_up("global", slope=0.0)
    statistics = fitted_to("global", lengths, scores)
    z = statistics.z_scores([20 - 150, 20, 20 - 250], [100, 250, 500])
    assert z == pytest.approx([0, 0, 0], abs=0.2)
    assert any(math.isclose(x, math.log(QUERY_LENGTH)) for x in statistics.log_lengths)


@pytest.mark.parametrize(
    ("lengths", "scores", "query_length", "reason"),
    [
        (np.full(499, 100), np.arange(499) % 30, 250, "499 subjects with residues are too few"),
        (np.append(np.full(499, 100), np.zeros(900)), np.arange(1399) % 30, 250, "499 subjects .* takes 500"),
        (np.zeros(0), np.zeros(0), 250, "0 subjects"),
        (np.arange(1, 1001), np.full(1000, 7), 250, "nearly all subjects score the same"),
        (np.arange(1, 1001), np.arange(1000) % 30, 0, "the query has no residues"),
        (
            np.full(1000, 9),
            np.where(np.arange(1000) % 3, 0, 900) + np.arange(1000) % 7,
            250,
            "334 of 1,000 subjects score as outliers",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["local", "semiglobal", "global"])
def test_what_allows_no_fit_is_said(mode, lengths, scores, query_length, reason):
    if mode == "global":
        scores = scores - np.abs(lengths - query_length)
    with pytest.raises(FitError, match=reason):
        fitted_to(mode, lengths.astype(np.int32), scores.astype(np.int32), query_length)


@random_cases(60)
@given(
    st.sampled_from(["local", "global", "semiglobal"]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 30, 3_000]),
    st.sampled_from([1, 40, 10_000]),
    st.integers(1, 5_000),
)
@example("global", 17, 3000, 1, 1)  # two subjects without residues, whose E-value no score makes a hit
def test_no_input_breaks_the_fit(mode, seed, n_lengths, spread, query_length):
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 35_000, n_lengths)[random.integers(0, n_lengths, 700)].astype(np.int32)
    scores = (random.integers(-spread, spread, 700) * random.integers(0, 2, 700)).astype(np.int32)
    scores[random.integers(0, 700, 20)] *= 20
    try:
        statistics = fitted_to(mode, lengths, scores, query_length)
    except FitError as error:
        assert str(error)
        return
    evalues = statistics.evalues(scores, query_length, lengths, int(lengths.sum()))
    assert np.isfinite(evalues).all(), seed
    assert (evalues >= 0).all(), seed
    assert min(statistics.variances) >= fitted.LEAST_VARIANCE
    assert statistics.parameters()["subjects"] == np.count_nonzero(lengths)
    for evalue in (1e-5, 1.0, 50.0, 1e9):
        least = statistics.least_scores(evalue, int(lengths.max()), int(lengths.sum()))
        hits = evalues <= evalue
        assert (scores[hits] >= least[lengths[hits]]).all(), (seed, evalue)
        assert (evalues[scores > least[lengths] + 2] <= evalue).all() or evalue > 300, (seed, evalue)


def test_the_order_of_the_input_hardly_matters_and_repeating_not_at_all():
    lengths, scores = made_up("global", n=3_000)
    assert fitted_to("global", lengths, scores) == fitted_to("global", lengths, scores)
    order = np.random.default_rng(2).permutation(len(lengths))
    shuffled = fitted_to("global", lengths[order], scores[order])
    assert shuffled.means == pytest.approx(fitted_to("global", lengths, scores).means, rel=1e-6)


def test_dbsize_scales_evalues_and_empty_subjects_have_the_largest():
    lengths, scores = made_up("global", n=3_000)
    statistics = fitted_to("global", lengths, scores)
    residues = int(lengths.sum())
    own = statistics.evalues(scores, QUERY_LENGTH, lengths, residues)
    assert statistics.evalues(scores, QUERY_LENGTH, lengths, 10 * residues) == pytest.approx(10 * own)
    assert statistics.evalues([100], QUERY_LENGTH, [0], residues).tolist() == [3_000.0]


def test_what_is_said_of_a_fit():
    lengths, scores = made_up("semiglobal", n=3_000)
    statistics: Statistics = fitted_to("semiglobal", lengths, scores)
    assert statistics.name == "Gumbel distribution fitted to this database's 3,000 scores by log length"
    assert statistics.bit_scores([100], [300]) is None
    parameters = statistics.parameters()
    assert parameters["distribution"] == "Gumbel distribution"
    knots = parameters["by_length"]
    assert [knot["length"] for knot in knots] == sorted(knot["length"] for knot in knots)
    assert (knots[0]["length"], knots[-1]["length"]) == (lengths.min(), lengths.max())
    assert statistics.describe().startswith("mean 7")
    assert "outliers left out" in statistics.describe()


def test_the_mode_chooses_the_distribution():
    assert Fit("local", 1, 10, 100).distribution == Fit("semiglobal", 3, 10, 100).distribution == Gumbel()
    assert Fit("global", 1, 10, 100).distribution == StudentT(31)
    assert "Student's t distribution with 31 degrees of freedom" in Fit("global", 1, 10, 100).name


LAMBDA, K = 0.267, 0.041


def chance_scores(n=20_000, seed=3, relatives=0):
    """Local scores as theory has them: K m n exp(-lambda s) subjects reach a score s."""
    random = np.random.default_rng(seed)
    lengths = np.clip(np.exp(random.normal(5.8, 0.7, n)), 20, 30_000).astype(np.int32)
    location = np.log(K * QUERY_LENGTH * lengths) / LAMBDA
    scores = location - np.log(-np.log(random.uniform(1e-12, 1, n))) / LAMBDA
    scores[:relatives] += random.uniform(50, 900, relatives)
    return lengths, np.maximum(np.floor(scores), 0).astype(np.int32)


@pytest.mark.parametrize("relatives", [0, 200, 2_000])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lambda_and_k_of_chance_scores_are_found(seed, relatives):
    lengths, scores = chance_scores(seed=seed, relatives=relatives)
    statistics = fitted_to("local", lengths, scores)
    assert statistics.n_outliers >= 0.9 * relatives
    for length in (150, 300, 600):
        lambda_, k = statistics.karlin_altschul(length)
        assert lambda_ == pytest.approx(LAMBDA, rel=0.06), seed
        # K goes with exp(lambda times the mean score): 6 % of lambda are a factor of 1.7
        assert math.log(k) == pytest.approx(math.log(K), abs=0.55), seed
    assert all({"lambda", "k"} <= knot.keys() for knot in statistics.parameters()["by_length"])
    lambda_, k = statistics.karlin_altschul(QUERY_LENGTH)
    assert f"which is lambda {lambda_:.3f} and K {k:.2g}, for subjects of the query's length" in statistics.describe()


def test_bits_are_those_of_the_expected_number():
    lengths, scores = chance_scores()
    statistics = fitted_to("local", lengths, scores)
    residues = int(lengths.sum())
    for length in (60, 400, 4_000):
        raw = np.arange(120, 1_500, 60)
        bits = statistics.bit_scores(raw, np.full(len(raw), length))
        lambda_, k = statistics.karlin_altschul(length)
        assert bits == pytest.approx((lambda_ * raw - math.log(k)) / math.log(2))
        evalues = statistics.evalues(raw, QUERY_LENGTH, np.full(len(raw), length), residues)
        # where an E-value is small, it is subjects * m * n / 2 ** bits
        small = evalues < 1e-3
        assert small.sum() > 15
        assert evalues[small] == pytest.approx(
            len(lengths) * QUERY_LENGTH * length * 2.0 ** -bits[small], rel=1e-3, abs=1e-280
        )


def test_the_mean_of_local_scores_is_straight_and_short_subjects_vary_as_all_do():
    lengths, scores = made_up("local")
    statistics = fitted_to("local", lengths, scores)
    x, means = np.array(statistics.log_lengths), np.array(statistics.means)
    assert len(x) > 5
    assert means == pytest.approx(means[0] + (means[-1] - means[0]) * (x - x[0]) / (x[-1] - x[0]))
    pooled = min(statistics.variances)
    assert pooled == pytest.approx(144 * 5.8 / 5, rel=0.05)
    assert statistics.variances[0] == pooled < max(statistics.variances[2:-2])


def test_a_broken_line_is_that_of_least_squares():
    random = np.random.default_rng(3)
    x = np.sort(random.uniform(0, 10, 200))
    weights, y = random.uniform(0.5, 2, 200), random.normal(0, 1, 200)
    knots = np.array([x[0], 2.0, 5.0, 7.5, x[-1]])
    line = BrokenLine(x, knots)
    hats = np.stack([line.at(row) for row in np.eye(len(knots))], axis=1)
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(hats * root[:, None], y * root, rcond=None)[0]
    assert line.fit(weights, weights * y) == pytest.approx(expected, abs=1e-6)
    assert BrokenLine(np.ones(4), np.ones(1)).fit(np.ones(4), np.arange(4.0)) == pytest.approx([1.5])


def test_knots_leave_enough_subjects_between_them():
    lengths = made_up("global", n=5_000)[0]
    table = Lengths(lengths)
    knots = table.knots(0.15, 50, math.log(QUERY_LENGTH))
    counted = np.histogram(np.log(lengths), knots)[0]
    assert len(knots) > 12
    assert counted.min() >= 50
    assert math.log(QUERY_LENGTH) in knots
    assert Lengths(np.full(900, 7)).knots(0.15, 50, math.log(7)).tolist() == [math.log(7)]
    assert len(Lengths(np.array([3] * 600 + [9] * 40)).knots(0.15, 50)) == 2
