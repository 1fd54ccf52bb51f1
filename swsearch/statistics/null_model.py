"""E-values from shuffled and reversed copies of each subject.

Published constants describe the average protein. A distribution fitted to the scores of the database takes a large
family of homologs for chance hits. Copies of a subject with its residues shuffled, or in reverse order, have its
composition and no homologs, and they depend on nothing else: a pair has the same E-value in every database of the
same size and on every engine. Shuffled copies are the null model of PRSS (Pearson and Lipman, PNAS 85:2444, 1988),
the reversed sequence is that of SAM (Karplus, Karchin, Shackelford and Hughey, Bioinformatics 21:4107, 2005).

The null model has two parts:

- `FittedStatistics` belongs to a query: mean and variance of its scores with a fixed panel of random sequences of
  several lengths (`swsearch.statistics.random_panel`), as functions of log length. The panel costs as much as a
  database of 300,000 residues. Subjects whose E-value by it is small enough are candidates.
- `PairNullModels` belong to the candidates. The chance level of a pair is the mean score of the query with shuffled
  copies of the subject, raised where the reversed subject scores far more. Shuffling keeps the composition of each
  stretch; reversal also keeps periodic patterns, such as the heptads of coiled coils and the triplets of collagen.
  Where the chance level is above the panel's mean, it raises the mean of the null. `mean_shift` says by how much:
  differences within the noise of few copies hardly count, because they would change the order of hits and lose
  homologs (SCOPe). So copies only make E-values larger. The variance is always the panel's, without noise of copies.

Letters of structure have runs, which shuffling destroys: pieces of the database backwards are their panel, and the
level of a pair is the score of the reversed subject, if that is more (``benchmarks/results/structural.txt``).

Scores follow a Gumbel distribution in local and semi-global mode, and in global mode Pearson's type III with the
panel's skewness, about a third (``benchmarks/results/calibration.txt``). Only whole numbers are summed, and
`swsearch.statistics.portable_math` does the rest, so that a null model is the same to the bit everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray
from swsearch.options.kinds import Mode
from swsearch.statistics import portable_math
from swsearch.statistics.distributions import (
    EULER,
    MAX_SHAPE,
    Distribution,
    Gumbel,
    Lengths,
    PearsonThree,
    PiecewiseLinear,
    line_on,
    log_of,
)
from swsearch.statistics.random_panel import COPIES


@dataclass(frozen=True)
class VarianceModel:
    """Factors for the panel's variances and a pair's mean, chosen for each mode by the number of chance hits.

    Parameters
    ----------
    base : float
        Variance of chance scores over the panel's: above 1, because subjects differ more than random sequences.
    short : float
        The variance is divided by the square of 1 + ``short`` / query length: a short query leaves no room for a long
        tail.
    full : float
        Standard deviations above the panel's from which a pair's mean counts in full.
    """

    base: float
    short: float
    full: float

    def share(self, query_length: int) -> float:
        """Return the variance over the panel's."""
        tail = 1.0 + self.short / max(query_length, 1)
        return self.base / (tail * tail)


SPREADS: dict[Mode, VarianceModel] = {
    "local": VarianceModel(1.28, 2.2, 3.0),
    "global": VarianceModel(1.18, 0.0, 2.0),
    "semiglobal": VarianceModel(1.37, 6.0, 0.0),
}
"""Chosen with shuffled, reversed, biased, long and short queries that the benchmarks do not use, and in local mode
with SCOPe's domains: ``full`` of 0, 2, 3 and 4 finds 0.21, 0.32, 0.39 and 0.41 percentage points more relatives
before the first wrong hit than published statistics do; 4 has more chance hits of queries of biased composition."""

MIN_VARIANCE = 1 / 12
"""Variance that comes from rounding to whole numbers alone; scores that vary less do not vary at all."""

REVERSED_FULL, REVERSED_POWER = 5.0, 4
"""Standard deviations above the shuffled copies from which the score of a reversed subject is the chance level, and
the power by which less counts (`mean_shift`): it is one score, which varies more than a mean. Chosen with coiled
coils and with SCOPe's domains: a ``full`` of 4 or a power of 2 loses 0.1 to 0.2 percentage points of the
relatives."""

SMOOTHINGS = 2
"""Number of times that variances are averaged with those of neighbouring lengths.
Variances change slowly, and a few dozen random sequences of each length estimate them with errors of 10 %."""

