"""Hostile requests of every route, judged as `tests/faults` does it, and few descriptors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.hostile_requests import ENDPOINTS, ROUTES, HostileRequest, Known, request_of
from faults.server import HostileAnswer, Sender, problem_with
from support.processes import LISTEN
from support.serving import PATIENCE, QUERY, Served, serving, tiny_database, until
from swsearch.server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that is sent hostile requests; its databases lie in a folder that no answer may name."""
    folder = tmp_path_factory.mktemp("attacked")
    databases = tuple(tiny_database(folder / name) for name in ("tiny.h5", "two.h5"))
    with serving(ServerSettings(databases, folder / "state", engine="cpu", threads=1, workers=2)) as found:
        yield found


def routes_of(router: Any) -> Iterator[tuple[str, frozenset[str]]]:
    for each in router.routes:
        inner = getattr(each, "original_router", None)
        if inner is not None:
            yield from routes_of(inner)
        else:
            yield each.path, frozenset(each.methods)


def test_every_route_is_attacked(attacked: Served) -> None:
    found: dict[str, frozenset[str]] = {}
    for path, methods in routes_of(attacked.app):
        found[path] = found.get(path, frozenset()) | methods
    assert found == {path: frozenset(methods) for path, methods in ROUTES.items()}


# Starlette leaves the file of a form that ends early to the garbage collector
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function SpooledTemporaryFile")
@pytest.mark.parametrize(
    "seeds", [range(4), pytest.param(range(100, 140), marks=pytest.mark.exhaustive)], ids=["few", "more"]
)
def test_hostile_requests_are_answered_in_our_words(attacked: Served, seeds: range) -> None:
    mine = {"Content-Type": "text/plain", "Cookie": f"swsearch={'k' * 32}"}
    known = attacked.post("/jobs?database=tiny&wait=60", QUERY, **mine).json["id"]
    sender = Sender(attacked.port, [str(attacked.jobs.settings.folder).encode(), str(ROOT).encode()])
    for seed in seeds:
        for endpoint in ENDPOINTS:
            sender.send(request_of(endpoint, seed, Known([known], attacked.port)))
    sender.close()
    until(lambda: not attacked.opened)
    assert attacked.get("/health").json["ok"]
    assert not [line for line in attacked.lines if "Traceback" in line]


PAGE = [("Content-Type", "text/html"), ("Content-Security-Policy", "x"), ("X-Content-Type-Options", "nosniff")]
JSON = [("Content-Type", "application/json")]


@pytest.mark.parametrize(
    ("status", "headers", "body", "problem"),
    [
        (200, PAGE, b"<html></html>", ""),
        (404, JSON, b'{"error": {"code": "not_found", "message": "no page"}}', ""),
        (500, JSON, b'{"error": {"code": "failed", "message": "it failed"}}', "status 500"),
        (507, JSON, b'{"error": {"code": "disk_full", "message": "no room"}}', ""),
        (404, JSON, b'{"detail": "Not Found"}', "none of ours"),
        (404, [("Content-Type", "text/plain")], b"Not Found", "of type 'text/plain'"),
        (200, PAGE, b"<html>/secret/folder</html>", "tells"),
        (200, PAGE, b"<html><zq9></html>", "markup"),
        (200, PAGE[:1], b"<html></html>", "policy"),
        (200, [("Content-Type", "text/plain")], b"x", "another type"),
        (200, [*PAGE, ("X-Zq9", "1")], b"x", "header"),
        (303, [*PAGE, ("Location", "//evil.org")], b"", "leads to"),
    ],
)
def test_answers_are_judged(status: int, headers: list[tuple[str, str]], body: bytes, problem: str) -> None:
    request = HostileRequest(("GET", "/"), "GET", "/")
    found = problem_with(request, HostileAnswer(status, headers, body), [b"/secret/folder"])
    assert problem in found
    assert bool(problem) == bool(found)


SERVE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from swsearch.__main__ import main
main()
"""


@pytest.mark.exhaustive
def test_a_server_with_few_descriptors_takes_no_more_and_goes_on(tmp_path: Path) -> None:
    line = [sys.executable, "-c", LISTEN, sys.executable, "-c", SERVE, "serve"]
    line += [str(tiny_database(tmp_path / "tiny.h5")), "--port", "0"]
    line += ["--folder", str(tmp_path / "jobs"), "--engine", "cpu", "--threads", "1"]
    log = tmp_path / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(line, stderr=stream, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        until(lambda: b"listening on" in log.read_bytes() or process.poll() is not None)
        served = Served("", int(log.read_text().rpartition(":")[2].strip("/\n")), *[None] * 4, [])  # type: ignore
        held = [served.connect() for _ in range(300)]
        assert process_seconds(process.pid, 2.0) < 1.0  # nothing turns in a circle
        for each in held:
            each.close()
        assert served.post("/search?database=tiny&format=6", QUERY, **{"Content-Type": "text/plain"}).status == 200
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, 143)
    assert "Traceback" not in log.read_text()


def process_seconds(pid: int, seconds: float) -> float:
    """Return the processor's seconds that a process takes in some time."""

    def taken() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = taken()
    time.sleep(seconds)
    return taken() - before
