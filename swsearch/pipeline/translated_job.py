"""A search of DNA: its reading frames are scored in windows, and the alignments found in these are the hits.

To engines, windows are subjects like others. What is told apart here is what a hit is: not a window but an alignment,
of which a window may have several and two windows the same one (`swsearch.pipeline.loci`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN
from swsearch.blocks import FloatArray, IntArray
from swsearch.db.dna_stored import frame_lengths
from swsearch.db.framed import FramedDatabase
from swsearch.db.frames import Windows, span_bound, windows_for
from swsearch.engines.pair_base import PairAligner
from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query
from swsearch.options.numbers import MAX_INTEGER
from swsearch.pipeline.evalues import Rater
from swsearch.pipeline.filters import Allowed, allowed_subjects
from swsearch.pipeline.loci import REGION, LocatedSelection, Locator, Loci, LociAsked, LocusReader, best_loci
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pair_work import PairWork
from swsearch.pipeline.query_frames import best_of_frames, searched_queries, told_of_frames
from swsearch.pipeline.ranking import Rating
from swsearch.pipeline.scorer import Scorer
from swsearch.pipeline.search_job import SearchJob
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.thresholds import LeastScores
from swsearch.results import HitList, HitTable, Numbers, SearchResult
from swsearch.run_info import Program, RunInfo
from swsearch.scoring import Scoring
from swsearch.statistics.choice import numbers_as_arrays
from swsearch.statistics.fitted import Fit, FittedStatistics
from swsearch.translation import Frames
from swsearch.translation.frame import CODON

if TYPE_CHECKING:
    from swsearch.db import Database


def check_options(options: SearchOptions, name: str) -> None:
    """Raise `OptionError` for what a search of DNA cannot do.

    Parameters
    ----------
    options : SearchOptions
        What is asked for.
    name : str
        The database's.
    """
    what = f"{name} is a DNA database"
    if options.mode != "local":
        raise OptionError("mode", options.mode, "local", f"{what}, whose frames are only aligned locally")
    if options.subject_mask not in ("database", "none"):
        raise OptionError("subject_mask", options.subject_mask, "none", f"{what}, whose frames are not masked")
    if options.frame_shift is not None:
        raise OptionError("frame_shift", options.frame_shift, "none", f"{what}; frameshifts need protein subjects")
    if options.makes_profiles:
        why = f"cannot be combined with {options.profiles_asked}; make the profile from proteins, then search with it"
        raise InputError(f"{name}: a DNA database {why}")
    if options.distribution:
        raise OptionError("distribution", True, "False", f"{what}, which has no scores of whole subjects")


def windows_of(queries: Sequence[Query], scoring: Scoring, database: Database) -> Windows:
    """Return how to cut a database's frames so that no alignment of these queries is cut."""
    lengths = database.lengths
    longest = int(lengths.max(initial=0)) // CODON
    spans = [min(_span(query, scoring, longest), longest) for query in queries]
    return windows_for(max(spans, default=1), 2 * int(lengths.sum(dtype=np.int64)))


def _span(query: Query, scoring: Scoring, longest: int) -> int:
    """Return how many residues of a frame an alignment of a query can span at most."""
    if not len(query.codes):
        return 1
    rows = query.rows(scoring)
    best = int(np.maximum(rows.scores[:, : len(PROTEIN.letters)].max(axis=1), 0).sum(dtype=np.int64))
    opening, extending = scoring.gap_open, scoring.gap_extend
    if rows.gaps is not None:
        opening, extending = int(rows.gaps.insertion_open.min()), int(rows.gaps.insertion_extend.min())
    span = span_bound(best, len(query.codes), int(opening), int(extending))
    return longest if span is None else span


