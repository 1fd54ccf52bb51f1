"""exp, log and erfc with the same last bit on every machine.

The functions of numpy and of C libraries differ in their last bit between processors (numpy chooses between several
at run time). E-values that differ there could let two hits change places, or one pass the limit on hits in place of
another. Additions, multiplications, divisions and square roots of doubles have only one result (IEEE 754), so the
functions here use only these, in one order (``cpu/statistics/portable_math.cpp``). An element's result does not
depend on the others, nor on the array's length.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.blocks import FloatArray

LN2 = float.fromhex("0x1.62e42fefa39efp-1")
"""The logarithm of 2."""

_FUNCTIONS = ("exp", "expm1", "log", "log1p", "erfc")
"""In the order of ``MathFunction`` in ``cpu/statistics/portable_math.hpp``."""


def exp(x: npt.ArrayLike) -> FloatArray:
    """Compute the exponential function.

    Parameters
    ----------
    x : array_like, any shape
        Below -745 the result is 0, above 709 infinity.

    Returns
    -------
    ndarray, shape of ``x``, float64
        Within 2e-16 of the result, relatively.
    """
    return _compute("exp", x)


def expm1(x: npt.ArrayLike) -> FloatArray:
    """Compute exp(x) - 1, precise near 0 too.

    Parameters
    ----------
    x : array_like, any shape
        At most 700.

    Returns
    -------
    ndarray, shape of ``x``, float64
    """
    return _compute("expm1", x)


def log(x: npt.ArrayLike) -> FloatArray:
    """Compute the natural logarithm.

    Parameters
    ----------
    x : array_like, any shape
        Positive and finite.

    Returns
    -------
    ndarray, shape of ``x``, float64
    """
    return _compute("log", x)


def log1p(x: npt.ArrayLike) -> FloatArray:
    """Compute log(1 + x), precise near 0 too.

    Parameters
    ----------
    x : array_like, any shape
        From -0.5 to 0.5.

    Returns
    -------
    ndarray, shape of ``x``, float64
    """
    return _compute("log1p", x)


def erfc(x: npt.ArrayLike) -> FloatArray:
    """Compute the complementary error function.

    Parameters
    ----------
    x : array_like, any shape
        Any numbers.

    Returns
    -------
    ndarray, shape of ``x``, float64
        Within 1e-15 of the result, relatively, times the square of ``x`` where that is above 1.
    """
    return _compute("erfc", x)


def _compute(function: str, x: npt.ArrayLike) -> FloatArray:
    """Return a function of numbers, of the shape of ``x``."""
    values = np.asarray(x, dtype=np.float64, order="C")
    result = np.empty_like(values)
    extension.load().math(_FUNCTIONS.index(function), values, result)
    computed: FloatArray = result[()]
    return computed
