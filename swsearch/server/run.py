"""The HTTP server process: connection limits, shutdown and log.

A client that sends a byte now and then, and never a whole request, holds a connection. Such connections are cut after
some time, and the oldest makes room for a new one. So the server answers real requests during a flood.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import gc
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from swsearch.errors import OptionError, printable
from swsearch.processors import allow_files
from swsearch.server.errors import ServerProblem
from swsearch.server.jobs import Jobs

REQUEST_SECONDS = 30.0
"""Seconds in which a request must be complete; `MIN_BYTES_PER_SECOND` adds to them."""

MIN_BYTES_PER_SECOND = 16 << 10
"""Bytes a second: a long request may take so much longer."""

STALLED_SECONDS = 120.0
"""Seconds after which a connection is cut whose client receives nothing of its response."""

BACKLOG = 512
"""Connections that wait to be accepted."""

OTHER_FILES = 256
"""Open files of a server besides its connections and those that wait."""

KEEP_ALIVE_SECONDS = 20
"""Seconds that a connection is kept between requests."""

GRACE_SECONDS = 10
"""Seconds that requests have to end when the server ends."""

REFUSAL_SECONDS = 5.0
"""Maximum seconds that other requests have to send that the server ends."""

MAX_HEAD_BYTES = 64 << 10
"""Bytes of a request's head: BLAST's URL API may have a query in its address."""

SWEEPS = 10
"""Ticks of 0.1 seconds between looks at all connections."""

GARBAGE_OBJECTS = 20_000
"""Objects that searches leave before cycles among them are looked for. By Python's default, 700, hundreds of searches
at a time are gone through for what two of them leave, and now and then all modules, which takes 0.1 s."""


@dataclass
class Connections:
    """Limits of connections, which all connections of a server share."""

    max_connections: int
    clock: Callable[[], float] = time.monotonic
    waiting: dict[GuardedProtocol, None] = field(default_factory=dict)
    """Connections without a complete request; the one that waits longest comes first."""


class GuardedProtocol(H11Protocol):
    """A connection with a time limit; the one that waits longest makes room for a new one."""

    started = 0.0
    """Time at which the wait for a request began."""
    n_bytes = 0
    """Bytes of the request until now."""
    _unsent, _unsent_since = 0, 0.0

    def __init__(self, *given: Any, limits: Connections, **named: Any) -> None:
        super().__init__(*given, **named)
        self._limits = limits

    def connection_made(self, transport: Any) -> None:
        """Begin; cut another connection or refuse this one if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.max_connections:
            oldest = next(iter(self._limits.waiting), None)
            if oldest is None:
                message = "the server has as many connections as it takes"
                self._refuse(ServerProblem("unavailable", message, retry_after=5))
                return
            del self._limits.waiting[oldest]  # `cut` ends it later
            oldest.cut()
        self._update_waiting()

    def data_received(self, data: bytes) -> None:
        """Read, and look whether the request is complete."""
        self.n_bytes += len(data)
        super().data_received(data)
        self._update_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._limits.waiting.pop(self, None)
        self._update_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._limits.waiting.pop(self, None)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP."""
        self._refuse(ServerProblem("broken", "the request is no HTTP/1.1, or its head is too long"))

    def _update_waiting(self) -> None:
        """Wait, unless there is a complete request."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._limits.waiting.pop(self, None)
        elif self not in self._limits.waiting and not self.transport.is_closing():
            self.started, self.n_bytes = self._limits.clock(), 0
            self._limits.waiting[self] = None

    def sweep(self, now: float) -> None:
        """End the connection if its client sends or receives too slowly; to be called from time to time."""
        if (
            self in self._limits.waiting
            and now - self.started > REQUEST_SECONDS + self.n_bytes / MIN_BYTES_PER_SECOND
        ):
            is_answered = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
            if self.n_bytes and not is_answered:
                self._refuse(ServerProblem("broken", "the request took too long to come"), 408)
            self.cut()
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > STALLED_SECONDS:
            self.cut()

    def _refuse(self, problem: ServerProblem, status: int = 0) -> None:
        """Send a problem, and end the connection."""
        if self.transport.is_closing():
            return
        body = json.dumps(problem.to_json()).encode("ascii")
        code = HTTPStatus(status or problem.status)
        head = f"HTTP/1.1 {code} {code.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        if problem.retry_after is not None:
            head += f"Retry-After: {problem.retry_after}\r\n"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body)
        self.transport.close()

    def cut(self) -> None:
        """End the connection at once, without the bytes that wait to be sent."""
        if self.conn.our_state is not h11.ERROR:
            self.transport.abort()


