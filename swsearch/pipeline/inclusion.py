"""Rules that choose the hits, and their parts, for the next profile.

An unrelated sequence in a profile attracts its own relatives in the next iteration. Each rule can be switched off.
``cpu/profiles/inclusion.cpp`` computes them, and cites their sources.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swsearch import extension
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.cpu.columns import run_arguments
from swsearch.errors import check_finite, check_flag, check_integer
from swsearch.options.row import rows_of
from swsearch.pipeline.table.search import SearchTable
from swsearch.scoring import GAP_COLUMNS, PositionGapCosts, QueryProfile, Scoring

CORE, CHARGED = "AILMV", "DEKRQ"
"""Residues that the positions a and d of a heptad hold mostly, and those that the others do (McLachlan and Stewart,
J. Mol. Biol. 98:293, 1975)."""

MIN_END_BITS = 0.05
"""Bits per column of the end of an alignment. On 50 queries of SCOPe this much costs nothing, 0.17 half a point of
what is found before the first wrong hit, and 0.33 three points: domains that stand alone have no ends to lose
(November 2026, ``python -m benchmarks.statistics.iterated``, searches with such rules given by ``--hits``)."""

INCLUSION_OPTIONS = {"inclusion_evalue": "evalue", "inclusion_coverage": "coverage", "max_included": "most"}
"""Options that are fields of `Inclusion`."""


@dataclass(frozen=True)
class Inclusion:
    """Rules for the hits of an iteration that enter the next profile. Of most rules, None switches them off.

    Parameters
    ----------
    evalue : float or None
        Largest E-value; None, that of `swsearch.pipeline.options.INCLUSION_EVALUES`.
    most : int
        Most subjects, the best first.
    coverage : float
        Least percentage of the query's positions that an alignment pairs.
    columns : int
        Least number of these.
    low_complexity : float or None
        Largest percentage of an alignment's windows, of either side, that are of low complexity: SEG's windows of 12
        residues and lower cutoff, without its search for the best part of a window.
    coiled_coil : float or None
        The same of those that look like a coiled coil: four heptads with `CORE` residues at the positions a and d and
        hardly elsewhere, where most are `CHARGED`; of the seven registers any will do.
    ends : float or None
        Ends of alignments that score less than this, on average per column in bits, are cut back; see
        `swsearch.pipeline.inclusion.trim_ends`.
    several : bool
        Whether further parts of a subject enter, each with an E-value of its own.
    """

    evalue: float = SearchTable.inclusion_evalue
    most: int = SearchTable.max_included
    coverage: float = SearchTable.inclusion_coverage
    columns: int = 20
    low_complexity: float | None = 50.0
    coiled_coil: float | None = 50.0
    ends: float | None = MIN_END_BITS
    several: bool = True

    def __post_init__(self) -> None:
        for option, name in INCLUSION_OPTIONS.items():
            object.__setattr__(self, name, rows_of(SearchTable)[option].check(getattr(self, name)))
        object.__setattr__(self, "columns", check_integer("inclusion.columns", self.columns, 0, 1_000_000))
        check_flag("inclusion.several", self.several)
        for name in ("low_complexity", "coiled_coil", "ends"):
            if (value := getattr(self, name)) is not None:
                number = check_finite(f"inclusion.{name}", value, "a number, or null")
                object.__setattr__(self, name, number)


_KINDS: ByteArray = np.zeros(256, dtype=np.uint8)
"""Of every code whether it is of `CORE`, 1, or `CHARGED`, 2."""
_KINDS[PROTEIN.encode(CORE)], _KINDS[PROTEIN.encode(CHARGED)] = 1, 2


def select_hits(
    rules: Inclusion, query: ByteArray, subjects: ByteArray, starts: IntArray, alignments: AlignmentTable
) -> npt.NDArray[np.bool_]:
    """Return a mask of the alignments that may enter the profile of a query.

    Parameters
    ----------
    query : ndarray, shape (n,), uint8
        Codes that are not masked.
    subjects : ndarray, shape (n_residues,), uint8
        Codes of subjects end to end, not masked.
    starts : ndarray, shape (m,), int64
        Where the subject of each alignment begins in these.
    alignments : AlignmentTable
        m of them.

    Returns
    -------
    ndarray, shape (m,), bool
    """
    good = np.empty(len(alignments), dtype=np.bool_)
    limits = (math.inf if each is None else each for each in (rules.low_complexity, rules.coiled_coil))
    least = min(rules.columns, len(query)), rules.coverage * len(query)
    runs = run_arguments(alignments, starts + alignments.subject_start)
    extension.load().select_hits(runs, query, subjects, _KINDS, *least, *limits, good)
    return good


FINE = 1000
"""Parts of a matrix unit in which means are compared: whole numbers add up to the same everywhere."""


def trim_ends(
    alignments: AlignmentTable,
    rows: QueryProfile,
    scoring: Scoring,
    subjects: ByteArray,
    starts: IntArray,
    min_score: float,
) -> AlignmentTable:
    """Cut back the ends of alignments that score less than ``min_score`` a column, in matrix units.

    What is left of each is the part of the largest sum of scores less ``min_score`` per column, so that no end of it,
    of whatever length, has a smaller mean. Local alignments run on beyond what is homologous as long as that costs
    little, and the profile grows with it (Gonzalez and Pearson, Nucleic Acids Res. 38:2177, 2010).

    Parameters
    ----------
    alignments : AlignmentTable
        m alignments of one query; of the result all but the counts hold: score, identities and positives are those
        of the whole alignments.
    subjects : ndarray, shape (n_residues,), uint8
        Codes of subjects end to end, as they are scored.
    starts : ndarray, shape (m,), int64
        Where the subject of each alignment begins in these.
    min_score : float
        Matrix units per column.

    Returns
    -------
    AlignmentTable
        One per alignment; one that scores too little everywhere has no columns.
    """
    gaps = rows.gaps or PositionGapCosts.uniform(len(rows), scoring.gap_open, scoring.gap_extend)
    costs = np.stack([getattr(gaps, name) for name in GAP_COLUMNS], axis=1)
    numbers = np.empty((6, len(alignments)), dtype=np.int64)
    offsets, lengths, operations = map(
        np.empty_like, (alignments.run_offsets, alignments.run_lengths, alignments.run_operations)
    )
    runs = run_arguments(alignments, starts + alignments.subject_start)
    scores = np.ascontiguousarray(rows.scores)
    extension.load().trim_ends(
        runs, scores, costs, subjects, round(FINE * min_score), numbers, offsets, lengths, operations
    )
    query_start, query_end, subject_start, subject_end, length, n_gaps = numbers
    n_runs = int(offsets[-1])
    return replace(
        alignments, query_start=query_start, query_end=query_end, subject_start=subject_start - starts,
        subject_end=subject_end - starts, length=length, gaps=n_gaps, run_offsets=offsets,
        run_lengths=lengths[:n_runs], run_operations=operations[:n_runs],
    )  # fmt: skip
