"""A part of each query that is searched in place of the whole, as ``blastp -query_loc`` has it.

Only the part is scored, and statistics are of its length; positions count on the whole query all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query
from swsearch.translation import Frame

QueryLoc = tuple[int, int]
"""First and last residue, counted from 1."""

LAST_PLACE = 10**9
"""Largest place that may be asked for; it fits a whole chromosome."""


def checked_query_loc(given: Any) -> QueryLoc | None:
    """Return the residues that are asked for: ``"10-80"``, or two numbers.

    Raises
    ------
    OptionError
        If they are none.
    """
    if given is None:
        return None
    expected = "first and last residue, counted from 1, such as 10-80"
    if isinstance(given, str):
        match = re.fullmatch(r"\s*([0-9]{1,10})\s*-\s*([0-9]{1,10})\s*", given, re.ASCII)
        places: Sequence[Any] = () if match is None else (int(match[1]), int(match[2]))
    else:
        places = given if isinstance(given, (list, tuple)) else ()
    if len(places) != 2 or any(isinstance(each, bool) or not hasattr(each, "__index__") for each in places):
        raise OptionError("query_loc", given, expected)
    first, last = (each.__index__() for each in places)
    if not 1 <= first <= last <= LAST_PLACE:
        remedy = "the first is above the last" if first > last else ""
        raise OptionError("query_loc", given, expected, remedy)
    return first, last


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
            f"query {query.identifier} has {len(query.codes):,} residues, expected {first:,} or more for --query-loc "
            f"{first}-{last}"
        )
    place = slice(first - 1, min(last, len(query.codes)))
    letters = None if query.letters is None else query.letters[place]
    frame = Frame(0, len(query.codes), first - 1)
    return replace(query, codes=query.codes[place], letters=letters, lower=(), frame=frame)
