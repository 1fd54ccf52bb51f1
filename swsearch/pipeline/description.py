"""What reports say of a search as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swsearch.options.row import Header, rows_of
from swsearch.options.words import Mask
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.saved_options import settings_of
from swsearch.pipeline.subjects import Subjects
from swsearch.pipeline.table.search import SearchTable
from swsearch.run_info import Asked, Execution, Origin, Program, RunInfo
from swsearch.version import version

PROGRAM_NAMES: dict[tuple[bool, bool], Program] = {
    (False, False): "blastp",
    (True, False): "blastx",
    (False, True): "tblastn",
    (True, True): "tblastx",
}
"""BLAST's name for a search by whether queries and subjects are DNA."""


@dataclass(frozen=True)
class SubjectDescription:
    """What reports say of subjects beside their counts.

    Parameters
    ----------
    name : str
        What they are called.
    mask : {"none", "lower", "tantan"}
        What of them is scored as X.
    sources : tuple of dict
        The files that they are from, as `Database.sources` has them.
    genetic_code : int or None
        NCBI's number of the code that they are translated by, where they are DNA.
    """

    name: str
    mask: Mask
    sources: tuple[dict[str, Any], ...]
    genetic_code: int | None

    @classmethod
    def of(cls, subjects: Subjects) -> SubjectDescription:
        """Describe subjects."""
        database = subjects.database
        return cls(subjects.name, subjects.mask, tuple(database.sources()), database.genetic_code)


def shown_options(options: SearchOptions, mask: Mask) -> Asked:
    """Return what is asked for beyond every search's parameters, by name; ``mask`` is that of the subjects."""
    told: Asked = {}
    for name, row in rows_of(SearchTable).items():
        is_told = row.header is Header.ALWAYS or getattr(options, name) != row.default
        value = options.effective(name) if is_told else None
        if name == "subject_mask":
            value = None if mask == "none" else mask  # the database's own mask too
        is_hidden = row.header is Header.NEVER or (row.requires == "iterations" and options.iterations == 1)
        if value is not None and not is_hidden:
            told[name] = row.kind.describe(value)
    return told


def run_info(criteria: Criteria, subjects: SubjectDescription, description: str, origin: Origin) -> RunInfo:
    """Return what reports say of a search; ``description`` is of what scores."""
    options, counts, translation = criteria.options, criteria.counts, criteria.options.translation
    execution = Execution(description, origin.command, origin.begun, origin.ended)
    return RunInfo(
        version(), subjects.name, counts.n_records, counts.n_letters, options.scoring, options.mode,
        criteria.method, options.threshold, options.max_hits,
        execution=execution, asked=shown_options(options, subjects.mask),
        effective_residues=criteria.thresholds.effective_residues, database_sources=subjects.sources,
        queries=origin.queries, known_checksums=origin.checksums, settings=settings_of(options, origin.files),
        program=PROGRAM_NAMES[translation is not None, subjects.genetic_code is not None],
        genetic_code=None if translation is None else translation.genetic_code, database_code=subjects.genetic_code,
    )  # fmt: skip
