"""How queries and hits are cut into groups that are worked on together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from swsearch.inputs import Query

GROUP_RESIDUES = 50_000
"""Query residues that are scored together. Each group reads the database once, which takes less than a hundredth of
the time of scoring this many; larger groups would only keep more hits in memory."""

FIRST_GROUP_RESIDUES, SMALL_GROUP_RESIDUES, MIN_GROUPS = (4_000, 16_000), 8_000, 8
"""Query residues of the first groups. Where all queries are few, the others have an eighth of all residues, and at
least `SMALL_GROUP_RESIDUES`: the first results come early, and later stages work beside scoring."""

HITS_PER_PART = 16_000
"""Hits that are read and aligned together, those of whole queries."""


def query_groups(queries: Sequence[Query], most: int | None = None, together: int = 1) -> Iterator[Sequence[Query]]:
    """Cut queries into groups that are scored together.

    Parameters
    ----------
    queries : sequence of Query
        All, in order.
    most : int or None
        Maximum queries in a group.
    together : int
        Frames of one query, which stay in one group.
    """
    total = sum(len(query.codes) for query in queries)
    usual = min(GROUP_RESIDUES, max(SMALL_GROUP_RESIDUES, total // MIN_GROUPS))
    sizes = (min(size, usual) for size in (FIRST_GROUP_RESIDUES if total > 2 * FIRST_GROUP_RESIDUES[0] else ()))
    limit = next(sizes, usual)
    group: list[Query] = []
    residues = 0
    for first in range(0, len(queries), together):
        some = queries[first : first + together]
        n = sum(len(query.codes) for query in some)
        if group and (residues + n > limit or (most is not None and len(group) + together > most)):
            yield group
            group, residues = [], 0
            limit = next(sizes, usual)
        group += some
        residues += n
    if group:
        yield group


def split_by_size(sizes: Sequence[int], most: int, together: int = 1) -> Iterator[slice]:
    """Cut items of some sizes into runs of about ``most``; so many as belong together stay in one run."""
    begin = total = 0
    for place in range(0, len(sizes), together):
        size = sum(sizes[place : place + together])
        if place > begin and total + size > most:
            yield slice(begin, place)
            begin, total = place, 0
        total += size
    if begin < len(sizes):
        yield slice(begin, len(sizes))
