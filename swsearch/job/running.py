"""A search as its caller sees it: results that come one after the other, and what they are results of."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from swsearch.engines.base import Engine, Progress
from swsearch.inputs import Query, open_subjects
from swsearch.job.hit_alignments import align_hits
from swsearch.job.job import SearchJob
from swsearch.job.options import SearchOptions
from swsearch.processors import available_processors
from swsearch.run_info import Origin, RunInfo

if TYPE_CHECKING:
    from swsearch.results import SearchResult


class SearchResults:
    """The results of a search, one per query, in query order: an iterator, which searches as results are taken.

    The engine, if the search made it, is closed when the last result was taken. The database stays open, because hits
    read their subjects from it when their alignments are asked for; as a context manager, a search closes both.

    Parameters
    ----------
    queries : sequence of Query
        In the order of the results.
    subjects : Database, path, or an iterable of sequences
        As `swsearch.search` takes them; opened when the search begins.
    options : SearchOptions
        What is asked for.
    engine : Engine
        Open.
    owns_engine : bool
        Whether to close it in the end.
    progress : callable, optional
        Called with the number of cells just finished.
    threads : int, optional
        For alignments; one for each processor by default.
    origin : Origin, optional
        Where the queries and the command come from, for reports.

    Attributes
    ----------
    unfitted : list of str
        Why some of the queries so far have no E-values.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        subjects: Any,
        options: SearchOptions,
        engine: Engine,
        *,
        owns_engine: bool = False,
        progress: Progress | None = None,
        threads: int | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._queries, self._subjects, self._options, self._engine = queries, subjects, options, engine
        self._owns_engine, self._progress, self._threads, self._origin = owns_engine, progress, threads, origin
        self._found = self._search()
        self._waiting: list[SearchResult] = []
        self.unfitted: list[str] = []
        self._opened: SearchJob | None = None

    @cached_property
    def job(self) -> SearchJob:
        """The job, whose database is opened now."""
        database = open_subjects(self._subjects, self._options.subject_mask)
        try:
            self._opened = SearchJob(
                self._queries, database, self._engine, self._options, self._progress, self._threads, self._origin
            )
        except BaseException:
            if database is not self._subjects:
                database.close()
            raise
        return self._opened

    @property
    def run(self) -> RunInfo:
        """What reports say of the search as a whole; opens the database."""
        return self.job.run

    def keep_distribution(self) -> None:
        """Let results keep how the whole database scores, if the search has not begun."""
        if self._opened is None:
            self._options = replace(self._options, distribution=True)

    def batches(self, aligned: bool = False) -> Iterator[list[SearchResult]]:
        """Yield what is left, the results of queries that were scored together at a time.

        Parameters
        ----------
        aligned : bool
            Whether to align the hits, all of a batch together; this is always done where hits may have further
            alignments.
        """
        threads = self._threads or available_processors()
        while batch := self._next_batch():
            if aligned or self._options.max_alignments > 1:
                aligner = self._engine.pair_aligner(sum(len(result.hits) for result in batch))
                with aligner or nullcontext():
                    align_hits(batch, threads, aligner)
            yield batch

    def _next_batch(self) -> list[SearchResult]:
        """Return what was found and not yet taken, or else the next results; nothing after the last."""
        waiting, self._waiting = self._waiting, []
        return waiting or next(self._found, [])

    def _search(self) -> Generator[list[SearchResult]]:
        try:
            for batch in self.job.batches():
                self.unfitted += [result.no_statistics for result in batch if result.no_statistics]
                yield batch
        finally:
            self._close_engine()

    def __iter__(self) -> SearchResults:
        return self

    def __next__(self) -> SearchResult:
        if not self._waiting:
            self._waiting = self._next_batch()
        if not self._waiting:
            raise StopIteration
        return self._waiting.pop(0)

    def _close_engine(self) -> None:
        if self._owns_engine:
            self._engine.close()

    def close(self) -> None:
        """End the search, and close its engine unless that was given open; hits stay as they are."""
        self._found.close()
        self._waiting = []
        self._close_engine()

    def __enter__(self) -> SearchResults:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._opened is not None and self._opened.database is not self._subjects:
            self._opened.database.close()
