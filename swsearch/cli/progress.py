"""Progress on stderr, as a bar, lines of text or JSON.

Each report of finished work decides by the clock whether to print. There is no thread.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from swsearch.cli.console import print_message
from swsearch.options.kinds import ProgressKind

BAR_AFTER_SECONDS = 2.0
"""Seconds of work before a bar appears."""

FIRST_LINE_SECONDS = 10.0
"""Seconds before the first line, and from one to the next at first."""

SHARE_OF_TIME, MAX_BETWEEN_SECONDS = 0.1, 300.0
"""Lines are as far apart as this share of the time so far, and at most so many seconds: some 180 in twelve hours."""

JSON_INTERVAL_SECONDS = 1.0
"""Seconds between two objects, at least."""

ProgressEvent = Literal["begin", "progress", "end", "failed"]
"""Events of a display."""


class WorkProgress:
    """Counts finished work and shows it; threads may share it. A context manager.

    ``total`` is the amount of work in any unit, None if unknown; ``completed`` is in the same unit. ``seconds`` is
    the time from the start to the last report. ``counted`` is more text for a bar.
    """

    counted = ""

    def __init__(
        self, display: Display, label: str, total: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.label, self.total, self.completed, self.seconds = label, total, 0, 0.0
        self._display, self._clock = display, clock
        self._lock = threading.RLock()  # an interrupted call may be followed by another in the same thread
        self._begun = clock()

    @property
    def seconds_left(self) -> float | None:
        """Time till the end at this speed; None while that is not known."""
        if self.total is None or not self.completed:
            return None
        return max(self.total - self.completed, 0) * self.seconds / self.completed

    @property
    def time_left(self) -> str:
        """The same in words; empty while it is not known."""
        return "" if self.seconds_left is None else f"{clock_time(self.seconds_left)} left"

    def parts(self) -> list[str]:
        """Return the parts of a line of text before the time."""
        return [self.label]

    def values(self) -> dict[str, float | None]:
        """Return the values of a JSON object besides the time."""
        return {"done": self.completed, "total": self.total}

    def advance(self, amount: int) -> None:
        """Add an amount of finished work."""
        with self._lock:
            self.completed += amount
            self._show("progress")

    def _show(self, event: ProgressEvent) -> None:
        self.seconds = self._clock() - self._begun
        self._display.show(self, event)

    def __enter__(self) -> Self:
        self._show("begin")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            self._show("failed" if kind else "end")


class ReadingProgress(WorkProgress):
    """Counts the bytes that were read of a database's input."""

    def move_to(self, completed: int, total: int | None) -> None:
        """Set the finished bytes and the total."""
        with self._lock:
            self.completed, self.total = completed, total
            self._show("progress")

    def parts(self) -> list[str]:
        """Return the bytes read and their share."""
        read = f"{self.completed / 1e6:,.1f}"
        if self.total is None:
            return [f"{self.label}: {read} MB read"]
        share = _share(self.completed, self.total)
        return [f"{self.label}: {read} of {self.total / 1e6:,.1f} MB read ({share})"]

    def values(self) -> dict[str, float | None]:
        """Return the bytes read and the total."""
        return {"bytes_read": self.completed, "bytes": self.total}


