"""Objects made before a fork, used in the fork: they work, or one sentence says that they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

import swsearch
from support import fake_driver
from support.forked import in_fork, refused
from support.samples import sample
from support.serving import SEQUENCES, serving
from swsearch.db import build_database
from swsearch.engines.gpu import device as gpu_device
from swsearch.server.settings import ServerSettings


def test_a_searcher_in_a_fork_says_so_and_goes_on_in_its_parent() -> None:
    with swsearch.Searcher(SEQUENCES, engine="cpu", statistics="none") as searcher:
        expected = [hit.subject_id for hit in searcher.search(SEQUENCES["alpha"])[0]]
        assert in_fork(lambda: searcher.search(SEQUENCES["alpha"])) == refused("this Searcher")
        assert in_fork(searcher.close) == "None"
        in_it = in_fork(lambda: len(swsearch.Searcher(SEQUENCES, engine="cpu").search(SEQUENCES["alpha"])))
        assert in_it == "1"
        assert [hit.subject_id for hit in searcher.search(SEQUENCES["alpha"])[0]] == expected


@pytest.mark.parametrize("iterations", sample([1, 2], lambda iterations: iterations == 1))
def test_a_search_that_was_begun_before_a_fork_says_so(iterations: int) -> None:
    queries = [SEQUENCES["alpha"] * 40] * 300  # many groups, of which some are left to be scored
    options = {"statistics": "published", "iterations": iterations, "max_hits": 1}
    with swsearch.search(queries, SEQUENCES, engine="cpu", **options) as results:
        next(results)
        assert in_fork(lambda: len(list(results))) == refused("this search")
        assert in_fork(results.close) == "None"
        assert len(list(results)) == len(queries) - 1


def test_a_search_that_was_not_begun_before_a_fork_works_there() -> None:
    results = swsearch.search(SEQUENCES, SEQUENCES, engine="cpu")
    assert in_fork(lambda: len(list(results))) == "4"
    assert len(list(results)) == 4


def test_forks_ask_a_server_over_connections_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "db.fasta").write_text("".join(f">{name}\n{letters}\n" for name, letters in SEQUENCES.items()))
    build_database(tmp_path / "db.fasta", tmp_path / "db.h5")
    settings = ServerSettings((tmp_path / "db.h5",), tmp_path / "state", engine="cpu", workers=1)
    with serving(settings) as served, swsearch.Client(served.url) as client:
        expected = repr(client.databases())
        assert [in_fork(client.databases) for _ in range(4)] == [expected] * 4
        assert repr(client.databases()) == expected


def test_cuda_in_a_fork_of_a_process_that_has_initialised_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch)
    opened = gpu_device.Device(gpu_device.choose_device(None))

    def use() -> None:
        with opened.active("searching"):
            pass

    assert in_fork(use) == refused("device 0, NVIDIA H200")
    assert in_fork(gpu_device.list_devices) == (
        "GpuUnavailableError: engine gpu cannot be used: CUDA was initialised before this process was forked; start "
        "processes with multiprocessing.get_context('spawn'), or use --engine cpu"
    )
