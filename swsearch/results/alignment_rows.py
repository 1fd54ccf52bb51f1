"""Letters of alignments: rows of text and aligned parts, in batches.

Alignments computed together have their subjects in one pool, and the extension makes their rows. Others are read one
by one: those computed alone, those with frameshifts, and those of hits with several alignments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable, split_pool
from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.engines.cpu import columns
from swsearch.engines.pools import PoolPairs, make_pool
from swsearch.inputs import Query
from swsearch.results.hit import Hit
from swsearch.results.hit_list import HitList
from swsearch.results.table import SubjectCodes
from swsearch.scoring import Matrix, Scoring

Rows = tuple[Sequence[str], Sequence[str], Sequence[str]]
"""Query rows, middle lines and subject rows, as of `PairAlignment.rows`, one of each per alignment."""


def letters_of(hits: Sequence[Hit], order: IntArray | None = None) -> AlignmentLetters:
    """Return the letters of the alignments of hits, or of those at some places, shape (n,), in their order."""
    if isinstance(hits, HitList) and not hits.may_have_more_hsps:
        alignments, subjects, numbers = hits.alignments, hits.subjects, hits.query_numbers
        is_shifted = hits.query.frame is not None and hits.query.frame.step == 1
        if alignments is not None and subjects is not None and not is_shifted:
            if order is not None:
                alignments, subjects, numbers = alignments.take(order), subjects.take(order), numbers[order]
            return PooledLetters(hits.queries, numbers, hits.scoring, alignments, subjects)
    pairs = [hsp.pair for hit in hits for hsp in hit.hsps]
    return SingleLetters(pairs if order is None else [pairs[place] for place in order.tolist()])


class SingleLetters:
    """Letters of alignments that are read one by one, in the order in which a result reports them."""

    def __init__(self, pairs: Sequence[PairAlignment]) -> None:
        self._pairs = pairs

    @property
    def query(self) -> str:
        """The whole query as it is shown, masked residues in lower case; empty without alignments."""
        return _text(self._pairs[0].display_letters[0]) if self._pairs else ""

    def queries(self, rows: slice) -> list[str]:
        """Return the whole query as each alignment shows it."""
        return [_text(pair.display_letters[0]) for pair in self._pairs[rows]]

    def subject_parts(self, rows: slice) -> list[str]:
        """Return the aligned parts of the subjects as they are shown, without gaps."""
        return [_text(pair.display_letters[1][pair.subject_start : pair.subject_end]) for pair in self._pairs[rows]]

    def rows(self, some: slice) -> Rows:
        """Return the rows of text."""
        queries, middle_lines, subjects = zip(*(pair.rows() for pair in self._pairs[some]), strict=True)
        return queries, middle_lines, subjects

    def btops(self, rows: slice) -> list[str]:
        """Return BLAST's traceback operations of each alignment."""
        return [pair.btop() for pair in self._pairs[rows]]


class PooledLetters:
    """Letters of alignments that were found together.

    Parameters
    ----------
    queries : sequence of Query
        One query, or the frames of one.
    numbers : ndarray, shape (n,), int64
        Query of each alignment.
    scoring : Scoring
        Scoring of the alignments.
    alignments : AlignmentTable
        n of them.
    subjects : SubjectCodes
        The subject of each.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        numbers: IntArray,
        scoring: Scoring,
        alignments: AlignmentTable,
        subjects: SubjectCodes,
    ) -> None:
        self._queries, self._numbers, self._alignments, self._subjects = queries, numbers, alignments, subjects
        self._matrix, self._alphabet = scoring.matrix, scoring.matrix.alphabet
        self._shown = [
            self._alphabet.decode_table[query.codes] if query.letters is None else query.letters for query in queries
        ]
        self.query = _text(self._shown[int(numbers[0])]) if len(alignments) else ""

    def queries(self, rows: slice) -> list[str]:
        """Return the whole query as each alignment shows it."""
        texts = list(map(_text, self._shown))
        return [texts[number] for number in self._numbers[rows].tolist()]

    def subject_parts(self, rows: slice) -> list[str]:
        """Return the aligned parts of the subjects as they are shown, without gaps."""
        table, subjects = self._alignments[rows], self._subjects
        begins = subjects.offsets[:-1][rows]
        places = zip((begins + table.subject_start).tolist(), (begins + table.subject_end).tolist(), strict=True)
        letters = subjects.codes if subjects.letters is None else subjects.letters
        parts = np.concatenate([np.zeros(0, dtype=np.uint8), *(letters[begin:end] for begin, end in places)])
        if subjects.letters is None:
            parts = self._alphabet.decode_table[parts]
        return split_pool(parts, np.concatenate([[0], np.cumsum(table.subject_end - table.subject_start)]))

    def rows(self, some: slice) -> Rows:
        """Return the rows of text."""
        query, middle, subject, offsets = columns.rows_of(*self._pools(some), threads=1)
        return split_pool(query, offsets), split_pool(middle, offsets), split_pool(subject, offsets)

    def btops(self, rows: slice) -> list[str]:
        """Return BLAST's traceback operations of each alignment."""
        return columns.btops_of(*self._pools(rows), threads=1)

    def _pools(self, some: slice) -> tuple[AlignmentTable, PoolPairs, Matrix]:
        """Return the arguments of the extension; one thread is enough, because other threads score meanwhile."""
        table, subjects, queries = self._alignments[some], self._subjects, self._queries
        rows = np.arange(len(self._alignments), dtype=np.int64)[some]
        pairs = np.stack([self._numbers[some], rows], axis=1)
        is_masked = any(query.letters is not None for query in queries)
        letters = np.concatenate(self._shown) if is_masked else None, subjects.letters
        query = make_pool([query.codes for query in queries])
        batch = PoolPairs(query, (subjects.codes, subjects.offsets), pairs, letters)
        return table, batch, self._matrix


AlignmentLetters = SingleLetters | PooledLetters
"""Letters of the alignments that a result reports, in their order."""


def _text(letters: ByteArray) -> str:
    return letters.tobytes().decode("ascii")
