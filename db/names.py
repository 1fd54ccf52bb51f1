"""The names of an entry: what else than the first word of its header it is found by.

An identifier that NCBI's or UniProt's programs wrote is made of fields between bars: ``sp|Q28933|IGF1_SUNMU`` is an
accession and a name of Swiss-Prot. `names_of` says of one identifier what its names are; `NamedPool` says it of many
headers at once, with numpy. Both read the tables of this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray
from swsearch.db.classes import offsets_of
from swsearch.db.fasta import split_header
from swsearch.db.regroup import rows_at

ACCESSION_TAGS = ("gb", "emb", "dbj", "pir", "sp", "tr", "ref", "prf", "tpg", "tpe", "tpd", "gpp", "nat")
"""Tags of NCBI's table of FASTA identifiers that an accession follows, and a name or a locus."""

SINGLE_TAGS = ("lcl", "gi")
"""Tags that one field follows: the identifier itself."""

PAIRED_TAGS = {"pdb": "_", "gnl": ":"}
"""Tags that two fields follow which make a name together, and what blastp writes between them."""

VERSIONED = (
    r"[A-Z]{1,8}[0-9]{5,12}"  # GenBank, EMBL, DDBJ, Ensembl
    r"|[A-Z]{2}_[A-Z]{0,6}[0-9]{5,12}"  # RefSeq
    r"|[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2}"  # UniProt
)
"""Accessions that are known for what they are without a tag, so that a version may follow them."""

WHOLE_NAME, OTHER_NAME, MAIN_NAME = 0, 1, 2
"""What a name is: the identifier itself, one of its other names, or the one that says which sequence it is."""

_VERSION = re.compile(r"\.[0-9]{1,3}$")
_PLAIN = re.compile(rf"({VERSIONED})\.[0-9]{{1,3}}")
_UNIREF = re.compile(r"UniRef(?:50|90|100)_(.+)")
_CHAIN = re.compile(r"([0-9][A-Za-z0-9]{3})_[A-Za-z0-9]{1,4}")

_BAR, _DOT, _MERGED = ord("|"), ord("."), 1
_BLANKS = np.zeros(256, dtype=bool)
_BLANKS[[9, 11, 12, 32, _MERGED]] = True

NARROW_NAME = 32
"""Bytes of an identifier that are looked at first: most are shorter."""

