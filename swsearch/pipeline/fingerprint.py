"""The inputs and options that decide the results of a search.

They are plain values that a checkpoint stores, compares and names. Threads, engine, device, file names and output
formats are not among them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.inputs import Query
from swsearch.matrices import GAP_COSTS
from swsearch.options.kinds import Mask
from swsearch.options.row import Header, Interface, rows_of
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import SCORING_OPTIONS, SearchOptions
from swsearch.pipeline.subjects import Subjects
from swsearch.pipeline.table.search import SearchTable
from swsearch.run_info import UNSAVED_OPTIONS, ActiveOptions, Execution, OptionValues, Origin, Program, RunInfo
from swsearch.scoring import GAP_COLUMNS, Matrix, load_matrix, matrix_names
from swsearch.statistics.methods import resolve_method
from swsearch.version import version

if TYPE_CHECKING:
    from swsearch.db import Database
    from swsearch.profiles.profile import Profile
    from swsearch.profiles.query_alignment import QueryAlignment


CHECKPOINT_VERSION = 2
"""Version of a checkpoint's files."""

SHOWN_DIGITS = 12
"""Digits of a checksum that a message shows."""

JsonValues = dict[str, Any]
"""Names and what they stand for, as JSON has it."""


def search_fingerprint(
    queries: Sequence[Query], database: Database, mask: Mask, options: SearchOptions
) -> JsonValues:
    """Return all values that decide the results of a search.

    Returns
    -------
    dict of str to (int, float, str or None)
        Names are those of the arguments of `swsearch.search`, but for ``format``, ``version`` and ``database``.
    """
    is_iterated, matrix = options.makes_profiles, options.scoring.matrix
    letters = f"{matrix.alphabet.name} {matrix.alphabet.letters} {matrix.published}"
    sha256 = hashlib.sha256(letters.encode() + matrix.scores.astype("<i4").tobytes()).hexdigest()
    values = {
        name: row.kind.fingerprint(value)
        for name, row in rows_of(SearchTable).items()
        if row.decides and (is_iterated or "iterations" not in (name, row.requires))
        if (value := options.effective(name)) is not None and value is not False
    }
    if is_iterated:
        values["inclusion"] = ", ".join(f"{name} {value}" for name, value in vars(options.inclusion).items())
    return {
        "format": CHECKPOINT_VERSION,
        "version": version(),
        "queries": _queries_to_json(queries),
        "database": f"{database.n_subjects:,} subjects, {database.n_residues:,} residues, {database.identity()}",
        **values,
        "subject_mask": mask,
        "statistics": resolve_method(options.statistics),
        "matrix": f"{matrix.name}, {sha256}",
        "distribution": options.distribution,
    }


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a text for each different value, with its old and new value.

    A distribution that was kept does no harm where none is asked for.
    """
    texts = []
    for name in dict.fromkeys((*was, *now)):
        mine, theirs = now.get(name), was.get(name)
        if mine != theirs and not (name == "distribution" and theirs is True):
            texts.append(f"{name} was {_shorten(theirs)}, is {_shorten(mine)}")
    return texts


def digest_of(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values, lower-case hexadecimal."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _shorten(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "not given", True: "on", False: "off"}[value]
    return re.sub(r"\b([0-9a-f]{64})\b", lambda found: f"sha256 {found[1][:SHOWN_DIGITS]}", str(value))


def _queries_to_json(queries: Sequence[Query]) -> str:
    digest, residues = hashlib.sha256(), 0
    for query in queries:
        residues += len(query.codes)
        letters = b"" if query.letters is None else query.letters.tobytes()
        own = [] if query.profile is None else [_profile_bytes(query.profile)]
        for part in (
            _encode_text(query.identifier),
            _encode_text(query.description),
            query.codes.tobytes(),
            letters,
            *own,
        ):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return f"{len(queries):,} sequences, {residues:,} residues, {digest.hexdigest()}"


def _profile_bytes(profile: Profile) -> bytes:
    """Return a profile's scores, and its texts in reports, as bytes."""
    gaps = [] if profile.gaps is None else [getattr(profile.gaps, name).tobytes() for name in GAP_COLUMNS]
    texts = f"{profile.iteration} {profile.source}"
    return b"".join([profile.scores.tobytes(), *gaps, _encode_text(texts), _alignment_bytes(profile.alignment)])


