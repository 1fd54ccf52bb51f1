"""Stages that run ahead: order, errors, an end at any moment, and what happens without threads."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.db import Database
from swsearch.engines.cpu import extension
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.job import ahead
from swsearch.job.ahead import Ahead, Stopped, check_wanted
from swsearch.recurrence import Recurrence


def threads():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("swsearch-")}


@pytest.fixture(params=[True, False], ids=["threads", "none"])
def has_threads(request, monkeypatch):
    monkeypatch.setattr(ahead, "has_room_for_threads", lambda: request.param)
    return request.param


def test_items_come_in_order_and_are_made_ahead(has_threads):
    made, taken = [], threading.Event()

    def items():
        for k in range(5):
            made.append(k)
            yield k
        taken.set()

    with Ahead(items(), "test") as stage:
        first = next(stage)
        assert [first, *stage] == [0, 1, 2, 3, 4]
    assert made == [0, 1, 2, 3, 4]
    assert taken.is_set()
    assert not threads()


def test_no_more_are_made_than_there_is_room(monkeypatch):
    made = []
    limit = threading.Semaphore(0)

    def items():
        for k in range(10):
            made.append(k)
            limit.release()
            yield k

    with Ahead(items(), "test", room=2) as stage:
        for _ in range(3):
            limit.acquire()
        # the third was made and waits for room; a fourth cannot be begun
        assert made == [0, 1, 2]
        assert next(stage) == 0
        limit.acquire()
        assert made == [0, 1, 2, 3]


def test_an_error_comes_after_what_was_made_before_it(has_threads):
    def items():
        yield 1
        raise ValueError("broken")

    with Ahead(items(), "test") as stage:
        assert next(stage) == 1
        with pytest.raises(ValueError, match="broken"):
            next(stage)
        with pytest.raises(StopIteration):
            next(stage)
    assert not threads()


def test_closing_ends_a_stage_that_waits_and_closes_its_iterator(has_threads):
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    stage = Ahead(items(), "test")
    assert next(stage) == 1
    stage.close()
    stage.close()  # twice does no harm
    assert closed.is_set()
    assert not threads()


def test_closing_ends_steps_that_ask_whether_they_are_wanted():
    begun, ended = threading.Event(), []

    def items():
        begun.set()
        try:
            while True:
                check_wanted()
        except Stopped:
            ended.append(True)
            raise
        yield 1

    with Ahead(items(), "test"):
        assert begun.wait(30)
    assert ended == [True]
    assert not extension.load().is_stopped()


def test_closing_ends_a_long_call_of_the_extension():
    """A scan that would take long ends when nobody wants it, and says so to its caller."""
    letters = "".join(PROTEIN.letters[k % 20] for k in range(20_000))
    subjects = Database.from_records([letters] * 64)
    recurrence = Recurrence(swsearch.Scoring())
    begun, ended = threading.Event(), []

    def items(engine):
        group = engine.prepare([recurrence.scoring.rows(PROTEIN.encode(letters))], recurrence)
        loaded = engine.load(next(subjects.chunks(1 << 30)))
        begun.set()
        try:
            yield engine.score(group, loaded)
        except KeyboardInterrupt:
            ended.append(True)
            raise

    with CpuEngine(1) as engine, Ahead(items(engine), "test"):
        assert begun.wait(60)
    assert ended == [True]
    assert not threads()


def test_a_search_that_is_dropped_leaves_no_thread():
    database = Database.from_records([("a", "MKTAYIAKQR"), ("b", "MKTAYIAKQW")])
    results = swsearch.search([("q1", "MKTAYIAKQR"), ("q2", "MKTAYIAKQR")], database, engine="cpu", statistics="none")
    assert next(results).hits[0].subject_id == "a"
    del results
    assert not threads()


def test_the_interpreter_ends_while_a_search_waits():
    program = (
        "import swsearch\n"
        "r = swsearch.search([('q%d' % k, 'MKTAYIAKQR') for k in range(50)], [('a', 'MKTAYIAKQR')], engine='cpu',"
        " statistics='none')\n"
        "print(next(r).hits[0].score)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) > 0
