"""Queries as a search takes them: proteins and profiles, or DNA where it is to be translated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alphabet import DNA
from swsearch.errors import InputError, OptionError, SequenceError
from swsearch.inputs import QueriesLike, Query, read_queries
from swsearch.masking import shown_letters
from swsearch.pipeline.options import SearchOptions
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.profile import Profile

if TYPE_CHECKING:
    from swsearch.options.words import QueryFormat

FEWEST_LETTERS = 10
"""Letters from which on a sequence is looked at for whether it is DNA: fewer may be a primer of ambiguous letters."""

LEAST_BASES = 0.5
"""Share of its letters, N not counted, that are bases in DNA; of a protein that has only letters of DNA by chance,
about a third."""

_BASES = np.isin(np.frombuffer(DNA.letters.encode(), dtype=np.uint8), np.frombuffer(b"ACGTU", dtype=np.uint8))
_ANY = DNA.letters.index("N")

TRANSLATE = "add --translate (in Python translate=True)"
"""What is to be done about DNA where proteins are expected."""

_REMEDY = "leave out --translate (in Python translate=True) for proteins and profiles"


def search_queries(
    queries: QueriesLike, options: SearchOptions, query_format: QueryFormat = "auto", argument: str = "queries"
) -> list[Query]:
    """Read the queries of a search.

    Parameters
    ----------
    queries : path, open file, sequences or profiles
        As for `swsearch.inputs.read_queries`.
    options : SearchOptions
        What is asked for.
    query_format : str, optional
        What a file holds.
    argument : str, optional
        What messages call the queries.

    Returns
    -------
    list of Query
        Not empty; with codes of `swsearch.alphabet.DNA` where they are to be translated.

    Raises
    ------
    InputError
        As `read_queries` does, or if there are profiles or proteins where DNA is expected.
    """
    if options.translation is None:
        return read_queries(
            queries, options.scoring.matrix.alphabet, argument=argument, allow_dna=options.allow_dna,
            scoring=options.scoring, query_format=query_format, remedy=TRANSLATE,
        )  # fmt: skip
    if query_format not in ("auto", "fasta"):
        raise OptionError("query_format", query_format, "auto or fasta", _REMEDY)
    try:
        found = read_queries(_as_letters(queries), DNA, argument=argument)
    except SequenceError as error:
        if "is no residue letter" not in error.problem:
            raise
        raise SequenceError(error.source, f"{error.problem}; {_REMEDY}", error.record, error.line) from None
    _check_dna(found, argument)
    return found


def query_notes(source: str, queries: Sequence[Query]) -> list[str]:
    """Return a warning about queries without residues, if there are any."""
    empty = [query.identifier for query in queries if not len(query.codes)]
    return [f"{source}: {len(empty)} queries have no residues, such as {empty[0]!r}"] if empty else []


def _as_letters(queries: Any) -> Any:
    """Return what stands for queries, records of a database as letters; refuse profiles."""
    from swsearch.db import Record

    def letters(given: Any) -> Any:
        if isinstance(given, (Profile, QueryAlignment)):
            raise InputError(f"queries: got a {type(given).__name__}, expected DNA; {_REMEDY}")
        if isinstance(given, Record):
            return f"{given.identifier} {given.description}", shown_letters(given.codes, given.masked).tobytes()
        return given

    is_pair = isinstance(queries, tuple) and len(queries) == 2 and isinstance(queries[0], str)
    if isinstance(queries, (list, tuple)) and not is_pair:
        return [letters(each) for each in queries]
    return letters(queries)


def _check_dna(queries: Sequence[Query], argument: str) -> None:
    """Raise if a query is protein, whose letters are those of DNA and its ambiguity codes by chance."""
    for query in queries:
        letters = np.count_nonzero(query.codes != _ANY)
        if letters >= FEWEST_LETTERS and np.count_nonzero(_BASES[query.codes]) < LEAST_BASES * letters:
            problem = f"fewer than half of its {letters:,} letters other than N are bases (A, C, G, T, U); {_REMEDY}"
            raise SequenceError(argument, problem, query.identifier)
