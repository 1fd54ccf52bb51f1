"""Lookup of entries by name.

An index has all names, or one pass reads all headers. Identifiers become words, each with a bar after it, in one
array. Hashes of their names are compared with those of the requested names, and then the names byte by byte.
`names_among` has the rules. It is called once for all words of one form: words whose fields have the same
tags, or that have the same kinds of letters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import IntArray, unique_with_places
from swsearch.db.arrays import Strips, copy_strips, offsets_of, ranges, rows_at
from swsearch.db.fasta import header_encoding
from swsearch.db.input_stream import Input
from swsearch.errors import InputError, OptionError, SequenceError
from swsearch.processors import available_processors, can_start_threads

ACCESSION_TAGS = ("gb", "emb", "dbj", "pir", "sp", "tr", "ref", "prf", "tpg", "tpe", "tpd", "gpp", "nat")
"""Tags of NCBI's table of FASTA identifiers before an accession and a name or a locus."""

SINGLE_TAGS = ("lcl", "gi")
"""Tags before one field: the identifier itself."""

PAIRED_TAGS = {"pdb": "_", "gnl": ":"}
"""Tags before two fields that make one name, and the letter that blastp writes between the fields."""

TAGS = (*ACCESSION_TAGS, *SINGLE_TAGS, *PAIRED_TAGS)

VERSIONED = (
    r"[A-Z]{1,8}[0-9]{5,12}"  # GenBank, EMBL, DDBJ, Ensembl
    r"|[A-Z]{2}_[A-Z]{0,6}[0-9]{5,12}"  # RefSeq
    r"|[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2}"  # UniProt
)
"""Accessions that may have a version without a tag before them."""

EXACT_NAME, ALIAS_NAME, MAIN_NAME, STEM_NAME = range(4)
"""Kinds of names: identifiers, other names, those that identify the sequence, and accessions without a version."""

_VERSION = re.compile(r"\.[0-9]{1,3}\Z")
_PLAIN = re.compile(rf"({VERSIONED})\.[0-9]{{1,3}}")
_UNIREF = re.compile(r"UniRef(?:50|90|100)_(.+)")
_CHAIN = re.compile(r"([0-9][A-Za-z0-9]{3})_[A-Za-z0-9]{1,4}")


class Names(NamedTuple):
    """Names in an identifier."""

    accession: str
    """Without its version; the identifier itself where it has no accession."""
    versioned: str
    """The accession with its version, where it has one."""
    others: tuple[str, ...]
    """All names except the identifier itself, each once."""


def names_of(identifier: str) -> Names:
    """Return the names in one identifier, the first word of a header, such as ``sp|Q28933|IGF1_SUNMU``."""
    if "|" not in identifier:
        plain = _PLAIN.fullmatch(identifier)
        match = plain or _UNIREF.fullmatch(identifier) or _CHAIN.fullmatch(identifier)
        return Names(plain[1] if plain else identifier, identifier, (match[1],) if match else ())
    versioned, joined = "", ""
    fields, others = identifier.split("|"), list[str]()
    for tag, first, last, kind in names_among(fields):
        name = "|".join(fields[first : last + 1])
        others.append(_VERSION.sub("", name) if kind == STEM_NAME else name)
        if last > first:
            others.append(f"{fields[first]}{PAIRED_TAGS[tag]}{fields[last]}")
        if kind == MAIN_NAME and tag in ACCESSION_TAGS:
            versioned = versioned or name
        elif last > first or tag == "lcl":
            joined = joined or others[-1]
    accession = _VERSION.sub("", versioned) or joined or identifier
    return Names(accession, versioned or joined or identifier, tuple(filter(None, dict.fromkeys(others))))


