"""Profiles and alignments saved per query."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from swsearch.alphabet import PROTEIN, Alphabet
from swsearch.errors import InputError, OutputError, check_choice
from swsearch.inputs import Query
from swsearch.options.kinds import QueryFormat
from swsearch.output_files import (
    canonical_path,
    check_output,
    is_stdout,
    open_output,
    open_outputs,
    remove_stale_files,
)
from swsearch.pipeline.search_results import SearchResults
from swsearch.profiles.formats import format_to_write
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.report import find_format
from swsearch.results import SearchResult

_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z._+=@-]")

MAX_FILE_NAME = 120
"""Characters of a name without its end: with a number, and hidden while it is written, file systems take it."""


def file_names(identifiers: Sequence[str], extension: str) -> list[str]:
    """Return names of files for sequences, distinct also where a file system ignores case.

    Parameters
    ----------
    identifiers : sequence of str
        Whatever headers hold. All but letters of ASCII, digits and ``._+=@-`` become ``_``; a name is cut at
        `MAX_FILE_NAME`, and does not begin with ``.`` or ``-``.

    Returns
    -------
    list of str
        In the same order; a name that an earlier one has gets ``_2``, ``_3`` ... at its end.
    """
    used_names: set[str] = set()
    names = []
    numbers: dict[str, int] = {}
    for identifier in identifiers:
        base = _NOT_IN_NAMES.sub("_", identifier)[:MAX_FILE_NAME] or "query"
        if base[0] in ".-":
            base = f"_{base[1:]}"
        name, key = base, base.lower()
        while name.lower() in used_names:
            numbers[key] = numbers.get(key, 1) + 1
            name = f"{base}_{numbers[key]}"
        used_names.add(name.lower())
        names.append(name + extension)
    return names


def is_file_name(name: str, extension: str) -> bool:
    """Return whether `file_names` may make this name."""
    return name.endswith(extension) and name[0] not in ".-" and not _NOT_IN_NAMES.search(name)


def make_alignment_folder(folder: Path, option: str, extension: str = ".a3m") -> None:
    """Make a folder if it is not there, and remove what killed runs left; raise `OutputError` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "is not a folder" if folder.exists() else f"cannot be created: {error.strerror or error}"
        raise OutputError(f"{folder}: {reason}, expected a folder for alignments; choose another {option}") from None
    check_output(folder / f"x{extension}")
    remove_stale_files(folder)


