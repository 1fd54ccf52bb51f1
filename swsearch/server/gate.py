"""What every request passes before anything reads it, and every answer after: checks, limits, headers, counting.

This is plain ASGI, and no middleware of the framework's that wraps answers, so that streams stay streams and a client
that leaves is seen.
"""

from __future__ import annotations

import re
import secrets
import time
import traceback
from asyncio import CancelledError
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swsearch.errors import SwsearchError, printable
from swsearch.server.answers import API
from swsearch.server.auth import CLIENT_COOKIE, TOKEN_COOKIE, Hosts, Tokens, client_name
from swsearch.server.metrics import Metrics
from swsearch.server.origins import OWN_SITES, why_foreign
from swsearch.server.page_problems import answer_to
from swsearch.server.problems import ServerProblem, problem_of
from swsearch.server.settings import ServerSettings

OPEN_PATHS = ("/login", "/favicon.ico", "/robots.txt", f"{API}/ready")
"""What nobody needs a token for, and all below ``/static/``."""

BLAST_PATHS = ("Blast.cgi", "blast/Blast.cgi")
"""Where clients of BLAST, which know no headers of ours, may have a token before the path."""

LARGE_BODY = 1 << 20
"""Bytes of a request from which it is refused while others fill the memory."""

LARGE_BODIES = 4
"""Requests of the largest size that may be there at a time."""

