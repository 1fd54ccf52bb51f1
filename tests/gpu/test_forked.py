"""A GPU in a fork of the process that uses it: one sentence, and nothing hangs."""

from __future__ import annotations

import pytest

import swsearch
from support.forked import in_fork, refused
from swsearch.errors import GpuUnavailableError

QUERY = "MKVLAAGIVGWWHHKDEFRTYPCNQSMKVLAAGIVGWWHHKDEFRTYPCNQS"
SUBJECTS = {"alpha": QUERY, "beta": QUERY[10:], "gamma": "GSTPLDDEWRNKYFVQHACMILGSTPLDDE", "delta": QUERY[:30]}


@pytest.mark.gpu
@pytest.mark.parametrize("device", [0, [0, 0]], ids=["one", "two"])
def test_a_gpu_cannot_be_used_in_a_fork_and_goes_on_in_its_parent(device: int | list[int]) -> None:
    try:
        searcher = swsearch.Searcher(SUBJECTS, engine="gpu", device=device)
    except GpuUnavailableError as error:
        pytest.skip(str(error))
    queries = [QUERY * 40] * 300
    started = swsearch.search(queries, SUBJECTS, engine="gpu", device=device, statistics="published")
    with searcher, started:
        next(started)
        assert in_fork(lambda: searcher.search(QUERY)) == refused("this Searcher")
        assert in_fork(lambda: len(list(started))) == refused("this search")
        assert in_fork(lambda: (searcher.close(), started.close())) == "(None, None)"
        there = in_fork(lambda: swsearch.score(QUERY, SUBJECTS, engine="gpu"))
        assert there.startswith("GpuUnavailableError: engine gpu cannot be used: CUDA was initialised before this")
        assert in_fork(lambda: swsearch.score(QUERY, SUBJECTS, engine="auto").shape) == "(1, 4)"
        assert len(searcher.search(QUERY)) == 1
        assert len(list(started)) == 299
