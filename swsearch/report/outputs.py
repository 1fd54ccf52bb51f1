"""The reports of a search: which file gets which format, and one search that writes them all."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from swsearch import report
from swsearch.errors import InputError, OptionError
from swsearch.output_files import check_output, is_stdout, open_outputs
from swsearch.results import RunInfo, SearchResult

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
    """

    path: str | None
    outfmt: str


def pair_outputs(paths: Sequence[str], formats: Sequence[str]) -> list[Output]:
    """Find the format of each output, and check all that can be checked before a search.

    Parameters
    ----------
    paths : sequence of str
        Every ``--output``.
    formats : sequence of str
        Every ``--outfmt``: one for each output, in the same order, or none at all, so that extensions decide.

    Raises
    ------
    OptionError
        If there is no such format or column, or an extension means none.
    InputError
        If options contradict each other.
    OutputError
        If a file can surely not be written.
    """
    times = {name: f"{name} {len(given)} times" for name, given in (("--outfmt", formats), ("--output", paths))}
    if len(formats) > 1 and not paths:
        raise InputError(f"got {times['--outfmt']} and no --output, expected an --output for each, in the same order")
    if paths and formats and len(formats) != len(paths):
        raise InputError(
            f"got {' and '.join(times.values())}, expected as many of both, in the same order; or leave --outfmt "
            "out, so that the files' extensions say it"
        )
    places: Sequence[str | None] = paths or [None]
    wanted = formats or [_format_of(path) for path in places]
    outputs = [Output(path, outfmt) for path, outfmt in zip(places, wanted, strict=True)]
    _check_places(outputs)
    for output in outputs:
        report.create_writer(output.outfmt, io.StringIO())
        _check_extension(output)
        _check_terminal(output)
    return outputs


def _format_of(path: str | None) -> str:
    if path is None or is_stdout(path) or not _is_regular(path):
        return DEFAULT_FORMAT
    kind = report.kind_of_file(path)
    if kind is not None:
        return kind.key
    extension = PurePath(path).suffix
    known = ", ".join(known for kind in report.KINDS for known in kind.extensions)
    remedy = "say the format with --outfmt"
    if extension.lower() in _COMPRESSED:
        remedy = f"output is not compressed; write to stdout and pipe it through a program that makes {extension}"
    raise OptionError("output", path, f"an extension out of {known}", remedy)


def _is_regular(path: str) -> bool:
    target = Path(path)
    return target.is_file() or not target.exists()


def _check_places(outputs: Sequence[Output]) -> None:
    seen: dict[str, str] = {}
    for output in outputs:
        stdout = is_stdout(output.path)
        key = "stdout" if stdout else str(Path(str(output.path)).resolve())
        if key in seen and (stdout or _is_regular(key)):
            raise InputError(f"got --output {output.path} and --output {seen[key]}, expected different files")
        seen[key] = str(output.path)
        if not stdout:
            check_output(Path(str(output.path)))


def _check_extension(output: Output) -> None:
    """Refuse one format under another's extension: it would be read wrongly, or not at all."""
    if output.path is None or is_stdout(output.path) or not _is_regular(output.path):
        return
    meant, kind = report.kind_of_file(output.path), report.kind_of(output.outfmt)
    compressed = PurePath(output.path).suffix.lower() in _COMPRESSED
    if compressed or (PurePath(output.path).suffix and meant is not None and meant.family != kind.family):
        what = "a compressed file" if meant is None else f"--outfmt {meant.key}"
        name = output.outfmt.split(maxsplit=1)[0]
        raise InputError(
            f"--output {output.path} means {what}, but got --outfmt {name}; leave one of them out, or choose another "
            "extension"
        )


def _check_terminal(output: Output) -> None:
    if is_stdout(output.path) and report.kind_of(output.outfmt).writer.binary and sys.stdout.isatty():
        raise InputError(
            f"--outfmt {report.kind_of(output.outfmt).key} is binary, and stdout is a terminal; write to a file with "
            "--output, or pipe it into a program"
        )


class Reports:
    """Several writers as one; see `swsearch.report.Writer`."""

    def __init__(self, writers: Sequence[report.Writer]) -> None:
        self._writers = writers
        self.needs_alignments = any(writer.needs_alignments for writer in writers)

    def begin(self, run: RunInfo) -> None:
        """Write what stands before the first result."""
        for writer in self._writers:
            writer.begin(run)

    def write(self, result: SearchResult) -> None:
        """Write the result of one query."""
        for writer in self._writers:
            writer.write(result)

    def end(self) -> None:
        """Write what stands behind the last result."""
        for writer in self._writers:
            writer.end()


@contextlib.contextmanager
def open_reports(outputs: Sequence[Output]) -> Iterator[Reports]:
    """Open all outputs; they appear under their names when the block ends, all or, if it fails, none of them."""
    kinds = [report.kind_of(output.outfmt) for output in outputs]
    targets = [(output.path, kind.writer.binary) for output, kind in zip(outputs, kinds, strict=True)]
    with open_outputs(targets) as streams:
        writers: list[report.Writer] = []
        try:
            for output, stream in zip(outputs, streams, strict=True):
                writers.append(report.create_writer(output.outfmt, stream))
            yield Reports(writers)
        finally:
            for writer in writers:
                writer.discard()
