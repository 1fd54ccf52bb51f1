"""Formats of query files, by their first bytes, and of profiles that are written, by the file's name.

FASTA needs only this module: the readers of other formats are imported when they are used.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from swsearch.db.input_stream import ByteSource
from swsearch.errors import InputError, SequenceError, check_choice
from swsearch.options.words import QUERY_FORMATS, QueryFormat

HEAD_BYTES = 1 << 16
"""Bytes of a file that its format is recognized by."""

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


PROFILE_ENDINGS: dict[str, QueryFormat] = {
    ".json": "json", ".jsonl": "json", ".asn": "asn", ".smp": "asn", ".chk": "asn", ".pssm": "pssm", ".hmm": "hmm",
    ".hhm": "hhm",
}  # fmt: skip
"""The format in which profiles are written, by how the file's name ends. Files that are read may have any name."""

_PROGRAMS = {
    "json": "JSON lines", "asn": "PSI-BLAST's ASN.1", "pssm": "PSI-BLAST's ASCII", "hmm": "HMMER",
    "hhm": "HH-suite",
}  # fmt: skip

_OF_MANY = ("json", "hmm")
"""Formats whose files hold several profiles."""


def format_to_write(path: str, n_profiles: int = 1) -> QueryFormat:
    """Return the format in which so many profiles are written to a file, by its name; ``-`` is stdout, in JSON lines.

    Raises
    ------
    InputError
        If the name has another ending, or the format holds only one profile and there are more.
    """
    ending = PurePath(path).suffix.lower()
    if path != "-" and ending not in PROFILE_ENDINGS:
        names = [
            f"{' or '.join(each for each, one in PROFILE_ENDINGS.items() if one == format_)} ({program})"
            for format_, program in _PROGRAMS.items()
        ]
        got = f"the ending '{ending}'" if ending else "a name without an ending"
        raise InputError(
            f"{path}: got {got}, expected a format of profiles; choose a name that ends in {', '.join(names)}"
        )
    format_ = "json" if path == "-" else PROFILE_ENDINGS[ending]
    if n_profiles > 1 and format_ not in _OF_MANY:
        raise InputError(
            f"{path}: got {n_profiles:,} profiles, expected one in a file of {_PROGRAMS[format_]}; save them as "
            ".jsonl or .hmm"
        )
    return format_


def format_of(source: ByteSource, asked: QueryFormat = "auto") -> QueryFormat:
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
    check_choice("query_format", asked, QUERY_FORMATS)
    if asked != "auto":
        return asked
    head = source.peek(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
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
