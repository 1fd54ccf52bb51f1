"""Readers of files of profiles and alignments, in any format."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn, TypeVar

from swsearch.db.input_stream import ByteSource, Input
from swsearch.errors import InputError, OptionError, SequenceError, check_choice
from swsearch.options.kinds import QUERY_FORMATS, QueryFormat
from swsearch.profiles import hhm, hmm, json_profile, msa_readers, pssm
from swsearch.profiles.construction import build_profile
from swsearch.profiles.formats import detect_format
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.profiles.text_lines import TextFile
from swsearch.scoring import Scoring

MAX_TEXT_BYTES = 1 << 32
"""Largest file that is no FASTA: its text is in memory whole."""

_Thing = TypeVar("_Thing")

_ALIGNMENTS: dict[str, Callable[[TextFile], list[QueryAlignment]]] = {
    "a3m": msa_readers.read_a3m,
    "fasta-aligned": msa_readers.read_aligned_fasta,
    "stockholm": msa_readers.read_stockholm,
    "clustal": msa_readers.read_clustal,
}

_PROFILES: dict[str, Callable[[TextFile, Scoring], list[Profile]]] = {
    "pssm": pssm.read_ascii,
    "asn": pssm.read_asn,
    "hmm": hmm.read_hmm,
    "hhm": hhm.read_hhm,
    "json": lambda text, _: json_profile.read_json(text),
}


def profiles_of(source: ByteSource, format_: QueryFormat, scoring: Scoring) -> list[Profile]:
    """Return the profiles in a file; of alignments they are made.

    Parameters
    ----------
    scoring : Scoring
        That of the search, in whose units the scores are to be.
    """
    text = _text(source)
    if format_ in _ALIGNMENTS:
        return [build_profile(one, scoring) for one in _ALIGNMENTS[format_](text)]
    return _PROFILES[format_](text, scoring)


def read_profiles(
    path: str | os.PathLike[str], format: QueryFormat = "auto", scoring: Scoring | None = None
) -> list[Profile]:
    """Read all profiles of a file, which may be compressed; the parameters are those of `Profile.read`."""
    check_choice("format", format, QUERY_FORMATS)
    used = _check_scoring(scoring)
    with Input(_path(path)) as opened:
        kind = detect_format(opened, format)
        if kind == "fasta":
            _refuse_fasta(opened.name)
        return profiles_of(opened, kind, used)


def read_alignments(path: str | os.PathLike[str], format: QueryFormat = "auto") -> list[QueryAlignment]:
    """Read all alignments of a file, in a format of alignments."""
    check_choice("format", format, ("auto", *_ALIGNMENTS))
    with Input(_path(path)) as opened:
        kind = detect_format(opened, format)
        if kind == "fasta":
            _refuse_fasta(opened.name)
        if kind not in _ALIGNMENTS:
            raise SequenceError(opened.name, f"holds profiles ({kind}), expected an alignment; read it as a profile")
        return _ALIGNMENTS[kind](_text(opened))


def profile_from(alignment: QueryAlignment | str | os.PathLike[str], scoring: Scoring | None = None) -> Profile:
    """Make a profile of an alignment, or of the one that a file holds."""
    used = _check_scoring(scoring)
    if not isinstance(alignment, QueryAlignment):
        alignment = single(read_alignments(alignment), os.fsdecode(alignment), "alignments")
    return build_profile(alignment, used)


def single(items: list[_Thing], path: str, what: str) -> _Thing:
    """Return the only item of a file; raise if it has several."""
    if len(items) != 1:
        raise InputError(f"{path}: holds {len(items)} {what}, expected one; a search takes all of a file")
    return items[0]


def _text(source: ByteSource) -> TextFile:
    data = source.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        size = f"more than {MAX_TEXT_BYTES >> 30} GiB"
        raise SequenceError(source.name, f"{size}, expected profiles or an alignment; give a part of it")
    return TextFile.from_bytes(source.name, data)


def _check_scoring(scoring: Scoring | None) -> Scoring:
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
