"""Alignment of a pair, with counts, CIGAR, BTOP and rows of text.

Counts are BLAST's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.reference import Cigar
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring

if TYPE_CHECKING:
    from Bio.Align import Alignment


class AlignmentCounts(NamedTuple):
    """Counts of a `PairAlignment`, when computed in a batch."""

    query_end: int
    subject_end: int
    length: int
    identities: int
    positives: int
    gaps: int
    gap_openings: int


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two values are equal; arrays are compared as a whole."""
    is_array = isinstance(a, np.ndarray) or isinstance(b, np.ndarray)
    return a is b or (np.array_equal(a, b) if is_array else bool(a == b))


@dataclass(frozen=True, eq=False)
class PairAlignment:
    """An alignment of a query with a subject.

    Parameters
    ----------
    query, subject : ndarray, shape (n,), uint8
        The whole encoded sequences as they are scored, X where they are masked.
    scoring : Scoring
        What it was scored with.
    score : int
        Matrix units.
    query_start, subject_start : int
        First aligned residues, counted from 0.
    cigar : tuple of (int, str)
        Runs of ``M`` (a pair), ``I`` (a query residue opposite a gap) and ``D`` (a subject residue opposite a gap).
    query_letters, subject_letters : ndarray, shape (n,), uint8, or None
        The whole sequences in ASCII as they are shown, masked residues in lower case; None where nothing is masked.
    counts : AlignmentCounts or None
        What `swsearch.alignment_table` counted of it already; otherwise it is counted when that is asked for.
    query_rows : QueryProfile or None
        Scores by position, where the query is a profile; what is counted, and shown as alike, goes by letters.
    """

    query: ByteArray
    subject: ByteArray
    scoring: Scoring
    score: int
    query_start: int
    subject_start: int
    cigar: Cigar
    query_letters: ByteArray | None = None
    subject_letters: ByteArray | None = None
    counts: AlignmentCounts | None = field(default=None, repr=False, compare=False)
    query_rows: QueryProfile | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.counts is not None:
            vars(self).update(self.counts._asdict())  # cached properties, which are not computed again

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [each.name for each in fields(self) if each.compare]
        return all(_is_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.score, self.query_start, self.subject_start, self.cigar))

    def with_path(self, score: int, query_start: int, subject_start: int, cigar: Cigar) -> PairAlignment:
        """Return another alignment of the same sequences."""
        return replace(
            self, score=score, query_start=query_start, subject_start=subject_start, cigar=cigar, counts=None
        )

    def with_letters(self, query_letters: ByteArray | None, subject_letters: ByteArray | None) -> PairAlignment:
        """Return the same alignment with the letters it is shown with, each of shape (n,), uint8, or None."""
        if query_letters is None and subject_letters is None:
            return self
        return replace(self, query_letters=query_letters, subject_letters=subject_letters, counts=None)

    @cached_property
    def query_end(self) -> int:
        """One past the last aligned query residue."""
        return self.query_start + sum(n for n, op in self.cigar if op != "D")

    @cached_property
    def subject_end(self) -> int:
        """One past the last aligned subject residue."""
        return self.subject_start + sum(n for n, op in self.cigar if op != "I")

    @cached_property
    def length(self) -> int:
        """Number of columns, gaps included."""
        return sum(n for n, _ in self.cigar)

    @cached_property
    def gaps(self) -> int:
        """Number of residues that stand opposite a gap."""
        return sum(n for n, op in self.cigar if op != "M")

    @cached_property
    def gap_openings(self) -> int:
        """Number of gaps."""
        return sum(op != "M" for _, op in self.cigar)

    @cached_property
    def identities(self) -> int:
        """Number of columns with the same letter on both sides, masked or not; in DNA U and T are the same."""
        return int(np.count_nonzero(self.identical_pairs))

    @cached_property
    def positives(self) -> int:
        """Number of columns that are identical or score above 0."""
        a, b = self.paired_codes
        return int(np.count_nonzero(self.identical_pairs | (self.scoring.matrix.scores[a, b] > 0)))

    @property
    def mismatches(self) -> int:
        """Number of pairs of different letters."""
        return self.length - self.identities - self.gaps

    @property
    def cigar_string(self) -> str:
        """The CIGAR, such as ``12M1D30M``; I consumes the query, D the subject."""
        return "".join(f"{n}{op}" for n, op in self.cigar)

    @cached_property
    def column_ops(self) -> ByteArray:
        """Operation of each column, shape (length,), uint8: the ASCII code of ``M``, ``I`` or ``D``."""
        ops = np.frombuffer("".join(op for _, op in self.cigar).encode("ascii"), dtype=np.uint8)
        return np.repeat(ops, np.array([n for n, _ in self.cigar], dtype=np.int64))

    @cached_property
    def paired_codes(self) -> tuple[ByteArray, ByteArray]:
        """Codes of both sides of the columns that hold two residues, as they are scored; two of shape (n,), uint8."""
        return self._paired(self.query, self.subject)

    def _paired(self, query: ByteArray, subject: ByteArray) -> tuple[ByteArray, ByteArray]:
        """Return what the columns that hold two residues have of both sides."""
        ops, pair = self.column_ops, ord("M")
        a = query[self.query_start : self.query_end]
        b = subject[self.subject_start : self.subject_end]
        return a[ops[ops != ord("D")] == pair], b[ops[ops != ord("I")] == pair]

    @cached_property
    def display_letters(self) -> tuple[ByteArray, ByteArray]:
        """Both whole sequences in ASCII, each of shape (n,), uint8, as shown: masked residues in lower case."""
        decode = self.scoring.matrix.alphabet.decode_table
        query, subject = self.query_letters, self.subject_letters
        return (
            decode[self.query] if query is None else query,
            decode[self.subject] if subject is None else subject,
        )

    @property
    def identical_pairs(self) -> npt.NDArray[np.bool_]:
        """Mask of the residue pairs with equal letters, or U and T of DNA; shape (n_pairs,)."""
        alphabet = self.scoring.matrix.alphabet
        if self.query_letters is None and self.subject_letters is None:
            a, b = self.paired_codes
        else:
            query, subject = self.display_letters  # the letters that X stands for where they are masked
            a, b = self._paired(alphabet.encode_table[query], alphabet.encode_table[subject])
        if alphabet.synonyms:
            a, b = alphabet.identity_table[a], alphabet.identity_table[b]
        same: npt.NDArray[np.bool_] = a == b
        return same

    def query_row(self) -> str:
        """Return the query's aligned part, gaps as ``-``, masked residues in lower case."""
        return self._row(self.query, self.query_letters, self.query_start, self.query_end, "D")

    def subject_row(self) -> str:
        """Return the subject's aligned part, gaps as ``-``, masked residues in lower case."""
        return self._row(self.subject, self.subject_letters, self.subject_start, self.subject_end, "I")

    def _row(self, codes: ByteArray, letters: ByteArray | None, start: int, end: int, gap: str) -> str:
        """Return one side as text, ``-`` where the CIGAR has ``gap``."""
        characters = (
            self.scoring.matrix.alphabet.decode_table[codes[start:end]] if letters is None else letters[start:end]
        )
        row = np.full(self.length, ord("-"), dtype=np.uint8)
        row[self.column_ops != ord(gap)] = characters
        return row.tobytes().decode("ascii")

    def rows(self) -> tuple[str, str, str]:
        """Return the query's row, the middle line and the subject's row.

        The middle line holds the letter of an identity, ``+`` for another pair that scores above 0, else a blank,
        as BLAST prints it.
        """
        matrix = self.scoring.matrix
        a, b = self.paired_codes
        middle = np.full(self.length, ord(" "), dtype=np.uint8)
        unlike = np.where(matrix.scores[a, b] > 0, ord("+"), ord(" "))
        letters = matrix.alphabet.decode_table[a]
        if self.query_letters is not None:
            letters = self._paired(*self.display_letters)[0]
        middle[self.column_ops == ord("M")] = np.where(self.identical_pairs, letters, unlike)
        return self.query_row(), middle.tobytes().decode("ascii"), self.subject_row()

    def btop(self) -> str:
        """Return BLAST's trace-back operations: runs of identities as numbers, other columns as letter pairs."""
        return _btop(self.query_row().upper(), self.subject_row().upper(), self.differing_columns)

    @property
    def differing_columns(self) -> npt.NDArray[np.bool_]:
        """Mask of the columns with a gap or two different letters, shape (length,)."""
        unlike = np.ones(self.length, dtype=np.bool_)
        unlike[self.column_ops == ord("M")] = ~self.identical_pairs
        return unlike

    def recompute_score(self) -> int:
        """Add the score up again, column by column, masked residues as X, independently of how it was found."""
        rows = self.query_rows or self.scoring.rows(self.query)
        gaps = rows.gaps or PositionGapCosts.uniform(len(rows), self.scoring.gap_open, self.scoring.gap_extend)
        total, i, j = 0, self.query_start, self.subject_start
        for n, op in self.cigar:
            if op == "M":
                total += int(rows.scores[np.arange(i, i + n), self.subject[j : j + n]].sum(dtype=np.int64))
            elif op == "I":
                total -= int(gaps.deletion_open[i]) + int(gaps.deletion_extend[i : i + n].sum(dtype=np.int64))
            elif i == 0:  # before the query
                total -= self.scoring.gap_cost(n)
            else:
                total -= int(gaps.insertion_open[i - 1]) + n * int(gaps.insertion_extend[i - 1])
            i, j = i + n * (op != "D"), j + n * (op != "I")
        return total

    def to_biopython(self, query_id: str = "query", subject_id: str = "subject") -> Alignment:
        """Return a Bio.Align.Alignment: target is the subject, query the query, coordinates from 0.

        Its ``score`` is set; every format that Biopython writes ("sam", "psl", "fasta", ...) follows from it. What
        Biopython counts, it counts by letter: U and T of DNA are a mismatch there.
        """
        from Bio.Align import Alignment
        from Bio.Seq import Seq
        from Bio.SeqRecord import SeqRecord

        query_letters, subject_letters = (letters.tobytes().decode("ascii") for letters in self.display_letters)
        target = SeqRecord(Seq(subject_letters), id=subject_id, description="")
        query = SeqRecord(Seq(query_letters), id=query_id, description="")
        lengths = np.array([n for n, _ in self.cigar], dtype=np.int64)
        steps = [np.where([op != gap for _, op in self.cigar], lengths, 0) for gap in ("I", "D")]
        starts = (self.subject_start, self.query_start)
        corners = [np.cumsum([start, *step]) for start, step in zip(starts, steps, strict=True)]
        alignment = Alignment([target, query], np.array(corners))
        alignment.score = self.scoring.to_display(self.score)  # type: ignore[attr-defined]  # Biopython sets it so too
        return alignment


def _btop(top: str, bottom: str, different: npt.NDArray[np.bool_]) -> str:
    parts: list[str] = []
    begin = 0
    for column in np.flatnonzero(different).tolist():
        if column > begin:
            parts.append(str(column - begin))
        parts.append(top[column] + bottom[column])
        begin = column + 1
    if len(top) > begin:
        parts.append(str(len(top) - begin))
    return "".join(parts)
