"""Outputs of a search: their formats, and the writing of all."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import IO, Any

from swsearch import report
from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query
from swsearch.output_files import canonical_path, check_output, is_stdout, open_outputs, sync_folder
from swsearch.pipeline.hit_alignments import align_hits
from swsearch.pipeline.search_results import SearchResults
from swsearch.processors import available_processors
from swsearch.profiles.formats import PROFILE_ENDINGS, format_to_write
from swsearch.report.base import Writer
from swsearch.report.profile_output import check_profiles, is_stockholm, save_profiles
from swsearch.results import SearchResult
from swsearch.run_info import Program, RunInfo

DEFAULT_FORMAT = "6"
"""BLAST's table."""

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class Output:
    """One report.

    Parameters
    ----------
    path : str or None
        Where to write; None and ``-`` are stdout.
    outfmt : str
        A format as `swsearch.report.create_writer` takes it.
    stream : file object or None
        Where to write instead of a path, if it is open already.
    header : bool
        Whether the first line names the columns, where the format can have such a line.
    """

    path: str | None
    outfmt: str
    stream: IO[Any] | None = None
    header: bool = False

    @property
    def format(self) -> report.OutputFormat:
        """Format that `outfmt` names."""
        return report.find_format(self.outfmt)


def match_outputs_to_formats(paths: Sequence[str], formats: Sequence[str], header: bool = False) -> list[Output]:
    """Find the format of each output, and check all that can be checked before a search.

    Parameters
    ----------
    formats : sequence of str
        Every ``--outfmt``: one for each output, in the same order, or none at all, so that extensions decide.
    header : bool, optional
        Whether tables begin with the names of their columns.
    """
    times = {name: f"{name} {len(values)} times" for name, values in (("--outfmt", formats), ("--output", paths))}
    if len(formats) > 1 and not paths:
        raise InputError(
            f"got {times['--outfmt']} and no --output, expected one --output for each, in the same order"
        )
    if paths and formats and len(formats) != len(paths):
        raise InputError(
            f"got {' and '.join(times.values())}, expected equal numbers, in the same order; or leave --outfmt out "
            "and let the file extensions decide"
        )
    places: Sequence[str | None] = paths or [None]
    chosen = formats or [_format_of(path) for path in places]
    outputs = [Output(path, outfmt) for path, outfmt in zip(places, chosen, strict=True)]
    _check_places(outputs)
    for output in outputs:
        report.create_writer(output.outfmt, io.StringIO())
        _check_extension(output)
        _check_terminal(output)
    return with_header(outputs) if header else outputs


def with_header(outputs: Sequence[Output]) -> list[Output]:
    """Return outputs whose tables begin with the names of their columns."""
    if not any(each.format.writer.takes_header for each in outputs):
        able = " or ".join(each.key for each in report.OUTPUT_FORMATS if each.writer.takes_header)
        formats = ", ".join(dict.fromkeys(each.format.key for each in outputs))
        raise InputError(f"--header: got --outfmt {formats}, expected {able}; leave --header out for other formats")
    return [replace(each, header=True) for each in outputs]


def with_config(outputs: Sequence[Output], path: str | None) -> list[Output]:
    """Return outputs and, where there is a path, one more for the options of the search.

    Raises
    ------
    InputError, OutputError
        If it is another output's, or can surely not be written.
    """
    if path is None:
        return list(outputs)
    if not path.strip():
        raise InputError("--save-config: the name is empty, expected a file name")
    several = [*outputs, Output(path, "toml")]
    _check_places(several)
    return several


def outputs_for(
    output: str | Path | IO[Any] | Sequence[str | Path | IO[Any]], outfmt: str | Sequence[str] | None
) -> list[Output]:
    """Find the format of each output of `swsearch.write`, and check all that can be checked before writing.

    Raises
    ------
    OptionError, InputError, OutputError
        As `match_outputs_to_formats`, and if a stream does not take the bytes or the text of its format.
    """
    if outfmt is not None and (
        not isinstance(outfmt, (str, list, tuple)) or not all(isinstance(each, str) for each in outfmt)
    ):
        raise OptionError("format", outfmt, "a format such as '6', or one for each output")
    targets = list(output) if isinstance(output, (list, tuple)) else [output]
    if not targets:
        raise OptionError("output", output, "a path, a file object, or several")
    formats = [outfmt] if isinstance(outfmt, str) else list(outfmt or [])
    if formats and len(formats) != len(targets):
        raise InputError(f"format: got {len(formats)} for {len(targets)} outputs, expected one for each, or none")
    outputs: list[Output] = []
    for number, target in enumerate(targets):
        chosen = formats[number : number + 1]
        if isinstance(target, (str, Path)):
            outputs += match_outputs_to_formats([str(target)], chosen)
        else:
            outputs.append(_stream_output(target, *chosen))
    _check_places([each for each in outputs if each.stream is None])
    return outputs


