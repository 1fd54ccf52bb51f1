"""Hits and alignments as columns, one row each.

A search makes these tables. Writers of tables and data frames read them directly. A `swsearch.results.hit.Hit` is
made from a row on access.

The frames of one record of a translated database have hits of their own. Readers of BLAST's formats expect all
alignments of a subject below one heading, the best first: `RecordHits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.arrays import offsets_of, ranges
from swsearch.db.taxonomy import Taxa
from swsearch.extension import load
from swsearch.lazy import Lazy
from swsearch.results.hit import Hit, Hsp
from swsearch.statistics.methods import HitStatistics
from swsearch.translation import Frame, Frames


def hit_statistics(rows: Sequence[Hit | Hsp]) -> HitStatistics:
    """Return the numbers of hits or alignments as columns."""
    names = ("bit_score", "evalue", "z_score", "evalue_published")
    return HitStatistics(*(np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in names))


class Headers:
    """Identifiers and descriptions of subjects, parsed on first access.

    Parameters
    ----------
    pool : bytes
        The header lines without ``>``, one after the other.
    offsets : ndarray, shape (n + 1,), int64
        Where each begins, and the end of the last.
    taxa : Lazy, optional
        Reads the taxa of the subjects, where the database knows them.
    first : int, optional
        Where those of the first subject stand among these.
    """

    def __init__(self, pool: bytes, offsets: IntArray, taxa: Lazy[list[Taxa]] | None = None, first: int = 0) -> None:
        self._pool, self._offsets, self._taxa, self._first = pool, offsets, taxa, first

    @classmethod
    def from_texts(cls, texts: Sequence[tuple[str, str]], taxa: Sequence[Taxa] | None = None) -> Headers:
        """Return the headers of subjects with known identifiers, descriptions and, optionally, taxa."""
        headers = cls(b"", np.zeros(1, dtype=np.int64))
        headers.__dict__["identifiers"] = [identifier for identifier, _ in texts]
        headers.__dict__["descriptions"] = [description for _, description in texts]
        headers.__dict__["taxa"] = None if taxa is None else list(taxa)
        return headers

    def slice_rows(self, begin: int, end: int) -> Headers:
        """Return some that stand together."""
        first, last = int(self._offsets[begin]), int(self._offsets[end])
        offsets = self._offsets[begin : end + 1] - first
        return Headers(self._pool[first:last], offsets, self._taxa, self._first + begin)

    @cached_property
    def taxa(self) -> list[Taxa] | None:
        """The taxa of each; None where the database knows none."""
        return None if self._taxa is None else self._taxa.get()[self._first : self._first + len(self._offsets) - 1]

    def take(self, rows: IntArray) -> Headers:
        """Return some, rows of shape (m,), in their order."""
        places, texts = rows.tolist(), self.texts
        taxa = None if self.taxa is None else [self.taxa[row] for row in places]
        return Headers.from_texts([texts[row] for row in places], taxa)

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Identifier and description of each."""
        return list(zip(self.identifiers, self.descriptions, strict=True))

    @cached_property
    def identifiers(self) -> list[str]:
        """The first word of each header."""
        return self._parts(is_description=False)

    @cached_property
    def descriptions(self) -> list[str]:
        """Descriptions."""
        return self._parts(is_description=True)

    def _parts(self, is_description: bool) -> list[str]:
        parts: list[str] = load().header_parts(self._pool, self._offsets, is_description)
        return parts


@dataclass(frozen=True, eq=False)
class HitTable:
    """The hits of a query as columns, best first.

    Parameters
    ----------
    subjects : ndarray, shape (n,), int64
        Places in the database.
    subject_lengths : ndarray, shape (n,), int64
        Residues that were scored.
    scores : ndarray, shape (n,), int64
        Exact, matrix units.
    statistics : HitStatistics
        Of the scores.
    headers : Headers
        Of the subjects.
    query_frames : ndarray, shape (n,), int64, or None
        Which of ``queries`` of the `HitList` each hit is of, where these are frames of one DNA record.
    subject_frames : Frames or None
        The frame of DNA that each subject is a piece of, where the database is translated.
    records : ndarray, shape (n,), int64, or None
        Places in the input of the DNA records that subjects are pieces of; None where each subject is a record.
    """

    subjects: IntArray
    subject_lengths: IntArray
    scores: IntArray
    statistics: HitStatistics
    headers: Headers
    query_frames: IntArray | None = None
    subject_frames: Frames | None = None
    records: IntArray | None = None

    def __len__(self) -> int:
        return len(self.subjects)

    def take(self, rows: IntArray) -> HitTable:
        """Return some hits, rows of shape (m,), in their order."""
        columns = {name: column.take(rows) for name, column in vars(self).items() if column is not None}
        return replace(self, **columns)

    @property
    def record_places(self) -> IntArray:
        """Places of the database's records in its input, shape (n,), int64."""
        return self.subjects if self.records is None else self.records

    @property
    def record_lengths(self) -> IntArray:
        """Lengths of the database's records, shape (n,), int64: nucleotides where they were translated."""
        return self.subject_lengths if self.subject_frames is None else self.subject_frames.dna_lengths

    @classmethod
    def from_hits(cls, hits: Sequence[Hit]) -> HitTable:
        """Return the columns of hits that were made one by one."""
        lengths = [
            hit.subject_length if hit.subject_frame is None else len(hit.pair.subject) for hit in hits
        ]  # of DNA, nucleotides are known and residues are in the alignment
        return cls(
            np.array([hit.subject_index for hit in hits], dtype=np.int64),
            np.array(lengths, dtype=np.int64),
            np.array([hit.score for hit in hits], dtype=np.int64),
            hit_statistics(hits),
            Headers.from_texts([(hit.subject_id, hit.subject_description) for hit in hits], _taxa_of(hits)),
            subject_frames=frames_of([hit.subject_frame for hit in hits]),
        )  # a hit knows its record's place alone, so that this stands for both