class FrameLeast(LeastScores):
    """The least scores of a hit with frames of DNA, and what E-values refer to.

    Published statistics are tblastn's: every subject has a third of its nucleotides as residues, and so has the
    database. Fitted ones count what is compared: the residues of all six frames, each once, in regions of `REGION`.

    Parameters
    ----------
    options : SearchOptions
        What is asked for.
    database : FramedDatabase
        Open.
    """

    def __init__(self, options: SearchOptions, database: FramedDatabase) -> None:
        super().__init__(options, database)
        records = database.record_lengths().astype(np.int64)
        frames = frame_lengths(records).reshape(-1)
        filled = frames[frames > 0]
        self.dna_lengths: IntArray = records
        self.nucleotides = int(records.sum())
        self.thirds = self.nucleotides // CODON
        """Residues of the database as tblastn counts them."""
        self.n_regions = max(round(float(np.maximum(filled / REGION, 1.0).sum())), 1)
        self.frame_residues = int(filled.sum())
        self.effective_residues = options.dbsize or (self.frame_residues if options.is_fitted else self.thirds)
        of_region = np.minimum(filled, REGION) if options.is_fitted else records // CODON
        self._of_subjects: npt.NDArray[np.int32] = np.unique(of_region[of_region > 0]).astype(np.int32)
        self._longest_window = int(database.length_runs.longest)

    @property
    def _lengths(self) -> npt.NDArray[np.int32]:
        """Every length that statistics give a subject."""
        return self._of_subjects

    def rating(self, query_length: int, null: FittedStatistics | None = None) -> Rating | None:
        """Return None: windows are put in order by their scores, since E-values are of what they hold."""
        return None

    def bound(self, query_length: int, null: FittedStatistics | None = None) -> IntArray:
        """Return the least score of a hit with any subject, for windows of every length: shape (longest + 1,)."""
        by_length = self.of(query_length, null)[self._of_subjects]
        least = int(by_length.min()) if len(by_length) else self.of_any
        return np.full(self._longest_window + 1, least, dtype=np.int64)

    def evalues(
        self, query_length: int, null: FittedStatistics | None, scores: IntArray, lengths: IntArray
    ) -> FloatArray | None:
        """Return E-values of scores with subjects of these lengths, each of shape (n,); a null's are the least."""
        if null is not None:
            return null.evalues(scores, query_length, lengths, self.effective_residues)
        statistics = self.options.published
        if statistics is None or not query_length:
            return None
        return statistics.evalues(scores, query_length, lengths, self.effective_residues)

    def lengths_of(self, dna_lengths: IntArray, regions: IntArray) -> IntArray:
        """Return the lengths that statistics give subjects, shape (n,), from their records' and their regions'."""
        return regions if self.options.is_fitted else np.maximum(dna_lengths // CODON, 1)


class TranslatedJob(SearchJob):
    """Queries, a database of DNA and an engine, ready to run; parameters are those of `SearchJob`."""

    least: FrameLeast
    skips = False

    def __init__(self, queries: Sequence[Query], database: Database, engine: Any, options: SearchOptions, *rest: Any):
        check_options(options, database.name)
        self.records = database
        windows = windows_of(searched_queries(queries, options), options.scoring, database)
        self.frames = FramedDatabase.of(database, windows)
        super().__init__(queries, self.frames, engine, options, *rest)
        self.least = FrameLeast(options, self.frames)

    def _allowed_subjects(self) -> Allowed | None:
        allowed = allowed_subjects(self.records, self.options.filters)
        if allowed is None:
            return None
        return allowed[self.frames.pieces_of(np.arange(self.frames.n_subjects)).records]

    @cached_property
    def run(self) -> RunInfo:
        """What reports say of the job as a whole."""
        return replace(
            self._described(), database_subjects=self.records.n_subjects, database_residues=self.least.nucleotides,
            database_code=self.database.genetic_code,
        )  # fmt: skip

    @property
    def program(self) -> Program:
        """BLAST's name for what is searched with what."""
        return "tblastn" if self.options.translation is None else "tblastx"

    @cached_property
    def _fit(self) -> Fit | None:
        if not self.options.is_fitted:
            return None
        least, n_frames = self.least, self.options.n_frames
        return Fit("local", self.options.scoring.gap_extend, least.n_regions, least.frame_residues, n_frames)

    @cached_property
    def scorer(self) -> Scorer:
        """What scores queries with windows, all of which are kept that may hold a hit."""
        unlimited = replace(self.options, max_hits=MAX_INTEGER)
        return Scorer(
            self.engine, unlimited, self.reader.recurrence, self.least, self._allowed, self._nulls, self._threads
        )

    @property
    def most_queries(self) -> int | None:
        """Queries that are scored together at most, where every window may have to be kept for each."""
        from swsearch.pipeline.search_job import SCORES_MEMORY

        return max(1, SCORES_MEMORY // (16 * max(1, self.database.n_subjects)))

    def _keep(self, first: int, selections: Sequence[Selection]) -> None:
        if not any(isinstance(each, LocatedSelection) for each in selections):
            super()._keep(first, selections)  # windows: what is found in them is found again

    # from windows to loci

    def rated(self, queries: Sequence[Query], selections: Sequence[Selection]) -> list[Selection]:
        """Find the loci in what was selected, and hold them against nulls of their own where these are asked for."""
        located = self._located(queries, selections)
        if self._nulls is None or not located:
            return located
        reader = self._reader_of(located)
        work = PairWork(reader, self._threads, self._nulls)
        rater = Rater(reader, self.options, work, self.least.effective_residues, None)  # type: ignore[arg-type]
        return rater.rated_group(queries, located)

    def _reader_of(self, located: Sequence[Selection]) -> LocusReader:
        """Return what reads the regions of loci that were located together."""
        first = located[0]
        assert isinstance(first, LocatedSelection)
        assert first.loci is not None
        return LocusReader(self.database, "none", self.reader.recurrence, frames=self.frames, loci=first.loci)

    def _located(self, queries: Sequence[Query], selections: Sequence[Selection]) -> list[Selection]:
        """Return selections of loci for selections of windows."""
        locator = Locator(
            self.reader, self.frames, self.least.dna_lengths, self._threads, self.options.max_candidates
        )
        asked = [self._asked(query, each) for query, each in zip(queries, selections, strict=True)]
        whose = zip(queries, selections, locator.located(asked), strict=True)
        each_loci = [loci.take(self._good(query, selection, loci)) for query, selection, loci in whose]
        together = Loci.concatenate([Loci.none(), *each_loci])
        found: list[Selection] = []
        first = 0
        for query, selection, loci in zip(queries, selections, each_loci, strict=True):
            keys = self._evalues(query, selection, loci)
            by = None if self.options.sort == "score" else keys
            best = best_loci(loci.table.score, by, first, self.options.max_candidates)
            first += len(loci)
            found.append(
                LocatedSelection(
                    best, self.options.max_candidates, selection.statistics, selection.reason, loci=together
                )
            )
        return found

    def _null_of(self, selection: Selection) -> FittedStatistics | None:
        statistics = selection.statistics
        return statistics if isinstance(statistics, FittedStatistics) else None

    def _evalues(self, query: Query, selection: Selection, loci: Loci) -> FloatArray | None:
        lengths = self.least.lengths_of(loci.dna_lengths, loci.lengths)
        return self.least.evalues(len(query.codes), self._null_of(selection), loci.table.score, lengths)

    def _asked(self, query: Query, selection: Selection) -> LociAsked:
        """Say what is asked of the windows of a query."""
        windows, null, n = selection.candidates, self._null_of(selection), len(query.codes)
        pieces = self.frames.pieces_of(windows.subjects)
        dna_lengths = self.least.dna_lengths[pieces.records]
        in_frame = np.maximum(dna_lengths - (np.abs(pieces.numbers) - 1), 0) // CODON
        lengths = self.least.lengths_of(dna_lengths, np.minimum(in_frame, REGION))
        keys = self.least.evalues(n, null, windows.scores, lengths)
        if keys is None or self.options.sort == "score":
            keys = -windows.scores.astype(np.float64)
        least = np.maximum(self.least.of(n, null)[lengths], self.least.of_any)
        return LociAsked(query, windows, keys, least)

    def _good(self, query: Query, selection: Selection, loci: Loci) -> IntArray:
        """Return the rows of loci that may be hits."""
        evalues, threshold = self._evalues(query, selection, loci), self.options.threshold
        good = self.options.filters.passing(loci.table, query, loci.dna_lengths // CODON)
        if evalues is not None and threshold is not None:
            good &= evalues <= threshold
        return np.flatnonzero(good)

    # making results

    def made(
        self,
        queries: Sequence[Query],
        selections: Sequence[Selection],
        aligned: bool = False,
        aligner: PairAligner | None = None,
    ) -> list[SearchResult]:
        """Make the results of queries, or of frames of whole DNA queries, from what was located and rated."""
        together = self.options.n_frames
        results = []
        for first in range(0, len(queries), together):
            part = slice(first, first + together)
            hits = self._list(queries[part], selections[part])
            results.append(self._result(queries[first], told_of_frames(selections[part]), hits, None))
        return results

    def _list(self, queries: Sequence[Query], selections: Sequence[Selection]) -> HitList:
        """Return the hits of one query, or of the frames of one."""
        reader, options = self._reader_of(selections), self.options
        best = best_of_frames([each.candidates for each in selections], options.max_hits, options.sort)
        loci = reader.loci.take(best.ranked.subjects)
        numbers = [self._numbers(*each, reader.loci) for each in zip(queries, selections, strict=True)]
        frames = Frames(loci.regions.numbers, loci.regions.begins, loci.dna_lengths)
        is_dna = options.translation is not None
        table = HitTable(
            loci.regions.records, loci.lengths, loci.table.score, Numbers.concatenate(numbers).take(best.rows),
            reader.headers(best.ranked.subjects), best.frames if is_dna else None, frames,
        )  # fmt: skip
        made = HitList(
            queries[0], options.scoring, table, None, None, None if is_dna else selections[0].nulls, queries
        )
        if is_dna:
            firsts = np.cumsum([0, *(len(each.candidates) for each in selections)]).tolist()
            rows = [best.rows[best.frames == k] - first for k, first in enumerate(firsts[:-1])]
            made.frame_statistics = [
                (each.statistics, None if each.nulls is None else each.nulls[of_frame])
                for each, of_frame in zip(selections, rows, strict=True)
            ]
        made.give(loci.table, reader.shown(best.ranked.subjects))
        return made

    def _numbers(self, query: Query, selection: Selection, loci: Loci) -> Numbers:
        """Return what statistics say of the hits of a query, or of a frame, among loci that were located together."""
        loci = loci.take(selection.candidates.subjects)
        least, scores, n = self.least, loci.table.score, len(query.codes)
        statistics = selection.statistics if selection.nulls is None else selection.nulls
        lengths, ranked = least.lengths_of(loci.dna_lengths, loci.lengths), selection.candidates
        found = numbers_as_arrays(
            statistics, None, scores, n, lengths, least.effective_residues, ranked.evalues
        )  # fmt: skip
        published = np.full(len(scores), np.nan)
        if (
            least.published is not None
            and len(scores)
            and not (query.profile is not None and query.profile.scale != 1)
        ):
            residues = self.options.dbsize or least.thirds
            published = least.published.evalues(scores, n, np.maximum(loci.dna_lengths // CODON, 1), residues)
        return Numbers(found.bit_scores, found.evalues, found.z_scores, published)

    def _result(self, query: Query, selection: Selection, hits: HitList, distribution: Any) -> SearchResult:
        found = super()._result(query, selection, hits, distribution)
        return replace(
            found, database_subjects=self.records.n_subjects, database_residues=self.least.nucleotides,
            database_code=self.database.genetic_code,
        )  # fmt: skip
