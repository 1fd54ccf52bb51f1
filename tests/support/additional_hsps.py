"""Further alignments of a pair, for tests that hold them against others."""

from __future__ import annotations

from swsearch.alignment_table import PairAlignment
from swsearch.pipeline.pairs import find_further_hsps


def further_after(first: PairAlignment, most: int, least: int = 1) -> list[PairAlignment]:
    """Return what `find_further_hsps` finds, as alignments."""
    return [first.with_path(*each) for each in find_further_hsps(first, most, least)]
