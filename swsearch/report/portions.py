"""A result in portions that memory holds, as columns: what writers make text of, many hits at a time.

A line is an alignment, or a hit where no alignment is asked for. Hits of a translated database that are pieces of one
record are one hit here, with a line for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np

from swsearch.alignments import AlignmentTable
from swsearch.blocks import IntArray
from swsearch.db.taxonomy import Taxa
from swsearch.report import headers
from swsearch.report.alignment_rows import AlignmentLetters, Rows, letters_of
from swsearch.report.numbers import printed_ends
from swsearch.report.records import RecordHits
from swsearch.results import HitTable, HspTable, Numbers, SearchResult

PORTION_HITS = 1 << 14
"""Hits of a portion, at most."""

COLUMNS_TOGETHER = 1 << 18
"""Columns of a portion's alignments, unless it has a single hit: their arrays stay in a processor's cache."""

Cell = TypeVar("Cell")


class Portion:
    """Some of a result's hits that stand together.

    Parameters
    ----------
    result : SearchResult
        What they are of.
    hits : HitTable
        All hits of it.
    rows : slice
        Which of them.
    """

    def __init__(self, result: SearchResult, hits: HitTable, rows: slice) -> None:
        self.result, self._hits, self._rows = result, hits, rows

    # hits

    @property
    def first(self) -> int:
        """The first hit's place in the result, counted from 0."""
        return int(self._rows.start)

    @property
    def n_hits(self) -> int:
        """Number of hits."""
        return int(self._rows.stop - self._rows.start)

    @cached_property
    def identifiers(self) -> list[str]:
        """Identifiers of the hits' subjects as they are in the database."""
        return self._hits.headers.identifiers[self._rows]

    @cached_property
    def descriptions(self) -> list[str]:
        """What follows them in the headers."""
        return self._hits.headers.descriptions[self._rows]

    @cached_property
    def taxa(self) -> list[Taxa] | None:
        """The taxa of the hits' subjects; None where the database knows none."""
        taxa = self._hits.headers.taxa
        return None if taxa is None else taxa[self._rows]

    @cached_property
    def names(self) -> list[str]:
        """Identifiers of the hits' subjects as they are printed."""
        return headers.printed_identifiers(self.identifiers)

    @cached_property
    def titles(self) -> list[list[str]]:
        """Titles of the hits' subjects; several where NCBI merged identical sequences."""
        return headers.all_titles(self.identifiers, self.descriptions)

    @property
    def subjects(self) -> IntArray:
        """Places of the hits' subjects in the database's input, shape (n_hits,), int64."""
        return self._hits.record_places[self._rows]

    @property
    def subject_lengths(self) -> IntArray:
        """Residues of the hits' subjects, nucleotides where they are DNA; shape (n_hits,), int64."""
        return self._hits.record_lengths[self._rows]

    @property
    def iterations(self) -> IntArray:
        """The iteration that first included each hit, shape (n_hits,), int64; the number of the only one, if so."""
        first = self.result.first_found  # never of a translated database, whose rows are others
        return np.full(self.n_hits, self.result.iteration) if first is None else first[self._rows]

    @property
    def hit_scores(self) -> IntArray:
        """Scores of the hits, shape (n_hits,), int64."""
        return self._hits.scores[self._rows]

    @cached_property
    def hit_numbers(self) -> Numbers:
        """What statistics say of these."""
        return self._hits.numbers.take(self._rows)

    # lines

    @property
    def scores(self) -> IntArray:
        """Score of each line, shape (n,), int64."""
        return self.hit_scores

    @property
    def numbers(self) -> Numbers:
        """What statistics say of it."""
        return self.hit_numbers

    @property
    def places(self) -> IntArray:
        """Which of its hit's alignments a line is about, counted from 0; shape (n,), int64."""
        return np.zeros(self.n_hits, dtype=np.int64)

    def __len__(self) -> int:
        return self.n_hits

    @property
    def hit_of_line(self) -> IntArray:
        """Which of the portion's hits a line is about, shape (n,), int64."""
        return np.arange(self.n_hits)

    def of_lines(self, of_hits: list[Cell]) -> list[Cell]:
        """Return what is known of each hit for each line."""
        return of_hits


