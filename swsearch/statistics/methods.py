"""Choice of statistics, and the numbers of hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Mode, StatisticsMethod
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics, published_statistics, why_no_statistics
from swsearch.statistics.null_model import PairNullModels


def resolve_method(method: StatisticsMethod) -> Literal["published", "fitted", "none"]:
    """Return what ``auto`` stands for, and other methods as they are."""
    return "fitted" if method == "auto" else method


def check_statistics(
    method: StatisticsMethod, scoring: Scoring, mode: Mode, *, evalue: float | None, dbsize: int | None
) -> None:
    """Raise unless the method can be used here, and gives E-values where an option needs them."""
    if method == "published" and published_statistics(scoring, mode) is None:
        reason = (
            why_no_statistics(scoring, mode).removeprefix("no E-values: ").removesuffix("; hits are ranked by score")
        )
        raise InputError(f"statistics: {reason}; use 'auto' or 'fitted'")
    for name, value in (("evalue", evalue), ("dbsize", dbsize)):
        if method == "none" and value is not None:
            raise OptionError(name, value, "none with statistics 'none'", "leave one of them out")


def no_evalue_message(problem: str = "") -> str:
    """Return why a result has no E-values; ``problem`` is empty if none were requested."""
    return f"no E-values: {problem or 'none were asked for'}; hits are ranked by score"


@dataclass(frozen=True, eq=False)
class HitStatistics:
    """Bit scores, E-values and z-scores of hits, as columns.

    Parameters
    ----------
    bit_scores, evalues, z_scores, evalues_published : ndarray, shape (n,), float64
        As of a `Hit`; NaN where there is none.
    """

    bit_scores: FloatArray
    evalues: FloatArray
    z_scores: FloatArray
    evalues_published: FloatArray

    def __len__(self) -> int:
        return len(self.evalues)

    def take(self, rows: slice | IntArray) -> HitStatistics:
        """Return the numbers of some rows, shape (m,)."""
        return HitStatistics(*(values[rows] for values in self._columns))

    @property
    def _columns(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.bit_scores, self.evalues, self.z_scores, self.evalues_published

    @classmethod
    def concatenate(cls, parts: Sequence[HitStatistics]) -> HitStatistics:
        """Join the rows of several tables, at least one."""
        return cls(*(np.concatenate(columns) for columns in zip(*(each._columns for each in parts), strict=True)))

    @cached_property
    def optional(self) -> tuple[list[float | None], ...]:
        """The four columns as lists, None where there is no number."""
        return tuple(optional(values) for values in self._columns)


def optional(values: FloatArray) -> list[float | None]:
    """Return numbers, shape (n,), as a list, None for NaN."""
    items: list[float | None] = values.tolist()
    missing = np.isnan(values)
    if missing.all():
        return [None] * len(items)
    for place in np.flatnonzero(missing).tolist():
        items[place] = None
    return items


def hit_statistics_arrays(
    statistics: Statistics | PairNullModels | None,
    published: KarlinAltschul | None,
    scores: npt.NDArray[np.integer],
    query_length: int,
    subject_lengths: npt.NDArray[np.integer],
    database_residues: int,
    known_evalues: FloatArray | None = None,
) -> HitStatistics:
    """Compute the numbers of some hits of a query.

    Parameters
    ----------
    statistics : Statistics, PairNullModels or None
        What is in force: one for all of the query's hits, or a null for each.
    scores : ndarray, shape (n_hits,), integer
        Raw scores, matrix units.
    query_length : int
        Residues.
    subject_lengths : ndarray, shape (n_hits,), integer
        Residues of each hit's subject.
    database_residues : int
        Residues that E-values refer to.
    known_evalues : ndarray, shape (n_hits,), float64, optional
        E-values, where they were computed before.
    """
    nothing = np.full(len(scores), np.nan)
    bits, evalues, z_scores, beside = None, known_evalues, nothing, nothing
    if isinstance(statistics, PairNullModels):
        evalues = statistics.evalues(scores, database_residues) if known_evalues is None else known_evalues
        z_scores, bits = statistics.z_scores(scores), statistics.bit_scores(scores)
    elif statistics is not None and len(scores):
        if known_evalues is None:
            evalues = statistics.evalues(scores, query_length, subject_lengths, database_residues)
        bits = statistics.bit_scores(scores, subject_lengths)
    if published is not None and len(scores):
        beside = published.evalues(scores, query_length, subject_lengths, database_residues)
    return HitStatistics(nothing if bits is None else bits, nothing if evalues is None else evalues, z_scores, beside)
