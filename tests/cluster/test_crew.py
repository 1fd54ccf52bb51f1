"""A crew's thread and its users: nobody waits for ever, and closing ends everything."""

from __future__ import annotations

import gc
import os
import threading
import warnings

import pytest

from support import crew_tasks
from support.crews import ScriptedTransport
from swsearch.cluster import board
from swsearch.cluster.board import AT_A_WORKER
from swsearch.cluster.crew import AHEAD, Crew, InlineCrew
from swsearch.cluster.transport import (
    Task,
    TaskEnded,
    TransportGone,
    WorkerFound,
    WorkerInspected,
    WorkerPlace,
    WorkersPresent,
)
from swsearch.errors import (
    ClusterError,
    DatabaseError,
    EngineError,
    MemoryLimitError,
    OptionError,
    SwsearchWarning,
)

SOON = 20
"""Seconds within which things happen, on however slow a machine; reached only where a test fails."""


def task(name: str, payload: bytes = b"", near: str = "volume") -> Task:
    return Task(f"support.crew_tasks:{name}", payload, near, 1)


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("swsearch-")]


@pytest.fixture(scope="module")
def crew():
    with InlineCrew(2, notice=lambda text: None) as crew:
        yield crew
    assert not [name for name in threads() if "thread-" in name]


# Results and errors


def test_results_come_to_their_tasks(crew: Crew) -> None:
    futures = [crew.submit(task("double", b"%d" % number)) for number in range(40)]
    assert [future.result(SOON) for future in futures] == [b"%d" % number * 2 for number in range(40)]


def test_a_task_is_told_where_it_runs(crew: Crew) -> None:
    told = {crew.submit(task("where", near=near)).result(SOON) for near in "abcdef"}
    assert told <= {repr(place).encode() for place in crew.workers}
    assert [(place.index, place.on_host, place.host) for place in crew.workers] == [
        (0, 0, "localhost"), (1, 1, "localhost"),
    ]  # fmt: skip
    assert isinstance(crew.workers[0], WorkerPlace)
    assert crew.n_workers == 2
    assert crew.name == "this process"


def test_an_error_of_the_search_comes_back_as_it_was(crew: Crew) -> None:
    error = crew.submit(task("bad_option")).exception(SOON)
    assert type(error) is OptionError
    assert str(error) == "matrix: got 'none', expected a matrix"
    assert (error.name, error.value, error.exit_code) == ("matrix", "none", 1)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("broken_engine", EngineError, "the device has gone"),
        ("mistake", ClusterError, "ZeroDivisionError: a mistake of two lines"),
        ("no_memory", MemoryLimitError, "out of memory on the worker"),
        ("no_such_task", ClusterError, "AttributeError"),
    ],
)
def test_other_errors_are_tried_again_and_then_told(name: str, kind: type[Exception], text: str) -> None:
    with InlineCrew(1, notice=lambda text: None) as crew:
        error = crew.submit(task(name)).exception(SOON)
    assert isinstance(error, kind)
    assert "tried 3 times" in str(error)
    assert text in str(error)
    assert "\n" not in str(error)


# Room


def test_room_is_what_workers_can_have_under_way_and_waiting() -> None:
    transport = ScriptedTransport()
    with Crew(transport, notice=lambda text: None) as crew:
        assert crew.room == 0
        found = WorkerFound("a")
        transport.tell(WorkersPresent({"a": found}))
        transport.tell(WorkerInspected(found))
        crew.wait_for_workers()
        assert crew.room == AT_A_WORKER * AHEAD == 4
        futures = [crew.submit(task("double")) for _ in range(4)]
        assert crew.room == 0
        done = threading.Event()
        futures[0].add_done_callback(lambda future: done.set())
        assert transport.begun.acquire(timeout=SOON) and transport.begun.acquire(timeout=SOON)
        transport.tell(TaskEnded(0, b"x"))
        assert done.wait(SOON)
        assert crew.room == 1
    assert transport.is_closed
    assert [type(future.exception(0)) for future in futures[1:]] == [ClusterError] * 3
    assert set(transport.dropped) >= {1}


