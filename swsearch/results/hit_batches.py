"""Batches of the hits of a result, as columns.

Writers format many hits at a time. A line is an alignment (HSP), or a hit where no alignment is needed. Hits of a
translated database in one record are one hit here, with a line for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from swsearch.alignment_table import AlignmentTable
from swsearch.blocks import IntArray
from swsearch.db.taxonomy import NO_NAME, Taxa
from swsearch.errors import printable
from swsearch.results.alignment_rows import AlignmentLetters, Rows, letters_of
from swsearch.results.table import HitTable, HspTable, RecordHits
from swsearch.statistics.methods import HitStatistics

MAX_BATCH_HITS = 1 << 14
"""Maximum number of hits in a batch."""

COLUMNS_PER_BATCH = 1 << 18
"""Alignment columns of a batch, unless it has one hit: their arrays stay in a processor's cache."""

Cell = TypeVar("Cell")


class HitBatch:
    """Consecutive hits of a result, with a line for each, or for each locus in a record.

    Parameters
    ----------
    result : SearchResult
        Their result. It makes its own columns of a batch, so this module cannot import its type.
    hits : HitTable
        All hits of the result.
    rows : slice
        Rows of the batch's hits in ``hits``.
    hit_of_line : ndarray, shape (n,), int64
        Hit of each line, counted in the batch, ascending.
    scores : ndarray, shape (n,), int64
        Score of each line.
    numbers : HitStatistics
        Bit score, E-values and z-score of each line.
    """

    def __init__(
        self,
        result: Any,
        hits: HitTable,
        rows: slice,
        hit_of_line: IntArray,
        scores: IntArray,
        numbers: HitStatistics,
    ) -> None:
        self.result, self._hits, self._rows = result, hits, rows
        self.hit_of_line, self.scores, self.statistics = hit_of_line, scores, numbers
        self.query_index = 0
        """Number of the query, if a writer counts queries."""

    # hits

    @property
    def first(self) -> int:
        """Place of the first hit in the result, counted from 0."""
        return int(self._rows.start)

    @property
    def n_hits(self) -> int:
        """Number of hits."""
        return int(self._rows.stop - self._rows.start)

    @cached_property
    def identifiers(self) -> list[str]:
        """Identifiers of the hits' subjects as in the database."""
        return self._hits.headers.identifiers[self._rows]

    @cached_property
    def descriptions(self) -> list[str]:
        """Headers of the hits' subjects after the identifier."""
        return self._hits.headers.descriptions[self._rows]

    @cached_property
    def taxa(self) -> Sequence[Taxa] | None:
        """Taxa of the hits' subjects; None if the database has none."""
        taxa = self._hits.headers.taxa
        return None if taxa is None else taxa[self._rows]

    def taxon_texts(self, attribute: str, count: int | None = None, missing: str = NO_NAME) -> list[str]:
        """Return an attribute of `Taxon` for each hit: distinct values of its first taxa, with semicolons between."""
        texts = []
        for taxa in self.taxa or [()] * self.n_hits:
            values = dict.fromkeys(str(value) for taxon in taxa[:count] if (value := getattr(taxon, attribute)))
            texts.append(";".join(printable(value, " ") for value in values) or missing)
        return texts

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
        """Iteration that first included each hit, or the only iteration; shape (n_hits,), int64."""
        first = self.result.first_iterations  # never of a translated database, whose rows are others
        return np.full(self.n_hits, self.result.iteration) if first is None else first[self._rows]

    @property
    def hit_scores(self) -> IntArray:
        """Scores of the hits, shape (n_hits,), int64."""
        return self._hits.scores[self._rows]

    @cached_property
    def hit_statistics(self) -> HitStatistics:
        """Bit scores, E-values and z-scores of the hits."""
        return self._hits.statistics.take(self._rows)

    # lines

    def __len__(self) -> int:
        return len(self.hit_of_line)

    @property
    def places(self) -> IntArray:
        """Number of each line among its hit's alignments, from 0; shape (n,), int64."""
        return np.arange(len(self)) - np.searchsorted(self.hit_of_line, self.hit_of_line)

    @property
    def is_single(self) -> bool:
        """Whether each hit has one line."""
        return len(self) == self.n_hits

    def of_lines(self, of_hits: list[Cell]) -> list[Cell]:
        """Return the value of each line's hit."""
        return of_hits if self.is_single else [of_hits[row] for row in self.hit_of_line.tolist()]

    def by_hit(self, of_lines: Sequence[Cell]) -> list[list[Cell]]:
        """Return the values of lines as a list for each hit, which has at least one line."""
        if self.is_single:
            return [[each] for each in of_lines]
        ends = np.searchsorted(self.hit_of_line, np.arange(self.n_hits + 1)).tolist()
        return [list(of_lines[begin:end]) for begin, end in pairwise(ends)]


