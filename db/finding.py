"""Find entries by their names: what is asked for meets all headers at once, by hashes and then byte by byte."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray, each_once
from swsearch.db.classes import offsets_of
from swsearch.db.content import ranges
from swsearch.db.fasta import header_encoding
from swsearch.db.names import MAIN_NAME, WHOLE_NAME, NamedPool, Spans, names_of
from swsearch.errors import OptionError
from swsearch.processors import available_processors, has_room_for_threads

EXACT_NAME, ALIAS_NAME, SAME_ACCESSION = 0, 1, 2
"""How an entry was found: by its identifier, by another of its names, or by the accession of what was asked for."""

MOST_TABLE_BITS = 24
"""Bits of the hash that the table of what is asked for has an entry for: 16 MiB."""

_LF, _BAR = 10, ord("|")

_UPPER = np.uint64(0xFFFFFFFF00000000)
"""The half of a hash that an index keeps beside the place of its subject."""

_ANY, _UTF_8, _LATIN_1 = 0, 1, 2
"""Headers in which the bytes of a spelling are what was asked for: their encodings."""

_ENCODINGS = {"utf-8": _UTF_8, "latin-1": _LATIN_1}


MOST_THREADS = 16
"""Threads that look through headers: each holds some of them."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class Matches(NamedTuple):
    """What was asked for and found, each of shape (n,)."""

    asked: IntArray
    """Places in what was asked for."""
    subjects: IntArray
    """Ordinals of the subjects."""
    levels: IntArray
    """`EXACT_NAME`, `ALIAS_NAME` or `SAME_ACCESSION`."""

    @classmethod
    def joined(cls, parts: Sequence[Matches]) -> Matches:
        """Return all matches of some parts."""
        none = np.empty(0, dtype=np.int64)
        return cls(*map(np.concatenate, zip(*parts, strict=True))) if parts else cls(none, none, none)

    def take(self, chosen: npt.NDArray[np.bool_] | IntArray) -> Matches:
        """Return some of them: ``chosen`` has the shape (n,), of places or of bool."""
        return Matches(*(each[chosen] for each in self))


def checked_identifiers(identifiers: Iterable[str]) -> Sequence[str]:
    """Return identifiers as a sequence, or raise `OptionError` if they are no strings."""
    if not isinstance(identifiers, Iterable) or isinstance(identifiers, (str, bytes)):
        raise OptionError("identifiers", identifiers, "several strings")
    found = identifiers if isinstance(identifiers, (list, tuple)) else list(identifiers)
    try:
        "".join(found)  # the quickest way to look at a million of them
    except TypeError:
        wrong = next(each for each in found if not isinstance(each, str))
        raise OptionError("identifiers", wrong, "strings") from None
    return found


def in_turn(work: Callable[[_T], _R], given: Iterable[_T], quick: bool = False) -> Iterator[_R]:
    """Yield what some work makes of each thing, in order; threads do it, and little is ahead of what was taken.

    Parameters
    ----------
    work : callable
        Mostly numpy's, which lets other threads run.
    given : iterable
        What it is done with.
    quick : bool, optional
        Whether there is too little of it for threads.
    """
    n_threads = min(available_processors(), MOST_THREADS)
    if quick or n_threads < 2 or not has_room_for_threads(n_threads):
        yield from map(work, given)
        return
    ahead: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for each in given:
            ahead.append(pool.submit(work, each))
            if len(ahead) > 2 * n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


