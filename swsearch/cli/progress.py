"""How far a search or a build is: counted here, shown by `swsearch.cli.displays`.

What is told is decided when something was done, by the time then: nothing waits for it, and it has no thread.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Self

from swsearch.cli.displays import Display, State, share_of


@dataclass(frozen=True)
class SearchState:
    """How far a search is.

    Parameters
    ----------
    queries_done, queries : int
        Queries whose results were written, and all.
    completed, total : int
        Cells that were computed or that a checkpoint had, and all.
    gcups : float
        Billions of cells that were computed each second.
    seconds, seconds_left
        As in `State`.
    """

    label: ClassVar[str] = "searching"
    queries_done: int
    queries: int
    completed: int
    total: int
    gcups: float
    seconds: float
    seconds_left: float | None

    @property
    def counted(self) -> str:
        """The queries."""
        return f"{self.queries_done:,}/{self.queries:,} queries"

    def parts(self) -> list[str]:
        """See `State.parts`."""
        return [
            f"{self.queries_done:,} of {self.queries:,} queries",
            f"{self.completed:.3g} of {self.total:.3g} cells ({share_of(self.completed, self.total)})",
            f"{self.gcups:.2f} GCUPS",
        ]

    def numbers(self) -> dict[str, float | None]:
        """See `State.numbers`."""
        done = {"queries_done": self.queries_done, "queries": self.queries}
        return {**done, "cells_done": self.completed, "cells": self.total, "gcups": round(self.gcups, 3)}


@dataclass(frozen=True)
class ReadState:
    """How far a database's input is read.

    Parameters
    ----------
    label : str
        What is going on.
    completed : int
        Bytes that were read.
    total : int or None
        Bytes in all; None if that is no taxids.
    seconds, seconds_left
        As in `State`.
    """

    label: str
    completed: int
    total: int | None
    seconds: float
    seconds_left: float | None
    counted: ClassVar[str] = ""

    def parts(self) -> list[str]:
        """See `State.parts`."""
        read = f"{self.completed / 1e6:,.1f}"
        if self.total is None:
            return [f"{self.label}: {read} MB read"]
        share = share_of(self.completed, self.total)
        return [f"{self.label}: {read} of {self.total / 1e6:,.1f} MB read ({share})"]

    def numbers(self) -> dict[str, float | None]:
        """See `State.numbers`."""
        return {"bytes_read": self.completed, "bytes": self.total}


class Reporter(ABC):
    """Counts what was done, and shows it. Any thread may tell it; a context manager.

    Parameters
    ----------
    display : Display
        Shows it.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(self, display: Display, clock: Callable[[], float]) -> None:
        self._display, self._clock = display, clock
        self._lock = threading.RLock()  # an interrupted call may be followed by another in the same thread
        self._begun = clock()

    @abstractmethod
    def _state(self) -> State:
        """Return how far the work is."""

    def _show(self) -> None:
        self._display.show(self._state())

    def __enter__(self) -> Self:
        self._display.begin(self._state())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._display.end(self._state(), failed=kind is not None)


class SearchProgress(Reporter):
    """Counts what a search has done.

    Parameters
    ----------
    display : Display
        Shows it.
    cells, queries : int
        How many there are.
    clock : callable, optional
        Returns the time in seconds.
    """

    def __init__(
        self, display: Display, cells: int, queries: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(display, clock)
        self._cells, self._queries = cells, queries
        self._scoring_begun = self._begun
        self._computed = self._restored = self._forgone = self._written = 0

    @property
    def spared_cells(self) -> int:
        """Cells that a checkpoint had, or that were not needed."""
        return self._restored + self._forgone

    def advance(self, cells: int) -> None:
        """Take note that cells were computed."""
        with self._lock:
            self._computed += cells
            self._show()

    def restored(self, cells: int) -> None:
        """Take note of cells that a checkpoint had: they say nothing about the speed."""
        with self._lock:
            self._restored += cells
            if not self._computed:
                self._scoring_begun = self._clock()
            self._show()

    def forgone(self, cells: int) -> None:
        """Take note of cells that are not needed any more, since queries converged."""
        with self._lock:
            self._forgone += cells
            self._show()

    def written(self, queries: int) -> None:
        """Take note that the results of some more queries were written."""
        with self._lock:
            self._written += queries
            self._show()

    def _state(self) -> SearchState:
        now = self._clock()
        rate = self._computed / max(now - self._scoring_begun, 1e-9)
        done = self._computed + self._restored
        cells = self._cells - self._forgone
        left = max(cells - done, 0)
        seconds_left = 0.0 if not left else left / rate if rate else None
        return SearchState(self._written, self._queries, done, cells, rate / 1e9, now - self._begun, seconds_left)


class ReadingProgress(Reporter):
    """Counts what was read of a database's input.

    Parameters
    ----------
    display : Display
        Shows it.
    label : str
        What is going on.
    clock : callable, optional
        Returns the time in seconds.
    """

    def __init__(self, display: Display, label: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(display, clock)
        self._label = label
        self._read = 0
        self._bytes: int | None = None

    def move_to(self, done: int, total: int | None = None) -> None:
        """Take note of how many bytes were read, and how many there are."""
        with self._lock:
            self._read, self._bytes = done, total
            self._show()

    def _state(self) -> ReadState:
        seconds = self._clock() - self._begun
        left = None
        if self._bytes is not None and self._read:
            left = max(self._bytes - self._read, 0) * seconds / self._read
        return ReadState(self._label, self._read, self._bytes, seconds, left)
