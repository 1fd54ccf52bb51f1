"""The files of a job on a server: reports, saved profiles and alignments, written in one pass over the results."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from swsearch import report
from swsearch.inputs import Query
from swsearch.output_files import sync_folder
from swsearch.pipeline.search_results import SearchResults
from swsearch.profiles.formats import PROFILE_ENDINGS, format_to_write
from swsearch.report.outputs import Output, check_program, check_queries, with_header, write_reports
from swsearch.report.saved import check_saved, is_stockholm, saved
from swsearch.run_info import Program

SAVED_FORMATS: dict[str, str] = {
    **{f"profile {format_}": ending for ending, format_ in reversed(PROFILE_ENDINGS.items())},
    "msa stockholm": ".sto",
    "msa a3m": ".zip",
}
"""Formats of what ``--save-profile`` and ``--save-msa`` save, and extensions of the files; A3M is a zip archive."""


def saved_formats(profiles: str | None, alignments: str | None) -> list[str]:
    """Return the formats of `SAVED_FORMATS` that ``--save-profile`` and ``--save-msa`` ask for by their paths."""
    found = [] if profiles is None else [f"profile {format_to_write(profiles)}"]
    if alignments is not None:
        found.append("msa stockholm" if is_stockholm(alignments) else "msa a3m")
    return found


@dataclass(frozen=True)
class JobOutput:
    """A file of a job.

    Parameters
    ----------
    folder : Path
        Folder of the job's files.
    number : int
        Number of the output, from 0.
    outfmt : str
        As ``--outfmt``, or one of `SAVED_FORMATS`.
    """

    folder: Path
    number: int
    outfmt: str

    @property
    def media_type(self) -> str:
        """Media type over HTTP."""
        is_saved = self.outfmt in SAVED_FORMATS
        return "application/octet-stream" if is_saved else report.find_format(self.outfmt).content_type

    def file_name(self, stem: str) -> str:
        """Return the name of a download."""
        ending = SAVED_FORMATS.get(self.outfmt)
        return report.find_format(self.outfmt).file_name(stem) if ending is None else stem + ending

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.folder / self.file_name(str(self.number))


def check_outputs(outputs: Sequence[str], header: bool) -> None:
    """Raise `InputError` if there is no such format or column, or no table for the header."""
    for outfmt in outputs:
        if outfmt not in SAVED_FORMATS:
            report.create_writer(outfmt, io.StringIO())
    if header:
        with_header(_reports(outputs))


def check_outputs_fit(outputs: Sequence[str], queries: Sequence[Query], program: Program) -> None:
    """Raise `InputError` if a file cannot hold what these queries find in a search of this program."""
    check_queries(len(queries), _reports(outputs))
    check_program(program, _reports(outputs))
    for outfmt in outputs:
        if outfmt.startswith("profile"):
            check_saved(f"profile{SAVED_FORMATS[outfmt]}", queries)


def _reports(outputs: Sequence[str]) -> list[Output]:
    return [Output(None, outfmt) for outfmt in outputs if outfmt not in SAVED_FORMATS]


def write_job_outputs(results: SearchResults, outputs: Sequence[JobOutput], header: bool) -> None:
    """Write all files of a job, while the results are taken once.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    outputs[0].folder.mkdir(exist_ok=True)
    identifiers = [query.identifier for query in results.search.queries]
    reports, folders = [], []
    with ExitStack() as saving:
        for each in outputs:
            path = str(each.path)
            if each.outfmt not in SAVED_FORMATS:
                reports.append(Output(path, each.outfmt, header=header))
            elif each.outfmt.startswith("profile"):
                saving.enter_context(saved(results, identifiers, path, None))
            else:
                if each.path.suffix == ".zip":
                    path = str(each.path.with_suffix(""))
                    folders.append(path)
                saving.enter_context(saved(results, identifiers, None, path))
        write_reports(results, reports)
    for path in folders:
        shutil.make_archive(path, "zip", path)
        shutil.rmtree(path)
    for each in outputs:  # before the job's end is recorded
        with each.path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(outputs[0].folder)
