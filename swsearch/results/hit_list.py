"""Sequence of the hits of a query, stored as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from swsearch.alignment import AlignmentCounts, PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import IntArray
from swsearch.frameshift_alignment import ShiftedAlignment
from swsearch.lazy import Lazy
from swsearch.results.hit import Hit, Hsp
from swsearch.results.table import HitTable, HspTable, SubjectCodes, frames_of
from swsearch.scoring import QueryProfile, Scoring
from swsearch.translation import Frames

if TYPE_CHECKING:
    from swsearch.inputs import Query

AlignOne = Callable[[int], PairAlignment]
"""Aligns the hit of a row."""

FindHsps = Callable[[int, Lazy[PairAlignment]], Lazy[list[Hsp]]]
"""Makes what finds the further alignments of the hit of a row."""


class HitList(Sequence[Hit]):
    """The hits of one query, best first.

    Each `Hit` is made when it is first asked for, and kept. A hit's alignment is found when it is asked for, unless
    all of them were aligned together before (`set_alignments`).

    Parameters
    ----------
    query : Query
        What found them; of several, the first.
    scoring : Scoring
        What alignments are scored with.
    table : HitTable
        The hits.
    source : callable or None
        Aligns one hit, by its row; None where there are no hits.
    find_hsps : callable, optional
        Finds further alignments of a hit, where there may be several.
    queries : sequence of Query, optional
        What found them, where several did: the frames of one DNA record, of which ``table.query_frames`` names those
        of the hits.
    """

    def __init__(
        self,
        query: Query,
        scoring: Scoring,
        table: HitTable,
        source: AlignOne | None,
        find_hsps: FindHsps | None = None,
        queries: Sequence[Query] = (),
    ) -> None:
        self.queries: Sequence[Query] = tuple(queries) or (query,)
        """Queries that found the hits: one query, or the frames of one DNA record."""
        self.query, self.scoring, self.table = query, scoring, table
        self.source: Any = source
        """Source of the subjects. Released once all alignments are known, and with it the database."""
        self.may_have_more_hsps = find_hsps is not None
        """Whether hits may have more than one alignment."""
        self.further = find_hsps
        """Function that finds further HSPs. Released once every hit exists."""
        self._hits: dict[int, Hit] = {}
        self._alone: dict[int, PairAlignment] = {}
        self._aligned: tuple[AlignmentTable, SubjectCodes] | None = None

    # alignments

    @property
    def is_aligned(self) -> bool:
        """Whether the alignments of all hits are known."""
        return self._aligned is not None or not len(self.table)

    def set_alignments(self, alignments: AlignmentTable, subjects: SubjectCodes) -> None:
        """Set the best alignment of every hit, in hit order, and the subjects aligned."""
        if self._aligned is None:
            self._aligned = alignments, subjects
            self.source = None

    @property
    def alignments(self) -> AlignmentTable | None:
        """The best alignment of every hit, if these were found together."""
        return None if self._aligned is None else self._aligned[0]

    @property
    def subjects(self) -> SubjectCodes | None:
        """The hits' subjects, if the hits were aligned together."""
        return None if self._aligned is None else self._aligned[1]

    @cached_property
    def _ends(self) -> list[tuple[int, ...]]:
        """Numbers for a `PairAlignment`, by row."""
        assert self._aligned is not None
        table = self._aligned[0]
        columns = (
            table.score, table.query_start, table.subject_start, table.query_end, table.subject_end, table.length,
            table.identities, table.positives, table.gaps, table.gap_openings,
        )  # fmt: skip
        return list(zip(*(column.tolist() for column in columns), strict=True))

    @cached_property
    def query_numbers(self) -> IntArray:
        """Index into ``queries`` of each hit, shape (n,), int64."""
        of_each = self.table.query_frames
        return np.zeros(len(self.table), dtype=np.int64) if of_each is None else of_each

    def query_of(self, row: int) -> Query:
        """Return what found a hit."""
        return self.queries[int(self.query_numbers[row])]

    @cached_property
    def query_frames(self) -> Frames | None:
        """The frame of the query that found each hit; None where queries are protein."""
        frames = frames_of([query.frame for query in self.queries])
        return None if frames is None else frames.take(self.query_numbers)

    @cached_property
    def _query_rows(self) -> QueryProfile | None:
        """The query's scores by position, where it is a profile."""
        return None if self.query.profile is None else self.query.rows(self.scoring)

    def pair(self, row: int) -> PairAlignment:
        """Return the best alignment of a hit."""
        if self._aligned is None:
            return self._align_alone(row)
        table, subjects = self._aligned
        score, query_start, subject_start, *counts = self._ends[row]
        query = self.query_of(row)
        kind = ShiftedAlignment if query.frame is not None and query.frame.step == 1 else PairAlignment
        return kind(
            query.codes, subjects.codes_of(row), self.scoring, score, query_start, subject_start,
            table.cigar(row), query.letters, subjects.letters_of(row), AlignmentCounts(*counts), self._query_rows,
        )  # fmt: skip

    def _align_alone(self, row: int) -> PairAlignment:
        source = self.source  # before looking for the alignment: another thread lets go of it when all are there
        if row not in self._alone:
            self._alone[row] = source(row)
            if len(self._alone) == len(self.table):
                self.source = None
        return self._alone[row]

    @cached_property
    def _hsps(self) -> HspTable:
        assert self._aligned is not None
        return HspTable(
            np.arange(len(self.table), dtype=np.int64), self._aligned[0], self.table.statistics,
            self.query_frames, self.table.subject_frames,
        )  # fmt: skip

    @property
    def hsps(self) -> HspTable:
        """All alignments that are reported; found now where they are not known."""
        if self._aligned is not None and not self.may_have_more_hsps:
            return self._hsps
        return HspTable.from_hits(self)

    # the sequence

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Hit]:
        return (self._hit(row) for row in range(len(self.table)))

    @overload
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...

    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        rows = range(len(self.table))[index]
        return self._hit(rows) if isinstance(rows, int) else [self._hit(row) for row in rows]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (HitList, list)):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        if not len(self.table):  # a list would not know the query
            return HitList, (self.query, self.scoring, self.table, None, None, self.queries)
        return list, (list(self),)

    def _hit(self, row: int) -> Hit:
        hit = self._hits.get(row)
        if hit is None:
            hit = self._hits.setdefault(row, self._make_hit(row))
            if len(self._hits) == len(self.table):
                self.further = None
        return hit

    @cached_property
    def _rows(self) -> list[tuple[Any, ...]]:
        """Values for a `Hit`, by row."""
        table = self.table
        bits, evalues, z_scores, published = table.statistics.optional
        return list(
            zip(
                table.headers.texts, table.record_places.tolist(), table.record_lengths.tolist(),
                table.scores.tolist(), bits, evalues, z_scores, published, strict=True,
            )
        )  # fmt: skip

    def _make_hit(self, row: int) -> Hit:
        query, further, frames = self.query_of(row), self.further, self.table.subject_frames
        taxa = self.table.headers.taxa
        (identifier, description), subject, length, score, bits, evalue, z_score, published = self._rows[row]
        alignment: Lazy[PairAlignment] = Lazy(RowPair(self, row))
        return Hit(
            query.identifier, identifier, description, subject, query.length, length, score, bits, evalue,
            alignment, z_score, published, None if further is None else further(row, alignment),
            query.frame, None if frames is None else frames[row], None if taxa is None else taxa[row],
        )  # fmt: skip


class RowPair:
    """Finds the alignment of one hit of a list."""

    __slots__ = ("hits", "row")

    def __init__(self, hits: HitList, row: int) -> None:
        self.hits, self.row = hits, row

    @property
    def is_computed(self) -> bool:
        """Whether the alignment is known."""
        return self.hits.is_aligned

    def __call__(self) -> PairAlignment:
        """Return it."""
        return self.hits.pair(self.row)
