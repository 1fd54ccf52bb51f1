"""Who does what, and what follows when something fails: each fault as a script, with a clock that the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.crews import Stage
from support.samples import random_cases
from swsearch.cluster.board import AT_A_WORKER, FAILURES, PATIENCE, PAUSED_SECONDS, SETTLED, SILENT, TRIES
from swsearch.cluster.pace import FIRST_LIMIT, GENEROSITY, LEAST_LIMIT
from swsearch.cluster.transport import WorkerFound, WorkerInspected
from swsearch.errors import (
    ClusterError,
    DatabaseError,
    EngineError,
    InputError,
    MemoryLimitError,
    OptionError,
    OutputError,
)


def sentence(future, kind=ClusterError) -> str:
    error = future.exception(0)
    assert type(error) is kind, error
    text = str(error)
    assert "\n" not in text
    return text


# Placement


def test_two_tasks_of_a_worker_are_under_way_and_the_rest_waits() -> None:
    stage = Stage("a", "b")
    stage.submit(count=10)
    assert len(stage.at("a")) == len(stage.at("b")) == AT_A_WORKER == 2
    stage.end(stage.at("a")[0])
    assert len(stage.at("a")) == 2
    stage.work_off()
    assert [future.result(0) for future in stage.futures] == [b"done"] * 10


def test_a_result_belongs_to_its_task() -> None:
    stage = Stage("a", "b")
    stage.submit(count=4)
    for number, (_, task, _) in sorted(stage.transport.running.items(), reverse=True):
        stage.end(number, b"of " + task.payload)
    assert [future.result(0) for future in stage.futures] == [b"of 0", b"of 1", b"of 2", b"of 3"]


def test_tasks_go_to_the_worker_that_holds_what_they_need() -> None:
    stage = Stage("a", "b")
    for _ in range(3):
        for near in ("x", "y"):
            stage.submit((near, 0, 1))
    while stage.transport.running:
        assert len(set(stage.near_at("a"))) <= 1
        assert not set(stage.near_at("a")) & set(stage.near_at("b"))
        stage.end(next(iter(stage.transport.running)))


def test_pairs_of_a_volume_go_where_a_share_of_it_is() -> None:
    stage = Stage("a", "b")
    stage.submit(("x", 0, 2))
    stage.submit(("y", 0, 2))
    holder = "a" if stage.near_at("a") == [("x", 0, 2)] else "b"
    stage.submit(("x",))
    assert stage.near_at(holder) == [("x", 0, 2), ("x",)]


def test_who_has_nothing_to_do_takes_what_is_near_to_others() -> None:
    stage = Stage("a", "b")
    stage.submit("x", count=4)
    assert len(stage.at("a")) == len(stage.at("b")) == 2
    assert stage.transport.running.keys() == {0, 1, 2, 3}


def test_pairs_come_before_scores_that_wait() -> None:
    stage = Stage("a")
    stage.submit(("x", 0, 2), count=6)
    stage.submit(("x",), is_urgent=True)
    stage.end(stage.at("a")[0])
    assert stage.near_at("a") == [("x", 0, 2), ("x",)]
    stage.work_off()
    assert stage.futures[-1].result(0) == b"done"


def test_pairs_of_a_file_are_divided_among_those_that_read_it() -> None:
    stage = Stage("a", "b")
    for place in (0, 1):
        stage.submit(("x", place, 2), count=4)
    stage.submit(("x",), is_urgent=True, count=2)
    for name in ("a", "b"):
        stage.end(stage.at(name)[0])
        assert stage.near_at(name)[1] == ("x",)


def test_pairs_of_a_file_wait_for_those_that_read_it() -> None:
    """A worker that has something to do is not sent to another's file, urgent or not."""
    stage = Stage("a", "b")
    for near in ("x", "y") * 4:
        stage.submit((near, 0, 1))
    holder, other = ("a", "b") if stage.near_at("a")[0][0] == "x" else ("b", "a")
    stage.submit(("x",), is_urgent=True)
    stage.end(stage.at(other)[0])
    assert stage.near_at(other) == [("y", 0, 1)] * 2
    stage.end(stage.at(holder)[0])
    assert stage.near_at(holder) == [("x", 0, 1), ("x",)]


def test_who_comes_late_gets_work_at_once() -> None:
    stage = Stage("a")
    stage.submit("x", count=6)
    stage.look(30)
    stage.come("late")
    assert len(stage.at("late")) == 2


