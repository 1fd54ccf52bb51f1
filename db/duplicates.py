"""Records that have one identifier: found by hashes, in passes over all headers that each fit the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.db.classes import offsets_of
from swsearch.db.content import ranges
from swsearch.db.fasta import header_text
from swsearch.db.finding import NamedHeaders, in_turn
from swsearch.db.names import NamedPool, Spans
from swsearch.db.numbers import MIB
from swsearch.db.spool import Spool
from swsearch.errors import check_choice
from swsearch.options.words import OnDuplicate

DUPLICATE_RULES: tuple[OnDuplicate, ...] = get_args(OnDuplicate)

RECORD_BYTES_MET = 96
"""Bytes that a record takes in a pass that looks at it."""

HEADERS_TOGETHER = 1 << 16
"""HeaderSource of a spool that are looked at together."""

SHOWN_IDENTIFIERS = 3
"""Identifiers that a message names."""

HeaderSource = Callable[[], Iterator[NamedHeaders]]
"""Gives all headers, some at a time, with their places, as often as it is called."""


class Duplicates(NamedTuple):
    """Records whose identifier another record has."""

    dropped: IntArray
    """Those that the rule leaves out, ascending, shape (n,)."""
    n_identifiers: int
    """How many identifiers several records have, one of them a new one."""
    shown: tuple[str, ...]
    """Some of these."""


def check_rule(name: str, rule: str) -> None:
    """Raise `OptionError` unless a rule for duplicates is one."""
    check_choice(name, rule, DUPLICATE_RULES)


def duplicates_among(headers: HeaderSource, n: int, first_new: int, rule: OnDuplicate, memory: int) -> Duplicates:
    """Find the records that have the identifier of another, and decide which of them to leave out.

    Only where one of them is new: what stood in a database beside each other may stay so.

    Parameters
    ----------
    headers : callable
        All headers.
    n : int
        How many there are.
    first_new : int
        Place of the first that is new.
    rule : {"error", "skip", "replace", "keep"}
        Whether the first stays or the last; with ``error`` as with ``skip``.
    memory : int
        Bytes that may be taken.
    """
    n_passes = -(-n * RECORD_BYTES_MET // max(memory, 16 * MIB))
    dropped = [np.empty(0, dtype=np.int64)]
    n_identifiers, shown = 0, list[str]()
    for number in range(n_passes):
        sums, places = _sums_of(headers, number, n_passes)
        groups, places, data = _groups(headers, sums, places)
        first = np.diff(groups, prepend=-1) != 0
        last = np.append(first[1:], True)[: len(first)]
        is_new = places >= first_new
        starts = np.flatnonzero(first)
        met = np.logical_or.reduceat(is_new, starts) if len(starts) else np.empty(0, dtype=bool)
        has_new = np.repeat(met, np.diff(starts, append=len(groups)))
        dropped.append(places[has_new & ~last] if rule == "replace" else places[is_new & ~first])
        n_identifiers += int(met.sum())
        for start in starts[met][: SHOWN_IDENTIFIERS - len(shown)].tolist():
            shown.append(header_text(data(start))[0])
    return Duplicates(np.sort(np.concatenate(dropped)), n_identifiers, tuple(shown))


def _sums_of(headers: HeaderSource, number: int, n_passes: int) -> tuple[npt.NDArray[np.uint64], IntArray]:
    """Return the hashes of identifiers that this pass looks at, where another has the same; and their places."""

    def of_some(some: NamedHeaders) -> tuple[npt.NDArray[np.uint64], IntArray]:
        pool, bounds, places = some
        spans = pool.identifiers(bounds)
        sums = pool.sums(spans.starts, spans.lengths)
        chosen = (sums >> np.uint64(32)) * np.uint64(n_passes) >> np.uint64(32) == number
        return (sums, places) if n_passes == 1 else (sums[chosen], places[chosen])

    parts = list(in_turn(of_some, headers()))
    sums, places = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(sums, kind="stable")
    sums, places = sums[order], places[order]
    same = sums[1:] == sums[:-1]
    again = np.append(same, False) | np.append(False, same) if len(sums) else np.empty(0, dtype=bool)
    return sums[again], places[again]


def _groups(
    headers: HeaderSource, sums: npt.NDArray[np.uint64], places: IntArray
) -> tuple[IntArray, IntArray, Callable[[int], bytes]]:
    """Part records with equal hashes by their identifiers.

    Returns
    -------
    groups : ndarray, shape (n,), int64
        A number for each, ascending, equal for equal identifiers; each has two records at least.
    places : ndarray, shape (n,), int64
        Their places, ascending in a group.
    data : callable
        Gives the identifier of one of them.
    """
    pool, starts, lengths = _identifiers(headers, np.sort(places))
    rank = np.argsort(np.argsort(places))
    starts, lengths = starts[rank], lengths[rank]
    begins = np.append(True, sums[1:] != sums[:-1])[: len(sums)]
    groups = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)[groups]
    equal = pool.equal(starts, lengths, pool, starts[first], lengths[first])

    def data(place: int) -> bytes:
        return pool.data[starts[place] : starts[place] + lengths[place]].tobytes()

    if not equal.all():  # others have the same hash: hardly ever, unless they were made so
        known: dict[tuple[int, bytes], int] = {}
        groups = np.array([known.setdefault((int(each), data(k)), len(known)) for k, each in enumerate(groups)])
        order = np.lexsort((places, groups))
        groups, places, starts, lengths = groups[order], places[order], starts[order], lengths[order]
        several = np.bincount(groups)[groups] > 1
        groups, places, starts, lengths = groups[several], places[several], starts[several], lengths[several]
    return groups, places, data


def _identifiers(headers: HeaderSource, wanted: IntArray) -> tuple[NamedPool, IntArray, IntArray]:
    """Return the identifiers of some records, ascending by place: their bytes, where each begins, and its length."""
    parts, lengths = [np.empty(0, dtype=np.uint8)], [np.empty(0, dtype=np.int64)]
    for pool, bounds, places in headers() if len(wanted) else ():
        low, high = np.searchsorted(wanted, [places[0], places[-1] + 1]).tolist()
        if low < high:
            spans: Spans = pool.identifiers(bounds).take(wanted[low:high] - places[0])
            parts.append(pool.data[ranges(spans.starts, spans.lengths)])
            lengths.append(spans.lengths)
    sizes = np.concatenate(lengths)
    return NamedPool(np.concatenate(parts)), offsets_of(sizes)[:-1], sizes


def headers_of_spool(spool: Spool, first: int) -> Iterator[NamedHeaders]:
    """Yield the headers of what was read, some at a time; the first has the place ``first``."""
    at = 0
    for lengths in spool.header_lengths.pieces():
        for begin in range(0, len(lengths), HEADERS_TOGETHER):
            bounds = offsets_of(lengths[begin : begin + HEADERS_TOGETHER])
            spool.headers.seek(at)
            data = np.frombuffer(spool.headers.read(int(bounds[-1])), dtype=np.uint8)
            n = len(bounds) - 1
            yield NamedPool(data), bounds, np.arange(first, first + n)
            at, first = at + int(bounds[-1]), first + n
