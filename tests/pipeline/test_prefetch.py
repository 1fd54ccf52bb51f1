"""Stages that run ahead: order, errors, an end at any moment, and what happens without threads."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import swsearch
from swsearch.db import Database
from swsearch.pipeline import prefetch as ahead
from swsearch.pipeline.prefetch import (
    InlineIterator,
    PrefetchIterator,
    SearchCancelled,
    check_cancelled,
    current_task,
)


def threads():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("swsearch-")}


@pytest.fixture(params=[True, False], ids=["threads", "none"])
def has_threads(request, monkeypatch):
    monkeypatch.setattr(ahead, "can_start_threads", lambda: request.param)
    return request.param


def test_items_come_in_order_and_are_made_ahead(has_threads):
    made, taken = [], threading.Event()

    def items():
        for k in range(5):
            made.append(k)
            yield k
        taken.set()

    with PrefetchIterator(items(), "test") as stage:
        first = next(stage)
        assert [first, *stage] == [0, 1, 2, 3, 4]
    assert made == [0, 1, 2, 3, 4]
    assert taken.is_set()
    assert not threads()


def test_an_error_comes_after_what_was_made_before_it(has_threads):
    def items():
        yield 1
        raise ValueError("broken")

    with PrefetchIterator(items(), "test") as stage:
        assert next(stage) == 1
        with pytest.raises(ValueError, match="broken"):
            next(stage)
        with pytest.raises(StopIteration):
            next(stage)
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


@pytest.mark.parametrize(
    "kind", [InlineIterator, lambda items: PrefetchIterator(items, "test")], ids=["in place", "ahead"]
)
def test_what_is_made_ends_when_another_thread_closes_it(kind, has_threads):
    """In Python code that looks whether it is wanted, and in the extension, which computes for many seconds here."""

    def looking(started):
        started.set()
        while True:
            check_cancelled()
        yield 1

    def computing(started):
        with Database.from_records([(f"s{k}", "MKTAYIAKQR" * 1_000) for k in range(1_000)]) as database:
            started.set()
            yield swsearch.score("MKTAYIAKQR" * 5_000, database, engine="cpu", threads=1)

    for items in (looking, computing):
        started, ended = threading.Event(), []
        stage = kind(items(started))

        def ask(stage=stage, ended=ended):
            try:
                next(stage)
            except BaseException as error:
                ended.append((type(error), current_task()))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        started.wait()
        stage.close()
        thread.join(60)
        assert ended == [(SearchCancelled, 0)]
        assert not check_cancelled()
