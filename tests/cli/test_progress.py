"""How far a search is, as people, logs and programs are told; the time is that of a clock in the test."""

import io
import json
import sys

import pytest

from support.command_line import fails, run
from swsearch.cli.progress import (
    BAR_AFTER_SECONDS,
    BarDisplay,
    Display,
    JsonDisplay,
    LineDisplay,
    ReadingProgress,
    SearchProgress,
    make_display,
)

SEQUENCE = "MKVLAAGIVGWWHHKDEFRTYPCNQS"


class Clock:
    """A clock that stands still."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal_at(monkeypatch):
    """Let stderr be a terminal; pytest takes it back between a fixture and a test."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


class Said:
    """Text written to stderr so far."""

    def __init__(self, capsys):
        self._capsys, self._text = capsys, ""

    def getvalue(self):
        self._text += self._capsys.readouterr().err
        return self._text


@pytest.fixture
def stderr(capsys):
    return Said(capsys)


def test_lines_say_all_that_a_log_needs(stderr, clock):
    with SearchProgress(LineDisplay(), 4 * 10**12, 1200, clock) as done:
        clock.now += 9.9
        done.advance(10**11)
        assert stderr.getvalue() == ""
        clock.now += 0.1
        done.advance(9 * 10**11)
        done.add_written(300)  # no second line yet
    assert stderr.getvalue() == (
        "swsearch: 0 of 1,200 queries, 1e+12 of 4e+12 cells (25.0 %), 100.00 GCUPS, 0:00:10 so far, 0:00:30 left\n"
    )


def test_the_last_line_but_one_does_not_say_that_all_is_done(stderr, clock):
    with SearchProgress(LineDisplay(), 100_000, 3, clock) as done:
        clock.now += 10
        done.advance(99_999)
    assert "(99.9 %)" in stderr.getvalue()


def test_lines_come_less_and_less_often(stderr, clock):
    with SearchProgress(LineDisplay(), 10**18, 5, clock) as done:
        for _ in range(12 * 3600):
            clock.now += 1
            done.advance(1)
    lines = stderr.getvalue().splitlines()
    times = [line.split(", ")[-2].split()[0] for line in lines]
    assert times[:11] == [
        "0:00:10", "0:00:20", "0:00:30", "0:00:40", "0:00:50", "0:01:00", "0:01:10", "0:01:20", "0:01:30", "0:01:40",
        "0:01:50",
    ]  # fmt: skip
    assert 100 < len(lines) < 200
    assert times[-1] > "11:54:00"


def test_objects_are_one_each_line(stderr, clock):
    with SearchProgress(JsonDisplay(), 4000, 3, clock) as done:
        done.advance(1000)
        clock.now += 1
        done.advance(1000)
        done.advance(1)
        clock.now += 1
        done.add_written(2)
        done.advance(1999)
        done.add_written(1)
    found = [json.loads(line) for line in stderr.getvalue().splitlines()]
    assert [each["event"] for each in found] == ["begin", "progress", "progress", "end"]
    assert found[0] == {
        "event": "begin", "queries_done": 0, "queries": 3, "cells_done": 0, "cells": 4000, "gcups": 0.0,
        "seconds": 0.0, "seconds_left": None,
    }  # fmt: skip
    assert found[1] == found[0] | {
        "event": "progress", "cells_done": 2000, "seconds": 1.0, "seconds_left": 1.0
    }  # fmt: skip
    assert [each["queries_done"] for each in found] == [0, 0, 2, 3]
    assert (found[-1]["cells_done"], found[-1]["seconds"], found[-1]["seconds_left"]) == (4000, 2.0, 0.0)


def test_the_last_object_says_that_a_search_failed(stderr, clock):
    with pytest.raises(KeyboardInterrupt), SearchProgress(JsonDisplay(), 10, 1, clock) as done:
        done.advance(4)
        raise KeyboardInterrupt
    assert json.loads(stderr.getvalue().splitlines()[-1])["event"] == "failed"


def test_what_a_checkpoint_had_is_done_and_no_speed(stderr, clock):
    with SearchProgress(JsonDisplay(), 4000, 4, clock) as done:
        clock.now += 8
        done.restore(2000)
        clock.now += 2
        done.advance(1000)
        assert done.skipped_cells == 2000
    found = json.loads(stderr.getvalue().splitlines()[-2])
    assert (found["cells_done"], found["seconds"], found["seconds_left"]) == (3000, 10.0, 2.0)


