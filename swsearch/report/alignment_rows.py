"""The letters of a result's alignments: rows of text and aligned parts, for many alignments at a time.

Alignments that were found together have their subjects in one pool, and their rows are made in a few passes over
arrays. Those that were found one by one, or of which a hit may have several, are asked one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from swsearch.alignment import PairAlignment
from swsearch.alignments import AlignmentTable
from swsearch.alphabet import N_CODES, Alphabet, ByteArray
from swsearch.blocks import IntArray
from swsearch.inputs import Query
from swsearch.results import HitList, SearchResult
from swsearch.results.table import SubjectCodes
from swsearch.scoring import Scoring

Rows = tuple[str, str, str]
"""The query's row, the middle line and the subject's row, as of `PairAlignment.rows`."""

_GAP = N_CODES - 1
"""The code of a gap in a row; no residue has it."""


class AlignmentLetters(Protocol):
    """The letters of the alignments that a result reports, in their order."""

    @property
    def query(self) -> str:
        """The whole query as it is shown, masked residues in lower case; empty where there is no alignment."""

    def queries(self, some: slice) -> list[str]:
        """Return the whole query as each alignment shows it."""

    def subject_parts(self, some: slice) -> list[str]:
        """Return the subjects' aligned parts as they are shown, without gaps."""

    def rows(self, some: slice) -> list[Rows]:
        """Return the rows of text of each."""


def letters_of(result: SearchResult) -> AlignmentLetters:
    """Return the letters of a result's alignments."""
    hits = result.hits
    if isinstance(hits, HitList) and not hits.may_have_several:
        alignments, subjects = hits.alignments, hits.subjects
        if alignments is not None and subjects is not None:
            return PooledLetters(hits.query, hits.scoring, alignments, subjects)
    return SingleLetters([hsp.pair for hit in hits for hsp in hit.hsps])


def alignment_rows(result: SearchResult) -> list[Rows]:
    """Return the rows of text of all alignments that a result reports."""
    return letters_of(result).rows(slice(0, len(result.hsps)))


class SingleLetters:
    """Letters of alignments that were found one by one; see `AlignmentLetters`."""

    def __init__(self, pairs: Sequence[PairAlignment]) -> None:
        self._pairs = pairs

    @property
    def query(self) -> str:
        """See `AlignmentLetters`."""
        return _text(self._pairs[0].shown[0]) if self._pairs else ""

    def queries(self, some: slice) -> list[str]:
        """See `AlignmentLetters`."""
        return [_text(pair.shown[0]) for pair in self._pairs[some]]

    def subject_parts(self, some: slice) -> list[str]:
        """See `AlignmentLetters`."""
        return [_text(pair.shown[1][pair.subject_start : pair.subject_end]) for pair in self._pairs[some]]

    def rows(self, some: slice) -> list[Rows]:
        """See `AlignmentLetters`."""
        return [pair.rows() for pair in self._pairs[some]]


