"""Maximum likelihood for chance scores of local alignment: compared by `calibration.py`, and not used.

Tried: a Gumbel distribution of greatest likelihood instead of mean and variance by regression, which
`swsearch.statistics.fitted` has. It gives 1.41 chance hits of E <= 1 per query where regression gives 0.83, and of
reversed sequences 4.7 where it gives 1.5 (results/calibration.txt): it takes all subjects for alike but for their
length.

A subject of n residues has a score of a Gumbel distribution of scale 1 / lambda around a + b ln n; lambda, a and b of
the greatest likelihood are found by Newton's method. Scores that a tenth of a subject should reach are left out, as
in `swsearch.statistics.fitted`: relatives have them. Censored instead, that is, counted as being above that limit,
hundreds of relatives would still say that high scores are usual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

OUTLIER = 0.1
"""A subject is left out if so few or fewer of its score are expected in the database."""

_WIDTH = 0.05
"""Lengths are taken together over this much of log length, in which the location moves a fifth of a score."""

_ROUNDS, _STEPS = 20, 50
"""Most rounds of leaving out, and most steps of Newton's method in each."""


@dataclass(frozen=True)
class LikelyGumbel:
    """Lambda and location of one query's scores.

    Parameters
    ----------
    lambda_ : float
        Per matrix unit.
    intercept, slope : float
        Of the location by log length, matrix units.
    n_subjects : int
        Size of the database.
    """

    lambda_: float
    intercept: float
    slope: float
    n_subjects: int

    def evalues(self, scores: npt.ArrayLike, lengths: npt.ArrayLike) -> FloatArray:
        """Return E-values; like `FittedStatistics.evalues`, of half a unit below a score."""
        location = self.intercept + self.slope * np.log(np.asarray(lengths, dtype=np.float64))
        z = self.lambda_ * (np.asarray(scores, dtype=np.float64) - 0.5 - location)
        evalues: FloatArray = -self.n_subjects * np.expm1(-np.exp(-np.maximum(z, -700.0)))
        return evalues


def fit_likely(scores: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> LikelyGumbel:
    """Fit a query's scores with every subject, shapes (n_subjects,)."""
    n, logs = len(scores), np.log(lengths.astype(np.float64))
    group = np.round(logs / _WIDTH).astype(np.int64)
    group -= group.min()
    height = int(scores.max()) + 1
    counted = np.bincount(group * height + scores, minlength=(int(group.max()) + 1) * height)
    cells = np.flatnonzero(counted)
    x = (np.bincount(group, logs) / np.maximum(np.bincount(group), 1))[cells // height]
    y, weights = (cells % height).astype(np.float64), counted[cells].astype(np.float64)
    # quartiles, which relatives hardly move, say where to begin
    slope = float(np.polyfit(x, np.minimum(y, np.median(scores)), 1, w=np.sqrt(weights))[0])
    low, middle, high = np.percentile(scores - slope * logs, [25, 50, 75])
    lambda_ = (math.log(math.log(4)) - math.log(math.log(4 / 3))) / max(float(high - low), 0.5)
    values = lambda_ * np.array([1.0, float(middle) + math.log(math.log(2)) / lambda_, slope])
    far = math.log(n / OUTLIER)
    kept = np.zeros(len(y), dtype=bool)
    for _ in range(_ROUNDS):
        before, kept = kept, values[0] * y - values[1] - values[2] * x <= far
        if np.array_equal(before, kept):
            break
        values = _most_likely(x[kept], y[kept], weights[kept], values)
    return LikelyGumbel(float(values[0]), float(values[1] / values[0]), float(values[2] / values[0]), n)


def _most_likely(x: FloatArray, y: FloatArray, weights: FloatArray, values: FloatArray) -> FloatArray:
    """Maximise the likelihood over (lambda, lambda a, lambda b), in which it has one maximum."""
    # z = lambda y - lambda a - lambda b x is linear in the parameters
    directions = np.column_stack([y, -np.ones_like(x), -x])
    total = float(weights.sum())

    def likelihood(values: FloatArray) -> float:
        z = np.maximum(directions @ values, -30.0)
        return float((weights * (-z - np.exp(-z))).sum()) + total * math.log(values[0])

    best = likelihood(values)
    for _ in range(_STEPS):
        u = np.exp(-np.maximum(directions @ values, -30.0))
        gradient = directions.T @ (weights * (u - 1))
        curvature = -(directions * (weights * u)[:, None]).T @ directions
        gradient[0] += total / values[0]
        curvature[0, 0] -= total / values[0] ** 2
        step = np.linalg.solve(curvature, gradient)
        share = 1.0
        while values[0] <= share * step[0] or (reached := likelihood(values - share * step)) < best:
            share /= 2
            if share < 1e-6:
                return values
        gained, values, best = reached - best, values - share * step, reached
        if gained < 1e-9 * abs(best):
            break
    return values