@contextlib.contextmanager
def remove_if_unused(folder: Path) -> Iterator[None]:
    """Remove a folder that was made in the block and is empty, with its parents, if the block fails."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield
    except BaseException:
        for each in missing:
            with contextlib.suppress(OSError):
                each.rmdir()
        raise


@dataclass
class FolderCounts:
    """Counts of the files written to a folder.

    Parameters
    ----------
    files, sequences : int
        Files, and sequences in them besides the queries.
    alone : int
        Files with a query alone.
    """

    files: int = 0
    sequences: int = 0
    alone: int = 0

    def describe(self, folder: Path) -> str:
        """Return ``12 alignments in msas, 3,456 sequences besides the queries, 2 queries alone``."""
        plural = "alignment" if self.files == 1 else "alignments"
        alone = f", {self.alone:,} of queries alone" if self.alone else ""
        return f"{self.files:,} {plural} in {folder}, {self.sequences:,} sequences besides the queries{alone}"


class AlignmentFolder:
    """Writes the alignments of queries, each to a file of its own; one that is there already is replaced.

    Parameters
    ----------
    folder : path
        Made now, if it is not there.
    identifiers : sequence of str
        Of all queries, in order.
    outfmt : {"a3m", "stockholm", "fasta-aligned"}
        The format.
    option : str, optional
        Name of the option that names the folder.

    Raises
    ------
    OptionError
        If there is no such format.
    OutputError
        If the folder cannot be made, or nothing be written there.
    """

    def __init__(self, folder: Path, identifiers: Sequence[str], outfmt: str, option: str = "--output") -> None:
        from swsearch.report.alignments import ALIGNMENT_FORMATS

        check_choice("outfmt", outfmt, tuple(ALIGNMENT_FORMATS))
        extension, self._texts = ALIGNMENT_FORMATS[outfmt]
        self.folder = folder
        self.paths = [str(folder / name) for name in file_names(identifiers, extension)]
        self._next = iter(self.paths)
        self.counts = FolderCounts()
        make_alignment_folder(folder, option, extension)

    def write(self, alignment: QueryAlignment | None, alphabet: Alphabet = PROTEIN) -> None:
        """Write the alignment of the next query, unless there is none."""
        path = next(self._next)
        if alignment is None:
            return
        with open_outputs([(path, False)], sweep=False) as (stream,):
            stream.writelines(self._texts(alignment, alphabet))
        self.counts.files += 1
        self.counts.sequences += len(alignment) - 1
        self.counts.alone += len(alignment) == 1


@contextlib.contextmanager
def save_profiles(
    results: SearchResults, identifiers: Sequence[str], profiles: str | None, alignments: str | None
) -> Iterator[None]:
    """Save the profile of each query, or the alignment that it is made of, while results are taken.

    Files appear under their names when the block ends, and not at all where something fails; those of a folder one by
    one.

    Parameters
    ----------
    results : SearchResults
        Of a search that has not begun.
    profiles : str or None
        File of profiles, whose ending says the format; ``-`` is stdout, in JSON lines.
    alignments : str or None
        A file of Stockholm for all queries, by its extension, or a folder, with a file of A3M per query.
    """
    with contextlib.ExitStack() as stack:
        if profiles is not None:
            format_, stream = format_to_write(profiles), stack.enter_context(open_output(profiles))
            results.on_result(lambda result: _save_profile(stream, format_, result))
        if alignments is not None and is_stockholm(alignments):
            file = stack.enter_context(open_output(alignments))
            results.on_result(lambda result: _save_stockholm(file, result))
        elif alignments is not None:
            folder = AlignmentFolder(Path(alignments), identifiers, "a3m", "--save-msa")
            results.on_result(lambda result: folder.write(_alignment_of(result)))
        yield


def check_places(profiles: str | None, alignments: str | None, outputs: Sequence[str | None]) -> None:
    """Raise if outputs cannot be written, or if two have the same path.

    Parameters
    ----------
    outputs : sequence of str or None
        Where reports go; None is stdout.

    Raises
    ------
    InputError, OutputError
        If so.
    """
    path_options = {canonical_path(path): "--output" for path in outputs}
    for option, path in (("--save-profile", profiles), ("--save-msa", alignments)):
        if path is None:
            continue
        if not path.strip():
            raise InputError(f"{option}: the name is empty, expected a file name")
        if canonical_path(path) in path_options:
            raise InputError(
                f"got {path_options[canonical_path(path)]} and {option} {path}, expected different files"
            )
        path_options[canonical_path(path)] = option
        if option == "--save-msa" and is_stdout(path):
            raise InputError(f"{option} {path}: got stdout, expected a folder, or a file that ends in .sto")
        if option == "--save-profile":
            format_to_write(path)
        if option == "--save-profile" or is_stockholm(path):
            if not is_stdout(path):
                check_output(Path(path))
        elif Path(path).exists() and not Path(path).is_dir():
            raise OutputError(f"{path}: is a file, expected a folder for alignments, or a name that ends in .sto")


def check_profiles(profiles: str | None, queries: Sequence[Query]) -> None:
    """Raise if the profiles of some queries are not for the format of a file."""
    if profiles is None:
        return
    if format_to_write(profiles, len(queries)) != "json" and not any(len(query.codes) for query in queries):
        raise InputError(
            f"{profiles}: no query has residues, expected at least one with residues; leave --save-profile out"
        )


def saved_files(profiles: str | None, alignments: str | None, identifiers: Sequence[str]) -> list[str | None]:
    """Return the files that `save_profiles` writes when it is called with these; None is none."""
    if alignments is None or is_stockholm(alignments):
        return [profiles, alignments]
    return [profiles, *(str(Path(alignments) / name) for name in file_names(identifiers, ".a3m"))]


def is_stockholm(path: str) -> bool:
    """Return whether ``--save-msa`` names a file of Stockholm, and not a folder."""
    return Path(path).suffix.lower() in find_format("stockholm").extensions and not Path(path).is_dir()


def _save_profile(stream: TextIO, format_: QueryFormat, result: SearchResult) -> None:
    from swsearch.profiles.json_profile import lines_of  # most searches save nothing, and start without it

    if result.next_profile is not None:  # a query without residues has none
        stream.writelines(lines_of(result.next_profile, format_))


def _save_stockholm(stream: TextIO, result: SearchResult) -> None:
    from swsearch.report.alignments import stockholm_texts

    if (alignment := _alignment_of(result)) is not None:
        stream.writelines(stockholm_texts(alignment, PROTEIN))


def _alignment_of(result: SearchResult) -> QueryAlignment | None:
    return None if result.next_profile is None else result.next_profile.alignment