def names_among(fields: Sequence[str]) -> Iterator[tuple[str, int, int, int]]:
    """Yield tag, first and last field, and kind of each name among the fields of an identifier.

    Only tags, and which fields are empty, decide.
    """
    at, padded = 0, [*fields, "", ""]
    while at < len(fields) and (tag := padded[at]) in TAGS:
        first, second = padded[at + 1 : at + 3]
        if tag in PAIRED_TAGS:
            if first and second:
                yield tag, at + 1, at + 2, MAIN_NAME
                alias = at + 2 if tag == "gnl" else at + 1
                yield tag, alias, alias, ALIAS_NAME
        elif first:
            yield tag, at + 1, at + 1, MAIN_NAME
        if tag in ACCESSION_TAGS and first:
            yield tag, at + 1, at + 1, STEM_NAME
        if tag in ACCESSION_TAGS and second:
            yield tag, at + 2, at + 2, ALIAS_NAME if first else MAIN_NAME
        at += 2 if tag in SINGLE_TAGS else 3


Sums = npt.NDArray[np.uint64]

HeaderBatch = tuple[Strips, int]
"""Header lines, and the ordinal of the first."""

MAX_THREADS = 16
"""Threads that look through headers: each holds some of them."""

MAX_TABLE_BITS = 24
"""Bits of a hash that a table of the asked names has an entry for: 128 MiB."""

NAMES_PER_BATCH = 1 << 13
"""Headers that are looked at together: few enough to stay in a cache."""

TYPICAL_NAME_LENGTH = 64
"""Bytes in which hardly any identifier does not end."""

_BAR, _DOT, _LF, _MERGED, _UNDERSCORE = b"|.\n\x01_"
_BLANKS = b" \t\v\f"
_ENDS_WORD = np.isin(np.arange(256), [*_BLANKS, _MERGED])

_MULTIPLIER = np.array(0x9E3779B97F4A7C15, dtype=np.uint64)
_POWERS = np.cumprod(np.full(1024, _MULTIPLIER))
_INVERSES = np.cumprod(np.full(1024, pow(int(_MULTIPLIER), -1, 1 << 64), dtype=np.uint64))
_UPPER = np.uint64(0xFFFFFFFF00000000)
"""The half of a hash that an index keeps beside an ordinal."""

_TAG_CODES = np.array(sorted(int.from_bytes(f"{tag}|"[:3].encode(), "little") for tag in TAGS))

_FORMS = np.arange(256, dtype=np.uint8)
"""Letters by their kinds, which are as fine as the patterns of names."""
for _first, _last, _form in (b"090", b"AZA", b"OQO", b"aza"):
    _FORMS[_first : _last + 1] = _form

_T = TypeVar("_T")
_R = TypeVar("_R")


def check_identifiers(identifiers: Iterable[str]) -> Sequence[str]:
    """Return identifiers as a sequence, or raise `OptionError` if they are no strings."""
    if not isinstance(identifiers, Iterable) or isinstance(identifiers, (str, bytes)):
        raise OptionError("identifiers", identifiers, "several strings")
    names = identifiers if isinstance(identifiers, (list, tuple)) else list(identifiers)
    for wrong in (each for each in names if not isinstance(each, str)):
        raise OptionError("identifiers", wrong, "strings")
    return names