MIN_SHAPE = 9
"""Least shape of Pearson's type III: a skewness of two thirds, which only very short queries come near."""

TYPICAL_SKEW, TYPICAL_SCORES = 1 / 3, 500
"""Skewness of global scores that is assumed before a panel is scored, and for how many scores that stands."""

LIKELY = 0.4
"""Probability from which every score counts as reaching it: less than the average has in any distribution."""

NO_BOUND = 1.0
"""No bound on the probability of a hit by chance; see `PairNullModels`."""

DOUBTED = 1e-20
"""Probability by its null from which an identical subject has its bound instead: no sequence would be lost before."""

PROBABILITIES_PER_BATCH = 1 << 15
"""Pairs whose probabilities are computed at a time: arrays that stay near the processor."""


@dataclass(frozen=True)
class FitSettings:
    """Parameters of a search's fitted statistics, for all queries.

    Parameters
    ----------
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    gap_extend : int
        In global mode, the least cost of each residue by which one sequence is longer.
    n_subjects, residues : int
        The database: subjects that have residues, and these.
    frames : int
        Frames of a DNA query, each of which is searched with: so many times as many chance hits it has.
    is_reversed : bool
        Whether nulls come from reversed sequences alone, as of letters of structure.
    """

    mode: Mode
    gap_extend: int
    n_subjects: int
    residues: int
    frames: int = 1
    is_reversed: bool = False

    @property
    def name(self) -> str:
        """Name in outputs."""
        shape: Distribution = PearsonThree(1) if self.mode == "global" else Gumbel()
        kind = "reversed" if self.is_reversed else "shuffled"
        return f"{shape.name} fitted to scores with {kind} copies of each subject"

    def subjects(self, database_residues: int) -> float:
        """Return the number of subjects in a database of some residues, times the number of frames."""
        return self.n_subjects * (database_residues / max(self.residues, 1)) * self.frames


@dataclass(frozen=True)
class FittedStatistics:
    """The null of a query: its scores with random sequences of every length. `fit_panel` makes it.

    Parameters
    ----------
    fit : FitSettings
        The search.
    query_length : int
        Residues.
    lengths : tuple of int
        Of the random sequences, in residues, ascending: knots between which lines are straight in log length.
    means, variances : tuple of float
        Of chance scores at these lengths, matrix units; in global mode of scores without the cost of the difference
        in length.
    distribution : Distribution
        What scores are held to.
    """

    fit: FitSettings
    query_length: int
    lengths: tuple[int, ...]
    means: tuple[float, ...]
    variances: tuple[float, ...]
    distribution: Distribution

    @property
    def name(self) -> str:
        """Name in outputs."""
        return self.fit.name

    def evalues(
        self, scores: npt.ArrayLike, query_length: int, subject_lengths: npt.ArrayLike, database_residues: int
    ) -> FloatArray:
        """Compute the number of chance hits at least as good, of subjects that are like random sequences.

        Parameters are those of `swsearch.statistics.karlin_altschul.KarlinAltschul.evalues`; the query's length is
        that of the fit. Hits have the E-values of `PairNullModels`, which are not smaller.

        Returns
        -------
        ndarray, shape (n,), float64
            The number of subjects for an empty one, of which the panel says nothing.
        """
        n = np.asarray(subject_lengths, dtype=np.int64)
        survival = np.where(n > 0, self.survival(scores, *self.moments(n)), 1.0)
        return self.fit.subjects(database_residues) * survival

    def survival(self, scores: npt.ArrayLike, means: FloatArray, variances: FloatArray) -> FloatArray:
        """Return the probabilities of scores at least as high, given what `moments` returns; all of one shape."""
        z = (np.asarray(scores, dtype=np.float64) - 0.5 - means) / np.sqrt(variances)
        return self.distribution.survival(z)

    def bit_scores(self, scores: npt.ArrayLike, subject_lengths: npt.ArrayLike) -> FloatArray | None:
        """Return None, whatever the arrays, shape (n,): bits belong to a pair, see `PairNullModels.bit_scores`."""
        return None

    def moments(self, subject_lengths: npt.NDArray[np.integer]) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of scores with random sequences, two of shape (n,), float64, matrix units.

        Parameters
        ----------
        subject_lengths : ndarray, shape (n,), integer
            Residues.
        """
        return self._on(PiecewiseLinear(subject_lengths, self.lengths), subject_lengths)

    def min_scores(self, evalue: float, lengths: Lengths, database_residues: int) -> IntArray | None:
        """Bound from below the scores for which `evalues` are at most ``evalue``, by subject length.

        Returns
        -------
        ndarray, shape (n_distinct_lengths,), int64, or None
            At most two less than the least such score; None where everything better than average has such an E-value.
            If it does not, neither has a subject without residues, whose E-value is the number of subjects.
        """
        probability = max(evalue / max(self.fit.subjects(database_residues), 1e-300), 1e-300)
        if probability >= LIKELY:
            return None
        means, variances = self._on(line_on(lengths, self.lengths), lengths.distinct)
        return np.floor(means + self.distribution.upper(probability) * np.sqrt(variances)).astype(np.int64)

    def _on(self, line: PiecewiseLinear, lengths: npt.NDArray[np.integer]) -> tuple[FloatArray, FloatArray]:
        means = line.at(np.array(self.means), beyond=True) - self._known(lengths)
        return means, np.maximum(line.at(np.array(self.variances), beyond=False), MIN_VARIANCE)

    def _known(self, lengths: npt.NDArray[np.integer]) -> IntArray:
        """Return the known part of a score: in global mode, the cost of the length difference."""
        return _length_cost(self.fit, self.query_length, lengths)

    def parameters(self) -> dict[str, Any]:
        """Return the null as plain values: mean and standard deviation at the lengths of the random sequences."""
        means, variances = self.moments(np.array(self.lengths))
        knots = [
            {"length": length, "mean": mean, "standard_deviation": math.sqrt(variance)}
            for length, mean, variance in zip(self.lengths, means.tolist(), variances.tolist(), strict=True)
        ]
        return {"distribution": self.distribution.name, "by_length": knots}

    def describe(self) -> str:
        """Return one line about the null, with its values at the query's own length."""
        mean, variance = (float(values[0]) for values in self.moments(np.array([self.query_length])))
        return (
            f"random sequences of the query's length score {mean:.1f} on average, standard deviation "
            f"{math.sqrt(variance):.1f}"
        )


