import math

import numpy as np
import pytest

from swsearch.statistics.distributions import MAX_SHAPE, Gumbel, PearsonThree

SCIPY = {
    -3.0: 0.9998790977772818, 0.0: 0.477833332653075, 3.0: 0.0038780442152169543, 6.5: 2.0191707747088558e-07,
    20.0: 1.2720748996792643e-31,
}  # fmt: skip
BOTH = [Gumbel(), PearsonThree(9), PearsonThree(36), PearsonThree(MAX_SHAPE)]


def test_pearsons_type_three_near_and_far_out():
    # scipy.stats.pearson3(2 / 6).sf(z), scipy 1.17: shape 36 has skewness a third
    for z, probability in SCIPY.items():
        assert float(PearsonThree(36).survival(z)) == pytest.approx(probability, rel=1e-9)
    # shape 1 is the exponential distribution
    for z in (-0.9, 0.0, 3.0, 40.0):
        assert float(PearsonThree(1).survival(z)) == pytest.approx(math.exp(-1 - z), rel=1e-13)
    assert float(PearsonThree(36).survival(-7)) == 1


@pytest.mark.parametrize("distribution", BOTH, ids=str)
def test_mean_is_0_and_variance_1(distribution):
    z = np.linspace(-40, 400, 2_000_001)
    survived = distribution.survival(z)
    assert (np.diff(survived) <= 1e-14).all()
    step = z[1] - z[0]
    # integrating by parts: E z = int (S(z) - [z < 0]), E z^2 = 2 int z (S(z) - [z < 0])
    centred = survived - (z < 0)
    assert centred.sum() * step == pytest.approx(0, abs=1e-3)
    assert 2 * (z * centred).sum() * step == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("distribution", BOTH, ids=str)
@pytest.mark.parametrize("probability", [0.4, 1e-3, 1e-9, 1e-100, 1e-200])
def test_upper_inverts_survival(distribution, probability):
    assert float(distribution.survival(distribution.upper(probability))) == pytest.approx(probability, rel=1e-6)


@pytest.mark.parametrize("distribution", BOTH, ids=str)
def test_no_value_is_too_large(distribution):
    assert distribution.survival([-np.inf, -1e9, 1e9]).tolist()[:2] == [1.0, 1.0]
    assert 0 <= float(distribution.survival(np.inf)) < 1e-100
    assert distribution.survival(0.5).shape == ()
    assert distribution.survival(np.zeros((0,))).shape == (0,)
