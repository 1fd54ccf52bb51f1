"""More than one alignment of a hit, in local mode: each the best that shares no pair of residues with those before.

They are those of Waterman and Eggert (J. Mol. Biol. 197:723, 1987), as BLAST's several HSPs of a subject but exact.
Each has the E-value of its own score. BLAST's sum statistics, which rate several alignments together, are left out.

A further alignment costs one to two times the cells of the pair. Those of one hit are computed one after the other
(``cpu/pairs/further.cpp``, ``cpu/pairs/rows.cpp``); hits are worked on side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swsearch.alignment import PairAlignment
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.tracing import own_costs
from swsearch.later import Later
from swsearch.pipeline.filters import HitFilters
from swsearch.reference import Cigar
from swsearch.results import Hsp
from swsearch.statistics.choice import HitNumbers
from swsearch.translation import Frame


def used_pairs(pair: PairAlignment) -> npt.NDArray[np.int64]:
    """Return the residues that an alignment pairs: places in query and subject, shape (n, 2), int64."""
    ops = pair.column_ops
    paired = ops == ord("M")
    query = pair.query_start + np.cumsum(ops != ord("D")) - 1
    subject = pair.subject_start + np.cumsum(ops != ord("I")) - 1
    return np.ascontiguousarray(np.stack([query[paired], subject[paired]], axis=1), dtype=np.int64)


FoundFurther = tuple[int, int, int, Cigar]
"""A further alignment: score, first residues of query and subject, and CIGAR."""


def find_after(first: PairAlignment, most: int, least: int = 1) -> list[FoundFurther]:
    """Find alignments of a pair after its best local one.

    Parameters
    ----------
    first : PairAlignment
        The best, local.
    most : int
        Most to find.
    least : int, optional
        The least score of one, at least 1.

    Returns
    -------
    list of tuple
        Scores descend; `PairAlignment.like` makes an alignment of each.
    """
    scoring = first.scoring
    found = extension.load().align_further(
        np.ascontiguousarray(first.query),
        np.ascontiguousarray(first.subject),
        np.ascontiguousarray(scoring.matrix.scores.astype(np.int8)),
        used_pairs(first),
        int(scoring.gap_open),
        int(scoring.gap_extend),
        least,
        most,
        *own_costs(first.query_rows),
    )
    return [each[:4] for each in found]


@dataclass(frozen=True)
class Further:
    """Finds the further alignments of a hit: what its `hsps` hold after the best one.

    Parameters
    ----------
    most : int
        Alignments of a hit, the best included.
    least : int
        Least score of one: lower ones miss the E-value threshold or ``min_score``.
    threshold : float or None
        Largest E-value.
    filters : HitFilters
        What they must be like; of the ``most`` best, those that pass are shown.
    numbers : callable
        Returns what statistics say of scores with subjects of some lengths.
    part : Frame or None
        The place of the part of the query that is searched.
    """

    most: int
    least: int
    threshold: float | None
    filters: HitFilters
    numbers: Callable[[Sequence[int], npt.NDArray[np.integer]], list[HitNumbers]]
    part: Frame | None = None

    def find(
        self, best: Later[PairAlignment], subject_length: int, known: Sequence[FoundFurther] | None = None
    ) -> list[Hsp]:
        """Find the further alignments of a hit.

        Parameters
        ----------
        best : Later of PairAlignment
            The best one.
        subject_length : int
            Residues.
        known : sequence of tuple, optional
            What `find_after` returns, where somebody else has called it.
        """
        first = best.get()
        known = find_after(first, self.most - 1, self.least) if known is None else known
        found = [first.like(*each) for each in known]
        numbers = self.numbers([pair.score for pair in found], np.full(len(found), subject_length))
        return [
            Hsp(pair, pair.score, **vars(number), query_frame=self.part)
            for pair, number in zip(found, numbers, strict=True)
            if self._reaches(number) and self.filters.passes(pair)
        ]

    def _reaches(self, number: HitNumbers) -> bool:
        return self.threshold is None or number.evalue is None or number.evalue <= self.threshold
