"""Distributions of alignment scores, with mean 0 and standard deviation 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray, RunLengths
from swsearch.statistics import portable_math

EULER = 0.5772156649015329
"""Mean of the Gumbel distribution of scale 1."""

_MAX_TAIL = 800.0
"""Value beyond which the survival of Pearson's type III is 0 to all digits, for every shape in use."""

MAX_SHAPE = 100
"""Largest shape: with more the powers of `_MAX_TAIL` come near the largest number."""


class Distribution(Protocol):
    """A distribution of mean 0 and standard deviation 1."""

    @property
    def name(self) -> str:
        """Name in outputs."""

    def survival(self, z: npt.ArrayLike) -> FloatArray:
        """Return the probability of a value of at least ``z``, of any shape; precise far out too."""

    def upper(self, probability: float) -> float:
        """Return the value above which this probability lies; at most a half."""


@dataclass(frozen=True)
class Gumbel:
    """The extreme value distribution of type I: the best of many local possibilities."""

    name = "Gumbel distribution"

    def survival(self, z: npt.ArrayLike) -> FloatArray:
        """Return the probability of a value of at least ``z``, of any shape; precise far out too."""
        scaled = np.asarray(z, dtype=np.float64) * (math.pi / math.sqrt(6)) + EULER
        # beyond -700 the inner exponential would overflow; the result is 1 long before
        # 0.0 minus: a minus sign alone makes -0.0 of 0.0
        return 0.0 - portable_math.expm1(-portable_math.exp(-np.maximum(scaled, -700.0)))

    def upper(self, probability: float) -> float:
        """Return the value above which this probability lies; at most a half."""
        return (-float(portable_math.log(-portable_math.log1p(-probability))) - EULER) * math.sqrt(6) / math.pi


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
        """Name in outputs."""
        return "Pearson's type III distribution"

    def survival(self, z: npt.ArrayLike) -> FloatArray:
        """Return the probability of a value of at least ``z``, of any shape; precise far out too."""
        x = self.shape + math.sqrt(self.shape) * np.asarray(z, dtype=np.float64)
        x = np.minimum(np.maximum(x, 0.0), _MAX_TAIL)
        term, total = np.ones_like(x), np.ones_like(x)
        for k in range(1, self.shape):
            term = term * x / k
            total = total + term
        return portable_math.exp(-x) * total

    def upper(self, probability: float) -> float:
        """Return the value above which this probability lies; at most a half."""
        return _invert_survival(self, probability)


@lru_cache(maxsize=64)
def _invert_survival(distribution: PearsonThree, probability: float) -> float:
    """Invert the survival function by bisection, which takes 10 ms."""
    low, high = 0.0, 1.0
    while distribution.survival(high) > probability:
        high *= 2
    for _ in range(80):  # each turn halves the interval
        middle = (low + high) / 2
        low, high = (middle, high) if distribution.survival(middle) > probability else (low, middle)
    return high


_TABLED = 1 << 14
"""Lengths below this have their logarithms in a table: computing them takes longer than all else of a null."""


class Lengths:
    """Subjects by length; made once for a database and used for every query.

    Parameters
    ----------
    lengths : ndarray, shape (n_subjects,), integer
        Residues of each subject; empty subjects are left out.
    """

    def __init__(self, lengths: npt.NDArray[np.integer]) -> None:
        counted = np.bincount(lengths, minlength=1)
        counted[0] = 0
        self.distinct: IntArray = np.flatnonzero(counted)
        self.counts: IntArray = counted[self.distinct]

    @classmethod
    def from_runs(cls, lengths: RunLengths) -> Lengths:
        """Make lengths from runs of subjects sorted by length, the longest first."""
        new = cls.__new__(cls)
        filled = lengths.values > 0
        new.distinct, new.counts = lengths.values[filled][::-1].astype(np.int64), lengths.counts[filled][::-1]
        return new

    @property
    def n(self) -> int:
        """Subjects with residues."""
        return int(self.counts.sum())


class PiecewiseLinear:
    """A continuous function of log length, straight between knots.

    Parameters
    ----------
    lengths : ndarray, shape (n,), integer
        Where its values are wanted, in residues; 0 counts as 1.
    knots : tuple of int
        Lengths where it may bend, in residues, ascending.
    """

    def __init__(self, lengths: npt.NDArray[np.integer], knots: tuple[int, ...]) -> None:
        self._n_knots = len(knots)
        at, x = log_of(np.array(knots)), log_of(lengths)
        self._left: IntArray = np.clip(np.searchsorted(at, x, side="right") - 1, 0, max(len(knots) - 2, 0))
        self._share: FloatArray = np.zeros(len(x))
        if len(knots) > 1:
            self._share = (x - at[self._left]) / (at[self._left + 1] - at[self._left])
        self._within: FloatArray = np.clip(self._share, 0.0, 1.0)
        # the slope of one segment is too uncertain to go on with
        self._far = max(len(knots) - 3, 0)
        self._over: FloatArray = np.maximum(x - at[-1], 0.0) / max(at[-1] - at[self._far], 1e-9)

    def at(self, values: FloatArray, *, beyond: bool) -> FloatArray:
        """Return the line's values at every length, shape (n,), given those at the knots, shape (n_knots,).

        Before the first knot the line goes on straight (``beyond``), and after the last with the slope of the last
        two segments; or it stays as high as there.
        """
        share = np.minimum(self._share, 1.0) if beyond else self._within
        right = np.minimum(self._left + 1, self._n_knots - 1)
        line: FloatArray = values[self._left] * (1 - share) + values[right] * share
        return line + self._over * (values[-1] - values[self._far]) if beyond else line


def log_of(lengths: npt.NDArray[np.integer]) -> FloatArray:
    """Return the natural logarithms of lengths, shape (n,), at least 0; 0 counts as 1."""
    if lengths.max(initial=0) >= _TABLED:
        return portable_math.log(np.maximum(lengths, 1))
    logs: FloatArray = _logs()[lengths]
    return logs


@lru_cache(maxsize=1)
def _logs() -> FloatArray:
    return portable_math.log(np.maximum(np.arange(_TABLED), 1))


@lru_cache(maxsize=4)
def line_on(lengths: Lengths, knots: tuple[int, ...]) -> PiecewiseLinear:
    """Return the line at the lengths of subjects; local and semi-global queries share it."""
    return PiecewiseLinear(lengths.distinct, knots)
