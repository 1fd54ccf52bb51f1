"""HTTP requests to a server through httpx, with retries.

A request is repeated while the server is busy or out of reach. An interrupted download continues where it stopped.
"""

from __future__ import annotations

import ipaddress
import json
import ssl
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from socket import gaierror
from typing import Any

from swsearch.client.urls import API_PATH, TOKEN_VARIABLE, ServerUrl
from swsearch.errors import InputError, ServerError, printable
from swsearch.processors import OwnProcess
from swsearch.version import version

try:
    import httpx
except ModuleNotFoundError:
    raise InputError("a search on a server needs httpx; install it with pip install 'swsearch[client]'") from None

CONNECT_SECONDS = 20.0
"""Seconds within which a server must accept a connection."""

UNREACHABLE_SECONDS, BUSY_SECONDS = 300.0, 3600.0
"""Seconds for which a server may be out of reach, e.g. while it restarts, and for which it may be busy."""

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0
"""Seconds between attempts; a pause is twice the one before."""

MAX_JSON = 64 << 20
"""Bytes of an answer in JSON."""

MAX_MESSAGE = 2000
"""Characters of a server's message."""

CLIENT_ERROR_CODES = (
    "broken",
    "not_found",
    "not_possible",
    "conflict",
    "expired",
    "too_large",
    "wrong_type",
    "wrong",
)
"""Codes of problems that the request has; all others are the server's."""

ServerNotice = Callable[[str], None]
"""Called with a sentence when the client waits for the server."""


class PassingError(ServerError):
    """A server is busy or out of reach; a retry may help.

    ``seconds`` is the wait that a busy server requests; None if the server is out of reach.
    """

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class NotASearchServerError(ServerError):
    """The address is not a swsearch server."""


class Retries:
    """Waits before the next attempt, each time longer, and gives up in the end."""

    def __init__(self, notice: ServerNotice) -> None:
        self._notice = notice
        self.reset()

    def reset(self) -> None:
        """Start anew, because an attempt has succeeded."""
        self._since: float | None = None
        self._pause, self._last = FIRST_PAUSE_SECONDS, ""

    def wait(self, error: PassingError) -> None:
        """Wait; raise the error if the time is over."""
        pause = self._pause if error.seconds is None else max(error.seconds, FIRST_PAUSE_SECONDS)
        limit = UNREACHABLE_SECONDS if error.seconds is None else BUSY_SECONDS
        self._since = time.monotonic() if self._since is None else self._since
        if time.monotonic() - self._since + pause > limit:
            raise error
        if str(error) != self._last:
            self._last = str(error)
            self._notice(f"{error}; trying again")
        time.sleep(pause)
        self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)


