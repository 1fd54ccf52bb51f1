"""Gap costs as they are given, fractions included, and matrices multiplied so that all is whole."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.errors import OptionError

MAX_GAP_COST = 10_000
"""Largest gap cost accepted: far above any use, far below what a 16-bit lane holds."""

MAX_ENTRY = 127
"""Largest magnitude of a matrix entry; profiles hold int8."""


def exact_cost(name: str, value: Any) -> Fraction:
    """Return a gap cost, of a fraction as its decimals say.

    Raises
    ------
    OptionError
        If it is none.
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not value >= 0:  # nan is none
        raise OptionError(name, value, "a number >= 0 (costs are positive here)")
    if value > MAX_GAP_COST:
        raise OptionError(name, value, f"a number <= {MAX_GAP_COST}")
    return Fraction(int(value)) if value == int(value) else Fraction(str(float(value)))


def scaled_scores(scores: npt.NDArray[np.int32], n_letters: int, scale: int, name: str) -> npt.NDArray[np.int32]:
    """Return a matrix, shape (32, 32), with the scores of letters so many times as large.

    Raises
    ------
    OptionError
        If one is too large then.
    """
    largest = max(int(np.abs(scores[:n_letters, :n_letters]).max(initial=0)), 1)
    if largest * scale > MAX_ENTRY:
        least = f"fractions of {MAX_ENTRY // largest} parts at most"
        why = f"scores of {name} are multiplied with them, from {largest} up to {MAX_ENTRY}"
        raise OptionError("gap_open, gap_extend", f"fractions of {scale:,} parts", least, why)
    scaled = scores.copy()
    scaled[:n_letters, :n_letters] *= scale
    return scaled
