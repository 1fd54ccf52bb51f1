"""Where gap costs must be whole numbers."""

from __future__ import annotations

from swsearch.errors import OptionError
from swsearch.scoring import Scoring


def check_is_whole(scoring: Scoring, where: str = "in a search") -> None:
    """Raise `OptionError` if gap costs are fractions, which only pairs of sequences are aligned with."""
    if scoring.scale != 1:
        costs = f"{scoring.shown(scoring.gap_open)}/{scoring.shown(scoring.gap_extend)}"
        remedy = "only swsearch align takes fractions"
        raise OptionError("gap costs", costs, f"whole numbers {where}", remedy)
