"""The origin of a request: whether a page of another site may have made a browser send it.

Browsers send ``Sec-Fetch-Site`` over HTTPS and to localhost only, ``Origin`` with forms but not with links and
pictures, and ``Referer`` unless the page forbids it. A page cannot forge these headers, and cannot change
``User-Agent`` in a request to another site. So a browser's request must prove its origin; a program's needs no proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from swsearch.errors import printable
from swsearch.server.auth import Hosts

OWN_SITES = ("same-origin", "none")
"""Values of ``Sec-Fetch-Site`` for this server's own pages and for an address that the user typed."""

DEFAULT_PORTS = {"http": 80, "https": 443}

BROWSER_HEADERS = ("sec-fetch-dest", "sec-fetch-user", "upgrade-insecure-requests")
"""Headers that only browsers send; Node.js sends ``Sec-Fetch-Mode: cors`` and ``Accept-Language``, too."""

_BROWSER = re.compile(r"Mozilla/(?!.*PowerShell/)")

_NO_PROOF = (
    "the request looks like a browser's and names no page, expected a request of this server's own pages; "
    "a program that is not a browser: send a User-Agent without Mozilla"
)


class WebOrigin(NamedTuple):
    """Scheme, host and port of a URL; ``port`` is None if the URL has none."""

    scheme: str
    host: str
    port: int | None

    @classmethod
    def of(cls, url: str) -> WebOrigin | None:
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
    def shown(self) -> str:
        """The origin as browsers write it."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{name}" + (f":{self.port}" if self.port is not None else "")


def why_foreign(scope: Scope, hosts: Hosts) -> str:
    """Return why another site's page may have sent a request; empty if none can have sent it."""
    headers = Headers(scope=scope)
    if site := headers.get("sec-fetch-site"):
        if site in OWN_SITES:
            return ""
        return f"Sec-Fetch-Site: got {_quoted(site)}, expected same-origin; open this server's own page"
    for name in ("Origin", "Referer"):
        if given := headers.get(name):
            origin = WebOrigin.of(given)
            if origin is not None and _is_own(origin, scope, headers, hosts):
                return ""
            own = WebOrigin.of(f"{scope['scheme']}://{headers.get('host', '')}")
            expected = f", expected {_quoted(own.shown)}" if own else ""
            return (
                f"{name}: got {_quoted(origin.shown if origin else given)}{expected}; open this server's own page, "
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
    if own := WebOrigin.of(f"{scheme}://{headers.get('host', '')}"):
        yield own, own.port_with(scheme) != listening
    for each in headers.get("x-forwarded-host", "").split(","):
        own = WebOrigin.of(f"{scheme}://{each.strip()}")
        if own and own.host in hosts.given:  # others' names could lead here, too
            yield own, True


def _quoted(text: str) -> str:
    return repr(printable(text[:80]))
