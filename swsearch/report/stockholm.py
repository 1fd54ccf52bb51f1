"""Stockholm, HMMER's and Pfam's alignments: one per query, with columns for what stands between the query's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from swsearch.alphabet import Alphabet, ByteArray
from swsearch.blocks import IntArray
from swsearch.profiles.alignment import QueryAlignment, spread
from swsearch.report import headers
from swsearch.report.a3m import TRANSLATED_ROWS_REMEDY
from swsearch.report.base import Writer
from swsearch.report.row_names import descriptions_of, evalues_of, letters_of, row_names
from swsearch.results import SearchResult, alignment_of
from swsearch.run_info import Program, RunInfo

LETTERS_TOGETHER = 1 << 22
"""Letters whose rows are made in one go, unless a single row has more."""


class StockholmWriter(Writer):
    """Stockholm 1.0: an alignment per query, the query first, with columns for residues between the query's.

    ``#=GC RF`` has x in the columns of the query and ``.`` in the others, where residues are lower case. ``#=GS`` has
    each sequence's description (DE) and E-value (EV). A query without residues has no alignment.
    """

    programs: ClassVar[tuple[Program, ...]] = ("blastp",)
    unsupported_remedy: ClassVar[str] = TRANSLATED_ROWS_REMEDY

    def begin(self, run: RunInfo) -> None:
        """Write nothing: each alignment has a heading of its own."""
        self._alphabet = run.scoring.matrix.alphabet
        self._program = f"swsearch {run.version}"

    def write(self, result: SearchResult) -> None:
        """Write the alignment of one query."""
        if result.query_length:  # readers take no alignment without columns
            self._stream.writelines(stockholm_texts(alignment_of(result), self._alphabet, self._program))

    def end(self) -> None:
        """Write nothing."""


def stockholm_texts(alignment: QueryAlignment, alphabet: Alphabet, program: str) -> Iterator[str]:
    """Yield an alignment as Stockholm, some rows at a time."""
    names, texts = row_names(alignment), descriptions_of(alignment)
    head = ["# STOCKHOLM 1.0", f"#=GF ID {names[0]}"]
    if texts[0]:
        head.append(f"#=GF DE {texts[0]}")
    head += [f"#=GF AU {headers.one_line(program)}", f"#=GF SQ {len(names)}"]
    for name, text, evalue in zip(names, texts, evalues_of(alignment), strict=True):
        if text:
            head.append(f"#=GS {name} DE {text}")
        if evalue:
            head.append(f"#=GS {name} EV {evalue}")
    yield "\n".join(head) + "\n\n"
    width = max(len("#=GC RF"), *map(len, names)) + 1
    at, total = _layout(alignment)
    together = max(1, LETTERS_TOGETHER // max(1, total))
    for begin in range(0, len(names), together):
        rows = _rows(alignment, slice(begin, min(begin + together, len(names))), at, total, alphabet)
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


def _rows(alignment: QueryAlignment, some: slice, at: IntArray, total: int, alphabet: Alphabet) -> ByteArray:
    """Return the letters of some sequences in all columns, shape (n, total), uint8."""
    letters = letters_of(alphabet)
    rows = np.full((some.stop - some.start, total), ord("."), dtype=np.uint8)
    rows[:, at[:-1]] = letters[alignment.columns[some]]
    first, last = alignment.insertion_offsets[[some.start, some.stop]].tolist()
    row, column, begins, ends = alignment.insertions[first:last].T
    lengths = ends - begins
    # what is inserted stands at the left of its columns, as HMMER's own alignments have it in most
    before = np.where(column > 0, at[column - 1] + 1, 0)
    cells = spread((row - some.start) * total + before, lengths)
    rows.reshape(-1)[cells] = letters[alignment.inserted[spread(begins, lengths)]] | 0x20
    return rows
