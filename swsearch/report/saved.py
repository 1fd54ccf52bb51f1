"""Profiles and alignments that a search saves, query after query, for another one to go on with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OutputError
from swsearch.inputs import Query
from swsearch.options.words import QueryFormat
from swsearch.output_files import check_output, is_stdout, open_output, remove_abandoned
from swsearch.pipeline.search_results import ResultIterator
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.formats import format_to_write
from swsearch.report import find_format
from swsearch.report.a3m import a3m_texts
from swsearch.report.stockholm import stockholm_texts
from swsearch.results import SearchResult
from swsearch.version import version


@contextlib.contextmanager
def saved(
    results: ResultIterator[Any], identifiers: Sequence[str], profiles: str | None, alignments: str | None
) -> Iterator[None]:
    """Save the profile of each query, or the alignment that it is made of, while results are taken.

    Files appear under their names when the block ends, and not at all where something fails; those of a folder one by
    one.

    Parameters
    ----------
    results : ResultIterator
        Of a search that has not begun.
    identifiers : sequence of str
        Of all queries, in order.
    profiles : str or None
        File of profiles, whose ending says the format; ``-`` is stdout, in JSON lines.
    alignments : str or None
        A file of Stockholm for all queries, by its extension, or a folder, with a file of A3M per query.

    Raises
    ------
    OutputError
        If something cannot be written.
    """
    with contextlib.ExitStack() as stack:
        if profiles is not None:
            format_, stream = format_to_write(profiles), stack.enter_context(open_output(profiles))
            results.watch(lambda result: _save_profile(stream, format_, result))
        if alignments is not None and _is_stockholm(alignments):
            file = stack.enter_context(open_output(alignments))
            results.watch(lambda result: _save_stockholm(file, result))
        elif alignments is not None:
            results.watch(_Folder(Path(alignments), identifiers).save)
        yield


def check_places(profiles: str | None, alignments: str | None, outputs: Sequence[str | None]) -> None:
    """Raise if what is to be saved can surely not be written, or if two things go to one place.

    Parameters
    ----------
    profiles, alignments : str or None
        As for `saved`.
    outputs : sequence of str or None
        Where reports go; None is stdout.

    Raises
    ------
    InputError, OutputError
        If so.
    """
    taken = {_key(path): "--output" for path in outputs}
    for option, path in (("--save-profile", profiles), ("--save-msa", alignments)):
        if path is None:
            continue
        if not path.strip():
            raise InputError(f"{option}: the name is empty, expected a file name")
        if _key(path) in taken:
            raise InputError(f"got {taken[_key(path)]} and {option} {path}, expected different files")
        taken[_key(path)] = option
        if option == "--save-msa" and is_stdout(path):
            raise InputError(f"{option} {path}: got stdout, expected a folder, or a file that ends in .sto")
        if option == "--save-profile":
            format_to_write(path)
        if option == "--save-profile" or _is_stockholm(path):
            if not is_stdout(path):
                check_output(Path(path))
        elif Path(path).exists() and not Path(path).is_dir():
            raise OutputError(f"{path}: is a file, expected a folder for alignments, or a name that ends in .sto")


def check_saved(profiles: str | None, queries: Sequence[Query]) -> None:
    """Raise if the profiles of some queries are not for the format of a file.

    Parameters
    ----------
    profiles : str or None
        As for `saved`.
    queries : sequence of Query
        All, before the search.

    Raises
    ------
    InputError
        If the format holds one profile, or one at least, and there are more or none.
    """
    if profiles is None:
        return
    if format_to_write(profiles, len(queries)) != "json" and not any(len(query.codes) for query in queries):
        raise InputError(
            f"{profiles}: no query has residues, expected at least one with residues; leave --save-profile out"
        )


def saved_files(profiles: str | None, alignments: str | None, identifiers: Sequence[str]) -> list[str | None]:
    """Return the files that `saved` writes when it is called with these; None is none."""
    if alignments is None or _is_stockholm(alignments):
        return [profiles, alignments]
    from swsearch.report.msa import file_names

    return [profiles, *(str(Path(alignments) / name) for name in file_names(identifiers, ".a3m"))]


def _key(path: str | None) -> str:
    return "stdout" if is_stdout(path) else str(Path(str(path)).resolve())


def _is_stockholm(path: str) -> bool:
    return Path(path).suffix.lower() in find_format("stockholm").extensions and not Path(path).is_dir()


def _save_profile(stream: TextIO, format_: QueryFormat, result: SearchResult) -> None:
    from swsearch.profiles.saving import lines_of  # most searches save nothing, and start without it

    if result.next_profile is not None:  # a query without residues has none
        stream.writelines(lines_of(result.next_profile, format_))


def _save_stockholm(stream: TextIO, result: SearchResult) -> None:
    if (alignment := _alignment_of(result)) is not None:
        stream.writelines(stockholm_texts(alignment, PROTEIN, f"swsearch {version()}"))


def _alignment_of(result: SearchResult) -> QueryAlignment | None:
    return None if result.next_profile is None else result.next_profile.alignment


class _Folder:
    """Writes a file of A3M for each query."""

    def __init__(self, folder: Path, identifiers: Sequence[str]) -> None:
        from swsearch.report.msa import file_names

        self._folder, self._names = folder, iter(file_names(identifiers, ".a3m"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"{folder}: cannot be created: {error.strerror or error}, expected a folder for alignments; choose "
                "another --save-msa"
            ) from None
        remove_abandoned(folder)

    def save(self, result: SearchResult) -> None:
        """Save the alignment of the next query."""
        name = next(self._names)
        if (alignment := _alignment_of(result)) is not None:
            with open_output(str(self._folder / name)) as stream:
                stream.writelines(a3m_texts(alignment, PROTEIN))