def test_more_tasks_than_there_is_room_for_are_taken(crew: Crew) -> None:
    futures = [crew.submit(task("double", b"x")) for _ in range(100)]
    assert {future.result(SOON) for future in futures} == {b"xx"}
    assert crew.room == crew.n_workers * AT_A_WORKER * AHEAD


# The end


def test_closing_stops_what_runs_and_ends_what_waits() -> None:
    crew_tasks.begun.clear()
    crew_tasks.stopped.clear()
    crew = InlineCrew(1)
    futures = [crew.submit(task("endless")) for _ in range(5)]
    assert crew_tasks.begun.wait(SOON)
    crew.close()
    assert crew_tasks.stopped.is_set()
    assert {str(future.exception(0)) for future in futures} == {"the worker pool is closed"}


def test_a_closed_crew_takes_nothing_and_closes_again() -> None:
    crew = InlineCrew(1)
    crew.close()
    crew.close()
    assert str(crew.submit(task("double")).exception(0)) == "the worker pool is closed"
    with pytest.raises(ClusterError, match="is closed"):
        crew.wait_for_workers()


def test_it_may_be_closed_by_what_a_result_sets_off() -> None:
    crew = InlineCrew(1)
    closed = threading.Event()

    def close(future) -> None:
        crew.close()
        closed.set()

    crew.submit(task("slow", b"1")).add_done_callback(close)
    assert closed.wait(SOON)
    crew.close()


def test_a_crew_that_nobody_holds_is_closed() -> None:
    transport = ScriptedTransport()
    crew = Crew(transport)
    future = crew.submit(task("double"))
    del crew
    gc.collect()
    assert transport.is_closed
    assert isinstance(future.exception(SOON), ClusterError)


def test_whoever_waits_hears_that_a_cluster_has_gone() -> None:
    transport = ScriptedTransport()
    with Crew(transport) as crew:
        future = crew.submit(task("double"))
        transport.tell(TransportGone(ClusterError("tcp://x:1: it has gone")))
        with pytest.raises(ClusterError, match="it has gone"):
            crew.wait_for_workers()
        assert str(future.exception(SOON)) == "tcp://x:1: it has gone"
        assert str(crew.submit(task("double")).exception(0)) == "tcp://x:1: it has gone"


def test_a_mistake_of_the_dispatcher_lets_nobody_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda told: None)
    transport = ScriptedTransport()
    monkeypatch.setattr(transport, "inspect", lambda worker: 1 // 0)
    with Crew(transport) as crew:
        future = crew.submit(task("double"))
        transport.tell(WorkersPresent({"a": WorkerFound("a")}))
        assert "the dispatcher of tasks failed: ZeroDivisionError" in str(future.exception(SOON))


def test_the_child_of_a_fork_leaves_the_crew_to_its_parent() -> None:
    with InlineCrew(1) as crew:
        child = os.fork()
        if child == 0:
            crew.close()  # would wait for threads that are not there
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert crew.submit(task("double", b"x")).result(SOON) == b"xx"


# What the user is told


def test_what_the_work_survives_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "SETTLED", 0)
    heard = threading.Event()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with InlineCrew(2) as crew:
            future = crew.submit(task("no_file", b"/data/v1.h5", "/data/v1.h5"))
            future.add_done_callback(lambda future: heard.set())
            assert isinstance(future.exception(SOON), DatabaseError)
    assert {each.category for each in said} == {SwsearchWarning}
    assert "worker thread-0: /data/v1.h5: no such database; check the name; trying other workers" in {
        str(each.message) for each in said
    }


def test_a_warning_that_is_an_error_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "SETTLED", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with InlineCrew(2) as crew:
            assert isinstance(crew.submit(task("no_file", b"v", "v")).exception(SOON), DatabaseError)
            assert crew.submit(task("double", b"x")).result(SOON) == b"xx"
