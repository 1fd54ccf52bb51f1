"""A3M, the alignments of HH-suite that structure predictors read, and aligned FASTA."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import IO, Any, ClassVar

import numpy as np

from swsearch.alphabet import PROTEIN, Alphabet
from swsearch.errors import InputError
from swsearch.profiles.alignment import QueryAlignment, spread
from swsearch.report.base import Writer
from swsearch.report.row_names import fasta_headers, letters_of
from swsearch.results import SearchResult, alignment_of
from swsearch.run_info import Program, RunInfo

TEXT_ROWS = 2048
"""Sequences whose text is made in one go."""


TRANSLATED_ROWS_REMEDY = "search with the translated sequence, or use a table with the columns qseq and sseq"
"""What to use for alignments of translated DNA."""


class OneAlignmentWriter(Writer):
    """Base of formats of which a file holds the alignment of one query: nothing in them says where another begins."""

    is_single_query: ClassVar[bool] = True
    programs: ClassVar[tuple[Program, ...]] = ("blastp",)
    unsupported_remedy: ClassVar[str] = TRANSLATED_ROWS_REMEDY

    def __init__(self, stream: IO[Any]) -> None:
        super().__init__(stream)
        self._query: str | None = None

    def begin(self, run: RunInfo) -> None:
        """Write nothing: the query's row comes first."""
        self._alphabet = run.scoring.matrix.alphabet

    def write(self, result: SearchResult) -> None:
        """Write the alignment of the only query."""
        if self._query is not None:
            raise InputError(f"queries: got {self._query!r} and {result.query_id!r}, expected one; {ONE_QUERY}")
        self._query = result.query_id
        self._stream.writelines(self._texts(alignment_of(result)))

    def end(self) -> None:
        """Write nothing."""

    @abstractmethod
    def _texts(self, alignment: QueryAlignment) -> Iterator[str]:
        """Yield the text of the file."""


ONE_QUERY = "use swsearch msa for one file per query, or --outfmt stockholm for all queries"
"""What to say where there are more."""


class A3mWriter(OneAlignmentWriter):
    """A3M: the query first, then a row for each alignment; residues between the query's are lower case.

    All rows have as many upper-case letters and ``-`` as the query has residues. A file holds one query.
    """

    def _texts(self, alignment: QueryAlignment) -> Iterator[str]:
        return a3m_texts(alignment, self._alphabet)


class AlignedFastaWriter(OneAlignmentWriter):
    """Aligned FASTA in the columns of the query: what a sequence has between them is left out.

    All rows are as long as the query. A file holds one query.
    """

    def _texts(self, alignment: QueryAlignment) -> Iterator[str]:
        return aligned_fasta_texts(alignment, self._alphabet)


def a3m_texts(alignment: QueryAlignment, alphabet: Alphabet = PROTEIN) -> Iterator[str]:
    """Yield an alignment as A3M, `TEXT_ROWS` sequences at a time."""
    return _texts(alignment, alphabet, insertions=True)


def aligned_fasta_texts(alignment: QueryAlignment, alphabet: Alphabet = PROTEIN) -> Iterator[str]:
    """Yield an alignment as FASTA in the columns of its query."""
    return _texts(alignment, alphabet, insertions=False)


def _texts(alignment: QueryAlignment, alphabet: Alphabet, *, insertions: bool) -> Iterator[str]:
    """Yield an alignment in the columns of its query, with or without what stands between them."""
    titles, letters = fasta_headers(alignment), letters_of(alphabet)
    n, n_columns = len(alignment), alignment.n_columns
    for begin in range(0, n, TEXT_ROWS):
        end = min(begin + TEXT_ROWS, n)
        pool = letters[alignment.columns[begin:end]].reshape(-1)
        ends = n_columns * np.arange(end - begin + 1)
        first, last = alignment.insertion_offsets[[begin, end]].tolist() if insertions else (0, 0)
        if last > first:
            row, column, start, stop = alignment.insertions[first:last].T
            lengths = stop - start
            between = letters[alignment.inserted[spread(start, lengths)]] | 0x20  # ASCII: lower case
            pool = np.insert(pool, np.repeat((row - begin) * n_columns + column, lengths), between)
            ends[1:] += np.cumsum(np.bincount(row - begin, lengths, end - begin)).astype(np.int64)
        text, at = pool.tobytes().decode("ascii"), ends.tolist()
        yield "".join(f"{title}\n{text[at[row] : at[row + 1]]}\n" for row, title in enumerate(titles[begin:end]))