def bind(host: str, port: int) -> socket.socket:
    """Return a socket with an address, which does not listen yet; raise `OptionError` if that is not possible."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise OptionError("--host", host, "a name or an address of this machine, such as 127.0.0.1") from None
    family, kind, protocol, _, address = sorted(addresses, key=lambda each: each[0] != socket.AF_INET)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _bind_error(host, port, error) from None
    return listener


def _bind_error(host: str, port: int, error: OSError) -> OptionError:
    if error.errno == errno.EADDRINUSE:
        remedy = "another program listens there; 0 takes any that is free"
        return OptionError("--port", port, "one that is free", remedy)
    if error.errno in (errno.EACCES, errno.EPERM):
        return OptionError("--port", port, "one that this user may take", "those from 1024 are for all")
    return OptionError("--host", host, "an address of this machine", f"it cannot be had: {error.strerror}")


def collect_garbage_rarely() -> None:
    """Let Python look for cycles less often, and never among the objects that there are now."""
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)


def url_of(listener: socket.socket, root: str = "") -> str:
    """Return the URL of a socket for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{root}/"


def is_for_others(listener: socket.socket) -> bool:
    """Return whether other machines can reach a socket."""
    host: str = listener.getsockname()[0]
    return not (host.startswith("127.") or host == "::1")


def allow_connections(max_connections: int) -> int:
    """Allow this process the files of so many connections, and return how many connections it can have."""
    allowed = allow_files(max_connections + BACKLOG + OTHER_FILES)
    return max(1, min(max_connections, max(allowed - BACKLOG - OTHER_FILES, allowed // 4)))


class HttpServer(uvicorn.Server):
    """An application on a bound socket; `end` may be called from any thread and from a signal handler.

    ``forwarded`` are addresses of proxies whose headers name the client; ``grace`` is the number of seconds that
    requests have to end.
    """

    def __init__(
        self, app: FastAPI, listener: socket.socket, connections: Connections, *,
        forwarded: Sequence[str] = (), grace: int = GRACE_SECONDS,
    ) -> None:  # fmt: skip
        self._made, self._limits = listener, connections
        self._jobs: Jobs = app.state.jobs
        super().__init__(uvicorn.Config(
            app,
            http=functools.partial(GuardedProtocol, limits=connections),  # type: ignore[arg-type]  # makes one
            ws="none", lifespan="on", interface="asgi3", log_config=None, access_log=False,
            proxy_headers=bool(forwarded), forwarded_allow_ips=list(forwarded), server_header=False, backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=grace,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        ))  # fmt: skip

    @property
    def url(self) -> str:
        """URL for a browser on this machine."""
        return url_of(self._made, self._jobs.settings.root_path)

    def listen(self) -> None:
        """Accept connections; they wait until `serve_until_ended` reads from them."""
        self._made.listen(BACKLOG)

    def serve_until_ended(self) -> None:
        """Serve until `end` is called and requests have ended, or their time is over."""
        self.run(sockets=[self._made])

    def end(self) -> None:
        """Accept no more connections, let requests end, and return from `serve_until_ended`."""
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield

    def _connections(self) -> list[GuardedProtocol]:
        return list(self.server_state.connections)  # type: ignore[arg-type]  # all are made by our partial

    async def on_tick(self, counter: int) -> bool:
        """End connections that are too slow."""
        if counter % SWEEPS == 0:
            now = self._limits.clock()
            for each in self._connections():
                each.sweep(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; requests that wait for a job are answered with its progress."""
        self._jobs.begin_shutdown()
        await super().shutdown(sockets)
        if cancelled := list(self.server_state.tasks):
            await asyncio.wait(cancelled, timeout=REFUSAL_SECONDS)
        for each in self._connections():
            each.cut()
        await asyncio.sleep(0)


class _LineHandler(logging.Handler):
    """Passes messages on to a function, a line at a time."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a message on."""
        with contextlib.suppress(Exception):
            is_end = isinstance(record.exc_info, tuple) and isinstance(record.exc_info[1], asyncio.CancelledError)
            if not is_end:  # not a request that the end of the server cut off
                for line in record.getMessage().strip().splitlines():
                    self._say(printable(line))


@contextlib.contextmanager
def logging_to(say: Callable[[str], None], is_verbose: bool = False) -> Iterator[None]:
    """Pass messages of the server and its libraries to a function, a line at a time; if verbose, each request too."""
    handler = _LineHandler(say)
    levels = dict.fromkeys(("uvicorn", "asyncio", "python_multipart"), logging.ERROR)
    levels |= {"swsearch.server": logging.WARNING, "swsearch.server.requests": logging.WARNING - 10 * is_verbose}
    loggers = {logging.getLogger(name): level for name, level in levels.items()}
    before = {each: (each.propagate, each.level) for each in loggers}
    for each, level in loggers.items():
        each.addHandler(handler)
        each.propagate = False
        each.setLevel(level)
    try:
        yield
    finally:
        for each, (propagate, level) in before.items():
            each.removeHandler(handler)
            each.propagate = propagate
            each.setLevel(level)
