"""What scoring a query leaves: the subjects it found, and what is known of all the others.

A selection is a plain value. It can be pickled, sent and kept, and those of the parts of a database merge into that
of the whole, in any order. It knows no engine, no database and no alignment; `swsearch.pipeline.hits` makes hits of
it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from swsearch.blocks import IntArray
from swsearch.pipeline.ranking import Ranked, merge_ranked

if TYPE_CHECKING:
    from swsearch.alignments import AlignmentTable
    from swsearch.statistics.fitted import PairNulls
    from swsearch.statistics.karlin_altschul import Statistics
    from swsearch.statistics.observed import ScoreCounts


@dataclass(frozen=True)
class Selection:
    """The subjects of one query that may be reported.

    Parameters
    ----------
    candidates : Ranked
        The best subjects that reach the threshold and that the filters by score and identifier let pass. With fitted
        statistics they reach it by the query's null, until each has its own.
    limit : int
        Most candidates that are kept.
    statistics : Statistics or None
        What bit scores and E-values come from.
    reason : str
        Why there are no statistics, where scoring and mode do not say it already.
    distribution : ScoreCounts or None
        How many subjects have which score, where that was asked for.
    nulls : PairNulls or None
        The candidates' own nulls, in their order, once these are known; then candidates are hits.
    doubt : str
        What to tell of subjects that published statistics take for hits and these do not; empty if there are none.
    included : Ranked or None
        The candidates of the query's next profile, where there is to be one: filters do not apply to them.
    alignments : AlignmentTable or None
        Of the candidates, in their order, where these were needed to choose hits; then candidates are hits.
    """

    candidates: Ranked
    limit: int
    statistics: Statistics | None = None
    reason: str = ""
    distribution: ScoreCounts | None = None
    nulls: PairNulls | None = None
    doubt: str = ""
    included: Ranked | None = None
    alignments: AlignmentTable | None = None

    def take(self, rows: IntArray, alignments: AlignmentTable | None) -> Selection:
        """Return some of the candidates, by their rows, shape (m,), as hits with their alignments."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return replace(self, candidates=self.candidates[rows], nulls=nulls, alignments=alignments)


def merge(parts: Sequence[Selection], most_included: int | None = None) -> Selection:
    """Return the selection of a database from those of its parts.

    Parameters
    ----------
    parts : sequence of Selection
        Of one query, from parts that share no subject, in any order; places in the input are those in the whole. At
        least one.
    most_included : int, optional
        Most candidates of the query's next profile that are kept, where there is to be one.

    Returns
    -------
    Selection
        The same for every order of the parts, and for every way of merging some of them first.

    Raises
    ------
    ValueError
        If there are no parts, or they differ in limit, order, statistics or in what was kept: E-values of one list
        must come from one source. Or if the candidates of one have their own nulls: parts are merged before; or if
        there are candidates of a next profile, and it is not said how many are kept.
    """
    if not parts:
        raise ValueError("parts: got none, expected at least one selection")
    if any(part.nulls is not None for part in parts):
        raise ValueError("parts: expected selections whose candidates have no nulls of their own yet")
    first = parts[0]
    for part in parts[1:]:
        same = (part.limit, part.statistics, part.reason) == (first.limit, first.statistics, first.reason)
        same &= (part.candidates.evalues is None) == (first.candidates.evalues is None)
        same &= (part.included is None) == (first.included is None)
        if not same or (part.distribution is None) != (first.distribution is None):
            raise ValueError(
                "parts: expected selections of one query with the same limit, order, statistics and distribution"
            )
    ranked = merge_ranked([part.candidates for part in parts], first.limit)
    counts = [part.distribution for part in parts if part.distribution is not None]
    included = [part.included for part in parts if part.included is not None]
    if included and most_included is None:
        raise ValueError("most_included: got None, expected how many candidates of the next profile are kept")
    return replace(
        first,
        candidates=ranked,
        distribution=functools.reduce(operator.add, counts) if counts else None,
        included=merge_ranked(included, most_included) if included and most_included is not None else None,
    )


def moved(selection: Selection, by: int) -> Selection:
    """Return a selection of a part whose first subject has another place in the input, by so much later."""
    included = selection.included
    return replace(
        selection,
        candidates=replace(selection.candidates, subjects=selection.candidates.subjects + by),
        included=None if included is None else replace(included, subjects=included.subjects + by),
    )
