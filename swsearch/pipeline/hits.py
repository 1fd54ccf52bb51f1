"""From selections to hits: columns with statistics, headers and, where they are asked for, alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from swsearch.alignment import PairAlignment
from swsearch.alignments import AlignmentTable
from swsearch.blocks import FloatArray, IntArray
from swsearch.engines.pair_base import PairAligner
from swsearch.inputs import Query
from swsearch.later import Later
from swsearch.pipeline.additional_hsps import FoundFurther, Further
from swsearch.pipeline.hit_alignments import HitSource, align_lists, find_further
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.pair_work import FurtherToFind, PairsToAlign, PairWork
from swsearch.pipeline.query_frames import best_of_frames
from swsearch.pipeline.ranking import Ranked
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.thresholds import LeastScores
from swsearch.results import HitList, HitTable, Hsp, Numbers, SubjectCodes
from swsearch.results.hit_list import FindFurther
from swsearch.results.table import Headers
from swsearch.statistics.choice import HitNumbers, NumberArrays, numbers_as_arrays, numbers_of
from swsearch.statistics.fitted import PairNulls
from swsearch.statistics.karlin_altschul import Statistics

_NONE: IntArray = np.empty(0, dtype=np.int64)

FEWEST_ALIGNED, MOST_ALIGNED = 64, 4096
"""Candidates that are aligned at a time until enough have passed the filters: some for every thread, few in vain,
and no more than memory holds."""


@dataclass(frozen=True)
class Chosen:
    """The hits of one query.

    Parameters
    ----------
    ranked : Ranked
        The hits, best first.
    nulls : PairNulls or None
        Their own nulls, where they have some.
    aligned : (AlignmentTable, SubjectCodes) or None
        Their alignments, where these were needed to choose them.
    """

    ranked: Ranked
    nulls: PairNulls | None
    aligned: tuple[AlignmentTable, SubjectCodes] | None = None


@dataclass(frozen=True, eq=False)
class HitColumns:
    """The hits of one query, or of a DNA query by all of its frames, best first.

    Parameters
    ----------
    chosen : sequence of Chosen
        The hits of each frame; one where there are none.
    frames, rows : ndarray, shape (n,), int64
        Which of these each hit is of, and its place among the hits of all, one after the other.
    ranked : Ranked
        n of them.
    lengths : ndarray, shape (n,), int64
        Residues of their subjects.
    numbers : Numbers
        Of their scores.
    aligned : (AlignmentTable, SubjectCodes) or None
        As `Chosen` has them.
    """

    chosen: Sequence[Chosen]
    frames: IntArray
    rows: IntArray
    ranked: Ranked
    lengths: IntArray
    numbers: Numbers
    aligned: tuple[AlignmentTable, SubjectCodes] | None

    @classmethod
    def of_frames(cls, parts: Sequence[HitColumns], options: SearchOptions) -> HitColumns:
        """Return those of a DNA query, as many as are asked for, from those of its frames."""
        best = best_of_frames([each.ranked for each in parts], options.max_hits, options.sort)
        rows = best.rows
        aligned = [each.aligned for each in parts if each.aligned is not None]
        return cls(
            [each.chosen[0] for each in parts],
            best.frames,
            rows,
            best.ranked,
            np.concatenate([each.lengths for each in parts])[rows],
            Numbers.concatenate([each.numbers for each in parts]).take(rows),
            None
            if not aligned
            else (
                AlignmentTable.concatenate([table for table, _ in aligned]).take(rows),
                SubjectCodes.joined([subjects for _, subjects in aligned]).take(rows),
            ),
        )

    def nulls_of(self, place: int) -> PairNulls | None:
        """Return the nulls of the hits that are those of a frame, by its place."""
        nulls = self.chosen[place].nulls
        before = sum(len(each.ranked) for each in self.chosen[:place])
        return None if nulls is None else nulls[self.rows[self.frames == place] - before]


@dataclass(frozen=True)
class HitMaker:
    """Makes hits of selections.

    Parameters
    ----------
    work : PairWork
        Aligns the subjects, now and whenever a hit's alignment is asked for.
    options : SearchOptions
        What is asked for.
    least : LeastScores
        Least scores of further alignments.
    """

    work: PairWork
    options: SearchOptions
    least: LeastScores

    def lists(
        self,
        queries: Sequence[Query],
        selections: Sequence[Selection],
        aligned: bool = False,
        aligner: PairAligner | None = None,
    ) -> list[HitList]:
        """Return the hits of some queries, best first: as many as are asked for, of those that pass the filters.

        Parameters
        ----------
        queries, selections : sequence
            One selection per query. Of DNA they are frames, those of a query one after the other: there is one list
            for all of them.
        aligned : bool, optional
            Whether to find their alignments now, and further ones where hits may have several.
        aligner : PairAligner, optional
            What aligns instead of the CPU.
        """
        together, found = self.options.n_frames, self._columns(queries, selections)
        records = [slice(first, first + together) for first in range(0, len(found), together)]
        if self.options.translation is not None:
            found = [HitColumns.of_frames(found[part], self.options) for part in records]
        headers = self.work.reader.headers(np.concatenate([_NONE, *(each.ranked.subjects for each in found)]))
        lists: list[HitList] = []
        end = 0
        for part, columns in zip(records, found, strict=True):
            begin, end = end, end + len(columns.ranked)
            lists.append(self._list(queries[part], selections[part], columns, headers.part(begin, end)))
        if aligned:
            align_lists(lists, aligner)
            self._find_further([made for made in lists if made.may_have_several])
        return lists

    def _columns(self, queries: Sequence[Query], selections: Sequence[Selection]) -> list[HitColumns]:
        """Return the hits of each query, or frame."""
        chosen = self.work.of_queries(lambda k: self._chosen(queries[k], selections[k]), len(queries))
        subjects = np.concatenate([_NONE, *(each.ranked.subjects for each in chosen)])
        lengths = self.work.reader.database.lengths_of(subjects).astype(np.int64)
        published = self._published(queries, chosen, lengths)
        found: list[HitColumns] = []
        end = 0
        for query, selection, each in zip(queries, selections, chosen, strict=True):
            begin, end = end, end + len(each.ranked)
            numbers = self._numbers(query, selection, each, lengths[begin:end], published[begin:end])
            frames, rows = np.zeros(len(each.ranked), dtype=np.int64), np.arange(len(each.ranked))
            found.append(HitColumns([each], frames, rows, each.ranked, lengths[begin:end], numbers, each.aligned))
        return found

    def _list(
        self, queries: Sequence[Query], selections: Sequence[Selection], columns: HitColumns, headers: Headers
    ) -> HitList:
        """Return the hits of one query, or of the frames of one."""
        ranked, is_dna = columns.ranked, self.options.translation is not None
        table = HitTable(
            ranked.subjects, columns.lengths, ranked.scores, columns.numbers, headers,
            columns.frames if is_dna else None,
        )  # fmt: skip
        further: FindFurther | None = None
        if self.options.max_alignments > 1 and is_dna:
            from swsearch.pipeline.additional_hsps_dna import FurtherOfFrames

            further = FurtherOfFrames(
                self.options, self.least, self.work, self.numbers, queries,
                [each.statistics for each in selections], ranked.subjects, columns.lengths, columns.frames,
            )  # fmt: skip
        elif self.options.max_alignments > 1:
            further = _FurtherOf(
                self, queries[0], selections[0].statistics, columns.chosen[0].nulls, table.subject_lengths
            )
        source = HitSource(self.work, queries, columns.frames, table.subjects)
        made = HitList(
            queries[0], self.options.scoring, table, source, further, columns.chosen[0].nulls, queries,
        )  # fmt: skip
        if is_dna:
            made.frame_statistics = [(each.statistics, columns.nulls_of(k)) for k, each in enumerate(selections)]
        if columns.aligned is not None:
            made.give(*columns.aligned)
        return made

    def _find_further(self, lists: Sequence[HitList]) -> None:
        """Find the further alignments of all hits of some lists, whose best ones are known."""
        some = [(made, made.further) for made in lists if len(made) and isinstance(made.further, _FurtherOf)]
        found = self.work.further(lambda: self._further_to_find(some)) if some else None
        if found is not None:
            ends = np.cumsum([0, *(len(made) for made, _ in some)]).tolist()
            for (_, further), begin, end in zip(some, ends[:-1], ends[1:], strict=True):
                further.known = found[begin:end]
        find_further([hit for made in lists for hit in made], self.work.threads)

    def _further_to_find(self, several: Sequence[tuple[HitList, _FurtherOf]]) -> FurtherToFind:
        """Say what is wanted of the hits of lists that have some."""
        sizes = [len(made) for made, _ in several]
        pairs = PairsToAlign(
            [made.query for made, _ in several],
            np.repeat(np.arange(len(several)), sizes),
            np.concatenate([made.table.subjects for made, _ in several]),
            np.concatenate([made.table.scores for made, _ in several]),
        )
        best = AlignmentTable.concatenate([made.alignments for made, _ in several if made.alignments is not None])
        least = np.concatenate([further.least for _, further in several])
        return FurtherToFind(pairs, best, least, self.options.max_alignments - 1)

    def _published(self, queries: Sequence[Query], chosen: Sequence[Chosen], lengths: IntArray) -> FloatArray:
        """Return the published E-values of all hits, NaN where there are none, in one go: most queries have few."""
        if self.least.published is None or not len(lengths):
            return np.full(len(lengths), np.nan)
        scores = np.concatenate([each.ranked.scores for each in chosen])
        rows = np.repeat([len(query.codes) for query in queries], [len(each.ranked) for each in chosen])
        found = self.least.published.evalues(scores, rows, lengths, self.least.effective_residues)
        found[np.repeat([_is_scaled(query) for query in queries], [len(each.ranked) for each in chosen])] = np.nan
        return found

    def _numbers(
        self, query: Query, selection: Selection, chosen: Chosen, lengths: IntArray, published: FloatArray
    ) -> Numbers:
        statistics = selection.statistics if chosen.nulls is None else chosen.nulls
        found = numbers_as_arrays(
            statistics, None, chosen.ranked.scores, len(query.codes), lengths, self.least.effective_residues,
            chosen.ranked.evalues,
        )  # fmt: skip
        return Numbers(found.bit_scores, found.evalues, found.z_scores, published)

    def numbers(
        self,
        query: Query,
        statistics: Statistics | PairNulls | None,
        scores: Sequence[int],
        lengths: npt.NDArray[np.integer],
    ) -> list[HitNumbers]:
        """Return what statistics say of a query's scores with subjects of some lengths, both of shape (n,)."""
        least = self.least
        residues = least.effective_residues
        published = None if _is_scaled(query) else least.published
        return numbers_of(statistics, published, scores, len(query.codes), lengths, residues)

    def arrays(
        self, query: Query, statistics: Statistics | PairNulls | None, scores: IntArray, lengths: IntArray
    ) -> NumberArrays:
        """Return what the statistics in force say of scores with subjects of some lengths, both of shape (n,)."""
        residues = self.least.effective_residues
        return numbers_as_arrays(statistics, None, scores, len(query.codes), lengths, residues)

    def _chosen(self, query: Query, selection: Selection) -> Chosen:
        """Choose hits; candidates are aligned, the best first, until enough have passed, if filters ask for that."""
        best, nulls = selection.candidates, selection.nulls
        if not self.options.filters.needs_alignments:
            return Chosen(best, nulls)
        parts: list[tuple[IntArray, AlignmentTable, SubjectCodes]] = []
        found = place = 0
        while place < len(best) and found < self.options.max_hits:
            together = min(max(FEWEST_ALIGNED, self.options.max_hits - found), MOST_ALIGNED)
            some = best[place : place + together]
            parts.append(self._passing(query, some, self.options.max_hits - found, place))
            found, place = found + len(parts[-1][0]), place + together
        rows = np.concatenate([np.empty(0, dtype=np.int64), *(rows for rows, _, _ in parts)])
        ranked = Ranked(best.scores[rows], best.subjects[rows], None if best.evalues is None else best.evalues[rows])
        aligned = AlignmentTable.concatenate([table for _, table, _ in parts])
        return Chosen(
            ranked,
            None if nulls is None else nulls[rows],
            (aligned, SubjectCodes.joined([each for *_, each in parts])),
        )

    def _passing(
        self, query: Query, some: Ranked, most: int, first: int
    ) -> tuple[IntArray, AlignmentTable, SubjectCodes]:
        """Align candidates, and return the rows of those that pass, counted from ``first``, with their alignments."""
        of_query = np.zeros(len(some), dtype=np.int64)
        table, subjects = self.work.aligned(PairsToAlign([query], of_query, some.subjects, some.scores))
        good = self.options.filters.passing(table, query, np.diff(subjects.offsets))
        rows = np.flatnonzero(good)[:most]
        return rows + first, table.take(rows), subjects.take(rows)


