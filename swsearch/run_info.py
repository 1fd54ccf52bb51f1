"""Facts of a run for reports: inputs, options, engine and times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from swsearch.options.kinds import Mode
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.statistics.null_model import FitSettings

ActiveOptions = dict[str, int | float | str]
"""Options of a search beyond scoring, mode and statistics, by name: filters, masks, further alignments."""

Program = Literal["blastp", "blastx", "tblastn", "tblastx"]
"""BLAST's names for what is searched with what: proteins with proteins, DNA with proteins, proteins with DNA, and DNA
with DNA, each translated."""

OptionValues = dict[str, Any]
"""Options of a search, by long names of the command line: flags, numbers, texts, lists of texts."""

UNSAVED_OPTIONS = "missing"
"""Names in `OptionValues` the options that have no value there."""

PYTHON = "swsearch.search() from Python"
"""Substitute for the command line of a search from Python."""


@dataclass(frozen=True)
class Checksum:
    """A file that went into a run.

    Parameters
    ----------
    what : str
        Its part in the run.
    path : str
        Its name, as it was given.
    sha256 : str
        Lower-case hexadecimal.
    """

    what: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Execution:
    """Facts that may differ between runs with equal results.

    Parameters
    ----------
    engine : str
        What scored.
    command : str
        The command line.
    started : datetime
        With its time zone.
    ended : datetime or None
        None while it runs.
    """

    engine: str
    command: str
    started: datetime
    ended: datetime | None = None

    def seconds(self) -> float:
        """Return the seconds that it took, or since it began."""
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()


@dataclass(frozen=True)
class Origin:
    """Origin of a search: query file, command and times.

    Parameters
    ----------
    queries : str
        Path of the query file; empty where there is none, ``-`` for stdin.
    command : str
        The command line.
    started : datetime
        With its time zone; now by default.
    checksums : tuple of Checksum or None
        Those of queries and database, where their names are no paths on this machine, or none of its business; None
        reads the files that the names lead to.
    ended : datetime or None
        When the search ended, where its reports are written later.
    files : dict of str to str
        Files that the options' lists of identifiers were read from, by their names in Python.
    """

    queries: str = ""
    command: str = PYTHON
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    checksums: tuple[Checksum, ...] | None = None
    ended: datetime | None = None
    files: Mapping[str, str] = field(default_factory=dict)


def checksums(queries: str, database: str, sources: Iterable[Mapping[str, Any]]) -> tuple[Checksum, ...]:
    """Return the checksums of the query file, the database file and the FASTA files that this was built from.

    Parameters
    ----------
    queries : str
        Path of the query file; what cannot be read twice, such as stdin, has no checksum.
    database : str
        Path of the database. Its checksum is the one of its contents in the user block; contents have the checksums
        of all arrays. Of a manifest, which has those of its volumes, it is the file's. One that was made in memory
        has the name of a FASTA file, or none.
    sources : iterable of dict
        What it was built from, as `Database.sources` gives them.
    """
    from swsearch.db.database_files import fingerprint_of, is_manifest

    checksums_read: list[Checksum] = []
    for what, path, is_read in (("queries", queries, bool(queries)), ("database", database, is_manifest(database))):
        if is_read and Path(path).is_file():
            with Path(path).open("rb") as file:
                checksums_read.append(Checksum(what, path, hashlib.file_digest(file, "sha256").hexdigest()))
    if sha256 := fingerprint_of(database) if Path(database).is_file() else "":
        checksums_read.append(Checksum("database", database, sha256))
    return (*checksums_read, *_built_from(sources))


def database_checksums(path: str, name: str) -> tuple[Checksum, ...]:
    """Return the checksums of a database file that reports know by another name than its path."""
    return tuple(replace(each, path=name) for each in checksums("", path, ()))


def _built_from(sources: Iterable[Mapping[str, Any]]) -> list[Checksum]:
    return [Checksum("built from", source["path"], source["sha256"]) for source in sources if source.get("sha256")]


@dataclass(frozen=True)
class RunInfo:
    """Facts of a run for reports.

    Parameters
    ----------
    version : str
        swsearch's version.
    database_name : str
        Path of the database or FASTA file.
    database_subjects, database_residues : int
        Its size.
    scoring, mode
        As in `SearchResult`.
    statistics : KarlinAltschul, FitSettings or None
        What E-values are made with; what was fitted to a query's scores is known to its result alone.
    evalue : float or None
        Threshold in force, if there is one.
    max_hits : int
        Most hits reported for a query.
    checksums : tuple of Checksum
        Of the files that went in, where a writer asks for them.
    execution : Execution or None
        Engine, command line and time: what may differ between runs that find the same.
    options : dict of str to (int, float or str)
        As in `SearchResult`.
    effective_residues : int or None
        Database size that E-values refer to, where it is not the database's own.
    database_sources : tuple of dict
        The files that the database was built from, as `Database.info` has them: path, sha256, bytes, records.
    queries : str
        Path of the query file; empty where there is none.
    given_checksums : tuple of Checksum or None
        As in `Origin`.
    program, genetic_code, database_genetic_code
        As in `SearchResult`.
    settings : dict
        What was asked for, in a form that ``swsearch search --config`` takes; see `swsearch.pipeline.fingerprint`.
    """

    version: str
    database_name: str
    database_subjects: int
    database_residues: int
    scoring: Scoring
    mode: Mode
    statistics: KarlinAltschul | FitSettings | None
    evalue: float | None
    max_hits: int
    checksums: tuple[Checksum, ...] = ()
    execution: Execution | None = None
    options: ActiveOptions = field(default_factory=dict)
    effective_residues: int | None = None
    database_sources: tuple[dict[str, Any], ...] = ()
    queries: str = ""
    given_checksums: tuple[Checksum, ...] | None = None
    program: Program = "blastp"
    genetic_code: int | None = None
    database_genetic_code: int | None = None
    settings: OptionValues = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.database_name, self.queries, self.scoring, self.mode, self.evalue, self.max_hits))

    def with_checksums(self) -> RunInfo:
        """Return the same with the checksums of the files that went in, which are read where they are not known."""
        if self.given_checksums is not None:
            return replace(self, checksums=(*self.given_checksums, *_built_from(self.database_sources)))
        return replace(self, checksums=checksums(self.queries, self.database_name, self.database_sources))

    def is_same_search(self, other: RunInfo) -> bool:
        """Return whether two searches have equal options and databases, whatever their queries, engines and times."""
        return self is other or _without_circumstances(self) == _without_circumstances(other)


def _without_circumstances(run: RunInfo) -> RunInfo:
    return replace(run, checksums=(), execution=None, queries="", given_checksums=None)