def _alignment_bytes(alignment: QueryAlignment | None) -> bytes:
    """Return all of the alignment that a profile is made of: the next profile begins with it."""
    if alignment is None:
        return b""
    values = (getattr(alignment, field.name) for field in fields(alignment))  # not what is cached beside them
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    names = [*alignment.identifiers, *alignment.descriptions]
    return b"".join([each.tobytes() for each in arrays]) + _encode_text(json.dumps(names))


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


WRITTEN_WHEN_OFF = ("ignore_missing_ids",)
"""Flags that are written although they are off."""


def export_options(options: SearchOptions, files: Mapping[str, str]) -> OptionValues:
    """Return the options of a search that affect its hits.

    Parameters
    ----------
    files : dict of str to str
        Files that a matrix and lists of identifiers were read from, by the option's name in Python.

    Returns
    -------
    dict of str to (bool, int, float, str or list of str)
        Names are as after ``--``; `UNSAVED_OPTIONS` lists options that the search had and that have no value here,
        such as identifiers that came from Python.
    """
    settings: dict[str, Any] = {}
    missing = []
    rows = rows_of(SearchTable, Interface.COMMAND)
    for name in (*SCORING_OPTIONS, *(name for name in rows if name not in SCORING_OPTIONS)):
        value, row = options.effective(name), rows[name]
        if value is None or (value is False and name not in WRITTEN_WHEN_OFF):
            continue
        written = row.kind.format(value) if name != "matrix" or _is_known(value) else None
        written = files.get(name) if written is None else written
        if written is None:
            missing.append(row.key)
        else:
            settings[row.key] = written
    if options.makes_profiles and options.rules != Inclusion():
        missing.append("inclusion")
    return {**settings, **({UNSAVED_OPTIONS: missing} if missing else {})}


def _is_known(matrix: Matrix) -> bool:
    """Return whether a matrix can be loaded again by its name."""
    known = matrix.name in GAP_COSTS or matrix.name in matrix_names(matrix.alphabet)  # imports Biopython
    return known and np.array_equal(load_matrix(matrix.name, matrix.alphabet).scores, matrix.scores)


PROGRAM_NAMES: dict[tuple[bool, bool], Program] = {
    (False, False): "blastp",
    (True, False): "blastx",
    (False, True): "tblastn",
    (True, True): "tblastx",
}
"""BLAST's name for a search by whether queries and subjects are DNA."""


def shown_options(options: SearchOptions, mask: Mask) -> ActiveOptions:
    """Return the options that reports show beside the basic parameters; ``mask`` is that of the subjects."""
    shown: ActiveOptions = {}
    for name, row in rows_of(SearchTable).items():
        is_told = row.header is Header.ALWAYS or getattr(options, name) != row.default
        value = options.effective(name) if is_told else None
        if name == "subject_mask":
            value = None if mask == "none" else mask  # the database's own mask too
        is_hidden = row.header is Header.NEVER or (row.requires == "iterations" and options.iterations == 1)
        if value is not None and not is_hidden:
            shown[name] = row.kind.describe(value)
    return shown


def run_info(criteria: Criteria, subjects: Subjects, engine: str, origin: Origin) -> RunInfo:
    """Collect the facts that reports state of a search; ``engine`` describes it."""
    options, counts, translation = criteria.options, criteria.counts, criteria.options.translation
    database_code = subjects.database.genetic_code
    execution = Execution(engine, origin.command, origin.started, origin.ended)
    return RunInfo(
        version(), subjects.name, counts.n_records, counts.n_letters, options.scoring, options.mode,
        criteria.statistics_method, options.evalue_threshold, options.max_hits,
        execution=execution, options=shown_options(options, subjects.mask),
        effective_residues=criteria.effective_residues,
        database_sources=tuple(subjects.database.sources()), queries=origin.queries,
        given_checksums=origin.checksums, settings=export_options(options, origin.files),
        program=PROGRAM_NAMES[translation is not None, database_code is not None],
        genetic_code=None if translation is None else translation.genetic_code, database_genetic_code=database_code,
    )  # fmt: skip
