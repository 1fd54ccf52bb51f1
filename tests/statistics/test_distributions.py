import math

import numpy as np
import pytest

from swsearch.statistics.distributions import Gumbel, StudentT

BOTH = [Gumbel(), StudentT(31)]


def test_students_t_far_out_and_near():
    # scipy.stats.t(25).sf(z * sqrt(25 / 23)), scipy 1.16
    for z, probability in {0.0: 0.5, 3.0: 2.216760651e-03, 5.894906606071: 1e-6}.items():
        assert float(StudentT(25).survival(z)) == pytest.approx(probability, rel=1e-8)
    # three degrees have a closed form: 1/2 - (atan x + x / (1 + x^2)) / pi with x = t / sqrt 3
    for z in (-4.0, -0.3, 0.2, 1.1, 1.2, 3.0, 40.0):
        x = z  # scaled to variance 1, t = z sqrt 3
        closed = 0.5 - (math.atan(x) + x / (1 + x * x)) / math.pi
        assert float(StudentT(3).survival(z)) == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("distribution", BOTH, ids=lambda each: each.name)
def test_mean_is_0_and_variance_1(distribution):
    z = np.linspace(-40, 400, 2_000_001)
    survived = distribution.survival(z)
    assert (np.diff(survived) <= 1e-15).all()
    step = z[1] - z[0]
    # integrating by parts: E z = int (S(z) - [z < 0]), E z^2 = 2 int z (S(z) - [z < 0])
    centred = survived - (z < 0)
    assert centred.sum() * step == pytest.approx(0, abs=1e-3)
    assert 2 * (z * centred).sum() * step == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("distribution", BOTH, ids=lambda each: each.name)
@pytest.mark.parametrize("probability", [0.49, 1e-3, 1e-9, 1e-100, 1e-300])
def test_upper_inverts_survival(distribution, probability):
    assert float(distribution.survival(distribution.upper(probability))) == pytest.approx(probability, rel=1e-6)


@pytest.mark.parametrize("distribution", BOTH, ids=lambda each: each.name)
def test_no_value_is_too_large(distribution):
    assert distribution.survival([-np.inf, -1e9, 1e9]).tolist()[:2] == [1.0, 1.0]
    assert 0 <= float(distribution.survival(np.inf)) < 1e-100
    assert distribution.survival(0.5).shape == ()
    assert distribution.survival(np.zeros((0,))).shape == (0,)
