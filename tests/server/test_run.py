"""Connections that are slow, broken or too many, clients that leave, and the end of a server."""

import errno
import gc
import json
import resource
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from support.serving import QUERY, serving, until
from swsearch.errors import OptionError
from swsearch.server import run as module
from swsearch.server.access import Access
from swsearch.server.run import MIN_BYTES_PER_SECOND, Connections
from swsearch.server.settings import ServerLimits
from swsearch.server.streaming import MIN_PIECE_BYTES

HEAD = b"POST /api/v1/search?database=two HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"


def received(connection):
    """All that comes until the other side closes."""
    parts = []
    with connection:
        try:
            while part := connection.recv(1 << 16):
                parts.append(part)
        except ConnectionResetError:
            pass
    return b"".join(parts)


class Clock:
    """A clock that tests turn."""

    def __init__(self):
        self.now, self.looks = 0.0, 0

    def __call__(self):
        self.looks += 1
        return self.now

    def turn(self, now):
        """Set it, and wait until the server has looked at it twice."""
        self.now, looks = now, self.looks
        until(lambda: self.looks > looks + 1)


@pytest.fixture(scope="module")
def started(server_settings, tmp_path_factory):
    """A server with few connections and small requests, whose clock is the tests'."""
    folder, limits = tmp_path_factory.mktemp("small"), ServerLimits(body=10_000, connections=5)
    settings = replace(server_settings, databases=server_settings.databases[1:], folder=folder, limits=limits)
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SWEEPS", 1)
        with serving(settings, connections=Connections(5, clock=clock)) as found:
            found.clock = clock
            yield found


@pytest.fixture
def small(started):
    """The same, with nothing left of the test before."""
    until(lambda: not started.opened)
    started.clock.now = 0.0
    started.lines.clear()
    return started


def test_slow_connections_make_room_for_those_who_ask(small):
    slow = [small.connect() for _ in range(12)]
    for each in slow[-5:]:
        each.sendall(b"GET / HT")
    assert small.get("/ready").status == 200
    until(lambda: len(small.opened) <= 5)
    assert received(slow[0]) == b""
    for each in slow:
        each.close()


def test_a_request_that_takes_too_long_is_ended(small):
    silent, halting = small.connect(), small.connect()
    halting.sendall(HEAD + b"Content-Length: 100\r\n\r\n>a\n")
    until(lambda: len(small.opened) == 2 and sum(each.n_bytes for each in small.opened) > 100)
    small.clock.turn(31.0)
    assert received(silent) == b""
    assert received(halting).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    until(lambda: len(small.opened) == 0)


def test_a_long_request_has_longer(small):
    with small.connect() as steady:
        body = b">a\n" + b"M" * 8000
        steady.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:-1])
        until(lambda: sum(each.n_bytes for each in small.opened) > 8000)
        small.clock.turn(30 + 4000 / MIN_BYTES_PER_SECOND)
        steady.sendall(body[-1:])
        assert steady.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_where_all_are_at_work_a_further_one_is_told(small):
    small.connections.max_connections = 0
    assert b" 503 " in received(small.connect())[:20]
    small.connections.max_connections = 5
    assert small.get("/ready").status == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: nothing\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (300 << 10) + b"\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(small, garbage):
    connection = small.connect()
    connection.sendall(garbage)
    head, _, body = received(connection).partition(b"\r\n\r\n")
    assert head.split()[1] in (b"400", b"501")
    assert json.loads(body)["error"]["code"] == "broken"
    assert small.get("/ready").status == 200


def test_a_request_that_is_too_large_is_refused_before_it_is_there(small):
    path = "/search?database=two"
    reply = small.post(path, "A" * 20_000, **{"Content-Type": "text/plain"})
    assert (reply.status, reply.error["code"]) == (413, "too_large")
    assert "--max-body" in reply.error["message"]
    with small.connect() as waiting:
        waiting.sendall(HEAD + b"Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n")
        assert b" 413 " in waiting.recv(100)
    with small.connect() as chunked:
        chunked.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"A" * 4096 + b"\r\n")
        chunked.sendall((b"1000\r\n" + b"A" * 4096 + b"\r\n") * 2)
        assert b" 413 " in chunked.recv(100)
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    part = '--x\r\nContent-Disposition: form-data; name="queries"; filename="q"\r\n\r\n'
    assert small.post("/jobs", part + "A" * 20_000 + "\r\n--x--\r\n", **form).status == 413


