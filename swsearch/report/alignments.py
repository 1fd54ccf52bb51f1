"""Alignments of hits below their query: A3M, aligned FASTA and Stockholm.

A3M is HH-suite's format, which structure predictors read; Stockholm is HMMER's and Pfam's. Stockholm has columns for
residues between the query's. Row names are single words, and unique in their file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from swsearch.alphabet import PROTEIN, Alphabet, ByteArray
from swsearch.blocks import IntArray
from swsearch.errors import InputError
from swsearch.profiles.query_alignment import GAP, QueryAlignment, stretch_places
from swsearch.report import base, find_format, headers
from swsearch.report.base import ONE_QUERY, Writer
from swsearch.results import SearchResult, alignment_of
from swsearch.run_info import Program
from swsearch.version import version

TEXT_ROWS = 2048
"""Sequences whose text of A3M is made in one go."""

LETTERS_PER_BATCH = 1 << 22
"""Letters whose rows of Stockholm are made in one go, unless a single row has more."""

_NOT_FIRST = re.compile(r"^[#/>]+")
"""Characters that, at the start of a name, would begin a comment, a header or the end of an alignment."""


def letters_of(alphabet: Alphabet) -> ByteArray:
    """Return the letter of each code in columns, shape (256,), uint8: ``-`` of `GAP`, and X of a stop.

    Programs that read alignments take ``*`` for the end of a sequence, or for no letter at all.
    """
    letters = alphabet.decode_table.copy()
    letters[GAP] = ord("-")
    letters[letters == ord("*")] = ord("X")
    return letters


def row_names(alignment: QueryAlignment) -> list[str]:
    """Return a name for each sequence: ``P12345/10-80``, its aligned part counted from 1; the query has no part.

    Blanks and what would not be read as a name become ``_``. A name that is taken gets ``#2`` at its end, ``#3`` ...
    """
    first = alignment.starts + 1
    spans = zip(first.tolist(), alignment.ends.tolist(), strict=True)
    identifiers = row_identifiers(alignment.identifiers)
    names = [f"{name}/{begin}-{end}" for name, (begin, end) in zip(identifiers, spans, strict=True)]
    names[:1] = identifiers[:1]
    return names if len(set(names)) == len(names) else _unique(names)


def row_identifiers(identifiers: Sequence[str]) -> list[str]:
    """Return identifiers as they stand in names of rows: words that begin no comment."""
    words = headers.printed_identifiers(identifiers)
    return [_NOT_FIRST.sub("_", "_".join(word.split())) for word in words]


def _unique(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    used_names = set(names)
    unique = []
    for name in names:
        seen[name] += 1
        unique_name = name
        if seen[name] > 1:
            while (unique_name := f"{name}#{seen[name]}") in used_names:
                seen[name] += 1
            used_names.add(unique_name)
        unique.append(unique_name)
    return unique


def descriptions_of(alignment: QueryAlignment) -> list[str]:
    """Return a line of text for each sequence, empty where it has none; of merged headers the first."""
    texts = [text.partition(headers.MERGED)[0] for text in alignment.descriptions]
    return [headers.one_line(text).strip() for text in texts]


def evalues_of(alignment: QueryAlignment) -> list[str]:
    """Return the E-value of each sequence as BLAST's tables print it; empty of the query and where there is none."""
    texts = base.number_texts(alignment.evalues, "evalue")
    has_evalue = ~np.isnan(alignment.evalues)
    has_evalue[:1] = False
    return [text if is_known else "" for text, is_known in zip(texts, has_evalue.tolist(), strict=True)]


def fasta_headers(alignment: QueryAlignment) -> list[str]:
    """Return the header line of each sequence without its end: ``>P12345/10-80 E=2e-30 the description``."""
    rows = zip(row_names(alignment), evalues_of(alignment), descriptions_of(alignment), strict=True)
    return [f">{name}{f' E={evalue}' if evalue else ''}{f' {text}' if text else ''}" for name, evalue, text in rows]


def a3m_texts(
    alignment: QueryAlignment, alphabet: Alphabet = PROTEIN, *, has_insertions: bool = True
) -> Iterator[str]:
    """Yield an alignment as A3M, `TEXT_ROWS` sequences at a time, with or without residues between the query's."""
    titles, letters = fasta_headers(alignment), letters_of(alphabet)
    n, n_columns = len(alignment), alignment.n_columns
    for begin in range(0, n, TEXT_ROWS):
        end = min(begin + TEXT_ROWS, n)
        pool = letters[alignment.columns[begin:end]].reshape(-1)
        ends = n_columns * np.arange(end - begin + 1)
        first, last = alignment.insertion_offsets[[begin, end]].tolist() if has_insertions else (0, 0)
        if last > first:
            row, column, start, stop = alignment.insertions[first:last].T
            lengths = stop - start
            between = letters[alignment.inserted[stretch_places(start, lengths)]] | 0x20  # ASCII: lower case
            pool = np.insert(pool, np.repeat((row - begin) * n_columns + column, lengths), between)
            ends[1:] += np.cumsum(np.bincount(row - begin, lengths, end - begin)).astype(np.int64)
        text, at = pool.tobytes().decode("ascii"), ends.tolist()
        yield "".join(f"{title}\n{text[at[row] : at[row + 1]]}\n" for row, title in enumerate(titles[begin:end]))


aligned_fasta_texts = partial(a3m_texts, has_insertions=False)
"""Yields an alignment as FASTA in the columns of its query."""


