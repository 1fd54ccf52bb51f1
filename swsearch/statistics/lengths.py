"""Subjects counted by length, and lines over the logarithm of the length."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray, RunLengths
from swsearch.statistics import functions

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
    def of_runs(cls, lengths: RunLengths) -> Lengths:
        """Take subjects that are sorted by length, the longest first."""
        made = cls.__new__(cls)
        filled = lengths.values > 0
        made.distinct, made.counts = lengths.values[filled][::-1].astype(np.int64), lengths.counts[filled][::-1]
        return made

    @property
    def n(self) -> int:
        """Subjects with residues."""
        return int(self.counts.sum())


class BrokenLine:
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
        return functions.log(np.maximum(lengths, 1))
    logs: FloatArray = _logs()[lengths]
    return logs


@lru_cache(maxsize=1)
def _logs() -> FloatArray:
    return functions.log(np.maximum(np.arange(_TABLED), 1))


@lru_cache(maxsize=4)
def line_to(longest: int, knots: tuple[int, ...]) -> BrokenLine:
    """Return the line at every length from 0 to ``longest``; local and semi-global queries share it."""
    return BrokenLine(np.arange(longest + 1), knots)
