"""How many processors there are to work with, and whether threads may be started."""

import os
import resource
from pathlib import Path

import pytest

import swsearch
from swsearch.db import Database
from swsearch.engines.factory import create_engine, create_pair_aligner
from swsearch.pipeline import prefetch
from swsearch.pipeline import subjects as loaded
from swsearch.processors import THREAD_BYTES, can_start_threads


@pytest.mark.parametrize("make", [create_engine, create_pair_aligner])
def test_what_is_made_has_no_more_threads_than_help(make, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    with make("cpu", threads=100_000) as made:
        assert made.threads == 3
        assert "3 threads" in made.description
    with make("cpu", threads=2) as made:
        assert made.threads == 2


def test_no_thread_is_started_where_a_limit_of_memory_is_near(monkeypatch):
    """One that finds no memory for its first object is waited for forever."""
    limit = [resource.RLIM_INFINITY]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit[0], resource.RLIM_INFINITY))
    assert can_start_threads(1000)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if _PROC else 0
    limit[0] = used + 3 * THREAD_BYTES
    assert can_start_threads(2)
    assert not can_start_threads(4)


def test_a_search_does_without_threads_of_python(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    records = [(f"s{number}", "MKVLAAGIVGWWHH" * 3) for number in range(200)]
    with Database.from_records(records) as database:
        expected = rows(database)
        with monkeypatch.context() as patched:
            patched.setattr("threading.Thread.start", refuse)
            assert rows(database) == expected
        for module in (loaded, prefetch):
            monkeypatch.setattr(module, "can_start_threads", lambda count=1: False)
        monkeypatch.setattr(loaded, "ThreadPoolExecutor", None)
        assert rows(database) == expected


def rows(database):
    (result,) = swsearch.search("MKVLAAGIVGWWHH", database, evalue=1000, engine="cpu", max_alignments=2, max_hits=20)
    return [(hit.subject_id, hsp.score, hsp.pair.cigar) for hit in result.hits for hsp in hit.hsps]


_PROC = Path("/proc/self/statm").exists()