def test_a_client_that_leaves_stops_its_search(small, monkeypatch):
    started, ended, told = threading.Event(), threading.Event(), []

    def search(request, wanted, running):
        started.set()
        until(lambda: running.reason)
        told.append((request.database, running.reason))
        ended.set()
        raise AssertionError("nobody is told")
        yield

    monkeypatch.setattr(small.jobs, "search", search)
    with small.connect() as leaving:
        leaving.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(QUERY) + QUERY.encode())
        assert started.wait(60)
    assert ended.wait(60)
    assert told == [("two", "unwanted")]
    until(lambda: len(small.opened) == 0)
    assert small.lines == []


def test_a_client_that_leaves_amid_its_request_is_no_failure(small):
    with small.connect() as leaving:
        leaving.sendall(HEAD + b"Content-Length: 100\r\n\r\n>a\n")
        until(lambda: sum(each.n_bytes for each in small.opened) > 100)
    until(lambda: len(small.opened) == 0)
    assert small.lines == []


def test_a_request_that_does_not_end_is_cut_off_with_the_server(server_settings, tmp_path, monkeypatch):
    started, ended = threading.Event(), threading.Event()

    def search(request, wanted, running):
        started.set()
        until(lambda: running.reason)
        ended.set()
        yield b""

    settings = replace(server_settings, databases=server_settings.databases[1:], folder=tmp_path)
    with serving(settings, grace=0) as found:
        monkeypatch.setattr(found.jobs, "search", search)
        waiting = found.connect()
        waiting.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(QUERY) + QUERY.encode())
        assert started.wait(60)
    assert ended.wait(60)
    reply = received(waiting)
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b"the server is ending" in reply
    assert not [line for line in found.lines if "Traceback" in line or "Exception" in line]


def endless(closed):
    try:
        while True:
            yield b"x" * 100_000
    finally:
        closed.set()


def test_a_search_is_wanted_while_its_answer_is_sent_and_no_longer(small, monkeypatch):
    seen, ended = [], threading.Event()

    def search(request, wanted, running):
        yield b"x" * MIN_PIECE_BYTES
        seen.append(running.reason)  # the first part is on its way
        yield b"\x01" * MIN_PIECE_BYTES
        until(lambda: running.reason)
        ended.set()
        yield b"z"

    monkeypatch.setattr(small.jobs, "search", search)
    with small.connect() as leaving:
        leaving.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(QUERY) + QUERY.encode())
        until(lambda: b"\x01" in leaving.recv(1 << 16))
        assert seen == [""]
        assert not ended.is_set()
    assert ended.wait(60)


