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

_LONGEST_TAIL = 800.0
"""Where the survival of Pearson's type III is 0 to all digits, for every shape that occurs."""

MOST_SHAPE = 100
"""Largest shape: with more the powers of `_LONGEST_TAIL` come near the largest number."""


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
        # 0.0 minus: a minus sign alone makes -0.0 of 0.0
        return 0.0 - functions.expm1(-functions.exp(-np.maximum(scaled, -700.0)))

    def upper(self, probability: float) -> float:
        """See `Distribution.upper`."""
        return (-float(functions.log(-functions.log1p(-probability))) - EULER) * math.sqrt(6) / math.pi


@dataclass(frozen=True)
class PearsonThree:
    """Pearson's type III: a gamma distribution, of skewness 2 / sqrt(shape).

    Parameters
    ----------
    shape : int
        At least 1. Whole numbers have a sum of finitely many terms.
    """

    shape: int

    @property
    def name(self) -> str:
        """See `Distribution.name`."""
        return "Pearson's type III distribution"

    def survival(self, z: npt.ArrayLike) -> FloatArray:
        """See `Distribution.survival`."""
        x = self.shape + math.sqrt(self.shape) * np.asarray(z, dtype=np.float64)
        x = np.minimum(np.maximum(x, 0.0), _LONGEST_TAIL)
        term, total = np.ones_like(x), np.ones_like(x)
        for k in range(1, self.shape):
            term = term * x / k
            total = total + term
        return functions.exp(-x) * total

    def upper(self, probability: float) -> float:
        """See `Distribution.upper`."""
        return _bisected(self, probability)


@lru_cache(maxsize=64)
def _bisected(distribution: PearsonThree, probability: float) -> float:
    """Invert the survival function; each query of a job asks for the same few values, and it takes 10 ms."""
    low, high = 0.0, 1.0
    while distribution.survival(high) > probability:
        high *= 2
    for _ in range(80):  # each turn halves the interval
        middle = (low + high) / 2
        low, high = (middle, high) if distribution.survival(middle) > probability else (low, middle)
    return high
