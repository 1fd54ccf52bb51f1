"""A real server in this process, over a tiny database: what its HTTP tests talk to."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from swsearch.db import Database
from swsearch.server.app import create_app
from swsearch.server.jobs import Jobs, open_jobs
from swsearch.server.run import Connections, HttpServer, bound, logging_to
from swsearch.server.settings import ServerSettings

PATIENCE = 60.0
"""Seconds after which what should have happened has not."""

SEQUENCES = {
    "alpha": "MKVLAAGIVGWWHHKDEFRTYPCNQSMKVLAAGIVGWWHHKDEFRTYPCNQS",
    "beta": "MKVLAAGIVGWWHHKDEFRTAPCNQSMKVLSAGIVGWYHHKDEFRTYPCNQS",
    "gamma": "GSTPLDDEWRNKYFVQHACMILGSTPLDDEWRNKYFVQHACMILGSTPLDDE",
    "delta": "MKILAAGLVGWHHKDEFRSYPCNQAGSTPLDDEWRNKYFVQHACMIL",
}
"""The subjects of the tiny databases; the first makes a good query."""

QUERY = f">query\n{SEQUENCES['alpha']}\n"


@dataclass
class Reply:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The inner part of a problem."""
        found = self.json["error"]
        assert isinstance(found, dict)
        return found


@dataclass
class Served:
    """A server that runs."""

    url: str
    port: int
    jobs: Jobs
    app: Any
    server: HttpServer
    connections: Connections
    lines: list[str]
    """What it logged."""

    @property
    def opened(self) -> list[Any]:
        """The connections that are open now."""
        return list(self.server.server_state.connections)

    def ask(
        self, method: str, path: str, body: bytes | str | Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Ask once; a body that is neither bytes nor text is sent as JSON."""
        given = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            given.setdefault("Content-Type", "application/json")
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return Reply(answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        """Ask for a path of the API."""
        return self.ask("GET", f"/api/v1{path}", None, headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        """Post to a path of the API."""
        return self.ask("POST", f"/api/v1{path}", body, headers)

    def connect(self) -> socket.socket:
        """Open a connection to say what no client would."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)


def tiny_database(path: Path, names: tuple[str, ...] = tuple(SEQUENCES)) -> Path:
    """Build a database of some of `SEQUENCES`."""
    fasta = path.with_suffix(".fasta")
    fasta.write_text("".join(f">{name} protein {name}\n{SEQUENCES[name]}\n" for name in names))
    Database.build([fasta], path).close()
    return path


@contextmanager
def serving(
    settings: ServerSettings, *, connections: Connections | None = None, port: int = 0, is_verbose: bool = False,
    jobs: Any = None, **options: Any,
) -> Iterator[Served]:  # fmt: skip
    """Start a server in a thread, with jobs of its own and on any port unless they are given, and end it."""
    lines: list[str] = options.pop("lines", [])
    connections = connections or Connections(settings.limits.connections)
    with (
        bound("127.0.0.1", port) as made,
        logging_to(lines.append, is_verbose),
        nullcontext(jobs) if jobs else open_jobs(settings) as opened,
    ):
        app = create_app(opened)
        server = HttpServer(app, made, connections, **options)
        thread = threading.Thread(target=server.serve_until_ended, name="test-server")
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive())
            assert thread.is_alive(), lines
            yield Served(server.url.rstrip("/"), made.getsockname()[1], opened, app, server, connections, lines)
        finally:
            server.end()
            thread.join(PATIENCE)
            assert not thread.is_alive()


def until(condition: Any, seconds: float = PATIENCE) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