def test_ranks_on_a_host_are_those_that_are_free() -> None:
    stage = Stage("a", "b")
    stage.come("c", host="other")
    assert [(place.index, place.on_host, place.host) for place in stage.board.places] == [
        (0, 0, "h"), (1, 1, "h"), (2, 0, "other"),
    ]  # fmt: skip
    stage.leave("a")
    stage.come("d")
    assert [(place.index, place.on_host) for place in stage.board.places] == [(1, 1), (2, 0), (3, 0)]


def test_a_cancelled_task_is_not_begun() -> None:
    stage = Stage("a")
    stage.submit(count=3)
    assert stage.futures[2].cancel()
    stage.work_off()
    assert [task.payload for _, task, _ in stage.transport.running.values()] == []
    assert stage.futures[1].done()


@random_cases(60)
@given(st.data())
def test_whatever_happens_each_task_ends_once_and_bounds_hold(data) -> None:
    """Workers come and go, tasks end, fail and vanish in any order."""
    stage = Stage("w0")
    names = 1
    n_tasks = data.draw(st.integers(1, 12), "tasks")
    for _ in range(n_tasks):
        near = data.draw(st.sampled_from(["x", "y", ("z", 0), ("z", 1)]))
        stage.submit(near, is_urgent=data.draw(st.booleans()))
    for _ in range(data.draw(st.integers(0, 25), "steps")):
        running = sorted(stage.transport.running)
        does = data.draw(st.sampled_from(["come", "leave", "end", "fail", "vanish", "wait", "late"]))
        if does == "come" and len(stage.there) < 4:
            stage.come(f"w{names}", is_restartable=data.draw(st.booleans()))
            names += 1
        elif does == "leave" and len(stage.there) > 1:
            stage.leave(data.draw(st.sampled_from(sorted(stage.there))))
        elif does == "wait":
            stage.look(data.draw(st.sampled_from([1, 50])))
        elif does == "late" and stage.transport.dropped:
            stage.end(data.draw(st.sampled_from(stage.transport.dropped)), b"late")
        elif running and does in ("end", "fail", "vanish"):
            number = data.draw(st.sampled_from(running))
            if does == "fail":
                stage.fail(number, EngineError("no luck"))
            elif does == "vanish":
                stage.vanish(number)
            else:
                stage.end(number)
        for name in stage.there:
            assert len(stage.at(name)) <= AT_A_WORKER
        for address, _, _ in stage.transport.running.values():
            assert address in stage.there
    stage.come("last")
    stage.work_off()
    stage.look(PATIENCE + 10)
    for future in stage.futures:
        assert future.done()
        assert future.exception(0) is not None or future.result(0) == b"done"


# Workers that are lost


def test_what_a_lost_worker_did_is_done_again() -> None:
    stage = Stage("a", "b")
    stage.submit(count=4)
    stage.leave("a")
    assert not stage.at("a")
    assert stage.notices == ["worker a was lost; repeating its tasks"]
    stage.work_off()
    assert [future.result(0) for future in stage.futures] == [b"done"] * 4


def test_what_comes_from_a_lost_worker_after_all_is_ignored() -> None:
    stage = Stage("a", "b")
    future = stage.submit()
    (number,) = stage.at("a")
    stage.leave("a")
    stage.end(number, b"too late")
    assert not future.done()
    stage.work_off()
    assert future.result(0) == b"done"


def test_a_worker_started_anew_under_the_same_address_is_another_one() -> None:
    stage = Stage()
    stage.come("a", incarnation="1")
    future = stage.submit()
    assert stage.at("a") == [0]
    stage.come("a", incarnation="2")
    assert stage.transport.dropped == [0]
    assert stage.at("a") == [1]
    stage.end(1)
    assert future.result(0) == b"done"


def test_a_worker_lost_before_it_said_what_it_is_counts_as_lost() -> None:
    stage = Stage("a")
    stage.come("b", fit=False)
    lost = stage.there["b"]
    stage.leave("b")
    assert stage.notices == ["worker b was lost while it started"]
    stage.board.take(WorkerInspected(lost, "it gave no answer"))
    assert len(stage.notices) == 1
    assert stage.board.is_settled


def test_the_only_worker_is_waited_for_and_the_user_is_told() -> None:
    stage = Stage("a")
    future = stage.submit()
    stage.leave("a")
    stage.look(PATIENCE - 5)
    assert "waiting up to 120 s" in stage.notices[-1]
    stage.come("b")
    stage.work_off()
    assert future.result(0) == b"done"