class PooledLetters:
    """Letters of the alignments of one query that were found together; see `AlignmentLetters`."""

    def __init__(self, query: Query, scoring: Scoring, alignments: AlignmentTable, subjects: SubjectCodes) -> None:
        self._query, self._scoring, self._alignments, self._subjects = query, scoring, alignments, subjects
        self._alphabet = scoring.matrix.alphabet
        shown = self._alphabet.decode_table[query.codes] if query.letters is None else query.letters
        self._shown: ByteArray = shown
        self.query = _text(shown) if len(alignments) else ""

    def queries(self, some: slice) -> list[str]:
        """See `AlignmentLetters`."""
        return [self.query] * len(range(len(self._alignments))[some])

    def subject_parts(self, some: slice) -> list[str]:
        """See `AlignmentLetters`."""
        table = self._alignments[some]
        codes, letters = self._parts(table, some)
        shown = self._alphabet.decode_table[codes] if letters is None else letters
        return _texts(shown, _offsets(table.subject_end - table.subject_start))

    def _parts(self, table: AlignmentTable, some: slice) -> tuple[ByteArray, ByteArray | None]:
        """Return the codes and, where something is masked, the letters of the subjects' aligned parts, end to end."""
        subjects = self._subjects
        begins = subjects.offsets[:-1][some]
        starts, ends = begins + table.subject_start, begins + table.subject_end
        places = list(zip(starts.tolist(), ends.tolist(), strict=True))
        letters = None if subjects.letters is None else _gathered(subjects.letters, places)
        return _gathered(subjects.codes, places), letters

    def rows(self, some: slice) -> list[Rows]:
        """See `AlignmentLetters`."""
        table = self._alignments[some]
        operations = np.repeat(table.run_operations, table.run_lengths)
        of_query, of_subject = operations != ord("D"), operations != ord("I")
        places = list(zip(table.query_start.tolist(), table.query_end.tolist(), strict=True))
        codes, letters = self._parts(table, some)
        top = _spread(_gathered(self._query.codes, places), of_query, _GAP)
        bottom = _spread(codes, of_subject, _GAP)
        if letters is None and self._query.letters is None:
            decode = _with_gap(self._alphabet)
            rows = decode[top], _middle_lines(self._scoring)[top, bottom], decode[bottom]
        else:
            shown = self._alphabet.decode_table[codes] if letters is None else letters
            above = _spread(_gathered(self._shown, places), of_query, ord("-"))
            below = _spread(shown, of_subject, ord("-"))
            rows = above, _masked_middle(self._scoring, above, below, top, bottom), below
        offsets = _offsets(table.length)
        return list(zip(*(_texts(row, offsets) for row in rows), strict=True))


def _text(letters: ByteArray) -> str:
    return letters.tobytes().decode("ascii")


def _texts(pool: ByteArray, offsets: list[int]) -> list[str]:
    text = _text(pool)
    return [text[begin:end] for begin, end in pairwise(offsets)]


def _offsets(lengths: IntArray) -> list[int]:
    return [0, *np.cumsum(lengths).tolist()]


def _gathered(pool: ByteArray, places: list[tuple[int, int]]) -> ByteArray:
    """Return parts of a pool end to end."""
    empty = np.zeros(0, dtype=np.uint8)
    return np.concatenate([empty, *(pool[begin:end] for begin, end in places)])


def _spread(residues: ByteArray, where: npt.NDArray[np.bool_], gap: int) -> ByteArray:
    """Return a row that holds residues where there are some, and gaps elsewhere."""
    row = np.full(len(where), gap, dtype=np.uint8)
    row[where] = residues
    return row


def _with_gap(alphabet: Alphabet) -> ByteArray:
    """Return the letter of each code of a row, shape (32,), uint8."""
    decode = alphabet.decode_table[:N_CODES].copy()
    decode[_GAP] = ord("-")
    return decode


def _positive(scoring: Scoring) -> npt.NDArray[np.bool_]:
    """Return which codes of a row score above 0 with which, shape (32, 32)."""
    positive: npt.NDArray[np.bool_] = scoring.matrix.scores > 0
    positive = positive.copy()
    positive[_GAP], positive[:, _GAP] = False, False
    return positive


def _middle_lines(scoring: Scoring) -> ByteArray:
    """Return what stands between two codes of a row where nothing is masked, shape (32, 32), uint8."""
    alphabet = scoring.matrix.alphabet
    meant = alphabet.identity_table[:N_CODES]
    same = meant[:, None] == meant[None, :]
    same[_GAP], same[:, _GAP] = False, False
    unlike = np.where(_positive(scoring), ord("+"), ord(" "))
    return np.where(same, alphabet.decode_table[:N_CODES, None], unlike).astype(np.uint8)


def _masked_middle(
    scoring: Scoring, above: ByteArray, below: ByteArray, top: ByteArray, bottom: ByteArray
) -> ByteArray:
    """Return the middle lines of rows of letters whose codes, as they are scored, are other ones where masked."""
    alphabet = scoring.matrix.alphabet
    meant = alphabet.encode_table.copy()
    meant[meant < N_CODES] = alphabet.identity_table[meant[meant < N_CODES]]
    same = (meant[above] == meant[below]) & (top != _GAP) & (bottom != _GAP)
    unlike = np.where(_positive(scoring)[top, bottom], ord("+"), ord(" "))
    return np.where(same, above, unlike).astype(np.uint8)
