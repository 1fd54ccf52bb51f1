"""A folder of alignments: a file per query, which appears when it is complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from swsearch.alphabet import Alphabet
from swsearch.errors import OutputError, check_choice
from swsearch.output_files import check_output, open_outputs, remove_abandoned
from swsearch.profiles.alignment import QueryAlignment
from swsearch.profiles.filtering import RowFilter
from swsearch.report import find_format
from swsearch.report.a3m import a3m_texts, aligned_fasta_texts
from swsearch.report.stockholm import stockholm_texts
from swsearch.results import SearchResult, alignment_of
from swsearch.version import version

Texts = Callable[[QueryAlignment, Alphabet], Iterator[str]]
"""Yields the text of an alignment."""


def _stockholm(alignment: QueryAlignment, alphabet: Alphabet) -> Iterator[str]:
    return stockholm_texts(alignment, alphabet, f"swsearch {version()}")


ALIGNMENT_FORMATS: dict[str, tuple[str, Texts]] = {
    key: (find_format(key).extensions[0], texts)
    for key, texts in (("a3m", a3m_texts), ("stockholm", _stockholm), ("fasta-aligned", aligned_fasta_texts))
}
"""Ends of file names, and writers, of formats of alignments."""

_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z._+=@-]")

LONGEST_FILE_NAME = 120
"""Characters of a name without its end: with a number, and hidden while it is written, file systems take it."""


def file_names(identifiers: Sequence[str], extension: str) -> list[str]:
    """Return names of files for sequences, different ones where upper and lower case are the same too.

    Parameters
    ----------
    identifiers : sequence of str
        Whatever headers hold. All but letters of ASCII, digits and ``._+=@-`` become ``_``; a name is cut at
        `LONGEST_FILE_NAME`, and does not begin with ``.`` or ``-``.
    extension : str
        End of the names.

    Returns
    -------
    list of str
        In the same order; a name that an earlier one has gets ``_2``, ``_3`` ... at its end.
    """
    taken: set[str] = set()
    names = []
    numbers: dict[str, int] = {}
    for identifier in identifiers:
        base = _NOT_IN_NAMES.sub("_", identifier)[:LONGEST_FILE_NAME] or "query"
        if base[0] in ".-":
            base = f"_{base[1:]}"
        name, key = base, base.lower()
        while name.lower() in taken:
            numbers[key] = numbers.get(key, 1) + 1
            name = f"{base}_{numbers[key]}"
        taken.add(name.lower())
        names.append(name + extension)
    return names


@dataclass
class Written:
    """What there is in a folder so far.

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
    rows : RowFilter
        What is kept of each alignment.

    Raises
    ------
    OptionError
        If there is no such format.
    OutputError
        If the folder cannot be made, or nothing be written there.
    """

    def __init__(self, folder: Path, identifiers: Sequence[str], outfmt: str, rows: RowFilter) -> None:
        check_choice("outfmt", outfmt, tuple(ALIGNMENT_FORMATS))
        extension, self._texts = ALIGNMENT_FORMATS[outfmt]
        self.folder, self._rows = folder, rows
        self.paths = [str(folder / name) for name in file_names(identifiers, extension)]
        self._next = iter(self.paths)
        self.written = Written()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            said = "is not a folder" if folder.exists() else f"cannot be created: {error.strerror or error}"
            raise OutputError(
                f"{folder}: {said}, expected a folder for alignments; choose another --output"
            ) from None
        check_output(folder / f"x{extension}")
        remove_abandoned(folder)

    def write(self, result: SearchResult) -> None:
        """Write the alignment of the next query.

        Raises
        ------
        OutputError
            If its file cannot be written; none is left of it then.
        """
        alignment = self._rows.filtered(alignment_of(result))
        path = next(self._next)
        if not result.query_length:
            return
        with open_outputs([(path, False)], sweep=False) as (stream,):
            stream.writelines(self._texts(alignment, result.scoring.matrix.alphabet))
        self.written.files += 1
        self.written.sequences += len(alignment) - 1
        self.written.alone += len(alignment) == 1
