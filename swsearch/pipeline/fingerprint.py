"""What a search's results depend on, as plain values that can be kept, compared and named.

Not what they do not depend on: threads, engine, device, the names of files and the formats of outputs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.inputs import Query
from swsearch.options.row import rows_of
from swsearch.options.words import Mask
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.table.search import SearchTable
from swsearch.scoring import GAP_COLUMNS
from swsearch.statistics.choice import statistics_in_force
from swsearch.version import version

if TYPE_CHECKING:
    from swsearch.db import Database
    from swsearch.profiles.alignment import QueryAlignment
    from swsearch.profiles.profile import Profile

FORMAT = 2
"""Version of a checkpoint's files."""

SHOWN_DIGITS = 12
"""Digits of a checksum that a message shows."""

Stated = dict[str, Any]
"""Names and what they stand for, as JSON has it."""


def manifest(queries: Sequence[Query], database: Database, mask: Mask, options: SearchOptions) -> Stated:
    """Return all that the results of a search depend on.

    Parameters
    ----------
    queries : sequence of Query
        Masked, in order.
    database : Database
        Open.
    mask : {"none", "lower", "tantan"}
        What of it is masked.
    options : SearchOptions
        What is asked for.

    Returns
    -------
    dict of str to (int, float, str or None)
        Names are those of the arguments of `swsearch.search`, but for ``format``, ``version`` and ``database``.
    """
    is_iterated, matrix = options.makes_profiles, options.scoring.matrix
    letters = f"{matrix.alphabet.name} {matrix.alphabet.letters} {matrix.published}"
    sha256 = hashlib.sha256(letters.encode() + matrix.scores.astype("<i4").tobytes()).hexdigest()
    found = {
        name: row.kind.fingerprint(value)
        for name, row in rows_of(SearchTable).items()
        if row.decides and (is_iterated or "iterations" not in (name, row.requires))
        if (value := options.effective(name)) is not None and value is not False
    }
    if is_iterated:
        found["inclusion"] = ", ".join(f"{name} {value}" for name, value in vars(options.inclusion).items())
    return {
        "format": FORMAT,
        "version": version(),
        "queries": _queries(queries),
        "database": f"{database.n_subjects:,} subjects, {database.n_residues:,} residues, {database.identity()}",
        **found,
        "subject_mask": mask,
        "statistics": statistics_in_force(options.statistics),
        "matrix": f"{matrix.name}, {sha256}",
        "distribution": options.distribution,
    }


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say of each value that differs what it was and what it is.

    A distribution that was kept does no harm where none is asked for.
    """
    found = []
    for name in dict.fromkeys((*was, *now)):
        mine, theirs = now.get(name), was.get(name)
        if mine != theirs and not (name == "distribution" and theirs is True):
            found.append(f"{name} was {_shown(theirs)}, is {_shown(mine)}")
    return found


def digest_of(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values, lower-case hexadecimal."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "not given", True: "on", False: "off"}[value]
    return re.sub(r"\b([0-9a-f]{64})\b", lambda found: f"sha256 {found[1][:SHOWN_DIGITS]}", str(value))


def _queries(queries: Sequence[Query]) -> str:
    digest, residues = hashlib.sha256(), 0
    for query in queries:
        residues += len(query.codes)
        shown = b"" if query.letters is None else query.letters.tobytes()
        own = [] if query.profile is None else [_profile(query.profile)]
        for part in (_text(query.identifier), _text(query.description), query.codes.tobytes(), shown, *own):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return f"{len(queries):,} sequences, {residues:,} residues, {digest.hexdigest()}"


def _profile(profile: Profile) -> bytes:
    """Return what a profile scores with, and what reports show of it."""
    gaps = [] if profile.gaps is None else [getattr(profile.gaps, name).tobytes() for name in GAP_COLUMNS]
    shown = f"{profile.iteration} {profile.source}"
    return b"".join([profile.scores.tobytes(), *gaps, _text(shown), _alignment(profile.alignment)])


def _alignment(alignment: QueryAlignment | None) -> bytes:
    """Return all of the alignment that a profile is made of: the next profile begins with it."""
    if alignment is None:
        return b""
    arrays = [value for value in vars(alignment).values() if isinstance(value, np.ndarray)]
    names = [*alignment.identifiers, *alignment.descriptions]
    return b"".join([each.tobytes() for each in arrays]) + _text(json.dumps(names))


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