def mean_shift(above: FloatArray, full: float, power: int = 2) -> FloatArray:
    """Return by how much a level rises, shape (n,), in standard deviations, towards a score that is so much above it.

    It is nothing below 0, ``full`` times (above / full)**power up to ``full``, and then all of it.
    """
    return np.maximum(above, 0.0) * _share(above, full, power)


def _slope(above: FloatArray, full: float, power: int = 2) -> FloatArray:
    """Return the derivative of `mean_shift`, shape (n,), but at most 1."""
    return np.minimum(power * _share(above, full, power), 1.0)


def _share(above: FloatArray, full: float, power: int) -> FloatArray:
    """Return (above / full)**(power - 1), from 0 to 1, by products: powers differ in the last bit by machine."""
    base = np.clip(above / max(full, 1e-9), 0.0, 1.0)
    share = base
    for _ in range(power - 2):
        share = share * base
    return share


@dataclass(frozen=True, eq=False)
class PairNullModels:
    """Null models of pairs of one query with subjects.

    Parameters
    ----------
    statistics : FittedStatistics
        The query's.
    lengths : ndarray, shape (n,), int64
        Residues of the subjects.
    levels : ndarray, shape (n,), float64
        Chance level of each pair, from copies of the subject (`with_copies`), matrix units.
    bounds : ndarray, shape (n,), float64
        Bounds on the probability of a hit by chance, for those above `DOUBTED`: of a subject that is identical to the
        query, the probability that random residues are; of others, `NO_BOUND`. What is identical is the best hit,
        also where every shuffled copy is, too, as of a run of one residue: its null is the panel's.
    """

    statistics: FittedStatistics
    lengths: IntArray
    levels: FloatArray
    bounds: FloatArray
    means: FloatArray = field(init=False)
    variances: FloatArray = field(init=False)
    _usual: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._set(*self.statistics.moments(self.lengths))

    def _set(self, usual: FloatArray, variances: FloatArray, means: FloatArray | None = None) -> PairNullModels:
        """Store the panel's means and variances; compute the pairs' means unless they are given."""
        if means is None:
            deviations = np.sqrt(variances)
            raised = usual + deviations * mean_shift((self.levels - usual) / deviations, self._full)
            means = np.where(self.bounds < NO_BOUND, usual, raised)  # shuffled copies of the query itself are like it
        for name, values in (("means", means), ("variances", variances), ("_usual", usual)):
            object.__setattr__(self, name, values)
        return self

    @classmethod
    def _incomplete(
        cls, statistics: FittedStatistics, lengths: IntArray, levels: FloatArray, bounds: FloatArray
    ) -> PairNullModels:
        """Create an instance without means and variances, which `_set` stores."""
        new = cls.__new__(cls)
        fields = {"statistics": statistics, "lengths": lengths, "levels": levels, "bounds": bounds}
        for name, value in fields.items():
            object.__setattr__(new, name, value)
        return new

    @classmethod
    def concatenate(cls, statistics: FittedStatistics, parts: Sequence[PairNullModels]) -> PairNullModels:
        """Put nulls of pairs of one query one after the other."""
        if len(parts) == 1:
            return parts[0]
        nothing = cls(statistics, np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
        all_parts = parts or [nothing]

        def together(name: str) -> npt.NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in all_parts])

        new = cls._incomplete(statistics, together("lengths"), together("levels"), together("bounds"))
        return new._set(together("_usual"), together("variances"), together("means"))

    def with_copies(self, shuffled: FloatArray, reversed_: IntArray) -> PairNullModels:
        """Return the null models of the same pairs by the scores of copies, matrix units.

        Parameters
        ----------
        shuffled : ndarray, shape (n,), float64
            Mean scores with shuffled copies.
        reversed_ : ndarray, shape (n,), int64
            Scores with the reversed subjects.
        """
        deviations = np.sqrt(self.variances)
        levels = shuffled + deviations * mean_shift(
            (reversed_ - shuffled) / deviations, REVERSED_FULL, REVERSED_POWER
        )
        return self._incomplete(self.statistics, self.lengths, levels, self.bounds)._set(self._usual, self.variances)

    def with_reversed(self, reversed_: IntArray) -> PairNullModels:
        """Return the null models of the same pairs by the scores with reversed subjects alone, shape (n,), int64."""
        levels = np.maximum(self._usual, reversed_)
        return self._incomplete(self.statistics, self.lengths, levels, self.bounds)._set(self._usual, self.variances)

    def errors(self, shuffled: FloatArray, reversed_: IntArray, n_copies: int) -> FloatArray:
        """Estimate the errors of the means that come from taking few shuffled copies, in standard deviations.

        Parameters
        ----------
        shuffled, reversed_ : ndarray, shape (n,)
            As for `with_copies`, which made these.

        Returns
        -------
        ndarray, shape (n,), float64
            0 where the mean does not follow the copies.
        """
        deviations, error = np.sqrt(self.variances), 1.0 / math.sqrt(n_copies)
        slopes = _slope((self.levels - self._usual) / deviations + error, self._full)
        slope_left = 1.0 - _slope((reversed_ - shuffled) / deviations - error / 2, REVERSED_FULL, REVERSED_POWER)
        return error * slopes * slope_left

    @property
    def _full(self) -> float:
        return 0.0 if self.statistics.fit.is_reversed else SPREADS[self.statistics.fit.mode].full

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, chosen: slice | npt.NDArray[Any]) -> PairNullModels:
        new = self._incomplete(self.statistics, self.lengths[chosen], self.levels[chosen], self.bounds[chosen])
        return new._set(self._usual[chosen], self.variances[chosen], self.means[chosen])

    def for_hsps(self, rows: IntArray) -> PairNullModels:
        """Return the nulls of alignments that are not their pairs' best; ``rows`` has shape (n,), int64."""
        return PairNullModels(self.statistics, self.lengths[rows], self.levels[rows], np.full(len(rows), NO_BOUND))

    def probabilities(self, scores: npt.ArrayLike) -> FloatArray:
        """Compute the probabilities that one chance pair scores as much; each score, shape (n,), with its null.

        Scores are whole numbers, so the probability is taken half a unit below.

        Returns
        -------
        ndarray, shape (n,), float64
        """
        (probabilities,) = probabilities_of([self], [scores])
        return probabilities

    def evalues(self, scores: npt.ArrayLike, database_residues: int) -> FloatArray:
        """Compute the expected number of chance hits at least as good; each score, shape (n,), with its null.

        Returns
        -------
        ndarray, shape (n,), float64
            The number of subjects, of a database of so many residues, times `probabilities`.
        """
        return self.statistics.fit.subjects(database_residues) * self.probabilities(scores)

    def z_scores(self, scores: npt.ArrayLike) -> FloatArray:
        """Count the standard deviations between scores, shape (n,), and the means of their nulls."""
        return (np.asarray(scores, dtype=np.float64) - self.means) / np.sqrt(self.variances)

    def bit_scores(self, scores: npt.ArrayLike) -> FloatArray | None:
        """Normalise raw scores of local mode, shape (n,), in bits; None in the other modes, where they mean nothing.

        They are (lambda * score - ln K) / ln 2 with the lambda and K that the pair's Gumbel distribution amounts to:
        where the E-value is small, it is the number of subjects times the lengths of query and subject times
        2**-bits.

        Returns
        -------
        ndarray, shape (n,), float64, or None
        """
        if self.statistics.fit.mode != "local":
            return None
        lambda_ = math.pi / np.sqrt(6 * self.variances)
        log_area = log_of(np.array([self.statistics.query_length])) + log_of(self.lengths)
        log_k = lambda_ * (self.means + 0.5) - EULER - log_area
        return (lambda_ * np.asarray(scores, dtype=np.float64) - log_k) / portable_math.LN2

    def min_scores(self, evalue: float, database_residues: int) -> IntArray:
        """Bound from below the scores that have an E-value of at most ``evalue``, shape (n,), int64."""
        subjects = max(self.statistics.fit.subjects(database_residues), 1e-300)
        probability = max(evalue / subjects, 1e-300)
        if probability >= LIKELY:
            return np.full(len(self), np.iinfo(np.int64).min)
        reach = self.statistics.distribution.upper(probability) * np.sqrt(self.variances)
        return np.floor(self.means + reach).astype(np.int64)


