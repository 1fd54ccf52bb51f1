"""How many processors there are to work with."""

import os

from swsearch.processors import available_processors


def test_what_this_process_may_use_counts_where_the_system_says(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    assert available_processors() == 3


def test_all_processors_elsewhere(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for count, expected in ((8, 8), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert available_processors() == expected
