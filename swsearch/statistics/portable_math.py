"""exp, log and erfc with the same last bit on every machine.

The functions of numpy and of C libraries differ in their last bit between processors (numpy chooses between several
at run time). E-values that differ there could let two hits change places, or one pass the limit on hits in place of
another. Additions, multiplications, divisions and square roots of doubles have only one result (IEEE 754), so the
functions here use only these, one elementwise operation at a time and in one order. An element's result does not
depend on the others, nor on the array's length.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45")
"""The logarithm of 2 in two parts; whole numbers up to 2,048 times the first are exact."""

LN2 = float.fromhex("0x1.62e42fefa39efp-1")
"""The logarithm of 2."""

_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")

_FACTORIALS = tuple(1.0 / factorial for factorial in (
    1, 2, 6, 24, 120, 720, 5_040, 40_320, 362_880, 3_628_800, 39_916_800, 479_001_600, 6_227_020_800,
))  # fmt: skip
"""Coefficients of (exp(r) - 1) / r; what is left out is below 1e-17 for r up to half the logarithm of 2."""

_ERFC = (
    -1.302653719781709434190447, 0.6419697923564902603042118, 0.01947647320418583631165012,
    -0.009561514786808631641871757, -0.0009465953444820368663005585, 0.0003668394978527614518728964,
    0.00004252332480690777164482612, -0.00002027857811253424315430556, -0.000001624290004647025513461911,
    0.000001303655835580523201809278, 1.562644172206614317827415e-8, -8.523809591492654252537838e-8,
    6.529054439098851496400499e-9, 5.059343495551468941798493e-9, -9.913641564930330867426303e-10,
    -2.273651222931835855731056e-10, 9.646791102015526801966084e-11, 2.394038083039114744702937e-12,
    -6.886027526497553398420379e-12, 8.944879273090725716744712e-13, 3.130921399342958078293875e-13,
    -1.127082236136725236596069e-13, 3.810905255189232055170269e-16, 7.1060976136092369877645e-15,
    -1.523028201457104304266652e-15, -9.457494571291234000480118e-17, 1.210237189224278992321719e-16,
)  # fmt: skip
"""Chebyshev coefficients, over t from 0 to 1, of log(erfc(x) exp(x**2) / t) with t = 2 / (2 + x); computed at 64
nodes with 60 digits. The first counts half."""


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
    power, above = _power_and_rest(x)
    with np.errstate(over="ignore", under="ignore"):
        result: FloatArray = np.ldexp(1.0 + above, power)
    return result


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
    power, above = _power_and_rest(x)
    with np.errstate(under="ignore"):
        scale = np.ldexp(1.0, power)
        result: FloatArray = scale * above + (scale - 1.0)
    return result


def _power_and_rest(x: npt.ArrayLike) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """Return k and exp(r) - 1 with x = k ln 2 + r, r at most half of ln 2 away from 0."""
    # beyond these bounds the result is 0 or infinity
    clipped = np.minimum(np.maximum(np.asarray(x, dtype=np.float64), -800.0), 800.0)
    power = np.rint(clipped * _PER_LN2)
    rest = (clipped - power * LN2_HIGH) - power * LN2_LOW
    return power.astype(np.int32), _polynomial(_FACTORIALS, rest) * rest


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
    fraction, power = np.frexp(np.asarray(x, dtype=np.float64))
    low = fraction < 0.7071067811865476
    fraction = np.where(low, 2.0 * fraction, fraction)
    exponent = np.where(low, power - 1, power).astype(np.float64)
    return exponent * LN2_HIGH + (_log_ratio((fraction - 1.0) / (fraction + 1.0)) + exponent * LN2_LOW)


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
    values = np.asarray(x, dtype=np.float64)
    return _log_ratio(values / (2.0 + values))


_ODD = tuple(1.0 / k for k in range(3, 37, 2))


def _log_ratio(s: FloatArray) -> FloatArray:
    """Return log((1 + s) / (1 - s)) for s from -1/3 to 1/3, by the series of the inverse hyperbolic tangent."""
    square = s * s
    return 2.0 * s + 2.0 * s * (square * _polynomial(_ODD, square))


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
    values = np.asarray(x, dtype=np.float64)
    size = np.minimum(np.abs(values), 40.0)  # far beyond where the result is 0
    t = 2.0 / (2.0 + size)
    twice = 4.0 * t - 2.0
    one, other = np.zeros_like(t), np.zeros_like(t)
    for coefficient in _ERFC[:0:-1]:  # Clenshaw's recurrence
        one, other = twice * one - other + coefficient, one
    above = 0.5 * (_ERFC[0] + twice * one) - other
    positive = t * exp(above - size * size)
    return np.where(values < 0.0, 2.0 - positive, positive)


def _polynomial(coefficients: tuple[float, ...], x: FloatArray) -> FloatArray:
    """Evaluate a polynomial, the constant's coefficient first, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total
