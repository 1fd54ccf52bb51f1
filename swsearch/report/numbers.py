"""How BLAST prints E-values, bit scores and percentages.

The rules are those of NCBI's align_format, read off 14,680 lines of blastp 2.12: E-values from 1e-323 to 1e11, bit
scores from 7.7 to 1e5.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from swsearch.blocks import FloatArray, IntArray

NO_NUMBER = "nan"
"""What stands in a table where there is no E-value or bit score: every reader of floats takes it."""


def evalue_text(evalue: float | None, small: str = ".0e") -> str:
    """Return an E-value as blastp's pairwise report prints it: ``2e-68``, ``0.001``, ``0.50``, ``26``."""
    if evalue is None or math.isnan(evalue):
        return NO_NUMBER
    if evalue < 1e-180:
        return "0.0"
    for limit, form in ((0.0009, small), (0.1, ".3f"), (1.0, ".2f"), (10.0, ".1f")):
        if evalue < limit:
            return format(evalue, form)
    return format(evalue, ".0f")


evalue_table = partial(evalue_text, small=".2e")
"""Returns an E-value as blastp's tables print it: ``2.12e-68`` where the pairwise report has ``2e-68``."""


def bit_score_text(bit_score: float | None) -> str:
    """Return a bit score as blastp prints it, in tables too: `` 9.6``, ``85.1``, ``209``, ``10235``, ``1.120e+05``.

    Above 99.9 it is cut, not rounded; below 10 a blank stands before it, as in blastp's tables.
    """
    if bit_score is None or math.isnan(bit_score):
        return NO_NUMBER
    if bit_score > 99999:
        return f"{bit_score:.3e}"
    if bit_score > 99.9:
        return str(int(bit_score))
    return f"{bit_score:z4.1f}"


def z_score_text(z_score: float | None) -> str:
    """Return a z-score with one decimal."""
    return NO_NUMBER if z_score is None else f"{z_score:z.1f}"


def whole_percentage(part: int, whole: int) -> int:
    """Return a percentage as the pairwise report prints it: rounded half up, but 100 only where all is meant."""
    if not whole:
        return 0
    rounded = (200 * part + whole) // (2 * whole)
    return 99 if rounded == 100 and part < whole else rounded


def finite(value: float | None) -> float | None:
    """Return a float that JSON can hold, or None: JSON knows no NaN and no infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


# columns


def evalue_texts(evalues: FloatArray) -> list[str]:
    """Apply `evalue_table` to E-values, shape (n,), NaN where there is none."""
    return [f"{value:.2e}" if 1e-180 <= value < 0.0009 else evalue_table(value) for value in evalues.tolist()]


def bit_score_texts(bit_scores: FloatArray) -> list[str]:
    """Apply `bit_score_text` to bit scores, shape (n,), NaN where there is none."""
    values = bit_scores.tolist()
    known = {value: bit_score_text(value) for value in set(values)}  # hits of a query have many equal bit scores
    return [known[value] for value in values]


def percentages(parts: IntArray, wholes: IntArray, decimals: int) -> list[str]:
    """Return percentages, shape (n,), as blastp's tables print them; 0 of nothing is 0."""
    shares = np.divide(100.0 * parts, wholes, out=np.zeros(len(parts)), where=wholes != 0).tolist()
    return [f"{share:.{decimals}f}" for share in shares]