def test_a_worker_is_not_waited_for_without_end() -> None:
    stage = Stage("a")
    future = stage.submit()
    stage.leave("a")
    stage.look(PATIENCE + 1)
    assert sentence(future) == (
        "the stage: waited 120 s for a worker, found none; start workers, and run the search again"
    )
    assert sentence(stage.submit()) == sentence(future)


def test_where_no_worker_ever_comes_the_wait_is_bounded_too() -> None:
    stage = Stage(patience=7)
    future = stage.submit()
    stage.look(6)
    assert not future.done()
    stage.look(2)
    assert "waited 7 s" in sentence(future)
    assert future.exception(0).exit_code == 3


def test_a_task_that_kills_workers_is_given_up_and_memory_is_named() -> None:
    stage = Stage(*"abcd")
    future = stage.submit()
    for tried in range(TRIES):
        ((address, _, _),) = stage.transport.running.values()
        stage.leave(address)
        assert future.done() == (tried == TRIES - 1)
    text = sentence(future)
    assert text.count("was lost (2.0 GiB of memory)") == TRIES
    assert "give them more" in text


def test_a_task_that_kills_workers_takes_no_other_with_it() -> None:
    """Whatever the order, the task that waits behind a deadly one is not blamed for it."""
    stage = Stage("w0")
    deadly = stage.submit("x")
    others = [stage.submit("x") for _ in range(8)]
    for turn in range(40):
        running = list(stage.transport.running.items())
        if not running:
            break
        killed = [address for _, (address, task, _) in running if task.payload == b"0"]
        if killed:
            stage.come(f"w{turn + 1}")
            stage.leave(killed[0])
        else:
            stage.end(running[0][0])
    assert "tried 3 times" in sentence(deadly)
    assert [other.result(0) for other in others] == [b"done"] * 8


def test_a_lost_task_runs_alone_so_that_no_other_is_blamed() -> None:
    stage = Stage("a")
    stage.submit(count=4)
    stage.leave("a")
    stage.come("b")
    assert len(stage.at("b")) == 1
    stage.end(stage.at("b")[0])
    assert len(stage.at("b")) == 1
    stage.end(stage.at("b")[0])
    assert len(stage.at("b")) == 2


def test_a_task_that_dask_gives_up_is_tried_elsewhere_and_not_for_ever() -> None:
    stage = Stage("a", "b")
    future = stage.submit()
    assert stage.at("a") == [0]
    stage.vanish(0)
    assert stage.at("b") == [1]
    stage.vanish(1)
    stage.vanish(2)
    assert sentence(future).startswith("a task was tried 3 times: KilledWorker (2.0 GiB of memory); KilledWorker")


def test_a_connection_that_is_lost_for_a_while_is_no_try() -> None:
    stage = Stage("a")
    future = stage.submit()
    for number in range(5 * TRIES):
        stage.vanish(number, counts=False)
    assert not future.done()
    stage.work_off()
    assert future.result(0) == b"done"


def test_a_worker_that_does_not_say_what_it_is_is_not_waited_for_long() -> None:
    stage = Stage("a")
    assert stage.board.is_settled
    stage.come("hangs", fit=False)
    assert not stage.board.is_settled
    stage.look(SILENT)
    assert stage.board.is_settled
    assert len(stage.board.places) == 1
    stage.fit("hangs")
    assert len(stage.board.places) == 2


# Workers that hang


@pytest.mark.parametrize("restartable", [False, True])
def test_a_worker_that_hangs_is_left(restartable: bool) -> None:
    stage = Stage(task_timeout=10.0)
    stage.come("a", is_restartable=restartable)
    stage.come("b")
    futures = [stage.submit(), stage.submit()]
    stage.end(stage.at("b")[0])
    stage.look(11)
    assert stage.transport.restarted == (["a"] if restartable else [])
    assert "worker a returned no result within the task timeout of 10 s" in stage.notices[-1]
    assert not stage.at("a")
    assert stage.at("b") == [2]
    stage.end(0, b"too late")
    stage.end(2)
    assert [future.result(0) for future in futures] == [b"done"] * 2
    stage.submit(count=5)
    assert not stage.at("a")


def test_a_worker_started_anew_after_it_hung_is_used_again() -> None:
    stage = Stage(task_timeout=10.0)
    stage.come("a", is_restartable=True, incarnation="1")
    future = stage.submit()
    stage.look(11)
    assert stage.transport.restarted == ["a"]
    stage.leave("a")
    stage.come("a", is_restartable=True, incarnation="2")
    stage.work_off()
    assert future.result(0) == b"done"


