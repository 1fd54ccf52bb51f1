"""Names of clusters, what is refused, and what is loaded for them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from swsearch.cluster import opening
from swsearch.cluster.messages import EngineRequest
from swsearch.cluster.opening import open_pool
from swsearch.errors import ClusterError, InputError, OptionError

pytest.importorskip("distributed")

CPU = EngineRequest("cpu")


@pytest.mark.parametrize(
    "name", ["local:0", "local:x", "nonsense", "tcp://host", "ftp://host:1", "host:99999", "a:0"]
)
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(OptionError, match="--cluster: got"):
        open_pool(name, CPU)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "soon", True])
def test_a_limit_of_time_that_is_none_is_refused(timeout):
    with pytest.raises(OptionError, match="task_timeout: got"):
        open_pool("local:1", CPU, timeout=timeout)


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(opening, "REACH_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ClusterError, match=f"^127.0.0.1:{port}: no Dask scheduler answered") as raised:
        open_pool(f"127.0.0.1:{port}", CPU)
    assert raised.value.exit_code == 3


def test_what_listens_and_says_nothing_is_given_up(monkeypatch):
    """Dask would wait for it for ever."""
    monkeypatch.setattr(opening, "REACH_SECONDS", 0.2)
    monkeypatch.setattr(opening, "EXTRA_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(ClusterError, match="no Dask scheduler answered"),
    ):
        open_pool(f"tcp://127.0.0.1:{server.getsockname()[1]}", CPU)


def test_without_dask_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in ("local:2", "tcp://host:8786"):
        with pytest.raises(InputError, match=r"pip install 'swsearch\[cluster\]'"):
            open_pool(name, CPU)


def test_dask_is_not_loaded_before_it_is_asked_for():
    code = "import sys, swsearch.cluster.opening; assert not {'dask', 'distributed', 'tornado'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("before", [None, "error"])
def test_semaphores_are_removed_without_a_word(monkeypatch, before):
    seen = []
    monkeypatch.setattr(
        opening.resource_tracker, "ensure_running", lambda: seen.append(os.environ.get("PYTHONWARNINGS"))
    )
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONWARNINGS", before)
    opening._track_quietly()
    assert seen == ["ignore:resource_tracker" if before is None else "error,ignore:resource_tracker"]
    assert os.environ.get("PYTHONWARNINGS") == before
