"""Profiles as JSON lines, and the saving of profiles in any format.

JSON has all digits of numbers, so that a profile is read exactly as it was saved. Alignments are rows of A3M: upper
case and ``-`` in the query's columns, lower case between them (``.`` for a stop between them).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.errors import InputError, OptionError, format_value
from swsearch.matrices.tables import MAX_GAP_COST
from swsearch.options.kinds import QueryFormat
from swsearch.output_files import open_output
from swsearch.profiles import hhm, hmm, pssm
from swsearch.profiles.formats import format_to_write
from swsearch.profiles.msa_readers import insertion_runs, rows_of
from swsearch.profiles.profile import PROFILE_LETTERS, Profile
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.profiles.text_lines import TextFile
from swsearch.scoring import GAP_COLUMNS, PositionGapCosts

VERSION = 1
"""Version of the form of a line; a reader rejects later versions."""

KIND = "profile"
"""Value of the key ``swsearch`` in an object written by swsearch."""

_PER_SEQUENCE = ("starts", "ends", "subjects", "iterations")


_WRITERS: dict[QueryFormat, Callable[[Profile], Iterable[str]]] = {
    "json": lambda profile: [to_json_line(profile)],
    "asn": pssm.asn_lines,
    "pssm": pssm.ascii_lines,
    "hmm": hmm.hmm_lines,
    "hhm": hhm.hhm_lines,
}
"""Functions that yield the lines of a profile, by format."""


def save(profiles: Profile | Iterable[Profile], path: str | os.PathLike[str]) -> None:
    """Save profiles to a file, which appears under its name when it is complete.

    Parameters
    ----------
    profiles : Profile or iterable of Profile
        At least one.
    path : path
        Its ending says the format, as of `Profile.save`; ``-`` is stdout, in JSON lines.

    Raises
    ------
    OutputError
        If the file cannot be written.
    InputError
        If there is no profile, or several for a file of one, or the name has another ending.
    """
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise OptionError("path", path, "the name of a file")
    name, chosen = os.fsdecode(path), [profiles] if isinstance(profiles, Profile) else list(profiles)
    if not chosen:
        raise InputError(f"{name}: got no profile to save, expected at least one")
    if wrong := [one for one in chosen if not isinstance(one, Profile)]:
        raise OptionError("profiles", wrong[0], "a swsearch.Profile")
    format_ = format_to_write(name, len(chosen))
    with open_output(name) as stream:
        for one in chosen:
            stream.writelines(lines_of(one, format_))


def lines_of(profile: Profile, format: QueryFormat) -> Iterator[str]:
    """Yield the lines of a profile in a format of `swsearch.profiles.formats.PROFILE_ENDINGS`."""
    if not len(profile) and format != "json":
        raise InputError(f"profile {profile.identifier}: has no positions, expected at least one; save it as .json")
    yield from (f"{line}\n" for line in _WRITERS[format](profile))


def to_json_line(profile: Profile) -> str:
    """Return a profile as a line of JSON in ASCII."""
    gaps, alignment = profile.gaps, profile.alignment
    return json.dumps(
        {
            "swsearch": KIND,
            "version": VERSION,
            "identifier": profile.identifier,
            "description": profile.description,
            "source": profile.source,
            "iteration": int(profile.iteration),
            "lambda": profile.lambda_,
            "scale": profile.scale,
            "gap_open": profile.gap_open,
            "gap_extend": profile.gap_extend,
            "sequence": PROTEIN.decode(profile.codes),
            "letters": PROTEIN.letters,
            "scores": profile.scores.tolist(),
            "gaps": None if gaps is None else {name: getattr(gaps, name).tolist() for name in GAP_COLUMNS},
            "background": None if profile.background is None else profile.background.tolist(),
            "frequencies": None if profile.frequencies is None else profile.frequencies.tolist(),
            "alignment": None if alignment is None else _alignment_data(alignment),
        },
        separators=(",", ":"),
        allow_nan=False,
    )


def _alignment_data(alignment: QueryAlignment) -> dict[str, Any]:
    return {
        "identifiers": list(alignment.identifiers),
        "descriptions": list(alignment.descriptions),
        "a3m": list(rows_of(alignment)),
        **{name: getattr(alignment, name).tolist() for name in _PER_SEQUENCE},
        "evalues": [None if math.isnan(value) else value for value in alignment.evalues.tolist()],
    }


class _Line:
    """A line of JSON, whose entries are checked as they are taken."""

    def __init__(self, text: TextFile, at: int, entries: dict[str, Any]) -> None:
        self._text, self._at, self._entries = text, at, entries

    def fail(self, name: str, expected: str) -> Any:
        got = format_value(self._entries[name]) if name in self._entries else "nothing"
        self._text.fail(f"{name}: got {got}, expected {expected}", self._at)

    def string(self, name: str) -> str:
        value = self._entries.get(name)
        return value if isinstance(value, str) else self.fail(name, "a text")

    def integer(self, name: str, maximum: int, or_none: bool = False) -> int | None:
        value = self._entries.get(name)
        if value is None and or_none:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
            self.fail(name, f"a whole number from 0 to {maximum:,}")
        return int(value)  # type: ignore[arg-type]

    def codes(self, name: str) -> ByteArray:
        return self._text.encode(self.string(name), self._at)

    def part(self, name: str) -> _Line | None:
        value = self._entries.get(name)
        if value is not None and not isinstance(value, dict):
            self.fail(name, "an object, or null")
        return None if value is None else _Line(self._text, self._at, value)

    def strings(self, name: str, n: int | None = None) -> list[str]:
        value = self._entries.get(name)
        if (
            not isinstance(value, list)
            or not all(isinstance(one, str) for one in value)
            or n not in (None, len(value))
        ):
            self.fail(name, "a list of texts" if n is None else f"a list of {n} texts")
        return list(value)  # type: ignore[arg-type]

    def numbers(self, name: str, shape: tuple[int, ...], whole: bool = False) -> FloatArray:
        """Return an array; None in it becomes NaN."""
        expected = f"numbers of shape {shape}"
        try:
            array = np.array(self._entries.get(name), dtype=np.float64)
        except (TypeError, ValueError):
            self.fail(name, expected)
        if array.shape != shape and not (array.size == 0 and 0 in shape):
            self.fail(name, expected)
        array = array.reshape(shape)
        if whole and not (np.isfinite(array).all() and (array == np.floor(array)).all()):
            self.fail(name, f"whole {expected}")
        return array

    def finite(self, name: str, shape: tuple[int, ...]) -> FloatArray | None:
        if self._entries.get(name) is None:
            return None
        array = self.numbers(name, shape)
        return array if np.isfinite(array).all() and (array >= 0).all() else self.fail(name, "numbers >= 0")


def read_json(text: TextFile) -> list[Profile]:
    """Read profiles that `save` wrote; the scores are in the units of the matrix that they were made for."""
    profiles = [_read_line(text, k, line) for k, line in enumerate(text.lines) if line.strip()]
    if not profiles:
        text.fail("no profile, expected a line of JSON for each")
    return profiles


def _read_line(text: TextFile, at: int, line: str) -> Profile:
    try:
        entries = json.loads(line)
    except (ValueError, RecursionError):
        last = all(not rest.strip() for rest in text.lines[at + 1 :])
        text.fail(f"no JSON{': the line is not complete, the file may be truncated' if last else ''}, expected a "
                  "profile that swsearch saved", at)  # fmt: skip
    if not isinstance(entries, dict) or entries.get("swsearch") != KIND:
        text.fail('no profile of swsearch, expected an object that begins with "swsearch":"profile"', at)
    members = _Line(text, at, entries)
    version = members.integer("version", 10**9)
    if version != VERSION:
        later = "; a later swsearch wrote it: update this one" if version and version > VERSION else ""
        text.fail(f"version {version} of the form of profiles, expected {VERSION}{later}", at)
    if members.string("letters") != PROTEIN.letters:
        members.fail("letters", PROTEIN.letters)
    codes = members.codes("sequence")
    n = len(codes)
    scores = members.numbers("scores", (n, PROFILE_LETTERS), whole=True)
    if n and np.abs(scores).max() > 127:
        members.fail("scores", "whole numbers from -127 to 127")
    costs = members.part("gaps")
    alignment = members.part("alignment")
    lambda_, scale = members.finite("lambda", ()), members.finite("scale", ())
    return Profile(
        members.string("identifier"),
        members.string("description"),
        codes,
        scores.astype(np.int8),
        members.integer("gap_open", MAX_GAP_COST, or_none=True),
        members.integer("gap_extend", MAX_GAP_COST, or_none=True),
        None if costs is None else _gaps(costs, n),
        members.finite("background", (20,)),
        members.finite("frequencies", (n, 20)),
        members.string("source"),
        None if alignment is None else _alignment(alignment, codes),
        members.integer("iteration", 10**9) or 0,
        None if lambda_ is None else float(lambda_),
        1.0 if scale is None else float(scale),
    )


def _gaps(line: _Line, n: int) -> PositionGapCosts:
    costs = [line.numbers(name, (n,), whole=True) for name in GAP_COLUMNS]
    for name, values in zip(GAP_COLUMNS, costs, strict=True):
        if n and not 0 <= values.min() <= values.max() <= MAX_GAP_COST:
            line.fail(name, f"costs from 0 to {MAX_GAP_COST}")
    return PositionGapCosts(*(values.astype(np.int16) for values in costs))


def _alignment(line: _Line, codes: ByteArray) -> QueryAlignment:
    identifiers = line.strings("identifiers")
    n = len(identifiers)
    columns, insertions, inserted = _place_a3m(line, line.strings("a3m", n), len(codes))
    if not n or not np.array_equal(columns[0], codes):
        line.fail("a3m", "the profile's sequence first")
    numbers: dict[str, IntArray] = {
        name: line.numbers(name, (n,), whole=True).astype(np.int64) for name in _PER_SEQUENCE
    }
    return QueryAlignment(
        identifiers,
        line.strings("descriptions", n),
        columns,
        numbers["starts"],
        numbers["ends"],
        insertions,
        inserted,
        numbers["subjects"],
        line.numbers("evalues", (n,)),
        numbers["iterations"],
    )


def _place_a3m(line: _Line, rows: Sequence[str], n_columns: int) -> tuple[ByteArray, IntArray, ByteArray]:
    """Return columns, insertions and inserted residues of rows of A3M in which ``.`` is an inserted stop."""
    columns = np.full((len(rows), n_columns), GAP, dtype=np.uint8)
    inserted_before: dict[int, IntArray] = {}
    pieces: list[ByteArray] = [np.zeros(0, dtype=np.uint8)]
    table = PROTEIN.encode_table.copy()
    table[ord("-")], table[ord(".")] = GAP, PROTEIN.letters.index("*")
    for k, row in enumerate(rows):
        data = np.frombuffer(row.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        between = ((data >= ord("a")) & (data <= ord("z"))) | (data == ord("."))
        codes = table[data]
        if len(data) - int(between.sum()) != n_columns or (codes >= GAP + 1).any():
            line.fail("a3m", f"rows of A3M with {n_columns} columns")
        columns[k] = codes[~between]
        inserted_before[k] = np.cumsum(~between)[between]
        pieces.append(codes[between])
    return columns, insertion_runs(inserted_before), np.concatenate(pieces)
