"""Batches of alignments with frameshifts: strands of DNA with proteins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np

from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.arrays import offsets_of
from swsearch.engines.cpu.columns import UncountedAlignments, count_pools
from swsearch.engines.cpu.tracing import align_strands
from swsearch.engines.pools import PoolPairs, make_pool
from swsearch.frameshift_alignment import NUCLEOTIDES_OF, SHIFT_MARKS, ShiftedAlignment
from swsearch.inputs import Query
from swsearch.recurrence import Recurrence
from swsearch.results import SubjectCodes
from swsearch.translation.frameshift_reference import read_codons


def align_with_shifts(
    queries: Sequence[Query], of_query: IntArray, subjects: SubjectCodes, recurrence: Recurrence, threads: int
) -> AlignmentTable:
    """Align strands with subjects.

    Parameters
    ----------
    of_query : ndarray, shape (n,), int64
        The strand that each subject is aligned with.
    subjects : SubjectCodes
        n of them.

    Returns
    -------
    AlignmentTable
        n alignments, counted as `swsearch.frameshift_alignment.ShiftedAlignment` counts them.
    """
    rows = np.arange(len(of_query), dtype=np.int64)
    pool, of_subjects = make_pool([query.codes for query in queries]), (subjects.codes, subjects.offsets)
    found = align_strands(pool, of_subjects, np.stack([of_query, rows], axis=1), recurrence, threads)
    cigars = _cigars(found)
    read, letters = _read(queries, of_query, found.query_start, cigars)
    plain = [
        tuple((sum(n for n, _ in some), op) for op, some in groupby(_without_shifts(cigar), key=itemgetter(1)))
        for cigar in cigars
    ]
    traced = zip(found.score.tolist(), [0] * len(rows), found.subject_start.tolist(), plain, strict=True)
    pairs, matrix = np.stack([rows, rows], axis=1), recurrence.scoring.matrix
    batch = PoolPairs(make_pool(read), of_subjects, pairs, (letters, subjects.letters))
    counted = count_pools(UncountedAlignments.of(list(traced)), batch, matrix, threads)
    steps = np.zeros(256, dtype=np.int64)
    for operation, n in NUCLEOTIDES_OF.items():
        steps[ord(operation)] = n
    is_shift = np.isin(found.run_operations, [ord(operation) for operation in SHIFT_MARKS])
    shifts = _sums(found.run_lengths * is_shift, found.run_offsets)
    openings = _sums((found.run_operations != ord("M")).astype(np.int64), found.run_offsets)
    nucleotides = _sums(found.run_lengths * steps[found.run_operations], found.run_offsets)
    return replace(
        counted, score=found.score, query_start=found.query_start, query_end=found.query_start + nucleotides,
        subject_start=found.subject_start, length=counted.length + shifts, gaps=counted.gaps + shifts,
        gap_openings=openings, run_offsets=found.run_offsets, run_lengths=found.run_lengths,
        run_operations=found.run_operations,
    )  # fmt: skip


def align_strand(
    query: Query, subject: ByteArray, letters: ByteArray | None, recurrence: Recurrence
) -> ShiftedAlignment:
    """Align one strand with a subject, codes of shape (n,), uint8, that is shown with letters of that shape."""
    pair = np.zeros((1, 2), dtype=np.int64)
    found = align_strands(make_pool([query.codes]), make_pool([subject]), pair, recurrence, 1)
    (cigar,) = _cigars(found)
    return ShiftedAlignment(
        query.codes, subject, recurrence.scoring, int(found.score[0]), int(found.query_start[0]),
        int(found.subject_start[0]), cigar, query.letters, letters, frame_shift=recurrence.frame_shift,
    )  # fmt: skip


def _cigars(found: UncountedAlignments) -> list[tuple[tuple[int, str], ...]]:
    operations = found.run_operations.tobytes().decode("ascii")
    runs = tuple(zip(found.run_lengths.tolist(), operations, strict=True))
    return [runs[begin:end] for begin, end in pairwise(found.run_offsets.tolist())]


def _without_shifts(cigar: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(n, operation) for n, operation in cigar if operation not in SHIFT_MARKS]


def _read(
    queries: Sequence[Query], of_query: IntArray, starts: IntArray, cigars: Sequence[tuple[tuple[int, str], ...]]
) -> tuple[list[ByteArray], ByteArray | None]:
    """Return the residues that alignments read, and their letters, one after the other, where some are masked."""
    strands = [queries[k] for k in of_query.tolist()]
    of_each = list(zip(strands, starts.tolist(), cigars, strict=True))
    read = [read_codons(strand.codes, start, cigar) for strand, start, cigar in of_each]
    if all(strand.letters is None for strand in strands):
        return read, None
    shown = [PROTEIN.decode_table[each.codes] if each.letters is None else each.letters for each in strands]
    letters = [read_codons(row, start, cigar) for row, (_, start, cigar) in zip(shown, of_each, strict=True)]
    return read, np.concatenate(letters)


def _sums(of_runs: IntArray, offsets: IntArray) -> IntArray:
    """Add up what runs have, by alignment; offsets of shape (n + 1,), result of shape (n,)."""
    return np.diff(offsets_of(of_runs)[offsets])
