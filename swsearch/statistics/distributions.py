"""Distributions that alignment scores follow, scaled to mean 0 and standard deviation 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray
from swsearch.statistics import functions

EULER = 0.5772156649015329
"""Mean of the Gumbel distribution of scale 1."""

_SERIES_FROM = 4.0
"""Value of t above which the tail is summed, and below which the middle is: both series converge fast there, and
further out the difference of the middle to a half would have too few digits."""

_NOTHING = 1e-17
"""Less than this, added to a number above 1, is nothing."""


class Distribution(Protocol):
    """What the fit needs to know of a distribution of mean 0 and standard deviation 1."""

    @property
    def name(self) -> str:
        """As the output names it."""

    def survival(self, z: npt.ArrayLike) -> FloatArray:
        """Return the probability of a value of at least ``z``, of any shape; precise far out too."""

    def upper(self, probability: float) -> float:
        """Return the value above which this probability lies; at most a half."""


@dataclass(frozen=True)
class Gumbel:
    """The extreme value distribution of type I: the best of many local possibilities."""

    name = "Gumbel distribution"

    def survival(self, z: npt.ArrayLike) -> FloatArray:
        """See `Distribution.survival`."""
        scaled = np.asarray(z, dtype=np.float64) * (math.pi / math.sqrt(6)) + EULER
        # beyond -700 the inner exponential would overflow; the result is 1 long before
        return -functions.expm1(-functions.exp(-np.maximum(scaled, -700.0)))

    def upper(self, probability: float) -> float:
        """See `Distribution.upper`."""
        return (-float(functions.log(-functions.log1p(-probability))) - EULER) * math.sqrt(6) / math.pi


@dataclass(frozen=True)
class StudentT:
    """Student's t: a normal distribution whose variance is not quite the same for all.

    Parameters
    ----------
    degrees : int
        Degrees of freedom, odd and at least 3; the fewer, the heavier the tails.
    """

    degrees: int

    @property
    def name(self) -> str:
        """See `Distribution.name`."""
        return f"Student's t distribution with {self.degrees} degrees of freedom"

    def survival(self, z: npt.ArrayLike) -> FloatArray:
        """See `Distribution.survival`."""
        t = np.atleast_1d(np.asarray(z, dtype=np.float64)) * math.sqrt(self.degrees / (self.degrees - 2))
        square = np.minimum(np.abs(t), 1e100) ** 2
        half, inner, outer = (
            self.degrees / 2,
            square / (self.degrees + square),
            self.degrees / (self.degrees + square),
        )
        survived = np.empty_like(t)
        near = np.abs(t) < _SERIES_FROM
        middles = self._half_beta(0.5, half, inner[near], outer[near])
        survived[near] = np.where(t[near] > 0, 0.5 - middles, 0.5 + middles)
        tails = self._half_beta(half, 0.5, outer[~near], inner[~near])
        survived[~near] = np.where(t[~near] > 0, tails, 1 - tails)
        return survived.reshape(np.shape(z))

    def _half_beta(self, a: float, b: float, x: FloatArray, rest: FloatArray) -> FloatArray:
        """Half the regularised incomplete beta function: Digital Library of Mathematical Functions, 8.17.8.

        ``a`` and ``b`` are a half and half the degrees; ``rest`` is 1 - x, which may be much smaller than x.
        """
        term, total = np.ones_like(x), np.ones_like(x)
        k = 0
        while len(term) and term.max() > _NOTHING:  # what is added later changes no bit of a total above 1
            term = term * x * ((a + b + k) / (a + 1 + k))
            total = total + term
            k += 1
        # Gamma(half the degrees) Gamma(1/2) / Gamma(half the degrees + 1/2), as odd degrees have it
        beta = math.pi
        for k in range(1, self.degrees, 2):
            beta *= k / (k + 1)
        return _half_power(x, a) * _half_power(rest, b) / (a * beta) * total / 2

    def upper(self, probability: float) -> float:
        """See `Distribution.upper`."""
        return _bisected(self, probability)


def _half_power(x: FloatArray, exponent: float) -> FloatArray:
    """Raise to a whole number and a half."""
    power = np.sqrt(x)
    for _ in range(int(exponent)):
        power = power * x
    return power


@lru_cache(maxsize=64)
def _bisected(distribution: StudentT, probability: float) -> float:
    """Invert the survival function; each query of a job asks for the same few values, and it takes 10 ms."""
    low, high = 0.0, 1.0
    while distribution.survival(high) > probability:
        high *= 2
    for _ in range(80):  # each turn halves the interval
        middle = (low + high) / 2
        low, high = (middle, high) if distribution.survival(middle) > probability else (low, middle)
    return high
