"""How many processors there are to work with."""

import os

import pytest

from swsearch.engines.choice import create_engine, create_pair_aligner
from swsearch.processors import available_processors, threads_that_help


def test_what_this_process_may_use_counts_where_the_system_says(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    assert available_processors() == 3


def test_all_processors_elsewhere(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for count, expected in ((8, 8), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert available_processors() == expected


@pytest.mark.parametrize(("asked", "used"), [(None, 3), (1, 1), (3, 3), (4, 3), (100_000, 3)])
def test_no_more_threads_than_processors_help(asked, used, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    assert threads_that_help(asked) == used


@pytest.mark.parametrize("make", [create_engine, create_pair_aligner])
def test_what_is_made_has_no_more_threads_than_help(make, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    with make("cpu", threads=100_000) as made:
        assert made.threads == 3
        assert "3 threads" in made.description
    with make("cpu", threads=2) as made:
        assert made.threads == 2