def probabilities_of(pairs: Sequence[PairNullModels], scores: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """Compute `PairNullModels.probabilities` of several queries' pairs, which takes as long as of one's.

    Parameters
    ----------
    scores : sequence of array_like, shape (n,)
        Of each query's pairs, matrix units.

    Returns
    -------
    list of ndarray, shape (n,), float64
    """
    z = [
        (np.asarray(of_query, dtype=np.float64) - 0.5 - each.means) / np.sqrt(each.variances)
        for each, of_query in zip(pairs, scores, strict=True)
    ]
    probabilities: list[FloatArray] = [*z]
    places: dict[Distribution, list[int]] = {}
    for place, each in enumerate(pairs):
        places.setdefault(each.statistics.distribution, []).append(place)
    for distribution, alike in places.items():
        chance = _survival(distribution, np.concatenate([z[place] for place in alike]))
        ends = np.cumsum([len(z[place]) for place in alike])
        for place, part in zip(alike, np.split(chance, ends[:-1]), strict=True):
            probabilities[place] = np.where(part > DOUBTED, np.minimum(part, pairs[place].bounds), part)
    return probabilities


def _survival(distribution: Distribution, z: FloatArray) -> FloatArray:
    """Return the probabilities of at least ``z``, shape (n,): some at a time, since it takes ten arrays as large."""
    parts = [
        distribution.survival(z[begin : begin + PROBABILITIES_PER_BATCH])
        for begin in range(0, len(z), PROBABILITIES_PER_BATCH)
    ]
    return np.concatenate([np.empty(0), *parts])


def fit_panel(
    fit: FitSettings, query_length: int, lengths: tuple[int, ...], scores: Sequence[npt.NDArray[np.int64]]
) -> FittedStatistics:
    """Make a query's null of its scores with a panel.

    Parameters
    ----------
    query_length : int
        Residues, at least 1.
    lengths : tuple of int
        Of the random sequences, in residues, ascending.
    scores : sequence of ndarray, shape (n_sequences, COPIES), int64
        Exact scores with the shuffled copies of the sequences of each length, matrix units.

    Returns
    -------
    FittedStatistics
        Means are those of all scores of a length; variances come from those of the copies of one sequence around its
        mean, since random sequences differ in composition too.
    """
    (fitted,) = fit_panels(fit, [query_length], lengths, [each[None] for each in scores])
    return fitted


def fit_panels(
    fit: FitSettings,
    query_lengths: Sequence[int],
    lengths: tuple[int, ...],
    scores: Sequence[npt.NDArray[np.integer]],
) -> list[FittedStatistics]:
    """Make the nulls of several queries of their scores with the same panel, as `fit_panel` does for one.

    Parameters
    ----------
    query_lengths : sequence of int
        Residues, at least 1.
    lengths : tuple of int
        Of the random sequences, in residues, ascending.
    scores : sequence of ndarray, shape (n_queries, n_sequences, COPIES), integer
        For each length; see `fit_panel`.
    """
    weights = [float(of_length[0].size) for of_length in scores]
    fitted = []
    for query_length, means, variances, skews in zip(query_lengths, *_moments(scores), strict=True):
        share = SPREADS[fit.mode].share(query_length)
        length_costs = _length_cost(fit, query_length, np.array(lengths))
        adjusted = tuple(mean + float(cost) for mean, cost in zip(means, length_costs.tolist(), strict=True))
        spread = tuple(share * variance for variance in _smooth(variances, weights))
        distribution = _distribution(fit.mode, skews, weights)
        fitted.append(FittedStatistics(fit, query_length, lengths, adjusted, spread, distribution))
    return fitted


def _moments(scores: Sequence[npt.NDArray[np.integer]]) -> tuple[list[list[float]], ...]:
    """Return each query's means, variances and skewnesses of scores with the sequences of each length.

    Scores have shape (n_queries, n_sequences, COPIES); sums of whole numbers are exact, those of cubes too.
    """
    whole = np.concatenate(scores, axis=1).astype(np.int64)
    sizes = np.array([of_length.shape[1] for of_length in scores])
    n, firsts = (sizes * COPIES).astype(np.float64), np.cumsum(sizes) - sizes

    def of_lengths(sums: IntArray) -> FloatArray:
        return np.add.reduceat(sums, firsts, axis=1).astype(np.float64)

    centred = whole - whole[:, :, :1]
    square = centred * centred
    one, two, three = centred.sum(axis=2), square.sum(axis=2), (square * centred).sum(axis=2)
    squares = of_lengths(COPIES * two - one * one)
    variances = np.maximum(squares / (n * (COPIES - 1)), MIN_VARIANCE)
    cubes = of_lengths(COPIES**2 * three - 3 * COPIES * one * two + 2 * one**3)
    thirds = cubes / (n * (COPIES - 1) * (COPIES - 2))
    means = of_lengths(whole.sum(axis=2)) / n
    skews = thirds / (variances * np.sqrt(variances))
    return means.tolist(), variances.tolist(), skews.tolist()


def _length_cost(fit: FitSettings, query_length: int, lengths: npt.NDArray[np.integer]) -> IntArray:
    """Return the least cost of the difference in length, in global mode; nothing in the others."""
    if fit.mode != "global":
        return np.zeros(len(lengths), dtype=np.int64)
    return fit.gap_extend * np.abs(lengths.astype(np.int64) - query_length)


def _smooth(values: list[float], weights: list[float]) -> tuple[float, ...]:
    """Average each value but the first with its neighbours, `SMOOTHINGS` times, with weights of 2 and 1."""
    smoothed = list(values)
    for _ in range(SMOOTHINGS):
        weighted = list(zip(weights, smoothed, strict=True))
        for k in range(1, len(weighted)):
            near = [weighted[k - 1], weighted[k], weighted[k], *weighted[k + 1 : k + 2]]
            smoothed[k] = sum(weight * each for weight, each in near) / sum(weight for weight, _ in near)
    return tuple(smoothed)


def _distribution(mode: Mode, skews: list[float], weights: list[float]) -> Distribution:
    """Return what scores are held to: in global mode the shape comes from the skewness, pooled over all lengths."""
    if mode != "global":
        return Gumbel()
    total = sum(weight * each for weight, each in zip(weights, skews, strict=True)) + TYPICAL_SCORES * TYPICAL_SKEW
    skew = total / (sum(weights) + TYPICAL_SCORES)
    shape = round(4.0 / (skew * skew)) if skew > 0.01 else MAX_SHAPE
    return PearsonThree(min(max(shape, MIN_SHAPE), MAX_SHAPE))