def map_in_order(work: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """Yield the result of numpy's work on each item, in order, by threads if there are several items."""
    items, n_threads = iter(items), min(available_processors(), MAX_THREADS)
    while some := list(islice(items, 8 * n_threads)):
        if len(some) < 2 or n_threads < 2 or not can_start_threads(n_threads):
            yield from map(work, some)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                yield from pool.map(work, some)


def pieces_of(batches: Iterable[HeaderBatch]) -> Iterator[tuple[Strips, IntArray]]:
    """Cut batches into small ones; yield headers and their ordinals, shape (n,)."""
    for headers, first in batches:
        for at in range(0, len(headers), NAMES_PER_BATCH):
            part = headers.part(at, at + NAMES_PER_BATCH)
            yield part, np.arange(first + at, first + at + len(part))


def lines_of(strips: Strips) -> list[bytes]:
    """Return the bytes of each strip."""
    data = strips.data.tobytes()
    return [data[start:stop] for start, stop in pairwise(strips.offsets.tolist())]


def first_words(headers: Strips) -> tuple[Strips, IntArray]:
    """Return the first words of headers, and of the headers that NCBI merged into them, with a bar after each.

    The second value is the place of each word's header, ascending, shape (n_words,), int64.
    """
    data, bounds = np.append(headers.data, np.full(TYPICAL_NAME_LENGTH, ord(" "), dtype=np.uint8)), headers.offsets
    merged = np.flatnonzero(headers.data == _MERGED)
    starts, stops = np.sort(np.append(bounds[:-1], merged + 1)), np.sort(np.append(bounds[1:], merged))
    for place in np.flatnonzero(_ENDS_WORD[data[starts]] & (starts < stops)).tolist():  # hardly any
        text = data[starts[place] : stops[place]].tobytes()
        starts[place] += len(text) - len(text.lstrip(_BLANKS))
    ends = starts + (rows_at(data, starts, TYPICAL_NAME_LENGTH) <= ord(" ")).argmax(axis=1)
    far = np.flatnonzero(~_ENDS_WORD[data[ends]])
    if len(far):
        blanks = np.flatnonzero(_ENDS_WORD[data])
        ends[far] = blanks[np.searchsorted(blanks, starts[far])]
    lengths = np.minimum(ends, stops) - starts
    starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    words = Strips.from_counts(np.full(int(lengths.sum()) + len(lengths), _BAR, dtype=np.uint8), lengths + 1)
    copy_strips(data, starts, words.data, words.offsets[:-1], lengths)
    return words, np.searchsorted(bounds, starts, side="right") - 1


def sums_of(pool: ByteArray, starts: IntArray, ends: IntArray) -> Sums:
    """Return a hash of each stretch of bytes, shape (n,): a polynomial, as the difference of two running sums."""
    n_steps = (len(pool) >> 10) + 1
    steps, inverse_steps = (np.cumprod(np.full(n_steps, each[-1])) for each in (_POWERS, _INVERSES))
    running = np.zeros(len(pool) + 1, dtype=np.uint64)
    np.cumsum(pool * np.multiply.outer(steps, _POWERS).ravel()[: len(pool)], out=running[1:])
    sums: Sums = (running[ends] - running[starts]) * inverse_steps[starts >> 10] * _INVERSES[starts & 1023]
    return (sums ^ sums >> np.uint64(32)) * _MULTIPLIER


def _are_equal(
    pool: ByteArray, starts: IntArray, other: ByteArray, others: IntArray, lengths: IntArray
) -> npt.NDArray[np.bool_]:
    """Compare stretches of two pools, from ``starts`` and ``others`` on, all of shape (n,)."""
    equal = np.ones(len(lengths), dtype=bool)
    for at in range(0, len(lengths), NAMES_PER_BATCH):
        some = slice(at, at + NAMES_PER_BATCH)
        wrong = pool[ranges(starts[some], lengths[some])] != other[ranges(others[some], lengths[some])]
        equal[at + np.searchsorted(np.cumsum(lengths[some]), np.flatnonzero(wrong), side="right")] = False
    return equal


class HashedNames(NamedTuple):
    """Names that stand in some words, each of shape (n,): the words themselves come first."""

    pool: ByteArray
    owners: IntArray
    starts: IntArray
    lengths: IntArray
    kinds: IntArray
    """`EXACT_NAME` for the first word of each owner, `ALIAS_NAME` or `MAIN_NAME`."""
    sums: Sums


def names_of_headers(headers: Strips) -> HashedNames:
    """Find all names in headers, whose owners are the headers' places; the names are in UTF-8."""
    if headers.data.max(initial=0) >= 128:
        lines = [each.decode(header_encoding(each)).encode() for each in lines_of(headers)]
        headers = Strips.from_counts(np.frombuffer(b"".join(lines), dtype=np.uint8), np.array([*map(len, lines)]))
    return names_in(*first_words(headers))


def names_in(words: Strips, owners: IntArray) -> HashedNames:
    """Find all names in some words, whose owners are ascending, shape (n,)."""
    pool, begins = words.data, words.offsets[:-1]
    ends = np.flatnonzero(pool == _BAR)  # of fields
    starts = np.append(0, ends + 1)[:-1]
    bounds = np.searchsorted(ends, words.offsets)
    forms = _forms_of_fields(pool, starts, ends)
    samples, back = _samples(words, sums_of(forms, bounds[:-1], bounds[1:]))
    tables = [[place for _, *place in names_among(each.split("|"))] for each in samples]
    sizes = np.array([*map(len, tables)], dtype=np.int64)
    table = np.array([place for each in tables for place in each], dtype=np.int64).reshape(-1, 3)
    first_fields, last_fields, kinds = table[ranges(offsets_of(sizes)[back], sizes[back])].T
    of = np.repeat(np.arange(len(words)), sizes[back])
    starts, ends = starts[bounds[of] + first_fields], ends[bounds[of] + last_fields]
    stems = np.flatnonzero(kinds == STEM_NAME)
    ends[stems], kinds[stems] = _without_version(pool, starts[stems], ends[stems]), ALIAS_NAME
    named = np.flatnonzero(ends)
    lone, lone_starts, lone_ends = _names_without_bars(words, np.flatnonzero(np.diff(bounds) == 1))
    own_kinds = np.where(np.diff(owners, prepend=-1) > 0, EXACT_NAME, ALIAS_NAME)
    kinds = np.concatenate([own_kinds, kinds[named], np.full(len(lone), ALIAS_NAME)])
    starts = np.concatenate([begins, starts[named], lone_starts])
    ends = np.concatenate([words.offsets[1:] - 1, ends[named], lone_ends])
    owners = np.concatenate([owners, owners[of[named]], owners[lone]])
    return HashedNames(pool, owners, starts, ends - starts, kinds, sums_of(pool, starts, ends))


def _forms_of_fields(pool: ByteArray, starts: IntArray, ends: IntArray) -> ByteArray:
    """Return the form of each field: 0 if it is empty, 1 if it is no tag, and the number of a tag."""
    forms: ByteArray = np.minimum(ends - starts, 1).astype(np.uint8)
    short = np.flatnonzero((ends - starts == 2) | (ends - starts == 3))
    texts = pool[starts[short][:, None] + np.arange(3)] @ np.array([1, 1 << 8, 1 << 16])
    tags = np.minimum(np.searchsorted(_TAG_CODES, texts), len(_TAG_CODES) - 1)
    forms[short] = np.where(_TAG_CODES[tags] == texts, tags + 2, 1)
    return forms


def _samples(words: Strips, forms: Sums) -> tuple[list[str], IntArray]:
    """Return one word of each form, with a letter for each byte, and the number of each word's form, shape (n,)."""
    chosen, back = unique_with_places(forms.view(np.int64))
    places = np.empty(len(chosen), dtype=np.int64)
    places[back] = np.arange(len(forms))
    return [each[:-1].decode("latin-1") for each in lines_of(words.take(places))], back


def _without_version(pool: ByteArray, starts: IntArray, ends: IntArray) -> IntArray:
    """Return where names end before a dot and one to three digits, shape (n,); 0 for names without a version."""
    stems, is_number = np.zeros(len(ends), dtype=np.int64), np.ones(len(ends), dtype=bool)
    for n in range(1, 4):
        is_number &= (ends - starts > n + 1) & (pool[np.maximum(ends - n, 0)] - np.uint8(ord("0")) < 10)
        is_version = is_number & (pool[np.maximum(ends - n - 1, 0)] == _DOT)
        stems[is_version] = ends[is_version] - n - 1
    return stems


def _names_without_bars(words: Strips, lone: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Find the names in words of one field: words, starts and ends, each of shape (n,)."""
    pool, starts = words.data, words.offsets[lone]
    is_marked = (pool[np.minimum(starts[:, None] + [4, 8, 9], len(pool) - 1)] == _UNDERSCORE).any(axis=1)
    lone = lone[is_marked | (_without_version(pool, starts, words.offsets[lone + 1] - 1) > 0)]  # others have none
    chosen = words.take(lone)
    forms, begins = _FORMS[chosen.data], chosen.offsets[:-1]
    heads = begins[chosen.data[begins] == ord("U")]  # of words such as UniRef50_P12345, whose prefix counts as it is
    prefixes = np.minimum(heads[:, None] + np.arange(10), len(forms) - 1)
    forms[prefixes] = chosen.data[prefixes]
    samples, back = _samples(chosen, sums_of(forms, begins, chosen.offsets[1:]))
    spans = np.zeros((len(samples), 2), dtype=np.int64)
    for span, text in zip(spans, samples, strict=True):
        for name in names_of(text).others:  # one, which begins or ends the word
            span[:] = (0, len(name)) if text.startswith(name) else (len(text) - len(name), len(text))
    spans_found = np.flatnonzero(spans[back, 1])
    return lone[spans_found], *(spans[back[spans_found]].T + words.offsets[lone[spans_found]])


class NameQuery:
    """Names to look up."""

    def __init__(self, asked: Sequence[str]) -> None:
        self._n = n = len(asked)
        if "\n" in (joined := "".join(asked)):  # which no header has
            asked = ["" if "\n" in each else each for each in asked]
        more = list(_spellings(asked)) if any(mark in joined for mark in (":", "_", "pdb|")) else []
        text = "\n".join([*asked, *(spelling for _, spelling, _ in more), ""])
        self._pool = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8).copy()
        ends = np.flatnonzero(self._pool == _LF)
        self._pool[ends] = _BAR
        names = names_in(Strips(self._pool, np.append(0, ends + 1)), np.arange(len(ends)))
        names.kinds[n : len(ends)] = [kind for _, _, kind in more]
        chosen = np.append(np.arange(len(ends)), np.flatnonzero((names.kinds == MAIN_NAME) & (names.owners < n)))
        chosen = chosen[np.argsort(names.sums[chosen])]
        self._starts, self._lengths, self._kinds, self.sums = (each[chosen] for each in names[2:])
        self._asked = np.append(np.arange(n), [place for place, _, _ in more]).astype(np.int64)[names.owners[chosen]]
        bits = min(len(chosen).bit_length() + 1, MAX_TABLE_BITS)
        self._shift = np.uint64(64 - bits)
        self._first = offsets_of(np.bincount((self.sums >> self._shift).astype(np.int64), minlength=1 << bits))

    def find(self, pieces: Iterable[tuple[Strips, IntArray]]) -> tuple[IntArray, IntArray]:
        """Find entries in headers with their ordinals; see `NameIndex.find` for arrays of shape (n,)."""
        none = np.empty(0, dtype=np.int64)
        matches = [(none, none, none), *map_in_order(self._matches, pieces)]
        places, subjects, levels = (np.concatenate(each) for each in zip(*matches, strict=True))
        best = np.full(self._n, MAIN_NAME)
        np.minimum.at(best, places, levels)
        chosen, n_subjects = levels == best[places], int(subjects.max(initial=0)) + 1
        both = np.sort(places[chosen] * n_subjects + subjects[chosen])
        both = both[np.diff(both, prepend=-1) > 0]  # an entry may have two such names
        return both // n_subjects, both % n_subjects

    def _matches(self, piece: tuple[Strips, IntArray]) -> tuple[IntArray, IntArray, IntArray]:
        """Return which asked names find which subjects, and how."""
        names = names_of_headers(piece[0])
        bits = (names.sums >> self._shift).astype(np.int64)
        first = self._first[bits]
        counts = self._first[bits + 1] - first
        mine, theirs = ranges(first, counts), np.repeat(np.arange(len(bits)), counts)
        fits = (self.sums[mine] == names.sums[theirs]) & (self._lengths[mine] == names.lengths[theirs])
        mine, theirs = mine[fits], theirs[fits]
        same = _are_equal(self._pool, self._starts[mine], names.pool, names.starts[theirs], self._lengths[mine])
        mine, theirs = mine[same], theirs[same]
        levels = np.maximum(self._kinds[mine], np.minimum(names.kinds[theirs], ALIAS_NAME))
        return self._asked[mine], piece[1][names.owners[theirs]], levels


def _spellings(names: Sequence[str]) -> Iterator[tuple[int, str, int]]:
    """Yield how headers may write some asked names: with a bar between the fields of ``1ABC_A`` or ``mine:7``."""
    for place, each in enumerate(names):
        if each[4:5] == "_" and 6 <= len(each) <= 9:
            yield place, each.replace("_", "|", 1), EXACT_NAME
        if ":" in each:
            yield place, each.replace(":", "|", 1), EXACT_NAME
        if each[:4] == "pdb|":
            yield place, names_of(each).accession, MAIN_NAME


class NameIndex:
    """Half of the hash of each name, and the ordinal of its subject, below 2^32: 8 bytes for each name."""

    def __init__(self, batches: Iterable[HeaderBatch]) -> None:
        self._keys = np.concatenate([np.empty(0, dtype=np.uint64), *map_in_order(_keys_of, pieces_of(batches))])
        self._keys.sort()

    def find(self, asked: Sequence[str], headers_of: Callable[[IntArray], Strips]) -> tuple[IntArray, IntArray]:
        """Find entries by name: by their identifiers, else other names, else the accession in the requested name.

        Returns places of requested names, ascending, and ordinals, ascending for each, both of shape (n,), int64.
        """
        query = NameQuery(asked)
        begins = query.sums & _UPPER
        first = np.searchsorted(self._keys, begins)
        counts = np.searchsorted(self._keys, begins | ~_UPPER, side="right") - first
        places = unique_with_places((self._keys[ranges(first, counts)] & ~_UPPER).astype(np.int64))[0]
        parts = (places[at : at + NAMES_PER_BATCH] for at in range(0, len(places), NAMES_PER_BATCH))
        return query.find((headers_of(part), part) for part in parts)


def _keys_of(piece: tuple[Strips, IntArray]) -> Sums:
    """Return the keys of an index for some headers."""
    names = names_of_headers(piece[0])
    return names.sums & _UPPER | piece[1][names.owners].astype(np.uint64)


def find_without_index(batches: Iterable[HeaderBatch], asked: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Find entries by name in one pass over all headers, without an index; two of shape (n,), as `NameIndex.find`."""
    return NameQuery(asked).find(pieces_of(batches))


LIST_BYTES = 1 << 30
"""Maximum bytes of a decompressed list: a hundred million accessions."""


def read_list(path: str | Path, option: str, what: str = "identifiers") -> list[str]:
    """Return the lines of a list, each once, in their order; ``option`` and ``what`` are for messages.

    The text is UTF-8, or else Latin-1 as in FASTA headers; plain or compressed; ``-`` is stdin. Lines end in LF, CRLF
    or CR. Blank lines, blanks around an identifier and lines that begin with ``#`` are skipped.
    """
    name = os.fspath(path)
    source = f"{option}: {'<stdin>' if name == '-' else name}"
    try:
        with Input(name, is_fasta=False) as opened:
            raw = opened.read(LIST_BYTES + 1)
    except SequenceError as error:
        reason = getattr(error.__cause__, "strerror", "") or error.problem
        raise InputError(f"{source}: cannot be read: {reason}; expected a file with {what}, one per line") from error
    if len(raw) > LIST_BYTES:
        raise InputError(f"{source}: got more than {LIST_BYTES:,} bytes; split the list into several")
    if b"\0" in raw:
        raise InputError(f"{source}: got NUL bytes, expected {what} as text, one per line")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    lines = dict.fromkeys(map(str.strip, text.replace("\r", "\n").split("\n")))
    lines.pop("", None)
    names = [each for each in lines if each[0] != "#"] if "#" in text else list(lines)
    if not names:
        raise InputError(f"{source}: no {what} found, expected one per line")
    return names
