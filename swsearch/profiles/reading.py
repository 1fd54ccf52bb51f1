"""Files that queries come in: which format one has, by its content or by name, and the profiles in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Literal, NoReturn, TypeVar, get_args

from swsearch.db.fasta import ByteSource
from swsearch.db.inputs import Input
from swsearch.errors import InputError, OptionError, SequenceError, check_choice
from swsearch.profiles import alignments_in, hhm, hmm, pssm, saving
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.construction import build_profile
from swsearch.profiles.profile import Profile
from swsearch.profiles.texts import Text
from swsearch.scoring import Scoring

T = TypeVar("T")

QueryFormat = Literal[
    "auto", "fasta", "a3m", "fasta-aligned", "stockholm", "clustal", "pssm", "asn", "hmm", "hhm", "json"
]
"""What a file of queries is; ``auto`` is what its content says."""

FORMATS: tuple[QueryFormat, ...] = get_args(QueryFormat)

HEAD_BYTES = 1 << 16
"""Bytes of a file that its format is recognized by."""

MOST_BYTES = 1 << 32
"""Largest file that is no FASTA: its text is in memory whole."""

_READ_BYTES = 1 << 20

_ALIGNMENTS: dict[str, Callable[[Text], list[QueryAlignment]]] = {
    "a3m": alignments_in.read_a3m,
    "fasta-aligned": alignments_in.read_aligned_fasta,
    "stockholm": alignments_in.read_stockholm,
    "clustal": alignments_in.read_clustal,
}

_PROFILES: dict[str, Callable[[Text, Scoring], list[Profile]]] = {
    "pssm": pssm.read_ascii,
    "asn": pssm.read_asn,
    "hmm": hmm.read_hmm,
    "hhm": hhm.read_hhm,
    "json": lambda text, _: saving.read_json(text),
}

_BEGINNINGS = (
    ("stockholm", rb"# STOCKHOLM"),
    ("clustal", rb"(CLUSTAL|MUSCLE|PROBCONS|MSAPROBS|Kalign|Biopython)[ \t(]"),
    ("hmm", rb"HMMER[0-9]"),
    ("hhm", rb"HHsearch "),
    ("asn", rb"PssmWithParameters\s*::="),
    ("pssm", rb"Last position-specific scoring matrix"),
    ("json", rb'\{\s*"swsearch"'),
    ("a3m", rb"#[^\n]*\n([ \t\r]*\n|#[^\n]*\n)*>"),
)
"""Formats, and what their files begin with, after blanks."""

_NOT_READ = (
    (rb"0\x80", "a PSSM in binary ASN.1; write it as text, as psiblast -out_pssm does"),
    (rb"<\?xml[^>]*>\s*(<!DOCTYPE[^>]*>\s*)?<Pssm", "a PSSM in XML; write it as ASN.1 text, as psiblast does"),
)


class Peeked:
    """A source of bytes whose beginning was looked at, and is read again.

    Parameters
    ----------
    source : ByteSource
        At its beginning.
    """

    def __init__(self, source: ByteSource) -> None:
        self.name = source.name
        self._source = source
        buffer = bytearray(HEAD_BYTES)
        n = source.read_into(memoryview(buffer))
        self.head = bytes(buffer[:n])
        self._rest = memoryview(self.head)
        self._ended = n < HEAD_BYTES

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer; return the number of bytes, less than it holds only at the end."""
        n = min(len(self._rest), len(view))
        view[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        if n < len(view) and not self._ended:
            n += self._source.read_into(view[n:])
        return n

    def whole(self) -> bytes:
        """Return all bytes.

        Raises
        ------
        SequenceError
            If they are more than `MOST_BYTES`, or are no text.
        """
        found = bytearray()
        while True:
            buffer = bytearray(_READ_BYTES)
            n = self.read_into(memoryview(buffer))
            found += buffer[:n]
            if n < _READ_BYTES or b"\0" in buffer:  # Text says where
                return bytes(found)
            if len(found) > MOST_BYTES:
                size = f"more than {MOST_BYTES >> 30} GiB"
                raise SequenceError(self.name, f"{size}, expected profiles or an alignment; give a part of it")


def format_of(source: Peeked, asked: QueryFormat = "auto") -> QueryFormat:
    """Return the format of a file: the one that is asked for, or what its beginning says.

    FASTA is whatever is nothing else. A file that begins with ``>`` is A3M where its name says so, for A3M without
    gaps cannot be told from FASTA.

    Raises
    ------
    OptionError
        If the format that is asked for is not known.
    SequenceError
        If it is a PSSM in a form that is not read.
    """
    check_choice("query_format", asked, FORMATS)
    if asked != "auto":
        return asked
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for pattern, what in _NOT_READ:
        if re.match(pattern, head):
            raise SequenceError(source.name, f"looks like {what}")
    for name, pattern in _BEGINNINGS:
        if re.match(pattern, head):
            return name  # type: ignore[return-value]
    return "a3m" if head.startswith(b">") and _says_a3m(source.name) else "fasta"


def _says_a3m(name: str) -> bool:
    return re.search(r"\.a3m(\.(gz|xz|bz2|zst))?$", name) is not None


def profiles_of(source: Peeked, format_: QueryFormat, scoring: Scoring) -> list[Profile]:
    """Return the profiles in a file; of alignments they are made.

    Parameters
    ----------
    source : Peeked
        At its beginning.
    format_ : str
        As `format_of` returns it, not ``fasta``.
    scoring : Scoring
        That of the search, in whose units the scores are to be.

    Returns
    -------
    list of Profile
        Not empty.

    Raises
    ------
    SequenceError
        If the file is not what the format says.
    """
    text = Text.of(source.name, source.whole())
    if format_ in _ALIGNMENTS:
        return [build_profile(one, scoring) for one in _ALIGNMENTS[format_](text)]
    return _PROFILES[format_](text, scoring)


def read_profiles(
    path: str | os.PathLike[str], format: QueryFormat = "auto", scoring: Scoring | None = None
) -> list[Profile]:
    """Read all profiles of a file, which may be compressed; the parameters are those of `Profile.read`."""
    check_choice("format", format, FORMATS)
    used = _checked(scoring)
    with Input(_path(path)) as opened:
        source = Peeked(opened)
        kind = format_of(source, format)
        if kind == "fasta":
            _refuse_fasta(source.name)
        return profiles_of(source, kind, used)


def read_alignments(path: str | os.PathLike[str], format: QueryFormat = "auto") -> list[QueryAlignment]:
    """Read all alignments of a file, in a format of alignments."""
    check_choice("format", format, ("auto", *_ALIGNMENTS))
    with Input(_path(path)) as opened:
        source = Peeked(opened)
        kind = format_of(source, format)
        if kind == "fasta":
            _refuse_fasta(source.name)
        if kind not in _ALIGNMENTS:
            raise SequenceError(source.name, f"holds profiles ({kind}), expected an alignment; read it as a profile")
        return _ALIGNMENTS[kind](Text.of(source.name, source.whole()))


def profile_from(alignment: QueryAlignment | str | os.PathLike[str], scoring: Scoring | None = None) -> Profile:
    """Make a profile of an alignment, or of the one that a file holds."""
    used = _checked(scoring)
    if not isinstance(alignment, QueryAlignment):
        alignment = single(read_alignments(alignment), os.fsdecode(alignment), "alignments")
    return build_profile(alignment, used)


def single(found: list[T], path: str, what: str) -> T:
    """Return what a file holds, if it is one."""
    if len(found) != 1:
        raise InputError(f"{path}: holds {len(found)} {what}, expected one; a search takes all of a file")
    return found[0]


def _checked(scoring: Scoring | None) -> Scoring:
    if scoring is not None and not isinstance(scoring, Scoring):
        raise OptionError("scoring", scoring, "a swsearch.Scoring, such as Scoring('BLOSUM62', 11, 1)")
    return scoring or Scoring()


def _path(path: object) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise OptionError("path", path, "the name of a file, or - for stdin")
    return os.fsdecode(path)


def _refuse_fasta(name: str) -> NoReturn:
    expected = "expected an alignment or a profile; name its format if it is an alignment: a3m or fasta-aligned"
    raise SequenceError(name, f"looks like FASTA, or like nothing that is known, {expected}")
