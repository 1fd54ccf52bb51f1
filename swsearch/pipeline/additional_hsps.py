"""Additional local alignments (HSPs) of a hit.

Each is the best alignment that shares no residue pair with those before it (Waterman and Eggert, J. Mol. Biol.
197:723, 1987). They correspond to BLAST's HSPs, but are exact. Each has the E-value of its own score; BLAST's sum
statistics are not used. One additional alignment costs one to two times the cells of the pair
(``cpu/pairs/further.cpp``, ``cpu/pairs/rows.cpp``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from swsearch.alignment import PairAlignment
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.tracing import position_gap_costs
from swsearch.reference import Cigar


def aligned_pairs(pair: PairAlignment) -> npt.NDArray[np.int64]:
    """Return the residues that an alignment pairs: places in query and subject, shape (n, 2), int64."""
    ops = pair.column_ops
    paired = ops == ord("M")
    query = pair.query_start + np.cumsum(ops != ord("D")) - 1
    subject = pair.subject_start + np.cumsum(ops != ord("I")) - 1
    return np.ascontiguousarray(np.stack([query[paired], subject[paired]], axis=1), dtype=np.int64)


HspPath = tuple[int, int, int, Cigar]
"""A further alignment: score, first residues of query and subject, and CIGAR."""


def find_further_hsps(first: PairAlignment, most: int, least: int = 1) -> list[HspPath]:
    """Find alignments of a pair after its best local one.

    Parameters
    ----------
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
        aligned_pairs(first),
        int(scoring.gap_open),
        int(scoring.gap_extend),
        least,
        most,
        *position_gap_costs(first.query_rows),
    )
    return [each[:4] for each in found]
