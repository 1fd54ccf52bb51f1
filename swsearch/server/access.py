"""ASGI middleware for every request: host, origin, token, size, response headers.

It is plain ASGI, because middleware of the framework would buffer streams and hide clients that disconnect.

Browsers send ``Sec-Fetch-Site`` only over HTTPS and to localhost, ``Origin`` with forms but not with links and
pictures, and ``Referer`` unless the page forbids it. A page cannot forge these headers, and cannot change
``User-Agent`` in a request to another site. So a browser's request must prove its origin; a program's needs no proof.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
import time
import traceback
from asyncio import CancelledError
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swsearch.client.urls import API_PATH, DEFAULT_PORTS
from swsearch.errors import SwsearchError, printable
from swsearch.server.errors import MSA_PATHS, ServerProblem, problem_of, respond
from swsearch.server.settings import ServerSettings

if TYPE_CHECKING:
    from swsearch.server.jobs import Jobs


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
"""Other methods count as one, since a client may invent any number of them."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
"""Seconds."""


class Metrics(Collector):
    """Counts requests, and reads the other numbers on a request of Prometheus."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a line with the start of each counter
        self._registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter(
            "swsearch_requests", "Requests by route and status.", labels, registry=self._registry
        )
        self._seconds = Histogram(
            "swsearch_request_seconds", "Seconds until a request was answered, by route.", ["route"],
            buckets=BUCKETS, registry=self._registry,
        )  # fmt: skip
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return prometheus_client.generate_latest(self._registry)

    def describe(self) -> list[Any]:
        """Return nothing, so that registration does not call `collect` before the server runs."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the current numbers."""
        counts = self._jobs.store.counts()
        jobs = GaugeMetricFamily("swsearch_jobs", "Jobs that are kept, by state.", labels=["state"])
        for state, number in sorted(counts.items()):
            jobs.add_metric([state], number)
        yield jobs
        yield GaugeMetricFamily("swsearch_queue_length", "Jobs that wait.", value=counts.get("queued", 0))
        cells, seconds = self._jobs.scoring_totals()
        yield CounterMetricFamily("swsearch_cells", "Matrix cells that were scored.", value=cells)
        yield CounterMetricFamily("swsearch_scoring_seconds", "Seconds in which they were.", value=seconds)
        rate = cells / seconds / 1e9 if seconds else 0.0
        yield GaugeMetricFamily("swsearch_gcups", "Billions of cells a second of scoring, since start.", value=rate)
        ready = GaugeMetricFamily(
            "swsearch_database_ready", "Whether a database can be searched.", labels=["database"]
        )
        for name, database in self._jobs.databases.items():
            ready.add_metric([name], float(database.check_files()[0] == "ready"))
        yield ready


log = logging.getLogger(__name__)
request_log = logging.getLogger("swsearch.server.requests")
"""Takes a line about each request, if the administrator asks for them."""

TOKEN_COOKIE = "swsearch-token"  # its name
"""Says which token a browser has logged in with; the value is of `Tokens.cookie`."""

CLIENT_COOKIE = "swsearch"
"""Tells browsers with one address or token apart: a random text."""

OPEN_PATHS = ("/login", "/favicon.ico", "/robots.txt", f"{API_PATH}/ready")
"""Paths that need no token, besides those below ``/static/``."""

BLAST_PATHS = ("Blast.cgi", "blast/Blast.cgi")
"""Paths before which clients of BLAST, which cannot send our headers, may have a token, as before `MSA_PATHS`."""

LARGE_BODY, LARGE_BODIES = 1 << 20, 4
"""Bytes from which a request is large, and number of requests of the maximum size that memory may hold."""

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every response that does not set them."""

OWN_SITES = ("same-origin", "none")
"""Values of ``Sec-Fetch-Site`` for this server's own pages and for an address that the user typed."""

BROWSER_HEADERS = ("sec-fetch-dest", "sec-fetch-user", "upgrade-insecure-requests")
"""Headers that only browsers send; Node.js sends ``Sec-Fetch-Mode: cors`` and ``Accept-Language``, too."""

