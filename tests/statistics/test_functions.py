"""exp, log and erfc of our own: close to those of the C library, and the same bits everywhere."""

import hashlib
import math

import numpy as np
import pytest

from swsearch.statistics import portable_math
from swsearch.statistics.distributions import Gumbel, PearsonThree
from swsearch.statistics.karlin_altschul import KarlinAltschul

GRID = np.array([s * (1 + j / 16) * 2.0**k for s in (-1, 1) for k in range(-60, 9) for j in range(16)])
"""From 1e-18 to 496 on both sides, made without a function that might differ."""

DOMAINS = {
    "exp": GRID,
    "expm1": GRID[GRID < 100],
    "log": np.abs(GRID),
    "log1p": GRID[np.abs(GRID) <= 0.5],
    "erfc": GRID[GRID < 26],
}


@pytest.mark.parametrize("name", DOMAINS)
def test_the_results_are_those_of_the_c_library(name):
    x = DOMAINS[name]
    expected = np.array([getattr(math, name)(each) for each in x.tolist()])
    # far out erfc loses what rounding the square of x loses
    allowed = 4e-15 * np.maximum(1, x * x) if name == "erfc" else 1e-15
    assert (np.abs(getattr(portable_math, name)(x) - expected) <= allowed * np.abs(expected)).all()


def test_the_ends_are_nothing_and_infinity():
    assert portable_math.exp([-np.inf, -800, 0, 800, np.inf]).tolist() == [0, 0, 1, np.inf, np.inf]
    assert portable_math.expm1([-np.inf, 0]).tolist() == [-1, 0]
    assert portable_math.erfc([-np.inf, -30, 0, 30, np.inf]).tolist() == [2, 2, 1, 0, 0]
    assert portable_math.log([1]).tolist() == portable_math.log1p([0]).tolist() == [0]


@pytest.mark.parametrize("name", DOMAINS)
def test_an_element_does_not_depend_on_the_others(name):
    function, x = getattr(portable_math, name), DOMAINS[name]
    whole = function(x)
    assert whole.tolist() == [float(function(each)) for each in x]
    assert np.array_equal(function(x[::-3]), whole[::-3])


def test_the_bits_are_the_same_on_every_machine():
    """The pinned values were computed on an x86-64 processor with AVX-512; they hold on every other."""
    parts = [getattr(portable_math, name)(x) for name, x in DOMAINS.items()]
    z = np.arange(-2000, 6000) / 100
    parts += [Gumbel().survival(z), PearsonThree(36).survival(z)]
    parts.append(np.array([each.upper(2.0**-k) for each in (Gumbel(), PearsonThree(36)) for k in range(1, 60, 7)]))
    statistics = KarlinAltschul(0.267, 0.041, 0.14, 1.9, 42.6028, 43.6362, 0.7916, 4.964660, 12)
    scores = np.arange(1, 3000, 7)
    parts += [statistics.evalues(scores, 300, np.full(len(scores), n), 10**8) for n in (9, 350, 35_000)]
    digest = hashlib.sha256(b"".join(part.astype("<f8").tobytes() for part in parts)).hexdigest()
    assert digest == "98f292ab960b7b9f90b6201b3700a1a10109f54a64d359df82bf8935042f5a75"
