"""Requests to a server over HTTP, and what comes back: JSON, streams of bytes, and errors as sentences."""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import json
import socket
import ssl
import weakref
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from swsearch.errors import InputError, ServerError, printable
from swsearch.processors import OwnProcess
from swsearch.remote.frames import BrokenOffError
from swsearch.remote.urls import TOKEN_VARIABLE, ServerUrl
from swsearch.version import version

API_PATH = "/api/v1"
"""What stands before all paths of the API."""

CONNECT_SECONDS = 20.0
"""Seconds that a server has to take a connection."""

MOST_JSON = 64 << 20
"""Bytes of an answer that is JSON."""

MOST_MESSAGE = 2000
"""Characters of a server's sentence."""

MOST_SECONDS = 3600.0
"""Seconds, at most, after which a server may say to ask again."""

WRONG_CODES = ("broken", "not_found", "not_possible", "conflict", "expired", "too_large", "wrong_type", "wrong")
"""Problems that are of what was asked for; all others are the server's."""

_FAILURES = (OSError, http.client.HTTPException)


class UnreachableError(ServerError):
    """A server that did not answer.

    Parameters
    ----------
    message : str
        Why.
    was_sent : bool
        Whether it may have got the request.
    """

    def __init__(self, message: str, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class BusyError(ServerError):
    """A server that takes no more for now.

    Parameters
    ----------
    message : str
        Its sentence.
    seconds : float
        After which to ask again.
    """

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class Connection:
    """Asks a server; any threads may at a time. Connections are kept open between requests.

    Parameters
    ----------
    url : ServerUrl
        Where it is.
    token : str
        What it lets in by; empty where it lets everybody in.
    timeout : float
        Seconds without a byte after which it counts as out of reach.

    Raises
    ------
    InputError
        If the proxy that the environment names is none.
    """

    def __init__(self, url: ServerUrl, token: str, timeout: float) -> None:
        self.url, self.timeout = url, timeout
        self._headers = {"User-Agent": f"swsearch/{version()}", "Accept": "application/json"}
        if token:
            if not token.isascii() or not token.isprintable() or " " in token:
                raise InputError("token: got other characters, expected letters, digits and -._~")
            self._headers["Authorization"] = f"Bearer {token}"
        self._proxy = _proxy_for(url)
        self._idle: list[http.client.HTTPConnection] = []
        self._process = OwnProcess("this Client")
        weakref.finalize(self, _close_all, self._idle)  # where nobody closes it

    def close(self) -> None:
        """Close what is open; another request opens it again."""
        _close_all(self._idle)

    def ask(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> dict[str, Any]:
        """Return what the server answers.

        Parameters
        ----------
        method, path : str
            Of the request; the path is that behind `API_PATH`.
        query : dict, optional
            Parameters.
        body : object, optional
            What JSON can hold.

        Raises
        ------
        UnreachableError
            If there is no answer.
        BusyError
            If the server says to ask again later.
        InputError
            If the server says that something was wrong with the request.
        ServerError
            If it cannot, or is no server of swsearch.
        """
        with self._answered(method, path, query, body) as response:
            data = self._read(response)
        if not data and response.status == 204:
            return {}
        found = self._json(response, data)
        self._raise_problem(response, found)
        return found

    @contextlib.contextmanager
    def stream(self, path: str, query: Mapping[str, Any] | None = None) -> Iterator[AnswerStream]:
        """Yield the bytes of an answer, to be read; errors are those of `ask`."""
        with self._answered("GET", path, query, None) as response:
            if response.status != 200:
                self._raise_problem(response, self._json(response, self._read(response)))
            yield AnswerStream(response, self.url.server)

    # one request

    @contextlib.contextmanager
    def _answered(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Any
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request, and yield what is answered; the connection is kept where all of it was read."""
        target = f"{self.url.root}{API_PATH}{path}" + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode("ascii")
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        used, response = self._sent(method, target, content, headers)
        try:
            yield response
        except BaseException:
            used.close()
            raise
        if response.isclosed() and not response.will_close:
            self._idle.append(used)
        else:
            used.close()

    def _sent(
        self, method: str, target: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request over a connection that is open, or a new one, and return what is answered.

        A server closes what was idle for long. Only what reads may be sent twice for that; all else takes a new one.
        """
        if not self._process.is_here:  # a fork would read what is answered to its parent
            self._idle.clear()
            self._process = OwnProcess("this Client")
        idle = None
        with contextlib.suppress(IndexError):  # no lock, which another thread may hold when the process is forked
            idle = self._idle.pop() if method == "GET" else None
        if idle is not None:
            try:
                return idle, self._response(idle, method, target, content, headers)
            except _FAILURES:
                idle.close()
        made = self._opened()
        try:
            return made, self._response(made, method, target, content, headers)
        except _FAILURES as error:
            made.close()
            raise self._unreachable(error, was_sent=True) from None
        except BaseException:
            made.close()
            raise

    def _response(
        self,
        used: http.client.HTTPConnection,
        method: str,
        target: str,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        if self._proxy is not None and self.url.scheme == "http":
            target = f"http://{self.url.authority}{target}"
            headers = {**headers, **self._proxy[2]}
        try:
            used.request(method, target, content, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            if content is None:
                raise
            with contextlib.suppress(*_FAILURES):
                return used.getresponse()  # a server that takes no more of a request may have said why
            raise
        return used.getresponse()

    def _opened(self) -> http.client.HTTPConnection:
        url, proxy = self.url, self._proxy
        host, port = (url.host, url.port) if proxy is None else proxy[:2]
        first = min(self.timeout, CONNECT_SECONDS)
        try:
            made: http.client.HTTPConnection
            if url.scheme == "https":
                made = http.client.HTTPSConnection(host, port, timeout=first)
                if proxy is not None:
                    made.set_tunnel(url.host, url.port, dict(proxy[2]))
            else:
                made = http.client.HTTPConnection(host, port, timeout=first)
            made.connect()
            if made.sock is not None:
                made.sock.settimeout(self.timeout)
        except _FAILURES as error:
            raise self._unreachable(error, was_sent=False) from None
        return made

    def _unreachable(self, error: Exception, was_sent: bool) -> ServerError:
        """Return an error that says why there is no answer, and what to do."""
        where = self.url.server
        if isinstance(error, ssl.SSLCertVerificationError):
            return ServerError(
                f"{where}: certificate not trusted: {error.verify_message}; name trusted certificates with "
                "SSL_CERT_FILE"
            )
        if isinstance(error, ssl.SSLError):
            said = str(error.reason or error).lower().replace("_", " ")
            return ServerError(f"{where}: got no TLS ({said}), expected https; try http:// in the address")
        if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
            return ServerError(f"{where}: got no HTTP answer; try https:// in the address")
        if isinstance(error, socket.gaierror):
            return UnreachableError(f"{where}: host not found; check the address", was_sent)
        said = "no answer" if isinstance(error, TimeoutError) else getattr(error, "strerror", None) or str(error)
        remedy = "check the address, and that the server runs"
        return UnreachableError(f"{where}: cannot be reached: {said or type(error).__name__}; {remedy}", was_sent)

    # what was answered

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            data = response.read(MOST_JSON + 1)
            if len(data) > MOST_JSON:
                raise ServerError(f"{self.url.server}: got more than {MOST_JSON >> 20} MiB, expected a JSON answer")
            if response.read() or response.length:  # it is read to the end, so that the connection can be used again
                raise http.client.IncompleteRead(data)
        except _FAILURES as error:
            raise self._unreachable(error, was_sent=True) from None
        return data

    def _json(self, response: http.client.HTTPResponse, data: bytes) -> dict[str, Any]:
        where = self.url.server
        if 300 <= response.status < 400:
            place = printable(response.headers.get("Location", "another address"))[:MOST_MESSAGE]
            raise ServerError(f"{where}: redirects to {place}; use that address")
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            kind = response.headers.get_content_type()
            raise NoServerError(
                f"{where}: got status {response.status} and {kind}, expected a swsearch server; check the address"
            )
        return found

    def _raise_problem(self, response: http.client.HTTPResponse, found: dict[str, Any]) -> None:
        """Raise what the server says is wrong."""
        if response.status < 400:
            return
        problem = found.get("error")
        if not isinstance(problem, dict) or not isinstance(problem.get("message"), str):
            raise NoServerError(
                f"{self.url.server}: got status {response.status} without a reason, expected a swsearch server; "
                "check the address"
            )
        raise self.error_of(problem)

    def error_of(self, problem: Mapping[str, Any]) -> InputError | ServerError:
        """Return the error that a server's problem is here, with its sentence."""
        message, code = str(problem.get("message", ""))[:MOST_MESSAGE], problem.get("code")
        if code == "not_authenticated":
            remedy = f"set the environment variable {TOKEN_VARIABLE} (in Python token=) to the server's token"
            return InputError(f"{self.url.server}: {message}; {remedy}")
        if code in WRONG_CODES:
            return InputError(message)
        again = problem.get("retry_after")
        if code in ("too_many", "unavailable") and type(again) is int and again >= 0:
            return BusyError(f"{self.url.server}: {message}", min(float(again), MOST_SECONDS))
        return ServerError(f"{self.url.server}: {message}")


class NoServerError(ServerError):
    """What answers is no server of swsearch."""


class AnswerStream:
    """The bytes of an answer as they come.

    Parameters
    ----------
    response : HTTPResponse
        Not read yet.
    where : str
        What messages call the server.
    """

    def __init__(self, response: http.client.HTTPResponse, where: str) -> None:
        self._response, self._where = response, where
        self._process = OwnProcess("this search")
        self.content_type = response.headers.get_content_type()

    def read(self, n: int, /) -> bytes:
        """Return up to n bytes; none at the end.

        Raises
        ------
        BrokenOffError
            If the connection breaks off before it.
        """
        self._process.check()
        try:
            found = self._response.read(n)
        except _FAILURES as error:
            said = getattr(error, "strerror", None) or type(error).__name__
            raise BrokenOffError(f"{self._where}: the connection broke: {said}; try again") from None
        if not found and self._response.length:  # of an answer whose length is known the library says nothing
            raise BrokenOffError(f"{self._where}: the connection broke; try again")
        return found


def _close_all(connections: list[http.client.HTTPConnection]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            connections.pop().close()


def _proxy_for(url: ServerUrl) -> tuple[str, int, Mapping[str, str]] | None:
    """Return host, port and headers of the proxy that the environment names; None for none, and for this machine."""
    given = getproxies().get(url.scheme)
    if not given or _is_this_machine(url.host) or proxy_bypass(url.host):
        return None
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme != "http":
        raise InputError(f"{url.scheme}_proxy: got an unusable proxy, expected http://host:port")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
    return host, port, headers


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