_BROWSER = re.compile(r"Mozilla/(?!.*PowerShell/)")

_CLIENT = re.compile(r"[A-Za-z0-9_-]{16,64}")

_BEFORE_BLAST = re.compile(r"/(?!blast/)[^/]+(?=/+((blast/+)?Blast\.cgi|ticket/|tickets$|result/|queue$))")

_NO_PROOF = (
    "the request looks like a browser's and names no page, expected a request of this server's own pages; "
    "a program that is not a browser: send a User-Agent without Mozilla"
)


class Tokens:
    """The tokens of a server. Digests are compared, so that the time of a look says nothing of a token."""

    def __init__(self, tokens: Collection[str]) -> None:
        self._owners = {_digest(token): _digest(token)[:32] for token in tokens}
        self._of_cookies = {_digest(self.cookie(token)): _digest(token)[:32] for token in tokens}

    def __bool__(self) -> bool:
        return bool(self._owners)

    def owner(self, token: str) -> str | None:
        """Return the name of a token's owner; None if there is no such token."""
        return self._owners.get(_digest(token))

    def owner_of_cookie(self, value: str) -> str | None:
        """Return the name of the owner of a cookie's token; None if no token has it."""
        return self._of_cookies.get(_digest(value))

    @staticmethod
    def cookie(token: str) -> str:
        """Return what a browser stores instead of a token, which cannot be computed from it."""
        return hmac.new(token.encode("utf-8", "surrogatepass"), b"swsearch page", hashlib.sha256).hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def client_name(owner: str | None, address: str, cookie: str) -> str:
    """Return the name of a client: its token or its address, and its browser if it has a cookie of ours."""
    who = f"token:{owner}" if owner else address
    return f"{who}/{cookie}" if _CLIENT.fullmatch(cookie) else who


class Hosts:
    """The names that requests may use for a server; ``*.lab.org`` is all of a domain, ``*`` any.

    A page elsewhere can let its own name lead to this server's address, and would then have the right to read its
    responses; so a request that names another host is refused. Addresses cannot be names of others.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = {"localhost", *(name.lower().rstrip(".") for name in names)}
        self.given = frozenset(
            name for name in self.names if name != "localhost" and "*" not in name and not _is_address(name)
        )
        """Names of this server alone: neither patterns nor those that every machine has."""

    def is_allowed(self, header: str) -> bool:
        """Return whether a request may have this ``Host``."""
        text = header.strip().lower()
        if text.startswith("["):
            name = text[1:].partition("]")[0]
        else:
            name = text.rpartition(":")[0] if text.count(":") == 1 else text.rstrip(".")
        if not name or "*" in self.names or name in self.names or _is_address(name):
            return True
        return any(pattern.startswith("*.") and name.endswith(pattern[1:]) for pattern in self.names)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class WebOrigin(NamedTuple):
    """Scheme, host and port of a URL; ``port`` is None if the URL has none."""

    scheme: str
    host: str
    port: int | None

    @classmethod
    def from_url(cls, url: str) -> WebOrigin | None:
        """Return the origin of a URL, or None if the URL has no host."""
        try:
            parts = urlsplit(url)
            return cls(parts.scheme, parts.hostname, parts.port) if parts.hostname else None
        except ValueError:
            return None

    def port_with(self, scheme: str) -> int | None:
        """Return the port, by default that of a scheme."""
        return self.port if self.port is not None else DEFAULT_PORTS.get(scheme)

    @property
    def as_text(self) -> str:
        """The origin as browsers write it."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{name}" + (f":{self.port}" if self.port is not None else "")


def foreign_reason(scope: Scope, hosts: Hosts) -> str:
    """Return why another site's page may have sent a request; empty if none can have."""
    headers = Headers(scope=scope)
    if site := headers.get("sec-fetch-site"):
        if site in OWN_SITES:
            return ""
        return f"Sec-Fetch-Site: got {_quoted(site)}, expected same-origin; open this server's own page"
    for name in ("Origin", "Referer"):
        if value := headers.get(name):
            origin = WebOrigin.from_url(value)
            if origin is not None and _is_own(origin, scope, headers, hosts):
                return ""
            own = WebOrigin.from_url(f"{scope['scheme']}://{headers.get('host', '')}")
            expected = f", expected {_quoted(own.as_text)}" if own else ""
            return (
                f"{name}: got {_quoted(origin.as_text if origin else value)}{expected}; open this server's own page, "
                "and let a proxy pass Host with its port, and X-Forwarded-Proto"
            )
    return _NO_PROOF if _is_browser(headers) else ""


