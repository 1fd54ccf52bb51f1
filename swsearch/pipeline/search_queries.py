"""Queries of a search: proteins, profiles, or the reading frames of DNA.

Each frame is a query of its own for engines, selection and null models. The hits of a DNA query are the hits of all
its frames; each subject keeps its best frame. That is exact: the best N of the query are among the best N of its
frames.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alphabet import DNA, ByteArray
from swsearch.blocks import IntArray, letters_with_mask, runs_of
from swsearch.errors import InputError, OptionError, SequenceError
from swsearch.inputs import QueriesLike, Query, read_queries
from swsearch.options.kinds import SortKey
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.prefetch import parallel_for
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects, concatenate
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.scoring import Scoring
from swsearch.translation import CODON, Frame, QueryTranslation
from swsearch.translation.genetic_codes import reverse_complement, strand_codons, translated_frames

if TYPE_CHECKING:
    from swsearch.options.kinds import QueryFormat


MIN_LETTERS = 10
"""Letters from which on a sequence is looked at for whether it is DNA: fewer may be a primer of ambiguous letters."""

MIN_BASES = 0.5
"""Share of its letters, N not counted, that are bases in DNA; of a protein that has only letters of DNA by chance,
about a third."""

_BASES = np.isin(np.frombuffer(DNA.letters.encode(), dtype=np.uint8), np.frombuffer(b"ACGTU", dtype=np.uint8))
_ANY = DNA.letters.index("N")

TRANSLATE = "add --translate (in Python translate=True)"
"""Remedy for DNA where proteins are expected."""

_REMEDY = "leave out --translate (in Python translate=True) for proteins and profiles"


def search_queries(
    queries: QueriesLike, options: SearchOptions, query_format: QueryFormat = "auto", argument: str = "queries"
) -> list[Query]:
    """Read the queries of a search.

    Returns
    -------
    list of Query
        Not empty; with codes of `swsearch.alphabet.DNA` where they are to be translated.
    """
    if options.translation is None:
        alphabet = options.scoring.matrix.alphabet
        if alphabet.is_structural and query_format not in ("auto", "fasta"):
            raise OptionError("query_format", query_format, f"auto or fasta with --alphabet {alphabet.name}")
        return read_queries(
            queries, alphabet, argument=argument, allow_dna=options.allow_dna,
            scoring=None if alphabet.is_structural else options.scoring, query_format=query_format, remedy=TRANSLATE,
        )  # fmt: skip
    if query_format not in ("auto", "fasta"):
        raise OptionError("query_format", query_format, "auto or fasta", _REMEDY)
    try:
        queries_read = read_queries(_as_letters(queries), DNA, argument=argument)
    except SequenceError as error:
        if "is no residue letter" not in error.problem:
            raise
        raise SequenceError(error.source, f"{error.problem}; {_REMEDY}", error.record, error.line) from None
    _check_dna(queries_read, argument)
    return queries_read


def query_warnings(source: str, queries: Sequence[Query]) -> list[str]:
    """Return a warning about queries without residues, if there are any."""
    empty = [query.identifier for query in queries if not len(query.codes)]
    have = "query has" if len(empty) == 1 else "queries have"
    return [f"{source}: {len(empty):,} {have} no residues, e.g. {empty[0]!r}"] if empty else []


def _as_letters(queries: Any) -> Any:
    """Return queries with records of a database as (header, letters); raise `InputError` for profiles."""
    from swsearch.db import Record

    def letters(record: Any) -> Any:
        if isinstance(record, (Profile, QueryAlignment)):
            raise InputError(f"queries: got a {type(record).__name__}, expected DNA; {_REMEDY}")
        if isinstance(record, Record):
            return f"{record.identifier} {record.description}", letters_with_mask(
                record.codes, record.masked
            ).tobytes()
        return record

    is_pair = isinstance(queries, tuple) and len(queries) == 2 and isinstance(queries[0], str)
    if isinstance(queries, (list, tuple)) and not is_pair:
        return [letters(each) for each in queries]
    return letters(queries)


def _check_dna(queries: Sequence[Query], argument: str) -> None:
    """Raise if a query looks like protein whose letters are all letters of DNA by chance."""
    for query in queries:
        letters = np.count_nonzero(query.codes != _ANY)
        if letters >= MIN_LETTERS and np.count_nonzero(_BASES[query.codes]) < MIN_BASES * letters:
            problem = f"fewer than half of its {letters:,} letters other than N are bases (A, C, G, T, U); {_REMEDY}"
            raise SequenceError(argument, problem, query.identifier)


def prepare_queries(queries: Sequence[Query], options: SearchOptions, threads: int = 1) -> list[Query]:
    """Return the scored queries, masked: queries or parts of them, or the frames of DNA queries in order."""
    translation = options.translation
    if translation is None:
        masked = [clip_query(query.with_mask(options.query_mask), options.query_loc) for query in queries]
        return (
            parallel_for(partial(with_contexts, scoring=options.scoring), masked, threads)
            if options.contexts
            else masked
        )
    return [frame.with_mask(options.query_mask) for query in queries for frame in query_frames(query, translation)]


def with_contexts(query: Query, scoring: Scoring) -> Query:
    """Return a query with the profile that follows from its residues' neighbours; one that has a profile keeps it."""
    if query.profile is not None or not len(query.codes):
        return query
    from swsearch.profiles.contexts import context_profile

    return replace(query, profile=context_profile(query.identifier, query.description, query.codes, scoring))