def test_a_task_that_hangs_everywhere_is_given_up() -> None:
    stage = Stage(*"abc", task_timeout=10.0)
    future = stage.submit()
    stage.look(40)
    text = sentence(future)
    assert text.count("returned no result within 10 s (--task-timeout)") == TRIES


def test_a_task_that_waits_for_another_has_not_begun_its_time() -> None:
    stage = Stage("a", task_timeout=10.0)
    stage.submit(count=2)
    stage.look(9)
    stage.end(0)
    stage.look(9)
    assert stage.at("a") == [1]
    stage.look(2)
    assert not stage.at("a")


def test_the_limit_follows_from_what_tasks_took() -> None:
    stage = Stage("a")
    stage.submit(cells=1 << 20)
    stage.look(FIRST_LIMIT - 1)
    assert stage.at("a") == [0]
    stage.end(0)
    stage.submit(cells=1 << 20)
    stage.look(60)
    stage.end(1)
    longest = GENEROSITY * (FIRST_LIMIT - 1)
    stage.submit(cells=1)
    stage.look(longest - 1)
    assert stage.at("a") == [2]
    stage.look(3)
    assert not stage.at("a")


def test_no_limit_is_short_however_fast_tasks_were() -> None:
    stage = Stage("a")
    for number in range(3):
        stage.submit()
        stage.end(number)
    stage.submit()
    stage.look(LEAST_LIMIT - 1)
    assert stage.at("a")
    stage.look(2)
    assert not stage.at("a")


def test_time_in_which_this_process_stood_still_is_nobodys() -> None:
    stage = Stage("a", task_timeout=60.0)
    stage.submit()
    stage.now += 10_000
    stage.board.look(stage.now)
    assert stage.at("a")


# Errors of tasks


@pytest.mark.parametrize("error", [InputError("bad"), OptionError("x", 1, "two"), OutputError("full")])
def test_an_error_of_the_search_is_not_tried_again(error: Exception) -> None:
    stage = Stage("a", "b")
    future = stage.submit()
    stage.fail(0, error)
    assert future.exception(0) is error
    assert not stage.transport.running


def test_an_engine_that_fails_is_tried_elsewhere() -> None:
    stage = Stage("a", "b")
    future = stage.submit()
    stage.fail(0, EngineError("no device"))
    assert stage.at("b") == [1]
    stage.end(1)
    assert future.result(0) == b"done"


def test_the_only_worker_is_tried_again_and_not_for_ever() -> None:
    stage = Stage("a")
    future = stage.submit()
    for number in range(TRIES):
        stage.fail(number, EngineError("no device"))
    assert sentence(future).startswith("a task was tried 3 times: worker a: no device (2.0 GiB of memory); ")


def test_lack_of_memory_keeps_its_exit_code_and_names_the_memory() -> None:
    stage = Stage("a", "b")
    future = stage.submit()
    for number in range(TRIES):
        stage.fail(number, MemoryLimitError("12 GiB do not fit"))
    text = sentence(future, MemoryLimitError)
    assert "12 GiB do not fit (2.0 GiB of memory)" in text
    assert future.exception(0).exit_code == 4


def test_a_worker_that_always_fails_gets_no_more_tasks() -> None:
    stage = Stage("bad", "good")
    futures = [stage.submit(near) for near in "abcdefgh"]
    stage.end(stage.at("good")[0])
    while stage.transport.running:
        if bad := stage.at("bad"):
            stage.fail(bad[0], EngineError("no device"))
        else:
            stage.end(stage.at("good")[0])
    assert [future.result(0) for future in futures] == [b"done"] * 8
    assert sum("bad failed 3 times in a row" in text for text in stage.notices) == 1
    stage.submit("z", count=3)
    assert not stage.at("bad")
    assert FAILURES == 3


def test_no_worker_is_to_blame_where_all_fail() -> None:
    stage = Stage("a", "b")
    for near in "abcd":
        future = stage.submit(near)
        while stage.transport.running:
            stage.fail(next(iter(stage.transport.running)), EngineError("no device"))
        assert "tried 3 times" in sentence(future)
    assert len(stage.board.places) == 2


# Volumes


def test_a_worker_that_lacks_a_volume_is_not_asked_for_it_again() -> None:
    stage = Stage("a", "b")
    stage.look(SETTLED)
    first = stage.submit(("/data/v1.h5", 0, 1))
    stage.fail(0, DatabaseError("/data/v1.h5: no such database"))
    assert stage.at("b") == [1]
    assert stage.notices == ["worker a: /data/v1.h5: no such database; trying other workers"]
    stage.submit(("/data/v1.h5", 1, 1), count=5)
    assert not stage.at("a")
    stage.submit("/data/v2.h5")
    assert len(stage.at("a")) == 1
    stage.work_off()
    assert all(future.result(0) == b"done" for future in stage.futures)
    assert first.done()


