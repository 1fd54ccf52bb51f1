"""Which display is taken where, and bars; what is told in words is in test_progress.py."""

import io
import sys

import pytest

from swsearch.cli import displays
from swsearch.cli.displays import Bar, Display, Lines, Objects, clock_time, display_of
from swsearch.cli.progress import ReadingProgress, SearchProgress


class Clock:
    """A clock that stands still."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize(
    ("kind", "terminal", "quiet", "expected"),
    [
        ("auto", True, False, Bar),
        ("auto", False, False, Lines),
        ("auto", True, True, Display),
        ("auto", False, True, Display),
        ("bar", False, False, Bar),
        ("lines", True, False, Lines),
        ("lines", True, True, Lines),
        ("json", False, True, Objects),
        ("none", True, False, Display),
    ],
)
def test_what_is_shown_where(monkeypatch, kind, terminal, quiet, expected):
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    assert type(display_of(kind, quiet)) is expected


def test_a_closed_stderr_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert type(display_of("json")) is Display
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    with SearchProgress(display_of("auto"), 10, 1, Clock()) as done:
        done._clock.now += 60
        done.advance(5)
    with SearchProgress(display_of("json"), 10, 1, Clock()) as done:
        done.advance(5)


def test_a_bar_appears_for_long_work_and_counts_queries(monkeypatch, clock):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    display = display_of("auto")
    with SearchProgress(display, 4000, 1234, clock) as done:
        done.advance(1000)
        assert display._bar is None
        clock.now += displays.PROGRESS_AFTER
        done.advance(1000)
        done.written(17)
        task = display._bar.tasks[0]
        assert (task.completed, task.total) == (2000, 4000)
        assert task.fields == {"counted": "17/1,234 queries", "left": "0:00:02 left"}
    assert display._bar.live.is_started is False


def test_a_bar_can_be_forced(capsys, clock):
    with SearchProgress(display_of("bar"), 4000, 5, clock) as done:
        clock.now += 60
        done.advance(1000)
    assert "0/5 queries" in capsys.readouterr().err


def test_times_are_those_of_a_clock():
    times = [clock_time(seconds) for seconds in (0, 59.4, 59.6, 3600, 36_000 + 61)]
    assert times == ["0:00:00", "0:00:59", "0:01:00", "1:00:00", "10:01:01"]


def test_a_bar_may_learn_late_how_much_there_is(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Terminal())
    display = display_of("auto")
    with ReadingProgress(display, "building", clock) as done:
        clock.now += displays.PROGRESS_AFTER
        done.move_to(10)
        assert (display._bar.tasks[0].completed, display._bar.tasks[0].total) == (10, None)
        done.move_to(20, 80)
        assert (display._bar.tasks[0].completed, display._bar.tasks[0].total) == (20, 80)
        assert display._bar.tasks[0].description == "building"
