"""Numbers as blastp prints them, one by one: what `swsearch.report.base.write_table` must print."""

from __future__ import annotations

import math
from functools import partial


def evalue_text(evalue: float | None, small: str = ".0e") -> str:
    """Return an E-value as blastp's pairwise report prints it: ``2e-68``, ``0.001``, ``0.50``, ``26``."""
    if evalue is None or math.isnan(evalue):
        return "nan"
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
        return "nan"
    if bit_score > 99999:
        return f"{bit_score:.3e}"
    if bit_score > 99.9:
        return str(int(bit_score))
    return f"{bit_score:z4.1f}"


def z_score_text(z_score: float | None) -> str:
    """Return a z-score with one decimal."""
    return "nan" if z_score is None else f"{z_score:z.1f}"


def whole_percentage(part: int, whole: int) -> int:
    """Return a percentage as the pairwise report prints it: rounded half up, but 100 only where all is meant."""
    if not whole:
        return 0
    rounded = (200 * part + whole) // (2 * whole)
    return 99 if rounded == 100 and part < whole else rounded