class Connection:
    """Sends requests to a server. Threads may share it; a forked process opens its own.

    ``timeout`` is the number of seconds without a byte after which the server counts as out of reach. ``notice`` gets
    a sentence when the client waits for the server.
    """

    def __init__(self, url: ServerUrl, token: str, timeout: float, notice: ServerNotice | None = None) -> None:
        if not token.isascii() or (token and not token.isprintable()) or " " in token:
            raise InputError("token: got other characters, expected letters, digits and -._~")
        self.url, self.timeout, self._token, self._notice = url, timeout, token, notice or (lambda _: None)
        self._headers = {
            "User-Agent": f"swsearch/{version()}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}
        self._open()

    def _open(self) -> None:
        self._process = OwnProcess("this Client")
        try:
            self._client = httpx.Client(
                headers=self._headers,
                timeout=httpx.Timeout(self.timeout, connect=min(self.timeout, CONNECT_SECONDS)),
                verify=ssl.create_default_context(),
                trust_env=not _is_this_machine(self.url.host),
            )
            weakref.finalize(self, self._client.close)  # if nobody closes it
        except (httpx.InvalidURL, OSError, ValueError, ImportError) as error:
            remedy = "correct http_proxy, no_proxy, ALL_PROXY or SSL_CERT_FILE in the environment"
            raise InputError(f"{self.url.server}: {error}; {remedy}") from None

    def close(self) -> None:
        """Close all connections; another request opens one again."""
        self._client.close()

    def with_longer_root(self) -> Connection:
        """Return a connection to the server whose path has what was taken for the name of a database."""
        return Connection(self.url.with_longer_root(), self._token, self.timeout, self._notice)

    def request(
        self, method: str, path: str, *, body: Any = None, params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None, timeout: float | None = None, is_patient: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Send a request to a path below `API_PATH`, with a body of JSON, and return the JSON of the response.

        If ``is_patient``, the request is repeated while the server is busy or out of reach. It raises `InputError` if
        the server refuses the request, and `ServerError` if it cannot answer.
        """
        more: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
        if body is not None:
            more |= {"content": json.dumps(body).encode("ascii")}
            headers = {**(headers or {}), "Content-Type": "application/json"}
        retries = Retries(self._notice)
        while True:
            try:
                with self._response(method, path, params=params, headers=headers, **more) as response:
                    return {} if response.status_code == 204 else self._json(response)
            except PassingError as error:
                if not is_patient:
                    raise
                retries.wait(error)

    def download(self, path: str, params: Mapping[str, Any] | None = None) -> Iterator[bytes]:
        """Yield the bytes of an answer; if it breaks off, request the rest. Raise as `request` does."""
        n_taken, retries, process = 0, Retries(self._notice), OwnProcess("this download")
        while True:
            headers = {"Range": f"bytes={n_taken}-"} if n_taken else None
            try:
                with self._response("GET", path, params=params, headers=headers) as response:
                    place = n_taken if response.status_code == 206 else 0
                    for piece in response.iter_raw():
                        place += len(piece)
                        if place > n_taken:
                            yield piece[n_taken - place :]
                            process.check()  # a fork would take what the server sends to its parent
                            n_taken = place
                            retries.reset()
                return
            except PassingError as error:
                retries.wait(error)

    @contextmanager
    def _response(self, method: str, path: str, **more: Any) -> Iterator[httpx.Response]:
        """Send a request and yield the response to read; raise its problem, or what happens while it is read."""
        if not self._process.is_here or self._client.is_closed:  # a fork must not read the answers to its parent
            self._open()
        try:
            with self._client.stream(method, f"{self.url.server}{API_PATH}{path}", **more) as response:
                if 300 <= response.status_code < 400:
                    place = printable(response.headers.get("Location", "another address"))[:MAX_MESSAGE]
                    raise ServerError(f"{self.url.server}: redirects to {place}; use that address")
                if response.status_code >= 400:
                    raise self.error_from_problem(self._json(response).get("error"), response.status_code)
                yield response
        except httpx.InvalidURL as error:
            raise InputError(f"{self.url.server}: invalid address: {error}; correct it") from None
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        data = bytearray()
        for piece in response.iter_raw():
            data += piece
            if len(data) > MAX_JSON:
                raise ServerError(f"{self.url.server}: got more than {MAX_JSON >> 20} MiB, expected a JSON answer")
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            kind = response.headers.get("content-type", "no type").partition(";")[0]
            raise NotASearchServerError(
                f"{self.url.server}: got status {response.status_code} and {printable(kind)[:80]}, expected a "
                "swsearch server; check the address"
            )
        return value

    def error_from_problem(self, problem: Any, status: int = 200) -> InputError | ServerError:
        """Return the error that a server's problem is here, with its message."""
        where = self.url.server
        if not isinstance(problem, dict) or not isinstance(problem.get("message"), str):
            return NotASearchServerError(
                f"{where}: got status {status} without a reason, expected a swsearch server; check the address"
            )
        message, code, again = problem["message"][:MAX_MESSAGE], problem.get("code"), problem.get("retry_after")
        if code == "not_authenticated":
            remedy = f"set the environment variable {TOKEN_VARIABLE} (in Python token=) to the server's token"
            return InputError(f"{where}: {message}; {remedy}")
        if code in CLIENT_ERROR_CODES:
            return InputError(message)
        if code in ("too_many", "unavailable") and type(again) is int and again >= 0:
            return PassingError(f"{where}: {message}", min(again, BUSY_SECONDS))
        return ServerError(f"{where}: {message}")

    def unexpected_response(self, what: str) -> NotASearchServerError:
        """Return the error for an answer that another version may have given."""
        return NotASearchServerError(
            f"{self.url.server}: {what} in an unknown format; install the same version on both sides"
        )

    def _unreachable(self, error: httpx.HTTPError) -> ServerError:
        """Return the error that says why there is no answer, and the remedy."""
        where, causes = self.url.server, list(_causes(error))
        for cause in causes:
            if isinstance(cause, ssl.SSLCertVerificationError):
                remedy = "name trusted certificates with SSL_CERT_FILE"
                return ServerError(f"{where}: certificate not trusted: {cause.verify_message}; {remedy}")
            if isinstance(cause, ssl.SSLError):
                reason = str(cause.reason or cause).lower().replace("_", " ")
                return ServerError(f"{where}: got no TLS ({reason}), expected https; try http:// in the address")
            if isinstance(cause, gaierror):
                return PassingError(f"{where}: host not found; check the address")
        reason = getattr(causes[-1], "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            reason = "no answer"
        if isinstance(error, httpx.RemoteProtocolError) and "illegal" in reason:
            return ServerError(f"{where}: got no HTTP answer; try https:// in the address")
        return PassingError(f"{where}: cannot be reached: {reason}; check the address, and that the server runs")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_this_machine(host: str) -> bool:
    """Return whether a host is this machine, which no proxy can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