def _is_browser(headers: Headers) -> bool:
    return (
        _BROWSER.match(headers.get("user-agent", "")) is not None
        or headers.get("sec-fetch-mode", "cors") != "cors"
        or any(name in headers for name in BROWSER_HEADERS)
    )


def _is_own(origin: WebOrigin, scope: Scope, headers: Headers, hosts: Hosts) -> bool:
    """Return whether an origin is the one that a browser knows this server by."""
    port = origin.port_with(origin.scheme)
    names = set()
    for own, is_behind_proxy in _addresses(scope, headers, hosts):
        names.add(own.host)
        if own.host != origin.host:
            continue
        # a proxy may end TLS and not pass the scheme on
        schemes = {own.scheme, "https"} if is_behind_proxy else {own.scheme}
        if origin.scheme in schemes and own.port_with(origin.scheme) == port:
            return True
    # a proxy may put its own Host: then the administrator's names count, without a port
    is_given = origin.host in hosts.given and origin.host not in names
    return is_given and port == DEFAULT_PORTS.get(origin.scheme)


def _addresses(scope: Scope, headers: Headers, hosts: Hosts) -> Iterator[tuple[WebOrigin, bool]]:
    """Yield the addresses that a request asked for, and whether a proxy was asked instead of this server."""
    scheme = scope["scheme"]
    listening = (scope.get("server") or ("", None))[1]
    if own := WebOrigin.from_url(f"{scheme}://{headers.get('host', '')}"):
        yield own, own.port_with(scheme) != listening
    for each in headers.get("x-forwarded-host", "").split(","):
        own = WebOrigin.from_url(f"{scheme}://{each.strip()}")
        if own and own.host in hosts.given:  # others' names could lead here, too
            yield own, True


def _quoted(text: str) -> str:
    return repr(printable(text[:80]))


