"""A server on the network: its socket, its connections, and how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn

from swsearch.errors import OptionError, printable
from swsearch.server.connections import Connections, GuardedProtocol

BACKLOG = 512
"""Connections that wait to be taken."""

OTHER_FILES = 256
"""Files that a server has open besides its connections and those that wait."""

KEEP_ALIVE = 20
"""Seconds that a connection is kept between requests."""

GRACE = 10
"""Seconds that requests have to end when the server ends."""

LONGEST_HEAD = 64 << 10
"""Bytes of a request's head: BLAST's URL API may have a query in its address."""

SWEEPS = 10
"""Ticks of a tenth of a second between looks at all connections."""


def bound(host: str, port: int) -> socket.socket:
    """Return a socket of an address, which does not listen yet.

    Raises
    ------
    OptionError
        If the address cannot be had.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise OptionError("--host", host, "a name or an address of this machine, such as 127.0.0.1") from None
    family, kind, protocol, _, address = sorted(found, key=lambda each: each[0] != socket.AF_INET)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(address)
    except OSError as error:
        made.close()
        raise _not_bound(host, port, error) from None
    return made


def _not_bound(host: str, port: int, error: OSError) -> OptionError:
    if error.errno == errno.EADDRINUSE:
        return OptionError(
            "--port", port, "one that is free", "another program listens there; 0 takes any that is free"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return OptionError("--port", port, "one that this user may take", "those from 1024 are for all")
    return OptionError("--host", host, "an address of this machine", f"it cannot be had: {error.strerror}")


def address_of(made: socket.socket) -> tuple[str, int]:
    """Return the address and port of a socket."""
    host, port = made.getsockname()[:2]
    return host, port


def url_of(made: socket.socket, root: str = "") -> str:
    """Return what to type into a browser on this machine."""
    host, port = address_of(made)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{root}/"


def is_for_others(made: socket.socket) -> bool:
    """Say whether other machines can reach a socket."""
    host, _ = address_of(made)
    return not (host.startswith("127.") or host == "::1")


def connections_for(most: int) -> int:
    """Let this process have as many files as so many connections need, and return how many it can have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = most + BACKLOG + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, max(soft - BACKLOG - OTHER_FILES, soft // 4)))


class LabServer(uvicorn.Server):
    """An application on a socket; `end` may be called from any thread, and from a handler of signals.

    Parameters
    ----------
    app : ASGI application
        With ``state.waiters``, which are let go of when it ends.
    made : socket
        Bound; closed at the end.
    connections : Connections
        Their limits.
    forwarded : sequence of str, optional
        Addresses of proxies that say who asks.
    grace : int, optional
        Seconds that requests have to end.
    log : callable
        Takes a line of what goes wrong below the application.
    """

    def __init__(
        self,
        app: Any,
        made: socket.socket,
        connections: Connections,
        *,
        forwarded: Sequence[str] = (),
        grace: int = GRACE,
        log: Callable[[str], None] = print,
    ) -> None:
        self._made, self._connections, self._log, self._lab = made, connections, log, app
        config = uvicorn.Config(
            app,
            http=functools.partial(GuardedProtocol, connections=connections),  # type: ignore[arg-type]  # makes one
            loop="asyncio",
            ws="none",
            lifespan="on",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=bool(forwarded),
            forwarded_allow_ips=list(forwarded),
            server_header=False,
            workers=1,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=grace,
            h11_max_incomplete_event_size=LONGEST_HEAD,
        )
        super().__init__(config)

    @property
    def url(self) -> str:
        """What to type into a browser on this machine."""
        return url_of(self._made, self._lab.state.house.settings.root_path)

    def listen(self) -> None:
        """Let connections come; they wait until `serve_until_ended` takes them."""
        self._made.listen(BACKLOG)

    def serve_until_ended(self) -> None:
        """Serve, until `end` is called and requests have ended or their time is over."""
        with _logging_to(self._log):
            self.run(sockets=[self._made])

    def end(self) -> None:
        """Take no more connections, let requests end, and return from `serve_until_ended`."""
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever serves."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections."""
        if counter % SWEEPS == 0:
            self._connections.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: whoever waits for a job is told how far it is."""
        self._lab.state.waiters.close()
        await super().shutdown(sockets)
        self._connections.cut_all()
        await asyncio.sleep(0)


class _Told(logging.Handler):
    """Passes warnings of libraries on."""

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one on."""
        with contextlib.suppress(Exception):
            is_ours = isinstance(record.exc_info, tuple) and isinstance(record.exc_info[1], asyncio.CancelledError)
            if not is_ours:  # it was told that requests are cut off
                self._log(printable(record.getMessage().strip()))


@contextlib.contextmanager
def _logging_to(log: Callable[[str], None]) -> Iterator[None]:
    """Let libraries' loggers tell us, and nobody else."""
    handler = _Told(log)
    loggers = [logging.getLogger(name) for name in ("uvicorn", "asyncio", "python_multipart")]
    before = [(each.propagate, each.level) for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.propagate = False
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, (propagate, level) in zip(loggers, before, strict=True):
            each.removeHandler(handler)
            each.propagate = propagate
            each.setLevel(level)
