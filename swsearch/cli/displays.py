"""What shows how far some work is: a bar for people, lines for logs, JSON for programs; all on stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import Any, Literal, Protocol

from swsearch.cli.console import PROGRESS_AFTER, say
from swsearch.options.words import ProgressKind

FIRST_LINE = 10.0
"""Seconds before the first line, and from one to the next at first."""

SHARE_OF_TIME, MOST_BETWEEN = 0.1, 300.0
"""Lines are as far apart as this share of the time so far, and at most so many seconds: some 180 in twelve hours."""

JSON_EVERY = 1.0
"""Seconds between two objects, at least."""

Event = Literal["begin", "progress", "end", "failed"]
"""What an object of JSON tells of."""


class State(Protocol):
    """How far some work is."""

    @property
    def label(self) -> str:
        """What is going on."""

    @property
    def seconds(self) -> float:
        """Since it began."""

    @property
    def seconds_left(self) -> float | None:
        """Till its end at this speed; None while that is no taxids."""

    @property
    def completed(self) -> int:
        """What is done, in any unit."""

    @property
    def total(self) -> int | None:
        """What is to be done, in the same unit; None if that is no taxids."""

    @property
    def counted(self) -> str:
        """What else a bar counts."""

    def parts(self) -> list[str]:
        """Return what a line for people says before it comes to the time."""

    def numbers(self) -> dict[str, float | None]:
        """Return what an object of JSON says beside the time."""


def line_of(state: State) -> str:
    """Return how far some work is as a line for people."""
    times = [f"{clock_time(state.seconds)} so far", *([left_of(state)] if left_of(state) else [])]
    return ", ".join([*state.parts(), *times])


def object_of(state: State, event: Event) -> str:
    """Return how far some work is as an object of JSON in one line."""
    left = None if state.seconds_left is None else round(state.seconds_left, 3)
    return json.dumps({"event": event, **state.numbers(), "seconds": round(state.seconds, 3), "seconds_left": left})


def left_of(state: State) -> str:
    """Return the time that is left, in words."""
    return "" if state.seconds_left is None else f"{clock_time(state.seconds_left)} left"


def share_of(done: int, total: int) -> str:
    """Return a share; it is never all before all is done."""
    return f"{math.floor(1000 * done / total) / 10 if total else 100.0:.1f} %"


def clock_time(seconds: float) -> str:
    """Return a time as hours, minutes and seconds, such as ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Display:
    """Shows how far some work is; this one shows nothing."""

    def begin(self, state: State) -> None:
        """Take note that the work begins."""

    def show(self, state: State) -> None:
        """Take note that something was done."""

    def end(self, state: State, failed: bool) -> None:
        """Take note that the work ended."""


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
        shown = {"counted": state.counted, "left": left_of(state)}
        self._bar.update(self._task, completed=state.completed, total=state.total or None, **shown)

    def _start(self, state: State) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        texts = [TextColumn("{task.fields[counted]}"), TextColumn("{task.fields[left]}")]
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), *texts)
        console = Console(stderr=True, force_terminal=True if self._forced else None)
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(state.label, total=state.total or None, counted="", left="")
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
            say(f"swsearch: {line_of(state)}")
            self._next = state.seconds + min(max(SHARE_OF_TIME * state.seconds, FIRST_LINE), MOST_BETWEEN)


class Objects(Display):
    """An object of JSON in a line of its own: at the beginning, at the end, and every second between."""

    def __init__(self) -> None:
        self._next = JSON_EVERY

    def begin(self, state: State) -> None:
        """Print the first."""
        say(object_of(state, "begin"))

    def show(self, state: State) -> None:
        """Print one if it is time."""
        if state.seconds >= self._next:
            say(object_of(state, "progress"))
            self._next = state.seconds + JSON_EVERY

    def end(self, state: State, failed: bool) -> None:
        """Print the last."""
        say(object_of(state, "failed" if failed else "end"))


def display_of(kind: ProgressKind, quiet: bool = False) -> Display:
    """Return what shows how far some work is.

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