class Access:
    """Passes requests on, or answers them with a problem; counts and logs all."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._tokens, self._hosts = Tokens(settings.tokens), Hosts(settings.hosts)
        self._root = settings.root_path
        self.max_bytes = settings.limits.body
        self.max_held = max(LARGE_BODIES * self.max_bytes, 256 * LARGE_BODY)
        self.n_held = 0
        """Bytes of the bodies of all requests that are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, n_bytes = time.perf_counter(), 0, 0

        def hold(size: int) -> None:
            """Count bytes in memory until the request ends; raise ``unavailable`` if all requests hold too many."""
            nonlocal n_bytes
            n_bytes += size
            self.n_held += size
            if n_bytes > LARGE_BODY and self.n_held > self.max_held:
                raise ServerProblem("unavailable", "the server reads as much as it can now; ask again", retry_after=5)

        async def received() -> Message:
            message = await receive()
            size = len(message.get("body", b""))
            if n_bytes + size > self.max_bytes:
                raise self._too_large()
            hold(size)
            return message

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        root, path = self._root, scope["path"]
        if root and not path.startswith(f"{root}/"):  # a proxy may have removed it
            path = f"{root}{'/' if path == root else path}"
        scope["root_path"], scope["path"] = root, path
        scope.setdefault("state", {})["hold"] = hold
        try:
            self._check(scope)
            await self._app(scope, received, answered)
        except ClientDisconnect:
            status = status or 499
        except CancelledError:  # the server ends, and has waited long enough
            if status:
                raise
            ending = ServerProblem("unavailable", "the server is ending; ask again when it is back", retry_after=10)
            await respond(scope, ending)(scope, receive, answered)
        except Exception as error:
            if status:  # a part of the response must not look complete: the connection is cut
                if isinstance(error, SwsearchError):
                    log.error("%s: ended amid its answer: %s", self._line_of(scope), error)
                else:
                    self._log_bug(scope, error)
                raise
            problem = problem_of(error)
            if problem.code == "failed":
                number = self._log_bug(scope, error)
                problem = ServerProblem("failed", f"the server failed; its log says more under error {number}")
            await respond(scope, problem)(scope, receive, answered)
        finally:
            self.n_held -= n_bytes
            self._count(scope, status or 499, time.perf_counter() - started)

    def _log_bug(self, scope: Scope, error: Exception) -> str:
        """Log a traceback under a number, and return the number."""
        number = secrets.token_hex(4)
        log.error("error %s: %s", number, self._line_of(scope))
        for line in "".join(traceback.format_exception(error)).splitlines():
            log.error("error %s: %s", number, line)
        return number

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._hosts.is_allowed(host):
            raise ServerProblem(
                "not_allowed", f"Host: got {printable(host[:80])!r}, expected the server's address or localhost; "
                "a name is allowed with swsearch serve --allow-host NAME",
            )  # fmt: skip
        self._check_origin(scope, headers)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self.max_bytes:
            raise self._too_large()
        cookies = cookie_parser(headers.get("cookie", ""))
        address = (scope.get("client") or ("local", 0))[0]
        owner = self._owner(scope, headers, cookies) if self._tokens else None
        scope["state"]["client"] = client_name(owner, address, cookies.get(CLIENT_COOKIE, ""))

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests of other sites' pages; a route that changes something by GET reads ``why_foreign``."""
        why = foreign_reason(scope, self._hosts)
        scope.setdefault("state", {})["why_foreign"] = why
        if scope["method"] in SAFE_METHODS:
            is_site_own = headers.get("sec-fetch-site", "") in ("", *OWN_SITES)
            if is_site_own or headers.get("sec-fetch-mode") == "navigate":
                return
        if why:
            raise ServerProblem("not_allowed", why)

    def _owner(self, scope: Scope, headers: Headers, cookies: dict[str, str]) -> str | None:
        """Return the owner of a request's token; None if there is none and the path needs none."""
        kind, _, token_given = headers.get("authorization", "").partition(" ")
        owner = self._tokens.owner(token_given.strip()) if kind.lower() == "bearer" else None
        owner = owner or self._tokens.owner(headers.get("x-api-key", ""))  # as Boltz sends it
        owner = owner or self._tokens.owner_of_cookie(cookies.get(TOKEN_COOKIE, ""))
        path = scope["path"].removeprefix(self._root)
        token, _, rest = path[1:].partition("/")
        is_foreign_api = rest in BLAST_PATHS or f"/{rest}".startswith(MSA_PATHS)
        if not owner and is_foreign_api and (owner := self._tokens.owner(token)):
            scope["root_path"] = f"{self._root}/{token}"  # links of the answer lead through it too
        if owner or path in OPEN_PATHS or path.startswith("/static/"):
            return owner
        raise ServerProblem(
            "not_authenticated", "expected a token of this server: Authorization: Bearer TOKEN; in a browser: /login"
        )

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.count(scope["method"], route, status, seconds)
        if request_log.isEnabledFor(logging.INFO):
            who = (scope.get("client") or ("local", 0))[0]
            request_log.info("%s %s %d %.1f ms", who, self._line_of(scope), status, 1000 * seconds)

    def _line_of(self, scope: Scope) -> str:
        """Return a request for the log, without parameters and tokens."""
        parts = str(scope["path"]).removeprefix(self._root).split("/")
        path_parts = ["..." if self._tokens.owner(part) else part for part in parts]
        path = self._root + _BEFORE_BLAST.sub("/...", "/".join(path_parts))
        return printable(f"{scope['method']} {path[:200]}")

    def _too_large(self) -> ServerProblem:
        expected = f"at most {self.max_bytes:,} bytes"
        message = (
            f"the request is too large, expected {expected}; send the queries in several jobs, or let the server "
            "take more: swsearch serve --max-body SIZE"
        )
        return ServerProblem("too_large", message, expected=f"at most {self.max_bytes} bytes")
