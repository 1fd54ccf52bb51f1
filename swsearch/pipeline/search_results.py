"""Results of a search, as an iterator."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from swsearch.engines.base import Progress
from swsearch.inputs import Query, open_subjects
from swsearch.output_files import PROFILES_FOLDER
from swsearch.pipeline.backend import Backend
from swsearch.pipeline.hit_alignments import align_hits
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search import Search
from swsearch.processors import useful_thread_count
from swsearch.results import HitList
from swsearch.results.result import to_arrow, to_pandas, to_polars
from swsearch.run_info import Origin, RunInfo

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from swsearch.db import Database
    from swsearch.results import SearchResult


TakeAll = Callable[["SearchResults"], "list[SearchResult]"]
"""Takes all results of a search."""

_AN_ITERATOR = "it is an iterator; use list(results), or next(results) for the first"


@dataclass
class IterationCounts:
    """Counts of queries, iterations and hits.

    Parameters
    ----------
    queries, converged : int
        How many there were, and converged.
    iterations : int
        Searches of all of them together.
    hits : int
        Their hits.
    """

    queries: int = 0
    converged: int = 0
    iterations: int = 0
    hits: int = 0

    def add(self, result: SearchResult) -> None:
        """Count a query."""
        self.queries += 1
        self.converged += result.converged
        self.iterations += max(len(result.steps), 1)
        self.hits += len(result.hits)

    def describe(self) -> str:
        """Return ``3 queries, 7 iterations, 2 converged``."""
        plural = "query" if self.queries == 1 else "queries"
        times = "iteration" if self.iterations == 1 else "iterations"
        return f"{self.queries:,} {plural}, {self.iterations:,} {times}, {self.converged:,} converged"


class _Running:
    """State of a running search. It holds no reference to the results: dropping them ends the search."""

    def __init__(
        self, open_search: Callable[[SearchOptions, Path | None, TakeAll], Search],
        options: SearchOptions, close: Callable[[], None],
    ) -> None:  # fmt: skip
        self._open_search, self.options, self.close = open_search, options, close
        self.opened: Search | None = None
        self.checkpoint: Path | None = None
        self.take_all: TakeAll = list
        self.background: SearchResults | None = None
        """Iterations of another database, while they run."""
        self.unfitted: list[str] = []
        self.warnings: list[str] = []
        self.iterated = IterationCounts()
        self.watchers: list[Callable[[SearchResult], None]] = []
        self.aligned = False

    def search(self) -> Search:
        """Return the search, opened on first access."""
        if self.opened is None:
            self.opened = self._open_search(self.options, self.checkpoint, self._take_background)
        return self.opened

    def _take_background(self, background: SearchResults) -> list[SearchResult]:
        self.background = background
        try:
            return self.take_all(background)
        finally:
            self.background = None

    def batches(self) -> Generator[list[SearchResult]]:
        """Yield batches of results; close the search's resources in the end."""
        try:
            with closing(self.search().results(self.aligned)) as batches:
                for batch in batches:
                    self.unfitted += [result.no_evalue_reason for result in batch if result.no_evalue_reason]
                    self.warnings += [result.warning for result in batch if result.warning]
                    for result in batch:
                        self.iterated.add(result)
                        for watcher in self.watchers:
                            watcher(result)
                    yield batch
        finally:
            self.close()


