"""Distributions that alignment scores follow, scaled to mean 0 and standard deviation 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray

EULER = 0.5772156649015329
"""Mean of the Gumbel distribution of scale 1."""

_SERIES_FROM = 2.0
"""Value of t above which the tail is summed as a series. Below, the series converges slowly; above, the closed form
loses all digits to cancellation."""


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
        survived: FloatArray = -np.expm1(-np.exp(-np.maximum(scaled, -700.0)))
        return survived

    def upper(self, probability: float) -> float:
        """See `Distribution.upper`."""
        return (-math.log(-math.log1p(-probability)) - EULER) * math.sqrt(6) / math.pi


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
        survived = np.empty_like(t)
        near = np.abs(t) < _SERIES_FROM
        survived[near] = self._near(t[near])
        tails = self._tail(np.abs(t[~near]))
        survived[~near] = np.where(t[~near] > 0, tails, 1 - tails)
        return survived.reshape(np.shape(z))

    def _near(self, t: FloatArray) -> FloatArray:
        """Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3: odd degrees of freedom."""
        angle = np.arctan(t / math.sqrt(self.degrees))
        cosine = np.cos(angle)
        term, total = cosine.copy(), cosine.copy()
        for k in range(3, self.degrees, 2):
            term *= (k - 1) / k * cosine**2
            total += term
        near: FloatArray = 0.5 - (angle + np.sin(angle) * total) / math.pi
        return near

    def _tail(self, t: FloatArray) -> FloatArray:
        """Half the incomplete beta function, by its series: Digital Library of Mathematical Functions, 8.17.8."""
        a, b = self.degrees / 2, 0.5
        x = self.degrees / (self.degrees + np.minimum(t, 1e100) ** 2)  # infinity has no logarithm below
        term, total = np.ones_like(x), np.ones_like(x)
        k = 0
        while len(term) and term.max() > 1e-17:
            term = term * x * ((a + b + k) / (a + 1 + k))
            total += term
            k += 1
        log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        tail: FloatArray = np.exp(a * np.log(x) + b * np.log1p(-x) - log_beta) / a * total / 2
        return tail

    def upper(self, probability: float) -> float:
        """See `Distribution.upper`."""
        return _bisected(self, probability)


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