class SearchProgress(WorkProgress):
    """Counts the cells and the queries of a search; ``spared_cells`` were in a checkpoint or not needed."""

    total: int

    def __init__(
        self, display: Display, cells: int, queries: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(display, "searching", cells, clock)
        self.skipped_cells = self._computed = self._written = 0
        self._queries, self._scoring_begun = queries, self._begun

    def advance(self, cells: int) -> None:
        """Add computed cells."""
        with self._lock:
            self._computed += cells
            super().advance(cells)

    def restore(self, cells: int) -> None:
        """Add cells of a checkpoint, which do not count for the speed."""
        with self._lock:
            self.completed += cells
            self.skipped_cells += cells
            if not self._computed:
                self._scoring_begun = self._clock()
            self._show("progress")

    def skip(self, cells: int) -> None:
        """Subtract cells that are not needed, since queries converged."""
        with self._lock:
            self.total -= cells
            self.skipped_cells += cells
            self._show("progress")

    def add_written(self, queries: int) -> None:
        """Add queries whose results were written."""
        with self._lock:
            self._written += queries
            self._show("progress")

    @property
    def counted(self) -> str:  # type: ignore[override]
        """The queries."""
        return f"{self._written:,}/{self._queries:,} queries"

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining seconds; None before the first cells."""
        left = max(self.total - self.completed, 0)
        return 0.0 if not left else left / self._rate if self._computed else None

    @property
    def _rate(self) -> float:
        """Cells that were computed each second."""
        return self._computed / max(self._begun + self.seconds - self._scoring_begun, 1e-9)

    def parts(self) -> list[str]:
        """Return queries, cells and speed."""
        return [
            f"{self._written:,} of {self._queries:,} queries",
            f"{self.completed:.3g} of {self.total:.3g} cells ({_share(self.completed, self.total)})",
            f"{self._rate / 1e9:.2f} GCUPS",
        ]

    def values(self) -> dict[str, float | None]:
        """Return queries, cells and speed."""
        done = {"queries_done": self._written, "queries": self._queries}
        return {**done, "cells_done": self.completed, "cells": self.total, "gcups": round(self._rate / 1e9, 3)}


class Display:
    """Shows how far some work is; this one shows nothing."""

    def show(self, done: WorkProgress, event: ProgressEvent) -> None:
        """Show an event."""


class BarDisplay(Display):
    """A bar, which appears if the work takes long; ``forced`` draws it without a terminal, too."""

    def __init__(self, forced: bool = False) -> None:
        self._forced = forced
        self._bar: Any = None
        self._task: Any = None

    def show(self, done: WorkProgress, event: ProgressEvent) -> None:
        """Draw the bar, and remove it at the end."""
        if event in ("end", "failed"):
            if self._bar is not None:
                self._bar.stop()
        elif self._bar is not None or done.seconds >= BAR_AFTER_SECONDS:
            state = {"total": done.total or None, "counted": done.counted, "left": done.time_left}
            if self._bar is None:
                self._start(done.label, state)
            self._bar.update(self._task, completed=done.completed, **state)

    def _start(self, label: str, state: Mapping[str, Any]) -> None:
        from rich import progress as bars
        from rich.console import Console

        texts = [bars.TextColumn("{task.fields[counted]}"), bars.TextColumn("{task.fields[left]}")]
        columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TaskProgressColumn(), *texts)
        console = Console(stderr=True, force_terminal=True if self._forced else None)
        self._bar = bars.Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(label, **state)
        self._bar.start()


class LineDisplay(Display):
    """A line from time to time, for what is read later or elsewhere."""

    def __init__(self) -> None:
        self._next = FIRST_LINE_SECONDS

    def show(self, done: WorkProgress, event: ProgressEvent) -> None:
        """Print a line if it is time."""
        if event == "progress" and done.seconds >= self._next:
            times = [f"{clock_time(done.seconds)} so far", *filter(None, [done.time_left])]
            print_message(f"{', '.join([*done.parts(), *times])}")
            self._next = done.seconds + min(
                max(SHARE_OF_TIME * done.seconds, FIRST_LINE_SECONDS), MAX_BETWEEN_SECONDS
            )


class JsonDisplay(Display):
    """An object of JSON in a line of its own: at the beginning, at the end, and every second between."""

    def __init__(self) -> None:
        self._next = JSON_INTERVAL_SECONDS

    def show(self, done: WorkProgress, event: ProgressEvent) -> None:
        """Print one if it is time."""
        if event != "progress" or done.seconds >= self._next:
            left = None if done.seconds_left is None else round(done.seconds_left, 3)
            times = {"seconds": round(done.seconds, 3), "seconds_left": left}
            print_message(json.dumps({"event": event, **done.values(), **times}), prefix="")
            self._next = done.seconds + JSON_INTERVAL_SECONDS


def make_display(kind: ProgressKind, quiet: bool = False) -> Display:
    """Return the display of a kind; ``auto`` is a bar on a terminal, lines elsewhere, and nothing if quiet."""
    if sys.stderr is None or kind == "none" or (kind == "auto" and quiet):
        return Display()
    if kind == "json":
        return JsonDisplay()
    if kind == "bar" or (kind == "auto" and is_terminal()):
        return BarDisplay(forced=kind == "bar")
    return LineDisplay()


def is_terminal() -> bool:
    """Return whether messages go to a terminal."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # somebody closed or replaced it
        return False


def clock_time(seconds: float) -> str:
    """Return a time as hours, minutes and seconds, such as ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _share(done: int, total: int) -> str:
    """Return a share; it is never all before all is done."""
    return f"{math.floor(1000 * done / total) / 10 if total else 100.0:.1f} %"
