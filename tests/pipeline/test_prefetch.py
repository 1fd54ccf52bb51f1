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
from swsearch.pipeline import prefetch as ahead
from swsearch.pipeline.prefetch import Ahead, InPlace, Stopped, check_wanted, for_each, work_of_thread
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


def test_items_in_place_are_made_by_who_asks():
    made = []

    def items():
        for k in range(3):
            made.append(threading.get_ident())
            assert work_of_thread() > 0
            yield k

    stage = InPlace(items())
    assert next(stage) == 0
    assert len(made) == 1
    assert list(stage) == [1, 2]
    assert set(made) == {threading.get_ident()}
    assert work_of_thread() == 0
    stage.close()
    with pytest.raises(Stopped):
        next(stage)


def test_in_place_inside_other_work_leaves_that_its_number():
    def items():
        yield work_of_thread()

    def outer():
        before = work_of_thread()
        assert next(InPlace(items())) not in (0, before)
        yield before == work_of_thread() > 0

    with Ahead(outer(), "test") as stage:
        assert list(stage) == [True]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_place_comes_as_it_is(error):
    def items():
        yield 1
        raise error("broken")

    stage = InPlace(items())
    assert next(stage) == 1
    with pytest.raises(error, match="broken"):
        next(stage)
    assert work_of_thread() == 0


@pytest.mark.parametrize("kind", [InPlace, lambda items: Ahead(items, "test")], ids=["in place", "ahead"])
def test_what_is_made_ends_when_another_thread_closes_it(kind, has_threads):
    """In Python code that looks whether it is wanted, and in the extension, which computes for many seconds here."""

    def looking(begun):
        begun.set()
        while True:
            check_wanted()
        yield 1

    def computing(begun):
        with Database.from_records([(f"s{k}", "MKTAYIAKQR" * 1_000) for k in range(1_000)]) as database:
            begun.set()
            yield swsearch.score("MKTAYIAKQR" * 5_000, database, engine="cpu", threads=1)

    for items in (looking, computing):
        begun, ended = threading.Event(), []
        stage = kind(items(begun))

        def ask(stage=stage, ended=ended):
            try:
                next(stage)
            except BaseException as error:
                ended.append((type(error), work_of_thread()))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        begun.wait()
        stage.close()
        thread.join(60)
        assert ended == [(Stopped, 0)]
        assert not check_wanted()


@pytest.mark.parametrize(("n_items", "n_started"), [(0, 0), (1, 0), (3, 2), (9, 4)])
def test_each_starts_no_more_threads_than_it_has_items_for(monkeypatch, n_items, n_started):
    """Searches come here with one query or none: threads that find nothing to do took longer than their hits."""
    started, done = [], []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: (started.append(self.name), start(self))[1])
    for_each(done.append, range(n_items), 5)
    assert sorted(done) == list(range(n_items))
    assert len(started) == n_started