def _taxa_of(hits: Sequence[Hit]) -> list[Taxa] | None:
    taxa = [hit.taxa for hit in hits]
    return None if None in taxa else [each for each in taxa if each is not None]


def frames_of(frames: Sequence[Frame | None]) -> Frames | None:
    """Return the frames of all rows as columns; None where there are none."""
    present = [frame for frame in frames if frame is not None]
    if present and len(present) < len(frames):
        raise ValueError(f"got frames of {len(present)} rows out of {len(frames)}, expected those of all or of none")
    return Frames.from_frames(present) if present else None


@dataclass(frozen=True, eq=False)
class HspTable:
    """The alignments that are reported of a query's hits, as columns: those of a hit stand together, the best first.

    Parameters
    ----------
    hits : ndarray, shape (m,), int64
        The row of each alignment's hit, ascending.
    alignments : AlignmentTable
        m of them.
    statistics : HitStatistics
        Of their scores.
    query_frames, subject_frames : Frames or None
        The frame of DNA that each side of an alignment is in, m of them; None where that side is protein.
    """

    hits: IntArray
    alignments: AlignmentTable
    statistics: HitStatistics
    query_frames: Frames | None = None
    subject_frames: Frames | None = None

    def __len__(self) -> int:
        return len(self.hits)

    def take(self, rows: IntArray, hits: IntArray) -> HspTable:
        """Return some alignments, rows of shape (m,), in their order, as those of other hits, shape (m,)."""
        return HspTable(hits, self.alignments.take(rows), self.statistics.take(rows), *self._frames_of(rows))

    def slice_rows(self, rows: slice) -> HspTable:
        """Return alignments that stand together, which share this table's memory."""
        return HspTable(self.hits[rows], self.alignments[rows], self.statistics.take(rows), *self._frames_of(rows))

    def _frames_of(self, rows: slice | IntArray) -> list[Frames | None]:
        """Return the frames of both sides of some alignments."""
        both = self.query_frames, self.subject_frames
        return [None if frames is None else frames.take(rows) for frames in both]

    @property
    def query_spans(self) -> tuple[IntArray, IntArray]:
        """Begins and ends of the aligned parts of the query, 0-based and half-open, each of shape (m,), int64.

        In nucleotides of the given strand where it is DNA.
        """
        alignments = self.alignments
        return _spans(self.query_frames, alignments.query_start, alignments.query_end)

    @property
    def subject_spans(self) -> tuple[IntArray, IntArray]:
        """Spans on the subjects, each of shape (m,)."""
        alignments = self.alignments
        return _spans(self.subject_frames, alignments.subject_start, alignments.subject_end)

    @property
    def query_frame_numbers(self) -> IntArray:
        """Numbers of the frames that alignments begin in, shape (m,), int64; 0 where queries are protein."""
        return _frame_numbers(self.query_frames, self.alignments.query_start)

    @property
    def subject_frame_numbers(self) -> IntArray:
        """Frame numbers of the subjects, shape (m,)."""
        return _frame_numbers(self.subject_frames, self.alignments.subject_start)

    @classmethod
    def from_hits(cls, hits: Sequence[Hit]) -> HspTable:
        """Return the columns of hits that were made one by one, or that may have several alignments."""
        row_hsps = [(row, hsp) for row, hit in enumerate(hits) for hsp in hit.hsps]
        scores = np.array([hsp.score for _, hsp in row_hsps], dtype=np.int64)
        return cls(
            np.array([row for row, _ in row_hsps], dtype=np.int64),
            replace(AlignmentTable.from_pairs([hsp.pair for _, hsp in row_hsps]), score=scores),
            hit_statistics([hsp for _, hsp in row_hsps]),
            frames_of([hsp.query_frame for _, hsp in row_hsps]),
            frames_of([hsp.subject_frame for _, hsp in row_hsps]),
        )