NAMES_AT_ONCE = 1 << 15
"""Names that are looked at together, so that their table of 32 bytes each stays in the cache."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_KEEP = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)  # the first n bytes, little-endian


class Names(NamedTuple):
    """What an identifier is made of."""

    accession: str
    """Without its version; the identifier itself where it has no accession."""
    versioned: str
    """The accession with its version, where it has one."""
    others: tuple[str, ...]
    """All names but the identifier itself, each once."""


def names_of(identifier: str) -> Names:
    """Return the names of one identifier, the first word of a header.

    Parameters
    ----------
    identifier : str
        Such as ``sp|Q28933|IGF1_SUNMU``, ``ref|NP_000001.1|``, ``UniRef90_P12345`` or ``NP_000001.1``.
    """
    tag, bar, _ = identifier.partition("|")
    if not bar:
        return _names_of_word(identifier)
    versioned, joined, others = "", "", []
    fields = identifier.split("|")
    while fields:
        tag, first, second = (*fields, "", "")[:3]
        if tag in ACCESSION_TAGS:
            others += [first, _VERSION.sub("", first), second]
            versioned = versioned or first or second
            fields = fields[3:]
        elif tag in SINGLE_TAGS:
            others.append(first)
            joined = joined or (first if tag == "lcl" else "")
            fields = fields[2:]
        elif tag in PAIRED_TAGS:
            if first and second:
                others += [
                    second if tag == "gnl" else first,
                    f"{first}|{second}",
                    f"{first}{PAIRED_TAGS[tag]}{second}",
                ]
                joined = joined or f"{first}{PAIRED_TAGS[tag]}{second}"
            fields = fields[3:]
        else:
            break
    accession = _VERSION.sub("", versioned) or joined or identifier
    unique = dict.fromkeys(name for name in others if name and name != identifier)
    return Names(accession, versioned or joined or identifier, tuple(unique))


def _names_of_word(identifier: str) -> Names:
    """Return the names of an identifier without bars."""
    if found := _PLAIN.fullmatch(identifier):
        return Names(found[1], identifier, (found[1],))
    found = _UNIREF.fullmatch(identifier) or _CHAIN.fullmatch(identifier)
    return Names(identifier, identifier, (found[1],) if found else ())


class Spans(NamedTuple):
    """Names in a pool of bytes, each of shape (n,)."""

    owners: IntArray
    """Which header each is of."""
    starts: IntArray
    """Where it begins."""
    lengths: IntArray
    """Its bytes."""
    kinds: npt.NDArray[np.int8]
    """`WHOLE_NAME`, `OTHER_NAME` or `MAIN_NAME`."""

    def take(self, chosen: npt.NDArray[np.bool_] | IntArray) -> Spans:
        """Return some of them: ``chosen`` has the shape (n,), of places or of bool."""
        return Spans(self.owners[chosen], self.starts[chosen], self.lengths[chosen], self.kinds[chosen])

    @classmethod
    def joined(cls, parts: list[Spans]) -> Spans:
        """Return the spans of all parts."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class NamedPool:
    """Bytes in which names stand.

    Parameters
    ----------
    data : ndarray, shape (n_bytes,), uint8
        Header lines, or names, one after the other.
    """

    def __init__(self, data: ByteArray) -> None:
        self.data, self._spare = data, 0
        self._padded = data

    def _padded_to(self, width: int) -> ByteArray:
        if width > self._spare:
            self._padded = np.concatenate([self.data, np.zeros(width, dtype=np.uint8)])
            self._spare = width
        return self._padded

    def rows(self, starts: IntArray, width: int) -> ByteArray:
        """Copy stretches, shape (n, width), from ``starts`` on; after the last byte come zeros."""
        if not len(starts):
            return np.empty((0, width), dtype=np.uint8)
        return rows_at(self._padded_to(width), starts, width)

    def words(self, starts: IntArray, lengths: IntArray, width: int) -> npt.NDArray[np.uint64]:
        """Copy names of at most ``width`` bytes as numbers, zeros after their ends: shape (n, width / 8)."""
        rows = self.rows(starts, width)
        numbers = rows.view("<u8")
        if len(rows) < width // 8:  # few, and long ones
            for row, length in zip(rows, lengths.tolist(), strict=True):
                row[length:] = 0
            return numbers
        for column in range(width // 8):
            numbers[:, column] &= _KEEP[np.clip(lengths - 8 * column, 0, 8)]
        return numbers

    def sums(self, starts: IntArray, lengths: IntArray) -> npt.NDArray[np.uint64]:
        """Return a hash of each name, shape (n,): equal names have equal ones, others hardly ever."""
        sums = np.empty(len(starts), dtype=np.uint64)
        for chosen, width in _by_width(lengths):
            numbers = self.words(starts[chosen], lengths[chosen], width)
            powers = np.cumprod(np.full(width // 8, _MULTIPLIER))
            total = np.zeros(len(numbers), dtype=np.uint64)
            for column, power in enumerate(powers) if width == NARROW_NAME else ():
                total += numbers[:, column] * power
            if width > NARROW_NAME:
                total = (numbers * powers).sum(axis=1, dtype=np.uint64)
            total ^= lengths[chosen].astype(np.uint64)
            total ^= total >> np.uint64(32)
            total *= _MULTIPLIER
            total ^= total >> np.uint64(29)
            sums[chosen] = total * _MULTIPLIER
        return sums

    def equal(
        self, starts: IntArray, lengths: IntArray, other: NamedPool, other_starts: IntArray, other_lengths: IntArray
    ) -> npt.NDArray[np.bool_]:
        """Say which names are those of another pool at the same place of the arrays, all of shape (n,)."""
        same: npt.NDArray[np.bool_] = lengths == other_lengths
        places = np.flatnonzero(same)
        for some, width in _by_width(lengths[places]):
            chosen = places[some]
            ours = self.words(starts[chosen], lengths[chosen], width)
            theirs = other.words(other_starts[chosen], other_lengths[chosen], width)
            same[chosen] = (ours == theirs).all(axis=1)
        return same

    def identifiers(self, bounds: IntArray) -> Spans:
        """Return the first word of each header.

        Parameters
        ----------
        bounds : ndarray, shape (n + 1,), int64
            Where each header begins, and the end of the last.
        """
        owners = np.arange(len(bounds) - 1)
        return self._first_words(owners, bounds[:-1], bounds[1:], WHOLE_NAME)

    def names(self, bounds: IntArray) -> Spans:
        """Return all names of each header: those of every header that was merged into it, too.

        Parameters
        ----------
        bounds : ndarray, shape (n + 1,), int64
            As for `identifiers`.
        """
        first = self.identifiers(bounds)
        parts = [first, *self.names_within(first)]
        if b"\x01" in self.data.tobytes():
            merged = np.flatnonzero(self.data == _MERGED)
            owners = np.searchsorted(bounds, merged, side="right") - 1
            more = self._first_words(owners, merged + 1, bounds[owners + 1], OTHER_NAME)
            more = more.take(more.lengths > 0)
            parts += [more, *self.names_within(more)]
        return Spans.joined(parts)

    def _first_words(self, owners: IntArray, starts: IntArray, stops: IntArray, kind: int) -> Spans:
        """Find the first word of each stretch; an empty one where there is none."""
        starts = starts.copy()
        inside = starts < stops
        doubtful = np.flatnonzero(inside)
        doubtful = doubtful[_BLANKS[self.data[starts[doubtful]]]]
        for place in doubtful.tolist():  # hardly any
            text = self.data[starts[place] : stops[place]].tobytes()
            word, _ = split_header(text)
            starts[place] += len(text) - len(text.lstrip(b" \t\v\f")) if word else len(text)
        lengths = stops - starts
        rest, width = np.flatnonzero(lengths > 0), NARROW_NAME
        while len(rest):
            rows = self.rows(starts[rest], width)
            ends = rows <= 32
            if not _BLANKS[rows[ends]].all():
                ends = _BLANKS[rows]
            found = ends.argmax(axis=1)
            known = ends[np.arange(len(rest)), found] & (found < lengths[rest])
            lengths[rest[known]] = found[known]
            rest = rest[~known & (lengths[rest] > width)]
            width *= 4
        return Spans(owners, starts, lengths, np.full(len(owners), kind, dtype=np.int8))

    def names_within(self, words: Spans) -> list[Spans]:
        """Return the names that stand within some identifiers."""
        parts: list[Spans] = []
        for chosen, width in _by_width(words.lengths):
            some = words.take(chosen)
            rows = self.rows(some.starts, width)
            bars = rows == _BAR
            bars &= np.arange(width) < some.lengths[:, None]
            has_bars = bars.any(axis=1)
            if has_bars.any():
                parts += _names_in_fields(some.take(has_bars), rows[has_bars], bars[has_bars])
            if not has_bars.all():
                parts += _names_in_words(some.take(~has_bars), rows[~has_bars])
        return parts


def _by_width(lengths: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Part names by how wide a table they take, some at a time: which of them, and the width, a multiple of 8."""
    rest, width = np.arange(len(lengths)), NARROW_NAME
    while len(rest):
        fits = lengths[rest] <= width
        chosen = rest[fits]
        for first in range(0, len(chosen), NAMES_AT_ONCE):
            yield chosen[first : first + NAMES_AT_ONCE], width
        rest, width = rest[~fits], width * 4


def _part(words: Spans, rows: IntArray, at: IntArray, length: IntArray, kind: int) -> Spans:
    """Return parts of some identifiers that begin at byte ``at`` of each."""
    return Spans(words.owners[rows], words.starts[rows] + at, length, np.full(len(rows), kind, dtype=np.int8))


def _tag(name: str) -> int:
    return int.from_bytes(name.encode(), "little")


_TAGS = {1: SINGLE_TAGS, 2: ACCESSION_TAGS, 3: ("pdb",), 4: ("gnl",)}
_TAG_CODES = np.array(sorted(_tag(name) for names in _TAGS.values() for name in names))
_TAG_KINDS = np.array(
    [next(kind for kind, names in _TAGS.items() if code in map(_tag, names)) for code in _TAG_CODES.tolist()]
)


def _names_in_fields(words: Spans, rows: ByteArray, bars: npt.NDArray[np.bool_]) -> list[Spans]:
    """Return the names in identifiers with bars; ``rows`` are their bytes, ``bars`` says where bars stand in them."""
    _, columns = np.nonzero(bars)
    firsts = offsets_of(bars.sum(axis=1))
    # an end that is never reached follows the bars of each, so that fields can be asked for beyond the last
    active, bar, at = np.arange(len(rows)), firsts[:-1].copy(), np.zeros(len(rows), dtype=np.int64)
    parts: list[Spans] = []

    def field_end(which: IntArray, number: IntArray) -> IntArray:
        inside = number < firsts[which + 1]
        return np.where(inside, columns[np.minimum(number, len(columns) - 1)], words.lengths[which])

    while len(active):
        tag_end = columns[bar]
        kinds = _kinds_of_tags(rows[active], at, tag_end)
        first, second = tag_end + 1, field_end(active, bar + 1) + 1
        ends = second - 1, np.maximum(field_end(active, bar + 2), second - 1)
        lengths = ends[0] - first, np.where(second <= ends[1], ends[1] - second, 0)
        for kind, build in ((1, _single), (2, _accessions), (3, _pair), (4, _pair)):
            chosen = np.flatnonzero(kinds == kind)
            if len(chosen):
                of = active[chosen]
                spans = (first[chosen], lengths[0][chosen], second[chosen], lengths[1][chosen])
                parts += build(words, of, rows, *spans, kind)
        used = np.array([0, 2, 3, 3, 3])[kinds]
        goes_on = (used > 0) & (bar + used < firsts[active + 1])
        at = columns[np.minimum(bar + used - 1, len(columns) - 1)][goes_on] + 1
        active, bar = active[goes_on], (bar + used)[goes_on]
    return [part.take(part.lengths > 0) for part in parts]


def _kinds_of_tags(rows: ByteArray, at: IntArray, end: IntArray) -> IntArray:
    """Return which row of `_TAGS` stands in each row from ``at`` to ``end``, 0 for none; all of shape (n,)."""
    codes = np.zeros(len(rows), dtype=np.int64)
    every = np.arange(len(rows))
    for place in range(3):
        column = np.minimum(at + place, rows.shape[1] - 1)
        codes |= np.where(at + place < end, rows[every, column].astype(np.int64) << (8 * place), 0)
    found = np.minimum(np.searchsorted(_TAG_CODES, codes), len(_TAG_CODES) - 1)
    fits = (_TAG_CODES[found] == codes) & (end - at <= 3)
    kinds: IntArray = np.where(fits, _TAG_KINDS[found], 0)
    return kinds


def _single(
    words: Spans,
    of: IntArray,
    rows: ByteArray,
    first: IntArray,
    n: IntArray,
    second: IntArray,
    m: IntArray,
    kind: int,
) -> list[Spans]:
    return [_part(words, of, first, n, MAIN_NAME)]


def _accessions(
    words: Spans,
    of: IntArray,
    rows: ByteArray,
    first: IntArray,
    n: IntArray,
    second: IntArray,
    m: IntArray,
    kind: int,
) -> list[Spans]:
    """Return accession, accession without its version, and the name after it."""
    version = _version_lengths(rows, of, first + n, n)
    has = np.flatnonzero(version)
    named = np.where(n > 0, OTHER_NAME, MAIN_NAME)  # pir||S12345 has its accession in the second field
    found = _part(words, of, second, m, OTHER_NAME)
    return [
        _part(words, of, first, n, MAIN_NAME),
        _part(words, of[has], first[has], (n - version)[has], OTHER_NAME),
        found._replace(kinds=named.astype(np.int8)),
    ]


def _pair(
    words: Spans,
    of: IntArray,
    rows: ByteArray,
    first: IntArray,
    n: IntArray,
    second: IntArray,
    m: IntArray,
    kind: int,
) -> list[Spans]:
    """Return the names of an entry of the PDB (3), or of a database of one's own (4)."""
    both = np.flatnonzero((n > 0) & (m > 0))
    of, first, n, second, m = of[both], first[both], n[both], second[both], m[both]
    part = (first, n) if kind == 3 else (second, m)
    return [_part(words, of, first, n + 1 + m, MAIN_NAME), _part(words, of, *part, OTHER_NAME)]


def _version_lengths(rows: ByteArray, of: IntArray, end: IntArray, length: IntArray) -> IntArray:
    """Return how many bytes the version before ``end`` takes in each row: a dot and 1 to 3 digits, or 0."""
    found = np.zeros(len(of), dtype=np.int64)
    digits = np.ones(len(of), dtype=bool)
    for n in range(1, 4):
        last = rows[of, np.maximum(end - n, 0)]
        digits &= (last >= 48) & (last <= 57) & (length > n)
        found[digits & (rows[of, np.maximum(end - n - 1, 0)] == _DOT) & (length > n)] = n + 1
    return found


def _names_in_words(words: Spans, rows: ByteArray) -> list[Spans]:
    """Return the names in identifiers without bars."""
    every, lengths = np.arange(len(rows)), words.lengths
    parts: list[Spans] = []
    version = _version_lengths(rows, every, lengths, lengths)
    some = np.flatnonzero(version)
    if len(some):
        some = some[_is_accession(rows[some], lengths[some] - version[some])]
        parts.append(_part(words, some, np.zeros(len(some), np.int64), (lengths - version)[some], OTHER_NAME))
    uniref = np.flatnonzero((rows[:, 0] == ord("U")) & (rows[:, 1] == ord("n")) & (rows[:, 2] == ord("i")))
    for prefix in (b"UniRef50_", b"UniRef90_", b"UniRef100_"):
        n = len(prefix)
        begins = (rows[uniref, :n] == np.frombuffer(prefix, dtype=np.uint8)).all(axis=1) & (lengths[uniref] > n)
        which = uniref[begins]
        parts.append(_part(words, which, np.full(len(which), n), lengths[which] - n, OTHER_NAME))
    chains = np.flatnonzero((rows[:, 4] == ord("_")) & (lengths > 5) & (lengths < 10))
    letters = rows[chains, :9].copy()
    letters[:, 4] = ord("0")
    fine = _IS_ALNUM[letters] | (np.arange(9) >= lengths[chains, None])
    chains = chains[fine.all(axis=1) & (letters[:, 0] >= 48) & (letters[:, 0] <= 57)]
    parts.append(_part(words, chains, np.zeros(len(chains), np.int64), np.full(len(chains), 4), OTHER_NAME))
    return parts


_IS_ALNUM = np.array([chr(code).isalnum() and code < 128 for code in range(256)])
_IS_CAPITAL = np.array([65 <= code <= 90 for code in range(256)])
_IS_DIGIT = np.array([48 <= code <= 57 for code in range(256)])

MOST_ACCESSION = 24
"""Bytes of the longest accession that `VERSIONED` allows, and more."""


def _is_accession(rows: ByteArray, lengths: IntArray) -> npt.NDArray[np.bool_]:
    """Say which words `VERSIONED` matches: the first ``lengths`` bytes of each row."""
    text = rows[:, :MOST_ACCESSION]
    outside = np.arange(text.shape[1]) >= lengths[:, None]
    capital, digit = _IS_CAPITAL[text] & ~outside, _IS_DIGIT[text] & ~outside
    every = np.arange(len(rows))
    letters = (~capital).argmax(axis=1)
    refseq = (letters == 2) & (text[:, 2] == ord("_"))
    after = np.where(refseq, 3, letters)
    second = capital & (np.arange(text.shape[1]) >= after[:, None])
    more = second.sum(axis=1)  # the letters of a run that begins there, if all stand together
    begun = np.where(refseq, after + more, after)
    n_digits = lengths - begun
    tail = digit.cumsum(axis=1)
    at = np.clip(lengths - 1, 0, text.shape[1] - 1)
    before = np.where(begun > 0, tail[every, np.clip(begun - 1, 0, text.shape[1] - 1)], 0)
    all_digits = (tail[every, at] - before == n_digits) & (before == 0)
    plain = (letters >= 1) & (letters <= 8) & ~refseq | refseq & (more <= 6)
    numbered: npt.NDArray[np.bool_] = (
        plain & all_digits & (n_digits >= 5) & (n_digits <= 12) & (lengths <= text.shape[1])
    )
    numbered |= _is_uniprot(text, capital, digit, lengths)
    return numbered


def _is_uniprot(
    text: ByteArray, capital: npt.NDArray[np.bool_], digit: npt.NDArray[np.bool_], lengths: IntArray
) -> npt.NDArray[np.bool_]:
    """Say which words are accessions of UniProt."""
    either = capital | digit
    opq = (text[:, 0] >= ord("O")) & (text[:, 0] <= ord("Q"))
    ends = digit[:, 1] & either[:, 3] & either[:, 4] & digit[:, 5]
    old = opq & either[:, 2]
    six = (lengths == 6) & capital[:, 0] & ends & (old | (~opq & capital[:, 2]))
    more = capital[:, 6] & either[:, 7] & either[:, 8] & digit[:, 9]
    ten = (lengths == 10) & capital[:, 0] & ~opq & ends & capital[:, 2] & more
    found: npt.NDArray[np.bool_] = six | ten
    return found