class PiecesPortion(Portion):
    """Some records of a translated database that stand together, with a line for each piece that was found.

    Parameters
    ----------
    result, rows
        As of a `Portion`.
    records : RecordHits
        All of them.
    """

    def __init__(self, result: SearchResult, records: RecordHits, rows: slice) -> None:
        super().__init__(result, records.hits, rows)
        begin, end = np.searchsorted(records.of_piece, (rows.start, rows.stop)).tolist()
        self._pieces, self._lines, self._of_piece = records.pieces, slice(begin, end), records.of_piece

    def __len__(self) -> int:
        return int(self._lines.stop - self._lines.start)

    @property
    def scores(self) -> IntArray:
        """See `Portion.scores`."""
        return self._pieces.scores[self._lines]

    @property
    def numbers(self) -> Numbers:
        """See `Portion.numbers`."""
        return self._pieces.numbers.take(self._lines)

    @property
    def places(self) -> IntArray:
        """See `Portion.places`."""
        of_piece = self._of_piece[self._lines]
        return np.arange(len(self)) - np.searchsorted(of_piece, of_piece)

    @property
    def hit_of_line(self) -> IntArray:
        """See `Portion.hit_of_line`."""
        return self._of_piece[self._lines] - self.first

    def of_lines(self, of_hits: list[Cell]) -> list[Cell]:
        """See `Portion.of_lines`."""
        return [of_hits[row] for row in self.hit_of_line.tolist()]


class AlignedPortion(Portion):
    """Some of a result's hits that stand together, with their alignments.

    Parameters
    ----------
    result, hits, rows
        As of a `Portion`.
    hsps : HspTable
        All alignments of the result.
    lines : slice
        Those of the hits.
    letters : AlignmentLetters
        Of all alignments of the result.
    """

    def __init__(
        self,
        result: SearchResult,
        hits: HitTable,
        rows: slice,
        hsps: HspTable,
        lines: slice,
        letters: AlignmentLetters,
    ) -> None:
        super().__init__(result, hits, rows)
        self._hsps, self._lines, self._letters = hsps, lines, letters

    def __len__(self) -> int:
        return int(self._lines.stop - self._lines.start)

    @cached_property
    def alignments(self) -> AlignmentTable:
        """The alignments, one per line."""
        return self._hsps.alignments[self._lines]

    @property
    def scores(self) -> IntArray:
        """See `Portion.scores`."""
        return self.alignments.score

    @cached_property
    def numbers(self) -> Numbers:
        """See `Portion.numbers`."""
        return self._hsps.numbers.take(self._lines)

    @property
    def places(self) -> IntArray:
        """See `Portion.places`."""
        return self._hsps.places[self._lines]

    @cached_property
    def hit_of_line(self) -> IntArray:
        """See `Portion.hit_of_line`."""
        return self._hsps.hits[self._lines] - self.first

    @property
    def is_placed(self) -> bool:
        """Whether what was aligned are frames of DNA, or parts, so that places in records are others."""
        return self._hsps.query_frames is not None or self._hsps.subject_frames is not None

    @property
    def query_spans(self) -> tuple[IntArray, IntArray]:
        """Begins and ends of the aligned parts of the query, 0-based and half-open, each of shape (n,), int64.

        In nucleotides of the given strand where it is DNA.
        """
        begins, ends = self._hsps.query_spans
        return begins[self._lines], ends[self._lines]

    @property
    def query_lengths(self) -> IntArray:
        """Lengths of what `query_spans` count on: of the whole query, where a part of it was searched; shape (n,)."""
        frames = self._hsps.query_frames
        return np.full(len(self), self.result.query_length) if frames is None else frames.dna_lengths[self._lines]

    @property
    def subject_spans(self) -> tuple[IntArray, IntArray]:
        """Those of the subjects, each of shape (n,)."""
        begins, ends = self._hsps.subject_spans
        return begins[self._lines], ends[self._lines]

    @property
    def query_frames(self) -> IntArray:
        """The frame of the query that each line is about, shape (n,), int64; 0 where it is protein."""
        return self._of_lines(self._hsps.query_frame_numbers)

    @property
    def subject_frames(self) -> IntArray:
        """Those of the subjects, shape (n,), int64."""
        return self._of_lines(self._hsps.subject_frame_numbers)

    def _of_lines(self, frames: IntArray | None) -> IntArray:
        return np.zeros(len(self), dtype=np.int64) if frames is None else frames[self._lines]

    @property
    def query_ends(self) -> tuple[IntArray, IntArray]:
        """First and last residue of the aligned parts of the query as BLAST counts them, each of shape (n,), int64.

        From 1, the end included; first above last where a frame is read on the other strand; 0 where there is none.
        """
        return printed_ends(*self.query_spans, self.query_frames)

    @property
    def subject_ends(self) -> tuple[IntArray, IntArray]:
        """Those of the subjects, each of shape (n,)."""
        return printed_ends(*self.subject_spans, self.subject_frames)

    @property
    def is_single(self) -> bool:
        """Whether each hit has one alignment."""
        return len(self) == self.n_hits

    def of_lines(self, of_hits: list[Cell]) -> list[Cell]:
        """See `Portion.of_lines`."""
        return of_hits if self.is_single else [of_hits[row] for row in self.hit_of_line.tolist()]

    def by_hit(self, of_lines: Sequence[Cell]) -> list[list[Cell]]:
        """Return what is known of each line as a list for each hit, which has one line or more."""
        if self.is_single:
            return [[each] for each in of_lines]
        ends = np.searchsorted(self.hit_of_line, np.arange(self.n_hits + 1)).tolist()
        return [list(of_lines[begin:end]) for begin, end in pairwise(ends)]

    @cached_property
    def rows(self) -> list[Rows]:
        """The rows of text of each line: the query's, the middle line and the subject's."""
        return self._letters.rows(self._lines)

    @property
    def btops(self) -> list[str]:
        """BLAST's trace-back operations of each line."""
        return self._letters.btops(self._lines)

    @property
    def query(self) -> str:
        """The whole query as the result's first alignment shows it."""
        return self._letters.query

    @property
    def queries(self) -> list[str]:
        """The whole query as each line's alignment shows it."""
        return self._letters.queries(self._lines)

    @property
    def subject_parts(self) -> list[str]:
        """The subject's aligned part of each line, without gaps."""
        return self._letters.subject_parts(self._lines)


