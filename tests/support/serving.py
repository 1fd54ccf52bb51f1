"""A real server in this process, over a tiny database: what its HTTP tests talk to."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from swsearch.db import Database
from swsearch.server.app import create_app
from swsearch.server.jobs import Jobs, RunningSearch, open_jobs
from swsearch.server.run import Connections, HttpServer, bind, logging_to
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
    """Lines of its log."""
    names: list[str] = field(default_factory=list)
    """The names by which engines were asked for, where a test gives them."""
    engines: list[Any] = field(default_factory=list)
    """Engines of the databases that a test gives."""

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

    def submit(self, body: Any, **headers: str) -> dict[str, Any]:
        """Submit a job, and return what is told of it."""
        reply = self.post("/jobs", body, **headers)
        assert reply.status == 202, reply.body
        stated: dict[str, Any] = reply.json
        return stated

    def ended(self, identifier: str) -> dict[str, Any]:
        """Return what is told of a job when it has ended."""
        stated: dict[str, Any] = self.get(f"/jobs/{identifier}?wait=60").json
        assert stated["state"] in ("done", "failed", "cancelled"), stated
        return stated

    def done(self, body: Any, **headers: str) -> dict[str, Any]:
        """Submit a job, and return what is told of it when it is done."""
        job = self.ended(self.submit(body, **headers)["id"])
        assert job["state"] == "done", job["problem"]
        return job

    def results(self, identifier: str, outfmt: str, queries: str = "") -> Reply:
        """Ask for the results of a job, or of some of its queries."""
        return self.get(f"/jobs/{identifier}/results?{_format(outfmt)}" + f"&queries={queries}" * bool(queries))

    def search(self, body: Any, outfmt: str = "6", **headers: str) -> Reply:
        """Search at once."""
        return self.post(f"/search?{_format(outfmt)}", body, **headers)

    def put(self, identifier: str, progress: float | None = None, **changed: Any) -> None:
        """Say what has become of a job: in its row, and its progress while it runs."""
        if progress is not None:
            running = self.jobs.running[identifier] = RunningSearch("somebody")
            running.cells, running.cells_done = 1000, round(1000 * progress)
        values = [json.dumps(value) if isinstance(value, (dict, list)) else value for value in changed.values()]
        columns = ", ".join(f"{name} = ?" for name in changed)
        with closing(sqlite3.connect(self.jobs.settings.folder / "jobs.sqlite", PATIENCE)) as table, table:
            table.execute(f"UPDATE jobs SET {columns} WHERE identifier = ?", [*values, identifier])

    def connect(self) -> socket.socket:
        """Open a connection to say what no client would."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)


def _format(outfmt: str) -> str:
    """Return the part of an address that asks for a format with columns."""
    name, _, columns = outfmt.partition(" ")
    return urlencode({"format": name, **({"columns": columns.replace(" ", ",")} if columns else {})})


def tiny_database(path: Path, names: tuple[str, ...] = tuple(SEQUENCES)) -> Path:
    """Build a database of some of `SEQUENCES`."""
    fasta = path.with_suffix(".fasta")
    fasta.write_text("".join(f">{name} protein {name}\n{SEQUENCES[name]}\n" for name in names))
    Database.build([fasta], path).close()
    return path


@contextmanager
def serving(
    settings: ServerSettings, *, connections: Connections | None = None, port: int = 0, is_verbose: bool = False,
    **options: Any,
) -> Iterator[Served]:  # fmt: skip
    """Start a server in a thread, on any port unless one is given, and end it."""
    lines: list[str] = options.pop("lines", [])
    connections = connections or Connections(settings.limits.connections)
    with (
        bind("127.0.0.1", port) as made,
        logging_to(lines.append, is_verbose),
        open_jobs(settings) as opened,
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