def clip_query(query: Query, loc: tuple[int, int] | None) -> Query:
    """Return the part of a query that is searched in place of the whole, as ``blastp -query_loc`` has it.

    Only the part is scored, and statistics are of its length; positions count on the whole query all the same.

    Parameters
    ----------
    loc : (int, int) or None
        First and last residue, counted from 1; what is behind the query's end is left out of account.
    """
    if loc is None:
        return query
    first, last = loc
    if query.profile is not None or query.frame is not None:
        what = "a profile" if query.profile is not None else "translated DNA"
        raise InputError(
            f"query {query.identifier}: got --query-loc with {what}, expected a protein; cut it beforehand"
        )
    if first > len(query.codes):
        raise InputError(
            f"query {query.identifier}: got {len(query.codes):,} residues, expected at least {first:,} for "
            f"--query-loc {first}-{last}"
        )
    place = slice(first - 1, last)
    letters = None if query.letters is None else query.letters[place]
    return replace(
        query, codes=query.codes[place], letters=letters, lower=(), frame=Frame(0, len(query.codes), first - 1)
    )


def query_frames(query: Query, translation: QueryTranslation) -> Iterator[Query]:
    """Yield the translated frames of a query as queries; the query has codes of `swsearch.alphabet.DNA`.

    With frame shifts these are its strands, which have a codon at each nucleotide. A residue is lower case where one
    of its three letters is.
    """
    n, step = len(query.codes), CODON if translation.frame_shift is None else 1
    lower = np.zeros(n, dtype=np.bool_)
    for begin, end in query.lower:
        lower[begin:end] = True
    read = translated_frames if step == CODON else _strands
    for number, residues in read(query.codes, translation.genetic_code, translation.frames):
        runs: tuple[tuple[int, int], ...] = ()
        if query.lower and len(residues):
            letters = lower if number > 0 else lower[::-1]
            codons = np.lib.stride_tricks.sliding_window_view(letters, CODON)[abs(number) - 1 :: step]
            runs = tuple(runs_of(np.any(codons, axis=1)))
        yield Query(query.identifier, query.description, residues, runs, frame=Frame(number, n, step=step))


def _strands(codes: ByteArray, code: int, numbers: Sequence[int]) -> Iterator[tuple[int, ByteArray]]:
    """Yield strands, each with its number."""
    for number in numbers:
        yield number, strand_codons(codes if number > 0 else reverse_complement(codes), code)


def best_frame_hits(
    parts: Sequence[RankedSubjects], limit: int, sort: SortKey = "evalue"
) -> tuple[IntArray, IntArray]:
    """Choose each subject's best frame, and the best subjects.

    Parameters
    ----------
    parts : sequence of RankedSubjects
        The hits of each frame, all of the same order.
    sort : {"evalue", "score"}, optional
        What the order is by, if there are E-values.

    Returns
    -------
    frames : ndarray, shape (n,), int64
        Which frame each hit is of, the best first. Where a subject is as good in several, the first of these has it.
    rows : ndarray, shape (n,), int64
        Its place among the hits of all frames, one frame's after the other's.
    """
    frames, every = np.repeat(np.arange(len(parts)), [len(each) for each in parts]), concatenate(parts)
    by_score = (frames, every.subjects, -every.scores)
    order = np.lexsort(by_score if every.evalues is None or sort == "score" else (*by_score, every.evalues))
    by_subject = np.argsort(every.subjects[order], kind="stable")  # the best of each subject first
    places = every.subjects[order][by_subject]
    first = np.ones(len(places), dtype=np.bool_)
    first[1:] = places[1:] != places[:-1]
    rows = order[np.sort(by_subject[first])][:limit]
    return frames[rows], rows


def merge_frames(selections: Sequence[QueryCandidates]) -> QueryCandidates:
    """Combine the notes of a DNA query's frames: the first statistics and doubts, and all counts.

    Candidates are those of one frame.
    """
    if len(selections) == 1:
        return selections[0]
    counts = [each.distribution for each in selections if each.distribution is not None]
    return replace(
        next((each for each in selections if each.statistics is not None), selections[0]),
        distribution=functools.reduce(operator.add, counts) if counts else None,
        warning=next((each.warning for each in selections if each.warning), ""),
    )