def _is_scaled(query: Query) -> bool:
    """Say whether published constants, which are of a matrix, do not hold for a query's scores."""
    return query.profile is not None and query.profile.scale != 1


class _FurtherOf:
    """Makes what finds the further alignments of the hits of one query.

    Parameters
    ----------
    maker : HitMaker
        Whose hits they are.
    query : Query
        The query.
    statistics : Statistics or None
        What is in force.
    nulls : PairNulls or None
        The hits' own nulls.
    lengths : ndarray, shape (n,), int64
        Residues of the hits' subjects.
    """

    def __init__(
        self,
        maker: HitMaker,
        query: Query,
        statistics: Statistics | None,
        nulls: PairNulls | None,
        lengths: IntArray,
    ) -> None:
        self._maker, self._query, self._statistics, self._nulls = maker, query, statistics, nulls
        self._lengths = lengths
        least, threshold = np.maximum(maker.least.of(len(query.codes))[lengths], 1), maker.options.threshold
        if nulls is not None and threshold is not None:
            least = np.maximum(least, nulls.least_scores(threshold, maker.least.effective_residues))
        self.least = least
        self.known: Sequence[list[FoundFurther]] | None = None
        """By row, where they were found elsewhere."""

    def __call__(self, row: int, alignment: Later[PairAlignment]) -> Later[list[Hsp]]:
        """Return it for the hit of a row, from its best alignment."""
        options, numbers = self._maker.options, partial(self._numbers, row)
        least, part = int(self.least[row]), self._query.frame
        further = Further(options.max_alignments, least, options.threshold, options.filters, numbers, part)
        return Later(lambda: further.find(alignment, int(self._lengths[row]), self._known_of(row)))

    def _known_of(self, row: int) -> list[FoundFurther] | None:
        return None if self.known is None else self.known[row]

    def _numbers(self, row: int, scores: Sequence[int], lengths: npt.NDArray[np.integer]) -> list[HitNumbers]:
        of_these = self._statistics if self._nulls is None else self._nulls.further(np.full(len(scores), row))
        return self._maker.numbers(self._query, of_these, scores, lengths)
