"""Records with one identifier, found by hashes in passes over all headers that each fit the memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple, get_args

import numpy as np

from swsearch.blocks import IntArray, each_once
from swsearch.db.fasta import header_text
from swsearch.db.name_lookup import HeaderBatch, Sums, first_words, lines_of, map_in_order, pieces_of, sums_of
from swsearch.db.records import MIB
from swsearch.db.strips import Strips
from swsearch.errors import check_choice
from swsearch.options.words import OnDuplicate

DUPLICATE_RULES: tuple[OnDuplicate, ...] = get_args(OnDuplicate)

RECORD_BYTES_MET = 128
"""Bytes that a record takes in a pass that looks at it."""

SHOWN_IDENTIFIERS = 3
"""Identifiers that a message names."""

HeaderSource = Callable[[], Iterator[HeaderBatch]]
"""Gives all headers in batches, as often as it is called."""


class Duplicates(NamedTuple):
    """Records whose identifier another record has."""

    dropped: IntArray
    """New ones whose identifier an earlier record has, ascending, shape (n,)."""
    n_identifiers: int
    """Number of identifiers that several records have, one of them a new one."""
    shown: tuple[str, ...]
    """Some of these."""


def check_rule(name: str, rule: str) -> None:
    """Raise `OptionError` unless a rule for duplicates is one."""
    check_choice(name, rule, DUPLICATE_RULES)


def find_duplicates(headers: HeaderSource, n: int, first_new: int, memory: int) -> Duplicates:
    """Find the records with the identifier of another record, where one of them is new.

    Parameters
    ----------
    headers : callable
        Gives all headers.
    n : int
        Number of headers.
    first_new : int
        Ordinal of the first new record.
    memory : int
        Bytes that may be taken.
    """
    n_passes = -(-n * RECORD_BYTES_MET // max(memory, 16 * MIB))
    dropped, n_identifiers, shown = array("q"), 0, list[str]()
    for number in range(n_passes):
        is_counted: dict[bytes, bool] = {}
        for identifier, place in _proposed(headers, number, n_passes):
            if identifier not in is_counted:
                is_counted[identifier] = False
            elif place >= first_new:
                dropped.append(place)
                n_identifiers += not is_counted[identifier]
                shown += [] if is_counted[identifier] else [header_text(identifier)[0]]
                is_counted[identifier] = True
        shown = shown[:SHOWN_IDENTIFIERS]
    return Duplicates(np.sort(np.array(dropped, dtype=np.int64)), n_identifiers, tuple(shown))


def _identifiers(headers: Strips) -> Strips:
    """Return the identifiers of headers, with a bar after each."""
    words, owners = first_words(headers)
    return words.take(np.flatnonzero(np.diff(owners, prepend=-1) > 0))


def _proposed(headers: HeaderSource, number: int, n_passes: int) -> Iterator[tuple[bytes, int]]:
    """Yield identifiers and ordinals, ascending, of the records of this pass whose hash another record has."""

    def sums_of_some(piece: tuple[Strips, IntArray]) -> tuple[Sums, IntArray]:
        words = _identifiers(piece[0])
        sums = sums_of(words.data, words.offsets[:-1], words.offsets[1:])
        chosen = np.flatnonzero((sums >> np.uint64(32)) * np.uint64(n_passes) >> np.uint64(32) == number)
        return sums[chosen], piece[1][chosen]

    sums, places = map(np.concatenate, zip(*map_in_order(sums_of_some, pieces_of(headers())), strict=True))
    order = np.argsort(sums)
    again = np.flatnonzero(sums[order[1:]] == sums[order[:-1]])
    wanted = each_once(places[order[np.append(again, again + 1)]])[0]
    del sums, places, order
    for strips, ordinals in pieces_of(headers()) if len(wanted) else ():
        low, high = np.searchsorted(wanted, [ordinals[0], ordinals[-1] + 1])
        words = _identifiers(strips.take(wanted[low:high] - ordinals[0]))
        for line, place in zip(lines_of(words), wanted[low:high].tolist(), strict=True):
            yield line[:-1], place