_BEFORE_BLAST = re.compile(r"/(?!blast/)[^/]+(?=/+(blast/+)?Blast\.cgi)")

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer that does not say otherwise."""

_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Gate:
    """Lets requests in, or answers them with a problem.

    Parameters
    ----------
    app : ASGI application
        What is behind it.
    settings : ServerSettings
        Limits, tokens, hosts.
    metrics : Metrics
        Counts requests.
    log : callable
        Takes a line about a failure of ours.
    access_log : callable or None
        Takes a line about each request.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        metrics: Metrics,
        log: Callable[[str], None],
        access_log: Callable[[str], None] | None = None,
    ) -> None:
        self._app, self._metrics, self._log, self._access_log = app, metrics, log, access_log
        self._tokens, self._hosts = Tokens(settings.tokens), Hosts(settings.hosts)
        self._root = settings.root_path
        self.most_bytes = settings.limits.body
        self.most_held = max(LARGE_BODIES * self.most_bytes, 256 * LARGE_BODY)
        self.n_held = 0
        """Bytes of the bodies of all requests that are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        answer, body = _Answer(send), _Body(self, receive)
        self._place(scope)
        try:
            self._check(scope)
            await self._app(scope, body.receive, answer.send)
        except ClientDisconnect:
            answer.status = answer.status or 499
        except CancelledError:  # the server ends, and has waited long enough
            if answer.status:
                raise
            ending = ServerProblem("unavailable", "the server is ending; ask again when it is back", retry_after=10)
            await answer_to(scope, ending)(scope, receive, answer.send)
        except Exception as error:
            if answer.status:
                self._tell(scope, error)
                raise  # what is half sent must not look complete: the connection is cut
            await answer_to(scope, self._problem_of(scope, error))(scope, receive, answer.send)
        finally:
            self.n_held -= body.n_bytes
            self._count(scope, answer.status or 499, time.perf_counter() - begun)

    def _place(self, scope: Scope) -> None:
        """Say what stands before the paths; a proxy may have taken it away."""
        root, path = self._root, scope["path"]
        if root and not path.startswith(f"{root}/"):
            path = f"{root}{'/' if path == root else path}"
        scope["root_path"], scope["path"] = root, path

    def _problem_of(self, scope: Scope, error: Exception) -> ServerProblem:
        problem = problem_of(error)
        return self.bug(scope, error) if problem.code == "failed" else problem

    def bug(self, scope: Scope, error: BaseException) -> ServerProblem:
        """Log an error that is nobody's but ours, and return what is told of it."""
        number = secrets.token_hex(4)
        self._log(f"error {number}: {self._line_of(scope)}")
        for line in "".join(traceback.format_exception(error)).splitlines():
            self._log(f"error {number}: {line}")
        return ServerProblem("failed", f"the server failed; its log says more under error {number}")

    def _tell(self, scope: Scope, error: Exception) -> None:
        if isinstance(error, SwsearchError):
            self._log(f"{self._line_of(scope)}: ended amid its answer: {error}")
        else:
            self.bug(scope, error)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_origin(scope, headers)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self.most_bytes:
            raise _too_large(self.most_bytes)
        cookies = _cookies(headers.get("cookie", ""))
        address = (scope.get("client") or ("local", 0))[0]
        owner = self._owner(scope, headers, cookies) if self._tokens else None
        scope["state"]["client"] = client_name(owner, address, cookies.get(CLIENT_COOKIE, ""))

    def _check_host(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if not self._hosts.may_be(host):
            raise ServerProblem(
                "not_allowed", f"Host: got {printable(host[:80])!r}, expected the server's address or localhost; "
                "a name is allowed with swsearch serve --allow-host NAME",
            )  # fmt: skip

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Refuse what a page elsewhere lets a browser do here; what changes something by GET looks at the state."""
        why = why_foreign(scope, self._hosts)
        scope.setdefault("state", {})["why_foreign"] = why
        if scope["method"] in SAFE_METHODS:
            is_site_own = headers.get("sec-fetch-site", "") in ("", *OWN_SITES)
            if is_site_own or headers.get("sec-fetch-mode") == "navigate":
                return
        if why:
            raise ServerProblem("not_allowed", why)

    def _owner(self, scope: Scope, headers: Headers, cookies: dict[str, str]) -> str | None:
        """Return whose token a request brings; None where none is needed."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        owner = self._tokens.owner(given.strip()) if kind.lower() == "bearer" else None
        owner = owner or self._tokens.owner_of_cookie(cookies.get(TOKEN_COOKIE, ""))
        path = scope["path"].removeprefix(self._root)
        token, _, rest = path[1:].partition("/")
        if not owner and rest in BLAST_PATHS and (owner := self._tokens.owner(token)):
            scope["root_path"] = f"{self._root}/{token}"  # links of the answer lead through it too
        if owner or path in OPEN_PATHS or path.startswith("/static/"):
            return owner
        raise ServerProblem(
            "not_authenticated", "expected a token of this server: Authorization: Bearer TOKEN; in a browser: /login"
        )

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.count(scope["method"], route, status, seconds)
        if self._access_log is not None:
            who = (scope.get("client") or ("local", 0))[0]
            self._access_log(f"{who} {self._line_of(scope)} {status} {1000 * seconds:.1f} ms")

    def _line_of(self, scope: Scope) -> str:
        """Return a request as the log has it: without its parameters, and without tokens."""
        parts = str(scope["path"]).removeprefix(self._root).split("/")
        shown = ["..." if self._tokens.owner(part) else part for part in parts]
        path = self._root + _BEFORE_BLAST.sub("/...", "/".join(shown))
        return printable(f"{scope['method']} {path[:200]}")


class _Answer:
    """Sends an answer with the headers that all have, and knows its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = list(message.get("headers", ()))
            there = {name.lower() for name, _ in given}
            message["headers"] = given + [header for header in _RAW_HEADERS if header[0] not in there]
        await self._send(message)


class _Body:
    """Receives a request, and refuses it where it becomes too long, or all that are there together do."""

    def __init__(self, gate: Gate, receive: Receive) -> None:
        self._gate, self._receive = gate, receive
        self.n_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        n_bytes = len(message.get("body", b""))
        self.n_bytes += n_bytes
        self._gate.n_held += n_bytes
        if self.n_bytes > self._gate.most_bytes:
            raise _too_large(self._gate.most_bytes)
        if self.n_bytes > LARGE_BODY and self._gate.n_held > self._gate.most_held:
            raise ServerProblem("unavailable", "the server reads as much as it can now; ask again", retry_after=5)
        return message


def _too_large(most: int) -> ServerProblem:
    return ServerProblem(
        "too_large", f"the request is too large, expected at most {most:,} bytes; send the queries in several jobs, "
        "or let the server take more: swsearch serve --max-body SIZE", expected=f"at most {most} bytes",
    )  # fmt: skip


def _cookies(header: str) -> dict[str, str]:
    if TOKEN_COOKIE not in header and CLIENT_COOKIE not in header:
        return {}
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(header)
    except CookieError:
        return {}
    return {name: each.value for name, each in jar.items()}