def _stream_output(stream: Any, outfmt: str = DEFAULT_FORMAT) -> Output:
    """Check that an open file object takes what a format writes."""
    if not hasattr(stream, "write"):
        raise OptionError("output", stream, "a path or a file object")
    binary = report.find_format(outfmt).writer.binary
    report.create_writer(outfmt, io.StringIO())
    takes_text = isinstance(stream, io.TextIOBase) or hasattr(stream, "encoding")
    if binary == takes_text:
        expected = "bytes, such as open(path, 'wb')" if binary else "text, such as open(path, 'w')"
        raise InputError(f"output: {stream!r} cannot take format {outfmt!r}, expected a file object for {expected}")
    return Output(None, outfmt, stream)


def _format_of(path: str | None) -> str:
    if path is None or is_stdout(path) or not _is_regular(path):
        return DEFAULT_FORMAT
    output_format = report.format_for_path(path)
    if output_format is not None:
        return output_format.key
    extension = PurePath(path).suffix
    extensions = ", ".join(extensions for each in report.OUTPUT_FORMATS for extensions in each.extensions)
    remedy = "name the format with --outfmt"
    if extension.lower() in _COMPRESSED:
        remedy = f"swsearch does not compress; write to stdout and pipe it through a program that makes {extension}"
    raise OptionError("output", path, f"an extension out of {extensions}", remedy)


def _is_regular(path: str) -> bool:
    target = Path(path)
    return target.is_file() or not target.exists()


def _check_places(outputs: Sequence[Output]) -> None:
    seen: dict[str, str] = {}
    for output in outputs:
        stdout, key = is_stdout(output.path), canonical_path(output.path)
        if key in seen and (stdout or _is_regular(key)):
            raise InputError(f"got --output {output.path} and --output {seen[key]}, expected different files")
        seen[key] = str(output.path)
        if not stdout:
            check_output(Path(str(output.path)))


def _check_extension(output: Output) -> None:
    """Refuse one format under another's extension: programs would read it wrongly, or not at all."""
    if output.path is None or is_stdout(output.path) or not _is_regular(output.path):
        return
    suffix, meant = PurePath(output.path).suffix, report.format_for_path(output.path)
    compressed = suffix.lower() in _COMPRESSED
    if compressed or (suffix and meant is not None and not meant.shares_extensions_with(output.format)):
        what = "a compressed file" if meant is None else f"--outfmt {meant.key}"
        name = output.outfmt.split(maxsplit=1)[0]
        raise InputError(
            f"--output {output.path} means {what}, but got --outfmt {name}; leave one of them out, or choose another "
            "extension"
        )


def _check_terminal(output: Output) -> None:
    if is_stdout(output.path) and output.format.writer.binary and sys.stdout.isatty():
        raise InputError(
            f"--outfmt {output.format.key} is binary, and stdout is a terminal; write to a file with --output, or "
            "pipe it into a program"
        )


@contextlib.contextmanager
def _open_writers(outputs: Sequence[Output]) -> Iterator[list[Writer]]:
    """Open all outputs; they appear under their names when the block ends, all or, if it fails, none of them."""
    targets = [(each.path, each.format.writer.binary) for each in outputs if each.stream is None]
    with open_outputs(targets) as streams:
        opened = iter(streams)
        writers: list[Writer] = []
        try:
            for output in outputs:
                stream = next(opened) if output.stream is None else output.stream
                writers.append(report.create_writer(output.outfmt, stream, output.header))
            yield writers
        finally:
            for writer in writers:
                writer.discard()


EXPECTED_RESULTS = "what swsearch.search returns, or results taken from it"
"""Values that can be written, in the words of an error."""

RESULTS_PER_BATCH = 64
"""Results that are aligned together, where they are not taken from a running search."""


def keep_distribution_if_shown(results: SearchResults, outputs: Sequence[Output]) -> None:
    """Keep the score distribution of a search that has not begun, if an output shows it."""
    if any(output.format.writer.needs_distribution for output in outputs):
        results.keep_distribution()