def mismatches(alignments: AlignmentTable) -> IntArray:
    """Return the pairs of different letters of each alignment, shape (m,), int64."""
    return alignments.length - alignments.identities - alignments.gaps


def portions(result: SearchResult) -> Iterator[Portion]:
    """Yield the hits of a result without their alignments, which are not looked for; nothing if there are no hits."""
    hits = result.table
    records = RecordHits.of(hits)
    n = len(hits if records is None else records.hits)
    for begin in range(0, n, PORTION_HITS):
        rows = slice(begin, min(begin + PORTION_HITS, n))
        yield Portion(result, hits, rows) if records is None else PiecesPortion(result, records, rows)


def aligned_portions(result: SearchResult) -> Iterator[AlignedPortion]:
    """Yield the hits of a result with their alignments; nothing where there are no hits."""
    if not len(result.hits):
        return
    hits, hsps = result.table, result.hsps
    order = None
    if (records := RecordHits.of(hits)) is not None:
        order = records.order_of(hsps)
        hits, hsps = records.hits, hsps.take(order, records.of_hit[hsps.hits[order]])
    letters = letters_of(result, order)
    ends = np.searchsorted(hsps.hits, np.arange(len(hits)), side="right")
    columns = np.concatenate([[0], np.cumsum(hsps.alignments.length)])[ends]
    begin = 0
    while begin < len(hits):
        columns_before = int(columns[begin - 1]) if begin else 0
        end = int(np.searchsorted(columns, columns_before + COLUMNS_TOGETHER, side="right"))
        end = min(max(end, begin + 1), begin + PORTION_HITS)
        lines = slice(int(ends[begin - 1]) if begin else 0, int(ends[end - 1]))
        yield AlignedPortion(result, hits, slice(begin, end), hsps, lines, letters)
        begin = end
