"""Tables: BLAST's formats 6 (tab separated), 7 (the same with comment lines) and 10 (comma separated)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import IO, Any

from swsearch.report import headers
from swsearch.report.base import Writer
from swsearch.report.columns import Column, choose_columns, table_rows
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo
from swsearch.statistics.fitted import FittedStatistics


class TabularWriter(Writer):
    """One line per alignment, columns separated by tabs; coordinates count from 1 and include the end.

    With `has_header` the first line has the columns' names, as they are asked for.

    Parameters
    ----------
    stream : TextIO
        Where to write.
    columns : list of Column
        What to write of each alignment. If none of them needs an alignment, none is found, and a hit has one line.
    """

    has_columns = True
    takes_header = True

    def __init__(self, stream: IO[Any], columns: list[Column]) -> None:
        super().__init__(stream)
        self._columns = columns
        self.needs_alignments = any(column.needs_alignment for column in columns)

    @classmethod
    def create(cls, stream: IO[Any], columns: list[str], outfmt: str) -> TabularWriter:
        """See `Writer.create`."""
        return cls(stream, choose_columns(columns, outfmt))

    def begin(self, run: RunInfo) -> None:
        """Write the names of the columns, if that is asked for."""
        if self.has_header:
            self._write_rows([tuple(column.name for column in self._columns)])

    def write(self, result: SearchResult) -> None:
        """Write the hits of one query."""
        for rows in table_rows(result, self._columns):
            self._write_rows(rows)

    def _write_rows(self, rows: Iterable[tuple[str, ...]]) -> None:
        self._stream.write("\n".join(map("\t".join, rows)) + "\n")

    def end(self) -> None:
        """Write nothing."""


class CommaSeparatedWriter(TabularWriter):
    """One line per alignment, columns separated by commas; unlike blastp's, a value that holds a comma is quoted."""

    def _write_rows(self, rows: Iterable[tuple[str, ...]]) -> None:
        csv.writer(self._stream, lineterminator="\n").writerows(rows)


class CommentedWriter(TabularWriter):
    """A table with comment lines before each query's hits, which name query, database and columns."""

    takes_header = False

    def __init__(self, stream: IO[Any], columns: list[Column]) -> None:
        super().__init__(stream, columns)
        self._version = ""
        self._queries = 0

    def begin(self, run: RunInfo) -> None:
        """Take note of the version, which heads the comments of each query."""
        self._version = run.version

    def write(self, result: SearchResult) -> None:
        """Write the comments and hits of one query."""
        self._queries += 1
        self._stream.writelines(f"# {line}\n" for line in self._comments(result))
        super().write(result)

    def _comments(self, result: SearchResult) -> Iterator[str]:
        """Say what blastp says in its words: Bio.SearchIO and others know a comment by them."""
        yield f"swsearch {self._version}"
        yield f"Query: {headers.one_line(f'{result.query_id} {result.query_description}').rstrip()}"
        yield f"Database: {headers.one_line(result.database_name)}"
        if result.asked:
            yield f"Options: {headers.asked(result.asked)}"
        if result.statistics is None:
            yield f"Note: {headers.one_line(result.why_no_statistics)}"
        elif isinstance(result.statistics, FittedStatistics):
            yield f"Note: E-values: {result.statistics.name}"
            yield f"Note: fit: {result.statistics.describe()}"
        elif note := headers.statistics_note(result):
            yield f"Note: {note}"
        if result.hits:  # blastp names no columns where there are none, and SearchIO relies on that
            yield f"Fields: {', '.join(column.field for column in self._columns)}"
        # blastp counts lines too
        several = result.may_have_several
        yield f"{sum(len(hit.hsps) for hit in result.hits) if several else len(result.hits)} hits found"

    def end(self) -> None:
        """Write the number of queries."""
        self._stream.write(f"# swsearch processed {self._queries} queries\n")