class AlignedHitBatch(HitBatch):
    """Consecutive hits of a result, with a line for each alignment.

    Parameters
    ----------
    result : SearchResult
        Their result.
    hits : HitTable
        All hits of the result.
    rows : slice
        Rows of the batch's hits in ``hits``.
    hsps : HspTable
        All alignments of the result.
    lines : slice
        Rows of the batch's alignments in ``hsps``.
    letters : AlignmentLetters, optional
        Letters of all alignments of the result; without them there are no rows of text.
    """

    def __init__(
        self,
        result: Any,
        hits: HitTable,
        rows: slice,
        hsps: HspTable,
        lines: slice,
        letters: AlignmentLetters | None = None,
    ) -> None:
        self._hsps, self._lines, self._letters = hsps.slice_rows(lines), lines, letters
        self.alignments: AlignmentTable = self._hsps.alignments
        hit_of_line = self._hsps.hits - rows.start
        super().__init__(result, hits, rows, hit_of_line, self.alignments.score, self._hsps.statistics)

    @property
    def mismatches(self) -> IntArray:
        """Pairs of different letters in each alignment, shape (n,), int64."""
        return self.alignments.length - self.alignments.identities - self.alignments.gaps

    @property
    def is_placed(self) -> bool:
        """Whether frames of DNA or parts of queries were aligned, so that positions in records differ."""
        return self._hsps.query_frames is not None or self._hsps.subject_frames is not None

    @cached_property
    def query_spans(self) -> tuple[IntArray, IntArray]:
        """Begins and ends of the aligned parts of the query, 0-based and half-open, each of shape (n,), int64.

        In nucleotides of the given strand where it is DNA.
        """
        return self._hsps.query_spans

    @property
    def query_lengths(self) -> IntArray:
        """Length that `query_spans` refer to, of the whole query if a part of it was searched; shape (n,)."""
        frames = self._hsps.query_frames
        return np.full(len(self), self.result.query_length) if frames is None else frames.dna_lengths

    @cached_property
    def subject_spans(self) -> tuple[IntArray, IntArray]:
        """Begins and ends of the aligned parts of the subjects, each of shape (n,)."""
        return self._hsps.subject_spans

    @property
    def query_frames(self) -> IntArray:
        """Frame of the query in each line, shape (n,), int64; 0 if it is protein."""
        return self._hsps.query_frame_numbers

    @property
    def subject_frames(self) -> IntArray:
        """Frame of the subject in each line, shape (n,), int64; 0 if it is protein."""
        return self._hsps.subject_frame_numbers

    @cached_property
    def query_ends(self) -> tuple[IntArray, IntArray]:
        """First and last residue of the aligned parts of the query as BLAST counts them, each of shape (n,), int64.

        From 1, the end included; first above last in frames of the other strand; 0 if no residue is aligned.
        """
        return _printed_ends(*self.query_spans, self.query_frames)

    @cached_property
    def subject_ends(self) -> tuple[IntArray, IntArray]:
        """First and last residue of the aligned parts of the subjects as `query_ends`, each of shape (n,)."""
        return _printed_ends(*self.subject_spans, self.subject_frames)

    @property
    def letters(self) -> AlignmentLetters:
        """Letters of all alignments of the result."""
        assert self._letters is not None, "made without letters"
        return self._letters

    @cached_property
    def rows(self) -> Rows:
        """Query rows, middle lines and subject rows."""
        return self.letters.rows(self._lines)

    @property
    def btops(self) -> list[str]:
        """BLAST's traceback operations of each line."""
        return self.letters.btops(self._lines)

    @property
    def query(self) -> str:
        """The whole query as the result's first alignment shows it."""
        return self.letters.query

    @property
    def queries(self) -> list[str]:
        """The whole query as each line's alignment shows it."""
        return self.letters.queries(self._lines)

    @property
    def subject_parts(self) -> list[str]:
        """The subject's aligned part of each line, without gaps."""
        return self.letters.subject_parts(self._lines)


def _printed_ends(starts: IntArray, ends: IntArray, frames: IntArray) -> tuple[IntArray, IntArray]:
    low, high, backwards = np.where(ends > starts, starts + 1, 0), np.where(ends > starts, ends, 0), frames < 0
    return np.where(backwards, high, low), np.where(backwards, low, high)


def hit_batches(result: Any) -> Iterator[HitBatch]:
    """Yield the hits of a `SearchResult` in batches, without alignments; nothing if there are no hits."""
    hits = result.table
    if (records := RecordHits.from_hits(hits)) is not None:
        hits = records.hits
    for begin in range(0, len(hits), MAX_BATCH_HITS):
        rows = slice(begin, min(begin + MAX_BATCH_HITS, len(hits)))
        table, lines, hit_of_line = hits, rows, np.arange(rows.stop - begin)
        if records is not None:
            lines = slice(*np.searchsorted(records.of_locus, (rows.start, rows.stop)).tolist())
            table, hit_of_line = records.loci, records.of_locus[lines] - begin
        yield HitBatch(result, hits, rows, hit_of_line, table.scores[lines], table.statistics.take(lines))


def aligned_batches(result: Any) -> Iterator[AlignedHitBatch]:
    """Yield the hits of a `SearchResult` in batches with their alignments; nothing if there are no hits."""
    if not len(result.hits):
        return
    hits, hsps = result.table, result.hsps
    order = None
    if (records := RecordHits.from_hits(hits)) is not None:
        order = records.order_of(hsps)
        hits, hsps = records.hits, hsps.take(order, records.of_hit[hsps.hits[order]])
    letters = letters_of(result.hits, order)
    ends = np.searchsorted(hsps.hits, np.arange(len(hits)), side="right")
    columns = np.concatenate([[0], np.cumsum(hsps.alignments.length)])[ends]
    begin = 0
    while begin < len(hits):
        columns_before = int(columns[begin - 1]) if begin else 0
        end = int(np.searchsorted(columns, columns_before + COLUMNS_PER_BATCH, side="right"))
        end = min(max(end, begin + 1), begin + MAX_BATCH_HITS)
        lines = slice(int(ends[begin - 1]) if begin else 0, int(ends[end - 1]))
        yield AlignedHitBatch(result, hits, slice(begin, end), hsps, lines, letters)
        begin = end
