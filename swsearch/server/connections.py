"""The connections of a server: how many there may be, and how long each may take for a request or for an answer.

Whoever sends a byte now and then, and never a whole request, holds a connection. These are the first to go when there
are as many connections as there may be, the oldest first, and all go after some time. So those who ask for something
are served, however many others there are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from swsearch.server.problems import ServerProblem

REQUEST_SECONDS = 30.0
"""In which a request must be there, and `LEAST_RATE` adds to it."""

LEAST_RATE = 16 << 10
"""Bytes a second: a long request may take so much longer."""

STALLED_SECONDS = 120.0
"""After which a connection is cut whose client takes nothing of its answer."""


class Connections:
    """The connections of a server.

    Parameters
    ----------
    most : int
        That there may be.
    request_seconds, stalled_seconds : float, optional
        See `REQUEST_SECONDS` and `STALLED_SECONDS`.
    clock : callable, optional
        Seconds.
    """

    def __init__(
        self,
        most: int,
        request_seconds: float = REQUEST_SECONDS,
        stalled_seconds: float = STALLED_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most, self._request_seconds, self._stalled_seconds = most, request_seconds, stalled_seconds
        self.clock = clock
        self._all: set[GuardedProtocol] = set()
        self._waiting: dict[GuardedProtocol, None] = {}
        """Those without a complete request; who waits longest comes first."""

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, one: GuardedProtocol) -> bool:
        """Take a connection, for which another one may have to go; False if none can."""
        if len(self._all) >= self.most:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                return False
            oldest.cut()
            self.end(oldest)
        self._all.add(one)
        self.wait(one)
        return True

    def wait(self, one: GuardedProtocol) -> None:
        """Take note that a connection has no request, or not all of it."""
        if one in self._all and one not in self._waiting:
            one.begun, one.n_bytes = self.clock(), 0
            self._waiting[one] = None

    def work(self, one: GuardedProtocol) -> None:
        """Take note that a request is complete."""
        self._waiting.pop(one, None)

    def end(self, one: GuardedProtocol) -> None:
        """Take note that a connection is gone."""
        self._all.discard(one)
        self._waiting.pop(one, None)

    def sweep(self) -> None:
        """End those that take too long; to be called from time to time."""
        now = self.clock()
        for one in list(self._waiting):
            if now - one.begun > self._request_seconds + one.n_bytes / LEAST_RATE:
                one.give_up()
        for one in list(self._all):
            if one.has_stalled(now, self._stalled_seconds):
                one.cut()

    def cut_all(self) -> None:
        """End all at once."""
        for one in list(self._all):
            one.cut()


class GuardedProtocol(H11Protocol):
    """A connection that is counted and timed.

    Parameters
    ----------
    connections : Connections
        Those of the server.
    """

    def __init__(self, *given: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*given, **named)
        self._guard = connections
        self.begun, self.n_bytes = 0.0, 0
        self._unsent, self._unsent_since = 0, 0.0

    def connection_made(self, transport: Any) -> None:
        """Begin; refuse if there are too many."""
        super().connection_made(transport)
        if not self._guard.begin(self):
            self._refuse(
                ServerProblem("unavailable", "the server has as many connections as it takes", retry_after=5)
            )

    def data_received(self, data: bytes) -> None:
        """Take what was sent."""
        self.n_bytes += len(data)
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._guard.work(self)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._guard.end(self)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(ServerProblem("broken", "the request is no HTTP/1.1, or its head is too long"))

    def _look(self) -> None:
        """Say whether there is a complete request."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._guard.work(self)
        else:
            self._guard.wait(self)

    def give_up(self) -> None:
        """End a connection that has sent no complete request; tell so, if it has begun one."""
        if self.n_bytes and not self._is_answered():
            self._refuse(ServerProblem("broken", "the request took too long to come"), 408)
        self.cut()

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete

    def _refuse(self, problem: ServerProblem, status: int = 0) -> None:
        """Answer with a problem, and end."""
        if self.transport.is_closing():
            return
        body = json.dumps(problem.stated()).encode("ascii")
        code = status or problem.status
        head = [
            f"HTTP/1.1 {code} {_phrase(code)}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        if problem.retry_after is not None:
            head.append(f"Retry-After: {problem.retry_after}")
        self.transport.write("\r\n".join([*head, "", ""]).encode("ascii") + body)
        self.transport.close()

    def cut(self) -> None:
        """End at once, whatever is not sent."""
        if self.conn.our_state is not h11.ERROR:
            self.transport.abort()

    def has_stalled(self, now: float, seconds: float) -> bool:
        """Say whether nothing of what is to be sent was taken for so long."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
            return False
        return now - self._unsent_since > seconds


def _phrase(status: int) -> str:
    from http import HTTPStatus

    return HTTPStatus(status).phrase
