"""Whose turn it is, and what is stopped when."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.houses import wait_until
from support.samples import random_cases
from swsearch.pipeline.prefetch import Stopped
from swsearch.server.runner import FairQueue, Runner, Running


def always(client: str) -> bool:
    return True


def test_clients_take_turns_and_the_jobs_of_each_stay_in_order() -> None:
    queue = FairQueue()
    for name in ("a1", "a2", "a3", "b1", "c1", "c2"):
        queue.put(name, name[0])
    assert [queue.place_of(name) for name in ("a1", "b1", "c1", "a2", "c2", "a3")] == list(range(6))
    assert queue.place_of("none") is None
    assert queue.waiting_of("a") == 3
    assert queue.take(lambda client: client != "a") == ("b1", "b")
    assert queue.remove("a2")
    assert not queue.remove("a2")
    queue.put("b2", "b")
    order = [queue.take(always) for _ in range(len(queue))]
    assert order == [("a1", "a"), ("c1", "c"), ("b2", "b"), ("a3", "a"), ("c2", "c")]
    assert queue.take(always) is None
    assert len(queue) == queue.waiting_of("a") == 0


@random_cases(60)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3))))
def test_a_place_in_the_queue_is_the_number_of_jobs_that_are_taken_before(steps: list[tuple[str, int]]) -> None:
    """Jobs are put, taken and removed in any order; then all are taken as their places said."""
    queue, waiting = FairQueue(), []
    for number, (client, what) in enumerate(steps):
        if what == 0 and waiting:
            assert queue.remove(waiting.pop(len(waiting) // 2))
        elif what == 1 and waiting:
            taken = queue.take(always)
            assert taken is not None
            waiting.remove(taken[0])
        else:
            queue.put(f"{client}{number}", client)
            waiting.append(f"{client}{number}")
    places = {name: queue.place_of(name) for name in waiting}
    taken_in_turn = [queue.take(always) for _ in waiting]
    assert places == {each[0]: place for place, each in enumerate(taken_in_turn) if each is not None}


class Works:
    """A runner whose jobs wait until they are let go of, or stopped."""

    def __init__(self, workers: int, seconds: float = 60.0) -> None:
        self.begun: list[str] = []
        self.let_go: dict[str, threading.Event] = {}
        self.why: dict[str, str] = {}
        self.tidied = 0
        self.log: list[str] = []
        self.runner = Runner(workers, self._run, self._tidy, seconds, self.log.append)

    def put(self, *names: str) -> None:
        for name in names:
            self.let_go[name] = threading.Event()
            self.runner.put(name, name[0])

    def _tidy(self) -> None:
        self.tidied += 1
        if self.tidied == 1:
            raise OSError("no room")

    def _run(self, name: str, running: Running) -> None:
        self.begun.append(name)

        class Results:
            stop = staticmethod(self.let_go[name].set)

        running.holds(Results)  # type: ignore[arg-type]
        assert self.let_go[name].wait(60)
        self.why[name] = running.why
        if name.endswith("!"):
            raise RuntimeError("a worker may not end")


def test_whoever_comes_later_finds_a_worker() -> None:
    works = Works(8)
    works.runner.start()
    works.put(*(f"a{number}" for number in range(20)))
    wait_until(lambda: len(works.begun) == 4)
    works.put(*(f"b{number}" for number in range(20)))
    wait_until(lambda: len(works.begun) == 6)
    works.put("c0", "d0", "e0")
    wait_until(lambda: len(works.begun) == 8)
    assert Counter(name[0] for name in works.begun) == {"a": 4, "b": 2, "c": 1, "d": 1}
    assert works.runner.n_running == 8
    works.let_go["d0"].set()
    wait_until(lambda: "e0" in works.begun)
    assert (works.runner.n_active(), works.runner.n_active("a"), works.runner.n_queued) == (42, 20, 34)
    works.runner.close()
    assert set(works.why.values()) == {"", "ending"}
    assert works.runner.n_queued == 34


def test_one_worker_runs_all_in_turn() -> None:
    works = Works(1)
    works.put("a1", "a2", "b1")
    for each in works.let_go.values():
        each.set()
    works.runner.start()
    for name in ("a1", "a2", "b1"):
        works.runner.wait(name, 60)
    assert works.begun == ["a1", "b1", "a2"]
    works.runner.close()


def test_what_takes_too_long_or_is_not_wanted_is_stopped() -> None:
    works = Works(2, seconds=0.0)
    works.runner.start()
    works.put("a1")
    works.runner.wait("a1", 60)
    assert works.why == {"a1": "time"}
    wanted, stopped = threading.Event(), threading.Event()
    wanted.set()
    search = Running("a", 60.0, wanted.is_set)

    class Results:
        stop = staticmethod(stopped.set)

    search.holds(Results)  # type: ignore[arg-type]
    works.runner.watch(search)
    assert works.runner.n_searches("a") == works.runner.n_searches() == 1
    assert works.runner.n_searches("b") == 0
    wanted.clear()
    assert stopped.wait(60)
    assert search.why == "unwanted"
    works.runner.unwatch(search)
    assert works.runner.n_searches() == 0
    wait_until(lambda: works.tidied > 1)
    assert works.log == ["expired jobs could not be removed: no room"]
    works.runner.close()


def test_a_search_that_was_stopped_before_it_began_does_not_begin() -> None:
    search = Running("a", 60.0)
    assert search.stop("cancelled")
    assert not search.stop("time")
    with pytest.raises(Stopped):
        search.holds(None)  # type: ignore[arg-type]


def test_an_error_ends_no_worker() -> None:
    works = Works(1)
    works.runner.start()
    works.put("a!", "a2")
    works.let_go["a!"].set()
    works.let_go["a2"].set()
    works.runner.wait("a2", 60)
    assert works.begun == ["a!", "a2"]
    works.runner.close()
    assert "job a!: RuntimeError: a worker may not end" in works.log


def test_progress_is_a_part() -> None:
    search = Running("a", 60.0)
    assert search.progress == 0.0
    search.cells = 10
    search.advance(4)
    assert search.progress == 0.4
    search.advance(40)
    assert search.progress == 1.0
