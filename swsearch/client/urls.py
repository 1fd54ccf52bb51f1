"""URLs of servers and of databases on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from swsearch.errors import InputError, OptionError

API_PATH = "/api/v1"
"""Beginning of all paths of the API."""

DEFAULT_PORTS = {"http": 80, "https": 443}

SCHEMES = tuple(f"{name}://" for name in DEFAULT_PORTS)

EXPECTED_URL = "an address such as http://host:8080/sprot"

TOKEN_VARIABLE = "SWSEARCH_TOKEN"  # its name
"""The environment variable that has the token of a server, which a command line would show to others."""


@dataclass(frozen=True)
class ServerUrl:
    """Address of a server, or of a database on it."""

    scheme: str
    """``http`` or ``https``."""
    host: str
    """Name or address, without the brackets of IPv6."""
    port: int
    root: str = ""
    """Path prefix of the server, e.g. ``/swsearch``."""
    name: str = ""
    """Name of the database, or an empty string."""

    @property
    def authority(self) -> str:
        """Host and port, as a URL has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def server(self) -> str:
        """The address of the server alone."""
        return f"{self.scheme}://{self.authority}{self.root}"

    def __str__(self) -> str:
        return f"{self.server}/{quote(self.name, safe='')}"

    def with_longer_root(self) -> ServerUrl:
        """Return the address where what was taken for a database's name stands before all paths of the server."""
        return replace(self, root=f"{self.root}/{quote(self.name, safe='')}", name="")


def is_url(text: Any) -> bool:
    """Return whether subjects are the address of a server."""
    return isinstance(text, str) and text.lower().startswith(SCHEMES)


def server_url(text: Any) -> ServerUrl:
    """Parse an address; it raises `OptionError` for another text, and `InputError` for a name or password in it."""
    if not is_url(text) or not text.isprintable() or " " in text:
        raise OptionError("url", text, EXPECTED_URL)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
        host.encode("idna" if not host.isascii() else "ascii")
    except ValueError:
        raise OptionError("url", text, EXPECTED_URL, "its host or port is invalid") from None
    if "@" in parts.netloc:
        raise InputError(  # the address is not shown: it may hold a password
            f"url: got a name or password for {host}, expected an address without one; put the server's token into "
            f"the environment variable {TOKEN_VARIABLE}"
        )
    if not host or parts.query or parts.fragment or port == 0:
        raise OptionError("url", text, EXPECTED_URL, "end it with the name of the database")
    root, _, name = parts.path.rpartition("/")
    if any(part in ("", ".", "..") for part in root.split("/")[1:]):
        raise OptionError("url", text, EXPECTED_URL, "its path has empty parts")
    return ServerUrl(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], root, unquote(name))
