"""E-values from the scores themselves: a distribution fitted to a query's scores with the whole database.

For most matrices and gap costs, and for global and semi-global alignment, there are no published constants, but a
search knows every subject's exact score. As ssearch36, ggsearch36 and glsearch36 do (Pearson, J. Mol. Biol. 276:71,
1998), the mean and the variance of unrelated subjects' scores are found as functions of log subject length,
relatives of the query are left out by iteration, and a score's distance from the mean, in standard deviations, is
its z-score. What z-scores are held to was chosen by measurement (``benchmarks/results/fitted_statistics.txt`` and
``calibration.txt``), and but for local mode the mean is a broken line, not a straight one as in those programs: a
global score falls on either side of the query's length.

- local: a Gumbel distribution whose mean grows in proportion to log length, as theory has it. Scores of short
  subjects vary less but their tail falls no faster, and a variance that was measured at few subjects is mostly noise,
  which would put some that are no relatives ahead: the variance of a length counts where it is above that of all.
  Mean and variance are found by regression, and not lambda and K by maximum likelihood, which takes all subjects for
  alike but for their length and lets several times as many chance hits have a small E-value (``calibration.txt``).
  High scores with subjects of like composition weigh more in a variance;
- semi-global, all four ends free: the best of many short overlaps, a Gumbel distribution;
- global: Student's t with 31 degrees of freedom. With the normal distribution, ggsearch36's, three times as many
  chance hits as it says have E <= 1, and seven times as many E <= 0.1, among 20,000 subjects: the variance depends on
  the subject's composition too. For queries under 40 residues even Student's t says two to five times too little.

Only counts and sums of whole numbers enter, in the order of the input, so the fit is the same for every engine, chunk
size and number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray
from swsearch.scoring import Mode
from swsearch.statistics import functions
from swsearch.statistics.distributions import EULER, Distribution, Gumbel, StudentT
from swsearch.statistics.regression import BrokenLine, Lengths, Sample

DISTRIBUTIONS: dict[Mode, Distribution] = {"local": Gumbel(), "global": StudentT(31), "semiglobal": Gumbel()}
"""What z-scores are held to."""

STEPS: dict[Mode, float] = {"local": 0.5, "global": 0.15, "semiglobal": 0.5}
"""Distance of the broken line's knots, in log length. The mean of global scores turns within a few tenths of the
query's length, where there always is a knot. That of semi-global scores hardly depends on length and that of local
scores is straight, so there the knots serve the variance."""

LEAST_SUBJECTS = 500
"""Subjects with residues that a fit takes. With 500, one search in a hundred has a chance hit of E <= 0.01 in global
mode, as it should be (the pieces of ``benchmarks/statistics/fitted_statistics.py``); with pieces of 200 it was one in
five."""

LEAST_BETWEEN = 50
"""Subjects between two knots; with fewer, knots are left out."""

OUTLIER = 0.1
"""A subject is left out of the fit if at most so many scores as extreme as its own are expected in the database."""

MOST_OUTLIERS = 0.2
"""Share of outliers above which there is no fit."""

LEAST_VARIANCE = 1 / 12
"""Variance that comes from rounding to whole numbers alone; scores that vary less do not vary at all."""

_ROUNDS = 20
"""Most rounds of leaving out; usually four to eight are enough."""


class FitError(ValueError):
    """The scores allow no fit; the message says why."""


@dataclass(frozen=True)
class Fit:
    """How statistics of a mode are made of a database's scores, whatever the query; `fit_scores` makes them.

    Parameters
    ----------
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    gap_extend : int
        In global mode, the least cost of each residue by which one sequence is longer.
    n_subjects, residues : int
        The database.
    """

    mode: Mode
    gap_extend: int
    n_subjects: int
    residues: int

    @property
    def distribution(self) -> Distribution:
        """What z-scores are held to."""
        return DISTRIBUTIONS[self.mode]

    @property
    def name(self) -> str:
        """As the output names it."""
        return f"{self.distribution.name} fitted to this database's {self.n_subjects:,} scores by log length"

    def adjust(self, scores: npt.ArrayLike, lengths: npt.ArrayLike, query_length: int) -> IntArray:
        """Take out what is known of a score beforehand: in global mode, the cost of the difference in length.

        Parameters
        ----------
        scores, lengths : array_like, shape (n,), integer
            Matrix units, and residues of the subjects.
        query_length : int
            Residues.

        Returns
        -------
        ndarray, shape (n,), int64
            Matrix units.
        """
        values = np.asarray(scores, dtype=np.int64)
        if self.mode != "global" or not self.gap_extend:
            return values
        difference = np.abs(np.asarray(lengths, dtype=np.int64) - query_length)
        adjusted: IntArray = values + self.gap_extend * difference
        return adjusted


@dataclass(frozen=True)
class FittedStatistics:
    """Statistics of one query's scores, fitted to them.

    Parameters
    ----------
    fit : Fit
        What they were made with.
    query_length : int
        Residues.
    n_fitted, n_outliers : int
        Subjects that were fitted, and subjects that were left out as outliers.
    log_lengths, means, variances : tuple of float
        The broken lines' knots: of scores, in global mode after `Fit.adjust`, matrix units.
    """

    fit: Fit
    query_length: int
    n_fitted: int
    n_outliers: int
    log_lengths: tuple[float, ...]
    means: tuple[float, ...]
    variances: tuple[float, ...]

    @property
    def name(self) -> str:
        """As the output names it."""
        return self.fit.name

    def bit_scores(self, scores: npt.ArrayLike, subject_lengths: npt.ArrayLike) -> FloatArray | None:
        """Normalise raw scores of local mode, in bits; None in the other modes, where lambda and K have no meaning.

        They are (lambda * score - ln K) / ln 2 with `karlin_altschul`'s lambda and K for the subject's length: where
        the E-value is small, it is the number of subjects times the lengths of query and subject times 2**-bits.

        Parameters
        ----------
        scores : array_like, shape (n,)
            Raw scores, matrix units.
        subject_lengths : array_like, shape (n,)
            Residues.

        Returns
        -------
        ndarray, shape (n,), float64, or None
            Bits.
        """
        if self.fit.mode != "local":
            return None
        lambda_, log_k = self._lambda_log_k(np.asarray(subject_lengths, dtype=np.int64))
        bits: FloatArray = (lambda_ * np.asarray(scores, dtype=np.float64) - log_k) / functions.LN2
        return bits

    def karlin_altschul(self, subject_length: int) -> tuple[float, float]:
        """Return what lambda (per matrix unit) and K would be for subjects of this length; local mode only."""
        lambda_, log_k = self._lambda_log_k(np.array([subject_length], dtype=np.int64))
        return float(lambda_[0]), float(functions.exp(log_k[0]))

    def z_scores(self, scores: npt.ArrayLike, subject_lengths: npt.ArrayLike) -> FloatArray:
        """Count the standard deviations between scores and the mean of their subjects' length.

        Parameters
        ----------
        scores : array_like, shape (n,)
            Raw scores, matrix units.
        subject_lengths : array_like, shape (n,)
            Residues.

        Returns
        -------
        ndarray, shape (n,), float64
            Minus infinity for an empty subject, about which the fit says nothing.
        """
        lengths = np.asarray(subject_lengths, dtype=np.int64)
        mean, variance = self._at(lengths)
        adjusted = self.fit.adjust(scores, lengths, self.query_length)
        return np.where(lengths > 0, (adjusted - mean) / np.sqrt(variance), -np.inf)

    def evalues(
        self,
        scores: npt.ArrayLike,
        query_length: int,
        subject_lengths: npt.ArrayLike,
        database_residues: int,
    ) -> FloatArray:
        """Compute the expected number of chance hits at least as good in z-score.

        Parameters are those of `swsearch.statistics.karlin_altschul.KarlinAltschul.evalues`; the query's length is
        that of the fit.

        Returns
        -------
        ndarray, shape (n,), float64
            Number of subjects times the probability of a z-score. Scores are whole numbers, so the probability is
            taken half a unit below.
        """
        lengths = np.asarray(subject_lengths, dtype=np.int64)
        half_unit = 0.5 / np.sqrt(self._at(lengths)[1])
        survival = self.fit.distribution.survival(self.z_scores(scores, lengths) - half_unit)
        return self._subjects(database_residues) * survival

    def least_scores(self, evalue: float, longest: int, database_residues: int) -> IntArray:
        """Bound from below the scores that have an E-value of at most ``evalue``, by subject length.

        Returns
        -------
        ndarray, shape (longest + 1,), int64
            At most two less than the least such score, so that `evalues` has to be asked too.
        """
        probability = max(evalue / self._subjects(database_residues), 1e-300)
        if probability >= 0.5:  # everything better than average
            return np.full(longest + 1, np.iinfo(np.int64).min)
        lengths = np.arange(longest + 1, dtype=np.int64)
        mean, variance = self._at(lengths)
        known = self.fit.adjust(np.zeros(longest + 1), lengths, self.query_length)
        z = self.fit.distribution.upper(probability)
        least: IntArray = np.floor(mean + z * np.sqrt(variance)).astype(np.int64) - 1 - known
        return least

    def parameters(self) -> dict[str, Any]:
        """Return what was fitted, as plain values: what ``mean`` and ``standard_deviation`` are at some lengths."""
        knots = [
            {
                "length": round(float(functions.exp(x))),
                "mean": mean - self._known(x),
                "standard_deviation": math.sqrt(variance),
            }
            for x, mean, variance in zip(self.log_lengths, self.means, self.variances, strict=True)
        ]
        if self.fit.mode == "local":
            for knot in knots:
                knot["lambda"], knot["k"] = self.karlin_altschul(int(knot["length"]))
        return {
            "distribution": self.fit.distribution.name,
            "subjects": self.n_fitted + self.n_outliers,
            "outliers": self.n_outliers,
            "by_length": knots,
        }

    def describe(self) -> str:
        """Say in a line what was fitted, at the query's own length as an example."""
        here = np.array([max(self.query_length, 1)])
        mean, variance = (float(values[0]) for values in self._at(here))
        constants = ""
        if self.fit.mode == "local":
            lambda_, k = self.karlin_altschul(int(here[0]))
            constants = f", which is lambda {lambda_:.3f} and K {k:.2g},"
        return (
            f"mean {mean:.1f}, standard deviation {math.sqrt(variance):.1f}{constants} for subjects of the query's "
            f"length, by log length at {len(self.log_lengths)} knots; {self.n_outliers:,} outliers left out"
        )

    def _lambda_log_k(self, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return lambda and log K by subject length; like E-values, they take a score half a unit below it."""
        mean, variance = self._at(lengths)
        lambda_ = math.pi / np.sqrt(6 * variance)
        log_area = float(functions.log(self.query_length)) + functions.log(np.maximum(lengths, 1))
        return lambda_, lambda_ * (mean + 0.5) - EULER - log_area

    def _known(self, log_length: float) -> int:
        return int(self.fit.adjust(0, round(float(functions.exp(log_length))), self.query_length))

    def _subjects(self, database_residues: int) -> float:
        """Return the number of subjects that a database of so many residues amounts to."""
        return (self.n_fitted + self.n_outliers) * (database_residues / self.fit.residues)

    def _at(self, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
        knots = np.array(self.log_lengths)
        line = BrokenLine(np.clip(functions.log(np.maximum(lengths, 1)), knots[0], knots[-1]), knots)
        return line.at(np.array(self.means)), line.at(np.array(self.variances))


def fit_scores(fit: Fit, query_length: int, lengths: Lengths, scores: npt.ArrayLike) -> FittedStatistics:
    """Fit mean and variance by log length to a query's scores with every subject.

    Parameters
    ----------
    fit : Fit
        What to fit.
    query_length : int
        Residues.
    lengths : Lengths
        The subjects'; empty subjects take no part.
    scores : array_like, shape (n_subjects,), int32
        Exact scores, matrix units, in input order.

    Returns
    -------
    FittedStatistics

    Raises
    ------
    FitError
        If the query is empty, subjects are too few, scores do not vary, or too many subjects are outliers.
    """
    if not query_length:
        raise FitError("the query has no residues")
    if lengths.n < LEAST_SUBJECTS:
        raise FitError(
            f"{lengths.n:,} subjects with residues are too few to fit the distribution of chance scores; that takes "
            f"{LEAST_SUBJECTS}"
        )
    sample = Sample(fit.adjust(scores, lengths.all, query_length), lengths)
    knots = lengths.knots(
        STEPS[fit.mode], LEAST_BETWEEN, float(functions.log(query_length)) if fit.mode == "global" else None
    )
    line = BrokenLine(lengths.log, knots)
    is_local = fit.mode == "local"
    mean_knots = knots[[0, -1]] if is_local and len(knots) > 1 else knots
    mean_line = BrokenLine(lengths.log, mean_knots)
    reach = fit.distribution.upper(OUTLIER / lengths.n)
    means, variances = sample.start(line)
    outliers = sample.outside(means, variances, reach)
    for _ in range(_ROUNDS):
        if len(outliers) > MOST_OUTLIERS * lengths.n:
            raise FitError(
                f"{len(outliers):,} of {lengths.n:,} subjects score as outliers, so that no distribution of chance "
                "scores can be fitted; search a database that is not mostly relatives of the query"
            )
        counts, sums, squares = sample.without(outliers)
        at_mean_knots = mean_line.fit(counts / variances, sums / variances)
        means = mean_line.at(at_mean_knots)
        spread = line.box_means(counts, squares - 2 * means * sums + counts * means**2)
        variances = line.at(spread)
        pooled = float((counts * variances).sum() / counts.sum())
        if pooled < LEAST_VARIANCE:
            raise FitError("nearly all subjects score the same")
        spread = np.maximum(spread, pooled if is_local else LEAST_VARIANCE)
        variances = line.at(spread)
        before, outliers = outliers, sample.outside(means, variances, reach)
        if np.array_equal(before, outliers):
            break
    at_knots = BrokenLine(knots, mean_knots).at(at_mean_knots)
    knot_values = (tuple(values.tolist()) for values in (knots, at_knots, spread))
    return FittedStatistics(fit, query_length, lengths.n - len(before), len(before), *knot_values)
