"""A part of each query that is searched in place of the whole, as ``blastp -query_loc`` has it.

Only the part is scored, and statistics are of its length; positions count on the whole query all the same.
"""

from __future__ import annotations

from dataclasses import replace

from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.translation import Frame

QueryLoc = tuple[int, int]
"""First and last residue, counted from 1."""


def part_of(query: Query, loc: QueryLoc | None) -> Query:
    """Return the part of a query that is searched; what is behind its end is left out of account.

    Raises
    ------
    InputError
        If the query ends before, or is none that has parts.
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
    place = slice(first - 1, min(last, len(query.codes)))
    letters = None if query.letters is None else query.letters[place]
    frame = Frame(0, len(query.codes), first - 1)
    return replace(query, codes=query.codes[place], letters=letters, lower=(), frame=frame)