def write_reports(
    results: Iterable[SearchResult], outputs: Sequence[Output], written: Callable[[int], None] | None = None
) -> None:
    """Write results to all outputs; see `swsearch.write`.

    Parameters
    ----------
    written : callable, optional
        Called with the number of results just written.
    """
    with _open_writers(outputs) as writers:
        aligned = any(writer.needs_alignments for writer in writers)
        if isinstance(results, SearchResults):
            keep_distribution_if_shown(results, outputs)
            check_program(results.run.program, outputs)
            check_queries(len(results.search.queries), outputs)
            run, batches = results.run, results.batches(aligned)
        else:
            run, batches = _run_of(results, aligned)
            check_program(run.program, outputs)
        if any(writer.needs_checksums for writer in writers):
            run = run.with_checksums()
        for writer in writers:
            writer.begin(run)
        for batch in batches:
            for result in batch:
                for writer in writers:
                    writer.write(result)
            if written is not None:
                written(len(batch))
        for writer in writers:
            writer.end()


def check_queries(n_queries: int, outputs: Sequence[Output]) -> None:
    """Reject formats for one query if there are more, before the search."""
    for output in outputs:
        output.format.writer.check_queries(n_queries, f"--outfmt {output.format.key}")


def check_program(program: Program, outputs: Sequence[Output]) -> None:
    """Reject formats that cannot hold the results of a program, before the search."""
    for output in outputs:
        output.format.writer.check_program(program, f"--outfmt {output.format.key}")


def _run_of(results: Iterable[SearchResult], aligned: bool) -> tuple[RunInfo, Iterator[list[SearchResult]]]:
    """Return the run of results, and the results in batches, aligned on request."""
    if isinstance(results, (str, bytes)) or not isinstance(results, Iterable):
        raise OptionError("results", results, EXPECTED_RESULTS)
    remaining = iter([results] if isinstance(results, SearchResult) else results)
    first = next(remaining, None)
    if first is None:
        raise InputError("results: got none, expected at least one")
    if not isinstance(first, SearchResult):
        raise OptionError("results", first, EXPECTED_RESULTS)
    run = first.run
    if run is None:
        raise InputError(f"results: got {first!r} without its search, expected results of swsearch.search")

    def batches() -> Iterator[list[SearchResult]]:
        everything = chain([first], remaining)
        while batch := list(islice(everything, RESULTS_PER_BATCH)):
            for result in batch:
                if not isinstance(result, SearchResult):
                    raise OptionError("results", result, EXPECTED_RESULTS)
                if result.run is None or not run.is_same_search(result.run):
                    raise InputError(
                        f"results: got {first.query_id!r} and {result.query_id!r} from different databases or "
                        "options, expected one search; write them to different files"
                    )
            if aligned:
                align_hits(batch, available_processors())
            yield batch

    return run, batches()


SAVED_FORMATS: dict[str, str] = {
    **{f"profile {format_}": ending for ending, format_ in reversed(PROFILE_ENDINGS.items())},
    "msa stockholm": ".sto",
    "msa a3m": ".zip",
}
"""Formats of what ``--save-profile`` and ``--save-msa`` save, and extensions of the files; A3M is a zip archive."""


def saved_formats(profiles: str | None, alignments: str | None) -> list[str]:
    """Return the formats of `SAVED_FORMATS` that ``--save-profile`` and ``--save-msa`` ask for by their paths."""
    formats = [] if profiles is None else [f"profile {format_to_write(profiles)}"]
    if alignments is not None:
        formats.append("msa stockholm" if is_stockholm(alignments) else "msa a3m")
    return formats


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
            check_profiles(f"profile{SAVED_FORMATS[outfmt]}", queries)


def _reports(outputs: Sequence[str]) -> list[Output]:
    return [Output(None, outfmt) for outfmt in outputs if outfmt not in SAVED_FORMATS]


def write_job_outputs(results: SearchResults, outputs: Sequence[JobOutput], header: bool) -> None:
    """Write all files of a job, while the results are taken once."""
    outputs[0].folder.mkdir(exist_ok=True)
    identifiers = [query.identifier for query in results.search.queries]
    reports, folders = [], []
    with ExitStack() as saving:
        for each in outputs:
            path = str(each.path)
            if each.outfmt not in SAVED_FORMATS:
                reports.append(Output(path, each.outfmt, header=header))
            elif each.outfmt.startswith("profile"):
                saving.enter_context(save_profiles(results, identifiers, path, None))
            else:
                if each.path.suffix == ".zip":
                    path = str(each.path.with_suffix(""))
                    folders.append(path)
                saving.enter_context(save_profiles(results, identifiers, None, path))
        write_reports(results, reports)
    for path in folders:
        shutil.make_archive(path, "zip", path)
        shutil.rmtree(path)
    for each in outputs:  # before the job's end is recorded
        with each.path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(outputs[0].folder)