def stockholm_texts(
    alignment: QueryAlignment, alphabet: Alphabet, made_by: str = "", *, gap: str = "."
) -> Iterator[str]:
    """Yield an alignment as Stockholm, some rows at a time.

    ``made_by`` is a version, by default the own one; ``gap`` the letter of gaps between the query's residues.
    """
    names, texts = row_names(alignment), descriptions_of(alignment)
    head = ["# STOCKHOLM 1.0", f"#=GF ID {names[0]}"]
    if texts[0]:
        head.append(f"#=GF DE {texts[0]}")
    head += [f"#=GF AU swsearch {headers.one_line(made_by or version())}", f"#=GF SQ {len(names)}"]
    for name, text, evalue in zip(names, texts, evalues_of(alignment), strict=True):
        if text:
            head.append(f"#=GS {name} DE {text}")
        if evalue:
            head.append(f"#=GS {name} EV {evalue}")
    yield "\n".join(head) + "\n\n"
    width = max(len("#=GC RF"), *map(len, names)) + 1
    at, total = _layout(alignment)
    together = max(1, LETTERS_PER_BATCH // max(1, total))
    for begin in range(0, len(names), together):
        some = slice(begin, min(begin + together, len(names)))
        rows = _fill(
            np.full((some.stop - some.start, total), ord(gap), dtype=np.uint8), alignment, some, at, alphabet
        )
        yield "".join(
            f"{name:<{width}}{row.tobytes().decode('ascii')}\n"
            for name, row in zip(names[begin : begin + together], rows, strict=True)
        )
    reference = np.full(total, ord("."), dtype=np.uint8)
    reference[at[:-1]] = ord("x")
    yield f"{'#=GC RF':<{width}}{reference.tobytes().decode('ascii')}\n//\n"


def _layout(alignment: QueryAlignment) -> tuple[IntArray, int]:
    """Return where each of the query's columns stands, and where it all ends, shape (n_columns + 1,); and the width.

    What is inserted before column k has the places before the k-th.
    """
    widest = np.zeros(alignment.n_columns + 1, dtype=np.int64)
    _, columns, begins, ends = alignment.insertions.T
    np.maximum.at(widest, columns, ends - begins)
    at: IntArray = np.cumsum(widest) + np.arange(alignment.n_columns + 1)
    return at, int(at[-1])


def _fill(rows: ByteArray, alignment: QueryAlignment, some: slice, at: IntArray, alphabet: Alphabet) -> ByteArray:
    """Set the letters of some sequences in all columns of rows of gaps, shape (n, total), uint8; return the rows."""
    letters, total = letters_of(alphabet), rows.shape[1]
    rows[:, at[:-1]] = letters[alignment.columns[some]]
    first, last = alignment.insertion_offsets[[some.start, some.stop]].tolist()
    row, column, begins, ends = alignment.insertions[first:last].T
    lengths = ends - begins
    # what is inserted stands at the left of its columns, as HMMER's own alignments have it in most
    before = np.where(column > 0, at[column - 1] + 1, 0)
    cells = stretch_places((row - some.start) * total + before, lengths)
    rows.reshape(-1)[cells] = letters[alignment.inserted[stretch_places(begins, lengths)]] | 0x20
    return rows


class AlignmentWriter(Writer):
    """Base of the formats that show the hits as an alignment below their query, and that hold only proteins."""

    programs: ClassVar[tuple[Program, ...]] = ("blastp",)
    unsupported_remedy: ClassVar[str] = (
        "search with the translated sequence, or use a table with the columns qseq and sseq"
    )


class OneAlignmentWriter(AlignmentWriter):
    """Base of formats of which a file holds the alignment of one query: nothing in them says where another begins."""

    is_single_query: ClassVar[bool] = True
    texts: ClassVar[Callable[..., Iterator[str]]]
    """Yields the text of the file, of an alignment and its alphabet."""

    _query: str | None = None

    def write(self, result: SearchResult) -> None:
        """Write the alignment of the only query."""
        if self._query is not None:
            raise InputError(f"queries: got {self._query!r} and {result.query_id!r}, expected one; {ONE_QUERY}")
        self._query = result.query_id
        self._stream.writelines(self.texts(alignment_of(result), result.scoring.matrix.alphabet))


class A3mWriter(OneAlignmentWriter):
    """A3M: the query first, then a row for each alignment; residues between the query's are lower case.

    All rows have as many upper-case letters and ``-`` as the query has residues. A file holds one query.
    """

    texts = staticmethod(a3m_texts)


class AlignedFastaWriter(OneAlignmentWriter):
    """Aligned FASTA in the columns of the query: what a sequence has between them is left out.

    All rows are as long as the query. A file holds one query.
    """

    texts = staticmethod(aligned_fasta_texts)


class StockholmWriter(AlignmentWriter):
    """Stockholm 1.0: an alignment per query, the query first, with columns for residues between the query's.

    ``#=GC RF`` has x in the columns of the query and ``.`` in the others, where residues are lower case. ``#=GS`` has
    each sequence's description (DE) and E-value (EV). A query without residues has no alignment.
    """

    def write(self, result: SearchResult) -> None:
        """Write the alignment of one query."""
        if result.query_length:  # readers take no alignment without columns
            alphabet = result.scoring.matrix.alphabet
            self._stream.writelines(stockholm_texts(alignment_of(result), alphabet, self._run.version))


FormatAlignment = Callable[[QueryAlignment, Alphabet], Iterator[str]]
"""Yields the text of an alignment."""


ALIGNMENT_FORMATS: dict[str, tuple[str, FormatAlignment]] = {
    key: (find_format(key).extensions[0], texts)
    for key, texts in (("a3m", a3m_texts), ("stockholm", stockholm_texts), ("fasta-aligned", aligned_fasta_texts))
}
"""Ends of file names, and writers, of formats of alignments."""