class _Buckets:
    """Hashes of what is looked for, to meet others quickly: by their first bits.

    Parameters
    ----------
    sums : ndarray, shape (n,), uint64
        The hashes.
    """

    def __init__(self, sums: npt.NDArray[np.uint64]) -> None:
        n_bits = len(sums).bit_length()
        # numbers of 64 bits each are sorted many times as fast as pairs: what follows the first bits does not matter
        keys = sums & ~np.uint64((1 << n_bits) - 1) | np.arange(len(sums), dtype=np.uint64)
        keys.sort()
        self._order = (keys & np.uint64((1 << n_bits) - 1)).astype(np.int64)
        self._sums = sums[self._order]
        bits = min(max(n_bits + 1, 8), 32)
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((keys >> self._shift).astype(np.int64), minlength=1 << bits)
        self._first = offsets_of(counts)
        filter_bits = min(bits + 3, MOST_TABLE_BITS)
        self._filter_shift = np.uint64(64 - filter_bits)
        self._filter = np.zeros(1 << filter_bits, dtype=bool)
        self._filter[keys >> self._filter_shift] = True

    def equal(self, sums: npt.NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
        """Return the places of all pairs of equal hashes: in ``sums``, and in what is looked for."""
        some = np.flatnonzero(self._filter[sums >> self._filter_shift])
        buckets = sums[some] >> self._shift
        first = self._first[buckets]
        counts = self._first[buckets + np.uint64(1)] - first
        some, places = np.repeat(some, counts), ranges(first, counts)
        same = self._sums[places] == sums[some]
        return some[same], self._order[places[same]]


class _Spelling(NamedTuple):
    """How something that is asked for may stand in a header, beside its UTF-8."""

    place: int
    data: bytes
    encoding: int
    level: int


class AskedNames:
    """Identifiers that are looked for.

    Parameters
    ----------
    identifiers : sequence of str
        As a user gives them.
    """

    def __init__(self, identifiers: Sequence[str]) -> None:
        self.n = len(identifiers)
        text = "\n".join(identifiers)
        if text.count("\n") != max(self.n - 1, 0):  # no header has such an identifier
            identifiers = ["" if "\n" in each else each for each in identifiers]
            text = "\n".join(identifiers)
        lines = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        ends = np.append(np.flatnonzero(lines == _LF), len(lines))[: self.n]
        lengths = np.diff(ends, prepend=-1) - 1
        starts, places = ends - lengths, np.arange(self.n)
        encodings = np.zeros(self.n, dtype=np.int64)
        if not text.isascii():
            encodings[np.searchsorted(ends, np.flatnonzero(lines >= 128))] = _UTF_8
        more = _other_spellings(identifiers, lines, starts, lengths, encodings)
        pool = NamedPool(np.frombuffer(b"".join([lines.tobytes(), *(each.data for each in more)]), dtype=np.uint8))
        # what is no identifier in the database may say which sequence it is, in fields between bars
        fields = np.searchsorted(ends, np.flatnonzero(lines == _BAR))
        fields = fields[np.diff(fields, prepend=-1) > 0]
        kinds = np.full(self.n, WHOLE_NAME, dtype=np.int8)
        within = pool.names_within(Spans(places, starts, lengths, kinds).take(fields))
        main = Spans.joined([part.take(part.kinds == MAIN_NAME) for part in within]) if within else None
        owners, firsts, sizes = (main.owners, main.starts, main.lengths) if main else (places[:0],) * 3
        others = np.array([(each.place, each.encoding, each.level, len(each.data)) for each in more])
        others = others.reshape(-1, 4).astype(np.int64)
        self._pool = pool
        self._places = np.concatenate([places, owners, others[:, 0]])
        self._encodings = np.concatenate([encodings, encodings[owners], others[:, 1]])
        self._levels = np.concatenate([encodings * 0, np.full(len(owners), SAME_ACCESSION), others[:, 2]])
        self._starts = np.concatenate([starts, firsts, len(lines) + offsets_of(others[:, 3])[:-1]])
        self._lengths = np.concatenate([lengths, sizes, others[:, 3]])
        self.sums = pool.sums(self._starts, self._lengths)
        """Hashes of what is looked for."""
        self._buckets = _Buckets(self.sums)

    def among(self, pool: NamedPool, bounds: IntArray, subjects: IntArray) -> Matches:
        """Find what is asked for among some headers.

        Parameters
        ----------
        pool : NamedPool
            The headers.
        bounds : ndarray, shape (n + 1,), int64
            Where each begins, and the end of the last.
        subjects : ndarray, shape (n,), int64
            Their ordinals.
        """
        spans = pool.names(bounds)
        sums = pool.sums(spans.starts, spans.lengths)
        some, asked = self._buckets.equal(sums)
        names = spans.take(some)
        equal = self._pool.equal(self._starts[asked], self._lengths[asked], pool, names.starts, names.lengths)
        fine = equal & (self._encodings[asked] == _ANY)
        for place in np.flatnonzero(equal & ~fine).tolist():  # hardly any
            owner = names.owners[place]
            header = pool.data[bounds[owner] : bounds[owner + 1]].tobytes()
            fine[place] = _ENCODINGS[header_encoding(header)] == self._encodings[asked[place]]
        asked, names = asked[fine], names.take(fine)
        levels = np.maximum(self._levels[asked], np.where(names.kinds == WHOLE_NAME, EXACT_NAME, ALIAS_NAME))
        return Matches(self._places[asked], subjects[names.owners], levels)


def _other_spellings(
    identifiers: Sequence[str], lines: ByteArray, starts: IntArray, lengths: IntArray, encodings: IntArray
) -> list[_Spelling]:
    """Return how some of what is asked for may be written otherwise; most of it cannot.

    An entry of the PDB has its bar for the ``_`` of ``1ABC_A``, one of a database of one's own for the ``:`` of
    ``mine:7``.
    """

    def changed(place: int, text: str, level: int = EXACT_NAME) -> _Spelling:
        return _Spelling(place, text.encode("utf-8", "surrogatepass"), int(encodings[place]), level)

    more = [
        _Spelling(place, identifiers[place].encode("latin-1"), _LATIN_1, EXACT_NAME)
        for place in np.flatnonzero(encodings).tolist()
        if max(identifiers[place]) <= "\xff"
    ]
    at = np.minimum(starts + 4, len(lines) - 1) if len(lines) else starts
    chains = (lengths > 5) & (lengths < 10)
    chains[chains] = lines[at[chains]] == ord("_")
    for place in np.flatnonzero(chains).tolist():
        more.append(changed(place, identifiers[place].replace("_", "|", 1)))
    owners = np.searchsorted(starts, np.flatnonzero(lines == ord(":")), side="right") - 1
    for place in each_once(owners)[0].tolist():
        more.append(changed(place, identifiers[place].replace(":", "|", 1)))
    entries = (
        np.flatnonzero((lengths > 8) & (lines[np.minimum(starts + 3, at)] == ord("|"))) if len(lines) else starts
    )
    for place in entries.tolist():
        if identifiers[place].startswith("pdb|"):
            more.append(changed(place, names_of(identifiers[place]).accession, SAME_ACCESSION))
    return more


def resolved(found: Matches, n_asked: int, n_subjects: int) -> tuple[IntArray, IntArray]:
    """Decide for each of what was asked for which entries it means.

    An identifier goes before other names, and these before the accession of what was asked for; of one kind it means
    all entries that have it.

    Returns
    -------
    asked, subjects : ndarray, shape (n,), int64
        Places in what was asked for, ascending; and ordinals, ascending for each.
    """
    best = np.full(n_asked, SAME_ACCESSION, dtype=np.int64)
    np.minimum.at(best, found.asked, found.levels)
    found = found.take(found.levels == best[found.asked])
    both = found.asked * n_subjects + found.subjects
    both.sort()
    both = both[np.diff(both, prepend=-1) > 0]  # an entry may have two such names
    return both // n_subjects, both % n_subjects


NamedHeaders = tuple[NamedPool, IntArray, IntArray]
"""Headers: their bytes, where each begins and the last ends, and their places."""


def _keys_of(some: NamedHeaders) -> npt.NDArray[np.uint64]:
    """Return half of the hash of each name, and the place of its subject."""
    pool, bounds, places = some
    spans = pool.names(bounds)
    return (pool.sums(spans.starts, spans.lengths) & _UPPER) | places[spans.owners].astype(np.uint64)


class NameIndex:
    """The hashes of all names of some subjects, to find few of them again and again.

    Parameters
    ----------
    parts : iterable of NamedHeaders
        All headers.
    """

    def __init__(self, parts: Iterable[NamedHeaders]) -> None:
        self._keys = np.concatenate(list(in_turn(_keys_of, parts)))
        self._keys.sort()

    def places(self, asked: AskedNames) -> IntArray:
        """Return the places of all subjects that may be asked for, ascending, shape (n,)."""
        begins = asked.sums & _UPPER
        first, last = np.searchsorted(self._keys, begins), np.searchsorted(self._keys, begins | ~_UPPER, side="right")
        return each_once((self._keys[ranges(first, last - first)] & ~_UPPER).astype(np.int64))[0]
