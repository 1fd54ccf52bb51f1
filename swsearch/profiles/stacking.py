"""What a search found, laid below its query: pairwise alignments become rows of a `QueryAlignment`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from swsearch.alignments import AlignmentTable
from swsearch.blocks import FloatArray, IntArray
from swsearch.engines.pools import SequencePool
from swsearch.profiles.alignment import GAP, QueryAlignment, spread

PAIRS_TOGETHER = 1 << 20
"""Pairs of residues whose places are worked out in one go: 16 MB, so that rows of all hits of a database fit."""


@dataclass(frozen=True, eq=False)
class FoundSequences:
    """The subjects of a query's alignments, and which of them each alignment is of.

    Parameters
    ----------
    identifiers, descriptions : sequence of str
        One per subject.
    pool : (ndarray, ndarray)
        Codes of the whole subjects as they are stored, not as a mask scores them, end to end, and their offsets.
    places : ndarray, shape (n_subjects,), int64
        In the database; -1 of what does not come from one.
    of_subject : ndarray, shape (n_alignments,), int64
        Which of the subjects each alignment is of, counted from 0.
    evalues : ndarray, shape (n_alignments,), float64
        Of each alignment; NaN where there is none.
    """

    identifiers: Sequence[str]
    descriptions: Sequence[str]
    pool: SequencePool
    places: IntArray
    of_subject: IntArray
    evalues: FloatArray

    def take(self, chosen: npt.NDArray[np.integer]) -> FoundSequences:
        """Return what is found with some of the alignments only, their places of shape (n,); subjects all stay."""
        return replace(self, of_subject=self.of_subject[chosen], evalues=self.evalues[chosen])


def stack(
    query: QueryAlignment,
    found: FoundSequences,
    alignments: AlignmentTable,
    iteration: int = 1,
    earlier: QueryAlignment | None = None,
) -> QueryAlignment:
    """Lay alignments with a query below what is there, each a row of its own.

    Residues that stand opposite a gap of the query are kept as insertions. A row is left out if the same part of the
    same subject is there already in the same columns, and if it pairs no residues.

    Parameters
    ----------
    query : QueryAlignment
        The query alone, or with sequences, which stay as they are.
    found : FoundSequences
        The subjects.
    alignments : AlignmentTable
        Of the query's columns with these, in any order, which the rows keep.
    iteration : int, optional
        The search that found them.
    earlier : QueryAlignment, optional
        What the search before this was made with: a subject that is in it has its iteration.

    Returns
    -------
    QueryAlignment
    """
    places = found.places[found.of_subject]
    of_subject = found.of_subject.tolist()
    columns, insertions, inserted = laid_out(alignments, found.pool, found.of_subject, query.n_columns)
    rows = QueryAlignment(
        [found.identifiers[row] for row in of_subject],
        [found.descriptions[row] for row in of_subject],
        columns,
        alignments.subject_start,
        alignments.subject_end,
        insertions,
        inserted,
        places,
        found.evalues,
        _first_found(places, iteration, earlier),
    )
    chosen = _new_ones(query, rows, np.where(places < 0, -1 - found.of_subject, places))
    return query.followed_by(rows if len(chosen) == len(rows) else rows.take(chosen))


def laid_out(
    alignments: AlignmentTable, pool: SequencePool, of_subject: IntArray, n_columns: int
) -> tuple[npt.NDArray[np.uint8], IntArray, npt.NDArray[np.uint8]]:
    """Lay subjects out in the columns of a query.

    Parameters
    ----------
    alignments : AlignmentTable
        m of them.
    pool : (ndarray, ndarray)
        Codes of subjects, and their offsets.
    of_subject : ndarray, shape (m,), int64
        The subject of each.
    n_columns : int
        Residues of the query.

    Returns
    -------
    columns : ndarray, shape (m, n_columns), uint8
    insertions : ndarray, shape (n_insertions, 4), int64
    inserted : ndarray, shape (n_inserted,), uint8
        As `QueryAlignment` has them; sequences are counted from 0.
    """
    codes, offsets = pool
    lengths, operations = alignments.run_lengths, alignments.run_operations
    counts = np.diff(alignments.run_offsets)
    row = np.repeat(np.arange(len(alignments)), counts)
    in_query, in_subject = operations != ord("D"), operations != ord("I")
    first = alignments.run_offsets[:-1]
    query_at = _running(np.where(in_query, lengths, 0), first, counts) + np.repeat(alignments.query_start, counts)
    subject_at = _running(np.where(in_subject, lengths, 0), first, counts)
    subject_at += np.repeat(offsets[:-1][of_subject] + alignments.subject_start, counts)

    columns = np.full((len(alignments), n_columns), GAP, dtype=np.uint8)
    pairs = np.flatnonzero(in_query & in_subject)
    cells, places, paired = (row * n_columns + query_at)[pairs], subject_at[pairs], lengths[pairs]
    for some in _together(paired):
        columns.reshape(-1)[spread(cells[some], paired[some])] = codes[spread(places[some], paired[some])]

    only = ~in_query
    ends = np.cumsum(lengths[only])
    insertions = np.stack([row[only], query_at[only], ends - lengths[only], ends], axis=1)
    return columns, insertions, codes[spread(subject_at[only], lengths[only])]


def _together(lengths: IntArray) -> Iterator[slice]:
    """Yield runs of about `PAIRS_TOGETHER` columns, of the lengths of all, shape (n,)."""
    ends = np.cumsum(lengths)
    limits = np.arange(PAIRS_TOGETHER, int(ends[-1]) if len(ends) else 0, PAIRS_TOGETHER)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(ends, limits), [len(lengths)]])).tolist()
    return (slice(*bound) for bound in pairwise(bounds))


def _running(lengths: IntArray, first: IntArray, counts: IntArray) -> IntArray:
    """Return what stands before each run within its alignment; ``first`` and ``counts`` are its runs."""
    before = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=before[1:])
    running: IntArray = before[:-1] - np.repeat(before[first], counts)
    return running


def _new_ones(query: QueryAlignment, rows: QueryAlignment, places: IntArray) -> IntArray:
    """Return which rows have residues in columns and are not there already; subjects of no database are < 0."""
    spans = rows.spans
    keys = np.stack([places, rows.starts, rows.ends, *spans], axis=1)
    above = np.empty((0, 5), dtype=np.int64)
    if len(query) > 1:
        above = np.stack([query.subjects, query.starts, query.ends, *query.spans], axis=1)
        above = above[query.subjects >= 0]
    _, first = np.unique(np.concatenate([above, keys]), axis=0, return_index=True)
    new = np.sort(first[first >= len(above)]) - len(above)
    chosen: IntArray = new[(spans[1] > spans[0])[new]]
    return chosen


def _first_found(places: IntArray, iteration: int, earlier: QueryAlignment | None) -> IntArray:
    """Return the search that found each subject first."""
    iterations = np.full(len(places), iteration, dtype=np.int64)
    if earlier is None:
        return iterations
    known, first = np.unique(earlier.subjects, return_index=True)
    at = np.minimum(np.searchsorted(known, places), len(known) - 1)
    is_known = (places >= 0) & (known[at] == places)
    iterations[is_known] = np.minimum(earlier.iterations[first[at]], iteration)[is_known]
    return iterations
