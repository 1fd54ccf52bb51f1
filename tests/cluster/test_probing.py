"""Addresses that are none, and what listens at those that are but is no scheduler."""

from __future__ import annotations

import socket
import threading

import pytest

from swsearch.cluster import probing
from swsearch.cluster.probing import check_scheduler, checked_address
from swsearch.errors import ClusterError, OptionError


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("tcp://host:8786", "tcp://host:8786"),
        ("host:8786", "tcp://host:8786"),
        ("tls://10.0.0.1:1/", "tls://10.0.0.1:1"),
        ("tcp://[::1]:65535", "tcp://[::1]:65535"),
    ],
)
def test_an_address(name: str, address: str) -> None:
    assert checked_address(name, "--cluster") == address


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "host", "tcp://host", "tcp://host:", "tcp://:8786", "tcp://host:0", "tcp://host:65536", "http://host:80",
        "tcp://a b:1", "tcp://host:8786/x", "local", "local:", "local:x", "local:-1", "tcp//host:1", "tcp://::1:8786",
        "tcp://host:8786\n", "\x1b[31m:1",
    ],
)  # fmt: skip
def test_what_is_no_address(name: str) -> None:
    with pytest.raises(OptionError, match=r"^--cluster: got ") as raised:
        checked_address(name, "--cluster")
    assert "tcp://host:8786, or local:4" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.fixture
def silent():
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_who_says_nothing_is_not_waited_for_without_end(silent: int) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ClusterError, match=r"no Dask scheduler answered \("):
        check_scheduler(f"tcp://127.0.0.1:{silent}", 0.2)


def test_a_port_where_nobody_listens() -> None:
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ClusterError, match="expected one that 'dask scheduler' started"):
        check_scheduler(f"tcp://127.0.0.1:{port}", 0.2)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"type": "Worker"}, "x: this is a Dask worker; expected one that 'dask scheduler' started"),
        ({}, "x: this is a Dask server;"),
        (None, "x: this is a Dask server;"),
    ],
)
def test_what_is_of_dask_and_no_scheduler(monkeypatch: pytest.MonkeyPatch, told: object, text: str) -> None:
    async def identity(address: str, timeout: float) -> object:
        return told

    monkeypatch.setattr(probing, "_identity", identity)
    with pytest.raises(ClusterError) as raised:
        check_scheduler("x", 1)
    assert str(raised.value).startswith(text)


def test_a_thread_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()

    async def identity(address: str, timeout: float) -> object:
        end.wait(20)
        return {"type": "Scheduler"}

    monkeypatch.setattr(probing, "_identity", identity)
    monkeypatch.setattr(probing, "LEFT_AFTER", 0.05)
    with pytest.raises(ClusterError, match="nothing within 0 s"):
        check_scheduler("x", 0)
    end.set()
