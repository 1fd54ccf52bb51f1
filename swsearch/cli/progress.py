"""How far a search is: a bar for people, lines for logs, JSON for programs; all on stderr.

What is told is decided when something was done, by the time then: nothing waits for it, and it has no thread.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from swsearch.cli.console import PROGRESS_AFTER, say

ProgressKind = Literal["auto", "bar", "lines", "json", "none"]

FIRST_LINE = 10.0
"""Seconds before the first line, and from one to the next at first."""

SHARE_OF_TIME, MOST_BETWEEN = 0.1, 300.0
"""Lines are as far apart as this share of the time so far, and at most so many seconds: some 180 in twelve hours."""

JSON_EVERY = 1.0
"""Seconds between two objects, at least."""

Event = Literal["begin", "progress", "end", "failed"]
"""What an object of JSON tells of."""


@dataclass(frozen=True)
class State:
    """How far a search is.

    Parameters
    ----------
    queries_done, queries : int
        Queries whose results were written, and all.
    cells_done, cells : int
        Cells that were computed or that a checkpoint had, and all.
    gcups : float
        Billions of cells that were computed each second.
    seconds : float
        Since the search began.
    seconds_left : float or None
        Till its end at this speed; None while that is not known.
    """

    queries_done: int
    queries: int
    cells_done: int
    cells: int
    gcups: float
    seconds: float
    seconds_left: float | None

    @property
    def left(self) -> str:
        """The time that is left, in words."""
        return "" if self.seconds_left is None else f"{clock_time(self.seconds_left)} left"

    def line(self) -> str:
        """Return all of it as a line for people."""
        share = 100.0 * self.cells_done / self.cells if self.cells else 100.0
        # never all before it is all
        parts = [
            f"{self.queries_done:,} of {self.queries:,} queries",
            f"{self.cells_done:.3g} of {self.cells:.3g} cells ({math.floor(10 * share) / 10:.1f} %)",
            f"{self.gcups:.2f} GCUPS",
            f"{clock_time(self.seconds)} so far",
        ]
        return ", ".join([*parts, self.left] if self.left else parts)

    def json(self, event: Event) -> str:
        """Return all of it as an object of JSON in one line."""
        numbers = vars(self) | {"gcups": round(self.gcups, 3), "seconds": round(self.seconds, 3)}
        if self.seconds_left is not None:
            numbers["seconds_left"] = round(self.seconds_left, 3)
        return json.dumps({"event": event, **numbers})


def clock_time(seconds: float) -> str:
    """Return a time as hours, minutes and seconds, such as ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Display:
    """Shows how far a search is; this one shows nothing."""

    def begin(self, state: State) -> None:
        """Take note that the search begins."""

    def show(self, state: State) -> None:
        """Take note that something was done."""

    def end(self, state: State, failed: bool) -> None:
        """Take note that the search ended."""


class Bar(Display):
    """A bar, which appears when the work takes long, and vanishes in the end.

    Parameters
    ----------
    forced : bool
        Whether to draw even where stderr is no terminal.
    """

    def __init__(self, forced: bool = False) -> None:
        self._forced = forced
        self._bar: Any = None
        self._task: Any = None

    def show(self, state: State) -> None:
        """Draw it."""
        if self._bar is None:
            if state.seconds < PROGRESS_AFTER:
                return
            self._start(state)
        shown = {"done": f"{state.queries_done:,}/{state.queries:,} queries", "left": state.left}
        self._bar.update(self._task, completed=state.cells_done, **shown)

    def _start(self, state: State) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        texts = [TextColumn("{task.fields[done]}"), TextColumn("{task.fields[left]}")]
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), *texts)
        console = Console(stderr=True, force_terminal=True if self._forced else None)
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task("searching", total=state.cells or None, done="", left="")
        self._bar.start()

    def end(self, state: State, failed: bool) -> None:
        """Remove it."""
        if self._bar is not None:
            self._bar.stop()


class Lines(Display):
    """A line from time to time, for what is read later or elsewhere."""

    def __init__(self) -> None:
        self._next = FIRST_LINE

    def show(self, state: State) -> None:
        """Print a line if it is time."""
        if state.seconds >= self._next:
            say(f"swsearch: {state.line()}")
            self._next = state.seconds + min(max(SHARE_OF_TIME * state.seconds, FIRST_LINE), MOST_BETWEEN)


class Objects(Display):
    """An object of JSON in a line of its own: at the beginning, at the end, and every second between."""

    def __init__(self) -> None:
        self._next = JSON_EVERY

    def begin(self, state: State) -> None:
        """Print the first."""
        say(state.json("begin"))

    def show(self, state: State) -> None:
        """Print one if it is time."""
        if state.seconds >= self._next:
            say(state.json("progress"))
            self._next = state.seconds + JSON_EVERY

    def end(self, state: State, failed: bool) -> None:
        """Print the last."""
        say(state.json("failed" if failed else "end"))


def display_of(kind: ProgressKind, quiet: bool = False) -> Display:
    """Return what shows how far a search is.

    Parameters
    ----------
    kind : {"auto", "bar", "lines", "json", "none"}
        ``auto`` is a bar where stderr is a terminal, and lines elsewhere.
    quiet : bool, optional
        Let ``auto`` show nothing.
    """
    if sys.stderr is None or kind == "none" or (kind == "auto" and quiet):
        return Display()
    if kind == "json":
        return Objects()
    if kind == "bar" or (kind == "auto" and is_terminal()):
        return Bar(forced=kind == "bar")
    return Lines()


def is_terminal() -> bool:
    """Say whether messages go to a terminal."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # somebody closed or replaced it
        return False


class SearchProgress:
    """Counts what a search has done, and shows it. Any thread may tell it; a context manager.

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
        self._display, self._cells, self._queries, self._clock = display, cells, queries, clock
        self._lock = threading.RLock()  # an interrupted call may be followed by another in the same thread
        self._begun = self._scoring_begun = clock()
        self._computed = self._restored = self._written = 0

    @property
    def restored_cells(self) -> int:
        """Cells that a checkpoint had."""
        return self._restored

    def advance(self, cells: int) -> None:
        """Take note that cells were computed."""
        with self._lock:
            self._computed += cells
            self._display.show(self._state())

    def restored(self, cells: int) -> None:
        """Take note of cells that a checkpoint had: they say nothing about the speed."""
        with self._lock:
            self._restored += cells
            if not self._computed:
                self._scoring_begun = self._clock()
            self._display.show(self._state())

    def written(self, queries: int) -> None:
        """Take note that the results of some more queries were written."""
        with self._lock:
            self._written += queries
            self._display.show(self._state())

    def __enter__(self) -> SearchProgress:
        self._display.begin(self._state())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._display.end(self._state(), failed=kind is not None)

    def _state(self) -> State:
        now = self._clock()
        rate = self._computed / max(now - self._scoring_begun, 1e-9)
        done = self._computed + self._restored
        left = max(self._cells - done, 0)
        seconds_left = 0.0 if not left else left / rate if rate else None
        return State(self._written, self._queries, done, self._cells, rate / 1e9, now - self._begun, seconds_left)
