"""The arithmetic of a fit: least squares for a broken line over log subject length, from sums by length.

Subjects of equal length are summed once, as whole numbers; a round of a fit then takes away the few subjects that it
leaves out. The equations of a broken line are tridiagonal and are solved here, in one order of operations, so that no
library's threads or blocking can change a digit.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray
from swsearch.statistics import functions

Sums = tuple[FloatArray, FloatArray, FloatArray]
"""Number, sum and sum of squares at each distinct length."""

_START_BINS = 1024
"""Bins of scores in which the first medians and quartiles are looked up."""

_START_SAMPLE = 10_000
"""Subjects, evenly spread over the input, from whose scores the range of those bins is chosen."""

IQR = 1.349
"""Interquartile range of a normal distribution, in standard deviations."""


class Lengths:
    """Subjects by length; made once for a database and used for every query.

    Parameters
    ----------
    lengths : ndarray, shape (n_subjects,), integer
        Residues of each subject, in input order; empty subjects take part in nothing.
    """

    def __init__(self, lengths: npt.NDArray[np.integer]) -> None:
        self.all: IntArray = np.asarray(lengths, dtype=np.int64)
        counted = np.bincount(self.all, minlength=1)
        counted[0] = 0
        self.distinct: IntArray = np.flatnonzero(counted)
        self.counts: IntArray = counted[self.distinct]
        self._filled = None if self.all.all() else np.flatnonzero(self.all)
        place = np.zeros(len(counted), dtype=np.int32)
        place[self.distinct] = np.arange(len(self.distinct))
        self.place: npt.NDArray[np.int32] = place[self.filled(self.all)]

    @property
    def n(self) -> int:
        """Subjects with residues."""
        return len(self.place)

    @cached_property
    def log(self) -> FloatArray:
        """Natural logarithms of the distinct lengths, ascending; shape (n_lengths,), float64."""
        return functions.log(self.distinct)

    def filled(self, values: IntArray) -> IntArray:
        """Pick from values, shape (n_subjects,), int64, those of subjects with residues, shape (n,)."""
        return values if self._filled is None else values[self._filled]

    def knots(self, step: float, least: int, turn: float | None = None) -> FloatArray:
        """Choose where a line over log length may bend.

        Parameters
        ----------
        step : float
            Least distance, in log length.
        least : int
            Subjects that each interval holds at least, if there are so many.
        turn : float, optional
            Log length where there must be a knot; others keep a distance from it.

        Returns
        -------
        ndarray, shape (n_knots,), float64
            Ascending; the shortest and the longest subject's log length at the ends, one alone if they are equal.
        """
        first, last = float(self.log[0]), float(self.log[-1])
        grid = [step * k for k in range(int(first // step), int(last // step) + 2)]
        if turn is not None:
            grid = sorted([x for x in grid if abs(x - turn) > step / 3] + [turn])
        below = np.concatenate(([0], np.cumsum(self.counts)))[np.searchsorted(self.log, grid, side="right")].tolist()
        knots, counted = [first], 0
        for x, n_below in zip(grid, below, strict=True):
            if first < x < last and n_below - counted >= least and self.n - n_below >= least:
                knots.append(x)
                counted = n_below
        return np.array([*knots, last] if last > first else knots)


class Sample:
    """A query's scores with every subject, summed by length.

    Parameters
    ----------
    values : ndarray, shape (n_subjects,), int64
        Scores, adjusted, in input order.
    lengths : Lengths
        The subjects'.
    """

    def __init__(self, values: IntArray, lengths: Lengths) -> None:
        self.lengths = lengths
        self.values = lengths.filled(values)
        self._sums = self._by_length(lengths.place, self.values)

    def _by_length(self, place: npt.NDArray[np.int32], values: IntArray) -> Sums:
        """Count, sum and sum squares; exact, as whole numbers are up to 2**53."""
        real = values.astype(np.float64)
        counts, sums, squares = (self._summed(place, each) for each in (np.ones_like(real), real, real * real))
        return counts, sums, squares

    def _summed(self, place: npt.NDArray[np.int32], values: FloatArray) -> FloatArray:
        return np.bincount(place, values, len(self.lengths.distinct)).astype(np.float64, copy=False)

    def without(self, left_out: IntArray) -> Sums:
        """Sum the scores at each distinct length, some subjects left out.

        Parameters
        ----------
        left_out : ndarray, shape (n,), int64
            Places of these subjects among those with residues.

        Returns
        -------
        counts, sums, squares : ndarray, shape (n_lengths,), float64
            Number of scores, their sum and the sum of their squares.
        """
        minus = self._by_length(self.lengths.place[left_out], self.values[left_out])
        counts, sums, squares = (whole - part for whole, part in zip(self._sums, minus, strict=True))
        return counts, sums, squares

    def outside(self, means: FloatArray, variances: FloatArray, deviations: float) -> IntArray:
        """Find the scores that are far from the mean.

        Parameters
        ----------
        means, variances : ndarray, shape (n_lengths,), float64
            At each distinct length.
        deviations : float
            How far is too far, in standard deviations.

        Returns
        -------
        ndarray, shape (n,), int64
            Their places among subjects with residues, ascending.
        """
        reach = deviations * np.sqrt(variances)
        low, high = np.ceil(means - reach).astype(np.int64), np.floor(means + reach).astype(np.int64)
        place = self.lengths.place
        outside: IntArray = np.flatnonzero((self.values < low[place]) | (self.values > high[place]))
        return outside

    def start(self, line: BrokenLine) -> tuple[FloatArray, FloatArray]:
        """Return a first mean and variance at each distinct length, two of shape (n_lengths,), float64.

        Between two knots these come from the median and the quartiles there.
        """
        some = np.sort(self.values[:: max(1, len(self.values) // _START_SAMPLE)])
        at_5, at_50 = int(some[len(some) // 20]), int(some[len(some) // 2])
        # the lower half, which holds no relatives, says how far apart scores lie
        low, high = at_5 - 3 * (at_50 - at_5) - 16, at_50 + 8 * (at_50 - at_5) + 16
        width = -(-(high - low) // (_START_BINS - 2))
        bins = np.clip((self.values - low) // width, -1, _START_BINS - 2) + 1
        keys = line.interval[self.lengths.place] * _START_BINS + bins
        table = np.bincount(keys, minlength=line.n_intervals * _START_BINS).reshape(-1, _START_BINS).cumsum(axis=1)
        quarter, median, three = ((table >= part * table[:, -1:]).argmax(axis=1) for part in (0.25, 0.5, 0.75))
        half = np.where(median > quarter, 2 * (median - quarter), three - quarter)
        spread = np.maximum(half * width / IQR, 0.5 * width) ** 2
        # scores outside the bins are unknown, so none is left out there at first
        unknown = (quarter == 0) | (median == _START_BINS - 1)
        spread[unknown] = float(high - low) ** 2
        means = low + (median - 0.5) * width
        return means[line.interval], spread[line.interval]


class BrokenLine:
    """A continuous function of log length, straight between knots.

    Parameters
    ----------
    x : ndarray, shape (n,), float64
        Log lengths, ascending.
    knots : ndarray, shape (n_knots,), float64
        Ascending, the first and last of ``x`` at the ends.
    """

    def __init__(self, x: FloatArray, knots: FloatArray) -> None:
        self.n_intervals = max(len(knots) - 1, 1)
        self._n_knots = len(knots)
        self.interval: IntArray = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, self.n_intervals - 1)
        if len(knots) > 1:
            left, right = knots[self.interval], knots[self.interval + 1]
            self._share: FloatArray = (x - left) / (right - left)
        else:
            self._share = np.zeros(len(x))

    def at(self, values: FloatArray) -> FloatArray:
        """Return the line's values at every ``x``, shape (n,), given those at the knots, shape (n_knots,)."""
        right = np.minimum(self.interval + 1, self._n_knots - 1)
        line: FloatArray = values[self.interval] * (1 - self._share) + values[right] * self._share
        return line

    def fit(self, weights: FloatArray, weighted: FloatArray) -> FloatArray:
        """Return the values at the knots of the line of least squares.

        Parameters
        ----------
        weights, weighted : ndarray, shape (n,), float64
            At each ``x``: the sum of the weights of what was measured there, and that of weight times value.

        Returns
        -------
        ndarray, shape (n_knots,), float64
        """
        left, right, n = 1 - self._share, self._share, self._n_knots
        diagonal = self._per_knot(weights * left**2, weights * right**2)
        beside = np.bincount(self.interval, weights * left * right, n)
        target = self._per_knot(weighted * left, weighted * right)
        # an interval that has no subjects left is tied weakly to the overall mean
        weak = 1e-9 * float(diagonal.max())
        diagonal += weak
        target += weak * float(weighted.sum() / weights.sum())
        for k in range(1, n):
            factor = beside[k - 1] / diagonal[k - 1]
            diagonal[k] -= factor * beside[k - 1]
            target[k] -= factor * target[k - 1]
        values = np.empty(n)
        values[-1] = target[-1] / diagonal[-1]
        for k in range(n - 2, -1, -1):
            values[k] = (target[k] - beside[k] * values[k + 1]) / diagonal[k]
        return values

    def _per_knot(self, on_the_left: FloatArray, on_the_right: FloatArray) -> FloatArray:
        n = self._n_knots
        knots: FloatArray = np.bincount(self.interval, on_the_left, n).astype(np.float64, copy=False)
        if n > 1:
            knots += np.bincount(self.interval + 1, on_the_right, n)
        return knots

    def box_means(self, counts: FloatArray, sums: FloatArray) -> FloatArray:
        """Return, at each knot, the mean of what lies in the intervals on both sides.

        Parameters
        ----------
        counts, sums : ndarray, shape (n,), float64
            At each ``x``: how many values there are, and their sum.

        Returns
        -------
        ndarray, shape (n_knots,), float64
        """
        both = [np.bincount(self.interval, each, self.n_intervals) for each in (counts, sums)]
        if self._n_knots > 1:
            both = [np.append(each, 0.0) + np.insert(each, 0, 0.0) for each in both]
        overall = float(sums.sum() / counts.sum())
        means: FloatArray = np.where(both[0] > 0, both[1] / np.maximum(both[0], 1.0), overall)
        return means
