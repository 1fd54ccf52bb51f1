"""Where a search's E-values come from: the choice, the reasons where there are none, and a hit's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from swsearch.errors import InputError, check_choice
from swsearch.scoring import Mode, Scoring
from swsearch.statistics.fitted import PairNulls
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics, statistics_for, why_no_statistics

StatisticsMethod = Literal["auto", "published", "fitted", "none"]
"""``published``: Karlin-Altschul statistics with BLAST's constants; ``fitted``: `swsearch.statistics.fitted`'s;
``auto``: fitted, in every mode."""


def statistics_in_force(method: StatisticsMethod) -> Literal["published", "fitted", "none"]:
    """Return what ``auto`` stands for, and other methods as they are."""
    return "fitted" if method == "auto" else method


def check_statistics(method: Any, scoring: Scoring, mode: Mode, *, evalue: float | None, dbsize: int | None) -> None:
    """Raise unless the method exists, can be used here, and gives E-values where an option needs them.

    Raises
    ------
    InputError
        Otherwise; the message names the option.
    """
    check_choice("statistics", method, get_args(StatisticsMethod))
    if method == "published" and statistics_for(scoring, mode) is None:
        reason = (
            why_no_statistics(scoring, mode).removeprefix("no E-values: ").removesuffix("; hits are ranked by score")
        )
        raise InputError(
            f"statistics: {reason}; use 'auto' or 'fitted', which fit them to scores with shuffled sequences"
        )
    for name, value in (("evalue", evalue), ("dbsize", dbsize)):
        if method == "none" and value is not None:
            raise InputError(
                f"{name}: got {value:g} with statistics 'none', which has no E-values; leave one of the two out"
            )


def why_none(problem: str = "") -> str:
    """Say why a result has no E-values; ``problem`` is empty where none were asked for."""
    return f"no E-values: {problem or 'none were asked for'}; hits are ranked by score"


@dataclass(frozen=True)
class HitNumbers:
    """What statistics say of a hit: those fields of `swsearch.results.Hit`."""

    bit_score: float | None = None
    evalue: float | None = None
    z_score: float | None = None
    evalue_published: float | None = None


def numbers_of(
    statistics: Statistics | PairNulls | None,
    published: KarlinAltschul | None,
    scores: Sequence[int],
    query_length: int,
    subject_lengths: npt.NDArray[np.integer],
    database_residues: int,
) -> list[HitNumbers]:
    """Compute the numbers of some hits.

    Parameters
    ----------
    statistics : Statistics, PairNulls or None
        What is in force: one for all of the query's hits, or a null for each.
    published : KarlinAltschul or None
        What to report beside it.
    scores : sequence of int
        Raw scores, matrix units.
    query_length : int
        Residues.
    subject_lengths : ndarray, shape (n_hits,), integer
        Residues of each hit's subject.
    database_residues : int
        Residues that E-values refer to.
    """
    nothing: list[None] = [None] * len(scores)
    bits: list[Any] = [*nothing]
    evalues: list[Any] = [*nothing]
    z_scores: list[Any] = [*nothing]
    beside: list[Any] = [*nothing]
    if isinstance(statistics, PairNulls):
        evalues = statistics.evalues(scores, database_residues).tolist()
        z_scores = statistics.z_scores(scores).tolist()
        in_bits = statistics.bit_scores(scores)
        bits = bits if in_bits is None else in_bits.tolist()
    elif statistics is not None and scores:
        evalues = statistics.evalues(scores, query_length, subject_lengths, database_residues).tolist()
        in_bits = statistics.bit_scores(scores, subject_lengths)
        bits = bits if in_bits is None else in_bits.tolist()
    if published is not None and scores:
        beside = published.evalues(scores, query_length, subject_lengths, database_residues).tolist()
    return [HitNumbers(*each) for each in zip(bits, evalues, z_scores, beside, strict=True)]