def test_a_volume_that_none_can_read_ends_with_a_sentence() -> None:
    stage = Stage("a", "b")
    stage.look(SETTLED)
    future = stage.submit(("/data/v1.h5", 0, 1))
    stage.fail(0, DatabaseError("no such database"))
    stage.fail(1, DatabaseError("another one"))
    text = sentence(future, DatabaseError)
    assert text.startswith("/data/v1.h5: no worker can read it: a: no such database; b: another one; ")
    assert "SWSEARCH_VOLUMES" in text
    assert future.exception(0).exit_code == 2


def test_workers_that_have_just_come_may_be_followed_by_one_that_has_the_volume() -> None:
    stage = Stage("a")
    future = stage.submit(("/data/v1.h5", 0, 1))
    stage.fail(0, DatabaseError("no such database"))
    assert not future.done()
    stage.come("b")
    stage.end(1)
    assert future.result(0) == b"done"


# Workers that cannot be used


def test_a_worker_of_another_version_is_not_used_and_said_once() -> None:
    stage = Stage("a")
    stage.come("b", "c", fit=False)
    stage.fit("b", "swsearch 0.2, here 0.1")
    stage.fit("c", "swsearch 0.2, here 0.1")
    stage.submit(count=6)
    assert not stage.at("b") and not stage.at("c")
    assert stage.notices == ["worker b is not used: swsearch 0.2, here 0.1"]
    assert len(stage.board.places) == 1


def test_where_none_can_be_used_the_sentence_says_why() -> None:
    stage = Stage()
    stage.come("b", "c", fit=False)
    future = stage.submit()
    stage.fit("b", "swsearch 0.2, here 0.1")
    stage.look(SETTLED)
    assert not future.done()
    stage.fit("c", "Python 3.12, here 3.11")
    stage.look(1)
    assert sentence(future) == (
        "the stage: none of its workers can be used: b: swsearch 0.2, here 0.1; c: Python 3.12, here 3.11"
    )


def test_workers_that_dask_has_paused_get_nothing_and_are_not_waited_for_without_end() -> None:
    stage = Stage("a")
    stage.there["a"] = WorkerFound("a", "h", is_ready=False)
    stage.see()
    future = stage.submit()
    assert not stage.at("a")
    stage.look(PATIENCE + 1)
    assert "lack of memory" in sentence(future)


def test_a_paused_worker_ends_what_it_executes_and_others_do_the_rest() -> None:
    stage = Stage("a")
    stage.submit(count=2)
    first, waiting = stage.at("a")
    stage.come("b")
    stage.there["a"] = WorkerFound("a", "h", is_ready=False, n_executing=1)
    stage.see()
    stage.look(PAUSED_SECONDS + 1)
    assert stage.at("a") == [first]
    assert stage.transport.dropped == [waiting]
    stage.end(*stage.at("b"))
    stage.end(first)
    assert [future.result(0) for future in stage.futures] == [b"done"] * 2
    assert stage.notices == [
        "worker a: Dask paused it for lack of memory; other workers do its tasks; give workers more memory, "
        "or start fewer workers per machine"
    ]


def test_tasks_of_workers_that_are_all_paused_end_with_a_sentence() -> None:
    stage = Stage("a", "b")
    future = stage.submit(count=3)
    for name in "ab":
        stage.there[name] = WorkerFound(name, "h", is_ready=False)
    stage.see()
    stage.look(PAUSED_SECONDS + PATIENCE + 2)
    assert "a: Dask paused it for lack of memory; b: Dask paused it" in sentence(future)
    assert len(stage.notices) == 3


# The end


def test_a_transport_that_is_gone_ends_all_tasks_those_to_come_too() -> None:
    stage = Stage("a")
    stage.submit(count=5)
    stage.gone(ClusterError("tcp://x:1: the scheduler has gone"))
    for future in [*stage.futures, stage.submit()]:
        assert sentence(future) == "tcp://x:1: the scheduler has gone"
    assert sorted(stage.transport.dropped) == [0, 1]


def test_what_comes_after_the_end_changes_nothing() -> None:
    stage = Stage("a")
    future = stage.submit()
    stage.gone(ClusterError("gone"))
    stage.end(0)
    stage.fail(0, EngineError("late"))
    stage.vanish(0)
    stage.leave("a")
    stage.look(PATIENCE * 3)
    assert sentence(future) == "gone"
