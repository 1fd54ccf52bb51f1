"""Score thresholds and ranking of a search, from options and subjects.

They do not depend on the queries, so several searches share them. They give the minimum score of a hit by subject
length, and the E-values that rank candidates. `SubjectCounts` holds the lengths, of proteins or of windows of DNA.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray, IntArray
from swsearch.inputs import check_alphabet
from swsearch.options.kinds import MAX_INTEGER
from swsearch.pipeline.filters import SubjectMask
from swsearch.pipeline.null_models import NullModelFitter
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.ranking import EvalueFunction
from swsearch.pipeline.subjects import SubjectCounts, SubjectReader, Subjects
from swsearch.recurrence import Recurrence
from swsearch.statistics.distributions import Lengths
from swsearch.statistics.karlin_altschul import KarlinAltschul, ScoreCutoffs, published_statistics
from swsearch.statistics.null_model import FitSettings, FittedStatistics

SCORES_MEMORY = 256 << 20
"""Bytes for the scores of all queries that are scored together with every subject, where all are kept."""


SAMPLE_SUBJECTS, SAMPLE_RESIDUES = 1000, 1 << 20
"""Subjects that stand for a database of structural letters, and most of their residues."""


def sample_subjects(subjects: Subjects) -> bytes:
    """Return the codes of subjects that are evenly spread over a database."""
    n = subjects.n_places
    places = np.arange(min(n, SAMPLE_SUBJECTS)) * n // max(min(n, SAMPLE_SUBJECTS), 1)
    return subjects.read_masked(places)[0][:SAMPLE_RESIDUES].tobytes()


@dataclass(frozen=True, eq=False)
class Criteria:
    """Options, thresholds and allowed subjects of a search.

    Parameters
    ----------
    options : SearchOptions
        Options of the search.
    counts : SubjectCounts
        Of the subjects.
    subject_mask : ndarray, shape (n_places,), bool, or None
        Which of what is scored may be hits.
    n_places : int
        Places that are scored.
    sample : bytes, optional
        Codes of some subjects, from which null models of structural letters come.
    """

    options: SearchOptions
    counts: SubjectCounts
    subject_mask: SubjectMask | None
    n_places: int
    sample: bytes = b""

    @classmethod
    def from_options(cls, options: SearchOptions, subjects: Subjects) -> Criteria:
        """Derive criteria from options and subjects; raise `InputError` if their alphabets differ."""
        alphabet = options.scoring.matrix.alphabet
        check_alphabet(subjects.database, alphabet)
        allowed = subjects.find_allowed(options.filters)
        sample = sample_subjects(subjects) if alphabet.is_structural and options.uses_fitted_statistics else b""
        return cls(options, subjects.counts, allowed, subjects.n_places, sample)

    @property
    def recurrence(self) -> Recurrence:
        """Scoring, mode and frameshift cost."""
        return self.options.recurrence

    @cached_property
    def inclusion(self) -> Criteria | None:
        """Criteria of hits for the next profile; None without iterations."""
        if not self.options.makes_profiles:
            return None
        return Criteria(self.options.inclusion_options(), self.counts, None, self.n_places)

    @property
    def statistics_method(self) -> KarlinAltschul | FitSettings | None:
        """Source of E-values."""
        return self.fit or self.options.published

    def null_model_fitter(self, threads: int) -> NullModelFitter | None:
        """Return the maker of nulls, for fitted statistics."""
        return None if self.fit is None else NullModelFitter(self.fit, self.recurrence, threads, self.sample)

    @cached_property
    def selection_options(self) -> SearchOptions:
        """The options by which places are selected: all windows of DNA are kept that may hold a hit."""
        return replace(self.options, max_hits=MAX_INTEGER) if self.counts.are_windows else self.options

    @property
    def max_queries(self) -> int | None:
        """Queries that are scored together at most, where every place may have to be kept for each."""
        if self.options.distribution:
            each = 8  # two int32: of the engine, and while it counts
        elif self.options.filters.needs_alignments or self.counts.are_windows:
            each = 16  # score and place
        else:
            return None
        return max(1, SCORES_MEMORY // (each * max(1, self.n_places)))

    @property
    def effective_residues(self) -> int:
        """Residues that E-values refer to."""
        return self.options.dbsize or (
            self.counts.residues if self.options.uses_fitted_statistics else self.counts.published_residues
        )

    @property
    def published_residues(self) -> int:
        """Residues that published E-values beside fitted ones refer to."""
        return self.options.dbsize or self.counts.published_residues

    @cached_property
    def published(self) -> KarlinAltschul | None:
        """Published statistics, which are reported beside fitted E-values where they exist."""
        options = self.options
        if not options.uses_fitted_statistics or options.frame_shift is not None:
            return None  # constants are of alignments without shifts
        return published_statistics(options.scoring, options.mode)

    @cached_property
    def fit(self) -> FitSettings | None:
        """Parameters of fitted statistics; None for other methods."""
        options, counts = self.options, self.counts
        if not options.uses_fitted_statistics:
            return None
        return FitSettings(
            options.mode, options.scoring.gap_extend, counts.n_subjects, counts.residues, options.n_frames,
            options.scoring.matrix.alphabet.is_structural,
        )  # fmt: skip

    @property
    def min_score(self) -> int:
        """Minimum score of a hit, without an E-value threshold.

        A global alignment is a hit with any score. In the other modes nothing aligned scores 0, and is no hit.
        """
        return int(np.iinfo(np.int32).min) if self.options.mode == "global" else 1

    def lengths_of(self, subjects: SubjectReader, places: IntArray) -> IntArray:
        """Return the subject lengths that the statistics in force use, shape (n,), int64."""
        return (
            subjects.lengths_of(places)
            if self.options.uses_fitted_statistics
            else subjects.published_lengths_of(places)
        )

    def evalue_function(self, query_length: int, null: FittedStatistics | None = None) -> EvalueFunction | None:
        """Return the E-values that candidates of a query are ranked by; None where scores rank them.

        Scores rank windows of DNA: E-values are of what is located in them.
        """
        if self.options.sort == "score" or not query_length or self.counts.are_windows:
            return None
        if null is not None:
            return self._evalue_function_by(null)
        by_length = self._cutoffs_by_length
        if by_length is None:
            return None
        return EvalueFunction(
            lambda scores, lengths: by_length.evalues(scores, query_length, lengths),
            lambda evalue, shortest, longest: by_length.min_score(evalue, query_length, shortest, longest),
        )

    def _evalue_function_by(self, null: FittedStatistics) -> EvalueFunction:
        residues = self.effective_residues

        def lowest(evalue: float, shortest: int, longest: int) -> int:
            min_scores = null.min_scores(evalue, self._lengths, residues)
            if min_scores is None:
                return int(np.iinfo(np.int32).min)
            first, last = np.searchsorted(self._lengths.distinct, (shortest, longest + 1)).tolist()
            return int(max(min_scores[first:last].min(), np.iinfo(np.int32).min))

        return EvalueFunction(
            lambda scores, lengths: null.evalues(scores, null.query_length, lengths, residues), lowest
        )

    def score_thresholds(self, query_length: int, null: FittedStatistics | None = None) -> IntArray:
        """Tabulate the least score of a hit, exactly where statistics are published; of a candidate, given a null.

        Returns
        -------
        ndarray, shape (longest subject + 1,), int64
            By subject length, matrix units.
        """
        lengths, statistics, threshold = self.lengths, self.options.published, self.options.evalue_threshold
        longest = int(lengths[-1]) if len(lengths) else 0
        thresholds = np.full(longest + 1, self.min_score, dtype=np.int64)
        if statistics is not None and threshold is not None and query_length:
            assert self._cutoffs_by_length is not None
            thresholds[lengths] = self._cutoffs_by_length.by_length(threshold, query_length)
        if null is not None and threshold is not None:
            min_scores = null.min_scores(threshold, self._lengths, self.effective_residues)
            if min_scores is not None:
                thresholds[lengths] = np.maximum(thresholds[lengths], min_scores)
                thresholds[0] = np.iinfo(np.int32).max  # no score is larger
        if self.options.filters.min_score is not None:
            np.maximum(thresholds, self.options.filters.min_score, out=thresholds)
        return thresholds

    def engine_thresholds(self, query_length: int, null: FittedStatistics | None = None) -> IntArray | None:
        """Return the least score by length of what engines score; None where every subject is a hit.

        Returns
        -------
        ndarray, shape (longest scored + 1,), int64, or None
            Matrix units. All windows of DNA have that of the length that takes least.
        """
        if self.counts.are_windows:
            by_length = self.score_thresholds(query_length, null)[self.lengths]
            min_score = int(by_length.min()) if len(by_length) else self.min_score
            return np.full(self.counts.longest + 1, min_score, dtype=np.int64)
        options = self.options
        has_limit = options.published is not None or options.filters.min_score is not None or null is not None
        return self.score_thresholds(query_length, null) if has_limit or options.mode != "global" else None

    def evalues(
        self, query_length: int, null: FittedStatistics | None, scores: IntArray, lengths: IntArray
    ) -> FloatArray | None:
        """Return E-values of scores with subjects of these lengths, each of shape (n,); a null gives lower bounds."""
        if null is not None:
            return null.evalues(scores, query_length, lengths, self.effective_residues)
        statistics = self.options.published
        if statistics is None or not query_length:
            return None
        return statistics.evalues(scores, query_length, lengths, self.effective_residues)

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Every subject length that the statistics in force use, shape (n,), ascending, without 0."""
        return self.counts.lengths if self.options.uses_fitted_statistics else self.counts.published_lengths

    @cached_property
    def _lengths(self) -> Lengths:
        return Lengths(self.lengths)

    @cached_property
    def _cutoffs_by_length(self) -> ScoreCutoffs | None:
        statistics = self.options.published
        return ScoreCutoffs(statistics, self.lengths, self.effective_residues) if statistics else None