def _spans(frames: Frames | None, begins: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    return (begins, ends) if frames is None else frames.dna_spans(begins, ends)


def _frame_numbers(frames: Frames | None, begins: IntArray) -> IntArray:
    return np.zeros(len(begins), dtype=np.int64) if frames is None else frames.numbers_at(begins)


@dataclass(frozen=True, eq=False)
class SubjectCodes:
    """The subjects of a query's hits.

    Parameters
    ----------
    codes : ndarray, shape (total length,), uint8
        One after the other as they are scored, X where they are masked.
    letters : ndarray, shape (total length,), uint8, or None
        ASCII as alignments show them, masked residues in lower case; None where nothing is masked.
    offsets : ndarray, shape (n + 1,), int64
        Where each begins, and the end of the last.
    is_masked : ndarray, shape (n,), bool, or None
        Which subjects have something masked; None where nothing is.
    """

    codes: ByteArray
    letters: ByteArray | None
    offsets: IntArray
    is_masked: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None

    def codes_of(self, row: int) -> ByteArray:
        """Return a subject's codes as they are scored, shape (length,), uint8."""
        return self.codes[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def letters_of(self, row: int) -> ByteArray | None:
        """Return the letters that a subject is shown with, shape (length,), uint8; None if none is masked."""
        if self.letters is None or (self.is_masked is not None and not self.is_masked[row]):
            return None
        return self.letters[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def slice_rows(self, begin: int, end: int) -> SubjectCodes:
        """Return some that stand together, in memory of their own."""
        residues = slice(int(self.offsets[begin]), int(self.offsets[end]))
        letters = None if self.letters is None else self.letters[residues].copy()
        masked = None if self.is_masked is None else self.is_masked[begin:end].copy()
        return SubjectCodes(
            self.codes[residues].copy(), letters, self.offsets[begin : end + 1] - residues.start, masked
        )

    @classmethod
    def concatenate(cls, parts: Sequence[SubjectCodes]) -> SubjectCodes:
        """Return the subjects of several, one after the other."""
        no_codes: ByteArray = np.empty(0, dtype=np.uint8)
        offsets = offsets_of(
            np.concatenate([np.empty(0, dtype=np.int64), *(np.diff(each.offsets) for each in parts)])
        )
        codes = np.concatenate([no_codes, *(each.codes for each in parts)])
        if all(each.letters is None for each in parts):
            return cls(codes, None, offsets)
        masked = [
            np.zeros(len(each.offsets) - 1, dtype=np.bool_) if each.is_masked is None else each.is_masked
            for each in parts
        ]
        letters = [PROTEIN.decode_table[each.codes] if each.letters is None else each.letters for each in parts]
        return cls(codes, np.concatenate(letters), offsets, np.concatenate(masked))

    def take(self, rows: IntArray) -> SubjectCodes:
        """Return some, rows of shape (m,), in their order."""
        lengths = np.diff(self.offsets)[rows]
        offsets, places = offsets_of(lengths), ranges(self.offsets[:-1][rows], lengths)
        letters = None if self.letters is None else self.letters[places]
        masked = None if self.is_masked is None else self.is_masked[rows]
        return SubjectCodes(self.codes[places], letters, offsets, masked)


@dataclass(frozen=True, eq=False)
class RecordHits:
    """The records of a result's hits, in the order of the best hit of each.

    Parameters
    ----------
    hits : HitTable
        The best hit of each record, m of them.
    loci : HitTable
        All n hits, those of a record together.
    of_locus : ndarray, shape (n,), int64
        Row of each locus's record, ascending.
    of_hit : ndarray, shape (n,), int64
        Row of each hit's record, in the result's order.
    """

    hits: HitTable
    loci: HitTable
    of_locus: IntArray
    of_hit: IntArray

    @classmethod
    def from_hits(cls, hits: HitTable) -> RecordHits | None:
        """Return the records of hits; None if each hit has a record of its own."""
        if hits.subject_frames is None:
            return None
        _, first, of_hit = np.unique(hits.record_places, return_index=True, return_inverse=True)
        if len(first) == len(hits):
            return None
        by_rank = np.argsort(first)
        rank = np.empty(len(first), dtype=np.int64)
        rank[by_rank] = np.arange(len(first))
        ranks = rank[of_hit.reshape(-1)]
        order = np.argsort(ranks, kind="stable")
        return cls(hits.take(first[by_rank]), hits.take(order), ranks[order], ranks)

    def order_of(self, hsps: HspTable) -> IntArray:
        """Return the rows of alignments by record, shape (k,): within a record by E-value, then by score."""
        evalues, scores = hsps.statistics.evalues, hsps.alignments.score
        return np.lexsort((-scores, np.where(np.isnan(evalues), 0.0, evalues), self.of_hit[hsps.hits]))


def shown_hits(hits: HitTable) -> HitTable:
    """Return the hits of a report in its order: the best hit of each record."""
    records = RecordHits.from_hits(hits)
    return hits if records is None else records.hits