class SearchResults:
    """The results of a search, one per query, in query order: an iterator, which searches as results are taken.

    The engine, if the search made it, is closed when the last result was taken. As a context manager, a search closes
    a database that it opened too. Results stay as they are: hits can be aligned after the database was closed.

    Parameters
    ----------
    queries : sequence of Query
        In the order of the results.
    subjects : Database, path, or an iterable of sequences
        As `swsearch.search` takes them; opened when the search begins.
    options : SearchOptions
        Options of the search.
    backend_of : callable
        Returns the backend that searches a database.
    close : callable, optional
        Called in the end, such as to close an engine.
    progress : callable, optional
        Called with the number of cells just finished, from a thread of the search.
    threads : int, optional
        For alignments; one for each processor by default.
    origin : Origin, optional
        Query file, command and times, for reports.
    """

    def __init__(
        self, queries: Sequence[Query], subjects: Any, options: SearchOptions,
        backend_of: Callable[[Database], Backend], *, close: Callable[[], None] = lambda: None,
        progress: Progress | None = None, threads: int | None = None, origin: Origin | None = None,
    ) -> None:  # fmt: skip
        is_distribution_asked = options.distribution

        def profiles_from(
            path: str, options: SearchOptions, checkpoint: Path | None, take_all: TakeAll
        ) -> list[Query]:
            background = SearchResults(
                queries, Path(path), options.background_options(), backend_of, progress=progress,
                threads=threads, origin=origin,
            )  # fmt: skip
            if checkpoint is not None:
                with suppress(OSError):  # the checkpoint in it says why
                    checkpoint.mkdir(exist_ok=True)
                background.use_checkpoint(checkpoint / PROFILES_FOLDER)
            with background:
                profiles = [result.next_profile for result in take_all(background)]
            return [replace(query, profile=profile) for query, profile in zip(queries, profiles, strict=True)]

        def open_search(options: SearchOptions, checkpoint: Path | None, take_all: TakeAll) -> Search:
            # knows no results: it ends when these are dropped
            alphabet = options.scoring.matrix.alphabet
            database = open_subjects(subjects, options.subject_mask, options.allow_dna, alphabet)
            try:
                if database.genetic_code is not None and not is_distribution_asked:
                    options = replace(options, distribution=False)  # a report would show it, and does without
                asked, path = queries, options.profile_from
                if path is not None:
                    asked = profiles_from(path, options, checkpoint, take_all)
                search = Search(asked, options, backend_of(database), progress, origin)
                if checkpoint is not None:
                    search.use_checkpoint(checkpoint)
                return search
            except BaseException:
                if database is not subjects:
                    database.close()
                raise

        self._threads, self._subjects = threads, subjects
        self._search = _Running(open_search, options, close)
        self._found = self._search.batches()
        self.no_evalue_reasons = self._search.unfitted
        """Reasons why some of the queries so far have no E-values."""
        self.warnings = self._search.warnings
        """Warnings about queries so far whose fitted and published statistics differ widely."""
        self.iteration_counts = self._search.iterated
        """Iterations of the queries so far."""
        self._waiting: deque[SearchResult] = deque()

    @property
    def search(self) -> Search:
        """The search, opened now."""
        return self._search.search()

    @property
    def run(self) -> RunInfo:
        """Facts of the search for reports; opens the search."""
        return self.search.run

    def use_checkpoint(self, folder: Path) -> None:
        """Store finished queries in a folder, if the search has not begun; see `swsearch.pipeline.checkpoint`."""
        self._search.checkpoint = folder

    def take_profiles_by(self, take_all: TakeAll) -> None:
        """Register a function to take the results of `SearchOptions.profile_from`, when the search is opened."""
        self._search.take_all = take_all

    def keep_distribution(self) -> None:
        """Keep the score distribution in results, unless the database is DNA or the search has begun."""
        if self._search.opened is None:
            self._search.options = replace(self._search.options, distribution=True)

    def on_result(self, watcher: Callable[[SearchResult], None]) -> None:
        """Register a function to call with each result, in the thread that takes results."""
        self._search.watchers.append(watcher)

    def batches(self, aligned: bool = False, several: bool = True) -> Iterator[list[SearchResult]]:
        """Yield the remaining results, in lists of queries that were scored together.

        Parameters
        ----------
        aligned : bool
            Whether to align the hits, many together.
        several : bool, optional
            Whether to do so anyway where hits may have further alignments, which are found then.
        """
        aligned = aligned or (several and self._search.options.max_alignments > 1)
        self._search.aligned = self._search.aligned or aligned  # counts if the search has not begun
        while batch := self._next_batch():
            if aligned and not all(isinstance(result.hits, HitList) and result.hits.is_aligned for result in batch):
                align_hits(batch, useful_thread_count(self._threads))
            yield batch

    def _next_batch(self) -> list[SearchResult]:
        """Return the results not yet taken, or else the next ones; none after the last."""
        waiting, self._waiting = list(self._waiting), deque()
        return waiting or next(self._found, [])

    if not TYPE_CHECKING:  # type checkers refuse both without a hint

        def __len__(self) -> NoReturn:
            raise TypeError(f"{type(self).__name__} has no len(): {_AN_ITERATOR}")

        def __getitem__(self, index: object) -> NoReturn:
            raise TypeError(f"{type(self).__name__} cannot be indexed: {_AN_ITERATOR}")

        def __bool__(self) -> bool:
            return True  # not by a length

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SearchResult:
        if not self._waiting:
            self._waiting = deque(self._next_batch())
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()

    def _take(self) -> Iterator[SearchResult]:
        for batch in self.batches(aligned=True):
            yield from batch

    def to_pandas(self) -> pandas.DataFrame:
        """Take the results that are left, and return all their hits as one DataFrame of pandas.

        One row per alignment; ``query_index`` counts the results from 0, and a query without hits has no row. See
        `swsearch.results.result`, whose functions take lists of results too.
        """
        return to_pandas(self._take())

    def to_polars(self) -> polars.DataFrame:
        """Return what `to_pandas` does as one DataFrame of polars."""
        return to_polars(self._take())

    def to_arrow(self) -> pyarrow.Table:
        """Return what `to_pandas` does as one Table of pyarrow."""
        return to_arrow(self._take())

    def stop(self) -> None:
        """Cancel the search from another thread: `SearchCancelled` is raised where its results are awaited."""
        (self._search.background or self).search.stop()

    def close(self) -> None:
        """End the search, and close its engine unless that was given open; hits stay as they are."""
        with ExitStack() as closing:
            if self._search.opened is not None:
                closing.callback(self._search.opened.close)
            closing.callback(self._search.close)
            closing.callback(self._waiting.clear)
            closing.callback(self._found.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        finally:
            opened = self._search.opened
            if opened is not None and opened.backend.database is not self._subjects:
                opened.backend.database.close()
