"""A server that answers what it is told to, bytes as they are: what a client must live with."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Canned:
    """An answer: a status, headers and a body, which may end before it is whole."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Script:
    """Answers by method and path, without the query, one after the other; the last is given again and again."""

    url: str = ""
    answers: dict[str, list[Canned]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    """Method and path with the query, headers and body of every request."""

    def tell(self, what: str, *answers: Canned) -> None:
        """Set the answers to a method and path behind ``/api/v1``."""
        method, path = what.split()
        self.answers[f"{method} /api/v1{path}"] = list(answers)

    def count(self, what: str) -> int:
        """How often it was asked for a method and path behind ``/api/v1``."""
        method, path = what.split()
        return sum(each.split("?")[0] == f"{method} /api/v1{path}" for each, _, _ in self.asked)


@contextmanager
def scripted() -> Iterator[Script]:
    """Start a server without answers, which are 404 and no reason."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.asked.append((f"{self.command} {self.path}", dict(self.headers), body))
            waiting = script.answers.get(f"{self.command} {self.path.split('?')[0]}", [Canned(b"<html>", 404)])
            canned = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            self.send_response(canned.status)
            kind = "application/octet-stream" if isinstance(canned.body, bytes) else "application/json"
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(canned.data)),
                **canned.headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(canned.data[: canned.cut])
            if canned.cut is not None:
                self.close_connection = True

        do_POST = do_DELETE = do_GET  # noqa: N815  # as the library calls them

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
