"""How long a task may take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swsearch.cluster.pace import FIRST_LIMIT, GENEROSITY, LEAST_LIMIT, Pace


def test_of_what_is_unknown_much_is_allowed() -> None:
    pace = Pace()
    pace.add("align", 10, 1.0)
    assert pace.limit("score", 10) == FIRST_LIMIT


def test_a_task_as_large_as_another_may_take_many_times_as_long() -> None:
    pace = Pace()
    pace.add("score", 1 << 20, 100.0)
    assert pace.limit("score", 1 << 20) == GENEROSITY * 100
    assert pace.limit("score", 1 << 22) == GENEROSITY * 400
    assert pace.limit("score", 1) == GENEROSITY * 100


def test_the_shortest_of_tasks_leave_a_least_limit() -> None:
    pace = Pace()
    pace.add("score", 0, 0.0)
    assert pace.limit("score", 1 << 40) == LEAST_LIMIT


def test_a_small_task_says_little_of_large_ones() -> None:
    pace = Pace()
    pace.add("score", 1, 1.0)
    pace.add("score", 1 << 30, 60.0)
    assert pace.limit("score", 1 << 31) == GENEROSITY * 120


@given(
    st.lists(st.tuples(st.integers(0, 1 << 50), st.floats(0, 1e6)), min_size=1, max_size=8),
    st.integers(0, 1 << 50),
)
def test_no_limit_is_below_the_least_and_larger_tasks_have_no_shorter_ones(known, cells) -> None:
    pace = Pace()
    for size, seconds in known:
        pace.add("score", size, seconds)
    assert LEAST_LIMIT <= pace.limit("score", cells) <= pace.limit("score", 2 * cells + 1)