def test_what_is_read_is_told_in_bytes(stderr, clock):
    for display in (LineDisplay(), JsonDisplay()):
        with ReadingProgress(display, "building", clock=clock) as done:
            clock.now += 10
            done.move_to(25_000_000, 100_000_000)
    first, second = stderr.getvalue().split("\n", 1)
    assert first == "swsearch: building: 25.0 of 100.0 MB read (25.0 %), 0:00:10 so far, 0:00:30 left"
    begin, read, end = map(json.loads, second.splitlines())
    assert begin == {"event": "begin", "bytes_read": 0, "bytes": None, "seconds": 0.0, "seconds_left": None}
    assert read == {
        "event": "progress", "bytes_read": 25_000_000, "bytes": 100_000_000, "seconds": 10.0, "seconds_left": 30.0
    }  # fmt: skip
    assert end == read | {"event": "end"}


@pytest.mark.parametrize(
    ("kind", "is_terminal", "quiet", "expected"),
    [
        ("auto", True, False, BarDisplay),
        ("auto", False, False, LineDisplay),
        ("auto", True, True, Display),
        ("auto", False, True, Display),
        ("bar", False, False, BarDisplay),
        ("lines", True, False, LineDisplay),
        ("lines", True, True, LineDisplay),
        ("json", False, True, JsonDisplay),
        ("none", True, False, Display),
    ],
)
def test_what_is_shown_where(monkeypatch, kind, is_terminal, quiet, expected):
    monkeypatch.setattr(sys, "stderr", Terminal() if is_terminal else io.StringIO())
    assert type(make_display(kind, quiet)) is expected


def test_a_bar_appears_for_long_work_and_counts_queries(monkeypatch, clock):
    terminal = terminal_at(monkeypatch)
    with SearchProgress(make_display("auto"), 4000, 1234, clock) as done:
        clock.now += 0.9 * BAR_AFTER_SECONDS
        done.advance(1000)
        assert terminal.getvalue() == ""
        clock.now += 0.1 * BAR_AFTER_SECONDS
        done.advance(1000)
        done.add_written(17)
    assert "searching" in terminal.getvalue()
    last = terminal.getvalue().split("searching")[-1]
    assert "50%" in last
    assert "17/1,234 queries" in last
    assert "0:00:02 left" in last


def test_of_a_pipe_nobody_knows_how_much_there_is(stderr, clock):
    with ReadingProgress(LineDisplay(), "appending", clock=clock) as done:
        clock.now += 10
        done.move_to(1_234_500_000, None)
    assert stderr.getvalue() == "swsearch: appending: 1,234.5 MB read, 0:00:10 so far\n"


@pytest.fixture
def few(tmp_path):
    path = tmp_path / "few.fasta"
    path.write_text(f">one\n{SEQUENCE}\n>two\n{SEQUENCE[5:]}\n")
    return path


def test_objects_of_the_command_line(few):
    done = run("search", few, few, "-q", "--engine", "cpu", "--progress", "json")
    assert (done.returncode, done.stdout.count("\n")) == (0, 4)
    begin, end = map(json.loads, done.stderr.splitlines())
    cells = (2 * len(SEQUENCE) - 5) ** 2
    assert (begin["event"], begin["queries"], begin["cells"]) == ("begin", 2, cells)
    assert (end["event"], end["queries_done"], end["cells_done"]) == ("end", 2, cells)


@pytest.mark.parametrize(("kind", "how"), [("json", {"full": [2]}), ("bar", {"closed": [2]})])
def test_a_stderr_that_nobody_can_write_to_ends_no_search(few, kind, how):
    done = run("search", few, few, "--engine", "cpu", "--progress", kind, **how)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 4


def test_a_checkpoint_of_the_command_line(tmp_path, few):
    words = ["search", few, few, "--engine", "cpu", "--checkpoint", tmp_path / "kept"]
    first, again = run(*words, "-q"), run(*words)
    assert first.returncode == again.returncode == 0
    assert (first.stdout, first.stderr) == (again.stdout, "")
    assert first.stdout.count("\n") == 4
    assert "kept: 2 of 2 queries are done and not searched again" in again.stderr
    fails(run(*words, "--max-hits", "1"), 1, "kept belongs to another search: max_hits was 500, is 1; use its inputs")


def test_a_build_tells_of_it_too(tmp_path, few):
    done = run("db", "build", few, "-o", tmp_path / "few.h5", "-q", "--progress", "json")
    assert done.returncode == 0
    found = [json.loads(line) for line in done.stderr.splitlines()]
    assert [each["event"] for each in found] == ["begin", "end"]
    assert found[-1]["bytes_read"] == found[-1]["bytes"] == few.stat().st_size