def test_results_that_nobody_takes_are_not_made(small, monkeypatch):
    closed = threading.Event()
    monkeypatch.setattr(small.jobs, "subjects", lambda *_: endless(closed))
    with small.connect() as leaving:
        leaving.sendall(b"GET /api/v1/jobs/AAAAAAAAAAAAAAAAAAAA/subjects?hits=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert leaving.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
    assert closed.wait(60)


def test_a_client_that_takes_nothing_is_cut_off(small, monkeypatch):
    closed = threading.Event()
    monkeypatch.setattr(small.jobs, "subjects", lambda *_: endless(closed))
    with small.connect() as stalled:
        stalled.sendall(b"GET /api/v1/jobs/AAAAAAAAAAAAAAAAAAAA/subjects?hits=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: any(each._unsent for each in small.opened))
        small.clock.turn(1.0)
        assert not closed.is_set()
        small.clock.turn(1000.0)
        assert closed.wait(60)


def test_large_requests_are_refused_while_others_fill_the_memory(small):
    gate = small.app.middleware_stack
    while not isinstance(gate, Access):
        gate = gate.app
    until(lambda: gate.n_held == 0)
    gate.n_held = gate.max_held
    gate.max_bytes = 3 << 20
    try:
        reply = small.post("/search?database=two", "A" * (2 << 20), **{"Content-Type": "text/plain"})
        assert (reply.status, reply.headers["retry-after"]) == (503, "5")
        assert small.post("/search?database=two", QUERY, **{"Content-Type": "text/plain"}).status == 200
        until(lambda: gate.n_held == gate.max_held)
    finally:
        gate.n_held, gate.max_bytes = 0, 10_000


def test_a_failure_of_ours_is_logged_with_a_number_and_not_shown(small, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(small.jobs, "jobs_of", fail)
    reply = small.get("/jobs")
    assert (reply.status, reply.error["code"]) == (500, "failed")
    assert "secret" not in reply.error["message"]
    number = reply.error["message"].rsplit(" ", 1)[1]
    assert any(number in line and "ZeroDivisionError: a secret" in line for line in small.lines)


def test_results_that_fail_on_their_way_are_cut_off(small, monkeypatch):
    def failing(*_):
        yield b"x" * 300_000
        yield b"x" * 300_000
        raise ZeroDivisionError

    monkeypatch.setattr(small.jobs, "subjects", failing)
    connection = small.connect()
    connection.sendall(b"GET /api/v1/jobs/AAAAAAAAAAAAAAAAAAAA/subjects?hits=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    found = received(connection)
    assert found.startswith(b"HTTP/1.1 200 OK\r\n")
    assert not found.endswith(b"0\r\n\r\n")
    assert any("ZeroDivisionError" in line for line in small.lines)


def test_many_wait_for_jobs_without_a_thread_each(served, monkeypatch):
    real = served.post("/jobs?database=tiny&wait=30", QUERY, **{"Content-Type": "text/plain"}).json["id"]
    job, done = served.jobs.job(real), threading.Event()

    def told(identifier):
        return replace(job, identifier=identifier, state="done" if done.is_set() else "running")

    monkeypatch.setattr(served.jobs, "job", told)
    before = threading.active_count()
    waiting = []
    for number in range(60):
        each = served.connect()
        path = f"/api/v1/jobs/{'A' * 19}{'ABCDEFGHJK'[number % 10]}?wait=60"
        each.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        waiting.append(each)
    until(lambda: sum(len(each._waiters) for each in list(served.jobs._ends.values())) == 60)
    assert threading.active_count() <= before + 16
    done.set()
    loop = next(iter(served.jobs._ends.values()))._loop
    for ended in list(served.jobs._ends.values()):
        loop.call_soon_threadsafe(ended.set)
    del ended
    for each in waiting:
        assert b'"state":"done"' in received(each)
    until(lambda: not served.jobs._ends)


def descriptors():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors as Linux has them")
def test_nothing_is_left_of_a_server_that_has_ended(server_settings, tmp_path):
    def once(name):
        with serving(replace(server_settings, folder=tmp_path / name)) as found:
            idle = found.connect()
            assert found.post("/jobs?database=tiny&wait=30", QUERY, **{"Content-Type": "text/plain"}).status == 202
            assert found.post("/search?database=tiny", QUERY, **{"Content-Type": "text/plain"}).status == 200
        assert received(idle) == b""

    once("first")
    before, files = set(threading.enumerate()), descriptors()
    once("second")
    until(lambda: not [each for each in set(threading.enumerate()) - before if each.is_alive()])
    until(lambda: descriptors() <= files)  # a connection is closed after its answer


def test_an_address_that_cannot_be_had_is_told():
    with module.bind("127.0.0.1", 0) as made:
        made.listen()
        port = made.getsockname()[1]
        with pytest.raises(OptionError, match="another program listens there"):
            module.bind("127.0.0.1", port)
    with pytest.raises(OptionError, match="--host"):
        module.bind("no such host.invalid", 0)
    with pytest.raises(OptionError, match="--host"):
        module.bind("192.0.2.1", 0)
    assert "from 1024" in str(module._bind_error("127.0.0.1", 80, OSError(errno.EACCES, "no")))


def test_the_address_for_a_browser():
    with module.bind("127.0.0.1", 0) as made:
        port = made.getsockname()[1]
        assert module.url_of(made, "/lab") == f"http://127.0.0.1:{port}/lab/"
        assert not module.is_for_others(made)
    with module.bind("0.0.0.0", 0) as made:
        assert module.url_of(made).startswith("http://127.0.0.1:")
        assert module.is_for_others(made)
    if socket.has_ipv6:
        with module.bind("::1", 0) as made:
            assert module.url_of(made).startswith("http://[::1]:")


def test_connections_are_as_many_as_there_may_be_files(monkeypatch):
    limits = {"now": (1024, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.update(now=wanted))
    assert module.allow_connections(1000) == 1000
    assert limits["now"][0] >= 1000 + module.BACKLOG + module.OTHER_FILES
    assert module.allow_connections(10_000) == 4096 - module.BACKLOG - module.OTHER_FILES
    limits["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert module.allow_connections(10_000) == 10_000
