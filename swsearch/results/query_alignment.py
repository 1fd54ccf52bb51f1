"""Alignments of a result as the rows of a `QueryAlignment`."""

from __future__ import annotations

import numpy as np

from swsearch.alphabet import ByteArray
from swsearch.engines.pools import SequencePool, make_pool
from swsearch.errors import InputError
from swsearch.profiles.construction import AlignedSubjects, build_alignment
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.results.hit_list import HitList
from swsearch.results.result import SearchResult
from swsearch.scoring import Matrix


def alignment_of(
    result: SearchResult,
    iteration: int | None = None,
    *,
    earlier: QueryAlignment | None = None,
    largest: float | None = None,
) -> QueryAlignment:
    """Return a query with the alignments of its hits as rows, the best hit first, those of a hit one below the other.

    Letters are those of the sequences themselves, also where a mask scored X.

    Parameters
    ----------
    result : SearchResult
        Its hits are aligned now, one by one, where that was not done before.
    iteration : int, optional
        The search that it is of; what the result says by default.
    earlier : QueryAlignment, optional
        What the search was made with, the alignment of the result's profile by default: a subject that is in it has
        its iteration.
    largest : float, optional
        Largest E-value of a row; all are taken by default, and those without an E-value only then.

    Raises
    ------
    InputError
        If the result has no hits, and was made or pickled without its query's letters.
    """
    matrix = result.scoring.matrix
    query = QueryAlignment.of_query(result.query_id, result.query_description, query_codes(result))
    if not len(result.hits):
        return query
    hits, hsps = result.table, result.hsps
    found = AlignedSubjects(
        hits.headers.identifiers, hits.headers.descriptions, _subjects(result, matrix), hits.subjects,
        hsps.hits, hsps.numbers.evalues,
    )  # fmt: skip
    alignments = hsps.alignments
    if largest is not None:
        some = np.flatnonzero(hsps.numbers.evalues <= largest)
        found, alignments = found.take(some), alignments.take(some)
    if earlier is None and result.profile is not None:
        earlier = result.profile.alignment
    return build_alignment(query, found, alignments, result.iteration if iteration is None else iteration, earlier)


def query_codes(result: SearchResult) -> ByteArray:
    """Return the codes of a result's query as it was given, not as a mask scores it; shape (n,), uint8."""
    matrix = result.scoring.matrix
    if isinstance(result.hits, HitList):
        return _unmasked(result.hits.query.codes, result.hits.query.letters, matrix)
    if len(result.hits):
        pair = result.hits[0].pair
        return _unmasked(pair.query, pair.query_letters, matrix)
    if not result.query_length:
        return np.zeros(0, dtype=np.uint8)
    raise InputError(
        f"query {result.query_id!r}: the result has no hits and does not hold the query's letters, which an "
        "alignment begins with; write results as a search gives them"
    )


def _subjects(result: SearchResult, matrix: Matrix) -> SequencePool:
    """Return the hits' subjects as they are in the database."""
    hits = result.hits
    if isinstance(hits, HitList) and (subjects := hits.subjects) is not None:
        return _unmasked(subjects.codes, subjects.letters, matrix), subjects.offsets
    pairs = [hit.pair for hit in hits]
    return make_pool([_unmasked(pair.subject, pair.subject_letters, matrix) for pair in pairs])


def _unmasked(codes: ByteArray, letters: ByteArray | None, matrix: Matrix) -> ByteArray:
    """Return the codes of letters that are shown, in lower case where codes are X; codes where nothing is masked."""
    return codes if letters is None else matrix.alphabet.encode_table[letters]
