"""Sends hostile requests as they are, and says what is wrong with the answers."""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import re
import select
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.agreement.fuzz_requests import MARK, HostileRequest
from benchmarks.support.timing import say
from swsearch.server.errors import STATUSES

ANSWER_SECONDS = 60.0
"""In which a request that is one must be answered."""

LOOK_SECONDS = {"short": 0.02, "wrong": 0.3}
"""That is waited for an answer to what is no whole request: the server may wait for its end."""

MEANT = (503, 507)
"""Statuses from 500 on that say what is wrong, and not that the server failed."""

LEAKS = (b"Traceback (most recent", b"site-packages", b'.py", line', b"sqlite3.", b"root:x:0:0")
"""What no answer may hold, beside the names of the server's folders."""

_IDENTIFIER = re.compile(rb"\b[A-Z0-9]{20}\b")

RECENT = 40
"""Jobs that were submitted by hostile requests and are there to be cancelled and read by others."""


class HostileAnswer(NamedTuple):
    """What came back."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """Return a header; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


def problem_with(request: HostileRequest, answer: HostileAnswer, folders: Iterable[bytes]) -> str:
    """Say what is wrong with an answer; empty if nothing is."""
    status, body = answer.status, answer.body
    kind = answer.header("content-type").partition(";")[0]
    if status >= 500 and status not in MEANT:
        return f"status {status}"
    if leak := next((each for each in (*LEAKS, *folders) if each in body), b""):
        return f"tells {leak!r}"
    if any(MARK in name.lower() for name, _ in answer.headers):
        return "has a header of the request's"
    place = answer.header("location")
    if place and (not place.startswith("/") or place.startswith(("//", "/\\"))):
        return f"leads to {place!r}"
    if kind == "text/html":
        if f"<{MARK}".encode() in body:
            return "has markup of the request's"
        if not answer.header("content-security-policy"):
            return "is a page without a policy"
    if status < 400 and answer.header("x-content-type-options") != "nosniff":
        return "may be taken for another type"
    return _problem_of_refusal(request, answer, kind) if status >= 400 and body else ""


def _problem_of_refusal(request: HostileRequest, answer: HostileAnswer, kind: str) -> str:
    if kind == "text/html":
        is_page = b"<html" in answer.body[:200] and b"</html>" in answer.body[-20:]
        if b"Status=READY" in answer.body and request.endpoint[1].endswith("Blast.cgi"):
            return "is a refusal that clients take for a report"
        return "" if is_page else "is half a page"
    if kind != "application/json":
        return f"is a refusal of type {kind!r}"
    try:
        error = json.loads(answer.body)["error"]
        is_ours = STATUSES[error["code"]] in (answer.status, 400) and error["message"]
    except (ValueError, KeyError, TypeError):
        is_ours = False
    return "" if is_ours else f"is a refusal that is none of ours: {answer.body[:200]!r}"


@dataclass
class Tally:
    """How requests of each endpoint were answered, and what was wrong; may be used by several threads."""

    statuses: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    recent: deque[tuple[str, str]] = field(default_factory=collections.deque)
    """Identifiers of jobs that hostile requests submitted, with the cookie of whoever did."""
    guard: threading.Lock = field(default_factory=threading.Lock)

    def count(self, request: HostileRequest, status: str) -> None:
        """Count an answer."""
        with self.guard:
            self.statuses.setdefault(request.endpoint, Counter())[status] += 1

    def blame(self, request: HostileRequest, problem: str, seed: int) -> None:
        """Keep what is wrong, with the request."""
        with self.guard:
            sent = request.raw if len(request.raw) <= 600 else request.raw[:600] + b"..."
            self.wrong.append(f"{' '.join(request.endpoint)}, seed {seed}: {problem}; sent {sent!r}")
            say(self.wrong[-1])


class Sender:
    """A connection that is made anew when it was closed.

    Parameters
    ----------
    port : int
        Of the server.
    tally : Tally
        Counts.
    folders : sequence of bytes
        Names that no answer may tell.
    """

    def __init__(self, port: int, tally: Tally, folders: Sequence[bytes]) -> None:
        self._port, self._tally, self._folders = port, tally, folders
        self._socket: socket.socket | None = None

    def close(self, *, is_rude: bool = False) -> None:
        """Close the connection, or break it."""
        if self._socket is not None:
            if is_rude:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._socket.close()
            self._socket = None

    def send(self, request: HostileRequest, seed: int) -> None:
        """Send a request, and count and judge what comes."""
        try:
            answer = self._asked(request)
        except TimeoutError:
            self._tally.blame(request, "no answer", seed)
            self._tally.count(request, "none")
            self.close()
            return
        except http.client.HTTPException as error:
            self._tally.blame(request, f"the answer is no HTTP: {error!r}", seed)
            self._tally.count(request, "none")
            self.close()
            return
        self._tally.count(request, str(answer.status) if answer else "left")
        if answer is None:
            return
        if problem := problem_with(request, answer, self._folders):
            self._tally.blame(request, problem, seed)
        if answer.status in (202, 303):
            self._keep(answer)

    def _asked(self, request: HostileRequest) -> HostileAnswer | None:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), ANSWER_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            is_fresh = True
        else:
            is_fresh = False
        # the server may have closed it, or refuse before all is sent: what it says then is read
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(request.raw)
        if request.framing != "whole":
            try:
                ready, _, _ = select.select([self._socket], [], [], LOOK_SECONDS[request.framing])
                return self._read(request) if ready else None
            except (http.client.HTTPException, OSError):
                return None
            finally:
                self.close(is_rude=len(request.raw) % 2 == 0)
        try:
            return self._read(request)
        except (ConnectionError, http.client.RemoteDisconnected):
            self.close()
            if is_fresh:
                return None
            return self._asked(request)

    def _read(self, request: HostileRequest) -> HostileAnswer | None:
        assert self._socket is not None
        with http.client.HTTPResponse(self._socket, method=request.method) as response:
            response.begin()
            answer = HostileAnswer(response.status, response.getheaders(), response.read())
            if response.will_close:
                self.close()
        return answer

    def _keep(self, answer: HostileAnswer) -> None:
        """Take note of a job; the oldest is removed for it."""
        found = _IDENTIFIER.search(answer.header("location").encode())
        if found is None:
            return
        cookie = answer.header("set-cookie").partition(";")[0]
        with self._tally.guard:
            self._tally.recent.append((found[0].decode(), cookie))
            gone = self._tally.recent.popleft() if len(self._tally.recent) > RECENT else None
        if gone is not None:
            head = f"DELETE /api/v1/jobs/{gone[0]} HTTP/1.1\r\nHost: localhost\r\nCookie: {gone[1]}\r\n\r\n"
            removal = HostileRequest(("", ""), "DELETE", "", raw=head.encode())
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._asked(removal)
